//! Actions: requested, answered by policy, refused, ended.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::draft::{Draft, MESSAGE_CHARS, Named, ending, fit};
use super::{Place, REMEMBERED, Writer};
use crate::activity::{Action, Decision, Gate, Risk, Status};
use crate::aep::response::{Verdict, assemble};
use crate::event::time_text;
use crate::translate::NoteKind;

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
        place: &Place,
        action: &Action,
        gate: Option<&Gate>,
        out: &mut Vec<Value>,
    ) {
        let request = self.request(place, action, gate, None, out);
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
        self.answer(place, &request, verdict, out);
        if !allowed {
            let why =
                Refusal { by: "auto-policy", reason: Some(&gate.reason), rule: Some(&gate.rule) };
            self.denied(place, action, why, out);
        }
    }

    /// Writes the response to a request.
    pub(super) fn answer(
        &mut self,
        place: &Place,
        request: &Request,
        verdict: Verdict<'_>,
        out: &mut Vec<Value>,
    ) {
        if let Some(open) = self.open.get_mut(request.named.key()) {
            open.answered = true;
        }
        let id = self.next_id(place, "rsp_");
        let verdict = Verdict { action: Some(&request.named.action.id), ..verdict };
        let response = assemble(&verdict, &request.event, &id, place.origin.time);
        self.respond(response, out);
    }

    /// The open request of an action; written now if it was not. An id that had its end gets a new one. `ask` is what
    /// is known of the ask that the request stands for.
    pub(super) fn request(
        &mut self,
        place: &Place,
        action: &Action,
        gate: Option<&Gate>,
        ask: Option<Draft>,
        out: &mut Vec<Value>,
    ) -> Request {
        if let Some(request) = self.open.get_mut(&action.id) {
            request.grave = Grave::of(gate).or(request.grave);
            return request.clone();
        }
        let fresh = self.closed.knows(&action.id).then(|| self.next_id(place, "act_"));
        let named = Named::new(action, fresh);
        let facts = ask.unwrap_or_else(|| Draft::new("action.requested"));
        let gated = gate.and_then(|gate| serde_json::to_value(gate).ok());
        let draft = facts.action(&named).carry("gate", gated.unwrap_or_default());
        let event = self.emit(place, draft, out);
        let request = Request {
            event,
            named: named.bare(),
            time: place.origin.time,
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

    pub(super) fn ended(&mut self, place: &Place, end: &End<'_>, out: &mut Vec<Value>) {
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
        let request = self.request(place, &unseen, None, None, out);
        let (kind, word) = ending(end.status);
        let mut draft = Draft::new(kind).action(&request.named);
        if let Some(Value::Object(action)) = draft.fields.get_mut("action") {
            action.insert("status".into(), json!(word));
            if let Some(output) = end.output.filter(|output| !output.is_null()) {
                action.insert("output".into(), output.clone());
            }
            if let Some(error) = end.error {
                let message = crate::text::shorten(error, MESSAGE_CHARS);
                action.insert("error".into(), json!({ "message": message }));
            }
        }
        if let Some(ms) = end.ms {
            draft = draft.field("metrics", json!({ "duration_ms": ms }));
        }
        let ran = matches!(end.status, Status::Success | Status::Failure);
        if refused {
            self.notes.add(NoteKind::Refused, end.id);
            draft = draft.own("refused", json!(true)).own("action_id", json!(end.id));
        } else if let Some(grave) = request.grave.filter(|_| ran && !request.confirmed) {
            self.notes.add(NoteKind::Unconfirmed, end.id);
            draft = draft.own("unconfirmed", json!(true)).own("risk", json!(grave.risk));
            if let Some(fact) = grave.irreversible {
                draft = draft.own("irreversible", json!(fact));
            }
        }
        self.open.remove(end.id);
        self.closed.add(end.id, false);
        self.emit(place, draft, out);
    }

    /// Writes that an action was refused, if that was not written yet.
    pub(super) fn refused(
        &mut self,
        place: &Place,
        action: &Action,
        why: Refusal<'_>,
        out: &mut Vec<Value>,
    ) {
        if self.open.contains(&action.id) || !self.closed.denied(&action.id) {
            self.request(place, action, None, None, out);
            self.denied(place, action, why, out);
        }
    }

    pub(super) fn denied(
        &mut self,
        place: &Place,
        action: &Action,
        why: Refusal<'_>,
        out: &mut Vec<Value>,
    ) {
        // Only what is open can be refused.
        let Some(request) = self.open.remove(&action.id) else { return };
        self.closed.add(&action.id, true);
        let Named { action: bare, was } = request.named;
        let (input, rationale) = (action.input.clone(), action.rationale.clone());
        let named = Named { action: Action { input, rationale, ..bare }, was };
        let mut decision = Map::new();
        decision.insert("outcome".into(), json!("denied"));
        let mut put = |key: &str, value: Option<&str>| {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                decision.insert(key.into(), json!(value));
            }
        };
        put("by", Some(why.by));
        put("reason", why.reason);
        put("policy_id", why.rule.filter(|rule| !rule.is_empty()).map(fit).as_deref());
        put("time", Some(&time_text(place.origin.time)));
        let draft = Draft::new("action.denied").action(&named);
        self.emit(place, draft.field("decision", Value::Object(decision)), out);
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
