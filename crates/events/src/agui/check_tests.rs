use serde_json::{Value, json};

use super::*;
use crate::event::Protocol;

fn event(message: &Value) -> Vec<Finding> {
    crate::check::value(Protocol::Agui, message)
}

fn codes(message: &Value) -> Vec<(&'static str, String)> {
    event(message).into_iter().map(|finding| (finding.rule.code, finding.pointer)).collect()
}

#[test]
fn the_31_types_are_known_by_name() {
    for kind in Type::ALL {
        assert_eq!(Type::parse(kind.name()), Some(kind));
    }
}

#[test]
fn a_type_in_the_wrong_case_is_recognised() {
    let findings = event(&json!({"type": "runFinished"}));
    assert_eq!(
        findings.first().unwrap().message,
        "\"runFinished\" is not known; RUN_FINISHED is meant"
    );
}

#[test]
fn old_documents_mislead_in_known_ways() {
    for (message, expected) in [
        (json!({"type": "STATE_SNAPSHOT", "state": {}}), vec![("AGUI-EVT-05", "/state")]),
        (json!({"type": "STATE_DELTA", "delta": {}}), vec![("AGUI-EVT-06", "/delta")]),
        (
            json!({"type": "ACTIVITY_DELTA", "messageId": "a", "activityType": "x", "delta": []}),
            vec![("AGUI-EVT-05", "/delta")],
        ),
        (
            json!({"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "tool"}),
            vec![("AGUI-EVT-07", "/role")],
        ),
        (
            json!({"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": {}}),
            vec![("AGUI-EVT-06", "/content")],
        ),
        (
            json!({"type": "REASONING_MESSAGE_START", "messageId": "m"}),
            vec![("AGUI-EVT-05", "/role")],
        ),
        (
            json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": []}),
            vec![("AGUI-EVT-06", "/outcome")],
        ),
        (
            json!({"type": "MESSAGES_SNAPSHOT", "messages": [], "subagentRunId": "s"}),
            vec![("AGUI-EVT-10", "/subagentRunId")],
        ),
    ] {
        let expected: Vec<_> =
            expected.into_iter().map(|(code, pointer)| (code, pointer.to_owned())).collect();
        assert_eq!(codes(&message), expected, "{message}");
    }
}

#[test]
fn a_field_under_another_name_is_told_once_and_with_the_right_one() {
    for (message, place, said) in [
        (json!({"type": "STATE_DELTA", "patch": []}), "/patch", "\"patch\" is written delta here"),
        (json!({"type": "RUN_ERROR", "error": "x"}), "/error", "\"error\" is written message here"),
        (
            json!({"type": "TEXT_MESSAGE_CONTENT", "message_id": "m", "delta": "x"}),
            "/message_id",
            "\"message_id\" is written messageId here",
        ),
        (
            json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "x", "subagent_run_id": "s"}),
            "/subagent_run_id",
            "\"subagent_run_id\" is written subagentRunId here",
        ),
        (
            json!({"type": "MESSAGES_SNAPSHOT", "messages": [
                {"id": "m", "role": "tool", "content": "x", "tool_call_id": "c"}]}),
            "/messages/0/tool_call_id",
            "\"tool_call_id\" is written toolCallId here",
        ),
    ] {
        let [finding] = &event(&message)[..] else { panic!("{message}") };
        assert_eq!((&*finding.pointer, &*finding.message), (place, said));
    }
    let both = json!({"type": "RUN_ERROR", "message": "m", "error": "x"});
    assert_eq!(event(&both)[0].message, "the field \"error\" is not known here");
    let none = json!({"type": "TEXT_MESSAGE_CONTENT", "idOfIt": "m", "delta": "x"});
    assert_eq!(event(&none).len(), 2, "nobody knows what is meant");
}

#[test]
fn a_type_that_is_no_text_is_not_called_missing() {
    for (message, said) in [
        (json!({"type": 5}), "a string is needed here, this is a number"),
        (json!({"type": ""}), "the type is empty"),
        (json!({}), "the type is missing"),
        (
            json!({"type": "RUN_CANCELLED"}),
            "\"RUN_CANCELLED\" is not known; RUN_FINISHED with outcome cancelled is meant",
        ),
        (
            json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": {"type": "error"}}),
            "\"error\" is no known type; clients take the run for a success",
        ),
    ] {
        assert_eq!(event(&message)[0].message, said);
    }
}

#[test]
fn a_name_that_stands_twice_is_told_with_its_place() {
    let text = br#"{"type":"RAW","event":1,"metadata":{"list":[0,{"a":1,"a":2}]}}"#;
    let found = crate::check::alone(Protocol::Agui, text);
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert_eq!((finding.rule.code, &*finding.pointer), ("AGUI-EVT-30", "/metadata/list/1/a"));
}

#[test]
fn an_answer_is_held_against_what_was_sent() {
    assert_eq!(answer("text/event-stream; charset=utf-8"), None);
    assert_eq!(answer("application/vnd.ag-ui.event+proto"), None);
    let found = answer("application/vnd.ag-ui.event+proto; charset=utf-8");
    assert_eq!(found.unwrap().rule.code, "AGUI-HTTP-01");
    let started = json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"});
    crate::check::with_document(&started, |document| {
        assert_eq!(asked(document.root(), "t", "r"), None);
        let other = asked(document.root(), "t", "s").unwrap();
        assert_eq!((other.rule.code, &*other.pointer), ("AGUI-HTTP-03", "/runId"));
        assert_eq!(asked(document.root(), "u", "r").unwrap().pointer, "/threadId");
    });
}

#[test]
fn null_is_data_where_data_may_be_anything() {
    for message in [
        json!({"type": "STATE_SNAPSHOT", "snapshot": null}),
        json!({"type": "RAW", "event": null}),
        json!({"type": "CUSTOM", "name": "n", "value": null}),
        json!({"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/a", "value": null, "extra": 1}]}),
        json!({"type": "RAW", "event": 1, "metadata": {"k": null}}),
        json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "", "delta": "", "subagentRunId": ""}),
        json!({"type": "RUN_ERROR", "message": "", "timestamp": 1.0}),
    ] {
        assert_eq!(codes(&message), [], "{message}");
    }
}

#[test]
fn pointers_of_patches_follow_the_rfc() {
    for (pointer, good) in [
        ("", true),
        ("/", true),
        ("/a~0b~1c/-", true),
        ("a", false),
        ("/~2", false),
        ("/a~", false),
        ("#/a", false),
    ] {
        let message = json!({"type": "STATE_DELTA", "delta": [{"op": "remove", "path": pointer}]});
        assert_eq!(codes(&message).is_empty(), good, "{pointer}");
    }
    let unknown = json!({"type": "STATE_DELTA", "delta": [{"op": "swap", "path": "/a"}]});
    assert_eq!(codes(&unknown), [("AGUI-EVT-14", "/delta/0/op".into())]);
}

#[test]
fn messages_are_checked_down_to_their_parts() {
    let message = json!({"type": "MESSAGES_SNAPSHOT", "messages": [
        {"id": "1", "role": "user", "content": [{"type": "smell"}, {"type": "text"}]},
        {"id": "2", "role": "ghost"},
        {"id": "3", "role": "assistant", "toolCalls": [{"id": "c", "type": "function", "function": {"name": "n", "arguments": {}}}]},
        {"id": "4", "role": "activity", "activityType": "x", "content": []},
    ]});
    let expected = [
        ("AGUI-EVT-14", "/messages/0/content/0/type"),
        ("AGUI-EVT-05", "/messages/0/content/1/text"),
        ("AGUI-EVT-14", "/messages/1/role"),
        ("AGUI-EVT-06", "/messages/2/toolCalls/0/function/arguments"),
        ("AGUI-EVT-06", "/messages/3/content"),
    ];
    assert_eq!(codes(&message), expected.map(|(code, pointer)| (code, pointer.to_owned())));
}

#[test]
fn versions_are_told_apart() {
    for (version, code) in [
        ("1.0", None),
        ("1.3", Some("AGUI-EVT-13")),
        ("2.0", Some("AGUI-EVT-12")),
        ("1", Some("AGUI-EVT-12")),
        ("one", Some("AGUI-EVT-12")),
        ("1.0.0", Some("AGUI-EVT-12")),
        ("", Some("AGUI-EVT-12")),
    ] {
        let message = json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": version});
        assert_eq!(codes(&message).first().map(|(code, _)| *code), code, "{version}");
    }
}

fn strictly(message: &Value) -> Vec<(&'static str, String)> {
    let mut checker = crate::check::Checker::new(Protocol::Agui).strict();
    let findings = checker.alone(message.to_string().as_bytes());
    findings.into_iter().map(|finding| (finding.rule.code, finding.pointer)).collect()
}

#[test]
fn token_counts_add_up() {
    let of = |usage: Value| json!({"type": "RUN_ERROR", "message": "", "usage": [usage]});
    for (usage, field) in [
        (json!({}), None),
        (json!({"totalTokens": 7}), None),
        (json!({"totalTokens": 7, "inputTokens": 3}), None),
        (json!({"totalTokens": 7, "inputTokens": 3, "outputTokens": 4}), None),
        (json!({"totalTokens": 8, "inputTokens": 3, "outputTokens": 4}), Some("totalTokens")),
        (json!({"reasoningTokens": 4, "outputTokens": 4}), None),
        (json!({"reasoningTokens": 5, "outputTokens": 4}), Some("reasoningTokens")),
        (json!({"inputTokens": 4, "cachedInputTokens": 2, "cacheWriteInputTokens": 2}), None),
        (
            json!({"inputTokens": 4, "cachedInputTokens": 2, "cacheWriteInputTokens": 3}),
            Some("cachedInputTokens"),
        ),
    ] {
        let expected: Vec<_> =
            field.map(|field| ("AGUI-EVT-21", format!("/usage/0/{field}"))).into_iter().collect();
        assert_eq!(codes(&of(usage.clone())), expected, "{usage}");
    }
    let twice = json!({"type": "RUN_ERROR", "message": "", "usage": [{}, {"model": "m"}, {}]});
    assert_eq!(codes(&twice), [("AGUI-EVT-22", "/usage/2".into())]);
}

#[test]
fn dates_are_in_a_form_that_clients_read() {
    for (moment, good) in [
        ("2027-01-31T12:00:00Z", true),
        ("2027-01-31T12:00:00.5+01:00", true),
        ("2027-01-31T12:00:00", true),
        ("2027-01-31", true),
        ("Sun, 31 Jan 2027 12:00:00 GMT", true),
        ("tomorrow", false),
        ("", false),
        ("2027-02-31T12:00:00Z", false),
    ] {
        let message = json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": {"type": "interrupt", "interrupts": [{"id": "i", "reason": "x", "expiresAt": moment}]}});
        assert_eq!(strictly(&message).is_empty(), good, "{moment}");
        assert_eq!(codes(&message), [], "{moment}");
    }
}

#[test]
fn what_the_input_repeats_is_looked_at_too() {
    let message = json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0", "input": {
        "threadId": "u", "runId": "r", "messages": [
            {"id": "1", "role": "assistant", "encryptedValue": "x", "encryptedValueType": "y", "toolCalls": [
                {"id": "c", "type": "function", "function": {"name": "n", "arguments": ""}, "encryptedValue": "x", "encryptedValueType": "y"},
            ]},
            {"id": "2", "role": "activity", "activityType": "x", "content": {}},
        ],
    }});
    let expected = [
        ("AGUI-EVT-29", "/threadId"),
        ("AGUI-EVT-26", "/input/messages/0/encryptedValueType"),
        ("AGUI-EVT-26", "/input/messages/0/toolCalls/0/encryptedValueType"),
        ("AGUI-EVT-25", "/input/messages/1/role"),
    ];
    assert_eq!(codes(&message), expected.map(|(code, pointer)| (code, pointer.to_owned())));
}

#[test]
fn names_of_custom_events_have_a_prefix_if_asked() {
    for (name, good) in [("a.b", true), ("a:b", true), ("a/b", true), ("PredictState", false)] {
        let message = json!({"type": "CUSTOM", "name": name, "value": 1});
        assert_eq!(strictly(&message).is_empty(), good, "{name}");
        assert_eq!(codes(&message), []);
    }
}

#[test]
fn frames_are_judged_by_what_the_reference_client_reads() {
    let told = |bytes: &[u8], strict: bool| -> Vec<(&'static str, String)> {
        let mut parser = crate::frame::sse::Parser::new(1024);
        parser.push(bytes).unwrap();
        let found = frames(&parser.quirks(), strict);
        found.into_iter().map(|finding| (finding.rule.code, finding.message)).collect()
    };
    assert_eq!(told(b": hi\n\ndata: {}\n\ndata:{}\ndata: {}\n\ndata: {}", true), []);
    assert_eq!(
        told(b"data: {}\n\ndata: {}\r\n\r\n", false),
        [("AGUI-SSE-01", "line 3 ends with a carriage return".to_owned())]
    );
    assert_eq!(told(b"data: {}\r\rdata: {}", false).first().unwrap().0, "AGUI-SSE-01");
    assert_eq!(
        told(b"data: {}\n\n{\"type\": \"RAW\"}\n\n Data: {}\n", false),
        [("AGUI-SSE-02", "line 3 is JSON outside a data field".to_owned())]
    );
    assert_eq!(told(b"\xEF\xBB\xBFdata: {}\n\n", false).first().unwrap().0, "AGUI-SSE-03");
    let fields = b"event: message\ndata: {}\n\nid: 7\n\n";
    assert_eq!(told(fields, false), []);
    assert_eq!(
        told(fields, true),
        [("AGUI-SSE-04", "line 1 is a field other than data".to_owned())]
    );
}
