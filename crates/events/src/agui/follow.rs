//! A stream as a client sees it: enforced, taken apart, verified and reduced, one event after another.
//!
//! [`Follower`] is the client's half without the transport: bytes of events in, messages and state out. An event is
//! applied before the next one is looked at, so whatever was right before a violation stays.
//!
//! ```
//! use banister_events::agui::follow::{Ending, Follower};
//! let mut follower = Follower::default();
//! for event in [
//!     r#"{"type":"RUN_STARTED","threadId":"t","runId":"r","protocolVersion":"1.0"}"#,
//!     r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"Hello"}"#,
//!     r#"{"type":"STATE_SNAPSHOT","snapshot":{"step":1}}"#,
//!     r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
//! ] {
//!     follower.event(event.as_bytes())?;
//! }
//! assert_eq!(follower.reducer().messages_value()[0]["content"], "Hello");
//! assert_eq!(follower.reducer().state()["step"], 1);
//! assert_eq!(follower.ending(), Ending::Finished);
//! # Ok::<(), banister_events::agui::follow::Violation>(())
//! ```

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use super::check;
use super::enforce::{Boundary, Enforced};
use super::reduce::{Change, Outcome, Reducer, Warning};
use super::sequence::Sequence;
use super::step::{Item, Step};
use crate::check::shape::Known;
use crate::finding::{Finding, Severity};
use crate::json::{self, Document, Parser, View};
use crate::message::Message;

/// Judges a stream event by event.
#[derive(Debug, Clone, Default)]
pub(crate) struct Verifier {
    boundary: Boundary,
    sequence: Sequence,
}

impl Verifier {
    /// For what one client reads from one agent, which has no two runs at once.
    pub(crate) fn single() -> Self {
        Self { sequence: Sequence::single(), ..Self::default() }
    }

    /// From now on, the rules that apply only on request apply.
    pub(crate) fn be_strict(&mut self) {
        self.boundary.strict = true;
        self.sequence.be_strict();
    }

    /// [`Verifier::single`] from here on.
    pub(crate) fn be_single(&mut self) {
        self.sequence.be_single();
    }

    /// Everything wrong with an event, alone and after those before it. Its steps go to `each` until one is wrong.
    pub(crate) fn step(
        &mut self,
        message: &Document<'_>,
        known: &mut Known,
        findings: &mut Vec<Finding>,
        each: &mut dyn FnMut(&Step<'_>),
    ) {
        match check::event(message, &mut self.boundary, known, findings) {
            Enforced::Whole(kind) => {
                self.sequence.step(kind, message.root(), findings, &mut |step| each(step));
            }
            Enforced::Changed(kind, changed) => {
                let changed = changed.document();
                self.sequence.step(kind, changed.root(), findings, &mut |step| each(step));
            }
            Enforced::Dropped => self.sequence.drop_event(),
            Enforced::Fatal => self.sequence.lose(),
        }
    }

    /// A message got lost: what it may have told is not missed later.
    pub(crate) fn lose(&mut self) {
        self.sequence.lose();
    }

    /// Everything that is wrong because the stream ends here.
    pub(crate) fn finish(&mut self) -> Vec<Finding> {
        self.sequence.finish()
    }
}

/// What one event did.
#[derive(Debug, Clone, Default)]
pub struct Followed {
    /// What changed last.
    pub change: Change,
    /// What was dropped, stripped or tolerated, with its rule and place.
    pub findings: Vec<Finding>,
    /// What could not be applied and was skipped.
    pub warnings: Vec<Warning>,
}

/// An event that no client goes on after. The stream is over, which is not the same as a run that failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Violation {
    /// What is wrong, and with what.
    pub finding: Finding,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { rule, pointer, message } = &self.finding;
        let place = if pointer.is_empty() { "" } else { " at " };
        write!(f, "{message}{place}{pointer} ({})", rule.code)
    }
}

impl std::error::Error for Violation {}

/// How a stream stands, or ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// Nothing came.
    Empty,
    /// A run is open. At the end of the stream it means that the stream was cut: nobody knows how the run ended.
    Truncated,
    /// The last run came to its end.
    Finished,
    /// The last run waits for somebody: [`Reducer::pending_interrupts`].
    Interrupted,
    /// The last run was stopped on purpose.
    Cancelled,
    /// The last run failed and says why.
    Failed {
        /// What went wrong.
        message: String,
        /// A word for programs.
        code: Option<String>,
    },
    /// The stream broke the protocol.
    Violated,
}

/// Follows one stream, event by event.
#[derive(Debug, Clone)]
pub struct Follower {
    verifier: Verifier,
    reducer: Reducer,
    parser: Parser,
    known: Known,
    piece: Piece,
    begun: bool,
    violation: Option<Violation>,
}

impl Default for Follower {
    fn default() -> Self {
        Self::new(Reducer::default())
    }
}

impl Follower {
    /// A follower that goes on from messages and state that are there.
    pub fn new(reducer: Reducer) -> Self {
        Self {
            verifier: Verifier::single(),
            reducer,
            parser: Parser::default(),
            known: Known::default(),
            piece: Piece::default(),
            begun: false,
            violation: None,
        }
    }

    /// Takes the next event. After a violation nothing is taken any more.
    pub fn event(&mut self, bytes: &[u8]) -> Result<Followed, Violation> {
        match json::text(bytes) {
            Ok(text) => self.text(text),
            Err(error) => self.judged(not_json(&error)),
        }
    }

    /// [`Follower::event`], for an event that is known to be text, as a frame of server-sent events is.
    pub fn text(&mut self, event: &str) -> Result<Followed, Violation> {
        if self.violation.is_none()
            && let Some(delta) = self.piece.delta(event)
        {
            return Ok(self.go_on(delta));
        }
        let mut parser = std::mem::take(&mut self.parser);
        let followed = match parser.parse_text(event) {
            Ok(document) => self.document(event, &document),
            Err(error) => {
                self.piece.prefix.clear();
                not_json(&error)
            }
        };
        self.parser = parser;
        self.judged(followed)
    }

    /// [`Follower::event`], for an event that was parsed already.
    pub fn message(&mut self, event: &Message) -> Result<Followed, Violation> {
        let document = event.document();
        let text = document.text();
        if self.violation.is_none()
            && let Some(delta) = self.piece.delta(text)
        {
            return Ok(self.go_on(delta));
        }
        let followed = self.document(text, &document);
        self.judged(followed)
    }

    fn document(&mut self, event: &str, document: &Document<'_>) -> Followed {
        self.piece.prefix.clear();
        let mut followed = Followed::default();
        if self.violation.is_some() {
            return followed;
        }
        let Followed { change, findings, warnings } = &mut followed;
        let (reducer, begun, piece) = (&mut self.reducer, &mut self.begun, &mut self.piece);
        let mut steps = 0;
        self.verifier.step(document, &mut self.known, findings, &mut |step| {
            *begun = true;
            steps += 1;
            piece.take(step);
            let done = reducer.apply(step, warnings);
            if done != Change::None {
                *change = done;
            }
        });
        if steps == 1 && findings.is_empty() && warnings.is_empty() {
            piece.learn(event, document.root());
        }
        followed
    }

    /// The same piece of the same item again, with other words in it.
    fn go_on(&mut self, delta: &str) -> Followed {
        let Piece { item, id, .. } = &self.piece;
        let (id, delta) = (Cow::Borrowed(id.as_str()), Cow::Borrowed(delta));
        let step = Step::Append { item: *item, id, tag: None, delta, metadata: None };
        let mut followed = Followed::default();
        followed.change = self.reducer.apply(&step, &mut followed.warnings);
        followed
    }

    fn judged(&mut self, followed: Followed) -> Result<Followed, Violation> {
        if let Some(violation) = &self.violation {
            return Err(violation.clone());
        }
        match followed.findings.iter().find(|finding| is_fatal(finding)) {
            None => Ok(followed),
            Some(finding) => {
                let violation = Violation { finding: finding.clone() };
                self.violation = Some(violation.clone());
                Err(violation)
            }
        }
    }

    /// [`Follower::event`], for an event that was built here and has no bytes yet.
    pub fn value(&mut self, event: &Value) -> Result<Followed, Violation> {
        self.text(&event.to_string())
    }

    /// The messages and the state so far.
    pub fn reducer(&self) -> &Reducer {
        &self.reducer
    }

    /// How the stream stands; once there is no more, how it ended.
    pub fn ending(&self) -> Ending {
        if self.violation.is_some() {
            return Ending::Violated;
        }
        match self.reducer.outcome() {
            None if self.begun => Ending::Truncated,
            None => Ending::Empty,
            Some(Outcome::Success) => Ending::Finished,
            Some(Outcome::Interrupt) => Ending::Interrupted,
            Some(Outcome::Cancelled) => Ending::Cancelled,
            Some(Outcome::Error { message, code }) => {
                Ending::Failed { message: message.clone(), code: code.clone() }
            }
        }
    }
}

fn not_json(error: &json::Error) -> Followed {
    let finding = check::JSON.at("", format!("the message is not JSON: {error}"));
    Followed { findings: vec![finding], ..Followed::default() }
}

/// The event before, if it was a piece of something and the next one can be the same with other words: most are. What
/// made that one right makes this one right, too, as nothing came between them.
#[derive(Debug, Clone, Default)]
struct Piece {
    /// The event up to the first character of its words; empty where it was something else.
    prefix: String,
    /// What follows the words, up to the timestamp if that comes last.
    suffix: String,
    stamped: bool,
    item: Item,
    id: String,
}

impl Piece {
    /// The words of an event that is otherwise the same.
    fn delta<'e>(&self, event: &'e str) -> Option<&'e str> {
        if self.prefix.is_empty() {
            return None;
        }
        let rest = event.strip_prefix(self.prefix.as_str())?;
        let rest = if self.stamped { unstamped(rest)? } else { rest };
        let words = rest.strip_suffix(self.suffix.as_str())?;
        json::is_plain(words).then_some(words)
    }

    fn take(&mut self, step: &Step<'_>) {
        self.id.clear();
        if let Step::Append { item, id, metadata: None, .. } = step {
            self.item = *item;
            self.id.push_str(id);
        }
    }

    /// Remembers an event that did nothing but what was taken last.
    fn learn(&mut self, event: &str, object: View<'_>) {
        let Some(delta) = object.get("delta").filter(|_| !self.id.is_empty()) else { return };
        let place = delta.span();
        let (Some(prefix), Some(rest)) = (event.get(..=place.start), event.get(place.end - 1..))
        else {
            return;
        };
        let unstamped = unstamped(rest).filter(|rest| rest.ends_with(",\"timestamp\":"));
        self.stamped = unstamped.is_some();
        self.prefix.push_str(prefix);
        self.suffix.clear();
        self.suffix.push_str(unstamped.unwrap_or(rest));
    }
}

/// The end of an event without the number that it ends with, where that is a whole one in any client's range.
fn unstamped(rest: &str) -> Option<&str> {
    let number = rest.strip_suffix('}')?;
    let before = number.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let digits = number.len() - before.len();
    let leads = number.as_bytes().get(before.len()) != Some(&b'0');
    ((1..=15).contains(&digits) && leads).then_some(before)
}

/// Whether the reference client ends the run for a finding. It reads any version and takes a cut stream for a whole
/// one; both are errors here all the same.
pub fn is_fatal(finding: &Finding) -> bool {
    let tolerated = [check::VERSION.code, super::sequence::TRUNCATED.code];
    finding.rule.severity == Severity::Error && !tolerated.contains(&finding.rule.code)
}

#[cfg(test)]
#[path = "follow_tests.rs"]
mod tests;
