//! AG-UI's schemas: one per event type, one of a run's input, one of what an agent can do.

use serde_json::{Value, json};

use super::{head, object};
use crate::agui::capabilities::Capabilities;
use crate::agui::event::Type;
use crate::agui::input::RunInput;
use crate::record::Record;

const BASE: &str = "urn:banister:schemas:agui:1.0:";

pub(super) fn all() -> Vec<(String, Value)> {
    let others = [record::<Capabilities>("AgentCapabilities"), record::<RunInput>("RunAgentInput")];
    others.into_iter().chain(Type::ALL.into_iter().map(typed)).collect()
}

fn record<T: Record>(name: &str) -> (String, Value) {
    let mut schema = head(&format!("{BASE}{name}"), name, T::ABOUT);
    schema.extend(object(&T::SHAPE));
    (format!("{name}.schema.json"), Value::Object(schema))
}

fn typed(kind: Type) -> (String, Value) {
    let name = kind.name();
    let mut schema = head(&format!("{BASE}events:{name}"), name, kind.about());
    schema.extend(object(kind.shape()));
    let mut schema = Value::Object(schema);
    if let Some(properties) = schema.pointer_mut("/properties").and_then(Value::as_object_mut) {
        properties.insert("type".into(), json!({"const": name}));
    }
    (format!("events/{name}.schema.json"), schema)
}
