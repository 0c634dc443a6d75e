//! Messages of a conversation: who speaks, what is said, which tools are called.
//!
//! A message is known by its role, a part of its content by its type. Those that are not known are kept and written
//! again. Arguments of tools are texts, kept to the letter: whether they are JSON is the application's business.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::event::Present;
use super::event::declare::{Union, member, object, union};
use super::event::kinds::list;
use crate::check::shape::{Kind, STRING};
use crate::record::{record, words};

pub(super) const MESSAGE: Kind = Message::KIND;
pub(super) const CONTENT: Kind = Kind::TextOr(&Part::KIND);

words! {
    /// Who speaks.
    pub enum Role {
        /// Who built the application.
        Developer = "developer",
        /// Who runs it.
        System = "system",
        /// The agent.
        Assistant = "assistant",
        /// The person.
        User = "user",
        /// A tool, with its result.
        Tool = "tool",
        /// Something to show that is not said to the model.
        Activity = "activity",
        /// The agent, to itself.
        Reasoning = "reasoning",
    }

    /// What kind of tool call it is.
    pub enum CallType {
        /// One of a function.
        Function = "function",
    }
}

union! {
    /// A message.
    ///
    /// ```
    /// use banister_events::agui::message::{Message, UserMessage};
    /// let asked = Message::User(UserMessage::new("m1", "Which city?"));
    /// let sent = r#"{"role":"user","id":"m1","content":"Which city?"}"#;
    /// assert_eq!(serde_json::to_string(&asked)?, sent);
    /// assert_eq!(serde_json::from_str::<Message>(sent)?, asked);
    /// assert_eq!((asked.name(), asked.id()), ("user", "m1"));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub closed Message by may "role" {
        /// Who built the application tells the agent something.
        Developer(Instruction) = "developer",
        /// Who runs the application tells the agent something.
        System(Instruction) = "system",
        /// The agent speaks, calls tools, or both.
        Assistant(AssistantMessage) = "assistant",
        /// The person speaks.
        User(UserMessage) = "user",
        /// A tool gave a result.
        Tool(ToolMessage) = "tool",
        /// Something to show that is not said to the model.
        Activity(ActivityMessage) = "activity",
        /// The agent thinks.
        Reasoning(ReasoningMessage) = "reasoning",
    }

    /// A part of what is said.
    pub closed Part by may "type" {
        /// Words.
        Text(TextPart) = "text",
        /// A picture.
        Image(MediaPart) = "image",
        /// Sound.
        Audio(MediaPart) = "audio",
        /// A film.
        Video(MediaPart) = "video",
        /// A document.
        Document(MediaPart) = "document",
    }

    /// Where a part comes from.
    pub closed Source by may "type" {
        /// It is here.
        Data(DataSource) = "data",
        /// It is behind an address.
        Url(UrlSource) = "url",
        /// The provider has it.
        File(FileSource) = "file",
    }
}

/// Declares messages with what all of them have.
macro_rules! messages {
    ($(
        $(#[doc = $about:literal])*
        pub $Message:ident { $($fields:tt)* }
    )*) => {
        member! {$(
            $(#[doc = $about])*
            pub $Message {
                /// Its id.
                must id: String = STRING,
                /// The subagent that it belongs to; the run's own agent where there is none.
                may subagent_run_id as "subagentRunId": String = STRING,
                /// What others add.
                may metadata: Map<String, Value> = Kind::Object,
                $($fields)*
            }
        )*}
    };
}

messages! {
    /// A message of who built or runs the application.
    pub Instruction {
        /// The speaker's name.
        may name: String = STRING,
        /// Something opaque to store and return.
        may encrypted_value as "encryptedValue": String = STRING,
        /// What the opaque thing is; goes with one only.
        may encrypted_value_type as "encryptedValueType": String = STRING,
        /// What is said.
        must content: String = STRING,
    }

    /// A message of the agent.
    pub AssistantMessage {
        /// The speaker's name.
        may name: String = STRING,
        /// Something opaque to store and return.
        may encrypted_value as "encryptedValue": String = STRING,
        /// What the opaque thing is; goes with one only.
        may encrypted_value_type as "encryptedValueType": String = STRING,
        /// What is said.
        may content: String = STRING,
        /// The tools that are called.
        may tool_calls as "toolCalls": Vec<ToolCall> = list(&Kind::Record(&ToolCall::SHAPE)),
    }

    /// A message of the person.
    pub UserMessage {
        /// The speaker's name.
        may name: String = STRING,
        /// Something opaque to store and return.
        may encrypted_value as "encryptedValue": String = STRING,
        /// What the opaque thing is; goes with one only.
        may encrypted_value_type as "encryptedValueType": String = STRING,
        /// What is said.
        must content: Content = CONTENT,
    }

    /// The result of a tool call.
    pub ToolMessage {
        /// Something opaque to store and return.
        may encrypted_value as "encryptedValue": String = STRING,
        /// What the opaque thing is; goes with one only.
        may encrypted_value_type as "encryptedValueType": String = STRING,
        /// What the call gave.
        must content: Content = CONTENT,
        /// The call.
        must tool_call_id as "toolCallId": String = STRING,
        /// What went wrong, beside the content.
        may error: String = STRING,
    }

    /// Something to show that is not said to the model.
    pub ActivityMessage {
        /// What is shown, in a word of the producer's own.
        must activity_type as "activityType": String = STRING,
        /// What it shows.
        must content: Map<String, Value> = Kind::Object,
    }

    /// What the agent thinks.
    pub ReasoningMessage {
        /// Something opaque to store and return.
        may encrypted_value as "encryptedValue": String = STRING,
        /// What the opaque thing is; goes with one only.
        may encrypted_value_type as "encryptedValueType": String = STRING,
        /// What it thinks.
        must content: String = STRING,
    }
}

impl Message {
    /// Its id; empty where a message of a role that is not known has none.
    pub fn id(&self) -> &str {
        match self {
            Self::Developer(message) | Self::System(message) => &message.id,
            Self::Assistant(message) => &message.id,
            Self::User(message) => &message.id,
            Self::Tool(message) => &message.id,
            Self::Activity(message) => &message.id,
            Self::Reasoning(message) => &message.id,
            Self::Other(fields) => fields.get("id").and_then(Value::as_str).unwrap_or_default(),
        }
    }

    /// Who speaks.
    pub fn role(&self) -> Role {
        Role::parse(self.name())
    }
}

record! {
    /// A call of a tool.
    pub strict ToolCall {
        /// Something opaque to store and return.
        may encrypted_value as "encryptedValue": String = STRING,
        /// What the opaque thing is; goes with one only.
        may encrypted_value_type as "encryptedValueType": String = STRING,
        /// Its id.
        must id: String = STRING,
        /// What kind of call it is.
        must kind as "type": CallType = Kind::Word(CallType::WORDS),
        /// What is called.
        must function: FunctionCall = Kind::Record(&FunctionCall::SHAPE),
        /// What others add.
        may metadata: Map<String, Value> = Kind::Object,
    }
}

object! {
    /// What is called, and with what.
    pub FunctionCall {
        /// The tool.
        must name: String = STRING,
        /// The arguments, to the letter. They should be JSON, and need not be.
        must arguments: String = STRING,
    }
}

impl ToolCall {
    /// A call of a function.
    ///
    /// ```
    /// use banister_events::agui::message::ToolCall;
    /// let call = ToolCall::function("c1", "search", r#"{"q": 1"#);
    /// assert_eq!(
    ///     serde_json::to_value(&call).unwrap(),
    ///     serde_json::json!({"id": "c1", "type": "function",
    ///         "function": {"name": "search", "arguments": "{\"q\": 1"}}),
    /// );
    /// ```
    pub fn function(
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Self {
        Self {
            encrypted_value: None,
            encrypted_value_type: None,
            id: id.into(),
            kind: CallType::Function,
            function: FunctionCall::new(name, arguments),
            metadata: None,
            unknown: Map::new(),
        }
    }
}

member! {
    /// Words.
    pub TextPart {
        /// The words.
        must text: String = STRING,
        /// The part's id.
        may id: String = STRING,
        /// What others add.
        may metadata: Present = Kind::Some,
    }

    /// A picture, sound, a film or a document.
    pub MediaPart {
        /// Where it comes from.
        must source: Source = Source::KIND,
        /// The part's id.
        may id: String = STRING,
        /// What others add.
        may metadata: Present = Kind::Some,
    }

    /// Something that is here.
    pub DataSource {
        /// The thing itself, in base64.
        must value: String = STRING,
        /// Its media type.
        must mime_type as "mimeType": String = STRING,
    }

    /// Something behind an address.
    pub UrlSource {
        /// The address.
        must value: String = STRING,
        /// Its media type.
        may mime_type as "mimeType": String = STRING,
    }

    /// Something that the provider has.
    pub FileSource {
        /// The provider's handle, which is no address and tells nothing.
        must value: String = STRING,
        /// The provider.
        may provider: String = STRING,
        /// Its media type.
        may mime_type as "mimeType": String = STRING,
    }
}

/// What is said: a text, or parts.
///
/// ```
/// use banister_events::agui::message::{Content, Part, TextPart};
/// let content: Content = serde_json::from_str(
///     r#"[{"type": "text", "text": "Look: "}, {"type": "smell"}, {"type": "text", "text": "roses"}]"#,
/// )?;
/// assert_eq!(content.text(), "Look: roses");
/// assert_eq!(Content::from("roses").text(), "roses");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Content {
    /// A text.
    Text(String),
    /// Parts, in their order; there may be none.
    Parts(Vec<Part>),
}

impl Content {
    /// Its words alone, one after another.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        match self {
            Self::Text(text) => text.into(),
            Self::Parts(parts) => {
                let words = parts.iter().filter_map(|part| match part {
                    Part::Text(part) => Some(part.text.as_str()),
                    _ => None,
                });
                words.collect::<String>().into()
            }
        }
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<Part>> for Content {
    fn from(parts: Vec<Part>) -> Self {
        Self::Parts(parts)
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self::Text(text)),
            parts @ Value::Array(_) => {
                serde_json::from_value(parts).map(Self::Parts).map_err(serde::de::Error::custom)
            }
            _ => Err(serde::de::Error::custom("a text or a list of parts is expected")),
        }
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
