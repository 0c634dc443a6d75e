//! What holds for every stream, whatever the activities.

use proptest::prelude::*;
use serde_json::Value;

use super::Writer;
use crate::activity::{Activity, Origin, arbitrary};
use crate::aep::read::Reader;
use crate::check::Checker;
use crate::event::Protocol;
use crate::finding::Severity;
use crate::reader::ReadValue as _;
use crate::text;

/// The writers that there are.
fn writer() -> impl Strategy<Value = Writer> {
    prop_oneof![
        Just(Writer::default()),
        Just(Writer::default().carrying()),
        Just(Writer::default().unredacted()),
        Just(Writer::default().carrying().unredacted()),
    ]
}

fn valid(checker: &mut Checker, events: &[Value]) -> Result<(), TestCaseError> {
    for event in events {
        let findings: Vec<_> = checker
            .value(event)
            .into_iter()
            .filter(|finding| finding.rule.severity > Severity::Note)
            .collect();
        prop_assert!(findings.is_empty(), "{findings:?}\n{:.900}", event.to_string());
    }
    Ok(())
}

/// Every text outside ids; of inputs and outputs only where they are freed of credentials too.
fn texts<'a>(value: &'a Value, key: &str, unredacted: bool, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text)
            if !matches!(key, "id" | "slug" | "policy_id" | "digest") && !key.ends_with("_id") =>
        {
            found.push(text);
        }
        Value::Array(items) => items.iter().for_each(|item| texts(item, key, unredacted, found)),
        Value::Object(fields) => {
            for (key, value) in fields {
                let passes =
                    unredacted && matches!(key.as_str(), "input" | "output" | "updated_input");
                if !passes {
                    texts(value, key, unredacted, found);
                }
            }
        }
        _ => {}
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(fields) => fields
            .iter()
            .filter(|(key, _)| {
                !matches!(key.as_str(), "input" | "output" | "updated_input" | "extensions")
            })
            .any(|(_, value)| has_null(value)),
        _ => false,
    }
}

proptest! {
    #[test]
    fn whatever_happens_the_stream_is_valid(session in arbitrary::session(), mut writer in writer()) {
        let mut checker = Checker::new(Protocol::Aep).strict();
        for activity in &session {
            valid(&mut checker, &writer.write(activity))?;
        }
        valid(&mut checker, &writer.close())?;
    }

    #[test]
    fn a_stream_that_is_cut_and_goes_on_is_valid(
        session in arbitrary::session(), mut writer in writer(), at in 0_usize..24,
    ) {
        let mut checker = Checker::new(Protocol::Aep).strict();
        for (n, activity) in session.iter().enumerate() {
            if n == at {
                valid(&mut checker, &writer.close())?;
                prop_assert!(writer.close().is_empty(), "what is closed is closed");
            }
            valid(&mut checker, &writer.write(activity))?;
        }
    }

    #[test]
    fn a_saved_writer_goes_on_with_the_same_bytes(session in arbitrary::session(), writer in writer()) {
        let mut straight = writer.clone();
        let mut saved = writer;
        for activity in &session {
            let json = serde_json::to_string(&saved).unwrap();
            saved = serde_json::from_str(&json).unwrap();
            let expected: Vec<_> = straight.write(activity).iter().map(Value::to_string).collect();
            let given: Vec<_> = saved.write(activity).iter().map(Value::to_string).collect();
            prop_assert_eq!(expected, given);
        }
        prop_assert_eq!(straight.close(), saved.close());
    }

    #[test]
    fn no_text_has_a_credential_and_nothing_is_null(
        session in arbitrary::session(), mut writer in writer(),
    ) {
        let unredacted = writer.mode.unredacted;
        let mut events: Vec<_> = session.iter().flat_map(|activity| writer.write(activity)).collect();
        events.extend(writer.close());
        for event in &events {
            prop_assert!(!has_null(event), "{event}");
            let mut found = Vec::new();
            texts(event, "", unredacted, &mut found);
            for said in found {
                prop_assert!(!said.contains("hunter2"), "{said:?} in {event}");
                prop_assert_eq!(text::redact(said), said);
            }
        }
    }

    #[test]
    fn what_is_written_can_be_read_and_written_again(session in arbitrary::session(), mut writer in writer()) {
        let mut reader = Reader::trusting();
        let mut again = Writer::default().carrying();
        let mut checker = Checker::new(Protocol::Aep).strict();
        let mut seq = 0;
        for activity in &session {
            for event in writer.write(activity) {
                seq += 1;
                let origin = Origin { seq, ..activity.origin.clone() };
                let read = reader.read_value(&event, None, &origin);
                let saved = serde_json::to_string(&reader).unwrap();
                reader = serde_json::from_str(&saved).unwrap();
                let written: Vec<Value> =
                    read.iter().flat_map(|activity: &Activity| again.write(activity)).collect();
                valid(&mut checker, &written)?;
            }
        }
    }

    #[test]
    fn reading_is_total(event in junk()) {
        let origin = Origin { session: "s".into(), seq: 1, time: jiff::Timestamp::UNIX_EPOCH };
        for mut reader in [Reader::default(), Reader::trusting()] {
            let mut writer = Writer::default();
            for activity in reader.read_value(&event, None, &origin) {
                writer.write(&activity);
            }
            prop_assert!(reader.finish(&origin).is_empty());
        }
    }
}

/// Messages with fields of every wrong kind.
fn junk() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z._]{0,9}".prop_map(Value::from),
        Just(Value::from("subagent")),
        Just(Value::from("allow")),
    ];
    let value = leaf.prop_recursive(4, 24, 4, |inner| {
        let key = prop_oneof![
            Just("id"),
            Just("text"),
            Just("type"),
            Just("conversation_id"),
            Just("parent"),
            Just("relation"),
            Just("behavior"),
            Just("x-banister"),
            Just("ask"),
            Just("what"),
            Just("ids"),
            Just("input"),
            Just("questions"),
            Just("options"),
            Just("name"),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..4).prop_map(|entries| {
                Value::Object(
                    entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
                )
            }),
        ]
    });
    let kinds: Vec<String> = crate::aep::types::Type::ALL
        .iter()
        .map(|kind| kind.name().to_owned())
        .chain(["x.state_set".to_owned(), "x.ask_opened".to_owned(), "x.raw".to_owned()])
        .collect();
    let fields = [
        "id",
        "time",
        "agent",
        "session",
        "workspace",
        "model",
        "action",
        "tool",
        "skill",
        "content",
        "decision",
        "metrics",
        "lifecycle",
        "extensions",
        "control",
        "request_event_id",
        "action_id",
    ];
    let kind = prop::option::of(prop::sample::select(kinds));
    (kind, prop::collection::vec((prop::sample::select(fields.to_vec()), value), 0..9)).prop_map(
        |(kind, entries)| {
            let kind = kind.map(|kind| ("type".to_owned(), Value::from(kind)));
            let entries = entries.into_iter().map(|(key, value)| (key.to_owned(), value));
            Value::Object(kind.into_iter().chain(entries).collect())
        },
    )
}
