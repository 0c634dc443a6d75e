//! One session's records, on their way to texts that can be found.

use std::sync::Arc;

use banister_events::activity::{Gate, Origin};
use banister_events::aep::mapping::{Agents, Mapping, Stamp};
use banister_events::event::Protocol;
use banister_events::{Message, Reader, aep};
use banister_journal::{Kind, Passage, Record};
use serde::Deserialize;

use super::Assembler;
use crate::project::{Projection, source_of};

/// Reads the records of one session, in their order.
#[derive(Debug)]
pub(super) struct SessionReader {
    agents: Arc<Agents>,
    projection: Projection,
    /// Reads what a mapping made of native payloads.
    mapped: Reader,
    assembler: Assembler,
    /// The number of the last record that was read.
    seq: u64,
}

impl SessionReader {
    pub(super) fn new(agents: &Arc<Agents>) -> Self {
        Self {
            agents: Arc::clone(agents),
            projection: Projection::new(Arc::clone(agents)),
            mapped: Reader::trusting(Protocol::Aep),
            assembler: Assembler::default(),
            seq: 0,
        }
    }

    /// Whether a record is the next one.
    pub(super) fn is_next(&self, record: &Record) -> bool {
        self.seq + 1 == record.seq
    }

    /// What can be found now that this record is there. `parsed` is the message that it holds, where that is at hand.
    pub(super) fn read(&mut self, record: &Record, parsed: Option<&Message>) -> Vec<Passage> {
        self.seq = record.seq;
        let agents = Arc::clone(&self.agents);
        match source_of(&agents, &record.source.protocol) {
            Some((mapping, hook)) if record.kind == Kind::Event => {
                self.payload(record, parsed, mapping, hook)
            }
            _ => {
                let activities = self.projection.next_parsed(record, parsed);
                activities.iter().filter_map(|activity| self.assembler.add(activity)).collect()
            }
        }
    }

    /// A native payload says what its action is also where the request for that action was never seen.
    fn payload(
        &mut self,
        record: &Record,
        parsed: Option<&Message>,
        mapping: &Mapping,
        hook: &str,
    ) -> Vec<Passage> {
        let payload = match parsed {
            Some(payload) => payload.clone(),
            None => match Message::payload(record.body.clone()) {
                Ok(payload) => payload,
                Err(_) => return Vec::new(),
            },
        };
        let (session, seq, time) = (record.session.as_str(), record.seq, record.time);
        let origin = Origin { session: session.into(), seq, time };
        let gate = record.gate.as_ref().and_then(|gate| Gate::deserialize(gate).ok());
        let (mut found, mut activities) = (Vec::new(), Vec::new());
        for event in mapping.map(hook, payload.value(), &Stamp { session, seq, time }).events {
            let event = Message::of_value(Protocol::Aep, event);
            if let Some(action) = aep::read::action(event.document().root()) {
                self.assembler.remember(action);
            }
            self.mapped.read(&event, gate.as_ref(), &origin, &mut activities);
            found.extend(activities.drain(..).filter_map(|activity| self.assembler.add(&activity)));
        }
        found
    }
}
