//! Actions: requested, answered by policy, refused, ended.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::draft::{Draft, MESSAGE_CHARS, Named, ending, fit};
use super::{REMEMBERED, Scene, Writer};
use crate::activity::{Action, Decision, Gate, Risk, Status};
use crate::aep::response::{Verdict, assemble};
use crate::event::time_text;
use crate::translate::NoteKind;
use crate::written::{Field, Fields, Written};

/// A request that was written and has no end yet.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Request {
    /// The event that requested it.
    pub(super) event: String,
    /// The action as it was told, without what was said about it.
    pub(super) named: Named,
    /// When it was requested.
    pub(super) time: jiff::Timestamp,
    /// Whether somebody decided about it.
    pub(super) answered: bool,
    /// Whether a person said yes.
    pub(super) confirmed: bool,
    /// What the gate knows of an action that nobody should run unasked.
    pub(super) grave: Option<Grave>,
}

/// Why somebody should be asked.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Grave {
    risk: Risk,
    irreversible: Option<bool>,
}

impl Grave {
    pub(super) fn of(gate: Option<&Gate>) -> Option<Self> {
        let gate = gate.filter(|gate| gate.is_grave())?;
        Some(Self { risk: gate.risk, irreversible: gate.irreversible })
    }
}

/// Who refused, and why.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Refusal<'a> {
    pub(super) by: &'a str,
    pub(super) reason: Option<&'a str>,
    pub(super) rule: Option<&'a str>,
}

impl Writer {
    pub(super) fn requested(
        &mut self,
        scene: Scene<'_>,
        action: &Action,
        gate: Option<&Gate>,
        out: &mut Vec<Written>,
    ) {
        let request = self.request(scene, action, gate, None, out);
        let Some(gate) = gate else { return };
        let allowed = gate.decision == Decision::Allow;
        // The answer to what a person decides comes with the activity that closes the ask.
        if gate.decision == Decision::Ask || allowed && request.answered {
            return;
        }
        let rule = Some(gate.rule.as_str()).filter(|rule| !rule.is_empty()).map(fit);
        let verdict = Verdict {
            behavior: if allowed { "allow" } else { "deny" },
            outcome: if allowed { "approved" } else { "denied" },
            by: "auto-policy",
            message: Some(&gate.reason),
            policy: rule.as_deref(),
            ..Verdict::default()
        };
        self.answer(scene, &request, verdict, out);
        if !allowed {
            let why =
                Refusal { by: "auto-policy", reason: Some(&gate.reason), rule: Some(&gate.rule) };
            self.denied(scene, action, why, out);
        }
    }

    /// Writes the response to a request.
    pub(super) fn answer(
        &mut self,
        scene: Scene<'_>,
        request: &Request,
        verdict: Verdict<'_>,
        out: &mut Vec<Written>,
    ) {
        if let Some(open) = self.open.get_mut(request.named.key()) {
            open.answered = true;
        }
        let id = self.next_id(scene, "rsp_");
        let verdict = Verdict { action: Some(&request.named.action.id), ..verdict };
        let response = assemble(&verdict, &request.event, &id, scene.origin.time);
        self.respond(response, out);
    }

    /// The open request of an action; written now if it was not. An id that had its end gets a new one. `ask` is what
    /// is known of the ask that the request stands for.
    pub(super) fn request(
        &mut self,
        scene: Scene<'_>,
        action: &Action,
        gate: Option<&Gate>,
        ask: Option<Draft>,
        out: &mut Vec<Written>,
    ) -> Request {
        if let Some(request) = self.open.get_mut(&action.id) {
            request.grave = Grave::of(gate).or(request.grave);
            return request.clone();
        }
        let fresh = self.closed.knows(&action.id).then(|| self.next_id(scene, "act_"));
        let named = Named::new(action, fresh);
        let facts = ask.unwrap_or_else(|| Draft::new("action.requested"));
        let gated = gate.and_then(|gate| serde_json::to_value(gate).ok());
        let draft = facts.action(&named).carry("gate", gated);
        let event = self.emit_named(scene, draft, out);
        let request = Request {
            event,
            named: named.bare(),
            time: scene.origin.time,
            answered: false,
            confirmed: false,
            grave: Grave::of(gate),
        };
        // What was forgotten has had its end: its id is not used again.
        if let Some((forgotten, _)) = self.open.insert(&action.id, request.clone(), REMEMBERED) {
            self.closed.add(&forgotten, false);
        }
        request
    }

    pub(super) fn ended(&mut self, scene: Scene<'_>, end: &End<'_>, out: &mut Vec<Written>) {
        // A refused action that the agent also reports as failed has had its end. One that ran all the same is told,
        // under an id of its own.
        let refused = !self.open.contains(end.id) && self.closed.denied(end.id);
        if refused && end.status != Status::Success {
            return;
        }
        if !self.open.contains(end.id) {
            self.notes.add(NoteKind::Opened, end.id);
        }
        let unseen = Action::unseen(end.id, end.tool);
        let request = self.request(scene, &unseen, None, None, out);
        let (kind, word) = ending(end.status);
        let mut draft = Draft::new(kind).action(&request.named);
        if let Some(Field::Object(action)) = draft.fields.get_mut("action") {
            action.word("status", word);
            action.maybe("output", end.output.filter(|output| !output.is_null()).cloned());
            if let Some(error) = end.error {
                let message = crate::text::shorten(error, MESSAGE_CHARS);
                action.put("error", Fields::of([("message", message.into())]));
            }
        }
        if let Some(ms) = end.ms {
            draft = draft.field("metrics", Fields::of([("duration_ms", ms.into())]));
        }
        let ran = matches!(end.status, Status::Success | Status::Failure);
        if refused {
            self.notes.add(NoteKind::Refused, end.id);
            draft = draft.own("refused", true).own("action_id", end.id);
        } else if let Some(grave) = request.grave.filter(|_| ran && !request.confirmed) {
            self.notes.add(NoteKind::Unconfirmed, end.id);
            draft = draft.own("unconfirmed", true).own("risk", Field::Word(grave.risk.name()));
            if let Some(fact) = grave.irreversible {
                draft = draft.own("irreversible", fact);
            }
        }
        self.open.remove(end.id);
        self.closed.add(end.id, false);
        self.emit(scene, draft, out);
    }

    /// Writes that an action was refused, if that was not written yet.
    pub(super) fn refused(
        &mut self,
        scene: Scene<'_>,
        action: &Action,
        why: Refusal<'_>,
        out: &mut Vec<Written>,
    ) {
        if self.open.contains(&action.id) || !self.closed.denied(&action.id) {
            self.request(scene, action, None, None, out);
            self.denied(scene, action, why, out);
        }
    }

    pub(super) fn denied(
        &mut self,
        scene: Scene<'_>,
        action: &Action,
        why: Refusal<'_>,
        out: &mut Vec<Written>,
    ) {
        // Only what is open can be refused.
        let Some(request) = self.open.remove(&action.id) else { return };
        self.closed.add(&action.id, true);
        let Named { action: bare, was } = request.named;
        let (input, rationale) = (action.input.clone(), action.rationale.clone());
        let named = Named { action: Action { input, rationale, ..bare }, was };
        let mut decision = Fields::of([("outcome", Field::Word("denied"))]);
        let mut put = |key: &'static str, value: Option<&str>| {
            decision.maybe(key, value.filter(|value| !value.is_empty()));
        };
        put("by", Some(why.by));
        put("reason", why.reason);
        put("policy_id", why.rule.filter(|rule| !rule.is_empty()).map(fit).as_deref());
        put("time", Some(&time_text(scene.origin.time)));
        let draft = Draft::new("action.denied").action(&named);
        self.emit(scene, draft.field("decision", decision), out);
    }
}

/// How an action ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct End<'a> {
    pub(super) id: &'a str,
    pub(super) tool: &'a str,
    pub(super) status: Status,
    pub(super) output: Option<&'a Value>,
    pub(super) error: Option<&'a str>,
    pub(super) ms: Option<u64>,
}
