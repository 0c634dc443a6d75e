use proptest::prelude::*;

use super::*;
use crate::activity::{Action, AskKind, Ending, Outcome, ResponseKind, Status, Usage};
use crate::agui::follow::Follower;
use crate::agui::write::Writer;
use crate::check::Checker;
use crate::finding::Severity;
use crate::reader::ReadValue as _;

fn origin(seq: u64) -> Origin {
    Origin { session: "s_1".into(), seq, time: Timestamp::from_second(1_800_000_000).unwrap() }
}

fn read_by(mut reader: Reader, events: &[Value]) -> Vec<Activity> {
    let mut activities: Vec<Activity> = (1..)
        .zip(events)
        .flat_map(|(seq, event)| reader.read_value(event, None, &origin(seq)))
        .collect();
    activities.extend(reader.finish(&origin(0)));
    activities
}

fn read(events: &[Value]) -> Vec<What> {
    read_by(Reader::default(), events).into_iter().map(|activity| activity.what).collect()
}

fn start() -> Value {
    json!({ "type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0" })
}

fn finish(outcome: &Value) -> Value {
    json!({ "type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": outcome })
}

fn said(text: &str, last: bool) -> What {
    What::Said { message: "m".into(), role: Role::Assistant, text: text.into(), last }
}

fn ended(ending: Ending) -> What {
    What::TurnEnded { ending, summary: None, result: None, usage: Vec::new() }
}

#[test]
fn a_message_is_told_piece_by_piece_and_chunks_are_no_different() {
    let explicit = [
        json!({ "type": "TEXT_MESSAGE_START", "messageId": "m" }),
        json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Hel" }),
        json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "lo" }),
        json!({ "type": "TEXT_MESSAGE_END", "messageId": "m" }),
        json!({ "type": "STEP_STARTED", "stepName": "x" }),
    ];
    let chunks = [
        json!({ "type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "Hel" }),
        json!({ "type": "TEXT_MESSAGE_CHUNK", "delta": "lo" }),
        json!({ "type": "STEP_STARTED", "stepName": "x" }),
    ];
    let step = What::StepStarted { name: "x".into() };
    let expected = [said("Hel", false), said("lo", false), said("", true), step];
    assert_eq!(read(&explicit), expected);
    assert_eq!(read(&chunks), expected);
}

#[test]
fn a_call_is_drafted_then_requested_with_all_of_it_then_ended() {
    let events = [
        json!({ "type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "ls", "subagentRunId": "sub" }),
        json!({ "type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{\"a\":" }),
        json!({ "type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "1}" }),
        json!({ "type": "TOOL_CALL_END", "toolCallId": "c" }),
        json!({ "type": "TOOL_CALL_RESULT", "messageId": "x", "toolCallId": "c", "content": [
            { "type": "text", "text": "ok" },
        ] }),
    ];
    let activities = read_by(Reader::default(), &events);
    assert!(activities.iter().all(|it| it.context.subagent.as_deref() == Some("sub")));
    let drafted = |delta: &str| What::ActionDrafted {
        id: "c".into(),
        tool: "ls".into(),
        delta: delta.into(),
    };
    let action = Action { input: Some(json!({ "a": 1 })), ..Action::unseen("c", "ls") };
    let whats: Vec<What> = activities.into_iter().map(|activity| activity.what).collect();
    let result = What::ActionEnded {
        id: "c".into(),
        tool: "ls".into(),
        status: Status::Success,
        output: Some(json!([{ "type": "text", "text": "ok" }])),
        error: None,
        duration_ms: None,
    };
    let requested = What::ActionRequested { action, gate: None };
    assert_eq!(whats, [drafted(""), drafted("{\"a\":"), drafted("1}"), requested, result]);
    let mut chunks = vec![json!({
        "type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "ls", "delta": "{\"a\":",
        "subagentRunId": "sub",
    })];
    chunks.push(json!({ "type": "TOOL_CALL_CHUNK", "delta": "1}", "subagentRunId": "sub" }));
    chunks.push(tag(events[4].clone()));
    assert_eq!(read(&chunks), whats);
}

fn tag(mut event: Value) -> Value {
    event["subagentRunId"] = "sub".into();
    event
}

#[test]
fn reasoning_is_thought_in_either_form_and_under_its_old_names() {
    let expected = |id: &str| {
        let thought =
            |text: &str, last| What::Thought { message: id.into(), text: text.into(), last };
        [thought("", false), thought("hm", false), thought("", true)]
    };
    let explicit = [
        json!({ "type": "REASONING_START", "messageId": "s" }),
        json!({ "type": "REASONING_MESSAGE_START", "messageId": "m", "role": "reasoning" }),
        json!({ "type": "REASONING_MESSAGE_CONTENT", "messageId": "m", "delta": "hm" }),
        json!({ "type": "REASONING_MESSAGE_END", "messageId": "m" }),
        json!({ "type": "REASONING_END", "messageId": "s" }),
    ];
    assert_eq!(read(&explicit), expected("m"));
    let chunks = [
        json!({ "type": "REASONING_MESSAGE_CHUNK", "messageId": "m", "delta": "hm" }),
        json!({ "type": "REASONING_END", "messageId": "s" }),
    ];
    assert_eq!(read(&chunks), expected("m"));
    let retired = [
        json!({ "type": "THINKING_START", "title": "x" }),
        json!({ "type": "THINKING_TEXT_MESSAGE_START" }),
        json!({ "type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "hm" }),
        json!({ "type": "THINKING_TEXT_MESSAGE_END" }),
        json!({ "type": "THINKING_END" }),
    ];
    assert_eq!(read(&retired), expected("thinking-2"));
}

#[test]
fn what_is_told_in_one_event_is_one_activity() {
    let patch = json!([{ "op": "add", "path": "/a", "value": 1 }]);
    let raw = |kind: &str, event: &Value| What::Raw {
        protocol: Protocol::Agui,
        kind: kind.into(),
        text: None,
        event: event.clone(),
    };
    let custom =
        json!({ "type": "CUSTOM", "name": "banister.compacted", "value": { "trigger": "x" } });
    let wrapped = json!({ "type": "RAW", "event": 1 });
    let secret = json!({ "type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "m", "encryptedValue": "x" });
    let message = json!({ "id": "u", "role": "user", "content": "hi" });
    let meta = json!({ "type": "META", "payload": {} });
    let cases = [
        (json!({ "type": "STEP_FINISHED", "stepName": "x" }), What::StepEnded { name: "x".into() }),
        (
            json!({ "type": "STATE_SNAPSHOT", "snapshot": null }),
            What::StateSet { state: Value::Null },
        ),
        (
            json!({ "type": "STATE_DELTA", "delta": patch }),
            What::StatePatched { patch: patch.clone() },
        ),
        (
            json!({ "type": "MESSAGES_SNAPSHOT", "messages": [message] }),
            What::MessagesSet { messages: vec![message.clone()] },
        ),
        (
            json!({ "type": "ACTIVITY_SNAPSHOT", "messageId": "k", "activityType": "plan", "content": { "a": 1 }, "replace": false }),
            What::CardShown {
                id: "k".into(),
                kind: "plan".into(),
                content: json!({ "a": 1 }).as_object().unwrap().clone(),
                replace: false,
            },
        ),
        (
            json!({ "type": "ACTIVITY_DELTA", "messageId": "k", "activityType": "plan", "patch": patch }),
            What::CardPatched { id: "k".into(), kind: "plan".into(), patch: patch.clone() },
        ),
        (
            json!({ "type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "n", "parentToolCallId": "c" }),
            What::SubagentStarted {
                id: "s".into(),
                name: "n".into(),
                description: None,
                parent: None,
                action: Some("c".into()),
            },
        ),
        (
            json!({ "type": "SUBAGENT_FINISHED", "subagentRunId": "s", "result": 1 }),
            What::SubagentEnded {
                id: "s".into(),
                ending: Ending::Completed,
                result: Some(json!(1)),
            },
        ),
        (
            json!({ "type": "SUBAGENT_ERROR", "subagentRunId": "s", "message": "no" }),
            What::SubagentEnded { id: "s".into(), ending: Ending::failed("no"), result: None },
        ),
        (custom.clone(), raw("CUSTOM", &custom)),
        (wrapped.clone(), raw("RAW", &wrapped)),
        (secret.clone(), raw("REASONING_ENCRYPTED_VALUE", &secret)),
        (meta.clone(), raw("META", &meta)),
    ];
    for (event, what) in cases {
        assert_eq!(read(std::slice::from_ref(&event)), [what], "{event}");
    }
    let trusted = read_by(Reader::trusting(), &[custom]).remove(0).what;
    assert_eq!(trusted, What::Compacted { trigger: Some("x".into()) });
}

#[test]
fn a_run_is_a_turn_that_was_asked_for_and_ends_as_it_says() {
    let mut started = start();
    started["input"] = json!({ "threadId": "t", "runId": "r", "messages": [
        { "id": "1", "role": "user", "content": "old" },
        { "id": "2", "role": "user", "content": [{ "type": "text", "text": "new" }] },
    ] });
    let turn = |request: Option<&str>| What::TurnStarted {
        request: request.map(str::to_owned),
        summary: None,
    };
    let usage = json!([{ "model": "m", "inputTokens": 2, "cachedInputTokens": 1 }]);
    let mut done =
        json!({ "type": "RUN_FINISHED", "threadId": "t", "runId": "r", "result": { "a": 1 } });
    done["usage"] = usage;
    let used =
        Usage { model: Some("m".into()), input: Some(2), cache_read: Some(1), ..Usage::default() };
    let completed = What::TurnEnded {
        ending: Ending::Completed,
        summary: None,
        result: Some(json!({ "a": 1 })),
        usage: vec![used],
    };
    let again = started.clone();
    let events = [
        started,
        done,
        again,
        finish(&json!({ "type": "cancelled" })),
        json!({ "type": "RUN_ERROR", "message": "no", "code": "c" }),
    ];
    let cancelled = Ending::Cancelled { by: "producer".into(), reason: None };
    let failed = Ending::Failed { message: "no".into(), code: Some("c".into()), category: None };
    let expected = [turn(Some("new")), completed, turn(None), ended(cancelled), ended(failed)];
    assert_eq!(read(&events), expected);
    let activities = read_by(Reader::default(), &events);
    assert_eq!(activities[0].context.session.as_deref(), Some("t"));
    assert!(Arc::ptr_eq(&activities[0].context, &activities[1].context), "it is shared");
}

fn interrupted() -> Vec<Value> {
    let interrupts = json!([
        { "id": "i1", "reason": "tool_call", "message": "push?", "toolCallId": "c", "expiresAt": "2027-02-01T00:00:00Z" },
        { "id": "i2", "reason": "input_required", "message": "which?", "responseSchema": { "type": "string", "enum": ["a", "b"] } },
    ]);
    vec![
        start(),
        json!({ "type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "push" }),
        json!({ "type": "TOOL_CALL_END", "toolCallId": "c" }),
        finish(&json!({ "type": "interrupt", "interrupts": interrupts })),
    ]
}

fn resumed(resume: &Value) -> Value {
    let mut started = start();
    started["runId"] = "r2".into();
    started["input"] = json!({ "threadId": "t", "runId": "r2", "messages": [], "resume": resume });
    started
}

fn outcomes(whats: &[What]) -> Vec<Outcome> {
    let closed = |what: &What| match what {
        What::AskClosed { outcome, .. } => Some(*outcome),
        _ => None,
    };
    whats.iter().filter_map(closed).collect()
}

#[test]
fn an_interrupt_suspends_the_turn_and_resume_goes_on_with_it() {
    let mut events = interrupted();
    let whats = read(&events);
    let asks: Vec<&Box<crate::activity::Ask>> = whats
        .iter()
        .filter_map(|what| if let What::AskOpened { ask } = what { Some(ask) } else { None })
        .collect();
    assert_eq!((&*asks[0].token, &asks[0].kind), ("i1", &AskKind::Confirmation));
    assert_eq!(asks[0].action.as_ref().unwrap().tool, "push");
    assert!(asks[0].deadline.is_some());
    let AskKind::Clarification { kinds, choices, .. } = &asks[1].kind else {
        panic!("{:?}", asks[1])
    };
    assert_eq!((kinds.as_slice(), choices.len()), ([ResponseKind::MultipleChoice].as_slice(), 2));
    let suspended = Ending::Suspended { asks: asks.iter().map(|ask| ask.id.clone()).collect() };
    assert_eq!(whats.last(), Some(&ended(suspended)));

    let resume = json!([
        { "interruptId": "i1", "status": "resolved", "payload": { "approved": true, "editedArgs": { "x": 1 } } },
        { "interruptId": "i2", "status": "resolved", "payload": "b" },
        { "interruptId": "other", "status": "resolved", "payload": { "approved": true } },
    ]);
    events.push(resumed(&resume));
    let all = read(&events);
    assert_eq!(outcomes(&all), [Outcome::Accepted, Outcome::Accepted]);
    let turns = all.iter().filter(|what| matches!(what, What::TurnStarted { .. })).count();
    assert_eq!(turns, 1, "the same turn goes on");
    let edited = all.iter().any(|what| matches!(what, What::AskClosed { updated_input: Some(input), .. } if *input == json!({ "x": 1 })));
    assert!(edited);
}

#[test]
fn answers_that_do_not_count_are_no_consent() {
    for payload in [json!({ "approved": "yes" }), json!("yes"), json!({}), json!([true])] {
        let mut events = interrupted();
        events.push(resumed(&json!([
            { "interruptId": "i1", "status": "resolved", "payload": payload },
            { "interruptId": "i2", "status": "cancelled" },
        ])));
        let outcomes = outcomes(&read(&events));
        assert_eq!(outcomes, [Outcome::Withdrawn, Outcome::Withdrawn], "{payload}");
    }
}

#[test]
fn a_run_without_answers_withdraws_what_waited_and_is_another_turn() {
    let mut events = interrupted();
    events.push(start());
    let whats = read(&events);
    assert_eq!(outcomes(&whats), [Outcome::Withdrawn, Outcome::Withdrawn]);
    let cancelled = Ending::Cancelled { by: "user".into(), reason: None };
    let last = &whats[whats.len() - 2..];
    assert_eq!(last, [ended(cancelled), What::TurnStarted { request: None, summary: None }]);
}

#[test]
fn the_input_of_a_run_alone_answers_and_asks() {
    let mut events = interrupted();
    let input = json!({ "threadId": "t", "runId": "r2", "messages": [], "resume": [
        { "interruptId": "i1", "status": "resolved", "payload": { "approved": false } },
        { "interruptId": "i2", "status": "cancelled" },
    ] });
    let mut second = start();
    second["runId"] = "r2".into();
    events.extend([input, second, finish(&json!({ "type": "success" }))]);
    events.push(json!({ "threadId": "t", "runId": "r3", "messages": [
        { "id": "u", "role": "user", "content": "next" },
    ] }));
    let mut third = start();
    third["runId"] = "r3".into();
    events.push(third);
    let whats = read(&events);
    assert_eq!(outcomes(&whats), [Outcome::Rejected, Outcome::Withdrawn]);
    let requests: Vec<Option<&str>> = whats
        .iter()
        .filter_map(|what| match what {
            What::TurnStarted { request, .. } => Some(request.as_deref()),
            _ => None,
        })
        .collect();
    assert_eq!(requests, [None, Some("next")]);
}

#[test]
fn cards_and_extensions_never_accept_an_ask() {
    let ask = json!({ "what": "ask_opened", "ask": crate::activity::Ask::new("ask_1", "tok", AskKind::Confirmation) });
    let accepted = json!({ "what": "ask_closed", "id": "ask_1", "action": null, "outcome": "accepted", "by": "user", "message": null, "response": null, "updated_input": null });
    let card = |what: &Value| {
        json!({
            "type": "ACTIVITY_SNAPSHOT", "messageId": "ask_1", "activityType": "banister.ask",
            "content": {}, "metadata": { "banister": { "what": what } },
        })
    };
    let custom = json!({ "type": "CUSTOM", "name": "banister.ask_closed", "value": accepted });
    let events = [start(), card(&ask), card(&accepted), custom];
    for reader in [Reader::default(), Reader::trusting()] {
        let whats: Vec<What> = read_by(reader, &events).into_iter().map(|it| it.what).collect();
        assert_eq!(outcomes(&whats), []);
    }
    let trusted = read_by(Reader::trusting(), &events);
    assert!(matches!(&trusted[1].what, What::AskOpened { ask } if ask.token == "tok"));
}

/// A stream that breaks no rule, as a number of choices make it.
#[expect(clippy::too_many_lines, reason = "one arm for each kind of event, to be read as a table")]
fn stream(choices: &[(u8, u8, String)]) -> Vec<Value> {
    let mut events = vec![start()];
    let (mut open, mut runs, mut results, mut states) =
        (std::collections::BTreeSet::new(), 1, 0, false);
    let (mut cards, mut seen) =
        (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
    let mut ended_subagents = std::collections::BTreeSet::new();
    let mut waits = None;
    let toggle = |open: &mut std::collections::BTreeSet<String>, key: String| {
        let fresh = open.insert(key.clone());
        if !fresh {
            open.remove(&key);
        }
        fresh
    };
    for (kind, n, words) in choices {
        if let Some(interrupt) = waits.take() {
            runs += 1;
            let mut started = start();
            started["runId"] = format!("r{runs}").into();
            started["input"] = json!({ "threadId": "t", "runId": format!("r{runs}"),
                "messages": [{ "id": format!("u{runs}"), "role": "user", "content": [{ "type": "text", "text": words }] }] });
            if let Some(interrupt) = interrupt {
                started["input"]["resume"] = json!([{ "interruptId": interrupt, "status": "resolved", "payload": { "approved": n % 2 == 0 } }]);
            }
            ended_subagents.clear();
            events.push(started);
        }
        let n = n % 3;
        let tag = |mut event: Value| {
            if n == 2 {
                event["subagentRunId"] = "sub".into();
            }
            event
        };
        match kind % 14 {
            0 | 1 => {
                let id = format!("m{n}");
                if open.contains(&id) {
                    let mut event =
                        json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": words });
                    if words.len() > 6 {
                        event["metadata"] = json!({ "k": words });
                    }
                    events.push(event);
                    if kind % 2 == 0 {
                        open.remove(&id);
                        events.push(json!({ "type": "TEXT_MESSAGE_END", "messageId": id }));
                    }
                } else {
                    let mut event = json!({ "type": "TEXT_MESSAGE_START", "messageId": id });
                    event["role"] = if n == 1 { "user" } else { "assistant" }.into();
                    if words.len() > 6 {
                        event["name"] = words.as_str().into();
                    }
                    seen.insert(id.clone());
                    open.insert(id);
                    events.push(tag(event));
                }
            }
            2 | 3 => {
                let id = format!("c{results}{n}");
                if open.contains(&id) {
                    events.push(json!({ "type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": json!({ "a": words }).to_string() }));
                    events.push(json!({ "type": "TOOL_CALL_END", "toolCallId": id }));
                    open.remove(&id);
                    let content = if kind % 2 == 0 {
                        json!(words)
                    } else {
                        json!([{ "type": "text", "text": words }])
                    };
                    events.push(tag(json!({ "type": "TOOL_CALL_RESULT", "messageId": format!("x{results}"), "toolCallId": id, "content": content })));
                    results += 1;
                } else if !open.iter().any(|it| it.starts_with('c')) {
                    let mut event = json!({ "type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": "tool" });
                    if kind % 2 == 0 && n != 1 {
                        event["parentMessageId"] = format!("m{n}").into();
                    }
                    open.insert(id);
                    events.push(tag(event));
                }
            }
            4 => {
                let id = format!("r{n}");
                if toggle(&mut open, id.clone()) {
                    events.push(tag(json!({ "type": "REASONING_START", "messageId": id })));
                    events.push(tag(json!({ "type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning" })));
                } else {
                    events.push(json!({ "type": "REASONING_MESSAGE_CONTENT", "messageId": id, "delta": words }));
                    events.push(json!({ "type": "REASONING_MESSAGE_END", "messageId": id }));
                    events.push(json!({ "type": "REASONING_END", "messageId": id }));
                }
            }
            5 => {
                let kind = if toggle(&mut open, format!("p{n}")) {
                    "STEP_STARTED"
                } else {
                    "STEP_FINISHED"
                };
                events.push(tag(json!({ "type": kind, "stepName": format!("p{n}") })));
            }
            6 => {
                let id = format!("sub{n}");
                if open.remove(&id) {
                    ended_subagents.insert(id.clone());
                    events.push(json!({ "type": "SUBAGENT_FINISHED", "subagentRunId": id }));
                } else if !ended_subagents.contains(&id) {
                    open.insert(id.clone());
                    events.push(
                        json!({ "type": "SUBAGENT_STARTED", "subagentRunId": id, "name": words }),
                    );
                }
            }
            7 => {
                states = true;
                events.push(tag(json!({ "type": "STATE_SNAPSHOT", "snapshot": { "a": words } })));
            }
            8 if states => {
                events.push(json!({ "type": "STATE_DELTA", "delta": [{ "op": "replace", "path": "/a", "value": words }] }));
            }
            9 => {
                let id = format!("k{n}");
                if cards.insert(id.clone()) || words.len() > 5 {
                    events.push(tag(json!({ "type": "ACTIVITY_SNAPSHOT", "messageId": id, "activityType": "x", "content": { "a": words } })));
                } else {
                    events.push(json!({ "type": "ACTIVITY_DELTA", "messageId": id, "activityType": "y", "patch": [{ "op": "add", "path": "/b", "value": words }] }));
                }
            }
            10 if open.is_empty() => {
                let messages = json!([{ "id": "m0", "role": "assistant", "content": words }, { "id": "w", "role": "system", "content": words }]);
                events.push(json!({ "type": "MESSAGES_SNAPSHOT", "messages": messages }));
                seen.insert("m0".to_owned());
            }
            11 => events.push(json!({ "type": "CUSTOM", "name": "x.y", "value": words })),
            12 if seen.contains("m0") => {
                events.push(json!({ "type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "m0", "encryptedValue": words }));
            }
            13 if open.is_empty() => {
                let interrupt = (n == 1).then(|| format!("i{runs}"));
                let run = if runs == 1 { "r".to_owned() } else { format!("r{runs}") };
                let mut end = json!({ "type": "RUN_FINISHED", "threadId": "t", "runId": run });
                if let Some(interrupt) = &interrupt {
                    end["outcome"] = json!({ "type": "interrupt", "interrupts": [{ "id": interrupt, "reason": "confirmation" }] });
                }
                events.push(end);
                waits = Some(interrupt);
            }
            _ => {}
        }
    }
    events
}

fn choices() -> impl Strategy<Value = Vec<(u8, u8, String)>> {
    prop::collection::vec((0_u8..14, 0_u8..6, "[a-z ]{0,9}"), 0..40)
}

fn follow(events: &[Value]) -> Follower {
    let mut follower = Follower::default();
    for event in events {
        if let Err(violation) = follower.value(event) {
            panic!("{violation}: {event}\n{}", Value::Array(events.to_vec()));
        }
    }
    follower
}

/// Explicit events as chunks: nothing but what a chunk closes by itself is left out.
fn chunked(events: &[Value]) -> Vec<Value> {
    let mut names = BTreeMap::new();
    let mut out = Vec::new();
    for event in events {
        let id = event.get("toolCallId").or(event.get("messageId")).cloned().unwrap_or_default();
        let mut event = event.clone();
        match event["type"].as_str().unwrap() {
            "TEXT_MESSAGE_START" | "TEXT_MESSAGE_CONTENT" => {
                event["type"] = "TEXT_MESSAGE_CHUNK".into();
            }
            "TOOL_CALL_START" | "TOOL_CALL_ARGS" => event["type"] = "TOOL_CALL_CHUNK".into(),
            "TEXT_MESSAGE_END" | "TOOL_CALL_END" => {
                // Something of the same owner that says nothing.
                event = json!({ "type": "STATE_DELTA", "delta": [] });
                if let Some(owner) = names.get(&id.to_string()) {
                    event["subagentRunId"] = Value::clone(owner);
                }
            }
            _ => {}
        }
        if let Some(owner) = event.get("subagentRunId") {
            names.insert(id.to_string(), owner.clone());
        }
        out.push(event);
    }
    out
}

proptest! {
    #[test]
    fn what_was_read_and_is_written_again_builds_the_same(choices in choices()) {
        let events = stream(&choices);
        let activities = read_by(Reader::trusting(), &events);
        let mut writer = Writer::recording("x").carrying();
        let mut written: Vec<Value> = activities.iter().flat_map(|it| writer.write(it)).collect();
        let (before, after) = (follow(&events), follow(&written));
        written.extend(writer.close());
        let (before, after) = (before.reducer(), after.reducer());
        let told = Value::Array(events.clone());
        // What is being said is held back where it may become a credential.
        let whole = follow(&written);
        // Asks are shown as cards, too.
        let mut messages = whole.reducer().messages_value();
        messages.as_array_mut().unwrap().retain(|it| it["activityType"] != "banister.ask");
        let mut expected = before.messages_value();
        for message in [&mut expected, &mut messages].into_iter().flat_map(|it| it.as_array_mut().unwrap()) {
            // An empty piece leaves a text where a call alone leaves none.
            if message["content"] == "" && message.get("toolCalls").is_some() {
                message.as_object_mut().unwrap().shift_remove("content");
            }
            let mut fields: Vec<(String, Value)> = std::mem::take(message.as_object_mut().unwrap()).into_iter().collect();
            fields.sort_by(|one, other| one.0.cmp(&other.0));
            *message = Value::Object(fields.into_iter().collect());
        }
        prop_assert_eq!(expected, messages, "{}\n{}", told, Value::Array(written));
        prop_assert_eq!(before.state(), after.state());
        let mut checker = Checker::new(Protocol::Agui).strict();
        for event in &written {
            let findings = checker.value(event);
            prop_assert!(findings.iter().all(|it| it.rule.severity == Severity::Note), "{findings:?} {event}");
        }
    }

    #[test]
    fn a_reader_that_was_saved_goes_on_as_if_it_was_not(choices in choices(), trusts: bool, chunks: bool) {
        let events = stream(&choices);
        let events = if chunks { chunked(&events) } else { events };
        let mut reader = if trusts { Reader::trusting() } else { Reader::default() };
        let mut saved = reader.clone();
        for (seq, event) in (1..).zip(&events) {
            prop_assert_eq!(reader.read_value(event, None, &origin(seq)), saved.read_value(event, None, &origin(seq)));
            saved = serde_json::from_str(&serde_json::to_string(&saved).unwrap()).unwrap();
        }
        prop_assert_eq!(reader.finish(&origin(0)), saved.finish(&origin(0)));
    }

    #[test]
    fn a_stream_of_chunks_says_what_its_explicit_form_says(words in prop::collection::vec("[a-z]{0,3}", 0..9), tool: bool) {
        let (kind, id) = if tool { ("TOOL_CALL", "toolCallId") } else { ("TEXT_MESSAGE", "messageId") };
        let part = if tool { "ARGS" } else { "CONTENT" };
        let mut explicit = vec![start(), json!({ "type": format!("{kind}_START"), id: "i" })];
        if tool {
            explicit[1]["toolCallName"] = "n".into();
        }
        explicit.extend(words.iter().map(|it| json!({ "type": format!("{kind}_{part}"), id: "i", "delta": it })));
        explicit.push(json!({ "type": format!("{kind}_END"), id: "i" }));
        explicit.push(json!({ "type": "RUN_FINISHED", "threadId": "t", "runId": "r" }));
        let mut chunks = chunked(&explicit);
        chunks.retain(|event| event["type"] != "STATE_DELTA");
        prop_assert_eq!(read(&explicit), read(&chunks));
    }

    #[test]
    fn whatever_comes_is_read(events in prop::collection::vec(crate::agui::event::arbitrary::json(), 0..6), choices in choices()) {
        let mut reader = Reader::trusting();
        for (seq, event) in (0..).zip(stream(&choices).iter().chain(&events)) {
            reader.read_value(event, None, &origin(seq));
            for kind in Type::ALL {
                let mut event = event.clone();
                if let Some(fields) = event.as_object_mut() {
                    fields.insert("type".into(), kind.name().into());
                    reader.read_value(&Value::Object(fields.clone()), None, &origin(seq));
                }
            }
        }
    }
}
