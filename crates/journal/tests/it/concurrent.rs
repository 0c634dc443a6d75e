use std::collections::HashMap;

use banister_journal::{Appended, Durability, Journal};

use crate::support::{Place, draft, wait};

#[test]
fn eight_writers_leave_no_gap_and_lose_nothing() {
    const WRITERS: usize = 8;
    const EACH: usize = 500;
    let place = Place::new();
    let journal = place.open();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let journal = journal.clone();
            scope.spawn(move || {
                for number in 0..EACH {
                    // One session of its own, and one that all share.
                    let own = draft(&format!("own {writer}"), &format!("{writer} {number}"));
                    let shared = draft("shared", &format!("{writer} {number}"));
                    let durability =
                        if number % 8 == 0 { Durability::Synced } else { Durability::Written };
                    let appended = wait(journal.append(vec![own, shared], durability)).unwrap();
                    let Appended::Recorded(records) = appended else { panic!("no ids were given") };
                    assert_eq!(records[0].seq, number as u64 + 1);
                    assert_eq!(records[1].position, records[0].position + 1);
                    assert!(journal.head() >= records[1].position);
                }
            });
        }
    });

    let records = journal.after(0, usize::MAX).unwrap();
    assert_eq!(records.len(), WRITERS * EACH * 2);
    assert!((1..).zip(&records).all(|(position, record)| record.position == position));
    let mut seqs: HashMap<&str, u64> = HashMap::new();
    for record in &records {
        let seq = seqs.entry(&record.session).or_default();
        *seq += 1;
        assert_eq!(record.seq, *seq, "{}", record.session);
    }
    // Each writer waited for its answers, so its own records stand in its own order.
    for writer in 0..WRITERS {
        let prefix = format!("{writer} ");
        let mut numbers = Vec::new();
        for record in records.iter().filter(|record| record.session == "shared") {
            let body = std::str::from_utf8(&record.body).unwrap();
            numbers
                .extend(body.strip_prefix(&prefix).map(|number| number.parse::<usize>().unwrap()));
        }
        assert!(numbers.into_iter().eq(0..EACH));
    }
    let report = Journal::verify(&place.path()).unwrap();
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(
        (report.records, report.sessions),
        ((WRITERS * EACH * 2) as u64, WRITERS as u64 + 1)
    );
}

#[test]
fn readers_and_verify_see_whole_batches_while_a_writer_writes() {
    let place = Place::new();
    let journal = place.open();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 0..400 {
                let batch = (0..3).map(|_| draft("a", &number.to_string())).collect();
                wait(journal.append(batch, Durability::Written)).unwrap();
            }
        });
        let mut looks = 0;
        while !writer.is_finished() || looks == 0 {
            let head = journal.head();
            let seen = journal.after(0, usize::MAX).unwrap();
            assert!(seen.len() as u64 >= head && seen.len().is_multiple_of(3));
            let report = Journal::verify(&place.path()).unwrap();
            assert!(report.is_clean() && report.records.is_multiple_of(3), "{report:?}");
            looks += 1;
        }
    });
    assert_eq!(journal.head(), 1200);
}

#[test]
fn a_queue_that_is_full_of_bytes_makes_writers_wait_and_loses_nothing() {
    let place = Place::new();
    let journal = place.open();
    let large = "x".repeat(Journal::BATCH_BYTES / 3);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                wait(journal.append(vec![draft("a", &large)], Durability::Written)).unwrap()
            });
        }
    });
    assert_eq!(journal.head(), 6);
}
