//! What only the order of AG-UI events can break: runs, messages, calls, steps, reasoning, subagents, chunks.
//!
//! Codes up to 24 carry the number of the reference verifier's check. Chunks open and close items as clients expand
//! them, lane by lane. Reopening a closed message or call is legal, a result for a call of an earlier run too, and a
//! subagent's tag need not be announced: none of these is reported.
//!
//! Only three types name their thread or run, so events are taken to belong to the run started last, unless they
//! refer to something that only another open run has. Runs of different threads may therefore follow or overlap each
//! other in one recording. Events of unknown types change nothing, as clients drop them.

use super::event::Type;
use crate::check::recent::key;
use crate::check::rules;
use crate::check::shape::{quote, text};
use crate::finding::{Finding, Rule};
use crate::json::{Document, View};

mod run;

use run::Run;

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

/// Follows a stream of events, its threads apart.
#[derive(Debug, Default, Clone)]
pub struct Sequence {
    /// Open runs; the last one is the one events belong to.
    open: Vec<Run>,
    ended: Option<Ended>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Finished,
    Errored,
}

impl Sequence {
    /// Everything wrong with one message, given those before it.
    pub(crate) fn step(&mut self, message: &Document<'_>, findings: &mut Vec<Finding>) {
        let object = message.root();
        let Some(kind) = text(object, "type").and_then(|name| Type::parse(&name)) else {
            return;
        };
        match kind {
            Type::RunStarted => self.start(object, findings),
            Type::RunError if self.open.pop().is_some() => self.ended = Some(Ended::Errored),
            Type::RunError => {
                if self.ended == Some(Ended::Errored) {
                    findings.push(after(Ended::Errored, kind));
                }
                self.ended = Some(Ended::Errored);
            }
            _ => self.within(kind, object, findings),
        }
    }

    /// Everything that is wrong because the stream ends here.
    pub fn finish(&mut self) -> Vec<Finding> {
        let open = std::mem::take(&mut self.open).into_iter().filter(|run| !run.headless);
        open.map(|run| TRUNCATED.at("", format!("the run {} has no end", quote(&run.id)))).collect()
    }

    fn start(&mut self, object: View<'_>, findings: &mut Vec<Finding>) {
        let name = |field: &str| text(object, field).map(|text| key(&text)).unwrap_or_default();
        let run = Run::started(name("threadId"), name("runId"));
        if self.open.iter().any(|open| !open.headless && open.thread == run.thread) {
            findings.push(NESTED.at("/type", "a run of this thread is still active"));
        }
        self.open.retain(|open| !open.headless && open.thread != run.thread);
        if self.open.len() >= RUNS {
            self.open.remove(0);
        }
        self.open.push(run);
    }

    fn within(&mut self, kind: Type, object: View<'_>, findings: &mut Vec<Finding>) {
        if self.open.is_empty() {
            if let Some(ended) = self.ended {
                findings.push(after(ended, kind));
                return;
            }
            findings.push(FIRST.at("/type", format!("the stream begins with {}", kind.name())));
            self.open.push(Run::headless());
        }
        let at = self.place(kind, object);
        if kind == Type::RunFinished {
            let run = self.open.remove(at);
            run.finish(object, findings);
            self.ended = Some(Ended::Finished);
        } else if let Some(run) = self.open.get_mut(at) {
            run.step(kind, object, findings);
        }
    }

    /// Which open run an event belongs to.
    fn place(&self, kind: Type, object: View<'_>) -> usize {
        let last = self.open.len().saturating_sub(1);
        if last == 0 {
            return last;
        }
        let belongs = |run: &Run| match kind {
            Type::RunFinished => text(object, "threadId").as_deref() == Some(&run.thread),
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
