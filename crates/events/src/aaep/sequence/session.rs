//! One session, from its start to its end.

use std::collections::{HashMap, VecDeque};

use serde_json::{Map, Value};

use super::{
    ABANDONED, AFTER_COMPLETE, ASKED_TWICE, CALL_ID, COMPLETED_ALONE, CONSENT, CONSENT_RISK,
    FIRST_STATE, FOLLOW_UP, NUMBER, NUMBER_ALL, POSITION, STATE_CHAIN, TIME, TOOL_NAME, UNFINISHED,
};
use crate::aaep::check::is_irreversible;
use crate::aaep::event::Type;
use crate::check::recent::{Recent, fingerprint, key};
use crate::check::shape::quote;
use crate::check::time::rfc3339;
use crate::finding::Finding;

/// How many open calls, outputs and questions of one session are followed.
const OPEN: usize = 1024;

/// How many call ids and outputs of one session are remembered after their end.
const CLOSED: usize = 1024;

/// What has to be known of one session.
#[derive(Debug, Clone)]
pub(super) struct Session {
    last_time: Option<i128>,
    next_number: Option<i64>,
    events: u64,
    state: Option<Box<str>>,
    implied: Vec<&'static str>,
    calls: HashMap<Box<str>, Box<str>>,
    /// Calls without id, by tool: how many are open.
    unnamed_calls: HashMap<Box<str>, usize>,
    past_calls: Recent<()>,
    outputs: HashMap<Box<str>, Output>,
    past_outputs: Recent<()>,
    questions: VecDeque<Question>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Output {
    characters: u64,
    units: u64,
}

/// A confirmation that was asked for and has not led to anything yet.
#[derive(Debug, Clone)]
struct Question {
    token: Box<str>,
    action: u64,
    irreversible: bool,
    accepted: bool,
    /// Whether anything of the session followed it.
    followed: bool,
}

impl Default for Session {
    fn default() -> Self {
        Self {
            last_time: None,
            next_number: None,
            events: 0,
            state: None,
            implied: Vec::new(),
            calls: HashMap::new(),
            unnamed_calls: HashMap::new(),
            past_calls: Recent::new(CLOSED),
            outputs: HashMap::new(),
            past_outputs: Recent::new(CLOSED),
            questions: VecDeque::new(),
        }
    }
}

impl Session {
    pub(super) fn step(
        &mut self,
        kind: Option<Type>,
        object: &Map<String, Value>,
        findings: &mut Vec<Finding>,
    ) {
        self.clock(object, findings);
        self.number(kind, object, findings);
        self.events += 1;
        match kind {
            Some(Type::StateChanged) => self.state(object, findings),
            Some(Type::ToolInvoked) => self.invoked(object, findings),
            Some(Type::ToolCompleted) => self.completed(object, findings),
            Some(Type::OutputStreaming) => self.output(object, findings),
            Some(Type::AwaitingConfirmation) => self.ask(object, findings),
            Some(Type::AwaitingClarification) => self.imply(&["awaiting_input"]),
            Some(Type::HandoffRequested) => self.imply(&["handing_off"]),
            Some(kind) if kind.is_terminal() => self.end(kind, findings),
            _ => {}
        }
        let asked_now = kind == Some(Type::AwaitingConfirmation);
        let newest = self.questions.len().saturating_sub(usize::from(asked_now));
        for question in self.questions.iter_mut().take(newest) {
            question.followed = true;
        }
    }

    fn clock(&mut self, object: &Map<String, Value>, findings: &mut Vec<Finding>) {
        let time = object.get("timestamp").and_then(Value::as_str).and_then(rfc3339);
        let Some(now) = time.map(|moment| moment.nanos) else {
            return;
        };
        match self.last_time {
            Some(last) if now < last => {
                findings
                    .push(TIME.at("/timestamp", "the time is before that of the previous event"));
            }
            _ => self.last_time = Some(now),
        }
    }

    fn number(
        &mut self,
        kind: Option<Type>,
        object: &Map<String, Value>,
        findings: &mut Vec<Finding>,
    ) {
        let number = object.get("sequence_number").and_then(Value::as_i64);
        match (number, self.next_number) {
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

    fn state(&mut self, object: &Map<String, Value>, findings: &mut Vec<Finding>) {
        let text = |name: &str| object.get(name).and_then(Value::as_str).map(key);
        let (Some(from), Some(to)) = (text("from_state"), text("to_state")) else {
            return;
        };
        match &self.state {
            None if &*from != "idle" => {
                findings
                    .push(FIRST_STATE.at("/from_state", format!("{} is not idle", quote(&from))));
            }
            Some(last) if *last != from && !self.implied.contains(&&*from) => {
                let message = format!("{} does not follow {}", quote(&from), quote(last));
                findings.push(STATE_CHAIN.at("/from_state", message));
            }
            _ => {}
        }
        if &*from == "awaiting_input" && &*to != "awaiting_input" {
            self.resolve_oldest(&*to == "calling_tool");
        }
        self.state = Some(to);
        self.implied.clear();
    }

    /// The oldest question without an answer got one.
    fn resolve_oldest(&mut self, accepted: bool) {
        let Some(at) = self.questions.iter().position(|question| !question.accepted) else {
            return;
        };
        if !accepted {
            self.questions.remove(at);
        } else if let Some(question) = self.questions.get_mut(at) {
            question.accepted = true;
        }
    }

    pub(super) fn answer(&mut self, token: &str, accepted: bool) {
        if let Some(question) = self.questions.iter_mut().find(|question| *question.token == *token)
        {
            if accepted {
                question.accepted = true;
            } else {
                // Kept without standing for consent: the follow-up is still owed.
                question.token = "".into();
                question.irreversible = false;
            }
        }
    }

    fn ask(&mut self, object: &Map<String, Value>, findings: &mut Vec<Finding>) {
        self.imply(&["awaiting_input"]);
        let action = object.get("action").map(fingerprint).unwrap_or_default();
        if self.questions.iter().any(|question| question.action == action && !question.accepted) {
            findings.push(ASKED_TWICE.at("/action", "the same action waits for an answer already"));
        }
        if self.questions.len() >= OPEN {
            self.questions.pop_front();
        }
        self.questions.push_back(Question {
            token: object.get("reply_token").and_then(Value::as_str).map(key).unwrap_or_default(),
            action,
            irreversible: is_irreversible(object),
            accepted: false,
            followed: false,
        });
    }

    fn invoked(&mut self, object: &Map<String, Value>, findings: &mut Vec<Finding>) {
        self.imply(&["calling_tool"]);
        let text = |name: &str| object.get(name).and_then(Value::as_str);
        let irreversible = is_irreversible(object);
        let high = text("risk_level") == Some("high");
        if !self.consent(irreversible || high) {
            if irreversible {
                findings.push(CONSENT.at("/irreversible", "nobody was asked to confirm this tool"));
            } else if high {
                findings
                    .push(CONSENT_RISK.at("/risk_level", "nobody was asked to confirm this tool"));
            }
        }
        let Some(tool) = text("tool").map(key) else {
            return;
        };
        let Some(id) = text("tool_call_id") else {
            if self.unnamed_calls.len() < OPEN {
                *self.unnamed_calls.entry(tool).or_default() += 1;
            }
            return;
        };
        if self.past_calls.first(id, ()).is_some() {
            findings.push(CALL_ID.at("/tool_call_id", "the id was used for another call before"));
        }
        if self.calls.len() < OPEN {
            self.calls.insert(key(id), tool);
        }
    }

    /// Uses up the confirmation that fits best; false where a needed one is missing.
    fn consent(&mut self, needed: bool) -> bool {
        let fits: [&dyn Fn(&Question) -> bool; 3] = if needed {
            [&|question| question.accepted, &|question| question.irreversible, &|question| {
                !question.token.is_empty()
            }]
        } else {
            // Other work may go on while a question waits: only what was accepted is used up by it.
            [&|question| question.accepted && !question.irreversible, &|_| false, &|_| false]
        };
        for fit in fits {
            if let Some(at) = self.questions.iter().position(fit) {
                self.questions.remove(at);
                return true;
            }
        }
        false
    }

    fn completed(&mut self, object: &Map<String, Value>, findings: &mut Vec<Finding>) {
        self.imply(&["thinking", "calling_tool"]);
        let text = |name: &str| object.get(name).and_then(Value::as_str).map(key);
        let tool = text("tool").unwrap_or_default();
        if let Some(id) = text("tool_call_id") {
            match self.calls.remove(&id) {
                Some(invoked) if invoked != tool => {
                    let message =
                        format!("{} was invoked, {} completed", quote(&invoked), quote(&tool));
                    findings.push(TOOL_NAME.at("/tool", message));
                }
                Some(_) => {}
                None => findings.push(COMPLETED_ALONE.at("/tool_call_id", "no such call is open")),
            }
            return;
        }
        if let Some(open) = self.unnamed_calls.get_mut(&tool) {
            *open -= 1;
            if *open == 0 {
                self.unnamed_calls.remove(&tool);
            }
            return;
        }
        let named = self.calls.iter().find(|(_, open)| **open == tool).map(|(id, _)| id.clone());
        match named {
            Some(id) => {
                self.calls.remove(&id);
                findings.push(
                    CALL_ID.at(
                        "/tool_call_id",
                        format!("the id {} of the call is missing", quote(&id)),
                    ),
                );
            }
            None => findings.push(COMPLETED_ALONE.at("/tool", "no call of this tool is open")),
        }
    }

    fn output(&mut self, object: &Map<String, Value>, findings: &mut Vec<Finding>) {
        self.imply(&["writing_output"]);
        // Output without an id is one output per session.
        let id = object.get("output_id").and_then(Value::as_str).map(key).unwrap_or_default();
        if self.past_outputs.get(&*id).is_some() {
            findings
                .push(AFTER_COMPLETE.at("/output_id", "the output was complete before this chunk"));
            return;
        }
        let chunk = object.get("chunk").and_then(Value::as_str).unwrap_or_default();
        let mut output = self.outputs.remove(&id).unwrap_or_default();
        if let Some(position) = object.get("position").and_then(Value::as_u64)
            && position != output.characters
            && position != output.units
        {
            let message =
                format!("the position is {position}, where {} follows", output.characters);
            findings.push(POSITION.at("/position", message));
            output = Output { characters: position, units: position };
        }
        output.characters = output.characters.saturating_add(chunk.chars().count() as u64);
        output.units = output.units.saturating_add(chunk.encode_utf16().count() as u64);
        if object.get("complete") == Some(&Value::Bool(true)) {
            self.past_outputs.first(&*id, ());
        } else if self.outputs.len() < OPEN {
            self.outputs.insert(id, output);
        }
    }

    fn end(&mut self, kind: Type, findings: &mut Vec<Finding>) {
        let open = self.calls.values().chain(self.unnamed_calls.keys()).min();
        if let Some(tool) = open {
            findings.push(ABANDONED.at("", format!("the tool {} has not completed", quote(tool))));
        }
        if kind != Type::SessionCompleted {
            return;
        }
        if !self.outputs.is_empty() {
            findings.push(UNFINISHED.at("", "an output has no final chunk"));
        }
        if self.questions.iter().any(|question| !question.followed) {
            findings.push(FOLLOW_UP.at("", "nothing says what became of the confirmation"));
        }
    }
}
