//! Data directories that earlier versions left, one for each layout of the journal: every later version opens them,
//! verifies them, goes on with the streams where somebody left off, and answers what is still open.
//!
//! `tests/data/make.mjs` makes them. The keys in them are for these tests, and are used on copies only.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use banister_events::id::EventRef;
use banister_gateway::clock::Clock;
use banister_gateway::serve::{Serving, start};
use banister_gateway::{Gateway as Service, Settings};
use jiff::{SignedDuration, Timestamp};
use rusqlite::Connection;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::{
    Gateway, Response, command, decision, exchange, payload, stderr, stdout, wait_for,
};

/// The streams of AAEP and of AEP.
const SPOKEN: &str = "/aaep/v1/events";
const PROGRAMS: &str = "/aep/v0.1/events";
/// How long a stream may take to tell what it has to.
const PATIENCE: Duration = Duration::from_mins(1);

/// The directories that are kept, with what was noted when they were made.
fn kept() -> Vec<(PathBuf, Value)> {
    let parent = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
    let folders = fs::read_dir(parent).unwrap().map(|entry| entry.unwrap().path());
    let noted = |folder: PathBuf| {
        let noted = fs::read(folder.join("noted.json")).ok()?;
        Some((folder, serde_json::from_slice(&noted).unwrap()))
    };
    let kept: Vec<_> = folders.filter_map(noted).collect();
    assert!(!kept.is_empty(), "there is no data directory to open");
    kept
}

/// A copy of a kept directory, whose files only the owner can read: Git does not keep that.
fn copy(folder: &Path) -> Gateway {
    let gateway = Gateway::stopped();
    copy_files(&folder.join("data"), &gateway.data());
    gateway
}

fn copy_files(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    fs::set_permissions(to, fs::Permissions::from_mode(0o700)).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let copied = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_files(&path, &copied);
        } else {
            fs::copy(&path, &copied).unwrap();
            fs::set_permissions(&copied, fs::Permissions::from_mode(0o600)).unwrap();
        }
    }
}

/// Path → bytes of every file.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.append(&mut files(&path));
        } else {
            found.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    found
}

/// A gateway in this process, at the time at which its directory was made: the asks in it are still open then.
struct Then {
    service: Serving,
    runtime: Runtime,
}

impl Then {
    fn start(gateway: &Gateway, noted: &Value) -> Self {
        let made: Timestamp = noted["made"].as_str().unwrap().parse().unwrap();
        let clock = Clock::manual(made + SignedDuration::from_secs(30));
        let runtime = Runtime::new().unwrap();
        let service = runtime.block_on(async {
            let service = Service::open(Settings::new(gateway.data()), clock).unwrap();
            let listen = "127.0.0.1:0".parse().unwrap();
            start(&service, listen, &gateway.socket()).await.unwrap()
        });
        let running = json!({ "socket": gateway.socket(), "address": service.address.to_string() });
        fs::write(gateway.data().join("gateway.json"), running.to_string()).unwrap();
        taken_in(gateway);
        Self { service, runtime }
    }

    fn stop(self) {
        self.runtime.block_on(self.service.stop());
    }
}

/// Waits until the spool is part of history.
fn taken_in(gateway: &Gateway) {
    let spool = gateway.data().join("spool");
    wait_for("the spool", || fs::read_dir(&spool).map_or(true, |mut files| files.next().is_none()));
}

/// One event on a stream: its id and its type.
type Event = (String, String);

fn events(noted: &Value) -> Vec<Event> {
    let event = |row: &Value| (text(row, "event"), text(row, "type"));
    noted.as_array().unwrap().iter().map(event).collect()
}

/// Whether these are the events that were noted. The ids that Banister gives to events of AAEP have changed since; those
/// of agents, and those of AEP, have not.
fn assert_same(heard: &[Event], noted: &[Event], place: &str) {
    assert_eq!(heard.len(), noted.len(), "{place}");
    for ((id, kind), (before, noted)) in heard.iter().zip(noted) {
        assert_eq!(kind, noted, "{place}: {id}");
        let is_ours = kind.starts_with("aaep:") && EventRef::parse(id).is_some();
        assert!(id == before || is_ours, "{place}: {id} was {before}");
    }
}

fn text(row: &Value, name: &str) -> String {
    row[name].as_str().unwrap_or_default().to_owned()
}

/// The events of a stream up to the one that is waited for, and whatever comes right after it.
fn follow(
    gateway: &Gateway,
    (key, path, after): (&str, &str, Option<&str>),
    last: impl Fn(&[Value]) -> bool,
) -> Vec<Value> {
    let mut socket = UnixStream::connect(gateway.socket()).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let after = after.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
    let bearer = gateway.key(key);
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: banister\r\nAuthorization: Bearer {bearer}\r\n{after}\r\n"
    );
    socket.write_all(request.as_bytes()).unwrap();
    let (mut bytes, mut heard) = (Vec::new(), Vec::new());
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < PATIENCE, "{path}{after}: {} heard", heard.len());
        let mut buffer = [0; 8_192];
        match socket.read(&mut buffer) {
            Ok(0) => return heard,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
            Err(_) if last(&heard) => return heard,
            Err(_) => {}
        }
        let response = Response::parse(&bytes);
        assert!(!response.body.contains("replay-exhausted"), "{path}: {after} is not known");
        let data = response.body.split("\n\n").filter_map(|frame| frame.split_once("data: "));
        heard = data.filter_map(|(_, data)| serde_json::from_str(data).ok()).collect();
    }
}

fn name(event: &Value) -> Event {
    let id = event.get("event_id").or_else(|| event.get("id")).unwrap_or(&Value::Null);
    let kind = event["type"].as_str().unwrap_or("response");
    (id.as_str().unwrap_or_default().to_owned(), kind.to_owned())
}

fn named(events: &[Value]) -> Vec<Event> {
    events.iter().map(name).collect()
}

/// Follows a stream from its start: everything that was noted, in its order, and then what is new.
fn whole(gateway: &Gateway, path: &str, noted: &[Event]) -> Vec<Event> {
    let enough = |heard: &[Value]| heard.len() >= noted.len();
    let heard =
        named(&follow(gateway, ("person.key", &format!("{path}?from=start"), None), enough));
    assert_same(&heard[..noted.len()], noted, path);
    let ids: BTreeSet<_> = heard.iter().map(|(id, _)| id).collect();
    assert_eq!(ids.len(), heard.len(), "{path}: no event twice");
    heard
}

/// Goes on after ids that were given when the directory was made: no gap, and nothing twice.
fn resume(gateway: &Gateway, path: &str, noted: &Value, every: usize) {
    let events = events(noted);
    let whole = whole(gateway, path, &events);
    let rows = noted.as_array().unwrap();
    let cuts = (0..rows.len()).step_by(every).chain([rows.len() - 1]);
    for cut in cuts {
        let left = &whole[cut + 1..];
        let enough = |heard: &[Value]| heard.len() >= left.len();
        // In AAEP the event's own id is a cursor too: the one that it had then, and the one that it has today.
        let mut cursors = vec![text(&rows[cut], "cursor")];
        if path.starts_with("/aaep") {
            cursors.extend([text(&rows[cut], "event"), whole[cut].0.clone()]);
        }
        for cursor in cursors {
            let heard = follow(gateway, ("person.key", path, Some(&cursor)), enough);
            assert_eq!(named(&heard), left, "{path} after {cursor}");
        }
    }
}

/// `log verify` with what was signed and kept apart.
fn verify(gateway: &Gateway, folder: &Path, noted: &Value) -> u64 {
    let checkpoint = folder.join("checkpoint.jsonl");
    let shown =
        ["--checkpoint", checkpoint.to_str().unwrap(), "--key", noted["key"].as_str().unwrap()];
    let output = gateway.banister(&[&["log", "verify"], &shown[..]].concat());
    let said = stdout(&output);
    assert!(output.status.success(), "{said}{}", stderr(&output));
    for word in ["Integrity: good", "Completeness: good", "Authenticity: good"] {
        assert!(said.contains(word), "{said}");
    }
    said.split(' ').next().unwrap().parse().unwrap()
}

fn post(gateway: &Gateway, key: &str, path: &str, body: &str) -> Response {
    let (key, length) = (gateway.key(key), body.len());
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: banister\r\nAuthorization: Bearer {key}\r\n\
         Accept: text/event-stream\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    exchange(UnixStream::connect(gateway.socket()).unwrap(), request.as_bytes())
}

#[test]
fn a_kept_directory_is_opened_verified_and_resumed_and_what_is_open_is_answered() {
    for (folder, noted) in kept() {
        let gateway = copy(&folder);
        let then = Then::start(&gateway, &noted);
        let records = verify(&gateway, &folder, &noted);
        assert!(records > noted["records"].as_u64().unwrap(), "the spool was taken in");

        resume(&gateway, SPOKEN, &noted["streams"]["aaep"], 13);
        resume(&gateway, PROGRAMS, &noted["streams"]["aep"], 13);
        the_snapshot_is_the_same(&gateway, &noted["attached"]);
        words_are_found(&gateway, &noted["words"]);

        // Asks and grants.
        let inbox = gateway.json(&["inbox", "--json"]);
        let ids = |rows: &Value| -> BTreeSet<String> {
            rows.as_array().unwrap().iter().map(|row| text(row, "id")).collect()
        };
        assert_eq!(ids(&inbox["asks"]), ids(&noted["open"]), "{inbox}");
        assert_eq!(ids(&gateway.json(&["grants", "--json"])["grants"]), ids(&noted["grants"]));
        let question = |row: &&Value| row["question"] == "Do ferries count?";
        let asks = inbox["asks"].as_array().unwrap();
        let ask = asks.iter().find(question).unwrap();
        let answered = gateway.banister(&["answer", &text(ask, "id"), "Only at noon"]);
        assert!(answered.status.success(), "{answered:?}");
        let replies = format!("/aaep/v1/replies?session={}", text(ask, "session"));
        let told = follow(&gateway, ("agent.key", &replies, None), |heard| !heard.is_empty());
        assert_eq!(
            (&told[0]["type"], &told[0]["reply_token"]),
            (&json!("clarification.reply"), &json!("rpl_ferries"))
        );

        // New records.
        let granted = command("k1", "git push origin tables").to_string();
        let allowed = post(&gateway, "agent.key", "/hooks/claude-code/PreToolUse", &granted);
        assert!(allowed.body.contains(r#""allow""#), "{allowed:?}");
        let old =
            fs::read_to_string(folder.join("../../../conformance/aep/session.jsonl")).unwrap();
        let pushed = post(&gateway, "agent.key", PROGRAMS, old.lines().next().unwrap());
        assert!(pushed.body.contains(r#""status":"duplicate""#), "{pushed:?}");
        assert!(verify(&gateway, &folder, &noted) > records);

        // All of it is there for the next start.
        let before = whole(&gateway, SPOKEN, &events(&noted["streams"]["aaep"]));
        then.stop();
        let then = Then::start(&gateway, &noted);
        assert_eq!(whole(&gateway, SPOKEN, &before), before);
        let open = gateway.json(&["inbox", "--json"])["asks"].as_array().unwrap().len();
        assert_eq!(open, asks.len() - 1);
        then.stop();
        verify(&gateway, &folder, &noted);
    }
}

/// Subscriptions end with their gateway, but their ids still say where to go on. What the rate puts together differs
/// from time to time, and what was held back at that moment may come again; nothing else is missed.
fn subscriptions_resume(gateway: &Gateway, noted: &Value, ids: &BTreeMap<String, String>) {
    let request = json!({
        "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "noted",
        "capabilities": { "max_events_per_second": 100, "languages": ["en"] },
    });
    let together = ["state.changed", "output.streaming", "progress.updated"];
    let alone = |kind: &str| !together.iter().any(|end| kind.ends_with(end));
    let rows = noted.as_array().unwrap();
    for cut in [0, rows.len() / 2, rows.len() - 2] {
        let accepted = post(gateway, "person.key", "/aaep/v1/subscriptions", &request.to_string());
        let accepted: Value = serde_json::from_str(&accepted.body).unwrap();
        let path =
            format!("/aaep/v1/events?subscription_id={}", text(&accepted, "subscription_id"));
        let left = events(noted).split_off(cut + 1).into_iter().filter(|(_, kind)| alone(kind));
        let left: BTreeSet<Event> = left.map(|(id, kind)| (ids[&id].clone(), kind)).collect();
        let cursor = text(&rows[cut], "cursor");
        follow(gateway, ("person.key", &path, Some(&cursor)), |heard| {
            left.is_subset(&named(heard).into_iter().collect())
        });
    }
}

fn the_snapshot_is_the_same(gateway: &Gateway, noted: &Value) {
    let path = format!("/agui/sessions/{}", text(noted, "session"));
    let input = json!({ "threadId": "t", "runId": "r", "messages": [] }).to_string();
    let run = post(gateway, "person.key", &path, &input).body;
    let data = run.lines().filter_map(|line| line.strip_prefix("data: "));
    let snapshot = data
        .map(|data| serde_json::from_str::<Value>(data).unwrap())
        .find(|event| event["type"] == "MESSAGES_SNAPSHOT")
        .unwrap();
    let message = |row: &Value| (text(row, "id"), text(row, "role"));
    let messages = |rows: &Value| rows.as_array().unwrap().iter().map(message).collect::<Vec<_>>();
    assert_eq!(messages(&snapshot["messages"]), messages(&noted["messages"]));
}

fn words_are_found(gateway: &Gateway, noted: &Value) {
    for (list, found) in [("found", true), ("lost", false)] {
        for word in noted[list].as_array().unwrap() {
            let output = gateway.banister(&["log", "search", "--json", word.as_str().unwrap()]);
            assert_eq!(stdout(&output).contains(r#""session""#), found, "{word}: {output:?}");
        }
    }
}

#[test]
fn a_kept_directory_goes_on_today() {
    for (folder, noted) in kept() {
        let mut gateway = copy(&folder);
        let config = folder.join("config.toml");
        gateway.up_with(&["--config", config.to_str().unwrap()]);
        taken_in(&gateway);
        verify(&gateway, &folder, &noted);
        // By now asks have run out and turns are over: that is new, and comes after everything that was told.
        for path in ["aaep", "aep"] {
            let rows = noted["streams"][path].as_array().unwrap();
            let cut = rows.len() / 2;
            let left = events(&noted["streams"][path]).split_off(cut + 1);
            let (door, cursor) =
                (if path == "aaep" { "aaep/v1" } else { "aep/v0.1" }, text(&rows[cut], "cursor"));
            let enough = |heard: &[Value]| heard.len() >= left.len();
            let heard =
                follow(&gateway, ("person.key", &format!("/{door}/events"), Some(&cursor)), enough);
            assert_same(&named(&heard)[..left.len()], &left, &format!("{path} after {cursor}"));
        }
        let aaep = events(&noted["streams"]["aaep"]);
        let today = whole(&gateway, SPOKEN, &aaep);
        let ids = aaep.into_iter().map(|(id, _)| id).zip(today.into_iter().map(|(id, _)| id));
        subscriptions_resume(&gateway, &noted["streams"]["subscribed"], &ids.collect());
        let hook = gateway.hooked("PreToolUse", &command("today", "git status"));
        assert_eq!(decision(&hook).0, "allow", "{hook:?}");
        gateway.hooked("Stop", &payload("Stop", &json!({ "last_assistant_message": "Moored." })));
        assert!(stdout(&gateway.banister(&["log", "search", "moored"])).contains("Moored"));
        verify(&gateway, &folder, &noted);
        gateway.stop();
        verify(&gateway, &folder, &noted);
    }
}

#[test]
fn a_directory_of_a_newer_version_is_refused_and_left_as_it_is() {
    for (folder, _) in kept() {
        let mut gateway = copy(&folder);
        let journal = Connection::open(gateway.data().join("journal.db")).unwrap();
        journal.pragma_update(None, "user_version", 99).unwrap();
        journal.close().unwrap();
        let before = files(&gateway.data());
        for words in
            [&["serve", "--listen", "127.0.0.1:0"][..], &["log", "verify"], &["log", "show"]]
        {
            let output = gateway.banister(words);
            assert_eq!(output.status.code(), Some(3), "{output:?}");
            let said = stderr(&output);
            assert!(said.contains("has layout 99, this version knows layouts up to"), "{said}");
        }
        let mut after = files(&gateway.data());
        // What SQLite and the lock need to look at the journal; nothing is in them.
        for beside in ["journal.db.lock", "journal.db-wal", "journal.db-shm"] {
            let bytes = after.remove(&gateway.data().join(beside)).unwrap_or_default();
            assert!(bytes.is_empty() || beside == "journal.db-shm", "{beside}");
        }
        assert!(before == after, "something was changed: {:?}", after.keys());
        gateway.kill();
    }
}
