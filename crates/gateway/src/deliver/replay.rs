//! What is in the journal, told again: everything after a place, or some stretches of sessions.
//!
//! Always in the journal's order, so that a cursor says exactly what was told before it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use banister_journal::Record;

use super::saved::Stretch;
use super::{BATCH, Cursor};
use crate::{Error, Gateway};

/// How many records are at hand over all stretches.
const AT_HAND: usize = 4_096;

/// Everything after a place, of all sessions or of one.
#[derive(Debug)]
pub(crate) struct Rest {
    gateway: Arc<Gateway>,
    session: Option<String>,
    /// Everything up to here was read.
    position: u64,
    /// The same, by the session's own numbers, where it is one session's.
    seq: Option<u64>,
}

impl Rest {
    /// Begins with the record that the cursor is in the middle of, else after it.
    pub(crate) fn after(gateway: &Arc<Gateway>, session: Option<&str>, seen: Cursor) -> Self {
        let position =
            if seen.is_whole() { seen.position } else { seen.position.saturating_sub(1) };
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
    sources: Vec<Source>,
    /// The position of the next record of each source that has one.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    /// How many records are read at once of each.
    batch: usize,
}

#[derive(Debug)]
struct Source {
    stretch: Stretch,
    records: VecDeque<Arc<Record>>,
}

impl Stretches {
    pub(crate) async fn new(
        gateway: &Arc<Gateway>,
        stretches: Vec<Stretch>,
    ) -> Result<Self, Error> {
        let batch = (AT_HAND / stretches.len().max(1)).clamp(1, BATCH);
        let source = |stretch| Source { stretch, records: VecDeque::new() };
        let mut all = Self {
            gateway: Arc::clone(gateway),
            sources: stretches.into_iter().map(source).collect(),
            next: BinaryHeap::new(),
            batch,
        };
        for index in 0..all.sources.len() {
            all.fill(index).await?;
        }
        Ok(all)
    }

    /// The next record.
    pub(crate) async fn next(&mut self) -> Result<Option<Arc<Record>>, Error> {
        let Some(Reverse((_, index))) = self.next.pop() else { return Ok(None) };
        let record = self.sources.get_mut(index).and_then(|source| source.records.pop_front());
        self.fill(index).await?;
        Ok(record)
    }

    async fn fill(&mut self, index: usize) -> Result<(), Error> {
        let Some(source) = self.sources.get_mut(index) else { return Ok(()) };
        if source.records.is_empty() && source.stretch.from <= source.stretch.to {
            let Stretch { session, from, to } = &mut source.stretch;
            let after = from.saturating_sub(1);
            let records = self.gateway.some_after(session, after, self.batch).await?;
            source.records.extend(records.into_iter().filter(|record| record.seq <= *to));
            *from = source.records.back().map_or(u64::MAX, |newest| newest.seq + 1);
        }
        if let Some(record) = source.records.front() {
            self.next.push(Reverse((record.position, index)));
        }
        Ok(())
    }
}
