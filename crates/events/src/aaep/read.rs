//! AAEP events → activities.
//!
//! Total: what is no object gives nothing, what is no core type becomes [`What::Raw`]. Sessions in one stream are kept
//! apart. Memory is bounded whatever the stream does.
//!
//! Consent is never invented. An answer counts where a reply in the stream gives one that fits. Without a reply, a
//! change of state from `awaiting_input` to `calling_tool` says that the one confirmation that is open was accepted;
//! where several are open nobody can tell which one is meant, and none is closed. Banister's own extension fields are
//! read by [`Reader::trusting`] only.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::event::{self, Type};
use crate::activity::{Activity, Asks, Context, Ending, Gate, Origin, Role, What};
use crate::check::shape::text;
use crate::event::Protocol;
use crate::json::View;

mod act;
mod ask;
mod carried;

use ask::{Accepted, Wait};
use carried::Carried;

/// How many calls, outputs and asks are followed at once.
const OPEN: usize = 1_024;

/// Reads one stream's events.
///
/// ```
/// use banister_events::aaep::read::Reader;
/// use banister_events::activity::{Origin, What};
/// use banister_events::json::Parser;
/// let event = br#"{"type": "aaep:agent.state.changed", "from_state": "idle", "to_state": "thinking"}"#;
/// let origin = Origin { session: "s".into(), seq: 1, time: "2026-01-31T12:00:00Z".parse()? };
/// let (mut parser, mut read) = (Parser::default(), Vec::new());
/// Reader::default().read(parser.parse(event)?.root(), None, &origin, &mut read);
/// assert_eq!(read[0].what, What::StateChanged { state: "thinking".into(), summary: None });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Reader {
    /// Whether Banister's own extension fields count.
    trusts: bool,
    /// Whether the session that is open was written with everything that had to travel along.
    carried: bool,
    asks: Asks,
    /// Reply token → what is known of the wait beside the ask.
    waits: BTreeMap<String, Wait>,
    /// Confirmations that were accepted and led to no tool yet.
    accepted: VecDeque<Accepted>,
    /// Session → how many replies were read whose change of state is still to come.
    answered: BTreeMap<String, u32>,
    /// Call id → the action's own id and tool.
    calls: BTreeMap<String, (String, String)>,
    /// Output id → the message's own id.
    outputs: BTreeMap<String, String>,
    context: Option<Arc<Context>>,
    /// Surroundings that travelled along.
    surroundings: Context,
}

impl Reader {
    /// A reader that takes back what a [`Writer`](super::write::Writer) put under `extensions.banister`. For
    /// translations and replays only: whoever wrote the stream can say anything there.
    pub fn trusting() -> Self {
        Self { trusts: true, ..Self::default() }
    }

    /// Appends the activities of one event or reply. AAEP's events bear their own claims: no gate stands beside them.
    pub fn read(
        &mut self,
        event: View<'_>,
        _gate: Option<&Gate>,
        origin: &Origin,
        out: &mut Vec<Activity>,
    ) {
        if !event.is_object() {
            return;
        }
        let facts = Carried::of(event, self.trusts);
        let kind = text(event, "type").unwrap_or_default();
        let what = match Type::parse(&kind) {
            Some(kind) => {
                self.begin(kind, event, facts);
                self.core(kind, event, facts, origin)
            }
            None if event::is_control(&kind) => self.replied(event),
            None if kind.is_empty() => Vec::new(),
            None => vec![What::Raw {
                protocol: Protocol::Aaep,
                kind: kind.into_owned(),
                text: owned(event, "summary_normal"),
                event: event.to_value(),
            }],
        };
        if what.is_empty() {
            return;
        }
        let context = self.context(event);
        out.extend(what.into_iter().map(|what| Activity {
            origin: origin.clone(),
            context: Arc::clone(&context),
            what,
        }));
    }

    /// The stream is over. Nothing is held back, and nothing is made up.
    pub fn finish(&mut self, _origin: &Origin) -> Vec<Activity> {
        Vec::new()
    }

    fn core(
        &mut self,
        kind: Type,
        event: View<'_>,
        facts: Carried<'_>,
        origin: &Origin,
    ) -> Vec<What> {
        match kind {
            Type::SessionStarted => vec![What::TurnStarted {
                request: owned(event, "request_text"),
                summary: self.summary(event, facts),
            }],
            Type::SessionCompleted | Type::SessionErrored | Type::SessionCancelled => {
                let mut read = self.session_over(event);
                read.push(self.turn_ended(kind, event, facts));
                read
            }
            Type::StateChanged => self.state_changed(event, facts, origin),
            Type::ProgressUpdated => vec![progressed(event, facts)],
            Type::ToolInvoked => self.invoked(event, facts).into_iter().collect(),
            Type::ToolCompleted => vec![self.completed(event, facts)],
            Type::OutputStreaming => vec![self.said(event, facts)],
            Type::AwaitingConfirmation | Type::AwaitingClarification => {
                self.asked(kind, event, facts, origin)
            }
            Type::HandoffRequested => vec![What::HandedOff {
                reason: owned(event, "reason").unwrap_or_default(),
                target: facts.text("target").or_else(|| owned(event, "target_kind")),
                uri: owned(event, "target_uri"),
            }],
        }
    }

    /// The agent's own words: not those that a writer put there.
    fn summary(&self, event: View<'_>, facts: Carried<'_>) -> Option<String> {
        let own = !self.carried || facts.get("own_words").and_then(View::as_bool) == Some(true);
        owned(event, "summary_normal").filter(|_| own)
    }

    fn turn_ended(&mut self, kind: Type, event: View<'_>, facts: Carried<'_>) -> What {
        let summary = self.summary(event, facts);
        let told = || owned(event, "summary_normal").unwrap_or_default();
        let ending = match kind {
            Type::SessionErrored => Ending::Failed {
                message: facts.text("message").unwrap_or_else(told),
                code: facts.text("code").or_else(|| owned(event, "error_code")),
                category: owned(event, "error_category").filter(|word| word != "unknown"),
            },
            Type::SessionCancelled => Ending::Cancelled {
                by: facts
                    .text("by")
                    .or_else(|| owned(event, "cancelled_by"))
                    .unwrap_or_else(|| "system".to_owned()),
                reason: facts.text("reason").or_else(|| owned(event, "cancellation_reason")),
            },
            _ => Ending::Completed,
        };
        let result = facts.get("result").map(View::to_value);
        What::TurnEnded {
            ending,
            summary,
            result: result.or_else(|| owned(event, "output_summary").map(Value::String)),
            usage: facts.data("usage").unwrap_or_default(),
        }
    }

    fn state_changed(&mut self, event: View<'_>, facts: Carried<'_>, origin: &Origin) -> Vec<What> {
        let Some(state) = owned(event, "to_state") else { return Vec::new() };
        if let Some(refusal) = carried::refusal(facts) {
            return vec![refusal];
        }
        let mut read = self.left_waiting(event, facts, origin);
        // Changes that the writer made by itself are made again by the next one.
        let own = !self.carried || facts.get("state").is_some();
        if own && !state.is_empty() {
            read.push(What::StateChanged { state, summary: self.summary(event, facts) });
        }
        read
    }

    fn said(&mut self, event: View<'_>, facts: Carried<'_>) -> What {
        let output = text(event, "output_id").or_else(|| text(event, "session_id"));
        let output = output.unwrap_or_default();
        let last = event.get("complete").and_then(View::as_bool).unwrap_or(false);
        if let Some(message) = facts.text("message") {
            keep(&mut self.outputs, &output, message);
        }
        let known =
            if last { self.outputs.remove(&*output) } else { self.outputs.get(&*output).cloned() };
        let message = known.unwrap_or_else(|| output.into_owned());
        let text = owned(event, "chunk").unwrap_or_default();
        What::Said { role: Role::Assistant, message, text, last }
    }

    /// What has to be known before an event is read: a session begins, surroundings changed.
    fn begin(&mut self, kind: Type, event: View<'_>, facts: Carried<'_>) {
        if kind == Type::SessionStarted {
            self.carried = facts.get("own_words").is_some();
            self.surroundings = Context::default();
            if let Some(session) = text(event, "session_id") {
                self.answered.remove(&*session);
            }
        }
        if let Some(context) = facts.data("context") {
            self.surroundings = context;
        }
    }

    /// Who says it. The same as before is shared with what was read before.
    fn context(&mut self, event: View<'_>) -> Arc<Context> {
        let producer = event.get("producer");
        if let (None, Some(known)) = (producer, &self.context) {
            return known.clone();
        }
        let of = |key: &str| producer.and_then(|producer| text(producer, key));
        let around = &self.surroundings;
        let turn = match &around.turn {
            Some(turn) => Some(Cow::Borrowed(turn.as_str())),
            None => text(event, "session_id"),
        };
        if let Some(known) = &self.context
            && known.agent == of("agent_id").as_deref().unwrap_or(UNKNOWN)
            && known.agent_name.as_deref() == of("agent_name").as_deref()
            && known.agent_version.as_deref() == of("agent_version").as_deref()
            && known.model.as_deref() == of("model").as_deref()
            && known.turn.as_deref() == turn.as_deref()
            && known.session == around.session
            && known.subagent == around.subagent
            && known.hook == around.hook
            && known.permission_mode == around.permission_mode
            && known.cwd == around.cwd
        {
            return known.clone();
        }
        let owned = |key: &str| of(key).map(Cow::into_owned);
        let context = Arc::new(Context {
            agent: owned("agent_id").unwrap_or_else(|| UNKNOWN.to_owned()),
            agent_name: owned("agent_name"),
            agent_version: owned("agent_version"),
            model: owned("model"),
            turn: turn.map(Cow::into_owned),
            ..around.clone()
        });
        self.context = Some(context.clone());
        context
    }
}

/// The name of an agent that did not tell one.
const UNKNOWN: &str = "unknown";

/// When an event was made, or a reply given.
pub fn time(event: View<'_>) -> Option<Timestamp> {
    text(event, "timestamp")?.parse().ok()
}

/// The session that an event belongs to, as its producer names it. Replies name none.
pub fn session(event: View<'_>) -> Option<Cow<'_, str>> {
    text(event, "session_id")
}

fn progressed(event: View<'_>, facts: Carried<'_>) -> What {
    if let Some(what) = carried::sentence(facts).or_else(|| carried::refusal(facts)) {
        return what;
    }
    let progress = event.get("progress");
    let of = |name: &str| progress.and_then(|progress| progress.get(name));
    let description = of("description").and_then(View::as_str).map(Cow::into_owned);
    What::Progressed {
        percent: of("percent").and_then(View::as_f64),
        step: of("step").and_then(View::as_u64),
        total: of("total_steps").and_then(View::as_u64),
        description: description.or_else(|| owned(event, "summary_normal")),
        eta_ms: event.get("eta_ms").and_then(View::as_u64),
    }
}

/// Remembers something under a name, unless there is too much already.
fn keep<T>(map: &mut BTreeMap<String, T>, name: &str, value: T) {
    if map.len() < OPEN || map.contains_key(name) {
        map.insert(name.to_owned(), value);
    }
}

fn owned(value: View<'_>, key: &str) -> Option<String> {
    text(value, key).map(Cow::into_owned)
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
