use std::collections::BTreeSet;
use std::path::PathBuf;

use banister_events::check::{self, Checker};
use banister_events::event::Protocol;
use banister_events::finding::{Finding, Severity, rules};
use banister_events::frame::ndjson::Lines;

fn folder(protocol: Protocol) -> PathBuf {
    crate::workspace().join("conformance").join(protocol.name())
}

fn names(protocol: Protocol) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder(protocol)).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Everything wrong with a recording. One event alone is not judged by the order of events.
fn findings(protocol: Protocol, name: &str) -> Vec<Finding> {
    let bytes = std::fs::read(folder(protocol).join(name)).unwrap();
    let mut lines = Lines::new(1 << 20);
    lines.push(&bytes);
    lines.finish();
    let mut messages = Vec::new();
    while let Some((_, line)) = lines.next() {
        messages.push(line.unwrap().to_vec());
    }
    if let [message] = messages.as_slice() {
        return match check::parse(protocol, message) {
            Ok(value) => check::event(protocol, &value),
            Err(finding) => vec![finding],
        };
    }
    let mut checker = Checker::new(protocol);
    let mut all: Vec<Finding> =
        messages.iter().flat_map(|message| checker.message(message)).collect();
    all.extend(checker.finish());
    all
}

#[test]
fn every_code_has_fixtures_and_every_fixture_a_code() {
    for protocol in Protocol::ALL {
        let codes = rules(protocol);
        let unique: BTreeSet<&str> = codes.iter().map(|rule| rule.code).collect();
        assert_eq!(unique.len(), codes.len(), "a code of {protocol} is declared twice");
        let expected: BTreeSet<String> = unique
            .iter()
            .flat_map(|code| [format!("{code}.pass.jsonl"), format!("{code}.fail.jsonl")])
            .chain(["session.jsonl".to_owned()])
            .collect();
        assert_eq!(names(protocol), expected);
    }
}

#[test]
fn every_failing_fixture_breaks_its_rule_and_no_other() {
    for protocol in Protocol::ALL {
        for rule in rules(protocol) {
            let found = findings(protocol, &format!("{}.fail.jsonl", rule.code));
            let floor = rule.severity.min(Severity::Warning);
            let codes: BTreeSet<&str> = found
                .iter()
                .filter(|finding| finding.rule.severity >= floor)
                .map(|finding| finding.rule.code)
                .collect();
            assert_eq!(codes, BTreeSet::from([rule.code]), "{found:#?}");
        }
    }
}

#[test]
fn every_passing_fixture_breaks_no_rule() {
    for protocol in Protocol::ALL {
        for rule in rules(protocol) {
            let mut found = findings(protocol, &format!("{}.pass.jsonl", rule.code));
            found.retain(|finding| {
                finding.rule.severity > Severity::Note || finding.rule.code == rule.code
            });
            assert_eq!(found, [], "{}", rule.code);
        }
    }
}

#[test]
fn a_whole_valid_session_has_no_finding_at_all() {
    for protocol in Protocol::ALL {
        assert_eq!(findings(protocol, "session.jsonl"), []);
    }
}

#[test]
fn every_rule_reads_like_a_rule() {
    for protocol in Protocol::ALL {
        for rule in rules(protocol) {
            assert!(rule.text.ends_with('.'), "{}: {}", rule.code, rule.text);
            assert!(rule.remedy.ends_with(['.', '…']), "{}: {}", rule.code, rule.remedy);
            assert!(rule.text.len() < 140 && rule.remedy.len() < 140, "{}", rule.code);
        }
    }
}
