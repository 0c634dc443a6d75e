//! Records read from the journal again: everything after a cursor, or some stretches of sessions.
//!
//! Always in the journal's order, so that everything before a cursor was sent before it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use banister_journal::Record;

use super::EventCursor;
use super::reading::BATCH;
use super::saved::Stretch;
use crate::{Error, Gateway};

/// How many records are at hand over all stretches.
const AT_HAND: usize = 4_096;

/// Everything after a cursor, of all sessions or of one.
#[derive(Debug)]
pub(crate) struct CatchUp {
    gateway: Arc<Gateway>,
    session: Option<String>,
    /// Everything up to here was read.
    position: u64,
    /// The same, by the session's own numbers, where it is one session's.
    seq: Option<u64>,
}

impl CatchUp {
    /// Begins with the record that the cursor is in the middle of, else after it.
    pub(crate) fn after(gateway: &Arc<Gateway>, session: Option<&str>, seen: EventCursor) -> Self {
        let position = seen.before_unseen();
        let session = session.map(str::to_owned);
        Self { gateway: Arc::clone(gateway), session, position, seq: None }
    }

    /// Everything up to here was read.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// The next records up to a position; none where there are no more.
    pub(crate) async fn next(&mut self, end: u64) -> Result<Vec<Arc<Record>>, Error> {
        if self.position >= end {
            return Ok(Vec::new());
        }
        let mut records = match &self.session {
            None => self.gateway.after(self.position).await?,
            Some(session) => {
                let seq = match self.seq {
                    Some(seq) => seq,
                    None => self.gateway.seq_at(session, self.position).await?,
                };
                self.seq = Some(seq);
                self.gateway.session_after(session, seq).await?
            }
        };
        records.retain(|record| record.position <= end);
        match records.last() {
            Some(newest) => {
                self.position = newest.position;
                self.seq = self.seq.map(|_| newest.seq);
            }
            None => self.position = end,
        }
        Ok(records)
    }
}

/// Some stretches of sessions, as one.
#[derive(Debug)]
pub(crate) struct Stretches {
    gateway: Arc<Gateway>,
    readers: Vec<StretchReader>,
    /// The position of the next record of each reader that has one.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    /// How many records are read at once of each.
    batch: usize,
}

#[derive(Debug)]
struct StretchReader {
    stretch: Stretch,
    records: VecDeque<Arc<Record>>,
}

impl Stretches {
    pub(crate) async fn new(
        gateway: &Arc<Gateway>,
        stretches: Vec<Stretch>,
    ) -> Result<Self, Error> {
        let batch = (AT_HAND / stretches.len().max(1)).clamp(1, BATCH);
        let reader = |stretch| StretchReader { stretch, records: VecDeque::new() };
        let mut all = Self {
            gateway: Arc::clone(gateway),
            readers: stretches.into_iter().map(reader).collect(),
            next: BinaryHeap::new(),
            batch,
        };
        for index in 0..all.readers.len() {
            all.fill(index).await?;
        }
        Ok(all)
    }

    /// The next record.
    pub(crate) async fn next(&mut self) -> Result<Option<Arc<Record>>, Error> {
        let Some(Reverse((_, index))) = self.next.pop() else { return Ok(None) };
        let record = self.readers.get_mut(index).and_then(|reader| reader.records.pop_front());
        self.fill(index).await?;
        Ok(record)
    }

    async fn fill(&mut self, index: usize) -> Result<(), Error> {
        let Some(reader) = self.readers.get_mut(index) else { return Ok(()) };
        if reader.records.is_empty() && reader.stretch.from <= reader.stretch.to {
            let Stretch { session, from, to, .. } = &mut reader.stretch;
            let after = from.saturating_sub(1);
            let records = self.gateway.some_after(session, after, self.batch).await?;
            reader.records.extend(records.into_iter().filter(|record| record.seq <= *to));
            *from = reader.records.back().map_or(u64::MAX, |newest| newest.seq + 1);
        }
        if let Some(record) = reader.records.front() {
            self.next.push(Reverse((record.position, index)));
        }
        Ok(())
    }
}
