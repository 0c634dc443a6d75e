//! What the verifier lets pass and the order of events shows all the same.
//!
//! Clients go on here, with less than the producer meant: a patch that does not apply is skipped, a message under an
//! activity's id is ignored. None of it is an error. What a message that got lost may explain is not told: a run in
//! which one did is not looked at any further, and what was known before is forgotten.

use super::Sequence;
use crate::agui::event::Type;
use crate::agui::step::{Item, Step};
use crate::check::rules;
use crate::check::shape::{quote, says, text};
use crate::finding::Finding;
use crate::json::View;
use tally::Tally;
use thread::Thread;

mod kept;
pub(super) mod tally;
mod thread;

rules! {
    RESULT_EARLY = "AGUI-SEQ-30" Warning Producer
        "A result follows the end of its call's arguments.",
        "Send TOOL_CALL_END before TOOL_CALL_RESULT.";
    PARENT_UNKNOWN = "AGUI-SEQ-31" Note (opt_in) Producer
        "The message that carries a call is in the stream; clients make up one that is not.",
        "Start the message before its call, or leave parentMessageId out.";
    DELTA_FIRST = "AGUI-SEQ-32" Note (opt_in) Producer
        "A snapshot of the state comes before changes to it.",
        "Send STATE_SNAPSHOT first.";
    DELTA_FAILS = "AGUI-SEQ-33" Warning Producer
        "A patch applies to what it changes; clients skip one that does not.",
        "Patch what the last snapshot and the patches since then gave.";
    DELTAS_DISCARDED = "AGUI-SEQ-34" Note (opt_in) Producer
        "A snapshot makes the changes before it worthless.",
        "Send either snapshots or changes, not both for the same change.";
    ARGUMENTS = "AGUI-SEQ-35" Warning (opt_in) Producer
        "The arguments of a call are JSON when it ends.",
        "Send the pieces of one JSON object, all of them.";
    PENDING = "AGUI-SEQ-36" Warning Producer
        "pendingToolCallIds names the calls of the run that have no result, and no others.",
        "Name exactly the unanswered calls, or leave the list out.";
    UNKNOWN_TARGET = "AGUI-SEQ-37" Warning (opt_in) Producer
        "Changes and encrypted values are for something in the stream; clients ignore others silently.",
        "Send the activity, message or call first.";
    COLLISION = "AGUI-SEQ-38" Warning Producer
        "An id is that of one message of one kind.",
        "Give text, reasoning, activities and results ids of their own.";
    RENAMED = "AGUI-SEQ-39" Warning Producer
        "A call that is opened again calls the same tool.",
        "Repeat toolCallName, or use a new toolCallId.";
    SUSPENDED = "AGUI-SEQ-40" Warning Producer
        "The interrupts that suspend a subagent are among those the run ends with.",
        "Finish the run with an interrupt outcome that lists them.";
    OTHER_THREAD = "AGUI-SEQ-41" Warning (opt_in) Producer
        "All runs of a stream are of one thread.",
        "Answer each thread in a stream of its own.";
    NO_TIME = "AGUI-SEQ-42" Note (opt_in) Producer
        "Events have timestamps.",
        "Add \"timestamp\", in milliseconds since 1970.";
    RESUME = "AGUI-SEQ-43" Warning Subscriber
        "A run after an interrupt answers every interrupt, to resolve or to cancel it.",
        "List every interrupt in the resume entries of the input.";
    UNANSWERED = "AGUI-SEQ-44" Warning Subscriber
        "The input after a run has a tool message for each call it left pending.",
        "Add a tool message for every pending call, declined and failed ones, too.";
    CLIENT_TOOL = "AGUI-SEQ-45" Warning Producer
        "The application runs the tools that it brought: the producer sends no result for them.",
        "Finish the run and wait for the result in the next input.";
    SAME_RUN = "AGUI-SEQ-46" Warning (opt_in) Both
        "A runId is used once in a thread.",
        "Make a new runId for each run.";
    PARENT_KIND = "AGUI-SEQ-47" Warning Producer
        "The message that carries a call is one of the assistant's; clients put the call elsewhere if not.",
        "Name an assistant message as parent, or none.";
}

/// How many threads are followed at once; the oldest is let go.
const THREADS: usize = 8;

/// What is known beyond the verifier's run.
#[derive(Debug, Clone, Default)]
pub(super) struct Lints {
    off: bool,
    pub(super) strict: bool,
    threads: Vec<Thread>,
    /// The thread of the first run.
    first: Option<Box<str>>,
    /// Whether an event had a timestamp; not known before one came, or where nobody asks.
    timed: Option<bool>,
    /// Whether a message got lost: what is not known may have been told by it.
    missed: bool,
}

/// The run that a step belongs to.
pub(super) struct At<'r> {
    pub(super) thread: &'r str,
    pub(super) run: &'r str,
    pub(super) tally: &'r mut Tally,
}

impl Lints {
    /// One that says nothing.
    pub(super) fn off() -> Self {
        Self { off: true, ..Self::default() }
    }

    /// A message got lost.
    pub(super) fn lose(&mut self) {
        self.missed = true;
        self.threads.clear();
    }

    /// Looks at an event before it is taken apart.
    pub(super) fn event(&mut self, event: View<'_>) {
        if self.strict && !self.off && self.timed != Some(true) {
            self.timed = Some(event.get("timestamp").is_some());
        }
    }

    /// What is worth saying at the end.
    pub(super) fn finish(&mut self) -> Option<Finding> {
        (self.timed.take() == Some(false)).then(|| NO_TIME.at("", "no event has a timestamp"))
    }

    /// What is worth saying about a step that the verifier let pass.
    pub(super) fn step(&mut self, mut at: At<'_>, step: &Step<'_>, findings: &mut Vec<Finding>) {
        if self.off {
            return;
        }
        let (strict, missed) = (self.strict, self.missed);
        match step {
            // Almost every step is one of these.
            Step::Append { item, id, delta, .. } => {
                if strict && *item == Item::Tool {
                    at.tally.append(id, delta);
                }
                return;
            }
            Step::Close { item: Item::Tool, id, .. } => {
                findings.extend(at.tally.close(id).filter(|_| strict));
                return;
            }
            Step::Close { .. } | Step::Open { item: Item::Span, .. } => return,
            Step::Open { .. } | Step::Event { .. } => {}
        }
        if at.tally.is_blind() {
            return;
        }
        if let Step::Event { kind: Type::RunStarted, .. } = step {
            let first = self.first.get_or_insert_with(|| at.thread.into());
            if strict && **first != *at.thread {
                let message = format!("the first run was of thread {}", quote(first));
                findings.push(OTHER_THREAD.at("/threadId", message));
            }
        }
        let Some(thread) = self.thread(at.thread) else { return };
        match step {
            Step::Open { item: Item::Tool, id, opener, .. } => {
                let name = opener.name.as_deref().unwrap_or_default();
                at.tally.open(id, name);
                let finding = thread.call(id, name, opener.parent.as_deref());
                findings.extend(finding.filter(|it| !it.rule.opt_in || strict && !missed));
            }
            Step::Open { item, id, opener, .. } => {
                findings.extend(thread.message(*item, id, opener.role.as_deref()));
            }
            Step::Event { kind, event } => {
                let before = findings.len();
                happened(thread, &mut at, *kind, *event, findings);
                let mut new = findings.split_off(before.min(findings.len()));
                new.retain(|finding| !finding.rule.opt_in || strict && !missed);
                findings.append(&mut new);
            }
            Step::Append { .. } | Step::Close { .. } => {}
        }
    }

    fn thread(&mut self, name: &str) -> Option<&mut Thread> {
        if let Some(at) = self.threads.iter().rposition(|thread| *thread.name == *name) {
            return self.threads.get_mut(at);
        }
        if self.threads.len() >= THREADS {
            self.threads.remove(0);
        }
        self.threads.push(Thread::new(name));
        self.threads.last_mut()
    }
}

fn happened(
    thread: &mut Thread,
    at: &mut At<'_>,
    kind: Type,
    event: View<'_>,
    findings: &mut Vec<Finding>,
) {
    match kind {
        Type::RunStarted => {
            let again = thread.starts(at.run);
            if again {
                let message = format!("the thread had a run {} already", quote(at.run));
                findings.push(SAME_RUN.at("/runId", message));
            }
            let input = event.get("input");
            // A run told again, or one that another run began, answers nothing.
            if let (Some(input), false, None) = (input, again, event.get("parentRunId")) {
                thread.answered(input, findings);
            }
            thread.unanswered.clear();
            if let Some(input) = input {
                thread.restate(input.get("messages"), false);
                at.tally.bring(input.get("tools"));
            }
        }
        Type::RunFinished => {
            at.tally.finish(event, findings);
            let outcome = event.get("outcome");
            let is = |kind: &str| outcome.is_some_and(|outcome| says(outcome, "type", kind));
            thread.interrupts = if is("interrupt") { interrupts(event) } else { Vec::new() };
            if outcome.is_none() || is("success") {
                thread.unanswered = at.tally.pending();
            }
        }
        Type::ToolCallResult => {
            findings.extend(at.tally.result(event));
            findings.extend(thread.result(event));
        }
        Type::SubagentFinished => at.tally.suspend(event.get("outcome")),
        Type::StateSnapshot => {
            if at.tally.deltas > 0 {
                let message = format!("changes that it makes worthless: {}", at.tally.deltas);
                findings.push(DELTAS_DISCARDED.at("/snapshot", message));
            }
            at.tally.deltas = 0;
            thread.snapshot(event);
        }
        Type::StateDelta => {
            if !thread.has_state && at.tally.deltas == 0 {
                findings.push(DELTA_FIRST.at("/delta", "no snapshot came before"));
            }
            at.tally.deltas += 1;
            findings.extend(thread.delta(event));
        }
        Type::ActivitySnapshot => findings.extend(thread.activity(event)),
        Type::ActivityDelta => findings.extend(thread.activity_delta(event)),
        Type::ReasoningEncryptedValue => findings.extend(thread.encrypted(event)),
        Type::MessagesSnapshot => thread.restate(event.get("messages"), true),
        _ => {}
    }
}

/// The ids of the interrupts that a run ends with.
fn interrupts(event: View<'_>) -> Vec<Box<str>> {
    let list = event.get("outcome").and_then(|outcome| outcome.get("interrupts"));
    let ids = list.into_iter().flat_map(View::items).filter_map(|one| text(one, "id"));
    ids.take(tally::CALLS).map(|id| crate::check::recent::key(&id)).collect()
}

impl Sequence {
    /// From now on, the rules that apply only on request apply.
    pub(crate) fn be_strict(&mut self) {
        self.lints.strict = true;
    }
}

#[cfg(test)]
#[path = "lints_tests.rs"]
mod tests;
