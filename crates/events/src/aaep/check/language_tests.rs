use serde_json::{Value, json};

use super::*;
use crate::event::Protocol;

#[test]
fn text_fields_may_end_in_a_language_and_in_nothing_else() {
    for (name, base) in [
        ("summary_normal_yo", "summary_normal"),
        ("summary_normal_id", "summary_normal"),
        ("summary_terse_zh-Hant", "summary_terse"),
        ("description_pt_BR", "description"),
        ("question_gsw", "question"),
    ] {
        assert_eq!(localized(name), Some(base), "{name}");
    }
    for name in [
        "reason_code",
        "action_id",
        "context_id",
        "description_html",
        "summary_normal_raw",
        "action_url",
        "result_uri",
        "question_ms",
        "chunk_index",
        "chunk_",
        "chunk",
        "summary_yo",
    ] {
        assert_eq!(localized(name), None, "{name}");
    }
}

fn codes(extra: &Value) -> Vec<(&'static str, String)> {
    let mut event = json!({
        "@context": event::CONTEXT, "type": "aaep:agent.output.streaming", "event_id": "evt_1", "session_id": "sess_1",
        "timestamp": "2026-01-01T00:00:00Z", "producer": {"agent_id": "demo"},
        "localization_hints": {"primary_language": "en"}, "chunk": "Tea.", "position": 0, "complete": true,
    });
    event.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    let found = crate::check::value(Protocol::Aaep, &event);
    found.into_iter().map(|finding| (finding.rule.code, finding.pointer)).collect()
}

#[test]
fn a_tag_that_begins_with_no_language_is_noted() {
    for (tag, good) in [
        ("en", true),
        ("gsw-CH", true),
        ("x-klingon", true),
        ("i-navajo", true),
        ("english", false),
        ("e", false),
        ("x", false),
        ("engl-US", false),
    ] {
        for (extra, place) in [
            (json!({"language": tag}), "/language"),
            (
                json!({"localization_hints": {"primary_language": tag}}),
                "/localization_hints/primary_language",
            ),
            (
                json!({"localization_hints": {"primary_language": "en", "fallback_chain": ["en", tag]}}),
                "/localization_hints/fallback_chain/1",
            ),
        ] {
            if good && tag == "en" && place.ends_with("/1") {
                continue;
            }
            let expected: &[_] = if good { &[] } else { &[("AAEP-11.1.2-B1", place.to_owned())] };
            assert_eq!(codes(&extra), expected, "{tag}");
        }
    }
    let both = codes(&json!({"language": "no language"}));
    assert_eq!(both, [("AAEP-11.1.2-R1", "/language".to_owned())]);
}

#[test]
fn a_field_in_another_language_belongs_to_the_type() {
    assert_eq!(codes(&json!({"chunk_de": "Tee."})), []);
    for name in ["action_de", "chunk_index", "chunk_id", "summary_normal_raw"] {
        let foreign = [("AAEP-3.5-R2", format!("/{name}"))];
        assert_eq!(codes(&json!({name: "x"})), foreign, "{name}");
    }
}
