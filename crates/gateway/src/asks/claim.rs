//! An ask that somebody is about to close, and the record of how it ends.

use banister_events::activity::Outcome;
use banister_journal::{Draft, Entry, Kind, Source};
use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;

use super::{Asks, Opened};
use crate::facts::CloseFact;
use crate::keep::Keeper;

/// The sole right to close an ask. Dropped, the ask is open as before, and the next in line may close it.
#[derive(Debug)]
pub(crate) struct Claim {
    asks: Asks,
    opened: Opened,
    /// Whether the table knows of it: an ask that the same commit opens is not there yet.
    reserved: bool,
}

/// How an ask ends, on its way into history.
#[derive(Debug)]
pub(crate) struct AskEnd {
    pub(super) claim: Claim,
    pub(super) fact: CloseFact,
    /// Who ended it: the kind of the record, the door and the key.
    pub(crate) kind: Kind,
    pub(crate) door: &'static str,
    pub(crate) key: String,
    pub(crate) time: Timestamp,
}

impl Claim {
    pub(super) fn reserved(asks: &Asks, opened: Opened) -> Self {
        Self { asks: asks.clone(), opened, reserved: true }
    }

    /// The right to close an ask that the same commit opens.
    pub(crate) fn fresh(asks: &Asks, opened: Opened) -> Self {
        Self { asks: asks.clone(), opened, reserved: false }
    }

    /// The ask.
    pub(crate) fn opened(&self) -> &Opened {
        &self.opened
    }

    /// Its own agent goes on without an answer.
    pub(crate) fn withdrawn(self, now: Timestamp) -> AskEnd {
        let fact = CloseFact::new(&self.opened.ask.id, Outcome::Withdrawn, "agent");
        self.end(fact, Kind::Withdrawal, ("gateway", "gateway".to_owned()), now)
    }

    /// It ends like this.
    pub(crate) fn end(
        self,
        fact: CloseFact,
        kind: Kind,
        (door, key): (&'static str, String),
        time: Timestamp,
    ) -> AskEnd {
        AskEnd { claim: self, fact, kind, door, key, time }
    }

    /// The ask is closed: there is nothing to give back.
    pub(super) fn spend(&mut self) {
        self.reserved = false;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.reserved {
            self.asks.lock().release(&self.opened.ask.id);
        }
    }
}

impl AskEnd {
    /// The record of it.
    pub(crate) fn entry(&self, keeper: &Keeper) -> Entry {
        let Self { claim: Claim { opened, .. }, fact, .. } = self;
        let draft = Draft {
            session: opened.session.clone(),
            time: self.time,
            kind: self.kind,
            source: Source {
                protocol: "banister".to_owned(),
                agent: opened.source.agent.clone(),
                door: self.door.to_owned(),
                key: self.key.clone(),
            },
            turn: opened.context.turn.clone(),
            action: opened.ask.action.as_ref().map(|action| action.id.clone()),
            event_id: None,
            reader: 1,
            body: Bytes::from(serde_json::to_vec(fact).unwrap_or_default()),
            findings: Value::Null,
            gate: None,
        };
        keeper.close(draft, fact)
    }
}
