//! Durable HTTP ingest against SQLite alone: the same rows into the same tables, in groups of the same size.
//!
//! Ours goes through a real gateway over loopback: framing, every rule of the protocol, sessions, ids known again, the
//! hash chain, the journal, a receipt for each event. The peer is in this process and has nothing to do but to insert
//! rows that are ready, with the same settings of SQLite. Both commit with `synchronous=FULL`.
//!
//! The gateway feeds its search index after the acknowledgement, so there are two comparisons. `acknowledged` ends with
//! the last acknowledgement; its peer writes the records and the heads of the sessions, and no index. `searchable` ends
//! when everything can be found; its peer writes the index as well, each commit with its part of it. Both of ours are
//! measured in the same run: what the gateway indexes while events come in costs both.
//!
//! With one connection a commit is one batch, on both sides. With four, the gateway commits what waits, up to four
//! batches at once; so does the peer, always four.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use banister_events::event::Protocol;
use banister_journal::Archive;
use rusqlite::types::Value as Cell;
use rusqlite::{Connection, OpenFlags, params_from_iter};
use serde_json::{Value, json};

use super::gateway::Gateway;
use super::push::{BATCH, Load};
use super::stats::{Runs, shown};
use super::{fresh, merge, now, search, target};

/// How much is pushed in one run.
const BYTES: usize = 12 << 20;
const AT_ONCE: [usize; 2] = [1, 4];
const GOAL: f64 = 0.7;
/// How long the index may take, and how often it is looked at.
const PATIENCE: Duration = Duration::from_mins(5);
const LOOK: Duration = Duration::from_millis(1);
/// Where a passage has its title; its text comes next.
const TITLE: usize = 6;
/// As the journal has it.
const SETTINGS: &str =
    "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
    PRAGMA secure_delete = ON; PRAGMA cache_size = -16000; PRAGMA wal_autocheckpoint = 4096;
    PRAGMA journal_size_limit = 67108864;";

/// One comparison.
struct Pair {
    name: String,
    at_once: usize,
    events: u64,
    acknowledged: Against,
    searchable: Against,
}

/// Ours, and the peer that did the same.
#[derive(Default)]
struct Against {
    ours: Runs,
    peer: Runs,
}

pub(crate) fn ingest(runs: usize) -> anyhow::Result<()> {
    if cfg!(debug_assertions) {
        return super::optimized("ingest", runs);
    }
    let folder = fresh("bench-ingest")?;
    crate::tell("bench: building the gateway (release)");
    crate::run(crate::cargo()?.args(["build", "--quiet", "--release", "-p", "banister"]))?;
    let banister = target()?.join("release/banister");
    let mut pairs = Vec::new();
    for (name, protocol) in [("AEP", Protocol::Aep), ("AAEP", Protocol::Aaep)] {
        for at_once in AT_ONCE {
            let load = Load::new(protocol, BYTES, 0, at_once)?;
            let mut pair = Pair {
                name: name.to_owned(),
                at_once,
                events: load.events,
                acknowledged: Against::default(),
                searchable: Against::default(),
            };
            crate::tell(&format!("bench: {name}, {at_once} at once, {runs} runs of each"));
            // The first round warms up.
            for round in 0..=runs {
                let data = folder.join(format!("{name}-{at_once}-{round}"));
                let [acknowledged, searchable] = once(&banister, &data, &load, at_once)?;
                if round > 0 {
                    pair.acknowledged.add(acknowledged);
                    pair.searchable.add(searchable);
                }
                std::fs::remove_dir_all(&data)?;
            }
            for (name, Against { ours, peer }) in pair.both() {
                let (ours, peer) = (shown(ours.median()), shown(peer.median()));
                let events = pair.events;
                crate::tell(&format!("bench: {events} {name} in {ours} ms, the peer in {peer} ms"));
            }
            pairs.push(pair);
        }
    }
    let found = search::measure(&folder)?;
    std::fs::remove_dir_all(&folder)?;
    report(&pairs, &found)
}

impl Pair {
    fn both(&self) -> [(&'static str, &Against); 2] {
        [("acknowledged", &self.acknowledged), ("searchable", &self.searchable)]
    }
}

impl Against {
    fn add(&mut self, (ours, peer): (Duration, Duration)) {
        self.ours.add(ours);
        self.peer.add(peer);
    }
}

/// What ours and the peer took until everything was acknowledged, and until it could be found.
fn once(
    banister: &Path,
    data: &Path,
    load: &Load,
    at_once: usize,
) -> anyhow::Result<[(Duration, Duration); 2]> {
    std::fs::create_dir_all(data)?;
    let gateway = Gateway::start(banister, data)?;
    let journal = data.join("journal.db");
    let archive = Archive::open(&journal)?;
    let began = now();
    let acknowledged = load.push(&gateway.address, &gateway.key)?;
    while archive.indexed()? < archive.head()? {
        ensure!(began.elapsed() < PATIENCE, "the index is not caught up");
        std::thread::sleep(LOOK);
    }
    let searchable = began.elapsed();
    drop((archive, gateway));
    let rows = Rows::read(&journal)?;
    // What events ask is a record as well.
    ensure!(rows.records.len() as u64 >= load.events, "{} rows were written", rows.records.len());
    let bare = rows.write(&data.join("bare.db"), BATCH * at_once, Tables::Records)?;
    let whole = rows.write(&data.join("whole.db"), BATCH * at_once, Tables::All)?;
    Ok([(acknowledged, bare), (searchable, whole)])
}

/// What the peer writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tables {
    /// Records and the heads of their sessions.
    Records,
    /// The search index as well.
    All,
}

/// What the gateway has written.
struct Rows {
    schema: Vec<String>,
    /// Table, its columns, its rows.
    records: Vec<Vec<Cell>>,
    insert: String,
    session: usize,
    /// What can be searched of them: the position of the record, and the row.
    passages: Vec<(i64, Vec<Cell>)>,
    insert_passage: String,
}

impl Rows {
    fn read(path: &PathBuf) -> anyhow::Result<Self> {
        let file = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        // Tables of the index are made by the index itself.
        let mut schema = file.prepare(
            "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'passage_words_%'
             AND name NOT LIKE 'sqlite_%' ORDER BY rowid",
        )?;
        let schema = schema.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        let (columns, insert, records) = table(&file, "record", "position")?;
        let session = columns.iter().position(|name| name == "session");
        let session = session.context("records have a session")?;
        let (columns, insert_passage, passages) = table(&file, "passage", "id")?;
        ensure!(
            columns.get(TITLE..) == Some(&["title".to_owned(), "text".to_owned()]),
            "a passage ends with its text"
        );
        let mut places = file.prepare(
            "SELECT record.position FROM passage JOIN record USING (session, seq) ORDER BY passage.id",
        )?;
        let places: Vec<i64> = places.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        ensure!(places.len() == passages.len(), "every passage has its record");
        let passages = places.into_iter().zip(passages).collect();
        Ok(Self { schema, records, insert, session, passages, insert_passage })
    }

    /// Writes the same into an empty file, so many records a commit.
    fn write(&self, path: &Path, group: usize, tables: Tables) -> anyhow::Result<Duration> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let mut file = Connection::open_with_flags(path, flags)?;
        file.execute_batch(SETTINGS)?;
        for table in &self.schema {
            file.execute_batch(table)?;
        }
        let began = now();
        let passages = if tables == Tables::All { self.passages.as_slice() } else { &[] };
        let mut passages = passages.iter().peekable();
        for records in self.records.chunks(group) {
            let commit = file.transaction()?;
            let mut insert = commit.prepare_cached(&self.insert)?;
            let mut heads = std::collections::BTreeMap::new();
            for record in records {
                insert.execute(params_from_iter(record))?;
                if let Some(Cell::Text(session)) = record.get(self.session) {
                    heads.insert(session.as_str(), record);
                }
            }
            drop(insert);
            let newest = match records.last().and_then(|record| record.first()) {
                Some(Cell::Integer(position)) => *position,
                _ => i64::MAX,
            };
            let mut found = commit.prepare_cached(&self.insert_passage)?;
            let mut texts = Vec::new();
            while let Some((_, passage)) = passages.next_if(|(position, _)| *position <= newest) {
                found.execute(params_from_iter(passage))?;
                texts.push(passage);
            }
            drop(found);
            let mut words = commit.prepare_cached(
                "INSERT INTO passage_words (rowid, title, text) VALUES (?1, ?2, ?3)",
            )?;
            // Where each session stands now.
            for (session, record) in heads {
                let cells = (record.first(), record.get(2), record.get(3));
                commit
                    .prepare_cached(
                        "INSERT INTO session (session, agent, protocol, first, last, position, seq, hash)
                         VALUES (?1, 'harbour', 'bench', ?4, ?4, ?2, ?3, randomblob(32))
                         ON CONFLICT (session) DO UPDATE SET last = excluded.last,
                         position = excluded.position, seq = excluded.seq, hash = excluded.hash",
                    )?
                    .execute((session, cells.0, cells.1, cells.2))?;
            }
            // Last, and together: whatever is written between words has the index write out what it holds.
            for passage in texts {
                words.execute((passage.first(), passage.get(TITLE), passage.get(TITLE + 1)))?;
            }
            drop(words);
            commit.commit()?;
        }
        Ok(began.elapsed())
    }
}

/// A table's columns, how to insert into it, and its rows.
fn table(
    file: &Connection,
    name: &str,
    order: &str,
) -> anyhow::Result<(Vec<String>, String, Vec<Vec<Cell>>)> {
    let mut statement = file.prepare(&format!("SELECT * FROM {name} ORDER BY {order}"))?;
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let places: Vec<String> = (1..=columns.len()).map(|place| format!("?{place}")).collect();
    let insert =
        format!("INSERT INTO {name} ({}) VALUES ({})", columns.join(", "), places.join(", "));
    let count = columns.len();
    let row = |row: &rusqlite::Row<'_>| (0..count).map(|at| row.get(at)).collect();
    let rows = statement.query_map([], row)?.collect::<Result<_, _>>()?;
    Ok((columns, insert, rows))
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
fn report(pairs: &[Pair], found: &[search::Found]) -> anyhow::Result<()> {
    crate::say(&format!(
        "\nDurable ingest in batches of {BATCH}, events per second by the median:\n"
    ));
    crate::say(&format!("{:<38} {:>12} {:>12} {:>8}", "", "banister", "rusqlite", "ratio"));
    let mut rows = Vec::new();
    for pair in pairs {
        let Pair { name, at_once, events, .. } = pair;
        let rate = |runs: &Runs| *events as f64 / runs.median().as_secs_f64().max(f64::EPSILON);
        for (what, Against { ours, peer }) in pair.both() {
            let ratio = peer.times(ours);
            let met = ratio >= GOAL;
            let verdict = if met { "met" } else { "MISSED" };
            let title = format!("{name}, {at_once} connection(s), {what}");
            crate::say(&format!(
                "{title:<38} {:>12.0} {:>12.0} {ratio:>7.2}x   (goal: at least {GOAL} x, {verdict})",
                rate(ours),
                rate(peer)
            ));
            rows.push(json!({
                "protocol": name, "connections": at_once, "until": what, "events": events,
                "runs": ours.count(), "per_second": rate(ours), "peer_per_second": rate(peer),
                "ratio": ratio, "goal": GOAL, "met": met,
            }));
        }
    }
    let found: Vec<Value> = search::report(found);
    merge("ingest", json!({ "batch": BATCH, "rows": rows, "search": found }))
}
