use std::net::SocketAddr;
use std::time::Duration;

use banister_events::agui::follow::is_fatal;
use banister_events::agui::protobuf;
use banister_events::check::Checker;
use banister_events::event::Protocol;
use banister_events::frame::length::Messages;
use banister_events::frame::sse;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::clock::Clock;
use crate::pipeline::Incoming;
use crate::{Gateway, Settings, serve};

const BOTH: [Encoding; 2] = [Encoding::Sse, Encoding::Protobuf];

fn started() -> Value {
    json!({ "type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0" })
}

fn finished() -> Value {
    json!({ "type": "RUN_FINISHED", "threadId": "t", "runId": "r" })
}

fn opened(id: &str) -> Value {
    json!({ "type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant" })
}

/// Bytes as the events that a client reads from them.
fn decoded(encoding: Encoding, mut bytes: &[u8]) -> Vec<Value> {
    let mut events = Vec::new();
    match encoding {
        Encoding::Sse => {
            let mut parser = sse::Parser::new(1 << 20);
            parser.push(bytes).unwrap();
            while let Some(message) = parser.next() {
                events.push(serde_json::from_str(&message.data).unwrap());
            }
        }
        Encoding::Protobuf => {
            let mut messages = Messages::new(1 << 20);
            while let Some((_, message)) = messages.read(&mut bytes) {
                events.push(protobuf::decode(message.unwrap()).unwrap().unwrap());
            }
            assert!(messages.end().is_none(), "no frame is cut off");
        }
    }
    events
}

/// An outlet, and the body that it feeds.
fn outlet_of(encoding: Encoding) -> (Outlet, Fed) {
    let (out, body) = fed();
    (Outlet::new(encoding, out), body)
}

fn kind(event: &Value) -> &str {
    event["type"].as_str().unwrap_or_default()
}

/// What a client gets once the outlet is gone.
async fn received(encoding: Encoding, body: Fed) -> Vec<Value> {
    decoded(encoding, &body.collect().await.unwrap().to_bytes())
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(kind).collect()
}

/// That a client reads the events to their one end.
fn is_whole(events: &[Value]) {
    let mut checker = Checker::new(Protocol::Agui);
    for event in events {
        let findings = checker.value(event);
        assert!(!findings.iter().any(is_fatal), "{findings:?}");
    }
    assert_eq!(checker.finish(), [], "{events:?}");
    let ends =
        kinds(events).into_iter().filter(|kind| matches!(*kind, "RUN_FINISHED" | "RUN_ERROR"));
    assert_eq!(ends.count(), 1, "{events:?}");
}

#[tokio::test]
async fn what_is_right_leaves_as_it_is_in_both_forms() {
    let events = [
        started(),
        opened("m"),
        json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "東京" }),
        json!({ "type": "TEXT_MESSAGE_END", "messageId": "m" }),
        finished(),
    ];
    for encoding in BOTH {
        let (mut outlet, body) = outlet_of(encoding);
        for event in &events {
            assert!(!outlet.is_ended());
            outlet.send(std::slice::from_ref(event)).await.unwrap();
        }
        assert!(outlet.is_ended());
        drop(outlet);
        assert_eq!(received(encoding, body).await, events);
    }
}

#[tokio::test]
async fn what_breaks_the_protocol_does_not_leave_and_fails_the_run() {
    let right = [started(), opened("m")];
    for broken in [
        json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "other", "delta": "x" }),
        json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "m" }),
        json!({ "type": "TEXT_MESSAGE_END", "messageId": "m", "metadata": null }),
        json!({ "type": "STATE_DELTA", "delta": {} }),
        json!({ "type": "RUN_STARTED", "threadId": "other", "runId": "r2" }),
        finished(),
        started(),
        json!({ "no": "type" }),
        json!([]),
    ] {
        for encoding in BOTH {
            let (mut outlet, body) = outlet_of(encoding);
            outlet.send(&right).await.unwrap();
            // What follows the broken one in the same breath does not leave either.
            outlet.send(&[broken.clone(), opened("late"), finished()]).await.unwrap();
            assert!(outlet.is_ended());
            outlet.send(&[opened("later")]).await.unwrap();
            drop(outlet);
            let events = received(encoding, body).await;
            is_whole(&events);
            assert_eq!(events[..2], right, "{broken}");
            assert_eq!(kinds(&events[2..]), ["RUN_ERROR"], "{broken}");
        }
    }
}

#[tokio::test]
async fn a_run_that_does_not_begin_with_its_start_only_fails() {
    for encoding in BOTH {
        let (mut outlet, body) = outlet_of(encoding);
        outlet.send(&[opened("m"), started(), finished()]).await.unwrap();
        drop(outlet);
        let events = received(encoding, body).await;
        is_whole(&events);
        assert_eq!(kinds(&events), ["RUN_ERROR"]);
    }
}

#[tokio::test]
async fn an_event_without_a_binary_form_fails_the_run_where_that_is_asked_for() {
    // Dropped by a client that reads JSON, and nothing that the binary form can say.
    let unknown = json!({ "type": "META", "metaType": "m", "payload": {} });
    for (encoding, expected) in [
        (Encoding::Sse, ["RUN_STARTED", "META", "RUN_FINISHED"].as_slice()),
        (Encoding::Protobuf, &["RUN_STARTED", "RUN_ERROR"]),
    ] {
        let (mut outlet, body) = outlet_of(encoding);
        outlet.send(&[started(), unknown.clone(), finished()]).await.unwrap();
        drop(outlet);
        assert_eq!(kinds(&received(encoding, body).await), expected);
    }
}

#[tokio::test]
async fn of_two_ends_only_the_first_is_told() {
    let failed = json!({ "type": "RUN_ERROR", "message": "m" });
    for [first, second] in
        [[finished(), failed.clone()], [failed.clone(), finished()], [finished(), finished()]]
    {
        let (mut outlet, body) = outlet_of(Encoding::Sse);
        outlet.send(&[started(), first.clone(), second]).await.unwrap();
        outlet.fail("shutdown", "too late");
        drop(outlet);
        assert_eq!(received(Encoding::Sse, body).await, [started(), first]);
    }
}

#[tokio::test]
async fn a_run_that_is_dropped_in_the_middle_or_before_has_an_end() {
    for encoding in BOTH {
        for events in [vec![], vec![started()], vec![started(), opened("m")]] {
            let (mut outlet, body) = outlet_of(encoding);
            outlet.send(&events).await.unwrap();
            drop(outlet);
            let told = received(encoding, body).await;
            is_whole(&told);
            assert_eq!(told[..events.len()], events);
            assert_eq!(kinds(&told[events.len()..]), ["RUN_ERROR"]);
        }
    }
}

#[tokio::test]
async fn a_reader_that_stands_still_gets_the_end_too() {
    let (mut outlet, body) = outlet_of(Encoding::Sse);
    outlet.send(&[started()]).await.unwrap();
    let step = json!({ "type": "CUSTOM", "name": "banister.test", "value": 1 });
    let mut sent = 1;
    while let Ok(done) =
        tokio::time::timeout(Duration::from_millis(50), outlet.send(std::slice::from_ref(&step)))
            .await
    {
        done.unwrap();
        sent += 1;
    }
    drop(outlet);
    let events = received(Encoding::Sse, body).await;
    is_whole(&events);
    assert_eq!(events.len(), sent + 1);
}

#[tokio::test]
async fn a_client_that_went_away_is_noticed() {
    let (mut outlet, body) = outlet_of(Encoding::Sse);
    drop(body);
    assert!(outlet.send(&[started()]).await.is_err());
}

#[test]
fn an_input_is_refused_with_the_rule_and_the_place() {
    let least = json!({ "threadId": "t", "runId": "r", "messages": [] });
    let with = |name: &str, value: Value| {
        let mut input = least.clone();
        input[name] = value;
        input
    };
    for (input, code, rule, pointer) in [
        (json!({ "runId": "r", "messages": [] }), "run-input", "AGUI-EVT-05", "/threadId"),
        (json!({ "threadId": "t", "runId": "r" }), "run-input", "AGUI-EVT-05", "/messages"),
        (with("runId", json!(1)), "run-input", "AGUI-EVT-06", "/runId"),
        (with("tools", json!(null)), "run-input", "AGUI-EVT-08", "/tools"),
        (
            with("messages", json!([{ "id": "m", "role": "user", "content": 1 }])),
            "run-input",
            "AGUI-EVT-06",
            "/messages/0/content",
        ),
        (
            with("resume", json!([{ "interruptId": "i", "status": "maybe" }])),
            "run-input",
            "AGUI-EVT-07",
            "/resume/0/status",
        ),
        (json!([]), "run-input", "AGUI-EVT-06", ""),
    ] {
        let problem = asked(input.to_string().as_bytes()).unwrap_err();
        assert_eq!((problem.status, problem.code), (StatusCode::BAD_REQUEST, code), "{input}");
        assert_eq!(problem.place, Some((rule, pointer.to_owned())), "{input}");
    }
    assert_eq!(asked(b"{").unwrap_err().code, "json");
    for version in ["2.0", "0.9", "next"] {
        let input = with("protocolVersion", json!(version)).to_string();
        assert_eq!(asked(input.as_bytes()).unwrap_err().code, "version", "{version}");
    }
}

#[test]
fn what_an_input_has_beyond_the_protocol_is_no_reason_to_refuse_it() {
    for more in [
        json!({ "protocolVersion": "1.7" }),
        json!({ "later": { "than": "1.0" } }),
        json!({ "state": null, "forwardedProps": null }),
        json!({ "messages": [{ "id": "m", "role": "oracle", "says": [] }] }),
        json!({ "tools": [{ "name": "n", "description": "", "strict": true }] }),
    ] {
        let mut input = json!({ "threadId": "t", "runId": "r", "messages": [] });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert!(asked(input.to_string().as_bytes()).is_ok(), "{input}");
    }
}

/// A gateway with one session, whose turn is under way.
async fn at_work() -> (tempfile::TempDir, Arc<Gateway>, String) {
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings::new(dir.path().join("data"));
    let gateway = Gateway::open(settings, Clock::default()).unwrap();
    let session = tell(&gateway, "UserPromptSubmit", json!({ "prompt": "Go." })).await;
    (dir, gateway, session)
}

async fn tell(gateway: &Arc<Gateway>, hook: &str, fields: Value) -> String {
    let mut payload = json!({ "session_id": "one", "cwd": "/src", "hook_event_name": hook });
    payload.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let incoming = Incoming::of_claude(hook, &payload);
    gateway.accept(&incoming).await.unwrap().records[0].session.clone()
}

/// A run of a session, asked for with the person's key.
fn a_run(gateway: &Gateway, session: &str, outlet: Outlet) -> AttachedRun {
    let key = std::fs::read_to_string(gateway.keys.file("person.key")).unwrap();
    let guest = gateway.keys.guest(&key).unwrap();
    let (session, writer) = (session.to_owned(), Writer::new("t", "r"));
    AttachedRun { session, writer, outlet, resumed: Vec::new(), input: json!({}), guest }
}

/// Reads a body until something is in it.
async fn piece(body: &mut Fed) -> Bytes {
    body.frame().await.unwrap().unwrap().into_data().unwrap()
}

#[tokio::test]
async fn a_turn_that_ends_ends_the_run_and_a_gateway_that_stops_fails_it() {
    for encoding in BOTH {
        for stops in [false, true] {
            let (_dir, gateway, session) = at_work().await;
            let (outlet, mut body) = outlet_of(encoding);
            let stop = CancellationToken::new();
            let attached =
                Arc::clone(&gateway).attach(a_run(&gateway, &session, outlet), stop.clone());
            let attached = gateway.tasks.spawn(attached);
            let mut bytes = piece(&mut body).await.to_vec();
            if stops {
                stop.cancel();
            } else {
                tell(&gateway, "Stop", json!({ "last_assistant_message": "Gone." })).await;
            }
            attached.await.unwrap();
            bytes.extend(body.collect().await.unwrap().to_bytes());
            let events = decoded(encoding, &bytes);
            is_whole(&events);
            let last = events.last().unwrap();
            let expected = if stops { "RUN_ERROR" } else { "RUN_FINISHED" };
            assert_eq!(kind(last), expected);
            assert_eq!(last.get("code"), stops.then(|| json!("shutdown")).as_ref());
        }
    }
}

#[tokio::test]
async fn a_run_whose_task_is_aborted_has_an_end() {
    let (_dir, gateway, session) = at_work().await;
    let (outlet, mut body) = outlet_of(Encoding::Sse);
    let stop = CancellationToken::new();
    let attached = Arc::clone(&gateway).attach(a_run(&gateway, &session, outlet), stop);
    let attached = gateway.tasks.spawn(attached);
    let mut bytes = piece(&mut body).await.to_vec();
    attached.abort();
    bytes.extend(body.collect().await.unwrap().to_bytes());
    let events = decoded(Encoding::Sse, &bytes);
    is_whole(&events);
    assert_eq!(kind(events.last().unwrap()), "RUN_ERROR");
}

#[tokio::test(start_paused = true)]
async fn a_quiet_run_says_that_it_is_there_where_it_has_a_way_to() {
    let (_dir, gateway, session) = at_work().await;
    for encoding in BOTH {
        let (outlet, mut body) = outlet_of(encoding);
        let stop = CancellationToken::new();
        let attached = Arc::clone(&gateway).attach(a_run(&gateway, &session, outlet), stop.clone());
        let attached = gateway.tasks.spawn(attached);
        piece(&mut body).await;
        let next = tokio::time::timeout(Duration::from_mins(1), piece(&mut body)).await;
        match encoding {
            Encoding::Sse => assert_eq!(next.unwrap(), ": still here\n\n"),
            Encoding::Protobuf => assert!(next.is_err(), "{next:?}"),
        }
        stop.cancel();
        attached.await.unwrap();
    }
}

/// Everything that a request brings until the connection closes: the head, and the body as it lies on the wire.
async fn exchange(address: SocketAddr, head: &str, body: &str) -> (String, Vec<u8>) {
    let mut stream = request(address, head, body).await;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    split(&bytes)
}

async fn request(address: SocketAddr, head: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let text = format!(
        "{head}\r\nHost: localhost:{}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}",
        address.port()
    );
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

/// Head and body of a response; chunks are put together.
fn split(bytes: &[u8]) -> (String, Vec<u8>) {
    let at = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    let head = String::from_utf8(bytes[..at].to_vec()).unwrap();
    let mut rest = &bytes[at..];
    if !head.contains("transfer-encoding: chunked") {
        return (head, rest.to_vec());
    }
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n").expect("a whole body");
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        if size == 0 {
            return (head, body);
        }
        body.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 2 + size + 2..];
    }
}

#[tokio::test]
async fn a_run_is_served_in_the_form_that_is_asked_for_and_ends_before_the_gateway_does() {
    let (dir, gateway, session) = at_work().await;
    let any = "127.0.0.1:0".parse().unwrap();
    let serving = serve::start(&gateway, any, &dir.path().join("s")).await.unwrap();
    let key = std::fs::read_to_string(dir.path().join("data/keys/person.key")).unwrap();
    let head = |session: &str, more: &str| {
        let key = key.trim();
        format!("POST /agui/sessions/{session} HTTP/1.1\r\nAuthorization: Bearer {key}{more}")
    };
    let input = json!({ "threadId": "t", "runId": "r", "messages": [] }).to_string();

    let (told, body) = exchange(serving.address, &head(&session, ""), "{}").await;
    assert!(told.starts_with("HTTP/1.1 400 "), "{told}");
    let problem: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(problem["error"]["rule"], "AGUI-EVT-05");
    assert_eq!(problem["error"]["pointer"], "/threadId");
    let (told, _) = exchange(serving.address, &head("none", ""), &input).await;
    assert!(told.starts_with("HTTP/1.1 404 "), "{told}");

    let mut open = Vec::new();
    for (accept, encoding) in [
        ("", Encoding::Sse),
        ("\r\nAccept: text/event-stream", Encoding::Sse),
        (
            "\r\nAccept: text/event-stream, application/vnd.ag-ui.event+proto;q=0.1",
            Encoding::Protobuf,
        ),
        (
            "\r\nAccept: text/event-stream\r\nAccept: application/vnd.ag-ui.event+proto",
            Encoding::Protobuf,
        ),
    ] {
        open.push((encoding, request(serving.address, &head(&session, accept), &input).await));
    }
    let mut read = Vec::new();
    for (encoding, mut stream) in open {
        let mut bytes = Vec::new();
        // What the person said is in the history, in either form.
        while !bytes.windows(3).any(|three| three == b"Go.") {
            assert!(stream.read_buf(&mut bytes).await.unwrap() > 0);
        }
        read.push((encoding, stream, bytes));
    }
    serving.stop().await;
    for (encoding, mut stream, mut bytes) in read {
        stream.read_to_end(&mut bytes).await.unwrap();
        let (told, body) = split(&bytes);
        for line in [
            &format!("content-type: {}\r\n", encoding.media_type()),
            "cache-control: no-cache, no-store, no-transform\r\n",
            "vary: accept\r\n",
            "x-accel-buffering: no\r\n",
        ] {
            assert!(told.contains(line), "{line}: {told}");
        }
        let events = decoded(encoding, &body);
        is_whole(&events);
        assert_eq!(kinds(&events), ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_ERROR"]);
        assert_eq!(events[2]["code"], "shutdown");
    }
}

#[path = "agui_tests/resume.rs"]
mod resume;
