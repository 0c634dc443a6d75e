//! Fields and words that are there under another name: other programs write `message_id`, `content`, `Assistant`.

use serde_json::{Map, Value};

use super::Repairer;
use super::event::{Event, is_alike, short};
use crate::agui::check::{MALFORMED, MISSING, UNKNOWN_FIELD, UNKNOWN_MEMBER, WORD};
use crate::agui::event::Type;
use crate::check::shape::{Kind, Shape, quote};
use crate::finding::Rule;

/// What was done, and for which rule.
type RenameNotes = Vec<(&'static Rule, String)>;

impl Repairer {
    /// Gives fields and words the names that the table knows.
    pub(super) fn rename(&mut self, event: &mut Event) {
        let (mut fields, mut told) = (event.fields.clone(), RenameNotes::new());
        rename(event.kind.shape(), &mut fields, "", &mut told);
        if !told.is_empty() {
            event.touch();
            event.fields = fields;
        }
        for (rule, what) in told {
            self.tell(rule, format!("{what} in {}", event.kind.name()));
        }
        for field in event.kind.shape().fields() {
            self.find(event, field.name);
        }
        let delta =
            event.fields.get("delta").filter(|delta| !delta.is_null() && !delta.is_string());
        if let (true, Some(delta)) = (event.kind != Type::StateDelta, delta.cloned()) {
            let now = words(event.kind, &delta);
            let what = format!(
                "replaced delta {} of {} by {}",
                short(&delta),
                event.kind.name(),
                quote(&now)
            );
            self.tell(&MALFORMED, what);
            event.set("delta", now);
        }
    }

    /// Looks for a field that is missing where other producers put what belongs there.
    fn find(&mut self, event: &mut Event, name: &'static str) {
        if event.fields.get(name).is_some_and(|value| !value.is_null()) {
            return;
        }
        let kind = event.kind;
        let is_patch = matches!((kind, name), (Type::StateDelta, "delta") | (_, "patch"));
        let is_free = |other: &str| kind.shape().fields().all(|field| field.name != other);
        let found = aliases(kind, name).iter().find_map(|other| {
            let value =
                event.fields.get(*other).filter(|value| !value.is_null() && is_free(other))?;
            (!is_patch || value.is_array()).then(|| (*other, value.clone()))
        });
        let Some((other, value)) = found else { return };
        let value = match name {
            "snapshot" | "patch" | "content" => value,
            _ if is_patch => value,
            "message" => reason(&value).into(),
            _ => words(kind, &value).into(),
        };
        self.tell(
            &MISSING,
            format!("renamed {other} of {} to {name}: {}", kind.name(), short(&value)),
        );
        event.remove(other);
        event.set(name, value);
    }
}

/// Under which names other producers send a field.
fn aliases(kind: Type, name: &str) -> &'static [&'static str] {
    match (kind, name) {
        (Type::StateDelta, "delta") => &["patch"],
        (Type::ActivityDelta, "patch") => &["delta"],
        (_, "delta") => &["content", "text", "args", "arguments"],
        (Type::StateSnapshot, "snapshot") => &["state"],
        (Type::RunError | Type::SubagentError, "message") => &["error"],
        (Type::ToolCallStart | Type::ToolCallChunk, "toolCallName") => &["toolName", "name"],
        (Type::ToolCallResult, "content") => &["result", "output"],
        (Type::StepStarted | Type::StepFinished, "stepName") => &["name", "step"],
        (Type::ToolCallStart | Type::ToolCallArgs | Type::ToolCallEnd, "toolCallId")
        | (Type::TextMessageStart | Type::TextMessageContent | Type::TextMessageEnd, "messageId") => {
            &["id"]
        }
        _ => &[],
    }
}

fn rename(shape: &Shape, object: &mut Map<String, Value>, path: &str, told: &mut RenameNotes) {
    let is_known = |name: &str| shape.fields().any(|field| field.name == name);
    let foreign: Vec<String> = object.keys().filter(|name| !is_known(name)).cloned().collect();
    for name in foreign {
        let Some(field) = shape.fields().find(|field| is_alike(field.name, &name)) else {
            continue;
        };
        if object.get(field.name).is_some_and(|value| !value.is_null()) {
            continue;
        }
        told.push((&UNKNOWN_FIELD, format!("renamed {path}/{name} to {}", field.name)));
        let fields = std::mem::take(object).into_iter().filter(|(other, _)| other != field.name);
        *object = fields
            .map(|(other, value)| {
                (if other == name { field.name.to_owned() } else { other }, value)
            })
            .collect();
    }
    for (name, value) in object {
        if let Some(field) = shape.fields().find(|field| field.name == name) {
            descend(&field.kind, value, &format!("{path}/{name}"), told);
        }
    }
}

fn descend(kind: &Kind, value: &mut Value, path: &str, told: &mut RenameNotes) {
    match (kind, value) {
        (Kind::Record(shape), Value::Object(object)) => rename(shape, object, path, told),
        (Kind::Union { tag, members }, Value::Object(object)) => {
            if let Some(Value::String(word)) = object.get_mut(*tag) {
                let words = members.iter().map(|(known, _)| *known);
                correct(word, words, &UNKNOWN_MEMBER, &format!("{path}/{tag}"), told);
            }
            let word = object.get(*tag).and_then(Value::as_str);
            if let Some((_, shape)) = members.iter().find(|(known, _)| word == Some(known)) {
                rename(shape, object, path, told);
            }
        }
        (Kind::Word(words), Value::String(word)) => {
            correct(word, words.iter().copied(), &WORD, path, told);
        }
        (Kind::List { item, .. } | Kind::TextOr(item), Value::Array(items)) => {
            for (index, value) in items.iter_mut().enumerate() {
                descend(item, value, &format!("{path}/{index}"), told);
            }
        }
        _ => {}
    }
}

/// A word that is known but for its case.
fn correct<'a>(
    word: &mut String,
    mut known: impl Iterator<Item = &'a str>,
    rule: &'static Rule,
    path: &str,
    told: &mut RenameNotes,
) {
    if let Some(known) = known.find(|known| known.eq_ignore_ascii_case(word))
        && known != word
    {
        told.push((rule, format!("replaced {path} {} by {}", quote(word), quote(known))));
        known.clone_into(word);
    }
}

/// What is said by something that should be a text.
pub(super) fn words(kind: Type, value: &Value) -> String {
    // The arguments of a call are JSON, whatever is in them.
    let is_call = matches!(kind, Type::ToolCallArgs | Type::ToolCallChunk);
    let text = |value: &Value| {
        let found = ["text", "content"].into_iter().find_map(|name| value.get(name)?.as_str());
        value.as_str().or(found).map(str::to_owned)
    };
    let said = match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) if !is_call && !parts.is_empty() => parts.iter().map(text).collect(),
        _ if is_call => None,
        _ => text(value),
    };
    said.unwrap_or_else(|| value.to_string())
}

/// Why something failed.
fn reason(error: &Value) -> String {
    let said = error.as_str().or_else(|| error.get("message")?.as_str());
    said.map_or_else(|| error.to_string(), str::to_owned)
}
