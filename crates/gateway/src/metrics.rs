//! What is counted, as Prometheus reads it. Numbers only: no names of sessions, no content.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use banister_events::activity::Decision;
use banister_events::event::Protocol;

use crate::ingest::pushing::Status;

mod page;

/// The upper ends of the histogram's buckets, in microseconds.
const BUCKETS: [u64; 8] = [500, 1_000, 5_000, 10_000, 50_000, 250_000, 1_000_000, 10_000_000];
/// The statuses that are told apart; the last stands for all others.
const CODES: [u16; 13] = [200, 303, 400, 401, 403, 404, 409, 413, 422, 429, 500, 503, 0];

const DECISIONS: [Decision; 3] = [Decision::Allow, Decision::Ask, Decision::Deny];

/// Counters of one gateway.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// By protocol, then by what became of them.
    pushed: [[AtomicU64; 3]; 3],
    /// Allowed, denied, abstained.
    decided: [AtomicU64; 3],
    answered: [AtomicU64; CODES.len()],
    /// How many took at most so long; not cumulative.
    took: [AtomicU64; BUCKETS.len() + 1],
    took_micros: AtomicU64,
    turned_away: AtomicU64,
    /// What was said, then what rules that are only tried would have said.
    tried: [[AtomicU64; 3]; 3],
}

impl Metrics {
    /// Counts what became of a pushed event.
    pub(crate) fn pushed(&self, protocol: Protocol, status: Status) {
        let row = Protocol::ALL.into_iter().zip(&self.pushed).find(|(it, _)| *it == protocol);
        let cells = row.into_iter().flat_map(|(_, cells)| Status::ALL.into_iter().zip(cells));
        add(cells.filter(|(it, _)| *it == status).map(|(_, cell)| cell).next());
    }

    /// Counts a decision: whether it was an allow, a deny, or no opinion.
    pub(crate) fn decided(&self, allowed: Option<bool>) {
        let [allow, deny, abstain] = &self.decided;
        add(Some(match allowed {
            Some(true) => allow,
            Some(false) => deny,
            None => abstain,
        }));
    }

    /// Counts a verdict that rules which are only tried would not have given.
    pub(crate) fn tried(&self, said: Decision, tried: Decision) {
        let row = DECISIONS.into_iter().zip(&self.tried).find(|(it, _)| *it == said);
        let cells = row.into_iter().flat_map(|(_, cells)| DECISIONS.into_iter().zip(cells));
        add(cells.filter(|(it, _)| *it == tried).map(|(_, cell)| cell).next());
    }

    /// Counts a request: what it was answered with, and when.
    pub(crate) fn request(&self, status: u16, took: Duration) {
        let known = CODES.iter().zip(&self.answered).find(|(code, _)| **code == status);
        add(known.map(|(_, cell)| cell).or(self.answered.last()));
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BUCKETS.iter().zip(&self.took).find(|(end, _)| micros <= **end);
        add(bucket.map(|(_, cell)| cell).or(self.took.last()));
        self.took_micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Counts a connection that was one too many.
    pub(crate) fn turned_away(&self) {
        add(Some(&self.turned_away));
    }
}

fn add(cell: Option<&AtomicU64>) {
    if let Some(cell) = cell {
        cell.fetch_add(1, Ordering::Relaxed);
    }
}
