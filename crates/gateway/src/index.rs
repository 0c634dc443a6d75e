//! What can be searched: whole messages, and actions when they end. Pieces are put together first.
//!
//! Nobody waits for the index: records are acknowledged first, and `Indexer` follows. Everything here reads records, in
//! their order; what is found of a session is a function of its records alone.
//!
//! An `Assembler` holds what is under way of one session, and no more than so much of it: what is too long is found by
//! its beginning, and of too many texts at once the rest is not found.

use std::collections::HashMap;

use banister_events::activity::{Action, Activity, AskKind, Decision, Ending, Outcome, Role, What};
use banister_journal::Passage;
use serde_json::Value;

mod indexer;
mod rebuild;
mod session;

pub(crate) use indexer::Indexer;
pub use rebuild::rebuild;

/// How much of a text is kept while it comes in pieces.
const TEXT_BYTES: usize = 256 * 1024;
/// How many messages or actions are under way at once.
const UNDER_WAY: usize = 256;

/// Makes texts that can be found of the activities of one session.
#[derive(Debug, Default)]
struct Assembler {
    texts: HashMap<String, String>,
    /// Action by id, with its number.
    actions: HashMap<String, (u64, Action)>,
    /// How many actions were remembered.
    remembered: u64,
}

impl Assembler {
    /// What can be found now that this has happened.
    fn add(&mut self, activity: &Activity) -> Option<Passage> {
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
                    self.remember(action.clone());
                }
                found
            }
            What::ActionEnded { id, tool, output, error, .. } => {
                let known = self.actions.remove(id);
                let action = known.map_or_else(|| Action::unseen(id, tool), |(_, action)| action);
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

    /// Remembers an action until it ends. One that never does gives way to newer ones.
    fn remember(&mut self, action: Action) {
        if self.actions.len() >= UNDER_WAY && !self.actions.contains_key(&action.id) {
            let oldest = self.actions.iter().min_by_key(|(_, (number, _))| *number);
            if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                self.actions.remove(&oldest);
            }
        }
        self.remembered += 1;
        self.actions.insert(action.id.clone(), (self.remembered, action));
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
