use serde_json::json;

use super::*;

fn made(transform: &str, value: Value) -> Option<Value> {
    let node = super::super::tree::parse(transform).unwrap();
    let mut problems = Problems::default();
    let transforms: Vec<Transform> =
        node.one_or_more().iter().filter_map(|node| parse(node, &mut problems)).collect();
    assert!(problems.0.is_empty(), "{transform}: {problems:?}");
    apply(&transforms, value).map(|made| made.value)
}

#[test]
fn each_transform_does_what_it_says() {
    for (transform, value, wanted) in [
        ("lowercase", json!("ÄB"), Some(json!("äb"))),
        ("trim", json!(" a "), Some(json!("a"))),
        ("trim", json!(1), None),
        ("to_string", json!({"a": 1}), Some(json!(r#"{"a":1}"#))),
        ("to_string", json!("x"), Some(json!("x"))),
        ("to_number", json!(" 12 "), Some(json!(12))),
        ("to_number", json!("1.5"), Some(json!(1.5))),
        ("to_number", json!("NaN"), None),
        ("to_number", json!("x"), None),
        ("bool", json!("Yes"), Some(json!(true))),
        ("bool", json!(0), Some(json!(false))),
        ("bool", json!("maybe"), None),
        ("json_parse", json!(r#"{"a":1}"#), Some(json!({"a": 1}))),
        ("json_parse", json!("{"), Some(json!("{"))),
        ("json_parse", json!([1]), Some(json!([1]))),
        ("json_string", json!("a"), Some(json!("\"a\""))),
        ("s_to_ms", json!(1.5), Some(json!(1500))),
        ("s_to_ms", json!("0.0001"), Some(json!(0.1))),
        ("epoch_ms_to_rfc3339", json!(0), Some(json!("1970-01-01T00:00:00.000Z"))),
        ("epoch_ms_to_rfc3339", json!(1e300), None),
        ("epoch_s_to_rfc3339", json!("1.5"), Some(json!("1970-01-01T00:00:01.500Z"))),
        ("basename", json!("/a/b.rs/"), Some(json!("b.rs"))),
        ("basename", json!("C:\\x\\y"), Some(json!("y"))),
        ("basename", json!("/"), None),
        (
            "text_parts",
            json!([{"text": "a"}, {"thinking": "b"}, {"x": 1}, "c"]),
            Some(json!("a\nb\nc")),
        ),
        ("text_parts", json!("a"), Some(json!("a"))),
        ("text_parts", json!([{"x": 1}]), None),
        ("[last, 'get:/c', text_parts]", json!([{"c": 1}, {"c": ["x"]}]), Some(json!("x"))),
        ("first", json!([1, 2]), Some(json!(1))),
        ("first", json!([]), None),
        ("count", json!({"a": 1}), Some(json!(1))),
        ("values", json!({"b": 1, "a": 2}), Some(json!([1, 2]))),
        ("'join:; '", json!([["a"], [1, null]]), Some(json!("a; 1"))),
        ("join", json!(["a", "b"]), Some(json!("a, b"))),
        ("truncate:2", json!("äbc"), Some(json!("äb"))),
        ("{map: {a: 1, '*': 2}}", json!("a"), Some(json!(1))),
        ("{map: {a: 1, '*': 2}}", json!("b"), Some(json!(2))),
        ("'map:{a: b}'", json!("a"), Some(json!("b"))),
        ("'map:{a: b}'", json!("c"), None),
        ("'map:{true: b}'", json!(true), Some(json!("b"))),
        ("'regex:^a:(.):x$:1'", json!("a:b:x"), Some(json!("b"))),
        ("'regex:(?<n>.)$:n'", json!("ab"), Some(json!("b"))),
        ("'regex:x:0'", json!("ab"), None),
        ("{regex: '^(a):1'}", json!("ab"), Some(json!("a"))),
        ("{truncate: 1}", json!("ab"), Some(json!("a"))),
    ] {
        assert_eq!(made(transform, value.clone()), wanted, "{transform} of {value}");
    }
}

#[test]
fn a_cut_text_tells_how_long_it_was() {
    let cut = [Transform::Truncate(4), Transform::Trim, Transform::Truncate(2)];
    let made = apply(&cut, json!("abcdef")).unwrap();
    assert_eq!((made.value, made.cut_from), (json!("ab"), Some(6)));
    assert_eq!(apply(&[Transform::Truncate(6)], json!("abcdef")).unwrap().cut_from, None);
}

#[test]
fn wrong_transforms_are_named() {
    for (transform, wanted) in [
        ("lowercas", "unknown transform `lowercas` at line 1, column 1: did you mean `lowercase`?"),
        ("trim:x", "unknown transform `trim`"),
        ("get:x", "needs a JSON Pointer"),
        ("truncate:x", "needs a number of characters"),
        ("truncate", "needs a number of characters"),
        ("'map:x'", "needs a mapping"),
        ("'regex:a'", "`regex:PATTERN:GROUP`"),
        ("'regex:(:1'", "bad regex `(`"),
        ("'regex:a:1'", "has no such group"),
        ("'regex:(?<x>a):y'", "has no such group"),
        ("7", "unknown transform `7`"),
        ("{map: {a: b}, trim: x}", "unknown transform"),
    ] {
        let node = super::super::tree::parse(transform).unwrap();
        let mut problems = Problems::default();
        assert!(parse(&node, &mut problems).is_none(), "{transform}");
        let found = problems.0[0].to_string();
        assert!(found.contains(wanted), "{transform}: {found}");
    }
}
