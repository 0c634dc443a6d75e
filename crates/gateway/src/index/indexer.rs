//! Feeds the search index after records are acknowledged, in the order of their positions.
//!
//! How far the index has come is kept in the journal, in the same transaction as what was added. After a crash the
//! indexer goes on from there: nothing is left out, and nothing is found twice. It waits for a quiet moment, but not for
//! long; and whoever pushes events helps when it is far behind. So what is not indexed yet is bounded.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use banister_events::aep::mapping::Agents;
use banister_events::text;
use banister_journal::{Error as JournalError, IndexBatch, Indexed, Journal, Record};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::session::SessionReader;
use crate::Error;
use crate::deliver::blocking;
use crate::hub::Hub;

/// How many records are read at a time, and how many bytes of bodies: this is what one commit of the index has.
const BATCH: usize = 2_048;
const BATCH_BYTES: usize = 4 * 1024 * 1024;
/// How many sessions are remembered. One that is not is read again from its beginning when it goes on.
const SESSIONS: usize = 4_096;
/// A moment without records is quiet after this time.
const QUIET: Duration = Duration::from_millis(20);
/// How long the index waits for a quiet moment.
const LATEST: Duration = Duration::from_secs(1);
/// How many records may come before it waits no longer.
const MANY: u64 = 32_768;
/// How many records may come before whoever pushes helps, and how many it helps with.
const TOO_MANY: u64 = 65_536;
const HELP: u64 = 4_096;
/// How long after a failure it is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Follows the journal and feeds its index.
#[derive(Debug, Clone)]
pub(crate) struct Indexer {
    journal: Journal,
    hub: Hub,
    agents: Arc<Agents>,
    /// One batch at a time.
    turn: Arc<tokio::sync::Mutex<()>>,
    sessions: Arc<Mutex<Sessions>>,
}

/// The sessions that were read lately, as they stand after one position.
#[derive(Debug, Default)]
struct Sessions {
    position: u64,
    readers: HashMap<String, (SessionReader, u64)>,
}

impl Indexer {
    pub(crate) fn new(journal: &Journal, hub: &Hub, agents: &Arc<Agents>) -> Self {
        Self {
            journal: journal.clone(),
            hub: hub.clone(),
            agents: Arc::clone(agents),
            turn: Arc::default(),
            sessions: Arc::default(),
        }
    }

    /// Follows the journal until told to stop.
    pub(crate) async fn follow(self, stop: CancellationToken) {
        let mut bell = self.hub.bell();
        while !stop.is_cancelled() {
            let head = self.journal.head();
            let pause = match self.catch_up(head).await {
                Ok(_) => Duration::MAX,
                Err(error) => {
                    tracing::warn!(%error, "The search index could not be fed; it is tried again.");
                    RETRY
                }
            };
            let more = async { bell.wait_for(|at| *at > head).await.map(drop) };
            tokio::select! {
                () = stop.cancelled() => break,
                _ = timeout(pause, more) => {}
            }
            let since = Instant::now();
            while self.behind() < MANY && since.elapsed() < LATEST {
                tokio::select! {
                    () = stop.cancelled() => return,
                    rung = timeout(QUIET, bell.changed()) => if rung.is_err() { break },
                }
            }
        }
    }

    /// How many records are not indexed yet.
    pub(crate) fn behind(&self) -> u64 {
        self.journal.head().saturating_sub(self.journal.indexed())
    }

    /// Helps, where the index is so far behind that it might never catch up.
    pub(crate) async fn keep_pace(&self) {
        if self.behind() <= TOO_MANY {
            return;
        }
        let until = self.journal.head().min(self.journal.indexed() + HELP);
        if let Err(error) = self.catch_up(until).await {
            // What is pushed will be told whether the journal writes.
            tracing::debug!(%error, "The search index could not be fed.");
        }
    }

    /// Indexes everything up to a position. Gives how many texts were added.
    pub(crate) async fn catch_up(&self, until: u64) -> Result<u64, Error> {
        let mut added = 0;
        loop {
            let _turn = self.turn.lock().await;
            let after = self.journal.indexed();
            if after >= until {
                return Ok(added);
            }
            let indexer = self.clone();
            let batch = blocking(move || indexer.assemble(after, until)).await?;
            let texts = batch.len() as u64;
            match self.journal.index(batch).await {
                Ok(()) => added += texts,
                // Somebody has emptied the index meanwhile: it is fed from where it stands now.
                Err(JournalError::IndexElsewhere { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// What can be found of some records after a position. Blocks on the disk.
    fn assemble(&self, after: u64, until: u64) -> Result<IndexBatch, JournalError> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.position != after {
            // What was read last was not indexed after all.
            sessions.readers.clear();
        }
        let at_hand = self.hub.after(after, BATCH).filter(|records| !records.is_empty());
        let records = match at_hand {
            Some(records) => records,
            None => self.journal.after(after, BATCH)?,
        };
        // What is missing was removed.
        let mut through = records.last().map_or(until, |newest| newest.position.min(until));
        let (mut rows, mut bytes) = (Vec::new(), 0);
        for record in records.iter().filter(|record| record.position <= until) {
            let parsed = self.hub.message(record.position);
            let passages = sessions.reader(record, self)?.read(record, parsed.as_ref());
            let redacted = |text: &str| text::redact(text).into_owned();
            let row = |passage| Indexed::new(record, passage, &redacted);
            rows.extend(passages.into_iter().filter_map(row));
            bytes += record.body.len();
            if bytes >= BATCH_BYTES {
                through = record.position;
                break;
            }
        }
        sessions.position = through;
        Ok(IndexBatch::new(after, through, rows))
    }

    /// What has read a session up to a record.
    fn recall(&self, record: &Record) -> Result<SessionReader, JournalError> {
        let mut reader = SessionReader::new(&self.agents);
        let mut seq = 0;
        while seq + 1 < record.seq {
            let earlier = self.journal.session(&record.session, seq, BATCH)?;
            let Some(newest) = earlier.last() else { break };
            seq = newest.seq;
            for earlier in earlier.iter().filter(|earlier| earlier.seq < record.seq) {
                reader.read(earlier, None);
            }
        }
        Ok(reader)
    }
}

impl Sessions {
    /// The reader of a record's session, which has read everything before it.
    fn reader(
        &mut self,
        record: &Record,
        indexer: &Indexer,
    ) -> Result<&mut SessionReader, JournalError> {
        if !self.readers.get(&record.session).is_some_and(|(reader, _)| reader.is_next(record)) {
            let reader = indexer.recall(record)?;
            if self.readers.len() >= SESSIONS {
                self.forget();
            }
            self.readers.insert(record.session.clone(), (reader, 0));
        }
        let fresh = || (SessionReader::new(&indexer.agents), 0);
        let (reader, used) = self.readers.entry(record.session.clone()).or_insert_with(fresh);
        *used = record.position;
        Ok(reader)
    }

    /// Forgets a quarter of the sessions: those that were silent longest.
    fn forget(&mut self) {
        let mut used: Vec<u64> = self.readers.values().map(|(_, used)| *used).collect();
        used.sort_unstable();
        let oldest = used.get(SESSIONS / 4).copied().unwrap_or_default();
        self.readers.retain(|_, (_, used)| *used > oldest);
    }
}

#[cfg(test)]
#[path = "indexer_tests.rs"]
mod tests;
