//! What can be wrong with rules. Nothing else in this crate fails.

use std::fmt;

/// Why rules do not load.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not a rule file, or a rule in it says what it cannot say.
    #[error("{0}")]
    Invalid(Box<RuleFault>),
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

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleFault {
    /// The file's name, as given by the caller.
    pub name: String,
    /// The line, from 1; 0 where it is not known.
    pub line: u64,
    /// The column, from 1; 0 where it is not known.
    pub column: u64,
    /// The rule's id, without its layer, where a rule is at fault.
    pub rule: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do about it, where that is known.
    pub remedy: Option<String>,
}

impl fmt::Display for RuleFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: ", self.name, self.line, self.column)?;
        if let Some(rule) = &self.rule {
            write!(f, "rule `{rule}`: ")?;
        }
        f.write_str(&self.message)?;
        match &self.remedy {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}

impl Error {
    /// What is wrong with an embedded file: only a change of this crate can bring it about.
    pub(crate) fn embedded(name: &str, message: String) -> Self {
        Self::Invalid(Box::new(RuleFault {
            name: name.to_owned(),
            line: 0,
            column: 0,
            rule: None,
            message,
            remedy: None,
        }))
    }
}

fn expectation(should_match: bool) -> &'static str {
    if should_match {
        "does not match its example"
    } else {
        "matches what it says it does not match"
    }
}
