//! What people hear or read: in a declared language, without secrets, without markup, in whole characters.
//!
//! Secrets are looked for by shapes that are hardly ever anything else; a clean result is no promise that a text holds
//! none. Text counts as decomposed where an ASCII letter is followed by an accent that it has a character with; that is
//! no full test for NFC.

use std::borrow::Cow;

use super::seen::Seen;
use super::{LANGUAGE, MARKUP, NORMALIZED, SECRET, WHOLE_CHARACTERS};
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

/// What the texts of an event break; each with the name of the first field that does.
#[derive(Default)]
pub(in crate::aaep) struct Texts<'a> {
    strict: bool,
    first: Option<View<'a>>,
    secret: Option<(View<'a>, &'static str)>,
    marked: Option<View<'a>>,
    broken: Option<View<'a>>,
    decomposed: Option<View<'a>>,
}

impl<'a> Texts<'a> {
    pub(super) fn new(strict: bool) -> Self {
        Self { strict, ..Self::default() }
    }

    /// Looks at the text of one field.
    pub(super) fn see(&mut self, name: View<'a>, text: &str, origin: Origin) {
        self.any(name, text);
        if origin == Origin::Written {
            if self.broken.is_none() && begins_inside(text, false) {
                self.broken = Some(name);
            }
            if self.marked.is_none() && is_marked(text) {
                self.marked = Some(name);
            }
        }
    }

    /// Looks at a piece of output.
    pub(super) fn piece(&mut self, name: View<'a>, text: &str, piece: &Piece) {
        self.any(name, text);
        let ends_inside = piece.goes_on && ends_inside(text);
        if self.broken.is_none() && (begins_inside(text, piece.follows) || ends_inside) {
            self.broken = Some(name);
        }
        if self.marked.is_none() && piece.plain && is_marked(text) {
            self.marked = Some(name);
        }
    }

    fn any(&mut self, name: View<'a>, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.first.is_none() {
            self.first = Some(name);
        }
        if self.secret.is_none() {
            self.secret = looks_secret(text).map(|kind| (name, kind));
        }
        if self.strict && self.decomposed.is_none() && is_decomposed(text) {
            self.decomposed = Some(name);
        }
    }
}

pub(super) fn check(seen: &Seen<'_>, findings: &mut Vec<Finding>) {
    let Some(first) = seen.texts.first else { return };
    if seen.localization.and_then(|hints| hints.get("primary_language")).is_none() {
        let message = format!("\"{}\" is text in no declared language", text_of(first));
        findings.push(LANGUAGE.at("/localization_hints", message));
    }
    let Texts { secret, broken, marked, decomposed, .. } = seen.texts;
    if let Some((name, kind)) = secret {
        let message = format!("the text contains what looks like {kind}");
        findings.push(SECRET.at(shape::pointer(&text_of(name)), message));
    }
    let mut found = |rule: &'static Rule, name: Option<View<'_>>, message: &str| {
        findings.extend(name.map(|name| rule.at(shape::pointer(&text_of(name)), message)));
    };
    found(&WHOLE_CHARACTERS, broken, "the text is cut inside a character");
    found(&MARKUP, marked, "the text contains a tag that names a language");
    found(
        &NORMALIZED,
        decomposed,
        "a letter and its accent stand apart, though both are one character",
    );
}

fn text_of(name: View<'_>) -> Cow<'_, str> {
    name.as_str().unwrap_or_default()
}

/// The fewest bytes that a mark of a secret and what must follow have in one word.
const SHORTEST: usize = 10;

/// What kind of secret a text contains, judged by prefixes that credentials announce themselves with.
fn looks_secret(text: &str) -> Option<&'static str> {
    let bytes = text.as_bytes();
    let mut start = 0;
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
        if word.ends_with(b"-----BEGIN") && text.contains("PRIVATE KEY-----") {
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
        [b'g', b'h', b'p', b'_', ..] => ("ghp_", 36, "a GitHub token"),
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
