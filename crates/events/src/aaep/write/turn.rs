//! What is open in one turn.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::activity::{Action, Gate};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Turn {
    pub(super) session_id: String,
    pub(super) sequence: u64,
    pub(super) state: State,
    pub(super) last: Timestamp,
    /// Action id → the call that was announced.
    pub(super) tools: BTreeMap<String, Call>,
    /// Actions that may not run before a person says so.
    pub(super) held: BTreeMap<String, (Action, Gate)>,
    /// Actions that were refused: an end that is reported all the same is not announced.
    pub(super) refused: BTreeSet<String>,
    /// Ask id → the action it asks to confirm: an answer to it confirms nothing else.
    pub(super) waits: BTreeMap<String, Option<String>>,
    /// What was asked since nothing waited, and how often.
    pub(super) words: BTreeMap<String, u32>,
    pub(super) output: Option<Output>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) id: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Output {
    pub(super) message: String,
    pub(super) id: String,
    pub(super) position: usize,
    /// The last character, held back while more of it may come.
    #[serde(default)]
    pub(super) tail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum State {
    Idle,
    Thinking,
    CallingTool,
    WritingOutput,
    AwaitingInput,
    Deciding,
}

impl State {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Thinking => "thinking",
            Self::CallingTool => "calling_tool",
            Self::WritingOutput => "writing_output",
            Self::AwaitingInput => "awaiting_input",
            Self::Deciding => "deciding",
        }
    }
}
