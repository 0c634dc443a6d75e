//! What an interrupt's `responseSchema` takes for an answer.
//!
//! A person says yes, no, or some words; an agent gets a payload that its schema describes. [`ResponseSchema::yes_no`]
//! finds the payloads that obviously mean yes and no, [`ResponseSchema::payload`] makes one of a text, and
//! [`ResponseSchema::fits`] tells whether a payload is one. Of JSON Schema the keywords about types, values, sizes,
//! members and alternatives count; `pattern`, `format` and references to other documents are the agent's own business.

use serde_json::{Map, Value, json};

use crate::text;

/// How deep a schema or a payload may be nested, with every reference that is followed.
const DEPTH: usize = 24;
/// How much of a schema people are shown.
const SHOWN: usize = 300;

/// Words that mean yes, and words that mean no.
const YES: [&str; 17] = [
    "yes",
    "y",
    "true",
    "ok",
    "okay",
    "approve",
    "approved",
    "accept",
    "accepted",
    "allow",
    "allowed",
    "confirm",
    "confirmed",
    "proceed",
    "continue",
    "grant",
    "granted",
];
const NO: [&str; 18] = [
    "no",
    "n",
    "false",
    "cancel",
    "cancelled",
    "reject",
    "rejected",
    "decline",
    "declined",
    "deny",
    "denied",
    "disallow",
    "stop",
    "abort",
    "refuse",
    "refused",
    "block",
    "blocked",
];
/// Members that carry the decision, where an object has others besides.
const DECIDING: [&str; 14] = [
    "approved",
    "approve",
    "accepted",
    "accept",
    "confirmed",
    "confirm",
    "allowed",
    "allow",
    "proceed",
    "ok",
    "yes",
    "decision",
    "answer",
    "response",
];
/// Members that carry a word to the agent.
const WORDS: [&str; 3] = ["message", "reason", "comment"];

/// The schema of an answer.
///
/// ```
/// use banister_events::agui::response_schema::ResponseSchema;
/// use serde_json::json;
/// let schema = json!({"type": "object", "properties": {"approved": {"type": "boolean"}}, "required": ["approved"]});
/// let schema = ResponseSchema::new(&schema);
/// assert_eq!(schema.yes_no(), Some((json!({"approved": true}), json!({"approved": false}))));
/// assert_eq!(schema.payload("yes"), Some(json!({"approved": true})));
/// assert!(schema.fits(&json!({"approved": "perhaps"})).is_err());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ResponseSchema<'s> {
    root: &'s Value,
}

impl<'s> ResponseSchema<'s> {
    /// The schema of an interrupt.
    pub fn new(schema: &'s Value) -> Self {
        Self { root: schema }
    }

    /// The payloads that obviously mean yes and no; `None` where the schema has no such pair.
    pub fn yes_no(self) -> Option<(Value, Value)> {
        let (yes, no) = self.pair(self.root, DEPTH)?;
        (self.fits(&yes).is_ok() && self.fits(&no).is_ok()).then_some((yes, no))
    }

    /// A payload with a word to the agent, where the schema has a place for it.
    pub fn with_message(self, payload: Value, message: Option<&str>) -> Value {
        let (Some(message), Value::Object(fields)) = (message, &payload) else { return payload };
        let has = |name: &&&str| {
            let member = self.root.pointer(&format!("/properties/{name}"));
            member.is_some() && !fields.contains_key(**name)
        };
        let Some(name) = WORDS.iter().find(has) else { return payload };
        let mut fields = fields.clone();
        fields.insert((*name).to_owned(), json!(message));
        let longer = Value::Object(fields);
        if self.fits(&longer).is_ok() { longer } else { payload }
    }

    /// The payload that a text stands for: JSON that fits, the text itself, the value of a choice with that title, yes or
    /// no, or an object with one member that takes the text. `None` where none of these fits.
    pub fn payload(self, text: &str) -> Option<Value> {
        self.read(self.root, text, DEPTH).filter(|payload| self.fits(payload).is_ok())
    }

    /// Whether a payload is what the schema describes; the first thing that is not, in words.
    pub fn fits(self, payload: &Value) -> Result<(), String> {
        self.check(self.root, payload, "", DEPTH)
    }

    /// What the schema takes, for people.
    pub fn takes(self) -> String {
        let shown = text::shorten(&text::one_line(&self.root.to_string()), SHOWN).into_owned();
        match self.yes_no() {
            Some(_) => format!("yes or no, or JSON that fits {shown}"),
            None => format!("text or JSON that fits {shown}"),
        }
    }

    fn pair(self, schema: &Value, depth: usize) -> Option<(Value, Value)> {
        let depth = depth.checked_sub(1)?;
        let schema = self.resolved(schema)?;
        if types(schema) == ["boolean"] {
            return Some((json!(true), json!(false)));
        }
        if let Some(pair) = word_pair(&choices(schema)) {
            return Some(pair);
        }
        let members = schema.get("properties")?.as_object()?;
        let deciding = |(name, inner): (&String, &Value)| {
            let named = DECIDING.contains(&name.as_str()) || members.len() == 1;
            let (yes, no) = named.then(|| self.pair(inner, depth)).flatten()?;
            Some((json!({ name: yes }), json!({ name: no })))
        };
        members.iter().find_map(deciding)
    }

    fn read(self, schema: &Value, text: &str, depth: usize) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        let schema = self.resolved(schema)?;
        let fits = |value: &Value| self.check(schema, value, "", depth).is_ok();
        let parsed = serde_json::from_str::<Value>(text.trim()).ok();
        let (nested, plain) = match parsed {
            Some(value) if value.is_object() || value.is_array() => (Some(value), None),
            other => (None, other),
        };
        let titled = choices(schema).into_iter().find_map(|(value, title)| {
            (title.to_lowercase() == text.trim().to_lowercase()).then_some(value)
        });
        let literal = [nested, titled, Some(json!(text)), plain].into_iter().flatten().find(&fits);
        if literal.is_some() {
            return literal;
        }
        if let Some((yes, no)) = self.pair(schema, depth) {
            let word = text.trim().to_lowercase();
            if YES.contains(&word.as_str()) && fits(&yes) {
                return Some(yes);
            }
            if NO.contains(&word.as_str()) && fits(&no) {
                return Some(no);
            }
        }
        let members = schema.get("properties")?.as_object()?;
        let required = names(schema, "required");
        let mut wanted = members.iter().filter(|(name, _)| required.contains(&name.as_str()));
        let (name, inner) = match (wanted.next(), wanted.next()) {
            (Some(one), None) => one,
            (None, _) if members.len() == 1 => members.iter().next()?,
            _ => return None,
        };
        let mut payload = Map::new();
        payload.insert(name.clone(), self.read(inner, text, depth)?);
        Some(Value::Object(payload))
    }

    /// The schema that a reference within the document means.
    fn resolved<'v>(self, schema: &'v Value) -> Option<&'v Value>
    where
        's: 'v,
    {
        let mut schema = schema;
        for _ in 0..DEPTH {
            let Some(reference) = schema.get("$ref").and_then(Value::as_str) else {
                return Some(schema);
            };
            schema = self.root.pointer(reference.strip_prefix('#')?)?;
        }
        None
    }

    fn check(self, schema: &Value, value: &Value, at: &str, depth: usize) -> Result<(), String> {
        let place = if at.is_empty() { "the answer".to_owned() } else { at.to_owned() };
        let Some(depth) = depth.checked_sub(1) else {
            return Err(format!("{place} is nested too deeply"));
        };
        let Some(schema) = self.resolved(schema) else {
            return Err(format!("{place} is described by a reference that leads nowhere"));
        };
        if schema == &Value::Bool(false) {
            return Err(format!("nothing fits for {place}"));
        }
        let types = types(schema);
        if !types.is_empty() && !types.iter().any(|name| is_type(name, value)) {
            return Err(format!("{place} is not of type {}", types.join(" or ")));
        }
        let listed = schema.get("enum").and_then(Value::as_array);
        if listed.is_some_and(|listed| !listed.contains(value))
            || schema.get("const").is_some_and(|only| only != value)
        {
            return Err(format!("{place} is none of the values that are taken"));
        }
        Self::check_size(schema, value, &place)?;
        self.check_members(schema, value, at, depth)?;
        self.check_alternatives(schema, value, at, depth)
    }

    fn check_size(schema: &Value, value: &Value, place: &str) -> Result<(), String> {
        let limit = |name: &str| schema.get(name).and_then(Value::as_f64);
        #[expect(clippy::cast_precision_loss, reason = "no answer is that long")]
        let size = match value {
            Value::String(text) => Some((text.chars().count() as f64, "minLength", "maxLength")),
            Value::Array(items) => Some((items.len() as f64, "minItems", "maxItems")),
            Value::Object(fields) => Some((fields.len() as f64, "minProperties", "maxProperties")),
            Value::Number(number) => number.as_f64().map(|it| (it, "minimum", "maximum")),
            Value::Bool(_) | Value::Null => None,
        };
        let Some((size, least, most)) = size else { return Ok(()) };
        if limit(least).is_some_and(|least| size < least) {
            return Err(format!("{place} is less than {least} allows"));
        }
        if limit(most).is_some_and(|most| size > most) {
            return Err(format!("{place} is more than {most} allows"));
        }
        if value.is_number()
            && (limit("exclusiveMinimum").is_some_and(|least| size <= least)
                || limit("exclusiveMaximum").is_some_and(|most| size >= most))
        {
            return Err(format!("{place} is outside of its range"));
        }
        Ok(())
    }

    fn check_members(
        self,
        schema: &Value,
        value: &Value,
        at: &str,
        depth: usize,
    ) -> Result<(), String> {
        if let (Some(items), Value::Array(values)) = (schema.get("items"), value) {
            for (index, value) in values.iter().enumerate() {
                self.check(items, value, &format!("{at}/{index}"), depth)?;
            }
        }
        let Value::Object(fields) = value else { return Ok(()) };
        for name in names(schema, "required") {
            if !fields.contains_key(name) {
                return Err(format!("{at}/{name} is missing"));
            }
        }
        let members = schema.get("properties").and_then(Value::as_object);
        for (name, value) in fields {
            let place = format!("{at}/{name}");
            match members.and_then(|members| members.get(name)) {
                Some(inner) => self.check(inner, value, &place, depth)?,
                None => match schema.get("additionalProperties") {
                    Some(Value::Bool(false)) => return Err(format!("{place} is not known")),
                    Some(others) => self.check(others, value, &place, depth)?,
                    None => {}
                },
            }
        }
        Ok(())
    }

    fn check_alternatives(
        self,
        schema: &Value,
        value: &Value,
        at: &str,
        depth: usize,
    ) -> Result<(), String> {
        let place = if at.is_empty() { "the answer" } else { at };
        let fits = |schema: &&Value| self.check(schema, value, at, depth).is_ok();
        let list = |name: &str| schema.get(name).and_then(Value::as_array);
        for inner in list("allOf").into_iter().flatten() {
            self.check(inner, value, at, depth)?;
        }
        if list("anyOf").is_some_and(|all| !all.iter().any(|one| fits(&one))) {
            return Err(format!("{place} fits none of the alternatives"));
        }
        if list("oneOf").is_some_and(|all| all.iter().filter(fits).count() != 1) {
            return Err(format!("{place} does not fit exactly one of the alternatives"));
        }
        if schema.get("not").is_some_and(|inner| fits(&inner)) {
            return Err(format!("{place} is what must not be"));
        }
        Ok(())
    }
}

/// The names in a list of a schema.
fn names<'v>(schema: &'v Value, name: &str) -> Vec<&'v str> {
    let list = schema.get(name).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![one.as_str()],
        Some(_) => names(schema, "type"),
        None => Vec::new(),
    }
}

fn is_type(name: &str, value: &Value) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => false,
    }
}

/// The values that a schema lists, with what people read.
fn choices(schema: &Value) -> Vec<(Value, String)> {
    let list = |name: &str| schema.get(name).and_then(Value::as_array).into_iter().flatten();
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let listed = list("enum").map(|value| (value.clone(), plain(value)));
    let described = ["oneOf", "anyOf"].into_iter().flat_map(list).filter_map(|one| {
        let value = one.get("const")?;
        let title = one.get("title").and_then(Value::as_str);
        Some((value.clone(), title.map_or_else(|| plain(value), str::to_owned)))
    });
    listed.chain(described).collect()
}

/// The pair of exactly two choices of which one means yes and the other no.
fn word_pair(choices: &[(Value, String)]) -> Option<(Value, Value)> {
    let [(first, _), (second, _)] = choices else { return None };
    let says = |value: &Value, words: &[&str]| match value {
        Value::String(word) => words.contains(&word.to_lowercase().as_str()),
        Value::Bool(yes) => words.contains(&if *yes { "true" } else { "false" }),
        _ => false,
    };
    if says(first, &YES) && says(second, &NO) {
        return Some((first.clone(), second.clone()));
    }
    (says(second, &YES) && says(first, &NO)).then(|| (second.clone(), first.clone()))
}

#[cfg(test)]
#[path = "response_schema_tests.rs"]
mod tests;
