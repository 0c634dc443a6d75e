//! AG-UI events → activities.
//!
//! Total and incremental: chunks are taken apart as clients do, retired types become their successors, what the common
//! vocabulary has no word for becomes [`What::Raw`]. A run that waits for answers suspends its turn, and the run that
//! brings them goes on with it. Memory is bounded, and a reader can be saved and resumed at any event.
//!
//! [`Reader::default`] takes nothing that Banister itself added for true. [`Reader::trusting`] restores it, and tells
//! what only AG-UI has (authors, parents, metadata) as [`What::Raw`] just before the activity it belongs to, so that
//! the writer puts it back. Neither makes an answer of anything but `resume`.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::event::Type;
use super::expand::Lanes;
use super::retired::Retired;
use super::step::{Item, Opener, Step};
use crate::activity::{Activity, Asks, Context, Gate, Origin, Role, What};
use crate::event::Protocol;
use crate::json::View;
use crate::limits::MESSAGE_BYTES;

mod ask;
mod calls;
mod chunks;
mod legacy;
mod other;
mod run;
mod trust;

/// How many messages or thoughts are followed while they are open.
const OPEN: usize = 4_096;

/// How many bytes of arguments are kept, of all calls together.
const ARGUMENT_BYTES: usize = 4 * MESSAGE_BYTES;

/// Reads one thread's events.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Reader {
    trusts: bool,
    /// Whether nobody asks for the content of what AAEP has no word for.
    #[serde(default)]
    brief: bool,
    thread: Option<String>,
    run: Option<String>,
    turn: Turn,
    /// None where it was saved: then it is made again of the chunks.
    #[serde(skip)]
    lanes: Option<Lanes>,
    chunks: chunks::Chunks,
    texts: BTreeMap<String, Text>,
    /// The message that began and of which nothing was told yet.
    silent: Option<String>,
    thoughts: BTreeMap<String, Option<Box<str>>>,
    calls: BTreeMap<String, calls::Call>,
    argument_bytes: usize,
    asks: Asks,
    asked: run::Asked,
    retired: Retired,
    #[serde(skip)]
    contexts: Contexts,
}

/// How the turn stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Turn {
    #[default]
    None,
    Open,
    /// It waits for answers.
    Suspended,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Text {
    role: Role,
    owner: Option<Box<str>>,
}

/// Whoever did something, shared for as long as nothing changes.
#[derive(Debug, Clone, Default)]
struct Contexts {
    own: Option<Arc<Context>>,
    subagent: Option<Arc<Context>>,
}

/// When an event happened, where it says so.
pub fn time(event: View<'_>) -> Option<Timestamp> {
    Timestamp::from_millisecond(event.get("timestamp")?.as_i64()?).ok()
}

/// Where activities go.
struct Sink<'s> {
    origin: &'s Origin,
    out: &'s mut Vec<Activity>,
}

impl Reader {
    /// A reader of streams that Banister wrote or recorded itself.
    pub fn trusting() -> Self {
        Self { trusts: true, ..Self::default() }
    }

    /// A reader for a writer of AAEP, which tells that there were thoughts, drafts, cards and shared state, if anything:
    /// they come without their content.
    #[must_use]
    pub fn briefly(self) -> Self {
        Self { brief: true, ..self }
    }

    /// Appends the activities of one event, or of the input of a run. Nothing in AG-UI goes through a gate.
    pub fn read(
        &mut self,
        event: View<'_>,
        _gate: Option<&Gate>,
        origin: &Origin,
        out: &mut Vec<Activity>,
    ) {
        let sink = &mut Sink { origin, out };
        match event.get("type").and_then(View::as_str) {
            Some(name) => match Type::parse(&name) {
                Some(kind) => self.expand(kind, event, sink),
                None => self.unknown(&name, event, sink),
            },
            None => self.input(event, sink),
        }
    }

    /// The stream is over: what was held comes out.
    pub fn finish(&mut self, origin: &Origin) -> Vec<Activity> {
        let mut out = Vec::new();
        let sink = &mut Sink { origin, out: &mut out };
        self.speak(sink);
        self.cut_calls(false, sink);
        out
    }

    fn expand(&mut self, kind: Type, event: View<'_>, sink: &mut Sink<'_>) {
        let mut lanes = self.lanes.take().unwrap_or_else(|| self.chunks.lanes());
        lanes.expand(kind, event, &mut Vec::new(), &mut |step, _| {
            self.chunks.follow(kind, &step);
            self.step(&step, sink);
        });
        self.lanes = Some(lanes);
    }

    fn step(&mut self, step: &Step<'_>, sink: &mut Sink<'_>) {
        if let Some(silent) = &self.silent {
            let goes_on = match step {
                Step::Append { item: Item::Text, id, .. }
                | Step::Close { item: Item::Text, id, .. } => **silent == **id,
                _ => false,
            };
            if goes_on {
                self.silent = None;
            } else {
                self.speak(sink);
            }
        }
        match step {
            Step::Append { item, id, tag, delta, metadata } => {
                self.detail(*item, id, &Opener::default(), *metadata, sink);
                self.append(*item, id, tag.as_deref(), delta, sink);
            }
            Step::Open { item, id, tag, opener, metadata } => {
                self.open(*item, (id, tag.as_deref()), opener, *metadata, sink);
            }
            // Its result came first, and told it.
            Step::Close { item: Item::Tool, id, .. } if !self.is_open(id) => {}
            Step::Close { item, id, tag, metadata } => {
                self.detail(*item, id, &Opener::default(), *metadata, sink);
                self.close(*item, id, tag.as_deref(), *metadata, sink);
            }
            Step::Event { kind, event } => self.event(*kind, *event, sink),
        }
    }

    fn append(
        &mut self,
        item: Item,
        id: &str,
        tag: Option<&str>,
        delta: &str,
        sink: &mut Sink<'_>,
    ) {
        match item {
            Item::Text => {
                let (role, owner) = match self.texts.get(id) {
                    Some(text) => (text.role, text.owner.as_deref()),
                    None => (Role::Assistant, tag),
                };
                let context = self.contexts.of(owner, self.thread.as_ref(), self.run.as_ref());
                let (message, text) = (id.to_owned(), delta.to_owned());
                sink.push(context, What::Said { message, role, text, last: false });
            }
            Item::Reasoning => {
                let owner = self.thoughts.get(id).map_or(tag, |owner| owner.as_deref());
                let context = self.contexts.of(owner, self.thread.as_ref(), self.run.as_ref());
                let (message, text) = (self.content(id), self.content(delta));
                sink.push(context, What::Thought { message, text, last: false });
            }
            Item::Tool => {
                let Some(call) = self.calls.get_mut(id) else { return };
                let room = self.argument_bytes + delta.len() <= ARGUMENT_BYTES
                    && call.arguments.len() + delta.len() <= MESSAGE_BYTES;
                if room {
                    self.argument_bytes += delta.len();
                    call.arguments.push_str(delta);
                }
                let owner = call.owner.as_deref();
                let context = self.contexts.of(owner, self.thread.as_ref(), self.run.as_ref());
                let tool = if self.brief { String::new() } else { call.tool.clone() };
                let (id, delta) = (self.content(id), self.content(delta));
                sink.push(context, What::ActionDrafted { id, tool, delta });
            }
            Item::Span => {}
        }
    }

    fn open(
        &mut self,
        item: Item,
        (id, tag): (&str, Option<&str>),
        opener: &Opener<'_>,
        metadata: Option<View<'_>>,
        sink: &mut Sink<'_>,
    ) {
        let owner = tag.map(Into::into);
        self.asked.hear(self.trusts, id);
        match item {
            Item::Text => {
                if self.texts.len() >= OPEN {
                    self.texts.pop_first();
                }
                let role = role(opener.role.as_deref());
                self.texts.insert(id.to_owned(), Text { role, owner });
                if self.detail(item, id, opener, metadata, sink) {
                    self.append(item, id, tag, "", sink);
                } else {
                    self.silent = Some(id.to_owned());
                }
            }
            Item::Reasoning => {
                if self.thoughts.len() >= OPEN {
                    self.thoughts.pop_first();
                }
                self.thoughts.insert(id.to_owned(), owner);
                self.detail(item, id, opener, metadata, sink);
                self.append(item, id, tag, "", sink);
            }
            Item::Tool => {
                if let Some(parent) = opener.parent.as_deref() {
                    self.asked.hear(self.trusts, parent);
                }
                self.forget_calls();
                let tool = opener.name.as_deref().unwrap_or("unknown").to_owned();
                let call = self.calls.entry(id.to_owned()).or_default();
                if call.tool.is_empty() {
                    call.owner = owner;
                }
                call.tool = tool;
                call.open = true;
                self.detail(item, id, opener, metadata, sink);
                self.append(item, id, tag, "", sink);
            }
            Item::Span => {}
        }
    }

    fn close(
        &mut self,
        item: Item,
        id: &str,
        tag: Option<&str>,
        metadata: Option<View<'_>>,
        sink: &mut Sink<'_>,
    ) {
        let (message, text, last) = (id.to_owned(), String::new(), true);
        let (owner, what) = match item {
            Item::Text => {
                let known = self
                    .texts
                    .remove(id)
                    .unwrap_or_else(|| Text { role: Role::Assistant, owner: tag.map(Into::into) });
                (known.owner, What::Said { message, role: known.role, text, last })
            }
            Item::Reasoning => {
                let owner = self.thoughts.remove(id).unwrap_or_else(|| tag.map(Into::into));
                (owner, What::Thought { message, text, last })
            }
            Item::Tool => {
                let Some(call) = self.calls.get_mut(id) else { return };
                call.open = false;
                let (mut action, mut gate, owner) = (call.action(id), None, call.owner.clone());
                if let Some(own) = self.own(metadata) {
                    trust::requested(&own, &mut action, &mut gate);
                }
                (owner, What::ActionRequested { action, gate })
            }
            Item::Span => return,
        };
        self.tell(owner.as_deref(), what, sink);
    }

    /// A text that is left out where nobody asks for it.
    fn content(&self, text: &str) -> String {
        if self.brief { String::new() } else { text.to_owned() }
    }

    /// Tells of a message that began and of which nothing was told.
    fn speak(&mut self, sink: &mut Sink<'_>) {
        if let Some(id) = self.silent.take() {
            self.append(Item::Text, &id, None, "", sink);
        }
    }

    /// Tells what only AG-UI has of an item, and whether there was anything.
    fn detail(
        &self,
        item: Item,
        id: &str,
        opener: &Opener<'_>,
        metadata: Option<View<'_>>,
        sink: &mut Sink<'_>,
    ) -> bool {
        if !self.trusts || item == Item::Span {
            return false;
        }
        let mut fields = Map::new();
        if item == Item::Text
            && let Some(name) = &opener.name
        {
            fields.insert("name".into(), json!(name));
        }
        if let Some(parent) = &opener.parent {
            fields.insert("parentMessageId".into(), json!(parent));
        }
        let kind = match item {
            Item::Text | Item::Span => Type::TextMessageStart,
            Item::Tool => Type::ToolCallStart,
            Item::Reasoning => Type::ReasoningMessageStart,
        };
        self.tell_detail(kind, (item.id_field(), id), fields, metadata, sink)
    }

    /// Tells fields and metadata of what is told next.
    fn tell_detail(
        &self,
        kind: Type,
        (field, id): (&str, &str),
        mut fields: Map<String, Value>,
        metadata: Option<View<'_>>,
        sink: &mut Sink<'_>,
    ) -> bool {
        if let Some(Value::Object(mut metadata)) = metadata.map(View::to_value) {
            // What Banister added is restored, or not taken for true.
            metadata.shift_remove(trust::KEY);
            if !metadata.is_empty() {
                fields.insert("metadata".into(), Value::Object(metadata));
            }
        }
        if !self.trusts || fields.is_empty() {
            return false;
        }
        fields.insert("type".into(), kind.name().into());
        fields.insert(field.to_owned(), id.into());
        let context = Context { agent: AGENT.to_owned(), ..Context::default() };
        sink.push(Arc::new(context), raw(kind.name(), Value::Object(fields)));
        true
    }

    /// What Banister added to an event, where it is to be restored.
    fn own(&self, metadata: Option<View<'_>>) -> Option<Map<String, Value>> {
        if !self.trusts {
            return None;
        }
        match metadata?.get(trust::KEY)?.to_value() {
            Value::Object(own) => Some(own),
            _ => None,
        }
    }

    fn tell(&mut self, owner: Option<&str>, what: What, sink: &mut Sink<'_>) {
        let context = self.contexts.of(owner, self.thread.as_ref(), self.run.as_ref());
        sink.push(context, what);
    }
}

impl Sink<'_> {
    #[inline]
    fn push(&mut self, context: Arc<Context>, what: What) {
        self.out.push(Activity { origin: self.origin.clone(), context, what });
    }
}

/// The short name under which agents that speak AG-UI are known.
const AGENT: &str = "ag-ui";

impl Contexts {
    /// Who did something.
    #[inline]
    fn of(
        &mut self,
        owner: Option<&str>,
        thread: Option<&String>,
        run: Option<&String>,
    ) -> Arc<Context> {
        let kept = if owner.is_none() { &mut self.own } else { &mut self.subagent };
        if let Some(kept) = kept
            && kept.subagent.as_deref() == owner
        {
            return Arc::clone(kept);
        }
        let context = Arc::new(Context {
            agent: AGENT.to_owned(),
            agent_name: Some("AG-UI agent".to_owned()),
            session: thread.cloned(),
            turn: run.cloned(),
            subagent: owner.map(str::to_owned),
            ..Context::default()
        });
        *kept = Some(Arc::clone(&context));
        context
    }
}

fn role(word: Option<&str>) -> Role {
    match word {
        Some("user") => Role::User,
        Some("system") => Role::System,
        Some("developer") => Role::Developer,
        _ => Role::Assistant,
    }
}

fn raw(kind: &str, event: Value) -> What {
    What::Raw { protocol: Protocol::Agui, kind: kind.to_owned(), text: None, event }
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "read/back_tests.rs"]
mod back_tests;
