//! One event in its parts: whether clients take it, and what goes into it.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{KEY, PIECE_BYTES, RUNS, Type};
use crate::activity::What;
use crate::check::shape::{self, Known};
use crate::json::{DEEPEST, Parser};
use crate::written::{Field, Fields, put, put_name, put_signed, put_text, put_value};
use crate::{limits, text};

/// What an event is made of.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    pub(crate) kind: Type,
    /// The fields of its type.
    pub(super) fields: Fields,
    /// What the source says in `metadata`.
    pub(super) metadata: Option<Box<Map<String, Value>>>,
    /// What stands under `metadata.banister`.
    pub(crate) own: Fields,
    /// Milliseconds since 1970.
    pub(super) timestamp: Option<i64>,
}

impl Parts {
    pub(super) fn new<const N: usize>(kind: Type, fields: [(&'static str, Field); N]) -> Self {
        let fields = Fields::of(fields);
        Self { kind, fields, metadata: None, own: Fields::default(), timestamp: None }
    }

    /// The same, of a subagent.
    pub(super) fn tagged(mut self, tag: Option<&str>) -> Self {
        self.fields.maybe("subagentRunId", tag);
        self
    }

    pub(crate) fn write_json(&self, out: &mut Vec<u8>) {
        put(&[r#"{"type":""#, self.kind.name(), "\""], out);
        self.fields.write_json(out);
        if self.metadata.is_some() || !self.own.is_empty() {
            put(&[r#","metadata":{"#], out);
            for (name, value) in self.metadata.iter().flat_map(|metadata| metadata.iter()) {
                put_text(name, out);
                out.push(b':');
                put_value(value, out);
                out.push(b',');
            }
            if self.own.is_empty() {
                out.pop_if(|last| *last == b',');
            } else {
                put(&["\"", KEY, "\":"], out);
                self.own.write_object(out);
            }
            out.push(b'}');
        }
        if let Some(timestamp) = self.timestamp {
            put_name("timestamp", out);
            put_signed(timestamp, out);
        }
        out.push(b'}');
    }

    pub(crate) fn into_map(self) -> Map<String, Value> {
        let mut event = Map::with_capacity(8);
        event.insert("type".to_owned(), self.kind.name().into());
        self.fields.put_into(&mut event);
        if self.metadata.is_some() || !self.own.is_empty() {
            let mut metadata = self.metadata.map_or_else(Map::new, |metadata| *metadata);
            if !self.own.is_empty() {
                metadata.insert(KEY.to_owned(), Value::Object(self.own.into_map()));
            }
            event.insert("metadata".to_owned(), Value::Object(metadata));
        }
        if let Some(timestamp) = self.timestamp {
            event.insert("timestamp".to_owned(), timestamp.into());
        }
        event
    }

    /// Whether a client takes the event as it is.
    pub(super) fn fits(&self) -> bool {
        // What is made of texts alone has the shape of its type, and so has what may hold anything.
        let free = matches!(
            self.kind,
            Type::Custom | Type::Raw | Type::StateSnapshot | Type::ActivitySnapshot
        );
        if (free || self.fields.is_flat())
            && self.most_bytes() < limits::MESSAGE_BYTES
            && self.depth() < DEEPEST
        {
            return true;
        }
        let mut bytes = Vec::new();
        self.write_json(&mut bytes);
        fits_as(self.kind, &bytes)
    }

    pub(crate) fn most_bytes(&self) -> usize {
        let metadata = self.metadata.iter().flat_map(|metadata| metadata.iter());
        let metadata: usize = metadata
            .map(|(name, value)| {
                crate::written::most_text(name) + crate::written::most_value(value)
            })
            .sum();
        256 + self.fields.most_bytes() + self.own.most_bytes() + metadata
    }

    fn depth(&self) -> usize {
        let metadata = self.metadata.iter().flat_map(|metadata| metadata.values());
        let metadata = metadata.map(crate::written::depth).max().unwrap_or_default();
        1 + self.fields.depth().max(2 + self.own.depth()).max(1 + metadata)
    }
}

/// Whether a client takes an event that is whole.
pub(super) fn fits_whole(kind: Type, event: &Value) -> bool {
    fits_as(kind, event.to_string().as_bytes())
}

fn fits_as(kind: Type, bytes: &[u8]) -> bool {
    bytes.len() <= limits::MESSAGE_BYTES
        && Parser::default().parse(bytes).is_ok_and(|document| {
            shape::compare(kind.shape(), document.root(), &mut Known::default()).is_empty()
        })
}

/// A text in pieces that events can hold.
pub(super) fn pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (piece, rest) = text.split_at_checked(text.floor_char_boundary(PIECE_BYTES))?;
        text = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

/// What kind of activity it is, in one word.
pub(super) fn kind_of(what: &What) -> String {
    tagged_fields(what).0
}

/// The fields of an activity, without its kind, free of credentials.
pub(super) fn fields_of(what: &What) -> (String, Map<String, Value>) {
    let (kind, fields) = tagged_fields(what);
    match text::redacted(Value::Object(fields)) {
        Value::Object(mut fields) => {
            fields.retain(|_, value| !value.is_null());
            (kind, fields)
        }
        _ => (kind, Map::new()),
    }
}

fn tagged_fields(what: &What) -> (String, Map<String, Value>) {
    match serde_json::to_value(what) {
        Ok(Value::Object(mut fields)) => match fields.shift_remove("what") {
            Some(Value::String(kind)) => (kind, fields),
            _ => (String::new(), fields),
        },
        _ => (String::new(), Map::new()),
    }
}

/// Remembers something for as long as a run is followed.
pub(super) fn remember(known: &mut BTreeSet<String>, key: String) -> bool {
    if known.len() >= RUNS {
        known.clear();
    }
    known.insert(key)
}
