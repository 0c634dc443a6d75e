use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use super::*;
use crate::record::{Draft, Kind, Source};
use crate::sqlite::unsigned;
use crate::{Journal, SigningKey, sqlite};

fn draft(event_id: Option<&str>, bytes: usize) -> Draft {
    Draft {
        session: "s".to_owned(),
        time: Timestamp::UNIX_EPOCH,
        kind: Kind::Event,
        source: Source {
            protocol: "aep".to_owned(),
            agent: "codex".to_owned(),
            door: "socket".to_owned(),
            key: "k".to_owned(),
        },
        turn: None,
        action: None,
        event_id: event_id.map(str::to_owned),
        reader: 1,
        body: vec![b'x'; bytes].into(),
        findings: Value::Null,
        gate: None,
    }
}

fn folder() -> (TempDir, PathBuf, Runtime) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    (folder, path, Builder::new_current_thread().build().unwrap())
}

/// What the last sync that nobody waited for covered.
fn synced(path: &Path) -> u64 {
    let connection = sqlite::reader(path).unwrap();
    let query = "SELECT value FROM meta WHERE name = 'synced'";
    connection.query_row(query, [], |row| row.get(0).map(unsigned)).unwrap()
}

#[test]
fn a_full_disk_fails_the_batch_whole_and_the_next_one_works() {
    let (_folder, path, runtime) = folder();
    let lock = sqlite::lock(&path).unwrap();
    let connection = sqlite::writer(&lock).unwrap();
    connection.pragma_update_and_check(None, "max_page_count", 80, |_| Ok(())).unwrap();
    let journal = Journal::start(lock, connection).unwrap();
    for durability in [Durability::Written, Durability::Synced] {
        let before = journal.head();
        runtime.block_on(journal.append(vec![draft(None, 10)], durability)).unwrap();
        let large = vec![draft(None, 10), draft(None, 400_000)];
        let error = runtime.block_on(journal.append(large, durability)).unwrap_err();
        assert!(matches!(error, Error::Write(_)), "{error}");
        assert_eq!(journal.head(), before + 1);
        runtime.block_on(journal.append(vec![draft(None, 10)], durability)).unwrap();
        assert_eq!(journal.head(), before + 2);
    }
    let seqs: Vec<_> = journal.after(0, 9).unwrap().iter().map(|record| record.seq).collect();
    assert_eq!(seqs, [1, 2, 3, 4]);
    assert!(Journal::verify(&path).unwrap().is_clean());
}

#[test]
fn what_did_not_wait_for_the_disk_is_synced_soon_after() {
    let (_folder, path, runtime) = folder();
    let journal = Journal::open(&path).unwrap();
    for position in 1..=3 {
        runtime.block_on(journal.append(vec![draft(None, 10)], Durability::Written)).unwrap();
        // Far longer than promised: the test's machine may be busy, the promise is about the disk.
        let patience = now() + Duration::from_secs(5);
        while synced(&path) < position {
            assert!(now() < patience, "position {position} was never synced");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn closing_syncs_what_is_left() {
    let (_folder, path, runtime) = folder();
    let journal = Journal::open(&path).unwrap();
    runtime.block_on(journal.append(vec![draft(None, 10)], Durability::Written)).unwrap();
    drop(journal);
    assert_eq!(synced(&path), 1);
}

/// A writer without its thread, to look at between two steps.
fn writer(path: &Path) -> Writer {
    let lock = sqlite::lock(path).unwrap();
    Writer::new(sqlite::writer(&lock).unwrap(), Shown::default()).unwrap()
}

fn batch(drafts: impl IntoIterator<Item = Draft>) -> Vec<Vec<Prepared>> {
    let batch = drafts.into_iter().map(|draft| Prepared::new(draft.into()).unwrap());
    vec![batch.collect()]
}

#[test]
fn a_synced_duplicate_of_an_unsynced_record_waits_for_the_sync() {
    let (_folder, path, _) = folder();
    let mut writer = writer(&path);
    writer.write(batch([draft(Some("a"), 1)]), Durability::Written).unwrap();
    assert!(writer.sync_due.is_some());
    let outcomes = writer.write(batch([draft(Some("a"), 1)]), Durability::Synced).unwrap();
    assert!(matches!(outcomes.as_slice(), [Ok(Appended::Duplicate { same_bytes: true, .. })]));
    assert_eq!((writer.sync_due, synced(&path)), (None, 1));
}

#[test]
fn while_syncs_fail_every_commit_waits_for_its_own() {
    let (_folder, path, _) = folder();
    let mut writer = writer(&path);
    writer.write(batch([draft(None, 1)]), Durability::Written).unwrap();
    writer.connection.pragma_update(None, "query_only", true).unwrap();
    writer.sync();
    assert!(writer.sync_failed && writer.sync_due.is_some());
    writer.connection.pragma_update(None, "query_only", false).unwrap();

    let room = Arc::new(tokio::sync::Semaphore::new(1)).try_acquire_owned().unwrap();
    let (reply, mut answer) = oneshot::channel();
    let batch = batch([draft(None, 1)]).remove(0);
    writer.commit(vec![Job { batch, durability: Durability::Written, reply, room }]);
    assert!(answer.try_recv().unwrap().is_ok());
    assert_eq!((writer.level, writer.sync_due), (Some(Durability::Synced), None));
    assert_eq!((writer.sync_failed, synced(&path)), (false, 2));
}

#[test]
fn the_log_is_moved_into_the_database_while_the_journal_is_in_use() {
    let (_folder, path, runtime) = folder();
    let journal = Journal::open(&path).unwrap();
    for _ in 0..40 {
        runtime
            .block_on(journal.append(vec![draft(None, 1_000_000)], Durability::Written))
            .unwrap();
    }
    let log = std::fs::metadata(path.with_extension("db-wal")).unwrap().len();
    assert!(log < 25_000_000, "the log has {log} bytes");
}

#[test]
fn a_taken_id_refuses_its_own_batch_and_no_other_of_the_group() {
    let (_folder, path, _) = folder();
    let mut writer = writer(&path);
    let mut group = batch([draft(Some("a"), 1)]);
    group.extend(batch([draft(Some("b"), 1), draft(Some("a"), 1)]));
    group.extend(batch([draft(Some("c"), 1), draft(Some("c"), 1)]));
    group.extend(batch([draft(Some("a"), 2)]));
    group.extend(batch([draft(Some("b"), 1)]));
    let outcomes = writer.write(group, Durability::Synced).unwrap();
    assert!(matches!(
        outcomes.as_slice(),
        [
            Ok(Appended::Recorded(_)),
            Err(Error::EventIdTaken { .. }),
            Err(Error::EventIdTaken { .. }),
            Ok(Appended::Duplicate { same_bytes: false, .. }),
            Ok(Appended::Recorded(_)),
        ]
    ));
    assert_eq!(writer.position, 2);
}

#[test]
fn what_could_not_be_read_back_is_refused() {
    let (_folder, path, runtime) = folder();
    let journal = Journal::open(&path).unwrap();
    let nested = |levels| (1..levels).fold(json!(1), |inner, _| json!([inner]));
    let mut deep = draft(None, 1);
    deep.gate = Some(nested(100));
    runtime.block_on(journal.append(vec![deep.clone()], Durability::Written)).unwrap();
    assert_eq!(journal.after(0, 1).unwrap()[0].gate, deep.gate);
    deep.findings = nested(101);
    let refused = runtime.block_on(journal.append(vec![deep], Durability::Written));
    assert!(matches!(refused, Err(Error::TooDeep { .. })));

    let large = vec![draft(None, Journal::BATCH_BYTES / 2), draft(None, Journal::BATCH_BYTES / 2)];
    let refused = runtime.block_on(journal.append(large, Durability::Written));
    assert!(matches!(refused, Err(Error::TooLarge { .. })));
    assert_eq!(journal.head(), 1);
}

#[test]
fn a_file_that_cannot_be_written_fails_what_is_written_and_works_again_afterwards() {
    let (_folder, path, _) = folder();
    let mut writer = writer(&path);
    writer.write(batch([draft(None, 1)]), Durability::Synced).unwrap();
    writer.connection.pragma_update(None, "query_only", true).unwrap();
    for durability in [Durability::Written, Durability::Synced] {
        writer.write(batch([draft(None, 1)]), durability).unwrap_err();
    }
    let key = SigningKey::from_seed(&[7; 32]);
    let sign = |writer: &mut Writer| {
        writer.own(|transaction| {
            crate::checkpoint::add(transaction, &key, Timestamp::UNIX_EPOCH, Vec::new())
        })
    };
    assert!(matches!(sign(&mut writer), Err(Error::Write(_))));
    writer.connection.pragma_update(None, "query_only", false).unwrap();
    writer.write(batch([draft(None, 1)]), Durability::Synced).unwrap();
    assert_eq!(sign(&mut writer).unwrap()[0].heads[0].seq, 2);
    drop(writer);
    let report = Journal::verify(&path).unwrap();
    assert!(report.is_clean() && report.records == 2, "{report:?}");
}

/// Whoever waits to be recorded goes first, but not for ever.
#[test]
fn the_index_waits_for_those_who_wait_to_be_recorded() {
    let (_folder, path, _) = folder();
    let writer = writer(&path);
    let room = Arc::new(tokio::sync::Semaphore::new(99_999));
    let share = || Arc::clone(&room).try_acquire_owned().unwrap();
    let (jobs, queue) = std::sync::mpsc::sync_channel(99_999);
    let (shown, order) = (writer.shown.clone(), Arc::new(std::sync::Mutex::new(Vec::new())));
    // Each looks at where the writer stands in its turn: one look in the middle of every group.
    let look = |name: u64| {
        let (shown, order) = (shown.clone(), Arc::clone(&order));
        let look = move |_: &mut Writer| {
            let indexed = shown.indexed.load(Ordering::Acquire);
            order.lock().unwrap().push((name, indexed));
        };
        Work::Own(Box::new(look), share())
    };
    let (reply, answer) = oneshot::channel();
    let batch = IndexBatch::new(0, 7, Vec::new());
    jobs.send(Work::Index(IndexJob { batch, reply, room: share() })).unwrap();
    let looks = (GROUP as u64) * u64::from(INDEX_PATIENCE) * 2;
    for name in 0..looks {
        jobs.send(look(name)).unwrap();
    }
    drop(jobs);
    writer.run(&queue);
    assert!(answer.blocking_recv().unwrap().is_ok());
    let order = order.lock().unwrap();
    let before = order.iter().filter(|(_, indexed)| *indexed == 0).count();
    assert_eq!(order.len() as u64, looks);
    assert!(before >= GROUP * INDEX_PATIENCE as usize && before < order.len(), "{before}");
}

#[test]
fn a_full_disk_has_room_again_after_pruning() {
    let (_folder, path, runtime) = folder();
    let lock = sqlite::lock(&path).unwrap();
    let connection = sqlite::writer(&lock).unwrap();
    connection.pragma_update_and_check(None, "max_page_count", 200, |_| Ok(())).unwrap();
    let journal = Journal::start(lock, connection).unwrap();
    let append = || runtime.block_on(journal.append(vec![draft(None, 20_000)], Durability::Synced));
    let row = |seq| crate::Indexed {
        session: "s".to_owned(),
        seq,
        time: Timestamp::UNIX_EPOCH,
        agent: "codex".to_owned(),
        kind: "message".to_owned(),
        title: String::new(),
        text: "fox ".repeat(50),
    };
    let mut written = 0;
    while append().is_ok() {
        written += 1;
        let batch = IndexBatch::new(journal.indexed(), journal.head(), vec![row(written)]);
        drop(runtime.block_on(journal.index(batch)));
    }
    assert!(written > 10 && journal.head() == written);
    let key = SigningKey::from_seed(&[7; 32]);
    let retention = crate::Retention { bytes: Some(400_000), ..crate::Retention::default() };
    let pruned = runtime.block_on(journal.prune(retention, &key, Timestamp::UNIX_EPOCH)).unwrap();
    assert!(pruned.records > 0, "{pruned:?}");
    append().unwrap();
    assert_eq!(journal.head(), written + 1);
    let report = Journal::verify(&path).unwrap();
    assert!(report.is_clean() && report.pruned.records == pruned.records, "{report:?}");
}
