use std::collections::BTreeSet;

use banister_events::event::Protocol;
use banister_events::finding::rules;
use regex::Regex;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Chapter {
    title: String,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    rule: String,
    text: String,
    checked_by: Option<Vec<String>>,
    /// What of the rule is checked, where it is not all of it.
    part: Option<String>,
    not_visible: Option<String>,
}

const COVERED: [Protocol; 3] = Protocol::ALL;

fn chapters(protocol: Protocol) -> Vec<Chapter> {
    let path = crate::workspace().join(format!("conformance/coverage/{}.yaml", protocol.name()));
    serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn rows(protocol: Protocol) -> Vec<Row> {
    chapters(protocol).into_iter().flat_map(|chapter| chapter.rows).collect()
}

#[test]
fn every_row_has_codes_or_a_reason_and_not_both() {
    for row in COVERED.into_iter().flat_map(rows) {
        match (&row.checked_by, &row.not_visible) {
            (Some(codes), None) => {
                let unique: BTreeSet<&String> = codes.iter().collect();
                assert_eq!(unique.len(), codes.len(), "{} names a code twice", row.rule);
                assert!(!codes.is_empty(), "{} is blank", row.rule);
            }
            (None, Some(reason)) => {
                assert!(reason.len() >= 20, "{}: {reason}", row.rule);
                assert_eq!(row.part, None, "{} is not checked in part", row.rule);
            }
            _ => panic!("{} needs either checked_by or not_visible", row.rule),
        }
        assert!(row.text.ends_with('.'), "{}: {}", row.rule, row.text);
    }
}

#[test]
fn no_rule_has_two_rows_and_no_chapter_is_empty() {
    for protocol in COVERED {
        let mut known = BTreeSet::new();
        for chapter in chapters(protocol) {
            assert!(!chapter.rows.is_empty(), "{}", chapter.title);
            for row in chapter.rows {
                assert!(known.insert(row.rule.clone()), "{} has two rows", row.rule);
            }
        }
    }
}

#[test]
fn rows_name_every_code_and_no_other() {
    for protocol in COVERED {
        let codes: BTreeSet<String> =
            rules(protocol).iter().map(|rule| rule.code.to_owned()).collect();
        let named: BTreeSet<String> =
            rows(protocol).into_iter().filter_map(|row| row.checked_by).flatten().collect();
        let unknown: Vec<&String> = named.difference(&codes).collect();
        let unnamed: Vec<&String> = codes.difference(&named).collect();
        assert!(unknown.is_empty(), "no such code: {unknown:?}");
        assert!(unnamed.is_empty(), "no row says what these are for: {unnamed:?}");
    }
}

#[test]
fn a_rule_with_a_code_of_its_own_is_checked_by_it() {
    let codes: BTreeSet<&str> = rules(Protocol::Aaep).iter().map(|rule| rule.code).collect();
    for row in rows(Protocol::Aaep) {
        if codes.contains(row.rule.as_str()) {
            let named = row.checked_by.is_some_and(|codes| codes.contains(&row.rule));
            assert!(named, "{} is checked by other codes only", row.rule);
        }
    }
}

/// The digest of a protocol, where it is at hand.
fn digest(protocol: Protocol) -> Option<String> {
    let path = crate::workspace().join(format!("../shared/spec/{}.md", protocol.name()));
    std::fs::read_to_string(&path).ok()
}

#[test]
fn every_check_of_the_agui_tools_has_a_row() {
    let known: BTreeSet<String> = rows(Protocol::Agui).into_iter().map(|row| row.rule).collect();
    let mut expected: BTreeSet<String> = (1..=24).map(|number| format!("3.5/V{number}")).collect();
    if let Some(digest) = digest(Protocol::Agui) {
        let names = Regex::new(r"\bAGUI\d{3}\b|\bV\d{1,2}\b").unwrap();
        expected.extend(names.find_iter(&digest).map(|found| match found.as_str() {
            check if check.starts_with('V') => format!("3.5/{check}"),
            code => format!("3.7/{code}"),
        }));
        let pairs = Regex::new(r"\bAGUI\d{3} / (\d{3})\b").unwrap();
        expected.extend(pairs.captures_iter(&digest).map(|pair| format!("3.7/AGUI{}", &pair[1])));
        assert!(expected.len() > 60, "{expected:?}");
    }
    let missing: Vec<&String> = expected.difference(&known).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_type_of_agui_has_a_row() {
    let known: BTreeSet<String> = rows(Protocol::Agui).into_iter().map(|row| row.rule).collect();
    for kind in banister_events::agui::event::Type::ALL {
        assert!(known.contains(&format!("1.3/{}", kind.name())), "{}", kind.name());
    }
}

#[test]
fn every_rule_of_the_aaep_digest_has_a_row() {
    let Some(digest) = digest(Protocol::Aaep) else { return };
    let ids = Regex::new(r"AAEP-[A-Za-z0-9.]+-R?\d+\b").unwrap();
    let known: BTreeSet<String> = rows(Protocol::Aaep).into_iter().map(|row| row.rule).collect();
    let missing: BTreeSet<&str> = ids
        .find_iter(&digest)
        .map(|found| found.as_str())
        .filter(|id| !known.contains(*id))
        .collect();
    assert_eq!(missing, BTreeSet::new());
}
