//! Actions from their request over the answers to their end.
//!
//! A request begins a new round whatever the action's past was, and the last answer that decides is the one that
//! counts. Names and inputs are kept as hashes.

use std::hash::BuildHasher;
use std::num::NonZeroU64;

use super::{
    DENIAL_IGNORED, END_ALONE, ENDED_DENIED, Event, LATE_REFUSAL, NO_SPAWN, OTHER_INPUT,
    OTHER_TOOL, RAN_DENIED, REQUESTED_TWICE, Sequence, TWO_ENDS, UPDATE_IGNORED, field, moment,
};
use crate::aep::check::Parts;
use crate::aep::event::Type;
use crate::check::recent::{Seed, fingerprint};
use crate::finding::{Finding, Rule};
use crate::json::View;

/// What is known of an action.
#[derive(Debug, Clone)]
pub(super) struct Action {
    requested: bool,
    end: Option<End>,
    /// When it ended, in milliseconds.
    ended_at: Option<i64>,
    answer: Answer,
    names: Names,
    /// The input that was requested.
    input: Option<NonZeroU64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Completed,
    Failed,
    Denied,
}

/// What was decided about a request.
#[derive(Debug, Clone)]
enum Answer {
    /// Nothing, or it was handed on to somebody whose decision is not recorded.
    Open,
    Refused,
    Allowed,
    /// Allowed with other input, whose pieces these are.
    Changed(Box<[u64]>),
}

/// What an action is called.
#[derive(Debug, Clone, Copy)]
struct Names {
    kind: Option<NonZeroU64>,
    /// Whether it spawns a subagent; unknown for kinds of action that are not known.
    spawns: Option<bool>,
    tool: Option<NonZeroU64>,
    original: Option<NonZeroU64>,
}

impl Names {
    fn read(seed: Seed, parts: &Parts<'_>) -> Self {
        let print =
            |part, name| field(part, name).and_then(|text| NonZeroU64::new(seed.hash_one(&*text)));
        let spawns = match field(parts.action, "type").as_deref() {
            Some("subagent_spawn") => Some(true),
            Some("tool_call" | "skill_use" | "other") => Some(false),
            _ => None,
        };
        Self {
            kind: print(parts.action, "type"),
            spawns,
            tool: print(parts.tool, "name"),
            original: print(parts.tool, "original_name"),
        }
    }

    /// The place where other names contradict these; what is not named on both sides contradicts nothing.
    fn contradicted(&self, other: &Self) -> Option<&'static str> {
        if let (Some(one), Some(two)) = (self.kind, other.kind)
            && one != two
        {
            return Some("/action/type");
        }
        let known = |names: &Self| names.tool.is_some() || names.original.is_some();
        let shared = |name: Option<NonZeroU64>| {
            name.is_some() && (name == other.tool || name == other.original)
        };
        let contradicted =
            known(self) && known(other) && !shared(self.tool) && !shared(self.original);
        contradicted.then_some("/tool/name")
    }
}

impl Sequence {
    pub(super) fn requested(&mut self, event: &Event<'_>, findings: &mut Vec<Finding>) {
        let Some(action) = event.action else {
            return;
        };
        let input = event.parts.action.and_then(|action| action.get("input"));
        let fresh = Action {
            requested: true,
            end: None,
            ended_at: None,
            answer: Answer::Open,
            names: Names::read(self.seed, event.parts),
            input: input.and_then(|input| NonZeroU64::new(fingerprint(input))),
        };
        if let Some(known) = self.actions.get_mut(action.key) {
            if known.requested {
                findings.push(REQUESTED_TWICE.at("/action/id", "the action was requested before"));
            }
            *known = fresh;
        } else {
            self.actions.first(action.key, fresh);
        }
    }

    pub(super) fn ended(&mut self, kind: Type, event: &Event<'_>, findings: &mut Vec<Finding>) {
        let Some(key) = event.action.map(|action| action.key) else {
            return;
        };
        let end = match kind {
            Type::ActionCompleted => End::Completed,
            Type::ActionFailed => End::Failed,
            _ => End::Denied,
        };
        let names = Names::read(self.seed, event.parts);
        let ended_at = moment(event.parts);
        let complete = !self.actions.forgot();
        let Some(action) = self.actions.get_mut(key) else {
            // A denial may be all that an audit stream tells of an action.
            if end != End::Denied && complete {
                findings.push(END_ALONE.at("/action/id", "the action was not requested before"));
            }
            let alone = Action {
                requested: false,
                end: Some(end),
                ended_at,
                answer: Answer::Open,
                names,
                input: None,
            };
            self.actions.first(key, alone);
            return;
        };
        if let Some((rule, message)) = action.breach(end) {
            findings.push(rule.at("/action/id", message));
        } else if end == End::Completed
            && let Some(input) = event.parts.action.and_then(|action| action.get("input"))
        {
            findings.extend(action.ran(self.seed, input));
        }
        if action.requested
            && let Some(place) = action.names.contradicted(&names)
        {
            findings.push(OTHER_TOOL.at(place, "the action was requested as something else"));
        }
        action.end = Some(end);
        action.ended_at = ended_at;
    }

    /// Takes the answer to a request into account.
    pub(super) fn decided(
        &mut self,
        key: u64,
        behavior: &str,
        response: &Parts<'_>,
        findings: &mut Vec<Finding>,
    ) {
        let Some(action) = self.actions.get_mut(key) else {
            return;
        };
        if matches!(action.end, Some(End::Completed | End::Failed)) {
            // A recording may have them in another order than they came in.
            let late = action
                .ended_at
                .zip(moment(response))
                .is_some_and(|(ended, answered)| ended < answered);
            if late && matches!(behavior, "deny" | "stop" | "ask" | "defer") {
                findings.push(LATE_REFUSAL.at("/time", "the action had ended before this answer"));
            }
            return;
        }
        match behavior {
            "deny" | "stop" => action.answer = Answer::Refused,
            "ask" | "defer" => action.answer = Answer::Open,
            "allow" => {
                let input = response.control.and_then(|control| control.get("updated_input"));
                action.answer = input
                    .filter(|input| !input.is_null())
                    .map_or(Answer::Allowed, |input| changed(self.seed, input));
                // Somebody thought better of the denial.
                action.end = None;
            }
            _ => {}
        }
    }

    /// Whether the action that spawned a subagent is one that spawns. Asked as the subagent starts: later, it may
    /// have actions of its own under the same ids.
    pub(super) fn spawned(&self, event: &Event<'_>, findings: &mut Vec<Finding>) {
        let parent = event.parts.session.and_then(|session| session.get("parent"));
        let Some(id) = field(parent, "spawning_action_id") else {
            return;
        };
        let home = field(parent, "conversation_id")
            .map(|conversation| self.session_key(event.agent, &conversation));
        let homes = [Some(event.session.unwrap_or(event.agent)), home];
        let mut known = homes
            .into_iter()
            .flatten()
            .filter_map(|home| self.actions.get(self.action_key(home, &id)))
            .map(|action| action.names.spawns)
            .peekable();
        if known.peek().is_some() && known.all(|spawns| spawns == Some(false)) {
            let message = "the action is of a type that spawns nothing";
            findings.push(NO_SPAWN.at("/session/parent/spawning_action_id", message));
        }
    }
}

impl Action {
    /// Why it cannot end like this.
    fn breach(&self, end: End) -> Option<(&'static Rule, &'static str)> {
        match (self.end, end) {
            (Some(End::Denied), End::Completed) => {
                Some((&RAN_DENIED, "the action was denied before"))
            }
            // Agents tell of a blocked action as failed, too, and not only after the denial.
            (Some(End::Denied), _) | (Some(End::Failed), End::Denied) => {
                Some((&ENDED_DENIED, "the action has ended before, and was denied"))
            }
            (Some(_), _) => Some((&TWO_ENDS, "the action has ended before")),
            (None, End::Completed) if matches!(self.answer, Answer::Refused) => {
                Some((&DENIAL_IGNORED, "the response to its request was to deny it"))
            }
            (None, _) => None,
        }
    }

    /// Holds the input that ran against the one that was decided about.
    fn ran(&self, seed: Seed, input: View<'_>) -> Option<Finding> {
        let requested = self.input?.get();
        match &self.answer {
            Answer::Allowed if fingerprint(input) != requested => {
                Some(OTHER_INPUT.at("/action/input", "the input is not the one that was requested"))
            }
            // Some agents merge the update into the input, some complete it: its pieces are among the others then.
            Answer::Changed(updated)
                if !updated.iter().all(|piece| pieces(seed, input).any(|own| own == *piece)) =>
            {
                Some(if fingerprint(input) == requested {
                    UPDATE_IGNORED.at("/action/input", "the input ran as it was before the update")
                } else {
                    let message = "the input is neither the one that was requested nor its update";
                    OTHER_INPUT.at("/action/input", message)
                })
            }
            _ => None,
        }
    }
}

/// How many pieces of an updated input are kept.
const PIECES: usize = 16;

fn changed(seed: Seed, input: View<'_>) -> Answer {
    let updated: Box<[u64]> = pieces(seed, input).take(PIECES + 1).collect();
    // What is too much to keep cannot be compared later.
    if updated.len() > PIECES { Answer::Open } else { Answer::Changed(updated) }
}

/// The entries of an object, or the whole of any other value.
fn pieces(seed: Seed, value: View<'_>) -> impl Iterator<Item = u64> {
    let whole = (!value.is_object()).then(|| fingerprint(value));
    let entries = value
        .entries()
        .map(move |(name, value)| seed.hash_one((fingerprint(name), fingerprint(value))));
    entries.chain(whole)
}
