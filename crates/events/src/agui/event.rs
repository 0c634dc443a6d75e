//! AG-UI's events: names, fields and words, as types and as data.
//!
//! Each of the 31 types is declared once and gives a Rust type, the table that `check` compares events with, and a JSON
//! Schema (see [`crate::schema`]). Order is code in `sequence`. Ids are opaque texts, and may be empty.
//!
//! ```
//! use banister_events::agui::event::{Event, RunStarted, TextMessageContent, PROTOCOL_VERSION};
//! let mut started = RunStarted::new("thread-1", "run-1");
//! started.protocol_version = Some(PROTOCOL_VERSION.into());
//! let events: [Event; 2] = [started.into(), TextMessageContent::new("m1", "Hel").into()];
//! let lines = events.map(|event| serde_json::to_string(&event).unwrap());
//! assert_eq!(lines, [
//!     r#"{"type":"RUN_STARTED","threadId":"thread-1","runId":"run-1","protocolVersion":"1.0"}"#,
//!     r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"Hel"}"#,
//! ]);
//! ```

use crate::record::Error;

#[cfg(test)]
pub(super) mod arbitrary;
pub(super) mod declare;
pub(super) mod kinds;
mod outcome;
mod patch;
mod types;

pub use kinds::Present;
pub use outcome::{
    Interrupt, Interrupted, Outcome, Plain, SubagentOutcome, Success, Suspended, Usage,
};
pub use patch::{PatchFrom, PatchOperation, PatchPath, PatchValue};
pub use types::{
    ActivityDelta, ActivitySnapshot, Custom, Event, MessagesSnapshot, Raw, ReasoningEncryptedValue,
    ReasoningEnd, ReasoningMessageChunk, ReasoningMessageContent, ReasoningMessageEnd,
    ReasoningMessageStart, ReasoningStart, RunError, RunFinished, RunStarted, StateDelta,
    StateSnapshot, StepFinished, StepStarted, SubagentError, SubagentFinished, SubagentStarted,
    Subtype, TextMessageChunk, TextMessageContent, TextMessageEnd, TextMessageStart, ToolCallArgs,
    ToolCallChunk, ToolCallEnd, ToolCallResult, ToolCallStart, Type,
};

/// The version a producer declares in `RUN_STARTED.protocolVersion`.
pub const PROTOCOL_VERSION: &str = "1.0";

impl Event {
    /// Decodes one event.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        crate::record::parse(bytes)
    }
}

/// Types that 1.0 retired, which clients translate for a while.
pub(super) const RETIRED: &[(&str, &str)] = &[
    ("THINKING_START", "REASONING_START"),
    ("THINKING_END", "REASONING_END"),
    ("THINKING_TEXT_MESSAGE_START", "REASONING_MESSAGE_START"),
    ("THINKING_TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT"),
    ("THINKING_TEXT_MESSAGE_END", "REASONING_MESSAGE_END"),
];

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;
