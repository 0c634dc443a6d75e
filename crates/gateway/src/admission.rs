//! One message with its verdict becomes history: a hook's payload, or an event that somebody waits on.
//!
//! Both doors come here once they have read a message and know what the rules say. The ask that the verdict wants, how
//! durable the record has to be, and what a message gets that was there before, are the same for both.

use std::sync::Arc;

use banister_events::Message;
use banister_events::activity::{Action, Context, Decision, Gate, Risk};
use banister_journal::{Appended, Durability, Entry, Level, Record};
use jiff::Timestamp;
use serde::Deserialize;

use crate::asks::{AskDraft, Asker};
use crate::history::Fact;
use crate::{Error, Gateway};

/// What became of a message.
#[derive(Debug, Clone)]
pub struct Accepted {
    /// The records that were written, or the first one where the message was known.
    pub records: Vec<Arc<Record>>,
    /// Whether the message was known already.
    pub duplicate: bool,
    /// What the gate said; `None` where nothing had to be decided.
    pub gate: Option<Gate>,
    /// The ask that was opened, where a person decides.
    pub ask: Option<String>,
}

/// A message on its way into history.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) entry: Entry,
    /// The message as it was parsed.
    pub(crate) message: Option<Message>,
    /// The protocol of its record: another message under its id may speak another.
    pub(crate) protocol: String,
    /// The verdict; `None` where nothing has to be decided.
    pub(crate) gate: Option<Gate>,
    pub(crate) ask: Option<AskDraft>,
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Admitted {
    /// It is history, now or since it first came.
    Accepted(Accepted),
    /// Its id stands for another message.
    Reused,
}

impl Gateway {
    /// The ask that a verdict wants; `None` where the verdict is no ask.
    pub(crate) fn ask_for(
        &self,
        gate: Option<&Gate>,
        asker: &Asker<'_>,
        session: &str,
        (action, context): (Option<Action>, Context),
        now: Timestamp,
    ) -> Result<Option<AskDraft>, Error> {
        let Some(gate) = gate.filter(|gate| gate.decision == Decision::Ask) else {
            return Ok(None);
        };
        let draft = AskDraft::new(asker, session, (action, gate.clone()), context, now)?;
        Ok(Some(draft.within(self.settings.ask_time)))
    }

    /// Makes a message part of history, together with the ask that it opens.
    pub(crate) async fn admit(&self, judged: Judged) -> Result<Admitted, Error> {
        let Judged { entry, message, protocol, gate, ask } = judged;
        let quick = gate.as_ref().is_none_or(|gate| gate.decision == Decision::Allow);
        let durability = if quick && !self.settings.sync_allow {
            Durability::Written
        } else {
            Durability::Synced
        };
        let opened = ask.as_ref().map(|ask| ask.id().to_owned());
        let mut facts = vec![Fact::Note { entry, message }];
        facts.extend(ask.map(Into::into));
        Ok(match self.history.commit(facts, durability).await? {
            Appended::Recorded(records) => {
                Admitted::Accepted(Accepted { records, duplicate: false, gate, ask: opened })
            }
            Appended::Duplicate { first, same_bytes: true }
                if first.source.protocol == protocol =>
            {
                Admitted::Accepted(again(first, gate))
            }
            Appended::Duplicate { .. } => Admitted::Reused,
        })
    }
}

/// A refusal that needs no rule of anybody's.
pub(crate) fn denied(rule: &str, reason: &str, opaque: Option<String>) -> Gate {
    Gate {
        decision: Decision::Deny,
        rule: rule.to_owned(),
        reason: reason.to_owned(),
        risk: Risk::High,
        irreversible: None,
        opaque,
        safer: None,
    }
}

/// The same message again: the first verdict stands unless today's is stricter, and the ask that it opened is waited on
/// again.
fn again(first: Arc<Record>, today: Option<Gate>) -> Accepted {
    // A verdict that cannot be read back is not an allow.
    let unread = || denied("journal", "The recorded verdict cannot be read.", None);
    let then = match &first.gate {
        // The verdict was not kept: there is no other than today's.
        None if first.captured.level == Level::None => today.clone(),
        recorded => {
            recorded.as_ref().map(|gate| Gate::deserialize(gate).unwrap_or_else(|_| unread()))
        }
    };
    let lax = |gate: &Option<Gate>| gate.as_ref().is_none_or(|g| g.decision == Decision::Allow);
    let gate = if lax(&then) && !lax(&today) { today } else { then };
    let asked = gate.as_ref().is_some_and(|gate| gate.decision == Decision::Ask);
    let ask = first
        .event_id
        .as_ref()
        .filter(|_| asked)
        .map(|event_id| AskDraft::id_for(&first.source.key, event_id));
    Accepted { records: vec![first], duplicate: true, gate, ask }
}
