//! The bodies of the records that the gateway itself writes, and the names that stand in `source.protocol`.
//!
//! They are read back for as long as a journal is kept: a field is added with a default, and none is ever renamed.

use banister_events::activity::{Ask, Context, Outcome, What};
use banister_events::event::Protocol;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The prefix of `source.protocol` for native hook payloads: `hook:AGENT:HOOK`.
pub(crate) const HOOK: &str = "hook:";

/// The protocol of records that the gateway's own script wrote: their body is an [`ActivityFact`]. No door takes it.
pub(crate) const ACTIVITY: &str = "activity";

/// The body of a record that is an activity already.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ActivityFact {
    /// Who did it, and where.
    pub context: Context,
    /// What happened.
    pub what: What,
}

/// The body of a record of the kind `ask`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AskFact {
    /// The ask.
    pub ask: Ask,
    /// Who asks, and where.
    pub context: Context,
    /// How long the agent itself waits: no extension goes beyond.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<Timestamp>,
    /// Who pushed it, and looks for the answer itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sender: Option<Sender>,
    /// What it stands for, if the agent hands over rather than asks.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub handoff: Option<Handoff>,
}

impl AskFact {
    /// An ask that somebody waits on, of which no more is known.
    pub fn new(ask: Ask, context: Context) -> Self {
        Self { ask, context, limit: None, sender: None, handoff: None }
    }
}

/// Where the answer to a pushed ask goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sender {
    /// The protocol that it was asked in.
    pub protocol: Protocol,
    /// The key that it came with.
    pub key: String,
    /// What the answer has to name: the reply token, the interrupt, the event that asked.
    pub token: String,
}

/// An agent hands over to somebody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handoff {
    /// Why, in the agent's words.
    pub reason: String,
    /// To whom: `human`, `specialist_agent`, `escalation_queue`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target: Option<String>,
    /// Where that one is found.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub uri: Option<String>,
}

/// The body of the record that closes an ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloseFact {
    /// The ask's id.
    pub ask: String,
    /// How it closed.
    pub outcome: Outcome,
    /// Who closed it: `user`, `timeout`, `agent`, `extension`.
    pub by: String,
    /// The words that came with it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub message: Option<String>,
    /// What was answered to a question.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub response: Option<Value>,
    /// The ask that takes its place, where its time was extended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next: Option<String>,
}

impl CloseFact {
    /// An end without words.
    pub fn new(ask: impl Into<String>, outcome: Outcome, by: &str) -> Self {
        Self {
            ask: ask.into(),
            outcome,
            by: by.to_owned(),
            message: None,
            response: None,
            next: None,
        }
    }
}

/// The body of a record of the kind `idle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IdleFact {
    /// The number of the session's last record.
    pub after: u64,
    /// How long nothing had come.
    pub silent_seconds: u64,
}

/// The names of the keys of upstreams begin like this. No key that is issued does: nobody else speaks in their sessions.
pub(crate) const UPSTREAM: &str = "upstream/";

impl Sender {
    /// Whether it is an agent behind the gateway, which the gateway itself calls again with the answer.
    pub fn is_upstream(&self) -> bool {
        self.key.starts_with(UPSTREAM)
    }
}

/// The body of a record of the kind `parked`: a run of an upstream that ended with interrupts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ParkedFact {
    /// The upstream's name.
    pub upstream: String,
    /// The run.
    pub run: String,
    /// Its interrupts, in their order.
    pub asks: Vec<ParkedAsk>,
    /// The input of the run that goes on, but for its id and the answers; null where the capture level leaves it out.
    #[serde(default)]
    pub input: Value,
}

/// An interrupt, and the ask that it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ParkedAsk {
    /// The agent's id of it.
    pub interrupt: String,
    /// The ask's id.
    pub ask: String,
    /// What a reader of the session's events calls it: an agent may use the name of an interrupt again.
    #[serde(default)]
    pub read_as: String,
}

/// The body of a record of the kind `resumption`: what became of a parked run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResumptionFact {
    /// The run that waited.
    pub run: String,
    /// The run that goes on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next: Option<String>,
    /// How far it came.
    pub stage: Stage,
}

impl ResumptionFact {
    /// A stage of a run.
    pub(crate) fn new(run: &str, next: Option<&str>, stage: Stage) -> Self {
        Self { run: run.to_owned(), next: next.map(str::to_owned), stage }
    }
}

/// How far a parked run came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stage {
    /// The agent is about to be called.
    Begun,
    /// The agent has answered.
    Started,
    /// It could not be called.
    Failed,
    /// The thread went on without the answers.
    Superseded,
}
