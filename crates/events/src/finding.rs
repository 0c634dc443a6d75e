//! Something wrong with data: a rule that was broken, the place, the reason, the remedy.
//!
//! A [`Rule`] is declared once, next to the code that enforces it; a [`Finding`] is one breach of it. Everything
//! that lists rules (`banister rules`, `docs/reference/findings.md`) is generated from [`all_rules`].

use serde::Serialize;

use crate::event::Protocol;
use crate::{aaep, aep, agui};

/// How much a breach matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// A SHOULD, or a MUST that the protocol's own published examples break.
    Warning,
    /// The data at hand breaks a MUST.
    Error,
}

impl Severity {
    /// The word people read.
    pub fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Who a rule binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Binds {
    /// Whoever emits events.
    Producer,
    /// Whoever receives events and answers.
    Subscriber,
    /// Both sides.
    Both,
}

/// One rule: a stable code, what it demands and how to comply.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// The stable code, such as `AAEP-3.2.3-R1`.
    pub code: &'static str,
    /// How much a breach matters.
    pub severity: Severity,
    /// Whether only strict checking applies it: too noisy otherwise.
    pub opt_in: bool,
    /// Who it binds.
    pub binds: Binds,
    /// What it demands, in one sentence.
    pub text: &'static str,
    /// What to do about a breach, in one sentence.
    pub remedy: &'static str,
}

impl Rule {
    /// A breach of this rule at a place.
    pub fn at(&'static self, pointer: impl Into<String>, message: impl Into<String>) -> Finding {
        Finding { rule: self, pointer: pointer.into(), message: message.into() }
    }
}

/// One breach of one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule that was broken.
    pub rule: &'static Rule,
    /// JSON Pointer into the message; empty for the message as a whole.
    pub pointer: String,
    /// What is wrong here, in a sentence without a period.
    pub message: String,
}

impl Serialize for Finding {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut row = serializer.serialize_struct("Finding", 5)?;
        row.serialize_field("code", self.rule.code)?;
        row.serialize_field("severity", &self.rule.severity)?;
        row.serialize_field("pointer", &self.pointer)?;
        row.serialize_field("message", &self.message)?;
        row.serialize_field("remedy", self.rule.remedy)?;
        row.end()
    }
}

/// Every rule of one protocol, in the order documents list them.
pub fn rules(protocol: Protocol) -> Vec<&'static Rule> {
    let rooms: &[&[&'static Rule]] = match protocol {
        Protocol::Aaep => &[
            aaep::check::RULES,
            aaep::check::control::RULES,
            aaep::sequence::RULES,
            aaep::sequence::subscription::RULES,
        ],
        Protocol::Agui => {
            &[agui::check::RULES, agui::sequence::RULES, agui::sequence::lints::RULES]
        }
        Protocol::Aep => &[aep::check::RULES, aep::sequence::RULES],
    };
    rooms.concat()
}

/// Every rule, with the protocol it belongs to.
pub fn all_rules() -> Vec<(Protocol, &'static Rule)> {
    Protocol::ALL
        .into_iter()
        .flat_map(|protocol| rules(protocol).into_iter().map(move |rule| (protocol, rule)))
        .collect()
}
