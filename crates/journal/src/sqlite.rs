//! The file: who may write to it, the settings durability rests on, its layout. Every connection is opened here.
//!
//! A file that is not a journal, or one of a later version, is left untouched.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::Error;

/// `BNST`, in the database's header.
const APPLICATION_ID: i64 = 0x424e_5354;

/// In order; the layout's number is how many of them a file has seen.
const MIGRATIONS: [&str; 1] = [include_str!("../migrations/0001_record.sql")];

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
    let mut name = OsString::from(&path);
    name.push(".lock");
    let lock = PathBuf::from(name);
    let file = private(OpenOptions::new().write(true).create(true).truncate(false))
        .open(&lock)
        .map_err(|source| Error::Io { path: lock.clone(), source })?;
    match file.try_lock() {
        Ok(()) => Ok(Lock { _file: file, path }),
        Err(TryLockError::WouldBlock) => Err(Error::Locked { path }),
        Err(TryLockError::Error(source)) => Err(Error::Io { path: lock, source }),
    }
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
    let layout = layout(&connection, path)?;
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
    Ok(connection)
}

/// A connection that reads only, also beside a running gateway.
pub(crate) fn reader(path: &Path) -> Result<Connection, Error> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    if layout(&connection, path)? == 0 {
        return Err(Error::NotAJournal { path: path.to_owned() });
    }
    Ok(connection)
}

fn open(path: &Path, access: OpenFlags) -> Result<Connection, Error> {
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(32);
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
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
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
