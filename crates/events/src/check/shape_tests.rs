use serde_json::{Value, json};

use super::*;

/// A field that may be there.
const fn may(name: &'static str, kind: Kind) -> Field {
    Field { name, required: false, kind, about: "" }
}

const SHAPE: Shape = Shape {
    parts: &[
        &[
            must("name", Kind::Text { min: 1, max: 3 }),
            may("level", Kind::Integer { min: 0, max: 9 }),
            may("share", Kind::Number { min: 0.0, max: 1.0 }),
        ],
        &[
            may("mode", Kind::Word(&["on", "off"])),
            may("tags", Kind::List { min: 1, max: 2, distinct: true, item: &STRING }),
            may("part", Kind::Union { tag: "type", members: &[("text", TEXT)] }),
            may("levels", Kind::List { min: 0, max: 9, distinct: true, item: &Kind::Some }),
            may("answer", Kind::Either(&[Kind::Text { min: 1, max: 9 }, Kind::Bool])),
            may("open", Kind::RecordAnd(&OPEN, &Kind::Object)),
        ],
    ],
    closed: true,
};

const OPEN: Shape = Shape { parts: &[&[must("name", STRING)]], closed: false };

const TEXT: Shape =
    Shape { parts: &[&[must("type", Kind::Some), must("text", STRING)]], closed: true };

fn issues(value: &Value) -> Vec<(What, String)> {
    let bytes = value.to_string();
    let mut parser = crate::json::Parser::default();
    let document = parser.parse(bytes.as_bytes()).unwrap();
    let issues = closely(&SHAPE, document.root());
    // What fits at first sight fits at the second.
    assert!(issues.is_empty() || !fits::record(&SHAPE, document.root(), &mut Known::default()));
    issues.into_iter().map(|issue| (issue.what, issue.pointer)).collect()
}

#[test]
fn a_fitting_object_has_no_issue() {
    let object = json!({"name": "äöü", "level": 9.0, "share": 1, "mode": "on", "tags": ["a"],
        "part": {"type": "text", "text": ""}, "levels": [2, "2", 3], "answer": false,
        "open": {"name": "", "more": {}}});
    assert_eq!(issues(&object), []);
}

#[test]
fn each_way_of_not_fitting_is_told_apart() {
    for (object, what, pointer) in [
        (json!({}), What::Missing, "/name"),
        (json!({"name": null}), What::Null, "/name"),
        (json!({"name": 1}), What::Type, "/name"),
        (json!({"name": ""}), What::Value, "/name"),
        (json!({"name": "abcd"}), What::Value, "/name"),
        (json!({"name": "a", "level": 1.5}), What::Type, "/level"),
        (json!({"name": "a", "level": 10}), What::Value, "/level"),
        (json!({"name": "a", "level": u64::MAX}), What::Value, "/level"),
        (json!({"name": "a", "share": 1.1}), What::Value, "/share"),
        (json!({"name": "a", "mode": "half"}), What::Word, "/mode"),
        (json!({"name": "a", "tags": []}), What::Value, "/tags"),
        (json!({"name": "a", "tags": ["a", "a"]}), What::Value, "/tags/1"),
        (json!({"name": "a", "tags": ["a", 2]}), What::Type, "/tags/1"),
        (json!({"name": "a", "part": {"type": "smell"}}), What::Member, "/part/type"),
        (json!({"name": "a", "part": {"type": "text"}}), What::Missing, "/part/text"),
        (json!({"name": "a", "levels": [2, 2.0]}), What::Value, "/levels/1"),
        (json!({"name": "a", "answer": ""}), What::Value, "/answer"),
        (json!({"name": "a", "answer": 1}), What::Type, "/answer"),
        (json!({"name": "a", "answer": null}), What::Null, "/answer"),
        (json!({"name": "a", "open": {}}), What::Missing, "/open/name"),
        (json!({"name": "a", "open": {"name": 1}}), What::Type, "/open/name"),
        (json!({"name": "a", "open": {"name": "", "more": 1}}), What::Type, "/open/more"),
        (json!({"name": "a", "a/b~c": 1}), What::Foreign, "/a~1b~0c"),
    ] {
        assert_eq!(issues(&object), [(what, pointer.to_owned())], "{object}");
    }
}

#[test]
fn foreign_text_is_short_and_harmless_in_messages() {
    assert_eq!(quote("a\u{1b}[31m\u{202e}\n"), "\"a\\u{1b}[31m\\u{202e}\\n\"");
    assert_eq!(quote(&"x".repeat(500)).chars().count(), 67);
}

fn messages(bytes: &str) -> Vec<(String, String)> {
    let mut parser = crate::json::Parser::default();
    let document = parser.parse(bytes.as_bytes()).unwrap();
    let issues = closely(&SHAPE, document.root()).into_iter();
    issues.map(|issue| (issue.pointer, issue.message)).collect()
}

#[test]
fn pointers_are_exact_whatever_the_key_is() {
    for key in ["a\u{1b}[31m", "a\nb", "\u{202e}", &"k".repeat(4096)] {
        let bytes = json!({"name": "a", key: 1}).to_string();
        let (pointer, _) = messages(&bytes).remove(0);
        assert_eq!(pointer, format!("/{key}"));
        let mut parser = crate::json::Parser::default();
        let document = parser.parse(bytes.as_bytes()).unwrap();
        assert_eq!(document.root().pointer(&pointer).and_then(View::as_i64), Some(1));
    }
    assert_eq!(pointer(&"k".repeat(100_000)).len(), 4097);
}

#[test]
fn what_is_out_of_range_is_told_on_its_side() {
    for (field, message) in [
        (r#""level": -1"#, "-1 is below 0"),
        (r#""level": 10"#, "10 is above 9"),
        (r#""level": 18446744073709551615"#, "18446744073709551615 is above 9"),
        (r#""share": -0.5"#, "-0.5 is below 0"),
        (r#""share": 1.5"#, "1.5 is above 1"),
        (r#""tags": []"#, "0 entries, where 1 are the fewest"),
        (r#""tags": ["a", "b", "c"]"#, "3 entries, where 2 are the most"),
    ] {
        let found = messages(&format!(r#"{{"name": "a", {field}}}"#));
        assert_eq!(found.iter().map(|(_, message)| message).collect::<Vec<_>>(), [message]);
    }
    let long = messages(&format!(r#"{{"name": "a", "level": 1{}}}"#, "0".repeat(200)));
    assert_eq!(long[0].1, format!("1{}… is above 9", "0".repeat(31)));
}
