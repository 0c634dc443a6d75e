use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::check::with_document;

fn patched(mut document: Value, patch: &Value) -> Result<Value, Reason> {
    let before = document.to_string();
    match with_document(patch, |patch| apply(&mut document, patch.root())) {
        Ok(()) => Ok(document),
        Err(error) => {
            assert_eq!(document.to_string(), before, "{patch}");
            Err(error.reason)
        }
    }
}

#[test]
fn every_operation_does_what_the_rfc_says() {
    let cases = [
        (json!({"a": 1}), json!([]), json!({"a": 1})),
        (json!({}), json!([{"op": "add", "path": "/a", "value": null}]), json!({"a": null})),
        (json!({"a": 1}), json!([{"op": "add", "path": "/a", "value": 2}]), json!({"a": 2})),
        (json!({}), json!([{"op": "add", "path": "/", "value": 1}]), json!({"": 1})),
        (json!([1, 3]), json!([{"op": "add", "path": "/1", "value": 2}]), json!([1, 2, 3])),
        (json!([1]), json!([{"op": "add", "path": "/1", "value": 2}]), json!([1, 2])),
        (json!([1]), json!([{"op": "add", "path": "/-", "value": 2}]), json!([1, 2])),
        (json!([]), json!([{"op": "add", "path": "/0", "value": 2}]), json!([2])),
        (json!({"a": 1}), json!([{"op": "add", "path": "", "value": [0]}]), json!([0])),
        (json!(null), json!([{"op": "add", "path": "", "value": {}}]), json!({})),
        (
            json!({"a": 1}),
            json!([{"op": "replace", "path": "/a", "value": "b"}]),
            json!({"a": "b"}),
        ),
        (json!([1, 2]), json!([{"op": "replace", "path": "/1", "value": 3}]), json!([1, 3])),
        (json!({"a": 1}), json!([{"op": "replace", "path": "", "value": false}]), json!(false)),
        (json!({"a": 1, "b": 2}), json!([{"op": "remove", "path": "/a"}]), json!({"b": 2})),
        (json!([1, 2]), json!([{"op": "remove", "path": "/0"}]), json!([2])),
        (json!({"a": 1}), json!([{"op": "remove", "path": ""}]), json!(null)),
        (json!({"a": 1}), json!([{"op": "move", "from": "/a", "path": "/b"}]), json!({"b": 1})),
        (json!([1, 2, 3]), json!([{"op": "move", "from": "/0", "path": "/2"}]), json!([2, 3, 1])),
        (json!({"a": {"b": 1}}), json!([{"op": "move", "from": "/a/b", "path": ""}]), json!(1)),
        (json!({"a": 1}), json!([{"op": "move", "from": "/a", "path": "/a"}]), json!({"a": 1})),
        (
            json!({"a": {"b": 1}, "ab": 2}),
            json!([{"op": "move", "from": "/a", "path": "/ab"}]),
            json!({"ab": {"b": 1}}),
        ),
        (
            json!({"a": [1]}),
            json!([{"op": "copy", "from": "/a", "path": "/b"}, {"op": "add", "path": "/b/-", "value": 2}]),
            json!({"a": [1], "b": [1, 2]}),
        ),
        (
            json!({"a": 1}),
            json!([{"op": "copy", "from": "", "path": "/b"}]),
            json!({"a": 1, "b": {"a": 1}}),
        ),
        (json!({"a": 1}), json!([{"op": "copy", "from": "/a", "path": ""}]), json!(1)),
        (
            json!({"a/b": 1, "m~n": 2, "~1": 3}),
            json!([
                {"op": "test", "path": "/a~1b", "value": 1},
                {"op": "remove", "path": "/m~0n"},
                {"op": "test", "path": "/~01", "value": 3},
            ]),
            json!({"a/b": 1, "~1": 3}),
        ),
        // Members that the operation does not have are none of its business.
        (
            json!({}),
            json!([{"op": "add", "path": "/a", "value": 1, "note": "x", "from": 4}]),
            json!({"a": 1}),
        ),
    ];
    for (document, patch, expected) in cases {
        assert_eq!(patched(document, &patch), Ok(expected), "{patch}");
    }
}

#[test]
fn what_cannot_be_done_fails_for_its_reason() {
    let add = |path: &str| json!({"op": "add", "path": path, "value": 1});
    let cases = [
        (json!([1]), add("/2"), Reason::Index),
        (json!([1]), add("/x"), Reason::Index),
        (json!([1, 2]), add("/01"), Reason::Index),
        (json!([1]), add("/"), Reason::Index),
        (json!([1]), add("/+0"), Reason::Index),
        (json!([1]), add("/99999999999999999999999"), Reason::Index),
        (json!({}), add("/a/b"), Reason::Missing),
        (json!({"a": "text"}), add("/a/b"), Reason::Missing),
        (json!([[1]]), add("/-/0"), Reason::Missing),
        (json!(null), add("/a"), Reason::Missing),
        (json!("text"), add("/a"), Reason::Missing),
        (json!({}), add("a"), Reason::Pointer),
        (json!({}), add("/~2"), Reason::Pointer),
        (json!({}), add("/~"), Reason::Pointer),
        (json!({}), add("/__proto__"), Reason::Prototype),
        (json!({}), add("/__proto__/x"), Reason::Prototype),
        (json!({"constructor": {}}), add("/constructor/prototype"), Reason::Prototype),
        (json!([1]), json!({"op": "replace", "path": "/-", "value": 1}), Reason::Missing),
        (json!([1, 2]), json!({"op": "replace", "path": "/01", "value": 1}), Reason::Missing),
        (json!({}), json!({"op": "replace", "path": "/a", "value": 1}), Reason::Missing),
        (json!([1]), json!({"op": "remove", "path": "/-"}), Reason::Index),
        (json!([1]), json!({"op": "remove", "path": "/1"}), Reason::Index),
        (json!({}), json!({"op": "remove", "path": "/a"}), Reason::Missing),
        (json!({"a": 1}), json!({"op": "remove", "path": "/a/b"}), Reason::Missing),
        (json!({}), json!({"op": "copy", "from": "/a", "path": "/b"}), Reason::Missing),
        (json!([1]), json!({"op": "copy", "from": "/0", "path": "/2"}), Reason::Index),
        (
            json!({"a": 1}),
            json!({"op": "copy", "from": "/__proto__", "path": ""}),
            Reason::Prototype,
        ),
        (json!({}), json!({"op": "move", "from": "/a", "path": "/b"}), Reason::Missing),
        (json!({"a": 1}), json!({"op": "move", "from": "/a", "path": "/b/c"}), Reason::Missing),
        (json!([1, 2]), json!({"op": "move", "from": "/0", "path": "/2"}), Reason::Index),
        (json!({"a": {}}), json!({"op": "move", "from": "/a", "path": "/a/b"}), Reason::Itself),
        (json!([{}, {}]), json!({"op": "move", "from": "/0", "path": "/0/x"}), Reason::Itself),
        (json!({"a": 1}), json!({"op": "move", "from": "", "path": "/a"}), Reason::Itself),
        (json!({"a": 1}), json!({"op": "test", "path": "/a", "value": 2}), Reason::Differs),
        (json!({"a": 1}), json!({"op": "test", "path": "/b", "value": null}), Reason::Missing),
        (json!({"a": 1}), json!({"op": "test", "path": "/a/b", "value": 1}), Reason::Missing),
        (json!({}), json!({"op": "add", "path": "/a"}), Reason::Operation),
        (json!({}), json!({"op": "test", "path": ""}), Reason::Operation),
        (json!({}), json!({"op": "move", "path": "/a"}), Reason::Operation),
        (json!({}), json!({"op": "merge", "path": "/a", "value": 1}), Reason::Operation),
        (json!({}), json!({"path": "/a", "value": 1}), Reason::Operation),
        (json!({}), json!(7), Reason::Operation),
    ];
    for (document, operation, reason) in cases {
        assert_eq!(patched(document, &json!([operation])), Err(reason), "{operation}");
    }
    assert_eq!(patched(json!({}), &json!({"op": "add"})), Err(Reason::Operation));
}

#[test]
fn a_test_compares_what_values_mean() {
    let holds = |value: &str, expected: &str| {
        let patch = format!(r#"[{{"op": "test", "path": "", "value": {expected}}}]"#);
        let mut document = serde_json::from_str(value).unwrap();
        let mut parser = crate::json::Parser::default();
        apply(&mut document, parser.parse(patch.as_bytes()).unwrap().root()).is_ok()
    };
    for (value, expected) in [
        ("1", "1.0"),
        ("1.0", "1"),
        ("-0", "0"),
        ("1e2", "100"),
        ("18446744073709551615", "18446744073709551615"),
        (r#"{"a": 1, "b": [2, {}]}"#, r#"{"b": [2.0, {}], "a": 1}"#),
        (r#"{"a": 1}"#, r#"{"a": 2, "a": 1}"#),
        (r#""é""#, r#""\u00e9""#),
        ("null", "null"),
    ] {
        assert!(holds(value, expected), "{value} {expected}");
    }
    for (value, expected) in [
        ("1", "2"),
        ("1", r#""1""#),
        ("9007199254740993", "9007199254740992"),
        ("0", "false"),
        ("null", "false"),
        ("[1, 2]", "[2, 1]"),
        ("[1]", "[1, 2]"),
        ("[]", "{}"),
        (r#"{"a": 1}"#, r#"{"a": 1, "b": 2}"#),
        (r#"{"a": 1, "b": 2}"#, r#"{"a": 1}"#),
        (r#"{"a": 1}"#, r#"{"b": 1}"#),
    ] {
        assert!(!holds(value, expected), "{value} {expected}");
    }
}

#[test]
fn an_error_names_the_operation_and_the_pointer() {
    let patch = json!([{"op": "test", "path": "", "value": {}}, {"op": "move", "from": "/x", "path": "/y"}]);
    let error = with_document(&patch, |patch| apply(&mut json!({}), patch.root())).unwrap_err();
    let expected = PatchError { index: 1, pointer: "/x".to_owned(), reason: Reason::Missing };
    assert_eq!(error, expected);
    assert_eq!(error.to_string(), r#"operation 1 at "/x": nothing is there"#);
}

#[test]
fn copying_cannot_blow_up_a_document() {
    let mut document = json!({"text": "x".repeat(1000)});
    let double = json!({"op": "copy", "from": "", "path": "/again"});
    let swap = json!({"op": "copy", "from": "", "path": "/once"});
    let patch = Value::Array((0..20).flat_map(|_| [double.clone(), swap.clone()]).collect());
    let error = with_document(&patch, |patch| apply(&mut document, patch.root())).unwrap_err();
    assert_eq!(error.reason, Reason::Size);
    assert_eq!(document, json!({"text": "x".repeat(1000)}));
}

#[test]
fn moving_cannot_nest_a_document_without_end() {
    let deeper = json!([
        {"op": "add", "path": "/b", "value": {}},
        {"op": "move", "from": "/a", "path": "/b/a"},
        {"op": "move", "from": "/b", "path": "/a"},
    ]);
    let mut document = json!({"a": {}});
    let failed = with_document(&deeper, |deeper| {
        (0..200).find_map(|_| apply(&mut document, deeper.root()).err())
    });
    assert_eq!(failed.map(|error| error.reason), Some(Reason::Depth));
    assert_eq!(height(&document), DEEPEST);
    let path = "/a".repeat(DEEPEST - 1);
    let last = json!([{"op": "add", "path": format!("{path}/x"), "value": 1}]);
    assert!(patched(document.clone(), &last).is_ok());
    let beyond = json!([{"op": "add", "path": format!("{path}/x"), "value": []}]);
    assert_eq!(patched(document, &beyond), Err(Reason::Depth));
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (0..3).prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec(("[a-e]", inner), 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// Pointers that lead somewhere often enough.
fn pointer() -> impl Strategy<Value = String> {
    let token =
        prop_oneof![6 => "[a-e]", 4 => "[0-3]", 1 => Just("-".to_owned()), 1 => "[~0-1/]{0,2}"];
    prop::collection::vec(token, 0..3)
        .prop_map(|tokens| tokens.iter().fold(String::new(), |path, token| path + "/" + token))
}

fn operation() -> impl Strategy<Value = Value> {
    let op = prop::sample::select(vec!["add", "add", "remove", "replace", "move", "copy", "test"]);
    (op, pointer(), pointer(), value()).prop_map(
        |(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}),
    )
}

/// The same on copies, without a log: what the RFC says, step by step.
fn naive(document: &Value, operation: &Value) -> Option<Value> {
    let text = |name: &str| operation[name].as_str().unwrap();
    let (path, from) = (text("path"), text("from"));
    let add = |mut document: Value, value: Value| {
        let Some((parent, name)) = path.rsplit_once('/') else { return Some(value) };
        match document.pointer_mut(parent)? {
            Value::Object(map) => {
                drop(map.insert(name.replace("~1", "/").replace("~0", "~"), value));
            }
            Value::Array(items) => {
                let digits = name == "0" || !name.starts_with('0') && !name.starts_with('+');
                let at =
                    if name == "-" { items.len() } else { name.parse().ok().filter(|_| digits)? };
                if at > items.len() {
                    return None;
                }
                items.insert(at, value);
            }
            _ => return None,
        }
        Some(document)
    };
    let remove = |path: &str| {
        let mut document = document.clone();
        document.pointer(path)?;
        let Some((parent, name)) = path.rsplit_once('/') else { return Some(Value::Null) };
        match document.pointer_mut(parent)? {
            Value::Object(map) => drop(map.remove(&name.replace("~1", "/").replace("~0", "~"))),
            Value::Array(items) => drop(items.remove(name.parse().ok()?)),
            _ => return None,
        }
        Some(document)
    };
    let value = operation["value"].clone();
    match text("op") {
        "add" => add(document.clone(), value),
        "remove" => remove(path),
        "replace" => {
            let mut document = document.clone();
            *document.pointer_mut(path)? = value;
            Some(document)
        }
        "copy" => add(document.clone(), document.pointer(from)?.clone()),
        "move" if path == from => document.pointer(from).map(|_| document.clone()),
        "move" if path.starts_with(&format!("{from}/")) => None,
        "move" => add(remove(from)?, document.pointer(from)?.clone()),
        _ => document.pointer(path).filter(|there| **there == value).map(|_| document.clone()),
    }
}

proptest! {
    #[test]
    fn a_patch_is_what_its_operations_are_one_by_one_or_nothing(
        document in value(),
        patch in prop::collection::vec(operation(), 0..8),
    ) {
        let malformed = |operation: &Value| {
            let odd = |name: &str| operation[name].as_str().unwrap().split('~').skip(1)
                .any(|rest| !rest.starts_with(['0', '1']));
            odd("path") || matches!(operation["op"].as_str(), Some("copy" | "move")) && odd("from")
        };
        let expected = patch.iter().try_fold(document.clone(), |document, operation| {
            if malformed(operation) { None } else { naive(&document, operation) }
        });
        // `patched` sees to it that a failure leaves every byte as it was.
        prop_assert_eq!(patched(document, &Value::from(patch)).ok(), expected);
    }

    #[test]
    fn keys_come_back_in_their_order(
        names in prop::collection::hash_set("[a-z]", 1..12),
        removed in prop::collection::vec("[a-z]", 1..12),
    ) {
        let document: Map<String, Value> = names.into_iter().map(|name| (name, json!(1))).collect();
        let mut patch: Vec<Value> = Vec::new();
        for name in removed.iter().filter(|name| document.contains_key(*name)) {
            let path = format!("/{name}");
            patch.push(json!({"op": "add", "path": path, "value": 2}));
            patch.push(json!({"op": "remove", "path": path}));
        }
        patch.push(json!({"op": "remove", "path": "/none"}));
        prop_assert_eq!(patched(Value::Object(document), &patch.into()), Err(Reason::Missing));
    }
}

#[test]
fn a_patch_that_shifts_or_looks_through_too_much_fails_as_a_whole() {
    let long = json!({"list": vec![0; 70_000], "b": {}});
    let front: Value =
        (0..600).map(|_| json!({"op": "add", "path": "/list/0", "value": 1})).collect();
    assert_eq!(patched(long.clone(), &front), Err(Reason::Size));
    let deeper = [
        json!({"op": "move", "from": "/list", "path": "/b/list"}),
        json!({"op": "move", "from": "/b/list", "path": "/list"}),
    ];
    let there_and_back: Value = deeper.iter().cycle().take(1_200).cloned().collect();
    assert_eq!(patched(long, &there_and_back), Err(Reason::Size));
}
