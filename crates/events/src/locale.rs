//! What writers and pages say to people, per language: one catalogue for both. The command line speaks English.
//!
//! A language is one YAML file under `locales/`: `key: "text with {placeholders}"`. A test holds all languages to the
//! same keys and the same placeholders. A key that is missing all the same is answered in English, then by its name:
//! a person must never meet an empty sentence.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

/// One language.
#[derive(Debug, Clone, Copy)]
pub struct Locale {
    /// The BCP 47 tag.
    pub tag: &'static str,
    /// The direction text runs in: `ltr` or `rtl`.
    pub direction: &'static str,
    sentences: &'static BTreeMap<String, String>,
    lengths: &'static Lengths,
}

/// Sentences that are there at three lengths: terse, normal and detailed, by the name they have in common.
type Lengths = HashMap<String, [String; 3]>;

/// The languages that are embedded: tag, direction, text.
const EMBEDDED: [(&str, &str, &str); 4] = [
    ("en", "ltr", include_str!("../locales/en.yaml")),
    ("es", "ltr", include_str!("../locales/es.yaml")),
    ("ar", "rtl", include_str!("../locales/ar.yaml")),
    ("ja", "ltr", include_str!("../locales/ja.yaml")),
];

/// One language, as it is kept.
struct Catalogue {
    tag: &'static str,
    direction: &'static str,
    sentences: BTreeMap<String, String>,
    lengths: Lengths,
}

impl Catalogue {
    fn new((tag, direction, yaml): (&'static str, &'static str, &str)) -> Self {
        let sentences: BTreeMap<String, String> = serde_saphyr::from_str(yaml).unwrap_or_default();
        let lengths = sentences.keys().filter_map(|key| {
            let key = key.strip_suffix(".terse")?;
            let text = |length: &str| sentences.get(&format!("{key}.{length}")).cloned();
            Some((key.to_owned(), [text("terse")?, text("normal")?, text("detailed")?]))
        });
        Self { tag, direction, lengths: lengths.collect(), sentences }
    }
}

static CATALOGUES: LazyLock<Vec<Catalogue>> =
    LazyLock::new(|| EMBEDDED.into_iter().map(Catalogue::new).collect());

static NO_SENTENCES: BTreeMap<String, String> = BTreeMap::new();
static NO_LENGTHS: LazyLock<Lengths> = LazyLock::new(Lengths::new);

impl Default for Locale {
    fn default() -> Self {
        Self::exact("en").unwrap_or_else(|| Self {
            tag: "en",
            direction: "ltr",
            sentences: &NO_SENTENCES,
            lengths: &NO_LENGTHS,
        })
    }
}

impl Locale {
    /// The tags of all languages.
    pub fn tags() -> Vec<&'static str> {
        EMBEDDED.iter().map(|(tag, _, _)| *tag).collect()
    }

    /// The best language for a list of preferences (RFC 4647 lookup: `es-MX` finds `es`), English if none fits.
    ///
    /// ```
    /// use banister_events::locale::Locale;
    /// assert_eq!(Locale::choose(["de", "es-MX"]).tag, "es");
    /// assert_eq!(Locale::choose(["tlh"]).tag, "en");
    /// ```
    pub fn choose<'a>(preferred: impl IntoIterator<Item = &'a str>) -> Self {
        for tag in preferred {
            if let Some(found) = Self::exact(tag) {
                return found;
            }
            let mut range = tag.trim().to_ascii_lowercase().replace('_', "-");
            loop {
                if let Some(found) = Self::exact(&range) {
                    return found;
                }
                match range.rfind('-') {
                    Some(cut) => range.truncate(cut),
                    None => break,
                }
            }
        }
        Self::default()
    }

    /// The best language for an `Accept-Language` header.
    pub fn accept(header: &str) -> Self {
        let mut ranges: Vec<(f32, &str)> = header
            .split(',')
            .take(32)
            .filter_map(|part| {
                let mut pieces = part.split(';');
                let tag = pieces.next()?.trim();
                let weight = pieces
                    .find_map(|piece| piece.trim().strip_prefix("q="))
                    .and_then(|weight| weight.parse().ok())
                    .unwrap_or(1.0);
                (!tag.is_empty() && weight > 0.0).then_some((weight, tag))
            })
            .collect();
        ranges.sort_by(|a, b| b.0.total_cmp(&a.0));
        Self::choose(ranges.into_iter().map(|(_, tag)| tag))
    }

    /// One sentence, with its placeholders filled in.
    ///
    /// ```
    /// use banister_events::locale::Locale;
    /// let line = Locale::default().say("aaep.tool_completed.normal", &[("tool", "Bash")]);
    /// assert_eq!(line, "Bash finished.");
    /// ```
    pub fn say(&self, key: &str, values: &[(&str, &str)]) -> String {
        let template = match self.sentences.get(key) {
            Some(text) => text.as_str(),
            None if self.tag != "en" => return Self::default().say(key, values),
            None => key,
        };
        fill(template, values)
    }

    /// A sentence at three lengths, each with its own values: terse, normal, detailed.
    pub(crate) fn say_at_lengths(&self, key: &str, values: [&[(&str, &str)]; 3]) -> [String; 3] {
        if let Some([terse, normal, detailed]) = self.lengths.get(key) {
            let [of_terse, of_normal, of_detailed] = values;
            return [fill(terse, of_terse), fill(normal, of_normal), fill(detailed, of_detailed)];
        }
        let mut lengths = ["terse", "normal", "detailed"].into_iter();
        values.map(|values| {
            self.say(&format!("{key}.{}", lengths.next().unwrap_or_default()), values)
        })
    }

    /// Every sentence of this language.
    pub fn sentences(&self) -> &'static BTreeMap<String, String> {
        self.sentences
    }

    fn exact(tag: &str) -> Option<Self> {
        CATALOGUES.iter().find(|known| known.tag == tag).map(
            |Catalogue { tag, direction, sentences, lengths }| Self {
                tag,
                direction,
                sentences,
                lengths,
            },
        )
    }
}

/// Fills `{name}` in one pass, so that a value that contains braces stays what it is.
fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut text = String::with_capacity(template.len() + 32);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let filled = after.split_once('}').and_then(|(name, tail)| {
            values.iter().find(|(known, _)| *known == name).map(|(_, value)| (value, tail))
        });
        if let Some((value, tail)) = filled {
            text.push_str(value);
            rest = tail;
        } else {
            text.push('{');
            rest = after;
        }
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
#[path = "locale_tests.rs"]
mod tests;
