//! AAEP's names, fields and words, as data.
//!
//! The tables say what the twelve core types carry; `check` compares messages with them. Conditions between fields
//! and between messages are code in `check` and `sequence`.

use crate::check::shape::Shape;

mod fields;

pub(super) use fields::{EXTENSION, HUMAN_TEXT, URGENCIES, is_id, is_language};

/// The core context, first in every event's `@context`.
pub const CONTEXT: &str = "https://aaep-protocol.org/context/v1";

/// The version written into `aaep_version`.
pub const VERSION: &str = "1.0.0";

/// What `aaep:` stands for in a type written as a URI.
const TYPES_URI: &str = "https://aaep-protocol.org/types/";

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
        let local = core_name(name)?;
        Self::ALL.into_iter().find(|kind| core_name(kind.name()) == Some(local))
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

    /// The fields of an event of this type.
    pub(super) fn shape(self) -> &'static Shape {
        match self {
            Self::SessionStarted => &fields::SESSION_STARTED,
            Self::SessionCompleted => &fields::SESSION_COMPLETED,
            Self::SessionErrored => &fields::SESSION_ERRORED,
            Self::SessionCancelled => &fields::SESSION_CANCELLED,
            Self::StateChanged => &fields::STATE_CHANGED,
            Self::ProgressUpdated => &fields::PROGRESS_UPDATED,
            Self::ToolInvoked => &fields::TOOL_INVOKED,
            Self::ToolCompleted => &fields::TOOL_COMPLETED,
            Self::OutputStreaming => &fields::OUTPUT_STREAMING,
            Self::AwaitingConfirmation => &fields::AWAITING_CONFIRMATION,
            Self::AwaitingClarification => &fields::AWAITING_CLARIFICATION,
            Self::HandoffRequested => &fields::HANDOFF_REQUESTED,
        }
    }
}

/// The part of a type's name after `aaep:`, whichever way that is written.
pub(super) fn core_name(name: &str) -> Option<&str> {
    name.strip_prefix("aaep:").or_else(|| name.strip_prefix(TYPES_URI))
}

/// Whether a message belongs to the conversation about events (handshake, reply, manifest) and is no event itself.
pub fn is_control(kind: &str) -> bool {
    kind.starts_with("subscription.")
        || matches!(kind, "confirmation.reply" | "clarification.reply" | "aaep:producer.manifest")
}
