use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn value(bytes: &[u8]) -> Result<Value, Error> {
    let mut parser = Parser::default();
    let document = parser.parse(bytes)?;
    Ok(rebuilt(document.root()))
}

/// The value, built from the view alone.
fn rebuilt(view: View<'_>) -> Value {
    if view.is_object() {
        return view
            .entries()
            .map(|(name, value)| (name.as_str().unwrap().into_owned(), rebuilt(value)))
            .collect();
    }
    if view.is_array() {
        return view.items().map(rebuilt).collect();
    }
    if let Some(text) = view.as_str() {
        return Value::String(text.into_owned());
    }
    if let Some(truth) = view.as_bool() {
        return Value::Bool(truth);
    }
    if let Some(number) = view.as_i64() {
        return number.into();
    }
    if let Some(number) = view.as_u64() {
        return number.into();
    }
    view.as_f64().map_or(Value::Null, Value::from)
}

fn reason(text: &str) -> (Reason, usize) {
    let error = value(text.as_bytes()).unwrap_err();
    (error.reason, error.offset)
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    assert_eq!(reason(""), (Reason::End, 0));
    assert_eq!(reason("{\"a\": "), (Reason::End, 6));
    assert_eq!(reason("{\"a\" 1}"), (Reason::Colon, 5));
    assert_eq!(reason("{a: 1}"), (Reason::Name, 1));
    assert_eq!(reason("[1 2]"), (Reason::Comma, 3));
    assert_eq!(reason("[1,]"), (Reason::Value, 3));
    assert_eq!(reason("\"a\nb\""), (Reason::Control, 2));
    assert_eq!(reason("\"\\x\""), (Reason::Escape, 1));
    assert_eq!(reason("\"\\ud800\""), (Reason::Surrogate, 1));
    assert_eq!(reason("01"), (Reason::Number, 1));
    assert_eq!(reason("1e999"), (Reason::Range, 0));
    assert_eq!(reason("tru"), (Reason::End, 0));
    assert_eq!(reason("truth"), (Reason::Value, 0));
    assert_eq!(reason("1 2"), (Reason::Trailing, 2));
    assert_eq!(reason(&"[".repeat(10_000)), (Reason::Depth, DEEPEST));
    assert_eq!(value(b"\"\xff\"").unwrap_err(), Error { offset: 1, reason: Reason::Utf8 });
}

#[test]
fn a_name_that_stands_twice_is_noticed_however_it_is_written_and_however_many_there_are() {
    let duplicate = |text: &str| {
        let mut parser = Parser::default();
        let document = parser.parse(text.as_bytes()).unwrap();
        document.duplicate().map(|name| name.span().start)
    };
    assert_eq!(duplicate(r#"{"a":1,"b":{"a":2},"c":[{"a":1},{"a":1}]}"#), None);
    assert_eq!(duplicate(r#"{"a":1,"b":2,"a":3}"#), Some(13));
    assert_eq!(duplicate(r#"{"a":{"x":1,"x":2}}"#), Some(12));
    assert_eq!(duplicate(r#"{"a":1,"\u0061":2}"#), Some(7));
    assert_eq!(duplicate(r#"{"\u0061":1,"a":2}"#), Some(12));
    let many: Vec<String> = (0..1000).map(|n| format!("\"k{n}\":0")).collect();
    assert_eq!(duplicate(&format!("{{{}}}", many.join(","))), None);
    assert!(duplicate(&format!("{{{},\"k7\":1}}", many.join(","))).is_some());
}

#[test]
fn the_last_of_two_names_counts() {
    let mut parser = Parser::default();
    let document = parser.parse(br#"{"a":1,"b":0,"\u0061":2,"a":3,"b":4}"#).unwrap();
    assert_eq!(document.root().get("a").and_then(View::as_i64), Some(3));
    assert_eq!(document.root().get("b").and_then(View::as_i64), Some(4));
    let names: Vec<String> =
        document.root().entries().map(|(name, _)| name.as_str().unwrap().into_owned()).collect();
    assert_eq!(names, ["a", "b", "a", "a", "b"]);
    let many: Vec<String> = (0..99).map(|n| format!("\"k{}\":{n}", n % 50)).collect();
    let many = format!("{{{}}}", many.join(","));
    let document = parser.parse(many.as_bytes()).unwrap();
    assert_eq!(document.root().get("k3").and_then(View::as_i64), Some(53));
}

#[test]
fn a_pointer_leads_to_a_place() {
    let bytes = br#"{"a/b": [1, {"~": "x"}]}"#;
    assert_eq!(locate(bytes, "/a~1b/1/~0"), Some(18..21));
    assert_eq!(locate(bytes, "/a~1b/7"), Some(8..23));
    assert_eq!(locate(bytes, ""), Some(0..24));
    assert_eq!(locate(b"{", ""), None);
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::hash_map(any::<String>(), inner, 0..8)
                .prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn every_document_is_read_as_it_was_written(wanted in json(), pretty: bool) {
        let text = if pretty {
            serde_json::to_string_pretty(&wanted).unwrap()
        } else {
            wanted.to_string()
        };
        prop_assert_eq!(value(text.as_bytes()).unwrap(), wanted);
    }

    #[test]
    fn broken_documents_are_refused_exactly_where_another_reader_refuses_them(
        document in json(),
        at: prop::sample::Index,
        byte: u8,
        cut: bool,
    ) {
        let mut bytes = document.to_string().into_bytes();
        let place = at.index(bytes.len());
        bytes[place] = byte;
        if cut {
            bytes.truncate(place);
        }
        let theirs = serde_json::from_slice::<Value>(&bytes);
        prop_assert_eq!(value(&bytes).is_ok(), theirs.is_ok(), "{:?}", theirs);
    }

    #[test]
    fn letters_of_json_in_any_order_are_judged_as_another_reader_judges_them(
        text in r#"[\[\]{}:,"0-9eE.+\-a\\u d8tfn]{0,24}"#,
    ) {
        let theirs = serde_json::from_str::<Value>(&text);
        prop_assert_eq!(value(text.as_bytes()).is_ok(), theirs.is_ok(), "{:?}", theirs);
    }
}
