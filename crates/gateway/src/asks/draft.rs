//! An ask before it is in the table: what it is about, and the record of it.

use std::time::Duration;

use banister_events::activity::{Action, Ask, AskKind, Context, Gate};
use banister_events::id;
use banister_journal::{Draft, Kind, Source};
use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::Opened;
use crate::facts::{AskFact, Handoff, Sender};
use crate::keep::Keeper;
use crate::{Error, random};

/// How long something that was pushed waits for an answer, where its sender did not say.
const PUSHED_WAIT: Duration = Duration::from_hours(24);
/// How long a handoff stands, and an interrupt of an upstream that does not expire.
const STANDS: Duration = Duration::from_hours(24 * 365);

/// Whoever wants an action decided and waits for the answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asker<'a> {
    /// The agent's name.
    pub(crate) agent: &'a str,
    /// The door that the message came through.
    pub(crate) door: &'a str,
    /// The id of the key that it came with.
    pub(crate) key: &'a str,
    /// The sender's id of the message, if it has one.
    pub(crate) event_id: Option<&'a str>,
    /// How long the sender waits.
    pub(crate) wait: Duration,
}

/// An ask that is about to be recorded.
#[derive(Debug)]
pub(crate) struct AskDraft {
    pub(super) fact: AskFact,
    pub(super) session: String,
    pub(super) source: Source,
    pub(super) since: Timestamp,
}

impl AskDraft {
    /// The id of the ask that a message opens: the same message finds the same ask again.
    pub(crate) fn id_for(key: &str, event_id: &str) -> String {
        id::derive("ask_", &[key, event_id])
    }

    /// An ask as somebody else made it.
    pub(crate) fn of(
        (ask, context): (Ask, Context),
        session: &str,
        source: Source,
        since: Timestamp,
    ) -> Self {
        Self { fact: AskFact::new(ask, context), session: session.to_owned(), source, since }
    }

    /// An ask that an agent pushed. It gets a token of ours: two agents may have given theirs the same.
    pub(crate) fn pushed(
        (ask, context): (Ask, Context),
        (session, source): (&str, Source),
        (sender, handoff): (Sender, Option<Handoff>),
        now: Timestamp,
    ) -> Result<Self, Error> {
        // An agent behind the gateway does not wait: it is called again.
        let wait = if handoff.is_some() || sender.is_upstream() { STANDS } else { PUSHED_WAIT };
        let latest = now.checked_add(wait).unwrap_or(Timestamp::MAX);
        let deadline = ask.deadline.map_or(latest, |deadline| deadline.min(latest));
        let exact = serde_json::to_vec(&(&ask.action, &ask.kind, &handoff)).unwrap_or_default();
        let ask = Ask {
            token: format!("rpl_{}", random::token::<16>()?),
            digest: id::hex(&Sha256::digest(&exact)),
            deadline: Some(deadline),
            ..ask
        };
        let fact = AskFact {
            limit: handoff.is_none().then_some(deadline),
            sender: Some(sender),
            handoff,
            ..AskFact::new(ask, context)
        };
        Ok(Self { fact, session: session.to_owned(), source, since: now })
    }

    /// An ask that takes the place of another.
    pub(crate) fn again(opened: &Opened, ask: Ask, now: Timestamp) -> Self {
        let fact = AskFact {
            limit: opened.limit,
            sender: opened.sender.clone(),
            handoff: opened.handoff.clone(),
            ..AskFact::new(ask, opened.context.clone())
        };
        Self { fact, session: opened.session.clone(), source: opened.source.clone(), since: now }
    }

    /// With this much time to answer at first. More can be had, for as long as the agent waits.
    #[must_use]
    pub(crate) fn within(mut self, time: Duration) -> Self {
        let deadline = self.since.checked_add(time).ok();
        self.fact.ask.deadline = [self.fact.ask.deadline, deadline].into_iter().flatten().min();
        self
    }

    /// What people see of it.
    pub(crate) fn opened(&self) -> Opened {
        let AskFact { ask, context, limit, sender, handoff } = self.fact.clone();
        Opened {
            ask,
            context,
            session: self.session.clone(),
            source: self.source.clone(),
            since: self.since,
            waiting: false,
            limit,
            sender,
            handoff,
        }
    }

    /// An ask about an action.
    pub(crate) fn new(
        asker: &Asker<'_>,
        session: &str,
        (action, gate): (Option<Action>, Gate),
        context: Context,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let deadline = now.checked_add(asker.wait).unwrap_or(now);
        let id = match asker.event_id {
            Some(event_id) => Self::id_for(asker.key, event_id),
            None => format!("ask_{}", random::token::<16>()?),
        };
        let exact = serde_json::to_vec(&action).unwrap_or_default();
        let ask = Ask {
            action,
            gate: Some(gate),
            digest: id::hex(&Sha256::digest(&exact)),
            deadline: Some(deadline),
            ..Ask::new(id, format!("rpl_{}", random::token::<16>()?), AskKind::Confirmation)
        };
        Ok(Self {
            fact: AskFact { limit: Some(deadline), ..AskFact::new(ask, context) },
            session: session.to_owned(),
            source: Source {
                protocol: "banister".to_owned(),
                agent: asker.agent.to_owned(),
                door: asker.door.to_owned(),
                key: asker.key.to_owned(),
            },
            since: now,
        })
    }

    /// The ask's id.
    pub(crate) fn id(&self) -> &str {
        &self.fact.ask.id
    }

    /// The record of it.
    pub(crate) fn entry(&self, keeper: &Keeper) -> banister_journal::Entry {
        keeper.ask(self.draft(), &self.fact)
    }

    fn draft(&self) -> Draft {
        Draft {
            session: self.session.clone(),
            time: self.since,
            kind: Kind::Ask,
            source: self.source.clone(),
            turn: self.fact.context.turn.clone(),
            action: self.fact.ask.action.as_ref().map(|action| action.id.clone()),
            event_id: None,
            reader: 1,
            body: Bytes::from(serde_json::to_vec(&self.fact).unwrap_or_default()),
            findings: Value::Null,
            gate: None,
        }
    }
}
