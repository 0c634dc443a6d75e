//! A run from its request to its end, whoever listens.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use banister_events::activity::{Activity, Ask, Context, Origin, What};
use banister_events::agui::rejoin::{self, RunEdge, run_error};
use banister_events::capture::MessageHeader;
use banister_events::event::Protocol;
use banister_events::finding::Finding;
use banister_events::{Message, Reader, id};
use banister_journal::{Draft, Durability, Entry, Kind, Source};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::call::{Arriving, Failure, Sent};
use super::guard::{Guard, Passed};
use super::interrupts::{answerable, input_after};
use super::{Live, Upstream, note, session_of, source};
use crate::asks::{AskDraft, ParkClaim, ParkedDraft};
use crate::facts::{ParkedAsk, ParkedFact, Sender, Stage};
use crate::history::Fact;
use crate::ingest::Status;
use crate::{Error, Gateway};

/// How long more may follow the end of a run that leaves its connection open.
const LINGER: Duration = Duration::from_secs(1);
/// The longest name of a run or a call that is kept beside an event.
const NAME_BYTES: usize = 200;
/// How many interrupts of one run are asked.
const MOST_ASKS: usize = 256;
/// How much is kept of a message that was changed.
const EVIDENCE: usize = banister_events::limits::EVIDENCE_BYTES;

/// A run that is to be.
#[derive(Debug)]
pub(crate) struct PlannedRun {
    /// The agent's name.
    pub(crate) name: String,
    pub(crate) upstream: Upstream,
    /// The request as it goes to the agent.
    pub(crate) body: Bytes,
    /// What it says.
    pub(crate) input: Value,
    pub(crate) live: Arc<Live>,
    /// The run of the thread that has to be over first.
    pub(crate) before: Option<Arc<Live>>,
    /// The right to go on with the run that waited, where this one answers it.
    pub(crate) parked: Option<ParkClaim>,
}

/// A run on its way into the journal.
struct RecordedRun<'r> {
    gateway: &'r Gateway,
    planned: &'r PlannedRun,
    session: String,
    source: Source,
    turn: Option<String>,
    /// Reads what it asks.
    reader: Reader,
    /// The run that waited, until this one has begun.
    parked: Option<ParkClaim>,
}

/// One event on its way into history.
struct EventRecord {
    fact: Fact,
    /// What it asks.
    asked: Vec<(Ask, Context)>,
    /// Whether it starts a run.
    starts: bool,
}

impl Gateway {
    /// Runs an agent to its end. Says whether it began; where it did not, the run that waited is given back.
    pub(crate) async fn conduct(
        self: Arc<Self>,
        mut planned: PlannedRun,
        stop: CancellationToken,
        begun: oneshot::Sender<Result<(), Failure>>,
    ) -> Option<ParkClaim> {
        let parked = planned.parked.take();
        if let Some(before) = &planned.before {
            before.over().await;
        }
        let live = &planned.live;
        let answered = tokio::select! {
            () = stop.cancelled() => Err(Failure::CalledOff),
            () = live.called_off.cancelled() => Err(Failure::CalledOff),
            answered = timeout(planned.upstream.start, planned.upstream.call(planned.body.clone())) => {
                answered.unwrap_or(Err(Failure::Silent))
            }
        };
        let arriving = match answered {
            Ok(arriving) => arriving,
            Err(failure) => {
                tracing::warn!(upstream = planned.name, %failure, "An agent gave no run.");
                live.tell(vec![Sent::Event(run_error("upstream", &failure.to_string()))], true);
                self.upstreams.lose(live);
                begun.send(Err(failure)).ok();
                return parked;
            }
        };
        begun.send(Ok(())).ok();
        let mut run = RecordedRun::new(&self, &planned, parked);
        let mut guard = Guard::new(planned.upstream.policy);
        let told = run.read(arriving, &mut guard, &stop).await;
        let ended = match told {
            Ok(None) => return None,
            Ok(Some(why)) => run.pass(vec![guard.finish(why)]).await,
            Err(error) => Err(error),
        };
        if let Err(error) = ended {
            tracing::error!(upstream = planned.name, %error, "A run was not recorded to its end.");
            let why = "what follows could not be recorded, so it is not told";
            live.tell(vec![Sent::Event(run_error("journal", why))], true);
        }
        None
    }
}

/// Why a run ends that has no end of its own: a word and a sentence; none where the agent just stopped.
type Why = Option<(&'static str, &'static str)>;

impl<'r> RecordedRun<'r> {
    fn new(gateway: &'r Gateway, planned: &'r PlannedRun, parked: Option<ParkClaim>) -> Self {
        let thread = planned.input.get("threadId").and_then(Value::as_str).unwrap_or_default();
        let session = session_of(&planned.name, thread);
        let source = source(&planned.name);
        let reader = Reader::for_protocol(Protocol::Agui);
        Self { gateway, planned, session, source, turn: None, reader, parked }
    }

    /// Passes on what arrives. Gives why it ends; nothing where the end was told.
    async fn read(
        &mut self,
        mut arriving: Arriving,
        guard: &mut Guard,
        stop: &CancellationToken,
    ) -> Result<Option<Why>, Error> {
        let Upstream { idle, longest, bytes: most, .. } = self.planned.upstream;
        let end = Instant::now() + longest;
        let mut bytes = 0;
        loop {
            let patience = if guard.has_ended() { LINGER.min(idle) } else { idle };
            let until = end.min(Instant::now() + patience);
            let arrived = tokio::select! {
                () = stop.cancelled() => return Ok(Some(Some(("shutdown", "the gateway stops")))),
                () = self.planned.live.called_off.cancelled() => {
                    let why = "somebody went on with something else";
                    return Ok(Some(Some(("superseded", why))));
                }
                arrived = timeout_at(until, arriving.next()) => arrived,
            };
            let why = match arrived {
                Ok(Some(Ok((messages, size)))) => {
                    bytes += size;
                    let mut passed = Vec::new();
                    for message in messages {
                        passed.push(guard.message(message));
                        if passed.last().is_some_and(|passed| passed.ends) {
                            break;
                        }
                    }
                    let ends = passed.last().is_some_and(|passed| passed.ends);
                    self.pass(passed).await?;
                    if ends {
                        return Ok(None);
                    }
                    if bytes <= most {
                        continue;
                    }
                    Some(("upstream-size", "the run is larger than it may be"))
                }
                Ok(Some(Err(_))) => {
                    Some(("upstream-broken", "the connection to the agent broke off"))
                }
                Ok(None) => None,
                Err(_) if Instant::now() >= end => {
                    Some(("upstream-time", "the run takes longer than it may"))
                }
                Err(_) => Some(("upstream-silent", "the agent said nothing for too long")),
            };
            if let Some(last) = arriving.end() {
                let passed = guard.message(last);
                let ends = passed.ends;
                self.pass(vec![passed]).await?;
                if ends {
                    return Ok(None);
                }
            }
            return Ok(Some(why));
        }
    }

    /// Records what became of messages, then tells it.
    async fn pass(&mut self, passed: Vec<Passed>) -> Result<(), Error> {
        let (mut facts, mut events) = (Vec::new(), Vec::new());
        let ends = passed.iter().any(|passed| passed.ends);
        for Passed { instead, findings, events: good, .. } in passed {
            if let Some(bytes) = instead {
                facts.push(self.evidence(&bytes, &findings).into());
            }
            for (event, findings) in good {
                let EventRecord { fact, asked, starts } = self.entry(&event, &findings);
                if !asked.is_empty() {
                    // What came before is told first: the run that goes on is asked with all of it.
                    self.commit(&mut facts, &mut events, false).await?;
                    facts.extend(self.park(asked)?);
                }
                facts.extend(self.unpark(starts));
                facts.push(fact);
                events.push(event);
            }
        }
        self.commit(&mut facts, &mut events, ends).await
    }

    /// Makes facts history, then tells events.
    async fn commit(
        &self,
        facts: &mut Vec<Fact>,
        events: &mut Vec<Sent>,
        ends: bool,
    ) -> Result<(), Error> {
        if !facts.is_empty() {
            self.gateway.history.commit(std::mem::take(facts), Durability::Synced).await?;
            for _ in &*events {
                self.gateway.metrics.pushed(Protocol::Agui, Status::Recorded);
            }
        }
        if ends || !events.is_empty() {
            self.planned.live.tell(std::mem::take(events), ends);
        }
        Ok(())
    }

    /// The run waits: its asks, and what it goes on with.
    fn park(&self, asked: Vec<(Ask, Context)>) -> Result<Vec<Fact>, Error> {
        let now = self.gateway.clock.now();
        if asked.len() > MOST_ASKS {
            tracing::warn!(upstream = self.planned.name, "A run has too many interrupts to ask.");
            return Ok(Vec::new());
        }
        let run = self.turn.clone().unwrap_or_default();
        let (mut asks, mut drafts) = (Vec::new(), Vec::new());
        for (ask, context) in asked {
            let interrupt = ask.token.clone();
            // An agent may use the name of an interrupt again in its next run.
            let id = id::derive("ask_", &[&self.session, &run, &interrupt]);
            let read_as = ask.id.clone();
            let ask = answerable(Ask { id: id.clone(), ..ask });
            let key = self.source.key.clone();
            let sender = Sender { protocol: Protocol::Agui, key, token: interrupt.clone() };
            let own = Source { protocol: "banister".to_owned(), ..self.source.clone() };
            let about = (ask, context);
            drafts.push(AskDraft::pushed(about, (&self.session, own), (sender, None), now)?);
            asks.push(ParkedAsk { interrupt, ask: id, read_as });
        }
        let input = input_after(&self.planned.body, &self.planned.live);
        let fact = ParkedFact { upstream: self.planned.name.clone(), run, asks, input };
        let (session, source) = (self.session.clone(), self.source.clone());
        let mut facts: Vec<Fact> = self.gateway.leave_parked(&self.session, &self.planned.name);
        facts.push(ParkedDraft { session, source, time: now, fact }.into());
        facts.extend(drafts.into_iter().map(Fact::from));
        Ok(facts)
    }

    /// What becomes of the run that waited, now that the next one says something.
    fn unpark(&mut self, starts: bool) -> Vec<Fact> {
        if let Some(claim) = self.parked.take() {
            let now = self.gateway.clock.now();
            return vec![claim.end(Stage::Started, self.source.clone(), now).into()];
        }
        if starts {
            return self.gateway.leave_parked(&self.session, &self.planned.name);
        }
        Vec::new()
    }

    /// What is recorded of an event, and what it asks.
    fn entry(&mut self, event: &Sent, findings: &[Finding]) -> EventRecord {
        let Some(message) = event.message() else {
            let draft = self.draft(Kind::Event, event.bytes().clone(), findings);
            let fact = self.gateway.keeper.message(draft).into();
            return EventRecord { fact, asked: Vec::new(), starts: false };
        };
        let short = |name: &String| name.len() <= NAME_BYTES;
        let (mut message, mut starts) = (message.clone(), false);
        if let Some(RunEdge::Started(run)) = RunEdge::of(&message) {
            starts = true;
            self.turn = run.filter(short);
            message = rejoin::with_input(&message, &self.planned.input).unwrap_or(message);
        }
        let document = message.document();
        let action = MessageHeader::of(Protocol::Agui, document.root()).action;
        let action = action.map(Cow::into_owned).filter(short);
        let asked = self.asked_in(&message);
        let draft = self.draft(Kind::Event, message.bytes().clone(), findings);
        let entry = self.gateway.keeper.message(Draft { action, ..draft });
        EventRecord { fact: Fact::parsed(entry, message), asked, starts }
    }

    /// What an event asks. How an ask ends is the desk's to say.
    fn asked_in(&mut self, event: &Message) -> Vec<(Ask, Context)> {
        let session = self.session.as_str().into();
        let origin = Origin { session, seq: 0, time: self.gateway.clock.now() };
        let mut activities = Vec::new();
        self.reader.read(event, None, &origin, &mut activities);
        let asked =
            activities.into_iter().filter_map(|Activity { context, what, .. }| match what {
                What::AskOpened { ask } => Some((*ask, (*context).clone())),
                _ => None,
            });
        asked.collect()
    }

    fn evidence(&self, bytes: &Bytes, findings: &[Finding]) -> Entry {
        let bytes = bytes.slice(..bytes.len().min(EVIDENCE));
        self.gateway.keeper.message(self.draft(Kind::Unreadable, bytes, findings))
    }

    fn draft(&self, kind: Kind, body: Bytes, findings: &[Finding]) -> Draft {
        let now = self.gateway.clock.now();
        let draft = note(&self.session, &self.source, (kind, body), self.turn.clone(), now);
        let findings = if findings.is_empty() { Value::Null } else { json!(findings) };
        Draft { findings, ..draft }
    }
}
