//! Activities → AG-UI events.
//!
//! A [`Writer`] holds what is open and cannot emit a stream that breaks the protocol: it opens what has to be open,
//! closes everything before a run ends, gives ids that are taken a second time another name, leaves out patches that
//! apply to nothing, and ends every run exactly once. What it did unasked stands in its notes.
//!
//! It writes either the one run that a front end asked for ([`Writer::new`]) or all runs of a session
//! ([`Writer::recording`]). A front end attaches to a session as if it were an AG-UI agent: what already happened is
//! restated ([`History`], a fold of the writer's own events), what happens from then on streams. So a client that comes
//! late ends with what a client that was there from the start has.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::event::{PROTOCOL_VERSION, Type};
use crate::activity::{Activity, Context, Ending, Origin, Usage, What};
use crate::event::Protocol;
use crate::id::{self, Decimal};
use crate::translate::{Note, NoteKind, Notes};
use crate::written::{Field, Fields, Written, most_value};
use crate::{limits, text};

mod asks;
mod calls;
mod event;
mod history;
mod items;
mod names;
mod shared;
mod turn;

pub use asks::ASK;
pub use history::History;

use asks::Waiting;
use calls::Calls;
pub(crate) use event::Parts;
use event::{fields_of, fits_whole, kind_of, pieces, remember};
use items::{Items, TextPiece};
use names::Names;
use shared::Shared;

/// How much waits for a run to begin, in activities and in bytes.
const HELD: usize = 256;
const HELD_BYTES: usize = 1024 * 1024;

/// How many runs are remembered, so that no id is used twice.
const RUNS: usize = 16_384;

/// The key of `metadata` that is ours.
const KEY: &str = "banister";

/// Writes one run, or one run after another.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Writer {
    mode: Mode,
    carry: bool,
    /// None until the first activity tells it, where a recording is written.
    thread: Option<String>,
    /// What the thread is called where nobody tells.
    fallback: String,
    run: String,
    phase: Phase,
    /// Whether somebody asked for what is being done.
    turn: bool,
    runs: VecDeque<String>,
    runs_minted: u64,
    held: Vec<Activity>,
    held_bytes: usize,
    /// What only AG-UI has of the activity that comes next.
    detail: Option<Value>,
    /// What only AG-UI has of the run that comes next.
    before: Option<Value>,
    /// Whether what a person asked for was told with the run.
    told: bool,
    names: Names,
    items: Items,
    calls: Calls,
    waiting: Waiting,
    shared: Shared,
    usage: Vec<Usage>,
    /// The last activity's place and surroundings.
    seen: Option<(Origin, Arc<Context>)>,
    #[serde(skip)]
    notes: Notes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Mode {
    /// The one run that a client asked for.
    One,
    /// All runs; what waits for an answer ends one and begins the next.
    Recording,
    /// All runs, of which only what they leave behind counts.
    History,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Phase {
    /// No run yet, or between two.
    Idle,
    Running,
    /// The one run is over.
    Finished,
}

impl Writer {
    /// A writer for the run a client asked for.
    pub fn new(thread: &str, run: &str) -> Self {
        Self { run: run.to_owned(), ..Self::with(Mode::One, Some(thread.to_owned()), "") }
    }

    /// A writer for all runs of a session. The thread is the one the source names, else `thread`.
    pub fn recording(thread: &str) -> Self {
        Self::with(Mode::Recording, None, thread)
    }

    /// The same; facts that AG-UI has no field for travel in `metadata.banister`.
    #[must_use]
    pub fn carrying(self) -> Self {
        Self { carry: true, ..self }
    }

    fn with(mode: Mode, thread: Option<String>, fallback: &str) -> Self {
        Self {
            mode,
            carry: false,
            thread,
            fallback: fallback.to_owned(),
            run: String::new(),
            phase: Phase::Idle,
            turn: false,
            runs: VecDeque::new(),
            runs_minted: 0,
            held: Vec::new(),
            held_bytes: 0,
            detail: None,
            before: None,
            told: false,
            names: Names::default(),
            items: Items::default(),
            calls: Calls::default(),
            waiting: Waiting::default(),
            shared: Shared::default(),
            usage: Vec::new(),
            seen: None,
            notes: Notes::default(),
        }
    }

    /// Whether the terminal event of the one run was written.
    pub fn is_finished(&self) -> bool {
        self.phase == Phase::Finished
    }

    /// Whether a run is open.
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Running
    }

    /// Takes what the writer did unasked, and how much more of it there was.
    pub fn notes(&mut self) -> (Vec<Note>, u64) {
        self.notes.take()
    }

    /// Begins the run and restates what happened before it.
    pub fn begin(&mut self, history: &History) -> Vec<Value> {
        values(self.begun(history))
    }

    fn begun(&mut self, history: &History) -> Vec<Written> {
        if self.mode != Mode::One || self.phase != Phase::Idle {
            return Vec::new();
        }
        *self = Self {
            mode: Mode::One,
            carry: self.carry,
            thread: self.thread.take(),
            run: std::mem::take(&mut self.run),
            phase: Phase::Running,
            notes: Notes::default(),
            ..history.writer().clone()
        };
        let mut out = vec![self.started().into()];
        self.items.begin();
        self.calls.begin();
        let messages = history.messages();
        self.restated(&messages);
        if !messages.is_empty() {
            let messages = Value::Array(messages);
            out.push(Parts::new(Type::MessagesSnapshot, [("messages", messages.into())]).into());
        }
        if history.state().as_object().is_none_or(|state| !state.is_empty()) {
            let state = history.state().clone();
            let event = Parts::new(Type::StateSnapshot, [("snapshot", state.into())]);
            let before = out.len();
            self.push(event, &mut out);
            if out.len() > before {
                self.shared.told_state(history.state());
            }
        }
        self.items.resume(&mut out);
        self.waiting.pending.clear();
        self.release(&mut out);
        out
    }

    /// The events of one activity.
    pub fn write(&mut self, activity: &Activity) -> Vec<Value> {
        let mut out = Vec::new();
        self.write_to(activity, &mut out);
        values(out)
    }

    /// [`Writer::write`], for those who do not look into the events.
    pub fn write_to(&mut self, activity: &Activity, out: &mut Vec<Written>) {
        if self.mode == Mode::One && self.phase != Phase::Running {
            return;
        }
        if let What::Raw { protocol: Protocol::Agui, kind, event, .. } = &activity.what
            && is_detail(kind)
        {
            if kind == Type::RunStarted.name() {
                self.before = Some(event.clone());
            } else {
                self.detail = Some(event.clone());
            }
            return;
        }
        self.remember(activity);
        let of_result = self.set_aside(activity);
        let before = out.len();
        if self.phase == Phase::Running || self.enter(activity, out) {
            self.happened(activity, out);
        }
        self.detail = of_result;
        self.stamp(out.get_mut(before..).unwrap_or_default());
    }

    /// Remembers where the stream stands. Tokens come by the thousand: nothing is cloned while nothing changes.
    fn remember(&mut self, activity: &Activity) {
        let Activity { origin, context, .. } = activity;
        match &mut self.seen {
            Some((place, known))
                if Arc::ptr_eq(known, context) && Arc::ptr_eq(&place.session, &origin.session) =>
            {
                (place.seq, place.time) = (origin.seq, origin.time);
            }
            seen => *seen = Some((origin.clone(), Arc::clone(context))),
        }
    }

    /// Ends the run in good order, where the turn did not.
    pub fn finish(&mut self, ending: Option<&Ending>, out: &mut Vec<Value>) {
        let mut events = Vec::new();
        self.end(ending, None, None, &mut events);
        out.extend(values(events));
    }

    /// Ends the run over what it waits for, if it waits and nothing else is open.
    pub fn interrupt(&mut self) -> Vec<Value> {
        let mut out = Vec::new();
        if self.is_open() && !self.waiting.open.is_empty() && !self.is_busy() {
            self.end(Some(&Ending::Suspended { asks: Vec::new() }), None, None, &mut out);
            self.stamp(&mut out);
        }
        values(out)
    }

    /// The stream is cut here: what is open is closed. It can go on.
    pub fn close(&mut self) -> Vec<Value> {
        let mut out = Vec::new();
        self.close_to(&mut out);
        values(out)
    }

    /// [`Writer::close`], for those who do not look into the events.
    pub fn close_to(&mut self, out: &mut Vec<Written>) {
        let before = out.len();
        if self.mode == Mode::Recording
            && self.phase == Phase::Idle
            && self.waiting.is_partly_covered()
            && let Some((origin, context)) = self.seen.clone()
        {
            // Answers that wait for others are told all the same.
            let what = What::SessionEnded { reason: None };
            self.start(&Activity { origin, context, what }, out);
        }
        let ending = if self.waiting.open.is_empty() {
            Ending::Failed {
                message: "the stream ends before the run does".to_owned(),
                code: Some("truncated".to_owned()),
                category: None,
            }
        } else {
            Ending::Suspended { asks: Vec::new() }
        };
        self.end(Some(&ending), None, None, out);
        self.stamp(out.get_mut(before..).unwrap_or_default());
    }

    /// Whether something is open that a run cannot end over.
    fn is_busy(&self) -> bool {
        self.items.is_busy() || self.calls.is_busy()
    }

    fn started(&self) -> Parts {
        Parts::new(
            Type::RunStarted,
            [
                ("threadId", self.thread().into()),
                ("runId", self.run.as_str().into()),
                ("protocolVersion", Field::Word(PROTOCOL_VERSION)),
            ],
        )
    }

    fn thread(&self) -> &str {
        self.thread.as_deref().unwrap_or(&self.fallback)
    }

    /// Keeps an activity until a run begins.
    fn hold(&mut self, activity: &Activity) {
        let bytes = serde_json::to_string(&activity.what).map_or(HELD_BYTES, |it| it.len());
        if self.held.len() >= HELD || self.held_bytes + bytes > HELD_BYTES {
            self.notes.add(NoteKind::Dropped, kind_of(&activity.what));
            return;
        }
        self.held_bytes += bytes;
        self.held.push(activity.clone());
    }

    /// Tells what waited for a run.
    fn release(&mut self, out: &mut Vec<Written>) {
        self.held_bytes = 0;
        for activity in std::mem::take(&mut self.held) {
            match &activity.what {
                // It ended before this run began.
                What::SessionEnded { .. } => self.custom(&activity, out),
                _ => self.happened(&activity, out),
            }
        }
    }

    fn happened(&mut self, activity: &Activity, out: &mut Vec<Written>) {
        match &activity.what {
            What::SessionStarted { .. }
            | What::StateChanged { .. }
            | What::Compacted { .. }
            | What::WorkspaceChanged { .. } => self.custom(activity, out),
            What::SessionEnded { .. } => {
                self.custom(activity, out);
                let by = "system".to_owned();
                self.end(Some(&Ending::Cancelled { by, reason: None }), None, None, out);
            }
            What::TurnStarted { request, .. } => {
                self.turn_started(activity, request.as_deref(), out);
            }
            What::TurnEnded { ending, summary, result, usage } => {
                for usage in usage {
                    self.used(usage);
                }
                self.end(Some(ending), summary.as_deref(), result.as_ref(), out);
            }
            What::Used { usage } => self.used(usage),
            What::StepStarted { name } => self.step_started(activity, name, out),
            What::StepEnded { name } => self.step_ended(activity, name, out),
            What::Said { message, role, text, last } => {
                let piece = TextPiece { message, role: Some(*role), text, last: *last };
                self.said(activity, piece, out);
            }
            What::Thought { message, text, last } => {
                self.said(activity, TextPiece { message, role: None, text, last: *last }, out);
            }
            What::ActionDrafted { id, tool, delta } => self.drafted(activity, id, tool, delta, out),
            What::ActionRequested { action, gate } => {
                self.requested(activity, action, gate.as_ref(), out);
            }
            What::ActionEnded { .. } => self.action_ended(activity, out),
            What::ActionDenied { action, by, reason } => {
                self.called(activity, action, None, out);
                self.refuse(activity, &action.id, reason.as_deref(), Some(by), out);
            }
            What::AskOpened { ask } => self.ask_opened(activity, ask, out),
            What::AskClosed { .. } => self.ask_closed(activity, out),
            What::SubagentStarted { .. } => self.subagent_started(activity, out),
            What::SubagentEnded { id, ending, result } => {
                self.subagent_ended(activity, id, ending, result.as_ref(), out);
            }
            What::StateSet { state } => self.state_set(activity, state, out),
            What::StatePatched { patch } => self.state_patched(activity, patch, out),
            What::MessagesSet { messages } => self.messages_set(messages, out),
            What::CardShown { .. } => self.card_shown(activity, out),
            What::CardPatched { id, kind, patch } => {
                self.card_patched(activity, id, kind, patch, out);
            }
            What::Progressed { .. }
            | What::Planned { .. }
            | What::HandedOff { .. }
            | What::Notified { .. }
            | What::Erred { .. } => self.own_card(activity, out),
            What::Raw { .. } => self.raw(activity, out),
        }
    }

    /// The subagent that did it, as it is called here.
    fn tag(&self, activity: &Activity) -> Option<String> {
        let id = activity.context.subagent.as_deref()?;
        Some(self.items.subagent(id).to_owned())
    }

    /// The id for something of the source.
    fn name(&mut self, activity: &Activity, kind: names::Kind, source: &str) -> Arc<str> {
        let derived = |n: u64| derived(activity, n, source);
        let author = match kind {
            // A card is whoever's shows it last.
            names::Kind::Card => None,
            _ => activity.context.subagent.as_deref(),
        };
        let (id, renamed) = self.names.name(kind, author, source, &derived);
        if renamed && !source.is_empty() {
            self.notes.add(NoteKind::Renamed, source);
        }
        id
    }

    /// An id of our own.
    fn mint(&mut self, activity: &Activity, kind: names::Kind, what: &str) -> Arc<str> {
        let id: Arc<str> = self.names.mint(&|_| false, &|n| derived(activity, n, what)).into();
        self.names.bring(&id, kind);
        id
    }

    /// Adds an event with what only AG-UI has of it, unless no client would take it.
    fn push(&mut self, mut event: Parts, out: &mut Vec<Written>) {
        event.metadata = self.metadata();
        if event.fits() {
            out.push(event.into());
        } else {
            self.notes.add(NoteKind::Dropped, event.kind.name());
        }
    }

    /// The metadata that the source gave what an event is about, once.
    fn metadata(&mut self) -> Option<Box<Map<String, Value>>> {
        let Some(Value::Object(detail)) = &mut self.detail else { return None };
        if !detail.contains_key("messageId") && !detail.contains_key("toolCallId") {
            return None;
        }
        match detail.shift_remove("metadata").map(text::redacted) {
            Some(Value::Object(mut metadata)) => {
                metadata.shift_remove(KEY);
                metadata.shift_remove("ag-ui");
                (!metadata.is_empty()).then(|| Box::new(metadata))
            }
            _ => None,
        }
    }

    /// A field of what only AG-UI has of the activity at hand.
    fn detail(&self, name: &str) -> Option<&Value> {
        self.detail.as_ref()?.get(name)
    }

    /// What an activity says, for where facts travel along.
    fn carried(&self, what: &What) -> Fields {
        let mut own = Fields::default();
        if self.carry
            && let Ok(what) = serde_json::to_value(what)
        {
            let what = text::redacted(what);
            if is_small(&what) {
                own.put("what", what);
            }
        }
        own
    }

    fn stamp(&self, out: &mut [Written]) {
        let Some((origin, _)) = self.seen.as_ref().filter(|_| self.mode == Mode::Recording) else {
            return;
        };
        let time = origin.time.as_millisecond();
        for event in out {
            if let Some(parts) = event.agui_mut() {
                parts.timestamp = Some(time);
            } else {
                event.change(|event| {
                    if let Some(fields) = event.as_object_mut() {
                        fields.insert("timestamp".into(), time.into());
                    }
                });
            }
        }
    }
}

fn values(events: Vec<Written>) -> Vec<Value> {
    events.into_iter().map(Written::into_value).collect()
}

/// Whether a value is small enough to travel along.
fn is_small(value: &Value) -> bool {
    most_value(value) <= CARRIED_BYTES || value.to_string().len() <= CARRIED_BYTES
}

/// How large the facts may be that travel along.
const CARRIED_BYTES: usize = 16 * 1024;

/// The largest piece of a text that goes into one event.
const PIECE_BYTES: usize = limits::MESSAGE_BYTES / 8;

fn derived(activity: &Activity, n: u64, what: &str) -> String {
    let origin = &activity.origin;
    let (seq, n) = (Decimal::of(origin.seq), Decimal::of(n));
    id::derive("msg_", &[&origin.session, seq.as_str(), what, n.as_str()])
}

/// Whether an event of AG-UI's own tells more of the activity that comes next.
fn is_detail(kind: &str) -> bool {
    let told = [
        Type::RunStarted,
        Type::TextMessageStart,
        Type::ToolCallStart,
        Type::ToolCallResult,
        Type::ReasoningMessageStart,
        Type::ActivitySnapshot,
        Type::ActivityDelta,
    ];
    told.into_iter().any(|it| it.name() == kind)
}

#[cfg(test)]
#[path = "write_tests.rs"]
mod tests;
