//! A journal for simulations, behind the feature of that name: the same file and the same writer, but no thread.
//!
//! What is appended is committed where it is awaited, so that one thread runs everything and a seed decides what happens
//! in which order. [`Fate`] says how often others run in between, and which commits fail. A commit that fails has written
//! nothing. What the real one promises, this one does as well: both pass the contract.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use crate::journal::Journal;
use crate::writer::{Work, Writer};
use crate::{Error, sqlite};

/// What befalls a simulated journal.
pub trait Fate: fmt::Debug + Send + Sync {
    /// How often everybody else runs before a batch is committed, and how often before its sender hears of it.
    fn pauses(&self) -> (u32, u32) {
        (0, 0)
    }

    /// Whether the next commit fails.
    fn fails(&self) -> bool {
        false
    }
}

/// Nothing befalls it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Calm;

impl Fate for Calm {}

/// The writer, in the hands of whoever calls.
#[derive(Debug)]
pub(crate) struct Here {
    writer: Mutex<Writer>,
    pub(crate) fate: Arc<dyn Fate>,
}

impl Here {
    pub(crate) fn new(writer: Writer, fate: Arc<dyn Fate>) -> Self {
        Self { writer: Mutex::new(writer), fate }
    }

    pub(crate) fn work(&self, work: Work) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        match work {
            Work::Append(job) if self.fate.fails() => {
                let failure = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR);
                let failure = rusqlite::Error::SqliteFailure(failure, None);
                drop(job.reply.send(Err(Error::Write(Arc::new(failure)))));
            }
            Work::Append(job) => writer.commit(vec![job]),
            Work::Index(job) => writer.feed(job),
            Work::Own(own, _room) => own(&mut writer),
        }
    }
}

/// Lets everybody else run, so many times.
pub(crate) async fn pause(times: u32) {
    for _ in 0..times {
        let mut passed = false;
        std::future::poll_fn(|context| {
            if passed {
                return Poll::Ready(());
            }
            passed = true;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}

impl Journal {
    /// Opens the journal at `path` without a thread, under a fate. Blocks on the disk where the other waits for it.
    pub fn simulated(path: &Path, fate: Arc<dyn Fate>) -> Result<Self, Error> {
        let lock = sqlite::lock(path)?;
        let connection = sqlite::writer(&lock)?;
        Self::here(lock, connection, fate)
    }
}
