//! A message is parsed once, at its door: whoever checks it, records it, searches it or follows it live shares that.

use std::time::Duration;

use banister_events::json::parsed;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::*;
use crate::clock::Clock;
use crate::deliver::{FollowTerms, Start};
use crate::ingest::{Push, Pusher, Status, Waiting};
use crate::pipeline::Incoming;
use crate::{Gateway, Settings};

const SOON: Duration = Duration::from_secs(20);

fn open(dir: &std::path::Path) -> Arc<Gateway> {
    let clock = Clock::manual("2026-11-15T09:00:00Z".parse().unwrap());
    Gateway::open(Settings::new(dir.join("data")), clock).unwrap()
}

/// What somebody is told who follows from now on.
pub(crate) async fn follow(gateway: &Arc<Gateway>, protocol: Protocol) -> mpsc::Receiver<Bytes> {
    let (out, mut frames) = mpsc::channel(64);
    let terms =
        FollowTerms { protocol, session: None, start: Start::Now, language: "en".to_owned() };
    gateway.tasks.spawn(Arc::clone(gateway).follow(terms, out));
    let hello = timeout(SOON, frames.recv()).await.unwrap().unwrap();
    assert!(hello.starts_with(b": connected"), "{hello:?}");
    frames
}

/// Waits until something was told.
pub(crate) async fn hear(frames: &mut mpsc::Receiver<Bytes>, words: &str) {
    let told = async {
        while let Some(told) = frames.recv().await {
            if String::from_utf8_lossy(&told).contains(words) {
                return;
            }
        }
        panic!("the stream ended");
    };
    timeout(SOON, told).await.unwrap_or_else(|_| panic!("nobody was told {words:?}"));
}

#[tokio::test]
async fn a_payload_of_a_hook_is_parsed_once_on_its_way_to_those_who_follow() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open(dir.path());
    let mut spoken = follow(&gateway, Protocol::Aaep).await;
    let mut hooked = follow(&gateway, Protocol::Aep).await;
    let prompt = json!({ "session_id": "a", "prompt": "Water the roses." });
    let tool = json!({
        "session_id": "a", "tool_name": "Bash", "tool_use_id": "t1", "tool_input": { "command": "ls" },
    });
    for (hook, payload, told) in
        [("UserPromptSubmit", prompt, "Water the roses."), ("PreToolUse", tool, "event_id")]
    {
        let before = parsed();
        gateway.accept(&Incoming::of_claude(hook, &payload)).await.unwrap();
        hear(&mut spoken, told).await;
        hear(&mut hooked, "aep_version").await;
        assert_eq!(parsed() - before, 1, "{hook}");
    }
}

fn pushed(protocol: Protocol) -> (Value, &'static str) {
    match protocol {
        Protocol::Aaep => (
            json!({
                "@context": "https://aaep-protocol.org/context/v1", "aaep_version": "1.0.0",
                "type": "aaep:agent.session.started", "event_id": "evt_1", "session_id": "sess_1",
                "timestamp": "2026-11-15T09:00:00Z", "producer": { "agent_id": "gardener" },
                "request_text": "Water the roses.",
            }),
            "Water the roses.",
        ),
        Protocol::Agui => (
            json!({ "type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0" }),
            "session.started",
        ),
        Protocol::Aep => (
            json!({
                "aep_version": "0.1", "id": "evt_1", "type": "prompt.submitted",
                "time": "2026-11-15T09:00:00Z", "agent": { "slug": "gardener" },
                "session": { "id": "s" }, "content": [{ "type": "prompt", "text": "Water the roses." }],
            }),
            "Water the roses.",
        ),
    }
}

#[tokio::test]
async fn a_pushed_event_is_parsed_once_on_its_way_to_those_who_follow() {
    for protocol in Protocol::ALL {
        let dir = tempfile::tempdir().unwrap();
        let gateway = open(dir.path());
        let mut spoken = follow(&gateway, Protocol::Aaep).await;
        let mut hooked = follow(&gateway, Protocol::Aep).await;
        let (event, told) = pushed(protocol);
        let source = Pusher {
            protocol,
            thread: Some("t".to_owned()),
            door: "http",
            key: "agent".to_owned(),
            idempotency: None,
        };
        let before = parsed();
        let push = Push { source, messages: vec![Ok(Bytes::from(event.to_string()))] };
        let receipts = gateway.push(push).await.unwrap();
        assert_eq!(receipts[0].status, Status::Recorded, "{receipts:?}");
        hear(&mut spoken, told).await;
        hear(&mut hooked, "aep_version").await;
        assert_eq!(parsed() - before, 1, "{protocol}");
    }
}

#[tokio::test]
async fn an_event_that_somebody_waits_on_is_parsed_once() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open(dir.path());
    let mut spoken = follow(&gateway, Protocol::Aaep).await;
    let event = json!({
        "aep_version": "0.1", "id": "evt_1", "type": "action.requested", "time": "2026-11-15T09:00:00Z",
        "agent": { "slug": "gardener" }, "session": { "id": "s" }, "tool": { "type": "native", "name": "Bash" },
        "action": { "type": "tool_call", "id": "a1", "input": { "command": "ls" } },
    });
    let before = parsed();
    let waiting = Waiting {
        door: "http",
        key: "agent".to_owned(),
        body: event.to_string().into(),
        wait: Duration::from_secs(1),
    };
    // A person is asked, and does not answer here.
    let held = gateway.tasks.spawn({
        let gateway = Arc::clone(&gateway);
        async move { gateway.push_and_decide(waiting).await }
    });
    hear(&mut spoken, "event_id").await;
    assert_eq!(parsed() - before, 1);
    held.abort();
}
