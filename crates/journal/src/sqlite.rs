//! The file: who may write to it, the settings durability rests on, its layout. Every connection is opened here.
//!
//! A file that is not a journal, or one of a later version, is left untouched.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::Error;

/// `BNST`, in the database's header.
const APPLICATION_ID: i64 = 0x424e_5354;

/// In order; the layout's number is how many of them a file has seen.
const MIGRATIONS: [&str; 5] = [
    include_str!("../migrations/0001_record.sql"),
    include_str!("../migrations/0002_evidence.sql"),
    include_str!("../migrations/0003_beginnings.sql"),
    include_str!("../migrations/0004_words_together.sql"),
    include_str!("../migrations/0005_index_after.sql"),
];

/// A file of an older layout up to this size is rewritten once, so that it can shrink later. A larger one keeps its
/// free pages for what comes.
const REWRITE_BYTES: u64 = 256 * 1024 * 1024;

/// How often a lock that is held is tried again, and how long after. A process that this one is just starting has a copy
/// of every open file until it runs its own program: a lock may outlive its holder by that moment.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// How long a connection waits for somebody who inspects the file with tools of their own.
const BUSY: Duration = Duration::from_secs(5);

/// Past this the write-ahead log is cut back once it has been moved into the database.
const LOG_BYTES: i64 = 64 * 1024 * 1024;

/// The sole right to write to a journal, held until dropped or until the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct Lock {
    // Beside the database, not on it: closing any other handle of the database would drop SQLite's own locks.
    _file: File,
    pub(crate) path: PathBuf,
}

/// Takes the lock of the journal at `path`, by whichever name the file is known.
pub(crate) fn lock(path: &Path) -> Result<Lock, Error> {
    let path = resolve(path)?;
    let lock = lock_file(&path);
    let file = private(OpenOptions::new().write(true).create(true).truncate(false))
        .open(&lock)
        .map_err(|source| Error::Io { path: lock.clone(), source })?;
    let mut tries = LOCK_TRIES;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Lock { _file: file, path }),
            Err(TryLockError::Error(source)) => return Err(Error::Io { path: lock, source }),
            Err(TryLockError::WouldBlock) if tries == 0 => return Err(Error::Locked { path }),
            Err(TryLockError::WouldBlock) => {
                tries -= 1;
                std::thread::sleep(LOCK_PAUSE);
            }
        }
    }
}

/// Whether somebody has the lock of the journal at `path`. Where that cannot be told, nobody has.
pub(crate) fn is_locked(path: &Path) -> bool {
    let Ok(path) = resolve(path) else { return false };
    let Ok(file) = File::open(lock_file(&path)) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

fn lock_file(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".lock");
    PathBuf::from(name)
}

/// The connection that writes; makes the file if there is none, and brings it to the newest layout.
pub(crate) fn writer(lock: &Lock) -> Result<Connection, Error> {
    let path = &lock.path;
    match private(OpenOptions::new().write(true).create_new(true)).open(path) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(source) => {
            return Err(Error::Io { path: path.clone(), source });
        }
    }
    let mut connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // SQLite would rather open a file that cannot be written than none.
    if connection.is_readonly("main")? {
        return Err(Error::ReadOnly { path: path.clone() });
    }
    let layout = layout(&connection, path)?;
    if layout == 0 {
        // Before anything is in the file, or it has to be rewritten.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    // What is removed is overwritten: it was removed for a reason.
    connection.pragma_update_and_check(None, "secure_delete", true, |_| Ok(()))?;
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "cache_size", -16_000)?;
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Err(Error::NoWriteAheadLog { path: path.clone() });
    }
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES, |_| Ok(()))?;
    // The writer moves the log into the database itself, after it has answered.
    connection.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))?;
    migrate(&mut connection, layout)?;
    let can_shrink: i64 = connection.pragma_query_value(None, "auto_vacuum", |row| row.get(0))?;
    if can_shrink == 0 && fs::metadata(path).is_ok_and(|file| file.len() <= REWRITE_BYTES) {
        // Without it the journal works as well: a full disk is no reason not to open.
        drop(connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL; VACUUM"));
    }
    Ok(connection)
}

/// A connection that may add a checkpoint beside a running gateway. It changes no record, no head and no layout, so
/// that what the gateway knows stays true.
pub(crate) fn witness(path: &Path) -> Result<Connection, Error> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    newest(&connection, path)?;
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))?;
    Ok(connection)
}

fn newest(connection: &Connection, path: &Path) -> Result<(), Error> {
    let known = signed(MIGRATIONS.len() as u64);
    match layout(connection, path)? {
        0 => Err(Error::NotAJournal { path: path.to_owned() }),
        found if found < known => Err(Error::Older { path: path.to_owned(), found, known }),
        _ => Ok(()),
    }
}

/// A connection that reads only, also beside a running gateway, and where nothing can be written at all.
pub(crate) fn reader(path: &Path) -> Result<Connection, Error> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    match newest(&connection, path) {
        Ok(()) => Ok(connection),
        // Readers keep their places in a file of their own, which cannot be made here. Whoever cannot write beside a
        // journal whose log is empty can read it as it lies there: nobody changes it by this way either.
        Err(Error::Sqlite(error)) if cannot_open(&error) && is_at_rest(path) => {
            let connection = open_at_rest(path)?;
            newest(&connection, path)?;
            Ok(connection)
        }
        Err(error) => Err(error),
    }
}

fn cannot_open(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly))
}

/// Whether everything is in the database itself: its write-ahead log is empty or not there.
fn is_at_rest(path: &Path) -> bool {
    let mut log = OsString::from(path);
    log.push("-wal");
    match fs::metadata(PathBuf::from(log)) {
        Ok(log) => log.len() == 0,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

fn open_at_rest(path: &Path) -> Result<Connection, Error> {
    use std::fmt::Write as _;
    let absolute =
        std::path::absolute(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
    let mut uri = String::from("file:");
    for byte in absolute.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => uri.push(char::from(*byte)),
            plain if plain.is_ascii_alphanumeric() => uri.push(char::from(*plain)),
            other => write!(uri, "%{other:02x}").unwrap_or(()),
        }
    }
    uri.push_str("?immutable=1");
    open(Path::new(&uri), OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI)
}

fn open(path: &Path, access: OpenFlags) -> Result<Connection, Error> {
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(32);
    // A statement that is kept is not planned anew for what is bound to it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

/// The number of the file's layout; 0 for an empty file.
fn layout(connection: &Connection, path: &Path) -> Result<i64, Error> {
    let (application, found, empty): (i64, i64, bool) = connection.query_row(
        "SELECT a.application_id, v.user_version, NOT EXISTS (SELECT 1 FROM sqlite_schema)
         FROM pragma_application_id AS a, pragma_user_version AS v",
        [],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    let known = signed(MIGRATIONS.len() as u64);
    match (application, found) {
        (0, 0) if empty => Ok(0),
        (APPLICATION_ID, 1..) if found <= known => Ok(found),
        (APPLICATION_ID, 1..) => Err(Error::Newer { path: path.to_owned(), found, known }),
        _ => Err(Error::NotAJournal { path: path.to_owned() }),
    }
}

fn migrate(connection: &mut Connection, layout: i64) -> Result<(), Error> {
    for (number, migration) in (1_i64..).zip(MIGRATIONS) {
        if number > layout {
            let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            step.execute_batch(migration)?;
            step.pragma_update(None, "application_id", APPLICATION_ID)?;
            step.pragma_update(None, "user_version", number)?;
            step.commit()?;
        }
    }
    Ok(())
}

/// One name per file, so that a link to a journal has the same lock.
fn resolve(path: &Path) -> Result<PathBuf, Error> {
    let failed = |source| Error::Io { path: path.to_owned(), source };
    match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let name =
                path.file_name().ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
            let folder = match path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent,
                _ => Path::new("."),
            };
            Ok(fs::canonicalize(folder).map_err(failed)?.join(name))
        }
        found => found.map_err(failed),
    }
}

/// Only the owner may read what agents did.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// SQLite counts in `i64`. Nothing lies beyond its end: what is stored starts at 0 and grows by one.
pub(crate) fn signed(number: u64) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// What a damaged file has below zero counts as nothing.
pub(crate) fn unsigned(number: i64) -> u64 {
    number.try_into().unwrap_or_default()
}

#[cfg(test)]
#[path = "sqlite_tests.rs"]
mod tests;
