//! What has to be known of a message to keep it: whose it is, whether it may ask something, and whether it is a piece of
//! a text.
//!
//! Only names on the wire are known here. What is kept, and under which name, is decided by whoever keeps it.

use std::borrow::Cow;

use crate::aaep;
use crate::aep::event::is_response_view;
use crate::event::Protocol;
use crate::json::View;

/// What a message says about itself. Nothing here was checked.
#[derive(Debug, Clone, Default)]
pub struct MessageHeader<'a> {
    /// The type of the event.
    pub kind: Option<Cow<'a, str>>,
    /// The agent that it is of; AG-UI names none.
    pub agent: Option<Cow<'a, str>>,
    /// The session or thread that it belongs to.
    pub session: Option<Cow<'a, str>>,
    /// Where that stands.
    pub session_pointer: &'static str,
    /// Its own id; AG-UI's events have none.
    pub id: Option<Cow<'a, str>>,
    /// The turn or run that it belongs to.
    pub turn: Option<Cow<'a, str>>,
    /// The action that it is about.
    pub action: Option<Cow<'a, str>>,
    /// The event that it is the response to.
    pub request: Option<Cow<'a, str>>,
    /// Whether it subscribes or answers, and is no event.
    pub is_control: bool,
}

impl<'a> MessageHeader<'a> {
    /// What a message says about itself.
    ///
    /// ```
    /// use banister_events::capture::MessageHeader;
    /// use banister_events::event::Protocol;
    /// let mut parser = banister_events::json::Parser::default();
    /// let event = parser.parse(br#"{"type": "agent.stop", "id": "evt_1", "session": {"id": "s1"}}"#)?;
    /// let header = MessageHeader::of(Protocol::Aep, event.root());
    /// assert_eq!(header.session.as_deref(), Some("s1"));
    /// # Ok::<(), banister_events::json::Error>(())
    /// ```
    pub fn of(protocol: Protocol, event: View<'a>) -> Self {
        let word = |path: &str| event.text(path).filter(|word| !word.is_empty());
        let kind = word("/type");
        match protocol {
            Protocol::Aaep => Self {
                is_control: kind.as_deref().is_some_and(aaep::event::is_control),
                kind,
                agent: word("/producer/agent_id"),
                session: word("/session_id"),
                session_pointer: "/session_id",
                id: word("/event_id"),
                turn: word("/session_id"),
                action: word("/call_id"),
                ..Self::default()
            },
            Protocol::Agui => Self {
                kind,
                session: word("/threadId"),
                session_pointer: "/threadId",
                turn: word("/runId"),
                action: word("/toolCallId"),
                ..Self::default()
            },
            Protocol::Aep => Self {
                kind,
                agent: word("/agent/slug"),
                session: word("/session/id").or_else(|| word("/session/conversation_id")),
                session_pointer: "/session/id",
                id: word("/id"),
                turn: word("/session/turn_id"),
                action: word("/action/id").or_else(|| word("/action_id")),
                request: word("/request_event_id").filter(|_| event.get("type").is_none()),
                ..Self::default()
            },
        }
    }
}

/// Whether a message is the response to another, and no event.
pub fn is_response(protocol: Protocol, message: View<'_>) -> bool {
    protocol == Protocol::Aep && is_response_view(message)
}

/// Whether an event may ask something.
pub fn may_ask(protocol: Protocol, event: View<'_>) -> bool {
    let kind = event.get("type").and_then(View::as_str).unwrap_or_default();
    match protocol {
        Protocol::Aaep => kind.contains("awaiting.") || kind.contains("handoff."),
        Protocol::Agui => kind == "RUN_FINISHED" && event.get("outcome").is_some(),
        Protocol::Aep => kind.contains("question"),
    }
}

/// What a text is that comes in pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// A message.
    Text,
    /// A thought.
    Reasoning,
    /// The arguments of a tool call: one whole.
    Arguments,
    /// The output of a turn.
    Output,
}

/// What an event does to texts that come in pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextStep {
    /// A text begins.
    Begins(TextKind),
    /// A piece of a text.
    Adds {
        /// What the text is.
        kind: TextKind,
        /// The field that the piece stands in.
        field: &'static str,
        /// Whether the text ends with whatever comes next.
        loose: bool,
        /// Whether the text ends with this piece.
        ends: bool,
    },
    /// A text ends.
    Ends(TextKind),
    /// All texts end.
    EndsAll,
    /// It says a part of what another event says whole.
    Repeated,
    /// Nothing.
    Nothing,
}

impl TextStep {
    /// What an event does to texts.
    pub fn of(protocol: Protocol, event: View<'_>) -> Self {
        let kind = event.get("type").and_then(View::as_str).unwrap_or_default();
        match protocol {
            Protocol::Agui => Self::of_agui(&kind),
            Protocol::Aaep if kind == "aaep:agent.output.streaming" => {
                let ends = event.get("complete").and_then(View::as_bool) == Some(true);
                Self::Adds { kind: TextKind::Output, field: "chunk", loose: false, ends }
            }
            Protocol::Aaep if kind.starts_with("aaep:agent.session.") => Self::EndsAll,
            // The whole follows.
            Protocol::Aep if kind == "model.delta" => Self::Repeated,
            Protocol::Aaep | Protocol::Aep => Self::Nothing,
        }
    }

    fn of_agui(kind: &str) -> Self {
        let adds = |kind, loose| Self::Adds { kind, field: "delta", loose, ends: false };
        match kind {
            "TEXT_MESSAGE_START" => Self::Begins(TextKind::Text),
            "TEXT_MESSAGE_CONTENT" => adds(TextKind::Text, false),
            "TEXT_MESSAGE_CHUNK" => adds(TextKind::Text, true),
            "TEXT_MESSAGE_END" => Self::Ends(TextKind::Text),
            "REASONING_MESSAGE_START" | "THINKING_TEXT_MESSAGE_START" => {
                Self::Begins(TextKind::Reasoning)
            }
            "REASONING_MESSAGE_CONTENT" | "THINKING_TEXT_MESSAGE_CONTENT" => {
                adds(TextKind::Reasoning, false)
            }
            "REASONING_MESSAGE_CHUNK" => adds(TextKind::Reasoning, true),
            "REASONING_MESSAGE_END" | "THINKING_TEXT_MESSAGE_END" => {
                Self::Ends(TextKind::Reasoning)
            }
            "TOOL_CALL_START" => Self::Begins(TextKind::Arguments),
            "TOOL_CALL_ARGS" => adds(TextKind::Arguments, false),
            "TOOL_CALL_CHUNK" => adds(TextKind::Arguments, true),
            "TOOL_CALL_END" => Self::Ends(TextKind::Arguments),
            "RUN_STARTED" | "RUN_FINISHED" | "RUN_ERROR" => Self::EndsAll,
            _ => Self::Nothing,
        }
    }
}

/// What the text is called that an event is about; empty where the event does not say.
pub fn text_name(protocol: Protocol, event: View<'_>) -> Cow<'_, str> {
    let names: &[&str] = match protocol {
        Protocol::Agui => &["messageId", "toolCallId"],
        Protocol::Aaep => &["output_id", "session_id"],
        Protocol::Aep => &["id"],
    };
    names.iter().find_map(|name| event.get(name)?.as_str()).unwrap_or_default()
}
