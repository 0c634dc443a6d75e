//! Events on their way out, in the parts that their writers made: they are written as JSON without a [`Value`] in
//! between, which would be most of the work. A [`Value`] is made only where somebody looks into an event. Both forms say
//! the same, in the same order.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::id::Decimal;
use crate::{aaep, aep, agui, json, text};

/// One event that a writer wrote.
#[derive(Debug, Clone)]
pub struct Written(Form);

#[derive(Debug, Clone)]
enum Form {
    Aaep(Box<aaep::write::Parts>),
    Agui(agui::write::Parts),
    Aep(Box<aep::write::Parts>),
    /// One that was looked into, or that hardly ever comes.
    Whole(Value),
}

impl Written {
    /// Its type: without the prefix that AAEP's types have in common, and `response` for what has no type.
    ///
    /// ```
    /// use banister_events::written::Written;
    /// let event = Written::from(serde_json::json!({ "type": "aaep:agent.state.changed" }));
    /// assert_eq!(event.kind(), "state.changed");
    /// ```
    pub fn kind(&self) -> &str {
        match &self.0 {
            Form::Aaep(parts) => parts.kind,
            Form::Agui(parts) => parts.kind.name(),
            Form::Aep(parts) => &parts.kind,
            Form::Whole(event) => kind_of(event),
        }
    }

    /// Appends the event as JSON, on one line and without its end.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Form::Aaep(parts) => parts.write_json(out),
            Form::Agui(parts) => parts.write_json(out),
            Form::Aep(parts) => parts.write_json(out),
            Form::Whole(event) => put_value(event, out),
        }
    }

    /// The event as JSON, on one line.
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(1_024);
        self.write_json(&mut out);
        out
    }

    /// The event as a value.
    pub fn into_value(self) -> Value {
        match self.0 {
            Form::Aaep(parts) => Value::Object(parts.into_map()),
            Form::Agui(parts) => Value::Object(parts.into_map()),
            Form::Aep(parts) => Value::Object(parts.into_map()),
            Form::Whole(event) => event,
        }
    }

    /// Looks into the event and changes it.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut Value)) {
        let mut value = std::mem::replace(&mut self.0, Form::Whole(Value::Null));
        value = Form::Whole(Self(value).into_value());
        if let Form::Whole(event) = &mut value {
            change(event);
        }
        self.0 = value;
    }

    /// The parts of an event of AG-UI that nobody looked into yet.
    pub(crate) fn agui_mut(&mut self) -> Option<&mut agui::write::Parts> {
        match &mut self.0 {
            Form::Agui(parts) => Some(parts),
            _ => None,
        }
    }

    /// How many bytes it takes at most, as far as it is in parts.
    pub(crate) fn most_bytes(&self) -> Option<usize> {
        match &self.0 {
            Form::Aaep(parts) => Some(parts.most_bytes()),
            Form::Agui(parts) => Some(parts.most_bytes()),
            Form::Aep(parts) => Some(parts.most_bytes()),
            Form::Whole(_) => None,
        }
    }

    /// What Banister says in the event beyond the protocol's fields, as far as the event is in parts.
    pub(crate) fn own_fields(&mut self) -> Option<&mut Fields> {
        match &mut self.0 {
            Form::Aaep(parts) => Some(&mut parts.own),
            Form::Agui(parts) => Some(&mut parts.own),
            Form::Aep(parts) => Some(&mut parts.own),
            Form::Whole(_) => None,
        }
    }
}

impl From<Value> for Written {
    fn from(event: Value) -> Self {
        Self(Form::Whole(event))
    }
}

impl From<aaep::write::Parts> for Written {
    fn from(parts: aaep::write::Parts) -> Self {
        Self(Form::Aaep(Box::new(parts)))
    }
}

impl From<agui::write::Parts> for Written {
    fn from(parts: agui::write::Parts) -> Self {
        Self(Form::Agui(parts))
    }
}

impl From<aep::write::Parts> for Written {
    fn from(parts: aep::write::Parts) -> Self {
        Self(Form::Aep(Box::new(parts)))
    }
}

/// The type of an event: see [`Written::kind`].
pub(crate) fn kind_of(event: &Value) -> &str {
    short(event.get("type").and_then(Value::as_str).unwrap_or("response"))
}

/// A type's name without the prefix that AAEP's types have in common.
pub(crate) fn short(kind: &str) -> &str {
    ["aaep:agent.", "https://aaep-protocol.org/types/agent."]
        .into_iter()
        .find_map(|prefix| kind.strip_prefix(prefix))
        .unwrap_or(kind)
}

/// The value of one field.
#[derive(Debug, Clone)]
pub(crate) enum Field {
    /// A text without anything that JSON escapes.
    Word(&'static str),
    Text(String),
    /// A text that stands in many events.
    Shared(Arc<str>),
    Count(u64),
    Flag(bool),
    Object(Fields),
    List(Vec<Field>),
    /// A value, and its JSON where that is needed again and again.
    Prepared(Arc<Prepared>),
    Value(Box<Value>),
}

/// A value that many events have, and its JSON.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) value: Value,
    pub(crate) json: Vec<u8>,
}

impl Prepared {
    pub(crate) fn new(value: Value) -> Self {
        let mut json = Vec::new();
        put_value(&value, &mut json);
        Self { value, json }
    }
}

impl Field {
    fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Self::Word(word) => {
                out.push(b'"');
                out.extend_from_slice(word.as_bytes());
                out.push(b'"');
            }
            Self::Text(text) => put_text(text, out),
            Self::Shared(text) => put_text(text, out),
            Self::Count(count) => put_number(*count, out),
            Self::Flag(true) => out.extend_from_slice(b"true"),
            Self::Flag(false) => out.extend_from_slice(b"false"),
            Self::Object(fields) => fields.write_object(out),
            Self::List(items) => {
                out.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    item.write_json(out);
                }
                out.push(b']');
            }
            Self::Prepared(prepared) => out.extend_from_slice(&prepared.json),
            Self::Value(value) => put_value(value, out),
        }
    }

    /// How many bytes it takes in JSON at most, its name included.
    fn most_bytes(&self) -> usize {
        match self {
            Self::Word(text) => most_text(text),
            Self::Text(text) => most_text(text),
            Self::Shared(text) => most_text(text),
            Self::Count(_) | Self::Flag(_) => 64,
            Self::Object(fields) => 64 + fields.most_bytes(),
            Self::List(items) => 64 + items.iter().map(Self::most_bytes).sum::<usize>(),
            Self::Prepared(prepared) => 64 + prepared.json.len(),
            Self::Value(value) => 32 + most_value(value),
        }
    }

    /// How deep it is nested.
    fn depth(&self) -> usize {
        match self {
            Self::Object(fields) => 1 + fields.depth(),
            Self::List(items) => 1 + items.iter().map(Self::depth).max().unwrap_or_default(),
            Self::Prepared(prepared) => depth(&prepared.value),
            Self::Value(value) => depth(value),
            _ => 0,
        }
    }

    /// Takes credentials out; whether there were any. No name of ours is one that credentials go by.
    pub(crate) fn redact(&mut self) -> bool {
        match self {
            Self::Word(_) | Self::Count(_) | Self::Flag(_) => false,
            Self::Text(shown) => match redacted(shown) {
                Some(clean) => {
                    *shown = clean;
                    true
                }
                None => false,
            },
            Self::Shared(shown) => match redacted(shown) {
                Some(clean) => {
                    *self = Self::Text(clean);
                    true
                }
                None => false,
            },
            Self::Object(fields) => fields.redact(),
            Self::List(items) => items.iter_mut().fold(false, |any, item| item.redact() | any),
            Self::Prepared(prepared) => match text::redacted_if_needed(&prepared.value) {
                Some(clean) => {
                    *self = clean.into();
                    true
                }
                None => false,
            },
            Self::Value(value) => match text::redacted_if_needed(value) {
                Some(clean) => {
                    **value = clean;
                    true
                }
                None => false,
            },
        }
    }

    fn into_value(self) -> Value {
        match self {
            Self::Word(word) => Value::from(word),
            Self::Text(text) => Value::String(text),
            Self::Shared(text) => Value::from(&*text),
            Self::Count(count) => Value::from(count),
            Self::Flag(flag) => Value::Bool(flag),
            Self::Object(fields) => Value::Object(fields.into_map()),
            Self::List(items) => items.into_iter().map(Self::into_value).collect(),
            Self::Prepared(prepared) => prepared.value.clone(),
            Self::Value(value) => *value,
        }
    }
}

/// A text without its credentials, if it has any.
fn redacted(shown: &str) -> Option<String> {
    let clean = text::redact(shown);
    (clean != shown).then(|| clean.into_owned())
}

impl From<String> for Field {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Field {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Cow<'_, str>> for Field {
    fn from(text: Cow<'_, str>) -> Self {
        Self::Text(text.into_owned())
    }
}

impl From<u64> for Field {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<bool> for Field {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<Fields> for Field {
    fn from(fields: Fields) -> Self {
        Self::Object(fields)
    }
}

impl From<Value> for Field {
    fn from(value: Value) -> Self {
        match value {
            Value::String(text) => Self::Text(text),
            Value::Bool(flag) => Self::Flag(flag),
            value => Self::Value(Box::new(value)),
        }
    }
}

impl From<Map<String, Value>> for Field {
    fn from(fields: Map<String, Value>) -> Self {
        Self::Value(Box::new(Value::Object(fields)))
    }
}

/// Fields in their order. Who puts them in sees to it that no name stands twice.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fields(Vec<(&'static str, Field)>);

impl Fields {
    pub(crate) fn of<const N: usize>(fields: [(&'static str, Field); N]) -> Self {
        Self(fields.into())
    }

    pub(crate) fn put(&mut self, name: &'static str, value: impl Into<Field>) {
        self.0.push((name, value.into()));
    }

    /// Puts what is there.
    pub(crate) fn maybe(&mut self, name: &'static str, value: Option<impl Into<Field>>) {
        if let Some(value) = value {
            self.put(name, value);
        }
    }

    /// Puts a word that needs no escapes.
    pub(crate) fn word(&mut self, name: &'static str, word: &'static str) {
        self.0.push((name, Field::Word(word)));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(own, _)| *own == name)
    }

    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Field> {
        self.0.iter_mut().find_map(|(own, field)| (*own == name).then_some(field))
    }

    pub(crate) fn text_mut(&mut self, name: &str) -> Option<&mut String> {
        match self.get_mut(name)? {
            Field::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.0.retain(|(own, _)| *own != name);
    }

    pub(crate) fn extend(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&'static str, &mut Field)> {
        self.0.iter_mut().map(|(name, field)| (*name, field))
    }

    /// Takes credentials out; whether there were any.
    pub(crate) fn redact(&mut self) -> bool {
        self.0.iter_mut().fold(false, |any, (_, field)| field.redact() | any)
    }

    /// Whether there is nothing in them but texts, words, counts and the like.
    pub(crate) fn is_flat(&self) -> bool {
        self.0.iter().all(|(_, field)| match field {
            Field::Word(_)
            | Field::Text(_)
            | Field::Shared(_)
            | Field::Count(_)
            | Field::Flag(_) => true,
            Field::Object(_) | Field::List(_) | Field::Prepared(_) | Field::Value(_) => false,
        })
    }

    /// How deep the values in them are nested.
    pub(crate) fn depth(&self) -> usize {
        self.0.iter().map(|(_, field)| field.depth()).max().unwrap_or_default()
    }

    /// Appends the fields, each behind a comma.
    pub(crate) fn write_json(&self, out: &mut Vec<u8>) {
        for (name, field) in &self.0 {
            put_name(name, out);
            field.write_json(out);
        }
    }

    /// Appends an object of the fields.
    pub(crate) fn write_object(&self, out: &mut Vec<u8>) {
        let begin = out.len();
        self.write_json(out);
        match out.get_mut(begin) {
            Some(comma) => *comma = b'{',
            None => out.push(b'{'),
        }
        out.push(b'}');
    }

    /// How many bytes they take in JSON at most.
    pub(crate) fn most_bytes(&self) -> usize {
        self.0.iter().map(|(_, field)| field.most_bytes()).sum()
    }

    pub(crate) fn into_map(self) -> Map<String, Value> {
        let mut map = Map::with_capacity(self.0.len());
        self.put_into(&mut map);
        map
    }

    pub(crate) fn put_into(self, map: &mut Map<String, Value>) {
        for (name, field) in self.0 {
            map.insert(name.to_owned(), field.into_value());
        }
    }
}

/// How many bytes a text takes in JSON at most, with the name of its field: a byte is at most six.
pub(crate) fn most_text(text: &str) -> usize {
    text.len() * 6 + 64
}

/// How many bytes a value takes in JSON at most.
pub(crate) fn most_value(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 64,
        Value::String(text) => most_text(text),
        Value::Array(items) => 32 + items.iter().map(most_value).sum::<usize>(),
        Value::Object(fields) => {
            32 + fields.iter().map(|(name, it)| most_text(name) + most_value(it)).sum::<usize>()
        }
    }
}

/// How deep a value is nested.
pub(crate) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

/// Appends texts that stand in JSON as they are.
pub(crate) fn put(texts: &[&str], out: &mut Vec<u8>) {
    for text in texts {
        out.extend_from_slice(text.as_bytes());
    }
}

/// Appends a comma and the name of a field.
pub(crate) fn put_name(name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

/// Appends a text as JSON.
pub(crate) fn put_text(text: &str, out: &mut Vec<u8>) {
    if json::is_plain(text) {
        out.reserve(text.len() + 2);
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        // Writing to memory does not fail.
        serde_json::to_writer(out, text).ok();
    }
}

/// Appends a number.
pub(crate) fn put_number(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(Decimal::of(number).as_str().as_bytes());
}

/// Appends a number that may be negative.
pub(crate) fn put_signed(number: i64, out: &mut Vec<u8>) {
    if number < 0 {
        out.push(b'-');
    }
    put_number(number.unsigned_abs(), out);
}

/// Appends a value as JSON.
pub(crate) fn put_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::String(text) => put_text(text, out),
        // Writing to memory does not fail.
        value => {
            serde_json::to_writer(out, value).ok();
        }
    }
}

#[cfg(test)]
#[path = "written_tests.rs"]
mod tests;
