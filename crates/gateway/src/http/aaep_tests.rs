use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::Duration;

use banister_events::aaep::event::VERSION;
use banister_events::check::Checker;
use banister_events::event::{Protocol, time_text};
use banister_events::finding::Severity;
use banister_events::frame::sse;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::*;
use crate::admission::Accepted;
use crate::clock::Clock;
use crate::desk::Decided;
use crate::pipeline::Incoming;
use crate::serve::{self, Serving};
use crate::subscriptions::{mark, owner};
use crate::{Gateway, Settings};

/// Long enough for a machine that is busy.
const SOON: Duration = Duration::from_secs(20);

/// A gateway that listens, and its keys.
struct House {
    dir: tempfile::TempDir,
    gateway: Arc<Gateway>,
    serving: Serving,
    clock: Clock,
}

impl House {
    async fn open() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings::new(dir.path().join("data"));
        let clock = Clock::manual("2026-11-15T09:00:00Z".parse().unwrap());
        let gateway = Gateway::open(settings, clock.clone()).unwrap();
        let any = "127.0.0.1:0".parse().unwrap();
        let serving = serve::start(&gateway, any, &dir.path().join("s")).await.unwrap();
        Self { dir, gateway, serving, clock }
    }

    fn key(&self, name: &str) -> String {
        let path = self.dir.path().join(format!("data/keys/{name}.key"));
        std::fs::read_to_string(path).unwrap().trim().to_owned()
    }

    async fn send(&self, line: &str, key: Option<&str>, body: &str) -> Answer {
        let mut stream = request(self.serving.address, line, key, "", body).await;
        let mut bytes = Vec::new();
        timeout(SOON, stream.read_to_end(&mut bytes)).await.unwrap().unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer {
            status,
            head: head.to_owned(),
            body: serde_json::from_str(body).unwrap_or_default(),
        }
    }

    async fn post(&self, path: &str, key: &str, body: &Value) -> Answer {
        self.send(&format!("POST {path}"), Some(key), &body.to_string()).await
    }

    /// A subscription of the person's, by its id.
    async fn subscribed(&self, capabilities: &Value) -> String {
        let answer =
            self.post("/aaep/v1/subscriptions", &self.key("person"), &asking(capabilities)).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.body["subscription_id"].as_str().unwrap().to_owned()
    }

    async fn listen(&self, query: &str, key: &str, seen: Option<&str>) -> Ear {
        let seen = seen.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        let line = format!("GET /aaep/v1/events{query}");
        let stream = request(self.serving.address, &line, Some(key), &seen, "").await;
        Ear::on(stream).await
    }

    async fn follow(&self, subscription: &str, seen: Option<&str>) -> Ear {
        let query = format!("?subscription_id={subscription}");
        self.listen(&query, &self.key("person"), seen).await
    }

    async fn tell(&self, hook: &str, fields: Value) -> Accepted {
        let mut payload = json!({ "session_id": "one", "cwd": "/src", "hook_event_name": hook });
        payload.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let incoming = Incoming::of_claude(hook, &payload);
        self.gateway.accept(&incoming).await.unwrap()
    }

    async fn prompt(&self) {
        self.tell("UserPromptSubmit", json!({ "prompt": "Go." })).await;
    }

    async fn stop(&self) {
        self.tell("Stop", json!({ "last_assistant_message": "Done." })).await;
    }

    /// An agent wants something that a person decides about; what it is told in the end.
    async fn ask(&self) -> tokio::task::JoinHandle<Decided> {
        let call = json!({
            "tool_name": "Bash", "tool_use_id": "toolu_1",
            "tool_input": { "command": "git push --force origin main" },
        });
        let accepted = self.tell("PreToolUse", call).await;
        let gateway = Arc::clone(&self.gateway);
        self.gateway.tasks.spawn(async move {
            gateway.desk.decide(accepted.gate.as_ref(), accepted.ask.as_deref()).await
        })
    }

    fn reply(&self, token: &str, decision: &str) -> Value {
        json!({
            "type": "confirmation.reply", "reply_token": token, "decision": decision,
            "subscription_id": "sub_1", "timestamp": time_text(self.clock.now()),
        })
    }
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: Value,
}

/// A stream of server-sent events, as it comes.
struct Ear {
    stream: TcpStream,
    parser: sse::Parser,
    raw: Vec<u8>,
    begun: bool,
    connected: bool,
}

/// The id, the name and the data of a frame.
#[derive(Debug)]
struct Heard {
    id: String,
    name: String,
    data: Value,
}

impl Ear {
    /// A stream that has said that it is connected: from then on it misses nothing.
    async fn on(stream: TcpStream) -> Self {
        let parser = sse::Parser::new(1 << 20);
        let mut ear = Self { stream, parser, raw: Vec::new(), begun: false, connected: false };
        while !ear.connected {
            let read = timeout(SOON, ear.stream.read_buf(&mut ear.raw)).await.unwrap().unwrap();
            assert!(read > 0, "the stream goes on");
            ear.feed();
        }
        ear
    }

    /// The next message; `None` where the stream ends.
    async fn next(&mut self) -> Option<Heard> {
        loop {
            if let Some(message) = self.parser.next() {
                return Some(Heard {
                    id: message.id.unwrap_or_default(),
                    name: message.event.unwrap_or_default(),
                    data: serde_json::from_str(&message.data).unwrap(),
                });
            }
            if timeout(SOON, self.stream.read_buf(&mut self.raw)).await.unwrap().unwrap_or(0) == 0 {
                return None;
            }
            self.feed();
        }
    }

    async fn event(&mut self) -> Heard {
        let heard = self.next().await.expect("the stream goes on");
        assert_eq!(heard.name, "aaep.event", "{heard:?}");
        heard
    }

    /// Messages up to the one of a type.
    async fn until(&mut self, kind: &str) -> Vec<Heard> {
        let mut all = Vec::new();
        loop {
            all.push(self.next().await.expect("the stream goes on"));
            if all.last().unwrap().data["type"] == kind {
                return all;
            }
        }
    }

    /// Whether nothing comes for a while in which something held back would have come.
    async fn is_silent(&mut self) -> bool {
        timeout(Duration::from_millis(700), self.next()).await.is_err()
    }

    /// Takes the chunks that are whole out of what was read.
    fn feed(&mut self) {
        if !self.begun {
            let Some(at) = self.raw.windows(4).position(|four| four == b"\r\n\r\n") else { return };
            let head = String::from_utf8(self.raw.drain(..at + 4).collect()).unwrap();
            assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
            self.begun = true;
        }
        while let Some(end) = self.raw.windows(2).position(|two| two == b"\r\n") {
            let size = std::str::from_utf8(&self.raw[..end]).unwrap();
            let size = usize::from_str_radix(size, 16).unwrap();
            if self.raw.len() < end + 2 + size + 2 {
                return;
            }
            self.parser.push(&self.raw[end + 2..end + 2 + size]).unwrap();
            self.raw.drain(..end + 2 + size + 2);
            self.connected = true;
        }
    }
}

async fn request(
    address: SocketAddr,
    line: &str,
    key: Option<&str>,
    more: &str,
    body: &str,
) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let key = key.map(|key| format!("Authorization: Bearer {key}\r\n")).unwrap_or_default();
    let (port, length) = (address.port(), body.len());
    let text = format!(
        "{line} HTTP/1.1\r\nHost: localhost:{port}\r\n{key}{more}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

fn asking(capabilities: &Value) -> Value {
    json!({
        "type": "subscription.request", "aaep_version": VERSION, "subscriber_id": "reader",
        "capabilities": capabilities,
    })
}

fn is_legal(events: &[Heard]) {
    let mut checker = Checker::new(Protocol::Aaep);
    for heard in events {
        let findings = checker.value(&heard.data);
        let errors: Vec<_> =
            findings.iter().filter(|it| it.rule.severity >= Severity::Error).collect();
        assert!(errors.is_empty(), "{errors:?}: {heard:?}");
    }
}

fn kinds(events: &[Heard]) -> Vec<&str> {
    events.iter().map(|it| it.data["type"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn terms_are_honoured_and_never_above_what_was_asked() {
    let house = House::open().await;
    let wanted = json!({
        "max_events_per_second": 1, "languages": ["tlh", "es-MX"], "preferred_verbosity": "terse",
        "supports_confirmation_reply": true, "coalesce_boundaries": ["completion"],
        "event_filters": { "exclude": ["aaep:agent.output.*"] }, "acme": { "cues": true },
    });
    let answer = house.post("/aaep/v1/subscriptions", &house.key("person"), &asking(&wanted)).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let id = answer.body["subscription_id"].as_str().unwrap();
    let place = format!("location: /aaep/v1/events?subscription_id={id}");
    assert!(answer.head.contains(&place), "{}", answer.head);
    let honoured = &answer.body["honored_capabilities"];
    assert_eq!(honoured["max_events_per_second"], 1);
    assert_eq!(honoured["languages"], json!(["es-MX"]));
    assert_eq!(honoured["supports_confirmation_reply"], true);
    assert_eq!(honoured["supports_clarification_reply"], false);
    assert_eq!(honoured["coalesce_boundaries"], json!(["completion"]));
    assert!(answer.body["negotiation_notes"].as_str().unwrap().contains("language"));
    assert!(answer.body.get("signed_manifest").is_none(), "nobody asked for it");

    let mut ear = house.follow(id, None).await;
    house.prompt().await;
    let mut events = vec![ear.event().await];
    assert_eq!(events[0].data["localization_hints"]["primary_language"], "es");
    assert_eq!(events[0].data["verbosity"], "terse");
    house.stop().await;
    assert!(ear.is_silent().await, "one event a second, and no second has passed");
    for _ in 0..9 {
        house.clock.advance(Duration::from_secs(1));
        let heard = ear.event().await;
        let ended = heard.data["type"] == "aaep:agent.session.completed";
        events.push(heard);
        if ended {
            break;
        }
    }
    is_legal(&events);
    assert_eq!(*kinds(&events).last().unwrap(), "aaep:agent.session.completed");
    assert!(!kinds(&events).contains(&"aaep:agent.output.streaming"), "it is filtered out");
}

#[tokio::test]
async fn a_refusal_names_its_reason() {
    let house = House::open().await;
    let person = house.key("person");
    let agent = house.key("agent");
    let old = json!({
        "type": "subscription.request", "aaep_version": "99.0.0", "subscriber_id": "reader",
        "capabilities": {},
    });
    let nothing = asking(&json!({ "event_filters": { "include": ["acme:*"] } }));
    let broken = asking(&json!({ "max_events_per_second": "many" }));
    let other = json!({ "type": "subscription.close", "subscription_id": "sub_1",
        "reason_code": "x", "reason_message": "y" });
    let good = asking(&json!({}));
    for (key, body, status, code) in [
        (None, good.to_string(), 401, "authentication_required"),
        (Some("bk_wrong"), good.to_string(), 401, "authentication_required"),
        (Some(agent.as_str()), good.to_string(), 403, "authorization_denied"),
        (Some(&person), old.to_string(), 409, "version_unsupported"),
        (Some(&person), nothing.to_string(), 409, "capabilities_incompatible"),
        (Some(&person), broken.to_string(), 400, "unknown"),
        (Some(&person), other.to_string(), 400, "unknown"),
        (Some(&person), "{".to_owned(), 400, "unknown"),
    ] {
        let answer = house.send("POST /aaep/v1/subscriptions", key, &body).await;
        assert_eq!((answer.status, &answer.body["reason_code"]), (status, &json!(code)), "{body}");
        let findings = banister_events::check::value(Protocol::Aaep, &answer.body);
        assert_eq!(findings, [], "{answer:?}");
    }
    // Somebody takes as many as one key may have.
    let guest = house.gateway.keys.guest(&person).unwrap();
    while house.gateway.subscribe(&guest, &good).is_ok() {}
    let answer = house.post("/aaep/v1/subscriptions", &person, &good).await;
    assert_eq!((answer.status, &answer.body["reason_code"]), (429, &json!("rate_limit")));
    assert!(answer.head.contains("retry-after: 60"), "{}", answer.head);
    // Nobody follows them: they are gone after a while.
    house.clock.advance(Duration::from_mins(2));
    house.gateway.sweep_subscriptions().await;
    house.subscribed(&json!({})).await;
}

#[tokio::test]
async fn another_keys_subscription_and_cursor_are_refused() {
    let house = House::open().await;
    let id = house.subscribed(&json!({})).await;
    let other = house.gateway.keys.issue("other", &[Scope::Watch]).unwrap().unwrap();
    let place = format!("/aaep/v1/events?subscription_id={id}");
    assert_eq!(house.send(&format!("GET {place}"), Some(&other), "").await.status, 403);
    let named = format!("/aaep/v1/subscriptions/{id}");
    assert_eq!(house.send(&format!("DELETE {named}"), Some(&other), "").await.status, 403);
    let change = json!({ "capabilities": { "max_events_per_second": 1 } }).to_string();
    let answer = house.send(&format!("PATCH {named}"), Some(&other), &change).await;
    assert_eq!((answer.status, &answer.body["reason_code"]), (403, &json!("authorization_denied")));
    let close = json!({ "type": "subscription.close", "subscription_id": id,
        "reason_code": "x", "reason_message": "y" });
    assert_eq!(house.post("/aaep/v1/replies", &other, &close).await.status, 403);

    let mut ear = house.follow(&id, None).await;
    house.prompt().await;
    let seen = ear.event().await.id;
    let made = house.post("/aaep/v1/subscriptions", &other, &asking(&json!({}))).await;
    let theirs = made.body["subscription_id"].as_str().unwrap();
    // Cursors once said whose they are. The id of an event is the same for everybody who may watch.
    let person = house.gateway.keys.guest(&house.key("person")).unwrap();
    let cursor = format!("{}.1.0.{}", house.gateway.journal.epoch(), mark(&owner(&person)));
    for stream in [format!("?subscription_id={theirs}"), String::new()] {
        let line = format!("GET /aaep/v1/events{stream}");
        let more = format!("Last-Event-ID: {cursor}\r\n");
        let mut stream = request(house.serving.address, &line, Some(&other), &more, "").await;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.starts_with("HTTP/1.1 403 ") && text.contains("\"cursor\""), "{text}");
    }
    for seen in [&seen, &cursor] {
        let mut ear = house.follow(&id, Some(seen)).await;
        assert_eq!(ear.event().await.data["sequence_number"], 1, "{seen}");
    }
    let query = format!("?subscription_id={theirs}");
    let mut ear = house.listen(&query, &other, Some(&seen)).await;
    assert_eq!(ear.event().await.data["sequence_number"], 1);
    assert_eq!(
        house.send("GET /aaep/v1/events?subscription=sub_none", Some(&other), "").await.status,
        404
    );
}

#[tokio::test]
async fn the_first_reply_wins_and_a_late_one_is_told() {
    let house = House::open().await;
    let person = house.key("person");
    let id = house.subscribed(&json!({ "supports_confirmation_reply": true })).await;
    let mut ear = house.follow(&id, None).await;
    house.prompt().await;
    let waiting = house.ask().await;
    let events = ear.until("aaep:agent.awaiting.confirmation").await;
    let token = events.last().unwrap().data["reply_token"].as_str().unwrap().to_owned();

    let watcher = house.gateway.keys.issue("watcher", &[Scope::Watch]).unwrap().unwrap();
    let agent = house.key("agent");
    for key in [&watcher, &agent] {
        let answer = house.post("/aaep/v1/replies", key, &house.reply(&token, "accept")).await;
        assert_eq!(answer.status, 403, "an agent and a watcher may not answer");
    }
    assert_eq!(house.send("POST /aaep/v1/replies", None, "{}").await.status, 401);
    let mut early = house.reply(&token, "accept");
    early["timestamp"] = json!("2026-11-15T08:00:00Z");
    let mut worded = house.reply(&token, "accept");
    worded["type"] = json!("clarification.reply");
    worded["response"] = json!("yes");
    worded.as_object_mut().unwrap().remove("decision");
    for ignored in [house.reply("rpl_guessed", "accept"), early, worded] {
        let answer = house.post("/aaep/v1/replies", &person, &ignored).await;
        let message = &answer.body["error"]["message"];
        assert_eq!((answer.status, message), (422, &json!("this reply does not count")));
    }
    assert!(!waiting.is_finished());

    let first = house.post("/aaep/v1/replies", &person, &house.reply(&token, "reject")).await;
    assert_eq!(first.status, 204, "{first:?}");
    let second = house.post("/aaep/v1/replies", &person, &house.reply(&token, "accept")).await;
    assert_eq!((second.status, &second.body["error"]["code"]), (409, &json!("late")));
    let decided = timeout(SOON, waiting).await.unwrap().unwrap();
    assert_eq!(decided.message, "Rejected by the user.");
    let told = ear.event().await;
    assert_eq!(told.data["type"], "aaep:agent.state.changed", "nobody is left in silence");
}

#[tokio::test]
async fn a_yes_to_something_else_is_a_no() {
    let house = House::open().await;
    house.prompt().await;
    let waiting = house.ask().await;
    let token = house.gateway.desk.inbox()[0].ask.token.clone();
    let mut reply = house.reply(&token, "accept");
    reply["modified_action"] = json!({ "command": "git push" });
    let answer = house.post("/aaep/v1/replies", &house.key("person"), &reply).await;
    assert_eq!(answer.status, 204);
    assert_eq!(timeout(SOON, waiting).await.unwrap().unwrap().message, "Rejected by the user.");
}

#[tokio::test]
async fn what_waits_on_one_subscriber_alone_gets_its_default_when_that_one_goes() {
    let house = House::open().await;
    let alone =
        json!({ "supports_confirmation_reply": true, "banister": { "sole_answerer": true } });
    let id = house.subscribed(&alone).await;
    let ordinary = house.subscribed(&json!({ "supports_confirmation_reply": true })).await;
    house.prompt().await;
    let waiting = house.ask().await;
    let close = |id: &str| format!("DELETE /aaep/v1/subscriptions/{id}");
    let person = house.key("person");
    assert_eq!(house.send(&close(&ordinary), Some(&person), "").await.status, 204);
    assert!(!waiting.is_finished(), "the person can still answer elsewhere");
    assert_eq!(house.send(&close(&id), Some(&person), "").await.status, 204);
    let decided = timeout(SOON, waiting).await.unwrap().unwrap();
    assert!(decided.message.contains("Nobody answered in time"), "{decided:?}");
}

#[tokio::test]
async fn other_terms_are_answered_twice_and_hold_from_then_on() {
    let house = House::open().await;
    let person = house.key("person");
    let id = house.subscribed(&json!({ "languages": ["en"] })).await;
    let mut ear = house.follow(&id, None).await;
    house.prompt().await;
    ear.event().await;
    let named = format!("/aaep/v1/subscriptions/{id}");
    let change = json!({ "capabilities": { "languages": ["ja"] } }).to_string();
    let answer = house.send(&format!("PATCH {named}"), Some(&person), &change).await;
    assert_eq!((answer.status, &answer.body["type"]), (200, &json!("subscription.accepted")));
    let told = ear.until("subscription.accepted").await;
    assert_eq!(told.last().unwrap().name, "aaep.control");
    assert_eq!(told.last().unwrap().data, answer.body);
    house.stop().await;
    let rest = ear.until("aaep:agent.session.completed").await;
    let spoken = &rest.last().unwrap().data["localization_hints"]["primary_language"];
    assert_eq!(spoken, "ja");

    let change = json!({ "capabilities": { "max_events_per_second": 0 } }).to_string();
    let answer = house.send(&format!("PATCH {named}"), Some(&person), &change).await;
    assert_eq!((answer.status, &answer.body["reason_code"]), (400, &json!("unknown")));
    let last = ear.next().await.unwrap();
    assert_eq!(last.data["type"], "subscription.rejected");
    assert!(ear.next().await.is_none(), "a rejection ends the subscription");
    assert_eq!(house.send(&format!("DELETE {named}"), Some(&person), "").await.status, 404);
}

#[tokio::test]
async fn whoever_comes_back_goes_on_where_it_was() {
    let house = House::open().await;
    let id = house.subscribed(&json!({})).await;
    let mut ear = house.follow(&id, None).await;
    house.prompt().await;
    let first = ear.event().await;
    drop(ear);
    house.stop().await;
    let mut ear = house.follow(&id, Some(&first.id)).await;
    let mut events = vec![first];
    events.extend(ear.until("aaep:agent.session.completed").await);
    is_legal(&events);
    let ids: HashSet<String> = events.iter().map(|it| it.data["event_id"].to_string()).collect();
    assert_eq!(ids.len(), events.len(), "nothing comes twice");
    let numbers: Vec<u64> =
        events.iter().map(|it| it.data["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>(), "nothing is missing");
}

#[tokio::test]
async fn what_was_held_back_is_not_lost_by_a_cut() {
    let house = House::open().await;
    let id = house.subscribed(&json!({ "max_events_per_second": 1 })).await;
    let mut ear = house.follow(&id, None).await;
    house.prompt().await;
    house.stop().await;
    let first = ear.event().await;
    assert!(ear.is_silent().await, "the rest is held back");
    drop(ear);
    let mut ear = house.follow(&id, Some(&first.id)).await;
    let mut events = Vec::new();
    for _ in 0..9 {
        let heard = ear.event().await;
        let ended = heard.data["type"] == "aaep:agent.session.completed";
        events.push(heard);
        if ended {
            break;
        }
        house.clock.advance(Duration::from_secs(1));
    }
    assert!(kinds(&events).contains(&"aaep:agent.output.streaming"), "{:?}", kinds(&events));
    assert_eq!(*kinds(&events).last().unwrap(), "aaep:agent.session.completed");
}

/// What overtakes something that is held back is not what a subscriber resumes from.
#[tokio::test]
async fn what_was_overtaken_is_not_lost_by_a_cut() {
    let house = House::open().await;
    let id = house.subscribed(&json!({ "max_events_per_second": 1 })).await;
    let mut ear = house.follow(&id, None).await;
    house.prompt().await;
    let first = ear.event().await;
    assert_eq!(first.data["event_id"], first.id.as_str());
    assert_eq!(ear.parser.last_id(), Some(first.id.as_str()), "nothing was overtaken");
    // The end of a turn in one session is held back; a question in another one is not.
    house.stop().await;
    let call = json!({
        "session_id": "two", "tool_name": "Bash", "tool_use_id": "toolu_1",
        "tool_input": { "command": "git push --force origin main" },
    });
    house.tell("PreToolUse", call).await;
    let asked = ear.until("aaep:agent.awaiting.confirmation").await;
    let question = asked.last().unwrap();
    assert_eq!(question.data["event_id"], question.id.as_str());
    assert!(!kinds(&asked).contains(&"aaep:agent.session.completed"), "{:?}", kinds(&asked));
    let safe = ear.parser.last_id().unwrap().to_owned();
    assert_ne!(safe, question.id);
    drop(ear);
    let mut ear = house.follow(&id, Some(&safe)).await;
    let mut events = Vec::new();
    for _ in 0..19 {
        let heard = ear.event().await;
        let ended = heard.data["type"] == "aaep:agent.session.completed";
        events.push(heard);
        if ended {
            break;
        }
        house.clock.advance(Duration::from_secs(1));
    }
    assert_eq!(*kinds(&events).last().unwrap(), "aaep:agent.session.completed");
    assert!(kinds(&events).contains(&"aaep:agent.output.streaming"), "{:?}", kinds(&events));
}

#[tokio::test]
async fn who_comes_late_is_told_what_is_going_on_and_no_more() {
    let house = House::open().await;
    house.prompt().await;
    house.stop().await;
    house.prompt().await;
    let _waiting = house.ask().await;
    let id = house.subscribed(&json!({})).await;
    let mut ear = house.follow(&id, None).await;
    let events = ear.until("aaep:agent.awaiting.confirmation").await;
    is_legal(&events);
    assert_eq!(kinds(&events)[0], "aaep:agent.session.started");
    let starts = kinds(&events).iter().filter(|it| it.ends_with("started")).count();
    assert_eq!(starts, 1, "the turn that is over is not told");
    for foreign in ["other.1.0.none", "evt_0123", "evt_0123456789abcdef0123456789abcdef", "no id"] {
        let mut all = house.follow(&id, Some(foreign)).await;
        let again = all.until("aaep:agent.awaiting.confirmation").await;
        assert_eq!(kinds(&again), kinds(&events), "a foreign id brings what is going on");
    }
}

#[tokio::test]
async fn a_subscriber_that_reads_nothing_holds_up_nobody_and_misses_nothing() {
    const TURNS: usize = 400;
    let house = House::open().await;
    let (one, two) = (house.subscribed(&json!({})).await, house.subscribed(&json!({})).await);
    let mut stalled = house.follow(&one, None).await;
    let mut quick = house.follow(&two, None).await;
    for _ in 0..TURNS {
        house.prompt().await;
        house.stop().await;
    }
    for ear in [&mut quick, &mut stalled] {
        let mut ends = 0;
        let mut ids = HashSet::new();
        while ends < TURNS {
            let heard = ear.event().await;
            assert!(ids.insert(heard.data["event_id"].to_string()), "{heard:?} came twice");
            ends += usize::from(heard.data["type"] == "aaep:agent.session.completed");
        }
    }
}

#[tokio::test]
async fn a_revoked_key_ends_its_streams_and_nobody_elses() {
    let house = House::open().await;
    let reader = house.gateway.keys.issue("reader", &[Scope::Watch]).unwrap().unwrap();
    let made = house.post("/aaep/v1/subscriptions", &reader, &asking(&json!({}))).await;
    let id = made.body["subscription_id"].as_str().unwrap().to_owned();
    let mut shaped = house.listen(&format!("?subscription_id={id}"), &reader, None).await;
    let mut plain = house.listen("", &reader, None).await;
    let mut mine = house.listen("", &house.key("person"), None).await;
    house.prompt().await;
    for ear in [&mut shaped, &mut plain, &mut mine] {
        ear.event().await;
    }
    let agent = house.send("DELETE /api/keys/reader", Some(&house.key("agent")), "").await;
    assert_eq!(agent.status, 403);
    let done = house.send("DELETE /api/keys/reader", Some(&house.key("person")), "").await;
    assert_eq!(done.status, 204);
    while shaped.next().await.is_some() {}
    while plain.next().await.is_some() {}
    house.stop().await;
    mine.until("aaep:agent.session.completed").await;
    let answer = house.send("GET /aaep/v1/events", Some(&reader), "").await;
    assert_eq!(answer.status, 401);
}

#[tokio::test]
async fn the_newest_connection_follows_a_subscription_and_a_close_ends_it() {
    let house = House::open().await;
    let id = house.subscribed(&json!({})).await;
    let mut first = house.follow(&id, None).await;
    house.prompt().await;
    first.event().await;
    let mut second = house.follow(&id, None).await;
    second.event().await;
    while first.next().await.is_some() {}
    let close = json!({ "type": "subscription.close", "subscription_id": id,
        "reason_code": "subscriber_shutdown", "reason_message": "Bye." });
    assert_eq!(house.post("/aaep/v1/replies", &house.key("person"), &close).await.status, 204);
    let told = second.until("subscription.close").await;
    assert_eq!(told.last().unwrap().name, "aaep.control");
    assert!(second.next().await.is_none());
}

#[tokio::test]
async fn the_suites_doors_are_shut_until_they_are_opened() {
    let house = House::open().await;
    let start = json!({ "kind": "user_input", "text": "Hello" }).to_string();
    assert_eq!(house.send("POST /aaep/v1/messages", None, &start).await.status, 404);
    assert_eq!(house.send("GET /aaep/v1/events", None, "").await.status, 401);
    house.gateway.open_to_suite();
    let line = "GET /aaep/v1/events";
    let stream = request(house.serving.address, line, None, "", "").await;
    let mut ear = Ear::on(stream).await;
    assert_eq!(house.send("POST /aaep/v1/messages", None, &start).await.status, 202);
    let ack = ear.next().await.unwrap();
    assert_eq!(ack.name, "aaep.control");
    let events = ear.until("aaep:agent.session.completed").await;
    is_legal(&events);
    assert!(events.iter().all(|it| it.data["session_id"] == ack.data["session_id"]));
    assert_eq!(house.send("GET /api/inbox", None, "").await.status, 401, "no other door is open");
}

#[tokio::test]
async fn a_question_takes_the_kind_of_answer_that_it_asks_for() {
    let house = House::open().await;
    house.gateway.open_to_suite();
    let person = house.key("person");
    let id = house.subscribed(&json!({ "supports_clarification_reply": true })).await;
    let mut ear = house.follow(&id, None).await;
    let unheard = request(house.serving.address, "GET /aaep/v1/events", None, "", "").await;
    let start = json!({ "kind": "user_input", "text": "Ask me where I am first." }).to_string();
    assert_eq!(house.send("POST /aaep/v1/messages", None, &start).await.status, 202);
    let asked = ear.until("aaep:agent.awaiting.clarification").await;
    let token = asked.last().unwrap().data["reply_token"].as_str().unwrap();
    let mut reply = house.reply(token, "accept");
    assert_eq!(house.post("/aaep/v1/replies", &person, &reply).await.status, 422, "no yes or no");
    reply["type"] = json!("clarification.reply");
    reply.as_object_mut().unwrap().remove("decision");
    for (response, status) in [(json!(7), 422), (json!(""), 422), (json!("Lagos"), 204)] {
        reply["response"] = response;
        let answer = house.post("/aaep/v1/replies", &person, &reply).await;
        assert_eq!(answer.status, status, "{reply}");
    }
    let rest = ear.until("aaep:agent.session.completed").await;
    assert!(kinds(&rest).contains(&"aaep:agent.output.streaming"), "it goes on with the answer");
    drop(unheard);
}

#[tokio::test]
async fn a_cut_that_is_mended_refuses_nothing_and_one_that_is_not_does() {
    let house = House::open().await;
    let alone =
        json!({ "supports_confirmation_reply": true, "banister": { "sole_answerer": true } });
    let id = house.subscribed(&alone).await;
    let ear = house.follow(&id, None).await;
    house.prompt().await;
    let waiting = house.ask().await;
    drop(ear);
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    house.clock.advance(Duration::from_secs(10));
    let ear = house.follow(&id, None).await;
    house.clock.advance(Duration::from_secs(10));
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert!(!waiting.is_finished());
    drop(ear);
    // How soon the cut is noticed is up to the machine; the ask's own time is five minutes.
    for _ in 0..100 {
        if waiting.is_finished() {
            break;
        }
        house.clock.advance(Duration::from_secs(1));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let decided = timeout(SOON, waiting).await.unwrap().unwrap();
    assert!(decided.message.contains("Nobody answered in time"), "{decided:?}");
}
