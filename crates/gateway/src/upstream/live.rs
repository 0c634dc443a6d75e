//! One run as its clients hear it: every event in memory until it is over, and what they make together.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use banister_events::agui::follow::Follower;
use banister_events::agui::reduce::{Message, Reducer};
use banister_events::agui::rejoin::{self, OpenItems, RunEdge};
use bytes::Bytes;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::call::Sent;
use crate::deliver::reconcile::{dropping, sent};

/// One run of a thread.
#[derive(Debug)]
pub(crate) struct Live {
    told: Mutex<RunLog>,
    /// Rings when something was told.
    bell: watch::Sender<()>,
    listeners: AtomicUsize,
    pub(super) called_off: CancellationToken,
}

#[derive(Debug)]
struct RunLog {
    /// The runs that this is: as it was asked for, and as the agent calls it.
    runs: HashSet<String>,
    /// Messages and state, as far as the events have come.
    follower: Follower,
    /// All that was told; empty once it is over and somebody heard its end.
    events: Vec<Bytes>,
    bytes: usize,
    /// The last run's start, and its ends.
    start: Option<Bytes>,
    ends: Vec<Bytes>,
    open: OpenItems,
    over: bool,
    heard: bool,
    /// Whether every card of the thread is known here. Clients do not send theirs.
    all_cards: bool,
}

impl Live {
    /// A run of which nothing was told yet, after the run before.
    pub(super) fn new(input: &Value, before: Option<&Self>) -> Self {
        let messages = input.get("messages").and_then(Value::as_array).cloned().unwrap_or_default();
        let is_new = |message: &Value| {
            let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
            !matches!(role, "assistant" | "tool" | "reasoning")
        };
        let all_cards =
            messages.iter().all(is_new) || before.is_some_and(|before| before.lock().all_cards);
        let messages = match before {
            Some(before) => with_cards(messages, before.lock().follower.reducer()),
            None => messages,
        };
        let state = input.get("state").filter(|state| !state.is_null()).cloned();
        let reducer = Reducer::with(messages, state.unwrap_or_else(|| Value::Object(Map::new())));
        let run = input.get("runId").and_then(Value::as_str).unwrap_or_default();
        let told = RunLog {
            runs: HashSet::from([run.to_owned()]),
            follower: Follower::new(reducer),
            events: Vec::new(),
            bytes: 0,
            start: None,
            ends: Vec::new(),
            open: OpenItems::default(),
            over: false,
            heard: false,
            all_cards,
        };
        Self {
            told: Mutex::new(told),
            bell: watch::Sender::new(()),
            listeners: AtomicUsize::new(0),
            called_off: CancellationToken::new(),
        }
    }

    /// Tells events that are history by now.
    pub(super) fn tell(&self, events: Vec<Sent>, over: bool) {
        let mut told = self.lock();
        for event in events {
            told.take(&event);
        }
        told.over |= over;
        drop(told);
        self.bell.send_replace(());
    }

    /// The events after the first `seen`, and whether they are the last.
    pub(crate) fn after(&self, seen: usize) -> (Vec<Bytes>, bool) {
        let told = self.lock();
        (told.events.iter().skip(seen).cloned().collect(), told.over)
    }

    /// What somebody is told who comes back with these messages, how many events that stands for, and whether it is all.
    pub(crate) fn again(&self, input: &Value) -> (Vec<Bytes>, usize, bool) {
        let told = self.lock();
        (told.again(input), told.events.len(), told.over)
    }

    /// The messages so far, without cards, and the state: what a client sends with the next run.
    pub(super) fn conversation(&self) -> (Vec<Value>, Value) {
        let told = self.lock();
        let reducer = told.follower.reducer();
        let messages = reducer.messages().filter(|message| message.role() != "activity");
        (messages.map(Message::to_value).collect(), reducer.state().clone())
    }

    /// Somebody heard the end.
    pub(crate) fn end_heard(&self) {
        self.lock().heard = true;
    }

    pub(crate) fn bell(&self) -> watch::Receiver<()> {
        self.bell.subscribe()
    }

    /// Counts somebody who listens, until that is dropped.
    pub(crate) fn listen(self: &Arc<Self>) -> Listener {
        self.listeners.fetch_add(1, Ordering::SeqCst);
        Listener(Arc::clone(self))
    }

    /// Whether anybody listens.
    pub(super) fn is_heard(&self) -> bool {
        self.listeners.load(Ordering::SeqCst) > 0
    }

    pub(super) fn is_over(&self) -> bool {
        self.lock().over
    }

    /// Whether somebody may still wait for it: it is under way, or nobody heard its end.
    pub(super) fn is_due(&self) -> bool {
        let told = self.lock();
        !told.over || !told.heard
    }

    /// Whether it is the run with this id.
    pub(crate) fn is_run(&self, id: &str) -> bool {
        self.lock().runs.contains(id)
    }

    /// Whether an input says nothing that this run does not have.
    pub(super) fn knows_all_of(&self, input: &Value) -> bool {
        if input.get("resume").and_then(Value::as_array).is_some_and(|resume| !resume.is_empty()) {
            return false;
        }
        let told = self.lock();
        let known: HashSet<&str> = told.follower.reducer().messages().map(Message::id).collect();
        let messages = input.get("messages").and_then(Value::as_array);
        messages.into_iter().flatten().all(|message| {
            message.get("id").and_then(Value::as_str).is_some_and(|id| known.contains(id))
        })
    }

    /// Nobody waits for it any more.
    pub(super) fn call_off(&self) {
        self.called_off.cancel();
    }

    /// Comes back when it is over.
    pub(super) async fn over(&self) {
        let mut bell = self.bell.subscribe();
        while !self.is_over() && bell.changed().await.is_ok() {}
    }

    pub(super) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    fn lock(&self) -> MutexGuard<'_, RunLog> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who listens.
#[derive(Debug)]
pub(crate) struct Listener(Arc<Live>);

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.listeners.fetch_sub(1, Ordering::SeqCst);
    }
}

impl RunLog {
    fn take(&mut self, event: &Sent) {
        let bytes = event.bytes().clone();
        self.bytes += bytes.len();
        // What breaks the protocol passes only where it is to pass; from there on nobody knows what it means.
        if let Some(event) = event.message() {
            match RunEdge::of(event) {
                Some(RunEdge::Started(run)) => {
                    self.start = Some(bytes.clone());
                    self.ends.clear();
                    self.runs.extend(run);
                }
                Some(RunEdge::Ended) => self.ends.push(bytes.clone()),
                None => {}
            }
            self.open.take(event);
            self.follower.message(event).ok();
        } else {
            self.follower.event(&bytes).ok();
        }
        self.events.push(bytes);
    }

    fn again(&self, input: &Value) -> Vec<Bytes> {
        let Some(start) = &self.start else { return self.events.clone() };
        let mut events = vec![start.clone()];
        let reducer = self.follower.reducer();
        let messages: Vec<Value> = reducer.messages().map(Message::to_value).collect();
        let first = dropping(&messages, &sent(input), self.all_cards);
        events.extend(first.map(|first| first.to_string().into()));
        events.push(rejoin::messages(&messages, self.all_cards).bytes().clone());
        if !reducer.state().is_null() {
            events.push(rejoin::state(reducer.state()).bytes().clone());
        }
        if self.ends.is_empty() {
            events.extend(self.open.again().map(|event| event.bytes().clone()));
        }
        events.extend(self.ends.iter().cloned());
        events
    }
}

/// The messages of an input with the cards that the client has besides, each after what it came after.
fn with_cards(messages: Vec<Value>, before: &Reducer) -> Vec<Value> {
    let has: HashSet<String> = messages
        .iter()
        .filter_map(|message| Some(message.get("id")?.as_str()?.to_owned()))
        .collect();
    let known: Vec<&Message> = before.messages().collect();
    let Some(last) = known.iter().rposition(|message| has.contains(message.id())) else {
        return messages;
    };
    let mut all: Vec<Value> = Vec::new();
    let mut rest = messages.into_iter();
    for (at, message) in known.iter().enumerate() {
        if message.role() == "activity" {
            all.push(message.to_value());
        } else if has.contains(message.id()) && at <= last {
            for next in rest.by_ref() {
                let found = next.get("id").is_some_and(|id| id == message.id());
                all.push(next);
                if found {
                    break;
                }
            }
        }
    }
    all.extend(rest);
    all
}
