use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use banister_events::check::Checker;
use banister_events::event::Protocol;
use banister_events::finding::Severity;

use super::*;
use crate::clock::Clock;
use crate::pipeline::Incoming as Payload;
use crate::serve::{self, Serving};
use crate::{Gateway, Settings};

struct House {
    _dir: tempfile::TempDir,
    gateway: Arc<Gateway>,
    serving: Serving,
    agent: String,
    person: String,
}

async fn house() -> House {
    let dir = tempfile::tempdir().unwrap();
    let gateway = Gateway::open(Settings::new(dir.path().join("data")), Clock::default()).unwrap();
    let listen: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let serving = serve::start(&gateway, listen, &dir.path().join("s")).await.unwrap();
    let key = |name| std::fs::read_to_string(gateway.keys.file(name)).unwrap().trim().to_owned();
    let (agent, person) = (key("agent.key"), key("person.key"));
    House { _dir: dir, gateway, serving, agent, person }
}

/// One subscriber.
struct Line {
    stream: UnixStream,
    messages: FrameReader,
}

impl Line {
    async fn open(house: &House) -> Self {
        let stream = UnixStream::connect(house.serving.aaep.as_ref().unwrap()).await.unwrap();
        let frames = length::Messages::new(1 << 24);
        Self { stream, messages: FrameReader { buffer: BytesMut::new(), frames } }
    }

    /// One that gave a key and has a subscription.
    async fn subscribed(house: &House) -> Self {
        let mut line = Self::open(house).await;
        line.say(&json!({ "type": AAEP_KEY, "key": house.person })).await;
        line.say(&request()).await;
        let accepted = line.next().await.unwrap();
        assert_eq!(accepted["type"], "subscription.accepted", "{accepted}");
        line
    }

    async fn say(&mut self, message: &Value) {
        let mut frame = Vec::new();
        length::write(&mut frame, message.to_string().as_bytes()).unwrap();
        self.stream.write_all(&frame).await.unwrap();
    }

    /// The next message; none at the end.
    async fn next(&mut self) -> Option<Value> {
        let next = self.messages.next(&mut self.stream);
        let bytes = timeout(Duration::from_secs(20), next).await.expect("in time")?;
        Some(serde_json::from_slice(&bytes).unwrap())
    }

    async fn until(&mut self, kind: &str) -> Value {
        loop {
            let message = self.next().await.expect("a message of this type");
            if message["type"] == kind {
                return message;
            }
        }
    }
}

fn request() -> Value {
    json!({
        "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "porch",
        "capabilities": { "languages": ["en"], "supports_confirmation_reply": true },
    })
}

fn push(command: &str) -> Payload {
    let payload = json!({
        "session_id": "one", "cwd": "/src", "tool_name": "Bash", "tool_use_id": "t1",
        "tool_input": { "command": command },
    });
    Payload::of_claude("PreToolUse", &payload)
}

#[tokio::test]
async fn a_subscriber_hears_and_answers_in_length_frames() {
    let house = house().await;
    let path = house.serving.aaep.clone().unwrap();
    assert!(path.ends_with("aaep/banister.sock"), "{}", path.display());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut line = Line::subscribed(&house).await;
    let accepted = house.gateway.accept(&push("git push")).await.unwrap();
    let desk = house.gateway.desk.clone();
    let waiting = house
        .gateway
        .tasks
        .spawn(async move { desk.decide(accepted.gate.as_ref(), accepted.ask.as_deref()).await });
    let mut heard = Vec::new();
    let token = loop {
        let event = line.next().await.unwrap();
        heard.push(event.clone());
        if let Some(token) = event["reply_token"].as_str() {
            break token.to_owned();
        }
    };
    let reply = json!({
        "type": "confirmation.reply", "reply_token": token, "decision": "accept",
        "subscription_id": "sub_any", "timestamp": jiff::Timestamp::to_string(&house.gateway.clock.now()),
    });
    line.say(&reply).await;
    let decided = timeout(Duration::from_secs(20), waiting).await.unwrap().unwrap();
    assert_eq!(decided.behavior, banister_events::aep::dialect::Behavior::Allow);
    heard.push(line.until("aaep:agent.state.changed").await);
    let mut checker = Checker::new(Protocol::Aaep);
    for event in &heard {
        let found = checker.value(event);
        assert!(found.iter().all(|it| it.rule.severity < Severity::Error), "{found:?}: {event}");
    }
    let records = house.gateway.journal.after(0, 100).unwrap();
    let answer = records.iter().find(|it| it.kind == banister_journal::Kind::Answer).unwrap();
    assert_eq!((answer.source.door.as_str(), answer.source.key.as_str()), ("aaep", "person"));
    house.serving.stop().await;
    let told = line.until("subscription.close").await;
    assert_eq!(told["reason_code"], "going_away");
    assert_eq!(line.next().await, None);
    assert!(!path.exists());
}

#[tokio::test]
async fn nobody_comes_in_without_a_key_that_may_watch() {
    let house = house().await;
    for (first, code) in [
        (request(), "authentication_required"),
        (json!({ "type": AAEP_KEY, "key": "no such key" }), "authentication_required"),
        (json!({ "type": "hello", "key": house.person }), "authentication_required"),
        (json!({ "type": AAEP_KEY, "key": house.agent }), "authorization_denied"),
        (json!([1]), "authentication_required"),
    ] {
        let mut line = Line::open(&house).await;
        line.say(&first).await;
        let told = line.next().await.unwrap();
        assert_eq!(told["type"], "subscription.rejected", "{first}");
        assert_eq!(told["reason_code"], code, "{first}");
        assert_eq!(line.next().await, None);
    }
    house.serving.stop().await;
}

#[tokio::test]
async fn what_is_no_message_ends_the_conversation_and_harms_nobody() {
    let house = house().await;
    let mut good = Line::subscribed(&house).await;
    for junk in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 64], &[0, 0, 0, 2, b'{', b'{'], &[0, 1, 0]]
    {
        let mut line = Line::open(&house).await;
        line.stream.write_all(junk).await.unwrap();
        line.stream.shutdown().await.unwrap();
        while line.next().await.is_some() {}
        let mut line = Line::subscribed(&house).await;
        line.stream.write_all(junk).await.unwrap();
        line.stream.shutdown().await.unwrap();
        while line.next().await.is_some() {}
    }
    house.gateway.accept(&push("git status")).await.unwrap();
    good.until("aaep:agent.tool.invoked").await;
    house.serving.stop().await;
}

#[tokio::test]
async fn a_subscription_is_changed_closed_and_refused_as_on_a_web_socket() {
    let house = house().await;
    let mut line = Line::open(&house).await;
    line.say(&json!({ "type": AAEP_KEY, "key": house.person })).await;
    line.say(&request()).await;
    let id = line.next().await.unwrap()["subscription_id"].clone();
    line.say(&json!({
        "type": "subscription.renegotiate", "subscription_id": id,
        "capabilities": { "max_events_per_second": 4 },
    }))
    .await;
    assert_eq!(line.next().await.unwrap()["type"], "subscription.accepted");
    line.say(&json!({ "type": "subscription.close", "subscription_id": id })).await;
    while let Some(message) = line.next().await {
        assert_eq!(message["type"], "subscription.close");
    }
    let mut other = Line::open(&house).await;
    other.say(&json!({ "type": AAEP_KEY, "key": house.person })).await;
    other.say(&json!({ "type": "subscription.request", "aaep_version": "2.0.0" })).await;
    let told = other.next().await.unwrap();
    assert_eq!(told["reason_code"], "version_unsupported");
    assert_eq!(other.next().await, None);
    house.serving.stop().await;
}
