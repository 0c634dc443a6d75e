//! One session on its way to those who watch: its projection, its turns, and the writer of a protocol.
//!
//! The state of a channel follows from the records it has seen, so it can be thrown away at any time and made again.

use banister_events::activity::{Activity, OpenTurn, Turns};
use banister_events::event::Protocol;
use banister_events::{Message, Writer, Written, aaep};
use banister_journal::Record;
use serde_json::Value;

use crate::project::Projection;

/// What a channel makes of records.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Rendering {
    /// Activities only: whoever takes them has a writer of its own.
    Activities,
    /// Events of a protocol, with sentences in a language.
    Events {
        /// AAEP or AEP.
        protocol: Protocol,
        /// The tag of the language.
        language: String,
    },
}

impl Rendering {
    /// Whether a turn that began without a request counts as one. AEP has no event that such a turn begins with.
    fn has_unrequested_turns(&self) -> bool {
        !matches!(self, Self::Events { protocol: Protocol::Aep, .. })
    }
}

/// What a record became.
#[derive(Debug, Default)]
pub(crate) struct Projected {
    pub(crate) activities: Vec<Activity>,
    /// The events, where the rendering has them.
    pub(crate) events: Vec<Value>,
    /// Where the turn begins that began with this record.
    pub(crate) turn_start: Option<TurnStart>,
}

/// Where in a record a turn begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TurnStart {
    /// The number of its first activity.
    pub(crate) activity: usize,
    /// The number of its first event.
    pub(crate) event: usize,
}

/// One session.
#[derive(Debug, Clone)]
pub(crate) struct Channel {
    projection: Projection,
    turns: Turns,
    /// None where activities are wanted.
    writer: Option<Writer>,
    /// Whether a turn that began without a request counts.
    unrequested: bool,
}

impl Channel {
    /// A channel that has seen nothing yet.
    pub(crate) fn new(projection: Projection, rendering: &Rendering) -> Self {
        let unrequested = rendering.has_unrequested_turns();
        let writer = match rendering {
            Rendering::Activities => None,
            Rendering::Events { protocol, language } => {
                let voice = aaep::voice::Voice::live(language);
                // A thread of AG-UI has a writer of its own: nobody follows all sessions in it.
                let protocol = if *protocol == Protocol::Agui { Protocol::Aaep } else { *protocol };
                Some(Writer::for_protocol(protocol, voice, ""))
            }
        };
        Self { projection, turns: Turns::default(), writer, unrequested }
    }

    /// What the session's next record becomes.
    pub(crate) fn next(&mut self, record: &Record, parsed: Option<&Message>) -> Projected {
        let activities = self.projection.next_parsed(record, parsed);
        let mut projected = Projected { activities, ..Projected::default() };
        for (number, activity) in projected.activities.iter().enumerate() {
            let began = self.turns.add(activity) && self.open_turn().is_some();
            let written = self.writer.as_mut().map(|writer| writer.write(activity));
            let written = written.into_iter().flatten();
            let mut events: Vec<Value> = written.map(Written::into_value).collect();
            if began {
                // Events that end the turn before this one come first.
                let first = events.iter().position(is_end).map_or(0, |end| end + 1);
                let event = projected.events.len() + first;
                projected.turn_start = Some(TurnStart { activity: number, event });
            }
            projected.events.append(&mut events);
        }
        projected
    }

    /// The turn that is open.
    pub(crate) fn open_turn(&self) -> Option<OpenTurn> {
        self.turns.open().filter(|turn| turn.requested || self.unrequested)
    }
}

/// Whether an AAEP event is the end of a turn. AEP does not end a turn where the next one begins.
fn is_end(event: &Value) -> bool {
    let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
    aaep::event::Type::parse(kind).is_some_and(aaep::event::Type::is_terminal)
}
