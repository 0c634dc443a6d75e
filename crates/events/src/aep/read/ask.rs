//! Actions that wait for an answer, and the responses that bring one.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Moment, Reader, action};
use crate::activity::{Action, Ask, AskKind, Asks, Decision, Gate, Outcome, Refusal, What};
use crate::aep::response;
use crate::aep::write::memory::Newest;
use crate::event::Protocol;
use crate::json::View;

/// How many open actions, open asks and closed ones are remembered.
const ACTIONS: usize = 1_024;
const ASKS: usize = 256;

/// The largest input of an action that is remembered, in bytes, about.
const INPUT_BYTES: usize = 64 * 1_024;

/// The event that tells of an ask about an action that was requested before.
pub(super) const OPENED: &str = "x.ask_opened";

/// Who waits for what.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Book {
    /// Action id → the action, while it is open.
    actions: Newest<Seen>,
    pub(super) asks: Asks,
    /// Token → what else is known of an ask that was told.
    pub(super) told: Newest<PendingAsk>,
    /// Actions of which a refusal was told, or a question closed.
    over: Newest<Over>,
}

/// An action that was requested.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Seen {
    action: Action,
    /// The event that requested it.
    event: String,
    answered: bool,
    /// Whether the gate asks a person about it, or refuses it.
    stopped: bool,
}

/// An ask that was told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PendingAsk {
    /// The event that asks.
    pub(super) event: String,
    pub(super) action: Option<String>,
    pub(super) question: bool,
}

/// What is told once of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Over {
    Refused,
    Answered,
}

impl Book {
    /// An action that was requested and has not ended.
    pub(super) fn action(&self, id: &str) -> Option<&Action> {
        self.actions.get(id).map(|seen| &seen.action)
    }

    /// Whether a person is asked about an action anyway, or nobody any more.
    pub(super) fn is_stopped(&self, action: &str) -> bool {
        self.actions.get(action).is_some_and(|seen| seen.stopped)
    }

    pub(super) fn is_over(&self, action: &str, how: Over) -> bool {
        self.over.get(action) == Some(&how)
    }

    pub(super) fn set_over(&mut self, action: &str, how: Over) {
        self.over.insert(action, how, ASKS);
    }

    /// Takes an ask in that is told.
    pub(super) fn open(&mut self, ask: &Ask, event: String) {
        let question = matches!(ask.kind, AskKind::Clarification { .. });
        let action = ask.action.as_ref().map(|action| action.id.clone());
        self.asks.open(Ask { action: ask.action.as_ref().map(small), ..ask.clone() });
        let told = PendingAsk { event, action, question };
        if let Some((oldest, _)) = self.told.insert(&ask.token, told, ASKS) {
            self.asks.remove(&oldest);
        }
    }

    /// Takes an ask out, and says how it closed.
    pub(super) fn close(&mut self, token: &str, outcome: Outcome, by: &str) -> Option<What> {
        self.told.remove(token);
        let ask = self.asks.remove(token)?;
        Some(What::AskClosed {
            id: ask.id,
            action: ask.action,
            outcome,
            by: by.to_owned(),
            message: None,
            response: None,
            updated_input: None,
        })
    }

    /// Nobody waits for the answer to any question any more.
    pub(super) fn withdraw(&mut self, out: &mut Vec<What>) {
        let questions: Vec<String> = self
            .told
            .iter()
            .filter(|(_, told)| told.question)
            .map(|(token, _)| token.to_owned())
            .collect();
        for token in questions {
            out.extend(self.close(&token, Outcome::Withdrawn, "agent"));
        }
    }

    /// The token of the ask that a response is about.
    fn token(&self, event: &str, action: Option<&str>) -> Option<String> {
        let by_event = |told: &PendingAsk| told.event == event;
        let by_action = |told: &PendingAsk| !told.question && told.action.as_deref() == action;
        let found =
            self.told.newest(by_event).or_else(|| action.and_then(|_| self.told.newest(by_action)));
        found.map(|(token, _)| token.to_owned())
    }

    /// The id of the open action that a response is about.
    fn requested(&self, event: &str, action: Option<&str>) -> Option<String> {
        let named = action.filter(|id| self.actions.contains(id)).map(str::to_owned);
        named.or_else(|| {
            self.actions.newest(|seen| seen.event == event).map(|(id, _)| id.to_owned())
        })
    }
}

impl Reader {
    pub(super) fn requested(
        &mut self,
        gate: Option<&Gate>,
        moment: Moment<'_>,
        out: &mut Vec<What>,
    ) {
        let Some(action) = action(moment.event) else {
            out.push(moment.raw("action.requested"));
            return;
        };
        self.talk.pause(moment.thread());
        let gate = gate.cloned().or_else(|| moment.trusted("gate"));
        // An ask that is about no action made one up to be told.
        let alone = moment.trusted::<bool>("alone") == Some(true);
        if !alone {
            let stopped = gate.as_ref().is_some_and(|gate| gate.decision != Decision::Allow);
            // What the gate answered is known; the response only says it again.
            let answered = gate.as_ref().is_some_and(|gate| gate.decision != Decision::Ask);
            let seen = Seen { action: small(&action), event: moment.id(), answered, stopped };
            self.book.actions.insert(&action.id, seen, ACTIONS);
            out.push(What::ActionRequested { action: action.clone(), gate: gate.clone() });
        }
        if let Some(ask) = moment.trusted::<Ask>("ask") {
            let action = Some(action).filter(|_| !alone);
            self.open(Ask { action, gate, ..ask }, moment.id(), out);
        }
    }

    /// An ask about an action that was requested before.
    pub(super) fn told_ask(&mut self, moment: Moment<'_>, out: &mut Vec<What>) {
        let (Some(ask), Some(named)) = (moment.trusted::<Ask>("ask"), action(moment.event)) else {
            out.push(moment.raw(OPENED));
            return;
        };
        let seen = self.book.actions.get(&named.id);
        let event = seen.map_or_else(|| moment.id(), |seen| seen.event.clone());
        let action = Some(seen.map_or(named, |seen| seen.action.clone()));
        self.open(Ask { action, gate: moment.trusted("gate"), ..ask }, event, out);
    }

    pub(super) fn open(&mut self, ask: Ask, event: String, out: &mut Vec<What>) {
        self.book.open(&ask, event);
        out.push(What::AskOpened { ask: Box::new(ask) });
    }

    pub(super) fn denied(&mut self, moment: Moment<'_>, out: &mut Vec<What>) {
        let event = moment.event;
        let Some(action) = action(event) else {
            out.push(moment.raw("action.denied"));
            return;
        };
        self.close_question(&action.id, Outcome::Withdrawn, out);
        self.book.actions.remove(&action.id);
        if self.book.is_over(&action.id, Over::Refused) {
            return;
        }
        let by = event.owned("/decision/by").unwrap_or_else(|| "agent".to_owned());
        let reason = event.owned("/decision/reason").or_else(|| event.owned("/decision/feedback"));
        out.push(What::ActionDenied { action, by, reason });
    }

    /// An action came to its end: no answer counts any more.
    pub(super) fn action_over(&mut self, id: &str) {
        self.book.actions.remove(id);
    }

    pub(super) fn responded(
        &mut self,
        event: View<'_>,
        origin: &crate::activity::Origin,
        out: &mut Vec<What>,
    ) {
        let request = event.text("/request_event_id").unwrap_or_default();
        let named = event.text("/action_id");
        let (request, named) = (&*request, named.as_deref());
        let raw = || What::Raw {
            protocol: Protocol::Aep,
            kind: "response".to_owned(),
            text: None,
            event: event.to_value(),
        };
        if let Some(token) = self.book.token(request, named) {
            match self.answered_ask(&token, event) {
                Heard::Closed(closed) => out.push(*closed),
                Heard::Void => {}
                Heard::NoAnswer => out.push(raw()),
            }
            return;
        }
        let Some(id) = self.book.requested(request, named) else {
            // One that belongs to another stream is nothing here.
            if self.recent.iter().any(|known| known == request) {
                out.push(raw());
            }
            return;
        };
        let Some(seen) = self.book.actions.get_mut(&id) else { return };
        let token = seen.event.clone();
        let ask = Ask {
            action: Some(seen.action.clone()),
            ..Ask::new(
                crate::id::derive("ask_", &[&origin.session, &token]),
                token,
                AskKind::Confirmation,
            )
        };
        let Some(answer) = response::answer(&event.to_value(), Some(&ask)) else {
            out.push(raw());
            return;
        };
        let first = !std::mem::replace(&mut seen.answered, true);
        let mut book = Asks::default();
        book.open(ask);
        let Ok(closed) = book.answer(&answer) else { return };
        let closed = expired(closed);
        let What::AskClosed { action: Some(action), outcome, by, message, .. } = &closed else {
            return;
        };
        let refused = matches!(outcome, Outcome::Rejected | Outcome::Expired);
        let denied = refused.then(|| What::ActionDenied {
            action: action.clone(),
            by: by.clone(),
            reason: message.clone(),
        });
        // A second yes changes nothing; a second answer that is a no does.
        if first {
            out.push(closed);
        }
        if let Some(denied) = denied.filter(|_| !self.book.is_over(&id, Over::Refused)) {
            self.book.set_over(&id, Over::Refused);
            out.push(denied);
        }
    }

    /// What a response says to an ask that was told.
    fn answered_ask(&mut self, token: &str, event: View<'_>) -> Heard {
        let ask = self.book.asks.get(token);
        let question = ask.is_some_and(|ask| matches!(ask.kind, AskKind::Clarification { .. }));
        let answer = response::answer(&event.to_value(), ask);
        let closed = self.trusting.then(|| super::trust::own(event)?.get("closed")).flatten();
        let closed = closed.and_then(|closed| Outcome::deserialize(closed.to_value()).ok());
        let by = event.text("/decision/by");
        let by = by.as_deref().unwrap_or("user");
        let Some(answer) = answer else {
            // Who closed it without an answer says so.
            return match closed {
                None | Some(Outcome::Accepted) => Heard::NoAnswer,
                Some(Outcome::Rejected | Outcome::Expired) if !question => Heard::NoAnswer,
                Some(outcome) => self.with_words(token, outcome, by, event),
            };
        };
        match self.book.asks.answer(&answer) {
            Ok(what) => {
                self.book.told.remove(token);
                Heard::Closed(Box::new(expired(what)))
            }
            // A question that was answered somewhere else goes on.
            Err(Refusal::Mismatch) if question && closed == Some(Outcome::Accepted) => {
                self.with_words(token, Outcome::Accepted, by, event)
            }
            Err(_) => Heard::Void,
        }
    }

    fn with_words(&mut self, token: &str, outcome: Outcome, by: &str, event: View<'_>) -> Heard {
        match self.book.close(token, outcome, by) {
            Some(What::AskClosed { id, action, outcome, by, response, updated_input, .. }) => {
                let message = event.owned("/control/message");
                let closed =
                    What::AskClosed { id, action, outcome, by, message, response, updated_input };
                Heard::Closed(Box::new(closed))
            }
            _ => Heard::Void,
        }
    }
}

/// What became of a response.
enum Heard {
    Closed(Box<What>),
    /// An answer that does not count.
    Void,
    NoAnswer,
}

/// A no that nobody said is an ask that ran out.
fn expired(mut what: What) -> What {
    if let What::AskClosed { outcome, by, .. } = &mut what
        && *outcome == Outcome::Rejected
        && by == "timeout"
    {
        *outcome = Outcome::Expired;
    }
    what
}

/// An action to remember: one with a large input goes without it.
fn small(action: &Action) -> Action {
    let mut room = INPUT_BYTES;
    let fits = action.input.as_ref().is_none_or(|input| takes(input, &mut room));
    if fits { action.clone() } else { Action { input: None, ..action.clone() } }
}

/// Whether there is room for a value; takes it.
fn takes(value: &Value, room: &mut usize) -> bool {
    let own = match value {
        Value::String(text) => text.len(),
        Value::Object(fields) => fields.keys().map(String::len).sum(),
        _ => 0,
    };
    match room.checked_sub(own + 16) {
        Some(rest) => *room = rest,
        None => return false,
    }
    match value {
        Value::Array(items) => items.iter().all(|item| takes(item, room)),
        Value::Object(fields) => fields.values().all(|item| takes(item, room)),
        _ => true,
    }
}
