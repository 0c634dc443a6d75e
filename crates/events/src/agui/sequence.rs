//! What only the order of AG-UI events can break: runs, messages, calls, steps, reasoning, subagents, chunks.
//!
//! Codes up to 24 carry the number of the reference verifier's check; what is missing among them breaks a table
//! already. Codes from 30 on are about what the verifier lets pass, and never errors. Chunks are taken apart before. Reopening a closed message or call is legal, a result for a call of an
//! earlier run too, and a subagent's tag need not be announced: none of these is reported.
//!
//! Only three types name their thread or run. In a recording, events are taken to belong to the run started last,
//! unless they refer to something that only another open run has, so that runs of different threads may follow or
//! overlap each other ([`Sequence::default`]). What one client reads from one agent has no two runs at once
//! ([`Sequence::single`]).

use super::event::Type;
use super::step::Step;
use crate::check::recent::{key, short};
use crate::check::rules;
use crate::check::shape::{quote, text};
use crate::finding::{Finding, Rule, Severity};
use crate::json::View;

pub(crate) mod lints;
mod run;

use lints::Lints;
use run::Run;
pub(super) use run::owned_by;

rules! {
    AFTER_ERROR = "AGUI-SEQ-01" Error Producer
        "After RUN_ERROR only RUN_STARTED follows.",
        "Send RUN_ERROR last.";
    AFTER_FINISH = "AGUI-SEQ-02" Error Producer
        "After RUN_FINISHED only RUN_STARTED or RUN_ERROR follows.",
        "Send RUN_FINISHED last, or start a new run.";
    FIRST = "AGUI-SEQ-03" Error Producer
        "The first event is RUN_STARTED or RUN_ERROR.",
        "Send RUN_STARTED first.";
    NESTED = "AGUI-SEQ-04" Error Producer
        "No run starts while one of its thread is active.",
        "End the run with RUN_FINISHED or RUN_ERROR first.";
    TEXT_OPEN = "AGUI-SEQ-10" Error Producer
        "A message that is open is not started again.",
        "Send TEXT_MESSAGE_END first, or use a new messageId.";
    TEXT_NOT_OPEN = "AGUI-SEQ-11" Error Producer
        "Content and end of a message follow its start.",
        "Send TEXT_MESSAGE_START with the same messageId first.";
    TOOL = "AGUI-SEQ-12" Error Producer
        "A tool call is started once, then gets arguments, then ends.",
        "Send TOOL_CALL_START, TOOL_CALL_ARGS and TOOL_CALL_END in this order, with one toolCallId.";
    CALL_OWNER = "AGUI-SEQ-13" Error Producer
        "A tool call has the tag of the message that carries it, or none.",
        "Repeat the subagentRunId of the parent message, or leave it out.";
    CALL_MOVED = "AGUI-SEQ-14" Error Producer
        "A call that is opened again stays with its owner.",
        "Name a parent message of the same owner, or use a new toolCallId.";
    STEP_OPEN = "AGUI-SEQ-15" Error Producer
        "A step that is open is not started again.",
        "Send STEP_FINISHED first, or use another name.";
    STEP_NOT_OPEN = "AGUI-SEQ-16" Error Producer
        "A step is finished by whoever started it.",
        "Send STEP_STARTED with the same stepName and subagentRunId first.";
    REASONING_OPEN = "AGUI-SEQ-17" Error Producer
        "Reasoning that is open is not started again.",
        "End it first, or use a new messageId.";
    REASONING_NOT_OPEN = "AGUI-SEQ-18" Error Producer
        "Content and end of reasoning follow its start.",
        "Send the start with the same messageId first.";
    OWNER = "AGUI-SEQ-19" Error Producer
        "What continues or ends an item carries the tag of whoever opened it, or none.",
        "Repeat the opener's subagentRunId.";
    SUBAGENT_AGAIN = "AGUI-SEQ-21" Error Producer
        "A subagent id is started once in a run.",
        "Use a new subagentRunId for each invocation.";
    SUBAGENT_PARENT = "AGUI-SEQ-22" Error Producer
        "The parent of a subagent was started in the same run.",
        "Send SUBAGENT_STARTED for the parent first.";
    SUBAGENT_NOT_OPEN = "AGUI-SEQ-23" Error Producer
        "The end of a subagent follows its start.",
        "Send SUBAGENT_STARTED with the same subagentRunId first.";
    OPEN_AT_FINISH = "AGUI-SEQ-24" Error Producer
        "Everything opened in a run is closed before RUN_FINISHED.",
        "Send the missing end events before RUN_FINISHED.";
    FIRST_CHUNK = "AGUI-SEQ-25" Error Producer
        "The first chunk carries the id of its message or call, for calls the name, too.",
        "Put messageId, or toolCallId and toolCallName, on the first chunk after anything else.";
    TRUNCATED = "AGUI-SEQ-26" Error Producer
        "A stream ends with RUN_FINISHED or RUN_ERROR.",
        "Send RUN_ERROR when the agent dies; a cut stream is no success.";
    OTHER_RUN = "AGUI-SEQ-27" Warning Producer
        "RUN_FINISHED names the thread and run that RUN_STARTED named.",
        "Repeat threadId and runId.";
    CHUNK_CHANGED = "AGUI-SEQ-28" Error Producer
        "A continuing chunk repeats role, name and parent unchanged or not at all.",
        "Leave these fields out after the first chunk.";
    CHUNK_AMBIGUOUS = "AGUI-SEQ-29" Error Producer
        "A chunk without id and tag continues the only open stream of its kind.",
        "Put the id or the subagentRunId on the chunk.";
}

/// How many runs are followed at once; the oldest is let go.
const RUNS: usize = 64;

/// Follows a stream of events.
#[derive(Debug, Default, Clone)]
pub struct Sequence {
    /// Open runs; the last one is the one events belong to.
    open: Vec<Run>,
    ended: Option<Ended>,
    /// Whether events outside a run have their finding already. It is given once; the next run that starts clears this.
    told: bool,
    /// Whether no two runs may be open at once, of whatever threads.
    single: bool,
    /// Whether an event came that clients drop.
    dropped: bool,
    /// How many messages got lost: each excuses one finding.
    lost: usize,
    lints: Lints,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Finished,
    Errored,
}

impl Sequence {
    /// For what one client reads from one agent. What the verifier lets pass is not judged: a client has its reducer.
    pub fn single() -> Self {
        Self { single: true, lints: Lints::off(), ..Self::default() }
    }

    /// [`Sequence::single`] from here on.
    pub(crate) fn be_single(&mut self) {
        self.single = true;
    }

    /// A message got lost: what it may have told is not missed later.
    pub(crate) fn lose(&mut self) {
        self.lost += 1;
        self.lints.lose();
        self.open.iter_mut().for_each(Run::overlook);
    }

    /// An event came that clients drop: it is no part of a run.
    pub(crate) fn drop_event(&mut self) {
        self.dropped = true;
    }

    /// Everything wrong with one event, given those before it. Its steps go to `each` until one is wrong.
    pub(crate) fn step<'a>(
        &mut self,
        kind: Type,
        event: View<'a>,
        findings: &mut Vec<Finding>,
        each: &mut dyn FnMut(&Step<'a>),
    ) {
        let before = findings.len();
        let is_error = |finding: &Finding| finding.rule.severity == Severity::Error;
        let mut each = |step: &Step<'a>, findings: &[Finding]| {
            if !findings.iter().skip(before).any(is_error) {
                each(step);
            }
        };
        self.lints.event(event);
        let admitted = match kind {
            Type::RunStarted => self.start(event, findings),
            Type::RunError => self.fail(findings),
            _ => self.admit(kind, findings),
        };
        if !admitted {
            return;
        }
        let at = self.place(kind, event);
        if let Some(run) = self.open.get_mut(at) {
            run.event(kind, event, &mut self.lints, findings, &mut each);
        } else if let Some(step) = Step::new(kind, event) {
            // A run that failed before it began.
            each(&step, findings);
        }
        match kind {
            Type::RunFinished if at < self.open.len() => {
                self.open.remove(at);
                self.ended = Some(Ended::Finished);
            }
            Type::RunError => {
                self.open.pop();
                self.ended = Some(Ended::Errored);
            }
            _ => {}
        }
        while self.lost > 0 && findings.len() > before {
            self.lost -= 1;
            findings.pop();
        }
    }

    /// Everything that is wrong because the stream ends here.
    pub fn finish(&mut self) -> Vec<Finding> {
        let begun = !self.open.is_empty() || self.ended.is_some() || self.lost > 0;
        let never = self.dropped && !begun;
        let open = std::mem::take(&mut self.open).into_iter().filter(|run| !run.headless);
        open.skip(std::mem::take(&mut self.lost))
            .map(|run| TRUNCATED.at("", format!("the run {} has no end", quote(&run.id))))
            .chain(never.then(|| FIRST.at("", "no run was started")))
            .chain(self.lints.finish())
            .collect()
    }

    fn start(&mut self, event: View<'_>, findings: &mut Vec<Finding>) -> bool {
        let name = |field: &str| text(event, field).map(|text| key(&text)).unwrap_or_default();
        let run = Run::started(name("threadId"), name("runId"));
        let single = self.single;
        let is_over = |open: &Run| open.headless || single || open.thread == run.thread;
        // The end of a run that is let go here comes after the end of this one.
        self.told = self.open.iter().any(|open| !open.headless && is_over(open));
        if self.told {
            let message = if single { "a run" } else { "a run of this thread" };
            findings.push(NESTED.at("/type", format!("{message} is still active")));
        }
        self.open.retain(|open| !is_over(open));
        if self.open.len() >= RUNS {
            self.open.remove(0);
        }
        self.open.push(run);
        true
    }

    /// Whether an error is one of a run, or of none that began.
    fn fail(&mut self, findings: &mut Vec<Finding>) -> bool {
        if self.open.is_empty() && self.ended == Some(Ended::Errored) {
            return self.past_end(Ended::Errored, Type::RunError, findings);
        }
        true
    }

    /// Tells of the first event after the end of a run. Those that follow it go on as it did: they are left out.
    fn past_end(&mut self, ended: Ended, kind: Type, findings: &mut Vec<Finding>) -> bool {
        if self.told && self.lost == 0 {
            return false;
        }
        self.told = true;
        findings.push(after(ended, kind));
        true
    }

    /// Whether an event is to be looked at. Tells of one outside any run; where the first run has no start, what follows counts as within it.
    fn admit(&mut self, kind: Type, findings: &mut Vec<Finding>) -> bool {
        if !self.open.is_empty() {
            return true;
        }
        if let Some(ended) = self.ended {
            if !self.past_end(ended, kind, findings) {
                return false;
            }
        } else {
            findings.push(FIRST.at("/type", format!("the stream begins with {}", kind.name())));
        }
        if self.ended.is_none() || self.lost > 0 {
            self.told = false;
            self.open.push(Run::headless());
        }
        true
    }

    /// Which open run an event belongs to.
    fn place(&self, kind: Type, object: View<'_>) -> usize {
        let last = self.open.len().saturating_sub(1);
        if last == 0 || matches!(kind, Type::RunStarted | Type::RunError) {
            return last;
        }
        let belongs = |run: &Run| match kind {
            Type::RunFinished => {
                text(object, "threadId").is_some_and(|thread| *short(&thread) == *run.thread)
            }
            _ => run.knows(kind, object),
        };
        self.open.iter().rposition(belongs).unwrap_or(last)
    }
}

fn after(ended: Ended, kind: Type) -> Finding {
    let rule: &'static Rule = match ended {
        Ended::Finished => &AFTER_FINISH,
        Ended::Errored => &AFTER_ERROR,
    };
    rule.at("/type", format!("{} comes after the end of the run", kind.name()))
}

#[cfg(test)]
#[path = "sequence_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "sequence/lost_tests.rs"]
mod lost_tests;
