use serde_json::{Value, json};

use super::*;
use crate::event::Protocol;

fn event(message: &Value) -> Vec<Finding> {
    crate::check::value(Protocol::Aep, message)
}

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
    for kind in ["session.start", "context.compacted", "agent.stop"] {
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
fn only_an_extension_key_without_its_prefix_is_an_error() {
    for (key, code) in [
        ("x-a", None),
        ("x-acme.v2_b-c", None),
        ("x-", Some("AEP-REQ-35")),
        ("x-.a", Some("AEP-REQ-35")),
        ("X-a", Some("AEP-REQ-35")),
        ("x-A", Some("AEP-REQ-35")),
        ("x-é", Some("AEP-REQ-35")),
        ("x", Some("AEP-REQ-21")),
        ("", Some("AEP-REQ-21")),
        ("é-a", Some("AEP-REQ-21")),
        ("acme", Some("AEP-REQ-21")),
    ] {
        let expected: Vec<_> =
            code.map(|code| (code, format!("/extensions/{key}"))).into_iter().collect();
        assert_eq!(codes(&message(json!({"extensions": {key: 1}}))), expected, "{key}");
    }
    let several = message(json!({"extensions": {"x-A": 1, "acme": 1, "x-B": 1, "other": 1}}));
    assert_eq!(
        codes(&several),
        [("AEP-REQ-35", "/extensions/x-A".into()), ("AEP-REQ-21", "/extensions/acme".into())]
    );
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

#[test]
fn what_a_newer_draft_may_add_is_no_finding_of_its_own() {
    let newer = message(json!({"aep_version": "0.2", "type": "action.requested", "mood": 1,
        "action": {"type": "tow", "id": "a"}, "session": {"parent": {"relation": "twin"}}}));
    assert_eq!(codes(&newer), [("AEP-REQ-03", "/aep_version".into())]);
    let missing = message(json!({"aep_version": "0.2", "id": ""}));
    assert_eq!(
        codes(&missing),
        [("AEP-REQ-04", "/id".into()), ("AEP-REQ-03", "/aep_version".into())]
    );
}

#[test]
fn a_kind_of_action_that_is_not_known_yet_is_a_note() {
    let found = event(&message(
        json!({"type": "action.requested", "action": {"type": "workflow_run", "id": "a"}}),
    ));
    let [note] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((note.rule.code, note.pointer.as_str()), ("AEP-REQ-36", "/action/type"));
    assert_eq!(note.rule.severity, crate::finding::Severity::Note);
}

#[test]
fn a_key_that_stands_twice_is_found_wherever_it_is() {
    let found = |text: &str| -> Vec<(&'static str, String)> {
        crate::check::alone(Protocol::Aep, text.as_bytes())
            .into_iter()
            .map(|finding| (finding.rule.code, finding.pointer))
            .collect()
    };
    let with = |rest: &str| {
        format!(
            r#"{{"aep_version":"0.1","id":"e","type":"agent.stop","time":"2026-01-01T00:00:00Z","agent":{{"slug":"k"}}{rest}}}"#
        )
    };
    for (rest, pointer) in [
        ("", None),
        (r#","id":"e""#, Some("/id")),
        (r#","extensions":{"x-a":[0,{"b/c":{"d":1,"d":2}}]}"#, Some("/extensions/x-a/1/b~1c/d")),
        (r#","extensions":{"x-a":{"d":1,"\u0064":2}}"#, Some("/extensions/x-a/d")),
        (r#","extensions":{"x-a":{"d":{"d":1}},"x-b":{"d":1}}"#, None),
    ] {
        let expected: Vec<_> =
            pointer.map(|pointer| ("AEP-REQ-27", pointer.to_owned())).into_iter().collect();
        assert_eq!(found(&with(rest)), expected, "{rest}");
    }
}

#[test]
fn a_status_belongs_to_the_end_of_an_action() {
    for (kind, status, code) in [
        ("requested", None, None),
        ("requested", Some("success"), Some("AEP-REQ-28")),
        ("denied", Some("cancelled"), Some("AEP-REQ-28")),
        ("denied", Some("lost"), Some("AEP-REQ-18")),
        ("completed", Some("success"), None),
        ("completed", Some("timeout"), Some("AEP-REQ-13")),
        ("completed", None, Some("AEP-REQ-13")),
        ("failed", Some("timeout"), None),
        ("failed", Some("success"), Some("AEP-REQ-13")),
    ] {
        let mut action = json!({"type": "other", "id": "a"});
        if let Some(status) = status {
            action["status"] = json!(status);
        }
        let found = codes(&message(json!({"type": format!("action.{kind}"), "action": action,
            "decision": {"outcome": "denied"}})));
        let expected: Vec<_> =
            code.map(|code| (code, "/action/status".to_owned())).into_iter().collect();
        assert_eq!(found, expected, "{kind} {status:?}");
    }
}

#[test]
fn an_outcome_may_not_contradict_its_behaviour() {
    for behavior in event::BEHAVIORS {
        for outcome in ["approved", "denied", "info"] {
            let response = json!({"aep_version": "0.1", "id": "rsp_1", "request_event_id": "evt_1",
                "time": "2026-01-01T00:00:00Z", "control": {"behavior": behavior},
                "decision": {"outcome": outcome}});
            let fits = outcome == "info"
                || match *behavior {
                    "allow" | "continue" => outcome == "approved",
                    "deny" | "block" | "stop" => outcome == "denied",
                    _ => false,
                };
            let expected: Vec<_> = (!fits)
                .then(|| ("AEP-REQ-29", "/decision/outcome".to_owned()))
                .into_iter()
                .collect();
            assert_eq!(codes(&response), expected, "{behavior} {outcome}");
        }
    }
}

#[test]
fn addresses_look_like_addresses() {
    for (field, value, good) in [
        ("url", "https://quay.example/a?b#c", true),
        ("url", "stdio:", true),
        ("website_url", "git+ssh://quay.example", true),
        ("repository_url", "quay.example/repository", false),
        ("url", "", false),
        ("url", "://quay", false),
        ("url", "https://quay.example/a b", false),
        ("url", "9p://quay", false),
    ] {
        let found = codes(&message(json!({"server": {field: value}})));
        let expected: Vec<_> =
            (!good).then(|| ("AEP-REQ-30", format!("/server/{field}"))).into_iter().collect();
        assert_eq!(found, expected, "{field} {value}");
    }
    for (email, good) in [
        ("ida@quay.example", true),
        ("\"a@b\"@quay", true),
        ("ida", false),
        ("@quay", false),
        ("ida@", false),
    ] {
        assert_eq!(codes(&message(json!({"user": {"email": email}}))).is_empty(), good, "{email}");
    }
    let attachments = json!([{"type": "image", "data_uri": "DATA:image/png;base64,AA=="},
        {"type": "image", "thumbnail_data_uri": "AA==", "thumbnail_url": "/a.png"}]);
    assert_eq!(
        codes(&message(json!({"attachments": attachments}))),
        [
            ("AEP-REQ-30", "/attachments/1/thumbnail_data_uri".into()),
            ("AEP-REQ-30", "/attachments/1/thumbnail_url".into())
        ]
    );
    // What is no string is a finding of its own, and only that.
    assert_eq!(
        codes(&message(json!({"server": {"url": 7}}))),
        [("AEP-REQ-19", "/server/url".into())]
    );
}

#[test]
fn an_error_says_somewhere_what_went_wrong() {
    for (fields, told) in [
        (json!({}), false),
        (json!({"lifecycle": {"trigger": "auto"}}), false),
        (json!({"content": []}), false),
        (json!({"extensions": {}}), false),
        (json!({"lifecycle": {"reason": "rate_limit"}}), true),
        (json!({"content": [{"type": "notification", "text": "Fog."}]}), true),
        (json!({"extensions": {"x-acme": 1}}), true),
        (json!({"action": {"type": "other", "id": "a", "error": {"code": "E1"}}}), true),
    ] {
        let mut failed = message(fields.clone());
        failed["type"] = json!("agent.error");
        let expected: Vec<_> =
            (!told).then(|| ("AEP-REQ-31", "/lifecycle/reason".to_owned())).into_iter().collect();
        assert_eq!(codes(&failed), expected, "{fields}");
    }
}

#[test]
fn every_style_is_known_and_others_are_noted() {
    let styled = |style: &str| {
        message(
            json!({"content": [{"type": "plan", "text": ""}, {"type": "plan", "text": "", "style": style}]}),
        )
    };
    for style in Style::ALL {
        assert_eq!(codes(&styled(style.name())), []);
    }
    assert_eq!(codes(&styled("foghorn")), [("AEP-REQ-32", "/content/1/style".into())]);
}

#[test]
fn custom_is_read_and_noted() {
    let tool = |kind: &str| message(json!({"tool": {"type": kind, "name": "Crane"}}));
    assert_eq!(codes(&tool("custom")), [("AEP-REQ-33", "/tool/type".into())]);
    assert_eq!(codes(&tool("other")), []);
}

#[test]
fn limits_are_checked_on_request_only() {
    let strict = |message: &Value| -> Vec<(&'static str, String)> {
        let found = crate::check::Checker::new(Protocol::Aep)
            .strict()
            .alone(message.to_string().as_bytes());
        found.into_iter().map(|finding| (finding.rule.code, finding.pointer)).collect()
    };
    let action = |id: &str| {
        message(json!({"type": "action.requested", "action": {"type": "other", "id": id}}))
    };
    for (id, safe) in [
        ("a".repeat(160), true),
        ("a".repeat(161), false),
        ("1.a_b:c-d".into(), true),
        ("-a".into(), false),
        ("a/b".into(), false),
        ("a b".into(), false),
        ("é".into(), false),
    ] {
        let expected: Vec<_> =
            (!safe).then(|| ("AEP-REQ-34", "/action/id".to_owned())).into_iter().collect();
        assert_eq!(codes(&action(&id)), [], "{id}");
        assert_eq!(strict(&action(&id)), expected, "{id}");
    }
    let listed = |count: usize| {
        message(json!({"content": vec![json!({"type": "plan", "text": ""}); count]}))
    };
    assert_eq!(strict(&listed(64)), []);
    assert_eq!(strict(&listed(65)), [("AEP-REQ-34", "/content".into())]);
    let rationale = |count: usize| {
        message(json!({"action": {"type": "other", "id": "a", "rationale": "é".repeat(count)}}))
    };
    assert_eq!(strict(&rationale(32_768)), []);
    assert_eq!(strict(&rationale(32_769)), [("AEP-REQ-34", "/action/rationale".into())]);
    let long = message(json!({"content": [{"type": "plan", "text": "a".repeat(262_144)}]}));
    assert_eq!(strict(&long), [("AEP-REQ-34", String::new())]);
}

#[test]
fn another_spelling_of_a_type_demands_what_the_type_does() {
    for kind in Type::ALL {
        for alias in kind.aliases() {
            let canonical = codes(&message(json!({"type": kind.name()})));
            let aliased = codes(&message(json!({"type": alias})));
            let (first, rest) = aliased.split_first().unwrap();
            assert_eq!(first, &("AEP-REQ-06", "/type".to_owned()), "{alias}");
            assert_eq!(rest, canonical, "{alias}");
        }
    }
    assert_eq!(codes(&message(json!({"type": "x.own"}))), [("AEP-REQ-06", "/type".into())]);
}

#[test]
fn an_empty_object_tells_nothing() {
    let action = |server: Value| {
        json!({"type": "action.requested", "action": {"type": "tool_call", "id": "a"},
            "tool": {"type": "mcp", "name": "tides"}, "server": server})
    };
    for (fields, code, pointer) in [
        (
            json!({"type": "subagent.start", "session": {"id": "s", "parent": {}}, "extensions": {}}),
            "AEP-REQ-16",
            "/session/parent",
        ),
        (
            json!({"type": "subagent.stop", "session": {"id": "s", "conversation_id": ""}}),
            "AEP-REQ-16",
            "/session/parent",
        ),
        (json!({"type": "workspace.changed", "workspace": {}}), "AEP-REQ-17", "/workspace"),
        (action(json!({})), "AEP-REQ-12", "/server"),
    ] {
        let found = codes(&message(fields));
        assert!(found.contains(&(code, pointer.to_owned())), "{found:?}");
    }
    assert_eq!(codes(&message(action(json!({"id": "harbour"})))), []);
}

#[test]
fn an_update_is_never_null() {
    let response = |behavior: &str| {
        json!({"aep_version": "0.1", "id": "r", "time": "2026-01-01T00:00:00Z",
            "request_event_id": "evt_1", "control": {"behavior": behavior, "updated_input": null}})
    };
    for behavior in ["allow", "deny"] {
        let found = codes(&response(behavior));
        assert_eq!(found, [("AEP-REQ-20", "/control/updated_input".into())]);
    }
}

#[test]
fn what_names_the_event_that_it_answers_is_a_response() {
    let silent = json!({"aep_version": "0.1", "id": "r", "time": "2026-01-01T00:00:00Z",
        "request_event_id": "evt_1"});
    assert_eq!(codes(&silent), [("AEP-REQ-23", "/control".into())]);
    let event = message(json!({"request_event_id": "evt_1"}));
    assert_eq!(codes(&event), [("AEP-REQ-22", "/request_event_id".into())]);
}
