//! What waits on a person gets an answer: asks are answered, expire, are withdrawn.
//!
//! An ask is a record before anybody sees it, and so is its end. The first valid answer wins; a late one is told so.
//! Whatever goes wrong, the waiting action is refused. After a restart the open asks are taken up from the journal, and
//! a hook that comes back under its idempotency key waits on the same ask.

use std::collections::HashSet;

use banister_events::activity::{self, Answer, AskKind, Decision, Gate, Outcome, What};
use banister_events::aep::dialect::Behavior;
use banister_journal::{Appended, Durability, Kind};
use tokio_util::task::TaskTracker;

use crate::Error;
use crate::asks::{Asks, TIMEOUT, Waited, due};
use crate::clock::Clock;
use crate::facts::CloseFact;
use crate::history::History;

mod extend;
mod person_answer;

pub(crate) use crate::asks::{Opened, Refused};
pub(crate) use extend::ExtendRequest;
pub(crate) use person_answer::{AnswerRequest, PersonAnswer};

/// How far the clock of whoever replies may be off.
const SKEW: jiff::SignedDuration = jiff::SignedDuration::from_mins(2);

/// The desk.
#[derive(Debug, Clone)]
pub(crate) struct Desk {
    asks: Asks,
    history: History,
    clock: Clock,
    tasks: TaskTracker,
}

/// An end that somebody wants for an ask.
struct Closing {
    fact: CloseFact,
    kind: Kind,
    door: &'static str,
    key: String,
    /// The digest of the action that the person saw.
    digest: Option<String>,
}

impl Closing {
    /// One of the gateway's own.
    fn own(id: &str, kind: Kind, outcome: Outcome, by: &str) -> Self {
        let fact = CloseFact::new(id, outcome, by);
        Self { fact, kind, door: "gateway", key: "gateway".to_owned(), digest: None }
    }
}

/// What the waiting agent is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decided {
    /// The behaviour.
    pub behavior: Behavior,
    /// The words that go with it.
    pub message: String,
}

impl Desk {
    pub(crate) fn new(asks: Asks, history: History, clock: Clock, tasks: TaskTracker) -> Self {
        Self { asks, history, clock, tasks }
    }

    /// Answers one blocked action; always returns before the ask's deadline plus the time of one commit.
    pub(crate) async fn decide(&self, gate: Option<&Gate>, ask: Option<&str>) -> Decided {
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
            (Decision::Ask, Some(ask)) => verdict(&self.outcome(ask).await),
            (Decision::Ask, None) => decided(Behavior::Deny, "Nobody could be asked."),
        }
    }

    /// The open asks, oldest first.
    pub(crate) fn inbox(&self) -> Vec<Opened> {
        self.asks.inbox()
    }

    /// An open ask, by its id or the beginning of it.
    pub(crate) fn opened(&self, name: &str) -> Result<Opened, Refused> {
        self.asks.opened(name)
    }

    /// How an ask was closed, if it was, and not too long ago.
    pub(crate) fn closed(&self, id: &str) -> Option<CloseFact> {
        self.asks.closed(id)
    }

    /// Whether an ask is open, or was closed not too long ago.
    pub(crate) fn knows(&self, id: &str) -> bool {
        self.asks.knows(id)
    }

    /// The sessions with open asks.
    pub(crate) fn sessions(&self) -> HashSet<String> {
        self.asks.sessions()
    }

    /// Gives an answer. `name` is the ask's id, or the beginning of it; where the time of that ask was extended, the
    /// answer is to the one that is open now, which is about the same.
    pub(crate) async fn answer(
        &self,
        name: &str,
        request: &AnswerRequest,
    ) -> Result<CloseFact, Refused> {
        let mut id = self.asks.find(name)?;
        loop {
            let closing = self.closing(&id, request)?;
            match self.close(closing).await {
                Err(Refused::Late(CloseFact { next: Some(next), .. })) => id = next,
                other => return other,
            }
        }
    }

    fn closing(&self, id: &str, request: &AnswerRequest) -> Result<Closing, Refused> {
        let opened = self.asks.with_id(id)?;
        let (outcome, response) = match request.answer.to(&opened)? {
            activity::Reply::Accept { .. } => (Outcome::Accepted, None),
            activity::Reply::Respond { response } => (Outcome::Accepted, Some(response)),
            activity::Reply::Reject | activity::Reply::Withdraw => (Outcome::Rejected, None),
        };
        let message = request.message.clone().filter(|message| !message.is_empty());
        let fact = CloseFact { message, response, ..CloseFact::new(id, outcome, "user") };
        let (door, key, digest) = (request.door, request.key.clone(), request.digest.clone());
        Ok(Closing { fact, kind: Kind::Answer, door, key, digest })
    }

    /// Closes an ask as somebody says who knows how it ends.
    pub(crate) async fn close_as(
        &self,
        fact: CloseFact,
        kind: Kind,
        (door, key): (&'static str, &str),
    ) -> Result<CloseFact, Refused> {
        self.close(Closing { fact, kind, door, key: key.to_owned(), digest: None }).await
    }

    /// Gives the answer that a reply of a protocol carries. It finds its ask by the token alone; who sends it must have
    /// been let in before. A yes to something else than what was asked is a no.
    pub(crate) async fn reply(
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
        let opened = self.asks.with_token(&answer.token)?;
        let dated = answer.time.is_none_or(|time| {
            time.duration_since(now) <= SKEW && opened.since.duration_since(time) <= SKEW
        });
        if dated && opened.response_schema().is_some() {
            return person_answer::fitting(&opened, answer);
        }
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

    /// Waits until an ask is closed, or the one that takes its place where its time is extended; at its deadline at the
    /// latest.
    pub(crate) async fn outcome(&self, id: &str) -> CloseFact {
        let mut id = self.asks.newest(id);
        loop {
            let fact = match self.asks.wait(&id).await {
                Waited::Closed(fact) => fact,
                Waited::Overdue => self.expire(&id).await,
                Waited::Lost => lost(&id),
            };
            match fact.next {
                Some(next) => id = next,
                None => return fact,
            }
        }
    }

    /// The agent has gone on without an answer.
    pub(crate) async fn withdraw(&self, id: &str) -> Result<CloseFact, Refused> {
        self.close(Closing::own(id, Kind::Withdrawal, Outcome::Withdrawn, "agent")).await
    }

    /// Nobody is left who could answer: everything that is open gets its default, as if its time were over.
    pub(crate) async fn lapse(&self) {
        // Nobody is kept waiting by a handoff or by a run that is parked.
        let waits = |opened: &Opened| opened.handoff.is_none() && !opened.is_parked();
        for opened in self.asks.inbox().into_iter().filter(waits) {
            self.expire(&opened.ask.id).await;
        }
    }

    /// Closes what is past its deadline and what nobody waits on any more. Called about once a second.
    pub(crate) async fn sweep(&self) {
        let stale = self.asks.stale();
        for id in stale.expired {
            self.expire(&id).await;
        }
        for id in stale.abandoned {
            if let Err(error) = self.withdraw(&id).await {
                tracing::debug!(%id, %error, "An abandoned ask was closed otherwise.");
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

    /// The one way an ask ends. It runs to its end even if whoever asked for it has gone.
    async fn close(&self, closing: Closing) -> Result<CloseFact, Refused> {
        let ask = closing.fact.ask.clone();
        let desk = self.clone();
        let closed = self.tasks.spawn(async move { desk.close_now(closing).await });
        closed.await.unwrap_or(Err(Refused::Unknown(ask)))
    }

    /// Takes an ask and makes its end history.
    async fn close_now(&self, closing: Closing) -> Result<CloseFact, Refused> {
        let Closing { mut fact, mut kind, door, key, digest } = closing;
        let claim = self.asks.take(&fact.ask, digest.as_deref()).await?;
        let now = self.clock.now();
        // An answer after the deadline is none.
        let late = kind == Kind::Answer && due(&claim.opened().ask) <= now;
        if late {
            kind = Kind::Expiry;
            fact = CloseFact::new(fact.ask, Outcome::Expired, TIMEOUT);
        }
        if kind == Kind::Expiry && claim.opened().accepts_by_default() {
            fact.outcome = Outcome::Accepted;
        }
        let end = claim.end(fact.clone(), kind, (door, key), now);
        match self.history.commit(vec![end.into()], Durability::Synced).await {
            Ok(Appended::Recorded(_)) if late => Err(Refused::Late(fact)),
            Ok(Appended::Recorded(_)) => Ok(fact),
            Ok(Appended::Duplicate { .. }) => Err(Refused::Unknown(fact.ask)),
            Err(error) => Err(unrecorded(error, fact.ask)),
        }
    }
}

/// An end that is not recorded does not count.
fn unrecorded(error: Error, ask: String) -> Refused {
    match error {
        Error::Journal(error) => Refused::Journal(error),
        _ => Refused::Unknown(ask),
    }
}

fn decided(behavior: Behavior, message: &str) -> Decided {
    Decided { behavior, message: message.to_owned() }
}

fn verdict(fact: &CloseFact) -> Decided {
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
