//! An agent that asks, people who answer at any door, and a run that goes on exactly once.

use banister_events::activity::{Answer, Outcome, Reply};
use banister_events::check::Checker;
use banister_events::event::Protocol;
use banister_journal::{Durability, Record};

use super::*;
use crate::asks::Resumer;
use crate::desk::{AnswerRequest, Opened, PersonAnswer, Refused};
use crate::project::Projection;

fn interrupt(id: &str) -> Value {
    json!({ "id": id, "reason": "confirmation", "message": format!("Really, {id}?") })
}

fn interrupted(interrupts: &[Value]) -> Value {
    json!({
        "type": "RUN_FINISHED", "threadId": "t", "runId": "r1",
        "outcome": { "type": "interrupt", "interrupts": interrupts },
    })
}

fn says_hello() -> Vec<Value> {
    vec![
        start(),
        json!({ "type": "STATE_SNAPSHOT", "snapshot": { "step": 1 } }),
        json!({ "type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "assistant" }),
        json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "Hello." }),
        json!({ "type": "TEXT_MESSAGE_END", "messageId": "m1" }),
    ]
}

impl House {
    /// A run that ended with interrupts; what its client has.
    async fn interrupted(&mut self, interrupts: &[Value]) -> Mind {
        let mut mind = Mind::new();
        let (client, agent) = begun(self, &mind, "r1").await;
        let events = [says_hello(), vec![interrupted(interrupts)]].concat();
        agent.send(Act::Send(frames(&events))).await.unwrap();
        agent.send(Act::End).await.unwrap();
        mind.hear(&client.whole().await);
        mind
    }

    fn inbox(&self) -> Vec<Opened> {
        self.gateway.desk.inbox()
    }

    /// The open ask for an interrupt.
    fn ask(&self, interrupt: &str) -> Opened {
        let asks = |it: &Opened| it.sender.as_ref().is_some_and(|it| it.token == interrupt);
        self.inbox().into_iter().find(asks).unwrap()
    }

    async fn answer(&self, interrupt: &str, answer: PersonAnswer) -> Result<(), Refused> {
        let id = self.ask(interrupt).ask.id;
        let request = AnswerRequest { answer, ..AnswerRequest::of(true, "person") };
        self.gateway.desk.answer(&id, &request).await.map(drop)
    }

    /// The agent is called, and ends the run that goes on.
    async fn goes_on(&mut self) -> Value {
        let (input, agent) = self.next().await;
        let run = &input["runId"];
        let events = [
            json!({ "type": "RUN_STARTED", "threadId": "t", "runId": run, "protocolVersion": "1.0" }),
            json!({ "type": "TEXT_MESSAGE_CHUNK", "messageId": "m9", "delta": "Went on." }),
            json!({ "type": "RUN_FINISHED", "threadId": "t", "runId": run }),
        ];
        agent.send(Act::Send(frames(&events))).await.unwrap();
        agent.send(Act::End).await.unwrap();
        input
    }

    /// Waits for a kind of record.
    async fn recorded(&self, kind: Kind, count: usize) -> Vec<Arc<Record>> {
        for _ in 0..2_000 {
            let records = self.records().await;
            if records.iter().filter(|record| record.kind == kind).count() >= count {
                return records;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("no {kind:?}: {:?}", self.records().await);
    }

    /// Nothing more reaches the agent.
    async fn is_quiet(&mut self) {
        let more = timeout(Duration::from_millis(300), self.asked.recv()).await;
        assert!(more.is_err(), "{more:?}");
    }

    async fn restarted(self) -> Self {
        let Self { dir, gateway, serving, asked, agent, at } = self;
        let settings = gateway.settings.clone();
        serving.stop().await;
        drop(gateway);
        let gateway = Gateway::open(settings, Clock::default()).unwrap();
        let any = "127.0.0.1:0".parse().unwrap();
        let serving = serve::start(&gateway, any, &dir.path().join("s")).await.unwrap();
        Self { dir, gateway, serving, asked, agent, at }
    }
}

fn resume(entries: &[(&str, bool)]) -> Value {
    let entry = |(id, approved): &(&str, bool)| json!({ "interruptId": id, "status": "resolved", "payload": { "approved": approved } });
    entries.iter().map(entry).collect()
}

fn kinds(records: &[Arc<Record>]) -> Vec<Kind> {
    records.iter().map(|record| record.kind).filter(|kind| *kind != Kind::Event).collect()
}

#[tokio::test]
async fn an_interrupt_is_an_ask_and_a_yes_lets_the_run_go_on_with_what_was_kept() {
    let mut house = House::open(|_| {}).await;
    let mind = house.interrupted(&[interrupt("int-1")]).await;
    let asked = house.ask("int-1");
    assert_eq!(asked.ask.words.as_deref(), Some("Really, int-1?"));
    assert!(house.gateway.desk.inbox()[0].sender.is_some());

    house.answer("int-1", PersonAnswer::Accept).await.unwrap();
    let input = house.goes_on().await;
    assert_eq!(input["resume"], resume(&[("int-1", true)]));
    assert_eq!((&input["threadId"], &input["state"]), (&json!("t"), &json!({ "step": 1 })));
    assert_eq!(input["messages"], json!(mind.messages), "as a front end would send them");
    assert_ne!(input["runId"], "r1");
    let records = house.recorded(Kind::Resumption, 2).await;
    assert_eq!(
        kinds(&records),
        [Kind::Parked, Kind::Ask, Kind::Answer, Kind::Resumption, Kind::Resumption],
    );
    house.is_quiet().await;

    // Whoever comes back gets the run that followed, also with a resume of its own.
    let mut late = mind.input("r2");
    late["resume"] = resume(&[("int-1", false)]);
    let events = house.person(&late).await.whole().await;
    let mut back = mind.clone();
    back.hear(&events);
    assert_eq!(back.messages.last().unwrap()["content"], "Went on.");
    house.is_quiet().await;
}

#[tokio::test]
async fn what_everybody_is_told_of_an_interrupt_is_right_in_every_protocol() {
    let mut house = House::open(|_| {}).await;
    house.interrupted(&[interrupt("int-1")]).await;
    house.answer("int-1", PersonAnswer::Reject).await.unwrap();
    assert_eq!(house.goes_on().await["resume"], resume(&[("int-1", false)]));
    let records = house.recorded(Kind::Resumption, 2).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(records);
    let mut projection = Projection::new(Arc::clone(&house.gateway.agents));
    let mut aaep = banister_events::aaep::write::Writer::new("en");
    let mut checker = Checker::new(Protocol::Aaep);
    let mut types = Vec::new();
    for record in house.records().await {
        for activity in projection.next(&record) {
            for event in aaep.write(&activity) {
                let found = checker.message(event.to_string().as_bytes());
                let broken = found
                    .iter()
                    .find(|it| it.rule.severity == banister_events::finding::Severity::Error);
                assert!(broken.is_none(), "{broken:?} {event}");
                types.push(event["type"].as_str().unwrap().to_owned());
            }
        }
    }
    assert!(types.iter().any(|it| it.contains("awaiting.confirmation")), "{types:?}");
}

#[tokio::test]
async fn several_interrupts_are_resumed_together_when_the_last_is_answered_at_any_door() {
    let mut house = House::open(|_| {}).await;
    let all = [interrupt("a"), interrupt("b"), interrupt("c")];
    let mind = house.interrupted(&all).await;
    assert_eq!(house.inbox().len(), 3);
    house.answer("a", PersonAnswer::Reject).await.unwrap();
    let token = house.ask("b").ask.token;
    let reply = Reply::Accept { updated_input: None };
    let answer = Answer { token, reply, by: None, message: None, time: None };
    house.gateway.desk.reply(&answer, "http", "person").await.unwrap();
    house.is_quiet().await;

    // A resume that does not cover what is open is refused, and nothing counts.
    let mut short = mind.input("r2");
    short["resume"] = resume(&[("a", true)]);
    let (status, problem) = house.person(&short).await.problem().await;
    assert_eq!((status, &problem["error"]["code"]), (422, &json!("resume")));
    assert_eq!(house.inbox().len(), 1);

    // The front end answers the last one; what it says about the others is too late.
    let mut full = mind.input("r2");
    full["resume"] = resume(&[("a", true), ("b", true), ("c", true)]);
    let (address, key) = (house.serving.address, house.key("person"));
    let client = house.gateway.tasks.spawn(Client::open_owned(address, key, full));
    let input = house.goes_on().await;
    assert_eq!(input["resume"], resume(&[("a", false), ("b", true), ("c", true)]));
    assert_eq!(input["runId"], "r2");
    let events = client.await.unwrap().whole().await;
    assert_eq!(events.last().unwrap()["type"], "RUN_FINISHED");
    assert!(house.inbox().is_empty());
    house.is_quiet().await;
}

#[tokio::test]
async fn doors_that_answer_at_once_resume_once() {
    let mut house = House::open(|_| {}).await;
    for round in 0..5 {
        let id = format!("int-{round}");
        let mut mind = Mind::new();
        let run = format!("r{round}");
        let (client, agent) = begun(&mut house, &mind, &run).await;
        let ends = json!({
            "type": "RUN_FINISHED", "threadId": "t", "runId": run,
            "outcome": { "type": "interrupt", "interrupts": [interrupt(&id)] },
        });
        let begins = json!({ "type": "RUN_STARTED", "threadId": "t", "runId": run, "protocolVersion": "1.0" });
        agent.send(Act::Send(frames(&[begins, ends]))).await.unwrap();
        agent.send(Act::End).await.unwrap();
        mind.hear(&client.whole().await);
        let mut input = mind.input(&format!("again-{round}"));
        input["resume"] = resume(&[(&id, true)]);
        let (address, key) = (house.serving.address, house.key("person"));
        let first =
            house.gateway.tasks.spawn(Client::open_owned(address, key.clone(), input.clone()));
        input["runId"] = json!(format!("other-{round}"));
        let second = house.gateway.tasks.spawn(Client::open_owned(address, key, input));
        let (yes, no) = tokio::join!(
            house.answer(&id, PersonAnswer::Accept),
            house.answer(&id, PersonAnswer::Reject),
        );
        assert!(!(yes.is_ok() && no.is_ok()), "one answer counts");
        let input = house.goes_on().await;
        assert_eq!(input["resume"].as_array().unwrap().len(), 1, "{input}");
        for client in [first, second] {
            let events = client.await.unwrap().whole().await;
            assert_eq!(events.last().unwrap()["type"], "RUN_FINISHED", "{events:?}");
        }
        house.is_quiet().await;
    }
}

#[tokio::test]
async fn interrupts_and_answers_survive_a_restart() {
    let mut house = House::open(|_| {}).await;
    let mind = house.interrupted(&[interrupt("a"), interrupt("b")]).await;
    house.answer("a", PersonAnswer::Accept).await.unwrap();
    let mut house = house.restarted().await;
    house.is_quiet().await;
    assert_eq!(house.inbox().len(), 1);
    house.answer("b", PersonAnswer::Reject).await.unwrap();
    let input = house.goes_on().await;
    assert_eq!(input["resume"], resume(&[("a", true), ("b", false)]));
    assert_eq!(input["messages"], json!(mind.messages));
    house.recorded(Kind::Resumption, 2).await;

    let mut house = house.restarted().await;
    house.is_quiet().await;
    // A front end that comes so late is told the session, and nothing runs twice.
    let mut late = mind.input("r2");
    late["resume"] = resume(&[("a", true), ("b", true)]);
    let events = house.person(&late).await.whole().await;
    assert_eq!(events.last().unwrap()["type"], "RUN_FINISHED", "{events:?}");
    house.is_quiet().await;
}

#[tokio::test]
async fn an_answer_has_to_fit_the_schema_and_a_refusal_says_what_it_takes() {
    let mut house = House::open(|_| {}).await;
    let count = json!({ "type": "integer", "minimum": 1, "maximum": 5 });
    let schema = |schema: Value, id: &str| json!({ "id": id, "reason": "input_required", "message": "How?", "responseSchema": schema });
    let object =
        json!({ "type": "object", "properties": { "count": count }, "required": ["count"] });
    let word = json!({ "enum": ["approve", "deny"] });
    house
        .interrupted(&[schema(object, "a"), schema(word, "b"), schema(json!({ "not": {} }), "c")])
        .await;
    let wrong = house.answer("a", PersonAnswer::Text("nine".to_owned())).await.unwrap_err();
    assert!(wrong.to_string().contains("\"maximum\":5"), "{wrong}");
    assert!(house.answer("a", PersonAnswer::Accept).await.is_err());
    assert!(house.answer("a", PersonAnswer::Text(r#"{"count": 9}"#.to_owned())).await.is_err());
    house.answer("a", PersonAnswer::Text("3".to_owned())).await.unwrap();
    house.answer("b", PersonAnswer::No).await.unwrap();
    let nothing = house.answer("c", PersonAnswer::Text("anything".to_owned())).await;
    assert!(matches!(nothing, Err(Refused::Wrong(_))), "{nothing:?}");
    house.answer("c", PersonAnswer::Reject).await.unwrap();
    let input = house.goes_on().await;
    let resolved = |id: &str, payload: Value| json!({ "interruptId": id, "status": "resolved", "payload": payload });
    let entries = input["resume"].as_array().unwrap();
    assert_eq!(entries[0], resolved("a", json!({ "count": 3 })));
    assert_eq!(entries[1], resolved("b", json!("deny")));
    assert_eq!(entries[2], json!({ "interruptId": "c", "status": "cancelled" }));
}

#[tokio::test]
async fn an_interrupt_that_expires_is_called_off_and_a_new_message_withdraws_it() {
    let mut house = House::open(|_| {}).await;
    let soon = house.gateway.clock.now() + jiff::SignedDuration::from_millis(1_500);
    let mut expiring = interrupt("late");
    expiring["expiresAt"] = json!(soon.to_string());
    house.interrupted(&[expiring]).await;
    let input = house.goes_on().await;
    assert_eq!(input["resume"], json!([{ "interruptId": "late", "status": "cancelled" }]));
    house.recorded(Kind::Resumption, 2).await;

    let mut mind = Mind::new();
    mind.messages.push(json!({ "id": "u2", "role": "user", "content": "Again." }));
    let (client, agent) = begun(&mut house, &mind, "r3").await;
    let waits = json!({
        "type": "RUN_FINISHED", "threadId": "t", "runId": "r3",
        "outcome": { "type": "interrupt", "interrupts": [interrupt("late")] },
    });
    let begins =
        json!({ "type": "RUN_STARTED", "threadId": "t", "runId": "r3", "protocolVersion": "1.0" });
    agent.send(Act::Send(frames(&[begins, waits]))).await.unwrap();
    agent.send(Act::End).await.unwrap();
    client.whole().await;
    assert_eq!(house.inbox().len(), 1, "the same name in another run is another ask");
    let mut other = mind.clone();
    other.messages.push(json!({ "id": "u3", "role": "user", "content": "Never mind." }));
    let (address, key) = (house.serving.address, house.key("person"));
    let client = house.gateway.tasks.spawn(Client::open_owned(address, key, other.input("r4")));
    assert!(house.goes_on().await.get("resume").is_none());
    client.await.unwrap().whole().await;
    assert!(house.inbox().is_empty());
    let records = house.records().await;
    let ended = records.iter().filter(|record| record.kind == Kind::Withdrawal).count();
    assert_eq!(ended, 1);
    house.is_quiet().await;
}

#[tokio::test]
async fn an_agent_that_interrupts_and_dies_loses_no_answer_and_a_front_end_goes_on() {
    let mut house = House::open(|it| it.resume = Duration::from_millis(300)).await;
    let mind = house.interrupted(&[interrupt("int-1")]).await;
    // Nobody listens where the agent was.
    house.agent.shutdown().await;
    house.answer("int-1", PersonAnswer::Accept).await.unwrap();
    let records = house.recorded(Kind::Resumption, 2).await;
    let told = records.iter().rev().find(|record| record.kind == Kind::Event).unwrap();
    let told: Value = serde_json::from_slice(&told.body).unwrap();
    assert_eq!((&told["type"], &told["code"]), (&json!("RUN_ERROR"), &json!("upstream")));
    let closed = house.gateway.desk.closed(&mind_ask(&records)).unwrap();
    assert_eq!(closed.outcome, Outcome::Accepted);

    // It is back, and nothing happens by itself, also after a restart.
    let listener = TcpListener::bind(house.at).await.unwrap();
    let mut house = house.restarted().await;
    let (requests, asked) = mpsc::channel(16);
    house.asked = asked;
    house.agent.spawn(listening(listener, requests));
    house.is_quiet().await;
    let mut again = mind.input("r2");
    again["resume"] = resume(&[("int-1", false)]);
    let (address, key) = (house.serving.address, house.key("person"));
    let client = house.gateway.tasks.spawn(Client::open_owned(address, key, again));
    let input = house.goes_on().await;
    assert_eq!(input["resume"], resume(&[("int-1", true)]), "the answer that counted");
    client.await.unwrap().whole().await;
}

#[tokio::test]
async fn a_resumption_that_the_gateway_stopped_in_is_told_and_not_tried_again() {
    let mut house = House::open(|_| {}).await;
    house.interrupted(&[interrupt("int-1")]).await;
    let session = session_of("agent", "t");
    // As if the gateway ended between the record and the call.
    let mut claim = house.gateway.asks.take_parked(&session, Resumer::FrontEnd).unwrap();
    let begun = claim.begun("r2", source("agent"), house.gateway.clock.now());
    let facts = vec![begun.into()];
    house.gateway.history.commit(facts, Durability::Synced).await.unwrap();
    std::mem::forget(claim);
    house.answer("int-1", PersonAnswer::Accept).await.unwrap();
    let mut house = house.restarted().await;
    let records = house.recorded(Kind::Resumption, 2).await;
    let told: Value = serde_json::from_slice(&records[records.len() - 2].body).unwrap();
    assert_eq!((&told["type"], &told["code"]), (&json!("RUN_ERROR"), &json!("upstream")));
    house.is_quiet().await;
    let mut house = house.restarted().await;
    house.is_quiet().await;
    assert_eq!(house.records().await.len(), records.len(), "it is told once");
}

/// The id of the ask in these records.
fn mind_ask(records: &[Arc<Record>]) -> String {
    let ask = records.iter().find(|record| record.kind == Kind::Ask).unwrap();
    let ask: Value = serde_json::from_slice(&ask.body).unwrap();
    ask["ask"]["id"].as_str().unwrap().to_owned()
}
