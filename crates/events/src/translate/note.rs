//! What a writer did that nobody told it to.

use serde::{Deserialize, Serialize};

/// Something a writer did that nobody told it to, so that its stream stays a valid one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Note {
    /// What it did.
    pub kind: NoteKind,
    /// What it did it to: a type of activity, an id, a field.
    pub about: String,
}

/// What a writer did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// The protocol has no word for it: it was left out.
    Dropped,
    /// What had to come before it was not said: it was begun.
    Opened,
    /// What was still open was ended.
    Closed,
    /// A text was longer than the protocol takes.
    Shortened,
    /// A credential was taken out.
    Redacted,
    /// An id did not fit, or was used before: it got another one.
    Renamed,
    /// A grave action ran although nobody was asked; it is told so.
    Unconfirmed,
    /// An action ran although it was refused; it is told so.
    Refused,
    /// An answer came to what does not wait, or waits no longer.
    Ignored,
}

impl NoteKind {
    /// What it did, for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Dropped => "left out",
            Self::Opened => "begun without being told",
            Self::Closed => "ended without being told",
            Self::Shortened => "shortened",
            Self::Redacted => "credential taken out",
            Self::Renamed => "given another id",
            Self::Unconfirmed => "ran although nobody was asked",
            Self::Refused => "ran although it was refused",
            Self::Ignored => "answers nothing that waits",
        }
    }
}

/// Notes on their way to whoever reports them. Bounded: past the bound only the count goes on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notes {
    kept: Vec<Note>,
    more: u64,
}

/// How many notes are kept until somebody takes them.
const KEPT: usize = 1_024;

impl Notes {
    /// Adds one.
    pub fn add(&mut self, kind: NoteKind, about: impl Into<String>) {
        if self.kept.len() < KEPT {
            self.kept.push(Note { kind, about: about.into() });
        } else {
            self.more += 1;
        }
    }

    /// Takes what there is, and how many more there were.
    pub fn take(&mut self) -> (Vec<Note>, u64) {
        (std::mem::take(&mut self.kept), std::mem::take(&mut self.more))
    }
}
