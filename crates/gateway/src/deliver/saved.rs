//! Saved channels: the cost of coming back is bounded, and so is the memory for it.
//!
//! Of each session some of the states its channel went through are kept: one for every 1,000 records near its end, and
//! the fewer the further back. To make an earlier state again costs at most 1,000 records of the session, or a quarter of
//! what is sent after that anyway. What is not kept is made from the session's own records; after a restart that is
//! everything, once, and only of sessions that somebody follows.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use banister_events::activity::OpenTurn;
use banister_events::aep::mapping::Agents;
use banister_journal::{Error, Journal};

use super::channel::{Channel, Rendering};
use super::reading::BATCH;
use crate::project::Projection;

/// How many records may lie between two states that are kept.
const EVERY: u64 = 1_000;
/// A state that lies this many times further back than its neighbours lie apart is not needed.
const THINNED: u64 = 4;
/// How many states are kept in all.
const STATES: usize = 2_048;
/// How many records at its end are looked at, to see that no turn of a session is open.
const TAIL: usize = 2;

/// The saved channels of one rendering, and which turns are open.
#[derive(Debug)]
pub(crate) struct SavedChannels {
    journal: Journal,
    agents: Arc<Agents>,
    rendering: Rendering,
    states: Mutex<States>,
    open: Mutex<OpenTurns>,
    /// Who looks for open turns: one at a time, without holding a thread.
    pub(crate) looking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct States {
    of: HashMap<String, SessionStates>,
    count: usize,
    taken: u64,
}

#[derive(Debug, Default)]
struct SessionStates {
    /// Number of the record → the state after it.
    states: BTreeMap<u64, Channel>,
    /// When it was last needed.
    used: u64,
}

/// What is known about turns.
#[derive(Debug, Default)]
struct OpenTurns {
    /// Session → its open turn, up to the newest record.
    open: BTreeMap<String, Stretch>,
    /// Everything up to here is known.
    position: u64,
}

/// Some records of a session, those from one number to another: a turn, as far as it has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) session: String,
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// The record that the turn before began with, where its last events come from the first record of this one.
    pub(crate) follows: Option<u64>,
}

impl Stretch {
    fn new(session: &str, turn: OpenTurn, to: u64) -> Self {
        Self { session: session.to_owned(), from: turn.seq, to, follows: turn.follows }
    }

    /// The same with the turn before, where a writer has to see that one to give the same ids again.
    pub(crate) fn with_turn_before(self) -> Self {
        Self { from: self.follows.unwrap_or(self.from), follows: None, ..self }
    }
}

impl SavedChannels {
    pub(crate) fn new(journal: Journal, agents: Arc<Agents>, rendering: Rendering) -> Self {
        let (states, open) = (Mutex::default(), Mutex::default());
        Self { journal, agents, rendering, states, open, looking: tokio::sync::Mutex::default() }
    }

    /// A channel that has seen nothing yet.
    pub(crate) fn fresh(&self) -> Channel {
        Channel::new(Projection::new(Arc::clone(&self.agents)), &self.rendering)
    }

    /// Keeps a state if it is time to.
    pub(crate) fn offer(&self, session: &str, seq: u64, channel: &Channel) {
        if seq.is_multiple_of(EVERY) {
            self.keep(session, seq, channel.clone());
        }
    }

    /// A session as it was after a record. Blocks on the disk.
    pub(crate) fn at(&self, session: &str, seq: u64) -> Result<Channel, Error> {
        let (mut at, mut channel) = self.nearest(session, seq);
        while at < seq {
            let limit = BATCH.min(usize::try_from(seq - at).unwrap_or(BATCH));
            let records = self.journal.session(session, at, limit)?;
            let Some(newest) = records.last() else { break };
            // Retention may have removed what comes next.
            for record in records.iter().filter(|record| record.seq <= seq) {
                channel.next(record, None);
                self.offer(session, record.seq, &channel);
            }
            at = newest.seq;
        }
        Ok(channel)
    }

    /// The turns that are open, each from its beginning, at a position that everything up to is published. Later calls
    /// do not ask for earlier positions. Blocks on the disk.
    pub(crate) fn open_turns(
        &self,
        published: impl FnOnce() -> u64,
    ) -> Result<(u64, Vec<Stretch>), Error> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let end = published().max(open.position);
        for head in self.journal.changed(open.position)? {
            let mut seq = head.seq;
            if head.position > end {
                seq = self.journal.seq_at(&head.session, end)?;
            }
            if self.is_at_rest(&head.session, seq)? {
                open.open.remove(&head.session);
                continue;
            }
            let channel = self.at(&head.session, seq)?;
            match channel.open_turn() {
                Some(turn) => {
                    open.open.insert(head.session.clone(), Stretch::new(&head.session, turn, seq))
                }
                None => open.open.remove(&head.session),
            };
            if seq > EVERY {
                self.keep(&head.session, seq, channel);
            }
        }
        open.position = end;
        Ok((end, open.open.values().cloned().collect()))
    }

    /// The turn of a session that was open after a record. Blocks on the disk.
    pub(crate) fn turn_at(&self, session: &str, seq: u64) -> Result<Option<Stretch>, Error> {
        let turn = self.at(session, seq)?.open_turn();
        Ok(turn.map(|turn| Stretch::new(session, turn, seq)))
    }

    /// Whether the last thing that happened was an end. Costs a few records, however long the session is.
    fn is_at_rest(&self, session: &str, seq: u64) -> Result<bool, Error> {
        let mut projection = Projection::new(Arc::clone(&self.agents));
        let mut at_rest = false;
        for record in self.journal.session(session, seq.saturating_sub(TAIL as u64), TAIL)? {
            if let Some(last) = projection.next(&record).last() {
                at_rest = last.what.ends_turn();
            }
        }
        Ok(at_rest)
    }

    fn nearest(&self, session: &str, seq: u64) -> (u64, Channel) {
        let mut states = self.states();
        states.taken += 1;
        let now = states.taken;
        let found = states.of.get_mut(session).and_then(|session| {
            session.used = now;
            let (at, channel) = session.states.range(..=seq).next_back()?;
            Some((*at, channel.clone()))
        });
        drop(states);
        found.unwrap_or_else(|| (0, self.fresh()))
    }

    /// Keeps a state, for as long as there is room.
    pub(crate) fn keep(&self, session: &str, seq: u64, channel: Channel) {
        let mut states = self.states();
        states.taken += 1;
        let now = states.taken;
        let kept = states.of.entry(session.to_owned()).or_default();
        let before = kept.states.len();
        kept.states.insert(seq, channel);
        kept.used = now;
        kept.thin();
        let after = kept.states.len();
        states.count = (states.count + after).saturating_sub(before);
        if states.count > STATES {
            states.forget();
        }
    }

    fn states(&self) -> MutexGuard<'_, States> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionStates {
    /// Lets states go whose neighbours are near enough to each other.
    fn thin(&mut self) {
        let Some(newest) = self.states.keys().next_back().copied() else { return };
        let numbers: Vec<u64> = self.states.keys().rev().copied().collect();
        let mut later = newest;
        for pair in numbers.windows(2).skip(1) {
            let [this, earlier] = pair else { continue };
            let apart = later - earlier;
            if apart <= EVERY.max((newest - later) / THINNED) {
                self.states.remove(this);
            } else {
                later = *this;
            }
        }
    }
}

impl States {
    /// Lets go of the sessions that were not needed for longest, until a quarter is free again.
    fn forget(&mut self) {
        let mut used: Vec<(u64, usize)> =
            self.of.values().map(|session| (session.used, session.states.len())).collect();
        used.sort_unstable();
        let mut last = 0;
        for (at, states) in used {
            if self.count <= STATES * 3 / 4 {
                break;
            }
            self.count = self.count.saturating_sub(states);
            last = at;
        }
        self.of.retain(|_, session| session.used > last);
    }
}

#[cfg(test)]
#[path = "saved_tests.rs"]
pub(super) mod tests;
