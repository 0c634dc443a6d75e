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

use super::event::is_response_view;
use super::types::{Family, Type};
use crate::activity::{
    Action, ActionKind, Activity, Context, Ending, Gate, Origin, Role, Status, What,
};
use crate::event::Protocol;
use crate::json::{Nodes, View};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

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

    /// Appends the activities of one event. `gate` is what the gate recorded with it, if it went through the gate.
    pub fn read(
        &mut self,
        event: View<'_>,
        gate: Option<&Gate>,
        origin: &Origin,
        out: &mut Vec<Activity>,
    ) {
        if self.trusting
            && let Some(restored) = trust::ids_restored(event)
        {
            let (text, nodes) = Nodes::compose(&restored);
            self.event(nodes.document(&text).root(), gate, origin, out);
        } else if event.is_object() {
            self.event(event, gate, origin, out);
        }
    }

    fn event(
        &mut self,
        event: View<'_>,
        gate: Option<&Gate>,
        origin: &Origin,
        out: &mut Vec<Activity>,
    ) {
        let mut told = Vec::new();
        let context = if is_response_view(event) {
            self.responded(event, origin, &mut told);
            self.context.clone().unwrap_or_else(|| Arc::new(context(event)))
        } else {
            let Some(name) = event.text("/type") else { return };
            let kind = Type::from_alias(&name);
            let context = self.surroundings(event, kind);
            let own = self.trusting.then(|| trust::own(event)).flatten();
            let moment = Moment { event, own, origin, context: &context };
            if kind != Some(Type::ModelDelta) {
                self.remember(event);
            }
            match kind {
                Some(kind) => self.told(kind, gate, moment, &mut told),
                None => self.unlisted(&name, moment, &mut told),
            }
            context
        };
        out.extend(told.into_iter().map(|what| Activity {
            origin: origin.clone(),
            context: Arc::clone(&context),
            what,
        }));
    }

    /// The stream is over: nothing is held back.
    pub fn finish(&mut self, _origin: &Origin) -> Vec<Activity> {
        Vec::new()
    }

    /// Who and where; the same as before where nothing changed.
    fn surroundings(&mut self, event: View<'_>, kind: Option<Type>) -> Arc<Context> {
        let mut fresh = BorrowedContext::of(event);
        if self.trusting {
            let thread = if fresh.subagent.is_some() {
                "/session/parent/conversation_id"
            } else {
                "/session/conversation_id"
            };
            fresh.session = event.text(thread).or(fresh.session);
            if fresh.subagent.is_some() {
                fresh.session = event.text("/session/root_conversation_id").or(fresh.session);
            }
        }
        // Who starts a subagent, or hears of its end, is the one above it.
        if matches!(kind, Some(Type::SubagentStart | Type::SubagentStop)) {
            fresh.subagent = self.subagent_above(event);
        }
        match &self.context {
            Some(known) if fresh.is(known) => Arc::clone(known),
            _ => {
                let fresh = Arc::new(fresh.into_context());
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
                out.push(What::SessionStarted { source: event.owned("/lifecycle/source") });
            }
            Type::SessionEnd => {
                self.turn_over(out);
                out.push(What::SessionEnded { reason: event.owned("/lifecycle/reason") });
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
                out.push(What::Compacted { trigger: event.owned("/lifecycle/trigger") });
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
        let code = event.owned("/lifecycle/reason");
        let message = content(event, &["notification"])
            .or_else(|| event.owned("/action/error/message"))
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

    fn remember(&mut self, event: View<'_>) {
        self.recent.extend(event.owned("/id"));
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
    event: View<'a>,
    /// What is in Banister's own extension, if it can be trusted.
    own: Option<View<'a>>,
    origin: &'a Origin,
    context: &'a Context,
}

impl Moment<'_> {
    /// The event's own id, or one that stands for it.
    fn id(&self) -> String {
        self.event.text("/id").filter(|id| !id.is_empty()).map_or_else(
            || {
                let seq = self.origin.seq.to_string();
                let event = self.event.to_value().to_string();
                crate::id::derive("evt_", &[&self.origin.session, &seq, &event])
            },
            Cow::into_owned,
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
        T::deserialize(self.own?.get(key)?.to_value()).ok()
    }

    fn raw(&self, kind: &str) -> What {
        What::Raw {
            protocol: Protocol::Aep,
            kind: kind.to_owned(),
            text: content(self.event, &[]),
            event: self.event.to_value(),
        }
    }
}

/// Who and where, from the envelope.
pub fn context(event: View<'_>) -> Context {
    BorrowedContext::of(event).into_context()
}

/// The agent of a message that names none.
const UNKNOWN: &str = "unknown";

/// Who and where, as an event says it: copied only where it is news.
#[derive(Debug, Default)]
struct BorrowedContext<'a> {
    agent: Option<Cow<'a, str>>,
    agent_name: Option<Cow<'a, str>>,
    agent_version: Option<Cow<'a, str>>,
    session: Option<Cow<'a, str>>,
    turn: Option<Cow<'a, str>>,
    subagent: Option<Cow<'a, str>>,
    hook: Option<Cow<'a, str>>,
    permission_mode: Option<Cow<'a, str>>,
    cwd: Option<Cow<'a, str>>,
    model: Option<Cow<'a, str>>,
}

impl<'a> BorrowedContext<'a> {
    fn of(event: View<'a>) -> Self {
        let mut around = Self::default();
        for (name, value) in event.entries() {
            match name.as_str().as_deref() {
                Some("agent") => {
                    around.agent = value.text("/slug");
                    around.agent_name = value.text("/display_name");
                    around.agent_version = value.text("/version");
                }
                Some("session") => {
                    let thread = value.text("/conversation_id");
                    let child = value.at("/parent/relation").is_some_and(|it| it.is("subagent"));
                    around.session = value.text("/id").or_else(|| thread.clone());
                    around.subagent = thread.filter(|_| child);
                    around.turn = value.text("/turn_id");
                    around.permission_mode = value.text("/permission_mode");
                }
                Some("hook") => around.hook = value.as_str(),
                Some("workspace") => around.cwd = value.text("/cwd"),
                Some("model") => around.model = value.text("/id"),
                _ => {}
            }
        }
        around
    }

    /// Whether it is what is known already.
    fn is(&self, known: &Context) -> bool {
        let same =
            |own: &Option<Cow<'_, str>>, known: &Option<String>| own.as_deref() == known.as_deref();
        self.agent.as_deref().unwrap_or(UNKNOWN) == known.agent
            && same(&self.agent_name, &known.agent_name)
            && same(&self.agent_version, &known.agent_version)
            && same(&self.session, &known.session)
            && same(&self.turn, &known.turn)
            && same(&self.subagent, &known.subagent)
            && same(&self.hook, &known.hook)
            && same(&self.permission_mode, &known.permission_mode)
            && same(&self.cwd, &known.cwd)
            && same(&self.model, &known.model)
    }

    fn into_context(self) -> Context {
        let owned = |name: Option<Cow<'_, str>>| name.map(Cow::into_owned);
        Context {
            agent: owned(self.agent).unwrap_or_else(|| UNKNOWN.to_owned()),
            agent_name: owned(self.agent_name),
            agent_version: owned(self.agent_version),
            session: owned(self.session),
            turn: owned(self.turn),
            subagent: owned(self.subagent),
            hook: owned(self.hook),
            permission_mode: owned(self.permission_mode),
            cwd: owned(self.cwd),
            model: owned(self.model),
        }
    }
}

/// When it happened, as the event says.
///
/// ```
/// let mut parser = banister_events::json::Parser::default();
/// let event = parser.parse(br#"{ "time": "2026-01-31T13:00:00+01:00" }"#)?;
/// assert_eq!(banister_events::aep::read::time(event.root()), "2026-01-31T12:00:00Z".parse().ok());
/// # Ok::<(), banister_events::json::Error>(())
/// ```
pub fn time(event: View<'_>) -> Option<Timestamp> {
    event.text("/time")?.parse().ok()
}

/// The agent's own id of the session: the process, else the thread.
pub fn session(event: View<'_>) -> Option<Cow<'_, str>> {
    let session = event.get("session")?;
    session.text("/id").or_else(|| session.text("/conversation_id"))
}

/// The action of an `action.*` event, if it has one.
pub fn action(event: View<'_>) -> Option<Action> {
    let id = event.owned("/action/id")?;
    let mcp = event.at("/tool/type").is_some_and(|kind| kind.is("mcp"));
    let kind = match event.text("/action/type").as_deref() {
        Some("tool_call") if mcp => ActionKind::Mcp,
        Some("tool_call") => ActionKind::Tool,
        Some("skill_use") => ActionKind::Skill,
        Some("subagent_spawn") => ActionKind::Subagent,
        _ => ActionKind::Other,
    };
    let tool = event.owned("/tool/name").or_else(|| event.owned("/skill/name"));
    Some(Action {
        id,
        kind,
        tool: tool.unwrap_or_else(|| "unknown".to_owned()),
        server: event.owned("/server/name"),
        original_name: event.owned("/tool/original_name"),
        input: event.at("/action/input").map(View::to_value),
        rationale: event.owned("/action/rationale"),
    })
}

fn ended(event: View<'_>, kind: Type) -> Option<What> {
    let action = action(event)?;
    let status = match event.text("/action/status").as_deref() {
        Some("timeout") => Status::Timeout,
        Some("cancelled") => Status::Cancelled,
        Some("success") => Status::Success,
        _ if kind == Type::ActionCompleted => Status::Success,
        _ => Status::Failure,
    };
    let error = event.owned("/action/error/message");
    Some(What::ActionEnded {
        id: action.id,
        tool: action.tool,
        status,
        output: event.at("/action/output").map(View::to_value),
        error: error.or_else(|| event.owned("/action/error/code")),
        duration_ms: event.get("metrics").and_then(|metrics| count(metrics, "duration_ms")),
    })
}

/// A number of the metrics, as far as it is one that counts something.
fn count(metrics: View<'_>, name: &str) -> Option<u64> {
    let number = metrics.get(name)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates, which is what an absurd number deserves"
    )]
    number.as_u64().or_else(|| number.as_f64().map(|number| number.max(0.0) as u64))
}

/// The texts of these kinds; all of them where there is none of these, or none is named.
fn content(event: View<'_>, kinds: &[&str]) -> Option<String> {
    let entries = event.get("content")?;
    let texts = |wanted: &dyn Fn(View<'_>) -> bool| -> Vec<Cow<'_, str>> {
        let entries = entries.items().filter(|entry| wanted(*entry));
        entries.filter_map(|entry| entry.get("text")).filter_map(View::as_str).collect()
    };
    let is_wanted = |kind: View<'_>| kinds.iter().any(|wanted| kind.is(wanted));
    let mut found = texts(&|entry| entry.get("type").is_some_and(is_wanted));
    if found.is_empty() {
        found = texts(&|_| true);
    }
    (!found.is_empty()).then(|| found.join("\n\n"))
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "round_tests.rs"]
mod round;
