//! The 31 event types, each declared once.

use serde_json::{Map, Value};

use super::declare::{member, union};
use super::kinds::{Present, TIMESTAMP, list};
use super::outcome::{OUTCOME, Outcome, SUBAGENT_OUTCOME, SubagentOutcome, USAGES, Usage};
use super::patch::{PATCH, PatchOperation};
use crate::agui::input::RunInput;
use crate::agui::message::{CONTENT, Content, MESSAGE, Message, Role};
use crate::check::shape::{Field, Kind, STRING, Shape, must};
use crate::record::{Record, words};

/// Declares an event with what all of them have, and where it is `owned`, with the subagent that it can belong to.
macro_rules! event {
    (owned [$($head:tt)*] $($fields:tt)*) => {
        event! {
            run [$($head)*]
            /// The subagent that it belongs to; the run's own agent where there is none.
            may subagent_run_id as "subagentRunId": String = STRING,
            $($fields)*
        }
    };
    (run [$($head:tt)*] $($fields:tt)*) => {
        member! {
            $($head)* {
                /// When it happened, by convention in milliseconds since 1970. Never says in which order.
                may timestamp: i64 = TIMESTAMP,
                /// The event of the producer's own that it was made of.
                may raw_event as "rawEvent": Present = Kind::Some,
                /// What others add.
                may metadata: Map<String, Value> = Kind::Object,
                $($fields)*
            }
        }
    };
}

/// The subagent that an event belongs to.
macro_rules! owner {
    (owned $event:ident) => {
        $event.subagent_run_id.as_deref()
    };
    (run $event:ident) => {{
        let _ = $event;
        None
    }};
}

/// Declares the events, their types, and the choice between them.
macro_rules! events {
    ($(
        $(#[doc = $about:literal])*
        pub $whose:ident $Event:ident = $name:literal { $($fields:tt)* }
    )*) => {
        $(event! { $whose [$(#[doc = $about])* pub $Event] $($fields)* })*

        union! {
            /// An event: of one of the 31 types, or of another.
            ///
            /// Decoding keeps types, words, fields and members of unions that are not known, and writes them again;
            /// clients drop them later. An optional field that is null does not decode: the few nulls that clients
            /// tolerate are taken out before. Whether an event is right is for [`crate::check`] to say.
            ///
            /// ```
            /// use banister_events::agui::event::{Event, Type};
            /// let sent = r#"{"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"search","mood":"fine"}"#;
            /// let event = Event::parse(sent.as_bytes())?;
            /// assert_eq!(event.kind(), Some(Type::ToolCallStart));
            /// let Event::ToolCallStart(call) = &event else { panic!("another type") };
            /// assert_eq!((call.tool_call_name.as_str(), &call.parent_message_id), ("search", &None));
            /// assert_eq!(call.unknown["mood"], "fine");
            /// assert_eq!(serde_json::to_string(&event)?, sent);
            ///
            /// let event = Event::parse(br#"{"type": "PURPLE", "shade": 3}"#)?;
            /// assert!(matches!(&event, Event::Other(fields) if fields["shade"] == 3));
            /// # Ok::<(), banister_events::record::Error>(())
            /// ```
            pub closed Event by must "type" {
                $($(#[doc = $about])* $Event($Event) = $name,)*
            }
        }

        impl Event {
            /// Its type, if it is one of the 31.
            pub fn kind(&self) -> Option<Type> {
                match self {
                    $(Self::$Event(_) => Some(Type::$Event),)*
                    Self::Other(_) => None,
                }
            }

            /// When it happened, by convention in milliseconds since 1970.
            pub fn timestamp(&self) -> Option<i64> {
                match self {
                    $(Self::$Event(event) => event.timestamp,)*
                    Self::Other(_) => None,
                }
            }

            /// What others add to it.
            pub fn metadata(&self) -> Option<&Map<String, Value>> {
                match self {
                    $(Self::$Event(event) => event.metadata.as_ref(),)*
                    Self::Other(_) => None,
                }
            }

            /// The subagent that it belongs to. Events about a subagent itself belong to nobody.
            pub fn owner(&self) -> Option<&str> {
                match self {
                    $(Self::$Event(event) => owner!($whose event),)*
                    Self::Other(_) => None,
                }
            }
        }

        $(impl From<$Event> for Event {
            fn from(event: $Event) -> Self {
                Self::$Event(event)
            }
        })*

        /// An event type.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Type {
            $($(#[doc = $about])* $Event,)*
        }

        impl Type {
            /// All event types, in the order documents list them.
            pub const ALL: [Self; 31] = [$(Self::$Event),*];

            /// The name on the wire.
            pub fn name(self) -> &'static str {
                match self { $(Self::$Event => $name,)* }
            }

            /// The type with this name.
            ///
            /// ```
            /// use banister_events::agui::event::Type;
            /// assert_eq!(Type::parse("RUN_STARTED"), Some(Type::RunStarted));
            /// assert_eq!(Type::parse("runStarted"), None);
            /// ```
            pub fn parse(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$Event),)* _ => None }
            }

            /// The fields of an event of this type.
            pub(crate) fn shape(self) -> &'static Shape {
                match self {
                    $(Self::$Event => &Shape {
                        parts: &[TYPE, $Event::FIELDS],
                        closed: true,
                    },)*
                }
            }

            /// What an event of this type is, for schemas.
            pub(crate) fn about(self) -> &'static str {
                match self { $(Self::$Event => $Event::ABOUT,)* }
            }
        }
    };
}

const TYPE: &[Field] = &[must("type", STRING)];

/// Who speaks in a message that is streamed as text.
const SPEAKER: Kind = Kind::Word(&["developer", "system", "assistant", "user"]);

events! {
    /// A message begins.
    pub owned TextMessageStart = "TEXT_MESSAGE_START" {
        /// The message.
        must message_id as "messageId": String = STRING,
        /// Who speaks; the assistant where nothing is said.
        may role: Role = SPEAKER,
        /// The speaker's name.
        may name: String = STRING,
    }

    /// A piece of a message.
    pub owned TextMessageContent = "TEXT_MESSAGE_CONTENT" {
        /// The message.
        must message_id as "messageId": String = STRING,
        /// What is added to its end.
        must delta: String = STRING,
    }

    /// A message ends.
    pub owned TextMessageEnd = "TEXT_MESSAGE_END" {
        /// The message.
        must message_id as "messageId": String = STRING,
    }

    /// A piece of a message that opens and closes by itself.
    pub owned TextMessageChunk = "TEXT_MESSAGE_CHUNK" {
        /// The message; on its first piece at least.
        may message_id as "messageId": String = STRING,
        /// Who speaks; the assistant where nothing is said.
        may role: Role = SPEAKER,
        /// What is added to its end.
        may delta: String = STRING,
        /// The speaker's name.
        may name: String = STRING,
    }

    /// A tool call begins.
    pub owned ToolCallStart = "TOOL_CALL_START" {
        /// The call.
        must tool_call_id as "toolCallId": String = STRING,
        /// The tool.
        must tool_call_name as "toolCallName": String = STRING,
        /// The message that the call belongs to.
        may parent_message_id as "parentMessageId": String = STRING,
    }

    /// A piece of a call's arguments.
    pub owned ToolCallArgs = "TOOL_CALL_ARGS" {
        /// The call.
        must tool_call_id as "toolCallId": String = STRING,
        /// What is added to the end of the arguments, which are JSON only as a whole, if then.
        must delta: String = STRING,
    }

    /// A call's arguments are complete.
    pub owned ToolCallEnd = "TOOL_CALL_END" {
        /// The call.
        must tool_call_id as "toolCallId": String = STRING,
    }

    /// A piece of a call that opens and closes by itself.
    pub owned ToolCallChunk = "TOOL_CALL_CHUNK" {
        /// The call; on its first piece at least.
        may tool_call_id as "toolCallId": String = STRING,
        /// The tool; on the first piece at least.
        may tool_call_name as "toolCallName": String = STRING,
        /// The message that the call belongs to.
        may parent_message_id as "parentMessageId": String = STRING,
        /// What is added to the end of the arguments.
        may delta: String = STRING,
    }

    /// What a call gave.
    pub owned ToolCallResult = "TOOL_CALL_RESULT" {
        /// The message that this becomes.
        must message_id as "messageId": String = STRING,
        /// The call.
        must tool_call_id as "toolCallId": String = STRING,
        /// What it gave.
        must content: Content = CONTENT,
        /// The role of the message.
        may role: Role = Kind::Word(&["tool"]),
    }

    /// The whole shared state.
    pub owned StateSnapshot = "STATE_SNAPSHOT" {
        /// The state; null is one.
        must snapshot: Value = Kind::Any,
    }

    /// A change to the shared state.
    pub owned StateDelta = "STATE_DELTA" {
        /// What changes.
        must delta: Vec<PatchOperation> = PATCH,
    }

    /// All messages.
    pub run MessagesSnapshot = "MESSAGES_SNAPSHOT" {
        /// The messages, oldest first.
        must messages: Vec<Message> = list(&MESSAGE),
    }

    /// A whole activity message.
    pub owned ActivitySnapshot = "ACTIVITY_SNAPSHOT" {
        /// The message.
        must message_id as "messageId": String = STRING,
        /// What is shown, in a word of the producer's own.
        must activity_type as "activityType": String = STRING,
        /// What it shows.
        must content: Map<String, Value> = Kind::Object,
        /// Whether it takes the place of what the message showed; it does where nothing is said.
        may replace: bool = Kind::Bool,
    }

    /// A change to an activity message.
    pub owned ActivityDelta = "ACTIVITY_DELTA" {
        /// The message.
        must message_id as "messageId": String = STRING,
        /// What is shown, in a word of the producer's own.
        must activity_type as "activityType": String = STRING,
        /// What changes.
        must patch: Vec<PatchOperation> = PATCH,
    }

    /// An event of somebody else's, passed through.
    pub owned Raw = "RAW" {
        /// The event; null is one.
        must event: Value = Kind::Any,
        /// Where it comes from.
        may source: String = STRING,
    }

    /// An event of the application's own.
    pub owned Custom = "CUSTOM" {
        /// What it is called, with a prefix of the application's own.
        must name: String = STRING,
        /// What it says; null is a value.
        must value: Value = Kind::Any,
    }

    /// A run begins.
    pub run RunStarted = "RUN_STARTED" {
        /// The conversation.
        must thread_id as "threadId": String = STRING,
        /// The run.
        must run_id as "runId": String = STRING,
        /// The version that the producer speaks.
        may protocol_version as "protocolVersion": String = STRING,
        /// The run that began this one.
        may parent_run_id as "parentRunId": String = STRING,
        /// What the run was asked for.
        may input: Box<RunInput> = Kind::Record(&RunInput::SHAPE),
    }

    /// A run came to its end.
    pub run RunFinished = "RUN_FINISHED" {
        /// The conversation.
        must thread_id as "threadId": String = STRING,
        /// The run.
        must run_id as "runId": String = STRING,
        /// What came of it.
        may result: Present = Kind::Some,
        /// How it ended; well where nothing is said.
        may outcome: Outcome = OUTCOME,
        /// What it used, by model.
        may usage: Vec<Usage> = USAGES,
    }

    /// A run failed.
    pub run RunError = "RUN_ERROR" {
        /// What went wrong, for people.
        must message: String = STRING,
        /// What went wrong, in one word.
        may code: String = STRING,
        /// What the run used, by model.
        may usage: Vec<Usage> = USAGES,
    }

    /// A step begins.
    pub owned StepStarted = "STEP_STARTED" {
        /// The step.
        must step_name as "stepName": String = STRING,
    }

    /// A step ends.
    pub owned StepFinished = "STEP_FINISHED" {
        /// The step.
        must step_name as "stepName": String = STRING,
    }

    /// A span of reasoning begins.
    pub owned ReasoningStart = "REASONING_START" {
        /// The span.
        must message_id as "messageId": String = STRING,
    }

    /// A reasoning message begins.
    pub owned ReasoningMessageStart = "REASONING_MESSAGE_START" {
        /// The message.
        must message_id as "messageId": String = STRING,
        /// Always reasoning.
        must role: Role = Kind::Word(&["reasoning"]),
    }

    /// A piece of a reasoning message.
    pub owned ReasoningMessageContent = "REASONING_MESSAGE_CONTENT" {
        /// The message.
        must message_id as "messageId": String = STRING,
        /// What is added to its end.
        must delta: String = STRING,
    }

    /// A reasoning message ends.
    pub owned ReasoningMessageEnd = "REASONING_MESSAGE_END" {
        /// The message.
        must message_id as "messageId": String = STRING,
    }

    /// A piece of reasoning that opens and closes by itself.
    pub owned ReasoningMessageChunk = "REASONING_MESSAGE_CHUNK" {
        /// The message; on its first piece at least.
        may message_id as "messageId": String = STRING,
        /// What is added to its end.
        may delta: String = STRING,
    }

    /// A span of reasoning ends.
    pub owned ReasoningEnd = "REASONING_END" {
        /// The span.
        must message_id as "messageId": String = STRING,
    }

    /// Something opaque to store and return.
    pub owned ReasoningEncryptedValue = "REASONING_ENCRYPTED_VALUE" {
        /// What it belongs to.
        must subtype: Subtype = Kind::Word(Subtype::WORDS),
        /// The message or call that it belongs to.
        must entity_id as "entityId": String = STRING,
        /// The thing itself.
        must encrypted_value as "encryptedValue": String = STRING,
        /// What it is, in a word of the provider's own.
        may encrypted_value_type as "encryptedValueType": String = STRING,
    }

    /// A subagent begins.
    pub run SubagentStarted = "SUBAGENT_STARTED" {
        /// The subagent itself.
        must subagent_run_id as "subagentRunId": String = STRING,
        /// Its name.
        must name: String = STRING,
        /// What it is for.
        may description: String = STRING,
        /// The subagent that began it.
        may parent_subagent_run_id as "parentSubagentRunId": String = STRING,
        /// The call that began it.
        may parent_tool_call_id as "parentToolCallId": String = STRING,
        /// The message that began it.
        may parent_message_id as "parentMessageId": String = STRING,
    }

    /// A subagent came to its end.
    pub run SubagentFinished = "SUBAGENT_FINISHED" {
        /// The subagent itself.
        must subagent_run_id as "subagentRunId": String = STRING,
        /// What came of it.
        may result: Present = Kind::Some,
        /// How it ended; well where nothing is said.
        may outcome: SubagentOutcome = SUBAGENT_OUTCOME,
    }

    /// A subagent failed; the run goes on.
    pub run SubagentError = "SUBAGENT_ERROR" {
        /// The subagent itself.
        must subagent_run_id as "subagentRunId": String = STRING,
        /// What went wrong, for people.
        must message: String = STRING,
        /// What went wrong, in one word.
        may code: String = STRING,
    }
}

words! {
    /// What something opaque belongs to.
    pub enum Subtype {
        /// A tool call.
        ToolCall = "tool-call",
        /// A message.
        Message = "message",
    }
}
