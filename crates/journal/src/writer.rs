//! The one thread that writes. It takes everything that waits, commits it as one transaction, and only then
//! answers; a lone batch is committed at once.
//!
//! - A batch is recorded whole or not at all. If the commit fails, everybody in it is told, and the next one starts
//!   from what the file holds.
//! - A commit that somebody wants synced is synced before anybody in it is answered. Other commits are in the
//!   write-ahead log when they are answered and are synced within 10 ms; while that cannot be done, every commit
//!   waits for its sync, so that a failing disk is noticed by those who rely on it.
//!
//! It does not split a group by durability: who wants less may get more.
//!
//! The search index is fed when nobody waits to be recorded, or when the index has waited for many groups. What goes into
//! the index is a transaction of its own, and how far the index has come is written with it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::heads::{Head, Heads};
use crate::prepared::Prepared;
use crate::record::{Appended, Durability};
use crate::search::{self, IndexBatch};
use crate::sqlite::signed;
use crate::{Error, read};

mod group;

use group::Group;

/// How many batches one transaction takes.
const GROUP: usize = 256;

/// For how many groups the index waits before it goes first.
const INDEX_PATIENCE: u32 = 16;

/// When the sync after a commit that was not synced starts: half of the 10 ms, the other half is the disk's.
const SYNC_AFTER: Duration = Duration::from_millis(5);

/// How long after a failed sync the next is tried, if nobody writes before.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// About how much the write-ahead log grows before it is moved into the database.
const CHECKPOINT_BYTES: usize = 16 * 1024 * 1024;

/// About what one commit adds to the log beyond its bodies: one page of each table and index.
const COMMIT_BYTES: usize = 6 * 4096;

/// About what one text that can be searched adds to the log: its words lie on many pages.
const PASSAGE_BYTES: usize = 1536;

/// About what a step of pruning, and other work of its own, adds to the log.
const OWN_BYTES: usize = 1024 * 1024;

/// Half of how many sessions' heads are kept in memory.
const HEADS: usize = 4096;

/// What the writer is asked to do.
pub(crate) enum Work {
    /// To record something, together with whatever else waits.
    Append(Job),
    /// To feed the search index, when there is time.
    Index(IndexJob),
    /// To do something by itself, such as pruning.
    Own(Box<dyn FnOnce(&mut Writer) + Send>, OwnedSemaphorePermit),
}

/// One batch, and who waits for it.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) batch: Vec<Prepared>,
    pub(crate) durability: Durability,
    pub(crate) reply: oneshot::Sender<Result<Appended, Error>>,
    /// The batch's share of the queue, given back when the batch is done with.
    pub(crate) room: OwnedSemaphorePermit,
}

/// What the search index is fed with, and who waits for it.
#[derive(Debug)]
pub(crate) struct IndexJob {
    pub(crate) batch: IndexBatch,
    pub(crate) reply: oneshot::Sender<Result<(), Error>>,
    /// Its share of the queue.
    pub(crate) room: OwnedSemaphorePermit,
}

#[derive(Debug)]
pub(crate) struct Writer {
    connection: Connection,
    heads: Heads,
    /// The last committed position, and how far the index has come, for all to see.
    shown: Shown,
    position: u64,
    /// What `PRAGMA synchronous` is set to, if that is known.
    level: Option<Durability>,
    /// When what is committed but not synced has to be synced.
    sync_due: Option<Instant>,
    sync_failed: bool,
    log_bytes: usize,
}

/// Where the writer stands, for all to see.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown {
    /// The last committed position.
    pub(crate) head: Arc<AtomicU64>,
    /// The position up to which everything is in the search index.
    pub(crate) indexed: Arc<AtomicU64>,
}

impl Writer {
    pub(crate) fn new(connection: Connection, shown: Shown) -> Result<Self, Error> {
        let position = read::head(&connection)?;
        shown.head.store(position, Ordering::Release);
        shown.indexed.store(search::indexed(&connection)?, Ordering::Release);
        Ok(Self {
            connection,
            heads: Heads::new(HEADS),
            shown,
            position,
            level: None,
            sync_due: None,
            sync_failed: false,
            log_bytes: 0,
        })
    }

    /// Writes until the last sender is gone and everything that was sent is on disk.
    pub(crate) fn run(mut self, jobs: &Receiver<Work>) {
        // What the index is to be fed with, for how many groups it has waited, and what comes next if that is known.
        let (mut index, mut waited, mut next) = (VecDeque::new(), 0, None);
        loop {
            match next.take().map_or_else(|| self.wait(jobs), Ok) {
                Ok(first) => {
                    let mut group = Vec::new();
                    for work in std::iter::once(first).chain(jobs.try_iter().take(GROUP - 1)) {
                        match work {
                            Work::Append(job) => group.push(job),
                            Work::Index(job) => index.push_back(job),
                            Work::Own(own, room) => {
                                self.commit(std::mem::take(&mut group));
                                own(&mut self);
                                drop(room);
                            }
                        }
                    }
                    self.commit(group);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.sync_due.is_some_and(|due| due <= now()) {
                self.sync();
            }
            self.checkpoint();
            if !index.is_empty() {
                next = jobs.try_recv().ok();
                waited += 1;
                if (next.is_none() || waited > INDEX_PATIENCE)
                    && let Some(job) = index.pop_front()
                {
                    waited = 0;
                    self.feed(job);
                }
            }
        }
        if self.sync_due.is_some() {
            self.sync();
        }
    }

    fn wait(&self, jobs: &Receiver<Work>) -> Result<Work, RecvTimeoutError> {
        match self.sync_due {
            None => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(due) => jobs.recv_timeout(due.saturating_duration_since(now())),
        }
    }

    pub(crate) fn commit(&mut self, group: Vec<Job>) {
        if group.is_empty() {
            return;
        }
        let wanted = group.iter().map(|job| job.durability).max();
        let durability = match wanted {
            Some(Durability::Written) if !self.sync_failed => Durability::Written,
            _ => Durability::Synced,
        };
        let (batches, waiters): (Vec<_>, Vec<_>) =
            group.into_iter().map(|job| (job.batch, (job.reply, job.room))).unzip();
        // A waiter who is gone does not undo what happened: nobody has to be there for the answer.
        match self.write(batches, durability) {
            Ok(outcomes) => {
                for ((reply, room), outcome) in waiters.into_iter().zip(outcomes) {
                    drop(room);
                    drop(reply.send(outcome));
                }
            }
            Err(error) => {
                let error = Arc::new(error);
                for (reply, room) in waiters {
                    drop(room);
                    drop(reply.send(Err(Error::Write(Arc::clone(&error)))));
                }
            }
        }
    }

    /// One transaction for all batches. The outer error is everybody's, an inner one is of that batch alone.
    fn write(
        &mut self,
        batches: Vec<Vec<Prepared>>,
        durability: Durability,
    ) -> rusqlite::Result<Vec<Result<Appended, Error>>> {
        self.set_level(durability)?;
        let bytes: usize = batches.iter().flatten().map(Prepared::bytes).sum();
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut group = Group::new(&transaction, &mut self.heads, self.position)?;
        let mut outcomes = Vec::with_capacity(batches.len());
        for batch in batches {
            outcomes.push(group.append(batch)?);
        }
        let (touched, position) = group.end();
        for span in touched.values() {
            span.store(&transaction)?;
        }
        // A group of duplicates writes nothing, and a commit of nothing syncs nothing: yet what it
        // acknowledges may be one of those not yet synced.
        if durability == Durability::Synced && self.sync_due.is_some() {
            mark_synced(&transaction, position)?;
        }
        transaction.commit()?;

        for group::Span { last, .. } in touched.into_values() {
            self.heads.put(last.session.clone(), Head { seq: last.seq, hash: last.hash });
        }
        let wrote = position > self.position;
        self.position = position;
        self.shown.head.store(position, Ordering::Release);
        self.log_bytes = self.log_bytes.saturating_add(bytes).saturating_add(COMMIT_BYTES);
        match durability {
            Durability::Synced => self.all_synced(),
            Durability::Written if wrote && self.sync_due.is_none() => {
                self.sync_due = Some(now() + SYNC_AFTER);
            }
            Durability::Written => {}
        }
        Ok(outcomes)
    }

    /// Feeds the search index. Nobody waits for the disk: what a power cut takes is indexed again.
    pub(crate) fn feed(&mut self, job: IndexJob) {
        let IndexJob { batch, reply, room } = job;
        let bytes = batch.rows.len() * PASSAGE_BYTES + COMMIT_BYTES;
        let fed = self.set_level(Durability::Written).and_then(|()| {
            let transaction =
                self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let fed = search::feed(&transaction, &batch)?;
            transaction.commit()?;
            Ok(fed)
        });
        let fed = match fed {
            Ok(None) => {
                self.shown.indexed.store(batch.through, Ordering::Release);
                self.log_bytes = self.log_bytes.saturating_add(bytes);
                Ok(())
            }
            Ok(Some(found)) => Err(Error::IndexElsewhere { after: batch.after, found }),
            Err(error) => Err(Error::Write(Arc::new(error))),
        };
        drop(room);
        drop(reply.send(fed));
    }

    /// Empties the search index.
    pub(crate) fn clear_index(&mut self) -> Result<(), Error> {
        self.own(|transaction| search::clear(transaction))?;
        self.shown.indexed.store(0, Ordering::Release);
        Ok(())
    }

    /// Work of its own, as one transaction that is synced before this returns.
    pub(crate) fn own<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let failed = |error| Error::Write(Arc::new(error));
        self.set_level(Durability::Synced).map_err(failed)?;
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed)?;
        let done = work(&transaction).map_err(|error| match error {
            Error::Sqlite(error) => failed(error),
            error => error,
        })?;
        mark_synced(&transaction, self.position).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        self.all_synced();
        self.log_bytes = self.log_bytes.saturating_add(OWN_BYTES);
        Ok(done)
    }

    /// Reads what is committed.
    pub(crate) fn look<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        read(&self.connection)
    }

    /// Gives some free pages back to the file system; whether there are more. Only readers that look at an older moment
    /// can keep the file from shrinking, and the next call makes up for it.
    pub(crate) fn shrink(&mut self, pages: u32) -> Result<bool, Error> {
        let failed = |error| Error::Write(Arc::new(error));
        self.set_level(Durability::Synced).map_err(failed)?;
        let free = |connection: &Connection| {
            connection.query_row("PRAGMA freelist_count", [], |row| row.get::<_, i64>(0))
        };
        let before = free(&self.connection).map_err(failed)?;
        let pragma = format!("PRAGMA incremental_vacuum({pages})");
        let vacuum = |connection: &Connection| {
            let mut statement = connection.prepare(&pragma)?;
            let mut rows = statement.query([])?;
            while rows.next()?.is_some() {}
            Ok(())
        };
        vacuum(&self.connection).map_err(failed)?;
        let after = free(&self.connection).map_err(failed)?;
        Ok(after > 0 && after < before)
    }

    /// Empties the write-ahead log, so that nothing removed is left in it and the file has its size. If a reader looks at
    /// an older moment, it is tried again with the next such call.
    pub(crate) fn fold(&mut self) {
        self.log_bytes = 0;
        drop(self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
    }

    /// A commit of its own, for those that did not wait for theirs.
    fn sync(&mut self) {
        if self.try_sync().is_ok() {
            self.all_synced();
        } else {
            self.sync_failed = true;
            self.sync_due = Some(now() + RETRY_AFTER);
        }
    }

    fn try_sync(&mut self) -> rusqlite::Result<()> {
        self.set_level(Durability::Synced)?;
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        mark_synced(&transaction, self.position)?;
        transaction.commit()
    }

    fn all_synced(&mut self) {
        self.sync_due = None;
        self.sync_failed = false;
    }

    fn set_level(&mut self, durability: Durability) -> rusqlite::Result<()> {
        if self.level != Some(durability) {
            self.level = None;
            let name = match durability {
                Durability::Written => "NORMAL",
                Durability::Synced => "FULL",
            };
            self.connection.pragma_update(None, "synchronous", name)?;
            self.level = Some(durability);
        }
        Ok(())
    }

    /// Moves the log into the database, as far as readers let; what they hold up is moved next time. Nothing depends
    /// on its success but the log's size.
    fn checkpoint(&mut self) {
        if self.log_bytes >= CHECKPOINT_BYTES {
            self.log_bytes = 0;
            drop(self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())));
        }
    }
}

/// Touches the file, so that the commit has something to sync; the sync covers all that was committed before.
fn mark_synced(transaction: &Transaction<'_>, position: u64) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("UPDATE meta SET value = ?1 WHERE name = 'synced'")?
        .execute([signed(position)])?;
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "only bounds how long the disk may lag behind; never recorded, never compared with a record"
)]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
