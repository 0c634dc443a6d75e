//! What is told in pieces or spans something: messages, thoughts, steps, subagents.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::names::Kind;
use super::{PIECE_BYTES, Parts, Type, Writer, pieces, remember};
use crate::activity::{Activity, Ending, Role, What};
use crate::text::{self, Redactor};
use crate::translate::NoteKind;
use crate::written::{Field, Fields, Written};

/// How many of a kind may be open at once; after that the oldest is closed.
const OPEN: usize = 1_024;

/// How many items of a run are remembered.
const OWNERS: usize = 16_384;

/// What is open, whether or not it was begun in this run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Items {
    texts: Vec<Text>,
    steps: Vec<Step>,
    subagents: Vec<Subagent>,
    /// What the source calls a subagent → what it is called here.
    called: BTreeMap<String, String>,
    /// The subagents that were started in this run, as it was told to this client.
    started: BTreeSet<String>,
    /// The same, as it was told to a client that was there from the start.
    used: BTreeSet<String>,
    /// Whose the items of this run are. Who goes on with somebody else's says nothing about that.
    owners: BTreeMap<String, Option<String>>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Text {
    id: Arc<str>,
    /// None for a thought.
    role: Option<Role>,
    tag: Option<String>,
    /// Whether it was begun in this run.
    live: bool,
    redactor: Redactor,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Step {
    name: String,
    tag: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Subagent {
    id: String,
    start: Value,
    /// The asks that it waits for, where it does: it ends with its run.
    waits: Option<Vec<String>>,
}

/// A piece of a message, or of a thought.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextPiece<'a> {
    pub(super) message: &'a str,
    /// None for a thought.
    pub(super) role: Option<Role>,
    pub(super) text: &'a str,
    pub(super) last: bool,
}

impl Items {
    /// A run begins that knows nothing of the one before.
    pub(super) fn begin(&mut self) {
        self.owners.clear();
        self.started.clear();
        self.texts.iter_mut().for_each(|text| text.live = false);
    }

    /// A run begins after one that closed everything.
    pub(super) fn renew(&mut self) {
        self.begin();
        self.called.clear();
        self.used.clear();
    }

    /// Says again what is open.
    pub(super) fn resume(&mut self, out: &mut Vec<Written>) {
        for subagent in &self.subagents {
            let mut start = subagent.start.clone();
            if let Some(fields) = start.as_object_mut()
                && let Some(parent) = fields.get("parentSubagentRunId").and_then(Value::as_str)
                && !self.started.contains(parent)
            {
                fields.shift_remove("parentSubagentRunId");
            }
            self.started.insert(subagent.id.clone());
            out.push(start.into());
        }
        for step in &self.steps {
            out.push(step_event(Type::StepStarted, step).into());
        }
    }

    /// Records whose an item is, if that is not known; the tag that may stand on its start.
    pub(super) fn own(&mut self, key: String, tag: Option<String>) -> Option<String> {
        if self.owners.len() >= OWNERS {
            self.owners.clear();
        }
        let owner = self.owners.entry(key).or_insert_with(|| tag.clone());
        tag.filter(|tag| owner.as_ref() == Some(tag))
    }

    /// Whose an item is, if that is known.
    pub(super) fn owner(&self, key: &str) -> Option<&Option<String>> {
        self.owners.get(key)
    }

    /// A snapshot says whose an item is.
    pub(super) fn assign(&mut self, key: String, tag: Option<String>) {
        self.own(key.clone(), tag.clone());
        self.owners.insert(key, tag);
    }

    pub(super) fn is_busy(&self) -> bool {
        let at_work = self.subagents.iter().any(|subagent| subagent.waits.is_none());
        !self.texts.is_empty() || !self.steps.is_empty() || at_work
    }

    /// What a subagent is called here.
    pub(super) fn subagent<'a>(&'a self, id: &'a str) -> &'a str {
        self.called.get(id).map_or(id, String::as_str)
    }
}

impl Writer {
    pub(super) fn said(
        &mut self,
        activity: &Activity,
        said: TextPiece<'_>,
        out: &mut Vec<Written>,
    ) {
        let kind = said.role.map_or(Kind::Reasoning, Kind::from);
        let id = self.name(activity, kind, said.message);
        let known = self.items.texts.iter().position(|text| text.id == id);
        let resumed = known.is_some();
        let at = known.unwrap_or_else(|| {
            if self.items.texts.len() >= OPEN {
                self.notes.add(NoteKind::Closed, "message");
                self.close_text(0, out);
            }
            let tag = self.tag(activity);
            let (role, redactor) = (said.role, Redactor::default());
            self.items.texts.push(Text { id, role, tag, live: false, redactor });
            self.items.texts.len() - 1
        });
        let Some(text) = self.items.texts.get_mut(at) else { return };
        let mut shown = text.redactor.push(said.text);
        if said.last {
            shown.push_str(&text.redactor.finish());
        }
        // What was begun before this run and has no more to say is not begun again.
        if !(resumed && !text.live && shown.is_empty()) {
            self.open_text(at, out);
        }
        self.add_text(at, shown, out);
        if said.last {
            self.close_text(at, out);
        }
    }

    /// Begins a message in this run.
    fn open_text(&mut self, at: usize, out: &mut Vec<Written>) {
        let Some(text) = self.items.texts.get_mut(at).filter(|text| !text.live) else { return };
        text.live = true;
        let (id, role) = (Arc::clone(&text.id), text.role);
        let (key, tag) = (text_key(text), text.tag.clone());
        let tag = self.items.own(key, tag);
        let event = if let Some(role) = role {
            let mut event = of_message(Type::TextMessageStart, &id);
            event.fields.word("role", role.name());
            if let Some(Value::String(name)) = self.detail("name") {
                event.fields.put("name", text::redact(name));
            }
            event
        } else {
            out.push(of_message(Type::ReasoningStart, &id).tagged(tag.as_deref()).into());
            let mut event = of_message(Type::ReasoningMessageStart, &id);
            event.fields.word("role", "reasoning");
            event
        };
        self.push(event.tagged(tag.as_deref()), out);
    }

    fn add_text(&mut self, at: usize, shown: String, out: &mut Vec<Written>) {
        let Some(text) = self.items.texts.get(at).filter(|text| text.live) else { return };
        let id = Arc::clone(&text.id);
        let kind = match text.role {
            Some(_) => Type::TextMessageContent,
            None => Type::ReasoningMessageContent,
        };
        let has_metadata = self.detail("metadata").is_some();
        let delta = |piece: Field| {
            Parts::new(kind, [("messageId", Field::Shared(Arc::clone(&id))), ("delta", piece)])
        };
        if shown.len() > PIECE_BYTES {
            out.extend(pieces(&shown).map(|piece| delta(piece.into()).into()));
        } else if !shown.is_empty() {
            out.push(delta(shown.into()).into());
        }
        if has_metadata {
            self.push(delta(Field::Word("")), out);
        }
    }

    /// Ends a message.
    fn close_text(&mut self, at: usize, out: &mut Vec<Written>) {
        let Some(text) = self.items.texts.get_mut(at) else { return };
        let rest = text.redactor.finish();
        if !rest.is_empty() {
            self.open_text(at, out);
            self.add_text(at, rest, out);
        }
        if at >= self.items.texts.len() {
            return;
        }
        let text = self.items.texts.remove(at);
        if !text.live {
            return;
        }
        if text.role.is_some() {
            out.push(of_message(Type::TextMessageEnd, &text.id).into());
        } else {
            out.push(of_message(Type::ReasoningMessageEnd, &text.id).into());
            out.push(of_message(Type::ReasoningEnd, &text.id).into());
        }
    }

    /// Ends all messages.
    pub(super) fn close_texts(&mut self, out: &mut Vec<Written>) {
        while !self.items.texts.is_empty() {
            self.close_text(0, out);
        }
    }

    pub(super) fn step_started(&mut self, activity: &Activity, name: &str, out: &mut Vec<Written>) {
        let step = Step { name: name.to_owned(), tag: self.tag(activity) };
        if self.items.steps.contains(&step) || self.items.steps.len() >= OPEN {
            self.notes.add(NoteKind::Dropped, "step_started");
            return;
        }
        out.push(step_event(Type::StepStarted, &step).into());
        self.items.steps.push(step);
    }

    pub(super) fn step_ended(&mut self, activity: &Activity, name: &str, out: &mut Vec<Written>) {
        let tag = self.tag(activity);
        // A step is finished by whoever started it.
        let own = self.items.steps.iter().rposition(|step| step.name == name && step.tag == tag);
        let at = own.or_else(|| self.items.steps.iter().rposition(|step| step.name == name));
        match at {
            Some(at) => {
                out.push(step_event(Type::StepFinished, &self.items.steps.remove(at)).into());
            }
            None => self.notes.add(NoteKind::Dropped, "step_ended"),
        }
    }

    pub(super) fn subagent_started(&mut self, activity: &Activity, out: &mut Vec<Written>) {
        let What::SubagentStarted { id, name, description, parent, action } = &activity.what else {
            return;
        };
        let called = self.items.subagent(id).to_owned();
        if self.items.subagents.iter().any(|subagent| subagent.id == called)
            || self.items.subagents.len() >= OPEN
        {
            self.notes.add(NoteKind::Dropped, "subagent_started");
            return;
        }
        let called = if self.items.used.contains(id) {
            self.notes.add(NoteKind::Renamed, id.as_str());
            let used = |id: &str| self.items.used.contains(id);
            let called = self.names.mint(&used, &|n| {
                let origin = &activity.origin;
                let parts = [&origin.session, &*origin.seq.to_string(), id, &n.to_string()];
                crate::id::derive("sub_", &parts)
            });
            if self.items.called.len() >= OPEN {
                self.items.called.clear();
            }
            self.items.called.insert(id.clone(), called.clone());
            called
        } else {
            self.items.called.remove(id);
            id.clone()
        };
        let mut fields = Map::new();
        fields.insert("type".into(), Type::SubagentStarted.name().into());
        fields.insert("subagentRunId".into(), called.clone().into());
        fields.insert("name".into(), text::for_people(name, 4_096).into());
        if let Some(description) = description {
            fields.insert("description".into(), text::for_people(description, 16_384).into());
        }
        let parent = parent.as_deref().map(|parent| self.items.subagent(parent).to_owned());
        if let Some(parent) = parent.filter(|parent| self.items.started.contains(parent)) {
            fields.insert("parentSubagentRunId".into(), parent.into());
        }
        if let Some(call) = action.as_deref().and_then(|id| self.calls.out(id)) {
            fields.insert("parentToolCallId".into(), call.into());
        }
        remember(&mut self.items.used, called.clone());
        remember(&mut self.items.started, called.clone());
        let start = Value::Object(fields);
        out.push(start.clone().into());
        self.items.subagents.push(Subagent { id: called, start, waits: None });
    }

    pub(super) fn subagent_ended(
        &mut self,
        activity: &Activity,
        id: &str,
        ending: &Ending,
        result: Option<&Value>,
        out: &mut Vec<Written>,
    ) {
        let called = self.items.subagent(id).to_owned();
        if !self.items.subagents.iter().any(|subagent| subagent.id == called) {
            if self.items.used.contains(&called) {
                self.notes.add(NoteKind::Dropped, "subagent_ended");
                return;
            }
            self.notes.add(NoteKind::Opened, id);
            let what = What::SubagentStarted {
                id: id.to_owned(),
                name: id.to_owned(),
                description: None,
                parent: None,
                action: None,
            };
            self.subagent_started(&Activity { what, ..activity.clone() }, out);
        }
        let called = self.items.subagent(id).to_owned();
        let Some(at) = self.items.subagents.iter().position(|it| it.id == called) else { return };
        if let (Ending::Suspended { asks }, Some(subagent)) =
            (ending, self.items.subagents.get_mut(at))
        {
            subagent.waits = Some(asks.clone());
            return;
        }
        self.items.subagents.remove(at);
        let mut own = Fields::default();
        if self.carry {
            super::turn::ending_facts(ending, &mut own);
        }
        let mut event = match ending {
            Ending::Failed { message, code, .. } => {
                let message = text::for_people(message, 16_384);
                let mut event = of_subagent(Type::SubagentError, &called);
                event.fields.put("message", message);
                event.fields.maybe("code", code.as_deref().map(|code| text::for_people(code, 256)));
                event
            }
            Ending::Cancelled { reason, .. } => {
                let message = reason.as_deref().unwrap_or("cancelled");
                let mut event = of_subagent(Type::SubagentError, &called);
                event.fields.put("message", text::for_people(message, 16_384));
                event.fields.word("code", "cancelled");
                event
            }
            Ending::Completed | Ending::Suspended { .. } => {
                let mut event = of_subagent(Type::SubagentFinished, &called);
                if let Some(result) = result.filter(|it| !it.is_null()) {
                    event.fields.put("result", text::redact_json(result));
                    if !event.fits() {
                        event.fields.remove("result");
                    }
                }
                event
            }
        };
        event.own = own;
        self.push(event, out);
    }

    /// Ends steps, messages, thoughts and calls, then subagents, the last one first. `waiting` are the asks that the run
    /// ends over, with the ids of their interrupts.
    pub(super) fn settle(&mut self, waiting: Option<&[(String, String)]>, out: &mut Vec<Written>) {
        while let Some(step) = self.items.steps.pop() {
            out.push(step_event(Type::StepFinished, &step).into());
        }
        self.close_texts(out);
        self.close_calls(out);
        while let Some(subagent) = self.items.subagents.pop() {
            let mut event = of_subagent(Type::SubagentFinished, &subagent.id);
            if let (Some(listed), Some(asks)) = (waiting, subagent.waits) {
                let of = |ask: &String| listed.iter().find(|(id, it)| id == ask || it == ask);
                let ids: Vec<&str> =
                    asks.iter().filter_map(of).map(|(_, interrupt)| interrupt.as_str()).collect();
                let mut outcome = Fields::of([("type", Field::Word("suspended"))]);
                outcome.put("interruptIds", Value::from(ids));
                event.fields.put("outcome", outcome);
            }
            out.push(event.into());
        }
    }
}

fn text_key(text: &Text) -> String {
    format!("{}{}", if text.role.is_some() { "t" } else { "r" }, text.id)
}

fn step_event(kind: Type, step: &Step) -> Parts {
    Parts::new(kind, [("stepName", step.name.as_str().into())]).tagged(step.tag.as_deref())
}

fn of_message(kind: Type, id: &Arc<str>) -> Parts {
    Parts::new(kind, [("messageId", Field::Shared(Arc::clone(id)))])
}

fn of_subagent(kind: Type, id: &str) -> Parts {
    Parts::new(kind, [("subagentRunId", id.into())])
}
