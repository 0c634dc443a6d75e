//! Which rule a payload falls under.

use regex::Regex;
use serde_json::Value;

use super::build::Body;
use super::tree::{Node, Problems, Tree};
use super::{correlate, transform};

const TESTS: &[&str] = &["exists", "in", "regex", "not", "prefix"];

/// What one native payload becomes.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) id: String,
    pub(super) hooks: Vec<String>,
    pub(super) when: When,
    pub(super) gated: bool,
    pub(super) drop: bool,
    pub(super) main: Option<Body>,
    pub(super) emit: Vec<Body>,
    pub(super) correlate: Option<correlate::Role>,
    /// Whether the rule came from the file that this one extends.
    pub(super) inherited: bool,
}

impl Rule {
    pub(super) fn is_for(&self, hook: &str) -> bool {
        self.hooks.iter().any(|known| known == hook)
    }

    /// All its events, the main one first.
    pub(super) fn bodies(&self) -> impl Iterator<Item = &Body> {
        self.main.iter().chain(&self.emit)
    }
}

/// Conditions: all of `all`, and one of each group in `any`.
#[derive(Debug, Clone, Default)]
pub(super) struct When {
    all: Vec<(String, Condition)>,
    any: Vec<Vec<(String, Condition)>>,
}

impl When {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty() && self.any.is_empty()
    }

    pub(super) fn holds(&self, payload: &Value) -> bool {
        let all = |conditions: &[(String, Condition)]| {
            conditions.iter().all(|(pointer, condition)| {
                condition.holds(payload.pointer(pointer).filter(|value| !value.is_null()))
            })
        };
        all(&self.all) && (self.any.is_empty() || self.any.iter().any(|group| all(group)))
    }

    /// Reads `when` and `when_any`.
    pub(super) fn read(
        when: Option<&Node>,
        when_any: Option<&Node>,
        problems: &mut Problems,
    ) -> Self {
        let all = when.map(|node| conditions(node, problems)).unwrap_or_default();
        let groups = when_any.map(|node| node.list("`when_any`", problems)).unwrap_or_default();
        Self { all, any: groups.iter().map(|group| conditions(group, problems)).collect() }
    }
}

fn conditions(node: &Node, problems: &mut Problems) -> Vec<(String, Condition)> {
    let mut conditions = Vec::new();
    for (key, value) in node.entries("`when`", problems) {
        if !is_pointer(&key.name) {
            problems.error(key.at, not_a_pointer(&key.name));
        }
        conditions.push((key.name.clone(), Condition::read(value, problems)));
    }
    conditions
}

#[derive(Debug, Clone)]
enum Condition {
    Equals(Value),
    Exists(bool),
    In(Vec<Value>),
    Prefix(String),
    Regex(Regex),
    Not(Box<Self>),
    All(Vec<Self>),
}

impl Condition {
    fn holds(&self, found: Option<&Value>) -> bool {
        let word = found.and_then(Value::as_str);
        match self {
            Self::Equals(wanted) => found == Some(wanted),
            Self::Exists(wanted) => found.is_some() == *wanted,
            Self::In(list) => found.is_some_and(|found| list.contains(found)),
            Self::Prefix(prefix) => word.is_some_and(|word| word.starts_with(prefix)),
            Self::Regex(pattern) => word.is_some_and(|word| pattern.is_match(word)),
            Self::Not(condition) => !condition.holds(found),
            Self::All(conditions) => conditions.iter().all(|condition| condition.holds(found)),
        }
    }

    fn read(node: &Node, problems: &mut Problems) -> Self {
        if !matches!(node.tree, Tree::Map(_)) {
            return Self::Equals(node.json());
        }
        let tests = node.members("a condition", TESTS, problems);
        let mut all = Vec::new();
        if let Some(value) = tests.get("exists") {
            all.push(Self::Exists(value.flag("`exists`", problems)));
        }
        if let Some(value) = tests.get("in") {
            all.push(Self::In(value.list("`in`", problems).iter().map(Node::json).collect()));
        }
        if let Some(value) = tests.get("prefix") {
            all.extend(value.text("`prefix`", problems).map(Self::Prefix));
        }
        if let Some(value) = tests.get("regex") {
            match value.text("`regex`", problems).map(|pattern| transform::regex(&pattern)) {
                Some(Ok(pattern)) => all.push(Self::Regex(pattern)),
                Some(Err(message)) => problems.error(value.at, message),
                None => {}
            }
        }
        if let Some(value) = tests.get("not") {
            all.push(Self::Not(Box::new(Self::read(value, problems))));
        }
        if all.is_empty() {
            problems
                .error(node.at, "a condition is a value, or says exists, in, regex, not or prefix");
        }
        Self::All(all)
    }
}

/// Whether this is a JSON Pointer (RFC 6901).
pub(super) fn is_pointer(text: &str) -> bool {
    let mut escaped = text.split('~').skip(1);
    (text.is_empty() || text.starts_with('/'))
        && escaped.all(|rest| rest.starts_with('0') || rest.starts_with('1'))
}

pub(super) fn not_a_pointer(text: &str) -> String {
    format!("`{text}` is not a JSON Pointer (it begins with /; ~ is written ~0)")
}
