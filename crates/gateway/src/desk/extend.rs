//! More time to answer: the ask is withdrawn, and asked again under a new token.
//!
//! Both are one commit, so there is never a moment at which nothing waits, and a restart finds the new one. Whoever waits
//! on the old one waits on the new one; whoever answers under the old token is late. No extension goes beyond the time
//! that the agent itself waits.

use std::time::Duration;

use banister_events::activity::{Ask, EXTENSION, Outcome};
use banister_events::id;
use banister_journal::{Appended, Durability, Kind};
use jiff::Timestamp;

use super::{Desk, Opened, Refused, unrecorded};
use crate::asks::{AskDraft, due, signed};
use crate::facts::CloseFact;
use crate::random;

/// Somebody who wants more time.
#[derive(Debug, Clone)]
pub(crate) struct ExtendRequest {
    /// How much more; as much again as there was, where nothing is said.
    pub by: Option<Duration>,
    /// The door it came through.
    pub door: &'static str,
    /// The id of the key it came with.
    pub key: String,
    /// The digest of the action the person saw, if it is known.
    pub digest: Option<String>,
}

impl Desk {
    /// Extends the time to answer, as far as the agent itself waits. Gives the ask that is open from now on.
    pub(crate) async fn extend(
        &self,
        name: &str,
        request: &ExtendRequest,
    ) -> Result<Opened, Refused> {
        let id = self.asks.find(name)?;
        let (desk, request, asked) = (self.clone(), request.clone(), id.clone());
        let extended = self.tasks.spawn(async move { desk.extend_now(asked, request).await });
        extended.await.unwrap_or(Err(Refused::Unknown(id)))
    }

    async fn extend_now(&self, id: String, request: ExtendRequest) -> Result<Opened, Refused> {
        let claim = self.asks.take(&id, request.digest.as_deref()).await?;
        let now = self.clock.now();
        if due(&claim.opened().ask) <= now {
            drop(claim);
            return Err(Refused::Late(self.expire(&id).await));
        }
        let (fact, draft) = asked_again(claim.opened(), request.by, now)?;
        let fresh = draft.opened();
        let by = (request.door, request.key);
        let end = claim.end(fact, Kind::Withdrawal, by, now);
        match self.history.commit(vec![end.into(), draft.into()], Durability::Synced).await {
            Ok(Appended::Recorded(_)) => Ok(fresh),
            Ok(Appended::Duplicate { .. }) => Err(Refused::Unknown(id)),
            Err(error) => Err(unrecorded(error, id)),
        }
    }
}

/// The end of an ask whose time is extended, and the ask that takes its place.
fn asked_again(
    opened: &Opened,
    by: Option<Duration>,
    now: Timestamp,
) -> Result<(CloseFact, AskDraft), Refused> {
    let deadline = later(opened, by)?;
    let Ok(token) = random::token::<16>() else {
        return Err(Refused::Unknown(opened.ask.id.clone()));
    };
    let ask = Ask {
        id: id::derive("ask_", &[&opened.ask.id, EXTENSION]),
        token: format!("rpl_{token}"),
        deadline: Some(deadline),
        ..opened.ask.clone()
    };
    let fact = CloseFact {
        next: Some(ask.id.clone()),
        ..CloseFact::new(&opened.ask.id, Outcome::Withdrawn, EXTENSION)
    };
    Ok((fact, AskDraft::again(opened, ask, now)))
}

/// The new deadline: never beyond the agent's own limit, and refused where that is reached.
fn later(opened: &Opened, by: Option<Duration>) -> Result<Timestamp, Refused> {
    let deadline = due(&opened.ask);
    let limit = opened.limit.unwrap_or(deadline);
    let before = deadline.duration_since(opened.since);
    let more = by.map_or(before, signed);
    let wanted = deadline.saturating_add(more).unwrap_or(limit);
    let granted = wanted.min(limit);
    if granted <= deadline { Err(Refused::Limit(limit)) } else { Ok(granted) }
}
