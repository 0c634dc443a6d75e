use std::path::Path;

use banister_events::check;
use banister_events::event::Protocol;
use banister_events::finding::Severity;

/// The JSON files of a folder, or nothing where the folder does not exist.
fn samples(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| (path.display().to_string(), std::fs::read(&path).unwrap()))
        .collect()
}

#[test]
fn samples_of_the_protocol_have_no_error() {
    let folder = crate::workspace().join("../shared/agents/aep");
    let mut all = samples(&folder);
    all.extend(samples(&folder.join("_responses")));
    if all.is_empty() {
        eprintln!("skipped: no samples at {}", folder.display());
        return;
    }
    for (path, bytes) in all {
        let mut found = check::alone(Protocol::Aep, &bytes);
        found.retain(|finding| finding.rule.severity == Severity::Error);
        assert_eq!(found, [], "{path}");
    }
}
