//! AAEP's schemas, in the protocol's own layout.

use serde_json::{Map, Value, json};

use super::{head, object, open};
use crate::aaep::event::fields::HUMAN_TEXT;
use crate::aaep::event::{self, CONTEXT, Envelope, TYPES_URI, Type};
use crate::aaep::handshake::{self, Message};
use crate::record::Record;

const BASE: &str = "https://aaep-protocol.org/schemas/v1/";
const ENVELOPE: &str = "envelope.schema.json";

pub(super) fn all() -> Vec<(String, Value)> {
    let core = Type::ALL.into_iter().map(core);
    let handshake = Message::TYPES.iter().copied().map(message);
    std::iter::once((ENVELOPE.to_owned(), envelope())).chain(core).chain(handshake).collect()
}

fn envelope() -> Value {
    let mut schema = head(&format!("{BASE}{ENVELOPE}"), "AAEP envelope", Envelope::ABOUT);
    schema.extend(open(event::ENVELOPE.fields()));
    let mut schema = Value::Object(schema);
    if let Some(context) = schema.pointer_mut("/properties/@context").and_then(Value::as_object_mut)
    {
        context.insert(
            "oneOf".into(),
            json!([
                {"const": CONTEXT},
                {
                    "type": "array",
                    "minItems": 1,
                    "prefixItems": [{"const": CONTEXT}],
                    "items": {"type": "string", "pattern": ":"},
                },
            ]),
        );
    }
    schema
}

fn core(kind: Type) -> (String, Value) {
    let name = event::core_name(kind.name()).unwrap_or_default();
    let file = format!("core/{name}.schema.json");
    let mut schema = head(&format!("{BASE}{file}"), kind.name(), kind.about());
    let mut rules = vec![json!({"$ref": format!("{BASE}{ENVELOPE}")})];
    if kind == Type::AwaitingConfirmation {
        rules.push(default_decision());
    }
    schema.insert("allOf".into(), Value::Array(rules));
    let in_envelope = |name: &str| event::ENVELOPE.fields().any(|field| field.name == name);
    schema.extend(open(kind.shape().fields().filter(|field| !in_envelope(field.name))));
    // Texts in further languages stand beside the first, and nothing else does.
    schema.insert("patternProperties".into(), json!({localized(): {"type": "string"}}));
    schema.insert("unevaluatedProperties".into(), json!(false));
    let mut schema = Value::Object(schema);
    let forms = json!({"enum": [kind.name(), format!("{TYPES_URI}{name}")]});
    require(&mut schema, "type", forms);
    if kind.is_critical() {
        require(&mut schema, "urgency", json!({"const": "critical"}));
    }
    if let Some(progress) =
        schema.pointer_mut("/properties/progress").and_then(Value::as_object_mut)
    {
        progress.insert("minProperties".into(), json!(1));
    }
    (file, schema)
}

/// Makes a field required, and what it has to be.
fn require(schema: &mut Value, name: &str, value: Value) {
    if let Some(schema) = schema.as_object_mut() {
        let required = schema.entry("required").or_insert_with(|| json!([]));
        if let Some(required) = required.as_array_mut() {
            required.push(json!(name));
        }
    }
    if let Some(properties) = schema.pointer_mut("/properties").and_then(Value::as_object_mut) {
        properties.insert(name.into(), value);
    }
}

/// What cannot be undone and could do harm is rejected when nobody answers.
fn default_decision() -> Value {
    json!({
        "if": {
            "properties": {"risk_level": {"enum": ["medium", "high"]}},
            "required": ["risk_level"],
            "anyOf": [
                {"properties": {"irreversible": {"const": true}}, "required": ["irreversible"]},
                {"properties": {"reversibility": {"const": "irreversible"}}, "required": ["reversibility"]},
            ],
        },
        "then": {"properties": {"default_decision": {"const": "reject"}}},
    })
}

/// The names of text fields with a language behind them, as in `summary_normal_yo`.
fn localized() -> String {
    let fields = HUMAN_TEXT.join("|");
    let more = "[_-][A-Za-z0-9]{1,8}";
    format!("^({fields})_([A-Za-z]{{2,8}}({more})*|[A-Za-z]({more})+)$")
}

fn message(name: &'static str) -> (String, Value) {
    let local = name.strip_prefix("aaep:").unwrap_or(name);
    let file = format!("handshake/{local}.schema.json");
    let mut schema = head(&format!("{BASE}{file}"), name, handshake::about(name));
    if matches!(local, "subscription.renegotiate" | "subscription.close" | "producer.manifest") {
        let comment =
            "The protocol has no schema for this message; this one is made after its text.";
        schema.insert("$comment".into(), json!(comment));
    }
    schema.extend(handshake::shape(name).map_or_else(Map::new, object));
    let is_reply = matches!(name, "confirmation.reply" | "clarification.reply");
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut)
        && is_reply
    {
        required.push(json!("subscription_id"));
    }
    (file, Value::Object(schema))
}
