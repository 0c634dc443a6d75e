//! One event in its parts.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::draft::{Thread, fit, name};
use super::{OWN, Scene};
use crate::activity::Context;
use crate::aep::event::VERSION;
use crate::event::{time_json, time_text};
use crate::text;
use crate::translate::{NoteKind, Notes};
use crate::written::{Fields, most_text, most_value, put, put_name, put_text, put_value};

/// What an event is made of.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    pub(crate) kind: Cow<'static, str>,
    pub(super) id: String,
    pub(super) time: Timestamp,
    pub(super) envelope: Arc<Envelope>,
    /// The session, where it is not the envelope's.
    pub(super) session: Option<Box<Map<String, Value>>>,
    pub(super) fields: Fields,
    /// What others say in `extensions`.
    pub(super) extensions: Option<Box<Map<String, Value>>>,
    /// What stands under `extensions.x-banister`.
    pub(crate) own: Fields,
}

impl Parts {
    /// Ids, times and the version have nothing in them that needs an escape.
    pub(crate) fn write_json(&self, out: &mut Vec<u8>) {
        out.reserve(768);
        put(&[r#"{"aep_version":""#, VERSION, r#"","id":""#, &self.id, r#"","type":"#], out);
        put_text(&self.kind, out);
        put_name("time", out);
        time_json(self.time, out);
        self.write_envelope(out);
        self.fields.write_json(out);
        if self.extensions.is_some() || !self.own.is_empty() {
            put(&[r#","extensions":{"#], out);
            for (name, value) in self.extensions.iter().flat_map(|extensions| extensions.iter()) {
                put_text(name, out);
                out.push(b':');
                put_value(value, out);
                out.push(b',');
            }
            if self.own.is_empty() {
                out.pop_if(|last| *last == b',');
            } else {
                put(&["\"", OWN, "\":"], out);
                self.own.write_object(out);
            }
            out.push(b'}');
        }
        out.push(b'}');
    }

    /// How many bytes it takes at most.
    pub(crate) fn most_bytes(&self) -> usize {
        let of = |map: &Option<Box<Map<String, Value>>>| {
            let fields = map.iter().flat_map(|map| map.iter());
            fields.map(|(name, value)| most_text(name) + most_value(value)).sum::<usize>()
        };
        512 + self.envelope.json.len()
            + of(&self.session)
            + of(&self.extensions)
            + self.fields.most_bytes()
            + self.own.most_bytes()
    }

    fn write_envelope(&self, out: &mut Vec<u8>) {
        let Some(session) = &self.session else {
            if !self.fields.has("workspace") {
                out.extend_from_slice(&self.envelope.json);
                return;
            }
            return self.write_envelope_with(self.envelope.fields.get("session"), out);
        };
        self.write_envelope_with(Some(&Value::Object((**session).clone())), out);
    }

    /// The envelope with another session, or without what a field of the event says.
    fn write_envelope_with(&self, session: Option<&Value>, out: &mut Vec<u8>) {
        for (name, value) in &self.envelope.fields {
            if name != "session" && !self.fields.has(name) {
                put_name(name, out);
                put_value(value, out);
            }
        }
        if let Some(session) = session {
            put_name("session", out);
            put_value(session, out);
        }
    }

    pub(crate) fn into_map(self) -> Map<String, Value> {
        let mut event = Map::with_capacity(16);
        event.insert("aep_version".into(), json!(VERSION));
        event.insert("id".into(), json!(self.id));
        event.insert("type".into(), json!(self.kind));
        event.insert("time".into(), json!(time_text(self.time)));
        event.extend(self.envelope.fields.clone());
        if let Some(session) = self.session {
            event.insert("session".into(), Value::Object(*session));
        }
        self.fields.put_into(&mut event);
        if self.extensions.is_some() || !self.own.is_empty() {
            let mut extensions = self.extensions.map_or_else(Map::new, |extensions| *extensions);
            if !self.own.is_empty() {
                extensions.insert(OWN.to_owned(), Value::Object(self.own.into_map()));
            }
            event.insert("extensions".into(), Value::Object(extensions));
        }
        event
    }
}

/// Who and where, as every event of a context tells it.
#[derive(Debug)]
pub(super) struct Envelope {
    context: Arc<Context>,
    session: Arc<str>,
    fields: Map<String, Value>,
    /// The fields as they stand in JSON, each behind a comma.
    json: Vec<u8>,
    /// Ids that not every reader takes, as they were.
    pub(super) ids: Map<String, Value>,
}

impl Envelope {
    /// `slug` is the agent that the session belongs to, whoever a message says it is of.
    pub(super) fn new(scene: Scene<'_>, slug: &str, notes: &mut Notes) -> Self {
        let context = &scene.context;
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
        let mut session = threads(scene, None, &mut ids);
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
        let mut json = Vec::new();
        for (name, value) in &fields {
            put_name(name, &mut json);
            put_value(value, &mut json);
        }
        Self {
            context: Arc::clone(context),
            session: Arc::clone(&scene.origin.session),
            fields,
            json,
            ids,
        }
    }

    pub(super) fn fits(&self, scene: Scene<'_>) -> bool {
        let same = Arc::ptr_eq(&self.context, scene.context) || self.context == *scene.context;
        same && self.session == scene.origin.session
    }

    /// The permission mode that the session is in.
    pub(super) fn permission_mode(&self) -> Option<&Value> {
        self.fields.get("session")?.get("permission_mode")
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
pub(super) fn threads(
    scene: Scene<'_>,
    thread: Option<&Thread>,
    ids: &mut Map<String, Value>,
) -> Map<String, Value> {
    let context = scene.context;
    let mut session = Map::new();
    let mut put = |target: &mut Map<String, Value>, object: &str, key: &str, id: Option<&str>| {
        if let Some(id) = id.filter(|id| !id.is_empty()) {
            put_id(target, object, key, id, ids);
        }
    };
    put(&mut session, "session", "id", Some(&scene.origin.session));
    let own = context.session.as_deref().filter(|session| !session.is_empty());
    let main = own.unwrap_or(&scene.origin.session);
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
