//! How much is read at a time, and for whom nothing more is read.

/// How many records are read at a time.
pub(super) const BATCH: usize = 256;
/// The subscriber is gone.
#[derive(Debug)]
pub(crate) struct Gone;
