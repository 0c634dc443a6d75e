//! What an event lacks or has wrongly, put right from what is known.

use serde_json::Value;

use super::Repairer;
use super::event::{Event, short};
use crate::agui::check;
use crate::agui::event::Type;
use crate::agui::step::Item;
use crate::check::shape::{self, Issue, Kind, What};

/// How often an event is looked at again after something in it was put right.
const PASSES: usize = 16;

impl Repairer {
    /// The event with everything put right that keeps it from being one; as it is where nobody can know how.
    pub(super) fn mend(&mut self, mut event: Event) -> Result<Event, Event> {
        if Type::parse(event.text("type").unwrap_or_default()) != Some(event.kind) {
            event.set("type", event.kind.name());
        }
        for _ in 0..PASSES {
            let message = event.to_message();
            let document = message.document();
            if document.too_deep().is_some() {
                return Err(event);
            }
            let kind = event.kind;
            let mut issues = shape::compare(kind.shape(), document.root(), &mut self.known);
            // A client takes out what it does not know.
            issues.retain(|issue| !matches!(issue.what, What::Foreign | What::Member));
            if issues.is_empty() {
                return Ok(event);
            }
            let mut beyond = Vec::new();
            let count = issues.len();
            for issue in issues {
                let path = issue.pointer.split('/').skip(1);
                let path: Vec<String> =
                    path.map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
                let mended = match path.as_slice() {
                    [name] => self.mend_field(&mut event, name, &issue),
                    path => self.mend_inside(&mut event, path, &issue),
                };
                if mended.is_none() {
                    beyond.push((path, issue));
                }
                if event.kind != kind {
                    break;
                }
            }
            // What is beyond mending goes last, so that the places of everything else are those of what came.
            if beyond.len() == count && event.kind == kind && !self.give_up(&mut event, beyond) {
                return Err(event);
            }
        }
        Err(event)
    }

    /// Puts one field right; none where nobody can know how.
    fn mend_field(&mut self, event: &mut Event, name: &str, issue: &Issue) -> Option<()> {
        let kind = event.kind;
        let rule = check::finding(kind, issue.clone()).rule;
        let field = kind.shape().fields().find(|field| field.name == name)?;
        let old = event.fields.get(name).cloned();
        if name == "outcome" && issue.what != What::Null {
            self.fail(event);
            return Some(());
        }
        let written = match (&old, &field.kind) {
            (Some(value @ (Value::Number(_) | Value::Bool(_))), Kind::Text { .. }) => {
                Some(value.to_string().into())
            }
            (Some(value @ Value::Object(_)), Kind::TextOr(_)) => Some(value.to_string().into()),
            _ => None,
        };
        let new = match written {
            None if !field.required => None,
            None => Some(self.guess(event, name)?),
            written => written,
        };
        let what = match (old.as_ref().map(short), new.as_ref().map(short)) {
            (Some(old), Some(new)) => format!("replaced {name} {old} of {} by {new}", kind.name()),
            (Some(old), None) => format!("removed {name} {old} of {}", kind.name()),
            (None, new) => format!("added {name} {} to {}", new.unwrap_or_default(), kind.name()),
        };
        self.tell(rule, what);
        match new {
            Some(new) => event.set(name, new),
            None => {
                event.remove(name);
            }
        }
        Some(())
    }

    /// What a required field most likely should have said.
    fn guess(&mut self, event: &mut Event, name: &str) -> Option<Value> {
        let kind = event.kind;
        let item = match kind {
            Type::ToolCallArgs | Type::ToolCallEnd => Some(Item::Tool),
            Type::TextMessageContent | Type::TextMessageEnd => Some(Item::Text),
            Type::ReasoningMessageContent | Type::ReasoningMessageEnd => Some(Item::Reasoning),
            Type::ReasoningEnd => Some(Item::Span),
            _ => None,
        };
        Some(match (kind, name) {
            (Type::StateDelta, "delta") => return None,
            // Words that stand somewhere else are not to be taken for none.
            (_, "delta") if has_other_words(event) => return None,
            (_, "delta") => "".into(),
            (_, "role") => "reasoning".into(),
            (Type::RunError | Type::SubagentError, "message") => {
                event.invented = true;
                "the agent gave no reason".into()
            }
            (Type::RunStarted | Type::RunFinished, "threadId" | "runId") => {
                let run = self.state.run.as_ref().filter(|_| kind == Type::RunFinished);
                let id = run.map(|(thread, run)| if name == "threadId" { thread } else { run });
                id.cloned().unwrap_or_else(|| self.make_up()).into()
            }
            (_, "messageId" | "toolCallId")
                if kind != Type::ToolCallResult || name == "messageId" =>
            {
                let open = item.and_then(|item| self.state.newest(item));
                open.unwrap_or_else(|| self.make_up()).into()
            }
            (Type::StepFinished, "stepName") => self.state.newest_step()?.into(),
            (Type::SubagentFinished | Type::SubagentError, "subagentRunId") => {
                self.state.newest_subagent()?.into()
            }
            (Type::StepStarted, _) | (_, "subagentRunId") => self.make_up().into(),
            (_, "toolCallName" | "name" | "activityType") => "unknown".into(),
            (Type::Custom, "value") | (Type::Raw, "event") => Value::Null,
            _ => return None,
        })
    }
}

/// Whether an event says something in a field that is not known.
fn has_other_words(event: &Event) -> bool {
    let is_known = |name: &str| event.kind.shape().fields().any(|field| field.name == name);
    let says = |value: &Value| !matches!(value, Value::Null) && value.as_str() != Some("");
    event.fields.iter().any(|(name, value)| !is_known(name) && says(value))
}
