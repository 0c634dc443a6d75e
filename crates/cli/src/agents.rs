//! `banister agents`: which coding agents are known, what their hooks become, and how they are answered.
//!
//! Nothing here needs a gateway, and nothing is changed.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use banister_events::aep::dialect::{Answer, Behavior, Control, Decision};
use banister_events::aep::mapping::{Agents, Error, Mapping, Problem, Stamp};
use banister_events::check;
use banister_events::event::Protocol;
use banister_events::finding::Severity;
use banister_gateway::clock::Clock;
use serde_json::{Value, json};

use crate::failure::{Failure, GOOD, REFUSED, USAGE};
use crate::rules::did_you_mean;

/// The largest file or payload that is read.
const MOST_BYTES: u64 = 8 * 1024 * 1024;

/// What `banister agents` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct AgentsArgs {
    #[command(subcommand)]
    command: AgentsCommand,
}

#[derive(Debug, clap::Subcommand)]
enum AgentsCommand {
    /// List the supported agents
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one agent: the events of its hooks, and the answers they accept
    Show {
        /// The agent's install name or AEP slug, such as claude-code
        agent: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Load a mapping file and run its examples
    Check {
        /// The file
        file: PathBuf,
    },
    /// Map a native payload on stdin to events, or a decision to the agent's native answer
    Try {
        /// The agent's install name or AEP slug
        agent: String,
        /// The hook; taken from the payload if it is missing
        #[arg(long, value_name = "NAME")]
        hook: Option<String>,
        /// Print the native answer for this decision instead: allow, deny, ask, defer, block, continue, stop or abstain
        #[arg(long, value_name = "BEHAVIOR")]
        answer: Option<String>,
        /// The message of the answer
        #[arg(long, value_name = "TEXT", requires = "answer")]
        message: Option<String>,
    },
}

/// Runs it. Returns the exit code: 0, 1 where something is wrong with a file or payload, 2 where a name is not known.
pub(crate) fn run(
    args: &AgentsArgs,
    input: &mut dyn Read,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8> {
    if let AgentsCommand::Check { file } = &args.command {
        return check_file(file, out, err);
    }
    let agents = Agents::builtin()?;
    match &args.command {
        AgentsCommand::List { json } => list(&agents, *json, out),
        AgentsCommand::Show { agent, json: as_json } => {
            let agent = find(&agents, agent)?;
            if *as_json {
                writeln!(out, "{}", describe(agent))?;
                return Ok(GOOD);
            }
            show(agent, out)
        }
        AgentsCommand::Try { agent, hook, answer: Some(answer), message } => {
            let agent = find(&agents, agent)?;
            let hook = match hook {
                Some(hook) => hook.clone(),
                None => hook_of(agent, &payload(input)?)?,
            };
            try_answer(agent, &hook, answer, message.as_deref(), out, err)
        }
        AgentsCommand::Try { agent, hook, .. } => {
            let agent = find(&agents, agent)?;
            let payload = payload(input)?;
            let hook = hook.clone().map_or_else(|| hook_of(agent, &payload), Ok)?;
            try_payload(agent, &hook, &payload, out, err)
        }
        AgentsCommand::Check { .. } => Ok(USAGE),
    }
}

fn find<'a>(agents: &'a Agents, name: &str) -> Result<&'a Mapping> {
    agents.find(name).ok_or_else(|| {
        let names = agents.iter().flat_map(|agent| [agent.name.as_str(), agent.agent.as_str()]);
        let hint = did_you_mean(name, names);
        Failure::usage(format!("unknown agent {name:?}{hint}")).into()
    })
}

fn list(agents: &Agents, as_json: bool, out: &mut dyn Write) -> Result<u8> {
    if as_json {
        let agents: Vec<Value> = agents.iter().map(summary).collect();
        writeln!(out, "{}", json!({"schema": "banister.agents/v1", "agents": agents}))?;
        return Ok(GOOD);
    }
    let width = |of: fn(&Mapping) -> &str, least: usize| {
        agents.iter().map(|agent| of(agent).len()).max().unwrap_or(0).max(least)
    };
    let name = width(|agent| &agent.name, 4);
    let slug = width(|agent| &agent.agent, 4);
    let title = width(|agent| &agent.display_name, 5);
    writeln!(out, "{:name$}  {:slug$}  {:title$}  HOOKS  GATED  FILE", "NAME", "SLUG", "AGENT")?;
    for agent in agents.iter() {
        let hooks = agent.rows();
        let gated = agent.gated_hooks().len();
        let file = agent.install().and_then(|install| install.user.as_deref()).unwrap_or("-");
        writeln!(
            out,
            "{:name$}  {:slug$}  {:title$}  {:5}  {gated:5}  {file}",
            agent.name,
            agent.agent,
            agent.display_name,
            hooks.len(),
        )?;
    }
    Ok(GOOD)
}

fn summary(agent: &Mapping) -> Value {
    let install = agent.install();
    json!({
        "name": agent.name,
        "slug": agent.agent,
        "display_name": agent.display_name,
        "aliases": agent.aliases,
        "hooks": agent.rows().len(),
        "gated": agent.gated_hooks(),
        "config": {
            "user": install.and_then(|install| install.user.as_deref()),
            "project": install.and_then(|install| install.project.as_deref()),
            "format": install.map(|install| install.format.as_str()),
        },
    })
}

fn describe(agent: &Mapping) -> Value {
    let mut whole = summary(agent);
    let hooks: Vec<Value> = agent
        .rows()
        .iter()
        .map(|row| json!({"hook": row.hook, "events": row.events, "gated": row.gated}))
        .collect();
    let answers: Vec<Value> = agent.hooks().map(|(hook, control)| answers(hook, control)).collect();
    if let Some(whole) = whole.as_object_mut() {
        whole.insert("hooks".into(), hooks.into());
        whole.insert("answers".into(), answers.into());
        whole.shift_insert(0, "schema".into(), "banister.agent/v1".into());
    }
    whole
}

fn answers(hook: &str, control: &Control) -> Value {
    let says: Vec<&str> = control.answers.keys().map(|behavior| behavior.name()).collect();
    let degrades: serde_json::Map<String, Value> = degraded(control)
        .map(|(from, to)| (from.name().to_owned(), Value::from(to.name())))
        .collect();
    let fallback = control.fallback.as_ref().map(|template| template.fill("{message}"));
    json!({
        "hook": hook,
        "says": says,
        "degrades": degrades,
        "changes_input": control.changes_input(),
        "own_prompt": control.own_prompt,
        "deadline_ms": control.deadline_ms,
        "fallback": fallback.map(|Answer { exit, stdout, stderr }| {
            json!({"exit": exit, "stdout": stdout, "stderr": stderr})
        }),
    })
}

/// What is said instead of what a hook cannot say.
fn degraded(control: &Control) -> impl Iterator<Item = (Behavior, Behavior)> {
    Behavior::ALL
        .into_iter()
        .map(|behavior| (behavior, control.said(behavior)))
        .filter(|(decided, said)| decided != said)
}

fn show(agent: &Mapping, out: &mut dyn Write) -> Result<u8> {
    writeln!(out, "{}  {}", agent.name, agent.display_name)?;
    writeln!(out, "slug:     {}", agent.agent)?;
    if !agent.aliases.is_empty() {
        writeln!(out, "aliases:  {}", agent.aliases.join(", "))?;
    }
    if let Some(install) = agent.install() {
        for (of, file) in [("user", &install.user), ("project", &install.project)] {
            if let Some(file) = file {
                writeln!(out, "{:9} {file}", format!("{of}:"))?;
            }
        }
        if let Some(note) = &install.note {
            writeln!(out, "note:     {note}")?;
        }
    }
    let rows = agent.rows();
    let width = rows.iter().map(|row| row.hook.len()).max().unwrap_or(0).max(4);
    writeln!(out, "\n{:width$}  WAITS  BECOMES", "HOOK")?;
    for row in rows {
        let waits = if row.gated { "yes" } else { "no" };
        let events =
            if row.events.is_empty() { "nothing".to_owned() } else { row.events.join(", ") };
        writeln!(out, "{:width$}  {waits:5}  {events}", row.hook)?;
    }
    for (hook, control) in agent.hooks() {
        let hook = if hook == "*" { "any other hook" } else { hook };
        writeln!(out, "\n{hook}")?;
        let says: Vec<&str> = control.answers.keys().map(|behavior| behavior.name()).collect();
        let change = if control.changes_input() { "; an allow may change the input" } else { "" };
        writeln!(out, "  understands  {}{change}", says.join(", "))?;
        let instead: Vec<String> = degraded(control)
            .map(|(from, to)| format!("{} becomes {}", from.name(), to.name()))
            .collect();
        if !instead.is_empty() {
            writeln!(out, "  otherwise    {}", instead.join(", "))?;
        }
        if let Some(deadline) = control.deadline_ms {
            writeln!(out, "  waits        {deadline} ms")?;
        }
        if let Some(fallback) = &control.fallback {
            let Answer { exit, stdout, stderr } = fallback.fill("REASON");
            let said = [stdout, stderr].join(" ");
            writeln!(out, "  no gateway   exit {exit}, {}", said.trim())?;
        }
    }
    Ok(GOOD)
}

fn check_file(file: &Path, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8> {
    let name = file.display().to_string();
    let mut yaml = String::new();
    let opened = std::fs::File::open(file).with_context(|| format!("cannot read {name}"))?;
    let read = opened.take(MOST_BYTES).read_to_string(&mut yaml);
    read.with_context(|| format!("cannot read {name}"))?;
    let problems = match Mapping::load(&name, &yaml) {
        Ok(mapping) => {
            let mut problems = mapping.warnings().to_vec();
            problems.extend(mapping.verify());
            problems
        }
        Err(Error::Invalid { problems, .. }) => problems,
        Err(other) => return Err(other.into()),
    };
    for problem in &problems {
        let level = if problem.warning { "warning" } else { "error" };
        writeln!(out, "{name}: {level}: {problem}")?;
    }
    let (warnings, errors): (Vec<&Problem>, Vec<&Problem>) =
        problems.iter().partition(|problem| problem.warning);
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let errors = errors.len();
    writeln!(err, "{}, {}", count(errors, "error"), count(warnings.len(), "warning"))?;
    Ok(if errors > 0 { REFUSED } else { GOOD })
}

fn payload(input: &mut dyn Read) -> Result<Value> {
    let mut bytes = Vec::new();
    input.take(MOST_BYTES + 1).read_to_end(&mut bytes).context("cannot read the payload")?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(Failure::refused("the payload is larger than 8 MiB").into());
    }
    serde_json::from_slice(&bytes)
        .map_err(|error| Failure::refused(format!("the payload is not JSON: {error}")).into())
}

fn hook_of(agent: &Mapping, payload: &Value) -> Result<String> {
    let said = "the payload does not name its hook: say which with --hook NAME";
    agent.hook_of(payload).ok_or_else(|| Failure::usage(said).into())
}

fn try_payload(
    agent: &Mapping,
    hook: &str,
    payload: &Value,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8> {
    let session = agent.session_of(payload).unwrap_or_else(|| "-".to_owned());
    let stamp = Stamp { session: &session, seq: 0, time: Clock::System.now() };
    let mapped = agent.map(hook, payload, &stamp);
    let mut errors = false;
    for event in &mapped.events {
        writeln!(out, "{event}")?;
        for finding in check::value(Protocol::Aep, event) {
            errors |= finding.rule.severity == Severity::Error;
            let (code, level) = (finding.rule.code, finding.rule.severity.name());
            let at = if finding.pointer.is_empty() { "/" } else { &finding.pointer };
            writeln!(err, "{level}: {code} {at}: {}", finding.message)?;
        }
    }
    let rows = agent.rows();
    if !rows.iter().any(|row| row.hook == hook) {
        let hint = did_you_mean(hook, rows.iter().map(|row| row.hook));
        writeln!(err, "note: no rule is for the hook {hook:?}{hint}")?;
    }
    if mapped.gated {
        writeln!(err, "note: {hook} waits for a decision")?;
    }
    Ok(if errors { REFUSED } else { GOOD })
}

fn try_answer(
    agent: &Mapping,
    hook: &str,
    word: &str,
    message: Option<&str>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8> {
    let behavior = Behavior::parse(word).ok_or_else(|| {
        let hint = did_you_mean(word, Behavior::ALL.into_iter().map(Behavior::name));
        Failure::usage(format!("unknown behaviour {word:?}{hint}"))
    })?;
    let decision =
        Decision { behavior, message: message.map(str::to_owned), ..Decision::default() };
    let Some(control) = agent.control(hook) else {
        return Err(Failure::refused(format!("{hook} takes no answer")).into());
    };
    let (answer, degraded_from) = control.respond(&decision);
    write!(out, "{}", answer.stdout)?;
    out.flush()?;
    if !answer.stdout.is_empty() && !answer.stdout.ends_with('\n') {
        // The bytes are the agent's; on a screen the rest begins on a line of its own.
        writeln!(err)?;
    }
    if degraded_from.is_some() {
        let said = control.said(behavior).name();
        writeln!(err, "note: {hook} does not understand {word}, {said} is said instead")?;
    }
    writeln!(err, "exit: {}", answer.exit)?;
    if !answer.stderr.is_empty() {
        writeln!(err, "stderr: {}", answer.stderr.trim_end_matches('\n'))?;
    }
    Ok(GOOD)
}

#[cfg(test)]
#[path = "agents_tests.rs"]
mod tests;
