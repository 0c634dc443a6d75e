//! What a run leaves behind: the messages, the shared state, what a person is asked.
//!
//! A [`Reducer`] takes the steps of runs one after another and holds what `agent.messages` and `agent.state` of the
//! reference client would be. It expects steps that are well-formed and in order; whatever else comes, it does not
//! fail, and tells in a [`Warning`] what it left out. A step costs what the event weighs, however long the messages,
//! the history and the state are.
//!
//! It deliberately does not follow the reference client in one respect. There, messages with the same id turn into one
//! and the same object when a snapshot names that id, and change together from then on; here each stays its own, and
//! copies that together would weigh more than a message can are left out. Metadata of events that build nothing
//! belongs to those events and is not kept.

use serde_json::{Map, Value};

use super::event::Type;
use super::patch;
use super::step::{Item, Opener, Step};
use crate::check::shape::quote;
use crate::json::View;
use crate::limits::MESSAGE_BYTES;
use history::{History, Owned};
use message::Kind;
use tally::Tally;

mod history;
mod message;
mod order;
mod places;
mod tally;

pub use message::{Call, Message};

/// Where a message is held, until a snapshot drops it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key(order::Slot);

/// What a step changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Change {
    /// Nothing that is kept.
    #[default]
    None,
    /// One message, which may be new.
    Message(Key),
    /// Any number of messages.
    Messages,
    /// The shared state.
    State,
    /// How the run ended, or that another one began.
    Outcome,
}

/// Something that a step said and that could not be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Where in the event.
    pub pointer: &'static str,
    /// What was not done, and why.
    pub message: String,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Well.
    Success,
    /// It waits for answers: see [`Reducer::pending_interrupts`].
    Interrupt,
    /// Stopped on purpose.
    Cancelled,
    /// It failed.
    Error {
        /// What went wrong.
        message: String,
        /// The same for programs.
        code: Option<String>,
    },
}

/// Messages and state, as runs build them.
#[derive(Debug, Clone)]
pub struct Reducer {
    history: History,
    state: Value,
    interrupts: Vec<Value>,
    tally: Tally,
    result: Option<Value>,
    outcome: Option<Outcome>,
    /// How much patches may still copy, until a snapshot of the state.
    copies: usize,
}

/// How much patches may copy between two snapshots of the state, in about the bytes it takes in memory.
const COPIES: usize = 8 * MESSAGE_BYTES;

impl Default for Reducer {
    fn default() -> Self {
        Self::new()
    }
}

impl Reducer {
    /// No messages, and an empty state.
    pub fn new() -> Self {
        Self::with(Vec::new(), Value::Object(Map::new()))
    }

    /// The messages and the state that a conversation has so far.
    ///
    /// ```
    /// use banister_events::agui::reduce::Reducer;
    /// let message = serde_json::json!({"id": "m1", "role": "user", "content": "Hello"});
    /// let reducer = Reducer::with(vec![message.clone()], serde_json::json!({"page": 1}));
    /// assert_eq!(reducer.messages_value(), serde_json::json!([message]));
    /// assert_eq!(reducer.state()["page"], 1);
    /// ```
    pub fn with(messages: Vec<Value>, state: Value) -> Self {
        let mut history = History::default();
        for message in messages {
            history.push(Message::read(message));
        }
        Self {
            history,
            state,
            interrupts: Vec::new(),
            tally: Tally::default(),
            result: None,
            outcome: None,
            copies: COPIES,
        }
    }

    /// All messages, in order.
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        self.history.iter()
    }

    /// All messages, as the protocol writes them.
    pub fn messages_value(&self) -> Value {
        self.messages().map(Message::to_value).collect()
    }

    /// One message that a [`Change`] named.
    pub fn message(&self, key: Key) -> Option<&Message> {
        self.history.get(key.0)
    }

    /// The shared state.
    pub fn state(&self) -> &Value {
        &self.state
    }

    /// What a person has to answer before the next run, as the protocol writes it.
    pub fn pending_interrupts(&self) -> &[Value] {
        &self.interrupts
    }

    /// The calls of this run that the application has to answer: those the run's end named, else those that were
    /// started and have no result yet.
    pub fn pending_tool_calls(&self) -> impl Iterator<Item = &str> {
        self.tally.pending()
    }

    /// What the last run that ended well gave.
    pub fn result(&self) -> Option<&Value> {
        self.result.as_ref()
    }

    /// How the last run ended; none while it has not.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// Does what a step says.
    pub(crate) fn apply(&mut self, step: &Step<'_>, warnings: &mut Vec<Warning>) -> Change {
        match step {
            Step::Append { item: Item::Tool, id, delta, metadata, .. } => {
                self.change_call(id, warnings, |call| {
                    call.arguments.push_str(delta);
                    call.merge(*metadata);
                    true
                })
            }
            Step::Append { id, delta, metadata, .. } => {
                self.change_message(id, warnings, |message| {
                    message.append(delta);
                    message.merge(*metadata);
                    true
                })
            }
            Step::Open { item: Item::Span, .. } | Step::Close { item: Item::Span, .. } => {
                Change::None
            }
            Step::Open { item: Item::Tool, id, tag, opener, metadata } => {
                self.open_call(id, tag.as_deref(), opener, *metadata, warnings)
            }
            Step::Open { item, id, tag, opener, metadata } => {
                let role = if *item == Item::Reasoning { "reasoning" } else { "assistant" };
                let role = opener.role.as_deref().unwrap_or(role);
                if self.history.find(id).is_some() {
                    return self.change_message(id, warnings, |known| known.merge(*metadata));
                }
                let mut message = Message::new(id, role);
                message.append("");
                message.set("name", opener.name.as_deref());
                message.set("subagentRunId", tag.as_deref());
                message.merge(*metadata);
                Change::Message(Key(self.history.push(message)))
            }
            Step::Close { item: Item::Tool, id, metadata, .. } => {
                self.change_call(id, warnings, |call| call.merge(*metadata))
            }
            Step::Close { id, metadata, .. } => {
                self.change_message(id, warnings, |message| message.merge(*metadata))
            }
            Step::Event { kind, event } => self.event(*kind, *event, warnings),
        }
    }

    fn event(&mut self, kind: Type, event: View<'_>, warnings: &mut Vec<Warning>) -> Change {
        match kind {
            Type::ToolCallResult => self.answer(event),
            Type::StateSnapshot => {
                let Some(snapshot) = event.get("snapshot") else { return Change::None };
                self.state = snapshot.to_value();
                self.copies = COPIES;
                Change::State
            }
            Type::StateDelta => {
                let Some(delta) = event.get("delta") else { return Change::None };
                match patch::apply_within(&mut self.state, delta, &mut self.copies) {
                    Ok(()) => Change::State,
                    Err(error) => {
                        let message = format!("the state is not patched: {error}");
                        warnings.push(Warning { pointer: "/delta", message });
                        Change::None
                    }
                }
            }
            Type::MessagesSnapshot => self.reconcile(event, warnings),
            Type::ActivitySnapshot => self.show(event),
            Type::ActivityDelta => self.patch_activity(event, warnings),
            Type::ReasoningEncryptedValue => self.encrypt(event),
            Type::RunStarted => self.start(event),
            Type::RunFinished => {
                self.finish(event);
                Change::Outcome
            }
            Type::RunError => {
                let text = |name| Some(event.get(name)?.as_str()?.into_owned());
                let message = text("message").unwrap_or_default();
                self.outcome = Some(Outcome::Error { message, code: text("code") });
                Change::Outcome
            }
            // Pieces are steps of their own, and the rest builds nothing.
            _ => Change::None,
        }
    }

    /// Changes a message that is no activity; `change` says whether there was anything to change.
    #[inline]
    fn change_message(
        &mut self,
        id: &str,
        warnings: &mut Vec<Warning>,
        change: impl FnOnce(&mut Message) -> bool,
    ) -> Change {
        let slot = self.history.find(id);
        let known = slot.and_then(|slot| Some((slot, self.history.get_mut(slot)?)));
        let message = match known {
            Some((slot, message)) if message.kind != Kind::Activity => {
                return if change(message) { Change::Message(Key(slot)) } else { Change::None };
            }
            Some(_) => format!("the message {} is an activity, which text cannot join", quote(id)),
            None => format!("there is no message {}", quote(id)),
        };
        warnings.push(Warning { pointer: "/messageId", message });
        Change::None
    }

    /// Changes a call; `change` says whether there was anything to change.
    #[inline]
    fn change_call(
        &mut self,
        id: &str,
        warnings: &mut Vec<Warning>,
        change: impl FnOnce(&mut Call) -> bool,
    ) -> Change {
        let Some((slot, call)) = self.history.call_mut(id) else {
            let message = format!("no message carries the tool call {}", quote(id));
            warnings.push(Warning { pointer: "/toolCallId", message });
            return Change::None;
        };
        if change(call) { Change::Message(Key(slot)) } else { Change::None }
    }

    fn open_call(
        &mut self,
        id: &str,
        tag: Option<&str>,
        opener: &Opener<'_>,
        metadata: Option<View<'_>>,
        warnings: &mut Vec<Warning>,
    ) -> Change {
        self.tally.start(id);
        let name = opener.name.as_deref().unwrap_or_default();
        if let Some((slot, call)) = self.history.call_mut(id) {
            let renamed = call.name != name;
            if renamed {
                let message = format!(
                    "the tool call {} was one of {} and becomes one of {}",
                    quote(id),
                    quote(&call.name),
                    quote(name)
                );
                warnings.push(Warning { pointer: "/toolCallName", message });
                name.clone_into(&mut call.name);
            }
            let merged = call.merge(metadata);
            return if renamed || merged { Change::Message(Key(slot)) } else { Change::None };
        }
        let mut call = Call::new(id, name);
        call.merge(metadata);
        let slot = self.carrier(id, tag, opener.parent.as_deref(), warnings);
        self.history.carry(slot, call);
        Change::Message(Key(slot))
    }

    /// The message that is to carry a new call: the parent if it can, else a new one.
    fn carrier(
        &mut self,
        call: &str,
        tag: Option<&str>,
        parent: Option<&str>,
        warnings: &mut Vec<Warning>,
    ) -> order::Slot {
        let mut id = call;
        // An empty id names no parent.
        if let Some(parent) = parent.filter(|parent| !parent.is_empty()) {
            let slot = self.history.find(parent);
            match slot.and_then(|slot| Some((slot, self.history.get(slot)?))) {
                Some((slot, message)) if message.kind == Kind::Assistant => return slot,
                Some((_, message)) => {
                    let message = format!(
                        "the parent {} is a message of role {}, which carries no calls; \
                         a new message does",
                        quote(parent),
                        quote(message.role())
                    );
                    warnings.push(Warning { pointer: "/parentMessageId", message });
                }
                None => id = parent,
            }
        }
        let mut message = Message::new(id, "assistant");
        if self.history.find(id).is_none() {
            message.set("subagentRunId", tag);
        }
        self.history.push(message)
    }

    fn answer(&mut self, event: View<'_>) -> Change {
        let text = |name| event.get(name).and_then(View::as_str);
        let (Some(id), Some(call)) = (text("messageId"), text("toolCallId")) else {
            return Change::None;
        };
        self.tally.answer(&call);
        let mut message = Message::new(&id, "tool");
        message.set("toolCallId", Some(&call));
        message.content = event.get("content").map(View::to_value);
        message.set("subagentRunId", text("subagentRunId").as_deref());
        message.merge(event.get("metadata"));
        let slot = match self.history.carrier(&call) {
            Some(carrier) => self.history.answer(carrier, message),
            None => self.history.push(message),
        };
        Change::Message(Key(slot))
    }

    fn reconcile(&mut self, event: View<'_>, warnings: &mut Vec<Warning>) -> Change {
        let Some(messages) = event.get("messages").filter(|messages| messages.is_array()) else {
            return Change::None;
        };
        let messages = messages
            .items()
            .map(|message| (Message::read(message.to_value()), message.raw().len()))
            .collect();
        let left_out = self.history.reconcile(messages, &owned(event));
        if left_out > 0 {
            let message = format!(
                "{left_out} messages are dropped, as their ids are not unique and \
                 their copies would weigh too much"
            );
            warnings.push(Warning { pointer: "/messages", message });
        }
        Change::Messages
    }

    fn show(&mut self, event: View<'_>) -> Change {
        let text = |name| event.get(name).and_then(View::as_str);
        let (Some(id), Some(activity)) = (text("messageId"), text("activityType")) else {
            return Change::None;
        };
        let tag = text("subagentRunId");
        let metadata = event.get("metadata");
        let content = || event.get("content").map(View::to_value);
        let replace = event.get("replace").and_then(View::as_bool).unwrap_or(true);
        let fresh = || {
            let mut message = Message::new(&id, "activity");
            message.set("activityType", Some(&activity));
            message.content = content();
            message.set("subagentRunId", tag.as_deref());
            message.merge(metadata);
            message
        };
        let Some(slot) = self.history.find(&id) else {
            return Change::Message(Key(self.history.push(fresh())));
        };
        let is_activity =
            self.history.get(slot).is_some_and(|message| message.kind == Kind::Activity);
        match (is_activity, replace) {
            (true, true) => self.history.retype(slot, &activity),
            (true, false) => {}
            (false, true) => {
                self.history.replace(slot, fresh());
                return Change::Message(Key(slot));
            }
            (false, false) => return Change::None,
        }
        let Some(message) = self.history.get_mut(slot) else { return Change::None };
        if replace {
            message.content = content();
            message.set("subagentRunId", tag.as_deref());
        }
        let merged = message.merge(metadata);
        if replace || merged { Change::Message(Key(slot)) } else { Change::None }
    }

    fn patch_activity(&mut self, event: View<'_>, warnings: &mut Vec<Warning>) -> Change {
        let text = |name| event.get(name).and_then(View::as_str);
        let (Some(id), Some(activity)) = (text("messageId"), text("activityType")) else {
            return Change::None;
        };
        // What is patched may have come and gone before somebody joined.
        let Some(slot) = self.history.find(&id) else { return Change::None };
        let Some(message) = self.history.get_mut(slot) else { return Change::None };
        if message.kind != Kind::Activity {
            let message = format!("the message {} is no activity", quote(&id));
            warnings.push(Warning { pointer: "/messageId", message });
            return Change::None;
        }
        let merged = message.merge(event.get("metadata"));
        // Content that was patched away begins anew.
        let mut anew = Some(Value::Object(Map::new()));
        let gone = matches!(message.content, None | Some(Value::Null));
        let content = if gone { &mut anew } else { &mut message.content };
        let patched = match (content, event.get("patch")) {
            (Some(content), Some(patch)) => patch::apply_within(content, patch, &mut self.copies),
            _ => Ok(()),
        };
        match patched {
            Ok(()) => {
                if gone {
                    message.content = anew;
                }
                self.history.retype(slot, &activity);
                Change::Message(Key(slot))
            }
            Err(error) => {
                let message = format!("the activity {} is not patched: {error}", quote(&id));
                warnings.push(Warning { pointer: "/patch", message });
                if merged { Change::Message(Key(slot)) } else { Change::None }
            }
        }
    }

    fn encrypt(&mut self, event: View<'_>) -> Change {
        let text = |name| event.get(name).and_then(View::as_str);
        let (Some(id), Some(value)) = (text("entityId"), text("encryptedValue")) else {
            return Change::None;
        };
        if event.get("subtype").is_some_and(|subtype| subtype.is("tool-call")) {
            let Some((slot, call)) = self.history.call_mut(&id) else { return Change::None };
            call.set("encryptedValue", &value);
            return Change::Message(Key(slot));
        }
        let slot = self.history.find(&id);
        match slot.and_then(|slot| Some((slot, self.history.get_mut(slot)?))) {
            Some((slot, message)) if message.kind != Kind::Activity => {
                message.set("encryptedValue", Some(&value));
                Change::Message(Key(slot))
            }
            _ => Change::None,
        }
    }

    fn start(&mut self, event: View<'_>) -> Change {
        self.tally = Tally::default();
        self.outcome = None;
        let messages = event.get("input").and_then(|input| input.get("messages"));
        let mut change = Change::Outcome;
        for message in messages.into_iter().flat_map(View::items) {
            let id = message.get("id").and_then(View::as_str).unwrap_or_default();
            if self.history.find(&id).is_none() {
                self.history.push(Message::read(message.to_value()));
                change = Change::Messages;
            }
        }
        change
    }

    fn finish(&mut self, event: View<'_>) {
        let outcome = event.get("outcome");
        let is =
            |name| outcome.and_then(|outcome| outcome.get("type")).is_some_and(|own| own.is(name));
        let listed =
            |name| outcome.and_then(|outcome| outcome.get(name)).into_iter().flat_map(View::items);
        self.interrupts.clear();
        self.tally.named.clear();
        self.outcome = Some(if is("interrupt") {
            self.interrupts = listed("interrupts")
                .map(|interrupt| match interrupt.to_value() {
                    Value::Object(fields) => Value::Object(message::without_null_tag(fields)),
                    other => other,
                })
                .collect();
            Outcome::Interrupt
        } else if is("cancelled") {
            Outcome::Cancelled
        } else {
            self.result = event.get("result").map(View::to_value);
            if is("success") {
                let names = listed("pendingToolCallIds").filter_map(View::as_str);
                self.tally.named = names.map(|name| name.into_owned().into()).collect();
            }
            Outcome::Success
        });
    }
}

/// Which activities a snapshot is complete for, by a convention of the reference client.
fn owned(event: View<'_>) -> Owned {
    let declared = event.get("metadata").and_then(|metadata| metadata.get("@ag-ui/client"));
    let Some(declared) = declared else { return Owned::Inferred };
    if !declared.is_object() {
        return Owned::Types(Vec::new());
    }
    match declared.get("authoritativeActivityTypes") {
        None => Owned::Inferred,
        Some(types) if types.is_null() => Owned::All,
        Some(types) => {
            let types = types.items().map(|name| Some(name.as_str()?.into_owned()));
            // A list that is not one of names owns nothing.
            Owned::Types(types.collect::<Option<_>>().unwrap_or_default())
        }
    }
}

#[cfg(test)]
#[path = "reduce_tests.rs"]
mod tests;
