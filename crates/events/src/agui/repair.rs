//! The nearest stream that a client runs clean, and what was changed to get there.
//!
//! What is right passes byte for byte. What is missing and says nothing new is added: ends, starts, ids. What cannot
//! stand is changed as little as possible, and an event that no longer says all it said carries what it was in
//! `rawEvent`; what cannot be read as the event it wants to be goes on inside a `RAW` event. So nothing is lost.
//!
//! The end of a run is held back until the next run or the end of the stream, so that what came after it finds its
//! place before it, and of several ends the strictest is the end. What comes before any run is held back as well, up to
//! a bound, until a run starts or ends. A run that never ended, or ended with an outcome that is not known, ends with
//! `RUN_ERROR`: repair never claims a success that nobody reported.
//!
//! Runs of several threads at once do not become one: what cannot stand in one stream is not taken apart into several.
//!
//! ```
//! use banister_events::Message;
//! use banister_events::agui::repair::Repairer;
//! use banister_events::event::Protocol;
//! let mut repairer = Repairer::default();
//! let mut events = Vec::new();
//! for event in [
//!     r#"{"type":"RUN_STARTED","threadId":"t","runId":"r","protocolVersion":"1.0"}"#,
//!     r#"{"type":"TEXT_MESSAGE_START","messageId":"m"}"#,
//!     r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
//! ] {
//!     events.extend(repairer.message(&Message::parse(Protocol::Agui, event.into())?));
//! }
//! events.extend(repairer.finish());
//! assert_eq!(events[2].bytes(), r#"{"type":"TEXT_MESSAGE_END","messageId":"m"}"#);
//! assert_eq!(repairer.changes()[0].rule.code, "AGUI-SEQ-24");
//! # Ok::<(), banister_events::message::Unreadable>(())
//! ```

use std::collections::HashSet;

use bytes::Bytes;
use serde_json::{Value, json};

use super::check::{JSON, MALFORMED};
use super::enforce::Boundary;
use super::event::{PROTOCOL_VERSION, Type};
use super::expand::Lanes;
use super::sequence::{
    AFTER_ERROR, AFTER_FINISH, FIRST, NESTED, OPEN_AT_FINISH, OTHER_RUN, TRUNCATED,
};
use crate::check::recent::{Seed, key};
use crate::check::shape::{Known, quote};
use crate::event::Protocol;
use crate::finding::Rule;
use crate::frame;
use crate::json::Reason;
use crate::message::Message;
use event::{Event, short};
use read::{Sight, cut_off, sight};
use state::{Conflict, State};

mod event;
mod fields;
mod inside;
mod names;
mod outcome;
mod read;
mod state;

/// How often one event is changed before it is given up.
const TRIES: usize = 16;

/// How many messages, and how many bytes of them, wait for a run to start.
const WAITING: (usize, usize) = (1_000, 1024 * 1024);

/// How many threads and runs are told apart.
const RUNS: usize = 10_000;

/// Something that was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The number of the message at which it was changed, from 1; one more than there are for the end of the stream.
    pub message: u64,
    /// The rule that was broken.
    pub rule: &'static Rule,
    /// What was added, removed, moved, renamed, replaced or put into a `RAW` event, with values old and new, shortened.
    /// Places are those in the message that came.
    pub what: String,
}

/// Repairs one stream.
#[derive(Debug, Clone, Default)]
pub struct Repairer {
    boundary: Boundary,
    known: Known,
    lanes: Lanes,
    state: State,
    /// Every thread and run that started, by which field it was named in.
    runs: HashSet<(&'static str, Box<str>), Seed>,
    /// What came before any run, with its number.
    waiting: Vec<(u64, Came)>,
    /// The end of the run, which is not told yet; a late error may follow it.
    held: Vec<Event>,
    number: u64,
    made_up: u64,
    changes: Vec<Change>,
    out: Vec<Message>,
}

/// A message as it came.
#[derive(Debug, Clone)]
enum Came {
    Message(Message),
    /// Bytes that are no JSON, and why.
    Broken(Bytes, Reason),
}

impl Came {
    fn len(&self) -> usize {
        match self {
            Self::Message(message) => message.bytes().len(),
            Self::Broken(bytes, _) => bytes.len(),
        }
    }
}

impl Repairer {
    /// What becomes of the next message: events, none, one or several.
    pub fn message(&mut self, message: &Message) -> Vec<Message> {
        self.next(Came::Message(message.clone()))
    }

    /// The same, for bytes that are no JSON, for a reason.
    pub fn broken(&mut self, bytes: Bytes, reason: Reason) -> Vec<Message> {
        self.next(Came::Broken(bytes, reason))
    }

    /// The same, for bytes that nobody looked at yet.
    pub fn bytes(&mut self, bytes: Bytes) -> Vec<Message> {
        match Message::recorded(Protocol::Agui, bytes.clone()) {
            Ok(message) => self.message(&message),
            Err(error) => self.broken(bytes, error.reason),
        }
    }

    fn next(&mut self, came: Came) -> Vec<Message> {
        self.number += 1;
        let decides = |sight: Sight| {
            let Sight::Object(Some(kind)) = sight else { return false };
            matches!(kind, Type::RunStarted | Type::RunFinished | Type::RunError)
        };
        if self.state.run.is_some() || decides(sight(&came)) {
            self.take(&came);
        } else {
            self.waiting.push((self.number, came));
            let size: usize = self.waiting.iter().map(|(_, came)| came.len()).sum();
            if self.waiting.len() > WAITING.0 || size > WAITING.1 {
                self.stop_waiting();
            }
        }
        std::mem::take(&mut self.out)
    }

    /// A message could not be cut out of the stream.
    pub fn unframed(&mut self, error: frame::Error) {
        self.number += 1;
        self.tell(&JSON, format!("removed a message that cannot be read: {error}"));
    }

    /// What is missing at the end of the stream.
    pub fn finish(&mut self) -> Vec<Message> {
        self.number += 1;
        self.stop_waiting();
        if self.state.run.is_some() && self.held.is_empty() {
            self.tell(&TRUNCATED, "added RUN_ERROR, as the run has no end");
            self.held.push(cut_off("the stream ended before the run did"));
        }
        self.settle();
        std::mem::take(&mut self.out)
    }

    /// What was changed since this was asked last.
    pub fn changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    fn tell(&mut self, rule: &'static Rule, what: impl Into<String>) {
        self.changes.push(Change { message: self.number, rule, what: what.into() });
    }

    fn make_up(&mut self) -> String {
        self.made_up += 1;
        format!("repaired-{}", self.made_up)
    }

    fn take(&mut self, came: &Came) {
        if let Some(event) = self.read(came) {
            self.place(event);
        }
    }

    /// Events in their order: runs begin, and end last.
    fn place(&mut self, event: Event) {
        match event.kind {
            Type::RunStarted => return self.start(event),
            Type::RunFinished | Type::RunError => return self.end(event),
            _ => {}
        }
        if self.state.run.is_none() {
            self.begin(None);
        }
        if let Some(held) = self.held.last().map(|held| held.kind) {
            let rule = after(held);
            self.tell(rule, format!("moved {} before {}", event.kind.name(), held.name()));
        }
        self.admit(event, 0);
    }

    /// What waits for a run gets one that nobody started; where nothing of it is an event, there is nothing to tell.
    fn stop_waiting(&mut self) {
        if self.waiting.iter().any(|(_, came)| sight(came) != Sight::Noise) {
            return self.begin(None);
        }
        let now = self.number;
        for (number, _) in std::mem::take(&mut self.waiting) {
            self.number = number;
            self.tell(&JSON, "removed a message that is no event, as none came before it");
        }
        self.number = now;
    }

    /// A run that nobody started begins; its end may have told its name.
    fn begin(&mut self, end: Option<&Event>) {
        let id = |name: &str| end.and_then(|end| end.said(name)).map(str::to_owned);
        let thread = id("threadId").unwrap_or_else(|| self.make_up());
        let run = id("runId").unwrap_or_else(|| self.make_up());
        self.tell(&FIRST, format!("added RUN_STARTED of run {}", quote(&run)));
        let fields =
            json!({ "threadId": thread, "runId": run, "protocolVersion": PROTOCOL_VERSION });
        self.open(Event::made(Type::RunStarted, fields));
    }

    /// A run starts, and what waited for it follows.
    fn open(&mut self, event: Event) {
        let name = |name: &str| event.text(name).unwrap_or_default().to_owned();
        let run = (name("threadId"), name("runId"));
        if self.runs.len() < RUNS {
            self.runs.extend([("threadId", key(&run.0)), ("runId", key(&run.1))]);
        }
        self.state = State::of(run);
        self.admit(event, 0);
        let now = self.number;
        for (number, came) in std::mem::take(&mut self.waiting) {
            self.number = number;
            self.take(&came);
        }
        self.number = now;
    }

    fn start(&mut self, event: Event) {
        let run = (event.text("threadId"), event.text("runId"));
        let current = self.state.run.as_ref().map(|(thread, run)| (Some(&**thread), Some(&**run)));
        if !self.held.is_empty() {
            self.settle();
        } else if current == Some(run) {
            return self.leave_out(&NESTED, event);
        } else if current.is_some() {
            self.tell(&NESTED, "added RUN_ERROR, as the run before has no end");
            self.held.push(cut_off("another run started before this one ended"));
            self.settle();
        }
        if !self.waiting.is_empty() {
            let count = self.waiting.len();
            self.tell(&FIRST, format!("moved RUN_STARTED before {count} messages"));
        }
        self.open(event);
    }

    fn end(&mut self, mut event: Event) {
        if let Some(other) = self.other_run(&event) {
            let what = format!("put {} of {other} into a RAW event", event.kind.name());
            self.tell(&OTHER_RUN, what);
            return self.admit(event.into_raw(), 0);
        }
        // An error alone needs no run, unless something has to go beside it.
        let alone = event.kind == Type::RunError
            && self.waiting.is_empty()
            && self.held.is_empty()
            && event.clone().keep().is_none();
        if self.state.run.is_none() && !alone {
            self.begin(Some(&event));
        }
        if let (Type::RunFinished, Some((thread, run))) = (event.kind, self.state.run.clone()) {
            for (name, started) in [("threadId", thread), ("runId", run)] {
                if event.text(name) != Some(&started) {
                    let old = event.fields.get(name).map(short).unwrap_or_default();
                    let new = quote(&started);
                    self.tell(
                        &OTHER_RUN,
                        format!("replaced {name} {old} of RUN_FINISHED by {new}"),
                    );
                    event.set(name, started);
                }
            }
        }
        let Some(held) = self.held.last() else {
            return self.held.push(event);
        };
        let (first, second) = (held.kind.name(), event.kind.name());
        if held.kind == Type::RunFinished && event.kind == Type::RunError && !event.invented {
            // A late error is legal: the run is over, then it failed.
            self.held.push(event);
        } else if strictness(&event) > strictness(held) {
            let rule = after(held.kind);
            let what =
                format!("replaced the end, {first}, by a stricter {second}; it is in a RAW event");
            self.tell(rule, what);
            let milder = self.held.pop();
            self.held.push(event);
            if let Some(milder) = milder {
                self.admit(milder.into_raw(), 0);
            }
        } else {
            let rule = after(held.kind);
            self.tell(rule, format!("put a second end, {second}, into a RAW event before {first}"));
            self.admit(event.into_raw(), 0);
        }
    }

    /// The thread or run that an end names, where it is not the one that is open but another that is known.
    fn other_run(&self, event: &Event) -> Option<String> {
        let (thread, run) = self.state.run.as_ref()?;
        [("runId", run), ("threadId", thread)].into_iter().find_map(|(name, current)| {
            let said = event.said(name).filter(|said| said != current)?;
            // Where there are too many to know, none is taken for another.
            let known = self.runs.len() >= RUNS || self.runs.contains(&(name, key(said)));
            known.then(|| format!("{name} {}", quote(said)))
        })
    }

    /// Tells the end of the run that was held back, after whatever is open.
    fn settle(&mut self) {
        let mut ends = std::mem::take(&mut self.held);
        for beside in ends.iter_mut().filter_map(Event::keep).collect::<Vec<_>>() {
            self.admit(beside, 0);
        }
        if let Some(end) = ends.first().filter(|end| end.kind == Type::RunFinished) {
            let waits = outcome_of(end) == "interrupt";
            for closing in self.state.closings(waits, &self.lanes) {
                let what =
                    closing.fields.values().nth(1).and_then(Value::as_str).unwrap_or_default();
                let what = format!("added {} for {}", closing.kind.name(), quote(what));
                self.tell(&OPEN_AT_FINISH, what);
                self.admit(closing, 0);
            }
        }
        for end in ends {
            self.admit(end, 0);
        }
        self.state.run = None;
    }

    /// Lets an event out once nothing stands against it any more.
    fn admit(&mut self, mut event: Event, depth: usize) {
        let mut beside = None;
        for _ in 0..TRIES {
            beside = event.keep().or(beside);
            match self.state.conflict(&event, &self.lanes) {
                Conflict::None { lanes, steps } => {
                    self.lanes = lanes;
                    self.state.apply(&event, steps);
                    let beside = beside.map(Event::into_message);
                    let event = (event.kind, event.into_message());
                    // Nothing comes before the start of a run, nor after its end.
                    let (first, last) = match event {
                        (Type::RunStarted, event) => (Some(event), beside),
                        (_, event) => (beside, Some(event)),
                    };
                    return self.out.extend(first.into_iter().chain(last));
                }
                Conflict::LeaveOut(rule) => return self.leave_out(rule, event),
                Conflict::Remove(rule, name) => {
                    let old = event.fields.get(name).map(short).unwrap_or_default();
                    self.tell(rule, format!("removed {name} {old} of {}", event.kind.name()));
                    event.remove(name);
                }
                Conflict::Set(rule, name, value) => {
                    let value = value.unwrap_or_else(|| self.make_up());
                    let (kind, new) = (event.kind.name(), quote(&value));
                    let what = match event.fields.get(name) {
                        Some(old) => format!("replaced {name} {} of {kind} by {new}", short(old)),
                        None => format!("added {name} {new} to {kind}"),
                    };
                    self.tell(rule, what);
                    event.set(name, value);
                }
                Conflict::Before(rule, before) if depth < TRIES => {
                    let id = before.fields.values().nth(1).and_then(Value::as_str);
                    let id = quote(id.unwrap_or_default());
                    self.tell(rule, format!("added {} for {id}", before.kind.name()));
                    self.admit(*before, depth + 1);
                }
                Conflict::Before(..) => break,
            }
        }
        self.tell(&MALFORMED, format!("put {} into a RAW event", event.kind.name()));
        self.out.push(event.into_raw().into_message());
    }

    /// An event that cannot be there; what it says besides is kept.
    fn leave_out(&mut self, rule: &'static Rule, event: Event) {
        let name = event.kind.name();
        if event.is_bare() {
            return self.tell(rule, format!("removed {name}, which cannot be there"));
        }
        self.tell(rule, format!("put {name} into a RAW event, as it cannot be there"));
        self.out.push(event.into_raw().into_message());
    }
}

/// The rule that whatever follows an end breaks.
fn after(end: Type) -> &'static Rule {
    if end == Type::RunError { &AFTER_ERROR } else { &AFTER_FINISH }
}

/// How strict an end is: nobody may take a run for better than its strictest end says.
fn strictness(end: &Event) -> u8 {
    match end.kind {
        Type::RunFinished if outcome_of(end) == "success" => 0,
        Type::RunFinished => 1,
        _ if end.invented => 2,
        _ => 3,
    }
}

fn outcome_of(end: &Event) -> &str {
    let outcome = end.fields.get("outcome").and_then(|outcome| outcome.get("type"));
    outcome.and_then(Value::as_str).unwrap_or("success")
}

#[cfg(test)]
#[path = "repair_tests.rs"]
mod tests;
