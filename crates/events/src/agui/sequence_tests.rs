use serde_json::{Value, json};

use super::*;

/// One step, from a value.
fn see(sequence: &mut Sequence, message: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    crate::check::with_document(message, |document| {
        let event = document.root();
        if let Some(kind) = text(event, "type").and_then(|name| Type::parse(&name)) {
            sequence.step(kind, event, &mut findings, &mut |_| {});
        }
    });
    findings
}

fn play(events: &[Value]) -> Vec<&'static str> {
    let mut sequence = Sequence::default();
    let mut found: Vec<Finding> =
        events.iter().flat_map(|event| see(&mut sequence, event)).collect();
    found.extend(sequence.finish());
    found.into_iter().map(|finding| finding.rule.code).collect()
}

fn started(thread: &str, run: &str) -> Value {
    json!({"type": "RUN_STARTED", "threadId": thread, "runId": run})
}

fn finished(thread: &str, run: &str) -> Value {
    json!({"type": "RUN_FINISHED", "threadId": thread, "runId": run})
}

/// The events, as one run.
fn run(events: &[Value]) -> Vec<&'static str> {
    let mut all = vec![started("t", "r")];
    all.extend_from_slice(events);
    all.push(finished("t", "r"));
    play(&all)
}

fn chunk(id: Option<&str>, owner: Option<&str>) -> Value {
    let mut event = json!({"type": "TEXT_MESSAGE_CHUNK", "delta": "x"});
    for (name, value) in [("messageId", id), ("subagentRunId", owner)] {
        if let Some(value) = value {
            event[name] = value.into();
        }
    }
    event
}

const CLEAN: [&str; 0] = [];

#[test]
fn what_follows_an_end_is_told_once_until_the_next_run() {
    let late = chunk(Some("m"), None);
    let error = || json!({"type": "RUN_ERROR", "message": "x"});
    let (begin, end) = (started("t", "r"), finished("t", "r"));
    let again = [begin.clone(), end.clone(), late.clone(), late.clone(), end.clone()];
    assert_eq!(play(&again), ["AGUI-SEQ-02"]);
    assert_eq!(play(&[&again[..], &again[..]].concat()), ["AGUI-SEQ-02"; 2]);
    let failed = [begin.clone(), error(), error(), late.clone(), error()];
    assert_eq!(play(&failed), ["AGUI-SEQ-01"]);
    let many = [vec![begin.clone(), end.clone()], vec![late; 60_000]].concat();
    assert_eq!(play(&many), ["AGUI-SEQ-02"]);
    let nested = [begin.clone(), begin, end.clone(), end];
    assert_eq!(play(&nested), ["AGUI-SEQ-04"]);
}

#[test]
fn pieces_under_somebody_elses_tag_are_told_once_for_each_message() {
    let start = |id: &str| json!({"type": "TEXT_MESSAGE_START", "messageId": id});
    let piece = |id: &str| json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": "x", "subagentRunId": "s"});
    let end = |id: &str| json!({"type": "TEXT_MESSAGE_END", "messageId": id});
    let events = [
        vec![start("a"), start("b")],
        vec![piece("a"); 100],
        vec![piece("b"); 100],
        vec![end("a"), end("b")],
    ];
    assert_eq!(run(&events.concat()), ["AGUI-SEQ-19"; 2]);
}

#[test]
fn what_follows_an_end_reaches_nobody() {
    let mut sequence = Sequence::default();
    let mut steps = 0;
    let events = [started("t", "r"), finished("t", "r"), chunk(Some("m"), None), chunk(None, None)];
    for event in &events {
        crate::check::with_document(event, |document| {
            let kind = text(document.root(), "type").and_then(|name| Type::parse(&name)).unwrap();
            sequence.step(kind, document.root(), &mut Vec::new(), &mut |_| steps += 1);
        });
    }
    assert_eq!(steps, 2);
}

#[test]
fn a_stream_without_any_run_is_told_at_its_end() {
    let mut checker = crate::check::Checker::new(crate::event::Protocol::Agui);
    assert_eq!(checker.finish(), [], "nothing came");
    for _ in 0..2 {
        checker.value(&json!({"type": "RunStarted", "threadId": "t", "runId": "r"}));
    }
    let found = checker.finish();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].rule.code, &*found[0].message), ("AGUI-SEQ-03", "no run was started"));
}

#[test]
fn runs_of_several_threads_may_overlap_in_one_recording() {
    let text = |kind: &str, id: &str| json!({"type": format!("TEXT_MESSAGE_{kind}"), "messageId": id, "delta": ""});
    let events = [
        started("a", "1"),
        text("START", "ma"),
        started("b", "1"),
        text("START", "mb"),
        text("CONTENT", "ma"),
        text("END", "ma"),
        text("END", "mb"),
        finished("a", "1"),
        text("START", "mc"),
        text("END", "mc"),
        finished("b", "1"),
    ];
    assert_eq!(play(&events), CLEAN);
    assert_eq!(play(&[started("a", "1"), started("b", "1"), finished("b", "1")]), ["AGUI-SEQ-26"]);
}

#[test]
fn a_missing_start_is_reported_once() {
    let custom = json!({"type": "CUSTOM", "name": "n", "value": 1});
    assert_eq!(play(&[custom.clone(), custom.clone(), finished("t", "r")]), ["AGUI-SEQ-03"]);
    assert_eq!(play(&[custom.clone(), started("t", "r"), finished("t", "r")]), ["AGUI-SEQ-03"]);
    assert_eq!(play(&[finished("t", "r"), custom]), ["AGUI-SEQ-03", "AGUI-SEQ-02"]);
}

#[test]
fn unknown_types_change_nothing() {
    let unknown = json!({"type": "NOVELTY"});
    assert_eq!(
        play(&[unknown.clone(), started("t", "r"), unknown.clone(), finished("t", "r"), unknown]),
        CLEAN
    );
}

#[test]
fn everything_open_is_named_at_the_end_in_order() {
    let events = [
        json!({"type": "STEP_STARTED", "stepName": "s"}),
        json!({"type": "TEXT_MESSAGE_START", "messageId": "m"}),
        json!({"type": "REASONING_START", "messageId": "r"}),
        json!({"type": "REASONING_MESSAGE_START", "messageId": "r"}),
        json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "n"}),
        json!({"type": "SUBAGENT_STARTED", "subagentRunId": "x", "name": "n"}),
    ];
    assert_eq!(run(&events), ["AGUI-SEQ-24"; 6]);
}

#[test]
fn chunks_follow_their_lanes() {
    let tick = json!({"type": "CUSTOM", "name": "n", "value": 1});
    let tagged = json!({"type": "CUSTOM", "name": "n", "value": 1, "subagentRunId": "s"});
    let raw = json!({"type": "RAW", "event": 1});
    for (events, expected) in [
        (vec![chunk(Some("m"), None), chunk(None, None), raw, chunk(None, None)], vec![]),
        (vec![chunk(None, None)], vec!["AGUI-SEQ-25"]),
        (vec![chunk(Some("m"), None), tick.clone(), chunk(None, None)], vec!["AGUI-SEQ-25"]),
        (vec![chunk(Some("m"), None), tagged, chunk(None, None)], vec![]),
        (vec![chunk(Some("m"), Some("s")), tick, chunk(None, None)], vec![]),
        (vec![chunk(Some("m"), Some("s")), chunk(Some("m"), Some("z"))], vec!["AGUI-SEQ-19"]),
        (vec![chunk(Some("m"), None), chunk(Some("n"), None), chunk(Some("m"), None)], vec![]),
        (
            vec![chunk(Some("m"), None), json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "c"})],
            vec!["AGUI-SEQ-25"],
        ),
        (
            vec![
                chunk(Some("m"), None),
                json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": ""}),
            ],
            vec!["AGUI-SEQ-11"],
        ),
        (
            vec![
                json!({"type": "TEXT_MESSAGE_START", "messageId": "m"}),
                chunk(Some("m"), None),
                json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}),
            ],
            vec!["AGUI-SEQ-10", "AGUI-SEQ-11"],
        ),
    ] {
        assert_eq!(run(&events), expected, "{events:?}");
    }
}

#[test]
fn what_the_reference_verifier_lets_pass_passes() {
    let events = [
        json!({"type": "TOOL_CALL_RESULT", "messageId": "result", "toolCallId": "of-an-earlier-run", "content": ""}),
        json!({"type": "TEXT_MESSAGE_START", "messageId": "m", "subagentRunId": "never-announced"}),
        json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}),
        json!({"type": "ACTIVITY_DELTA", "messageId": "unknown", "activityType": "x", "patch": []}),
    ];
    assert_eq!(run(&events), CLEAN);
    assert_eq!(play(&[json!({"type": "RUN_ERROR", "message": "x"})]), CLEAN);
}

#[test]
fn an_error_ends_a_run_whatever_is_open() {
    let open = json!({"type": "TEXT_MESSAGE_START", "messageId": "m"});
    let error = json!({"type": "RUN_ERROR", "message": "x"});
    assert_eq!(play(&[started("t", "r"), open, error.clone()]), CLEAN);
    assert_eq!(play(&[started("t", "r"), error.clone(), error]), ["AGUI-SEQ-01"]);
}

#[test]
fn memory_is_bounded_whatever_a_run_opens() {
    let mut sequence = Sequence::default();
    see(&mut sequence, &started("t", "r"));
    let names = |number: u32| -> [Value; 6] {
        let id = number.to_string();
        [
            json!({"type": "STEP_STARTED", "stepName": id}),
            json!({"type": "SUBAGENT_STARTED", "subagentRunId": id, "name": "n", "parentSubagentRunId": format!("p{id}")}),
            json!({"type": "SUBAGENT_FINISHED", "subagentRunId": format!("f{id}")}),
            json!({"type": "TEXT_MESSAGE_START", "messageId": id}),
            json!({"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": "n"}),
            json!({"type": "REASONING_START", "messageId": id}),
        ]
    };
    for number in 0..20_000 {
        for event in names(number) {
            see(&mut sequence, &event);
        }
    }
    assert!(sequence.open.iter().all(|run| run.size() <= 6 * 16_384 + 4096));
}

#[test]
fn long_ids_are_ids() {
    let long = "s".repeat(500);
    let start = json!({"type": "TEXT_MESSAGE_START", "messageId": "m", "subagentRunId": long});
    let mut end = json!({"type": "TEXT_MESSAGE_END", "messageId": "m", "subagentRunId": long});
    assert_eq!(run(&[start.clone(), end.clone()]), CLEAN);
    end["subagentRunId"] = json!("t".repeat(500));
    assert_eq!(run(&[start, end]), ["AGUI-SEQ-19"]);
    let threads = ["a".repeat(200), "b".repeat(200)];
    let [a, b] = [&threads[0], &threads[1]];
    let overlapping = [started(a, "1"), started(b, "2"), finished(a, "1"), finished(b, "2")];
    assert_eq!(play(&overlapping), CLEAN);
}

#[test]
fn a_crowd_is_not_blamed_for_being_one() {
    let step = |kind: &str, n: usize| json!({"type": kind, "stepName": "plan", "subagentRunId": format!("s{n}")});
    let (begun, ended) =
        (0..300).map(|n| (step("STEP_STARTED", n), step("STEP_FINISHED", n))).unzip();
    let (begun, ended): (Vec<_>, Vec<_>) = (begun, ended);
    assert_eq!(run(&[begun, ended].concat()), CLEAN);
    let open = |n: usize| json!({"type": "TEXT_MESSAGE_START", "messageId": format!("m{n}")});
    let more = |n: usize| json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": format!("m{n}"), "delta": ""});
    let events: Vec<Value> = (0..20_000).map(open).chain((0..20_000).map(more)).collect();
    assert_eq!(run(&events), CLEAN);
}
