//! AEP's events and hook responses: names, fields and words, as types and as data.
//!
//! Each object is declared once and gives a Rust type, the table that `check` compares messages with, and a JSON
//! Schema (see [`crate::schema`]). What one field demands of another, and of other messages, is code in `check` and
//! `sequence`. Null is read as absence, except where any JSON is taken.
//!
//! ```
//! use banister_events::aep::event::{Behavior, Message, ToolType};
//! let event = Message::parse(br#"{"aep_version": "0.1", "id": "evt_1", "type": "action.requested",
//!     "time": "2026-01-31T12:00:00Z", "agent": {"slug": "claude"}, "action": {"type": "tool_call", "id": "act_1"},
//!     "tool": {"type": "native", "name": "Bash"}}"#)?;
//! let Message::Event(event) = event else { panic!("a response") };
//! assert_eq!(event.tool.map(|tool| tool.kind), Some(ToolType::Native));
//!
//! let response = Message::parse(br#"{"aep_version": "0.1", "id": "rsp_1", "request_event_id": "evt_1",
//!     "time": "2026-01-31T12:00:01Z", "control": {"behavior": "deny"}}"#)?;
//! let Message::Response(response) = response else { panic!("an event") };
//! assert_eq!(response.control.behavior, Behavior::Deny);
//! # Ok::<(), banister_events::record::Error>(())
//! ```

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use super::types::Type;
use crate::check::shape::{Kind, NAME, STRING, Shape};
use crate::json::View;
use crate::record::{Error, Record, record};

mod objects;

pub use objects::{
    Action, ActionError, ActionStatus, ActionType, Agent, Attachment, AttachmentType, Behavior,
    Content, ContentType, Control, Decision, Icon, Lifecycle, Model, Outcome, Parent, Relation,
    Server, Session, Skill, SkillSource, Tool, ToolType, User, Workspace,
};
use objects::{TIME, list};

/// The version written into `aep_version`.
pub const VERSION: &str = "0.1";

/// What a hook response may tell the agent to do.
pub const BEHAVIORS: &[&str] = Behavior::WORDS;

/// Whether a message is a hook response: those travel among events and have no type.
pub fn is_response(message: &Map<String, Value>) -> bool {
    let answers = message.contains_key("control") || message.contains_key("request_event_id");
    answers && !message.contains_key("type")
}

/// [`is_response`], for a message that was parsed.
pub(crate) fn is_response_view(message: View<'_>) -> bool {
    let has = |name: &str| message.get(name).is_some();
    !has("type") && (has("control") || has("request_event_id"))
}

pub(crate) const EVENT: Shape = Event::SHAPE;
pub(crate) const RESPONSE: Shape = Response::SHAPE;

record! {
    /// Something that an agent did, wants to do, or was told.
    ///
    /// ```
    /// use banister_events::aep::event::Event;
    /// let sent = br#"{"aep_version": "0.1", "id": "evt_1", "type": "future.thing", "time": "2026-01-31T12:00:00Z",
    ///     "agent": {"slug": "codex", "mood": "fine"}, "hook": null, "extensions": {"x-acme": {"n": null}}}"#;
    /// let event = Event::parse(sent)?;
    /// assert_eq!((event.known(), event.hook.as_deref()), (None, None));
    /// assert_eq!(event.agent.unknown["mood"], "fine");
    /// let sent: serde_json::Value = serde_json::from_slice(sent)?;
    /// assert_eq!(serde_json::to_value(&event)?, sent);
    /// # Ok::<(), banister_events::record::Error>(())
    /// ```
    pub lenient Event {
        /// The version of the protocol.
        must aep_version: String = NAME,
        /// The event's own id, never used again.
        must id: String = NAME,
        /// When it happened.
        must time: String = TIME,
        /// What happened: one of the 21 canonical types, or another.
        must kind as "type": String = NAME,
        /// Which agent it is about.
        must agent: Agent = Kind::Record(&Agent::SHAPE),
        /// The agent's own name of the hook that told of it.
        may hook: String = STRING,
        /// The session it happened in.
        may session: Session = Kind::Record(&Session::SHAPE),
        /// The person at the agent.
        may user: User = Kind::Record(&User::SHAPE),
        /// Where the agent works.
        may workspace: Workspace = Kind::Record(&Workspace::SHAPE),
        /// The model that the agent runs on.
        may model: Model = Kind::Record(&Model::SHAPE),
        /// What is done.
        may action: Action = Kind::Record(&Action::SHAPE),
        /// With which tool.
        may tool: Tool = Kind::Record(&Tool::SHAPE),
        /// On which server the tool is.
        may server: Server = Kind::Record(&Server::SHAPE),
        /// With which skill.
        may skill: Skill = Kind::Record(&Skill::SHAPE),
        /// What was said.
        may content: Vec<Content> = list(&Kind::Record(&Content::SHAPE)),
        /// What was attached.
        may attachments: Vec<Attachment> = list(&Kind::Record(&Attachment::SHAPE)),
        /// What was decided about the action.
        may decision: Decision = Kind::Record(&Decision::SHAPE),
        /// Numbers under names of one's own.
        may metrics: Map<String, Value> = Kind::Each(&Kind::Number { min: f64::MIN, max: f64::MAX }),
        /// Why something began or ended.
        may lifecycle: Lifecycle = Kind::Record(&Lifecycle::SHAPE),
        /// What others add, each under a key that begins with `x-`.
        may extensions: Map<String, Value> = Kind::Object,
    }

    /// What a hook answers to an event.
    pub lenient Response {
        /// The version of the protocol.
        must aep_version: String = NAME,
        /// The response's own id.
        must id: String = NAME,
        /// When it was decided.
        must time: String = TIME,
        /// The event that it answers.
        must request_event_id: String = NAME,
        /// What the agent is told.
        must control: Control = Kind::Record(&Control::SHAPE),
        /// The action that it is about.
        may action_id: String = NAME,
        /// What was decided, for the record.
        may decision: Decision = Kind::Record(&Decision::SHAPE),
        /// What others add, each under a key that begins with `x-`.
        may extensions: Map<String, Value> = Kind::Object,
    }
}

impl Event {
    /// Decodes one event.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        crate::record::parse(bytes)
    }

    /// Its type, if it is one of the 21.
    pub fn known(&self) -> Option<Type> {
        Type::parse(&self.kind)
    }
}

impl Response {
    /// Decodes one response.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        crate::record::parse(bytes)
    }
}

/// An event, or the response to one.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Message {
    /// An event.
    Event(Box<Event>),
    /// A response.
    Response(Box<Response>),
}

impl Message {
    /// Decodes one message.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        crate::record::parse(bytes)
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut object = Map::deserialize(deserializer)?;
        let message = if is_response(&object) {
            Response::take(&mut object).map(|response| Self::Response(Box::new(response)))
        } else {
            Event::take(&mut object).map(|event| Self::Event(Box::new(event)))
        };
        message.map_err(serde::de::Error::custom)
    }
}
