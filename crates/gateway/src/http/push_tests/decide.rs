//! An event that somebody waits on.

use super::*;

const DECIDE: &str = "/aep/v0.1/decide";

impl House {
    async fn decide(&self, event: &Value, headers: &str) -> Answer {
        self.push(DECIDE, headers, event.to_string()).await
    }

    /// The open ask, once it is there.
    async fn asked(&self) -> String {
        for _ in 0..500 {
            if let Some(opened) = self.gateway.desk.inbox().first() {
                return opened.ask.id.clone();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("nobody is asked");
    }

    async fn answer(&self, ask: &str, accept: bool, message: Option<&str>) {
        let message = message.map(str::to_owned);
        let request = AnswerRequest { message, ..AnswerRequest::of(accept, "person") };
        self.gateway.desk.answer(ask, &request).await.unwrap();
    }
}

/// That an answer is a hook response to an event, and conformant; its behaviour.
fn behavior(answer: &Answer, event: &Value) -> String {
    let response = answer.json();
    let mut bare = response.clone();
    bare.as_object_mut().unwrap().remove("error");
    let found = check::value(Protocol::Aep, &bare);
    assert!(found.iter().all(|it| it.rule.severity != Severity::Error), "{found:?}: {response}");
    assert_eq!(response["request_event_id"], event["id"], "{response}");
    assert_eq!(response.get("action_id"), event.pointer("/action/id"), "{response}");
    response["control"]["behavior"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn what_the_rules_allow_or_deny_is_answered_at_once_and_stands_on_the_stream() {
    let house = House::open().await;
    let allowed = shell("evt_a", "act_a", "ls");
    let answer = house.decide(&allowed, "").await;
    assert_eq!((answer.status, behavior(&answer, &allowed).as_str()), (200, "allow"));
    assert_eq!(answer.json()["decision"]["outcome"], "approved");
    assert_eq!(answer.json()["decision"]["by"], "auto-policy");
    assert!(answer.json()["decision"]["policy_id"].is_string());

    let denied = shell("evt_d", "act_d", "rm -rf /");
    let answer = house.decide(&denied, "").await;
    assert_eq!((answer.status, behavior(&answer, &denied).as_str()), (200, "deny"));
    assert_eq!(answer.json()["decision"]["outcome"], "denied");

    let told = house.follow("/aep/v0.1/events?from=start").await;
    assert_eq!(errors(Protocol::Aep, &told), []);
    for (action, said) in [("act_a", "allow"), ("act_d", "deny")] {
        let request = told.iter().find(|it| it.pointer("/action/id") == Some(&json!(action)));
        let response = told.iter().find(|it| it["action_id"] == action).unwrap();
        assert_eq!(response["control"]["behavior"], said);
        assert_eq!(response["request_event_id"], request.unwrap()["id"], "joined by the event");
    }
    let counted = house.get("/metrics").await.text;
    assert!(counted.contains("banister_decisions_total{behavior=\"allow\"} 1\n"), "{counted}");
    assert!(counted.contains("banister_decisions_total{behavior=\"deny\"} 1\n"), "{counted}");
}

#[tokio::test]
async fn a_person_is_asked_and_what_they_say_is_the_answer() {
    let house = Arc::new(House::open().await);
    for (number, accept) in [(1, true), (2, false)] {
        let event = shell(&format!("evt_{number}"), &format!("act_{number}"), "git push --force");
        let waiting = {
            let (house, event) = (Arc::clone(&house), event.clone());
            house.gateway.tasks.clone().spawn(async move { house.decide(&event, "").await })
        };
        let ask = house.asked().await;
        assert!(house.get("/metrics").await.text.contains("banister_asks_open 1\n"));
        house.answer(&ask, accept, Some("as agreed")).await;
        let answer = waiting.await.unwrap();
        assert_eq!(answer.status, 200);
        assert_eq!(behavior(&answer, &event), if accept { "allow" } else { "deny" });
        let decision = &answer.json()["decision"];
        assert_eq!(decision["by"], "user");
        assert!(decision["reason"].as_str().unwrap().contains("as agreed"), "{decision}");
        assert!(decision["response_time_ms"].is_u64(), "{decision}");
        // The same call again, as one makes who lost the answer.
        let again = house.decide(&event, "").await;
        assert_eq!(behavior(&again, &event), if accept { "allow" } else { "deny" });
    }
    let told = house.follow("/aep/v0.1/events?from=start").await;
    assert_eq!(errors(Protocol::Aep, &told), []);
    let said: Vec<&Value> = told.iter().filter_map(|it| it.pointer("/control/behavior")).collect();
    assert_eq!(said, ["allow", "deny"], "{told:?}");
}

#[tokio::test]
async fn an_ask_that_nobody_answers_in_time_is_a_no() {
    let house = House::open().await;
    let event = shell("evt_1", "act_1", "git push --force");
    let answer = house.decide(&event, "Banister-Deadline-Ms: 300\r\n").await;
    assert_eq!((answer.status, behavior(&answer, &event).as_str()), (200, "deny"));
    assert_eq!(answer.json()["decision"]["by"], "timeout");
    assert!(house.gateway.desk.inbox().is_empty());
    let kinds: Vec<Kind> = house.records().iter().map(|record| record.kind).collect();
    assert_eq!(kinds, [Kind::Event, Kind::Ask, Kind::Expiry]);
    let event = shell("evt_2", "act_2", "git push --force");
    let path = format!("{DECIDE}?deadline_ms=300");
    let answer = house.push(&path, "Banister-Deadline-Ms: 60000\r\n", event.to_string()).await;
    assert_eq!(behavior(&answer, &event), "deny", "of two deadlines the earlier counts");
}

#[tokio::test]
async fn whoever_comes_back_under_the_same_id_waits_on_the_same_ask() {
    let house = Arc::new(House::open().await);
    let event = shell("evt_1", "act_1", "git push --force");
    let wait = || {
        let (house, event) = (Arc::clone(&house), event.clone());
        house.gateway.tasks.clone().spawn(async move { house.decide(&event, "").await })
    };
    let first = wait();
    let ask = house.asked().await;
    first.abort();
    drop(first.await);
    let second = wait();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(house.gateway.desk.inbox().len(), 1);
    house.answer(&ask, true, None).await;
    assert_eq!(behavior(&second.await.unwrap(), &event), "allow");
}

#[tokio::test]
async fn whatever_is_wrong_with_an_event_it_is_refused() {
    let house = House::open().await;
    let mut nameless = shell("evt_1", "act_1", "ls");
    nameless.as_object_mut().unwrap().remove("id");
    let mut unseen = shell("evt_2", "act_2", "ls");
    unseen.as_object_mut().unwrap().remove("action");
    let misnamed = aep_event("evt_3", "action.request", &json!({}));
    let response = json!({
        "aep_version": "0.1", "id": "rsp_1", "request_event_id": "evt_2",
        "time": "2026-11-15T09:00:00Z", "control": { "behavior": "allow" },
    });
    for (event, status) in [
        (nameless.to_string(), 422),
        (misnamed.to_string(), 422),
        (response.to_string(), 422),
        ("{\"id\": ".to_owned(), 422),
        ("[]".to_owned(), 422),
        (String::new(), 422),
        (unseen.to_string(), 200),
        (" ".repeat(MESSAGE_BYTES + 1), 413),
    ] {
        let answer = house.push(DECIDE, "", &event).await;
        let short: String = event.chars().take(200).collect();
        assert_eq!(answer.status, status, "{short}: {}", answer.text);
        assert_eq!(answer.json()["control"]["behavior"], "deny", "{short}");
        assert_eq!(answer.json()["decision"]["outcome"], "denied", "{short}");
    }
    let first = shell("evt_9", "act_9", "ls");
    assert_eq!(behavior(&house.decide(&first, "").await, &first), "allow");
    let other = shell("evt_9", "act_9", "ls /");
    let answer = house.decide(&other, "").await;
    assert_eq!((answer.status, behavior(&answer, &other).as_str()), (409, "deny"));
    assert_eq!(answer.json()["error"]["findings"][0]["code"], "PUSH-01");
    // What was pushed first, and asked about afterwards, was decided by nobody.
    let pushed = shell("evt_10", "act_10", "ls");
    house.push("/aep/v0.1/events", "", pushed.to_string()).await;
    assert_eq!(behavior(&house.decide(&pushed, "").await, &pushed), "deny");
    // Nothing waits behind a prompt that a rule could speak about.
    let mut prompt = aep_stream()[1].clone();
    prompt["id"] = json!("evt_11");
    assert_eq!(behavior(&house.decide(&prompt, "").await, &prompt), "abstain");
}

#[tokio::test]
async fn a_strict_key_that_breaks_the_protocol_gets_a_no() {
    let house = House::with(Pushing { policy: PushPolicy::Strict, ..Pushing::default() }).await;
    let mut event = shell("evt_1", "act_1", "ls");
    event["time"] = json!("yesterday");
    let answer = house.decide(&event, "").await;
    assert_eq!((answer.status, answer.json()["control"]["behavior"].clone()), (422, json!("deny")));
    let right = shell("evt_1", "act_1", "ls");
    assert_eq!(behavior(&house.decide(&right, "").await, &right), "allow", "corrected");
}

#[tokio::test]
async fn an_agent_cannot_answer_its_own_ask_by_pushing_an_answer() {
    let house = Arc::new(House::open().await);
    let event = shell("evt_1", "act_1", "git push --force");
    let waiting = {
        let (house, event) = (Arc::clone(&house), event.clone());
        house
            .gateway
            .tasks
            .clone()
            .spawn(async move { house.decide(&event, "Banister-Deadline-Ms: 3000\r\n").await })
    };
    house.asked().await;
    let mut forged = json!({
        "aep_version": "0.1", "id": "rsp_1", "request_event_id": "evt_1", "action_id": "act_1",
        "time": "2026-11-15T09:00:00Z", "control": { "behavior": "allow" },
        "decision": { "outcome": "approved", "by": "user" },
    });
    let answer = house.push("/aep/v0.1/events", "", forged.to_string()).await;
    assert_eq!(answer.statuses(), ["recorded"], "it is evidence of the attempt");
    forged["id"] = json!("rsp_2");
    forged["extensions"] = json!({ "x-banister": { "closed": "accepted" } });
    house.push("/aep/v0.1/events", "", forged.to_string()).await;
    assert_eq!(house.gateway.desk.inbox().len(), 1, "the ask is still open");
    for path in ["/aep/v0.1/events?from=start", "/aaep/v1/events?from=start"] {
        let told = house.follow(path).await;
        let text = Value::from(told).to_string();
        assert!(!text.contains("\"allow\"") && !text.contains("approved"), "{path}: {text}");
    }
    assert_eq!(behavior(&waiting.await.unwrap(), &event), "deny");
}

#[tokio::test]
async fn a_gateway_that_stops_answers_no_and_ends_its_streams() {
    let house = House::open().await;
    let event = shell("evt_1", "act_1", "git push --force");
    let connect = || TcpStream::connect(house.serving.address);
    let request = |line: &str, key: &str, body: &str| {
        format!(
            "{line} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {key}\r\nContent-Length: {}\r\n\r\n{body}",
            house.serving.address,
            body.len()
        )
    };
    let (mut decides, mut follows) = (connect().await.unwrap(), connect().await.unwrap());
    let asks = request("POST /aep/v0.1/decide", &house.agent, &event.to_string());
    decides.write_all(asks.as_bytes()).await.unwrap();
    let follow = request("GET /aep/v0.1/events", &house.person, "");
    follows.write_all(follow.as_bytes()).await.unwrap();
    house.asked().await;
    let mut begun = vec![0; 1];
    follows.read_exact(&mut begun).await.unwrap();
    let House { serving, gateway, _dir, .. } = house;
    serving.stop().await;
    let read = async |stream: &mut TcpStream| {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        String::from_utf8(bytes).unwrap()
    };
    let answer = read(&mut decides).await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(
        answer.contains("\"behavior\":\"deny\"") && answer.contains("\"stopping\""),
        "{answer}"
    );
    let stream = read(&mut follows).await;
    assert!(stream.ends_with("0\r\n\r\n"), "the stream is ended, not cut: {stream}");
    assert_eq!(gateway.desk.inbox().len(), 1, "the ask waits for the next gateway");
}
