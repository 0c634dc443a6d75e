//! One run, from its start to its end: what is open in it, and by whom.

use std::collections::HashMap;

use super::{
    CHUNK_AMBIGUOUS, CHUNK_CHANGED, FIRST_CHUNK, OPEN_AT_FINISH, OTHER_RUN, OWNER,
    REASONING_NOT_OPEN, REASONING_OPEN, STEP_NOT_OPEN, STEP_OPEN, SUBAGENT_AGAIN,
    SUBAGENT_NOT_OPEN, SUBAGENT_PARENT, TEXT_NOT_OPEN, TEXT_OPEN, TOOL,
};
use crate::agui::event::Type;
use crate::check::recent::{Seed, key};
use crate::check::shape::{quote, text};
use crate::finding::{Finding, Rule};
use crate::json::View;

/// How many open items of one run are followed; a run with more is no longer judged.
const OPEN: usize = 16_384;

/// How many may have a step of the same name open at once.
const OWNERS: usize = 64;

/// Whoever opened an item: a subagent, or the agent itself.
type Owner = Option<Box<str>>;

/// What has to be known of one open run.
#[derive(Debug, Clone, Default)]
pub(super) struct Run {
    pub(super) thread: Box<str>,
    pub(super) id: Box<str>,
    /// Whether its `RUN_STARTED` was missing.
    pub(super) headless: bool,
    texts: HashMap<Box<str>, Owner, Seed>,
    tools: HashMap<Box<str>, Owner, Seed>,
    spans: HashMap<Box<str>, Owner, Seed>,
    reasonings: HashMap<Box<str>, Owner, Seed>,
    steps: HashMap<Box<str>, Vec<Owner>, Seed>,
    /// Subagents of this run, and whether they are active.
    subagents: HashMap<Box<str>, bool, Seed>,
    lanes: Vec<Lane>,
}

/// A stream of chunks that is open.
#[derive(Debug, Clone)]
struct Lane {
    owner: Owner,
    item: Item,
    id: Box<str>,
    opener: [Option<Box<str>>; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Item {
    Text,
    Tool,
    Span,
    Reasoning,
}

impl Item {
    fn name(self) -> &'static str {
        match self {
            Self::Text => "message",
            Self::Tool => "tool call",
            Self::Span => "reasoning span",
            Self::Reasoning => "reasoning message",
        }
    }

    fn id_field(self) -> &'static str {
        if self == Self::Tool { "toolCallId" } else { "messageId" }
    }

    /// What every chunk of one stream has to agree on.
    fn opener_fields(self) -> [&'static str; 2] {
        match self {
            Self::Text => ["role", "name"],
            Self::Tool => ["toolCallName", "parentMessageId"],
            // Reasoning chunks carry neither.
            Self::Span | Self::Reasoning => ["", ""],
        }
    }

    fn opened_twice(self) -> &'static Rule {
        match self {
            Self::Text => &TEXT_OPEN,
            Self::Tool => &TOOL,
            Self::Span | Self::Reasoning => &REASONING_OPEN,
        }
    }

    fn not_open(self) -> &'static Rule {
        match self {
            Self::Text => &TEXT_NOT_OPEN,
            Self::Tool => &TOOL,
            Self::Span | Self::Reasoning => &REASONING_NOT_OPEN,
        }
    }
}

/// What an event does to an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Open,
    Continue,
    Close,
    Chunk,
}

fn effect(kind: Type) -> Option<(Item, Does)> {
    Some(match kind {
        Type::TextMessageStart => (Item::Text, Does::Open),
        Type::TextMessageContent => (Item::Text, Does::Continue),
        Type::TextMessageEnd => (Item::Text, Does::Close),
        Type::TextMessageChunk => (Item::Text, Does::Chunk),
        Type::ToolCallStart => (Item::Tool, Does::Open),
        Type::ToolCallArgs => (Item::Tool, Does::Continue),
        Type::ToolCallEnd => (Item::Tool, Does::Close),
        Type::ToolCallChunk => (Item::Tool, Does::Chunk),
        Type::ReasoningStart => (Item::Span, Does::Open),
        Type::ReasoningEnd => (Item::Span, Does::Close),
        Type::ReasoningMessageStart => (Item::Reasoning, Does::Open),
        Type::ReasoningMessageContent => (Item::Reasoning, Does::Continue),
        Type::ReasoningMessageEnd => (Item::Reasoning, Does::Close),
        Type::ReasoningMessageChunk => (Item::Reasoning, Does::Chunk),
        _ => return None,
    })
}

impl Run {
    /// A run that its `RUN_STARTED` names.
    pub(super) fn started(thread: Box<str>, id: Box<str>) -> Self {
        Self { thread, id, ..Self::default() }
    }

    /// A run whose `RUN_STARTED` is missing.
    pub(super) fn headless() -> Self {
        Self { headless: true, ..Self::default() }
    }

    pub(super) fn step(&mut self, kind: Type, object: View<'_>, findings: &mut Vec<Finding>) {
        if self.size() > OPEN {
            return;
        }
        let tag = id_in(object, "subagentRunId");
        self.close_lanes(kind, tag.as_deref());
        match (effect(kind), kind) {
            (Some((item, Does::Chunk)), _) => self.chunk(item, tag.as_deref(), object, findings),
            (Some((item, does)), _) => self.item(item, does, tag, object, findings),
            (None, Type::StepStarted) => self.step_started(tag, object, findings),
            (None, Type::StepFinished) => self.step_finished(&tag, object, findings),
            (None, Type::SubagentStarted) => self.subagent_started(tag, object, findings),
            (None, Type::SubagentFinished | Type::SubagentError) => {
                let Some(id) = tag else { return };
                match self.subagents.get_mut(&id) {
                    Some(active) if *active => *active = false,
                    _ => findings
                        .push(SUBAGENT_NOT_OPEN.at("/subagentRunId", no_open("subagent", &id))),
                }
            }
            _ => {}
        }
    }

    fn size(&self) -> usize {
        let items = self.texts.len() + self.tools.len() + self.spans.len() + self.reasonings.len();
        items + self.steps.len() + self.subagents.len() + self.lanes.len()
    }

    /// Whether an event refers to something that is open here.
    pub(super) fn knows(&self, kind: Type, object: View<'_>) -> bool {
        let has = |name: &str, is_open: &dyn Fn(&str) -> bool| {
            text(object, name).is_some_and(|id| is_open(&key(&id)))
        };
        match (effect(kind), kind) {
            (Some((item, Does::Continue | Does::Close)), _) => {
                has(item.id_field(), &|id| self.items(item).contains_key(id))
            }
            (None, Type::StepFinished) => has("stepName", &|name| self.steps.contains_key(name)),
            (None, Type::SubagentFinished | Type::SubagentError) => {
                has("subagentRunId", &|id| self.subagents.get(id) == Some(&true))
            }
            _ => false,
        }
    }

    fn items(&self, item: Item) -> &HashMap<Box<str>, Owner, Seed> {
        match item {
            Item::Text => &self.texts,
            Item::Tool => &self.tools,
            Item::Span => &self.spans,
            Item::Reasoning => &self.reasonings,
        }
    }

    fn items_mut(&mut self, item: Item) -> &mut HashMap<Box<str>, Owner, Seed> {
        match item {
            Item::Text => &mut self.texts,
            Item::Tool => &mut self.tools,
            Item::Span => &mut self.spans,
            Item::Reasoning => &mut self.reasonings,
        }
    }

    fn item(
        &mut self,
        item: Item,
        does: Does,
        tag: Owner,
        object: View<'_>,
        findings: &mut Vec<Finding>,
    ) {
        let Some(id) = id_in(object, item.id_field()) else {
            return;
        };
        let pointer = format!("/{}", item.id_field());
        let items = self.items_mut(item);
        match (items.get(&id), does) {
            (Some(_), Does::Open) => {
                let message = format!("the {} {} is open already", item.name(), quote(&id));
                findings.push(item.opened_twice().at(pointer, message));
            }
            (None, Does::Open) => {
                items.insert(id, tag);
            }
            (Some(owner), _) => {
                if tag.is_some() && *owner != tag {
                    findings.push(OWNER.at("/subagentRunId", owned_by(owner)));
                }
                if does == Does::Close {
                    items.remove(&id);
                }
            }
            (None, _) => findings.push(item.not_open().at(pointer, no_open(item.name(), &id))),
        }
    }

    fn step_started(&mut self, tag: Owner, object: View<'_>, findings: &mut Vec<Finding>) {
        let Some(name) = id_in(object, "stepName") else {
            return;
        };
        let owners = self.steps.entry(name).or_default();
        if owners.contains(&tag) {
            findings.push(STEP_OPEN.at("/stepName", "the step is open already"));
        } else if owners.len() < OWNERS {
            owners.push(tag);
        }
    }

    fn step_finished(&mut self, tag: &Owner, object: View<'_>, findings: &mut Vec<Finding>) {
        let Some(name) = id_in(object, "stepName") else {
            return;
        };
        let Some(owners) = self.steps.get_mut(&name) else {
            findings.push(STEP_NOT_OPEN.at("/stepName", no_open("step", &name)));
            return;
        };
        match owners.iter().position(|owner| owner == tag) {
            Some(at) => {
                owners.remove(at);
            }
            None => findings
                .push(STEP_NOT_OPEN.at("/stepName", "the step was started by somebody else")),
        }
        if owners.is_empty() {
            self.steps.remove(&name);
        }
    }

    fn subagent_started(&mut self, tag: Owner, object: View<'_>, findings: &mut Vec<Finding>) {
        let Some(id) = tag else { return };
        if let Some(parent) = id_in(object, "parentSubagentRunId")
            && !self.subagents.contains_key(&parent)
        {
            let message = format!("the parent {} was not started in this run", quote(&parent));
            findings.push(SUBAGENT_PARENT.at("/parentSubagentRunId", message));
        }
        if let Some(active) = self.subagents.insert(id, true) {
            let message = if active {
                "the subagent is active already"
            } else {
                "the subagent has finished in this run"
            };
            findings.push(SUBAGENT_AGAIN.at("/subagentRunId", message));
        }
    }

    /// Ends the streams of chunks that an event ends by coming.
    fn close_lanes(&mut self, kind: Type, tag: Option<&str>) {
        match kind {
            Type::MessagesSnapshot => self.lanes.clear(),
            Type::TextMessageChunk
            | Type::ToolCallChunk
            | Type::ReasoningMessageChunk
            | Type::Raw
            | Type::ActivitySnapshot
            | Type::ActivityDelta
            | Type::ReasoningEncryptedValue
            | Type::SubagentStarted => {}
            _ => self.lanes.retain(|lane| lane.owner.as_deref() != tag),
        }
    }

    fn chunk(
        &mut self,
        item: Item,
        tag: Option<&str>,
        object: View<'_>,
        findings: &mut Vec<Finding>,
    ) {
        let id = id_in(object, item.id_field());
        let Some((at, owner)) = self.lane(item, id.as_deref(), tag, findings) else {
            return;
        };
        let opener = item.opener_fields().map(|name| id_in(object, name));
        if let Some(lane) = at.and_then(|at| self.lanes.get(at))
            && lane.item == item
            && id.as_ref().is_none_or(|id| *id == lane.id)
        {
            for ((name, now), then) in item.opener_fields().iter().zip(&opener).zip(&lane.opener) {
                let then = then.as_deref().or((*name == "role").then_some("assistant"));
                if now.is_some() && now.as_deref() != then {
                    findings.push(
                        CHUNK_CHANGED.at(format!("/{name}"), "the first chunk said otherwise"),
                    );
                }
            }
            return;
        }
        if let Some(at) = at {
            self.lanes.remove(at);
        }
        let Some(id) = id else {
            let message = format!("no {} is open that this chunk could continue", item.name());
            findings.push(FIRST_CHUNK.at(format!("/{}", item.id_field()), message));
            return;
        };
        if item == Item::Tool && text(object, "toolCallName").is_none() {
            findings.push(FIRST_CHUNK.at("/toolCallName", "the first chunk of a call has no name"));
        }
        if self.items(item).contains_key(&id) {
            let message = format!("the {} {} is open already", item.name(), quote(&id));
            findings.push(item.opened_twice().at(format!("/{}", item.id_field()), message));
        }
        self.lanes.push(Lane { owner, item, id, opener });
    }

    /// The lane a chunk goes to: its place, if it has one yet, and its owner. None where that cannot be told.
    fn lane(
        &self,
        item: Item,
        id: Option<&str>,
        tag: Option<&str>,
        findings: &mut Vec<Finding>,
    ) -> Option<(Option<usize>, Owner)> {
        let held = |lane: &Lane| lane.item == item && id == Some(&*lane.id);
        if let Some(at) = self.lanes.iter().position(held) {
            let owner = self.lanes.get(at).and_then(|lane| lane.owner.clone());
            if tag.is_some() && owner.as_deref() != tag {
                findings.push(OWNER.at("/subagentRunId", owned_by(&owner)));
            }
            return Some((Some(at), owner));
        }
        let of =
            |owner: Option<&str>| self.lanes.iter().position(|lane| lane.owner.as_deref() == owner);
        if id.is_some() || tag.is_some() {
            return Some((of(tag), tag.map(Into::into)));
        }
        let mut same = self.lanes.iter().enumerate().filter(|(_, lane)| lane.item == item);
        if let Some((at, _)) = same.clone().find(|(_, lane)| lane.owner.is_none()) {
            return Some((Some(at), None));
        }
        match (same.next(), same.next()) {
            (Some((at, lane)), None) => Some((Some(at), lane.owner.clone())),
            (None, _) => Some((of(None), None)),
            (Some(_), Some(_)) => {
                let message = format!("several subagents have an open {}", item.name());
                findings.push(CHUNK_AMBIGUOUS.at("", message));
                None
            }
        }
    }

    pub(super) fn finish(self, object: View<'_>, findings: &mut Vec<Finding>) {
        let named = [("threadId", &self.thread), ("runId", &self.id)];
        for (name, started) in named.into_iter().filter(|_| !self.headless) {
            if id_in(object, name).is_some_and(|finished| finished != *started) {
                let message = format!("{} was started", quote(started));
                findings.push(OTHER_RUN.at(format!("/{name}"), message));
            }
        }
        if self.size() > OPEN {
            return;
        }
        let active = self.subagents.iter().filter(|(_, active)| **active).map(|(id, _)| id);
        let open: [(&str, Vec<&Box<str>>); 6] = [
            ("steps", self.steps.keys().collect()),
            ("messages", self.texts.keys().collect()),
            ("reasoning messages", self.reasonings.keys().collect()),
            ("reasoning spans", self.spans.keys().collect()),
            ("tool calls", self.tools.keys().collect()),
            ("subagents", active.collect()),
        ];
        for (what, mut ids) in open.into_iter().filter(|(_, ids)| !ids.is_empty()) {
            ids.sort_unstable();
            let some: Vec<String> = ids.iter().take(3).map(|id| quote(id)).collect();
            let more = if ids.len() > some.len() { ", …" } else { "" };
            findings.push(
                OPEN_AT_FINISH.at("/type", format!("still open: {what} {}{more}", some.join(", "))),
            );
        }
    }
}

fn no_open(what: &str, id: &str) -> String {
    format!("no {what} {} is open", quote(id))
}

fn owned_by(owner: &Owner) -> String {
    match owner {
        Some(owner) => format!("it was opened by subagent {}", quote(owner)),
        None => "it was opened by the agent itself".to_owned(),
    }
}

/// The id in a field, as it is kept.
fn id_in(object: View<'_>, name: &str) -> Option<Box<str>> {
    text(object, name).map(|id| key(&id))
}
