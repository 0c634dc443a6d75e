use std::net::SocketAddr;
use std::time::Duration;

use banister_events::frame::sse;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Barrier;
use tokio::time::timeout;

use super::*;
use crate::clock::Clock;
use crate::ingest::{Push, Pusher};
use crate::{Gateway, Settings, serve};

/// Long enough for a machine that is busy.
const SOON: Duration = Duration::from_mins(2);
const SUBSCRIBERS: usize = 1_000;
const EVENTS: usize = 48;

/// A stream of server-sent events.
struct Ear {
    stream: TcpStream,
    parser: sse::Parser,
    raw: Vec<u8>,
    begun: bool,
}

impl Ear {
    async fn open(address: SocketAddr, key: &str, seen: Option<&str>) -> Self {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let seen = seen.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        let request = format!(
            "GET /aep/v0.1/events HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n{seen}\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut ear =
            Self { stream, parser: sse::Parser::new(1 << 20), raw: Vec::new(), begun: false };
        // Only who is connected misses nothing.
        while !String::from_utf8_lossy(&ear.raw).contains(": connected") {
            assert!(ear.stream.read_buf(&mut ear.raw).await.unwrap() > 0);
        }
        ear
    }

    /// The next event's id and number.
    async fn next(&mut self) -> (String, u64) {
        loop {
            self.feed();
            if let Some(message) = self.parser.next() {
                let event: Value = serde_json::from_str(&message.data).unwrap();
                if event["type"] == "prompt.submitted" {
                    let text = event["content"][0]["text"].as_str().unwrap().to_owned();
                    return (message.id.unwrap(), text.parse().unwrap());
                }
                continue;
            }
            let read = timeout(SOON, self.stream.read_buf(&mut self.raw)).await;
            assert!(read.expect("an event in time").unwrap() > 0, "the stream goes on");
        }
    }

    /// Takes the chunks that have arrived whole.
    fn feed(&mut self) {
        let whole = |raw: &[u8], end: &[u8]| raw.windows(end.len()).position(|at| at == end);
        if !self.begun {
            let Some(end) = whole(&self.raw, b"\r\n\r\n") else { return };
            assert!(
                self.raw.starts_with(b"HTTP/1.1 200 "),
                "{:?}",
                String::from_utf8_lossy(&self.raw)
            );
            self.raw.drain(..end + 4);
            self.begun = true;
        }
        while let Some(end) = whole(&self.raw, b"\r\n") {
            let length = std::str::from_utf8(&self.raw[..end]).unwrap();
            let length = usize::from_str_radix(length, 16).unwrap();
            if self.raw.len() < end + 2 + length + 2 {
                return;
            }
            self.parser.push(&self.raw[end + 2..end + 2 + length]).unwrap();
            self.raw.drain(..end + 2 + length + 2);
        }
    }
}

fn prompt(number: usize) -> Bytes {
    let event = json!({
        "aep_version": "0.1", "id": format!("evt_{number:026}"), "type": "prompt.submitted",
        "time": "2026-11-15T09:00:00.000Z", "agent": { "slug": "claude-code" },
        "session": { "id": format!("s{}", number % 7) }, "content": [{ "type": "prompt", "text": number.to_string() }],
    });
    Bytes::from(event.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_subscribers_get_every_event_once_whoever_stalls_or_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings::new(dir.path().join("data"));
    let gateway = Gateway::open(settings, Clock::default()).unwrap();
    let any = "127.0.0.1:0".parse().unwrap();
    let serving = serve::start(&gateway, any, &dir.path().join("s")).await.unwrap();
    let address = serving.address;
    let key = std::fs::read_to_string(dir.path().join("data/keys/person.key")).unwrap();
    let key: Arc<str> = key.trim().into();

    let connected = Arc::new(Barrier::new(SUBSCRIBERS + 1));
    let pushed = Arc::new(Barrier::new(2));
    let mut subscribers = tokio::task::JoinSet::new();
    for number in 0..SUBSCRIBERS {
        let (key, connected, pushed) =
            (Arc::clone(&key), Arc::clone(&connected), Arc::clone(&pushed));
        subscribers.spawn(async move {
            let mut ear = Ear::open(address, &key, None).await;
            connected.wait().await;
            if number == 0 {
                // One listens only when everything has been said.
                pushed.wait().await;
            }
            let mut heard = Vec::with_capacity(EVENTS);
            while heard.len() < EVENTS {
                let (id, event) = ear.next().await;
                heard.push(event);
                // Some are cut, here and there, and come back.
                if number % 10 == 1 && heard.len() % 16 == number / 10 % 16 {
                    drop(ear);
                    ear = Ear::open(address, &key, Some(&id)).await;
                }
            }
            heard
        });
    }
    timeout(SOON, connected.wait()).await.expect("all are connected");
    assert!(gateway.metrics().contains(&format!("banister_subscribers {SUBSCRIBERS}\n")));
    for first in (0..EVENTS).step_by(4) {
        let source = Pusher {
            protocol: Protocol::Aep,
            thread: None,
            door: "http",
            key: "agent".to_owned(),
            idempotency: None,
        };
        let push = Push {
            source,
            messages: (first..first + 4).map(|number| Ok(prompt(number))).collect(),
        };
        gateway.push(push).await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    pushed.wait().await;
    let all: Vec<u64> = (0..EVENTS as u64).collect();
    while let Some(heard) = timeout(SOON, subscribers.join_next()).await.expect("all in time") {
        assert_eq!(heard.unwrap(), all);
    }
    serving.stop().await;
}
