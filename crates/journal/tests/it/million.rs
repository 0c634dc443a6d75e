use std::sync::Arc;
use std::time::{Duration, Instant};

use banister_journal::{Appended, Draft, Durability, Order, Query, Record, Retention};

use crate::support::{Place, at, bodies, draft, index, indexed, key, wait, words};

const RECORDS: u32 = 1_000_000;
const BATCH: u32 = 250;

/// The word with a number; low numbers are common, high ones rare.
fn word(number: u32) -> String {
    format!("w{number}")
}

/// Numbers that follow no order, the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u32) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(sides)).unwrap()
    }

    /// A word of fifty thousand, the first of them most often.
    fn word(&mut self) -> String {
        let wide = self.roll(50_000) + 1;
        word(self.roll(wide))
    }
}

#[expect(clippy::disallowed_methods, reason = "this measures")]
fn now() -> Instant {
    Instant::now()
}

/// `cargo test --release -p banister-journal --test it million -- --ignored --nocapture`
#[test]
#[ignore = "takes minutes, and measures"]
fn a_million_records_are_searched_in_a_tenth_of_a_second() {
    let place = Place::new();
    let journal = place.open();
    let mut dice = Dice(1);
    let start = now();
    for batch in 0..RECORDS / BATCH {
        let drafts = (0..BATCH).map(|number| {
            let index = batch * BATCH + number;
            let text: Vec<_> = (0..12).map(|_| dice.word()).collect();
            let time = at(i64::from(index));
            Draft { time, ..draft(&format!("s_{}", index / 500), &text.join(" ")) }
        });
        let drafts = drafts.collect::<Vec<_>>();
        let appended = wait(journal.append(drafts, Durability::Written)).unwrap();
        let Appended::Recorded(records) = appended else { panic!("the ids are new") };
        let row = |record: &Arc<Record>| indexed(record, bodies(std::slice::from_ref(record))[0]);
        index(&journal, records.iter().map(row).collect());
    }
    let took = start.elapsed();
    let size = std::fs::metadata(place.path()).unwrap().len();
    println!(
        "{RECORDS} records in {took:?}, {:.0}/s, {} MB",
        f64::from(RECORDS) / took.as_secs_f64(),
        size >> 20
    );

    let mut measure = |name: &str, query: &dyn Fn(&mut Dice) -> Query| {
        let mut times: Vec<Duration> = Vec::new();
        let mut hits = 0;
        for _ in 0..200 {
            let query = query(&mut dice);
            let start = now();
            hits += journal.search(&query).unwrap().hits.len();
            times.push(start.elapsed());
        }
        times.sort();
        println!(
            "{name}: p50 {:?}, p95 {:?}, max {:?}, {} hits",
            times[100], times[190], times[199], hits
        );
        times[190]
    };
    let page = |text: String| Query { limit: 20, ..words(&text) };
    let newest =
        measure("two words, newest", &|dice| page(format!("{} {}", dice.word(), dice.word())));
    measure("one word, newest", &|dice| page(dice.word()));
    measure("one common word, newest", &|dice| page(word(dice.roll(3))));
    measure("a beginning, newest", &|dice| page(format!("{}*", word(dice.roll(999)))));
    measure("a common word in a session", &|dice| Query {
        session: Some(format!("s_{}", dice.roll(2000))),
        ..page(word(dice.roll(9)))
    });
    measure("one word, by relevance", &|dice| Query {
        order: Order::Relevance,
        ..page(dice.word())
    });
    measure("a common word, by relevance", &|dice| Query {
        order: Order::Relevance,
        ..page(word(dice.roll(3)))
    });
    assert!(newest < Duration::from_millis(100), "{newest:?}");

    let start = now();
    let checkpoints = wait(journal.checkpoint(&key(), at(0))).unwrap();
    println!("{} heads signed in {:?}", checkpoints[0].heads.len(), start.elapsed());
    let start = now();
    let report = banister_journal::Journal::verify(&place.path()).unwrap();
    println!("verified in {:?}", start.elapsed());
    assert!(report.is_clean());
    let start = now();
    let retention = Retention { before: Some(at(i64::from(RECORDS / 10))), ..Retention::default() };
    let (pruned, longest) = std::thread::scope(|scope| {
        let pruning = scope.spawn(|| wait(journal.prune(retention, &key(), at(0))).unwrap());
        let mut longest = Duration::ZERO;
        while !pruning.is_finished() {
            let start = now();
            let late = Draft { time: at(i64::from(RECORDS)), ..draft("late", "x") };
            wait(journal.append(vec![late], Durability::Written)).unwrap();
            longest = longest.max(start.elapsed());
        }
        (pruning.join().unwrap(), longest)
    });
    let size = std::fs::metadata(place.path()).unwrap().len();
    println!(
        "{} records pruned in {:?}, {} MB; a writer waited {longest:?} at most",
        pruned.records,
        start.elapsed(),
        size >> 20
    );
}
