use banister_journal::{Appended, Draft, Durability, Journal, Kind, Source};
use jiff::Timestamp;
use proptest::option::of;
use proptest::prelude::*;
use serde_json::Value;

use crate::support::{Place, wait};

/// Any characters at all: NUL, line ends, bidi controls, unassigned ones.
fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(any::<char>(), 0..8).prop_map(String::from_iter)
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::vec((text(), inner), 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn time() -> impl Strategy<Value = Timestamp> {
    let seconds = Timestamp::MIN.as_second()..Timestamp::MAX.as_second();
    (seconds, 0..1_000_000_000).prop_map(|(second, nanos)| Timestamp::new(second, nanos).unwrap())
}

fn any_draft() -> impl Strategy<Value = Draft> {
    let names = (text(), text(), text(), text(), text());
    let kind = proptest::sample::select(Kind::ALL.as_slice());
    let rest = (of(text()), of(text()), any::<u32>(), json(), of(json()));
    let body = proptest::collection::vec(any::<u8>(), 0..40);
    (names, time(), kind, rest, body).prop_map(|(names, time, kind, rest, body)| Draft {
        session: names.0,
        time,
        kind,
        source: Source { protocol: names.1, agent: names.2, door: names.3, key: names.4 },
        turn: rest.0,
        action: rest.1,
        event_id: None,
        reader: rest.2,
        body: body.into(),
        findings: rest.3,
        gate: rest.4,
    })
}

#[test]
fn what_goes_in_comes_out_byte_for_byte() {
    let place = Place::new();
    let journal = place.open();
    let mut config = ProptestConfig::with_cases(2_000);
    config.failure_persistence = None;
    let cases = std::cell::Cell::new(0);
    proptest!(config, |(draft in any_draft(), event_id in of(text()))| {
        cases.set(cases.get() + 1);
        let before = journal.head();
        // Ids may not repeat, so that each has the position in it.
        let event_id = event_id.map(|id| format!("{id}{before}"));
        let draft = Draft { event_id, ..draft };
        let appended = wait(journal.append(vec![draft.clone()], Durability::Written)).unwrap();
        let Appended::Recorded(records) = appended else { panic!("the id is new") };
        let stored = journal.after(before, 10).unwrap();
        prop_assert_eq!(&stored, &records);
        let by_session = journal.session(&draft.session, stored[0].seq - 1, 10).unwrap();
        prop_assert_eq!(&by_session, &records);
        let record = banister_journal::Record::clone(&stored[0]);
        prop_assert_eq!(draft, Draft {
            session: record.session,
            time: record.time,
            kind: record.kind,
            source: record.source,
            turn: record.turn,
            action: record.action,
            event_id: record.event_id,
            reader: record.reader,
            body: record.body,
            findings: record.findings,
            gate: record.gate,
        });
    });
    drop(journal);
    let report = Journal::verify(&place.path()).unwrap();
    assert!(report.is_clean() && report.records == cases.get(), "{report:?}");
}
