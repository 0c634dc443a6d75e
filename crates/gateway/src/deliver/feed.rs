//! The live end, told once for all who want to hear the same: equal terms share one projection.
//!
//! A feed is one task that projects each record, writes it and puts it into bytes, for as long as somebody follows. Its
//! followers take the same bytes, at their own pace. Whoever falls behind what is at hand reads the journal by itself
//! until it has caught up; nobody waits for anybody.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use banister_events::activity::Activity;
use banister_events::event::Protocol;
use banister_events::frame::sse;
use bytes::Bytes;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Cursor;
use super::channel::{Channels, Told, Voice};
use super::saved::Saved;
use crate::{Error, Gateway};

/// What all feeds together keep at hand, in bytes; little in tests, so that somebody falls behind.
const AT_HAND_BYTES: usize = if cfg!(test) { 64 * 1024 } else { 16 * 1024 * 1024 };
/// How many blocks one feed keeps.
const BLOCKS: usize = 4_096;
/// From this size on a block is handed out.
const BLOCK_BYTES: usize = if cfg!(test) { 8 * 1024 } else { 64 * 1024 };
/// How many blocks are taken at once.
const TAKEN: usize = 64;
/// How long is gathered for each follower, so that what comes close together is one write to each; and at most.
const GATHERED: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(20));
/// What an activity takes in memory beyond what it says, about.
const ACTIVITY_BYTES: usize = 512;

/// What a feed tells.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) voice: Voice,
    /// Only this session.
    pub(crate) session: Option<String>,
    pub(crate) form: Form,
}

/// What a feed hands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Form {
    /// Server-sent events.
    Frames,
    /// Activities, for those who shape them.
    Activities,
}

/// The feeds that somebody follows, and the saved writers of every voice.
#[derive(Debug, Default)]
pub(crate) struct Feeds {
    feeds: Mutex<HashMap<Key, Weak<Feed>>>,
    saved: Mutex<HashMap<Voice, Arc<Saved>>>,
}

/// The live end for one kind of followers.
#[derive(Debug)]
pub(crate) struct Feed {
    ring: Mutex<Ring>,
    bell: watch::Sender<u64>,
    /// Ends the task when the last follower is gone.
    _ends: DropGuard,
}

#[derive(Debug)]
struct Ring {
    blocks: VecDeque<Arc<Block>>,
    bytes: usize,
    /// Everything up to here was told.
    head: u64,
    failed: bool,
}

/// What some records that follow one another became.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// The position before the first of them.
    after: u64,
    /// The position of the last of them.
    pub(crate) upto: u64,
    bytes: Bytes,
    /// Where in the bytes each event begins.
    frames: Vec<(Cursor, usize)>,
    /// Position of the record → its activities, where that is what is handed out.
    pub(crate) told: Vec<(u64, Vec<Activity>)>,
    size: usize,
}

/// What a follower finds.
#[derive(Debug)]
pub(crate) enum Next {
    /// This comes next.
    Blocks(Vec<Arc<Block>>),
    /// Nothing yet.
    Wait,
    /// What comes next is not at hand any more.
    Behind,
    /// The feed could not go on.
    Failed,
}

impl Block {
    /// The frames after a cursor.
    pub(crate) fn after(&self, seen: Cursor) -> Bytes {
        if Cursor::whole(self.after) >= seen {
            return self.bytes.clone();
        }
        let first = self.frames.partition_point(|(cursor, _)| *cursor <= seen);
        let begin = self.frames.get(first).map_or(self.bytes.len(), |(_, begin)| *begin);
        self.bytes.slice(begin..)
    }
}

impl Feed {
    /// What comes after a cursor.
    pub(crate) fn next(&self, seen: Cursor) -> Next {
        let ring = self.ring();
        if ring.failed {
            return Next::Failed;
        }
        let from = seen.before_unseen();
        if from >= ring.head {
            return Next::Wait;
        }
        let first = ring.blocks.partition_point(|block| block.upto <= from);
        match ring.blocks.get(first) {
            Some(block) if block.after <= from => {
                Next::Blocks(ring.blocks.iter().skip(first).take(TAKEN).cloned().collect())
            }
            _ => Next::Behind,
        }
    }

    /// Everything up to here was told.
    pub(crate) fn head(&self) -> u64 {
        self.ring().head
    }

    /// A bell that rings when something was told.
    pub(crate) fn bell(&self) -> watch::Receiver<u64> {
        self.bell.subscribe()
    }

    fn push(&self, block: Block, most: usize) {
        let head = block.upto;
        {
            let mut ring = self.ring();
            ring.head = head;
            ring.bytes += block.size;
            ring.blocks.push_back(Arc::new(block));
            while ring.bytes > most || ring.blocks.len() > BLOCKS {
                let Some(oldest) = ring.blocks.pop_front() else { break };
                ring.bytes -= oldest.size;
            }
        }
        self.bell.send_replace(head);
    }

    fn fail(&self) {
        self.ring().failed = true;
        self.bell.send_modify(|_| {});
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gateway {
    /// The feed of those who want to hear the same; it is begun where there is none.
    pub(crate) fn feed(self: &Arc<Self>, key: &Key) -> Arc<Feed> {
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
        let feed = Arc::new(Feed {
            ring: Mutex::new(ring),
            bell: watch::Sender::new(head),
            _ends: ends.clone().drop_guard(),
        });
        feeds.insert(key.clone(), Arc::downgrade(&feed));
        let task = Task {
            gateway: Arc::clone(self),
            channels: Channels::new(self.saved(&key.voice)),
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

    /// The saved writers of a voice.
    pub(crate) fn saved(&self, voice: &Voice) -> Arc<Saved> {
        let mut all = self.feeds.saved.lock().unwrap_or_else(PoisonError::into_inner);
        let saved = all.entry(voice.clone()).or_insert_with(|| {
            Arc::new(Saved::new(self.journal.clone(), Arc::clone(&self.agents), voice.clone()))
        });
        Arc::clone(saved)
    }
}

struct Task {
    gateway: Arc<Gateway>,
    channels: Channels,
    key: Key,
    /// Everything up to here was told.
    position: u64,
    feed: Weak<Feed>,
}

impl Task {
    async fn run(mut self, mut bell: watch::Receiver<u64>) {
        loop {
            let published = *bell.borrow_and_update();
            while self.position < published {
                if let Err(error) = self.tell(published).await {
                    tracing::error!(%error, "The live end could not be told.");
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

    async fn tell(&mut self, published: u64) -> Result<(), Error> {
        let mut batch = self.gateway.after(self.position).await?;
        batch.retain(|record| record.position <= published);
        let mut made = Making::new(self.position);
        let only = self.key.session.as_deref();
        for record in &batch {
            made.block.upto = record.position;
            if only.is_some_and(|only| only != record.session) {
                continue;
            }
            let parsed = self.gateway.hub.message(record.position);
            let told = self.channels.next_parsed(record, parsed.as_ref()).await?;
            match self.key.form {
                Form::Frames => {
                    let (epoch, protocol) = (self.gateway.journal.epoch(), self.key.voice.protocol);
                    made.frames(epoch, protocol, record.position, &told.events);
                }
                Form::Activities => made.activities(record.position, record.body.len(), told),
            }
            if made.is_large() {
                self.position = record.position;
                self.hand_out(std::mem::replace(&mut made, Making::new(record.position)));
            }
        }
        // Positions that retention has removed are passed over.
        self.position = batch.last().map_or(published, |newest| newest.position);
        made.block.upto = self.position;
        self.hand_out(made);
        Ok(())
    }

    fn hand_out(&self, made: Making) {
        let block = made.done();
        if block.upto > block.after
            && let Some(feed) = self.feed.upgrade()
        {
            feed.push(block, AT_HAND_BYTES / self.gateway.feeds.count().max(1));
        }
    }
}

impl Feeds {
    /// How many there are, about.
    fn count(&self) -> usize {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// A block on its way.
#[derive(Default)]
pub(super) struct Making {
    block: Block,
    bytes: Vec<u8>,
}

impl Making {
    pub(super) fn new(after: u64) -> Self {
        Self { block: Block { after, upto: after, ..Block::default() }, bytes: Vec::new() }
    }

    pub(super) fn frames(&mut self, epoch: &str, protocol: Protocol, at: u64, events: &[Value]) {
        for (n, event) in (0..).zip(events) {
            let cursor = Cursor { position: at, n };
            self.block.frames.push((cursor, self.bytes.len()));
            frame(&mut self.bytes, epoch, protocol, cursor, event);
        }
    }

    fn activities(&mut self, position: u64, bytes: usize, told: Told) {
        self.block.size += bytes + ACTIVITY_BYTES * told.activities.len();
        self.block.told.push((position, told.activities));
    }

    fn is_large(&self) -> bool {
        self.bytes.len() + self.block.size >= BLOCK_BYTES
    }

    fn done(mut self) -> Block {
        self.block.size +=
            self.bytes.len() + self.block.frames.len() * size_of::<(Cursor, usize)>();
        self.bytes.shrink_to_fit();
        Block { bytes: Bytes::from(self.bytes), ..self.block }
    }
}

/// Writes one event as it stands on the wire.
pub(super) fn frame(
    frames: &mut Vec<u8>,
    epoch: &str,
    protocol: Protocol,
    cursor: Cursor,
    event: &Value,
) {
    let id = format!("{epoch}.{}.{}", cursor.position, cursor.n);
    let name = (protocol == Protocol::Aaep).then_some("aaep.event");
    let data = event.to_string();
    sse::write(frames, &sse::Outgoing { id: Some(&id), event: name, data: &data });
}
