use std::path::Path;
use std::sync::Arc;

use banister_events::activity::What;
use banister_journal::{Level, Query, Syntax};
use bytes::Bytes;

use super::*;
use crate::clock::Clock;
use crate::ingest::{Push, Pusher, Status};
use crate::keep::CapturePolicy;
use crate::project::Projection;
use crate::{Gateway, Settings};

/// Shaped like a token, and none.
const SECRET: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

fn open(dir: &Path, level: Level) -> Arc<Gateway> {
    let capture = CapturePolicy { level, ..CapturePolicy::default() };
    let settings = Settings { capture, ..Settings::new(dir.join("data")) };
    let clock = Clock::manual("2026-11-15T09:00:00Z".parse().unwrap());
    Gateway::open(settings, clock).unwrap()
}

async fn push(gateway: &Arc<Gateway>, protocol: Protocol, events: &[Value]) -> String {
    let source = Pusher {
        protocol,
        thread: Some("shed".to_owned()),
        door: "http",
        key: "agent".to_owned(),
        idempotency: None,
    };
    let messages = events.iter().map(|event| Ok(Bytes::from(event.to_string()))).collect();
    let receipts = gateway.push(Push { source, messages }).await.unwrap();
    assert!(receipts.iter().all(|it| it.status == Status::Recorded), "{receipts:?}");
    receipts[0].session.clone()
}

/// Everything that was said in a session, and the inputs of its actions.
fn told(gateway: &Gateway, session: &str) -> String {
    let mut projection = Projection::new(Arc::clone(&gateway.agents));
    let mut told = String::new();
    for record in gateway.journal.session(session, 0, 1_000).unwrap() {
        for activity in projection.next(&record) {
            match activity.what {
                What::Said { text, .. } | What::Thought { text, .. } => told.push_str(&text),
                What::ActionRequested { action, .. } => {
                    told.push_str(&action.input.unwrap_or_default().to_string());
                }
                _ => {}
            }
        }
    }
    told
}

/// Whether any part of the secret that could be of use is in any file of the journal.
fn leaks(dir: &Path) -> bool {
    let files = std::fs::read_dir(dir.join("data")).unwrap().map(|file| file.unwrap().path());
    let holds = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).any(|it| it == part);
    let secret = SECRET.as_bytes();
    files.filter(|path| path.is_file()).any(|path| {
        let bytes = std::fs::read(path).unwrap();
        holds(&bytes, &secret[..14]) || holds(&bytes, &secret[secret.len() - 14..])
    })
}

async fn found(gateway: &Gateway, words: &str) -> usize {
    let (text, syntax) = (words.to_owned(), Syntax::Words);
    let query = Query { text, syntax, limit: 10, ..Query::default() };
    gateway.search(&query).await.hits.len()
}

fn content(delta: &str) -> Value {
    json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": delta })
}

fn begun() -> Vec<Value> {
    vec![
        json!({ "type": "RUN_STARTED", "threadId": "shed", "runId": "r1", "protocolVersion": "1.0" }),
        json!({ "type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "assistant" }),
    ]
}

fn ended() -> Vec<Value> {
    vec![
        json!({ "type": "TEXT_MESSAGE_END", "messageId": "m1" }),
        json!({ "type": "RUN_FINISHED", "threadId": "shed", "runId": "r1" }),
    ]
}

/// The secret, a few characters at a time, in the middle of a line.
fn torn() -> Vec<Value> {
    let text = format!("It is here:\nthe token is {SECRET}, keep it.\nAnd wheel");
    let text: Vec<char> = text.chars().collect();
    let mut pieces: Vec<Value> =
        text.chunks(7).map(|piece| content(&piece.iter().collect::<String>())).collect();
    pieces.push(content("barrow."));
    pieces
}

#[tokio::test]
async fn a_credential_that_is_split_over_pieces_is_in_no_file_and_the_rest_is() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open(dir.path(), Level::Redacted);
    let events = [begun(), torn(), ended()].concat();
    let session = push(&gateway, Protocol::Agui, &events).await;
    let told = told(&gateway, &session);
    assert!(told.starts_with("It is here:\nthe token is "), "{told}");
    assert!(told.ends_with(", keep it.\nAnd wheelbarrow."), "{told}");
    assert!(!told.contains("ghp_16"), "{told}");
    assert_eq!((found(&gateway, "wheelbarrow").await, found(&gateway, "keep").await), (1, 1));
    assert_eq!(found(&gateway, SECRET).await, 0);
    drop(gateway);
    assert!(!leaks(dir.path()));
}

#[tokio::test]
async fn what_is_kept_in_full_is_kept_piece_by_piece_and_found_as_a_whole() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open(dir.path(), Level::Full);
    let events = [begun(), torn(), ended()].concat();
    push(&gateway, Protocol::Agui, &events).await;
    let records = gateway.journal.after(0, 100).unwrap();
    let bodies: Vec<String> =
        records.iter().map(|it| String::from_utf8_lossy(&it.body).into_owned()).collect();
    assert_eq!(bodies, events.iter().map(Value::to_string).collect::<Vec<_>>());
    assert_eq!(found(&gateway, "wheelbarrow").await, 1, "a word that is split is found");
}

#[tokio::test]
async fn a_word_that_is_split_over_a_restart_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open(dir.path(), Level::Full);
    push(&gateway, Protocol::Agui, &[begun(), vec![content("wheel")]].concat()).await;
    drop(gateway);
    let gateway = open(dir.path(), Level::Full);
    push(&gateway, Protocol::Agui, &[vec![content("barrow")], ended()].concat()).await;
    assert_eq!(found(&gateway, "wheelbarrow").await, 1);
}

#[tokio::test]
async fn a_credential_that_is_split_over_a_restart_is_in_no_file() {
    let dir = tempfile::tempdir().unwrap();
    for cut in 1..torn().len() {
        let dir = dir.path().join(cut.to_string());
        std::fs::create_dir(&dir).unwrap();
        let (first, rest) = (torn()[..cut].to_vec(), torn()[cut..].to_vec());
        let gateway = open(&dir, Level::Redacted);
        push(&gateway, Protocol::Agui, &[begun(), first].concat()).await;
        drop(gateway);
        let gateway = open(&dir, Level::Redacted);
        let session = push(&gateway, Protocol::Agui, &[rest, ended()].concat()).await;
        assert!(!told(&gateway, &session).contains("ghp_16"));
        drop(gateway);
        assert!(!leaks(&dir), "cut at {cut}");
    }
}

#[tokio::test]
async fn arguments_outputs_and_loose_pieces_are_put_together_first() {
    let (front, back) = SECRET.split_at(9);
    let call =
        |kind: &str, delta: &str| json!({ "type": kind, "toolCallId": "c1", "delta": delta });
    let run =
        |events: Vec<Value>| [vec![begun()[0].clone()], events, vec![ended()[1].clone()]].concat();
    let named = json!({ "type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "sh" });
    let arguments = run(vec![
        named,
        call("TOOL_CALL_ARGS", &format!("{{\"command\":\"login {front}")),
        call("TOOL_CALL_ARGS", &format!("{back} spade\"}}")),
        json!({ "type": "TOOL_CALL_END", "toolCallId": "c1" }),
    ]);
    let mut first = call("TOOL_CALL_CHUNK", &format!("{{\"command\":\"login {front}"));
    first["toolCallName"] = json!("sh");
    let loose_call = run(vec![
        first,
        json!({ "type": "TOOL_CALL_CHUNK", "delta": format!("{back} spade\"}}") }),
    ]);
    let loose_text = run(vec![
        json!({ "type": "TEXT_MESSAGE_CHUNK", "messageId": "m1", "role": "assistant", "delta": format!("login {front}") }),
        json!({ "type": "TEXT_MESSAGE_CHUNK", "delta": format!("{back} spade") }),
    ]);
    let thought = run(vec![
        json!({ "type": "REASONING_START", "messageId": "m1" }),
        json!({ "type": "REASONING_MESSAGE_START", "messageId": "m1", "role": "reasoning" }),
        json!({ "type": "REASONING_MESSAGE_CONTENT", "messageId": "m1", "delta": format!("login {front}") }),
        json!({ "type": "REASONING_MESSAGE_CONTENT", "messageId": "m1", "delta": format!("{back} spade") }),
        json!({ "type": "REASONING_MESSAGE_END", "messageId": "m1" }),
        json!({ "type": "REASONING_END", "messageId": "m1" }),
    ]);
    let spoken = |number: usize, chunk: &str, complete: bool| {
        json!({
            "@context": "https://aaep-protocol.org/context/v1", "aaep_version": "1.0.0",
            "type": "aaep:agent.output.streaming", "event_id": format!("evt_{number}"),
            "session_id": "sess_1", "timestamp": "2026-11-15T09:00:00.000Z",
            "producer": { "agent_id": "finch" }, "urgency": "normal", "output_id": "out_1",
            "chunk": chunk, "complete": complete,
        })
    };
    let output = vec![
        spoken(1, &format!("login {front}"), false),
        spoken(2, &format!("{back} spade"), true),
    ];
    for (protocol, events) in [
        (Protocol::Agui, arguments),
        (Protocol::Agui, loose_call),
        (Protocol::Agui, loose_text),
        (Protocol::Agui, thought),
        (Protocol::Aaep, output),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let gateway = open(dir.path(), Level::Redacted);
        let session = push(&gateway, protocol, &events).await;
        let told = told(&gateway, &session);
        assert!(told.contains("login ") && told.contains(" spade"), "{told}: {events:?}");
        assert!(!told.contains("ghp_16"), "{told}");
        drop(gateway);
        assert!(!leaks(dir.path()), "{events:?}");
    }
}

#[tokio::test]
async fn the_same_piece_again_is_known_again_whatever_was_kept_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open(dir.path(), Level::Redacted);
    let source = Pusher {
        protocol: Protocol::Agui,
        thread: Some("shed".to_owned()),
        door: "http",
        key: "agent".to_owned(),
        idempotency: Some("once".to_owned()),
    };
    let messages: Vec<_> = [begun(), torn(), ended()]
        .concat()
        .iter()
        .map(|event| Ok(Bytes::from(event.to_string())))
        .collect();
    let first = Push { source, messages };
    let before = gateway.push(first.clone()).await.unwrap();
    let again = gateway.push(first.clone()).await.unwrap();
    for (before, again) in before.iter().zip(&again) {
        assert_eq!((again.status, again.position), (Status::Duplicate, before.position));
    }
    let mut other = first;
    other.messages[3] = Ok(Bytes::from(content("else").to_string()));
    assert_eq!(gateway.push(other).await.unwrap()[3].status, Status::Refused);
}

fn message(event: Value) -> Message {
    Message::of_value(Protocol::Agui, event)
}

#[test]
fn a_key_of_many_lines_is_held_until_its_end() {
    let mut pieces = Pieces::default();
    let mut keep = |delta: &str| {
        let event = message(content(delta));
        let kept = pieces.keep(Protocol::Agui, &event).unwrap_or(event);
        String::from_utf8_lossy(kept.bytes()).into_owned()
    };
    assert!(keep("Here:\n-----BEGIN PRIVATE ").contains("Here:"));
    assert_eq!(keep("KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n"), "[]");
    let told = keep("BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n-----END PRIVATE KEY-----\nDone.\n");
    assert!(told.contains("Done.") && !told.contains("BKcwgg") && !told.contains("MIIE"), "{told}");
}

#[test]
fn what_is_too_long_to_be_held_is_not_kept() {
    let mut pieces = Pieces::default();
    let long = "x".repeat(LINE_BYTES);
    for _ in 0..3 {
        let kept = pieces.keep(Protocol::Agui, &message(content(&long)));
        assert_eq!(kept.map(|kept| kept.bytes().clone()).as_deref(), Some(&b"[]"[..]));
        assert!(pieces.held.iter().all(|held| held.text.len() <= LINE_BYTES));
    }
    let kept = pieces.keep(Protocol::Agui, &message(content("x\nshort\n"))).unwrap();
    assert_eq!(kept.value(), &content("short\n"));
    for number in 0..MOST * 2 {
        let event = json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": number.to_string(), "delta": "x" });
        pieces.keep(Protocol::Agui, &message(event));
    }
    assert_eq!(pieces.held.len(), MOST);
}
