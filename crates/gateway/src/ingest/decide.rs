//! One AEP event that somebody waits on: recorded, gated, put to a person where the rules say so, and answered with a
//! hook response.
//!
//! Whatever goes wrong the answer is a refusal. What no rule speaks about (a prompt, a turn's end) is answered with no
//! opinion; a type that nobody knows is refused, because nobody knows what waits behind it.

use std::sync::Arc;
use std::time::Duration;

use banister_events::activity::{self, Action, Ask, AskKind, Gate, Outcome, What};
use banister_events::aep::dialect::Behavior;
use banister_events::aep::types::Type;
use banister_events::aep::{read, response};
use banister_events::event::Protocol;
use banister_events::finding::Finding;
use banister_events::id;
use banister_journal::{Appended, Durability};
use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{ID_REUSED, Item, NOTHING_TO_DECIDE, Place, Policy, Pusher, breaks, found, kept};
use crate::desk::{AskDraft, Decided};
use crate::pipeline::{Accepted, Incoming, NO_ACTION, again, denied};
use crate::policy::{Asked, Gated};
use crate::{Error, Gateway};

/// An event and whoever waits on it.
#[derive(Debug, Clone)]
pub struct Waiting {
    /// The door it came through.
    pub door: &'static str,
    /// The id of the key it came with.
    pub key: String,
    /// The event.
    pub body: Bytes,
    /// How long the sender waits.
    pub wait: Duration,
}

/// Why nothing was decided, and the refusal that stands for it.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// What kind of thing went wrong: `event`, `id-reused`, `journal`, `stopping`, `size`, `slow`.
    pub code: &'static str,
    /// What is wrong, for people.
    pub message: String,
    /// What is wrong with the event.
    pub findings: Vec<Finding>,
    /// The hook response: a deny.
    pub response: Value,
}

/// What a response is about.
struct About<'a> {
    session: &'a str,
    event: &'a str,
    action: Option<Action>,
}

/// What stood in the way.
enum Trouble {
    Found(Vec<Finding>),
    Reused,
    Failed(Error),
}

impl Gateway {
    /// Answers one event that somebody waits on. Returns before the sender's deadline, plus the time of one commit.
    pub async fn hold(self: &Arc<Self>, waiting: Waiting) -> Result<Value, Refusal> {
        let since = self.clock.now();
        let source = Pusher {
            protocol: Protocol::Aep,
            thread: None,
            door: waiting.door,
            key: waiting.key.clone(),
            idempotency: None,
        };
        let event: Value = serde_json::from_slice(&waiting.body).unwrap_or_default();
        let mut items = source.read(vec![Ok(waiting.body.clone())]);
        let item = items.pop();
        let facts = item.as_ref().and_then(|item| item.read.as_ref().ok());
        let session = facts.and_then(|facts| facts.session()).unwrap_or_default().to_owned();
        let named = event.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        let about = About { session: &session, event: &named, action: read::action(&event) };
        let accepted = match item {
            Some(item) => self.admit(&source, &item, &event, &waiting).await,
            None => Err(Trouble::Found(Vec::new())),
        };
        let accepted = match accepted {
            Ok(accepted) => accepted,
            Err(trouble) => {
                let (code, findings) = self.recorded(&source, &waiting, trouble).await;
                return Err(self.refused(code, findings, &about, since));
            }
        };
        let gate = accepted.gate.as_ref();
        let decided = self.desk.decide(gate, accepted.ask.as_deref()).await;
        let closed = accepted.ask.as_deref().and_then(|ask| self.desk.closed(ask));
        let by = match (&closed, gate.map(|gate| gate.decision)) {
            (Some(fact), _) => fact.by.clone(),
            (None, Some(activity::Decision::Ask)) => "gateway".to_owned(),
            (None, _) => "auto-policy".to_owned(),
        };
        let outcome = closed.map(|fact| fact.outcome);
        Ok(self.response(&about, &decided, (&by, outcome), gate, since))
    }

    /// Records the event with its verdict, and the ask that it opens.
    async fn admit(
        self: &Arc<Self>,
        source: &Pusher,
        item: &Item,
        event: &Value,
        waiting: &Waiting,
    ) -> Result<Accepted, Trouble> {
        let nothing = |why: &str| Trouble::Found(vec![NOTHING_TO_DECIDE.at("", why)]);
        let facts = item.read.as_ref().map_err(|findings| Trouble::Found(findings.clone()))?;
        let Place::Session(session) = &facts.place else {
            return Err(nothing("this is a response, not an event"));
        };
        let Some(event_id) = &facts.id else { return Err(nothing("the event has no id")) };
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
        let gated = match Type::from_alias(kind) {
            Some(Type::ActionRequested) => Some(self.verdict(event, &facts.agent, session)),
            Some(_) => None,
            None => return Err(nothing("the type of the event is not known")),
        };
        let gate = gated.as_ref().map(|gated| gated.gate.clone());
        let now = self.clock.now();
        let mut lane = self.lanes.enter(session).await;
        self.recall(&mut lane, session, source).await.map_err(Trouble::Failed)?;
        let known = lane.remembers(event_id);
        let strict = self.policy(&source.key) == Policy::Strict;
        let before = lane.take();
        let mut memory = before.clone();
        let findings = match &mut memory {
            Some(memory) if !known => memory.checker.message(&item.bytes),
            _ => Vec::new(),
        };
        if strict && breaks(&findings) {
            lane.restore(before);
            return Err(Trouble::Found(kept(findings)));
        }
        let findings = kept(findings);
        let mut draft = source.draft(item, facts, &found(&findings, false), now);
        draft.gate = gated.and_then(|gated| serde_json::to_value(gated).ok());
        let ask = match &gate {
            Some(gate) if gate.decision == activity::Decision::Ask => {
                let incoming = incoming(facts.agent.clone(), event_id.clone(), waiting);
                let what = (read::action(event), gate.clone());
                let ask = AskDraft::new(&incoming, session, what, read::context(event), now);
                Some(ask.map_err(Trouble::Failed)?.within(self.settings.ask_time))
            }
            _ => None,
        };
        let quick = gate.as_ref().is_none_or(|gate| gate.decision == activity::Decision::Allow);
        let durability = if quick && !self.settings.sync_allow {
            Durability::Written
        } else {
            Durability::Synced
        };
        if let Some(memory) = &mut memory {
            memory.hear(&item.bytes.as_ref().into(), gate.as_ref(), &draft);
        }
        // Meanwhile the lane has no memory: whoever waits may go, and what is under way is recorded all the same.
        let (appended, ask) = self
            .record(self.keeper.message(draft), ask, durability)
            .await
            .map_err(Trouble::Failed)?;
        let is_new = matches!(appended, Appended::Recorded(_));
        lane.restore(if is_new { memory } else { before });
        lane.remember(event_id);
        match (appended, ask) {
            (Appended::Recorded(records), ask) => {
                Ok(Accepted { records, duplicate: false, gate, ask })
            }
            (Appended::Duplicate { first, same_bytes: true }, _)
                if first.source.protocol == source.protocol.name() =>
            {
                let mut accepted = again(first, gate.clone());
                if accepted.gate.is_none() && gate.is_some() {
                    let reason = "This event was pushed before, and nobody asked whether it may.";
                    accepted.gate = Some(denied(NOTHING_TO_DECIDE.code, reason, None));
                }
                Ok(accepted)
            }
            (Appended::Duplicate { .. }, _) => Err(Trouble::Reused),
        }
    }

    fn verdict(&self, event: &Value, agent: &str, session: &str) -> Gated {
        let Some(action) = read::action(event) else {
            let unseen = Some("no tool or no id in the event".to_owned());
            return denied(NO_ACTION.code, "The event does not say what would run.", unseen).into();
        };
        let context = read::context(event);
        self.judge(
            agent,
            &Asked {
                agent,
                session: Some(session),
                action: &action,
                cwd: context.cwd.as_deref(),
                project: None,
                own: &self.own,
                now: self.clock.now(),
            },
        )
    }

    /// Keeps what stood in the way as evidence; what it is called, and what was wrong.
    async fn recorded(
        self: &Arc<Self>,
        source: &Pusher,
        waiting: &Waiting,
        trouble: Trouble,
    ) -> (&'static str, Vec<Finding>) {
        let (code, findings) = match trouble {
            Trouble::Found(findings) => ("event", findings),
            Trouble::Reused => {
                let message = "this id stands for another event already";
                ("id-reused", vec![ID_REUSED.at("/id", message)])
            }
            Trouble::Failed(error) => {
                tracing::error!(%error, "An event that somebody waits on was not recorded.");
                return ("journal", Vec::new());
            }
        };
        let body = waiting.body.clone();
        let item = Item { bytes: body, read: Err(findings.clone()) };
        let draft = source.evidence(&item, &findings, self.clock.now());
        if let Err(error) = self.record(self.keeper.message(draft), None, Durability::Synced).await
        {
            tracing::error!(%error, "A refused event was not recorded.");
        }
        (code, findings)
    }

    fn refused(
        &self,
        code: &'static str,
        findings: Vec<Finding>,
        about: &About<'_>,
        since: Timestamp,
    ) -> Refusal {
        let message = match (findings.first(), code) {
            (Some(finding), _) => format!("{}: {}", finding.rule.code, finding.message),
            (None, "journal") => "the event could not be recorded, so it is refused".to_owned(),
            (None, _) => "the event could not be read, so it is refused".to_owned(),
        };
        let decided = Decided { behavior: Behavior::Deny, message: message.clone() };
        let response = self.response(about, &decided, ("auto-policy", None), None, since);
        Refusal { code, message, findings, response }
    }

    /// The refusal of an event that was not looked at any further.
    pub fn refusal(&self, code: &'static str, message: &str, body: &[u8]) -> Refusal {
        let event: Value = serde_json::from_slice(body).unwrap_or_default();
        let named = event.get("id").and_then(Value::as_str).unwrap_or_default();
        let about = About { session: "", event: named, action: read::action(&event) };
        let message = message.to_owned();
        let decided = Decided { behavior: Behavior::Deny, message: message.clone() };
        let now = self.clock.now();
        let response = self.response(&about, &decided, ("gateway", None), None, now);
        Refusal { code, message, findings: Vec::new(), response }
    }

    /// The hook response.
    fn response(
        &self,
        about: &About<'_>,
        decided: &Decided,
        (by, outcome): (&str, Option<Outcome>),
        gate: Option<&Gate>,
        since: Timestamp,
    ) -> Value {
        let now = self.clock.now();
        let outcome = match decided.behavior {
            Behavior::Allow => Outcome::Accepted,
            Behavior::Abstain => Outcome::Withdrawn,
            _ if outcome == Some(Outcome::Expired) => Outcome::Expired,
            _ => Outcome::Rejected,
        };
        self.metrics.decided(match outcome {
            Outcome::Accepted => Some(true),
            Outcome::Withdrawn => None,
            Outcome::Rejected | Outcome::Expired => Some(false),
        });
        let exact = serde_json::to_vec(&about.action).unwrap_or_default();
        let ask = Ask {
            action: about.action.clone(),
            digest: id::hex(&Sha256::digest(&exact)),
            ..Ask::new("", about.event, AskKind::Confirmation)
        };
        let closed = What::AskClosed {
            id: String::new(),
            action: None,
            outcome,
            by: by.to_owned(),
            message: Some(decided.message.clone()).filter(|message| !message.is_empty()),
            response: None,
            updated_input: None,
        };
        let time = now.to_string();
        let name = id::derive("rsp_", &[about.session, about.event, by, &time]);
        let mut response = response::response(&ask, &closed, about.event, &name, now);
        if let Some(decision) = response.get_mut("decision").and_then(Value::as_object_mut) {
            if let Some(gate) = gate {
                decision.insert("policy_id".to_owned(), json!(gate.rule));
            }
            let took = now.as_millisecond().saturating_sub(since.as_millisecond()).max(0);
            decision.insert("response_time_ms".to_owned(), json!(took));
        }
        response
    }
}

/// What the desk wants to know of whoever waits.
fn incoming(agent: String, event_id: String, waiting: &Waiting) -> Incoming {
    Incoming {
        agent,
        hook: String::new(),
        door: waiting.door,
        key: waiting.key.clone(),
        event_id: Some(event_id),
        body: waiting.body.clone(),
        cut: None,
        wait: waiting.wait,
        kept: None,
    }
}
