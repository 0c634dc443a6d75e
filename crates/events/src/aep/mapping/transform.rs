//! What may be done to a value on its way from a payload into an event.
//!
//! A transform takes a value or gives nothing; it never fails. What it cannot work on is left out of the event, except
//! where the transform is about leaving things as they are (`json_parse`, `to_string`).

use jiff::Timestamp;
use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value, json};

use super::tree::{Node, Problems, Tree};

/// The transforms that have no argument, and the words of those that have one.
pub(super) const NAMES: &[&str] = &[
    "lowercase",
    "trim",
    "to_string",
    "to_number",
    "bool",
    "json_parse",
    "json_string",
    "s_to_ms",
    "epoch_ms_to_rfc3339",
    "epoch_s_to_rfc3339",
    "basename",
    "text_parts",
    "first",
    "last",
    "count",
    "values",
    "get",
    "join",
    "truncate",
    "map",
    "regex",
];

#[derive(Debug, Clone)]
pub(super) enum Transform {
    Lowercase,
    Trim,
    ToString,
    ToNumber,
    Bool,
    JsonParse,
    JsonString,
    Seconds,
    EpochMs,
    EpochS,
    Basename,
    TextParts,
    First,
    Last,
    Count,
    Values,
    Get(String),
    Join(String),
    Truncate(usize),
    Map(Map<String, Value>),
    Capture(Regex, Group),
}

#[derive(Debug, Clone)]
pub(super) enum Group {
    Number(usize),
    Name(String),
}

/// A value after its transforms, and how long it was before it was cut.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Made {
    pub(super) value: Value,
    pub(super) cut_from: Option<usize>,
}

/// A regular expression that cannot grow without bound.
pub(super) fn regex(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(pattern).size_limit(1 << 20).build().map_err(|error| {
        let text = error.to_string();
        let last = text.lines().last().unwrap_or(&text).trim();
        format!("bad regex `{pattern}`: {}", last.strip_prefix("error: ").unwrap_or(last))
    })
}

/// Reads one transform, as a word (`trim`, `join:, `) or as a mapping (`{map: {a: b}}`).
pub(super) fn parse(node: &Node, problems: &mut Problems) -> Option<Transform> {
    let result = match &node.tree {
        Tree::Text(text) => word(text),
        Tree::Map(entries) => match entries.as_slice() {
            [(key, value)] => match (key.name.as_str(), &value.tree) {
                ("map", Tree::Map(_)) => match value.json() {
                    Value::Object(map) => Ok(Transform::Map(map)),
                    _ => Err(None),
                },
                (name, Tree::Text(text)) => word(&format!("{name}:{text}")),
                (name, Tree::Number(number)) => word(&format!("{name}:{number}")),
                _ => Err(None),
            },
            _ => Err(None),
        },
        _ => Err(None),
    };
    match result {
        Ok(transform) => Some(transform),
        Err(Some(message)) => {
            problems.error(node.at, message);
            None
        }
        Err(None) => {
            let text = node.json();
            let text = text.as_str().map_or_else(|| text.to_string(), str::to_owned);
            let name = text.split(':').next().unwrap_or_default();
            problems.unknown(node.at, "transform", name, NAMES);
            None
        }
    }
}

/// `Err(None)`: there is no such transform. `Err(Some)`: there is, and its argument is wrong.
fn word(text: &str) -> Result<Transform, Option<String>> {
    let (name, argument) = match text.split_once(':') {
        Some((name, argument)) => (name, Some(argument)),
        None => (text, None),
    };
    let needs = |what: &str| Some(format!("the transform `{name}` needs {what}: `{name}:…`"));
    let transform = match (name, argument) {
        ("get", Some(pointer)) if pointer.starts_with('/') => Transform::Get(pointer.to_owned()),
        ("get", _) => return Err(needs("a JSON Pointer")),
        ("join", separator) => Transform::Join(separator.unwrap_or(", ").to_owned()),
        ("truncate", Some(length)) => match length.trim().parse() {
            Ok(length) => Transform::Truncate(length),
            Err(_) => return Err(needs("a number of characters")),
        },
        ("truncate", None) => return Err(needs("a number of characters")),
        ("map", Some(flow)) => {
            let map = super::tree::parse(flow).ok().map(|node| node.json());
            match map {
                Some(Value::Object(map)) => Transform::Map(map),
                _ => {
                    return Err(Some(
                        "the transform `map` needs a mapping: `{map: {a: b}}`".into(),
                    ));
                }
            }
        }
        ("regex", Some(rest)) => {
            let Some((pattern, group)) = rest.rsplit_once(':') else {
                return Err(Some("the transform `regex` is `regex:PATTERN:GROUP`".into()));
            };
            let pattern = regex(pattern).map_err(Some)?;
            let group = match group.parse() {
                Ok(number) => Group::Number(number),
                Err(_) => Group::Name(group.to_owned()),
            };
            let known = match &group {
                Group::Number(number) => *number < pattern.captures_len(),
                Group::Name(name) => pattern.capture_names().flatten().any(|known| known == name),
            };
            if !known {
                return Err(Some(format!("the regex `{pattern}` has no such group")));
            }
            Transform::Capture(pattern, group)
        }
        ("lowercase", None) => Transform::Lowercase,
        ("trim", None) => Transform::Trim,
        ("to_string", None) => Transform::ToString,
        ("to_number", None) => Transform::ToNumber,
        ("bool", None) => Transform::Bool,
        ("json_parse", None) => Transform::JsonParse,
        ("json_string", None) => Transform::JsonString,
        ("s_to_ms", None) => Transform::Seconds,
        ("epoch_ms_to_rfc3339", None) => Transform::EpochMs,
        ("epoch_s_to_rfc3339", None) => Transform::EpochS,
        ("basename", None) => Transform::Basename,
        ("text_parts", None) => Transform::TextParts,
        ("first", None) => Transform::First,
        ("last", None) => Transform::Last,
        ("count", None) => Transform::Count,
        ("values", None) => Transform::Values,
        _ => return Err(None),
    };
    Ok(transform)
}

/// Applies transforms from left to right.
pub(super) fn apply(transforms: &[Transform], value: Value) -> Option<Made> {
    let mut made = Made { value, cut_from: None };
    for transform in transforms {
        if let Transform::Truncate(most) = transform {
            let text = text_of(&made.value);
            let length = text.chars().count();
            made.value = json!(text.chars().take(*most).collect::<String>());
            if length > *most {
                made.cut_from = Some(made.cut_from.unwrap_or(length));
            }
        } else {
            made.value = transform.one(made.value)?;
        }
    }
    Some(made)
}

impl Transform {
    fn one(&self, value: Value) -> Option<Value> {
        match self {
            Self::Lowercase => value.as_str().map(|text| json!(text.to_lowercase())),
            Self::Trim => value.as_str().map(|text| json!(text.trim())),
            Self::ToString | Self::Truncate(_) => Some(Value::String(text_of(&value))),
            Self::ToNumber => number_of(&value),
            Self::Bool => bool_of(&value).map(Value::Bool),
            Self::JsonParse => Some(match value.as_str().map(serde_json::from_str) {
                Some(Ok(parsed)) => parsed,
                _ => value,
            }),
            Self::JsonString => Some(Value::String(value.to_string())),
            Self::Seconds => number_of(&value)?.as_f64().and_then(|seconds| whole(seconds * 1e3)),
            Self::EpochMs => time(number_of(&value)?.as_f64()?),
            Self::EpochS => time(number_of(&value)?.as_f64()? * 1e3),
            Self::Basename => {
                let text = value.as_str()?.trim_end_matches(['/', '\\']);
                text.rsplit(['/', '\\'])
                    .next()
                    .filter(|name| !name.is_empty())
                    .map(|name| json!(name))
            }
            Self::TextParts => text_parts(&value).map(Value::String),
            Self::First => value.as_array()?.first().cloned(),
            Self::Last => value.as_array()?.last().cloned(),
            Self::Count => match &value {
                Value::Array(items) => Some(json!(items.len())),
                Value::Object(members) => Some(json!(members.len())),
                _ => None,
            },
            Self::Values => Some(value.as_object()?.values().cloned().collect()),
            Self::Get(pointer) => value.pointer(pointer).filter(|value| !value.is_null()).cloned(),
            Self::Join(separator) => {
                let mut words = Vec::new();
                flatten(&value, &mut words);
                Some(json!(words.join(separator)))
            }
            Self::Map(map) => map.get(&text_of(&value)).or_else(|| map.get("*")).cloned(),
            Self::Capture(pattern, group) => {
                let found = pattern.captures(value.as_str()?)?;
                let found = match group {
                    Group::Number(number) => found.get(*number),
                    Group::Name(name) => found.name(name),
                };
                found.map(|found| json!(found.as_str()))
            }
        }
    }
}

/// A string as it is, anything else as JSON.
pub(super) fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn number_of(value: &Value) -> Option<Value> {
    match value {
        Value::Number(_) => Some(value.clone()),
        Value::String(text) => {
            let text = text.trim();
            match text.parse::<i64>() {
                Ok(number) => Some(json!(number)),
                Err(_) => {
                    text.parse().ok().and_then(serde_json::Number::from_f64).map(Value::Number)
                }
            }
        }
        _ => None,
    }
}

fn bool_of(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(value) => Some(*value),
        Value::Number(number) => number.as_f64().map(|number| number != 0.0),
        Value::String(text) => match text.trim().to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Some(true),
            "false" | "no" | "off" | "0" | "" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the bounds are checked, and it is whole")]
fn whole(number: f64) -> Option<Value> {
    if number.fract() == 0.0 && number.abs() < 9e15 {
        return Some(json!(number as i64));
    }
    serde_json::Number::from_f64(number).map(Value::Number)
}

#[expect(clippy::cast_possible_truncation, reason = "jiff refuses what is out of its range")]
fn time(milliseconds: f64) -> Option<Value> {
    let time = Timestamp::from_millisecond(milliseconds.round() as i64).ok()?;
    Some(json!(crate::event::time_text(time)))
}

/// The text of a list of content parts: strings, or objects with `text` (or `thinking`, or `content`).
fn text_parts(value: &Value) -> Option<String> {
    let part = |part: &Value| match part {
        Value::String(text) => Some(text.clone()),
        Value::Object(part) => ["text", "thinking", "content"]
            .iter()
            .find_map(|name| part.get(*name)?.as_str())
            .map(str::to_owned),
        _ => None,
    };
    match value {
        Value::Array(parts) => {
            let parts: Vec<String> = parts.iter().filter_map(part).collect();
            (!parts.is_empty()).then(|| parts.join("\n"))
        }
        other => part(other),
    }
}

fn flatten(value: &Value, words: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| flatten(item, words)),
        Value::Null => {}
        other => words.push(text_of(other)),
    }
}

#[cfg(test)]
#[path = "transform_tests.rs"]
mod tests;
