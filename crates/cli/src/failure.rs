//! Why a command did not do its job, and how it exits then.

/// Good.
pub(crate) const GOOD: u8 = 0;
/// Errors found, or refused.
pub(crate) const REFUSED: u8 = 1;
/// Used wrongly.
pub(crate) const USAGE: u8 = 2;
/// The tool itself failed.
pub(crate) const FAILED: u8 = 3;

/// A failure that knows its exit code; anything else exits with [`FAILED`].
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Failure {
    pub(crate) code: u8,
    message: String,
}

impl Failure {
    /// The command was used wrongly.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { code: USAGE, message: message.into() }
    }

    /// The tool could not do its job.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { code: FAILED, message: message.into() }
    }

    /// What was asked for was refused.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self { code: REFUSED, message: message.into() }
    }
}
