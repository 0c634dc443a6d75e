//! One protocol becomes another: its reader, and the other's writer, for every session apart.
//!
//! A [`Translator`] takes messages one by one and gives events at once: nothing waits for the end of the stream but what
//! the other protocol cannot say before. What a message is not JSON, or says nothing, is reported and the next one is
//! read. What is lost stands in the [`Report`]: fields by the measured [`table`], the rest as the writers noted it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::aaep::voice::Voice;
use crate::activity::{Activity, Origin, What};
use crate::aep::mapping::{Correlator, Mapping, Stamp};
use crate::event::Protocol;
use crate::json::{self, Parser, View};
use crate::message::Message;
use crate::reader::Reader;
use crate::writer::Writer;
use crate::written::Written;
use crate::{aaep, aep, agui, id};
use jiff::Timestamp;

mod carried;
mod measure;
mod note;
mod report;
pub mod table;

use carried::{CarriedFields, ReturningFields};
pub use measure::{Example, measure};
pub use note::{Note, NoteKind, Notes};
pub use report::Report;
use table::Table;

/// Where a stream comes from.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// One of the three protocols.
    Protocol(Protocol),
    /// Native payloads of a coding agent's hooks: as they came, or as `{"hook": NAME, "payload": {…}}`.
    Hook {
        /// The agent.
        mapping: &'a Mapping,
        /// The hook, where the payloads do not bear its name.
        hook: Option<&'a str>,
    },
}

/// One event on its way out, and the session it belongs to.
#[derive(Debug, Clone)]
pub struct Translated {
    /// The session's number, by first appearance.
    pub lane: usize,
    /// The event.
    pub event: Written,
}

/// How many sessions are followed at once; past that, the one that was silent longest is ended.
const LANES: usize = 1_024;

/// Translates one stream.
#[derive(Debug)]
pub struct Translator<'a> {
    source: Source<'a>,
    to: Protocol,
    voice: Voice,
    parser: Parser,
    lanes: BTreeMap<usize, Lane>,
    /// A session's own id → its lane.
    known: HashMap<String, usize>,
    /// The lane of the message before, for those that do not name their session.
    current: Option<usize>,
    seen: usize,
    seq: u64,
    carried: CarriedFields<'a>,
    report: Report,
    /// Room for the activities of one message, and for the events of them.
    activities: Vec<Activity>,
    written: Vec<Written>,
}

#[derive(Debug)]
struct Lane {
    /// What it is known by.
    name: String,
    /// Who speaks in it.
    key: String,
    session: Arc<str>,
    /// The last time that an event of its own named.
    time: Option<Timestamp>,
    /// The time of the last activity.
    now: Timestamp,
    /// The number of the last message, so that the longest silence is known.
    last: u64,
    /// Joins the payloads of hooks, where those are read.
    correlator: Correlator,
    reader: Reader,
    writer: Writer,
    returning: ReturningFields,
}

impl<'a> Translator<'a> {
    /// A translator; `voice` is how people are spoken to, and whether facts travel along.
    pub fn new(source: Source<'a>, to: Protocol, voice: Voice) -> Self {
        Self::by(Table::builtin(), source, to, voice)
    }

    /// A translator that knows by another table what has to travel along.
    fn by(table: &'a Table, source: Source<'a>, to: Protocol, voice: Voice) -> Self {
        let carried = match source {
            Source::Protocol(from) if voice.carry => CarriedFields::of(table, from, to),
            _ => CarriedFields::default(),
        };
        let report = Report::new(source, to, voice.carry);
        Self {
            source,
            to,
            voice,
            parser: Parser::default(),
            lanes: BTreeMap::new(),
            known: HashMap::new(),
            current: None,
            seen: 0,
            seq: 0,
            carried,
            report,
            activities: Vec::new(),
            written: Vec::new(),
        }
    }

    /// What one message becomes. `now` is its time where it has none of its own and its session never had one.
    ///
    /// ```
    /// use banister_events::aaep::voice::Voice;
    /// use banister_events::event::Protocol;
    /// use banister_events::translate::{Source, Translator};
    /// let mut translator = Translator::new(Source::Protocol(Protocol::Agui), Protocol::Aaep, Voice::default());
    /// let told = translator.message(br#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#, jiff::Timestamp::UNIX_EPOCH)?;
    /// assert_eq!(told[0].event.clone().into_value()["type"], "aaep:agent.session.started");
    /// # Ok::<(), banister_events::json::Error>(())
    /// ```
    pub fn message(
        &mut self,
        message: &[u8],
        now: Timestamp,
    ) -> Result<Vec<Translated>, json::Error> {
        self.seq += 1;
        self.report.messages += 1;
        let mut parser = std::mem::take(&mut self.parser);
        let told = match parser.parse(message) {
            Ok(document) => Ok(self.document(document.root(), now)),
            Err(error) => {
                self.report.unreadable(self.seq, &error.to_string());
                Err(error)
            }
        };
        self.parser = parser;
        told
    }

    /// The stream is over: what was held comes out, what is open is ended.
    pub fn finish(&mut self) -> Vec<Translated> {
        let lanes: Vec<usize> = self.lanes.keys().copied().collect();
        lanes.into_iter().flat_map(|lane| self.end(lane)).collect()
    }

    /// Leaves a message out: the ids of all others stay what they were.
    fn skip(&mut self) {
        self.seq += 1;
    }

    /// Whether a session has something open: a turn, a run.
    pub fn is_open(&self, lane: usize) -> bool {
        self.lanes.get(&lane).is_some_and(|lane| lane.writer.is_open())
    }

    /// What was lost, and what had to be added.
    pub fn report(&self) -> &Report {
        &self.report
    }

    fn document(&mut self, event: View<'_>, now: Timestamp) -> Vec<Translated> {
        if !event.is_object() {
            self.report.unreadable(self.seq, "this is no JSON object");
            return Vec::new();
        }
        let from = match self.source {
            Source::Protocol(from) => from,
            Source::Hook { mapping, hook } => {
                return self.hook(mapping, hook, event, now);
            }
        };
        let kind = report::kind(event);
        self.report.count(&kind, event);
        let mut told = match from {
            Protocol::Agui => self.agui(event, now),
            Protocol::Aaep => self.aaep(event, now),
            Protocol::Aep => self.aep(event, now),
        };
        if !told.is_empty()
            && let Some(source) = self.carried.collect(&kind, event)
        {
            carried::attach(&source, self.to, &mut told);
        }
        told
    }

    /// Only the beginning of a run, and the input of one, name their thread.
    fn agui(&mut self, event: View<'_>, now: Timestamp) -> Vec<Translated> {
        let (lane, mut told) = match (event.get("threadId").and_then(View::as_str), self.current) {
            (Some(thread), _) if !event.get("type").is_some_and(|it| it.is("RUN_FINISHED")) => {
                self.lane(&thread)
            }
            (_, Some(lane)) => (lane, Vec::new()),
            (_, None) => self.lane(""),
        };
        self.notice(lane, event);
        self.take(lane, event, agui::read::time(event), now, &mut told);
        told
    }

    /// AAEP's sessions are turns. One that begins when another is over goes on in its lane; one that begins while
    /// another is open has a lane of its own. Replies name no session: whoever asked takes them.
    fn aaep(&mut self, event: View<'_>, now: Timestamp) -> Vec<Translated> {
        let time = aaep::read::time(event);
        let Some(session) = aaep::read::session(event) else {
            return self.everywhere(event, time, now);
        };
        let (lane, mut told) = if let Some(lane) = self.known.get(&*session) {
            (*lane, Vec::new())
        } else {
            let agent = event.text("/producer/agent_id").unwrap_or_default();
            let session = session.into_owned();
            let free = |(_, lane): &(&usize, &Lane)| lane.key == agent && !lane.writer.is_open();
            let free = self.lanes.iter().find(free).map(|(number, _)| *number);
            let lane = free.map(|lane| (lane, Vec::new()));
            let (lane, told) = lane.unwrap_or_else(|| self.open(&session, &agent));
            // The session that was here is over: nothing more is said of it.
            if let Some(here) = self.lanes.get_mut(&lane) {
                let before = std::mem::replace(&mut here.name, session.clone());
                self.known.remove(&before);
            }
            self.known.insert(session, lane);
            (lane, told)
        };
        self.notice(lane, event);
        self.take(lane, event, time, now, &mut told);
        told
    }

    fn aep(&mut self, event: View<'_>, now: Timestamp) -> Vec<Translated> {
        let time = aep::read::time(event);
        match aep::read::session(event) {
            Some(session) => {
                let slug = event.text("/agent/slug").unwrap_or_default();
                let (lane, mut told) = self.lane(&format!("{slug}\n{session}"));
                self.notice(lane, event);
                self.take(lane, event, time, now, &mut told);
                told
            }
            None if event.get("request_event_id").is_some() => self.everywhere(event, time, now),
            None => {
                let (lane, mut told) =
                    self.current.map_or_else(|| self.lane(""), |lane| (lane, Vec::new()));
                self.take(lane, event, time, now, &mut told);
                told
            }
        }
    }

    fn hook(
        &mut self,
        mapping: &Mapping,
        hook: Option<&str>,
        event: View<'_>,
        now: Timestamp,
    ) -> Vec<Translated> {
        let mut named = hook.map(str::to_owned);
        let (mut time, mut payload) = (None, event);
        if let Some(inner) = event.get("payload").filter(|inner| inner.is_object())
            && let Some(name) = event.get("hook").and_then(View::as_str)
        {
            named = Some(name.into_owned());
            (time, payload) = (aep::read::time(event), inner);
        }
        let event = payload.to_value();
        let Some(hook) = named.or_else(|| mapping.hook_of(&event)) else {
            self.report.unreadable(self.seq, "the payload does not name its hook");
            return Vec::new();
        };
        let session = mapping.session_of(&event);
        let (lane, mut told) = match (session, self.current) {
            (Some(session), _) => self.lane(&session),
            (None, Some(lane)) => (lane, Vec::new()),
            (None, None) => self.lane(""),
        };
        let mut activities = Vec::new();
        if let Some((Lane { correlator, reader, .. }, origin)) = self.enter(lane, time, now) {
            let stamp = Stamp { session: &origin.session, seq: origin.seq, time: origin.time };
            for event in mapping.map_with(correlator, &hook, &event, &stamp).events {
                let event = Message::of_value(Protocol::Aep, event);
                reader.read(&event, None, &origin, &mut activities);
            }
        }
        self.write(lane, &activities, &mut told);
        told
    }

    /// For what names no session: only the session that it belongs to makes anything of it.
    fn everywhere(
        &mut self,
        event: View<'_>,
        time: Option<Timestamp>,
        now: Timestamp,
    ) -> Vec<Translated> {
        let lanes: Vec<usize> = self.lanes.keys().copied().collect();
        let mut told = Vec::new();
        for lane in lanes {
            self.take(lane, event, time, now, &mut told);
        }
        if told.is_empty() {
            let name =
                ["reply_token", "request_event_id"].into_iter().find_map(|key| event.get(key));
            let name = name.and_then(View::as_str);
            let about = name.as_deref().unwrap_or("an answer").to_owned();
            self.report.noted((vec![Note { kind: NoteKind::Ignored, about }], 0));
        }
        told
    }

    /// Keeps what came along with an event until it finds its place again.
    fn notice(&mut self, lane: usize, event: View<'_>) {
        if let (Source::Protocol(from), Some(lane)) = (self.source, self.lanes.get_mut(&lane)) {
            lane.returning.notice((from, self.to), event);
        }
    }

    fn take(
        &mut self,
        lane: usize,
        event: View<'_>,
        time: Option<Timestamp>,
        now: Timestamp,
        told: &mut Vec<Translated>,
    ) {
        let mut activities = std::mem::take(&mut self.activities);
        if let Some((lane, origin)) = self.enter(lane, time, now) {
            lane.reader.read_view(event, None, &origin, &mut activities);
        }
        self.write(lane, &activities, told);
        activities.clear();
        self.activities = activities;
    }

    fn enter(
        &mut self,
        lane: usize,
        time: Option<Timestamp>,
        now: Timestamp,
    ) -> Option<(&mut Lane, Origin)> {
        self.current = Some(lane);
        let seq = self.seq;
        let lane = self.lanes.get_mut(&lane)?;
        lane.last = seq;
        lane.time = time.or(lane.time);
        lane.now = lane.time.unwrap_or(now);
        let origin = Origin { session: Arc::clone(&lane.session), seq, time: lane.now };
        Some((lane, origin))
    }

    fn write(&mut self, number: usize, activities: &[Activity], told: &mut Vec<Translated>) {
        let Some(lane) = self.lanes.get_mut(&number) else { return };
        let mut events = std::mem::take(&mut self.written);
        let takes = |activity: &&Activity| {
            self.voice.carry && self.to != Protocol::Aaep || !is_detail(activity)
        };
        for activity in activities.iter().filter(takes) {
            lane.writer.write_to(activity, &mut events);
        }
        self.report.noted(lane.writer.notes());
        self.report.events += events.len() as u64;
        told.extend(events.drain(..).map(|mut event| {
            lane.returning.put_back(self.to, &mut event);
            Translated { lane: number, event }
        }));
        self.written = events;
    }

    /// The lane of a session, by its own id.
    fn lane(&mut self, key: &str) -> (usize, Vec<Translated>) {
        match self.known.get(key) {
            Some(lane) => (*lane, Vec::new()),
            None => self.open(key, key),
        }
    }

    fn open(&mut self, session: &str, key: &str) -> (usize, Vec<Translated>) {
        let mut told = Vec::new();
        if self.lanes.len() >= LANES
            && let Some(silent) = self.lanes.iter().min_by_key(|(_, lane)| lane.last)
        {
            let silent = *silent.0;
            told = self.end(silent);
            if let Some(lane) = self.lanes.remove(&silent) {
                self.known.remove(&lane.name);
            }
        }
        let number = self.seen;
        self.seen += 1;
        self.known.insert(session.to_owned(), number);
        let from = self.report.from.as_str();
        let own: Arc<str> = id::derive("s_", &["translate", from, session]).into();
        let from = match self.source {
            Source::Protocol(from) => from,
            // Its events are made here, by a mapping: nothing in them came from elsewhere.
            Source::Hook { .. } => Protocol::Aep,
        };
        let reader = Reader::trusting(from).for_writer(self.to);
        let writer = Writer::for_protocol(self.to, self.voice.clone(), &own);
        let lane = Lane {
            name: session.to_owned(),
            key: key.to_owned(),
            session: own,
            time: None,
            now: Timestamp::default(),
            last: self.seq,
            correlator: Correlator::default(),
            reader,
            writer,
            returning: ReturningFields::default(),
        };
        self.lanes.insert(number, lane);
        (number, told)
    }

    fn end(&mut self, number: usize) -> Vec<Translated> {
        let seq = self.seq + 1;
        let Some(lane) = self.lanes.get_mut(&number) else { return Vec::new() };
        let origin = Origin { session: Arc::clone(&lane.session), seq, time: lane.now };
        let activities = lane.reader.finish(&origin);
        let mut told = Vec::new();
        self.write(number, &activities, &mut told);
        // What waits for an answer is not over: the answer may come in the next recording.
        let waits = |lane: &&mut Lane| lane.writer.is_waiting();
        if let Some(lane) = self.lanes.get_mut(&number).filter(|lane| !waits(lane)) {
            let before = told.len();
            let closing = lane.writer.close().into_iter();
            told.extend(closing.map(|event| Translated { lane: number, event }));
            self.report.events += (told.len() - before) as u64;
            self.report.noted(lane.writer.notes());
        }
        told
    }
}

/// What only AG-UI asks about an event that is told already: whose child a message is, what a result is called.
fn is_detail(activity: &Activity) -> bool {
    let What::Raw { protocol: Protocol::Agui, kind, .. } = &activity.what else { return false };
    !matches!(kind.as_str(), "RAW" | "CUSTOM" | "REASONING_ENCRYPTED_VALUE")
        && agui::event::Type::parse(kind).is_some()
}

#[cfg(test)]
#[path = "translate_tests.rs"]
mod tests;
