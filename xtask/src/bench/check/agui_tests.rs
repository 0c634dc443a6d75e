use std::collections::BTreeMap;

use banister_events::check::Checker;
use banister_events::event::Protocol;
use serde_json::Value;

use super::{Framing, Long, LongRun, Recording, pieces};
use crate::bench::check::follow::Run;

fn findings(text: &str) -> Vec<String> {
    let mut checker = Checker::new(Protocol::Agui);
    let mut found: Vec<_> =
        text.lines().flat_map(|line| checker.message(line.as_bytes())).collect();
    found.extend(checker.finish());
    found.iter().map(|finding| format!("{} {}", finding.rule.code, finding.message)).collect()
}

#[test]
fn a_recording_breaks_no_rule() {
    let recording = Recording::write(Framing::Lines, 500_000).unwrap();
    assert_eq!(recording.text.lines().count() as u64, recording.events);
    for run in recording.runs() {
        assert_eq!(findings(std::str::from_utf8(run).unwrap()), Vec::<String>::new());
    }
}

#[test]
fn both_framings_carry_the_same_events() {
    let lines = Recording::write(Framing::Lines, 200_000).unwrap();
    let sse = Recording::write(Framing::Sse, 200_000).unwrap();
    let bare = sse.text.replace("data: ", "").replace("\n\n", "\n");
    assert!(lines.text.starts_with(&bare) || bare.starts_with(&lines.text));
    for recording in [lines, sse] {
        assert!(recording.runs().count() > 5);
        for run in recording.runs() {
            let mut follower = Run::new();
            follower.read(recording.framing, run).unwrap();
            follower.finish().unwrap();
        }
        assert_eq!(recording.runs().map(<[u8]>::len).sum::<usize>(), recording.text.len());
    }
}

#[test]
fn a_recording_is_mostly_small_pieces() {
    let recording = Recording::write(Framing::Lines, 1_000_000).unwrap();
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    for line in recording.text.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        *kinds.entry(event["type"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    let pieces = kinds.iter().filter(|(kind, _)| {
        ["_CONTENT", "_ARGS", "_CHUNK"].iter().any(|ending| kind.ends_with(ending))
    });
    let pieces: u64 = pieces.map(|(_, count)| count).sum();
    assert!(pieces * 10 > recording.events * 6, "{kinds:?}");
    assert_eq!(kinds.len(), 23, "{kinds:?}");
    let mean = recording.text.len() as u64 / recording.events;
    assert!((90..150).contains(&mean), "{mean} bytes per event");
}

#[test]
fn a_long_run_breaks_no_rule() {
    for what in [Long::Message, Long::Call, Long::State] {
        let mut run = LongRun::new(what, 3_000);
        let mut text = String::new();
        while run.write(&mut text).unwrap() {}
        assert_eq!((text.lines().count() as u64, run.events()), (3_000, 3_000));
        assert_eq!(findings(&text), Vec::<String>::new());
    }
}

#[test]
fn pieces_are_the_whole_text_and_cut_no_character() {
    let text = "満潮は午前九時で、フェリーの後です。".repeat(3);
    assert_eq!(pieces(&text).collect::<String>(), text);
    assert!(pieces(&text).all(|piece| (1..=22).contains(&piece.len())));
    assert_eq!(pieces("").count(), 0);
}
