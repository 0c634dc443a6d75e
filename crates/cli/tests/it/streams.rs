//! The same session three ways, each passing `banister check`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Gateway, command, payload, start_hook};

/// Plays a turn with a reading, a refused call, an accepted and a rejected ask.
fn play(gateway: &Gateway, session: &str) {
    let with = |mut value: Value| {
        value["session_id"] = json!(session);
        value
    };
    let tell = |event: &str, fields: Value| {
        let output = gateway.hooked(event, &with(payload(event, &fields)));
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    };
    tell("SessionStart", json!({ "source": "startup" }));
    tell("UserPromptSubmit", json!({ "prompt": "Please publish" }));
    gateway.hooked("PreToolUse", &with(command("a", "git status")));
    tell(
        "PostToolUse",
        json!({ "tool_name": "Bash", "tool_use_id": "a", "tool_response": "clean" }),
    );
    gateway.hooked("PreToolUse", &with(command("b", "rm -rf /")));
    for (id, word) in [("c", "accept"), ("d", "reject")] {
        let hook = gateway.hook("PreToolUse", with(command(id, "git push")).to_string().as_bytes());
        let ask = gateway.asked();
        gateway.banister(&["answer", &ask, word]);
        hook.wait_with_output().unwrap();
    }
    tell(
        "PostToolUse",
        json!({ "tool_name": "Bash", "tool_use_id": "c", "tool_response": "pushed" }),
    );
    tell("Stop", json!({ "last_assistant_message": "Published." }));
}

fn check(gateway: &Gateway, recording: &str, protocol: &str) {
    let file = gateway.dir.path().join(format!("{protocol}.sse"));
    std::fs::write(&file, recording).unwrap();
    let output = std::process::Command::new(crate::support::BANISTER)
        .args(["check", "--protocol", protocol])
        .arg(&file)
        .output()
        .unwrap();
    let clean = String::from_utf8_lossy(&output.stderr).contains(": 0 errors, 0 warnings");
    assert!(output.status.success() && clean, "{output:?}\n{recording}");
}

fn events(recording: &str) -> Vec<Value> {
    let data = recording.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

fn kinds(recording: &str) -> Vec<String> {
    events(recording)
        .iter()
        .map(|event| event["type"].as_str().unwrap_or("response").replace("aaep:agent.", ""))
        .collect()
}

const MOMENT: Duration = Duration::from_millis(700);

#[test]
fn one_session_reads_the_same_in_all_three() {
    let gateway = Gateway::start();
    play(&gateway, "one");

    let aaep = gateway.stream("/aaep/v1/events?from=start", "", MOMENT);
    check(&gateway, &aaep, "aaep");
    let told: Vec<_> = kinds(&aaep).into_iter().filter(|kind| kind != "state.changed").collect();
    assert_eq!(
        told,
        [
            "session.started",
            "tool.invoked",
            "tool.completed",
            "awaiting.confirmation",
            "tool.invoked",
            "awaiting.confirmation",
            "tool.completed",
            "output.streaming",
            "session.completed",
        ]
    );

    let hooks = gateway.stream("/aep/v0.1/events?from=start", "", MOMENT);
    check(&gateway, &hooks, "aep");
    assert_eq!(
        kinds(&hooks),
        [
            "session.start",
            "prompt.submitted",
            "action.requested",
            "response",
            "action.completed",
            "action.requested",
            "response",
            "action.denied",
            "action.requested",
            "response",
            "action.requested",
            "response",
            "action.denied",
            "action.completed",
            "model.response",
            "agent.stop",
        ]
    );

    let session =
        gateway.json_get("/api/sessions")["sessions"][0]["id"].as_str().unwrap().to_owned();
    let agui = gateway.attach(&session);
    check(&gateway, &agui, "agui");
    let snapshot = &events(&agui)[1];
    let roles: Vec<_> = snapshot["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["role"].as_str().unwrap())
        .collect();
    assert_eq!(
        roles,
        [
            "user",
            "assistant",
            "tool",
            "assistant",
            "tool",
            "assistant",
            "tool",
            "activity",
            "assistant",
            "tool",
            "activity",
            "assistant"
        ]
    );
}

#[test]
fn a_stream_resumes_without_gap_or_duplicate() {
    let gateway = Gateway::start();
    play(&gateway, "one");
    for path in ["/aaep/v1/events", "/aep/v0.1/events"] {
        let whole = gateway.stream(&format!("{path}?from=start"), "", MOMENT);
        let ids: Vec<_> = whole.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
        assert!(ids.len() > 10);
        for cut in [0, 1, ids.len() / 2, ids.len() - 2] {
            let rest = gateway.stream(path, &format!("Last-Event-ID: {}\r\n", ids[cut]), MOMENT);
            let again: Vec<_> = rest.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
            assert_eq!(again, ids[cut + 1..], "{path} after {cut}");
            assert_eq!(events(&rest), events(&whole)[cut + 1..], "{path} after {cut}");
        }
    }
}

#[test]
fn streams_survive_a_restart_byte_for_byte() {
    let mut gateway = Gateway::start();
    play(&gateway, "one");
    let before = gateway.stream("/aaep/v1/events?from=start", "", MOMENT);
    gateway.kill();
    gateway.up();
    assert_eq!(gateway.stream("/aaep/v1/events?from=start", "", MOMENT), before);
}

#[test]
fn who_comes_late_is_told_what_is_going_on_and_not_what_is_over() {
    let gateway = Gateway::start();
    play(&gateway, "over");
    gateway.hooked("UserPromptSubmit", &payload("UserPromptSubmit", &json!({ "prompt": "Next" })));
    let hook = start_hook(
        &gateway.data().join("hook/banister-hook"),
        "PreToolUse",
        command("z", "git push").to_string().as_bytes(),
    );
    let ask = gateway.asked();
    let aaep = gateway.stream("/aaep/v1/events", "", MOMENT);
    assert_eq!(
        kinds(&aaep),
        ["session.started", "state.changed", "state.changed", "awaiting.confirmation"]
    );
    check(&gateway, &aaep, "aaep");
    let hooks = gateway.stream("/aep/v0.1/events", "", MOMENT);
    assert_eq!(kinds(&hooks), ["prompt.submitted", "action.requested"]);
    let foreign = gateway.stream("/aaep/v1/events", "Last-Event-ID: other.1.0\r\n", MOMENT);
    assert!(foreign.contains(": replay-exhausted\n"), "{foreign}");
    assert_eq!(kinds(&foreign), kinds(&aaep));
    gateway.banister(&["answer", &ask, "reject"]);
    hook.wait_with_output().unwrap();
}

#[test]
fn what_happens_is_seen_while_it_happens() {
    let gateway = Gateway::start();
    std::thread::scope(|scope| {
        let watching =
            scope.spawn(|| gateway.stream("/aaep/v1/events", "", Duration::from_secs(4)));
        std::thread::sleep(Duration::from_millis(300));
        play(&gateway, "one");
        let seen = watching.join().unwrap();
        assert!(kinds(&seen).contains(&"session.completed".to_owned()), "{seen}");
        check(&gateway, &seen, "aaep");
    });
}

#[test]
fn people_are_told_in_their_language() {
    let gateway = Gateway::start();
    play(&gateway, "one");
    for (tag, direction, word) in
        [("es", "ltr", "quiere"), ("ar", "rtl", "يريد"), ("ja", "ltr", "実行")]
    {
        let aaep = gateway.stream(&format!("/aaep/v1/events?from=start&lang={tag}"), "", MOMENT);
        check(&gateway, &aaep, "aaep");
        let asked = events(&aaep)
            .into_iter()
            .find(|event| event["type"] == "aaep:agent.awaiting.confirmation")
            .unwrap();
        assert_eq!(asked["localization_hints"]["primary_language"], tag);
        assert_eq!(asked["localization_hints"]["text_direction"], direction);
        let action = asked["action"].as_str().unwrap();
        assert!(action.contains(word) && action.contains("git push"), "{action}");
    }
}

#[test]
fn an_attached_client_follows_the_turn_to_its_end() {
    let gateway = Gateway::start();
    gateway.hooked("UserPromptSubmit", &payload("UserPromptSubmit", &json!({ "prompt": "Go" })));
    let session =
        gateway.json_get("/api/sessions")["sessions"][0]["id"].as_str().unwrap().to_owned();
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| gateway.attach(&session));
        std::thread::sleep(Duration::from_millis(300));
        gateway.hooked("PreToolUse", &command("a", "git status"));
        gateway.hooked("Stop", &payload("Stop", &json!({ "last_assistant_message": "Done." })));
        let seen = watching.join().unwrap();
        check(&gateway, &seen, "agui");
        let last = kinds(&seen);
        assert_eq!(last.first().map(String::as_str), Some("RUN_STARTED"));
        assert_eq!(last.last().map(String::as_str), Some("RUN_FINISHED"));
        assert!(last.contains(&"TOOL_CALL_START".to_owned()));
        assert!(last.contains(&"TEXT_MESSAGE_CONTENT".to_owned()));
    });
}

impl Gateway {
    fn json_get(&self, path: &str) -> Value {
        serde_json::from_str(&self.get(path).body).unwrap()
    }

    fn attach(&self, session: &str) -> String {
        use std::os::unix::net::UnixStream;
        let key = self.key("person.key");
        let body = json!({ "threadId": "t", "runId": "r", "messages": [] }).to_string();
        let request = format!(
            "POST /agui/sessions/{session} HTTP/1.1\r\nHost: banister\r\nAuthorization: Bearer {key}\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        let response = crate::support::exchange(
            UnixStream::connect(self.socket()).unwrap(),
            request.as_bytes(),
        );
        assert_eq!(response.status, 200, "{response:?}");
        response.body
    }
}
