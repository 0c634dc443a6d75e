use serde_json::{Value, json};

use super::*;
use crate::Message;
use crate::activity::{AskKind, Choice, Decision, Outcome, ResponseKind, Risk, Usage};
use crate::reader::ReadValue as _;

fn origin() -> Origin {
    Origin { session: "s".into(), seq: 1, time: Timestamp::default() }
}

fn read_with(mut reader: Reader, events: &[Value]) -> Vec<What> {
    let told = events.iter().flat_map(|event| reader.read_value(event, None, &origin()));
    told.map(|activity| activity.what).collect()
}

fn whats(events: &[Value]) -> Vec<What> {
    read_with(Reader::default(), events)
}

/// What one event says in a turn that is under way.
fn inside(event: Value) -> Vec<What> {
    whats(&[json!({ "type": "agent.start" }), event]).split_off(1)
}

fn content(kind: &str, text: &str) -> Value {
    json!([{ "type": kind, "text": text }])
}

fn request(id: &str) -> Value {
    json!({
        "type": "action.requested", "id": format!("evt_{id}"), "action": { "type": "tool_call", "id": id },
        "tool": { "type": "native", "name": "Bash" },
    })
}

fn response(id: &str, control: Value) -> Value {
    let mut response =
        json!({ "id": "rsp", "request_event_id": format!("evt_{id}"), "action_id": id });
    response["control"] = control;
    response
}

fn ended(ending: Ending) -> What {
    What::TurnEnded { ending, summary: None, result: None, usage: Vec::new() }
}

#[test]
fn a_turn_nobody_saw_begin_ends_all_the_same() {
    let told = whats(&[request("a"), request("b"), json!({ "type": "agent.stop" })]);
    assert_eq!(told.first(), Some(&What::TurnStarted { request: None, summary: None }));
    assert_eq!(told.last(), Some(&ended(Ending::Completed)));
    assert_eq!(told.len(), 4, "the turn begins once: {told:?}");
}

#[test]
fn what_is_not_known_is_kept_by_name() {
    let event = json!({ "type": "future.thing", "content": [{ "text": "hi" }] });
    let kept = What::Raw {
        protocol: Protocol::Aep,
        kind: "future.thing".to_owned(),
        text: Some("hi".to_owned()),
        event: event.clone(),
    };
    assert_eq!(whats(&[event, json!(7), json!({ "id": "no type" })]), [kept]);
}

#[test]
fn other_spellings_mean_the_same() {
    let told = whats(&[
        json!({ "type": "agent.started" }),
        json!({ "type": "response.delta", "id": "e", "content": content("response", "Hi") }),
        json!({ "type": "agent.end", "lifecycle": { "reason": "end_turn" } }),
    ]);
    assert!(matches!(told[1], What::Said { last: false, .. }));
    assert_eq!(told[2], ended(Ending::Completed));
}

#[test]
fn sessions_compactions_notices_and_plans_are_themselves() {
    let some = |text: &str| Some(text.to_owned());
    let cases = [
        (
            json!({ "type": "session.start", "lifecycle": { "source": "resume" } }),
            What::SessionStarted { source: some("resume") },
        ),
        (
            json!({ "type": "session.end", "lifecycle": { "reason": "exit" } }),
            What::SessionEnded { reason: some("exit") },
        ),
        (
            json!({ "type": "context.compacted", "lifecycle": { "trigger": "auto" } }),
            What::Compacted { trigger: some("auto") },
        ),
        (
            json!({ "type": "notification.sent", "content": content("notification", "look") }),
            What::Notified { text: "look".to_owned() },
        ),
        (
            json!({ "type": "model.plan", "content": content("plan", "1. do") }),
            What::Planned { text: "1. do".to_owned() },
        ),
        (
            json!({ "type": "prompt.submitted", "content": content("prompt", "do it") }),
            What::TurnStarted { request: some("do it"), summary: None },
        ),
        (
            json!({ "type": "model.thought", "id": "e", "content": content("thought", "hm") }),
            What::Thought { message: "e".to_owned(), text: "hm".to_owned(), last: true },
        ),
        (
            json!({ "type": "workspace.changed", "workspace": { "cwd": "/w", "roots": ["/w/a"] } }),
            What::WorkspaceChanged { paths: vec!["/w/a".to_owned()], reason: None },
        ),
    ];
    for (event, expected) in cases {
        assert_eq!(inside(event), [expected]);
    }
}

#[test]
fn an_error_ends_the_turn_once_and_outside_one_it_is_an_error() {
    let error = json!({
        "type": "agent.error", "lifecycle": { "reason": "rate_limit" }, "content": content("notification", "429"),
    });
    let told =
        whats(&[json!({ "type": "agent.start" }), error.clone(), json!({ "type": "agent.stop" })]);
    let failed = Ending::Failed {
        message: "429".to_owned(),
        code: Some("rate_limit".to_owned()),
        category: None,
    };
    assert_eq!(told[1..], [ended(failed)]);
    let code = Some("rate_limit".to_owned());
    assert_eq!(whats(&[error]), [What::Erred { message: "429".to_owned(), code }]);
}

#[test]
fn a_stop_says_how_and_what_it_cost() {
    let stop = |reason: &str| {
        json!({
            "type": "agent.stop", "lifecycle": { "reason": reason }, "model": { "id": "m" },
            "metrics": { "input_tokens": 7, "output_tokens": 2.0 },
        })
    };
    let usage =
        Usage { model: Some("m".to_owned()), input: Some(7), output: Some(2), ..Usage::default() };
    let end = |ending| {
        vec![What::TurnEnded { ending, summary: None, result: None, usage: vec![usage.clone()] }]
    };
    let cancelled = |by: &str, reason: &str| Ending::Cancelled {
        by: by.to_owned(),
        reason: Some(reason.to_owned()),
    };
    assert_eq!(inside(stop("end_turn")), end(Ending::Completed));
    assert_eq!(inside(stop("aborted")), end(cancelled("user", "aborted")));
    assert_eq!(inside(stop("cancelled by timeout: late")), end(cancelled("timeout", "late")));
    assert_eq!(inside(stop("error")), end(Ending::failed("error")));
}

#[test]
fn tokens_in_the_middle_of_a_turn_are_told_after_the_text() {
    let told = inside(json!({
        "type": "model.response", "id": "e", "content": content("response", "Hi"), "metrics": { "output_tokens": 3 },
    }));
    let usage = Usage { output: Some(3), ..Usage::default() };
    assert!(matches!(told[0], What::Said { last: true, .. }));
    assert_eq!(told[1..], [What::Used { usage }]);
}

fn said(message: &str, text: &str, last: bool) -> What {
    What::Said { message: message.to_owned(), role: Role::Assistant, text: text.to_owned(), last }
}

#[test]
fn a_whole_text_is_not_said_again_after_its_pieces() {
    let delta = |id: &str, text: &str| json!({ "type": "model.delta", "id": id, "content": content("response", text) });
    let whole = |id: &str, text: &str| json!({ "type": "model.response", "id": id, "content": content("response", text) });
    let start = json!({ "type": "agent.start" });
    let told = whats(&[start.clone(), delta("1", "Do"), delta("2", "ne"), whole("3", "Done.")]);
    assert_eq!(told[1..], [said("1", "Do", false), said("1", "ne", false), said("1", ".", true)]);
    let told = whats(&[start.clone(), delta("1", "Done"), whole("2", "Done")]);
    assert_eq!(told[1..], [said("1", "Done", false), said("1", "", true)]);
    let told = whats(&[start.clone(), delta("1", "Don"), whole("2", "Nothing")]);
    assert_eq!(told[2], said("2", "Nothing", true), "another text is a message of its own");
    // What is said after an action is another message, whichever whole comes first.
    let told = whats(&[
        start,
        delta("1", "Look"),
        request("a"),
        delta("2", "Done"),
        whole("3", "Done"),
        whole("4", "Look"),
        whole("5", "Done"),
    ]);
    let rest = [
        said("2", "Done", false),
        said("2", "", true),
        said("1", "", true),
        said("5", "Done", true),
    ];
    assert_eq!(told[3..], rest);
}

#[test]
fn pieces_of_threads_and_thoughts_are_kept_apart() {
    let delta = |id: &str, thread: &str, kind: &str| {
        json!({
            "type": "model.delta", "id": id, "content": content(kind, "x"),
            "session": { "id": "s", "conversation_id": thread, "parent": { "conversation_id": "s", "relation": "subagent" } },
        })
    };
    let told = whats(&[
        delta("1", "a", "response"),
        delta("2", "b", "response"),
        delta("3", "a", "thought"),
        delta("4", "a", "response"),
    ]);
    let thought = What::Thought { message: "3".to_owned(), text: "x".to_owned(), last: false };
    assert_eq!(
        told[1..],
        [said("1", "x", false), said("2", "x", false), thought, said("1", "x", false)]
    );
}

#[test]
fn a_subagent_is_named_after_what_started_it() {
    let spawn = json!({
        "type": "action.requested", "id": "evt_t", "session": { "id": "s" },
        "action": { "type": "subagent_spawn", "id": "t", "input": { "subagent_type": "explore", "description": "look" } },
        "tool": { "type": "native", "name": "Agent" },
    });
    let thread = json!({
        "id": "s", "conversation_id": "c",
        "parent": { "conversation_id": "s", "relation": "subagent", "spawning_action_id": "t" },
    });
    let stop = json!({
        "type": "subagent.stop", "session": thread, "content": content("response", "found"),
    });
    let inner = json!({
        "type": "subagent.start",
        "session": { "id": "s", "conversation_id": "d", "parent": { "conversation_id": "c", "relation": "subagent" } },
    });
    let events =
        [spawn, json!({ "type": "subagent.start", "session": thread }), inner, request("a"), stop];
    let mut reader = Reader::default();
    let told: Vec<_> =
        events.iter().flat_map(|event| reader.read_value(event, None, &origin())).collect();
    let started = What::SubagentStarted {
        id: "c".to_owned(),
        name: "explore".to_owned(),
        description: Some("look".to_owned()),
        parent: None,
        action: Some("t".to_owned()),
    };
    assert_eq!(told[2].what, started);
    assert_eq!(told[2].context.subagent, None);
    assert!(
        matches!(&told[3].what, What::SubagentStarted { parent: Some(above), .. } if above == "c")
    );
    assert_eq!(told[3].context.subagent.as_deref(), Some("c"));
    let result = Some(json!("found"));
    let end = What::SubagentEnded { id: "c".to_owned(), ending: Ending::Completed, result };
    assert_eq!(told[5].what, end);
}

#[test]
fn who_and_where_is_shared_as_long_as_nothing_changes() {
    let mut reader = Reader::default();
    let mut event = json!({ "type": "notification.sent", "agent": { "slug": "a" }, "content": content("notification", "x") });
    let first = reader.read_value(&event, None, &origin());
    let second = reader.read_value(&event, None, &origin());
    assert!(Arc::ptr_eq(&first[0].context, &second[0].context));
    event["model"] = json!({ "id": "m" });
    let third = reader.read_value(&event, None, &origin());
    assert_eq!(third[0].context.model.as_deref(), Some("m"));
}

fn question() -> [Value; 2] {
    let input = json!({ "questions": [
        { "question": "Which?", "options": [{ "label": "eu" }, { "label": "us" }] }, { "question": "When?" },
    ] });
    let mut asks = request("q");
    asks["action"]["input"] = input;
    let asked = json!({
        "type": "question.asked", "id": "evt_asked", "action": { "type": "tool_call", "id": "q" },
        "tool": { "type": "native", "name": "Bash" }, "content": content("question", "Which?"),
    });
    [asks, asked]
}

#[test]
fn a_question_has_the_choices_of_its_action() {
    let [asks, asked] = question();
    let told = whats(&[asks, asked]);
    let What::AskOpened { ask } = &told[2] else { panic!("{told:?}") };
    let choice = |name: &str| Choice { value: name.to_owned(), label: name.to_owned() };
    let expected = AskKind::Clarification {
        question: "Which?".to_owned(),
        kinds: vec![ResponseKind::MultipleChoice, ResponseKind::Freetext],
        choices: vec![choice("eu"), choice("us")],
        context: Some("When?".to_owned()),
        default: None,
    };
    assert_eq!(ask.kind, expected);
    assert_eq!(ask.token, "evt_asked");
}

#[test]
fn a_question_about_which_a_person_is_asked_anyway_is_not_asked_twice() {
    let [asks, asked] = question();
    for (decision, count) in [(Decision::Ask, 2), (Decision::Deny, 2), (Decision::Allow, 3)] {
        let gate = Gate {
            decision,
            rule: "r".to_owned(),
            reason: "because".to_owned(),
            risk: Risk::Low,
            irreversible: None,
            opaque: None,
            safer: None,
        };
        let mut reader = Reader::default();
        let told = [&asks, &asked].map(|event| reader.read_value(event, Some(&gate), &origin()));
        assert_eq!(told.concat().len(), count, "{decision:?}");
    }
}

fn closed(what: &What) -> (Outcome, Option<&Value>) {
    match what {
        What::AskClosed { outcome, response, .. } => (*outcome, response.as_ref()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_question_is_closed_by_its_answer_or_by_the_end_of_its_action() {
    let [asks, asked] = question();
    let answer = json!({
        "type": "question.answered", "id": "e", "action": { "type": "tool_call", "id": "q" },
        "content": content("answer", "eu"),
    });
    let mut end = request("q");
    end["type"] = json!("action.completed");
    end["action"]["output"] = json!({ "answers": { "Which?": "us" } });
    let mut failed = end.clone();
    failed["type"] = json!("action.failed");
    let stop = json!({ "type": "agent.stop" });

    let told = whats(&[asks.clone(), asked.clone(), answer.clone(), end.clone()]);
    assert_eq!(closed(&told[3]), (Outcome::Accepted, Some(&json!("eu"))));
    assert!(matches!(told[4..], [What::ActionEnded { .. }]));
    let told = whats(&[asks.clone(), asked.clone(), end, answer.clone()]);
    assert_eq!(closed(&told[3]), (Outcome::Accepted, Some(&json!("us"))));
    assert!(matches!(told[4..], [What::ActionEnded { .. }]), "the answer was told: {told:?}");
    let told = whats(&[asks.clone(), asked.clone(), failed]);
    assert_eq!(closed(&told[3]), (Outcome::Withdrawn, None));
    let told = whats(&[asks, asked, stop]);
    assert_eq!(closed(&told[3]), (Outcome::Withdrawn, None));
    assert!(matches!(whats(&[answer])[..], [What::Raw { .. }]), "nobody asked");
}

#[test]
fn a_yes_to_a_request_closes_it_and_a_no_is_told_as_a_refusal_once() {
    let input = json!({ "command": "ls" });
    let yes = response("a", json!({ "behavior": "allow", "updated_input": input }));
    let told = whats(&[request("a"), yes.clone(), yes]);
    let [.., What::AskClosed { outcome, action: Some(action), updated_input, .. }] = &told[..]
    else {
        panic!("{told:?}");
    };
    assert_eq!(
        (*outcome, action.id.as_str(), updated_input),
        (Outcome::Accepted, "a", &Some(input))
    );
    assert_eq!(told.len(), 3, "the first answer counts: {told:?}");

    let mut no = response("a", json!({ "behavior": "stop", "message": "halt" }));
    no["decision"] = json!({ "outcome": "denied", "by": "user" });
    let mut denied = request("a");
    denied["type"] = json!("action.denied");
    let told = whats(&[request("a"), no.clone(), denied]);
    assert_eq!(closed(&told[2]).0, Outcome::Rejected);
    let [_, _, _, What::ActionDenied { by, reason, .. }] = &told[..] else { panic!("{told:?}") };
    assert_eq!((by.as_str(), reason.as_deref()), ("user", Some("halt")));

    no["decision"]["by"] = json!("timeout");
    assert_eq!(closed(&whats(&[request("a"), no])[2]).0, Outcome::Expired);
}

#[test]
fn what_hands_the_decision_on_is_no_answer_and_what_nobody_asked_is_nothing() {
    for behavior in ["ask", "defer", "abstain", "continue"] {
        let told = whats(&[request("a"), response("a", json!({ "behavior": behavior }))]);
        assert!(matches!(told[2..], [What::Raw { .. }]), "{behavior}: {told:?}");
    }
    assert_eq!(whats(&[response("a", json!({ "behavior": "allow" }))]), []);
}

#[test]
fn a_second_answer_that_is_a_no_is_heard() {
    let say = |behavior: &str| response("a", json!({ "behavior": behavior }));
    let told = whats(&[request("a"), say("allow"), say("deny")]);
    assert!(matches!(told[3..], [What::ActionDenied { .. }]), "{told:?}");
}

#[test]
fn nothing_of_our_own_counts_unless_it_is_trusted() {
    let gate = json!({ "decision": "allow", "rule": "r", "reason": "fine", "risk": "low" });
    let mut asks = request("a");
    asks["extensions"] = json!({ "x-banister": { "gate": gate, "ids": { "action.id": "b" } } });
    let state = json!({
        "type": "x.state_set", "extensions": { "x-banister": { "what": { "state": { "a": 1 } } } },
    });
    let closes = json!({
        "type": "x.ask_closed", "extensions": { "x-banister": { "what": {
            "id": "ask", "outcome": "accepted", "by": "user",
        } } },
    });
    let told = whats(&[asks.clone(), state.clone(), closes.clone()]);
    assert!(matches!(&told[1], What::ActionRequested { gate: None, action } if action.id == "a"));
    assert!(matches!(told[2..], [What::Raw { .. }, What::Raw { .. }]));
    let told = read_with(Reader::trusting(), &[asks, state, closes]);
    assert!(
        matches!(&told[1], What::ActionRequested { gate: Some(_), action } if action.id == "b")
    );
    assert_eq!(told[2], What::StateSet { state: json!({ "a": 1 }) });
    assert!(matches!(told[3..], [What::Raw { .. }]), "no extension is an answer: {told:?}");
}

#[test]
fn an_event_knows_its_time_and_its_session() {
    let message = |event| Message::of_value(Protocol::Aep, event);
    let event =
        message(json!({ "time": "2026-01-31T12:00:00.5Z", "session": { "conversation_id": "c" } }));
    assert_eq!(time(event.document().root()), "2026-01-31T12:00:00.5Z".parse().ok());
    assert_eq!(session(event.document().root()).as_deref(), Some("c"));
    let event = message(json!({ "session": { "id": "s", "conversation_id": "c" } }));
    assert_eq!(session(event.document().root()).as_deref(), Some("s"));
    assert_eq!(time(message(json!({ "time": "yesterday" })).document().root()), None);
}
