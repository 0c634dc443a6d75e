//! Feeding the search index, and how far it has come.

use std::sync::atomic::Ordering;

use tokio::sync::oneshot;

use super::Journal;
use crate::Error;
use crate::search::IndexBatch;
use crate::writer::{IndexJob, Work, Writer};

impl Journal {
    /// Adds a batch to the search index, when the writer has time for it. The batch and how far the index has come are
    /// one transaction: both are there or neither. [`Error::IndexElsewhere`] where the batch does not follow on what is
    /// indexed: then nothing was written.
    ///
    /// Nothing waits for the disk: what a power cut takes of the index, it takes of how far the index has come as well.
    pub async fn index(&self, batch: IndexBatch) -> Result<(), Error> {
        let room = self.room(batch.bytes()).await?;
        let (reply, answer) = oneshot::channel();
        self.send(Work::Index(IndexJob { batch, reply, room }))?;
        answer.await.map_err(|_| Error::Stopped)?
    }

    /// The position up to which everything is in the search index; what comes after is on its way there.
    pub fn indexed(&self) -> u64 {
        self.inner.shown.indexed.load(Ordering::Acquire)
    }

    /// Empties the search index, so that it can be made again from the records.
    pub async fn clear_index(&self) -> Result<(), Error> {
        self.own(Writer::clear_index).await
    }
}
