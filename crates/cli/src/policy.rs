//! `banister policy`: what the rules say, whether they are right, and what others would have said.
//!
//! Everything is printed as plain lines that make sense read aloud one after another.

use std::io::Write;

use clap::{Args, Subcommand};

mod explain;
mod lint;
mod replay;
mod sources;

#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Say what would be decided about a command or a tool's call, and why, step by step
    Explain(explain::ExplainArgs),
    /// Check rule files: every error with its place and what to do about it; exit 1 if there are any
    Check(lint::LintArgs),
    /// Try the examples in rule files on their rules; exit 1 if one does not hold
    Test(lint::LintArgs),
    /// Decide again about what agents did, and show what other rules would have said
    Replay(replay::PolicyReplayArgs),
}

pub(crate) fn run(
    args: &PolicyArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> anyhow::Result<u8> {
    match &args.what {
        What::Explain(args) => explain::run(args, &mut std::io::stdin().lock(), out),
        What::Check(args) => lint::check(args, out, err),
        What::Test(args) => lint::test(args, out, err),
        What::Replay(args) => replay::run(args, out),
    }
}
