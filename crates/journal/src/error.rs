//! What a caller of the journal can be told. Tampered or damaged records are findings of [`crate::verify`], not
//! errors, except where a read needs one of them.

use std::path::PathBuf;
use std::sync::Arc;

/// Why the journal could not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another process, or another handle in this one, writes to this file.
    #[error("{} is already open in another gateway", path.display())]
    Locked {
        /// The journal's file.
        path: PathBuf,
    },
    /// The file is a database, but of something else. It was left as it is.
    #[error("{} is not a journal", path.display())]
    NotAJournal {
        /// The file.
        path: PathBuf,
    },
    /// A later version of Banister wrote the file. It was left as it is.
    #[error("{} has layout {found}, this version knows layouts up to {known}", path.display())]
    Newer {
        /// The journal's file.
        path: PathBuf,
        /// The layout the file has.
        found: i64,
        /// The newest layout this version knows.
        known: i64,
    },
    /// The file system cannot keep a write-ahead log, as some network file systems cannot.
    #[error("{} is on a file system without support for a write-ahead log", path.display())]
    NoWriteAheadLog {
        /// The journal's file.
        path: PathBuf,
    },
    /// The file cannot be written.
    #[error("{} cannot be written: it, its folder or its file system is read-only", path.display())]
    ReadOnly {
        /// The journal's file.
        path: PathBuf,
    },
    /// The batch is larger than the journal takes in one piece. Nothing of it was written.
    #[error("a batch of {bytes} bytes is larger than the limit of {limit}")]
    TooLarge {
        /// The batch's size.
        bytes: usize,
        /// The largest size that is taken.
        limit: usize,
    },
    /// Findings or gate are nested deeper than could be read back. Nothing of the batch was written.
    #[error("json nested deeper than {limit} levels")]
    TooDeep {
        /// The deepest nesting that is taken.
        limit: usize,
    },
    /// A draft after the first bears an id that is taken. Nothing of the batch was written.
    #[error("event id {event_id} of key {key} is already recorded")]
    EventIdTaken {
        /// The id of the sender's key.
        key: String,
        /// The sender's id of the message.
        event_id: String,
    },
    /// A search that means nothing.
    #[error("the search cannot be made: {message}")]
    Query {
        /// What is wrong with it.
        message: String,
    },
    /// A batch for the search index does not follow on what is indexed. Nothing of it was written.
    #[error("the search index stands at position {found}, not at {after}")]
    IndexElsewhere {
        /// Where the batch begins.
        after: u64,
        /// How far the index has come.
        found: u64,
    },
    /// Something that was given or stored as a checkpoint is none.
    #[error("not a checkpoint: {message}")]
    BadCheckpoint {
        /// What is wrong with it.
        message: String,
    },
    /// A file that should hold a key does not.
    #[error("{} is not a key: it should hold 64 hex digits; move it away to have a new one made", path.display())]
    BadKey {
        /// The file.
        path: PathBuf,
    },
    /// The operating system gave no random numbers.
    #[error("no random numbers from the system: {0}")]
    Random(String),
    /// The file has an older layout, and only a gateway brings it to the newest.
    #[error("{} has the older layout {found}; start a gateway once to bring it to layout {known}", path.display())]
    Older {
        /// The journal's file.
        path: PathBuf,
        /// The layout the file has.
        found: i64,
        /// The newest layout this version knows.
        known: i64,
    },
    /// A stored record cannot be read; `verify` tells more.
    #[error("record {position} is damaged: {column} cannot be read")]
    Damaged {
        /// Where the record stands.
        position: u64,
        /// The column that does not hold what it should.
        column: &'static str,
    },
    /// The write did not happen, or its end is unknown: it must not be taken for recorded.
    #[error("the journal could not be written")]
    Write(#[source] Arc<rusqlite::Error>),
    /// The writer is gone; the journal takes nothing more.
    #[error("the journal's writer has stopped")]
    Stopped,
    /// The database refused a read or could not be opened.
    #[error("the journal could not be read")]
    Sqlite(#[from] rusqlite::Error),
    /// The file system refused.
    #[error("{}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}
