//! Where a call goes that no gateway took: one file each, picked up when the gateway starts.
//!
//! A file appears under its final name only when it is whole and synced. The directory is bounded: a gateway that is
//! never started must not fill the disk.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::clock;
use crate::wire::Call;

/// The first line of every spooled file.
pub const FIRST_LINE: &str = "banister-spool 1";
/// How the name of a spooled file ends.
pub const EXTENSION: &str = "spool";
/// How many files the directory may hold before no more are added.
pub const MOST_FILES: usize = 10_000;

/// Keeps one call, with what the agent was told.
pub(crate) fn keep(directory: &Path, call: &Call<'_>, answered: &str) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    if fs::read_dir(directory)?.take(MOST_FILES + 1).count() > MOST_FILES {
        return Err(io::Error::other("the spool is full"));
    }
    let time_ms = clock::unix_ms();
    let Call { agent, event, idempotency, payload, .. } = call;
    let truncated = if payload.is_truncated() {
        format!("truncated: {}\n", payload.total)
    } else {
        String::new()
    };
    let head = format!(
        "{FIRST_LINE}\nagent: {agent}\nevent: {event}\nidempotency: {idempotency}\n\
         answered: {answered}\ntime_ms: {time_ms}\n{truncated}\n"
    );
    let name = format!("{time_ms}-{idempotency}.{EXTENSION}");
    let unfinished = directory.join(format!(".{name}.part"));
    let written = write(&unfinished, head.as_bytes(), &payload.bytes)
        .and_then(|()| fs::rename(&unfinished, directory.join(name)));
    if written.is_err() {
        // The first error is the one to report.
        fs::remove_file(&unfinished).ok();
    }
    written
}

/// A file in the spool that says: the last hook to wait for the gateway waited in vain.
///
/// It makes the hooks after it connect with care. Where the spool cannot be written there is no mark, and a gateway
/// that hangs with a full queue can then hold a hook until the agent ends it.
#[derive(Debug)]
pub(crate) struct Mark(PathBuf);

impl Mark {
    pub(crate) fn within(directory: &str) -> Self {
        Self(Path::new(directory).join(".unanswered"))
    }

    pub(crate) fn is_set(&self) -> bool {
        fs::symlink_metadata(&self.0).is_ok()
    }

    pub(crate) fn set(&self) {
        self.0.parent().map(make);
        File::create(&self.0).ok();
    }

    pub(crate) fn clear(&self) {
        fs::remove_file(&self.0).ok();
    }
}

fn make(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

fn write(path: &Path, head: &[u8], payload: &[u8]) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(head)?;
    file.write_all(payload)?;
    file.sync_all()
}
