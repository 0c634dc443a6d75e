//! Retention: old records go, what proves them stays. A session is cut from its beginning, so that what is left is one
//! chain; the cut keeps the hash that the chain goes on from, and a checkpoint that is committed together with the
//! removal says so, signed. Then `verify` can tell what was pruned from what was taken away.
//!
//! Sessions that the caller keeps, and those with held bytes, are not touched. A session's head stays for ever: it is
//! small, and its numbers must not be given twice. Ids of removed messages are forgotten: such a message that is sent
//! again is recorded again.
//!
//! The work is done in steps, so that the writer is never away for long.

use std::collections::{BTreeMap, HashSet};

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Transaction};

use crate::checkpoint::{self, Cut};
use crate::search;
use crate::sqlite::{signed, unsigned};
use crate::{Error, SigningKey};

/// How many records one step removes, about; and how many it looks at.
const STEP: usize = 1_000;

/// How many texts are taken out of the search index at once.
const PASSAGES: usize = 50;

/// How many sessions one step cuts or looks at.
const SESSIONS: usize = 250;

/// What a record takes beyond its texts, about: its place in tables and indexes.
const OVERHEAD: u64 = 400;

/// What may go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// What is older than this.
    pub before: Option<Timestamp>,
    /// The oldest, until the records take no more bytes than this in the file.
    pub bytes: Option<u64>,
    /// Sessions that stay whole: those with open asks.
    pub keep: HashSet<String>,
}

/// What went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// How many records.
    pub records: u64,
    /// How many cuts: a session may be cut more than once.
    pub cuts: u64,
    /// How many bytes of the file are in use now.
    pub used: u64,
}

/// Where the steps of one pruning stand.
#[derive(Debug)]
pub(crate) enum Stage {
    /// By age, after this session.
    Age(String),
    /// By size, after this position.
    Size(u64),
    Done,
}

/// What one step is to remove.
#[derive(Debug)]
pub(crate) struct Step {
    /// Of each session the records up to and with a number.
    pub(crate) cuts: BTreeMap<String, u64>,
    /// Why.
    pub(crate) reason: &'static str,
    /// Where the next step goes on.
    pub(crate) next: Stage,
}

/// What the steps work with.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) retention: Retention,
    pub(crate) key: SigningKey,
    pub(crate) now: Timestamp,
}

impl Plan {
    /// Finds what the next step is to remove.
    pub(crate) fn find(&self, connection: &Connection, stage: Stage) -> Result<Step, Error> {
        match (stage, self.retention.before, self.retention.bytes) {
            (Stage::Age(after), Some(before), _) => {
                let (cuts, next) = self.aged(connection, &after, before)?;
                Ok(Step { cuts, reason: "age", next })
            }
            (Stage::Age(_), None, Some(bytes)) => self.surplus(connection, 0, bytes),
            (Stage::Size(after), _, Some(bytes)) => self.surplus(connection, after, bytes),
            _ => Ok(Step { cuts: BTreeMap::new(), reason: "age", next: Stage::Done }),
        }
    }

    /// For some sessions, up to where every record is older.
    fn aged(
        &self,
        connection: &Connection,
        after: &str,
        before: Timestamp,
    ) -> Result<(BTreeMap<String, u64>, Stage), Error> {
        let held = held(connection)?;
        let mut sessions = connection.prepare_cached(
            "SELECT session.session, session.first, coalesce(cut.seq, 0), session.seq
             FROM session LEFT JOIN cut ON cut.session = session.session
             WHERE session.session > ?1 ORDER BY session.session LIMIT ?2",
        )?;
        let mut records = connection.prepare_cached(
            "SELECT seq, time FROM record WHERE session = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
        )?;
        let older = |time: &str| time.parse::<Timestamp>().is_ok_and(|time| time < before);
        let (mut cuts, mut budget, mut seen) = (BTreeMap::new(), STEP, 0);
        let mut rows = sessions.query((after, signed(SESSIONS as u64)))?;
        let mut last = None;
        while let Some(row) = rows.next()? {
            seen += 1;
            let (session, first): (String, String) = (row.get(0)?, row.get(1)?);
            let (cut, newest): (i64, i64) = (row.get(2)?, row.get(3)?);
            let stays = self.retention.keep.contains(&session) || held.contains(&session);
            if !stays && cut < newest && older(&first) {
                let mut rows = records.query((&session, cut, signed(budget as u64)))?;
                let mut whole = true;
                while let Some(row) = rows.next()? {
                    let (seq, time): (i64, String) = (row.get(0)?, row.get(1)?);
                    if !older(&time) {
                        whole = false;
                        break;
                    }
                    cuts.insert(session.clone(), unsigned(seq));
                    budget -= 1;
                }
                if whole && budget == 0 {
                    // There may be more of this session: the next step begins with it.
                    return Ok((cuts, Stage::Age(last.unwrap_or_else(|| after.to_owned()))));
                }
            }
            last = Some(session);
            if budget == 0 {
                break;
            }
        }
        let next = match last {
            Some(last) if seen == SESSIONS || budget == 0 => Stage::Age(last),
            _ => Stage::Size(0),
        };
        Ok((cuts, next))
    }

    /// The oldest records that may go, until enough of them would.
    fn surplus(&self, connection: &Connection, after: u64, bytes: u64) -> Result<Step, Error> {
        let surplus = used(connection)?.saturating_sub(bytes);
        let mut cuts = BTreeMap::new();
        if surplus == 0 {
            return Ok(Step { cuts, reason: "size", next: Stage::Done });
        }
        let held = held(connection)?;
        let mut oldest = connection.prepare_cached(
            "SELECT position, session, seq, octet_length(body)
                 + coalesce(octet_length(findings), 0) + coalesce(octet_length(gate), 0)
             FROM record WHERE position > ?1 ORDER BY position LIMIT ?2",
        )?;
        let mut rows = oldest.query((signed(after), signed(STEP as u64)))?;
        let (mut freed, mut last) = (0, None);
        while let Some(row) = rows.next()? {
            last = Some(unsigned(row.get(0)?));
            let session: String = row.get(1)?;
            if self.retention.keep.contains(&session) || held.contains(&session) {
                continue;
            }
            cuts.insert(session, unsigned(row.get(2)?));
            freed += unsigned(row.get(3)?) + OVERHEAD;
            if freed >= surplus || cuts.len() >= SESSIONS {
                break;
            }
        }
        Ok(Step { cuts, reason: "size", next: last.map_or(Stage::Done, Stage::Size) })
    }

    /// Removes the records of each session up to a number, with all that hangs on them.
    pub(crate) fn cut(
        &self,
        transaction: &Transaction<'_>,
        cuts: &BTreeMap<String, u64>,
        reason: &str,
    ) -> Result<Pruned, Error> {
        let mut pruned = Pruned::default();
        // An ask may have opened since the step was found.
        let held = held(transaction)?;
        let cuts = cuts.iter().filter(|(session, _)| !held.contains(*session));
        let cuts: Vec<_> = cuts.map(|(session, seq)| (session.clone(), *seq)).collect();
        if cuts.is_empty() {
            return Ok(pruned);
        }
        let mut made = Vec::with_capacity(cuts.len());
        let mut highest = 0;
        for (session, seq) in cuts {
            let (hash, position): ([u8; 32], i64) = transaction
                .prepare_cached(
                    "SELECT hash, position FROM record WHERE session = ?1 AND seq = ?2",
                )?
                .query_row((&session, signed(seq)), |row| Ok((row.get(0)?, row.get(1)?)))?;
            highest = highest.max(position);
            search::remove(transaction, (&session, seq), usize::MAX)?;
            pruned.records += transaction
                .prepare_cached("DELETE FROM record WHERE session = ?1 AND seq <= ?2")?
                .execute((&session, signed(seq)))? as u64;
            transaction
                .prepare_cached(
                    "UPDATE session SET first = coalesce(
                         (SELECT time FROM record WHERE record.session = ?1 ORDER BY seq LIMIT 1), last)
                     WHERE session = ?1",
                )?
                .execute([&session])?;
            let (time, reason) = (self.now.to_string(), reason.to_owned());
            made.push(Cut { session, seq, hash, time, reason });
        }
        pruned.cuts = made.len() as u64;
        let checkpoints = checkpoint::add(transaction, &self.key, self.now, made)?;
        let mut keep = transaction.prepare_cached(
            "INSERT OR REPLACE INTO cut (session, seq, hash, time, reason, checkpoint)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        for checkpoint in &checkpoints {
            for Cut { session, seq, hash, time, reason } in &checkpoint.cuts {
                let number = signed(checkpoint.number);
                keep.execute((session, signed(*seq), hash, time, reason, number))?;
            }
        }
        transaction
            .prepare_cached("UPDATE meta SET value = max(value, ?1) WHERE name = 'pruned'")?
            .execute([highest])?;
        Ok(pruned)
    }
}

/// Removes some of what can be found of these records; whether there may be more. Taking words out of the index is slow,
/// so it is done beforehand and in small pieces: nothing is proved by the index.
pub(crate) fn forget(
    transaction: &Transaction<'_>,
    cuts: &BTreeMap<String, u64>,
) -> Result<bool, Error> {
    let mut left = PASSAGES;
    for (session, seq) in cuts {
        let removed = search::remove(transaction, (session, *seq), left)?;
        left = left.saturating_sub(removed);
        if left == 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The sessions with held bytes.
fn held(connection: &Connection) -> Result<HashSet<String>, Error> {
    let mut statement = connection
        .prepare_cached("SELECT DISTINCT session FROM held JOIN record USING (position)")?;
    let sessions = statement.query_map([], |row| row.get(0))?;
    Ok(sessions.collect::<Result<_, _>>()?)
}

/// How many bytes of the file hold something.
pub(crate) fn used(connection: &Connection) -> Result<u64, Error> {
    let query = "SELECT (c.page_count - f.freelist_count) * s.page_size
                 FROM pragma_page_count AS c, pragma_freelist_count AS f, pragma_page_size AS s";
    Ok(unsigned(connection.query_row(query, [], |row| row.get(0))?))
}

/// The highest position that was removed.
pub(crate) fn highest(connection: &Connection) -> Result<u64, Error> {
    let query = "SELECT value FROM meta WHERE name = 'pruned'";
    let found: Option<i64> = connection.query_row(query, [], |row| row.get(0)).optional()?;
    Ok(unsigned(found.unwrap_or_default()))
}
