//! The common vocabulary: what happened, whichever protocol said it.
//!
//! Readers turn a protocol's events into activities, writers turn activities into a protocol's events. A translation
//! is one protocol's reader and another's writer; there is no pair-by-pair code.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(test)]
pub(crate) mod arbitrary;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Activity {
    /// Where in the record it stands: ids that leave are derived from this.
    pub origin: Origin,
    /// Who did it, and in which surroundings.
    pub context: Context,
    /// What happened.
    pub what: What,
}

/// The place of an activity in the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Banister's session id.
    pub session: String,
    /// The record's number in its session.
    pub seq: u64,
    /// When it was recorded.
    pub time: Timestamp,
}

/// Who did it, and in which surroundings. Everything but the agent's slug may be unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// The agent's short name, such as `claude`.
    pub agent: String,
    /// The agent's name for people, such as `Claude Code`.
    pub agent_name: Option<String>,
    /// The agent's version.
    pub agent_version: Option<String>,
    /// The agent's own id of the session.
    pub session: Option<String>,
    /// The agent's own id of the turn.
    pub turn: Option<String>,
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
    },
    /// The agent is done with the request.
    TurnEnded {
        /// How it ended.
        ending: Ending,
    },
    /// The agent said something to the person.
    Said {
        /// The id of the message the text belongs to.
        message: String,
        /// The text, or the next piece of it.
        text: String,
        /// Whether this was the last piece.
        last: bool,
    },
    /// The agent thought aloud.
    Thought {
        /// The text.
        text: String,
    },
    /// The agent told how far it is.
    Progressed {
        /// Percent done, 0 to 100.
        percent: Option<f64>,
        /// What it does now.
        description: Option<String>,
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
        ask: Ask,
    },
    /// What waited was answered, expired or was withdrawn.
    AskClosed {
        /// The ask's id.
        id: String,
        /// The action it was about, if it was about one.
        action: Option<Action>,
        /// How it closed.
        outcome: Outcome,
        /// Who closed it: `user`, `timeout`, `agent`.
        by: String,
        /// The words that came with the answer.
        message: Option<String>,
    },
    /// The agent hands over to somebody else.
    HandedOff {
        /// Why.
        reason: String,
    },
    /// The agent told the person something outside its answer.
    Notified {
        /// The text.
        text: String,
    },
    /// Something this vocabulary has no word for yet.
    Other {
        /// The type as its protocol names it.
        kind: String,
        /// A text people can read, if it had one.
        text: Option<String>,
    },
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ending", rename_all = "snake_case")]
pub enum Ending {
    /// As asked.
    Completed,
    /// With an error.
    Failed {
        /// What went wrong.
        message: String,
    },
    /// Before it was done.
    Cancelled {
        /// Who stopped it: `user`, `producer`, `timeout`, `system`.
        by: String,
    },
}

/// One tool call, skill use or subagent spawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// The id that joins request, answer and result.
    pub id: String,
    /// What kind of action.
    pub kind: ActionKind,
    /// The tool's name.
    pub tool: String,
    /// The server behind the tool, for MCP.
    pub server: Option<String>,
    /// The tool's name on the wire, where it differs.
    pub original_name: Option<String>,
    /// The arguments, verbatim.
    pub input: Option<Value>,
    /// The agent's own reason. Shown as the agent's words, never as ours.
    pub rationale: Option<String>,
}

impl Action {
    /// An action of which no more than the end was seen.
    pub fn unseen(id: &str, tool: &str) -> Self {
        Self {
            id: id.to_owned(),
            kind: ActionKind::Tool,
            tool: tool.to_owned(),
            server: None,
            original_name: None,
            input: None,
            rationale: None,
        }
    }

    /// The tool's name as a person should know it: with the server it belongs to, if it is not the agent's own.
    pub fn title(&self) -> String {
        match &self.server {
            Some(server) => format!("{server}/{}", self.tool),
            None => self.tool.clone(),
        }
    }

    /// The first line of [`Action::subject`], for where there is room for one.
    pub fn headline(&self) -> String {
        let subject = self.subject();
        let mut lines = subject.lines();
        let first = lines.next().unwrap_or_default().to_owned();
        if lines.next().is_some() { format!("{first} …") } else { first }
    }

    /// What exactly would be done: the telling argument first, then every other one. It is rendered from the input,
    /// never from the agent's summary, and leaves nothing out but the agent's own description.
    ///
    /// ```
    /// use banister_events::activity::Action;
    /// let mut action = Action::unseen("1", "Write");
    /// action.input = Some(serde_json::json!({ "file_path": "a.txt", "content": "hello" }));
    /// assert_eq!(action.subject(), "a.txt\ncontent: hello");
    /// ```
    pub fn subject(&self) -> String {
        const TELLING: [&str; 9] = [
            "command",
            "cmd",
            "file_path",
            "path",
            "notebook_path",
            "url",
            "pattern",
            "query",
            "skill",
        ];
        let Some(Value::Object(fields)) = &self.input else {
            return match &self.input {
                None => String::new(),
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
            };
        };
        let told = TELLING.into_iter().find(|key| fields.get(*key).is_some_and(Value::is_string));
        let mut subject = String::new();
        if let Some(Value::String(text)) = told.and_then(|key| fields.get(key)) {
            subject.push_str(text);
        }
        for (key, value) in fields {
            let own_words = key == "description" && self.rationale.is_some();
            if Some(key.as_str()) == told || own_words {
                continue;
            }
            if !subject.is_empty() {
                subject.push('\n');
            }
            subject.push_str(key);
            subject.push_str(": ");
            match value {
                Value::String(text) => subject.push_str(text),
                other => subject.push_str(&other.to_string()),
            }
        }
        subject
    }
}

/// What kind of action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionKind {
    /// A tool of the agent's own.
    Tool,
    /// A tool of an MCP server.
    Mcp,
    /// A skill.
    Skill,
    /// A subagent.
    Subagent,
    /// Something else.
    Other,
}

/// How an action ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It did what it should.
    Success,
    /// It failed.
    Failure,
    /// It took too long.
    Timeout,
    /// It was stopped.
    Cancelled,
}

/// What the gate said about an action, and the facts it recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    /// The verdict.
    pub decision: Decision,
    /// The rule that said so.
    pub rule: String,
    /// Why, in a sentence a person can read.
    pub reason: String,
    /// How much could go wrong.
    pub risk: Risk,
    /// Whether it cannot be undone; `None` where nobody knows.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub irreversible: Option<bool>,
    /// What could not be read, if anything: then nobody could inspect it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub opaque: Option<String>,
    /// What would be safer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub safer: Option<String>,
}

impl Gate {
    /// Whether somebody should have been asked before this ran.
    pub fn is_grave(&self) -> bool {
        self.irreversible == Some(true) || self.risk == Risk::High
    }
}

/// What policy says. The order is the order of strictness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// It may run.
    Allow,
    /// A person decides.
    Ask,
    /// It must not run.
    Deny,
}

impl Decision {
    /// The word used in rules and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// How much could go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    /// Little.
    Low,
    /// Something.
    Medium,
    /// Much.
    High,
}

impl Risk {
    /// The word used on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// A question somebody waits on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    /// Banister's id of the ask.
    pub id: String,
    /// The single-use token an answer must name.
    pub token: String,
    /// What is asked.
    pub kind: AskKind,
    /// The action it is about, if it is about one.
    pub action: Option<Action>,
    /// What the gate found out about the action.
    pub gate: Option<Gate>,
    /// SHA-256 of the exact action, in hex.
    pub digest: String,
    /// When waiting ends.
    pub deadline: Timestamp,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AskKind {
    /// May this action run?
    Confirmation,
    /// A question with an answer in words.
    Clarification {
        /// The question.
        question: String,
    },
}

/// How an ask closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It may go on.
    Accepted,
    /// It must not.
    Rejected,
    /// Nobody answered in time: the default, which is to reject.
    Expired,
    /// Nobody waits any more.
    Withdrawn,
}
