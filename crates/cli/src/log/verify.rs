//! `banister log verify`: integrity, completeness and authenticity, apart.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use banister_events::text::one_line;
use banister_journal::checkpoint::BYTES;
use banister_journal::verify::{BadCheckpoint, Forgery, State};
use banister_journal::{Bad, Checkpoint, Evidence, Journal, PublicKey, Report, What};
use clap::Args;
use serde_json::{Value, json};

use super::count;
use crate::failure::{Failure, GOOD, REFUSED};
use crate::print;

/// How many cuts are told one by one.
const CUTS: usize = 10;

#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    /// A file with checkpoints that were kept elsewhere; may be given more than once
    #[arg(long, value_name = "FILE")]
    checkpoint: Vec<PathBuf>,
    /// The public key that checkpoints must be signed with, 64 hex digits; may be given more than once
    #[arg(long, value_name = "PIN")]
    key: Vec<PublicKey>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(path: &Path, args: &VerifyArgs) -> anyhow::Result<u8> {
    let mut checkpoints = Vec::new();
    for file in &args.checkpoint {
        checkpoints.extend(read(file)?);
    }
    let evidence = Evidence { checkpoints, pins: args.key.clone() };
    let report = Journal::verify_with(path, &evidence)?;
    print::with(|out, _| {
        if args.json {
            let mut result = json!({
                "schema": "banister.verify/v1", "good": report.is_clean(), "intact": report.is_intact(),
            });
            if let (Some(result), Value::Object(fields)) =
                (result.as_object_mut(), serde_json::to_value(&report)?)
            {
                result.extend(fields);
            }
            writeln!(out, "{result}")?;
        } else {
            tell(&report, out)?;
        }
        Ok(if report.is_clean() { GOOD } else { REFUSED })
    })
}

/// One checkpoint per line, as `log checkpoint` writes them.
fn read(path: &Path) -> anyhow::Result<Vec<Checkpoint>> {
    let mut text = String::new();
    let file = std::fs::File::open(path).with_context(|| path.display().to_string())?;
    file.take(BYTES as u64 + 1)
        .read_to_string(&mut text)
        .with_context(|| path.display().to_string())?;
    let wrong = |message: &str| Failure::usage(format!("{}: {message}", path.display()));
    if text.len() > BYTES {
        return Err(wrong("larger than 16 MiB; show the newest checkpoints alone").into());
    }
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let checkpoint = Checkpoint::parse(line)
            .map_err(|error| Failure::usage(format!("{}:{number}: {error}", path.display())))?;
        found.push(checkpoint);
    }
    if found.is_empty() {
        return Err(wrong("there is no checkpoint in it").into());
    }
    Ok(found)
}

fn tell(report: &Report, out: &mut dyn Write) -> anyhow::Result<()> {
    let (records, sessions) = (count(report.records, "record"), count(report.sessions, "session"));
    writeln!(out, "{records} in {sessions}.")?;
    for cut in report.pruned.cuts.iter().take(CUTS) {
        writeln!(
            out,
            "Session {}: pruned up to record {} at {}, by {}.",
            one_line(&cut.session),
            cut.seq,
            one_line(&cut.time),
            one_line(&cut.reason),
        )?;
    }
    if report.pruned.sessions > CUTS as u64 {
        let (records, sessions) =
            (count(report.pruned.records, "record"), count(report.pruned.sessions, "session"));
        writeln!(out, "In all {records} of {sessions} were pruned.")?;
    }
    integrity(report, out)?;
    completeness(report, out)?;
    authenticity(report, out)
}

fn integrity(report: &Report, out: &mut dyn Write) -> anyhow::Result<()> {
    if report.is_intact() {
        writeln!(out, "Integrity: good. Every record and every chain is intact.")?;
        return Ok(());
    }
    writeln!(out, "Integrity: broken.")?;
    if let Some(bad) = &report.first_bad {
        writeln!(out, "Broken: {}.", record(bad))?;
        writeln!(out, "{} in all.", count(report.bad, "fault"))?;
    }
    if let Some(storage) = &report.storage {
        writeln!(out, "The database is damaged: {}", one_line(storage))?;
    }
    Ok(())
}

fn completeness(report: &Report, out: &mut dyn Write) -> anyhow::Result<()> {
    let completeness = &report.completeness;
    let through = completeness.through.as_ref().map(|through| {
        let from = if through.shown { "that was shown" } else { "in the journal itself" };
        format!("checkpoint {} of {} {from}", through.number, one_line(&through.time))
    });
    match (completeness.state, through) {
        (State::Good, Some(through)) => {
            writeln!(out, "Completeness: good up to {through}.")?;
        }
        (State::Bad, _) => {
            writeln!(out, "Completeness: broken.")?;
            if let Some(bad) = &completeness.first_bad {
                writeln!(out, "Missing: {}.", record(bad))?;
                writeln!(out, "{} in all.", count(completeness.bad, "fault"))?;
            }
        }
        _ => {
            let remedy = "show one that was kept elsewhere with --checkpoint FILE";
            writeln!(out, "Completeness: unknown, there is no checkpoint; {remedy}.")?;
        }
    }
    Ok(())
}

fn authenticity(report: &Report, out: &mut dyn Write) -> anyhow::Result<()> {
    let authenticity = &report.authenticity;
    let keys: Vec<String> = authenticity.keys.iter().map(PublicKey::to_string).collect();
    match (authenticity.state, &authenticity.first_bad) {
        (State::Bad, Some(bad)) => {
            writeln!(out, "Authenticity: broken.")?;
            writeln!(out, "Forged: {}.", forgery(bad))?;
            writeln!(out, "{} in all.", count(authenticity.bad, "fault"))?;
        }
        (State::Good, _) => {
            writeln!(out, "Authenticity: good. Signed with the key {}.", keys.join(", "))?;
        }
        _ if keys.is_empty() => {
            writeln!(out, "Authenticity: unknown, nothing is signed.")?;
        }
        _ => writeln!(
            out,
            "Authenticity: unknown, signed with {}; if that is the key you know, pin it with --key.",
            keys.join(", ")
        )?,
    }
    Ok(())
}

fn record(bad: &Bad) -> String {
    let Bad { position, session, seq, what } = bad;
    let wrong = match what {
        What::Content => "is not what was recorded",
        What::Link => "does not follow on the record before it",
        What::Missing => "is missing",
        What::Order => "stands before a record that is older",
        What::Head => "is not the record its session is known to end with",
        What::Unreadable => "holds what no record holds",
        What::Held => "has other bytes held for it than were recorded",
        What::Signed => "is not the record that was signed",
        What::Cut => "and those before it were removed, and no checkpoint tells of it",
        _ => "is broken",
    };
    format!("record {seq} of session {} (position {position}) {wrong}", one_line(session))
}

fn forgery(bad: &BadCheckpoint) -> String {
    let BadCheckpoint { number, shown, what } = bad;
    let wrong = match what {
        Forgery::Unreadable => "cannot be read",
        Forgery::Signature => "is not signed by its key",
        Forgery::Key => "is signed with another key than the one that was given",
        Forgery::Epoch => "is about another journal",
        Forgery::Link => "does not follow on the one before it",
        Forgery::Absent => "is not in the journal: what came after an older one was removed",
        Forgery::Replaced => "is not the one in the journal: the journal was written anew",
        _ => "is not genuine",
    };
    let which = if *shown { "that was shown" } else { "in the journal" };
    format!("checkpoint {number} {which} {wrong}")
}
