//! What the gateway relies on, said once for whichever back end keeps the records: each promise is a function of
//! "open the journal of this place", called again to reopen it after every handle is gone.

use std::sync::Arc;

use banister_journal::{
    Appended, Draft, Durability, Error, Journal, Kind, Record, SessionRow, Source,
};
use serde_json::json;

use crate::support::{Place, append, at, bodies, draft, recorded, wait};

/// Every promise by name; `open` is given a new place for each.
fn contract<O: Fn() -> Journal>(place: impl Fn() -> O) {
    order_and_gapless_seq(place());
    a_batch_is_whole_or_not_at_all(place());
    the_same_bytes_again_are_the_first_record(place());
    ids_of_different_keys_do_not_meet(place());
    reopening_changes_nothing(place());
    own_facts_are_found_in_order(place());
    sessions_are_listed_newest_first(place());
    nothing_is_nothing(place());
}

#[test]
fn sqlite_keeps_the_contract() {
    contract(|| {
        let place = Place::new();
        move || place.open()
    });
}

fn order_and_gapless_seq(open: impl Fn() -> Journal) {
    let journal = open();
    let first = recorded(&journal, vec![draft("a", "1"), draft("b", "2"), draft("a", "3")]);
    let second = recorded(&journal, vec![draft("a", "4")]);
    let place = |records: &[Arc<Record>]| -> Vec<_> {
        records.iter().map(|record| (record.position, record.session.clone(), record.seq)).collect()
    };
    let name = str::to_owned;
    assert_eq!(place(&first), [(1, name("a"), 1), (2, name("b"), 1), (3, name("a"), 2)]);
    assert_eq!(place(&second), [(4, name("a"), 3)]);
    assert_eq!(
        (first[0].prev, first[2].prev, second[0].prev),
        ([0; 32], first[0].hash, first[2].hash)
    );
    assert_eq!(journal.head(), 4);

    let all = [first, second].concat();
    assert_eq!(journal.after(0, 100).unwrap(), all);
    assert_eq!(journal.after(1, 2).unwrap(), all[1..3]);
    assert_eq!(journal.after(4, 100).unwrap(), []);
    assert_eq!(bodies(&journal.session("a", 0, 100).unwrap()), ["1", "3", "4"]);
    assert_eq!(bodies(&journal.session("a", 1, 1).unwrap()), ["3"]);
    assert_eq!(bodies(&journal.session("c", 0, 100).unwrap()), [""; 0]);
}

fn a_batch_is_whole_or_not_at_all(open: impl Fn() -> Journal) {
    let journal = open();
    let known = Draft { event_id: Some("evt_1".to_owned()), ..draft("a", "1") };
    recorded(&journal, vec![known.clone()]);
    let refused = append(&journal, vec![draft("a", "2"), draft("b", "3"), known.clone()]);
    assert!(
        matches!(refused, Err(Error::EventIdTaken { key, event_id }) if key == "k_1" && event_id == "evt_1")
    );
    let twice = Draft { event_id: Some("evt_2".to_owned()), ..known };
    let refused = append(&journal, vec![twice.clone(), twice]);
    assert!(matches!(refused, Err(Error::EventIdTaken { .. })));
    assert_eq!(journal.head(), 1);
    assert_eq!(recorded(&journal, vec![draft("a", "4")])[0].seq, 2);
}

fn the_same_bytes_again_are_the_first_record(open: impl Fn() -> Journal) {
    let known = Draft { event_id: Some("evt_1".to_owned()), ..draft("a", "1") };
    let journal = open();
    let original = recorded(&journal, vec![known.clone()]);
    let check = |journal: &Journal| {
        for (body, same) in [("1", true), ("other", false)] {
            // The rest of a known message's batch is not written either.
            let again = vec![Draft { body: body.into(), ..known.clone() }, draft("a", "verdict")];
            match append(journal, again).unwrap() {
                Appended::Duplicate { first, same_bytes } => {
                    assert_eq!((&first, same_bytes), (&original[0], same));
                }
                Appended::Recorded(records) => panic!("recorded again: {records:?}"),
            }
        }
        assert_eq!(journal.head(), 1);
    };
    check(&journal);
    drop(journal);
    check(&open());
}

fn ids_of_different_keys_do_not_meet(open: impl Fn() -> Journal) {
    let journal = open();
    let one = Draft { event_id: Some("evt_1".to_owned()), ..draft("a", "1") };
    let source = Source { key: "k_2".to_owned(), ..one.source.clone() };
    let other = Draft { source, ..one.clone() };
    recorded(&journal, vec![one, other]);
    recorded(&journal, vec![draft("a", "without an id"), draft("a", "without an id")]);
    assert_eq!(journal.head(), 4);
}

fn reopening_changes_nothing(open: impl Fn() -> Journal) {
    let journal = open();
    let gate = Some(json!({ "rule": "shell.rm", "risk": "high" }));
    let findings = json!([{ "code": "AEP-REQ-03" }]);
    recorded(&journal, vec![Draft { gate, findings, ..draft("a", "1") }, draft("b", "2")]);
    wait(journal.append(vec![draft("a", "3")], Durability::Written)).unwrap();
    let (before, epoch) = (journal.after(0, 10).unwrap(), journal.epoch().to_owned());
    drop(journal);

    let journal = open();
    assert_eq!((journal.after(0, 10).unwrap(), journal.epoch()), (before.clone(), epoch.as_str()));
    assert_eq!(journal.head(), 3);
    let next = recorded(&journal, vec![draft("a", "4")]);
    assert_eq!((next[0].position, next[0].seq, next[0].prev), (4, 3, before[2].hash));
}

fn own_facts_are_found_in_order(open: impl Fn() -> Journal) {
    let journal = open();
    let kinds = [Kind::Event, Kind::Ask, Kind::Event, Kind::Answer, Kind::Ask, Kind::Expiry];
    recorded(
        &journal,
        kinds.iter().map(|&kind| Draft { kind, ..draft("a", kind.as_str()) }).collect(),
    );
    let found = |kinds: &[Kind]| -> Vec<_> {
        let records = journal.of_kinds(kinds).unwrap();
        records.iter().map(|record| (record.position, record.kind)).collect()
    };
    assert_eq!(
        found(&[Kind::Answer, Kind::Ask]),
        [(2, Kind::Ask), (4, Kind::Answer), (5, Kind::Ask)]
    );
    assert_eq!(found(&[Kind::Ask, Kind::Ask]), [(2, Kind::Ask), (5, Kind::Ask)]);
    assert_eq!(
        found(&[Kind::Event, Kind::Expiry]),
        [(1, Kind::Event), (3, Kind::Event), (6, Kind::Expiry)]
    );
    assert_eq!(found(&[Kind::Idle]), []);
    assert_eq!(found(&[]), []);
}

fn sessions_are_listed_newest_first(open: impl Fn() -> Journal) {
    let journal = open();
    recorded(&journal, vec![Draft { time: at(1), ..draft("a", "1") }]);
    recorded(&journal, vec![Draft { time: at(2), ..draft("b", "2") }]);
    let last = Draft { time: at(3), ..draft("a", "3") };
    let source = Source { protocol: "banister".to_owned(), ..last.source.clone() };
    let last = Draft { source, ..last };
    recorded(&journal, vec![last]);
    let row = |session: &str, first, last, records| SessionRow {
        session: session.to_owned(),
        agent: "claude-code".to_owned(),
        protocol: "hook:claude-code".to_owned(),
        first: at(first),
        last: at(last),
        records,
    };
    assert_eq!(journal.sessions().unwrap(), [row("a", 1, 3, 2), row("b", 2, 2, 1)]);
}

fn nothing_is_nothing(open: impl Fn() -> Journal) {
    let journal = open();
    assert_eq!(recorded(&journal, Vec::new()), []);
    assert_eq!((journal.head(), journal.after(0, 1).unwrap()), (0, Vec::new()));
    assert_eq!(journal.sessions().unwrap(), []);
    assert_eq!((journal.epoch().len(), journal.epoch() == open_other_epoch()), (32, false));
}

fn open_other_epoch() -> String {
    Place::new().open().epoch().to_owned()
}

#[test]
fn every_kind_has_its_own_stored_name() {
    let names = "event unreadable verdict ask answer expiry withdrawal idle grant revocation";
    assert_eq!(Kind::ALL.map(Kind::as_str).join(" "), names);
    assert_eq!(Kind::ALL.map(|kind| Kind::parse(kind.as_str())), Kind::ALL.map(Some));
    assert_eq!(Kind::parse("Event"), None);
}
