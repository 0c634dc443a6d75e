use serde_json::{Value, json};

use super::{Field, Fields, Prepared};

#[test]
fn both_forms_of_a_field_say_the_same() {
    let mut fields = Fields::of([
        ("word", Field::Word("plain")),
        ("text", "with \"quotes\", a\nline and 🌊".into()),
        ("shared", Field::Shared("x\u{1}".into())),
        ("count", u64::MAX.into()),
        ("flag", true.into()),
        ("empty", Fields::default().into()),
        ("list", Field::List(vec![false.into(), Fields::of([("a", 1.into())]).into()])),
        ("prepared", Field::Prepared(Prepared::new(json!({ "b": [1.5, null] })).into())),
        ("value", json!([{ "c": "d" }]).into()),
    ]);
    let mut bytes = Vec::new();
    fields.write_object(&mut bytes);
    assert!(bytes.len() <= fields.most_bytes());
    let read: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(read, Value::Object(fields.clone().into_map()));
    assert_eq!(String::from_utf8(bytes).unwrap(), read.to_string());
    assert_eq!(1 + fields.depth(), super::depth(&read));
    assert!(!fields.redact());
}

#[test]
fn credentials_are_taken_out_wherever_they_stand() {
    let secret = "password=hunter2";
    let mut fields = Fields::of([
        ("text", secret.into()),
        ("shared", Field::Shared(secret.into())),
        ("list", Field::List(vec![Fields::of([("a", secret.into())]).into()])),
        ("prepared", Field::Prepared(Prepared::new(json!({ "password": "x" })).into())),
        ("value", json!([secret]).into()),
    ]);
    assert!(fields.redact());
    let shown = Value::Object(fields.into_map());
    assert_eq!(
        shown,
        json!({
            "text": "[redacted]", "shared": "[redacted]", "list": [{ "a": "[redacted]" }],
            "prepared": { "password": "[redacted]" }, "value": ["[redacted]"],
        })
    );
}
