//! One message, taken apart so that text can be added to it where it is.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::json::View;

/// What a message is, as far as it matters to those around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Assistant,
    Tool,
    Activity,
    Reasoning,
    Other,
}

/// A message of the conversation.
#[derive(Debug, Clone)]
pub struct Message {
    pub(super) id: Box<str>,
    role: Cow<'static, str>,
    pub(super) kind: Kind,
    pub(super) content: Option<Value>,
    pub(super) calls: Option<Vec<Call>>,
    metadata: Option<Map<String, Value>>,
    /// Everything else it has.
    fields: Map<String, Value>,
}

/// A tool call that a message carries.
#[derive(Debug, Clone)]
pub struct Call {
    pub(super) id: Box<str>,
    pub(super) name: String,
    pub(super) arguments: String,
    metadata: Option<Map<String, Value>>,
    /// Everything else it has.
    fields: Map<String, Value>,
}

impl Message {
    /// A message without content.
    pub(super) fn new(id: &str, role: &str) -> Self {
        let (role, kind) = known(role);
        Self {
            id: id.into(),
            role,
            kind,
            content: None,
            calls: None,
            metadata: None,
            fields: Map::new(),
        }
    }

    /// A message as the protocol writes it. What has no meaning here is kept as it is.
    pub(super) fn read(value: Value) -> Self {
        let Value::Object(mut fields) = value else { return Self::new("", "") };
        let text = |value: Option<Value>| match value {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        let id = text(fields.swap_remove("id"));
        let role = text(fields.swap_remove("role"));
        let mut message = Self::new(&id, &role);
        message.content = fields.swap_remove("content");
        if message.kind == Kind::Assistant
            && let Some(Value::Array(calls)) = fields.get("toolCalls")
        {
            message.calls = calls.iter().map(Call::read).collect();
        }
        if message.calls.is_some() {
            fields.swap_remove("toolCalls");
        }
        message.metadata = metadata(&mut fields);
        message.fields = without_null_tag(fields);
        message
    }

    /// The message as the protocol writes it.
    pub fn to_value(&self) -> Value {
        let mut value = Map::new();
        value.insert("id".into(), Value::from(&*self.id));
        value.insert("role".into(), Value::from(&*self.role));
        if let Some(content) = &self.content {
            value.insert("content".into(), content.clone());
        }
        if let Some(calls) = &self.calls {
            value.insert("toolCalls".into(), calls.iter().map(Call::to_value).collect());
        }
        finish(value, &self.fields, self.metadata.as_ref())
    }

    /// Its id, which is not unique if whoever sent it did not see to that.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Who speaks.
    pub fn role(&self) -> &str {
        &self.role
    }

    /// What is said: a text, parts, or what an activity shows.
    pub fn content(&self) -> Option<&Value> {
        self.content.as_ref()
    }

    /// The calls it carries.
    pub fn calls(&self) -> &[Call] {
        self.calls.as_deref().unwrap_or_default()
    }

    /// Its metadata, if it has any.
    pub fn metadata(&self) -> Option<&Map<String, Value>> {
        self.metadata.as_ref()
    }

    /// Any other field of it, such as `toolCallId` or `activityType`.
    pub fn field(&self, name: &str) -> Option<&Value> {
        self.fields.get(name)
    }

    /// What kind of activity it shows.
    pub(super) fn activity(&self) -> &str {
        self.field("activityType").and_then(Value::as_str).unwrap_or_default()
    }

    /// Sets a field, or removes it.
    pub(super) fn set(&mut self, name: &str, text: Option<&str>) {
        match text {
            Some(text) => drop(self.fields.insert(name.to_owned(), Value::from(text))),
            None => drop(self.fields.swap_remove(name)),
        }
    }

    /// Adds to its text; content that is no text gives way.
    #[inline]
    pub(super) fn append(&mut self, delta: &str) {
        match &mut self.content {
            Some(Value::String(text)) => text.push_str(delta),
            content => *content = Some(Value::from(delta)),
        }
    }

    /// Merges metadata key by key, and says whether there was any.
    #[inline]
    pub(super) fn merge(&mut self, incoming: Option<View<'_>>) -> bool {
        merge(&mut self.metadata, incoming)
    }
}

impl Call {
    pub(super) fn new(id: &str, name: &str) -> Self {
        let mut fields = Map::new();
        fields.insert("type".into(), Value::from("function"));
        Self {
            id: id.into(),
            name: name.to_owned(),
            arguments: String::new(),
            metadata: None,
            fields,
        }
    }

    fn read(value: &Value) -> Option<Self> {
        let text = |pointer| value.pointer(pointer).and_then(Value::as_str);
        let (id, name) = (text("/id")?, text("/function/name")?);
        let arguments = text("/function/arguments")?.to_owned();
        let mut fields = value.as_object()?.clone();
        fields.swap_remove("id");
        fields.swap_remove("function");
        let metadata = metadata(&mut fields);
        Some(Self { id: id.into(), name: name.to_owned(), arguments, metadata, fields })
    }

    /// The call as the protocol writes it.
    pub fn to_value(&self) -> Value {
        let mut value = Map::new();
        value.insert("id".into(), Value::from(&*self.id));
        let function = json!({"name": self.name, "arguments": self.arguments});
        value.insert("function".into(), function);
        finish(value, &self.fields, self.metadata.as_ref())
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The tool that is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is called with, so far: a text that may or may not be JSON.
    pub fn arguments(&self) -> &str {
        &self.arguments
    }

    /// Its metadata, if it has any.
    pub fn metadata(&self) -> Option<&Map<String, Value>> {
        self.metadata.as_ref()
    }

    /// Sets a field.
    pub(super) fn set(&mut self, name: &str, text: &str) {
        self.fields.insert(name.to_owned(), Value::from(text));
    }

    /// Merges metadata key by key, and says whether there was any.
    #[inline]
    pub(super) fn merge(&mut self, incoming: Option<View<'_>>) -> bool {
        merge(&mut self.metadata, incoming)
    }
}

fn known(role: &str) -> (Cow<'static, str>, Kind) {
    let (role, kind) = match role {
        "assistant" => ("assistant", Kind::Assistant),
        "tool" => ("tool", Kind::Tool),
        "activity" => ("activity", Kind::Activity),
        "reasoning" => ("reasoning", Kind::Reasoning),
        "user" => ("user", Kind::Other),
        "system" => ("system", Kind::Other),
        "developer" => ("developer", Kind::Other),
        other => return (Cow::Owned(other.to_owned()), Kind::Other),
    };
    (Cow::Borrowed(role), kind)
}

/// Takes the metadata out of the fields; what is no object is none.
fn metadata(fields: &mut Map<String, Value>) -> Option<Map<String, Value>> {
    match fields.swap_remove("metadata") {
        Some(Value::Object(metadata)) => Some(metadata),
        _ => None,
    }
}

/// A tag that is null is read as absent, so that it does not go out again.
pub(super) fn without_null_tag(mut fields: Map<String, Value>) -> Map<String, Value> {
    if fields.get("subagentRunId").is_some_and(Value::is_null) {
        fields.swap_remove("subagentRunId");
    }
    fields
}

fn finish(
    mut value: Map<String, Value>,
    fields: &Map<String, Value>,
    metadata: Option<&Map<String, Value>>,
) -> Value {
    value.extend(fields.iter().map(|(name, field)| (name.clone(), field.clone())));
    if let Some(metadata) = metadata {
        value.insert("metadata".into(), Value::Object(metadata.clone()));
    }
    Value::Object(value)
}

fn merge(metadata: &mut Option<Map<String, Value>>, incoming: Option<View<'_>>) -> bool {
    let Some(incoming) = incoming else { return false };
    let metadata = metadata.get_or_insert_default();
    for (name, value) in incoming.entries() {
        if let Some(name) = name.as_str() {
            metadata.insert(name.into_owned(), value.to_value());
        }
    }
    true
}
