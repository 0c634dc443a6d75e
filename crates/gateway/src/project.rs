//! Records become activities: the one way from the journal to whoever watches.
//!
//! A projection reads one session's records in order. It is a function of the records alone, so a view can always be made
//! again.

use std::collections::HashMap;
use std::sync::Arc;

use banister_events::activity::{Activity, Context, Ending, Gate, Origin, What};
use banister_events::aep::mapping::{Agents, Mapping, Stamp};
use banister_events::event::Protocol;
use banister_events::{Message, Reader};
use banister_journal::{Kind, Record};
use serde::Deserialize;

mod pushed;

use crate::facts::{
    ACTIVITY, ActivityFact, AskFact, CloseFact, HOOK, IdleFact, ParkedAsk, ParkedFact,
};
pub(crate) use pushed::Pushed;

/// One session's records on their way to activities.
#[derive(Debug, Clone)]
pub struct Projection {
    agents: Arc<Agents>,
    reader: Reader,
    /// What reads pushed events, and trusts nothing in them.
    pushed: Option<Pushed>,
    asks: HashMap<String, AskFact>,
    /// What a reader calls the asks of a run that waits → what they are called on the desk.
    parked: HashMap<String, String>,
    /// Who was heard last, and where.
    context: Arc<Context>,
    /// The number of the last record.
    seq: u64,
}

impl Projection {
    /// A projection that has seen nothing yet. Its reader may trust: the events it reads are made here, by a mapping.
    pub fn new(agents: Arc<Agents>) -> Self {
        let reader = Reader::trusting(Protocol::Aep);
        let (asks, parked) = (HashMap::new(), HashMap::new());
        Self { agents, reader, pushed: None, asks, parked, context: Arc::default(), seq: 0 }
    }

    /// Whether an ask of the desk's is open.
    pub(crate) fn waits(&self) -> bool {
        !self.asks.is_empty()
    }

    /// The activities of the next record.
    pub fn next(&mut self, record: &Record) -> Vec<Activity> {
        self.next_parsed(record, None)
    }

    /// The same, with the message that the record holds, where that was parsed on its way in.
    pub(crate) fn next_parsed(
        &mut self,
        record: &Record,
        parsed: Option<&Message>,
    ) -> Vec<Activity> {
        let origin =
            Origin { session: record.session.as_str().into(), seq: record.seq, time: record.time };
        let told = self.told(record, parsed, origin);
        if let Some(last) = told.last() {
            self.context = Arc::clone(&last.context);
        }
        self.seq = record.seq;
        told
    }

    /// Whether an ask is open.
    pub fn is_asking(&self) -> bool {
        !self.asks.is_empty()
    }

    fn told(&mut self, record: &Record, parsed: Option<&Message>, origin: Origin) -> Vec<Activity> {
        match record.kind {
            Kind::Event => self.event(record, parsed, &origin),
            // While it is open, people see exactly what they are asked about; afterwards what the capture level lets.
            Kind::Ask => match serde_json::from_slice::<AskFact>(record.exact()) {
                // The event that it came with has told it.
                Ok(fact) if fact.handoff.is_some() => Vec::new(),
                Ok(fact) => {
                    let what = What::AskOpened { ask: Box::new(fact.ask.clone()) };
                    let context = Arc::new(fact.context.clone());
                    self.asks.insert(fact.ask.id.clone(), fact);
                    vec![Activity { origin, context, what }]
                }
                Err(_) => Vec::new(),
            },
            Kind::Answer | Kind::Expiry | Kind::Withdrawal => self.closed(record, origin),
            Kind::Idle => self.idle(record, origin).into_iter().collect(),
            Kind::Parked => {
                self.park(record);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// The end of a turn that nobody ended, unless something came before it was recorded.
    fn idle(&self, record: &Record, origin: Origin) -> Option<Activity> {
        let fact: IdleFact = serde_json::from_slice(&record.body).ok()?;
        if fact.after != self.seq || self.is_asking() {
            return None;
        }
        let ending = Ending::Cancelled { by: "timeout".to_owned(), reason: None };
        let what = What::TurnEnded { ending, summary: None, result: None, usage: Vec::new() };
        Some(Activity { origin, context: Arc::clone(&self.context), what })
    }

    fn event(
        &mut self,
        record: &Record,
        parsed: Option<&Message>,
        origin: &Origin,
    ) -> Vec<Activity> {
        if let Some(fresh) = Pushed::of(&record.source.protocol) {
            let mut activities = self.pushed.get_or_insert(fresh).told(record, parsed, origin);
            for activity in &mut activities {
                self.name_asks(activity);
            }
            return activities;
        }
        if record.source.protocol == ACTIVITY {
            let fact = serde_json::from_slice::<ActivityFact>(&record.body).ok();
            let origin = origin.clone();
            let told = |fact: ActivityFact| Activity {
                origin,
                context: Arc::new(fact.context),
                what: fact.what,
            };
            return fact.map(told).into_iter().collect();
        }
        let Some((mapping, hook)) = source_of(&self.agents, &record.source.protocol) else {
            return Vec::new();
        };
        let payload = match parsed {
            Some(payload) => payload.clone(),
            None => match Message::payload(record.body.clone()) {
                Ok(payload) => payload,
                Err(_) => return Vec::new(),
            },
        };
        let stamp = Stamp { session: &record.session, seq: record.seq, time: record.time };
        let gate = record.gate.as_ref().and_then(|gate| Gate::deserialize(gate).ok());
        let mut told = Vec::new();
        for event in mapping.map(hook, payload.value(), &stamp).events {
            let event = Message::of_value(Protocol::Aep, event);
            self.reader.read(&event, gate.as_ref(), origin, &mut told);
        }
        told
    }

    /// Remembers what the asks of a run are called that is about to wait.
    fn park(&mut self, record: &Record) {
        let Ok(fact) = serde_json::from_slice::<ParkedFact>(&record.body) else { return };
        let name = |it: ParkedAsk| (it.read_as, it.ask);
        self.parked = fact.asks.into_iter().map(name).collect();
    }

    /// Calls the asks that a turn waits for as the desk does.
    fn name_asks(&self, activity: &mut Activity) {
        let What::TurnEnded { ending: Ending::Suspended { asks }, .. } = &mut activity.what else {
            return;
        };
        for ask in asks {
            if let Some(name) = self.parked.get(ask) {
                ask.clone_from(name);
            }
        }
    }

    fn closed(&mut self, record: &Record, origin: Origin) -> Vec<Activity> {
        let Ok(fact) = serde_json::from_slice::<CloseFact>(&record.body) else {
            return Vec::new();
        };
        let Some(opened) = self.asks.remove(&fact.ask) else {
            return Vec::new();
        };
        let what = What::AskClosed {
            id: fact.ask,
            action: opened.ask.action,
            outcome: fact.outcome,
            by: fact.by,
            message: fact.message,
            response: fact.response,
            updated_input: None,
        };
        vec![Activity { origin, context: Arc::new(opened.context), what }]
    }
}

/// The agent's mapping and the hook, from a record's protocol.
pub fn source_of<'a>(agents: &'a Agents, protocol: &'a str) -> Option<(&'a Mapping, &'a str)> {
    let (agent, hook) = protocol.strip_prefix(HOOK)?.split_once(':')?;
    Some((agents.find(agent)?, hook))
}

#[cfg(test)]
#[path = "project_tests.rs"]
pub(crate) mod tests;
