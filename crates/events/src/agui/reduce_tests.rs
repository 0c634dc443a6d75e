use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::check::with_document;

#[path = "reduce/naive.rs"]
mod naive;

fn feed(reducer: &mut Reducer, event: &Value) -> (Change, Vec<Warning>) {
    let mut warnings = Vec::new();
    let kind = Type::parse(event["type"].as_str().unwrap()).unwrap();
    let change = with_document(event, |document| {
        let step = Step::new(kind, document.root()).unwrap();
        reducer.apply(&step, &mut warnings)
    });
    (change, warnings)
}

/// Feeds events that give no warnings.
fn quiet(reducer: &mut Reducer, events: &[Value]) -> Vec<Change> {
    let each = events.iter().map(|event| {
        let (change, warnings) = feed(reducer, event);
        assert_eq!(warnings, [], "{event}");
        change
    });
    each.collect()
}

fn after(events: &[Value]) -> Reducer {
    let mut reducer = Reducer::new();
    quiet(&mut reducer, events);
    reducer
}

/// The place and message of the one warning that an event gives, which changes nothing.
fn refused(reducer: &mut Reducer, event: &Value) -> (&'static str, String) {
    let before = (reducer.messages_value(), reducer.state().clone());
    let (change, mut warnings) = feed(reducer, event);
    assert_eq!((reducer.messages_value(), reducer.state().clone()), before, "{event}");
    assert_eq!((change, warnings.len()), (Change::None, 1), "{event}");
    let warning = warnings.remove(0);
    (warning.pointer, warning.message)
}

fn text(id: &str, part: &str, rest: &Value) -> Value {
    merged(json!({"type": format!("TEXT_MESSAGE_{part}"), "messageId": id}), rest)
}

fn tool(id: &str, part: &str, rest: &Value) -> Value {
    merged(json!({"type": format!("TOOL_CALL_{part}"), "toolCallId": id}), rest)
}

fn result(id: &str, call: &str) -> Value {
    json!({"type": "TOOL_CALL_RESULT", "messageId": id, "toolCallId": call, "content": "ok"})
}

fn activity(id: &str, part: &str, rest: &Value) -> Value {
    let kind = format!("ACTIVITY_{part}");
    merged(json!({"type": kind, "messageId": id, "activityType": "plan"}), rest)
}

fn snapshot(messages: &Value) -> Value {
    json!({"type": "MESSAGES_SNAPSHOT", "messages": messages})
}

fn merged(mut event: Value, rest: &Value) -> Value {
    let rest = rest.as_object().unwrap().clone();
    event.as_object_mut().unwrap().extend(rest);
    event
}

fn ids(reducer: &Reducer) -> Vec<&str> {
    reducer.messages().map(Message::id).collect()
}

#[test]
fn a_run_starts_with_the_messages_of_its_input_that_are_not_known() {
    let mut reducer = after(&[text("m1", "START", &json!({}))]);
    let input = json!({"state": {"ignored": true}, "messages": [
        {"id": "m1", "role": "user", "content": "other"},
        {"id": "m2", "role": "user", "content": "new", "subagentRunId": null},
        {"id": "m2", "role": "user", "content": "again"},
    ]});
    let started = json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r", "input": input});
    assert_eq!(quiet(&mut reducer, &[started]), [Change::Messages]);
    let expected = json!([
        {"id": "m1", "role": "assistant", "content": ""},
        {"id": "m2", "role": "user", "content": "new"},
    ]);
    assert_eq!(reducer.messages_value(), expected);
    assert_eq!(reducer.state(), &json!({}));
}

#[test]
fn a_text_message_is_put_together() {
    let mut reducer = Reducer::new();
    let opener = json!({"role": "user", "name": "Ada", "subagentRunId": "s", "metadata": {"a": 1}});
    let changes = quiet(
        &mut reducer,
        &[
            text("m", "START", &opener),
            text("m", "CONTENT", &json!({"delta": "Hel"})),
            text("m", "CONTENT", &json!({"delta": "lo", "metadata": {"b": {"x": 1}}})),
            text("m", "END", &json!({"metadata": {"b": {"y": 2}, "c": null}})),
            text("m", "END", &json!({})),
        ],
    );
    let key = Key(0);
    let message = Change::Message(key);
    assert_eq!(changes, [message, message, message, message, Change::None]);
    // Key by key, the last one wins, and nothing is merged below that.
    let expected = json!({
        "id": "m", "role": "user", "content": "Hello", "name": "Ada", "subagentRunId": "s",
        "metadata": {"a": 1, "b": {"y": 2}, "c": null},
    });
    assert_eq!(reducer.message(key).map(Message::to_value), Some(expected));
}

#[test]
fn a_message_that_opens_again_keeps_who_speaks_and_goes_on() {
    let reducer = after(&[
        text("m", "START", &json!({"role": "user"})),
        text("m", "CONTENT", &json!({"delta": "a"})),
        text("m", "START", &json!({"role": "system", "name": "x", "metadata": {"k": 1}})),
        text("m", "CONTENT", &json!({"delta": "b"})),
    ]);
    let expected = json!([{"id": "m", "role": "user", "content": "ab", "metadata": {"k": 1}}]);
    assert_eq!(reducer.messages_value(), expected);
}

#[test]
fn text_takes_the_place_of_content_that_is_none() {
    let parts = json!([{"type": "text", "text": "part"}]);
    let user = json!({"id": "m", "role": "user", "content": parts});
    let mut reducer = Reducer::with(vec![user], json!({}));
    quiet(&mut reducer, &[text("m", "CONTENT", &json!({"delta": "plain"}))]);
    let expected = json!([{"id": "m", "role": "user", "content": "plain"}]);
    assert_eq!(reducer.messages_value(), expected);
}

#[test]
fn text_and_reasoning_cannot_join_an_activity_or_nothing() {
    let mut reducer = after(&[activity("a", "SNAPSHOT", &json!({"content": {"x": 1}}))]);
    for kind in ["TEXT_MESSAGE", "REASONING_MESSAGE"] {
        for (part, rest) in [("START", "role"), ("CONTENT", "delta"), ("END", "unused")] {
            let event = |id: &str| {
                json!({
                    "type": format!("{kind}_{part}"), "messageId": id, rest: "reasoning",
                    "metadata": {"k": 1},
                })
            };
            let (pointer, message) = refused(&mut reducer, &event("a"));
            assert_eq!(pointer, "/messageId");
            assert!(message.contains("is an activity"), "{message}");
            if part != "START" {
                let (_, message) = refused(&mut reducer, &event("none"));
                assert_eq!(message, r#"there is no message "none""#);
            }
        }
    }
}

#[test]
fn reasoning_is_a_message_of_its_own_and_a_span_is_none() {
    let reasoning = |part: &str, rest: &Value| {
        merged(json!({"type": format!("REASONING_{part}"), "messageId": "r"}), rest)
    };
    let mut reducer = Reducer::new();
    let changes = quiet(
        &mut reducer,
        &[
            reasoning("START", &json!({"metadata": {"k": 1}})),
            reasoning("MESSAGE_START", &json!({"role": "reasoning", "subagentRunId": "s"})),
            reasoning("MESSAGE_CONTENT", &json!({"delta": "hm"})),
            reasoning("MESSAGE_END", &json!({"metadata": {"t": 2}})),
            reasoning("END", &json!({})),
        ],
    );
    assert_eq!((changes[0], changes[4]), (Change::None, Change::None));
    let expected = json!([{
        "id": "r", "role": "reasoning", "content": "hm", "subagentRunId": "s", "metadata": {"t": 2},
    }]);
    assert_eq!(reducer.messages_value(), expected);
}

#[test]
fn a_call_is_put_together_and_its_metadata_is_its_own() {
    let reducer = after(&[
        text("m", "START", &json!({})),
        tool(
            "c",
            "START",
            &json!({"toolCallName": "read", "parentMessageId": "m", "metadata": {"a": 1}}),
        ),
        tool("c", "ARGS", &json!({"delta": "{\"p\":"})),
        tool("c", "ARGS", &json!({"delta": "1", "metadata": {"a": 2}})),
        tool("c", "END", &json!({"metadata": {"b": 3}})),
    ]);
    let function = json!({"name": "read", "arguments": "{\"p\":1"});
    let call =
        json!({"id": "c", "type": "function", "function": function, "metadata": {"a": 2, "b": 3}});
    let expected = json!([{"id": "m", "role": "assistant", "content": "", "toolCalls": [call]}]);
    assert_eq!(reducer.messages_value(), expected);
    assert_eq!(
        reducer.messages().flat_map(Message::calls).map(Call::name).collect::<Vec<_>>(),
        ["read"]
    );
}

#[test]
fn a_call_finds_who_carries_it() {
    let start = |id: &str, parent: Option<&str>| {
        let tag = json!({"toolCallName": "t", "subagentRunId": "s"});
        let parent = parent.map_or(json!({}), |parent| json!({"parentMessageId": parent}));
        merged(tool(id, "START", &tag), &parent)
    };
    let mut reducer = after(&[
        start("c1", Some("p")),
        start("c2", Some("p")),
        start("c3", None),
        start("c4", Some("")),
        text("u", "START", &json!({"role": "user"})),
        text("c6", "START", &json!({"role": "user"})),
    ]);
    let (_, warnings) = feed(&mut reducer, &start("c5", Some("u")));
    assert_eq!(
        warnings.iter().map(|warning| warning.pointer).collect::<Vec<_>>(),
        ["/parentMessageId"]
    );
    // The id of the new message is taken, and then it is not tagged.
    quiet(&mut reducer, &[start("c6", None)]);
    let message = |id: &str, calls: &[&str]| {
        let call =
            |id| json!({"id": id, "type": "function", "function": {"name": "t", "arguments": ""}});
        let calls: Vec<Value> = calls.iter().map(call).collect();
        json!({"id": id, "role": "assistant", "toolCalls": calls, "subagentRunId": "s"})
    };
    let user = |id| json!({"id": id, "role": "user", "content": ""});
    let mut untagged = message("c6", &["c6"]);
    untagged.as_object_mut().unwrap().remove("subagentRunId");
    let expected = json!([
        message("p", &["c1", "c2"]),
        message("c3", &["c3"]),
        message("c4", &["c4"]),
        user("u"),
        user("c6"),
        message("c5", &["c5"]),
        untagged,
    ]);
    assert_eq!(reducer.messages_value(), expected);
}

#[test]
fn a_call_that_starts_again_keeps_its_arguments() {
    let start =
        |name: &str| tool("c", "START", &json!({"toolCallName": name, "parentMessageId": "other"}));
    let mut reducer = after(&[
        tool("c", "START", &json!({"toolCallName": "old"})),
        tool("c", "ARGS", &json!({"delta": "{}"})),
    ]);
    assert_eq!(quiet(&mut reducer, &[start("old")]), [Change::None]);
    let (change, warnings) = feed(&mut reducer, &start("new"));
    assert_eq!(
        (change, warnings.len(), warnings[0].pointer),
        (Change::Message(Key(0)), 1, "/toolCallName")
    );
    let call =
        json!({"id": "c", "type": "function", "function": {"name": "new", "arguments": "{}"}});
    assert_eq!(
        reducer.messages_value(),
        json!([{"id": "c", "role": "assistant", "toolCalls": [call]}])
    );
}

#[test]
fn arguments_of_a_call_that_nobody_carries_are_refused() {
    let mut reducer = Reducer::new();
    for event in [tool("c", "ARGS", &json!({"delta": "x"})), tool("c", "END", &json!({}))] {
        assert_eq!(refused(&mut reducer, &event).0, "/toolCallId");
    }
}

#[test]
fn a_result_follows_its_call_and_the_results_already_there() {
    let start = |id: &str| tool(id, "START", &json!({"toolCallName": "t", "parentMessageId": "p"}));
    let parts = json!([{"type": "text", "text": "x"}]);
    let extra = json!({"content": parts, "subagentRunId": "s", "metadata": {"k": 1}});
    let reducer = after(&[
        start("c1"),
        start("c2"),
        text("later", "START", &json!({})),
        result("r1", "c2"),
        merged(result("r2", "c1"), &extra),
        result("r3", "unknown"),
    ]);
    assert_eq!(ids(&reducer), ["p", "r1", "r2", "later", "r3"]);
    let expected = json!({
        "id": "r2", "role": "tool", "toolCallId": "c1", "content": parts, "subagentRunId": "s",
        "metadata": {"k": 1},
    });
    assert_eq!(reducer.messages().nth(2).map(Message::to_value), Some(expected));
}

#[test]
fn results_go_before_a_result_that_turned_into_an_activity() {
    let start = tool("c", "START", &json!({"toolCallName": "t"}));
    let turn = |id: &str| activity(id, "SNAPSHOT", &json!({"content": {}}));
    let mut reducer =
        after(&[start, result("r1", "c"), result("r2", "c"), result("r3", "c"), turn("r2")]);
    quiet(
        &mut reducer,
        &[result("r4", "c"), turn("r3"), result("r5", "c"), turn("r1"), result("r6", "c")],
    );
    assert_eq!(ids(&reducer), ["c", "r6", "r1", "r4", "r5", "r2", "r3"]);
}

#[test]
fn the_first_message_with_an_id_counts_wherever_it_was_put() {
    let reducer = after(&[
        tool("c", "START", &json!({"toolCallName": "t"})),
        text("m", "START", &json!({})),
        result("m", "c"),
        text("m", "CONTENT", &json!({"delta": "!"})),
    ]);
    let contents: Vec<_> = reducer.messages().map(|message| message.content().cloned()).collect();
    assert_eq!(contents, [None, Some(json!("ok!")), Some(json!(""))]);
}

#[test]
fn a_state_is_replaced_and_patched_as_a_whole() {
    let mut reducer = Reducer::with(Vec::new(), json!({"a": 1}));
    let state = |snapshot: &Value| json!({"type": "STATE_SNAPSHOT", "snapshot": snapshot});
    let delta = |delta: &Value| json!({"type": "STATE_DELTA", "delta": delta});
    let good = delta(
        &json!([{"op": "add", "path": "/b", "value": [1]}, {"op": "add", "path": "/b/-", "value": 2}]),
    );
    assert_eq!(quiet(&mut reducer, &[good, delta(&json!([]))]), [Change::State; 2]);
    assert_eq!(reducer.state(), &json!({"a": 1, "b": [1, 2]}));
    let bad = delta(&json!([{"op": "remove", "path": "/a"}, {"op": "remove", "path": "/zz"}]));
    let expected = r#"the state is not patched: operation 1 at "/zz": nothing is there"#;
    assert_eq!(refused(&mut reducer, &bad), ("/delta", expected.to_owned()));
    for value in [json!(null), json!(0), json!(""), json!(false), json!([1])] {
        assert_eq!(quiet(&mut reducer, &[state(&value)]), [Change::State]);
        assert_eq!(reducer.state(), &value);
    }
    quiet(&mut reducer, &[state(&json!(null))]);
    refused(&mut reducer, &delta(&json!([{"op": "add", "path": "/a", "value": 1}])));
}

#[test]
fn a_snapshot_replaces_in_place_appends_and_drops() {
    let mut reducer = after(&[
        text("a", "START", &json!({"metadata": {"old": 1}})),
        tool("c1", "START", &json!({"toolCallName": "t", "parentMessageId": "b"})),
        text("x", "START", &json!({})),
        activity("act", "SNAPSHOT", &json!({"content": {}})),
        json!({"type": "REASONING_MESSAGE_START", "messageId": "r", "role": "reasoning"}),
    ]);
    let call = json!({"id": "c2", "type": "function", "function": {"name": "u", "arguments": "{"}});
    let new = snapshot(&json!([
        {"id": "n", "role": "user", "content": "1"},
        {"id": "b", "role": "assistant", "toolCalls": [call], "encryptedValue": "e"},
        {"id": "n", "role": "user", "content": "2"},
        {"id": "a", "role": "user", "content": "first"},
        {"id": "a", "role": "user", "content": "last"},
    ]));
    assert_eq!(quiet(&mut reducer, &[new]), [Change::Messages]);
    quiet(&mut reducer, &[tool("c2", "ARGS", &json!({"delta": "}"})), result("res", "c2")]);
    refused(&mut reducer, &tool("c1", "ARGS", &json!({"delta": "}"})));
    let call =
        json!({"id": "c2", "type": "function", "function": {"name": "u", "arguments": "{}"}});
    let expected = json!([
        {"id": "a", "role": "user", "content": "last"},
        {"id": "b", "role": "assistant", "toolCalls": [call], "encryptedValue": "e"},
        {"id": "res", "role": "tool", "toolCallId": "c2", "content": "ok"},
        {"id": "act", "role": "activity", "activityType": "plan", "content": {}},
        {"id": "r", "role": "reasoning", "content": ""},
        {"id": "n", "role": "user", "content": "1"},
        {"id": "n", "role": "user", "content": "2"},
    ]);
    assert_eq!(reducer.messages_value(), expected);
}

#[test]
fn a_snapshot_with_reasoning_or_activities_has_all_of_them() {
    let start = [
        activity("a1", "SNAPSHOT", &json!({"content": {}})),
        json!({"type": "REASONING_MESSAGE_START", "messageId": "r1", "role": "reasoning"}),
    ];
    let mut reducer = after(&start);
    quiet(&mut reducer, &[snapshot(&json!([{"id": "r2", "role": "reasoning", "content": ""}]))]);
    assert_eq!(ids(&reducer), ["a1", "r2"]);
    let plan = json!([{"id": "a2", "role": "activity", "activityType": "other", "content": {}}]);
    quiet(&mut reducer, &[snapshot(&plan)]);
    assert_eq!(ids(&reducer), ["r2", "a2"]);
}

#[test]
fn a_snapshot_may_say_which_activities_it_has_all_of() {
    let declared = |declared: &Value| {
        merged(snapshot(&json!([])), &json!({"metadata": {"@ag-ui/client": declared}}))
    };
    let types = |types: &Value| declared(&json!({"authoritativeActivityTypes": types}));
    let kept = |event: &Value| {
        let other = json!({"content": {}, "activityType": "other"});
        let mut reducer = after(&[
            activity("a", "SNAPSHOT", &json!({"content": {}})),
            activity("b", "SNAPSHOT", &other),
            text("m", "START", &json!({})),
        ]);
        quiet(&mut reducer, std::slice::from_ref(event));
        ids(&reducer).join(" ")
    };
    assert_eq!(kept(&types(&json!(null))), "");
    assert_eq!(kept(&types(&json!(["plan", "none"]))), "b");
    assert_eq!(kept(&types(&json!([]))), "a b");
    assert_eq!(kept(&types(&json!(["plan", 7]))), "a b");
    assert_eq!(kept(&types(&json!("plan"))), "a b");
    assert_eq!(kept(&declared(&json!([]))), "a b");
    assert_eq!(kept(&declared(&json!({"other": 1}))), "a b");
    // What is declared to be none of its business stays, even if the snapshot has activities.
    let mut event = types(&json!([]));
    event["messages"] =
        json!([{"id": "c", "role": "activity", "activityType": "plan", "content": {}}]);
    assert_eq!(kept(&event), "a b c");
    event["metadata"]["@ag-ui/client"] = json!({});
    assert_eq!(kept(&event), "c");
}

#[test]
fn copies_of_a_message_are_bounded() {
    let start = tool("c", "START", &json!({"toolCallName": "t"}));
    let mut reducer = after(&[start]);
    for _ in 0..100 {
        quiet(&mut reducer, &[result("same", "c")]);
    }
    let large = json!([{"id": "same", "role": "user", "content": "x".repeat(1 << 20)}]);
    let (_, warnings) = feed(&mut reducer, &snapshot(&large));
    assert_eq!(warnings.iter().map(|warning| warning.pointer).collect::<Vec<_>>(), ["/messages"]);
    assert_eq!(reducer.messages().count(), 8);
}

#[test]
fn an_activity_is_shown_replaced_and_kept() {
    let show = |id: &str, rest: &Value| activity(id, "SNAPSHOT", rest);
    let mut reducer = after(&[
        show("a", &json!({"content": {"n": 1}, "subagentRunId": "s", "metadata": {"k": 1}})),
        text("m", "START", &json!({"metadata": {"gone": 1}})),
    ]);
    let first = json!({
        "id": "a", "role": "activity", "activityType": "plan", "content": {"n": 1},
        "subagentRunId": "s", "metadata": {"k": 1},
    });
    assert_eq!(reducer.messages().next().map(Message::to_value), Some(first));
    let kept = show(
        "a",
        &json!({"content": {"n": 2}, "activityType": "x", "replace": false, "metadata": {"l": 2}}),
    );
    let untouched = show("m", &json!({"content": {}, "replace": false, "metadata": {"l": 2}}));
    assert_eq!(quiet(&mut reducer, &[kept, untouched]), [Change::Message(Key(0)), Change::None]);
    let replaced = show("a", &json!({"content": {"n": 3}, "activityType": "todo"}));
    let turned = show("m", &json!({"content": {}, "metadata": {"new": 1}}));
    quiet(&mut reducer, &[replaced, turned]);
    let expected = json!([
        {"id": "a", "role": "activity", "activityType": "todo", "content": {"n": 3}, "metadata": {"k": 1, "l": 2}},
        {"id": "m", "role": "activity", "activityType": "plan", "content": {}, "metadata": {"new": 1}},
    ]);
    assert_eq!(reducer.messages_value(), expected);
}

#[test]
fn an_activity_is_patched_or_keeps_its_content() {
    let patch = |id: &str, patch: &Value, rest: &Value| {
        merged(activity(id, "DELTA", &json!({"patch": patch})), rest)
    };
    let mut reducer = after(&[
        activity("a", "SNAPSHOT", &json!({"content": {"n": 1}})),
        text("m", "START", &json!({})),
    ]);
    let good = json!([{"op": "replace", "path": "/n", "value": 2}]);
    let bad = json!([{"op": "replace", "path": "/n", "value": 3}, {"op": "remove", "path": "/x"}]);
    assert_eq!(quiet(&mut reducer, &[patch("none", &good, &json!({}))]), [Change::None]);
    assert_eq!(refused(&mut reducer, &patch("m", &good, &json!({}))).0, "/messageId");
    assert_eq!(refused(&mut reducer, &patch("a", &bad, &json!({"activityType": "x"}))).0, "/patch");
    let (change, warnings) = feed(&mut reducer, &patch("a", &bad, &json!({"metadata": {"k": 1}})));
    assert_eq!((change, warnings.len()), (Change::Message(Key(0)), 1));
    quiet(&mut reducer, &[patch("a", &good, &json!({"activityType": "todo"}))]);
    let content = |reducer: &Reducer| reducer.messages().next().unwrap().to_value();
    let expected = json!({
        "id": "a", "role": "activity", "activityType": "todo", "content": {"n": 2}, "metadata": {"k": 1},
    });
    assert_eq!(content(&reducer), expected);
    // Content that was patched away begins anew.
    let away = json!([{"op": "remove", "path": ""}]);
    let anew = json!([{"op": "add", "path": "/b", "value": 1}]);
    quiet(&mut reducer, &[patch("a", &away, &json!({}))]);
    assert_eq!(content(&reducer)["content"], json!(null));
    refused(&mut reducer, &patch("a", &bad, &json!({})));
    quiet(&mut reducer, &[patch("a", &anew, &json!({}))]);
    assert_eq!(content(&reducer)["content"], json!({"b": 1}));
}

#[test]
fn an_encrypted_value_is_kept_with_what_it_belongs_to() {
    let encrypted = |subtype: &str, id: &str| {
        json!({
            "type": "REASONING_ENCRYPTED_VALUE", "subtype": subtype, "entityId": id,
            "encryptedValue": "e", "metadata": {"not": "kept"},
        })
    };
    let mut reducer = after(&[
        tool("c", "START", &json!({"toolCallName": "t", "parentMessageId": "m"})),
        activity("a", "SNAPSHOT", &json!({"content": {}})),
    ]);
    let changes = quiet(
        &mut reducer,
        &[
            encrypted("tool-call", "c"),
            encrypted("message", "m"),
            encrypted("message", "a"),
            encrypted("message", "none"),
            encrypted("tool-call", "none"),
        ],
    );
    let set = Change::Message(Key(0));
    assert_eq!(changes, [set, set, Change::None, Change::None, Change::None]);
    let call = json!({
        "id": "c", "type": "function", "function": {"name": "t", "arguments": ""}, "encryptedValue": "e",
    });
    let expected =
        json!({"id": "m", "role": "assistant", "toolCalls": [call], "encryptedValue": "e"});
    assert_eq!(reducer.messages().next().map(Message::to_value), Some(expected));
}

fn finished(rest: &Value) -> Value {
    merged(json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}), rest)
}

#[test]
fn the_end_of_a_run_is_known_with_what_waits() {
    let started = json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"});
    let call = |id: &str| tool(id, "START", &json!({"toolCallName": "t"}));
    let pending = |reducer: &Reducer| reducer.pending_tool_calls().collect::<Vec<_>>().join(" ");
    let mut reducer = after(&[
        started.clone(),
        call("c1"),
        call("c2"),
        call("c1"),
        call("c3"),
        result("r", "c2"),
    ]);
    assert_eq!((pending(&reducer).as_str(), reducer.outcome()), ("c1 c3", None));

    assert_eq!(quiet(&mut reducer, &[finished(&json!({"result": {"n": 1}}))]), [Change::Outcome]);
    assert_eq!((pending(&reducer).as_str(), reducer.outcome()), ("c1 c3", Some(&Outcome::Success)));
    assert_eq!(reducer.result(), Some(&json!({"n": 1})));
    let outcome = json!({"type": "success", "pendingToolCallIds": ["c9", "c1"]});
    quiet(&mut reducer, &[finished(&json!({"outcome": outcome, "result": 2}))]);
    assert_eq!(pending(&reducer), "c9 c1");

    quiet(&mut reducer, std::slice::from_ref(&started));
    assert_eq!((pending(&reducer).as_str(), reducer.outcome()), ("", None));
    let interrupt = json!({"id": "i", "reason": "confirmation"});
    let outcome = json!({"type": "interrupt", "interrupts": [interrupt]});
    quiet(&mut reducer, &[finished(&json!({"outcome": outcome, "result": "not of a success"}))]);
    assert_eq!(reducer.outcome(), Some(&Outcome::Interrupt));
    assert_eq!(reducer.pending_interrupts(), [interrupt]);

    let failed = json!({"type": "RUN_ERROR", "message": "no", "code": "E1"});
    quiet(&mut reducer, &[started.clone(), failed]);
    let error = Outcome::Error { message: "no".to_owned(), code: Some("E1".to_owned()) };
    assert_eq!((reducer.outcome(), reducer.pending_interrupts().len()), (Some(&error), 1));

    quiet(&mut reducer, &[started, finished(&json!({"outcome": {"type": "cancelled"}}))]);
    assert_eq!(
        (reducer.outcome(), reducer.pending_interrupts().len()),
        (Some(&Outcome::Cancelled), 0)
    );
    assert_eq!(reducer.result(), Some(&json!(2)));
}

#[test]
fn a_result_that_comes_before_its_call_answers_it() {
    let reducer = after(&[result("r", "c"), tool("c", "START", &json!({"toolCallName": "t"}))]);
    assert_eq!(reducer.pending_tool_calls().count(), 0);
}

#[test]
fn other_events_build_nothing() {
    let mut reducer = Reducer::new();
    for event in [
        json!({"type": "STEP_STARTED", "stepName": "s", "metadata": {"k": 1}}),
        json!({"type": "STEP_FINISHED", "stepName": "s"}),
        json!({"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "n"}),
        json!({"type": "SUBAGENT_FINISHED", "subagentRunId": "s"}),
        json!({"type": "SUBAGENT_ERROR", "subagentRunId": "s", "message": "m"}),
        json!({"type": "RAW", "event": {"messageId": "m"}}),
        json!({"type": "CUSTOM", "name": "n", "value": null}),
    ] {
        assert_eq!(quiet(&mut reducer, &[event]), [Change::None]);
    }
    assert_eq!((reducer.messages_value(), reducer.state()), (json!([]), &json!({})));
}

#[test]
fn odd_messages_are_kept_as_they_are() {
    let odd = vec![
        json!({"id": "a", "role": "narrator", "content": 7, "own": [1]}),
        json!({"id": "b", "role": "assistant", "toolCalls": "none"}),
        json!({"id": "c", "role": "assistant", "toolCalls": [{"id": "x"}]}),
        json!({"id": "d", "role": "user", "toolCalls": []}),
    ];
    let mut reducer = Reducer::with(odd.clone(), json!(null));
    assert_eq!(reducer.messages_value(), Value::from(odd));
    for kind in Type::ALL {
        for fields in [
            json!({}),
            json!({"messageId": "a"}),
            json!({"toolCallId": 1, "messages": 3, "input": []}),
        ] {
            let event = merged(json!({"type": kind.name()}), &fields);
            with_document(&event, |document| {
                if let Some(step) = Step::new(kind, document.root()) {
                    reducer.apply(&step, &mut Vec::new());
                }
            });
        }
    }
    assert_eq!(reducer.messages().count(), 4);
}

#[test]
fn long_messages_and_long_histories_cost_no_more_than_short_ones() {
    const MANY: usize = 200_000;
    let mut reducer = after(&[
        text("m", "START", &json!({})),
        tool("c", "START", &json!({"toolCallName": "t"})),
        text("after", "START", &json!({})),
    ]);
    let append = text("m", "CONTENT", &json!({"delta": "1234567890"}));
    let arguments = tool("c", "ARGS", &json!({"delta": "1234567890"}));
    let answer = result("same", "c");
    let mut warnings = Vec::new();
    for event in [&append, &arguments, &answer] {
        let kind = Type::parse(event["type"].as_str().unwrap()).unwrap();
        with_document(event, |document| {
            let step = Step::new(kind, document.root()).unwrap();
            for _ in 0..MANY {
                reducer.apply(&step, &mut warnings);
            }
        });
    }
    assert_eq!(warnings, []);
    assert_eq!(reducer.messages().count(), MANY + 3);
    let texts: Vec<_> = reducer.messages().take(2).collect();
    assert_eq!(texts[0].content().and_then(Value::as_str).map(str::len), Some(MANY * 10));
    assert_eq!(texts[1].calls()[0].arguments().len(), MANY * 10);
    // No result was ever passed again on the way to the end.
    assert_eq!(reducer.history.passed, 0);
    // Snapshots that name nothing touch nothing that stays.
    quiet(&mut reducer, &[snapshot(&json!([]))]);
    assert_eq!(reducer.messages().count(), 0);
}

proptest! {
    #[test]
    fn messages_and_state_are_what_a_plain_reducer_makes_of_them(
        events in prop::collection::vec(naive::event(), 0..40),
    ) {
        let (mut reducer, mut plain) = (Reducer::new(), naive::Plain::default());
        for event in &events {
            let (change, _) = feed(&mut reducer, event);
            let before = plain.clone();
            plain.apply(event);
            let messages = Value::from(plain.messages.clone());
            prop_assert_eq!(&reducer.messages_value(), &messages, "{}", event);
            prop_assert_eq!(reducer.state(), &plain.state);
            prop_assert!(change != Change::None || (before.messages, before.state) == (plain.messages.clone(), plain.state.clone()));
        }
    }
}

#[test]
fn a_state_that_is_copied_into_itself_again_and_again_stops_growing() {
    let mut reducer =
        after(&[json!({"type": "STATE_SNAPSHOT", "snapshot": {"a": vec![0; 20_000]}})]);
    let copy = |name: usize| {
        let path = format!("/b{name}");
        json!({"type": "STATE_DELTA", "delta": [{"op": "copy", "from": "/a", "path": path}]})
    };
    let copied =
        (0..200).filter(|name| feed(&mut reducer, &copy(*name)).0 == Change::State).count();
    assert!((20..150).contains(&copied), "{copied} copies");
    feed(&mut reducer, &json!({"type": "STATE_SNAPSHOT", "snapshot": {"a": 1}}));
    assert_eq!(feed(&mut reducer, &copy(0)).0, Change::State, "a snapshot begins anew");
}
