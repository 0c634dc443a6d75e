use proptest::prelude::*;

use jiff::Timestamp;

use super::*;
use crate::activity::{Origin, Risk, arbitrary};
use crate::check::Checker;
use crate::event::Protocol;
use crate::finding::Severity;

fn at(seq: u64, what: What) -> Activity {
    Activity {
        origin: Origin {
            session: "s_1".into(),
            seq,
            time: Timestamp::from_second(1_800_000_000 + i64::try_from(seq).unwrap()).unwrap(),
        },
        context: std::sync::Arc::new(Context {
            agent: "claude".to_owned(),
            agent_name: Some("Claude Code".to_owned()),
            ..Context::default()
        }),
        what,
    }
}

fn action() -> Action {
    Action { input: Some(json!({ "command": "git push" })), ..Action::unseen("a", "Bash") }
}

fn gate(decision: Decision, risk: Risk, irreversible: impl Into<Option<bool>>) -> Gate {
    Gate {
        decision,
        rule: "r".to_owned(),
        reason: "It leaves the machine.".to_owned(),
        risk,
        irreversible: irreversible.into(),
        opaque: None,
        safer: None,
    }
}

fn ask() -> Ask {
    Ask {
        action: Some(action()),
        gate: Some(gate(Decision::Ask, Risk::High, true)),
        deadline: Timestamp::from_second(1_800_000_300).ok(),
        ..Ask::new("ask_1", "rpl_1", AskKind::Confirmation)
    }
}

fn story(steps: Vec<What>) -> Vec<Value> {
    let mut writer = Writer::new("en");
    steps.into_iter().zip(1..).flat_map(|(what, seq)| writer.write(&at(seq, what))).collect()
}

fn outline(events: &[Value]) -> Vec<String> {
    events
        .iter()
        .map(|event| {
            let kind = event["type"].as_str().unwrap().trim_start_matches("aaep:agent.");
            match event.get("to_state") {
                Some(to) => format!("→{}", to.as_str().unwrap()),
                None => kind.to_owned(),
            }
        })
        .collect()
}

fn requested(gate: Gate) -> What {
    What::ActionRequested { action: action(), gate: Some(gate) }
}

fn closed(outcome: Outcome) -> What {
    What::AskClosed {
        id: "ask_1".to_owned(),
        action: Some(action()),
        outcome,
        by: "user".to_owned(),
        message: None,
        response: None,
        updated_input: None,
    }
}

#[test]
fn an_accepted_ask_is_announced_before_the_tool_runs() {
    let events = story(vec![
        What::TurnStarted { request: Some("publish".to_owned()), summary: None },
        requested(gate(Decision::Ask, Risk::High, true)),
        What::AskOpened { ask: Box::new(ask()) },
        closed(Outcome::Accepted),
        What::TurnEnded {
            ending: Ending::Completed,
            summary: None,
            result: None,
            usage: Vec::new(),
        },
    ]);
    assert_eq!(
        outline(&events),
        [
            "session.started",
            "→thinking",
            "→awaiting_input",
            "awaiting.confirmation",
            "→calling_tool",
            "tool.invoked",
            "tool.completed",
            "→thinking",
            "session.completed",
        ]
    );
    assert_eq!(events[3]["default_decision"], "reject");
    assert_eq!(events[3]["timeout_seconds"], 297);
    assert_eq!(events[5]["irreversible"], true);
}

#[test]
fn a_rejected_ask_is_followed_by_a_change_of_state_and_no_tool() {
    for outcome in [Outcome::Rejected, Outcome::Expired, Outcome::Withdrawn] {
        let events = story(vec![
            What::TurnStarted { request: None, summary: None },
            requested(gate(Decision::Ask, Risk::High, true)),
            What::AskOpened { ask: Box::new(ask()) },
            closed(outcome),
        ]);
        assert_eq!(outline(&events)[4..], ["→thinking"], "{outcome:?}");
    }
}

#[test]
fn what_ran_without_asking_says_so_and_claims_no_consent() {
    let events = story(vec![requested(gate(Decision::Allow, Risk::High, true))]);
    let invoked = events.last().unwrap();
    assert!(invoked["summary_normal"].as_str().unwrap().contains("without asking"));
    assert_eq!(invoked["extensions"]["banister"]["unconfirmed"], true);
    assert_eq!(invoked.get("irreversible"), None);
}

#[test]
fn what_a_rule_refuses_never_runs() {
    let events = story(vec![
        requested(gate(Decision::Deny, Risk::High, false)),
        What::ActionEnded {
            id: "a".to_owned(),
            tool: "Bash".to_owned(),
            status: Status::Failure,
            output: None,
            error: Some("denied".to_owned()),
            duration_ms: None,
        },
    ]);
    assert_eq!(outline(&events), ["session.started", "→thinking", "→deciding", "→thinking"]);
    assert!(events[2]["summary_normal"].as_str().unwrap().contains("It leaves the machine."));
}

fn ended(status: Status) -> What {
    What::ActionEnded {
        id: "a".to_owned(),
        tool: "Bash".to_owned(),
        status,
        output: None,
        error: None,
        duration_ms: None,
    }
}

#[test]
fn what_was_refused_and_ran_all_the_same_is_announced_loudly() {
    for decision in [Decision::Deny, Decision::Ask] {
        let gate = gate(decision, Risk::High, None);
        let events = story(vec![requested(gate), ended(Status::Success)]);
        let invoked = events
            .iter()
            .find(|event| event["type"] == "aaep:agent.tool.invoked")
            .expect("it ran, so it is told");
        assert_eq!(invoked["urgency"], "critical");
        assert_eq!(invoked["extensions"]["banister"]["refused"], true);
        assert!(invoked["summary_normal"].as_str().unwrap().contains("although it was refused"));
    }
}

#[test]
fn where_nobody_knows_nothing_is_claimed_about_undoing() {
    let mut unknown = ask();
    unknown.gate = Some(gate(Decision::Ask, Risk::High, None));
    let events = story(vec![What::AskOpened { ask: Box::new(unknown) }]);
    let asked = events.last().unwrap();
    assert_eq!(asked.get("irreversible"), None);
    assert_eq!(asked.get("reversibility"), None);
}

#[test]
fn everything_a_call_was_given_is_asked_about() {
    let mut whole = ask();
    whole.action = Some(Action {
        server: Some("evil".to_owned()),
        input: Some(json!({ "command": "ls", "then_run": "rm -rf /srv" })),
        ..Action::unseen("a", "Bash")
    });
    let events = story(vec![What::AskOpened { ask: Box::new(whole) }]);
    let action = events.last().unwrap()["action"].as_str().unwrap();
    assert!(action.contains("evil/Bash") && action.contains("then_run: rm -rf /srv"), "{action}");
}

#[test]
fn long_output_is_split_at_the_limit_and_counted_in_characters() {
    let long = "e\u{301}".repeat(10_000);
    let events = story(vec![What::Said {
        role: crate::activity::Role::Assistant,
        message: "m".to_owned(),
        text: long.clone(),
        last: true,
    }]);
    let chunks: Vec<_> = events.iter().filter(|event| event.get("chunk").is_some()).collect();
    let joined: String = chunks.iter().map(|event| event["chunk"].as_str().unwrap()).collect();
    assert_eq!(joined, long);
    assert!(chunks.len() > 1);
    for chunk in &chunks {
        let text = chunk["chunk"].as_str().unwrap();
        assert!(text.chars().count() <= AAEP_TEXT_CHARS && !text.starts_with('\u{301}'));
    }
    assert_eq!(chunks[1]["position"], chunks[0]["chunk"].as_str().unwrap().chars().count());
}

#[test]
fn the_same_activities_give_the_same_bytes_again_from_a_saved_writer() {
    let steps = [
        What::TurnStarted { request: Some("x".to_owned()), summary: None },
        requested(gate(Decision::Ask, Risk::Low, false)),
        What::AskOpened { ask: Box::new(ask()) },
        closed(Outcome::Accepted),
    ];
    let mut whole = Writer::new("ja");
    let mut saved = Writer::new("ja");
    for (what, seq) in steps.into_iter().zip(1..) {
        let activity = at(seq, what);
        let kept = serde_json::to_string(&saved).unwrap();
        saved = serde_json::from_str(&kept).unwrap();
        assert_eq!(whole.write(&activity), saved.write(&activity));
    }
}

#[test]
fn secrets_do_not_reach_what_people_read() {
    let mut leaky = action();
    leaky.input = Some(json!({ "command": "curl -H 'X-Api-Key: s3cr3t' https://u:pw1@h/" }));
    let events = story(vec![
        What::TurnStarted { request: Some("use password=hunter2".to_owned()), summary: None },
        What::ActionRequested { action: leaky, gate: None },
        What::Said {
            role: crate::activity::Role::Assistant,
            message: "m".to_owned(),
            text: "key sk-abcdef123".to_owned(),
            last: true,
        },
    ]);
    let told = Value::Array(events).to_string();
    for secret in ["s3cr3t", "pw1", "hunter2", "sk-abcdef123"] {
        assert!(!told.contains(secret), "{secret} leaked: {told}");
    }
}

proptest! {
    #[test]
    fn whatever_happens_the_stream_is_valid(session in arbitrary::session()) {
        let mut writer = Writer::new("en");
        let mut checker = Checker::new(Protocol::Aaep);
        for activity in &session {
            for event in writer.write(activity) {
                let findings = checker.value(&event);
                prop_assert!(findings.is_empty(), "{findings:?}\n{:.600}", event.to_string());
            }
        }
        let left: Vec<_> = checker.finish().into_iter().filter(|f| f.rule.severity > Severity::Note).collect();
        prop_assert!(left.is_empty(), "{left:?}");
    }
}
