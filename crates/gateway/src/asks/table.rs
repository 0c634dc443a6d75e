//! The table of asks: which are open, which were closed lately, and which token belongs to which.
//!
//! All of it is memory of the journal. It is looked at and changed under one lock, and never across a wait.

use std::collections::{BTreeMap, HashMap, VecDeque};

use banister_journal::{Kind, Record};
use jiff::Timestamp;
use tokio::sync::watch;

use super::parked::ParkedRun;
use super::{AskDraft, Opened, Refused, due};
use crate::facts::{AskFact, CloseFact, ParkedFact, ResumptionFact};

/// How many closed asks are remembered, so that a late answer can be told who was first.
const REMEMBERED: usize = 4_096;
/// How often the time of one ask can have been extended before nobody follows any more.
const EXTENSIONS: usize = REMEMBERED;

/// All that is known of asks, under one lock.
#[derive(Debug, Default)]
pub(super) struct AskTable {
    pub(super) open: HashMap<String, OpenAsk>,
    pub(super) closed: HashMap<String, ClosedAsk>,
    /// Token → ask, of all that are open or remembered.
    pub(super) tokens: HashMap<String, String>,
    order: VecDeque<String>,
    /// Asks on their way into the journal: the head before each of them.
    pub(super) expected: BTreeMap<u64, u64>,
    pub(super) tickets: u64,
    /// Session → the run that waits in it.
    pub(super) parked: HashMap<String, ParkedRun>,
    /// Records of asks that are closed, whose exact bytes are held all the same.
    pub(super) unsettled: Vec<u64>,
}

#[derive(Debug)]
pub(super) struct ClosedAsk {
    pub(super) fact: CloseFact,
    pub(super) deadline: Timestamp,
    position: u64,
    token: String,
}

#[derive(Debug)]
pub(super) struct OpenAsk {
    pub(super) opened: Opened,
    /// Where the ask stands in the journal.
    pub(super) position: u64,
    /// Whether its exact bytes are held there.
    pub(super) held: bool,
    pub(super) phase: Phase,
    pub(super) bell: Bell,
    pub(super) waiters: usize,
    pub(super) left: Timestamp,
}

/// Rings when an ask ends, and when somebody who wanted to end it could not.
pub(super) type Bell = watch::Sender<Option<CloseFact>>;
/// Whoever waits for that.
pub(super) type BellReceiver = watch::Receiver<Option<CloseFact>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    /// Somebody's answer is on its way to the journal; whoever comes now is late.
    Closing,
}

impl AskTable {
    /// Takes up one record of a journal that is opened.
    pub(super) fn recall(&mut self, record: &Record, now: Timestamp) {
        match record.kind {
            Kind::Ask => {
                if let Ok(fact) = serde_json::from_slice::<AskFact>(record.exact()) {
                    let draft = AskDraft {
                        fact,
                        session: record.session.clone(),
                        source: record.source.clone(),
                        since: record.time,
                    };
                    self.insert(&draft, record, now);
                }
            }
            Kind::Parked => {
                if let Ok(fact) = serde_json::from_slice::<ParkedFact>(record.exact()) {
                    self.park(fact, record);
                }
            }
            Kind::Resumption => {
                if let Ok(fact) = serde_json::from_slice::<ResumptionFact>(&record.body) {
                    self.resume(&record.session, &fact);
                }
            }
            _ => {
                if let Ok(fact) = serde_json::from_slice::<CloseFact>(&record.body) {
                    self.finish(fact);
                }
            }
        }
    }

    pub(super) fn insert(&mut self, draft: &AskDraft, record: &Record, now: Timestamp) {
        let opened = draft.opened();
        let id = opened.ask.id.clone();
        self.tokens.insert(opened.ask.token.clone(), id.clone());
        let entry = OpenAsk {
            opened,
            position: record.position,
            held: record.captured.exact.is_some(),
            phase: Phase::Open,
            bell: watch::Sender::new(None),
            waiters: 0,
            left: now,
        };
        self.open.insert(id, entry);
    }

    /// Closes an ask. Gives its position if something is held there.
    pub(super) fn finish(&mut self, fact: CloseFact) -> Option<u64> {
        let entry = self.open.remove(&fact.ask)?;
        entry.bell.send_replace(Some(fact.clone()));
        if let Some(run) = self.parked.get_mut(&entry.opened.session) {
            run.answered(&entry.opened.ask, &fact);
        }
        if self.order.len() == REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            let forgotten = self.closed.remove(&oldest);
            forgotten.and_then(|closed| self.tokens.remove(&closed.token));
        }
        self.order.push_back(fact.ask.clone());
        let (deadline, position) = (due(&entry.opened.ask), entry.position);
        let token = entry.opened.ask.token;
        self.closed.insert(fact.ask.clone(), ClosedAsk { fact, deadline, position, token });
        entry.held.then_some(position)
    }

    /// Takes an ask for closing; a bell to wait on where somebody else is at it.
    pub(super) fn reserve(
        &mut self,
        id: &str,
        digest: Option<&str>,
    ) -> Result<Result<Opened, BellReceiver>, Refused> {
        if let Some(first) = self.closed.get(id) {
            return Err(Refused::Late(first.fact.clone()));
        }
        let Some(entry) = self.open.get_mut(id) else {
            return Err(Refused::Unknown(id.to_owned()));
        };
        if digest.is_some_and(|digest| digest != entry.opened.ask.digest) {
            return Err(Refused::Another);
        }
        Ok(match entry.phase {
            Phase::Closing => Err(entry.bell.subscribe()),
            Phase::Open => {
                entry.phase = Phase::Closing;
                Ok(entry.opened.clone())
            }
        })
    }

    /// Gives back what was taken and not closed.
    pub(super) fn release(&mut self, id: &str) {
        if let Some(entry) = self.open.get_mut(id) {
            entry.phase = Phase::Open;
            // Whoever waits to see whether this answer counts looks again.
            entry.bell.send_modify(|_| {});
        }
    }

    /// The ask that a person means: by its id, or by the beginning of it. Where its time was extended, that is the one
    /// that is asked now.
    pub(super) fn find(&self, name: &str) -> Result<String, Refused> {
        let full = if name.starts_with("ask_") { name.to_owned() } else { format!("ask_{name}") };
        if self.open.contains_key(&full) || self.closed.contains_key(&full) {
            return Ok(self.newest(&full).to_owned());
        }
        let mut fitting =
            self.open.keys().chain(self.closed.keys()).filter(|id| id.starts_with(&full));
        match (fitting.next(), fitting.count()) {
            _ if full == "ask_" => Err(Refused::Unknown(name.to_owned())),
            (Some(id), 0) => Ok(self.newest(id).to_owned()),
            (Some(_), more) => Err(Refused::Ambiguous(name.to_owned(), more + 1)),
            (None, _) => Err(Refused::Unknown(name.to_owned())),
        }
    }

    /// The ask that took the place of another, and of that one, and so on.
    pub(super) fn newest<'a>(&'a self, id: &'a str) -> &'a str {
        let mut newest = id;
        for _ in 0..EXTENSIONS {
            let next = self.closed.get(newest).and_then(|closed| closed.fact.next.as_deref());
            match next {
                Some(next) => newest = next,
                None => break,
            }
        }
        newest
    }

    /// The position up to which nothing has to be read again, where the journal ends at `head`.
    pub(super) fn mark(&self, head: u64) -> u64 {
        let open = self.open.values().map(|entry| entry.position);
        let closed = self.closed.values().map(|closed| closed.position);
        let parked = self.parked.values().map(|run| run.position);
        let known = open.chain(closed).chain(parked).map(|position| position.saturating_sub(1));
        known.chain(self.expected.values().copied()).chain([head]).min().unwrap_or_default()
    }
}
