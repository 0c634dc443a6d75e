use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use banister_events::check::{self, Checker};
use banister_events::finding::{Finding, Severity};
use banister_events::frame::sse;
use banister_events::{aaep, aep, agui};
use banister_journal::Kind;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::*;
use crate::clock::Clock;
use crate::desk::AnswerRequest;
use crate::ingest::{PushPolicy, Pushing, Status};
use crate::keep::CapturePolicy;
use crate::project::Projection;
use crate::serve::Serving;
use crate::{Gateway, Settings, serve};

#[path = "push_tests/asks.rs"]
mod asks;
#[path = "push_tests/decide.rs"]
mod decide;
#[path = "push_tests/doors.rs"]
mod doors;
#[path = "push_tests/told.rs"]
mod told;

/// A gateway that listens, and the keys to it.
struct House {
    _dir: tempfile::TempDir,
    gateway: Arc<Gateway>,
    serving: Serving,
    agent: String,
    person: String,
}

struct Answer {
    status: u16,
    head: String,
    text: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("{}: {}", self.head, self.text))
    }

    fn statuses(&self) -> Vec<String> {
        let body = self.json();
        assert_eq!(body["schema"], "banister.push/v1", "{body}");
        let rows = body["results"].as_array().unwrap().clone();
        for (index, row) in rows.iter().enumerate() {
            assert_eq!(row["index"], index);
            assert!(row["position"].is_u64(), "{row}");
        }
        rows.iter().map(|row| row["status"].as_str().unwrap().to_owned()).collect()
    }

    fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap().to_owned()
    }
}

impl House {
    async fn open() -> Self {
        Self::with(Pushing { rate: 0, ..Pushing::default() }).await
    }

    async fn with(push: Pushing) -> Self {
        Self::capturing(push, CapturePolicy::default()).await
    }

    async fn capturing(push: Pushing, capture: CapturePolicy) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings { capture, push, ..Settings::new(dir.path().join("data")) };
        let gateway = Gateway::open(settings, Clock::default()).unwrap();
        let listen: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let serving = serve::start(&gateway, listen, &dir.path().join("s")).await.unwrap();
        let key = |name| std::fs::read_to_string(gateway.keys.file(name)).unwrap();
        let (agent, person) = (key("agent.key"), key("person.key"));
        Self { _dir: dir, gateway, serving, agent, person }
    }

    /// One request, to the end of its answer.
    async fn send(&self, line: &str, headers: &str, body: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.serving.address).await.unwrap();
        let head = format!(
            "{line} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n",
            self.serving.address,
            body.len()
        );
        // A door that has heard enough may close it: then the answer is there already.
        let sent = async {
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(body).await
        };
        drop(sent.await);
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut bytes));
        drop(read.await.expect("an answer in time"));
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        Answer { status, head: head.to_lowercase(), text: body.to_owned() }
    }

    /// A push with the agent's key.
    async fn push(&self, path: &str, headers: &str, body: impl AsRef<[u8]>) -> Answer {
        let headers = format!("Authorization: Bearer {}\r\n{headers}", self.agent);
        self.send(&format!("POST {path}"), &headers, body.as_ref()).await
    }

    async fn get(&self, path: &str) -> Answer {
        let headers = format!("Authorization: Bearer {}\r\n", self.person);
        self.send(&format!("GET {path}"), &headers, b"").await
    }

    /// What a stream has said from its start until it has been quiet for a while.
    async fn follow(&self, path: &str) -> Vec<Value> {
        self.follow_with(path, &self.person).await
    }

    async fn follow_with(&self, path: &str, key: &str) -> Vec<Value> {
        let mut stream = TcpStream::connect(self.serving.address).await.unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
            self.serving.address, key
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        let quiet = Duration::from_millis(400);
        while let Ok(Ok(count)) = tokio::time::timeout(quiet, stream.read_buf(&mut bytes)).await {
            if count == 0 {
                break;
            }
        }
        events(&bytes)
    }

    fn records(&self) -> Vec<Arc<banister_journal::Record>> {
        self.gateway.journal.after(0, 100_000).unwrap()
    }
}

/// The events of a response's bytes, chunked or not.
fn events(bytes: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let (_, mut rest) = text.split_once("\r\n\r\n").unwrap();
    let mut whole = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let Ok(size) = usize::from_str_radix(size, 16) else { break };
        let Some(chunk) = after.get(..size).filter(|chunk| !chunk.is_empty()) else { break };
        whole.push_str(chunk);
        rest = after.get(size + 2..).unwrap_or_default();
    }
    let mut parser = sse::Parser::new(1 << 24);
    parser.push(whole.as_bytes()).unwrap();
    let mut events = Vec::new();
    while let Some(message) = parser.next() {
        events.push(serde_json::from_str(&message.data).unwrap());
    }
    events
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn ndjson(events: &[Value]) -> String {
    events.iter().fold(String::new(), |lines, event| lines + &event.to_string() + "\n")
}

/// An AEP event of one session.
fn aep_event(id: &str, kind: &str, more: &Value) -> Value {
    let mut event = json!({
        "aep_version": "0.1", "id": id, "type": kind, "time": "2026-11-15T09:00:00.000Z",
        "agent": { "slug": "finch" }, "session": { "id": "one" },
        "workspace": { "cwd": "/home/dev/orbit" },
    });
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event
}

/// An action that would run a command.
fn shell(id: &str, action: &str, command: &str) -> Value {
    let more = json!({
        "action": { "type": "tool_call", "id": action, "input": { "command": command } },
        "tool": { "type": "native", "name": "Bash" },
    });
    aep_event(id, "action.requested", &more)
}

fn aep_stream() -> Vec<Value> {
    let content = |kind: &str, text: &str| json!({ "content": [{ "type": kind, "text": text }] });
    let done = json!({
        "action": { "type": "tool_call", "id": "act_1", "status": "success", "output": "ok" },
        "tool": { "type": "native", "name": "Bash" },
    });
    vec![
        aep_event("evt_1", "session.start", &json!({})),
        aep_event("evt_2", "prompt.submitted", &content("prompt", "Tidy up the shed.")),
        shell("evt_3", "act_1", "ls shed"),
        aep_event("evt_4", "action.completed", &done),
        aep_event("evt_5", "model.response", &content("response", "The shed is tidy.")),
        aep_event("evt_6", "agent.stop", &json!({})),
    ]
}

fn agui_stream() -> Vec<Value> {
    let run = |kind: &str| json!({ "type": kind, "threadId": "shed", "runId": "r1" });
    let mut started = run("RUN_STARTED");
    started["protocolVersion"] = json!("1.0");
    vec![
        started,
        json!({ "type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "assistant" }),
        json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "Looking." }),
        json!({ "type": "TEXT_MESSAGE_END", "messageId": "m1" }),
        json!({ "type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "look" }),
        json!({ "type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": "{\"where\":\"shed\"}" }),
        json!({ "type": "TOOL_CALL_END", "toolCallId": "c1" }),
        json!({
            "type": "TOOL_CALL_RESULT", "messageId": "m2", "toolCallId": "c1", "content": "a rake",
            "role": "tool",
        }),
        run("RUN_FINISHED"),
    ]
}

/// A stream in AAEP: what our own writer makes of the AG-UI one, without anything of our own in it.
fn aaep_stream() -> Vec<Value> {
    let mut translator = banister_events::translate::Translator::new(
        banister_events::translate::Source::Protocol(Protocol::Agui),
        Protocol::Aaep,
        aaep::voice::Voice::default(),
    );
    let now = "2026-11-15T09:00:00Z".parse().unwrap();
    let mut told = Vec::new();
    for event in agui_stream() {
        told.extend(translator.message(event.to_string().as_bytes(), now).unwrap());
    }
    told.extend(translator.finish());
    told.into_iter()
        .map(|told| {
            let mut event = told.event.into_value();
            event.as_object_mut().unwrap().remove("extensions");
            event
        })
        .collect()
}

fn stream(protocol: Protocol) -> (Vec<Value>, &'static str) {
    match protocol {
        Protocol::Aep => (aep_stream(), "/aep/v0.1/events"),
        Protocol::Aaep => (aaep_stream(), "/aaep/v1/events"),
        Protocol::Agui => (agui_stream(), "/agui/threads/shed/events"),
    }
}

/// What breaks a MUST in a stream.
fn errors(protocol: Protocol, events: &[Value]) -> Vec<Finding> {
    let mut checker = Checker::new(protocol);
    let mut findings: Vec<Finding> = events.iter().flat_map(|event| checker.value(event)).collect();
    findings.extend(checker.finish());
    findings.retain(|finding| finding.rule.severity == Severity::Error);
    findings
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap_or("response")).collect()
}
