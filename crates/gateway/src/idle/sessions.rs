//! The sessions in which a turn may be open.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

/// How long an agent may be silent before its turn is over, where nothing else is said.
pub(crate) const USUAL: Duration = Duration::from_mins(30);
/// How many sessions are followed at once; any more are found at the next start.
const MOST: usize = 16_384;

/// The sessions in which a turn may be open.
#[derive(Debug, Default)]
pub(crate) struct Idle {
    state: Mutex<IdleState>,
}

#[derive(Debug, Default)]
pub(super) struct IdleState {
    /// Everything up to here was looked at; none before the first look.
    pub(super) position: Option<u64>,
    /// When that was.
    pub(super) looked: Timestamp,
    /// Session → when something last happened in it.
    pub(super) last: HashMap<String, Timestamp>,
}

impl IdleState {
    pub(super) fn note(&mut self, session: &str, time: Timestamp) {
        if let Some(last) = self.last.get_mut(session) {
            *last = time;
        } else if self.last.len() < MOST {
            self.last.insert(session.to_owned(), time);
        }
    }
}

impl Idle {
    pub(super) fn lock(&self) -> std::sync::MutexGuard<'_, IdleState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
