//! Activities → AEP events and hook responses.
//!
//! The writer holds what is open (requested actions and their event ids) and cannot emit a stream that breaks the
//! protocol: one end per action, nothing after a denial, a response only to a request it wrote. It reads no clock; ids
//! are derived from (session, seq, n), so the same activities give the same bytes again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::event::{Type, VERSION};
use crate::activity::{
    Action, ActionKind, Activity, AskKind, Decision, Ending, Gate, Outcome, Status, What,
};
use crate::event::{Protocol, time_text};
use crate::id;

/// Writes one session.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Writer {
    /// Action id → its request, while it is open.
    open: BTreeMap<String, Request>,
    closed: Closed,
    /// Ask id → the event that asked, where it was not an action's request.
    asked: BTreeMap<String, String>,
    /// Whether the session was ended: then whatever comes begins it anew.
    ended: bool,
    turn_open: bool,
    /// The record whose events are being numbered, and the next number.
    seq: u64,
    n: u32,
}

/// A request that was written and has no end yet.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Request {
    /// The event that requested it.
    event: String,
    /// The action as it was told, without what was said about it. Its id in this stream is its own, unless that was
    /// used before.
    action: Action,
}

/// Actions that came to an end, the newest ones.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Closed {
    order: VecDeque<String>,
    known: BTreeSet<String>,
    denied: BTreeSet<String>,
}

/// How many ended actions are remembered.
const REMEMBERED: usize = 4_096;

impl Closed {
    fn add(&mut self, id: &str, denied: bool) {
        if denied {
            self.denied.insert(id.to_owned());
        }
        if self.known.insert(id.to_owned()) {
            self.order.push_back(id.to_owned());
        }
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
            self.denied.remove(&oldest);
        }
    }
}

impl Writer {
    /// Whether a turn is open, so that a late joiner has something to be told.
    pub fn is_open(&self) -> bool {
        self.turn_open
    }

    /// The events of one activity.
    pub fn write(&mut self, activity: &Activity) -> Vec<Value> {
        match &activity.what {
            What::TurnStarted { .. } => self.turn_open = true,
            What::TurnEnded { .. } | What::SessionEnded { .. } => self.turn_open = false,
            _ => {}
        }
        if activity.origin.seq != self.seq {
            self.seq = activity.origin.seq;
            self.n = 0;
        }
        let mut out = Vec::new();
        match &activity.what {
            What::SessionStarted { source } => {
                let extra = lifecycle("source", source.as_deref());
                self.event(activity, "session.start", extra, &mut out);
            }
            What::SessionEnded { .. } if self.ended => {}
            What::SessionEnded { reason } => {
                let extra = lifecycle("reason", reason.as_deref());
                self.event(activity, "session.end", extra, &mut out);
            }
            What::TurnStarted { request: Some(request), .. } => {
                self.event(activity, "prompt.submitted", content("prompt", request), &mut out);
            }
            What::TurnStarted { request: None, .. } => {
                self.event(activity, "agent.start", Map::new(), &mut out);
            }
            What::TurnEnded { ending, .. } => self.turn_ended(activity, ending, &mut out),
            What::Said { text, last, .. } => {
                let kind = if *last { "model.response" } else { "model.delta" };
                self.event(activity, kind, content("response", text), &mut out);
            }
            What::Thought { text, .. } => {
                self.event(activity, "model.thought", content("thought", text), &mut out);
            }
            What::Progressed { description, .. } => {
                let text = description.clone().unwrap_or_default();
                self.event(activity, "notification.sent", content("notification", &text), &mut out);
            }
            What::ActionRequested { action, gate } => {
                self.requested(activity, action, gate.as_ref(), &mut out);
            }
            What::ActionEnded { .. } => self.ended(activity, &mut out),
            What::ActionDenied { action, by, reason } => {
                if self.open.contains_key(&action.id) || !self.closed.denied.contains(&action.id) {
                    self.request(activity, action, &mut out);
                    self.denied(activity, action, (by, reason.as_deref(), None), &mut out);
                }
            }
            What::AskOpened { ask } => {
                if let AskKind::Clarification { question, .. } = &ask.kind {
                    let mut extra = content("question", question);
                    if let Some(action) = &ask.action {
                        extra.extend(action_fields(action));
                    }
                    let event = self.event(activity, "question.asked", extra, &mut out);
                    self.asked.insert(ask.id.clone(), event);
                }
            }
            What::AskClosed { id, action, outcome, by, message, .. } => {
                self.closed(
                    activity,
                    id,
                    action.as_ref(),
                    (*outcome, by, message.as_deref()),
                    &mut out,
                );
            }
            What::HandedOff { reason, .. } | What::Notified { text: reason } => {
                self.event(
                    activity,
                    "notification.sent",
                    content("notification", reason),
                    &mut out,
                );
            }
            What::Raw { kind, text, .. } => self.other(activity, kind, text.as_deref(), &mut out),
            _ => {}
        }
        out
    }

    /// What the vocabulary has no word for goes out under its own name, if all that name requires is there.
    fn other(&mut self, activity: &Activity, kind: &str, text: Option<&str>, out: &mut Vec<Value>) {
        let speaks = Type::parse(kind).and_then(|known| known.content().first().copied());
        let extra = match text {
            Some(text) => content(speaks.unwrap_or("notification"), text),
            None => Map::new(),
        };
        let named = if kind.contains('.') { kind } else { "x.other" };
        self.event(activity, named, extra, out);
        if let Some(Value::Object(event)) = out.last_mut()
            && Type::parse(named).is_some()
            && !crate::check::value(Protocol::Aep, &Value::Object(event.clone())).is_empty()
        {
            event.insert("type".into(), json!(format!("x.{}", named.replace('.', "_"))));
        }
    }

    fn ended(&mut self, activity: &Activity, out: &mut Vec<Value>) {
        let What::ActionEnded { id, tool, status, output, error, duration_ms } = &activity.what
        else {
            return;
        };
        // A refused action that the agent also reports as failed has had its end. One that ran all the same is told,
        // under an id of its own.
        let refused = !self.open.contains_key(id) && self.closed.denied.contains(id);
        if refused && *status != Status::Success {
            return;
        }
        let request = self.request(activity, &Action::unseen(id, tool), out);
        let mut extra = action_fields(&request.action);
        let kind = end_fields(&mut extra, *status, output.as_ref(), error.as_deref());
        if let Some(ms) = duration_ms {
            extra.insert("metrics".into(), json!({ "duration_ms": ms }));
        }
        if refused {
            let fact = json!({ "x-banister": { "refused": true, "action_id": id } });
            extra.insert("extensions".into(), fact);
        }
        self.open.remove(id);
        self.closed.add(id, false);
        self.event(activity, kind, extra, out);
    }

    fn requested(
        &mut self,
        activity: &Activity,
        action: &Action,
        gate: Option<&Gate>,
        out: &mut Vec<Value>,
    ) {
        let request = self.request(activity, action, out);
        let Some(gate) = gate else { return };
        let (behavior, outcome) = match gate.decision {
            Decision::Allow => ("allow", "approved"),
            Decision::Deny => ("deny", "denied"),
            // The answer comes from a person, with the activity that closes the ask.
            Decision::Ask => return,
        };
        let decision = json!({
            "outcome": outcome, "by": "auto-policy", "reason": gate.reason, "policy_id": gate.rule,
            "time": time_text(activity.origin.time),
        });
        let words = (behavior, gate.reason.as_str());
        let to = (request.event.as_str(), Some(request.action.id.as_str()));
        self.response(activity, to, words, decision, out);
        if gate.decision == Decision::Deny {
            let why = ("auto-policy", Some(gate.reason.as_str()), Some(gate.rule.as_str()));
            self.denied(activity, action, why, out);
        }
    }

    /// The open request of an action; written now if it was not. An id that had its end gets a new one.
    fn request(&mut self, activity: &Activity, action: &Action, out: &mut Vec<Value>) -> Request {
        if let Some(request) = self.open.get(&action.id) {
            return request.clone();
        }
        let id = if self.closed.known.contains(&action.id) {
            self.next_id(activity, "act_")
        } else {
            action.id.clone()
        };
        let named = Action { id, ..action.clone() };
        let event = self.event(activity, "action.requested", action_fields(&named), out);
        let request = Request { event, action: Action { input: None, rationale: None, ..named } };
        self.open.insert(action.id.clone(), request.clone());
        request
    }

    fn closed(
        &mut self,
        activity: &Activity,
        ask: &str,
        action: Option<&Action>,
        (outcome, by, message): (Outcome, &str, Option<&str>),
        out: &mut Vec<Value>,
    ) {
        let (request, id) = match action.and_then(|action| self.open.get(&action.id)) {
            Some(request) => (request.event.clone(), Some(request.action.id.clone())),
            None => match self.asked.remove(ask) {
                Some(event) => (event, None),
                None => return,
            },
        };
        let (behavior, verdict) = match outcome {
            // Behind a question waits no action that could be allowed.
            Outcome::Accepted if id.is_none() => ("continue", "approved"),
            Outcome::Accepted => ("allow", "approved"),
            // A question without an answer refuses nothing.
            Outcome::Rejected | Outcome::Expired if id.is_none() => ("abstain", "info"),
            Outcome::Rejected | Outcome::Expired => ("deny", "denied"),
            Outcome::Withdrawn => ("abstain", "info"),
        };
        let mut decision = json!({
            "outcome": verdict, "by": by, "time": time_text(activity.origin.time),
        });
        if let (Some(message), Some(decision)) = (message, decision.as_object_mut()) {
            decision.insert("reason".into(), json!(message));
        }
        let words = message.unwrap_or_default();
        let to = (request.as_str(), id.as_deref());
        self.response(activity, to, (behavior, words), decision, out);
        if let (Some(action), Outcome::Rejected | Outcome::Expired) = (action, outcome) {
            self.denied(activity, action, (by, message, None), out);
        }
    }

    fn turn_ended(&mut self, activity: &Activity, ending: &Ending, out: &mut Vec<Value>) {
        match ending {
            Ending::Completed | Ending::Suspended { .. } => {
                self.event(activity, "agent.stop", Map::new(), out);
            }
            Ending::Cancelled { by, .. } => {
                let extra = lifecycle("reason", Some(&format!("cancelled by {by}")));
                self.event(activity, "agent.stop", extra, out);
            }
            Ending::Failed { message, .. } => {
                self.event(activity, "agent.error", content("notification", message), out);
                self.event(activity, "agent.stop", Map::new(), out);
            }
        }
    }

    fn denied(
        &mut self,
        activity: &Activity,
        action: &Action,
        (by, reason, rule): (&str, Option<&str>, Option<&str>),
        out: &mut Vec<Value>,
    ) {
        // Only what is open can be refused.
        let Some(request) = self.open.remove(&action.id) else { return };
        self.closed.add(&action.id, true);
        let said = Action {
            input: action.input.clone(),
            rationale: action.rationale.clone(),
            ..request.action
        };
        let mut extra = action_fields(&said);
        let mut decision = Map::new();
        decision.insert("outcome".into(), json!("denied"));
        decision.insert("by".into(), json!(by));
        if let Some(reason) = reason {
            decision.insert("reason".into(), json!(reason));
        }
        if let Some(rule) = rule {
            decision.insert("policy_id".into(), json!(rule));
        }
        extra.insert("decision".into(), Value::Object(decision));
        self.event(activity, "action.denied", extra, out);
    }

    /// Writes one event and returns its id.
    fn event(
        &mut self,
        activity: &Activity,
        kind: &str,
        extra: Map<String, Value>,
        out: &mut Vec<Value>,
    ) -> String {
        if self.ended && kind != "session.start" {
            self.event(activity, "session.start", Map::new(), out);
        }
        self.ended = kind == "session.end";
        let id = self.next_id(activity, "evt_");
        let context = &activity.context;
        let mut event = Map::new();
        event.insert("aep_version".into(), json!(VERSION));
        event.insert("id".into(), json!(id));
        event.insert("type".into(), json!(kind));
        event.insert("time".into(), json!(time_text(activity.origin.time)));
        insert(&mut event, "hook", context.hook.as_deref());
        let mut agent = Map::new();
        agent.insert("slug".into(), json!(context.agent));
        insert(&mut agent, "display_name", context.agent_name.as_deref());
        insert(&mut agent, "version", context.agent_version.as_deref());
        event.insert("agent".into(), Value::Object(agent));
        let mut session = Map::new();
        session.insert("id".into(), json!(activity.origin.session));
        insert(&mut session, "conversation_id", context.session.as_deref());
        insert(&mut session, "turn_id", context.turn.as_deref());
        insert(&mut session, "permission_mode", context.permission_mode.as_deref());
        event.insert("session".into(), Value::Object(session));
        if let Some(cwd) = &context.cwd {
            event.insert("workspace".into(), json!({ "cwd": cwd }));
        }
        if let Some(model) = &context.model {
            event.insert("model".into(), json!({ "id": model }));
        }
        event.extend(extra);
        out.push(Value::Object(event));
        id
    }

    fn response(
        &mut self,
        activity: &Activity,
        (request, action): (&str, Option<&str>),
        (behavior, message): (&str, &str),
        decision: Value,
        out: &mut Vec<Value>,
    ) {
        let mut response = Map::new();
        response.insert("aep_version".into(), json!(VERSION));
        response.insert("id".into(), json!(self.next_id(activity, "rsp_")));
        response.insert("request_event_id".into(), json!(request));
        insert(&mut response, "action_id", action);
        response.insert("time".into(), json!(time_text(activity.origin.time)));
        let mut control = Map::new();
        control.insert("behavior".into(), json!(behavior));
        if !message.is_empty() {
            control.insert("message".into(), json!(message));
        }
        response.insert("control".into(), Value::Object(control));
        response.insert("decision".into(), decision);
        out.push(Value::Object(response));
    }

    fn next_id(&mut self, activity: &Activity, prefix: &str) -> String {
        let n = self.n;
        self.n += 1;
        let origin = &activity.origin;
        id::derive(prefix, &["aep", &origin.session, &origin.seq.to_string(), &n.to_string()])
    }
}

fn insert(target: &mut Map<String, Value>, key: &str, value: Option<&str>) {
    if let Some(value) = value {
        target.insert(key.into(), json!(value));
    }
}

fn lifecycle(key: &str, value: Option<&str>) -> Map<String, Value> {
    let mut fields = Map::new();
    if let Some(value) = value {
        fields.insert("lifecycle".into(), json!({ key: value }));
    }
    fields
}

fn content(kind: &str, text: &str) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("content".into(), json!([{ "type": kind, "text": text }]));
    fields
}

fn action_fields(action: &Action) -> Map<String, Value> {
    let kind = match action.kind {
        ActionKind::Tool | ActionKind::Mcp => "tool_call",
        ActionKind::Skill => "skill_use",
        ActionKind::Subagent => "subagent_spawn",
        ActionKind::Other => "other",
    };
    let mut fields = Map::new();
    let mut verb = Map::new();
    verb.insert("type".into(), json!(kind));
    verb.insert("id".into(), json!(action.id));
    insert(&mut verb, "rationale", action.rationale.as_deref());
    if let Some(input) = &action.input {
        verb.insert("input".into(), input.clone());
    }
    fields.insert("action".into(), Value::Object(verb));
    let mut tool = Map::new();
    let mcp = action.kind == ActionKind::Mcp;
    tool.insert("type".into(), json!(if mcp { "mcp" } else { "native" }));
    let name = if action.tool.is_empty() { "unknown" } else { &action.tool };
    tool.insert("name".into(), json!(name));
    insert(&mut tool, "original_name", action.original_name.as_deref());
    fields.insert("tool".into(), Value::Object(tool));
    if mcp || action.server.is_some() {
        let server = action.server.as_deref().filter(|name| !name.is_empty()).unwrap_or("unknown");
        fields.insert("server".into(), json!({ "name": server }));
    }
    if action.kind == ActionKind::Skill {
        fields.insert("skill".into(), json!({ "name": name }));
    }
    fields
}

/// Adds status, output and error to the action; gives the type of the event.
fn end_fields(
    fields: &mut Map<String, Value>,
    status: Status,
    output: Option<&Value>,
    error: Option<&str>,
) -> &'static str {
    let (kind, word) = match status {
        Status::Success => ("action.completed", "success"),
        Status::Failure => ("action.failed", "failure"),
        Status::Timeout => ("action.failed", "timeout"),
        Status::Cancelled => ("action.failed", "cancelled"),
    };
    if let Some(Value::Object(action)) = fields.get_mut("action") {
        action.insert("status".into(), json!(word));
        if let Some(output) = output {
            action.insert("output".into(), output.clone());
        }
        if let Some(error) = error {
            action.insert("error".into(), json!({ "message": error }));
        }
    }
    kind
}

#[cfg(test)]
#[path = "write_tests.rs"]
mod tests;
