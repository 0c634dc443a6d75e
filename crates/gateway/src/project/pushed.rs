//! Pushed events become activities, by the reader of their protocol.
//!
//! Nothing that arrives in Banister's own extension fields counts here: whoever may push can write anything there. An
//! answer to an action that went through the gate is the desk's to tell: what an agent says about it is not told. Neither
//! is what it says about its own asks: they are on the desk, with records of their own.

use std::cell::OnceCell;
use std::collections::{HashSet, VecDeque};

use banister_events::activity::{Activity, Gate, Origin, What};
use banister_events::event::Protocol;
use banister_events::json::Parser;
use banister_events::{aaep, aep, agui};
use banister_journal::Record;
use serde::Deserialize;
use serde_json::Value;

/// How many actions that went through the gate are remembered.
const GATED: usize = 4_096;

/// One session's pushed events on their way to activities.
#[derive(Debug, Clone)]
pub(crate) struct Pushed {
    reader: Reader,
    /// Asks that the agent opened and has not closed.
    asked: HashSet<String>,
    gated: HashSet<String>,
    order: VecDeque<String>,
}

#[derive(Debug, Clone)]
enum Reader {
    Aaep(Box<aaep::read::Reader>),
    Agui(Box<agui::read::Reader>),
    Aep(Box<aep::read::Reader>),
}

/// What is kept of one event. It is parsed once, however many read it.
#[derive(Debug)]
pub(crate) struct Body<'b> {
    bytes: &'b [u8],
    value: OnceCell<Option<Value>>,
}

impl<'b> From<&'b [u8]> for Body<'b> {
    fn from(bytes: &'b [u8]) -> Self {
        Self { bytes, value: OnceCell::new() }
    }
}

impl Body<'_> {
    fn value(&self) -> Option<&Value> {
        self.value.get_or_init(|| serde_json::from_slice(self.bytes).ok()).as_ref()
    }
}

impl Pushed {
    /// What reads records of a protocol, where that is one that events are pushed in.
    pub(crate) fn of(protocol: &str) -> Option<Self> {
        let reader = match Protocol::parse(protocol)? {
            Protocol::Aaep => Reader::Aaep(Box::default()),
            Protocol::Agui => Reader::Agui(Box::default()),
            Protocol::Aep => Reader::Aep(Box::default()),
        };
        Some(Self { reader, asked: HashSet::new(), gated: HashSet::new(), order: VecDeque::new() })
    }

    /// What everybody is told of the next record.
    pub(crate) fn told(&mut self, record: &Record, origin: &Origin) -> Vec<Activity> {
        let gate = record.gate.as_ref().and_then(|gate| Gate::deserialize(gate).ok());
        let body = Body::from(record.body.as_ref());
        self.message(&body, gate.as_ref(), record.action.as_deref(), origin)
    }

    /// What everybody is told of what is kept of one event: the desk tells what is asked, and how that ended.
    pub(crate) fn message(
        &mut self,
        body: &Body<'_>,
        gate: Option<&Gate>,
        action: Option<&str>,
        origin: &Origin,
    ) -> Vec<Activity> {
        let mut told = self.read(body, gate, origin);
        if let (Reader::Aep(_), Some(_), Some(action)) = (&self.reader, gate, action) {
            self.remember(action);
        }
        told.retain(|activity| match &activity.what {
            What::AskOpened { ask } => {
                if self.asked.len() < GATED {
                    self.asked.insert(ask.id.clone());
                }
                false
            }
            What::AskClosed { id, .. } => !self.asked.remove(id),
            _ => true,
        });
        told
    }

    /// The activities of what is kept of one event. That may be several events: no door takes an array for an event.
    pub(crate) fn read(
        &mut self,
        body: &Body<'_>,
        gate: Option<&Gate>,
        origin: &Origin,
    ) -> Vec<Activity> {
        if body.bytes.first() != Some(&b'[') {
            return self.event(body, gate, origin);
        }
        let events: Vec<Value> = serde_json::from_slice(body.bytes).unwrap_or_default();
        let read = |event: Value| self.event(&event.to_string().as_bytes().into(), gate, origin);
        events.into_iter().flat_map(read).collect()
    }

    fn event(&mut self, body: &Body<'_>, gate: Option<&Gate>, origin: &Origin) -> Vec<Activity> {
        match &mut self.reader {
            Reader::Agui(reader) => {
                let (mut parser, mut told) = (Parser::default(), Vec::new());
                if let Ok(document) = parser.parse(body.bytes) {
                    reader.read(document.root(), origin, &mut told);
                }
                told
            }
            Reader::Aaep(reader) => {
                body.value().map(|event| reader.read(event, origin)).unwrap_or_default()
            }
            Reader::Aep(reader) => {
                let Some(event) = body.value() else { return Vec::new() };
                let mut told = reader.read(event, gate, origin);
                let answers = event.as_object().is_some_and(aep::event::is_response);
                if answers && told.iter().any(|activity| self.decided_here(activity)) {
                    told.clear();
                }
                told
            }
        }
    }

    fn decided_here(&self, activity: &Activity) -> bool {
        match &activity.what {
            What::AskClosed { action: Some(action), .. } | What::ActionDenied { action, .. } => {
                self.gated.contains(&action.id)
            }
            _ => false,
        }
    }

    fn remember(&mut self, action: &str) {
        if self.gated.insert(action.to_owned()) {
            self.order.push_back(action.to_owned());
        }
        if self.order.len() > GATED
            && let Some(oldest) = self.order.pop_front()
        {
            self.gated.remove(&oldest);
        }
    }
}
