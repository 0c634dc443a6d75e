//! The handle: read from any thread, sign and prune from any task. Cheap to clone; when the last clone is dropped,
//! everything that was handed in is on disk and the file is free for the next.
//!
//! It hands nothing out to subscribers: [`Appender::append`](crate::Appender::append) gives the records back, who shows
//! them is up to the caller.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use jiff::Timestamp;
use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::capture::Entry;
use crate::checkpoint::{self, Checkpoint};
use crate::key::SigningKey;
use crate::prepared::Prepared;
use crate::prune::{self, Plan, Pruned, Retention, Stage, Step};
use crate::read::Readers;
use crate::record::{Appended, Durability, Head, Kind, Newest, Record, SessionRow};
use crate::search::{Page, Query};
#[cfg(feature = "simulation")]
use crate::simulation::Here;
use crate::sqlite::{Lock, signed};
use crate::verify::{self, Evidence, Report};
use crate::writer::{Job, Shown, Work, Writer};
use crate::{Error, sqlite};

mod index;

/// The queue is measured in shares of this many bytes, so that neither many batches nor large ones fill the memory.
const SHARE_BYTES: usize = 16 * 1024;

/// How many shares the queue has; a batch takes at least one.
const SHARES: usize = 4096;

/// How many pages one step gives back to the file system, and how many such steps one pruning makes.
const SHRINK: (u32, usize) = (1024, 64);

/// The durable record.
#[derive(Clone, Debug)]
pub struct Journal {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    jobs: Option<SyncSender<Work>>,
    room: Arc<Semaphore>,
    writer: Option<JoinHandle<()>>,
    shown: Shown,
    pruned: Arc<AtomicU64>,
    epoch: String,
    readers: Readers,
    /// What writes where there is no thread.
    #[cfg(feature = "simulation")]
    here: Option<Here>,
    // Last, so that it is given up when nothing of the file is open any more.
    lock: Lock,
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
        let (mut inner, writer) = Inner::new(lock, connection)?;
        let (jobs, queue) = sync_channel(SHARES);
        let writer = thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || writer.run(&queue))
            .map_err(|source| Error::Io { path: inner.lock.path.clone(), source })?;
        (inner.jobs, inner.writer) = (Some(jobs), Some(writer));
        Ok(Self { inner: Arc::new(inner) })
    }

    #[cfg(feature = "simulation")]
    pub(crate) fn here(
        lock: Lock,
        connection: Connection,
        fate: Arc<dyn crate::simulation::Fate>,
    ) -> Result<Self, Error> {
        let (mut inner, writer) = Inner::new(lock, connection)?;
        inner.here = Some(Here::new(writer, fate));
        Ok(Self { inner: Arc::new(inner) })
    }

    /// See [`Appender::append`](crate::Appender::append): only that can be reached from outside.
    pub(crate) async fn append<E: Into<Entry>>(
        &self,
        entries: Vec<E>,
        durability: Durability,
    ) -> Result<Appended, Error> {
        if entries.is_empty() {
            return Ok(Appended::Recorded(Vec::new()));
        }
        let prepare = |entry: E| Prepared::new(entry.into());
        let batch = entries.into_iter().map(prepare).collect::<Result<Vec<_>, _>>()?;
        let bytes = batch.iter().map(Prepared::bytes).sum::<usize>();
        let room = self.room(bytes).await?;
        #[cfg(feature = "simulation")]
        let (before, after) =
            self.inner.here.as_ref().map(|here| here.fate.pauses()).unwrap_or_default();
        #[cfg(feature = "simulation")]
        crate::simulation::pause(before).await;
        let (reply, answer) = oneshot::channel();
        self.send(Work::Append(Job { batch, durability, reply, room }))?;
        #[cfg(feature = "simulation")]
        crate::simulation::pause(after).await;
        answer.await.map_err(|_| Error::Stopped)?
    }

    /// Returns when the writer has begun and ended a transaction that writes nothing: it takes what it is given.
    pub async fn probe(&self) -> Result<(), Error> {
        let room = self.room(0).await?;
        let (reply, answer) = oneshot::channel();
        let (batch, durability) = (Vec::new(), Durability::Written);
        self.send(Work::Append(Job { batch, durability, reply, room }))?;
        answer.await.map_err(|_| Error::Stopped)?.map(drop)
    }

    /// Removes the exact bytes that were held for asks that are closed now. What is left is the record as it was chained.
    /// Gives how many there were; those without any are passed over.
    pub async fn settle(&self, positions: Vec<u64>) -> Result<u64, Error> {
        self.own(move |writer| {
            writer.own(|transaction| {
                let mut statement =
                    transaction.prepare_cached("DELETE FROM held WHERE position = ?1")?;
                let mut removed = 0;
                for position in positions {
                    removed += statement.execute([signed(position)])? as u64;
                }
                Ok(removed)
            })
        })
        .await
    }

    /// Signs where the chains stand, as far as they have changed since the last time; nothing if they have not. More
    /// than one where one would be too large.
    pub async fn checkpoint(
        &self,
        key: &SigningKey,
        now: Timestamp,
    ) -> Result<Vec<Checkpoint>, Error> {
        let key = key.clone();
        self.own(move |writer| {
            writer.own(|transaction| checkpoint::add(transaction, &key, now, Vec::new()))
        })
        .await
    }

    /// Removes what may go, in steps between which others write, and lets the file shrink. Each step is signed as it is
    /// committed: see [`crate::prune`].
    pub async fn prune(
        &self,
        retention: Retention,
        key: &SigningKey,
        now: Timestamp,
    ) -> Result<Pruned, Error> {
        let plan = Arc::new(Plan { retention, key: key.clone(), now });
        let mut stage = Stage::Age(String::new());
        let mut all = Pruned::default();
        while !matches!(stage, Stage::Done) {
            let finder = Arc::clone(&plan);
            let look = move |writer: &mut Writer| writer.look(|file| finder.find(file, stage));
            let Step { cuts, reason, next } = self.own(look).await?;
            stage = next;
            if cuts.is_empty() {
                continue;
            }
            let cuts = Arc::new(cuts);
            let forget = |cuts: Arc<_>| {
                move |writer: &mut Writer| writer.own(|step| prune::forget(step, &cuts))
            };
            while self.own(forget(Arc::clone(&cuts))).await? {}
            let (plan, pruned) = (Arc::clone(&plan), Arc::clone(&self.inner.pruned));
            let cut = move |writer: &mut Writer| {
                let (done, highest) = writer
                    .own(|step| Ok((plan.cut(step, &cuts, reason)?, prune::highest(step)?)))?;
                pruned.store(highest, Ordering::Release);
                Ok(done)
            };
            let done = self.own(cut).await?;
            (all.records, all.cuts) = (all.records + done.records, all.cuts + done.cuts);
        }
        all.used = self.own(|writer| writer.look(prune::used)).await?;
        if all.records > 0 {
            let (pages, steps) = SHRINK;
            for _ in 0..steps {
                if !self.own(move |writer| writer.shrink(pages)).await? {
                    break;
                }
            }
            self.own(|writer| {
                writer.fold();
                Ok(())
            })
            .await?;
        }
        Ok(all)
    }

    /// Waits for a share of the queue.
    async fn room(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Error> {
        let shares = match u32::try_from(bytes.div_ceil(SHARE_BYTES).max(1)) {
            Ok(shares) if bytes <= Self::BATCH_BYTES => shares,
            _ => {
                return Err(Error::TooLarge { bytes, limit: Self::BATCH_BYTES });
            }
        };
        let room = Arc::clone(&self.inner.room);
        room.acquire_many_owned(shares).await.map_err(|_| Error::Stopped)
    }

    fn send(&self, work: Work) -> Result<(), Error> {
        #[cfg(feature = "simulation")]
        if let Some(here) = &self.inner.here {
            here.work(work);
            return Ok(());
        }
        let jobs = self.inner.jobs.as_ref().ok_or(Error::Stopped)?;
        // Never full: whoever is in the queue holds at least one of as many shares as it has places.
        jobs.try_send(work).map_err(|_| Error::Stopped)
    }

    /// Has the writer do something by itself.
    async fn own<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Writer) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let room = self.room(0).await?;
        let (reply, answer) = oneshot::channel();
        let work = Box::new(move |writer: &mut Writer| {
            // Who asked may be gone; what was asked is done all the same.
            drop(reply.send(work(writer)));
        });
        self.send(Work::Own(work, room))?;
        answer.await.map_err(|_| Error::Stopped)?
    }

    /// The last committed position; 0 if there is none.
    pub fn head(&self) -> u64 {
        self.inner.shown.head.load(Ordering::Acquire)
    }

    /// The highest position that retention has removed; 0 if none. After a cursor that is lower, records are missing.
    pub fn pruned(&self) -> u64 {
        self.inner.pruned.load(Ordering::Acquire)
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

    /// At most `limit` heads, of the sessions whose ids come after `after`, in the order of the ids; all sessions, also
    /// those that retention has emptied. Blocks on the disk.
    pub fn heads(&self, after: &str, limit: usize) -> Result<Vec<Head>, Error> {
        self.inner.readers.heads(after, limit)
    }

    /// The newest record of every session that has one after `position`, the oldest of them first. Costs what it returns.
    /// Blocks on the disk.
    pub fn changed(&self, position: u64) -> Result<Vec<Newest>, Error> {
        self.inner.readers.changed(position)
    }

    /// The number of the last record of a session that does not stand after `position`; 0 if there is none. Costs as many
    /// steps as the session has records after it. Blocks on the disk.
    pub fn seq_at(&self, session: &str, position: u64) -> Result<u64, Error> {
        self.inner.readers.seq_at(session, position)
    }

    /// Every record whose exact bytes are held, in order. Blocks on the disk.
    pub fn held(&self) -> Result<Vec<Arc<Record>>, Error> {
        self.inner.readers.held()
    }

    /// What was said or done with these words. Blocks on the disk.
    pub fn search(&self, query: &Query) -> Result<Page, Error> {
        self.inner.readers.search(query)
    }

    /// At most `limit` checkpoints after a number, in order. Blocks on the disk.
    pub fn checkpoints(&self, after: u64, limit: usize) -> Result<Vec<Checkpoint>, Error> {
        self.inner.readers.checkpoints(after, limit)
    }

    /// Every session that has records, the one with the newest first. Blocks on the disk.
    pub fn sessions(&self) -> Result<Vec<SessionRow>, Error> {
        self.inner.readers.sessions()
    }

    /// The records that bear these ids of one sender, in the order of the ids. Blocks on the disk.
    pub fn of_events(
        &self,
        key: &str,
        event_ids: &[String],
    ) -> Result<Vec<Option<Arc<Record>>>, Error> {
        self.inner.readers.of_events(key, event_ids)
    }

    /// The records that bear this id, of every sender. Blocks on the disk. Costs a look into an index for each sender.
    pub fn of_event(&self, event_id: &str) -> Result<Vec<Arc<Record>>, Error> {
        self.inner.readers.of_event(event_id)
    }

    /// Every record of these kinds after `position`, in order. Blocks on the disk. Costs what it returns, unless
    /// [`Kind::Event`] is among them: then it reads everything.
    pub fn of_kinds(&self, kinds: &[Kind], position: u64) -> Result<Vec<Arc<Record>>, Error> {
        self.inner.readers.of_kinds(kinds, position)
    }

    /// Keeps a position for the caller, so that it need not begin with the first record when it is opened again. It is no
    /// part of the record and is not verified.
    pub async fn set_mark(&self, position: u64) -> Result<(), Error> {
        let query = "INSERT OR REPLACE INTO meta (name, value) VALUES ('mark', ?1)";
        self.own(move |writer| {
            writer.own(|transaction| {
                transaction.execute(query, [signed(position)])?;
                Ok(())
            })
        })
        .await
    }

    /// The position that was kept last; 0 if none was. Blocks on the disk.
    pub fn mark(&self) -> Result<u64, Error> {
        self.inner.readers.mark()
    }

    /// Checks a whole journal without changing it, also while a gateway writes to it: see [`crate::verify`].
    pub fn verify(path: &Path) -> Result<Report, Error> {
        verify::verify(path, &Evidence::default())
    }

    /// The same, with checkpoints and keys that are known from elsewhere.
    pub fn verify_with(path: &Path, evidence: &Evidence) -> Result<Report, Error> {
        verify::verify(path, evidence)
    }
}

impl Inner {
    /// All but what writes.
    fn new(lock: Lock, connection: Connection) -> Result<(Self, Writer), Error> {
        let epoch =
            connection
                .query_row("SELECT value FROM meta WHERE name = 'epoch'", [], |row| row.get(0))?;
        let shown = Shown::default();
        let pruned = Arc::new(AtomicU64::new(prune::highest(&connection)?));
        let writer = Writer::new(connection, shown.clone())?;
        let inner = Self {
            jobs: None,
            room: Arc::new(Semaphore::new(SHARES)),
            writer: None,
            shown,
            pruned,
            epoch,
            readers: Readers::new(lock.path.clone()),
            #[cfg(feature = "simulation")]
            here: None,
            lock,
        };
        Ok((inner, writer))
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
