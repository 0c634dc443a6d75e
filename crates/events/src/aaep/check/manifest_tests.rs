use serde_json::{Value, json};

use super::*;
use crate::check::with_document;

/// The other way round, for tests.
fn encode(text: &str) -> String {
    BASE64URL.encode(text)
}

fn found(signed: &str) -> Option<String> {
    let accepted = json!({"producer": {"agent_id": "cook"}, "signed_manifest": signed});
    with_document(&accepted, |document| super::signed(document.root())).map(|found| found.message)
}

fn manifest(header: &Value, payload: &Value) -> Option<String> {
    found(&format!("{}.{}.c2ln", encode(&header.to_string()), encode(&payload.to_string())))
}

#[test]
fn what_was_encoded_is_decoded() {
    for text in ["", "a", "ab", "abc", "abcd", "{\"ü\":\"✓\"}", "\u{ff}\u{fe}>?"] {
        assert_eq!(decode(&encode(text)).as_deref(), Some(text.as_bytes()), "{text}");
    }
    assert_eq!(decode("_-A").as_deref(), Some(&[0xff, 0xe0][..]));
    for text in ["a", "abcde", "ab=", "a+b", "é"] {
        assert_eq!(decode(text), None, "{text}");
    }
}

#[test]
fn a_manifest_by_a_known_algorithm_for_the_agent_passes() {
    for (header, payload) in [
        (json!({"alg": "ES256"}), json!({"agent_id": "cook"})),
        (json!({"alg": "RS256", "kid": "k1"}), json!({"agent_name": "Cook"})),
    ] {
        assert_eq!(manifest(&header, &payload), None);
    }
}

#[test]
fn anything_else_is_told() {
    let fine = json!({"alg": "ES256"});
    for (header, payload, message) in [
        (json!({"alg": "none"}), json!({}), "the algorithm is \"none\", not ES256 or RS256"),
        (json!({"alg": "HS256"}), json!({}), "the algorithm is \"HS256\", not ES256 or RS256"),
        (json!({"alg": 1}), json!({}), "the header names no algorithm"),
        (json!([]), json!({}), "the header is no JSON object in base64url"),
        (fine.clone(), json!("cook"), "the manifest in it is no JSON object in base64url"),
        (
            fine.clone(),
            json!({"agent_id": "baker"}),
            "the manifest is of \"baker\", not of \"cook\"",
        ),
        (fine, json!({"agent_id": 1}), "the manifest is of \"\", not of \"cook\""),
    ] {
        assert_eq!(manifest(&header, &payload).as_deref(), Some(message));
    }
    assert_eq!(found("a.b.c").as_deref(), Some("the header is no JSON object in base64url"));
}
