use banister_journal::{
    Appended, Bad, Capture, DigestKey, Draft, Durability, Indexed, Journal, Level, What,
};
use serde_json::{Value, json};

use crate::support::{Place, change, draft, index, passage, recorded, wait, words};

fn hide(bytes: &[u8]) -> Vec<u8> {
    String::from_utf8_lossy(bytes).replace("hunter2", "***").into_bytes()
}

fn hidden(text: &str) -> String {
    text.replace("hunter2", "***")
}

fn secret(session: &str) -> Draft {
    Draft {
        action: Some("act_1".to_owned()),
        event_id: Some(format!("evt_{session}")),
        findings: json!([{ "message": "saw hunter2" }]),
        gate: Some(json!({ "rule": "r", "reason": "hunter2", "risk": 3 })),
        ..draft(session, "login hunter2")
    }
}

fn capture(level: Level, digest_key: &DigestKey) -> Capture<'_> {
    Capture { level, redact: &hide, digest_key }
}

#[test]
fn each_level_keeps_what_it_says_and_a_digest_of_the_rest() {
    let key = DigestKey::from_bytes([3; 32]);
    let place = Place::new();
    let journal = place.open();
    for level in Level::ALL {
        let entry = capture(level, &key).apply(secret(level.as_str()));
        let record = recorded(&journal, vec![entry]).remove(0);
        let said = passage("message", "user hunter2", "my word is hunter2, mine alone");
        index(&journal, Indexed::new(&record, said, &hidden).into_iter().collect());
    }
    let digest = Some(key.digest(b"login hunter2"));
    let records = journal.after(0, 9).unwrap();
    let [none, metadata, redacted, full] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!((none.body.as_ref(), none.captured.digest), (&b""[..], digest));
    assert_eq!(
        (&none.turn, &none.action, &none.findings, &none.gate),
        (&None, &None, &Value::Null, &None)
    );
    assert_eq!(none.event_id.as_deref(), Some("evt_none"));
    let gate = json!({ "rule": "r", "reason": "***", "risk": 3 });
    let findings = json!([{ "message": "saw ***" }]);
    assert_eq!((metadata.body.as_ref(), metadata.captured.digest), (&b""[..], digest));
    assert_eq!((&metadata.gate, &metadata.findings), (&Some(gate.clone()), &findings));
    assert_eq!(metadata.action.as_deref(), Some("act_1"));
    assert_eq!((redacted.body.as_ref(), redacted.captured.digest), (&b"login ***"[..], digest));
    assert_eq!((&redacted.gate, &redacted.findings), (&Some(gate), &findings));
    assert_eq!((full.body.as_ref(), full.captured.digest), (&b"login hunter2"[..], None));
    let levels: Vec<_> = records.iter().map(|record| record.captured.level).collect();
    assert_eq!(levels, Level::ALL);

    let sessions = |text: &str| -> Vec<_> {
        journal.search(&words(text)).unwrap().hits.into_iter().map(|hit| hit.session).collect()
    };
    assert_eq!(sessions("mine alone"), ["full", "redacted"]);
    assert_eq!(sessions("hunter2"), ["full"]);
    assert!(Journal::verify(&place.path()).unwrap().is_clean());
}

#[test]
fn what_has_no_secret_needs_no_digest() {
    let key = DigestKey::from_bytes([3; 32]);
    let entry = capture(Level::Redacted, &key).hold(draft("a", "plain"));
    let place = Place::new();
    let record = recorded(&place.open(), vec![entry]).remove(0);
    assert_eq!((record.body.as_ref(), record.captured.digest), (&b"plain"[..], None));
    assert_eq!((&record.captured.exact, record.captured.commitment), (&None, None));
}

#[test]
fn a_fact_of_the_callers_own_is_kept_in_the_form_it_was_given() {
    let key = DigestKey::from_bytes([3; 32]);
    let place = Place::new();
    let journal = place.open();
    for level in Level::ALL {
        let short = Draft { body: "login".into(), ..draft(level.as_str(), "") };
        let entry = capture(level, &key).instead(short, b"login hunter2");
        let record = recorded(&journal, vec![entry.holding("login hunter2".into())]).remove(0);
        assert_eq!((record.body.as_ref(), record.captured.level), (&b"login"[..], level));
        assert_eq!(record.captured.digest, Some(key.digest(b"login hunter2")));
        assert_eq!(record.exact().as_ref(), b"login hunter2");
        let said = passage("ask", "login", "hunter2, mine alone");
        index(&journal, Indexed::new(&record, said, &hidden).into_iter().collect());
    }
    let found = journal.search(&words("mine")).unwrap().hits;
    let found: Vec<_> = found.into_iter().map(|hit| hit.session).collect();
    assert_eq!(found, ["full", "redacted"]);
    let whole = capture(Level::None, &key).instead(draft("a", "all"), b"all");
    let record = recorded(&journal, vec![whole.holding("all".into())]).remove(0);
    assert_eq!((&record.captured.digest, &record.captured.exact), (&None, &None));
    assert_eq!(journal.held().unwrap().len(), 4);
    assert!(Journal::verify(&place.path()).unwrap().is_clean());
}

#[test]
fn the_same_message_is_known_again_at_every_level_and_another_is_not() {
    let key = DigestKey::from_bytes([3; 32]);
    for level in Level::ALL {
        let place = Place::new();
        let journal = place.open();
        let send = |body: &'static str| {
            let draft = Draft { body: body.into(), ..secret("a") };
            let entry = capture(level, &key).apply(draft);
            wait(journal.append(vec![entry], Durability::Synced)).unwrap()
        };
        assert!(matches!(send("hunter2"), Appended::Recorded(_)));
        assert!(
            matches!(send("hunter2"), Appended::Duplicate { same_bytes: true, .. }),
            "{level:?}"
        );
        // What is stored of it is the same at the lower levels; what came is not.
        assert!(
            matches!(send("other"), Appended::Duplicate { same_bytes: false, .. }),
            "{level:?}"
        );
    }
}

#[test]
fn the_level_and_the_digest_cannot_be_changed_unnoticed() {
    let key = DigestKey::from_bytes([3; 32]);
    let place = Place::new();
    let journal = place.open();
    for level in [Level::None, Level::Metadata, Level::Redacted, Level::Full] {
        recorded(&journal, vec![capture(level, &key).apply(secret(level.as_str()))]);
    }
    drop(journal);
    for (position, sql) in [
        (1, "level = 'full'"),
        (2, "level = 'none'"),
        (3, "digest = NULL"),
        (3, "digest = zeroblob(32)"),
        (3, "level = 'full', digest = NULL"),
        (3, "commitment = zeroblob(32)"),
        (4, "level = 'redacted'"),
        (4, "digest = zeroblob(32)"),
    ] {
        change(&place, "CREATE TABLE saved AS SELECT * FROM record");
        change(&place, &format!("UPDATE record SET {sql} WHERE position = {position}"));
        let report = Journal::verify(&place.path()).unwrap();
        let bad = report.first_bad.unwrap();
        assert_eq!((bad.position, bad.what), (position, What::Content), "{sql}");
        change(
            &place,
            "DELETE FROM record; INSERT INTO record SELECT * FROM saved; DROP TABLE saved",
        );
        assert!(Journal::verify(&place.path()).unwrap().is_clean());
    }
}

#[test]
fn held_bytes_are_verified_and_settling_leaves_the_chain_as_it_was() {
    let key = DigestKey::from_bytes([3; 32]);
    let place = Place::new();
    let journal = place.open();
    for level in [Level::None, Level::Metadata, Level::Redacted] {
        recorded(&journal, vec![capture(level, &key).hold(secret(level.as_str()))]);
    }
    let hashes: Vec<_> = journal.after(0, 9).unwrap().iter().map(|record| record.hash).collect();
    let report = Journal::verify(&place.path()).unwrap();
    assert!(report.is_clean() && report.held == 3, "{report:?}");

    change(&place, "UPDATE held SET body = CAST('login hunter3' AS BLOB) WHERE position = 2");
    let report = Journal::verify(&place.path()).unwrap();
    let bad = Bad { position: 2, session: "metadata".to_owned(), seq: 1, what: What::Held };
    assert_eq!((report.first_bad, report.bad), (Some(bad), 1));
    change(&place, "INSERT INTO held VALUES (99, zeroblob(32), x'00')");
    assert_eq!(Journal::verify(&place.path()).unwrap().bad, 2);
    change(&place, "DELETE FROM held WHERE position = 99");

    assert_eq!(wait(journal.settle(vec![1, 2, 3])).unwrap(), 3);
    let after: Vec<_> = journal.after(0, 9).unwrap();
    assert!(after.iter().map(|record| record.hash).eq(hashes));
    assert!(after.iter().all(|record| record.captured.exact.is_none()));
    assert!(
        after.iter().all(|record| record.captured.digest == Some(key.digest(b"login hunter2")))
    );
    assert!(Journal::verify(&place.path()).unwrap().is_clean());
}

/// The same bytes have the same digest, but commitments differ: without its salt none can be tried out.
#[test]
fn two_commitments_to_the_same_bytes_differ() {
    let key = DigestKey::from_bytes([3; 32]);
    let place = Place::new();
    let journal = place.open();
    let hold = |session| capture(Level::None, &key).hold(secret(session));
    let records = recorded(&journal, vec![hold("a"), hold("b")]);
    assert_eq!(records[0].captured.digest, records[1].captured.digest);
    assert_ne!(records[0].captured.commitment, records[1].captured.commitment);
}
