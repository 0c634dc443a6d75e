//! Every environment variable Banister reads, and nowhere else; the configuration can name more, for secrets. Hooks read none: an agent can set them.

use std::path::PathBuf;

/// One variable.
pub(crate) struct Variable(&'static str);

/// The home directory.
pub(crate) const HOME: Variable = Variable("HOME");
/// Where configuration lives; `~/.config` without it.
pub(crate) const CONFIG_HOME: Variable = Variable("XDG_CONFIG_HOME");
/// Where data lives; `~/.local/share` without it.
pub(crate) const DATA_HOME: Variable = Variable("XDG_DATA_HOME");
/// Where the socket lives; the data directory without it.
pub(crate) const RUNTIME_DIR: Variable = Variable("XDG_RUNTIME_DIR");
/// What is logged, such as `info` or `banister_gateway=debug`.
pub(crate) const LOG: Variable = Variable("BANISTER_LOG");
/// Set to anything, no colour is used.
pub(crate) const NO_COLOR: Variable = Variable("NO_COLOR");
/// The kind of terminal; `dumb` ones know no escape sequences.
pub(crate) const TERM: Variable = Variable("TERM");

/// The value of a variable that the configuration names, if it is text and not empty.
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
pub(crate) fn named(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Variable {
    /// Its value, if it has one that is text and not empty.
    pub(crate) fn get(&self) -> Option<String> {
        named(self.0)
    }

    /// Its value as an absolute path: XDG says that others are to be ignored.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        self.get().map(PathBuf::from).filter(|path| path.is_absolute())
    }
}
