use serde_json::{Value, json};

use super::*;
use crate::event::Protocol;

fn event(message: &Value) -> Vec<Finding> {
    crate::check::value(Protocol::Aaep, message)
}

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
    assert_eq!(codes(&uri), [("AAEP-3.9-R1", "/tool".into()), ("AAEP-3.2.2-R4", "/type".into())]);
    let foreign = json!({"@context": [event::CONTEXT, "https://example.org/v1"], "type": "https://example.org/v1/thing"});
    assert_eq!(codes(&started(foreign)), []);
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
        let found = codes(&json!({"type": kind}));
        assert!(found.iter().all(|(code, _)| !code.starts_with("AAEP-3.2")), "{found:?}");
    }
    for other in [
        json!({"kind": "user_input", "text": "Hello"}),
        json!({"type": "signature.reply", "reply_token": "rpl_1"}),
    ] {
        assert_eq!(codes(&other), []);
    }
    for event in [
        json!({"@context": event::CONTEXT, "kind": "user_input"}),
        json!({"@context": event::CONTEXT, "type": "signature.reply"}),
        json!({"type": "signature.replied"}),
        json!({"type": "acme:signature.reply"}),
    ] {
        assert!(codes(&event).contains(&("AAEP-3.2.3-R1", "/event_id".into())), "{event}");
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
            let mut message = ways;
            message["default_decision"] = "accept".into();
            message["risk_level"] = risk.into();
            let found = |message: &Value| {
                crate::check::with_document(message, |document| {
                    ask::default_decision(&Seen::new(document.root(), false))
                })
            };
            assert_eq!(found(&message).map(|finding| finding.rule.code), code, "{message}");
            message["default_decision"] = "reject".into();
            assert_eq!(found(&message), None);
        }
    }
}

#[test]
fn an_urgency_outside_the_set_is_reported_once() {
    let message = started(
        json!({"type": "aaep:agent.session.errored", "error_category": "unknown", "urgency": "loud"}),
    );
    assert_eq!(codes(&message), [("AAEP-3.9-R1", "/urgency".into())]);
}

fn strict(message: &Value) -> Vec<(&'static str, String)> {
    let mut checker = crate::check::Checker::new(Protocol::Aaep).strict();
    let found = checker.alone(message.to_string().as_bytes());
    found.into_iter().map(|finding| (finding.rule.code, finding.pointer)).collect()
}

fn of_bytes(bytes: &str) -> Vec<(&'static str, String)> {
    let found = crate::check::alone(Protocol::Aaep, bytes.as_bytes());
    found.into_iter().map(|finding| (finding.rule.code, finding.pointer)).collect()
}

fn confirmation(extra: Value) -> Value {
    let mut event = started(json!({
        "type": "aaep:agent.awaiting.confirmation", "urgency": "critical", "action": "Open the valve.",
        "consequence": "Water flows.", "reply_token": "rpl_1", "timeout_seconds": 300, "default_decision": "reject",
    }));
    let Value::Object(extra) = extra else { panic!("an object is needed") };
    event.as_object_mut().unwrap().extend(extra);
    event
}

fn clarification(extra: Value) -> Value {
    let mut event = started(json!({
        "type": "aaep:agent.awaiting.clarification", "urgency": "critical", "question": "Which bed?",
        "reply_token": "rpl_1", "timeout_seconds": 300,
    }));
    let Value::Object(extra) = extra else { panic!("an object is needed") };
    event.as_object_mut().unwrap().extend(extra);
    event
}

#[test]
fn a_name_that_stands_twice_is_pointed_to() {
    let event = started(json!({})).to_string();
    let rest = event.strip_prefix('{').unwrap();
    for (names, pointer) in [
        (r#""urgency": "normal", "urgency": "normal""#, "/urgency"),
        (r#""tools_available": [], "\u0074ools_available": []"#, "/tools_available"),
    ] {
        assert_eq!(of_bytes(&format!("{{{names}, {rest}")), [("AAEP-3.8-B1", pointer.into())]);
    }
    let deep =
        r#"{"kind": 1, "a/b": [1, [2, {"c": {"d": 1, "e": {}, "d": 2}}]], "z": {"y": 1, "y": 2}}"#;
    assert_eq!(of_bytes(deep), [("AAEP-3.8-B1", "/a~1b/1/1/c/d".into())]);
    assert_eq!(of_bytes(r#"{"kind": {"a": 1}, "b": {"a": 1}}"#), []);
}

#[test]
fn placeholders_are_no_timestamps() {
    for (year, good) in [
        ("0001", false),
        ("1970", false),
        ("1971", true),
        ("2026", true),
        ("9998", true),
        ("9999", false),
    ] {
        let found = codes(&started(json!({"timestamp": format!("{year}-01-01T00:00:00Z")})));
        let expected: &[_] = if good { &[] } else { &[("AAEP-3.2.5-R2", "/timestamp".to_owned())] };
        assert_eq!(found, expected, "{year}");
    }
    let malformed = started(json!({"timestamp": "1970-01-01"}));
    assert_eq!(codes(&malformed), [("AAEP-3.2.5-R1", "/timestamp".into())]);
}

#[test]
fn an_agent_id_that_carries_the_version_is_told_from_one_that_only_has_digits() {
    for (agent, version, good) in [
        ("helper-2.7.1", "2.7.1", false),
        ("helper-v2.7.1-eu", "2.7.1", false),
        ("2.7.1", "2.7.1", false),
        ("helper-12.7.1", "2.7.1", true),
        ("helper-2.7.10", "2.7.1", true),
        ("helper-2.7.1.4", "2.7.1", true),
        ("helper-1.2.7.1", "2.7.1", true),
        ("rev2.7.1", "2.7.1", true),
        ("helper-2", "2", true),
        ("org.example.helper", ".example", true),
        ("helper-2.7.1", "2.8.0", true),
    ] {
        let found =
            codes(&started(json!({"producer": {"agent_id": agent, "agent_version": version}})));
        let expected: &[_] =
            if good { &[] } else { &[("AAEP-3.2.6.1-R1", "/producer/agent_id".to_owned())] };
        assert_eq!(found, expected, "{agent} {version}");
    }
    assert_eq!(codes(&started(json!({"producer": {"agent_id": "helper-2.7.1"}}))), []);
}

#[test]
fn critical_outside_the_four_types_that_demand_it_is_noted_on_request() {
    let noted = ("AAEP-3.3.2-R1", "/urgency".to_owned());
    assert!(strict(&started(json!({"urgency": "critical"}))).contains(&noted));
    assert!(!strict(&started(json!({"urgency": "normal"}))).contains(&noted));
    assert!(!strict(&confirmation(json!({}))).contains(&noted));
    let foreign = json!({
        "@context": [event::CONTEXT, "https://example.org/v1"], "type": "acme:alarm", "urgency": "critical",
    });
    assert!(!strict(&started(foreign)).contains(&noted));
}

#[test]
fn irreversible_and_reversibility_agree_where_both_are_there() {
    for (irreversible, word, good) in [
        (true, "irreversible", true),
        (true, "reversible", false),
        (true, "reversible_with_effort", false),
        (false, "irreversible", false),
        (false, "reversible", true),
        (false, "reversible_with_effort", true),
    ] {
        let found =
            codes(&confirmation(json!({"irreversible": irreversible, "reversibility": word})));
        let expected: &[_] =
            if good { &[] } else { &[("AAEP-4.4.1-B1", "/reversibility".to_owned())] };
        assert_eq!(found, expected, "{irreversible} {word}");
    }
    assert_eq!(codes(&confirmation(json!({"irreversible": true}))), []);
    assert_eq!(codes(&confirmation(json!({"reversibility": "irreversible"}))), []);
}

#[test]
fn one_can_refuse_and_the_default_is_allowed() {
    for (allowed, default, good) in [
        (json!(["accept", "reject"]), "reject", true),
        (json!(["reject", "later"]), "reject", true),
        (json!(["accept"]), "reject", false),
        (json!(["reject", "later"]), "accept", false),
    ] {
        let found =
            codes(&confirmation(json!({"allowed_replies": allowed, "default_decision": default})));
        let expected: &[_] =
            if good { &[] } else { &[("AAEP-4.4.1-B2", "/allowed_replies".to_owned())] };
        assert_eq!(found, expected, "{allowed} {default}");
    }
    for malformed in [json!([]), json!([1]), json!("accept")] {
        let found = codes(&confirmation(json!({"allowed_replies": malformed})));
        assert!(found.iter().all(|(code, _)| *code == "AAEP-3.9-R1"), "{found:?}");
    }
}

#[test]
fn choices_and_multiple_choice_come_together() {
    let choices = json!([{"value": "n", "label": "North"}, {"value": "s", "label": "South"}]);
    for (extra, good) in [
        (json!({}), true),
        (json!({"accepted_response_kinds": ["freetext", "yes_no"]}), true),
        (
            json!({"accepted_response_kinds": ["freetext", "multiple_choice"], "choices": choices}),
            true,
        ),
        (json!({"accepted_response_kinds": ["multiple_choice"]}), false),
        (json!({"accepted_response_kinds": ["freetext"], "choices": choices}), false),
        (json!({"choices": choices}), false),
    ] {
        let expected: &[_] = if good { &[] } else { &[("AAEP-9.4.1-7", "/choices".to_owned())] };
        assert_eq!(codes(&clarification(extra.clone())), expected, "{extra}");
    }
}

#[test]
fn short_timeouts_are_noted_on_request() {
    for (message, seconds) in [
        (confirmation(json!({"irreversible": true, "risk_level": "high"})), 180),
        (confirmation(json!({"irreversible": true, "risk_level": "medium"})), 60),
        (confirmation(json!({"irreversible": true, "risk_level": "low"})), 30),
        (confirmation(json!({"risk_level": "high"})), 30),
        (confirmation(json!({})), 30),
        (clarification(json!({})), 60),
    ] {
        for (given, good) in [(seconds, true), (seconds - 1, false)] {
            let mut message = message.clone();
            message["timeout_seconds"] = given.into();
            assert_eq!(codes(&message), []);
            let found = strict(&message);
            assert_eq!(
                !found.contains(&("AAEP-6.4.2-R1", "/timeout_seconds".into())),
                good,
                "{message}"
            );
        }
    }
}

#[test]
fn a_tool_that_failed_says_why() {
    for (status, message, good) in [
        ("error", None, false),
        ("timeout", None, false),
        ("success", None, true),
        ("error", Some("No."), true),
    ] {
        let mut event = started(
            json!({"type": "aaep:agent.tool.completed", "tool": "valve", "status": status}),
        );
        if let Some(message) = message {
            event["error_message"] = message.into();
        }
        let expected: &[_] =
            if good { &[] } else { &[("AAEP-4.3.2-B1", "/error_message".to_owned())] };
        assert_eq!(codes(&event), expected, "{status}");
    }
}

#[test]
fn prefixes_are_neither_reserved_nor_single_letters() {
    let context = json!([event::CONTEXT, "https://example.org/v1"]);
    for (prefix, code) in [
        ("aaep", Some("AAEP-7.3.2-R1")),
        ("rdfs", Some("AAEP-7.3.2-R1")),
        ("@acme", Some("AAEP-7.3.2-R1")),
        ("a", Some("AAEP-7.3.1-R3")),
        ("é", Some("AAEP-7.3.1-R3")),
        ("ab", None),
        ("rdfa", None),
        ("aaep2", None),
    ] {
        let found = codes(&started(json!({"@context": context, "extensions": {prefix: {}}})));
        assert_eq!(found.first().map(|(code, _)| *code), code, "{prefix}");
        if prefix != "aaep" {
            let found =
                codes(&started(json!({"@context": context, "type": format!("{prefix}:thing")})));
            assert_eq!(found.first().map(|(code, _)| *code), code, "{prefix}");
        }
    }
}

#[test]
fn contexts_of_extensions_name_their_major_version() {
    for (uri, good) in [
        ("https://example.org/v1", true),
        ("https://example.org/aaep/v12/context.jsonld", true),
        ("https://example.org/v1.2#", true),
        ("urn:acme:aaep:v1", true),
        ("https://example.org/aaep", false),
        ("https://example.org/very", false),
        ("https://v.example.org/1", false),
    ] {
        let found = strict(&started(json!({"@context": [event::CONTEXT, uri]})));
        assert_eq!(!found.contains(&("AAEP-7.9-R2", "/@context/1".into())), good, "{uri}");
    }
}

#[test]
fn summaries_are_asked_for_on_request() {
    let one = strict(&started(json!({})));
    assert!(one.contains(&("AAEP-2.2.8-R1", "/summary_terse".into())), "{one:?}");
    let all =
        strict(&started(json!({"summary_terse": "Demo.", "summary_detailed": "Demo started."})));
    assert!(all.iter().all(|(code, _)| *code != "AAEP-2.2.8-R1"), "{all:?}");
    let mut state = started(
        json!({"type": "aaep:agent.state.changed", "from_state": "idle", "to_state": "thinking"}),
    );
    state.as_object_mut().unwrap().remove("summary_normal");
    assert!(strict(&state).contains(&("AAEP-9.3.1-9", "/summary_normal".into())));
    assert!(strict(&state).iter().all(|(code, _)| *code != "AAEP-2.2.8-R1"));
    state["urgency"] = "background".into();
    assert!(strict(&state).iter().all(|(code, _)| *code != "AAEP-9.3.1-9"));
}

#[test]
fn the_order_of_fields_is_judged_on_request() {
    let order = |bytes: &str| {
        let found = crate::check::Checker::new(Protocol::Aaep).strict().alone(bytes.as_bytes());
        let found = found.into_iter().find(|finding| finding.rule.code == "AAEP-3.6-R2");
        found.map(|finding| finding.pointer)
    };
    assert_eq!(order(r#"{"@context": "", "type": "x:y", "b": 1, "a": 1, "extensions": {}}"#), None);
    assert_eq!(order(r#"{"@context": "", "b": 1, "type": "x:y"}"#), Some("/type".to_owned()));
    assert_eq!(order(r#"{"@context": "", "extensions": {}, "b": 1}"#), Some("/b".to_owned()));
}

#[test]
fn a_missing_version_is_told_on_request() {
    let found = strict(&started(json!({})));
    assert!(found.contains(&("AAEP-12.5-R1", "/aaep_version".into())), "{found:?}");
    let found = strict(&started(json!({"aaep_version": "1.0.0"})));
    assert!(found.iter().all(|(code, _)| *code != "AAEP-12.5-R1"), "{found:?}");
}

#[test]
fn a_newer_minor_version_may_have_what_is_not_known_here() {
    for extra in [
        json!({"mood": "calm"}),
        json!({"aaep_mood": "calm"}),
        json!({"type": "aaep:agent.mood.changed"}),
        json!({"urgency": "soon"}),
        json!({"producer": {"agent_id": "demo", "region": "eu"}}),
    ] {
        let mut newer = extra.clone();
        newer["aaep_version"] = "1.1.0".into();
        assert_eq!(codes(&started(newer)), [("AAEP-12.6.2-R1", "/aaep_version".into())], "{extra}");
        let mut same = extra.clone();
        same["aaep_version"] = "1.0.7".into();
        assert_eq!(codes(&started(same)).len(), 2, "{extra}");
    }
    let broken = started(json!({"aaep_version": "1.1.0", "event_id": "x"}));
    assert!(codes(&broken).contains(&("AAEP-3.2.3-R1", "/event_id".into())));
}

#[test]
fn a_version_is_published_or_newer_or_none() {
    for (version, code) in [
        ("1.0.0", None),
        ("1.0.1", Some("AAEP-12.6.2-R1")),
        ("1.0.1-rc.1", Some("AAEP-12.6.2-R1")),
        ("1.3.0", Some("AAEP-12.6.2-R1")),
        ("1.99999999999999999999999.0", Some("AAEP-12.6.2-R1")),
        ("1.0.0-rc.1", Some("AAEP-3.4.4-R1")),
        ("01.0.0", Some("AAEP-3.4.4-R1")),
        ("1.00.0", Some("AAEP-3.4.4-R1")),
        ("1.01.0", Some("AAEP-3.4.4-R1")),
        ("2.0.0", Some("AAEP-3.4.4-R1")),
        ("0.9.0", Some("AAEP-3.4.4-R1")),
        ("1.0", Some("AAEP-3.4.4-R1")),
        ("one", Some("AAEP-3.4.4-R1")),
        ("1.0.x", Some("AAEP-3.4.4-R1")),
    ] {
        let found = codes(&started(json!({"aaep_version": version})));
        let expected: Vec<_> =
            code.map(|code| (code, "/aaep_version".to_owned())).into_iter().collect();
        assert_eq!(found, expected, "{version}");
    }
}

#[test]
fn the_core_context_alone_declares_no_extension() {
    for (context, good) in [
        (json!(event::CONTEXT), false),
        (json!([event::CONTEXT]), false),
        (json!([event::CONTEXT, event::CONTEXT]), false),
        (json!([event::CONTEXT, "https://example.org/v1"]), true),
    ] {
        let found = codes(&started(json!({"@context": context, "extensions": {"acme": {}}})));
        let expected: &[_] =
            if good { &[] } else { &[("AAEP-3.4.3-R1", "/extensions/acme".to_owned())] };
        assert_eq!(found, expected, "{context}");
        let found = codes(&started(json!({"@context": context, "type": "acme:thing"})));
        let expected: &[_] = if good { &[] } else { &[("AAEP-3.2.2-R1", "/type".to_owned())] };
        assert_eq!(found, expected, "{context}");
    }
}

#[test]
fn an_entry_of_the_context_that_is_no_uri_is_pointed_to() {
    let context = json!([event::CONTEXT, "https://example.org/v1", "foo bar"]);
    let found = event(&started(json!({"@context": context})));
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].rule.code, &*found[0].pointer), ("AAEP-3.2.1-R2", "/@context/2"));
    assert_eq!(found[0].message, "\"foo bar\" is no URI: write a URI");
    assert_eq!(
        codes(&started(json!({"@context": [event::CONTEXT, 7]}))),
        [("AAEP-3.2.1-R2", "/@context/1".into())]
    );
}

#[test]
fn numbers_that_are_too_big_are_pointed_to_however_they_are_written() {
    let context = json!([event::CONTEXT, "https://example.org/v1"]);
    let with = |number: &str| {
        let acme = json!({"acme": {"a/b": [1, {"n": "N"}]}});
        let event = started(json!({"@context": context, "extensions": acme})).to_string();
        of_bytes(&event.replace("\"N\"", number))
    };
    for number in ["9007199254740993", "-9007199254740993", "12345678901234567890.0", "1e30"] {
        let place = "/extensions/acme/a~1b/1/n".to_owned();
        assert_eq!(with(number), [("AAEP-3.8-R3", place)], "{number}");
    }
    for number in ["9007199254740992", "-9007199254740992.0", "1e15", "0.1", "1e-30"] {
        assert_eq!(with(number), [], "{number}");
    }
    let numbered = started(json!({"sequence_number": 7})).to_string().replace(":7", ":1e30");
    assert_eq!(of_bytes(&numbered), [("AAEP-3.8-R3", "/sequence_number".into())]);
}

#[test]
fn large_messages_and_many_extensions_are_told() {
    let context = json!([event::CONTEXT, "https://example.org/v1"]);
    let with = |count: usize| {
        let extensions: serde_json::Map<String, Value> =
            (0..count).map(|index| (format!("acme{index}"), json!({}))).collect();
        started(json!({"@context": context, "extensions": extensions}))
    };
    // Nine fields stand beside what the extensions count for.
    assert_eq!(codes(&with(23)), []);
    assert_eq!(codes(&with(24)), [("AAEP-3.7-R1", String::new())]);
    let sized = |bytes: usize| {
        let event = started(json!({})).to_string();
        format!("{event}{}", " ".repeat(bytes - event.len()))
    };
    assert_eq!(of_bytes(&sized(65_536)), []);
    assert_eq!(of_bytes(&sized(65_537)), [("AAEP-3.7-R1", String::new())]);
}

#[test]
fn every_text_for_people_needs_a_language() {
    for name in event::HUMAN_TEXT {
        let mut event = started(json!({
            "@context": [event::CONTEXT, "https://example.org/v1"], "type": "acme:thing",
        }));
        event
            .as_object_mut()
            .unwrap()
            .retain(|name, _| !matches!(name.as_str(), "localization_hints" | "summary_normal"));
        assert_eq!(codes(&event), []);
        event[*name] = "x".into();
        assert_eq!(codes(&event), [("AAEP-11.1-R1", "/localization_hints".into())], "{name}");
    }
}
