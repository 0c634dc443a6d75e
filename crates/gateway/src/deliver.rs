//! Activities become a subscriber's stream, at the subscriber's own pace.
//!
//! Those who want to hear the same share one projection (`feed`). A slow subscriber falls behind on its own cursor and
//! reads from the journal; it never slows anybody else. To come back or to join late costs what is told and little more,
//! however long the journal is (`saved`). A cursor on the wire is `epoch.position.n`: the journal it belongs to, the
//! record, the event within the record.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use banister_events::event::Protocol;
use banister_events::frame::sse;
use banister_journal::Record;
use bytes::Bytes;
use tokio::sync::{Semaphore, mpsc};

use crate::attach::Quiet;
use crate::{Error, Gateway};

mod channel;
mod feed;
mod replay;
mod saved;

pub(crate) use channel::{Channels, Voice};
pub(crate) use feed::{Feed, Feeds, Form, Key, Next};
pub(crate) use replay::{Rest, Stretches};
pub(crate) use saved::{Saved, Stretch};

/// How many records are read at a time.
const BATCH: usize = 256;
/// How many reads of the journal wait for the disk at once; each takes a thread.
const READS: usize = 16;
/// What is sent at once when much is told again, in bytes.
const CHUNK: usize = 64 * 1024;
/// How long a stream may be silent before it says that it is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Where a subscriber wants to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// With the first record there is.
    Beginning,
    /// With what is going on: open turns from their beginning, then what comes.
    Now,
    /// After the event it saw last.
    After(Cursor),
    /// After an event that is not known here any more: it is told so, and then as [`Start::Now`].
    Exhausted,
}

/// The place of one event: the record, and the event within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// The record's position in the journal.
    pub position: u64,
    /// The number of the event among those the record became.
    pub n: u32,
}

impl Cursor {
    /// All of a record.
    pub(crate) fn whole(position: u64) -> Self {
        Self { position, n: u32::MAX }
    }

    pub(crate) fn is_whole(self) -> bool {
        self.n == u32::MAX
    }

    /// The newest position up to which everything is covered.
    pub(crate) fn before_unseen(self) -> u64 {
        if self.is_whole() { self.position } else { self.position.saturating_sub(1) }
    }

    /// Parses `epoch.position.n`; `None` where it belongs to another journal or is none.
    pub fn parse(text: &str, epoch: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let fits = parts.next()? == epoch;
        let position = parts.next()?.parse().ok()?;
        let n = parts.next()?.parse().ok()?;
        (fits && parts.next().is_none()).then_some(Self { position, n })
    }
}

/// What a subscriber asked for.
#[derive(Debug, Clone)]
pub struct Terms {
    /// The protocol it speaks: AAEP or AEP. AG-UI is attached to, not followed.
    pub protocol: Protocol,
    /// Only this session.
    pub session: Option<String>,
    /// Where to begin.
    pub start: Start,
    /// The language it wants to be spoken to in.
    pub language: String,
}

/// The subscriber is gone.
#[derive(Debug)]
pub(crate) struct Gone;

impl Gateway {
    /// Streams AAEP or AEP events as SSE frames until the subscriber leaves.
    pub async fn follow(self: Arc<Self>, terms: Terms, out: mpsc::Sender<Bytes>) {
        let _counted = self.hub.counted();
        let Terms { protocol, session, start, language } = terms;
        let key = Key { voice: Voice { protocol, language }, session, form: Form::Frames };
        let follower = Follower {
            feed: self.feed(&key),
            saved: self.saved(&key.voice),
            epoch: self.journal.epoch().to_owned(),
            gateway: self,
            key,
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
        saved: &Arc<Saved>,
        session: Option<&str>,
    ) -> Result<(u64, Vec<Stretch>), Error> {
        let _turn = saved.looking.lock().await;
        let (hub, kept) = (self.hub.clone(), Arc::clone(saved));
        let (end, mut turns) = blocking(move || kept.open_turns(|| hub.head())).await?;
        turns.retain(|turn| session.is_none_or(|only| turn.session == only));
        Ok((end, turns))
    }
}

/// One who follows.
struct Follower {
    gateway: Arc<Gateway>,
    feed: Arc<Feed>,
    saved: Arc<Saved>,
    key: Key,
    epoch: String,
    out: mpsc::Sender<Bytes>,
}

impl Follower {
    async fn run(self, start: Start) -> Result<(), Gone> {
        let only = self.key.session.as_deref();
        // Before it is told that it is connected: from then on it misses nothing.
        let turns = match start {
            Start::Now | Start::Exhausted => {
                Some(self.gateway.open_turns(&self.saved, only).await.map_err(unread)?)
            }
            Start::Beginning | Start::After(_) => None,
        };
        let mut hello = Vec::new();
        sse::comment(&mut hello, "connected");
        if start == Start::Exhausted {
            sse::comment(&mut hello, "replay-exhausted");
        }
        self.send(hello).await?;
        let seen = match (start, turns) {
            (Start::After(seen), _) => seen,
            (_, None) => Cursor::whole(0),
            (_, Some((end, turns))) => {
                self.join(turns).await?;
                Cursor::whole(end)
            }
        };
        self.go_on(seen).await
    }

    /// Tells the turns that are open, from their beginning.
    async fn join(&self, turns: Vec<Stretch>) -> Result<(), Gone> {
        let mut begins: HashSet<(String, u64)> =
            turns.iter().map(|turn| (turn.session.clone(), turn.from)).collect();
        let mut records = Stretches::new(&self.gateway, turns).await.map_err(unread)?;
        let mut channels = Channels::new(Arc::clone(&self.saved));
        let mut frames = Vec::new();
        while let Some(record) = records.next().await.map_err(unread)? {
            let told = channels.next(&record).await.map_err(unread)?;
            let begins = begins.remove(&(record.session.clone(), record.seq));
            // A turn that began within this record does not carry the end of the one before it.
            let start = told.events.iter().rposition(channel::is_start).filter(|_| begins);
            for (n, event) in (0..).zip(&told.events).skip(start.unwrap_or_default()) {
                let cursor = Cursor { position: record.position, n };
                feed::frame(&mut frames, &self.epoch, self.key.voice.protocol, cursor, event);
            }
            if frames.len() >= CHUNK {
                self.send(std::mem::take(&mut frames)).await?;
            }
        }
        self.send(frames).await
    }

    /// Tells everything after a cursor: from the feed, or from the journal until the feed is reached.
    async fn go_on(&self, mut seen: Cursor) -> Result<(), Gone> {
        let mut bell = self.feed.bell();
        let mut quiet = Quiet::new(self.out.clone(), true, KEEP_ALIVE);
        let mut behind: Option<(Rest, Channels)> = None;
        loop {
            bell.mark_unchanged();
            match self.feed.next(seen) {
                Next::Blocks(blocks) => {
                    behind = None;
                    for block in blocks {
                        let frames = block.after(seen);
                        seen = Cursor::whole(block.upto);
                        if !frames.is_empty() {
                            quiet.renew();
                            self.out.send(frames).await.map_err(|_| Gone)?;
                        }
                    }
                }
                Next::Behind => {
                    let (rest, channels) = behind.get_or_insert_with(|| {
                        let only = self.key.session.as_deref();
                        let channels = Channels::new(Arc::clone(&self.saved));
                        (Rest::after(&self.gateway, only, seen), channels)
                    });
                    let mut frames = Vec::new();
                    for record in rest.next(self.feed.head()).await.map_err(unread)? {
                        let told = channels.next(&record).await.map_err(unread)?;
                        for (n, event) in (0..).zip(&told.events) {
                            let cursor = Cursor { position: record.position, n };
                            let protocol = self.key.voice.protocol;
                            if cursor > seen {
                                feed::frame(&mut frames, &self.epoch, protocol, cursor, event);
                            }
                        }
                        if frames.len() >= CHUNK {
                            self.send(std::mem::take(&mut frames)).await?;
                        }
                    }
                    quiet.renew();
                    self.send(frames).await?;
                    seen = Cursor::whole(rest.position());
                }
                Next::Wait => quiet.wait(&mut bell).await?,
                Next::Failed => return Err(Gone),
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

/// Runs a read of the journal where it may block.
pub(crate) async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, banister_journal::Error> + Send + 'static,
) -> Result<T, Error> {
    // As many as there are connections, and some that are about to: more would hold a thread and wait all the same.
    static TURNS: Semaphore = Semaphore::const_new(READS);
    #[cfg(test)]
    if crate::simulation::is_running() {
        return Ok(read()?);
    }
    let _turn = TURNS.acquire().await;
    match tokio::task::spawn_blocking(read).await {
        Ok(result) => Ok(result?),
        Err(error) => Err(Error::Task(error.to_string())),
    }
}
