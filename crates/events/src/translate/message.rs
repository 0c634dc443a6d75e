//! An event on its way out: in the form in which its writer made it.

use serde_json::Value;

use super::report;
use crate::aaep::write::Written;

/// One event. It is written out as it is; a [`Value`] is made of it only where somebody looks into it.
#[derive(Debug, Clone)]
pub enum Message {
    /// Any event.
    Value(Value),
    /// One of AAEP that nobody looked into yet.
    Aaep(Written),
}

impl Message {
    /// Appends the event as JSON, on one line and without its end.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Self::Value(value) => {
                // Writing a value to memory does not fail.
                serde_json::to_writer(out, value).ok();
            }
            Self::Aaep(event) => event.write_json(out),
        }
    }

    /// The event as a value.
    pub fn into_value(self) -> Value {
        match self {
            Self::Value(value) => value,
            Self::Aaep(event) => event.into_value(),
        }
    }

    /// Looks into the event and changes it.
    pub(super) fn change(&mut self, change: impl FnOnce(&mut Value)) {
        let mut value = std::mem::replace(self, Self::Value(Value::Null)).into_value();
        change(&mut value);
        *self = Self::Value(value);
    }

    /// Its name in the table.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Value(event) => report::name(event),
            Self::Aaep(event) => event.kind(),
        }
    }
}

impl From<Value> for Message {
    fn from(value: Value) -> Self {
        Self::Value(value)
    }
}

impl From<Written> for Message {
    fn from(event: Written) -> Self {
        Self::Aaep(event)
    }
}
