//! One session that events are pushed to: what was seen of it, and which ids were recorded lately.
//!
//! What is kept here is a memory of the journal and can be made again from it: after a restart, when it was silent for long, or when
//! a batch was not recorded after all.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use banister_events::activity::{Gate, Origin};
use banister_events::check::Checker;
use banister_events::event::Protocol;
use banister_events::{Message, frame};
use banister_journal::{Draft, Level, Record};
use jiff::Timestamp;
use tokio::sync::OwnedMutexGuard;

use super::asks::AskListener;
use super::pieces::Pieces;
use super::pushing::PushPolicy;
use crate::project::Pushed;

/// How many sessions are remembered.
const SESSIONS: usize = 1_024;
/// How many ids are remembered of each: who sends again does so soon.
const IDS: usize = 2_048;

/// The sessions that events were pushed to lately.
#[derive(Debug, Default)]
pub(crate) struct PushSessions {
    open: Mutex<SessionTable>,
}

#[derive(Debug, Default)]
struct SessionTable {
    sessions: HashMap<String, (Arc<tokio::sync::Mutex<PushSession>>, u64)>,
    entered: u64,
}

/// One session.
#[derive(Debug, Default)]
pub(super) struct PushSession {
    /// What has seen all records of the session; none where it has to be made from them.
    pub(super) memory: Option<Memory>,
    /// The same, and what is about to be recorded.
    pub(super) next: Option<Memory>,
    /// What reads the session for what it asks, where it does. It has seen all records, as the memory.
    pub(super) listener: Option<AskListener>,
    ids: HashSet<String>,
    order: VecDeque<String>,
}

/// What is known of a session's events.
#[derive(Debug, Clone)]
pub(super) struct Memory {
    protocol: Protocol,
    pub(super) checker: Checker,
    /// What they tell, where it matters whether an event tells anything.
    reader: Option<Pushed>,
    /// What is held of texts in pieces.
    pub(super) pieces: Pieces,
    seq: u64,
}

impl Memory {
    pub(super) fn new(protocol: Protocol, policy: PushPolicy) -> Self {
        let reader = (policy == PushPolicy::Repair).then(|| Pushed::new(protocol));
        let (checker, pieces) = (Checker::new(protocol), Pieces::default());
        Self { protocol, checker, reader, pieces, seq: 0 }
    }

    /// An event that is about to be there.
    pub(super) fn hear(&mut self, event: &Message, gate: Option<&Gate>, draft: &Draft) {
        self.seq += 1;
        let Some(reader) = &mut self.reader else { return };
        let origin =
            Origin { session: draft.session.as_str().into(), seq: self.seq, time: draft.time };
        reader.message(event, gate, draft.action.as_deref(), &origin);
    }

    /// Whether anything can be told of an event, whatever is wrong with it.
    pub(super) fn can_tell(&self, event: &Message, now: Timestamp) -> bool {
        let origin = Origin { session: "".into(), seq: self.seq + 1, time: now };
        let reader = self.reader.clone();
        reader.is_some_and(|mut reader| !reader.message(event, None, None, &origin).is_empty())
    }

    /// An event that is there already.
    pub(super) fn recall(&mut self, record: &Record) {
        self.seq = record.seq;
        let message = Message::recorded(self.protocol, record.body.clone());
        match &message {
            Ok(message) if record.captured.level == Level::Full => {
                self.checker.parsed(message);
            }
            // What was not kept whole may have told anything.
            _ => {
                self.checker.unframed(frame::Error::Truncated { missing: 0 });
            }
        }
        self.pieces = Pieces::interrupted();
        let origin =
            Origin { session: record.session.as_str().into(), seq: record.seq, time: record.time };
        if let (Some(reader), Ok(message)) = (&mut self.reader, message) {
            reader.told(record, Some(&message), &origin);
        }
    }
}

impl PushSessions {
    /// Waits for a session, and holds it.
    pub(super) async fn enter(&self, session: &str) -> OwnedMutexGuard<PushSession> {
        let push_session = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.entered += 1;
            let now = open.entered;
            if open.sessions.len() >= SESSIONS && !open.sessions.contains_key(session) {
                open.forget();
            }
            let (found, entered) = open.sessions.entry(session.to_owned()).or_default();
            *entered = now;
            Arc::clone(found)
        };
        push_session.lock_owned().await
    }
}

impl SessionTable {
    /// Forgets those that were silent longest and that nobody holds, until there is room again.
    fn forget(&mut self) {
        let spare = self.sessions.len().saturating_sub(SESSIONS * 3 / 4);
        let idle = |(session, _): &(Arc<_>, u64)| Arc::strong_count(session) == 1;
        let mut silent: Vec<u64> = self
            .sessions
            .values()
            .filter(|session| idle(session))
            .map(|(_, entered)| *entered)
            .collect();
        silent.sort_unstable();
        let Some(last) = silent.get(spare).or(silent.last()).copied() else { return };
        self.sessions.retain(|_, session| !idle(session) || session.1 > last);
    }
}

impl PushSession {
    /// Its memory, for as long as nobody knows whether what that sees will be history.
    pub(super) fn take(&mut self) -> Option<Memory> {
        self.next = None;
        self.memory.take()
    }

    /// Gives it a memory that has seen all records of the session.
    pub(super) fn restore(&mut self, memory: Option<Memory>) {
        self.memory = memory;
    }

    /// What the next one saw is history.
    pub(super) fn go_on(&mut self) {
        self.memory = self.next.take();
    }

    pub(super) fn remember(&mut self, id: &str) {
        if self.ids.insert(id.to_owned()) {
            self.order.push_back(id.to_owned());
        }
        if self.order.len() > IDS
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
    }

    pub(super) fn remembers(&self, id: &str) -> bool {
        self.ids.contains(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sessions_that_nobody_holds_are_forgotten_the_silent_ones_first() {
        let sessions = PushSessions::default();
        let held = sessions.enter("held").await;
        for number in 0..SESSIONS * 2 {
            sessions.enter(&number.to_string()).await.remember("evt");
        }
        let open = sessions.open.lock().unwrap();
        assert!(open.sessions.len() <= SESSIONS, "{}", open.sessions.len());
        assert!(open.sessions.contains_key("held"));
        assert!(open.sessions.contains_key(&(SESSIONS * 2 - 1).to_string()));
        assert!(!open.sessions.contains_key("0"));
        drop(held);
    }
}
