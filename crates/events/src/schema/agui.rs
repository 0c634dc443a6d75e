//! AG-UI's schemas, one per event type.

use serde_json::{Value, json};

use super::{head, object};
use crate::agui::event::Type;

pub(super) fn all() -> Vec<(String, Value)> {
    Type::ALL.into_iter().map(typed).collect()
}

fn typed(kind: Type) -> (String, Value) {
    let name = kind.name();
    let mut schema = head(&format!("urn:banister:schemas:agui:1.0:events:{name}"), name, "");
    schema.extend(object(kind.shape()));
    let mut schema = Value::Object(schema);
    if let Some(properties) = schema.pointer_mut("/properties").and_then(Value::as_object_mut) {
        properties.insert("type".into(), json!({"const": name}));
    }
    (format!("events/{name}.schema.json"), schema)
}
