//! What is asked in events that are pushed comes to the desk, in the same commit as the event that asks.
//!
//! Its record stands before that event, and so does that of its end. What the agent says about the end is not believed:
//! that somebody accepted it elsewhere withdraws it here.
//!
//! Only sessions that ask are read: a session costs nothing here until the first event that may.

use std::collections::HashMap;

use banister_events::activity::{Activity, Ask, AskKind, Context, Origin, What};
use banister_events::event::Protocol;
use banister_events::{Message, id};
use banister_journal::Source;
use jiff::Timestamp;

use crate::Error;
use crate::asks::{AskDraft, Asks, Claim, Opened};
use crate::facts::{Handoff, Sender};
use crate::history::Fact;
use crate::project::Pushed;

/// How many asks of one session may be open at once.
const OPEN: usize = 64;

/// One session's events, read for what they ask.
#[derive(Debug)]
pub(crate) struct AskListener {
    pub(super) pushed: Pushed,
    /// Asks of this session that were on the desk when they were last looked at.
    pub(super) open: Vec<String>,
    pub(super) handoffs: Vec<String>,
}

/// The asks that are about to be opened by the same commit.
#[derive(Debug, Default)]
pub(crate) struct DeskEffects {
    fresh: HashMap<String, Opened>,
}

/// Where events are read for what they ask.
#[derive(Clone, Copy)]
pub(crate) struct AskContext<'a> {
    pub(crate) asks: &'a Asks,
    pub(crate) session: &'a str,
    pub(crate) protocol: Protocol,
    /// The source of the events.
    pub(crate) source: &'a Source,
    pub(crate) now: Timestamp,
}

impl DeskEffects {
    /// Reads an event that is about to be recorded; gives the facts that stand before it.
    pub(crate) fn hear(
        &mut self,
        context: &AskContext<'_>,
        listener: &mut AskListener,
        message: &Message,
    ) -> Vec<Fact> {
        let (session, now) = (context.session, context.now);
        let mut facts = Vec::new();
        for activity in listener.pushed.read(message, None, &origin(session, now)) {
            let Activity { context: about, what, .. } = activity;
            if goes_on(&what) {
                for id in std::mem::take(&mut listener.handoffs) {
                    facts.extend(self.withdraw(context, &id));
                }
            }
            let (ask, token, handoff) = match what {
                What::AskOpened { ask } => {
                    let token = ask.token.clone();
                    (*ask, token, None)
                }
                What::HandedOff { reason, target, uri } => {
                    let name = id::derive("ask_", &[session, "handoff", &reason, &now.to_string()]);
                    let ask = Ask::new(name, "", AskKind::Confirmation);
                    (ask, String::new(), Some(Handoff { reason, target, uri }))
                }
                What::AskClosed { id, .. } => {
                    facts.extend(self.withdraw(context, &id));
                    listener.open.retain(|open| *open != id);
                    continue;
                }
                _ => continue,
            };
            let id = ask.id.clone();
            let known = self.fresh.contains_key(&id) || context.asks.knows(&id);
            if known || listener.open.len() >= OPEN {
                continue;
            }
            let list = if handoff.is_some() { &mut listener.handoffs } else { &mut listener.open };
            let about = (ask, (*about).clone());
            let Ok(draft) = context.draft(about, token, handoff) else { continue };
            list.push(id.clone());
            self.fresh.insert(id, draft.opened());
            facts.push(draft.into());
        }
        facts
    }

    /// The agent goes on without an answer.
    fn withdraw(&mut self, context: &AskContext<'_>, id: &str) -> Option<Fact> {
        let claim = match self.fresh.remove(id) {
            Some(opened) => Claim::fresh(context.asks, opened),
            None => context.asks.take_now(id)?,
        };
        Some(claim.withdrawn(context.now).into())
    }
}

impl AskContext<'_> {
    fn draft(
        &self,
        about: (Ask, Context),
        token: String,
        handoff: Option<Handoff>,
    ) -> Result<AskDraft, Error> {
        let (protocol, key) = (self.protocol, self.source.key.clone());
        let sender = Sender { protocol, key, token };
        AskDraft::pushed(about, (self.session, own(self.source)), (sender, handoff), self.now)
    }
}

/// The source of the gateway's own record about an agent.
fn own(source: &Source) -> Source {
    Source { protocol: "banister".to_owned(), ..source.clone() }
}

/// Whether an agent that has handed over works again.
fn goes_on(what: &What) -> bool {
    matches!(
        what,
        What::TurnStarted { .. }
            | What::Said { .. }
            | What::ActionRequested { .. }
            | What::SessionEnded { .. }
    )
}

pub(super) fn origin(session: &str, time: Timestamp) -> Origin {
    Origin { session: session.into(), seq: 0, time }
}
