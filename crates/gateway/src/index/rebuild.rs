//! The search index made again from the records: for a journal whose older records were never indexed, and after a
//! change of what can be found.
//!
//! Records are read in their order, so that hits come in theirs. A session is forgotten with its last record: what is
//! held at a time is what was going on at a time. Nothing is indexed that the capture level did not keep.

use std::collections::HashMap;
use std::sync::Arc;

use banister_events::aep::mapping::Agents;
use banister_events::text;
use banister_journal::{Durability, Indexed, Journal, Level, Passage, Record};

use super::Index;
use crate::Error;
use crate::project::Projection;

/// How many records are read, and how many rows written, at a time.
const BATCH: usize = 256;

/// Empties the index and makes it again; how many texts it has now. Nobody may write to the journal meanwhile.
pub async fn rebuild(journal: &Journal, agents: &Arc<Agents>) -> Result<u64, Error> {
    let mut left = heads(journal)?;
    journal.clear_index().await?;
    let mut open: HashMap<String, (Projection, Index)> = HashMap::new();
    let (mut position, mut count) = (0, 0);
    loop {
        let records = journal.after(position, BATCH)?;
        let Some(newest) = records.last() else { break };
        position = newest.position;
        let mut rows = Vec::new();
        for record in &records {
            let (projection, index) = open
                .entry(record.session.clone())
                .or_insert_with(|| (Projection::new(Arc::clone(agents)), Index::default()));
            let told = projection.next(record);
            let found = told.iter().filter_map(|activity| index.add(activity));
            rows.extend(found.filter_map(|passage| row(record, passage)));
            if left.get(&record.session) == Some(&record.seq) {
                open.remove(&record.session);
                left.remove(&record.session);
            }
        }
        count += rows.len() as u64;
        if !rows.is_empty() {
            journal.index(rows, Durability::Written).await?;
        }
    }
    Ok(count)
}

/// The number of each session's last record.
fn heads(journal: &Journal) -> Result<HashMap<String, u64>, Error> {
    let mut heads = HashMap::new();
    let mut after = String::new();
    loop {
        let some = journal.heads(&after, BATCH)?;
        let Some(last) = some.last() else { return Ok(heads) };
        after.clone_from(&last.session);
        heads.extend(some.into_iter().map(|head| (head.session, head.seq)));
    }
}

/// A text as it may be found: an open ask is held exactly, and kept with less.
fn row(record: &Record, passage: Passage) -> Option<Indexed> {
    let clean = |text: String| match record.captured.level {
        Level::Full => Some(text),
        Level::Redacted => Some(text::redact(&text).into_owned()),
        Level::Metadata | Level::None => None,
    };
    Some(Indexed {
        session: record.session.clone(),
        seq: record.seq,
        time: record.time,
        agent: record.source.agent.clone(),
        kind: passage.kind,
        title: clean(passage.title)?,
        text: clean(passage.text)?,
    })
}

#[cfg(test)]
#[path = "rebuild_tests.rs"]
mod tests;
