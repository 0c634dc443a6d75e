//! The asks that wait on a person: which are open, which were closed lately, and who is about to close one.
//!
//! All of it is a memory of the journal and is made from it when the gateway starts. Anybody may look and wait here, and
//! may take an ask for closing, which reserves it. Nothing here opens or closes an ask but [`AskWriter`], of which there
//! is one; [`history`](crate::history) owns it and uses it once the record is durable.
//!
//! To find the open asks after a restart, only what came after a mark is read: before it no ask is open, and none closed
//! that is still remembered.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use banister_events::activity::{Ask, Context, Outcome};
use banister_journal::{Journal, Kind, Record, Source};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::watch;

use crate::Error;
use crate::clock::Clock;
use crate::facts::{CloseFact, Handoff, Sender};

mod claim;
mod draft;
mod parked;
mod table;

pub(crate) use claim::{AskEnd, Claim};
pub(crate) use draft::{AskDraft, Asker};
pub(crate) use parked::{NotParked, ParkClaim, ParkedDraft, Resumer, Resumption};
use table::{AskTable, BellReceiver};

/// How long an ask stays open when nobody waits on it: a hook may come back after a restart.
const ABANDONED: Duration = Duration::from_mins(1);

/// Who closed an ask that nobody answered.
pub(crate) const TIMEOUT: &str = "timeout";

/// An open ask, as people see it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Opened {
    /// The ask.
    pub ask: Ask,
    /// Who asks, and where.
    pub context: Context,
    /// The session.
    pub session: String,
    /// The agent's door and key, for the record that closes it.
    pub source: Source,
    /// When it was opened.
    pub since: Timestamp,
    /// Whether the agent is connected and waits.
    pub waiting: bool,
    /// How long the agent itself waits: no extension goes beyond.
    pub limit: Option<Timestamp>,
    /// Who pushed it, and looks for the answer itself.
    pub sender: Option<Sender>,
    /// What it stands for, if the agent hands over rather than asks.
    pub handoff: Option<Handoff>,
}

impl Opened {
    /// Whether more time can be had.
    pub(crate) fn is_extendable(&self) -> bool {
        self.limit.is_some_and(|limit| limit > due(&self.ask))
    }

    /// What counts where nobody answers.
    pub(crate) fn default_word(&self) -> &'static str {
        if self.accepts_by_default() { "accept" } else { "reject" }
    }

    /// The schema that an answer has to fit: the gateway itself passes it on to the agent.
    pub(crate) fn response_schema(&self) -> Option<&Value> {
        self.ask.schema.as_ref().filter(|_| self.is_parked())
    }

    /// Whether a run of an upstream waits for it.
    pub(crate) fn is_parked(&self) -> bool {
        self.sender.as_ref().is_some_and(Sender::is_upstream)
    }

    /// Whether no answer counts as a yes: only where its sender said so, and never for what is grave.
    pub(crate) fn accepts_by_default(&self) -> bool {
        let Ask { gate, defaults_to_accept, .. } = &self.ask;
        let grave = gate.as_ref().is_none_or(banister_events::activity::Gate::is_grave);
        self.sender.is_some() && *defaults_to_accept && !grave
    }
}

/// Why an answer did not count.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Refused {
    /// No such ask.
    #[error("there is no ask {0}; `banister inbox` lists the open ones")]
    Unknown(String),
    /// The id fits several asks.
    #[error("{0} fits {1} asks; give more of the id")]
    Ambiguous(String, usize),
    /// The answer is about something else.
    #[error("this answer is about another action; look at the ask again")]
    Another,
    /// The answer is none to what was asked, or not dated within the time to answer.
    #[error("this is no answer to what was asked")]
    Unfit,
    /// The answer is none to what was asked; this would be one.
    #[error("this is no answer to what was asked; it takes {0}")]
    Wrong(String),
    /// The agent itself waits no longer.
    #[error("the agent itself waits no longer than until {0}; there is no more time to be had")]
    Limit(Timestamp),
    /// Somebody or something was first.
    #[error("{}", late(.0))]
    Late(CloseFact),
    /// It could not be recorded, so it does not count.
    #[error("the answer could not be recorded and does not count: {0}")]
    Journal(#[from] banister_journal::Error),
}

fn late(first: &CloseFact) -> String {
    match first.outcome {
        Outcome::Accepted if first.by == TIMEOUT => {
            "the time to answer is over; by its sender's default it was accepted".to_owned()
        }
        Outcome::Accepted => format!("this was already accepted by {}", first.by),
        Outcome::Rejected => format!("this was already rejected by {}", first.by),
        Outcome::Expired => "the time to answer is over; it was rejected".to_owned(),
        Outcome::Withdrawn if first.next.is_some() => {
            "its time was extended; it is asked again, under a new token".to_owned()
        }
        Outcome::Withdrawn => "the agent no longer waits for this".to_owned(),
    }
}

/// What can be done with asks short of opening and closing them.
#[derive(Debug, Clone)]
pub(crate) struct Asks {
    table: Arc<Mutex<AskTable>>,
    clock: Clock,
    /// Rings when a parked run may have become ready.
    parking: watch::Sender<u64>,
}

/// The one handle that opens and closes asks.
#[derive(Debug)]
pub(crate) struct AskWriter {
    asks: Asks,
}

/// How waiting on an ask ended.
#[derive(Debug)]
pub(crate) enum Waited {
    /// It was closed like this.
    Closed(CloseFact),
    /// Its time is over, and nobody has closed it yet.
    Overdue,
    /// There is no such ask, or the answer to it was for somebody else.
    Lost,
}

/// The open asks that the gateway itself has to close.
#[derive(Debug, Default)]
pub(crate) struct Stale {
    /// Their time is over.
    pub(crate) expired: Vec<String>,
    /// Nobody has waited on them for a while.
    pub(crate) abandoned: Vec<String>,
}

impl Asks {
    /// The asks that are open in the journal.
    pub(crate) fn reopen(journal: &Journal, clock: &Clock) -> Result<(Self, AskWriter), Error> {
        let now = clock.now();
        let mut table = AskTable::default();
        let ends = [Kind::Answer, Kind::Expiry, Kind::Withdrawal];
        let kinds = [[Kind::Ask, Kind::Parked, Kind::Resumption], ends].concat();
        for record in journal.of_kinds(&kinds, journal.mark()?)? {
            table.recall(&record, now);
        }
        // The gateway stopped between the end of an ask and the removal of the exact bytes that were kept for it.
        let open: HashSet<u64> = table.open.values().map(|entry| entry.position).collect();
        let held = journal.held()?;
        table.unsettled = held.iter().map(|record| record.position).collect();
        let parked: HashSet<u64> = table.parked.values().map(|run| run.position).collect();
        table.unsettled.retain(|position| !open.contains(position) && !parked.contains(position));
        let parking = watch::Sender::new(0);
        let asks = Self { table: Arc::new(Mutex::new(table)), clock: clock.clone(), parking };
        Ok((asks.clone(), AskWriter { asks }))
    }

    /// The open asks, oldest first.
    pub(crate) fn inbox(&self) -> Vec<Opened> {
        let table = self.lock();
        let mut open: Vec<Opened> = table
            .open
            .values()
            .map(|entry| Opened { waiting: entry.waiters > 0, ..entry.opened.clone() })
            .collect();
        open.sort_by(|a, b| (a.since, &a.ask.id).cmp(&(b.since, &b.ask.id)));
        open
    }

    /// An open ask, by its id or the beginning of it.
    pub(crate) fn opened(&self, name: &str) -> Result<Opened, Refused> {
        let id = self.find(name)?;
        self.with_id(&id)
    }

    /// An open ask, by its whole id.
    pub(crate) fn with_id(&self, id: &str) -> Result<Opened, Refused> {
        let table = self.lock();
        match (table.open.get(id), table.closed.get(id)) {
            (Some(entry), _) => Ok(entry.opened.clone()),
            (None, Some(first)) => Err(Refused::Late(first.fact.clone())),
            (None, None) => Err(Refused::Unknown(id.to_owned())),
        }
    }

    /// An open ask, by its token.
    pub(crate) fn with_token(&self, token: &str) -> Result<Opened, Refused> {
        let id = self.lock().tokens.get(token).cloned();
        self.with_id(&id.ok_or_else(|| Refused::Unknown(token.to_owned()))?)
    }

    /// The id of the ask that a person means: by its id or the beginning of it. Where its time was extended, that is the
    /// one that is asked now.
    pub(crate) fn find(&self, name: &str) -> Result<String, Refused> {
        self.lock().find(name)
    }

    /// The ask that took the place of another, and of that one, and so on.
    pub(crate) fn newest(&self, id: &str) -> String {
        self.lock().newest(id).to_owned()
    }

    /// How an ask was closed, if it was, and not too long ago.
    pub(crate) fn closed(&self, id: &str) -> Option<CloseFact> {
        let table = self.lock();
        table.closed.get(table.newest(id)).map(|closed| closed.fact.clone())
    }

    /// Whether an ask is open, or was closed not too long ago.
    pub(crate) fn knows(&self, id: &str) -> bool {
        let table = self.lock();
        table.open.contains_key(id) || table.closed.contains_key(id)
    }

    /// Whether something that was pushed waits in a session.
    pub(crate) fn has_pushed(&self, session: &str) -> bool {
        let table = self.lock();
        table.open.values().any(|it| it.opened.session == session && it.opened.sender.is_some())
    }

    /// The sessions with open asks.
    pub(crate) fn sessions(&self) -> HashSet<String> {
        self.lock().open.values().map(|entry| entry.opened.session.clone()).collect()
    }

    /// The asks that the gateway itself has to close by now.
    pub(crate) fn stale(&self) -> Stale {
        let now = self.clock.now();
        let mut stale = Stale::default();
        for (id, entry) in &self.lock().open {
            if due(&entry.opened.ask) <= now {
                stale.expired.push(id.clone());
            } else if entry.waiters == 0
                && entry.opened.sender.is_none()
                && now.duration_since(entry.left) >= signed(ABANDONED)
            {
                stale.abandoned.push(id.clone());
            }
        }
        stale
    }

    /// Takes an ask for closing. Where somebody else is at it, it waits until it is known whether that counts.
    pub(crate) async fn take(&self, id: &str, digest: Option<&str>) -> Result<Claim, Refused> {
        loop {
            let mut bell = match self.lock().reserve(id, digest)? {
                Ok(opened) => return Ok(Claim::reserved(self, opened)),
                Err(bell) => bell,
            };
            let _rung = bell.changed().await;
        }
    }

    /// The same without waiting: nothing where it is closed, or somebody else is about to close it.
    pub(crate) fn take_now(&self, id: &str) -> Option<Claim> {
        let opened = self.lock().reserve(id, None).ok()?.ok()?;
        Some(Claim::reserved(self, opened))
    }

    /// Waits until an ask is closed, or its time is over.
    pub(crate) async fn wait(&self, id: &str) -> Waited {
        let (mut bell, deadline) = {
            let mut table = self.lock();
            if let Some(closed) = table.closed.get(id) {
                // A yes is good for the call it was given to, not for any that comes later under its key.
                let stale = closed.deadline <= self.clock.now() && closed.fact.next.is_none();
                return if stale { Waited::Lost } else { Waited::Closed(closed.fact.clone()) };
            }
            let Some(entry) = table.open.get_mut(id) else { return Waited::Lost };
            entry.waiters += 1;
            (entry.bell.subscribe(), due(&entry.opened.ask))
        };
        let _guard = Waiter { asks: self, id };
        self.listen(&mut bell, deadline).await
    }

    async fn listen(&self, bell: &mut BellReceiver, deadline: Timestamp) -> Waited {
        loop {
            if let Some(fact) = bell.borrow_and_update().clone() {
                return Waited::Closed(fact);
            }
            let left = deadline.duration_since(self.clock.now());
            let left = Duration::try_from(left).unwrap_or_default();
            if left.is_zero() {
                return Waited::Overdue;
            }
            // The bell is gone only with the table: then nobody answers any more.
            match tokio::time::timeout(left, bell.changed()).await {
                Ok(Ok(())) | Err(_) => {}
                Ok(Err(_)) => return Waited::Lost,
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, AskTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AskWriter {
    /// Announces an ask that is about to be recorded. While the announcement is held, the mark stays before it.
    pub(crate) fn expect(&self, head: u64) -> Expected {
        let mut table = self.asks.lock();
        table.tickets += 1;
        let ticket = table.tickets;
        table.expected.insert(ticket, head);
        drop(table);
        Expected { asks: self.asks.clone(), ticket }
    }

    /// Opens an ask, now that it is recorded.
    pub(crate) fn open(&self, draft: &AskDraft, record: &Record) {
        let now = self.asks.clock.now();
        self.asks.lock().insert(draft, record, now);
    }

    /// Closes an ask, now that its end is recorded. Gives its position if exact bytes are kept there.
    pub(crate) fn close(&self, mut end: AskEnd) -> Option<u64> {
        end.claim.spend();
        let exact = self.asks.lock().finish(end.fact.clone());
        self.asks.parking.send_modify(|changes| *changes += 1);
        exact
    }

    /// The position up to which nothing has to be read again, where the journal ends at `head`; and the positions whose
    /// exact bytes are not needed any more.
    pub(crate) fn tidy(&self, head: impl FnOnce() -> u64) -> (u64, Vec<u64>) {
        let mut table = self.asks.lock();
        // An ask that is recorded by now is in the table, or was expected before: both are looked at under this lock.
        (table.mark(head()), std::mem::take(&mut table.unsettled))
    }

    /// Exact bytes that could not be removed: they are tried again.
    pub(crate) fn keep_unsettled(&self, positions: Vec<u64>) {
        self.asks.lock().unsettled.extend(positions);
    }
}

/// An ask on its way into the journal.
#[derive(Debug)]
pub(crate) struct Expected {
    asks: Asks,
    ticket: u64,
}

impl Drop for Expected {
    fn drop(&mut self) {
        self.asks.lock().expected.remove(&self.ticket);
    }
}

/// Notes that a waiting agent has left, however it left.
struct Waiter<'a> {
    asks: &'a Asks,
    id: &'a str,
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let now = self.asks.clock.now();
        if let Some(entry) = self.asks.lock().open.get_mut(self.id) {
            entry.waiters = entry.waiters.saturating_sub(1);
            entry.left = now;
        }
    }
}

/// When waiting ends. What nobody gave a deadline is past it: nobody may be kept waiting for ever.
pub(crate) fn due(ask: &Ask) -> Timestamp {
    ask.deadline.unwrap_or(Timestamp::MIN)
}

pub(crate) fn signed(duration: Duration) -> jiff::SignedDuration {
    jiff::SignedDuration::try_from(duration).unwrap_or(jiff::SignedDuration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_never_passes_an_ask_that_is_on_its_way() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(&dir.path().join("journal.db")).unwrap();
        let (_, writer) = Asks::reopen(&journal, &Clock::default()).unwrap();
        let first = writer.expect(7);
        let second = writer.expect(8);
        assert_eq!(writer.tidy(|| 10).0, 7);
        drop(first);
        assert_eq!(writer.tidy(|| 10).0, 8);
        drop(second);
        assert_eq!(writer.tidy(|| 10).0, 10);
    }
}
