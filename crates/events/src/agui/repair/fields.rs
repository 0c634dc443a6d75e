//! What an event lacks or has wrongly, put right from what is known.

use serde_json::{Value, json};

use super::{Event, Repairer, raw};
use crate::agui::check::{self, MALFORMED};
use crate::agui::event::{RETIRED, Type};
use crate::agui::step::Item;
use crate::check::shape::{self, Issue, Shape, What};
use crate::json::Parser;

/// How many faults of one event are put right.
const FAULTS: usize = 64;

/// The type whose name is written almost like this.
pub(super) fn meant(name: &str) -> Option<Type> {
    let squeezed = |text: &str| text.replace(['_', '-', '.', ' '], "").to_ascii_lowercase();
    Type::ALL.into_iter().find(|kind| squeezed(kind.name()) == squeezed(name))
}

/// What a retired type is today.
pub(super) fn successor(name: &str) -> Option<Type> {
    let (_, new) = RETIRED.iter().find(|(old, _)| *old == name)?;
    Type::parse(new)
}

impl Repairer {
    /// The event with everything put right that keeps it from being one; inside a `RAW` event where that fails.
    pub(super) fn mend(&mut self, mut event: Event, original: &Value) -> Event {
        for _ in 0..FAULTS {
            let bytes = Value::Object(event.fields.clone()).to_string().into_bytes();
            let mut parser = Parser::default();
            let Ok(document) = parser.parse(&bytes) else { break };
            let shape = event.kind.shape();
            let issues = shape::compare(shape, document.root(), &mut self.known);
            // What is not known may be what is missing, under another name.
            let order = |issue: &Issue| match issue.what {
                What::Foreign => 2,
                What::Missing => 1,
                _ => 0,
            };
            let Some(issue) = issues.into_iter().min_by_key(order) else {
                return event;
            };
            let (rule, pointer) = (check::finding(event.kind, issue.clone()).rule, &issue.pointer);
            let Some(what) = self.mend_one(&mut event, shape, &issue) else {
                let name = original.get("type").and_then(Value::as_str).unwrap_or_default();
                self.tell(rule, format!("put {name} into a RAW event, for {pointer}"));
                return raw(original);
            };
            self.tell(rule, what);
        }
        self.tell(&MALFORMED, "put an event into a RAW event");
        raw(original)
    }

    /// Puts one thing right and says how; none where nobody can know how.
    fn mend_one(&mut self, event: &mut Event, shape: &Shape, issue: &Issue) -> Option<String> {
        let mut steps = issue.pointer.split('/').skip(1).map(str::to_owned);
        let name = steps.next()?;
        let inner = steps.next();
        let field = shape.fields().find(|field| field.name == name);
        let Some(field) = field else {
            event.remove(&name.replace("~1", "/").replace("~0", "~"));
            return Some(format!("took {name} out"));
        };
        if name == "outcome" && event.kind == Type::RunFinished && issue.what != What::Foreign {
            // Without its outcome the run would be a success.
            let said = event.remove("outcome").unwrap_or_default();
            *event = Event::made(
                Type::RunError,
                json!({ "message": "the run ended with an outcome that cannot be read",
                        "code": "malformed_outcome", "rawEvent": { "outcome": said } }),
            );
            return Some("RUN_FINISHED became RUN_ERROR, as its outcome cannot be read".to_owned());
        }
        if !field.required {
            event.remove(&name);
            return Some(format!("took {name} out"));
        }
        if let Some(index) = inner.and_then(|inner| inner.parse::<usize>().ok()) {
            // A patch is whole or nothing; what else stands in lists can stand alone.
            let list = event.fields.get_mut(&name).and_then(Value::as_array_mut);
            let list = list.filter(|_| matches!(name.as_str(), "messages" | "content"))?;
            if index < list.len() {
                list.remove(index);
            }
            return Some(format!("took entry {index} out of {name}"));
        }
        let value = written(event, &name).or_else(|| self.guess(event, &name))?;
        event.set(&name, value);
        Some(format!("gave {name} a value"))
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
            (_, "delta") if kind != Type::StateDelta => "".into(),
            (_, "role") => "reasoning".into(),
            (Type::StateSnapshot, "snapshot") => event.remove("state")?,
            (Type::StateDelta, "delta") => event.remove("patch").filter(Value::is_array)?,
            (Type::ActivityDelta, "patch") => event.remove("delta").filter(Value::is_array)?,
            (Type::RunError | Type::SubagentError, "message") => reason(event).into(),
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

/// A number or an object where a text should stand, as text.
fn written(event: &Event, name: &str) -> Option<Value> {
    match event.fields.get(name)? {
        value @ (Value::Number(_) | Value::Bool(_)) => Some(value.to_string().into()),
        value @ Value::Object(_) if name == "content" || name == "delta" => {
            let text = event.kind == Type::ToolCallResult || event.kind == Type::ToolCallArgs;
            text.then(|| value.to_string().into())
        }
        _ => None,
    }
}

/// Why a run failed, in fields that other producers use for it.
fn reason(event: &mut Event) -> String {
    let error = event.remove("error").unwrap_or_default();
    let said = error.as_str().or_else(|| error.get("message").and_then(Value::as_str));
    said.unwrap_or("the agent gave no reason").to_owned()
}
