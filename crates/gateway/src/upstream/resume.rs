//! Interrupts of upstreams are asks like any other, and answers to them let the run go on.
//!
//! A run that ends with interrupts is parked in the same commit that opens its asks. When the last of them is closed, at
//! whatever door, the gateway calls the agent again with all answers and the input that was kept. A front end that sends
//! `resume` itself takes the run instead, where it is first. Either way a record says so before the agent is called, so
//! that no run is resumed twice: where the gateway stops in between, nobody knows whether the agent heard of it, and only
//! a front end goes on.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use banister_events::agui::rejoin::run_error;
use banister_events::id;
use banister_journal::{Durability, Kind};
use bytes::Bytes;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Upstream;
use super::call::Failure;
use super::conduct::PlannedRun;
use super::interrupts::{Entries, closing, continued, entries, entry};
use super::{note, source};
use crate::asks::{NotParked, ParkClaim, Refused, Resumer};
use crate::facts::{ParkedFact, ResumptionFact, Stage};
use crate::history::Fact;
use crate::{Error, Gateway};

/// How long the gateway waits at first before it calls an agent again that cannot be reached, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How long the gateway waits between two looks for runs that are ready, where the first found some.
const PACE: Duration = Duration::from_millis(100);
/// How long the gateway waits where too many runs are under way.
const CROWDED: Duration = Duration::from_secs(1);

/// What becomes of a front end's `resume`.
#[derive(Debug)]
pub(crate) enum FrontEndResume {
    /// It is passed on: with these bytes, which say what counts, and the right to go on with the parked run.
    Go { claim: Box<ParkClaim>, body: Bytes, input: Value },
    /// What it answers was answered elsewhere, and the run has gone on.
    Late,
    /// Nothing is known of what it answers.
    PassOn,
}

/// Why a front end's `resume` is not taken.
#[derive(Debug)]
pub(crate) enum NotResumed {
    /// These interrupts are open, and it has no answer to them.
    Uncovered(Vec<String>),
    /// An answer could not be recorded.
    Failed(Refused),
    /// The journal.
    Error(Error),
}

impl From<Error> for NotResumed {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl Gateway {
    /// Goes on with parked runs as they become ready, until the gateway stops.
    pub(crate) async fn resume_parked(self: Arc<Self>, stop: CancellationToken) {
        let mut changed = self.asks.parking();
        loop {
            changed.borrow_and_update();
            let ready = self.asks.resumable();
            let pace = if ready.is_empty() { Duration::ZERO } else { PACE };
            for session in ready {
                // Whoever was quicker goes on with it.
                if let Ok(claim) = self.asks.take_parked(&session, Resumer::Gateway) {
                    self.tasks.spawn(Arc::clone(&self).resume(claim, stop.clone()));
                }
            }
            // What could not be recorded is ready again at once.
            tokio::time::sleep(pace).await;
            tokio::select! {
                () = stop.cancelled() => break,
                rung = changed.changed() => if rung.is_err() { break },
            }
        }
    }

    /// Goes on with one parked run.
    async fn resume(self: Arc<Self>, mut claim: ParkClaim, stop: CancellationToken) {
        let name = claim.fact().upstream.clone();
        if claim.was_cut() {
            let why = "the gateway stopped while it resumed this run; run it again with resume";
            return self.resume_failed(claim, why).await;
        }
        let Some(upstream) = self.upstreams.configured.get(&name).cloned() else {
            let why = format!("the answers are there, but no upstream is called {name} any more");
            return self.resume_failed(claim, &why).await;
        };
        let next = id::derive("run_", &[claim.session(), &claim.fact().run, "resume"]);
        let Some(input) = continued(claim.fact(), &claim.answers(), &next) else {
            let why = "not enough was kept to resume this run; run it again with resume";
            return self.resume_failed(claim, why).await;
        };
        let begun = claim.begun(&next, source(&name), self.clock.now());
        if let Err(error) = self.history.commit(vec![begun.into()], Durability::Synced).await {
            tracing::error!(%error, upstream = name, "A run is not resumed yet.");
            return claim.not_begun();
        }
        self.call_again(claim, (name, upstream), input, stop).await;
    }

    /// Calls the agent, again where it cannot be reached: then nothing has run.
    async fn call_again(
        self: &Arc<Self>,
        mut claim: ParkClaim,
        (name, upstream): (String, Upstream),
        input: Value,
        stop: CancellationToken,
    ) {
        let body = Bytes::from(input.to_string());
        let patience = Instant::now() + upstream.resume;
        let mut pause = FIRST_PAUSE;
        loop {
            let Some((live, before)) = self.upstreams.next_run(&name, &input) else {
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(CROWDED) => continue,
                }
            };
            let (name, upstream, body) = (name.clone(), upstream.clone(), body.clone());
            let (input, parked) = (input.clone(), Some(claim));
            let planned = PlannedRun { name, upstream, body, input, live, before, parked };
            let (begun, answer) = oneshot::channel();
            let unstarted = Arc::clone(self).conduct(planned, stop.clone(), begun).await;
            let Some(unstarted) = unstarted else { return };
            claim = unstarted;
            let failure = answer.await.ok().and_then(Result::err);
            let again = matches!(failure, Some(Failure::Unreachable(_)))
                && Instant::now() < patience
                && !stop.is_cancelled();
            if !again {
                let why = failure.map_or_else(String::new, |failure| failure.to_string());
                return self.resume_failed(claim, &why).await;
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(pause) => {}
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Nobody but a front end goes on with this run; what went wrong is told in its session.
    pub(crate) async fn resume_failed(&self, claim: ParkClaim, why: &str) {
        let (name, now) = (claim.fact().upstream.clone(), self.clock.now());
        tracing::warn!(upstream = name, why, "A run could not be resumed.");
        let run = claim.fact().run.clone();
        let message = run_error("upstream", why);
        let body = (Kind::Event, message.bytes().clone());
        let event = note(claim.session(), &source(&name), body, Some(run), now);
        let told = Fact::parsed(self.keeper.message(event), message);
        let facts = vec![told, claim.end(Stage::Failed, source(&name), now).into()];
        if let Err(error) = self.history.commit(facts, Durability::Synced).await {
            tracing::error!(%error, upstream = name, "That a run was not resumed is not recorded.");
        }
    }

    /// What becomes of a `resume` that a front end sends: answers to asks that are open count, at its door and with its key.
    pub(crate) async fn front_end_resume(
        &self,
        upstream: &str,
        (body, input): (&Bytes, &Value),
        (door, key): (&'static str, &str),
    ) -> Result<FrontEndResume, NotResumed> {
        let thread = input.get("threadId").and_then(Value::as_str).unwrap_or_default();
        let session = super::session_of(upstream, thread);
        let entries = entries(input);
        let mut claim = loop {
            let mut changed = self.asks.parking();
            match self.asks.take_parked(&session, Resumer::FrontEnd) {
                Ok(claim) => break claim,
                Err(NotParked::Taken) => {
                    // Whoever is at it succeeds or fails; then this one knows whether it is late.
                    if changed.changed().await.is_err() {
                        return Ok(FrontEndResume::PassOn);
                    }
                }
                Err(NotParked::Nothing) if self.went_on(&session, &entries).await? => {
                    return Ok(FrontEndResume::Late);
                }
                Err(NotParked::Nothing) => return Ok(FrontEndResume::PassOn),
            }
        };
        let closed = claim.answers();
        let asks = &claim.fact().asks;
        let open = |ask: &String| !closed.contains_key(ask);
        let uncovered =
            asks.iter().filter(|it| open(&it.ask) && !entries.contains_key(&it.interrupt));
        let uncovered: Vec<String> = uncovered.map(|it| it.interrupt.clone()).collect();
        if !uncovered.is_empty() {
            return Err(NotResumed::Uncovered(uncovered));
        }
        let mut counted = HashMap::new();
        for it in asks.iter().filter(|it| open(&it.ask)) {
            let Some(entry) = entries.get(&it.interrupt) else { continue };
            let (fact, kind) = closing(&it.ask, entry);
            match self.desk.close_as(fact, kind, (door, key)).await {
                Ok(_) => drop(counted.insert(it.interrupt.clone(), entry.clone())),
                Err(Refused::Late(_)) => {}
                Err(refused) => return Err(NotResumed::Failed(refused)),
            }
        }
        let answers = claim.answers();
        let mut resume = Vec::new();
        for it in asks {
            let known =
                answers.get(&it.ask).and_then(|(ask, fact)| entry(&it.interrupt, ask, fact));
            let own = counted.remove(&it.interrupt);
            let spare = || entries.get(&it.interrupt).cloned();
            resume.extend(own.or(known).or_else(spare));
        }
        let run = input.get("runId").and_then(Value::as_str).unwrap_or_default();
        let begun = claim.begun(run, source(upstream), self.clock.now());
        if let Err(error) = self.history.commit(vec![begun.into()], Durability::Synced).await {
            claim.not_begun();
            return Err(error.into());
        }
        let resume = Value::Array(resume);
        if input.get("resume") == Some(&resume) {
            let (claim, body, input) = (Box::new(claim), body.clone(), input.clone());
            return Ok(FrontEndResume::Go { claim, body, input });
        }
        let replaced = |value: &Value| {
            let mut value = value.clone();
            if let Some(fields) = value.as_object_mut() {
                fields.insert("resume".to_owned(), resume.clone());
            }
            value
        };
        let raw: Value = serde_json::from_slice(body).unwrap_or_else(|_| input.clone());
        let body = Bytes::from(replaced(&raw).to_string());
        Ok(FrontEndResume::Go { claim: Box::new(claim), body, input: replaced(input) })
    }

    /// Whether the last run of a session that waited for these interrupts has been resumed.
    async fn went_on(&self, session: &str, entries: &Entries) -> Result<bool, Error> {
        let (mut seq, mut parked, mut over) = (0, None, false);
        loop {
            let batch = self.session_after(session, seq).await?;
            let Some(newest) = batch.last() else { break };
            seq = newest.seq;
            for record in &batch {
                match record.kind {
                    Kind::Parked => {
                        parked = serde_json::from_slice::<ParkedFact>(&record.body).ok();
                        over = false;
                    }
                    Kind::Resumption => {
                        let fact = serde_json::from_slice::<ResumptionFact>(&record.body);
                        over |= fact.is_ok_and(|fact| {
                            matches!(fact.stage, Stage::Started | Stage::Superseded)
                        });
                    }
                    _ => {}
                }
            }
        }
        let Some(parked) = parked.filter(|_| over) else { return Ok(false) };
        let waited = |id: &String| parked.asks.iter().any(|it| it.interrupt == *id);
        Ok(!entries.is_empty() && entries.keys().all(waited))
    }

    /// The thread goes on with a run that answers nothing: what its last run asked is withdrawn.
    pub(super) fn leave_parked(&self, session: &str, upstream: &str) -> Vec<Fact> {
        let Ok(claim) = self.asks.take_parked(session, Resumer::NewRun) else { return Vec::new() };
        let now = self.clock.now();
        let open = claim.fact().asks.iter().filter_map(|it| self.asks.take_now(&it.ask));
        let mut facts: Vec<Fact> = open.map(|ask| ask.withdrawn(now).into()).collect();
        facts.push(claim.end(Stage::Superseded, source(upstream), now).into());
        facts
    }
}
