//! One event in its parts.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::words::Words;
use super::{EXTENSION_CONTEXT, clamp};
use crate::aaep::event::{CONTEXT, VERSION};
use crate::event::{time_json, time_text};
use crate::written::{Field, Fields, Written, most_text, put, put_name, put_number, put_text};

/// What an event is made of.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    pub(super) begin: Arc<Begin>,
    pub(crate) kind: &'static str,
    pub(super) id: String,
    pub(super) sequence: u64,
    pub(super) time: Timestamp,
    pub(super) urgency: &'static str,
    pub(super) fields: Fields,
    pub(super) words: Option<Arc<Words>>,
    /// What stands under `extensions.banister`.
    pub(crate) own: Fields,
}

/// What all events of a turn have in common, as long as the same agent speaks.
#[derive(Debug)]
pub(super) struct Begin {
    session: String,
    producer: Value,
    verbosity: String,
    hints: Value,
    /// The same as it stands in JSON, with the names between.
    json: [String; 3],
}

impl Begin {
    pub(super) fn new(session: &str, producer: Value, verbosity: &str, hints: Value) -> Self {
        let json = [
            format!(r#"","session_id":{},"sequence_number":"#, json!(session)),
            format!(r#","producer":{producer},"verbosity":{},"urgency":""#, json!(verbosity)),
            format!(r#"","localization_hints":{hints}"#),
        ];
        Self { session: session.to_owned(), producer, verbosity: verbosity.to_owned(), hints, json }
    }

    pub(super) fn is_of(&self, session: &str) -> bool {
        self.session == session
    }

    fn length(&self) -> usize {
        self.json.iter().map(String::len).sum()
    }
}

/// What the names of all types begin with.
const PREFIX: &str = "aaep:agent.";

impl Parts {
    /// The event within AAEP's limits, and whether it had to be shortened for that.
    pub(super) fn finish(mut self) -> (Written, bool) {
        for (name, value) in self.fields.iter_mut() {
            if let Field::Text(text) = value
                && name != "chunk"
            {
                clamp::begin_whole(text);
            }
        }
        if clamp::is_short(self.most_bytes()) {
            return (self.into(), false);
        }
        let mut fields = self.clone().into_map();
        if clamp::within(&mut fields) {
            (Value::Object(fields).into(), true)
        } else {
            (self.into(), false)
        }
    }

    /// How many bytes it takes at most, without what all events have.
    pub(crate) fn most_bytes(&self) -> usize {
        let texts = self.words.iter().flat_map(|words| words.texts());
        let texts: usize = texts.map(|(_, text)| most_text(text)).sum();
        texts + self.fields.most_bytes() + self.own.most_bytes() + self.begin.length()
    }

    pub(crate) fn into_map(self) -> Map<String, Value> {
        let Self { begin, kind, id, sequence, time, urgency, fields, words, own } = self;
        let mut event = Map::with_capacity(24);
        let mut put = |name: &str, value: Value| event.insert(name.to_owned(), value);
        let context =
            if own.is_empty() { Value::from(CONTEXT) } else { json!([CONTEXT, EXTENSION_CONTEXT]) };
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
        fields.put_into(&mut event);
        for (name, text) in words.iter().flat_map(|words| words.texts()) {
            event.insert(name.to_owned(), Value::from(text));
        }
        if !own.is_empty() {
            event.insert("extensions".to_owned(), json!({ "banister": own.into_map() }));
        }
        event
    }

    /// Ids, types and the words of the protocol have nothing in them that needs an escape.
    pub(crate) fn write_json(&self, out: &mut Vec<u8>) {
        out.reserve(1_024);
        let [session, producer, hints] = &self.begin.json;
        if self.own.is_empty() {
            put(&[r#"{"@context":""#, CONTEXT, r#"","aaep_version":""#], out);
        } else {
            put(&[r#"{"@context":[""#, CONTEXT, r#"",""#, EXTENSION_CONTEXT], out);
            put(&[r#""],"aaep_version":""#], out);
        }
        put(&[VERSION, r#"","type":""#, PREFIX, self.kind, r#"","event_id":""#], out);
        put(&[&self.id, session], out);
        put_number(self.sequence, out);
        put_name("timestamp", out);
        time_json(self.time, out);
        put(&[producer, self.urgency, hints], out);
        self.fields.write_json(out);
        for (name, text) in self.words.iter().flat_map(|words| words.texts()) {
            put_name(name, out);
            put_text(text, out);
        }
        if !self.own.is_empty() {
            put(&[r#","extensions":{"banister":"#], out);
            self.own.write_object(out);
            out.push(b'}');
        }
        out.push(b'}');
    }
}
