//! Doors and a scripted agent for `aaep-conformance`, the official suite of AAEP.
//!
//! The suite cannot authenticate, starts sessions by a message that the protocol does not know, and expects the answer
//! to a handshake on the stream. All that is open only after [`Gateway::open_to_suite`], which nothing but `banister demo
//! --aaep-suite` calls, on a gateway that knows nothing else and listens on this machine only.
//!
//! The agent is a script. What it does goes the way of everything else: records, asks on the desk, projection, shaping.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use banister_events::aaep::reply;
use banister_events::aaep::shape::Terms;
use banister_events::activity::{
    Action, Ask, AskKind, Context, Decision, Ending, Gate, Outcome, Risk, Role, Status, What,
};
use banister_events::id;
use banister_journal::{Draft, Durability, Kind, Source};
use bytes::Bytes;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::{mpsc, watch};

use crate::asks::AskDraft;
use crate::facts::{ACTIVITY, ActivityFact, CloseFact};
use crate::subscriptions::{StreamOrder, StreamSink, SubscriptionStream};
use crate::{Error, Gateway, random};

pub(crate) mod listeners;

use listeners::Suite;

/// The name of the suite's door and key in records.
const DOOR: &str = "suite";
/// How long a session waits for somebody to listen: the suite does not wait for its own stream.
const ATTACH: Duration = Duration::from_secs(5);
/// How long an ask stays open. One is left unanswered on purpose, and must not end during another scenario.
const PATIENCE: Duration = Duration::from_mins(10);
/// How many orders may wait for a stream that is busy.
const ORDERS: usize = 64;

impl Gateway {
    /// Opens the doors of the conformance suite: from now on whoever reaches the port can listen, start the scripted
    /// agent and answer it, without a key.
    pub fn open_to_suite(&self) {
        let _first =
            self.suite.set(Suite { lines: Mutex::default(), count: watch::Sender::new(0) });
    }
}

impl Suite {
    /// Streams what happens from now on, under the terms of a subscriber that said nothing.
    pub(crate) fn listen(&self, gateway: &Arc<Gateway>, sink: StreamSink) {
        let (sender, orders) = mpsc::channel(ORDERS);
        let stream = SubscriptionStream {
            gateway: Arc::clone(gateway),
            terms: Terms::default(),
            sink,
            session: None,
            start: None,
            greeting: None,
        };
        gateway.tasks.spawn(stream.run(orders));
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push(sender);
        self.count.send_replace(lines.len());
    }

    /// Takes anything that the suite says.
    pub(crate) async fn hear(&self, gateway: &Arc<Gateway>, message: &Value) {
        if message.get("kind").and_then(Value::as_str) == Some("user_input") {
            let text = message.get("text").and_then(Value::as_str).unwrap_or_default();
            self.start(gateway, text).await;
            return;
        }
        match message.get("type").and_then(Value::as_str).unwrap_or_default() {
            "subscription.request" => self.tell(|| match gateway.negotiate(message, true) {
                Ok((accepted, terms)) => StreamOrder::Replace {
                    terms: Box::new(terms),
                    answer: serde_json::to_value(accepted).unwrap_or_default(),
                    joins: false,
                },
                Err(rejected) => {
                    StreamOrder::Say(serde_json::to_value(rejected).unwrap_or_default())
                }
            }),
            "confirmation.reply" | "clarification.reply" => {
                if let Some(answer) = reply::answer(message)
                    && let Err(refused) = gateway.desk.reply(&answer, DOOR, DOOR).await
                {
                    tracing::debug!(%refused, "A reply of the suite did not count.");
                }
            }
            _ => {}
        }
    }

    /// Starts a session. The suite throws the first message after its request away, so that one is no event.
    async fn start(&self, gateway: &Arc<Gateway>, text: &str) {
        let mut count = self.count.subscribe();
        let attached =
            tokio::time::timeout(ATTACH, count.wait_for(|count| *count > 0)).await.is_ok();
        tracing::debug!(attached, "The suite starts a session.");
        let Ok(token) = random::token::<8>() else { return };
        let turn = format!("sess_{token}");
        self.tell(|| StreamOrder::Say(json!({ "kind": "session.ack", "session_id": turn })));
        let context = Context {
            agent: "suite".to_owned(),
            agent_name: Some("Scripted agent".to_owned()),
            session: Some(turn.clone()),
            turn: Some(turn.clone()),
            ..Context::default()
        };
        let session = id::derive("s_", &[DOOR, &turn]);
        let agent = Agent { gateway: Arc::clone(gateway), context, session };
        let text = text.to_lowercase();
        gateway.tasks.spawn(async move {
            if let Err(error) = agent.act(&text).await {
                tracing::error!(%error, "The scripted agent stopped.");
            }
        });
    }

    fn tell(&self, order: impl Fn() -> StreamOrder) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.retain(|line| !line.is_closed());
        for line in &*lines {
            let _taken = line.try_send(order());
        }
        self.count.send_replace(lines.len());
    }
}

/// The scripted agent, in one session.
struct Agent {
    gateway: Arc<Gateway>,
    context: Context,
    session: String,
}

impl Agent {
    /// Does what the script has for a request.
    async fn act(&self, text: &str) -> Result<(), Error> {
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        self.tell(What::TurnStarted { request: None, summary: None }).await?;
        let mut summary = None;
        let ending = if has(&["does not exist", "deliberate error"]) {
            Ending::Failed {
                message: "There is no such tool.".to_owned(),
                code: Some("tool_not_found".to_owned()),
                category: Some("permanent".to_owned()),
            }
        } else if has(&["book a meeting", "send an email", "request confirmation", "delete record"])
        {
            self.grave(text).await?
        } else if has(&["where i am", "clarification"]) {
            let place = self.ask(AskKind::question("Where are you?"), None).await?;
            let place = place.response.is_some();
            self.say(if place { "It is sunny there." } else { "I do not know where." }).await?;
            Ending::Completed
        } else if has(&["handoff", "escalate"]) {
            let what = What::HandedOff {
                reason: "A person is wanted.".to_owned(),
                target: Some("human".to_owned()),
                uri: None,
            };
            self.tell(what).await?;
            Ending::Completed
        } else {
            if has(&["tool to fetch", "api_key="]) {
                self.fetch().await?;
            }
            // The suite reads five events of the brief one and takes the sixth for the next session's.
            if has(&["respond briefly"]) {
                summary = Some("Hello.".to_owned());
            } else if has(&["three-sentence"]) {
                self.say("The tide comes in. It stays for a while. Then it goes out.").await?;
            } else {
                self.say("Here is what I found.").await?;
            }
            Ending::Completed
        };
        self.tell(What::TurnEnded { ending, summary, result: None, usage: Vec::new() }).await
    }

    /// Uses a tool that nobody has to be asked about. What the request said does not become part of it.
    async fn fetch(&self) -> Result<(), Error> {
        let action = self.action("fetch", json!({ "url": "https://example.org/tides" }));
        let gate = Gate { decision: Decision::Allow, ..grave("Reading is harmless.") };
        let gate = Gate { risk: Risk::Low, irreversible: None, ..gate };
        self.tell(What::ActionRequested { action: action.clone(), gate: Some(gate) }).await?;
        self.ended(&action, json!("High water is at nine.")).await
    }

    /// Wants to do something that cannot be undone, and does it if it may.
    async fn grave(&self, text: &str) -> Result<Ending, Error> {
        let (tool, subject) = match text {
            _ if text.contains("meeting") => ("book_room", "room 4, tomorrow at 14:00"),
            _ if text.contains("email") => ("send_email", "to a person outside"),
            _ if text.contains("delete") => ("delete_record", "12345"),
            _ => ("publish", "the report"),
        };
        let action = self.action(tool, json!({ "query": subject }));
        let gate = grave("It cannot be taken back.");
        let what = What::ActionRequested { action: action.clone(), gate: Some(gate.clone()) };
        self.tell(what).await?;
        let closed = self.ask(AskKind::Confirmation, Some((action.clone(), gate))).await?;
        if closed.outcome == Outcome::Accepted {
            self.ended(&action, json!("done")).await?;
            return Ok(Ending::Completed);
        }
        Ok(Ending::Cancelled { by: "user".to_owned(), reason: None })
    }

    fn action(&self, tool: &str, input: Value) -> Action {
        let id = id::derive("call_", &[&self.session, tool]);
        Action { input: Some(input), ..Action::unseen(&id, tool) }
    }

    async fn ended(&self, action: &Action, output: Value) -> Result<(), Error> {
        self.tell(What::ActionEnded {
            id: action.id.clone(),
            tool: action.tool.clone(),
            status: Status::Success,
            output: Some(output),
            error: None,
            duration_ms: Some(5),
        })
        .await
    }

    async fn say(&self, text: &str) -> Result<(), Error> {
        self.tell(What::Said {
            message: id::derive("out_", &[&self.session]),
            role: Role::Assistant,
            text: text.to_owned(),
            last: true,
        })
        .await
    }

    /// Records what happened, and lets everybody see it.
    async fn tell(&self, what: What) -> Result<(), Error> {
        let fact = ActivityFact { context: self.context.clone(), what };
        let draft = Draft {
            session: self.session.clone(),
            time: self.gateway.clock.now(),
            kind: Kind::Event,
            source: source(),
            turn: self.context.turn.clone(),
            action: None,
            event_id: None,
            reader: 1,
            body: Bytes::from(serde_json::to_vec(&fact).unwrap_or_default()),
            findings: Value::Null,
            gate: None,
        };
        let entry = self.gateway.keeper.message(draft);
        self.gateway.history.commit(vec![entry.into()], Durability::Written).await?;
        Ok(())
    }

    /// Asks, and waits for what comes of it.
    async fn ask(&self, kind: AskKind, about: Option<(Action, Gate)>) -> Result<CloseFact, Error> {
        let now = self.gateway.clock.now();
        let (action, gate) = about.unzip();
        let exact = serde_json::to_vec(&action).unwrap_or_default();
        let id = format!("ask_{}", random::token::<16>()?);
        let ask = Ask {
            action,
            gate,
            digest: id::hex(&Sha256::digest(&exact)),
            deadline: Some(now.checked_add(PATIENCE).unwrap_or(now)),
            ..Ask::new(id.clone(), format!("rpl_{}", random::token::<16>()?), kind)
        };
        let draft = AskDraft::of((ask, self.context.clone()), &self.session, source(), now);
        self.gateway.history.commit(vec![draft.into()], Durability::Synced).await?;
        Ok(self.gateway.desk.outcome(&id).await)
    }
}

fn source() -> Source {
    Source {
        protocol: ACTIVITY.to_owned(),
        agent: DOOR.to_owned(),
        door: DOOR.to_owned(),
        key: DOOR.to_owned(),
    }
}

fn grave(reason: &str) -> Gate {
    Gate {
        decision: Decision::Ask,
        rule: DOOR.to_owned(),
        reason: reason.to_owned(),
        risk: Risk::High,
        irreversible: Some(true),
        opaque: None,
        safer: None,
    }
}
