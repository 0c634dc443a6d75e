//! How the table is measured: an example of every type is translated there and back again.
//!
//! A field is *carried* if its value comes back, and another value in its place comes back too. It is *derived* if the
//! translation changes when the field does. Otherwise it is *lost*. In an example, equal values are meant to be equal
//! (they join events); all others differ, so that a value that is found again can only have come from its field.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::table::{Fate, Row, Table};
use super::{Source, Translator};
use crate::aaep::voice::Voice;
use crate::check;
use crate::event::Protocol;
use crate::finding::Severity;
use crate::written::{kind_of, short};

/// One type of event, in a stream around it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// The type's name in the table.
    pub r#type: String,
    /// What this example shows that another of the same type does not.
    pub about: Option<String>,
    /// The place of the event in the stream.
    pub at: usize,
    /// The stream.
    pub stream: Vec<Value>,
}

/// Measures what becomes of the types that a protocol's examples show: first what readers and writers alone lose, then
/// what is left of that where it travels along.
pub fn measure(from: Protocol, examples: &[Example]) -> Table {
    let mut alone = pass(from, examples, &Table::default());
    for row in alone.0.values_mut().flat_map(BTreeMap::values_mut).flat_map(BTreeMap::values_mut) {
        let lost = row.fields.iter().filter(|(_, fate)| **fate == Fate::Lost);
        row.rest = lost.map(|(path, _)| path.clone()).collect();
    }
    let mut whole = pass(from, examples, &alone);
    for (kind, rows) in whole.0.values_mut().flatten() {
        for (to, row) in rows {
            let Some(before) = alone.row(from, kind, *to) else { continue };
            // Only what comes back is worth its place.
            let back = |path: &&String| row.best.get(*path) == Some(&Fate::Carried);
            row.rest = before.rest.iter().filter(back).cloned().collect();
            let gone: Vec<&String> =
                before.rest.iter().filter(|path| !row.rest.contains(path)).collect();
            row.fields.extend(gone.into_iter().map(|path| (path.clone(), Fate::Lost)));
            row.best.clear();
        }
    }
    whole
}

fn pass(from: Protocol, examples: &[Example], table: &Table) -> Table {
    let mut types: BTreeMap<String, BTreeMap<Protocol, Row>> = BTreeMap::new();
    for example in examples {
        for to in Protocol::ALL.into_iter().filter(|to| *to != from) {
            let row =
                types.entry(short(&example.r#type).to_owned()).or_default().entry(to).or_default();
            for kind in becomes(from, to, example, table) {
                if !row.becomes.contains(&kind) {
                    row.becomes.push(kind);
                }
            }
            for (path, fate) in fates(from, to, example, table) {
                let best = row.best.entry(path.clone()).or_insert(fate);
                *best = fate.min(*best);
                // What one example carries and another does not is told, but not always as it was.
                row.fields
                    .entry(path)
                    .and_modify(|known| *known = if *known == fate { fate } else { Fate::Derived })
                    .or_insert(fate);
            }
        }
    }
    Table([(from, types)].into_iter().collect())
}

/// The events that each message of a stream became, and those of its end.
fn translate(
    from: Protocol,
    to: Protocol,
    stream: &[Value],
    skipped: Option<usize>,
    table: &Table,
) -> Vec<Vec<Value>> {
    let voice = Voice { carry: true, ..Voice::default() };
    let mut translator = Translator::by(table, Source::Protocol(from), to, voice);
    let now = Timestamp::from_second(1_800_000_000).unwrap_or_default();
    let mut told = Vec::new();
    for (place, event) in stream.iter().enumerate() {
        let events = if skipped == Some(place) {
            translator.skip();
            Vec::new()
        } else {
            translator.message(event.to_string().as_bytes(), now).unwrap_or_default()
        };
        told.push(events.into_iter().map(|told| told.event.into_value()).collect());
    }
    told.push(translator.finish().into_iter().map(|told| told.event.into_value()).collect());
    told
}

fn becomes(from: Protocol, to: Protocol, example: &Example, table: &Table) -> Vec<String> {
    let whole = translate(from, to, &example.stream, None, table);
    let at_once = whole.get(example.at).filter(|events| !events.is_empty());
    let events = at_once.cloned().unwrap_or_else(|| {
        // It is told later: by what would not be told without it.
        let without = translate(from, to, &example.stream, Some(example.at), table).concat();
        whole.concat().into_iter().filter(|event| !without.contains(event)).collect()
    });
    let mut kinds = Vec::new();
    for event in &events {
        let kind = kind_of(event).to_owned();
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

fn fates(from: Protocol, to: Protocol, example: &Example, table: &Table) -> Vec<(String, Fate)> {
    let Some(event) = example.stream.get(example.at) else { return Vec::new() };
    // On the way back nothing more has to travel along.
    let none = Table::default();
    let mut leaves = Vec::new();
    walk(event, String::new(), &mut leaves);
    let whole = translate(from, to, &example.stream, None, table).concat();
    let back = translate(to, from, &whole, None, &none).concat();
    leaves
        .into_iter()
        .map(|(path, value)| {
            let other = changed(&value)
                .map(|other| replaced(&example.stream, &value, &other))
                .filter(|stream| is_valid(from, stream.get(example.at)));
            let comes_back = |back: &[Value], value: &Value| {
                back.iter().any(|event| at(event, &path).iter().any(|found| alike(found, value)))
            };
            let again = other.as_ref().is_none_or(|stream| {
                let whole = translate(from, to, stream, None, table).concat();
                let back = translate(to, from, &whole, None, &none).concat();
                changed(&value).is_some_and(|other| comes_back(&back, &other))
            });
            let fate = if comes_back(&back, &value) && again {
                Fate::Carried
            } else {
                let stream = other.unwrap_or_else(|| without(&example.stream, example.at, &path));
                let differs = translate(from, to, &stream, None, table).concat() != whole;
                if differs { Fate::Derived } else { Fate::Lost }
            };
            (generic(&path), fate)
        })
        .collect()
}

/// What the wire is, not what it says.
pub(super) const WIRE: [&str; 5] =
    ["@context", "aaep_version", "aep_version", "protocolVersion", "type"];

/// Objects and lists that hold whatever their sender likes: one thing each.
const OPEN: [&str; 20] = [
    "context",
    "delta",
    "event",
    "extensions",
    "extra_context",
    "forwardedProps",
    "input",
    "messages",
    "metadata",
    "modified_action",
    "output",
    "packaged_context",
    "parameters",
    "patch",
    "payload",
    "rawEvent",
    "responseSchema",
    "result",
    "schema",
    "value",
];

/// All values that hold no others, with their JSON Pointers.
fn walk(value: &Value, path: String, leaves: &mut Vec<(String, Value)>) {
    let name = path.rsplit('/').next().unwrap_or_default();
    // An input of a run has a shape; that of an action has none.
    let is_run = value.get("threadId").is_some();
    let is_state = matches!(path.as_str(), "/snapshot" | "/state" | "/content");
    if (OPEN.contains(&name) || is_state && value.is_object()) && !is_run {
        leaves.push((path, value.clone()));
        return;
    }
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, value) in fields {
                if path.is_empty() && WIRE.contains(&key.as_str()) {
                    continue;
                }
                let key = key.replace('~', "~0").replace('/', "~1");
                walk(value, format!("{path}/{key}"), leaves);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (place, item) in items.iter().enumerate() {
                walk(item, format!("{path}/{place}"), leaves);
            }
        }
        leaf => leaves.push((path, leaf.clone())),
    }
}

/// The path with `*` for every place in a list.
fn generic(path: &str) -> String {
    let parts = path.split('/').map(|part| {
        let number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if number { "*" } else { part }
    });
    parts.collect::<Vec<_>>().join("/")
}

/// What stands at a path, at any place of the lists on the way.
fn at<'a>(value: &'a Value, path: &str) -> Vec<&'a Value> {
    let mut found = vec![value];
    for part in generic(path).split('/').skip(1) {
        let key = part.replace("~1", "/").replace("~0", "~");
        found = found
            .into_iter()
            .flat_map(|value| match value {
                Value::Array(items) if part == "*" => items.iter().collect(),
                Value::Object(fields) => fields.get(&key).into_iter().collect(),
                _ => Vec::new(),
            })
            .collect();
    }
    found
}

fn alike(a: &Value, b: &Value) -> bool {
    a == b || a.as_f64().is_some_and(|a| b.as_f64() == Some(a))
}

/// Another value of the same kind.
fn changed(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) => Some(Value::String(match text.strip_suffix('.') {
            Some(sentence) => format!("{sentence} indeed."),
            None => format!("{text}9"),
        })),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.checked_add(1).map(Value::from),
            None => number.as_f64().map(|number| Value::from(number / 2.0)),
        },
        Value::Bool(truth) => Some(Value::Bool(!truth)),
        Value::Object(fields) => {
            let mut fields = fields.clone();
            fields.insert("another".to_owned(), Value::from("value of it"));
            Some(Value::Object(fields))
        }
        _ => None,
    }
}

/// The stream with another value wherever the value stands: equal values join events.
fn replaced(stream: &[Value], value: &Value, other: &Value) -> Vec<Value> {
    fn inside(at: &mut Value, value: &Value, other: &Value) {
        if at == value {
            *at = other.clone();
            return;
        }
        match at {
            Value::Object(fields) => {
                fields.values_mut().for_each(|field| inside(field, value, other));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| inside(item, value, other)),
            _ => {}
        }
    }
    let mut stream = stream.to_vec();
    for event in &mut stream {
        inside(event, value, other);
    }
    stream
}

/// The stream with a field taken out of one event.
fn without(stream: &[Value], place: usize, path: &str) -> Vec<Value> {
    let mut stream = stream.to_vec();
    let Some((parent, key)) = path.rsplit_once('/') else { return stream };
    match stream.get_mut(place).and_then(|event| event.pointer_mut(parent)) {
        Some(Value::Object(fields)) => {
            fields.remove(&key.replace("~1", "/").replace("~0", "~"));
        }
        Some(Value::Array(items)) => {
            if let Ok(place) = key.parse::<usize>()
                && place < items.len()
            {
                items.remove(place);
            }
        }
        _ => {}
    }
    stream
}

fn is_valid(protocol: Protocol, event: Option<&Value>) -> bool {
    event.is_some_and(|event| {
        check::value(protocol, event).iter().all(|it| it.rule.severity != Severity::Error)
    })
}
