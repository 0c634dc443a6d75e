//! What the agent does with its tools.

use serde_json::Value;

use super::clamp::tool_name;
use super::lifecycle::{LONGEST_MS, error_text};
use super::turn::{Call, state};
use super::words::{Words, seconds, title};
use super::{At, Event, Facts, Field, Fields, Writer, Written};
use crate::activity::{Action, Decision, Gate, Status};
use crate::limits::AAEP_TEXT_CHARS;
use crate::text;
use crate::translate::NoteKind;

/// Whether somebody was asked before an action ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Consent<'a> {
    /// A person accepted it.
    Given {
        /// The ask that was answered.
        ask: &'a str,
        /// Whether it was requested before anybody was asked.
        held: bool,
    },
    /// Nobody was asked.
    Unasked,
    /// It was refused, or still asked about, and ran all the same.
    Refused,
}

/// How an action came to its end.
pub(super) struct End<'a> {
    pub(super) status: Status,
    pub(super) output: Option<&'a Value>,
    pub(super) error: Option<&'a str>,
    pub(super) ms: Option<u64>,
    /// What is said of it, where it did not end by itself.
    pub(super) words: Option<&'a Words>,
}

impl Writer {
    pub(super) fn requested(
        &mut self,
        at: At<'_>,
        action: &Action,
        gate: Option<&Gate>,
        out: &mut Vec<Written>,
    ) {
        self.open(at, out);
        self.close_output(at, out);
        let Some(turn) = &mut self.turn else { return };
        match gate {
            Some(gate) if gate.decision == Decision::Deny => {
                let reason = text::for_people(&gate.reason, AAEP_TEXT_CHARS / 4);
                let values = [("tool", title(action)), ("reason", reason)];
                let values = values.each_ref().map(|(name, value)| (*name, value.as_str()));
                let words = self.words("aaep.refused", &values);
                let facts = self.carry(|facts| {
                    facts.action(action);
                    facts.gate(Some(gate));
                });
                self.refuse(at, action, words, facts, out);
            }
            gate => {
                if let Some(grant) = turn.take_grant(action) {
                    let gate = graver(gate, grant.gate.as_ref());
                    let given = Consent::Given { ask: &grant.ask, held: false };
                    let consent = given.covers(grant.gate.as_ref(), gate.as_ref());
                    self.invoked(at, action, gate.as_ref(), consent, out);
                } else if let Some(gate) = gate.filter(|gate| gate.decision == Decision::Ask) {
                    // It does not run before a person says so; the ask follows as its own activity.
                    turn.held.insert(action.id.clone(), (action.clone(), gate.clone()));
                } else {
                    self.invoked(at, action, gate, Consent::Unasked, out);
                }
            }
        }
    }

    pub(super) fn invoked(
        &mut self,
        at: At<'_>,
        action: &Action,
        gate: Option<&Gate>,
        consent: Consent<'_>,
        out: &mut Vec<Written>,
    ) {
        // The same call announced twice: the first one never came to an end that we saw.
        if self.turn.as_ref().is_some_and(|turn| turn.tools.contains_key(&action.id)) {
            self.note(NoteKind::Closed, "action");
            self.ended(at, &action.id, &action.tool, &End::unseen(), out);
        }
        self.go(at, state::CALLING_TOOL, None, out);
        let grave = gate.is_some_and(Gate::is_grave);
        let unasked = consent == Consent::Unasked && grave;
        let call = self.call(at, action);
        let subject = action.subject();
        let mut fields = Fields::of([
            ("tool", call.tool.as_str().into()),
            ("args_summary", text::for_people(&subject, AAEP_TEXT_CHARS).into()),
        ]);
        let mut facts = self.carry(|facts| {
            facts.action(action);
            facts.gate(gate);
            if let Consent::Given { ask, held } = consent {
                facts.name("confirmed", Some(ask));
                if held {
                    facts.must("requested", true);
                }
            }
        });
        if consent == Consent::Refused || unasked {
            let (kind, about) = match consent {
                Consent::Refused => (NoteKind::Refused, &action.id),
                Consent::Given { .. } | Consent::Unasked => (NoteKind::Unconfirmed, &action.id),
            };
            self.notes.add(kind, about.as_str());
            facts.must("unconfirmed", true);
            if consent == Consent::Refused {
                facts.must("refused", true);
            }
            if let Some(gate) = gate {
                facts.must("risk", Field::Word(gate.risk.name()));
                if let Some(irreversible) = gate.irreversible {
                    facts.must("irreversible", irreversible);
                }
            }
        } else if let Some(gate) = gate {
            fields.word("risk_level", gate.risk.name());
            if let Some(irreversible) = gate.irreversible {
                fields.put("irreversible", irreversible);
            }
        }
        fields.put("tool_call_id", call.id.as_str());
        let bare = subject.trim().is_empty();
        let key = match consent {
            Consent::Refused => "aaep.ran_although_refused",
            Consent::Unasked if unasked => "aaep.tool_unconfirmed",
            Consent::Given { .. } | Consent::Unasked if bare => "aaep.tool_invoked_bare",
            Consent::Given { .. } | Consent::Unasked => "aaep.tool_invoked",
        };
        let words = self.with_gate(self.about_action(key, at, action), gate);
        let words = self.with_surroundings(words, at, action);
        if let Some(turn) = &mut self.turn {
            turn.refused.retain(|refused| *refused != action.id);
            turn.tools.insert(action.id.clone(), call);
            turn.calls += 1;
        }
        // What was refused and ran all the same is the one thing nobody may miss.
        let urgency = if consent == Consent::Refused { "critical" } else { "normal" };
        let event =
            Event { kind: "tool.invoked", urgency, fields, words: Some(words.into()), facts };
        self.push(at, event, out);
    }

    /// The call's own id if it is new and has AAEP's shape, else one derived from its place.
    fn call(&mut self, at: At<'_>, action: &Action) -> Call {
        let n = self.n;
        let derived = || at.derive("call_", n, &[&action.id]);
        let id = match &mut self.turn {
            Some(turn) => turn.call_ids.take("call_", &action.id, derived),
            None => derived(),
        };
        // That an id is written in AAEP's shape is no news; that it was used before is.
        if id != action.id && crate::id::conforms("call_", &action.id) {
            self.notes.add(NoteKind::Renamed, action.id.as_str());
        }
        Call { tool: tool_name(&action.tool), title: title(action), id }
    }

    pub(super) fn ended(
        &mut self,
        at: At<'_>,
        action: &str,
        tool: &str,
        end: &End<'_>,
        out: &mut Vec<Written>,
    ) {
        self.open(at, out);
        self.close_output(at, out);
        let Some(turn) = &mut self.turn else { return };
        let refused = turn.is_refused(action) || turn.held.contains_key(action);
        if refused && !turn.tools.contains_key(action) {
            if end.status != Status::Success {
                return;
            }
            let (ran, gate) = match turn.held.remove(action) {
                Some((action, gate)) => (action, Some(gate)),
                None => (Action::unseen(action, tool), None),
            };
            self.invoked(at, &ran, gate.as_ref(), Consent::Refused, out);
        }
        let call = self.turn.as_mut().and_then(|turn| turn.tools.remove(action));
        let call = call.or_else(|| {
            // The start was not seen: it is announced now, so that the end has something to end.
            self.note(NoteKind::Opened, "action");
            let missing = Action::unseen(action, tool);
            self.invoked(at, &missing, None, Consent::Unasked, out);
            self.turn.as_mut().and_then(|turn| turn.tools.remove(action))
        });
        let Some(call) = call else { return };
        let event = self.completed(&call, end);
        self.push(at, event, out);
        self.settle(at, out);
    }

    fn completed(&self, call: &Call, end: &End<'_>) -> Event {
        let (status, key) = match end.status {
            Status::Success => ("success", "aaep.tool_completed"),
            Status::Failure => ("error", "aaep.tool_failed"),
            Status::Cancelled => ("error", "aaep.tool_cancelled"),
            Status::Timeout => ("timeout", "aaep.tool_timeout"),
        };
        let words = end.words.cloned().unwrap_or_else(|| self.words(key, &[("tool", &call.title)]));
        let mut fields = Fields::of([
            ("tool", call.tool.as_str().into()),
            ("status", Field::Word(status)),
            ("tool_call_id", call.id.as_str().into()),
        ]);
        if let Some(ms) = end.ms {
            fields.put("duration_ms", ms.min(LONGEST_MS));
        }
        let error = error_text(end.error).filter(|_| end.status != Status::Success);
        if end.status != Status::Success {
            let told = error.clone().unwrap_or_else(|| words.normal.clone());
            fields.put("error_message", told);
        }
        let took = end.ms.map(|ms| self.say("aaep.fact_took", &[("seconds", &seconds(ms))]));
        let said = error.filter(|_| end.words.is_none());
        let words = words.and(self.fact("aaep.fact_error", "error", said.as_deref())).and(took);
        let facts = self.carry(|facts| {
            facts.value("output", end.output);
            if end.status == Status::Cancelled {
                facts.must("status", Field::Word("cancelled"));
            }
            if end.status != Status::Success && end.error.is_none() {
                facts.must("error", Value::Null);
            }
        });
        Event {
            kind: "tool.completed",
            urgency: "normal",
            fields,
            words: Some(words.into()),
            facts,
        }
    }

    pub(super) fn denied(
        &mut self,
        at: At<'_>,
        action: &Action,
        by: &str,
        reason: Option<&str>,
        out: &mut Vec<Written>,
    ) {
        self.open(at, out);
        let words = self
            .words("aaep.denied", &[("tool", &title(action))])
            .and(self.fact("aaep.fact_reason", "reason", reason))
            .and(self.fact("aaep.fact_denied_by", "by", Some(by)));
        let facts = self.carry(|facts| {
            facts.action(action);
            facts.data("denied", &serde_json::json!({ "by": by, "reason": reason }));
        });
        self.refuse(at, action, words, facts, out);
    }

    fn refuse(
        &mut self,
        at: At<'_>,
        action: &Action,
        words: Words,
        facts: Facts,
        out: &mut Vec<Written>,
    ) {
        self.close_output(at, out);
        let Some(turn) = &mut self.turn else { return };
        if turn.tools.contains_key(&action.id) {
            // It was announced as running; the refusal is its end.
            let end = End {
                status: Status::Failure,
                error: Some(&words.normal),
                words: Some(&words),
                ..End::unseen()
            };
            self.ended(at, &action.id, &action.tool, &end, out);
            return;
        }
        turn.held.remove(&action.id);
        turn.refuse(&action.id);
        if self.turn.as_ref().is_some_and(|turn| !turn.waits.is_empty()) {
            self.line(at, words, "normal", facts, out);
            return;
        }
        if self.turn.as_ref().is_some_and(|turn| turn.state == state::DECIDING) {
            self.go(at, state::THINKING, None, out);
        }
        self.change(at, state::DECIDING, Some(words.into()), facts, out);
        self.settle(at, out);
    }
}

/// What both say about an action, and of each fact the graver one.
pub(super) fn graver(one: Option<&Gate>, other: Option<&Gate>) -> Option<Gate> {
    let (Some(one), Some(other)) = (one, other) else {
        return one.or(other).cloned();
    };
    let irreversible = match (one.irreversible, other.irreversible) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (first, second) => first.or(second),
    };
    Some(Gate { risk: one.risk.max(other.risk), irreversible, ..one.clone() })
}

impl Consent<'_> {
    /// A yes covers what the person was told, and nothing worse.
    pub(super) fn covers(self, told: Option<&Gate>, runs: Option<&Gate>) -> Self {
        let worse = match (told, runs) {
            (Some(told), Some(runs)) => {
                runs.risk > told.risk
                    || runs.irreversible == Some(true) && told.irreversible == Some(false)
            }
            _ => false,
        };
        if worse { Consent::Unasked } else { self }
    }
}
