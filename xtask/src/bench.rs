//! Measures what design promises, as ratios within one run: machines differ, ratios hardly do.
//!
//! It informs: a missed goal is printed as missed and is no failure. What cannot be measured is skipped loudly.

mod gateway;
mod hook;
mod stats;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
pub(crate) use hook::hook;

/// How often each peer runs unless the caller says otherwise.
pub(crate) const RUNS: usize = 40;

/// The target directory this program was built into.
fn target() -> anyhow::Result<PathBuf> {
    let ourselves = std::env::current_exe()?;
    let target = ourselves.parent().and_then(std::path::Path::parent);
    target.map(std::path::Path::to_owned).context("this program lies outside of a target directory")
}

#[expect(clippy::disallowed_methods, reason = "measuring real time is what this is for")]
fn now() -> Instant {
    Instant::now()
}
