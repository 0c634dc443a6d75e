use serde_json::json;

use super::*;

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
        ],
    ],
    closed: true,
};

const TEXT: Shape =
    Shape { parts: &[&[must("type", Kind::Some), must("text", STRING)]], closed: true };

fn issues(value: Value) -> Vec<(What, String)> {
    let Value::Object(object) = value else { panic!("an object is needed") };
    compare(&SHAPE, &object).into_iter().map(|issue| (issue.what, issue.pointer)).collect()
}

#[test]
fn a_fitting_object_has_no_issue() {
    let object = json!({"name": "äöü", "level": 9.0, "share": 1, "mode": "on", "tags": ["a"],
        "part": {"type": "text", "text": ""}});
    assert_eq!(issues(object), []);
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
        (json!({"name": "a", "a/b~c": 1}), What::Foreign, "/a~1b~0c"),
    ] {
        assert_eq!(issues(object.clone()), [(what, pointer.to_owned())], "{object}");
    }
}

#[test]
fn foreign_text_is_short_and_harmless_in_messages() {
    assert_eq!(quote("a\u{1b}[31m\u{202e}\n"), "\"a\\u{1b}[31m\\u{202e}\\n\"");
    assert_eq!(quote(&"x".repeat(500)).chars().count(), 67);
}
