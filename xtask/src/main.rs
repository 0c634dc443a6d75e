//! `cargo xtask`: the chores of this workspace, as plain programs.
//!
//! Exits with 0 when the chore is done, 1 when it found something wrong, 2 when it was called wrongly.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};

mod agui;
mod bench;
mod deps;
mod licences;
mod metadata;
mod reference;

const USAGE: &str = "\
usage: cargo xtask CHORE

  deps                       fail on a dependency between crates, or between the modules of a crate that lists its
                             layers, that the design does not know; else print crates and layers
  licences                   fail on a licence, a source or a ban that deny.toml does not allow
  gen [--check]              write docs/reference/ from the code, or fail where it is stale
  bench hook [--runs N]      measure the hook against its peers; writes target/bench.json
  bench check [--runs N]     measure the checker against its peers; writes target/bench.json
  bench translate [--runs N] measure translations against checking; writes target/bench.json
  bench ingest [--runs N]    measure durable ingest against SQLite alone, and search; writes target/bench.json
  bench fanout [--runs N]    measure delivery to 1,000 who listen against Node; writes target/bench.json
  bench policy [--runs N]    hold the rules against two sets of shell lines, and measure verdicts
  bench compare              print what was measured last beside xtask/baseline.json
  bench keep                 make what was measured last the baseline
  agui follow|protobuf|repair
                             our side of AG-UI for scripts: JSON lines on stdin, JSON lines on stdout";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["deps"] => deps::run(),
        ["licences"] => licences::run(),
        ["gen"] => reference::write(),
        ["gen", "--check"] => reference::check(),
        ["agui", what] => match agui::run(what) {
            Some(done) => done,
            None => return usage(),
        },
        ["bench", "compare"] => bench::compare(),
        ["bench", "keep"] => bench::keep(),
        ["bench", which @ .., "--runs", runs] => match runs.parse() {
            Ok(runs @ 1..=100_000) => match benches(which, Some(runs)) {
                Some(done) => done,
                None => return usage(),
            },
            _ => return usage(),
        },
        ["bench", which @ ..] => match benches(which, None) {
            Some(done) => done,
            None => return usage(),
        },
        _ => return usage(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(&format!("xtask: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Runs benches one after another; `None` where one is not known.
fn benches(which: &[&str], runs: Option<usize>) -> Option<anyhow::Result<()>> {
    type Bench = (fn(usize) -> anyhow::Result<()>, usize);
    let known = |name: &&str| -> Option<Bench> {
        Some(match *name {
            "hook" => (bench::hook, bench::RUNS),
            "check" => (bench::check, bench::RUNS),
            "translate" => (bench::translate, bench::RUNS),
            "ingest" => (bench::ingest, bench::FEW_RUNS),
            "policy" => (bench::policy, bench::POLICY_RUNS),
            "fanout" => (bench::fanout, bench::FEW_RUNS),
            _ => return None,
        })
    };
    let chosen: Vec<Bench> = which.iter().map(known).collect::<Option<_>>()?;
    let run = |(bench, usual): Bench| bench(runs.unwrap_or(usual));
    (!chosen.is_empty()).then(|| chosen.into_iter().try_for_each(run))
}

fn usage() -> ExitCode {
    tell(USAGE);
    ExitCode::from(2)
}

/// A line of data.
fn say(line: &str) {
    // Nobody is left to be told that this failed.
    writeln!(std::io::stdout().lock(), "{line}").ok();
}

/// A line for people.
fn tell(line: &str) {
    writeln!(std::io::stderr().lock(), "{line}").ok();
}

/// The root of the workspace.
fn root() -> anyhow::Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(Path::to_owned).context("xtask has no parent directory")
}

/// A call of the cargo that built this, in the workspace's root.
fn cargo() -> anyhow::Result<Command> {
    let mut cargo = Command::new(option_env!("CARGO").unwrap_or("cargo"));
    cargo.current_dir(root()?);
    Ok(cargo)
}

/// Runs a command to its end; its output goes where ours goes.
fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("{command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}

/// Runs a command to its end and gives what it printed.
fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{command:?} ended with {}: {}", output.status, said.trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}
