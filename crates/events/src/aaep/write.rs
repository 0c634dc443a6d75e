//! Activities → AAEP events.
//!
//! One AAEP session is one turn. The writer holds what is open (the state, tools, outputs, waits) and cannot emit a
//! stream that breaks the protocol: it opens what is missing, closes what is open, chains the states. It reads no clock
//! and draws no ids, so the same activities give the same bytes again.
//!
//! It never invents consent: an action that could do much harm and ran without anybody being asked is announced as
//! having run without asking, and does not claim the risk fields that AAEP reserves for confirmed actions; they stand
//! under `extensions.banister` instead. Waiting always defaults to reject.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::event::{CONTEXT, VERSION};
use crate::activity::{
    Action, Activity, Ask, AskKind, Context, Decision, Ending, Gate, Outcome, Status, What,
};
use crate::event::time_text;
use crate::limits::{AAEP_TERSE_CHARS, AAEP_TEXT_CHARS};
use crate::locale::Locale;
use crate::{id, text};

mod fit;
mod turn;

use fit::{non_empty, object, producer, split, tool_name};
use turn::{Call, Output, State, Turn};

/// How much of an output is sent at once: every event stays within 64 KiB, whatever escapes its text needs.
const CHUNK_CHARS: usize = 8_192;

/// The context that declares `extensions.banister`.
pub const EXTENSION_CONTEXT: &str = "urn:banister:aaep-extension:v1";

/// How much of what an action does is said in one sentence.
const SUBJECT_CHARS: usize = 8_000;

/// Writes one session, in one language.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Writer {
    language: String,
    turn: Option<Turn>,
    /// Asks that were ever announced, and their tokens: neither is ever used twice.
    announced: BTreeSet<String>,
    tokens: BTreeSet<String>,
    /// The record whose events are being numbered, and the next number.
    seq: u64,
    n: u32,
}

/// The pieces of one event on their way out.
struct Event<'a> {
    kind: &'static str,
    urgency: &'static str,
    fields: Map<String, Value>,
    activity: &'a Activity,
}

impl Writer {
    /// A writer in a language; a language that is not there is English.
    pub fn new(language: &str) -> Self {
        Self {
            language: Locale::choose([language]).tag.to_owned(),
            turn: None,
            announced: BTreeSet::new(),
            tokens: BTreeSet::new(),
            seq: 0,
            n: 0,
        }
    }

    /// Whether a turn is open, so that a late joiner has something to be told.
    pub fn is_open(&self) -> bool {
        self.turn.is_some()
    }

    /// The events of one activity.
    pub fn write(&mut self, activity: &Activity) -> Vec<Value> {
        if activity.origin.seq != self.seq {
            self.seq = activity.origin.seq;
            self.n = 0;
        }
        let mut out = Vec::new();
        match &activity.what {
            What::SessionEnded { .. } => {
                if self.turn.is_some() {
                    let ending = Ending::Cancelled { by: "system".to_owned(), reason: None };
                    self.end(activity, &ending, &mut out);
                }
            }
            What::TurnStarted { request, .. } => {
                if self.turn.is_some() {
                    self.end(activity, &Ending::Completed, &mut out);
                }
                self.begin(activity, request.as_deref(), &mut out);
            }
            What::TurnEnded { ending, .. } => {
                if self.turn.is_some() {
                    self.end(activity, ending, &mut out);
                }
            }
            What::Said { message, text, last, .. } => {
                self.said(activity, message, text, *last, &mut out);
            }
            What::Progressed { percent, description, .. } => {
                self.progressed(activity, *percent, description.as_deref(), &mut out);
            }
            What::Notified { text } => {
                if self.turn.is_some() {
                    let agent = activity.context.agent_title();
                    let line = self.say("aaep.notified", &[("agent", agent), ("text", text)]);
                    self.progressed(activity, None, Some(&line), &mut out);
                }
            }
            What::ActionRequested { action, gate } => {
                self.requested(activity, action, gate.as_ref(), &mut out);
            }
            What::ActionEnded { id, tool, status, error, duration_ms, .. } => {
                let end = End { status: *status, error: error.as_deref(), ms: *duration_ms };
                self.ended(activity, id, tool, &end, &mut out);
            }
            What::ActionDenied { action, .. } => {
                self.open(activity, &mut out);
                let line = self.say("aaep.denied", &[("tool", &action.title())]);
                self.refuse(activity, action, line, &mut out);
            }
            What::AskOpened { ask } => self.asked(activity, ask, &mut out),
            What::AskClosed { id, action, outcome, .. } => {
                self.closed(activity, id, action.as_ref(), *outcome, &mut out);
            }
            What::HandedOff { reason, .. } => {
                self.open(activity, &mut out);
                let fields = object([
                    ("reason", json!(non_empty(text::for_people(reason, AAEP_TEXT_CHARS)))),
                    ("target_kind", json!("human")),
                ]);
                self.push(activity, "handoff.requested", "critical", fields, &mut out);
            }
            _ => {}
        }
        out
    }

    fn begin(&mut self, activity: &Activity, request: Option<&str>, out: &mut Vec<Value>) {
        let origin = &activity.origin;
        self.turn = Some(Turn {
            session_id: id::derive(
                "sess_",
                &[&origin.session, &origin.seq.to_string(), &self.n.to_string()],
            ),
            sequence: 0,
            state: State::Idle,
            last: origin.time,
            tools: BTreeMap::new(),
            held: BTreeMap::new(),
            refused: BTreeSet::new(),
            waits: BTreeMap::new(),
            words: BTreeMap::new(),
            output: None,
        });
        let agent = activity.context.agent_title();
        let request = request.map(|request| text::for_people(request, AAEP_TEXT_CHARS));
        let mut fields = Map::new();
        if let Some(request) = request.filter(|request| !request.is_empty()) {
            let short = text::shorten(&request, 2_000);
            let line = self.say("aaep.session_started", &[("agent", agent), ("request", &short)]);
            fields.insert("summary_normal".into(), json!(line));
            fields.insert("request_text".into(), json!(request));
        } else {
            let line = self.say("aaep.session_started_bare", &[("agent", agent)]);
            fields.insert("summary_normal".into(), json!(line));
        }
        self.push(activity, "session.started", "normal", fields, out);
        self.state(activity, State::Thinking, None, out);
    }

    /// Opens a turn where an agent acts without having been asked anything we saw.
    fn open(&mut self, activity: &Activity, out: &mut Vec<Value>) {
        if self.turn.is_none() {
            self.begin(activity, None, out);
        }
    }

    fn end(&mut self, activity: &Activity, ending: &Ending, out: &mut Vec<Value>) {
        self.close_output(activity, out);
        let waiting = self.turn.as_ref().is_some_and(|turn| !turn.waits.is_empty());
        if let Some(turn) = &mut self.turn {
            turn.waits.clear();
            turn.held.clear();
        }
        let agent = activity.context.agent_title();
        if waiting {
            let line = self.say("aaep.withdrawn", &[("agent", agent)]);
            self.state(activity, State::Thinking, Some(line), out);
        }
        let open: Vec<String> =
            self.turn.iter().flat_map(|turn| turn.tools.keys()).cloned().collect();
        for action in open {
            let end = End { status: Status::Timeout, error: None, ms: None };
            self.ended(activity, &action, "", &end, out);
        }
        let (kind, urgency, fields) = match ending {
            Ending::Completed | Ending::Suspended { .. } => {
                let line = self.say("aaep.session_completed", &[("agent", agent)]);
                ("session.completed", "normal", object([("summary_normal", json!(line))]))
            }
            Ending::Failed { message, .. } => {
                let error = text::for_people(message, AAEP_TERSE_CHARS);
                let line = self.say("aaep.session_errored", &[("agent", agent), ("error", &error)]);
                let fields =
                    object([("error_category", json!("unknown")), ("summary_normal", json!(line))]);
                ("session.errored", "critical", fields)
            }
            Ending::Cancelled { by, .. } => {
                let by = match by.as_str() {
                    "user" => "user",
                    "producer" => "producer",
                    "timeout" => "timeout",
                    _ => "system",
                };
                let line = self.say("aaep.session_cancelled", &[("agent", agent)]);
                let fields = object([("cancelled_by", json!(by)), ("summary_normal", json!(line))]);
                ("session.cancelled", "normal", fields)
            }
        };
        self.push(activity, kind, urgency, fields, out);
        self.turn = None;
    }

    fn said(
        &mut self,
        activity: &Activity,
        message: &str,
        said: &str,
        last: bool,
        out: &mut Vec<Value>,
    ) {
        self.open(activity, out);
        let other = |turn: &Turn| turn.output.as_ref().is_some_and(|open| open.message != message);
        if self.turn.as_ref().is_some_and(other) {
            self.close_output(activity, out);
        }
        self.state(activity, State::WritingOutput, None, out);
        let n = self.n;
        if let Some(turn) = &mut self.turn
            && turn.output.is_none()
        {
            let origin = &activity.origin;
            turn.output = Some(Output {
                message: message.to_owned(),
                id: id::derive("out_", &[&origin.session, &origin.seq.to_string(), &n.to_string()]),
                position: 0,
                tail: String::new(),
            });
        }
        let Some(output) = self.turn.as_mut().and_then(|turn| turn.output.as_mut()) else {
            return;
        };
        let mut clean = std::mem::take(&mut output.tail);
        clean.push_str(&text::redact(said));
        if !last {
            // Streams of tokens cut emoji and accents apart: what may still grow waits for the next piece.
            output.tail = clean.split_off(fit::settled(&clean));
        }
        let pieces = split(&clean, CHUNK_CHARS);
        let count = pieces.len();
        for (index, piece) in pieces.into_iter().enumerate() {
            let complete = last && index + 1 == count;
            if complete || !piece.is_empty() {
                self.chunk(activity, &fit::whole(piece), complete, out);
            }
        }
        if last {
            self.settle(activity, out);
        }
    }

    fn chunk(&mut self, activity: &Activity, piece: &str, complete: bool, out: &mut Vec<Value>) {
        let Some(output) = self.turn.as_mut().and_then(|turn| turn.output.as_mut()) else {
            return;
        };
        let fields = object([
            ("chunk", json!(piece)),
            ("position", json!(output.position)),
            ("complete", json!(complete)),
            ("coalesce_hint", json!(if complete { "completion" } else { "none" })),
            ("output_id", json!(output.id)),
        ]);
        output.position += piece.chars().count();
        if complete && let Some(turn) = &mut self.turn {
            turn.output = None;
        }
        self.push(activity, "output.streaming", "normal", fields, out);
    }

    fn close_output(&mut self, activity: &Activity, out: &mut Vec<Value>) {
        let output = self.turn.as_mut().and_then(|turn| turn.output.as_mut());
        if let Some(tail) = output.map(|output| std::mem::take(&mut output.tail)) {
            self.chunk(activity, &fit::whole(&tail), true, out);
            self.settle(activity, out);
        }
    }

    fn progressed(
        &mut self,
        activity: &Activity,
        percent: Option<f64>,
        description: Option<&str>,
        out: &mut Vec<Value>,
    ) {
        let mut progress = Map::new();
        if let Some(percent) = percent.filter(|percent| percent.is_finite()) {
            progress.insert("percent".into(), json!(percent.clamp(0.0, 100.0)));
        }
        let words = description.map(|text| text::for_people(text, AAEP_TERSE_CHARS));
        if let Some(words) = words.filter(|words| !words.is_empty()) {
            progress.insert("description".into(), json!(words));
        }
        if !progress.is_empty() {
            self.open(activity, out);
            let fields = object([("progress", Value::Object(progress))]);
            self.push(activity, "progress.updated", "background", fields, out);
        }
    }

    fn requested(
        &mut self,
        activity: &Activity,
        action: &Action,
        gate: Option<&Gate>,
        out: &mut Vec<Value>,
    ) {
        self.open(activity, out);
        self.close_output(activity, out);
        match gate {
            Some(gate) if gate.decision == Decision::Deny => {
                let title = action.title();
                let values = [("tool", title.as_str()), ("reason", &gate.reason)];
                let line = self.say("aaep.refused", &values);
                self.refuse(activity, action, line, out);
            }
            Some(gate) if gate.decision == Decision::Ask => {
                // It does not run before a person says so; the ask follows as its own activity.
                if let Some(turn) = &mut self.turn {
                    turn.held.insert(action.id.clone(), (action.clone(), gate.clone()));
                }
            }
            gate => self.invoked(activity, action, gate, Confirmed::No, out),
        }
    }

    fn invoked(
        &mut self,
        activity: &Activity,
        action: &Action,
        gate: Option<&Gate>,
        confirmed: Confirmed,
        out: &mut Vec<Value>,
    ) {
        // The same call announced twice: the first one never came to an end that we saw.
        if self.turn.as_ref().is_some_and(|turn| turn.tools.contains_key(&action.id)) {
            let end = End { status: Status::Timeout, error: None, ms: None };
            self.ended(activity, &action.id, &action.tool, &end, out);
        }
        let risky = gate.is_some_and(Gate::is_grave);
        let unconfirmed = confirmed == Confirmed::Refused || risky && confirmed == Confirmed::No;
        let accepted = (confirmed == Confirmed::Yes).then(|| {
            let title = action.title();
            let values = [("agent", activity.context.agent_title()), ("tool", title.as_str())];
            self.say("aaep.accepted", &values)
        });
        if confirmed == Confirmed::Yes {
            self.change(activity, State::CallingTool, accepted, out);
        } else {
            self.state(activity, State::CallingTool, None, out);
        }
        let key = match confirmed {
            Confirmed::Refused => "aaep.ran_although_refused",
            Confirmed::No if unconfirmed => "aaep.tool_invoked_unconfirmed",
            Confirmed::Yes | Confirmed::No => "aaep.tool_invoked",
        };
        let line = self.about(key, &activity.context, action, &action.headline());
        let call = Call {
            tool: tool_name(&action.tool),
            id: id::derive(
                "call_",
                &[
                    &activity.origin.session,
                    &activity.origin.seq.to_string(),
                    &self.n.to_string(),
                    &action.id,
                ],
            ),
        };
        let mut fields = object([
            ("tool", json!(call.tool)),
            ("tool_call_id", json!(call.id)),
            ("summary_normal", json!(line)),
            ("args_summary", json!(text::for_people(&action.subject(), AAEP_TEXT_CHARS))),
        ]);
        if unconfirmed {
            let mut facts = object([("unconfirmed", json!(true))]);
            if confirmed == Confirmed::Refused {
                facts.insert("refused".into(), json!(true));
            }
            if let Some(gate) = gate {
                facts.insert("risk".into(), json!(gate.risk));
                facts.extend(gate.irreversible.map(|fact| ("irreversible".into(), json!(fact))));
            }
            fields.insert("extensions".into(), json!({ "banister": facts }));
        } else if let Some(gate) = gate {
            fields.insert("risk_level".into(), json!(gate.risk));
            fields.extend(gate.irreversible.map(|fact| ("irreversible".into(), json!(fact))));
        }
        if let Some(turn) = &mut self.turn {
            turn.refused.remove(&action.id);
            turn.tools.insert(action.id.clone(), call);
        }
        // What was refused and ran all the same is the one thing nobody may miss.
        let urgency = if confirmed == Confirmed::Refused { "critical" } else { "normal" };
        self.push(activity, "tool.invoked", urgency, fields, out);
    }

    fn ended(
        &mut self,
        activity: &Activity,
        action: &str,
        tool: &str,
        end: &End<'_>,
        out: &mut Vec<Value>,
    ) {
        self.open(activity, out);
        self.close_output(activity, out);
        let Some(turn) = &mut self.turn else { return };
        let refused = turn.refused.contains(action) || turn.held.contains_key(action);
        if refused && !turn.tools.contains_key(action) {
            if end.status != Status::Success {
                return;
            }
            let (ran, gate) = match turn.held.remove(action) {
                Some((action, gate)) => (action, Some(gate)),
                None => (Action::unseen(action, tool), None),
            };
            self.invoked(activity, &ran, gate.as_ref(), Confirmed::Refused, out);
        }
        let Some(turn) = &mut self.turn else { return };
        let call = if let Some(call) = turn.tools.remove(action) {
            call
        } else {
            // The start was not seen: it is announced now, so that the end has something to end.
            let missing = Action::unseen(action, tool);
            self.invoked(activity, &missing, None, Confirmed::No, out);
            match self.turn.as_mut().and_then(|turn| turn.tools.remove(action)) {
                Some(call) => call,
                None => return,
            }
        };
        let (status, key) = match end.status {
            Status::Success => ("success", "aaep.tool_completed"),
            Status::Failure | Status::Cancelled => ("error", "aaep.tool_failed"),
            Status::Timeout => ("timeout", "aaep.tool_timeout"),
        };
        let line = self.say(key, &[("tool", &call.tool)]);
        let mut fields = object([
            ("tool", json!(call.tool)),
            ("tool_call_id", json!(call.id)),
            ("status", json!(status)),
            ("summary_normal", json!(line)),
        ]);
        if let Some(ms) = end.ms {
            fields.insert("duration_ms".into(), json!(ms.min(86_400_000)));
        }
        if end.status != Status::Success {
            let words = end.error.map(|error| text::for_people(error, AAEP_TERSE_CHARS));
            let words = words.filter(|words| !words.is_empty()).unwrap_or(line);
            fields.insert("error_message".into(), json!(words));
        }
        self.push(activity, "tool.completed", "normal", fields, out);
        self.settle(activity, out);
    }

    fn asked(&mut self, activity: &Activity, ask: &Ask, out: &mut Vec<Value>) {
        if !self.announced.insert(ask.id.clone()) {
            return;
        }
        self.open(activity, out);
        self.close_output(activity, out);
        self.state(activity, State::AwaitingInput, None, out);
        let seconds = ask
            .deadline
            .map_or(86_400, |deadline| deadline.duration_since(activity.origin.time).as_secs())
            .clamp(1, 86_400);
        let mut fields = object([
            ("reply_token", json!(self.token(activity, ask))),
            ("timeout_seconds", json!(seconds)),
        ]);
        let mut about = None;
        let kind = match &ask.kind {
            AskKind::Confirmation => {
                self.confirmation(activity, ask, &mut fields);
                about = ask.action.as_ref().map(|action| action.id.clone());
                "awaiting.confirmation"
            }
            AskKind::Plan { text: question } | AskKind::Clarification { question, .. } => {
                let question = non_empty(text::for_people(question, AAEP_TEXT_CHARS));
                fields.insert("question".into(), json!(question));
                fields.insert("accepted_response_kinds".into(), json!(["freetext"]));
                "awaiting.clarification"
            }
        };
        if let Some(turn) = &mut self.turn {
            turn.waits.insert(ask.id.clone(), about);
        }
        self.push(activity, kind, "critical", fields, out);
    }

    /// The ask's own token if it is new and has AAEP's shape, else one derived from its place.
    fn token(&mut self, activity: &Activity, ask: &Ask) -> String {
        let mut token = id::conform("rpl_", &ask.token);
        if self.tokens.contains(&token) {
            let origin = &activity.origin;
            token = id::derive(
                "rpl_",
                &[&origin.session, &origin.seq.to_string(), &self.n.to_string(), &ask.id],
            );
        }
        self.tokens.insert(token.clone());
        token
    }

    fn confirmation(&mut self, activity: &Activity, ask: &Ask, fields: &mut Map<String, Value>) {
        let gate = ask.gate.as_ref();
        let irreversible = gate.is_some_and(|gate| gate.irreversible == Some(true));
        let key = if irreversible { "aaep.consequence_irreversible" } else { "aaep.consequence" };
        let mut consequence = self.say(key, &[]);
        if let Some(gate) = gate {
            consequence.push(' ');
            consequence.push_str(&gate.reason);
            fields.insert("risk_level".into(), json!(gate.risk));
            // Where nobody knows, nothing is claimed.
            if let Some(irreversible) = gate.irreversible {
                fields.insert("irreversible".into(), json!(irreversible));
                let word = if irreversible { "irreversible" } else { "reversible" };
                fields.insert("reversibility".into(), json!(word));
            }
        }
        let mut line = if let Some(action) = &ask.action {
            self.about("aaep.confirm", &activity.context, action, &action.subject())
        } else {
            let agent = activity.context.agent_title();
            self.say("aaep.state_awaiting_input", &[("agent", agent)])
        };
        // The same thing asked twice at once is two questions, and must sound like two.
        if let Some(turn) = &mut self.turn {
            if turn.waits.is_empty() {
                turn.words.clear();
            }
            let times = turn.words.entry(line.clone()).or_default();
            *times += 1;
            if *times > 1 {
                line = format!("{} ({times})", text::shorten(&line, AAEP_TEXT_CHARS - 24));
            }
        }
        fields.insert("action".into(), json!(line));
        fields.insert("summary_normal".into(), json!(line));
        fields.insert("consequence".into(), json!(text::for_people(&consequence, AAEP_TEXT_CHARS)));
        fields.insert("default_decision".into(), json!("reject"));
        fields.insert("allowed_replies".into(), json!(["accept", "reject"]));
    }

    fn closed(
        &mut self,
        activity: &Activity,
        ask: &str,
        action: Option<&Action>,
        outcome: Outcome,
        out: &mut Vec<Value>,
    ) {
        let Some(turn) = &mut self.turn else { return };
        let Some(wait) = turn.waits.remove(ask) else { return };
        let held = wait.and_then(|action| turn.held.remove(&action));
        self.close_output(activity, out);
        if outcome == Outcome::Accepted {
            // Whatever was said in between, the wait is left by an explicit change of state.
            self.state(activity, State::AwaitingInput, None, out);
            if let Some((action, gate)) = held {
                self.invoked(activity, &action, Some(&gate), Confirmed::Yes, out);
            }
            self.settle(activity, out);
            return;
        }
        let tool = action.map(Action::title).unwrap_or_default();
        let values = [("agent", activity.context.agent_title()), ("tool", tool.as_str())];
        let line = match outcome {
            Outcome::Expired => self.say("aaep.expired", &values),
            Outcome::Withdrawn => self.say("aaep.withdrawn", &values),
            Outcome::Rejected | Outcome::Accepted => self.say("aaep.rejected", &values),
        };
        if let (Some(action), Some(turn)) = (action, &mut self.turn) {
            turn.refused.insert(action.id.clone());
        }
        self.state(activity, State::AwaitingInput, None, out);
        self.change(activity, State::Thinking, Some(line), out);
        self.settle(activity, out);
    }

    fn refuse(&mut self, activity: &Activity, action: &Action, line: String, out: &mut Vec<Value>) {
        self.close_output(activity, out);
        if let Some(turn) = &mut self.turn {
            if turn.tools.contains_key(&action.id) {
                // It was announced as running; the refusal is its end.
                let end = End { status: Status::Failure, error: Some(&line), ms: None };
                self.ended(activity, &action.id.clone(), &action.tool, &end, out);
                return;
            }
            turn.held.remove(&action.id);
            turn.refused.insert(action.id.clone());
        }
        if self.turn.as_ref().is_some_and(|turn| !turn.waits.is_empty()) {
            self.progressed(activity, None, Some(&line), out);
            return;
        }
        self.state(activity, State::Deciding, Some(line), out);
        self.settle(activity, out);
    }

    /// Goes to the state that what is open implies.
    fn settle(&mut self, activity: &Activity, out: &mut Vec<Value>) {
        let Some(turn) = &self.turn else { return };
        let state = if !turn.waits.is_empty() {
            State::AwaitingInput
        } else if !turn.tools.is_empty() {
            State::CallingTool
        } else {
            State::Thinking
        };
        self.state(activity, state, None, out);
    }

    /// Goes to a state, unless somebody is waited for: leaving that state would tell people that the wait is over.
    fn state(
        &mut self,
        activity: &Activity,
        to: State,
        summary: Option<String>,
        out: &mut Vec<Value>,
    ) {
        let waits = self.turn.as_ref().is_some_and(|turn| !turn.waits.is_empty());
        if to == State::AwaitingInput || !waits {
            self.change(activity, to, summary, out);
        }
    }

    fn change(
        &mut self,
        activity: &Activity,
        to: State,
        summary: Option<String>,
        out: &mut Vec<Value>,
    ) {
        let Some(turn) = &mut self.turn else { return };
        let from = turn.state;
        if from == to {
            return;
        }
        turn.state = to;
        let line = summary.unwrap_or_else(|| {
            let key = match to {
                State::CallingTool => "aaep.state_calling_tool",
                State::WritingOutput => "aaep.state_writing_output",
                State::AwaitingInput => "aaep.state_awaiting_input",
                State::Idle | State::Thinking | State::Deciding => "aaep.state_thinking",
            };
            self.say(key, &[("agent", activity.context.agent_title())])
        });
        let fields = object([
            ("from_state", json!(from.name())),
            ("to_state", json!(to.name())),
            ("summary_normal", json!(line)),
        ]);
        let urgency = if to == State::Deciding { "normal" } else { "background" };
        self.push(activity, "state.changed", urgency, fields, out);
    }

    fn push(
        &mut self,
        activity: &Activity,
        kind: &'static str,
        urgency: &'static str,
        fields: Map<String, Value>,
        out: &mut Vec<Value>,
    ) {
        out.extend(self.event(Event { kind, urgency, fields, activity }));
    }

    fn event(&mut self, event: Event<'_>) -> Option<Value> {
        let origin = &event.activity.origin;
        let n = self.n;
        self.n += 1;
        let locale = self.locale();
        let turn = self.turn.as_mut()?;
        // Time in a session never runs backwards, whatever the clock did.
        turn.last = turn.last.max(origin.time);
        let sequence = turn.sequence;
        turn.sequence += 1;
        let context = if event.fields.contains_key("extensions") {
            json!([CONTEXT, EXTENSION_CONTEXT])
        } else {
            json!(CONTEXT)
        };
        let mut fields = object([
            ("@context", context),
            ("aaep_version", json!(VERSION)),
            ("type", json!(format!("aaep:agent.{}", event.kind))),
            (
                "event_id",
                json!(id::derive(
                    "evt_",
                    &["aaep", &origin.session, &origin.seq.to_string(), &n.to_string()]
                )),
            ),
            ("session_id", json!(turn.session_id)),
            ("sequence_number", json!(sequence)),
            ("timestamp", json!(time_text(turn.last))),
            ("producer", producer(&event.activity.context)),
            ("urgency", json!(event.urgency)),
            (
                "localization_hints",
                json!({ "primary_language": locale.tag, "text_direction": locale.direction }),
            ),
        ]);
        fields.extend(event.fields);
        fit::begin_whole(&mut fields);
        fit::within(&mut fields);
        Some(Value::Object(fields))
    }

    /// A sentence about an action, with as much of what it does as there is room for.
    fn about(&self, key: &str, context: &Context, action: &Action, what: &str) -> String {
        let (agent, tool) = (context.agent_title(), action.title());
        let what = text::for_people(what, SUBJECT_CHARS);
        self.say(key, &[("agent", agent), ("tool", &tool), ("subject", &what)])
    }

    fn say(&self, key: &str, values: &[(&str, &str)]) -> String {
        let line = self.locale().say(key, values);
        text::shorten(&line, AAEP_TEXT_CHARS).into_owned()
    }

    fn locale(&self) -> Locale {
        Locale::choose([self.language.as_str()])
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Confirmed {
    /// A person accepted it.
    Yes,
    /// Nobody was asked.
    No,
    /// It was refused, or still asked about, and ran all the same.
    Refused,
}

struct End<'a> {
    status: Status,
    error: Option<&'a str>,
    ms: Option<u64>,
}

#[cfg(test)]
#[path = "write_tests.rs"]
mod tests;
