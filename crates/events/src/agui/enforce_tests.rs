use serde_json::{Value, json};

use super::*;
use crate::check::with_document;

/// What is left of an event, and what was told.
fn pass_at(boundary: &mut Boundary, event: &Value) -> (Option<Value>, Vec<(&'static str, String)>) {
    let mut findings = Vec::new();
    let left = with_document(event, |document| {
        match check::event(document, boundary, &mut Known::default(), &mut findings) {
            Enforced::Whole(_) => Some(event.clone()),
            Enforced::Changed(_, changed) => Some(changed.value().clone()),
            Enforced::Dropped | Enforced::Fatal => None,
        }
    });
    (left, findings.into_iter().map(|finding| (finding.rule.code, finding.pointer)).collect())
}

fn pass(event: &Value) -> (Option<Value>, Vec<(&'static str, String)>) {
    pass_at(&mut Boundary::default(), event)
}

/// Goes on as it came, without a word.
fn whole(event: &Value) {
    assert_eq!(pass(event), (Some(event.clone()), vec![]), "{event}");
}

/// Goes on as something else.
#[track_caller]
fn becomes(event: &Value, left: &Value, told: &[(&'static str, &str)]) {
    let told = told.iter().map(|(code, pointer)| (*code, (*pointer).to_owned())).collect();
    assert_eq!(pass(event), (Some(left.clone()), told), "{event}");
}

/// Does not go on.
#[track_caller]
fn stops(event: &Value, told: &[(&'static str, &str)]) {
    let told = told.iter().map(|(code, pointer)| (*code, (*pointer).to_owned())).collect();
    assert_eq!(pass(event), (None, told), "{event}");
}

fn finished(more: &Value) -> Value {
    let mut event = json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"});
    for (name, value) in more.as_object().unwrap() {
        event[name] = value.clone();
    }
    event
}

fn snapshot(messages: &Value) -> Value {
    json!({"type": "MESSAGES_SNAPSHOT", "messages": messages})
}

fn user(content: &Value) -> Value {
    snapshot(&json!([{"id": "u", "role": "user", "content": content}]))
}

fn with_input(input: &Value) -> Value {
    let mut whole = json!({"threadId": "t", "runId": "r", "messages": []});
    for (name, value) in input.as_object().unwrap() {
        whole[name] = value.clone();
    }
    json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0", "input": whole})
}

#[test]
fn an_unknown_type_is_dropped() {
    stops(&json!({"type": "NOVELTY", "x": null}), &[("AGUI-EVT-03", "/type")]);
    stops(&json!({"type": "META", "metaType": "x", "payload": {}}), &[("AGUI-EVT-20", "/type")]);
    stops(&json!({"type": "toString"}), &[("AGUI-EVT-03", "/type")]);
}

#[test]
fn an_unknown_property_is_stripped_wherever_it_is() {
    becomes(
        &json!({"type": "TEXT_MESSAGE_END", "messageId": "m", "toString": 1}),
        &json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}),
        &[("AGUI-EVT-10", "/toString")],
    );
    becomes(
        &user(&json!([{"type": "text", "text": "x", "bold": true}])),
        &user(&json!([{"type": "text", "text": "x"}])),
        &[("AGUI-EVT-10", "/messages/0/content/0/bold")],
    );
}

#[test]
fn an_unknown_kind_in_an_optional_place_leaves_with_its_field() {
    becomes(
        &finished(&json!({"outcome": {"type": "exploded"}})),
        &finished(&json!({})),
        &[("AGUI-EVT-14", "/outcome/type")],
    );
}

#[test]
fn an_unknown_kind_in_a_required_place_takes_what_is_around_it_along() {
    becomes(
        &user(
            &json!([{"type": "image", "source": {"type": "dream"}}, {"type": "text", "text": ""}]),
        ),
        &user(&json!([{"type": "text", "text": ""}])),
        &[("AGUI-EVT-14", "/messages/0/content/0/source/type")],
    );
}

#[test]
fn an_unknown_kind_within_a_list_leaves_the_list() {
    becomes(
        &user(&json!([{"type": "smell"}])),
        &user(&json!([])),
        &[("AGUI-EVT-14", "/messages/0/content/0/type")],
    );
    becomes(
        &snapshot(&json!([{"id": "g", "role": "ghost", "content": 1}])),
        &snapshot(&json!([])),
        &[("AGUI-EVT-14", "/messages/0/role")],
    );
    becomes(
        &json!({"type": "STATE_DELTA", "delta": [{"op": "swap"}, {"op": "remove", "path": ""}]}),
        &json!({"type": "STATE_DELTA", "delta": [{"op": "remove", "path": ""}]}),
        &[("AGUI-EVT-14", "/delta/0/op")],
    );
}

#[test]
fn what_is_open_stays_as_it_is() {
    whole(
        &json!({"type": "STATE_DELTA", "delta": [{"op": "remove", "path": "/a", "why": "rust"}]}),
    );
    whole(&json!({"type": "RAW", "event": {"a": null}, "metadata": {"k": null}, "rawEvent": {}}));
    whole(&json!({"type": "CUSTOM", "name": "n", "value": {"type": "exploded"}}));
    whole(&json!({"type": "STATE_SNAPSHOT", "snapshot": {"toString": null}}));
    whole(
        &json!({"type": "ACTIVITY_SNAPSHOT", "messageId": "a", "activityType": "x", "content": {"outcome": 1}}),
    );
    whole(&finished(
        &json!({"result": {"x": null}, "outcome": {"type": "interrupt", "interrupts": [
            {"id": "i", "reason": "x", "responseSchema": {"x": 1}, "metadata": {"y": null}},
        ]}}),
    ));
    whole(&with_input(&json!({
        "state": {"x": null},
        "forwardedProps": {"x": null},
        "tools": [{"name": "n", "description": "", "parameters": {"x": null}}],
        "resume": [{"interruptId": "i", "status": "resolved", "payload": {"x": null}}],
    })));
}

#[test]
fn a_malformed_known_field_ends_the_run() {
    for (event, code, pointer) in [
        (json!({"type": "STEP_STARTED", "stepName": 1}), "AGUI-EVT-06", "/stepName"),
        (json!({"type": "STEP_STARTED"}), "AGUI-EVT-05", "/stepName"),
        (
            json!({"type": "RUN_ERROR", "message": "", "timestamp": 1.5}),
            "AGUI-EVT-06",
            "/timestamp",
        ),
        (
            json!({"type": "RUN_ERROR", "message": "", "timestamp": 9_007_199_254_740_992_u64}),
            "AGUI-EVT-06",
            "/timestamp",
        ),
        (
            json!({"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "ghost"}),
            "AGUI-EVT-07",
            "/role",
        ),
        (finished(&json!({"outcome": []})), "AGUI-EVT-06", "/outcome"),
        (finished(&json!({"usage": [{"inputTokens": -1}]})), "AGUI-EVT-06", "/usage/0/inputTokens"),
        (
            finished(&json!({"outcome": {"type": "interrupt", "interrupts": []}})),
            "AGUI-EVT-15",
            "/outcome/interrupts",
        ),
        (
            json!({"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/a"}]}),
            "AGUI-EVT-17",
            "/delta/0/value",
        ),
    ] {
        stops(&event, &[(code, pointer)]);
    }
}

#[test]
fn a_null_that_old_producers_sent_is_left_out() {
    let call = json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "n"});
    let chunk = json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "n"});
    let subagent = json!({"type": "SUBAGENT_FINISHED", "subagentRunId": "s"});
    for (event, name) in [
        (&call, "parentMessageId"),
        (&chunk, "parentMessageId"),
        (&finished(&json!({})), "outcome"),
        (&finished(&json!({})), "result"),
        (&subagent, "result"),
        (&call, "rawEvent"),
    ] {
        let mut with_null = event.clone();
        with_null[name] = Value::Null;
        becomes(&with_null, event, &[("AGUI-EVT-09", &format!("/{name}"))]);
    }
    for (given, left, pointer) in [
        (json!({"forwardedProps": null}), json!({}), "/input/forwardedProps"),
        (
            json!({"tools": [{"name": "n", "description": "", "parameters": null}]}),
            json!({"tools": [{"name": "n", "description": ""}]}),
            "/input/tools/0/parameters",
        ),
        (
            json!({"resume": [{"interruptId": "i", "status": "cancelled", "payload": null}]}),
            json!({"resume": [{"interruptId": "i", "status": "cancelled"}]}),
            "/input/resume/0/payload",
        ),
    ] {
        becomes(&with_input(&given), &with_input(&left), &[("AGUI-EVT-09", pointer)]);
    }
    let image = json!({"type": "image", "source": {"type": "url", "value": "u"}});
    let mut with_null = image.clone();
    with_null["metadata"] = Value::Null;
    becomes(
        &user(&json!([with_null])),
        &user(&json!([image])),
        &[("AGUI-EVT-09", "/messages/0/content/0/metadata")],
    );
}

#[test]
fn any_other_null_ends_the_run() {
    for (event, pointer) in [
        (json!({"type": "RAW", "event": 1, "metadata": null}), "/metadata"),
        (json!({"type": "RAW", "event": 1, "subagentRunId": null}), "/subagentRunId"),
        (
            json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0", "parentRunId": null}),
            "/parentRunId",
        ),
        (
            json!({"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "n", "description": null}),
            "/description",
        ),
        (json!({"type": "SUBAGENT_FINISHED", "subagentRunId": "s", "outcome": null}), "/outcome"),
        (
            json!({"type": "SUBAGENT_ERROR", "subagentRunId": "s", "message": "", "code": null}),
            "/code",
        ),
        (json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": null}), "/messageId"),
    ] {
        stops(&event, &[("AGUI-EVT-08", pointer)]);
    }
}

#[test]
fn binary_parts_become_parts_of_their_kind() {
    let binary = |mime: &str, more: &Value| {
        let mut part = json!({"type": "binary", "mimeType": mime});
        for (name, value) in more.as_object().unwrap() {
            part[name] = value.clone();
        }
        user(&json!([part]))
    };
    let data = |kind: &str, source: &str, mime: &str| {
        user(&json!([{"type": kind, "source": {"type": source, "value": "v", "mimeType": mime}}]))
    };
    let told = [("AGUI-EVT-19", "/messages/0/content/0")];
    for (mime, kind) in [
        ("image/png", "image"),
        ("audio/ogg", "audio"),
        ("video/mp4", "video"),
        ("application/pdf", "document"),
    ] {
        becomes(&binary(mime, &json!({"data": "v"})), &data(kind, "data", mime), &told);
        becomes(&binary(mime, &json!({"url": "v"})), &data(kind, "url", mime), &told);
    }
    let mut named = data("image", "data", "image/png");
    named["messages"][0]["content"][0]["metadata"] = json!({"filename": "f.png"});
    let both = json!({"data": "v", "url": "u", "filename": "f.png"});
    becomes(&binary("image/png", &both), &named, &told);
    becomes(
        &binary("image/png", &json!({"id": "i"})),
        &user(&json!([])),
        &[("AGUI-EVT-14", "/messages/0/content/0/type")],
    );
}

#[test]
fn thinking_becomes_reasoning_under_ids_that_hold_together() {
    let mut boundary = Boundary::default();
    let mut pass = |event: Value| {
        let (left, told) = pass_at(&mut boundary, &event);
        assert_eq!(told, [("AGUI-EVT-04", "/type".to_owned())], "{event}");
        let left = left.unwrap();
        (left["type"].clone(), left["messageId"].clone(), left)
    };
    let (kind, span, left) = pass(json!({"type": "THINKING_START", "title": "Heat"}));
    assert_eq!(kind, "REASONING_START");
    assert_eq!(left.get("title"), None);
    let (kind, message, left) = pass(json!({"type": "THINKING_TEXT_MESSAGE_START"}));
    assert_eq!((kind, &left["role"]), (json!("REASONING_MESSAGE_START"), &json!("reasoning")));
    assert_ne!(span, message);
    let (kind, id, left) = pass(json!({"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "x"}));
    assert_eq!(
        (kind, &id, &left["delta"]),
        (json!("REASONING_MESSAGE_CONTENT"), &message, &json!("x"))
    );
    let (kind, id, _) = pass(json!({"type": "THINKING_TEXT_MESSAGE_END"}));
    assert_eq!((kind, &id), (json!("REASONING_MESSAGE_END"), &message));
    let (kind, id, _) = pass(json!({"type": "THINKING_END"}));
    assert_eq!((kind, &id), (json!("REASONING_END"), &span));
    let (_, again, _) = pass(json!({"type": "THINKING_END"}));
    assert_ne!(again, span, "what is closed is not closed again");
}

#[test]
fn thinking_without_its_text_ends_the_run() {
    let event = json!({"type": "THINKING_TEXT_MESSAGE_CONTENT"});
    stops(&event, &[("AGUI-EVT-04", "/type"), ("AGUI-EVT-05", "/delta")]);
}

#[test]
fn what_leaves_is_not_judged() {
    // The image goes, so that its metadata is null and its source has no value does not matter.
    becomes(
        &user(&json!([{"type": "image", "id": 1, "source": {"type": "dream", "value": 1}}])),
        &user(&json!([])),
        &[("AGUI-EVT-14", "/messages/0/content/0/source/type")],
    );
}

#[test]
fn an_event_full_of_unknown_and_retired_things_is_passed_in_one_look_each() {
    let odd: Vec<Value> = (0..30_000)
        .map(|n| json!({"id": format!("m{n}"), "role": "user", "content": "x", "odd": n}))
        .collect();
    let (left, told) = pass(&snapshot(&Value::Array(odd)));
    assert_eq!(told.len(), 30_000);
    assert_eq!(left.unwrap()["messages"][29_999].get("odd"), None);
    let parts: Vec<Value> = (0..6_000)
        .map(|n| match n % 2 {
            0 => json!({"type": "binary", "mimeType": "image/png", "data": format!("{n}")}),
            _ => json!({"type": "image", "source": {"type": "data", "value": format!("{n}"), "mimeType": "image/png"}}),
        })
        .collect();
    let (left, _) = pass(&user(&Value::Array(parts)));
    assert_eq!(left.unwrap()["messages"][0]["content"].as_array().unwrap().len(), 6_000);
}
