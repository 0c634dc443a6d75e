use banister_journal::chain::{Kept, Link, digest};
use banister_journal::verify::{BadCheckpoint, Forgery, State, Through};
use banister_journal::{
    Archive, Bad, Checkpoint, Draft, Evidence, Journal, Report, SigningKey, What,
};
use rusqlite::{Connection, OpenFlags};

use crate::support::{Place, at, change, draft, key, recorded, wait};

/// "a" at 1, 3, 5, 7, 9 and "b" at 2, 4, 6, 8, 10; checkpoint 1 after the sixth record, checkpoint 2 after the tenth. Then
/// one more of each that no checkpoint covers.
fn filled() -> (Place, Vec<Checkpoint>) {
    let place = Place::new();
    let journal = place.open();
    let mut checkpoints = Vec::new();
    for number in 0..12_i64 {
        let session = if number % 2 == 0 { "a" } else { "b" };
        recorded(
            &journal,
            vec![Draft { time: at(number), ..draft(session, &format!("{number}")) }],
        );
        if number == 5 || number == 9 {
            checkpoints.extend(wait(journal.checkpoint(&key(), at(number))).unwrap());
        }
    }
    (place, checkpoints)
}

fn verify(place: &Place, checkpoints: &[Checkpoint]) -> Report {
    let evidence = Evidence { checkpoints: checkpoints.to_vec(), pins: vec![key().public()] };
    Journal::verify_with(&place.path(), &evidence).unwrap()
}

fn bad(position: u64, session: &str, seq: u64, what: What) -> Bad {
    Bad { position, session: session.to_owned(), seq, what }
}

/// Everything that somebody with the file, and without the key, can do to make the chains hold again.
fn rechain(place: &Place) {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
    let connection = Connection::open_with_flags(place.path(), flags).unwrap();
    let columns = "position, session, time, protocol, agent, door, key, turn, action, kind, reader, event_id, body";
    let mut statement =
        connection.prepare(&format!("SELECT {columns} FROM record ORDER BY position")).unwrap();
    connection.execute_batch("UPDATE record SET seq = -position").unwrap();
    let mut rows = statement.query([]).unwrap();
    let mut heads = std::collections::HashMap::<String, (i64, [u8; 32])>::new();
    while let Some(row) = rows.next().unwrap() {
        let text = |index| row.get::<_, String>(index).unwrap();
        let optional = |index| row.get::<_, Option<String>>(index).unwrap();
        let session = text(1);
        let (turn, action, event_id) = (optional(7), optional(8), optional(11));
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
            findings: None,
            gate: None,
            prev: head.1,
            kept: Kept::FULL,
        };
        let (prev, hash) = (head.1, link.hash());
        head.1 = hash;
        let set = "UPDATE record SET seq = ?2, prev = ?3, hash = ?4 WHERE position = ?1";
        let position: i64 = row.get(0).unwrap();
        connection.execute(set, (position, head.0, prev, hash)).unwrap();
        let set = "UPDATE session SET seq = ?2, hash = ?3, position = ?4 WHERE session = ?1";
        connection.execute(set, (&session, head.0, hash, position)).unwrap();
    }
}

#[test]
fn an_untouched_journal_is_complete_and_authentic_up_to_its_last_checkpoint() {
    let (place, checkpoints) = filled();
    let report = verify(&place, &[]);
    assert!(report.is_clean(), "{report:?}");
    let through = |shown| Some(Through { number: 2, time: at(9).to_string(), shown });
    assert_eq!(report.completeness.state, State::Good);
    assert_eq!(report.completeness.through, through(false));
    assert_eq!(report.authenticity.state, State::Good);
    assert_eq!(report.authenticity.keys, [key().public()]);
    let report = verify(&place, &checkpoints);
    assert!(report.is_clean(), "{report:?}");
    assert_eq!((report.completeness.shown, report.completeness.through), (2, through(true)));

    // Without a pin nobody knows whose key it is.
    let report = Journal::verify(&place.path()).unwrap();
    assert_eq!(report.authenticity.state, State::Unknown);
    assert_eq!(report.completeness.state, State::Good);
    assert!(report.is_clean());
}

#[test]
fn a_change_with_all_hashes_made_anew_is_found_and_named() {
    for (sql, expected) in [
        ("UPDATE record SET body = x'00' WHERE position = 3", bad(5, "a", 3, What::Signed)),
        ("UPDATE record SET agent = 'codex' WHERE position = 8", bad(10, "b", 5, What::Signed)),
        // The chain has closed over the gap: the third record of "b" is another one now.
        ("DELETE FROM record WHERE position = 4", bad(8, "b", 3, What::Signed)),
    ] {
        let (place, checkpoints) = filled();
        change(&place, sql);
        rechain(&place);
        for shown in [&checkpoints[..], &[]] {
            let report = verify(&place, shown);
            assert!(report.is_intact(), "{sql}: {report:?}");
            assert_eq!(report.completeness.state, State::Bad, "{sql}");
            assert_eq!(report.completeness.first_bad, Some(expected.clone()), "{sql}");
            assert!(!report.is_clean());
        }
    }
}

#[test]
fn two_records_that_changed_places_with_all_hashes_made_anew_are_found() {
    let (place, checkpoints) = filled();
    change(
        &place,
        "UPDATE record SET position = -1 WHERE position = 1;
         UPDATE record SET position = 1 WHERE position = 3;
         UPDATE record SET position = 3 WHERE position = -1;",
    );
    rechain(&place);
    let report = verify(&place, &checkpoints);
    assert!(report.is_intact(), "{report:?}");
    assert_eq!(report.completeness.first_bad, Some(bad(5, "a", 3, What::Signed)));
}

#[test]
fn a_tail_that_was_cut_off_is_found_up_to_the_last_checkpoint() {
    // The last two are not covered yet: nobody can tell.
    let (place, checkpoints) = filled();
    change(&place, "DELETE FROM record WHERE position > 10");
    rechain(&place);
    assert!(verify(&place, &checkpoints).is_clean());

    let (place, checkpoints) = filled();
    change(&place, "DELETE FROM record WHERE position > 7");
    rechain(&place);
    for shown in [&checkpoints[..], &[]] {
        let report = verify(&place, shown);
        assert!(report.is_intact(), "{report:?}");
        assert_eq!(report.completeness.first_bad, Some(bad(6, "b", 4, What::Missing)));
    }

    // With the checkpoint removed as well, only the copy can tell.
    change(&place, "DELETE FROM checkpoint WHERE number = 2");
    assert!(verify(&place, &[]).is_clean());
    let report = verify(&place, &checkpoints[1..]);
    assert_eq!(report.completeness.first_bad, Some(bad(6, "b", 4, What::Missing)));
    let absent = BadCheckpoint { number: 2, shown: true, what: Forgery::Absent };
    assert_eq!(report.authenticity.first_bad, Some(absent));
}

#[test]
fn a_session_that_was_removed_without_a_trace_is_found() {
    let (place, checkpoints) = filled();
    change(
        &place,
        "DELETE FROM record WHERE session = 'b'; DELETE FROM session WHERE session = 'b'",
    );
    let report = verify(&place, &checkpoints);
    assert!(report.is_intact(), "{report:?}");
    assert_eq!(report.completeness.first_bad, Some(bad(0, "b", 1, What::Missing)));
}

#[test]
fn a_whole_new_journal_signed_with_another_key_is_found() {
    let (place, checkpoints) = filled();
    let thief = SigningKey::from_seed(&[9; 32]);
    change(&place, "DELETE FROM checkpoint; UPDATE record SET body = x'00' WHERE position = 1");
    rechain(&place);
    Archive::open(&place.path()).unwrap().checkpoint(&thief, at(99)).unwrap();
    let report = verify(&place, &[]);
    assert!(report.is_intact());
    let forged = BadCheckpoint { number: 1, shown: false, what: Forgery::Key };
    assert_eq!(report.authenticity.first_bad, Some(forged));
    // Without a pin, the copy finds it.
    let evidence = Evidence { checkpoints: checkpoints[..1].to_vec(), pins: Vec::new() };
    let report = Journal::verify_with(&place.path(), &evidence).unwrap();
    let replaced = BadCheckpoint { number: 1, shown: true, what: Forgery::Replaced };
    assert_eq!(report.authenticity.first_bad, Some(replaced));
    assert_eq!(report.completeness.first_bad, Some(bad(5, "a", 3, What::Signed)));
}

#[test]
fn a_checkpoint_that_was_changed_removed_or_put_elsewhere_is_found() {
    let cases = [
        (
            "UPDATE checkpoint SET document = replace(document, '\"seq\":3', '\"seq\":2')",
            1,
            Forgery::Signature,
        ),
        (
            "UPDATE checkpoint SET document = replace(document, '2026', '2025')",
            1,
            Forgery::Signature,
        ),
        ("UPDATE checkpoint SET document = '{}' WHERE number = 2", 2, Forgery::Unreadable),
        ("DELETE FROM checkpoint WHERE number = 1", 2, Forgery::Link),
        ("UPDATE checkpoint SET number = 3 WHERE number = 2", 3, Forgery::Unreadable),
        ("UPDATE meta SET value = 'other' WHERE name = 'epoch'", 1, Forgery::Epoch),
    ];
    for (sql, number, what) in cases {
        let (place, _) = filled();
        change(&place, sql);
        let report = verify(&place, &[]);
        let found = BadCheckpoint { number, shown: false, what };
        assert_eq!(report.authenticity.first_bad, Some(found), "{sql}");
        assert!(report.is_intact() && !report.is_clean(), "{sql}");
    }
    let (place, _) = filled();
    let (_other, foreign) = filled();
    let report = verify(&place, &foreign[..1]);
    let found = BadCheckpoint { number: 1, shown: true, what: Forgery::Epoch };
    assert_eq!(report.authenticity.first_bad, Some(found));
}

#[test]
fn the_exported_form_is_read_back_and_nothing_else_is() {
    let (_place, checkpoints) = filled();
    for checkpoint in &checkpoints {
        assert_eq!(Checkpoint::parse(&checkpoint.to_json()).unwrap(), *checkpoint);
        assert!(checkpoint.is_signed());
        let mut other = checkpoint.clone();
        other.heads[0].seq += 1;
        assert!(!other.is_signed());
    }
    let text = checkpoints[0].to_json();
    for wrong in [
        "",
        "{}",
        "[]",
        text.strip_prefix('{').unwrap(),
        &text.replace("/v1", "/v2"),
        &text.replace("key\":\"", "key\":\"0"),
    ] {
        Checkpoint::parse(wrong).unwrap_err();
    }
}

#[test]
fn a_checkpoint_can_be_made_beside_a_writer() {
    let place = Place::new();
    let journal = place.open();
    let archive = {
        recorded(&journal, vec![draft("a", "1")]);
        Archive::open(&place.path()).unwrap()
    };
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 0..200 {
                recorded(&journal, vec![draft("a", "x"), draft(&number.to_string(), "y")]);
                if number % 10 == 0 {
                    wait(journal.checkpoint(&key(), at(number))).unwrap();
                }
            }
        });
        while !writer.is_finished() {
            archive.checkpoint(&key(), at(0)).unwrap();
        }
    });
    archive.checkpoint(&key(), at(1)).unwrap();
    let report = verify(&place, &[]);
    assert!(report.is_clean() && report.completeness.checkpoints > 20, "{report:?}");
    assert_eq!(archive.last_checkpoint().unwrap().unwrap().number, report.completeness.checkpoints);
    let heads: Vec<_> = archive.checkpoints(0, usize::MAX).unwrap();
    let a = heads.iter().flat_map(|checkpoint| &checkpoint.heads).rfind(|head| head.session == "a");
    assert_eq!(a.unwrap().seq, 201);
}

#[test]
fn many_heads_make_several_checkpoints() {
    let place = Place::new();
    let journal = place.open();
    let sessions = 4096 + 10;
    for chunk in 0..sessions / 2 {
        let drafts = vec![draft(&format!("{chunk}"), "x"), draft(&format!("{chunk}b"), "x")];
        wait(journal.append(drafts, banister_journal::Durability::Written)).unwrap();
    }
    let made = wait(journal.checkpoint(&key(), at(0))).unwrap();
    let counts: Vec<_> = made.iter().map(|checkpoint| checkpoint.heads.len()).collect();
    assert_eq!(counts, [4096, 10]);
    assert!(verify(&place, &made).is_clean());
}
