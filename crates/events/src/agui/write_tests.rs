use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::activity::{
    Action, Answer, Ask, AskKind, Asks, Decision, Gate, Outcome, Reply, Risk, Role, Status,
    arbitrary,
};
use crate::agui::follow::Follower;
use crate::agui::input;
use crate::check::Checker;
use crate::finding::{Finding, Severity};

fn at(seq: u64, what: What) -> Activity {
    let time = jiff::Timestamp::from_second(1_800_000_000).unwrap();
    let origin = Origin { session: "s".into(), seq, time };
    let context = Context {
        agent: "claude".to_owned(),
        session: Some("thread".to_owned()),
        turn: Some("turn".to_owned()),
        ..Context::default()
    };
    Activity { origin, context: Arc::new(context), what }
}

fn started(request: &str) -> What {
    What::TurnStarted { request: Some(request.to_owned()), summary: None }
}

fn ended(ending: Ending) -> What {
    What::TurnEnded { ending, summary: None, result: None, usage: Vec::new() }
}

fn said(message: &str, text: &str, last: bool) -> What {
    let (message, text) = (message.to_owned(), text.to_owned());
    What::Said { message, role: Role::Assistant, text, last }
}

fn bash(id: &str, command: &str) -> Action {
    Action { input: Some(json!({ "command": command })), ..Action::unseen(id, "Bash") }
}

fn finished(id: &str, status: Status) -> What {
    What::ActionEnded {
        id: id.to_owned(),
        tool: "Bash".to_owned(),
        status,
        output: Some("done".into()),
        error: None,
        duration_ms: Some(7),
    }
}

fn opened(id: &str, action: Option<Action>) -> What {
    let ask =
        Ask { action, digest: "abc".to_owned(), ..Ask::new(id, "rpl_1", AskKind::Confirmation) };
    What::AskOpened { ask: Box::new(ask) }
}

fn closed(id: &str, outcome: Outcome) -> What {
    What::AskClosed {
        id: id.to_owned(),
        action: None,
        outcome,
        by: "user".to_owned(),
        message: None,
        response: None,
        updated_input: None,
    }
}

/// What all runs of a session become.
fn recorded(whats: impl IntoIterator<Item = What>) -> Vec<Value> {
    let mut writer = Writer::recording("fallback").carrying();
    let mut events: Vec<Value> =
        (1..).zip(whats).flat_map(|(seq, what)| writer.write(&at(seq, what))).collect();
    events.extend(writer.close());
    is_valid(&events, &[]).unwrap();
    events
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

fn is_terminal(event: &Value) -> bool {
    matches!(event["type"].as_str(), Some("RUN_FINISHED" | "RUN_ERROR"))
}

/// Arguments that an agent drafts are whatever it drafts.
const ARGUMENTS: &[&str] = &["AGUI-SEQ-35"];

fn is_valid(events: &[Value], tolerated: &[&str]) -> Result<(), TestCaseError> {
    let mut checker = Checker::new(Protocol::Agui).strict();
    let matters = |finding: &Finding| {
        finding.rule.severity != Severity::Note && !tolerated.contains(&finding.rule.code)
    };
    for (at, event) in events.iter().enumerate() {
        let findings: Vec<Finding> = checker.value(event).into_iter().filter(matters).collect();
        let before: Vec<String> = events
            .iter()
            .take(at)
            .rev()
            .take(9)
            .map(|event| format!("{:.200}", event.to_string()))
            .collect();
        prop_assert!(findings.is_empty(), "{findings:?}\n{:.900}\n{before:#?}", event.to_string());
    }
    let left: Vec<Finding> = checker.finish().into_iter().filter(matters).collect();
    prop_assert!(left.is_empty(), "{left:?}");
    let begun = events.iter().filter(|event| event["type"] == "RUN_STARTED").count();
    prop_assert_eq!(events.iter().filter(|event| is_terminal(event)).count(), begun);
    Ok(())
}

fn is_clean(events: &[Value]) -> Result<(), TestCaseError> {
    let told = Value::Array(events.to_vec()).to_string();
    prop_assert!(!told.contains("hunter2"), "{told}");
    Ok(())
}

fn follow(events: &[Value]) -> Follower {
    let mut follower = Follower::default();
    for event in events {
        follower.value(event).unwrap();
    }
    follower
}

fn reload<T: Serialize + for<'de> Deserialize<'de>>(value: &T) -> T {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

#[test]
fn secrets_reach_neither_the_history_nor_the_stream() {
    let leaky = [
        started("use password=hunter2"),
        said("m", "key sk-abc", false),
        said("m", "def123 and pass", false),
        said("m", "word=hunter2 end", true),
        What::ActionRequested { action: bash("a", "curl -H 'X-Api-Key: s3cr3t' h"), gate: None },
        What::ActionDrafted {
            id: "b".into(),
            tool: "Bash".into(),
            delta: "{\"c\":\"TOKEN=1 pass".into(),
        },
        What::ActionDrafted {
            id: "b".into(),
            tool: "Bash".into(),
            delta: "word=hunter2 x\"}".into(),
        },
        What::StateSet { state: json!({ "password": "hunter2" }) },
        What::StatePatched {
            patch: json!([{ "op": "add", "path": "/api_key", "value": "s3cr3t" }]),
        },
        What::MessagesSet {
            messages: vec![json!({ "id": "n", "role": "assistant", "toolCalls": [{
                "id": "c", "type": "function",
                "function": { "name": "x", "arguments": "{\"password\":\"hunter2\"}" },
            }] })],
        },
    ];
    let mut history = History::default();
    let mut writer = Writer::new("t", "r").carrying();
    let mut told = writer.begin(&history);
    for (seq, what) in (1..).zip(leaky) {
        let activity = at(seq, what);
        history.add(&activity);
        told.extend(writer.write(&activity));
    }
    writer.finish(None, &mut told);
    told.extend(history.messages());
    told.push(history.state().clone());
    let told = Value::Array(told).to_string();
    for secret in ["hunter2", "sk-abcdef123", "abcdef123", "s3cr3t"] {
        assert!(!told.contains(secret), "{secret} leaked: {told}");
    }
}

#[test]
fn a_history_that_no_event_can_hold_is_restated_from_where_it_fits() {
    let mut history = History::default();
    for seq in 0..12 {
        history.add(&at(seq, said(&format!("m{seq}"), &format!("{seq}").repeat(1 << 19), true)));
    }
    let messages = history.messages();
    assert!((2..12).contains(&messages.len()), "{}", messages.len());
    let newest = messages.last().and_then(|message| message["content"].as_str()).unwrap();
    assert!(newest.starts_with("1111"), "the newest one is there");
    let mut checker = Checker::new(Protocol::Agui);
    for event in Writer::new("t", "r").begin(&history) {
        assert_eq!(checker.value(&event), []);
    }
}

#[test]
fn an_ask_is_a_card_at_once_and_an_interrupt_when_it_is_answered() {
    let action = bash("a", "git push");
    let events = recorded([
        started("push"),
        What::ActionRequested { action: action.clone(), gate: None },
        opened("ask_1", Some(action)),
        closed("ask_1", Outcome::Accepted),
        finished("a", Status::Success),
        ended(Ending::Completed),
    ]);
    let runs: Vec<&Value> = events.iter().filter(|event| event["type"] == "RUN_STARTED").collect();
    assert_eq!(runs.len(), 2);
    assert_eq!((&runs[0]["threadId"], &runs[0]["runId"]), (&json!("thread"), &json!("turn")));
    let resume = json!([{
        "interruptId": "rpl_1", "status": "resolved", "payload": { "approved": true },
    }]);
    assert_eq!(runs[1]["input"]["resume"], resume);
    let interrupt =
        &events.iter().find(|event| is_terminal(event)).unwrap()["outcome"]["interrupts"][0];
    assert_eq!((&interrupt["id"], &interrupt["toolCallId"]), (&json!("rpl_1"), &json!("a")));
    assert_eq!(interrupt["metadata"]["banister"]["digest"], "abc");
    assert_eq!(interrupt["metadata"]["banister"]["token"], "rpl_1");
    assert_eq!(interrupt["responseSchema"]["required"], json!(["approved"]));
    let cards: Vec<&Value> = events
        .iter()
        .filter(|event| event["activityType"] == ASK)
        .map(|it| &it["content"]["status"])
        .collect();
    assert_eq!(cards, ["open", "accepted"]);
}

#[test]
fn the_one_run_ends_over_what_waits_only_when_asked_to_and_idle() {
    let mut writer = Writer::new("t", "r");
    let mut events = writer.begin(&History::default());
    events.extend(writer.write(&at(1, said("m", "so ", false))));
    events.extend(writer.write(&at(2, opened("ask_1", None))));
    assert_eq!(writer.interrupt(), Vec::<Value>::new(), "a message is open");
    events.extend(writer.write(&at(3, said("m", "it is", true))));
    events.extend(writer.interrupt());
    assert!(writer.is_finished());
    assert_eq!(events.last().unwrap()["outcome"]["interrupts"][0]["id"], "ask_1");
    assert_eq!(writer.write(&at(4, closed("ask_1", Outcome::Accepted))), Vec::<Value>::new());
    is_valid(&events, &[]).unwrap();
}

#[test]
fn a_suspended_turn_goes_on_in_a_run_with_all_answers() {
    let events = recorded([
        started("go"),
        opened("ask_1", None),
        opened("ask_2", None),
        ended(Ending::Suspended { asks: vec!["ask_1".into(), "ask_2".into()] }),
        closed("ask_2", Outcome::Withdrawn),
        closed("ask_1", Outcome::Rejected),
        said("m", "well", true),
        ended(Ending::Completed),
    ]);
    let resumed: Vec<&Value> = events.iter().filter(|event| event.get("input").is_some()).collect();
    assert_eq!(resumed.len(), 1);
    let entries = resumed[0]["input"]["resume"].as_array().unwrap();
    assert_eq!(entries[0]["payload"], json!({ "approved": false }));
    assert_eq!(entries[1], json!({ "interruptId": "ask_2", "status": "cancelled" }));
    assert_eq!(kinds(&events).iter().filter(|kind| **kind == "RUN_FINISHED").count(), 2);
}

fn resumes(events: &[Value]) -> Vec<Value> {
    let inputs = events.iter().filter_map(|event| event.pointer("/input/resume"));
    inputs.cloned().collect()
}

#[test]
fn the_first_of_several_answers_ends_the_run_over_all_and_the_last_begins_the_next() {
    let events = recorded([
        started("go"),
        opened("ask_1", None),
        opened("ask_2", None),
        closed("ask_2", Outcome::Accepted),
        closed("ask_1", Outcome::Rejected),
        said("m", "well", true),
        ended(Ending::Completed),
    ]);
    let first = events.iter().position(is_terminal).unwrap();
    let interrupts = events[first]["outcome"]["interrupts"].as_array().unwrap();
    assert_eq!(interrupts.len(), 2);
    let entry = |id: &str, approved: bool| {
        let payload = json!({ "approved": approved });
        json!({ "interruptId": id, "status": "resolved", "payload": payload })
    };
    let resume = json!([entry("ask_1", false), entry("ask_2", true)]);
    assert_eq!(resumes(&events), [resume]);
    let cards = events.iter().skip(first).filter(|event| event["activityType"] == ASK);
    let cards: Vec<&Value> = cards.map(|card| &card["messageId"]).collect();
    assert_eq!(cards, ["ask_2", "ask_1"], "in the order of the answers");
}

#[test]
fn a_turn_that_goes_on_with_some_answers_waits_for_the_others_again() {
    let cancelled = json!({ "interruptId": "ask_2", "status": "cancelled" });
    let begin = || vec![started("go"), opened("ask_1", None), opened("ask_2", None)];
    let mut whats = begin();
    whats.push(closed("ask_1", Outcome::Accepted));
    let cut = recorded(whats.clone());
    assert_eq!(resumes(&cut)[0][1], cancelled);
    assert_eq!(cut.last().unwrap()["outcome"]["interrupts"][0]["id"], "rpl_1", "it still waits");
    let mut over = whats.clone();
    over.push(ended(Ending::Completed));
    assert_eq!(recorded(over).last().unwrap().get("outcome"), None);
    whats.push(said("m", "first", true));
    whats.push(closed("ask_2", Outcome::Accepted));
    let events = recorded(whats);
    let resumes = resumes(&events);
    assert_eq!(resumes[0][0]["payload"], json!({ "approved": true }));
    assert_eq!(resumes[0][1], cancelled);
    assert_eq!(resumes[1][0]["payload"], json!({ "approved": true }));
    assert_eq!(resumes.len(), 2);
}

#[test]
fn a_patch_of_a_state_that_only_the_client_knows_is_passed_on() {
    let patch = |path: &str| What::StatePatched {
        patch: json!([{ "op": "replace", "path": path, "value": 1 }]),
    };
    let set = What::StateSet { state: json!({ "a": 0 }) };
    let malformed = What::StatePatched { patch: json!({ "op": "remove" }) };
    let events = recorded([started("go"), malformed, patch("/b"), set, patch("/b"), patch("/a")]);
    let paths = events.iter().filter_map(|event| event.pointer("/delta/0/path"));
    assert_eq!(paths.collect::<Vec<_>>(), ["/b", "/a"], "what cannot be applied is left out");
}

#[test]
fn a_cut_stream_is_an_error_unless_it_waits() {
    let cut = |what: What| {
        let mut writer = Writer::recording("t");
        writer.write(&at(1, started("go")));
        writer.write(&at(2, what));
        writer.close().pop().unwrap()
    };
    let truncated = cut(said("m", "half", false));
    assert_eq!(
        (&truncated["type"], &truncated["code"]),
        (&json!("RUN_ERROR"), &json!("truncated"))
    );
    assert_eq!(cut(opened("ask_1", None))["outcome"]["type"], "interrupt");
    assert_eq!(Writer::recording("t").close(), Vec::<Value>::new());
}

#[test]
fn what_happens_between_runs_waits_for_the_next() {
    let mut writer = Writer::recording("t");
    assert!(
        writer.write(&at(1, What::SessionStarted { source: Some("startup".into()) })).is_empty()
    );
    assert!(writer.write(&at(2, What::Notified { text: "hello".into() })).is_empty());
    let events = writer.write(&at(3, started("go")));
    assert_eq!(kinds(&events)[..3], ["RUN_STARTED", "CUSTOM", "ACTIVITY_SNAPSHOT"]);
    assert_eq!(events[1]["name"], "banister.session_started");
    assert_eq!(events[1]["value"], json!({ "source": "startup" }));
}

#[test]
fn a_grave_action_that_nobody_confirmed_and_one_that_was_refused_are_told_without_carry() {
    let gate = |decision| Gate {
        decision,
        rule: "r".into(),
        reason: "why".into(),
        risk: Risk::High,
        irreversible: None,
        opaque: None,
        safer: None,
    };
    let mut writer = Writer::new("t", "r");
    writer.begin(&History::default());
    for (id, decision) in [("a", Decision::Allow), ("b", Decision::Deny)] {
        let what = What::ActionRequested { action: bash(id, "x"), gate: Some(gate(decision)) };
        writer.write(&at(1, what));
    }
    let unasked = writer.write(&at(2, finished("a", Status::Success)));
    assert_eq!(unasked[0]["metadata"]["banister"], json!({ "unconfirmed": true }));
    let refused = writer.write(&at(3, finished("b", Status::Success)));
    assert_eq!(refused[0]["content"], "Ran although refused: done");
    let failed = writer.write(&at(4, finished("a", Status::Timeout)));
    assert_eq!(failed[0]["content"], "Timed out: done");
    let told: Vec<NoteKind> = writer.notes().0.into_iter().map(|note| note.kind).collect();
    assert_eq!(told, [NoteKind::Unconfirmed, NoteKind::Refused]);
}

#[test]
fn ids_that_are_taken_get_another_name() {
    let events = recorded([
        started("go"),
        said("a", "text", true),
        What::Thought { message: "a".into(), text: "thought".into(), last: true },
        What::ActionRequested { action: bash("a", "x"), gate: None },
        What::ActionRequested {
            action: Action { tool: "Other".into(), ..bash("a", "x") },
            gate: None,
        },
        ended(Ending::Completed),
    ]);
    let messages = follow(&events).reducer().messages_value();
    let mut ids: Vec<&str> =
        messages.as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 4, "{messages:#}");
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 4);
    assert!(ids.contains(&"a"));
}

#[test]
fn an_answer_to_our_interrupt_closes_the_ask_it_was_made_of() {
    let ask = Ask { schema: None, ..Ask::new("ask_1", "int-1", AskKind::question("Which one?")) };
    let closed = What::AskClosed {
        id: "ask_1".into(),
        action: None,
        outcome: Outcome::Accepted,
        by: "user".into(),
        message: None,
        response: Some("blue".into()),
        updated_input: None,
    };
    let entry = input::resume(&ask, &closed).unwrap();
    assert_eq!(entry, json!({ "interruptId": "int-1", "status": "resolved", "payload": "blue" }));
    let mut book = Asks::default();
    book.open(ask.clone());
    let answers: Vec<Answer> = input::answers(&json!({ "resume": [entry] }));
    assert_eq!(book.answer(&input::suited(answers[0].clone(), &ask)), Ok(closed));
    // Nothing but a yes is one.
    let confirmation = Ask::new("ask_2", "int-2", AskKind::Confirmation);
    for payload in [json!("yes"), json!(1), json!({}), json!({ "approved": "true" }), Value::Null] {
        let resume = json!({ "resume": [
            { "interruptId": "int-2", "status": "resolved", "payload": payload },
        ] });
        let answer = input::suited(input::answers(&resume)[0].clone(), &confirmation);
        assert!(!matches!(answer.reply, Reply::Accept { .. }), "{payload}");
    }
}

/// Until the one run is over.
fn followed(session: &[Activity], cut: usize, carry: bool) -> (Vec<Value>, usize) {
    let mut history = History::default();
    session[..cut].iter().for_each(|activity| history.add(activity));
    let writer = Writer::new("thread", "run");
    let mut writer = if carry { writer.carrying() } else { writer };
    let mut events = writer.begin(&history);
    let mut seen = cut;
    for activity in &session[cut..] {
        events.extend(writer.write(activity));
        seen += 1;
        if writer.is_finished() {
            return (events, seen);
        }
    }
    (events, seen)
}

proptest! {
    #[test]
    fn whatever_happens_the_run_is_valid(session in arbitrary::session(), cut in 0_usize..24, carry: bool) {
        let (mut events, _) = followed(&session, cut.min(session.len()), carry);
        let mut writer = Writer::new("thread", "run");
        writer.begin(&History::default());
        if !events.last().is_some_and(is_terminal) {
            // The same again, as what is open is not known from the events.
            let mut history = History::default();
            let cut = cut.min(session.len());
            session[..cut].iter().for_each(|activity| history.add(activity));
            let mut writer = Writer::new("thread", "run");
            let writer = if carry { writer = writer.carrying(); &mut writer } else { &mut writer };
            events = writer.begin(&history);
            session[cut..].iter().for_each(|activity| events.extend(writer.write(activity)));
            writer.finish(None, &mut events);
        }
        is_valid(&events, ARGUMENTS)?;
        is_clean(&events)?;
    }

    #[test]
    fn whatever_happens_a_recording_is_valid_wherever_it_is_cut(session in arbitrary::session(), cut in 0_usize..24, carry: bool) {
        let writer = Writer::recording("thread");
        let mut writer = if carry { writer.carrying() } else { writer };
        let mut events = Vec::new();
        for (at, activity) in session.iter().enumerate() {
            if at == cut {
                events.extend(writer.close());
            }
            events.extend(writer.write(activity));
        }
        events.extend(writer.close());
        is_valid(&events, ARGUMENTS)?;
        is_clean(&events)?;
    }

    #[test]
    fn who_comes_late_has_what_who_was_there_has(session in arbitrary::session(), cut in 0_usize..24) {
        let cut = cut.min(session.len());
        let (events, seen) = followed(&session, cut, false);
        let late = follow(&events);
        let mut history = History::default();
        session[..seen].iter().for_each(|activity| history.add(activity));
        // What waits for the next run in the history was told in this one.
        let whole = follow(&Writer::new("thread", "run").begin(&history));
        let (late, whole) = (late.reducer(), whole.reducer());
        prop_assert_eq!(late.messages_value(), whole.messages_value());
        prop_assert_eq!(late.state(), whole.state());
    }
}

/// Writer and history saved after every activity: one case in four.
#[test]
fn a_writer_that_was_saved_goes_on_as_if_it_was_not() {
    arbitrary::hold(4, &(arbitrary::session(), any::<bool>()), |(session, one)| {
        let mut writer =
            if one { Writer::new("t", "r") } else { Writer::recording("t") }.carrying();
        let mut history = History::default();
        let mut saved_history = History::default();
        if one {
            writer.begin(&history);
        }
        let mut saved = reload(&writer);
        for activity in &session {
            prop_assert_eq!(writer.write(activity), saved.write(activity));
            saved = reload(&saved);
            history.add(activity);
            saved_history.add(activity);
            saved_history = reload(&saved_history);
            prop_assert_eq!(history.messages(), saved_history.messages());
        }
        prop_assert_eq!(writer.close(), saved.close());
        prop_assert_eq!(history.state(), saved_history.state());
        Ok(())
    });
}
