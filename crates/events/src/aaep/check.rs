//! What one AAEP event alone can break: envelope, fields, words, limits, defaults.
//!
//! Messages of the conversation about events (handshake, replies, the manifest) are not events and pass unread.
//! Extension events are held to the envelope only. Secrets are looked for by shapes that are hardly ever anything
//! else; a clean result is no promise that a text holds none.

use serde_json::{Map, Value};

use super::event::{self, Type};
use crate::check::rules;
use crate::check::shape::{self, Issue, What, quote};
use crate::finding::Finding;

rules! {
    JSON = "AAEP-3.8-R1" Error Producer
        "Every message is one JSON object in UTF-8.",
        "Send plain JSON, one object per message.";
    BIG_NUMBER = "AAEP-3.8-R3" Error Producer
        "Whole numbers outside ±2^53 are sent as strings.",
        "Send the number as a string.";
    CONTEXT = "AAEP-3.2.1-R1" Error Producer
        "Every event has an @context.",
        "Add \"@context\": \"https://aaep-protocol.org/context/v1\".";
    CORE_CONTEXT = "AAEP-3.2.1-R2" Error Producer
        "The core context is the @context, or the first of its list.",
        "Put https://aaep-protocol.org/context/v1 first.";
    TYPE = "AAEP-3.2.2-R1" Error Producer
        "The type is a core type or a published extension type.",
        "Use prefix:name with a prefix that @context declares.";
    CORE_TYPE = "AAEP-3.2.2-R2" Error Producer
        "No aaep: type outside the twelve is emitted.",
        "Use one of the twelve core types, or a prefix of your own.";
    EVENT_ID = "AAEP-3.2.3-R1" Error Producer
        "Every event has an event_id of its own: evt_ and 1 to 64 letters and digits.",
        "Draw a new id for each event, such as evt_ and 32 hex digits.";
    SESSION_ID = "AAEP-3.2.4-R1" Error Producer
        "Every event carries its session's id: sess_ and 1 to 64 letters and digits.",
        "Draw one id per session and put it on each of its events.";
    TIMESTAMP = "AAEP-3.2.5-R1" Error Producer
        "The timestamp is RFC 3339 with 0, 3 or 6 digits of fraction.",
        "Write it like 2026-01-31T12:00:00.000Z.";
    AGENT_ID = "AAEP-3.2.6-R1" Error Producer
        "The producer names its agent in agent_id.",
        "Add \"producer\": {\"agent_id\": …} with a stable, non-empty name.";
    CLOSED = "AAEP-2.2.6-R1" Error Producer
        "Envelope objects have no fields of one's own.",
        "Move the field into extensions.";
    RESERVED = "AAEP-3.5-R1" Error Producer
        "The names aaep_*, @id, @graph, @base and @vocab are reserved at the top level.",
        "Rename the field and move it into extensions.";
    FOREIGN = "AAEP-3.5-R2" Error Producer
        "All data of one's own is inside extensions.",
        "Move the field into extensions, under a prefix that @context declares.";
    DECLARED = "AAEP-3.4.3-R1" Error Producer
        "Every key of extensions is declared through @context.",
        "Make @context a list and add the extension's context.";
    VERSION = "AAEP-3.4.4-R1" Error Producer
        "aaep_version, if present, is a published version.",
        "Write \"1.0.0\", or leave the field out.";
    NEWER = "AAEP-12.6.2-R1" Warning Producer
        "Producers emit what subscribers of their version can consume.",
        "Emit version 1.0 where the subscriber speaks 1.0.";
    FIELDS = "AAEP-3.9-R1" Error Producer
        "Every field has the type, format and values that its event type lists, and required ones are there.",
        "Compare the event with its type's table: banister schema aaep.";
    LIMITS = "AAEP-3.7-R1" Warning Producer
        "Events stay within 32 top-level fields and 8 levels of nesting, strings within 16 KiB.",
        "Send less, or refer to it by URI.";
    ERRORED_URGENCY = "AAEP-4.1.3-R2" Error Producer
        "session.errored has urgency critical.",
        "Add \"urgency\": \"critical\".";
    CONFIRMATION_URGENCY = "AAEP-4.4.1-R5" Error Producer
        "awaiting.confirmation has urgency critical.",
        "Add \"urgency\": \"critical\".";
    CLARIFICATION_URGENCY = "AAEP-4.4.2-R2" Error Producer
        "awaiting.clarification has urgency critical.",
        "Add \"urgency\": \"critical\".";
    HANDOFF_URGENCY = "AAEP-4.4.3-R1" Error Producer
        "handoff.requested has urgency critical.",
        "Add \"urgency\": \"critical\".";
    DEFAULT_HIGH = "AAEP-4.4.1-R4" Error Producer
        "An irreversible action of high risk is rejected by default.",
        "Set default_decision to reject.";
    DEFAULT_MEDIUM = "AAEP-6.4.1-R2" Error Producer
        "An irreversible action of medium risk is rejected by default.",
        "Set default_decision to reject.";
    DEFAULT_IRREVERSIBLE = "AAEP-6.4.1-R3" Warning Producer
        "An irreversible action of low or unknown risk should be rejected by default.",
        "Set default_decision to reject.";
    DEFAULT_REVERSIBLE = "AAEP-6.4.1-R4" Warning Producer
        "A reversible action of high risk should be rejected by default.",
        "Set default_decision to reject.";
    SECRET = "AAEP-10.T5-R1" Error Producer
        "No secret is in a field that people hear or read.",
        "Redact the secret before the event is written, and revoke it.";
    LANGUAGE = "AAEP-11.1-R1" Warning Producer
        "An event with text for people declares its language.",
        "Add \"localization_hints\": {\"primary_language\": \"en-US\"}.";
    LANGUAGE_TAG = "AAEP-11.1.2-R1" Error Producer
        "Languages are BCP 47 tags.",
        "Write tags such as en, en-US or zh-Hant.";
}

/// Everything wrong with one message, seen alone.
pub fn event(message: &Value) -> Vec<Finding> {
    let Some(object) = message.as_object() else {
        return vec![
            JSON.at("", format!("an event is an object, this is {}", shape::given(message))),
        ];
    };
    let kind_name = object.get("type").and_then(Value::as_str).unwrap_or_default();
    if event::is_control(kind_name) {
        return Vec::new();
    }
    let kind = Type::parse(kind_name);
    let shape = kind.map_or(&event::EXTENSION, Type::shape);
    let issues = shape::compare(shape, object);
    let mut findings: Vec<Finding> =
        issues.into_iter().filter_map(|issue| finding(issue, object)).collect();
    findings.extend(context(object));
    findings.extend(type_name(kind_name, object));
    findings.extend(undeclared(object));
    findings.extend(version(object));
    findings.extend(kind.and_then(|kind| urgency(kind, object)));
    if kind == Some(Type::AwaitingConfirmation) {
        findings.extend(default_decision(object));
    }
    if kind == Some(Type::ProgressUpdated) {
        findings.extend(empty_progress(object));
    }
    findings.extend(language(object));
    findings.extend(secret(object));
    limits(object, &mut findings);
    findings
}

/// Gives what does not fit a type's table the code of the rule that says so.
fn finding(issue: Issue, object: &Map<String, Value>) -> Option<Finding> {
    let Issue { what, pointer, message } = issue;
    let top_level = pointer.matches('/').count() == 1;
    let rule = match (what, pointer.as_str()) {
        // An @context of null is no context; any other form is judged by itself.
        (_, "/@context") => &CONTEXT,
        (_, "/type") => &TYPE,
        (_, "/event_id") => &EVENT_ID,
        (_, "/session_id") => &SESSION_ID,
        (_, "/timestamp") => &TIMESTAMP,
        (_, "/producer" | "/producer/agent_id") => &AGENT_ID,
        (_, "/aaep_version") => &VERSION,
        (What::Foreign, name) if top_level => {
            let name = name.trim_start_matches('/');
            if is_localized(name, object) {
                return None;
            }
            let reserved = matches!(name, "@id" | "@graph" | "@base" | "@vocab");
            if reserved || name.starts_with("aaep_") { &RESERVED } else { &FOREIGN }
        }
        (What::Foreign, pointer)
            if pointer.starts_with("/producer/") || pointer.starts_with("/localization_hints/") =>
        {
            &CLOSED
        }
        (What::Value, pointer) if names_language(pointer) => &LANGUAGE_TAG,
        _ => &FIELDS,
    };
    Some(rule.at(pointer, message))
}

fn names_language(pointer: &str) -> bool {
    const IN_HINTS: [&str; 3] = ["primary_language", "available_languages/", "fallback_chain/"];
    pointer == "/language"
        || pointer
            .strip_prefix("/localization_hints/")
            .is_some_and(|hint| IN_HINTS.iter().any(|name| hint.starts_with(name)))
}

/// Whether a field is a text field with a language after it, as in `summary_normal_yo` (§11.5.1).
fn is_localized(name: &str, object: &Map<String, Value>) -> bool {
    event::HUMAN_TEXT.iter().any(|field| {
        name.strip_prefix(field)
            .and_then(|rest| rest.strip_prefix('_'))
            .is_some_and(|tag| tag.len() >= 2 && event::is_language(&tag.replace('_', "-")))
    }) && object.get(name).is_some_and(Value::is_string)
}

fn context(object: &Map<String, Value>) -> Option<Finding> {
    let context = object.get("@context")?;
    let first = match context {
        Value::Array(list) => list.first().unwrap_or(&Value::Null),
        other => other,
    };
    if first.as_str() != Some(event::CONTEXT) {
        return Some(CORE_CONTEXT.at("/@context", "the core context does not come first"));
    }
    let is_uri = |entry: &Value| entry.as_str().is_some_and(|text| text.contains(':'));
    (!context.as_array().is_none_or(|list| list.iter().all(is_uri)))
        .then(|| CORE_CONTEXT.at("/@context", "every entry of the list has to be a URI"))
}

/// Whether `@context` names anything beside the core.
fn declares_extensions(object: &Map<String, Value>) -> bool {
    object.get("@context").and_then(Value::as_array).is_some_and(|list| list.len() > 1)
}

fn type_name(name: &str, object: &Map<String, Value>) -> Option<Finding> {
    if name.is_empty() || Type::parse(name).is_some() {
        return None;
    }
    if event::core_name(name).is_some() {
        return Some(
            CORE_TYPE.at("/type", format!("{} is none of the twelve core types", quote(name))),
        );
    }
    if !name.split_once(':').is_some_and(|(prefix, rest)| !prefix.is_empty() && !rest.is_empty()) {
        return Some(TYPE.at("/type", format!("{} has no prefix", quote(name))));
    }
    (!declares_extensions(object))
        .then(|| TYPE.at("/type", format!("no context declares the prefix of {}", quote(name))))
}

fn undeclared(object: &Map<String, Value>) -> Option<Finding> {
    let (key, _) = object.get("extensions")?.as_object()?.iter().next()?;
    (!declares_extensions(object)).then(|| {
        let message = format!("no context declares the extension {}", quote(key));
        DECLARED.at(format!("/extensions{}", shape::pointer(key)), message)
    })
}

fn version(object: &Map<String, Value>) -> Option<Finding> {
    let version = object.get("aaep_version")?.as_str()?;
    let mut parts = version.split(['.', '-']).map_while(|part| part.parse::<u64>().ok());
    let (major, minor) = (parts.next()?, parts.next()?);
    if major != 1 {
        return Some(VERSION.at("/aaep_version", format!("{} is no version 1.x", quote(version))));
    }
    (minor > 0).then(|| NEWER.at("/aaep_version", format!("{} is newer than 1.0", quote(version))))
}

fn urgency(kind: Type, object: &Map<String, Value>) -> Option<Finding> {
    let rule = match kind {
        Type::SessionErrored => &ERRORED_URGENCY,
        Type::AwaitingConfirmation => &CONFIRMATION_URGENCY,
        Type::AwaitingClarification => &CLARIFICATION_URGENCY,
        Type::HandoffRequested => &HANDOFF_URGENCY,
        _ => return None,
    };
    match object.get("urgency").and_then(Value::as_str) {
        Some("critical") => None,
        Some(other) if event::URGENCIES.contains(&other) => {
            Some(rule.at("/urgency", format!("the urgency is {other}, not critical")))
        }
        // A word outside the set was already found by the table.
        Some(_) => None,
        None => Some(rule.at("/urgency", "the urgency is missing, which means normal")),
    }
}

/// Whether the message says that what it is about cannot be undone, in either of the two ways (§4.4.1, §6.4.1).
pub(super) fn is_irreversible(object: &Map<String, Value>) -> bool {
    object.get("irreversible") == Some(&Value::Bool(true))
        || object.get("reversibility").and_then(Value::as_str) == Some("irreversible")
}

fn default_decision(object: &Map<String, Value>) -> Option<Finding> {
    if object.get("default_decision").and_then(Value::as_str) != Some("accept") {
        return None;
    }
    let risk = object.get("risk_level").and_then(Value::as_str);
    let (rule, about) = match (is_irreversible(object), risk) {
        (true, Some("high")) => (&DEFAULT_HIGH, "an irreversible action of high risk"),
        (true, Some("medium")) => (&DEFAULT_MEDIUM, "an irreversible action of medium risk"),
        (true, _) => (&DEFAULT_IRREVERSIBLE, "an irreversible action"),
        (false, Some("high")) => (&DEFAULT_REVERSIBLE, "an action of high risk"),
        (false, _) => return None,
    };
    Some(rule.at("/default_decision", format!("{about} is accepted when nobody answers")))
}

fn empty_progress(object: &Map<String, Value>) -> Option<Finding> {
    let progress = object.get("progress")?.as_object()?;
    let step = progress.get("step").and_then(Value::as_u64);
    let total = progress.get("total_steps").and_then(Value::as_u64);
    if progress.is_empty() {
        return Some(
            FIELDS.at(
                "/progress",
                "at least one of percent, step, total_steps, description is needed",
            ),
        );
    }
    (step? > total?).then(|| FIELDS.at("/progress/step", "the step is beyond total_steps"))
}

fn texts(object: &Map<String, Value>) -> impl Iterator<Item = (&'static str, &str)> {
    event::HUMAN_TEXT
        .iter()
        .filter_map(|name| object.get(*name).and_then(Value::as_str).map(|text| (*name, text)))
}

fn language(object: &Map<String, Value>) -> Option<Finding> {
    let declared = object.get("localization_hints").and_then(|hints| hints.get("primary_language"));
    if declared.is_some() {
        return None;
    }
    let (name, _) = texts(object).find(|(_, text)| !text.is_empty())?;
    Some(LANGUAGE.at("/localization_hints", format!("\"{name}\" is text in no declared language")))
}

fn secret(object: &Map<String, Value>) -> Option<Finding> {
    let (name, kind) =
        texts(object).find_map(|(name, text)| looks_secret(text).map(|kind| (name, kind)))?;
    Some(SECRET.at(format!("/{name}"), format!("the text contains what looks like {kind}")))
}

/// What kind of secret a text contains, judged by prefixes that credentials announce themselves with.
fn looks_secret(text: &str) -> Option<&'static str> {
    const MARKS: [(&str, usize, &str); 8] = [
        ("sk-", 32, "an API key"),
        ("ghp_", 36, "a GitHub token"),
        ("github_pat_", 40, "a GitHub token"),
        ("xoxb-", 20, "a Slack token"),
        ("glpat-", 20, "a GitLab token"),
        ("AKIA", 16, "an AWS access key"),
        ("AIza", 35, "a Google API key"),
        ("eyJhbGciOi", 30, "a signed token"),
    ];
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let marked = MARKS.iter().find(|(mark, length, _)| {
        text.match_indices(mark).any(|(at, _)| {
            let starts = text
                .as_bytes()
                .get(..at)
                .and_then(<[u8]>::last)
                .is_none_or(|byte| !is_letter(*byte));
            let tail = text.as_bytes().iter().skip(at + mark.len());
            starts && tail.take_while(|byte| is_letter(**byte)).count() >= *length
        })
    });
    let key = text.contains("-----BEGIN ") && text.contains("PRIVATE KEY-----");
    marked.map(|(_, _, kind)| *kind).or(key.then_some("a private key"))
}

fn limits(object: &Map<String, Value>, findings: &mut Vec<Finding>) {
    const FIELDS_MAX: usize = 32;
    if object.len() > FIELDS_MAX {
        findings.push(
            LIMITS.at("", format!("{} top-level fields, more than {FIELDS_MAX}", object.len())),
        );
    }
    for (key, value) in object {
        let mut walk = Walk::default();
        walk.value(value, 1);
        if walk.big_number {
            findings.push(BIG_NUMBER.at(shape::pointer(key), "a number is outside ±2^53"));
        }
        if walk.too_deep {
            findings.push(LIMITS.at(shape::pointer(key), "nested more than 8 levels deep"));
        }
        // The table of the event's type may have said so already.
        let told = |found: &Finding| found.pointer == shape::pointer(key);
        if walk.long_string && !findings.iter().any(told) {
            findings.push(LIMITS.at(shape::pointer(key), "a string is longer than 16 KiB"));
        }
    }
}

#[derive(Default)]
struct Walk {
    big_number: bool,
    too_deep: bool,
    long_string: bool,
}

impl Walk {
    fn value(&mut self, value: &Value, depth: usize) {
        const DEEPEST: usize = 8;
        const LONGEST: usize = 16 * 1024;
        const LARGEST: u64 = 1 << 53;
        self.too_deep |= depth > DEEPEST && (value.is_array() || value.is_object());
        match value {
            Value::Number(number) if !number.is_f64() => {
                let size =
                    number.as_i64().map_or_else(|| number.as_u64().unwrap_or(0), i64::unsigned_abs);
                self.big_number |= size > LARGEST;
            }
            // Counted in characters, as the limits of single fields are.
            Value::String(text) => {
                self.long_string |= text.len() > LONGEST && text.chars().count() > LONGEST;
            }
            Value::Array(values) => values.iter().for_each(|value| self.value(value, depth + 1)),
            Value::Object(object) => object.values().for_each(|value| self.value(value, depth + 1)),
            _ => {}
        }
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
