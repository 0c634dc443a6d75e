//! The question: an action, and where it would happen.

use std::path::PathBuf;
use std::sync::LazyLock;

use banister_events::activity::Action;

/// What is to be decided.
#[derive(Debug, Clone, Copy)]
pub struct ActionRequest<'a> {
    /// The agent's short name.
    pub agent: &'a str,
    /// What it wants to do.
    pub action: &'a Action,
    /// The directory it starts in.
    pub cwd: Option<&'a str>,
    /// What it is free to work on; without one, the directory it starts in.
    pub project: Option<&'a str>,
    /// The person's home.
    pub home: Option<&'a str>,
    /// Banister's own files and directories, absolute.
    pub own: &'a [PathBuf],
}

impl<'a> ActionRequest<'a> {
    /// The scene that the examples of rules are tried in: an agent at work in `/home/me/project`.
    pub fn example(action: &'a Action) -> Self {
        static OWN: LazyLock<[PathBuf; 1]> =
            LazyLock::new(|| [PathBuf::from("/home/me/.config/banister")]);
        Self {
            agent: "claude",
            action,
            cwd: Some("/home/me/project"),
            project: None,
            home: Some("/home/me"),
            own: OWN.as_slice(),
        }
    }
}
