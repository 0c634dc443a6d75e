//! One session that events are pushed to: what was seen of it, and which ids were recorded lately.
//!
//! A lane is a memory of the journal and can be made again from it: after a restart, when it was silent for long, or when
//! a batch was not recorded after all.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use banister_events::activity::{Gate, Origin};
use banister_events::check::Checker;
use banister_events::event::Protocol;
use banister_events::frame;
use banister_journal::{Draft, Kind, Level, Record};
use jiff::Timestamp;
use tokio::sync::OwnedMutexGuard;

use super::asks::Listener;
use super::pieces::Pieces;
use super::{Policy, Pusher};
use crate::project::{Body, Pushed};
use crate::{Error, Gateway};

/// How many sessions are remembered.
const LANES: usize = 1_024;
/// How many ids are remembered of each: who sends again does so soon.
const IDS: usize = 2_048;

/// The sessions that events were pushed to lately.
#[derive(Debug, Default)]
pub struct Lanes {
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    lanes: HashMap<String, (Arc<tokio::sync::Mutex<Lane>>, u64)>,
    entered: u64,
}

/// One session.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// What has seen all records of the session; none where it has to be made from them.
    memory: Option<Memory>,
    /// The same, and what is about to be recorded.
    pub(super) next: Option<Memory>,
    /// What reads the session for what it asks, where it does. It has seen all records, as the memory.
    pub(super) listener: Option<Listener>,
    ids: HashSet<String>,
    order: VecDeque<String>,
}

/// What is known of a session's events.
#[derive(Debug, Clone)]
pub(super) struct Memory {
    pub(super) checker: Checker,
    /// What they tell, where it matters whether an event tells anything.
    reader: Option<Pushed>,
    /// What is held of texts in pieces.
    pub(super) pieces: Pieces,
    seq: u64,
}

impl Memory {
    fn new(protocol: Protocol, policy: Policy) -> Self {
        let reader = if policy == Policy::Repair { Pushed::of(protocol.name()) } else { None };
        Self { checker: Checker::new(protocol), reader, pieces: Pieces::default(), seq: 0 }
    }

    /// An event that is about to be there.
    pub(super) fn hear(&mut self, event: &Body<'_>, gate: Option<&Gate>, draft: &Draft) {
        self.seq += 1;
        let Some(reader) = &mut self.reader else { return };
        let origin =
            Origin { session: draft.session.as_str().into(), seq: self.seq, time: draft.time };
        reader.message(event, gate, draft.action.as_deref(), &origin);
    }

    /// Whether anything can be told of an event, whatever is wrong with it.
    pub(super) fn can_tell(&self, event: &[u8], now: Timestamp) -> bool {
        let origin = Origin { session: "".into(), seq: self.seq + 1, time: now };
        let reader = self.reader.clone();
        reader.is_some_and(|mut reader| {
            !reader.message(&event.into(), None, None, &origin).is_empty()
        })
    }

    /// An event that is there already.
    fn recall(&mut self, record: &Record) {
        self.seq = record.seq;
        // What was not kept whole may have told anything.
        if record.captured.level == Level::Full {
            self.checker.message(&record.body);
        } else {
            self.checker.unframed(frame::Error::Truncated { missing: 0 });
        }
        self.pieces = Pieces::interrupted();
        let origin =
            Origin { session: record.session.as_str().into(), seq: record.seq, time: record.time };
        if let Some(reader) = &mut self.reader {
            reader.told(record, &origin);
        }
    }
}

impl Lanes {
    /// Waits for a session, and holds it.
    pub(super) async fn enter(&self, session: &str) -> OwnedMutexGuard<Lane> {
        let lane = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.entered += 1;
            let now = open.entered;
            if open.lanes.len() >= LANES && !open.lanes.contains_key(session) {
                open.forget();
            }
            let (lane, entered) = open.lanes.entry(session.to_owned()).or_default();
            *entered = now;
            Arc::clone(lane)
        };
        lane.lock_owned().await
    }
}

impl Open {
    /// Forgets those that were silent longest and that nobody holds, until there is room again.
    fn forget(&mut self) {
        let spare = self.lanes.len().saturating_sub(LANES * 3 / 4);
        let idle = |(lane, _): &(Arc<_>, u64)| Arc::strong_count(lane) == 1;
        let mut silent: Vec<u64> =
            self.lanes.values().filter(|lane| idle(lane)).map(|(_, entered)| *entered).collect();
        silent.sort_unstable();
        let Some(last) = silent.get(spare).or(silent.last()).copied() else { return };
        self.lanes.retain(|_, lane| !idle(lane) || lane.1 > last);
    }
}

impl Lane {
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

impl Gateway {
    /// Shows a lane without a memory what its session has in the journal.
    pub(super) async fn recall(
        &self,
        lane: &mut Lane,
        session: &str,
        source: &Pusher,
    ) -> Result<(), Error> {
        if lane.memory.is_some() {
            return Ok(());
        }
        let mut memory = Memory::new(source.protocol, self.policy(&source.key));
        let mut seq = 0;
        loop {
            let records = self.session_after(session, seq).await?;
            let Some(newest) = records.last() else { break };
            seq = newest.seq;
            for record in records.iter().filter(|record| record.kind == Kind::Event) {
                memory.recall(record);
                if let Some(id) = &record.event_id {
                    lane.remember(id);
                }
            }
        }
        lane.memory = Some(memory);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lanes_that_nobody_holds_are_forgotten_the_silent_ones_first() {
        let lanes = Lanes::default();
        let held = lanes.enter("held").await;
        for number in 0..LANES * 2 {
            lanes.enter(&number.to_string()).await.remember("evt");
        }
        let open = lanes.open.lock().unwrap();
        assert!(open.lanes.len() <= LANES, "{}", open.lanes.len());
        assert!(open.lanes.contains_key("held"));
        assert!(open.lanes.contains_key(&(LANES * 2 - 1).to_string()));
        assert!(!open.lanes.contains_key("0"));
        drop(held);
    }
}
