//! One subscription's stream, in its own task: shaped to its terms, at its own pace. The activities that it shapes were
//! projected once, for all subscriptions.
//!
//! The id of a frame is the id of its event, and the stream can be resumed from it. While the rate holds events back, an
//! event can overtake others that happened before it. After such an event comes a frame without data, whose id is that
//! of the last event that overtook nothing: a subscriber that resumes from there misses nothing, and may get events
//! again, under the same `event_id`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use banister_events::aaep::handshake::Capabilities;
use banister_events::aaep::shape::{Limits, Shaper, Terms};
use banister_events::activity::{Activity, Ending, What};
use banister_events::frame::sse;
use banister_events::id::EventRef;
use banister_journal::Record;
use bytes::Bytes;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::table::StreamOrder;
use crate::deliver::{
    CatchUp, Channels, EventCursor, FeedKey, FeedNext, Gone, KEEP_ALIVE, LiveFeed, Projected,
    Rendering, SavedChannels, Start, Stretch, Stretches, aaep_frame, unread,
};
use crate::reads::blocking;
use crate::{Error, Gateway};

/// The longest sleep while something is held: a clock that is set is noticed by then.
const NAP: Duration = Duration::from_millis(250);

/// What goes out on a socket.
#[derive(Debug)]
pub(crate) enum SocketMessage {
    /// A message.
    Text(String),
    /// The end.
    Close(u16, &'static str),
}

/// Where a stream leads.
#[derive(Debug)]
pub(crate) enum StreamSink {
    /// Server-sent events.
    Frames(mpsc::Sender<Bytes>),
    /// A socket. It has its own way of saying that it is still there.
    Socket(mpsc::Sender<SocketMessage>),
}

impl StreamSink {
    /// Sends an event; and then the id to resume from, where that is not the event's own.
    async fn event(&self, event: &Value, resume_from: Option<&str>) -> Result<(), Gone> {
        let data = event.to_string();
        match self {
            Self::Frames(out) => {
                let mut frames = Vec::new();
                aaep_frame(&mut frames, event, &data);
                if let Some(id) = resume_from {
                    sse::write_id(&mut frames, id);
                }
                out.send(Bytes::from(frames)).await.map_err(|_| Gone)
            }
            Self::Socket(out) => out.send(SocketMessage::Text(data)).await.map_err(|_| Gone),
        }
    }

    async fn control(&self, message: &Value) -> Result<(), Gone> {
        let data = message.to_string();
        match self {
            Self::Frames(out) => {
                let mut frame = Vec::new();
                let event = Some("aaep.control");
                sse::write(&mut frame, &sse::Outgoing { id: None, event, data: &data });
                out.send(Bytes::from(frame)).await.map_err(|_| Gone)
            }
            Self::Socket(out) => out.send(SocketMessage::Text(data)).await.map_err(|_| Gone),
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
            let close = SocketMessage::Close(4000, "the subscription is closed");
            let _last = out.send(close).await;
        }
    }

    async fn closed(&self) {
        match self {
            Self::Frames(out) => out.closed().await,
            Self::Socket(out) => out.closed().await,
        }
    }
}

/// Why a stream stops following the live end.
enum LiveEnd {
    Over,
    /// Another subscription has taken its place, and begins with the turns under way.
    Rejoin,
}

/// One subscription's stream, before it runs.
pub(crate) struct SubscriptionStream {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) terms: Terms,
    pub(crate) sink: StreamSink,
    /// Only this session.
    pub(crate) session: Option<String>,
    /// Where to begin; none for what happens from now on.
    pub(crate) start: Option<Start>,
    /// The message that is sent first.
    pub(crate) greeting: Option<Value>,
}

impl SubscriptionStream {
    /// Streams until the subscriber leaves, or its orders end.
    pub(crate) async fn run(self, mut orders: mpsc::Receiver<StreamOrder>) {
        let Self { gateway, terms, sink, session, mut start, greeting } = self;
        if let Some(greeting) = greeting
            && sink.control(&greeting).await.is_err()
        {
            return;
        }
        let _counted = gateway.hub.counted();
        let key = FeedKey { rendering: Rendering::Activities, session: session.clone() };
        let mut stream = ShapedStream {
            shaper: Shaper::new(terms),
            feed: gateway.feed(&key),
            saved: gateway.saved(&key.rendering),
            gateway: Arc::clone(&gateway),
            sink,
            session,
            behind: None,
            position: 0,
            safe: SafePoint::Cursor(whole(0)),
        };
        loop {
            match stream.from(start, gateway.hub.head(), &mut orders).await {
                Ok(LiveEnd::Rejoin) => start = Some(Start::Now),
                Ok(LiveEnd::Over) | Err(Gone) => return,
            }
        }
    }
}

/// From where a stream can be resumed without missing anything.
#[derive(Debug)]
enum SafePoint {
    Cursor(EventCursor),
    /// After the event with this id.
    Event(String),
}

/// One subscription's stream, while it runs.
struct ShapedStream {
    gateway: Arc<Gateway>,
    shaper: Shaper,
    sink: StreamSink,
    session: Option<String>,
    feed: Arc<LiveFeed>,
    saved: Arc<SavedChannels>,
    /// What it reads the journal with, while it is behind what the feed has at hand.
    behind: Option<(CatchUp, Channels)>,
    /// Everything up to here went through the shaper.
    position: u64,
    /// Everything up to here was sent.
    safe: SafePoint,
}

impl ShapedStream {
    async fn from(
        &mut self,
        start: Option<Start>,
        end: u64,
        orders: &mut mpsc::Receiver<StreamOrder>,
    ) -> Result<LiveEnd, Gone> {
        // Before the subscriber hears that it is connected: from then on it misses nothing.
        let turns = match start {
            Some(Start::Now | Start::Exhausted) => Some(self.open_turns().await?),
            Some(Start::After(seen) | Start::AfterSent(seen)) if seen.position > end => {
                Some(self.open_turns().await?)
            }
            _ => None,
        };
        self.sink.comment("connected").await?;
        self.behind = None;
        self.position = end;
        self.safe = SafePoint::Cursor(whole(end));
        match start {
            None => {}
            Some(Start::Beginning) => {
                self.position = 0;
                self.safe = SafePoint::Cursor(whole(0));
            }
            Some(Start::After(seen)) if seen.position <= end => {
                self.safe = SafePoint::Cursor(seen);
                self.resume(seen, Counted::Written).await?;
            }
            Some(Start::AfterSent(seen)) if seen.position <= end => {
                self.safe = SafePoint::Cursor(whole(seen.before_unseen()));
                self.resume(seen, Counted::Sent).await?;
            }
            Some(Start::Now) => self.join(turns).await?,
            // A cursor ahead of everything there is belongs to a journal that is lost.
            Some(Start::Exhausted | Start::After(_) | Start::AfterSent(_)) => {
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

    /// Sends the turns that are open, from their beginning.
    async fn join(&mut self, turns: Option<(u64, Vec<Stretch>)>) -> Result<(), Gone> {
        let (end, turns) = turns.unwrap_or((self.position, Vec::new()));
        let begins: HashMap<String, u64> =
            turns.iter().map(|turn| (turn.session.clone(), turn.from)).collect();
        let mut replay = TurnReplay::new(self, turns).await.map_err(unread)?;
        let mut first = true;
        while let Some((record, projected)) = replay.next().await.map_err(unread)? {
            let begin = begins.get(&record.session).copied().unwrap_or_default();
            let mut activities = projected.activities.as_slice();
            if record.seq <= begin {
                let start = projected.turn_start.filter(|_| record.seq == begin);
                let start = start.map_or(activities.len(), |start| start.activity);
                let (before, turn) = activities.split_at_checked(start).unwrap_or_default();
                activities = turn;
                self.skip(before, turn.first()).await?;
            }
            if activities.is_empty() {
                continue;
            }
            if std::mem::take(&mut first) {
                self.safe = SafePoint::Cursor(whole(record.position.saturating_sub(1)));
            }
            self.take(record.position, activities).await?;
        }
        self.position = end;
        self.settle();
        Ok(())
    }

    /// Lets the shaper see the turn before the one that is sent, so that it gives the same ids as for those who were
    /// there. That turn ends where the next one begins.
    async fn skip(&mut self, before: &[Activity], next: Option<&Activity>) -> Result<(), Gone> {
        let ending = Ending::Completed;
        let end = What::TurnEnded { ending, summary: None, result: None, usage: Vec::new() };
        let end = next.map(|next| Activity { what: end, ..next.clone() });
        let events: Vec<Value> =
            before.iter().chain(&end).flat_map(|activity| self.shaper.skip(activity)).collect();
        self.send(&events, false).await
    }

    /// Goes on after an event that was seen. What was seen passes through the shaper once more and is not sent.
    async fn resume(&mut self, seen: EventCursor, counted: Counted) -> Result<(), Gone> {
        let turns = self.turns(seen).await.map_err(unread)?;
        let mut replay = TurnReplay::new(self, turns).await.map_err(unread)?;
        let honoured = self.shaper.terms().honoured().clone();
        let limits = Limits { replies: true, ..Limits::default() };
        let unlimited = Capabilities { max_events_per_second: None, ..honoured.clone() };
        self.shaper = Shaper::new(Terms::negotiate(&unlimited, &limits).0);
        while let Some((record, projected)) = replay.next().await.map_err(unread)? {
            let (position, now) = (record.position, self.gateway.clock.now());
            let activities = projected.activities.iter();
            let events: Vec<Value> =
                activities.flat_map(|activity| self.shaper.take(activity, now)).collect();
            if position < seen.position {
                continue;
            }
            for (sent, event) in (0..).zip(&events) {
                let n = match counted {
                    Counted::Sent => sent,
                    Counted::Written => event_ref(event).map_or(u32::MAX, |event| event.n),
                };
                if n > seen.n || position > seen.position {
                    self.safe = SafePoint::Event(event_id(event).to_owned());
                    self.sink.event(event, None).await?;
                }
            }
        }
        let _same = self.shaper.renegotiate(&honoured, &limits);
        self.position = seen.position;
        Ok(())
    }

    /// The turns that were open at a cursor, of sessions that anything may be sent of from there on. A turn that ended
    /// within that very record is among them where some of its events may not have been seen.
    async fn turns(&self, seen: EventCursor) -> Result<Vec<Stretch>, Error> {
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
                    let open = saved.turn_at(&session, before)?;
                    let (from, follows) =
                        open.map_or((seq, None), |turn| (turn.from, turn.follows));
                    Some(Stretch { session: session.clone(), from, to: seq, follows })
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
        orders: &mut mpsc::Receiver<StreamOrder>,
    ) -> Result<LiveEnd, Gone> {
        let mut comment_due = Instant::now() + KEEP_ALIVE;
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
                Err(mpsc::error::TryRecvError::Disconnected) => return Ok(LiveEnd::Over),
                Err(mpsc::error::TryRecvError::Empty) => {}
            }
            if published > self.position && self.hear(published, &mut comment_due).await? {
                continue;
            }
            let nap = self.nap();
            tokio::select! {
                biased;
                order = orders.recv() => match order {
                    Some(order) => if let Some(next) = self.obey(order).await? {
                        return Ok(next);
                    },
                    None => return Ok(LiveEnd::Over),
                },
                () = self.sink.closed() => return Err(Gone),
                rung = bell.changed() => if rung.is_err() { return Ok(LiveEnd::Over) },
                () = sleep(nap.unwrap_or(NAP)), if nap.is_some() => {
                    if self.tick().await? {
                        comment_due = Instant::now() + KEEP_ALIVE;
                    }
                }
                () = sleep_until(comment_due) => {
                    self.sink.comment("still here").await?;
                    comment_due = Instant::now() + KEEP_ALIVE;
                }
            }
        }
    }

    /// Takes what comes next, up to a position; says whether there was anything.
    async fn hear(&mut self, published: u64, comment_due: &mut Instant) -> Result<bool, Gone> {
        let before = self.position;
        match self.feed.next(whole(self.position)) {
            FeedNext::Blocks(blocks) => {
                self.behind = None;
                for block in blocks.iter().filter(|block| block.upto <= published) {
                    let news = block.activities.iter().filter(|(position, _)| *position > before);
                    for (position, activities) in news {
                        if self.take(*position, activities).await? {
                            *comment_due = Instant::now() + KEEP_ALIVE;
                        }
                    }
                    self.position = self.position.max(block.upto);
                    self.settle();
                }
            }
            FeedNext::Behind => {
                let behind = self.behind.take();
                let (mut catch_up, mut channels) = behind.unwrap_or_else(|| {
                    let (only, seen) = (self.session.as_deref(), whole(self.position));
                    let catch_up = CatchUp::after(&self.gateway, only, seen);
                    (catch_up, Channels::new(Arc::clone(&self.saved)))
                });
                for record in catch_up.next(published).await.map_err(unread)? {
                    let projected = channels.next(&record).await.map_err(unread)?;
                    if self.take(record.position, &projected.activities).await? {
                        *comment_due = Instant::now() + KEEP_ALIVE;
                    }
                }
                self.position = self.position.max(catch_up.position());
                self.settle();
                self.behind = Some((catch_up, channels));
            }
            FeedNext::Wait => {}
            FeedNext::Failed => return Err(Gone),
        }
        Ok(self.position > before)
    }

    async fn obey(&mut self, order: StreamOrder) -> Result<Option<LiveEnd>, Gone> {
        match order {
            StreamOrder::Say(message) => self.sink.control(&message).await?,
            StreamOrder::Change { changed, limits, answer } => {
                self.sink.control(&answer).await?;
                let _known = self.shaper.renegotiate(&changed, &limits);
            }
            StreamOrder::Replace { terms, answer, joins } => {
                self.sink.control(&answer).await?;
                self.shaper = Shaper::new(*terms);
                self.settle();
                return Ok(joins.then_some(LiveEnd::Rejoin));
            }
            StreamOrder::Close(message) => {
                self.sink.control(&message).await?;
                self.sink.end().await;
                return Ok(Some(LiveEnd::Over));
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
        let in_order = idle && self.shaper.held() == 0;
        self.send(&events, in_order).await?;
        self.settle();
        Ok(!events.is_empty())
    }

    /// Sends what was held and may go now.
    async fn tick(&mut self) -> Result<bool, Gone> {
        let events = self.shaper.tick(self.gateway.clock.now());
        self.send(&events, false).await?;
        self.settle();
        Ok(!events.is_empty())
    }

    /// Sends events. Where they may not be in the order in which they happened, it is looked at what each overtakes.
    async fn send(&mut self, events: &[Value], in_order: bool) -> Result<(), Gone> {
        for (at, event) in events.iter().enumerate() {
            let later = events.get(at + 1..).unwrap_or_default();
            if in_order || !self.overtakes(event, later) {
                self.safe = SafePoint::Event(event_id(event).to_owned());
                self.sink.event(event, None).await?;
            } else {
                let epoch = self.gateway.journal.epoch();
                let safe = match &self.safe {
                    SafePoint::Cursor(cursor) => cursor.written(epoch),
                    SafePoint::Event(id) => id.clone(),
                };
                self.sink.event(event, Some(&safe)).await?;
            }
        }
        Ok(())
    }

    /// Whether anything that is still to be sent happened before an event, as far as that can be known. Events of other
    /// sessions may have, and so may a part of what was merged.
    fn overtakes(&self, event: &Value, later: &[Value]) -> bool {
        let Some(event) = event_ref(event) else { return true };
        let follows = |other: EventRef| {
            other.session() == event.session()
                && !other.merged
                && (other.seq, other.n) > (event.seq, event.n)
        };
        let mut unsent = later.iter().chain(self.shaper.waiting());
        !unsent.all(|other| event_ref(other).is_some_and(follows))
    }

    /// Where nothing is held, everything was sent.
    fn settle(&mut self) {
        if self.shaper.held() == 0 {
            self.safe = SafePoint::Cursor(whole(self.position));
        }
    }

    /// How long to wait for what is held.
    fn nap(&self) -> Option<Duration> {
        let due = self.shaper.due()?;
        let left = Duration::try_from(due.duration_since(self.gateway.clock.now()));
        Some(left.unwrap_or_default().clamp(Duration::from_millis(1), NAP))
    }
}

/// What the number in a cursor counts.
#[derive(Debug, Clone, Copy)]
enum Counted {
    /// The events that a record became.
    Written,
    /// Those of them that the subscription was sent.
    Sent,
}

fn event_id(event: &Value) -> &str {
    event.get("event_id").and_then(Value::as_str).unwrap_or_default()
}

fn event_ref(event: &Value) -> Option<EventRef> {
    EventRef::parse(event_id(event))
}

/// Some turns, projected once more, each with the turn before where that has to be seen as well.
struct TurnReplay {
    records: Stretches,
    channels: Channels,
}

impl TurnReplay {
    async fn new(stream: &ShapedStream, turns: Vec<Stretch>) -> Result<Self, Error> {
        let turns = turns.into_iter().map(Stretch::with_turn_before).collect();
        let records = Stretches::new(&stream.gateway, turns).await?;
        Ok(Self { records, channels: Channels::new(Arc::clone(&stream.saved)) })
    }

    async fn next(&mut self) -> Result<Option<(Arc<Record>, Projected)>, Error> {
        let Some(record) = self.records.next().await? else { return Ok(None) };
        let projected = self.channels.next(&record).await?;
        Ok(Some((record, projected)))
    }
}

/// After all events of a record.
fn whole(position: u64) -> EventCursor {
    EventCursor::whole(position)
}
