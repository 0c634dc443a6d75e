//! What one AAEP message alone can break: envelope, fields, words, limits, defaults, texts.
//!
//! Messages of the conversation about events (handshake, replies, the manifest) are not events: `control` reads them.
//! Extension events are held to the envelope only. An event that says it is of a newer 1.x may have fields, words and
//! types that nobody here knows. Replies of an extension and messages with a `kind` instead of a `type` pass unread.
//!
//! A message is looked at once, field by field; one without fault costs no allocation.

use super::event::{self, Type};
use crate::check::rules;
use crate::check::shape::{self, Issue, Known, Shape, What};
use crate::finding::Finding;
use crate::json::{Document, View};

mod ask;
pub(crate) mod control;
mod envelope;
mod language;
mod limits;
mod manifest;
pub(crate) mod seen;
mod text;

use seen::Seen;

rules! {
    JSON = "AAEP-3.8-R1" Error Producer
        "Every message is one JSON object in UTF-8.",
        "Send plain JSON, one object per message.";
    BIG_NUMBER = "AAEP-3.8-R3" Error Producer
        "Whole numbers outside ±2^53 are sent as strings.",
        "Send the number as a string.";
    DUPLICATE = "AAEP-3.8-B1" Warning Both
        "No object has the same name twice.",
        "Send each name once: readers disagree on which one counts.";
    CONTEXT = "AAEP-3.2.1-R1" Error Producer
        "Every event has an @context.",
        "Add \"@context\": \"https://aaep-protocol.org/context/v1\".";
    CORE_CONTEXT = "AAEP-3.2.1-R2" Error Producer
        "The core context is the @context, or the first of its list.",
        "Put https://aaep-protocol.org/context/v1 first, and write a URI for every further entry.";
    TYPE = "AAEP-3.2.2-R1" Error Producer
        "The type is a core type or a published extension type.",
        "Use prefix:name with a prefix that @context declares.";
    CORE_TYPE = "AAEP-3.2.2-R2" Error Producer
        "No aaep: type outside the twelve is emitted.",
        "Use one of the twelve core types, or a prefix of your own.";
    COMPACT_TYPE = "AAEP-3.2.2-R4" Warning Producer
        "Core types are written in the compact form.",
        "Write aaep:agent.… instead of the URI.";
    EVENT_ID = "AAEP-3.2.3-R1" Error Producer
        "Every event has an event_id of its own: evt_ and 1 to 64 letters and digits.",
        "Draw a new id for each event, such as evt_ and 32 hex digits.";
    SESSION_ID = "AAEP-3.2.4-R1" Error Producer
        "Every event carries its session's id: sess_ and 1 to 64 letters and digits.",
        "Draw one id per session and put it on each of its events.";
    TIMESTAMP = "AAEP-3.2.5-R1" Error Producer
        "The timestamp is RFC 3339 with 0, 3 or 6 digits of fraction.",
        "Write it like 2026-01-31T12:00:00.000Z.";
    PLACEHOLDER_TIME = "AAEP-3.2.5-R2" Warning Producer
        "The timestamp is the time of the event and no placeholder.",
        "Read the clock when the event is made.";
    AGENT_ID = "AAEP-3.2.6-R1" Error Producer
        "The producer names its agent in agent_id.",
        "Add \"producer\": {\"agent_id\": …} with a stable, non-empty name.";
    VERSIONED_AGENT = "AAEP-3.2.6.1-R1" Warning Producer
        "The agent_id stays the same from version to version.",
        "Leave the version to agent_version.";
    UNCALLED_CRITICAL = "AAEP-3.3.2-R1" Note (opt_in) Producer
        "Urgency critical is kept for the four types that demand it.",
        "Use normal: critical passes every limit and preference.";
    SUMMARIES = "AAEP-2.2.8-R1" Warning (opt_in) Producer
        "What is announced has a terse, a normal and a detailed summary.",
        "Add the summaries that are missing.";
    NORMAL_SUMMARY = "AAEP-9.3.1-9" Warning (opt_in) Producer
        "Every event worth announcing has a summary_normal.",
        "Add summary_normal.";
    CLOSED = "AAEP-2.2.6-R1" Error Producer
        "Envelope objects have no fields of one's own.",
        "Move the field into extensions.";
    RESERVED = "AAEP-3.5-R1" Error Producer
        "The names aaep_*, @id, @graph, @base and @vocab are reserved at the top level.",
        "Rename the field and move it into extensions.";
    FOREIGN = "AAEP-3.5-R2" Error Producer
        "All data of one's own is inside extensions.",
        "Move the field into extensions, under a prefix that @context declares.";
    KEY_ORDER = "AAEP-3.6-R2" Note (opt_in) Producer
        "The fields of an event come in the recommended order.",
        "Write the envelope from @context to correlation_id, then the payload, then extensions.";
    DECLARED = "AAEP-3.4.3-R1" Error Producer
        "Every key of extensions is declared through @context.",
        "Make @context a list and add the extension's context.";
    RESERVED_PREFIX = "AAEP-7.3.2-R1" Error Producer
        "Extensions do not take the prefixes aaep, xsd, rdf, rdfs or any that begins with @.",
        "Choose a prefix of your own.";
    SHORT_PREFIX = "AAEP-7.3.1-R3" Warning Producer
        "A prefix is longer than one letter.",
        "Choose a distinctive prefix of 3 to 12 letters.";
    EXTENSION_MAJOR = "AAEP-7.9-R2" Warning (opt_in) Producer
        "The context of an extension names its major version.",
        "Let the URI end in /v1.";
    VERSION = "AAEP-3.4.4-R1" Error Producer
        "aaep_version, if present, is a published version.",
        "Write \"1.0.0\", or leave the field out.";
    NEWER = "AAEP-12.6.2-R1" Warning Producer
        "Producers emit what subscribers of their version can consume.",
        "Emit version 1.0 where the subscriber speaks 1.0.";
    UNVERSIONED = "AAEP-12.5-R1" Warning (opt_in) Producer
        "Events tell their version.",
        "Add \"aaep_version\": \"1.0.0\".";
    FIELDS = "AAEP-3.9-R1" Error Producer
        "Every field has the type, format and values that its event type lists, and required ones are there.",
        "Compare the event with its type's table: banister schema aaep.";
    LIMITS = "AAEP-3.7-R1" Warning Producer
        "Events stay within 64 KiB, 32 top-level fields and extensions and 8 levels of nesting, strings within 16 KiB.",
        "Send less, or refer to it by URI.";
    UNEXPLAINED = "AAEP-4.3.2-B1" Note Producer
        "A tool that failed says why.",
        "Add error_message.";
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
    REVERSIBILITY = "AAEP-4.4.1-B1" Warning Producer
        "The fields irreversible and reversibility say the same.",
        "Make both agree.";
    REFUSABLE = "AAEP-4.4.1-B2" Warning Producer
        "Everything can be refused, and the default decision is an allowed one.",
        "Put reject, and the default decision, into allowed_replies.";
    RESPONSE_KINDS = "AAEP-9.4.1-7" Warning Producer
        "accepted_response_kinds says truly what is accepted.",
        "Give choices with multiple_choice, and only then.";
    TIMEOUT = "AAEP-6.4.2-R1" Note (opt_in) Producer
        "A timeout leaves people time enough.",
        "Give 180 s where the risk is high and nothing can be undone, 60 s for medium risk and questions, 30 s at least.";
    SECRET = "AAEP-10.T5-R1" Error Producer
        "No secret is in a field that people hear or read.",
        "Redact the secret before the event is written, and revoke it.";
    PASSWORD = "AAEP-10.T5-B1" Warning Producer
        "What looks like a password is in no text for people.",
        "Redact it before the event is written; [redacted] and *** may stand there.";
    LANGUAGE = "AAEP-11.1-R1" Warning Producer
        "An event with text for people declares its language.",
        "Add \"localization_hints\": {\"primary_language\": \"en-US\"}.";
    LANGUAGE_TAG = "AAEP-11.1.2-R1" Error Producer
        "Languages are BCP 47 tags.",
        "Write tags such as en, en-US or zh-Hant.";
    ODD_LANGUAGE = "AAEP-11.1.2-B1" Note Both
        "A language tag begins with a language: two or three letters, or x- for one of one's own.",
        "Write en instead of english.";
    NORMALIZED = "AAEP-11.3.2-R1" Warning (opt_in) Producer
        "Text is in NFC.",
        "Normalize texts before they are sent.";
    WHOLE_CHARACTERS = "AAEP-11.3.3-R2" Warning Producer
        "No text begins or breaks off inside a character.",
        "Cut chunks between characters, not within.";
    MARKUP = "AAEP-11.5.2-R1" Warning Producer
        "Languages are not marked inside the text.",
        "Use the field language, or a field per language such as summary_normal_de.";
}

/// Everything wrong with one message, seen alone.
pub(crate) fn event(
    message: &Document<'_>,
    seen: &Seen<'_>,
    strict: bool,
    known: &mut Known,
) -> Vec<Finding> {
    let object = message.root();
    if !object.is_object() {
        return vec![
            JSON.at("", format!("an event is an object, this is {}", shape::given(object))),
        ];
    }
    let mut findings = Vec::new();
    findings.extend(limits::duplicate(message));
    let name = seen.kind.and_then(View::as_str).unwrap_or_default();
    if event::is_control(&name) {
        findings.extend(control::message(&name, object));
        return findings;
    }
    if seen.is_foreign(&name) {
        return findings;
    }
    let kind = Type::parse(&name);
    let newer = envelope::version(seen, &mut findings);
    let shape = kind.map_or(&event::EXTENSION, Type::shape);
    for issue in shape::compare(shape, object, known) {
        if !(newer && is_new(&issue)) {
            findings.extend(finding(issue, shape, object));
        }
    }
    envelope::check(seen, &name, kind, newer, &mut findings);
    match kind {
        Some(Type::AwaitingConfirmation) => ask::confirmation(seen, strict, &mut findings),
        Some(Type::AwaitingClarification) => ask::clarification(seen, strict, &mut findings),
        Some(Type::ProgressUpdated) => findings.extend(empty_progress(seen)),
        Some(Type::ToolCompleted) => findings.extend(unexplained(seen)),
        _ => {}
    }
    let declared = language::of_event(seen, kind, &mut findings);
    text::check(seen, declared, &mut findings);
    limits::check(message, seen, &mut findings);
    if strict {
        envelope::strict(object, seen, kind, &mut findings);
    }
    findings
}

/// Whether an issue may be nothing but what a newer minor version has added (§12.2).
fn is_new(issue: &Issue) -> bool {
    matches!(issue.what, What::Foreign | What::Word | What::Member)
        || (issue.what == What::Value && issue.pointer == "/accepted_response_kinds")
}

/// Gives what does not fit a type's table the code of the rule that says so.
fn finding(issue: Issue, shape: &Shape, object: View<'_>) -> Option<Finding> {
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
            let name = name.strip_prefix('/').unwrap_or(name);
            let base = language::localized(name);
            if base.is_some_and(|base| shape.fields().any(|field| field.name == base))
                && object.get(name).is_some_and(View::is_string)
            {
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

fn empty_progress(seen: &Seen<'_>) -> Option<Finding> {
    let progress = seen.progress.filter(|progress| progress.is_object())?;
    if progress.entries().next().is_none() {
        return Some(
            FIELDS.at(
                "/progress",
                "at least one of percent, step, total_steps, description is needed",
            ),
        );
    }
    let step = progress.get("step").and_then(View::as_u64)?;
    let total = progress.get("total_steps").and_then(View::as_u64)?;
    (step > total).then(|| FIELDS.at("/progress/step", "the step is beyond total_steps"))
}

fn unexplained(seen: &Seen<'_>) -> Option<Finding> {
    let failed = seen.status.is_some_and(|status| status.is("error") || status.is("timeout"));
    (failed && seen.error_message.is_none())
        .then(|| UNEXPLAINED.at("/error_message", "nothing says why the tool failed"))
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
