use serde_json::{Value, json};

use super::*;
use crate::event::Protocol;

#[test]
fn words_that_only_begin_like_a_secret_are_no_secret() {
    for text in [
        "task-force-of-the-many-many-many-people-there",
        "sk-short",
        "risk-sk-",
        "AKIA",
        "a PRIVATE KEY is needed",
        "Uses sk-learn.ensemble.HistGradientBoostingClassifier today.",
        "sk-learn-contrib-extension-package-v2-beta-build-7",
        "sk-internationalization-fallback-v2-of-the-page",
        "sk-000000000000000000000000000000000000000000000000",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "ghp_example_of_a_token_without_any_digits_in_it",
        "ghx_0123456789abcdefghijABCDEFGHIJ012345",
        "Authorization: Bearer [redacted]",
        "Authorization: Bearer YOUR_TOKEN_GOES_HERE",
        "Authorization: Bearer short1",
        "Authorization Bearers 0123456789abcdef",
        "The authorization of bearer 0123456789abcdef",
        "AKIAtomatoes-and-2-potatoes",
        "github_pat_",
        "eyJhbGciOi",
        "not-sk-0123456789abcdef0123456789abcdef",
    ] {
        assert_eq!(looks_secret(text), None, "{text}");
    }
}

#[test]
fn secrets_are_found_wherever_they_stand() {
    for secret in [
        "sk-0123456789abcdef0123456789abcdef",
        "sk-proj-Ab3dEf6hIj9lMn2pQr5tUv8xYz1-bC4eFg7iJk0",
        "ghp_0123456789abcdefghijABCDEFGHIJ012345",
        "gho_0123456789abcdefghijABCDEFGHIJ012345",
        "ghu_0123456789abcdefghijABCDEFGHIJ012345",
        "ghs_0123456789abcdefghijABCDEFGHIJ012345",
        "ghr_0123456789abcdefghijABCDEFGHIJ012345",
        "Authorization: Bearer 0123456789abcdef",
        "\"authorization\": \"bearer abc.def-123.ghi~456\"",
        "xoxb-123456789012-abcdefghijkl",
        "glpat-a1b2-c3d4_e5f6g7h8i9",
        "AKIAABCDEFGH2345IJKL",
        "AIzaSyA0123456789abcdefghijklmnopqrstuv",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "-----BEGIN RSA PRIVATE KEY-----",
    ] {
        for before in ["", "key ", "a long introduction, with words: ", "x=", "ünïcödé "] {
            for after in ["", "!", " and more after it", ", ünïcödé"] {
                let text = format!("{before}{secret}{after}");
                assert!(looks_secret(&text).is_some(), "{text}");
            }
        }
    }
}

#[test]
fn passwords_are_told_from_talk_about_passwords() {
    for text in [
        "password=hunter2hunter2",
        "db_password = 'correcthorse'",
        "API_KEY=a1b2c3d4e5",
        "{\"client_secret\": \"a1b2c3d4e5\"}",
        "Connect with user=cook&password=tomatoes1, please.",
        "The password: s3cret-soup-9.",
    ] {
        assert!(holds_password(text), "{text}");
    }
    for text in [
        "",
        "no sign",
        "password=",
        "password=short1",
        "password=[redacted]",
        "password=********",
        "password=<your password>",
        "password=xxxxxxxxxxxx",
        "api_key=${API_KEY_OF_TODAY}",
        "secret=XXXXXXXX1",
        "secret: patience and practice",
        "Password: required",
        "password: https://vault.example/soup1",
        "if password == expected_value1",
        "password := read_password()",
        "secret = load(secrets1234)",
        "secrets=abcdefgh1",
        "the time: 12:30:00",
        "ünïcödé: ünïcödé1",
    ] {
        assert!(!holds_password(text), "{text}");
    }
}

#[test]
fn long_texts_are_judged_in_time_that_grows_with_their_length() {
    let begun = std::iter::repeat_n("-----BEGIN ", 100_000).collect::<String>();
    assert_eq!(looks_secret(&begun), None);
    let nested = std::iter::repeat_n("password=(", 100_000).collect::<String>();
    assert!(!holds_password(&nested));
}

#[test]
fn texts_inside_other_fields_hold_no_secret_either() {
    let secret = "Use sk-0123456789abcdef0123456789abcdef";
    let asking = |extra: Value| {
        let mut event = json!({"type": "aaep:agent.awaiting.clarification", "urgency": "critical",
            "question": "Which?", "reply_token": "rpl_1", "timeout_seconds": 90});
        event.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        codes(false, event)
            .into_iter()
            .filter(|(code, _)| code.starts_with("AAEP-1"))
            .collect::<Vec<_>>()
    };
    let choices = json!([{"value": "a", "label": "One"}, {"value": "b", "label": secret}]);
    let found = |place: &str| [("AAEP-10.T5-R1", place.to_owned())];
    assert_eq!(asking(json!({"choices": choices})), found("/choices/1/label"));
    assert_eq!(asking(json!({"default_response": secret})), found("/default_response"));
    assert_eq!(asking(json!({"question_yo": secret})), found("/question_yo"));
    let progress = json!({"progress": {"percent": 1, "description": secret}});
    assert_eq!(asking(progress), found("/progress/description"));
    let password = json!({"default_response": "password=hunter2hunter2"});
    assert_eq!(asking(password), [("AAEP-10.T5-B1", "/default_response".to_owned())]);
    let mut silent = json!({"localization_hints": {}, "type": "aaep:agent.progress.updated",
        "progress": {"description": "Half."}});
    silent["chunk"] = "".into();
    let found = codes(false, silent);
    assert!(found.contains(&("AAEP-11.1-R1", "/localization_hints".into())), "{found:?}");
}

#[test]
fn text_that_begins_inside_a_character_is_told_from_text_of_other_scripts() {
    for (text, follows, broken) in [
        ("\u{301} is next", false, true),
        ("\u{FE0F} is next", false, true),
        ("\u{200D}\u{1F33E} is next", true, true),
        ("\u{1F3FD} is next", true, true),
        ("\u{1F3FD} is next", false, false),
        ("é", true, false),
        ("हिन्दी", true, false),
        ("👩", true, false),
        ("", true, false),
    ] {
        assert_eq!(begins_inside(text, follows), broken, "{text:?}");
    }
}

#[test]
fn only_symbols_break_off_before_what_is_joined() {
    assert!(ends_inside("the 👩\u{200D}"));
    assert!(ends_inside("the ❤\u{FE0F}\u{200D}"));
    for whole in ["", "\u{200D}", "ന്\u{200D}", "ه\u{200D}", "👩"] {
        assert!(!ends_inside(whole), "{whole:?}");
    }
}

#[test]
fn markup_of_languages_is_told_from_talk_about_markup() {
    for text in [
        "the <span lang=\"de\">Gießkanne</span>",
        "the <i class='x' lang='de'>Gießkanne</i>",
        "<lang xml:lang=\"de-DE\">Gießkanne</lang>",
    ] {
        assert!(is_marked(text), "{text}");
    }
    for text in [
        "",
        "a < b and lang= > c",
        "<span class=\"x\">lang=de</span>",
        "Add <html lang=\"en\"> to the page.",
        "Write `<span lang=\"de\">` here.",
        "<span lang=",
        "<script language=\"x\">",
    ] {
        assert!(!is_marked(text), "{text}");
    }
}

#[test]
fn decomposed_is_only_what_has_a_character_of_its_own() {
    for text in ["cafe\u{301}", "N\u{303}", "c\u{327}a", "u\u{30A}"] {
        assert!(is_decomposed(text), "{text}");
    }
    for text in ["café", "plain", "ẹ\u{300}", "q\u{301}", "T\u{308}", "\u{301}", "e \u{301}"] {
        assert!(!is_decomposed(text), "{text}");
    }
}

fn codes(strict: bool, extra: Value) -> Vec<(&'static str, String)> {
    let mut event = json!({
        "@context": "https://aaep-protocol.org/context/v1", "aaep_version": "1.0.0",
        "type": "aaep:agent.output.streaming", "event_id": "evt_1", "session_id": "sess_1",
        "timestamp": "2026-01-01T00:00:00Z", "producer": {"agent_id": "demo"},
        "localization_hints": {"primary_language": "en"}, "position": 4, "complete": false, "chunk": "",
    });
    let Value::Object(extra) = extra else { panic!("an object is needed") };
    event.as_object_mut().unwrap().extend(extra);
    let mut checker = crate::check::Checker::new(Protocol::Aaep);
    if strict {
        checker = checker.strict();
    }
    let found = checker.alone(event.to_string().as_bytes());
    let found = found.into_iter().filter(|finding| finding.rule.code != "AAEP-3.6-R2");
    found.map(|finding| (finding.rule.code, finding.pointer)).collect()
}

#[test]
fn chunks_are_judged_by_what_they_are_a_piece_of() {
    let broken = [("AAEP-11.3.3-R2", "/chunk".to_owned())];
    assert_eq!(codes(false, json!({"chunk": "\u{1F3FD}"})), broken);
    assert_eq!(codes(false, json!({"chunk": "\u{1F3FD}", "position": 0})), []);
    assert_eq!(codes(false, json!({"chunk": "👩\u{200D}"})), broken);
    assert_eq!(codes(false, json!({"chunk": "👩\u{200D}", "complete": true})), []);
    let marked = "the <em lang=\"de\">Kanne</em>";
    assert_eq!(codes(false, json!({"chunk": marked})), [("AAEP-11.5.2-R1", "/chunk".into())]);
    let html = json!({"chunk": marked, "content_type": "text/html"});
    assert_eq!(codes(false, html), []);
    assert_eq!(codes(false, json!({"chunk": "cafe\u{301}"})), []);
    assert_eq!(codes(true, json!({"chunk": "cafe\u{301}"})), [("AAEP-11.3.2-R1", "/chunk".into())]);
}

#[test]
fn what_others_wrote_may_contain_markup_but_no_secret() {
    let asked = |text: &str| {
        codes(false, json!({"type": "aaep:agent.session.started", "summary_normal": "Hi.", "request_text": text}))
            .into_iter()
            .filter(|(code, _)| *code != "AAEP-3.5-R2")
            .collect::<Vec<_>>()
    };
    assert_eq!(asked("Translate <p lang=\"de\">Kanne</p>"), []);
    let secret = asked("Use sk-0123456789abcdef0123456789abcdef");
    assert_eq!(secret, [("AAEP-10.T5-R1", "/request_text".into())]);
}
