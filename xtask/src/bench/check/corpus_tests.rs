use std::collections::BTreeSet;

use banister_events::check::Checker;
use banister_events::event::Protocol;
use serde_json::Value;

use super::{Session, recording};

fn findings(protocol: Protocol, text: &str) -> Vec<String> {
    let mut checker = Checker::new(protocol);
    let mut found: Vec<_> =
        text.lines().flat_map(|line| checker.message(line.as_bytes())).collect();
    found.extend(checker.finish());
    found.iter().map(|finding| format!("{} {}", finding.rule.code, finding.message)).collect()
}

#[test]
fn a_recording_breaks_no_rule() {
    for protocol in [Protocol::Aaep, Protocol::Aep] {
        let (text, events) = recording(protocol, 1_000_000, 0).unwrap();
        assert_eq!(text.lines().count() as u64, events);
        assert_eq!(findings(protocol, &text), Vec::<String>::new());
    }
}

#[test]
fn a_recording_has_every_type_of_aaep() {
    let (text, events) = recording(Protocol::Aaep, 1_000_000, 0).unwrap();
    let kinds: BTreeSet<String> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].to_string())
        .collect();
    assert_eq!(kinds.len(), 12, "{kinds:?}");
    let mean = text.len() as u64 / events;
    assert!((500..900).contains(&mean), "{mean} bytes per event");
}

#[test]
fn a_long_session_breaks_no_rule() {
    let mut session = Session::new(Protocol::Aaep, 7, 20_000);
    let mut text = String::new();
    while session.write(&mut text).unwrap() {}
    assert_eq!(text.lines().count() as u64, session.events());
    assert_eq!(findings(Protocol::Aaep, &text), Vec::<String>::new());
}
