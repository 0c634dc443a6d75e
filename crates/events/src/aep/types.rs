//! The canonical event types of AEP: a closed set of variants, and a table with everything about them that may change.
//!
//! `types.yaml` holds names, families, aliases and labels. The code names variants only, so a corrected name is one
//! changed word in that file. A row that cannot be read leaves a type that is called by its variant and demands
//! nothing; tests hold the table to one readable row per variant, so that this does not happen. Nothing here panics.
//!
//! A type that is not in the table is no error: see `check` for what is said about it and `show` for how it is shown.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

const TABLE_YAML: &str = include_str!("types.yaml");

/// The kinds of content an event may carry.
pub const CONTENT_KINDS: &[&str] =
    &["prompt", "thought", "response", "plan", "notification", "question", "answer"];

macro_rules! types {
    ($($variant:ident, $doc:literal;)*) => {
        /// A canonical event type.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Type {
            $(#[doc = $doc] $variant,)*
        }

        impl Type {
            /// All canonical types, in the order documents list them.
            pub const ALL: [Self; 21] = [$(Self::$variant),*];

            /// The stable key of its row in the table.
            pub const fn key(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant),)* }
            }
        }
    };
}

types! {
    SessionStart, "A session was opened.";
    SessionEnd, "A session was closed.";
    AgentStart, "The agent begins to work on a request.";
    AgentStop, "The agent is done with a request.";
    AgentError, "The agent failed.";
    PromptSubmitted, "A person asked for something.";
    ModelThought, "The model thought aloud.";
    ModelResponse, "The model answered.";
    ModelDelta, "A piece of an answer or a thought.";
    ModelPlan, "The model made a plan.";
    ActionRequested, "The agent wants to act.";
    ActionCompleted, "An action did what it should.";
    ActionFailed, "An action failed.";
    ActionDenied, "An action was refused.";
    SubagentStart, "A subagent begins.";
    SubagentStop, "A subagent ends.";
    ContextCompacted, "The context was compacted.";
    WorkspaceChanged, "The workspace changed.";
    NotificationSent, "A person was notified.";
    QuestionAsked, "A person was asked.";
    QuestionAnswered, "A person answered.";
}

impl Type {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        self.row().map_or(self.key(), |row| &row.name)
    }

    /// The type with this canonical name.
    ///
    /// ```
    /// use banister_events::aep::types::Type;
    /// assert_eq!(Type::parse("session.start"), Some(Type::SessionStart));
    /// assert_eq!(Type::parse("session.started"), None);
    /// assert_eq!(Type::from_alias("session.started"), Some(Type::SessionStart));
    /// ```
    pub fn parse(name: &str) -> Option<Self> {
        TABLE.names.find(name)
    }

    /// The canonical type behind a spelling that other producers use, or behind its own name. Read, never written.
    pub fn from_alias(name: &str) -> Option<Self> {
        Self::parse(name).or_else(|| TABLE.aliases.find(name))
    }

    /// The kinds of content of which it has to carry one.
    pub fn content(self) -> &'static [&'static str] {
        self.row().map_or(&[], |row| &row.content)
    }

    /// The family it belongs to.
    ///
    /// ```
    /// use banister_events::aep::types::{Family, Type};
    /// assert_eq!(Type::ContextCompacted.family(), Family::Orchestration);
    /// ```
    pub fn family(self) -> Family {
        self.row().map_or(Family::Lifecycle, |row| row.family)
    }

    /// How sure its name is.
    pub fn confidence(self) -> Confidence {
        self.row().map_or(Confidence::Low, |row| row.confidence)
    }

    /// Other spellings that are read as this type.
    pub fn aliases(self) -> &'static [String] {
        self.row().map_or(&[], |row| &row.aliases)
    }

    /// The key of what people read in place of its name, in [`crate::locale`].
    pub fn label(self) -> &'static str {
        self.row().map_or(self.key(), |row| &row.label)
    }

    /// Whether it is about one action.
    pub fn is_action(self) -> bool {
        self == Self::ActionRequested || self.ends_action()
    }

    /// Whether it ends an action.
    pub fn ends_action(self) -> bool {
        matches!(self, Self::ActionCompleted | Self::ActionFailed | Self::ActionDenied)
    }

    fn row(self) -> Option<&'static Row> {
        TABLE.rows.get(self as usize)?.as_ref()
    }
}

/// What a type is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Family {
    /// Sessions, the agent's runs, errors.
    Lifecycle,
    /// Prompts, thoughts, answers, plans.
    Conversation,
    /// Tools, skills and subagents at work.
    Actions,
    /// Subagents, compaction, changes of the workspace.
    Orchestration,
    /// Notifications, questions and answers.
    Notifications,
}

impl Family {
    /// All families, in the order documents list them.
    pub const ALL: [Self; 5] = [
        Self::Lifecycle,
        Self::Conversation,
        Self::Actions,
        Self::Orchestration,
        Self::Notifications,
    ];
}

/// How sure the name of a type is; the protocol's text does not list all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[non_exhaustive]
pub enum Confidence {
    /// The protocol's own text has it.
    #[serde(rename = "C")]
    Confirmed,
    /// One step away from the text.
    #[serde(rename = "H")]
    High,
    /// Made by the protocol's naming rule.
    #[serde(rename = "M")]
    Medium,
    /// A guess.
    #[serde(rename = "L")]
    Low,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    family: Family,
    confidence: Confidence,
    #[serde(deserialize_with = "content_kinds")]
    content: Vec<&'static str>,
    aliases: Vec<String>,
    label: String,
}

#[derive(Debug, Default)]
struct Table {
    /// By variant, in the order of [`Type::ALL`].
    rows: Vec<Option<Row>>,
    names: Spellings,
    aliases: Spellings,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::read(TABLE_YAML));

impl Table {
    fn read(yaml: &str) -> Self {
        let mut read: BTreeMap<String, Row> = serde_saphyr::from_str(yaml).unwrap_or_default();
        let mut table = Self::default();
        for kind in Type::ALL {
            let row = read.remove(kind.key());
            table.names.add(row.as_ref().map_or(kind.key(), |row| &row.name), kind);
            for alias in row.iter().flat_map(|row| &row.aliases) {
                table.aliases.add(alias, kind);
            }
            table.rows.push(row);
        }
        table
    }
}

/// Names by their length: hardly any two are compared to tell them apart, and a long name from outside costs nothing.
#[derive(Debug, Default)]
struct Spellings(Vec<Vec<(String, Type)>>);

impl Spellings {
    fn add(&mut self, spelling: &str, kind: Type) {
        if self.0.len() <= spelling.len() {
            self.0.resize_with(spelling.len() + 1, Vec::new);
        }
        if let Some(same_length) = self.0.get_mut(spelling.len()) {
            same_length.push((spelling.to_owned(), kind));
        }
    }

    fn find(&self, name: &str) -> Option<Type> {
        let same_length = self.0.get(name.len())?;
        same_length.iter().find(|(known, _)| known == name).map(|(_, kind)| *kind)
    }
}

fn content_kinds<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<&'static str>, D::Error> {
    let kinds: Vec<String> = Deserialize::deserialize(deserializer)?;
    kinds
        .iter()
        .map(|kind| {
            CONTENT_KINDS.iter().find(|known| *known == kind).copied().ok_or_else(|| {
                serde::de::Error::custom(format_args!("{kind} is no kind of content"))
            })
        })
        .collect()
}

#[cfg(test)]
#[path = "types_tests.rs"]
mod tests;
