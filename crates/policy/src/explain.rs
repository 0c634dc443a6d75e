//! Why a verdict is what it is, step by step, for people and for `--json`.

use banister_events::activity::{Decision, Gate, Risk};
use serde::Serialize;

use crate::effects::Effect;
use crate::evaluate::verdict;
use crate::rules::Rules;
use crate::shell::{CommandInput, Direction, Simple};
use crate::subject::Subject;

/// The schema of an explanation.
pub(crate) const SCHEMA: &str = "banister.explanation/v1";

/// A verdict with everything that led to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// `banister.explanation/v1`.
    pub schema: &'static str,
    /// What policy says.
    pub verdict: Decision,
    /// The rule that said so.
    pub rule: String,
    /// Why, in a sentence a person can read.
    pub reason: String,
    /// How much could go wrong.
    pub risk: Risk,
    /// Whether it cannot be undone; `None` where nobody knows.
    pub irreversible: Option<bool>,
    /// What could not be read, if anything.
    pub opaque: Option<String>,
    /// What would be safer.
    pub safer: Option<String>,
    /// Every command that was read, in the order of the text.
    pub commands: Vec<Explained>,
    /// What a tool that is no shell does.
    pub effects: Vec<Effect>,
    /// Which rules decided: [`Rules::hash`].
    pub rules: String,
}

/// One command, and what was said about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explained {
    /// The way that leads to it, outermost first.
    pub steps: Vec<String>,
    /// The program and its words as understood; `…` is what is not known before it runs.
    pub argv: Vec<String>,
    /// The variables that are set, as `NAME=value`.
    pub assignments: Vec<String>,
    /// The files it is redirected from and to.
    pub redirects: Vec<Redirected>,
    /// What comes in: `pipe`, or the text itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// The directories it may run in, from where the text starts; empty where it does not change.
    pub directories: Vec<String>,
    /// Whether it runs on another machine or in a container.
    pub elsewhere: bool,
    /// What it does.
    pub effects: Vec<Effect>,
    /// What was said about it alone.
    pub verdict: Decision,
    /// The rule that said so.
    pub rule: String,
    /// Why.
    pub reason: String,
}

/// A file that stands for an input or output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Redirected {
    /// Which way.
    pub direction: Direction,
    /// The file.
    pub target: String,
}

/// Explains a verdict: [`evaluate`](crate::evaluate()) gives the same one. Total, pure, never panics.
///
/// ```
/// use banister_events::activity::{Action, ActionKind, Decision};
/// use banister_policy::{ActionRequest, Rules, explain};
///
/// let action = Action {
///     id: "1".into(),
///     kind: ActionKind::Tool,
///     tool: "Bash".into(),
///     server: None,
///     original_name: None,
///     input: Some(serde_json::json!({ "command": "cd /tmp && X=rm; $X -rf ~/" })),
///     rationale: None,
/// };
/// let request = ActionRequest {
///     agent: "claude",
///     action: &action,
///     cwd: Some("/home/ada/orbit"),
///     project: None,
///     home: Some("/home/ada"),
///     own: &[],
/// };
/// let rules = Rules::builtin()?;
/// let explanation = explain(&rules, &rules.read(&request));
/// assert_eq!(explanation.verdict, Decision::Deny);
/// assert_eq!(explanation.rule, "floor.wipe-home");
/// assert!(explanation.commands.iter().any(|command| command.argv == ["rm", "-rf", "~/"]));
/// # Ok::<(), banister_policy::Error>(())
/// ```
pub fn explain(rules: &Rules, subject: &Subject<'_>) -> Explanation {
    let mut commands = Vec::new();
    let gate = verdict(rules, subject, |at, gates| {
        if let Some(simple) = subject.reading.commands.get(at) {
            let effects = subject.effects.get(at).cloned().unwrap_or_default();
            commands.push(explained(simple, effects, gates));
        }
    });
    Explanation {
        schema: SCHEMA,
        verdict: gate.decision,
        rule: gate.rule,
        reason: gate.reason,
        risk: gate.risk,
        irreversible: gate.irreversible,
        opaque: gate.opaque,
        safer: gate.safer,
        commands,
        effects: subject.tool_effects.clone(),
        rules: rules.hash().to_owned(),
    }
}

fn explained(simple: &Simple, effects: Vec<Effect>, gates: &[Gate]) -> Explained {
    let strictest = gates.iter().max_by_key(|gate| (gate.decision, gate.risk));
    Explained {
        steps: simple.steps.iter().map(ToString::to_string).collect(),
        argv: simple.argv.iter().map(crate::shell::Word::shown).collect(),
        assignments: simple
            .assignments
            .iter()
            .map(|set| format!("{}={}", set.name, set.value.shown()))
            .collect(),
        redirects: simple
            .redirects
            .iter()
            .map(|file| Redirected { direction: file.direction, target: file.target.shown() })
            .collect(),
        input: match &simple.input {
            CommandInput::Inherited => None,
            CommandInput::Pipe => Some("pipe".to_owned()),
            CommandInput::Text(text) => Some(text.to_string()),
        },
        directories: simple
            .directories
            .iter()
            .filter(|_| {
                simple.directories.len() > 1
                    || simple.directories.first().is_some_and(|path| !path.is_empty())
            })
            .map(|path| if path.is_empty() { ".".to_owned() } else { path.replace('\0', "…") })
            .collect(),
        elsewhere: simple.elsewhere,
        effects,
        verdict: strictest.map_or(Decision::Allow, |gate| gate.decision),
        rule: strictest.map(|gate| gate.rule.clone()).unwrap_or_default(),
        reason: strictest.map(|gate| gate.reason.clone()).unwrap_or_default(),
    }
}
