use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::json::{DEEPEST, Parser, Reason, View};

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        "[a-z\"\\\\\n\u{0}-\u{1f}é😀]{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec(("[a-c\"\n]{0,3}", inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Every value and name of a document: where it stands, and what it is.
fn walk(view: View<'_>, all: &mut Vec<(std::ops::Range<usize>, Option<String>, Value)>) {
    let text = view.as_str().map(std::borrow::Cow::into_owned);
    all.push((view.span(), text, view.to_value()));
    view.items().for_each(|item| walk(item, all));
    for (name, value) in view.entries() {
        walk(name, all);
        walk(value, all);
    }
}

proptest! {
    #[test]
    fn a_message_that_is_made_here_is_the_one_that_would_be_parsed(value in values()) {
        let made = Message::of_value(Protocol::Aep, value.clone());
        let text = value.to_string();
        prop_assert_eq!(&**made.bytes(), text.as_bytes());
        let mut parser = Parser::default();
        let came = parser.parse(text.as_bytes()).unwrap();
        let (mut one, mut other) = (Vec::new(), Vec::new());
        walk(made.document().root(), &mut one);
        walk(came.root(), &mut other);
        prop_assert_eq!(one, other);
        let noticed = |document: &Document<'_>| {
            (document.depth(), document.longest_string(), document.longest_integer())
        };
        prop_assert_eq!(noticed(&made.document()), noticed(&came));
        prop_assert_eq!(made.document().too_deep(), None);
    }

    #[test]
    fn a_value_is_what_another_parser_makes_of_the_bytes(value in values(), again in values()) {
        // Names that stand twice, too.
        for text in [value.to_string(), format!("{{\"a\":{value},\"b\":1,\"a\":{again}}}")] {
            let message = Message::payload(text.clone().into()).unwrap();
            prop_assert_eq!(message.value(), &serde_json::from_str::<Value>(&text).unwrap());
        }
    }
}

#[test]
fn numbers_are_read_as_the_other_parser_reads_them() {
    for text in [
        "-0",
        "0",
        "-1",
        "18446744073709551615",
        "18446744073709551616",
        "1.0",
        "-0.0",
        "1e3",
        "0.1",
        "123456789.123456789e-7",
    ] {
        let message = Message::payload(text.into()).unwrap();
        assert_eq!(message.value(), &serde_json::from_str::<Value>(text).unwrap(), "{text}");
    }
}

#[test]
fn what_is_nested_too_deep_is_known_where_it_is_made() {
    let mut value = json!(1);
    for _ in 0..=DEEPEST {
        value = json!([value]);
    }
    let text = value.to_string();
    let error = Parser::default().parse(text.as_bytes()).unwrap_err();
    assert_eq!(error.reason, Reason::Depth);
    let message = Message::of_value(Protocol::Aep, value.clone());
    assert_eq!(message.document().too_deep(), Some(error));
    assert_eq!(message.document().root().to_value(), value);
}

#[test]
fn a_message_is_parsed_once_whoever_looks_at_it() {
    let before = json::parsed();
    let message = Message::parse(Protocol::Agui, r#"{"type":"RUN_ERROR"}"#.into()).unwrap();
    assert_eq!(message.value(), &json!({ "type": "RUN_ERROR" }));
    assert!(message.clone().document().root().get("type").is_some());
    Message::of_value(Protocol::Aep, json!({ "type": "agent.stop" })).document();
    assert_eq!(json::parsed() - before, 1);
}

#[test]
fn what_is_too_large_or_no_json_is_no_message() {
    let large = Message::parse(Protocol::Aep, vec![b' '; limits::MESSAGE_BYTES + 1].into());
    assert!(matches!(large, Err(Unreadable::TooLarge(_))));
    let broken = Message::parse(Protocol::Aep, "{".into()).unwrap_err();
    assert_eq!(
        broken.to_string(),
        "the message is not JSON: the text ends inside a value at byte 1 of the message"
    );
}
