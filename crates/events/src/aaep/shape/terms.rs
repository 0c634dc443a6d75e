//! What a subscriber asked for and what it gets: never more than it asked for.

use serde::{Deserialize, Serialize};

use crate::aaep::event::{Boundary, RiskLevel, TYPES_URI, Type, Verbosity};
use crate::aaep::handshake::{Capabilities, EventFilters};
use crate::aaep::voice::Voice;
use crate::aaep::write::EXTENSION_CONTEXT;
use crate::locale::Locale;

/// Below this pace, in words a minute, output comes in paragraphs instead of sentences and words: a person who hears or
/// feels text slowly is better served by fewer, longer pieces than by many that queue up.
const SLOW_WPM: u64 = 120;

/// What is served at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// How many events a second one subscriber gets, however many it takes.
    pub events_per_second: Option<u64>,
    /// The languages that are spoken, the one first that is spoken where none is wanted.
    pub languages: Vec<String>,
    /// The vocabularies that are added.
    pub extensions: Vec<String>,
    /// The levels of the protocol.
    pub levels: Vec<u64>,
    /// Whether answers are taken.
    pub replies: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            events_per_second: None,
            languages: Locale::tags().into_iter().map(str::to_owned).collect(),
            extensions: vec![EXTENSION_CONTEXT.to_owned()],
            levels: vec![1, 2, 3],
            replies: true,
        }
    }
}

/// What was agreed on with one subscriber.
///
/// A subscriber that cannot answer confirmations is sent them all the same: AAEP says in one place that it gets none
/// (§5.3.1.4) and in others that everybody gets every critical event (§5.5.4, §6.7), and a question that somebody
/// only hears of is better than one that nobody knows about. Who may answer is for the keeper of the subscriptions to
/// decide, see [`Terms::can_confirm`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Terms {
    pub(super) honoured: Capabilities,
    pub(super) voice: Voice,
    pub(super) rate: Option<u64>,
    /// The core types that are not wanted.
    omitted: Vec<String>,
    /// The hints that pieces of output may carry.
    boundaries: Vec<Boundary>,
}

impl Default for Terms {
    /// Those of a subscriber that said nothing.
    fn default() -> Self {
        Self::negotiate(&Capabilities::default(), &Limits::default()).0
    }
}

impl Terms {
    /// What of the requested capabilities is honoured, and what people should know about the rest.
    ///
    /// Languages are matched by RFC 4647 lookup; `en` finds `en-US`, too. What matches is honoured in the words of the
    /// request. A subscriber whose languages nobody speaks is served all the same, in the first one that is spoken.
    ///
    /// ```
    /// use banister_events::aaep::handshake::Capabilities;
    /// use banister_events::aaep::shape::{Limits, Terms};
    /// let requested = Capabilities {
    ///     languages: Some(vec!["tlh".to_owned(), "es-MX".to_owned()]),
    ///     max_events_per_second: Some(50),
    ///     ..Capabilities::default()
    /// };
    /// let own = Limits { events_per_second: Some(20), ..Limits::default() };
    /// let (terms, honoured, notes) = Terms::negotiate(&requested, &own);
    /// assert_eq!(terms.voice().language, "es");
    /// assert_eq!(honoured.languages, Some(vec!["es-MX".to_owned()]));
    /// assert_eq!(honoured.max_events_per_second, Some(20));
    /// assert_eq!(notes.len(), 2);
    /// ```
    pub fn negotiate(requested: &Capabilities, own: &Limits) -> (Self, Capabilities, Vec<String>) {
        let mut notes = Vec::new();
        let rate = [requested.max_events_per_second, own.events_per_second]
            .into_iter()
            .flatten()
            .map(|rate| rate.max(1))
            .min();
        if let Some(rate) = rate.filter(|_| rate != requested.max_events_per_second) {
            notes.push(format!("At most {rate} events a second are sent."));
        }
        let (language, languages) = languages(requested, own, &mut notes);
        let boundaries = boundaries(requested);
        let keep = |wanted: &[u64]| kept(wanted, &own.levels);
        let levels = keep(requested.supported_conformance_levels.as_deref().unwrap_or(&[1]));
        if levels.is_none() {
            notes.push("None of the requested levels is served.".to_owned());
        }
        let extensions = requested.supported_extensions.as_deref().unwrap_or_default();
        let extensions = kept(extensions, &own.extensions);
        let replies = |wanted: Option<bool>| Some(wanted == Some(true) && own.replies);
        let verbosity = known(requested.preferred_verbosity.as_ref(), Verbosity::ALL);
        let load = known(requested.cognitive_load.as_ref(), RiskLevel::ALL);
        let honoured = Capabilities {
            max_events_per_second: rate,
            preferred_verbosity: Some(verbosity.clone().unwrap_or(Verbosity::Normal)),
            languages,
            supports_confirmation_reply: replies(requested.supports_confirmation_reply),
            supports_clarification_reply: replies(requested.supports_clarification_reply),
            coalesce_boundaries: Some(boundaries.clone()),
            event_filters: requested.event_filters.clone(),
            supported_conformance_levels: levels,
            cognitive_load: Some(load.clone().unwrap_or(RiskLevel::Medium)),
            pace_wpm: requested.pace_wpm,
            accept_signed_manifests_only: requested.accept_signed_manifests_only,
            supported_extensions: extensions,
            ..Capabilities::default()
        };
        let slow = requested.pace_wpm.is_some_and(|pace| pace < SLOW_WPM);
        let carries = |list: &Vec<String>| list.iter().any(|known| known == EXTENSION_CONTEXT);
        let terms = Self {
            voice: Voice {
                language,
                verbosity: verbosity.unwrap_or(Verbosity::Normal),
                boundaries: if slow { coarser(&boundaries) } else { boundaries.clone() },
                load: load.unwrap_or(RiskLevel::Medium),
                carry: honoured.supported_extensions.as_ref().is_some_and(carries),
            },
            rate,
            omitted: omitted(requested.event_filters.as_ref()),
            boundaries,
            honoured: honoured.clone(),
        };
        (terms, honoured, notes)
    }

    /// The capabilities that hold when these change: what is not named stays as it was agreed.
    pub fn changed(&self, changed: &Capabilities) -> Capabilities {
        let old = &self.honoured;
        let filters = match (&old.event_filters, &changed.event_filters) {
            (Some(old), Some(new)) => Some(EventFilters {
                include: new.include.clone().or_else(|| old.include.clone()),
                exclude: new.exclude.clone().or_else(|| old.exclude.clone()),
                ..EventFilters::default()
            }),
            (old, new) => new.clone().or_else(|| old.clone()),
        };
        macro_rules! or {
            ($($field:ident),* $(,)?) => {
                Capabilities {
                    $($field: changed.$field.clone().or_else(|| old.$field.clone()),)*
                    event_filters: filters,
                    ..Capabilities::default()
                }
            };
        }
        or!(
            max_events_per_second,
            preferred_verbosity,
            languages,
            supports_confirmation_reply,
            supports_clarification_reply,
            coalesce_boundaries,
            supported_conformance_levels,
            supported_extensions,
            cognitive_load,
            pace_wpm,
            accept_signed_manifests_only,
        )
    }

    /// How the subscriber is spoken to.
    pub fn voice(&self) -> &Voice {
        &self.voice
    }

    /// What was agreed on, as the answer to the request says it.
    pub fn honoured(&self) -> &Capabilities {
        &self.honoured
    }

    /// Whether it may answer confirmations.
    pub fn can_confirm(&self) -> bool {
        self.honoured.supports_confirmation_reply == Some(true)
    }

    /// Whether it may answer clarifications.
    pub fn can_clarify(&self) -> bool {
        self.honoured.supports_clarification_reply == Some(true)
    }

    /// Whether events of a type are sent, unless they are critical.
    pub fn wants(&self, kind: &str) -> bool {
        !self.omitted.iter().any(|omitted| omitted == kind)
    }

    /// Whether as little as possible is to be kept in mind at once.
    pub(super) fn is_calm(&self) -> bool {
        self.voice.load == RiskLevel::Low
    }

    /// The best of the agreed boundaries that a piece ends at which ends at this one.
    pub(super) fn hint<'a>(&self, found: &'a str) -> &'a str {
        let rank = |name: &str| Boundary::WORDS.iter().position(|known| *known == name);
        if found == "completion" || self.boundaries.iter().any(|known| known.name() == found) {
            return found;
        }
        let finer = |name: &&&str| {
            self.boundaries.iter().any(|known| known.name() == **name) && rank(name) < rank(found)
        };
        Boundary::WORDS.iter().rev().find(finer).copied().unwrap_or("none")
    }
}

/// The language to speak, and the requested ones that are spoken.
fn languages(
    requested: &Capabilities,
    own: &Limits,
    notes: &mut Vec<String>,
) -> (String, Option<Vec<String>>) {
    let fallback = ["en-US".to_owned()];
    let wanted = requested.languages.as_deref().unwrap_or(&fallback);
    let spoken: Vec<(&String, &str)> =
        wanted.iter().filter_map(|tag| Some((tag, spoken(tag, &own.languages)?))).collect();
    let first = own.languages.first().map_or("en", String::as_str);
    let language = spoken.first().map_or(first, |(_, language)| language).to_owned();
    if spoken.len() < wanted.len() {
        notes.push(format!("Not every requested language is spoken; texts are in {language}."));
    }
    let kept: Vec<String> = spoken.into_iter().map(|(tag, _)| tag.clone()).collect();
    (language, (!kept.is_empty()).then_some(kept))
}

/// The language that a tag finds: itself, without its last parts, or with further ones.
fn spoken<'a>(tag: &str, offered: &'a [String]) -> Option<&'a str> {
    let mut range = tag.trim();
    loop {
        if let Some(found) = offered.iter().find(|known| known.eq_ignore_ascii_case(range)) {
            return Some(found);
        }
        let Some((shorter, _)) = range.rsplit_once('-') else { break };
        // A single letter only introduces what was cut off.
        range = match shorter.rsplit_once('-') {
            Some((rest, single)) if single.len() == 1 => rest,
            _ => shorter,
        };
    }
    let longer = |known: &&String| {
        known
            .split_at_checked(tag.len())
            .is_some_and(|(start, rest)| start.eq_ignore_ascii_case(tag) && rest.starts_with('-'))
    };
    offered.iter().find(longer).map(String::as_str)
}

/// The requested boundaries that are known, in the order of their size; AAEP's default where there are none.
fn boundaries(requested: &Capabilities) -> Vec<Boundary> {
    let wanted = requested.coalesce_boundaries.as_deref().unwrap_or_default();
    let kept = kept(Boundary::ALL, wanted);
    kept.unwrap_or_else(|| vec![Boundary::Sentence, Boundary::Completion])
}

/// For slow readers. Who wants everything as it comes gets it as it comes.
fn coarser(boundaries: &[Boundary]) -> Vec<Boundary> {
    if boundaries.contains(&Boundary::None) || boundaries == [Boundary::Completion] {
        return boundaries.to_vec();
    }
    vec![Boundary::Paragraph, Boundary::Completion]
}

fn kept<T: Clone + PartialEq>(wanted: &[T], offered: &[T]) -> Option<Vec<T>> {
    let kept: Vec<T> = wanted.iter().filter(|item| offered.contains(item)).cloned().collect();
    (!kept.is_empty()).then_some(kept)
}

fn known<T: Clone + PartialEq>(word: Option<&T>, all: &[T]) -> Option<T> {
    word.filter(|word| all.contains(word)).cloned()
}

/// The core types that filters leave out. An empty list of what is wanted is none: nobody subscribes to nothing.
fn omitted(filters: Option<&EventFilters>) -> Vec<String> {
    let Some(filters) = filters else { return Vec::new() };
    let include = filters.include.as_deref().filter(|patterns| !patterns.is_empty());
    let exclude = filters.exclude.as_deref().unwrap_or_default();
    Type::ALL
        .into_iter()
        .map(Type::name)
        .filter(|name| {
            let fits = |pattern: &String| fits(pattern, name);
            exclude.iter().any(fits) || include.is_some_and(|include| !include.iter().any(fits))
        })
        .map(str::to_owned)
        .collect()
}

/// Whether a core type fits an exact name or a beginning with `*` behind it, in either form of its name.
fn fits(pattern: &str, name: &str) -> bool {
    let uri = name.strip_prefix("aaep:").map(|core| format!("{TYPES_URI}{core}"));
    let mut forms = [Some(name), uri.as_deref()].into_iter().flatten();
    match pattern.strip_suffix('*') {
        Some(start) => forms.any(|form| form.starts_with(start)),
        None => forms.any(|form| form == pattern),
    }
}
