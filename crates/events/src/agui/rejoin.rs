//! What whoever passes a run on has to know of its events: where it begins and ends, what is open in it, and the events
//! that bring somebody up to date who joins it again.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::check::shape::text;
use crate::event::Protocol;
use crate::json::View;
use crate::message::Message;

/// The beginning or an end of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEdge {
    /// A run starts; its id, where it names one.
    Started(Option<String>),
    /// A run ends, well or not.
    Ended,
}

impl RunEdge {
    /// The edge that an event is, if it is one.
    pub fn of(event: &Message) -> Option<Self> {
        let document = event.document();
        match text(document.root(), "type")?.as_ref() {
            "RUN_STARTED" => {
                let run = text(document.root(), "runId");
                Some(Self::Started(run.map(std::borrow::Cow::into_owned)))
            }
            "RUN_FINISHED" | "RUN_ERROR" => Some(Self::Ended),
            _ => None,
        }
    }
}

/// The end of a run that failed.
pub fn run_error(code: &str, message: &str) -> Message {
    made(json!({ "type": "RUN_ERROR", "message": message, "code": code }))
}

/// All messages of a thread. Where not `all_cards` of earlier runs are known, those that a client has stay.
pub fn messages(messages: &[Value], all_cards: bool) -> Message {
    let owned = if all_cards { Value::Null } else { json!([]) };
    made(json!({
        "type": "MESSAGES_SNAPSHOT",
        "messages": messages,
        "metadata": { "@ag-ui/client": { "authoritativeActivityTypes": owned } },
    }))
}

/// The state of a thread.
pub fn state(state: &Value) -> Message {
    made(json!({ "type": "STATE_SNAPSHOT", "snapshot": state }))
}

/// The start of a run with what it was asked, where the agent does not restate that: whoever reads the session is to
/// know what was said to it. What the thread has already is left out. None where the start is to stay as it is.
pub fn with_input(start: &Message, asked: &Value) -> Option<Message> {
    let Value::Object(start) = start.value() else { return None };
    if start.contains_key("input") {
        return None;
    }
    let messages = asked.get("messages")?.as_array()?;
    let answered = |message: &Value| message.get("role").is_some_and(|role| role == "assistant");
    let new = messages.iter().rposition(answered).map_or(0, |last| last + 1);
    let mut input = json!({
        "threadId": start.get("threadId")?, "runId": start.get("runId")?,
        "messages": messages.get(new..).unwrap_or_default(),
    });
    if let (Some(resume), Some(input)) = (asked.get("resume"), input.as_object_mut()) {
        input.insert("resume".to_owned(), resume.clone());
    }
    let mut start = start.clone();
    start.insert("input".to_owned(), input);
    Some(made(Value::Object(start)))
}

fn made(event: Value) -> Message {
    Message::of_value(Protocol::Agui, event)
}

/// What is open in a run, so that it can be opened again for who comes back.
#[derive(Debug, Default)]
pub struct OpenItems {
    /// Kind and name → the event that opened it, in their order.
    started: Vec<(String, Message)>,
    /// Owner → what its chunks go on with.
    lanes: BTreeMap<Option<String>, Message>,
}

impl OpenItems {
    /// Takes the next event of the run.
    pub fn take(&mut self, event: &Message) {
        let document = event.document();
        let fields = document.root();
        let kind = text(fields, "type").unwrap_or_default();
        let owner = || text(fields, "subagentRunId").map(std::borrow::Cow::into_owned);
        let id = text(fields, "messageId").or_else(|| text(fields, "toolCallId"));
        match &*kind {
            "RUN_STARTED" | "RUN_FINISHED" | "RUN_ERROR" => return *self = Self::default(),
            "TEXT_MESSAGE_CHUNK" | "TOOL_CALL_CHUNK" | "REASONING_MESSAGE_CHUNK" => {
                if let (Some(_), Some(opener)) = (id, without_words(fields)) {
                    self.lanes.insert(owner(), opener);
                }
                return;
            }
            "MESSAGES_SNAPSHOT" => self.lanes.clear(),
            "RAW"
            | "ACTIVITY_SNAPSHOT"
            | "ACTIVITY_DELTA"
            | "REASONING_ENCRYPTED_VALUE"
            | "SUBAGENT_STARTED" => {}
            _ => drop(self.lanes.remove(&owner())),
        }
        let (item, opens) = match &*kind {
            "TEXT_MESSAGE_START" => ("text", true),
            "TEXT_MESSAGE_END" => ("text", false),
            "TOOL_CALL_START" => ("call", true),
            "TOOL_CALL_END" => ("call", false),
            "REASONING_START" => ("span", true),
            "REASONING_END" => ("span", false),
            "REASONING_MESSAGE_START" => ("reasoning", true),
            "REASONING_MESSAGE_END" => ("reasoning", false),
            "STEP_STARTED" => ("step", true),
            "STEP_FINISHED" => ("step", false),
            "SUBAGENT_STARTED" => ("subagent", true),
            "SUBAGENT_FINISHED" | "SUBAGENT_ERROR" => ("subagent", false),
            _ => return,
        };
        let name = match item {
            "step" => format!("{:?} {:?}", owner(), text(fields, "stepName")),
            "subagent" => format!("{:?}", owner()),
            _ => format!("{id:?}"),
        };
        let key = format!("{item} {name}");
        self.started.retain(|(known, _)| *known != key);
        if opens {
            self.started.push((key, event.clone()));
        }
    }

    /// The events that open it again.
    pub fn again(&self) -> impl Iterator<Item = &Message> {
        self.started.iter().map(|(_, start)| start).chain(self.lanes.values())
    }
}

/// A chunk that says what it is a part of, and nothing else.
fn without_words(chunk: View<'_>) -> Option<Message> {
    let Value::Object(mut fields) = chunk.to_value() else { return None };
    let fields: &mut Map<String, Value> = &mut fields;
    fields.shift_remove("delta");
    fields.shift_remove("rawEvent");
    Some(made(Value::Object(std::mem::take(fields))))
}
