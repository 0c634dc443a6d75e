use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use serde_json::{Value, json};

use super::arbitrary::{self, Foreign};
use super::*;
use crate::agui::message::Role;
use crate::check::shape::{self, Issue, Kind, Known, What};
use crate::check::with_document;

/// An event of one type, as JSON.
fn of(kind: Type, foreign: Foreign) -> impl Strategy<Value = Value> {
    arbitrary::object(kind.shape(), foreign).prop_map(move |mut event| {
        event.insert("type".into(), kind.name().into());
        Value::Object(event)
    })
}

fn any_event(foreign: Foreign) -> impl Strategy<Value = (Type, Value)> {
    prop::sample::select(Type::ALL.as_slice())
        .prop_flat_map(move |kind| of(kind, foreign).prop_map(move |event| (kind, event)))
}

fn issues(kind: Type, event: &Value) -> Vec<Issue> {
    with_document(event, |event| shape::compare(kind.shape(), event.root(), &mut Known::default()))
}

fn decode(event: &Value) -> Result<Event, serde_json::Error> {
    serde_json::from_value(event.clone())
}

/// A value in which whole numbers are written one way.
fn plain(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().map_or(Value::Null, Value::from),
        Value::Array(items) => items.into_iter().map(plain).collect(),
        Value::Object(object) => {
            object.into_iter().map(|(name, value)| (name, plain(value))).collect()
        }
        other => other,
    }
}

/// Every place in a value.
fn places(value: &Value, here: &str, all: &mut Vec<String>) {
    all.push(here.to_owned());
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                let name = name.replace('~', "~0").replace('/', "~1");
                places(value, &format!("{here}/{name}"), all);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                places(value, &format!("{here}/{index}"), all);
            }
        }
        _ => {}
    }
}

/// An event in which one value, anywhere but in its type, is another.
fn broken() -> impl Strategy<Value = (Type, Value)> {
    let event = any_event(Foreign::Never);
    (event, any::<prop::sample::Index>(), arbitrary::json()).prop_map(
        |((kind, mut event), index, value)| {
            let mut all = Vec::new();
            places(&event, "", &mut all);
            all.retain(|place| !place.is_empty() && place != "/type");
            if !all.is_empty() {
                *event.pointer_mut(index.get::<String>(&all)).unwrap() = value;
            }
            (kind, event)
        },
    )
}

proptest! {
    #[test]
    fn an_event_is_written_as_it_came((kind, sent) in any_event(Foreign::Sometimes)) {
        let event = Event::parse(sent.to_string().as_bytes()).unwrap();
        prop_assert_eq!((event.kind(), event.name()), (Some(kind), kind.name()));
        prop_assert_eq!(serde_json::to_value(&event).unwrap(), sent.clone());
        prop_assert_eq!(decode(&sent).unwrap(), event);
    }

    #[test]
    fn an_event_of_its_table_has_nothing_unknown((kind, sent) in any_event(Foreign::Never)) {
        prop_assert_eq!(issues(kind, &sent), []);
        let event = format!("{:?}", decode(&sent).unwrap());
        prop_assert_eq!(event.matches("unknown: {}").count(), event.matches("unknown: ").count());
    }

    #[test]
    fn what_the_table_takes_decodes_and_loses_nothing((kind, sent) in broken()) {
        let tolerated = |issue: &Issue| matches!(issue.what, What::Foreign | What::Member | What::Word);
        if issues(kind, &sent).iter().all(tolerated) {
            let written = serde_json::to_value(decode(&sent).unwrap()).unwrap();
            prop_assert_eq!(plain(written), plain(sent));
        }
    }

    #[test]
    fn what_decodes_is_written_as_it_came((_, sent) in broken()) {
        if let Ok(event) = decode(&sent) {
            prop_assert_eq!(plain(serde_json::to_value(event).unwrap()), plain(sent));
        }
    }
}

/// An event of each type with every field, as the table has it.
fn full(kind: Type) -> Value {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    loop {
        let event = of(kind, Foreign::Never).new_tree(&mut runner).unwrap().current();
        if event.as_object().unwrap().len() == kind.shape().fields().count() {
            return event;
        }
    }
}

#[test]
fn each_of_the_31_decodes_with_every_field_and_without_any_optional_one() {
    for kind in Type::ALL {
        let event = full(kind);
        assert_eq!(decode(&event).unwrap().kind(), Some(kind));
        let mut least = event;
        for field in kind.shape().fields().filter(|field| !field.required) {
            least.as_object_mut().unwrap().shift_remove(field.name).unwrap();
        }
        assert_eq!(serde_json::to_value(decode(&least).unwrap()).unwrap(), least);
    }
}

#[test]
fn required_fields_are_required_and_null_is_no_value_but_where_anything_is() {
    for kind in Type::ALL {
        let event = full(kind);
        for field in kind.shape().fields() {
            let mut without = event.clone();
            without.as_object_mut().unwrap().shift_remove(field.name).unwrap();
            assert_eq!(decode(&without).is_ok(), !field.required, "{without}");
            let mut null = event.clone();
            null[field.name] = Value::Null;
            let takes_null = matches!(field.kind, Kind::Any);
            assert_eq!(decode(&null).is_ok(), takes_null, "{null}");
            assert_eq!(issues(kind, &null).is_empty(), takes_null, "{null}");
        }
    }
}

#[test]
fn timestamps_are_whole_numbers() {
    let at = |timestamp: Value| json!({"type": "RUN_ERROR", "message": "", "timestamp": timestamp});
    for (timestamp, read) in [
        (json!(1.0), Some(1)),
        (json!(-5), Some(-5)),
        (json!(9_007_199_254_740_991_i64), Some(9_007_199_254_740_991)),
        (json!(1.5), None),
        (json!("1"), None),
        (json!(1e300), None),
    ] {
        let event = decode(&at(timestamp.clone()));
        assert_eq!(event.ok().map(|event| event.timestamp()), read.map(Some), "{timestamp}");
    }
}

#[test]
fn an_event_without_a_type_is_none() {
    for sent in [json!({}), json!({"type": null}), json!({"type": 3}), json!([]), json!(null)] {
        assert!(decode(&sent).is_err(), "{sent}");
    }
    let other = json!({"type": "", "timestamp": null});
    assert_eq!(serde_json::to_value(decode(&other).unwrap()).unwrap(), other);
}

#[test]
fn unions_keep_members_that_are_not_known() {
    let sent = json!({
        "type": "RUN_FINISHED", "threadId": "t", "runId": "r",
        "outcome": {"type": "exploded", "loudly": null},
    });
    let Event::RunFinished(event) = decode(&sent).unwrap() else { panic!("another type") };
    assert_eq!(event.outcome.as_ref().unwrap().name(), "exploded");
    assert_eq!(serde_json::to_value(Event::from(event)).unwrap(), sent);

    let sent = json!({"type": "STATE_DELTA", "delta": [
        {"op": "swap", "path": 3},
        {"path": "/a"},
        {"op": "test", "path": "/a", "value": null, "why": "mine"},
    ]});
    let Event::StateDelta(event) = decode(&sent).unwrap() else { panic!("another type") };
    let [PatchOperation::Other(_), PatchOperation::Other(_), PatchOperation::Test(test)] =
        event.delta.as_slice()
    else {
        panic!("{:?}", event.delta)
    };
    assert_eq!((&test.value, &test.unknown["why"]), (&Value::Null, &json!("mine")));
    assert_eq!(serde_json::to_value(Event::from(event)).unwrap(), sent);
}

#[test]
fn owners_are_told_from_subagents_that_events_are_about() {
    for (kind, owner) in [
        (Type::TextMessageEnd, Some("s")),
        (Type::StateSnapshot, Some("s")),
        (Type::SubagentError, None),
        (Type::RunError, None),
    ] {
        let mut event = full(kind);
        event["subagentRunId"] = "s".into();
        event["metadata"] = json!({"k": null});
        let event = decode(&event).unwrap();
        assert_eq!(event.owner(), owner);
        assert_eq!(event.metadata().unwrap()["k"], Value::Null);
    }
}

#[test]
fn what_is_made_here_breaks_no_rule() {
    let mut started = RunStarted::new("t", "r");
    started.protocol_version = Some(PROTOCOL_VERSION.into());
    started.input = Some(Box::new(crate::agui::input::RunInput::new("t", "r")));
    let mut finished = RunFinished::new("t", "r");
    finished.outcome = Some(Outcome::Success(Success::default()));
    finished.usage = Some(vec![Usage { input_tokens: Some(3), ..Usage::default() }]);
    let mut subagent = SubagentFinished::new("s");
    subagent.outcome = Some(SubagentOutcome::Suspended(Suspended::default()));
    let events: [Event; 8] = [
        started.into(),
        ReasoningMessageStart::new("m", Role::Reasoning).into(),
        ReasoningEncryptedValue::new(Subtype::ToolCall, "c", "…").into(),
        StateDelta::new([PatchOperation::Remove(PatchPath::new("/a"))]).into(),
        StateSnapshot::new(Value::Null).into(),
        TextMessageChunk::default().into(),
        subagent.into(),
        finished.into(),
    ];
    for event in events {
        let event = serde_json::to_value(event).unwrap();
        assert_eq!(crate::check::value(crate::event::Protocol::Agui, &event), [], "{event}");
    }
}

#[test]
fn pointers_are_what_their_pattern_says() {
    let pattern = regex::Regex::new("^(/([^/~]|~[01])*)*$").unwrap();
    for pointer in ["", "/", "//", "/a~0b~1c/-", "/é/ü", "a", "~0", "~", "/~", "/~2", "/a~", "#/a"]
    {
        let event = json!({"type": "STATE_DELTA", "delta": [{"op": "remove", "path": pointer}]});
        let fits = issues(Type::StateDelta, &event).is_empty();
        assert_eq!(fits, pattern.is_match(pointer), "{pointer}");
    }
}

#[test]
fn an_interrupt_expires_at_its_time_if_that_is_one() {
    let noon = 1_769_860_800_000;
    for (expires_at, end) in [
        (Some("2026-01-31T12:00:00Z"), Some(noon)),
        (Some("2026-01-31T12:00:00.250Z"), Some(noon + 250)),
        (Some("2026-01-31T13:00:00+01:00"), Some(noon)),
        (Some("2026-01-31T12:00:00"), Some(noon)),
        (Some("2026-01-31"), Some(noon - 12 * 3_600_000)),
        (Some("2026-02-30T12:00:00Z"), None),
        (Some("soon"), None),
        (Some(""), None),
        (None, None),
    ] {
        let interrupt = Interrupt {
            expires_at: expires_at.map(Into::into),
            ..Interrupt::new("i", "confirmation")
        };
        assert_eq!(interrupt.has_expired(end.unwrap_or(i64::MAX)), end.is_some(), "{expires_at:?}");
        assert!(!interrupt.has_expired(end.unwrap_or(i64::MAX) - 1), "{expires_at:?}");
    }
}

#[test]
fn usage_is_summed_by_provider_and_model() {
    let usage = |text: &str| serde_json::from_str::<Usage>(text).unwrap();
    let entries = [
        usage(r#"{"provider": "p", "model": "a", "inputTokens": 1, "reasoningTokens": 0, "x": 1}"#),
        usage(r#"{"model": "a", "inputTokens": 10}"#),
        usage(r#"{"provider": "p", "model": "a", "inputTokens": 2, "outputTokens": 5}"#),
        usage("{}"),
        usage(r#"{"totalTokens": 7, "cachedInputTokens": 1, "cacheWriteInputTokens": 2}"#),
    ];
    let expected = [
        usage(
            r#"{"provider": "p", "model": "a", "inputTokens": 3, "outputTokens": 5, "reasoningTokens": 0}"#,
        ),
        usage(r#"{"model": "a", "inputTokens": 10}"#),
        usage(r#"{"totalTokens": 7, "cachedInputTokens": 1, "cacheWriteInputTokens": 2}"#),
    ];
    assert_eq!(Usage::aggregate(&entries), expected);
    assert_eq!(Usage::aggregate([]), []);
}
