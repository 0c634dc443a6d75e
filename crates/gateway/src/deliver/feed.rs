//! The live end, written once for all followers on equal terms: they share one projection.
//!
//! A feed is one task that projects each record, writes it and puts it into bytes, for as long as somebody follows. Its
//! followers take the same bytes, at their own pace. Whoever falls behind what is at hand reads the journal by itself
//! until it has caught up; nobody waits for anybody.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use banister_events::activity::Activity;
use bytes::Bytes;
use tokio::sync::watch;
use tokio_util::sync::DropGuard;

use super::channel::Rendering;
use super::cursor::EventCursor;
use super::saved::SavedChannels;

pub(crate) mod task;

/// How many blocks one feed keeps.
const BLOCKS: usize = 4_096;
/// How many blocks are taken at once.
const TAKEN: usize = 64;

/// Which followers a feed is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FeedKey {
    /// Activities, for those who shape them, or server-sent events.
    pub(crate) rendering: Rendering,
    /// Only this session.
    pub(crate) session: Option<String>,
}

/// The feeds that somebody follows, and the saved channels of every rendering.
#[derive(Debug, Default)]
pub(crate) struct LiveFeeds {
    feeds: Mutex<HashMap<FeedKey, Weak<LiveFeed>>>,
    saved: Mutex<HashMap<Rendering, Arc<SavedChannels>>>,
}

/// The live end for one kind of followers.
#[derive(Debug)]
pub(crate) struct LiveFeed {
    ring: Mutex<Ring>,
    bell: watch::Sender<u64>,
    /// Ends the task when the last follower is gone.
    _ends: DropGuard,
}

#[derive(Debug)]
struct Ring {
    blocks: VecDeque<Arc<FeedBlock>>,
    bytes: usize,
    /// Everything up to here was handed out.
    head: u64,
    failed: bool,
}

/// What some records that follow one another became.
#[derive(Debug, Default)]
pub(crate) struct FeedBlock {
    /// The position before the first of them.
    after: u64,
    /// The position of the last of them.
    pub(crate) upto: u64,
    bytes: Bytes,
    /// Where in the bytes each event begins.
    frames: Vec<(EventCursor, usize)>,
    /// Position of the record → its activities, where that is what is handed out.
    pub(crate) activities: Vec<(u64, Vec<Activity>)>,
    size: usize,
}

/// What a follower finds.
#[derive(Debug)]
pub(crate) enum FeedNext {
    /// This comes next.
    Blocks(Vec<Arc<FeedBlock>>),
    /// Nothing yet.
    Wait,
    /// What comes next is not at hand any more.
    Behind,
    /// The feed could not go on.
    Failed,
}

impl FeedBlock {
    /// The frames after a cursor.
    pub(crate) fn after(&self, seen: EventCursor) -> Bytes {
        if EventCursor::whole(self.after) >= seen {
            return self.bytes.clone();
        }
        let first = self.frames.partition_point(|(cursor, _)| *cursor <= seen);
        let begin = self.frames.get(first).map_or(self.bytes.len(), |(_, begin)| *begin);
        self.bytes.slice(begin..)
    }
}

impl LiveFeed {
    /// What comes after a cursor.
    pub(crate) fn next(&self, seen: EventCursor) -> FeedNext {
        let ring = self.ring();
        if ring.failed {
            return FeedNext::Failed;
        }
        let from = seen.before_unseen();
        if from >= ring.head {
            return FeedNext::Wait;
        }
        let first = ring.blocks.partition_point(|block| block.upto <= from);
        match ring.blocks.get(first) {
            Some(block) if block.after <= from => {
                FeedNext::Blocks(ring.blocks.iter().skip(first).take(TAKEN).cloned().collect())
            }
            _ => FeedNext::Behind,
        }
    }

    /// Everything up to here was handed out.
    pub(crate) fn head(&self) -> u64 {
        self.ring().head
    }

    /// A bell that rings when something was handed out.
    pub(crate) fn bell(&self) -> watch::Receiver<u64> {
        self.bell.subscribe()
    }

    fn push(&self, block: FeedBlock, most: usize) {
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
