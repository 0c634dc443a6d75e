//! Actions that were decided about before, as their records have them.

use banister_events::activity::{Action, Context};
use banister_events::aep;
use banister_events::aep::mapping::{Agents, Stamp};
use banister_events::event::Protocol;
use banister_journal::Record;
use serde::Deserialize;
use serde_json::Value;

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
        let request = events
            .iter()
            .find(|event| event.get("type").and_then(Value::as_str) == Some("action.requested"))?;
        let Context { cwd, .. } = aep::read::context(request);
        Some(Self { agent, action: aep::read::action(request)?, cwd, gated })
    }
}

/// The events that a record's bytes are.
fn events(agents: &Agents, record: &Record) -> Option<(String, Vec<Value>)> {
    let body: Value = serde_json::from_slice(&record.body).ok()?;
    if record.source.protocol == Protocol::Aep.name() {
        return Some((record.source.agent.clone(), vec![body]));
    }
    let (mapping, hook) = source_of(agents, &record.source.protocol)?;
    let stamp = Stamp { session: &record.session, seq: record.seq, time: record.time };
    Some((mapping.agent.clone(), mapping.map(hook, &body, &stamp).events))
}
