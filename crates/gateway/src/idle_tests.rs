use banister_events::aaep::write::Writer;
use banister_events::check::Checker;
use banister_events::event::Protocol;
use banister_events::finding::Severity;
use banister_events::{aep, agui};
use serde_json::json;

use super::*;
use crate::Settings;
use crate::clock::Clock;
use crate::desk::AnswerRequest;
use crate::ingest::{Push, Pusher};
use crate::pipeline::Incoming;

struct Room {
    dir: tempfile::TempDir,
    clock: Clock,
    gateway: Arc<Gateway>,
}

/// There is all the time in the world to answer.
fn settings(dir: &tempfile::TempDir) -> Settings {
    Settings { ask_time: Duration::from_hours(24), ..Settings::new(dir.path().join("data")) }
}

impl Room {
    fn open() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Clock::manual("2026-11-15T09:00:00Z".parse().unwrap());
        let gateway = Gateway::open(settings(&dir), clock.clone()).unwrap();
        Self { dir, clock, gateway }
    }

    fn reopen(self) -> Self {
        let Self { dir, clock, gateway } = self;
        drop(gateway);
        let gateway = Gateway::open(settings(&dir), clock.clone()).unwrap();
        Self { dir, clock, gateway }
    }

    async fn hook(&self, hook: &str, payload: &Value) -> crate::admission::Accepted {
        self.gateway.accept(&Incoming::of_claude(hook, payload)).await.unwrap()
    }

    async fn prompt(&self) -> String {
        let payload = json!({ "session_id": "one", "cwd": "/src", "prompt": "Tidy up." });
        self.hook("UserPromptSubmit", &payload).await.records[0].session.clone()
    }

    async fn pass(&self, minutes: u64) {
        self.clock.advance(Duration::from_mins(minutes));
        self.gateway.end_idle_turns().await;
    }

    fn kinds(&self) -> Vec<Kind> {
        self.gateway.journal.after(0, 100).unwrap().iter().map(|record| record.kind).collect()
    }

    /// What a session's AAEP watchers hear, held to the protocol.
    fn heard(&self, session: &str) -> Vec<String> {
        let mut projection = Projection::new(Arc::clone(&self.gateway.agents));
        let records = self.gateway.journal.session(session, 0, 100).unwrap();
        let told: Vec<_> = records.iter().flat_map(|record| projection.next(record)).collect();
        let (mut spoken, mut hooks) = (Writer::new("en"), aep::write::Writer::default());
        let mut history = agui::write::History::default();
        let (mut announced, mut hooked) = (Vec::new(), Vec::new());
        for activity in &told {
            announced.extend(spoken.write(activity));
            hooked.extend(hooks.write(activity));
            history.add(activity);
        }
        let mut run = agui::write::Writer::new("t", "r");
        let mut agui = run.begin(&history);
        run.finish(None, &mut agui);
        for (protocol, events) in
            [(Protocol::Aaep, &announced), (Protocol::Aep, &hooked), (Protocol::Agui, &agui)]
        {
            let mut checker = Checker::new(protocol);
            let found = events.iter().flat_map(|event| checker.value(event)).collect::<Vec<_>>();
            let wrong = found.iter().find(|finding| finding.rule.severity == Severity::Error);
            assert_eq!(wrong, None, "{protocol}: {events:#?}");
        }
        announced
            .iter()
            .map(|event| event["type"].as_str().unwrap().replace("aaep:agent.", ""))
            .collect()
    }
}

#[tokio::test]
async fn a_turn_whose_agent_has_gone_silent_ends_and_the_next_event_opens_another() {
    let room = Room::open();
    let session = room.prompt().await;
    room.pass(29).await;
    assert_eq!(room.kinds(), [Kind::Event]);
    room.pass(1).await;
    assert_eq!(room.kinds(), [Kind::Event, Kind::Idle]);
    room.pass(60).await;
    assert_eq!(room.kinds(), [Kind::Event, Kind::Idle], "once");
    let heard = room.heard(&session);
    assert_eq!(heard.first().map(String::as_str), Some("session.started"));
    assert_eq!(heard.last().map(String::as_str), Some("session.cancelled"), "{heard:?}");

    let call = json!({
        "session_id": "one", "cwd": "/src", "tool_name": "Bash", "tool_use_id": "t1",
        "tool_input": { "command": "ls" },
    });
    room.hook("PreToolUse", &call).await;
    let heard = room.heard(&session);
    assert_eq!(heard.iter().filter(|kind| *kind == "session.started").count(), 2, "{heard:?}");
    room.pass(30).await;
    assert_eq!(room.kinds().last(), Some(&Kind::Idle), "and that ends as well");
    assert_eq!(room.heard(&session).last().map(String::as_str), Some("session.cancelled"));
}

#[tokio::test]
async fn a_turn_that_has_ended_is_left_alone() {
    let room = Room::open();
    room.prompt().await;
    room.hook("Stop", &json!({ "session_id": "one", "cwd": "/src" })).await;
    room.pass(600).await;
    assert_eq!(room.kinds(), [Kind::Event, Kind::Event]);
}

#[tokio::test]
async fn a_turn_that_waits_for_a_person_does_not_end() {
    let room = Room::open();
    room.prompt().await;
    let call = json!({
        "session_id": "one", "cwd": "/src", "tool_name": "Bash", "tool_use_id": "t1",
        "tool_input": { "command": "git push" },
    });
    let patient =
        Incoming { wait: Duration::from_hours(20), ..Incoming::of_claude("PreToolUse", &call) };
    let ask = room.gateway.accept(&patient).await.unwrap().ask.unwrap();
    room.pass(300).await;
    assert!(!room.kinds().contains(&Kind::Idle));
    let reply = AnswerRequest::of(true, "p");
    room.gateway.desk.answer(&ask, &reply).await.unwrap();
    room.gateway.end_idle_turns().await;
    assert!(!room.kinds().contains(&Kind::Idle), "something has just happened");
    room.pass(30).await;
    assert_eq!(room.kinds().last(), Some(&Kind::Idle));
}

#[tokio::test]
async fn a_turn_that_was_open_when_the_gateway_stopped_ends_after_a_start() {
    let room = Room::open();
    let session = room.prompt().await;
    let room = room.reopen();
    room.pass(29).await;
    assert_eq!(room.kinds(), [Kind::Event]);
    room.pass(1).await;
    assert_eq!(room.kinds(), [Kind::Event, Kind::Idle]);
    let room = room.reopen();
    room.pass(60).await;
    assert_eq!(room.kinds(), [Kind::Event, Kind::Idle]);
    assert_eq!(room.heard(&session).last().map(String::as_str), Some("session.cancelled"));
}

#[tokio::test]
async fn a_pushed_run_that_never_ends_is_ended() {
    let room = Room::open();
    let source = Pusher {
        protocol: Protocol::Agui,
        thread: Some("shed".to_owned()),
        door: "http",
        key: "agent".to_owned(),
        idempotency: None,
    };
    let started = json!({ "type": "RUN_STARTED", "threadId": "shed", "runId": "r1" });
    let messages = vec![Ok(Bytes::from(started.to_string()))];
    let receipts = room.gateway.push(Push { source: source.clone(), messages }).await.unwrap();
    room.pass(30).await;
    assert_eq!(room.kinds(), [Kind::Event, Kind::Idle]);
    // What comes late ends nothing twice.
    let finished = json!({ "type": "RUN_FINISHED", "threadId": "shed", "runId": "r1" });
    let messages = vec![Ok(Bytes::from(finished.to_string()))];
    room.gateway.push(Push { source, messages }).await.unwrap();
    room.heard(&receipts[0].session);
    room.pass(30).await;
    let idle = room.kinds().iter().filter(|kind| **kind == Kind::Idle).count();
    assert!(idle <= 2, "{:?}", room.kinds());
}

#[tokio::test]
async fn an_end_that_something_came_before_ends_nothing() {
    let room = Room::open();
    let session = room.prompt().await;
    let fact = IdleFact { after: 1, silent_seconds: 1_800 };
    let idle = |seq: u64| {
        let first = room.gateway.journal.session(&session, 0, 1).unwrap()[0].clone();
        let body = Bytes::from(serde_json::to_vec(&fact).unwrap());
        Record { seq, kind: Kind::Idle, body, ..(*first).clone() }
    };
    let prompt = room.gateway.journal.session(&session, 0, 1).unwrap()[0].clone();
    let mut projection = Projection::new(Arc::clone(&room.gateway.agents));
    assert!(!projection.next(&prompt).is_empty());
    assert_eq!(projection.clone().next(&idle(2)).len(), 1);
    projection.next(&Record { seq: 2, ..(*prompt).clone() });
    assert_eq!(projection.next(&idle(3)), []);
}
