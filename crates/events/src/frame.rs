//! Bytes → messages and back.
//!
//! Everything here is incremental, does no I/O and holds no more of a message than the limit it was given. Whether a
//! message makes sense is decided later: a frame knows nothing of protocols.

pub mod json;
pub mod ndjson;
pub mod sse;

/// Why a message was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The message is larger than the parser may hold.
    #[error("a message is larger than {limit} bytes")]
    TooLarge {
        /// The limit the parser was given.
        limit: usize,
    },
}
