use std::time::Duration;

use banister_events::event::Protocol;
use banister_journal::{Hit, Level, Query};
use bytes::Bytes;
use serde_json::{Value, json};

use super::*;
use crate::clock::Clock;
use crate::ingest::{Push, Pusher};
use crate::keep::CapturePolicy;
use crate::pipeline::Incoming;
use crate::{Gateway, Settings};

fn open(dir: &std::path::Path, level: Level) -> Arc<Gateway> {
    let clock = Clock::manual("2026-11-15T09:00:00Z".parse().unwrap());
    let capture = CapturePolicy { level, ..CapturePolicy::default() };
    let settings = Settings { capture, ..Settings::new(dir.join("data")) };
    Gateway::open(settings, clock).unwrap()
}

async fn fill(gateway: &Arc<Gateway>) {
    for session in ["one", "two"] {
        let prompt = json!({ "session_id": session, "cwd": "/src", "prompt": "Water the ferns." });
        gateway.accept(&Incoming::of_claude("UserPromptSubmit", &prompt)).await.unwrap();
    }
    let call = json!({
        "session_id": "one", "cwd": "/src", "tool_name": "Bash", "tool_use_id": "t1",
        "tool_input": { "command": "git push ferns" },
    });
    let wait = Duration::from_mins(5);
    let call = Incoming { wait, ..Incoming::of_claude("PreToolUse", &call) };
    gateway.accept(&call).await.unwrap();
    let source = Pusher {
        protocol: Protocol::Agui,
        thread: Some("shed".to_owned()),
        door: "http",
        key: "agent".to_owned(),
        idempotency: None,
    };
    let content =
        |delta: &str| json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": delta });
    let events = [
        json!({ "type": "RUN_STARTED", "threadId": "shed", "runId": "r1" }),
        json!({ "type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "assistant" }),
        content("The wheel"),
        content("barrow is green."),
        json!({ "type": "TEXT_MESSAGE_END", "messageId": "m1" }),
        json!({ "type": "RUN_FINISHED", "threadId": "shed", "runId": "r1" }),
    ];
    let messages = events.iter().map(|it: &Value| Ok(Bytes::from(it.to_string()))).collect();
    gateway.push(Push { source, messages }).await.unwrap();
}

fn indexed(gateway: &Gateway, words: &str) -> Vec<(String, u64, String)> {
    let query = Query { text: words.to_owned(), limit: 50, ..Query::default() };
    let told = |hit: Hit| (hit.session, hit.seq, hit.kind);
    gateway.journal.search(&query).unwrap().hits.into_iter().map(told).collect()
}

#[tokio::test]
async fn an_index_that_is_made_again_finds_what_the_first_one_found() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open(dir.path(), Level::Full);
    fill(&gateway).await;
    let words = ["ferns", "wheelbarrow", "green"];
    gateway.indexer.catch_up(gateway.journal.head()).await.unwrap();
    let before = words.map(|word| indexed(&gateway, word));
    assert!(before.iter().all(|hits| !hits.is_empty()), "{before:?}");
    gateway.journal.clear_index().await.unwrap();
    assert!(words.iter().all(|word| indexed(&gateway, word).is_empty()));
    for _ in 0..2 {
        let count = rebuild(&gateway.journal, &gateway.agents).await.unwrap();
        assert_eq!(words.map(|word| indexed(&gateway, word)), before, "in the same order");
        assert!(count >= 4, "{count}");
    }
}

#[tokio::test]
async fn what_was_not_kept_is_not_found_afterwards_either() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open(dir.path(), Level::Metadata);
    fill(&gateway).await;
    assert_eq!(gateway.desk.inbox().len(), 1, "an open ask holds its action");
    assert_eq!(rebuild(&gateway.journal, &gateway.agents).await.unwrap(), 0);
    assert!(indexed(&gateway, "ferns").is_empty());
}
