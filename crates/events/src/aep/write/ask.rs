//! What waits on a person: the event that asks, the answer or the response that closes it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::action::Refusal;
use super::draft::{Draft, Named, fit};
use super::{REMEMBERED, Scene, Writer};
use crate::activity::{Action, ActionKind, Ask, AskKind, Choice, Outcome, What};
use crate::aep::response::{Verdict, assemble};
use crate::translate::NoteKind;
use crate::written::{Field, Fields, Written};

/// An ask that was written and is open.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Asked {
    /// The event that asked.
    event: String,
    /// The action it is about. An ask about none has one of its own.
    action: Option<Named>,
    /// Whether it is a question, which decides about no action.
    question: bool,
    /// Whether its action is the ask itself.
    alone: bool,
    digest: String,
    /// When it was opened.
    time: jiff::Timestamp,
}

/// How an ask was closed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Closing<'a> {
    pub(super) id: &'a str,
    pub(super) action: Option<&'a Action>,
    pub(super) outcome: Outcome,
    pub(super) by: &'a str,
    pub(super) message: Option<&'a str>,
    pub(super) response: Option<&'a Value>,
    pub(super) updated_input: Option<&'a Value>,
}

impl Writer {
    pub(super) fn ask_opened(&mut self, scene: Scene<'_>, ask: &Ask, out: &mut Vec<Written>) {
        let facts = |draft: Draft| {
            let known = Ask { action: None, gate: None, ..ask.clone() };
            let draft = draft.carry("ask", serde_json::to_value(known).ok());
            if ask.digest.is_empty() { draft } else { draft.own("digest", ask.digest.as_str()) }
        };
        let (event, action, alone) = match &ask.kind {
            AskKind::Clarification { question, choices, .. } => {
                // What can be chosen is told in the text, unless the action's input tells it.
                let known = ask.action.as_ref().is_some_and(|action| action.input.is_some());
                let text = listed(question, if known { &[] } else { choices });
                let mut draft = facts(Draft::new("question.asked").content("question", text));
                let named = ask.action.as_ref().map(|action| self.named(action));
                if let Some(named) = &named {
                    draft = draft.action(named);
                }
                (self.emit_named(scene, draft, out), named.map(Named::bare), false)
            }
            AskKind::Confirmation | AskKind::Plan { .. } => {
                if let AskKind::Plan { text } = &ask.kind {
                    let draft = Draft::new("model.plan").content("plan", text.as_str());
                    self.emit(scene, draft.carry("asked", Some(true)), out);
                }
                let own = Action {
                    kind: ActionKind::Other,
                    rationale: ask.words.clone(),
                    ..Action::unseen(&ask.id, "")
                };
                let action = ask.action.as_ref().unwrap_or(&own);
                let known = self.open.contains(&action.id);
                let mut draft = facts(Draft::new("action.requested"));
                if ask.action.is_none() {
                    draft = draft.carry("alone", Some(true));
                }
                let request = self.request(scene, action, ask.gate.as_ref(), Some(draft), out);
                if known && self.mode.carry {
                    let again = facts(Draft::new("x.ask_opened")).action(&request.named);
                    let gate = ask.gate.as_ref().and_then(|gate| serde_json::to_value(gate).ok());
                    self.emit(scene, again.carry("gate", gate), out);
                }
                (request.event, Some(request.named), ask.action.is_none())
            }
        };
        let asked = Asked {
            event,
            action,
            question: matches!(ask.kind, AskKind::Clarification { .. }),
            alone,
            digest: ask.digest.clone(),
            time: scene.origin.time,
        };
        self.asked.insert(&ask.id, asked, REMEMBERED);
    }

    pub(super) fn ask_closed(
        &mut self,
        scene: Scene<'_>,
        closing: Closing<'_>,
        out: &mut Vec<Written>,
    ) {
        let Some(asked) = self.asked.remove(closing.id) else {
            self.unasked(scene, closing, out);
            return;
        };
        if asked.question {
            self.answered(scene, &asked, closing, out);
            return;
        }
        let key = asked.action.as_ref().map(Named::key).unwrap_or_default();
        // What has ended, or was requested anew since, is not decided about any more.
        let Some(request) = self.open.get(key).filter(|it| it.event == asked.event).cloned() else {
            self.notes.add(NoteKind::Dropped, closing.id);
            return;
        };
        let told = closing.action.unwrap_or(&request.named.action);
        let action = Action { id: key.to_owned(), ..told.clone() };
        self.decide(scene, closing, (&action, asked.time, &asked.digest), out);
        // Nothing runs behind an ask about no action: with the answer it is over.
        if asked.alone && self.open.remove(key).is_some() {
            self.closed.add(key, false);
        }
    }

    /// Closes what was decided about an action without an ask that was told.
    fn unasked(&mut self, scene: Scene<'_>, closing: Closing<'_>, out: &mut Vec<Written>) {
        let Some(action) = closing.action else {
            self.notes.add(NoteKind::Dropped, closing.id);
            return;
        };
        match self.open.get(&action.id) {
            Some(request) if !request.answered => {
                let since = request.time;
                self.decide(scene, closing, (action, since, ""), out);
            }
            _ => self.notes.add(NoteKind::Dropped, closing.id),
        }
    }

    fn decide(
        &mut self,
        scene: Scene<'_>,
        closing: Closing<'_>,
        (action, since, digest): (&Action, jiff::Timestamp, &str),
        out: &mut Vec<Written>,
    ) {
        let Some(request) = self.open.get(&action.id).cloned() else { return };
        let verdict = Verdict {
            by: closing.by,
            message: closing.message,
            updated_input: closing.updated_input,
            took: Some(took(since, scene)),
            digest: Some(digest),
            closed: self.mode.carry.then_some(closing.outcome),
            ..Verdict::new(false, closing.outcome)
        };
        self.answer(scene, &request, verdict, out);
        match closing.outcome {
            Outcome::Accepted => {
                if let Some(open) = self.open.get_mut(&action.id) {
                    open.confirmed = true;
                }
            }
            Outcome::Rejected | Outcome::Expired => {
                let why = Refusal { by: closing.by, reason: closing.message, rule: None };
                self.denied(scene, action, why, out);
            }
            Outcome::Withdrawn => {
                if let Some(open) = self.open.get_mut(&action.id) {
                    open.answered = request.answered;
                }
            }
        }
    }

    fn answered(
        &mut self,
        scene: Scene<'_>,
        asked: &Asked,
        closing: Closing<'_>,
        out: &mut Vec<Written>,
    ) {
        let answer = closing.response.filter(|response| !response.is_null());
        if let (Outcome::Accepted, Some(answer)) = (closing.outcome, answer) {
            let text = match answer {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let mut draft = Draft::new("question.answered").content("answer", text);
            if let Some(named) = &asked.action {
                draft = draft.action(named);
            }
            if !closing.by.is_empty() {
                let outcome = ("outcome", Field::Word("info"));
                let mut decision = Fields::of([outcome, ("by", closing.by.into())]);
                decision.maybe("reason", closing.message);
                draft = draft.field("decision", decision);
            }
            let typed = (!answer.is_string()).then(|| answer.clone());
            let draft = draft.carry("response", typed);
            self.emit(scene, draft.carry("asked", Some(closing.id)), out);
            return;
        }
        let id = self.next_id(scene, "rsp_");
        let verdict = Verdict {
            by: closing.by,
            message: closing.message,
            action: asked.action.as_ref().map(|named| named.action.id.as_str()),
            took: Some(took(asked.time, scene)),
            digest: Some(&asked.digest),
            closed: self.mode.carry.then_some(closing.outcome),
            ..Verdict::new(true, closing.outcome)
        };
        let response = assemble(&verdict, &asked.event, &id, scene.origin.time);
        self.respond(response, out);
    }

    /// An action under the id it has in this stream, if it has one there.
    fn named(&self, action: &Action) -> Named {
        match self.open.get(&action.id) {
            Some(request) => Named {
                action: Action {
                    input: action.input.clone(),
                    rationale: action.rationale.clone(),
                    ..request.named.action.clone()
                },
                was: request.named.was.clone(),
            },
            None => Named::new(action, None),
        }
    }

    /// A response that decides nothing, told by a source that has it in its own protocol.
    pub(super) fn handed_on(
        &mut self,
        scene: Scene<'_>,
        event: &Value,
        out: &mut Vec<Written>,
    ) -> bool {
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str);
        let behavior = match text("/control/behavior") {
            Some("ask") => "ask",
            Some("defer") => "defer",
            Some("abstain") => "abstain",
            _ => return false,
        };
        let Some(request) = text("/action_id").and_then(|id| self.open.get(id)).cloned() else {
            return false;
        };
        let policy = text("/decision/policy_id").map(fit);
        let verdict = Verdict {
            behavior,
            outcome: "info",
            by: text("/decision/by").unwrap_or_default(),
            message: text("/control/message").or_else(|| text("/decision/reason")),
            policy: policy.as_deref(),
            action: Some(&request.named.action.id),
            ..Verdict::default()
        };
        let id = self.next_id(scene, "rsp_");
        let response = assemble(&verdict, &request.event, &id, scene.origin.time);
        self.respond(response, out);
        true
    }

    /// No question is answered any more: the session it was asked in is over.
    pub(super) fn forget_questions(&mut self) {
        self.asked.retain(|asked| !asked.question);
    }
}

fn took(since: jiff::Timestamp, scene: Scene<'_>) -> i64 {
    scene.origin.time.as_millisecond().saturating_sub(since.as_millisecond()).max(0)
}

/// A question, with what can be chosen.
fn listed(question: &str, choices: &[Choice]) -> String {
    let mut text = question.to_owned();
    for choice in choices {
        let label = if choice.label.is_empty() { &choice.value } else { &choice.label };
        text.push_str("\n- ");
        text.push_str(label);
    }
    text
}

/// What an activity says about how an ask was closed.
pub(super) fn closing(what: &What) -> Option<Closing<'_>> {
    let What::AskClosed { id, action, outcome, by, message, response, updated_input } = what else {
        return None;
    };
    Some(Closing {
        id,
        action: action.as_ref(),
        outcome: *outcome,
        by,
        message: message.as_deref(),
        response: response.as_ref(),
        updated_input: updated_input.as_ref(),
    })
}
