use std::collections::HashSet;

use banister_journal::{
    Appender, Draft, Error, Hit, Indexed, Order, Page, Part, Query, Source, Syntax,
};
use proptest::prelude::*;

use crate::support::{Place, at, draft, hold, index, indexed, recorded, wait, words};

/// One record for each text, and the text leads to it.
fn filled(texts: &[&str]) -> (Place, Appender) {
    let place = Place::new();
    let journal = place.open();
    for text in texts {
        let record = recorded(&journal, vec![draft("a", "x")]).remove(0);
        index(&journal, vec![indexed(&record, text)]);
    }
    (place, journal)
}

fn seqs(page: &Page) -> Vec<u64> {
    page.hits.iter().map(|hit| hit.seq).collect()
}

fn marked(parts: &[Part]) -> String {
    let mark =
        |part: &Part| if part.found { format!("[{}]", part.text) } else { part.text.clone() };
    parts.iter().map(mark).collect()
}

#[test]
fn words_of_every_script_are_found_in_the_midst_of_a_text() {
    let texts = [
        "この変更をコミットしてから、テストを3回実行した。",
        "مَرْحَبًا بِالعالَم، نفّذت الاختبارات",
        "我已经运行了所有的测试。",
        "서울에서 테스트를 실행했다",
        "ทดสอบระบบทั้งหมดแล้ว",
        "Der Prüflauf für Größe ist naïve fertig",
        "Все тесты прошли",
        "Έγινε ο έλεγχος",
        "שָׁלוֹם עולם",
    ];
    let (_place, journal) = filled(&texts);
    let cases = [
        ("テスト", 1, "[テスト]"),
        ("実行", 1, "[実行]"),
        ("コミット 回", 1, "[コミット]"),
        ("مرحبا", 2, "[مرحبا]"),
        ("الاختبارات", 2, "[الاختبارات]"),
        ("测试", 3, "[测试]"),
        ("运", 3, "[运]"),
        ("서울", 4, "[서울]"),
        ("테스트", 4, "[테스트]"),
        ("ระบบ", 5, "[ระบบ]"),
        ("pruflauf grosse", 0, ""),
        ("pruflauf NAIVE", 6, "[Prüflauf]"),
        ("ТЕСТЫ", 7, "[тесты]"),
        ("Έλεγχος", 8, "[έλεγχος]"),
        ("שלום", 9, "[שלום]"),
    ];
    for (text, seq, mark) in cases {
        let page = journal.search(&words(text)).unwrap();
        let expected: &[u64] = if seq == 0 { &[] } else { &[seq] };
        assert_eq!(seqs(&page), expected, "{text}");
        if let Some(hit) = page.hits.first() {
            let snippet = marked(&hit.snippet);
            assert!(snippet.contains(mark), "{text}: {snippet}");
            assert!(!snippet.contains('\u{200b}'), "{snippet}");
        }
    }
    // In Arabic, what is written together is one word; its beginning can be looked for.
    assert_eq!(seqs(&journal.search(&words("العالم")).unwrap()), [0; 0]);
    assert_eq!(seqs(&journal.search(&words("بالع*")).unwrap()), [2]);
    // Characters in another order are another word.
    assert_eq!(seqs(&journal.search(&words("試測")).unwrap()), [0; 0]);
    assert_eq!(seqs(&journal.search(&words("行実")).unwrap()), [0; 0]);
}

#[test]
fn what_was_found_is_marked_in_title_and_text() {
    let place = Place::new();
    let journal = place.open();
    let record = recorded(&journal, vec![draft("a", "x")]).remove(0);
    let long = format!("{} rm -rf build {}", "before ".repeat(80), "after ".repeat(80));
    let row = Indexed { title: "Bash build".to_owned(), ..indexed(&record, &long) };
    index(&journal, vec![row]);
    let hit = journal.search(&words("build")).unwrap().hits.remove(0);
    assert_eq!(marked(&hit.title), "Bash [build]");
    let snippet = marked(&hit.snippet);
    assert!(snippet.contains("rm -rf [build] after") && snippet.len() < 300, "{snippet}");
    assert!(snippet.starts_with('…') && snippet.ends_with('…'), "{snippet}");
    let Hit { session, seq, time, agent, kind, .. } = hit;
    assert_eq!((session.as_str(), seq, time), ("a", 1, at(0)));
    assert_eq!((agent.as_str(), kind.as_str()), ("claude-code", "message"));
}

#[test]
fn filters_hold_together() {
    let place = Place::new();
    let journal = place.open();
    let mut rows = Vec::new();
    for number in 0..24_i64 {
        let session = if number % 2 == 0 { "a" } else { "b" };
        let plain = draft(session, "x");
        let agent = if number % 3 == 0 { "codex" } else { "claude" }.to_owned();
        let source = Source { agent, ..plain.source.clone() };
        let record =
            recorded(&journal, vec![Draft { time: at(number), source, ..plain }]).remove(0);
        let kind = if number % 4 == 0 { "action" } else { "message" }.to_owned();
        rows.push(Indexed { kind, ..indexed(&record, &format!("fox {number}")) });
    }
    index(&journal, rows.clone());
    let some = |text: &str| Some(text.to_owned());
    let queries = [
        Query { session: some("b"), ..words("fox") },
        Query { agent: some("codex"), ..words("fox") },
        Query { kind: some("action"), ..words("fox") },
        Query { since: Some(at(5)), until: Some(at(9)), ..words("fox") },
        Query { session: some("a"), agent: some("codex"), kind: some("action"), ..words("fox") },
        Query { session: some("a"), since: Some(at(20)), ..words("fox") },
        Query { session: some("nobody's"), ..words("fox") },
        Query { agent: some("' OR 1=1 --"), ..words("fox") },
    ];
    for query in queries {
        let fits = |row: &&Indexed| {
            query.session.as_ref().is_none_or(|session| *session == row.session)
                && query.agent.as_ref().is_none_or(|agent| *agent == row.agent)
                && query.kind.as_ref().is_none_or(|kind| *kind == row.kind)
                && query.since.is_none_or(|since| row.time >= since)
                && query.until.is_none_or(|until| row.time < until)
        };
        let expected: Vec<_> =
            rows.iter().filter(fits).rev().map(|row| (row.session.clone(), row.seq)).collect();
        for order in [Order::Newest, Order::Relevance] {
            let page = journal.search(&Query { order, ..query.clone() }).unwrap();
            let found: Vec<_> = page.hits.into_iter().map(|hit| (hit.session, hit.seq)).collect();
            assert_eq!(found, expected, "{query:?}");
        }
    }
}

#[test]
fn a_better_hit_comes_first_when_that_is_asked_for() {
    let noise = "word ".repeat(50);
    let (_place, journal) =
        filled(&["fox", "fox fox fox fox", &format!("{noise} fox"), "nothing of the kind"]);
    let query = Query { order: Order::Relevance, ..words("fox") };
    let found = seqs(&journal.search(&query).unwrap());
    assert_eq!(found, [2, 1, 3]);
    assert_eq!(seqs(&journal.search(&words("fox")).unwrap()), [3, 2, 1]);
}

#[test]
fn the_raw_language_is_there_and_its_mistakes_are_told() {
    let (_place, journal) = filled(&["red fox", "red wolf", "grey wolf", "赤い狐"]);
    let raw = |text: &str| Query { syntax: Syntax::Raw, ..words(text) };
    let found = |text: &str| seqs(&journal.search(&raw(text)).unwrap());
    assert_eq!(found("red NOT fox"), [2]);
    assert_eq!(found("fox OR grey"), [3, 1]);
    assert_eq!(found("狐 OR grey"), [4, 3]);
    assert_eq!(found("  "), [0; 0]);
    for wrong in ["\"red", "red AND", "(", "nosuch:red", "^", "NEAR(", "red \0 \""] {
        let error = journal.search(&raw(wrong)).unwrap_err();
        assert!(matches!(&error, Error::Query { .. }), "{wrong}: {error:?}");
    }
}

#[test]
fn a_cursor_that_no_search_gave_is_refused() {
    let (_place, journal) = filled(&["fox"]);
    for cursor in ["", "n", "n.", "n.-1", "n.x", "r.1", "r.1.2.3", "x.1", "n.99999999999999999999"]
    {
        let query = Query { after: Some(cursor.to_owned()), ..words("fox") };
        assert!(matches!(journal.search(&query), Err(Error::Query { .. })), "{cursor}");
    }
    let query = Query { after: Some("r.1.0".to_owned()), ..words("fox") };
    assert!(matches!(journal.search(&query), Err(Error::Query { .. })));
}

#[test]
fn pages_by_time_are_exact_while_records_are_added() {
    let (_place, journal) = filled(&["fox"; 30]);
    let mut query = Query { limit: 7, ..words("fox") };
    let mut found = Vec::new();
    loop {
        let page = journal.search(&query).unwrap();
        found.extend(seqs(&page));
        let record = recorded(&journal, vec![draft("a", "x")]).remove(0);
        index(&journal, vec![indexed(&record, "fox")]);
        let Some(next) = page.next else { break };
        query.after = Some(next);
    }
    assert!(found.into_iter().eq((1..=30).rev()));
}

/// Plain words, hard words, quotation marks, operators, any character at all.
fn query_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        proptest::sample::select(vec![
            "fox", "wolf", "\"", "*", "AND", "OR", "NOT", "NEAR(", ")", "(", "日本", "^", ":", "-",
            "{", "}", "+", "'", ";", "title:", "fo*", "\\", "م", "\u{200b}", "\u{301}",
        ])
        .prop_map(str::to_owned),
        any::<char>().prop_map(String::from),
        Just(" ".to_owned()),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

#[test]
fn no_text_is_an_error_and_whole_words_find_what_they_are_in() {
    let (_place, journal) = filled(&["seed"]);
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(text in query_text(), around in query_text())| {
        for order in [Order::Newest, Order::Relevance] {
            journal.search(&Query { order, ..words(&text) }).unwrap();
        }
        match journal.search(&Query { syntax: Syntax::Raw, ..words(&text) }) {
            Ok(_) | Err(Error::Query { .. }) => {}
            Err(error) => panic!("{text:?}: {error:?}"),
        }
        let before = journal.head();
        let record = recorded(&journal, vec![draft("a", "x")]).remove(0);
        let said = format!("{around} needle{before} 針{around}");
        index(&journal, vec![indexed(&record, &said)]);
        for needle in [format!("needle{before}"), format!("NEEDLE{before} 針")] {
            let page = journal.search(&words(&needle)).unwrap();
            prop_assert_eq!(seqs(&page), [record.seq], "{}", said);
        }
    });
}

#[test]
fn pages_together_are_the_whole_without_gap_or_repetition() {
    let place = Place::in_memory();
    let journal = place.open();
    // Which of three words each text has, and in which session it is.
    let texts = proptest::collection::vec((1_u8..8, 0_u8..3), 1..40);
    let session = proptest::option::of(0_u8..3);
    hold(
        4,
        &(texts, 1_usize..9, 0_u8..3, any::<bool>(), session),
        |(texts, limit, word, by_rank, session)| {
            wait(journal.clear_index()).unwrap();
            let names = ["alpha", "beta", "gamma"];
            let drafts = texts.iter().map(|(_, session)| draft(&session.to_string(), "x"));
            let records = recorded(&journal, drafts.collect::<Vec<_>>());
            let mut rows = Vec::new();
            for ((mask, session), record) in texts.iter().zip(&records) {
                let said: Vec<_> =
                    (0..3).filter(|bit| mask & (1 << bit) != 0).map(|bit| names[bit]).collect();
                rows.push((indexed(record, &said.join(" ")), *mask, *session));
            }
            index(&journal, rows.iter().map(|row| row.0.clone()).collect());
            let order = if by_rank { Order::Relevance } else { Order::Newest };
            let mut query = Query {
                order,
                limit,
                session: session.map(|session| session.to_string()),
                ..words(names[usize::from(word)])
            };
            let mut found = Vec::new();
            loop {
                let page = journal.search(&query).unwrap();
                prop_assert!(page.hits.len() <= limit);
                prop_assert!(page.next.is_none() || page.hits.len() == limit);
                found.extend(page.hits.into_iter().map(|hit| (hit.session, hit.seq)));
                let Some(next) = page.next else { break };
                query.after = Some(next);
            }
            let expected: Vec<_> = rows
                .iter()
                .rev()
                .filter(|(_, mask, of)| {
                    mask & (1 << word) != 0 && session.is_none_or(|session| session == *of)
                })
                .map(|(row, ..)| (row.session.clone(), row.seq))
                .collect();
            if by_rank {
                prop_assert_eq!(found.len(), expected.len());
                prop_assert_eq!(
                    found.into_iter().collect::<HashSet<_>>(),
                    expected.into_iter().collect()
                );
            } else {
                prop_assert_eq!(found, expected);
            }
            Ok(())
        },
    );
}
