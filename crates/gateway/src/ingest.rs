//! Pushed events become history: read, check, journal, publish.
//!
//! A batch is one commit: all of it is on disk before any of it is acknowledged or seen. Every event has a receipt of its
//! own, so that a broken one in the middle costs nobody else. The bytes are kept as they came; what is wrong with them
//! stands beside them. The order within a session is the order of arrival.
//!
//! The same event again, by (key, event id), gets the first receipt. Other bytes under the same id are kept as evidence
//! and not told to anybody. Streams are not repaired on the way in: what would have to be held back until the stream ends
//! could not be acknowledged. They are on the way out, where every writer writes what its protocol allows. Whether that
//! mends an event is known when it comes: it does, where anything can be told of it. [`Policy::Repair`] takes those only.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use banister_events::event::Protocol;
use banister_events::finding::{Binds, Finding, Rule, Severity};
use banister_events::{frame, id};
use banister_journal::{Appended, Draft, Durability, Entry, Kind, Level, Record, Source};
use bytes::Bytes;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OwnedMutexGuard;

use crate::deliver::blocking;
use crate::desk::Desk;
use crate::keep::Keeper;
use crate::project::Body;
use crate::{Error, Gateway};

mod asks;
mod decide;
mod lane;
mod pieces;
mod read;

use asks::{Ears, Listener, Sides};
pub use decide::{Refusal, Waiting};
pub use lane::Lanes;
use lane::{Lane, Memory};
use read::{Facts, Item, Place};

/// The version of the reading that is recorded with each event.
const READER: u32 = 1;
/// How often a batch is planned anew because somebody else recorded one of its ids meanwhile.
const TRIES: usize = 8;
/// How many findings are kept of one event.
const FINDINGS: usize = 32;
/// How much of a refused event is kept.
const EVIDENCE: usize = banister_events::limits::EVIDENCE_BYTES;

/// How pushed events are taken.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pushing {
    /// What is done about events that break their protocol.
    pub policy: Policy,
    /// The same, for single keys.
    pub keys: BTreeMap<String, Policy>,
    /// How many requests a key may make in a second; 0 for no limit.
    pub rate: u32,
}

impl Default for Pushing {
    fn default() -> Self {
        Self { policy: Policy::Report, keys: BTreeMap::new(), rate: 5_000 }
    }
}

/// What is done about an event that breaks its protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// It is recorded with what is wrong with it.
    #[default]
    Report,
    /// The same, and it is told in a way that its protocol allows. Where nothing can be told of it, it is refused.
    Repair,
    /// Where it breaks a MUST it is refused.
    Strict,
}

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

/// What became of an event, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It is part of its session.
    Recorded,
    /// It was before.
    Duplicate,
    /// It is not; what came is kept as evidence.
    Refused,
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 3] = [Self::Recorded, Self::Duplicate, Self::Refused];

    /// The word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Duplicate => "duplicate",
            Self::Refused => "refused",
        }
    }
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

/// The sessions of a batch, each held until the batch is history.
type Held = BTreeMap<String, OwnedMutexGuard<Lane>>;
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
        let mut held = Held::new();
        // In the order of their names: two batches never wait for each other.
        let sessions: BTreeSet<&str> = items.iter().filter_map(Item::session).collect();
        for session in sessions {
            held.insert(session.to_owned(), self.lanes.enter(session).await);
        }
        let remembered = items.iter().filter(|item| item.is_remembered(&held));
        let mut known = self.known(&source, remembered).await?;
        for _ in 0..TRIES {
            for (session, lane) in &mut held {
                self.recall(lane, session, &source).await?;
                self.listen(lane, session, (source.protocol, &items)).await?;
            }
            let policy = self.policy(&source.key);
            let now = self.clock.now();
            let (keeper, desk) = (&self.keeper, &self.desk);
            let batch = Batch { keeper, desk, source: &source, items: &items, now };
            let mut plan = Plan::new(&batch, (&mut held, &known), policy);
            if plan.entries.is_empty() {
                return Ok(plan.told(&[], &mut held));
            }
            let entries = std::mem::take(&mut plan.entries);
            match self.journal.append(entries, Durability::Synced).await {
                Ok(Appended::Recorded(records)) => {
                    std::mem::take(&mut plan.sides).settle(&records).await;
                    self.hub.publish(&records);
                    return Ok(plan.told(&records, &mut held));
                }
                // An id is taken after all: look at all of them, and read anew what the checkers had seen.
                Ok(Appended::Duplicate { .. })
                | Err(banister_journal::Error::EventIdTaken { .. }) => {
                    known = self.known(&source, items.iter()).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::Task("others keep recording the ids of this batch".to_owned()))
    }

    fn policy(&self, key: &str) -> Policy {
        let pushing = &self.settings.push;
        pushing.keys.get(key).copied().unwrap_or(pushing.policy)
    }

    /// A hook response names no session: it belongs where its request is.
    async fn place_responses(&self, source: &Pusher, items: &mut [Item]) -> Result<(), Error> {
        let mut requests: HashMap<String, Option<String>> = HashMap::new();
        for item in items.iter() {
            if let Ok(Facts { place: Place::Of(request), .. }) = &item.read {
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
                Place::Session(session) => {
                    let asked = facts.id.as_ref().and_then(|id| requests.get_mut(id));
                    if let Some(place @ None) = asked {
                        *place = Some(session.clone());
                    }
                }
                Place::Of(request) => {
                    let session = requests.get(request).cloned().flatten();
                    let place = session.map(Place::Session).ok_or_else(|| {
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

/// A batch that is about to be history.
#[derive(Clone, Copy)]
struct Batch<'a> {
    keeper: &'a Keeper,
    desk: &'a Desk,
    source: &'a Pusher,
    items: &'a [Item],
    now: Timestamp,
}

/// What is to be recorded of a batch, and what its sender is told.
struct Plan {
    entries: Vec<Entry>,
    /// The receipt of each entry; what the desk records besides has none.
    slots: Vec<Option<usize>>,
    receipts: Vec<Receipt>,
    /// Receipts that stand where another of the batch does.
    same: Vec<(usize, usize)>,
    /// What it does to the desk.
    sides: Sides,
    listeners: HashMap<String, Listener>,
}

impl Plan {
    fn new(batch: &Batch<'_>, (held, known): (&mut Held, &Known), policy: Policy) -> Self {
        let room = batch.items.len();
        let (entries, slots) = (Vec::with_capacity(room), Vec::with_capacity(room));
        let mut plan = Self {
            entries,
            slots,
            receipts: Vec::with_capacity(room),
            same: Vec::new(),
            sides: Sides::default(),
            listeners: HashMap::new(),
        };
        let mut first: HashMap<&str, usize> = HashMap::new();
        let mut memories: HashMap<String, Memory> = HashMap::new();
        for (session, lane) in held.iter_mut() {
            // Until the batch is history the lane has none: whatever goes wrong, it is made anew.
            memories.extend(lane.take().map(|memory| (session.clone(), memory)));
            plan.listeners.extend(lane.listener.take().map(|it| (session.clone(), it)));
        }
        for (index, item) in batch.items.iter().enumerate() {
            let facts = match &item.read {
                Ok(facts) => facts,
                Err(findings) => {
                    plan.refuse(batch, item, findings.clone());
                    continue;
                }
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
                let saved = (policy != Policy::Report).then(|| memory.checker.clone());
                findings.extend(memory.checker.message(&item.bytes));
                let refused = breaks(&findings)
                    && match policy {
                        Policy::Report => false,
                        Policy::Repair => !memory.can_tell(&item.bytes, batch.now),
                        Policy::Strict => true,
                    };
                if let Some(saved) = saved.filter(|_| refused) {
                    // What is refused has not happened.
                    memory.checker = saved;
                    plan.refuse(batch, item, kept(findings));
                    continue;
                }
            }
            let repaired = policy == Policy::Repair && breaks(&findings);
            let findings = kept(findings);
            let body = Body::from(item.bytes.as_ref());
            plan.hear(batch, facts, &body);
            plan.slots.push(Some(index));
            let found = found(&findings, repaired);
            plan.entries.push(batch.entry((item, &body), facts, &found, memory));
            plan.tell(Status::Recorded, facts, None, findings);
            if let Some(receipt) = plan.receipts.last_mut() {
                receipt.repaired = repaired;
            }
            first.extend(item.id().map(|id| (id, index)));
        }
        for (session, memory) in memories {
            if let Some(lane) = held.get_mut(&session) {
                lane.next = Some(memory);
            }
        }
        plan
    }

    /// What an event asks is recorded before it.
    fn hear(&mut self, batch: &Batch<'_>, facts: &Facts, body: &Body<'_>) {
        let Some(session) = facts.session() else { return };
        let Some(listener) = self.listeners.get_mut(session) else { return };
        let Batch { keeper, desk, source, now, .. } = *batch;
        let ears = Ears { desk, keeper, source, now };
        let about = (session, &source.source(&facts.agent), body);
        let entries = self.sides.hear(ears, listener, about, self.entries.len());
        self.slots.extend(entries.iter().map(|_| None));
        self.entries.extend(entries);
    }

    /// An id that is known: the same event again, or another one.
    fn repeat(
        &mut self,
        batch: &Batch<'_>,
        (item, facts): (&Item, &Facts),
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
        facts: &Facts,
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
        self.entries.push(batch.keeper.message(draft));
    }

    /// The batch is history: the receipts are true, and the lanes have seen it.
    fn told(mut self, records: &[Arc<Record>], held: &mut Held) -> Vec<Receipt> {
        for (slot, record) in self.slots.iter().zip(records) {
            if let Some(receipt) = slot.and_then(|slot| self.receipts.get_mut(slot)) {
                receipt.position = Some(record.position);
            }
            if let (Some(id), Some(lane)) = (&record.event_id, held.get_mut(&record.session)) {
                lane.remember(id);
            }
        }
        for (index, earlier) in self.same {
            let position = self.receipts.get(earlier).and_then(|receipt| receipt.position);
            if let Some(receipt) = self.receipts.get_mut(index) {
                receipt.position = position;
            }
        }
        for (session, lane) in held.iter_mut() {
            lane.go_on();
            lane.listener = self.listeners.remove(session);
        }
        self.receipts
    }
}

impl Batch<'_> {
    fn entry(
        &self,
        (item, body): (&Item, &Body<'_>),
        facts: &Facts,
        findings: &Value,
        memory: Option<&mut Memory>,
    ) -> Entry {
        let draft = self.source.draft(item, facts, findings, self.now);
        let Some(memory) = memory else { return self.keeper.message(draft) };
        let redacted = self.keeper.level(&draft.source.agent) == Level::Redacted;
        let part = redacted.then(|| memory.pieces.keep(self.source.protocol, &item.bytes));
        if let Some(part) = part.flatten() {
            memory.hear(&part.as_ref().into(), None, &draft);
            self.keeper.part(draft, part)
        } else {
            memory.hear(body, None, &draft);
            self.keeper.part(draft, item.bytes.clone())
        }
    }
}

impl Pusher {
    fn draft(&self, item: &Item, facts: &Facts, findings: &Value, now: Timestamp) -> Draft {
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
            .and_then(Facts::session)
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
