//! A session as one AG-UI run: what happened so far, then what happens, until the turn ends or waits for a person.
//!
//! An open ask shows at once as a card. The run ends over it only when nothing else of the turn is open; what follows
//! the answer is the next run. A key that is revoked, and a gateway that stops, end the run with the reason.

use std::sync::Arc;

use banister_events::agui::write::{History, Writer};
use banister_events::finding::{Binds, Rule, Severity};
use banister_journal::Record;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::deliver::reconcile::{dropping, sent};
use crate::deliver::{Gone, KEEP_ALIVE, KeepAlive, Outlet};
use crate::keys::Guest;
use crate::project::Projection;
use crate::{Error, Gateway};

/// The name of the event that tells what became of the answers a run came with.
pub(crate) const RESUMED: &str = "banister.resume";

/// Nothing of that name was ever asked.
pub static UNKNOWN: Rule = Rule {
    code: "RESUME-01",
    severity: Severity::Error,
    opt_in: false,
    binds: Binds::Subscriber,
    text: "An entry of resume is about an interrupt of the session",
    remedy: "Answer the interrupts that the last run ended with, by their ids",
};
/// The answer is none to what was asked.
pub static UNFIT: Rule = Rule {
    code: "RESUME-02",
    severity: Severity::Error,
    opt_in: false,
    binds: Binds::Subscriber,
    text: "The payload of an entry of resume fits the interrupt's responseSchema",
    remedy: "Send a payload that the interrupt's responseSchema describes",
};

/// An interrupt is open, and nothing answers it.
pub static UNCOVERED: Rule = Rule {
    code: "RESUME-03",
    severity: Severity::Error,
    opt_in: false,
    binds: Binds::Subscriber,
    text: "resume has an entry for every interrupt of the run that is open",
    remedy: "Answer or cancel every interrupt that the last run ended with",
};

/// The rules about `resume`.
pub static RULES: [&Rule; 3] = [&UNKNOWN, &UNFIT, &UNCOVERED];

/// A run that a client asked for.
pub(crate) struct AttachedRun {
    /// The session.
    pub(crate) session: String,
    /// Writes the run.
    pub(crate) writer: Writer,
    /// Where it goes.
    pub(crate) outlet: Outlet,
    /// What became of the answers it came with.
    pub(crate) resumed: Vec<Value>,
    /// What the client said it has.
    pub(crate) input: Value,
    /// Who asked.
    pub(crate) guest: Guest,
}

/// Why a run was not streamed to its end.
enum RunFailure {
    Gone,
    Unread(Error),
}

impl From<Gone> for RunFailure {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

impl From<Error> for RunFailure {
    fn from(error: Error) -> Self {
        Self::Unread(error)
    }
}

impl Gateway {
    /// Streams one session as an AG-UI run until its turn ends or waits, its key is revoked or the gateway stops.
    pub(crate) async fn attach(self: Arc<Self>, mut run: AttachedRun, stop: CancellationToken) {
        let guest = run.guest.clone();
        let streamed = tokio::select! {
            () = stop.cancelled() => {
                return run.outlet.fail("shutdown", "the gateway stops; run again once it is back");
            }
            () = self.keys.gone(&guest) => {
                return run.outlet.fail("revoked", "the key of this run was revoked");
            }
            streamed = self.stream_run(&mut run) => streamed,
        };
        if let Err(RunFailure::Unread(error)) = streamed {
            tracing::error!(%error, "A session could not be read.");
            run.outlet.fail("internal", "the session could not be read");
        }
    }

    async fn stream_run(&self, run: &mut AttachedRun) -> Result<(), RunFailure> {
        let AttachedRun { session, writer, outlet, resumed, input, .. } = run;
        let mut bell = self.hub.bell();
        let end = *bell.borrow_and_update();
        let mut projection = Projection::new(Arc::clone(&self.agents));
        let mut history = History::default();
        let mut seq = 0;
        let mut last = 0;
        loop {
            let batch = self.session_after(session, seq).await?;
            let Some(newest) = batch.last() else { break };
            seq = newest.seq;
            for record in &batch {
                last = last.max(record.position);
                for activity in projection.next(record) {
                    history.add(&activity);
                }
            }
        }
        let mut events = writer.begin(&history);
        let restated = |event: &Value| event.get("messages")?.as_array().cloned();
        if let Some(messages) = events.get(1).and_then(restated)
            && let Some(first) = dropping(&messages, &sent(input), true)
        {
            events.insert(1, first);
        }
        if !resumed.is_empty() {
            let outcomes = json!({ "type": "CUSTOM", "name": RESUMED, "value": resumed });
            events.insert(events.len().min(1), outcomes);
        }
        if projection.waits() {
            events.extend(writer.interrupt());
        }
        if !history.turn_open() && !writer.is_finished() {
            writer.finish(None, &mut events);
        }
        drop(history);
        outlet.send(&events).await?;
        let mut position = last.max(end);
        let mut keep_alive = outlet.keep_alive(KEEP_ALIVE);
        while !outlet.is_ended() {
            let batch = self.next_of(&mut position, &mut bell, &mut keep_alive).await?;
            let mut events = Vec::new();
            let new = |record: &&Arc<Record>| record.session == *session && record.seq > seq;
            for record in batch.iter().filter(new) {
                let parsed = self.hub.message(record.position);
                for activity in projection.next_parsed(record, parsed.as_ref()) {
                    events.extend(writer.write(&activity));
                }
            }
            // Only now: what was asked may have been answered since. What others ask can not be answered here.
            if projection.waits() {
                events.extend(writer.interrupt());
            }
            if !events.is_empty() {
                keep_alive.renew();
            }
            outlet.send(&events).await?;
        }
        Ok(())
    }

    /// Waits for records after `position`, saying now and then that the stream is alive.
    async fn next_of(
        &self,
        position: &mut u64,
        bell: &mut watch::Receiver<u64>,
        keep_alive: &mut KeepAlive,
    ) -> Result<Vec<Arc<Record>>, RunFailure> {
        loop {
            let published = *bell.borrow_and_update();
            if published > *position {
                let mut batch = self.after(*position).await?;
                // What is in the journal and not yet published comes with the next ring of the bell.
                batch.retain(|record| record.position <= published);
                if let Some(newest) = batch.last() {
                    *position = newest.position;
                    return Ok(batch);
                }
            }
            keep_alive.wait(bell).await?;
        }
    }
}
