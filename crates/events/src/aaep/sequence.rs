//! What only the order of AAEP events can break: session bounds, tool pairing, consent, states, output positions.
//!
//! Sessions in one stream are kept apart. A byte-identical repeat of an event is a redelivery and is passed over.
//! What a stream shows of consent is a confirmation that was asked before, and either the reply (where the
//! recording has both directions), a change of state to `calling_tool`, or the invocation itself; a change to any
//! other state is read as a refusal. Which confirmation belongs to which tool cannot be seen, so any open one counts.
//! Positions may count Unicode characters or UTF-16 units: AAEP does not say which. A recording that ends inside a
//! session earns a note, no more.

use std::collections::{HashMap, VecDeque};

use serde_json::{Map, Value};

use super::check::EVENT_ID;
use super::event::{self, Type};
use crate::check::recent::{Recent, fingerprint};
use crate::check::rules;
use crate::check::shape::quote;
use crate::finding::{Finding, Rule};

mod session;

use session::Session;

rules! {
    STARTED_FIRST = "AAEP-4.1.1-R1" Error Producer
        "session.started is the first event of its session.",
        "Emit session.started before anything else with its session_id.";
    STARTED_ONCE = "AAEP-4.1.1-R3" Error Producer
        "A session has exactly one session.started.",
        "Emit it once; a new request is a new session with a new id.";
    SESSION_REUSED = "AAEP-3.2.4-R3" Error Producer
        "Session ids are unique across the producer's sessions.",
        "Draw a new session_id for each request.";
    ONE_TERMINAL = "AAEP-4.1.2-R3" Error Producer
        "A session has exactly one terminal event.",
        "Emit one of completed, errored and cancelled, once.";
    AFTER_COMPLETED = "AAEP-4.1.2-R1" Error Producer
        "session.completed is the last event of its session.",
        "Emit everything else before it.";
    AFTER_ERRORED = "AAEP-4.1.3-R1" Error Producer
        "session.errored is the last event of its session.",
        "Emit everything else before it.";
    AFTER_CANCELLED = "AAEP-4.1.4-R1" Error Producer
        "session.cancelled is the last event of its session.",
        "Emit everything else before it.";
    OPEN_END = "AAEP-4.5.1-R1" Note Producer
        "A session runs from one session.started to one terminal event.",
        "Record until the session has ended.";
    TIME = "AAEP-3.2.5-R3" Error Producer
        "Timestamps do not decrease within a session.",
        "Use a monotonic clock, or repeat the previous timestamp.";
    NUMBER = "AAEP-3.4.1-R1" Error Producer
        "sequence_number is 0 on session.started and one more on each event after it.",
        "Number the events of a session without gaps.";
    NUMBER_ALL = "AAEP-3.4.1-R2" Error Producer
        "sequence_number is on every event of a session or on none.",
        "Number all events of the session, or none.";
    CALL_ID = "AAEP-4.3.1-R3" Error Producer
        "A tool_call_id is unique in its session and repeated on the matching tool.completed.",
        "Draw a new id for each call and carry it to its end.";
    COMPLETED_ALONE = "AAEP-4.5.2-R1" Error Producer
        "Each tool.completed is preceded by its tool.invoked.",
        "Emit tool.invoked before the tool runs, with the same tool_call_id or tool.";
    TOOL_NAME = "AAEP-4.3.2-R3" Error Producer
        "tool.completed names the same tool as its tool.invoked.",
        "Use one name for one call.";
    ABANDONED = "AAEP-4.3.2-R2" Error Producer
        "An abandoned tool is completed with status timeout, never left open.",
        "Emit tool.completed with status timeout before the session ends.";
    CONSENT = "AAEP-4.3.1-R2" Error Producer
        "An irreversible tool is invoked only after a confirmation that was accepted.",
        "Emit awaiting.confirmation and wait for accept before invoking.";
    CONSENT_RISK = "AAEP-2.3.5-R1" Error Producer
        "A tool of high risk is invoked only after a confirmation.",
        "Emit awaiting.confirmation and wait for accept before invoking.";
    ASKED_TWICE = "AAEP-6.1-R4" Error Producer
        "No second confirmation for an action while the first is unresolved.",
        "Wait for the first one, or withdraw it with a change of state.";
    TOKEN = "AAEP-6.2.2-R1" Error Producer
        "A reply_token is never used again.",
        "Draw a new token for each question.";
    FOLLOW_UP = "AAEP-4.5.3-R3" Error Producer
        "A confirmation that does not lead to the action is followed by an event that says so.",
        "Emit state.changed, to thinking or deciding, after a reject or a timeout.";
    FIRST_STATE = "AAEP-4.2.1-R3" Error Producer
        "The first state.changed of a session comes from idle.",
        "Start with from_state idle.";
    STATE_CHAIN = "AAEP-4.2.1-R4" Error Producer
        "from_state is the previous to_state or the state that other events imply.",
        "Chain the states: each begins where the last ended.";
    POSITION = "AAEP-4.3.3-R1" Error Producer
        "position is the number of characters of this output before the chunk.",
        "Count Unicode characters from the start of the output.";
    UNFINISHED = "AAEP-4.3.3-R2" Error Producer
        "The final chunk of an output has complete true.",
        "Send complete true with the last chunk, or with an empty one.";
    AFTER_COMPLETE = "AAEP-4.5.4-R1" Error Producer
        "An output has exactly one chunk with complete true, and nothing after it.",
        "Use a new output_id for further output.";
}

/// How many sessions are followed at once; the oldest is let go.
const SESSIONS: usize = 4096;

/// Follows a stream of events, its sessions apart.
#[derive(Debug, Default, Clone)]
pub struct Sequence {
    sessions: HashMap<Box<str>, Session>,
    oldest: VecDeque<Box<str>>,
    ended: Recent<Ended>,
    ids: Recent<u64>,
    /// Which session a token belongs to.
    tokens: Recent<Box<str>>,
}

#[derive(Debug, Clone, Copy)]
enum Ended {
    By(Type),
    /// Let go to stay within bounds: what follows cannot be judged.
    Forgotten,
}

impl Sequence {
    /// Everything wrong with one message, given those before it.
    pub fn step(&mut self, message: &Value) -> Vec<Finding> {
        let mut findings = Vec::new();
        let Some(object) = message.as_object() else {
            return findings;
        };
        let text = |name: &str| object.get(name).and_then(Value::as_str);
        let name = text("type").unwrap_or_default();
        if event::is_control(name) {
            self.reply(name, object);
            return findings;
        }
        // Without well-formed ids nothing can be joined; their absence is a finding of its own.
        let Some(id) = text("session_id").filter(|id| event::is_id("sess_", id)) else {
            return findings;
        };
        if let Some(event_id) = text("event_id") {
            let print = fingerprint(message);
            match self.ids.first(event_id, print) {
                Some(known) if *known == print => return findings,
                Some(_) => findings
                    .push(EVENT_ID.at("/event_id", "the id was used for another event before")),
                None => {}
            }
        }
        let kind = Type::parse(name);
        if let Some(token) = text("reply_token")
            && self.tokens.first(token, id.into()).is_some()
        {
            findings.push(TOKEN.at("/reply_token", "the token was used before"));
        }
        match self.ended.get(id).copied() {
            Some(Ended::By(terminal)) => {
                findings.push(after(terminal, kind));
                return findings;
            }
            Some(Ended::Forgotten) => return findings,
            None => {}
        }
        if !self.sessions.contains_key(id) {
            self.open(id);
            if kind != Some(Type::SessionStarted) {
                findings.push(
                    STARTED_FIRST.at("/type", "the session was not started before this event"),
                );
            }
        } else if kind == Some(Type::SessionStarted) {
            findings.push(STARTED_ONCE.at("/type", "the session was started before"));
        }
        if let Some(session) = self.sessions.get_mut(id) {
            session.step(kind, object, &mut findings);
        }
        if let Some(terminal) = kind.filter(|kind| kind.is_terminal()) {
            self.sessions.remove(id);
            self.ended.first(id, Ended::By(terminal));
        }
        findings
    }

    /// Everything that is wrong because the stream ends here.
    pub fn finish(&mut self) -> Vec<Finding> {
        let mut open: Vec<Box<str>> = self.sessions.drain().map(|(id, _)| id).collect();
        open.sort_unstable();
        open.iter()
            .map(|id| OPEN_END.at("", format!("the session {} has not ended", quote(id))))
            .collect()
    }

    fn open(&mut self, id: &str) {
        // Ended sessions leave their place in the queue; it is tidied before it grows beyond twice its size.
        if self.oldest.len() >= 2 * SESSIONS {
            self.oldest.retain(|id| self.sessions.contains_key(id));
        }
        while self.sessions.len() >= SESSIONS
            && let Some(oldest) = self.oldest.pop_front()
        {
            if self.sessions.remove(&oldest).is_some() {
                self.ended.first(&*oldest, Ended::Forgotten);
            }
        }
        self.sessions.insert(id.into(), Session::default());
        self.oldest.push_back(id.into());
    }

    /// A recording of both directions shows the answers, too.
    fn reply(&mut self, name: &str, object: &Map<String, Value>) {
        let token = object.get("reply_token").and_then(Value::as_str);
        let (Some(token), "confirmation.reply") = (token, name) else {
            return;
        };
        let accepted = object.get("decision").and_then(Value::as_str) == Some("accept");
        let session = self.tokens.get(token).and_then(|id| self.sessions.get_mut(id));
        if let Some(session) = session {
            session.answer(token, accepted);
        }
    }
}

fn after(terminal: Type, kind: Option<Type>) -> Finding {
    let rule: &'static Rule = match (kind, terminal) {
        (Some(Type::SessionStarted), _) => {
            return SESSION_REUSED.at("/session_id", "a session of this id has ended before");
        }
        (Some(kind), _) if kind.is_terminal() => {
            return ONE_TERMINAL.at("/type", "the session has ended before");
        }
        (_, Type::SessionErrored) => &AFTER_ERRORED,
        (_, Type::SessionCancelled) => &AFTER_CANCELLED,
        _ => &AFTER_COMPLETED,
    };
    rule.at("/type", "the session has ended before this event")
}

#[cfg(test)]
#[path = "sequence_tests.rs"]
mod tests;
