//! `kill -9` of the gateway under load: every acknowledged event is there once, and the journal is intact.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::{Gateway, command};

/// More rounds where more is asked for: the full tier sets this.
fn rounds() -> u32 {
    std::env::var("BANISTER_KILL_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(5)
}

#[test]
fn what_was_acknowledged_is_there_once() {
    let mut gateway = Gateway::start();
    let acknowledged: Mutex<BTreeSet<String>> = Mutex::default();
    for round in 0..rounds() {
        let stop = AtomicBool::new(false);
        let before = acknowledged.lock().unwrap().len();
        std::thread::scope(|scope| {
            for worker in 0..4 {
                let (gateway, stop, acknowledged) = (&gateway, &stop, &acknowledged);
                let (socket, key) = (gateway.socket(), gateway.key("agent.key"));
                scope.spawn(move || {
                    for n in 0.. {
                        if stop.load(Ordering::SeqCst) {
                            break;
                        }
                        let id = format!("r{round}w{worker}n{n}");
                        if send(&socket, &key, &id).is_some() {
                            acknowledged.lock().unwrap().insert(id);
                        }
                    }
                });
            }
            // Another moment each round, so that the blow falls at different places.
            std::thread::sleep(Duration::from_millis(250 + u64::from(round * 37 % 200)));
            gateway.kill_shared();
            stop.store(true, Ordering::SeqCst);
        });
        gateway.kill();
        let verified = gateway.banister(&["log", "verify"]);
        assert_eq!(verified.status.code(), Some(0), "round {round}: {verified:?}");
        assert!(
            acknowledged.lock().unwrap().len() > before,
            "round {round}: nothing was acknowledged"
        );
        gateway.up();
    }
    let mut times: BTreeMap<String, u32> = BTreeMap::new();
    for record in gateway.records() {
        if let Some(id) = record["event_id"].as_str() {
            *times.entry(id.to_owned()).or_default() += 1;
        }
    }
    let acknowledged = acknowledged.into_inner().unwrap();
    for id in &acknowledged {
        assert_eq!(times.get(id), Some(&1), "{id} was acknowledged");
    }
    assert!(times.values().all(|count| *count == 1));
    let verified = gateway.banister(&["log", "verify"]);
    assert_eq!(verified.status.code(), Some(0), "{verified:?}");
    eprintln!("{} events acknowledged over {} kills, all there once", acknowledged.len(), rounds());
}

/// Sends one call as the hook does; `Some` when the whole answer arrived.
fn send(socket: &std::path::Path, key: &str, id: &str) -> Option<()> {
    let body = command(id, "git status").to_string();
    let mut stream = UnixStream::connect(socket).ok()?;
    write!(
        stream,
        "POST /hooks/claude-code/PreToolUse HTTP/1.1\r\nHost: banister\r\nAuthorization: Bearer {key}\r\n\
         Idempotency-Key: {id}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    (head.starts_with("HTTP/1.1 200") && body.contains("\"allow\"")).then_some(())
}
