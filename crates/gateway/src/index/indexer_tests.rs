use std::path::Path;

use banister_events::event::Protocol;
use banister_journal::{Query, Retention};
use bytes::Bytes;
use serde_json::{Value, json};

use super::*;
use crate::clock::Clock;
use crate::ingest::{Push, Pusher};
use crate::pipeline::Incoming;
use crate::{Gateway, Settings};

const SOON: Duration = Duration::from_secs(20);

fn open(dir: &Path) -> Arc<Gateway> {
    let clock = Clock::manual("2026-11-15T09:00:00Z".parse().unwrap());
    Gateway::open(Settings::new(dir.join("data")), clock).unwrap()
}

async fn push(gateway: &Arc<Gateway>, thread: &str, events: &[Value]) {
    let source = Pusher {
        protocol: Protocol::Agui,
        thread: Some(thread.to_owned()),
        door: "http",
        key: "agent".to_owned(),
        idempotency: None,
    };
    let messages = events.iter().map(|event| Ok(Bytes::from(event.to_string()))).collect();
    gateway.push(Push { source, messages }).await.unwrap();
}

/// A message of two pieces, and its end.
fn said(thread: &str, words: (&str, &str)) -> [Vec<Value>; 2] {
    let content =
        |delta: &str| json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": delta });
    let begun = vec![
        json!({ "type": "RUN_STARTED", "threadId": thread, "runId": "r1" }),
        json!({ "type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "assistant" }),
        content(words.0),
    ];
    let ended = vec![
        content(words.1),
        json!({ "type": "TEXT_MESSAGE_END", "messageId": "m1" }),
        json!({ "type": "RUN_FINISHED", "threadId": thread, "runId": "r1" }),
    ];
    [begun, ended]
}

fn count(gateway: &Gateway, words: &str) -> usize {
    let query = Query { text: words.to_owned(), limit: 50, ..Query::default() };
    gateway.journal.search(&query).unwrap().hits.len()
}

#[tokio::test]
async fn what_was_not_indexed_before_the_end_is_indexed_by_the_next_gateway_and_once() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open(dir.path());
    let [begun, ended] = said("shed", ("The wheel", "barrow is green."));
    push(&gateway, "shed", &begun).await;
    // The first half is read, then the gateway ends: nothing of the message can be found yet.
    gateway.indexer.catch_up(gateway.journal.head()).await.unwrap();
    assert_eq!((gateway.indexer.behind(), count(&gateway, "wheelbarrow")), (0, 0));
    drop(gateway);
    let gateway = open(dir.path());
    push(&gateway, "shed", &ended).await;
    let prompt = json!({ "session_id": "one", "cwd": "/src", "prompt": "Water the ferns." });
    gateway.accept(&Incoming::of_claude("UserPromptSubmit", &prompt)).await.unwrap();
    assert_eq!((gateway.indexer.behind(), count(&gateway, "ferns")), (4, 0));
    drop(gateway);
    for _ in 0..2 {
        let gateway = open(dir.path());
        gateway.indexer.catch_up(gateway.journal.head()).await.unwrap();
        assert_eq!(gateway.indexer.behind(), 0);
        assert_eq!((count(&gateway, "wheelbarrow"), count(&gateway, "ferns")), (1, 1));
    }
}

#[tokio::test]
async fn a_gateway_that_runs_feeds_its_index() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open(dir.path());
    let stop = CancellationToken::new();
    let follows = gateway.tasks.spawn(gateway.indexer.clone().follow(stop.clone()));
    for number in 0..3 {
        let thread = format!("shed {number}");
        push(&gateway, &thread, &said(&thread, ("The wheel", "barrow is green.")).concat()).await;
        let fed = async {
            while count(&gateway, "wheelbarrow") <= number {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(SOON, fed).await.unwrap();
    }
    stop.cancel();
    timeout(SOON, follows).await.unwrap().unwrap();
    assert_eq!(count(&gateway, "wheelbarrow"), 3);
}

#[tokio::test]
async fn sessions_that_were_forgotten_or_emptied_meanwhile_are_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open(dir.path());
    let [begun, ended] = said("shed", ("The wheel", "barrow is green."));
    push(&gateway, "shed", &begun).await;
    gateway.indexer.catch_up(2).await.unwrap();
    assert_eq!(gateway.journal.indexed(), 2);
    // Somebody empties the index, and the third record stands at hand.
    gateway.journal.clear_index().await.unwrap();
    push(&gateway, "shed", &ended).await;
    gateway.indexer.catch_up(gateway.journal.head()).await.unwrap();
    assert_eq!(count(&gateway, "wheelbarrow"), 1);
    // All of another session is removed before it is indexed.
    push(&gateway, "gone", &said("gone", ("The rain", "coat is red.")).concat()).await;
    let key = banister_journal::SigningKey::from_seed(&[7; 32]);
    let retention = Retention { bytes: Some(0), ..Retention::default() };
    gateway.journal.prune(retention, &key, gateway.clock.now()).await.unwrap();
    gateway.indexer.catch_up(gateway.journal.head()).await.unwrap();
    assert_eq!((gateway.indexer.behind(), count(&gateway, "raincoat")), (0, 0));
    assert_eq!(count(&gateway, "wheelbarrow"), 0);
}

#[test]
fn sessions_that_were_silent_longest_are_forgotten() {
    let agents = Arc::new(Agents::builtin().unwrap());
    let mut sessions = Sessions::default();
    for number in 0..SESSIONS as u64 {
        sessions.readers.insert(number.to_string(), (SessionReader::new(&agents), number));
    }
    sessions.forget();
    assert!(sessions.readers.len() < SESSIONS);
    assert!(sessions.readers.contains_key(&(SESSIONS - 1).to_string()));
    assert!(!sessions.readers.contains_key("0"));
}
