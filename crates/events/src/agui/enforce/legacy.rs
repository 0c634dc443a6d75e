//! Shapes that 1.0 retired, and what they are today.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::agui::event::Type;

/// Turns retired shapes into their successors. Gives the places of the nulls that went and of the parts that changed.
pub(super) fn upgrade(kind: Type, event: &mut Map<String, Value>) -> HashSet<String> {
    let mut places = HashSet::new();
    let nulls: &[&str] = match kind {
        Type::RunFinished => &["rawEvent", "result", "outcome"],
        Type::SubagentFinished => &["rawEvent", "result"],
        Type::ToolCallStart | Type::ToolCallChunk => &["rawEvent", "parentMessageId"],
        _ => &["rawEvent"],
    };
    for name in nulls {
        omit(event, name, "", &mut places);
    }
    match kind {
        Type::MessagesSnapshot => messages(event, "", &mut places),
        Type::RunStarted => {
            if let Some(Value::Object(input)) = event.get_mut("input") {
                run_input(input, "/input", &mut places);
            }
        }
        _ => {}
    }
    places
}

fn run_input(input: &mut Map<String, Value>, path: &str, places: &mut HashSet<String>) {
    omit(input, "forwardedProps", path, places);
    for (list, name) in [("tools", "parameters"), ("resume", "payload")] {
        for (index, entry) in objects(input.get_mut(list)) {
            omit(entry, name, &format!("{path}/{list}/{index}"), places);
        }
    }
    messages(input, path, places);
}

fn messages(holder: &mut Map<String, Value>, path: &str, places: &mut HashSet<String>) {
    for (index, message) in objects(holder.get_mut("messages")) {
        let path = format!("{path}/messages/{index}/content");
        let Some(Value::Array(parts)) = message.get_mut("content") else { continue };
        for (index, part) in parts.iter_mut().enumerate() {
            let Value::Object(fields) = part else { continue };
            let is = |name: &str| fields.get("type").is_some_and(|kind| kind == name);
            if ["image", "audio", "video", "document"].into_iter().any(is) {
                omit(fields, "metadata", &format!("{path}/{index}"), places);
            }
        }
        binary(parts, &path, places);
    }
}

/// Turns binary parts into parts of their kind; one that is there already in its new shape goes.
fn binary(parts: &mut Vec<Value>, path: &str, places: &mut HashSet<String>) {
    let is_binary = |part: &Value| part.get("type").is_some_and(|kind| kind == "binary");
    if !parts.iter().any(is_binary) {
        return;
    }
    let modern = parts.iter().filter(|part| !is_binary(part));
    let modern: HashSet<Vec<String>> =
        modern.flat_map(|part| [key(part, true), key(part, false)]).collect();
    let mut index = 0usize;
    parts.retain_mut(|part| {
        let place = format!("{path}/{index}");
        index += 1;
        let Some(upgraded) = upgraded(part).filter(|_| is_binary(part)) else { return true };
        places.insert(place);
        let twice = modern.contains(&key(&upgraded, upgraded.pointer(NAME).is_some()));
        *part = upgraded;
        !twice
    });
}

const NAME: &str = "/metadata/filename";

/// What makes a part the same as another, with or without the name of its file.
fn key(part: &Value, named: bool) -> Vec<String> {
    let pointers = ["/type", "/source/type", "/source/value", "/source/mimeType"];
    let name = named.then_some(NAME);
    let at = |pointer| part.pointer(pointer).map(Value::to_string).unwrap_or_default();
    pointers.into_iter().chain(name).map(at).collect()
}

fn upgraded(part: &Value) -> Option<Value> {
    let text = |name: &str| part.get(name)?.as_str().filter(|text| !text.is_empty());
    let mime = part.get("mimeType")?.as_str()?;
    let (kind, value) = match (text("data"), text("url")) {
        (Some(data), _) => ("data", data),
        (None, Some(url)) => ("url", url),
        // An id alone leads nowhere: the part leaves with what is not known.
        (None, None) => return None,
    };
    let family = mime.split_once('/').map_or("", |(family, _)| family);
    let medium = match family {
        "image" | "audio" | "video" => family,
        _ => "document",
    };
    let mut upgraded =
        json!({ "type": medium, "source": { "type": kind, "value": value, "mimeType": mime } });
    if let (Some(name), Some(fields)) = (text("filename"), upgraded.as_object_mut()) {
        fields.insert("metadata".into(), json!({ "filename": name }));
    }
    Some(upgraded)
}

fn omit(object: &mut Map<String, Value>, name: &str, path: &str, places: &mut HashSet<String>) {
    if object.get(name).is_some_and(Value::is_null) {
        object.shift_remove(name);
        places.insert(format!("{path}/{name}"));
    }
}

fn objects(list: Option<&mut Value>) -> impl Iterator<Item = (usize, &mut Map<String, Value>)> {
    let items = list.and_then(Value::as_array_mut).map(Vec::as_mut_slice).unwrap_or_default();
    items.iter_mut().enumerate().filter_map(|(index, item)| Some((index, item.as_object_mut()?)))
}
