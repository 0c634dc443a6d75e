use serde_json::{Value, json};

use crate::check::Checker;
use crate::event::Protocol;
use crate::finding::Finding;

fn started(run: u32, more: &Value) -> Value {
    let mut event = json!({"type": "RUN_STARTED", "threadId": "t", "runId": format!("r{run}"), "protocolVersion": "1.0", "timestamp": 1});
    for (name, value) in more.as_object().unwrap() {
        event[name] = value.clone();
    }
    event
}

fn finished(run: u32, outcome: &Value) -> Value {
    json!({"type": "RUN_FINISHED", "threadId": "t", "runId": format!("r{run}"), "outcome": outcome})
}

fn call(id: &str, name: &str) -> [Value; 2] {
    [
        json!({"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name}),
        json!({"type": "TOOL_CALL_END", "toolCallId": id}),
    ]
}

fn result(id: &str) -> Value {
    json!({"type": "TOOL_CALL_RESULT", "messageId": format!("of-{id}"), "toolCallId": id, "content": ""})
}

fn activity(id: &str, content: &Value) -> Value {
    json!({"type": "ACTIVITY_SNAPSHOT", "messageId": id, "activityType": "a.b", "content": content})
}

fn snapshot(state: &Value) -> Value {
    json!({"type": "STATE_SNAPSHOT", "snapshot": state})
}

fn delta(operations: &Value) -> Value {
    json!({"type": "STATE_DELTA", "delta": operations})
}

fn messages(messages: &Value) -> Value {
    json!({"type": "MESSAGES_SNAPSHOT", "messages": messages})
}

fn text(id: &str) -> [Value; 2] {
    ["START", "END"].map(|end| json!({"type": format!("TEXT_MESSAGE_{end}"), "messageId": id}))
}

fn success() -> Value {
    json!({"type": "success"})
}

fn check(checker: Checker, events: &[Value]) -> Vec<(&'static str, String)> {
    let mut checker = checker;
    let mut found: Vec<Finding> = events.iter().flat_map(|event| checker.value(event)).collect();
    found.extend(checker.finish());
    found.into_iter().map(|finding| (finding.rule.code, finding.pointer)).collect()
}

fn play(events: &[Value]) -> Vec<(&'static str, String)> {
    check(Checker::new(Protocol::Agui), events)
}

fn strictly(events: &[Value]) -> Vec<(&'static str, String)> {
    check(Checker::new(Protocol::Agui).strict(), events)
}

fn run(events: &[Value]) -> Vec<Value> {
    run_to(events, &success())
}

fn run_to(events: &[Value], outcome: &Value) -> Vec<Value> {
    [&[started(1, &json!({}))], events, &[finished(1, outcome)]].concat()
}

fn codes<const N: usize>(codes: [(&'static str, &str); N]) -> Vec<(&'static str, String)> {
    codes.map(|(code, pointer)| (code, pointer.to_owned())).into()
}

#[test]
fn patches_are_applied_to_what_snapshots_and_patches_gave() {
    let add = |path: &str| json!([{"op": "add", "path": path, "value": {}}]);
    let good =
        [snapshot(&json!(null)), delta(&json!([{"op": "replace", "path": "", "value": {}}]))];
    let good = [&good[..], &[delta(&add("/a")), delta(&add("/a/b"))]].concat();
    assert_eq!(play(&run(&good)), []);
    let bad = [snapshot(&json!({})), delta(&add("/a/b")), delta(&add("/a")), delta(&add("/a/b"))];
    assert_eq!(play(&run(&bad)), codes([("AGUI-SEQ-33", "/delta/0")]));
    // The state outlives the run.
    let next = [started(2, &json!({})), delta(&add("/x/y")), finished(2, &success())];
    let both = [run(&[snapshot(&json!({}))]), next.into()].concat();
    assert_eq!(play(&both), codes([("AGUI-SEQ-33", "/delta/0")]));
}

#[test]
fn a_patch_that_fails_is_told_with_the_operation_that_fails() {
    let operations =
        json!([{"op": "add", "path": "/a", "value": 1}, {"op": "test", "path": "/a", "value": 2}]);
    let bad = [snapshot(&json!({})), delta(&operations)];
    assert_eq!(play(&run(&bad)), codes([("AGUI-SEQ-33", "/delta/1")]));
    let patch = json!({"type": "ACTIVITY_DELTA", "messageId": "a", "activityType": "a.b", "patch": operations});
    assert_eq!(
        play(&run(&[activity("a", &json!({})), patch])),
        codes([("AGUI-SEQ-33", "/patch/1")])
    );
}

#[test]
fn a_state_that_is_too_large_is_not_followed() {
    let fails = delta(&json!([{"op": "remove", "path": "/none"}]));
    let large = snapshot(&json!("x".repeat(1 << 20)));
    assert_eq!(play(&run(&[large, fails.clone()])), []);
    let small = snapshot(&json!({"a": "x".repeat(1000)}));
    assert_eq!(play(&run(&[small.clone(), fails.clone()])), codes([("AGUI-SEQ-33", "/delta/0")]));
    // Short operations that double the document each time.
    let copy = json!({"op": "copy", "from": "", "path": "/a"});
    let copies = delta(&Value::Array(vec![copy; 40]));
    assert_eq!(play(&run(&[small.clone(), copies, fails.clone()])), []);
    let growth = delta(&json!([{"op": "add", "path": "/b", "value": "y".repeat(1 << 20)}]));
    assert_eq!(play(&run(&[small.clone(), growth, fails.clone(), small, fails])).len(), 1);
}

#[test]
fn pending_calls_are_those_without_a_result() {
    let pending = |ids: &[&str]| json!({"type": "success", "pendingToolCallIds": ids});
    let calls = [&call("a", "n")[..], &call("b", "n"), &[result("a")]].concat();
    let expected = codes([("AGUI-SEQ-36", "/outcome/pendingToolCallIds")]);
    for (named, breaks) in [
        (&["b"][..], false),
        (&[], false),
        (&["a"], true),
        (&["a", "b"], true),
        (&["b", "c"], true),
    ] {
        let found = play(&run_to(&calls, &pending(named)));
        assert_eq!(found, if breaks { expected.clone() } else { vec![] }, "{named:?}");
    }
    let early = [&[result("b")], &call("b", "n")[..]].concat();
    assert_eq!(play(&run_to(&early, &pending(&["b"]))), expected);
}

#[test]
fn an_id_is_that_of_one_kind_of_message() {
    let reasoning = [
        json!({"type": "REASONING_MESSAGE_START", "messageId": "x", "role": "reasoning"}),
        json!({"type": "REASONING_MESSAGE_END", "messageId": "x"}),
    ];
    let answer =
        json!({"type": "TOOL_CALL_RESULT", "messageId": "x", "toolCallId": "c", "content": ""});
    let shown = activity("x", &json!({}));
    let change =
        json!({"type": "ACTIVITY_DELTA", "messageId": "x", "activityType": "a.b", "patch": []});
    let kinds: [&[Value]; 4] = [&text("x"), &reasoning, &[answer], &[shown]];
    for (at, first) in kinds.iter().enumerate() {
        for (other, second) in kinds.iter().enumerate() {
            let found = play(&run(&[*first, *second].concat()));
            let expected = codes([("AGUI-SEQ-38", "/messageId")]);
            assert_eq!(found, if at == other { vec![] } else { expected }, "{at} {other}");
        }
    }
    let found = play(&run(&[&text("x")[..], &[change]].concat()));
    assert_eq!(found, codes([("AGUI-SEQ-38", "/messageId")]));
}

#[test]
fn a_snapshot_has_the_last_word_on_what_a_message_is() {
    let told = messages(&json!([
        {"id": "x", "role": "assistant", "content": "", "toolCalls": [{"id": "c", "type": "function", "function": {"name": "new", "arguments": ""}}]},
    ]));
    let events = [&[activity("x", &json!({})), told.clone()], &text("x")[..]].concat();
    assert_eq!(play(&run(&events)), []);
    let events = [&call("c", "old")[..], &[told], &call("c", "new")].concat();
    assert_eq!(play(&run(&events)), []);
    let events = [call("c", "old"), call("c", "new"), call("c", "new")].concat();
    assert_eq!(play(&run(&events)), codes([("AGUI-SEQ-39", "/toolCallName")]));
}

#[test]
fn a_call_is_carried_by_a_message_of_the_assistant() {
    let by = |parent: &str| {
        let [mut start, end] = call("c", "n");
        start["parentMessageId"] = parent.into();
        [start, end]
    };
    let history = json!({"input": {"threadId": "t", "runId": "r1", "messages": [{"id": "u", "role": "user", "content": ""}, {"id": "a", "role": "assistant"}]}});
    for (parent, found) in [
        ("a", vec![]),
        ("u", codes([("AGUI-SEQ-47", "/parentMessageId")])),
        ("?", codes([("AGUI-SEQ-31", "/parentMessageId")])),
    ] {
        let [start, end] = by(parent);
        let events = [started(1, &history), start, end, finished(1, &success())];
        assert_eq!(strictly(&events), found, "{parent}");
    }
}

#[test]
fn what_waits_is_answered_by_the_next_input() {
    let interrupt = json!({"type": "interrupt", "interrupts": [{"id": "i", "reason": "x"}]});
    let input = |run: u32, resume: &Value, messages: &Value| json!({"input": {"threadId": "t", "runId": format!("r{run}"), "messages": messages, "resume": resume}});
    let none = json!([]);
    let resume = json!([{"interruptId": "i", "status": "cancelled"}]);
    let error = json!({"type": "RUN_ERROR", "message": "x"});
    let first = run_to(&[], &interrupt);
    let uncovered = codes([("AGUI-SEQ-43", "/input/resume")]);
    let second = |input: Value, end: Value| [&first[..], &[started(2, &input), end]].concat();
    assert_eq!(play(&second(input(2, &none, &none), finished(2, &success()))), uncovered);
    assert_eq!(play(&second(input(2, &resume, &none), finished(2, &success()))), []);
    // No input, nothing to say. And a run that fails leaves the interrupt waiting.
    let failed = second(json!({}), error);
    assert_eq!(play(&failed), []);
    let third = [started(3, &input(3, &none, &none)), finished(3, &success())];
    assert_eq!(play(&[failed, third.into()].concat()), uncovered);

    let told = json!([{"id": "a", "role": "tool", "toolCallId": "c", "content": ""}]);
    for (messages, found) in [(&told, vec![]), (&none, codes([("AGUI-SEQ-44", "/input/messages")]))]
    {
        let next = [started(2, &input(2, &none, messages)), finished(2, &success())];
        assert_eq!(play(&[run(&call("c", "n")), next.into()].concat()), found);
    }
}

#[test]
fn a_run_told_again_answers_nothing() {
    let interrupt = json!({"type": "interrupt", "interrupts": [{"id": "i", "reason": "x"}]});
    let input = json!({"input": {"threadId": "t", "runId": "r1", "messages": []}});
    let told = [started(1, &input), finished(1, &interrupt)];
    let twice = [told.clone(), told].concat();
    assert_eq!(play(&twice), []);
    assert_eq!(strictly(&twice), codes([("AGUI-SEQ-46", "/runId")]));
}

#[test]
fn a_suspended_subagent_waits_with_its_run() {
    let suspended = |ids: &Value| {
        [
            json!({"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "n"}),
            json!({"type": "SUBAGENT_FINISHED", "subagentRunId": "s", "outcome": {"type": "suspended", "interruptIds": ids}}),
        ]
    };
    let interrupt = json!({"type": "interrupt", "interrupts": [{"id": "i", "reason": "x"}]});
    for (ids, outcome, found) in [
        (json!(["i"]), &interrupt, vec![]),
        (json!([]), &interrupt, vec![]),
        (json!(["j"]), &interrupt, codes([("AGUI-SEQ-40", "/outcome/interrupts")])),
        (json!(["i"]), &success(), codes([("AGUI-SEQ-40", "/outcome")])),
    ] {
        assert_eq!(play(&run_to(&suspended(&ids), outcome)), found, "{ids} {outcome}");
    }
}

#[test]
fn arguments_are_judged_when_the_call_ends_and_only_if_all_were_kept() {
    let args = |delta: &str| json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": delta});
    let with = |pieces: &[&str]| {
        let [start, end] = call("c", "n");
        let mut events = vec![start];
        events.extend(pieces.iter().map(|piece| args(piece)));
        events.push(end);
        run(&events)
    };
    let broken = codes([("AGUI-SEQ-35", "/toolCallId")]);
    assert_eq!(strictly(&with(&["{\"a\":", "1}"])), []);
    assert_eq!(strictly(&with(&[])), []);
    assert_eq!(strictly(&with(&["{\"a\":"])), broken);
    assert_eq!(strictly(&with(&["[", &"1".repeat(65_536)])), []);
    assert_eq!(play(&with(&["{\"a\":"])), []);
}

#[test]
fn what_a_lost_message_may_have_told_is_not_missed() {
    let call = call("c", "n");
    let pending = json!({"type": "success", "pendingToolCallIds": ["c", "lost"]});
    let removes = delta(&json!([{"op": "remove", "path": "/none"}]));
    let mut checker = Checker::new(Protocol::Agui).strict();
    let mut found = Vec::new();
    for event in [started(1, &json!({})), snapshot(&json!({}))] {
        found.extend(checker.value(&event));
    }
    found.extend(checker.message(b"{"));
    for event in call.iter().chain([&removes, &finished(1, &pending)]) {
        found.extend(checker.value(event));
    }
    let next = [started(2, &json!({})), removes, finished(2, &success())];
    found.extend(next.iter().flat_map(|event| checker.value(event)));
    found.extend(checker.finish());
    let codes: Vec<&str> = found.iter().map(|finding| finding.rule.code).collect();
    assert_eq!(codes, ["AGUI-EVT-01"]);
}

#[test]
fn threads_do_not_mix_in_one_recording() {
    let of = |thread: &str, mut event: Value| {
        event["threadId"] = thread.into();
        event
    };
    let remove = delta(&json!([{"op": "remove", "path": "/b"}]));
    let mut events = vec![of("a", started(1, &json!({}))), snapshot(&json!({"a": 1}))];
    events.push(of("a", finished(1, &success())));
    events.extend([of("b", started(1, &json!({}))), snapshot(&json!({"b": 1})), remove]);
    events.push(of("b", finished(1, &success())));
    assert_eq!(play(&events), []);
    assert_eq!(strictly(&events), codes([("AGUI-SEQ-41", "/threadId")]));
}
