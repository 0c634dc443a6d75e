//! `banister log show`: the newest records, oldest first. One record is in memory at a time.

use banister_journal::Archive;
use clap::Args;

use super::line::line;
use super::moment::Moment;
use super::object::object;
use crate::failure::GOOD;
use crate::print;

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// Only this session, by its id or the beginning of it
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Only from this moment on: a time, a date, or how long ago, like 12h
    #[arg(long, value_name = "TIME")]
    since: Option<Moment>,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
    /// Print one JSON object per record, with the original bytes as text, or in base64 where they are none
    #[arg(long)]
    json: bool,
}

pub(super) fn run(archive: &Archive, args: &ShowArgs) -> anyhow::Result<u8> {
    let session = args.session.as_deref().unwrap_or_default();
    let since = args.since.map(Moment::time);
    let positions = archive.newest(session, since, args.limit)?;
    if positions.is_empty() {
        print::tell("There is no such record.");
    }
    print::with(|out, _| {
        for position in positions {
            // One that retention has removed meanwhile is not shown.
            let Some(record) = archive.at(position)? else { continue };
            if args.json {
                serde_json::to_writer(&mut *out, &object(&record))?;
                writeln!(out)?;
            } else {
                writeln!(out, "{}", line(&record))?;
            }
        }
        Ok(GOOD)
    })
}
