//! The verdict: floor, deny, ask, allow; nothing matched is ask.
//!
//! A text of several commands is as strict as its strictest command. Beside rules of a layer (`pack.…`, `org.…`, `user.…`,
//! `project.…`, `grant.…`) and the floor (`floor.…`), a gate can name one of these:
//!
//! | rule | when |
//! |---|---|
//! | `none` | no rule spoke |
//! | `nothing` | a shell text that runs no program: a comment, an option of the shell |
//! | `opaque` | not everything it does could be read, and no rule denied or asked by itself |
//! | `redirect` | the shell writes a file |
//! | `decoded` | a shell runs what was decoded before, whatever that is |
//! | `environment` | a variable is set that can change what programs do |

use banister_events::activity::{Decision, Gate, Risk};

use crate::effects::{Effect, EffectKind};
use crate::floor;
use crate::layer::Layer;
use crate::path::PathNames;
use crate::rule::{CommandTarget, PolicyRule};
use crate::rules::Rules;
use crate::shell::{Assignment, Direction, Simple, wrappers};
use crate::subject::Subject;
use crate::tools::ToolClass;

/// Decides whether an action may run. Total, pure, never panics.
///
/// ```
/// use banister_events::activity::{Action, ActionKind, Decision};
/// use banister_policy::{ActionRequest, Rules, evaluate};
///
/// let rules = Rules::builtin()?;
/// let shell = |command: &str| Action {
///     id: "1".into(),
///     kind: ActionKind::Tool,
///     tool: "Bash".into(),
///     server: None,
///     original_name: None,
///     input: Some(serde_json::json!({ "command": command })),
///     rationale: None,
/// };
/// let decide = |command: &str| {
///     let action = shell(command);
///     let subject = rules.read(&ActionRequest {
///         agent: "claude",
///         action: &action,
///         cwd: Some("/home/ada/orbit"),
///         project: None,
///         home: Some("/home/ada"),
///         own: &[],
///     });
///     evaluate(&rules, &subject)
/// };
/// assert_eq!(decide("git status").decision, Decision::Allow);
/// assert_eq!(decide("git status && git push").decision, Decision::Ask);
/// assert_eq!(decide("rm -rf ~").rule, "floor.wipe-home");
/// # Ok::<(), banister_policy::Error>(())
/// ```
pub fn evaluate(rules: &Rules, subject: &Subject<'_>) -> Gate {
    verdict(rules, subject, |_, _| {})
}

/// The verdict about everything; `each` is told the gates of each command, or of each file.
pub(crate) fn verdict(
    rules: &Rules,
    subject: &Subject<'_>,
    mut each: impl FnMut(usize, &[Gate]),
) -> Gate {
    let fallen = floor::check(subject);
    let opaque = opacity(subject);
    let mut gates = Vec::new();
    if subject.class == ToolClass::Shell {
        for (at, simple) in subject.reading.commands.iter().enumerate() {
            let own = command(rules, subject, at, simple, opaque.is_none());
            each(at, &own);
            gates.extend(own);
        }
        if runs_nothing(subject) {
            gates.push(nothing());
        }
        if subject.reading.decoded {
            gates.push(ask(
                "decoded",
                "It runs what it decodes first, which hides it from whoever reads it.",
            ));
        }
    } else {
        gates = files(rules, subject, subject.class, opaque.is_none());
        each(0, &gates);
    }
    if let Some(gate) = fallen {
        return gate;
    }
    let derived = grade(subject.effects.iter().flatten().chain(&subject.tool_effects), subject);
    if let Some(reason) = &opaque {
        gates.retain(|gate| gate.decision != Decision::Allow && gate.rule != NONE);
        gates.push(Gate {
            risk: Risk::Medium,
            ..ask(
                "opaque",
                &format!("Not everything it does can be known before it runs: {reason}."),
            )
        });
    }
    let mut gate = strictest(gates).unwrap_or_else(nothing_matched);
    if matches!(gate.rule.as_str(), NONE | "opaque" | "redirect" | "environment" | "decoded") {
        gate.risk = gate.risk.max(derived.0);
        gate.irreversible = gate.irreversible.or(derived.1);
    }
    if let Some(reason) = opaque {
        gate.risk = Risk::High;
        gate.opaque = Some(reason);
    }
    if gate.decision == Decision::Ask && rules.denies_asks() {
        gate.decision = Decision::Deny;
        gate.reason.push_str(" Nobody is there to be asked.");
    }
    gate
}

/// How much can go wrong, and whether it can be undone, by all of these effects together.
fn grade<'e>(
    effects: impl Iterator<Item = &'e Effect>,
    subject: &Subject<'_>,
) -> (Risk, Option<bool>) {
    effects.map(|effect| effect.grade(&subject.around)).fold(
        (Risk::Low, Some(false)),
        |(risk, undone), (graver, next)| {
            let undone = match (undone, next) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            };
            (risk.max(graver), undone)
        },
    )
}

const NONE: &str = "none";

fn opacity(subject: &Subject<'_>) -> Option<String> {
    let read = subject.reading.opaque.as_deref().filter(|_| subject.class == ToolClass::Shell);
    read.or(subject.unseen()).map(str::to_owned)
}

/// The gates of everything one command does.
fn command(
    rules: &Rules,
    subject: &Subject<'_>,
    at: usize,
    simple: &Simple,
    readable: bool,
) -> Vec<Gate> {
    let mut gates = Vec::new();
    let reads = simple.redirects.iter().any(|file| file.direction == Direction::Read);
    if !simple.argv.is_empty() || reads {
        let target = CommandTarget::new(subject, at, simple);
        let mut gate = choose(
            rules.about(&target.program),
            readable,
            grade(target.effects.iter(), subject),
            |rule| {
                rule.speaks_of(subject, ToolClass::Shell)
                    .then(|| rule.matches_command(&target))
                    .flatten()
            },
        );
        if gate.rule == NONE {
            gate.reason = unspoken(target.effects);
        }
        gates.push(gate);
    }
    gates.extend(writes(rules, simple, subject, at, readable));
    gates.extend(setting(rules, simple));
    gates
}

/// Why no rule spoke, as far as the effects say.
fn unspoken(effects: &[Effect]) -> String {
    let unknown = effects.iter().find(|effect| effect.kind == EffectKind::Unknown);
    match unknown.and_then(|effect| effect.why.as_ref()) {
        Some(why) => format!("No rule speaks about this: {why}."),
        None => "No rule speaks about this.".to_owned(),
    }
}

/// Setting a variable can change what any program does, unless it is known not to.
fn setting(rules: &Rules, simple: &Simple) -> Option<Gate> {
    let influences = |set: &&Assignment| {
        // What separates fields matters to `read` alone, and it only fills variables.
        if set.name == "IFS" && simple.argv.first().is_some_and(|word| word.text == "read") {
            return false;
        }
        if simple.argv.is_empty() && simple.redirects.is_empty() {
            return wrappers::table().map_or(true, |table| table.is_influential(&set.name));
        }
        true
    };
    let strange =
        simple.assignments.iter().filter(influences).find(|set| !rules.is_harmless(&set.name))?;
    let reason = format!("It sets {}, which can change what programs do.", strange.name);
    Some(ask("environment", &reason))
}

/// What a redirection writes. The pack's rules about file tools do not allow it, because those tools show what they
/// change; its rules about the shell's own writing do, and so does somebody's own allow for that path.
fn writes(
    rules: &Rules,
    simple: &Simple,
    subject: &Subject<'_>,
    at: usize,
    readable: bool,
) -> Vec<Gate> {
    let mut gates = Vec::new();
    let derived = (Risk::Medium, None);
    for redirect in &simple.redirects {
        if redirect.direction == Direction::Read || is_sink(&redirect.target.text) {
            continue;
        }
        for directory in subject.places(at) {
            let path = subject.around.resolve(&redirect.target.text, directory);
            let gate = choose(rules.rules(), readable, derived, |rule| {
                let tool = rule.decision != Decision::Allow || rule.layer != Layer::Pack;
                let speaks = tool && rule.speaks_of(subject, ToolClass::Write)
                    || rule.is_for_redirects() && rule.speaks_of(subject, ToolClass::Shell);
                (speaks && rule.matches_path(Some(&path), &subject.around)).then_some(0)
            });
            gates.push(if gate.rule == NONE {
                ask("redirect", "The shell writes a file.")
            } else {
                gate
            });
        }
    }
    gates
}

fn is_sink(target: &str) -> bool {
    matches!(target, "/dev/null" | "/dev/stdout" | "/dev/stderr")
}

/// The gates of a tool that is no shell: one for each file it names.
fn files(rules: &Rules, subject: &Subject<'_>, class: ToolClass, readable: bool) -> Vec<Gate> {
    let derived = grade(subject.tool_effects.iter(), subject);
    let one = |path: Option<&PathNames>| {
        choose(rules.rules(), readable, derived, |rule| {
            (rule.speaks_of(subject, class)
                && rule.matches_path(path, &subject.around)
                && rule.matches_tool(&subject.tool_effects))
            .then_some(0)
        })
    };
    if subject.paths.is_empty() {
        return vec![one(None)];
    }
    subject.paths.iter().map(|path| one(Some(path))).collect()
}

/// One verdict out of all rules that match: deny before ask before allow.
fn choose<'r>(
    rules: impl Iterator<Item = &'r PolicyRule>,
    readable: bool,
    derived: (Risk, Option<bool>),
    matches: impl Fn(&PolicyRule) -> Option<usize>,
) -> Gate {
    let speaking: Vec<(&PolicyRule, usize)> =
        rules.filter_map(|rule| matches(rule).map(|words| (rule, words))).collect();
    let of =
        |decision: Decision| speaking.iter().filter(move |(rule, _)| rule.decision == decision);
    let lifting = |ask: &PolicyRule, words: usize| {
        let mut allows = of(Decision::Allow).filter(|_| readable);
        allows.find(|(rule, by)| rule.lifts(*by, ask, words)).map(|(rule, _)| *rule)
    };
    let denies = of(Decision::Deny).map(|(rule, _)| gate(rule, derived));
    let asks = of(Decision::Ask)
        .filter(|(rule, words)| lifting(rule, *words).is_none())
        .map(|(rule, _)| gate(rule, derived));
    strictest(denies.chain(asks))
        .or_else(|| {
            // What lifted an ask is why it may run.
            let lifting = of(Decision::Ask).find_map(|(rule, words)| lifting(rule, *words));
            let first = || of(Decision::Allow).next().map(|(rule, _)| *rule);
            lifting.or_else(first).filter(|_| readable).map(|rule| gate(rule, derived))
        })
        .unwrap_or_else(nothing_matched)
}

/// The strictest gate; among equals the riskiest, then the first.
fn strictest(gates: impl IntoIterator<Item = Gate>) -> Option<Gate> {
    let key = |gate: &Gate| {
        let undo = match gate.irreversible {
            Some(false) => 0,
            None => 1,
            Some(true) => 2,
        };
        (gate.decision, gate.risk, undo, gate.rule != NONE)
    };
    gates
        .into_iter()
        .reduce(|strictest, gate| if key(&gate) > key(&strictest) { gate } else { strictest })
}

fn gate(rule: &PolicyRule, derived: (Risk, Option<bool>)) -> Gate {
    Gate {
        decision: rule.decision,
        rule: rule.id.clone(),
        reason: rule.reason.clone(),
        risk: rule.risk.unwrap_or(derived.0),
        irreversible: rule.irreversible.or(if rule.risk.is_none() { derived.1 } else { None }),
        opaque: None,
        safer: rule.safer.clone(),
    }
}

fn ask(rule: &str, reason: &str) -> Gate {
    Gate {
        decision: Decision::Ask,
        rule: rule.to_owned(),
        reason: reason.to_owned(),
        risk: Risk::Medium,
        irreversible: None,
        opaque: None,
        safer: None,
    }
}

/// Whether there is a text, and no program in it: a comment, an option of the shell, a sum.
fn runs_nothing(subject: &Subject<'_>) -> bool {
    subject.reading.commands.is_empty()
        && subject.texts.iter().any(|text| !text.trim().is_empty())
        && opacity(subject).is_none()
}

fn nothing() -> Gate {
    Gate {
        decision: Decision::Allow,
        rule: "nothing".to_owned(),
        reason: "It runs nothing.".to_owned(),
        risk: Risk::Low,
        irreversible: Some(false),
        ..nothing_matched()
    }
}

fn nothing_matched() -> Gate {
    ask(NONE, "No rule speaks about this.")
}

/// Whether an allow rule by itself covers everything an action does: how its examples are tried.
pub(crate) fn matches_alone(rules: &Rules, rule: &PolicyRule, subject: &Subject<'_>) -> bool {
    if opacity(subject).is_some() || !rule.speaks_of(subject, subject.class) {
        return false;
    }
    if subject.class != ToolClass::Shell {
        return match subject.paths.as_slice() {
            [] => rule.matches_path(None, &subject.around),
            paths => paths.iter().all(|path| rule.matches_path(Some(path), &subject.around)),
        };
    }
    let commands = &subject.reading.commands;
    !commands.is_empty()
        && commands.iter().enumerate().all(|(at, simple)| {
            setting(rules, simple).is_none()
                && writes(rules, simple, subject, at, true).is_empty()
                && (simple.argv.is_empty() && simple.redirects.is_empty()
                    || rule.matches_command(&CommandTarget::new(subject, at, simple)).is_some())
        })
}

/// Whether a rule that asks or denies finds anything to speak about: how its examples are tried.
pub(crate) fn matches_any(rule: &PolicyRule, subject: &Subject<'_>) -> bool {
    if subject.class != ToolClass::Shell {
        return rule.speaks_of(subject, subject.class)
            && rule.matches_tool(&subject.tool_effects)
            && match subject.paths.as_slice() {
                [] => rule.matches_path(None, &subject.around),
                paths => paths.iter().any(|path| rule.matches_path(Some(path), &subject.around)),
            };
    }
    rule.speaks_of(subject, ToolClass::Shell)
        && subject.reading.commands.iter().enumerate().any(|(at, simple)| {
            rule.matches_command(&CommandTarget::new(subject, at, simple)).is_some()
        })
}
