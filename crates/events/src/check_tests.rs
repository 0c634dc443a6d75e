use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn codes(findings: &[Finding]) -> Vec<&'static str> {
    findings.iter().map(|finding| finding.rule.code).collect()
}

#[test]
fn what_is_not_json_is_a_finding() {
    for (protocol, code) in [
        (Protocol::Aaep, "AAEP-3.8-R1"),
        (Protocol::Agui, "AGUI-EVT-01"),
        (Protocol::Aep, "AEP-REQ-01"),
    ] {
        for bytes in [&b""[..], b"{", b"\xff\xfe", b"{} {}", b"7", b"null", b"[]"] {
            assert_eq!(codes(&Checker::new(protocol).message(bytes)), [code], "{bytes:?}");
        }
    }
}

#[test]
fn nesting_without_end_is_a_finding() {
    let deep = "[".repeat(100_000);
    assert_eq!(codes(&Checker::new(Protocol::Agui).message(deep.as_bytes())), ["AGUI-EVT-01"]);
}

#[test]
fn a_message_beyond_the_limit_is_a_finding_and_not_parsed() {
    let large = vec![b' '; limits::MESSAGE_BYTES + 1];
    let findings = Checker::new(Protocol::Aep).message(&large);
    assert_eq!(findings.first().unwrap().message, "a message is larger than 8388608 bytes");
}

/// A value made of the words that the checkers look for.
fn value() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just("aaep:agent.tool.invoked"),
        Just("aaep:agent.state.changed"),
        Just("aaep:agent.session.started"),
        Just("aaep:agent.session.completed"),
        Just("aaep:agent.output.streaming"),
        Just("aaep:agent.awaiting.confirmation"),
        Just("RUN_STARTED"),
        Just("RUN_FINISHED"),
        Just("RUN_ERROR"),
        Just("TEXT_MESSAGE_CHUNK"),
        Just("TOOL_CALL_END"),
        Just("STATE_DELTA"),
        Just("action.requested"),
        Just("action.completed"),
        Just("session.end"),
        Just("0.1"),
        Just("evt_1"),
        Just("sess_1"),
        Just("2026-01-01T00:00:00Z"),
        Just("idle"),
        Just(""),
        Just("ß~/"),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.prop_map(Value::from),
    ];
    let key = prop_oneof![
        Just("type"),
        Just("event_id"),
        Just("session_id"),
        Just("timestamp"),
        Just("@context"),
        Just("urgency"),
        Just("tool"),
        Just("tool_call_id"),
        Just("position"),
        Just("chunk"),
        Just("complete"),
        Just("from_state"),
        Just("to_state"),
        Just("sequence_number"),
        Just("reply_token"),
        Just("threadId"),
        Just("runId"),
        Just("messageId"),
        Just("subagentRunId"),
        Just("delta"),
        Just("outcome"),
        Just("id"),
        Just("aep_version"),
        Just("agent"),
        Just("slug"),
        Just("action"),
        Just("session"),
        Just("control"),
        Just("request_event_id"),
        Just("extensions"),
        Just("content"),
    ];
    leaf.prop_recursive(4, 48, 8, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((key.clone(), inner), 0..9).prop_map(|fields| fields
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect()),
        ]
    })
}

proptest! {
    #[test]
    fn no_message_panics_and_each_finding_points_at_the_message(messages in proptest::collection::vec(value(), 1..12)) {
        for protocol in Protocol::ALL {
            let mut checker = Checker::new(protocol);
            for message in &messages {
                for finding in checker.value(message) {
                    // A pointer names a value, or a field that is missing from one.
                    let parent = finding.pointer.rsplit_once('/').map_or("", |(parent, _)| parent);
                    let grandparent = parent.rsplit_once('/').map_or("", |(parent, _)| parent);
                    prop_assert!(
                        message.pointer(parent).or(message.pointer(grandparent)).is_some(),
                        "{:?} in {}", finding, message
                    );
                }
            }
            checker.finish();
        }
    }
}

#[test]
fn a_long_run_is_remembered_in_bounded_memory() {
    let mut checker = Checker::new(Protocol::Agui);
    checker.value(
        &json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0"}),
    );
    for number in 0..40_000 {
        let id = format!("m{number}");
        for kind in ["TEXT_MESSAGE_START", "TEXT_MESSAGE_END"] {
            assert_eq!(checker.value(&json!({"type": kind, "messageId": id})), []);
        }
    }
    let remembered = format!("{:?}", checker.order).matches("Known").count();
    assert!((1_000..=16_384).contains(&remembered), "{remembered} messages are remembered");
}
