//! Open asks survive a restart, and so does the hook that waits on one.

use crate::support::{Gateway, command, decision};

#[test]
fn a_hook_gets_its_answer_from_the_gateway_that_came_back() {
    let mut gateway = Gateway::start();
    let hook = gateway.hook("PreToolUse", command("t1", "git push").to_string().as_bytes());
    let before = gateway.asked();
    gateway.kill();
    gateway.up();
    let after = gateway.asked();
    assert_eq!(before, after, "it must be the same ask");
    let answered = gateway.banister(&["answer", &after, "accept"]);
    assert_eq!(answered.status.code(), Some(0), "{answered:?}");
    let output = hook.wait_with_output().unwrap();
    assert_eq!(decision(&output).0, "allow", "{output:?}");
    // Sent twice, recorded once.
    let kinds: Vec<_> = gateway.records().iter().map(|record| record["kind"].clone()).collect();
    assert_eq!(kinds, ["event", "ask", "answer"]);
}

#[test]
fn an_answer_is_remembered_across_a_restart() {
    let mut gateway = Gateway::start();
    let hook = gateway.hook("PreToolUse", command("t1", "git push").to_string().as_bytes());
    let ask = gateway.asked();
    gateway.banister(&["answer", &ask, "reject"]);
    hook.wait_with_output().unwrap();
    gateway.kill();
    gateway.up();
    let late = gateway.banister(&["answer", &ask, "accept"]);
    assert_eq!(late.status.code(), Some(1), "{late:?}");
    assert!(gateway.json(&["inbox", "--json"])["asks"].as_array().unwrap().is_empty());
}

#[test]
fn a_second_gateway_on_the_same_data_is_refused() {
    let gateway = Gateway::start();
    let second = gateway.banister(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(second.status.code(), Some(3), "{second:?}");
    // The first one is unharmed.
    assert_eq!(decision(&gateway.hooked("PreToolUse", &command("t", "git status"))).0, "allow");
}
