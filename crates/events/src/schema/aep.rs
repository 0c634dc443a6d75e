//! AEP's schemas; the protocol has none of its own.
//!
//! They are of draft 0.1, and do not judge newer ones. Readers tolerate fields that they do not know, so no object is
//! closed.

use serde_json::{Map, Value, json};

use super::{head, open};
use crate::aep::event::{self, Event, Response, Type};
use crate::check::shape::Shape;
use crate::record::Record;

const BASE: &str = "urn:banister:schemas:aep:0.1:";

pub(super) fn all() -> Vec<(String, Value)> {
    let messages = [
        ("event.schema.json".to_owned(), message("event", Event::ABOUT, &event::EVENT)),
        ("response.schema.json".to_owned(), message("response", Response::ABOUT, &event::RESPONSE)),
    ];
    messages.into_iter().chain(Type::ALL.into_iter().map(typed)).collect()
}

/// A message of any type.
fn message(name: &str, about: &str, shape: &Shape) -> Value {
    let mut schema = head(&format!("{BASE}{name}"), &format!("AEP {name}"), about);
    schema.extend(open(shape.fields()));
    let mut schema = Value::Object(schema);
    tolerate(&mut schema);
    if let Some(properties) = schema.pointer_mut("/properties").and_then(Value::as_object_mut) {
        properties.insert("aep_version".into(), json!({"const": event::VERSION}));
        if let Some(extensions) = properties.get_mut("extensions").and_then(Value::as_object_mut) {
            extensions.insert("propertyNames".into(), json!({"pattern": "^[xX]-"}));
        }
    }
    // More kinds of actions are announced.
    let kind = schema.pointer_mut("/properties/action/properties/type");
    if let Some(kind) = kind.and_then(Value::as_object_mut)
        && let Some(words) = kind.shift_remove("enum")
    {
        kind.insert("examples".into(), words);
    }
    schema
}

/// Opens every object in a schema.
fn tolerate(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if object.get("additionalProperties") == Some(&Value::Bool(false)) {
                object.shift_remove("additionalProperties");
            }
            object.values_mut().for_each(tolerate);
        }
        Value::Array(items) => items.iter_mut().for_each(tolerate),
        _ => {}
    }
}

/// An event of one type, with what the type demands.
fn typed(kind: Type) -> (String, Value) {
    let name = kind.name();
    let mut schema = head(&format!("{BASE}events:{name}"), name, "");
    let mut rules = vec![
        json!({"$ref": format!("{BASE}event")}),
        json!({"properties": {"type": {"const": name}}}),
    ];
    if kind.is_action() {
        rules.extend(action(kind));
    }
    if !kind.content().is_empty() {
        rules.push(content(kind.content()));
    }
    if matches!(kind, Type::SubagentStart | Type::SubagentStop) {
        rules.push(subagent());
    }
    if kind == Type::WorkspaceChanged {
        rules.push(json!({"required": ["workspace"]}));
    }
    schema.insert("allOf".into(), Value::Array(rules));
    (format!("events/{name}.schema.json"), Value::Object(schema))
}

/// A field that has to be there and like this, inside an object that has to be there.
fn inside(object: &str, field: &str, value: Value) -> Value {
    let mut fields = Map::new();
    fields.insert(field.into(), value);
    json!({
        "required": [object],
        "properties": {object: {"required": [field], "properties": fields}},
    })
}

fn action(kind: Type) -> Vec<Value> {
    let mut rules = vec![
        json!({"required": ["action"]}),
        json!({"if": inside("action", "type", json!({"const": "tool_call"})), "then": {"required": ["tool"]}}),
        json!({"if": inside("action", "type", json!({"const": "skill_use"})), "then": {"required": ["skill"]}}),
        json!({"if": inside("tool", "type", json!({"const": "mcp"})), "then": {"required": ["server"]}}),
    ];
    rules.extend(match kind {
        Type::ActionCompleted => Some(inside("action", "status", json!({"const": "success"}))),
        Type::ActionFailed => {
            Some(inside("action", "status", json!({"enum": ["failure", "timeout", "cancelled"]})))
        }
        Type::ActionDenied => Some(inside("decision", "outcome", json!({"const": "denied"}))),
        _ => None,
    });
    rules
}

fn content(wanted: &[&str]) -> Value {
    let entry = json!({"required": ["type"], "properties": {"type": {"enum": wanted}}});
    json!({"required": ["content"], "properties": {"content": {"contains": entry}}})
}

/// What can tell one subagent from another.
fn subagent() -> Value {
    let has = |object: &str, field: &str| inside(object, field, json!({}));
    json!({"anyOf": [
        has("session", "parent"),
        has("session", "conversation_id"),
        has("agent", "instance_id"),
        has("action", "id"),
        {"required": ["extensions"]},
    ]})
}
