//! What may be pushed, how, by whom, and how much of it.

use super::*;

#[tokio::test]
async fn events_come_in_alone_in_an_array_by_the_line_and_packed() {
    for protocol in Protocol::ALL {
        let (events, path) = stream(protocol);
        let array = Value::from(events.clone()).to_string();
        let pretty = serde_json::to_string_pretty(&events).unwrap();
        let lines = ndjson(&events);
        let line = "Content-Type: application/x-ndjson\r\n";
        let packed = "Content-Encoding: gzip\r\n";
        let both = format!("{line}{packed}");
        for (headers, body) in [
            ("Content-Type: application/json\r\n", array.as_bytes().to_vec()),
            ("", pretty.into_bytes()),
            (line, lines.as_bytes().to_vec()),
            ("", lines.as_bytes().to_vec()),
            (&both, gzip(lines.as_bytes())),
            (packed, gzip(array.as_bytes())),
        ] {
            let house = House::open().await;
            let answer = house.push(path, headers, body).await;
            assert_eq!(answer.status, 200, "{protocol} {headers}: {}", answer.text);
            assert_eq!(answer.statuses(), vec!["recorded"; events.len()], "{}", answer.text);
            let records = house.records();
            assert_eq!(records.len(), events.len());
            assert!(records.iter().all(|record| record.session == records[0].session));
            assert!(records.iter().all(|record| record.findings.is_null()), "{records:?}");
            let sequence: Vec<u64> = records.iter().map(|record| record.seq).collect();
            assert_eq!(sequence, (1..=events.len() as u64).collect::<Vec<_>>());
            for (record, event) in records.iter().zip(&events) {
                let kept: Value = serde_json::from_slice(&record.body).unwrap();
                assert_eq!(&kept, event);
                assert_eq!(record.source.protocol, protocol.name());
            }
        }
        let house = House::open().await;
        for event in &events {
            assert_eq!(house.push(path, "", event.to_string()).await.statuses(), ["recorded"]);
        }
        assert!(house.records().iter().all(|record| record.findings.is_null()), "order is kept");
    }
}

#[tokio::test]
async fn the_same_event_again_gets_the_first_receipt_and_other_bytes_are_refused() {
    let house = House::open().await;
    let (events, path) = stream(Protocol::Aep);
    let first = house.push(path, "", ndjson(&events)).await.json();
    let again = house.push(path, "", ndjson(&events)).await;
    assert_eq!(again.statuses(), vec!["duplicate"; events.len()]);
    let position = |answer: &Value, index: usize| answer["results"][index]["position"].clone();
    for index in 0..events.len() {
        assert_eq!(position(&again.json(), index), position(&first, index));
    }
    assert_eq!(house.records().len(), events.len());

    let mut other = events[2].clone();
    other["action"]["input"]["command"] = json!("rm -rf /");
    let fresh = aep_event("evt_7", "agent.start", &json!({}));
    let batch = [fresh.clone(), other.clone(), events[0].clone(), fresh.clone(), {
        let mut changed = fresh.clone();
        changed["hook"] = json!("Other");
        changed
    }];
    let mixed = house.push(path, "", ndjson(&batch)).await;
    assert_eq!(mixed.statuses(), ["recorded", "refused", "duplicate", "duplicate", "refused"]);
    let mixed = mixed.json();
    assert_eq!(position(&mixed, 3), position(&mixed, 0), "a repeat within the batch");
    for index in [1, 4] {
        assert_eq!(mixed["results"][index]["findings"][0]["code"], "PUSH-01");
    }
    let evidence: Vec<_> =
        house.records().into_iter().filter(|it| it.kind == Kind::Unreadable).collect();
    assert_eq!(evidence.len(), 2, "what was refused is kept");
    assert_eq!(evidence[0].body, other.to_string().as_bytes());
}

#[tokio::test]
async fn events_are_known_again_however_little_of_them_is_kept() {
    let (events, path) = stream(Protocol::Aep);
    for level in banister_journal::Level::ALL {
        let capture = CapturePolicy { level, ..CapturePolicy::default() };
        let house = House::capturing(Pushing { rate: 0, ..Pushing::default() }, capture).await;
        let count = events.len();
        assert_eq!(house.push(path, "", ndjson(&events)).await.statuses(), vec!["recorded"; count]);
        let again = house.push(path, "", ndjson(&events)).await;
        assert_eq!(again.statuses(), vec!["duplicate"; count], "{level:?}");
        let mut other = events[1].clone();
        other["content"][0]["text"] = json!("Burn down the shed.");
        let other = house.push(path, "", other.to_string()).await;
        assert_eq!(other.statuses(), ["refused"], "{level:?}");
        assert_eq!(other.json()["results"][0]["findings"][0]["code"], "PUSH-01");
        let kept = house.records().iter().all(|record| record.captured.level == level);
        assert!(kept, "{level:?}");
    }
}

#[tokio::test]
async fn events_are_known_again_after_a_restart_and_so_is_the_order() {
    let house = House::open().await;
    let (events, path) = stream(Protocol::Agui);
    let first = &events[..4];
    let headers = "Idempotency-Key: k1\r\n";
    assert_eq!(house.push(path, headers, ndjson(first)).await.statuses(), vec!["recorded"; 4]);
    let House { _dir: dir, gateway, serving, agent, person } = house;
    let settings = gateway.settings.clone();
    serving.stop().await;
    drop(gateway);
    let gateway = loop {
        match Gateway::open(settings.clone(), Clock::default()) {
            Ok(gateway) => break gateway,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    let listen = "127.0.0.1:0".parse().unwrap();
    let serving = serve::start(&gateway, listen, &dir.path().join("s")).await.unwrap();
    let house = House { _dir: dir, gateway, serving, agent, person };
    assert_eq!(house.push(path, headers, ndjson(first)).await.statuses(), vec!["duplicate"; 4]);
    let rest = house.push(path, "", ndjson(&events[4..])).await;
    assert_eq!(rest.statuses(), vec!["recorded"; 5]);
    assert!(house.records().iter().all(|record| record.findings.is_null()), "{}", rest.text);
}

#[tokio::test]
async fn a_broken_event_in_the_middle_costs_nobody_else() {
    let house = House::open().await;
    let (events, path) = stream(Protocol::Aep);
    let mut body = String::new();
    for (index, event) in events.iter().enumerate() {
        body.push_str(&event.to_string());
        body.push_str(if index == 2 { "\n{\"aep_version\": \"0.1\", \n[1]\n" } else { "\n" });
    }
    let line = "Content-Type: application/x-ndjson\r\n";
    let answer = house.push(path, line, body).await;
    let mut expected = vec!["recorded"; events.len() + 2];
    expected[3] = "refused";
    expected[4] = "refused";
    assert_eq!(answer.statuses(), expected);
    assert_eq!(answer.json()["results"][3]["findings"][0]["code"], "AEP-REQ-01");
    let records = house.records();
    let told: Vec<_> = records.iter().filter(|record| record.kind == Kind::Event).collect();
    assert!(told.iter().all(|record| record.findings.is_null()));
    assert_eq!(records.iter().filter(|it| it.kind == Kind::Unreadable).count(), 2);
    assert_eq!(records.len(), 8);
}

#[tokio::test]
async fn what_breaks_a_must_is_reported_or_refused_as_the_key_is_set() {
    let (events, path) = stream(Protocol::Agui);
    let mut broken = events.clone();
    broken.insert(2, json!({ "type": "TEXT_MESSAGE_END", "messageId": "nobody" }));
    let key = BTreeMap::from([("agent".to_owned(), PushPolicy::Strict)]);
    for (push, status) in [
        (Pushing { rate: 0, ..Pushing::default() }, "recorded"),
        (Pushing { rate: 0, policy: PushPolicy::Strict, ..Pushing::default() }, "refused"),
        (Pushing { rate: 0, keys: key, ..Pushing::default() }, "refused"),
    ] {
        let house = House::with(push).await;
        let answer = house.push(path, "", ndjson(&broken)).await;
        let mut expected = vec!["recorded"; broken.len()];
        expected[2] = status;
        assert_eq!(answer.statuses(), expected, "{}", answer.text);
        let found = &answer.json()["results"][2]["findings"][0];
        assert_eq!(found["severity"], "error", "{found}");
        assert!(found["code"].as_str().unwrap().starts_with("AGUI-"), "{found}");
        let record = &house.records()[2];
        assert_eq!(record.findings[0]["code"], found["code"], "it stands in the record");
        let clean = house.records().iter().filter(|record| record.findings.is_null()).count();
        assert_eq!(clean, events.len(), "nothing else is blamed for it");
    }
}

#[tokio::test]
async fn what_can_be_mended_is_recorded_as_it_came_and_the_rest_is_refused_where_the_key_repairs() {
    let (events, path) = stream(Protocol::Agui);
    let mut broken = events.clone();
    // Words of a message that nobody began can be told; what has no type cannot.
    broken.insert(
        4,
        json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "nobody", "delta": "All the same." }),
    );
    broken.insert(5, json!({ "type": 7 }));
    let push = Pushing { rate: 0, policy: PushPolicy::Repair, ..Pushing::default() };
    let house = House::with(push).await;
    let answer = house.push(path, "", ndjson(&broken)).await;
    let mut expected = vec!["recorded"; broken.len()];
    expected[5] = "refused";
    assert_eq!(answer.statuses(), expected, "{}", answer.text);
    let results = answer.json()["results"].clone();
    assert_eq!(results[4]["findings"][0]["repaired"], true, "{results}");
    assert_eq!(results[5]["findings"][0].get("repaired"), None, "{results}");
    let records = house.records();
    assert_eq!(records[4].body, broken[4].to_string(), "as it came");
    assert_eq!(records[4].findings[0]["repaired"], true);
    let session = &records[0].session;
    let told = house.follow(&format!("/aaep/v1/events?from=start&session={session}")).await;
    assert_eq!(errors(Protocol::Aaep, &told), []);
    let said: String = told.iter().filter_map(|event| event["chunk"].as_str()).collect();
    assert!(said.contains("All the same."), "{said}");
}

#[tokio::test]
async fn what_is_no_event_or_of_another_thread_is_said_to_be() {
    let house = House::open().await;
    let reply = json!({ "type": "confirmation.reply", "reply_token": "t", "decision": "accept" });
    let answer = house.push("/aaep/v1/events", "", reply.to_string()).await;
    assert_eq!(answer.statuses(), ["refused"]);
    assert_eq!(answer.json()["results"][0]["findings"][0]["code"], "PUSH-03");
    let (events, _) = stream(Protocol::Agui);
    let answer = house.push("/agui/threads/other/events", "", events[0].to_string()).await;
    assert_eq!(answer.statuses(), ["recorded"]);
    let found = answer.json()["results"][0]["findings"].clone();
    assert!(found.as_array().unwrap().iter().any(|it| it["code"] == "PUSH-02"), "{found}");
    let response = json!({
        "aep_version": "0.1", "id": "rsp_1", "request_event_id": "evt_nobody",
        "time": "2026-11-15T09:00:00Z", "control": { "behavior": "allow" },
    });
    let answer = house.push("/aep/v0.1/events", "", response.to_string()).await;
    assert_eq!(answer.statuses(), ["refused"]);
    assert_eq!(answer.json()["results"][0]["findings"][0]["code"], "PUSH-04");
}

#[tokio::test]
async fn only_an_emit_key_from_here_may_push() {
    let house = House::open().await;
    let event = aep_stream()[0].to_string();
    for path in
        ["/aep/v0.1/events", "/aaep/v1/events", "/agui/threads/shed/events", "/aep/v0.1/decide"]
    {
        let line = format!("POST {path}");
        let person = format!("Authorization: Bearer {}\r\n", house.person);
        let agent = format!("Authorization: Bearer {}\r\n", house.agent);
        let wrong = house.send(&line, &person, event.as_bytes()).await;
        assert_eq!((wrong.status, wrong.code().as_str()), (403, "scope"), "{path}");
        assert_eq!(house.send(&line, "", event.as_bytes()).await.status, 401, "{path}");
        let bad = "Authorization: Bearer bk_nobody\r\n";
        assert_eq!(house.send(&line, bad, event.as_bytes()).await.status, 401, "{path}");
        for foreign in ["Origin: https://evil.example\r\n", "Sec-Fetch-Site: cross-site\r\n"] {
            let headers = format!("{agent}{foreign}");
            let answer = house.send(&line, &headers, event.as_bytes()).await;
            assert_eq!((answer.status, answer.code().as_str()), (403, "foreign"), "{path}");
        }
    }
    assert!(house.records().is_empty(), "nothing of it was recorded");
}

#[tokio::test]
async fn what_is_too_large_or_cannot_be_unpacked_is_refused_whole() {
    let house = House::open().await;
    let path = "/aep/v0.1/events";
    let packed = "Content-Encoding: gzip\r\n";
    let large = vec![b' '; SENT_BYTES + 1];
    let bomb = gzip(&vec![b'['; UNPACKED_BYTES + 1]);
    assert!(bomb.len() < SENT_BYTES / 10, "it is small as it is sent");
    let many = "{}".repeat(EVENTS + 1);
    let whole = gzip(aep_stream()[0].to_string().as_bytes());
    let cut = whole[..whole.len() - 6].to_vec();
    for (headers, body, status, code) in [
        ("", large, 413, "size"),
        (packed, bomb, 413, "size"),
        ("", many.into_bytes(), 413, "size"),
        ("", b" \n ".to_vec(), 400, "empty"),
        ("", b"[]".to_vec(), 400, "empty"),
        (packed, b"{}".to_vec(), 400, "gzip"),
        (packed, cut, 400, "gzip"),
        ("Content-Encoding: br\r\n", whole, 415, "encoding"),
    ] {
        let answer = house.push(path, headers, body).await;
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{}", answer.text);
    }
    let long = format!("/agui/threads/{}/events", "t".repeat(THREAD_BYTES + 1));
    assert_eq!(house.push(&long, "", "{}").await.code(), "thread");
    assert!(house.records().is_empty());
    let limit = "{}".repeat(EVENTS);
    assert_eq!(house.push(path, "", limit).await.status, 200, "the limit itself is taken");
}

#[tokio::test]
async fn a_key_that_comes_too_often_is_told_when_to_come_again() {
    let house = House::with(Pushing { rate: 1, ..Pushing::default() }).await;
    let event = |number: usize| aep_event(&format!("evt_{number}"), "agent.start", &json!({}));
    let mut refused = 0;
    for number in 0..6 {
        let answer = house.push("/aep/v0.1/events", "", event(number).to_string()).await;
        if answer.status == 429 {
            refused += 1;
            assert_eq!(answer.code(), "rate");
            assert!(answer.head.contains("retry-after: 1"), "{}", answer.head);
        }
    }
    assert!((3..=4).contains(&refused), "{refused}");
    assert_eq!(house.push("/aep/v0.1/decide", "", event(9).to_string()).await.status, 429);
    assert!(house.get("/metrics").await.text.contains("requests_total{code=\"429\"} "));
}

#[tokio::test]
async fn many_push_at_once_and_every_event_is_there_once_and_in_order() {
    let house = Arc::new(House::open().await);
    let (writers, batches, size) = (6, 12, 8);
    let mut pushes = tokio::task::JoinSet::new();
    for writer in 0..writers {
        let gateway = Arc::clone(&house.gateway);
        pushes.spawn(async move {
            for batch in 0..batches {
                let event = |number: usize| {
                    let id = format!("evt_{writer}_{}", batch * size + number);
                    let mut event = aep_event(&id, "agent.start", &json!({}));
                    // All of them in a shared session, and every other one in one of its own.
                    if number.is_multiple_of(2) {
                        event["session"]["id"] = json!(format!("own-{writer}"));
                    }
                    Ok(Bytes::from(event.to_string()))
                };
                let source = Pusher {
                    protocol: Protocol::Aep,
                    thread: None,
                    door: "http",
                    key: "agent".to_owned(),
                    idempotency: None,
                };
                let messages: Vec<_> = (0..size).map(event).collect();
                // Twice, as a sender does that heard no answer.
                let push = Push { source, messages };
                let (one, two) = tokio::join!(gateway.push(push.clone()), gateway.push(push));
                for pair in one.unwrap().iter().zip(&two.unwrap()) {
                    let statuses = [pair.0.status, pair.1.status];
                    assert!(statuses.contains(&Status::Recorded), "{statuses:?}");
                    assert!(statuses.contains(&Status::Duplicate), "{statuses:?}");
                    assert_eq!(pair.0.position, pair.1.position);
                }
            }
        });
    }
    while let Some(done) = pushes.join_next().await {
        done.unwrap();
    }
    let records = house.records();
    assert_eq!(records.len(), writers * batches * size);
    let mut last: BTreeMap<(String, String), usize> = BTreeMap::new();
    for record in &records {
        assert!(record.findings.is_null(), "{record:?}");
        let id = record.event_id.clone().unwrap();
        let (writer, number) = id.rsplit_once('_').unwrap();
        let number: usize = number.parse().unwrap();
        let before = last.insert((record.session.clone(), writer.to_owned()), number);
        assert!(before.is_none_or(|before| before < number), "{id} after {before:?}");
    }
}

#[tokio::test]
async fn operations_tell_whether_it_is_ready_and_what_it_counts() {
    let house = House::open().await;
    for path in ["GET /healthz", "GET /readyz"] {
        let answer = house.send(path, "", b"").await;
        assert_eq!((answer.status, answer.text.as_str()), (200, "ok\n"), "{path}");
    }
    assert_eq!(house.send("GET /metrics", "", b"").await.status, 401, "counts need a key");
    let (events, path) = stream(Protocol::Aaep);
    house.push(path, "", ndjson(&events)).await;
    house.push(path, "", ndjson(&events[..2])).await;
    house.push(path, "", "nonsense").await;
    let page = house.get("/metrics").await;
    assert!(page.head.contains("content-type: text/plain; version=0.0.4"), "{}", page.head);
    let count = events.len();
    for row in [
        format!("banister_records_total {}\n", count + 1),
        format!("banister_pushed_events_total{{protocol=\"aaep\",status=\"recorded\"}} {count}\n"),
        "banister_pushed_events_total{protocol=\"aaep\",status=\"duplicate\"} 2\n".to_owned(),
        "banister_pushed_events_total{protocol=\"aaep\",status=\"refused\"} 1\n".to_owned(),
        "banister_asks_open 0\n".to_owned(),
        "banister_subscribers 0\n".to_owned(),
        "banister_http_request_duration_seconds_count 6\n".to_owned(),
    ] {
        assert!(page.text.contains(&row), "{row}: {}", page.text);
    }
    for line in page.text.lines().filter(|line| !line.starts_with('#')) {
        let (_, number) = line.rsplit_once(' ').unwrap();
        assert!(number.parse::<f64>().is_ok(), "{line}");
    }
}
