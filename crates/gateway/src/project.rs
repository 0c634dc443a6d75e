//! Records become activities: the one way from the journal to whoever watches.
//!
//! A projection reads one session's records in order. It is a function of the records alone, so a view can always be made
//! again.

use std::collections::HashMap;
use std::sync::Arc;

use banister_events::activity::{Activity, Ask, Context, Ending, Gate, Origin, Outcome, What};
use banister_events::aep::mapping::{Agents, Mapping, Stamp};
use banister_events::event::Protocol;
use banister_events::{Message, Reader};
use banister_journal::{Kind, Record};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

mod pushed;

use crate::idle::IdleFact;
pub(crate) use pushed::Pushed;

/// The prefix of `source.protocol` for native hook payloads: `hook:AGENT:HOOK`.
pub const HOOK: &str = "hook:";

/// The protocol of records that the gateway's own script wrote: their body is an [`ActivityFact`]. No door takes it.
pub const ACTIVITY: &str = "activity";

/// The body of a record that is an activity already.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActivityFact {
    /// Who did it, and where.
    pub context: Context,
    /// What happened.
    pub what: What,
}

/// The body of an [`Kind::Ask`] record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AskFact {
    /// The ask.
    pub ask: Ask,
    /// Who asks, and where.
    pub context: Context,
    /// How long the agent itself waits: no extension goes beyond.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<Timestamp>,
    /// Who pushed it, and looks for the answer itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sender: Option<Sender>,
    /// What it stands for, if the agent hands over rather than asks.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub handoff: Option<Handoff>,
}

impl AskFact {
    /// An ask that somebody waits on, of which no more is known.
    pub fn new(ask: Ask, context: Context) -> Self {
        Self { ask, context, limit: None, sender: None, handoff: None }
    }
}

/// Where the answer to a pushed ask goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sender {
    /// The protocol that it was asked in.
    pub protocol: Protocol,
    /// The key that it came with.
    pub key: String,
    /// What the answer has to name: the reply token, the interrupt, the event that asked.
    pub token: String,
}

/// An agent hands over to somebody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handoff {
    /// Why, in the agent's words.
    pub reason: String,
    /// To whom: `human`, `specialist_agent`, `escalation_queue`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target: Option<String>,
    /// Where that one is found.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub uri: Option<String>,
}

/// The body of the record that closes an ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloseFact {
    /// The ask's id.
    pub ask: String,
    /// How it closed.
    pub outcome: Outcome,
    /// Who closed it: `user`, `timeout`, `agent`, `extension`.
    pub by: String,
    /// The words that came with it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub message: Option<String>,
    /// What was answered to a question.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub response: Option<Value>,
    /// The ask that takes its place, where its time was extended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next: Option<String>,
}

impl CloseFact {
    /// An end without words.
    pub fn new(ask: impl Into<String>, outcome: Outcome, by: &str) -> Self {
        Self {
            ask: ask.into(),
            outcome,
            by: by.to_owned(),
            message: None,
            response: None,
            next: None,
        }
    }
}

/// One session's records on their way to activities.
#[derive(Debug, Clone)]
pub struct Projection {
    agents: Arc<Agents>,
    reader: Reader,
    /// What reads pushed events, and trusts nothing in them.
    pushed: Option<Pushed>,
    asks: HashMap<String, AskFact>,
    /// Who was heard last, and where.
    context: Arc<Context>,
    /// The number of the last record.
    seq: u64,
}

impl Projection {
    /// A projection that has seen nothing yet. Its reader may trust: the events it reads are made here, by a mapping.
    pub fn new(agents: Arc<Agents>) -> Self {
        let reader = Reader::trusting(Protocol::Aep);
        Self { agents, reader, pushed: None, asks: HashMap::new(), context: Arc::default(), seq: 0 }
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
            return self.pushed.get_or_insert(fresh).told(record, parsed, origin);
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
