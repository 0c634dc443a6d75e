//! The last step of every event and response: ids, the envelope, no credentials, nothing too long.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::draft::{Draft, MESSAGE_CHARS, TEXT_BYTES, Thread, fit, name};
use super::{OWN, Place, Writer};
use crate::activity::Context;
use crate::aep::event::VERSION;
use crate::event::time_text;
use crate::id;
use crate::text;
use crate::translate::{NoteKind, Notes};

/// Who and where, as every event of a context tells it.
#[derive(Debug, Clone)]
pub(super) struct Envelope {
    context: Arc<Context>,
    session: Arc<str>,
    fields: Map<String, Value>,
    ids: Map<String, Value>,
}

impl Envelope {
    /// `slug` is the agent that the session belongs to, whoever a message says it is of.
    fn new(place: &Place, slug: &str, notes: &mut Notes) -> Self {
        let context = &place.context;
        let (mut fields, mut ids) = (Map::new(), Map::new());
        let mut put = |target: &mut Map<String, Value>, key: &str, value: Option<&str>| {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                target.insert(key.into(), json!(name(&people(value, key, notes))));
            }
        };
        put(&mut fields, "hook", context.hook.as_deref());
        let mut agent = Map::new();
        put_id(&mut agent, "agent", "slug", slug, &mut ids);
        if context.agent.is_empty() || context.agent == slug {
            put(&mut agent, "display_name", context.agent_name.as_deref());
            put(&mut agent, "version", context.agent_version.as_deref());
        }
        fields.insert("agent".into(), Value::Object(agent));
        let mut session = threads(place, None, &mut ids);
        put(&mut session, "permission_mode", context.permission_mode.as_deref());
        if !session.is_empty() {
            fields.insert("session".into(), Value::Object(session));
        }
        if let Some(cwd) = context.cwd.as_deref().filter(|cwd| !cwd.is_empty()) {
            let cwd = text::shorten(cwd, 4_096);
            fields.insert("workspace".into(), json!({ "cwd": people(&cwd, "cwd", notes) }));
        }
        if let Some(model) = context.model.as_deref().filter(|model| !model.is_empty()) {
            fields.insert("model".into(), json!({ "id": name(&people(model, "model", notes)) }));
        }
        for id in ids.keys() {
            notes.add(NoteKind::Renamed, id);
        }
        Self {
            context: Arc::clone(context),
            session: Arc::clone(&place.origin.session),
            fields,
            ids,
        }
    }

    fn fits(&self, place: &Place) -> bool {
        let same = Arc::ptr_eq(&self.context, &place.context) || self.context == place.context;
        same && self.session == place.origin.session
    }
}

impl Writer {
    /// Writes one event and returns its id.
    pub(super) fn emit(&mut self, place: &Place, draft: Draft, out: &mut Vec<Value>) -> String {
        if self.ended && draft.kind != "session.start" {
            self.notes.add(NoteKind::Opened, "session");
            self.emit(place, Draft::new("session.start"), out);
        }
        self.ended = draft.kind == "session.end";
        let id = self.next_id(place, "evt_");
        let known = self.envelope.take().filter(|envelope| envelope.fits(place));
        let envelope = known.unwrap_or_else(|| {
            let agent = &place.context.agent;
            let named = || if agent.is_empty() { "unknown".to_owned() } else { agent.clone() };
            let slug = self.agent.get_or_insert_with(named);
            Envelope::new(place, slug, &mut self.notes)
        });
        let Draft { kind, fields, own, carried, ids: renamed, thread, clean } = draft;
        let mut event = Map::new();
        event.insert("aep_version".into(), json!(VERSION));
        event.insert("id".into(), json!(id));
        event.insert("type".into(), json!(kind));
        event.insert("time".into(), json!(time_text(place.origin.time)));
        event.extend(envelope.fields.clone());
        let mut ids = envelope.ids.clone();
        self.envelope = Some(envelope);
        if let Some(thread) = thread {
            ids.retain(|id, _| !id.starts_with("session."));
            let before = ids.len();
            let mut session = threads(place, Some(&thread), &mut ids);
            for id in ids.keys().skip(before) {
                self.notes.add(NoteKind::Renamed, id);
            }
            if let Some(Value::Object(old)) = event.get_mut("session") {
                session
                    .extend(old.remove("permission_mode").map(|it| ("permission_mode".into(), it)));
            }
            event.insert("session".into(), Value::Object(session));
        }
        for (id, was) in renamed {
            self.notes.add(NoteKind::Renamed, &id);
            ids.insert(id, was);
        }
        for (key, value) in fields {
            let value = if clean && key == "content" { value } else { self.clean(&key, value) };
            event.insert(key, value);
        }
        let mut facts = own;
        if self.mode.carry {
            facts.extend(carried);
        }
        if !ids.is_empty() {
            for was in ids.values_mut() {
                *was = json!(text::shorten(was.as_str().unwrap_or_default(), 1_024));
            }
            facts.insert("ids".into(), Value::Object(ids));
        }
        if !facts.is_empty() {
            let facts = text::redact_json(&Value::Object(facts));
            match event.get_mut("extensions") {
                Some(Value::Object(extensions)) => extensions.insert(OWN.to_owned(), facts),
                _ => event.insert("extensions".into(), json!({ OWN: facts })),
            };
        }
        out.push(Value::Object(event));
        id
    }

    /// Writes one response.
    pub(super) fn respond(&mut self, mut response: Map<String, Value>, out: &mut Vec<Value>) {
        for key in ["control", "decision"] {
            if let Some(value) = response.get_mut(key).map(Value::take) {
                response.insert(key.to_owned(), self.clean(key, value));
            }
        }
        out.push(Value::Object(response));
    }

    pub(super) fn next_id(&mut self, place: &Place, prefix: &str) -> String {
        let n = self.n;
        self.n += 1;
        let origin = &place.origin;
        id::derive(prefix, &["aep", &origin.session, &origin.seq.to_string(), &n.to_string()])
    }

    /// A field without credentials, and with texts that are not too long.
    fn clean(&mut self, key: &str, value: Value) -> Value {
        match (key, value) {
            ("metrics", value) => value,
            ("content", Value::Array(entries)) => {
                entries.iter().map(|entry| self.clean_content(entry)).collect()
            }
            ("action" | "decision" | "control", Value::Object(fields)) => {
                let fields = fields.into_iter().map(|(name, value)| {
                    let value = match name.as_str() {
                        // Ids join events; words and times are not texts.
                        "id" | "type" | "status" | "policy_id" | "outcome" | "time"
                        | "behavior" => value,
                        "input" | "output" | "updated_input" if self.mode.unredacted => value,
                        _ => self.redacted(&format!("{key}.{name}"), &value),
                    };
                    (name, value)
                });
                Value::Object(fields.collect())
            }
            (_, value) => self.redacted(key, &value),
        }
    }

    fn clean_content(&mut self, entry: &Value) -> Value {
        let entry = self.redacted("content", entry);
        let Value::Object(mut entry) = entry else { return entry };
        if let Some(whole) = entry.get("text").and_then(Value::as_str)
            && whole.len() > TEXT_BYTES
        {
            let chars = whole.chars().count();
            let cut = whole.floor_char_boundary(TEXT_BYTES);
            let cut = whole.get(..cut).unwrap_or_default().to_owned();
            self.notes.add(NoteKind::Shortened, "content");
            entry.insert("text".into(), json!(cut));
            entry.insert("truncated".into(), json!(true));
            entry.insert("original_length".into(), json!(chars));
        }
        Value::Object(entry)
    }

    fn redacted(&mut self, place: &str, value: &Value) -> Value {
        let shown = text::redact_json(value);
        if shown != *value {
            self.notes.add(NoteKind::Redacted, place);
        }
        match shown {
            Value::String(message) if matches!(place, "control.message" | "decision.reason") => {
                Value::String(text::shorten(&message, MESSAGE_CHARS).into_owned())
            }
            shown => shown,
        }
    }
}

fn people(value: &str, place: &str, notes: &mut Notes) -> String {
    let shown = text::redact(value);
    if shown != value {
        notes.add(NoteKind::Redacted, place);
    }
    shown.into_owned()
}

/// The session's ids: of the agent itself, or of a subagent and those above it.
fn threads(
    place: &Place,
    thread: Option<&Thread>,
    ids: &mut Map<String, Value>,
) -> Map<String, Value> {
    let context = &place.context;
    let mut session = Map::new();
    let mut put = |target: &mut Map<String, Value>, object: &str, key: &str, id: Option<&str>| {
        if let Some(id) = id.filter(|id| !id.is_empty()) {
            put_id(target, object, key, id, ids);
        }
    };
    put(&mut session, "session", "id", Some(&place.origin.session));
    let own = context.session.as_deref().filter(|session| !session.is_empty());
    let main = own.unwrap_or(&place.origin.session);
    let child = thread.map(|thread| thread.id.as_str()).or(context.subagent.as_deref());
    if let Some(child) = child {
        put_id(&mut session, "session", "conversation_id", child, ids);
        let mut put =
            |target: &mut Map<String, Value>, object: &str, key: &str, id: Option<&str>| {
                if let Some(id) = id.filter(|id| !id.is_empty()) {
                    put_id(target, object, key, id, ids);
                }
            };
        put(&mut session, "session", "root_conversation_id", Some(main));
        let mut parent = Map::new();
        let above = thread.and_then(|thread| thread.parent.as_deref()).unwrap_or(main);
        put(&mut parent, "session.parent", "conversation_id", Some(above));
        parent.insert("relation".into(), json!("subagent"));
        let spawning = thread.and_then(|thread| thread.action.as_deref());
        put(&mut parent, "session.parent", "spawning_action_id", spawning);
        session.insert("parent".into(), Value::Object(parent));
    } else {
        put(&mut session, "session", "conversation_id", own);
    }
    if let Some(turn) = context.turn.as_deref().filter(|turn| !turn.is_empty()) {
        put_id(&mut session, "session", "turn_id", turn, ids);
    }
    session
}

/// Puts an id where it fits, else a hash of it, and remembers what it was.
fn put_id(
    target: &mut Map<String, Value>,
    object: &str,
    key: &str,
    raw: &str,
    ids: &mut Map<String, Value>,
) {
    let id = fit(raw);
    if id != raw {
        ids.insert(format!("{object}.{key}"), json!(raw));
    }
    target.insert(key.to_owned(), json!(id));
}
