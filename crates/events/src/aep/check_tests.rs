use serde_json::json;

use super::*;

fn message(fields: Value) -> Value {
    let mut event = json!({"aep_version": "0.1", "id": "evt_1", "type": "agent.start",
        "time": "2026-01-01T00:00:00Z", "agent": {"slug": "keeper"}});
    let Value::Object(fields) = fields else { panic!("an object is needed") };
    event.as_object_mut().unwrap().extend(fields);
    event
}

fn codes(message: &Value) -> Vec<(&'static str, String)> {
    event(message).into_iter().map(|finding| (finding.rule.code, finding.pointer)).collect()
}

#[test]
fn the_21_types_are_known_by_name() {
    for kind in Type::ALL {
        assert_eq!(Type::parse(kind.name()), Some(kind));
        assert_eq!(Type::from_alias(kind.name()), Some(kind));
    }
}

#[test]
fn the_core_five_are_needed() {
    let found: Vec<&str> = event(&json!({})).iter().map(|finding| finding.rule.code).collect();
    assert_eq!(found, ["AEP-REQ-02", "AEP-REQ-04", "AEP-REQ-07", "AEP-REQ-05", "AEP-REQ-08"]);
    for kind in ["session.start", "context.compacted", "agent.error"] {
        assert_eq!(codes(&message(json!({"type": kind}))), [], "{kind}");
    }
}

#[test]
fn null_is_allowed_only_where_data_is_foreign() {
    let action = |action: Value| {
        message(json!({"type": "action.requested", "action": action,
            "tool": {"type": "native", "name": "Shell", "schema": null}}))
    };
    let foreign =
        action(json!({"type": "tool_call", "id": "a", "input": null, "output": {"x": [null]}}));
    assert_eq!(codes(&foreign), []);
    assert_eq!(codes(&message(json!({"extensions": {"x-a": null}}))), []);
    assert_eq!(
        codes(&action(json!({"type": "tool_call", "id": "a", "error": {"code": null}}))),
        [("AEP-REQ-20", "/action/error/code".into())]
    );
    assert_eq!(
        codes(&message(json!({"metrics": {"n": null}}))),
        [("AEP-REQ-20", "/metrics/n".into())]
    );
    assert_eq!(codes(&message(json!({"session": null}))), [("AEP-REQ-20", "/session".into())]);
}

#[test]
fn extension_keys_have_a_shape() {
    for (key, good) in [
        ("x-a", true),
        ("x-acme.v2_b-c", true),
        ("x-", false),
        ("x-.a", false),
        ("X-a", false),
        ("x-A", false),
        ("acme", false),
    ] {
        assert_eq!(codes(&message(json!({"extensions": {key: 1}}))).is_empty(), good, "{key}");
    }
}

#[test]
fn an_alias_is_a_note_that_names_the_canonical_type() {
    let findings = event(&message(json!({"type": "agent.end"})));
    assert_eq!(findings.first().unwrap().message, "\"agent.end\" is spelled agent.stop");
}

#[test]
fn each_behaviour_is_accepted_and_no_other() {
    let response = |behavior: &str| {
        json!({"aep_version": "0.1", "id": "rsp_1", "request_event_id": "evt_1",
        "time": "2026-01-01T00:00:00Z", "control": {"behavior": behavior}})
    };
    for behavior in event::BEHAVIORS {
        assert_eq!(codes(&response(behavior)), []);
    }
    assert_eq!(codes(&response("permit")), [("AEP-REQ-23", "/control/behavior".into())]);
}

#[test]
fn text_events_need_text_of_their_kind() {
    for kind in Type::ALL.into_iter().filter(|kind| !kind.content().is_empty()) {
        let with = |word: &str| {
            message(json!({"type": kind.name(), "content": [{"type": word, "text": ""}]}))
        };
        for word in kind.content() {
            assert_eq!(codes(&with(word)), [], "{kind:?} {word}");
        }
        let other = if kind.content().contains(&"plan") { "answer" } else { "plan" };
        assert_eq!(codes(&with(other)), [("AEP-REQ-15", "/content".into())], "{kind:?}");
    }
}

#[test]
fn a_newer_draft_is_a_warning_and_another_major_an_error() {
    for (version, code) in [
        ("0.2", "AEP-REQ-03"),
        ("0.10", "AEP-REQ-03"),
        ("0.0", "AEP-REQ-02"),
        ("1.0", "AEP-REQ-02"),
        ("", "AEP-REQ-02"),
        ("0.1.1", "AEP-REQ-02"),
    ] {
        assert_eq!(
            codes(&message(json!({"aep_version": version}))),
            [(code, "/aep_version".into())],
            "{version}"
        );
    }
}
