use std::path::{Path, PathBuf};
use std::time::Duration;

use banister_journal::{Draft, Kind, Source};
use serde_json::{Value, json};

use super::*;
use crate::pipeline::Incoming;
use crate::{Gateway, Settings};

fn gateway(dir: &Path) -> Arc<Gateway> {
    let clock = Clock::manual("2026-11-15T09:00:00Z".parse().unwrap());
    Gateway::open(Settings::new(dir.join("data")), clock).unwrap()
}

fn note(event_id: Option<&str>, body: &str) -> Fact {
    let draft = Draft {
        session: "s_1".to_owned(),
        time: "2026-11-15T09:00:00Z".parse().unwrap(),
        kind: Kind::Event,
        source: Source {
            protocol: "aep".to_owned(),
            agent: "finch".to_owned(),
            door: "http".to_owned(),
            key: "agent".to_owned(),
        },
        turn: None,
        action: None,
        event_id: event_id.map(str::to_owned),
        reader: 1,
        body: body.to_owned().into(),
        findings: Value::Null,
        gate: None,
    };
    Entry::from(draft).into()
}

async fn asked(gateway: &Arc<Gateway>) -> String {
    let payload = json!({
        "session_id": "one", "cwd": "/src", "tool_name": "Bash", "tool_use_id": "t1",
        "tool_input": { "command": "git push" },
    });
    let patient =
        Incoming { wait: Duration::from_hours(1), ..Incoming::of_claude("PreToolUse", &payload) };
    gateway.accept(&patient).await.unwrap().ask.unwrap()
}

#[tokio::test]
async fn a_commit_is_published_whole_and_closes_what_it_says() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = gateway(dir.path());
    let ask = asked(&gateway).await;
    let end = gateway.asks.take_now(&ask).unwrap().withdrawn(gateway.clock.now());
    let facts = vec![note(None, "{}"), end.into(), note(None, "{}")];
    let committed = gateway.history.commit(facts, Durability::Synced).await.unwrap();
    let Appended::Recorded(records) = committed else { panic!("{committed:?}") };
    assert_eq!(
        records.iter().map(|record| record.kind).collect::<Vec<_>>(),
        [Kind::Event, Kind::Withdrawal, Kind::Event],
    );
    assert!(gateway.desk.inbox().is_empty());
    assert_eq!(gateway.hub.head(), records[2].position);
}

#[tokio::test]
async fn a_commit_that_is_a_duplicate_closes_nothing_and_gives_the_ask_back() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = gateway(dir.path());
    let ask = asked(&gateway).await;
    gateway.history.commit(vec![note(Some("e1"), "1")], Durability::Synced).await.unwrap();
    let head = gateway.hub.head();
    let end = gateway.asks.take_now(&ask).unwrap().withdrawn(gateway.clock.now());
    assert!(gateway.asks.take_now(&ask).is_none(), "it is taken");
    let facts = vec![note(Some("e1"), "2"), end.into()];
    let committed = gateway.history.commit(facts, Durability::Synced).await;
    assert!(!matches!(committed, Ok(Appended::Recorded(_))), "{committed:?}");
    assert_eq!((gateway.hub.head(), gateway.desk.inbox().len()), (head, 1));
    assert!(gateway.asks.take_now(&ask).is_some(), "it can be taken again");
}

/// The compiler holds the door for as long as nobody else is handed one of the three handles.
#[test]
fn no_other_module_has_a_handle_that_makes_history() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let may: &[(&str, &[&str])] = &[
        ("AskWriter", &["asks.rs", "asks/parked.rs", "history.rs"]),
        ("Publisher", &["hub.rs", "history.rs"]),
        ("Appender", &["lib.rs", "history.rs"]),
        ("journal.append(", &[]),
        ("appender.append(", &["history.rs"]),
    ];
    let mut files = 0;
    for file in sources(&src) {
        let name = file.strip_prefix(&src).unwrap().to_str().unwrap().to_owned();
        if name.ends_with("_tests.rs") || name.contains("_tests/") || name.contains("simulation") {
            continue;
        }
        files += 1;
        let text = std::fs::read_to_string(&file).unwrap();
        for (word, places) in may {
            assert!(!text.contains(word) || places.contains(&name.as_str()), "{word} in {name}");
        }
    }
    assert!(files > 50, "{files}");
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(sources(&path));
        } else if path.extension().is_some_and(|it| it == "rs") {
            all.push(path);
        }
    }
    all
}
