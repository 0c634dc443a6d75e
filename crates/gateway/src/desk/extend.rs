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

use super::{AskDraft, Closing, Desk, Opened, Refused, due, signed};
use crate::project::CloseFact;
use crate::random;

/// Somebody who wants more time.
#[derive(Debug, Clone)]
pub struct More {
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
    pub async fn extend(&self, name: &str, more: &More) -> Result<Opened, Refused> {
        let id = self.lock().find(name)?;
        let (desk, more) = (self.clone(), more.clone());
        let asked = id.clone();
        let extended = self.tasks.spawn(async move { desk.extend_now(&asked, more).await });
        extended.await.unwrap_or(Err(Refused::Unknown(id)))
    }

    async fn extend_now(&self, id: &str, more: More) -> Result<Opened, Refused> {
        let opened = self.take(id, more.digest.as_deref()).await?;
        let now = self.clock.now();
        if due(&opened.ask) <= now {
            self.lock().release(id);
            return Err(Refused::Late(self.expire(id).await));
        }
        let result = self.ask_again(&opened, &more, now).await;
        if result.is_err() {
            self.lock().release(id);
        }
        result
    }

    async fn ask_again(
        &self,
        opened: &Opened,
        more: &More,
        now: Timestamp,
    ) -> Result<Opened, Refused> {
        let deadline = later(opened, more.by)?;
        let Ok(token) = random::token::<16>() else {
            return Err(Refused::Unknown(opened.ask.id.clone()));
        };
        let ask = Ask {
            id: id::derive("ask_", &[&opened.ask.id, EXTENSION]),
            token: format!("rpl_{token}"),
            deadline: Some(deadline),
            ..opened.ask.clone()
        };
        let next = ask.id.clone();
        let draft = AskDraft::again(opened, ask, now);
        let fact = CloseFact {
            next: Some(next.clone()),
            ..CloseFact::new(&opened.ask.id, Outcome::Withdrawn, EXTENSION)
        };
        let closing = Closing {
            fact: fact.clone(),
            kind: Kind::Withdrawal,
            door: more.door,
            key: more.key.clone(),
            digest: None,
        };
        let entries = vec![self.end(opened, &closing, now), draft.entry(&self.keeper)];
        let fresh = draft.opened();
        let expected = self.expect(draft);
        match self.journal.append(entries, Durability::Synced).await? {
            Appended::Recorded(records) => {
                // The new one is on the desk before anybody hears that the old one is not.
                if let Some(record) = records.last() {
                    expected.open(record);
                }
                let held = self.lock().finish(fact);
                self.hub.publish(&records);
                self.settle(held.into_iter().collect()).await;
                Ok(fresh)
            }
            Appended::Duplicate { .. } => Err(Refused::Unknown(opened.ask.id.clone())),
        }
    }
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
