//! Everything that is told in one event: steps, subagents, state, messages, cards, and what only AG-UI has.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::calls::Call;
use super::{Reader, Sink, raw, trust};
use crate::activity::{Ending, What};
use crate::agui::check;
use crate::agui::enforce::{Boundary, Enforced};
use crate::agui::event::Type;
use crate::check::shape::{Known, says, text};
use crate::json::{Nodes, View};

impl Reader {
    pub(super) fn event(&mut self, kind: Type, event: View<'_>, sink: &mut Sink<'_>) {
        let tag = text(event, "subagentRunId");
        let owned = |name| text(event, name).map(Cow::into_owned);
        let what = match kind {
            Type::RunStarted => return self.run_started(event, sink),
            Type::RunFinished => return self.run_finished(event, sink),
            Type::RunError => return self.run_error(event, sink),
            Type::ToolCallResult => return self.result(event, sink),
            Type::ActivitySnapshot | Type::ActivityDelta => return self.card(kind, event, sink),
            Type::StepStarted => owned("stepName").map(|name| What::StepStarted { name }),
            Type::StepFinished => owned("stepName").map(|name| What::StepEnded { name }),
            Type::StateSnapshot => {
                event.get("snapshot").map(|state| What::StateSet { state: self.value(state) })
            }
            Type::StateDelta => {
                event.get("delta").map(|patch| What::StatePatched { patch: self.value(patch) })
            }
            Type::MessagesSnapshot => self.messages(event),
            Type::SubagentStarted => {
                let Some(id) = tag else { return };
                let name = owned("name").unwrap_or_else(|| id.clone().into_owned());
                let (description, parent) = (owned("description"), owned("parentSubagentRunId"));
                let action = owned("parentToolCallId");
                let id = id.into_owned();
                let what = What::SubagentStarted { id, name, description, parent, action };
                return self.tell(None, what, sink);
            }
            Type::SubagentFinished | Type::SubagentError => {
                let Some(id) = tag else { return };
                return self.subagent_ended(kind, &id, event, sink);
            }
            Type::Custom => Some(self.custom(event)),
            Type::Raw => Some(self.wrapped(event)),
            Type::ReasoningEncryptedValue => Some(raw(kind.name(), event.to_value())),
            // Pieces are steps of their own.
            _ => None,
        };
        if let Some(what) = what {
            self.tell(tag.as_deref(), what, sink);
        }
    }

    /// A value that is left out where nobody asks for it.
    fn value(&self, value: View<'_>) -> Value {
        if self.brief { Value::Null } else { value.to_value() }
    }

    fn subagent_ended(&mut self, kind: Type, id: &str, event: View<'_>, sink: &mut Sink<'_>) {
        let ending = if kind == Type::SubagentError {
            Ending::Failed {
                message: text(event, "message").unwrap_or_default().into_owned(),
                code: text(event, "code").map(Cow::into_owned),
                category: None,
            }
        } else {
            match event.get("outcome").filter(|outcome| says(*outcome, "type", "suspended")) {
                Some(outcome) => {
                    let ids = outcome.get("interruptIds").into_iter().flat_map(View::items);
                    let session = &sink.origin.session;
                    let ids = ids.filter_map(View::as_str);
                    Ending::Suspended { asks: ids.map(|id| self.ask_id(&id, session)).collect() }
                }
                None => Ending::Completed,
            }
        };
        let own = self.own(event.get("metadata"));
        let ending = own.map_or(ending.clone(), |own| trust::ending(&own, ending));
        let result = event.get("result").filter(|result| !result.is_null()).map(View::to_value);
        self.tell(None, What::SubagentEnded { id: id.to_owned(), ending, result }, sink);
    }

    fn card(&mut self, kind: Type, event: View<'_>, sink: &mut Sink<'_>) {
        let (Some(id), Some(activity)) = (text(event, "messageId"), text(event, "activityType"))
        else {
            return;
        };
        let tag = text(event, "subagentRunId");
        let metadata = event.get("metadata");
        if kind == Type::ActivitySnapshot
            && let Some(own) = self.own(metadata)
            && let Some(what) = trust::card(&own)
        {
            if let Some(what) = self.own_ask(what, &id) {
                self.tell(tag.as_deref(), what, sink);
            }
            return;
        }
        self.asked.hear(self.trusts, &id);
        let (id, card) = (id.into_owned(), activity.into_owned());
        let what = if kind == Type::ActivitySnapshot {
            let Some(Value::Object(content)) = event.get("content").map(View::to_value) else {
                return;
            };
            let replace = event.get("replace").and_then(View::as_bool).unwrap_or(true);
            What::CardShown { id: id.clone(), kind: card, content, replace }
        } else {
            let Some(patch) = event.get("patch") else { return };
            What::CardPatched { id: id.clone(), kind: card, patch: self.value(patch) }
        };
        self.tell_detail(kind, ("messageId", &id), Map::new(), metadata, sink);
        self.tell(tag.as_deref(), what, sink);
    }

    fn messages(&mut self, event: View<'_>) -> Option<What> {
        let Value::Array(messages) = enforced(event).get_mut("messages")?.take() else {
            return None;
        };
        for message in &messages {
            if let Some(id) = message.get("id").and_then(Value::as_str) {
                self.asked.hear(self.trusts, id);
            }
            let calls = message.get("toolCalls").and_then(Value::as_array);
            for call in calls.into_iter().flatten() {
                let name = call.pointer("/function/name").and_then(Value::as_str);
                let id = call.get("id").and_then(Value::as_str);
                if let (Some(id), Some(name)) = (id, name) {
                    self.forget_calls();
                    let tool = name.to_owned();
                    self.calls
                        .entry(id.to_owned())
                        .or_insert_with(|| Call { tool, ..Call::default() });
                }
            }
        }
        Some(What::MessagesSet { messages })
    }

    fn custom(&self, event: View<'_>) -> What {
        let restored = self.trusts.then(|| trust::custom(event)).flatten();
        restored.unwrap_or_else(|| raw(Type::Custom.name(), event.to_value()))
    }

    fn wrapped(&self, event: View<'_>) -> What {
        let restored = self.trusts.then(|| trust::wrapped(event)).flatten();
        restored.unwrap_or_else(|| raw(Type::Raw.name(), event.to_value()))
    }
}

/// A rare event as a client goes on with it, or as it came where no client would.
pub(super) fn enforced(event: View<'_>) -> Value {
    let whole = event.to_value();
    let (text, nodes) = Nodes::compose(&whole);
    let (mut known, mut findings) = (Known::default(), Vec::new());
    let document = nodes.document(&text);
    match check::event(&document, &mut Boundary::default(), &mut known, &mut findings) {
        Enforced::Changed(_, changed) => changed.value().clone(),
        _ => whole,
    }
}
