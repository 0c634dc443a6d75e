//! One run, from its start to its end: what is open in it, and by whom.

use std::collections::HashMap;

use super::lints::tally::Tally;
use super::lints::{At, Lints};
use super::{
    CALL_MOVED, CALL_OWNER, OPEN_AT_FINISH, OTHER_RUN, OWNER, REASONING_NOT_OPEN, REASONING_OPEN,
    STEP_NOT_OPEN, STEP_OPEN, SUBAGENT_AGAIN, SUBAGENT_NOT_OPEN, SUBAGENT_PARENT, TEXT_NOT_OPEN,
    TEXT_OPEN, TOOL,
};
use crate::agui::event::Type;
use crate::agui::expand::Lanes;
use crate::agui::step::{Item, Opener, Step};
use crate::check::recent::{Seed, key, short};
use crate::check::shape::{quote, says, text};
use crate::finding::{Finding, Rule, Severity};
use crate::json::View;

/// How many items of one run are remembered; when there are more, those that are closed are forgotten.
const ITEMS: usize = 16_384;

/// How many may have a step of the same name open at once.
const OWNERS: usize = 4_096;

/// Whoever opened an item: a subagent, or the agent itself.
type Owner = Option<Box<str>>;

type Ids<V> = HashMap<Box<str>, V, Seed>;

/// What has to be known of one open run.
#[derive(Debug, Clone, Default)]
pub(super) struct Run {
    pub(super) thread: Box<str>,
    pub(super) id: Box<str>,
    /// Whether its `RUN_STARTED` was missing.
    pub(super) headless: bool,
    /// By kind, as one id may name items of several.
    messages: Ids<Known>,
    calls: Ids<Known>,
    reasoning: Ids<Known>,
    activities: Ids<Known>,
    steps: Ids<Vec<Owner>>,
    subagents: Ids<Subagent>,
    lanes: Lanes,
    tally: Tally,
    /// More was open than is remembered, so that nothing is judged any more.
    blind: bool,
}

/// What is known of an item, open or not.
#[derive(Debug, Clone, Default)]
struct Known {
    owner: Owner,
    open: bool,
    /// Of reasoning: whether the span of this id is open. It has the owner of the message.
    span: bool,
    doubt: Doubt,
}

/// What was told of an item already, so that what follows from it is not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Doubt {
    #[default]
    None,
    /// It was continued without a start: whose it is is not known, and that it does not end either is not told.
    Implied,
    /// It was continued by somebody else: further pieces of theirs are not told.
    Disputed,
}

/// What is known of a subagent of this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subagent {
    Active,
    Ended,
    /// It ended, or was named as a parent, without a start, which was told.
    Implied,
}

impl Known {
    fn of(owner: Owner) -> Self {
        Self { owner, ..Self::default() }
    }

    fn is_open(&self, item: Item) -> bool {
        if item == Item::Span { self.span } else { self.open }
    }

    fn set_open(&mut self, item: Item, open: bool) {
        *if item == Item::Span { &mut self.span } else { &mut self.open } = open;
    }
}

fn opened_twice(item: Item) -> &'static Rule {
    match item {
        Item::Text => &TEXT_OPEN,
        Item::Tool => &TOOL,
        Item::Span | Item::Reasoning => &REASONING_OPEN,
    }
}

fn not_open(item: Item) -> &'static Rule {
    match item {
        Item::Text => &TEXT_NOT_OPEN,
        Item::Tool => &TOOL,
        Item::Span | Item::Reasoning => &REASONING_NOT_OPEN,
    }
}

impl Run {
    /// A run that its `RUN_STARTED` names.
    pub(super) fn started(thread: Box<str>, id: Box<str>) -> Self {
        Self { thread, id, ..Self::default() }
    }

    /// A run whose `RUN_STARTED` is missing.
    pub(super) fn headless() -> Self {
        Self { headless: true, tally: Tally::blind(), ..Self::default() }
    }

    /// A message got lost: what it may have told is not missed beyond what the verifier has to know.
    pub(super) fn overlook(&mut self) {
        self.tally.give_up();
    }

    /// Everything wrong with an event of this run.
    pub(super) fn event<'a>(
        &mut self,
        kind: Type,
        event: View<'a>,
        lints: &mut Lints,
        findings: &mut Vec<Finding>,
        each: &mut dyn FnMut(&Step<'a>, &[Finding]),
    ) {
        let mut lanes = std::mem::take(&mut self.lanes);
        lanes.expand(kind, event, findings, &mut |step, findings| {
            let before = findings.len();
            self.make_room();
            self.step(&step, findings);
            if self.blind {
                findings.truncate(before);
            }
            if !findings.iter().skip(before).any(is_error) {
                let at = At { thread: &self.thread, run: &self.id, tally: &mut self.tally };
                lints.step(at, &step, findings);
            }
            each(&step, findings);
        });
        self.lanes = lanes;
    }

    /// Forgets what is closed, where there is too much; where too much is open, all of it.
    fn make_room(&mut self) {
        let items =
            [&mut self.messages, &mut self.calls, &mut self.reasoning, &mut self.activities];
        for items in items {
            if items.len() >= ITEMS {
                items.retain(|_, known| known.open || known.span);
                self.blind |= clear_half(items);
            }
        }
        if self.subagents.len() >= ITEMS {
            self.subagents.retain(|_, state| *state == Subagent::Active);
            self.blind |= clear_half(&mut self.subagents);
        }
        if self.steps.len() >= ITEMS {
            self.blind |= clear_half(&mut self.steps);
        }
    }

    fn step(&mut self, step: &Step<'_>, findings: &mut Vec<Finding>) {
        match step {
            Step::Open { item: Item::Tool, id, tag, opener, .. } => {
                self.call(id, tag.as_deref(), opener, findings);
            }
            Step::Open { item, id, tag, .. } => self.open(*item, id, tag.as_deref(), findings),
            Step::Append { item, id, tag, .. } => {
                self.go_on(*item, id, tag.as_deref(), false, findings);
            }
            Step::Close { item, id, tag, .. } => {
                self.go_on(*item, id, tag.as_deref(), true, findings);
            }
            Step::Event { kind, event } => self.other(*kind, *event, findings),
        }
    }

    fn other(&mut self, kind: Type, event: View<'_>, findings: &mut Vec<Finding>) {
        let tag = id_in(event, "subagentRunId");
        match kind {
            Type::StepStarted => self.step_started(tag, event, findings),
            Type::StepFinished => self.step_finished(&tag, event, findings),
            Type::SubagentStarted => self.subagent_started(tag, event, findings),
            Type::SubagentFinished | Type::SubagentError => {
                let Some(id) = tag else { return };
                match self.subagents.get_mut(&id) {
                    Some(state) if *state != Subagent::Ended => *state = Subagent::Ended,
                    known => {
                        let message = no_open("subagent", &id);
                        findings.push(SUBAGENT_NOT_OPEN.at("/subagentRunId", message));
                        if known.is_none() {
                            self.note(id, Subagent::Implied);
                        }
                    }
                }
            }
            Type::ToolCallResult => {
                if let Some(id) = id_in(event, "messageId") {
                    own(&mut self.messages, id, tag);
                }
            }
            Type::ActivitySnapshot => {
                let Some(id) = id_in(event, "messageId") else { return };
                let keeps = event.get("replace").and_then(View::as_bool) == Some(false);
                if !(keeps && self.activities.contains_key(&id)) {
                    own(&mut self.activities, id, tag);
                }
            }
            Type::ActivityDelta => {
                let known = id_in(event, "messageId").and_then(|id| self.activities.get(&id));
                findings.extend(disagrees(known, tag.as_deref()));
            }
            Type::ReasoningEncryptedValue => {
                let Some(id) = id_in(event, "entityId") else { return };
                let known = if says(event, "subtype", "tool-call") {
                    self.calls.get(&id)
                } else {
                    self.messages.get(&id).or_else(|| self.reasoning.get(&id))
                };
                findings.extend(disagrees(known, tag.as_deref()));
            }
            Type::MessagesSnapshot => self.restate(event.get("messages"), true),
            Type::RunStarted => {
                self.restate(event.get("input").and_then(|input| input.get("messages")), false);
            }
            Type::RunFinished => self.finish(event, findings),
            _ => {}
        }
    }

    /// Whether an event refers to something that is open here.
    pub(super) fn knows(&self, kind: Type, event: View<'_>) -> bool {
        let has = |name: &str, is_open: &dyn Fn(&str) -> bool| {
            text(event, name).is_some_and(|id| is_open(&key(&id)))
        };
        match Step::new(kind, event) {
            Some(Step::Append { item, id, .. } | Step::Close { item, id, .. }) => {
                let known = self.items(item).get(&*short(&id));
                known.is_some_and(|known| known.is_open(item)) || self.lanes.holds(item, &id)
            }
            Some(Step::Event { .. }) => match kind {
                Type::StepFinished => has("stepName", &|name| self.steps.contains_key(name)),
                Type::SubagentFinished | Type::SubagentError => {
                    has("subagentRunId", &|id| self.subagents.get(id) == Some(&Subagent::Active))
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// How many things are remembered.
    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        let items = [&self.messages, &self.calls, &self.reasoning, &self.activities];
        let items: usize = items.into_iter().map(HashMap::len).sum();
        items + self.steps.len() + self.subagents.len() + self.tally.size()
    }

    fn items(&self, item: Item) -> &Ids<Known> {
        match item {
            Item::Text => &self.messages,
            Item::Tool => &self.calls,
            Item::Span | Item::Reasoning => &self.reasoning,
        }
    }

    fn items_mut(&mut self, item: Item) -> &mut Ids<Known> {
        match item {
            Item::Text => &mut self.messages,
            Item::Tool => &mut self.calls,
            Item::Span | Item::Reasoning => &mut self.reasoning,
        }
    }

    fn open(&mut self, item: Item, id: &str, tag: Option<&str>, findings: &mut Vec<Finding>) {
        let items = self.items_mut(item);
        let known = items.entry(key(id)).or_insert_with(|| Known::of(tag.map(key)));
        findings.extend(reopened(item, id, known, tag));
        known.set_open(item, true);
    }

    fn call(
        &mut self,
        id: &str,
        tag: Option<&str>,
        opener: &Opener<'_>,
        findings: &mut Vec<Finding>,
    ) {
        let parent = opener.parent.as_deref().and_then(|id| self.messages.get(&key(id)));
        let parent = parent.filter(|parent| parent.doubt != Doubt::Implied);
        let parent_owner = parent.map(|parent| parent.owner.clone());
        if let (Some(owner), Some(tag)) = (&parent_owner, tag)
            && owner.as_deref() != Some(&*short(tag))
        {
            findings.push(CALL_OWNER.at(
                "/subagentRunId",
                format!("the parent message was not opened by {}", quote(tag)),
            ));
        }
        let inherited = || tag.map(key).or_else(|| parent_owner.clone().flatten());
        let known = self.calls.entry(key(id)).or_insert_with(|| Known::of(inherited()));
        findings.extend(reopened(Item::Tool, id, known, tag));
        if let (None, Some(owner)) = (tag, &parent_owner)
            && *owner != known.owner
        {
            findings.push(CALL_MOVED.at("/parentMessageId", owned_by(known.owner.as_deref())));
        }
        known.open = true;
    }

    /// A piece of an item, or its end.
    fn go_on(
        &mut self,
        item: Item,
        id: &str,
        tag: Option<&str>,
        ends: bool,
        findings: &mut Vec<Finding>,
    ) {
        let items = self.items_mut(item);
        match items.get_mut(&*short(id)) {
            Some(known) if known.is_open(item) => {
                if let Some(finding) = disagrees(Some(known), tag)
                    && known.doubt == Doubt::None
                {
                    known.doubt = Doubt::Disputed;
                    findings.push(finding);
                }
                known.set_open(item, !ends);
            }
            known => {
                let pointer = format!("/{}", item.id_field());
                findings.push(not_open(item).at(pointer, no_open(item.name(), id)));
                if let (Some(known), false) = (known, ends) {
                    known.set_open(item, true);
                    known.doubt = Doubt::Implied;
                } else if !ends {
                    let implied =
                        Known { open: true, doubt: Doubt::Implied, ..Known::of(tag.map(key)) };
                    items.insert(key(id), implied);
                }
            }
        }
    }

    /// Messages as a snapshot or the input has them. Only a snapshot has the last word on whose they are.
    fn restate(&mut self, messages: Option<View<'_>>, authoritative: bool) {
        for message in messages.into_iter().flat_map(View::items) {
            let (Some(id), owner) = (id_in(message, "id"), id_in(message, "subagentRunId")) else {
                continue;
            };
            for call in message.get("toolCalls").into_iter().flat_map(View::items) {
                if let Some(id) = id_in(call, "id")
                    && (authoritative || !self.calls.contains_key(&id))
                {
                    own(&mut self.calls, id, owner.clone());
                }
            }
            let items = match text(message, "role").as_deref() {
                Some("reasoning") => &mut self.reasoning,
                Some("activity") => &mut self.activities,
                _ => &mut self.messages,
            };
            if authoritative || !items.contains_key(&id) {
                own(items, id, owner);
            }
        }
    }

    fn step_started(&mut self, tag: Owner, event: View<'_>, findings: &mut Vec<Finding>) {
        let Some(name) = id_in(event, "stepName") else {
            return;
        };
        let owners = self.steps.entry(name).or_default();
        if owners.contains(&tag) {
            findings.push(STEP_OPEN.at("/stepName", "the step is open already"));
        } else if owners.len() < OWNERS {
            owners.push(tag);
        } else {
            self.blind = true;
        }
    }

    fn step_finished(&mut self, tag: &Owner, event: View<'_>, findings: &mut Vec<Finding>) {
        let Some(name) = id_in(event, "stepName") else {
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

    fn subagent_started(&mut self, tag: Owner, event: View<'_>, findings: &mut Vec<Finding>) {
        let Some(id) = tag else { return };
        if let Some(parent) = id_in(event, "parentSubagentRunId")
            && !self.subagents.contains_key(&parent)
        {
            let message = format!("the parent {} was not started in this run", quote(&parent));
            findings.push(SUBAGENT_PARENT.at("/parentSubagentRunId", message));
            self.note(parent, Subagent::Implied);
        }
        let message = match self.note(id, Subagent::Active) {
            Some(Subagent::Active) => "the subagent is active already",
            Some(Subagent::Ended) => "the subagent has finished in this run",
            Some(Subagent::Implied) | None => return,
        };
        findings.push(SUBAGENT_AGAIN.at("/subagentRunId", message));
    }

    /// Remembers how a subagent is; gives how it was.
    fn note(&mut self, id: Box<str>, state: Subagent) -> Option<Subagent> {
        self.subagents.insert(id, state)
    }

    fn finish(&self, event: View<'_>, findings: &mut Vec<Finding>) {
        let named = [("threadId", &self.thread), ("runId", &self.id)];
        for (name, started) in named.into_iter().filter(|_| !self.headless) {
            if id_in(event, name).is_some_and(|finished| finished != *started) {
                let message = format!("{} was started", quote(started));
                findings.push(OTHER_RUN.at(format!("/{name}"), message));
            }
        }
        let open = |items: &Ids<Known>, item: Item| -> Vec<Box<str>> {
            let left = items
                .iter()
                .filter(|(_, known)| known.is_open(item) && known.doubt != Doubt::Implied);
            left.map(|(id, _)| id.clone()).collect()
        };
        let active = self.subagents.iter().filter(|(_, state)| **state == Subagent::Active);
        let active = active.map(|(id, _)| id.clone());
        let open: [(&str, Vec<Box<str>>); 6] = [
            ("steps", self.steps.keys().cloned().collect()),
            ("messages", open(&self.messages, Item::Text)),
            ("reasoning messages", open(&self.reasoning, Item::Reasoning)),
            ("reasoning spans", open(&self.reasoning, Item::Span)),
            ("tool calls", open(&self.calls, Item::Tool)),
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

/// Clears what has not become much smaller; whether it did.
fn clear_half<V>(items: &mut Ids<V>) -> bool {
    let crowded = items.len() > ITEMS / 2;
    if crowded {
        items.clear();
    }
    crowded
}

/// Records whose an item is from now on.
fn own(items: &mut Ids<Known>, id: Box<str>, owner: Owner) {
    items.entry(id).or_default().owner = owner;
}

fn reopened(item: Item, id: &str, known: &Known, tag: Option<&str>) -> Option<Finding> {
    if known.is_open(item) {
        let message = format!("the {} {} is open already", item.name(), quote(id));
        return Some(opened_twice(item).at(format!("/{}", item.id_field()), message));
    }
    disagrees(Some(known), tag)
}

/// A tag that is not that of whoever opened the item.
fn disagrees(known: Option<&Known>, tag: Option<&str>) -> Option<Finding> {
    // Whose an item is whose start is missing is not known.
    let known = known.filter(|known| known.doubt != Doubt::Implied)?;
    let owner = known.owner.as_deref();
    let tag = short(tag?);
    (owner != Some(&*tag)).then(|| OWNER.at("/subagentRunId", owned_by(owner)))
}

fn is_error(finding: &Finding) -> bool {
    finding.rule.severity == Severity::Error
}

fn no_open(what: &str, id: &str) -> String {
    format!("no {what} {} is open", quote(id))
}

/// Whose an item is, for people.
pub(in crate::agui) fn owned_by(owner: Option<&str>) -> String {
    match owner {
        Some(owner) => format!("it was opened by subagent {}", quote(owner)),
        None => "it was opened by the agent itself".to_owned(),
    }
}

/// The id in a field, as it is kept.
fn id_in(object: View<'_>, name: &str) -> Option<Box<str>> {
    text(object, name).map(|id| key(&id))
}
