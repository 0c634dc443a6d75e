//! AEP events and hook responses → activities.
//!
//! Total: an event of a type that is not known becomes [`What::Raw`], what is not even an object becomes nothing. Memory
//! is bounded, and the reader can be saved and resumed at any message.
//!
//! - Work without a turn opens one. An error while a turn is open ends it; the stop after it is not a second end.
//! - The pieces of a text are not said again with the whole: of that only the rest is told. A whole that does not begin
//!   with its pieces is a text of its own.
//! - A question that belongs to an action is asked once: where the gate asks a person about the action, or refuses it,
//!   that is all that is asked. Else the question is the ask, and the action's end closes it as well as its answer.
//! - A response to a request closes an ask that nobody opened: whoever tells of answers knows the action by it. If it
//!   refuses, the refusal is told, too, and not again when the agent tells it.
//! - Nothing in `extensions.x-banister` counts, unless the reader trusts it; and then never as somebody's yes.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::event::is_response;
use super::types::{Family, Type};
use crate::activity::{
    Action, ActionKind, Activity, Context, Ending, Gate, Origin, Role, Status, What,
};
use crate::event::Protocol;
use crate::json;

mod ask;
mod question;
mod talk;
mod trust;
mod turn;

use ask::Book;
use talk::{Talk, Telling};

/// Reads one session's events.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Reader {
    trusting: bool,
    turn_open: bool,
    /// Who and where, as the newest event told it.
    context: Option<Arc<Context>>,
    book: Book,
    talk: Talk,
    /// The subagents that were started, the newest ones.
    subagents: VecDeque<String>,
    /// The newest events, which a response may be to.
    recent: VecDeque<String>,
}

/// How many subagents are known by name, and how many events by their id.
const SUBAGENTS: usize = 256;
const RECENT: usize = 64;

impl Reader {
    /// A reader that takes back what Banister's own writer put into its extension. Only for streams that nobody else
    /// could write to.
    pub fn trusting() -> Self {
        Self { trusting: true, ..Self::default() }
    }

    /// The activities of one event. `gate` is what the gate recorded with it, if it went through the gate.
    pub fn read(&mut self, event: &Value, gate: Option<&Gate>, origin: &Origin) -> Vec<Activity> {
        let event = if self.trusting { trust::ids_restored(event) } else { Cow::Borrowed(event) };
        let event = event.as_ref();
        let Value::Object(fields) = event else { return Vec::new() };
        let mut told = Vec::new();
        let context = if is_response(fields) {
            self.responded(event, origin, &mut told);
            self.context.clone().unwrap_or_else(|| Arc::new(context(event)))
        } else {
            let Some(name) = text(event, "/type") else { return Vec::new() };
            let kind = Type::from_alias(name);
            let context = self.surroundings(event, kind);
            let moment = Moment { event, origin, context: &context, trusting: self.trusting };
            if kind != Some(Type::ModelDelta) {
                self.remember(event);
            }
            match kind {
                Some(kind) => self.told(kind, gate, moment, &mut told),
                None => self.unlisted(name, moment, &mut told),
            }
            context
        };
        told.into_iter()
            .map(|what| Activity { origin: origin.clone(), context: Arc::clone(&context), what })
            .collect()
    }

    /// The stream is over: nothing is held back.
    pub fn finish(&mut self, _origin: &Origin) -> Vec<Activity> {
        Vec::new()
    }

    /// Who and where; the same as before where nothing changed.
    fn surroundings(&mut self, event: &Value, kind: Option<Type>) -> Arc<Context> {
        let mut fresh = context(event);
        if self.trusting {
            let thread = if fresh.subagent.is_some() {
                "/session/parent/conversation_id"
            } else {
                "/session/conversation_id"
            };
            fresh.session = owned(event, thread).or(fresh.session);
            if fresh.subagent.is_some() {
                fresh.session = owned(event, "/session/root_conversation_id").or(fresh.session);
            }
        }
        // Who starts a subagent, or hears of its end, is the one above it.
        if matches!(kind, Some(Type::SubagentStart | Type::SubagentStop)) {
            fresh.subagent = self.subagent_above(event);
        }
        match &self.context {
            Some(known) if **known == fresh => Arc::clone(known),
            _ => {
                let fresh = Arc::new(fresh);
                self.context = Some(Arc::clone(&fresh));
                fresh
            }
        }
    }

    fn told(&mut self, kind: Type, gate: Option<&Gate>, moment: Moment<'_>, out: &mut Vec<What>) {
        let event = moment.event;
        let speaks = matches!(
            kind,
            Type::ModelThought | Type::ModelResponse | Type::ModelDelta | Type::ModelPlan
        );
        // Work that was not asked for where we could see it is a turn all the same, and ends like one.
        if (speaks || kind.family() == Family::Actions) && !self.turn_open {
            self.turn_open = true;
            out.push(What::TurnStarted { request: None, summary: None });
        }
        match kind {
            Type::SessionStart => {
                out.push(What::SessionStarted { source: owned(event, "/lifecycle/source") });
            }
            Type::SessionEnd => {
                self.turn_over(out);
                out.push(What::SessionEnded { reason: owned(event, "/lifecycle/reason") });
            }
            Type::PromptSubmitted => self.prompted(moment, out),
            Type::AgentStart if !self.turn_open => {
                self.turn_open = true;
                out.push(What::TurnStarted { request: None, summary: moment.trusted("summary") });
            }
            Type::AgentStop if self.turn_open => {
                self.turn_over(out);
                out.push(turn::ended(moment, turn::ending(moment)));
            }
            Type::AgentStart | Type::AgentStop => {}
            Type::AgentError => self.erred(moment, out),
            Type::ModelResponse => self.spoke(Telling::Whole, moment, out),
            Type::ModelDelta => self.spoke(Telling::Piece, moment, out),
            Type::ModelThought => self.spoke(Telling::Thought, moment, out),
            Type::ModelPlan if moment.trusted::<bool>("asked") == Some(true) => {}
            Type::ModelPlan => {
                out.extend(content(event, &["plan"]).map(|text| What::Planned { text }));
            }
            Type::ActionRequested => self.requested(gate, moment, out),
            Type::ActionCompleted | Type::ActionFailed => self.action_ended(kind, moment, out),
            Type::ActionDenied => self.denied(moment, out),
            Type::SubagentStart => self.subagent_started(moment, out),
            Type::SubagentStop => out.push(turn::subagent_ended(moment)),
            Type::ContextCompacted => {
                out.push(What::Compacted { trigger: owned(event, "/lifecycle/trigger") });
            }
            Type::WorkspaceChanged => out.push(turn::workspace_changed(moment)),
            Type::NotificationSent => out.extend(
                trust::was(moment)
                    .or_else(|| Some(What::Notified { text: content(event, &["notification"])? })),
            ),
            Type::QuestionAsked => self.asked(moment, out),
            Type::QuestionAnswered => self.answered(moment, out),
        }
        if !matches!(kind, Type::AgentStop | Type::AgentError) {
            out.extend(turn::usage(moment).map(|usage| What::Used { usage }));
        }
    }

    fn prompted(&mut self, moment: Moment<'_>, out: &mut Vec<What>) {
        let request = content(moment.event, &["prompt"]);
        if let (Some(Role::User), Some(text)) = (moment.trusted("role"), &request) {
            let message = moment.trusted("message").unwrap_or_default();
            out.push(What::Said { message, role: Role::User, text: text.clone(), last: true });
            return;
        }
        self.talk.pause(moment.thread());
        self.turn_open = true;
        out.push(What::TurnStarted { request, summary: moment.trusted("summary") });
    }

    fn erred(&mut self, moment: Moment<'_>, out: &mut Vec<What>) {
        let event = moment.event;
        let code = owned(event, "/lifecycle/reason");
        let message = content(event, &["notification"])
            .or_else(|| owned(event, "/action/error/message"))
            .or_else(|| code.clone())
            .unwrap_or_else(|| "unknown".to_owned());
        if !self.turn_open || moment.trusted::<bool>("erred") == Some(true) {
            out.push(What::Erred { message, code });
            return;
        }
        self.turn_over(out);
        let category = match moment.trusted("ending") {
            Some(Ending::Failed { category, .. }) => category,
            _ => None,
        };
        out.push(turn::ended(moment, Ending::Failed { message, code, category }));
    }

    fn action_ended(&mut self, kind: Type, moment: Moment<'_>, out: &mut Vec<What>) {
        let Some(end) = ended(moment.event, kind) else {
            out.push(moment.raw(kind.name()));
            return;
        };
        self.question_over(&end, moment, out);
        out.push(end);
    }

    fn unlisted(&mut self, name: &str, moment: Moment<'_>, out: &mut Vec<What>) {
        if name == ask::OPENED && self.trusting {
            self.told_ask(moment, out);
            return;
        }
        out.push(trust::what(name, moment).unwrap_or_else(|| moment.raw(name)));
    }

    fn remember(&mut self, event: &Value) {
        self.recent.extend(owned(event, "/id"));
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
    }

    /// The turn is over, and with it what was asked and said in it.
    fn turn_over(&mut self, out: &mut Vec<What>) {
        self.turn_open = false;
        self.talk.clear();
        self.book.withdraw(out);
    }
}

/// An event that is being read.
#[derive(Debug, Clone, Copy)]
struct Moment<'a> {
    event: &'a Value,
    origin: &'a Origin,
    context: &'a Context,
    trusting: bool,
}

impl Moment<'_> {
    /// The event's own id, or one that stands for it.
    fn id(&self) -> String {
        text(self.event, "/id").filter(|id| !id.is_empty()).map_or_else(
            || {
                let seq = self.origin.seq.to_string();
                crate::id::derive("evt_", &[&self.origin.session, &seq, &self.event.to_string()])
            },
            str::to_owned,
        )
    }

    /// Banister's id of the ask that an event opens.
    fn ask_id(&self, event: &str) -> String {
        crate::id::derive("ask_", &[&self.origin.session, event])
    }

    fn thread(&self) -> &str {
        self.context.subagent.as_deref().unwrap_or_default()
    }

    /// A fact of Banister's own, if it can be trusted.
    fn trusted<T: serde::de::DeserializeOwned>(&self, key: &str) -> Option<T> {
        let fact = trust::own(self.event).filter(|_| self.trusting)?.get(key)?;
        T::deserialize(fact).ok()
    }

    fn raw(&self, kind: &str) -> What {
        What::Raw {
            protocol: Protocol::Aep,
            kind: kind.to_owned(),
            text: content(self.event, &[]),
            event: self.event.clone(),
        }
    }
}

/// Who and where, from the envelope.
pub fn context(event: &Value) -> Context {
    let child = text(event, "/session/parent/relation") == Some("subagent");
    Context {
        agent: owned(event, "/agent/slug").unwrap_or_else(|| "unknown".to_owned()),
        agent_name: owned(event, "/agent/display_name"),
        agent_version: owned(event, "/agent/version"),
        session: session(event),
        turn: owned(event, "/session/turn_id"),
        subagent: owned(event, "/session/conversation_id").filter(|_| child),
        hook: owned(event, "/hook"),
        permission_mode: owned(event, "/session/permission_mode"),
        cwd: owned(event, "/workspace/cwd"),
        model: owned(event, "/model/id"),
    }
}

/// When it happened, as the event says.
///
/// ```
/// let event = serde_json::json!({ "time": "2026-01-31T13:00:00+01:00" });
/// assert_eq!(banister_events::aep::read::time(&event), "2026-01-31T12:00:00Z".parse().ok());
/// ```
pub fn time(event: &Value) -> Option<Timestamp> {
    text(event, "/time")?.parse().ok()
}

/// The agent's own id of the session: the process, else the thread.
pub fn session(event: &Value) -> Option<String> {
    owned(event, "/session/id").or_else(|| owned(event, "/session/conversation_id"))
}

/// The action of an `action.*` event, if it has one.
pub fn action(event: &Value) -> Option<Action> {
    let id = owned(event, "/action/id")?;
    let mcp = text(event, "/tool/type") == Some("mcp");
    let kind = match text(event, "/action/type") {
        Some("tool_call") if mcp => ActionKind::Mcp,
        Some("tool_call") => ActionKind::Tool,
        Some("skill_use") => ActionKind::Skill,
        Some("subagent_spawn") => ActionKind::Subagent,
        _ => ActionKind::Other,
    };
    let tool = owned(event, "/tool/name").or_else(|| owned(event, "/skill/name"));
    Some(Action {
        id,
        kind,
        tool: tool.unwrap_or_else(|| "unknown".to_owned()),
        server: owned(event, "/server/name"),
        original_name: owned(event, "/tool/original_name"),
        input: json::at(event, "/action/input").cloned(),
        rationale: owned(event, "/action/rationale"),
    })
}

fn ended(event: &Value, kind: Type) -> Option<What> {
    let action = action(event)?;
    let status = match text(event, "/action/status") {
        Some("timeout") => Status::Timeout,
        Some("cancelled") => Status::Cancelled,
        Some("success") => Status::Success,
        _ if kind == Type::ActionCompleted => Status::Success,
        _ => Status::Failure,
    };
    let error = owned(event, "/action/error/message");
    Some(What::ActionEnded {
        id: action.id,
        tool: action.tool,
        status,
        output: json::at(event, "/action/output").cloned(),
        error: error.or_else(|| owned(event, "/action/error/code")),
        duration_ms: count(event, "duration_ms"),
    })
}

/// A number of the metrics, as far as it is one that counts something.
fn count(event: &Value, name: &str) -> Option<u64> {
    let number = event.get("metrics")?.get(name)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates, which is what an absurd number deserves"
    )]
    number.as_u64().or_else(|| number.as_f64().map(|number| number.max(0.0) as u64))
}

/// The texts of these kinds; all of them where there is none of these, or none is named.
fn content(event: &Value, kinds: &[&str]) -> Option<String> {
    let entries = event.get("content")?.as_array()?;
    let texts = |wanted: &dyn Fn(&Value) -> bool| -> Vec<&str> {
        let entries = entries.iter().filter(|entry| wanted(entry));
        entries.filter_map(|entry| entry.get("text")).filter_map(Value::as_str).collect()
    };
    let mut found = texts(&|entry| text(entry, "/type").is_some_and(|it| kinds.contains(&it)));
    if found.is_empty() {
        found = texts(&|_| true);
    }
    (!found.is_empty()).then(|| found.join("\n\n"))
}

fn text<'a>(event: &'a Value, pointer: &str) -> Option<&'a str> {
    json::at(event, pointer).and_then(Value::as_str)
}

fn owned(event: &Value, pointer: &str) -> Option<String> {
    text(event, pointer).map(str::to_owned)
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "round_tests.rs"]
mod round;
