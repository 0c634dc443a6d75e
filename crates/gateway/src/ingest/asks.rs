//! What is asked in events that are pushed comes to the desk, in the same commit as the event that asks.
//!
//! Its record stands before that event, and so does that of its end. What the agent says about the end is not believed:
//! that somebody accepted it elsewhere withdraws it here.
//!
//! Only sessions that ask are read: a session costs nothing here until the first event that may.

use std::collections::HashMap;
use std::sync::Arc;

use banister_events::activity::{Activity, Ask, AskKind, Origin, What};
use banister_events::event::Protocol;
use banister_events::{Message, id};
use banister_journal::{Entry, Kind, Record, Source};
use jiff::Timestamp;

use super::lane::Lane;
use super::{Item, Pusher};
use crate::desk::{AskDraft, Claim, Desk, Expected, Opened};
use crate::keep::Keeper;
use crate::project::{Handoff, Pushed, Sender};
use crate::{Error, Gateway};

/// How many asks of one session may be open at once.
const OPEN: usize = 64;

/// One session's events, read for what they ask.
#[derive(Debug)]
pub(super) struct Listener {
    pushed: Pushed,
    /// Asks of this session that were on the desk when they were last looked at.
    open: Vec<String>,
    handoffs: Vec<String>,
}

impl Gateway {
    /// Lets a lane listen, where its session asks something or may do so now.
    pub(super) async fn listen(
        &self,
        lane: &mut Lane,
        session: &str,
        (protocol, items): (Protocol, &[Item]),
    ) -> Result<(), Error> {
        let asks = |item: &Item| item.session() == Some(session) && item.asks();
        let wanted = items.iter().any(asks) || self.desk.has_pushed(session);
        if lane.listener.is_some() || !wanted {
            return Ok(());
        }
        let mut pushed = Pushed::new(protocol);
        let mut seq = 0;
        loop {
            let records = self.session_after(session, seq).await?;
            let Some(newest) = records.last() else { break };
            seq = newest.seq;
            for record in records.iter().filter(|record| record.kind == Kind::Event) {
                if let Ok(message) = Message::recorded(protocol, record.body.clone()) {
                    pushed.read(&message, None, &origin(session, record.time));
                }
            }
        }
        let waiting = self.desk.inbox().into_iter().filter(|it| it.session == session);
        let (handoffs, open): (Vec<Opened>, Vec<Opened>) =
            waiting.partition(|it| it.handoff.is_some());
        let ids = |asks: Vec<Opened>| asks.into_iter().map(|it| it.ask.id).collect();
        lane.listener = Some(Listener { pushed, open: ids(open), handoffs: ids(handoffs) });
        Ok(())
    }
}

/// What a batch does to the desk, until it is history.
#[derive(Debug, Default)]
pub(super) struct Sides {
    /// With the number of the entry that each has.
    all: Vec<(usize, Side)>,
    /// What the batch itself opens.
    fresh: HashMap<String, Opened>,
}

#[derive(Debug)]
enum Side {
    Open(Box<Expected>),
    Close(Box<Claim>),
}

/// Who listens for whom.
#[derive(Clone, Copy)]
pub(super) struct Ears<'a> {
    pub(super) desk: &'a Desk,
    pub(super) keeper: &'a Keeper,
    pub(super) source: &'a Pusher,
    pub(super) now: Timestamp,
}

impl Sides {
    /// Reads an event that is about to be recorded; gives the records that stand before it.
    pub(super) fn hear(
        &mut self,
        ears: Ears<'_>,
        listener: &mut Listener,
        (session, source, message): (&str, &Source, &Message),
        at: usize,
    ) -> Vec<Entry> {
        let mut entries = Vec::new();
        for activity in listener.pushed.read(message, None, &origin(session, ears.now)) {
            let Activity { context, what, .. } = activity;
            let goes_on = goes_on(&what);
            let draft = match what {
                What::AskOpened { ask } => {
                    let token = ask.token.clone();
                    Some(((*ask, (*context).clone()), (ears.sender(token), None)))
                }
                What::HandedOff { reason, target, uri } => {
                    let name =
                        id::derive("ask_", &[session, "handoff", &reason, &ears.now.to_string()]);
                    let ask = Ask::new(name, "", AskKind::Confirmation);
                    let handoff = Handoff { reason, target, uri };
                    let sender = ears.sender(String::new());
                    Some(((ask, (*context).clone()), (sender, Some(handoff))))
                }
                What::AskClosed { id, .. } => {
                    entries.extend(self.withdraw(ears, &id, at + entries.len()));
                    listener.open.retain(|open| *open != id);
                    None
                }
                _ => None,
            };
            if goes_on {
                for id in std::mem::take(&mut listener.handoffs) {
                    entries.extend(self.withdraw(ears, &id, at + entries.len()));
                }
            }
            let Some((asked, about)) = draft else { continue };
            let id = asked.0.id.clone();
            let known = self.fresh.contains_key(&id) || ears.desk.knows(&id);
            if known || listener.open.len() >= OPEN {
                continue;
            }
            let is_handoff = about.1.is_some();
            let Ok(draft) = AskDraft::pushed(asked, (session, own(source)), about, ears.now) else {
                continue;
            };
            let list = if is_handoff { &mut listener.handoffs } else { &mut listener.open };
            list.push(id.clone());
            self.fresh.insert(id, draft.opened());
            let entry = draft.entry(ears.keeper);
            self.all.push((at + entries.len(), Side::Open(Box::new(ears.desk.expect(draft)))));
            entries.push(entry);
        }
        entries
    }

    /// The agent goes on without an answer.
    fn withdraw(&mut self, ears: Ears<'_>, id: &str, at: usize) -> Option<Entry> {
        let (claim, entry) = match self.fresh.remove(id) {
            Some(opened) => ears.desk.claim_of(&opened, ears.now),
            None => ears.desk.claim(id, ears.now)?,
        };
        self.all.push((at, Side::Close(Box::new(claim))));
        Some(entry)
    }

    /// The batch is history: what it opened is on the desk, what it closed is not.
    pub(super) async fn settle(self, records: &[Arc<Record>]) {
        for (at, side) in self.all {
            match (side, records.get(at)) {
                (Side::Open(expected), Some(record)) => drop(expected.open(record)),
                (Side::Close(claim), Some(_)) => claim.close().await,
                _ => {}
            }
        }
    }
}

impl Ears<'_> {
    fn sender(&self, token: String) -> Sender {
        Sender { protocol: self.source.protocol, key: self.source.key.clone(), token }
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

fn origin(session: &str, time: Timestamp) -> Origin {
    Origin { session: session.into(), seq: 0, time }
}
