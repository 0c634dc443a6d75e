//! Activities → AG-UI events.
//!
//! A front end attaches to a session as if it were an AG-UI agent: one run, whose id the front end chose. What already
//! happened is restated as one `MESSAGES_SNAPSHOT` ([`History`]); what happens from then on streams ([`Writer`]) until
//! the turn ends. Both give the same messages the same ids, so a client that comes late ends with what a client that was
//! there from the start has.
//!
//! The writer holds what is open and cannot emit a stream that breaks the protocol: it closes every message before the
//! run ends and emits exactly one terminal event.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::event::PROTOCOL_VERSION;
use crate::activity::{Action, Activity, Ask, Decision, Ending, Outcome, Status, What};
use crate::event::time_text;
use crate::{id, limits, text};

/// How much history one snapshot restates: what an event may hold, with room for the rest of it.
const SNAPSHOT_BYTES: usize = limits::MESSAGE_BYTES / 2;

/// The activity type under which an open ask is shown.
pub const ASK: &str = "banister.ask";

/// Writes one run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Writer {
    thread: String,
    run: String,
    phase: Phase,
    /// The message that is being streamed.
    streaming: Option<String>,
    refused: BTreeSet<String>,
    called: BTreeSet<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Phase {
    Fresh,
    Running,
    Finished,
}

impl Writer {
    /// A writer for the run a client asked for.
    pub fn new(thread: &str, run: &str) -> Self {
        Self {
            thread: thread.to_owned(),
            run: run.to_owned(),
            phase: Phase::Fresh,
            streaming: None,
            refused: BTreeSet::new(),
            called: BTreeSet::new(),
        }
    }

    /// Whether the terminal event was written.
    pub fn is_finished(&self) -> bool {
        self.phase == Phase::Finished
    }

    /// Begins the run and restates what happened before it.
    pub fn begin(&mut self, history: &History) -> Vec<Value> {
        if self.phase != Phase::Fresh {
            return Vec::new();
        }
        self.phase = Phase::Running;
        self.refused.clone_from(&history.refused);
        self.called.clone_from(&history.called);
        let mut out = vec![json!({
            "type": "RUN_STARTED", "threadId": self.thread, "runId": self.run,
            "protocolVersion": PROTOCOL_VERSION,
        })];
        if !history.messages.is_empty() {
            out.push(json!({ "type": "MESSAGES_SNAPSHOT", "messages": history.messages() }));
        }
        for (id, content) in &history.asks {
            out.push(ask_event(id, content));
        }
        out
    }

    /// The events of one activity.
    pub fn write(&mut self, activity: &Activity) -> Vec<Value> {
        if self.phase != Phase::Running {
            return Vec::new();
        }
        let mut out = Vec::new();
        if !matches!(&activity.what, What::Said { .. }) {
            self.close_text(&mut out);
        }
        match &activity.what {
            What::TurnStarted { request: Some(request), .. } => {
                let id = message_id(activity, "req");
                out.push(json!({ "type": "TEXT_MESSAGE_START", "messageId": id, "role": "user" }));
                out.push(content(&id, request));
                out.push(json!({ "type": "TEXT_MESSAGE_END", "messageId": id }));
            }
            What::TurnEnded { ending, .. } => self.finish(Some(ending), &mut out),
            What::SessionEnded { .. } => self.finish(None, &mut out),
            What::Said { message, text, last, .. } => {
                self.said(activity, message, text, *last, &mut out);
            }
            What::ActionRequested { action, gate } => {
                self.called(action, &mut out);
                if let Some(gate) = gate.as_ref().filter(|gate| gate.decision == Decision::Deny) {
                    self.refuse(activity, &action.id, &gate.reason, &mut out);
                }
            }
            What::ActionDenied { action, reason, .. } => {
                self.called(action, &mut out);
                self.refuse(activity, &action.id, reason.as_deref().unwrap_or("refused"), &mut out);
            }
            What::ActionEnded { id, tool, status, output, error, .. } => {
                let words = result_text(output.as_ref(), error.as_deref());
                if let Some(words) = end_text(self.refused.contains(id), *status, words) {
                    self.called(&Action::unseen(id, tool), &mut out);
                    out.push(result(activity, id, &words));
                }
            }
            What::AskOpened { ask } => out.push(ask_event(&ask.id, &ask_content(activity, ask))),
            What::AskClosed { id, action, outcome, by, message, .. } => {
                let content = closed_content(action.as_ref(), *outcome, by, message.as_deref());
                out.push(ask_event(id, &content));
                if let (Some(action), Outcome::Rejected | Outcome::Expired) = (action, outcome) {
                    self.called(action, &mut out);
                    self.refuse(
                        activity,
                        &action.id,
                        message.as_deref().unwrap_or("refused"),
                        &mut out,
                    );
                }
            }
            _ => {}
        }
        out
    }

    /// Ends the run in good order, where the turn did not.
    pub fn finish(&mut self, ending: Option<&Ending>, out: &mut Vec<Value>) {
        if self.phase != Phase::Running {
            return;
        }
        self.close_text(out);
        self.phase = Phase::Finished;
        let mut event = json!({
            "type": "RUN_FINISHED", "threadId": self.thread, "runId": self.run,
        });
        match ending {
            Some(Ending::Failed { message, .. }) => {
                event = json!({ "type": "RUN_ERROR", "message": message });
            }
            Some(Ending::Cancelled { .. }) => {
                if let Some(event) = event.as_object_mut() {
                    event.insert("outcome".into(), json!({ "type": "cancelled" }));
                }
            }
            Some(Ending::Completed | Ending::Suspended { .. }) | None => {}
        }
        out.push(event);
    }

    fn said(
        &mut self,
        activity: &Activity,
        message: &str,
        said: &str,
        last: bool,
        out: &mut Vec<Value>,
    ) {
        let id = said_id(activity, message);
        if self.streaming.as_ref().is_some_and(|open| *open != id) {
            self.close_text(out);
        }
        if self.streaming.is_none() {
            out.push(json!({
                "type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant",
            }));
            self.streaming = Some(id.clone());
        }
        out.push(content(&id, said));
        if last {
            self.close_text(out);
        }
    }

    fn close_text(&mut self, out: &mut Vec<Value>) {
        if let Some(open) = self.streaming.take() {
            out.push(json!({ "type": "TEXT_MESSAGE_END", "messageId": open }));
        }
    }

    fn called(&mut self, action: &Action, out: &mut Vec<Value>) {
        if !self.called.insert(action.id.clone()) {
            return;
        }
        let id = &action.id;
        out.push(json!({
            "type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": call_name(action),
        }));
        out.push(json!({ "type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": arguments(action) }));
        out.push(json!({ "type": "TOOL_CALL_END", "toolCallId": id }));
    }

    fn refuse(&mut self, activity: &Activity, id: &str, reason: &str, out: &mut Vec<Value>) {
        if self.refused.insert(id.to_owned()) {
            out.push(result(activity, id, &refusal(reason)));
        }
    }
}

/// The conversation so far, as AG-UI messages.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct History {
    messages: Vec<Value>,
    /// Message id → its place.
    places: BTreeMap<String, usize>,
    /// Tool call id → the results that follow its message, kept apart until [`History::messages`] is asked.
    results: BTreeMap<String, Vec<Value>>,
    asks: BTreeMap<String, Value>,
    refused: BTreeSet<String>,
    called: BTreeSet<String>,
    turn_open: bool,
}

impl History {
    /// Whether the agent is at work on a request.
    pub fn turn_open(&self) -> bool {
        self.turn_open
    }

    /// Takes one activity in.
    pub fn add(&mut self, activity: &Activity) {
        match &activity.what {
            What::TurnStarted { request, .. } => {
                self.turn_open = true;
                if let Some(request) = request {
                    let id = message_id(activity, "req");
                    let words = text::redact(request);
                    self.push(&id, json!({ "id": id, "role": "user", "content": words }));
                }
            }
            What::TurnEnded { .. } | What::SessionEnded { .. } => {
                self.turn_open = false;
                self.asks.clear();
            }
            What::Said { message, text, .. } => {
                let id = said_id(activity, message);
                let text = text::redact(text);
                let place = self.places.get(&id).copied();
                match place.and_then(|place| self.messages.get_mut(place)) {
                    Some(Value::Object(message)) => {
                        if let Some(Value::String(so_far)) = message.get_mut("content") {
                            so_far.push_str(&text);
                        }
                    }
                    _ => self.push(&id, json!({ "id": id, "role": "assistant", "content": text })),
                }
            }
            What::ActionRequested { action, gate } => {
                self.called(action);
                if let Some(gate) = gate.as_ref().filter(|gate| gate.decision == Decision::Deny) {
                    self.refuse(activity, &action.id, &gate.reason);
                }
            }
            What::ActionDenied { action, reason, .. } => {
                self.called(action);
                self.refuse(activity, &action.id, reason.as_deref().unwrap_or("refused"));
            }
            What::ActionEnded { id, tool, status, output, error, .. } => {
                let words = result_text(output.as_ref(), error.as_deref());
                if let Some(words) = end_text(self.refused.contains(id), *status, words) {
                    self.called(&Action::unseen(id, tool));
                    self.result(activity, id, &words);
                }
            }
            What::AskOpened { ask } => {
                self.asks.insert(ask.id.clone(), ask_content(activity, ask));
            }
            What::AskClosed { id, action, outcome, message, .. } => {
                self.asks.remove(id);
                if let (Some(action), Outcome::Rejected | Outcome::Expired) = (action, outcome) {
                    self.called(action);
                    self.refuse(activity, &action.id, message.as_deref().unwrap_or("refused"));
                }
            }
            _ => {}
        }
    }

    /// The messages, each tool's results behind the message that called it. Of a history that no event can hold, the
    /// newest ones.
    pub fn messages(&self) -> Vec<Value> {
        let mut all = Vec::new();
        let mut room = SNAPSHOT_BYTES;
        for message in self.messages.iter().rev() {
            let id = message.get("id").and_then(Value::as_str).unwrap_or_default();
            let results = self.results.get(id).map(Vec::as_slice).unwrap_or_default();
            let weight =
                results.iter().chain([message]).map(|part| part.to_string().len() + 1).sum();
            let Some(left) = room.checked_sub(weight) else { break };
            room = left;
            all.extend(results.iter().rev().cloned());
            all.push(message.clone());
        }
        all.reverse();
        all
    }

    fn push(&mut self, id: &str, message: Value) {
        if !self.places.contains_key(id) {
            self.places.insert(id.to_owned(), self.messages.len());
            self.messages.push(message);
        }
    }

    fn called(&mut self, action: &Action) {
        if self.called.insert(action.id.clone()) {
            let call = json!({
                "id": action.id, "type": "function",
                "function": { "name": call_name(action), "arguments": arguments(action) },
            });
            self.push(
                &action.id,
                json!({ "id": action.id, "role": "assistant", "toolCalls": [call] }),
            );
        }
    }

    fn refuse(&mut self, activity: &Activity, id: &str, reason: &str) {
        if self.refused.insert(id.to_owned()) {
            self.result(activity, id, &refusal(reason));
        }
    }

    fn result(&mut self, activity: &Activity, id: &str, words: &str) {
        let message = json!({
            "id": message_id(activity, id), "role": "tool", "toolCallId": id, "content": words,
        });
        self.results.entry(id.to_owned()).or_default().push(message);
    }
}

fn message_id(activity: &Activity, what: &str) -> String {
    let origin = &activity.origin;
    id::derive("msg_", &[&origin.session, &origin.seq.to_string(), what])
}

/// Pieces of one message share its id; the protocol's own id keeps them together.
fn said_id(activity: &Activity, message: &str) -> String {
    id::derive("msg_", &[&activity.origin.session, "said", message])
}

fn content(id: &str, delta: &str) -> Value {
    json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": text::redact(delta) })
}

fn call_name(action: &Action) -> &str {
    action.original_name.as_deref().unwrap_or(&action.tool)
}

fn arguments(action: &Action) -> String {
    action
        .input
        .as_ref()
        .map_or_else(|| "{}".to_owned(), |input| text::redact_json(input).to_string())
}

fn result(activity: &Activity, id: &str, words: &str) -> Value {
    json!({
        "type": "TOOL_CALL_RESULT", "messageId": message_id(activity, id), "toolCallId": id,
        "content": words, "role": "tool",
    })
}

fn result_text(output: Option<&Value>, error: Option<&str>) -> String {
    let words = match (error, output) {
        (Some(error), _) => error.to_owned(),
        (None, Some(Value::String(text))) => text.clone(),
        (None, Some(value)) => return text::redact_json(value).to_string(),
        (None, None) => String::new(),
    };
    text::redact(&words).into_owned()
}

/// What is said of an end; nothing where the refusal said it already, and very clearly where the refusal was ignored.
fn end_text(refused: bool, status: Status, words: String) -> Option<String> {
    match (refused, status) {
        (false, _) => Some(words),
        (true, Status::Success) => Some(format!("Ran although refused: {words}")),
        (true, _) => None,
    }
}

fn refusal(reason: &str) -> String {
    format!("Refused: {reason}")
}

fn ask_event(id: &str, content: &Value) -> Value {
    json!({
        "type": "ACTIVITY_SNAPSHOT", "messageId": id, "activityType": ASK, "content": content,
    })
}

fn ask_content(activity: &Activity, ask: &Ask) -> Value {
    let mut content = Map::new();
    content.insert("status".into(), json!("open"));
    content.insert("agent".into(), json!(activity.context.agent_title()));
    if let Some(action) = &ask.action {
        content.insert("tool".into(), json!(action.title()));
        content.insert("toolCallId".into(), json!(action.id));
        content.insert("subject".into(), json!(text::for_people(&action.subject(), 16_384)));
    }
    if let Some(gate) = &ask.gate {
        content.insert("reason".into(), json!(gate.reason));
        content.insert("risk".into(), json!(gate.risk));
        if let Some(irreversible) = gate.irreversible {
            content.insert("irreversible".into(), json!(irreversible));
        }
    }
    if let Some(deadline) = ask.deadline {
        content.insert("until".into(), json!(time_text(deadline)));
    }
    Value::Object(content)
}

fn closed_content(
    action: Option<&Action>,
    outcome: Outcome,
    by: &str,
    message: Option<&str>,
) -> Value {
    let mut content = Map::new();
    content.insert("status".into(), json!(outcome));
    content.insert("by".into(), json!(by));
    if let Some(action) = action {
        content.insert("tool".into(), json!(action.tool));
        content.insert("toolCallId".into(), json!(action.id));
    }
    if let Some(message) = message {
        content.insert("message".into(), json!(message));
    }
    Value::Object(content)
}

#[cfg(test)]
#[path = "write_tests.rs"]
mod tests;
