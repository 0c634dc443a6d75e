//! The one choice of a writer by protocol, and an event on its way out.

use serde_json::Value;

use crate::aaep::voice::Voice;
use crate::aaep::write::Written;
use crate::activity::Activity;
use crate::event::Protocol;
use crate::translate::{Note, short_name};
use crate::{aaep, aep, agui};

/// Writes one session in one protocol: activities in, events out.
#[derive(Debug, Clone)]
pub enum Writer {
    /// AAEP.
    Aaep(Box<aaep::write::Writer>),
    /// AG-UI.
    Agui(Box<agui::write::Writer>),
    /// AEP.
    Aep(Box<aep::write::Writer>),
}

impl Writer {
    /// A writer for all turns of a session. `voice` is how people are spoken to, and whether facts travel along;
    /// `thread` is what AG-UI calls a session that names no thread.
    pub fn for_protocol(protocol: Protocol, voice: Voice, thread: &str) -> Self {
        match protocol {
            Protocol::Aaep => Self::Aaep(Box::new(aaep::write::Writer::with(voice))),
            Protocol::Agui => {
                let writer = agui::write::Writer::recording(thread);
                Self::Agui(Box::new(if voice.carry { writer.carrying() } else { writer }))
            }
            Protocol::Aep => {
                let writer = aep::write::Writer::default();
                Self::Aep(Box::new(if voice.carry { writer.carrying() } else { writer }))
            }
        }
    }

    /// The events of one activity.
    pub fn write(&mut self, activity: &Activity) -> Vec<WrittenEvent> {
        match self {
            Self::Aaep(writer) => {
                let mut out = Vec::new();
                writer.write_to(activity, &mut out);
                out.into_iter().map(WrittenEvent::Aaep).collect()
            }
            Self::Agui(writer) => of_values(writer.write(activity)),
            Self::Aep(writer) => of_values(writer.write(activity)),
        }
    }

    /// The stream is cut here: ends what is open.
    pub fn close(&mut self) -> Vec<WrittenEvent> {
        match self {
            Self::Aaep(writer) => {
                let mut out = Vec::new();
                writer.close_to(&mut out);
                out.into_iter().map(WrittenEvent::Aaep).collect()
            }
            Self::Agui(writer) => of_values(writer.close()),
            Self::Aep(writer) => of_values(writer.close()),
        }
    }

    /// Takes the notes on what had to be done to the stream, and how many more there were.
    pub fn notes(&mut self) -> (Vec<Note>, u64) {
        match self {
            Self::Aaep(writer) => writer.notes(),
            Self::Agui(writer) => writer.notes(),
            Self::Aep(writer) => writer.notes(),
        }
    }

    /// Whether a turn or a run is open.
    pub fn is_open(&self) -> bool {
        match self {
            Self::Aaep(writer) => writer.is_open(),
            Self::Agui(writer) => writer.is_open(),
            Self::Aep(writer) => writer.is_open(),
        }
    }

    /// Whether what is open waits for an answer, and is to be left open for it.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self, Self::Aaep(writer) if writer.is_waiting())
    }
}

fn of_values(events: Vec<Value>) -> Vec<WrittenEvent> {
    events.into_iter().map(WrittenEvent::Value).collect()
}

/// One event on its way out, in the form in which its writer made it. It is written out as it is; a [`Value`] is made of
/// it only where somebody looks into it.
#[derive(Debug, Clone)]
pub enum WrittenEvent {
    /// Any event.
    Value(Value),
    /// One of AAEP that nobody looked into yet.
    Aaep(Written),
}

impl WrittenEvent {
    /// Appends the event as JSON, on one line and without its end.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Self::Value(value) => {
                // Writing a value to memory does not fail.
                serde_json::to_writer(out, value).ok();
            }
            Self::Aaep(event) => event.write_json(out),
        }
    }

    /// The event as a value.
    pub fn into_value(self) -> Value {
        match self {
            Self::Value(value) => value,
            Self::Aaep(event) => event.into_value(),
        }
    }

    /// Looks into the event and changes it.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut Value)) {
        let mut value = std::mem::replace(self, Self::Value(Value::Null)).into_value();
        change(&mut value);
        *self = Self::Value(value);
    }

    /// Its name in the table of translations.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Value(event) => short_name(event),
            Self::Aaep(event) => event.kind(),
        }
    }
}
