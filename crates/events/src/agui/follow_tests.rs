use proptest::prelude::*;
use serde_json::json;

use super::*;

const STARTED: &str =
    r#"{"type":"RUN_STARTED","threadId":"t","runId":"r","protocolVersion":"1.0"}"#;
const FINISHED: &str = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#;

fn followed(events: &[&str]) -> (Ending, Value) {
    let mut follower = Follower::default();
    for event in events {
        if follower.event(event.as_bytes()).is_err() {
            break;
        }
    }
    (follower.ending(), follower.reducer().messages_value())
}

#[test]
fn endings_are_told_apart() {
    let finished = |outcome: Value| {
        json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": outcome})
            .to_string()
    };
    let interrupt =
        finished(json!({"type": "interrupt", "interrupts": [{"id": "i", "reason": "x"}]}));
    let cancelled = finished(json!({"type": "cancelled"}));
    let failed = r#"{"type":"RUN_ERROR","message":"m","code":"c"}"#;
    for (events, ending) in [
        (vec![], Ending::Empty),
        (vec![r#"{"type":"UNKNOWN"}"#], Ending::Empty),
        (vec![STARTED], Ending::Truncated),
        (vec![STARTED, FINISHED], Ending::Finished),
        (vec![STARTED, &interrupt], Ending::Interrupted),
        (vec![STARTED, &cancelled], Ending::Cancelled),
        (vec![failed], Ending::Failed { message: "m".into(), code: Some("c".into()) }),
        (vec![STARTED, FINISHED, STARTED], Ending::Truncated),
        (vec![STARTED, STARTED], Ending::Violated),
        (vec![STARTED, "{"], Ending::Violated),
    ] {
        assert_eq!(followed(&events).0, ending, "{events:?}");
    }
}

#[test]
fn what_came_before_a_violation_stays_and_nothing_is_taken_after_it() {
    let mut follower = Follower::default();
    let chunk = r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"kept"}"#;
    for event in [STARTED, chunk] {
        follower.text(event).unwrap();
    }
    let violation = follower.text(STARTED).unwrap_err();
    assert_eq!(violation.finding.rule.code, "AGUI-SEQ-04");
    assert_eq!(follower.text(chunk).unwrap_err(), violation);
    assert_eq!(follower.reducer().messages_value()[0]["content"], "kept");
    assert_eq!(violation.to_string(), "a run is still active at /type (AGUI-SEQ-04)");
}

#[test]
fn what_is_dropped_or_skipped_is_told_and_the_run_goes_on() {
    let mut follower = Follower::default();
    follower.text(STARTED).unwrap();
    let odd = follower.text(r#"{"type":"CUSTOM","name":"n","value":1,"odd":1}"#).unwrap();
    assert_eq!(odd.findings[0].pointer, "/odd");
    let patch = r#"{"type":"STATE_DELTA","delta":[{"op":"remove","path":"/nowhere"}]}"#;
    let skipped = follower.text(patch).unwrap();
    assert_eq!((skipped.change, skipped.warnings.len()), (Change::None, 1));
    let version = STARTED.replace("1.0", "7.0");
    assert_eq!(followed(&[&version, FINISHED]).0, Ending::Finished);
}

/// An event as a producer may write it: pieces mostly, of two messages and a call, in several layouts.
fn event() -> impl Strategy<Value = String> {
    let words = prop_oneof![
        "[a-z ]{0,20}",
        Just("\\n\\u00e9".to_owned()),
        Just("日本\\\"".to_owned()),
        Just("\",\"delta\":\"".to_owned()),
        Just("x\u{1}".to_owned()),
    ];
    let stamp = prop_oneof![
        Just(String::new()),
        (0u64..1 << 60).prop_map(|number| format!(",\"timestamp\":{number}")),
        Just(",\"timestamp\":007".to_owned()),
        Just(",\"metadata\":{\"k\":1}".to_owned()),
        Just(",\"subagentRunId\":\"s\"".to_owned()),
        Just(",\"odd\":1".to_owned()),
    ];
    let piece = (0..7u8, words, stamp).prop_map(|(kind, words, stamp)| match kind {
        0 => format!(r#"{{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{words}"{stamp}}}"#),
        1 => {
            format!(r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"n","delta":"{words}"{stamp}}}"#)
        }
        2 => {
            format!(r#"{{"delta":"{words}"{stamp},"type":"TEXT_MESSAGE_CONTENT","messageId":"m"}}"#)
        }
        3 => format!(r#"{{"type":"TEXT_MESSAGE_CHUNK","delta":"{words}"{stamp}}}"#),
        4 => format!(r#"{{"type":"TEXT_MESSAGE_CHUNK","messageId":"k","delta":"{words}"{stamp}}}"#),
        _ => {
            format!(r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"{words}"{stamp}}}"#)
        }
    });
    let other = proptest::sample::select(vec![
        r#"{"type":"TEXT_MESSAGE_START","messageId":"m"}"#,
        r#"{"type":"TEXT_MESSAGE_END","messageId":"m"}"#,
        r#"{"type":"CUSTOM","name":"a.b","value":1}"#,
        r#"{"type":"MESSAGES_SNAPSHOT","messages":[]}"#,
        r#"{"type":"ACTIVITY_SNAPSHOT","messageId":"m","activityType":"a","content":{}}"#,
        FINISHED,
    ]);
    prop_oneof![12 => piece, 1 => other.prop_map(str::to_owned)]
}

proptest! {
    #[test]
    fn pieces_that_repeat_are_followed_as_if_each_were_the_first(events in proptest::collection::vec((event(), 1..4usize), 0..20)) {
        let (mut quick, mut slow) = (Follower::default(), Follower::default());
        let open = [
            STARTED,
            r#"{"type":"TEXT_MESSAGE_START","messageId":"m"}"#,
            r#"{"type":"TEXT_MESSAGE_START","messageId":"n"}"#,
            r#"{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"t"}"#,
            r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"k"}"#,
        ];
        let events = events.iter().flat_map(|(event, times)| std::iter::repeat_n(event.as_str(), *times));
        for event in open.into_iter().chain(events) {
            slow.piece.prefix.clear();
            let (quick, slow) = (quick.text(event), slow.text(event));
            prop_assert_eq!(quick.as_ref().err(), slow.as_ref().err(), "{}", event);
            if let (Ok(quick), Ok(slow)) = (quick, slow) {
                // Which message it is has no name that both share.
                let kind = |change: &Change| std::mem::discriminant(change);
                prop_assert_eq!(kind(&quick.change), kind(&slow.change));
                prop_assert_eq!((quick.findings, quick.warnings), (slow.findings, slow.warnings));
            }
        }
        prop_assert_eq!(quick.reducer().messages_value(), slow.reducer().messages_value());
    }
}
