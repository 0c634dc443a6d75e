//! Events as values: whether clients take them, and what goes into them.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{PIECE_BYTES, RUNS, Type};
use crate::activity::What;
use crate::check::shape::{self, Known};
use crate::json::Parser;
use crate::{limits, text};

/// Whether a client takes an event as it is.
pub(super) fn fits(kind: Type, event: &Value) -> bool {
    let bytes = event.to_string();
    if bytes.len() > limits::MESSAGE_BYTES {
        return false;
    }
    let mut parser = Parser::default();
    parser.parse_text(&bytes).is_ok_and(|document| {
        shape::compare(kind.shape(), document.root(), &mut Known::default()).is_empty()
    })
}

/// Adds a tag to an event.
pub(super) fn tagged(mut event: Value, tag: Option<&str>) -> Value {
    if let (Some(fields), Some(tag)) = (event.as_object_mut(), tag) {
        fields.insert("subagentRunId".into(), tag.into());
    }
    event
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
    match serde_json::to_value(what) {
        Ok(Value::Object(mut fields)) => match fields.swap_remove("what") {
            Some(Value::String(kind)) => kind,
            _ => String::new(),
        },
        _ => String::new(),
    }
}

/// The fields of an activity, without its kind, free of credentials.
pub(super) fn fields_of(what: &What) -> (String, Map<String, Value>) {
    let kind = kind_of(what);
    match serde_json::to_value(what).map(|value| text::redact_json(&value)) {
        Ok(Value::Object(mut fields)) => {
            fields.shift_remove("what");
            fields.retain(|_, value| !value.is_null());
            (kind, fields)
        }
        _ => (kind, Map::new()),
    }
}

/// Remembers something for as long as a run is followed.
pub(super) fn remember(known: &mut BTreeSet<String>, key: String) -> bool {
    if known.len() >= RUNS {
        known.clear();
    }
    known.insert(key)
}
