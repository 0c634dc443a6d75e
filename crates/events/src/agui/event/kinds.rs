//! The kinds of values that AG-UI's fields have.

use std::ops::Deref;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::check::shape::Kind;

/// The largest number JavaScript counts with.
const SAFE: i64 = (1 << 53) - 1;

pub(crate) const COUNT: Kind = Kind::Integer { min: 0, max: SAFE };
pub(crate) const TIMESTAMP: Kind = Kind::Integer { min: -SAFE, max: SAFE };

pub(crate) const fn list(item: &'static Kind) -> Kind {
    Kind::List { min: 0, max: usize::MAX, distinct: false, item }
}

/// Any JSON but null: what an optional field holds that takes anything.
///
/// AG-UI leaves an optional field out and never writes null for it; this type sees to it.
///
/// ```
/// use banister_events::agui::event::{Event, Present, RunFinished};
/// let mut finished = RunFinished::new("thread-1", "run-1");
/// finished.result = Present::new(serde_json::json!({"rows": 3}));
/// assert_eq!(finished.result.as_ref().map(|result| &result["rows"]), Some(&3.into()));
/// finished.result = Present::new(None::<bool>);
/// assert_eq!(
///     serde_json::to_string(&Event::from(finished))?,
///     r#"{"type":"RUN_FINISHED","threadId":"thread-1","runId":"run-1"}"#,
/// );
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Present(Value);

impl Present {
    /// The value, unless it is null.
    pub fn new(value: impl Into<Value>) -> Option<Self> {
        Some(value.into()).filter(|value| !value.is_null()).map(Self)
    }

    /// The value.
    pub fn into_value(self) -> Value {
        self.0
    }
}

impl Deref for Present {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Present {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(Value::deserialize(deserializer)?)
            .ok_or_else(|| serde::de::Error::custom("null is no value here"))
    }
}
