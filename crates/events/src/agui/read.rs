//! AG-UI events → activities.
//!
//! Total: what AG-UI says and the common vocabulary has no word for becomes [`What::Other`]. The reader assembles what
//! AG-UI streams in pieces and the vocabulary wants whole: the arguments of a call, the role of a message.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::activity::{Action, Activity, Context, Ending, Origin, Role, Status, What};

/// Reads one thread's events.
#[derive(Debug, Clone, Default)]
pub struct Reader {
    /// Open call → its name and the arguments so far.
    calls: BTreeMap<String, (String, String)>,
    /// Calls that ended their arguments and wait for a result → name.
    pending: BTreeMap<String, String>,
    /// Open message → whether a person wrote it, and the text so far where a person did.
    messages: BTreeMap<String, Option<String>>,
    thread: Option<String>,
    run: Option<String>,
}

impl Reader {
    /// The activities of one event.
    pub fn read(&mut self, event: &Value, origin: &Origin) -> Vec<Activity> {
        let what = self.activities(event);
        let context = Arc::new(Context {
            agent: "ag-ui".to_owned(),
            agent_name: Some("AG-UI agent".to_owned()),
            session: self.thread.clone(),
            turn: self.run.clone(),
            ..Context::default()
        });
        what.into_iter()
            .map(|what| Activity { origin: origin.clone(), context: context.clone(), what })
            .collect()
    }

    fn activities(&mut self, event: &Value) -> Vec<What> {
        let Some(kind) = text(event, "type") else {
            return Vec::new();
        };
        match kind.as_str() {
            "RUN_STARTED" => {
                self.thread = text(event, "threadId");
                self.run = text(event, "runId");
                vec![What::TurnStarted { request: last_request(event), summary: None }]
            }
            "RUN_FINISHED" => {
                let ending = match event.pointer("/outcome/type").and_then(Value::as_str) {
                    Some("cancelled") => {
                        Ending::Cancelled { by: "producer".to_owned(), reason: None }
                    }
                    _ => Ending::Completed,
                };
                vec![ended_turn(ending)]
            }
            "RUN_ERROR" => {
                let message = text(event, "message").unwrap_or_default();
                vec![ended_turn(Ending::failed(message))]
            }
            "TEXT_MESSAGE_START" => {
                let by_person = text(event, "role").is_some_and(|role| role == "user");
                if let Some(id) = text(event, "messageId") {
                    self.messages.insert(id, by_person.then(String::new));
                }
                Vec::new()
            }
            "TEXT_MESSAGE_CONTENT" => self.content(event),
            "TEXT_MESSAGE_END" => {
                let Some(id) = text(event, "messageId") else {
                    return Vec::new();
                };
                match self.messages.remove(&id) {
                    Some(Some(request)) => {
                        vec![What::Said {
                            message: id,
                            role: Role::User,
                            text: request,
                            last: true,
                        }]
                    }
                    _ => vec![What::Said {
                        message: id,
                        role: Role::Assistant,
                        text: String::new(),
                        last: true,
                    }],
                }
            }
            "TOOL_CALL_START" => {
                if let (Some(id), Some(name)) =
                    (text(event, "toolCallId"), text(event, "toolCallName"))
                {
                    self.calls.insert(id, (name, String::new()));
                }
                Vec::new()
            }
            "TOOL_CALL_ARGS" => {
                let call = text(event, "toolCallId").and_then(|id| self.calls.get_mut(&id));
                if let (Some((_, so_far)), Some(delta)) = (call, text(event, "delta")) {
                    so_far.push_str(&delta);
                }
                Vec::new()
            }
            "TOOL_CALL_END" => self.called(event),
            "TOOL_CALL_RESULT" => {
                let Some(id) = text(event, "toolCallId") else {
                    return Vec::new();
                };
                let tool = self.pending.remove(&id).unwrap_or_else(|| "unknown".to_owned());
                vec![What::ActionEnded {
                    id,
                    tool,
                    status: Status::Success,
                    output: event.get("content").cloned(),
                    error: None,
                    duration_ms: None,
                }]
            }
            "REASONING_MESSAGE_CONTENT" => text(event, "delta")
                .map(|text| What::Thought { message: String::new(), text, last: false })
                .into_iter()
                .collect(),
            _ => vec![What::Raw {
                protocol: crate::event::Protocol::Agui,
                kind,
                text: None,
                event: event.clone(),
            }],
        }
    }

    fn content(&mut self, event: &Value) -> Vec<What> {
        let (Some(id), Some(delta)) = (text(event, "messageId"), text(event, "delta")) else {
            return Vec::new();
        };
        if let Some(Some(request)) = self.messages.get_mut(&id) {
            request.push_str(&delta);
            return Vec::new();
        }
        vec![What::Said { message: id, role: Role::Assistant, text: delta, last: false }]
    }

    fn called(&mut self, event: &Value) -> Vec<What> {
        let Some(id) = text(event, "toolCallId") else {
            return Vec::new();
        };
        let Some((name, arguments)) = self.calls.remove(&id) else {
            return Vec::new();
        };
        self.pending.insert(id.clone(), name.clone());
        // Arguments that are not JSON are kept as the text they are.
        let input = serde_json::from_str(&arguments).unwrap_or(Value::String(arguments));
        let action = Action { input: Some(input), ..Action::unseen(&id, &name) };
        vec![What::ActionRequested { action, gate: None }]
    }
}

fn ended_turn(ending: Ending) -> What {
    What::TurnEnded { ending, summary: None, result: None, usage: Vec::new() }
}

fn last_request(event: &Value) -> Option<String> {
    event
        .pointer("/input/messages")?
        .as_array()?
        .iter()
        .rev()
        .find(|message| text(message, "role").is_some_and(|role| role == "user"))
        .and_then(|message| text(message, "content"))
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).map(str::to_owned)
}
