use std::sync::Arc;

use banister_events::activity::Outcome;
use banister_journal::{Kind, Query, Record};
use serde_json::json;

use super::*;
use crate::desk::AnswerRequest;
use crate::pipeline::Incoming;
use crate::{Gateway, Settings};

/// Put together here, so that no file holds anything that looks like one.
fn secret() -> String {
    format!("ghp_{}", "hunter2".repeat(4))
}

struct Room {
    dir: tempfile::TempDir,
    clock: Clock,
    gateway: Arc<Gateway>,
}

impl Room {
    fn new(capture: CapturePolicy) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Clock::manual("2026-11-15T09:00:00Z".parse().unwrap());
        let gateway = open(dir.path(), capture, &clock);
        Self { dir, clock, gateway }
    }

    fn at(level: Level) -> Self {
        Self::new(CapturePolicy { level, ..CapturePolicy::default() })
    }

    async fn tell(&self, hook: &str, fields: &Value) -> crate::admission::Accepted {
        self.gateway.accept(&incoming(hook, fields)).await.unwrap()
    }

    fn records(&self) -> Vec<Arc<Record>> {
        self.gateway.journal.after(0, 100).unwrap()
    }

    async fn search(&self, text: &str) -> Vec<(String, u64)> {
        let query = Query { text: text.to_owned(), limit: 10, ..Query::default() };
        let hits = self.gateway.search(&query).await.hits;
        hits.into_iter().map(|hit| (hit.kind, hit.seq)).collect()
    }
}

fn open(dir: &Path, capture: CapturePolicy, clock: &Clock) -> Arc<Gateway> {
    let settings = Settings { capture, ..Settings::new(dir.join("data")) };
    Gateway::open(settings, clock.clone()).unwrap()
}

fn incoming(hook: &str, fields: &Value) -> Incoming {
    let mut payload = json!({
        "session_id": "one", "cwd": "/src", "hook_event_name": hook, "tool_use_id": "t1",
    });
    payload.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    Incoming::of_claude(hook, &payload)
}

fn bash(command: &str) -> Value {
    json!({ "tool_name": "Bash", "tool_input": { "command": command } })
}

fn reply(message: &str) -> AnswerRequest {
    let message = Some(message.to_owned());
    AnswerRequest { message, ..AnswerRequest::of(true, "person") }
}

/// Everything in the data directory, as one run of bytes.
fn bytes_of(dir: &Path) -> Vec<u8> {
    let files = std::fs::read_dir(dir.join("data")).unwrap().map(|file| file.unwrap().path());
    files.filter(|path| path.is_file()).flat_map(|path| std::fs::read(path).unwrap()).collect()
}

fn holds(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|window| window == word.as_bytes())
}

#[tokio::test]
async fn an_ask_is_exact_while_it_is_open_and_leaves_nothing_behind_that_its_level_forbids() {
    for level in [Level::Redacted, Level::Metadata, Level::None] {
        let room = Room::at(level);
        let command = format!("git push https://me:{}@example.org/x", secret());
        let ask = room.tell("PreToolUse", &bash(&command)).await.ask.unwrap();
        let opened = room.gateway.desk.inbox().remove(0);
        assert_eq!(opened.ask.action.as_ref().unwrap().subject(), command);
        assert!(room.records()[1].captured.exact.is_some(), "{level:?}");

        // Also after a restart.
        let Room { dir, clock, gateway } = room;
        drop(gateway);
        let capture = CapturePolicy { level, ..CapturePolicy::default() };
        let room = Room { gateway: open(dir.path(), capture.clone(), &clock), dir, clock };
        assert_eq!(room.gateway.desk.inbox(), [opened]);
        let said = format!("only with {}", secret());
        let fact = room.gateway.desk.answer(&ask, &reply(&said)).await.unwrap();
        assert_eq!(fact.message, Some(said), "the agent is told all of it");

        let records = room.records();
        let [event, asked, answer] = records.as_slice() else { panic!("{records:?}") };
        assert_eq!((event.captured.level, &asked.captured.exact), (level, &None));
        let kept: AskFact = serde_json::from_slice(&asked.body).unwrap();
        assert_eq!((kept.ask.id.as_str(), kept.ask.kind), (ask.as_str(), AskKind::Confirmation));
        let end: CloseFact = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(end.outcome, Outcome::Accepted);
        match level {
            Level::None => assert_eq!((kept.ask.action, &asked.action), (None, &None)),
            Level::Metadata => {
                let action = kept.ask.action.unwrap();
                assert_eq!((action.tool.as_str(), action.input), ("Bash", None));
            }
            _ => assert_eq!(kept.ask.action.unwrap().subject(), "git push [redacted]example.org/x"),
        }
        let searched = if level == Level::Redacted { vec![("ask".to_owned(), 2)] } else { vec![] };
        assert_eq!(room.search("example").await, searched);
        let Room { dir, gateway, .. } = room;
        drop(gateway);
        let report = Journal::verify(&dir.path().join("data/journal.db")).unwrap();
        assert!(report.is_clean(), "{report:?}");
        assert!(!holds(&bytes_of(dir.path()), "hunter2"), "{level:?}");
    }
}

#[tokio::test]
async fn an_agent_has_its_own_level() {
    let levels = [("claude-code".to_owned(), Level::None)].into();
    let room = Room::new(CapturePolicy { levels, ..CapturePolicy::default() });
    room.tell("UserPromptSubmit", &json!({ "prompt": "Go." })).await;
    let other = Incoming {
        agent: "codex".to_owned(),
        ..incoming("UserPromptSubmit", &json!({ "prompt": "Stay." }))
    };
    room.gateway.accept(&other).await.unwrap();
    let levels: Vec<_> = room.records().iter().map(|record| record.captured.level).collect();
    assert_eq!(levels, [Level::None, Level::Full]);
    assert_eq!(
        (room.search("go").await, room.search("stay").await),
        (vec![], vec![("message".to_owned(), 1)])
    );
}

#[tokio::test]
async fn the_same_message_again_is_judged_again_where_its_verdict_was_not_kept() {
    let room = Room::at(Level::None);
    for command in ["git status", "rm -rf /", "git push"] {
        let once = Incoming {
            event_id: Some(command.to_owned()),
            ..incoming("PreToolUse", &bash(command))
        };
        let first = room.gateway.accept(&once).await.unwrap();
        let again = room.gateway.accept(&once).await.unwrap();
        assert!(again.duplicate);
        assert_eq!((first.gate, first.ask), (again.gate, again.ask), "{command}");
    }
}

#[tokio::test]
async fn what_was_said_and_done_is_found() {
    let room = Room::at(Level::Full);
    room.tell("UserPromptSubmit", &json!({ "prompt": "Fix the retry loop" })).await;
    room.tell("PreToolUse", &bash("git status")).await;
    let mut done = bash("git status");
    done["tool_response"] = json!({ "stdout": "nothing to commit" });
    room.tell("PostToolUse", &done).await;
    room.tell("PreToolUse", &bash("rm -rf /")).await;
    let ask = room.tell("PreToolUse", &bash("git push origin")).await.ask.unwrap();
    room.gateway.desk.answer(&ask, &reply("careful now")).await.unwrap();
    let kind = |kind: &str, seq| vec![(kind.to_owned(), seq)];
    assert_eq!(room.search("retry loop").await, kind("message", 1));
    assert_eq!(room.search("status").await, kind("action", 3));
    assert_eq!(room.search("nothing commit").await, kind("action", 3));
    assert_eq!(room.search("rm rf").await, kind("action", 4));
    assert_eq!(room.search("push origin").await, kind("ask", 6));
    assert_eq!(room.search("careful").await, kind("answer", 7));
}

#[tokio::test]
async fn the_journal_is_signed_when_it_has_changed() {
    let room = Room::at(Level::Full);
    let keeper = &room.gateway.keeper;
    assert_eq!(keeper.sign().await.unwrap(), 0);
    room.tell("UserPromptSubmit", &json!({ "prompt": "Go." })).await;
    assert_eq!((keeper.sign().await.unwrap(), keeper.sign().await.unwrap()), (1, 0));
    let checkpoint = room.gateway.journal.checkpoints(0, 9).unwrap().remove(0);
    let key = SigningKey::open(&room.dir.path().join("data").join(SigningKey::FILE)).unwrap();
    assert!(checkpoint.is_signed() && checkpoint.key == key.public());
}

#[tokio::test]
async fn what_is_too_old_goes_but_for_what_somebody_is_asked_about() {
    let room =
        Room::new(CapturePolicy { age: Some(Duration::from_mins(3)), ..CapturePolicy::default() });
    room.tell("PreToolUse", &bash("git push")).await;
    let other = json!({ "session_id": "two", "prompt": "Go." });
    room.tell("UserPromptSubmit", &other).await;
    room.clock.advance(Duration::from_mins(4));
    let keep = room.gateway.desk.sessions();
    let pruned = room.gateway.keeper.prune(keep.clone()).await.unwrap().unwrap();
    assert_eq!((pruned.records, keep.len()), (1, 1));
    let kinds: Vec<_> = room.records().iter().map(|record| record.kind).collect();
    assert_eq!(kinds, [Kind::Event, Kind::Ask]);
    assert_eq!(room.gateway.journal.pruned(), 3);
    let forever = Room::at(Level::Full);
    assert_eq!(forever.gateway.keeper.prune(HashSet::new()).await.unwrap(), None);
}

#[test]
fn what_has_no_credential_stays_byte_for_byte() {
    for bytes in [&b"{ \"a\":1.0,\n \"b\": \"x\" }"[..], b"plain", b"\xff\xfe", b"", b"[1e2]"] {
        let lossy = String::from_utf8_lossy(bytes).into_owned().into_bytes();
        let kept = redact(bytes);
        assert!(kept == bytes || kept == lossy, "{bytes:?}");
    }
    let payload = json!({ "password": "x", "inner": format!("{{\"token\":\"{}\"}}", secret()) });
    let kept: Value = serde_json::from_slice(&redact(payload.to_string().as_bytes())).unwrap();
    assert_eq!(kept, json!({ "password": "[redacted]", "inner": "{\"token\":\"[redacted]\"}" }));
    assert_eq!(
        redact(format!("cut {}\u{fffd}", secret()).as_bytes()),
        "cut [redacted]\u{fffd}".as_bytes()
    );
}
