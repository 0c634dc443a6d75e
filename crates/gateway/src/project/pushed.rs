//! Pushed events become activities, by the reader of their protocol.
//!
//! Nothing that arrives in Banister's own extension fields counts here: whoever may push can write anything there. An
//! answer to an action that went through the gate is the desk's to tell: what an agent says about it is not told. Neither
//! is what it says about its own asks: they are on the desk, with records of their own.

use std::collections::{HashSet, VecDeque};

use banister_events::activity::{Activity, Gate, Origin, What};
use banister_events::event::Protocol;
use banister_events::json::View;
use banister_events::{Message, Reader, capture};
use banister_journal::Record;
use serde::Deserialize;

/// How many actions that went through the gate are remembered.
const GATED: usize = 4_096;

/// One session's pushed events on their way to activities.
#[derive(Debug, Clone)]
pub(crate) struct Pushed {
    protocol: Protocol,
    reader: Reader,
    /// Asks that the agent opened and has not closed.
    asked: HashSet<String>,
    gated: HashSet<String>,
    order: VecDeque<String>,
}

impl Pushed {
    /// What reads records of a protocol, where that is one that events are pushed in.
    pub(crate) fn of(protocol: &str) -> Option<Self> {
        Protocol::parse(protocol).map(Self::new)
    }

    /// What reads events of a protocol.
    pub(crate) fn new(protocol: Protocol) -> Self {
        Self {
            protocol,
            reader: Reader::for_protocol(protocol),
            asked: HashSet::new(),
            gated: HashSet::new(),
            order: VecDeque::new(),
        }
    }

    /// What everybody is told of the next record, whose body is parsed where it was not.
    pub(crate) fn told(
        &mut self,
        record: &Record,
        parsed: Option<&Message>,
        origin: &Origin,
    ) -> Vec<Activity> {
        let message = match parsed {
            Some(message) => message.clone(),
            None => match Message::recorded(self.protocol, record.body.clone()) {
                Ok(message) => message,
                Err(_) => return Vec::new(),
            },
        };
        let gate = record.gate.as_ref().and_then(|gate| Gate::deserialize(gate).ok());
        self.message(&message, gate.as_ref(), record.action.as_deref(), origin)
    }

    /// What everybody is told of what is kept of one event: the desk tells what is asked, and how that ended.
    pub(crate) fn message(
        &mut self,
        message: &Message,
        gate: Option<&Gate>,
        action: Option<&str>,
        origin: &Origin,
    ) -> Vec<Activity> {
        let mut told = self.read(message, gate, origin);
        if let (Protocol::Aep, Some(_), Some(action)) = (self.protocol, gate, action) {
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
        message: &Message,
        gate: Option<&Gate>,
        origin: &Origin,
    ) -> Vec<Activity> {
        let (document, mut told) = (message.document(), Vec::new());
        let root = document.root();
        if root.is_array() {
            for event in root.items() {
                self.event(event, gate, origin, &mut told);
            }
        } else {
            self.event(root, gate, origin, &mut told);
        }
        told
    }

    fn event(
        &mut self,
        event: View<'_>,
        gate: Option<&Gate>,
        origin: &Origin,
        told: &mut Vec<Activity>,
    ) {
        let before = told.len();
        self.reader.read_view(event, gate, origin, told);
        let new = told.get(before..).unwrap_or_default();
        if capture::is_response(self.protocol, event)
            && new.iter().any(|activity| self.decided_here(activity))
        {
            told.truncate(before);
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
