//! What the envelope of an event can break beyond its table: context, type, versions, prefixes, urgency, order.

use std::borrow::Cow;

use super::seen::Seen;
use super::{
    CLARIFICATION_URGENCY, COMPACT_TYPE, CONFIRMATION_URGENCY, CORE_CONTEXT, CORE_TYPE, DECLARED,
    ERRORED_URGENCY, EXTENSION_MAJOR, HANDOFF_URGENCY, KEY_ORDER, NEWER, NORMAL_SUMMARY,
    PLACEHOLDER_TIME, RESERVED_PREFIX, SHORT_PREFIX, SUMMARIES, TYPE, UNCALLED_CRITICAL,
    UNVERSIONED, VERSION, VERSIONED_AGENT,
};
use crate::aaep::event::{self, Envelope, Type};
use crate::check::shape::{self, quote};
use crate::finding::Finding;
use crate::json::View;
use crate::record::Record;

/// The versions that were published.
const PUBLISHED: [&str; 1] = [event::VERSION];

/// What a well-formed version is, seen from the published ones.
pub(super) enum Version {
    Published,
    /// A later patch, or a pre-release of one.
    Patch,
    /// A later minor version, or a pre-release of one.
    Minor,
    /// None that is or will be published, and why.
    Not(&'static str),
}

impl Version {
    /// None for what is not written like a version.
    pub(super) fn read(text: &str) -> Option<Self> {
        if PUBLISHED.contains(&text) {
            return Some(Self::Published);
        }
        let (numbers, label) =
            text.split_once('-').map_or((text, None), |(start, rest)| (start, Some(rest)));
        let mut parts = numbers.split('.');
        let parts = [parts.next()?, parts.next()?, parts.next()?];
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !parts.into_iter().all(is_number) {
            return None;
        }
        Some(match parts {
            _ if parts.iter().any(|part| part.len() > 1 && part.starts_with('0')) => {
                Self::Not("has a number that begins with 0")
            }
            ["1", "0", "0"] if label.is_some() => Self::Not("is a pre-release"),
            ["1", "0", _] => Self::Patch,
            ["1", ..] => Self::Minor,
            _ => Self::Not("is no version 1.x"),
        })
    }
}

/// Whether the event is of a newer minor version than the one known here, beside what its version breaks.
pub(super) fn version(seen: &Seen<'_>, findings: &mut Vec<Finding>) -> bool {
    let Some(version) = seen.version.filter(|version| !version.is(event::VERSION)) else {
        return false;
    };
    let text = version.as_str().unwrap_or_default();
    let Some(version) = Version::read(&text) else { return false };
    match version {
        Version::Published => {}
        Version::Not(why) => {
            findings.push(VERSION.at("/aaep_version", format!("{} {why}", quote(&text))));
        }
        Version::Patch | Version::Minor => {
            let message = format!("{} is newer than {}", quote(&text), event::VERSION);
            findings.push(NEWER.at("/aaep_version", message));
        }
    }
    // A patch brings nothing new.
    matches!(version, Version::Minor)
}

pub(super) fn check(
    seen: &Seen<'_>,
    name: &str,
    kind: Option<Type>,
    newer: bool,
    findings: &mut Vec<Finding>,
) {
    findings.extend(context(seen));
    match kind {
        Some(kind) => {
            if !name.starts_with("aaep:") {
                let message = format!("{} is the URI of {}", quote(name), kind.name());
                findings.push(COMPACT_TYPE.at("/type", message));
            }
            findings.extend(urgency(kind, seen));
        }
        None => type_name(name, seen, newer, findings),
    }
    if let Some(extensions) = seen.extensions {
        findings.extend(undeclared(extensions, seen));
        for (key, _) in extensions.entries() {
            let Some(key) = key.as_str() else { continue };
            let rule = prefix_rule(&key);
            findings.extend(rule.map(|rule| {
                let message = format!("{} is no prefix for an extension", quote(&key));
                rule.at(format!("/extensions{}", shape::pointer(&key)), message)
            }));
        }
    }
    if let Some(timestamp) = seen.timestamp {
        findings.extend(placeholder(timestamp, findings));
    }
    findings.extend(seen.producer.and_then(versioned_agent));
}

fn context(seen: &Seen<'_>) -> Option<Finding> {
    let context = seen.context?;
    let first = if context.is_array() { context.items().next() } else { Some(context) };
    if !first.is_some_and(|first| first.is(event::CONTEXT)) {
        return Some(CORE_CONTEXT.at("/@context", "the core context does not come first"));
    }
    let is_uri = |entry: View<'_>| entry.as_str().is_some_and(|text| text.contains(':'));
    let (index, entry) = context.items().enumerate().find(|(_, entry)| !is_uri(*entry))?;
    let given =
        entry.as_str().map_or(Cow::Borrowed(shape::given(entry)), |text| quote(&text).into());
    Some(CORE_CONTEXT.at(format!("/@context/{index}"), format!("{given} is no URI: write a URI")))
}

/// Whether `@context` names anything beside the core.
fn declares_extensions(seen: &Seen<'_>) -> bool {
    seen.context.is_some_and(|context| context.items().any(|entry| !entry.is(event::CONTEXT)))
}

fn type_name(name: &str, seen: &Seen<'_>, newer: bool, findings: &mut Vec<Finding>) {
    if name.is_empty() {
        return;
    }
    if event::core_name(name).is_some() {
        if !newer {
            let message = format!("{} is none of the twelve core types", quote(name));
            findings.push(CORE_TYPE.at("/type", message));
        }
        return;
    }
    let parts =
        name.split_once(':').filter(|(prefix, rest)| !prefix.is_empty() && !rest.is_empty());
    let Some((prefix, _)) = parts else {
        findings.push(TYPE.at("/type", format!("{} has no prefix", quote(name))));
        return;
    };
    if !declares_extensions(seen) {
        let message = format!("no context declares the prefix of {}", quote(name));
        findings.push(TYPE.at("/type", message));
    }
    findings.extend(
        prefix_rule(prefix).map(|rule| {
            rule.at("/type", format!("{} is no prefix for an extension", quote(prefix)))
        }),
    );
}

/// The rule that a prefix of an extension breaks.
fn prefix_rule(prefix: &str) -> Option<&'static crate::finding::Rule> {
    if matches!(prefix, "aaep" | "xsd" | "rdf" | "rdfs") || prefix.starts_with('@') {
        Some(&RESERVED_PREFIX)
    } else if prefix.chars().nth(1).is_none() {
        Some(&SHORT_PREFIX)
    } else {
        None
    }
}

fn undeclared(extensions: View<'_>, seen: &Seen<'_>) -> Option<Finding> {
    let (key, _) = extensions.entries().next()?;
    (!declares_extensions(seen)).then(|| {
        let key = key.as_str().unwrap_or_default();
        let message = format!("no context declares the extension {}", quote(&key));
        DECLARED.at(format!("/extensions{}", shape::pointer(&key)), message)
    })
}

fn urgency(kind: Type, seen: &Seen<'_>) -> Option<Finding> {
    let rule = match kind {
        Type::SessionErrored => &ERRORED_URGENCY,
        Type::AwaitingConfirmation => &CONFIRMATION_URGENCY,
        Type::AwaitingClarification => &CLARIFICATION_URGENCY,
        Type::HandoffRequested => &HANDOFF_URGENCY,
        _ => return None,
    };
    let Some(urgency) = seen.urgency else {
        return Some(rule.at("/urgency", "the urgency is missing, which means normal"));
    };
    // A word outside the set was already found by the table.
    let other = urgency.as_str().filter(|word| word != "critical")?;
    event::URGENCIES
        .contains(&&*other)
        .then(|| rule.at("/urgency", format!("the urgency is {other}, not critical")))
}

/// The years that clocks nobody has set, and dates nobody has filled in, are in.
fn placeholder(timestamp: View<'_>, found: &[Finding]) -> Option<Finding> {
    let text = timestamp.as_str().filter(|text| !text.starts_with("20"))?;
    let year = text.get(..4)?;
    if ("1971".."9999").contains(&year) || found.iter().any(|found| found.pointer == "/timestamp") {
        return None;
    }
    Some(PLACEHOLDER_TIME.at("/timestamp", format!("no event was made in the year {year}")))
}

fn versioned_agent(producer: View<'_>) -> Option<Finding> {
    let (mut agent_id, mut agent_version) = (None, None);
    for (name, value) in producer.entries() {
        if name.is("agent_id") {
            agent_id = value.as_str();
        } else if name.is("agent_version") {
            agent_version = value.as_str();
        }
    }
    let (agent, version) = (agent_id?, agent_version?);
    let is_dotted = version.len() >= 3
        && version.contains('.')
        && version.bytes().any(|byte| byte.is_ascii_digit());
    // Most agents have no digit in their name.
    if !is_dotted || !agent.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    agent
        .match_indices(&*version)
        .any(|(at, _)| {
            let (before, rest) = agent.split_at_checked(at).unwrap_or_default();
            let after = rest.strip_prefix(&*version).unwrap_or_default();
            stands_alone(before, after)
        })
        .then(|| {
            let message = format!("{} contains the version {}", quote(&agent), quote(&version));
            VERSIONED_AGENT.at("/producer/agent_id", message)
        })
}

/// Whether what is between the two is no part of a longer word or number; a `v` may come first.
fn stands_alone(before: &str, after: &str) -> bool {
    let ends_word = |text: &str| text.ends_with(char::is_alphanumeric);
    let before_v = before.strip_suffix(['v', 'V']).unwrap_or(before);
    let number_before = before.strip_suffix('.').is_some_and(ends_word_in_digit);
    let number_after = after
        .strip_prefix('.')
        .is_some_and(|rest| rest.starts_with(|next: char| next.is_ascii_digit()));
    !ends_word(before_v)
        && !after.starts_with(char::is_alphanumeric)
        && !number_before
        && !number_after
}

fn ends_word_in_digit(text: &str) -> bool {
    text.ends_with(|last: char| last.is_ascii_digit())
}

/// The rules that apply only on request.
pub(super) fn strict(
    object: View<'_>,
    seen: &Seen<'_>,
    kind: Option<Type>,
    findings: &mut Vec<Finding>,
) {
    if seen.version.is_none() {
        findings.push(UNVERSIONED.at("/aaep_version", "the event does not tell its version"));
    }
    findings.extend(kind.and_then(|kind| summaries(kind, seen)));
    findings.extend(kind.and_then(|kind| normal_summary(kind, seen)));
    findings.extend(kind.and_then(|kind| uncalled_critical(kind, seen)));
    findings.extend(key_order(object));
    let contexts = seen.context.into_iter().flat_map(View::items).enumerate().skip(1);
    for (index, context) in contexts {
        let Some(uri) =
            context.as_str().filter(|uri| !uri.split(['/', ':', '#', '?']).any(is_major))
        else {
            continue;
        };
        let message = format!("{} names no version", quote(&uri));
        findings.push(EXTENSION_MAJOR.at(format!("/@context/{index}"), message));
    }
}

/// Whether a part of a URI is a version such as `v1` or `v1.2`.
fn is_major(part: &str) -> bool {
    part.strip_prefix('v').is_some_and(|number| {
        number.starts_with(|first: char| first.is_ascii_digit())
            && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    })
}

fn summaries(kind: Type, seen: &Seen<'_>) -> Option<Finding> {
    let all = [
        ("summary_terse", seen.terse),
        ("summary_normal", seen.normal),
        ("summary_detailed", seen.detailed),
    ];
    if kind == Type::OutputStreaming || all.iter().all(|(_, summary)| summary.is_none()) {
        return None;
    }
    let (missing, _) = all.iter().find(|(_, summary)| summary.is_none())?;
    Some(SUMMARIES.at(shape::pointer(missing), format!("there is no {missing}")))
}

fn normal_summary(kind: Type, seen: &Seen<'_>) -> Option<Finding> {
    // The other types need one anyway, and chunks are read out themselves.
    let optional = matches!(
        kind,
        Type::StateChanged
            | Type::ProgressUpdated
            | Type::ToolCompleted
            | Type::AwaitingConfirmation
            | Type::AwaitingClarification
            | Type::HandoffRequested
    );
    let background = seen.urgency.is_some_and(|urgency| urgency.is("background"));
    (optional && !background && seen.normal.is_none())
        .then(|| NORMAL_SUMMARY.at("/summary_normal", "there is no summary_normal"))
}

/// Producers may deviate from the recommended urgency (§3.3.2), but this one passes all that people have set.
fn uncalled_critical(kind: Type, seen: &Seen<'_>) -> Option<Finding> {
    let critical = seen.urgency.is_some_and(|urgency| urgency.is("critical"));
    (critical && !kind.is_critical())
        .then(|| UNCALLED_CRITICAL.at("/urgency", format!("{} need not be critical", kind.name())))
}

fn key_order(object: View<'_>) -> Option<Finding> {
    // The table stands in the recommended order; what a type adds comes between it and the extensions.
    let payload = Envelope::FIELDS.len();
    let rank = |name: View<'_>| {
        if name.is("extensions") {
            return payload + 1;
        }
        Envelope::FIELDS.iter().position(|field| name.is(field.name)).unwrap_or(payload)
    };
    let mut highest = 0;
    for (name, _) in object.entries() {
        let rank = rank(name);
        if rank < highest {
            let name = name.as_str().unwrap_or_default();
            let message = format!("{} stands behind what it should precede", quote(&name));
            return Some(KEY_ORDER.at(shape::pointer(&name), message));
        }
        highest = rank;
    }
    None
}
