//! How runs make turns: what was asked, what waits, how it ended.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::other::enforced;
use super::{Reader, Sink, Turn, raw, time, trust};
use crate::activity::{Answer, Ending, Outcome, Reply, Usage, What};
use crate::agui::event::Type;
use crate::agui::input;
use crate::agui::retired::Retired;
use crate::check::shape::{says, text};
use crate::json::View;

/// How many ids of messages are remembered.
const HEARD: usize = 65_536;

/// What inputs said before the runs they asked for.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Asked {
    /// The run that an input asked for and that has not begun.
    run: Option<String>,
    request: Option<String>,
    messages: Vec<Value>,
    /// Whether its answers let the turn go on.
    resumed: bool,
    /// The message that was the last request: nobody asks twice with one message.
    last: Option<String>,
    /// The messages that were told already, as hashes of their ids.
    heard: BTreeSet<u64>,
}

impl Asked {
    /// Remembers a message, and tells whether it is new.
    pub(super) fn hear(&mut self, remembers: bool, id: &str) -> bool {
        if !remembers {
            return false;
        }
        if self.heard.len() >= HEARD {
            self.heard.clear();
        }
        let mut hash = DefaultHasher::new();
        id.hash(&mut hash);
        self.heard.insert(hash.finish())
    }
}

impl Reader {
    /// The input of a run, as a message of its own: it answers what waits, and is what the next run is asked for.
    pub(super) fn input(&mut self, event: View<'_>, sink: &mut Sink<'_>) {
        let is_input = event.get("messages").is_some_and(View::is_array);
        let (Some(thread), Some(run), true) =
            (text(event, "threadId"), text(event, "runId"), is_input)
        else {
            return;
        };
        self.speak(sink);
        let input = input::enforced(&event.to_value())
            .map_or_else(|_| event.to_value(), |(input, _)| input);
        self.thread = Some(thread.into_owned());
        if self.turn == Turn::Suspended {
            let before = self.run.replace(run.clone().into_owned());
            self.contexts = super::Contexts::default();
            self.asked.resumed = self.answer(&input, event, sink);
            if !self.asked.resumed {
                self.run = before;
                self.contexts = super::Contexts::default();
            }
        }
        self.request(&input);
        self.asked.run = Some(run.into_owned());
    }

    /// Takes over what an input asks for.
    fn request(&mut self, input: &Value) {
        let messages = input.get("messages").and_then(Value::as_array);
        let messages = messages.map(Vec::as_slice).unwrap_or_default();
        let is_user = |message: &&Value| message.get("role").is_some_and(|role| role == "user");
        self.asked.request = None;
        if let Some(message) = messages.iter().rev().find(is_user) {
            let id = message.get("id").and_then(Value::as_str).map(str::to_owned);
            if id.is_none() || id != self.asked.last {
                self.asked.request = message.get("content").map(flat);
            }
            self.asked.last = id;
        }
        self.asked.messages.clear();
        for message in messages.iter().filter(|_| self.trusts) {
            if let Some(id) = message.get("id").and_then(Value::as_str)
                && self.asked.hear(true, id)
            {
                self.asked.messages.push(message.clone());
            }
        }
    }

    /// Closes what the answers of an input close; whether there were any that count.
    fn answer(&mut self, input: &Value, event: View<'_>, sink: &mut Sink<'_>) -> bool {
        let mut any = false;
        for answer in input::answers(input) {
            let Some(ask) = self.asks.get(&answer.token) else { continue };
            let answer = Answer { time: time(event), ..input::suited(answer, ask) };
            // What does not count leaves the ask to be withdrawn, never accepted.
            if let Ok(what) = self.asks.answer(&answer) {
                any = true;
                self.tell(None, what, sink);
            }
        }
        any
    }

    /// Withdraws what still waits.
    fn withdraw(&mut self, sink: &mut Sink<'_>) {
        let tokens: Vec<String> = self.asks.iter().map(|ask| ask.token.clone()).collect();
        for token in tokens {
            let by = Some("agent".to_owned());
            let answer = Answer { token, reply: Reply::Withdraw, by, message: None, time: None };
            if let Ok(what) = self.asks.answer(&answer) {
                self.tell(None, what, sink);
            }
        }
    }

    pub(super) fn run_started(&mut self, event: View<'_>, sink: &mut Sink<'_>) {
        let whole = event.get("input").is_some_and(View::is_object).then(|| enforced(event));
        let input = whole.as_ref().and_then(|event| event.get("input"));
        let (thread, run) = (text(event, "threadId"), text(event, "runId"));
        let mut resumed = std::mem::take(&mut self.asked.resumed);
        let before = std::mem::replace(&mut self.run, run.map(Cow::into_owned));
        if thread.is_some() {
            self.thread = thread.map(Cow::into_owned);
        }
        self.contexts = super::Contexts::default();
        let first = sink.out.len();
        if let (Turn::Suspended, Some(input)) = (self.turn, input) {
            resumed |= self.answer(input, event, sink);
        }
        match input {
            Some(input) => self.request(input),
            None if self.asked.run == self.run => {}
            None => {
                self.asked.request = None;
                self.asked.messages.clear();
            }
        }
        self.asked.run = None;
        if resumed {
            self.withdraw(sink);
        } else if self.turn == Turn::Suspended {
            // Nobody waits for the answers any more: the turn before this one is over.
            let run = std::mem::replace(&mut self.run, before);
            self.contexts = super::Contexts::default();
            self.withdraw(sink);
            let ending = Ending::Cancelled { by: "user".to_owned(), reason: None };
            self.tell(None, ended(ending, None, Vec::new()), sink);
            self.run = run;
            self.contexts = super::Contexts::default();
        }
        let own = self.own(event.get("metadata"));
        self.tell_input(event, if resumed { first } else { sink.out.len() }, sink);
        self.turn = Turn::Open;
        let request = self.asked.request.take();
        if !resumed {
            let summary = own.and_then(|own| trust::word(&own, "summary"));
            self.tell(None, What::TurnStarted { request, summary }, sink);
        }
    }

    /// Tells the messages that came with an input, for who can put them back, before the run goes on.
    fn tell_input(&mut self, event: View<'_>, at: usize, sink: &mut Sink<'_>) {
        let messages = std::mem::take(&mut self.asked.messages);
        let parent = text(event, "parentRunId");
        if !self.trusts || messages.is_empty() && parent.is_none() {
            return;
        }
        let mut fields = Map::new();
        fields.insert("type".into(), Type::RunStarted.name().into());
        fields.insert("messages".into(), Value::Array(messages));
        if let Some(parent) = parent {
            fields.insert("parentRunId".into(), json!(parent));
        }
        self.tell(None, raw(Type::RunStarted.name(), Value::Object(fields)), sink);
        if let Some(told) = sink.out.get_mut(at..) {
            told.rotate_right(1);
        }
    }

    pub(super) fn run_finished(&mut self, event: View<'_>, sink: &mut Sink<'_>) {
        let outcome = event.get("outcome").filter(|outcome| outcome.is_object());
        let is = |kind| outcome.is_some_and(|outcome| says(outcome, "type", kind));
        let interrupts = outcome.and_then(|outcome| outcome.get("interrupts"));
        self.cut_calls(is("interrupt"), sink);
        let ending = if is("interrupt") {
            let mut asks = Vec::new();
            for interrupt in interrupts.into_iter().flat_map(View::items) {
                asks.extend(self.interrupted(interrupt, sink));
            }
            self.turn = Turn::Suspended;
            Ending::Suspended { asks }
        } else {
            self.turn = Turn::None;
            self.asks = crate::activity::Asks::default();
            if is("cancelled") {
                Ending::Cancelled { by: "producer".to_owned(), reason: None }
            } else {
                Ending::Completed
            }
        };
        let result = event.get("result").filter(|result| !result.is_null()).map(View::to_value);
        self.end(event, ended(ending, result, usage(event)), sink);
    }

    pub(super) fn run_error(&mut self, event: View<'_>, sink: &mut Sink<'_>) {
        self.cut_calls(false, sink);
        self.turn = Turn::None;
        self.asks = crate::activity::Asks::default();
        let ending = Ending::Failed {
            message: text(event, "message").unwrap_or_default().into_owned(),
            code: text(event, "code").map(Cow::into_owned),
            category: None,
        };
        self.end(event, ended(ending, None, usage(event)), sink);
    }

    fn end(&mut self, event: View<'_>, what: What, sink: &mut Sink<'_>) {
        let what = match self.own(event.get("metadata")) {
            Some(own) => trust::turn_ended(&own, what),
            None => what,
        };
        self.tell(None, what, sink);
        self.texts.clear();
        self.thoughts.clear();
        self.retired = Retired::default();
    }

    /// An ask that Banister showed itself; none where it says nothing new, or nothing that may be taken for true.
    pub(super) fn own_ask(&mut self, what: What, id: &str) -> Option<What> {
        match &what {
            What::AskOpened { ask } => {
                if ask.id != id || self.asks.get(id).is_some() {
                    return None;
                }
                let booked = crate::activity::Ask { token: id.to_owned(), ..(**ask).clone() };
                self.asks.open(booked);
            }
            // Only an answer accepts.
            What::AskClosed { outcome: Outcome::Accepted, .. } => return None,
            What::AskClosed { .. } => drop(self.asks.remove(id)?),
            _ => {}
        }
        Some(what)
    }
}

fn ended(ending: Ending, result: Option<Value>, usage: Vec<Usage>) -> What {
    What::TurnEnded { ending, summary: None, result, usage }
}

fn usage(event: View<'_>) -> Vec<Usage> {
    let entries = event.get("usage").into_iter().flat_map(View::items);
    let entries = entries.filter(|entry| entry.is_object());
    entries
        .map(|entry| {
            let count = |name| entry.get(name).and_then(View::as_u64);
            Usage {
                provider: text(entry, "provider").map(Cow::into_owned),
                model: text(entry, "model").map(Cow::into_owned),
                input: count("inputTokens"),
                output: count("outputTokens"),
                total: count("totalTokens"),
                reasoning: count("reasoningTokens"),
                cache_read: count("cachedInputTokens"),
                cache_write: count("cacheWriteInputTokens"),
            }
        })
        .collect()
}

/// The text of a content: itself, or its text parts in order.
fn flat(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect()
        }
        _ => String::new(),
    }
}
