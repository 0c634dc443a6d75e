//! `banister policy explain`: one action, every command in it, what each does, and which rule says what.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use anyhow::Context;
use banister_events::activity::{Action, ActionKind, Decision};
use banister_events::text::one_line;
use banister_gateway::clock::Clock;
use banister_gateway::policy::{PolicyQuestion, effect_line};
use banister_policy::{Effect, Explained, Explanation};
use clap::Args;
use serde_json::json;

use super::sources::{RuleArgs, WhereArgs, policy_store};
use crate::data_dir::quoted;
use crate::failure::{Failure, GOOD};

/// The longest text that is read, in bytes: no hook takes a longer one.
const LONGEST: u64 = 8 * 1024 * 1024;

#[derive(Debug, Args)]
#[command(
    after_help = "Exits with 0 whatever the verdict. Words that begin with a dash go after --, as in: banister policy explain -- rm -rf build"
)]
pub(crate) struct ExplainArgs {
    /// The command: one text in quotes, or its words; - reads it from standard input
    #[arg(value_name = "CMD", required_unless_present = "input")]
    command: Vec<String>,
    /// The input of a tool that is no shell, as JSON; - reads it from standard input
    #[arg(long, value_name = "JSON", conflicts_with = "command")]
    input: Option<String>,
    /// The tool that would be called
    #[arg(long, value_name = "TOOL", default_value = "Bash")]
    tool: String,
    /// The MCP server that the tool belongs to
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// The agent, by its short name
    #[arg(long, value_name = "AGENT", default_value = "claude")]
    agent: String,
    #[command(flatten)]
    whereabouts: WhereArgs,
    #[command(flatten)]
    rules: RuleArgs,
    /// Print JSON: {"schema", "verdict", "rule", "reason", "commands": […], …}
    #[arg(long)]
    json: bool,
}

impl ExplainArgs {
    fn action(&self, stdin: &mut dyn Read) -> anyhow::Result<Action> {
        let input = match (&self.input, self.command.as_slice()) {
            (Some(text), _) => {
                let text = if text == "-" { read(stdin)? } else { text.clone() };
                serde_json::from_str(&text)
                    .map_err(|error| Failure::usage(format!("--input is not JSON: {error}")))?
            }
            (None, [only]) if only == "-" => json!({ "command": read(stdin)? }),
            (None, [only]) => json!({ "command": only }),
            // The shell that started us has taken its words apart; together they mean the same again.
            (None, words) => {
                let words: Vec<String> =
                    words.iter().map(|word| quoted(&PathBuf::from(word))).collect();
                json!({ "command": words.join(" ") })
            }
        };
        Ok(Action {
            kind: if self.server.is_some() { ActionKind::Mcp } else { ActionKind::Tool },
            server: self.server.clone(),
            input: Some(input),
            ..Action::unseen("explain", &self.tool)
        })
    }
}

fn read(stdin: &mut dyn Read) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    stdin.take(LONGEST + 1).read_to_end(&mut bytes).context("standard input")?;
    if bytes.len() as u64 > LONGEST {
        return Err(Failure::usage("standard input is longer than 8 MiB").into());
    }
    let text =
        String::from_utf8(bytes).map_err(|_| Failure::usage("standard input is not text"))?;
    Ok(text.strip_suffix('\n').map_or(text.clone(), str::to_owned))
}

pub(super) fn run(
    args: &ExplainArgs,
    stdin: &mut dyn Read,
    out: &mut dyn Write,
) -> anyhow::Result<u8> {
    let action = args.action(stdin)?;
    let settings = args.rules.settings()?;
    let (cwd, project) = (args.whereabouts.cwd()?, args.whereabouts.project()?);
    let mut own = settings.own.clone();
    own.push(settings.data.clone());
    let judgement = policy_store(&settings)?.judge(&PolicyQuestion {
        agent: &args.agent,
        session: None,
        action: &action,
        cwd: Some(&cwd.to_string_lossy()),
        project: project.as_deref(),
        own: &own,
        now: Clock::System.now(),
    });
    let explanation = judgement.explanation;
    if args.json {
        serde_json::to_writer(&mut *out, &explanation)?;
        writeln!(out)?;
    } else {
        show(out, &action, &explanation)?;
    }
    Ok(GOOD)
}

fn show(out: &mut dyn Write, action: &Action, explanation: &Explanation) -> io::Result<()> {
    writeln!(out, "{}: {}", one_line(&action.title()), one_line(&action.headline()))?;
    writeln!(out, "Verdict: {}. {}", explanation.verdict.name(), meaning(explanation.verdict))?;
    writeln!(out, "Rule: {}", explanation.rule)?;
    writeln!(out, "Reason: {}", one_line(&explanation.reason))?;
    if let Some(safer) = &explanation.safer {
        writeln!(out, "Safer: {}", one_line(safer))?;
    }
    let undo = match explanation.irreversible {
        Some(true) => "it cannot be undone",
        Some(false) => "it can be undone",
        None => "whether it can be undone is not known",
    };
    writeln!(out, "Risk: {}, {undo}", explanation.risk.name())?;
    if let Some(opaque) = &explanation.opaque {
        writeln!(out, "Could not be read: {}", one_line(opaque))?;
    }
    if !explanation.effects.is_empty() {
        writeln!(out, "It does:")?;
        effects(out, &explanation.effects)?;
    }
    let count = explanation.commands.len();
    for (at, command) in explanation.commands.iter().enumerate() {
        writeln!(out)?;
        show_command(out, command, at + 1, count)?;
    }
    writeln!(out)?;
    writeln!(out, "Rules: {}", explanation.rules)
}

fn show_command(
    out: &mut dyn Write,
    command: &Explained,
    number: usize,
    count: usize,
) -> io::Result<()> {
    let mut words: Vec<String> = command.assignments.iter().map(|set| one_line(set)).collect();
    words.extend(command.argv.iter().map(|word| shown(word)));
    let words = if words.is_empty() { "no program".to_owned() } else { words.join(" ") };
    writeln!(out, "Command {number} of {count}: {words}")?;
    let mut row = |name: &str, text: String| {
        if text.is_empty() { Ok(()) } else { writeln!(out, "  {name}: {text}") }
    };
    row("Reached through", one_line(&command.steps.join(", then ")))?;
    row("Runs in", one_line(&command.directories.join(" or ")))?;
    row("Runs on", if command.elsewhere { "another machine" } else { "" }.to_owned())?;
    for file in &command.redirects {
        row(&format!("{:?}s", file.direction), one_line(&file.target))?;
    }
    row("Is given", command.input.as_deref().map(one_line).unwrap_or_default())?;
    if !command.effects.is_empty() {
        writeln!(out, "  It does:")?;
        effects(out, &command.effects)?;
    }
    let by = if command.rule.is_empty() { String::new() } else { format!(" by {}", command.rule) };
    let reason = if command.reason.is_empty() {
        String::new()
    } else {
        format!(". {}", one_line(&command.reason))
    };
    writeln!(out, "  Verdict: {}{by}{reason}", command.verdict.name())
}

fn effects(out: &mut dyn Write, effects: &[Effect]) -> io::Result<()> {
    effects.iter().try_for_each(|effect| writeln!(out, "    {}", one_line(&effect_line(effect))))
}

/// A word as it was understood; in quotes only where its ends would not be seen.
fn shown(word: &str) -> String {
    let word = one_line(word);
    let plain = !word.is_empty() && !word.contains(char::is_whitespace);
    if plain { word } else { format!("'{word}'") }
}

/// What becomes of the action, in words.
fn meaning(verdict: Decision) -> &'static str {
    match verdict {
        Decision::Allow => "It runs without a word.",
        Decision::Ask => "A person is asked.",
        Decision::Deny => "It does not run, and nobody can approve it.",
    }
}
