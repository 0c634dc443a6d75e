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
    /// Find what was said and done, by words
    Search(search::SearchArgs),
    /// Write records to stdout, all or some, for other tools, or as a protocol's events
    Export(export::ExportArgs),
    /// Verify every record, every chain and every checkpoint; exit 1 if something is wrong
    Verify(verify::VerifyArgs),
    /// Sign where the journal stands, and print it: keep it elsewhere
    Checkpoint(checkpoint::CheckpointArgs),
    /// Make the search index again from the records, while no gateway runs
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
