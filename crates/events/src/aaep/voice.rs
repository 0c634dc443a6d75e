//! How one subscriber wants to be spoken to.

use serde::{Deserialize, Serialize};

use super::event::{Boundary, RiskLevel, Verbosity};

/// How one subscriber wants to be spoken to: the part of an AAEP subscription that decides about words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Voice {
    /// The language of sentences, one of the catalogue's.
    pub language: String,
    /// How much is said: the summary that an event's `verbosity` names.
    pub verbosity: Verbosity,
    /// Where the agent's output may be cut. With [`Boundary::None`] it goes out as it comes.
    pub boundaries: Vec<Boundary>,
    /// How much a person wants to keep in mind at once: `low` leaves out what can be left out.
    pub load: RiskLevel,
    /// Whether facts that AAEP has no field for travel along under `extensions.banister`, so that a translation can be
    /// taken back.
    pub carry: bool,
}

impl Voice {
    /// A voice in a language, for a stream that passes output on as it comes.
    pub fn live(language: &str) -> Self {
        let language = language.to_owned();
        Self { language, boundaries: vec![Boundary::None], ..Self::default() }
    }
}

impl Default for Voice {
    /// What AAEP assumes of a subscriber that said nothing.
    fn default() -> Self {
        Self {
            language: "en".to_owned(),
            verbosity: Verbosity::Normal,
            boundaries: vec![Boundary::Sentence, Boundary::Completion],
            load: RiskLevel::Medium,
            carry: false,
        }
    }
}
