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
    /// Explain the verdict on a command or a tool call, step by step
    Explain(explain::ExplainArgs),
    /// Check rule files and print every error with its place and a remedy; exit 1 if there are any
    Check(lint::LintArgs),
    /// Run the examples in rule files; exit 1 if one fails
    Test(lint::LintArgs),
    /// Evaluate recorded actions again, and show which verdicts change
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
