//! The durable, hash-chained record of what agents did and what people answered.
//!
//! What is appended is kept as given, in one order, and is acknowledged only when it is as durable as the caller
//! asked. Records are chained per session, so that a change made afterwards is found by anyone who reads
//! [`chain`], and heads are signed, so that a journal that was written anew is found as well. The journal does not look
//! into bodies, knows no protocol and reads no clock; it removes what it is told to, and says so.
//!
//! | module | what it does |
//! |---|---|
//! | [`record`] | what is handed in, and what is kept |
//! | [`capture`] | how much is kept, per source |
//! | [`chain`] | how a record's hash is made |
//! | `appender` | the right to append |
//! | `journal` | the handle: read, search, sign, prune |
//! | `writer` | the one thread that writes, with group commit |
//! | `read` | queries, on connections of their own |
//! | [`search`] | finding what was said and done, by words |
//! | [`checkpoint`] | signed statements of where the chains stood |
//! | [`prune`] | retention that stays provable |
//! | [`verify`] | the check of a whole file, also of one in use |
//! | `sqlite` | the file: lock, settings, migrations |
//! | `simulation` | the same without a thread, with failures to order; a feature, for tests |
//!
//! ```
//! # async fn example() -> Result<(), banister_journal::Error> {
//! use banister_journal::{Appended, Appender, Draft, Durability, Kind, Source};
//!
//! # let folder = tempfile::tempdir().map_err(|source| banister_journal::Error::Io { path: "".into(), source })?;
//! # let path = folder.path().join("journal.db");
//! let journal = Appender::open(&path)?;
//! let draft = Draft {
//!     session: "s_1".to_owned(),
//!     time: "2026-05-04T10:00:00Z".parse().unwrap_or_default(),
//!     kind: Kind::Event,
//!     source: Source {
//!         protocol: "aep".to_owned(),
//!         agent: "claude-code".to_owned(),
//!         door: "socket".to_owned(),
//!         key: "k_1".to_owned(),
//!     },
//!     turn: None,
//!     action: None,
//!     event_id: Some("evt_1".to_owned()),
//!     reader: 1,
//!     body: b"{}".as_slice().into(),
//!     findings: serde_json::Value::Null,
//!     gate: None,
//! };
//! let Appended::Recorded(records) = journal.append(vec![draft.clone()], Durability::Synced).await? else {
//!     panic!("the id is new");
//! };
//! assert_eq!((records[0].position, records[0].seq), (1, 1));
//!
//! let again = journal.append(vec![draft], Durability::Synced).await?;
//! assert!(matches!(again, Appended::Duplicate { same_bytes: true, .. }));
//! # Ok(())
//! # }
//! # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
//! # runtime.block_on(example()).unwrap();
//! ```

mod appender;
mod archive;
pub mod capture;
pub mod chain;
pub mod checkpoint;
mod error;
mod heads;
mod journal;
mod key;
mod prepared;
pub mod prune;
mod read;
pub mod record;
pub mod search;
#[cfg(feature = "simulation")]
pub mod simulation;
mod sqlite;
pub mod verify;
mod words;
mod writer;

pub use appender::Appender;
pub use archive::Archive;
pub use capture::{Capture, Captured, Entry, Level};
pub use checkpoint::{Checkpoint, Cut};
pub use error::Error;
pub use journal::Journal;
pub use key::{DigestKey, PublicKey, SigningKey};
pub use prune::{Pruned, Retention};
pub use record::{Appended, Draft, Durability, Head, Kind, Newest, Record, SessionRow, Source};
pub use search::{Hit, IndexBatch, Indexed, Order, Page, Part, Passage, Query, Syntax};
pub use verify::{Bad, Evidence, Report, What};
