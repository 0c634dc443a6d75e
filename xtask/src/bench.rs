//! Measures what design promises, as ratios within one run: machines differ, ratios hardly do.
//!
//! It informs: a missed goal is printed as missed and is no failure. What cannot be measured is skipped loudly.

mod check;
mod compare;
mod fanout;
mod gateway;
mod hook;
mod ingest;
mod listen;
mod policy;
mod push;
mod search;
mod stats;

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::Context;
pub(crate) use check::{check, translate};
pub(crate) use compare::{compare, keep};
pub(crate) use fanout::fanout;
pub(crate) use hook::hook;
pub(crate) use ingest::ingest;
pub(crate) use policy::{RUNS as POLICY_RUNS, policy};
use serde_json::{Value, json};

/// How often each peer runs unless the caller says otherwise.
pub(crate) const RUNS: usize = 40;
/// The same where one run takes long.
pub(crate) const FEW_RUNS: usize = 5;

/// The target directory this program was built into.
fn target() -> anyhow::Result<PathBuf> {
    let ourselves = std::env::current_exe()?;
    let target = ourselves.parent().and_then(std::path::Path::parent);
    target.map(std::path::Path::to_owned).context("this program lies outside of a target directory")
}

/// An empty folder of this name in the target directory.
fn fresh(name: &str) -> anyhow::Result<PathBuf> {
    let folder = target()?.join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Builds this program as users get it, and lets that measure.
fn optimized(bench: &str, runs: usize) -> anyhow::Result<()> {
    crate::tell("bench: building (release)");
    crate::run(crate::cargo()?.args(["build", "--quiet", "--release", "-p", "xtask"]))?;
    let program = target()?.join("release/xtask");
    crate::run(Command::new(program).args(["bench", bench, "--runs", &runs.to_string()]))
}

#[expect(clippy::disallowed_methods, reason = "measuring real time is what this is for")]
fn now() -> Instant {
    Instant::now()
}

/// Puts one bench's result beside those of the others.
fn merge(bench: &str, result: Value) -> anyhow::Result<()> {
    const SCHEMA: &str = "banister.bench/v1";
    let path = target()?.join("bench.json");
    let known = std::fs::read(&path).ok();
    let mut document: Value = known
        .and_then(|known| serde_json::from_slice(&known).ok())
        .filter(|known: &Value| known.get("schema").and_then(Value::as_str) == Some(SCHEMA))
        .unwrap_or_else(|| json!({ "schema": SCHEMA }));
    if let Some(document) = document.as_object_mut() {
        document.insert(bench.to_owned(), result);
    }
    std::fs::write(&path, format!("{document:#}\n"))?;
    crate::say(&format!("\nWritten to {}", path.display()));
    Ok(())
}
