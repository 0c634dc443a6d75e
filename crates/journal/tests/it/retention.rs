use std::collections::HashSet;
use std::fs;
use std::sync::Arc;

use banister_journal::simulation::Calm;
use banister_journal::verify::State;
use banister_journal::{
    Appender, Bad, Capture, Cut, DigestKey, Draft, Durability, Evidence, Journal, Level, Report,
    Retention, What,
};
use proptest::prelude::*;

use crate::support::{Place, at, change, draft, hold, index, indexed, key, recorded, wait, words};

fn older_than(seconds: i64) -> Retention {
    Retention { before: Some(at(seconds)), ..Retention::default() }
}

fn verify(place: &Place) -> Report {
    let evidence = Evidence { checkpoints: Vec::new(), pins: vec![key().public()] };
    Journal::verify_with(&place.path(), &evidence).unwrap()
}

/// Ten records of each of three sessions, one second apart.
fn filled() -> (Place, Appender) {
    let place = Place::new();
    let journal = place.open();
    for number in 0..30_i64 {
        let session = ["a", "b", "c"][usize::try_from(number % 3).unwrap()];
        let record =
            recorded(&journal, vec![Draft { time: at(number), ..draft(session, "x") }]).remove(0);
        index(&journal, vec![indexed(&record, "fox")]);
    }
    (place, journal)
}

#[test]
fn what_was_pruned_is_told_as_pruned_and_not_as_broken() {
    let (place, journal) = filled();
    let before = wait(journal.checkpoint(&key(), at(30))).unwrap();
    let hash = journal.session("a", 3, 1).unwrap()[0].hash;
    let pruned = wait(journal.prune(older_than(10), &key(), at(40))).unwrap();
    assert_eq!((pruned.records, pruned.cuts, journal.pruned()), (10, 3, 10));
    let report = verify(&place);
    assert!(report.is_clean(), "{report:?}");
    assert_eq!((report.records, report.pruned.records, report.pruned.sessions), (20, 10, 3));
    let cut = Cut {
        session: "a".to_owned(),
        seq: 4,
        hash,
        time: at(40).to_string(),
        reason: "age".to_owned(),
    };
    assert_eq!(report.pruned.cuts[0], cut);
    assert_eq!(journal.search(&words("fox")).unwrap().hits.len(), 20);
    // A copy from before the pruning still fits.
    let evidence = Evidence { checkpoints: before, pins: vec![key().public()] };
    let report = Journal::verify_with(&place.path(), &evidence).unwrap();
    assert!(report.is_clean(), "{report:?}");

    // All of it, and then something new.
    wait(journal.prune(older_than(99), &key(), at(100))).unwrap();
    assert_eq!((journal.after(0, 9).unwrap(), journal.sessions().unwrap()), (vec![], vec![]));
    let report = verify(&place);
    assert!(report.is_clean() && report.records == 0, "{report:?}");
    drop(journal);
    let journal = place.open();
    let next = recorded(&journal, vec![draft("a", "new")]);
    assert_eq!((next[0].position, next[0].seq), (31, 11));
    assert!(verify(&place).is_clean());
}

#[test]
fn a_removal_that_only_looks_like_pruning_is_found() {
    let forge = |sql: &str| {
        let (place, journal) = filled();
        wait(journal.prune(older_than(10), &key(), at(40))).unwrap();
        drop(journal);
        change(&place, sql);
        verify(&place)
    };
    let bad = |seq, what| Some(Bad { position: 0, session: "a".to_owned(), seq, what });
    // The cut is moved, so that the chain holds; but nobody signed it.
    let report = forge(
        "UPDATE cut SET seq = 6, hash = (SELECT hash FROM record WHERE session = 'a' AND seq = 6)
             WHERE session = 'a';
         DELETE FROM record WHERE session = 'a' AND seq <= 6;",
    );
    assert!(report.is_intact(), "{report:?}");
    assert_eq!(report.completeness.first_bad, bad(6, What::Cut));
    // A cut is made up in a journal that has none.
    let (place, journal) = filled();
    wait(journal.checkpoint(&key(), at(40))).unwrap();
    drop(journal);
    change(
        &place,
        "INSERT INTO cut SELECT 'a', 2, hash, time, 'age', 1 FROM record WHERE session = 'a' AND seq = 2;
         DELETE FROM record WHERE session = 'a' AND seq <= 2;",
    );
    assert_eq!(verify(&place).completeness.first_bad, bad(2, What::Cut));
    // The cut's checkpoint is gone.
    let report = forge("DELETE FROM checkpoint");
    assert_eq!((report.completeness.state, report.completeness.bad), (State::Bad, 3));
    // The cut is forgotten: then what was pruned is missing.
    let report = forge("DELETE FROM cut WHERE session = 'a'");
    assert_eq!(
        report.first_bad.map(|bad| (bad.session, bad.seq, bad.what)),
        Some(("a".to_owned(), 1, What::Missing))
    );
    // More is removed than was pruned.
    let report = forge("DELETE FROM record WHERE session = 'a' AND seq = 5");
    assert_eq!(
        report.first_bad.map(|bad| (bad.session, bad.seq, bad.what)),
        Some(("a".to_owned(), 5, What::Missing))
    );
}

#[test]
fn the_oldest_go_until_the_size_fits_and_the_file_shrinks() {
    let place = Place::new();
    let journal = place.open();
    let body = "x".repeat(10_000);
    for number in 0..300_i64 {
        let drafts = vec![Draft { time: at(number), ..draft(&format!("{}", number % 7), &body) }];
        wait(journal.append(drafts, Durability::Written)).unwrap();
    }
    let limit = 1_000_000;
    let retention = Retention { bytes: Some(limit), ..Retention::default() };
    let pruned = wait(journal.prune(retention.clone(), &key(), at(400))).unwrap();
    assert!(pruned.used <= limit && pruned.used > limit / 2, "{pruned:?}");
    let left = journal.after(0, 999).unwrap();
    assert_eq!(left.len() as u64, 300 - pruned.records);
    assert!(left.iter().all(|record| record.position > pruned.records), "not the oldest went");
    let size = fs::metadata(place.path()).unwrap().len();
    assert!(size < limit + 200_000, "the file has {size} bytes, in use are {}", pruned.used);
    let again = wait(journal.prune(retention, &key(), at(401))).unwrap();
    assert_eq!(again.records, 0);
    let report = verify(&place);
    assert!(report.is_clean() && report.pruned.cuts.iter().all(|cut| cut.reason == "size"));
}

#[test]
fn nothing_of_what_was_removed_is_left_in_the_file() {
    let place = Place::new();
    let journal = place.open();
    let secret = "correcthorsebatterystaple";
    let record = recorded(&journal, vec![draft("a", &format!("the {secret} itself"))]).remove(0);
    index(&journal, vec![indexed(&record, secret)]);
    let digests = DigestKey::from_bytes([1; 32]);
    let capture = Capture { level: Level::None, redact: &<[u8]>::to_vec, digest_key: &digests };
    let held = recorded(&journal, vec![capture.hold(draft("b", secret))]).remove(0);
    let there = || {
        ["", "-wal"].into_iter().any(|end| {
            let path = format!("{}{end}", place.path().display());
            let bytes = fs::read(path).unwrap_or_default();
            bytes.windows(secret.len()).any(|window| window == secret.as_bytes())
        })
    };
    assert!(there());
    wait(journal.settle(vec![held.position])).unwrap();
    wait(journal.prune(older_than(10), &key(), at(20))).unwrap();
    assert!(!there());
    assert!(verify(&place).is_clean());
}

#[test]
fn sessions_with_open_asks_stay_whole() {
    let place = Place::new();
    let journal = place.open();
    let digests = DigestKey::from_bytes([1; 32]);
    let capture = Capture { level: Level::Metadata, redact: &<[u8]>::to_vec, digest_key: &digests };
    recorded(&journal, vec![draft("kept", "1"), draft("held", "2"), draft("gone", "3")]);
    let held = recorded(&journal, vec![capture.hold(draft("held", "ask"))]).remove(0);
    let keep = HashSet::from(["kept".to_owned()]);
    for retention in [
        Retention { keep: keep.clone(), ..older_than(100) },
        Retention { keep: keep.clone(), bytes: Some(0), ..Retention::default() },
    ] {
        wait(journal.prune(retention, &key(), at(200))).unwrap();
        let left: Vec<_> =
            journal.after(0, 9).unwrap().iter().map(|record| record.position).collect();
        assert_eq!(left, [1, 2, 4]);
    }
    wait(journal.settle(vec![held.position])).unwrap();
    wait(journal.prune(Retention { keep, ..older_than(100) }, &key(), at(201))).unwrap();
    assert_eq!(journal.after(0, 9).unwrap().len(), 1);
    assert!(verify(&place).is_clean());
}

#[test]
fn writers_go_on_while_much_is_pruned() {
    let place = Place::new();
    let journal = place.open();
    for number in 0..120 {
        let drafts = (0..100).map(|_| draft(&format!("{}", number % 50), "x")).collect();
        wait(journal.append::<Draft>(drafts, Durability::Written)).unwrap();
    }
    std::thread::scope(|scope| {
        let pruning = scope.spawn(|| wait(journal.prune(older_than(10), &key(), at(20))).unwrap());
        while !pruning.is_finished() {
            let late = Draft { time: at(15), ..draft("0", "late") };
            wait(journal.append(vec![late], Durability::Written)).unwrap();
        }
        assert_eq!(pruning.join().unwrap().records, 12_000);
    });
    let report = verify(&place);
    assert!(report.is_clean() && report.pruned.records >= 12_000, "{report:?}");
}

/// That the records of the model are there, in their order, and no others.
fn is_left(journal: &Journal, model: &[(u64, String, i64)]) -> Result<(), TestCaseError> {
    let left: Vec<_> =
        journal.after(0, 999).unwrap().iter().map(|record| record.position).collect();
    let expected: Vec<_> = model.iter().map(|record| record.0).collect();
    prop_assert_eq!(left, expected);
    Ok(())
}

#[test]
fn whatever_is_pruned_in_whatever_order_verifies_and_keeps_what_it_should() {
    // Appends to a session at a time (not in order), prunings by age or size with one session kept, reopening.
    let step = prop_oneof![
        6 => (0_u8..4, 0_i64..100).prop_map(|(session, time)| (0, session, time)),
        2 => (0_u8..4, 0_i64..100).prop_map(|(keep, before)| (1, keep, before)),
        1 => (0_u8..4, Just(0)).prop_map(|(keep, _)| (2, keep, 0)),
        1 => Just((3, 0, 0)),
    ];
    // Made once: most of what a new journal costs is its layout.
    let empty = Place::in_memory();
    drop(empty.open());
    hold(4, &proptest::collection::vec(step, 1..40), |steps| {
        let place = Place::in_memory();
        fs::copy(empty.path(), place.path()).unwrap();
        // Without a thread: what is pruned is the same, and nobody waits for anybody.
        let open = || Appender::simulated(&place.path(), Arc::new(Calm)).unwrap();
        let mut journal = open();
        let mut model: Vec<(u64, String, i64)> = Vec::new();
        for (what, session, number) in steps {
            let session = session.to_string();
            let keep = HashSet::from([session.clone()]);
            match what {
                0 => {
                    let record = recorded(
                        &journal,
                        vec![Draft { time: at(number), ..draft(&session, "x") }],
                    )
                    .remove(0);
                    prop_assert_eq!(record.position, journal.head());
                    model.push((record.position, session, number));
                    continue;
                }
                1 => {
                    wait(journal.prune(Retention { keep, ..older_than(number) }, &key(), at(500)))
                        .unwrap();
                    let mut blocked = HashSet::from([session]);
                    model.retain(|(_, session, time)| {
                        let stays = blocked.contains(session) || *time >= number;
                        if stays {
                            blocked.insert(session.clone());
                        }
                        stays
                    });
                }
                2 => {
                    wait(journal.prune(
                        Retention { keep, bytes: Some(0), before: None },
                        &key(),
                        at(500),
                    ))
                    .unwrap();
                    model.retain(|(_, of, _)| *of == session);
                }
                _ => {
                    drop(journal);
                    journal = open();
                }
            }
            is_left(&journal, &model)?;
        }
        is_left(&journal, &model)?;
        let report = verify(&place);
        prop_assert!(report.is_clean(), "{:?}", report);
        Ok(())
    });
}
