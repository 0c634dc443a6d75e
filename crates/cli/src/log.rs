//! `banister log`: the journal, read, searched, exported, verified and signed, with or without a running gateway.

use std::path::Path;

use banister_journal::{Archive, Error};
use clap::{Args, Subcommand};

use crate::data_dir::DataDir;

mod checkpoint;
mod export;
mod line;
pub(crate) mod moment;
mod object;
mod reindex;
mod search;
mod show;
mod stream;
mod verify;

#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    data_dir: DataDir,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Print the newest records, oldest first
    Show(show::ShowArgs),
    /// Search messages and actions by words
    Search(search::SearchArgs),
    /// Export records to stdout as JSON or as the events of a protocol
    Export(export::ExportArgs),
    /// Verify every record, every chain and every checkpoint; exit 1 if something is wrong
    Verify(verify::VerifyArgs),
    /// Sign the state of the journal and print the checkpoint; keep it on another machine
    Checkpoint(checkpoint::CheckpointArgs),
    /// Rebuild the search index from the records; no gateway may be running
    Reindex(reindex::ReindexArgs),
}

pub(crate) fn run(args: &LogArgs) -> anyhow::Result<u8> {
    let path = args.data_dir.journal()?;
    dispatch(&args.what, &path).map_err(|error| named(error, &path))
}

fn dispatch(what: &What, path: &Path) -> anyhow::Result<u8> {
    match what {
        What::Show(args) => show::run(&Archive::open(path)?, args),
        What::Search(args) => search::run(&Archive::open(path)?, args),
        What::Export(args) => export::run(&Archive::open(path)?, args),
        What::Verify(args) => verify::run(path, args),
        What::Checkpoint(args) => checkpoint::run(path, args),
        What::Reindex(args) => reindex::run(path, args),
    }
}

/// What the database says does not name its file.
fn named(error: anyhow::Error, path: &Path) -> anyhow::Error {
    match error.downcast_ref::<Error>() {
        Some(Error::Sqlite(_) | Error::Write(_) | Error::Damaged { .. }) => {
            error.context(path.display().to_string())
        }
        _ => error,
    }
}

fn count(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}
