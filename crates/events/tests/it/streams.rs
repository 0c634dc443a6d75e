//! Honest recordings that are easy to misjudge, by name: none may get an error or a warning, unless it says so.

use banister_events::check::Checker;
use banister_events::event::Protocol;
use banister_events::finding::Severity;

/// What is right to be said about a recording all the same.
const TOLD: [(&str, &[&str]); 8] = [
    ("aaep-rejected-and-completed", &["AAEP-4.5.3-R3"]),
    ("aaep-a-newer-minor-version", &["AAEP-12.6.2-R1"]),
    ("aep-an-extension-in-capitals", &["AEP-REQ-35"]),
    ("aep-denied-then-cancelled", &["AEP-SEQ-22"]),
    ("aep-denied-then-allowed", &[]),
    ("aaep-section-4.6-banking", &[]),
    ("agui-thinking-of-an-old-agent", &["AGUI-EVT-04"; 5]),
    ("agui-binary-parts-of-an-old-client", &["AGUI-EVT-19"]),
];

#[test]
fn honest_recordings_have_no_false_error() {
    let folder = crate::workspace().join("conformance/streams");
    let mut seen = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let protocol = Protocol::parse(name.split('-').next().unwrap()).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let mut checker = Checker::new(protocol);
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let mut found: Vec<_> = lines.flat_map(|line| checker.message(line)).collect();
        found.extend(checker.finish());
        found.retain(|finding| finding.rule.severity > Severity::Note);
        let codes: Vec<&str> = found.iter().map(|finding| finding.rule.code).collect();
        let told = TOLD.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, told)| told);
        assert_eq!(codes, told, "{name}: {found:#?}");
        seen.push(name);
    }
    for (name, _) in TOLD {
        assert!(seen.iter().any(|seen| seen == name), "{name} is missing");
    }
}
