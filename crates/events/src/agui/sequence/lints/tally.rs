//! The calls and subagents of one run: what was asked, what was answered, what waits.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{ARGUMENTS, CLIENT_TOOL, PENDING, RESULT_EARLY, SUSPENDED};
use crate::check::recent::{Seed, key, short};
use crate::check::shape::{quote, says, text};
use crate::finding::Finding;
use crate::json::{Parser, View};

/// How many calls, tools or interrupts of one run are followed; where there are more, nothing is told of the run.
pub(super) const CALLS: usize = 4096;

/// How many bytes of arguments are kept, of one call and of all calls of a run.
const ARGUMENT_BYTES: usize = 64 * 1024;
const ALL_ARGUMENT_BYTES: usize = 1024 * 1024;

/// What is known of one run.
#[derive(Debug, Clone, Default)]
pub(in crate::agui::sequence) struct Tally {
    calls: HashMap<Box<str>, Call, Seed>,
    /// The tools that the application brought.
    tools: HashSet<Box<str>, Seed>,
    suspended: bool,
    /// The interrupts that suspended subagents named.
    suspending: Vec<Box<str>>,
    argument_bytes: usize,
    /// Changes to the state since the last snapshot.
    pub(super) deltas: u64,
    /// Whether something of the run is not known.
    blind: bool,
}

#[derive(Debug, Clone, Default)]
struct Call {
    phase: Phase,
    answered: bool,
    /// Whether the application brought the tool.
    brought: bool,
    /// The arguments so far; none where they are too long to keep.
    arguments: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    /// Only its result came, so far.
    #[default]
    Unstarted,
    Open,
    Closed,
}

impl Tally {
    /// For a run that is not known from its beginning.
    pub(in crate::agui::sequence) fn blind() -> Self {
        Self { blind: true, ..Self::default() }
    }

    /// From now on, nothing is told of this run.
    pub(in crate::agui::sequence) fn give_up(&mut self) {
        *self = Self::blind();
    }

    /// How many calls are remembered.
    #[cfg(test)]
    pub(in crate::agui::sequence) fn size(&self) -> usize {
        self.calls.len()
    }

    pub(super) fn is_blind(&self) -> bool {
        self.blind
    }

    /// The application brought these tools.
    pub(super) fn bring(&mut self, tools: Option<View<'_>>) {
        let names = tools.into_iter().flat_map(View::items).filter_map(|tool| text(tool, "name"));
        self.tools.extend(names.take(CALLS).map(|name| key(&name)));
    }

    pub(super) fn open(&mut self, id: &str, tool: &str) {
        let brought = self.tools.contains(&*short(tool));
        if let Some(call) = self.call(id) {
            if call.phase == Phase::Unstarted {
                call.arguments = Some(String::new());
            }
            (call.phase, call.brought) = (Phase::Open, brought);
        }
    }

    pub(super) fn append(&mut self, id: &str, delta: &str) {
        let Some(call) = self.calls.get_mut(&*short(id)) else { return };
        let Some(arguments) = &mut call.arguments else { return };
        let whole = arguments.len() + delta.len();
        let all = self.argument_bytes + delta.len();
        if whole > ARGUMENT_BYTES || all > ALL_ARGUMENT_BYTES {
            self.argument_bytes -= arguments.len();
            call.arguments = None;
        } else {
            self.argument_bytes = all;
            arguments.push_str(delta);
        }
    }

    pub(super) fn close(&mut self, id: &str) -> Option<Finding> {
        let call = self.calls.get_mut(&*short(id))?;
        call.phase = Phase::Closed;
        let arguments = call.arguments.as_deref().filter(|arguments| !arguments.is_empty())?;
        let error = Parser::default().parse(arguments.as_bytes()).err()?;
        Some(ARGUMENTS.at("/toolCallId", format!("the arguments are not JSON: {error}")))
    }

    pub(super) fn result(&mut self, event: View<'_>) -> Option<Finding> {
        let id = text(event, "toolCallId")?;
        let call = self.call(&id)?;
        call.answered = true;
        if call.phase == Phase::Open {
            return Some(RESULT_EARLY.at("/toolCallId", format!("{} is still open", quote(&id))));
        }
        let message = || format!("the application brought the tool of {}", quote(&id));
        call.brought.then(|| CLIENT_TOOL.at("/toolCallId", message()))
    }

    pub(super) fn suspend(&mut self, outcome: Option<View<'_>>) {
        let Some(outcome) = outcome.filter(|outcome| says(*outcome, "type", "suspended")) else {
            return;
        };
        self.suspended = true;
        let ids = outcome.get("interruptIds").into_iter().flat_map(View::items);
        let room = CALLS.saturating_sub(self.suspending.len());
        self.suspending.extend(ids.take(room).filter_map(View::as_str).map(|id| key(&id)));
    }

    /// The calls that have no result.
    pub(super) fn pending(&self) -> Vec<Box<str>> {
        let waits = |call: &Call| call.phase != Phase::Unstarted && !call.answered;
        let waiting = self.calls.iter().filter(|(_, call)| waits(call));
        let mut ids: Vec<Box<str>> = waiting.map(|(id, _)| id.clone()).collect();
        ids.sort_unstable();
        ids
    }

    pub(super) fn finish(&self, event: View<'_>, findings: &mut Vec<Finding>) {
        let outcome = event.get("outcome");
        // Clients work an empty list out themselves, as if it were absent.
        let list = outcome.and_then(|outcome| outcome.get("pendingToolCallIds"));
        let named = list.into_iter().flat_map(View::items).filter_map(View::as_str);
        let named: BTreeSet<Box<str>> = named.map(|id| key(&id)).collect();
        let pending: BTreeSet<Box<str>> = self.pending().into_iter().collect();
        let pointer = "/outcome/pendingToolCallIds";
        if named.is_empty() {
            // Nothing to compare with.
        } else if let Some(id) = named.difference(&pending).next() {
            findings.push(PENDING.at(pointer, format!("{} is named and not pending", quote(id))));
        } else if let Some(id) = pending.difference(&named).next() {
            findings.push(PENDING.at(pointer, format!("{} is pending and not named", quote(id))));
        }
        if !self.suspended {
            return;
        }
        let interrupts = outcome.filter(|outcome| says(*outcome, "type", "interrupt"));
        let Some(interrupts) = interrupts.and_then(|outcome| outcome.get("interrupts")) else {
            findings.push(SUSPENDED.at("/outcome", "a subagent waits, and the run does not"));
            return;
        };
        let listed: HashSet<Box<str>> =
            interrupts.items().filter_map(|one| text(one, "id")).map(|id| key(&id)).collect();
        if let Some(id) = self.suspending.iter().find(|id| !listed.contains(*id)) {
            let message = format!("a subagent waits for {}, which is not listed", quote(id));
            findings.push(SUSPENDED.at("/outcome/interrupts", message));
        }
    }

    /// A call, known from now on.
    fn call(&mut self, id: &str) -> Option<&mut Call> {
        if self.calls.len() >= CALLS {
            self.give_up();
        }
        (!self.blind).then(|| self.calls.entry(key(id)).or_default())
    }
}
