use serde_json::json;

use super::*;

fn started(extra: Value) -> Value {
    let mut event = json!({
        "@context": event::CONTEXT, "type": "aaep:agent.session.started", "event_id": "evt_1", "session_id": "sess_1",
        "timestamp": "2026-01-01T00:00:00Z", "producer": {"agent_id": "demo"},
        "localization_hints": {"primary_language": "en"}, "summary_normal": "Demo started.",
    });
    let Value::Object(extra) = extra else { panic!("an object is needed") };
    event.as_object_mut().unwrap().extend(extra);
    event
}

fn codes(message: &Value) -> Vec<(&'static str, String)> {
    event(message).into_iter().map(|finding| (finding.rule.code, finding.pointer)).collect()
}

#[test]
fn ids_end_where_they_should() {
    for id in ["evt_a\n", "evt_", "evt_a-b", "EVT_a", "xevt_a", &format!("evt_{}", "a".repeat(65))]
    {
        assert_eq!(
            codes(&started(json!({"event_id": id}))),
            [("AAEP-3.2.3-R1", "/event_id".into())],
            "{id:?}"
        );
    }
}

#[test]
fn a_missing_envelope_is_told_field_by_field() {
    let found: Vec<&str> = event(&json!({})).iter().map(|finding| finding.rule.code).collect();
    let expected = [
        "AAEP-3.2.1-R1",
        "AAEP-3.2.2-R1",
        "AAEP-3.2.3-R1",
        "AAEP-3.2.4-R1",
        "AAEP-3.2.5-R1",
        "AAEP-3.2.6-R1",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_type_written_as_uri_is_checked_like_the_compact_one() {
    let uri = started(json!({"type": "https://aaep-protocol.org/types/agent.tool.invoked"}));
    assert_eq!(codes(&uri), [("AAEP-3.9-R1", "/tool".into())]);
}

#[test]
fn the_twelve_types_and_no_other_are_core() {
    for kind in Type::ALL {
        assert_eq!(Type::parse(kind.name()), Some(kind));
    }
    assert_eq!(Type::ALL.iter().filter(|kind| kind.is_critical()).count(), 4);
    assert_eq!(Type::ALL.iter().filter(|kind| kind.is_terminal()).count(), 3);
}

#[test]
fn text_in_another_language_may_stand_beside_the_first() {
    assert_eq!(codes(&started(json!({"summary_normal_yo": "Ó ti bẹ̀rẹ̀."}))), []);
    for name in ["summary_normal_", "summary_normal_x", "summary_loud_yo", "tool_yo"] {
        assert_eq!(codes(&started(json!({name: "x"}))), [("AAEP-3.5-R2", format!("/{name}"))]);
    }
}

#[test]
fn messages_about_events_are_no_events() {
    for kind in ["subscription.request", "confirmation.reply", "aaep:producer.manifest"] {
        assert_eq!(codes(&json!({"type": kind})), []);
    }
}

#[test]
fn timestamps_have_0_3_or_6_digits() {
    for (fraction, good) in
        [("", true), (".1", false), (".123", true), (".1234", false), (".123456", true)]
    {
        let message = started(json!({"timestamp": format!("2026-01-01T00:00:00{fraction}Z")}));
        assert_eq!(codes(&message).is_empty(), good, "{fraction}");
    }
    for bad in ["2026-01-01t00:00:00z", "2026-01-01", "May 24", "2026-02-30T00:00:00Z"] {
        assert_eq!(
            codes(&started(json!({"timestamp": bad}))),
            [("AAEP-3.2.5-R1", "/timestamp".into())]
        );
    }
}

#[test]
fn the_default_decision_table_is_kept() {
    for (irreversible, risk, code) in [
        (true, "high", Some("AAEP-4.4.1-R4")),
        (true, "medium", Some("AAEP-6.4.1-R2")),
        (true, "low", Some("AAEP-6.4.1-R3")),
        (false, "high", Some("AAEP-6.4.1-R4")),
        (false, "medium", None),
        (false, "low", None),
    ] {
        for ways in [
            json!({"irreversible": irreversible}),
            json!({"reversibility": if irreversible { "irreversible" } else { "reversible" }}),
        ] {
            let Value::Object(mut object) = ways else { unreachable!() };
            object.insert("default_decision".into(), "accept".into());
            object.insert("risk_level".into(), risk.into());
            assert_eq!(
                default_decision(&object).map(|finding| finding.rule.code),
                code,
                "{object:?}"
            );
            object.insert("default_decision".into(), "reject".into());
            assert_eq!(default_decision(&object), None);
        }
    }
}

#[test]
fn words_that_only_begin_like_a_secret_are_no_secret() {
    for text in [
        "task-force-of-the-many-many-many-people-there",
        "sk-short",
        "risk-sk-",
        "AKIA",
        "a PRIVATE KEY is needed",
    ] {
        assert_eq!(looks_secret(text), None, "{text}");
    }
    for text in ["key sk-0123456789abcdef0123456789abcdef!", "-----BEGIN RSA PRIVATE KEY-----"] {
        assert!(looks_secret(text).is_some(), "{text}");
    }
}

#[test]
fn an_urgency_outside_the_set_is_reported_once() {
    let message = started(
        json!({"type": "aaep:agent.session.errored", "error_category": "unknown", "urgency": "loud"}),
    );
    assert_eq!(codes(&message), [("AAEP-3.9-R1", "/urgency".into())]);
}
