//! What one AEP message alone can break: the core five, fields by type, words, null, extensions, hook responses.
//!
//! What the protocol promises to extend is never an error: event types, kinds of action, display styles, and the words
//! and fields of a newer draft. Lengths are limits of known consumers, not of the protocol, and checked on request.

use super::event::{self, Type};
use super::show::Style;
use crate::check::rules;
use crate::check::shape::{self, Issue, Known, What, quote, says, text};
use crate::finding::{Finding, Rule};
use crate::json::{Document, View};

mod limits;
mod parts;

pub(super) use parts::Parts;

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
        "Keys of extensions begin with x-.",
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
    DUPLICATE = "AEP-REQ-27" Warning Both
        "No object has the same key twice.",
        "Send each key once; readers disagree on which one counts.";
    EARLY_STATUS = "AEP-REQ-28" Warning Producer
        "action.status comes with the end of an action.",
        "Leave it out of action.requested and action.denied.";
    OUTCOME = "AEP-REQ-29" Warning Subscriber
        "decision.outcome says what control.behavior does.",
        "Go with approved for allow and continue, denied for deny, block and stop, info for the others.";
    ADDRESS = "AEP-REQ-30" Warning Producer
        "URLs, data URIs and mail addresses look like it.",
        "Write a URL with its scheme, a data URI with data:, a mail address as name@host.";
    ERROR = "AEP-REQ-31" Note Producer
        "agent.error says what went wrong.",
        "Add lifecycle.reason or content.";
    STYLE = "AEP-REQ-32" Note Producer
        "A style is one of the twelve.",
        "Use one of them; any other is shown as plain text.";
    CUSTOM = "AEP-REQ-33" Note Producer
        "A tool of no known kind has type other.",
        "Write other instead of custom.";
    LIMIT = "AEP-REQ-34" Note (opt_in) Both
        "Messages stay within the limits of known consumers.",
        "Shorten it; of an id, send a hash and keep the id itself in extensions.";
    EXTENSION_NAME = "AEP-REQ-35" Warning Both
        "Keys of extensions are x- and lower-case letters, digits, dots, dashes or underscores.",
        "Name the extension like x-acme; not every reader takes other spellings.";
    UNKNOWN_ACTION = "AEP-REQ-36" Note Producer
        "action.type is one of the four kinds.",
        "Use other where a reader of 0.1 has to know the kind.";
}

/// Everything wrong with one message, seen alone.
pub(crate) fn event(message: &Document<'_>, strict: bool, known: &mut Known) -> Vec<Finding> {
    let object = message.root();
    if !object.is_object() {
        return vec![
            JSON.at("", format!("a message is an object, this is {}", shape::given(object))),
        ];
    }
    let parts = Parts::of(object);
    let response = parts.is_response();
    let shape = if response { &event::RESPONSE } else { &event::EVENT };
    let issues = shape::compare(shape, object, known);
    let mut findings: Vec<Finding> =
        issues.into_iter().map(|issue| finding(issue, response)).collect();
    version(&parts, &mut findings);
    findings.extend(duplicate(message));
    if let Some(extensions) = parts.extensions {
        extension_keys(extensions, &mut findings);
    }
    if strict {
        limits::check(message, &mut findings);
    }
    if response {
        findings.extend(updated_input(&parts));
        findings.extend(outcome(&parts));
    } else {
        addresses(&parts, &mut findings);
        styles(&parts, &mut findings);
        if parts.tool.is_some_and(|tool| says(tool, "type", "custom")) {
            findings.push(CUSTOM.at("/tool/type", "custom is written other"));
        }
        typed(&parts, &mut findings);
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
        (What::Word, "/action/type") => &UNKNOWN_ACTION,
        (What::Word | What::Member, _) => &WORD,
        (What::Type | What::Value, _) => &MALFORMED,
    };
    rule.at(pointer, message)
}

/// Says what is wrong with the version. What a newer draft may have added is then no finding.
fn version(parts: &Parts<'_>, findings: &mut Vec<Finding>) {
    let Some(version) = parts.aep_version.and_then(View::as_str) else {
        return;
    };
    let version = &*version;
    if version == event::VERSION || version.is_empty() {
        return;
    }
    let minor =
        version.strip_prefix("0.").and_then(|rest| rest.split('.').next()?.parse::<u32>().ok());
    if minor.is_none_or(|minor| minor <= 1) {
        findings.push(VERSION.at("/aep_version", format!("{} is not 0.1", quote(version))));
        return;
    }
    let added = [&WORD, &UNKNOWN_FIELD, &UNKNOWN_ACTION];
    findings.retain(|finding| !added.iter().any(|rule| rule.code == finding.rule.code));
    findings.push(NEWER.at("/aep_version", format!("{} is newer than 0.1", quote(version))));
}

fn duplicate(message: &Document<'_>) -> Option<Finding> {
    let name = message.duplicate()?;
    let place = pointer_to(message.root(), name);
    Some(DUPLICATE.at(place, "the key stands twice in its object"))
}

/// The pointer to an object's name: only the values around it are walked into.
fn pointer_to(root: View<'_>, wanted: View<'_>) -> String {
    let wanted = wanted.span();
    let mut pointer = String::new();
    let mut view = root;
    loop {
        let holds = |value: &View<'_>| {
            let span = value.span();
            span.start <= wanted.start && wanted.end <= span.end
        };
        if view.is_array() {
            let Some((index, item)) = view.items().enumerate().find(|(_, item)| holds(item)) else {
                return pointer;
            };
            pointer.push_str(&shape::pointer(&index.to_string()));
            view = item;
            continue;
        }
        let inner = view.entries().find(|(name, value)| name.span() == wanted || holds(value));
        let Some((name, value)) = inner else {
            return pointer;
        };
        pointer.push_str(&shape::pointer(&name.as_str().unwrap_or_default()));
        if name.span() == wanted {
            return pointer;
        }
        view = value;
    }
}

/// Tells of the first key without the prefix, and of the first that has it but another spelling.
fn extension_keys(extensions: View<'_>, findings: &mut Vec<Finding>) {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let fits = |key: &str| {
        key.strip_prefix("x-").is_some_and(|rest| {
            rest.bytes().next().is_some_and(plain)
                && rest.bytes().all(|byte| plain(byte) || b"._-".contains(&byte))
        })
    };
    // Some readers take the prefix in either case.
    let prefixed = |key: &str| key.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("x-"));
    let mut told = [false; 2];
    for (name, _) in extensions.entries() {
        let Some(key) = name.as_str().filter(|key| !fits(key)) else {
            continue;
        };
        let [without, misspelled] = &mut told;
        let (rule, told) =
            if prefixed(&key) { (&EXTENSION_NAME, misspelled) } else { (&EXTENSION, without) };
        if !std::mem::replace(told, true) {
            findings.push(rule.at(
                format!("/extensions{}", shape::pointer(&key)),
                format!("{} is no extension key", quote(&key)),
            ));
        }
    }
}

/// Fields that hold an address, and how it looks.
struct Look {
    fields: &'static [&'static str],
    looks: &'static str,
    fits: fn(&str) -> bool,
}

const LOOKS: [Look; 3] = [
    Look {
        fields: &["url", "thumbnail_url", "repository_url", "website_url"],
        looks: "a URL",
        fits: is_url,
    },
    Look { fields: &["data_uri", "thumbnail_data_uri"], looks: "a data URI", fits: is_data_uri },
    Look { fields: &["email"], looks: "a mail address", fits: is_mail_address },
];

fn addresses(parts: &Parts<'_>, findings: &mut Vec<Finding>) {
    let mut look_at = |object: View<'_>, place: &dyn Fn() -> String| {
        for (name, value) in object.entries() {
            let look = LOOKS.iter().find(|look| look.fields.iter().any(|field| name.is(field)));
            let (Some(look), Some(text)) = (look, value.as_str()) else {
                continue;
            };
            if !(look.fits)(&text) {
                let place =
                    format!("{}{}", place(), shape::pointer(&name.as_str().unwrap_or_default()));
                findings.push(ADDRESS.at(place, format!("{} is not {}", quote(&text), look.looks)));
            }
        }
    };
    if let Some(user) = parts.user {
        look_at(user, &|| "/user".to_owned());
    }
    if let Some(server) = parts.server {
        look_at(server, &|| "/server".to_owned());
    }
    for (index, attachment) in parts.attachments.into_iter().flat_map(View::items).enumerate() {
        look_at(attachment, &|| format!("/attachments/{index}"));
    }
}

fn is_url(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte))
    }) && !text.contains(char::is_whitespace)
}

fn is_data_uri(text: &str) -> bool {
    text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("data:"))
}

fn is_mail_address(text: &str) -> bool {
    // The name may have an @ in quotes; the host has none.
    text.rsplit_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty())
}

fn styles(parts: &Parts<'_>, findings: &mut Vec<Finding>) {
    for (index, entry) in parts.content.into_iter().flat_map(View::items).enumerate() {
        if let Some(style) = text(entry, "style")
            && Style::parse(&style).is_none()
        {
            let message = format!("{} is no known style", quote(&style));
            findings.push(STYLE.at(format!("/content/{index}/style"), message));
        }
    }
}

fn updated_input(parts: &Parts<'_>) -> Option<Finding> {
    let control = parts.control?;
    if control.get("updated_input")?.is_null() {
        return Some(NULL.at("/control/updated_input", "null is not allowed here"));
    }
    let behavior = text(control, "behavior")?;
    (behavior != "allow").then(|| {
        UPDATED_INPUT
            .at("/control/updated_input", format!("{} cannot change the input", quote(&behavior)))
    })
}

fn outcome(parts: &Parts<'_>) -> Option<Finding> {
    let behavior = text(parts.control?, "behavior")?;
    let outcome = text(parts.decision?, "outcome")?;
    let contradicts = matches!(
        (&*behavior, &*outcome),
        ("allow" | "continue", "denied")
            | ("deny" | "block" | "stop", "approved")
            | ("ask" | "defer" | "abstain", "approved" | "denied")
    );
    contradicts
        .then(|| OUTCOME.at("/decision/outcome", format!("{behavior} does not mean {outcome}")))
}

/// What the type of an event demands of its other fields.
fn typed(parts: &Parts<'_>, findings: &mut Vec<Finding>) {
    let name = parts.kind.and_then(View::as_str).unwrap_or_default();
    let kind = Type::parse(&name).or_else(|| {
        findings.extend(unknown_type(&name));
        // Another spelling demands what the canonical one does.
        Type::from_alias(&name)
    });
    let Some(kind) = kind else { return };
    if kind.is_action() {
        action(kind, parts, findings);
    }
    findings.extend(content(kind, parts));
    match kind {
        Type::SubagentStart | Type::SubagentStop => findings.extend(subagent(parts)),
        Type::AgentError => findings.extend(error(parts)),
        Type::WorkspaceChanged if !says_something(parts.workspace) => {
            findings.push(WORKSPACE.at("/workspace", "the workspace is missing, or empty"));
        }
        _ => {}
    }
}

fn unknown_type(name: &str) -> Option<Finding> {
    let message = match Type::from_alias(name) {
        _ if name.is_empty() => return None,
        Some(kind) => format!("{} is spelled {}", quote(name), kind.name()),
        None => format!("{} is none of the 21 types", quote(name)),
    };
    Some(UNKNOWN_TYPE.at("/type", message))
}

fn action(kind: Type, parts: &Parts<'_>, findings: &mut Vec<Finding>) {
    let Some(action) = parts.action else {
        findings.push(ACTION.at("/action", "the action is missing"));
        return;
    };
    match text(action, "type").as_deref() {
        Some("tool_call") if parts.tool.is_none() => {
            findings.push(TOOL.at("/tool", "the tool is missing"));
        }
        Some("skill_use") if parts.skill.is_none() => {
            findings.push(SKILL.at("/skill", "the skill is missing"));
        }
        _ => {}
    }
    if !says_something(parts.server) && parts.tool.is_some_and(|tool| says(tool, "type", "mcp")) {
        findings.push(SERVER.at("/server", "the server is missing, or empty"));
    }
    findings.extend(status(kind, action));
    if kind == Type::ActionDenied
        && !parts.decision.is_some_and(|decision| says(decision, "outcome", "denied"))
    {
        findings.push(DENIED.at("/decision/outcome", "the outcome is not denied"));
    }
}

fn status(kind: Type, action: View<'_>) -> Option<Finding> {
    let fitting: &[&str] = match kind {
        Type::ActionCompleted => &["success"],
        Type::ActionFailed => &["failure", "timeout", "cancelled"],
        _ => &[],
    };
    let Some(status) = text(action, "status") else {
        return (!fitting.is_empty()).then(|| STATUS.at("/action/status", "the status is missing"));
    };
    // A word outside the set was already found by the table.
    let known = matches!(&*status, "success" | "failure" | "timeout" | "cancelled");
    if !known || fitting.contains(&&*status) {
        return None;
    }
    let rule = if fitting.is_empty() { &EARLY_STATUS } else { &STATUS };
    Some(rule.at("/action/status", format!("{status} does not go with {}", kind.name())))
}

fn content(kind: Type, parts: &Parts<'_>) -> Option<Finding> {
    let wanted = kind.content();
    let is_wanted =
        |entry: View<'_>| text(entry, "type").is_some_and(|word| wanted.contains(&&*word));
    let found =
        wanted.is_empty() || parts.content.is_some_and(|entries| entries.items().any(is_wanted));
    (!found).then(|| CONTENT.at("/content", format!("no entry of type {}", wanted.join(" or "))))
}

/// Whether a value is there that is not empty. What it should be instead is a matter of its table.
fn says_something(value: Option<View<'_>>) -> bool {
    value.is_some_and(|value| {
        let is_empty = value.is("") || value.is_object() && value.entries().next().is_none();
        !is_empty
    })
}

/// Something has to tell one subagent from another.
fn subagent(parts: &Parts<'_>) -> Option<Finding> {
    let has = |object: Option<View<'_>>, name: &str| {
        says_something(object.and_then(|object| object.get(name)))
    };
    let known = says_something(parts.extensions)
        || has(parts.session, "parent")
        || has(parts.session, "conversation_id")
        || has(parts.agent, "instance_id")
        || has(parts.action, "id");
    (!known).then(|| SUBAGENT.at("/session/parent", "nothing tells which subagent it is"))
}

fn error(parts: &Parts<'_>) -> Option<Finding> {
    let told = parts.lifecycle.is_some_and(|lifecycle| lifecycle.get("reason").is_some())
        || parts.content.is_some_and(|content| content.items().next().is_some())
        || parts.extensions.is_some_and(|extensions| extensions.entries().next().is_some())
        || parts.action.is_some_and(|action| action.get("error").is_some());
    (!told).then(|| ERROR.at("/lifecycle/reason", "nothing says what went wrong"))
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
