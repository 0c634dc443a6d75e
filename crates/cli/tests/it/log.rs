//! `banister log`: a journal that is read, searched, exported, signed and verified from its file.

use std::path::Path;
use std::process::{Command, Output};

use banister_journal::{
    Appended, Appender, Capture, DigestKey, Draft, Durability, IndexBatch, Indexed, Kind, Level,
    Passage, Retention, SigningKey, Source,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::support::{BANISTER, Gateway, command, stderr, stdout};

/// A data directory with a journal of six records in two sessions, and no gateway.
struct Data(tempfile::TempDir);

impl Data {
    fn new() -> Self {
        let data = Self(tempfile::tempdir().unwrap());
        let journal = data.journal();
        let key = DigestKey::from_bytes([1; 32]);
        let redact = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("hunter2", "***").into();
        for number in 0..6_i64 {
            let level = if number == 4 { Level::Redacted } else { Level::Full };
            let capture = Capture { level, redact: &redact, digest_key: &key };
            let text = format!("{}: the fox no. {number} says 狐 and hunter2", "before ".repeat(9));
            let body = match number {
                2 => vec![0, 255, 10],
                3 => b"{\n \"a\": 1.0 }\n".to_vec(),
                _ => json!({ "tool_name": "Bash", "tool_input": { "command": text } })
                    .to_string()
                    .into(),
            };
            let (kind, title, text) = ("action".to_owned(), "Bash".to_owned(), text);
            let entry = capture.apply(draft(number, body));
            let appended = wait(journal.append(vec![entry], Durability::Synced)).unwrap();
            let Appended::Recorded(records) = appended else { panic!("{appended:?}") };
            let redact = |text: &str| text.replace("hunter2", "***");
            let row = Indexed::new(&records[0], Passage { kind, title, text }, &redact);
            let (after, through) = (journal.indexed(), journal.head());
            let batch = IndexBatch::new(after, through, row.into_iter().collect());
            wait(journal.index(batch)).unwrap();
        }
        data
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn journal(&self) -> Appender {
        Appender::open(&self.path().join("journal.db")).unwrap()
    }

    fn key(&self) -> SigningKey {
        SigningKey::open(&self.path().join(SigningKey::FILE)).unwrap()
    }

    fn log(&self, args: &[&str]) -> Output {
        let home = self.path();
        let mut command = Command::new(BANISTER);
        command.arg("log").args(args).arg("--data").arg(home).env("HOME", home).output().unwrap()
    }

    fn good(&self, args: &[&str]) -> String {
        let output = self.log(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
        stdout(&output)
    }

    fn lines(&self, args: &[&str]) -> Vec<Value> {
        let text = self.good(args);
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn change(&self, sql: &str) {
        let script = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.argv[2])";
        let database = self.path().join("journal.db");
        let output =
            Command::new("python3").args(["-c", script]).arg(database).arg(sql).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_777_888_800 + seconds).unwrap()
}

fn draft(number: i64, body: Vec<u8>) -> Draft {
    Draft {
        session: if number % 2 == 0 { "s_even" } else { "s_odd" }.to_owned(),
        time: at(number),
        kind: Kind::Event,
        source: Source {
            protocol: "hook:claude-code:PreToolUse".to_owned(),
            agent: if number < 3 { "claude-code" } else { "codex" }.to_owned(),
            door: "socket".to_owned(),
            key: "agent".to_owned(),
        },
        turn: None,
        action: Some(format!("act_{number}")),
        event_id: None,
        reader: 1,
        body: body.into(),
        findings: Value::Null,
        gate: Some(json!({ "decision": "allow", "rule": "r" })),
    }
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

#[test]
fn show_prints_the_newest_that_fit_oldest_first() {
    let data = Data::new();
    let seqs = |args: &[&str]| -> Vec<_> {
        let args = [&["show", "--json"], args].concat();
        data.lines(&args).iter().map(|record| record["position"].as_u64().unwrap()).collect()
    };
    assert_eq!(seqs(&[]), [1, 2, 3, 4, 5, 6]);
    assert_eq!(seqs(&["--limit", "2"]), [5, 6]);
    assert_eq!(seqs(&["--session", "s_o", "--limit", "2"]), [4, 6]);
    assert_eq!(seqs(&["--since", &at(3).to_string()]), [4, 5, 6]);
    assert_eq!(seqs(&["--since", "1d"]), [0; 0]);
    let text = data.good(&["show", "--session", "s_even"]);
    assert_eq!(text.lines().count(), 3);
    assert!(text.contains("PreToolUse Bash") && text.contains("[allow by r]"), "{text}");
    assert!(text.contains("(captured: redacted)") && !text.contains("hunter2 ["), "{text}");
    let records = data.lines(&["show", "--json", "--limit", "5"]);
    assert_eq!(records[1]["body_base64"], "AP8K");
    assert_eq!((&records[1]["body"], &records[1]["level"]), (&Value::Null, &json!("full")));
    assert_eq!(data.log(&["show", "--since", "soon"]).status.code(), Some(2));
}

#[test]
fn search_finds_marks_and_pages() {
    let data = Data::new();
    let text = data.good(&["search", "fox", "狐", "--limit", "1"]);
    assert!(text.contains("s_odd") && text.contains("**fox** no. 5 says **狐** and"), "{text}");
    let page = |args: &[&str]| {
        let args = [&["search", "--json", "--limit", "2"], args].concat();
        let page = data.lines(&args).remove(0);
        assert_eq!(page["schema"], "banister.search/v1");
        let hits = page["hits"].as_array().unwrap().iter();
        let hits: Vec<_> =
            hits.map(|hit| (hit["session"].clone(), hit["seq"].as_u64().unwrap())).collect();
        (hits, page["next"].as_str().map(str::to_owned))
    };
    let (odd, even) = (json!("s_odd"), json!("s_even"));
    let (first, next) = page(&["fox"]);
    assert_eq!(first, [(odd.clone(), 3), (even.clone(), 3)]);
    let (second, _) = page(&["fox", "--after", &next.unwrap()]);
    assert_eq!(second, [(odd.clone(), 2), (even.clone(), 2)]);
    assert_eq!(page(&["fox", "--session", "s_even", "--agent", "codex"]), (vec![(even, 3)], None));
    assert_eq!(page(&["--raw", "fox NOT hunter2", "--order", "rank"]).0.len(), 1);
    assert_eq!(page(&["\"unbalanced", "(", "OR"]), (vec![], None));
    assert_eq!(page(&["--kind", "message", "fox"]), (vec![], None));

    for (args, says) in [
        (&["search", "--raw", "fox AND"][..], "without --raw"),
        (&["search", "fox", "--after", "x"], "cursor"),
        (&["search"], "WORDS"),
    ] {
        let output = data.log(args);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
    let none = data.log(&["search", "wolf"]);
    assert_eq!((none.status.code(), stdout(&none).as_str()), (Some(0), ""));
    assert!(stderr(&none).contains("Nothing was found."));
}

#[test]
fn export_writes_every_record_as_it_is() {
    let data = Data::new();
    let exported = data.good(&["export"]);
    assert_eq!(exported, data.good(&["show", "--json"]));
    let events = data.lines(&["export", "--format", "cloudevents"]);
    assert_eq!(events.len(), 6);
    for (number, event) in (0..).zip(&events) {
        assert_eq!(
            (&event["specversion"], &event["type"]),
            (&json!("1.0"), &json!("banister.record.event"))
        );
        assert_eq!(
            (&event["id"], &event["time"]),
            (&json!((number / 2 + 1).to_string()), &json!(at(number).to_string()))
        );
        let names = event.as_object().unwrap().keys();
        let plain = |name: &String| {
            name.len() <= 20 && name.chars().all(|c| c.is_ascii_lowercase() || "_64".contains(c))
        };
        assert!(names.clone().all(plain), "{names:?}");
    }
    assert_eq!(events[0]["source"], "urn:banister:session:s_even");
    assert_eq!((&events[2]["data_base64"], &events[2]["data"]), (&json!("AP8K"), &Value::Null));
    let raw = data.good(&["export", "--format", "cloudevents", "--session", "s_odd"]);
    assert!(raw.lines().nth(1).unwrap().contains(r#""data":{  "a": 1.0 }"#), "{raw}");
    let between = ["export", "--since", &at(1).to_string(), "--until", &at(3).to_string()];
    assert_eq!(data.lines(&between).len(), 2);
    assert_eq!(data.log(&["export", "--format", "xml"]).status.code(), Some(2));
}

#[test]
fn a_checkpoint_is_made_printed_and_shown_again() {
    let data = Data::new();
    let first = data.good(&["checkpoint"]);
    assert_eq!(first.lines().count(), 1);
    let pin = data.good(&["checkpoint", "--key"]);
    assert_eq!(pin.trim(), data.key().public().to_string());
    // Nothing has changed: the same one again.
    let again = data.log(&["checkpoint"]);
    assert_eq!(stdout(&again), first);
    assert!(stderr(&again).contains("nothing has changed"), "{}", stderr(&again));
    let kept = data.path().join("kept.jsonl");
    let kept = kept.to_str().unwrap();
    let journal = data.journal();
    wait(journal.append(vec![draft(7, b"{}".to_vec())], Durability::Synced)).unwrap();
    // Also beside somebody who writes.
    data.good(&["checkpoint", "--out", kept]);
    assert_eq!(data.good(&["checkpoint", "--after", "1"]), std::fs::read_to_string(kept).unwrap());
    drop(journal);

    let shown = ["verify", "--checkpoint", kept, "--key", pin.trim()];
    let text = data.good(&shown);
    for line in [
        "7 records in 2 sessions.",
        "Integrity: good. Every record and every chain is intact.",
        "Completeness: good up to checkpoint 2 of ",
        "Authenticity: good. Signed with the key ",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let text = data.good(&["verify"]);
    assert!(text.contains("Authenticity: unknown, signed with"), "{text}");

    data.change(
        "DELETE FROM record WHERE position = 7; DELETE FROM checkpoint WHERE number = 2;
         UPDATE session SET seq = 3, position = 6,
             hash = (SELECT hash FROM record WHERE position = 6) WHERE session = 's_odd'",
    );
    let text = data.good(&["verify", "--key", pin.trim()]);
    assert!(text.contains("Completeness: good up to checkpoint 1"), "{text}");
    let output = data.log(&shown);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = stdout(&output);
    assert!(text.contains("Missing: record 4 of session s_odd (position 6) is missing."), "{text}");
    assert!(text.contains("Forged: checkpoint 2 that was shown is not in the journal"), "{text}");
    assert!(text.contains("Integrity: good."), "{text}");
    let output = data.log(&["verify", "--json", "--checkpoint", kept]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["good"], &report["intact"]), (&json!(false), &json!(true)));
    assert_eq!(report["completeness"]["first_bad"]["seq"], 4);
}

#[test]
fn another_key_and_files_that_hold_no_checkpoint_are_told() {
    let data = Data::new();
    data.good(&["checkpoint"]);
    let other = SigningKey::from_seed(&[3; 32]).public().to_string();
    let output = data.log(&["verify", "--key", &other]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("is signed with another key"), "{}", stdout(&output));
    assert_eq!(data.log(&["verify", "--key", "abc"]).status.code(), Some(2));
    let file = data.path().join("notes");
    std::fs::write(&file, "\n{}\n").unwrap();
    let name = file.to_str().unwrap();
    let output = data.log(&["verify", "--checkpoint", name]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("notes:2: not a checkpoint"), "{}", stderr(&output));
    assert_eq!(data.log(&["verify", "--checkpoint", "/nowhere"]).status.code(), Some(3));
}

#[test]
fn a_file_that_is_no_journal_is_named() {
    let data = Data(tempfile::tempdir().unwrap());
    std::fs::write(data.path().join("journal.db"), "these are notes\n".repeat(99)).unwrap();
    for args in [&["show"][..], &["search", "x"], &["export"], &["verify"], &["checkpoint"]] {
        let output = data.log(args);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert!(stderr(&output).contains("journal.db: "), "{}", stderr(&output));
    }
}

#[test]
fn what_was_pruned_is_told_as_pruned() {
    let data = Data::new();
    let journal = data.journal();
    let retention = Retention { before: Some(at(3)), ..Retention::default() };
    wait(journal.prune(retention, &data.key(), at(60))).unwrap();
    drop(journal);
    let text = data.good(&["verify", "--key", &data.key().public().to_string()]);
    let pruned = format!("Session s_even: pruned up to record 2 at {}, by age.", at(60));
    assert!(text.contains(&pruned) && text.contains("Integrity: good."), "{text}");
    assert_eq!(data.lines(&["export"]).len(), 3);
    assert!(!data.good(&["search", "fox"]).contains("no. 2"));
}

#[test]
fn everything_works_beside_a_running_gateway() {
    let gateway = Gateway::start();
    gateway.hooked("PreToolUse", &command("t1", "git status"));
    for args in [
        &["log", "show"][..],
        &["log", "export"],
        &["log", "checkpoint"],
        &["log", "search", "status"],
        &["log", "verify"],
    ] {
        let output = gateway.banister(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
    }
    gateway.hooked("PreToolUse", &command("t2", "git status"));
    let text = stdout(&gateway.banister(&["log", "verify"]));
    assert!(text.contains("Completeness: good up to checkpoint"), "{text}");
}

/// Two sessions side by side: one with everything an agent can do, one that is still at work.
fn worked() -> Gateway {
    let gateway = Gateway::start();
    let tell = |session: &str, hook: &str, fields: Value| {
        let mut payload = json!({
            "session_id": session, "cwd": "/src", "hook_event_name": hook,
        });
        payload.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        gateway.hook(hook, payload.to_string().as_bytes())
    };
    let told = |session: &str, hook: &str, fields: Value| {
        tell(session, hook, fields).wait_with_output().unwrap();
    };
    let bash = |id: &str, command: &str| json!({ "tool_name": "Bash", "tool_use_id": id, "tool_input": { "command": command } });
    let done = |id: &str, command: &str| {
        let mut done = bash(id, command);
        done["tool_response"] = json!({ "stdout": "nothing to commit", "stderr": "" });
        done
    };
    for session in ["one", "two"] {
        told(session, "SessionStart", json!({ "source": "startup" }));
        told(session, "UserPromptSubmit", json!({ "prompt": "Fix the retry loop" }));
        told(session, "PreToolUse", bash("t1", "git status"));
    }
    for session in ["two", "one"] {
        told(session, "PostToolUse", done("t1", "git status"));
        told(session, "PreToolUse", bash("t2", "rm -rf /"));
    }
    for answer in ["accept", "reject"] {
        let waiting = tell("one", "PreToolUse", bash(answer, "git push origin main"));
        let ask = gateway.asked();
        let answered = gateway.banister(&["answer", &ask, answer]);
        assert!(answered.status.success(), "{answered:?}");
        waiting.wait_with_output().unwrap();
        if answer == "accept" {
            told("one", "PostToolUse", done(answer, "git push origin main"));
        }
    }
    told("one", "Stop", json!({ "last_assistant_message": "The retry loop is fixed." }));
    told("one", "SessionEnd", json!({ "reason": "exit" }));
    told("one", "UserPromptSubmit", json!({ "prompt": "Once more" }));
    gateway
}

#[test]
fn every_exported_stream_passes_the_check() {
    let gateway = worked();
    let records = gateway.records();
    let middle = records[records.len() / 2]["time"].as_str().unwrap();
    let one = records[0]["session"].as_str().unwrap();
    for (format, started) in
        [("aep", "prompt.submitted"), ("aaep", "session.started"), ("agui", "RUN_STARTED")]
    {
        for more in [&[][..], &["--until", middle], &["--since", middle], &["--session", one]] {
            let output = gateway.banister(&[&["log", "export", "--format", format], more].concat());
            assert!(output.status.success(), "{format} {more:?}: {output:?}");
            let file = gateway.dir.path().join("stream");
            std::fs::write(&file, &output.stdout).unwrap();
            let mut check = Command::new(BANISTER);
            check.args(["check", "--protocol", format]).arg(&file);
            // By a rule that is opt-in, a stream of AG-UI is one thread.
            if format != "agui" || more.contains(&"--session") {
                check.arg("--strict");
            }
            let checked = check.output().unwrap();
            let findings = stdout(&checked);
            assert_eq!(checked.status.code(), Some(0), "{format} {more:?}: {findings}");
            let text = stdout(&output);
            let runs = text.lines().filter(|line| line.contains(started)).count();
            assert!(runs > 0, "{format} {more:?}: {text}");
            if more.is_empty() {
                for said in ["git push origin main", "Fix the retry loop"] {
                    assert!(text.contains(said), "{format}: {said}: {text}");
                }
            }
        }
    }
}

#[test]
fn what_the_gateway_recorded_is_found_signed_and_kept_as_it_was_told() {
    let mut gateway = Gateway::stopped();
    let config = gateway.dir.path().join("config.toml");
    std::fs::write(&config, "[journal]\ncapture = \"redacted\"\nretain_days = 30\n").unwrap();
    gateway.up_with(&["--config", config.to_str().unwrap()]);
    let token = format!("ghp_{}", "hunter2".repeat(4));
    let mut done = command("t1", &format!("curl -H 'X-Token: {token}' example.org"));
    done["hook_event_name"] = json!("PostToolUse");
    done["tool_response"] = json!({ "stdout": "a quick brown fox" });
    gateway.hooked("PostToolUse", &done);
    let found = stdout(&gateway.banister(&["log", "search", "brown", "fox"]));
    assert!(found.contains("quick **brown** **fox**"), "{found}");
    let kept = stdout(&gateway.banister(&["log", "export"]));
    assert!(kept.contains("[redacted]") && !kept.contains("hunter2"), "{kept}");
    gateway.stop();
    let text = stdout(&gateway.banister(&["log", "verify"]));
    assert!(text.contains("Completeness: good up to checkpoint"), "{text}");

    for wrong in ["capture = \"some\"", "retain_days = 0", "retain = 3"] {
        std::fs::write(&config, format!("[journal]\n{wrong}\n")).unwrap();
        let config = config.to_str().unwrap();
        let output = gateway.banister(&["serve", "--listen", "127.0.0.1:0", "--config", config]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(stderr(&output).contains("config.toml:2:"), "{}", stderr(&output));
    }
}
