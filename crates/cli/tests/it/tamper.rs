//! Somebody changes the journal's file behind its back: `banister log verify` finds it, up to the last checkpoint it is
//! shown, and names the record. Every column of a record is tried in every way a value can be wrong.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use banister_journal::chain::{Kept, Link, digest};
use banister_journal::{
    Appender, Archive, Capture, DigestKey, Draft, Durability, Kind, Level, SigningKey, Source,
};
use jiff::Timestamp;
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

use crate::support::BANISTER;

/// A journal of twelve records in two sessions, "a" at the odd positions and "b" at the even ones, that differ in every
/// column. Checkpoint 1 covers the first six, checkpoint 2 the first ten; the last two are newer than both.
struct Original {
    dir: tempfile::TempDir,
    pin: String,
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_777_888_800 + seconds).unwrap()
}

impl Original {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let journal = Appender::open(&dir.path().join("journal.db")).unwrap();
        let key = SigningKey::open(&dir.path().join(SigningKey::FILE)).unwrap();
        let digests = DigestKey::from_bytes([1; 32]);
        for number in 1..=12_u32 {
            let level = [Level::Full, Level::Redacted, Level::Metadata, Level::Full]
                [usize::try_from(number / 2 % 4).unwrap()];
            let redact = |_: &[u8]| b"taken out".to_vec();
            let capture = Capture { level, redact: &redact, digest_key: &digests };
            let kind = if number % 3 == 0 { Kind::Answer } else { Kind::Event };
            let draft = Draft {
                session: if number % 2 == 1 { "a" } else { "b" }.to_owned(),
                time: at(number.into()),
                kind,
                source: Source {
                    protocol: format!("p{number}"),
                    agent: format!("agent {number}"),
                    door: format!("door {number}"),
                    key: format!("k{number}"),
                },
                turn: Some(format!("turn {number}")),
                action: Some(format!("act {number}")),
                event_id: Some(format!("evt {number}")),
                reader: number,
                body: format!("body {number}").into(),
                findings: json!([{ "code": format!("X-{number}") }]),
                gate: Some(json!({ "risk": number })),
            };
            let entry = capture.hold(draft);
            wait(journal.append(vec![entry], Durability::Synced)).unwrap();
            if number == 6 || number == 10 {
                wait(journal.checkpoint(&key, at(number.into()))).unwrap();
                let kept = dir.path().join(format!("kept-{number}.jsonl"));
                let made = journal_checkpoints(&dir.path().join("journal.db"));
                std::fs::write(kept, made).unwrap();
            }
            if number == 7 {
                // A backup that somebody may put back.
                let copy = dir.path().join("older.db");
                let connection = open(&dir.path().join("journal.db"));
                connection.execute("VACUUM INTO ?1", [copy.to_str().unwrap()]).unwrap();
            }
        }
        drop(journal);
        Self { dir, pin: key.public().to_string() }
    }

    fn tampered(&self, change: impl FnOnce(&Connection)) -> Tampered<'_> {
        let file = tempfile::tempdir().unwrap();
        let path = file.path().join("journal.db");
        std::fs::copy(self.dir.path().join("journal.db"), &path).unwrap();
        change(&open(&path));
        Tampered { original: self, dir: file }
    }

    fn kept(&self, number: u32) -> PathBuf {
        self.dir.path().join(format!("kept-{number}.jsonl"))
    }
}

fn journal_checkpoints(path: &Path) -> String {
    let made = Archive::open(path).unwrap().checkpoints(0, 100).unwrap();
    made.iter().map(|checkpoint| checkpoint.to_json() + "\n").collect()
}

fn open(path: &Path) -> Connection {
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap()
}

struct Tampered<'a> {
    original: &'a Original,
    dir: tempfile::TempDir,
}

/// What `log verify` said: its exit code, the report, and the text for people.
struct Said {
    code: Option<i32>,
    report: Value,
    text: String,
}

impl Tampered<'_> {
    /// With the key pinned and both checkpoints shown.
    fn verify(&self) -> Said {
        let kept = self.original.kept(10);
        self.verify_with(&["--checkpoint", kept.to_str().unwrap(), "--key", &self.original.pin])
    }

    fn verify_with(&self, args: &[&str]) -> Said {
        let run = |more: &[&str]| {
            let mut command = Command::new(BANISTER);
            command.args(["log", "verify", "--data"]).arg(self.dir.path()).args(args).args(more);
            command.env("HOME", self.dir.path()).output().unwrap()
        };
        let (json, text) = (run(&["--json"]), run(&[]));
        assert_eq!(json.status.code(), text.status.code());
        Said {
            code: json.status.code(),
            report: serde_json::from_slice(&json.stdout).unwrap_or_default(),
            text: String::from_utf8_lossy(&text.stdout).into_owned()
                + &String::from_utf8_lossy(&text.stderr),
        }
    }
}

impl Said {
    /// The records that are named as bad: session and seq.
    fn named(&self) -> Vec<(String, u64)> {
        let places = ["/first_bad", "/completeness/first_bad"];
        places
            .iter()
            .filter_map(|place| self.report.pointer(place))
            .filter(|bad| bad.is_object())
            .map(|bad| {
                let (session, seq) =
                    (bad["session"].as_str().unwrap(), bad["seq"].as_u64().unwrap());
                assert!(
                    self.text.contains(&format!("record {seq} of session {session}")),
                    "people are told as well: {}",
                    self.text
                );
                (session.to_owned(), seq)
            })
            .collect()
    }

    fn found(&self, what: &str) -> Vec<(String, u64)> {
        assert_eq!(self.code, Some(1), "{what}: {}", self.text);
        assert_eq!(self.report["good"], false, "{what}");
        let named = self.named();
        assert!(!named.is_empty(), "{what}: no record is named: {}", self.text);
        named
    }
}

fn columns(connection: &Connection) -> Vec<String> {
    let mut statement = connection.prepare("SELECT name FROM pragma_table_info('record')").unwrap();
    let names = statement.query_map([], |row| row.get(0)).unwrap();
    names.map(Result::unwrap).collect()
}

fn value(connection: &Connection, column: &str, position: u32) -> Sql {
    let query = format!("SELECT {column} FROM record WHERE position = ?1");
    connection.query_row(&query, [position], |row| row.get(0)).unwrap()
}

/// Gives whether the file took it: some columns hold only one type, and some must hold something.
fn set(connection: &Connection, column: &str, position: u32, value: &Sql) -> bool {
    let update = format!("UPDATE record SET {column} = ?1 WHERE position = ?2");
    connection.execute(&update, (value, position)).is_ok()
}

/// One bit of a value is another; of a number that stands for a place, a high one.
fn flipped(column: &str, value: Sql) -> Sql {
    match value {
        Sql::Null => match column {
            "digest" | "commitment" => Sql::Blob(vec![1; 32]),
            _ => Sql::Text("x".to_owned()),
        },
        Sql::Integer(number) => Sql::Integer(number ^ 64),
        Sql::Text(text) => {
            let mut bytes = text.into_bytes();
            *bytes.last_mut().unwrap() ^= 1;
            Sql::Text(String::from_utf8(bytes).unwrap())
        }
        Sql::Blob(mut bytes) => {
            match bytes.first_mut() {
                Some(byte) => *byte ^= 1,
                None => bytes.push(1),
            }
            Sql::Blob(bytes)
        }
        other @ Sql::Real(_) => other,
    }
}

/// What stands at a position.
fn place(position: u32) -> (String, u64) {
    let session = if position % 2 == 1 { "a" } else { "b" };
    (session.to_owned(), u64::from(position.div_ceil(2)))
}

#[test]
fn an_untouched_copy_is_good() {
    let original = Original::new();
    let said = original.tampered(|_| {}).verify();
    assert_eq!(said.code, Some(0), "{}", said.text);
    assert_eq!(said.report["completeness"]["through"]["number"], 2);
    assert_eq!(said.report["authenticity"]["state"], "good");
}

#[test]
fn a_flipped_bit_in_any_column_is_found_and_its_record_named() {
    let original = Original::new();
    let all = columns(&open(&original.dir.path().join("journal.db")));
    assert_eq!(all.len(), 21, "{all:?}");
    for column in &all {
        // The first, some in the middle, and one that no checkpoint covers yet.
        for position in [1, 4, 5, 11] {
            let what = format!("{column} of {position}");
            let said = original
                .tampered(|file| {
                    let value = flipped(column, value(file, column, position));
                    assert!(set(file, column, position, &value), "{what}");
                })
                .verify();
            let named = said.found(&what);
            // What a record is named by may itself be what was changed.
            if !["session", "seq", "position"].contains(&column.as_str()) {
                assert!(named.contains(&place(position)), "{what}: {named:?}");
            }
        }
    }
}

#[test]
fn a_value_of_any_column_that_was_emptied_or_taken_from_another_record_is_found() {
    let original = Original::new();
    let mut tried: HashMap<String, u32> = HashMap::new();
    for column in columns(&open(&original.dir.path().join("journal.db"))) {
        let mut found = |what: &str, change: &dyn Fn(&Connection) -> bool| {
            let mut took = false;
            let said = original.tampered(|file| took = change(file));
            if took {
                said.verify().found(&format!("{column}: {what}"));
                *tried.entry(column.clone()).or_default() += 1;
            }
        };
        found("emptied", &|file| {
            value(file, &column, 6) != Sql::Null && set(file, &column, 6, &Sql::Null)
        });
        found("of another type", &|file| {
            let other = match value(file, &column, 6) {
                Sql::Text(text) => Sql::Blob(text.into_bytes()),
                Sql::Integer(_) => Sql::Integer(-1),
                _ => Sql::Blob(Vec::new()),
            };
            set(file, &column, 6, &other)
        });
        found("made up", &|file| {
            let made_up = Sql::Text("made up".to_owned());
            matches!(value(file, &column, 6), Sql::Text(_)) && set(file, &column, 6, &made_up)
        });
        // The neighbour in the session, and one of the other session.
        for (one, other) in [(4, 6), (4, 7)] {
            found("swapped", &|file| {
                let (first, second) = (value(file, &column, one), value(file, &column, other));
                if first == second {
                    return false;
                }
                let away = match &first {
                    Sql::Integer(_) => Sql::Integer(99),
                    Sql::Blob(_) => Sql::Blob(vec![0; 32]),
                    _ => Sql::Text("away".to_owned()),
                };
                if column == "position" {
                    let update = "UPDATE record SET position = ?1 WHERE position = ?2";
                    return [(99, one), (one, other), (other, 99)]
                        .iter()
                        .all(|swap| file.execute(update, *swap).is_ok());
                }
                set(file, &column, one, &away)
                    && set(file, &column, other, &first)
                    && set(file, &column, one, &second)
            });
        }
    }
    assert_eq!(tried.len(), 21, "every column was tried: {tried:?}");
}

/// Everything that somebody with the file, and without the key, can do to make the chains hold again.
fn rechain(file: &Connection) {
    let columns = "position, session, time, protocol, agent, door, key, turn, action, kind, reader, event_id, body,
        findings, gate, level, digest, commitment";
    file.execute_batch("UPDATE record SET seq = -position").unwrap();
    let mut statement =
        file.prepare(&format!("SELECT {columns} FROM record ORDER BY position")).unwrap();
    let mut rows = statement.query([]).unwrap();
    let mut heads = HashMap::<String, (i64, [u8; 32])>::new();
    while let Some(row) = rows.next().unwrap() {
        let text = |index| row.get::<_, String>(index).unwrap();
        let optional = |index| row.get::<_, Option<String>>(index).unwrap();
        let session = text(1);
        let (turn, action, event_id) = (optional(7), optional(8), optional(11));
        let (findings, gate, level) = (optional(13), optional(14), text(15));
        let head = heads.entry(session.clone()).or_insert((0, [0; 32]));
        head.0 += 1;
        let link = Link {
            session: &session,
            seq: head.0.try_into().unwrap(),
            time: &text(2),
            protocol: &text(3),
            agent: &text(4),
            door: &text(5),
            key: &text(6),
            turn: turn.as_deref(),
            action: action.as_deref(),
            kind: &text(9),
            reader: row.get(10).unwrap(),
            event_id: event_id.as_deref(),
            body: digest(&row.get::<_, Vec<u8>>(12).unwrap()),
            findings: findings.as_deref(),
            gate: gate.as_deref(),
            prev: head.1,
            kept: Kept {
                level: &level,
                digest: row.get(16).unwrap(),
                commitment: row.get(17).unwrap(),
            },
        };
        let (prev, hash) = (head.1, link.hash());
        head.1 = hash;
        let position: i64 = row.get(0).unwrap();
        let set = "UPDATE record SET seq = ?2, prev = ?3, hash = ?4 WHERE position = ?1";
        file.execute(set, (position, head.0, prev, hash)).unwrap();
        let set = "UPDATE session SET seq = ?2, hash = ?3, position = ?4 WHERE session = ?1";
        file.execute(set, (&session, head.0, hash, position)).unwrap();
    }
}

const SWAP: &str = "UPDATE record SET position = -1 WHERE position = 3;
    UPDATE record SET position = 3 WHERE position = 5;
    UPDATE record SET position = 5 WHERE position = -1;";
/// A session with every trace of it.
const SESSION: &str =
    "DELETE FROM record WHERE session = 'b'; DELETE FROM session WHERE session = 'b';
    DELETE FROM held WHERE position % 2 = 0;";
const TAIL: &str = "DELETE FROM record WHERE position > 8; DELETE FROM held WHERE position > 8;";

#[test]
fn what_was_removed_moved_or_put_in_is_found() {
    let original = Original::new();
    for (what, sql, expected) in [
        ("the first record", "DELETE FROM record WHERE position = 1", ("a", 1)),
        ("one in the middle", "DELETE FROM record WHERE position = 5", ("a", 3)),
        ("the last that is signed", "DELETE FROM record WHERE position = 10", ("b", 5)),
        ("the very last", "DELETE FROM record WHERE position = 12", ("b", 6)),
        ("a whole session", "DELETE FROM record WHERE session = 'b'", ("b", 1)),
        ("a whole session, every trace of it", SESSION, ("b", 1)),
        ("the tail", TAIL, ("a", 5)),
        ("two that changed places", SWAP, ("a", 3)),
        (
            "the sequence turned round",
            "UPDATE record SET seq = -seq WHERE session = 'a';
             UPDATE record SET seq = 7 + seq WHERE session = 'a'",
            ("a", 6),
        ),
        (
            "the head set back",
            "UPDATE session SET seq = 5, hash = (SELECT hash FROM record WHERE session = 'a' AND seq = 5)
                 WHERE session = 'a'",
            ("a", 6),
        ),
        (
            "one that was there, once more",
            "INSERT INTO record SELECT 13, session, 7, time, kind, protocol, agent, door, key, turn, action,
                 NULL, reader, body, findings, gate, prev, hash, level, digest, commitment
                 FROM record WHERE position = 11",
            ("a", 7),
        ),
        (
            "a cut that retention did not make",
            "INSERT INTO cut SELECT session, seq, hash, time, 'age', 1 FROM record WHERE position = 3;
             DELETE FROM record WHERE session = 'a' AND seq <= 2; DELETE FROM held WHERE position IN (1, 3)",
            ("a", 2),
        ),
    ] {
        let said = original.tampered(|file| file.execute_batch(sql).unwrap()).verify();
        let named = said.found(what);
        let expected = (expected.0.to_owned(), expected.1);
        assert!(named.contains(&expected), "{what}: {named:?} {}", said.text);
    }
}

/// The chains hold again, so integrity is good; what was signed and kept elsewhere is not there.
#[test]
fn a_journal_that_was_hashed_anew_without_the_key_is_found() {
    let original = Original::new();
    for (what, sql, expected) in [
        ("changed", "UPDATE record SET body = x'00' WHERE position = 2", ("b", 3)),
        ("changed late", "UPDATE record SET agent = 'other' WHERE position = 9", ("a", 5)),
        (
            "removed",
            "DELETE FROM record WHERE position = 4; DELETE FROM held WHERE position = 4",
            ("b", 3),
        ),
        ("swapped", SWAP, ("a", 3)),
        ("the tail cut off", TAIL, ("a", 5)),
        (
            "all but one of a session",
            "DELETE FROM record WHERE session = 'b' AND seq > 1;
             DELETE FROM held WHERE position % 2 = 0 AND position > 2",
            ("b", 2),
        ),
    ] {
        let tampered = original.tampered(|file| {
            file.execute_batch(sql).unwrap();
            if what == "swapped" {
                let swap = SWAP.replace("UPDATE record", "UPDATE held");
                file.execute_batch(&swap).unwrap();
            }
            rechain(file);
        });
        let said = tampered.verify();
        assert_eq!(said.report["intact"], true, "{what}: {}", said.text);
        let named = said.found(what);
        assert!(named.contains(&(expected.0.to_owned(), expected.1)), "{what}: {named:?}");
        // Also by the checkpoints in the journal itself, as long as they are there.
        assert_eq!(tampered.verify_with(&[]).code, Some(1), "{what}");
    }
}

#[test]
fn checkpoints_that_were_removed_forged_or_made_by_another_are_found() {
    let original = Original::new();
    let forged = |said: &Said| said.report["authenticity"]["first_bad"]["what"].clone();
    for (what, sql, expected) in [
        ("the last removed", "DELETE FROM checkpoint WHERE number = 2", "absent"),
        ("the first removed", "DELETE FROM checkpoint WHERE number = 1", "link"),
        ("all removed", "DELETE FROM checkpoint", "absent"),
        ("unreadable", "UPDATE checkpoint SET document = '{}' WHERE number = 2", "unreadable"),
        (
            "changed",
            "UPDATE checkpoint SET document = replace(document, '\"seq\":3', '\"seq\":2')",
            "signature",
        ),
        ("of another journal", "UPDATE meta SET value = 'other' WHERE name = 'epoch'", "epoch"),
    ] {
        let said = original.tampered(|file| file.execute_batch(sql).unwrap()).verify();
        assert_eq!(said.code, Some(1), "{what}: {}", said.text);
        assert_eq!(forged(&said), expected, "{what}: {}", said.text);
    }
    // Everything made anew and signed with a key of the thief's own.
    let anew = original.tampered(|file| {
        file.execute_batch(
            "DELETE FROM checkpoint; UPDATE record SET gate = NULL WHERE position = 1",
        )
        .unwrap();
        rechain(file);
    });
    let thief = SigningKey::from_seed(&[9; 32]);
    Archive::open(&anew.dir.path().join("journal.db")).unwrap().checkpoint(&thief, at(99)).unwrap();
    let said = anew.verify_with(&["--key", &original.pin]);
    assert_eq!((said.code, forged(&said)), (Some(1), json!("key")), "{}", said.text);
    let kept = original.kept(10);
    let said = anew.verify_with(&["--checkpoint", kept.to_str().unwrap()]);
    assert_eq!((said.code, forged(&said)), (Some(1), json!("replaced")), "{}", said.text);
    assert!(said.found("anew").contains(&("a".to_owned(), 3)), "{}", said.text);
    // Nobody who has neither can tell, and is told so.
    let said = anew.verify_with(&[]);
    assert_eq!(said.code, Some(0), "{}", said.text);
    assert!(said.text.contains("Authenticity: unknown, signed with"), "{}", said.text);
    // The shown file itself was changed.
    let text = std::fs::read_to_string(&kept).unwrap();
    std::fs::write(&kept, text.replace("\"seq\":5", "\"seq\":4")).unwrap();
    let said = original.tampered(|_| {}).verify();
    assert_eq!((said.code, forged(&said)), (Some(1), json!("signature")), "{}", said.text);
}

#[test]
fn an_older_copy_that_was_put_back_is_found_up_to_the_checkpoint_that_is_shown() {
    let original = Original::new();
    let back = original.tampered(|_| {});
    let path = back.dir.path().join("journal.db");
    std::fs::copy(original.dir.path().join("older.db"), &path).unwrap();
    // Sound in itself, and complete for whoever knows the older checkpoint alone.
    let older = original.kept(6);
    let said = back.verify_with(&["--checkpoint", older.to_str().unwrap(), "--key", &original.pin]);
    assert_eq!(said.code, Some(0), "{}", said.text);
    let said = back.verify();
    let named = said.found("rolled back");
    assert!(
        named.contains(&("b".to_owned(), 4)) || named.contains(&("a".to_owned(), 5)),
        "{named:?}"
    );
    assert_eq!(said.report["authenticity"]["first_bad"]["what"], "absent");
}

#[test]
fn the_last_record_of_a_session_cannot_be_moved_to_another_place() {
    let original = Original::new();
    let sql = "DELETE FROM held; UPDATE record SET position = 99 WHERE position = 11";
    let said = original.tampered(|file| file.execute_batch(sql).unwrap()).verify();
    assert_eq!(said.found("moved"), [("a".to_owned(), 6)], "{}", said.text);
}

#[test]
fn what_is_newer_than_the_last_checkpoint_can_be_taken_away_and_that_is_said() {
    let original = Original::new();
    let said = original
        .tampered(|file| {
            let newest =
                "DELETE FROM record WHERE position > 10; DELETE FROM held WHERE position > 10";
            file.execute_batch(newest).unwrap();
            rechain(file);
        })
        .verify();
    assert_eq!(said.code, Some(0), "{}", said.text);
    assert!(said.text.contains("good up to checkpoint 2"), "{}", said.text);
}
