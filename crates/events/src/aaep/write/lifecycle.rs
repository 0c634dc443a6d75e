//! Where turns begin and end, and how states are chained.

use std::sync::Arc;

use serde_json::Value;

use super::act::End;
use super::clamp;
use super::turn::{Turn, state};
use super::words::{Words, seconds};
use super::{At, Event, Facts, Fields, Writer, Written};
use crate::aaep::event::{ErrorCategory, RiskLevel};
use crate::activity::{Ending, Status, Usage};
use crate::limits::{AAEP_TERSE_CHARS, AAEP_TEXT_CHARS};
use crate::text;
use crate::translate::NoteKind;

/// The longest time that AAEP can tell, in milliseconds.
pub(super) const LONGEST_MS: u64 = 86_400_000;

/// How much of a request is repeated in a sentence.
const REQUEST_CHARS: usize = 2_000;

/// How a turn ends.
pub(super) struct Close<'a> {
    pub(super) ending: &'a Ending,
    pub(super) summary: Option<&'a str>,
    pub(super) result: Option<&'a Value>,
    pub(super) usage: &'a [Usage],
}

impl<'a> Close<'a> {
    pub(super) fn new(ending: &'a Ending) -> Self {
        Self { ending, summary: None, result: None, usage: &[] }
    }
}

impl Writer {
    pub(super) fn begin(
        &mut self,
        at: At<'_>,
        request: Option<&str>,
        summary: Option<&str>,
        out: &mut Vec<Written>,
    ) {
        let own = at.context.turn.as_deref().unwrap_or_default();
        let n = self.n;
        let id = self.sessions.take("sess_", own, || at.derive("sess_", n, &[]));
        self.turn = Some(Turn::new(id, at.origin.time));
        self.carried = None;
        let request = request.map(|request| text::for_people(request, AAEP_TEXT_CHARS));
        let request = request.filter(|request| !request.trim().is_empty());
        let words = match &request {
            Some(request) => {
                let short = text::shorten(request, REQUEST_CHARS);
                self.about_text("aaep.session_started", at, "request", &short)
            }
            None => self.about_agent("aaep.session_started_bare", at),
        };
        let words = words.in_own_words(summary).and(self.fact(
            "aaep.fact_folder",
            "folder",
            at.context.cwd.as_deref(),
        ));
        let mut fields = Fields::default();
        if let Some(request) = request {
            fields.put("request_text", request);
        }
        let facts = self.carry(|facts| {
            // A summary that stands in the event was the agent's own only where this says so.
            facts.must("own_words", summary.is_some());
        });
        let event = Event {
            kind: "session.started",
            urgency: "normal",
            fields,
            words: Some(words.into()),
            facts,
        };
        self.push(at, event, out);
        self.go(at, state::THINKING, None, out);
    }

    /// Opens a turn where an agent acts without having been asked anything we saw.
    pub(super) fn open(&mut self, at: At<'_>, out: &mut Vec<Written>) {
        if self.turn.is_none() {
            self.note(NoteKind::Opened, "turn");
            self.begin(at, None, None, out);
        }
    }

    pub(super) fn turn_ended(&mut self, at: At<'_>, close: &Close<'_>, out: &mut Vec<Written>) {
        if self.turn.is_none() {
            self.note(NoteKind::Dropped, "turn_ended");
        } else if matches!(close.ending, Ending::Suspended { .. }) {
            // Everything waits: the turn is not over.
            self.close_output(at, out);
            self.go(at, state::AWAITING_INPUT, None, out);
        } else {
            self.end(at, close, out);
        }
    }

    pub(super) fn end(&mut self, at: At<'_>, close: &Close<'_>, out: &mut Vec<Written>) {
        self.close_output(at, out);
        let waiting = self.turn.as_ref().is_some_and(|turn| !turn.waits.is_empty());
        if let Some(turn) = &mut self.turn {
            turn.waits.clear();
            turn.held.clear();
        }
        if waiting {
            self.note(NoteKind::Closed, "ask");
            let words = self.about_agent("aaep.withdrawn", at);
            let facts = self.carry(|facts| facts.must("withdrawn", true));
            self.change(at, state::THINKING, Some(words.into()), facts, out);
        }
        let open: Vec<String> =
            self.turn.iter().flat_map(|turn| turn.tools.keys()).cloned().collect();
        for action in open {
            self.note(NoteKind::Closed, "action");
            self.ended(at, &action, "", &End::unseen(), out);
        }
        let event = self.terminal(at, close);
        self.push(at, event, out);
        self.turn = None;
    }

    fn terminal(&self, at: At<'_>, close: &Close<'_>) -> Event {
        let (began, calls) =
            self.turn.as_ref().map_or((at.origin.time, 0), |turn| (turn.began, turn.calls));
        let took = u64::try_from(at.origin.time.duration_since(began).as_millis());
        let took = took.unwrap_or_default().min(LONGEST_MS);
        let facts = self.carry(|facts| {
            facts.value("result", close.result);
            if !close.usage.is_empty() {
                facts.data("usage", &close.usage);
            }
            facts.must("own_words", close.summary.is_some());
        });
        let (kind, urgency, fields, words) = match close.ending {
            Ending::Completed | Ending::Suspended { .. } => {
                let mut fields = Fields::of([
                    ("duration_ms", took.into()),
                    ("tool_invocations_count", calls.into()),
                ]);
                if let Some(Value::String(result)) = close.result {
                    let result = text::for_people(result, AAEP_TEXT_CHARS);
                    fields.put("output_summary", result);
                }
                let words = self.about_agent("aaep.session_completed", at);
                ("session.completed", "normal", fields, words)
            }
            Ending::Failed { message, code, category } => {
                let words = self.about_text("aaep.session_errored", at, "error", message);
                let fields = errored(code.as_deref(), category.as_deref());
                ("session.errored", "critical", fields, words)
            }
            Ending::Cancelled { by, reason } => {
                let words = self.about_agent("aaep.session_cancelled", at);
                let words = words.and(self.fact("aaep.fact_reason", "reason", reason.as_deref()));
                ("session.cancelled", "normal", cancelled(by, reason.as_deref()), words)
            }
        };
        let mut facts = facts;
        if self.voice.carry {
            match close.ending {
                Ending::Failed { message, code, .. } => {
                    facts.name("message", Some(message));
                    facts.name("code", code.as_deref());
                }
                Ending::Cancelled { by, reason } => {
                    facts.name("by", Some(by));
                    facts.name("reason", reason.as_deref());
                }
                Ending::Completed | Ending::Suspended { .. } => {}
            }
        }
        let words = words
            .in_own_words(close.summary)
            .and(Some(self.say("aaep.fact_took", &[("seconds", &seconds(took))])))
            .and(Some(self.say("aaep.fact_tools", &[("count", &calls.to_string())])));
        Event { kind, urgency, fields, words: Some(words.into()), facts }
    }

    pub(super) fn state_changed(
        &mut self,
        at: At<'_>,
        to: &str,
        summary: Option<&str>,
        out: &mut Vec<Written>,
    ) {
        let to = text::for_people(to, 64);
        if to.trim().is_empty() {
            self.note(NoteKind::Dropped, "state_changed");
            return;
        }
        self.open(at, out);
        let to = clamp::whole(&to).into_owned();
        let own = summary.is_some_and(|summary| !summary.trim().is_empty());
        let words = own.then(|| {
            let words = Arc::unwrap_or_clone(self.state_words(at, &to));
            Arc::new(words.in_own_words(summary))
        });
        let facts = self.carry(|facts| {
            facts.must("state", true);
            facts.must("own_words", own);
        });
        let waits = self.turn.as_ref().is_some_and(|turn| !turn.waits.is_empty());
        if waits && to != state::AWAITING_INPUT {
            self.note(NoteKind::Dropped, "state_changed");
        } else {
            self.change(at, &text::shorten(&to, 64), words, facts, out);
        }
    }

    /// Goes to the state that what is open implies.
    pub(super) fn settle(&mut self, at: At<'_>, out: &mut Vec<Written>) {
        let Some(turn) = &self.turn else { return };
        let to = if !turn.waits.is_empty() {
            state::AWAITING_INPUT
        } else if !turn.tools.is_empty() {
            state::CALLING_TOOL
        } else {
            state::THINKING
        };
        self.go(at, to, None, out);
    }

    /// Goes to a state, unless somebody is waited for: leaving that state would tell people that the wait is over.
    pub(super) fn go(
        &mut self,
        at: At<'_>,
        to: &str,
        words: Option<Arc<Words>>,
        out: &mut Vec<Written>,
    ) {
        let waits = self.turn.as_ref().is_some_and(|turn| !turn.waits.is_empty());
        if to == state::AWAITING_INPUT || !waits {
            self.change(at, to, words, Facts::default(), out);
        }
    }

    /// Goes to a state. What is worth hearing comes with words of its own.
    pub(super) fn change(
        &mut self,
        at: At<'_>,
        to: &str,
        words: Option<Arc<Words>>,
        facts: Facts,
        out: &mut Vec<Written>,
    ) {
        let Some(turn) = &mut self.turn else { return };
        if turn.state == to {
            return;
        }
        let from = std::mem::replace(&mut turn.state, to.to_owned());
        let fields = Fields::of([("from_state", from.into()), ("to_state", to.into())]);
        let urgency = if to == state::DECIDING { "normal" } else { "background" };
        // Where little should be kept in mind, a change that says nothing of its own is not announced.
        let silent =
            words.is_none() && urgency == "background" && self.voice.load == RiskLevel::Low;
        let words = match words {
            None if silent => None,
            None => Some(self.state_words(at, to)),
            words => words,
        };
        self.push(at, Event { kind: "state.changed", urgency, fields, words, facts }, out);
    }

    fn state_words(&mut self, at: At<'_>, to: &str) -> Arc<Words> {
        match to {
            state::IDLE => self.again_about_agent("aaep.state_idle", at),
            state::THINKING => self.again_about_agent("aaep.state_thinking", at),
            state::CALLING_TOOL => self.again_about_agent("aaep.state_calling_tool", at),
            state::WRITING_OUTPUT => self.again_about_agent("aaep.state_writing_output", at),
            state::AWAITING_INPUT => self.again_about_agent("aaep.state_awaiting_input", at),
            state::DECIDING => self.again_about_agent("aaep.state_deciding", at),
            state::HANDING_OFF => self.again_about_agent("aaep.state_handing_off", at),
            other => self.about_text("aaep.state_other", at, "state", other).into(),
        }
    }
}

fn errored(code: Option<&str>, category: Option<&str>) -> Fields {
    let category = category.filter(|word| ErrorCategory::WORDS.contains(word));
    let category = category.unwrap_or("unknown");
    let mut fields = Fields::of([("error_category", category.into())]);
    if let Some(code) = code.and_then(clamp::error_code) {
        fields.put("error_code", code);
    }
    fields
}

fn cancelled(by: &str, reason: Option<&str>) -> Fields {
    let by = match by {
        known @ ("user" | "producer" | "timeout") => known,
        _ => "system",
    };
    let mut fields = Fields::of([("cancelled_by", by.into())]);
    if let Some(reason) = reason.and_then(clamp::reason_word) {
        fields.put("cancellation_reason", reason);
    }
    fields
}

impl End<'_> {
    /// An end that nobody saw.
    pub(super) fn unseen() -> Self {
        Self { status: Status::Timeout, output: None, error: None, ms: None, words: None }
    }
}

/// A text for an error, fit for the field that tells it.
pub(super) fn error_text(error: Option<&str>) -> Option<String> {
    let shown = text::for_people(error?, AAEP_TERSE_CHARS);
    (!shown.trim().is_empty()).then_some(shown)
}
