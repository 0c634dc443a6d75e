//! How a record's hash is made, in enough detail to check a journal without this code.
//!
//! Each session is one chain. A record's hash is SHA-256 over these bytes, in this order:
//!
//! | # | field | encoding |
//! |---|---|---|
//! | 0 | layout version | the byte `01` |
//! | 1 | `session` | text |
//! | 2 | `seq` | 8 bytes, big endian; 1 for the session's first record, then without gaps |
//! | 3 | `time` | text, RFC 3339 in UTC, as stored |
//! | 4–7 | `protocol`, `agent`, `door`, `key` | text |
//! | 8, 9 | `turn`, `action` | optional text |
//! | 10 | `kind` | text, the stored name |
//! | 11 | `reader` | 4 bytes, big endian |
//! | 12 | `event_id` | optional text |
//! | 13 | SHA-256 of `body` | 32 bytes |
//! | 14, 15 | `findings`, `gate` | optional text, the JSON exactly as stored |
//! | 16 | `prev` | 32 bytes: the hash of the record before, zeros for the first |
//!
//! Fields 1 to 16 are each preceded by their length in bytes as 8 bytes, big endian, the fixed-size ones
//! included. An optional field starts with one byte: `00` if it is absent (and nothing follows), `01` if a
//! length and a value follow. Text is UTF-8. So no two different records have the same bytes.
//!
//! `position` is not covered: it is a cursor of one file, and a copy of a session elsewhere has other positions.
//!
//! A chain shows that nothing before its head was changed, removed or put in. It cannot show that its head is
//! the newest there was, nor who wrote it.

use sha2::{Digest, Sha256};

/// The version byte that starts the hashed bytes.
pub const VERSION: u8 = 1;

/// What stands in for the hash before a session's first record.
pub const START: [u8; 32] = [0; 32];

/// What one hash covers, as stored.
#[derive(Clone, Copy, Debug)]
pub struct Link<'a> {
    /// The session.
    pub session: &'a str,
    /// Where the record stands in it, from 1.
    pub seq: u64,
    /// RFC 3339, as stored.
    pub time: &'a str,
    /// The source's protocol.
    pub protocol: &'a str,
    /// The source's agent.
    pub agent: &'a str,
    /// The source's door.
    pub door: &'a str,
    /// The id of the source's key.
    pub key: &'a str,
    /// The turn.
    pub turn: Option<&'a str>,
    /// The action.
    pub action: Option<&'a str>,
    /// The kind's stored name.
    pub kind: &'a str,
    /// The reader's version.
    pub reader: u32,
    /// The sender's id.
    pub event_id: Option<&'a str>,
    /// SHA-256 of the body.
    pub body: [u8; 32],
    /// Findings, as stored.
    pub findings: Option<&'a str>,
    /// What the gate added, as stored.
    pub gate: Option<&'a str>,
    /// The hash of the record before.
    pub prev: [u8; 32],
}

impl Link<'_> {
    /// The record's hash.
    pub fn hash(&self) -> [u8; 32] {
        let mut hash = Sha256::new_with_prefix([VERSION]);
        field(&mut hash, self.session.as_bytes());
        field(&mut hash, &self.seq.to_be_bytes());
        for text in [self.time, self.protocol, self.agent, self.door, self.key] {
            field(&mut hash, text.as_bytes());
        }
        optional(&mut hash, self.turn);
        optional(&mut hash, self.action);
        field(&mut hash, self.kind.as_bytes());
        field(&mut hash, &self.reader.to_be_bytes());
        optional(&mut hash, self.event_id);
        field(&mut hash, &self.body);
        optional(&mut hash, self.findings);
        optional(&mut hash, self.gate);
        field(&mut hash, &self.prev);
        hash.finalize().into()
    }
}

/// SHA-256 of a body.
pub fn digest(body: &[u8]) -> [u8; 32] {
    Sha256::digest(body).into()
}

fn field(hash: &mut Sha256, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_be_bytes());
    hash.update(bytes);
}

fn optional(hash: &mut Sha256, text: Option<&str>) {
    match text {
        None => hash.update([0]),
        Some(text) => {
            hash.update([1]);
            field(hash, text.as_bytes());
        }
    }
}

#[cfg(test)]
#[path = "chain_tests.rs"]
mod tests;
