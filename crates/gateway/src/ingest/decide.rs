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
use banister_events::json::View;
use banister_events::{Message, id};
use banister_journal::Durability;
use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    ID_REUSED, Item, NOTHING_TO_DECIDE, PushPolicy, Pusher, SessionRef, breaks, found, kept,
};
use crate::admission::{Accepted, Admitted, Judged, denied};
use crate::asks::Asker;
use crate::desk::Decided;
use crate::pipeline::NO_ACTION;
use crate::policy::{Gated, PolicyQuestion};
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
    pub async fn push_and_decide(self: &Arc<Self>, waiting: Waiting) -> Result<Value, Refusal> {
        let since = self.clock.now();
        let source = Pusher {
            protocol: Protocol::Aep,
            thread: None,
            door: waiting.door,
            key: waiting.key.clone(),
            idempotency: None,
        };
        let mut items = source.read(vec![Ok(waiting.body.clone())]);
        let item = items.pop();
        let message = item.as_ref().and_then(|item| item.message.clone());
        let (named, action) = about(message.as_ref());
        let facts = item.as_ref().and_then(|item| item.read.as_ref().ok());
        let session = facts.and_then(|facts| facts.session()).unwrap_or_default().to_owned();
        let about = About { session: &session, event: &named, action };
        let accepted = match item {
            Some(item) => self.gate_event(&source, &item, &waiting).await,
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
    async fn gate_event(
        self: &Arc<Self>,
        source: &Pusher,
        item: &Item,
        waiting: &Waiting,
    ) -> Result<Accepted, Trouble> {
        let nothing = |why: &str| Trouble::Found(vec![NOTHING_TO_DECIDE.at("", why)]);
        let facts = item.read.as_ref().map_err(|findings| Trouble::Found(findings.clone()))?;
        // What was read was a message.
        let Some(message) = &item.message else { return Err(Trouble::Found(Vec::new())) };
        let document = message.document();
        let event = document.root();
        let SessionRef::Session(session) = &facts.place else {
            return Err(nothing("this is a response, not an event"));
        };
        let Some(event_id) = &facts.id else { return Err(nothing("the event has no id")) };
        let kind = event.get("type").and_then(View::as_str).unwrap_or_default();
        let gated = match Type::from_alias(&kind) {
            Some(Type::ActionRequested) => Some(self.verdict(event, &facts.agent, session).await),
            Some(_) => None,
            None => return Err(nothing("the type of the event is not known")),
        };
        let gate = gated.as_ref().map(|gated| gated.gate.clone());
        let now = self.clock.now();
        let mut push_session = self.push_sessions.enter(session).await;
        self.recall(&mut push_session, session, source).await.map_err(Trouble::Failed)?;
        let known = push_session.remembers(event_id);
        let strict = self.policy(&source.key) == PushPolicy::Strict;
        let before = push_session.take();
        let mut memory = before.clone();
        let findings = match &mut memory {
            Some(memory) if !known => memory.checker.parsed(message),
            _ => Vec::new(),
        };
        if strict && breaks(&findings) {
            push_session.restore(before);
            return Err(Trouble::Found(kept(findings)));
        }
        let findings = kept(findings);
        let mut draft = source.draft(item, facts, &found(&findings, false), now);
        draft.gate = gated.and_then(|gated| serde_json::to_value(gated).ok());
        let about = (read::action(event), read::context(event));
        let asker = Asker {
            agent: &facts.agent,
            door: waiting.door,
            key: &waiting.key,
            event_id: Some(event_id),
            wait: waiting.wait,
        };
        let ask = self.ask_for(gate.as_ref(), &asker, session, about, now);
        let ask = ask.map_err(Trouble::Failed)?;
        if let Some(memory) = &mut memory {
            memory.hear(message, gate.as_ref(), &draft);
        }
        let entry = self.keeper.message(draft);
        let protocol = source.protocol.name().to_owned();
        let message = Some(message.clone());
        let judged = Judged { entry, message, protocol, gate: gate.clone(), ask };
        // Meanwhile the session has no memory: whoever waits may go, and what is under way is recorded all the same.
        let admitted = self.admit(judged).await.map_err(Trouble::Failed)?;
        let Admitted::Accepted(mut accepted) = admitted else {
            push_session.restore(before);
            push_session.remember(event_id);
            return Err(Trouble::Reused);
        };
        push_session.restore(if accepted.duplicate { before } else { memory });
        push_session.remember(event_id);
        if accepted.duplicate && accepted.gate.is_none() && gate.is_some() {
            let reason = "This event was pushed before, and nobody asked whether it may.";
            accepted.gate = Some(denied(NOTHING_TO_DECIDE.code, reason, None));
        }
        Ok(accepted)
    }

    async fn verdict(self: &Arc<Self>, event: View<'_>, agent: &str, session: &str) -> Gated {
        let Some(action) = read::action(event) else {
            let unseen = Some("no tool or no id in the event".to_owned());
            return denied(NO_ACTION.code, "The event does not say what would run.", unseen).into();
        };
        let context = read::context(event);
        let question = PolicyQuestion {
            agent,
            session: Some(session),
            action: &action,
            cwd: context.cwd.as_deref(),
            project: None,
            own: &self.own,
            now: self.clock.now(),
        };
        self.judge(agent, question).await
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
        let item = Item { bytes: body, message: None, read: Err(findings.clone()) };
        let draft = source.evidence(&item, &findings, self.clock.now());
        let evidence = self.keeper.message(draft);
        if let Err(error) = self.history.commit(vec![evidence.into()], Durability::Synced).await {
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
        let event = Message::parse(Protocol::Aep, Bytes::copy_from_slice(body)).ok();
        let (named, action) = about(event.as_ref());
        let about = About { session: "", event: &named, action };
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

/// The id of an event, and the action that it is about.
fn about(message: Option<&Message>) -> (String, Option<Action>) {
    let Some(message) = message else { return (String::new(), None) };
    let document = message.document();
    let named = document.root().get("id").and_then(View::as_str).unwrap_or_default();
    (named.into_owned(), read::action(document.root()))
}
