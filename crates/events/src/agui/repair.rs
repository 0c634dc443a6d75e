//! The nearest stream that a client runs clean, and what was changed to get there.
//!
//! What is right passes byte for byte. What is missing and says nothing new is added: ends, starts, ids. What cannot
//! stand is changed as little as possible; what cannot be read as the event it wants to be goes on inside a `RAW`
//! event, so that nothing is lost. The end of a run is held back until the next run or the end of the stream, so that
//! what came after it finds its place before it. A run that never ended ends with `RUN_ERROR`: repair never claims a
//! success that nobody reported.
//!
//! ```
//! use banister_events::agui::repair::Repairer;
//! let mut repairer = Repairer::default();
//! let mut events = Vec::new();
//! for event in [
//!     r#"{"type":"RUN_STARTED","threadId":"t","runId":"r","protocolVersion":"1.0"}"#,
//!     r#"{"type":"TEXT_MESSAGE_START","messageId":"m"}"#,
//!     r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
//! ] {
//!     events.extend(repairer.message(event.as_bytes()));
//! }
//! events.extend(repairer.finish());
//! assert_eq!(events[2], br#"{"type":"TEXT_MESSAGE_END","messageId":"m"}"#);
//! assert_eq!(repairer.changes()[0].rule.code, "AGUI-SEQ-24");
//! ```

use serde_json::{Map, Value, json};

use super::check::{self, JSON, TYPE, UNKNOWN_TYPE};
use super::enforce::{Boundary, Enforced};
use super::event::{PROTOCOL_VERSION, Type};
use super::expand::Lanes;
use super::sequence::{
    AFTER_ERROR, AFTER_FINISH, FIRST, NESTED, OPEN_AT_FINISH, OTHER_RUN, TRUNCATED,
};
use crate::check::shape::{Known, quote};
use crate::finding::Rule;
use crate::frame;
use crate::json::Parser;
use state::{Conflict, State};

mod fields;
mod state;

/// How often one event is changed before it is given up.
const TRIES: usize = 16;

/// Something that was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The number of the message at which it was changed, from 1; one more than there are for the end of the stream.
    pub message: u64,
    /// The rule that was broken.
    pub rule: &'static Rule,
    /// What was done about it.
    pub what: String,
}

/// Repairs one stream.
#[derive(Debug, Clone, Default)]
pub struct Repairer {
    boundary: Boundary,
    known: Known,
    lanes: Lanes,
    state: State,
    /// The end of the run, which is not told yet; a late error may follow it.
    held: Vec<Event>,
    number: u64,
    made_up: u64,
    changes: Vec<Change>,
    out: Vec<Vec<u8>>,
}

/// An event on its way out.
#[derive(Debug, Clone)]
struct Event {
    kind: Type,
    fields: Map<String, Value>,
    /// What came, while it is still that.
    bytes: Option<Vec<u8>>,
}

impl Event {
    fn made(kind: Type, fields: Value) -> Self {
        let mut all = Map::new();
        all.insert("type".into(), kind.name().into());
        if let Value::Object(fields) = fields {
            all.extend(fields);
        }
        Self { kind, fields: all, bytes: None }
    }

    fn with(mut self, name: &str, value: Option<impl Into<Value>>) -> Self {
        if let Some(value) = value {
            self.set(name, value);
        }
        self
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(Value::as_str)
    }

    fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.fields.insert(name.into(), value.into());
        self.bytes = None;
    }

    fn remove(&mut self, name: &str) -> Option<Value> {
        self.bytes = None;
        self.fields.shift_remove(name)
    }

    fn into_bytes(self) -> Vec<u8> {
        self.bytes.unwrap_or_else(|| Value::Object(self.fields).to_string().into_bytes())
    }
}

impl Repairer {
    /// What becomes of the next message: events, none, one or several.
    pub fn message(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.number += 1;
        if let Some(event) = self.read(bytes) {
            self.place(event);
        }
        std::mem::take(&mut self.out)
    }

    /// A message could not be cut out of the stream.
    pub fn unframed(&mut self, error: frame::Error) {
        self.number += 1;
        self.tell(&JSON, format!("left out: {error}"));
    }

    /// What is missing at the end of the stream.
    pub fn finish(&mut self) -> Vec<Vec<u8>> {
        self.number += 1;
        if self.state.run.is_some() && self.held.is_empty() {
            self.tell(&TRUNCATED, "added RUN_ERROR, as the run has no end");
            let error =
                json!({ "message": "the stream ended before the run did", "code": "truncated" });
            self.held.push(Event::made(Type::RunError, error));
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

    /// The event that a message is or can be made into; none where there is nothing to keep.
    fn read(&mut self, bytes: &[u8]) -> Option<Event> {
        let mut parser = Parser::default();
        let Ok(document) = parser.parse(bytes) else {
            self.tell(&JSON, "left out a message that is not JSON");
            return None;
        };
        let original = document.root().to_value();
        let Value::Object(fields) = &original else {
            self.tell(&JSON, "put what is no object into a RAW event");
            return Some(raw(&original));
        };
        let fields = fields.clone();
        let name = fields.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        if name.is_empty() {
            self.tell(&TYPE, "put an object without type into a RAW event");
            return Some(raw(&original));
        }
        let mut findings = Vec::new();
        match check::event(&document, &mut self.boundary, &mut self.known, &mut findings) {
            Enforced::Whole(kind) => {
                return Some(Event { kind, fields, bytes: Some(bytes.to_vec()) });
            }
            Enforced::Changed(kind, bytes) => {
                for finding in findings {
                    let place = if finding.pointer.is_empty() { "/" } else { &finding.pointer };
                    self.tell(finding.rule, format!("brought up to date or taken out: {place}"));
                }
                let fields = serde_json::from_slice(&bytes).ok()?;
                return Some(Event { kind, fields, bytes: Some(bytes) });
            }
            Enforced::Fatal => {}
            Enforced::Dropped => {
                let Some(kind) = fields::meant(&name) else {
                    self.tell(&UNKNOWN_TYPE, format!("put {} into a RAW event", quote(&name)));
                    return Some(raw(&original));
                };
                self.tell(&UNKNOWN_TYPE, format!("{} became {}", quote(&name), kind.name()));
                let mut event = Event { kind, fields, bytes: None };
                event.set("type", kind.name());
                return Some(self.mend(event, &original));
            }
        }
        let kind = Type::parse(&name).or_else(|| fields::successor(&name))?;
        let mut event = Event { kind, fields, bytes: None };
        event.set("type", kind.name());
        Some(self.mend(event, &original))
    }

    /// Events in their order: runs begin, and end last.
    fn place(&mut self, event: Event) {
        match event.kind {
            Type::RunStarted => return self.start(event),
            Type::RunFinished | Type::RunError => return self.end(event),
            _ => {}
        }
        if let Some(held) = self.held.last().map(|held| held.kind) {
            let rule = if held == Type::RunError { &AFTER_ERROR } else { &AFTER_FINISH };
            self.tell(rule, format!("moved {} before {}", event.kind.name(), held.name()));
        }
        if self.state.run.is_none() {
            self.begin(None);
        }
        self.admit(event, 0);
    }

    /// A run that nobody started begins.
    fn begin(&mut self, end: Option<&Event>) {
        let id = |name: &str| end.and_then(|end| end.text(name)).map(str::to_owned);
        let thread = id("threadId").unwrap_or_else(|| self.make_up());
        let run = id("runId").unwrap_or_else(|| self.make_up());
        self.tell(&FIRST, "added RUN_STARTED");
        let fields =
            json!({ "threadId": thread, "runId": run, "protocolVersion": PROTOCOL_VERSION });
        self.start(Event::made(Type::RunStarted, fields));
    }

    fn start(&mut self, event: Event) {
        let name = |name: &str| event.text(name).unwrap_or_default().to_owned();
        let run = (name("threadId"), name("runId"));
        if !self.held.is_empty() {
            self.settle();
        } else if self.state.run.as_ref() == Some(&run) {
            self.tell(&NESTED, "left out a second RUN_STARTED of the same run");
            return;
        } else if self.state.run.is_some() {
            self.tell(&NESTED, "added RUN_ERROR, as the run before has no end");
            let message = "another run started before this one ended";
            let error = json!({ "message": message, "code": "truncated" });
            self.held.push(Event::made(Type::RunError, error));
            self.settle();
        }
        self.state = State::of(run);
        self.admit(event, 0);
    }

    fn end(&mut self, mut event: Event) {
        let held = self.held.last().map(|held| held.kind);
        match (held, event.kind) {
            (Some(Type::RunError), _) => {
                self.tell(&AFTER_ERROR, format!("left out a second end, {}", event.kind.name()));
                return;
            }
            (Some(_), Type::RunFinished) => {
                self.tell(&AFTER_FINISH, "left out a second RUN_FINISHED");
                return;
            }
            (None, Type::RunFinished) if self.state.run.is_none() => self.begin(Some(&event)),
            _ => {}
        }
        if let (Type::RunFinished, Some((thread, run))) = (event.kind, self.state.run.clone()) {
            for (name, started) in [("threadId", thread), ("runId", run)] {
                if event.text(name) != Some(&started) {
                    self.tell(&OTHER_RUN, format!("{name} became that of RUN_STARTED"));
                    event.set(name, started);
                }
            }
        }
        // A late error is legal: the run is over, then it failed.
        self.held.push(event);
    }

    /// Tells the end of the run that was held back, after whatever is open.
    fn settle(&mut self) {
        let ends = std::mem::take(&mut self.held);
        if let Some(end) = ends.first().filter(|end| end.kind == Type::RunFinished) {
            let outcome = end.fields.get("outcome").and_then(|outcome| outcome.get("type"));
            let outcome = outcome.and_then(Value::as_str).unwrap_or("success").to_owned();
            for closing in self.state.closings(&outcome, &self.lanes) {
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
        for _ in 0..TRIES {
            match self.state.conflict(&event, &self.lanes) {
                Conflict::None { lanes, steps } => {
                    self.lanes = lanes;
                    self.state.apply(&event, steps);
                    self.out.push(event.into_bytes());
                    return;
                }
                Conflict::LeaveOut(rule) => {
                    self.tell(rule, format!("left out {}", event.kind.name()));
                    return;
                }
                Conflict::Remove(rule, name) => {
                    self.tell(rule, format!("took {name} out of {}", event.kind.name()));
                    event.remove(name);
                }
                Conflict::Set(rule, name, value) => {
                    let value = value.unwrap_or_else(|| self.make_up());
                    let what = format!("{name} of {} became {}", event.kind.name(), quote(&value));
                    self.tell(rule, what);
                    event.set(name, value);
                }
                Conflict::Before(rule, before) if depth < TRIES => {
                    self.tell(rule, format!("added {}", before.kind.name()));
                    self.admit(*before, depth + 1);
                }
                Conflict::Before(..) => break,
            }
        }
        self.tell(&UNKNOWN_TYPE, format!("put {} into a RAW event", event.kind.name()));
        self.out.push(raw(&Value::Object(event.fields)).into_bytes());
    }
}

/// Something that is no event as it stands, kept in one.
fn raw(original: &Value) -> Event {
    Event::made(Type::Raw, json!({ "event": original }))
}

#[cfg(test)]
#[path = "repair_tests.rs"]
mod tests;
