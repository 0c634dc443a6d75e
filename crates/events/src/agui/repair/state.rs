//! What is open in a run that is being repaired, and what stands against the next event.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::event::Event;
use crate::agui::event::Type;
use crate::agui::expand::Lanes;
use crate::agui::sequence::{
    AFTER_FINISH, CALL_MOVED, CHUNK_AMBIGUOUS, CHUNK_CHANGED, FIRST_CHUNK, OWNER,
    REASONING_NOT_OPEN, REASONING_OPEN, STEP_NOT_OPEN, STEP_OPEN, SUBAGENT_AGAIN,
    SUBAGENT_NOT_OPEN, SUBAGENT_PARENT, TEXT_NOT_OPEN, TEXT_OPEN, TOOL,
};
use crate::agui::step::{Item, Step};
use crate::check::recent::Seed;
use crate::finding::Rule;

/// Whoever opened an item: a subagent, or the agent itself.
type Owner = Option<String>;

/// What is known of the run.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    /// The thread and the run, while one is open.
    pub(super) run: Option<(String, String)>,
    /// What is open, and since when.
    open: HashMap<(Item, String), u64, Seed>,
    owners: HashMap<(Kind, String), Owner, Seed>,
    steps: Vec<(Owner, String)>,
    /// Subagents of this run: since when they are active, or none.
    subagents: HashMap<String, Option<u64>, Seed>,
    /// The tools of calls that were opened.
    tools: HashMap<String, String, Seed>,
    counted: u64,
}

/// What has an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Message,
    Call,
    Reasoning,
    Activity,
}

impl From<Item> for Kind {
    fn from(item: Item) -> Self {
        match item {
            Item::Text => Self::Message,
            Item::Tool => Self::Call,
            Item::Span | Item::Reasoning => Self::Reasoning,
        }
    }
}

/// What stands against an event, and what would help.
pub(super) enum Conflict {
    /// Nothing: these are the lanes afterwards, and what it does.
    None { lanes: Lanes, steps: Vec<Done> },
    /// It cannot be there.
    LeaveOut(&'static Rule),
    /// A field is wrong.
    Remove(&'static Rule, &'static str),
    /// A field is missing; without a value, one has to be made up.
    Set(&'static Rule, &'static str, Option<String>),
    /// Another event is missing before it.
    Before(&'static Rule, Box<Event>),
}

/// What an event does to items.
#[derive(Debug, Clone)]
pub(super) struct Done {
    item: Item,
    id: String,
    does: Does,
    tag: Owner,
    parent: Option<String>,
    tool: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Open,
    Append,
    Close,
}

impl Done {
    fn of(step: &Step<'_>) -> Option<Self> {
        let own = |text: &Option<std::borrow::Cow<'_, str>>| text.as_deref().map(str::to_owned);
        let (item, id, tag, does) = match step {
            Step::Open { item, id, tag, .. } => (*item, id, tag, Does::Open),
            Step::Append { item, id, tag, .. } => (*item, id, tag, Does::Append),
            Step::Close { item, id, tag, .. } => (*item, id, tag, Does::Close),
            Step::Event { .. } => return None,
        };
        let (mut parent, mut tool) = (None, None);
        if let Step::Open { item: Item::Tool, opener, .. } = step {
            (parent, tool) = (own(&opener.parent), own(&opener.name));
        }
        Some(Self { item, id: id.to_string(), does, tag: own(tag), parent, tool })
    }
}

impl State {
    /// At the start of a run.
    pub(super) fn of(run: (String, String)) -> Self {
        Self { run: Some(run), ..Self::default() }
    }

    /// The item of this kind that was opened last and is open.
    pub(super) fn newest(&self, item: Item) -> Option<String> {
        let open = self.open.iter().filter(|((kind, _), _)| *kind == item);
        open.max_by_key(|(_, since)| **since).map(|((_, id), _)| id.clone())
    }

    pub(super) fn newest_step(&self) -> Option<String> {
        self.steps.last().map(|(_, name)| name.clone())
    }

    pub(super) fn newest_subagent(&self) -> Option<String> {
        let active = self.subagents.iter().filter_map(|(id, since)| Some((since.as_ref()?, id)));
        active.max_by_key(|(since, _)| **since).map(|(_, id)| id.clone())
    }

    /// The first thing that stands against an event.
    pub(super) fn conflict(&self, event: &Event, lanes: &Lanes) -> Conflict {
        let message = event.to_message();
        let document = message.document();
        if document.too_deep().is_some() {
            return Conflict::LeaveOut(&AFTER_FINISH);
        }
        let (mut lanes, mut findings, mut steps) = (lanes.clone(), Vec::new(), Vec::new());
        lanes.expand(event.kind, document.root(), &mut findings, &mut |step, _| {
            steps.extend(Done::of(&step));
        });
        if let Some(finding) = findings.first() {
            return self.chunk_conflict(event, finding.rule, &finding.pointer);
        }
        // What the event itself closes and opens, before it does more.
        let mut now: Vec<(&Done, bool)> = Vec::new();
        for done in &steps {
            let same = |other: &&(&Done, bool)| other.0.item == done.item && other.0.id == done.id;
            let is_open = now.iter().rev().find(same).map(|(_, open)| *open);
            let is_open =
                is_open.unwrap_or_else(|| self.open.contains_key(&(done.item, done.id.clone())));
            let chunked =
                lanes.holds(done.item, &done.id) && event.text(done.item.id_field()).is_some();
            if chunked
                && done.does != Does::Append
                && Step::new(event.kind, document.root()).is_some()
            {
                // Somebody else's chunks open and close it.
                return Conflict::LeaveOut(rules_of(done.item).0);
            }
            if let Some(conflict) = self.item_conflict(event, done, is_open) {
                return conflict;
            }
            now.push((done, done.does != Does::Close));
        }
        if let (Type::ToolCallResult, Some(id)) = (event.kind, event.text("messageId"))
            && lanes.holds(Item::Text, id)
        {
            // The end of the chunks would no longer be their owner's.
            return Conflict::Set(&OWNER, "messageId", None);
        }
        match self.other_conflict(event) {
            Some(conflict) => conflict,
            None => Conflict::None { lanes, steps },
        }
    }

    fn chunk_conflict(&self, event: &Event, rule: &'static Rule, pointer: &str) -> Conflict {
        let item = match event.kind {
            Type::ToolCallChunk => Item::Tool,
            Type::ReasoningMessageChunk => Item::Reasoning,
            _ => Item::Text,
        };
        let field = match pointer {
            "/role" => "role",
            "/name" => "name",
            "/toolCallName" => "toolCallName",
            "/parentMessageId" => "parentMessageId",
            _ => "subagentRunId",
        };
        match rule.code {
            code if code == FIRST_CHUNK.code && field == "toolCallName" => {
                Conflict::Set(rule, field, Some("unknown".to_owned()))
            }
            code if code == FIRST_CHUNK.code => Conflict::Set(rule, item.id_field(), None),
            code if code == CHUNK_AMBIGUOUS.code => {
                Conflict::Set(rule, item.id_field(), self.newest(item))
            }
            code if code == CHUNK_CHANGED.code || code == OWNER.code => {
                Conflict::Remove(rule, field)
            }
            _ => Conflict::LeaveOut(if event.kind == Type::ToolCallChunk { &TOOL } else { rule }),
        }
    }

    fn item_conflict(&self, event: &Event, done: &Done, is_open: bool) -> Option<Conflict> {
        let (item, id) = (done.item, &done.id);
        let owner = self.owners.get(&(item.into(), id.clone()));
        // What a chunk makes open and close carries no tag of its own that could be wrong.
        let tagged = done.tag.is_some() && event.fields.contains_key("subagentRunId");
        let field = item.id_field();
        match done.does {
            Does::Open if is_open => {
                let end = Event::made(end_of(item), json!({ field: id }));
                return Some(Conflict::Before(rules_of(item).0, Box::new(end)));
            }
            Does::Append if !is_open => {
                let tool = self.tools.get(id).map_or("unknown", String::as_str);
                let start = Event::made(start_of(item), json!({ field: id }))
                    .with("toolCallName", (item == Item::Tool).then_some(tool))
                    .with("role", (item == Item::Reasoning).then_some("reasoning"))
                    .with("subagentRunId", done.tag.clone().filter(|_| owner.is_none()));
                return Some(Conflict::Before(rules_of(item).1, Box::new(start)));
            }
            Does::Close if !is_open => return Some(Conflict::LeaveOut(rules_of(item).1)),
            _ => {}
        }
        if tagged && owner.is_some_and(|owner| *owner != done.tag) {
            return Some(Conflict::Remove(&OWNER, "subagentRunId"));
        }
        let parent = done.parent.as_ref()?;
        let parent = self.owners.get(&(Kind::Message, parent.clone()))?;
        let moved = match (&done.tag, owner) {
            (Some(_), _) => *parent != done.tag,
            (None, Some(owner)) => parent != owner,
            (None, None) => false,
        };
        moved.then_some(Conflict::Remove(&CALL_MOVED, "parentMessageId"))
    }

    fn other_conflict(&self, event: &Event) -> Option<Conflict> {
        let text = |name: &str| event.text(name).map(str::to_owned);
        let tag = text("subagentRunId");
        let disagrees = |kind: Kind, id: Option<String>| {
            let owner = self.owners.get(&(kind, id?))?;
            (tag.is_some() && *owner != tag).then_some(Conflict::Remove(&OWNER, "subagentRunId"))
        };
        match event.kind {
            Type::StepStarted => {
                let step = (tag, text("stepName")?);
                if !self.steps.contains(&step) {
                    return None;
                }
                Some(Conflict::Before(&STEP_OPEN, Box::new(step_end(&step))))
            }
            Type::StepFinished => {
                let step = (tag, text("stepName")?);
                if self.steps.contains(&step) {
                    return None;
                }
                let other = self.steps.iter().rev().find(|(_, name)| *name == step.1);
                Some(match other {
                    Some((Some(owner), _)) => {
                        Conflict::Set(&STEP_NOT_OPEN, "subagentRunId", Some(owner.clone()))
                    }
                    Some((None, _)) => Conflict::Remove(&STEP_NOT_OPEN, "subagentRunId"),
                    None => Conflict::LeaveOut(&STEP_NOT_OPEN),
                })
            }
            Type::SubagentStarted => {
                if self.subagents.contains_key(&tag?) {
                    return Some(Conflict::LeaveOut(&SUBAGENT_AGAIN));
                }
                let parent = text("parentSubagentRunId")?;
                (!self.subagents.contains_key(&parent))
                    .then_some(Conflict::Remove(&SUBAGENT_PARENT, "parentSubagentRunId"))
            }
            Type::SubagentFinished | Type::SubagentError => {
                let active = self.subagents.get(&tag?).is_some_and(Option::is_some);
                (!active).then_some(Conflict::LeaveOut(&SUBAGENT_NOT_OPEN))
            }
            Type::ActivityDelta => disagrees(Kind::Activity, text("messageId")),
            Type::ReasoningEncryptedValue if text("subtype").as_deref() == Some("tool-call") => {
                disagrees(Kind::Call, text("entityId"))
            }
            Type::ReasoningEncryptedValue => {
                let id = text("entityId")?;
                let of_message = self.owners.contains_key(&(Kind::Message, id.clone()));
                disagrees(if of_message { Kind::Message } else { Kind::Reasoning }, Some(id))
            }
            _ => None,
        }
    }

    /// Takes note of an event that goes out.
    pub(super) fn apply(&mut self, event: &Event, steps: Vec<Done>) {
        self.counted += 1;
        for done in steps {
            let kind = Kind::from(done.item);
            let key = (done.item, done.id.clone());
            match done.does {
                Does::Open => {
                    self.open.insert(key, self.counted);
                    let parent = done.parent.map(|parent| (Kind::Message, parent));
                    let inherited = parent.and_then(|parent| self.owners.get(&parent)).cloned();
                    let owner = done.tag.or_else(|| inherited.flatten());
                    self.owners.entry((kind, done.id.clone())).or_insert(owner);
                    if let Some(tool) = done.tool {
                        self.tools.insert(done.id, tool);
                    }
                }
                Does::Append => {}
                Does::Close => {
                    self.open.remove(&key);
                }
            }
        }
        let text = |name: &str| event.text(name).map(str::to_owned);
        let tag = text("subagentRunId");
        match (event.kind, text("messageId"), &tag) {
            (Type::StepStarted, ..) => self.steps.push((tag, text("stepName").unwrap_or_default())),
            (Type::StepFinished, ..) => {
                let step = (tag, text("stepName").unwrap_or_default());
                self.steps.retain(|open| *open != step);
            }
            (Type::SubagentStarted, _, Some(tag)) => {
                self.subagents.insert(tag.clone(), Some(self.counted));
            }
            (Type::SubagentFinished | Type::SubagentError, _, Some(tag)) => {
                self.subagents.insert(tag.clone(), None);
            }
            (Type::ToolCallResult, Some(id), _) => {
                self.owners.insert((Kind::Message, id), tag);
            }
            (Type::ActivitySnapshot, Some(id), _) => {
                let keeps = event.fields.get("replace") == Some(&Value::Bool(false));
                if !(keeps && self.owners.contains_key(&(Kind::Activity, id.clone()))) {
                    self.owners.insert((Kind::Activity, id), tag);
                }
            }
            (Type::MessagesSnapshot, ..) => self.restate(event.fields.get("messages"), true),
            (Type::RunStarted, ..) => {
                let input = event.fields.get("input");
                self.restate(input.and_then(|input| input.get("messages")), false);
            }
            _ => {}
        }
    }

    fn restate(&mut self, messages: Option<&Value>, authoritative: bool) {
        let text = |value: &Value, name: &str| Some(value.get(name)?.as_str()?.to_owned());
        for message in messages.and_then(Value::as_array).into_iter().flatten() {
            let owner = text(message, "subagentRunId");
            let kind = match message.get("role").and_then(Value::as_str) {
                Some("reasoning") => Kind::Reasoning,
                Some("activity") => Kind::Activity,
                _ => Kind::Message,
            };
            let calls = message.get("toolCalls").and_then(Value::as_array).into_iter().flatten();
            let calls = calls.filter_map(|call| Some((Kind::Call, text(call, "id")?)));
            for key in text(message, "id").map(|id| (kind, id)).into_iter().chain(calls) {
                if authoritative || !self.owners.contains_key(&key) {
                    self.owners.insert(key, owner.clone());
                }
            }
        }
    }

    /// The events that close whatever is open and does not close by itself; subagents of a run that waits wait too.
    pub(super) fn closings(&self, waits: bool, lanes: &Lanes) -> Vec<Event> {
        let mut open: Vec<_> = self.open.iter().collect();
        open.retain(|((item, id), _)| !lanes.holds(*item, id));
        // The innermost first: what was opened last.
        open.sort_by_key(|(_, since)| std::cmp::Reverse(**since));
        let items = open
            .into_iter()
            .map(|((item, id), _)| Event::made(end_of(*item), json!({ item.id_field(): id })));
        let steps = self.steps.iter().rev().map(step_end);
        let mut active: Vec<_> =
            self.subagents.iter().filter_map(|(id, since)| Some((since.as_ref()?, id))).collect();
        active.sort_by_key(|(since, _)| std::cmp::Reverse(**since));
        let subagents = active.into_iter().map(|(_, id)| {
            if waits {
                let outcome = json!({ "subagentRunId": id, "outcome": { "type": "suspended" } });
                return Event::made(Type::SubagentFinished, outcome);
            }
            let message = "the subagent's end is missing";
            let error = json!({ "subagentRunId": id, "message": message, "code": "truncated" });
            Event::made(Type::SubagentError, error)
        });
        items.chain(steps).chain(subagents).collect()
    }
}

fn step_end((owner, name): &(Owner, String)) -> Event {
    Event::made(Type::StepFinished, json!({ "stepName": name }))
        .with("subagentRunId", owner.clone())
}

fn start_of(item: Item) -> Type {
    match item {
        Item::Text => Type::TextMessageStart,
        Item::Tool => Type::ToolCallStart,
        Item::Span => Type::ReasoningStart,
        Item::Reasoning => Type::ReasoningMessageStart,
    }
}

fn end_of(item: Item) -> Type {
    match item {
        Item::Text => Type::TextMessageEnd,
        Item::Tool => Type::ToolCallEnd,
        Item::Span => Type::ReasoningEnd,
        Item::Reasoning => Type::ReasoningMessageEnd,
    }
}

/// The rules of an item that is open already, and of one that is not.
fn rules_of(item: Item) -> (&'static Rule, &'static Rule) {
    match item {
        Item::Text => (&TEXT_OPEN, &TEXT_NOT_OPEN),
        Item::Tool => (&TOOL, &TOOL),
        Item::Span | Item::Reasoning => (&REASONING_OPEN, &REASONING_NOT_OPEN),
    }
}
