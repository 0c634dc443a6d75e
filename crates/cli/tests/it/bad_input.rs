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
fn a_hook_under_the_wrong_name_does_not_let_calls_through() {
    let mut gateway = Gateway::start();
    for name in ["pretooluse", "PostToolUse", "Foo", "Stop"] {
        let payload = command("t", "git status").to_string();
        let output = gateway.hook(name, payload.as_bytes()).wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{name}: {output:?}");
        assert!(stderr(&output).contains("HOOK-06"), "{name}: {}", stderr(&output));
    }
    // Nor without a gateway.
    gateway.kill();
    shorten_reconnect(&gateway);
    let payload = command("t", "git status").to_string();
    let output = gateway.hook("Stop", payload.as_bytes()).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn a_key_that_was_used_elsewhere_opens_nothing() {
    let gateway = Gateway::start();
    let body =
        command("t", "rm -rf /").to_string().replace("\"hook_event_name\":\"PreToolUse\",", "");
    let post = |event: &str| {
        let key = gateway.key("agent.key");
        let request = format!(
            "POST /hooks/claude-code/{event} HTTP/1.1\r\nHost: banister\r\nAuthorization: Bearer {key}\r\n\
             Idempotency-Key: k1\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        let socket = std::os::unix::net::UnixStream::connect(gateway.socket()).unwrap();
        crate::support::exchange(socket, request.as_bytes())
    };
    assert!(post("PostToolUse").head.contains("banister-exit: 0"));
    let second = post("PreToolUse");
    assert!(second.body.contains("deny") && second.body.contains("HOOK-05"), "{second:?}");
}

#[test]
fn an_agent_that_hangs_up_leaves_nothing_stuck() {
    use std::io::Write;
    let gateway = Gateway::start();
    std::thread::scope(|scope| {
        let watching =
            scope.spawn(|| gateway.stream("/aep/v0.1/events", "", Duration::from_secs(3)));
        std::thread::sleep(Duration::from_millis(200));
        for n in 0..40 {
            let mut socket = std::os::unix::net::UnixStream::connect(gateway.socket()).unwrap();
            let body = command(&format!("t{n}"), "git push").to_string();
            let key = gateway.key("agent.key");
            write!(
                socket,
                "POST /hooks/claude-code/PreToolUse HTTP/1.1\r\nHost: banister\r\nAuthorization: Bearer {key}\r\n\
                 Content-Length: {}\r\n\r\n{body}",
                body.len()
            )
            .unwrap();
        }
        let prompt = serde_json::json!({ "prompt": "still there?" });
        gateway.hooked("UserPromptSubmit", &crate::support::payload("UserPromptSubmit", &prompt));
        let seen = watching.join().unwrap();
        assert!(seen.contains("still there?"), "live streams must go on: {seen}");
    });
    let opened = gateway.records().iter().filter(|record| record["kind"] == "ask").count();
    let inbox = gateway.json(&["inbox", "--json"])["asks"].as_array().unwrap().len();
    assert_eq!(inbox, opened, "what is asked in the journal is asked in the inbox");
}

#[test]
fn an_answer_whose_sender_hangs_up_still_counts() {
    use std::io::Write;
    let gateway = Gateway::start();
    for round in 0..10 {
        let id = format!("t{round}");
        let hook = gateway.hook("PreToolUse", command(&id, "git push").to_string().as_bytes());
        let ask = gateway.asked();
        let mut socket = std::os::unix::net::UnixStream::connect(gateway.socket()).unwrap();
        let key = gateway.key("person.key");
        let body = r#"{"decision":"reject"}"#;
        write!(
            socket,
            "POST /api/asks/{ask}/answer HTTP/1.1\r\nHost: banister\r\nAuthorization: Bearer {key}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        drop(socket);
        // Whether it arrived or not, the next answer gets through, and the hook hears one of them.
        gateway.banister(&["answer", &ask, "reject"]);
        assert_eq!(decision(&hook.wait_with_output().unwrap()).0, "deny");
    }
}

#[test]
fn what_cannot_be_recorded_is_refused() {
    let mut gateway = Gateway::stopped();
    gateway.up_full(400 * 1024);
    let mut refused = None;
    for n in 0..400 {
        let mut call = command(&format!("t{n}"), "git status");
        call["tool_input"]["description"] = "x".repeat(4_000).into();
        let output = gateway.hooked("PreToolUse", &call);
        if decision(&output).0 == "deny" {
            refused = Some((n, decision(&output).1));
            break;
        }
    }
    let (allowed, reason) = refused.expect("the journal must have been full at some point");
    assert!(reason.contains("could not record"), "{reason}");
    gateway.kill();
    gateway.up();
    let kept = gateway.records().iter().filter(|record| record["kind"] == "event").count();
    assert_eq!(kept, allowed, "what was allowed was recorded, and nothing else");
    assert_eq!(gateway.banister(&["log", "verify"]).status.code(), Some(0));
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
