//! The one choice of a writer by protocol.

use crate::aaep::voice::Voice;
use crate::activity::Activity;
use crate::event::Protocol;
use crate::translate::Note;
use crate::written::Written;
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
    pub fn write(&mut self, activity: &Activity) -> Vec<Written> {
        let mut out = Vec::new();
        self.write_to(activity, &mut out);
        out
    }

    /// Appends the events of one activity.
    pub(crate) fn write_to(&mut self, activity: &Activity, out: &mut Vec<Written>) {
        match self {
            Self::Aaep(writer) => writer.write_to(activity, out),
            Self::Agui(writer) => writer.write_to(activity, out),
            Self::Aep(writer) => writer.write_to(activity, out),
        }
    }

    /// The stream is cut here: ends what is open.
    pub fn close(&mut self) -> Vec<Written> {
        let mut out = Vec::new();
        match self {
            Self::Aaep(writer) => writer.close_to(&mut out),
            Self::Agui(writer) => writer.close_to(&mut out),
            Self::Aep(writer) => writer.close_to(&mut out),
        }
        out
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
