//! `kill -9` again and again while programs push: what was acknowledged is there once and in its order, and a follower
//! that came back each time was told everything once.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::Gateway;

/// How many kills, and how many events are acknowledged in all; the full tier sets both.
fn size() -> (u64, u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse().ok());
    let kills = number("BANISTER_KILLS").unwrap_or(5);
    (kills, number("BANISTER_KILL_EVENTS").unwrap_or(10_000))
}

/// Numbers that look random and are the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % most
    }
}

/// A program that pushes: its protocol, its door, and how many events it sends at once.
#[derive(Clone, Copy)]
struct Pusher {
    name: &'static str,
    protocol: &'static str,
    over_tcp: bool,
    batch: u64,
}

const PUSHERS: [Pusher; 4] = [
    Pusher { name: "w0", protocol: "aep", over_tcp: true, batch: 64 },
    Pusher { name: "w1", protocol: "aep", over_tcp: false, batch: 1 },
    Pusher { name: "w2", protocol: "agui", over_tcp: true, batch: 48 },
    Pusher { name: "w3", protocol: "agui", over_tcp: false, batch: 3 },
];

impl Pusher {
    fn path(self) -> String {
        match self.protocol {
            "aep" => "/aep/v0.1/events".to_owned(),
            _ => format!("/agui/threads/{}/events", self.name),
        }
    }

    /// Its event with this number. AG-UI's have no ids: they are known again by the name of the push.
    fn event(self, n: u64) -> Value {
        let text = format!("<{}:{n}>", self.name);
        if self.protocol == "aep" {
            return json!({
                "aep_version": "0.1", "id": format!("{}-{n}", self.name), "type": "prompt.submitted",
                "time": "2026-11-15T09:00:00.000Z", "agent": { "slug": "finch" },
                "session": { "id": self.name }, "content": [{ "type": "prompt", "text": text }],
            });
        }
        let message = format!("m{}", n / 3);
        match n % 3 {
            0 => json!({
                "type": "TEXT_MESSAGE_START", "messageId": message, "role": "assistant", "timestamp": n,
            }),
            1 => json!({
                "type": "TEXT_MESSAGE_CONTENT", "messageId": message, "delta": text, "timestamp": n,
            }),
            _ => json!({ "type": "TEXT_MESSAGE_END", "messageId": message, "timestamp": n }),
        }
    }

    /// The number of the event in a record's body, and whose it is.
    fn of(record: &Value) -> (&'static str, u64) {
        let body = record["body"].as_str().unwrap();
        let event: Value = serde_json::from_str(body).unwrap();
        let agui = event["timestamp"].as_u64();
        let id = event["id"].as_str().unwrap_or_default();
        let (name, number) = match (agui, id.split_once('-')) {
            (None, Some((name, number))) => (name, number.parse().unwrap()),
            // Pushes of AG-UI are named after their pusher.
            (Some(number), _) => {
                (record["event_id"].as_str().unwrap().split('-').next().unwrap(), number)
            }
            _ => panic!("nobody pushed {record}"),
        };
        let pusher = PUSHERS.iter().find(|pusher| pusher.name == name).unwrap();
        assert_eq!(event, pusher.event(number), "other bytes than were sent");
        (pusher.name, number)
    }

    /// The numbers of its first events that have a text in them: they can be told from what a follower hears.
    fn texts(self, count: usize) -> Vec<u64> {
        (0..count as u64).filter(|n| self.protocol == "aep" || n % 3 == 1).collect()
    }

    /// Sends until enough is acknowledged; the same again under the same ids until it is. Gives how many it sent, and
    /// where it was told they are.
    fn run(self, data: &Path, key: &str, total: &AtomicU64, wanted: u64) -> Vec<(u64, u64)> {
        let mut told = Vec::new();
        let mut wire: Option<Wire> = None;
        while total.load(Ordering::SeqCst) < wanted {
            let first = told.len() as u64;
            let events: Vec<Value> = (first..first + self.batch).map(|n| self.event(n)).collect();
            let body = match &events[..] {
                [single] => single.to_string(),
                several => json!(several).to_string(),
            };
            let results = loop {
                let answer =
                    wire.take().or_else(|| Wire::connect(data, self.over_tcp)).and_then(|wire| {
                        wire.post(&self.path(), key, &format!("{}-{first}", self.name), &body)
                    });
                match answer {
                    Some((kept, status, answer)) => {
                        assert_eq!(status, 200, "{answer}");
                        wire = Some(kept);
                        break answer["results"].as_array().unwrap().clone();
                    }
                    None => std::thread::sleep(Duration::from_millis(5)),
                }
            };
            assert_eq!(results.len() as u64, self.batch);
            for (n, result) in (first..).zip(&results) {
                let status = result["status"].as_str().unwrap();
                assert!(status == "recorded" || status == "duplicate", "{result}");
                told.push((n, result["position"].as_u64().unwrap()));
            }
            total.fetch_add(self.batch, Ordering::SeqCst);
        }
        told
    }
}

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A connection that is kept while it lasts.
struct Wire {
    stream: BufReader<Box<dyn Stream>>,
    host: String,
}

impl Wire {
    /// Wherever the gateway is now; none while it is gone.
    fn connect(data: &Path, over_tcp: bool) -> Option<Self> {
        let running = std::fs::read(data.join("gateway.json")).ok()?;
        let running: Value = serde_json::from_slice(&running).ok()?;
        let patience = Some(Duration::from_secs(20));
        let (stream, host): (Box<dyn Stream>, String) = if over_tcp {
            let address = running["address"].as_str()?.to_owned();
            let stream = TcpStream::connect(&address).ok()?;
            stream.set_read_timeout(patience).ok()?;
            (Box::new(stream), address)
        } else {
            let stream = UnixStream::connect(running["socket"].as_str()?).ok()?;
            stream.set_read_timeout(patience).ok()?;
            (Box::new(stream), "banister".to_owned())
        };
        Some(Self { stream: BufReader::new(stream), host })
    }

    /// One request and its whole answer; nothing if either was cut off.
    fn post(mut self, path: &str, key: &str, id: &str, body: &str) -> Option<(Self, u16, Value)> {
        let (host, length) = (&self.host, body.len());
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\n\
             Idempotency-Key: {id}\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        self.stream.get_mut().write_all(request.as_bytes()).ok()?;
        let (status, length) = self.head()?;
        let mut answer = vec![0; length?];
        self.stream.read_exact(&mut answer).ok()?;
        Some((self, status, serde_json::from_slice(&answer).ok()?))
    }

    /// The status, and the length if there is one.
    fn head(&mut self) -> Option<(u16, Option<usize>)> {
        let mut status = None;
        let mut length = None;
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                return Some((status?, length));
            }
            if status.is_none() {
                status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
            } else if let Some(bytes) = line.strip_prefix("content-length:") {
                length = bytes.trim().parse().ok();
            }
        }
    }
}

/// What a follower was told: cursors and events, in their order.
#[derive(Default)]
struct Heard {
    events: Mutex<Vec<(String, Value)>>,
    connections: AtomicU64,
}

impl Heard {
    /// Follows from the start, and comes back after the last event it saw whenever it is cut off.
    fn follow(&self, data: &Path, key: &str, stop: &AtomicBool) {
        while !stop.load(Ordering::SeqCst) {
            if self.listen(data, key, stop).is_none() {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    fn listen(&self, data: &Path, key: &str, stop: &AtomicBool) -> Option<()> {
        let mut wire = Wire::connect(data, true)?;
        let last = self.events.lock().unwrap().last().map(|(id, _)| id.clone());
        let after = last.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        let request = format!(
            "GET /aep/v0.1/events?from=start HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {key}\r\n{after}\r\n",
            wire.host
        );
        wire.stream.get_mut().write_all(request.as_bytes()).ok()?;
        let (status, _) = wire.head()?;
        assert_eq!(status, 200);
        self.connections.fetch_add(1, Ordering::SeqCst);
        let mut frames = Frames { wire, chunk: 0 };
        let mut id = String::new();
        let mut data = None;
        while !stop.load(Ordering::SeqCst) {
            let line = frames.line()?;
            if let Some(value) = line.strip_prefix("id: ") {
                value.clone_into(&mut id);
            } else if let Some(value) = line.strip_prefix("data: ") {
                data = Some(serde_json::from_str(value).unwrap());
            } else if line.is_empty()
                && let Some(data) = data.take()
            {
                self.events.lock().unwrap().push((id.clone(), data));
            } else {
                assert!(!line.contains("replay-exhausted"), "its cursor was not known any more");
            }
        }
        Some(())
    }
}

/// The lines of a chunked body.
struct Frames {
    wire: Wire,
    /// How much of the chunk is left.
    chunk: usize,
}

impl Frames {
    fn line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        loop {
            while self.chunk == 0 {
                let mut size = String::new();
                if self.wire.stream.read_line(&mut size).ok()? == 0 {
                    return None;
                }
                // The empty line after the chunk before.
                if size.trim_end().is_empty() {
                    continue;
                }
                self.chunk = usize::from_str_radix(size.trim_end(), 16).ok()?;
                if self.chunk == 0 {
                    return None;
                }
            }
            let mut byte = [0];
            self.wire.stream.read_exact(&mut byte).ok()?;
            self.chunk -= 1;
            match byte[0] {
                b'\n' => return String::from_utf8(line).ok(),
                other => line.push(other),
            }
        }
    }
}

/// Lets the follower go, also where something went wrong.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// The numbers of a pusher's events in a text, in their order.
fn numbers(text: &str, name: &str) -> Vec<u64> {
    let mark = format!("<{name}:");
    let mut found = Vec::new();
    for part in text.split(&mark).skip(1) {
        found.push(part.split('>').next().unwrap().parse().unwrap());
    }
    found
}

#[test]
fn whatever_was_acknowledged_under_kills_is_there_once_in_order_and_told_once() {
    let (kills, wanted) = size();
    let seed = 6;
    let mut dice = Dice(seed);
    let mut gateway = Gateway::start();
    let (data, agent, person) =
        (gateway.data(), gateway.key("agent.key"), gateway.key("person.key"));
    let total = AtomicU64::new(0);
    let heard = Heard::default();
    let stop = AtomicBool::new(false);
    let mut told: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
    std::thread::scope(|scope| {
        let _ends = Ends(&stop);
        let (data, agent, person, total): (&PathBuf, _, _, _) = (&data, &agent, &person, &total);
        let (heard, stop) = (&heard, &stop);
        scope.spawn(move || heard.follow(data, person, stop));
        let run = |pusher: Pusher| scope.spawn(move || pusher.run(data, agent, total, wanted));
        let pushing: Vec<_> = PUSHERS.map(|pusher| (pusher.name, run(pusher))).into();
        for kill in 0..kills {
            // Anywhere in its share of the whole, and anywhere within a commit.
            let at = (wanted * kill + dice.below(wanted)) / (kills + 1);
            while total.load(Ordering::SeqCst) < at {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_micros(dice.below(20_000)));
            gateway.kill();
            // Some of them while it starts.
            if kill % 4 == 3 {
                gateway.begin();
                std::thread::sleep(Duration::from_micros(dice.below(200_000)));
                gateway.kill();
            }
            gateway.up();
        }
        for (name, pushing) in pushing {
            told.insert(name, pushing.join().unwrap());
        }
        // The follower has heard everything once it has heard the last of each.
        let last = |pusher: &Pusher| {
            let texts = pusher.texts(told[pusher.name].len());
            format!("<{}:{}>", pusher.name, texts.last().unwrap())
        };
        let last = PUSHERS.each_ref().map(last);
        crate::support::wait_for("the follower", || {
            let events = heard.events.lock().unwrap();
            let newest = events.iter().rev().take(2_000).map(|(_, event)| event.to_string());
            let newest = newest.collect::<String>();
            last.iter().all(|last| newest.contains(last.as_str()))
        });
        stop.store(true, Ordering::SeqCst);
        gateway.stop();
    });

    let acknowledged: u64 = told.values().map(|told| told.len() as u64).sum();
    assert!(acknowledged >= wanted);
    let mut there: HashMap<&str, Vec<(u64, u64)>> = HashMap::new();
    let mut sessions: HashMap<String, u64> = HashMap::new();
    let records = gateway.records();
    for record in &records {
        let seq = sessions.entry(record["session"].as_str().unwrap().to_owned()).or_default();
        *seq += 1;
        assert_eq!(record["seq"], *seq, "{record}");
        let (name, number) = Pusher::of(record);
        there.entry(name).or_default().push((number, record["position"].as_u64().unwrap()));
    }
    for (name, told) in &told {
        // Once each, in the order they were sent, and where the receipts say.
        assert_eq!(&there[name], told, "{name}, seed {seed}");
    }
    let verified = gateway.banister(&["log", "verify"]);
    assert_eq!(verified.status.code(), Some(0), "{verified:?}");

    let events = heard.events.into_inner().unwrap();
    let texts: Vec<String> = events.iter().map(|(_, event)| event.to_string()).collect();
    for pusher in PUSHERS {
        let name = pusher.name;
        let numbers: Vec<u64> = texts.iter().flat_map(|text| numbers(text, name)).collect();
        let sent = pusher.texts(told[name].len());
        let wrong = numbers.iter().zip(&sent).position(|(heard, sent)| heard != sent);
        assert_eq!(wrong, None, "{name}, seed {seed}: {:?}", &numbers[..20.min(numbers.len())]);
        assert_eq!(numbers.len(), sent.len(), "{name}, seed {seed}");
    }
    let connections = heard.connections.into_inner();
    assert!(connections > 1, "the follower was never cut off");
    eprintln!(
        "{acknowledged} events acknowledged over {kills} kills, {} told over {connections} connections",
        events.len()
    );
}
