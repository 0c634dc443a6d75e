//! Where a stream goes on, by the id of the frame that its subscriber got last.
//!
//! | id | goes on |
//! |---|---|
//! | of an AAEP event that this gateway wrote | after that event: the id leads back to the record |
//! | of an AAEP event that an agent pushed | after what its record became |
//! | `epoch.position.n`, the id of an AEP frame and of older AAEP frames | after that event |
//! | `epoch.position.n.mark`, of older subscriptions | after that event, for the key that the mark is of |
//!
//! Ids that agents gave are theirs to choose: two agents can choose the same. A stream of one session goes on after
//! that session's event, every other stream after the newest one.
//!
//! An id that leads to no record of this journal is exhausted: it is another gateway's, its record was removed by
//! retention, or it is none. So is an id after which retention has removed records that the stream would have to send,
//! and an id within a turn of which retention has removed the beginning: the turn would go on under another name.

use std::sync::Arc;

use banister_events::event::Protocol;
use banister_events::id::{EventRef, derive};
use banister_journal::{Journal, Record};

use super::channel::Rendering;
use super::saved::SavedChannels;
use super::{EventCursor, Start};
use crate::reads::blocking;
use crate::{Error, Gateway};

/// Until event ids said which record they come from, they were digests. They are looked for among so many of the newest
/// records, and so many events of each.
const DIGESTS: (usize, u32) = (4_096, 32);
/// How many hex digits a digest has.
const DIGEST_CHARS: usize = 32;

/// What a subscriber wants to resume.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResumeRequest<'a> {
    /// The id of the last frame that it got.
    pub(crate) seen: &'a str,
    /// The protocol of the stream.
    pub(crate) protocol: Protocol,
    /// The session that the stream is of; none where it is of all.
    pub(crate) session: Option<&'a str>,
    /// What marks the cursors of the subscriber's key.
    pub(crate) mark: &'a str,
}

/// The cursor was given to another key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ForeignCursor;

impl Gateway {
    /// Where a stream goes on.
    pub(crate) async fn resume_start(
        &self,
        request: ResumeRequest<'_>,
    ) -> Result<Result<Start, ForeignCursor>, Error> {
        let ResumeRequest { seen, protocol, session, mark } = request;
        if let Some(cursor) = EventCursor::parse(seen, self.journal.epoch()) {
            return Ok(Ok(self.start_after(cursor, Start::After)));
        }
        if protocol != Protocol::Aaep {
            return Ok(Ok(Start::Exhausted));
        }
        let marked = seen.rsplit_once('.').unwrap_or_default();
        if let Some(cursor) = EventCursor::parse(marked.0, self.journal.epoch()) {
            if marked.1 != mark {
                return Ok(Err(ForeignCursor));
            }
            return Ok(Ok(self.start_after(cursor, Start::AfterSent)));
        }
        let (journal, seen) = (self.journal.clone(), seen.to_owned());
        let only = session.map(str::to_owned);
        let saved = self.saved(&Rendering::Activities);
        let found = blocking(move || find(&journal, &saved, &seen, only.as_deref())).await?;
        Ok(Ok(found.map_or(Start::Exhausted, Start::After)))
    }

    /// After a cursor, if everything after it is still there.
    fn start_after(&self, cursor: EventCursor, start: fn(EventCursor) -> Start) -> Start {
        let known = self.journal.pruned()..=self.journal.head();
        if known.contains(&cursor.position) { start(cursor) } else { Start::Exhausted }
    }
}

/// The event that bears an id, if everything after it is still there. Blocks on the disk.
fn find(
    journal: &Journal,
    saved: &SavedChannels,
    id: &str,
    only: Option<&str>,
) -> Result<Option<EventCursor>, banister_journal::Error> {
    let found = match written(journal, id)? {
        Some(found) => Some(found),
        None => match digested(journal, id, only)? {
            Some(found) => Some(found),
            None => pushed(journal, id, only)?,
        },
    };
    let Some((record, n)) = found else { return Ok(None) };
    // Retention removes the beginning of a session: where one of its records is left, all later ones are.
    let all_left = record.position >= journal.pruned() || only == Some(record.session.as_str());
    let goes_on = all_left && !is_in_a_cut_turn(journal, saved, &record)?;
    Ok(goes_on.then_some(EventCursor { position: record.position, n }))
}

/// Whether the beginning of the turn that was open before or after a record may have been removed.
fn is_in_a_cut_turn(
    journal: &Journal,
    saved: &SavedChannels,
    record: &Record,
) -> Result<bool, banister_journal::Error> {
    let first = journal.session(&record.session, 0, 1)?.pop().map_or(0, |first| first.seq);
    if first <= 1 {
        return Ok(false);
    }
    for seq in [record.seq.saturating_sub(1), record.seq] {
        if saved.turn_at(&record.session, seq)?.is_some_and(|turn| turn.from <= first) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The record of an event that this gateway wrote, and the event's number.
fn written(
    journal: &Journal,
    id: &str,
) -> Result<Option<(Arc<Record>, u32)>, banister_journal::Error> {
    let Some(event) = EventRef::parse(id) else { return Ok(None) };
    let before = event.seq.saturating_sub(1);
    let record = journal.session(&event.session(), before, 1)?.pop();
    // Another gateway's record of the same session and number has another time.
    let record = record.filter(|record| record.seq == event.seq && event.is_of(record.time));
    Ok(record.map(|record| (record, event.n)))
}

/// The same, by an id of the version before.
fn digested(
    journal: &Journal,
    id: &str,
    only: Option<&str>,
) -> Result<Option<(Arc<Record>, u32)>, banister_journal::Error> {
    let is_digest = |digits: &str| digits.len() == DIGEST_CHARS;
    if !id.strip_prefix("evt_").is_some_and(is_digest) {
        return Ok(None);
    }
    let newest = match only {
        Some(session) => {
            let head = journal.seq_at(session, u64::MAX)?;
            journal.session(session, head.saturating_sub(DIGESTS.0 as u64), DIGESTS.0)?
        }
        None => journal.after(journal.head().saturating_sub(DIGESTS.0 as u64), DIGESTS.0)?,
    };
    for record in newest.into_iter().rev() {
        let seq = record.seq.to_string();
        let is_of =
            |n: &u32| derive("evt_", &["aaep", &record.session, &seq, &n.to_string()]) == id;
        if let Some(n) = (0..DIGESTS.1).find(is_of) {
            return Ok(Some((record, n)));
        }
    }
    Ok(None)
}

/// The record of an event that an agent pushed under this id; all of what it became was seen.
fn pushed(
    journal: &Journal,
    id: &str,
    only: Option<&str>,
) -> Result<Option<(Arc<Record>, u32)>, banister_journal::Error> {
    let mut records = journal.of_event(id)?;
    records.retain(|record| {
        record.source.protocol == Protocol::Aaep.name()
            && only.is_none_or(|session| record.session == session)
    });
    let newest = records.into_iter().max_by_key(|record| record.position);
    Ok(newest.map(|record| (record, u32::MAX)))
}

#[cfg(test)]
#[path = "resume_tests.rs"]
mod tests;
