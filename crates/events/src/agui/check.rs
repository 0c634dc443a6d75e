//! What one AG-UI event alone can break: its type, its fields, nulls, words, versions.
//!
//! The line between error and warning is the protocol's own: a malformed value on a known field ends the run (error),
//! what is not recognised is dropped or stripped and the run goes on (warning). So is a must that clients do not look
//! at. Codes with SSE are about frames, which only bytes show (`frames`), those with HTTP about the answer that brings
//! them, which only a live exchange shows ([`answer`], [`asked`], [`lingers`]).

use super::encoding::{self, Encoding};
use super::enforce::{Boundary, Enforced};
use super::event::{RETIRED, Type};
use crate::check::rules;
use crate::check::shape::{self, Issue, Known, What, quote, text};
use crate::finding::Finding;
use crate::frame::sse::Quirks;
use crate::json::{Document, View};

mod content;
mod names;

rules! {
    JSON = "AGUI-EVT-01" Error Producer
        "Every message is one JSON object.",
        "Send one JSON object per frame, at most 8 MiB, in UTF-8; AG-UI has no [DONE] marker.";
    TYPE = "AGUI-EVT-02" Error Producer
        "Every event has a type.",
        "Give the event a non-empty string \"type\".";
    UNKNOWN_TYPE = "AGUI-EVT-03" Warning Producer
        "The type is one of the 31 event types; clients drop any other.",
        "Write the type as it is listed, or use CUSTOM for events of your own.";
    RETIRED_TYPE = "AGUI-EVT-04" Warning Producer
        "The THINKING events are retired.",
        "Emit the REASONING event that replaced it.";
    MISSING = "AGUI-EVT-05" Error Producer
        "Required fields are there.",
        "Add the field, or write its name as the event's table does.";
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
        "Write the field as the event's table does, or move your own into metadata.";
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
    DRAFT_TYPE = "AGUI-EVT-20" Note Producer
        "META is a draft that no version has; clients drop it.",
        "Use CUSTOM until a version has it.";
    USAGE_SUM = "AGUI-EVT-21" Warning Producer
        "Token counts add up: total is input and output, reasoning is part of output, cached is part of input.",
        "Report totals, and parts that are contained in them.";
    USAGE_TWICE = "AGUI-EVT-22" Warning Producer
        "Usage has one entry for each provider and model.",
        "Add the counts of the same model up.";
    RESERVED_KEY = "AGUI-EVT-23" Warning Producer
        "The key ag-ui of metadata belongs to the protocol.",
        "Prefix the keys of your own.";
    EXPIRY = "AGUI-EVT-24" Warning (opt_in) Producer
        "expiresAt is a date that clients can read; what they cannot read never expires.",
        "Write a date and time such as 2027-01-31T12:00:00Z.";
    INPUT_ACTIVITY = "AGUI-EVT-25" Warning Subscriber
        "The input of a run has no activity messages: these are the client's own.",
        "Leave activity messages out of the history that is sent.";
    VALUE_TYPE = "AGUI-EVT-26" Warning Producer
        "encryptedValueType is of version 1.1; 1.0 clients strip it.",
        "Leave it out, or send it to clients of 1.1 only.";
    CUSTOM_NAME = "AGUI-EVT-27" Warning (opt_in) Producer
        "Names of CUSTOM events have a prefix; those without one are reserved.",
        "Name the event like example.com/name or example.name.";
    RAW_EVENT = "AGUI-EVT-28" Note Producer
        "RAW carries events of somebody else's, not those of AG-UI.",
        "Emit the event itself: clients do not act on what RAW holds.";
    INPUT_THREAD = "AGUI-EVT-29" Warning Producer
        "A run is of the thread that its input names.",
        "Use the threadId of the input.";
    DUPLICATE = "AGUI-EVT-30" Warning Producer
        "A name stands once in its object; parsers disagree about which of two counts.",
        "Send each field once.";
    LINE_END = "AGUI-SSE-01" Error Producer
        "Frames of server-sent events end with LF LF; the reference client finds no other end.",
        "Write \\n and never \\r.";
    BARE_LINE = "AGUI-SSE-02" Warning Producer
        "Events stand in data fields; clients pass over any other line without a word.",
        "Begin the line with \"data: \".";
    BYTE_ORDER_MARK = "AGUI-SSE-03" Note Producer
        "A stream begins with its first frame, not with a byte order mark.",
        "Write UTF-8 without a mark.";
    FRAME_FIELD = "AGUI-SSE-04" Note (opt_in) Producer
        "Frames have data and nothing else: event, id and retry are ignored.",
        "Leave out fields other than data; nothing resumes by id.";
    TYPE_PARAMETER = "AGUI-HTTP-01" Error Producer
        "The type of a binary answer has no parameters; the reference client reads such an answer as empty.",
        "Send Content-Type: application/vnd.ag-ui.event+proto and nothing behind it.";
    NOT_CLOSED = "AGUI-HTTP-02" Note Producer
        "The answer ends with its last run.",
        "Close the body after RUN_FINISHED or RUN_ERROR.";
    NOT_ASKED = "AGUI-HTTP-03" Warning Producer
        "The first run of an answer has the threadId and runId of the input.",
        "Repeat threadId and runId of the RunAgentInput in RUN_STARTED.";
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
    if let Some(name) = message.duplicate() {
        let text = format!("the name {} stands twice", quote(&name.as_str().unwrap_or_default()));
        findings.push(DUPLICATE.at(content::path(object, name), text));
    }
    let Some(name) = text(object, "type").filter(|name| !name.is_empty()) else {
        let message = match object.get("type") {
            None => "the type is missing".to_owned(),
            Some(other) if other.is_string() => "the type is empty".to_owned(),
            Some(other) => format!("a string is needed here, this is {}", shape::given(other)),
        };
        findings.push(TYPE.at("/type", message));
        return Enforced::Fatal;
    };
    let kind = Type::parse(&name);
    if kind.is_none() {
        findings.push(unknown(&name));
    }
    let before = findings.len();
    let enforced = boundary.enforce(&name, kind, message, known, findings);
    if let Some(kind) = kind {
        names::reconcile(kind, before, findings);
        content::event(kind, object, boundary.strict, findings);
    }
    enforced
}

/// Everything wrong with the frames that a stream's events came in.
pub(crate) fn frames(quirks: &Quirks, strict: bool) -> Vec<Finding> {
    let told = [
        (quirks.carriage_return, &LINE_END, "ends with a carriage return"),
        (quirks.bare, &BARE_LINE, "is JSON outside a data field"),
        (quirks.mark, &BYTE_ORDER_MARK, "begins with a byte order mark"),
        (quirks.other_field.filter(|_| strict), &FRAME_FIELD, "is a field other than data"),
    ];
    told.into_iter()
        .filter_map(|(place, rule, what)| Some(rule.at("", format!("line {} {what}", place?.line))))
        .collect()
}

/// What is wrong with the `Content-Type` of an answer in either encoding, if anything. What is in neither is no answer.
pub fn answer(content_type: &str) -> Option<Finding> {
    let binary = encoding::of_response(Some(content_type)) == Some(Encoding::Protobuf);
    let message = || format!("the content type is {}", quote(content_type));
    (binary && content_type.contains(';')).then(|| TYPE_PARAMETER.at("", message()))
}

/// What is wrong with the first run of an answer to an input with these ids, if anything.
pub fn asked(started: View<'_>, thread: &str, run: &str) -> Option<Finding> {
    [("threadId", thread), ("runId", run)].into_iter().find_map(|(name, sent)| {
        let given = text(started, name).filter(|given| given != sent)?;
        let message = format!("{name} is {}, where {} was sent", quote(&given), quote(sent));
        Some(NOT_ASKED.at(shape::pointer(name), message))
    })
}

/// That an answer goes on without a word after its run has ended.
pub fn lingers(seconds: f64) -> Finding {
    NOT_CLOSED.at("", format!("the stream is still open {seconds} s after the run has ended"))
}

fn unknown(name: &str) -> Finding {
    if let Some((_, now)) = RETIRED.iter().find(|(old, _)| *old == name) {
        return RETIRED_TYPE.at("/type", format!("{name} is now {now}"));
    }
    if name == "META" {
        return DRAFT_TYPE.at("/type", "META is a draft");
    }
    let word = squeezed(name);
    let meant = Type::ALL.into_iter().find(|kind| squeezed(kind.name()) == word);
    let message = match meant {
        Some(kind) => format!("{} is not known; {} is meant", quote(name), kind.name()),
        None if matches!(&*word, "runcancelled" | "runcanceled") => {
            format!("{} is not known; RUN_FINISHED with outcome cancelled is meant", quote(name))
        }
        None => format!("{} is not known", quote(name)),
    };
    UNKNOWN_TYPE.at("/type", message)
}

/// A name without what producers write differently: case and separators.
pub(super) fn squeezed(name: &str) -> String {
    name.replace(['_', '-', '.', ' '], "").to_ascii_lowercase()
}

/// The finding for something that does not fit.
pub(super) fn finding(kind: Type, issue: Issue) -> Finding {
    let Issue { what, pointer, mut message } = issue;
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
    if what == What::Member && kind == Type::RunFinished && pointer == "/outcome/type" {
        message.push_str("; clients take the run for a success");
    }
    rule.at(pointer, message)
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
