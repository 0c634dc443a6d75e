use std::fs;

use banister_journal::{Appended, Archive, Draft, Durability, Error, Journal};
use rusqlite::{Connection, OpenFlags};

use crate::support::{Place, change, draft, index, indexed, key, recorded, wait, words};

/// A journal as the code with layout 1 wrote it.
fn old() -> Place {
    let place = Place::new();
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let connection = Connection::open_with_flags(place.path(), flags).unwrap();
    connection.execute_batch(include_str!("../data/layout_1.sql")).unwrap();
    place
}

fn number(place: &Place, query: &str) -> i64 {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let connection = Connection::open_with_flags(place.path(), flags).unwrap();
    connection.query_row(query, [], |row| row.get(0)).unwrap()
}

#[test]
fn a_journal_of_the_first_layout_is_brought_up_and_nothing_in_it_changes() {
    let place = old();
    let query = "SELECT sum(position * length(hash) * seq) FROM record";
    let before = number(&place, query);
    let journal = place.open();
    assert_eq!((journal.head(), journal.pruned(), journal.indexed()), (12, 0, 12));
    assert_eq!(journal.epoch(), "27dd040aee876cb306e8bd6065c8a32a");
    assert_eq!(number(&place, query), before);
    assert_eq!(number(&place, "PRAGMA user_version"), 5);
    let report = Journal::verify(&place.path()).unwrap();
    assert!(report.is_clean() && (report.records, report.sessions) == (12, 3), "{report:?}");

    // What was recorded before is still known, and everything new works.
    let records = journal.after(0, 99).unwrap();
    assert_eq!(records[9].body.as_ref(), [0, 255, 10, 13, 128]);
    let again = Draft {
        event_id: records[3].event_id.clone(),
        source: records[3].source.clone(),
        body: records[3].body.clone(),
        ..draft(&records[3].session, "")
    };
    let again = wait(journal.append(vec![again], Durability::Synced)).unwrap();
    assert!(matches!(again, Appended::Duplicate { same_bytes: true, .. }));
    let next = recorded(&journal, vec![draft("s_one", "new")]);
    assert_eq!((next[0].position, next[0].seq, next[0].prev), (13, 5, records[9].hash));
    index(&journal, vec![indexed(&records[0], "a fox")]);
    assert_eq!(journal.search(&words("fox")).unwrap().hits.len(), 1);
    assert_eq!(wait(journal.checkpoint(&key(), records[0].time)).unwrap()[0].heads.len(), 3);
    drop(journal);
    assert!(Journal::verify(&place.path()).unwrap().is_clean());
    assert_eq!(number(&place, "PRAGMA auto_vacuum"), 2);
}

#[test]
fn a_reader_does_not_change_the_layout_and_says_who_would() {
    let place = old();
    let before = fs::read(place.path()).unwrap();
    let error = Archive::open(&place.path()).unwrap_err();
    assert!(matches!(&error, Error::Older { found: 1, known: 5, .. }), "{error}");
    assert!(error.to_string().contains("start a gateway once"), "{error}");
    assert!(matches!(Journal::verify(&place.path()), Err(Error::Older { .. })));
    assert_eq!(fs::read(place.path()).unwrap(), before);
}

#[test]
fn a_step_that_fails_leaves_the_older_layout() {
    let place = old();
    change(&place, "CREATE TABLE checkpoint (something TEXT)");
    Journal::open(&place.path()).unwrap_err();
    assert_eq!(number(&place, "PRAGMA user_version"), 1);
    let columns = "SELECT count(*) FROM pragma_table_info('record')";
    assert_eq!(number(&place, columns), 18);
    change(&place, "DROP TABLE checkpoint");
    assert_eq!(place.open().head(), 12);
}

#[test]
fn a_newer_layout_is_refused_by_writers_and_readers_and_left_as_it_is() {
    let place = Place::new();
    drop(place.open());
    change(&place, "PRAGMA user_version = 6");
    let before = fs::read(place.path()).unwrap();
    for error in [
        Journal::open(&place.path()).unwrap_err(),
        Archive::open(&place.path()).unwrap_err(),
        Journal::verify(&place.path()).unwrap_err(),
    ] {
        assert!(error.to_string().ends_with("has layout 6, this version knows layouts up to 5"));
    }
    assert_eq!(fs::read(place.path()).unwrap(), before);
}
