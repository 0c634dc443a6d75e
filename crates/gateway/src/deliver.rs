//! Activities become a subscriber's stream, in the subscriber's own task and at its own pace.
//!
//! A slow subscriber falls behind on its own cursor and reads from the journal; it never slows anybody else. A cursor on
//! the wire is `epoch.position.n`: the journal it belongs to, the record, the event within the record.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use banister_events::activity::Activity;
use banister_events::agui::write::{History, Writer as AguiWriter};
use banister_events::event::Protocol;
use banister_events::frame::sse;
use banister_events::{aaep, aep};
use banister_journal::Record;
use bytes::Bytes;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::http::agui::Outlet;
use crate::project::Projection;
use crate::{Error, Gateway};

/// How many records are read at a time.
const BATCH: usize = 256;
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

/// One session on its way to a subscriber.
struct Channel {
    projection: Projection,
    writer: Writer,
}

enum Writer {
    Aaep(Box<aaep::write::Writer>),
    Aep(Box<aep::write::Writer>),
}

impl Writer {
    fn write(&mut self, activity: &Activity) -> Vec<Value> {
        match self {
            Self::Aaep(writer) => writer.write(activity),
            Self::Aep(writer) => writer.write(activity),
        }
    }

    fn turn_open(&self) -> bool {
        match self {
            Self::Aaep(writer) => writer.is_open(),
            Self::Aep(writer) => writer.is_open(),
        }
    }
}

/// The subscriber is gone.
#[derive(Debug)]
pub(crate) struct Gone;

/// Why a run was not told to its end.
enum Untold {
    Gone,
    Unread(Error),
}

impl From<Gone> for Untold {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

impl From<Error> for Untold {
    fn from(error: Error) -> Self {
        Self::Unread(error)
    }
}

/// The silence of a stream, which does not last: proxies cut what says nothing.
struct Quiet<'a> {
    out: &'a mpsc::Sender<Bytes>,
    /// Whether the stream has a way to say nothing.
    comments: bool,
    until: Instant,
}

impl<'a> Quiet<'a> {
    fn new(out: &'a mpsc::Sender<Bytes>, comments: bool) -> Self {
        Self { out, comments, until: Instant::now() + KEEP_ALIVE }
    }

    fn renew(&mut self) {
        self.until = Instant::now() + KEEP_ALIVE;
    }

    async fn break_if_due(&mut self) -> Result<(), Gone> {
        if Instant::now() < self.until {
            return Ok(());
        }
        self.renew();
        if !self.comments {
            return Ok(());
        }
        let mut frame = Vec::new();
        sse::comment(&mut frame, "still here");
        self.out.send(Bytes::from(frame)).await.map_err(|_| Gone)
    }
}

impl Gateway {
    /// Streams AAEP or AEP events as SSE frames until the subscriber leaves.
    pub async fn follow(self: Arc<Self>, terms: Terms, out: mpsc::Sender<Bytes>) {
        let mut stream = Stream {
            channels: HashMap::new(),
            terms,
            gateway: Arc::clone(&self),
            out,
            replayed: BTreeMap::new(),
        };
        let mut bell = self.hub.bell();
        let end = *bell.borrow_and_update();
        if stream.catch_up(end).await.is_ok() {
            stream.live(end, bell).await.unwrap_or(());
        }
    }

    /// Streams one session as an AG-UI run until the turn that is under way ends, or the gateway stops.
    pub(crate) async fn attach(
        self: Arc<Self>,
        session: String,
        writer: AguiWriter,
        mut outlet: Outlet,
        stop: CancellationToken,
    ) {
        tokio::select! {
            () = stop.cancelled() => {
                outlet.fail("shutdown", "the gateway stops; run again once it is back");
            }
            told = self.tell(&session, writer, &mut outlet) => {
                if let Err(Untold::Unread(error)) = told {
                    tracing::error!(%error, "A session could not be read.");
                    outlet.fail("internal", "the session could not be read");
                }
            }
        }
    }

    async fn tell(
        &self,
        session: &str,
        mut writer: AguiWriter,
        outlet: &mut Outlet,
    ) -> Result<(), Untold> {
        let mut bell = self.hub.bell();
        let end = *bell.borrow_and_update();
        let mut projection = Projection::new(Arc::clone(&self.agents));
        let mut history = History::default();
        let mut seq = 0;
        let mut last = 0;
        loop {
            let batch = self.session_after(session, seq).await?;
            let Some(newest) = batch.last() else { break };
            seq = newest.seq;
            for record in &batch {
                last = last.max(record.position);
                for activity in projection.next(record) {
                    history.add(&activity);
                }
            }
        }
        let mut events = writer.begin(&history);
        if !history.turn_open() {
            writer.finish(None, &mut events);
        }
        drop(history);
        outlet.send(&events).await?;
        let mut position = last.max(end);
        let out = outlet.sender().clone();
        let mut quiet = Quiet::new(&out, outlet.has_comments());
        while !outlet.is_ended() {
            let batch = self.next_batch(&mut position, &mut bell, &mut quiet).await?;
            for record in
                batch.iter().filter(|record| record.session == session && record.seq > seq)
            {
                let mut events = Vec::new();
                for activity in projection.next(record) {
                    events.extend(writer.write(&activity));
                }
                if !events.is_empty() {
                    quiet.renew();
                }
                outlet.send(&events).await?;
            }
        }
        Ok(())
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
        let journal = self.journal.clone();
        let session = session.to_owned();
        blocking(move || journal.session(&session, seq, BATCH)).await
    }

    /// Waits for records after `position`, saying now and then that the stream is alive.
    async fn next_batch(
        &self,
        position: &mut u64,
        bell: &mut watch::Receiver<u64>,
        quiet: &mut Quiet<'_>,
    ) -> Result<Vec<Arc<Record>>, Gone> {
        loop {
            quiet.break_if_due().await?;
            let published = *bell.borrow_and_update();
            if published > *position {
                let mut batch = self.after(*position).await.map_err(|error| {
                    tracing::error!(%error, "A subscriber's records could not be read.");
                    Gone
                })?;
                // What is in the journal and not yet published comes with the next ring of the bell.
                batch.retain(|record| record.position <= published);
                if let Some(newest) = batch.last() {
                    *position = newest.position;
                    return Ok(batch);
                }
            }
            tokio::select! {
                () = quiet.out.closed() => return Err(Gone),
                rung = tokio::time::timeout_at(quiet.until, bell.changed()) => match rung {
                    Ok(Ok(())) | Err(_) => {}
                    Ok(Err(_)) => return Err(Gone),
                },
            }
        }
    }
}

struct Stream {
    channels: HashMap<String, Channel>,
    terms: Terms,
    gateway: Arc<Gateway>,
    out: mpsc::Sender<Bytes>,
    /// Session → what its open turn has said so far, for those who come late.
    replayed: BTreeMap<String, Vec<(Cursor, Value)>>,
}

impl Stream {
    /// Brings the writers to `end`, telling the subscriber what it asked to be told.
    async fn catch_up(&mut self, end: u64) -> Result<(), Gone> {
        let mut hello = Vec::new();
        sse::comment(&mut hello, "connected");
        if self.terms.start == Start::Exhausted {
            sse::comment(&mut hello, "replay-exhausted");
        }
        self.send(hello).await?;
        let mut position = 0;
        while position < end && !self.out.is_closed() {
            let batch = self.gateway.after(position).await.map_err(|error| {
                tracing::error!(%error, "A subscriber's records could not be read.");
                Gone
            })?;
            let Some(newest) = batch.last() else { break };
            position = newest.position;
            for record in batch.iter().filter(|record| record.position <= end) {
                let events = self.project(record);
                self.replay(record, events).await?;
            }
        }
        let mut open: Vec<(Cursor, Value)> =
            std::mem::take(&mut self.replayed).into_values().flatten().collect();
        open.sort_by_key(|(cursor, _)| *cursor);
        for (cursor, event) in open {
            self.emit(cursor, &event).await?;
        }
        Ok(())
    }

    async fn replay(&mut self, record: &Record, events: Vec<(Cursor, Value)>) -> Result<(), Gone> {
        match self.terms.start {
            Start::Beginning => self.emit_all(events).await,
            Start::After(seen) => {
                self.emit_all(events.into_iter().filter(|(cursor, _)| *cursor > seen).collect())
                    .await
            }
            Start::Now | Start::Exhausted => {
                let open = self
                    .channels
                    .get(&record.session)
                    .is_some_and(|channel| channel.writer.turn_open());
                if open {
                    let told = self.replayed.entry(record.session.clone()).or_default();
                    // A turn that began within this record does not carry the end of the one before it.
                    let first = events.iter().rposition(|(_, event)| is_start(event));
                    if let Some(first) = first {
                        told.clear();
                        told.extend(events.into_iter().skip(first));
                    } else {
                        told.extend(events);
                    }
                } else {
                    self.replayed.remove(&record.session);
                }
                Ok(())
            }
        }
    }

    async fn live(
        &mut self,
        mut position: u64,
        mut bell: watch::Receiver<u64>,
    ) -> Result<(), Gone> {
        let gateway = Arc::clone(&self.gateway);
        let out = self.out.clone();
        let mut quiet = Quiet::new(&out, true);
        loop {
            let batch = gateway.next_batch(&mut position, &mut bell, &mut quiet).await?;
            for record in &batch {
                let events = self.project(record);
                if !events.is_empty() {
                    quiet.renew();
                }
                self.emit_all(events).await?;
            }
        }
    }

    fn project(&mut self, record: &Record) -> Vec<(Cursor, Value)> {
        if self.terms.session.as_ref().is_some_and(|only| *only != record.session) {
            return Vec::new();
        }
        let terms = &self.terms;
        let agents = &self.gateway.agents;
        let channel = self.channels.entry(record.session.clone()).or_insert_with(|| Channel {
            projection: Projection::new(Arc::clone(agents)),
            writer: match terms.protocol {
                Protocol::Aep => Writer::Aep(Box::default()),
                Protocol::Aaep | Protocol::Agui => {
                    Writer::Aaep(Box::new(aaep::write::Writer::new(&terms.language)))
                }
            },
        });
        let activities = channel.projection.next(record);
        let events = activities.iter().flat_map(|activity| channel.writer.write(activity));
        (0..)
            .zip(events)
            .map(|(n, event)| (Cursor { position: record.position, n }, event))
            .collect()
    }

    async fn emit_all(&self, events: Vec<(Cursor, Value)>) -> Result<(), Gone> {
        let mut frames = Vec::new();
        for (cursor, event) in events {
            self.frame(&mut frames, cursor, &event);
        }
        if frames.is_empty() { Ok(()) } else { self.send(frames).await }
    }

    async fn emit(&self, cursor: Cursor, event: &Value) -> Result<(), Gone> {
        let mut frame = Vec::new();
        self.frame(&mut frame, cursor, event);
        self.send(frame).await
    }

    fn frame(&self, frames: &mut Vec<u8>, cursor: Cursor, event: &Value) {
        let id = format!("{}.{}.{}", self.gateway.journal.epoch(), cursor.position, cursor.n);
        let name = (self.terms.protocol == Protocol::Aaep).then_some("aaep.event");
        let data = event.to_string();
        sse::write(frames, &sse::Outgoing { id: Some(&id), event: name, data: &data });
    }

    async fn send(&self, frames: Vec<u8>) -> Result<(), Gone> {
        self.out.send(Bytes::from(frames)).await.map_err(|_| Gone)
    }
}

fn is_start(event: &Value) -> bool {
    let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
    matches!(kind, "aaep:agent.session.started" | "prompt.submitted" | "agent.start")
}

/// Runs a read of the journal where it may block.
pub(crate) async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, banister_journal::Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(read).await {
        Ok(result) => Ok(result?),
        Err(error) => Err(Error::Task(error.to_string())),
    }
}
