//! An agent that sends whatever a test wants, and clients that come, go and come back.

use std::net::SocketAddr;

use banister_events::agui::follow::{Ending, Follower};
use banister_events::agui::reduce::Reducer;
use banister_events::event::Protocol;
use banister_events::frame::sse;
use banister_events::json::parsed;
use banister_journal::{Kind, Query};
use serde_json::{Map, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::*;
use crate::clock::Clock;
use crate::keys::Scope;
use crate::project::tests::{follow, hear};
use crate::serve::{self, Serving};
use crate::{Gateway, Settings};

const SOON: Duration = Duration::from_secs(20);

/// What an agent does next.
enum Act {
    Send(Vec<u8>),
    /// Ends the response as HTTP does.
    End,
    /// Just closes the connection.
    Die,
}

/// A gateway with one agent behind it, whose responses the test writes.
struct House {
    dir: tempfile::TempDir,
    gateway: Arc<Gateway>,
    serving: Serving,
    /// Every request that reached the agent, with where its response is written.
    asked: mpsc::Receiver<(Value, mpsc::Sender<Act>)>,
    agent: JoinSet<()>,
    /// Where the agent listens.
    at: SocketAddr,
}

impl House {
    async fn open(change: impl FnOnce(&mut Upstream)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut upstream = Upstream::new(format!("http://{address}/agent").parse().unwrap());
        change(&mut upstream);
        let dir = tempfile::tempdir().unwrap();
        let mut settings = Settings::new(dir.path().join("data"));
        settings.upstreams.insert("agent".to_owned(), upstream);
        let gateway = Gateway::open(settings, Clock::default()).unwrap();
        let any = "127.0.0.1:0".parse().unwrap();
        let serving = serve::start(&gateway, any, &dir.path().join("s")).await.unwrap();
        let (requests, asked) = mpsc::channel(16);
        let mut agent = JoinSet::new();
        agent.spawn(listening(listener, requests));
        Self { dir, gateway, serving, asked, agent, at: address }
    }

    fn key(&self, name: &str) -> String {
        let path = self.dir.path().join(format!("data/keys/{name}.key"));
        std::fs::read_to_string(path).unwrap().trim().to_owned()
    }

    async fn post(&self, key: &str, input: &Value) -> Client {
        Client::open(self.serving.address, key, input).await
    }

    async fn person(&self, input: &Value) -> Client {
        self.post(&self.key("person"), input).await
    }

    async fn next(&mut self) -> (Value, mpsc::Sender<Act>) {
        timeout(SOON, self.asked.recv()).await.unwrap().unwrap()
    }

    /// The records of the thread.
    async fn records(&self) -> Vec<Arc<banister_journal::Record>> {
        let session = session_of("agent", "t");
        self.gateway.session_after(&session, 0).await.unwrap()
    }
}

/// Takes the requests that reach the agent.
async fn listening(listener: TcpListener, requests: mpsc::Sender<(Value, mpsc::Sender<Act>)>) {
    let mut plays = JoinSet::new();
    while let Ok((mut stream, _)) = listener.accept().await {
        let (acts, script) = mpsc::channel(64);
        let Some(input) = request_of(&mut stream).await else { continue };
        if requests.send((input, acts)).await.is_err() {
            break;
        }
        plays.spawn(play(stream, script));
    }
}

async fn request_of(stream: &mut TcpStream) -> Option<Value> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        if let Ok(input) = serde_json::from_slice(&bytes[at + 4..]) {
            return Some(input);
        }
    }
}

async fn play(mut stream: TcpStream, mut script: mpsc::Receiver<Act>) {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                Transfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.ok();
    while let Some(act) = script.recv().await {
        match act {
            // An empty chunk would be the end.
            Act::Send(bytes) if bytes.is_empty() => {}
            Act::Send(bytes) => {
                let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
                chunk.extend(bytes);
                chunk.extend(b"\r\n");
                stream.write_all(&chunk).await.ok();
            }
            Act::End => {
                stream.write_all(b"0\r\n\r\n").await.ok();
                return;
            }
            Act::Die => return,
        }
    }
}

/// One response of the gateway, as it arrives.
struct Client {
    stream: TcpStream,
    status: u16,
    head: String,
    bytes: Vec<u8>,
    parser: sse::Parser,
    comments: usize,
    events: Vec<Value>,
}

impl Client {
    async fn open(address: SocketAddr, key: &str, input: &Value) -> Self {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let body = input.to_string();
        let text = format!(
            "POST /agui/upstreams/agent HTTP/1.1\r\nHost: localhost:{}\r\nAuthorization: Bearer {key}\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            address.port(),
            body.len()
        );
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        let at = loop {
            assert!(timeout(SOON, stream.read_buf(&mut bytes)).await.unwrap().unwrap() > 0);
            if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
        };
        let head = String::from_utf8(bytes[..at].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let bytes = bytes[at..].to_vec();
        let parser = sse::Parser::new(1 << 22);
        Self { stream, status, head, bytes, parser, comments: 0, events: Vec::new() }
    }

    /// Where the head of the first chunk ends, and its size, if it is whole.
    fn chunk(&self) -> Option<(usize, usize)> {
        let end = self.bytes.windows(2).position(|two| two == b"\r\n")?;
        let size = std::str::from_utf8(&self.bytes[..end]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        (self.bytes.len() >= end + 2 + size + 2).then_some((end, size))
    }

    /// Reads more; whether there was more.
    async fn read(&mut self) -> bool {
        // Chunks of HTTP are taken apart by hand.
        if let Some((end, size)) = self.chunk() {
            let piece: Vec<u8> = self.bytes.drain(..end + 2 + size + 2).collect();
            if size == 0 {
                return false;
            }
            let piece = &piece[end + 2..end + 2 + size];
            self.comments += usize::from(piece.starts_with(b": "));
            self.parser.push(piece).unwrap();
            while let Some(message) = self.parser.next() {
                self.events.push(serde_json::from_str(&message.data).unwrap());
            }
            return true;
        }
        let read = timeout(SOON, self.stream.read_buf(&mut self.bytes)).await.unwrap();
        read.unwrap_or(0) > 0
    }

    async fn until(&mut self, count: usize) {
        while self.events.len() < count {
            assert!(self.read().await, "{:?}", self.events);
        }
    }

    async fn whole(mut self) -> Vec<Value> {
        assert_eq!(self.status, 200, "{}", self.head);
        while self.read().await {}
        self.events
    }

    async fn problem(mut self) -> (u16, Value) {
        while timeout(SOON, self.stream.read_buf(&mut self.bytes)).await.unwrap().unwrap() > 0 {}
        (self.status, serde_json::from_slice(&self.bytes).unwrap())
    }
}

/// What a client of the protocol has, from what it had and what it heard.
#[derive(Debug, Clone)]
struct Mind {
    messages: Vec<Value>,
    state: Value,
    ending: Ending,
}

impl Mind {
    fn new() -> Self {
        let messages = vec![json!({ "id": "u1", "role": "user", "content": "Go." })];
        Self { messages, state: Value::Object(Map::new()), ending: Ending::Empty }
    }

    fn hear(&mut self, events: &[Value]) {
        let mut follower = Follower::new(Reducer::with(self.messages.clone(), self.state.clone()));
        for event in events {
            follower.value(event).unwrap_or_else(|error| panic!("{error}: {events:#?}"));
        }
        self.messages = follower.reducer().messages_value().as_array().unwrap().clone();
        self.state = follower.reducer().state().clone();
        self.ending = follower.ending();
    }

    fn input(&self, run: &str) -> Value {
        // Cards are for people, never for the agent.
        let messages: Vec<&Value> =
            self.messages.iter().filter(|message| message["role"] != "activity").collect();
        json!({ "threadId": "t", "runId": run, "messages": messages, "state": self.state })
    }
}

fn frames(events: &[Value]) -> Vec<u8> {
    let mut frames = Vec::new();
    for event in events {
        frames.extend(format!("data: {event}\n\n").into_bytes());
    }
    frames
}

fn start() -> Value {
    json!({ "type": "RUN_STARTED", "threadId": "t", "runId": "r1", "protocolVersion": "1.0" })
}

fn finish() -> Value {
    json!({ "type": "RUN_FINISHED", "threadId": "t", "runId": "r1" })
}

fn custom(n: usize) -> Value {
    json!({ "type": "CUSTOM", "name": "test.n", "value": n })
}

/// Something of everything that can be open when a client is cut off.
fn talk() -> Vec<Value> {
    vec![
        json!({ "type": "STATE_SNAPSHOT", "snapshot": { "seen": [] } }),
        json!({ "type": "ACTIVITY_SNAPSHOT", "messageId": "a1", "activityType": "plan", "content": { "done": 0 } }),
        json!({ "type": "STEP_STARTED", "stepName": "look" }),
        json!({ "type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "assistant" }),
        json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "Grüße " }),
        json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "aus 東京" }),
        json!({ "type": "TEXT_MESSAGE_END", "messageId": "m1" }),
        json!({ "type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "look", "parentMessageId": "m1" }),
        json!({ "type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": "{\"at\":" }),
        json!({ "type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": "\"sky\"}" }),
        json!({ "type": "TOOL_CALL_END", "toolCallId": "c1" }),
        json!({ "type": "STATE_DELTA", "delta": [{ "op": "add", "path": "/seen/-", "value": 1 }] }),
        json!({ "type": "ACTIVITY_DELTA", "messageId": "a1", "activityType": "plan", "patch": [{ "op": "replace", "path": "/done", "value": 1 }] }),
        json!({ "type": "TEXT_MESSAGE_CHUNK", "messageId": "m2", "delta": "Half " }),
        json!({ "type": "TEXT_MESSAGE_CHUNK", "delta": "and half" }),
        // Between two messages that a client may have already.
        json!({ "type": "TOOL_CALL_RESULT", "messageId": "x1", "toolCallId": "c1", "content": "stars" }),
        json!({ "type": "STEP_FINISHED", "stepName": "look" }),
        json!({ "type": "TEXT_MESSAGE_START", "messageId": "m3" }),
        json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "m3", "delta": "Done." }),
        json!({ "type": "TEXT_MESSAGE_END", "messageId": "m3" }),
    ]
}

#[tokio::test]
async fn what_is_right_passes_byte_for_byte_and_is_history() {
    let mut house = House::open(|_| {}).await;
    let mind = Mind::new();
    let (client, (input, agent)) = tokio::join!(
        house.gateway.tasks.spawn(Client::open_owned(
            house.serving.address,
            house.key("person"),
            mind.input("r1")
        )),
        async { timeout(SOON, house.asked.recv()).await.unwrap().unwrap() }
    );
    assert_eq!(input, mind.input("r1"), "the agent gets what the client sent");
    let events = [vec![start()], talk(), vec![finish()]].concat();
    // CRLF, a byte order mark, and characters cut in the middle.
    let mut bytes = b"\xef\xbb\xbf".to_vec();
    for event in &events {
        bytes.extend(format!("data: {event}\r\n\r\n").into_bytes());
    }
    for piece in bytes.chunks(7) {
        agent.send(Act::Send(piece.to_vec())).await.unwrap();
    }
    agent.send(Act::End).await.unwrap();
    assert_eq!(client.unwrap().whole().await, events);
    let records = house.records().await;
    assert_eq!(records.len(), events.len());
    assert!(records.iter().all(|record| record.kind == Kind::Event));
    let query = Query { text: "Grüße".to_owned(), limit: 9, ..Query::default() };
    let found = house.gateway.search(&query).await;
    assert_eq!(found.hits.len(), 1, "what was said can be found");
    let first: Value = serde_json::from_slice(&records[0].body).unwrap();
    assert_eq!(first["input"]["messages"][0]["content"], "Go.", "what was asked is known");
    for (record, event) in records.iter().zip(&events).skip(1) {
        assert_eq!(record.body, event.to_string());
    }
}

#[tokio::test]
async fn each_event_of_a_run_is_parsed_once_whoever_hears_it() {
    for policy in [UpstreamPolicy::Repair, UpstreamPolicy::Report, UpstreamPolicy::Strict] {
        let mut house = House::open(|upstream| upstream.policy = policy).await;
        let mut spoken = follow(&house.gateway, Protocol::Aaep).await;
        let (client, (_, agent)) = tokio::join!(
            house.gateway.tasks.spawn(Client::open_owned(
                house.serving.address,
                house.key("person"),
                Mind::new().input("r1")
            )),
            async { timeout(SOON, house.asked.recv()).await.unwrap().unwrap() }
        );
        let events = [vec![start()], talk(), vec![finish()]].concat();
        let before = parsed();
        agent.send(Act::Send(frames(&events))).await.unwrap();
        agent.send(Act::End).await.unwrap();
        assert_eq!(client.unwrap().whole().await, events);
        hear(&mut spoken, "session.completed").await;
        assert_eq!(parsed() - before, events.len() as u64, "{policy:?}");
    }
}

impl Client {
    async fn open_owned(address: SocketAddr, key: String, input: Value) -> Self {
        Self::open(address, &key, &input).await
    }
}

/// A client and the agent it reached.
async fn begun(house: &mut House, mind: &Mind, run: &str) -> (Client, mpsc::Sender<Act>) {
    let (address, key, input) = (house.serving.address, house.key("person"), mind.input(run));
    let client = house.gateway.tasks.spawn(Client::open_owned(address, key, input));
    let (_, agent) = house.next().await;
    (client.await.unwrap(), agent)
}

#[tokio::test]
async fn who_was_cut_off_anywhere_ends_with_what_who_was_not_has() {
    let events = [vec![start()], talk(), vec![finish()]].concat();
    let mut never_cut = Mind::new();
    never_cut.hear(&events);
    assert_eq!(never_cut.ending, Ending::Finished);
    for (cut, back) in
        [(0, 1), (1, 2), (5, 9), (5, 15), (6, 6), (9, 10), (14, 15), (15, 18), (20, 21), (16, 22)]
    {
        let mut house = House::open(|_| {}).await;
        let mut mind = Mind::new();
        let (mut client, agent) = begun(&mut house, &mind, "r1").await;
        agent.send(Act::Send(frames(&events[..cut]))).await.unwrap();
        client.until(cut).await;
        mind.hear(&client.events);
        drop(client);
        agent.send(Act::Send(frames(&events[cut..back.min(events.len())]))).await.unwrap();
        if back >= events.len() {
            agent.send(Act::End).await.unwrap();
        }
        // The end is held back until nothing can follow it.
        let there = if back >= events.len() { back } else { back.min(events.len() - 1) };
        while house.records().await.len() < there.min(events.len()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let client = house.person(&mind.input("r2")).await;
        if back < events.len() {
            agent.send(Act::Send(frames(&events[back..]))).await.unwrap();
            agent.send(Act::End).await.unwrap();
        }
        let heard = client.whole().await;
        mind.hear(&heard);
        assert_eq!(mind.ending, Ending::Finished, "{cut} {back}");
        assert_eq!(json!(mind.messages), json!(never_cut.messages), "{cut} {back} {heard:#?}");
        assert_eq!(mind.state, never_cut.state, "{cut} {back}");
        assert_eq!(house.records().await.len(), events.len(), "nothing was run twice");
    }
}

/// A run of the thread after the first, with a card and a result that belongs before what came first.
fn second_run() -> Vec<Value> {
    vec![
        json!({ "type": "RUN_STARTED", "threadId": "t", "runId": "q1", "protocolVersion": "1.0" }),
        json!({ "type": "TOOL_CALL_START", "toolCallId": "c9", "toolCallName": "look" }),
        json!({ "type": "TOOL_CALL_END", "toolCallId": "c9" }),
        json!({ "type": "ACTIVITY_SNAPSHOT", "messageId": "a9", "activityType": "plan", "content": {} }),
        json!({ "type": "TOOL_CALL_RESULT", "messageId": "x9", "toolCallId": "c9", "content": "ok" }),
        json!({ "type": "RUN_FINISHED", "threadId": "t", "runId": "q1" }),
    ]
}

#[tokio::test]
async fn the_cards_of_earlier_runs_stay_where_they_are_for_who_comes_back() {
    let mut house = House::open(|_| {}).await;
    let mut mind = Mind::new();
    let (client, agent) = begun(&mut house, &mind, "r1").await;
    let first = [vec![start()], talk(), vec![finish()]].concat();
    agent.send(Act::Send(frames(&first))).await.unwrap();
    agent.send(Act::End).await.unwrap();
    mind.hear(&client.whole().await);
    mind.messages.push(json!({ "id": "u2", "role": "user", "content": "And now?" }));

    let second = second_run();
    let mut never_cut = mind.clone();
    never_cut.hear(&second);
    let (mut client, agent) = begun(&mut house, &mind, "q1").await;
    agent.send(Act::Send(frames(&second[..4]))).await.unwrap();
    client.until(4).await;
    mind.hear(&client.events);
    drop(client);
    agent.send(Act::Send(frames(&second[4..]))).await.unwrap();
    agent.send(Act::End).await.unwrap();
    mind.hear(&house.person(&mind.input("q2")).await.whole().await);
    assert_eq!(json!(mind.messages), json!(never_cut.messages));
    assert_eq!(mind.messages.iter().filter(|it| it["role"] == "activity").count(), 2);
}

#[tokio::test]
async fn an_agent_that_misbehaves_is_closed_with_the_reason() {
    for (name, acts, code) in [
        ("no end", vec![Act::Send(frames(&[start(), talk()[3].clone()])), Act::End], "truncated"),
        (
            "dies",
            vec![Act::Send(frames(&[start(), talk()[3].clone()])), Act::Die],
            "upstream-broken",
        ),
        (
            "half an event",
            vec![
                Act::Send(frames(&[start()])),
                Act::Send(b"data: {\"type\":\"TEX".to_vec()),
                Act::Die,
            ],
            "upstream-broken",
        ),
        ("silent", vec![Act::Send(frames(&[start(), talk()[3].clone()]))], "upstream-silent"),
        ("nothing", vec![Act::End], "truncated"),
    ] {
        let mut house = House::open(|upstream| upstream.idle = Duration::from_millis(400)).await;
        let mind = Mind::new();
        let (client, agent) = begun(&mut house, &mind, "r1").await;
        for act in acts {
            agent.send(act).await.unwrap();
        }
        let events = client.whole().await;
        let last = events.last().unwrap();
        assert_eq!((&last["type"], &last["code"]), (&json!("RUN_ERROR"), &json!(code)), "{name}");
        assert!(!last["message"].as_str().unwrap().is_empty());
        let mut mind = mind;
        mind.hear(&events);
        assert!(matches!(mind.ending, Ending::Failed { .. }), "{name}");
        let records = house.records().await;
        let told = records.iter().filter(|record| record.kind == Kind::Event).count();
        assert_eq!(told, events.len(), "{name}: all that was told is history");
    }
}

#[tokio::test]
async fn broken_events_are_repaired_refused_or_told_as_the_policy_says() {
    let broken = json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "ghost", "delta": "Boo." });
    for policy in [UpstreamPolicy::Repair, UpstreamPolicy::Strict, UpstreamPolicy::Report] {
        let mut house = House::open(|upstream| upstream.policy = policy).await;
        let mut mind = Mind::new();
        let (client, agent) = begun(&mut house, &mind, "r1").await;
        agent.send(Act::Send(frames(&[start(), broken.clone(), finish()]))).await.unwrap();
        agent.send(Act::End).await.unwrap();
        let events = client.whole().await;
        let records = house.records().await;
        let evidence: Vec<_> =
            records.iter().filter(|record| record.kind == Kind::Unreadable).collect();
        match policy {
            UpstreamPolicy::Repair => {
                mind.hear(&events);
                assert_eq!(mind.ending, Ending::Finished);
                assert_eq!(mind.messages[1]["content"], "Boo.");
            }
            UpstreamPolicy::Strict => {
                let last = events.last().unwrap();
                assert_eq!(last["code"], "upstream-protocol");
                assert!(last["message"].as_str().unwrap().contains("AGUI-SEQ-"), "{last}");
            }
            UpstreamPolicy::Report => assert_eq!(events, [start(), broken.clone(), finish()]),
        }
        if policy == UpstreamPolicy::Report {
            assert!(evidence.is_empty());
            assert_ne!(records[1].findings, Value::Null);
        } else {
            assert_eq!(evidence.len(), 1, "{policy:?}");
            assert_eq!(evidence[0].body, broken.to_string(), "kept as it came");
            assert_ne!(evidence[0].findings, Value::Null);
        }
    }
}

#[tokio::test]
async fn a_thread_has_one_run_and_somebody_new_supersedes_what_nobody_hears() {
    let mut house = House::open(|_| {}).await;
    let mut mind = Mind::new();
    let (mut client, agent) = begun(&mut house, &mind, "r1").await;
    agent.send(Act::Send(frames(&[start(), custom(1)]))).await.unwrap();
    client.until(2).await;
    let mut other = mind.clone();
    other.messages.push(json!({ "id": "u2", "role": "user", "content": "And?" }));
    let (status, problem) = house.person(&other.input("r2")).await.problem().await;
    assert_eq!((status, &problem["error"]["code"]), (409, &json!("busy")));
    // The same run twice at once is one run.
    let mut again = house.person(&mind.input("r1")).await;
    again.until(1).await;
    drop((client, again));
    tokio::time::sleep(Duration::from_millis(100)).await;

    let (client, next) = begun(&mut house, &other, "r2").await;
    drop(agent);
    let second =
        json!({ "type": "RUN_STARTED", "threadId": "t", "runId": "r2", "protocolVersion": "1.0" });
    let end = json!({ "type": "RUN_FINISHED", "threadId": "t", "runId": "r2" });
    next.send(Act::Send(frames(&[second.clone(), end.clone()]))).await.unwrap();
    next.send(Act::End).await.unwrap();
    assert_eq!(client.whole().await, [second, end]);
    mind.hear(&[start()]);
    let records = house.records().await;
    let codes: Vec<Value> = records
        .iter()
        .filter_map(|record| {
            serde_json::from_slice::<Value>(&record.body).ok()?.get("code").cloned()
        })
        .collect();
    assert_eq!(codes, [json!("superseded")]);
}

#[tokio::test]
async fn who_may_not_run_or_resume_is_told_so_and_so_is_who_names_nothing() {
    let house = House::open(|_| {}).await;
    let mind = Mind::new();
    let mut input = mind.input("r1");
    let issue =
        |name: &str, scopes: &[Scope]| house.gateway.keys.issue(name, scopes).unwrap().unwrap();
    let (watch, front) = (issue("w", &[Scope::Watch]), issue("f", &[Scope::Watch, Scope::Emit]));
    for key in [&house.key("agent"), &watch] {
        let (status, problem) = house.post(key, &input).await.problem().await;
        assert_eq!((status, &problem["error"]["code"]), (403, &json!("scope")));
    }
    input["resume"] = json!([{ "interruptId": "i", "status": "cancelled" }]);
    let (status, _) = house.post(&front, &input).await.problem().await;
    assert_eq!(status, 403);
    let (status, problem) = house.person(&json!({ "threadId": "t" })).await.problem().await;
    assert_eq!((status, &problem["error"]["code"]), (400, &json!("run-input")));
}

#[tokio::test]
async fn an_agent_that_is_not_there_is_a_bad_gateway() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let house = House::open(|it| it.address = format!("http://{closed}/x").parse().unwrap()).await;
    let (status, problem) = house.person(&Mind::new().input("r1")).await.problem().await;
    assert_eq!((status, &problem["error"]["code"]), (502, &json!("upstream")));
    assert!(house.records().await.is_empty());
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_a_page_is_no_run() {
    for (head, told) in [
        ("HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:9/\r\n", "307"),
        ("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n", "text/html"),
        ("HTTP/1.1 422 Unprocessable Content\r\n", "422"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let house = House::open(|upstream| {
            upstream.address = format!("http://{address}/").parse().unwrap();
            assert!(upstream.header("authorization", "Bearer sesame"));
        })
        .await;
        let mut agent = JoinSet::new();
        agent.spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            request_of(&mut stream).await.unwrap();
            let body = "{\"detail\": \"no such luck\"}";
            let text = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
            stream.write_all(text.as_bytes()).await.unwrap();
        });
        let (status, problem) = house.person(&Mind::new().input("r1")).await.problem().await;
        let message = problem["error"]["message"].as_str().unwrap();
        assert_eq!(status, 502);
        assert!(message.contains(told) && !message.contains("sesame"), "{message}");
        assert!(house.records().await.is_empty());
        // It is not remembered either: the next request asks again.
        assert!(matches!(
            house.gateway.upstreams.slot("agent", &Mind::new().input("r1")),
            RunSlot::Start(..)
        ));
    }
}

#[tokio::test]
async fn silence_is_broken_by_comments_and_a_revoked_key_ends_only_its_stream() {
    let mut house = House::open(|upstream| upstream.keep_alive = Duration::from_millis(100)).await;
    let reader = house.gateway.keys.issue("reader", &[Scope::Watch, Scope::Emit]).unwrap().unwrap();
    let mind = Mind::new();
    let (mut client, agent) = begun(&mut house, &mind, "r1").await;
    agent.send(Act::Send(frames(&[start()]))).await.unwrap();
    while client.comments < 3 {
        assert!(client.read().await);
    }
    let second = house.post(&reader, &mind.input("r1")).await;
    assert!(house.gateway.keys.revoke("reader").unwrap());
    let heard = second.whole().await;
    assert_eq!(heard.last().unwrap()["code"], "revoked");
    agent.send(Act::Send(frames(&[finish()]))).await.unwrap();
    // The connection stays open, and the run is over all the same.
    assert_eq!(client.whole().await, [start(), finish()]);
}

#[tokio::test]
async fn a_gateway_that_stops_ends_its_runs() {
    let mut house = House::open(|_| {}).await;
    let (mut client, agent) = begun(&mut house, &Mind::new(), "r1").await;
    agent.send(Act::Send(frames(&[start()]))).await.unwrap();
    client.until(1).await;
    drop(agent);
    let gateway = Arc::clone(&house.gateway);
    drop(house.asked);
    house.serving.stop().await;
    let events = client.whole().await;
    assert_eq!(events.last().unwrap()["type"], "RUN_ERROR");
    let session = session_of("agent", "t");
    let records = gateway.session_after(&session, 0).await.unwrap();
    let last: Value = serde_json::from_slice(&records.last().unwrap().body).unwrap();
    assert_eq!(last["type"], "RUN_ERROR", "the record has an end as well");
}

#[path = "upstream_tests/interrupts.rs"]
mod interrupts;
