//! What an agent does, what the gate said about it, and how it ended.

use serde::{Deserialize, Serialize};
use serde_json::Value;

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

    /// The first line of [`Action::subject`], for where there is room for one. Of a question, the question.
    pub fn headline(&self) -> String {
        let asked = self.input.as_ref().and_then(|input| input.pointer("/questions/0/question"));
        let subject = asked.and_then(Value::as_str).map_or_else(|| self.subject(), str::to_owned);
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
            "pattern",
            "query",
            "path",
            "notebook_path",
            "url",
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
