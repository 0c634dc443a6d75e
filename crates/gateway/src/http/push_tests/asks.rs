//! What is asked in pushed events: it stands in the inbox, is answered at any door, and the answer goes back.

use super::*;
use crate::desk::{AnswerRequest, PersonAnswer, Refused};

fn aaep_event(number: u64, kind: &str, more: &Value) -> Value {
    let now = banister_events::event::time_text(Clock::default().now());
    let mut event = json!({
        "@context": "https://aaep-protocol.org/context/v1", "type": format!("aaep:agent.{kind}"),
        "event_id": format!("evt_{number}"), "session_id": "sess_shed", "timestamp": now,
        "producer": { "agent_id": "wren" }, "sequence_number": number, "language": "en",
        "urgency": if kind.starts_with("awaiting") || kind.starts_with("handoff") { "critical" } else { "normal" },
        "summary_normal": "What happens in the shed.",
    });
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event
}

fn state(number: u64, from: &str, to: &str) -> Value {
    aaep_event(number, "state.changed", &json!({ "from_state": from, "to_state": to }))
}

/// A session that asks whether it may sell the shed.
fn confirmation(timeout: u32) -> Vec<Value> {
    vec![
        aaep_event(1, "session.started", &json!({})),
        state(2, "idle", "awaiting_input"),
        aaep_event(
            3,
            "awaiting.confirmation",
            &json!({
                "action": "Sell the shed\u{202e}", "consequence": "It is gone.", "reply_token": "rpl_1",
                "timeout_seconds": timeout, "default_decision": "reject", "risk_level": "high",
                "irreversible": true, "summary_normal": "May I tidy up?",
            }),
        ),
    ]
}

fn question(number: u64, more: &Value) -> Value {
    let mut fields = json!({
        "question": "Which shed?", "reply_token": "rpl_2", "timeout_seconds": 600,
    });
    fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    aaep_event(number, "awaiting.clarification", &fields)
}

impl House {
    async fn pushed(&self, path: &str, events: &[Value]) -> String {
        let answer = self.push(path, "", ndjson(events)).await;
        assert_eq!(answer.statuses(), vec!["recorded"; events.len()], "{}", answer.text);
        answer.json()["results"][0]["session"].as_str().unwrap().to_owned()
    }

    async fn give(
        &self,
        ask: &str,
        said: PersonAnswer,
    ) -> Result<crate::facts::CloseFact, Refused> {
        let key = "person".to_owned();
        let given = AnswerRequest { answer: said, message: None, door: "cli", key, digest: None };
        self.gateway.desk.answer(ask, &given).await
    }

    /// What the producer reads back until it is quiet.
    async fn replies(&self, path: &str) -> Vec<Value> {
        self.follow_with(path, &self.agent).await
    }

    /// That everything in the journal comes out conformant, in each protocol.
    fn assert_conformant(&self, session: &str) {
        for to in Protocol::ALL {
            let events = told::told(self, session, to);
            assert_eq!(errors(to, &events), [], "{to}: {events:#?}");
        }
    }
}

#[tokio::test]
async fn a_confirmation_that_is_pushed_is_answered_here_and_its_producer_reads_the_reply() {
    let house = House::open().await;
    let session = house.pushed("/aaep/v1/events", &confirmation(600)).await;
    let inbox = house.get("/api/inbox").await.json();
    let ask = &inbox["asks"][0];
    assert_eq!((&ask["kind"], &ask["pushed"]), (&json!("confirmation"), &json!(true)), "{inbox}");
    assert_eq!(ask["subject"], "Sell the shed⟨U+202E⟩", "what would be done, with nothing hidden");
    assert_eq!(ask["gate"]["irreversible"], true);
    assert_eq!(ask["words"], "May I tidy up?");
    assert_eq!(ask["extendable"], false, "its producer waits no longer");

    // The token that subscribers see is ours: it finds exactly this ask.
    let spoken = told::told(&house, &session, Protocol::Aaep);
    let asked = spoken.iter().find(|it| it["type"] == "aaep:agent.awaiting.confirmation").unwrap();
    assert_ne!(asked["reply_token"], "rpl_1");
    let path = format!("/aaep/v1/replies?session={session}");
    assert_eq!(house.replies(&path).await, Vec::<Value>::new());
    let id = ask["id"].as_str().unwrap();
    house.give(id, PersonAnswer::Accept).await.unwrap();
    let replies = house.replies(&path).await;
    assert_eq!(replies.len(), 1, "{replies:?}");
    assert_eq!(replies[0]["type"], "confirmation.reply");
    assert_eq!(
        (&replies[0]["reply_token"], &replies[0]["decision"]),
        (&json!("rpl_1"), &json!("accept"))
    );
    assert_eq!(check::value(Protocol::Aaep, &replies[0]), []);

    // The producer goes on; nothing is closed twice.
    let more = [
        state(4, "awaiting_input", "calling_tool"),
        aaep_event(
            5,
            "tool.invoked",
            &json!({
                "tool": "sell", "tool_call_id": "call_1", "args_summary": "the shed",
                "risk_level": "high", "irreversible": true,
            }),
        ),
        aaep_event(
            6,
            "tool.completed",
            &json!({ "tool": "sell", "tool_call_id": "call_1", "status": "success" }),
        ),
        aaep_event(7, "session.completed", &json!({})),
    ];
    house.pushed("/aaep/v1/events", &more).await;
    let kinds: Vec<_> =
        house.records().iter().map(|it| it.kind).filter(|it| *it != Kind::Event).collect();
    assert_eq!(kinds, [Kind::Ask, Kind::Answer]);
    let spoken = told::told(&house, &session, Protocol::Aaep);
    let ran = spoken.iter().find(|it| it["type"] == "aaep:agent.tool.invoked").unwrap();
    assert_eq!(ran["summary_normal"], "wren runs sell: the shed", "it was confirmed: {ran}");
    house.assert_conformant(&session);
}

#[tokio::test]
async fn what_an_agent_says_about_its_own_ask_is_no_answer() {
    let house = House::open().await;
    let mut events = confirmation(600);
    events.push(state(4, "awaiting_input", "calling_tool"));
    let session = house.pushed("/aaep/v1/events", &events).await;
    assert!(house.gateway.desk.inbox().is_empty(), "it went on");
    let kinds: Vec<_> = house.records().iter().map(|it| it.kind).collect();
    let (event, ask, gone) = (Kind::Event, Kind::Ask, Kind::Withdrawal);
    assert_eq!(kinds, [event, event, ask, event, gone, event]);
    assert_eq!(
        house.replies(&format!("/aaep/v1/replies?session={session}")).await,
        Vec::<Value>::new()
    );
    house.assert_conformant(&session);
}

#[tokio::test]
async fn questions_are_answered_with_what_they_take_and_end_with_their_session() {
    let house = House::open().await;
    let choices = json!({
        "accepted_response_kinds": ["multiple_choice"],
        "choices": [{ "value": "old", "label": "The old one" }, { "value": "new", "label": "The new one" }],
    });
    let number = json!({ "accepted_response_kinds": ["numeric"], "reply_token": "rpl_3" });
    let started = aaep_event(1, "session.started", &json!({}));
    let waits = state(2, "idle", "awaiting_input");
    let events = [started, waits, question(3, &choices), question(4, &number)];
    let session = house.pushed("/aaep/v1/events", &events).await;
    let open = house.gateway.desk.inbox();
    let choosing = open.iter().find(|it| it.sender.as_ref().unwrap().token == "rpl_2").unwrap();
    let page = house.get("/").await.text;
    assert!(page.contains("type=\"radio\" name=\"choice\" value=\"old\""), "{page}");
    assert!(page.contains("type=\"number\""), "{page}");
    let wrong = house.give(&choosing.ask.id, PersonAnswer::Yes).await.unwrap_err();
    assert!(wrong.to_string().contains("old, new"), "{wrong}");
    let body = json!({ "choice": "The new one" }).to_string();
    let headers = format!("Authorization: Bearer {}\r\n", house.person);
    let line = format!("POST /api/asks/{}/answer", choosing.ask.id);
    assert_eq!(house.send(&line, &headers, body.as_bytes()).await.status, 200);
    let replies = house.replies(&format!("/aaep/v1/replies?session={session}")).await;
    assert_eq!(replies.len(), 1, "{replies:?}");
    assert_eq!(
        (&replies[0]["reply_token"], &replies[0]["response"]),
        (&json!("rpl_2"), &json!("new"))
    );

    house.pushed("/aaep/v1/events", &[aaep_event(5, "session.completed", &json!({}))]).await;
    assert!(house.gateway.desk.inbox().is_empty(), "nobody waits any more");
    house.assert_conformant(&session);
}

#[tokio::test]
async fn an_interrupt_is_answered_here_and_resumed_by_its_producer() {
    let house = House::open().await;
    let mut events = agui_stream();
    events.truncate(7);
    events.push(json!({
        "type": "RUN_FINISHED", "threadId": "shed", "runId": "r1",
        "outcome": { "type": "interrupt", "interrupts": [
            { "id": "int-1", "reason": "tool_call", "toolCallId": "c1", "message": "It is nothing." },
        ] },
    }));
    let session = house.pushed("/agui/threads/shed/events", &events).await;
    let inbox = house.get("/api/inbox").await.json();
    let ask = &inbox["asks"][0];
    assert_eq!((&ask["tool"], &ask["subject"]), (&json!("look"), &json!("where: shed")), "{inbox}");
    house.give(ask["id"].as_str().unwrap(), PersonAnswer::No).await.unwrap();
    let resume = house.replies("/agui/threads/shed/resume").await;
    let entry =
        json!({ "interruptId": "int-1", "status": "resolved", "payload": { "approved": false } });
    assert_eq!(resume, std::slice::from_ref(&entry));
    let again = json!({
        "type": "RUN_STARTED", "threadId": "shed", "runId": "r2", "protocolVersion": "1.0",
        "input": {
            "threadId": "shed", "runId": "r2", "messages": [], "tools": [], "context": [],
            "forwardedProps": {}, "state": {}, "resume": [entry],
        },
    });
    let finished = json!({ "type": "RUN_FINISHED", "threadId": "shed", "runId": "r2" });
    house.pushed("/agui/threads/shed/events", &[again, finished]).await;
    let closings = house.records().iter().filter(|it| it.kind == Kind::Withdrawal).count();
    assert_eq!(closings, 0);
    house.assert_conformant(&session);
}

#[tokio::test]
async fn a_question_over_aep_gets_a_hook_response_that_names_it() {
    let house = House::open().await;
    let asked = json!({ "content": [{ "type": "question", "text": "Which rake?" }] });
    let events = [
        aep_event("evt_1", "session.start", &json!({})),
        aep_event("evt_2", "question.asked", &asked),
    ];
    let session = house.pushed("/aep/v0.1/events", &events).await;
    let ask = house.gateway.desk.inbox().remove(0).ask;
    house.give(&ask.id, PersonAnswer::Text("The red one.".to_owned())).await.unwrap();
    let replies = house.replies(&format!("/aep/v0.1/replies?session={session}")).await;
    assert_eq!(replies.len(), 1, "{replies:?}");
    assert_eq!(replies[0]["request_event_id"], "evt_2");
    assert_eq!(replies[0]["control"]["message"], "The red one.");
    let found = check::value(Protocol::Aep, &replies[0]);
    assert!(found.iter().all(|it| it.rule.severity != Severity::Error), "{found:?}");
    house.assert_conformant(&session);
}

#[tokio::test]
async fn replies_are_told_to_the_key_that_asked_and_to_no_other() {
    let house = House::open().await;
    let session = house.pushed("/aaep/v1/events", &confirmation(600)).await;
    let path = format!("/aaep/v1/replies?session={session}");
    assert_eq!(house.get(&path).await.status, 403, "a person's key does not emit");
    let other = house.gateway.keys.issue("other", &[Scope::Emit]).unwrap().unwrap();
    let headers = format!("Authorization: Bearer {other}\r\n");
    assert_eq!(house.send(&format!("GET {path}"), &headers, b"").await.status, 404);
}

#[tokio::test]
async fn a_pushed_ask_survives_a_restart_and_ends_when_its_producer_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings::new(dir.path().join("data"));
    let push = |events: Vec<Value>| Push {
        source: Pusher {
            protocol: Protocol::Aaep,
            thread: None,
            door: "http",
            key: "agent".to_owned(),
            idempotency: None,
        },
        messages: events.iter().map(|it| Ok(Bytes::from(it.to_string()))).collect(),
    };
    let gateway = Gateway::open(settings.clone(), Clock::default()).unwrap();
    gateway.push(push(confirmation(600))).await.unwrap();
    let before = gateway.desk.inbox();
    drop(gateway);
    let gateway = Gateway::open(settings, Clock::default()).unwrap();
    assert_eq!(gateway.desk.inbox(), before);
    gateway.desk.sweep().await;
    assert_eq!(gateway.desk.inbox().len(), 1, "nobody has to be connected");
    gateway.push(push(vec![state(4, "awaiting_input", "thinking")])).await.unwrap();
    assert!(gateway.desk.inbox().is_empty());
}

#[tokio::test]
async fn a_handoff_stands_until_it_is_done_or_its_agent_goes_on() {
    let house = House::open().await;
    let handoff = |number: u64| {
        let fields = json!({
            "reason": "Only the owner may sell it.", "handoff_target": "human", "target_type": "human",
        });
        aaep_event(number, "handoff.requested", &fields)
    };
    let events = [aaep_event(1, "session.started", &json!({})), handoff(2)];
    let session = house.pushed("/aaep/v1/events", &events).await;
    let inbox = house.get("/api/inbox").await.json();
    let item = &inbox["asks"][0];
    assert_eq!(item["kind"], "handoff", "{inbox}");
    assert_eq!(item["handoff"]["reason"], "Only the owner may sell it.");
    assert!(item["deadline"].is_null());
    house.gateway.desk.sweep().await;
    house.gateway.desk.lapse().await;
    let id = item["id"].as_str().unwrap();
    assert!(house.give(id, PersonAnswer::Text("why".to_owned())).await.is_err());
    house.give(id, PersonAnswer::Accept).await.unwrap();
    house.pushed("/aaep/v1/events", &[handoff(3)]).await;
    assert_eq!(house.gateway.desk.inbox().len(), 1);
    let invoked = json!({ "tool": "look", "tool_call_id": "call_9", "args_summary": "the shed" });
    house.pushed("/aaep/v1/events", &[aaep_event(4, "tool.invoked", &invoked)]).await;
    assert!(house.gateway.desk.inbox().is_empty(), "the agent works again");
    house.assert_conformant(&session);
}
