//! One session on its way to those who watch: its projection, and the writer of what they are told.
//!
//! What a channel knows follows from the records it has seen, so it can be thrown away at any time and made again.

use std::collections::HashMap;
use std::sync::Arc;

use banister_events::activity::Activity;
use banister_events::event::Protocol;
use banister_events::{Message, Writer, WrittenEvent, aaep};
use banister_journal::Record;
use serde_json::Value;

use super::blocking;
use super::saved::Saved;
use crate::Error;
use crate::project::Projection;

/// How many sessions are kept at hand by each that follows all of them.
const CHANNELS: usize = 1_024;

/// In which protocol, and in which language, something is told.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Voice {
    pub(crate) protocol: Protocol,
    pub(crate) language: String,
}

/// What a record became.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) activities: Vec<Activity>,
    pub(crate) events: Vec<Value>,
}

/// One session.
#[derive(Debug, Clone)]
pub(crate) struct Channel {
    projection: Projection,
    writer: Writer,
    /// The record with which the turn began that is open.
    began: Option<u64>,
}

impl Channel {
    /// A channel that has seen nothing yet.
    pub(crate) fn new(projection: Projection, voice: &Voice) -> Self {
        // A thread of AG-UI has a writer of its own: nobody follows all sessions in it.
        let protocol = match voice.protocol {
            Protocol::Agui => Protocol::Aaep,
            other => other,
        };
        let writer = Writer::for_protocol(protocol, aaep::voice::Voice::live(&voice.language), "");
        Self { projection, writer, began: None }
    }

    /// What the session's next record becomes.
    pub(crate) fn next(&mut self, record: &Record, parsed: Option<&Message>) -> Told {
        let activities = self.projection.next_parsed(record, parsed);
        let events: Vec<Value> = activities
            .iter()
            .flat_map(|activity| self.writer.write(activity))
            .map(WrittenEvent::into_value)
            .collect();
        if !self.writer.is_open() {
            self.began = None;
        } else if self.began.is_none() || events.iter().any(is_start) {
            self.began = Some(record.seq);
        }
        Told { activities, events }
    }

    /// The record with which the turn began that is open.
    pub(crate) fn began(&self) -> Option<u64> {
        self.began
    }
}

/// Whether a turn begins with it.
pub(crate) fn is_start(event: &Value) -> bool {
    let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
    matches!(kind, "aaep:agent.session.started" | "prompt.submitted" | "agent.start")
}

/// The sessions that somebody follows. Those that were silent for long are let go.
#[derive(Debug)]
pub(crate) struct Channels {
    saved: Arc<Saved>,
    open: HashMap<String, Open>,
    taken: u64,
}

#[derive(Debug)]
struct Open {
    channel: Channel,
    seq: u64,
    /// When it was last needed.
    used: u64,
}

impl Channels {
    pub(crate) fn new(saved: Arc<Saved>) -> Self {
        Self { saved, open: HashMap::new(), taken: 0 }
    }

    /// What a record becomes. The records of a session come in their order; where it begins in the middle, what was
    /// before is read first.
    pub(crate) async fn next(&mut self, record: &Record) -> Result<Told, Error> {
        self.next_parsed(record, None).await
    }

    /// The same, with the message that the record holds, where it is at hand.
    pub(crate) async fn next_parsed(
        &mut self,
        record: &Record,
        parsed: Option<&Message>,
    ) -> Result<Told, Error> {
        self.taken += 1;
        let before = record.seq.saturating_sub(1);
        if self.open.get(&record.session).is_none_or(|open| open.seq != before) {
            self.make_room();
            let channel = self.channel(&record.session, before).await?;
            self.open.insert(record.session.clone(), Open { channel, seq: before, used: 0 });
        }
        let Some(open) = self.open.get_mut(&record.session) else {
            return Ok(Told { activities: Vec::new(), events: Vec::new() });
        };
        (open.seq, open.used) = (record.seq, self.taken);
        let told = open.channel.next(record, parsed);
        self.saved.offer(&record.session, record.seq, &open.channel);
        Ok(told)
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
