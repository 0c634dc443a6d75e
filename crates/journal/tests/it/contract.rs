//! What the gateway relies on, said once for whichever back end keeps the records: each promise is a function of
//! "open the journal of this place", called again to reopen it after every handle is gone.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use banister_journal::simulation::{Calm, Fate};
use banister_journal::{
    Appended, Appender, Capture, Checkpoint, DigestKey, Draft, Durability, Error, Head, IndexBatch,
    Indexed, Kind, Level, Record, Retention, SessionRow, Source,
};
use serde_json::json;

use crate::support::{
    Place, append, at, bodies, draft, index, indexed, key, passage, recorded, wait, words,
};

/// Every promise by name; `open` is given a new place for each.
fn contract<O: Fn() -> Appender>(place: impl Fn() -> O) {
    order_and_gapless_seq(place());
    a_batch_is_whole_or_not_at_all(place());
    the_same_bytes_again_are_the_first_record(place());
    ids_of_different_keys_do_not_meet(place());
    reopening_changes_nothing(place());
    own_facts_are_found_in_order(place());
    a_mark_is_kept(place());
    sessions_are_listed_newest_first(place());
    nothing_is_nothing(place());
    heads_are_where_the_chains_end(place());
    what_is_indexed_is_found(place());
    the_index_knows_how_far_it_has_come(place());
    a_checkpoint_covers_what_changed_and_nothing_twice(place());
    what_is_pruned_is_gone_and_the_rest_goes_on(place());
    exact_bytes_are_held_until_they_are_settled(place());
}

#[test]
fn sqlite_keeps_the_contract() {
    contract(|| {
        let place = Place::new();
        move || place.open()
    });
}

#[test]
fn the_simulated_journal_keeps_the_contract() {
    contract(|| {
        let place = Place::new();
        move || Appender::simulated(&place.path(), Arc::new(Calm)).unwrap()
    });
}

fn order_and_gapless_seq(open: impl Fn() -> Appender) {
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

fn a_batch_is_whole_or_not_at_all(open: impl Fn() -> Appender) {
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

fn the_same_bytes_again_are_the_first_record(open: impl Fn() -> Appender) {
    let known = Draft { event_id: Some("evt_1".to_owned()), ..draft("a", "1") };
    let journal = open();
    let original = recorded(&journal, vec![known.clone()]);
    let check = |journal: &Appender| {
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

fn ids_of_different_keys_do_not_meet(open: impl Fn() -> Appender) {
    let journal = open();
    let one = Draft { event_id: Some("evt_1".to_owned()), ..draft("a", "1") };
    let source = Source { key: "k_2".to_owned(), ..one.source.clone() };
    let other = Draft { source, ..one.clone() };
    recorded(&journal, vec![one, other]);
    recorded(&journal, vec![draft("a", "without an id"), draft("a", "without an id")]);
    assert_eq!(journal.head(), 4);
}

fn reopening_changes_nothing(open: impl Fn() -> Appender) {
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

fn own_facts_are_found_in_order(open: impl Fn() -> Appender) {
    let journal = open();
    let kinds = [Kind::Event, Kind::Ask, Kind::Event, Kind::Answer, Kind::Ask, Kind::Expiry];
    recorded(
        &journal,
        kinds.iter().map(|&kind| Draft { kind, ..draft("a", kind.as_str()) }).collect(),
    );
    let found = |kinds: &[Kind]| -> Vec<_> {
        let records = journal.of_kinds(kinds, 0).unwrap();
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
    let later = |position| -> Vec<_> {
        let records = journal.of_kinds(&[Kind::Ask, Kind::Event], position).unwrap();
        records.iter().map(|record| record.position).collect()
    };
    assert_eq!((later(2), later(5)), (vec![3, 5], vec![]));
}

fn a_mark_is_kept(open: impl Fn() -> Appender) {
    let journal = open();
    assert_eq!(journal.mark().unwrap(), 0);
    for position in [7, 3] {
        wait(journal.set_mark(position)).unwrap();
        assert_eq!(journal.mark().unwrap(), position);
    }
    drop(journal);
    assert_eq!(open().mark().unwrap(), 3);
}

fn sessions_are_listed_newest_first(open: impl Fn() -> Appender) {
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

fn nothing_is_nothing(open: impl Fn() -> Appender) {
    let journal = open();
    assert_eq!(recorded(&journal, Vec::<Draft>::new()), []);
    assert_eq!((journal.head(), journal.after(0, 1).unwrap()), (0, Vec::new()));
    assert_eq!(journal.sessions().unwrap(), []);
    assert_eq!((journal.epoch().len(), journal.epoch() == open_other_epoch()), (32, false));
}

fn open_other_epoch() -> String {
    Place::new().open().epoch().to_owned()
}

fn heads_are_where_the_chains_end(open: impl Fn() -> Appender) {
    let journal = open();
    let records = recorded(&journal, vec![draft("b", "1"), draft("a", "2"), draft("b", "3")]);
    let head = |record: &Record| Head {
        session: record.session.clone(),
        seq: record.seq,
        hash: record.hash,
    };
    assert_eq!(journal.heads("", 9).unwrap(), [head(&records[1]), head(&records[2])]);
    assert_eq!(journal.heads("", 1).unwrap(), [head(&records[1])]);
    assert_eq!(journal.heads("a", 9).unwrap(), [head(&records[2])]);
    assert_eq!(journal.heads("b", 9).unwrap(), []);
}

fn what_is_indexed_is_found(open: impl Fn() -> Appender) {
    let journal = open();
    let first = recorded(&journal, vec![draft("a", "1"), draft("b", "2")]);
    let rows = vec![indexed(&first[0], "the quick brown fox"), indexed(&first[1], "a slow fox")];
    index(&journal, rows);
    let digests = DigestKey::from_bytes([1; 32]);
    let capture = Capture { level: Level::Full, redact: &<[u8]>::to_vec, digest_key: &digests };
    let third = recorded(&journal, vec![capture.apply(draft("a", "3"))]).remove(0);
    let row = Indexed::new(&third, passage("action", "Bash", "echo fox"), &str::to_owned);
    index(&journal, row.into_iter().collect());
    let found = |journal: &Appender, text: &str| -> Vec<_> {
        let page = journal.search(&words(text)).unwrap();
        page.hits.into_iter().map(|hit| (hit.session, hit.seq, hit.kind)).collect()
    };
    let hit = |session: &str, seq, kind: &str| (session.to_owned(), seq, kind.to_owned());
    let all = [hit("a", 2, "action"), hit("b", 1, "message"), hit("a", 1, "message")];
    assert_eq!(found(&journal, "fox"), all);
    assert_eq!(found(&journal, "quick fox"), all[2..]);
    assert_eq!(found(&journal, "wolf"), []);
    drop(journal);
    let journal = open();
    assert_eq!(found(&journal, "FOX"), all);
    wait(journal.clear_index()).unwrap();
    assert_eq!(found(&journal, "fox"), []);
    index(&journal, vec![indexed(&first[1], "a fox again")]);
    assert_eq!(found(&journal, "fox"), [hit("b", 1, "message")]);
}

fn the_index_knows_how_far_it_has_come(open: impl Fn() -> Appender) {
    let journal = open();
    let records = recorded(&journal, vec![draft("a", "1"), draft("a", "2"), draft("b", "3")]);
    assert_eq!((journal.indexed(), journal.head()), (0, 3));
    let feed = |journal: &Appender, after, through, record: &Record| {
        wait(journal.index(IndexBatch::new(after, through, vec![indexed(record, "fox")])))
    };
    feed(&journal, 0, 2, &records[0]).unwrap();
    drop(journal);
    let journal = open();
    assert_eq!((journal.indexed(), journal.head()), (2, 3));
    // What does not follow on it is not taken: neither what is there already, nor what would leave a gap.
    for (after, through) in [(0, 2), (0, 3), (1, 3), (3, 3), (2, 1)] {
        let error = feed(&journal, after, through, &records[1]).unwrap_err();
        assert!(matches!(error, Error::IndexElsewhere { found: 2, .. }), "{error}");
    }
    let count = |journal: &Appender| journal.search(&words("fox")).unwrap().hits.len();
    assert_eq!((journal.indexed(), count(&journal)), (2, 1));
    // What retention has removed meanwhile is left out.
    let keep = HashSet::from(["b".to_owned()]);
    let retention = Retention { before: Some(at(10)), bytes: None, keep };
    wait(journal.prune(retention, &key(), at(30))).unwrap();
    let rows = vec![indexed(&records[1], "fox"), indexed(&records[2], "fox")];
    wait(journal.index(IndexBatch::new(2, 3, rows))).unwrap();
    let found = journal.search(&words("fox")).unwrap().hits;
    assert_eq!(found.into_iter().map(|hit| hit.session).collect::<Vec<_>>(), ["b"]);
    wait(journal.clear_index()).unwrap();
    assert_eq!((journal.indexed(), count(&journal)), (0, 0));
    drop(journal);
    assert_eq!(open().indexed(), 0);
}

fn a_checkpoint_covers_what_changed_and_nothing_twice(open: impl Fn() -> Appender) {
    let journal = open();
    let make = |journal: &Appender| wait(journal.checkpoint(&key(), at(9))).unwrap();
    assert_eq!(make(&journal), []);
    recorded(&journal, vec![draft("a", "1"), draft("b", "2")]);
    let first = make(&journal);
    recorded(&journal, vec![draft("b", "3")]);
    drop(journal);
    let journal = open();
    let second = make(&journal);
    let counts = |checkpoints: &[Checkpoint]| -> Vec<_> {
        let heads = checkpoints.iter().flat_map(|checkpoint| &checkpoint.heads);
        heads.map(|head| (head.session.clone(), head.seq)).collect()
    };
    assert_eq!(counts(&first), [("a".to_owned(), 1), ("b".to_owned(), 1)]);
    assert_eq!(counts(&second), [("b".to_owned(), 2)]);
    assert_eq!((first[0].number, first[0].prev), (1, [0; 32]));
    assert_eq!((second[0].number, second[0].prev), (2, first[0].hash()));
    assert!(first[0].is_signed() && second[0].is_signed());
    assert_eq!(make(&journal), []);
    assert_eq!(journal.checkpoints(0, 9).unwrap(), [first, second].concat());
}

fn what_is_pruned_is_gone_and_the_rest_goes_on(open: impl Fn() -> Appender) {
    let journal = open();
    let aged = |session: &str, seconds| Draft { time: at(seconds), ..draft(session, "x") };
    let drafts = vec![aged("a", 1), aged("b", 2), aged("a", 3), aged("a", 20), aged("c", 4)];
    let records = recorded(&journal, drafts);
    index(&journal, vec![indexed(&records[0], "fox")]);
    let keep = HashSet::from(["c".to_owned()]);
    let retention = Retention { before: Some(at(10)), bytes: None, keep };
    let pruned = wait(journal.prune(retention.clone(), &key(), at(30))).unwrap();
    assert_eq!((pruned.records, pruned.cuts, journal.pruned()), (3, 2, 3));
    drop(journal);

    let journal = open();
    assert_eq!((journal.head(), journal.pruned()), (5, 3));
    assert_eq!(journal.after(0, 9).unwrap(), records[3..]);
    assert_eq!(journal.search(&words("fox")).unwrap().hits, []);
    let rows = journal.sessions().unwrap();
    let rows: Vec<_> = rows.iter().map(|row| (row.session.as_str(), row.records)).collect();
    assert_eq!(rows, [("c", 1), ("a", 1)]);
    let again = wait(journal.prune(retention, &key(), at(31))).unwrap();
    assert_eq!((again.records, again.cuts), (0, 0));
    // What was emptied goes on where it was.
    let next = recorded(&journal, vec![aged("b", 40)]);
    assert_eq!((next[0].position, next[0].seq, next[0].prev), (6, 2, records[1].hash));
    let row = journal.sessions().unwrap().remove(0);
    assert_eq!((row.session.as_str(), row.records, row.first), ("b", 1, at(40)));
}

fn exact_bytes_are_held_until_they_are_settled(open: impl Fn() -> Appender) {
    let digests = DigestKey::from_bytes([1; 32]);
    let redact = |bytes: &[u8]| bytes.to_ascii_uppercase();
    let capture = Capture { level: Level::Redacted, redact: &redact, digest_key: &digests };
    let journal = open();
    let records = recorded(&journal, vec![capture.hold(draft("a", "secret"))]);
    assert_eq!((&records[0].body[..], &records[0].exact()[..]), (&b"SECRET"[..], &b"secret"[..]));
    drop(journal);
    let journal = open();
    assert_eq!(journal.after(0, 9).unwrap(), records);
    assert_eq!(journal.held().unwrap(), records);
    assert_eq!(wait(journal.settle(vec![1, 2])).unwrap(), 1);
    assert_eq!(wait(journal.settle(vec![1])).unwrap(), 0);
    assert_eq!(journal.held().unwrap(), []);
    let settled = &journal.after(0, 9).unwrap()[0];
    assert_eq!((settled.exact(), settled.hash), (&records[0].body, records[0].hash));
    assert_eq!(settled.captured.digest, Some(digests.digest(b"secret")));
}

#[test]
fn every_kind_has_its_own_stored_name() {
    let names = "event unreadable verdict ask answer expiry withdrawal idle grant revocation \
                 parked resumption";
    assert_eq!(Kind::ALL.map(Kind::as_str).join(" "), names);
    assert_eq!(Kind::ALL.map(|kind| Kind::parse(kind.as_str())), Kind::ALL.map(Some));
    assert_eq!(Kind::parse("Event"), None);
}

/// A journal whose every second commit fails.
#[derive(Debug, Default)]
struct Moody(AtomicBool);

impl Fate for Moody {
    fn fails(&self) -> bool {
        self.0.fetch_xor(true, Ordering::SeqCst)
    }
}

#[test]
fn a_commit_that_was_made_to_fail_has_written_nothing() {
    let place = Place::new();
    let journal = Appender::simulated(&place.path(), Arc::new(Moody::default())).unwrap();
    for number in 1..=3 {
        assert_eq!(recorded(&journal, vec![draft("a", "1")])[0].seq, number);
        assert!(matches!(append(&journal, vec![draft("a", "2")]), Err(Error::Write(_))));
        assert_eq!(journal.head(), number);
    }
    assert!(banister_journal::Journal::verify(&place.path()).unwrap().is_clean());
}
