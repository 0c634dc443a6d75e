//! One session, from its start to its end.

use std::collections::HashMap;

use super::ask::Questions;
use super::{
    ABANDONED, AFTER_COMPLETE, CALL_ID, COMPLETED_ALONE, FIRST_STATE, HINT, NO_ID, NO_STATES,
    NUMBER, NUMBER_ALL, POSITION, SMALL_STEPS, STATE_CHAIN, TIME, TOOL_NAME, UNFINISHED,
};
use crate::aaep::check::seen::Seen;
use crate::aaep::event::Type;
use crate::check::recent::{Recent, Seed, fingerprint, key, short};
use crate::check::shape::quote;
use crate::check::time::rfc3339;
use crate::finding::Finding;
use crate::json::View;

/// How many open calls and outputs of one session are followed.
const OPEN: usize = 1024;

/// How many call ids and outputs of one session are remembered after their end.
const CLOSED: usize = 1024;

/// How many agents of one session have a state of their own.
const AGENTS: usize = 8;

/// What the rest of the stream tells about a session.
#[derive(Debug, Clone, Copy)]
pub(super) struct Around {
    /// Whether rules apply that are noisy otherwise.
    pub(super) strict: bool,
    /// Whether a subscription may have left events out.
    pub(super) thinned: bool,
}

/// What one event told.
pub(super) struct Step {
    /// Its time.
    pub(super) now: Option<i128>,
    /// The token of a question whose action ran before anybody was seen to answer.
    pub(super) used: Option<Box<str>>,
}

/// What has to be known of one session.
#[derive(Debug, Clone)]
pub(super) struct Session {
    /// Whether it was seen from its start on; what came before may excuse much.
    pub(super) whole: bool,
    /// Fingerprints of the agents that take part.
    pub(super) agents: Vec<u64>,
    /// Whether something was lost since the last event.
    gap: bool,
    last_time: Option<i128>,
    next_number: Option<i64>,
    events: u64,
    state: Option<Box<str>>,
    /// The states of several agents in one session, by their ids.
    states: Vec<(u64, Box<str>)>,
    implied: Vec<&'static str>,
    /// The tools of open calls, by the calls' ids.
    calls: HashMap<Box<str>, Box<str>, Seed>,
    /// Calls without id, by tool: how many are open.
    unnamed_calls: HashMap<Box<str>, usize, Seed>,
    past_calls: Recent<()>,
    outputs: HashMap<Box<str>, Output, Seed>,
    past_outputs: Recent<()>,
    pub(super) questions: Questions,
    worked: bool,
    progress: Progress,
}

/// Where the next chunk of an output may begin, and whether its missing hint was told.
#[derive(Debug, Clone, Copy, Default)]
struct Output {
    least: u64,
    most: u64,
    told: bool,
}

/// How steadily progress is told.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    last: Option<(f64, i128)>,
    small: u8,
    told: bool,
}

impl Session {
    pub(super) fn new(whole: bool) -> Self {
        Self {
            whole,
            agents: Vec::new(),
            gap: false,
            last_time: None,
            next_number: None,
            events: 0,
            state: None,
            states: Vec::new(),
            implied: Vec::new(),
            calls: HashMap::default(),
            unnamed_calls: HashMap::default(),
            past_calls: Recent::new(CLOSED),
            outputs: HashMap::default(),
            past_outputs: Recent::new(CLOSED),
            questions: Questions::default(),
            worked: false,
            progress: Progress::default(),
        }
    }

    pub(super) fn step(
        &mut self,
        kind: Option<Type>,
        object: View<'_>,
        seen: &Seen<'_>,
        around: Around,
        findings: &mut Vec<Finding>,
    ) -> Step {
        let now = self.clock(kind, seen, around, findings);
        self.number(kind, seen, around, findings);
        self.events += 1;
        self.gap = false;
        let mut used = None;
        match kind {
            Some(Type::StateChanged) => self.state(seen, around, findings),
            Some(Type::ProgressUpdated) => {
                self.questions.progress();
                if around.strict {
                    self.progress(seen, findings);
                }
            }
            Some(Type::ToolInvoked) => {
                let whole = self.whole && !around.thinned;
                used = self.questions.invoked(seen, now, whole, around.strict, findings);
                self.invoked(seen, around, findings);
            }
            Some(Type::ToolCompleted) => self.completed(seen, around, findings),
            Some(Type::OutputStreaming) => self.output(seen, findings),
            Some(Type::AwaitingConfirmation) => {
                self.imply(&["awaiting_input"]);
                self.questions.ask(object, seen, now, findings);
            }
            Some(Type::AwaitingClarification) => self.imply(&["awaiting_input"]),
            Some(Type::HandoffRequested) => self.imply(&["handing_off"]),
            Some(kind) if kind.is_terminal() => self.end(kind, around, findings),
            _ => {}
        }
        if !self.questions.is_empty() {
            self.questions.follow(kind == Some(Type::AwaitingConfirmation));
        }
        Step { now, used }
    }

    /// Something of the stream could not be read: it may have belonged here.
    pub(super) fn lose(&mut self) {
        self.whole = false;
        self.gap = true;
        self.state = None;
        self.states.clear();
    }

    /// Remembers that an agent takes part; whether it did before.
    pub(super) fn joins(&mut self, agent: u64) -> bool {
        let known = self.agents.contains(&agent);
        if !known && self.agents.len() < AGENTS {
            self.agents.push(agent);
        }
        known
    }

    fn clock(
        &mut self,
        kind: Option<Type>,
        seen: &Seen<'_>,
        around: Around,
        findings: &mut Vec<Finding>,
    ) -> Option<i128> {
        let now = rfc3339(&seen.timestamp?.as_str()?)?.nanos;
        match self.last_time {
            // What was held back to keep to a rate comes after what may not wait.
            Some(last) if now < last && around.thinned && is_held(kind) => {}
            Some(last) if now < last => {
                findings
                    .push(TIME.at("/timestamp", "the time is before that of the previous event"));
            }
            _ => self.last_time = Some(now),
        }
        Some(now)
    }

    fn number(
        &mut self,
        kind: Option<Type>,
        seen: &Seen<'_>,
        around: Around,
        findings: &mut Vec<Finding>,
    ) {
        let number = seen.sequence_number.and_then(View::as_i64);
        match (number, self.next_number) {
            // Filters and merging leave gaps that are no loss; only going back is wrong then.
            (Some(number), Some(expected)) if (around.thinned || self.gap) && number > expected => {
            }
            (Some(number), Some(expected)) if number != expected => {
                let message = format!("the number is {number}, where {expected} follows");
                findings.push(NUMBER.at("/sequence_number", message));
            }
            (Some(number), None) if kind == Some(Type::SessionStarted) && number != 0 => {
                findings.push(NUMBER.at("/sequence_number", "the first number is not 0"));
            }
            (Some(_), None) if self.events > 0 => {
                findings.push(NUMBER_ALL.at("/sequence_number", "earlier events have no number"));
            }
            (None, Some(_)) => {
                findings.push(NUMBER_ALL.at("/sequence_number", "earlier events have a number"));
            }
            _ => {}
        }
        // An event without number is counted, so that one gap is not reported twice.
        self.next_number = number.or(self.next_number).map(|number| number.saturating_add(1));
    }

    fn imply(&mut self, states: &[&'static str]) {
        for state in states {
            if !self.implied.contains(state) {
                self.implied.push(state);
            }
        }
    }

    fn state(&mut self, seen: &Seen<'_>, around: Around, findings: &mut Vec<Finding>) {
        let text = |value: Option<View<'_>>| value.and_then(View::as_str).map(|text| key(&text));
        let (Some(from), Some(to)) = (text(seen.from_state), text(seen.to_state)) else {
            return;
        };
        let agent = seen.producer.and_then(|producer| producer.get("agent_id"));
        let agent = agent.map(fingerprint).unwrap_or_default();
        let own = self.states.iter().position(|(id, _)| *id == agent);
        let own_state = own.and_then(|at| self.states.get(at)).map(|(_, state)| state);
        match &self.state {
            _ if around.thinned || !self.whole && self.state.is_none() => {}
            None if &*from != "idle" => {
                findings
                    .push(FIRST_STATE.at("/from_state", format!("{} is not idle", quote(&from))));
            }
            // Another agent of the same session begins its own chain.
            Some(_) if own.is_none() && &*from == "idle" => {}
            Some(last)
                if **last != *from
                    && own_state.is_none_or(|own| **own != *from)
                    && !self.implied.contains(&&*from) =>
            {
                let message = format!("{} does not follow {}", quote(&from), quote(last));
                findings.push(STATE_CHAIN.at("/from_state", message));
            }
            _ => {}
        }
        if !self.questions.is_empty() {
            let strict = self.last_time.filter(|_| around.strict);
            self.questions.state(&from, &to, strict, findings);
        }
        if let Some((_, state)) = own.and_then(|at| self.states.get_mut(at)) {
            state.clone_from(&to);
        } else if self.states.len() < AGENTS {
            self.states.push((agent, to.clone()));
        }
        self.state = Some(to);
        self.implied.clear();
    }

    fn progress(&mut self, seen: &Seen<'_>, findings: &mut Vec<Finding>) {
        const SECOND: i128 = 1_000_000_000;
        let percent = seen.progress.and_then(|progress| progress.get("percent"));
        let percent = percent.and_then(View::as_f64);
        let (Some(percent), Some(now)) = (percent, self.last_time) else {
            return;
        };
        let progress = &mut self.progress;
        let small = progress
            .last
            .is_some_and(|(last, then)| (percent - last).abs() < 5.0 && now - then <= SECOND);
        progress.small = if small { progress.small.saturating_add(1) } else { 0 };
        progress.last = Some((percent, now));
        if progress.small >= 2 && !std::mem::replace(&mut progress.told, true) {
            findings
                .push(SMALL_STEPS.at("/progress/percent", "steps below 5 percent, within seconds"));
        }
    }

    fn invoked(&mut self, seen: &Seen<'_>, around: Around, findings: &mut Vec<Finding>) {
        self.imply(&["calling_tool"]);
        self.worked = true;
        let Some(tool) = seen.tool.and_then(View::as_str).map(|tool| key(&tool)) else {
            return;
        };
        let Some(id) = seen.tool_call_id.and_then(View::as_str) else {
            if around.strict {
                findings.push(NO_ID.at("/tool_call_id", "the call has no id"));
            }
            if self.unnamed_calls.len() < OPEN {
                *self.unnamed_calls.entry(tool).or_default() += 1;
            }
            return;
        };
        if self.past_calls.first(&*id, ()).is_some() {
            findings.push(CALL_ID.at("/tool_call_id", "the id was used for another call before"));
        }
        if self.calls.len() < OPEN {
            self.calls.insert(key(&id), tool);
        }
    }

    fn completed(&mut self, seen: &Seen<'_>, around: Around, findings: &mut Vec<Finding>) {
        self.imply(&["thinking", "calling_tool"]);
        let text = |value: Option<View<'_>>| value.and_then(View::as_str).map(|text| key(&text));
        let tool = text(seen.tool).unwrap_or_default();
        match text(seen.tool_call_id) {
            Some(id) => self.completed_id(&id, &tool, around, findings),
            None => self.completed_tool(&tool, around, findings),
        }
    }

    fn completed_id(&mut self, id: &str, tool: &str, around: Around, findings: &mut Vec<Finding>) {
        if let Some(invoked) = self.calls.remove(id) {
            if *invoked != *tool {
                let message = format!("{} was invoked, {} completed", quote(&invoked), quote(tool));
                findings.push(TOOL_NAME.at("/tool", message));
            }
        } else if self.close_unnamed(tool) {
            findings.push(CALL_ID.at("/tool_call_id", "the call was invoked without an id"));
        } else if self.whole && !around.thinned {
            findings.push(COMPLETED_ALONE.at("/tool_call_id", "no such call is open"));
        }
    }

    fn completed_tool(&mut self, tool: &str, around: Around, findings: &mut Vec<Finding>) {
        if self.close_unnamed(tool) {
            return;
        }
        let named = self.calls.iter().find(|(_, open)| ***open == *tool);
        if let Some(id) = named.map(|(id, _)| id.clone()) {
            let message = format!("the id {} of the call is missing", quote(&id));
            findings.push(CALL_ID.at("/tool_call_id", message));
            self.calls.remove(&id);
        } else if self.whole && !around.thinned {
            findings.push(COMPLETED_ALONE.at("/tool", "no call of this tool is open"));
        }
    }

    /// Ends one call of this tool that has no id, if there is one.
    fn close_unnamed(&mut self, tool: &str) -> bool {
        let Some(open) = self.unnamed_calls.get_mut(tool) else {
            return false;
        };
        *open -= 1;
        if *open == 0 {
            self.unnamed_calls.remove(tool);
        }
        true
    }

    fn output(&mut self, seen: &Seen<'_>, findings: &mut Vec<Finding>) {
        self.imply(&["writing_output"]);
        self.worked = true;
        // Output without an id is one output per session.
        let id = seen.output_id.and_then(View::as_str).unwrap_or_default();
        let complete = seen.complete.and_then(View::as_bool) == Some(true);
        let known = self.outputs.get(&*short(&id)).copied();
        if known.is_none() && self.past_outputs.get(&*id).is_some() {
            findings
                .push(AFTER_COMPLETE.at("/output_id", "the output was complete before this chunk"));
            return;
        }
        let chunk = seen.chunk.and_then(|(_, chunk)| chunk.as_str()).unwrap_or_default();
        let mut output = known.unwrap_or_default();
        if let Some(position) = seen.position.and_then(View::as_u64) {
            let unseen = known.is_none() && !self.whole;
            if !unseen && !(output.least..=output.most).contains(&position) {
                let message = format!("the position is {position}, where {} follows", output.most);
                findings.push(POSITION.at("/position", message));
            }
            (output.least, output.most) = (position, position);
        }
        let (least, most) = length(&chunk);
        output.least = output.least.saturating_add(least);
        output.most = output.most.saturating_add(most);
        if complete {
            self.outputs.remove(&*short(&id));
            self.past_outputs.first(&*id, ());
            return;
        }
        if seen.hint.is_none() && !std::mem::replace(&mut output.told, true) {
            findings.push(HINT.at("/coalesce_hint", "the chunk does not say where it was cut"));
        }
        if let Some(open) = self.outputs.get_mut(&*short(&id)) {
            *open = output;
        } else if self.outputs.len() < OPEN {
            self.outputs.insert(key(&id), output);
        }
    }

    fn end(&mut self, kind: Type, around: Around, findings: &mut Vec<Finding>) {
        // Filters may hide how calls and outputs ended.
        let open = self.calls.values().chain(self.unnamed_calls.keys()).min();
        if let Some(tool) = open.filter(|_| !around.thinned) {
            findings.push(ABANDONED.at("", format!("the tool {} has not completed", quote(tool))));
        }
        if kind != Type::SessionCompleted {
            return;
        }
        if !self.outputs.is_empty() && !around.thinned {
            findings.push(UNFINISHED.at("", "an output has no final chunk"));
        }
        self.questions.completed(self.last_time, around.thinned, around.strict, findings);
        if around.strict && self.whole && self.worked && self.state.is_none() {
            findings.push(NO_STATES.at("", "the session had no change of state"));
        }
    }
}

/// How many characters a text has, at least and at most. AAEP does not say what a character is: an honest producer
/// may count what people see as one, Unicode characters, or UTF-16 units, but never bytes.
fn length(text: &str) -> (u64, u64) {
    if text.is_ascii() {
        let length = text.len() as u64;
        return (length, length);
    }
    // The longest that people see as one, a family of four, takes seven characters.
    let (ascii, most) = (text.bytes().filter(u8::is_ascii).count(), text.encode_utf16().count());
    let least = ascii.max(text.chars().count().div_ceil(8));
    (least as u64, most as u64)
}

/// Whether events of this type may be held back and merged (§5.6.1).
fn is_held(kind: Option<Type>) -> bool {
    matches!(kind, Some(Type::OutputStreaming | Type::ProgressUpdated | Type::StateChanged))
}
