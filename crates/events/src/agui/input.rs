//! What a client sends to an agent: a run's input, and answers to what an earlier run waits for.
//!
//! [`gaps`] tells whether the answers suffice before anything is sent. There is no clock here: the caller says what
//! time it is.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::check;
use super::enforce::{Boundary, Enforced};
use super::event::declare::object;
use super::event::kinds::list;
use super::event::{Interrupt, PROTOCOL_VERSION, Present};
use super::follow::is_fatal;
use super::message::{MESSAGE, Message};
use crate::activity::{Answer, Ask, AskKind, Outcome, Reply, ResponseKind, What};
use crate::check::shape::{Kind, Known, STRING};
use crate::finding::Finding;
use crate::json::Nodes;
use crate::record::{Error, record, words};

record! {
    /// What a run is asked for: the body of a request, called `RunAgentInput` by the protocol.
    ///
    /// ```
    /// use banister_events::agui::input::RunInput;
    /// use banister_events::agui::message::{Message, UserMessage};
    /// let mut input = RunInput::new("thread-1", "run-1");
    /// input.messages.push(Message::User(UserMessage::new("m1", "Hello")));
    /// assert_eq!(
    ///     serde_json::to_value(&input).unwrap(),
    ///     serde_json::json!({
    ///         "threadId": "thread-1", "runId": "run-1", "protocolVersion": "1.0",
    ///         "messages": [{"role": "user", "id": "m1", "content": "Hello"}],
    ///     }),
    /// );
    /// ```
    pub strict RunInput {
        /// The conversation.
        must thread_id as "threadId": String = STRING,
        /// The run, never twice in a conversation.
        must run_id as "runId": String = STRING,
        /// All messages so far, oldest first, without activities.
        must messages: Vec<Message> = list(&MESSAGE),
        /// The version that the client speaks.
        may protocol_version as "protocolVersion": String = STRING,
        /// The run that began this one.
        may parent_run_id as "parentRunId": String = STRING,
        /// The shared state; an empty object where there is none, or null.
        may state: Value = Kind::Any,
        /// The tools that the application runs.
        may tools: Vec<Tool> = list(&Kind::Record(&Tool::SHAPE)),
        /// What the agent should know besides.
        may context: Vec<Context> = list(&Kind::Record(&Context::SHAPE)),
        /// What is passed on to the agent as it is.
        may forwarded_props as "forwardedProps": Present = Kind::Some,
        /// Answers to what the last run waits for.
        may resume: Vec<Resume> = list(&Kind::Record(&Resume::SHAPE)),
    }

    /// An answer to an interrupt.
    pub strict Resume {
        /// The interrupt.
        must interrupt_id as "interruptId": String = STRING,
        /// Whether it is answered or called off.
        must status: ResumeStatus = Kind::Word(ResumeStatus::WORDS),
        /// The answer.
        may payload: Present = Kind::Some,
        /// What others add.
        may metadata: Map<String, Value> = Kind::Object,
    }
}

object! {
    /// A tool that the application runs.
    pub Tool {
        /// Its name.
        must name: String = STRING,
        /// What it does.
        must description: String = STRING,
        /// The JSON Schema of its arguments, by convention.
        may parameters: Present = Kind::Some,
        /// What others add.
        may metadata: Map<String, Value> = Kind::Object,
    }

    /// Something that the agent should know.
    pub Context {
        /// What it is.
        must description: String = STRING,
        /// What it says.
        must value: String = STRING,
    }
}

words! {
    /// What became of an interrupt.
    pub enum ResumeStatus {
        /// It is answered. A no is an answer.
        Resolved = "resolved",
        /// It is called off.
        Cancelled = "cancelled",
    }
}

impl RunInput {
    /// An input without messages, of a client that speaks [`PROTOCOL_VERSION`].
    pub fn new(thread_id: impl Into<String>, run_id: impl Into<String>) -> Self {
        Self {
            thread_id: thread_id.into(),
            run_id: run_id.into(),
            messages: Vec::new(),
            protocol_version: Some(PROTOCOL_VERSION.to_owned()),
            parent_run_id: None,
            state: None,
            tools: None,
            context: None,
            forwarded_props: None,
            resume: None,
            unknown: Map::new(),
        }
    }

    /// Decodes an input.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        crate::record::parse(bytes)
    }
}

impl Resume {
    /// The answer to an interrupt, a no among them.
    pub fn resolved(interrupt_id: impl Into<String>, payload: impl Into<Value>) -> Self {
        let payload = Present::new(payload);
        Self { payload, ..Self::with(interrupt_id.into(), ResumeStatus::Resolved) }
    }

    /// An interrupt is called off.
    pub fn cancelled(interrupt_id: impl Into<String>) -> Self {
        Self::with(interrupt_id.into(), ResumeStatus::Cancelled)
    }

    fn with(interrupt_id: String, status: ResumeStatus) -> Self {
        Self { interrupt_id, status, payload: None, metadata: None, unknown: Map::new() }
    }
}

/// In which way answers do not match what a run waits for.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Gap<'a> {
    /// Nothing answers it, or only words that nobody knows.
    Unanswered(&'a Interrupt),
    /// It is answered too late: it can only be called off.
    Expired(&'a Interrupt),
    /// It is an answer to something that nobody waits for.
    Unknown(&'a Resume),
    /// It is one answer more to something that has one.
    Repeated(&'a Resume),
}

impl Gap<'_> {
    /// Whether the thread must not go on: an agent copes with answers too many, not with answers too few.
    pub fn is_blocking(&self) -> bool {
        matches!(self, Self::Unanswered(_) | Self::Expired(_))
    }
}

/// An input as an agent goes on with it: without what the protocol does not know, which is told. An error is the first
/// thing that no agent goes on with.
///
/// ```
/// use banister_events::agui::input::enforced;
/// let input = serde_json::json!({"threadId": "t", "runId": "r", "messages": [], "mine": 1});
/// let (left, told) = enforced(&input)?;
/// assert_eq!((left.get("mine"), told[0].pointer.as_str()), (None, "/mine"));
/// assert_eq!(enforced(&serde_json::json!({"threadId": "t"})).unwrap_err().pointer, "/runId");
/// # Ok::<(), banister_events::finding::Finding>(())
/// ```
pub fn enforced(input: &Value) -> Result<(Value, Vec<Finding>), Finding> {
    // An input has one place among events, and with it the rules that are there for it.
    let restated = json!({
        "type": "RUN_STARTED", "threadId": "", "runId": "", "protocolVersion": PROTOCOL_VERSION,
        "input": input,
    });
    let (text, nodes) = Nodes::compose(&restated);
    let document = nodes.document(&text);
    if let Some(error) = document.too_deep() {
        return Err(check::JSON.at("", format!("the input is not JSON: {error}")));
    }
    let (mut findings, mut known) = (Vec::new(), Known::default());
    let enforced = check::event(&document, &mut Boundary::default(), &mut known, &mut findings);
    for finding in &mut findings {
        let within = finding.pointer.strip_prefix("/input").unwrap_or_default();
        finding.pointer = within.to_owned();
    }
    if let Some(place) = findings.iter().position(is_fatal) {
        return Err(findings.swap_remove(place));
    }
    let changed = match enforced {
        Enforced::Changed(_, changed) => Some(changed.value().clone()),
        _ => None,
    };
    let left = changed.and_then(|mut event| Some(event.get_mut("input")?.take()));
    Ok((left.unwrap_or_else(|| input.clone()), findings))
}

/// Everything in which answers do not match what a run waits for: first by interrupt, then by answer, each in their
/// order. `now` is in milliseconds since 1970.
///
/// ```
/// use banister_events::agui::event::Interrupt;
/// use banister_events::agui::input::{Gap, Resume, gaps};
/// let mut late = Interrupt::new("int-1", "tool_call");
/// late.expires_at = Some("2026-01-31T12:00:00Z".into());
/// let pending = [late, Interrupt::new("int-2", "tool_call")];
/// let now = 1_800_000_000_000;
///
/// let resume = [Resume::resolved("int-1", true)];
/// assert_eq!(
///     gaps(&pending, &resume, now),
///     [Gap::Expired(&pending[0]), Gap::Unanswered(&pending[1])],
/// );
/// let resume = [Resume::cancelled("int-1"), Resume::resolved("int-2", false)];
/// assert_eq!(gaps(&pending, &resume, now), []);
/// ```
pub fn gaps<'a>(pending: &'a [Interrupt], resume: &'a [Resume], now: i64) -> Vec<Gap<'a>> {
    let mut answers = HashMap::<&str, Answers>::new();
    for entry in resume {
        let answers = answers.entry(&entry.interrupt_id).or_default();
        match entry.status {
            ResumeStatus::Resolved => answers.resolved = true,
            ResumeStatus::Cancelled => answers.cancelled = true,
            ResumeStatus::Other(_) => {}
        }
    }
    let uncovered = pending.iter().filter_map(|interrupt| {
        let answers = answers.get(interrupt.id.as_str()).copied().unwrap_or_default();
        if !answers.resolved && !answers.cancelled {
            return Some(Gap::Unanswered(interrupt));
        }
        (answers.resolved && interrupt.has_expired(now)).then_some(Gap::Expired(interrupt))
    });
    let known: HashSet<&str> = pending.iter().map(|interrupt| interrupt.id.as_str()).collect();
    let mut seen = HashSet::new();
    let superfluous = resume.iter().filter_map(|entry| {
        let id = entry.interrupt_id.as_str();
        if !known.contains(id) {
            return Some(Gap::Unknown(entry));
        }
        (!seen.insert(id)).then_some(Gap::Repeated(entry))
    });
    uncovered.chain(superfluous).collect()
}

/// What the `resume` entries of an input answer. What a payload means depends on what was asked: see [`suited`].
///
/// ```
/// use banister_events::activity::Reply;
/// let input = serde_json::json!({"resume": [
///     {"interruptId": "a", "status": "resolved", "payload": {"approved": false, "message": "too late"}},
///     {"interruptId": "b", "status": "cancelled"},
/// ]});
/// let answers = banister_events::agui::input::answers(&input);
/// assert_eq!((&answers[0].reply, answers[0].message.as_deref()), (&Reply::Reject, Some("too late")));
/// assert_eq!(answers[1].reply, Reply::Withdraw);
/// ```
pub fn answers(input: &Value) -> Vec<Answer> {
    let entries = input.get("resume").and_then(Value::as_array);
    let entries = entries.map(Vec::as_slice).unwrap_or_default();
    let answer = |entry: &Value| {
        let token = entry.get("interruptId")?.as_str()?.to_owned();
        let payload = entry.get("payload").unwrap_or(&Value::Null);
        let word = |name: &str| payload.get(name).and_then(Value::as_str).map(str::to_owned);
        let reply = match entry.get("status")?.as_str()? {
            "cancelled" => Reply::Withdraw,
            "resolved" => match payload.get("approved").and_then(Value::as_bool) {
                Some(true) => {
                    let updated_input = payload.get("editedArgs").filter(|args| !args.is_null());
                    Reply::Accept { updated_input: updated_input.cloned() }
                }
                Some(false) => Reply::Reject,
                None => {
                    let response = payload.get("response").unwrap_or(payload).clone();
                    Reply::Respond { response }
                }
            },
            _ => return None,
        };
        let message = word("message").or_else(|| word("reason"));
        Some(Answer { token, reply, by: None, message, time: None })
    };
    entries.iter().filter_map(answer).collect()
}

/// An answer as the ask takes it: a plain yes or no to a confirmation, approval of a question that takes yes or no, and
/// data where any text is taken. Nothing but `true` becomes a yes.
pub fn suited(mut answer: Answer, ask: &Ask) -> Answer {
    answer.reply = match (answer.reply, &ask.kind) {
        (
            Reply::Respond { response: Value::Bool(yes) },
            AskKind::Confirmation | AskKind::Plan { .. },
        ) => {
            if yes {
                Reply::Accept { updated_input: None }
            } else {
                Reply::Reject
            }
        }
        (Reply::Accept { .. }, AskKind::Clarification { kinds, .. })
            if kinds.contains(&ResponseKind::YesNo) =>
        {
            Reply::Respond { response: Value::Bool(true) }
        }
        (Reply::Reject, AskKind::Clarification { kinds, .. })
            if kinds.contains(&ResponseKind::YesNo) =>
        {
            Reply::Respond { response: Value::Bool(false) }
        }
        (Reply::Respond { response }, AskKind::Clarification { kinds, .. })
            if kinds.is_empty() && !response.is_null() && !response.is_string() =>
        {
            Reply::Respond { response: Value::String(response.to_string()) }
        }
        (reply, _) => reply,
    };
    answer
}

/// The `resume` entry that tells the run which asked how its ask was closed; none for anything but a closed ask.
///
/// ```
/// use banister_events::activity::{Ask, AskKind, Outcome, What};
/// let ask = Ask::new("ask_1", "int-1", AskKind::Confirmation);
/// let closed = What::AskClosed {
///     id: "ask_1".into(), action: None, outcome: Outcome::Rejected, by: "user".into(),
///     message: None, response: None, updated_input: None,
/// };
/// let entry = serde_json::json!({
///     "interruptId": "int-1", "status": "resolved", "payload": {"approved": false},
/// });
/// assert_eq!(banister_events::agui::input::resume(&ask, &closed), Some(entry));
/// ```
pub fn resume(ask: &Ask, closed: &What) -> Option<Value> {
    entry(&ask.token, Some(ask), closed)
}

/// [`resume`], for an interrupt with another id.
pub(super) fn entry(interrupt: &str, ask: Option<&Ask>, closed: &What) -> Option<Value> {
    let What::AskClosed { outcome, message, response, updated_input, .. } = closed else {
        return None;
    };
    let schema = ask.and_then(|ask| ask.schema.as_ref());
    let has =
        |name: &str| schema.is_some_and(|it| it.pointer(&format!("/properties/{name}")).is_some());
    let is_question = ask.is_some_and(|ask| matches!(ask.kind, AskKind::Clarification { .. }));
    let payload = match (outcome, is_question) {
        // An answer that comes too late is none: it can only be called off.
        (Outcome::Expired | Outcome::Withdrawn, _) | (Outcome::Rejected, true) => None,
        (Outcome::Accepted, true) => response.as_ref().filter(|it| !it.is_null()).map(|response| {
            if has("response") { json!({ "response": response }) } else { response.clone() }
        }),
        (Outcome::Accepted | Outcome::Rejected, false) => {
            let approved = *outcome == Outcome::Accepted;
            let is_plain =
                schema.is_some_and(|it| it.get("type").is_some_and(|it| it == "boolean"));
            let mut payload = Map::new();
            payload.insert("approved".into(), approved.into());
            if let Some(args) = updated_input.as_ref().filter(|it| approved && !it.is_null()) {
                payload.insert("editedArgs".into(), args.clone());
            }
            if let Some(message) = message {
                payload.insert("message".into(), message.as_str().into());
            }
            Some(if is_plain { approved.into() } else { Value::Object(payload) })
        }
    };
    let resolved = payload.is_some() || *outcome == Outcome::Accepted;
    let status = if resolved { ResumeStatus::Resolved } else { ResumeStatus::Cancelled };
    let mut entry = json!({ "interruptId": interrupt, "status": status });
    if let (Some(payload), Some(entry)) = (payload, entry.as_object_mut()) {
        entry.insert("payload".into(), payload);
    }
    Some(entry)
}

/// What all answers to one interrupt say together.
#[derive(Clone, Copy, Default)]
struct Answers {
    resolved: bool,
    cancelled: bool,
}

#[cfg(test)]
#[path = "input_tests.rs"]
mod tests;
