//! What only the order of AAEP messages can break: session bounds, tool pairing, consent, states, output positions,
//! what was negotiated.
//!
//! Sessions in one stream are kept apart, producers too where their ids could meet. An event that comes again under
//! its id is a redelivery and is passed over; its texts may differ, as each subscription has its own language.
//! Which confirmation belongs to which tool cannot be seen, so any open one counts. A session that was not seen from
//! its start on is not blamed for what may have come before. A recording that ends inside a session earns a note.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use super::check::EVENT_ID;
use super::check::seen::Seen;
use super::event::{self, Type};
use crate::check::recent::{self, Recent, Seed, fingerprint, mix};
use crate::check::rules;
use crate::check::shape::{quote, says, text};
use crate::finding::{Finding, Rule};
use crate::json::View;

mod ask;
mod session;
pub(crate) mod subscription;

use ask::Asked;
use session::{Around, Session, Step};
use subscription::Subscriptions;

rules! {
    STARTED_FIRST = "AAEP-4.1.1-R1" Error Producer
        "session.started is the first event of its session.",
        "Emit session.started before anything else with its session_id.";
    STARTED_ONCE = "AAEP-4.1.1-R3" Error Producer
        "A session has exactly one session.started.",
        "Emit it once; a new request is a new session with a new id.";
    SESSION_REUSED = "AAEP-3.2.4-R3" Error Producer
        "Session ids are unique across the producer's sessions.",
        "Draw a new session_id for each request.";
    ONE_TERMINAL = "AAEP-4.1.2-R3" Error Producer
        "A session has exactly one terminal event.",
        "Emit one of completed, errored and cancelled, once.";
    AFTER_COMPLETED = "AAEP-4.1.2-R1" Error Producer
        "session.completed is the last event of its session.",
        "Emit everything else before it.";
    AFTER_ERRORED = "AAEP-4.1.3-R1" Error Producer
        "session.errored is the last event of its session.",
        "Emit everything else before it.";
    AFTER_CANCELLED = "AAEP-4.1.4-R1" Error Producer
        "session.cancelled is the last event of its session.",
        "Emit everything else before it.";
    OPEN_END = "AAEP-4.5.1-R1" Note Producer
        "A session runs from one session.started to one terminal event.",
        "Record until the session has ended.";
    TIME = "AAEP-3.2.5-R3" Error Producer
        "Timestamps do not decrease within a session.",
        "Use a monotonic clock, or repeat the previous timestamp.";
    NUMBER = "AAEP-3.4.1-R1" Error Producer
        "sequence_number is 0 on session.started and one more on each event after it.",
        "Number the events of a session without gaps.";
    NUMBER_ALL = "AAEP-3.4.1-R2" Error Producer
        "sequence_number is on every event of a session or on none.",
        "Number all events of the session, or none.";
    CALL_ID = "AAEP-4.3.1-R3" Error Producer
        "A tool_call_id is unique in its session and repeated on the matching tool.completed.",
        "Draw a new id for each call and carry it to its end.";
    COMPLETED_ALONE = "AAEP-4.5.2-R1" Error Producer
        "Each tool.completed is preceded by its tool.invoked.",
        "Emit tool.invoked before the tool runs, with the same tool_call_id or tool.";
    TOOL_NAME = "AAEP-4.3.2-R3" Error Producer
        "tool.completed names the same tool as its tool.invoked.",
        "Use one name for one call.";
    ABANDONED = "AAEP-4.3.2-R2" Error Producer
        "An abandoned tool is completed with status timeout, never left open.",
        "Emit tool.completed with status timeout before the session ends.";
    CONSENT = "AAEP-4.3.1-R2" Error Producer
        "An irreversible tool is invoked only after a confirmation that was accepted.",
        "Emit awaiting.confirmation and wait for accept before invoking.";
    CONSENT_RISK = "AAEP-2.3.5-R1" Error Producer
        "A tool of high risk is invoked only after a confirmation.",
        "Emit awaiting.confirmation and wait for accept before invoking.";
    ASKED_TWICE = "AAEP-6.1-R4" Error Producer
        "No second confirmation for an action while the first is unresolved.",
        "Wait for the first one, or withdraw it with a change of state.";
    TOKEN = "AAEP-6.2.2-R1" Error Producer
        "A reply_token is never used again.",
        "Draw a new token for each question.";
    REFUSED = "AAEP-6.1-R1" Error Producer
        "No action runs after its confirmation was rejected.",
        "Ask again, and wait for accept.";
    ANSWERED_LATER = "AAEP-4.5.3-R1" Warning Producer
        "Nothing is done before the confirmation was accepted, or its time was over.",
        "Wait for the reply before invoking the tool.";
    TOO_LATE = "AAEP-6.4-R1" Warning Producer
        "Without an answer in time the default decides.",
        "Do not act after the deadline when the default is reject.";
    OTHER_RISK = "AAEP-4.3.1-B1" Warning Producer
        "What was confirmed as reversible is not invoked as irreversible.",
        "Tell in the question what cannot be undone.";
    ACCEPTED_UNUSED = "AAEP-4.5.3-R2" Note Producer
        "What was accepted and goes ahead is invoked.",
        "Emit tool.invoked for the action, or a change of state that says why not.";
    NO_NEWS = "AAEP-6.7.2-R1" Warning (opt_in) Producer
        "Everybody who heard a question hears how it ended.",
        "Emit state.changed from awaiting_input to calling_tool or thinking.";
    COUNTDOWN = "AAEP-6.4.3-R1" Warning (opt_in) Producer
        "A long wait for an answer is counted down.",
        "Emit progress.updated when half and when a tenth of the time is left.";
    REPLY = "AAEP-6.3.4-R1" Warning Subscriber
        "A reply comes in time, to a question of its kind, with an allowed decision.",
        "Answer before the deadline, with one of allowed_replies.";
    KIND_OF_ANSWER = "AAEP-6.5.5-R1" Warning Subscriber
        "The response is of an accepted kind, and one of the choices.",
        "Send what accepted_response_kinds and choices ask for.";
    UNKNOWN_TOKEN = "AAEP-6.2.3-R1" Warning Subscriber
        "A reply echoes a token that was issued.",
        "Send the reply_token back unchanged.";
    ANSWERED_TWICE = "AAEP-6.3.5-R1" Note Subscriber
        "A question is answered once; only the first valid reply counts.",
        "Take the prompt down when somebody has answered.";
    ANSWERED_AFTER = "AAEP-6.8-R3" Note Subscriber
        "What is over is not answered.",
        "Take the prompt down when the session ends.";
    FOLLOW_UP = "AAEP-4.5.3-R3" Warning Producer
        "A confirmation that does not lead to the action is followed by an event that says so.",
        "Emit state.changed, to thinking or deciding, after a reject or a timeout.";
    FIRST_STATE = "AAEP-4.2.1-R3" Error Producer
        "The first state.changed of a session comes from idle.",
        "Start with from_state idle.";
    STATE_CHAIN = "AAEP-4.2.1-R4" Error Producer
        "from_state is the previous to_state or the state that other events imply.",
        "Chain the states: each begins where the last ended.";
    NO_STATES = "AAEP-9.3.1-3" Warning (opt_in) Producer
        "Changes between thinking, calling tools and writing are told.",
        "Emit state.changed when the agent begins something else.";
    NO_ID = "AAEP-4.5.2-R2" Warning (opt_in) Producer
        "Calls carry a tool_call_id.",
        "Add tool_call_id to tool.invoked and tool.completed.";
    SMALL_STEPS = "AAEP-4.2.2-R2" Warning (opt_in) Producer
        "Progress comes in steps worth hearing.",
        "Emit every 5 percent or so.";
    HINT = "AAEP-4.3.3-R5" Warning Producer
        "Chunks of a divided output carry coalesce_hint.",
        "Add the boundary that the chunk ends at.";
    POSITION = "AAEP-4.3.3-R1" Error Producer
        "position is the number of characters of this output before the chunk.",
        "Count Unicode characters from the start of the output, not bytes.";
    UNFINISHED = "AAEP-4.3.3-R2" Error Producer
        "The final chunk of an output has complete true.",
        "Send complete true with the last chunk, or with an empty one.";
    AFTER_COMPLETE = "AAEP-4.5.4-R1" Error Producer
        "An output has exactly one chunk with complete true, and nothing after it.",
        "Use a new output_id for further output.";
}

/// How many sessions are followed at once; the oldest is let go.
const SESSIONS: usize = 4096;

/// Follows a stream of messages, its sessions apart.
#[derive(Debug, Default, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is one fact about the stream")]
pub struct Sequence {
    sessions: HashMap<Box<str>, Session, Seed>,
    oldest: VecDeque<Box<str>>,
    ended: Recent<Ended>,
    ids: recent::Seen,
    /// Whether rules apply that are noisy otherwise.
    pub(crate) strict: bool,
    /// What was asked under a token.
    tokens: Recent<Asked>,
    /// Whether a session was seen from its start on.
    whole: bool,
    /// Whether sessions may be seen from the middle on, without anybody's fault.
    pub(crate) joined: bool,
    /// Whether two producers were seen to use the same id for a session.
    twins: bool,
    subscriptions: Subscriptions,
}

#[derive(Debug, Clone, Copy)]
enum Ended {
    /// By this event, and whose session it was.
    By(Type, u64),
    /// Let go to stay within bounds: what follows cannot be judged.
    Forgotten,
}

impl Sequence {
    /// Everything wrong with one message, given those before it.
    pub(crate) fn step(&mut self, object: View<'_>, seen: &Seen<'_>, findings: &mut Vec<Finding>) {
        let name = seen.kind.and_then(View::as_str).unwrap_or_default();
        if event::is_control(&name) {
            self.subscriptions.message(&name, object, findings);
            self.reply(&name, object, findings);
            return;
        }
        // Without well-formed ids nothing can be joined; their absence is a finding of its own.
        let session_id = seen.session_id.and_then(View::as_str);
        let Some(id) = session_id.as_deref().filter(|id| event::is_id("sess_", id)) else {
            return;
        };
        let agent = seen.producer.and_then(|producer| producer.get("agent_id"));
        let agent = agent.map(fingerprint).unwrap_or_default();
        if self.is_repeat(seen, agent, findings) {
            return;
        }
        let kind = Type::parse(&name);
        if matches!(kind, Some(Type::AwaitingConfirmation | Type::AwaitingClarification))
            && let Some(token) = seen.reply_token.and_then(View::as_str)
        {
            let asked = Asked::new(id, kind == Some(Type::AwaitingConfirmation), object);
            if self.tokens.first(&*token, asked).is_some() {
                findings.push(TOKEN.at("/reply_token", "the token was used before"));
            }
        }
        let started = kind == Some(Type::SessionStarted);
        let id = self.of_producer(id, agent, started);
        let id = &*id;
        if self.sessions.contains_key(id) {
            if started {
                findings.push(STARTED_ONCE.at("/type", "the session was started before"));
            }
        } else if !self.begin(id, kind, seen, findings) {
            return;
        }
        let around = Around { strict: self.strict, thinned: self.subscriptions.thins() };
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        session.joins(agent);
        let Step { now, used } = session.step(kind, object, seen, around, findings);
        if let Some(asked) = used.and_then(|token| self.tokens.get_mut(&*token)) {
            asked.used = true;
        }
        self.subscriptions.event(kind, object, now, findings);
        if let Some(terminal) = kind.filter(|kind| kind.is_terminal()) {
            let agents = self.sessions.remove(id).map(|session| session.agents);
            let producer = agents.and_then(|agents| agents.first().copied()).unwrap_or_default();
            self.ended.first(id, Ended::By(terminal, producer));
        }
    }

    /// A message could not be read. What it was is not known, so nobody is blamed for what it may have told.
    pub(crate) fn lose(&mut self) {
        self.joined = true;
        self.sessions.values_mut().for_each(Session::lose);
    }

    /// The session that an id stands for. Ids are unique for one producer only: where another agent starts a session
    /// under an id that is in use, that is a session of its own.
    fn of_producer<'a>(&mut self, id: &'a str, agent: u64, started: bool) -> Cow<'a, str> {
        if !self.twins && !started {
            return Cow::Borrowed(id);
        }
        let known = match (self.sessions.get(id), self.ended.get(id)) {
            (Some(session), _) => session.agents.contains(&agent),
            (None, Some(Ended::By(_, producer))) => *producer == agent,
            (None, _) => true,
        };
        let twin = format!("{id}/{agent:x}");
        let has_twin = self.sessions.contains_key(&*twin) || self.ended.get(&*twin).is_some();
        if !known && (started || has_twin) {
            self.twins = true;
            return Cow::Owned(twin);
        }
        Cow::Borrowed(id)
    }

    /// Everything that is wrong because the stream ends here.
    pub fn finish(&mut self) -> Vec<Finding> {
        let mut open: Vec<Box<str>> = self.sessions.drain().map(|(id, _)| id).collect();
        open.sort_unstable();
        let mut findings: Vec<Finding> = open
            .iter()
            .map(|id| OPEN_END.at("", format!("the session {} has not ended", quote(id))))
            .collect();
        self.subscriptions.finish(&mut findings);
        findings
    }

    /// Whether the event was there before. Under a known id, another event is a finding.
    fn is_repeat(&mut self, seen: &Seen<'_>, agent: u64, findings: &mut Vec<Finding>) -> bool {
        let Some(event_id) = seen.event_id.filter(|id| id.is_string()) else {
            return false;
        };
        let print = content(seen);
        match self.ids.first(mix(agent, fingerprint(event_id)), print) {
            Some(known) if known == print => true,
            Some(_) => {
                findings.push(EVENT_ID.at("/event_id", "the id was used for another event before"));
                false
            }
            None => false,
        }
    }

    /// The first event of a session, or one after its end. Whether it is to be judged with its session.
    fn begin(
        &mut self,
        id: &str,
        kind: Option<Type>,
        seen: &Seen<'_>,
        findings: &mut Vec<Finding>,
    ) -> bool {
        match self.ended.get(id).copied() {
            Some(Ended::By(terminal, _)) => {
                findings.push(after(terminal, kind));
                return false;
            }
            Some(Ended::Forgotten) => return false,
            None => {}
        }
        let started = kind == Some(Type::SessionStarted);
        self.open(id, started);
        self.whole |= started;
        // Who subscribes late, or starts recording late, sees numbered sessions begin in the middle.
        let number = seen.sequence_number.and_then(View::as_i64);
        let late = number.is_some_and(|number| number > 0)
            || self.joined
            || self.subscriptions.any_accepted();
        if !started && !late {
            findings
                .push(STARTED_FIRST.at("/type", "the session was not started before this event"));
        }
        true
    }

    fn open(&mut self, id: &str, whole: bool) {
        // Ended sessions leave their place in the queue; it is tidied before it grows beyond twice its size.
        if self.oldest.len() >= 2 * SESSIONS {
            self.oldest.retain(|id| self.sessions.contains_key(id));
        }
        while self.sessions.len() >= SESSIONS
            && let Some(oldest) = self.oldest.pop_front()
        {
            if self.sessions.remove(&oldest).is_some() {
                self.ended.first(&*oldest, Ended::Forgotten);
            }
        }
        self.sessions.insert(id.into(), Session::new(whole));
        self.oldest.push_back(id.into());
    }

    /// A recording of both directions shows the answers, too.
    fn reply(&mut self, name: &str, object: View<'_>, findings: &mut Vec<Finding>) {
        let confirmation = match name {
            "confirmation.reply" => true,
            "clarification.reply" => false,
            _ => return,
        };
        let Some(token) = text(object, "reply_token") else {
            return;
        };
        let forgot = self.tokens.forgot();
        let Some(asked) = self.tokens.get_mut(&*token) else {
            if self.whole && !forgot {
                findings.push(UNKNOWN_TOKEN.at("/reply_token", "no question carried this token"));
            }
            return;
        };
        let print = fingerprint(object);
        match asked.reply {
            Some(first) if first == print => return,
            Some(_) => {
                let message = "the question was answered before";
                findings.push(ANSWERED_TWICE.at("/reply_token", message));
                return;
            }
            None => {}
        }
        if self.ended.get(&*asked.session).is_some() {
            asked.reply = Some(print);
            findings.push(ANSWERED_AFTER.at("/reply_token", "the session has ended before"));
            return;
        }
        if let Some(finding) = asked.judge(object, confirmation) {
            findings.push(finding);
            return;
        }
        asked.reply = Some(print);
        if asked.used {
            findings.push(ANSWERED_LATER.at("/reply_token", "the action ran before this answer"));
            return;
        }
        let accepted = says(object, "decision", "accept");
        if confirmation
            && let Some(session) = self.sessions.get_mut(&asked.session)
            && session.questions.answer(&token, accepted)
        {
            let message = "the producer had gone on before this answer";
            findings.push(ANSWERED_AFTER.at("/reply_token", message));
        }
    }
}

/// A fingerprint of what happened, whatever the language and length it is told in: what two deliveries of one event
/// have in common, and two events hardly ever.
fn content(seen: &Seen<'_>) -> u64 {
    let step = |name| seen.progress.and_then(|progress| progress.get(name));
    let telling = [
        seen.kind,
        seen.session_id,
        seen.timestamp,
        seen.urgency,
        seen.tool,
        seen.tool_call_id,
        seen.status,
        seen.risk,
        seen.irreversible,
        seen.from_state,
        seen.to_state,
        step("percent"),
        step("step"),
        seen.output_id,
        seen.complete,
        seen.reply_token,
        seen.default_decision,
        seen.timeout,
    ];
    let prints = telling.into_iter().enumerate();
    prints
        .filter_map(|(place, value)| Some(mix(place as u64, fingerprint(value?))))
        .fold(0, u64::wrapping_add)
}

fn after(terminal: Type, kind: Option<Type>) -> Finding {
    let rule: &'static Rule = match (kind, terminal) {
        (Some(Type::SessionStarted), _) => {
            return SESSION_REUSED.at("/session_id", "a session of this id has ended before");
        }
        (Some(kind), _) if kind.is_terminal() => {
            return ONE_TERMINAL.at("/type", "the session has ended before");
        }
        (_, Type::SessionErrored) => &AFTER_ERRORED,
        (_, Type::SessionCancelled) => &AFTER_CANCELLED,
        _ => &AFTER_COMPLETED,
    };
    rule.at("/type", "the session has ended before this event")
}

#[cfg(test)]
#[path = "sequence_tests.rs"]
mod tests;
