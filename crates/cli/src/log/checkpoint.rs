//! `banister log checkpoint`: signs where the journal stands, and prints it for keeping elsewhere.

use std::path::{Path, PathBuf};

use anyhow::Context;
use banister_events::text;
use banister_gateway::clock::Clock;
use banister_journal::{Archive, SigningKey};
use clap::Args;

use super::count;
use crate::failure::{Failure, GOOD};
use crate::print;

#[derive(Debug, Args)]
pub(super) struct CheckpointArgs {
    /// Write it to a file rather than to stdout
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print the existing checkpoints after this number instead; 0 for all
    #[arg(long, value_name = "NUMBER", conflicts_with = "key")]
    after: Option<u64>,
    /// Print the public key of the checkpoints instead, for pinning
    #[arg(long)]
    key: bool,
}

pub(super) fn run(journal: &Path, args: &CheckpointArgs) -> anyhow::Result<u8> {
    let path = journal.with_file_name(SigningKey::FILE);
    if args.key {
        return write(args.out.as_deref(), &format!("{}\n", SigningKey::open(&path)?.public()));
    }
    let archive = Archive::open(journal)?;
    if let Some(after) = args.after {
        return list(&archive, args.out.as_deref(), after);
    }
    let key = SigningKey::open(&path)?;
    let made = archive.checkpoint(&key, Clock::System.now())?;
    let (checkpoints, new) = match archive.last_checkpoint()? {
        _ if !made.is_empty() => (made, true),
        Some(last) => (vec![last], false),
        None => {
            return Err(Failure::refused("the journal is empty: there is nothing to sign").into());
        }
    };
    let lines: String = checkpoints.iter().map(|checkpoint| checkpoint.to_json() + "\n").collect();
    let code = write(args.out.as_deref(), &lines)?;
    if let Some(last) = checkpoints.last() {
        let heads = checkpoints.iter().map(|checkpoint| checkpoint.heads.len() as u64).sum();
        let what = if new { "covers" } else { "is the last, nothing has changed since; it covers" };
        print::tell(&format!(
            "Checkpoint {} of {} {what} {}. Keep it where nobody who can write the journal can change it.",
            last.number,
            text::one_line(&last.time),
            count(heads, "session"),
        ));
    }
    Ok(code)
}

/// One at a time: there may be many.
fn list(archive: &Archive, file: Option<&Path>, after: u64) -> anyhow::Result<u8> {
    let print = |out: &mut dyn std::io::Write| {
        let mut after = after;
        while let Some(checkpoint) = archive.checkpoints(after, 1)?.pop() {
            after = checkpoint.number;
            writeln!(out, "{}", checkpoint.to_json())?;
        }
        Ok(GOOD)
    };
    match file {
        None => print::with(|out, _| print(out)),
        Some(path) => {
            let file = std::fs::File::create(path).with_context(|| path.display().to_string())?;
            let mut file = std::io::BufWriter::new(file);
            let code = print(&mut file)?;
            std::io::Write::flush(&mut file).with_context(|| path.display().to_string())?;
            Ok(code)
        }
    }
}

fn write(file: Option<&Path>, text: &str) -> anyhow::Result<u8> {
    match file {
        None => print::with(|out, _| {
            out.write_all(text.as_bytes())?;
            Ok(GOOD)
        }),
        Some(path) => {
            std::fs::write(path, text).with_context(|| path.display().to_string())?;
            Ok(GOOD)
        }
    }
}
