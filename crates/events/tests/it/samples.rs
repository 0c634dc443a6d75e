use std::path::Path;

use banister_events::check;
use banister_events::event::Protocol;
use banister_events::finding::Severity;
use serde_json::Value;

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

/// The JSON objects that stand in a text and say which protocol they speak.
fn examples(text: &str) -> Vec<(Protocol, String)> {
    let begins = text.match_indices("\n{").filter_map(|(at, _)| text.get(at + 1..));
    begins
        .filter_map(|rest| {
            serde_json::Deserializer::from_str(rest).into_iter::<Value>().next()?.ok()
        })
        .filter_map(|value| {
            let protocol = match () {
                () if value.get("@context").is_some() => Protocol::Aaep,
                () if value.get("aep_version").is_some() => Protocol::Aep,
                () => return None,
            };
            // Texts abbreviate: an example without its envelope shows a part of an event.
            let whole =
                ["session_id", "agent", "control"].iter().any(|name| value.get(name).is_some());
            whole.then(|| (protocol, value.to_string()))
        })
        .collect()
}

#[test]
fn examples_in_the_documents_have_no_error() {
    let folder = crate::workspace().join("../shared/seeds");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        eprintln!("skipped: no documents at {}", folder.display());
        return;
    };
    let mut count = 0;
    for entry in entries {
        let path = entry.unwrap().path();
        for (protocol, example) in examples(&std::fs::read_to_string(&path).unwrap()) {
            let mut found = check::alone(protocol, example.as_bytes());
            found.retain(|finding| finding.rule.severity == Severity::Error);
            assert_eq!(found, [], "{}: {example}", path.display());
            count += 1;
        }
    }
    assert!(count > 5, "only {count} examples were found");
}
