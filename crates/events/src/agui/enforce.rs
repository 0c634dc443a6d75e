//! What a client takes out of an event before anybody acts on it, and what it refuses.
//!
//! An event first meets the boundary, where shapes that 1.0 retired become their successors: `THINKING_*` events,
//! `binary` parts, the nulls that old producers send. Then whatever the protocol does not know leaves: the whole event
//! where its type is not known ([`Enforced::Dropped`]), fields, and members of unions that nobody has heard of, with
//! whatever cannot stand without them. What is left either fits its table or ends the run ([`Enforced::Fatal`]).
//!
//! Almost every event fits as it is and is not copied. Ids that retired events lack are made up by counting, as there
//! is no chance here; other clients make up others.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::check::{self, LEGACY_PART, MALFORMED, TOLERATED_NULL};
use super::event::{RETIRED, Type};
use super::retired::Retired;
use crate::check::shape::{self, Issue, Kind, Known, Shape, What};
use crate::event::Protocol;
use crate::finding::{Finding, Severity};
use crate::json::Document;
use crate::message::Message;

mod legacy;

/// What became of an event.
#[derive(Debug, Clone)]
pub(crate) enum Enforced {
    /// It goes on as it came.
    Whole(Type),
    /// It goes on as this event says.
    Changed(Type, Message),
    /// It goes no further; the run does.
    Dropped,
    /// It ends the run.
    Fatal,
}

/// The boundary that a stream's events pass, one after another.
#[derive(Debug, Clone, Default)]
pub(crate) struct Boundary {
    /// Whether the rules that apply only on request apply to what passes.
    pub(super) strict: bool,
    retired: Retired,
}

impl Boundary {
    /// A boundary at the beginning of a stream.
    pub(crate) fn new(strict: bool) -> Self {
        Self { strict, ..Self::default() }
    }

    /// Takes out of an event what does not belong there, and tells of it. The type's own finding is the caller's.
    pub(crate) fn enforce(
        &mut self,
        name: &str,
        kind: Option<Type>,
        message: &Document<'_>,
        known: &mut Known,
        findings: &mut Vec<Finding>,
    ) -> Enforced {
        if let Some(kind) = kind {
            return enforce(kind, message, known, findings);
        }
        let retired = RETIRED.iter().find(|(old, _)| *old == name);
        let successor = retired.and_then(|(_, new)| Type::parse(new));
        let (Some(kind), Value::Object(mut event)) = (successor, message.root().to_value()) else {
            return Enforced::Dropped;
        };
        event.insert("type".into(), kind.name().into());
        event.insert("messageId".into(), self.retired.id(name).into());
        if kind == Type::ReasoningMessageStart {
            event.insert("role".into(), "reasoning".into());
        }
        // A span has no title any more.
        event.shift_remove("title");
        let successor = Message::of_value(Protocol::Agui, Value::Object(event));
        match enforce(kind, &successor.document(), known, findings) {
            Enforced::Whole(kind) => Enforced::Changed(kind, successor),
            other => other,
        }
    }
}

fn enforce(
    kind: Type,
    message: &Document<'_>,
    known: &mut Known,
    findings: &mut Vec<Finding>,
) -> Enforced {
    let issues = shape::compare(kind.shape(), message.root(), known);
    if issues.is_empty() {
        return Enforced::Whole(kind);
    }
    let Value::Object(mut event) = message.root().to_value() else {
        return Enforced::Fatal;
    };
    let legacy = legacy::upgrade(kind, &mut event);
    let mut removed = HashSet::new();
    strip_record(kind.shape(), &mut event, &mut String::new(), &mut removed);
    let judged = findings.len();
    for issue in issues {
        findings.extend(judge(kind, issue, &legacy, &removed));
    }
    let is_fatal = |finding: &Finding| finding.rule.severity == Severity::Error;
    if findings.get(judged..).is_some_and(|new| new.iter().any(is_fatal)) {
        return Enforced::Fatal;
    }
    let changed = Message::of_value(Protocol::Agui, Value::Object(event));
    let left = shape::compare(kind.shape(), changed.document().root(), known);
    // What the boundary made of a retired shape can be malformed itself.
    if left.is_empty() {
        return Enforced::Changed(kind, changed);
    }
    findings.extend(left.into_iter().map(|issue| MALFORMED.at(issue.pointer, issue.message)));
    Enforced::Fatal
}

/// The finding for an issue of the event as it came, if it is still one after what left.
fn judge(
    kind: Type,
    issue: Issue,
    legacy: &HashSet<String>,
    removed: &HashSet<String>,
) -> Option<Finding> {
    let upgraded = |pointer: &str| legacy.contains(pointer);
    let container = issue.pointer.rsplit_once('/').map_or("", |(container, _)| container);
    match issue.what {
        What::Null if upgraded(&issue.pointer) => {
            return Some(TOLERATED_NULL.at(issue.pointer, issue.message));
        }
        What::Member if upgraded(container) => {
            return Some(LEGACY_PART.at(container.to_owned(), "binary parts are retired"));
        }
        What::Member => {}
        _ if containers(&issue.pointer).any(|container| removed.contains(container)) => {
            return None;
        }
        _ => {}
    }
    Some(check::finding(kind, issue))
}

/// The pointers to everything that a value stands in.
fn containers(pointer: &str) -> impl Iterator<Item = &str> {
    pointer.match_indices('/').filter_map(|(at, _)| pointer.get(..at))
}

/// Removes what the shape does not know; false where the object itself has to go.
fn strip_record(
    shape: &Shape,
    object: &mut Map<String, Value>,
    path: &mut String,
    removed: &mut HashSet<String>,
) -> bool {
    let mut stands = true;
    let here = path.len();
    object.retain(|name, value| {
        path.push_str(&shape::pointer(name));
        let keep = match shape.fields().find(|field| field.name == name) {
            None => !shape.closed,
            Some(field) => {
                let keep = strip(&field.kind, value, path, removed);
                // What is required and unknown takes its object with it.
                stands &= keep || !field.required;
                keep
            }
        };
        if !keep {
            removed.insert(path.clone());
        }
        path.truncate(here);
        keep
    });
    stands
}

/// Removes what is not known; false where the value itself has to go.
fn strip(kind: &Kind, value: &mut Value, path: &mut String, removed: &mut HashSet<String>) -> bool {
    match (kind, value) {
        (Kind::Record(shape), Value::Object(object)) => strip_record(shape, object, path, removed),
        (Kind::Union { tag, members }, Value::Object(object)) => {
            let word = object.get(*tag).and_then(Value::as_str);
            let member = members.iter().find(|(name, _)| word == Some(name));
            member.is_some_and(|(_, shape)| strip_record(shape, object, path, removed))
        }
        (Kind::List { item, .. } | Kind::TextOr(item), Value::Array(items)) => {
            let (here, mut index) = (path.len(), 0usize);
            items.retain_mut(|value| {
                path.push('/');
                path.push_str(&index.to_string());
                let keep = strip(item, value, path, removed);
                if !keep {
                    removed.insert(path.clone());
                }
                path.truncate(here);
                index += 1;
                keep
            });
            true
        }
        _ => true,
    }
}

#[cfg(test)]
#[path = "enforce_tests.rs"]
mod tests;
