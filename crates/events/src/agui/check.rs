//! What one AG-UI event alone can break: its type, its fields, nulls, words, versions.
//!
//! The line between error and warning is the protocol's own: a malformed value on a known field ends the run (error),
//! what is not recognised is dropped or stripped and the run goes on (warning). Whether tool arguments are JSON is
//! the application's business and not checked.

use super::enforce::{Boundary, Enforced};
use super::event::{PROTOCOL_VERSION, RETIRED, Type};
use crate::check::rules;
use crate::check::shape::{self, Issue, Known, What, quote, says, text};
use crate::finding::Finding;
use crate::json::{Document, View};

rules! {
    JSON = "AGUI-EVT-01" Error Producer
        "Every message is one JSON object.",
        "Send one JSON object per frame, and no [DONE] marker.";
    TYPE = "AGUI-EVT-02" Error Producer
        "Every event has a type.",
        "Add a non-empty string \"type\".";
    UNKNOWN_TYPE = "AGUI-EVT-03" Warning Producer
        "The type is one of the 31 event types; clients drop any other.",
        "Use CUSTOM for events of your own.";
    RETIRED_TYPE = "AGUI-EVT-04" Warning Producer
        "The THINKING events are retired.",
        "Emit the REASONING event that replaced it.";
    MISSING = "AGUI-EVT-05" Error Producer
        "Required fields are there.",
        "Add the field.";
    MALFORMED = "AGUI-EVT-06" Error Producer
        "Known fields have their type and range.",
        "Send the type that the event's table names.";
    WORD = "AGUI-EVT-07" Error Producer
        "Closed sets of words are kept to.",
        "Use one of the listed words.";
    NULL = "AGUI-EVT-08" Error Producer
        "Optional fields are left out, never null.",
        "Leave the field out.";
    TOLERATED_NULL = "AGUI-EVT-09" Warning Producer
        "Optional fields are left out, also where clients still tolerate null.",
        "Leave the field out.";
    UNKNOWN_FIELD = "AGUI-EVT-10" Warning Producer
        "Protocol objects have no fields of one's own; clients strip them.",
        "Move the field into metadata.";
    VERSION_MISSING = "AGUI-EVT-11" Warning Producer
        "RUN_STARTED declares the producer's protocolVersion.",
        "Add \"protocolVersion\": \"1.0\".";
    VERSION = "AGUI-EVT-12" Error Producer
        "protocolVersion is MAJOR.MINOR of version 1.",
        "Write \"1.0\".";
    NEWER = "AGUI-EVT-13" Warning Producer
        "A newer minor version may bring what a 1.0 client drops.",
        "Declare \"1.0\" unless newer fields are used.";
    UNKNOWN_MEMBER = "AGUI-EVT-14" Warning Producer
        "Outcomes, roles, parts, sources and patch operations are of a known kind; clients remove any other.",
        "Use one of the kinds of version 1.0.";
    NO_INTERRUPT = "AGUI-EVT-15" Error Producer
        "An interrupt outcome carries at least one interrupt.",
        "List what the run waits for, or finish with success.";
    SAME_INTERRUPT = "AGUI-EVT-16" Warning Producer
        "Interrupt ids are unique within a run.",
        "Give each interrupt an id of its own.";
    PATCH = "AGUI-EVT-17" Error Producer
        "Patch operations have the members and pointers RFC 6902 asks for.",
        "Send op, path and value or from, with pointers such as /a/0.";
    CANCELLED_RESULT = "AGUI-EVT-18" Warning Producer
        "A cancelled run carries no result.",
        "Leave the result out.";
    LEGACY_PART = "AGUI-EVT-19" Warning Producer
        "Content parts of type binary are retired.",
        "Send an image, audio, video or document part with a source.";
}

/// Everything wrong with one message, seen alone, and what a client makes of it.
pub(crate) fn event(
    message: &Document<'_>,
    boundary: &mut Boundary,
    known: &mut Known,
    findings: &mut Vec<Finding>,
) -> Enforced {
    let object = message.root();
    if !object.is_object() {
        let message = format!("an event is an object, this is {}", shape::given(object));
        findings.push(JSON.at("", message));
        return Enforced::Fatal;
    }
    let Some(name) = text(object, "type").filter(|name| !name.is_empty()) else {
        findings.push(TYPE.at("/type", "the type is missing"));
        return Enforced::Fatal;
    };
    let kind = Type::parse(&name);
    if kind.is_none() {
        findings.push(unknown(&name));
    }
    let enforced = boundary.enforce(&name, message, known, findings);
    match kind {
        Some(Type::RunStarted) => findings.extend(version(object)),
        Some(Type::RunFinished) => {
            findings.extend(interrupts(object));
            findings.extend(cancelled(object));
        }
        _ => {}
    }
    enforced
}

fn unknown(name: &str) -> Finding {
    if let Some((_, now)) = RETIRED.iter().find(|(old, _)| *old == name) {
        return RETIRED_TYPE.at("/type", format!("{name} is now {now}"));
    }
    let squeezed = |text: &str| text.replace('_', "").to_ascii_lowercase();
    let meant = Type::ALL.into_iter().find(|kind| squeezed(kind.name()) == squeezed(name));
    let message = match meant {
        Some(kind) => format!("{} is not known; {} is meant", quote(name), kind.name()),
        None => format!("{} is not known", quote(name)),
    };
    UNKNOWN_TYPE.at("/type", message)
}

/// The finding for something that does not fit.
pub(super) fn finding(kind: Type, issue: Issue) -> Finding {
    let Issue { what, pointer, message } = issue;
    let in_patch = match kind {
        Type::StateDelta => pointer.starts_with("/delta/"),
        Type::ActivityDelta => pointer.starts_with("/patch/"),
        _ => false,
    };
    let rule = match what {
        What::Missing | What::Type | What::Value if in_patch => &PATCH,
        What::Value | What::Missing if pointer == "/outcome/interrupts" => &NO_INTERRUPT,
        What::Missing => &MISSING,
        What::Type | What::Value => &MALFORMED,
        What::Word => &WORD,
        What::Null => &NULL,
        What::Foreign => &UNKNOWN_FIELD,
        What::Member => &UNKNOWN_MEMBER,
    };
    rule.at(pointer, message)
}

fn version(object: View<'_>) -> Option<Finding> {
    let Some(declared) = object.get("protocolVersion") else {
        return Some(VERSION_MISSING.at("/protocolVersion", "the run declares no protocolVersion"));
    };
    let declared = declared.as_str()?;
    let declared = &*declared;
    if declared == PROTOCOL_VERSION {
        return None;
    }
    let number = |part: &str| {
        part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse::<u32>().ok())?
    };
    let parsed =
        declared.split_once('.').and_then(|(major, minor)| Some((number(major)?, number(minor)?)));
    Some(match parsed {
        Some((1, _)) => {
            NEWER.at("/protocolVersion", format!("{} is newer than 1.0", quote(declared)))
        }
        _ => VERSION.at("/protocolVersion", format!("{} is no version 1.x", quote(declared))),
    })
}

fn outcome<'a>(object: View<'a>, kind: &str) -> Option<View<'a>> {
    object.get("outcome").filter(|outcome| says(*outcome, "type", kind))
}

fn interrupts(object: View<'_>) -> Option<Finding> {
    let interrupts = outcome(object, "interrupt")?.get("interrupts")?;
    let mut seen = std::collections::HashSet::new();
    let twice = interrupts
        .items()
        .enumerate()
        .filter_map(|(index, interrupt)| Some((index, text(interrupt, "id")?)))
        .find(|(_, id)| !seen.insert(id.clone()))?;
    let (index, id) = twice;
    Some(
        SAME_INTERRUPT.at(
            format!("/outcome/interrupts/{index}/id"),
            format!("{} is there twice", quote(&id)),
        ),
    )
}

fn cancelled(object: View<'_>) -> Option<Finding> {
    outcome(object, "cancelled")?;
    object.get("result").filter(|result| !result.is_null())?;
    Some(CANCELLED_RESULT.at("/result", "the run was cancelled and has a result"))
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
