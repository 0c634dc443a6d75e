use super::*;

fn plain() -> Link<'static> {
    Link {
        session: "s_1",
        seq: 1,
        time: "2026-05-04T10:00:00Z",
        protocol: "aep",
        agent: "claude-code",
        door: "socket",
        key: "k_1",
        turn: None,
        action: None,
        kind: "event",
        reader: 3,
        event_id: None,
        body: digest(b"{}"),
        findings: None,
        gate: None,
        prev: START,
        kept: Kept::FULL,
    }
}

fn hex(bytes: [u8; 32]) -> String {
    bytes.map(|byte| format!("{byte:02x}")).concat()
}

/// The expected values were made from the table in the module's documentation, with another language's SHA-256.
#[test]
fn the_hash_is_that_of_the_documented_layout() {
    let first = plain().hash();
    assert_eq!(hex(first), "8d455c2b377d41fc7a5a05ba8d22e5b6de43a4d7f81ec5eedf25308c78e38dfb");
    let full = Link {
        session: "sessä",
        seq: 258,
        time: "2026-05-04T10:00:00.000000001Z",
        protocol: "banister",
        agent: "",
        door: "page",
        key: "k_2",
        turn: Some("t_1"),
        action: Some(""),
        kind: "answer",
        reader: u32::MAX,
        event_id: Some("evt_9"),
        body: digest(b"\x00\xff"),
        findings: Some("[]"),
        gate: Some(r#"{"risk":"high"}"#),
        prev: first,
        kept: Kept::FULL,
    };
    assert_eq!(
        hex(full.hash()),
        "dd1ccdd00424e8b4d060f531eb5832964ec58d5818b75ad94a7ed03071fea38b"
    );
}

/// Made in the same way.
#[test]
fn the_hash_of_what_was_not_kept_in_full_is_that_of_the_documented_layout() {
    let kept = Kept { level: "redacted", digest: Some([5; 32]), commitment: None };
    assert_eq!(
        hex(Link { kept, ..plain() }.hash()),
        "3a055e6f581453ce8d971ac968c180dc7dc888ccd81fb011ae34538304b083af"
    );
}

#[test]
fn every_field_counts_and_none_runs_into_the_next() {
    let links = [
        plain(),
        Link { session: "s_2", ..plain() },
        Link { seq: 2, ..plain() },
        Link { time: "2026-05-04T10:00:01Z", ..plain() },
        Link { protocol: "aaep", ..plain() },
        Link { protocol: "aepclaude-code", agent: "", ..plain() },
        Link { agent: "codex", ..plain() },
        Link { door: "http", ..plain() },
        Link { key: "k_2", ..plain() },
        Link { turn: Some(""), ..plain() },
        Link { turn: Some("a"), ..plain() },
        Link { action: Some("a"), ..plain() },
        Link { kind: "ask", ..plain() },
        Link { reader: 4, ..plain() },
        Link { event_id: Some("a"), ..plain() },
        Link { body: digest(b"{ }"), ..plain() },
        Link { findings: Some("[]"), ..plain() },
        Link { gate: Some("[]"), ..plain() },
        Link { prev: [1; 32], ..plain() },
        Link { kept: Kept { level: "none", ..Kept::FULL }, ..plain() },
        Link { kept: Kept { level: "metadata", ..Kept::FULL }, ..plain() },
        Link { kept: Kept { digest: Some([1; 32]), ..Kept::FULL }, ..plain() },
        Link { kept: Kept { commitment: Some([1; 32]), ..Kept::FULL }, ..plain() },
    ];
    let hashes: std::collections::HashSet<_> = links.iter().map(Link::hash).collect();
    assert_eq!(hashes.len(), links.len());
}
