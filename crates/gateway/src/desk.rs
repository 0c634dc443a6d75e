//! What waits on a person: asks are opened, answered, expire, are withdrawn.
//!
//! An ask is a record before anybody sees it, and so is its end. The first valid answer wins; a late one is told so.
//! Whatever goes wrong, the waiting action is refused. After a restart the open asks are taken up from the journal, and
//! a hook that comes back under its idempotency key waits on the same ask. To find them, only what came after a mark is
//! read: before it no ask is open, and none closed that is still remembered.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use banister_events::activity::{
    self, Answer, Ask, AskKind, Context, Decision, Gate, Outcome, What,
};
use banister_events::aep::dialect::Behavior;
use banister_journal::{Draft, Durability, Journal, Kind, Record, Source};
use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;
use tokio_util::task::TaskTracker;

use crate::Error;
use crate::clock::Clock;
use crate::hub::Hub;
use crate::keep::Keeper;
use crate::project::{AskFact, CloseFact, Handoff, Sender};

mod book;
mod claim;
mod draft;
mod extend;
mod said;

use book::{Book, accepts_by_default};
pub(crate) use claim::Claim;
pub use draft::AskDraft;
pub use extend::More;
pub use said::{Given, Said};

/// How long an ask stays open when nobody waits on it: a hook may come back after a restart.
const ABANDONED: Duration = Duration::from_mins(1);

/// Who closed an ask that nobody answered.
const TIMEOUT: &str = "timeout";

/// How far the clock of whoever replies may be off.
const SKEW: jiff::SignedDuration = jiff::SignedDuration::from_mins(2);

/// The desk.
#[derive(Debug, Clone)]
pub struct Desk {
    keeper: Keeper,
    journal: Journal,
    hub: Hub,
    clock: Clock,
    tasks: TaskTracker,
    asks: Arc<Mutex<Book>>,
}

/// An end that is on its way.
struct Closing {
    fact: CloseFact,
    kind: Kind,
    door: &'static str,
    key: String,
    digest: Option<String>,
}

impl Closing {
    /// One of the gateway's own.
    fn own(id: &str, kind: Kind, outcome: Outcome, by: &str) -> Self {
        let fact = CloseFact::new(id, outcome, by);
        Self { fact, kind, door: "gateway", key: "gateway".to_owned(), digest: None }
    }
}

/// An open ask, as people see it.
#[derive(Debug, Clone, PartialEq)]
pub struct Opened {
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
    pub fn is_extendable(&self) -> bool {
        self.limit.is_some_and(|limit| limit > due(&self.ask))
    }

    /// What counts where nobody answers.
    pub fn default_word(&self) -> &'static str {
        if accepts_by_default(self) { "accept" } else { "reject" }
    }
}

/// An answer, as somebody gives it.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Whether it may run.
    pub accept: bool,
    /// A word to the agent.
    pub message: Option<String>,
    /// The door it came through.
    pub door: &'static str,
    /// The id of the key it came with.
    pub key: String,
    /// The digest of the action the person saw, if it is known: an answer to anything else does not count.
    pub digest: Option<String>,
}

/// Why an answer did not count.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
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

/// What the waiting agent is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// The behaviour.
    pub behavior: Behavior,
    /// The words that go with it.
    pub message: String,
}

impl Desk {
    /// Takes up the asks that are open in the journal.
    pub fn reopen(
        keeper: &Keeper,
        journal: &Journal,
        hub: &Hub,
        clock: &Clock,
        tasks: &TaskTracker,
    ) -> Result<Self, Error> {
        let now = clock.now();
        let mut asks = Book::default();
        let kinds = [Kind::Ask, Kind::Answer, Kind::Expiry, Kind::Withdrawal];
        for record in journal.of_kinds(&kinds, journal.mark()?)? {
            if record.kind == Kind::Ask {
                if let Ok(fact) = serde_json::from_slice::<AskFact>(record.exact()) {
                    let draft = AskDraft {
                        fact,
                        session: record.session.clone(),
                        source: record.source.clone(),
                        since: record.time,
                    };
                    asks.insert(&draft, &record, now);
                }
            } else if let Ok(fact) = serde_json::from_slice::<CloseFact>(&record.body) {
                asks.finish(fact);
            }
        }
        // The gateway stopped between the end of an ask and the removal of what was held for it.
        let open: HashSet<u64> = asks.open.values().map(|entry| entry.position).collect();
        let held = journal.held()?;
        asks.unsettled = held.iter().map(|record| record.position).collect();
        asks.unsettled.retain(|position| !open.contains(position));
        Ok(Self {
            keeper: keeper.clone(),
            journal: journal.clone(),
            hub: hub.clone(),
            clock: clock.clone(),
            tasks: tasks.clone(),
            asks: Arc::new(Mutex::new(asks)),
        })
    }

    /// Answers one blocked action; always returns before the ask's deadline plus the time of one commit.
    pub async fn decide(&self, gate: Option<&Gate>, ask: Option<&str>) -> Decided {
        let Some(gate) = gate else {
            return Decided { behavior: Behavior::Abstain, message: String::new() };
        };
        match (gate.decision, ask) {
            (Decision::Allow, _) => decided(Behavior::Allow, &gate.reason),
            (Decision::Deny, _) => {
                let mut message = format!("{} (rule {})", gate.reason, gate.rule);
                if let Some(safer) = &gate.safer {
                    message.push_str(" Safer: ");
                    message.push_str(safer);
                }
                decided(Behavior::Deny, &message)
            }
            (Decision::Ask, Some(ask)) => told(&self.wait(ask).await),
            (Decision::Ask, None) => decided(Behavior::Deny, "Nobody could be asked."),
        }
    }

    /// Announces an ask that is about to be recorded.
    pub fn expect(&self, draft: AskDraft) -> Expected {
        let mut asks = self.lock();
        asks.tickets += 1;
        let ticket = asks.tickets;
        asks.expected.insert(ticket, self.journal.head());
        drop(asks);
        Expected { desk: self.clone(), ticket, draft: Some(draft) }
    }

    /// Whether something that was pushed waits in a session.
    pub(crate) fn has_pushed(&self, session: &str) -> bool {
        let asks = self.lock();
        asks.open.values().any(|it| it.opened.session == session && it.opened.sender.is_some())
    }

    /// Whether an ask is open, or was closed not too long ago.
    pub(crate) fn knows(&self, id: &str) -> bool {
        let asks = self.lock();
        asks.open.contains_key(id) || asks.closed.contains_key(id)
    }

    /// The sessions with open asks.
    pub fn sessions(&self) -> HashSet<String> {
        self.lock().open.values().map(|entry| entry.opened.session.clone()).collect()
    }

    /// Notes in the journal from where on it has to be read when the desk is opened again, and removes what is held for
    /// nothing.
    pub async fn tidy(&self) -> Result<(), Error> {
        let (mark, unsettled) = {
            let mut asks = self.lock();
            // An ask that is recorded by now is on the desk, or was expected before: both are looked at under this lock.
            (asks.mark(self.journal.head()), std::mem::take(&mut asks.unsettled))
        };
        if mark > self.journal.mark()? {
            self.journal.set_mark(mark).await?;
        }
        self.settle(unsettled).await;
        Ok(())
    }

    /// Removes exact bytes that are not needed any more. What fails is tried again.
    async fn settle(&self, positions: Vec<u64>) {
        if positions.is_empty() {
            return;
        }
        if let Err(error) = self.journal.settle(positions.clone()).await {
            tracing::warn!(%error, "The exact action of a closed ask is still in the journal.");
            self.lock().unsettled.extend(positions);
        }
    }

    /// The open asks, oldest first.
    pub fn inbox(&self) -> Vec<Opened> {
        let asks = self.lock();
        let mut open: Vec<Opened> = asks
            .open
            .values()
            .map(|entry| Opened { waiting: entry.waiters > 0, ..entry.opened.clone() })
            .collect();
        open.sort_by(|a, b| (a.since, &a.ask.id).cmp(&(b.since, &b.ask.id)));
        open
    }

    /// An open ask, by its id or the beginning of it.
    pub(crate) fn opened(&self, name: &str) -> Result<Opened, Refused> {
        let asks = self.lock();
        let id = asks.find(name)?;
        match (asks.open.get(&id), asks.closed.get(&id)) {
            (Some(entry), _) => Ok(entry.opened.clone()),
            (None, Some(first)) => Err(Refused::Late(first.fact.clone())),
            (None, None) => Err(Refused::Unknown(id)),
        }
    }

    /// How an ask was closed, if it was, and not too long ago.
    pub fn closed(&self, id: &str) -> Option<CloseFact> {
        let asks = self.lock();
        asks.closed.get(asks.newest(id)).map(|closed| closed.fact.clone())
    }

    /// Says yes or no. `name` is the ask's id, or the beginning of it.
    pub async fn answer(&self, name: &str, reply: &Reply) -> Result<CloseFact, Refused> {
        let Reply { accept, message, door, key, digest } = reply.clone();
        let said = if accept { Said::Accept } else { Said::Reject };
        self.give(name, &Given { said, message, door, key, digest }).await
    }

    /// Gives an answer. `name` is the ask's id, or the beginning of it; where the time of that ask was extended, the
    /// answer is to the one that is open now, which is about the same.
    pub async fn give(&self, name: &str, given: &Given) -> Result<CloseFact, Refused> {
        let mut id = self.lock().find(name)?;
        loop {
            let closing = self.closing(&id, given)?;
            match self.close(closing).await {
                Err(Refused::Late(CloseFact { next: Some(next), .. })) => id = next,
                other => return other,
            }
        }
    }

    fn closing(&self, id: &str, given: &Given) -> Result<Closing, Refused> {
        let asks = self.lock();
        let Some(entry) = asks.open.get(id) else {
            return match asks.closed.get(id) {
                Some(first) => Err(Refused::Late(first.fact.clone())),
                None => Err(Refused::Unknown(id.to_owned())),
            };
        };
        let (outcome, response) = match given.said.to(&entry.opened)? {
            activity::Reply::Accept { .. } => (Outcome::Accepted, None),
            activity::Reply::Respond { response } => (Outcome::Accepted, Some(response)),
            activity::Reply::Reject | activity::Reply::Withdraw => (Outcome::Rejected, None),
        };
        let message = given.message.clone().filter(|message| !message.is_empty());
        let fact = CloseFact { message, response, ..CloseFact::new(id, outcome, "user") };
        let (door, key, digest) = (given.door, given.key.clone(), given.digest.clone());
        Ok(Closing { fact, kind: Kind::Answer, door, key, digest })
    }

    /// Gives the answer that a reply of a protocol carries. It finds its ask by the token alone; who sends it must have
    /// been let in before. A yes to something else than what was asked is a no.
    pub async fn reply(
        &self,
        answer: &Answer,
        door: &'static str,
        key: &str,
    ) -> Result<CloseFact, Refused> {
        let fact = self.understood(answer)?;
        self.close(Closing { fact, kind: Kind::Answer, door, key: key.to_owned(), digest: None })
            .await
    }

    fn understood(&self, answer: &Answer) -> Result<CloseFact, Refused> {
        let now = self.clock.now();
        let opened = {
            let asks = self.lock();
            let id = asks.tokens.get(&answer.token);
            let id = id.ok_or_else(|| Refused::Unknown(answer.token.clone()))?;
            if let Some(first) = asks.closed.get(id) {
                return Err(Refused::Late(first.fact.clone()));
            }
            let entry = asks.open.get(id).ok_or_else(|| Refused::Unknown(id.clone()))?;
            entry.opened.clone()
        };
        let dated = answer.time.is_none_or(|time| {
            time.duration_since(now) <= SKEW && opened.since.duration_since(time) <= SKEW
        });
        let asks_for_words = matches!(opened.ask.kind, AskKind::Clarification { .. });
        let has_words = matches!(answer.reply, activity::Reply::Respond { .. });
        if !dated || asks_for_words != has_words {
            return Err(Refused::Unfit);
        }
        let mut one = activity::Asks::default();
        one.open(opened.ask);
        match one.answer(answer) {
            Ok(What::AskClosed { id, outcome, message, response, updated_input, .. }) => {
                let outcome = if updated_input.is_some() { Outcome::Rejected } else { outcome };
                Ok(CloseFact { message, response, ..CloseFact::new(id, outcome, "user") })
            }
            _ => Err(Refused::Unfit),
        }
    }

    /// Waits until an ask is closed; at its deadline at the latest.
    pub async fn outcome(&self, id: &str) -> CloseFact {
        self.wait(id).await
    }

    /// The agent has gone on without an answer.
    pub async fn withdraw(&self, id: &str) -> Result<CloseFact, Refused> {
        self.close(Closing::own(id, Kind::Withdrawal, Outcome::Withdrawn, "agent")).await
    }

    /// Nobody is left who could answer: everything that is open gets its default, as if its time were over.
    pub async fn lapse(&self) {
        let waits = |(id, entry): (&String, &book::Entry)| {
            entry.opened.handoff.is_none().then(|| id.clone())
        };
        let open: Vec<String> = self.lock().open.iter().filter_map(waits).collect();
        for id in open {
            self.expire(&id).await;
        }
    }

    /// Closes what is past its deadline and what nobody waits on any more. Called about once a second.
    pub async fn sweep(&self) {
        let now = self.clock.now();
        let (expired, abandoned) = {
            let asks = self.lock();
            let mut expired = Vec::new();
            let mut abandoned = Vec::new();
            for (id, entry) in &asks.open {
                if due(&entry.opened.ask) <= now {
                    expired.push(id.clone());
                } else if entry.waiters == 0
                    && entry.opened.sender.is_none()
                    && now.duration_since(entry.left) >= signed(ABANDONED)
                {
                    abandoned.push(id.clone());
                }
            }
            (expired, abandoned)
        };
        for id in expired {
            self.expire(&id).await;
        }
        for id in abandoned {
            if let Err(error) = self.withdraw(&id).await {
                tracing::debug!(%id, %error, "An abandoned ask was closed otherwise.");
            }
        }
    }

    /// Waits on an ask, and on the one that takes its place where its time is extended.
    async fn wait(&self, id: &str) -> CloseFact {
        let mut id = self.lock().newest(id).to_owned();
        loop {
            let fact = self.wait_on(&id).await;
            match fact.next {
                Some(next) => id = next,
                None => return fact,
            }
        }
    }

    async fn wait_on(&self, id: &str) -> CloseFact {
        let (mut bell, deadline) = {
            let mut asks = self.lock();
            if let Some(closed) = asks.closed.get(id) {
                // A yes is good for the call it was given to, not for any that comes later under its key.
                let stale = closed.deadline <= self.clock.now() && closed.fact.next.is_none();
                return if stale { lost(id) } else { closed.fact.clone() };
            }
            let Some(entry) = asks.open.get_mut(id) else {
                return lost(id);
            };
            entry.waiters += 1;
            (entry.bell.subscribe(), due(&entry.opened.ask))
        };
        let _guard = Waiter { desk: self, id };
        loop {
            let heard = bell.borrow_and_update().clone();
            if let Some(fact) = heard {
                return fact;
            }
            let left = deadline.duration_since(self.clock.now());
            let left = Duration::try_from(left).unwrap_or_default();
            if left.is_zero() {
                return self.expire(id).await;
            }
            // The bell is gone only with the desk: then nobody answers any more.
            match tokio::time::timeout(left, bell.changed()).await {
                Ok(Ok(())) | Err(_) => {}
                Ok(Err(_)) => return lost(id),
            }
        }
    }

    async fn expire(&self, id: &str) -> CloseFact {
        let expiry = Closing::own(id, Kind::Expiry, Outcome::Expired, TIMEOUT);
        let fact = expiry.fact.clone();
        match self.close(expiry).await {
            Ok(closed) | Err(Refused::Late(closed)) => closed,
            Err(error) => {
                tracing::warn!(%id, %error, "An expiry was not recorded; the action is refused.");
                fact
            }
        }
    }

    /// The one way an ask ends: reserve, record, release. It runs to its end even if whoever asked for it has gone.
    async fn close(&self, closing: Closing) -> Result<CloseFact, Refused> {
        let ask = closing.fact.ask.clone();
        let desk = self.clone();
        let closed = self.tasks.spawn(async move { desk.close_now(closing).await });
        closed.await.unwrap_or(Err(Refused::Unknown(ask)))
    }

    async fn close_now(&self, mut closing: Closing) -> Result<CloseFact, Refused> {
        let id = closing.fact.ask.clone();
        let opened = self.take(&id, closing.digest.as_deref()).await?;
        let now = self.clock.now();
        // An answer after the deadline is none.
        let late = closing.kind == Kind::Answer && due(&opened.ask) <= now;
        if late {
            closing.kind = Kind::Expiry;
            closing.fact = CloseFact::new(id, Outcome::Expired, TIMEOUT);
        }
        if closing.kind == Kind::Expiry && accepts_by_default(&opened) {
            closing.fact.outcome = Outcome::Accepted;
        }
        let entry = self.end(&opened, &closing, now);
        let fact = closing.fact;
        match self.journal.append(vec![entry], Durability::Synced).await {
            Ok(banister_journal::Appended::Recorded(records)) => {
                self.hub.publish(&records);
                let held = self.lock().finish(fact.clone());
                self.settle(held.into_iter().collect()).await;
                if late { Err(Refused::Late(fact)) } else { Ok(fact) }
            }
            Ok(banister_journal::Appended::Duplicate { .. }) => {
                self.lock().release(&fact.ask);
                Err(Refused::Unknown(fact.ask))
            }
            Err(error) => {
                self.lock().release(&fact.ask);
                Err(Refused::Journal(error))
            }
        }
    }

    /// Takes an ask for closing. Where somebody else is at it, it waits until it is known whether that counts.
    async fn take(&self, id: &str, digest: Option<&str>) -> Result<Opened, Refused> {
        loop {
            let mut bell = match self.lock().reserve(id, digest)? {
                Ok(opened) => return Ok(opened),
                Err(bell) => bell,
            };
            let _rung = bell.changed().await;
        }
    }

    /// The record of an end.
    fn end(&self, opened: &Opened, closing: &Closing, now: Timestamp) -> banister_journal::Entry {
        let draft = Draft {
            session: opened.session.clone(),
            time: now,
            kind: closing.kind,
            source: Source {
                protocol: "banister".to_owned(),
                agent: opened.source.agent.clone(),
                door: closing.door.to_owned(),
                key: closing.key.clone(),
            },
            turn: opened.context.turn.clone(),
            action: opened.ask.action.as_ref().map(|action| action.id.clone()),
            event_id: None,
            reader: 1,
            body: Bytes::from(serde_json::to_vec(&closing.fact).unwrap_or_default()),
            findings: Value::Null,
            gate: None,
        };
        self.keeper.close(draft, &closing.fact)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Book> {
        self.asks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes that a waiting agent has left, however it left.
struct Waiter<'a> {
    desk: &'a Desk,
    id: &'a str,
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let now = self.desk.clock.now();
        if let Some(entry) = self.desk.lock().open.get_mut(self.id) {
            entry.waiters = entry.waiters.saturating_sub(1);
            entry.left = now;
        }
    }
}

/// An ask on its way into the journal.
#[derive(Debug)]
pub struct Expected {
    desk: Desk,
    ticket: u64,
    draft: Option<AskDraft>,
}

impl Expected {
    /// Puts it on the desk, now that it is recorded; gives its id.
    pub fn open(mut self, record: &Record) -> String {
        let Some(draft) = self.draft.take() else { return String::new() };
        let id = draft.fact.ask.id.clone();
        let now = self.desk.clock.now();
        self.desk.lock().insert(&draft, record, now);
        id
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        self.desk.lock().expected.remove(&self.ticket);
    }
}

/// When waiting ends. What nobody gave a deadline is past it: nobody may be kept waiting for ever.
fn due(ask: &Ask) -> Timestamp {
    ask.deadline.unwrap_or(Timestamp::MIN)
}

fn signed(duration: Duration) -> jiff::SignedDuration {
    jiff::SignedDuration::try_from(duration).unwrap_or(jiff::SignedDuration::MAX)
}

fn decided(behavior: Behavior, message: &str) -> Decided {
    Decided { behavior, message: message.to_owned() }
}

fn told(fact: &CloseFact) -> Decided {
    let words = fact.message.as_deref().unwrap_or_default();
    match fact.outcome {
        Outcome::Accepted if words.is_empty() => decided(Behavior::Allow, "Accepted by the user."),
        Outcome::Accepted => decided(Behavior::Allow, &format!("Accepted by the user: {words}")),
        Outcome::Rejected if words.is_empty() => decided(Behavior::Deny, "Rejected by the user."),
        Outcome::Rejected => decided(Behavior::Deny, &format!("Rejected by the user: {words}")),
        Outcome::Expired => decided(Behavior::Deny, "Nobody answered in time, so it is rejected."),
        Outcome::Withdrawn => decided(Behavior::Deny, "The ask was withdrawn, so it is rejected."),
    }
}

/// An ask that is not there: whoever waits on it is refused.
fn lost(id: &str) -> CloseFact {
    CloseFact::new(id, Outcome::Withdrawn, "gateway")
}

#[cfg(test)]
#[path = "desk_tests.rs"]
mod tests;
