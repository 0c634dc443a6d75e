//! The last step of every event and response: ids, the envelope, no credentials, nothing too long.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::draft::{Draft, MESSAGE_CHARS, TEXT_BYTES};
use super::parts::{Envelope, Parts, threads};
use super::{Scene, Writer};
use crate::id::{self, Decimal};
use crate::text;
use crate::translate::NoteKind;
use crate::written::{Field, Fields, Written};

impl Writer {
    /// Writes one event.
    pub(super) fn emit(&mut self, scene: Scene<'_>, draft: Draft, out: &mut Vec<Written>) {
        let id = self.next_event(scene, &draft.kind, out);
        self.emit_as(scene, id, draft, out);
    }

    /// Writes one event and returns its id.
    pub(super) fn emit_named(
        &mut self,
        scene: Scene<'_>,
        draft: Draft,
        out: &mut Vec<Written>,
    ) -> String {
        let id = self.next_event(scene, &draft.kind, out);
        self.emit_as(scene, id.clone(), draft, out);
        id
    }

    /// The id of the next event. A session that was ended begins anew before it.
    fn next_event(&mut self, scene: Scene<'_>, kind: &str, out: &mut Vec<Written>) -> String {
        if self.ended && kind != "session.start" {
            self.notes.add(NoteKind::Opened, "session");
            self.emit(scene, Draft::new("session.start"), out);
        }
        self.ended = kind == "session.end";
        self.next_id(scene, "evt_")
    }

    fn emit_as(&mut self, scene: Scene<'_>, id: String, draft: Draft, out: &mut Vec<Written>) {
        let envelope = self.envelope_of(scene);
        let Draft { kind, mut fields, extensions, own, carried, ids: renamed, thread, clean } =
            draft;
        let mut ids = envelope.ids.clone();
        let session = thread.map(|thread| {
            ids.retain(|id, _| !id.starts_with("session."));
            let before = ids.len();
            let mut session = threads(scene, Some(&thread), &mut ids);
            for id in ids.keys().skip(before) {
                self.notes.add(NoteKind::Renamed, id);
            }
            if let Some(mode) = envelope.permission_mode() {
                session.insert("permission_mode".into(), mode.clone());
            }
            Box::new(session)
        });
        for (id, was) in renamed {
            self.notes.add(NoteKind::Renamed, &id);
            ids.insert(id, was);
        }
        for (key, field) in fields.iter_mut() {
            if !(clean && key == "content") {
                self.clean(key, field);
            }
        }
        let extensions = extensions.map(|extensions| {
            match self.redacted("extensions", Value::Object(*extensions)) {
                Value::Object(extensions) => Box::new(extensions),
                _ => Box::default(),
            }
        });
        let mut facts = own;
        if self.mode.carry {
            facts.extend(carried);
        }
        if !ids.is_empty() {
            for was in ids.values_mut() {
                *was = json!(text::shorten(was.as_str().unwrap_or_default(), 1_024));
            }
            facts.put("ids", ids);
        }
        facts.redact();
        let time = scene.origin.time;
        let parts = Parts { kind, id, time, envelope, session, fields, extensions, own: facts };
        out.push(parts.into());
    }

    /// Who and where: made once, as long as nothing changes.
    fn envelope_of(&mut self, scene: Scene<'_>) -> Arc<Envelope> {
        if let Some(known) = self.envelope.as_ref().filter(|envelope| envelope.fits(scene)) {
            return Arc::clone(known);
        }
        let agent = &scene.context.agent;
        let named = || if agent.is_empty() { "unknown".to_owned() } else { agent.clone() };
        let slug = self.agent.get_or_insert_with(named);
        let envelope = Arc::new(Envelope::new(scene, slug, &mut self.notes));
        self.envelope = Some(Arc::clone(&envelope));
        envelope
    }

    /// Writes one response.
    pub(super) fn respond(&mut self, mut response: Map<String, Value>, out: &mut Vec<Written>) {
        for key in ["control", "decision"] {
            if let Some(value) = response.get_mut(key).map(Value::take) {
                response.insert(key.to_owned(), self.clean_value(key, value));
            }
        }
        out.push(Value::Object(response).into());
    }

    pub(super) fn next_id(&mut self, scene: Scene<'_>, prefix: &str) -> String {
        let (seq, n) = (Decimal::of(scene.origin.seq), Decimal::of(self.n.into()));
        self.n += 1;
        id::derive(prefix, &["aep", &scene.origin.session, seq.as_str(), n.as_str()])
    }

    /// Takes credentials out of a field, and shortens texts that are too long.
    fn clean(&mut self, key: &'static str, field: &mut Field) {
        match (key, field) {
            ("metrics", _) => {}
            ("content", Field::List(entries)) => {
                for entry in entries {
                    self.clean_entry(entry);
                }
            }
            ("action" | "decision", Field::Object(fields)) => {
                for (name, field) in fields.iter_mut() {
                    if self.stays(name) {
                        continue;
                    }
                    if field.redact() {
                        self.notes.add(NoteKind::Redacted, format!("{key}.{name}"));
                    }
                    if let (("decision", "reason"), Field::Text(reason)) = ((key, name), field)
                        && let std::borrow::Cow::Owned(short) = text::shorten(reason, MESSAGE_CHARS)
                    {
                        *reason = short;
                    }
                }
            }
            ("content" | "action" | "decision", Field::Value(value)) => {
                **value = self.clean_value(key, value.take());
            }
            (_, field) => {
                if field.redact() {
                    self.notes.add(NoteKind::Redacted, key);
                }
            }
        }
    }

    /// Ids join events; words and times are not texts.
    fn stays(&self, name: &str) -> bool {
        match name {
            "id" | "type" | "status" | "policy_id" | "outcome" | "time" | "behavior" => true,
            "input" | "output" | "updated_input" => self.mode.unredacted,
            _ => false,
        }
    }

    /// [`Writer::clean`], of a value that came from elsewhere.
    fn clean_value(&mut self, key: &str, value: Value) -> Value {
        match (key, value) {
            ("content", Value::Array(entries)) => {
                entries.into_iter().map(|entry| self.clean_content(entry)).collect()
            }
            ("action" | "decision" | "control", Value::Object(fields)) => {
                let fields = fields.into_iter().map(|(name, value)| {
                    let value = if self.stays(&name) {
                        value
                    } else {
                        self.redacted(&format!("{key}.{name}"), value)
                    };
                    (name, value)
                });
                Value::Object(fields.collect())
            }
            (_, value) => self.redacted(key, value),
        }
    }

    /// A text of our own.
    fn clean_entry(&mut self, entry: &mut Field) {
        if entry.redact() {
            self.notes.add(NoteKind::Redacted, "content");
        }
        let Field::Object(fields) = entry else { return };
        let Some(whole) = fields.text_mut("text").filter(|text| text.len() > TEXT_BYTES) else {
            return;
        };
        let chars = whole.chars().count();
        whole.truncate(whole.floor_char_boundary(TEXT_BYTES));
        self.notes.add(NoteKind::Shortened, "content");
        shortened(fields, chars as u64);
    }

    fn clean_content(&mut self, entry: Value) -> Value {
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

    fn redacted(&mut self, place: &str, value: Value) -> Value {
        let shown = match text::redacted_if_needed(&value) {
            Some(shown) => {
                self.notes.add(NoteKind::Redacted, place);
                shown
            }
            None => value,
        };
        match shown {
            Value::String(message) if matches!(place, "control.message" | "decision.reason") => {
                Value::String(text::shorten(&message, MESSAGE_CHARS).into_owned())
            }
            shown => shown,
        }
    }
}

/// Tells that a text was cut.
pub(super) fn shortened(entry: &mut Fields, chars: u64) {
    entry.put("truncated", true);
    entry.put("original_length", chars);
}
