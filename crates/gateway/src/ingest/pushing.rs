//! How pushed events are taken, and what became of one in a word.

use std::collections::BTreeMap;

use serde::Deserialize;

/// How pushed events are taken.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pushing {
    /// What is done about events that break their protocol.
    pub policy: PushPolicy,
    /// The same, for single keys.
    pub keys: BTreeMap<String, PushPolicy>,
    /// How many requests a key may make in a second; 0 for no limit.
    pub rate: u32,
}

impl Default for Pushing {
    fn default() -> Self {
        Self { policy: PushPolicy::Report, keys: BTreeMap::new(), rate: 5_000 }
    }
}

/// What is done about an event that breaks its protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PushPolicy {
    /// It is recorded with what is wrong with it.
    #[default]
    Report,
    /// The same, and it is told in a way that its protocol allows. Where nothing can be told of it, it is refused.
    Repair,
    /// Where it breaks a MUST it is refused.
    Strict,
}

/// What became of an event, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It is part of its session.
    Recorded,
    /// It was before.
    Duplicate,
    /// It is not; what came is kept as evidence.
    Refused,
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 3] = [Self::Recorded, Self::Duplicate, Self::Refused];

    /// The word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Duplicate => "duplicate",
            Self::Refused => "refused",
        }
    }
}
