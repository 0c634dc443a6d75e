//! The check of a whole journal: each record against its hash, each chain against its links, each session against
//! its head, and the database against itself. It reads one moment of the file, in constant memory, and changes
//! nothing; a gateway may go on writing (its write-ahead log grows until the check ends).
//!
//! What it cannot tell: whether somebody removed the newest records *and* set the heads back, or wrote a whole new
//! journal. For that, the heads have to be known elsewhere.

use std::path::Path;

use rusqlite::{Connection, ErrorCode, OptionalExtension, Row};
use serde::Serialize;

use crate::chain::{self, Link};
use crate::read::select;
use crate::{Error, sqlite};

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
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.first_bad.is_none() && self.storage.is_none()
    }
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
}

pub(crate) fn verify(path: &Path) -> Result<Report, Error> {
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
    };
    match scan(&moment, &mut report) {
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
    fn start(session: String) -> Self {
        Self { session, seq: 0, position: 0, hash: chain::START }
    }
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
                Chain::start(session.to_owned())
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
        report.found(Bad { position: 0, session, seq: 1, what: What::Missing });
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
        connection.prepare_cached("SELECT seq, hash FROM session WHERE session = ?1")?;
    let mut rows = statement.query([&chain.session])?;
    let known = rows.next()?.and_then(|row| Some((natural(row, 0)?, row.get(1).ok()?)));
    let bad =
        |seq, what| Bad { position: chain.position, session: chain.session.clone(), seq, what };
    match known {
        Some((seq, _)) if seq > chain.seq => report.found(bad(chain.seq + 1, What::Missing)),
        Some((seq, hash)) if (seq, hash) == (chain.seq, chain.hash) => {}
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
