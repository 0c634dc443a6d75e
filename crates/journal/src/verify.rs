//! The check of a whole journal. It reads one moment of the file, in constant memory, and changes nothing; a gateway may
//! go on writing (its write-ahead log grows until the check ends). It answers three questions apart:
//!
//! - **Integrity**: is each record what its hash says, does each chain hold, does each session end where it is known to,
//!   is the database sound?
//! - **Completeness**: is everything there that the checkpoints tell of, those in the journal and those that are shown? A
//!   cut that no checkpoint tells of is a fault; one that is told of is reported as pruned.
//! - **Authenticity**: are the checkpoints signed, by the keys that are pinned, in one chain, and the same ones that are
//!   shown?
//!
//! What it cannot tell without a checkpoint that was kept elsewhere: whether somebody removed the newest records, set the
//! heads back and removed the checkpoints too, or wrote a whole new journal. What is newer than the last checkpoint can
//! always have been removed.

use std::path::Path;

use rusqlite::{Connection, ErrorCode, OptionalExtension, Row};
use serde::Serialize;

use crate::chain::{self, Kept, Link};
use crate::checkpoint::{Checkpoint, Cut};
use crate::read::select;
use crate::{Error, PublicKey, sqlite};

mod evidence;

/// How many cuts a report names.
const CUTS: usize = 100;

/// What is known from elsewhere.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Checkpoints that were kept elsewhere.
    pub checkpoints: Vec<Checkpoint>,
    /// The keys that may have signed; any may if there is none.
    pub pins: Vec<PublicKey>,
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The file's epoch.
    pub epoch: String,
    /// How many records were read.
    pub records: u64,
    /// How many sessions they belong to.
    pub sessions: u64,
    /// The last position.
    pub head: u64,
    /// How many faults were found; a gap is one, and one record may have several.
    pub bad: u64,
    /// The bad record with the lowest position.
    pub first_bad: Option<Bad>,
    /// The first complaint of the database about itself. If there is one, records may have gone unread.
    pub storage: Option<String>,
    /// How many records have their exact bytes held for an open ask.
    pub held: u64,
    /// What retention removed.
    pub pruned: Pruned,
    /// Whether everything is there that checkpoints tell of.
    pub completeness: Completeness,
    /// Whether the checkpoints are genuine.
    pub authenticity: Authenticity,
}

impl Report {
    /// Whether nothing is wrong, as far as could be told.
    pub fn is_clean(&self) -> bool {
        self.is_intact()
            && self.completeness.state != State::Bad
            && self.authenticity.state != State::Bad
    }

    /// Whether every record, every chain and the database are sound.
    pub fn is_intact(&self) -> bool {
        self.first_bad.is_none() && self.storage.is_none()
    }
}

/// What retention removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pruned {
    /// How many records.
    pub records: u64,
    /// From how many sessions.
    pub sessions: u64,
    /// The first hundred cuts.
    pub cuts: Vec<Cut>,
}

/// An answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It cannot be told.
    #[default]
    Unknown,
    /// Yes.
    Good,
    /// No.
    Bad,
}

/// Whether everything is there that checkpoints tell of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Completeness {
    /// The answer; unknown if there is no checkpoint.
    pub state: State,
    /// How many checkpoints the journal has.
    pub checkpoints: u64,
    /// How many were shown.
    pub shown: u64,
    /// The newest of them all.
    pub through: Option<Through>,
    /// How many faults were found.
    pub bad: u64,
    /// The bad record with the lowest position.
    pub first_bad: Option<Bad>,
}

/// How far the checkpoints tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Through {
    /// The number of the newest.
    pub number: u64,
    /// When it was made.
    pub time: String,
    /// Whether it was shown: one that is only in the journal can have been removed together with what it tells of.
    pub shown: bool,
}

/// Whether the checkpoints are genuine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Authenticity {
    /// The answer; unknown if no key is pinned or there is no checkpoint.
    pub state: State,
    /// The keys that signed, the first of them.
    pub keys: Vec<PublicKey>,
    /// Whether keys were pinned.
    pub pinned: bool,
    /// How many faults were found.
    pub bad: u64,
    /// The first of them.
    pub first_bad: Option<BadCheckpoint>,
}

/// A checkpoint that is not genuine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BadCheckpoint {
    /// Its number.
    pub number: u64,
    /// Whether it was shown, rather than found in the journal.
    pub shown: bool,
    /// What is wrong with it.
    pub what: Forgery,
}

/// What is wrong with a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Forgery {
    /// It cannot be read.
    Unreadable,
    /// Its signature is not that of its key.
    Signature,
    /// Its key is not one of those that are pinned.
    Key,
    /// It is about another journal.
    Epoch,
    /// It does not follow on the one before it.
    Link,
    /// The journal does not have it.
    Absent,
    /// The journal has another one in its place.
    Replaced,
}

/// A record that is not what was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bad {
    /// Where it stands. For a missing record, where its nearest neighbour in the session stands: the next, else the
    /// one before, else 0.
    pub position: u64,
    /// Its session.
    pub session: String,
    /// Where it stands in its session.
    pub seq: u64,
    /// What is wrong with it.
    pub what: What,
}

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum What {
    /// Its content is not what its hash was made of.
    Content,
    /// It does not follow on the record before it.
    Link,
    /// It is not there.
    Missing,
    /// It stands before a record that was recorded earlier.
    Order,
    /// It is not the record its session is known to end with.
    Head,
    /// A column holds what no record has there.
    Unreadable,
    /// The bytes that are held for it are not those that were recorded.
    Held,
    /// It is not the record that was signed.
    Signed,
    /// It and those before it were removed, and no checkpoint tells of it.
    Cut,
}

pub(crate) fn verify(path: &Path, evidence: &Evidence) -> Result<Report, Error> {
    let connection = sqlite::reader(path)?;
    let moment = connection.unchecked_transaction()?;
    let epoch = moment
        .query_row("SELECT value FROM meta WHERE name = 'epoch'", [], |row| row.get(0))
        .optional()?
        .unwrap_or_default();
    let mut report = Report {
        epoch,
        records: 0,
        sessions: 0,
        head: 0,
        bad: 0,
        first_bad: None,
        storage: complaint(&moment)?,
        held: 0,
        pruned: Pruned::default(),
        completeness: Completeness::default(),
        authenticity: Authenticity::default(),
    };
    let scanned = scan(&moment, &mut report)
        .and_then(|()| check_held(&moment, &mut report))
        .and_then(|()| evidence::check(&moment, evidence, &mut report));
    match scanned {
        Err(error) if is_corrupt(&error) => {
            report.storage.get_or_insert_with(|| error.to_string());
        }
        scanned => scanned?,
    }
    Ok(report)
}

fn complaint(connection: &Connection) -> Result<Option<String>, Error> {
    let said = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0));
    match said {
        Ok(said) if said == "ok" => Ok(None),
        Ok(said) => Ok(Some(said)),
        Err(error) if is_corrupt(&error) => Ok(Some(error.to_string())),
        Err(error) => Err(error.into()),
    }
}

fn is_corrupt(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt)
}

/// Where the scan stands in a session.
struct Chain {
    session: String,
    seq: u64,
    position: u64,
    hash: [u8; 32],
}

impl Chain {
    /// Where retention has left it, else at its beginning.
    fn start(connection: &Connection, session: String) -> rusqlite::Result<Self> {
        let cut = cut_of(connection, &session)?;
        let (seq, hash) = cut.map_or((0, chain::START), |cut| (cut.seq, cut.hash));
        Ok(Self { session, seq, position: 0, hash })
    }
}

/// Where a session is said to have been cut. One that cannot be read is none: then what was removed is missing.
fn cut_of(connection: &Connection, session: &str) -> rusqlite::Result<Option<Cut>> {
    let mut statement = connection
        .prepare_cached("SELECT session, seq, hash, time, reason FROM cut WHERE session = ?1")?;
    let mut rows = statement.query([session])?;
    Ok(rows.next()?.and_then(cut))
}

fn cut(row: &Row<'_>) -> Option<Cut> {
    Some(Cut {
        session: text(row, 0)?.to_owned(),
        seq: natural(row, 1)?,
        hash: row.get(2).ok()?,
        time: text(row, 3)?.to_owned(),
        reason: text(row, 4)?.to_owned(),
    })
}

fn scan(connection: &Connection, report: &mut Report) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(select!("ORDER BY session, seq"))?;
    let mut rows = statement.query([])?;
    let mut current: Option<Chain> = None;
    while let Some(row) = rows.next()? {
        report.records += 1;
        let session = text(row, 1).unwrap_or_default();
        let mut chain = match current.take() {
            Some(chain) if chain.session == session => chain,
            other => {
                if let Some(ended) = other {
                    check_head(connection, &ended, report)?;
                }
                report.sessions += 1;
                Chain::start(connection, session.to_owned())?
            }
        };
        check_record(row, &mut chain, report);
        current = Some(chain);
    }
    if let Some(ended) = current {
        check_head(connection, &ended, report)?;
    }
    let mut emptied = connection.prepare(
        "SELECT session FROM session
         WHERE NOT EXISTS (SELECT 1 FROM record WHERE record.session = session.session)",
    )?;
    let mut rows = emptied.query([])?;
    while let Some(row) = rows.next()? {
        let session = text(row, 0).unwrap_or_default().to_owned();
        check_head(connection, &Chain::start(connection, session)?, report)?;
    }
    Ok(())
}

/// Held bytes have to be those that the record binds. That they are gone is no fault: their ask may have closed.
fn check_held(connection: &Connection, report: &mut Report) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(
        "SELECT held.position, record.session, record.seq, record.commitment, held.salt, held.body
         FROM held LEFT JOIN record ON record.position = held.position ORDER BY held.position",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        report.held += 1;
        let bound = || {
            let salt: [u8; 32] = row.get(4).ok()?;
            let body = row.get_ref(5).ok()?.as_blob().ok()?;
            Some(chain::commitment(&salt, body))
        };
        let commitment: Option<[u8; 32]> = row.get(3).ok().flatten();
        if commitment.is_none() || commitment != bound() {
            let session = text(row, 1).unwrap_or_default().to_owned();
            let (position, seq) = (natural(row, 0), natural(row, 2));
            let (position, seq) = (position.unwrap_or_default(), seq.unwrap_or_default());
            report.found(Bad { position, session, seq, what: What::Held });
        }
    }
    Ok(())
}

fn check_record(row: &Row<'_>, chain: &mut Chain, report: &mut Report) {
    let position = natural(row, 0).unwrap_or_default();
    report.head = report.head.max(position);
    let expected = chain.seq + 1;
    let found = |seq, what| Bad { position, session: chain.session.clone(), seq, what };
    let bad = match Stored::read(row) {
        None => {
            let seq = natural(row, 2).unwrap_or(expected);
            // Without a hash of its own nothing can follow on it; its neighbours are judged by theirs.
            let hash = row.get(17).unwrap_or(chain.hash);
            let bad = found(seq, What::Unreadable);
            (chain.seq, chain.position, chain.hash) = (seq, position, hash);
            Some(bad)
        }
        Some(Stored { link, hash }) => {
            let bad = if link.hash() != hash {
                Some(found(link.seq, What::Content))
            } else if link.seq > expected {
                Some(found(expected, What::Missing))
            } else if link.seq < expected || link.prev != chain.hash {
                Some(found(link.seq, What::Link))
            } else if position <= chain.position {
                Some(found(link.seq, What::Order))
            } else {
                None
            };
            (chain.seq, chain.position, chain.hash) = (link.seq, position, hash);
            bad
        }
    };
    if let Some(bad) = bad {
        report.found(bad);
    }
}

/// Compares where a chain ends with where its session is known to end.
fn check_head(connection: &Connection, chain: &Chain, report: &mut Report) -> rusqlite::Result<()> {
    let mut statement =
        connection.prepare_cached("SELECT seq, hash, position FROM session WHERE session = ?1")?;
    let mut rows = statement.query([&chain.session])?;
    let known = rows.next()?.and_then(|row| {
        Some((natural(row, 0)?, row.get::<_, [u8; 32]>(1).ok()?, natural(row, 2)?))
    });
    // Where retention has removed all of a session, nothing is left to stand anywhere.
    let emptied = chain.position == 0;
    let bad =
        |seq, what| Bad { position: chain.position, session: chain.session.clone(), seq, what };
    match known {
        Some((seq, ..)) if seq > chain.seq => report.found(bad(chain.seq + 1, What::Missing)),
        Some((seq, hash, position))
            if (seq, hash) == (chain.seq, chain.hash)
                && (emptied || position == chain.position) => {}
        _ => report.found(bad(chain.seq, What::Head)),
    }
    Ok(())
}

impl Report {
    fn found(&mut self, bad: Bad) {
        self.bad += 1;
        if self.first_bad.as_ref().is_none_or(|first| bad.position < first.position) {
            self.first_bad = Some(bad);
        }
    }
}

/// A record as its columns have it: texts are hashed as they are stored, not as they would be written today.
struct Stored<'a> {
    link: Link<'a>,
    hash: [u8; 32],
}

impl<'a> Stored<'a> {
    fn read(row: &'a Row<'_>) -> Option<Self> {
        let optional = |index| row.get_ref(index).ok()?.as_str_or_null().ok();
        let link = Link {
            session: text(row, 1)?,
            seq: natural(row, 2)?,
            time: text(row, 3)?,
            kind: text(row, 4)?,
            protocol: text(row, 5)?,
            agent: text(row, 6)?,
            door: text(row, 7)?,
            key: text(row, 8)?,
            turn: optional(9)?,
            action: optional(10)?,
            event_id: optional(11)?,
            reader: row.get(12).ok()?,
            body: chain::digest(row.get_ref(13).ok()?.as_blob().ok()?),
            findings: optional(14)?,
            gate: optional(15)?,
            prev: row.get(16).ok()?,
            kept: Kept {
                level: text(row, 18)?,
                digest: row.get(19).ok()?,
                commitment: row.get(20).ok()?,
            },
        };
        Some(Self { link, hash: row.get(17).ok()? })
    }
}

fn text<'a>(row: &'a Row<'_>, index: usize) -> Option<&'a str> {
    row.get_ref(index).ok()?.as_str().ok()
}

fn natural(row: &Row<'_>, index: usize) -> Option<u64> {
    row.get::<_, i64>(index).ok()?.try_into().ok()
}
