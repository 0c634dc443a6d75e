use proptest::prelude::*;

use jiff::Timestamp;

use super::*;
use crate::aaep::event::{RiskLevel, Verbosity};
use crate::activity::{
    Action, Ask, AskKind, Choice, Decision, Gate, Outcome, ResponseKind, Risk, Status, arbitrary,
};
use crate::check::Checker;
use crate::event::Protocol;
use crate::finding::Severity;
use crate::limits::AAEP_TEXT_CHARS;

fn at(seq: u64, what: What) -> Activity {
    Activity {
        origin: Origin {
            session: "s_1".into(),
            seq,
            time: Timestamp::from_second(1_800_000_000 + i64::try_from(seq).unwrap()).unwrap(),
        },
        context: Arc::new(Context {
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
        role: Role::Assistant,
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
            role: Role::Assistant,
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

fn spoken(voice: Voice, steps: Vec<What>) -> Vec<Value> {
    let mut writer = Writer::with(voice);
    let mut events: Vec<Value> =
        steps.into_iter().zip(1..).flat_map(|(what, seq)| writer.write(&at(seq, what))).collect();
    events.extend(writer.close());
    events
}

fn piece(text: &str) -> What {
    let message = "m".to_owned();
    What::Said { role: Role::Assistant, message, text: text.to_owned(), last: false }
}

fn chunks(events: &[Value]) -> Vec<(String, String)> {
    let chunks = events.iter().filter(|event| event.get("chunk").is_some());
    let text = |event: &Value, name: &str| event[name].as_str().unwrap().to_owned();
    chunks.map(|event| (text(event, "chunk"), text(event, "coalesce_hint"))).collect()
}

#[test]
fn output_is_cut_where_the_subscriber_wants_it() {
    let tokens = ["Pi is", " 3.", "14. ", "It goes ", "on. And", " on"].map(piece).to_vec();
    let cut = |boundaries: Vec<Boundary>| {
        chunks(&spoken(Voice { boundaries, ..Voice::default() }, tokens.clone()))
    };
    let told = |pieces: &[(&str, &str)]| -> Vec<(String, String)> {
        pieces.iter().map(|(text, hint)| ((*text).to_owned(), (*hint).to_owned())).collect()
    };
    assert_eq!(
        cut(vec![Boundary::Sentence, Boundary::Completion]),
        told(&[
            ("Pi is 3.14. ", "sentence"),
            ("It goes on. ", "sentence"),
            ("And on", "completion")
        ])
    );
    assert_eq!(
        cut(vec![Boundary::Completion]),
        told(&[("Pi is 3.14. It goes on. And on", "completion")])
    );
    let all: String = cut(vec![Boundary::None]).into_iter().map(|(text, _)| text).collect();
    assert_eq!(all, "Pi is 3.14. It goes on. And on");
}

#[test]
fn a_piece_that_completes_nothing_gives_no_event() {
    let mut writer = Writer::with(Voice::default());
    assert_eq!(writer.write(&at(1, piece("Hel"))).len(), 3, "the turn is opened");
    assert_eq!(writer.write(&at(2, piece("lo"))), Vec::<Value>::new());
    assert_eq!(writer.notes().0.len(), 1);
}

#[test]
fn secrets_that_come_in_pieces_are_not_shown_either() {
    let tokens = [
        "the pass",
        "word: ",
        "hun",
        "ter2xyz. ",
        "key sk-",
        "abcdef1234 ",
        "Bear",
        "er abc",
        "def. Done",
    ];
    for boundaries in [Boundary::None, Boundary::Word, Boundary::Sentence, Boundary::Completion] {
        let voice = Voice { boundaries: vec![boundaries.clone()], carry: true, ..Voice::default() };
        let told = Value::from(spoken(voice, tokens.map(piece).to_vec())).to_string();
        for secret in ["hunter2xyz", "ter2xyz", "abcdef1234", "abcdef"] {
            assert!(!told.contains(secret), "{secret} at {boundaries:?}: {told}");
        }
    }
}

#[test]
fn secrets_do_not_travel_along() {
    let mut leaky = ask();
    leaky.action = Some(Action {
        input: Some(json!({ "password": "hunter2xyz", "command": "curl https://u:pw12345@h/" })),
        rationale: Some("with token ghp_abcdefghij1234567890".to_owned()),
        ..Action::unseen("a", "Bash")
    });
    leaky.words = Some("api_key=zzz999zzz".to_owned());
    let steps = vec![
        What::AskOpened { ask: Box::new(leaky) },
        What::Notified { text: "secret=abc12345".to_owned() },
        What::TurnEnded {
            ending: Ending::failed("password=qwertz99"),
            summary: Some("secret: uiop7777".to_owned()),
            result: Some(json!({ "access_token": "t0k3nt0k3n" })),
            usage: Vec::new(),
        },
    ];
    let told = Value::from(spoken(Voice { carry: true, ..Voice::default() }, steps)).to_string();
    for secret in [
        "hunter2xyz",
        "pw12345",
        "ghp_abc",
        "zzz999zzz",
        "abc12345",
        "qwertz99",
        "uiop7777",
        "t0k3nt0k3n",
    ] {
        assert!(!told.contains(secret), "{secret} leaked: {told}");
    }
}

#[test]
fn a_tool_that_is_called_like_a_credential_makes_none_of_its_argument() {
    let mut odd = action();
    odd.tool = "password".to_owned();
    let events = story(vec![What::ActionRequested { action: odd, gate: None }]);
    assert_eq!(events.last().unwrap()["summary_normal"], "Claude Code runs “password”: git push");
    assert_eq!(faults(&events), Vec::<String>::new());
}

#[test]
fn everything_is_told_at_three_lengths() {
    let mut careful = gate(Decision::Ask, Risk::High, true);
    careful.safer = Some("Push to a branch.".to_owned());
    let mut asked = ask();
    asked.gate = Some(careful);
    let voice = Voice { verbosity: Verbosity::Detailed, ..Voice::default() };
    let events = spoken(voice, vec![What::AskOpened { ask: Box::new(asked) }]);
    let event = events.iter().find(|event| event.get("reply_token").is_some()).unwrap();
    assert_eq!(event["verbosity"], "detailed");
    assert_eq!(event["summary_terse"], "May Bash run?");
    assert_eq!(event["summary_normal"], "Claude Code wants to run Bash: git push");
    assert_eq!(
        event["summary_detailed"],
        "Claude Code wants to run Bash: git push\nWhy: It leaves the machine.\nThe risk is high.\n\
         It cannot be undone.\nSafer: Push to a branch.\nTime to answer: 299 s"
    );
}

#[test]
fn where_little_should_be_kept_in_mind_only_what_matters_is_told() {
    let steps = || {
        vec![
            What::TurnStarted { request: None, summary: None },
            What::Notified { text: "By the way.".to_owned() },
            What::StepStarted { name: "look".to_owned() },
            What::Erred { message: "It broke.".to_owned(), code: None },
            What::AskOpened { ask: Box::new(ask()) },
        ]
    };
    let quiet = spoken(Voice { load: RiskLevel::Low, ..Voice::default() }, steps());
    let progress =
        |events: &[Value]| events.iter().filter(|event| event.get("progress").is_some()).count();
    assert_eq!((progress(&quiet), progress(&spoken(Voice::default(), steps()))), (1, 3));
    let background = quiet.iter().filter(|event| event["urgency"] == "background");
    assert!(background.clone().count() > 0);
    let silent = |event: &Value| event.get("summary_normal").is_none();
    assert!(background.clone().filter(|event| event["to_state"] != "thinking").all(silent));
    assert!(quiet.iter().any(|event| event.get("reply_token").is_some()));
    assert_eq!(faults(&quiet), Vec::<String>::new());
}

#[test]
fn silence_is_a_yes_only_for_what_is_not_grave() {
    let cases = [
        (None, "accept"),
        (Some(gate(Decision::Ask, Risk::Low, false)), "accept"),
        (Some(gate(Decision::Ask, Risk::High, None)), "reject"),
        (Some(gate(Decision::Ask, Risk::Low, true)), "reject"),
    ];
    for (gate, default) in cases {
        let lenient = Ask { gate, defaults_to_accept: true, ..ask() };
        let events = story(vec![What::AskOpened { ask: Box::new(lenient) }]);
        assert_eq!(events.last().unwrap()["default_decision"], default);
    }
}

#[test]
fn a_question_has_choices_exactly_where_they_can_be_chosen() {
    let choice = |value: &str| Choice { value: value.to_owned(), label: format!("The {value}") };
    let asked = |kinds: Vec<ResponseKind>, choices: Vec<Choice>| {
        let kind = AskKind::Clarification {
            question: "Which?".to_owned(),
            kinds,
            choices,
            context: Some("Two fit.".to_owned()),
            default: Some("a".to_owned()),
        };
        let ask = Ask { kind, action: None, gate: None, ..ask() };
        let events = story(vec![What::AskOpened { ask: Box::new(ask) }]);
        assert_eq!(faults(&events), Vec::<String>::new());
        let event = events.last().unwrap().clone();
        assert_eq!(
            (&event["context"], &event["default_response"]),
            (&json!("Two fit."), &json!("a"))
        );
        (event["accepted_response_kinds"].clone(), event.get("choices").cloned())
    };
    let both = vec![choice("a"), choice("a"), choice("b"), choice("")];
    let shown = json!([{ "value": "a", "label": "The a" }, { "value": "b", "label": "The b" }]);
    let one = ResponseKind::MultipleChoice;
    assert_eq!(asked(vec![one], both.clone()), (json!(["multiple_choice"]), Some(shown.clone())));
    assert_eq!(
        asked(Vec::new(), both.clone()),
        (json!(["freetext", "multiple_choice"]), Some(shown))
    );
    assert_eq!(asked(vec![one], vec![choice("a")]), (json!(["freetext"]), None));
    assert_eq!(asked(vec![ResponseKind::Numeric], both), (json!(["numeric"]), None));
}

#[test]
fn asks_that_are_open_together_end_one_by_one() {
    let other =
        Ask { action: None, ..Ask::new("ask_2", "rpl_2", AskKind::Plan { text: "x".to_owned() }) };
    let events = story(vec![
        What::TurnStarted { request: None, summary: None },
        requested(gate(Decision::Ask, Risk::High, true)),
        What::AskOpened { ask: Box::new(ask()) },
        What::AskOpened { ask: Box::new(other) },
        closed(Outcome::Accepted),
    ]);
    assert_eq!(
        outline(&events)[3..],
        [
            "awaiting.confirmation",
            "awaiting.confirmation",
            "→calling_tool",
            "tool.invoked",
            "→awaiting_input"
        ]
    );
    assert_eq!(faults(&events), Vec::<String>::new());
}

#[test]
fn a_yes_covers_the_action_it_was_given_for_and_no_other() {
    let asked = |input: &str| {
        let mut other = action();
        other.input = Some(json!({ "command": input }));
        let gate = Some(gate(Decision::Allow, Risk::High, true));
        let steps = vec![
            What::AskOpened { ask: Box::new(ask()) },
            closed(Outcome::Accepted),
            What::ActionRequested { action: other, gate },
        ];
        let events = story(steps);
        assert_eq!(faults(&events), Vec::<String>::new());
        events.last().unwrap().clone()
    };
    assert_eq!(asked("git push")["irreversible"], true);
    let other = asked("git push --force");
    assert_eq!(other["extensions"]["banister"]["unconfirmed"], true);
    assert_eq!(other.get("irreversible"), None);
}

#[test]
fn a_long_wait_is_counted_down() {
    let mut writer = Writer::new("en");
    let mut events = writer.write(&at(1, What::AskOpened { ask: Box::new(ask()) }));
    for seq in [100, 160, 170, 280, 290] {
        let told = writer.write(&at(seq, What::StepEnded { name: "x".to_owned() }));
        events.extend(told.clone());
        let expected = match seq {
            160 => vec!["Time left to answer: 140 s"],
            280 => vec!["Time left to answer: 20 s"],
            _ => Vec::new(),
        };
        let lines: Vec<&str> =
            told.iter().map(|event| event["summary_normal"].as_str().unwrap()).collect();
        assert_eq!(lines, expected, "after {seq} s");
    }
    events.extend(writer.write(&at(400, closed(Outcome::Expired))));
    let mut checker = Checker::new(Protocol::Aaep).strict();
    let late = events.iter().flat_map(|event| checker.value(event));
    assert!(late.into_iter().all(|finding| finding.rule.code != "AAEP-6.4.3-R1"));
}

#[test]
fn ids_that_fit_are_kept_and_never_used_twice() {
    let mut named = action();
    named.id = "call_7".to_owned();
    let run = || What::ActionRequested { action: named.clone(), gate: None };
    let events = story(vec![run(), run()]);
    let ids: Vec<&str> = events
        .iter()
        .filter(|event| event["type"] == "aaep:agent.tool.invoked")
        .map(|event| event["tool_call_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids[0], "call_7");
    assert_ne!(ids[1], "call_7");
    assert_eq!(faults(&events), Vec::<String>::new());
}

#[test]
fn what_cannot_be_told_is_noted() {
    let mut writer = Writer::new("en");
    let thought = What::Thought { message: "t".to_owned(), text: "hm".to_owned(), last: true };
    assert_eq!(writer.write(&at(1, thought)), Vec::<Value>::new());
    let (notes, more) = writer.notes();
    assert_eq!(
        (notes, more),
        (vec![Note { kind: NoteKind::Dropped, about: "thought".to_owned() }], 0)
    );
}

/// How subscribers differ: language, length, where output is cut, how much they want to keep in mind, what travels.
fn voice() -> impl Strategy<Value = Voice> {
    let boundaries = prop_oneof![
        Just(vec![Boundary::None]),
        Just(vec![Boundary::Word, Boundary::Sentence]),
        Just(vec![Boundary::Sentence, Boundary::Completion]),
        Just(vec![Boundary::Paragraph]),
        Just(vec![Boundary::Completion]),
    ];
    let language = prop::sample::select(vec!["en", "es", "ar", "ja"]);
    let verbosity = prop::sample::select(Verbosity::ALL.to_vec());
    let load = prop::sample::select(RiskLevel::ALL.to_vec());
    (language, verbosity, boundaries, load, any::<bool>()).prop_map(
        |(language, verbosity, boundaries, load, carry)| Voice {
            language: language.to_owned(),
            verbosity,
            boundaries,
            load,
            carry,
        },
    )
}

/// What is wrong with a stream, as strictly as can be. Texts are passed on as they came, composed or not; and which
/// confirmation a tool used up is guessed by the checker, so its guess at who was not warned of the time may be wrong.
fn faults(events: &[Value]) -> Vec<String> {
    let mut checker = Checker::new(Protocol::Aaep).strict();
    let mut faults = Vec::new();
    for event in events {
        let found = checker.value(event);
        let found = found.iter().filter(|finding| {
            let expected = ["AAEP-11.3.2-R1", "AAEP-6.4.3-R1"].contains(&finding.rule.code);
            finding.rule.severity > Severity::Note && !expected
        });
        faults.extend(found.map(|finding| format!("{finding:?} in {:.900}", event.to_string())));
    }
    let left = checker.finish();
    let left = left.iter().filter(|finding| finding.rule.severity > Severity::Note);
    faults.extend(left.map(|finding| format!("{finding:?}")));
    faults
}

proptest! {
    #[test]
    fn whatever_happens_the_stream_is_valid(session in arbitrary::session(), voice in voice()) {
        let mut writer = Writer::with(voice);
        let mut events: Vec<Value> =
            session.iter().flat_map(|activity| writer.write(activity)).collect();
        events.extend(writer.close());
        prop_assert!(!writer.is_open());
        prop_assert_eq!(faults(&events), Vec::<String>::new());
    }

    #[test]
    fn a_stream_that_is_cut_anywhere_ends_well_and_goes_on(
        session in arbitrary::session(),
        voice in voice(),
        cut in 0_usize..24,
    ) {
        let mut writer = Writer::with(voice);
        let mut events = Vec::new();
        for (place, activity) in session.iter().enumerate() {
            if place == cut {
                events.extend(writer.close());
            }
            events.extend(writer.write(activity));
        }
        events.extend(writer.close());
        prop_assert_eq!(writer.close(), Vec::<Value>::new(), "what is closed is closed");
        prop_assert_eq!(faults(&events), Vec::<String>::new());
    }

    #[test]
    fn a_writer_that_was_saved_writes_the_same_bytes(
        session in arbitrary::session(),
        voice in voice(),
    ) {
        let mut whole = Writer::with(voice.clone());
        let mut saved = Writer::with(voice);
        for activity in &session {
            let kept = serde_json::to_string(&saved).unwrap();
            saved = serde_json::from_str(&kept).unwrap();
            let (one, other) = (whole.write(activity), saved.write(activity));
            prop_assert_eq!(Value::from(one).to_string(), Value::from(other).to_string());
        }
        prop_assert_eq!(whole.close(), saved.close());
    }
}
