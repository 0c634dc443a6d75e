//! AG-UI's names, fields and words, as data.
//!
//! The tables say what the 31 event types carry, down to messages, content parts, interrupts and patches; `check`
//! compares events with them. Order is code in `sequence`.

use crate::check::shape::Shape;

mod fields;

/// The version a producer declares in `RUN_STARTED.protocolVersion`.
pub const PROTOCOL_VERSION: &str = "1.0";

macro_rules! types {
    ($($variant:ident = $name:literal $shape:ident $doc:literal;)*) => {
        /// An event type.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Type {
            $(#[doc = $doc] $variant,)*
        }

        impl Type {
            /// All event types, in the order documents list them.
            pub const ALL: [Self; 31] = [$(Self::$variant),*];

            /// The name on the wire.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The type with this name.
            ///
            /// ```
            /// use banister_events::agui::event::Type;
            /// assert_eq!(Type::parse("RUN_STARTED"), Some(Type::RunStarted));
            /// assert_eq!(Type::parse("runStarted"), None);
            /// ```
            pub fn parse(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }

            /// The fields of an event of this type.
            pub(crate) fn shape(self) -> &'static Shape {
                match self { $(Self::$variant => &fields::$shape,)* }
            }
        }
    };
}

types! {
    TextMessageStart = "TEXT_MESSAGE_START" TEXT_MESSAGE_START "A message begins.";
    TextMessageContent = "TEXT_MESSAGE_CONTENT" MESSAGE_DELTA "A piece of a message.";
    TextMessageEnd = "TEXT_MESSAGE_END" MESSAGE_ID "A message ends.";
    TextMessageChunk = "TEXT_MESSAGE_CHUNK" TEXT_MESSAGE_CHUNK "A piece of a message that opens and closes by itself.";
    ToolCallStart = "TOOL_CALL_START" TOOL_CALL_START "A tool call begins.";
    ToolCallArgs = "TOOL_CALL_ARGS" TOOL_CALL_ARGS "A piece of a call's arguments.";
    ToolCallEnd = "TOOL_CALL_END" TOOL_CALL_END "A call's arguments are complete.";
    ToolCallChunk = "TOOL_CALL_CHUNK" TOOL_CALL_CHUNK "A piece of a call that opens and closes by itself.";
    ToolCallResult = "TOOL_CALL_RESULT" TOOL_CALL_RESULT "What a call gave.";
    StateSnapshot = "STATE_SNAPSHOT" STATE_SNAPSHOT "The whole shared state.";
    StateDelta = "STATE_DELTA" STATE_DELTA "A change to the shared state.";
    MessagesSnapshot = "MESSAGES_SNAPSHOT" MESSAGES_SNAPSHOT "All messages.";
    ActivitySnapshot = "ACTIVITY_SNAPSHOT" ACTIVITY_SNAPSHOT "A whole activity message.";
    ActivityDelta = "ACTIVITY_DELTA" ACTIVITY_DELTA "A change to an activity message.";
    Raw = "RAW" RAW "An event of somebody else's, passed through.";
    Custom = "CUSTOM" CUSTOM "An event of the application's own.";
    RunStarted = "RUN_STARTED" RUN_STARTED "A run begins.";
    RunFinished = "RUN_FINISHED" RUN_FINISHED "A run came to its end.";
    RunError = "RUN_ERROR" RUN_ERROR "A run failed.";
    StepStarted = "STEP_STARTED" STEP "A step begins.";
    StepFinished = "STEP_FINISHED" STEP "A step ends.";
    ReasoningStart = "REASONING_START" MESSAGE_ID "A span of reasoning begins.";
    ReasoningMessageStart = "REASONING_MESSAGE_START" REASONING_MESSAGE_START "A reasoning message begins.";
    ReasoningMessageContent = "REASONING_MESSAGE_CONTENT" MESSAGE_DELTA "A piece of a reasoning message.";
    ReasoningMessageEnd = "REASONING_MESSAGE_END" MESSAGE_ID "A reasoning message ends.";
    ReasoningMessageChunk = "REASONING_MESSAGE_CHUNK" REASONING_MESSAGE_CHUNK "A piece of reasoning that opens and closes by itself.";
    ReasoningEnd = "REASONING_END" MESSAGE_ID "A span of reasoning ends.";
    ReasoningEncryptedValue = "REASONING_ENCRYPTED_VALUE" REASONING_ENCRYPTED_VALUE "Something opaque to store and return.";
    SubagentStarted = "SUBAGENT_STARTED" SUBAGENT_STARTED "A subagent begins.";
    SubagentFinished = "SUBAGENT_FINISHED" SUBAGENT_FINISHED "A subagent came to its end.";
    SubagentError = "SUBAGENT_ERROR" SUBAGENT_ERROR "A subagent failed.";
}

/// Types that 1.0 retired, which clients translate for a while.
pub(super) const RETIRED: &[(&str, &str)] = &[
    ("THINKING_START", "REASONING_START"),
    ("THINKING_END", "REASONING_END"),
    ("THINKING_TEXT_MESSAGE_START", "REASONING_MESSAGE_START"),
    ("THINKING_TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT"),
    ("THINKING_TEXT_MESSAGE_END", "REASONING_MESSAGE_END"),
];

/// Fields whose null clients remove with a warning; any other null ends the run.
pub(super) const TOLERATED_NULLS: &[&str] =
    &["/parentMessageId", "/outcome", "/rawEvent", "/result"];
