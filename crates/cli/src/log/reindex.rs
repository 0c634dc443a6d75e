//! `banister log reindex`: the search index, made again from the records.

use std::path::Path;
use std::sync::Arc;

use banister_events::aep::mapping::Agents;
use banister_gateway::index::rebuild;
use banister_journal::Journal;
use clap::Args;

use super::count;
use crate::data_dir::block_on;
use crate::failure::GOOD;
use crate::print;

#[derive(Debug, Args)]
#[command(after_help = "Records are not changed.")]
pub(super) struct ReindexArgs {}

pub(super) fn run(journal: &Path, _: &ReindexArgs) -> anyhow::Result<u8> {
    let journal = Journal::open(journal)?;
    let agents = Arc::new(Agents::builtin()?);
    let texts = block_on(async { Ok(rebuild(&journal, &agents).await?) })?;
    print::tell(&format!("The index was made again: {}.", count(texts, "text")));
    Ok(GOOD)
}
