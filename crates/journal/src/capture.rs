//! How much of what came is kept, per source. What is not kept leaves a keyed digest, so that somebody who has the bytes
//! can show later that they were these.
//!
//! | level | body | turn, action, findings, gate | search |
//! |---|---|---|---|
//! | `full` | as it came | as they are | as it is |
//! | `redacted` | redacted | texts redacted | redacted |
//! | `metadata` | none | texts redacted | none |
//! | `none` | none | none | none |
//!
//! The session, the time, the kind, the source and the sender's id are always kept: that something happened, and that it
//! happened once. The hash covers what is stored, the level and the digest, from the start: nothing is ever hashed anew.
//!
//! An open ask needs the exact bytes, whatever the level. [`Capture::hold`] keeps them beside the record until
//! [`crate::Journal::settle`] removes them. The record holds a commitment to them: SHA-256 of 32 random bytes and the
//! bytes. While they are held, anybody can check them against it. When they are gone, so is the salt, and the commitment
//! tells nothing; the keyed digest still shows what was removed. The chain never changes.
//!
//! Facts of the caller's own have to be understood later, whatever the level. Of those it keeps a form that says less, made
//! by itself: [`Capture::instead`].
//!
//! What counts as a secret is the caller's to say; the digest is of the body alone.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::DigestKey;
use crate::record::{Draft, Record};

/// How much is kept. The names are stored and hashed: they never change.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Only that something happened.
    None,
    /// Everything but the content.
    Metadata,
    /// The content without its secrets.
    Redacted,
    /// Everything.
    #[default]
    Full,
}

impl Level {
    /// Every level, the one that keeps least first.
    pub const ALL: [Self; 4] = [Self::None, Self::Metadata, Self::Redacted, Self::Full];

    /// The stored name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Metadata => "metadata",
            Self::Redacted => "redacted",
            Self::Full => "full",
        }
    }

    /// The level with that stored name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == name)
    }
}

/// How a source is captured.
#[derive(Clone, Copy)]
pub struct Capture<'a> {
    /// How much is kept.
    pub level: Level,
    /// Removes secrets: from a body, and from each text that is kept beside it.
    pub redact: &'a (dyn Fn(&[u8]) -> Vec<u8> + Sync),
    /// Digests what is not kept.
    pub digest_key: &'a DigestKey,
}

impl fmt::Debug for Capture<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Capture").field("level", &self.level).finish_non_exhaustive()
    }
}

impl Capture<'_> {
    /// What is recorded of a draft.
    pub fn apply(&self, draft: Draft) -> Entry {
        let exact = draft.body.clone();
        self.apply_to(draft, &exact)
    }

    /// The same, where the draft's body says less than the `exact` bytes that came: the digest is of those.
    pub fn apply_to(&self, draft: Draft, exact: &[u8]) -> Entry {
        if self.level == Level::Full {
            return Entry::from(draft);
        }
        let body: Bytes = match self.level {
            Level::Redacted => (self.redact)(&draft.body).into(),
            _ => Bytes::new(),
        };
        let kept_whole = self.level == Level::Redacted && body == exact;
        let digest = (!kept_whole).then(|| self.digest_key.digest(exact));
        let draft = if self.level == Level::None {
            Draft { body, turn: None, action: None, findings: Value::Null, gate: None, ..draft }
        } else {
            Draft {
                body,
                turn: draft.turn.map(|text| self.text(&text)),
                action: draft.action.map(|text| self.text(&text)),
                findings: self.json(draft.findings),
                gate: draft.gate.map(|gate| self.json(gate)),
                ..draft
            }
        };
        Entry { draft, level: self.level, digest, exact: None }
    }

    /// The same, for what an open ask is about: the exact bytes stay until it is settled.
    pub fn hold(&self, draft: Draft) -> Entry {
        let exact = draft.body.clone();
        self.apply(draft).holding(exact)
    }

    /// What is recorded of a fact of the caller's own, whose draft says less than the `exact` bytes already. It is kept as
    /// it is, at every level.
    pub fn instead(&self, draft: Draft, exact: &[u8]) -> Entry {
        let digest = (draft.body != exact).then(|| self.digest_key.digest(exact));
        Entry { level: self.level, digest, ..Entry::from(draft) }
    }

    fn text(&self, text: &str) -> String {
        String::from_utf8_lossy(&(self.redact)(text.as_bytes())).into_owned()
    }

    fn json(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.json(item)).collect(),
            Value::Object(members) => {
                members.into_iter().map(|(name, member)| (name, self.json(member))).collect()
            }
            other => other,
        }
    }
}

/// A draft with what goes with it into the journal. A draft alone is kept in full.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub(crate) draft: Draft,
    pub(crate) level: Level,
    pub(crate) digest: Option<[u8; 32]>,
    pub(crate) exact: Option<Bytes>,
}

impl Entry {
    /// The same; the exact bytes stay until it is settled, where something else is recorded.
    #[must_use]
    pub fn holding(self, exact: Bytes) -> Self {
        let exact = self.digest.is_some().then_some(exact);
        Self { exact, ..self }
    }

    /// What will be recorded.
    pub fn draft(&self) -> &Draft {
        &self.draft
    }

    /// Whether a record is of the same bytes. What was not kept is compared by its digest.
    pub fn is_again(&self, record: &Record) -> bool {
        record.body == self.draft.body && record.captured.digest == self.digest
    }
}

impl From<Draft> for Entry {
    fn from(draft: Draft) -> Self {
        Self { draft, level: Level::Full, digest: None, exact: None }
    }
}

/// How much of a record was kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// The capture level.
    pub level: Level,
    /// The keyed digest of the body as it came, where it was not kept so.
    pub digest: Option<[u8; 32]>,
    /// What binds the exact bytes: there if they are or were held.
    pub commitment: Option<[u8; 32]>,
    /// The exact bytes, while they are held.
    pub exact: Option<Bytes>,
}

#[cfg(test)]
#[path = "capture_tests.rs"]
mod tests;
