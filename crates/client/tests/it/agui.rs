//! Runs of an agent, from the first byte to each of the ways in which they end.

use std::time::Duration;

use banister_client::agui::{
    Agent, Ending, Interrupt, LARGEST_EVENT, Message, Resume, Run, RunInput, Thread, UserMessage,
};
use banister_client::{Endpoint, Error};
use banister_events::agui::encoding::{Encoding, MEDIA_TYPE_PROTOBUF, frame};
use banister_events::agui::message::ActivityMessage;
use serde_json::{Map, Value, json};

use crate::peer::{Answer, End, Peer};

const SSE: &str = "text/event-stream";

fn started() -> Value {
    json!({ "type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0" })
}

fn finished() -> Value {
    json!({ "type": "RUN_FINISHED", "threadId": "t", "runId": "r" })
}

fn said(text: &str) -> Value {
    json!({ "type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": text })
}

fn interrupted() -> Value {
    let interrupts = json!([{ "id": "i", "reason": "confirmation", "message": "Really?" }]);
    let mut event = finished();
    event["outcome"] = json!({ "type": "interrupt", "interrupts": interrupts });
    event
}

fn bytes(encoding: Encoding, events: &[Value]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for event in events {
        frame(encoding, event, &mut bytes).expect("an event");
    }
    bytes
}

fn sse(events: &[Value], end: End) -> Answer {
    Answer::new(SSE, vec![bytes(Encoding::Sse, events)], end)
}

async fn peer(answer: Answer) -> (Peer, Agent) {
    let peer = Peer::new(vec![answer]).await;
    let agent = Agent::new(&peer.url).expect("an address");
    (peer, agent)
}

async fn run(agent: &Agent) -> Run {
    agent.run(RunInput::new("t", "r")).await.expect("begun")
}

/// Runs to the end; gives the types of the events and the error that ended them.
async fn drained(run: &mut Run) -> (Vec<String>, Option<Error>) {
    let mut kinds = Vec::new();
    while let Some(event) = run.next().await {
        match event {
            Ok(event) => kinds.push(event.value()["type"].as_str().expect("a type").to_owned()),
            Err(error) => {
                assert!(run.next().await.is_none(), "an error is the last thing");
                return (kinds, Some(error));
            }
        }
    }
    (kinds, None)
}

/// Everything that a run gives to an answer.
async fn ran(answer: Answer) -> (Run, Vec<String>, Option<Error>) {
    let (_peer, agent) = peer(answer).await;
    let mut run = run(&agent).await;
    let (kinds, error) = drained(&mut run).await;
    (run, kinds, error)
}

#[tokio::test]
async fn events_are_read_from_any_pieces_in_both_forms() {
    let events = [
        started(),
        said("東京 "),
        said("👩‍🚀"),
        json!({ "type": "STATE_SNAPSHOT", "snapshot": { "größe": 1 } }),
        finished(),
    ];
    for (encoding, kind) in [
        (Encoding::Sse, "Text/Event-Stream"),
        (Encoding::Protobuf, MEDIA_TYPE_PROTOBUF),
        (Encoding::Protobuf, "application/vnd.ag-ui.event+proto; charset=utf-8"),
    ] {
        for size in [1, 3, 7, 10_000] {
            let whole = bytes(encoding, &events);
            let pieces = whole.chunks(size).map(<[u8]>::to_vec).collect();
            let (run, kinds, error) = ran(Answer::new(kind, pieces, End::Clean)).await;
            assert!(error.is_none(), "{error:?}");
            assert_eq!(kinds.len(), 5);
            assert_eq!(run.ending(), Ending::Finished);
            assert_eq!(run.messages()[0]["content"], "東京 👩‍🚀");
            assert_eq!(run.state(), &json!({ "größe": 1 }));
        }
    }
}

#[tokio::test]
async fn other_line_ends_comments_and_a_missing_last_line_end_are_fine() {
    let text = [started(), said("a"), finished()]
        .map(|event| format!(": hm\r\n\r\nevent: x\r\ndata: {event}\r\n\r\n"))
        .concat();
    let text = text.trim_end().as_bytes().chunks(5).map(<[u8]>::to_vec).collect();
    let (run, kinds, error) =
        ran(Answer::new("text/event-stream; charset=utf-8", text, End::Clean)).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(kinds, ["RUN_STARTED", "TEXT_MESSAGE_CHUNK", "RUN_FINISHED"]);
    assert_eq!(run.ending(), Ending::Finished);
}

#[tokio::test]
async fn a_stream_that_stops_before_the_run_is_never_a_success() {
    let whole = bytes(Encoding::Sse, &[started(), said("a")]);
    let half = [whole.clone(), b"data: {\"type\":\"RUN_FIN".to_vec()].concat();
    for (pieces, end, kinds) in [
        (vec![], End::Clean, 0),
        (vec![whole.clone()], End::Clean, 2),
        (vec![half.clone()], End::Clean, 2),
        (vec![], End::Cut, 0),
        (vec![whole], End::Cut, 2),
        (vec![half], End::Cut, 2),
    ] {
        let clean = matches!(end, End::Clean);
        let (run, seen, error) = ran(Answer::new(SSE, pieces, end)).await;
        assert_eq!(seen.len(), kinds);
        assert_eq!(run.ending(), Ending::Truncated);
        match error.expect("an error") {
            Error::Truncated => assert!(clean),
            Error::Http(_) => assert!(!clean),
            other => panic!("{other:?}"),
        }
        if kinds > 0 {
            assert_eq!(run.messages()[0]["content"], "a");
        }
    }
    let mut frames = bytes(Encoding::Protobuf, &[started(), finished()]);
    frames.truncate(frames.len() - 3);
    let (run, kinds, error) = ran(Answer::new(MEDIA_TYPE_PROTOBUF, vec![frames], End::Clean)).await;
    assert_eq!((kinds.len(), run.ending()), (1, Ending::Truncated));
    assert!(matches!(error, Some(Error::Truncated)));
}

#[tokio::test]
async fn what_breaks_after_the_end_of_the_run_does_not_change_it() {
    let (run, kinds, error) = ran(sse(&[started(), finished()], End::Cut)).await;
    assert_eq!((kinds.len(), run.ending()), (2, Ending::Finished));
    assert!(error.is_none(), "{error:?}");
    let events = [started(), finished(), started()];
    let (run, _, error) = ran(sse(&events, End::Cut)).await;
    assert_eq!(run.ending(), Ending::Truncated, "another run had begun");
    assert!(matches!(error, Some(Error::Http(_))));
}

#[tokio::test]
async fn the_end_of_an_earlier_run_is_not_that_of_the_run_that_was_asked_for() {
    let mut earlier = [started(), finished()];
    for event in &mut earlier {
        event["runId"] = json!("earlier");
    }
    let (run, kinds, error) = ran(sse(&earlier, End::Cut)).await;
    assert_eq!((kinds.len(), run.ending()), (2, Ending::Truncated));
    assert!(matches!(error, Some(Error::Http(_))));
    let (run, _, error) = ran(sse(&earlier, End::Clean)).await;
    assert_eq!(run.ending(), Ending::Finished, "some agents name runs as they like");
    assert!(error.is_none(), "{error:?}");
}

#[tokio::test]
async fn an_activity_that_is_odd_does_not_keep_a_thread_from_going_on() {
    let odd = json!({ "type": "ACTIVITY_DELTA", "messageId": "a", "activityType": "plan",
        "patch": [{ "op": "replace", "path": "", "value": [1] }] });
    let plan = json!({ "type": "ACTIVITY_SNAPSHOT", "messageId": "a", "activityType": "plan", "content": {} });
    let peer = Peer::new(vec![
        sse(&[started(), plan, odd, finished()], End::Clean),
        sse(&[started(), finished()], End::Clean),
    ])
    .await;
    let mut thread = Thread::new(Agent::new(&peer.url).expect("an address"), "t");
    drained(&mut thread.run("r").await.expect("begun")).await;
    drained(&mut thread.run("r").await.expect("begun again")).await;
    assert_eq!(peer.inputs().pop().expect("an input")["messages"], json!([]));
}

#[tokio::test]
async fn every_ending_is_told_from_the_others() {
    let mut cancelled = finished();
    cancelled["outcome"] = json!({ "type": "cancelled" });
    let failed = json!({ "type": "RUN_ERROR", "message": "no luck", "code": "c" });
    let as_failed = Ending::Failed { message: "no luck".into(), code: Some("c".into()) };
    for (events, ending) in [
        (vec![started(), finished()], Ending::Finished),
        (vec![started(), interrupted()], Ending::Interrupted),
        (vec![started(), cancelled], Ending::Cancelled),
        (vec![failed.clone()], as_failed.clone()),
        (vec![started(), said("a"), failed.clone()], as_failed.clone()),
        (vec![started(), finished(), failed], as_failed),
    ] {
        let (run, kinds, error) = ran(sse(&events, End::Clean)).await;
        assert_eq!((run.ending(), kinds.len()), (ending, events.len()));
        assert!(error.is_none(), "{error:?}");
    }
}

#[tokio::test]
async fn a_violation_ends_the_run_and_leaves_what_came_before() {
    let late = json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "x", "delta": "" });
    let events = [started(), said("kept"), late, finished()];
    let (mut peer, agent) = peer(sse(&events, End::Silence)).await;
    let mut run = run(&agent).await;
    let (kinds, error) = drained(&mut run).await;
    assert_eq!(kinds, ["RUN_STARTED", "TEXT_MESSAGE_CHUNK"]);
    match error {
        Some(Error::Violation(violation)) => assert_eq!(violation.finding.rule.code, "AGUI-SEQ-11"),
        other => panic!("{other:?}"),
    }
    assert_eq!(run.ending(), Ending::Violated);
    assert_eq!(run.messages()[0]["content"], "kept");
    peer.over(1).await;
}

#[tokio::test]
async fn what_is_no_event_is_a_violation_too() {
    for (kind, piece, code) in [
        (SSE, b"data: [DONE]\n\n".to_vec(), Some("AGUI-EVT-01")),
        (SSE, b"data: {}\n\n".to_vec(), Some("AGUI-EVT-02")),
        (MEDIA_TYPE_PROTOBUF, b"\0\0\0\x02\xff\xff".to_vec(), None),
    ] {
        let (run, kinds, error) = ran(Answer::new(kind, vec![piece], End::Silence)).await;
        assert_eq!((kinds.len(), run.ending()), (0, Ending::Violated));
        match error.expect("an error") {
            Error::Violation(violation) => assert_eq!(Some(violation.finding.rule.code), code),
            Error::Undecodable(_) => assert_eq!(code, None),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn events_of_later_versions_are_passed_over() {
    let later = json!({ "type": "LATER", "x": 1 });
    let (run, kinds, error) = ran(sse(&[started(), later, finished()], End::Clean)).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!((kinds.len(), run.ending()), (3, Ending::Finished));
    let mut frames = bytes(Encoding::Protobuf, &[started()]);
    // Field 99, a message of two bytes.
    frames.extend_from_slice(b"\0\0\0\x05\x9a\x06\x02\x0a\x00");
    frames.extend(bytes(Encoding::Protobuf, &[finished()]));
    let (run, kinds, error) = ran(Answer::new(MEDIA_TYPE_PROTOBUF, vec![frames], End::Clean)).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!((kinds.len(), run.ending()), (2, Ending::Finished));
}

#[tokio::test]
async fn an_event_over_the_limit_is_not_held() {
    let (kind, head) = (MEDIA_TYPE_PROTOBUF, u32::MAX.to_be_bytes().to_vec());
    let (run, _, error) = ran(Answer::new(kind, vec![head], End::Silence)).await;
    assert!(matches!(error, Some(Error::TooLarge { limit: LARGEST_EVENT })));
    assert_eq!(run.ending(), Ending::Violated);
    let mut pieces = vec![b"data: ".to_vec()];
    pieces.extend((0..11).map(|_| vec![b'x'; 1024 * 1024]));
    let (run, _, error) = ran(Answer::new(SSE, pieces, End::Silence)).await;
    assert!(matches!(error, Some(Error::TooLarge { limit: LARGEST_EVENT })));
    assert_eq!(run.ending(), Ending::Violated);
}

#[tokio::test]
async fn refusals_and_what_is_no_stream_are_errors() {
    let refused = async |text: &str| {
        let (_peer, agent) = peer(Answer::plain(text)).await;
        agent.run(RunInput::new("t", "r")).await.expect_err("refused")
    };
    let json = r#"{"error":{"message":"no thread"}}"#;
    let head = "Content-Type: application/json\r\nContent-Length";
    let error = refused(&format!("HTTP/1.1 400 Bad\r\n{head}: {}\r\n\r\n{json}", json.len())).await;
    assert_eq!(error.to_string(), "the agent answered with status 400: no thread");
    let error = refused("HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\noh\u{1b}!").await;
    assert_eq!(error.to_string(), "the agent answered with status 500: oh⟨U+001B⟩!");
    let error = refused("HTTP/1.1 204 No Content\r\nContent-Type: text/event-stream\r\n\r\n").await;
    assert!(matches!(error, Error::Refused { status: 204, .. }), "{error:?}");
    let error = refused("HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n").await;
    assert!(matches!(error, Error::Refused { status: 302, .. }), "{error:?}");
    let error =
        refused("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi").await;
    assert_eq!(error.to_string(), "the agent sent text/html instead of events (“hi”)");
    let error = refused("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    assert!(matches!(error, Error::NotEvents { content_type: None, .. }), "{error:?}");
    let error = refused("").await;
    assert!(matches!(error, Error::Http(_)), "{error:?}");
}

#[tokio::test]
async fn an_agent_that_says_nothing_is_not_waited_for() {
    let silent = || Answer { head: String::new(), pieces: Vec::new(), end: End::Silence };
    let (mut first, agent) = peer(silent()).await;
    let agent = agent.with_timeout(Duration::from_millis(50));
    let error = agent.run(RunInput::new("t", "r")).await.expect_err("silent");
    assert!(matches!(error, Error::Silent(_)), "{error:?}");
    first.over(1).await;

    let (mut second, agent) = peer(sse(&[started()], End::Silence)).await;
    let mut run = run(&agent.with_idle_timeout(Duration::from_millis(50))).await;
    let (kinds, error) = drained(&mut run).await;
    assert_eq!((kinds.len(), run.ending()), (1, Ending::Truncated));
    assert!(matches!(error, Some(Error::Silent(_))), "{error:?}");
    second.over(1).await;
}

#[tokio::test]
async fn an_agent_sees_that_a_run_is_cancelled() {
    let (mut peer, agent) = peer(sse(&[started(), said("a")], End::Silence)).await;
    let mut run = run(&agent).await;
    run.next().await.expect("open").expect("an event");
    run.cancel();
    peer.over(1).await;
    assert!(run.next().await.is_none());
    assert_eq!(run.ending(), Ending::Truncated);
}

#[tokio::test]
async fn waiting_for_an_event_can_be_given_up_and_taken_up_again() {
    let pieces = bytes(Encoding::Sse, &[started(), said("東京"), finished()]);
    let pieces = pieces.chunks(9).map(<[u8]>::to_vec).collect();
    let (_peer, agent) = peer(Answer::new(SSE, pieces, End::Clean)).await;
    let mut run = run(&agent).await;
    let mut seen = 0;
    loop {
        match tokio::time::timeout(Duration::from_micros(200), run.next()).await {
            Err(_) => {}
            Ok(None) => break,
            Ok(Some(event)) => {
                event.expect("an event");
                seen += 1;
            }
        }
    }
    assert_eq!((seen, run.ending()), (3, Ending::Finished));
    assert_eq!(run.messages()[0]["content"], "東京");
}

#[tokio::test]
async fn a_request_is_what_the_protocol_asks_for() {
    let answers = (0..2).map(|_| sse(&[started(), finished()], End::Clean)).collect();
    let peer = Peer::new(answers).await;
    let agent = Agent::new(&peer.url).expect("an address");
    let agent = agent.with_header("Accept", "*/*").expect("a header");
    let agent = agent.with_header("X-Key", "secret").expect("a header");
    assert!(!format!("{agent:?}").contains("secret"));
    run(&agent).await;
    run(&agent.binary()).await;
    let [plain, binary] = &peer.asked()[..] else { panic!("two requests") };
    assert!(plain.starts_with("POST /agent?x=1 HTTP/1.1\r\n"), "{plain}");
    for line in ["content-type: application/json\r\n", "x-key: secret\r\n"] {
        assert!(plain.contains(line), "{plain}");
    }
    assert!(plain.contains("accept: text/event-stream\r\n"), "{plain}");
    let accept = "accept: application/vnd.ag-ui.event+proto, text/event-stream;q=0.5\r\n";
    assert!(binary.contains(accept), "{binary}");
    assert_eq!(
        peer.inputs()[0],
        json!({ "threadId": "t", "runId": "r", "protocolVersion": "1.0", "messages": [] })
    );
}

#[tokio::test]
async fn what_an_agent_does_not_take_is_not_sent() {
    let (peer, agent) = peer(sse(&[started(), finished()], End::Clean)).await;
    let mut malformed = RunInput::new("t", "r");
    malformed.unknown.insert("resume".into(), json!("yes"));
    let mut other = RunInput::new("t", "r");
    other
        .messages
        .push(Message::Other(json!({ "role": "user" }).as_object().expect("one").clone()));
    for (input, pointer) in [(malformed, "/resume"), (other, "/messages/0/id")] {
        match agent.run(input).await {
            Err(Error::Input(finding)) => assert_eq!(finding.pointer, pointer),
            other => panic!("{other:?}"),
        }
    }
    assert!(peer.asked().is_empty());

    let mut input = RunInput::new("t", "r");
    input.state = Some(Value::Null);
    let shown = ActivityMessage::new("a", "plan", Map::new());
    input.messages.push(Message::Activity(shown));
    let mut known = UserMessage::new("u", "Hello");
    known.unknown.insert("mood".into(), json!("good"));
    input.messages.push(Message::User(known));
    let odd = json!({ "role": "oracle", "id": "o" });
    input.messages.push(Message::Other(odd.as_object().expect("one").clone()));
    let run = agent.run(input).await.expect("begun");
    assert_eq!(
        peer.inputs()[0],
        json!({
            "threadId": "t", "runId": "r", "protocolVersion": "1.0",
            "messages": [{ "role": "user", "id": "u", "content": "Hello" }],
        })
    );
    assert_eq!(run.messages().as_array().expect("messages").len(), 3, "here they are still known");
}

#[tokio::test]
async fn a_thread_goes_on_only_with_the_answers_it_waits_for() {
    let failed = json!({ "type": "RUN_ERROR", "message": "busy" });
    let peer = Peer::new(vec![
        sse(&[started(), said("May I?"), interrupted()], End::Clean),
        sse(&[started(), failed], End::Clean),
        sse(
            &[
                started(),
                json!({ "type": "STATE_SNAPSHOT", "snapshot": { "sent": true } }),
                finished(),
            ],
            End::Clean,
        ),
        sse(&[started(), finished()], End::Clean),
    ])
    .await;
    let mut thread = Thread::new(Agent::new(&peer.url).expect("an address"), "t");
    thread.say(Message::User(UserMessage::new("u1", "Send it.")));
    let mut turn = thread.run("r1").await.expect("begun");
    assert!(drained(&mut turn).await.1.is_none());
    assert_eq!(turn.ending(), Ending::Interrupted);
    drop(turn);
    assert_eq!(thread.pending()[0].message.as_deref(), Some("Really?"));

    let error = thread.run("r2").await.expect_err("not answered");
    assert!(matches!(error, Error::Unanswered { id } if id == "i"));
    let twice = vec![Resume::resolved("i", true), Resume::cancelled("i")];
    let error = thread.resume("r2", twice).await.expect_err("answered twice");
    assert!(matches!(error, Error::Repeated { id } if id == "i"));
    assert_eq!(peer.asked().len(), 1, "nothing more was sent");

    for (run, ending) in [("r2", None), ("r3", Some(Ending::Finished))] {
        let yes = vec![Resume::resolved("i", json!({ "approved": true }))];
        let mut turn = thread.resume(run, yes).await.expect("begun");
        assert!(drained(&mut turn).await.1.is_none());
        match ending {
            Some(ending) => assert_eq!(turn.ending(), ending),
            None => assert!(matches!(turn.ending(), Ending::Failed { .. })),
        }
        drop(turn);
        assert_eq!(thread.pending().len(), usize::from(run == "r2"), "a failure answers nothing");
    }
    thread.say(Message::User(UserMessage::new("u2", "Thanks.")));
    drained(&mut thread.run("r4").await.expect("begun")).await;
    let last = peer.inputs().pop().expect("four inputs");
    assert_eq!(last.get("resume"), None);
    assert_eq!(last["state"], json!({ "sent": true }));
    assert_eq!(
        last["messages"],
        json!([
            { "role": "user", "id": "u1", "content": "Send it." },
            { "role": "assistant", "id": "m", "content": "May I?" },
            { "role": "user", "id": "u2", "content": "Thanks." },
        ])
    );
    assert_eq!(peer.inputs()[1]["resume"][0]["payload"], json!({ "approved": true }));
}

#[tokio::test]
async fn an_interrupt_waits_even_if_an_error_or_a_violation_follows() {
    let error = json!({ "type": "RUN_ERROR", "message": "late" });
    for after in [error, said("out of order")] {
        let peer = Peer::new(vec![sse(&[started(), interrupted(), after], End::Clean)]).await;
        let mut thread = Thread::new(Agent::new(&peer.url).expect("an address"), "t");
        let mut turn = thread.run("r1").await.expect("begun");
        drained(&mut turn).await;
        assert_ne!(turn.ending(), Ending::Interrupted);
        drop(turn);
        assert_eq!(thread.pending().len(), 1);
        let error = thread.run("r2").await.expect_err("not answered");
        assert!(matches!(error, Error::Unanswered { id } if id == "i"));
    }
}

#[tokio::test]
async fn what_expired_can_only_be_cancelled() {
    let peer = Peer::new(vec![sse(&[started(), finished()], End::Clean)]).await;
    let mut late = Interrupt::new("i", "confirmation");
    late.expires_at = Some("2026-01-01T00:00:00Z".into());
    let mut thread = Thread::new(Agent::new(&peer.url).expect("an address"), "t").restored(
        Vec::new(),
        json!({}),
        vec![late],
    );
    let error = thread.resume("r", vec![Resume::resolved("i", true)]).await.expect_err("too late");
    assert!(matches!(error, Error::Expired { id } if id == "i"));
    let turn = thread.resume("r", vec![Resume::cancelled("i")]).await.expect("begun");
    drop(turn);
    assert_eq!(thread.pending().len(), 1, "a run that nobody watched answers nothing");
}

#[tokio::test]
async fn addresses_are_plain_http_or_a_socket() {
    for url in ["http://127.0.0.1:1/a/b?c=d", "http://localhost", "unix:/run/agent.sock"] {
        Agent::new(url).expect(url);
    }
    for url in ["", "https://", "http://", "h:1/agent", "unix:x", "http://me@h/", "ftp://h"] {
        let error = Agent::new(url).expect_err(url);
        assert!(error.to_string().ends_with("or unix:/path"), "{url}: {error}");
    }
    assert!(Agent::at(Endpoint::Http("h:1".into()), "agent").is_err());
    let nobody = Agent::new("unix:/nonexistent/agent.sock").expect("an address");
    let error = nobody.run(RunInput::new("t", "r")).await.expect_err("nobody there");
    assert!(matches!(error, Error::NoAgent { .. }), "{error:?}");
    assert!(Agent::new("http://h").expect("an address").with_header("a b", "c").is_err());
}
