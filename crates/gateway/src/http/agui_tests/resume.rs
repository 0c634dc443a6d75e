//! Asks over AG-UI: shown, ended over, answered by the next run.

use banister_journal::Kind;

use super::*;
use crate::desk::Decided;
use crate::keys::Scope;
use crate::serve::Serving;

/// A gateway that listens, with one session whose turn is under way.
struct House {
    _dir: tempfile::TempDir,
    gateway: Arc<Gateway>,
    serving: Serving,
    session: String,
    person: String,
}

impl House {
    async fn open() -> Self {
        let (dir, gateway, session) = at_work().await;
        let any = "127.0.0.1:0".parse().unwrap();
        let serving = serve::start(&gateway, any, &dir.path().join("s")).await.unwrap();
        let person = std::fs::read_to_string(dir.path().join("data/keys/person.key")).unwrap();
        Self { _dir: dir, gateway, serving, session, person: person.trim().to_owned() }
    }

    /// An agent wants something that a person decides about; what it is told in the end.
    async fn ask(&self, id: &str) -> tokio::task::JoinHandle<Decided> {
        let payload = json!({
            "session_id": "one", "cwd": "/src", "hook_event_name": "PreToolUse",
            "tool_name": "Bash", "tool_use_id": id,
            "tool_input": { "command": "git push --force origin main" },
        });
        let accepted =
            self.gateway.accept(&Incoming::of_claude("PreToolUse", &payload)).await.unwrap();
        let gateway = Arc::clone(&self.gateway);
        self.gateway.tasks.spawn(async move {
            gateway.desk.decide(accepted.gate.as_ref(), accepted.ask.as_deref()).await
        })
    }

    async fn post(&self, key: &str, resume: Value) -> (String, Vec<u8>) {
        let head =
            format!("POST /agui/sessions/{} HTTP/1.1\r\nAuthorization: Bearer {key}", self.session);
        let mut input = json!({ "threadId": "t", "runId": "r", "messages": [] });
        if !resume.is_null() {
            input["resume"] = resume;
        }
        exchange(self.serving.address, &head, &input.to_string()).await
    }

    /// The events of a run that is let in.
    async fn run(&self, resume: Value) -> Vec<Value> {
        let (head, body) = self.post(&self.person, resume).await;
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}{}", String::from_utf8_lossy(&body));
        let events = decoded(Encoding::Sse, &body);
        is_whole(&events);
        events
    }

    /// The problem of one that is not.
    async fn refused(&self, key: &str, resume: Value) -> (u16, Value) {
        let (head, body) = self.post(key, resume).await;
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_slice(&body).unwrap())
    }

    async fn closes(&self) -> usize {
        let records = self.gateway.session_after(&self.session, 0).await.unwrap();
        let closes = [Kind::Answer, Kind::Expiry, Kind::Withdrawal];
        records.iter().filter(|record| closes.contains(&record.kind)).count()
    }
}

fn resolved(id: &str, payload: &Value) -> Value {
    json!([{ "interruptId": id, "status": "resolved", "payload": payload }])
}

/// The interrupts that a run ended over.
fn interrupts(events: &[Value]) -> &Vec<Value> {
    events.last().unwrap()["outcome"]["interrupts"].as_array().unwrap()
}

fn told(events: &[Value]) -> &Value {
    let custom = events.iter().find(|event| event["name"] == "banister.resume");
    &custom.expect("what became of the answers")["value"]
}

#[tokio::test]
async fn a_run_ends_over_an_ask_and_the_next_one_answers_it() {
    for (payload, behavior, outcome) in [
        (json!({ "approved": true }), "Allow", "accepted"),
        (json!({ "approved": false, "message": "Not now." }), "Deny", "rejected"),
        (json!({ "approved": true, "editedArgs": { "command": "ls" } }), "Deny", "rejected"),
        (json!(true), "Allow", "accepted"),
    ] {
        let house = House::open().await;
        let decided = house.ask("toolu_1").await;
        let events = house.run(Value::Null).await;
        let [interrupt] = interrupts(&events).as_slice() else { panic!("{events:?}") };
        assert_eq!(interrupt["toolCallId"], "toolu_1");
        assert_eq!(interrupt.get("expiresAt"), None, "a person can extend it");
        let cards = events[1]["messages"].as_array().unwrap();
        let card = cards.iter().find(|card| card["activityType"] == "banister.ask").unwrap();
        assert_eq!(card["content"]["status"], "open");

        let next = house.run(resolved(interrupt["id"].as_str().unwrap(), &payload));
        let end = async {
            let decided = decided.await.unwrap();
            tell(&house.gateway, "Stop", json!({ "last_assistant_message": "Done." })).await;
            decided
        };
        let (events, decided) = tokio::join!(next, end);
        assert_eq!(format!("{:?}", decided.behavior), behavior, "{payload}");
        assert_eq!(told(&events)[0]["outcome"], outcome, "{payload}");
        assert_eq!(told(&events)[0]["counted"], true);
        assert_eq!(events.last().unwrap()["type"], "RUN_FINISHED");
        assert_eq!(events.last().unwrap().get("outcome"), None);
        assert_eq!(house.closes().await, 1);
    }
}

#[tokio::test]
async fn an_ask_that_comes_up_while_somebody_is_attached_shows_and_ends_the_run() {
    let house = House::open().await;
    let (outlet, mut body) = outlet_of(Encoding::Sse);
    let stop = CancellationToken::new();
    let run = a_run(&house.gateway, &house.session, outlet);
    let attached = house.gateway.tasks.spawn(Arc::clone(&house.gateway).attach(run, stop));
    let mut bytes = piece(&mut body).await.to_vec();
    let decided = house.ask("toolu_1").await;
    attached.await.unwrap();
    bytes.extend(body.collect().await.unwrap().to_bytes());
    let events = decoded(Encoding::Sse, &bytes);
    is_whole(&events);
    let card = events.iter().position(|event| event["activityType"] == "banister.ask").unwrap();
    assert_eq!(events[card]["content"]["status"], "open");
    assert_eq!(interrupts(&events).len(), 1);
    decided.abort();
}

#[tokio::test]
async fn what_was_cancelled_is_not_allowed() {
    let house = House::open().await;
    let decided = house.ask("toolu_1").await;
    let events = house.run(Value::Null).await;
    let id = interrupts(&events)[0]["id"].as_str().unwrap();
    let next = house.run(json!([{ "interruptId": id, "status": "cancelled" }]));
    let end = async {
        let decided = decided.await.unwrap();
        tell(&house.gateway, "Stop", json!({ "last_assistant_message": "Done." })).await;
        decided
    };
    let (events, decided) = tokio::join!(next, end);
    assert_eq!(format!("{:?}", decided.behavior), "Deny");
    assert_eq!(told(&events)[0]["outcome"], "withdrawn");
}

#[tokio::test]
async fn what_was_answered_elsewhere_is_taken_and_told_even_from_who_may_not_answer() {
    let house = House::open().await;
    let decided = house.ask("toolu_1").await;
    let events = house.run(Value::Null).await;
    let id = interrupts(&events)[0]["id"].as_str().unwrap().to_owned();
    let ask = house.gateway.desk.inbox().remove(0).ask;
    let answer = banister_events::activity::Answer {
        token: ask.token,
        reply: banister_events::activity::Reply::Reject,
        by: None,
        message: None,
        time: None,
    };
    house.gateway.desk.reply(&answer, "http", "person").await.unwrap();
    assert_eq!(format!("{:?}", decided.await.unwrap().behavior), "Deny");
    tell(&house.gateway, "Stop", json!({ "last_assistant_message": "Done." })).await;

    let reader = house.gateway.keys.issue("reader", &[Scope::Watch]).unwrap().unwrap();
    let (head, body) = house.post(&reader, resolved(&id, &json!({ "approved": true }))).await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let events = decoded(Encoding::Sse, &body);
    is_whole(&events);
    let row = &told(&events)[0];
    assert_eq!(
        (&row["interruptId"], &row["outcome"], &row["counted"]),
        (&json!(id), &json!("rejected"), &json!(false))
    );
    assert_eq!(house.closes().await, 1, "the first answer won");
}

#[tokio::test]
async fn who_may_only_watch_cannot_answer_and_what_nobody_asked_is_an_error() {
    let house = House::open().await;
    let decided = house.ask("toolu_1").await;
    let events = house.run(Value::Null).await;
    let id = interrupts(&events)[0]["id"].as_str().unwrap().to_owned();
    let yes = json!({ "approved": true });

    let reader = house.gateway.keys.issue("reader", &[Scope::Watch]).unwrap().unwrap();
    let (status, problem) = house.refused(&reader, resolved(&id, &yes)).await;
    assert_eq!((status, &problem["error"]["code"]), (403, &json!("scope")));

    // Nothing counts where something of it is wrong.
    let both = json!([
        { "interruptId": id, "status": "resolved", "payload": yes },
        { "interruptId": "ask_nobody", "status": "resolved", "payload": yes },
    ]);
    let (status, problem) = house.refused(&house.person, both).await;
    let error = &problem["error"];
    assert_eq!((status, &error["rule"]), (422, &json!("RESUME-01")));
    assert_eq!(error["pointer"], "/resume/1/interruptId");
    assert!(error["remedy"].as_str().is_some_and(|remedy| !remedy.is_empty()));

    let (status, problem) = house.refused(&house.person, resolved(&id, &json!("maybe"))).await;
    assert_eq!((status, &problem["error"]["rule"]), (422, &json!("RESUME-02")));
    assert_eq!(house.closes().await, 0);
    assert_eq!(house.gateway.desk.inbox().len(), 1, "it still waits");
    decided.abort();
}

#[tokio::test]
async fn another_sessions_ask_is_not_answered_here() {
    let house = House::open().await;
    let decided = house.ask("toolu_1").await;
    let id = house.gateway.desk.inbox().remove(0).ask.id;
    let payload = json!({ "session_id": "two", "cwd": "/src", "hook_event_name": "UserPromptSubmit",
        "prompt": "Go." });
    let two = house.gateway.accept(&Incoming::of_claude("UserPromptSubmit", &payload)).await;
    let two = two.unwrap().records[0].session.clone();
    let house = House { session: two, ..house };
    let resume = resolved(&id, &json!({ "approved": true }));
    let (status, problem) = house.refused(&house.person, resume).await;
    assert_eq!((status, &problem["error"]["rule"]), (422, &json!("RESUME-01")));
    decided.abort();
}

#[tokio::test]
async fn a_revoked_key_ends_its_run_and_nobody_elses() {
    let house = House::open().await;
    let reader = house.gateway.keys.issue("reader", &[Scope::Watch]).unwrap().unwrap();
    let head = |key: &str| {
        format!("POST /agui/sessions/{} HTTP/1.1\r\nAuthorization: Bearer {key}", house.session)
    };
    let input = json!({ "threadId": "t", "runId": "r", "messages": [] }).to_string();
    let mut streams = Vec::new();
    for key in [&reader, &house.person] {
        let mut stream = request(house.serving.address, &head(key), &input).await;
        let mut bytes = Vec::new();
        while !bytes.windows(3).any(|three| three == b"Go.") {
            assert!(stream.read_buf(&mut bytes).await.unwrap() > 0);
        }
        streams.push((stream, bytes));
    }
    assert!(house.gateway.keys.revoke("reader").unwrap());
    let mut ends = Vec::new();
    for (mut stream, mut bytes) in streams {
        stream.read_to_end(&mut bytes).await.unwrap();
        let events = decoded(Encoding::Sse, &split(&bytes).1);
        is_whole(&events);
        ends.push(events.last().unwrap().clone());
        // The other one goes on until its turn ends.
        tell(&house.gateway, "Stop", json!({ "last_assistant_message": "Done." })).await;
    }
    assert_eq!((kind(&ends[0]), &ends[0]["code"]), ("RUN_ERROR", &json!("revoked")));
    assert_eq!(kind(&ends[1]), "RUN_FINISHED");
}
