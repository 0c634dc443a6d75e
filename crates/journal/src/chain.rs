//! How a record's hash is made, in enough detail to check a journal without this code.
//!
//! Each session is one chain. A record's hash is SHA-256 over these bytes, in this order:
//!
//! | # | field | encoding |
//! |---|---|---|
//! | 0 | layout version | the byte `01`, or `02` if fields 17 to 19 follow |
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
//! | 17 | `level` | text |
//! | 18, 19 | `digest`, `commitment` | optional, 32 bytes |
//!
//! A record that was kept in full has the layout `01`: its `level` is `full`, `digest` and `commitment` are absent, and
//! none of the three is hashed. Every other record has the layout `02`.
//!
//! Fields 1 to 19 are each preceded by their length in bytes as 8 bytes, big endian, the fixed-size ones
//! included. An optional field starts with one byte: `00` if it is absent (and nothing follows), `01` if a
//! length and a value follow. Text is UTF-8. So no two different records have the same bytes.
//!
//! `position` is not covered: it is a cursor of one file, and a copy of a session elsewhere has other positions.
//!
//! A chain shows that nothing before its head was changed, removed or put in. It cannot show that its head is
//! the newest there was, nor who wrote it.

use sha2::{Digest, Sha256};

/// The byte that starts the hashed bytes of a record that was kept in full.
pub const VERSION: u8 = 1;

/// The byte that starts the hashed bytes of any other.
pub const CAPTURED: u8 = 2;

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
    /// How much was kept.
    pub kept: Kept<'a>,
}

/// How much was kept, as the hash covers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept<'a> {
    /// The level's stored name.
    pub level: &'a str,
    /// The keyed digest of a body that was not kept as it came.
    pub digest: Option<[u8; 32]>,
    /// What binds the exact bytes that are or were held.
    pub commitment: Option<[u8; 32]>,
}

impl Kept<'_> {
    /// Everything was kept.
    pub const FULL: Kept<'static> = Kept { level: "full", digest: None, commitment: None };
}

impl Link<'_> {
    /// The record's hash.
    pub fn hash(&self) -> [u8; 32] {
        let full = self.kept == Kept::FULL;
        let mut hash = Sha256::new_with_prefix([if full { VERSION } else { CAPTURED }]);
        field(&mut hash, self.session.as_bytes());
        field(&mut hash, &self.seq.to_be_bytes());
        for text in [self.time, self.protocol, self.agent, self.door, self.key] {
            field(&mut hash, text.as_bytes());
        }
        optional(&mut hash, self.turn.map(str::as_bytes));
        optional(&mut hash, self.action.map(str::as_bytes));
        field(&mut hash, self.kind.as_bytes());
        field(&mut hash, &self.reader.to_be_bytes());
        optional(&mut hash, self.event_id.map(str::as_bytes));
        field(&mut hash, &self.body);
        optional(&mut hash, self.findings.map(str::as_bytes));
        optional(&mut hash, self.gate.map(str::as_bytes));
        field(&mut hash, &self.prev);
        if !full {
            field(&mut hash, self.kept.level.as_bytes());
            optional(&mut hash, self.kept.digest.as_ref().map(<[u8; 32]>::as_slice));
            optional(&mut hash, self.kept.commitment.as_ref().map(<[u8; 32]>::as_slice));
        }
        hash.finalize().into()
    }
}

/// SHA-256 of a body.
pub fn digest(body: &[u8]) -> [u8; 32] {
    Sha256::digest(body).into()
}

/// What binds bytes that may be removed later: without the salt it tells nothing about them.
pub fn commitment(salt: &[u8; 32], bytes: &[u8]) -> [u8; 32] {
    Sha256::new_with_prefix(salt).chain_update(bytes).finalize().into()
}

fn field(hash: &mut Sha256, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_be_bytes());
    hash.update(bytes);
}

fn optional(hash: &mut Sha256, bytes: Option<&[u8]>) {
    match bytes {
        None => hash.update([0]),
        Some(bytes) => {
            hash.update([1]);
            field(hash, bytes);
        }
    }
}

#[cfg(test)]
#[path = "chain_tests.rs"]
mod tests;
