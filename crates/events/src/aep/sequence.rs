//! What only the order of AEP messages can break: ids, actions and their ends, answers, session bounds.
//!
//! Actions are joined by agent, session and action id, responses by the id of the event they answer. Hooks may be
//! missing or installed late, so what only points to a gap in the recording is a warning. A repeat of the same
//! message under the same id is a redelivery and is passed over. The newest 65,536 ids of each kind are remembered.

use serde_json::{Map, Value};

use super::event::{self, Type};
use crate::check::recent::{Recent, fingerprint, key};
use crate::check::rules;
use crate::check::shape::quote;
use crate::finding::Finding;

rules! {
    ID_REUSED = "AEP-SEQ-01" Error Both
        "An id is never sent again with other content.",
        "Draw a new id; a later fact is a new event.";
    END_ALONE = "AEP-SEQ-02" Warning Producer
        "The end of an action follows its action.requested.",
        "Install the agent's pre-tool hook, and use the same action.id.";
    TWO_ENDS = "AEP-SEQ-03" Error Producer
        "An action ends once.",
        "Send one of action.completed and action.failed.";
    RAN_DENIED = "AEP-SEQ-04" Error Producer
        "An action that was denied does not end in any other way.",
        "Drop what the agent's failure hook says about a blocked action; if it ran, the denial was not obeyed.";
    AFTER_END = "AEP-SEQ-05" Warning Producer
        "After session.end the session is silent until session.start.",
        "Send session.end last.";
    UNKNOWN_REQUEST = "AEP-SEQ-06" Warning Subscriber
        "A response answers an event that was sent.",
        "Put the event's id into request_event_id.";
    SECOND_RESPONSE = "AEP-SEQ-07" Note Subscriber
        "A request is answered once.",
        "Send one response; a permission prompt for the same action may get a second.";
    OTHER_ACTION = "AEP-SEQ-08" Error Subscriber
        "action_id of a response is the action.id of the event it answers.",
        "Repeat the request's action.id, or leave action_id out.";
    REQUESTED_TWICE = "AEP-SEQ-09" Warning Producer
        "An action is requested once.",
        "Attach a later permission prompt to the first request as a second response.";
    DENIAL_IGNORED = "AEP-SEQ-10" Error Producer
        "An action whose response was deny or stop does not complete.",
        "Find out why the agent ran it: the hook failed open, or answered too late.";
}

/// Follows a stream of events and responses, its sessions apart.
#[derive(Debug, Default, Clone)]
pub struct Sequence {
    ids: Recent<u64>,
    requests: Recent<Request>,
    actions: Recent<Action>,
    /// Sessions, and whether they have ended.
    sessions: Recent<bool>,
}

/// An event that may be answered.
#[derive(Debug, Clone)]
struct Request {
    action: Option<ActionKey>,
    answered: bool,
}

/// Agent, session, action.
type ActionKey = (Box<str>, Box<str>, Box<str>);

#[derive(Debug, Clone, Copy, Default)]
struct Action {
    ended: bool,
    denied: bool,
    refused_by_response: bool,
}

impl Sequence {
    /// Everything wrong with one message, given those before it.
    pub fn step(&mut self, message: &Value) -> Vec<Finding> {
        let mut findings = Vec::new();
        let Some(object) = message.as_object() else {
            return findings;
        };
        let Some(id) = object.get("id").and_then(Value::as_str) else {
            return findings;
        };
        let print = fingerprint(message);
        match self.ids.first(id, print) {
            Some(known) if *known == print => return findings,
            Some(_) => {
                findings.push(ID_REUSED.at("/id", "the id was used for another message before"));
            }
            None => {}
        }
        if event::is_response(object) {
            self.response(object, &mut findings);
        } else {
            self.event(id, object, &mut findings);
        }
        findings
    }

    /// Everything that is wrong because the stream ends here: nothing, as agents may be recorded while they work.
    pub fn finish(&mut self) -> Vec<Finding> {
        Vec::new()
    }

    fn event(&mut self, id: &str, object: &Map<String, Value>, findings: &mut Vec<Finding>) {
        let text = |outer: &str, inner: &str| {
            object.get(outer).and_then(|value| value.get(inner)).and_then(Value::as_str).map(key)
        };
        let kind = object.get("type").and_then(Value::as_str).and_then(Type::from_alias);
        let agent = text("agent", "slug").unwrap_or_default();
        let session = text("session", "id").or_else(|| text("session", "conversation_id"));
        if let Some(session) = &session {
            self.bounds(kind, (&agent, session), findings);
        }
        let action =
            text("action", "id").map(|action| (agent, session.unwrap_or_default(), action));
        if let (Some(kind), Some(action)) = (kind.filter(|kind| kind.is_action()), &action) {
            self.action(kind, action, findings);
        }
        self.requests.first(id, Request { action, answered: false });
    }

    fn bounds(&mut self, kind: Option<Type>, session: (&str, &str), findings: &mut Vec<Finding>) {
        let ends = kind == Some(Type::SessionEnd);
        let Some(ended) = self.sessions.first(session, ends) else {
            return;
        };
        if *ended && kind != Some(Type::SessionStart) {
            findings.push(AFTER_END.at("/session/id", "the session has ended before this event"));
        } else {
            *ended = ends;
        }
    }

    fn action(&mut self, kind: Type, id: &ActionKey, findings: &mut Vec<Finding>) {
        let complete = !self.actions.forgot();
        let ends = kind.ends_action();
        let denied = kind == Type::ActionDenied;
        let fresh = Action { ended: ends, denied, refused_by_response: false };
        let Some(action) = self.actions.first(id, fresh) else {
            // A denial may be all that an audit stream tells of an action.
            if ends && !denied && complete {
                findings.push(END_ALONE.at("/action/id", "the action was not requested before"));
            }
            return;
        };
        if !ends {
            findings.push(REQUESTED_TWICE.at("/action/id", "the action was requested before"));
        } else if action.denied && !denied {
            findings.push(RAN_DENIED.at("/action/id", "the action was denied before"));
        } else if action.ended {
            findings.push(TWO_ENDS.at("/action/id", "the action has ended before"));
        } else if action.refused_by_response && kind == Type::ActionCompleted {
            findings.push(
                DENIAL_IGNORED.at("/action/id", "the response to its request was to deny it"),
            );
        }
        action.ended |= ends;
        action.denied |= denied;
    }

    fn response(&mut self, object: &Map<String, Value>, findings: &mut Vec<Finding>) {
        let text = |name: &str| object.get(name).and_then(Value::as_str);
        let Some(id) = text("request_event_id") else {
            return;
        };
        let complete = !self.requests.forgot();
        let Some(request) = self.requests.get_mut(id) else {
            if complete {
                let message = format!("no event {} was sent before", quote(id));
                findings.push(UNKNOWN_REQUEST.at("/request_event_id", message));
            }
            return;
        };
        if std::mem::replace(&mut request.answered, true) {
            findings.push(SECOND_RESPONSE.at("/request_event_id", "the event was answered before"));
        }
        let asked = request.action.as_ref();
        if let Some(named) = text("action_id")
            && asked.is_none_or(|(_, _, action)| **action != *key(named))
        {
            findings.push(OTHER_ACTION.at("/action_id", "the event was not about this action"));
        }
        let behavior = object.get("control").and_then(|control| control.get("behavior"));
        let refused = behavior.and_then(Value::as_str).map(|word| matches!(word, "deny" | "stop"));
        if let (Some(action), Some(refused)) =
            (asked.and_then(|id| self.actions.get_mut(id)), refused)
            && !action.ended
        {
            action.refused_by_response = refused;
        }
    }
}

#[cfg(test)]
#[path = "sequence_tests.rs"]
mod tests;
