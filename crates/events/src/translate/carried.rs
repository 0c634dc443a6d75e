//! What has no place in the other protocol travels along in Banister's own extension field, and is put back where it
//! came from when the translation is taken back.
//!
//! Which fields these are is measured: those that the readers and writers alone would lose. Putting back only adds what
//! is missing, never what tells events apart, orders them or speaks of consent, and never at the price of a finding.

use std::collections::BTreeMap;
use std::sync::Arc;

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
use crate::written::{Field, Prepared, Written};

/// The most that one event carries along, in bytes.
const BYTES: usize = 8_192;
/// How deep that may be nested: AAEP has eight levels, and the extension takes some.
const DEPTH: usize = 4;
/// How many events may wait for what came along with them to find its place.
const WAITING: usize = 64;
/// The size of an event that takes what travels along without a closer look.
const SMALL_EVENT: usize = 48 * 1_024;

/// The fields of each type that travel along. Rows of the table are read when their type comes first.
#[derive(Debug, Default)]
pub(super) struct CarriedFields<'t> {
    table: Option<(&'t Table, Protocol, Protocol)>,
    types: BTreeMap<String, Carrier>,
    /// Room for what tells one list of fields from another.
    key: Vec<u8>,
}

/// The fields of one type that travel along.
#[derive(Debug)]
struct Carrier {
    paths: Vec<Vec<String>>,
    tree: Vec<Branch>,
    /// What travelled lately: who sends, in which language, from which workspace is the same in message after message.
    recent: Vec<(Vec<u8>, Option<Arc<Prepared>>)>,
    oldest: usize,
}

/// One step of paths that begin alike.
#[derive(Debug, Default)]
struct Branch {
    name: String,
    /// The number of the branch, which tells it from all others.
    number: u32,
    /// Whether all that stands here travels.
    whole: bool,
    /// Where it is a list, what one of its elements has to have: then all of it travels.
    elements: Vec<Vec<String>>,
    inner: Vec<Branch>,
}

/// What of an event travels along: `source` as it stands in the event that carries it.
pub(super) type Source = Arc<Prepared>;

impl<'t> CarriedFields<'t> {
    pub(super) fn of(table: &'t Table, from: Protocol, to: Protocol) -> Self {
        Self { table: Some((table, from, to)), ..Self::default() }
    }

    /// What of an event travels along, if anything.
    pub(super) fn collect(&mut self, kind: &str, event: View<'_>) -> Option<Source> {
        let (table, from, to) = self.table?;
        if !self.types.contains_key(kind) {
            let rest = &table.row(from, kind, to)?.rest;
            self.types.insert(kind.to_owned(), Carrier::new(rest));
        }
        let carrier = self.types.get_mut(kind)?;
        self.key.clear();
        gather(&carrier.tree, event, &mut self.key);
        if self.key.is_empty() {
            return None;
        }
        if let Some((_, known)) = carrier.recent.iter().find(|(key, _)| *key == self.key) {
            return known.clone();
        }
        let fields = carrier.take(event).map(|fields| {
            let source = json!({ "protocol": from, "type": kind, "fields": fields });
            Arc::new(Prepared::new(source))
        });
        carrier.keep(&self.key, fields.clone());
        fields
    }
}

impl Carrier {
    const RECENT: usize = 16;
    const LONGEST_KEY: usize = 2_048;

    fn new(rest: &[String]) -> Self {
        let path = |path: &String| path.split('/').skip(1).map(str::to_owned).collect();
        let paths: Vec<Vec<String>> = rest.iter().map(path).collect();
        let (mut tree, mut count) = (Vec::new(), 0);
        for path in &paths {
            plant(&mut tree, path, &mut count);
        }
        Self { paths, tree, recent: Vec::new(), oldest: 0 }
    }

    fn take(&self, event: View<'_>) -> Option<Map<String, Value>> {
        let mut fields = Map::new();
        for path in &self.paths {
            take(event, path, &mut fields);
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

    fn keep(&mut self, key: &[u8], fields: Option<Arc<Prepared>>) {
        if key.len() > Self::LONGEST_KEY {
            return;
        }
        if self.recent.len() < Self::RECENT {
            self.recent.push((key.to_owned(), fields));
        } else if let Some(oldest) = self.recent.get_mut(self.oldest) {
            *oldest = (key.to_owned(), fields);
            self.oldest = (self.oldest + 1) % Self::RECENT;
        }
    }
}

fn plant(tree: &mut Vec<Branch>, path: &[String], count: &mut u32) {
    let Some((name, rest)) = path.split_first() else { return };
    let at = tree.iter().position(|branch| branch.name == *name).unwrap_or_else(|| {
        *count += 1;
        tree.push(Branch { name: name.clone(), number: *count, ..Branch::default() });
        tree.len() - 1
    });
    let Some(branch) = tree.get_mut(at) else { return };
    match rest.first() {
        None => branch.whole = true,
        Some(next) if next == "*" => branch.elements.push(rest.to_vec()),
        Some(_) => plant(&mut branch.inner, rest, count),
    }
}

/// Appends what stands in an object at the ends of the paths, so that equal keys have equal fields.
fn gather(tree: &[Branch], object: View<'_>, key: &mut Vec<u8>) {
    for (name, value) in object.entries() {
        let branch = match name.plain() {
            Some(name) => tree.iter().find(|branch| branch.name.as_bytes() == name),
            None => tree.iter().find(|branch| name.is(&branch.name)),
        };
        let Some(branch) = branch else { continue };
        if branch.whole || branch.elements.iter().any(|path| is_there(value, path)) {
            key.extend_from_slice(&branch.number.to_le_bytes());
            key.extend_from_slice(value.raw().as_bytes());
        } else if !branch.inner.is_empty() {
            gather(&branch.inner, value, key);
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
pub(super) fn attach(source: &Source, to: Protocol, told: &mut [Translated]) {
    // The change of state before it tells less of it.
    let tells = |told: &&mut Translated| told.event.kind() != "state.changed";
    let Some(told) = told.iter_mut().find(tells) else { return };
    if is_harmless(&source.value)
        && told.event.most_bytes().is_some_and(|bytes| bytes + source.json.len() < SMALL_EVENT)
        && let Some(own) = told.event.own_fields()
    {
        own.put("source", Field::Prepared(Arc::clone(source)));
        return;
    }
    told.event.change(|event| attach_to(event, source, to));
}

/// Whether no rule of any protocol is about what travels, wherever it stands: its size and its depth are bounded.
fn is_harmless(source: &Value) -> bool {
    match source {
        Value::Number(number) => {
            number.as_i64().is_some_and(|number| number.unsigned_abs() < 1 << 53)
        }
        Value::Array(items) => items.iter().all(is_harmless),
        Value::Object(fields) => fields.values().all(is_harmless),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

fn attach_to(event: &mut Value, source: &Source, to: Protocol) {
    let before = event.clone();
    let (outer, inner) = place(to);
    let Some(top) = event.as_object_mut() else { return };
    if to == Protocol::Aaep && !top.contains_key(outer) {
        top.insert("@context".to_owned(), json!([CONTEXT, EXTENSION_CONTEXT]));
    }
    let outer = top.entry(outer).or_insert_with(|| Value::Object(Map::new()));
    if let Some(outer) = outer.as_object_mut() {
        let own = outer.entry(inner).or_insert_with(|| Value::Object(Map::new()));
        if let Some(own) = own.as_object_mut() {
            own.insert("source".to_owned(), source.value.clone());
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
    pub(super) fn put_back(&mut self, to: Protocol, event: &mut Written) {
        if self.0.is_empty() {
            return;
        }
        let kind = event.kind();
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
