//! Hook responses ⇄ answers.
//!
//! A response says yes only where it says so in a word that means yes and nothing in it says otherwise. What is not
//! understood is a no; what hands the decision on is no answer at all.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::event::{Behavior, VERSION};
use crate::activity::{Answer, Ask, AskKind, Outcome, Reply, What};
use crate::event::time_text;
use crate::text;

/// Where Banister's own facts stand among a message's extensions.
pub(super) const OWN: &str = "x-banister";

/// What a hook response says to an ask; `None` where it is no answer. Without the ask, the answer names the event that
/// the response names.
///
/// ```
/// use banister_events::activity::Reply;
/// use banister_events::aep::response::answer;
/// let say = |behavior: &str| {
///     let response = serde_json::json!({ "request_event_id": "evt_1", "control": { "behavior": behavior } });
///     answer(&response, None).map(|answer| answer.reply)
/// };
/// assert_eq!(say("allow"), Some(Reply::Accept { updated_input: None }));
/// assert_eq!(say("stop"), Some(Reply::Reject));
/// assert_eq!(say("defer"), None);
/// ```
pub fn answer(response: &Value, ask: Option<&Ask>) -> Option<Answer> {
    let text = |pointer: &str| response.pointer(pointer).and_then(Value::as_str);
    let request = text("/request_event_id")?;
    let behavior = text("/control/behavior")?;
    let refused = text("/decision/outcome") == Some("denied");
    let question = ask.map(|ask| matches!(ask.kind, AskKind::Clarification { .. }));
    let about_action = question.map_or(response.get("action_id").is_some(), |question| !question);
    let reply = match Behavior::parse(behavior) {
        Behavior::Ask | Behavior::Defer | Behavior::Abstain => return None,
        Behavior::Deny | Behavior::Block | Behavior::Stop | Behavior::Other(_) => Reply::Reject,
        Behavior::Allow | Behavior::Continue if refused => Reply::Reject,
        // Going on with the run is no yes to an action.
        Behavior::Continue if about_action => return None,
        Behavior::Continue => Reply::Accept { updated_input: None },
        Behavior::Allow => Reply::Accept {
            updated_input: response
                .pointer("/control/updated_input")
                .filter(|input| !input.is_null())
                .cloned(),
        },
    };
    let words = text("/control/message").or_else(|| text("/decision/reason"));
    let feedback = text("/decision/feedback");
    let message = match (words, feedback) {
        (Some(words), Some(feedback)) if !words.contains(feedback) => {
            Some(format!("{words}\n{feedback}"))
        }
        (words, feedback) => words.or(feedback).map(str::to_owned),
    };
    let time = text("/decision/time").or_else(|| text("/time"));
    Some(Answer {
        token: ask.map_or(request, |ask| &ask.token).to_owned(),
        reply,
        by: text("/decision/by").map(str::to_owned),
        message,
        time: time.and_then(|time| time.parse().ok()),
    })
}

/// The hook response that tells an agent how its ask was closed. Anything but [`What::AskClosed`] refuses. What people
/// read has no credentials; the input that is to run is told as it is.
///
/// ```
/// use banister_events::activity::{Ask, AskKind, Outcome, What};
/// use banister_events::aep::response::response;
/// let ask = Ask::new("ask_1", "evt_1", AskKind::Confirmation);
/// let closed = What::AskClosed {
///     id: "ask_1".to_owned(), action: None, outcome: Outcome::Accepted, by: "user".to_owned(), message: None,
///     response: None, updated_input: None,
/// };
/// let sent = response(&ask, &closed, "evt_1", "rsp_1", jiff::Timestamp::UNIX_EPOCH);
/// assert_eq!(sent["control"]["behavior"], "allow");
/// assert_eq!(sent["decision"]["by"], "user");
/// ```
pub fn response(
    ask: &Ask,
    closed: &What,
    request_event_id: &str,
    id: &str,
    time: Timestamp,
) -> Value {
    let question = matches!(ask.kind, AskKind::Clarification { .. });
    let verdict = match closed {
        What::AskClosed { outcome, by, message, updated_input, .. } => Verdict {
            message: message.as_deref(),
            updated_input: updated_input.as_ref(),
            by,
            ..Verdict::new(question, *outcome)
        },
        _ => Verdict::new(question, Outcome::Rejected),
    };
    let message = verdict.message.map(text::redact);
    let verdict = Verdict {
        action: ask.action.as_ref().map(|action| action.id.as_str()).filter(|_| !question),
        digest: Some(ask.digest.as_str()),
        message: message.as_deref(),
        ..verdict
    };
    Value::Object(assemble(&verdict, request_event_id, id, time))
}

/// All that a response says.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Verdict<'a> {
    pub(super) behavior: &'static str,
    pub(super) outcome: &'static str,
    pub(super) by: &'a str,
    pub(super) message: Option<&'a str>,
    pub(super) policy: Option<&'a str>,
    pub(super) action: Option<&'a str>,
    pub(super) updated_input: Option<&'a Value>,
    /// How long it took, in milliseconds.
    pub(super) took: Option<i64>,
    pub(super) digest: Option<&'a str>,
    /// How it was closed, where that is to be carried.
    pub(super) closed: Option<Outcome>,
}

impl Verdict<'_> {
    /// What an agent is told about an ask that closed so.
    pub(super) fn new(question: bool, outcome: Outcome) -> Self {
        let (behavior, outcome) = match outcome {
            // Behind a question waits no action that could be allowed or refused.
            Outcome::Accepted if question => ("continue", "approved"),
            _ if question => ("abstain", "info"),
            Outcome::Accepted => ("allow", "approved"),
            Outcome::Rejected | Outcome::Expired => ("deny", "denied"),
            Outcome::Withdrawn => ("abstain", "info"),
        };
        Self { behavior, outcome, ..Self::default() }
    }
}

/// A response, with every field in its place.
pub(super) fn assemble(
    verdict: &Verdict<'_>,
    event: &str,
    id: &str,
    time: Timestamp,
) -> Map<String, Value> {
    let put = |target: &mut Map<String, Value>, key: &str, value: Option<&str>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            target.insert(key.to_owned(), json!(value));
        }
    };
    let time = time_text(time);
    let mut control = Map::new();
    control.insert("behavior".into(), json!(verdict.behavior));
    put(&mut control, "message", verdict.message);
    let allows = verdict.behavior == "allow";
    if let Some(input) = verdict.updated_input.filter(|input| allows && !input.is_null()) {
        control.insert("updated_input".into(), input.clone());
    }
    let mut decision = Map::new();
    decision.insert("outcome".into(), json!(verdict.outcome));
    put(&mut decision, "by", Some(verdict.by));
    put(&mut decision, "reason", verdict.message);
    // What a person says with a no is meant for the agent.
    let person = !matches!(verdict.by, "auto-policy" | "timeout");
    put(
        &mut decision,
        "feedback",
        verdict.message.filter(|_| person && verdict.behavior == "deny"),
    );
    put(&mut decision, "policy_id", verdict.policy);
    decision.insert("time".into(), json!(time));
    if let Some(took) = verdict.took {
        decision.insert("response_time_ms".into(), json!(took.max(0)));
    }
    let mut response = Map::new();
    response.insert("aep_version".into(), json!(VERSION));
    response.insert("id".into(), json!(id));
    response.insert("request_event_id".into(), json!(event));
    put(&mut response, "action_id", verdict.action);
    response.insert("time".into(), json!(time));
    response.insert("control".into(), Value::Object(control));
    response.insert("decision".into(), Value::Object(decision));
    let mut own = Map::new();
    put(&mut own, "digest", verdict.digest);
    if let Some(closed) = verdict.closed {
        own.insert("closed".into(), json!(closed));
    }
    if !own.is_empty() {
        response.insert("extensions".into(), json!({ OWN: own }));
    }
    response
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;
