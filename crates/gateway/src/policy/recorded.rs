//! Actions that were decided about before, as their records have them.

use banister_events::activity::{Action, Context};
use banister_events::aep::mapping::{Agents, Stamp};
use banister_events::event::Protocol;
use banister_events::{Message, aep};
use banister_journal::Record;
use serde::Deserialize;

use super::Gated;
use crate::project::source_of;

/// An action that was decided about.
#[derive(Debug, Clone)]
pub struct RecordedVerdict {
    /// The agent's short name.
    pub agent: String,
    /// What it wanted to do.
    pub action: Action,
    /// Where it was.
    pub cwd: Option<String>,
    /// What was said.
    pub gated: Gated,
}

impl RecordedVerdict {
    /// The verdict that was given on a record; `None` where there was none.
    pub fn gated(record: &Record) -> Option<Gated> {
        record.gate.as_ref().and_then(|gate| Gated::deserialize(gate).ok())
    }

    /// What a record was about, as far as it was kept.
    pub fn of(agents: &Agents, record: &Record) -> Option<Self> {
        let gated = Self::gated(record)?;
        let (agent, events) = events(agents, record)?;
        let is_request = |event: &&Message| {
            event.document().root().get("type").is_some_and(|kind| kind.is("action.requested"))
        };
        let request = events.iter().find(is_request)?.document();
        let Context { cwd, .. } = aep::read::context(request.root());
        Some(Self { agent, action: aep::read::action(request.root())?, cwd, gated })
    }
}

/// The events that a record's bytes are.
fn events(agents: &Agents, record: &Record) -> Option<(String, Vec<Message>)> {
    if record.source.protocol == Protocol::Aep.name() {
        let event = Message::recorded(Protocol::Aep, record.body.clone()).ok()?;
        return Some((record.source.agent.clone(), vec![event]));
    }
    let (mapping, hook) = source_of(agents, &record.source.protocol)?;
    let stamp = Stamp { session: &record.session, seq: record.seq, time: record.time };
    let payload = Message::payload(record.body.clone()).ok()?;
    let events = mapping.map(hook, payload.value(), &stamp).events.into_iter();
    let events = events.map(|event| Message::of_value(Protocol::Aep, event)).collect();
    Some((mapping.agent.clone(), events))
}
