//! One subscription's stream, in its own task: shaped to its terms, at its own pace. What it shapes was projected once,
//! for all of them.
//!
//! An event's id on the wire is `epoch.position.n.mark`: everything up to there was sent. While events are held back by
//! the rate the id does not move, so that a subscriber that comes back misses nothing; it may then hear something again,
//! under the same `event_id`. The mark says whose cursor it is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use banister_events::aaep::handshake::Capabilities;
use banister_events::aaep::shape::{Limits, Shaper, Terms};
use banister_events::activity::Activity;
use banister_events::event::Protocol;
use banister_events::frame::sse;
use bytes::Bytes;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};

use crate::deliver::{
    Channels, Cursor, Feed, Form, Gone, Key, Next as Fed, Rest, Saved, Start, Stretch, Stretches,
    Voice, blocking, unread,
};
use crate::{Error, Gateway};

/// How long a stream may be silent before it says that it is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// The longest sleep while something is held: a clock that is set is noticed by then.
const NAP: Duration = Duration::from_millis(250);

/// What a line is told to do.
#[derive(Debug)]
pub(crate) enum Order {
    /// Say this, ahead of everything that is held.
    Say(Value),
    /// Go on under other terms.
    Change {
        /// What changes.
        changed: Box<Capabilities>,
        /// What is served at most.
        limits: Limits,
        /// What is said first.
        answer: Value,
    },
    /// Another subscription takes this one's place. What was held is not sent any more.
    Replace {
        /// Its terms.
        terms: Box<Terms>,
        /// What is said first.
        answer: Value,
        /// Whether it is told what is going on.
        joins: bool,
    },
    /// Say this and end.
    Close(Value),
}

/// What goes out on a socket.
#[derive(Debug)]
pub(crate) enum Out {
    /// A message.
    Text(String),
    /// The end.
    Close(u16, &'static str),
}

/// Where a line leads.
#[derive(Debug)]
pub(crate) enum Sink {
    /// Server-sent events.
    Frames(mpsc::Sender<Bytes>),
    /// A socket. It has its own way of saying that it is still there.
    Socket(mpsc::Sender<Out>),
}

impl Sink {
    async fn event(&self, id: &str, event: &Value) -> Result<(), Gone> {
        self.put(Some(id), "aaep.event", event).await
    }

    async fn control(&self, message: &Value) -> Result<(), Gone> {
        self.put(None, "aaep.control", message).await
    }

    async fn put(&self, id: Option<&str>, name: &str, message: &Value) -> Result<(), Gone> {
        let data = message.to_string();
        match self {
            Self::Frames(out) => {
                let mut frame = Vec::new();
                sse::write(&mut frame, &sse::Outgoing { id, event: Some(name), data: &data });
                out.send(Bytes::from(frame)).await.map_err(|_| Gone)
            }
            Self::Socket(out) => out.send(Out::Text(data)).await.map_err(|_| Gone),
        }
    }

    async fn comment(&self, text: &str) -> Result<(), Gone> {
        let Self::Frames(out) = self else { return Ok(()) };
        let mut frame = Vec::new();
        sse::comment(&mut frame, text);
        out.send(Bytes::from(frame)).await.map_err(|_| Gone)
    }

    async fn end(&self) {
        if let Self::Socket(out) = self {
            let _last = out.send(Out::Close(4000, "the subscription is closed")).await;
        }
    }

    async fn closed(&self) {
        match self {
            Self::Frames(out) => out.closed().await,
            Self::Socket(out) => out.closed().await,
        }
    }
}

/// Where a line stands when it stops following the live end.
enum Next {
    End,
    /// Another subscriber is on it, and joins what is going on.
    Join,
}

/// One subscription's stream.
pub(crate) struct Line {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) terms: Terms,
    pub(crate) sink: Sink,
    /// Only this session.
    pub(crate) session: Option<String>,
    /// Where to begin; with what comes, where it is not said.
    pub(crate) start: Option<Start>,
    /// The end of its cursors.
    pub(crate) mark: String,
    /// What is said first.
    pub(crate) greeting: Option<Value>,
}

impl Line {
    /// Streams until the subscriber leaves, or its orders end.
    pub(crate) async fn run(self, mut orders: mpsc::Receiver<Order>) {
        let Self { gateway, terms, sink, session, mut start, mark, greeting } = self;
        if let Some(greeting) = greeting
            && sink.control(&greeting).await.is_err()
        {
            return;
        }
        let _counted = gateway.hub.counted();
        // What the turns are is the same in every voice.
        let voice = Voice { protocol: Protocol::Aaep, language: "en".to_owned() };
        let saved = gateway.saved(&voice);
        let key = Key { voice, session: session.clone(), form: Form::Activities };
        let mut stream = Stream {
            shaper: Shaper::new(terms),
            feed: gateway.feed(&key),
            gateway: Arc::clone(&gateway),
            sink,
            session,
            mark,
            saved,
            behind: None,
            position: 0,
            safe: Cursor { position: 0, n: 0 },
        };
        loop {
            match stream.from(start, gateway.hub.head(), &mut orders).await {
                Ok(Next::Join) => start = Some(Start::Now),
                Ok(Next::End) | Err(Gone) => return,
            }
        }
    }
}

struct Stream {
    gateway: Arc<Gateway>,
    shaper: Shaper,
    sink: Sink,
    session: Option<String>,
    mark: String,
    feed: Arc<Feed>,
    saved: Arc<Saved>,
    /// What it reads the journal with, while it is behind what the feed has at hand.
    behind: Option<(Rest, Channels)>,
    /// Everything up to here went through the shaper.
    position: u64,
    /// Everything up to here was sent.
    safe: Cursor,
}

impl Stream {
    async fn from(
        &mut self,
        start: Option<Start>,
        end: u64,
        orders: &mut mpsc::Receiver<Order>,
    ) -> Result<Next, Gone> {
        // Before it is told that it is connected: from then on it misses nothing.
        let turns = match start {
            Some(Start::Now | Start::Exhausted) => Some(self.open_turns().await?),
            Some(Start::After(seen)) if seen.position > end => Some(self.open_turns().await?),
            _ => None,
        };
        self.sink.comment("connected").await?;
        self.behind = None;
        self.position = end;
        self.safe = whole(end);
        match start {
            None => {}
            Some(Start::Beginning) => {
                self.position = 0;
                self.safe = whole(0);
            }
            Some(Start::After(seen)) if seen.position <= end => self.resume(seen).await?,
            Some(Start::Now) => self.join(turns).await?,
            // A cursor ahead of everything there is belongs to a journal that is lost.
            Some(Start::Exhausted | Start::After(_)) => {
                self.sink.comment("replay-exhausted").await?;
                self.join(turns).await?;
            }
        }
        self.live(self.feed.bell(), orders).await
    }

    async fn open_turns(&self) -> Result<(u64, Vec<Stretch>), Gone> {
        let only = self.session.as_deref();
        self.gateway.open_turns(&self.saved, only).await.map_err(unread)
    }

    /// Tells what is going on: open turns from their beginning.
    async fn join(&mut self, turns: Option<(u64, Vec<Stretch>)>) -> Result<(), Gone> {
        let (end, turns) = turns.unwrap_or((self.position, Vec::new()));
        let mut told = Retold::new(self, turns).await.map_err(unread)?;
        let mut first = true;
        while let Some((position, activities)) = told.next().await.map_err(unread)? {
            if std::mem::take(&mut first) {
                self.safe = whole(position.saturating_sub(1));
            }
            self.take(position, &activities).await?;
        }
        self.position = end;
        self.settle();
        Ok(())
    }

    /// Goes on after an event that was seen. What was seen passes through the shaper once more and is not sent.
    async fn resume(&mut self, seen: Cursor) -> Result<(), Gone> {
        let turns = self.turns(seen).await.map_err(unread)?;
        let mut told = Retold::new(self, turns).await.map_err(unread)?;
        let honoured = self.shaper.terms().honoured().clone();
        let limits = Limits { replies: true, ..Limits::default() };
        let unlimited = Capabilities { max_events_per_second: None, ..honoured.clone() };
        self.shaper = Shaper::new(Terms::negotiate(&unlimited, &limits).0);
        self.safe = seen;
        while let Some((position, activities)) = told.next().await.map_err(unread)? {
            let now = self.gateway.clock.now();
            let events: Vec<Value> =
                activities.iter().flat_map(|activity| self.shaper.take(activity, now)).collect();
            for (n, event) in (0..).zip(&events) {
                let cursor = Cursor { position, n };
                if cursor > seen {
                    self.safe = cursor;
                    self.sink.event(&self.id(), event).await?;
                }
            }
        }
        let _same = self.shaper.renegotiate(&honoured, &limits);
        self.position = seen.position;
        Ok(())
    }

    /// The turns that were open at a place, of sessions that anything may be told of from there on. A turn that ended
    /// within that very record is among them where some of its events may not have been seen.
    async fn turns(&self, seen: Cursor) -> Result<Vec<Stretch>, Error> {
        let only = self.session.as_deref();
        let (_, open) = self.gateway.open_turns(&self.saved, only).await?;
        let (journal, saved) = (self.gateway.journal.clone(), Arc::clone(&self.saved));
        let only = self.session.clone();
        blocking(move || {
            let mut turns: BTreeMap<String, Stretch> = BTreeMap::new();
            turns.extend(open.into_iter().map(|turn| (turn.session.clone(), turn)));
            // Of those that have gone on since, what was open then counts.
            for newest in journal.changed(seen.before_unseen())? {
                let session = newest.session;
                if only.as_ref().is_some_and(|only| *only != session) {
                    continue;
                }
                turns.remove(&session);
                let seq = journal.seq_at(&session, seen.position)?;
                let before = journal.seq_at(&session, seen.before_unseen())?;
                let turn = if seq > before {
                    let began = saved.turn_at(&session, before)?.map_or(seq, |turn| turn.from);
                    Some(Stretch { session: session.clone(), from: began, to: seq })
                } else {
                    saved.turn_at(&session, seq)?
                };
                turns.extend(turn.map(|turn| (session, turn)));
            }
            Ok(turns.into_values().collect())
        })
        .await
    }

    async fn live(
        &mut self,
        mut bell: watch::Receiver<u64>,
        orders: &mut mpsc::Receiver<Order>,
    ) -> Result<Next, Gone> {
        let mut quiet = Instant::now() + KEEP_ALIVE;
        loop {
            // Orders come before events: an answer must not wait behind what is held. What is published by now came
            // after the orders that are there by now.
            let published = *bell.borrow_and_update();
            match orders.try_recv() {
                Ok(order) => {
                    if let Some(next) = self.obey(order).await? {
                        return Ok(next);
                    }
                    continue;
                }
                Err(mpsc::error::TryRecvError::Disconnected) => return Ok(Next::End),
                Err(mpsc::error::TryRecvError::Empty) => {}
            }
            if published > self.position && self.hear(published, &mut quiet).await? {
                continue;
            }
            let nap = self.nap();
            tokio::select! {
                biased;
                order = orders.recv() => match order {
                    Some(order) => if let Some(next) = self.obey(order).await? {
                        return Ok(next);
                    },
                    None => return Ok(Next::End),
                },
                () = self.sink.closed() => return Err(Gone),
                rung = bell.changed() => if rung.is_err() { return Ok(Next::End) },
                () = sleep(nap.unwrap_or(NAP)), if nap.is_some() => {
                    if self.tick().await? {
                        quiet = Instant::now() + KEEP_ALIVE;
                    }
                }
                () = sleep_until(quiet) => {
                    self.sink.comment("still here").await?;
                    quiet = Instant::now() + KEEP_ALIVE;
                }
            }
        }
    }

    /// Takes what comes next and was told by then; says whether there was anything.
    async fn hear(&mut self, published: u64, quiet: &mut Instant) -> Result<bool, Gone> {
        let before = self.position;
        match self.feed.next(whole(self.position)) {
            Fed::Blocks(blocks) => {
                self.behind = None;
                for block in blocks.iter().filter(|block| block.upto <= published) {
                    let news = block.told.iter().filter(|(position, _)| *position > before);
                    for (position, activities) in news {
                        if self.take(*position, activities).await? {
                            *quiet = Instant::now() + KEEP_ALIVE;
                        }
                    }
                    self.position = self.position.max(block.upto);
                    self.settle();
                }
            }
            Fed::Behind => {
                let (mut rest, mut channels) = match self.behind.take() {
                    Some(behind) => behind,
                    None => (
                        Rest::after(&self.gateway, self.session.as_deref(), whole(self.position)),
                        Channels::new(Arc::clone(&self.saved)),
                    ),
                };
                for record in rest.next(published).await.map_err(unread)? {
                    let told = channels.next(&record).await.map_err(unread)?;
                    if self.take(record.position, &told.activities).await? {
                        *quiet = Instant::now() + KEEP_ALIVE;
                    }
                }
                self.position = self.position.max(rest.position());
                self.settle();
                self.behind = Some((rest, channels));
            }
            Fed::Wait => {}
            Fed::Failed => return Err(Gone),
        }
        Ok(self.position > before)
    }

    async fn obey(&mut self, order: Order) -> Result<Option<Next>, Gone> {
        match order {
            Order::Say(message) => self.sink.control(&message).await?,
            Order::Change { changed, limits, answer } => {
                self.sink.control(&answer).await?;
                let _known = self.shaper.renegotiate(&changed, &limits);
            }
            Order::Replace { terms, answer, joins } => {
                self.sink.control(&answer).await?;
                self.shaper = Shaper::new(*terms);
                self.settle();
                return Ok(joins.then_some(Next::Join));
            }
            Order::Close(message) => {
                self.sink.control(&message).await?;
                self.sink.end().await;
                return Ok(Some(Next::End));
            }
        }
        Ok(None)
    }

    /// Lets a record through the shaper and sends what comes out; says whether anything did.
    async fn take(&mut self, position: u64, activities: &[Activity]) -> Result<bool, Gone> {
        let now = self.gateway.clock.now();
        let idle = self.shaper.held() == 0;
        let events: Vec<Value> =
            activities.iter().flat_map(|activity| self.shaper.take(activity, now)).collect();
        self.position = position;
        let exact = idle && self.shaper.held() == 0;
        for (n, event) in (0..).zip(&events) {
            if exact {
                self.safe = Cursor { position, n };
            }
            self.sink.event(&self.id(), event).await?;
        }
        self.settle();
        Ok(!events.is_empty())
    }

    /// Sends what was held and may go now.
    async fn tick(&mut self) -> Result<bool, Gone> {
        let events = self.shaper.tick(self.gateway.clock.now());
        for (left, event) in (0..events.len()).rev().zip(&events) {
            if left == 0 {
                self.settle();
            }
            self.sink.event(&self.id(), event).await?;
        }
        Ok(!events.is_empty())
    }

    /// Where nothing is held, everything was sent.
    fn settle(&mut self) {
        if self.shaper.held() == 0 {
            self.safe = self.safe.max(whole(self.position));
        }
    }

    /// How long to wait for what is held.
    fn nap(&self) -> Option<Duration> {
        let due = self.shaper.due()?;
        let left = Duration::try_from(due.duration_since(self.gateway.clock.now()));
        Some(left.unwrap_or_default().clamp(Duration::from_millis(1), NAP))
    }

    fn id(&self) -> String {
        let Cursor { position, n } = self.safe;
        format!("{}.{position}.{n}.{}", self.gateway.journal.epoch(), self.mark)
    }
}

/// Some turns, told again.
struct Retold {
    records: Stretches,
    channels: Channels,
}

impl Retold {
    async fn new(stream: &Stream, turns: Vec<Stretch>) -> Result<Self, Error> {
        let records = Stretches::new(&stream.gateway, turns).await?;
        Ok(Self { records, channels: Channels::new(Arc::clone(&stream.saved)) })
    }

    async fn next(&mut self) -> Result<Option<(u64, Vec<Activity>)>, Error> {
        let Some(record) = self.records.next().await? else { return Ok(None) };
        let told = self.channels.next(&record).await?;
        Ok(Some((record.position, told.activities)))
    }
}

/// All of a record.
fn whole(position: u64) -> Cursor {
    Cursor::whole(position)
}
