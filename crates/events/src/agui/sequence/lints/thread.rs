//! What a thread has beyond its runs: the messages by id, the shared state, what waits for an answer.

use std::collections::HashSet;
use std::hash::BuildHasher;

use super::kept::{Kept, Patched};
use super::{
    COLLISION, DELTA_FAILS, PARENT_KIND, PARENT_UNKNOWN, RENAMED, RESUME, UNANSWERED,
    UNKNOWN_TARGET,
};
use crate::agui::patch::PatchError;
use crate::agui::step::Item;
use crate::check::recent::{Recent, Seed, key, short};
use crate::check::shape::{quote, says, text};
use crate::finding::Finding;
use crate::json::View;

/// How many messages, calls or runs of one thread are remembered; the oldest are forgotten.
const IDS: usize = 16_384;

/// The largest state that is followed, with the changes to it.
const STATE_BYTES: usize = 1024 * 1024;

/// The largest activity that is followed, and how many are at once.
const ACTIVITY_BYTES: usize = 64 * 1024;
const ACTIVITIES: usize = 16;

/// What is known of one thread.
#[derive(Debug, Clone)]
pub(super) struct Thread {
    pub(super) name: Box<str>,
    messages: Recent<Role>,
    /// Call → the hash of its tool's name.
    calls: Recent<u64>,
    runs: Recent<()>,
    seed: Seed,
    /// Whether a snapshot told the state once.
    pub(super) has_state: bool,
    state: Option<Kept>,
    activities: Vec<(Box<str>, Kept)>,
    /// The interrupts that the last run ended with.
    pub(super) interrupts: Vec<Box<str>>,
    /// The calls that the last run left to the application.
    pub(super) unanswered: Vec<Box<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Assistant,
    Reasoning,
    Activity,
    Tool,
    Other,
}

impl Role {
    fn of(word: &str) -> Self {
        match word {
            "assistant" => Self::Assistant,
            "reasoning" => Self::Reasoning,
            "activity" => Self::Activity,
            "tool" => Self::Tool,
            _ => Self::Other,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Assistant => "a message of the assistant",
            Self::Reasoning => "a reasoning message",
            Self::Activity => "an activity",
            Self::Tool => "a result",
            Self::Other => "a message",
        }
    }
}

impl Thread {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            messages: Recent::new(IDS),
            calls: Recent::new(IDS),
            runs: Recent::new(IDS),
            seed: Seed::default(),
            has_state: false,
            state: None,
            activities: Vec::new(),
            interrupts: Vec::new(),
            unanswered: Vec::new(),
        }
    }

    /// Whether a run of this id was there before.
    pub(super) fn starts(&mut self, run: &str) -> bool {
        self.runs.first(run, ()).is_some()
    }

    /// What the input of a run leaves unanswered of the run before it.
    pub(super) fn answered(&self, input: View<'_>, findings: &mut Vec<Finding>) {
        let ids = |list: &str, name: &str| -> HashSet<Box<str>> {
            let entries = input.get(list).into_iter().flat_map(View::items);
            entries.filter_map(|entry| text(entry, name)).map(|id| key(&id)).collect()
        };
        let resumed = ids("resume", "interruptId");
        if let Some(id) = self.interrupts.iter().find(|id| !resumed.contains(*id)) {
            let message = format!("the interrupt {} has no answer", quote(id));
            findings.push(RESUME.at("/input/resume", message));
        }
        // Only tool messages have this field.
        let told = ids("messages", "toolCallId");
        if let Some(id) = self.unanswered.iter().find(|id| !told.contains(*id)) {
            let message = format!("the call {} has no tool message", quote(id));
            findings.push(UNANSWERED.at("/input/messages", message));
        }
    }

    /// A message begins.
    pub(super) fn message(&mut self, item: Item, id: &str, role: Option<&str>) -> Option<Finding> {
        let role = match item {
            Item::Reasoning => Role::Reasoning,
            _ => Role::of(role.unwrap_or("assistant")),
        };
        let known = *self.messages.first(id, role)?;
        // Pieces are added to whatever is there already, unless it is an activity: then they are lost.
        let apart = |known: Role| matches!(known, Role::Activity | Role::Reasoning | Role::Tool);
        (known != role && (apart(known) || apart(role))).then(|| collision(known))
    }

    /// A call begins, also one that was there before.
    pub(super) fn call(&mut self, id: &str, tool: &str, parent: Option<&str>) -> Option<Finding> {
        let tool = self.seed.hash_one(tool);
        if let Some(known) = self.calls.first(id, tool) {
            let renamed = std::mem::replace(known, tool) != tool;
            let message = || format!("the call {} had another name", quote(id));
            return renamed.then(|| RENAMED.at("/toolCallName", message()));
        }
        // Clients make up a message for a call without one, under its id. Nobody sent that, so nothing is held to it.
        let parent = parent?;
        match self.messages.first(parent, Role::Assistant) {
            Some(Role::Assistant) => None,
            Some(other) => {
                let message = format!("{} is {}", quote(parent), other.name());
                Some(PARENT_KIND.at("/parentMessageId", message))
            }
            None => {
                let message = format!("no message {} came before", quote(parent));
                Some(PARENT_UNKNOWN.at("/parentMessageId", message))
            }
        }
    }

    pub(super) fn result(&mut self, event: View<'_>) -> Option<Finding> {
        let known = *self.messages.first(&*text(event, "messageId")?, Role::Tool)?;
        (known != Role::Tool).then(|| collision(known))
    }

    pub(super) fn activity(&mut self, event: View<'_>) -> Option<Finding> {
        let id = text(event, "messageId")?;
        let keeps = event.get("replace").and_then(View::as_bool) == Some(false);
        let known = self.messages.first(&*id, Role::Activity);
        let before = known.as_deref().copied();
        if before.is_none() || !keeps {
            if let Some(known) = known {
                *known = Role::Activity;
            }
            let id = key(&id);
            self.activities.retain(|(own, _)| *own != id);
            if self.activities.len() >= ACTIVITIES {
                self.activities.remove(0);
            }
            let content = event.get("content").and_then(|value| Kept::new(value, ACTIVITY_BYTES));
            self.activities.extend(content.map(|content| (id, content)));
        }
        before.filter(|role| *role != Role::Activity).map(collision)
    }

    pub(super) fn activity_delta(&mut self, event: View<'_>) -> Option<Finding> {
        let id = text(event, "messageId")?;
        match self.messages.get(&*id) {
            Some(Role::Activity) => {}
            Some(other) => return Some(collision(*other)),
            None => {
                let message = format!("no activity {} came before", quote(&id));
                return Some(UNKNOWN_TARGET.at("/messageId", message));
            }
        }
        let at = self.activities.iter().position(|(own, _)| **own == *short(&id))?;
        let (_, kept) = self.activities.get_mut(at)?;
        match kept.patch(event.get("patch")?) {
            Patched::Done => None,
            Patched::Failed(error) => Some(fails("/patch", &error)),
            Patched::TooLarge => {
                self.activities.remove(at);
                None
            }
        }
    }

    pub(super) fn encrypted(&self, event: View<'_>) -> Option<Finding> {
        let id = text(event, "entityId")?;
        let (known, what) = if says(event, "subtype", "tool-call") {
            (self.calls.get(&*id).is_some(), "call")
        } else {
            (self.messages.get(&*id).is_some(), "message")
        };
        let message = || format!("no {what} {} came before", quote(&id));
        (!known).then(|| UNKNOWN_TARGET.at("/entityId", message()))
    }

    pub(super) fn snapshot(&mut self, event: View<'_>) {
        self.has_state = true;
        self.state = event.get("snapshot").and_then(|state| Kept::new(state, STATE_BYTES));
    }

    pub(super) fn delta(&mut self, event: View<'_>) -> Option<Finding> {
        match self.state.as_mut()?.patch(event.get("delta")?) {
            Patched::Done => None,
            Patched::Failed(error) => Some(fails("/delta", &error)),
            Patched::TooLarge => {
                self.state = None;
                None
            }
        }
    }

    /// Messages as a snapshot or the input has them. Only a snapshot has the last word on what they are.
    pub(super) fn restate(&mut self, messages: Option<View<'_>>, authoritative: bool) {
        for message in messages.into_iter().flat_map(View::items) {
            let (Some(id), Some(role)) = (text(message, "id"), text(message, "role")) else {
                continue;
            };
            let role = Role::of(&role);
            if let Some(known) = self.messages.first(&*id, role).filter(|_| authoritative) {
                *known = role;
            }
            if authoritative && role == Role::Activity {
                self.activities.retain(|(own, _)| **own != *short(&id));
            }
            for call in message.get("toolCalls").into_iter().flat_map(View::items) {
                let name = call.get("function").and_then(|function| text(function, "name"));
                let (Some(id), Some(name)) = (text(call, "id"), name) else { continue };
                let name = self.seed.hash_one(&*name);
                if let Some(known) = self.calls.first(&*id, name).filter(|_| authoritative) {
                    *known = name;
                }
            }
        }
    }
}

fn fails(patch: &str, error: &PatchError) -> Finding {
    let message = format!("{}: {}", quote(&error.pointer), error.reason);
    DELTA_FAILS.at(format!("{patch}/{}", error.index), message)
}

fn collision(known: Role) -> Finding {
    COLLISION.at("/messageId", format!("the id is that of {}", known.name()))
}
