//! What is handed in, and what is kept. Bodies are opaque: they are stored and given back byte for byte.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::capture::Captured;

/// What is to be recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// The session it belongs to.
    pub session: String,
    /// When it was accepted.
    pub time: Timestamp,
    /// What it is.
    pub kind: Kind,
    /// Where it came from.
    pub source: Source,
    /// The turn it belongs to.
    pub turn: Option<String>,
    /// The action it belongs to.
    pub action: Option<String>,
    /// The sender's own id of the message, for dedupe by (`source.key`, `event_id`).
    pub event_id: Option<String>,
    /// The version of the reader that understood it.
    pub reader: u32,
    /// The original bytes; for Banister's own facts canonical JSON.
    pub body: Bytes,
    /// What was wrong with it, as a JSON array; `Null` if nothing was.
    pub findings: Value,
    /// What the gate added: risk, effects, rule.
    pub gate: Option<Value>,
}

/// Where a record came from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Source {
    /// What it was written in: `hook:claude-code`, `aep`, `banister`.
    pub protocol: String,
    /// The agent it is about.
    pub agent: String,
    /// How it came in: `socket`, `http`, `spool`, `cli`, `page`.
    pub door: String,
    /// The id of the key it came in with, never the key.
    pub key: String,
}

/// What a record is. The names are stored and hashed: they never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Kind {
    /// A message of an agent.
    Event,
    /// A message of an agent that no reader understood.
    Unreadable,
    /// What policy said about an action, where that is not part of the event's own record.
    Verdict,
    /// A question the agent waits on.
    Ask,
    /// What a person answered.
    Answer,
    /// An ask whose deadline passed.
    Expiry,
    /// An ask that was taken back.
    Withdrawal,
    /// A turn that was closed because nothing more came.
    Idle,
    /// A standing permission that a person gave.
    Grant,
    /// A standing permission that was taken back.
    Revocation,
    /// A run that waits for answers, and how it goes on.
    Parked,
    /// What became of a run that waited.
    Resumption,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 12] = [
        Self::Event,
        Self::Unreadable,
        Self::Verdict,
        Self::Ask,
        Self::Answer,
        Self::Expiry,
        Self::Withdrawal,
        Self::Idle,
        Self::Grant,
        Self::Revocation,
        Self::Parked,
        Self::Resumption,
    ];

    /// The stored name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Unreadable => "unreadable",
            Self::Verdict => "verdict",
            Self::Ask => "ask",
            Self::Answer => "answer",
            Self::Expiry => "expiry",
            Self::Withdrawal => "withdrawal",
            Self::Idle => "idle",
            Self::Grant => "grant",
            Self::Revocation => "revocation",
            Self::Parked => "parked",
            Self::Resumption => "resumption",
        }
    }

    /// The kind with that stored name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// One accepted message, or one fact of Banister's own, as it stands in the journal.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Where it stands in this file. A local cursor: not hashed, never part of an id.
    pub position: u64,
    /// The session it belongs to.
    pub session: String,
    /// Where it stands in its session: from 1, without gaps.
    pub seq: u64,
    /// When it was accepted.
    pub time: Timestamp,
    /// What it is.
    pub kind: Kind,
    /// Where it came from.
    pub source: Source,
    /// The turn it belongs to.
    pub turn: Option<String>,
    /// The action it belongs to.
    pub action: Option<String>,
    /// The sender's own id of the message.
    pub event_id: Option<String>,
    /// The version of the reader that understood it.
    pub reader: u32,
    /// The bytes as they were handed in, as far as the capture level let.
    pub body: Bytes,
    /// What was wrong with it, as a JSON array; `Null` if nothing was.
    pub findings: Value,
    /// What the gate added.
    pub gate: Option<Value>,
    /// The hash of the session's record before this one; zeros for the first.
    pub prev: [u8; 32],
    /// The hash of this record, as [`crate::chain`] describes it.
    pub hash: [u8; 32],
    /// How much of it was kept.
    pub captured: Captured,
}

impl Record {
    /// The exact bytes while they are held for an open ask, else the body.
    pub fn exact(&self) -> &Bytes {
        self.captured.exact.as_ref().unwrap_or(&self.body)
    }
}

/// How safe a batch has to be before it is acknowledged. The later one is the stricter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// In the write-ahead log: survives the end of the process, and is on disk within 10 ms.
    Written,
    /// On disk: survives a power cut.
    Synced,
}

/// What became of a batch.
#[derive(Clone, Debug)]
pub enum Appended {
    /// All of it was recorded, in the order given.
    Recorded(Vec<Arc<Record>>),
    /// The first draft's (`source.key`, `event_id`) is known: nothing was written.
    Duplicate {
        /// The record that bears the id.
        first: Arc<Record>,
        /// Whether its body is what was handed in again.
        same_bytes: bool,
    },
}

/// One session, as a list of sessions shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionRow {
    /// The session.
    pub session: String,
    /// The agent of its first record.
    pub agent: String,
    /// The protocol of its first record.
    pub protocol: String,
    /// The time of its first record, of those that retention left.
    pub first: Timestamp,
    /// The time of its last record.
    pub last: Timestamp,
    /// How many records it has, without those that retention removed.
    pub records: u64,
}

/// Where the chain of a session ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Head {
    /// The session.
    pub session: String,
    /// The number of its newest record: how many it had in all.
    pub seq: u64,
    /// The hash of that record.
    #[serde(serialize_with = "crate::checkpoint::as_hex")]
    pub hash: [u8; 32],
}

/// The newest record of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Newest {
    /// The session.
    pub session: String,
    /// Its number in the session.
    pub seq: u64,
    /// Its position.
    pub position: u64,
}
