use std::path::PathBuf;

/// Why a gateway did not start, or could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The journal.
    #[error("journal: {0}")]
    Journal(#[from] banister_journal::Error),
    /// A rule file.
    #[error("policy: {0}")]
    Policy(#[from] crate::policy::RulesTrouble),
    /// A mapping file.
    #[error("agent mapping: {0}")]
    Mapping(#[from] banister_events::aep::mapping::Error),
    /// A file.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What happened.
        source: std::io::Error,
    },
    /// The keys file.
    #[error("{path}: not a key file: {message}")]
    Keys {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// A task that did not come to its end.
    #[error("an internal task stopped: {0}")]
    Task(String),
    /// The operating system's random source.
    #[error("no random numbers from the system: {0}")]
    Random(String),
    /// A listener.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: String,
        /// What happened.
        source: std::io::Error,
    },
}
