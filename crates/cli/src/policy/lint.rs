//! `banister policy check` and `banister policy test`: what is wrong with rule files, all of it, with its place.
//!
//! A rule that does not load is told and set aside, so that the rest of its file is looked at too. A rule that loads but
//! can never have its way is a warning.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use banister_events::activity::{Action, Decision};
use banister_events::text::one_line;
use banister_gateway::policy::{ORG, PROJECT};
use banister_policy::{
    ActionRequest, Error, Layer, Layers, Pack, RuleFault, RuleSource, Rules, Tried, evaluate,
};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::check::excerpt::{Excerpt, excerpt};
use crate::failure::{FAILED, GOOD, REFUSED};

/// The most faults of one file that are looked for.
const MOST_FAULTS: usize = 100;

#[derive(Debug, Args)]
pub(crate) struct LintArgs {
    /// Rule files
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Whose rules they are; a file called .banister.yaml or .banister/policy.yaml is a project's, any other yours
    #[arg(long, value_name = "LAYER", value_enum)]
    layer: Option<Whose>,
    /// The embedded rules below them: default, strict, permissive or ci
    #[arg(long, value_name = "PACK", default_value_t)]
    pack: Pack,
    /// Print JSON: {"schema", "files": [{"file", "layer", "rules", "examples", "errors", "warnings"}]}
    #[arg(long)]
    json: bool,
}

/// Whose rules a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Whose {
    /// Yours
    User,
    /// The organisation's
    Org,
    /// A project's, which can only tighten
    Project,
}

impl Whose {
    fn of(path: &Path) -> Self {
        if PROJECT.iter().any(|name| path.ends_with(name)) { Self::Project } else { Self::User }
    }

    fn layer(self) -> Layer {
        match self {
            Self::User => Layer::User,
            Self::Org => Layer::Org,
            Self::Project => Layer::Project,
        }
    }
}

/// What was found out about one file.
struct LintedFile {
    file: String,
    layer: Layer,
    text: String,
    rules: usize,
    /// How many examples must match, and how many must not.
    examples: [usize; 2],
    errors: Vec<RuleFault>,
    warnings: Vec<RuleFault>,
}

pub(super) fn check(
    args: &LintArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> anyhow::Result<u8> {
    run(args, out, err, |out, found| {
        for (word, fault) in found.faults() {
            show(out, found, word, fault)?;
        }
        let count = |number: usize, what: &str| match number {
            0 => format!("no {what}s"),
            1 => format!("1 {what}"),
            _ => format!("{number} {what}s"),
        };
        writeln!(
            out,
            "{}: {}, {}, {}",
            found.file,
            count(found.rules, "rule"),
            count(found.errors.len(), "error"),
            count(found.warnings.len(), "warning"),
        )
    })
}

pub(super) fn test(
    args: &LintArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> anyhow::Result<u8> {
    run(args, out, err, |out, found| {
        for fault in &found.errors {
            show(out, found, "error", fault)?;
        }
        let [matching, not_matching] = found.examples;
        let failed = found.errors.iter().filter(|fault| fault.message.contains("example")).count();
        let held = matching + not_matching - failed.min(matching + not_matching);
        writeln!(
            out,
            "{}: {} rules, {matching} examples that must match, {not_matching} that must not; {held} hold, {failed} do not",
            found.file, found.rules,
        )
    })
}

fn run(
    args: &LintArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
    tell: impl Fn(&mut dyn Write, &LintedFile) -> io::Result<()>,
) -> anyhow::Result<u8> {
    let org = std::fs::read_to_string(ORG).ok();
    let mut code = GOOD;
    let mut all = Vec::new();
    for path in &args.files {
        let file = one_line(&path.display().to_string());
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => {
                writeln!(err, "error: {file}: {error}")?;
                code = FAILED;
                continue;
            }
        };
        let whose = args.layer.unwrap_or_else(|| Whose::of(path));
        let org = org.as_deref().filter(|_| whose != Whose::Org);
        let found = look(file, text, whose, args.pack, org);
        if !found.errors.is_empty() {
            code = code.max(REFUSED);
        }
        if args.json {
            all.push(found.json());
        } else {
            tell(out, &found)?;
        }
    }
    if args.json {
        writeln!(out, "{}", json!({ "schema": "banister.policy-check/v1", "files": all }))?;
    }
    Ok(code)
}

fn look(file: String, text: String, whose: Whose, pack: Pack, org: Option<&str>) -> LintedFile {
    let layer = whose.layer();
    let mut found = LintedFile {
        file,
        layer,
        text,
        rules: 0,
        examples: [0, 0],
        errors: Vec::new(),
        warnings: Vec::new(),
    };
    let mut text = found.text.clone();
    let org = org.map(|text| RuleSource { name: ORG, text });
    while found.errors.len() < MOST_FAULTS {
        let own = Some(RuleSource { name: &found.file, text: &text });
        let layers = match whose {
            Whose::User => Layers { pack, org, user: own, ..Layers::default() },
            Whose::Org => Layers { pack, org: own, ..Layers::default() },
            Whose::Project => Layers { pack, org, project: own, ..Layers::default() },
        };
        let fault = match Rules::compile(&layers) {
            Ok(rules) => {
                found.examine(&rules);
                break;
            }
            Err(error) => fault(error),
        };
        let set_aside = without_rule_at(&text, fault.line).filter(|_| fault.name == found.file);
        found.errors.push(fault);
        match set_aside {
            Some(rest) => text = rest,
            None => break,
        }
    }
    found.errors.sort_by_key(|fault| (fault.line, fault.column));
    found
}

impl LintedFile {
    /// Tries the rules that load.
    fn examine(&mut self, rules: &Rules) {
        let mut held: BTreeMap<String, bool> = BTreeMap::new();
        for tried in rules.try_examples().filter(|tried| tried.file == self.file) {
            let [matching, not_matching] = &mut self.examples;
            *(if tried.should_match { matching } else { not_matching }) += 1;
            *held.entry(tried.rule.clone()).or_insert(true) &= tried.holds();
            if !tried.holds() {
                self.errors.push(failed(tried));
            }
        }
        let own = rules.describe().filter(|rule| rule.layer == self.layer);
        for rule in own {
            self.rules += 1;
            if !held.get(rule.id).copied().unwrap_or(true) {
                continue;
            }
            let overruled: Option<Vec<_>> = rule
                .matching
                .iter()
                .map(|example| overruled(rules, example, rule.decision))
                .collect();
            let Some((example, word, by)) = overruled.and_then(|all| all.into_iter().next()) else {
                continue;
            };
            let lift = rule.decision == Decision::Allow && word == "ask";
            self.warnings.push(RuleFault {
                name: self.file.clone(),
                line: rule.line,
                column: 1,
                rule: Some(rule.id.to_owned()),
                message: format!(
                    "it never has its way: `{example}` is answered with {word} by {by}"
                ),
                remedy: Some(if lift {
                    format!("write `lifts: [{by}]` if that is what you want")
                } else {
                    "remove it, or make it about something else".to_owned()
                }),
            });
        }
    }

    fn faults(&self) -> impl Iterator<Item = (&'static str, &RuleFault)> {
        let errors = self.errors.iter().map(|fault| ("error", fault));
        errors.chain(self.warnings.iter().map(|fault| ("warning", fault)))
    }

    fn json(&self) -> Value {
        let faults = |faults: &[RuleFault]| -> Vec<Value> {
            let row = |fault: &RuleFault| {
                json!({
                    "line": fault.line, "column": fault.column, "rule": fault.rule,
                    "message": fault.message, "remedy": fault.remedy,
                })
            };
            faults.iter().map(row).collect()
        };
        let [matching, not_matching] = self.examples;
        json!({
            "file": self.file,
            "layer": self.layer.prefix(),
            "rules": self.rules,
            "examples": { "match": matching, "not_match": not_matching },
            "errors": faults(&self.errors),
            "warnings": faults(&self.warnings),
        })
    }
}

/// Whether another rule has the last word about an example, and which.
fn overruled(
    rules: &Rules,
    example: &str,
    decision: Decision,
) -> Option<(String, &'static str, String)> {
    let mut action = Action::unseen("example", "Bash");
    action.input = Some(json!({ "command": example }));
    let gate = evaluate(rules, &rules.read(&ActionRequest::example(&action)));
    // Where no rule spoke, the example was no command.
    let spoken = gate.rule.contains('.') && gate.opaque.is_none();
    (spoken && gate.decision > decision)
        .then(|| (one_line(example), gate.decision.name(), gate.rule))
}

fn fault(error: Error) -> RuleFault {
    match error {
        Error::Invalid(fault) => *fault,
        other => RuleFault {
            name: String::new(),
            line: 0,
            column: 0,
            rule: None,
            message: other.to_string(),
            remedy: None,
        },
    }
}

fn failed(tried: Tried) -> RuleFault {
    let (message, remedy) = if tried.should_match {
        ("does not match its example", "change the rule, or move the example to `not_match`")
    } else {
        (
            "matches an example that it must not match",
            "narrow the rule, or move the example to `match`",
        )
    };
    RuleFault {
        name: tried.file,
        line: tried.line,
        column: tried.column,
        rule: Some(tried.rule),
        message: format!("{message} `{}`", one_line(&tried.example)),
        remedy: Some(remedy.to_owned()),
    }
}

/// The text with the rule that stands at this line blanked out, so that all other lines keep their numbers; `None` where
/// no rule stands there, or no other is left.
fn without_rule_at(text: &str, line: u64) -> Option<String> {
    let line = usize::try_from(line).ok()?.checked_sub(1)?;
    let lines: Vec<&str> = text.lines().collect();
    let list = lines.iter().position(|line| line.starts_with("rules:"))?;
    let indent = |line: &str| line.len() - line.trim_start().len();
    let is_item = |line: &&str| line.trim_start().starts_with("- ");
    let first = lines.iter().skip(list + 1).find(|line| is_item(line))?;
    let depth = indent(first);
    let starts: Vec<usize> = lines
        .iter()
        .enumerate()
        .skip(list + 1)
        .filter(|(_, line)| is_item(line) && indent(line) == depth)
        .map(|(at, _)| at)
        .collect();
    let at = starts.iter().rposition(|start| *start <= line)?;
    let (from, to) = (*starts.get(at)?, starts.get(at + 1).copied().unwrap_or(lines.len()));
    if starts.len() < 2 {
        return None;
    }
    let kept =
        lines.iter().enumerate().map(|(at, line)| if (from..to).contains(&at) { "" } else { line });
    Some(kept.collect::<Vec<_>>().join("\n"))
}

fn show(out: &mut dyn Write, found: &LintedFile, word: &str, fault: &RuleFault) -> io::Result<()> {
    let name = if fault.name.is_empty() { &found.file } else { &fault.name };
    let place = if fault.line == 0 {
        name.clone()
    } else {
        format!("{name}:{}:{}", fault.line, fault.column)
    };
    writeln!(out, "{place}: {word}: {}", one_line(&fault.message))?;
    if let Some(rule) = &fault.rule {
        writeln!(out, "  rule: {}", one_line(rule))?;
    }
    if let Some(line) = line_of(&found.text, fault).filter(|_| *name == found.file) {
        writeln!(out, "  line: {line}")?;
    }
    if let Some(remedy) = &fault.remedy {
        writeln!(out, "  remedy: {}", one_line(remedy))?;
    }
    Ok(())
}

/// The line that a fault is about, without what is hidden in it.
fn line_of(text: &str, fault: &RuleFault) -> Option<String> {
    let before = usize::try_from(fault.line).ok()?.checked_sub(1)?;
    let start: usize = text.split_inclusive('\n').take(before).map(str::len).sum();
    let Excerpt { text, .. } = excerpt(text.as_bytes(), start, start);
    Some(text.trim().to_owned()).filter(|line| !line.is_empty())
}
