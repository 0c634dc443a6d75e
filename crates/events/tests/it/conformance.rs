use std::collections::BTreeSet;
use std::path::PathBuf;

use banister_events::check::Checker;
use banister_events::event::Protocol;
use banister_events::finding::{Finding, Rule, Severity, rules};
use banister_events::frame::ndjson::Lines;
use banister_events::frame::sse::{Message, Parser};

fn folder(protocol: Protocol) -> PathBuf {
    crate::workspace().join("conformance").join(protocol.name())
}

fn names(protocol: Protocol) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder(protocol)).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// The recording of a rule. Rules of frames have frames, as lines have none.
fn recording(rule: &Rule, kind: &str) -> String {
    let framing = if rule.code.contains("-SSE-") { "sse" } else { "jsonl" };
    format!("{}.{kind}.{framing}", rule.code)
}

/// The rules of a protocol that a recording can show: those of the exchange around it are not.
fn shown(protocol: Protocol) -> Vec<&'static Rule> {
    rules(protocol).into_iter().filter(|rule| !rule.code.contains("-HTTP-")).collect()
}

/// Everything wrong with a recording. One event alone is not judged by the order of events.
fn findings(mut checker: Checker, protocol: Protocol, name: &str) -> Vec<Finding> {
    let bytes = std::fs::read(folder(protocol).join(name)).unwrap();
    if std::path::Path::new(name).extension().is_some_and(|kind| kind == "sse") {
        return findings_in_frames(checker, &bytes);
    }
    let mut lines = Lines::new(1 << 20);
    let mut messages = Vec::new();
    let mut rest = &bytes[..];
    while let Some((_, line)) = lines.read(&mut rest) {
        messages.push(line.unwrap().to_vec());
    }
    if let Some((_, line)) = lines.end() {
        messages.push(line.unwrap().to_vec());
    }
    if let [message] = messages.as_slice() {
        return checker.alone(message);
    }
    let mut all: Vec<Finding> =
        messages.iter().flat_map(|message| checker.message(message)).collect();
    all.extend(checker.finish());
    all
}

fn findings_in_frames(mut checker: Checker, bytes: &[u8]) -> Vec<Finding> {
    let mut parser = Parser::new(1 << 20);
    parser.push(bytes).unwrap();
    let messages: Vec<Message> = std::iter::from_fn(|| parser.finish()).collect();
    assert!(messages.len() > 1, "a recording of frames has several");
    let mut all: Vec<Finding> =
        messages.iter().flat_map(|message| checker.message(message.data.as_bytes())).collect();
    all.extend(checker.frames(&parser.quirks()));
    all.extend(checker.finish());
    all
}

/// Everything wrong with a fixture of one rule, other rules that apply only on request aside.
fn findings_for(protocol: Protocol, rule: &Rule, kind: &str) -> Vec<Finding> {
    let checker = Checker::new(protocol);
    let checker = if rule.opt_in { checker.strict() } else { checker };
    let mut found = findings(checker, protocol, &recording(rule, kind));
    found.retain(|finding| !finding.rule.opt_in || finding.rule.code == rule.code);
    found
}

#[test]
fn every_code_has_fixtures_and_every_fixture_a_code() {
    for protocol in Protocol::ALL {
        let codes = rules(protocol);
        let unique: BTreeSet<&str> = codes.iter().map(|rule| rule.code).collect();
        assert_eq!(unique.len(), codes.len(), "a code of {protocol} is declared twice");
        let expected: BTreeSet<String> = shown(protocol)
            .iter()
            .flat_map(|rule| [recording(rule, "pass"), recording(rule, "fail")])
            .chain(["session.jsonl".to_owned()])
            .collect();
        assert_eq!(names(protocol), expected);
    }
}

#[test]
fn every_failing_fixture_breaks_its_rule_and_no_other() {
    for protocol in Protocol::ALL {
        for rule in shown(protocol) {
            let found = findings_for(protocol, rule, "fail");
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
        for rule in shown(protocol) {
            let mut found = findings_for(protocol, rule, "pass");
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
        assert_eq!(findings(Checker::new(protocol), protocol, "session.jsonl"), []);
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

#[test]
fn rules_that_apply_on_request_are_silent_without_it() {
    for protocol in Protocol::ALL {
        for rule in rules(protocol).into_iter().filter(|rule| rule.opt_in) {
            let found = findings(Checker::new(protocol), protocol, &recording(rule, "fail"));
            assert!(found.iter().all(|finding| !finding.rule.opt_in), "{found:#?}");
        }
    }
}
