//! What can be searched: whole messages, and actions when they end. Pieces are put together first.
//!
//! An index holds what is under way of the activities it was shown, and no more than so much of it: what is too long is
//! found by its beginning, and of too many things at once the rest is not found.

use std::collections::HashMap;

use banister_events::activity::{
    Action, Activity, AskKind, Decision, Ending, Gate, Origin, Outcome, Role, What,
};
use banister_events::event::Protocol;
use banister_events::{Message, Reader, aep};
use banister_journal::Passage;
use serde_json::Value;

mod rebuild;

pub use rebuild::rebuild;

/// How much of a text is kept while it comes in pieces.
const TEXT_BYTES: usize = 256 * 1024;
/// How many messages or actions are under way at once.
const UNDER_WAY: usize = 256;

/// What is under way, on its way to being found.
#[derive(Debug, Clone, Default)]
pub struct Index {
    texts: HashMap<String, String>,
    actions: HashMap<String, Action>,
}

impl Index {
    /// What can be found of the events of one message.
    pub fn of_events(events: &[Message], gate: Option<&Gate>, origin: &Origin) -> Vec<Passage> {
        let mut index = Self::default();
        let mut reader = Reader::trusting(Protocol::Aep);
        let mut told = Vec::new();
        let mut found = Vec::new();
        for event in events {
            if let Some(action) = aep::read::action(event.document().root()) {
                index.know(action);
            }
            reader.read(event, gate, origin, &mut told);
            found.extend(told.drain(..).filter_map(|activity| index.add(&activity)));
        }
        found
    }

    /// What can be found now that this has happened.
    pub fn add(&mut self, activity: &Activity) -> Option<Passage> {
        match &activity.what {
            What::TurnStarted { request: Some(request), .. } => {
                Some(passage("message", Role::User.name(), request.clone()))
            }
            What::TurnEnded { ending: Ending::Failed { message, .. }, .. } => {
                Some(passage("error", "", message.clone()))
            }
            What::Said { message, role, text, last } => {
                self.text(message, text, *last).map(|text| passage("message", role.name(), text))
            }
            What::Thought { message, text, last } => self
                .text(message, text, *last)
                .map(|text| passage("thought", Role::Assistant.name(), text)),
            What::Planned { text } => Some(passage("plan", Role::Assistant.name(), text.clone())),
            What::ActionRequested { action, gate } => {
                let denied = gate.as_ref().filter(|gate| gate.decision == Decision::Deny);
                let found = denied.map(|gate| done(action, &gate.reason));
                if found.is_none() {
                    self.know(action.clone());
                }
                found
            }
            What::ActionEnded { id, tool, output, error, .. } => {
                let known = self.actions.remove(id);
                let action = known.unwrap_or_else(|| Action::unseen(id, tool));
                let output = output.as_ref().map(words).unwrap_or_default();
                let error = error.as_deref().unwrap_or_default();
                Some(done(&action, &joined(&[&output, error])))
            }
            What::ActionDenied { action, reason, .. } => {
                self.actions.remove(&action.id);
                Some(done(action, reason.as_deref().unwrap_or_default()))
            }
            What::AskOpened { ask } => {
                let (title, subject) = match &ask.action {
                    Some(action) => (action.title(), action.subject()),
                    None => (String::new(), String::new()),
                };
                let asked = match &ask.kind {
                    AskKind::Confirmation => "",
                    AskKind::Clarification { question, .. } => question,
                    AskKind::Plan { text } => text,
                };
                let words = ask.words.as_deref().unwrap_or_default();
                Some(passage("ask", &title, joined(&[asked, &subject, words])))
            }
            What::AskClosed { outcome, message, response, .. } => {
                let response = response.as_ref().map(words).unwrap_or_default();
                let text = joined(&[message.as_deref().unwrap_or_default(), &response]);
                Some(passage("answer", outcome_name(*outcome), text))
            }
            What::Notified { text } => Some(passage("notice", "", text.clone())),
            What::Erred { message, .. } => Some(passage("error", "", message.clone())),
            What::HandedOff { reason, .. } => Some(passage("handoff", "", reason.clone())),
            _ => None,
        }
        .filter(|passage| !passage.text.is_empty())
    }

    /// Remembers an action until it ends.
    fn know(&mut self, action: Action) {
        if self.actions.len() < UNDER_WAY {
            self.actions.insert(action.id.clone(), action);
        }
    }

    /// The whole of a text that comes in pieces, once it is whole.
    fn text(&mut self, message: &str, piece: &str, last: bool) -> Option<String> {
        if last && !self.texts.contains_key(message) {
            return Some(piece.to_owned());
        }
        if self.texts.len() < UNDER_WAY || self.texts.contains_key(message) {
            let text = self.texts.entry(message.to_owned()).or_default();
            if text.len() < TEXT_BYTES {
                text.push_str(piece);
            }
        }
        if last { self.texts.remove(message) } else { None }
    }
}

fn passage(kind: &str, title: &str, text: String) -> Passage {
    Passage { kind: kind.to_owned(), title: title.to_owned(), text }
}

fn done(action: &Action, outcome: &str) -> Passage {
    let text = joined(&[&action.subject(), outcome]);
    // What has no more than a name is found by its name.
    let text = if text.is_empty() { action.title() } else { text };
    passage("action", &action.title(), text)
}

fn joined(texts: &[&str]) -> String {
    let texts: Vec<&str> = texts.iter().copied().filter(|text| !text.is_empty()).collect();
    texts.join("\n")
}

/// The texts in a value, without the names around them.
fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(words).collect();
            joined(&items.iter().map(String::as_str).collect::<Vec<_>>())
        }
        Value::Object(members) => {
            let members: Vec<String> = members.values().map(words).collect();
            joined(&members.iter().map(String::as_str).collect::<Vec<_>>())
        }
        Value::Number(number) => number.to_string(),
        Value::Bool(_) | Value::Null => String::new(),
    }
}

fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Accepted => "accepted",
        Outcome::Rejected => "rejected",
        Outcome::Expired => "expired",
        Outcome::Withdrawn => "withdrawn",
    }
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
