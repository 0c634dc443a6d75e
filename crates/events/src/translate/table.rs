//! What every type of event becomes in the other protocols, and what becomes of its fields: measured on examples, not
//! claimed.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::event::Protocol;

/// From which protocol, which type, to which protocol.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Table(pub BTreeMap<Protocol, BTreeMap<String, BTreeMap<Protocol, Row>>>);

/// What one type becomes in one other protocol.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The types of events that tell it there.
    pub becomes: Vec<String>,
    /// Field, as a JSON Pointer with `*` for any element of a list → its fate.
    pub fields: BTreeMap<String, Fate>,
    /// The fields that have no place there: they travel in Banister's own extension field, unless that is left out.
    #[serde(default)]
    pub rest: Vec<String>,
    /// The best that any example showed of a field, while it is measured.
    #[serde(skip)]
    pub(super) best: BTreeMap<String, Fate>,
}

/// What becomes of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// It comes back unchanged when the translation is taken back.
    Carried,
    /// What it says is told, in another form.
    Derived,
    /// It leaves no trace.
    Lost,
}

impl Fate {
    /// The word in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Carried => "carried",
            Self::Derived => "derived",
            Self::Lost => "lost",
        }
    }
}

impl Table {
    /// The table as it was measured last. A test holds it to what the code does.
    pub fn builtin() -> &'static Self {
        static TABLE: LazyLock<Table> = LazyLock::new(|| {
            serde_json::from_str(include_str!("../../translation.json")).unwrap_or_default()
        });
        &TABLE
    }

    /// The row of a type.
    pub fn row(&self, from: Protocol, kind: &str, to: Protocol) -> Option<&Row> {
        self.entry(from, kind, to).map(|(_, row)| row)
    }

    /// The row of a type, and the type's name as the table has it.
    pub(super) fn entry(&self, from: Protocol, kind: &str, to: Protocol) -> Option<(&str, &Row)> {
        let (kind, rows) = self.0.get(&from)?.get_key_value(kind)?;
        Some((kind, rows.get(&to)?))
    }

    /// The types of a protocol that have rows.
    pub fn types(&self, from: Protocol) -> impl Iterator<Item = (&str, &BTreeMap<Protocol, Row>)> {
        self.0.get(&from).into_iter().flatten().map(|(kind, rows)| (kind.as_str(), rows))
    }
}
