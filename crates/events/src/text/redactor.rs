//! Credentials are found in assembled text: what comes in pieces is held back where it may still become one.

use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::{CREDENTIALS, is_suspect, redact};

/// How much is held back for the end of a credential: longer than any that is not a key file.
const HELD_BYTES: usize = 8_192;

/// [`redact`], for a text that comes in pieces. What went in comes out, in order; only later, where its end may still
/// turn out to be a credential.
///
/// ```
/// use banister_events::text::Redactor;
/// let mut redactor = Redactor::default();
/// let mut shown: String = ["the pass", "word=hun", "ter2 was ", "wrong"].map(|piece| redactor.push(piece)).concat();
/// shown += &redactor.finish();
/// assert_eq!(shown, "the [redacted] was wrong");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redactor {
    held: String,
    /// Whether a key file began, was told as one, and has not ended.
    in_key: bool,
}

impl Redactor {
    /// Takes the next piece; gives what is safe to show.
    pub fn push(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        if self.in_key && !self.leave_key() {
            return String::new();
        }
        if !is_suspect(&self.held) {
            return self.pass();
        }
        let open = open_from(&self.held);
        if self.held.len() - open > HELD_BYTES {
            self.in_key = self.held.get(open..).is_some_and(|rest| rest.starts_with(KEY_BEGINS));
            return redact(&std::mem::take(&mut self.held)).into_owned();
        }
        // A credential that is complete is not cut either.
        let found = CREDENTIALS.iter().flat_map(|pattern| pattern.find_iter(&self.held));
        let cut = found.take_while(|it| it.start() < open).last();
        let (safe, clean) = match cut {
            None => (open, CREDENTIALS.is_some()),
            Some(credential) if credential.end() > open => (credential.start(), false),
            Some(_) => (open, false),
        };
        if safe == 0 {
            return String::new();
        }
        let rest = self.held.split_off(safe);
        let shown = std::mem::replace(&mut self.held, rest);
        if clean { shown } else { redact(&shown).into_owned() }
    }

    /// Whether nothing but the last word is held back, and that is no credential if it ends here.
    pub(crate) fn is_settled(&self) -> bool {
        if !self.in_key && !is_suspect(&self.held) {
            return true;
        }
        let mut probe = self.clone();
        probe.push(" ");
        probe.finish().trim().is_empty()
    }

    /// Nothing in it is a credential: all but the last word, which may become one, can be shown.
    fn pass(&mut self) -> String {
        let last = self.held.bytes().rev().take_while(u8::is_ascii_graphic).count();
        let open = self.held.len() - last;
        if last > HELD_BYTES {
            return std::mem::take(&mut self.held);
        }
        if open == 0 {
            return String::new();
        }
        let rest = self.held.split_off(open);
        std::mem::replace(&mut self.held, rest)
    }

    /// Gives what was held back: no more is coming.
    pub fn finish(&mut self) -> String {
        if self.in_key {
            self.leave_key();
        }
        self.in_key = false;
        redact(&std::mem::take(&mut self.held)).into_owned()
    }

    /// Drops what belongs to a key file; tells whether its end was seen.
    fn leave_key(&mut self) -> bool {
        if let Some((_, after)) = self.held.split_once(KEY_ENDS) {
            self.held = after.split_once("-----").map_or(after, |(_, after)| after).to_owned();
            self.in_key = false;
            return true;
        }
        // The end may itself come in pieces.
        let from = self.held.len().saturating_sub(KEY_ENDS.len());
        let from = (from..=self.held.len()).find(|at| self.held.is_char_boundary(*at));
        self.held.drain(..from.unwrap_or_default());
        false
    }
}

const KEY_BEGINS: &str = "-----BEGIN";
const KEY_ENDS: &str = "-----END";

/// Where the end of a text begins that may become a credential, or a longer one.
fn open_from(text: &str) -> usize {
    static OPEN: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(concat!(
            r"(?i)(?-u:\b)(?:authorization:\s*(?:(?:bearer|basic|token)\s*)?|x-api-key:?\s*|bearer\s+)[^\s'\x22]*\z",
            r"|(?-u:\b)[A-Za-z0-9_]*(?:password|passwd|secret|api_?key|private_key|access_token|auth_token)[A-Za-z0-9_]*(?:\\?['\x22])?\s*",
            r"(?:[=:]\s*(?:'[^']*|\x22[^\x22]*|\\(?:\x22[^\x22]*)?|[^\s&;'\x22]*))?\z",
            r"|[a-z][a-z0-9+.-]*://[^\s/@]*\z",
            r"|(?-u:\b)ssh-(?:rsa|ed25519)\s?[A-Za-z0-9+/=]*\z",
            r"|[!-~]+\z",
        ))
        .ok()
    });
    match &*OPEN {
        Some(pattern) => {
            let open = pattern.find(text).map_or(text.len(), |found| found.start());
            let key = text.rfind(KEY_BEGINS).filter(|key| !text.get(*key..).is_some_and(is_closed));
            key.map_or(open, |key| key.min(open))
        }
        // A pattern that does not compile must not let credentials through.
        None => 0,
    }
}

/// Whether a key file comes to its end.
fn is_closed(key: &str) -> bool {
    key.split_once(KEY_ENDS).is_some_and(|(_, end)| end.contains("-----"))
}
