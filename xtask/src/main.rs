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

  deps                       fail on a dependency between crates that the design does not know
  licences                   fail on a licence, a source or a ban that deny.toml does not allow
  gen [--check]              write docs/reference/ from the code, or fail where it is stale
  bench hook [--runs N]      measure the hook against its peers; writes target/bench.json
  bench check [--runs N]     measure the checker against its peers; writes target/bench.json
  bench translate [--runs N] measure translations against checking; writes target/bench.json
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
        ["bench", "hook"] => bench::hook(bench::RUNS),
        ["bench", "check"] => bench::check(bench::RUNS),
        ["bench", "translate"] => bench::translate(bench::RUNS),
        ["bench", which @ ("hook" | "check" | "translate"), "--runs", runs] => {
            match (*which, runs.parse()) {
                ("hook", Ok(runs @ 1..=100_000)) => bench::hook(runs),
                ("translate", Ok(runs @ 1..=100_000)) => bench::translate(runs),
                (_, Ok(runs @ 1..=100_000)) => bench::check(runs),
                _ => return usage(),
            }
        }
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
