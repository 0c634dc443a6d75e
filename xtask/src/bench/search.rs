//! Searching a journal of a million records, each with a text of its own.

use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use anyhow::bail;
use banister_journal::{
    Appended, Appender, Draft, Durability, IndexBatch, Indexed, Kind, Order, Passage, Query,
    Record, Source,
};
use bytes::Bytes;
use serde_json::{Value, json};

use super::now;
use super::stats::{Runs, shown};

const RECORDS: u32 = 1_000_000;
const BATCH: u32 = 1_000;
/// How many words a text has.
const WORDS: u32 = 12;
const QUERIES: usize = 200;
const GOAL_MS: u128 = 100;

/// One kind of query.
pub(super) struct Found {
    name: &'static str,
    runs: Runs,
    hits: usize,
}

/// Numbers that follow no order, the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u32) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(sides.max(1))).unwrap_or_default()
    }

    /// A word of fifty thousand, the first of them most often.
    fn word(&mut self) -> String {
        let wide = self.roll(50_000) + 1;
        format!("w{}", self.roll(wide))
    }
}

pub(super) fn measure(folder: &Path) -> anyhow::Result<Vec<Found>> {
    crate::tell("bench: a journal of a million records to search");
    let journal = Appender::open(&folder.join("search.db"))?;
    let mut dice = Dice(1);
    fill(&journal, &mut dice)?;
    let page = |text: String| Query { text, limit: 20, ..Query::default() };
    let mut all = Vec::new();
    let mut search = |name, query: &mut dyn FnMut(&mut Dice) -> Query| -> anyhow::Result<()> {
        let (mut runs, mut hits) = (Runs::default(), 0);
        for _ in 0..QUERIES {
            let query = query(&mut dice);
            let began = now();
            hits += journal.search(&query)?.hits.len();
            runs.add(began.elapsed());
        }
        all.push(Found { name, runs, hits });
        Ok(())
    };
    search("one word, newest", &mut |dice| page(dice.word()))?;
    search("two words, newest", &mut |dice| page(format!("{} {}", dice.word(), dice.word())))?;
    search("a common word, newest", &mut |dice| page(format!("w{}", dice.roll(3))))?;
    search("a beginning, newest", &mut |dice| page(format!("w{}*", dice.roll(999))))?;
    search("a word in a session", &mut |dice| Query {
        session: Some(format!("s_{}", dice.roll(2_000))),
        ..page(format!("w{}", dice.roll(9)))
    })?;
    search("one word, by relevance", &mut |dice| Query {
        order: Order::Relevance,
        ..page(dice.word())
    })?;
    search("a common word, by relevance", &mut |dice| Query {
        order: Order::Relevance,
        ..page(format!("w{}", dice.roll(3)))
    })?;
    Ok(all)
}

fn fill(journal: &Appender, dice: &mut Dice) -> anyhow::Result<()> {
    for batch in 0..RECORDS / BATCH {
        let drafts = (0..BATCH).map(|number| {
            let words: Vec<_> = (0..WORDS).map(|_| dice.word()).collect();
            draft(batch * BATCH + number, &words.join(" "))
        });
        let appended = wait(journal.append(drafts.collect::<Vec<_>>(), Durability::Written))?;
        let Appended::Recorded(records) = appended else { bail!("an id was there already") };
        let row = |record: &Arc<Record>| {
            let text = String::from_utf8_lossy(&record.body).into_owned();
            let (kind, title) = ("message".to_owned(), "user".to_owned());
            Indexed::new(record, Passage { kind, title, text }, &str::to_owned)
        };
        let rows = records.iter().filter_map(row).collect();
        wait(journal.index(IndexBatch::new(journal.indexed(), journal.head(), rows)))?;
    }
    Ok(())
}

fn draft(index: u32, text: &str) -> Draft {
    Draft {
        session: format!("s_{}", index / 500),
        time: jiff::Timestamp::from_second(1_780_000_000 + i64::from(index)).unwrap_or_default(),
        kind: Kind::Event,
        source: Source {
            protocol: "aep".to_owned(),
            agent: "bench".to_owned(),
            door: "bench".to_owned(),
            key: "bench".to_owned(),
        },
        turn: None,
        action: None,
        event_id: None,
        reader: 1,
        body: Bytes::copy_from_slice(text.as_bytes()),
        findings: Value::Null,
        gate: None,
    }
}

/// Waits for a future that needs no runtime.
fn wait<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

pub(super) fn report(found: &[Found]) -> Vec<Value> {
    crate::say(&format!(
        "\nSearch over {RECORDS} records, {QUERIES} queries each, milliseconds:\n"
    ));
    crate::say(&format!("{:<32} {:>9} {:>9}", "", "p50", "p95"));
    let row = |Found { name, runs, hits }: &Found| {
        let [p50, p95] = [50, 95].map(|percent| runs.percentile(percent));
        let met = p95.as_millis() < GOAL_MS;
        let verdict = if met { "met" } else { "MISSED" };
        let (one, other) = (shown(p50), shown(p95));
        crate::say(&format!(
            "{name:<32} {one:>9} {other:>9}   (goal: p95 under {GOAL_MS}, {verdict}; {hits} hits)"
        ));
        let micros =
            |took: std::time::Duration| u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        json!({ "name": name, "p50_us": micros(p50), "p95_us": micros(p95), "met": met })
    };
    found.iter().map(row).collect()
}
