//! A stream as a client sees it: enforced, taken apart, verified, one event after another.

use super::check;
use super::enforce::{Boundary, Enforced};
use super::sequence::Sequence;
use super::step::Step;
use crate::check::shape::Known;
use crate::finding::Finding;
use crate::json::{Document, Parser};

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
            Enforced::Changed(kind, bytes) => {
                let mut parser = Parser::default();
                if let Ok(changed) = parser.parse(&bytes) {
                    self.sequence.step(kind, changed.root(), findings, &mut |step| each(step));
                }
            }
            Enforced::Dropped => {}
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
