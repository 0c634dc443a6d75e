use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::pipeline::Incoming;
use crate::{Gateway, Settings};
use banister_events::activity::Risk;
use serde_json::{Value, json};

struct Room {
    _dir: tempfile::TempDir,
    clock: Clock,
    gateway: Arc<Gateway>,
}

fn room() -> Room {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::manual("2026-11-15T09:00:00Z".parse().unwrap());
    let gateway = open(dir.path(), &clock);
    Room { _dir: dir, clock, gateway }
}

fn open(dir: &std::path::Path, clock: &Clock) -> Arc<Gateway> {
    let settings = Settings::new(dir.join("data"));
    Gateway::open(settings, clock.clone()).unwrap()
}

fn incoming(event_id: Option<&str>, command: &str) -> Incoming {
    let payload = json!({
        "session_id": "one", "cwd": "/src", "tool_name": "Bash", "tool_use_id": "t1",
        "tool_input": { "command": command },
    });
    Incoming {
        event_id: event_id.map(str::to_owned),
        wait: Duration::from_mins(1),
        ..Incoming::of_claude("PreToolUse", &payload)
    }
}

fn reply(accept: bool) -> AnswerRequest {
    AnswerRequest::of(accept, "person")
}

#[tokio::test]
async fn the_first_answer_wins_and_the_second_is_told_who_was_first() {
    let room = room();
    let desk = &room.gateway.desk;
    let accepted = room.gateway.accept(&incoming(None, "git push")).await.unwrap();
    let ask = accepted.ask.unwrap();
    let waiting = desk.decide(accepted.gate.as_ref(), Some(&ask));
    let answering = async {
        desk.answer(&ask, &reply(false)).await.unwrap();
        desk.answer(&ask, &reply(true)).await.unwrap_err().to_string()
    };
    let (decided, late) = tokio::join!(waiting, answering);
    assert_eq!(decided.behavior, Behavior::Deny);
    assert_eq!(late, "this was already rejected by user");
    assert!(desk.inbox().is_empty());
}

#[tokio::test]
async fn an_answer_after_the_deadline_does_not_count() {
    let room = room();
    let accepted = room.gateway.accept(&incoming(None, "git push")).await.unwrap();
    let ask = accepted.ask.unwrap();
    room.clock.advance(Duration::from_secs(61));
    let late = room.gateway.desk.answer(&ask, &reply(true)).await.unwrap_err();
    assert!(matches!(late, Refused::Late(fact) if fact.outcome == Outcome::Expired));
    let decided = room.gateway.desk.decide(accepted.gate.as_ref(), Some(&ask)).await;
    assert_eq!(decided.behavior, Behavior::Deny);
}

#[tokio::test]
async fn what_nobody_waits_on_is_withdrawn_but_not_at_once() {
    let room = room();
    let mut patient = incoming(None, "git push");
    patient.wait = Duration::from_hours(1);
    room.gateway.accept(&patient).await.unwrap();
    room.gateway.desk.sweep().await;
    assert_eq!(room.gateway.desk.inbox().len(), 1);
    room.clock.advance(Duration::from_secs(61));
    room.gateway.desk.sweep().await;
    assert!(room.gateway.desk.inbox().is_empty());
    let kinds: Vec<_> =
        room.gateway.journal.after(0, 10).unwrap().iter().map(|record| record.kind).collect();
    assert_eq!(kinds, [Kind::Event, Kind::Ask, Kind::Withdrawal]);
}

#[tokio::test]
async fn the_same_message_again_finds_the_same_ask() {
    let room = room();
    let first = room.gateway.accept(&incoming(Some("k1"), "git push")).await.unwrap();
    let again = room.gateway.accept(&incoming(Some("k1"), "git push")).await.unwrap();
    assert!(again.duplicate && !first.duplicate);
    assert_eq!(first.ask, again.ask);
    assert_eq!(room.gateway.desk.inbox().len(), 1);
}

#[tokio::test]
async fn a_yes_is_not_good_for_what_comes_later_under_its_key() {
    let room = room();
    let first = room.gateway.accept(&incoming(Some("k1"), "git push")).await.unwrap();
    let ask = first.ask.unwrap();
    room.gateway.desk.answer(&ask, &reply(true)).await.unwrap();
    let decide = || async {
        let again = room.gateway.accept(&incoming(Some("k1"), "git push")).await.unwrap();
        room.gateway.desk.decide(again.gate.as_ref(), again.ask.as_deref()).await.behavior
    };
    assert_eq!(decide().await, Behavior::Allow, "the hook that lost its connection asks again");
    room.clock.advance(Duration::from_secs(61));
    assert_eq!(decide().await, Behavior::Deny);
}

#[tokio::test]
async fn other_bytes_under_the_same_key_are_refused_and_kept() {
    let room = room();
    room.gateway.accept(&incoming(Some("k1"), "git status")).await.unwrap();
    let other = room.gateway.accept(&incoming(Some("k1"), "git push")).await.unwrap();
    assert_eq!(other.gate.unwrap().rule, "HOOK-05");
    assert_eq!(other.ask, None);
    assert_eq!(room.gateway.journal.after(0, 10).unwrap().len(), 2);
}

#[tokio::test]
async fn an_ask_that_is_not_on_the_desk_is_refused() {
    let room = room();
    let gate = Gate {
        decision: Decision::Ask,
        rule: "r".to_owned(),
        reason: "r".to_owned(),
        risk: Risk::Low,
        irreversible: None,
        opaque: None,
        safer: None,
    };
    let desk = &room.gateway.desk;
    assert_eq!(desk.decide(Some(&gate), None).await.behavior, Behavior::Deny);
    assert_eq!(desk.decide(Some(&gate), Some("ask_gone")).await.behavior, Behavior::Deny);
    assert_eq!(desk.decide(None, None).await.behavior, Behavior::Abstain);
}

#[tokio::test]
async fn an_ask_is_named_by_the_beginning_of_its_id_if_only_one_fits() {
    let room = room();
    let accepted = room.gateway.accept(&incoming(None, "git push")).await.unwrap();
    room.gateway.accept(&incoming(None, "git push")).await.unwrap();
    let ask = accepted.ask.unwrap();
    let desk = &room.gateway.desk;
    assert!(matches!(desk.answer("", &reply(true)).await, Err(Refused::Unknown(_))));
    assert!(matches!(desk.answer("zz", &reply(true)).await, Err(Refused::Unknown(_))));
    let short: String = ask.chars().take(20).collect();
    assert_eq!(desk.answer(&short, &reply(true)).await.unwrap().ask, ask);
}

#[tokio::test]
async fn a_hook_that_refused_by_itself_is_recorded_as_refused() {
    let room = room();
    let mut spooled = incoming(Some("k1"), "git status");
    spooled.kept = Some(crate::pipeline::Kept { refused: true, time: None });
    let accepted = room.gateway.accept(&spooled).await.unwrap();
    assert_eq!(accepted.gate.unwrap().decision, Decision::Deny);
}

#[tokio::test]
async fn what_is_open_and_what_was_answered_is_known_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::manual("2026-11-15T09:00:00Z".parse().unwrap());
    let gateway = open(dir.path(), &clock);
    let first = gateway.accept(&incoming(Some("k1"), "git push")).await.unwrap().ask.unwrap();
    let second = gateway.accept(&incoming(Some("k2"), "git push")).await.unwrap().ask.unwrap();
    gateway.desk.answer(&first, &reply(true)).await.unwrap();
    drop(gateway);
    let gateway = open(dir.path(), &clock);
    let open: Vec<_> = gateway.desk.inbox().into_iter().map(|opened| opened.ask.id).collect();
    assert_eq!(open, [second]);
    let late = gateway.desk.answer(&first, &reply(false)).await.unwrap_err();
    assert!(matches!(late, Refused::Late(fact) if fact.outcome == Outcome::Accepted));
}

#[tokio::test]
async fn only_what_came_after_the_mark_is_read_again_and_nothing_is_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::manual("2026-11-15T09:00:00Z".parse().unwrap());
    let gateway = open(dir.path(), &clock);
    gateway.history.tidy().await.unwrap();
    assert_eq!(gateway.journal.mark().unwrap(), 0);
    gateway.accept(&incoming(None, "git status")).await.unwrap();
    gateway.history.tidy().await.unwrap();
    assert_eq!(gateway.journal.mark().unwrap(), 1, "there is no ask at all");

    let first = gateway.accept(&incoming(Some("k1"), "git push")).await.unwrap().ask.unwrap();
    let second = gateway.accept(&incoming(Some("k2"), "git push")).await.unwrap().ask.unwrap();
    gateway.desk.answer(&second, &reply(true)).await.unwrap();
    gateway.history.tidy().await.unwrap();
    assert_eq!(gateway.journal.mark().unwrap(), 2, "the first ask is record 3");
    drop(gateway);
    let gateway = open(dir.path(), &clock);
    let open: Vec<_> = gateway.desk.inbox().into_iter().map(|opened| opened.ask.id).collect();
    assert_eq!(open, [first]);
    let late = gateway.desk.answer(&second, &reply(false)).await.unwrap_err();
    assert!(matches!(late, Refused::Late(_)));
}

#[path = "desk_tests/extend.rs"]
mod extend;
#[path = "desk_tests/person_answer.rs"]
mod person_answer;
