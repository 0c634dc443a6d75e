//! What waits on a person: more time for it, and every way to answer it.

use serde_json::{Value, json};

use crate::support::{Gateway, command, decision, stderr, stdout};

/// A gateway that gives a minute at first, where hooks wait for nearly five.
fn hasty() -> Gateway {
    let mut gateway = Gateway::stopped();
    let config = gateway.data().with_file_name("config.toml");
    std::fs::write(&config, "ask_seconds = 60\n").unwrap();
    gateway.up_with(&["--config", config.to_str().unwrap()]);
    gateway
}

fn open(gateway: &Gateway) -> Value {
    gateway.json(&["inbox", "--json"])["asks"][0].clone()
}

#[test]
fn more_time_is_had_from_the_command_line_and_the_hook_goes_on_waiting() {
    let gateway = hasty();
    let hook = gateway.hook("PreToolUse", command("t", "git push").to_string().as_bytes());
    let ask = gateway.asked();
    let inbox = stdout(&gateway.banister(&["inbox"]));
    assert!(inbox.contains("The agent itself waits: 4 minutes"), "{inbox}");
    assert!(inbox.contains(&format!("More time: banister extend {}", &ask[4..12])), "{inbox}");

    let extended = gateway.json(&["extend", &ask[4..12], "--by", "90s", "--json"]);
    assert_eq!(extended["schema"], "banister.extend/v1");
    assert_ne!(extended["ask"], json!(ask));
    assert_eq!(open(&gateway)["deadline"], extended["deadline"]);
    assert_eq!(
        (&open(&gateway)["id"], &open(&gateway)["waiting"]),
        (&extended["ask"], &json!(true))
    );

    let output = gateway.banister(&["extend", &ask, "--by", "2h"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(stderr(&output).contains("The agent itself waits no longer"), "{}", stderr(&output));
    let refused = gateway.banister(&["extend", &ask]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(stderr(&refused).contains("no more time"), "{}", stderr(&refused));
    let inbox = stdout(&gateway.banister(&["inbox"]));
    assert!(inbox.contains("The agent itself waits: no longer than that"), "{inbox}");
    assert!(!inbox.contains("More time"), "{inbox}");

    // Under the first id, too: it is about the same.
    let answered = gateway.banister(&["answer", &ask, "--yes"]);
    assert_eq!(answered.status.code(), Some(0), "{answered:?}");
    assert_eq!(decision(&hook.wait_with_output().unwrap()).0, "allow");
    assert_eq!(gateway.banister(&["extend", &ask]).status.code(), Some(1), "it is answered");
    assert_eq!(gateway.banister(&["extend", "nothing"]).status.code(), Some(1));
}

#[test]
fn an_extended_ask_is_there_after_a_restart() {
    let mut gateway = hasty();
    let hook = gateway.hook("PreToolUse", command("t", "git push").to_string().as_bytes());
    let ask = gateway.asked();
    let extended = gateway.json(&["extend", &ask, "--json"]);
    gateway.kill();
    gateway.up();
    assert_eq!(open(&gateway)["id"], extended["ask"]);
    assert_eq!(open(&gateway)["deadline"], extended["deadline"]);
    gateway.banister(&["answer", &ask, "--no", "--message", "not now"]);
    let said = decision(&hook.wait_with_output().unwrap());
    assert_eq!(said, ("deny".into(), "Rejected by the user: not now".into()));
}

#[test]
fn what_is_no_answer_is_refused_with_what_would_be_one() {
    let gateway = Gateway::start();
    let hook = gateway.hook("PreToolUse", command("t", "git push").to_string().as_bytes());
    let ask = gateway.asked();
    for wrong in
        [&["--choice", "a"][..], &["--number", "-3.5"], &["perhaps"], &["--text", "accept"]]
    {
        let output = gateway.banister(&[&["answer", &ask], wrong].concat());
        assert_eq!(output.status.code(), Some(1), "{wrong:?}: {output:?}");
        assert!(stderr(&output).contains("accept or reject"), "{wrong:?}: {}", stderr(&output));
    }
    assert_eq!(open(&gateway)["id"], json!(ask), "it is still open");
    gateway.banister(&["answer", &ask, "reject"]);
    hook.wait_with_output().unwrap();
    let late = gateway.banister(&["answer", &ask, "accept"]);
    assert_eq!(late.status.code(), Some(1));
    assert!(stderr(&late).contains("Too late"), "{}", stderr(&late));
}

#[test]
fn a_question_that_is_pushed_is_answered_from_the_command_line_and_its_producer_reads_the_answer() {
    let gateway = Gateway::start();
    let event = |event: Value| {
        let mut whole = json!({
            "aep_version": "0.1", "time": "2026-11-15T09:00:00.000Z", "agent": { "slug": "finch" },
            "session": { "id": "one" },
        });
        whole.as_object_mut().unwrap().extend(event.as_object().unwrap().clone());
        whole
    };
    let options =
        json!({ "questions": [{ "question": "Which rake?", "options": ["red", "blue"] }] });
    let action = json!({ "type": "tool_call", "id": "act_1", "input": options });
    let tool = json!({ "type": "native", "name": "ask_person" });
    let events = json!([
        event(json!({ "id": "evt_1", "type": "session.start" })),
        event(json!({ "id": "evt_2", "type": "action.requested", "action": action, "tool": tool })),
        event(json!({
            "id": "evt_3", "type": "question.asked", "action": { "type": "tool_call", "id": "act_1" },
            "tool": tool, "content": [{ "type": "question", "text": "Which rake?" }],
        })),
    ])
    .to_string();
    let (host, key) = (gateway.address(), gateway.key("agent.key"));
    let pushed = gateway.raw(&format!(
        "POST /aep/v0.1/events HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{events}",
        events.len()
    ));
    assert_eq!(pushed.status, 200, "{pushed:?}");
    let receipts: Value = serde_json::from_str(&pushed.body).unwrap();
    let session = receipts["results"][0]["session"].as_str().unwrap().to_owned();

    let ask = gateway.asked();
    let inbox = stdout(&gateway.banister(&["inbox"]));
    assert!(inbox.contains("finch asks:\n    Which rake?\n"), "{inbox}");
    assert!(inbox.contains("--choice red") && inbox.contains("--choice blue"), "{inbox}");
    assert!(!inbox.contains("not connected"), "{inbox}");
    let wrong = gateway.banister(&["answer", &ask, "--choice", "green"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(stderr(&wrong).contains("red, blue"), "{}", stderr(&wrong));
    let answered = gateway.banister(&["answer", &ask, "--choice", "blue"]);
    assert_eq!(answered.status.code(), Some(0), "{answered:?}");

    let path = format!("/aep/v0.1/replies?session={session}");
    let quiet = std::time::Duration::from_millis(300);
    let told = gateway.stream_to("agent.key", &path, "", quiet);
    let reply = told.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    let reply: Value = serde_json::from_str(reply).unwrap();
    assert_eq!(reply["request_event_id"], "evt_3", "{reply}");
    assert_eq!(reply["control"]["message"], "blue", "{reply}");
    assert!(stdout(&gateway.banister(&["inbox"])).contains("Nothing is waiting"));
}
