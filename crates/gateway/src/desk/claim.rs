//! An ask that its own agent closes: taken, recorded with the event that says so, and put away; or given back.

use banister_events::activity::Outcome;
use banister_journal::{Entry, Kind};
use jiff::Timestamp;

use super::{Closing, Desk, Opened};
use crate::project::CloseFact;

/// An ask that is about to be withdrawn. Dropped, it stays open.
#[derive(Debug)]
pub(crate) struct Claim {
    desk: Desk,
    fact: CloseFact,
    taken: bool,
}

impl Desk {
    /// Takes an ask for its agent, which goes on without an answer; with the record of that. `None` where it is closed,
    /// or somebody's answer is on its way.
    pub(crate) fn claim(&self, id: &str, now: Timestamp) -> Option<(Claim, Entry)> {
        let opened = self.lock().reserve(id, None).ok()?.ok()?;
        let (mut claim, entry) = self.claim_of(&opened, now);
        claim.taken = true;
        Some((claim, entry))
    }

    /// The same for one that is not on the desk yet, but will be before it is put away.
    pub(crate) fn claim_of(&self, opened: &Opened, now: Timestamp) -> (Claim, Entry) {
        let closing = Closing::own(&opened.ask.id, Kind::Withdrawal, Outcome::Withdrawn, "agent");
        let entry = self.end(opened, &closing, now);
        (Claim { desk: self.clone(), fact: closing.fact, taken: false }, entry)
    }
}

impl Claim {
    /// It is recorded. Gives its position if something is held there.
    pub(crate) async fn close(mut self) {
        self.taken = false;
        let held = self.desk.lock().finish(self.fact.clone());
        self.desk.settle(held.into_iter().collect()).await;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.taken {
            self.desk.lock().release(&self.fact.ask);
        }
    }
}
