//! Interrupts and `resume`: how an ask is put to people, what its end means to the agent, and what the run that goes on is
//! asked with.

use std::collections::HashMap;

use banister_events::activity::{Ask, AskKind, Outcome};
use banister_events::agui::response_schema::ResponseSchema;
use banister_journal::Kind;
use serde_json::{Map, Value, json};

use super::Live;
use crate::facts::{CloseFact, ParkedFact};

/// Interrupt → the entry of `resume` that answers it; the first one counts.
pub(super) type Entries = HashMap<String, Value>;

pub(super) fn entries(input: &Value) -> Entries {
    let mut entries = Entries::new();
    for entry in input.get("resume").and_then(Value::as_array).into_iter().flatten() {
        if let Some(id) = entry.get("interruptId").and_then(Value::as_str) {
            entries.entry(id.to_owned()).or_insert_with(|| entry.clone());
        }
    }
    entries
}

/// How a front end's entry closes an ask. The payload is the agent's business, and passed on as it is.
pub(super) fn closing(ask: &str, entry: &Value) -> (CloseFact, Kind) {
    if entry.get("status").is_some_and(|status| status == "cancelled") {
        return (CloseFact::new(ask, Outcome::Withdrawn, "user"), Kind::Withdrawal);
    }
    let payload = entry.get("payload");
    let says_no = |payload: &Value| {
        payload == &Value::Bool(false)
            || payload.get("approved").is_some_and(|approved| approved == &Value::Bool(false))
    };
    if payload.is_some_and(says_no) {
        return (CloseFact::new(ask, Outcome::Rejected, "user"), Kind::Answer);
    }
    let fact = CloseFact::new(ask, Outcome::Accepted, "user");
    (CloseFact { response: payload.cloned(), ..fact }, Kind::Answer)
}

/// The input of the run that goes on, with all answers; none where too little was kept to make it.
pub(super) fn continued(
    parked: &ParkedFact,
    answers: &HashMap<String, (Ask, CloseFact)>,
    next: &str,
) -> Option<Value> {
    let mut resume = Vec::new();
    for it in &parked.asks {
        let (ask, fact) = answers.get(&it.ask)?;
        resume.push(entry(&it.interrupt, ask, fact)?);
    }
    let mut input = parked.input.as_object()?.clone();
    input.insert("runId".to_owned(), json!(next));
    input.insert("resume".to_owned(), Value::Array(resume));
    Some(Value::Object(input))
}

/// The entry of `resume` for an ask that is closed; none where the answer was not kept.
pub(super) fn entry(interrupt: &str, ask: &Ask, fact: &CloseFact) -> Option<Value> {
    let cancelled = || json!({ "interruptId": interrupt, "status": "cancelled" });
    let resolved = |payload: Value| json!({ "interruptId": interrupt, "status": "resolved", "payload": payload });
    let accepted = match fact.outcome {
        Outcome::Accepted => true,
        Outcome::Rejected => false,
        // What is answered too late, or not at all, can only be called off.
        Outcome::Expired | Outcome::Withdrawn => return Some(cancelled()),
    };
    if let Some(response) = fact.response.as_ref().filter(|_| accepted) {
        return Some(resolved(response.clone()));
    }
    let message = fact.message.as_deref();
    if let Some(schema) = &ask.schema {
        let schema = ResponseSchema::new(schema);
        return match schema.yes_no() {
            Some((yes, _)) if accepted => Some(resolved(schema.with_message(yes, message))),
            Some((_, no)) => Some(resolved(schema.with_message(no, message))),
            None if accepted => None,
            None => Some(cancelled()),
        };
    }
    match &ask.kind {
        AskKind::Clarification { .. } if accepted => None,
        AskKind::Clarification { .. } => Some(cancelled()),
        AskKind::Confirmation | AskKind::Plan { .. } => {
            let mut payload = json!({ "approved": accepted });
            if let (Some(message), Some(fields)) = (message, payload.as_object_mut()) {
                fields.insert("message".to_owned(), json!(message));
            }
            Some(resolved(payload))
        }
    }
}

/// An interrupt's ask as people can answer it: yes or no where its schema obviously has both, words where it has not.
pub(super) fn answerable(mut ask: Ask) -> Ask {
    let Some(schema) = &ask.schema else { return ask };
    let yes_no = ResponseSchema::new(schema).yes_no().is_some();
    match &ask.kind {
        AskKind::Clarification { question, .. } if yes_no => {
            ask.words = ask.words.or_else(|| Some(question.clone()));
            ask.kind = AskKind::Confirmation;
        }
        AskKind::Confirmation if !yes_no => {
            let words = ask.words.clone().unwrap_or_else(|| "The agent asks for data.".to_owned());
            ask.kind = AskKind::question(words);
        }
        _ => {}
    }
    ask
}

/// The input of the run that would go on after this one: all messages and the state so far.
pub(super) fn input_after(body: &[u8], live: &Live) -> Value {
    let mut input: Map<String, Value> = serde_json::from_slice(body).unwrap_or_default();
    let (messages, state) = live.conversation();
    input.shift_remove("resume");
    input.insert("messages".to_owned(), Value::Array(messages));
    match state {
        // Clients leave a state out that is null.
        Value::Null => drop(input.shift_remove("state")),
        state => drop(input.insert("state".to_owned(), state)),
    }
    Value::Object(input)
}
