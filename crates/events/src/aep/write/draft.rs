//! An event before it has an envelope, and the small parts events are made of.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::activity::{Action, ActionKind, Status, Usage};
use crate::id;
use crate::written::{Field, Fields};

/// The most that one text of an event may have, in bytes.
pub(super) const TEXT_BYTES: usize = 256 * 1_024;

/// What ids, names and texts may be where the strictest reader still takes them.
const ID_CHARS: usize = 160;
const NAME_CHARS: usize = 512;
pub(super) const MESSAGE_CHARS: usize = 16_384;
const RATIONALE_CHARS: usize = 32_768;

/// An event on its way out.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) kind: Cow<'static, str>,
    pub(super) fields: Fields,
    /// What others say in `extensions`.
    pub(super) extensions: Option<Box<Map<String, Value>>>,
    /// What goes into `extensions.x-banister` in any case.
    pub(super) own: Fields,
    /// What goes there only where facts are carried.
    pub(super) carried: Fields,
    /// Ids that did not fit or were used before, as they were: scene → id.
    pub(super) ids: Map<String, Value>,
    /// The thread it belongs to, where that is not its context's.
    pub(super) thread: Option<Thread>,
    /// Whether its content has no credentials any more.
    pub(super) clean: bool,
}

/// A subagent's scene among the threads.
#[derive(Debug)]
pub(super) struct Thread {
    /// The subagent's id.
    pub(super) id: String,
    /// The subagent that started it.
    pub(super) parent: Option<String>,
    /// The action that started it, under its id in this stream.
    pub(super) action: Option<String>,
}

impl Draft {
    pub(super) fn new(kind: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind: kind.into(),
            fields: Fields::default(),
            extensions: None,
            own: Fields::default(),
            carried: Fields::default(),
            ids: Map::new(),
            thread: None,
            clean: false,
        }
    }

    /// The same with one more text.
    pub(super) fn content(mut self, kind: &'static str, text: impl Into<Field>) -> Self {
        let entry = Fields::of([("type", Field::Word(kind)), ("text", text.into())]).into();
        match self.fields.get_mut("content") {
            Some(Field::List(entries)) => entries.push(entry),
            _ => self.fields.put("content", Field::List(vec![entry])),
        }
        self
    }

    /// The same with a word about why.
    pub(super) fn lifecycle(self, key: &'static str, value: Option<&str>) -> Self {
        match value.filter(|value| !value.is_empty()) {
            Some(value) => self.field("lifecycle", Fields::of([(key, value.into())])),
            None => self,
        }
    }

    /// The same with one more field.
    pub(super) fn field(mut self, key: &'static str, value: impl Into<Field>) -> Self {
        match self.fields.get_mut(key) {
            Some(known) => *known = value.into(),
            None => self.fields.put(key, value),
        }
        self
    }

    /// The same with a fact that people must have.
    pub(super) fn own(mut self, key: &'static str, value: impl Into<Field>) -> Self {
        self.own.put(key, value);
        self
    }

    /// The same with a fact that the protocol has no field for.
    pub(super) fn carry(mut self, key: &'static str, value: Option<impl Into<Field>>) -> Self {
        self.carried.maybe(key, value);
        self
    }

    /// The same about an action, under its id in this stream.
    pub(super) fn action(mut self, named: &Named) -> Self {
        self.fields.extend(action_fields(&named.action));
        if let Some(was) = &named.was {
            self.ids.insert("action.id".into(), json!(was));
        }
        self
    }

    /// The same with numbers of what was used up.
    pub(super) fn usage(self, usage: &[Usage]) -> Self {
        let metrics = metrics(usage);
        let told = if usage.is_empty() { None } else { serde_json::to_value(usage).ok() };
        let draft = if metrics.is_empty() { self } else { self.field("metrics", metrics) };
        draft.carry("usage", told)
    }
}

/// An action under its id in this stream.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(super) struct Named {
    /// The action; of one that is kept, without what was said about it.
    pub(super) action: Action,
    /// The id it came with, if that is another one.
    pub(super) was: Option<String>,
}

impl Named {
    /// An action under an id that fits. `fresh` is an id to take its own one's scene.
    pub(super) fn new(action: &Action, fresh: Option<String>) -> Self {
        let id = fresh.map_or_else(|| fit(&action.id), Cow::Owned).into_owned();
        let was = (id != action.id).then(|| action.id.clone());
        Self { action: Action { id, ..action.clone() }, was }
    }

    /// The id it came with.
    pub(super) fn key(&self) -> &str {
        self.was.as_deref().unwrap_or(&self.action.id)
    }

    /// The same without input and rationale.
    pub(super) fn bare(self) -> Self {
        Self { action: Action { input: None, rationale: None, ..self.action }, ..self }
    }
}

/// An id that every reader takes: itself, or a hash of it.
pub(super) fn fit(raw: &str) -> Cow<'_, str> {
    let safe = raw.len() <= ID_CHARS
        && raw.starts_with(|first: char| first.is_ascii_alphanumeric())
        && raw.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte));
    if safe {
        return Cow::Borrowed(raw);
    }
    let hash = Sha256::digest(raw.as_bytes());
    Cow::Owned(format!("h_{}", id::hex(hash.get(..16).unwrap_or_default())))
}

/// At most so many characters.
pub(super) fn name(text: &str) -> Cow<'_, str> {
    crate::text::shorten(text, NAME_CHARS)
}

fn named(text: &str) -> Cow<'_, str> {
    if text.is_empty() { Cow::Borrowed("unknown") } else { name(text) }
}

fn action_fields(action: &Action) -> Fields {
    let kind = match action.kind {
        ActionKind::Tool | ActionKind::Mcp => "tool_call",
        ActionKind::Skill => "skill_use",
        ActionKind::Subagent => "subagent_spawn",
        ActionKind::Other => "other",
    };
    let mut verb = Fields::of([("type", Field::Word(kind)), ("id", action.id.as_str().into())]);
    if let Some(rationale) = &action.rationale {
        verb.put("rationale", crate::text::shorten(rationale, RATIONALE_CHARS));
    }
    verb.maybe("input", action.input.clone().filter(|input| !input.is_null()));
    let mut fields = Fields::of([("action", verb.into())]);
    let tool_name = named(&action.tool);
    let mcp = action.kind == ActionKind::Mcp;
    // What is no tool call need not have a tool.
    let nameless = action.kind == ActionKind::Other && action.tool.is_empty();
    if !nameless {
        let kind = Field::Word(if mcp { "mcp" } else { "native" });
        let mut tool = Fields::of([("type", kind), ("name", (&*tool_name).into())]);
        tool.maybe("original_name", action.original_name.as_deref().map(name));
        fields.put("tool", tool);
    }
    if mcp || action.server.is_some() {
        let server = named(action.server.as_deref().unwrap_or_default());
        fields.put("server", Fields::of([("name", server.into())]));
    }
    if action.kind == ActionKind::Skill {
        fields.put("skill", Fields::of([("name", tool_name.into())]));
    }
    fields
}

/// How an action ended: the type of the event, and the word for it.
pub(super) fn ending(status: Status) -> (&'static str, &'static str) {
    match status {
        Status::Success => ("action.completed", "success"),
        Status::Failure => ("action.failed", "failure"),
        Status::Timeout => ("action.failed", "timeout"),
        Status::Cancelled => ("action.failed", "cancelled"),
    }
}

/// All that was used up, by the names that metrics have.
pub(super) fn metrics(usage: &[Usage]) -> Map<String, Value> {
    let mut sums: Map<String, Value> = Map::new();
    for one in usage {
        let counts = [
            ("input_tokens", one.input),
            ("output_tokens", one.output),
            ("total_tokens", one.total),
            ("reasoning_tokens", one.reasoning),
            ("cache_read_tokens", one.cache_read),
            ("cache_write_tokens", one.cache_write),
        ];
        for (name, count) in counts {
            let Some(count) = count else { continue };
            let before = sums.get(name).and_then(Value::as_u64).unwrap_or_default();
            sums.insert(name.to_owned(), json!(before.saturating_add(count)));
        }
    }
    sums
}

/// The serde form of something, without the tag and without what is not known.
pub(super) fn told(what: &impl serde::Serialize) -> (String, Map<String, Value>) {
    match serde_json::to_value(what) {
        Ok(Value::Object(mut fields)) => {
            let tag = fields.remove("what").and_then(|tag| tag.as_str().map(str::to_owned));
            // These are null because somebody said so.
            let meant = ["state", "patch", "event"];
            fields.retain(|key, value| !value.is_null() || meant.contains(&key.as_str()));
            (tag.unwrap_or_else(|| "raw".to_owned()), fields)
        }
        _ => ("raw".to_owned(), Map::new()),
    }
}
