use serde_json::{Value, json};

use super::*;
use crate::check::with_document;

/// Everything found in one message, as code and pointer.
fn codes(value: &Value) -> Vec<(&'static str, String)> {
    let findings = with_document(value, |document| {
        let object = document.root();
        message(&text(object, "type").unwrap(), object)
    });
    findings.into_iter().map(|finding| (finding.rule.code, finding.pointer)).collect()
}

/// What is found when fields of a message that fits are set, or removed by null.
fn changed(kind: &str, changes: &[(&str, Value)]) -> Vec<(&'static str, String)> {
    let mut message = fitting(kind);
    for (name, value) in changes {
        let fields = message.as_object_mut().unwrap();
        match value {
            Value::Null => fields.remove(*name),
            value => fields.insert((*name).to_owned(), value.clone()),
        };
    }
    codes(&message)
}

fn fitting(kind: &str) -> Value {
    match kind {
        "subscription.request" => json!({"type": kind, "aaep_version": "1.0.0",
            "subscriber_id": "ears", "capabilities": {"languages": ["en"], "acme": {"loud": true}}}),
        "subscription.accepted" => json!({"type": kind, "subscription_id": "sub_1",
            "aaep_version": "1.0.0", "producer": {"agent_id": "cook"}, "honored_capabilities": {}}),
        "subscription.rejected" => {
            json!({"type": kind, "reason_code": "rate_limit", "reason_message": "Later."})
        }
        "subscription.renegotiate" => {
            json!({"type": kind, "subscription_id": "sub_1", "capabilities": {}})
        }
        "subscription.close" => json!({"type": kind, "subscription_id": "sub_1",
            "reason_code": "subscriber_shutdown", "reason_message": "Bye."}),
        "confirmation.reply" => json!({"type": kind, "reply_token": "rpl_1", "decision": "accept",
            "subscription_id": "sub_1", "timestamp": "2026-03-01T12:00:00Z"}),
        "clarification.reply" => json!({"type": kind, "reply_token": "rpl_1", "response": true,
            "subscription_id": "sub_1", "timestamp": "2026-03-01T12:00:00Z"}),
        _ => json!({"type": kind, "@context": event::CONTEXT, "agent_id": "cook",
            "languages_supported": ["en"], "conformance_levels_supported": [1, 2]}),
    }
}

const KINDS: [&str; 8] = [
    "subscription.request",
    "subscription.accepted",
    "subscription.rejected",
    "subscription.renegotiate",
    "subscription.close",
    "confirmation.reply",
    "clarification.reply",
    "aaep:producer.manifest",
];

#[test]
fn every_fitting_message_passes() {
    for kind in KINDS {
        assert_eq!(codes(&fitting(kind)), [], "{kind}");
    }
}

#[test]
fn every_table_has_a_code_of_its_own() {
    for (kind, name, value, code) in [
        (KINDS[0], "subscriber_id", Value::Null, "AAEP-5.3-B1"),
        (KINDS[0], "aaep_version", json!("one"), "AAEP-5.3-B1"),
        (KINDS[1], "subscription_id", json!("sub-1"), "AAEP-5.4-B1"),
        (KINDS[1], "aaep_version", Value::Null, "AAEP-5.4-B1"),
        (KINDS[2], "reason_code", json!("busy"), "AAEP-5.4-B2"),
        (KINDS[3], "capabilities", Value::Null, "AAEP-5.7-B1"),
        (KINDS[4], "subscription_id", Value::Null, "AAEP-5.8-B1"),
        (KINDS[5], "decision", json!(""), "AAEP-6.3-B1"),
        (KINDS[5], "decision", json!(true), "AAEP-6.3-B1"),
        (KINDS[5], "decision", json!("accept_once"), "AAEP-6.3-B3"),
        (KINDS[1], "signed_manifest", json!("a.b"), "AAEP-5.4-B1"),
        (KINDS[1], "signed_manifest", json!("a.b.c"), "AAEP-10.4.1-R1"),
        (KINDS[5], "subscription_id", json!("desk"), "AAEP-6.3-B1"),
        (KINDS[6], "response", json!([]), "AAEP-6.5-B1"),
        (KINDS[6], "response", json!(""), "AAEP-6.5-B1"),
        (KINDS[7], "agent_id", Value::Null, "AAEP-5.10-B1"),
        (KINDS[7], "@context", Value::Null, "AAEP-5.10-B1"),
        (KINDS[7], "@context", json!("https://a.example/v1"), "AAEP-5.10-B1"),
    ] {
        let found = changed(kind, &[(name, value.clone())]);
        assert_eq!(found, [(code, format!("/{name}"))], "{kind}: {value}");
    }
    let listed = json!([event::CONTEXT, "https://a.example/v1"]);
    assert_eq!(changed(KINDS[7], &[("@context", listed)]), []);
}

#[test]
fn null_is_not_the_same_as_absent() {
    let mut reply = fitting("confirmation.reply");
    reply["subscription_id"] = Value::Null;
    assert_eq!(codes(&reply), [("AAEP-6.3-B1", "/subscription_id".to_owned())]);
}

#[test]
fn a_reply_without_its_subscription_is_warned_of() {
    for kind in ["confirmation.reply", "clarification.reply"] {
        let found = changed(kind, &[("subscription_id", Value::Null)]);
        assert_eq!(found, [("AAEP-6.3-B2", "/subscription_id".to_owned())]);
    }
}

#[test]
fn fields_of_ones_own_are_refused_where_a_schema_closes_the_message() {
    for kind in KINDS {
        let found = changed(kind, &[("mood", json!("fine"))]);
        let expected = match kind {
            "subscription.request" | "subscription.accepted" | "subscription.rejected" => {
                vec![("AAEP-7.2-R3", "/mood".to_owned())]
            }
            "confirmation.reply" | "clarification.reply" => {
                vec![("AAEP-7.2-R4", "/mood".to_owned())]
            }
            _ => vec![],
        };
        assert_eq!(found, expected, "{kind}");
    }
}

#[test]
fn a_request_may_ask_for_any_version_but_the_answer_names_one_that_exists() {
    assert_eq!(changed("subscription.request", &[("aaep_version", json!("99.99.99"))]), []);
    assert_eq!(changed("subscription.accepted", &[("aaep_version", json!("1.1.0"))]), []);
    assert_eq!(changed("subscription.accepted", &[("aaep_version", json!("1.0.4"))]), []);
    for version in ["2.0.0", "0.9.0", "one", "1.0", "1.0.0-rc.1", "01.0.0"] {
        let found = changed("subscription.accepted", &[("aaep_version", json!(version))]);
        assert_eq!(found, [("AAEP-3.4.4-R1", "/aaep_version".to_owned())], "{version}");
    }
}

#[test]
fn a_language_that_is_none_is_told_from_one_that_stands_twice() {
    let languages = |tags: Value| {
        changed("subscription.request", &[("capabilities", json!({"languages": tags}))])
    };
    let pointer = |index: usize| format!("/capabilities/languages/{index}");
    assert_eq!(languages(json!(["en_US"])), [("AAEP-11.1.2-R1", pointer(0))]);
    assert_eq!(languages(json!(["en", "en"])), [("AAEP-5.3-B1", pointer(1))]);
    assert_eq!(languages(json!([7])), [("AAEP-5.3-B1", pointer(0))]);
    assert_eq!(languages(json!(["de", "english"])), [("AAEP-11.1.2-B1", pointer(1))]);
    let found = changed("aaep:producer.manifest", &[("languages_supported", json!(["x y"]))]);
    assert_eq!(found, [("AAEP-11.1.2-R1", "/languages_supported/0".to_owned())]);
}

#[test]
fn who_declares_level_two_answers_confirmations() {
    let declared = |capabilities: Value| {
        changed("subscription.request", &[("capabilities", capabilities)]).len()
    };
    assert_eq!(declared(json!({"supported_conformance_levels": [1]})), 0);
    assert_eq!(declared(json!({"supports_confirmation_reply": false})), 0);
    assert_eq!(declared(json!({"supported_conformance_levels": [1, 2]})), 1);
    assert_eq!(declared(json!({"supported_conformance_levels": [3]})), 1);
    let both = json!({"supported_conformance_levels": [2], "supports_confirmation_reply": false});
    assert_eq!(declared(both), 1);
    let fine = json!({"supported_conformance_levels": [2], "supports_confirmation_reply": true});
    assert_eq!(declared(fine), 0);
}

#[test]
fn the_names_of_blocks_are_prefixes() {
    for (prefix, code) in [
        ("aaep", Some("AAEP-7.3.2-R1")),
        ("rdfs", Some("AAEP-7.3.2-R1")),
        ("@own", Some("AAEP-7.3.2-R1")),
        ("x", Some("AAEP-7.3.1-R3")),
        ("é", Some("AAEP-7.3.1-R3")),
        ("aaepx", None),
        ("xy", None),
    ] {
        for (kind, field) in [
            ("subscription.request", "capabilities"),
            ("subscription.request", "extensions"),
            ("subscription.accepted", "honored_capabilities"),
            ("subscription.renegotiate", "capabilities"),
        ] {
            let found = changed(kind, &[(field, json!({prefix: {}}))]);
            let expected: Vec<_> =
                code.map(|code| (code, format!("/{field}/{prefix}"))).into_iter().collect();
            assert_eq!(found, expected, "{kind}: {prefix}");
        }
    }
    let odd = changed("subscription.request", &[("capabilities", json!({"acme": true}))]);
    assert_eq!(odd, [("AAEP-5.3-B1", "/capabilities/acme".to_owned())]);
}

#[test]
fn messages_that_aaep_does_not_define_are_told_but_not_those_of_extensions() {
    let unknown = ("AAEP-5.1-B1", "/type".to_owned());
    assert_eq!(codes(&json!({"type": "subscription.pause"})), [unknown]);
    assert_eq!(codes(&json!({"type": "signature.reply", "reply_token": "rpl_1"})), []);
}
