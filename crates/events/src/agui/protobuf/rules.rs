//! Where JSON and the messages say the same thing in different shapes.
//!
//! Writing: [`admit`] refuses what has no place in a message, [`find`] says where a field's value lies. Reading:
//! [`settle`] gives the fields of a message, complete and named as on the wire, the shape that JSON has.

use serde_json::{Map, Value, json};

use super::tables::{Field, Message, Rule};
use super::{DecodeError, EncodeError};

type Object = Map<String, Value>;

/// What has parts or text for its content.
const WITH_PARTS: &[&str] = &["user", "tool"];
/// What has an object for its content.
const ACTIVITY: &str = "activity";
/// What has text for its content.
const WITH_TEXT: &[&str] = &["developer", "system", "assistant", "reasoning"];

/// Refuses an object that its message cannot say.
pub(super) fn admit(message: &Message, object: &Object) -> Result<(), EncodeError> {
    match message.rule {
        Rule::Same => Ok(()),
        Rule::Outcome(siblings) => {
            let Some(outcome) = value(object, "outcome") else { return Ok(()) };
            match outcome.get("type").and_then(Value::as_str) {
                None | Some("") => {
                    Err(EncodeError::unfit("an object with a type").within("/outcome"))
                }
                // Left out, it would be read back as an empty list.
                Some("interrupt") if names(siblings, "interrupts") => {
                    match outcome.get("interrupts") {
                        Some(Value::Array(_)) => Ok(()),
                        _ => Err(EncodeError::missing().within("/outcome/interrupts")),
                    }
                }
                Some(_) => Ok(()),
            }
        }
        Rule::Content => match value(object, "content") {
            Some(Value::String(_) | Value::Array(_)) => Ok(()),
            Some(_) => Err(EncodeError::unfit("text or a list of parts").within("/content")),
            None => Err(EncodeError::missing().within("/content")),
        },
        Rule::Chat => admit_chat(object),
        Rule::Part => admit_tag(message, object, "the type of a part that has a binary form"),
        Rule::Source => admit_tag(message, object, "the type of a source that has a binary form"),
    }
}

fn admit_chat(object: &Object) -> Result<(), EncodeError> {
    let role = object.get("role").and_then(Value::as_str).unwrap_or_default();
    let Some(content) = value(object, "content") else {
        let known = [WITH_PARTS, WITH_TEXT, &[ACTIVITY]].concat().contains(&role);
        return if known && role != "assistant" {
            Err(EncodeError::missing().within("/content"))
        } else {
            Ok(())
        };
    };
    let (text, parts, map) = (content.is_string(), content.is_array(), content.is_object());
    let (fits, wanted) = match role {
        ACTIVITY => (map, "an object"),
        role if WITH_PARTS.contains(&role) => (text || parts, "text or a list of parts"),
        role if WITH_TEXT.contains(&role) => (text, "text"),
        // Of a role that is not known, nobody can say what its content is.
        _ => (text || parts || map, "text, a list of parts or an object"),
    };
    if fits { Ok(()) } else { Err(EncodeError::unfit(wanted).within("/content")) }
}

fn admit_tag(message: &Message, object: &Object, wanted: &'static str) -> Result<(), EncodeError> {
    let tag = object.get("type").and_then(Value::as_str);
    let known = message.fields.iter().any(|field| Some(field.name) == tag);
    if known { Ok(()) } else { Err(EncodeError::unfit(wanted).within("/type")) }
}

/// Where JSON has a field's value.
pub(super) fn find<'a>(rule: Rule, whole: &'a Value, field: &Field) -> Option<&'a Value> {
    let content = |fits: fn(&Value) -> bool| whole.get("content").filter(|value| fits(value));
    match (rule, field.name) {
        (Rule::Outcome(_), "outcome") => whole.get("outcome")?.get("type"),
        (Rule::Outcome(siblings), name) if names(siblings, name) => {
            let outcome = whole.get("outcome")?;
            let kind = outcome.get("type").and_then(Value::as_str)?;
            // What belongs to another type of outcome is not known to this one.
            if siblings.contains(&(name, kind)) { outcome.get(name) } else { None }
        }
        (Rule::Content | Rule::Chat, "content") => content(Value::is_string),
        (Rule::Content | Rule::Chat, "contentParts") => content(Value::is_array),
        (Rule::Chat, "activityContent") => content(Value::is_object),
        (Rule::Part | Rule::Source, name) => {
            (whole.get("type").and_then(Value::as_str) == Some(name)).then_some(whole)
        }
        (_, name) => whole.get(name),
    }
}

/// Where that is, as a JSON Pointer.
pub(super) fn pointer(rule: Rule, field: &Field) -> String {
    match (rule, field.name) {
        (Rule::Outcome(_), "outcome") => "/outcome/type".to_owned(),
        (Rule::Outcome(siblings), name) if names(siblings, name) => format!("/outcome/{name}"),
        (Rule::Content | Rule::Chat, "contentParts" | "activityContent") => "/content".to_owned(),
        // It is the object itself.
        (Rule::Part | Rule::Source, _) => String::new(),
        (_, name) => format!("/{name}"),
    }
}

/// What a part of the retired type `binary` is now, where it says enough: a document that tells what it was.
pub(super) fn renewed(rule: Rule, part: &Value) -> Option<Value> {
    if !matches!(rule, Rule::Part) || part.get("type")? != "binary" {
        return None;
    }
    let given = |name: &str| part.get(name).filter(|value| value.as_str() != Some(""));
    let (kind, value) = match (given("data"), given("url"), given("id")) {
        (Some(data), _, _) => ("data", data),
        (None, Some(url), _) => ("url", url),
        (None, None, id) => ("url", id?),
    };
    let mut metadata = json!({"legacyBinary": true});
    for name in ["filename", "id"] {
        if let (Some(value), Some(metadata)) = (part.get(name), metadata.as_object_mut()) {
            metadata.insert(name.to_owned(), value.clone());
        }
    }
    Some(json!({
        "type": "document",
        "source": {"type": kind, "value": value, "mimeType": part.get("mimeType")},
        "metadata": metadata,
    }))
}

/// Gives a message the shape of JSON; false where it is of a kind that only later versions know.
pub(super) fn settle(rule: Rule, object: &mut Object) -> Result<bool, DecodeError> {
    match rule {
        Rule::Same => {}
        Rule::Outcome(siblings) => settle_outcome(siblings, object),
        Rule::Content => settle_parts(object)?,
        Rule::Chat => settle_chat(object)?,
        Rule::Part | Rule::Source => return settle_tag(object),
    }
    Ok(true)
}

fn settle_outcome(siblings: &[(&str, &str)], object: &mut Object) {
    // Without an outcome, what belongs into one stays beside it, where it is found to be unknown.
    let Some(Value::String(kind)) = object.shift_remove("outcome") else { return };
    if kind.is_empty() {
        return;
    }
    let mut outcome = Object::new();
    let interrupted = kind == "interrupt";
    outcome.insert("type".to_owned(), Value::String(kind));
    for (name, _) in siblings {
        if let Some(list) = object.shift_remove(*name) {
            outcome.insert((*name).to_owned(), list);
        } else if interrupted && *name == "interrupts" {
            outcome.insert((*name).to_owned(), json!([]));
        }
    }
    object.insert("outcome".to_owned(), Value::Object(outcome));
}

/// Text, or else parts, of which there may be none.
fn settle_parts(object: &mut Object) -> Result<(), DecodeError> {
    match (object.shift_remove("contentParts"), object.contains_key("content")) {
        (Some(_), true) => Err(DecodeError::Content),
        (None, true) => Ok(()),
        (parts, false) => {
            object.insert("content".to_owned(), parts.unwrap_or_else(|| json!([])));
            Ok(())
        }
    }
}

fn settle_chat(object: &mut Object) -> Result<(), DecodeError> {
    let role = object.get("role").and_then(Value::as_str).unwrap_or_default().to_owned();
    let (text, parts, map) = (
        object.contains_key("content"),
        object.contains_key("contentParts"),
        object.contains_key("activityContent"),
    );
    let fits = match role.as_str() {
        ACTIVITY => !text && !parts,
        role if WITH_PARTS.contains(&role) => !map,
        role if WITH_TEXT.contains(&role) => !parts && !map,
        _ => [text, parts, map].into_iter().filter(|form| *form).count() < 2,
    };
    if !fits {
        return Err(DecodeError::Content);
    }
    if WITH_PARTS.contains(&role.as_str()) {
        return settle_parts(object);
    }
    for name in ["contentParts", "activityContent"] {
        if let Some(content) = object.shift_remove(name) {
            object.insert("content".to_owned(), content);
        }
    }
    Ok(())
}

fn settle_tag(object: &mut Object) -> Result<bool, DecodeError> {
    let mut arms = std::mem::take(object).into_iter();
    let Some((tag, Value::Object(fields))) = arms.next() else { return Ok(false) };
    if arms.next().is_some() {
        return Err(DecodeError::Several);
    }
    object.insert("type".to_owned(), Value::String(tag));
    object.extend(fields);
    Ok(true)
}

/// A field that is there and not null.
fn value<'a>(object: &'a Object, name: &str) -> Option<&'a Value> {
    object.get(name).filter(|value| !value.is_null())
}

fn names(siblings: &[(&str, &str)], name: &str) -> bool {
    siblings.iter().any(|(sibling, _)| *sibling == name)
}
