//! Everything that an AAEP subscription negotiates, over activities and a given time.
//!
//! What leaves a [`Shaper`] keeps to the terms and is a legal stream by itself: states chain, sequence numbers have no
//! gaps, each session's events stay in their order. It reads no clock; saved and resumed, it gives the same bytes.
//!
//! - **Filters**: only what is wanted is sent. Critical events are always sent.
//! - **Rate**: what is over it waits, and is merged while it waits (see `held`). A critical event waits for nothing:
//!   what is held of its session goes out before it, and the rate is made up for afterwards.
//! - **Load**: with `low`, progress in the background and changes of state between thinking, calling tools and writing
//!   are left out; what is asked, answered and refused is always told.
//! - **Pace**: below 120 words a minute output comes in paragraphs.
//! - At most 1,024 events wait. Beyond that the oldest reports of progress are dropped; where there are none, the
//!   oldest event goes out ahead of the rate, which is made up for later. Nothing else is ever dropped.
//!
//! A session whose start is filtered out is numbered from 1.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::event::Type;
use super::handshake::Capabilities;
use super::write::Writer;
use crate::activity::Activity;

mod budget;
mod held;
mod terms;

use budget::Budget;
use held::{Queue, WaitingEvent};
pub use terms::{Limits, Terms};

/// How many conversations are followed at once; the one that was silent for longest is closed.
const CONVERSATIONS: usize = 256;

/// What one subscriber is sent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Shaper {
    terms: Terms,
    budget: Option<Budget>,
    writers: BTreeMap<String, Scribe>,
    /// How often something was taken.
    turn: u64,
    sessions: BTreeMap<String, Session>,
    queue: Queue,
    /// The latest time that was given, in microseconds: time does not run backwards here.
    now: i64,
}

/// The writer of one conversation.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Scribe {
    writer: Writer,
    /// When it was last needed.
    used: u64,
}

/// What the subscriber knows of a session.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Session {
    /// The next event's number.
    next: u64,
    /// The state that it was told, or will be by what waits.
    state: String,
    /// Whether its end was left out.
    over: bool,
}

impl Shaper {
    /// Sends what is agreed on.
    pub fn new(terms: Terms) -> Self {
        Self {
            budget: terms.rate.map(Budget::new),
            terms,
            writers: BTreeMap::new(),
            turn: 0,
            sessions: BTreeMap::new(),
            queue: Queue::default(),
            now: i64::MIN,
        }
    }

    /// What is agreed on.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// How many events wait.
    pub fn held(&self) -> usize {
        self.queue.len()
    }

    /// The events that wait, in the order in which they are going to be sent.
    pub fn waiting(&self) -> impl Iterator<Item = &Value> {
        self.queue.events()
    }

    /// How many reports of progress were dropped because too much waited.
    pub fn dropped(&self) -> u64 {
        self.queue.dropped()
    }

    /// What is to be sent now that this happened.
    pub fn take(&mut self, activity: &Activity, now: Timestamp) -> Vec<Value> {
        let mut out = self.tick(now);
        for event in self.write(activity, &mut out) {
            self.admit(event, &mut out);
        }
        out
    }

    /// Takes something that happened before the subscriber came and that it is not sent: what follows has the same ids
    /// as for those who were there. Gives what is to be sent all the same.
    pub fn skip(&mut self, activity: &Activity) -> Vec<Value> {
        let mut out = Vec::new();
        self.write(activity, &mut out);
        out
    }

    /// The events of an activity. Where there are too many conversations, one is closed for it.
    fn write(&mut self, activity: &Activity, closed: &mut Vec<Value>) -> Vec<Value> {
        let conversation: &str = &activity.origin.session;
        if !self.writers.contains_key(conversation) {
            self.make_room(closed);
            let scribe = Scribe { writer: writer(&self.terms), used: 0 };
            self.writers.insert(conversation.to_owned(), scribe);
        }
        self.turn += 1;
        let Some(scribe) = self.writers.get_mut(conversation) else { return Vec::new() };
        scribe.used = self.turn;
        scribe.writer.write(activity)
    }

    /// What was held and may be sent now.
    pub fn tick(&mut self, now: Timestamp) -> Vec<Value> {
        self.now = self.now.max(now.as_microsecond());
        let mut out = Vec::new();
        while self.has_budget()
            && let Some(held) = self.queue.pop()
        {
            self.pay();
            self.send(held, &mut out);
        }
        out
    }

    /// When to call [`Shaper::tick`] next; never where nothing is held.
    pub fn due(&self) -> Option<Timestamp> {
        if self.queue.is_empty() {
            return None;
        }
        let next = self.budget.map_or(self.now, |budget| budget.next().max(self.now));
        Some(Timestamp::from_microsecond(next).unwrap_or(Timestamp::MAX))
    }

    /// Changes the terms for everything that is sent from now on, what is held included. What the change does not name
    /// stays as it was. Gives what is honoured now, and what people should know about it.
    pub fn renegotiate(
        &mut self,
        changed: &Capabilities,
        own: &Limits,
    ) -> (Capabilities, Vec<String>) {
        let (terms, honoured, notes) = Terms::negotiate(&self.terms.changed(changed), own);
        self.budget = terms
            .rate
            .map(|rate| self.budget.map_or_else(|| Budget::new(rate), |budget| budget.at(rate)));
        for scribe in self.writers.values_mut() {
            revoice(&mut scribe.writer, &terms);
        }
        // Of what is not wanted any more the subscriber will not hear: its states go on from what it was told.
        for held in self.queue.take_out(|held| !terms.wants(held.text("type"))).iter().rev() {
            if held.kind() == Some(Type::StateChanged)
                && let Some(session) = self.sessions.get_mut(held.session())
            {
                held.text("from_state").clone_into(&mut session.state);
            }
        }
        self.terms = terms;
        (honoured, notes)
    }

    /// The stream ends here: closes what is open, and sends all that is held.
    pub fn close(&mut self, now: Timestamp) -> Vec<Value> {
        let mut out = self.tick(now);
        let events: Vec<Value> =
            self.writers.values_mut().flat_map(|scribe| scribe.writer.close()).collect();
        for event in events {
            self.admit(event, &mut out);
        }
        while let Some(held) = self.queue.pop() {
            self.pay();
            self.send(held, &mut out);
        }
        out
    }

    /// Closes the conversation that was silent for longest, if there are too many; one that has come to its end first.
    fn make_room(&mut self, out: &mut Vec<Value>) {
        if self.writers.len() < CONVERSATIONS {
            return;
        }
        let longest = self
            .writers
            .iter()
            .min_by_key(|(_, scribe)| (scribe.writer.is_open(), scribe.used))
            .map(|(name, _)| name.clone());
        let scribe = longest.and_then(|name| self.writers.remove(&name));
        for event in scribe.into_iter().flat_map(|mut scribe| scribe.writer.close()) {
            self.admit(event, out);
        }
    }

    /// Decides about one event: it is sent, held or left out.
    fn admit(&mut self, event: Value, out: &mut Vec<Value>) {
        let mut held = WaitingEvent::new(event);
        let kind = held.kind();
        let wanted = held.is_critical() || self.terms.wants(held.text("type"));
        let session = self.sessions.entry(held.session().to_owned()).or_insert_with(|| Session {
            next: u64::from(kind != Some(Type::SessionStarted) || !wanted),
            state: "idle".to_owned(),
            over: false,
        });
        if !wanted {
            session.over |= kind.is_some_and(Type::is_terminal);
            self.forget(held.session());
            return;
        }
        if !session.tells(&mut held, self.terms.is_calm()) {
            return;
        }
        if let Some(hint) = held.event.get_mut("coalesce_hint") {
            *hint = json!(self.terms.hint(hint.as_str().unwrap_or("none")));
        }
        if held.is_critical() {
            for held in self.queue.take_out(|waiting| waiting.session() == held.session()) {
                self.pay();
                self.send(held, out);
            }
            self.send(held, out);
        } else if self.queue.is_empty() && self.has_budget() {
            self.pay();
            self.send(held, out);
        } else {
            self.queue.push(held);
            if let Some(oldest) = self.queue.relieve() {
                self.pay();
                self.send(oldest, out);
            }
        }
    }

    fn has_budget(&self) -> bool {
        self.budget.is_none_or(|budget| budget.allows(self.now))
    }

    fn pay(&mut self) {
        if let Some(budget) = &mut self.budget {
            budget.pay(self.now);
        }
    }

    /// Numbers an event as the subscriber counts.
    fn send(&mut self, held: WaitingEvent, out: &mut Vec<Value>) {
        let is_terminal = held.kind().is_some_and(Type::is_terminal);
        let WaitingEvent { mut event, .. } = held;
        let name = event.get("session_id").and_then(Value::as_str).unwrap_or_default().to_owned();
        if let Some(session) = self.sessions.get_mut(&name) {
            if let Some(number) = event.get_mut("sequence_number") {
                *number = json!(session.next);
            }
            session.next += 1;
            session.over |= is_terminal;
        }
        out.push(event);
        self.forget(&name);
    }

    /// Lets a session go that is over.
    fn forget(&mut self, session: &str) {
        if self.sessions.get(session).is_some_and(|session| session.over)
            && !self.queue.has(session)
        {
            self.sessions.remove(session);
        }
    }
}

impl Session {
    /// Whether an event is news to the subscriber. A change of state begins at the state that it knows of.
    fn tells(&mut self, held: &mut WaitingEvent, calm: bool) -> bool {
        match held.kind() {
            Some(Type::ProgressUpdated) => !(calm && held.is_background()),
            Some(Type::StateChanged) if held.is_background() && !held.is_critical() => {
                let usual = ["thinking", "calling_tool", "writing_output"];
                let known = self.state == held.text("to_state");
                let small =
                    calm && usual.contains(&self.state.as_str()) && !held.is_about_waiting();
                !(known || small) && self.chain(held)
            }
            Some(Type::StateChanged) => self.chain(held),
            _ => true,
        }
    }

    fn chain(&mut self, held: &mut WaitingEvent) -> bool {
        let to = held.text("to_state").to_owned();
        let from = std::mem::replace(&mut self.state, to);
        if let Some(field) = held.event.get_mut("from_state") {
            *field = json!(from);
        }
        true
    }
}

fn writer(terms: &Terms) -> Writer {
    Writer::with(terms.voice().clone())
}

/// Lets a writer go on in another voice. What it is saved as is all that it is.
fn revoice(old: &mut Writer, terms: &Terms) {
    let saved = (serde_json::to_value(&*old), serde_json::to_value(writer(terms)));
    let (Ok(Value::Object(mut saved)), Ok(Value::Object(mut new))) = saved else { return };
    if let Some(voice) = new.remove("voice") {
        saved.insert("voice".to_owned(), voice);
    }
    if let Ok(changed) = serde_json::from_value(Value::Object(saved)) {
        *old = changed;
    }
}

#[cfg(test)]
#[path = "shape_tests.rs"]
mod tests;
