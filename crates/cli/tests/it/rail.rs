//! A hook asks, a person answers, the agent gets its native answer.

use std::io::Write;

use serde_json::json;

use crate::support::{Gateway, command, decision, payload, stderr, stdout};

#[test]
fn an_accepted_ask_lets_the_call_through() {
    let gateway = Gateway::start();
    let hook = gateway
        .hook("PreToolUse", command("t1", "git push --force origin main").to_string().as_bytes());
    let ask = gateway.asked();

    let inbox = stdout(&gateway.banister(&["inbox"]));
    assert!(inbox.starts_with("One thing is waiting on you.\n"), "{inbox}");
    assert!(
        inbox.contains("Claude Code wants to run Bash:\n    git push --force origin main\n"),
        "{inbox}"
    );

    let answered = gateway.banister(&["answer", &ask[4..12], "accept"]);
    assert_eq!(answered.status.code(), Some(0), "{answered:?}");
    let output = hook.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(decision(&output), ("allow".into(), "Accepted by the user.".into()));
    assert_eq!(stderr(&output), "");
    assert!(stdout(&gateway.banister(&["inbox"])).contains("Nothing is waiting"));
}

#[test]
fn a_rejected_ask_stops_the_call_and_carries_the_words() {
    let gateway = Gateway::start();
    let hook = gateway
        .hook("PreToolUse", command("t1", "git push --force origin main").to_string().as_bytes());
    let ask = gateway.asked();
    let answered = gateway.banister(&["answer", &ask, "reject", "--message", "not on a Friday"]);
    assert_eq!(answered.status.code(), Some(0), "{answered:?}");
    let output = hook.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(decision(&output), ("deny".into(), "Rejected by the user: not on a Friday".into()));
}

#[test]
fn rules_answer_by_themselves() {
    let gateway = Gateway::start();
    let allowed = gateway.hooked("PreToolUse", &command("t1", "git status"));
    assert_eq!(decision(&allowed).0, "allow");
    let denied = gateway.hooked("PreToolUse", &command("t2", "rm -rf /"));
    let (word, reason) = decision(&denied);
    assert_eq!(word, "deny");
    assert!(reason.contains("floor.wipe-root"), "{reason}");
}

#[test]
fn agents_may_not_touch_what_belongs_to_banister() {
    let gateway = Gateway::start();
    let key = gateway.data().join("keys/person.key");
    let read = payload(
        "PreToolUse",
        &json!({ "tool_name": "Read", "tool_use_id": "t", "tool_input": { "file_path": key } }),
    );
    assert_eq!(decision(&gateway.hooked("PreToolUse", &read)).0, "deny");
    let cat = command("t", &format!("cat {}", key.display()));
    assert_eq!(decision(&gateway.hooked("PreToolUse", &cat)).0, "deny");
}

#[test]
fn everything_an_agent_tells_is_recorded_with_its_bytes() {
    let gateway = Gateway::start();
    let told = [
        ("SessionStart", json!({ "source": "startup" })),
        ("UserPromptSubmit", json!({ "prompt": "größer 漢字" })),
        ("PostToolUse", json!({ "tool_name": "Bash", "tool_use_id": "t", "tool_response": {} })),
        ("Stop", json!({ "last_assistant_message": "Done." })),
        ("SessionEnd", json!({ "reason": "other" })),
        ("BrandNewHook", json!({ "anything": [1, 2, 3] })),
    ];
    for (event, fields) in &told {
        let output = gateway.hooked(event, &payload(event, fields));
        assert_eq!(output.status.code(), Some(0), "{event}: {output:?}");
        assert_eq!(stdout(&output), "", "{event} must not answer anything");
    }
    let records = gateway.records();
    assert_eq!(records.len(), told.len());
    for (record, (event, fields)) in records.iter().zip(&told) {
        assert_eq!(record["body"], payload(event, fields).to_string());
        assert_eq!(record["source"]["protocol"], format!("hook:claude-code:{event}"));
    }
    let sequence: Vec<_> = records.iter().map(|record| record["seq"].as_u64().unwrap()).collect();
    assert_eq!(sequence, [1, 2, 3, 4, 5, 6]);
}

#[test]
fn the_event_is_taken_from_the_payload_where_argv_has_none() {
    let gateway = Gateway::start();
    let hook = gateway.data().join("hook/banister-hook");
    let mut child = std::process::Command::new(hook)
        .arg("claude")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(command("t", "git status").to_string().as_bytes())
        .unwrap();
    assert_eq!(decision(&child.wait_with_output().unwrap()).0, "allow");
}
