//! A journal that is only read: by a person's tool, with or without a gateway that writes to it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::TransactionBehavior;

use crate::checkpoint::{self, Checkpoint};
use crate::read::Readers;
use crate::search::{Page, Query};
use crate::{Error, Record, SessionRow, SigningKey, sqlite};

/// How much of the journal is in memory at once, in bytes of bodies; one record may have more.
const CHUNK: usize = 4 * 1024 * 1024;

/// How many records are looked at, at once, on the way back.
const STRIDE: usize = 4096;

/// A journal file, open for reading.
#[derive(Debug)]
pub struct Archive {
    path: PathBuf,
    readers: Readers,
}

impl Archive {
    /// Opens a journal that exists. Takes no lock: a gateway may go on writing.
    pub fn open(path: &Path) -> Result<Self, Error> {
        // One connection is opened at once, so that a file that is no journal is told here.
        drop(sqlite::reader(path)?);
        Ok(Self { path: path.to_owned(), readers: Readers::new(path.to_owned()) })
    }

    /// The records after a position, oldest first.
    pub fn after(&self, position: u64, limit: usize) -> Result<Vec<Arc<Record>>, Error> {
        self.readers.after(position, limit)
    }

    /// Some records after a position, oldest first: as many as are good to have in memory, none at the end.
    pub fn chunk(&self, position: u64) -> Result<Vec<Arc<Record>>, Error> {
        self.readers.chunk(position, CHUNK)
    }

    /// Every session that has records, the one with the newest first.
    pub fn sessions(&self) -> Result<Vec<SessionRow>, Error> {
        self.readers.sessions()
    }

    /// Some records of one session after `after_seq`, in order: as many as are good to have in memory, none at the end.
    pub fn session(&self, session: &str, after_seq: u64) -> Result<Vec<Arc<Record>>, Error> {
        self.readers.session_chunk(session, after_seq, CHUNK)
    }

    /// The positions of the newest records that fit, oldest first: of sessions whose ids begin so, and not older than a
    /// moment.
    pub fn newest(
        &self,
        session: &str,
        since: Option<Timestamp>,
        limit: usize,
    ) -> Result<Vec<u64>, Error> {
        let (mut found, mut before) = (Vec::new(), u64::MAX);
        while found.len() < limit {
            let stride = self.readers.back(before, STRIDE)?;
            let Some((lowest, ..)) = stride.last() else { break };
            before = *lowest;
            let fits = |(_, of, time): &(u64, String, Timestamp)| {
                of.starts_with(session) && since.is_none_or(|since| *time >= since)
            };
            let wanted = limit - found.len();
            found.extend(stride.iter().filter(|row| fits(row)).map(|row| row.0).take(wanted));
        }
        found.reverse();
        Ok(found)
    }

    /// The record at a position.
    pub fn at(&self, position: u64) -> Result<Option<Arc<Record>>, Error> {
        let found = self.readers.after(position.saturating_sub(1), 1)?;
        Ok(found.into_iter().find(|record| record.position == position))
    }

    /// The position up to which everything is in the search index.
    pub fn indexed(&self) -> Result<u64, Error> {
        Ok(self.readers.indexed()?.0)
    }

    /// The last position; 0 if there is none.
    pub fn head(&self) -> Result<u64, Error> {
        Ok(self.readers.indexed()?.1)
    }

    /// Whether somebody writes to the journal: a gateway, most likely.
    pub fn has_writer(&self) -> bool {
        sqlite::is_locked(&self.path)
    }

    /// What was said or done with these words.
    pub fn search(&self, query: &Query) -> Result<Page, Error> {
        self.readers.search(query)
    }

    /// At most `limit` checkpoints after a number, in order.
    pub fn checkpoints(&self, after: u64, limit: usize) -> Result<Vec<Checkpoint>, Error> {
        self.readers.checkpoints(after, limit)
    }

    /// The newest checkpoint.
    pub fn last_checkpoint(&self) -> Result<Option<Checkpoint>, Error> {
        self.readers.lend(|connection| Ok(checkpoint::last(connection)?.map(|(last, _)| last)))
    }

    /// Signs where the chains stand, as [`crate::Journal::checkpoint`] does, also beside a running gateway: the one thing
    /// that this writes is the checkpoint.
    pub fn checkpoint(&self, key: &SigningKey, now: Timestamp) -> Result<Vec<Checkpoint>, Error> {
        let mut connection = sqlite::witness(&self.path)?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let made = checkpoint::add(&transaction, key, now, Vec::new())?;
        transaction.commit()?;
        Ok(made)
    }
}
