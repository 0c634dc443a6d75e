use super::*;
use crate::{Draft, Durability, Journal};

fn draft(session: &str, kind: Kind) -> Draft {
    Draft {
        session: session.to_owned(),
        time: Timestamp::UNIX_EPOCH,
        kind,
        source: Source {
            protocol: "aep".to_owned(),
            agent: "codex".to_owned(),
            door: "socket".to_owned(),
            key: "k".to_owned(),
        },
        turn: None,
        action: None,
        event_id: None,
        reader: 1,
        body: "{}".into(),
        findings: Value::Null,
        gate: None,
    }
}

fn filled() -> (tempfile::TempDir, PathBuf, Journal) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = Journal::open(&path).unwrap();
    let drafts = Kind::ALL.into_iter().map(|kind| draft("s", kind)).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(journal.append(drafts, Durability::Synced)).unwrap();
    (folder, path, journal)
}

#[test]
fn every_kind_but_events_is_found_through_its_index() {
    let (_folder, path, _journal) = filled();
    let connection = sqlite::reader(&path).unwrap();
    for kind in Kind::ALL {
        let query = format!("EXPLAIN QUERY PLAN {}", kind_query(kind));
        let plan: Vec<String> = connection
            .prepare(&query)
            .unwrap()
            .query_map((kind.as_str(), 0), |row| row.get(3))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let expected = match kind {
            Kind::Event => "SEARCH record USING INTEGER PRIMARY KEY (rowid>?)",
            _ => "SEARCH record USING INDEX record_by_kind (kind=? AND position>?)",
        };
        assert_eq!(plan[0], expected, "{kind:?}");
    }
}

#[test]
fn a_damaged_record_is_named_and_does_not_hide_the_others() {
    let (_folder, path, journal) = filled();
    let lie = Connection::open_with_flags(&path, rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE);
    lie.unwrap().execute_batch("UPDATE record SET findings = '[' WHERE position = 3").unwrap();
    let error = journal.after(0, 10).unwrap_err();
    assert_eq!(error.to_string(), "record 3 is damaged: findings cannot be read");
    assert_eq!(journal.after(3, 100).unwrap().len(), Kind::ALL.len() - 3);
}

#[test]
fn more_readers_than_connections_take_turns() {
    let (_folder, _path, journal) = filled();
    std::thread::scope(|scope| {
        for _ in 0..CONNECTIONS * 4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    assert_eq!(journal.after(0, 100).unwrap().len(), Kind::ALL.len());
                }
            });
        }
    });
}

#[test]
fn no_number_is_too_large_to_ask_for() {
    let (_folder, _path, journal) = filled();
    assert_eq!(journal.after(u64::MAX, usize::MAX).unwrap(), []);
    assert_eq!(journal.session("s", u64::MAX, 1).unwrap(), []);
    assert_eq!(journal.session("s", 0, usize::MAX).unwrap().len(), Kind::ALL.len());
}
