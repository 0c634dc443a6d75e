//! JSON Schemas (2020-12) for every type and message, made of the tables that messages are checked with.
//!
//! AAEP's have the file layout and the `$id`s of the protocol's own, so they can stand in for them; they are stricter
//! where the protocol's text is. What a schema cannot say (order, secrets, whether a step is beyond the last) is for
//! [`crate::check`]. What a schema of AAEP or AEP rejects, the check rejects too.
//!
//! ```
//! use banister_events::event::Protocol;
//! let schema = banister_events::schema::find(Protocol::Aaep, "aaep:agent.tool.invoked").unwrap();
//! assert_eq!(schema["$id"], "https://aaep-protocol.org/schemas/v1/core/agent.tool.invoked.schema.json");
//! ```

use serde_json::{Map, Value, json};

use crate::check::shape::{Field, Kind, Shape};
use crate::event::Protocol;

mod aaep;
mod aep;
mod agui;

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Every schema of a protocol: its file name below the protocol's folder, and itself.
pub fn all(protocol: Protocol) -> Vec<(String, Value)> {
    match protocol {
        Protocol::Aaep => aaep::all(),
        Protocol::Agui => agui::all(),
        Protocol::Aep => aep::all(),
    }
}

/// The schema of a type or message, by the type's name or the schema's file name.
///
/// ```
/// use banister_events::event::Protocol;
/// use banister_events::schema::find;
/// assert!(find(Protocol::Aaep, "subscription.request").is_some());
/// assert!(find(Protocol::Aep, "events/agent.stop.schema.json").is_some());
/// assert!(find(Protocol::Agui, "RUN_STARTED").is_some());
/// assert!(find(Protocol::Agui, "run.started").is_none());
/// ```
pub fn find(protocol: Protocol, name: &str) -> Option<Value> {
    let local = name.strip_prefix("aaep:").unwrap_or(name);
    let is_meant = |file: &str| {
        let stem = file.strip_suffix(".schema.json").unwrap_or(file);
        file == name || stem == name || stem.rsplit('/').next() == Some(local)
    };
    all(protocol).into_iter().find(|(file, _)| is_meant(file)).map(|(_, schema)| schema)
}

/// What every schema begins with.
fn head(id: &str, title: &str, about: &str) -> Map<String, Value> {
    let mut schema = Map::new();
    schema.insert("$schema".into(), json!(DIALECT));
    schema.insert("$id".into(), json!(id));
    schema.insert("title".into(), json!(title));
    if !about.is_empty() {
        schema.insert("description".into(), json!(first_paragraph(about)));
    }
    schema
}

/// The first paragraph of a comment, on one line.
fn first_paragraph(about: &str) -> String {
    let lines: Vec<&str> =
        about.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    lines.join(" ")
}

/// An object of this shape.
fn object(shape: &Shape) -> Map<String, Value> {
    let mut schema = open(shape.fields());
    if shape.closed {
        schema.insert("additionalProperties".into(), json!(false));
    }
    schema
}

/// An object with these fields, and any others.
fn open(fields: impl Iterator<Item = &'static Field>) -> Map<String, Value> {
    let (mut required, mut properties) = (Vec::new(), Map::new());
    for field in fields {
        if field.required {
            required.push(json!(field.name));
        }
        let mut schema = Map::new();
        if !field.about.is_empty() {
            schema.insert("description".into(), json!(first_paragraph(field.about)));
        }
        schema.extend(kind(&field.kind));
        properties.insert(field.name.into(), Value::Object(schema));
    }
    let mut schema = Map::new();
    schema.insert("type".into(), json!("object"));
    if !required.is_empty() {
        schema.insert("required".into(), Value::Array(required));
    }
    schema.insert("properties".into(), Value::Object(properties));
    schema
}

/// A value of this kind.
fn kind(kind: &Kind) -> Map<String, Value> {
    let schema = match kind {
        Kind::Any => json!({}),
        Kind::Some => json!({"not": {"type": "null"}}),
        Kind::Text { min, max } => {
            bounds(json!({"type": "string"}), [("minLength", *min), ("maxLength", *max)])
        }
        Kind::Word([word]) => json!({"const": word}),
        Kind::Word(words) => json!({"type": "string", "enum": words}),
        Kind::Format { pattern, format, .. } => {
            let mut schema = Map::from_iter([("type".to_owned(), json!("string"))]);
            let said = [("pattern", pattern), ("format", format)].into_iter();
            schema.extend(
                said.filter(|(_, text)| !text.is_empty())
                    .map(|(key, text)| (key.into(), json!(text))),
            );
            Value::Object(schema)
        }
        Kind::Bool => json!({"type": "boolean"}),
        Kind::Integer { min, max } => {
            let mut schema = Map::from_iter([("type".to_owned(), json!("integer"))]);
            if *min > i64::MIN {
                schema.insert("minimum".into(), json!(min));
            }
            if *max < i64::MAX {
                schema.insert("maximum".into(), json!(max));
            }
            Value::Object(schema)
        }
        Kind::Number { min, max } => {
            let mut schema = Map::from_iter([("type".to_owned(), json!("number"))]);
            if *min > f64::MIN {
                schema.insert("minimum".into(), json!(min));
            }
            if *max < f64::MAX {
                schema.insert("maximum".into(), json!(max));
            }
            Value::Object(schema)
        }
        Kind::Object => json!({"type": "object"}),
        Kind::Record(shape) => return object(shape),
        Kind::RecordAnd(shape, other) => {
            let mut schema = open(shape.fields());
            schema.insert("additionalProperties".into(), Value::Object(self::kind(other)));
            return schema;
        }
        Kind::Each(item) => json!({"type": "object", "additionalProperties": self::kind(item)}),
        Kind::List { min, max, distinct, item } => {
            let list = json!({"type": "array", "items": self::kind(item)});
            let mut schema = bounds(list, [("minItems", *min), ("maxItems", *max)]);
            if let (true, Some(schema)) = (*distinct, schema.as_object_mut()) {
                schema.insert("uniqueItems".into(), json!(true));
            }
            schema
        }
        Kind::Union { tag, members } => {
            let members: Vec<Value> =
                members.iter().map(|(word, shape)| member(tag, word, shape)).collect();
            json!({"oneOf": members})
        }
        Kind::TextOr(item) => {
            json!({"anyOf": [{"type": "string"}, {"type": "array", "items": self::kind(item)}]})
        }
        Kind::Either(kinds) => {
            json!({"anyOf": kinds.iter().map(self::kind).collect::<Vec<_>>()})
        }
    };
    match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

/// Adds the bounds that bind.
fn bounds(mut schema: Value, [(least, min), (most, max)]: [(&str, usize); 2]) -> Value {
    if let Some(schema) = schema.as_object_mut() {
        if min > 0 {
            schema.insert(least.into(), json!(min));
        }
        if max < usize::MAX {
            schema.insert(most.into(), json!(max));
        }
    }
    schema
}

/// The member of a union that this word names.
fn member(tag: &str, word: &str, shape: &Shape) -> Value {
    let mut schema = Value::Object(object(shape));
    let known = shape.fields().any(|field| field.name == tag && field.required);
    if let (false, Some(required)) =
        (known, schema.pointer_mut("/required").and_then(Value::as_array_mut))
    {
        required.insert(0, json!(tag));
    }
    if let Some(properties) = schema.pointer_mut("/properties").and_then(Value::as_object_mut) {
        properties.insert(tag.into(), json!({"const": word}));
    }
    schema
}
