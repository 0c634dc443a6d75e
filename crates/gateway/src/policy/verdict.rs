//! What is said about an action, and what its record keeps of how that came about.

use banister_events::activity::{Decision, Gate, Risk};
use banister_events::text;
use banister_policy::{Effect, Explanation, Pack};
use serde::{Deserialize, Serialize};

/// The most commands of an action that its record names, and the most of each.
const MOST_READ: usize = 32;
const LONGEST_READ: usize = 200;

/// What a record keeps of how its verdict came about, beside the gate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// Which rules decided: their hash.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rules: Option<String>,
    /// What it worked on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub project: Option<String>,
    /// What was read: the commands of a shell text, or the effects of another tool.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub read: Vec<String>,
    /// What rules that are only tried would have said, where that is something else.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shadow: Option<Shadow>,
}

/// What rules that are only tried would have said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shadow {
    /// Their verdict.
    pub decision: Decision,
    /// The rule that would have said so.
    pub rule: String,
    /// Which rules they are: their hash.
    pub rules: String,
}

/// A gate as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gated {
    /// What was said.
    #[serde(flatten)]
    pub gate: Gate,
    /// How it came about.
    #[serde(flatten)]
    pub provenance: Provenance,
}

impl From<Gate> for Gated {
    /// What no rule was asked about.
    fn from(gate: Gate) -> Self {
        Self { gate, provenance: Provenance::default() }
    }
}

/// The refusal that stands where no verdict came about.
pub(super) fn unjudged() -> Gate {
    Gate {
        decision: Decision::Deny,
        rule: "policy".to_owned(),
        reason: "The rules could not be asked about this.".to_owned(),
        risk: Risk::High,
        irreversible: None,
        opaque: None,
        safer: None,
    }
}

/// Makes an ask of an allow, or a deny where the pack knows nobody to ask. What is as strict already stays.
pub(super) fn at_least_asked(explanation: &mut Explanation, pack: Pack, rule: &str, reason: &str) {
    if explanation.verdict == Decision::Allow {
        explanation.verdict = if pack == Pack::Ci { Decision::Deny } else { Decision::Ask };
        rule.clone_into(&mut explanation.rule);
        reason.clone_into(&mut explanation.reason);
        explanation.risk = explanation.risk.max(Risk::Medium);
    }
}

pub(super) fn gate(explanation: &Explanation) -> Gate {
    Gate {
        decision: explanation.verdict,
        rule: explanation.rule.clone(),
        reason: explanation.reason.clone(),
        risk: explanation.risk,
        irreversible: explanation.irreversible,
        opaque: explanation.opaque.clone(),
        safer: explanation.safer.clone(),
    }
}

/// An effect in a few words: what is done, to what, and why it is said.
pub fn effect_line(effect: &Effect) -> String {
    let kind = serde_json::json!(effect.kind);
    let words = [kind.as_str(), effect.path.as_deref(), effect.host.as_deref()];
    let words = words.into_iter().flatten().collect::<Vec<_>>().join(" ");
    match &effect.why {
        Some(why) => format!("{words} ({why})"),
        None => words,
    }
}

/// What was read of an action, for its record: bounded, and on one line each.
pub(super) fn read(explanation: &Explanation) -> Vec<String> {
    let line = |words: String| text::one_line(&text::shorten(&words, LONGEST_READ));
    let commands = explanation.commands.iter().filter(|command| !command.argv.is_empty());
    let commands = commands.map(|command| line(command.argv.join(" ")));
    let effects = explanation.effects.iter().map(|effect| line(effect_line(effect)));
    commands.chain(effects).take(MOST_READ).collect()
}
