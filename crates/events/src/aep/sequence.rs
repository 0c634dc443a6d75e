//! What only the order of AEP messages can break: ids, actions and their ends, answers, session bounds.
//!
//! Actions are joined by agent, session and action id, responses by the id of the event they answer. Hooks may be
//! missing or installed late, so what only points to a gap in the recording is a warning, and what is known of
//! questions and subagents counts only where the session was seen from its start. A repeat of the same message under
//! the same id is a redelivery and is passed over. Where two agents use one event id, a response to it is not judged.
//! The newest 65,536 ids of each kind are remembered, as hashes; nothing is said about what may have been forgotten.

use std::borrow::Cow;
use std::hash::BuildHasher;

use super::check::Parts;
use super::event::Type;
use crate::check::recent::{Recent, Seed, fingerprint};
use crate::check::shape::{quote, text};
use crate::check::{rules, time};
use crate::finding::Finding;
use crate::json::{Document, View};

mod action;
mod session;

use action::Action;
use session::{Question, Session};

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
        "An action that was denied does not complete.",
        "Find out why the agent ran it: the denial was not obeyed.";
    AFTER_END = "AEP-SEQ-05" Warning Producer
        "After session.end the session is silent until session.start.",
        "Send session.end last.";
    UNKNOWN_REQUEST = "AEP-SEQ-06" Warning Subscriber
        "A response answers an event that was sent.",
        "Put the event's id into request_event_id.";
    SECOND_RESPONSE = "AEP-SEQ-07" Note Subscriber
        "A request is answered once.",
        "Send one response; a permission prompt for the same action may get a second.";
    OTHER_ACTION = "AEP-SEQ-08" Warning Subscriber
        "action_id of a response is the action.id of the event it answers.",
        "Repeat the request's action.id, or leave action_id out.";
    REQUESTED_TWICE = "AEP-SEQ-09" Warning Producer
        "An action is requested once.",
        "Attach a later permission prompt to the first request as a second response.";
    DENIAL_IGNORED = "AEP-SEQ-10" Error Producer
        "An action whose response was deny or stop does not complete.",
        "Find out why the agent ran it: the hook failed open, or answered too late.";
    ANSWER_ALONE = "AEP-SEQ-11" Warning Producer
        "An answer follows its question.",
        "Install the hook that asks, and use the same action.id.";
    ANSWERED_TWICE = "AEP-SEQ-12" Warning Producer
        "A question is answered once.",
        "Send one question.answered for each question.asked.";
    UNFIT_BEHAVIOR = "AEP-SEQ-13" Note Subscriber
        "A behaviour fits the event that it answers.",
        "Ask, defer, allow and deny what is requested; block what has ended; continue what is no action.";
    SUBAGENT_ALONE = "AEP-SEQ-14" Note Producer
        "A subagent stops after it started.",
        "Install the hook for the start, and name the subagent in the same way.";
    STARTED_LATE = "AEP-SEQ-15" Note Producer
        "A session's events come after its session.start.",
        "Send session.start first, and once.";
    LATE_REFUSAL = "AEP-SEQ-16" Warning Subscriber
        "A refusal comes before the action has ended.",
        "Answer sooner, or make the hook wait.";
    OTHER_TOOL = "AEP-SEQ-17" Warning Producer
        "An action keeps its type and tool.",
        "Use one action.id for one call.";
    UPDATE_IGNORED = "AEP-SEQ-18" Warning Producer
        "Updated input is what runs.",
        "Find out why the agent ran the original input.";
    OTHER_INPUT = "AEP-SEQ-19" Note Producer
        "What was allowed is what runs.",
        "Compare the input that was shown with the one that ran.";
    COMPACTED_TWICE = "AEP-SEQ-20" Note Producer
        "A compaction is told once.",
        "Drop either the hook before it or the one after.";
    NO_SPAWN = "AEP-SEQ-21" Note Producer
        "spawning_action_id names an action that spawns.",
        "Use action.type subagent_spawn.";
    ENDED_DENIED = "AEP-SEQ-22" Warning Producer
        "A denied action has no end but its one denial.",
        "Drop what the agent's failure hook says about a blocked action.";
}

/// Follows a stream of events and responses, its sessions apart.
#[derive(Debug, Default, Clone)]
pub struct Sequence {
    seed: Seed,
    ids: Recent<u64>,
    requests: Recent<Request>,
    actions: Recent<Action>,
    sessions: Recent<Session>,
    inside: Box<Inside>,
}

/// What happens inside sessions, and seldom.
#[derive(Debug, Default, Clone)]
struct Inside {
    questions: Recent<Question>,
    /// What subagents were called when they started.
    subagents: Recent<()>,
    /// When compactions were told, in milliseconds.
    compactions: Recent<i64>,
}

/// An event that may be answered.
#[derive(Debug, Clone)]
struct Request {
    kind: Option<Type>,
    action: Option<ActionKey>,
    /// Whether somebody decided about it.
    answered: bool,
    /// Whether other events have the same id.
    ambiguous: bool,
}

/// An action: its key in the memory, and its id alone.
#[derive(Debug, Clone, Copy)]
struct ActionKey {
    key: u64,
    id: u64,
}

/// An event, and whose it is.
#[derive(Clone, Copy)]
struct Event<'a> {
    parts: &'a Parts<'a>,
    kind: Option<Type>,
    agent: u64,
    session: Option<u64>,
    action: Option<ActionKey>,
}

impl Sequence {
    /// Everything wrong with one message, given those before it.
    pub(crate) fn step(&mut self, message: &Document<'_>, findings: &mut Vec<Finding>) {
        let object = message.root();
        let parts = Parts::of(object);
        let Some(id) = parts.id.and_then(View::as_str) else {
            return;
        };
        let response = parts.is_response();
        // Ids are unique to whoever made them: each agent has its own, and so have those who respond.
        let maker = field(parts.agent.filter(|_| !response), "slug").unwrap_or_default();
        let print = fingerprint(object);
        match self.ids.first((response, &*maker, &*id), print) {
            Some(known) if *known == print => return,
            Some(_) => {
                findings.push(ID_REUSED.at("/id", "the id was used for another message before"));
            }
            None => {}
        }
        if response {
            self.response(&parts, findings);
        } else {
            let event = self.read(&parts, &maker);
            self.event(&event, findings);
            self.may_be_answered(&id, &event);
        }
    }

    /// Everything that is wrong because the stream ends here: nothing, as agents may be recorded while they work.
    pub fn finish(&mut self) -> Vec<Finding> {
        Vec::new()
    }

    fn read<'a>(&self, parts: &'a Parts<'a>, slug: &str) -> Event<'a> {
        let kind = parts.kind.and_then(View::as_str).and_then(|name| Type::from_alias(&name));
        let agent = self.seed.hash_one(slug);
        let session =
            field(parts.session, "id").or_else(|| field(parts.session, "conversation_id"));
        let session = session.map(|session| self.session_key(agent, &session));
        let action = field(parts.action, "id").map(|id| ActionKey {
            key: self.action_key(session.unwrap_or(agent), &id),
            id: self.seed.hash_one(&*id),
        });
        Event { parts, kind, agent, session, action }
    }

    fn session_key(&self, agent: u64, session: &str) -> u64 {
        self.seed.hash_one((agent, session))
    }

    fn action_key(&self, session: u64, action: &str) -> u64 {
        self.seed.hash_one((session, action))
    }

    fn event(&mut self, event: &Event<'_>, findings: &mut Vec<Finding>) {
        self.bounds(event, findings);
        let Some(kind) = event.kind else {
            return;
        };
        match kind {
            Type::ActionRequested => self.requested(event, findings),
            kind if kind.ends_action() => self.ended(kind, event, findings),
            Type::QuestionAsked => self.asked(event),
            Type::QuestionAnswered => self.answered(event, findings),
            Type::SubagentStart => {
                self.subagent_started(event);
                self.spawned(event, findings);
            }
            Type::SubagentStop => self.subagent_stopped(event, findings),
            Type::ContextCompacted => self.compacted(event, findings),
            _ => {}
        }
    }

    fn may_be_answered(&mut self, id: &str, event: &Event<'_>) {
        let request =
            Request { kind: event.kind, action: event.action, answered: false, ambiguous: false };
        if let Some(known) = self.requests.first(id, request) {
            known.ambiguous = true;
        }
    }

    fn response(&mut self, parts: &Parts<'_>, findings: &mut Vec<Finding>) {
        let Some(id) = parts.request_event_id.and_then(View::as_str) else {
            return;
        };
        let complete = !self.requests.forgot();
        let Some(request) = self.requests.get_mut(&*id) else {
            if complete {
                let message = format!("no event {} was sent before", quote(&id));
                findings.push(UNKNOWN_REQUEST.at("/request_event_id", message));
            }
            return;
        };
        if request.ambiguous {
            return;
        }
        let behavior = field(parts.control, "behavior");
        if request.answered {
            findings.push(SECOND_RESPONSE.at("/request_event_id", "the event was answered before"));
        }
        // Who hands a decision on leaves room for it.
        request.answered |= !matches!(behavior.as_deref(), Some("ask" | "defer" | "abstain"));
        let (kind, action) = (request.kind, request.action);
        if let Some(named) = parts.action_id.and_then(View::as_str)
            && action.is_none_or(|action| action.id != self.seed.hash_one(&*named))
        {
            findings.push(OTHER_ACTION.at("/action_id", "the event was not about this action"));
        }
        let (Some(kind), Some(behavior)) = (kind, behavior) else {
            return;
        };
        if !fits(&behavior, kind) {
            let message = format!("{} is no answer to {}", quote(&behavior), kind.name());
            findings.push(UNFIT_BEHAVIOR.at("/control/behavior", message));
        }
        // What is said about a question or a result is not said about the action itself.
        if let (Type::ActionRequested, Some(action)) = (kind, action) {
            self.decided(action.key, &behavior, parts, findings);
        }
    }
}

/// Whether a behaviour makes sense as the answer to such an event. Behaviours that are not known are not judged.
fn fits(behavior: &str, kind: Type) -> bool {
    match behavior {
        "ask" | "defer" => kind == Type::ActionRequested,
        "allow" | "deny" => {
            matches!(kind, Type::ActionRequested | Type::PromptSubmitted | Type::SubagentStart)
        }
        "block" => matches!(
            kind,
            Type::ActionCompleted | Type::AgentStop | Type::SubagentStop | Type::ContextCompacted
        ),
        "continue" => !kind.is_action(),
        _ => true,
    }
}

/// The string in a field of a part that may not be there.
fn field<'a>(part: Option<View<'a>>, name: &str) -> Option<Cow<'a, str>> {
    text(part?, name)
}

/// When it was, in milliseconds since 1970.
fn moment(parts: &Parts<'_>) -> Option<i64> {
    let moment = time::rfc3339(&parts.time?.as_str()?)?;
    i64::try_from(moment.nanos / 1_000_000).ok()
}

#[cfg(test)]
#[path = "sequence_tests.rs"]
mod tests;
