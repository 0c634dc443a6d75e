//! The one choice of a reader by protocol.

use jiff::Timestamp;

use crate::activity::{Activity, Gate, Origin};
use crate::event::Protocol;
use crate::json::View;
use crate::message::Message;
use crate::{aaep, aep, agui};

/// Reads one session's messages of one protocol: messages in, activities out.
#[derive(Debug, Clone)]
pub enum Reader {
    /// AAEP.
    Aaep(Box<aaep::read::Reader>),
    /// AG-UI.
    Agui(Box<agui::read::Reader>),
    /// AEP.
    Aep(Box<aep::read::Reader>),
}

impl Reader {
    /// A reader of what others wrote: nothing counts that stands in Banister's own extension fields.
    pub fn for_protocol(protocol: Protocol) -> Self {
        match protocol {
            Protocol::Aaep => Self::Aaep(Box::default()),
            Protocol::Agui => Self::Agui(Box::default()),
            Protocol::Aep => Self::Aep(Box::default()),
        }
    }

    /// A reader that takes back what Banister's own writers added. For translations, replays and what is made here:
    /// whoever wrote the stream can say anything there.
    pub fn trusting(protocol: Protocol) -> Self {
        match protocol {
            Protocol::Aaep => Self::Aaep(Box::new(aaep::read::Reader::trusting())),
            Protocol::Agui => Self::Agui(Box::new(agui::read::Reader::trusting())),
            Protocol::Aep => Self::Aep(Box::new(aep::read::Reader::trusting())),
        }
    }

    /// The same, for a writer of a protocol: it leaves out what that one would not tell.
    #[must_use]
    pub fn for_writer(self, to: Protocol) -> Self {
        match self {
            Self::Agui(reader) if to == Protocol::Aaep => Self::Agui(Box::new(reader.briefly())),
            other => other,
        }
    }

    /// Appends the activities of one message. `gate` is what the gate recorded with it, if it went through the gate.
    pub fn read(
        &mut self,
        message: &Message,
        gate: Option<&Gate>,
        origin: &Origin,
        out: &mut Vec<Activity>,
    ) {
        self.read_view(message.document().root(), gate, origin, out);
    }

    /// [`Reader::read`], for an event of which nobody keeps a message: one of a stream that is only passed on, or one of
    /// several in one document.
    pub fn read_view(
        &mut self,
        event: View<'_>,
        gate: Option<&Gate>,
        origin: &Origin,
        out: &mut Vec<Activity>,
    ) {
        match self {
            Self::Aaep(reader) => reader.read(event, gate, origin, out),
            Self::Agui(reader) => reader.read(event, gate, origin, out),
            Self::Aep(reader) => reader.read(event, gate, origin, out),
        }
    }

    /// The stream is over: what was held comes out.
    pub fn finish(&mut self, origin: &Origin) -> Vec<Activity> {
        match self {
            Self::Aaep(reader) => reader.finish(origin),
            Self::Agui(reader) => reader.finish(origin),
            Self::Aep(reader) => reader.finish(origin),
        }
    }
}

/// When an event happened, where it says so.
pub fn time(protocol: Protocol, event: View<'_>) -> Option<Timestamp> {
    match protocol {
        Protocol::Aaep => aaep::read::time(event),
        Protocol::Agui => agui::read::time(event),
        Protocol::Aep => aep::read::time(event),
    }
}

/// Reads an event that is a value: for tests.
#[cfg(test)]
pub(crate) trait ReadValue {
    fn read_value(
        &mut self,
        event: &serde_json::Value,
        gate: Option<&Gate>,
        origin: &Origin,
    ) -> Vec<Activity>;
}

#[cfg(test)]
macro_rules! read_value {
    ($($reader:ty),*) => {
        $(impl ReadValue for $reader {
            fn read_value(
                &mut self,
                event: &serde_json::Value,
                gate: Option<&Gate>,
                origin: &Origin,
            ) -> Vec<Activity> {
                let (text, nodes) = crate::json::Nodes::compose(event);
                let mut out = Vec::new();
                self.read(nodes.document(&text).root(), gate, origin, &mut out);
                out
            }
        })*
    };
}

#[cfg(test)]
read_value!(aaep::read::Reader, agui::read::Reader, aep::read::Reader);
