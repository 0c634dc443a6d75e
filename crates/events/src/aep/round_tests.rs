//! There and back: nothing that matters is lost between reader and writer.

use serde_json::{Value, json};

use crate::activity::{
    Action, Activity, Ask, AskKind, Choice, Context, Decision, Ending, Gate, Origin, Outcome,
    ResponseKind, Risk, Role, Status, Usage, What,
};
use crate::aep::event::Type;
use crate::aep::read::Reader;
use crate::aep::write::Writer;
use crate::check::Checker;
use crate::event::Protocol;
use crate::finding::Severity;
use crate::reader::ReadValue as _;

fn origin(seq: u64) -> Origin {
    let time = jiff::Timestamp::from_second(1_800_000_000).unwrap();
    Origin { session: "sess".into(), seq, time }
}

fn valid(events: &[Value]) {
    let mut checker = Checker::new(Protocol::Aep).strict();
    for event in events {
        let mut findings = checker.value(event);
        findings.retain(|finding| finding.rule.severity > Severity::Note);
        assert_eq!(findings, [], "{event}");
    }
}

/// Events → activities → events.
fn round(events: &[Value]) -> Vec<Value> {
    let mut reader = Reader::trusting();
    let mut writer = Writer::default().carrying();
    let mut out = Vec::new();
    for (seq, event) in (1..).zip(events) {
        for activity in reader.read_value(event, None, &origin(seq)) {
            out.extend(writer.write(&activity));
        }
    }
    valid(&out);
    out
}

fn add(to: &mut Value, fields: Value) {
    if let (Value::Object(to), Value::Object(fields)) = (to, fields) {
        to.extend(fields);
    }
}

fn event(kind: &str, fields: Value) -> Value {
    let mut event = json!({
        "aep_version": "0.1", "id": format!("evt_{kind}"), "type": kind, "time": "2026-11-15T09:00:00.000Z",
        "agent": { "slug": "claude", "display_name": "Claude Code", "version": "2" },
        "session": { "id": "sess", "conversation_id": "conv", "turn_id": "turn", "permission_mode": "default" },
        "workspace": { "cwd": "/w" }, "model": { "id": "m" }, "hook": "Hook",
    });
    add(&mut event, fields);
    event
}

fn tool(id: &str, more: Value) -> Value {
    let mut action = json!({ "type": "tool_call", "id": id });
    add(&mut action, more);
    json!({ "action": action, "tool": { "type": "mcp", "name": "t", "original_name": "mcp__s__t" }, "server": { "name": "s" } })
}

fn with(mut fields: Value, key: &str, value: Value) -> Value {
    fields[key] = value;
    fields
}

fn says(kind: &str, text: &str) -> Value {
    json!({ "content": [{ "type": kind, "text": text }] })
}

#[test]
#[expect(clippy::too_many_lines, reason = "one event of each type")]
fn a_stream_keeps_its_types_ids_texts_and_decisions() {
    let thread = json!({
        "id": "sess", "conversation_id": "child", "root_conversation_id": "conv",
        "parent": { "conversation_id": "conv", "relation": "subagent", "spawning_action_id": "a1" },
    });
    let mut ended = thread.clone();
    ended["parent"].as_object_mut().unwrap().remove("spawning_action_id");
    let response = json!({
        "aep_version": "0.1", "id": "rsp_1", "request_event_id": "evt_action.requested", "action_id": "a1",
        "time": "2026-11-15T09:00:00.000Z",
        "control": { "behavior": "allow", "message": "fine", "updated_input": { "n": 2 } },
        "decision": { "outcome": "approved", "by": "user", "reason": "fine" },
    });
    let stream = [
        event("session.start", json!({ "lifecycle": { "source": "startup" } })),
        event("prompt.submitted", says("prompt", "do it")),
        event("model.thought", says("thought", "hm")),
        event("model.plan", says("plan", "1. do")),
        event("action.requested", tool("a1", json!({ "input": { "n": 1 }, "rationale": "why" }))),
        response.clone(),
        event("subagent.start", json!({ "session": thread })),
        event(
            "subagent.stop",
            json!({ "session": ended, "content": [{ "type": "response", "text": "found" }] }),
        ),
        event(
            "action.completed",
            tool("a1", json!({ "status": "success", "output": { "ok": true } })),
        ),
        with(event("action.requested", tool("a2", json!({ "input": [1] }))), "id", json!("evt_a2")),
        event(
            "action.failed",
            tool("a2", json!({ "status": "timeout", "error": { "message": "slow" } })),
        ),
        with(event("action.requested", tool("a3", json!({}))), "id", json!("evt_a3")),
        event(
            "action.denied",
            with(
                tool("a3", json!({})),
                "decision",
                json!({ "outcome": "denied", "by": "auto-policy", "reason": "no" }),
            ),
        ),
        event("question.asked", says("question", "Which?")),
        event("question.answered", says("answer", "eu")),
        event("context.compacted", json!({ "lifecycle": { "trigger": "auto" } })),
        event(
            "workspace.changed",
            json!({ "workspace": { "cwd": "/w", "roots": ["/w/a"] }, "lifecycle": { "reason": "edit" } }),
        ),
        event("notification.sent", says("notification", "look")),
        event("model.delta", says("response", "Do ")),
        event("model.response", says("response", "Do it.")),
        event("future.thing", json!({ "metrics": { "n": 1 } })),
        event(
            "agent.error",
            with(says("notification", "429"), "lifecycle", json!({ "reason": "rate_limit" })),
        ),
        event("agent.stop", json!({})),
        event("agent.start", json!({})),
        with(
            event("agent.stop", json!({ "lifecycle": { "reason": "completed" } })),
            "id",
            json!("evt_stop"),
        ),
        event("session.end", json!({ "lifecycle": { "reason": "exit" } })),
    ];
    valid(&stream);
    let written = round(&stream);
    let kinds = |events: &[Value]| -> Vec<String> {
        events.iter().map(|event| event["type"].as_str().unwrap_or("response").to_owned()).collect()
    };
    assert_eq!(kinds(&written), kinds(&stream));
    for kind in Type::ALL {
        assert!(kinds(&stream).iter().any(|known| known == kind.name()), "{}", kind.name());
    }
    let fields = [
        "agent",
        "workspace",
        "model",
        "hook",
        "content",
        "tool",
        "server",
        "skill",
        "metrics",
        "control",
        "action_id",
    ];
    for (before, after) in stream.iter().zip(&written) {
        for field in fields {
            assert_eq!(after.get(field), before.get(field), "{field} of {before}");
        }
        for place in [
            "/session/id",
            "/session/conversation_id",
            "/session/turn_id",
            "/session/permission_mode",
            "/session/parent",
            "/action/id",
            "/action/type",
            "/action/input",
            "/action/output",
            "/action/error",
            "/action/status",
            "/action/rationale",
            "/decision/outcome",
            "/decision/reason",
            "/decision/by",
            "/lifecycle/source",
            "/lifecycle/trigger",
        ] {
            let decided = place == "/decision/outcome" || place == "/decision/by";
            if decided && before.pointer(place).is_none() {
                continue;
            }
            assert_eq!(after.pointer(place), before.pointer(place), "{place} of {before}");
        }
    }
}

fn gate(decision: Decision) -> Gate {
    Gate {
        decision,
        rule: "pack.rule".to_owned(),
        reason: "because".to_owned(),
        risk: Risk::High,
        irreversible: Some(true),
        opaque: Some("part".to_owned()),
        safer: Some("less".to_owned()),
    }
}

#[expect(clippy::too_many_lines, reason = "one of each kind")]
fn activities() -> Vec<What> {
    let some = |text: &str| Some(text.to_owned());
    let action = |id: &str| Action {
        input: Some(json!({ "command": "ls" })),
        rationale: some("to see"),
        ..Action::unseen(id, "Bash")
    };
    let deadline = Some(jiff::Timestamp::from_second(1_800_000_600).unwrap());
    let confirmation = Ask {
        action: Some(action("C:\\odd id")),
        gate: Some(gate(Decision::Ask)),
        digest: "d".to_owned(),
        deadline,
        words: some("please"),
        ..Ask::new("ask_1", "rpl_1", AskKind::Confirmation)
    };
    let plan = Ask::new("ask_2", "rpl_2", AskKind::Plan { text: "1. do".to_owned() });
    let question = Ask {
        deadline,
        schema: Some(json!({ "type": "boolean" })),
        ..Ask::new(
            "ask_3",
            "rpl_3",
            AskKind::Clarification {
                question: "Sure?".to_owned(),
                kinds: vec![ResponseKind::YesNo],
                choices: vec![Choice { value: "y".to_owned(), label: "Yes".to_owned() }],
                context: some("why"),
                default: some("no"),
            },
        )
    };
    let close = |id: &str, action, outcome, by: &str, response| What::AskClosed {
        id: id.to_owned(),
        action,
        outcome,
        by: by.to_owned(),
        message: None,
        response,
        updated_input: None,
    };
    let opened = |ask: &Ask| What::AskOpened { ask: Box::new(ask.clone()) };
    vec![
        What::TurnStarted { request: some("do it"), summary: some("will do") },
        What::Said {
            message: "m0".to_owned(),
            role: Role::User,
            text: "more".to_owned(),
            last: true,
        },
        What::Said {
            message: "m1".to_owned(),
            role: Role::System,
            text: "be kind".to_owned(),
            last: true,
        },
        What::StateChanged { state: "thinking".to_owned(), summary: None },
        What::Progressed {
            percent: Some(5.0),
            step: None,
            total: None,
            description: some("now"),
            eta_ms: Some(9),
        },
        What::StepStarted { name: "one".to_owned() },
        What::Said {
            message: "m2".to_owned(),
            role: Role::Assistant,
            text: "Hi ".to_owned(),
            last: false,
        },
        What::Said {
            message: "m2".to_owned(),
            role: Role::Assistant,
            text: "you".to_owned(),
            last: true,
        },
        What::Thought { message: "t1".to_owned(), text: "hm".to_owned(), last: true },
        What::ActionRequested { action: action("C:\\odd id"), gate: Some(gate(Decision::Ask)) },
        opened(&confirmation),
        close("ask_1", Some(action("C:\\odd id")), Outcome::Expired, "timeout", None),
        What::ActionRequested { action: action("a2"), gate: Some(gate(Decision::Allow)) },
        What::ActionEnded {
            id: "a2".to_owned(),
            tool: "Bash".to_owned(),
            status: Status::Failure,
            output: Some(json!([1])),
            error: some("bad"),
            duration_ms: Some(7),
        },
        opened(&plan),
        close("ask_2", None, Outcome::Accepted, "user", None),
        opened(&question),
        close("ask_3", None, Outcome::Accepted, "user", Some(json!(true))),
        opened(&question),
        close("ask_3", None, Outcome::Withdrawn, "agent", None),
        What::SubagentStarted {
            id: "sub".to_owned(),
            name: "explore".to_owned(),
            description: some("look"),
            parent: None,
            action: None,
        },
        What::SubagentEnded {
            id: "sub".to_owned(),
            ending: Ending::failed("lost"),
            result: Some(json!({ "n": 1 })),
        },
        What::StateSet { state: Value::Null },
        What::HandedOff {
            reason: "you do it".to_owned(),
            target: some("human"),
            uri: some("tel:1"),
        },
        What::Erred { message: "oops".to_owned(), code: None },
        What::Used { usage: Usage { input: Some(3), ..Usage::default() } },
        What::WorkspaceChanged { paths: vec!["/a".to_owned()], reason: None },
        What::TurnEnded {
            ending: Ending::Cancelled { by: "user".to_owned(), reason: some("enough") },
            summary: some("did half"),
            result: Some(json!({ "half": true })),
            usage: vec![
                Usage { provider: some("p"), input: Some(1), ..Usage::default() },
                Usage::default(),
            ],
        },
        What::SessionEnded { reason: None },
    ]
}

#[test]
fn what_is_carried_comes_back() {
    let context = Context {
        agent: "claude".to_owned(),
        session: Some("conv".to_owned()),
        turn: Some("turn 1".to_owned()),
        ..Context::default()
    };
    let context = std::sync::Arc::new(context);
    let mut writer = Writer::default().carrying();
    let mut reader = Reader::trusting();
    let mut events = Vec::new();
    let mut read = Vec::new();
    for (seq, what) in (1..).zip(activities()) {
        let activity = Activity { origin: origin(seq), context: context.clone(), what };
        for event in writer.write(&activity) {
            read.extend(reader.read_value(&event, None, &origin(seq)));
            events.push(event);
        }
    }
    valid(&events);
    assert!(read.iter().all(|activity| activity.context == context), "who and where is the same");
    let mut read: Vec<What> = read.into_iter().map(|activity| activity.what).collect();
    // The writer tells what was used up in the end, too, and a refusal that the agent did not tell.
    read.retain(|what| !matches!(what, What::ActionDenied { .. }));
    for (given, expected) in read.iter().zip(activities()) {
        assert_eq!(*given, expected);
    }
    assert_eq!(read.len(), activities().len(), "{:?}", read.last());
}

/// The documents of the protocol, where they are at hand.
fn samples(folder: &str) -> Vec<(String, Value)> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/agents/aep");
    let Ok(entries) = std::fs::read_dir(root.join(folder)) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    let paths = paths.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap())
        })
        .collect()
}

fn sample(name: &str) -> Option<Value> {
    samples("").into_iter().find(|(known, _)| known == name).map(|(_, event)| event)
}

#[test]
fn documents_of_the_protocol_go_through_unharmed() {
    for (name, event) in samples("") {
        // What ends or answers something follows what it ends or answers.
        let kind = event["type"].as_str().unwrap().to_owned();
        let before = match kind.as_str() {
            "question.answered" => sample("question.asked"),
            "action.completed" | "action.failed" => sample("action.requested"),
            "agent.stop" => sample("agent.start"),
            _ => None,
        };
        let stream: Vec<Value> = before.into_iter().chain([event.clone()]).collect();
        let written = round(&stream);
        if kind == "model.delta" {
            // One word alone may still become a credential: it is held back.
            assert_eq!(written.len(), 1, "{written:?}");
            continue;
        }
        let last = written.last().unwrap();
        assert_eq!(last["type"], kind.as_str(), "{name}: {written:?}");
        for place in
            ["/action/id", "/action/output", "/content/0/text", "/session/conversation_id", "/hook"]
        {
            if let Some(before) = event.pointer(place) {
                assert_eq!(last.pointer(place), Some(before), "{place} of {name}");
            }
        }
    }
}

#[test]
fn responses_of_the_protocol_go_through_unharmed() {
    let Some(request) = sample("action.requested") else { return };
    for (name, response) in samples("_responses") {
        let written = round(&[request.clone(), response.clone()]);
        let behavior = response["control"]["behavior"].as_str().unwrap();
        let told: Vec<_> = written.iter().skip(2).collect();
        match behavior {
            "allow" | "ask" | "defer" | "abstain" => {
                assert_eq!(told.len(), 1, "{name}");
                assert_eq!(told[0]["control"]["behavior"], behavior);
                let input = "/control/updated_input";
                assert_eq!(told[0].pointer(input), response.pointer(input), "{name}");
            }
            "continue" => assert_eq!(told[0]["type"], "x.raw", "no yes to an action"),
            _ => {
                assert_eq!(told[0]["control"]["behavior"], "deny", "{name}");
                assert_eq!(told[1]["type"], "action.denied", "{name}");
                assert_eq!(told[1]["decision"]["by"], response["decision"]["by"]);
            }
        }
    }
}
