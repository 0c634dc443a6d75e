//! Queries, on a small number of connections of their own: a read never waits for the writer, nor the writer
//! for a read. What is stored is given back as it is; a record that cannot be is an error that names it.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension, Params, Row, named_params};
use serde_json::Value;

use crate::capture::{Captured, Level};
use crate::checkpoint::Checkpoint;
use crate::record::{Head, Kind, Newest, Record, SessionRow, Source};
use crate::search::{self, Page, Query};
use crate::sqlite::{signed, unsigned};
use crate::{Error, sqlite};

/// How many reads run at once; more wait for one of them.
const CONNECTIONS: usize = 4;

/// What a record takes in memory beyond its body, about.
const RECORD_BYTES: usize = 1024;

/// The columns of a record, in the order in which [`record`] takes them.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT position, session, seq, time, kind, protocol, agent, door, key, turn, action, ",
            "event_id, reader, body, findings, gate, prev, hash, level, digest, commitment, ",
            "iif(commitment IS NULL, NULL, (SELECT held.body FROM held ",
            "WHERE held.position = record.position)) FROM record ",
            $rest
        )
    };
}
pub(crate) use select;

/// The connections that read.
pub(crate) struct Readers {
    path: PathBuf,
    pool: Mutex<Pool>,
    returned: Condvar,
}

#[derive(Default)]
struct Pool {
    idle: Vec<Connection>,
    lent: usize,
}

impl fmt::Debug for Readers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Readers").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Readers {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, pool: Mutex::default(), returned: Condvar::new() }
    }

    /// Closes the connections that are not in use.
    pub(crate) fn close(&self) {
        self.pool().idle.clear();
    }

    pub(crate) fn after(&self, position: u64, limit: usize) -> Result<Vec<Arc<Record>>, Error> {
        let query = select!("WHERE position > ?1 ORDER BY position LIMIT ?2");
        self.lend(|connection| records(connection, query, (signed(position), signed(limit as u64))))
    }

    pub(crate) fn session(
        &self,
        session: &str,
        after_seq: u64,
        limit: usize,
    ) -> Result<Vec<Arc<Record>>, Error> {
        let query = select!("WHERE session = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3");
        let parameters = (session, signed(after_seq), signed(limit as u64));
        self.lend(|connection| records(connection, query, parameters))
    }

    pub(crate) fn of_events(
        &self,
        key: &str,
        event_ids: &[String],
    ) -> Result<Vec<Option<Arc<Record>>>, Error> {
        self.lend(|connection| {
            // One transaction: all are looked for at one moment.
            let moment = connection.unchecked_transaction()?;
            let find = |id: &String| Ok(of_event(&moment, key, id)?.map(Arc::new));
            event_ids.iter().map(find).collect()
        })
    }

    pub(crate) fn of_event(&self, event_id: &str) -> Result<Vec<Arc<Record>>, Error> {
        // The index begins with the sender's key: from one key it is a single step to the next.
        let query = select!(
            "WHERE event_id = ?1 AND key IN (
                 WITH RECURSIVE sender (key) AS (
                     SELECT min(key) FROM record WHERE event_id IS NOT NULL
                     UNION ALL
                     SELECT (SELECT min(key) FROM record
                             WHERE event_id IS NOT NULL AND key > sender.key)
                     FROM sender WHERE sender.key IS NOT NULL
                 )
                 SELECT key FROM sender WHERE key IS NOT NULL
             ) ORDER BY position"
        );
        self.lend(|connection| records(connection, query, [event_id]))
    }

    pub(crate) fn of_kinds(
        &self,
        kinds: &[Kind],
        position: u64,
    ) -> Result<Vec<Arc<Record>>, Error> {
        self.lend(|connection| {
            // One transaction: the kinds are read as of one moment.
            let moment = connection.unchecked_transaction()?;
            let mut found = Vec::new();
            for kind in Kind::ALL.into_iter().filter(|kind| kinds.contains(kind)) {
                let parameters = (kind.as_str(), signed(position));
                found.extend(records(&moment, kind_query(kind), parameters)?);
            }
            found.sort_unstable_by_key(|record| record.position);
            Ok(found)
        })
    }

    pub(crate) fn mark(&self) -> Result<u64, Error> {
        let query = "SELECT value FROM meta WHERE name = 'mark'";
        self.lend(|connection| {
            let found: Option<i64> =
                connection.query_row(query, [], |row| row.get(0)).optional()?;
            Ok(unsigned(found.unwrap_or_default()))
        })
    }

    /// The position up to which everything is in the search index, and the last position, at one moment.
    pub(crate) fn indexed(&self) -> Result<(u64, u64), Error> {
        self.lend(|connection| {
            let moment = connection.unchecked_transaction()?;
            Ok((search::indexed(&moment)?, head(&moment)?))
        })
    }

    pub(crate) fn sessions(&self) -> Result<Vec<SessionRow>, Error> {
        let query = "SELECT session.session, agent, protocol, first, last,
                         session.seq - coalesce(cut.seq, 0), position
                     FROM session LEFT JOIN cut ON cut.session = session.session
                     WHERE session.seq > coalesce(cut.seq, 0) ORDER BY position DESC";
        self.lend(|connection| {
            let mut statement = connection.prepare_cached(query)?;
            let mut rows = statement.query([])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let columns = Columns { row, position: unsigned(row.get(6)?) };
                found.push(SessionRow {
                    session: columns.get(0, "session")?,
                    agent: columns.get(1, "agent")?,
                    protocol: columns.get(2, "protocol")?,
                    first: columns.time(3, "first")?,
                    last: columns.time(4, "last")?,
                    records: columns.unsigned(5, "seq")?,
                });
            }
            Ok(found)
        })
    }

    /// The heads of the sessions whose ids come after that one, in the order of the ids.
    pub(crate) fn heads(&self, after: &str, limit: usize) -> Result<Vec<Head>, Error> {
        let query = "SELECT session, seq, hash, position FROM session
                     WHERE session > ?1 ORDER BY session LIMIT ?2";
        self.lend(|connection| {
            let mut statement = connection.prepare_cached(query)?;
            let mut rows = statement.query((after, signed(limit as u64)))?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let columns = Columns { row, position: unsigned(row.get(3)?) };
                found.push(Head {
                    session: columns.get(0, "session")?,
                    seq: columns.unsigned(1, "seq")?,
                    hash: columns.get(2, "hash")?,
                });
            }
            Ok(found)
        })
    }

    /// The newest records of the sessions that have one after a position.
    pub(crate) fn changed(&self, position: u64) -> Result<Vec<Newest>, Error> {
        let query = "SELECT session, seq, position FROM session
                     WHERE position > ?1 ORDER BY position";
        self.lend(|connection| {
            let mut statement = connection.prepare_cached(query)?;
            let mut rows = statement.query([signed(position)])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let columns = Columns { row, position: unsigned(row.get(2)?) };
                found.push(Newest {
                    session: columns.get(0, "session")?,
                    seq: columns.unsigned(1, "seq")?,
                    position: columns.position,
                });
            }
            Ok(found)
        })
    }

    /// The number of the last record of a session up to a position.
    pub(crate) fn seq_at(&self, session: &str, position: u64) -> Result<u64, Error> {
        let query = "SELECT seq FROM record WHERE session = ?1 AND position <= ?2
                     ORDER BY seq DESC LIMIT 1";
        self.lend(|connection| {
            let mut statement = connection.prepare_cached(query)?;
            let found: Option<i64> =
                statement.query_row((session, signed(position)), |row| row.get(0)).optional()?;
            Ok(unsigned(found.unwrap_or_default()))
        })
    }

    /// The records whose exact bytes are held.
    pub(crate) fn held(&self) -> Result<Vec<Arc<Record>>, Error> {
        let query = select!("WHERE position IN (SELECT position FROM held) ORDER BY position");
        self.lend(|connection| records(connection, query, []))
    }

    /// The records after a position, as many as fit into `bytes` of bodies; at least one, if there is one.
    pub(crate) fn chunk(&self, position: u64, bytes: usize) -> Result<Vec<Arc<Record>>, Error> {
        let query = select!("WHERE position > ?1 ORDER BY position");
        self.lend(|connection| some_records(connection, query, [signed(position)], bytes))
    }

    /// The same, of one session after a number.
    pub(crate) fn session_chunk(
        &self,
        session: &str,
        after_seq: u64,
        bytes: usize,
    ) -> Result<Vec<Arc<Record>>, Error> {
        let query = select!("WHERE session = ?1 AND seq > ?2 ORDER BY seq");
        let parameters = (session, signed(after_seq));
        self.lend(|connection| some_records(connection, query, parameters, bytes))
    }

    /// The newest position before another, and the session and time of its record.
    pub(crate) fn back(
        &self,
        before: u64,
        limit: usize,
    ) -> Result<Vec<(u64, String, Timestamp)>, Error> {
        let query = "SELECT position, session, time FROM record
                     WHERE position < ?1 ORDER BY position DESC LIMIT ?2";
        self.lend(|connection| {
            let mut statement = connection.prepare_cached(query)?;
            let mut rows = statement.query((signed(before), signed(limit as u64)))?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let columns = Columns { row, position: unsigned(row.get(0)?) };
                let (session, time) = (columns.get(1, "session")?, columns.time(2, "time")?);
                found.push((columns.position, session, time));
            }
            Ok(found)
        })
    }

    pub(crate) fn search(&self, query: &Query) -> Result<Page, Error> {
        self.lend(|connection| search::search(connection, query))
    }

    /// The checkpoints after a number.
    pub(crate) fn checkpoints(&self, after: u64, limit: usize) -> Result<Vec<Checkpoint>, Error> {
        let query = "SELECT document FROM checkpoint WHERE number > ?1 ORDER BY number LIMIT ?2";
        self.lend(|connection| {
            let mut statement = connection.prepare_cached(query)?;
            let mut rows = statement.query((signed(after), signed(limit as u64)))?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push(Checkpoint::parse(&row.get::<_, String>(0)?)?);
            }
            Ok(found)
        })
    }

    pub(crate) fn lend<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut loan = self.take();
        let connection = match loan.connection.take() {
            Some(connection) => connection,
            None => sqlite::reader(&self.path)?,
        };
        read(loan.connection.insert(connection))
    }

    /// Waits for a turn. A loan without a connection may open one.
    fn take(&self) -> Loan<'_> {
        let mut pool = self
            .returned
            .wait_while(self.pool(), |pool| pool.lent >= CONNECTIONS)
            .unwrap_or_else(PoisonError::into_inner);
        pool.lent += 1;
        Loan { readers: self, connection: pool.idle.pop() }
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The last position. Also where retention has removed the newest: no position is given twice.
pub(crate) fn head(connection: &Connection) -> rusqlite::Result<u64> {
    let query = "SELECT max((SELECT coalesce(max(position), 0) FROM record),
                     (SELECT coalesce(max(position), 0) FROM session))";
    connection.query_row(query, [], |row| row.get(0)).map(unsigned)
}

/// Gives the turn back, however the read ended.
struct Loan<'a> {
    readers: &'a Readers,
    connection: Option<Connection>,
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        let mut pool = self.readers.pool();
        pool.lent -= 1;
        pool.idle.extend(self.connection.take());
        self.readers.returned.notify_one();
    }
}

/// Events have no entry in the index by kind; all other kinds must say so to be served from it.
fn kind_query(kind: Kind) -> &'static str {
    match kind {
        Kind::Event => select!("WHERE kind = ?1 AND position > ?2 ORDER BY position"),
        _ => select!("WHERE kind = ?1 AND kind <> 'event' AND position > ?2 ORDER BY position"),
    }
}

/// The record that bears a sender's id.
pub(crate) fn of_event(
    connection: &Connection,
    key: &str,
    event_id: &str,
) -> Result<Option<Record>, Error> {
    let query = select!("WHERE key = :key AND event_id = :event_id");
    let mut statement = connection.prepare_cached(query)?;
    let mut rows = statement.query(named_params! { ":key": key, ":event_id": event_id })?;
    rows.next()?.map(record).transpose()
}

fn records(
    connection: &Connection,
    query: &str,
    parameters: impl Params,
) -> Result<Vec<Arc<Record>>, Error> {
    let mut statement = connection.prepare_cached(query)?;
    let mut rows = statement.query(parameters)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(Arc::new(record(row)?));
    }
    Ok(found)
}

/// As many as fit into `bytes`; at least one, if there is one.
fn some_records(
    connection: &Connection,
    query: &str,
    parameters: impl Params,
    bytes: usize,
) -> Result<Vec<Arc<Record>>, Error> {
    let mut statement = connection.prepare_cached(query)?;
    let mut rows = statement.query(parameters)?;
    let (mut found, mut taken) = (Vec::new(), 0);
    while taken < bytes
        && let Some(row) = rows.next()?
    {
        let record = record(row)?;
        taken += record.body.len() + RECORD_BYTES;
        found.push(Arc::new(record));
    }
    Ok(found)
}

fn record(row: &Row<'_>) -> Result<Record, Error> {
    let columns = Columns { row, position: unsigned(row.get(0)?) };
    let kind: String = columns.get(4, "kind")?;
    let level: String = columns.get(18, "level")?;
    Ok(Record {
        position: columns.position,
        session: columns.get(1, "session")?,
        seq: columns.unsigned(2, "seq")?,
        time: columns.time(3, "time")?,
        kind: Kind::parse(&kind).ok_or_else(|| columns.damaged("kind"))?,
        source: Source {
            protocol: columns.get(5, "protocol")?,
            agent: columns.get(6, "agent")?,
            door: columns.get(7, "door")?,
            key: columns.get(8, "key")?,
        },
        turn: columns.get(9, "turn")?,
        action: columns.get(10, "action")?,
        event_id: columns.get(11, "event_id")?,
        reader: columns.get(12, "reader")?,
        body: columns.get::<Vec<u8>>(13, "body")?.into(),
        findings: columns.json(14, "findings")?.unwrap_or(Value::Null),
        gate: columns.json(15, "gate")?,
        prev: columns.get(16, "prev")?,
        hash: columns.get(17, "hash")?,
        captured: Captured {
            level: Level::parse(&level).ok_or_else(|| columns.damaged("level"))?,
            digest: columns.get(19, "digest")?,
            commitment: columns.get(20, "commitment")?,
            exact: columns.get::<Option<Vec<u8>>>(21, "held")?.map(Into::into),
        },
    })
}

/// One row, and what to call it when it cannot be read.
struct Columns<'a> {
    row: &'a Row<'a>,
    position: u64,
}

impl Columns<'_> {
    fn get<T: FromSql>(&self, index: usize, column: &'static str) -> Result<T, Error> {
        self.row.get(index).map_err(|_| self.damaged(column))
    }

    fn unsigned(&self, index: usize, column: &'static str) -> Result<u64, Error> {
        u64::try_from(self.get::<i64>(index, column)?).map_err(|_| self.damaged(column))
    }

    fn time(&self, index: usize, column: &'static str) -> Result<Timestamp, Error> {
        self.get::<String>(index, column)?.parse().map_err(|_| self.damaged(column))
    }

    fn json(&self, index: usize, column: &'static str) -> Result<Option<Value>, Error> {
        let text: Option<String> = self.get(index, column)?;
        text.map(|text| serde_json::from_str(&text).map_err(|_| self.damaged(column))).transpose()
    }

    fn damaged(&self, column: &'static str) -> Error {
        Error::Damaged { position: self.position, column }
    }
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
