//! Activities become a subscriber's stream, at the subscriber's own pace.
//!
//! Followers on equal terms share one projection (`feed`). A slow subscriber falls behind on its own cursor and reads
//! from the journal; it never slows anybody else. Resuming, or joining late, costs what is sent and little more, however
//! long the journal is (`saved`).
//!
//! A subscriber resumes from the id of the last frame it got (`resume`). In AAEP that is the event's own id, which leads
//! back to its record. In AEP it is a cursor, `epoch.position.n`: the journal, the record, the event within the record.

use std::collections::HashSet;
use std::sync::Arc;

use banister_events::event::Protocol;
use banister_events::frame::sse;
use banister_journal::Record;
use bytes::Bytes;
use tokio::sync::mpsc;

use crate::reads::blocking;
use crate::{Error, Gateway};

pub(crate) mod channel;
pub(crate) mod channels;
pub(crate) mod cursor;
pub(crate) mod feed;
pub(crate) mod keep_alive;
mod outlet;
pub(crate) mod reading;
pub(crate) mod reconcile;
mod replay;
mod resume;
pub(crate) mod saved;

pub(crate) use channel::{Projected, Rendering};
pub(crate) use channels::Channels;
pub(crate) use cursor::{EventCursor, Start};
pub(crate) use feed::task::aaep_frame;
pub(crate) use feed::{FeedKey, FeedNext, LiveFeed};
pub(crate) use keep_alive::{KEEP_ALIVE, KeepAlive};
pub(crate) use outlet::Outlet;
use reading::BATCH;
pub(crate) use reading::Gone;
pub(crate) use replay::{CatchUp, Stretches};
pub(crate) use resume::{ForeignCursor, ResumeRequest};
pub(crate) use saved::{SavedChannels, Stretch};

/// What is sent at once when much is sent again, in bytes.
const CHUNK: usize = 64 * 1024;

/// What a subscriber asked for.
#[derive(Debug, Clone)]
pub struct FollowTerms {
    /// The protocol it speaks: AAEP or AEP. AG-UI is attached to, not followed.
    pub protocol: Protocol,
    /// Only this session.
    pub session: Option<String>,
    /// Where to begin.
    pub start: Start,
    /// The language it wants to be spoken to in.
    pub language: String,
}

impl Gateway {
    /// Streams AAEP or AEP events as SSE frames until the subscriber leaves.
    pub async fn follow(self: Arc<Self>, terms: FollowTerms, out: mpsc::Sender<Bytes>) {
        let _counted = self.hub.counted();
        let FollowTerms { protocol, session, start, language } = terms;
        let key = FeedKey { rendering: Rendering::Events { protocol, language }, session };
        let follower = StreamFollower {
            feed: self.feed(&key),
            saved: self.saved(&key.rendering),
            epoch: self.journal.epoch().to_owned(),
            session: key.session,
            gateway: self,
            protocol,
            out,
        };
        follower.run(start).await.unwrap_or(());
    }

    /// The records after a position: from the live end if it is near, else from the journal.
    pub(crate) async fn after(&self, position: u64) -> Result<Vec<Arc<Record>>, Error> {
        if let Some(records) = self.hub.after(position, BATCH) {
            return Ok(records);
        }
        let journal = self.journal.clone();
        blocking(move || journal.after(position, BATCH)).await
    }

    /// The records of one session after a number.
    pub(crate) async fn session_after(
        &self,
        session: &str,
        seq: u64,
    ) -> Result<Vec<Arc<Record>>, Error> {
        self.some_after(session, seq, BATCH).await
    }

    /// The same, at most so many.
    async fn some_after(
        &self,
        session: &str,
        seq: u64,
        limit: usize,
    ) -> Result<Vec<Arc<Record>>, Error> {
        let (journal, session) = (self.journal.clone(), session.to_owned());
        blocking(move || journal.session(&session, seq, limit)).await
    }

    /// The number of a session's last record up to a position.
    async fn seq_at(&self, session: &str, position: u64) -> Result<u64, Error> {
        let (journal, session) = (self.journal.clone(), session.to_owned());
        blocking(move || journal.seq_at(&session, position)).await
    }

    /// The turns that are open now, of all sessions or of one, and the position that this is true at.
    pub(crate) async fn open_turns(
        &self,
        saved: &Arc<SavedChannels>,
        session: Option<&str>,
    ) -> Result<(u64, Vec<Stretch>), Error> {
        let _turn = saved.looking.lock().await;
        let (hub, kept) = (self.hub.clone(), Arc::clone(saved));
        let (end, mut turns) = blocking(move || kept.open_turns(|| hub.head())).await?;
        turns.retain(|turn| session.is_none_or(|only| turn.session == only));
        Ok((end, turns))
    }
}

/// One stream to a subscriber without terms of its own.
struct StreamFollower {
    gateway: Arc<Gateway>,
    feed: Arc<LiveFeed>,
    saved: Arc<SavedChannels>,
    protocol: Protocol,
    session: Option<String>,
    epoch: String,
    out: mpsc::Sender<Bytes>,
}

impl StreamFollower {
    async fn run(self, start: Start) -> Result<(), Gone> {
        let only = self.session.as_deref();
        // Before the subscriber hears that it is connected: from then on it misses nothing.
        let turns = match start {
            Start::Now | Start::Exhausted => {
                Some(self.gateway.open_turns(&self.saved, only).await.map_err(unread)?)
            }
            Start::Beginning | Start::After(_) | Start::AfterSent(_) => None,
        };
        let mut hello = Vec::new();
        sse::comment(&mut hello, "connected");
        if start == Start::Exhausted {
            sse::comment(&mut hello, "replay-exhausted");
        }
        self.send(hello).await?;
        let seen = match (start, turns) {
            (Start::After(seen), _) => seen,
            // Which of the record's events were sent is not known here: all of them are.
            (Start::AfterSent(seen), _) => EventCursor::whole(seen.before_unseen()),
            (_, None) => EventCursor::whole(0),
            (_, Some((end, turns))) => {
                self.join(turns).await?;
                EventCursor::whole(end)
            }
        };
        self.go_on(seen).await
    }

    /// Sends the turns that are open, from their beginning.
    async fn join(&self, turns: Vec<Stretch>) -> Result<(), Gone> {
        let mut begins: HashSet<(String, u64)> =
            turns.iter().map(|turn| (turn.session.clone(), turn.from)).collect();
        let mut records = Stretches::new(&self.gateway, turns).await.map_err(unread)?;
        let mut channels = Channels::new(Arc::clone(&self.saved));
        let mut frames = Vec::new();
        while let Some(record) = records.next().await.map_err(unread)? {
            let projected = channels.next(&record).await.map_err(unread)?;
            let begins = begins.remove(&(record.session.clone(), record.seq));
            // The end of the turn before this one is left out.
            let start = projected.turn_start.filter(|_| begins).map_or(0, |start| start.event);
            for (n, event) in (0..).zip(&projected.events).skip(start) {
                let cursor = EventCursor { position: record.position, n };
                feed::task::frame(&mut frames, &self.epoch, self.protocol, cursor, event);
            }
            if frames.len() >= CHUNK {
                self.send(std::mem::take(&mut frames)).await?;
            }
        }
        self.send(frames).await
    }

    /// Sends everything after a cursor: from the feed, or from the journal until the feed is reached.
    async fn go_on(&self, mut seen: EventCursor) -> Result<(), Gone> {
        let mut bell = self.feed.bell();
        let mut keep_alive = KeepAlive::new(self.out.clone(), true, KEEP_ALIVE);
        let mut behind: Option<(CatchUp, Channels)> = None;
        loop {
            bell.mark_unchanged();
            match self.feed.next(seen) {
                FeedNext::Blocks(blocks) => {
                    behind = None;
                    for block in blocks {
                        let frames = block.after(seen);
                        seen = EventCursor::whole(block.upto);
                        if !frames.is_empty() {
                            keep_alive.renew();
                            self.out.send(frames).await.map_err(|_| Gone)?;
                        }
                    }
                }
                FeedNext::Behind => {
                    let (catch_up, channels) = behind.get_or_insert_with(|| {
                        let only = self.session.as_deref();
                        let channels = Channels::new(Arc::clone(&self.saved));
                        (CatchUp::after(&self.gateway, only, seen), channels)
                    });
                    let mut frames = Vec::new();
                    for record in catch_up.next(self.feed.head()).await.map_err(unread)? {
                        let projected = channels.next(&record).await.map_err(unread)?;
                        for (n, event) in (0..).zip(&projected.events) {
                            let cursor = EventCursor { position: record.position, n };
                            if cursor > seen {
                                feed::task::frame(
                                    &mut frames,
                                    &self.epoch,
                                    self.protocol,
                                    cursor,
                                    event,
                                );
                            }
                        }
                        if frames.len() >= CHUNK {
                            self.send(std::mem::take(&mut frames)).await?;
                        }
                    }
                    keep_alive.renew();
                    self.send(frames).await?;
                    seen = EventCursor::whole(catch_up.position());
                }
                FeedNext::Wait => keep_alive.wait(&mut bell).await?,
                FeedNext::Failed => return Err(Gone),
            }
        }
    }

    async fn send(&self, frames: Vec<u8>) -> Result<(), Gone> {
        if frames.is_empty() {
            return Ok(());
        }
        self.out.send(Bytes::from(frames)).await.map_err(|_| Gone)
    }
}

/// What cannot be read ends the stream; who follows comes back with its cursor.
#[expect(clippy::needless_pass_by_value, reason = "it stands where errors are mapped")]
pub(crate) fn unread(error: Error) -> Gone {
    tracing::error!(%error, "A subscriber's records could not be read.");
    Gone
}
