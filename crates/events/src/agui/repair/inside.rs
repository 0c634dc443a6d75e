//! What is wrong inside a field: in messages, parts, calls, interrupts.

use serde_json::{Map, Value, json};

use super::Repairer;
use super::event::{Event, short};
use super::names::words;
use crate::agui::check;
use crate::agui::event::Type;
use crate::check::shape::{Issue, What};
use crate::finding::Rule;

impl Repairer {
    /// Puts right what one place inside a field has wrong; none where nobody can know how.
    pub(super) fn mend_inside(
        &mut self,
        event: &mut Event,
        path: &[String],
        issue: &Issue,
    ) -> Option<()> {
        if matches!(path.first()?.as_str(), "delta" | "patch") {
            // A patch is whole or nothing.
            return None;
        }
        let rule = check::finding(event.kind, issue.clone()).rule;
        let (name, holder) = path.split_last()?;
        let (kind, made_up) = (event.kind, self.made_up);
        let run = event.text(name).filter(|_| matches!(name.as_str(), "threadId" | "runId"));
        let run = run.map(str::to_owned);
        event.touch();
        let holder = at(&mut event.fields, holder)?.as_object_mut()?;
        let old = holder.get(name).cloned();
        let new = match issue.what {
            What::Null => None,
            What::Missing => Some(match (name.as_str(), run) {
                (_, Some(id)) => id.into(),
                ("id" | "toolCallId" | "threadId" | "runId", _) => {
                    self.made_up = made_up + 1;
                    format!("repaired-{}", self.made_up).into()
                }
                _ => missing(holder, name)?,
            }),
            What::Type => Some(text(old.as_ref()?, name)?),
            _ => return None,
        };
        let pointer = &issue.pointer;
        let what = match (&old, &new) {
            (_, None) => format!("removed {pointer} null of {}", kind.name()),
            (Some(old), Some(new)) => {
                format!("replaced {pointer} {} of {} by {}", short(old), kind.name(), short(new))
            }
            (None, Some(new)) => format!("added {pointer} {} to {}", short(new), kind.name()),
        };
        match new {
            Some(new) => holder.insert(name.clone(), new),
            None => holder.shift_remove(name),
        };
        self.tell(rule, what);
        Some(())
    }

    /// Takes out what is beyond mending: the entry of a list, or an optional field; false where the event goes with it.
    pub(super) fn give_up(&mut self, event: &mut Event, beyond: Vec<(Vec<String>, Issue)>) -> bool {
        let mut entries: Vec<(Vec<String>, usize, &'static Rule)> = Vec::new();
        for (path, issue) in beyond {
            let rule = check::finding(event.kind, issue).rule;
            let Some(name) = path.first() else { return false };
            let inner = path.get(1).map(String::as_str).unwrap_or_default();
            if name == "outcome" && !matches!(inner, "pendingToolCallIds" | "interruptIds") {
                self.fail(event);
                return true;
            }
            let is_patch = matches!(name.as_str(), "delta" | "patch");
            if let Some((list, index)) =
                entry(event, &path).filter(|_| !is_patch && name != "outcome")
            {
                entries.push((list, index, rule));
                continue;
            }
            let field = event.kind.shape().fields().find(|field| field.name == *name);
            let (holder, last): (&[String], &String) = match path.as_slice() {
                [outcome, inner, ..] if outcome == "outcome" => {
                    (std::slice::from_ref(outcome), inner)
                }
                _ if field.is_some_and(|field| !field.required) => (&[], name),
                _ => return false,
            };
            event.touch();
            let holder = if holder.is_empty() {
                Some(&mut event.fields)
            } else {
                at(&mut event.fields, holder).and_then(Value::as_object_mut)
            };
            if let Some(old) = holder.and_then(|holder| holder.shift_remove(last)) {
                self.tell(rule, format!("removed {last} {} of {}", short(&old), event.kind.name()));
            }
        }
        // The last first, so that the places of the others stay what they are; what is inside before what is around it.
        entries.sort_by(|one, other| (&other.0, other.1).cmp(&(&one.0, one.1)));
        entries.dedup_by(|one, other| (&one.0, one.1) == (&other.0, other.1));
        event.touch();
        for (list, index, rule) in entries {
            if let Some(items) = at(&mut event.fields, &list).and_then(Value::as_array_mut)
                && index < items.len()
            {
                let old = items.remove(index);
                event.aside = true;
                let what = format!(
                    "removed /{}/{index} {} of {}",
                    list.join("/"),
                    short(&old),
                    event.kind.name()
                );
                self.tell(rule, what);
            }
        }
        true
    }
}

/// The innermost entry of a list that a place lies in.
fn entry(event: &mut Event, path: &[String]) -> Option<(Vec<String>, usize)> {
    (1..path.len()).rev().find_map(|length| {
        let (list, rest) = path.split_at_checked(length)?;
        at(&mut event.fields, list)?.as_array()?;
        Some((list.to_vec(), rest.first()?.parse().ok()?))
    })
}

fn at<'a>(fields: &'a mut Map<String, Value>, path: &[String]) -> Option<&'a mut Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(fields.get_mut(first)?, |value, step| match value {
        Value::Object(fields) => fields.get_mut(step),
        Value::Array(items) => items.get_mut(step.parse::<usize>().ok()?),
        _ => None,
    })
}

/// What a required field says where nothing is known.
fn missing(holder: &mut Map<String, Value>, name: &str) -> Option<Value> {
    let is_activity = holder.get("role").is_some_and(|role| role == "activity");
    Some(match name {
        "content" if is_activity => json!({}),
        "content" | "text" | "arguments" | "description" => "".into(),
        "name" | "activityType" | "reason" => "unknown".into(),
        "messages" => json!([]),
        "type" if holder.contains_key("function") => "function".into(),
        "function" => {
            // Some producers put the function's own fields beside it.
            let arguments =
                holder.shift_remove("arguments").or_else(|| holder.shift_remove("args"));
            let arguments = arguments.map(|arguments| words(Type::ToolCallArgs, &arguments));
            let called = holder.shift_remove("name").unwrap_or_else(|| "unknown".into());
            json!({ "name": called, "arguments": arguments.unwrap_or_default() })
        }
        _ => return None,
    })
}

/// A value that should be a text as one.
fn text(value: &Value, name: &str) -> Option<Value> {
    let kind = if name == "arguments" { Type::ToolCallArgs } else { Type::TextMessageContent };
    let said = matches!(
        name,
        "id" | "toolCallId" | "name" | "content" | "text" | "arguments" | "reason" | "message"
    );
    (said && !value.is_string()).then(|| words(kind, value).into())
}
