//! The handle: append from any task, read from any thread. Cheap to clone; when the last clone is dropped,
//! everything that was handed in is on disk and the file is free for the next.
//!
//! It hands nothing out to subscribers: [`Journal::append`] gives the records back, who shows them is up to the
//! caller.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use tokio::sync::{Semaphore, oneshot};

use crate::prepared::Prepared;
use crate::read::Readers;
use crate::record::{Appended, Draft, Durability, Kind, Record, SessionRow};
use crate::sqlite::Lock;
use crate::verify::{self, Report};
use crate::writer::{Job, Writer};
use crate::{Error, sqlite};

/// The queue is measured in shares of this many bytes, so that neither many batches nor large ones fill the memory.
const SHARE_BYTES: usize = 16 * 1024;

/// How many shares the queue has; a batch takes at least one.
const SHARES: usize = 4096;

/// The durable record.
#[derive(Clone, Debug)]
pub struct Journal {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    jobs: Option<SyncSender<Job>>,
    room: Arc<Semaphore>,
    writer: Option<JoinHandle<()>>,
    head: Arc<AtomicU64>,
    epoch: String,
    readers: Readers,
    // Last, so that it is given up when nothing of the file is open any more.
    _lock: Lock,
}

impl Journal {
    /// The largest batch that is taken, in bytes over all drafts.
    pub const BATCH_BYTES: usize = SHARE_BYTES * SHARES;

    /// Opens the journal at `path`, or makes it; the folder has to exist.
    ///
    /// Holds the sole right to write: while it is open, opening it again is [`Error::Locked`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        let lock = sqlite::lock(path)?;
        let connection = sqlite::writer(&lock)?;
        Self::start(lock, connection)
    }

    pub(crate) fn start(lock: Lock, connection: Connection) -> Result<Self, Error> {
        let epoch =
            connection
                .query_row("SELECT value FROM meta WHERE name = 'epoch'", [], |row| row.get(0))?;
        let head = Arc::new(AtomicU64::new(0));
        let writer = Writer::new(connection, Arc::clone(&head))?;
        let (jobs, queue) = sync_channel(SHARES);
        let writer = thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || writer.run(&queue))
            .map_err(|source| Error::Io { path: lock.path.clone(), source })?;
        let inner = Inner {
            jobs: Some(jobs),
            room: Arc::new(Semaphore::new(SHARES)),
            writer: Some(writer),
            head,
            epoch,
            readers: Readers::new(lock.path.clone()),
            _lock: lock,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Records all drafts or none, and returns when they are as durable as asked.
    ///
    /// The drafts stand together in the journal, in the order given; batches that one task appends one after another
    /// keep their order. Waits when the queue is full. If the future is dropped, the batch may or may not be
    /// recorded. No runtime is needed to poll it.
    pub async fn append(
        &self,
        drafts: Vec<Draft>,
        durability: Durability,
    ) -> Result<Appended, Error> {
        if drafts.is_empty() {
            return Ok(Appended::Recorded(Vec::new()));
        }
        let batch = drafts.into_iter().map(Prepared::new).collect::<Result<Vec<_>, _>>()?;
        let bytes = batch.iter().map(Prepared::bytes).sum::<usize>();
        let shares = match u32::try_from(bytes.div_ceil(SHARE_BYTES).max(1)) {
            Ok(shares) if bytes <= Self::BATCH_BYTES => shares,
            _ => {
                return Err(Error::TooLarge { bytes, limit: Self::BATCH_BYTES });
            }
        };
        let room = Arc::clone(&self.inner.room);
        let room = room.acquire_many_owned(shares).await.map_err(|_| Error::Stopped)?;
        let (reply, answer) = oneshot::channel();
        let jobs = self.inner.jobs.as_ref().ok_or(Error::Stopped)?;
        // Never full: whoever is in the queue holds at least one of as many shares as it has places.
        jobs.try_send(Job { batch, durability, reply, room }).map_err(|_| Error::Stopped)?;
        answer.await.map_err(|_| Error::Stopped)?
    }

    /// The last committed position; 0 if there is none.
    pub fn head(&self) -> u64 {
        self.inner.head.load(Ordering::Acquire)
    }

    /// A random id, made with the file: a cursor with another epoch belongs to another file.
    pub fn epoch(&self) -> &str {
        &self.inner.epoch
    }

    /// At most `limit` records after `position`, in order. Blocks on the disk.
    pub fn after(&self, position: u64, limit: usize) -> Result<Vec<Arc<Record>>, Error> {
        self.inner.readers.after(position, limit)
    }

    /// At most `limit` records of one session after `after_seq`, in order. Blocks on the disk.
    pub fn session(
        &self,
        session: &str,
        after_seq: u64,
        limit: usize,
    ) -> Result<Vec<Arc<Record>>, Error> {
        self.inner.readers.session(session, after_seq, limit)
    }

    /// Every session, the one with the newest record first. Blocks on the disk.
    pub fn sessions(&self) -> Result<Vec<SessionRow>, Error> {
        self.inner.readers.sessions()
    }

    /// Every record of these kinds, in order. Blocks on the disk. Costs what it returns, unless [`Kind::Event`] is among
    /// them: then it reads everything.
    pub fn of_kinds(&self, kinds: &[Kind]) -> Result<Vec<Arc<Record>>, Error> {
        self.inner.readers.of_kinds(kinds)
    }

    /// Checks a whole journal without changing it, also while a gateway writes to it: see [`crate::verify`].
    pub fn verify(path: &Path) -> Result<Report, Error> {
        verify::verify(path)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The writer's connection has to be the last to close: only it can fold the log into the database.
        self.readers.close();
        drop(self.jobs.take());
        if let Some(writer) = self.writer.take() {
            // A panic of the writer has been told to everybody who waited for it.
            drop(writer.join());
        }
    }
}
