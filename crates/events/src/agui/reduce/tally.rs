//! Which calls of a run wait for the application.

use std::collections::HashMap;

use crate::check::recent::Seed;

/// The calls of one run.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    /// Those that the end of the run named, which count if there are any.
    pub(super) named: Vec<Box<str>>,
    started: Vec<Box<str>>,
    known: HashMap<Box<str>, Known, Seed>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Known {
    started: bool,
    answered: bool,
}

impl Tally {
    pub(super) fn start(&mut self, call: &str) {
        let known = self.known.entry(call.into()).or_default();
        if !known.started {
            known.started = true;
            self.started.push(call.into());
        }
    }

    pub(super) fn answer(&mut self, call: &str) {
        self.known.entry(call.into()).or_default().answered = true;
    }

    pub(super) fn pending(&self) -> impl Iterator<Item = &str> {
        let derived = self.named.is_empty();
        let answered = |call: &str| self.known.get(call).is_some_and(|known| known.answered);
        let started = self.started.iter().filter(move |call| derived && !answered(call));
        self.named.iter().chain(started).map(AsRef::as_ref)
    }
}
