//! Action ids for agents that give none: which result belongs to which request.
//!
//! An id is derived from the session, the tool and what it was asked to do; where the same is asked for again, from a
//! counter as well. So the id of a first request needs no memory, and [`Mapping::map`](super::Mapping::map) gives the
//! same one. A [`Correlator`] remembers the open requests of one session: a result takes the oldest request for the
//! same thing, else the only one for the same tool, else an id of its own and a mark that it is unmatched.
//!
//! Memory is bounded: the oldest is forgotten first, everything open is forgotten when the session ends or after a day.

use std::collections::VecDeque;
use std::fmt::Write;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::build::put;
use super::rule::{is_pointer, not_a_pointer};
use super::tree::{Node, Problems, Tree};
use super::{Mapped, Stamp};

const MOST_OPEN: usize = 256;
const MOST_COUNTED: usize = 1_024;
const MOST_FACTS: usize = 4_096;
const LONGEST: SignedDuration = SignedDuration::from_hours(24);
const ONE_COMPACTION: SignedDuration = SignedDuration::from_secs(60);

/// What a rule says about the ids of its actions.
#[derive(Debug, Clone)]
pub(super) struct Role {
    kind: RoleKind,
    /// What makes two payloads be about the same thing; the action's input where there are none.
    key: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RoleKind {
    Request,
    /// The agent asks once more about something it has announced already.
    Permission,
    Terminal,
}

impl Role {
    /// Reads `correlate`: a word, or `{role, key}`.
    pub(super) fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        const ROLES: &[&str] = &["request", "permission", "terminal"];
        let mut key = Vec::new();
        let (word, at) = match &node.tree {
            Tree::Map(_) => {
                let members = node.members("`correlate`", &["role", "key"], problems);
                for pointer in members.get("key").map(Node::one_or_more).unwrap_or_default() {
                    match pointer.text("a key", problems) {
                        Some(text) if is_pointer(&text) => key.push(text),
                        Some(text) => problems.error(pointer.at, not_a_pointer(&text)),
                        None => {}
                    }
                }
                (members.needed("role", "`correlate`", problems)?, node.at)
            }
            _ => (node.text("`correlate`", problems)?, node.at),
        };
        let kind = match word.as_str() {
            "request" => RoleKind::Request,
            "permission" => RoleKind::Permission,
            "terminal" => RoleKind::Terminal,
            other => {
                problems.unknown(at, "role", other, ROLES);
                return None;
            }
        };
        Some(Self { kind, key })
    }

    /// What the action is about, as a hash, and its tool; from the payload's events.
    fn about(&self, payload: &Value, events: &[Value], session: &str) -> (String, String) {
        let tool = events.iter().find_map(tool_of).unwrap_or_default();
        let mut text = String::new();
        if self.key.is_empty() {
            if let Some(input) = events.iter().find_map(|event| event.pointer("/action/input")) {
                canonical(input, &mut text);
            }
        } else {
            for pointer in &self.key {
                canonical(payload.pointer(pointer).unwrap_or(&Value::Null), &mut text);
                text.push('\n');
            }
        }
        (crate::id::derive("", &[session, &tool, &text]), tool)
    }
}

/// Gives ids to actions that have none, without memory: the same request has the same id.
pub(super) fn alone(role: &Role, payload: &Value, stamp: &Stamp<'_>, events: &mut [Value]) {
    if id_of(events).is_none() {
        let (key, _) = role.about(payload, events, stamp.session);
        give(events, &mint(&key, 0));
    }
}

/// The open actions of one session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Correlator {
    open: VecDeque<Open>,
    /// How often each thing was asked for.
    counted: VecDeque<(String, u32)>,
    /// No smaller number may be given to something that may have been forgotten.
    floor: u32,
    compacted: Option<Compaction>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Open {
    id: String,
    key: String,
    tool: String,
    time: Timestamp,
    /// Whether permission was asked for as well.
    #[serde(default)]
    asked: bool,
    #[serde(default)]
    refused: bool,
    /// What a result may leave out: the action's type, tool, server and skill.
    facts: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Compaction {
    hook: String,
    trigger: Value,
    time: Timestamp,
}

impl Correlator {
    /// An action was refused: the failure that some agents report then is no second fact.
    pub fn refused(&mut self, action: &str) {
        if let Some(open) = self.open.iter_mut().find(|open| open.id == action) {
            open.refused = true;
        }
    }

    /// How many actions are open.
    pub fn open(&self) -> usize {
        self.open.iter().filter(|open| !open.refused).count()
    }

    /// Gives the events of one payload their ids, and leaves out what was told before.
    pub(super) fn settle(
        &mut self,
        role: Option<&Role>,
        hook: &str,
        payload: &Value,
        stamp: &Stamp<'_>,
        mapped: &mut Mapped,
    ) {
        self.open.retain(|open| stamp.time.duration_since(open.time) < LONGEST);
        let kind = role.map(|role| role.kind).or_else(|| {
            mapped.events.iter().find_map(|event| match kind_of(event) {
                "action.requested" => Some(RoleKind::Request),
                "action.completed" | "action.failed" | "action.denied" => Some(RoleKind::Terminal),
                _ => None,
            })
        });
        let plain = Role { kind: RoleKind::Request, key: Vec::new() };
        let (key, tool) = role.unwrap_or(&plain).about(payload, &mapped.events, stamp.session);
        match kind {
            Some(RoleKind::Terminal) => self.ended(role.is_some(), &key, &tool, &mut mapped.events),
            Some(kind) => {
                let again = kind == RoleKind::Permission;
                self.requested(again, role.is_some(), (key, tool), stamp.time, mapped);
            }
            None => {}
        }
        self.compacted(hook, stamp.time, &mut mapped.events);
        if mapped.events.iter().any(|event| kind_of(event) == "session.end") {
            self.open.clear();
        }
    }

    fn requested(
        &mut self,
        again: bool,
        derive: bool,
        (key, tool): (String, String),
        time: Timestamp,
        mapped: &mut Mapped,
    ) {
        let id = id_of(&mapped.events);
        let known = match &id {
            Some(id) => self.open.iter().position(|open| open.id == *id),
            None if again => {
                let same = |asked: bool| {
                    self.open
                        .iter()
                        .position(|open| open.key == key && open.asked == asked && !open.refused)
                };
                same(false).or_else(|| same(true))
            }
            None => None,
        };
        if let Some(open) = known.and_then(|index| self.open.get_mut(index)) {
            open.asked |= again;
            give(&mut mapped.events, &open.id);
            if again {
                mapped.repeated = mapped.events.iter().find(|event| is_request(event)).cloned();
                mapped.events.retain(|event| !is_request(event));
            }
            return;
        }
        let id = match id {
            Some(id) => id,
            None if derive => {
                let id = mint(&key, self.count(&key));
                give(&mut mapped.events, &id);
                id
            }
            None => return,
        };
        let Some(request) = mapped.events.iter().find(|event| is_request(event)) else { return };
        if self.open.len() >= MOST_OPEN {
            self.open.pop_front();
        }
        let facts = facts_of(request);
        let open = Open { id, key, tool, time, asked: again, refused: false, facts };
        self.open.push_back(open);
    }

    fn ended(&mut self, derive: bool, key: &str, tool: &str, events: &mut Vec<Value>) {
        let completed = events.iter().any(|event| kind_of(event) == "action.completed");
        let given = id_of(events);
        let same = |refused: bool| {
            self.open.iter().position(|open| open.key == key && open.refused == refused)
        };
        let found = match &given {
            Some(id) => self.open.iter().position(|open| open.id == *id),
            None if !derive => None,
            None if completed => same(false).or_else(|| self.only(tool)).or_else(|| same(true)),
            None => {
                let oldest = self.open.iter().position(|open| open.key == key);
                oldest.or_else(|| self.only(tool))
            }
        };
        let Some(open) = found.and_then(|index| self.open.remove(index)) else {
            if given.is_none() && derive {
                give(events, &mint(key, self.count(key)));
                for event in events.iter_mut().filter(|event| event.get("action").is_some()) {
                    put(event, &["extensions", "x-banister", "uncorrelated"], json!(true));
                }
            }
            // Only its request could have said what kind of action it was.
            for event in events.iter_mut().filter(|event| event.get("action").is_some()) {
                if event.pointer("/action/type").is_none() {
                    put(event, &["action", "type"], json!("other"));
                }
            }
            return;
        };
        if open.refused && !completed {
            events.retain(|event| !matches!(kind_of(event), "action.failed" | "action.denied"));
            return;
        }
        give(events, &open.id);
        for event in events.iter_mut().filter(|event| kind_of(event).starts_with("action.")) {
            fill(event, &open.facts);
        }
    }

    /// The one open action of a tool, if it is the only one.
    fn only(&self, tool: &str) -> Option<usize> {
        let mut fits = self
            .open
            .iter()
            .enumerate()
            .filter(|(_, open)| !open.refused && (open.tool == tool || tool.is_empty()));
        let (index, _) = fits.next()?;
        fits.next().is_none().then_some(index)
    }

    /// How often this was asked for before.
    fn count(&mut self, key: &str) -> u32 {
        if let Some(index) = self.counted.iter().position(|(known, _)| known == key)
            && let Some((key, count)) = self.counted.remove(index)
        {
            self.counted.push_back((key, count.saturating_add(1)));
            return count;
        }
        if self.counted.len() >= MOST_COUNTED
            && let Some((_, count)) = self.counted.pop_front()
        {
            self.floor = self.floor.max(count);
        }
        self.counted.push_back((key.to_owned(), self.floor.saturating_add(1)));
        self.floor
    }

    /// One compaction is one event, also where hooks tell of it before and after.
    fn compacted(&mut self, hook: &str, time: Timestamp, events: &mut Vec<Value>) {
        let Some(event) = events.iter().find(|event| kind_of(event) == "context.compacted") else {
            return;
        };
        let trigger = event.pointer("/lifecycle/trigger").cloned().unwrap_or_default();
        let told = self.compacted.as_ref().is_some_and(|told| {
            told.hook != hook
                && told.trigger == trigger
                && time.duration_since(told.time).abs() < ONE_COMPACTION
        });
        if told {
            events.retain(|event| kind_of(event) != "context.compacted");
            self.compacted = None;
        } else {
            self.compacted = Some(Compaction { hook: hook.to_owned(), trigger, time });
        }
    }
}

fn mint(key: &str, count: u32) -> String {
    match count {
        0 => crate::id::derive("act_", &[key]),
        more => crate::id::derive("act_", &[key, &more.to_string()]),
    }
}

fn kind_of(event: &Value) -> &str {
    event.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn is_request(event: &Value) -> bool {
    kind_of(event) == "action.requested"
}

fn id_of(events: &[Value]) -> Option<String> {
    events.iter().find_map(|event| event.pointer("/action/id")?.as_str()).map(str::to_owned)
}

fn tool_of(event: &Value) -> Option<String> {
    ["/tool/original_name", "/tool/name", "/skill/name"]
        .iter()
        .find_map(|pointer| event.pointer(pointer)?.as_str())
        .map(|name| name.chars().take(512).collect())
}

/// Gives an id to every event about an action.
fn give(events: &mut [Value], id: &str) {
    for event in events {
        if kind_of(event).starts_with("action.") || event.get("action").is_some() {
            put(event, &["action", "id"], json!(id));
        }
    }
}

fn facts_of(request: &Value) -> Value {
    let mut facts = Map::new();
    for name in ["tool", "server", "skill"] {
        if let Some(value) = request.get(name) {
            facts.insert(name.to_owned(), value.clone());
        }
    }
    if let Some(kind) = request.pointer("/action/type") {
        facts.insert("action".to_owned(), json!({ "type": kind }));
    }
    let facts = Value::Object(facts);
    if facts.to_string().len() > MOST_FACTS { Value::Null } else { facts }
}

/// Adds the members that are not there.
fn fill(event: &mut Value, facts: &Value) {
    let (Value::Object(event), Value::Object(facts)) = (event, facts) else { return };
    for (name, fact) in facts {
        match event.get_mut(name) {
            None => {
                event.insert(name.clone(), fact.clone());
            }
            Some(present) => fill(present, fact),
        }
    }
}

/// JSON with sorted keys.
fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for item in items {
                canonical(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Object(members) => {
            let mut names: Vec<(&String, &Value)> = members.iter().collect();
            names.sort_by_key(|(name, _)| *name);
            text.push('{');
            for (name, value) in names {
                write!(text, "{name:?}:").ok();
                canonical(value, text);
                text.push(',');
            }
            text.push('}');
        }
        other => text.push_str(&other.to_string()),
    }
}

#[cfg(test)]
#[path = "correlate_tests.rs"]
mod tests;
