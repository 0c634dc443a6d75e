//! The bounds on what comes from outside, in one place.

/// The largest single message that is read, in bytes.
pub const MESSAGE_BYTES: usize = 8 * 1024 * 1024;

/// How much of an oversized message is kept as evidence, in bytes.
pub const EVIDENCE_BYTES: usize = 1024 * 1024;

/// AAEP's limit on one output chunk and on most texts, in characters.
pub const AAEP_TEXT_CHARS: usize = 16_384;

/// AAEP's limit on a terse summary, in characters.
pub const AAEP_TERSE_CHARS: usize = 4_096;
