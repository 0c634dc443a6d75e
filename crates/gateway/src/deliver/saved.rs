//! Saved writers: the cost of coming back is bounded, and so is the memory for it.
//!
//! Of each session some of the states its channel went through are kept: one for every 1,000 records near its end, and
//! the fewer the further back. To be again where one was costs at most 1,000 records of the session, or a quarter of what
//! has to be told after that anyway. What is not kept is made from the session's own records; after a restart that is
//! everything, once, and only of sessions that somebody wants to hear about.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use banister_events::activity::What;
use banister_events::aep::mapping::Agents;
use banister_journal::{Error, Journal};

use super::BATCH;
use super::channel::{Channel, Voice};
use crate::project::Projection;

/// How many records may lie between two states that are kept.
const EVERY: u64 = 1_000;
/// A state that lies this many times further back than its neighbours lie apart is not needed.
const THINNED: u64 = 4;
/// How many states are kept in all.
const STATES: usize = 2_048;
/// How many records at its end are looked at, to see that a session has come to rest.
const TAIL: usize = 2;

/// The saved writers of one voice, and which turns are open.
#[derive(Debug)]
pub(crate) struct Saved {
    journal: Journal,
    agents: Arc<Agents>,
    pub(crate) voice: Voice,
    states: Mutex<States>,
    open: Mutex<OpenTurns>,
    /// Who looks for open turns: one at a time, without holding a thread.
    pub(crate) looking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct States {
    of: HashMap<String, Session>,
    count: usize,
    taken: u64,
}

#[derive(Debug, Default)]
struct Session {
    /// Number of the record → the state after it.
    states: BTreeMap<u64, Channel>,
    /// When it was last needed.
    used: u64,
}

/// What is known about turns.
#[derive(Debug, Default)]
struct OpenTurns {
    /// Session → the record that its open turn began with, and the newest one.
    began: BTreeMap<String, (u64, u64)>,
    /// Everything up to here is known.
    position: u64,
}

/// Some records of a session: those from one number to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) session: String,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl Saved {
    pub(crate) fn new(journal: Journal, agents: Arc<Agents>, voice: Voice) -> Self {
        let (states, open) = (Mutex::default(), Mutex::default());
        Self { journal, agents, voice, states, open, looking: tokio::sync::Mutex::default() }
    }

    /// A channel that has seen nothing yet.
    pub(crate) fn fresh(&self) -> Channel {
        Channel::new(Projection::new(Arc::clone(&self.agents)), &self.voice)
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
                open.began.remove(&head.session);
                continue;
            }
            let channel = self.at(&head.session, seq)?;
            match channel.began() {
                Some(began) => open.began.insert(head.session.clone(), (began, seq)),
                None => open.began.remove(&head.session),
            };
            if seq > EVERY {
                self.keep(&head.session, seq, channel);
            }
        }
        open.position = end;
        let turn = |(session, (from, to)): (&String, &(u64, u64))| Stretch {
            session: session.clone(),
            from: *from,
            to: *to,
        };
        let turns = open.began.iter().map(turn).collect();
        Ok((end, turns))
    }

    /// The turn of a session that was open after a record. Blocks on the disk.
    pub(crate) fn turn_at(&self, session: &str, seq: u64) -> Result<Option<Stretch>, Error> {
        let began = self.at(session, seq)?.began();
        Ok(began.map(|from| Stretch { session: session.to_owned(), from, to: seq }))
    }

    /// Whether the last thing that happened was an end. Costs a few records, however long the session is.
    fn is_at_rest(&self, session: &str, seq: u64) -> Result<bool, Error> {
        let mut channel = self.fresh();
        let mut at_rest = false;
        for record in self.journal.session(session, seq.saturating_sub(TAIL as u64), TAIL)? {
            if let Some(last) = channel.next(&record, None).activities.last() {
                at_rest = matches!(last.what, What::TurnEnded { .. } | What::SessionEnded { .. });
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

impl Session {
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
mod tests;
