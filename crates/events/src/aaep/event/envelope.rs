//! What every event has, whatever its type.

use serde::{Deserialize, Serialize};

use super::fields::{
    BLOCKS, COUNT, EVENT_ID, LANGUAGE, SCRIPT, SESSION_ID, SHORT, TEXT, TIMESTAMP, URI, VERSION,
    set,
};
use crate::check::shape::{Field, Kind, NAME, STRING};
use crate::record::{part, record, words};

/// Which vocabularies an event speaks: the core's, or a list that the core's begins.
///
/// ```
/// use banister_events::aaep::event::Context;
/// let context: Context = serde_json::from_str(r#"["https://aaep-protocol.org/context/v1", "https://acme.example/v1"]"#)?;
/// assert!(context.is_core());
/// assert_eq!(context.extensions(), ["https://acme.example/v1"]);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Context {
    /// One URI.
    One(String),
    /// The core's URI and those of extensions.
    Many(Vec<String>),
}

impl Context {
    /// Whether the core context comes first.
    pub fn is_core(&self) -> bool {
        match self {
            Self::One(uri) => uri == super::CONTEXT,
            Self::Many(uris) => uris.first().is_some_and(|uri| uri == super::CONTEXT),
        }
    }

    /// Every context behind the first.
    pub fn extensions(&self) -> &[String] {
        match self {
            Self::One(_) => &[],
            Self::Many(uris) => uris.get(1..).unwrap_or_default(),
        }
    }
}

impl Default for Context {
    fn default() -> Self {
        Self::One(super::CONTEXT.to_owned())
    }
}

part! {
    /// What every event has, whatever its type.
    pub strict Envelope {
        /// The vocabularies in use: the core context, or a list that it begins.
        must context as "@context": Context = Kind::Any,
        /// The version of the protocol that the producer speaks.
        may aaep_version: String = VERSION,
        /// What happened: a core type, or `prefix:name` of an extension.
        must kind as "type": String = NAME,
        /// The event's own id, never used again by its producer.
        must event_id: String = EVENT_ID,
        /// The session it belongs to: one request of one person.
        must session_id: String = SESSION_ID,
        /// Its place in the session, from 0; on every event of a session or on none.
        may sequence_number: u64 = COUNT,
        /// When it was made.
        must timestamp: String = TIMESTAMP,
        /// Who emits it.
        must producer: Producer = Kind::Record(&Producer::SHAPE),
        /// Which of the summaries is meant to be heard by default.
        may verbosity: Verbosity = Kind::Word(Verbosity::WORDS),
        /// How soon a person should hear of it; normal where it is not said.
        may urgency: Urgency = Kind::Word(Urgency::WORDS),
        /// In which language its texts are, and how they are written.
        may localization_hints: LocalizationHints = Kind::Record(&LocalizationHints::SHAPE),
        /// Joins the event to what other systems recorded, such as a trace.
        may correlation_id: String = STRING,
    }

    /// The event in words, at three lengths.
    #[derive(Default)]
    pub strict Summaries {
        /// A few words.
        may summary_terse: String = SHORT,
        /// A sentence.
        may summary_normal: String = TEXT,
        /// Everything worth hearing.
        may summary_detailed: String = TEXT,
    }
}

/// What extensions add: the last field of every event.
pub(super) const EXTENSIONS: &[Field] = &[Field {
    name: "extensions",
    required: false,
    kind: BLOCKS,
    about: "What extensions add, one object under the prefix of each.",
}];

/// The summaries of types that have to say what happens in a sentence.
pub(super) const SPOKEN: &[Field] = &[
    Field { name: "summary_terse", required: false, kind: SHORT, about: "A few words." },
    Field { name: "summary_normal", required: true, kind: TEXT, about: "A sentence." },
    Field {
        name: "summary_detailed",
        required: false,
        kind: TEXT,
        about: "Everything worth hearing.",
    },
];

record! {
    /// Who emits events.
    pub strict Producer {
        /// A stable name of the agent, never with its version in it.
        must agent_id: String = NAME,
        /// The agent's version.
        may agent_version: String = NAME,
        /// A name that can be spoken.
        may agent_name: String = NAME,
        /// The model that the agent runs on.
        may model: String = NAME,
        /// Where the producer's manifest is.
        may manifest_uri: String = URI,
    }

    /// In which language an event's texts are, and how they are written.
    #[derive(Default)]
    pub strict LocalizationHints {
        /// The language of the texts.
        may primary_language: String = LANGUAGE,
        /// In which direction they are read; left to right where it is not said.
        may text_direction: TextDirection = Kind::Word(TextDirection::WORDS),
        /// Other languages in which the event can be had.
        may available_languages: Vec<String> = set(0, 32, &LANGUAGE),
        /// Languages to try in this order.
        may fallback_chain: Vec<String> =
            Kind::List { min: 0, max: 16, distinct: false, item: &LANGUAGE },
        /// The script of the texts.
        may script: String = SCRIPT,
        /// The calendar of dates in the texts.
        may calendar: String = NAME,
    }
}

words! {
    /// How soon a person should hear of an event.
    pub enum Urgency {
        /// May wait, be joined with others or be left out.
        Background = "background",
        /// In turn.
        Normal = "normal",
        /// At once; never dropped and never delayed.
        Critical = "critical",
    }

    /// How much text a person wants to hear.
    pub enum Verbosity {
        /// A few words.
        Terse = "terse",
        /// A sentence.
        Normal = "normal",
        /// Everything.
        Detailed = "detailed",
    }

    /// In which direction text is read.
    pub enum TextDirection {
        /// Left to right.
        LeftToRight = "ltr",
        /// Right to left.
        RightToLeft = "rtl",
        /// As the text itself tells.
        Auto = "auto",
    }
}
