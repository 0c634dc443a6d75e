//! The channels of the sessions that somebody follows.

use std::collections::HashMap;
use std::sync::Arc;

use banister_events::Message;
use banister_journal::Record;

use super::channel::{Channel, Projected};
use super::saved::SavedChannels;
use crate::Error;
use crate::reads::blocking;

/// How many sessions are kept at hand by each that follows all of them.
const CHANNELS: usize = 1_024;

/// The sessions that somebody follows. Those that were silent for long are let go.
#[derive(Debug)]
pub(crate) struct Channels {
    saved: Arc<SavedChannels>,
    open: HashMap<String, OpenChannel>,
    taken: u64,
}

#[derive(Debug)]
struct OpenChannel {
    channel: Channel,
    seq: u64,
    /// When it was last needed.
    used: u64,
}

impl Channels {
    pub(crate) fn new(saved: Arc<SavedChannels>) -> Self {
        Self { saved, open: HashMap::new(), taken: 0 }
    }

    /// What a record becomes. The records of a session come in their order; where it begins in the middle, what was
    /// before is read first.
    pub(crate) async fn next(&mut self, record: &Record) -> Result<Projected, Error> {
        self.next_parsed(record, None).await
    }

    /// The same, with the message that the record holds, where it is at hand.
    pub(crate) async fn next_parsed(
        &mut self,
        record: &Record,
        parsed: Option<&Message>,
    ) -> Result<Projected, Error> {
        self.taken += 1;
        let before = record.seq.saturating_sub(1);
        if self.open.get(&record.session).is_none_or(|open| open.seq != before) {
            self.make_room();
            let channel = self.channel(&record.session, before).await?;
            self.open.insert(record.session.clone(), OpenChannel { channel, seq: before, used: 0 });
        }
        let Some(open) = self.open.get_mut(&record.session) else {
            return Ok(Projected::default());
        };
        (open.seq, open.used) = (record.seq, self.taken);
        let projected = open.channel.next(record, parsed);
        self.saved.offer(&record.session, record.seq, &open.channel);
        Ok(projected)
    }

    async fn channel(&self, session: &str, seq: u64) -> Result<Channel, Error> {
        if seq == 0 {
            return Ok(self.saved.fresh());
        }
        let (saved, session) = (Arc::clone(&self.saved), session.to_owned());
        blocking(move || saved.at(&session, seq)).await
    }

    /// Lets half of the sessions go, those that were silent for longest.
    fn make_room(&mut self) {
        if self.open.len() < CHANNELS {
            return;
        }
        let mut used: Vec<u64> = self.open.values().map(|open| open.used).collect();
        let (_, median, _) = used.select_nth_unstable(CHANNELS / 2);
        let median = *median;
        let saved = &self.saved;
        self.open.retain(|session, open| {
            let stays = open.used > median;
            if !stays {
                saved.keep(session, open.seq, open.channel.clone());
            }
            stays
        });
    }
}
