//! The task that keeps a feed going, for as long as somebody follows it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use banister_events::event::Protocol;
use banister_events::frame::sse;
use bytes::Bytes;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::super::channel::{Projected, Rendering};
use super::super::channels::Channels;
use super::super::cursor::EventCursor;
use super::super::saved::SavedChannels;
use super::{FeedBlock, FeedKey, LiveFeed, LiveFeeds, Ring};
use crate::{Error, Gateway};

/// What all feeds together keep at hand, in bytes; little in tests, so that somebody falls behind.
const AT_HAND_BYTES: usize = if cfg!(test) { 64 * 1024 } else { 16 * 1024 * 1024 };
/// From this size on a block is handed out.
const BLOCK_BYTES: usize = if cfg!(test) { 8 * 1024 } else { 64 * 1024 };
/// How long is gathered for each follower, so that what comes close together is one write to each; and at most.
const GATHERED: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(20));
/// What an activity takes in memory beyond what it says, about.
const ACTIVITY_BYTES: usize = 512;

impl Gateway {
    /// The feed of those who want to hear the same; it is begun where there is none.
    pub(crate) fn feed(self: &Arc<Self>, key: &FeedKey) -> Arc<LiveFeed> {
        let mut feeds = self.feeds.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = feeds.get(key).and_then(Weak::upgrade)
            && !feed.ring().failed
        {
            return feed;
        }
        feeds.retain(|_, feed| feed.strong_count() > 0);
        let ends = CancellationToken::new();
        let bell = self.hub.bell();
        let head = *bell.borrow();
        let ring = Ring { blocks: VecDeque::new(), bytes: 0, head, failed: false };
        let feed = Arc::new(LiveFeed {
            ring: Mutex::new(ring),
            bell: watch::Sender::new(head),
            _ends: ends.clone().drop_guard(),
        });
        feeds.insert(key.clone(), Arc::downgrade(&feed));
        let task = FeedTask {
            gateway: Arc::clone(self),
            channels: Channels::new(self.saved(&key.rendering)),
            key: key.clone(),
            position: head,
            feed: Arc::downgrade(&feed),
        };
        self.tasks.spawn(async move {
            tokio::select! {
                () = ends.cancelled() => {}
                () = task.run(bell) => {}
            }
        });
        feed
    }

    /// The saved channels of a rendering.
    pub(crate) fn saved(&self, rendering: &Rendering) -> Arc<SavedChannels> {
        let mut all = self.feeds.saved.lock().unwrap_or_else(PoisonError::into_inner);
        let saved = all.entry(rendering.clone()).or_insert_with(|| {
            let (journal, agents) = (self.journal.clone(), Arc::clone(&self.agents));
            Arc::new(SavedChannels::new(journal, agents, rendering.clone()))
        });
        Arc::clone(saved)
    }
}

struct FeedTask {
    gateway: Arc<Gateway>,
    channels: Channels,
    key: FeedKey,
    /// Everything up to here was handed out.
    position: u64,
    feed: Weak<LiveFeed>,
}

impl FeedTask {
    async fn run(mut self, mut bell: watch::Receiver<u64>) {
        loop {
            let published = *bell.borrow_and_update();
            while self.position < published {
                if let Err(error) = self.hand_out_until(published).await {
                    tracing::error!(%error, "The live end could not be handed out.");
                    if let Some(feed) = self.feed.upgrade() {
                        feed.fail();
                    }
                    return;
                }
            }
            if bell.changed().await.is_err() {
                return;
            }
            // To write to many takes longer than this; to a few it is not worth the wait.
            let gather = self.gather();
            if gather >= Duration::from_millis(1) {
                tokio::time::sleep(gather).await;
            }
        }
    }

    fn gather(&self) -> Duration {
        let followers = self.feed.upgrade().map_or(0, |feed| feed.bell.receiver_count());
        let (each, most) = GATHERED;
        each.saturating_mul(u32::try_from(followers).unwrap_or(u32::MAX)).min(most)
    }

    async fn hand_out_until(&mut self, published: u64) -> Result<(), Error> {
        let mut batch = self.gateway.after(self.position).await?;
        batch.retain(|record| record.position <= published);
        let mut made = BlockBuilder::new(self.position);
        let only = self.key.session.as_deref();
        for record in &batch {
            made.block.upto = record.position;
            if only.is_some_and(|only| only != record.session) {
                continue;
            }
            let parsed = self.gateway.hub.message(record.position);
            let projected = self.channels.next_parsed(record, parsed.as_ref()).await?;
            match &self.key.rendering {
                Rendering::Events { protocol, .. } => {
                    let epoch = self.gateway.journal.epoch();
                    made.frames(epoch, *protocol, record.position, &projected.events);
                }
                Rendering::Activities => {
                    made.activities(record.position, record.body.len(), projected);
                }
            }
            if made.is_large() {
                self.position = record.position;
                self.hand_out(std::mem::replace(&mut made, BlockBuilder::new(record.position)));
            }
        }
        // Positions that retention has removed are passed over.
        self.position = batch.last().map_or(published, |newest| newest.position);
        made.block.upto = self.position;
        self.hand_out(made);
        Ok(())
    }

    fn hand_out(&self, made: BlockBuilder) {
        let block = made.done();
        if block.upto > block.after
            && let Some(feed) = self.feed.upgrade()
        {
            feed.push(block, AT_HAND_BYTES / self.gateway.feeds.count().max(1));
        }
    }
}

impl LiveFeeds {
    /// How many there are, about.
    fn count(&self) -> usize {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// A block on its way.
#[derive(Default)]
pub(super) struct BlockBuilder {
    block: FeedBlock,
    bytes: Vec<u8>,
}

impl BlockBuilder {
    pub(super) fn new(after: u64) -> Self {
        Self { block: FeedBlock { after, upto: after, ..FeedBlock::default() }, bytes: Vec::new() }
    }

    pub(super) fn frames(&mut self, epoch: &str, protocol: Protocol, at: u64, events: &[Value]) {
        for (n, event) in (0..).zip(events) {
            let cursor = EventCursor { position: at, n };
            self.block.frames.push((cursor, self.bytes.len()));
            frame(&mut self.bytes, epoch, protocol, cursor, event);
        }
    }

    fn activities(&mut self, position: u64, bytes: usize, projected: Projected) {
        self.block.size += bytes + ACTIVITY_BYTES * projected.activities.len();
        self.block.activities.push((position, projected.activities));
    }

    fn is_large(&self) -> bool {
        self.bytes.len() + self.block.size >= BLOCK_BYTES
    }

    fn done(mut self) -> FeedBlock {
        self.block.size +=
            self.bytes.len() + self.block.frames.len() * size_of::<(EventCursor, usize)>();
        self.bytes.shrink_to_fit();
        FeedBlock { bytes: Bytes::from(self.bytes), ..self.block }
    }
}

/// Writes one event as it stands on the wire.
pub(crate) fn frame(
    frames: &mut Vec<u8>,
    epoch: &str,
    protocol: Protocol,
    cursor: EventCursor,
    event: &Value,
) {
    let data = event.to_string();
    if protocol == Protocol::Aaep {
        aaep_frame(frames, event, &data);
    } else {
        let id = cursor.written(epoch);
        sse::write(frames, &sse::Outgoing { id: Some(&id), event: None, data: &data });
    }
}

/// Writes one AAEP event as it stands on the wire. The frame's id is the event's own.
pub(crate) fn aaep_frame(frames: &mut Vec<u8>, event: &Value, data: &str) {
    let id = event.get("event_id").and_then(Value::as_str);
    sse::write(frames, &sse::Outgoing { id, event: Some("aaep.event"), data });
}
