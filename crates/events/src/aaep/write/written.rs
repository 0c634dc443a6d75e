//! One event in its parts. It is written out as JSON without a [`Value`] in between, which is most of the work of a
//! translation; a [`Value`] is made only where somebody looks into it. Both say the same, in the same order.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::words::Words;
use super::{EXTENSION_CONTEXT, fit};
use crate::aaep::event::{CONTEXT, VERSION};
use crate::event::{time_json, time_text};

/// One event that was written.
#[derive(Debug, Clone)]
pub struct Written(Form);

#[derive(Debug, Clone)]
enum Form {
    Parts(Box<Parts>),
    /// It was too long, and was looked into.
    Shortened(Map<String, Value>),
}

/// What an event is made of.
#[derive(Debug, Clone)]
pub(super) struct Parts {
    pub(super) begin: Arc<Begin>,
    pub(super) kind: &'static str,
    pub(super) id: String,
    pub(super) sequence: u64,
    pub(super) time: Timestamp,
    pub(super) urgency: &'static str,
    pub(super) fields: Fields,
    pub(super) words: Option<Arc<Words>>,
    pub(super) extensions: Option<Value>,
}

/// What all events of a turn have in common, as long as the same agent speaks.
#[derive(Debug)]
pub(super) struct Begin {
    session: String,
    producer: Value,
    verbosity: String,
    hints: Value,
    /// The same as it stands in JSON.
    json: [String; 4],
}

impl Begin {
    pub(super) fn new(session: &str, producer: Value, verbosity: &str, hints: Value) -> Self {
        let json = [json!(session), producer.clone(), json!(verbosity), hints.clone()];
        Self {
            session: session.to_owned(),
            producer,
            verbosity: verbosity.to_owned(),
            hints,
            json: json.map(|value| value.to_string()),
        }
    }

    pub(super) fn is_of(&self, session: &str) -> bool {
        self.session == session
    }
}

/// The fields that only some types of events have, in their order. No name stands in them twice.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    pub(super) fn of<const N: usize>(fields: [(&'static str, Value); N]) -> Self {
        Self(fields.into())
    }

    pub(super) fn put(&mut self, name: &'static str, value: impl Into<Value>) {
        self.0.push((name, value.into()));
    }

    pub(super) fn text_mut(&mut self, name: &str) -> Option<&mut String> {
        self.0.iter_mut().find_map(|(own, value)| match value {
            Value::String(text) if *own == name => Some(text),
            _ => None,
        })
    }
}

impl Written {
    /// An event within AAEP's limits, and whether it had to be shortened for that.
    pub(super) fn new(mut parts: Parts) -> (Self, bool) {
        for (name, value) in &mut parts.fields.0 {
            if let Value::String(text) = value
                && *name != "chunk"
            {
                fit::begin_whole(text);
            }
        }
        let texts = parts.words.iter().flat_map(|words| words.texts());
        let texts: usize = texts.map(|(_, text)| fit::most_text(text)).sum();
        let values = parts.fields.0.iter().map(|(_, value)| value).chain(&parts.extensions);
        let values: usize = values.map(fit::most_bytes).sum();
        if fit::is_short(texts + values + parts.begin.json.iter().map(String::len).sum::<usize>()) {
            return (Self(Form::Parts(parts.into())), false);
        }
        let mut fields = parts.clone().into_map();
        if fit::within(&mut fields) {
            (Self(Form::Shortened(fields)), true)
        } else {
            (Self(Form::Parts(parts.into())), false)
        }
    }

    /// The type of event without its prefix, such as `state.changed`.
    pub fn kind(&self) -> &str {
        match &self.0 {
            Form::Parts(parts) => parts.kind,
            Form::Shortened(fields) => {
                let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default();
                kind.strip_prefix(PREFIX).unwrap_or(kind)
            }
        }
    }

    /// The event as a value.
    pub fn into_value(self) -> Value {
        match self.0 {
            Form::Parts(parts) => Value::Object(parts.into_map()),
            Form::Shortened(fields) => Value::Object(fields),
        }
    }

    /// Appends the event as JSON, on one line and without its end.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Form::Parts(parts) => parts.write_json(out),
            Form::Shortened(fields) => put_json(fields, out),
        }
    }
}

/// What the names of all types begin with.
const PREFIX: &str = "aaep:agent.";

impl Parts {
    fn into_map(self) -> Map<String, Value> {
        let Self { begin, kind, id, sequence, time, urgency, fields, words, extensions } = self;
        let mut event = Map::with_capacity(16 + fields.0.len());
        let mut put = |name: &str, value: Value| event.insert(name.to_owned(), value);
        let context = match extensions {
            Some(_) => json!([CONTEXT, EXTENSION_CONTEXT]),
            None => Value::from(CONTEXT),
        };
        put("@context", context);
        put("aaep_version", Value::from(VERSION));
        put("type", Value::from(format!("{PREFIX}{kind}")));
        put("event_id", Value::from(id));
        put("session_id", Value::from(begin.session.as_str()));
        put("sequence_number", Value::from(sequence));
        put("timestamp", Value::from(time_text(time)));
        put("producer", begin.producer.clone());
        put("verbosity", Value::from(begin.verbosity.as_str()));
        put("urgency", Value::from(urgency));
        put("localization_hints", begin.hints.clone());
        for (name, value) in fields.0 {
            put(name, value);
        }
        for (name, text) in words.iter().flat_map(|words| words.texts()) {
            put(name, Value::from(text));
        }
        if let Some(extensions) = extensions {
            put("extensions", extensions);
        }
        event
    }

    /// Ids, types and the words of the protocol have nothing in them that needs an escape.
    fn write_json(&self, out: &mut Vec<u8>) {
        out.reserve(1_024);
        let [session, producer, verbosity, hints] = &self.begin.json;
        match self.extensions {
            Some(_) => {
                put(&[r#"{"@context":[""#, CONTEXT, r#"",""#, EXTENSION_CONTEXT, r#""]"#], out);
            }
            None => put(&[r#"{"@context":""#, CONTEXT, r#"""#], out),
        }
        put(&[r#","aaep_version":""#, VERSION, r#"","type":""#, PREFIX, self.kind], out);
        put(&[r#"","event_id":""#, &self.id, r#"","session_id":"#, session], out);
        put_name("sequence_number", out);
        put_json(&self.sequence, out);
        put_name("timestamp", out);
        time_json(self.time, out);
        put(&[r#","producer":"#, producer, r#","verbosity":"#, verbosity], out);
        put(&[r#","urgency":""#, self.urgency, r#"","localization_hints":"#, hints], out);
        for (name, value) in &self.fields.0 {
            put_name(name, out);
            put_json(value, out);
        }
        for (name, text) in self.words.iter().flat_map(|words| words.texts()) {
            put_name(name, out);
            put_json(text, out);
        }
        if let Some(extensions) = &self.extensions {
            put_name("extensions", out);
            put_json(extensions, out);
        }
        out.push(b'}');
    }
}

fn put(texts: &[&str], out: &mut Vec<u8>) {
    for text in texts {
        out.extend_from_slice(text.as_bytes());
    }
}

fn put_name(name: &str, out: &mut Vec<u8>) {
    put(&[",\"", name, "\":"], out);
}

fn put_json(value: &(impl serde::Serialize + ?Sized), out: &mut Vec<u8>) {
    // Writing a value to memory does not fail.
    serde_json::to_writer(out, value).ok();
}
