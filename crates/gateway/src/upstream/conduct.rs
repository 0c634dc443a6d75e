//! A run from its request to its end, whoever listens.

use std::sync::Arc;
use std::time::Duration;

use banister_events::event::Protocol;
use banister_events::finding::Finding;
use banister_events::id;
use banister_journal::{Appended, Draft, Durability, Entry, Kind, Source};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::call::{Arriving, Failure};
use super::guard::{Guard, Passed, failed, kind};
use super::{Live, Upstream};
use crate::ingest::Status;
use crate::{Error, Gateway};

/// How long more may follow the end of a run that leaves its connection open.
const LINGER: Duration = Duration::from_secs(1);
/// The version of the reading that is recorded with each event.
const READER: u32 = 1;
/// How much is kept of a message that was changed.
const EVIDENCE: usize = banister_events::limits::EVIDENCE_BYTES;

/// A run that is to be.
#[derive(Debug)]
pub(crate) struct Wanted {
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
}

/// A run on its way into the journal.
struct Run<'r> {
    gateway: &'r Gateway,
    wanted: &'r Wanted,
    session: String,
    source: Source,
    turn: Option<String>,
}

impl Gateway {
    /// Runs an agent to its end. Says whether it began.
    pub(crate) async fn conduct(
        self: Arc<Self>,
        wanted: Wanted,
        stop: CancellationToken,
        begun: oneshot::Sender<Result<(), Failure>>,
    ) {
        if let Some(before) = &wanted.before {
            before.over().await;
        }
        let live = &wanted.live;
        let answered = tokio::select! {
            () = stop.cancelled() => Err(Failure::CalledOff),
            () = live.called_off.cancelled() => Err(Failure::CalledOff),
            answered = timeout(wanted.upstream.start, wanted.upstream.call(wanted.body.clone())) => {
                answered.unwrap_or(Err(Failure::Silent))
            }
        };
        let arriving = match answered {
            Ok(arriving) => arriving,
            Err(failure) => {
                tracing::warn!(upstream = wanted.name, %failure, "An agent gave no run.");
                live.tell(vec![failed("upstream", &failure.to_string()).into()], true);
                self.upstreams.lose(live);
                begun.send(Err(failure)).ok();
                return;
            }
        };
        begun.send(Ok(())).ok();
        let mut run = Run::new(&self, &wanted);
        let mut guard = Guard::new(wanted.upstream.policy);
        let told = run.read(arriving, &mut guard, &stop).await;
        let ended = match told {
            Ok(None) => return,
            Ok(Some(why)) => run.pass(vec![guard.finish(why)]).await,
            Err(error) => Err(error),
        };
        if let Err(error) = ended {
            tracing::error!(upstream = wanted.name, %error, "A run was not recorded to its end.");
            let why = "what follows could not be recorded, so it is not told";
            live.tell(vec![failed("journal", why).into()], true);
        }
    }
}

/// Why a run ends that has no end of its own: a word and a sentence; none where the agent just stopped.
type Why = Option<(&'static str, &'static str)>;

impl<'r> Run<'r> {
    fn new(gateway: &'r Gateway, wanted: &'r Wanted) -> Self {
        // No key that is issued has such a name: nobody else speaks in this session.
        let key = format!("upstream/{}", wanted.name);
        let protocol = Protocol::Agui.name().to_owned();
        let thread = wanted.input.get("threadId").and_then(Value::as_str).unwrap_or_default();
        let session = id::derive("s_", &[&key, &protocol, thread]);
        let (agent, door) = (wanted.name.clone(), "upstream".to_owned());
        let source = Source { protocol, agent, door, key };
        Self { gateway, wanted, session, source, turn: None }
    }

    /// Passes on what arrives. Gives why it ends; nothing where the end was told.
    async fn read(
        &mut self,
        mut arriving: Arriving,
        guard: &mut Guard,
        stop: &CancellationToken,
    ) -> Result<Option<Why>, Error> {
        let Upstream { idle, longest, bytes: most, .. } = self.wanted.upstream;
        let end = Instant::now() + longest;
        let mut bytes = 0;
        loop {
            let patience = if guard.has_ended() { LINGER.min(idle) } else { idle };
            let until = end.min(Instant::now() + patience);
            let arrived = tokio::select! {
                () = stop.cancelled() => return Ok(Some(Some(("shutdown", "the gateway stops")))),
                () = self.wanted.live.called_off.cancelled() => {
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
        let (mut entries, mut events) = (Vec::new(), Vec::new());
        let ends = passed.iter().any(|passed| passed.ends);
        for Passed { instead, findings, events: good, .. } in passed {
            if let Some(bytes) = instead {
                entries.push(self.evidence(&bytes, &findings));
            }
            for (event, findings) in good {
                entries.push(self.entry(&event, &findings));
                events.push(event);
            }
        }
        if !entries.is_empty() {
            let appended = self.gateway.journal.append(entries, Durability::Synced).await?;
            if let Appended::Recorded(records) = appended {
                self.gateway.hub.publish(&records);
            }
            for _ in &events {
                self.gateway.metrics.pushed(Protocol::Agui, Status::Recorded);
            }
        }
        if ends || !events.is_empty() {
            self.wanted.live.tell(events, ends);
        }
        Ok(())
    }

    fn entry(&mut self, event: &Bytes, findings: &[Finding]) -> Entry {
        let mut body = event.clone();
        let mut action = None;
        if let Ok(fields) = serde_json::from_slice::<Map<String, Value>>(event) {
            let word = |name: &str| {
                let word = fields.get(name)?.as_str()?;
                (word.len() <= 200).then(|| word.to_owned())
            };
            action = word("toolCallId");
            if kind(event).as_deref() == Some("RUN_STARTED") {
                self.turn = word("runId");
                body = self.with_input(fields).unwrap_or(body);
            }
        }
        let draft = self.draft(Kind::Event, body, findings);
        self.gateway.keeper.message(Draft { action, ..draft })
    }

    fn evidence(&self, bytes: &Bytes, findings: &[Finding]) -> Entry {
        let bytes = bytes.slice(..bytes.len().min(EVIDENCE));
        self.gateway.keeper.message(self.draft(Kind::Unreadable, bytes, findings))
    }

    fn draft(&self, kind: Kind, body: Bytes, findings: &[Finding]) -> Draft {
        Draft {
            session: self.session.clone(),
            time: self.gateway.clock.now(),
            kind,
            source: self.source.clone(),
            turn: self.turn.clone(),
            action: None,
            event_id: None,
            reader: READER,
            body,
            findings: if findings.is_empty() { Value::Null } else { json!(findings) },
            gate: None,
        }
    }

    /// The start of a run with what it was asked, where the agent does not restate that: who reads the session is to
    /// know what was said to it. What the thread has already is left out.
    fn with_input(&self, mut start: Map<String, Value>) -> Option<Bytes> {
        if start.contains_key("input") {
            return None;
        }
        let asked = &self.wanted.input;
        let messages = asked.get("messages")?.as_array()?;
        let answered =
            |message: &Value| message.get("role").is_some_and(|role| role == "assistant");
        let new = messages.iter().rposition(answered).map_or(0, |last| last + 1);
        let mut input = json!({
            "threadId": start.get("threadId")?, "runId": start.get("runId")?,
            "messages": messages.get(new..).unwrap_or_default(),
        });
        if let (Some(resume), Some(input)) = (asked.get("resume"), input.as_object_mut()) {
            input.insert("resume".to_owned(), resume.clone());
        }
        start.insert("input".to_owned(), input);
        Some(Value::Object(start).to_string().into())
    }
}
