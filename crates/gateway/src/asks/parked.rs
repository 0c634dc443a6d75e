//! Runs of upstreams that wait for answers: which asks each waits for, and who is about to go on with it.
//!
//! A run that ended with interrupts is parked under its session, with the input that the next run gets. When its last ask
//! is closed it can be resumed, by whoever takes it first: the gateway, or the front end with a `resume` of its own.

use std::collections::HashMap;

use banister_events::activity::Ask;
use banister_journal::{Draft, Entry, Kind, Record, Source};
use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;

use super::{AskTable, Asks};
use crate::facts::{CloseFact, ParkedFact, ResumptionFact, Stage};
use crate::keep::Keeper;

/// A run that waits.
#[derive(Debug)]
pub(super) struct ParkedRun {
    fact: ParkedFact,
    /// Where it stands in the journal.
    pub(super) position: u64,
    /// Whether its exact bytes are kept there.
    held: bool,
    state: ParkState,
    /// What was asked and how it ended, of the asks that are closed.
    answers: HashMap<String, (Ask, CloseFact)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParkState {
    /// It waits for answers, or for somebody who goes on with it.
    Waiting,
    /// Somebody is about to go on with it.
    Taken,
    /// Somebody was about to when the gateway stopped: whether the agent heard of it nobody knows.
    Cut,
    /// It could not be resumed. Only a front end goes on with it.
    Failed,
}

/// Who goes on with a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resumer {
    /// The gateway itself, once all asks are closed.
    Gateway,
    /// A front end that answers what is still open.
    FrontEnd,
    /// A new run of the thread that answers nothing.
    NewRun,
}

/// Why a run could not be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotParked {
    /// No run of the session waits, or not for this one.
    Nothing,
    /// Somebody else is at it.
    Taken,
}

/// The sole right to go on with a run. Dropped, the run waits as before.
#[derive(Debug)]
pub(crate) struct ParkClaim {
    asks: Asks,
    session: String,
    fact: ParkedFact,
    before: ParkState,
    spent: bool,
}

/// A run that is about to be parked.
#[derive(Debug)]
pub(crate) struct ParkedDraft {
    pub(crate) session: String,
    pub(crate) source: Source,
    pub(crate) time: Timestamp,
    pub(crate) fact: ParkedFact,
}

/// What becomes of a parked run, on its way into history.
#[derive(Debug)]
pub(crate) struct Resumption {
    pub(super) claim: Option<ParkClaim>,
    session: String,
    source: Source,
    time: Timestamp,
    fact: ResumptionFact,
}

impl ParkedDraft {
    /// The record of it.
    pub(crate) fn entry(&self, keeper: &Keeper) -> Entry {
        let turn = Some(self.fact.run.clone());
        let draft = draft(&self.session, &self.source, Kind::Parked, self.time);
        let body = Bytes::from(serde_json::to_vec(&self.fact).unwrap_or_default());
        keeper.parked(Draft { turn, body, ..draft }, &self.fact)
    }
}

impl Resumption {
    /// The record of it.
    pub(crate) fn entry(&self) -> Entry {
        let draft = draft(&self.session, &self.source, Kind::Resumption, self.time);
        let body = Bytes::from(serde_json::to_vec(&self.fact).unwrap_or_default());
        Entry::from(Draft { body, ..draft })
    }
}

fn draft(session: &str, source: &Source, kind: Kind, time: Timestamp) -> Draft {
    Draft {
        session: session.to_owned(),
        time,
        kind,
        source: Source { protocol: "banister".to_owned(), ..source.clone() },
        turn: None,
        action: None,
        event_id: None,
        reader: 1,
        body: Bytes::new(),
        findings: Value::Null,
        gate: None,
    }
}

impl ParkClaim {
    pub(crate) fn session(&self) -> &str {
        &self.session
    }

    /// The run.
    pub(crate) fn fact(&self) -> &ParkedFact {
        &self.fact
    }

    /// Whether the gateway stopped while somebody went on with it.
    pub(crate) fn was_cut(&self) -> bool {
        self.before == ParkState::Cut
    }

    /// What was asked and how it ended, of the asks that are closed, by their ids.
    pub(crate) fn answers(&self) -> HashMap<String, (Ask, CloseFact)> {
        let table = self.asks.lock();
        table.parked.get(&self.session).map(|run| run.answers.clone()).unwrap_or_default()
    }

    /// The agent is about to be called. The right to go on stays with whoever has it; from here on nobody but a front end
    /// tries again.
    pub(crate) fn begun(&mut self, next: &str, source: Source, time: Timestamp) -> Resumption {
        self.before = ParkState::Failed;
        let fact = ResumptionFact::new(&self.fact.run, Some(next), Stage::Begun);
        let session = self.session.clone();
        Resumption { claim: None, session, source, time, fact }
    }

    /// That the agent is about to be called is not recorded, so it is not: the run waits as before.
    pub(crate) fn not_begun(mut self) {
        self.before = ParkState::Waiting;
    }

    /// The run is over with: the next one has started, it failed to, or the thread went on without it.
    pub(crate) fn end(self, stage: Stage, source: Source, time: Timestamp) -> Resumption {
        let fact = ResumptionFact::new(&self.fact.run, None, stage);
        let session = self.session.clone();
        Resumption { claim: Some(self), session, source, time, fact }
    }
}

impl Drop for ParkClaim {
    fn drop(&mut self) {
        if self.spent {
            return;
        }
        if let Some(run) = self.asks.lock().parked.get_mut(&self.session) {
            run.state = self.before;
        }
        self.asks.parking.send_modify(|changes| *changes += 1);
    }
}

impl Asks {
    /// Rings whenever a parked run may have become ready.
    pub(crate) fn parking(&self) -> tokio::sync::watch::Receiver<u64> {
        self.parking.subscribe()
    }

    /// The sessions with a run that the gateway has to see to: all is answered and nobody is at it, or it was cut when the
    /// gateway stopped.
    pub(crate) fn resumable(&self) -> Vec<String> {
        let table = self.lock();
        let ready = table.parked.iter().filter(|(_, run)| run.takes(Resumer::Gateway));
        ready.map(|(session, _)| session.clone()).collect()
    }

    /// Takes a parked run.
    pub(crate) fn take_parked(&self, session: &str, by: Resumer) -> Result<ParkClaim, NotParked> {
        let mut table = self.lock();
        let run = table.parked.get_mut(session).ok_or(NotParked::Nothing)?;
        if run.state == ParkState::Taken {
            return Err(NotParked::Taken);
        }
        if !run.takes(by) {
            return Err(NotParked::Nothing);
        }
        let before = std::mem::replace(&mut run.state, ParkState::Taken);
        let fact = run.fact.clone();
        drop(table);
        let session = session.to_owned();
        Ok(ParkClaim { asks: self.clone(), session, fact, before, spent: false })
    }
}

impl ParkedRun {
    fn takes(&self, by: Resumer) -> bool {
        match (by, self.state) {
            (_, ParkState::Taken) | (Resumer::Gateway, ParkState::Failed) => false,
            (Resumer::Gateway, ParkState::Waiting) => {
                self.fact.asks.iter().all(|it| self.answers.contains_key(&it.ask))
            }
            (Resumer::Gateway, ParkState::Cut) | (Resumer::FrontEnd | Resumer::NewRun, _) => true,
        }
    }

    /// One of its asks was closed.
    pub(super) fn answered(&mut self, ask: &Ask, fact: &CloseFact) {
        if self.fact.asks.iter().any(|it| it.ask == ask.id) {
            self.answers.insert(ask.id.clone(), (ask.clone(), fact.clone()));
        }
    }
}

impl AskTable {
    pub(super) fn park(&mut self, fact: ParkedFact, record: &Record) {
        let run = ParkedRun {
            fact,
            position: record.position,
            held: record.captured.exact.is_some(),
            state: ParkState::Waiting,
            answers: HashMap::new(),
        };
        self.parked.insert(record.session.clone(), run);
    }

    /// Notes what became of a parked run. Gives its position if it is over with and exact bytes are kept there.
    pub(super) fn resume(&mut self, session: &str, fact: &ResumptionFact) -> Option<u64> {
        let run = self.parked.get_mut(session).filter(|run| run.fact.run == fact.run)?;
        match fact.stage {
            // Only a gateway that starts reads this as it stands: one that runs has taken the run.
            Stage::Begun if run.state == ParkState::Taken => None,
            Stage::Begun => {
                run.state = ParkState::Cut;
                None
            }
            Stage::Failed => {
                run.state = ParkState::Failed;
                None
            }
            Stage::Started | Stage::Superseded => {
                let run = self.parked.remove(session)?;
                run.held.then_some(run.position)
            }
        }
    }
}

impl super::AskWriter {
    /// Parks a run, now that it is recorded.
    pub(crate) fn park(&self, draft: ParkedDraft, record: &Record) {
        self.asks.lock().park(draft.fact, record);
    }

    /// Notes what became of a parked run, now that it is recorded. Gives the position whose exact bytes are not needed any
    /// more.
    pub(crate) fn resume(&self, resumption: Resumption) -> Option<u64> {
        let Resumption { claim, session, fact, .. } = resumption;
        let settled = self.asks.lock().resume(&session, &fact);
        if let Some(mut claim) = claim {
            claim.spent = true;
        }
        self.asks.parking.send_modify(|changes| *changes += 1);
        settled
    }
}
