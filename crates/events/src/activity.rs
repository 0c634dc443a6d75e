//! The common vocabulary: what happened, whichever protocol said it.
//!
//! Readers turn a protocol's events into activities, writers turn activities into a protocol's events. A translation
//! is one protocol's reader and another's writer; there is no pair-by-pair code.
//!
//! An activity says nothing about how it is told: no wording, no frame, no numbering. What the vocabulary has no word
//! for travels as [`What::Raw`], so that nothing is lost on the way back to the protocol it came from.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::event::Protocol;

mod action;
#[cfg(test)]
pub(crate) mod arbitrary;
mod ask;
mod turns;

pub use action::{Action, ActionKind, Decision, Gate, Risk, Status};
pub use ask::{
    Answer, Ask, AskKind, Asks, Choice, EXTENSION, Outcome, Refusal, Reply, ResponseKind,
};
pub use turns::{OpenTurn, Turns};

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Activity {
    /// Where in the record it stands: ids that leave are derived from this.
    pub origin: Origin,
    /// Who did it, and in which surroundings.
    pub context: Arc<Context>,
    /// What happened.
    pub what: What,
}

/// The place of an activity in the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Banister's session id.
    pub session: Arc<str>,
    /// The record's number in its session.
    pub seq: u64,
    /// When it was recorded.
    pub time: Timestamp,
}

/// Who did it, and in which surroundings. Everything but the agent's slug may be unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Context {
    /// The agent's short name, such as `claude`.
    pub agent: String,
    /// The agent's name for people, such as `Claude Code`.
    pub agent_name: Option<String>,
    /// The agent's version.
    pub agent_version: Option<String>,
    /// The agent's own id of the session: a thread, a conversation.
    pub session: Option<String>,
    /// The agent's own id of the turn: a run, a prompt.
    pub turn: Option<String>,
    /// The subagent that did it; the agent itself where there is none.
    pub subagent: Option<String>,
    /// The native hook that told us.
    pub hook: Option<String>,
    /// The agent's permission mode, verbatim.
    pub permission_mode: Option<String>,
    /// Where the agent works.
    pub cwd: Option<String>,
    /// The model.
    pub model: Option<String>,
}

impl Context {
    /// The agent's name for people, else its slug.
    pub fn agent_title(&self) -> &str {
        self.agent_name.as_deref().unwrap_or(&self.agent)
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    /// The agent's session was opened.
    SessionStarted {
        /// Why: `startup`, `resume` and so on, verbatim.
        source: Option<String>,
    },
    /// The agent's session was closed.
    SessionEnded {
        /// Why, verbatim.
        reason: Option<String>,
    },
    /// A person asked for something.
    TurnStarted {
        /// The request, verbatim.
        request: Option<String>,
        /// The agent's own words about what it is going to do.
        summary: Option<String>,
    },
    /// The agent is done with the request, or waits with all of it.
    TurnEnded {
        /// How it ended.
        ending: Ending,
        /// The agent's own words about what it did.
        summary: Option<String>,
        /// What it gave back, where that is data.
        result: Option<Value>,
        /// What it cost.
        usage: Vec<Usage>,
    },
    /// The agent entered a state that its protocol names, such as `thinking`.
    StateChanged {
        /// The state.
        state: String,
        /// The agent's own words about it.
        summary: Option<String>,
    },
    /// The agent told how far it is.
    Progressed {
        /// Percent done, 0 to 100.
        percent: Option<f64>,
        /// The step it is at, from 1.
        step: Option<u64>,
        /// How many steps there are.
        total: Option<u64>,
        /// What it does now.
        description: Option<String>,
        /// How long it will still take.
        eta_ms: Option<u64>,
    },
    /// A step that has a name began.
    StepStarted {
        /// Its name.
        name: String,
    },
    /// A step that has a name ended.
    StepEnded {
        /// Its name.
        name: String,
    },
    /// A text of the conversation, or the next piece of one.
    Said {
        /// The id of the message the text belongs to.
        message: String,
        /// Who says it.
        role: Role,
        /// The text, or the next piece of it.
        text: String,
        /// Whether this was the last piece.
        last: bool,
    },
    /// The agent thought aloud.
    Thought {
        /// The id of the thought the text belongs to.
        message: String,
        /// The text, or the next piece of it.
        text: String,
        /// Whether this was the last piece.
        last: bool,
    },
    /// The agent made a plan or changed it. Where a person has to approve it, an ask follows.
    Planned {
        /// The plan.
        text: String,
    },
    /// The agent is writing the arguments of an action. [`What::ActionRequested`] follows with all of them.
    ActionDrafted {
        /// The action's id.
        id: String,
        /// The tool's name.
        tool: String,
        /// The next piece of the arguments.
        delta: String,
    },
    /// The agent wants to run something. Whether it may is in `gate`.
    ActionRequested {
        /// The action.
        action: Action,
        /// What the gate said; `None` where nobody was asked.
        gate: Option<Gate>,
    },
    /// An action came to its end.
    ActionEnded {
        /// The action's id.
        id: String,
        /// The tool's name.
        tool: String,
        /// How it ended.
        status: Status,
        /// What it gave.
        output: Option<Value>,
        /// What went wrong.
        error: Option<String>,
        /// How long it took.
        duration_ms: Option<u64>,
    },
    /// An action was refused before it ran.
    ActionDenied {
        /// The action.
        action: Action,
        /// Who refused: `user`, `auto-policy`, `timeout`, `agent`.
        by: String,
        /// Why.
        reason: Option<String>,
    },
    /// Something waits on a person.
    AskOpened {
        /// The ask.
        ask: Box<Ask>,
    },
    /// What waited was answered, expired or was withdrawn.
    AskClosed {
        /// The ask's id.
        id: String,
        /// The action it was about, if it was about one.
        action: Option<Action>,
        /// How it closed.
        outcome: Outcome,
        /// Who closed it: `user`, `timeout`, `agent`, or [`EXTENSION`].
        by: String,
        /// The words that came with the answer.
        message: Option<String>,
        /// What was answered to a question: a text, a yes or no, a number.
        response: Option<Value>,
        /// What to do instead of what was asked about.
        updated_input: Option<Value>,
    },
    /// The agent hands over to somebody else.
    HandedOff {
        /// Why.
        reason: String,
        /// To whom: `human`, `specialist_agent`, `escalation_queue`.
        target: Option<String>,
        /// Where that one is found.
        uri: Option<String>,
    },
    /// A subagent began to work.
    SubagentStarted {
        /// Its id.
        id: String,
        /// Its name.
        name: String,
        /// What it is for.
        description: Option<String>,
        /// The subagent that started it; the agent itself where there is none.
        parent: Option<String>,
        /// The action that started it.
        action: Option<String>,
    },
    /// A subagent is done.
    SubagentEnded {
        /// Its id.
        id: String,
        /// How it ended.
        ending: Ending,
        /// What it gave back.
        result: Option<Value>,
    },
    /// The state that agent and front end share is this.
    StateSet {
        /// All of it.
        state: Value,
    },
    /// The shared state changed.
    StatePatched {
        /// A JSON Patch (RFC 6902).
        patch: Value,
    },
    /// The conversation is these messages, in AG-UI's shape.
    MessagesSet {
        /// All of them.
        messages: Vec<Value>,
    },
    /// Something for the conversation that is no message: a card that a front end knows how to draw.
    CardShown {
        /// Its id among the messages.
        id: String,
        /// What kind of card.
        kind: String,
        /// What is on it.
        content: Map<String, Value>,
        /// Whether it takes the place of what is there under this id.
        replace: bool,
    },
    /// A card changed.
    CardPatched {
        /// Its id among the messages.
        id: String,
        /// What kind of card.
        kind: String,
        /// A JSON Patch (RFC 6902).
        patch: Value,
    },
    /// The agent made its memory of the conversation shorter.
    Compacted {
        /// Why: `manual`, `auto`, verbatim.
        trigger: Option<String>,
    },
    /// Files or folders changed.
    WorkspaceChanged {
        /// Which.
        paths: Vec<String>,
        /// Why, verbatim.
        reason: Option<String>,
    },
    /// The agent told the person something outside its answer.
    Notified {
        /// The text.
        text: String,
    },
    /// Something went wrong that did not end the turn.
    Erred {
        /// What.
        message: String,
        /// A word for it.
        code: Option<String>,
    },
    /// Something was used up in the middle of a turn.
    Used {
        /// How much of what.
        usage: Usage,
    },
    /// Something that only its protocol has a word for.
    Raw {
        /// The protocol.
        protocol: Protocol,
        /// The type as its protocol names it.
        kind: String,
        /// A text people can read, if it had one.
        text: Option<String>,
        /// The event.
        event: Value,
    },
}

/// Who says something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The agent.
    #[default]
    Assistant,
    /// A person.
    User,
    /// Who set the agent up.
    System,
    /// Who built the application around it.
    Developer,
}

impl Role {
    /// The word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Assistant => "assistant",
            Self::User => "user",
            Self::System => "system",
            Self::Developer => "developer",
        }
    }
}

/// How a turn, or a subagent's work, ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ending", rename_all = "snake_case")]
pub enum Ending {
    /// As asked.
    Completed,
    /// With an error.
    Failed {
        /// What went wrong.
        message: String,
        /// A word for it.
        code: Option<String>,
        /// Whether trying again helps: `transient`, `permanent`, `requires_user`.
        category: Option<String>,
    },
    /// Before it was done.
    Cancelled {
        /// Who stopped it: `user`, `producer`, `timeout`, `system`.
        by: String,
        /// Why.
        reason: Option<String>,
    },
    /// It is not over: everything waits for answers, and goes on with them.
    Suspended {
        /// The asks.
        asks: Vec<String>,
    },
}

impl Ending {
    /// With an error, of which no more than the message is known.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed { message: message.into(), code: None, category: None }
    }
}

/// What was used up, of one model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Who runs the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens read, cached ones included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Tokens written, reasoning included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// Both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Tokens of reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
    /// Tokens read from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<u64>,
    /// Tokens written to a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
}
