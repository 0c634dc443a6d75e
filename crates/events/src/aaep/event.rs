//! AAEP's events: names, fields and words, as types and as data.
//!
//! Each object is declared once, in `envelope` and `body`, and gives a Rust type, the table that `check` compares
//! messages with, and a JSON Schema (see [`crate::schema`]). Conditions between fields and between messages are code
//! in `check` and `sequence`.
//!
//! ```
//! use banister_events::aaep::event::{Body, Event, Urgency};
//! let event = Event::parse(br#"{
//!     "@context": "https://aaep-protocol.org/context/v1", "type": "aaep:agent.handoff.requested",
//!     "event_id": "evt_1", "session_id": "sess_1", "timestamp": "2026-01-31T12:00:00.000Z",
//!     "producer": {"agent_id": "desk"}, "urgency": "critical",
//!     "reason": "The invoice is disputed.", "target_kind": "human"
//! }"#)?;
//! assert_eq!(event.envelope.urgency, Some(Urgency::Critical));
//! let Body::HandoffRequested(handoff) = &event.body else { panic!("another type") };
//! assert_eq!(handoff.target_kind.name(), "human");
//! # Ok::<(), banister_events::record::Error>(())
//! ```

use serde::ser::SerializeMap;
use serde_json::{Map, Value};

use crate::check::shape::Shape;
use crate::record::{Error, Record, object_serde};

mod body;
mod envelope;
pub(crate) mod fields;

pub use body::{
    AwaitingClarification, AwaitingConfirmation, Boundary, CancelledBy, Choice, Decision,
    ErrorCategory, HandoffRequested, OutputStreaming, Progress, ProgressUpdated, ResponseKind,
    Reversibility, RiskLevel, SessionCancelled, SessionCompleted, SessionErrored, SessionStarted,
    StateChanged, TargetKind, ToolCompleted, ToolInvoked, ToolStatus,
};
pub use envelope::{
    Context, Envelope, LocalizationHints, Producer, Summaries, TextDirection, Urgency, Verbosity,
};
pub(super) use fields::{HUMAN_TEXT, is_id, is_language};

/// The words that say how soon a person should hear of an event.
pub(super) const URGENCIES: &[&str] = Urgency::WORDS;

/// An event of somebody else's type: the envelope is AAEP's, the rest is theirs.
pub(super) const EXTENSION: Shape =
    Shape { parts: &[Envelope::FIELDS, Summaries::FIELDS, envelope::EXTENSIONS], closed: false };

/// What every event has, whatever its type.
pub(crate) const ENVELOPE: Shape =
    Shape { parts: &[Envelope::FIELDS, envelope::EXTENSIONS], closed: false };

/// The core context, first in every event's `@context`.
pub const CONTEXT: &str = "https://aaep-protocol.org/context/v1";

/// The version written into `aaep_version`.
pub const VERSION: &str = "1.0.0";

/// What `aaep:` stands for in a type written as a URI.
pub(crate) const TYPES_URI: &str = "https://aaep-protocol.org/types/";

/// A core event type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Type {
    /// A session begins.
    SessionStarted,
    /// A session did what it should.
    SessionCompleted,
    /// A session failed.
    SessionErrored,
    /// A session was stopped.
    SessionCancelled,
    /// The agent does something else now.
    StateChanged,
    /// How far the agent is.
    ProgressUpdated,
    /// A tool is about to run.
    ToolInvoked,
    /// A tool came to its end.
    ToolCompleted,
    /// A piece of the agent's answer.
    OutputStreaming,
    /// The agent waits for a yes or no.
    AwaitingConfirmation,
    /// The agent waits for an answer in words.
    AwaitingClarification,
    /// The agent hands over.
    HandoffRequested,
}

impl Type {
    /// All core types, in the order of the specification.
    pub const ALL: [Self; 12] = [
        Self::SessionStarted,
        Self::SessionCompleted,
        Self::SessionErrored,
        Self::SessionCancelled,
        Self::StateChanged,
        Self::ProgressUpdated,
        Self::ToolInvoked,
        Self::ToolCompleted,
        Self::OutputStreaming,
        Self::AwaitingConfirmation,
        Self::AwaitingClarification,
        Self::HandoffRequested,
    ];

    /// The compact name, as written into `type`.
    pub fn name(self) -> &'static str {
        match self {
            Self::SessionStarted => "aaep:agent.session.started",
            Self::SessionCompleted => "aaep:agent.session.completed",
            Self::SessionErrored => "aaep:agent.session.errored",
            Self::SessionCancelled => "aaep:agent.session.cancelled",
            Self::StateChanged => "aaep:agent.state.changed",
            Self::ProgressUpdated => "aaep:agent.progress.updated",
            Self::ToolInvoked => "aaep:agent.tool.invoked",
            Self::ToolCompleted => "aaep:agent.tool.completed",
            Self::OutputStreaming => "aaep:agent.output.streaming",
            Self::AwaitingConfirmation => "aaep:agent.awaiting.confirmation",
            Self::AwaitingClarification => "aaep:agent.awaiting.clarification",
            Self::HandoffRequested => "aaep:agent.handoff.requested",
        }
    }

    /// The core type with this name, compact or as a URI.
    ///
    /// ```
    /// use banister_events::aaep::event::Type;
    /// assert_eq!(Type::parse("aaep:agent.tool.invoked"), Some(Type::ToolInvoked));
    /// assert_eq!(Type::parse("https://aaep-protocol.org/types/agent.tool.invoked"), Some(Type::ToolInvoked));
    /// assert_eq!(Type::parse("aaep:agent.purple"), None);
    /// ```
    pub fn parse(name: &str) -> Option<Self> {
        Some(match core_name(name)? {
            "agent.session.started" => Self::SessionStarted,
            "agent.session.completed" => Self::SessionCompleted,
            "agent.session.errored" => Self::SessionErrored,
            "agent.session.cancelled" => Self::SessionCancelled,
            "agent.state.changed" => Self::StateChanged,
            "agent.progress.updated" => Self::ProgressUpdated,
            "agent.tool.invoked" => Self::ToolInvoked,
            "agent.tool.completed" => Self::ToolCompleted,
            "agent.output.streaming" => Self::OutputStreaming,
            "agent.awaiting.confirmation" => Self::AwaitingConfirmation,
            "agent.awaiting.clarification" => Self::AwaitingClarification,
            "agent.handoff.requested" => Self::HandoffRequested,
            _ => return None,
        })
    }

    /// Whether it ends a session.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::SessionCompleted | Self::SessionErrored | Self::SessionCancelled)
    }

    /// Whether its urgency has to be `critical`.
    pub fn is_critical(self) -> bool {
        matches!(
            self,
            Self::SessionErrored
                | Self::AwaitingConfirmation
                | Self::AwaitingClarification
                | Self::HandoffRequested
        )
    }
}

/// The body of each type, and the summaries that go with it.
macro_rules! bodies {
    ($($Type:ident $summaries:expr;)*) => {
        impl Type {
            /// The fields of an event of this type.
            pub(crate) fn shape(self) -> &'static Shape {
                match self {
                    $(Self::$Type => &Shape {
                        parts: &[Envelope::FIELDS, $summaries, $Type::FIELDS, envelope::EXTENSIONS],
                        closed: true,
                    },)*
                }
            }

            /// What an event of this type is, for schemas.
            pub(crate) fn about(self) -> &'static str {
                match self { $(Self::$Type => $Type::ABOUT,)* }
            }
        }

        /// What an event's type adds to the envelope and the summaries.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Body {
            $(#[doc = concat!("See [`", stringify!($Type), "`].")] $Type($Type),)*
            /// Every other field of an event whose type is somebody else's.
            Other(Map<String, Value>),
        }

        impl Body {
            /// The core type that this is the body of.
            pub fn kind(&self) -> Option<Type> {
                match self {
                    $(Self::$Type(_) => Some(Type::$Type),)*
                    Self::Other(_) => None,
                }
            }

            fn take(
                kind: Option<Type>,
                object: &mut Map<String, Value>,
            ) -> Result<Self, serde_json::Error> {
                Ok(match kind {
                    $(Some(Type::$Type) => Self::$Type($Type::take(object)?),)*
                    None => Self::Other(std::mem::take(object)),
                })
            }

            fn put<M: SerializeMap>(&self, out: &mut M) -> Result<(), M::Error> {
                match self {
                    $(Self::$Type(body) => body.put(out),)*
                    Self::Other(fields) => {
                        fields.iter().try_for_each(|(name, value)| out.serialize_entry(name, value))
                    }
                }
            }
        }
    };
}

bodies! {
    SessionStarted envelope::SPOKEN;
    SessionCompleted envelope::SPOKEN;
    SessionErrored envelope::SPOKEN;
    SessionCancelled envelope::SPOKEN;
    StateChanged Summaries::FIELDS;
    ProgressUpdated Summaries::FIELDS;
    ToolInvoked envelope::SPOKEN;
    ToolCompleted Summaries::FIELDS;
    OutputStreaming Summaries::FIELDS;
    AwaitingConfirmation Summaries::FIELDS;
    AwaitingClarification Summaries::FIELDS;
    HandoffRequested Summaries::FIELDS;
}

/// An event: of one of the twelve core types, or of somebody else's.
///
/// Decoding tolerates what the protocol asks readers to tolerate: unknown types, words, fields and extensions are
/// kept and written again. An explicit null is no value. Whether an event is right is for [`crate::check`] to say.
///
/// ```
/// use banister_events::aaep::event::{Body, Event};
/// let sent = br#"{"@context": ["https://aaep-protocol.org/context/v1", "https://acme.example/v1"],
///     "type": "acme:oven.ready", "event_id": "evt_1", "session_id": "sess_1",
///     "timestamp": "2026-01-31T12:00:00Z", "producer": {"agent_id": "baker"}, "degrees": 220}"#;
/// let event = Event::parse(sent)?;
/// let Body::Other(fields) = &event.body else { panic!("not a core type") };
/// assert_eq!(fields["degrees"], 220);
/// let sent: serde_json::Value = serde_json::from_slice(sent)?;
/// assert_eq!(event.to_json(), sent);
/// # Ok::<(), banister_events::record::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// What every event has.
    pub envelope: Envelope,
    /// The event in words.
    pub summaries: Summaries,
    /// What its type adds.
    pub body: Body,
    /// What extensions add, one object under the prefix of each.
    pub extensions: Option<Map<String, Value>>,
    /// Every field of a core type's event that is not known here, texts in further languages among them.
    pub unknown: Map<String, Value>,
}

impl Event {
    /// Decodes one event.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        crate::record::parse(bytes)
    }

    /// The event as JSON, its fields in the order that the protocol recommends.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    fn take(object: &mut Map<String, Value>) -> Result<Self, serde_json::Error> {
        let envelope = Envelope::take(object)?;
        let summaries = Summaries::take(object)?;
        let extensions = crate::record::strict(object, "extensions")?;
        let body = Body::take(Type::parse(&envelope.kind), object)?;
        Ok(Self { envelope, summaries, body, extensions, unknown: std::mem::take(object) })
    }

    fn put<M: SerializeMap>(&self, out: &mut M) -> Result<(), M::Error> {
        self.envelope.put(out)?;
        self.summaries.put(out)?;
        self.body.put(out)?;
        self.unknown.iter().try_for_each(|(name, value)| out.serialize_entry(name, value))?;
        match &self.extensions {
            Some(extensions) => out.serialize_entry("extensions", extensions),
            None => Ok(()),
        }
    }
}

object_serde!(Event);

/// The part of a type's name after `aaep:`, whichever way that is written.
pub(crate) fn core_name(name: &str) -> Option<&str> {
    name.strip_prefix("aaep:").or_else(|| name.strip_prefix(TYPES_URI))
}

/// Whether a message belongs to the conversation about events (handshake, reply, manifest) and is no event itself.
pub fn is_control(kind: &str) -> bool {
    kind.starts_with("subscription.")
        || matches!(kind, "confirmation.reply" | "clarification.reply" | "aaep:producer.manifest")
}
