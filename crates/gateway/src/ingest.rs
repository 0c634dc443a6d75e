//! Pushed events become history: read, check, journal, publish.
//!
//! A batch is one commit: all of it is on disk before any of it is acknowledged or seen. Every event has a receipt of its
//! own, so that a broken one in the middle costs nobody else. The bytes are kept as they came; what is wrong with them
//! stands beside them. The order within a session is the order of arrival.
//!
//! The same event again, by (key, event id), gets the first receipt. Other bytes under the same id are kept as evidence
//! and not told to anybody. Streams are not repaired on the way in: what would have to be held back until the stream ends
//! could not be acknowledged. They are on the way out, where every writer writes what its protocol allows. Whether that
//! mends an event is known when it comes: it does, where anything can be told of it. [`PushPolicy::Repair`] takes those only.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use banister_events::event::Protocol;
use banister_events::finding::{Binds, Finding, Rule, Severity};
use banister_events::{Message, frame, id};
use banister_journal::{Appended, Draft, Durability, Entry, Kind, Level, Record, Source};
use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::OwnedMutexGuard;

use crate::asks::{Asks, Opened};
use crate::deliver::blocking;
use crate::history::Fact;
use crate::keep::Keeper;
use crate::project::Pushed;
use crate::{Error, Gateway};

mod asks;
mod decide;
mod pieces;
pub(crate) mod push_session;
pub mod pushing;
mod read;

use asks::{AskContext, AskListener, DeskEffects, origin};
pub use decide::{Refusal, Waiting};
use push_session::{Memory, PushSession};
pub use pushing::{PushPolicy, Pushing, Status};
use read::{EventFacts, Item, SessionRef};

/// The version of the reading that is recorded with each event.
const READER: u32 = 1;
/// How often a batch is planned anew because somebody else recorded one of its ids meanwhile.
const TRIES: usize = 8;
/// How many findings are kept of one event.
const FINDINGS: usize = 32;
/// How much of a refused event is kept.
const EVIDENCE: usize = banister_events::limits::EVIDENCE_BYTES;

/// Events of one protocol, as they came in.
#[derive(Debug, Clone)]
pub struct Push {
    /// Who pushes them, and how.
    pub source: Pusher,
    /// The events, or why one could not be cut out of the body.
    pub messages: Vec<Result<Bytes, frame::Error>>,
}

/// Where pushed events come from.
#[derive(Debug, Clone)]
pub struct Pusher {
    /// The protocol they speak.
    pub protocol: Protocol,
    /// The thread they were pushed to; AG-UI's events do not name theirs.
    pub thread: Option<String>,
    /// The door they came through.
    pub door: &'static str,
    /// The id of the key they came with.
    pub key: String,
    /// The sender's name for the whole push: with it, events that have no id of their own are known again.
    pub idempotency: Option<String>,
}

/// What became of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// In a word.
    pub status: Status,
    /// The session it belongs to.
    pub session: String,
    /// Where it stands in the journal; a duplicate stands where the first one does.
    pub position: Option<u64>,
    /// What is wrong with it.
    pub findings: Vec<Finding>,
    /// Whether what breaks a MUST in it is mended for those who watch.
    pub repaired: bool,
}

impl Receipt {
    /// What is wrong with it, and what of that is mended.
    pub fn found(&self) -> Value {
        found(&self.findings, self.repaired)
    }
}

/// Findings as they are kept and told.
fn found(findings: &[Finding], repaired: bool) -> Value {
    let row = |finding: &Finding| {
        let mut row = json!(finding);
        let mended = repaired && finding.rule.severity == Severity::Error;
        if let Some(row) = row.as_object_mut().filter(|_| mended) {
            row.insert("repaired".to_owned(), json!(true));
        }
        row
    };
    findings.iter().map(row).collect()
}

/// Other bytes under a known id.
pub static ID_REUSED: Rule = Rule {
    code: "PUSH-01",
    severity: Severity::Error,
    opt_in: false,
    binds: Binds::Producer,
    text: "An event's id stands for one event",
    remedy: "Draw a new id for each event, and send the same bytes when sending one again",
};
/// An event of another thread.
pub static OTHER_THREAD: Rule = Rule {
    code: "PUSH-02",
    severity: Severity::Error,
    opt_in: false,
    binds: Binds::Producer,
    text: "An event that is pushed to a thread names no other",
    remedy: "Push it to the thread that it names",
};
/// No event.
pub static NOT_AN_EVENT: Rule = Rule {
    code: "PUSH-03",
    severity: Severity::Error,
    opt_in: false,
    binds: Binds::Producer,
    text: "What is pushed are events; subscriptions and answers have doors of their own",
    remedy: "Push events only; an agent's key cannot answer",
};
/// A response to nothing.
pub static NO_REQUEST: Rule = Rule {
    code: "PUSH-04",
    severity: Severity::Error,
    opt_in: false,
    binds: Binds::Producer,
    text: "A hook response that is pushed is to an event that was pushed with the same key",
    remedy: "Push the event before the response to it",
};
/// Somebody waits for an answer that could not be joined to anything.
pub static NOTHING_TO_DECIDE: Rule = Rule {
    code: "PUSH-05",
    severity: Severity::Error,
    opt_in: false,
    binds: Binds::Producer,
    text: "Whoever waits for a decision sends one event with an id, of a type that is known",
    remedy: "Send one AEP event, such as action.requested, with an id of its own",
};

/// The rules of the push doors.
pub static RULES: [&Rule; 5] =
    [&ID_REUSED, &OTHER_THREAD, &NOT_AN_EVENT, &NO_REQUEST, &NOTHING_TO_DECIDE];

/// The sessions of a batch, each locked until the batch is history.
type LockedSessions = BTreeMap<String, OwnedMutexGuard<PushSession>>;
/// The records that bear ids of a batch.
type Known = HashMap<String, Arc<Record>>;

impl Gateway {
    /// Makes a batch part of history: a receipt for every message, in their order. On an error nothing was recorded.
    pub async fn push(self: &Arc<Self>, push: Push) -> Result<Vec<Receipt>, Error> {
        let protocol = push.source.protocol;
        let gateway = Arc::clone(self);
        // To its end, also when the sender has gone meanwhile.
        let taken = self.tasks.spawn(async move { gateway.take(push).await });
        let receipts = taken.await.unwrap_or_else(|error| Err(Error::Task(error.to_string())))?;
        for receipt in &receipts {
            self.metrics.pushed(protocol, receipt.status);
        }
        Ok(receipts)
    }

    async fn take(&self, push: Push) -> Result<Vec<Receipt>, Error> {
        let Push { source, messages } = push;
        let mut items = source.read(messages);
        self.place_responses(&source, &mut items).await?;
        let mut locked = LockedSessions::new();
        // In the order of their names: two batches never wait for each other.
        let sessions: BTreeSet<&str> = items.iter().filter_map(Item::session).collect();
        for session in sessions {
            locked.insert(session.to_owned(), self.push_sessions.enter(session).await);
        }
        let remembered = items.iter().filter(|item| item.is_remembered(&locked));
        let mut known = self.known(&source, remembered).await?;
        for _ in 0..TRIES {
            for (session, push_session) in &mut locked {
                self.recall(push_session, session, &source).await?;
                self.listen(push_session, session, (source.protocol, &items)).await?;
            }
            let policy = self.policy(&source.key);
            let now = self.clock.now();
            let (keeper, asks) = (&self.keeper, &self.asks);
            let batch = Batch { keeper, asks, source: &source, items: &items, now };
            let mut plan = Plan::new(&batch, (&mut locked, &known), policy);
            if plan.facts.is_empty() {
                return Ok(plan.receipts(&[], &mut locked));
            }
            let facts = std::mem::take(&mut plan.facts);
            match self.history.commit(facts, Durability::Synced).await {
                Ok(Appended::Recorded(records)) => return Ok(plan.receipts(&records, &mut locked)),
                // An id is taken after all: look at all of them, and read anew what the checkers had seen.
                Ok(Appended::Duplicate { .. })
                | Err(Error::Journal(banister_journal::Error::EventIdTaken { .. })) => {
                    known = self.known(&source, items.iter()).await?;
                }
                Err(error) => return Err(error),
            }
        }
        Err(Error::Task("others keep recording the ids of this batch".to_owned()))
    }

    fn policy(&self, key: &str) -> PushPolicy {
        let pushing = &self.settings.push;
        pushing.keys.get(key).copied().unwrap_or(pushing.policy)
    }

    /// A hook response names no session: it belongs where its request is.
    async fn place_responses(&self, source: &Pusher, items: &mut [Item]) -> Result<(), Error> {
        let mut requests: HashMap<String, Option<String>> = HashMap::new();
        for item in items.iter() {
            if let Ok(EventFacts { place: SessionRef::Of(request), .. }) = &item.read {
                requests.insert(request.clone(), None);
            }
        }
        if requests.is_empty() {
            return Ok(());
        }
        let ids: Vec<String> = requests.keys().cloned().collect();
        for (id, record) in ids.iter().zip(self.of_events(&source.key, ids.clone()).await?) {
            requests.insert(id.clone(), record.map(|record| record.session.clone()));
        }
        for item in items {
            let Ok(facts) = &mut item.read else { continue };
            match &facts.place {
                SessionRef::Session(session) => {
                    let asked = facts.id.as_ref().and_then(|id| requests.get_mut(id));
                    if let Some(place @ None) = asked {
                        *place = Some(session.clone());
                    }
                }
                SessionRef::Of(request) => {
                    let session = requests.get(request).cloned().flatten();
                    let place = session.map(SessionRef::Session).ok_or_else(|| {
                        let message = format!("no event {request:?} is known of this key");
                        vec![NO_REQUEST.at("/request_event_id", message)]
                    });
                    match place {
                        Ok(place) => facts.place = place,
                        Err(findings) => item.read = Err(findings),
                    }
                }
            }
        }
        Ok(())
    }

    async fn known(
        &self,
        source: &Pusher,
        items: impl Iterator<Item = &Item>,
    ) -> Result<Known, Error> {
        let ids: Vec<String> = items.filter_map(Item::id).map(str::to_owned).collect();
        if ids.is_empty() {
            return Ok(Known::new());
        }
        let found = self.of_events(&source.key, ids.clone()).await?;
        Ok(ids.into_iter().zip(found).filter_map(|(id, record)| Some((id, record?))).collect())
    }

    async fn of_events(
        &self,
        key: &str,
        ids: Vec<String>,
    ) -> Result<Vec<Option<Arc<Record>>>, Error> {
        let (journal, key) = (self.journal.clone(), key.to_owned());
        blocking(move || journal.of_events(&key, &ids)).await
    }
}

impl Gateway {
    /// Shows a session without a memory what its session has in the journal.
    async fn recall(
        &self,
        push_session: &mut PushSession,
        session: &str,
        source: &Pusher,
    ) -> Result<(), Error> {
        if push_session.memory.is_some() {
            return Ok(());
        }
        let mut memory = Memory::new(source.protocol, self.policy(&source.key));
        let mut seq = 0;
        loop {
            let records = self.session_after(session, seq).await?;
            let Some(newest) = records.last() else { break };
            seq = newest.seq;
            for record in records.iter().filter(|record| record.kind == Kind::Event) {
                memory.recall(record);
                if let Some(id) = &record.event_id {
                    push_session.remember(id);
                }
            }
        }
        push_session.memory = Some(memory);
        Ok(())
    }

    /// Reads a session for what it asks, where it asks something or may do so now.
    async fn listen(
        &self,
        push_session: &mut PushSession,
        session: &str,
        (protocol, items): (Protocol, &[Item]),
    ) -> Result<(), Error> {
        let asks = |item: &Item| item.session() == Some(session) && item.asks();
        let wanted = items.iter().any(asks) || self.asks.has_pushed(session);
        if push_session.listener.is_some() || !wanted {
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
        let waiting = self.asks.inbox().into_iter().filter(|it| it.session == session);
        let (handoffs, open): (Vec<Opened>, Vec<Opened>) =
            waiting.partition(|it| it.handoff.is_some());
        let ids = |asks: Vec<Opened>| asks.into_iter().map(|it| it.ask.id).collect();
        push_session.listener =
            Some(AskListener { pushed, open: ids(open), handoffs: ids(handoffs) });
        Ok(())
    }
}

/// A batch that is about to be history.
#[derive(Clone, Copy)]
struct Batch<'a> {
    keeper: &'a Keeper,
    asks: &'a Asks,
    source: &'a Pusher,
    items: &'a [Item],
    now: Timestamp,
}

/// What is to be recorded of a batch, and what its sender is told.
struct Plan {
    facts: Vec<Fact>,
    /// The receipt of each fact; what is asked has none.
    slots: Vec<Option<usize>>,
    receipts: Vec<Receipt>,
    /// Receipts that stand where another of the batch does.
    same: Vec<(usize, usize)>,
    /// The asks that the batch itself opens.
    effects: DeskEffects,
    listeners: HashMap<String, AskListener>,
}

impl Plan {
    fn new(
        batch: &Batch<'_>,
        (locked, known): (&mut LockedSessions, &Known),
        policy: PushPolicy,
    ) -> Self {
        let room = batch.items.len();
        let (facts, slots) = (Vec::with_capacity(room), Vec::with_capacity(room));
        let mut plan = Self {
            facts,
            slots,
            receipts: Vec::with_capacity(room),
            same: Vec::new(),
            effects: DeskEffects::default(),
            listeners: HashMap::new(),
        };
        let mut first: HashMap<&str, usize> = HashMap::new();
        let mut memories: HashMap<String, Memory> = HashMap::new();
        for (session, push_session) in locked.iter_mut() {
            // Until the batch is history the session has none: whatever goes wrong, it is made anew.
            memories.extend(push_session.take().map(|memory| (session.clone(), memory)));
            plan.listeners.extend(push_session.listener.take().map(|it| (session.clone(), it)));
        }
        for (index, item) in batch.items.iter().enumerate() {
            let (facts, message) = match (&item.read, &item.message) {
                (Ok(facts), Some(message)) => (facts, message),
                (Err(findings), _) => {
                    plan.refuse(batch, item, findings.clone());
                    continue;
                }
                // What was read was a message.
                (Ok(_), None) => continue,
            };
            if let Some(before) = item.id().and_then(|id| known.get(id)) {
                let same = batch.keeper.is_again(&item.bytes, before);
                plan.repeat(batch, (item, facts), same, Some(before.position));
                continue;
            }
            if let Some(earlier) = item.id().and_then(|id| first.get(id)) {
                let bytes = batch.items.get(*earlier).map(|item| &item.bytes);
                let same = bytes == Some(&item.bytes);
                plan.same.extend(same.then_some((index, *earlier)));
                plan.repeat(batch, (item, facts), same, None);
                continue;
            }
            let mut findings = facts.findings.clone();
            let mut memory = item.session().and_then(|session| memories.get_mut(session));
            if let Some(memory) = &mut memory {
                let saved = (policy != PushPolicy::Report).then(|| memory.checker.clone());
                findings.extend(memory.checker.parsed(message));
                let refused = breaks(&findings)
                    && match policy {
                        PushPolicy::Report => false,
                        PushPolicy::Repair => !memory.can_tell(message, batch.now),
                        PushPolicy::Strict => true,
                    };
                if let Some(saved) = saved.filter(|_| refused) {
                    // What is refused has not happened.
                    memory.checker = saved;
                    plan.refuse(batch, item, kept(findings));
                    continue;
                }
            }
            let repaired = policy == PushPolicy::Repair && breaks(&findings);
            let findings = kept(findings);
            plan.hear(batch, facts, message);
            plan.slots.push(Some(index));
            let found = found(&findings, repaired);
            let entry = batch.entry((item, message), facts, &found, memory);
            plan.facts.push(Fact::parsed(entry, message.clone()));
            plan.tell(Status::Recorded, facts, None, findings);
            if let Some(receipt) = plan.receipts.last_mut() {
                receipt.repaired = repaired;
            }
            first.extend(item.id().map(|id| (id, index)));
        }
        for (session, memory) in memories {
            if let Some(push_session) = locked.get_mut(&session) {
                push_session.next = Some(memory);
            }
        }
        plan
    }

    /// What an event asks is recorded before it.
    fn hear(&mut self, batch: &Batch<'_>, facts: &EventFacts, message: &Message) {
        let Some(session) = facts.session() else { return };
        let Some(listener) = self.listeners.get_mut(session) else { return };
        let Batch { asks, source, now, .. } = *batch;
        let record = source.source(&facts.agent);
        let protocol = source.protocol;
        let context = AskContext { asks, session, protocol, source: &record, now };
        let asked = self.effects.hear(&context, listener, message);
        self.slots.extend(asked.iter().map(|_| None));
        self.facts.extend(asked);
    }

    /// An id that is known: the same event again, or another one.
    fn repeat(
        &mut self,
        batch: &Batch<'_>,
        (item, facts): (&Item, &EventFacts),
        same: bool,
        position: Option<u64>,
    ) {
        if same {
            self.tell(Status::Duplicate, facts, position, Vec::new());
        } else {
            let finding = ID_REUSED.at("", "this id stands for another event already");
            self.refuse(batch, item, vec![finding]);
        }
    }

    fn tell(
        &mut self,
        status: Status,
        facts: &EventFacts,
        position: Option<u64>,
        findings: Vec<Finding>,
    ) {
        let session = facts.session().unwrap_or_default().to_owned();
        self.receipts.push(Receipt { status, session, position, findings, repaired: false });
    }

    fn refuse(&mut self, batch: &Batch<'_>, item: &Item, findings: Vec<Finding>) {
        let draft = batch.source.evidence(item, &findings, batch.now);
        let session = draft.session.clone();
        self.slots.push(Some(self.receipts.len()));
        let (status, position) = (Status::Refused, None);
        self.receipts.push(Receipt { status, session, position, findings, repaired: false });
        self.facts.push(batch.keeper.message(draft).into());
    }

    /// The batch is history: the receipts are true, and the sessions have seen it.
    fn receipts(mut self, records: &[Arc<Record>], locked: &mut LockedSessions) -> Vec<Receipt> {
        for (slot, record) in self.slots.iter().zip(records) {
            if let Some(receipt) = slot.and_then(|slot| self.receipts.get_mut(slot)) {
                receipt.position = Some(record.position);
            }
            if let (Some(id), Some(push_session)) =
                (&record.event_id, locked.get_mut(&record.session))
            {
                push_session.remember(id);
            }
        }
        for (index, earlier) in self.same {
            let position = self.receipts.get(earlier).and_then(|receipt| receipt.position);
            if let Some(receipt) = self.receipts.get_mut(index) {
                receipt.position = position;
            }
        }
        for (session, push_session) in locked.iter_mut() {
            push_session.go_on();
            push_session.listener = self.listeners.remove(session);
        }
        self.receipts
    }
}

impl Batch<'_> {
    fn entry(
        &self,
        (item, message): (&Item, &Message),
        facts: &EventFacts,
        findings: &Value,
        memory: Option<&mut Memory>,
    ) -> Entry {
        let draft = self.source.draft(item, facts, findings, self.now);
        let Some(memory) = memory else { return self.keeper.message(draft) };
        let redacted = self.keeper.level(&draft.source.agent) == Level::Redacted;
        let part = redacted.then(|| memory.pieces.keep(self.source.protocol, message));
        if let Some(part) = part.flatten() {
            memory.hear(&part, None, &draft);
            self.keeper.part(draft, part.bytes().clone())
        } else {
            memory.hear(message, None, &draft);
            self.keeper.part(draft, item.bytes.clone())
        }
    }
}

impl Pusher {
    fn draft(&self, item: &Item, facts: &EventFacts, findings: &Value, now: Timestamp) -> Draft {
        let wrong = findings.as_array().is_some_and(|findings| !findings.is_empty());
        Draft {
            session: facts.session().unwrap_or_default().to_owned(),
            time: now,
            kind: Kind::Event,
            source: self.source(&facts.agent),
            turn: facts.turn.clone(),
            action: facts.action.clone(),
            event_id: facts.id.clone(),
            reader: READER,
            body: item.bytes.clone(),
            findings: if wrong { findings.clone() } else { Value::Null },
            gate: None,
        }
    }

    /// What is kept of an event that is not taken. It has no id: a corrected one may come under the same.
    fn evidence(&self, item: &Item, findings: &[Finding], now: Timestamp) -> Draft {
        let protocol = self.protocol.name();
        let facts = item.read.as_ref().ok();
        let session = facts
            .and_then(EventFacts::session)
            .map_or_else(|| id::derive("s_", &[&self.key, protocol, "unreadable"]), str::to_owned);
        Draft {
            session,
            time: now,
            kind: Kind::Unreadable,
            source: self.source(facts.map_or(protocol, |facts| &facts.agent)),
            turn: None,
            action: None,
            event_id: None,
            reader: READER,
            body: item.bytes.slice(..item.bytes.len().min(EVIDENCE)),
            findings: json!(findings),
            gate: None,
        }
    }

    fn source(&self, agent: &str) -> Source {
        Source {
            protocol: self.protocol.name().to_owned(),
            agent: agent.to_owned(),
            door: self.door.to_owned(),
            key: self.key.clone(),
        }
    }
}

/// Whether a MUST is broken.
fn breaks(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.rule.severity == Severity::Error)
}

/// What is kept of what was found.
fn kept(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.retain(|finding| finding.rule.severity > Severity::Note);
    findings.truncate(FINDINGS);
    findings
}
