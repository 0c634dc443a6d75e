use std::sync::Arc;

use banister_events::activity::{Context, Gate, Origin, Risk, Status};
use serde_json::json;

use super::*;

fn told(what: What) -> Activity {
    let origin =
        Origin { session: "s_1".into(), seq: 1, time: "2026-11-15T09:00:00Z".parse().unwrap() };
    Activity { origin, context: Arc::new(Context::default()), what }
}

fn found(kind: &str, title: &str, text: &str) -> Passage {
    passage(kind, title, text.to_owned())
}

fn bash(command: &str) -> Action {
    Action { input: Some(json!({ "command": command })), ..Action::unseen("t1", "Bash") }
}

fn gate(decision: Decision) -> Gate {
    Gate {
        decision,
        rule: "r".to_owned(),
        reason: "It deletes.".to_owned(),
        risk: Risk::High,
        irreversible: None,
        opaque: None,
        safer: None,
    }
}

#[test]
fn a_message_in_pieces_is_found_as_a_whole_when_it_ends() {
    let mut assembler = Assembler::default();
    let mut say = |message: &str, text: &str, last| {
        let (message, text) = (message.to_owned(), text.to_owned());
        assembler.add(&told(What::Said { message, role: Role::Assistant, text, last }))
    };
    assert_eq!(say("m1", "All tests ", false), None);
    assert_eq!(say("m2", "Hello", true), Some(found("message", "assistant", "Hello")));
    assert_eq!(say("m1", "pass.", false), None);
    assert_eq!(say("m1", "", true), Some(found("message", "assistant", "All tests pass.")));
    assert_eq!(say("m1", "", true), None, "nothing is not found");
}

#[test]
fn an_action_is_found_with_its_outcome_when_it_ends() {
    let mut assembler = Assembler::default();
    let (action, gate) = (bash("cargo test"), Some(gate(Decision::Allow)));
    assert_eq!(assembler.add(&told(What::ActionRequested { action, gate })), None);
    let ended = What::ActionEnded {
        id: "t1".to_owned(),
        tool: "Bash".to_owned(),
        status: Status::Success,
        output: Some(json!({ "stdout": "42 passed", "lines": [1, true, "done"] })),
        error: None,
        duration_ms: None,
    };
    let text = "cargo test\n42 passed\n1\ndone";
    assert_eq!(assembler.add(&told(ended.clone())), Some(found("action", "Bash", text)));
    let alone = "42 passed\n1\ndone";
    assert_eq!(assembler.add(&told(ended)), Some(found("action", "Bash", alone)), "it is over");
}

#[test]
fn an_action_that_is_refused_is_found_at_once() {
    let mut assembler = Assembler::default();
    let (action, gate) = (bash("rm -rf /"), Some(gate(Decision::Deny)));
    let refused = assembler.add(&told(What::ActionRequested { action, gate }));
    assert_eq!(refused, Some(found("action", "Bash", "rm -rf /\nIt deletes.")));
    let denied =
        What::ActionDenied { action: bash("rm -rf /"), by: "user".to_owned(), reason: None };
    assert_eq!(assembler.add(&told(denied)), Some(found("action", "Bash", "rm -rf /")));
}

#[test]
fn what_is_under_way_is_bounded() {
    let mut assembler = Assembler::default();
    let piece = "x".repeat(1024);
    for _ in 0..1_000 {
        let message = "m1".to_owned();
        assembler.add(&told(What::Thought { message, text: piece.clone(), last: false }));
    }
    for number in 0..1_000 {
        let (message, text) = (format!("n{number}"), piece.clone());
        assembler.add(&told(What::Thought { message, text, last: false }));
        let action = Action::unseen(&number.to_string(), "Read");
        assembler.add(&told(What::ActionRequested { action, gate: None }));
    }
    assert_eq!((assembler.texts.len(), assembler.actions.len()), (UNDER_WAY, UNDER_WAY));
    assert_eq!(assembler.texts["m1"].len(), TEXT_BYTES);
    let newest = assembler.actions.contains_key("999");
    assert!(newest && !assembler.actions.contains_key("0"), "newer ones come in their place");
}
