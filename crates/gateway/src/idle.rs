//! Turns that nobody ends: an agent without a stop hook, or one that was killed.
//!
//! A session in which nothing happens for a while gets a record that ends its open turn, so that whoever watches sees an
//! end. What comes later opens a new turn. A turn that waits for a person is not ended: its ask has a deadline of its own.
//!
//! The record says after which other it was written. Where something came in between it ends nothing, for anybody.

use std::sync::Arc;
use std::time::Duration;

use banister_events::activity::Turns;
use banister_journal::{Draft, Durability, Entry, Kind, Record, Source};
use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::facts::IdleFact;
use crate::project::Projection;
use crate::reads::blocking;
use crate::{Error, Gateway};

pub(crate) mod sessions;

/// How far back open turns are looked for at the start.
const BACK: SignedDuration = SignedDuration::from_hours(7 * 24);
/// How much later than its time a record may be committed.
const SKEW: SignedDuration = SignedDuration::from_mins(1);
/// How often they are looked for, at most.
const PACE: Duration = Duration::from_secs(15);
/// How many sessions are looked at in one round.
const ROUND: usize = 256;

impl Gateway {
    /// Ends the turns of agents that have gone silent. May be called as often as one likes.
    pub(crate) async fn end_idle_turns(&self) {
        let Some(idle) = self.settings.idle else { return };
        if let Err(error) = self.look_for_idle(idle).await {
            tracing::error!(%error, "Idle turns could not be ended.");
        }
    }

    async fn look_for_idle(&self, idle: Duration) -> Result<(), Error> {
        let now = self.clock.now();
        let (known, before) = {
            let mut state = self.idle.lock();
            let since = Duration::try_from(now.duration_since(state.looked)).unwrap_or(PACE);
            if state.position.is_some() && since < PACE.min(idle) {
                return Ok(());
            }
            (state.position, std::mem::replace(&mut state.looked, now))
        };
        // Records that the hub no longer has are not read again: the list of sessions says when each last changed.
        match known.and_then(|position| self.hub.after(position, usize::MAX)) {
            // At the start any session may have an open turn, later one in which something happened since.
            None => {
                let since =
                    if known.is_some() { before.checked_sub(SKEW) } else { now.checked_sub(BACK) };
                self.list(since.unwrap_or(Timestamp::MIN)).await?;
            }
            Some(records) => {
                let mut state = self.idle.lock();
                for record in &records {
                    state.note(&record.session, record.time);
                }
                state.position = records.last().map(|newest| newest.position).or(known);
            }
        }
        let asking = self.desk.sessions();
        let mut due: Vec<(Timestamp, String)> = {
            let state = self.idle.lock();
            let is_due = |last: Timestamp| {
                Duration::try_from(now.duration_since(last)).is_ok_and(|silent| silent >= idle)
            };
            let silent = state.last.iter().filter(|(_, last)| is_due(**last));
            let silent = silent.filter(|(session, _)| !asking.contains(*session));
            silent.map(|(session, last)| (*last, session.clone())).collect()
        };
        due.sort();
        for (last, session) in due.into_iter().take(ROUND) {
            self.end_idle(&session, now).await?;
            let mut state = self.idle.lock();
            // What came meanwhile is looked at again.
            if state.last.get(&session) == Some(&last) {
                state.last.remove(&session);
            }
        }
        Ok(())
    }

    /// Notes the sessions in which something happened since a time.
    async fn list(&self, since: Timestamp) -> Result<(), Error> {
        let position = self.hub.head();
        let journal = self.journal.clone();
        let rows = blocking(move || journal.sessions()).await?;
        let mut state = self.idle.lock();
        for row in rows.iter().filter(|row| row.last >= since) {
            state.note(&row.session, row.last);
        }
        state.position = Some(position);
        Ok(())
    }

    /// Records the end of a session's turn, if one is open.
    async fn end_idle(&self, session: &str, now: Timestamp) -> Result<(), Error> {
        let mut projection = Projection::new(Arc::clone(&self.agents));
        let mut turns = Turns::default();
        let mut last: Option<Arc<Record>> = None;
        loop {
            let records = self.session_after(session, last.as_ref().map_or(0, |it| it.seq)).await?;
            for activity in records.iter().flat_map(|record| projection.next(record)) {
                turns.add(&activity);
            }
            let Some(newest) = records.last() else { break };
            last = Some(Arc::clone(newest));
        }
        let Some(last) = last.filter(|_| turns.open().is_some() && !projection.is_asking()) else {
            return Ok(());
        };
        let silent = now.duration_since(last.time).as_secs();
        let fact =
            IdleFact { after: last.seq, silent_seconds: u64::try_from(silent).unwrap_or_default() };
        let draft = Draft {
            session: session.to_owned(),
            time: now,
            kind: Kind::Idle,
            source: Source {
                protocol: "banister".to_owned(),
                agent: last.source.agent.clone(),
                door: "gateway".to_owned(),
                key: "gateway".to_owned(),
            },
            turn: last.turn.clone(),
            action: None,
            event_id: None,
            reader: 1,
            body: Bytes::from(serde_json::to_vec(&fact).unwrap_or_default()),
            findings: Value::Null,
            gate: None,
        };
        self.history.commit(vec![Entry::from(draft).into()], Durability::Synced).await?;
        Ok(())
    }
}

#[cfg(test)]
#[path = "idle_tests.rs"]
mod tests;
