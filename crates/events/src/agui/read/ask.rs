//! What a run waits for → asks.

use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::Value;

use super::{Reader, Sink, trust};
use crate::activity::{Ask, AskKind, Choice, ResponseKind, What};
use crate::check::shape::text;
use crate::id;
use crate::json::View;

impl Reader {
    /// Banister's id for an interrupt. Where it is one already, it stays.
    pub(super) fn ask_id(&self, interrupt: &str, session: &str) -> String {
        if self.trusts && interrupt.starts_with("ask_") {
            return interrupt.to_owned();
        }
        id::derive("ask_", &[session, interrupt])
    }

    /// Opens the ask that an interrupt is, and gives its id.
    pub(super) fn interrupted(
        &mut self,
        interrupt: View<'_>,
        sink: &mut Sink<'_>,
    ) -> Option<String> {
        let token = text(interrupt, "id")?;
        if let Some(known) = self.asks.get(&token) {
            return Some(known.id.clone());
        }
        let own = self.own(interrupt.get("metadata"));
        let mut ask = self.ask(interrupt, &token, &sink.origin.session);
        if let Some(own) = &own {
            trust::ask(own, &mut ask);
        }
        let id = ask.id.clone();
        self.asks.open(ask.clone());
        if let Some(original) = own.and_then(|own| trust::word(&own, "token")) {
            ask.token = original;
        }
        let owner = text(interrupt, "subagentRunId");
        self.tell(owner.as_deref(), What::AskOpened { ask: Box::new(ask) }, sink);
        Some(id)
    }

    fn ask(&self, interrupt: View<'_>, token: &str, session: &str) -> Ask {
        let words = text(interrupt, "message").map(Cow::into_owned);
        let reason = text(interrupt, "reason").unwrap_or_default();
        let schema = interrupt.get("responseSchema").map(View::to_value).filter(Value::is_object);
        let call = text(interrupt, "toolCallId");
        let kind = if confirms(&reason, call.is_some(), schema.as_ref()) {
            AskKind::Confirmation
        } else {
            let question = words.clone().unwrap_or_else(|| reason.into_owned());
            question_of(question, schema.as_ref())
        };
        let action = call.and_then(|id| self.calls.get(&*id).map(|call| call.action(&id)));
        Ask {
            action,
            deadline: text(interrupt, "expiresAt").and_then(|time| moment(&time)),
            words,
            schema,
            ..Ask::new(self.ask_id(token, session), token, kind)
        }
    }
}

/// Whether a yes is what is asked for.
fn confirms(reason: &str, about_call: bool, schema: Option<&Value>) -> bool {
    let approves = |schema: &Value| schema.pointer("/properties/approved").is_some();
    match reason {
        "confirmation" | "tool_call" => true,
        "input_required" => schema.is_some_and(approves),
        _ => schema.map_or(about_call, approves),
    }
}

/// A question, with the answers that its schema names.
fn question_of(question: String, schema: Option<&Value>) -> AskKind {
    let (mut kinds, mut choices) = (Vec::new(), Vec::new());
    let inner = schema.and_then(|schema| schema.pointer("/properties/response")).or(schema);
    if let Some(schema) = inner {
        let choice = |value: &str, label: &str| Choice { value: value.into(), label: label.into() };
        let listed = |name: &str| schema.get(name).and_then(Value::as_array).into_iter().flatten();
        choices.extend(listed("enum").filter_map(Value::as_str).map(|word| choice(word, word)));
        choices.extend(["oneOf", "anyOf"].into_iter().flat_map(listed).filter_map(|one| {
            let value = one.get("const")?.as_str()?;
            Some(choice(value, one.get("title").and_then(Value::as_str).unwrap_or(value)))
        }));
        let types = match schema.get("type") {
            Some(Value::Array(types)) => types.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(one)) => vec![one.as_str()],
            _ => Vec::new(),
        };
        let has = |name: &str| types.contains(&name);
        if !choices.is_empty() {
            kinds.push(ResponseKind::MultipleChoice);
        } else if has("string") {
            kinds.push(ResponseKind::Freetext);
        }
        if has("boolean") {
            kinds.push(ResponseKind::YesNo);
        }
        if has("number") || has("integer") {
            kinds.push(ResponseKind::Numeric);
        }
    }
    let default = inner.and_then(|schema| schema.get("default")?.as_str()).map(str::to_owned);
    AskKind::Clarification { question, kinds, choices, context: None, default }
}

fn moment(text: &str) -> Option<Timestamp> {
    text.parse().ok().or_else(|| {
        let civil = text.parse::<jiff::civil::DateTime>().ok()?;
        jiff::tz::TimeZone::UTC.to_timestamp(civil).ok()
    })
}
