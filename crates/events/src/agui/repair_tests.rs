use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::agui::follow::Verifier;
use crate::finding::{Finding, Severity};

fn repaired(messages: &[Value]) -> (Vec<Value>, Vec<&'static str>) {
    let mut repairer = Repairer::default();
    let mut out: Vec<Vec<u8>> =
        messages.iter().flat_map(|event| repairer.message(event.to_string().as_bytes())).collect();
    out.extend(repairer.finish());
    let out = out.iter().map(|bytes| serde_json::from_slice(bytes).unwrap()).collect();
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
