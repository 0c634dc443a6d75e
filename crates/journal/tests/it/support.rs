use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use banister_journal::{
    Appended, Appender, Draft, Durability, Entry, Error, IndexBatch, Indexed, Kind, Passage, Query,
    Record, SigningKey, Source,
};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::{ProptestConfig, Strategy};
use proptest::test_runner::{TestCaseResult, TestRunner};
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use tempfile::TempDir;

/// A place for one journal.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// In memory, where there is such a place: for what is tried so often that waiting for a disk would be all it does.
    pub(crate) fn in_memory() -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        Self { folder: folder.unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("journal.db")
    }

    pub(crate) fn open(&self) -> Appender {
        Appender::open(&self.path()).unwrap()
    }
}

pub(crate) fn draft(session: &str, body: &str) -> Draft {
    Draft {
        session: session.to_owned(),
        time: at(0),
        kind: Kind::Event,
        source: Source {
            protocol: "hook:claude-code".to_owned(),
            agent: "claude-code".to_owned(),
            door: "socket".to_owned(),
            key: "k_1".to_owned(),
        },
        turn: Some("t_1".to_owned()),
        action: None,
        event_id: None,
        reader: 1,
        body: body.to_owned().into(),
        findings: Value::Null,
        gate: None,
    }
}

/// A moment, some seconds into the test's day.
pub(crate) fn at(seconds: i64) -> Timestamp {
    let morning: Timestamp = "2026-05-04T10:00:00Z".parse().unwrap();
    morning + SignedDuration::from_secs(seconds)
}

pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

pub(crate) fn append<E: Into<Entry>>(
    journal: &Appender,
    entries: Vec<E>,
) -> Result<Appended, Error> {
    wait(journal.append(entries, Durability::Synced))
}

pub(crate) fn recorded<E: Into<Entry>>(journal: &Appender, drafts: Vec<E>) -> Vec<Arc<Record>> {
    match append(journal, drafts).unwrap() {
        Appended::Recorded(records) => records,
        Appended::Duplicate { first, .. } => panic!("a duplicate of {first:?}"),
    }
}

pub(crate) fn bodies(records: &[Arc<Record>]) -> Vec<&str> {
    records.iter().map(|record| std::str::from_utf8(&record.body).unwrap()).collect()
}

pub(crate) fn passage(kind: &str, title: &str, text: &str) -> Passage {
    Passage { kind: kind.to_owned(), title: title.to_owned(), text: text.to_owned() }
}

/// A text that leads to a record which is there.
pub(crate) fn indexed(record: &Record, text: &str) -> Indexed {
    Indexed {
        session: record.session.clone(),
        seq: record.seq,
        time: record.time,
        agent: record.source.agent.clone(),
        kind: "message".to_owned(),
        title: "user".to_owned(),
        text: text.to_owned(),
    }
}

/// Indexes texts, as all that can be found of the records that are there.
pub(crate) fn index(journal: &Appender, rows: Vec<Indexed>) {
    let batch = IndexBatch::new(journal.indexed(), journal.head(), rows);
    wait(journal.index(batch)).unwrap();
}

pub(crate) fn words(text: &str) -> Query {
    Query { text: text.to_owned(), limit: 100, ..Query::default() }
}

/// Tries a property on one in so many of the usual cases. `proptest!` would take their number from the environment again.
pub(crate) fn hold<S: Strategy>(
    one_in: u32,
    strategy: &S,
    test: impl Fn(S::Value) -> TestCaseResult,
) {
    let mut config = ProptestConfig::default();
    (config.cases, config.failure_persistence) = ((config.cases / one_in).max(8), None);
    if let Err(error) = TestRunner::new(config).run(strategy, test) {
        panic!("{error}");
    }
}

/// Always the same key.
pub(crate) fn key() -> SigningKey {
    SigningKey::from_seed(&[7; 32])
}

/// Changes the file behind the journal's back.
pub(crate) fn change(place: &Place, sql: &str) {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
    Connection::open_with_flags(place.path(), flags).unwrap().execute_batch(sql).unwrap();
}
