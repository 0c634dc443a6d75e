use super::*;

fn pair(schema: &Value) -> Option<(Value, Value)> {
    ResponseSchema::new(schema).yes_no()
}

fn payload(schema: &Value, text: &str) -> Option<Value> {
    ResponseSchema::new(schema).payload(text)
}

fn object(members: &Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": members, "required": required })
}

#[test]
fn an_obvious_yes_and_no_is_found_and_nothing_else() {
    let boolean = json!({ "type": "boolean" });
    assert_eq!(pair(&boolean), Some((json!(true), json!(false))));
    let approved = object(&json!({ "approved": boolean, "editedArgs": {} }), &["approved"]);
    let both = (json!({ "approved": true }), json!({ "approved": false }));
    assert_eq!(pair(&approved), Some(both));
    let words = json!({ "enum": ["No", "Yes"] });
    assert_eq!(pair(&words), Some((json!("Yes"), json!("No"))));
    let only = object(&json!({ "go": { "enum": ["allow", "deny"] } }), &["go"]);
    assert_eq!(pair(&only), Some((json!({ "go": "allow" }), json!({ "go": "deny" }))));
    let referred = json!({ "$ref": "#/$defs/yes", "$defs": { "yes": boolean } });
    assert_eq!(pair(&referred), Some((json!(true), json!(false))));

    let reason = object(&json!({ "approved": boolean, "reason": {} }), &["approved", "reason"]);
    for unclear in [
        json!({}),
        json!({ "type": "string" }),
        json!({ "enum": ["yes", "no", "later"] }),
        json!({ "enum": ["red", "blue"] }),
        json!({ "type": ["boolean", "string"] }),
        reason,
        json!(false),
        json!({ "type": "boolean", "not": {} }),
        json!({ "$ref": "#" }),
    ] {
        assert_eq!(pair(&unclear), None, "{unclear}");
    }
}

#[test]
fn a_text_becomes_the_payload_that_fits() {
    let count = json!({ "type": "integer", "minimum": 1, "maximum": 5 });
    let cases = [
        (json!({ "type": "string" }), "5", Some(json!("5"))),
        (count.clone(), "5", Some(json!(5))),
        (count.clone(), "6", None),
        (count.clone(), "five", None),
        (json!({ "type": "boolean" }), "no", Some(json!(false))),
        (json!({ "enum": ["eu", "us"] }), "EU", Some(json!("eu"))),
        (json!({ "oneOf": [{ "const": 1, "title": "One" }] }), "one", Some(json!(1))),
        (
            object(&json!({ "name": { "type": "string" } }), &["name"]),
            "Ada",
            Some(json!({ "name": "Ada" })),
        ),
        (
            object(&json!({ "count": count }), &["count"]),
            r#"{"count": 2}"#,
            Some(json!({ "count": 2 })),
        ),
        (object(&json!({ "a": {}, "b": {} }), &["a", "b"]), "x", None),
        (json!({}), r#"{"a": 1}"#, Some(json!({ "a": 1 }))),
        (json!({}), "words", Some(json!("words"))),
        (json!(false), "anything", None),
        (json!({ "enum": [] }), "anything", None),
        (json!({ "type": "string", "maxLength": 3 }), "long", None),
    ];
    for (schema, text, expected) in cases {
        assert_eq!(payload(&schema, text), expected, "{schema} {text:?}");
    }
}

#[test]
fn what_does_not_fit_is_told_with_its_place() {
    let schema = json!({
        "type": "object", "required": ["name"], "additionalProperties": false,
        "properties": {
            "name": { "type": "string", "minLength": 2 },
            "tags": { "type": "array", "items": { "enum": ["a", "b"] }, "maxItems": 2 },
            "either": { "anyOf": [{ "type": "null" }, { "type": "number" }] },
        },
    });
    let wrong = |value: Value| ResponseSchema::new(&schema).fits(&value).unwrap_err();
    assert_eq!(wrong(json!("x")), "the answer is not of type object");
    assert_eq!(wrong(json!({})), "/name is missing");
    assert_eq!(wrong(json!({ "name": "x" })), "/name is less than minLength allows");
    assert_eq!(wrong(json!({ "name": "xy", "more": 1 })), "/more is not known");
    assert_eq!(
        wrong(json!({ "name": "xy", "tags": ["a", "c"] })),
        "/tags/1 is none of the values that are taken",
    );
    assert_eq!(
        wrong(json!({ "name": "xy", "either": "x" })),
        "/either fits none of the alternatives",
    );
    let good = json!({ "name": "xy", "tags": ["a"], "either": null });
    assert_eq!(ResponseSchema::new(&schema).fits(&good), Ok(()));
}

#[test]
fn a_word_to_the_agent_goes_where_the_schema_has_a_place_for_it() {
    let boolean = json!({ "type": "boolean" });
    let told = object(&json!({ "approved": boolean, "reason": { "type": "string" } }), &[]);
    let silent = object(&json!({ "approved": boolean }), &[]);
    let no = json!({ "approved": false });
    let with =
        |schema: &Value| ResponseSchema::new(schema).with_message(no.clone(), Some("too late"));
    assert_eq!(with(&told), json!({ "approved": false, "reason": "too late" }));
    assert_eq!(with(&silent), no);
}

#[test]
fn a_schema_that_refers_to_itself_comes_to_an_end() {
    let schema = json!({ "type": "object", "properties": { "in": { "$ref": "#" } } });
    let mut deep = json!({});
    for _ in 0..100 {
        deep = json!({ "in": deep });
    }
    assert!(ResponseSchema::new(&schema).fits(&deep).unwrap_err().contains("too deeply"));
    assert_eq!(pair(&schema), None);
}
