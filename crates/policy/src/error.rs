//! What can be wrong with rules. Nothing else in this crate fails.

/// Why rules do not load.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not a rule file.
    #[error("{name}:{line}:{column}: {message}")]
    Invalid {
        /// The file's name, as given by the caller.
        name: String,
        /// The line, from 1; 0 where it is not known.
        line: u64,
        /// The column, from 1; 0 where it is not known.
        column: u64,
        /// What is wrong.
        message: String,
    },
    /// A rule does not do what its own example says.
    #[error("{name}:{line}:{column}: rule `{rule}` {}: `{example}`", expectation(*.should_match))]
    Example {
        /// The file's name, as given by the caller.
        name: String,
        /// The line of the example, from 1.
        line: u64,
        /// The column of the example, from 1.
        column: u64,
        /// The rule's id.
        rule: String,
        /// The example.
        example: String,
        /// Whether the rule had to match it.
        should_match: bool,
    },
    /// The text is longer than any rule file needs to be.
    #[error("{name}: a rule file of {length} bytes is longer than {limit} bytes")]
    TooLong {
        /// The file's name, as given by the caller.
        name: String,
        /// Its length in bytes.
        length: usize,
        /// The most that is read.
        limit: usize,
    },
}

fn expectation(should_match: bool) -> &'static str {
    if should_match {
        "does not match its example"
    } else {
        "matches what it says it does not match"
    }
}
