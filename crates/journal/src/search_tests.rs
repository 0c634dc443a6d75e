use super::*;

#[test]
fn marks_that_touch_are_one_and_no_mark_is_left() {
    let part = |text: &str, found| Part { text: text.to_owned(), found };
    assert_eq!(parts("a \u{2}b\u{3} c"), [part("a ", false), part("b", true), part(" c", false)]);
    assert_eq!(parts("\u{2}日\u{3}\u{200b}\u{2}本\u{3}"), [part("日本", true)]);
    assert_eq!(parts(""), []);
    assert_eq!(parts("\u{3}x\u{2}y"), [part("\u{3}xy", false)]);
}

/// Whatever is looked for, the index gives the hits in order: none has to be sorted, and a page costs what it shows.
#[test]
fn the_newest_hits_come_from_the_index_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    drop(crate::Journal::open(&path).unwrap());
    let connection = crate::sqlite::reader(&path).unwrap();
    let query = "EXPLAIN QUERY PLAN SELECT passage.id FROM passage_words
                 CROSS JOIN passage ON passage.id = passage_words.rowid
                 WHERE passage_words MATCH 'x' AND passage_words.rowid < 9
                 ORDER BY passage_words.rowid DESC LIMIT 1";
    let plan: Vec<String> = connection
        .prepare(query)
        .unwrap()
        .query_map([], |row| row.get(3))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:?}");
}
