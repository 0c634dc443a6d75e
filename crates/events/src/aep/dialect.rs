//! A decision → the answer one coding agent understands: exit code, stdout, stderr.
//!
//! The dialect of an agent is data, in the `control` part of its mapping file. What an agent cannot say degrades to
//! something stricter, never to something laxer.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// The eight behaviours of an AEP hook response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Behavior {
    /// Go ahead.
    Allow,
    /// Do not.
    Deny,
    /// Let the agent's own dialog ask.
    Ask,
    /// Pause, so that it can be resumed later.
    Defer,
    /// Refuse the result or the stop.
    Block,
    /// Let the lifecycle go on.
    Continue,
    /// Stop the agent.
    Stop,
    /// No opinion.
    Abstain,
}

impl Behavior {
    /// The word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Defer => "defer",
            Self::Block => "block",
            Self::Continue => "continue",
            Self::Stop => "stop",
            Self::Abstain => "abstain",
        }
    }

    /// What to say where this cannot be said. `Deny` has no successor: it is the end of the ladder.
    fn degraded(self) -> Option<Self> {
        match self {
            Self::Allow | Self::Ask | Self::Stop | Self::Block => Some(Self::Deny),
            Self::Defer => Some(Self::Ask),
            Self::Continue => Some(Self::Abstain),
            Self::Deny | Self::Abstain => None,
        }
    }
}

/// How one hook of one agent is answered, by behaviour, and what the hook says when there is no gateway.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Control {
    /// The answers.
    #[serde(default)]
    pub answers: BTreeMap<Behavior, Template>,
    /// The answer without a gateway: the strictest the agent understands.
    pub fallback: Option<Template>,
    /// How long the hook may wait, in milliseconds: below the agent's own limit.
    pub deadline_ms: Option<u64>,
}

/// An answer with placeholders.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Template {
    /// The exit code.
    #[serde(default)]
    pub exit: u8,
    /// A JSON document for stdout.
    pub stdout: Option<Value>,
    /// A line for stderr.
    pub stderr: Option<String>,
}

/// What the hook prints, and how it exits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The exit code.
    pub exit: u8,
    /// Bytes for stdout.
    pub stdout: String,
    /// Bytes for stderr.
    pub stderr: String,
}

impl Answer {
    /// The answer of last resort: every known agent takes exit code 2 with a reason on stderr as a refusal.
    pub fn refusal(message: &str) -> Self {
        Self { exit: 2, stdout: String::new(), stderr: format!("{message}\n") }
    }

    /// Nothing to say.
    pub fn silence() -> Self {
        Self { exit: 0, stdout: String::new(), stderr: String::new() }
    }
}

impl Control {
    /// Renders a behaviour, degrading down the ladder to what this hook can say.
    pub fn answer(&self, behavior: Behavior, message: &str) -> Answer {
        let mut said = behavior;
        loop {
            if let Some(template) = self.answers.get(&said) {
                return template.fill(message);
            }
            match (said.degraded(), said) {
                (Some(next), _) => said = next,
                (None, Behavior::Abstain) => return Answer::silence(),
                (None, _) => return Answer::refusal(message),
            }
        }
    }
}

impl Template {
    /// Fills `{message}` in.
    pub fn fill(&self, message: &str) -> Answer {
        let stdout = self.stdout.as_ref().map(|document| {
            let mut document = document.clone();
            fill(&mut document, message);
            document.to_string()
        });
        let stderr =
            self.stderr.as_ref().map(|line| format!("{}\n", line.replace("{message}", message)));
        Answer {
            exit: self.exit,
            stdout: stdout.unwrap_or_default(),
            stderr: stderr.unwrap_or_default(),
        }
    }
}

fn fill(value: &mut Value, message: &str) {
    match value {
        Value::String(text) if text.contains("{message}") => {
            *text = text.replace("{message}", message);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, message)),
        Value::Object(fields) => fields.values_mut().for_each(|field| fill(field, message)),
        _ => {}
    }
}

#[cfg(test)]
#[path = "dialect_tests.rs"]
mod tests;
