//! Names of agents and events, as far as they may become part of a request path.

use std::ffi::OsStr;
use std::fmt;

use crate::error::{Error, escape_controls};

const LONGEST: usize = 128;

/// A name made of `A-Z a-z 0-9 . _ -` that is neither an option nor a relative path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name(String);

impl Name {
    /// Checks a name from the command line or a payload.
    pub(crate) fn parse(given: &OsStr) -> Result<Self, Error> {
        let text = given.to_str().filter(|text| {
            text.len() <= LONGEST
                && !text.starts_with('-')
                && text.bytes().any(|byte| byte != b'.')
                && text.bytes().all(is_plain)
        });
        text.map(|text| Self(text.to_owned())).ok_or_else(|| {
            let shown: String = given.to_string_lossy().chars().take(LONGEST).collect();
            Error::Name { given: escape_controls(&shown) }
        })
    }

    /// The event of a payload that names none.
    pub(crate) fn unknown() -> Self {
        Self(String::from("-"))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

/// Finds the event that a payload names at its top level as `"hook_event_name":"…"`.
///
/// This is no JSON parser: it follows strings and brackets just far enough that a name which a model wrote
/// into a tool's arguments is not taken for the agent's. Two that disagree are both disbelieved.
pub(crate) fn event_in(payload: &[u8]) -> Option<Name> {
    let mut found: Option<Name> = None;
    let mut depth = 0_usize;
    let mut rest = payload;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let Some((key, tail)) = split_string(rest) else {
                    break;
                };
                rest = tail;
                if depth != 1 || key != b"hook_event_name" {
                    continue;
                }
                let Some(value) = tail.trim_ascii_start().strip_prefix(b":") else {
                    continue;
                };
                let (text, _) = split_string(value.trim_ascii_start().strip_prefix(b"\"")?)?;
                let name = Name::parse(OsStr::new(std::str::from_utf8(text).ok()?)).ok()?;
                if found.as_ref().is_some_and(|before| *before != name) {
                    return None;
                }
                found = Some(name);
            }
            _ => {}
        }
    }
    found
}

/// Splits what follows an opening quote at the closing one.
fn split_string(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut escaped = false;
    let end = rest.iter().position(|&byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })?;
    let (text, tail) = rest.split_at_checked(end)?;
    Some((text, tail.get(1..)?))
}

#[cfg(test)]
#[path = "name_tests.rs"]
mod tests;
