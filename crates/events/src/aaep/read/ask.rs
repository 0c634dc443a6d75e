//! What waits on a person, and how it ends.

use std::borrow::Cow;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::act::gate;
use super::carried::Carried;
use super::{OPEN, Reader, owned, time};
use crate::aaep::event::Type;
use crate::aaep::reply;
use crate::activity::{
    Action, ActionKind, Ask, AskKind, Choice, Decision, Gate, Origin, Outcome, Reply, ResponseKind,
    What,
};
use crate::check::shape::{says, text};
use crate::id;
use crate::json::View;

/// The time that AAEP's examples give people where nothing is said, in seconds.
const USUAL: i64 = 60;

/// How many choices are read.
const CHOICES: usize = 32;

/// What is known of a wait beside its ask.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Wait {
    /// The ask's token, where it is not the reply token.
    token: String,
    session: String,
    /// Whether a yes is among the answers that count.
    accepts: bool,
}

/// A confirmation that was accepted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Accepted {
    session: String,
    ask: String,
    action: Action,
}

impl Reader {
    pub(super) fn asked(
        &mut self,
        kind: Type,
        event: View<'_>,
        facts: Carried<'_>,
        origin: &Origin,
    ) -> Vec<What> {
        let reply_token = text(event, "reply_token").unwrap_or_default();
        if self.waits.contains_key(&*reply_token) {
            return Vec::new();
        }
        let ask = self.ask(kind, event, facts, origin);
        let wait = Wait {
            token: ask.token.clone(),
            session: owned(event, "session_id").unwrap_or_default(),
            accepts: allows_yes(event),
        };
        if self.waits.len() < OPEN && self.asks.get(&ask.token).is_none() {
            self.waits.insert(reply_token.into_owned(), wait);
            self.asks.open(ask.clone());
        }
        let mut read = Vec::new();
        if let (Some(gate), Some(action)) = (facts.data::<Gate>("held"), &ask.action) {
            read.push(What::ActionRequested { action: action.clone(), gate: Some(gate) });
        }
        read.push(What::AskOpened { ask: Box::new(ask) });
        read
    }

    fn ask(&self, kind: Type, event: View<'_>, facts: Carried<'_>, origin: &Origin) -> Ask {
        let reply_token = text(event, "reply_token").unwrap_or_default();
        let told = owned(event, "action").unwrap_or_default();
        let summary = owned(event, "summary_normal").filter(|summary| *summary != told);
        let kind = match kind {
            Type::AwaitingClarification => question(event),
            _ if facts.is("plan") => AskKind::Plan { text: told.clone() },
            _ => AskKind::Confirmation,
        };
        let carried = self.carried && facts.get("ask").is_some();
        let (action, gate) = if carried {
            (facts.action(), facts.data("gate"))
        } else if kind == AskKind::Confirmation {
            let action = Action {
                kind: ActionKind::Other,
                input: Some(Value::String(told)),
                ..Action::unseen(&reply_token, "action")
            };
            (Some(action), Some(told_gate(event)))
        } else {
            (None, None)
        };
        let accepts = says(event, "default_decision", "accept");
        let grave = gate.as_ref().is_some_and(Gate::is_grave);
        let forever = facts.get("deadline").is_some_and(View::is_null);
        let ask = facts.text("ask");
        Ask {
            action,
            gate,
            digest: facts.text("digest").unwrap_or_default(),
            deadline: if forever { None } else { deadline(event, origin.time) },
            words: if carried { facts.text("words") } else { summary },
            defaults_to_accept: accepts && !grave,
            schema: facts.get("schema").map(View::to_value),
            ..Ask::new(
                ask.unwrap_or_else(|| id::derive("ask_", &[&origin.session, &reply_token])),
                facts.text("token").unwrap_or_else(|| reply_token.clone().into_owned()),
                kind,
            )
        }
    }

    /// An answer in the stream: it closes what it answers, or it does not count.
    pub(super) fn replied(&mut self, message: View<'_>) -> Vec<What> {
        let Some(mut answer) = reply::answer(&message.to_value()) else { return Vec::new() };
        let reply_token = std::mem::take(&mut answer.token);
        let Some(wait) = self.waits.get(&reply_token) else { return Vec::new() };
        if matches!(answer.reply, Reply::Accept { .. }) && !wait.accepts {
            return Vec::new();
        }
        answer.token.clone_from(&wait.token);
        let Ok(what) = self.asks.answer(&answer) else { return Vec::new() };
        if let Some(wait) = self.waits.remove(&reply_token) {
            self.accept(&wait.session, &what);
            if self.answered.len() < OPEN || self.answered.contains_key(&wait.session) {
                *self.answered.entry(wait.session).or_default() += 1;
            }
        }
        vec![what]
    }

    /// A change away from `awaiting_input` ends the wait; only `calling_tool` says that it was accepted.
    pub(super) fn left_waiting(
        &mut self,
        event: View<'_>,
        facts: Carried<'_>,
        origin: &Origin,
    ) -> Vec<What> {
        let session = text(event, "session_id").unwrap_or_default();
        if let Some(what) = self.closed_by_facts(&session, facts) {
            return vec![what];
        }
        let to = text(event, "to_state").unwrap_or_default();
        if !says(event, "from_state", "awaiting_input") || to == "awaiting_input" {
            return Vec::new();
        }
        // The change tells everybody of a reply that was read before.
        if let Some(count) = self.answered.get_mut(&*session).filter(|count| **count > 0) {
            *count -= 1;
            return Vec::new();
        }
        let waits = self.waits.iter().filter(|(_, wait)| wait.session == session);
        let open: Vec<String> = waits.map(|(token, _)| token.clone()).collect();
        if facts.data("withdrawn") == Some(true) {
            let gone = open.iter().filter_map(|token| self.waits.remove(token)).collect::<Vec<_>>();
            let asks = gone.iter().filter_map(|wait| self.asks.remove(&wait.token));
            return asks
                .map(|ask| closed(ask, Outcome::Withdrawn, "agent", owned(event, "summary_normal")))
                .collect();
        }
        // Of several, nobody can tell which one is meant.
        let [only] = open.as_slice() else { return Vec::new() };
        let Some(wait) = self.waits.remove(only) else { return Vec::new() };
        let Some(ask) = self.asks.remove(&wait.token) else { return Vec::new() };
        let late = ask.deadline.is_some_and(|end| time(event).unwrap_or(origin.time) >= end);
        let question = matches!(ask.kind, AskKind::Clarification { .. });
        let outcome = match &*to {
            _ if question => Outcome::Withdrawn,
            "calling_tool" if wait.accepts && (!late || ask.defaults_to_accept) => {
                Outcome::Accepted
            }
            _ if late => Outcome::Expired,
            _ => Outcome::Rejected,
        };
        let by = match outcome {
            Outcome::Withdrawn => "agent",
            _ if late => "timeout",
            _ => "user",
        };
        let what = closed(ask, outcome, by, owned(event, "summary_normal"));
        self.accept(&session, &what);
        vec![what]
    }

    /// What the writer knew about the end of an ask that is open.
    fn closed_by_facts(&mut self, session: &str, facts: Carried<'_>) -> Option<What> {
        let what: What = facts.data("closed")?;
        let What::AskClosed { id, .. } = &what else { return None };
        let token = self.asks.iter().find(|ask| ask.id == *id)?.token.clone();
        self.asks.remove(&token);
        self.waits.retain(|_, wait| wait.token != token);
        self.accept(session, &what);
        Some(what)
    }

    /// Remembers a yes until a tool uses it.
    fn accept(&mut self, session: &str, what: &What) {
        if let What::AskClosed {
            id,
            action: Some(action),
            outcome: Outcome::Accepted,
            updated_input,
            ..
        } = what
        {
            let mut action = action.clone();
            if let Some(input) = updated_input {
                action.input = Some(input.clone());
            }
            if self.accepted.len() >= OPEN {
                self.accepted.pop_front();
            }
            let (session, ask) = (session.to_owned(), id.clone());
            self.accepted.push_back(Accepted { session, ask, action });
        }
    }

    /// The action that a tool was confirmed as: the one that it names, else the oldest of its session if it is one
    /// that somebody had to confirm.
    pub(super) fn take_accepted(&mut self, event: View<'_>, facts: Carried<'_>) -> Option<Action> {
        let session = text(event, "session_id").unwrap_or_default();
        let grave = says(event, "risk_level", "high")
            || event.get("irreversible").and_then(View::as_bool) == Some(true);
        let at = match facts.text("confirmed") {
            Some(ask) => self.accepted.iter().position(|accepted| accepted.ask == ask),
            None if grave => self.accepted.iter().position(|accepted| accepted.session == session),
            None => None,
        };
        self.accepted.remove(at?).map(|accepted| accepted.action)
    }

    /// A session is over, and with it everything that waits in it.
    pub(super) fn session_over(&mut self, event: View<'_>) -> Vec<What> {
        let session = text(event, "session_id").unwrap_or_default();
        self.accepted.retain(|accepted| accepted.session != session);
        self.answered.remove(&*session);
        let waits = self.waits.iter().filter(|(_, wait)| wait.session == session);
        let open: Vec<String> = waits.map(|(token, _)| token.clone()).collect();
        open.iter()
            .filter_map(|token| self.asks.remove(&self.waits.remove(token)?.token))
            .map(|ask| closed(ask, Outcome::Withdrawn, "agent", None))
            .collect()
    }
}

fn closed(ask: Ask, outcome: Outcome, by: &str, message: Option<String>) -> What {
    What::AskClosed {
        id: ask.id,
        action: ask.action,
        outcome,
        by: by.to_owned(),
        message,
        response: None,
        updated_input: None,
    }
}

fn question(event: View<'_>) -> AskKind {
    let list = |name: &str| event.get(name).into_iter().flat_map(View::items);
    let kinds = list("accepted_response_kinds").filter_map(View::as_str);
    let mut known: Vec<ResponseKind> = Vec::new();
    for kind in kinds.filter_map(|kind| ResponseKind::parse(&kind)) {
        if !known.contains(&kind) {
            known.push(kind);
        }
    }
    let choice = |choice: View<'_>| {
        let value = owned(choice, "value")?;
        Some(Choice { label: owned(choice, "label").unwrap_or_else(|| value.clone()), value })
    };
    AskKind::Clarification {
        question: owned(event, "question").unwrap_or_default(),
        kinds: known,
        choices: list("choices").filter_map(choice).take(CHOICES).collect(),
        context: owned(event, "context"),
        default: owned(event, "default_response"),
    }
}

/// What an agent says about the action that it asks about. Where nothing is said, the risk is not taken for low.
fn told_gate(event: View<'_>) -> Gate {
    let irreversible = match text(event, "reversibility").as_deref() {
        Some("irreversible") => Some(true),
        Some("reversible" | "reversible_with_effort") => Some(false),
        _ => event.get("irreversible").and_then(View::as_bool),
    };
    let risk = text(event, "risk_level").unwrap_or(Cow::Borrowed("medium"));
    let reason = owned(event, "consequence").unwrap_or_default();
    Gate { reason, ..gate(Decision::Ask, Some(&risk), irreversible) }
}

fn allows_yes(event: View<'_>) -> bool {
    event
        .get("allowed_replies")
        .filter(|allowed| allowed.is_array())
        .is_none_or(|allowed| allowed.items().any(|word| word.is("accept")))
}

fn deadline(event: View<'_>, seen: Timestamp) -> Option<Timestamp> {
    let seconds = event.get("timeout_seconds").and_then(View::as_i64).unwrap_or(USUAL);
    let asked = time(event).unwrap_or(seen);
    asked.saturating_add(SignedDuration::from_secs(seconds.clamp(1, 86_400))).ok()
}
