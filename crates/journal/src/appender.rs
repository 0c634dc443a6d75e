//! The right to append, apart from the right to read.
//!
//! Whoever holds an [`Appender`] can add records. A [`Journal`] that was taken from it can not: it reads, searches, signs
//! and prunes. So a program can keep its one appender in one module and hand out journals everywhere else.

use std::ops::Deref;
use std::path::Path;

use crate::Error;
use crate::capture::Entry;
use crate::journal::Journal;
use crate::record::{Appended, Durability};

/// A journal that can be appended to.
#[derive(Clone, Debug)]
pub struct Appender {
    journal: Journal,
}

impl Appender {
    /// Opens the journal at `path`, or makes it, as [`Journal::open`] does.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Ok(Self { journal: Journal::open(path)? })
    }

    /// Opens the journal at `path` without a thread, as [`Journal::simulated`] does.
    #[cfg(feature = "simulation")]
    pub fn simulated(
        path: &Path,
        fate: std::sync::Arc<dyn crate::simulation::Fate>,
    ) -> Result<Self, Error> {
        Ok(Self { journal: Journal::simulated(path, fate)? })
    }

    /// Records all drafts or none, and returns when they are as durable as asked.
    ///
    /// The drafts stand together in the journal, in the order given; batches that one task appends one after another
    /// keep their order. Waits when the queue is full. If the future is dropped, the batch may or may not be
    /// recorded. No runtime is needed to poll it.
    pub async fn append<E: Into<Entry>>(
        &self,
        entries: Vec<E>,
        durability: Durability,
    ) -> Result<Appended, Error> {
        self.journal.append(entries, durability).await
    }

    /// The same journal without the right to append.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }
}

impl Deref for Appender {
    type Target = Journal;

    fn deref(&self) -> &Journal {
        &self.journal
    }
}
