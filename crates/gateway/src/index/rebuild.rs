//! The search index made again from the records: for a journal whose older records were never indexed, and after a
//! change of what can be found. Nothing is indexed that the capture level did not keep.

use std::sync::Arc;

use banister_events::aep::mapping::Agents;
use banister_journal::Journal;

use super::Indexer;
use crate::Error;
use crate::hub::Publisher;

/// Empties the index and makes it again; how many texts it has now. Where this is broken off, the next gateway that runs
/// on the journal goes on with it.
pub async fn rebuild(journal: &Journal, agents: &Arc<Agents>) -> Result<u64, Error> {
    journal.clear_index().await?;
    let head = journal.head();
    let (_publisher, hub) = Publisher::new(head);
    Indexer::new(journal, &hub, agents).catch_up(head).await
}

#[cfg(test)]
#[path = "rebuild_tests.rs"]
mod tests;
