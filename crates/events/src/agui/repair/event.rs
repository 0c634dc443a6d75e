//! An event on its way out, what it was when it came, and how the one is kept inside the other.

use serde_json::{Map, Value, json};

use crate::agui::check::squeezed;
use crate::agui::event::{RETIRED, Type};
use crate::check::shape::quote;
use crate::event::Protocol;
use crate::json::DEEPEST;
use crate::limits::MESSAGE_BYTES;
use crate::message::Message;

/// Fields that say nothing about an event but which thing it is about.
const NAMES: [&str; 8] = [
    "type",
    "messageId",
    "toolCallId",
    "stepName",
    "subagentRunId",
    "threadId",
    "runId",
    "protocolVersion",
];

/// An event on its way out.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub(super) kind: Type,
    pub(super) fields: Map<String, Value>,
    /// The message that it came as, while that says what the fields say.
    pub(super) message: Option<Message>,
    /// What came, where this is no longer that.
    pub(super) original: Option<Value>,
    /// Whether the original goes on already, in this event or beside it.
    kept: bool,
    /// Whether so much of the original is gone that it goes on in an event of its own.
    pub(super) aside: bool,
    /// Whether nobody said in so many words that something ended like this.
    pub(super) invented: bool,
}

impl Event {
    /// One that nobody sent.
    pub(super) fn made(kind: Type, fields: Value) -> Self {
        let mut all = Map::new();
        all.insert("type".into(), kind.name().into());
        if let Value::Object(fields) = fields {
            all.extend(fields);
        }
        Self {
            kind,
            fields: all,
            message: None,
            original: None,
            kept: false,
            aside: false,
            invented: false,
        }
    }

    /// One that came like this.
    pub(super) fn came(kind: Type, fields: Map<String, Value>, message: Message) -> Self {
        Self { message: Some(message), ..Self::made(kind, Value::Null) }.with_fields(fields)
    }

    fn with_fields(mut self, fields: Map<String, Value>) -> Self {
        self.fields = fields;
        self
    }

    pub(super) fn with(mut self, name: &str, value: Option<impl Into<Value>>) -> Self {
        if let Some(value) = value {
            self.set(name, value);
        }
        self
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(Value::as_str)
    }

    /// What it says in a field, or said when it came, however the field was written.
    pub(super) fn said(&self, name: &str) -> Option<&str> {
        let original = || {
            let mut fields = self.original.as_ref()?.as_object()?.iter();
            fields.find(|(field, _)| is_alike(field, name))?.1.as_str()
        };
        self.text(name).or_else(original)
    }

    pub(super) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.touch();
        self.fields.insert(name.into(), value.into());
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<Value> {
        self.touch();
        self.fields.shift_remove(name)
    }

    /// To be called before its fields change: what came is remembered.
    pub(super) fn touch(&mut self) {
        if self.message.take().is_some() && self.original.is_none() {
            self.original = Some(Value::Object(self.fields.clone()));
        }
    }

    /// Sees to it that nothing of what came is lost: it goes on in `rawEvent`, or in an event beside this one.
    pub(super) fn keep(&mut self) -> Option<Self> {
        let original = self.original.as_ref().filter(|came| !self.kept && !self.covers(came))?;
        let original = original.clone();
        self.kept = true;
        let large = || original.to_string().len() > MESSAGE_BYTES / 2;
        if self.aside || self.fields.contains_key("rawEvent") || large() {
            return Some(raw(original));
        }
        self.message = None;
        self.fields.insert("rawEvent".into(), shallow(original));
        None
    }

    /// Whether it says everything that the original said; a null says nothing.
    fn covers(&self, original: &Value) -> bool {
        let Value::Object(before) = original else { return false };
        before.iter().all(|(name, before)| match name.as_str() {
            "type" => before.as_str().and_then(kind_of) == Some(self.kind),
            _ => before.is_null() || self.fields.get(name).is_some_and(|now| covers(now, before)),
        })
    }

    /// Whether it only names what it is about, so that nothing is lost with it.
    pub(super) fn is_bare(&self) -> bool {
        let fields = match &self.original {
            Some(came) => came.as_object(),
            None => Some(&self.fields),
        };
        let mut fields = fields.into_iter().flatten();
        self.original.as_ref().is_none_or(Value::is_object)
            && fields.all(|(name, value)| NAMES.contains(&name.as_str()) || value.is_null())
    }

    /// What came, inside a `RAW` event.
    pub(super) fn into_raw(self) -> Self {
        raw(self.original.unwrap_or(Value::Object(self.fields)))
    }

    /// The message that it is, where it has to be looked at as one.
    pub(super) fn to_message(&self) -> Message {
        match &self.message {
            Some(message) => message.clone(),
            None => made(self.fields.clone()),
        }
    }

    /// The message that it goes on as.
    pub(super) fn into_message(self) -> Message {
        self.message.unwrap_or_else(|| made(self.fields))
    }
}

fn made(fields: Map<String, Value>) -> Message {
    Message::of_value(Protocol::Agui, Value::Object(fields))
}

/// Something that is no event as it stands, kept in one.
pub(super) fn raw(original: Value) -> Event {
    Event::made(Type::Raw, json!({ "event": shallow(original) }))
}

/// The value, as text where one more level around it would be too many.
fn shallow(value: Value) -> Value {
    if depth(&value) < DEEPEST { value } else { value.to_string().into() }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

fn covers(now: &Value, before: &Value) -> bool {
    match (now, before) {
        (_, Value::Null) => true,
        (Value::Object(now), Value::Object(before)) => before.iter().all(|(name, before)| {
            before.is_null() || now.get(name).is_some_and(|now| covers(now, before))
        }),
        (Value::Array(now), Value::Array(before)) => {
            now.len() == before.len()
                && now.iter().zip(before).all(|(now, before)| covers(now, before))
        }
        _ => now == before,
    }
}

/// The type that a name means: its own, that of what replaced it, or one that is written almost like it.
pub(super) fn kind_of(name: &str) -> Option<Type> {
    let successor =
        || RETIRED.iter().find(|(old, _)| *old == name).and_then(|(_, new)| Type::parse(new));
    let meant = || Type::ALL.into_iter().find(|kind| is_alike(kind.name(), name));
    Type::parse(name).or_else(successor).or_else(meant)
}

/// Whether two names differ in case and in what separates their words only.
pub(super) fn is_alike(one: &str, other: &str) -> bool {
    one == other || squeezed(one) == squeezed(other)
}

/// A value for people: short.
pub(super) fn short(value: &Value) -> String {
    const LONGEST: usize = 64;
    if let Value::String(text) = value {
        return quote(text);
    }
    let text = value.to_string();
    let mut cut: String = text.chars().take(LONGEST).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    cut
}
