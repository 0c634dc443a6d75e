use tempfile::TempDir;

use super::*;
use crate::Journal;

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    (folder, path)
}

/// A database that somebody else made.
fn foreign(path: &Path, sql: &str) {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    Connection::open_with_flags(path, flags).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn a_second_writer_is_refused_until_the_first_is_gone() {
    let (_folder, path) = folder();
    let first = Journal::open(&path).unwrap();
    let refused = Journal::open(&path).unwrap_err();
    assert!(matches!(&refused, Error::Locked { .. }), "{refused}");
    assert!(refused.to_string().ends_with("journal.db is already open in another gateway"));
    drop(first);
    Journal::open(&path).unwrap();
}

#[cfg(unix)]
#[test]
fn a_link_to_a_journal_has_the_same_lock() {
    let (folder, path) = folder();
    let _first = Journal::open(&path).unwrap();
    let link = folder.path().join("link.db");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(matches!(Journal::open(&link), Err(Error::Locked { .. })));
}

#[cfg(unix)]
#[test]
fn only_the_owner_may_read_the_files() {
    use std::os::unix::fs::PermissionsExt;

    let (folder, path) = folder();
    let _journal = Journal::open(&path).unwrap();
    let modes: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().permissions().mode() & 0o777)
        .collect();
    assert!(modes.len() >= 3 && modes.iter().all(|mode| *mode == 0o600), "{modes:?}");
}

#[test]
fn a_database_of_something_else_is_refused_and_left_as_it_is() {
    let (_folder, path) = folder();
    foreign(&path, "CREATE TABLE recipe (name TEXT)");
    let before = fs::read(&path).unwrap();
    assert!(matches!(Journal::open(&path), Err(Error::NotAJournal { .. })));
    assert!(matches!(Journal::verify(&path), Err(Error::NotAJournal { .. })));
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_file_that_is_no_database_is_refused_and_left_as_it_is() {
    let (_folder, path) = folder();
    let text = "these are somebody's notes\n".repeat(99);
    fs::write(&path, &text).unwrap();
    assert!(matches!(Journal::open(&path), Err(Error::Sqlite(_))));
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn a_journal_of_a_later_version_is_refused() {
    let (_folder, path) = folder();
    drop(Journal::open(&path).unwrap());
    foreign(&path, "PRAGMA user_version = 9");
    assert!(matches!(Journal::open(&path), Err(Error::Newer { found: 9, known: 5, .. })));
    assert!(matches!(Journal::verify(&path), Err(Error::Newer { .. })));
}

#[test]
fn an_empty_file_becomes_a_journal_but_is_none_to_verify() {
    let (_folder, path) = folder();
    fs::write(&path, "").unwrap();
    assert!(matches!(Journal::verify(&path), Err(Error::NotAJournal { .. })));
    drop(Journal::open(&path).unwrap());
    assert!(Journal::verify(&path).unwrap().is_clean());
}

#[test]
fn a_missing_folder_is_an_error_and_verify_makes_no_file() {
    let (folder, path) = folder();
    assert!(matches!(
        Journal::open(&folder.path().join("missing/journal.db")),
        Err(Error::Io { .. })
    ));
    Journal::verify(&path).unwrap_err();
    assert!(!path.exists());
}

#[test]
fn the_settings_that_durability_rests_on_are_in_force() {
    let (_folder, path) = folder();
    let lock = lock(&path).unwrap();
    let connection = writer(&lock).unwrap();
    let setting =
        |name| -> i64 { connection.pragma_query_value(None, name, |row| row.get(0)).unwrap() };
    let full = 2;
    assert_eq!((setting("synchronous"), setting("wal_autocheckpoint")), (full, 0));
    assert_eq!(setting("journal_size_limit"), LOG_BYTES);
    let mode: String =
        connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
}

#[test]
fn a_journal_at_rest_is_read_as_it_lies_whatever_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a b?c#d%20é.db");
    drop(Journal::open(&path).unwrap());
    assert!(is_at_rest(&path));
    let connection = open_at_rest(&path).unwrap();
    newest(&connection, &path).unwrap();
    connection.execute_batch("DELETE FROM meta").unwrap_err();
    // What is in its log would be left out: then it does not lie at rest.
    let mut log = OsString::from(&path);
    log.push("-wal");
    fs::write(&log, b"").unwrap();
    assert!(is_at_rest(&path));
    fs::write(&log, b"x").unwrap();
    assert!(!is_at_rest(&path));
}
