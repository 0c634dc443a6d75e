//! Sessions: their bounds, and the questions, subagents and compactions inside.

use std::hash::BuildHasher;

use super::{
    AFTER_END, ANSWER_ALONE, ANSWERED_TWICE, COMPACTED_TWICE, Event, STARTED_LATE, SUBAGENT_ALONE,
    Sequence, field, moment,
};
use crate::aep::event::Type;
use crate::finding::Finding;

/// What is known of a session.
#[derive(Debug, Clone)]
pub(super) struct Session {
    ended: bool,
    /// Whether its first event was seen to be its start, so that nothing came before.
    whole: bool,
    /// The thread of its first event. A process may open several threads in one session.
    thread: u64,
    asked: Asked,
    /// By which of [`identities`] every subagent so far was named at its start.
    identities: u8,
}

/// What questions a session has seen. One without an id may be what any answer is to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Asked {
    Nothing,
    WithId,
    WithoutId,
}

/// What is known of a question with an id. One call may ask for several things.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Question {
    asked: u32,
    answered: u32,
}

/// How near to each other two events tell of the same compaction, in milliseconds.
const SAME_COMPACTION: u64 = 60_000;

impl Sequence {
    pub(super) fn bounds(&mut self, event: &Event<'_>, findings: &mut Vec<Finding>) {
        let Some(key) = event.session else {
            return;
        };
        let starts = event.kind == Some(Type::SessionStart);
        let ends = event.kind == Some(Type::SessionEnd);
        if !starts && let Some(session) = self.sessions.get_mut(key) {
            if session.ended {
                findings
                    .push(AFTER_END.at("/session/id", "the session has ended before this event"));
            } else {
                session.ended = ends;
            }
            return;
        }
        let source = field(event.parts.lifecycle, "source");
        let new = starts && matches!(source.as_deref(), None | Some("startup"));
        let fresh = Session {
            ended: ends,
            whole: new || (starts && source.as_deref() == Some("clear")),
            thread: self.seed.hash_one(field(event.parts.session, "conversation_id")),
            asked: Asked::Nothing,
            identities: u8::MAX,
        };
        match self.sessions.get_mut(key) {
            Some(session) if new && session.ended => *session = fresh,
            Some(session) => {
                if new && session.thread == fresh.thread {
                    findings.push(STARTED_LATE.at("/type", "the session was seen before"));
                }
                session.ended = false;
            }
            None => {
                self.sessions.first(key, fresh);
            }
        }
    }

    /// The session of an event, if everything in it was seen.
    fn whole_session(&mut self, event: &Event<'_>) -> Option<&mut Session> {
        self.sessions.get_mut(event.session?).filter(|session| session.whole)
    }

    pub(super) fn asked(&mut self, event: &Event<'_>) {
        if let Some(session) = self.whole_session(event) {
            let asked = if event.action.is_some() { Asked::WithId } else { Asked::WithoutId };
            session.asked = session.asked.max(asked);
        }
        if let Some(action) = event.action {
            let once = Question { asked: 1, answered: 0 };
            if let Some(question) = self.inside.questions.first(action.key, once) {
                question.asked = question.asked.saturating_add(1);
            }
        }
    }

    pub(super) fn answered(&mut self, event: &Event<'_>, findings: &mut Vec<Finding>) {
        let complete = !self.inside.questions.forgot() && !self.actions.forgot();
        let Some(session) = self.whole_session(event) else {
            return;
        };
        let asked = session.asked;
        let Some(action) = event.action else {
            if asked == Asked::Nothing {
                findings.push(ANSWER_ALONE.at("/type", "nothing was asked in this session"));
            }
            return;
        };
        if let Some(question) = self.inside.questions.get_mut(action.key) {
            question.answered = question.answered.saturating_add(1);
            if question.answered > question.asked {
                findings.push(ANSWERED_TWICE.at("/action/id", "the question was answered before"));
            }
        } else if complete && asked < Asked::WithoutId && self.actions.get(action.key).is_none() {
            findings.push(ANSWER_ALONE.at("/action/id", "nothing was asked under this id"));
        }
    }

    pub(super) fn subagent_started(&mut self, event: &Event<'_>) {
        let Some(identities) = self.identities(event) else {
            return;
        };
        for name in identities.into_iter().flatten() {
            self.inside.subagents.first(name, ());
        }
        if let Some(session) = self.whole_session(event) {
            session.identities &= mask(&identities);
        }
    }

    pub(super) fn subagent_stopped(&mut self, event: &Event<'_>, findings: &mut Vec<Finding>) {
        let Some(identities) = self.identities(event) else {
            return;
        };
        let known =
            identities.iter().flatten().any(|name| self.inside.subagents.get(name).is_some());
        let complete = !self.inside.subagents.forgot();
        // Where starts and stops are named in different ways, they cannot be joined.
        let joined = self
            .whole_session(event)
            .is_some_and(|session| session.identities & mask(&identities) != 0);
        if !known && complete && joined {
            findings.push(SUBAGENT_ALONE.at("/type", "no start of this subagent was seen"));
        }
    }

    /// What a subagent is called, by the ways to name one.
    fn identities(&self, event: &Event<'_>) -> Option<[Option<u64>; 4]> {
        let session = event.session?;
        let parts = event.parts;
        let parent = parts.session.and_then(|session| session.get("parent"));
        let name = |way: u8, part, field_name| {
            field(part, field_name).map(|name| self.seed.hash_one((session, way, name)))
        };
        Some([
            name(0, parts.session, "conversation_id"),
            name(1, parts.agent, "instance_id"),
            name(2, parent, "spawning_action_id"),
            name(3, parts.action, "id"),
        ])
    }

    pub(super) fn compacted(&mut self, event: &Event<'_>, findings: &mut Vec<Finding>) {
        let (Some(session), Some(now)) = (event.session, moment(event.parts)) else {
            return;
        };
        let parts = event.parts;
        let key = self.seed.hash_one((
            session,
            field(parts.lifecycle, "trigger"),
            field(parts.session, "conversation_id"),
            field(parts.agent, "instance_id"),
        ));
        if let Some(last) = self.inside.compactions.first(key, now) {
            if now.abs_diff(*last) <= SAME_COMPACTION {
                findings.push(COMPACTED_TWICE.at("/type", "a compaction was told a moment before"));
            }
            *last = now;
        }
    }
}

fn mask(identities: &[Option<u64>]) -> u8 {
    identities.iter().rev().fold(0, |mask, name| mask << 1 | u8::from(name.is_some()))
}
