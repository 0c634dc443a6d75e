//! Calls, and what became of them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Reader, Sink, raw, trust};
use crate::activity::{Action, Status, What};
use crate::agui::event::Type;
use crate::agui::step::Item;
use crate::check::shape::text;
use crate::json::View;

/// How many calls are remembered; when there are more, those that have their result are forgotten.
const CALLS: usize = 16_384;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) owner: Option<Box<str>>,
    pub(super) arguments: String,
    pub(super) answered: bool,
    /// Whether its arguments are being told.
    #[serde(default)]
    pub(super) open: bool,
}

impl Call {
    /// What it is called with. Arguments that are not JSON are kept as the text they are.
    fn input(&self) -> Option<Value> {
        let text = &self.arguments;
        (!text.is_empty())
            .then(|| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str())))
    }

    pub(super) fn action(&self, id: &str) -> Action {
        Action { input: self.input(), ..Action::unseen(id, &self.tool) }
    }
}

impl Reader {
    /// Makes room for one more call.
    pub(super) fn forget_calls(&mut self) {
        if self.calls.len() < CALLS {
            return;
        }
        self.calls.retain(|_, call| !call.answered);
        if self.calls.len() > CALLS / 2 {
            self.calls.clear();
        }
        self.argument_bytes = self.calls.values().map(|call| call.arguments.len()).sum();
    }

    pub(super) fn is_open(&self, call: &str) -> bool {
        self.calls.get(call).is_some_and(|call| call.open)
    }

    /// Tells the calls that end with their run, or with the stream, before their arguments do. One that may `wait` for an
    /// answer is not over.
    pub(super) fn cut_calls(&mut self, wait: bool, sink: &mut Sink<'_>) {
        let open = self.calls.iter().filter(|(_, call)| call.open);
        let open: Vec<String> = open.map(|(id, _)| id.clone()).collect();
        for id in open {
            self.close(Item::Tool, &id, None, None, sink);
            let Some(call) = self.calls.get(&id).filter(|_| !wait) else { continue };
            let (tool, owner) = (call.tool.clone(), call.owner.clone());
            if self.trusts {
                // Without a message: there was no result.
                let none = json!({ "type": Type::ToolCallResult.name(), "toolCallId": id });
                self.tell(owner.as_deref(), raw(Type::ToolCallResult.name(), none), sink);
            }
            let what = What::ActionEnded {
                id,
                tool,
                status: Status::Cancelled,
                output: None,
                error: None,
                duration_ms: None,
            };
            self.tell(owner.as_deref(), what, sink);
        }
    }

    pub(super) fn result(&mut self, event: View<'_>, sink: &mut Sink<'_>) {
        let Some(id) = text(event, "toolCallId") else { return };
        let metadata = event.get("metadata");
        if self.is_open(&id) {
            self.close(Item::Tool, &id, None, None, sink);
        }
        if let Some(message) = text(event, "messageId") {
            self.asked.hear(self.trusts, &message);
            let fields = [("messageId".to_owned(), Value::from(message))].into_iter().collect();
            self.tell_detail(Type::ToolCallResult, ("toolCallId", &id), fields, metadata, sink);
        }
        let (mut tool, mut owner) = ("unknown".to_owned(), text(event, "subagentRunId"));
        if let Some(call) = self.calls.get_mut(&*id) {
            tool.clone_from(&call.tool);
            call.answered = true;
            self.argument_bytes -= call.arguments.len();
            call.arguments = String::new();
            owner = owner.or_else(|| call.owner.as_deref().map(|own| Cow::Owned(own.to_owned())));
        }
        let natural = What::ActionEnded {
            id: id.into_owned(),
            tool,
            status: Status::Success,
            output: event.get("content").map(View::to_value),
            error: None,
            duration_ms: None,
        };
        let what = match self.own(metadata) {
            Some(own) => trust::ended(&own, natural),
            None => Some(natural),
        };
        if let Some(what) = what {
            self.tell(owner.as_deref(), what, sink);
        }
    }
}
