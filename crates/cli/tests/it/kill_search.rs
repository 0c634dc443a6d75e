//! `kill -9` between the acknowledgement of a push and its way into the search index: after the restart every event that
//! was acknowledged is found, and once.

use banister_journal::Archive;
use serde_json::{Value, json};

use crate::support::{Gateway, stderr};

const ROUNDS: u64 = 5;
/// How many events one push has.
const EVENTS: u64 = 64;

/// What the push of a round has in it: one word for each event, and a word that is split over two pushes.
fn prompts(round: u64) -> Value {
    (0..EVENTS)
        .map(|n| {
            json!({
                "aep_version": "0.1", "id": format!("{round}-{n}"), "type": "prompt.submitted",
                "time": "2026-11-15T09:00:00.000Z", "agent": { "slug": "finch" },
                "session": { "id": format!("s{}", n % 3) },
                "content": [{ "type": "prompt", "text": format!("fern r{round}n{n}") }],
            })
        })
        .collect()
}

fn piece(message: u64, delta: &str) -> Value {
    let message = format!("m{message}");
    json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": message, "delta": delta })
}

fn push(gateway: &Gateway, path: &str, events: &Value) {
    let body = events.to_string();
    let answer = gateway.raw(&format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        gateway.address(),
        gateway.key("agent.key"),
        body.len(),
    ));
    assert_eq!(answer.status, 200, "{}", answer.body);
}

/// How many hits a search has, with a gateway beside it.
fn hits(gateway: &Gateway, words: &str) -> usize {
    let page = gateway.json(&["log", "search", words, "--limit", "1000", "--json"]);
    assert_eq!(page["unindexed"], 0, "a search waits for the index");
    page["hits"].as_array().unwrap().len()
}

#[test]
fn what_was_acknowledged_is_found_once_after_a_kill_before_it_was_indexed() {
    let mut gateway = Gateway::start();
    let thread = "/agui/threads/shed/events";
    let start = json!({ "type": "RUN_STARTED", "threadId": "shed", "runId": "r1" });
    push(&gateway, thread, &json!([start]));
    let mut before_the_index = 0;
    for round in 0..ROUNDS {
        // The end of the message of the round before, and the beginning of the next one.
        let mut events = Vec::new();
        if let Some(last) = round.checked_sub(1) {
            events.push(piece(last, &format!("barrow{last}")));
            events.push(json!({ "type": "TEXT_MESSAGE_END", "messageId": format!("m{last}") }));
        }
        let message = format!("m{round}");
        events.push(
            json!({ "type": "TEXT_MESSAGE_START", "messageId": message, "role": "assistant" }),
        );
        events.push(piece(round, "wheel"));
        push(&gateway, thread, &json!(events));
        push(&gateway, "/aep/v0.1/events", &prompts(round));
        gateway.kill();
        let archive = Archive::open(&gateway.data().join("journal.db")).unwrap();
        if archive.indexed().unwrap() < archive.head().unwrap() {
            before_the_index += 1;
            // Without a gateway nobody indexes it, and a search says so.
            let search = gateway.banister(&["log", "search", "fern"]);
            assert!(stderr(&search).contains("Not indexed yet: "), "{search:?}");
        }
        drop(archive);
        gateway.up();
        assert_eq!(hits(&gateway, "fern") as u64, EVENTS * (round + 1), "round {round}");
    }
    assert!(before_the_index > 0, "no kill fell between the acknowledgement and the index");
    for round in 0..ROUNDS {
        for n in 0..EVENTS {
            let word = format!("r{round}n{n}");
            if n % 16 == 0 {
                assert_eq!(hits(&gateway, &word), 1, "{word}");
            }
        }
        let whole = format!("wheelbarrow{round}");
        assert_eq!(hits(&gateway, &whole), usize::from(round + 1 < ROUNDS), "{whole}");
    }
    let verified = gateway.banister(&["log", "verify"]);
    assert_eq!(verified.status.code(), Some(0), "{verified:?}");
}
