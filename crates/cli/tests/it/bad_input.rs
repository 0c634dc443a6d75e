//! Whatever comes in, the strictest answer goes out, a clear line tells why, and nothing is lost.

use std::time::{Duration, Instant};

use crate::support::{Gateway, command, decision, start_hook, stderr, wait_for};

/// Runs a payload that is not one, and gives the refusal's reason.
fn refused(gateway: &Gateway, payload: &[u8]) -> String {
    let output = gateway.hook("PreToolUse", payload).wait_with_output().unwrap();
    let (word, reason) = decision(&output);
    assert_eq!(word, "deny", "{output:?}");
    reason
}

#[test]
fn what_is_not_json_is_refused_and_kept() {
    let gateway = Gateway::start();
    let half = br#"{"session_id": "one", "tool_name": "Ba"#;
    for bad in [&b"garbage"[..], half, b"", b"[1,2]", b"null", b"\xff\xfe\x00", b"{}"] {
        let reason = refused(&gateway, bad);
        assert!(reason.contains("HOOK-0"), "{bad:?}: {reason}");
    }
    let deep = "[".repeat(100_000);
    refused(&gateway, deep.as_bytes());
    let kept: Vec<_> = gateway.records().iter().map(|record| record["body"].clone()).collect();
    assert!(kept.contains(&"garbage".into()) && kept.len() == 8, "{kept:?}");
    // The next input works.
    assert_eq!(decision(&gateway.hooked("PreToolUse", &command("t", "git status"))).0, "allow");
    assert_eq!(gateway.banister(&["log", "verify"]).status.code(), Some(0));
}

#[test]
fn a_huge_payload_is_refused_and_its_beginning_is_kept() {
    let gateway = Gateway::start();
    let huge = command("t", &"x".repeat(9 * 1024 * 1024)).to_string();
    let reason = refused(&gateway, huge.as_bytes());
    assert!(reason.contains("HOOK-02") && reason.contains(&huge.len().to_string()), "{reason}");
    let records = gateway.records();
    assert_eq!(records[0]["kind"], "unreadable");
    assert_eq!(records[0]["body"].as_str().unwrap().len(), 1024 * 1024);
}

#[test]
fn an_unknown_agent_is_refused() {
    let gateway = Gateway::start();
    let hook = gateway.data().join("hook/banister-hook");
    let output = std::process::Command::new(hook)
        .args(["no-such-agent", "PreToolUse"])
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(!stderr(&output).is_empty());
}

#[test]
fn without_a_gateway_calls_are_refused_and_kept_for_later() {
    let mut gateway = Gateway::start();
    gateway.kill();
    shorten_reconnect(&gateway);
    let output = gateway.hooked("PreToolUse", &command("t1", "git status"));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("banister serve"), "{}", stderr(&output));
    assert!(output.stdout.is_empty());
    // What decides nothing does not stop the agent, and is not lost either.
    let output = gateway.hooked("Stop", &crate::support::payload("Stop", &serde_json::json!({})));
    assert_eq!(output.status.code(), Some(0), "{output:?}");

    gateway.up();
    wait_for("the spool to be taken in", || gateway.records().len() == 2);
    let records = gateway.records();
    assert_eq!(records[0]["source"]["door"], "spool");
    assert_eq!(records[0]["gate"]["decision"], "deny", "the record must say what was answered");
    assert!(gateway.json(&["inbox", "--json"])["asks"].as_array().unwrap().is_empty());
}

#[test]
fn a_gateway_that_dies_for_good_ends_in_a_refusal() {
    let mut gateway = Gateway::start();
    shorten_reconnect(&gateway);
    let hook = gateway.hook("PreToolUse", command("t1", "git push").to_string().as_bytes());
    gateway.asked();
    gateway.kill();
    let begun = Instant::now();
    let output = hook.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert!(!stderr(&output).is_empty());
    // After the restart the ask does not stay in the inbox: the agent has its answer.
    gateway.up();
    wait_for("the ask to be withdrawn", || {
        gateway.json(&["inbox", "--json"])["asks"].as_array().unwrap().is_empty()
    });
    let kinds: Vec<_> = gateway.records().iter().map(|record| record["kind"].clone()).collect();
    assert_eq!(kinds, ["event", "ask", "withdrawal"]);
}

#[test]
fn of_two_answers_at_once_one_wins_and_the_other_is_told() {
    let gateway = Gateway::start();
    for round in 0..5 {
        let id = format!("t{round}");
        let hook = gateway.hook("PreToolUse", command(&id, "git push").to_string().as_bytes());
        let ask = gateway.asked();
        let codes = std::thread::scope(|scope| {
            let answer = |word: &'static str| {
                let (gateway, ask) = (&gateway, &ask);
                scope.spawn(move || gateway.banister(&["answer", ask, word]).status.code().unwrap())
            };
            let (first, second) = (answer("accept"), answer("reject"));
            (first.join().unwrap(), second.join().unwrap())
        });
        let output = hook.wait_with_output().unwrap();
        match codes {
            (0, 1) => assert_eq!(decision(&output).0, "allow"),
            (1, 0) => assert_eq!(decision(&output).0, "deny"),
            other => panic!("exactly one answer must win: {other:?}"),
        }
    }
    let answers = gateway.records().iter().filter(|record| record["kind"] == "answer").count();
    assert_eq!(answers, 5);
}

#[test]
fn an_ask_that_nobody_answers_expires_as_a_refusal() {
    let gateway = Gateway::start();
    let conf = gateway.data().join("hook/hook.conf");
    let text = std::fs::read_to_string(&conf).unwrap().replace("290000", "5000");
    std::fs::write(&conf, text).unwrap();
    let output = gateway.hooked("PreToolUse", &command("t1", "git push"));
    let (word, reason) = decision(&output);
    assert_eq!(word, "deny");
    assert!(reason.contains("in time"), "{reason}");
    let records = gateway.records();
    let expiry = records.iter().find(|record| record["kind"] == "expiry").unwrap();
    let fact: serde_json::Value = serde_json::from_str(expiry["body"].as_str().unwrap()).unwrap();
    for ask in [fact["ask"].as_str().unwrap(), "ask_", "nothing"] {
        let late = gateway.banister(&["answer", ask, "accept"]);
        assert_eq!(late.status.code(), Some(1), "{late:?}");
    }
}

#[test]
fn a_hook_without_its_configuration_refuses() {
    let dir = tempfile::tempdir().unwrap();
    let hook = dir.path().join("banister-hook");
    std::fs::copy(crate::support::BANISTER, &hook).unwrap();
    let output = start_hook(&hook, "PreToolUse", b"{}").wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("hook.conf"), "{}", stderr(&output));
}

/// So that the test need not wait as long as an agent would.
fn shorten_reconnect(gateway: &Gateway) {
    let conf = gateway.data().join("hook/hook.conf");
    let text = std::fs::read_to_string(&conf).unwrap();
    let short = text.replace("reconnect_ms = 30000", "reconnect_ms = 300");
    assert_ne!(text, short);
    std::fs::write(&conf, short).unwrap();
}
