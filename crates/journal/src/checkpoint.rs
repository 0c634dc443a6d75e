//! Checkpoints: signed statements of where the chains stood. Each names the checkpoint before it, every head that has
//! changed since, and every cut that retention made. A copy that is kept elsewhere shows later that nothing up to then
//! was changed or removed, whoever could write to the journal meanwhile.
//!
//! The signature is Ed25519 over these bytes, each field preceded by its length in bytes as 8 bytes, big endian:
//!
//! | # | field | encoding |
//! |---|---|---|
//! | 1 | the text `banister.checkpoint/v1` | text |
//! | 2 | `epoch` | text: the journal's |
//! | 3 | `number` | 8 bytes, big endian; 1 for the first, then without gaps |
//! | 4 | `time` | text, as written |
//! | 5 | `prev` | 32 bytes: SHA-256 of these bytes of the checkpoint before, zeros for the first |
//! | 6 | `key` | 32 bytes: the public key |
//! | 7 | how many heads | 8 bytes, big endian |
//! | – | for each head: `session`, `seq`, `hash` | text, 8 bytes, 32 bytes |
//! | 8 | how many cuts | 8 bytes, big endian |
//! | – | for each cut: `session`, `seq`, `hash`, `time`, `reason` | text, 8 bytes, 32 bytes, text, text |
//!
//! Who has the signing key can sign anything, but cannot make an older copy agree with it. So the worth of a checkpoint
//! lies in where it is kept.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension};
use serde::{Deserialize, Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::key::{hex, unhex};
use crate::record::Head;
use crate::sqlite::{signed, unsigned};
use crate::{Error, PublicKey, SigningKey};

/// What the signed bytes begin with, and the `schema` of the exported form.
pub const SCHEMA: &str = "banister.checkpoint/v1";

/// How many heads one checkpoint covers; more make another.
const HEADS: usize = 4096;

/// The largest exported form that is read.
pub const BYTES: usize = 16 * 1024 * 1024;

/// Where the chains stood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The epoch of the journal it is about.
    pub epoch: String,
    /// Its number, from 1.
    pub number: u64,
    /// When it was made, RFC 3339.
    pub time: String,
    /// The hash of the one before; zeros for the first.
    pub prev: [u8; 32],
    /// The key it is signed with.
    pub key: PublicKey,
    /// The heads that changed since the one before.
    pub heads: Vec<Head>,
    /// The cuts that were made since the one before.
    pub cuts: Vec<Cut>,
    /// The signature.
    pub signature: [u8; 64],
}

/// Where retention cut a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cut {
    /// The session.
    pub session: String,
    /// The last record that was removed, and how many were.
    pub seq: u64,
    /// The hash of that record.
    #[serde(serialize_with = "as_hex")]
    pub hash: [u8; 32],
    /// When it was removed, RFC 3339.
    pub time: String,
    /// Why: `age` or `size`.
    pub reason: String,
}

impl Checkpoint {
    /// Reads the exported form. Says nothing about its signature.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let bad = |message: &str| Error::BadCheckpoint { message: message.to_owned() };
        if text.len() > BYTES {
            return Err(bad("it is larger than 16 MiB"));
        }
        let document: Document =
            serde_json::from_str(text).map_err(|error| bad(&error.to_string()))?;
        if document.schema != SCHEMA {
            return Err(bad(&format!("its schema is {:?}, not {SCHEMA:?}", document.schema)));
        }
        let hash = |text: &str| unhex(text).ok_or_else(|| bad("a hash is not 64 hex digits"));
        let head = |head: HeadText| {
            Ok(Head { hash: hash(&head.hash)?, session: head.session, seq: head.seq })
        };
        let cut = |cut: CutText| {
            let CutText { session, seq, hash: text, time, reason } = cut;
            Ok(Cut { session, seq, hash: hash(&text)?, time, reason })
        };
        Ok(Self {
            epoch: document.epoch,
            number: document.number,
            time: document.time,
            prev: hash(&document.prev)?,
            key: document.key.parse().map_err(|message: String| bad(&message))?,
            heads: document.heads.into_iter().map(head).collect::<Result<_, Error>>()?,
            cuts: document.cuts.into_iter().map(cut).collect::<Result<_, Error>>()?,
            signature: unhex(&document.signature)
                .ok_or_else(|| bad("the signature is not 128 hex digits"))?,
        })
    }

    /// The exported form: one line of JSON.
    pub fn to_json(&self) -> String {
        let document = Document {
            schema: SCHEMA.to_owned(),
            epoch: self.epoch.clone(),
            number: self.number,
            time: self.time.clone(),
            prev: hex(&self.prev),
            key: self.key.to_string(),
            heads: self.heads.iter().map(HeadText::from).collect(),
            cuts: self.cuts.iter().map(CutText::from).collect(),
            signature: hex(&self.signature),
        };
        // Texts and numbers always have a JSON form.
        serde_json::to_string(&document).unwrap_or_default()
    }

    /// What the next one names as the one before.
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.message()).into()
    }

    /// Whether its own key signed it.
    pub fn is_signed(&self) -> bool {
        self.key.signed(&self.message(), &self.signature)
    }

    /// The bytes that are signed.
    fn message(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut field = |value: &[u8]| {
            bytes.extend((value.len() as u64).to_be_bytes());
            bytes.extend(value);
        };
        field(SCHEMA.as_bytes());
        field(self.epoch.as_bytes());
        field(&self.number.to_be_bytes());
        field(self.time.as_bytes());
        field(&self.prev);
        field(&self.key.0);
        field(&(self.heads.len() as u64).to_be_bytes());
        for head in &self.heads {
            field(head.session.as_bytes());
            field(&head.seq.to_be_bytes());
            field(&head.hash);
        }
        field(&(self.cuts.len() as u64).to_be_bytes());
        for cut in &self.cuts {
            field(cut.session.as_bytes());
            field(&cut.seq.to_be_bytes());
            field(&cut.hash);
            field(cut.time.as_bytes());
            field(cut.reason.as_bytes());
        }
        bytes
    }
}

#[derive(Serialize, Deserialize)]
struct Document {
    schema: String,
    epoch: String,
    number: u64,
    time: String,
    prev: String,
    key: String,
    heads: Vec<HeadText>,
    #[serde(default)]
    cuts: Vec<CutText>,
    signature: String,
}

#[derive(Serialize, Deserialize)]
struct HeadText {
    session: String,
    seq: u64,
    hash: String,
}

#[derive(Serialize, Deserialize)]
struct CutText {
    session: String,
    seq: u64,
    hash: String,
    time: String,
    reason: String,
}

impl From<&Head> for HeadText {
    fn from(head: &Head) -> Self {
        Self { session: head.session.clone(), seq: head.seq, hash: hex(&head.hash) }
    }
}

impl From<&Cut> for CutText {
    fn from(cut: &Cut) -> Self {
        let Cut { session, seq, hash, time, reason } = cut.clone();
        Self { session, seq, hash: hex(&hash), time, reason }
    }
}

pub(crate) fn as_hex<S: Serializer>(bytes: &[u8; 32], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&hex(bytes))
}

/// Adds what has changed since the last checkpoint, and these cuts, as the next one; as several where one would be too
/// large; as none where nothing has changed. The caller commits.
pub(crate) fn add(
    transaction: &Connection,
    key: &SigningKey,
    now: Timestamp,
    mut cuts: Vec<Cut>,
) -> Result<Vec<Checkpoint>, Error> {
    let epoch: String =
        transaction
            .query_row("SELECT value FROM meta WHERE name = 'epoch'", [], |row| row.get(0))?;
    let (mut number, mut position, mut prev) = match last(transaction)? {
        None => (0, 0, [0; 32]),
        Some((last, position)) => (last.number, position, last.hash()),
    };
    let mut made = Vec::new();
    loop {
        let (heads, seen) = changed(transaction, position)?;
        if heads.is_empty() && cuts.is_empty() {
            return Ok(made);
        }
        (number, position) = (number + 1, seen);
        let mut checkpoint = Checkpoint {
            epoch: epoch.clone(),
            number,
            time: now.to_string(),
            prev,
            key: key.public(),
            heads,
            cuts: std::mem::take(&mut cuts),
            signature: [0; 64],
        };
        checkpoint.signature = key.sign(&checkpoint.message());
        prev = checkpoint.hash();
        transaction
            .prepare_cached(
                "INSERT INTO checkpoint (number, position, document) VALUES (?1, ?2, ?3)",
            )?
            .execute((signed(number), signed(position), checkpoint.to_json()))?;
        made.push(checkpoint);
    }
}

/// The newest checkpoint, and the position up to which the heads are covered.
pub(crate) fn last(connection: &Connection) -> Result<Option<(Checkpoint, u64)>, Error> {
    let query = "SELECT document, position FROM checkpoint ORDER BY number DESC LIMIT 1";
    let row: Option<(String, i64)> =
        connection.query_row(query, [], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    row.map(|(text, position)| Ok((Checkpoint::parse(&text)?, unsigned(position)))).transpose()
}

/// The heads after a position, oldest first, and the position up to which these are all.
fn changed(connection: &Connection, position: u64) -> Result<(Vec<Head>, u64), Error> {
    let mut statement = connection.prepare_cached(
        "SELECT session, seq, hash, position FROM session
         WHERE position > ?1 ORDER BY position LIMIT ?2",
    )?;
    let mut rows = statement.query((signed(position), signed(HEADS as u64)))?;
    let (mut heads, mut seen) = (Vec::new(), position);
    while let Some(row) = rows.next()? {
        heads.push(Head { session: row.get(0)?, seq: unsigned(row.get(1)?), hash: row.get(2)? });
        seen = unsigned(row.get(3)?);
    }
    Ok((heads, seen))
}

#[cfg(test)]
#[path = "checkpoint_tests.rs"]
mod tests;
