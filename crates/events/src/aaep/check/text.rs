//! What people hear or read: in a declared language, without secrets, without markup, in whole characters.
//!
//! Secrets are looked for by shapes that are hardly ever anything else; a clean result is no promise that a text holds
//! none. Text counts as decomposed where an ASCII letter is followed by an accent that it has a character with; that is
//! no full test for NFC.

use std::borrow::Cow;

use super::language::Declared;
use super::seen::Seen;
use super::{LANGUAGE, MARKUP, NORMALIZED, PASSWORD, SECRET, WHOLE_CHARACTERS};
use crate::check::shape;
use crate::finding::{Finding, Rule};
use crate::json::View;

/// Where a text comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The producer wrote it for people.
    Written,
    /// It repeats what others wrote, markup included.
    Quoted,
}

/// What matters about a piece of output beside its text.
pub(super) struct Piece {
    /// Whether something came before it.
    pub(super) follows: bool,
    /// Whether something comes after it.
    pub(super) goes_on: bool,
    /// Whether it is plain text.
    pub(super) plain: bool,
}

/// Where a text stands.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    /// In the field of this name.
    Field(View<'a>),
    /// In the description of the progress.
    Progress,
    /// In the label of this choice.
    Choice(usize),
}

impl<'a> Place<'a> {
    fn name(self) -> Cow<'a, str> {
        match self {
            Self::Field(name) => name.as_str().unwrap_or_default(),
            Self::Progress => Cow::Borrowed("progress"),
            Self::Choice(_) => Cow::Borrowed("choices"),
        }
    }

    fn pointer(self) -> String {
        match self {
            Self::Field(_) => shape::pointer(&self.name()),
            Self::Progress => "/progress/description".to_owned(),
            Self::Choice(index) => format!("/choices/{index}/label"),
        }
    }
}

/// What the texts of an event break; each with the place of the first text that does.
#[derive(Default)]
pub(in crate::aaep) struct Texts<'a> {
    strict: bool,
    first: Option<Place<'a>>,
    secret: Option<(Place<'a>, &'static str)>,
    password: Option<Place<'a>>,
    marked: Option<Place<'a>>,
    broken: Option<Place<'a>>,
    decomposed: Option<Place<'a>>,
}

impl<'a> Texts<'a> {
    pub(super) fn new(strict: bool) -> Self {
        Self { strict, ..Self::default() }
    }

    /// Looks at the text of one field.
    pub(super) fn see(&mut self, place: Place<'a>, text: &str, origin: Origin) {
        self.any(place, text);
        if origin == Origin::Written {
            if self.broken.is_none() && begins_inside(text, false) {
                self.broken = Some(place);
            }
            if self.marked.is_none() && is_marked(text) {
                self.marked = Some(place);
            }
        }
    }

    /// Looks at a piece of output.
    pub(super) fn piece(&mut self, place: Place<'a>, text: &str, piece: &Piece) {
        self.any(place, text);
        let ends_inside = piece.goes_on && ends_inside(text);
        if self.broken.is_none() && (begins_inside(text, piece.follows) || ends_inside) {
            self.broken = Some(place);
        }
        if self.marked.is_none() && piece.plain && is_marked(text) {
            self.marked = Some(place);
        }
    }

    fn any(&mut self, place: Place<'a>, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.first.is_none() {
            self.first = Some(place);
        }
        if self.secret.is_none() {
            self.secret = looks_secret(text).map(|kind| (place, kind));
        }
        // Looking at all bytes at once is quicker than stopping at the first.
        let assigns = text.bytes().fold(false, |any, byte| any | matches!(byte, b'=' | b':'));
        if assigns && self.password.is_none() && holds_password(text) {
            self.password = Some(place);
        }
        if self.strict && self.decomposed.is_none() && is_decomposed(text) {
            self.decomposed = Some(place);
        }
    }
}

pub(super) fn check(seen: &Seen<'_>, declared: Declared, findings: &mut Vec<Finding>) {
    let Some(first) = seen.texts.first else { return };
    if declared == Declared::Nothing {
        let message = format!("\"{}\" is text in no declared language", first.name());
        findings.push(LANGUAGE.at("/localization_hints", message));
    }
    let Texts { secret, password, broken, marked, decomposed, .. } = seen.texts;
    if let Some((place, kind)) = secret {
        let message = format!("the text contains what looks like {kind}");
        findings.push(SECRET.at(place.pointer(), message));
    } else if let Some(place) = password {
        findings.push(PASSWORD.at(place.pointer(), "the text contains what looks like a password"));
    }
    let mut found = |rule: &'static Rule, place: Option<Place<'_>>, message: &str| {
        findings.extend(place.map(|place| rule.at(place.pointer(), message)));
    };
    found(&WHOLE_CHARACTERS, broken, "the text is cut inside a character");
    found(&MARKUP, marked, "the text contains a tag that names a language");
    found(
        &NORMALIZED,
        decomposed,
        "a letter and its accent stand apart, though both are one character",
    );
}

/// The fewest bytes that a mark of a secret and what must follow have in one word.
const SHORTEST: usize = 10;

/// What kind of secret a text contains, judged by prefixes that credentials announce themselves with.
fn looks_secret(text: &str) -> Option<&'static str> {
    let bytes = text.as_bytes();
    let mut start = 0;
    // Looked for once, however often a text says that something begins.
    let mut has_key = None;
    // Words shorter than any secret are jumped over: where a byte is no part of a word, none before it is in a long
    // word either.
    while let Some(window) = bytes.get(start..start + SHORTEST) {
        if let Some(gap) = window.iter().rposition(|byte| !is_word(*byte)) {
            start += gap + 1;
            continue;
        }
        let rest = bytes.get(start..).unwrap_or_default();
        let length = rest.iter().position(|byte| !is_word(*byte)).unwrap_or(rest.len());
        let (word, after) = rest.split_at_checked(length).unwrap_or_default();
        if let Some(kind) = secret(word, rest) {
            return Some(kind);
        }
        if matches!(word, [.., b'n' | b'N'])
            && after_authorization(word, after).is_some_and(is_bearer)
        {
            return Some("a bearer token");
        }
        if word.ends_with(b"-----BEGIN")
            && *has_key.get_or_insert_with(|| text.contains("PRIVATE KEY-----"))
        {
            return Some("a private key");
        }
        start = bytes.len() - after.len();
    }
    None
}

/// What kind of secret a word is, given the text that begins with it.
fn secret(word: &[u8], text: &[u8]) -> Option<&'static str> {
    let (mark, length, kind) = match word {
        [b's', b'k', b'-', ..] => ("sk-", 32, "an API key"),
        [b'g', b'h', kind, b'_', ..] => {
            let marks = ["ghp_", "gho_", "ghu_", "ghs_", "ghr_"];
            let mark = marks.into_iter().find(|mark| mark.as_bytes().get(2) == Some(kind))?;
            (mark, 36, "a GitHub token")
        }
        [b'g', b'i', ..] => ("github_pat_", 40, "a GitHub token"),
        [b'x', b'o', ..] => ("xoxb-", 20, "a Slack token"),
        [b'g', b'l', ..] => ("glpat-", 20, "a GitLab token"),
        [b'A', b'K', ..] => ("AKIA", 16, "an AWS access key"),
        [b'A', b'I', ..] => ("AIza", 35, "a Google API key"),
        [b'e', b'y', b'J', ..] => ("eyJhbGciOi", 30, "a signed token"),
        _ => return None,
    };
    let rest = word.strip_prefix(mark.as_bytes())?;
    let is_key = match mark {
        // Package names and slugs begin like this, too: keys have a long part without any dash.
        "sk-" => rest
            .split(|byte| matches!(byte, b'-' | b'_'))
            .any(|part| part.len() >= 16 && part.iter().any(u8::is_ascii_digit)),
        "AKIA" => {
            rest.iter().take(length).all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
        }
        _ => true,
    };
    // The three parts of a signed token are joined by dots.
    let reach = match mark {
        "eyJhbGciOi" => {
            text.iter().take_while(|byte| is_word(**byte) || **byte == b'.').count() - mark.len()
        }
        _ => rest.len(),
    };
    let first = rest.first()?;
    (is_key
        && reach >= length
        && rest.iter().any(u8::is_ascii_digit)
        && rest.iter().any(|byte| byte != first))
    .then_some(kind)
}

/// What comes behind the name of the header that carries credentials.
fn after_authorization<'a>(word: &[u8], after: &'a [u8]) -> Option<&'a [u8]> {
    const NAME: &[u8] = b"authorization";
    let start = word.len().checked_sub(NAME.len())?;
    word.get(start..)?.eq_ignore_ascii_case(NAME).then_some(after)
}

/// Whether this is `: Bearer` and a token, and no example of one.
fn is_bearer(text: &[u8]) -> bool {
    const SCHEME: &[u8] = b"bearer ";
    const TOKEN: usize = 16;
    let between = |byte: &u8| matches!(byte, b' ' | b':' | b'=' | b'"' | b'\'');
    let start = text.iter().position(|byte| !between(byte)).unwrap_or(text.len());
    let Some((scheme, token)) =
        text.get(start..).and_then(|text| text.split_at_checked(SCHEME.len()))
    else {
        return false;
    };
    let is_token = |byte: &&u8| is_word(**byte) || b".~+/=".contains(*byte);
    let length = token.iter().take_while(is_token).count();
    let token = token.get(..length).unwrap_or_default();
    start > 0
        && scheme.eq_ignore_ascii_case(SCHEME)
        && length >= TOKEN
        && token.iter().any(u8::is_ascii_digit)
        && token.iter().any(|byte| token.first() != Some(byte))
}

/// Whether a text has a value under a name that passwords go by. Names of passwords stand in much text about software,
/// hence values that look like words, places or examples are none.
#[inline(never)]
fn holds_password(text: &str) -> bool {
    text.match_indices(['=', ':']).any(|(at, sign)| {
        let before = text.get(..at).unwrap_or_default();
        let after = text.get(at + sign.len()..).unwrap_or_default();
        names_password(before) && is_password(after, sign)
    })
}

fn names_password(before: &str) -> bool {
    const NAMES: [&str; 5] = ["password", "api_key", "api-key", "apikey", "secret"];
    let name = before.trim_end_matches([' ', '"', '\'']).as_bytes();
    NAMES.iter().any(|known| {
        let start = name.len().checked_sub(known.len());
        start
            .and_then(|start| name.get(start..))
            .is_some_and(|end| end.eq_ignore_ascii_case(known.as_bytes()))
    })
}

fn is_password(after: &str, sign: &str) -> bool {
    const SHORTEST: usize = 8;
    const LONGEST: usize = 128;
    if after.starts_with(['=', '>', ':']) {
        return false;
    }
    let value = after.trim_start_matches([' ', '"', '\'']);
    let ends = |letter: char| letter.is_whitespace() || "\"',;&)".contains(letter);
    // One value may contain the next name: no more of it is looked at than tells what it is.
    let value = value.char_indices().nth(LONGEST).map_or(value, |(end, _)| value.split_at(end).0);
    let value = value.split(ends).next().unwrap_or_default().trim_end_matches(['.', '!', '?', ':']);
    let first = value.chars().next();
    let is_example = value.starts_with(['[', '<', '{', '$', '%', '(', '…'])
        || value.chars().all(|letter| Some(letter) == first)
        || ["***", "•••", "...", "…", "://", "("].iter().any(|mark| value.contains(mark))
        || ["xxx", "redacted", "hidden", "masked", "example", "your"].iter().any(|mark| {
            value.get(..mark.len()).is_some_and(|start| start.eq_ignore_ascii_case(mark))
        });
    // In prose, a colon is followed by words.
    let is_word = value
        .chars()
        .all(|letter| letter.is_alphabetic() || matches!(letter, '-' | '_' | '/' | '’'));
    value.chars().count() >= SHORTEST && !is_example && !(is_word && sign == ":")
}

/// Whether credentials are written with this byte.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Whether the first character belongs to one before it. A skin tone does only where something came before.
fn begins_inside(text: &str, later: bool) -> bool {
    if text.as_bytes().first().is_none_or(u8::is_ascii) {
        return false;
    }
    text.chars().next().is_some_and(|first| match first {
        '\u{1F3FB}'..='\u{1F3FF}' => later,
        first => crate::text::extends(first),
    })
}

/// Whether an emoji is broken off where the next part of it should be joined. Scripts that end words so are left alone.
fn ends_inside(text: &str) -> bool {
    text.strip_suffix('\u{200D}')
        .is_some_and(|rest| rest.chars().next_back().is_some_and(|last| last >= '\u{2190}'))
}

/// Whether a text marks a language as HTML and SSML do. Code in backticks and tags of whole documents are about markup
/// and do not count.
fn is_marked(text: &str) -> bool {
    const TAGS: [&str; 13] =
        ["span", "i", "em", "q", "cite", "bdi", "bdo", "p", "div", "s", "lang", "voice", "speak"];
    if !text.contains('<') || text.contains('`') {
        return false;
    }
    text.split('<').skip(1).any(|rest| {
        let Some((tag, _)) = rest.split_once('>') else { return false };
        let mut parts = tag.split_ascii_whitespace();
        parts.next().is_some_and(|name| TAGS.contains(&name))
            && parts.any(|part| part.starts_with("lang=") || part.starts_with("xml:lang="))
    })
}

/// Whether an ASCII letter stands before an accent that it has a character with.
fn is_decomposed(text: &str) -> bool {
    if text.is_ascii() {
        return false;
    }
    text.chars().zip(text.chars().skip(1)).any(|(letter, accent)| {
        let letters = match accent {
            '\u{300}' => "AEINOUWYaeinouwy",
            '\u{301}' => "ACEGIKLMNOPRSUWYZacegiklmnoprsuwyz",
            '\u{302}' => "ACEGHIJOSUWYZaceghijosuwyz",
            '\u{303}' => "AEINOUVYaeinouvy",
            '\u{308}' => "AEHIOUWXYaehiotuwxy",
            '\u{30A}' => "AUauwy",
            '\u{30C}' => "ACDEGHIKLNORSTUZacdeghijklnorstuz",
            '\u{327}' => "CDEGHKLNRSTcdeghklnrst",
            _ => return false,
        };
        letters.contains(letter)
    })
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
