use std::fs;

use banister_journal::verify::{Authenticity, Completeness, Pruned};
use banister_journal::{Bad, Capture, DigestKey, Draft, Journal, Level, Report, Retention, What};
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags};
use serde_json::json;

use crate::support::{Place, at, change, draft, key, recorded, wait};

/// Two sessions of five records each, interleaved: "a" at 1, 3, 5, 7, 9 and "b" at 2, 4, 6, 8, 10.
fn filled() -> Place {
    let place = Place::new();
    let journal = place.open();
    for number in 0..10 {
        let full = Draft {
            action: Some("act_1".to_owned()),
            event_id: Some(format!("evt_{number}")),
            findings: json!([{ "code": "AEP-REQ-03" }]),
            gate: Some(json!({ "risk": "high" })),
            ..draft(if number % 2 == 0 { "a" } else { "b" }, &format!("body {number}"))
        };
        recorded(&journal, vec![full]);
    }
    place
}

fn verify_after(sql: &str) -> Report {
    let place = filled();
    change(&place, sql);
    Journal::verify(&place.path()).unwrap()
}

fn bad(position: u64, session: &str, seq: u64, what: What) -> Bad {
    Bad { position, session: session.to_owned(), seq, what }
}

#[test]
fn an_untouched_journal_is_clean_and_stays_as_it_is() {
    let place = filled();
    let before = fs::read(place.path()).unwrap();
    let epoch = place.open().epoch().to_owned();
    let report = Journal::verify(&place.path()).unwrap();
    let clean = Report {
        epoch,
        records: 10,
        sessions: 2,
        head: 10,
        bad: 0,
        first_bad: None,
        storage: None,
        held: 0,
        pruned: Pruned::default(),
        completeness: Completeness::default(),
        authenticity: Authenticity::default(),
    };
    assert_eq!(report, clean);
    assert!(report.is_clean());
    assert_eq!(fs::read(place.path()).unwrap(), before);
}

#[test]
fn a_change_in_any_column_is_found_and_named() {
    let changes = [
        "time = '2026-05-04T10:00:00+00:00'",
        "kind = 'answer'",
        "protocol = 'aep'",
        "agent = 'codex'",
        "door = 'http'",
        "key = 'k_2'",
        "turn = NULL",
        "action = ''",
        "event_id = 'evt_x'",
        "reader = 2",
        "body = CAST('body 5' AS BLOB)",
        "findings = '[{\"code\": \"AEP-REQ-03\"}]'",
        "gate = '{\"risk\":\"low\"}'",
        "prev = zeroblob(32)",
    ];
    for change in changes {
        let report = verify_after(&format!("UPDATE record SET {change} WHERE position = 5"));
        let expected = Some(bad(5, "a", 3, What::Content));
        assert_eq!((report.first_bad, report.bad), (expected, 1), "{change}");
    }
    let report = verify_after("UPDATE record SET hash = zeroblob(32) WHERE position = 5");
    assert_eq!((report.first_bad, report.bad), (Some(bad(5, "a", 3, What::Content)), 2));
    let report = verify_after("UPDATE record SET hash = x'00' WHERE position = 5");
    assert_eq!(report.first_bad, Some(bad(5, "a", 3, What::Unreadable)));
}

#[test]
fn a_removed_record_is_found_wherever_it_stood() {
    for (position, near, seq) in [(1, 3, 1), (5, 7, 3), (9, 7, 5)] {
        let report = verify_after(&format!("DELETE FROM record WHERE position = {position}"));
        assert_eq!((report.first_bad, report.bad), (Some(bad(near, "a", seq, What::Missing)), 1));
    }
    let report = verify_after("DELETE FROM record WHERE session = 'b'");
    assert_eq!((report.first_bad, report.bad), (Some(bad(0, "b", 1, What::Missing)), 1));
}

#[test]
fn records_that_changed_places_are_found() {
    let report = verify_after(
        "UPDATE record SET seq = -1 WHERE position = 3;
         UPDATE record SET seq = 2 WHERE position = 5;
         UPDATE record SET seq = 3 WHERE position = 3;",
    );
    assert_eq!(report.first_bad, Some(bad(3, "a", 3, What::Content)));
    let report = verify_after(
        "UPDATE record SET position = -1 WHERE position = 3;
         UPDATE record SET position = 3 WHERE position = 5;
         UPDATE record SET position = 5 WHERE position = -1;",
    );
    assert_eq!(report.first_bad, Some(bad(3, "a", 3, What::Order)));
    let report = verify_after("UPDATE record SET session = 'b', seq = 6 WHERE position = 9");
    assert_eq!(report.first_bad, Some(bad(7, "a", 5, What::Missing)));
    assert_eq!(report.bad, 3);
}

#[test]
fn a_record_put_in_or_a_head_set_back_is_found() {
    let report = verify_after(
        "INSERT INTO record SELECT 11, session, 6, time, kind, protocol, agent, door, key, turn, action, NULL,
             reader, body, findings, gate, hash, zeroblob(32), level, digest, commitment FROM record WHERE position = 9",
    );
    assert_eq!(report.first_bad, Some(bad(11, "a", 6, What::Content)));
    let report = verify_after("UPDATE session SET seq = 4 WHERE session = 'a'");
    assert_eq!(report.first_bad, Some(bad(9, "a", 5, What::Head)));
    let report = verify_after("DELETE FROM session WHERE session = 'a'");
    assert_eq!(report.first_bad, Some(bad(9, "a", 5, What::Head)));
}

/// A record that was made up with a right hash of its own still does not follow on its predecessor.
#[test]
fn a_chain_spliced_from_another_journal_is_found() {
    let (place, other) = (filled(), Place::new());
    let forged = other.open();
    recorded(&forged, ["x", "y", "z"].map(|body| draft("a", body)).to_vec());
    drop(forged);
    change(
        &place,
        &format!(
            "ATTACH '{}' AS other;
             DELETE FROM record WHERE position = 5;
             INSERT INTO record SELECT 5, session, seq, time, kind, protocol, agent, door, key, turn, action,
                 event_id, reader, body, findings, gate, prev, hash, level, digest, commitment FROM other.record WHERE position = 3",
            other.path().display()
        ),
    );
    let report = Journal::verify(&place.path()).unwrap();
    assert_eq!((report.first_bad, report.bad), (Some(bad(5, "a", 3, What::Link)), 2));
}

#[test]
fn one_byte_changed_in_the_file_is_found() {
    let place = filled();
    let mut bytes = fs::read(place.path()).unwrap();
    let at = bytes.windows(6).position(|window| window == b"body 4").unwrap();
    bytes[at + 5] ^= 1;
    fs::write(place.path(), &bytes).unwrap();
    let report = Journal::verify(&place.path()).unwrap();
    assert_eq!((report.first_bad, report.bad), (Some(bad(5, "a", 3, What::Content)), 1));
}

/// Not every byte of the file is a record's. Those that are cannot change unnoticed.
#[test]
fn whatever_bit_is_flipped_it_is_found_or_every_record_is_as_it_was() {
    let pristine = fs::read(filled().path()).unwrap();
    let place = Place::new();
    let rows = || -> Option<Vec<Vec<Value>>> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let connection = Connection::open_with_flags(place.path(), flags).ok()?;
        let mut statement = connection.prepare("SELECT * FROM record ORDER BY position").ok()?;
        let count = statement.column_count();
        let rows =
            statement.query_map([], |row| (0..count).map(|index| row.get(index)).collect()).ok()?;
        rows.collect::<Result<_, _>>().ok()
    };
    fs::write(place.path(), &pristine).unwrap();
    let before = rows().unwrap();
    let (mut found, mut harmless) = (0, 0);
    // Steps that meet every page at other places.
    for step in 0..600_usize {
        let mut bytes = pristine.clone();
        let bit = step * 7_919 * 8 + step % 8;
        let at = bit / 8 % bytes.len();
        bytes[at] ^= 1 << (bit % 8);
        fs::write(place.path(), &bytes).unwrap();
        match Journal::verify(&place.path()) {
            Ok(report) if report.is_clean() => {
                assert_eq!(rows().as_ref(), Some(&before), "bit {bit} went unnoticed");
                harmless += 1;
            }
            _ => found += 1,
        }
    }
    assert!(found > 20 && harmless > 20, "{found} found, {harmless} harmless");
}

#[test]
fn a_wrecked_file_is_reported_and_never_clean() {
    let pristine = fs::read(filled().path()).unwrap();
    for page in 1..pristine.len() / 4096 {
        let place = Place::new();
        let mut bytes = pristine.clone();
        bytes[page * 4096..(page + 1) * 4096].fill(0xa5);
        fs::write(place.path(), &bytes).unwrap();
        match Journal::verify(&place.path()) {
            Ok(report) => assert!(!report.is_clean(), "page {page}: {report:?}"),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

#[test]
fn a_file_that_was_cut_short_is_reported_and_never_clean() {
    let pristine = fs::read(filled().path()).unwrap();
    for page in 1..pristine.len() / 4096 {
        let place = Place::new();
        fs::write(place.path(), &pristine[..page * 4096]).unwrap();
        match Journal::verify(&place.path()) {
            Ok(report) => assert!(!report.is_clean(), "page {page}: {report:?}"),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

/// Whoever reads the reference page can check a journal with it.
#[test]
fn the_verifier_in_the_documentation_agrees() {
    let page = include_str!("../../../../docs/reference/journal.md");
    let program = page.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    let verify = |place: &Place| {
        let output =
            std::process::Command::new("python3").args(["-c", program]).arg(place.path()).output();
        if output.is_err() {
            eprintln!("NOT TESTED: python3 is not installed");
        }
        output.ok().map(|output| String::from_utf8(output.stdout).unwrap())
    };
    let place = filled();
    let journal = place.open();
    let digests = DigestKey::from_bytes([1; 32]);
    for level in Level::ALL {
        let capture = Capture { level, redact: &|_| Vec::new(), digest_key: &digests };
        recorded(&journal, vec![capture.hold(draft("c", "held"))]);
    }
    let before = Some(at(1));
    let pruned = Draft { time: at(9), ..draft("a", "x") };
    recorded(&journal, vec![pruned]);
    let retention = Retention { before, ..Retention::default() };
    wait(journal.prune(retention, &key(), at(10))).unwrap();
    drop(journal);
    let Some(said) = verify(&place) else { return };
    assert_eq!(said, "5 records, 0 bad\n");
    change(&place, "UPDATE record SET level = 'full' WHERE position = 12");
    assert_eq!(verify(&place).unwrap(), "5 records, 1 bad\n");
}
