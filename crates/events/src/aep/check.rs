//! What one AEP message alone can break: the core five, fields by type, words, null, extensions, hook responses.
//!
//! Limits on lengths are consumers' own and not checked. Unknown event types and display styles are legal.

use serde_json::{Map, Value};

use super::event::{self, Type};
use crate::check::rules;
use crate::check::shape::{self, Issue, What, quote};
use crate::finding::{Finding, Rule};

rules! {
    JSON = "AEP-REQ-01" Error Both
        "Every message is one JSON object.",
        "Send one flat JSON object, without a wrapper.";
    VERSION = "AEP-REQ-02" Error Both
        "aep_version is \"0.1\".",
        "Add \"aep_version\": \"0.1\".";
    NEWER = "AEP-REQ-03" Warning Both
        "A newer draft may bring what a reader of 0.1 does not know.",
        "Emit 0.1 where the reader speaks 0.1.";
    ID = "AEP-REQ-04" Error Both
        "Every message has an id.",
        "Add a non-empty string \"id\", unique and never used again.";
    TYPE = "AEP-REQ-05" Error Producer
        "Every event has a type.",
        "Add one of the 21 types; a message without type needs \"control\".";
    UNKNOWN_TYPE = "AEP-REQ-06" Note Producer
        "The type is one of the 21 canonical types.",
        "Use the canonical spelling where there is one.";
    TIME = "AEP-REQ-07" Error Both
        "The time is RFC 3339 with an offset.",
        "Write it like 2026-01-31T12:00:00.000Z.";
    AGENT = "AEP-REQ-08" Error Producer
        "Every event names its agent in agent.slug.",
        "Add \"agent\": {\"slug\": …} with a short vendor word.";
    ACTION = "AEP-REQ-09" Error Producer
        "An action event has action.type and action.id.",
        "Add both; the id joins request, answer and end.";
    TOOL = "AEP-REQ-10" Error Producer
        "A tool call names its tool.",
        "Add \"tool\": {\"type\": …, \"name\": …}.";
    SKILL = "AEP-REQ-11" Error Producer
        "The use of a skill names the skill.",
        "Add \"skill\": {\"name\": …}.";
    SERVER = "AEP-REQ-12" Error Producer
        "A tool of type mcp names its server.",
        "Add \"server\": {\"name\": …}.";
    STATUS = "AEP-REQ-13" Error Producer
        "action.completed has status success; action.failed has failure, timeout or cancelled.",
        "Set action.status, or use the other type.";
    DENIED = "AEP-REQ-14" Error Producer
        "action.denied has decision.outcome denied.",
        "Add \"decision\": {\"outcome\": \"denied\"}.";
    CONTENT = "AEP-REQ-15" Error Producer
        "Events about text carry content of their type.",
        "Add a content entry with the type and the text.";
    SUBAGENT = "AEP-REQ-16" Error Producer
        "A subagent event tells which subagent: session.parent or an identity.",
        "Add session.parent with conversation_id and relation.";
    WORKSPACE = "AEP-REQ-17" Error Producer
        "workspace.changed carries the workspace.",
        "Add \"workspace\": {\"cwd\": …}.";
    WORD = "AEP-REQ-18" Error Both
        "Closed sets of words are kept to.",
        "Use one of the listed words.";
    MALFORMED = "AEP-REQ-19" Error Both
        "Known fields have their type.",
        "Send the type that the field's table names; objects are never strings.";
    NULL = "AEP-REQ-20" Error Both
        "Unknown values are left out, never null, except inside input, output, schema and extensions.",
        "Leave the field out.";
    EXTENSION = "AEP-REQ-21" Error Both
        "Keys of extensions are x- and lower-case letters, digits, dots, dashes or underscores.",
        "Name the extension like x-acme.";
    UNKNOWN_FIELD = "AEP-REQ-22" Warning Both
        "Fields of one's own are inside extensions.",
        "Move the field into extensions, under x-…";
    BEHAVIOR = "AEP-REQ-23" Error Subscriber
        "A hook response has one of the eight behaviours.",
        "Set control.behavior to allow, deny, ask, defer, block, continue, stop or abstain.";
    REQUEST = "AEP-REQ-24" Error Subscriber
        "A hook response names the event it answers.",
        "Add request_event_id.";
    UPDATED_INPUT = "AEP-REQ-25" Warning Subscriber
        "updated_input goes with allow only.",
        "Allow with the updated input, or leave it out.";
    MISSING = "AEP-REQ-26" Error Both
        "Objects have the fields that make them what they are.",
        "Add the field, or leave the whole object out.";
}

/// Everything wrong with one message, seen alone.
pub fn event(message: &Value) -> Vec<Finding> {
    let Some(object) = message.as_object() else {
        return vec![
            JSON.at("", format!("a message is an object, this is {}", shape::given(message))),
        ];
    };
    let response = event::is_response(object);
    let shape = if response { &event::RESPONSE } else { &event::EVENT };
    let issues = shape::compare(shape, object);
    let mut findings: Vec<Finding> =
        issues.into_iter().map(|issue| finding(issue, response)).collect();
    findings.extend(version(object));
    findings.extend(extension_keys(object));
    if response {
        findings.extend(updated_input(object));
        return findings;
    }
    let name = object.get("type").and_then(Value::as_str).unwrap_or_default();
    let Some(kind) = Type::parse(name) else {
        findings.extend(unknown_type(name));
        return findings;
    };
    if kind.is_action() {
        action(kind, object, &mut findings);
    }
    findings.extend(content(kind, object));
    findings.extend(subagent(kind, object));
    if kind == Type::WorkspaceChanged && !object.contains_key("workspace") {
        findings.push(WORKSPACE.at("/workspace", "the workspace is missing"));
    }
    findings
}

fn finding(issue: Issue, response: bool) -> Finding {
    let Issue { what, pointer, message } = issue;
    let rule: &'static Rule = match (what, pointer.as_str()) {
        (What::Null, _) => &NULL,
        (What::Foreign, _) => &UNKNOWN_FIELD,
        (_, "/aep_version") => &VERSION,
        (_, "/id") => &ID,
        (_, "/type") => &TYPE,
        (_, "/time") => &TIME,
        (_, "/agent" | "/agent/slug") => &AGENT,
        (_, "/request_event_id") => &REQUEST,
        (_, "/control" | "/control/behavior") => &BEHAVIOR,
        (What::Missing, "/action/type" | "/action/id") => &ACTION,
        (What::Missing, "/tool/type" | "/tool/name") if !response => &TOOL,
        (What::Missing, "/skill/name") => &SKILL,
        (What::Missing, _) => &MISSING,
        (What::Word | What::Member, _) => &WORD,
        (What::Type | What::Value, _) => &MALFORMED,
    };
    rule.at(pointer, message)
}

fn version(object: &Map<String, Value>) -> Option<Finding> {
    let version = object.get("aep_version")?.as_str()?;
    if version == event::VERSION || version.is_empty() {
        return None;
    }
    let minor =
        version.strip_prefix("0.").and_then(|rest| rest.split('.').next()?.parse::<u32>().ok());
    Some(match minor {
        Some(minor) if minor > 1 => {
            NEWER.at("/aep_version", format!("{} is newer than 0.1", quote(version)))
        }
        _ => VERSION.at("/aep_version", format!("{} is not 0.1", quote(version))),
    })
}

fn extension_keys(object: &Map<String, Value>) -> Option<Finding> {
    let fits = |key: &str| {
        key.strip_prefix("x-").is_some_and(|rest| {
            rest.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit())
                && rest.bytes().all(|byte| {
                    byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte)
                })
        })
    };
    let key = object.get("extensions")?.as_object()?.keys().find(|key| !fits(key))?;
    Some(EXTENSION.at(
        format!("/extensions{}", shape::pointer(key)),
        format!("{} is no extension key", quote(key)),
    ))
}

fn unknown_type(name: &str) -> Option<Finding> {
    let message = match Type::from_alias(name) {
        _ if name.is_empty() => return None,
        Some(kind) => format!("{} is spelled {}", quote(name), kind.name()),
        None => format!("{} is none of the 21 types", quote(name)),
    };
    Some(UNKNOWN_TYPE.at("/type", message))
}

fn updated_input(object: &Map<String, Value>) -> Option<Finding> {
    let control = object.get("control")?;
    control.get("updated_input")?;
    let behavior = control.get("behavior")?.as_str()?;
    (behavior != "allow").then(|| {
        UPDATED_INPUT
            .at("/control/updated_input", format!("{} cannot change the input", quote(behavior)))
    })
}

fn action(kind: Type, object: &Map<String, Value>, findings: &mut Vec<Finding>) {
    let Some(action) = object.get("action") else {
        findings.push(ACTION.at("/action", "the action is missing"));
        return;
    };
    let word =
        |value: &'_ Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let tool = object.get("tool");
    match word(action, "type").as_deref() {
        Some("tool_call") if tool.is_none() => {
            findings.push(TOOL.at("/tool", "the tool is missing"));
        }
        Some("skill_use") if !object.contains_key("skill") => {
            findings.push(SKILL.at("/skill", "the skill is missing"));
        }
        _ => {}
    }
    if tool.and_then(|tool| word(tool, "type")).as_deref() == Some("mcp")
        && !object.contains_key("server")
    {
        findings.push(SERVER.at("/server", "the server is missing"));
    }
    let status = word(action, "status");
    let fitting: &[&str] = match kind {
        Type::ActionCompleted => &["success"],
        Type::ActionFailed => &["failure", "timeout", "cancelled"],
        _ => &[],
    };
    match status.as_deref() {
        // A word outside the set was already found by the table.
        Some(status) if !["success", "failure", "timeout", "cancelled"].contains(&status) => {}
        Some(status) if !fitting.is_empty() && !fitting.contains(&status) => {
            findings.push(
                STATUS.at("/action/status", format!("{status} does not go with {}", kind.name())),
            );
        }
        None if !fitting.is_empty() => {
            findings.push(STATUS.at("/action/status", "the status is missing"));
        }
        _ => {}
    }
    if kind == Type::ActionDenied {
        let outcome = object.get("decision").and_then(|decision| word(decision, "outcome"));
        if outcome.as_deref() != Some("denied") {
            findings.push(DENIED.at("/decision/outcome", "the outcome is not denied"));
        }
    }
}

fn content(kind: Type, object: &Map<String, Value>) -> Option<Finding> {
    let wanted = kind.content();
    let entries = object.get("content").and_then(Value::as_array);
    let is_wanted = |entry: &Value| {
        entry.get("type").and_then(Value::as_str).is_some_and(|word| wanted.contains(&word))
    };
    let found = wanted.is_empty() || entries.is_some_and(|entries| entries.iter().any(is_wanted));
    (!found).then(|| CONTENT.at("/content", format!("no entry of type {}", wanted.join(" or "))))
}

/// What can tell one subagent from another.
const IDENTITIES: [&str; 5] = [
    "/session/parent",
    "/session/conversation_id",
    "/agent/instance_id",
    "/action/id",
    "/extensions",
];

fn subagent(kind: Type, object: &Map<String, Value>) -> Option<Finding> {
    if !matches!(kind, Type::SubagentStart | Type::SubagentStop) {
        return None;
    }
    let known = IDENTITIES.iter().any(|pointer| {
        let mut steps = pointer.split('/').skip(1);
        let first = steps.next().and_then(|name| object.get(name));
        steps.try_fold(first, |value, step| Some(value?.get(step))).flatten().is_some()
    });
    (!known).then(|| SUBAGENT.at("/session/parent", "nothing tells which subagent it is"))
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
