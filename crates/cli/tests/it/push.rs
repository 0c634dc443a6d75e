//! Events pushed from outside: a recording played, an action asked about, a gateway that is told to stop.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{BANISTER, Gateway, Response, stderr, stdout};

fn post(gateway: &Gateway, path: &str, body: &str) -> Response {
    let (host, key, length) = (gateway.address(), gateway.key("agent.key"), body.len());
    gateway.raw(&format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    ))
}

fn recording() -> String {
    let event = |number: u32, kind: &str, more: &str| {
        format!(
            r#"{{"aep_version":"0.1","id":"evt_{number}","type":"{kind}","time":"2026-11-15T09:00:{number:02}Z","agent":{{"slug":"finch"}},"session":{{"id":"one"}}{more}}}"#
        )
    };
    let prompt = r#","content":[{"type":"prompt","text":"Tidy up the shed."}]"#;
    let answer = r#","content":[{"type":"response","text":"The shed is tidy."}]"#;
    [
        event(1, "session.start", ""),
        event(2, "prompt.submitted", prompt),
        event(3, "model.response", answer),
        event(4, "agent.stop", ""),
    ]
    .join("\n")
}

#[test]
fn a_recording_is_played_once_and_told_by_every_door() {
    let gateway = Gateway::start();
    let file = gateway.dir.path().join("recording.jsonl");
    std::fs::write(&file, recording()).unwrap();
    let path = file.to_str().unwrap();
    let first = gateway.banister(&["replay", path]);
    assert!(first.status.success(), "{first:?}");
    assert!(stderr(&first).contains("4 recorded, 0 known already, 0 refused"), "{first:?}");
    let session = stdout(&first).trim().to_owned();
    assert!(session.starts_with("s_"), "{session}");
    let again = gateway.json(&["replay", "--json", "--speed", "100", path]);
    assert_eq!((&again["recorded"], &again["duplicate"]), (&json!(0), &json!(4)), "{again}");
    assert_eq!(again["sessions"], json!([session]));
    for (door, word) in
        [("aep/v0.1", "prompt.submitted"), ("aaep/v1", "aaep:agent.session.started")]
    {
        let told =
            gateway.stream(&format!("/{door}/events?from=start"), "", Duration::from_millis(300));
        assert!(told.contains(word) && told.contains("The shed is tidy."), "{door}: {told}");
    }
    std::fs::write(&file, format!("{}\n{{\"aep_version\": \n", recording())).unwrap();
    let broken = gateway.banister(&["replay", path]);
    assert_eq!(broken.status.code(), Some(1), "{broken:?}");
    assert!(stderr(&broken).contains("refused: AEP-REQ-01"), "{broken:?}");
    let verified = gateway.banister(&["log", "verify"]);
    assert!(verified.status.success(), "{verified:?}");
}

#[test]
fn replay_without_a_gateway_says_so() {
    let gateway = Gateway::stopped();
    let played = gateway.banister(&["replay", "nothing.jsonl"]);
    assert_eq!(played.status.code(), Some(3), "{played:?}");
    let bad = Command::new(BANISTER).args(["replay", "--speed", "0", "x"]).output().unwrap();
    assert_eq!(bad.status.code(), Some(2), "{bad:?}");
}

#[test]
fn a_strict_key_and_a_rate_are_set_in_the_configuration() {
    let mut gateway = Gateway::stopped();
    let config = gateway.dir.path().join("config.toml");
    std::fs::write(&config, "[push]\nrate = 1\nkeys = { agent = \"strict\" }\n").unwrap();
    gateway.up_with(&["--config", config.to_str().unwrap()]);
    let answer = post(&gateway, "/aep/v0.1/events", r#"{"aep_version":"0.1","id":"evt_1"}"#);
    assert!(answer.body.contains("\"status\":\"refused\""), "{answer:?}");
    let statuses: Vec<u16> =
        (0..4).map(|_| post(&gateway, "/aep/v0.1/events", "{}").status).collect();
    assert!(statuses.contains(&429), "{statuses:?}");
}

#[test]
fn a_gateway_that_is_told_to_stop_ends_its_streams_and_goes() {
    let gateway = Gateway::start();
    let mut stream = TcpStream::connect(gateway.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let (host, key) = (gateway.address(), gateway.key("person.key"));
    let request = format!(
        "GET /aaep/v1/events HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut first = [0; 16];
    stream.read_exact(&mut first).unwrap();
    let begun = Instant::now();
    gateway.terminate();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert!(rest.ends_with(b"0\r\n\r\n"), "{}", String::from_utf8_lossy(&rest));
    assert!(begun.elapsed() < Duration::from_secs(5));
    // What it logged has no payloads in it, whatever was pushed.
    assert!(!gateway.log().contains("Bearer"), "{}", gateway.log());
}

#[test]
fn a_deny_of_the_floor_is_the_answer_to_an_event_that_waits() {
    let gateway = Gateway::start();
    let event: Value = json!({
        "aep_version": "0.1", "id": "evt_1", "type": "action.requested",
        "time": "2026-11-15T09:00:00Z", "agent": { "slug": "finch" }, "session": { "id": "one" },
        "workspace": { "cwd": "/home/dev/orbit" },
        "action": { "type": "tool_call", "id": "act_1", "input": { "command": "rm -rf /" } },
        "tool": { "type": "native", "name": "Bash" },
    });
    let answer = post(&gateway, "/aep/v0.1/decide", &event.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    let response: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(response["control"]["behavior"], "deny", "{response}");
    assert_eq!(response["decision"]["by"], "auto-policy", "{response}");
}
