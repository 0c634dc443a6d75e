//! AAEP over standard input and output, with a real process on each side.

use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{BANISTER, Gateway};

struct Bridge {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
}

impl Bridge {
    fn start(gateway: &Gateway) -> Self {
        let mut child = Command::new(BANISTER)
            .args(["aaep-stdio", "--data"])
            .arg(gateway.data())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = sync_channel(1_024);
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(serde_json::from_str(&line).unwrap()).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        Self { child, input, lines }
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    fn next(&self) -> Value {
        self.lines.recv_timeout(Duration::from_secs(20)).unwrap()
    }

    fn until(&self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.next();
            if fits(&line) {
                return line;
            }
        }
    }

    fn subscribe(&mut self) {
        self.say(&json!({
            "jsonrpc": "2.0", "id": 1, "method": "aaep.subscribe", "params": {
                "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "porch",
                "capabilities": { "languages": ["en"], "supports_confirmation_reply": true },
            },
        }));
        let accepted = self.next();
        assert_eq!(accepted["id"], 1, "{accepted}");
        assert_eq!(accepted["result"]["type"], "subscription.accepted", "{accepted}");
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let _dead = self.child.kill();
        let _gone = self.child.wait();
    }
}

#[test]
fn a_subscriber_hears_and_answers_over_standard_input_and_output() {
    let gateway = Gateway::start();
    let mut bridge = Bridge::start(&gateway);
    bridge.subscribe();
    bridge.say(&json!({ "jsonrpc": "2.0", "id": "p", "method": "aaep.ping" }));
    assert_eq!(bridge.next(), json!({ "jsonrpc": "2.0", "id": "p", "result": {} }));
    let payload = json!({
        "session_id": "one", "cwd": "/src", "tool_name": "Bash", "tool_use_id": "t1",
        "tool_input": { "command": "git push --force" },
    });
    let mut hook = Command::new(BANISTER)
        .args(["hook", "claude-code", "PreToolUse", "--data"])
        .arg(gateway.data())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    hook.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    let asked = bridge.until(|line| line["params"]["reply_token"].is_string());
    assert_eq!(asked["method"], "aaep.event");
    bridge.say(&json!({
        "jsonrpc": "2.0", "method": "aaep.reply", "params": {
            "type": "confirmation.reply", "reply_token": asked["params"]["reply_token"],
            "decision": "accept", "subscription_id": "sub_any",
            "timestamp": asked["params"]["timestamp"],
        },
    }));
    let answer = hook.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&answer.stdout).contains("allow"), "{answer:?}");
    bridge.until(|line| line["params"]["type"] == "aaep:agent.state.changed");
    drop(bridge.input.take());
    assert!(bridge.child.wait().unwrap().success(), "the subscriber left");
}

#[test]
fn a_gateway_that_goes_is_told_and_one_that_is_not_there_as_well() {
    let mut gateway = Gateway::start();
    let mut bridge = Bridge::start(&gateway);
    bridge.subscribe();
    gateway.stop();
    let close = bridge.until(|line| line["method"] == "aaep.close");
    assert_eq!(close["params"]["reason_code"], "going_away");
    assert_eq!(bridge.child.wait().unwrap().code(), Some(3));
    let mut late = Bridge::start(&gateway);
    assert_eq!(late.child.wait().unwrap().code(), Some(3));
}
