//! A decision → the answer one coding agent understands: exit code, stdout, stderr.
//!
//! The dialect of an agent is data, in the `control` part of its mapping file. What an agent cannot say degrades to
//! something stricter, never to something laxer: a change of the input that cannot be expressed is a refusal, and a
//! question that the agent would not put to anybody is one too. Bytes go out as the file has them: keys in its order,
//! no newline that it does not have.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The eight behaviours of an AEP hook response.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
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
    #[default]
    Abstain,
}

impl Behavior {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Allow,
        Self::Deny,
        Self::Ask,
        Self::Defer,
        Self::Block,
        Self::Continue,
        Self::Stop,
        Self::Abstain,
    ];

    /// The word on the wire.
    pub const fn name(self) -> &'static str {
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

    /// The behaviour of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|behavior| behavior.name() == name)
    }
}

/// What was decided, in full.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Decision {
    /// What to do.
    pub behavior: Behavior,
    /// The words for the person or the agent.
    pub message: Option<String>,
    /// The reason, where it has other words than the message.
    pub reason: Option<String>,
    /// What to do it with instead; only with [`Behavior::Allow`].
    pub updated_input: Option<Value>,
    /// What the model should know besides.
    pub additional_context: Option<String>,
    /// What the action was to be done with, for agents that want it repeated.
    pub input: Option<Value>,
}

/// How one hook of one agent is answered, by behaviour, and what the hook says when there is no gateway.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Control {
    /// The answers.
    pub answers: BTreeMap<Behavior, Template>,
    /// What the agent is known not to understand here.
    pub unsupported: Vec<Behavior>,
    /// Whether the agent asks its user by itself when the hook has no opinion.
    pub own_prompt: bool,
    /// The answer without a gateway: the strictest the agent understands.
    pub fallback: Option<Template>,
    /// How long the hook may wait, in milliseconds: below the agent's own limit.
    pub deadline_ms: Option<u64>,
}

/// An answer with placeholders.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Template {
    /// The exit code.
    pub exit: u8,
    /// What goes to stdout.
    pub stdout: Option<Stdout>,
    /// What goes to stderr.
    pub stderr: Option<String>,
    /// The answer to use instead where the input is to be changed.
    pub with_input: Option<Box<Self>>,
    /// The answer to use instead where the model should know something.
    pub with_context: Option<Box<Self>>,
}

/// What goes to stdout.
#[derive(Debug, Clone, PartialEq)]
pub enum Stdout {
    /// A JSON document.
    Json(Value),
    /// Plain text.
    Text(String),
}

impl fmt::Display for Stdout {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(document) => write!(out, "{document}"),
            Self::Text(text) => out.write_str(text),
        }
    }
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
    /// Renders a behaviour and a message, degrading down the ladder to what this hook can say.
    pub fn answer(&self, behavior: Behavior, message: &str) -> Answer {
        let message = Some(message.to_owned());
        self.respond(&Decision { behavior, message, ..Decision::default() }).0
    }

    /// Renders a decision, degrading down the ladder to what this hook can say; with it, the behaviour that was
    /// decided, where another one had to be said.
    pub fn respond(&self, decision: &Decision) -> (Answer, Option<Behavior>) {
        let mut decision = decision.clone();
        let decided = decision.behavior;
        if decided != Behavior::Allow {
            decision.updated_input = None;
        }
        if decision.updated_input.is_some() && !self.changes_input() {
            refuse_change(&mut decision);
        }
        loop {
            let said = decision.behavior;
            let from = (said != decided).then_some(decided);
            if let Some(template) = self.answers.get(&said) {
                return (template.render(&decision), from);
            }
            let words = decision.message.clone().or(decision.reason.clone()).unwrap_or_default();
            decision.behavior = match said {
                Behavior::Abstain => return (Answer::silence(), from),
                Behavior::Deny => return (Answer::refusal(&words), from),
                Behavior::Block if !self.answers.contains_key(&Behavior::Deny) => {
                    // It happened already: all that is left is to say so to the model.
                    decision.additional_context.get_or_insert(words);
                    Behavior::Abstain
                }
                other => self.instead(other),
            };
        }
    }

    /// What is said where a behaviour cannot be.
    fn instead(&self, behavior: Behavior) -> Behavior {
        match behavior {
            Behavior::Defer => Behavior::Ask,
            Behavior::Ask if self.own_prompt => Behavior::Abstain,
            Behavior::Continue => Behavior::Abstain,
            Behavior::Stop
                if !self.answers.contains_key(&Behavior::Deny)
                    && self.answers.contains_key(&Behavior::Block) =>
            {
                Behavior::Block
            }
            _ => Behavior::Deny,
        }
    }

    /// Where a behaviour ends up on this hook.
    pub fn said(&self, behavior: Behavior) -> Behavior {
        let mut said = behavior;
        // The ladder has no more steps than there are behaviours.
        for _ in Behavior::ALL {
            if self.answers.contains_key(&said) {
                return said;
            }
            said = match said {
                Behavior::Abstain | Behavior::Deny => return said,
                Behavior::Block if !self.answers.contains_key(&Behavior::Deny) => Behavior::Abstain,
                other => self.instead(other),
            };
        }
        said
    }

    /// Whether an allow can carry another input.
    pub fn changes_input(&self) -> bool {
        self.answers.get(&Behavior::Allow).is_some_and(|template| {
            template.with_input.is_some() || template.mentions("updated_input")
        })
    }
}

/// Never run the unchanged input: refuse, and tell what was proposed.
fn refuse_change(decision: &mut Decision) {
    let proposed = decision.updated_input.take().unwrap_or_default();
    let words =
        decision.message.take().or(decision.reason.take()).filter(|words| !words.is_empty());
    let lead = words.map(|words| format!("{words} ")).unwrap_or_default();
    decision.behavior = Behavior::Deny;
    decision.message =
        Some(format!("{lead}This agent cannot change its input; do this instead: {proposed}"));
}

/// The placeholders of a template.
pub(crate) const PLACEHOLDERS: &[&str] =
    &["message", "reason", "updated_input", "additional_context", "input"];

impl Template {
    /// Fills `{message}` in.
    pub fn fill(&self, message: &str) -> Answer {
        self.render(&Decision { message: Some(message.to_owned()), ..Decision::default() })
    }

    /// Fills a decision in.
    pub fn render(&self, decision: &Decision) -> Answer {
        if let (Some(other), Some(_)) = (&self.with_input, &decision.updated_input) {
            return other.render(decision);
        }
        let context = decision.additional_context.as_deref().filter(|text| !text.is_empty());
        if let (Some(other), Some(_)) = (&self.with_context, context) {
            return other.render(decision);
        }
        let stdout = match &self.stdout {
            None => String::new(),
            Some(Stdout::Json(document)) => {
                fill(document, decision).map(|document| document.to_string()).unwrap_or_default()
            }
            Some(Stdout::Text(text)) => write(text, decision).0,
        };
        let stderr = self.stderr.as_ref().map(|text| write(text, decision).0).unwrap_or_default();
        Answer { exit: self.exit, stdout, stderr }
    }

    /// Whether a placeholder occurs in it.
    fn mentions(&self, name: &str) -> bool {
        let in_stdout = self.stdout.as_ref().is_some_and(|stdout| match stdout {
            Stdout::Text(text) => has(text, name),
            Stdout::Json(document) => strings(document).iter().any(|text| has(text, name)),
        });
        in_stdout || self.stderr.as_ref().is_some_and(|text| has(text, name))
    }
}

/// All strings in a document.
pub(crate) fn strings(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(strings).collect(),
        Value::Object(members) => members.values().flat_map(strings).collect(),
        _ => Vec::new(),
    }
}

fn has(text: &str, name: &str) -> bool {
    pieces(text).iter().any(|piece| matches!(piece, Piece::Hole(hole, _) if *hole == name))
}

/// A piece of a string with placeholders.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Literal(&'a str),
    /// `{name}` or `{name|what to say where there is no value}`.
    Hole(&'a str, Option<&'a str>),
}

/// Takes a string apart. A brace that begins no lower-case word is a brace.
pub(crate) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut from = 0;
    while let Some(open) = text.get(from..).and_then(|rest| rest.find('{')).map(|at| at + from) {
        from = open + 1;
        let Some(inside) = text.get(from..) else { break };
        let Some(length) = inside.find('}') else { break };
        let Some(inside) = inside.get(..length) else { break };
        let (name, default) = match inside.split_once('|') {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let word = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        if name.is_empty() || !name.bytes().all(word) {
            continue;
        }
        if let Some(literal) = text.get(start..open).filter(|literal| !literal.is_empty()) {
            pieces.push(Piece::Literal(literal));
        }
        pieces.push(Piece::Hole(name, default));
        start = from + length + 1;
        from = start;
    }
    if let Some(literal) = text.get(start..).filter(|literal| !literal.is_empty()) {
        pieces.push(Piece::Literal(literal));
    }
    pieces
}

fn value_of(name: &str, decision: &Decision) -> Option<Value> {
    let words = |first: &Option<String>, second: &Option<String>| {
        // Some agents take words of nothing but spaces for none, and an answer without words for none at all.
        let said = |words: &Option<String>| words.clone().filter(|words| !words.trim().is_empty());
        said(first).or_else(|| said(second)).map(Value::String)
    };
    match name {
        "message" => words(&decision.message, &decision.reason),
        "reason" => words(&decision.reason, &decision.message),
        "updated_input" => decision.updated_input.clone(),
        "additional_context" => words(&decision.additional_context, &None),
        "input" => decision.updated_input.clone().or_else(|| decision.input.clone()),
        _ => None,
    }
}

/// The text, and whether every placeholder had a value.
fn write(text: &str, decision: &Decision) -> (String, bool) {
    let mut written = String::with_capacity(text.len());
    let mut whole = true;
    for piece in pieces(text) {
        match piece {
            Piece::Literal(literal) => written.push_str(literal),
            Piece::Hole(name, default) => match (value_of(name, decision), default) {
                (Some(Value::String(words)), _) => written.push_str(&words),
                (Some(other), _) => written.push_str(&other.to_string()),
                (None, Some(default)) => written.push_str(default),
                (None, None) => whole = false,
            },
        }
    }
    (written, whole)
}

/// A document filled in; what needs a value that is not there is left out.
fn fill(value: &Value, decision: &Decision) -> Option<Value> {
    match value {
        Value::String(text) => {
            if let [Piece::Hole(name, default)] = pieces(text).as_slice() {
                let default = default.map(|words| Value::String(words.to_owned()));
                return value_of(name, decision).or(default);
            }
            let (text, whole) = write(text, decision);
            whole.then_some(Value::String(text))
        }
        Value::Array(items) => Some(items.iter().filter_map(|item| fill(item, decision)).collect()),
        Value::Object(members) => {
            let mut filled = Map::new();
            for (name, member) in members {
                if let Some(member) = fill(member, decision) {
                    filled.insert(name.clone(), member);
                }
            }
            Some(Value::Object(filled))
        }
        other => Some(other.clone()),
    }
}

#[cfg(test)]
#[path = "dialect_tests.rs"]
mod tests;
