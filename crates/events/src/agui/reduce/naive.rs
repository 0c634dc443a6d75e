//! A reducer that looks for everything and copies what it likes, and events to try it with.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::agui::patch;
use crate::check::with_document;

#[derive(Debug, Clone)]
pub(super) struct Plain {
    pub(super) messages: Vec<Value>,
    pub(super) state: Value,
}

impl Default for Plain {
    fn default() -> Self {
        Self { messages: Vec::new(), state: json!({}) }
    }
}

fn merge(target: &mut Value, event: &Value) {
    if let Some(incoming) = event.get("metadata") {
        let target = target.as_object_mut().unwrap();
        let metadata = target.entry("metadata").or_insert_with(|| json!({}));
        metadata.as_object_mut().unwrap().extend(incoming.as_object().unwrap().clone());
    }
}

/// An object of those fields that are there.
fn object(fields: &[(&str, &Value)]) -> Value {
    let there = fields.iter().filter(|(_, value)| !value.is_null());
    there.map(|(name, value)| ((*name).to_owned(), (*value).clone())).collect::<Map<_, _>>().into()
}

impl Plain {
    fn find(&self, id: &Value) -> Option<usize> {
        self.messages.iter().position(|message| message["id"] == *id)
    }

    fn call(&mut self, id: &Value) -> Option<(usize, &mut Value)> {
        self.messages.iter_mut().enumerate().find_map(|(index, message)| {
            let calls = message.get_mut("toolCalls")?.as_array_mut()?;
            Some((index, calls.iter_mut().find(|call| call["id"] == *id)?))
        })
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each type, to be read as a table")]
    pub(super) fn apply(&mut self, event: &Value) {
        let (id, call) = (&event["messageId"], &event["toolCallId"]);
        let tag = &event["subagentRunId"];
        let known = self.find(id).filter(|at| self.messages[*at]["role"] != "activity");
        match event["type"].as_str().unwrap() {
            "TEXT_MESSAGE_START" | "REASONING_MESSAGE_START" if self.find(id).is_none() => {
                let role = event.get("role").cloned().unwrap_or(json!("assistant"));
                let mut message = object(&[
                    ("id", id),
                    ("role", &role),
                    ("content", &json!("")),
                    ("name", &event["name"]),
                    ("subagentRunId", tag),
                ]);
                merge(&mut message, event);
                self.messages.push(message);
            }
            "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT" => {
                let Some(at) = known else { return };
                let text = self.messages[at]["content"].as_str().unwrap_or_default().to_owned();
                self.messages[at]["content"] = json!(text + event["delta"].as_str().unwrap());
                merge(&mut self.messages[at], event);
            }
            "TEXT_MESSAGE_START"
            | "REASONING_MESSAGE_START"
            | "TEXT_MESSAGE_END"
            | "REASONING_MESSAGE_END" => {
                if let Some(at) = known {
                    merge(&mut self.messages[at], event);
                }
            }
            "TOOL_CALL_START" => {
                if let Some((_, call)) = self.call(call) {
                    call["function"]["name"] = event["toolCallName"].clone();
                    merge(call, event);
                    return;
                }
                let function = json!({"name": event["toolCallName"], "arguments": ""});
                let mut new = json!({"id": call, "type": "function", "function": function});
                merge(&mut new, event);
                let parent = event.get("parentMessageId").filter(|parent| **parent != "");
                let at = parent.and_then(|parent| self.find(parent));
                if let Some(at) = at.filter(|at| self.messages[*at]["role"] == "assistant") {
                    let message = self.messages[at].as_object_mut().unwrap();
                    let calls = message.entry("toolCalls").or_insert_with(|| json!([]));
                    calls.as_array_mut().unwrap().push(new);
                    return;
                }
                let id = parent.filter(|_| at.is_none()).unwrap_or(call);
                let tag = if self.find(id).is_none() { tag } else { &Value::Null };
                let (role, calls) = (json!("assistant"), json!([new]));
                let fields =
                    [("id", id), ("role", &role), ("subagentRunId", tag), ("toolCalls", &calls)];
                self.messages.push(object(&fields));
            }
            "TOOL_CALL_ARGS" | "TOOL_CALL_END" => {
                let Some((_, call)) = self.call(call) else { return };
                let text = call["function"]["arguments"].as_str().unwrap().to_owned();
                let delta = event["delta"].as_str().unwrap_or_default();
                call["function"]["arguments"] = json!(text + delta);
                merge(call, event);
            }
            "TOOL_CALL_RESULT" => {
                let mut message = object(&[
                    ("id", id),
                    ("role", &json!("tool")),
                    ("toolCallId", call),
                    ("content", &event["content"]),
                    ("subagentRunId", tag),
                ]);
                merge(&mut message, event);
                let end = self.messages.len();
                let mut at = self.call(call).map_or(end, |(at, _)| at + 1);
                while self.messages.get(at).is_some_and(|message| message["role"] == "tool") {
                    at += 1;
                }
                self.messages.insert(at, message);
            }
            "STATE_SNAPSHOT" => self.state = event["snapshot"].clone(),
            "STATE_DELTA" => {
                let _failed = with_document(&event["delta"], |delta| {
                    patch::apply(&mut self.state, delta.root())
                });
            }
            "MESSAGES_SNAPSHOT" => self.reconcile(event),
            "ACTIVITY_SNAPSHOT" => {
                let mut fresh = object(&[
                    ("id", id),
                    ("role", &json!("activity")),
                    ("activityType", &event["activityType"]),
                    ("content", &event["content"]),
                    ("subagentRunId", tag),
                ]);
                let replace = event["replace"] != json!(false);
                match self.find(id) {
                    None => {
                        merge(&mut fresh, event);
                        self.messages.push(fresh);
                    }
                    Some(at) if known.is_some() => {
                        if replace {
                            merge(&mut fresh, event);
                            self.messages[at] = fresh;
                        }
                    }
                    Some(at) => {
                        if replace {
                            if let Some(metadata) = self.messages[at].get("metadata") {
                                fresh["metadata"] = metadata.clone();
                            }
                            self.messages[at] = fresh;
                        }
                        merge(&mut self.messages[at], event);
                    }
                }
            }
            "ACTIVITY_DELTA" => {
                let Some(at) = self.find(id).filter(|_| known.is_none()) else { return };
                merge(&mut self.messages[at], event);
                let mut content = self.messages[at]["content"].clone();
                if content.is_null() {
                    content = json!({});
                }
                let patched = with_document(&event["patch"], |patch| {
                    patch::apply(&mut content, patch.root())
                });
                if patched.is_ok() {
                    self.messages[at]["content"] = content;
                    self.messages[at]["activityType"] = event["activityType"].clone();
                }
            }
            "REASONING_ENCRYPTED_VALUE" => {
                let (entity, value) = (&event["entityId"], event["encryptedValue"].clone());
                if event["subtype"] == "tool-call" {
                    if let Some((_, call)) = self.call(entity) {
                        call["encryptedValue"] = value;
                    }
                } else if let Some(at) = self.find(entity)
                    && self.messages[at]["role"] != "activity"
                {
                    self.messages[at]["encryptedValue"] = value;
                }
            }
            "RUN_STARTED" => {
                for message in event["input"]["messages"].as_array().into_iter().flatten() {
                    if self.find(&message["id"]).is_none() {
                        self.messages.push(message.clone());
                    }
                }
            }
            _ => {}
        }
    }

    fn reconcile(&mut self, event: &Value) {
        let new = event["messages"].as_array().unwrap();
        let latest = |id: &Value| new.iter().rev().find(|message| message["id"] == *id);
        let has = |role: &str| new.iter().any(|message| message["role"] == role);
        let declared = event.pointer("/metadata/@ag-ui~1client/authoritativeActivityTypes");
        let stays = |message: &Value| match message["role"].as_str() {
            Some("reasoning") => !has("reasoning"),
            Some("activity") => match declared {
                None => !has("activity"),
                Some(Value::Null) => false,
                Some(types) => !types.as_array().unwrap().contains(&message["activityType"]),
            },
            _ => false,
        };
        self.messages.retain(|message| latest(&message["id"]).is_some() || stays(message));
        for message in &mut self.messages {
            if let Some(latest) = latest(&message["id"]) {
                *message = latest.clone();
            }
        }
        let unknown: Vec<Value> =
            new.iter().filter(|message| self.find(&message["id"]).is_none()).cloned().collect();
        self.messages.extend(unknown);
    }
}

/// Ids from a small pool, so that they meet again.
fn ident() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "b", "c", "d", "e", ""])
}

fn message() -> impl Strategy<Value = Value> {
    let role = prop::sample::select(vec![
        "user",
        "assistant",
        "assistant",
        "tool",
        "activity",
        "reasoning",
    ]);
    (ident(), role, prop::collection::vec(ident(), 0..3), ident()).prop_map(|(id, role, calls, text)| {
        let call = |id| json!({"id": id, "type": "function", "function": {"name": "t", "arguments": ""}});
        let calls: Vec<Value> = calls.into_iter().map(call).collect();
        match role {
            "assistant" => json!({"id": id, "role": role, "content": text, "toolCalls": calls}),
            "tool" => json!({"id": id, "role": role, "content": text, "toolCallId": "a"}),
            "activity" => json!({"id": id, "role": role, "activityType": text, "content": {"n": 1}}),
            _ => json!({"id": id, "role": role, "content": text, "metadata": {"a": 0}}),
        }
    })
}

fn patch() -> impl Strategy<Value = Value> {
    let op = prop::sample::select(vec!["add", "remove", "replace", "copy", "move", "test"]);
    let path = || prop::sample::select(vec!["/n", "/m", "/m/n", "/m/-", "/n/0", ""]);
    let operation =
        (op, path(), path(), prop::sample::select(vec![json!({}), json!([]), json!(1)])).prop_map(
            |(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}),
        );
    prop::collection::vec(operation, 0..3).prop_map(Value::from)
}

/// Any event that makes a difference, with fields as they may come.
pub(super) fn event() -> impl Strategy<Value = Value> {
    let streamed = prop::sample::select(vec![
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "TOOL_CALL_START",
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "TOOL_CALL_RESULT",
        "TOOL_CALL_RESULT",
        "TOOL_CALL_RESULT",
        "REASONING_MESSAGE_START",
        "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_END",
        "ACTIVITY_SNAPSHOT",
        "ACTIVITY_DELTA",
        "REASONING_ENCRYPTED_VALUE",
    ]);
    let built = (
        (streamed, ident(), ident(), prop::option::of(ident()), prop::option::of(ident())),
        (prop::option::of(ident()), ident(), patch(), prop::option::of(any::<bool>())),
    );
    let built =
        built.prop_map(|((kind, id, call, parent, tag), (metadata, text, patch, replace))| {
            let metadata = metadata.map(|name| json!({name: text}));
            let mut event = json!({"type": kind});
            let fields: &[(&str, Option<Value>)] = &match kind {
                "TEXT_MESSAGE_START" => {
                    vec![("messageId", Some(json!(id))), ("name", parent.map(Value::from))]
                }
                "REASONING_MESSAGE_START" => {
                    vec![("messageId", Some(json!(id))), ("role", Some(json!("reasoning")))]
                }
                "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT" => {
                    vec![("messageId", Some(json!(id))), ("delta", Some(json!(text)))]
                }
                "TOOL_CALL_START" => vec![
                    ("toolCallId", Some(json!(call))),
                    ("toolCallName", Some(json!(text))),
                    ("parentMessageId", parent.map(Value::from)),
                ],
                "TOOL_CALL_ARGS" => {
                    vec![("toolCallId", Some(json!(call))), ("delta", Some(json!(text)))]
                }
                "TOOL_CALL_END" => vec![("toolCallId", Some(json!(call)))],
                "TOOL_CALL_RESULT" => vec![
                    ("messageId", Some(json!(id))),
                    ("toolCallId", Some(json!(call))),
                    ("content", Some(json!(text))),
                ],
                "ACTIVITY_SNAPSHOT" => vec![
                    ("messageId", Some(json!(id))),
                    ("activityType", Some(json!(text))),
                    ("content", Some(json!({"n": [1]}))),
                    ("replace", replace.map(Value::from)),
                ],
                "ACTIVITY_DELTA" => vec![
                    ("messageId", Some(json!(id))),
                    ("activityType", Some(json!(text))),
                    ("patch", Some(patch)),
                ],
                "REASONING_ENCRYPTED_VALUE" => {
                    let subtype = if parent.is_some() { "tool-call" } else { "message" };
                    vec![
                        ("subtype", Some(json!(subtype))),
                        ("entityId", Some(json!(id))),
                        ("encryptedValue", Some(json!(text))),
                    ]
                }
                _ => vec![("messageId", Some(json!(id)))],
            };
            let common = [("subagentRunId", tag.map(Value::from)), ("metadata", metadata)];
            for (name, value) in fields.iter().cloned().chain(common) {
                if let Some(value) = value {
                    event[name] = value;
                }
            }
            event
        });
    let messages = || prop::collection::vec(message(), 0..5);
    let types = prop_oneof![
        Just(None),
        Just(Some(json!(null))),
        prop::collection::vec(ident(), 0..3).prop_map(|types| Some(json!(types))),
    ];
    prop_oneof![
        20 => built,
        1 => (messages(), types).prop_map(|(messages, types)| match types {
            None => json!({"type": "MESSAGES_SNAPSHOT", "messages": messages}),
            Some(types) => json!({
                "type": "MESSAGES_SNAPSHOT", "messages": messages,
                "metadata": {"@ag-ui/client": {"authoritativeActivityTypes": types}},
            }),
        }),
        1 => messages().prop_map(|messages| json!({
            "type": "RUN_STARTED", "threadId": "t", "runId": "r", "input": {"messages": messages},
        })),
        2 => patch().prop_map(|delta| json!({"type": "STATE_DELTA", "delta": delta})),
        1 => patch().prop_map(|snapshot| json!({"type": "STATE_SNAPSHOT", "snapshot": snapshot})),
    ]
}
