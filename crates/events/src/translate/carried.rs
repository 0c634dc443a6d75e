//! What has no place in the other protocol travels along in Banister's own extension field, and is put back where it
//! came from when the translation is taken back.
//!
//! Which fields these are is measured: those that the readers and writers alone would lose. Putting back only adds what
//! is missing, never what tells events apart, orders them or speaks of consent, and never at the price of a finding.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Translated;
use super::table::Table;
use crate::aaep::event::CONTEXT;
use crate::aaep::write::EXTENSION_CONTEXT;
use crate::check;
use crate::event::Protocol;
use crate::finding::Severity;
use crate::json::View;
use crate::text;
use crate::writer::WrittenEvent;

/// The most that one event carries along, in bytes.
const BYTES: usize = 8_192;
/// How deep that may be nested: AAEP has eight levels, and the extension takes some.
const DEPTH: usize = 4;
/// How many events may wait for what came along with them to find its place.
const WAITING: usize = 64;

/// The fields of each type that travel along. Rows of the table are read when their type comes first.
#[derive(Debug, Default)]
pub(super) struct CarriedFields<'t> {
    table: Option<(&'t Table, Protocol, Protocol)>,
    types: BTreeMap<String, Vec<Vec<String>>>,
}

impl<'t> CarriedFields<'t> {
    pub(super) fn of(table: &'t Table, from: Protocol, to: Protocol) -> Self {
        Self { table: Some((table, from, to)), types: BTreeMap::new() }
    }

    /// What of an event travels along, if anything.
    pub(super) fn collect(&mut self, kind: &str, event: View<'_>) -> Option<Map<String, Value>> {
        let (table, from, to) = self.table?;
        if !self.types.contains_key(kind) {
            let rest = &table.row(from, kind, to)?.rest;
            let path = |path: &String| path.split('/').skip(1).map(str::to_owned).collect();
            self.types.insert(kind.to_owned(), rest.iter().map(path).collect());
        }
        let mut fields = Map::new();
        for path in self.types.get(kind)? {
            take(event, path, &mut fields);
        }
        if fields.is_empty() {
            return None;
        }
        let mut fields = text::redacted(Value::Object(fields));
        silence(&mut fields);
        prune(&mut fields, DEPTH);
        let fits = fields.to_string().len() <= BYTES;
        match fields {
            Value::Object(fields) if fits && !fields.is_empty() => Some(fields),
            _ => None,
        }
    }
}

/// Copies what stands at a path, if anything does; a list is copied whole, so that its elements stay where they are.
fn take(at: View<'_>, path: &[String], into: &mut Map<String, Value>) {
    let Some((name, rest)) = path.split_first() else { return };
    let Some(inner) = at.get(name).filter(|inner| is_there(*inner, rest)) else { return };
    if rest.first().is_none_or(|next| next == "*") {
        into.insert(name.clone(), inner.to_value());
        return;
    }
    let entry = into.entry(name.clone()).or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(entry) = entry {
        take(inner, rest, entry);
    }
}

/// Whether anything stands at a path.
fn is_there(at: View<'_>, path: &[String]) -> bool {
    match path.split_first() {
        None => true,
        Some((name, rest)) if name == "*" => at.items().any(|item| is_there(item, rest)),
        Some((name, rest)) => at.get(name).is_some_and(|inner| is_there(inner, rest)),
    }
}

/// Takes out what is nested deeper than this.
fn prune(value: &mut Value, levels: usize) {
    let deep = |inner: &Value| levels <= 1 && (inner.is_object() || inner.is_array());
    match value {
        Value::Object(fields) => {
            fields.retain(|_, inner| !deep(inner));
            fields.values_mut().for_each(|inner| prune(inner, levels.saturating_sub(1)));
        }
        // A list without one of its elements would be another list.
        Value::Array(items) if items.iter().any(deep) => items.clear(),
        Value::Array(items) => {
            for inner in items {
                prune(inner, levels.saturating_sub(1));
            }
        }
        _ => {}
    }
}

/// Lets fields of an event of another protocol travel with the event that tells it.
pub(super) fn attach(
    (from, kind): (Protocol, &str),
    fields: &Map<String, Value>,
    to: Protocol,
    told: &mut [Translated],
) {
    // The change of state before it tells less of it.
    let tells = |told: &&mut Translated| told.event.name() != "state.changed";
    let Some(told) = told.iter_mut().find(tells) else { return };
    told.event.change(|event| attach_to(event, (from, kind), fields, to));
}

fn attach_to(
    event: &mut Value,
    (from, kind): (Protocol, &str),
    fields: &Map<String, Value>,
    to: Protocol,
) {
    let before = event.clone();
    let source = json!({ "protocol": from, "type": kind, "fields": fields });
    let (outer, inner) = place(to);
    let Some(top) = event.as_object_mut() else { return };
    if to == Protocol::Aaep && !top.contains_key(outer) {
        top.insert("@context".to_owned(), json!([CONTEXT, EXTENSION_CONTEXT]));
    }
    let outer = top.entry(outer).or_insert_with(|| Value::Object(Map::new()));
    if let Some(outer) = outer.as_object_mut() {
        let own = outer.entry(inner).or_insert_with(|| Value::Object(Map::new()));
        if let Some(own) = own.as_object_mut() {
            own.insert("source".to_owned(), source);
        }
    }
    if !is_clean(to, event) {
        *event = before;
    }
}

/// Where a protocol lets Banister say what it has no field for.
fn place(protocol: Protocol) -> (&'static str, &'static str) {
    match protocol {
        Protocol::Aaep => ("extensions", "banister"),
        Protocol::Agui => ("metadata", "banister"),
        Protocol::Aep => ("extensions", "x-banister"),
    }
}

/// What came along, on its way back to where it came from.
#[derive(Debug, Default)]
pub(super) struct ReturningFields(Vec<(String, Value)>);

impl ReturningFields {
    /// Notices what came along with an event, if that goes back to where it came from.
    pub(super) fn notice(&mut self, (from, to): (Protocol, Protocol), event: View<'_>) {
        let (outer, inner) = place(from);
        let own = event.get(outer).and_then(|outer| outer.get(inner));
        let Some(source) = own.and_then(|own| own.get("source")) else { return };
        let is_its_own = source.get("protocol").is_some_and(|protocol| protocol.is(to.name()));
        let kind = source.get("type").and_then(View::as_str);
        if let (true, Some(kind), Some(fields)) = (is_its_own, kind, source.get("fields")) {
            let mut fields = text::redacted(fields.to_value());
            silence(&mut fields);
            self.0.push((kind.into_owned(), fields));
            if self.0.len() > WAITING {
                self.0.remove(0);
            }
        }
    }

    /// Puts what came along into the event that it came from.
    pub(super) fn put_back(&mut self, to: Protocol, event: &mut WrittenEvent) {
        if self.0.is_empty() {
            return;
        }
        let kind = event.name();
        let Some(at) = self.0.iter().position(|(known, _)| *known == kind) else { return };
        let (_, fields) = self.0.remove(at);
        event.change(|event| complete(event, fields, to));
    }
}

fn complete(event: &mut Value, fields: Value, to: Protocol) {
    let before = event.clone();
    if let (Value::Object(event), Value::Object(fields)) = (&mut *event, fields) {
        for (name, field) in fields {
            if FIXED.contains(&name.as_str()) {
                continue;
            }
            match event.get_mut(&name) {
                Some(known) => fill(known, field),
                None if SPEAKS.contains(&name.as_str()) => {}
                None => drop(event.insert(name, field)),
            }
        }
    }
    if !is_clean(to, event) {
        *event = before;
    }
}

/// What tells events apart, joins or orders them, and what speaks of consent: the writer alone decides about these.
const FIXED: [&str; 27] = [
    "@context",
    "aaep_version",
    "aep_version",
    "complete",
    "event_id",
    "extensions",
    "id",
    "irreversible",
    "messageId",
    "parentMessageId",
    "parentSubagentRunId",
    "parentToolCallId",
    "position",
    "replace",
    "reply_token",
    "request_event_id",
    "risk_level",
    "role",
    "runId",
    "sequence_number",
    "session_id",
    "subagentRunId",
    "threadId",
    "time",
    "timestamp",
    "tool_call_id",
    "toolCallId",
];
/// What may be completed where it is, and is not added where it is not.
const SPEAKS: [&str; 4] = ["control", "decision", "outcome", "urgency"];

/// What decides something, wherever it stands: it never travels this way.
const DECIDES: [&str; 13] = [
    "approved",
    "default_decision",
    "default_response",
    "editedArgs",
    "interrupts",
    "irreversible",
    "modified_action",
    "response",
    "resume",
    "reversibility",
    "risk_level",
    "status",
    "updated_input",
];

/// Takes out what decides something.
fn silence(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !DECIDES.contains(&name.as_str()));
            fields.values_mut().for_each(silence);
        }
        Value::Array(items) => items.iter_mut().for_each(silence),
        _ => {}
    }
}

/// Adds what is missing.
fn fill(known: &mut Value, rest: Value) {
    match (known, rest) {
        (Value::Object(known), Value::Object(rest)) => {
            for (name, field) in rest {
                match known.get_mut(&name) {
                    Some(known) => fill(known, field),
                    None => drop(known.insert(name, field)),
                }
            }
        }
        (Value::Array(known), Value::Array(rest)) if known.len() == rest.len() => {
            for (known, field) in known.iter_mut().zip(rest) {
                fill(known, field);
            }
        }
        _ => {}
    }
}

fn is_clean(protocol: Protocol, event: &Value) -> bool {
    check::value(protocol, event).iter().all(|finding| finding.rule.severity == Severity::Note)
}
