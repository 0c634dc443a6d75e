use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::agui::follow::Verifier;
use crate::finding::{Finding, Severity};

fn repaired(messages: &[Value]) -> (Vec<Value>, Vec<&'static str>) {
    let mut repairer = Repairer::default();
    let mut out: Vec<Message> =
        messages.iter().flat_map(|event| repairer.bytes(event.to_string().into())).collect();
    out.extend(repairer.finish());
    let out = out.iter().map(|event| event.value().clone()).collect();
    (out, repairer.changes().into_iter().map(|change| change.rule.code).collect())
}

/// What a client would end the run for.
fn errors(events: &[Value]) -> Vec<Finding> {
    let mut verifier = Verifier::single();
    let mut findings = Vec::new();
    for event in events {
        crate::check::with_document(event, |document| {
            verifier.step(document, &mut Known::default(), &mut findings, &mut |_| {});
        });
    }
    findings.extend(verifier.finish());
    findings.retain(|finding| finding.rule.severity == Severity::Error);
    findings
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

fn started() -> Value {
    json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0"})
}

fn finished() -> Value {
    json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"})
}

fn start(id: &str) -> Value {
    json!({"type": "TEXT_MESSAGE_START", "messageId": id})
}

fn content(id: &str) -> Value {
    json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": "x"})
}

fn end(id: &str) -> Value {
    json!({"type": "TEXT_MESSAGE_END", "messageId": id})
}

#[test]
fn what_is_right_passes_byte_for_byte() {
    let events = [started(), start("m"), content("m"), end("m"), finished()];
    assert_eq!(repaired(&events), (events.to_vec(), vec![]));
}

#[test]
fn an_end_that_comes_too_late_is_moved_and_one_that_never_comes_is_added() {
    let late = [started(), start("m"), start("n"), finished(), end("m")];
    let (events, codes) = repaired(&late);
    assert_eq!(events, [started(), start("m"), start("n"), end("m"), end("n"), finished()]);
    assert_eq!(codes, ["AGUI-SEQ-02", "AGUI-SEQ-24"]);
}

#[test]
fn a_run_without_end_fails_and_what_was_said_stays() {
    let (events, codes) = repaired(&[started(), start("m"), content("m")]);
    assert_eq!(kinds(&events)[3], "RUN_ERROR");
    assert_eq!(codes, ["AGUI-SEQ-26"]);
}

#[test]
fn an_outcome_that_cannot_be_read_is_no_success() {
    for outcome in [json!({"type": "interrupt", "interrupts": []}), json!([]), json!(1)] {
        let mut end = finished();
        end["outcome"] = outcome;
        let (events, _) = repaired(&[started(), end]);
        assert_eq!(kinds(&events), ["RUN_STARTED", "RUN_ERROR"]);
        assert_eq!(errors(&events), []);
    }
}

#[test]
fn orphan_chunks_get_an_id_and_stay_together() {
    let chunk = |text: &str| json!({"type": "TEXT_MESSAGE_CHUNK", "delta": text});
    let (events, codes) = repaired(&[started(), chunk("a"), chunk("b"), finished()]);
    assert_eq!(events[1]["messageId"], "repaired-1");
    assert_eq!(events[2], chunk("b"));
    assert_eq!((codes, errors(&events)), (vec!["AGUI-SEQ-25"], vec![]));
}

#[test]
fn what_cannot_be_mended_goes_on_as_raw() {
    let odd =
        json!({"type": "STATE_DELTA", "delta": [{"op": "add", "path": "no pointer", "value": 1}]});
    let unknown = json!({"type": "SOMETHING", "a": 1});
    let (events, _) = repaired(&[started(), odd.clone(), unknown.clone(), json!([1]), finished()]);
    let raw: Vec<&Value> = events[1..4].iter().map(|event| &event["event"]).collect();
    assert_eq!(raw, [&odd, &unknown, &json!([1])]);
    assert_eq!(errors(&events), []);
}

#[test]
fn fields_are_put_right_from_what_is_known() {
    for (broken, name, value) in [
        (json!({"type": "TEXT_MESSAGE_CONTENT", "delta": "x"}), "messageId", json!("m")),
        (
            json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": 5}),
            "delta",
            json!("5"),
        ),
        (json!({"type": "REASONING_MESSAGE_START", "messageId": "k"}), "role", json!("reasoning")),
        (json!({"type": "STATE_SNAPSHOT", "state": {"a": 1}}), "snapshot", json!({"a": 1})),
        (json!({"type": "STATE_DELTA", "patch": []}), "delta", json!([])),
        (json!({"type": "stateSnapshot", "snapshot": 1}), "type", json!("STATE_SNAPSHOT")),
        (
            json!({"type": "CUSTOM", "name": "n", "value": 1, "metadata": null}),
            "metadata",
            Value::Null,
        ),
    ] {
        let (events, _) = repaired(&[started(), start("m"), broken, end("m"), finished()]);
        assert_eq!(events[2][name], value, "{}", events[2]);
        assert_eq!(errors(&events), []);
    }
    let failed = json!({"type": "RUN_ERROR", "error": {"message": "out of tokens"}});
    assert_eq!(repaired(&[started(), failed]).0[1]["message"], "out of tokens");
}

fn finished_with(outcome: &Value) -> Value {
    json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": outcome})
}

fn changes_of(messages: &[Value]) -> Vec<String> {
    let mut repairer = Repairer::default();
    for message in messages {
        repairer.bytes(message.to_string().into());
    }
    repairer.finish();
    repairer.changes().into_iter().map(|change| change.what).collect()
}

fn repaired_bytes(messages: &[&[u8]]) -> Vec<Value> {
    let mut repairer = Repairer::default();
    let mut out: Vec<_> =
        messages.iter().flat_map(|bytes| repairer.bytes(Bytes::copy_from_slice(bytes))).collect();
    out.extend(repairer.finish());
    out.iter().map(|event| serde_json::from_slice(event.bytes()).unwrap()).collect()
}

#[test]
fn an_outcome_that_is_not_known_is_a_failure_and_one_written_otherwise_is_what_it_says() {
    for outcome in [json!({"type": "error", "message": "boom"}), json!("exploded"), json!({})] {
        let end = finished_with(&outcome);
        let (events, _) = repaired(&[started(), end.clone()]);
        assert_eq!(kinds(&events), ["RUN_STARTED", "RUN_ERROR"]);
        assert_eq!(events[1]["rawEvent"], end);
    }
    let interrupts = json!([{"id": "i", "reason": "ask"}]);
    let waits = json!({"type": "interrupt", "interrupts": interrupts});
    let mut apart = finished();
    apart["interrupts"] = interrupts.clone();
    for (end, outcome) in [
        (finished_with(&json!("Success")), json!({"type": "success"})),
        (finished_with(&json!("cancelled")), json!({"type": "cancelled"})),
        (finished_with(&json!({"type": "Interrupt", "interrupts": interrupts})), waits.clone()),
        (apart, waits),
    ] {
        let (events, _) = repaired(&[started(), end]);
        assert_eq!((&events[1]["outcome"], errors(&events)), (&outcome, vec![]));
    }
}

#[test]
fn a_subagent_that_ended_nobody_knows_how_failed() {
    let sub = |kind: &str| json!({"type": kind, "subagentRunId": "s", "name": "n"});
    let mut end = sub("SUBAGENT_FINISHED");
    end["outcome"] = json!({"type": "lost"});
    let (events, _) = repaired(&[started(), sub("SUBAGENT_STARTED"), end.clone(), finished()]);
    assert_eq!(kinds(&events)[2], "SUBAGENT_ERROR");
    assert_eq!((&events[2]["rawEvent"], errors(&events)), (&end, vec![]));

    let (events, _) = repaired(&[started(), sub("SUBAGENT_STARTED"), finished()]);
    assert_eq!((kinds(&events)[2], &events[2]["code"]), ("SUBAGENT_ERROR", &json!("truncated")));
    let waits = json!({"type": "interrupt", "interrupts": [{"id": "i", "reason": "ask"}]});
    let (events, _) = repaired(&[started(), sub("SUBAGENT_STARTED"), finished_with(&waits)]);
    assert_eq!(events[2]["outcome"]["type"], "suspended");
}

#[test]
fn the_end_of_another_run_that_is_known_is_no_end_of_this_one() {
    let other = json!({"type": "RUN_STARTED", "threadId": "t2", "runId": "r2"});
    let (events, _) = repaired(&[started(), other, finished(), content("m")]);
    let expected = [
        "RUN_STARTED",
        "RUN_ERROR",
        "RUN_STARTED",
        "RAW",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "RUN_ERROR",
    ];
    assert_eq!(kinds(&events), expected);
    assert_eq!(events[3]["event"], finished());

    let mut unknown = finished();
    unknown["runId"] = json!("r9");
    let (events, _) = repaired(&[started(), unknown.clone()]);
    assert_eq!((&events[1]["runId"], &events[1]["rawEvent"]), (&json!("r"), &unknown));
}

#[test]
fn words_under_another_name_are_found() {
    let text = |more: Value| {
        let mut event = json!({"type": "TEXT_MESSAGE_CONTENT"});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    };
    for (event, delta) in [
        (text(json!({"message_id": "m", "delta": "x"})), "x"),
        (text(json!({"messageId": "m", "content": "x"})), "x"),
        (text(json!({"messageId": "m", "delta": {"text": "x"}})), "x"),
        (text(json!({"messageId": "m", "delta": null, "text": "x"})), "x"),
        (text(json!({"messageId": "m", "delta": {"a": 1}})), r#"{"a":1}"#),
        (text(json!({"messageId": "m"})), ""),
    ] {
        let (events, _) = repaired(&[started(), start("m"), event, end("m"), finished()]);
        assert_eq!((&events[2]["messageId"], &events[2]["delta"]), (&json!("m"), &json!(delta)));
        assert_eq!(errors(&events), []);
    }
    let elsewhere = text(json!({"messageId": "m", "body": "x"}));
    let (events, _) = repaired(&[started(), start("m"), elsewhere.clone(), end("m"), finished()]);
    assert_eq!(events[2], json!({"type": "RAW", "event": elsewhere}));
    let chunk = json!({"type": "TEXT_MESSAGE_CHUNK", "message_id": "m", "content": "x"});
    let (events, _) = repaired(&[started(), chunk, finished()]);
    assert_eq!((&events[1]["messageId"], &events[1]["delta"]), (&json!("m"), &json!("x")));
    let call = json!({"type": "TOOL_CALL_START", "tool_call_id": "c", "tool_call_name": "n", "parent_message_id": "m"});
    let args = json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "args": {"text": "x"}});
    let (events, _) = repaired(&[started(), call, args, finished()]);
    assert_eq!(
        (&events[1]["toolCallName"], &events[1]["parentMessageId"]),
        (&json!("n"), &json!("m"))
    );
    assert_eq!(events[2]["delta"], r#"{"text":"x"}"#);
}

#[test]
fn half_a_pair_is_replaced_and_the_event_stays() {
    let broken = br#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a\\ud83d \ud83d\ude00 \ud83d"}"#;
    let (first, last) = (started().to_string(), finished().to_string());
    let events = repaired_bytes(&[first.as_bytes(), broken, last.as_bytes()]);
    assert_eq!(events[2]["delta"], "a\\ud83d \u{1f600} \u{fffd}");
    assert_eq!(events[2]["rawEvent"], String::from_utf8_lossy(broken).as_ref());

    let bytes = b"{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"m\",\"delta\":\"a\xFF\"}";
    let events = repaired_bytes(&[first.as_bytes(), bytes, last.as_bytes()]);
    assert_eq!(events[2]["delta"], "a\u{fffd}");
}

#[test]
fn what_is_not_json_is_kept_as_text() {
    let (first, last) = (started().to_string(), finished().to_string());
    let long = vec![b'x'; 70_000];
    let events =
        repaired_bytes(&[first.as_bytes(), b"not json", &long, b"[DONE]", last.as_bytes()]);
    assert_eq!(kinds(&events), ["RUN_STARTED", "RAW", "RAW", "RUN_FINISHED"]);
    assert_eq!(events[1]["event"], "not json");
    assert_eq!(events[2]["event"].as_str().unwrap().len(), 64 * 1024);
    assert_eq!(repaired_bytes(&[b"not json", b"at all"]), Vec::<Value>::new());
}

#[test]
fn nulls_inside_messages_leave_the_messages_alone() {
    let call = json!({"id": "c", "type": "function", "function": {"name": "n", "arguments": "{}"}});
    let came = json!([
        {"id": "1", "role": "assistant", "content": null, "tool_calls": [call], "name": null},
        {"id": "2", "role": "user", "content": null},
        {"role": "user", "content": "x"},
        {"id": "4", "role": "user", "content": [{"type": "text", "text": "x", "id": null}]},
    ]);
    let now = json!([
        {"id": "1", "role": "assistant", "toolCalls": [call]},
        {"id": "2", "role": "user", "content": ""},
        {"role": "user", "content": "x", "id": "repaired-1"},
        {"id": "4", "role": "user", "content": [{"type": "text", "text": "x"}]},
    ]);
    let snapshot = |messages: &Value| json!({"type": "MESSAGES_SNAPSHOT", "messages": messages});
    let (events, _) = repaired(&[started(), snapshot(&came), finished()]);
    assert_eq!(events[1]["messages"], now);

    let many: Vec<Value> = (0..200)
        .map(|id| json!({"id": id.to_string(), "role": "user", "content": "x", "name": null}))
        .collect();
    let (events, _) = repaired(&[started(), snapshot(&json!(many)), finished()]);
    assert_eq!(events[1]["messages"].as_array().unwrap().len(), 200);

    let odd = snapshot(
        &json!([7, {"id": "1", "role": "user", "content": "x"}, {"id": "2", "role": "wizard"}]),
    );
    let (events, _) = repaired(&[started(), odd.clone(), finished()]);
    assert_eq!(events[1], json!({"type": "RAW", "event": odd}));
    assert_eq!(events[2], snapshot(&json!([{"id": "1", "role": "user", "content": "x"}])));
    let told = changes_of(&[started(), odd, finished()]);
    assert!(told[0].starts_with("removed /messages/0 7"), "{told:?}");
}

#[test]
fn of_several_ends_the_strictest_is_the_end_and_the_others_are_kept() {
    let failed = |message: &str| json!({"type": "RUN_ERROR", "message": message});
    let cancelled = finished_with(&json!({"type": "cancelled"}));
    let odd = finished_with(&json!("odd"));
    for (first, second, last, kept) in [
        (finished(), finished(), finished(), Some(finished())),
        (finished(), cancelled.clone(), cancelled.clone(), Some(finished())),
        (cancelled.clone(), finished(), cancelled.clone(), Some(finished())),
        (failed("a"), finished(), failed("a"), Some(finished())),
        (odd.clone(), failed("a"), failed("a"), Some(odd)),
        (
            json!({"type": "RUN_ERROR"}),
            failed("a"),
            failed("a"),
            Some(json!({"type": "RUN_ERROR"})),
        ),
        // Legal as it is.
        (finished(), failed("a"), failed("a"), None),
    ] {
        let (events, _) = repaired(&[started(), first.clone(), second]);
        assert_eq!(events.last(), Some(&last));
        let raw = kept.map_or(first, |kept| json!({"type": "RAW", "event": kept}));
        assert_eq!((&events[1], events.len()), (&raw, 3));
        assert_eq!(errors(&events), []);
    }
}

#[test]
fn whatever_is_taken_out_of_an_event_stays_in_its_raw_event() {
    let began = json!({"type": "THINKING_START", "title": "Plan"});
    let odd =
        json!({"type": "CUSTOM", "name": "a.b", "value": 1, "mood": "fine", "timestamp": "now"});
    let mut taken = odd.clone();
    taken["rawEvent"] = json!({"mine": 1});
    let (events, _) = repaired(&[started(), began.clone(), odd.clone(), taken.clone(), finished()]);
    assert_eq!((&events[1]["rawEvent"], &events[2]["rawEvent"]), (&began, &odd));
    assert_eq!(events[3], json!({"type": "RAW", "event": taken}));
    assert_eq!(events[4]["rawEvent"], json!({"mine": 1}));
    assert_eq!(repaired(&events), (events.clone(), vec!["AGUI-EVT-28"; 0]));

    let null = json!({"type": "CUSTOM", "name": "a.b", "value": 1, "metadata": null});
    assert_eq!(
        repaired(&[started(), null, finished()]).0[1],
        json!({"type": "CUSTOM", "name": "a.b", "value": 1})
    );
    let version =
        json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "2.0"});
    let (events, codes) = repaired(&[version.clone(), finished()]);
    let kept = json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r", "rawEvent": version});
    assert_eq!((&events[0], codes), (&kept, vec!["AGUI-EVT-12"]));
}

#[test]
fn what_comes_before_a_run_waits_for_it() {
    let all = [start("m"), content("m"), end("m")];
    let [one, two, three] = all.clone();
    let (events, codes) =
        repaired(&[one.clone(), two.clone(), started(), three.clone(), finished()]);
    assert_eq!(events, [started(), one.clone(), two.clone(), three.clone(), finished()]);
    assert_eq!(codes, ["AGUI-SEQ-03"]);
    let (events, _) = repaired(&[one, two, three, finished()]);
    assert_eq!((&events[0]["threadId"], &events[0]["runId"]), (&json!("t"), &json!("r")));
    let many = vec![json!({"type": "CUSTOM", "name": "a.b", "value": 1}); 1_001];
    let mut repairer = Repairer::default();
    let out = many.iter().map(|event| repairer.bytes(event.to_string().into()).len());
    assert_eq!(out.collect::<Vec<_>>().split_last(), Some((&1_002, &[0; 1_000][..])));
}

#[test]
fn a_change_says_what_was_done_to_what() {
    let odd = json!({"type": "CUSTOM", "name": 5, "value": 1, "mood": "fine"});
    let chunk = json!({"type": "TEXT_MESSAGE_CHUNK", "delta": "x"});
    assert_eq!(
        changes_of(&[started(), odd, chunk, end("n"), finished(), finished()]),
        [
            r#"replaced name 5 of CUSTOM by "5""#,
            r#"removed /mood "fine" in CUSTOM"#,
            r#"added messageId "repaired-1" to TEXT_MESSAGE_CHUNK"#,
            "removed TEXT_MESSAGE_END, which cannot be there",
            "put a second end, RUN_FINISHED, into a RAW event before RUN_FINISHED",
        ]
    );
}

/// Any event, often a wrong one, about few items.
fn event() -> impl Strategy<Value = Value> {
    let id = prop_oneof![4 => Just(json!("m")), 3 => Just(json!("n")), 1 => Just(Value::Null), 1 => Just(json!(7))];
    let tag =
        prop_oneof![5 => Just(None), 2 => Just(Some(json!("s"))), 1 => Just(Some(json!("z")))];
    let kind = proptest::sample::select(
        Type::ALL
            .map(Type::name)
            .into_iter()
            .chain(["THINKING_START", "THINKING_END", "X"])
            .collect::<Vec<_>>(),
    );
    (kind, id.clone(), id, tag, any::<[bool; 6]>()).prop_map(|(kind, id, other, tag, flags)| {
        let mut event = json!({"type": kind});
        let [has_id, has_delta, has_name, has_rest, has_parent, plain] = flags;
        if has_id || plain {
            for name in ["messageId", "toolCallId", "stepName", "entityId"] {
                event[name] = id.clone();
            }
        }
        if has_delta || plain {
            event["delta"] = if kind == "STATE_DELTA" { json!([]) } else { json!("x") };
            event["patch"] = json!([]);
        }
        if has_name || plain {
            event["toolCallName"] = json!("read");
            event["name"] = json!("n");
            event["role"] = if kind.starts_with("REASONING") { json!("reasoning") } else { json!("user") };
        }
        if has_rest || plain {
            let rest = json!({
                "threadId": "t", "runId": "r", "message": "x", "snapshot": 1, "content": {},
                "activityType": "a", "messages": [{"id": "m", "role": "user", "content": "x", "subagentRunId": "s"}],
                "subtype": "message", "encryptedValue": "x", "event": 1, "value": 1,
            });
            event.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            if kind == "TOOL_CALL_RESULT" {
                event["content"] = json!("x");
            }
        }
        if has_parent {
            event["parentMessageId"] = other.clone();
            event["parentSubagentRunId"] = other;
        }
        if let Some(tag) = tag {
            event["subagentRunId"] = tag;
        }
        if !plain && has_delta {
            event["outcome"] = if has_name { json!("odd") } else { json!({"type": "Cancelled"}) };
            event["rawEvent"] = if has_parent { json!({"a": 1}) } else { Value::Null };
            event["message_id"] = json!("n");
        }
        if !plain && has_rest && has_parent {
            event["runId"] = json!("r2");
            event["messages"] = json!([{"role": "assistant", "content": null, "tool_calls": [{"id": 1}]}, 7]);
        }
        event
    })
}

proptest! {
    #[test]
    fn whatever_comes_a_client_runs_what_goes_out(events in proptest::collection::vec(event(), 0..16), begun in any::<bool>()) {
        let mut all = if begun { vec![started()] } else { vec![] };
        all.extend(events);
        let (out, _) = repaired(&all);
        prop_assert_eq!(errors(&out), [], "{}", json!(out));
        let (again, codes) = repaired(&out);
        prop_assert_eq!(&again, &out);
        prop_assert!(codes.iter().all(|code| *code == "AGUI-SEQ-26" || code.starts_with("AGUI-EVT")), "{:?}", codes);
    }
}
