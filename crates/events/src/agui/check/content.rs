//! What the content of an event can break although each field has its type: versions, interrupts, usage, names.

use std::collections::HashSet;

use super::{
    CANCELLED_RESULT, CUSTOM_NAME, EXPIRY, INPUT_ACTIVITY, INPUT_THREAD, NEWER, RAW_EVENT,
    RESERVED_KEY, SAME_INTERRUPT, USAGE_SUM, USAGE_TWICE, VALUE_TYPE, VERSION, VERSION_MISSING,
};
use crate::agui::event::{PROTOCOL_VERSION, Type};
use crate::check::shape::{pointer, quote, says, text};
use crate::finding::Finding;
use crate::json::View;

/// Everything wrong with what an event says.
pub(super) fn event(kind: Type, object: View<'_>, strict: bool, findings: &mut Vec<Finding>) {
    if let Some(metadata) = object.get("metadata")
        && metadata.get("ag-ui").is_some()
    {
        findings.push(RESERVED_KEY.at("/metadata/ag-ui", "the key is reserved"));
    }
    match kind {
        Type::RunStarted => {
            findings.extend(version(object));
            if let Some(input) = object.get("input") {
                run_input(object, input, findings);
            }
        }
        Type::RunFinished => {
            findings.extend(interrupts(object));
            findings.extend(cancelled(object));
            usage(object, findings);
            if strict {
                expiry(object, findings);
            }
        }
        Type::RunError => usage(object, findings),
        Type::MessagesSnapshot => {
            value_types(object.get("messages"), "/messages", findings);
        }
        Type::ReasoningEncryptedValue => value_type(object, "", findings),
        Type::Custom if strict => findings.extend(custom(object)),
        Type::Raw => findings.extend(raw(object)),
        _ => {}
    }
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
    let mut seen = HashSet::new();
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

fn expiry(object: View<'_>, findings: &mut Vec<Finding>) {
    let list = outcome(object, "interrupt").and_then(|outcome| outcome.get("interrupts"));
    for (index, interrupt) in list.into_iter().flat_map(View::items).enumerate() {
        if let Some(moment) = text(interrupt, "expiresAt")
            && !is_moment(&moment)
        {
            let pointer = format!("/outcome/interrupts/{index}/expiresAt");
            findings.push(EXPIRY.at(pointer, format!("{} is no date", quote(&moment))));
        }
    }
}

/// Whether a text is a date in one of the forms that every client reads.
fn is_moment(text: &str) -> bool {
    text.parse::<jiff::Timestamp>().is_ok()
        || text.parse::<jiff::civil::DateTime>().is_ok()
        || jiff::fmt::rfc2822::parse(text).is_ok()
}

fn usage(object: View<'_>, findings: &mut Vec<Finding>) {
    let mut known = HashSet::new();
    for (index, entry) in object.get("usage").into_iter().flat_map(View::items).enumerate() {
        if !known.insert((text(entry, "provider"), text(entry, "model"))) {
            let message = "the provider and model have an entry already";
            findings.push(USAGE_TWICE.at(format!("/usage/{index}"), message));
        }
        let count = |name: &str| entry.get(name).and_then(View::as_u64);
        let (input, output) = (count("inputTokens"), count("outputTokens"));
        let cached = [count("cachedInputTokens"), count("cacheWriteInputTokens")];
        let sum =
            |counts: [Option<u64>; 2]| counts.into_iter().flatten().fold(0, u64::saturating_add);
        let mut tell = |name: &str, message: String| {
            findings.push(USAGE_SUM.at(format!("/usage/{index}/{name}"), message));
        };
        if let (Some(total), Some(_), Some(_)) = (count("totalTokens"), input, output)
            && total != sum([input, output])
        {
            tell("totalTokens", format!("input and output are {}", sum([input, output])));
        }
        if let (Some(reasoning), Some(output)) = (count("reasoningTokens"), output)
            && reasoning > output
        {
            tell("reasoningTokens", format!("all output is {output}"));
        }
        if let Some(input) = input
            && sum(cached) > input
        {
            tell("cachedInputTokens", format!("all input is {input}, the cached {}", sum(cached)));
        }
    }
}

fn run_input(object: View<'_>, input: View<'_>, findings: &mut Vec<Finding>) {
    if let (Some(thread), Some(named)) = (text(object, "threadId"), text(input, "threadId"))
        && thread != named
    {
        let message = format!("the input is for thread {}", quote(&named));
        findings.push(INPUT_THREAD.at("/threadId", message));
    }
    let messages = input.get("messages");
    value_types(messages, "/input/messages", findings);
    for (index, message) in messages.into_iter().flat_map(View::items).enumerate() {
        if says(message, "role", "activity") {
            let pointer = format!("/input/messages/{index}/role");
            findings.push(INPUT_ACTIVITY.at(pointer, "an activity message is in the input"));
        }
    }
}

fn value_types(messages: Option<View<'_>>, path: &str, findings: &mut Vec<Finding>) {
    for (index, message) in messages.into_iter().flat_map(View::items).enumerate() {
        value_type(message, &format!("{path}/{index}"), findings);
        let calls = message.get("toolCalls").into_iter().flat_map(View::items);
        for (call, object) in calls.enumerate() {
            value_type(object, &format!("{path}/{index}/toolCalls/{call}"), findings);
        }
    }
}

fn value_type(object: View<'_>, path: &str, findings: &mut Vec<Finding>) {
    if object.get("encryptedValueType").is_some_and(View::is_string) {
        let message = "the field is of version 1.1";
        findings.push(VALUE_TYPE.at(format!("{path}/encryptedValueType"), message));
    }
}

fn custom(object: View<'_>) -> Option<Finding> {
    let name = text(object, "name")?;
    let message = || format!("{} has no prefix", quote(&name));
    (!name.contains(['.', ':', '/'])).then(|| CUSTOM_NAME.at("/name", message()))
}

fn raw(object: View<'_>) -> Option<Finding> {
    let name = text(object.get("event")?, "type")?;
    let kind = Type::parse(&name)?;
    Some(RAW_EVENT.at("/event/type", format!("{} is an event of AG-UI", kind.name())))
}

/// Where a name stands, as a pointer.
pub(super) fn path(root: View<'_>, name: View<'_>) -> String {
    let place = name.span().start;
    let mut found = String::new();
    let mut value = root;
    loop {
        let holds = |inner: View<'_>| inner.span().end > place;
        if let Some((key, inner)) = value.entries().find(|(_, inner)| holds(*inner)) {
            found.push_str(&pointer(&key.as_str().unwrap_or_default()));
            if key.span().start == place {
                return found;
            }
            value = inner;
        } else if let Some((index, inner)) =
            value.items().enumerate().find(|(_, inner)| holds(*inner))
        {
            found.push_str(&pointer(&index.to_string()));
            value = inner;
        } else {
            return found;
        }
    }
}
