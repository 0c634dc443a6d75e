//! There and back: AG-UI through another protocol.

use serde_json::{Value, json};

use crate::aaep::voice::Voice;
use crate::event::Protocol;
use crate::translate::{Source, Translator};

fn translated(from: Protocol, to: Protocol, stream: &[Value]) -> Vec<Value> {
    let voice = Voice { carry: true, ..Voice::default() };
    let mut translator = Translator::new(Source::Protocol(from), to, voice);
    let now = jiff::Timestamp::from_second(1_800_000_000).unwrap();
    let mut told = Vec::new();
    for event in stream {
        told.extend(translator.message(event.to_string().as_bytes(), now).unwrap());
    }
    told.extend(translator.finish());
    told.into_iter().map(|told| told.event.into_value()).collect()
}

fn back(through: Protocol, stream: &[Value]) -> Vec<Value> {
    translated(through, Protocol::Agui, &translated(Protocol::Agui, through, stream))
}

fn run(n: u8, input: Option<Value>) -> Value {
    let mut event = json!({ "type": "RUN_STARTED", "threadId": "t", "runId": format!("r{n}") });
    if let Some(messages) = input {
        event["input"] = json!({ "threadId": "t", "runId": format!("r{n}"), "messages": messages });
    }
    event
}

fn end(n: u8) -> Value {
    json!({ "type": "RUN_FINISHED", "threadId": "t", "runId": format!("r{n}") })
}

fn call() -> [Value; 3] {
    [
        json!({ "type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "ls" }),
        json!({ "type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{\"a\":1}" }),
        json!({ "type": "TOOL_CALL_END", "toolCallId": "c" }),
    ]
}

fn result(message: &str) -> Value {
    json!({
        "type": "TOOL_CALL_RESULT", "messageId": message, "toolCallId": "c", "content": message,
        "metadata": { "k": message },
    })
}

fn of<'a>(kind: &str, events: &'a [Value]) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

fn both(stream: &[Value], check: impl Fn(&[Value])) {
    for through in [Protocol::Agui, Protocol::Aep] {
        check(&back(through, stream));
    }
}

#[test]
fn a_result_before_the_end_of_its_call_keeps_the_arguments_and_its_id() {
    let [start, args, finish] = call();
    both(&[run(1, None), start, args, result("x"), finish, end(1)], |events| {
        assert_eq!(of("TOOL_CALL_ARGS", events)[0]["delta"], "{\"a\":1}");
        let results = of("TOOL_CALL_RESULT", events);
        assert_eq!(results.len(), 1);
        assert_eq!(
            (&results[0]["messageId"], &results[0]["metadata"]["k"]),
            (&"x".into(), &"x".into())
        );
        assert_eq!(of("TOOL_CALL_START", events).len(), 1);
    });
}

#[test]
fn the_input_of_a_run_comes_back_after_a_call_without_result() {
    let [start, args, finish] = call();
    let messages = json!([{ "id": "u", "role": "user", "content": "go" }]);
    let second = run(2, Some(messages.clone()));
    both(&[run(1, None), start, args, finish, end(1), second, end(2)], |events| {
        assert_eq!(of("RUN_STARTED", events)[1]["input"]["messages"], messages);
        assert_eq!(of("TEXT_MESSAGE_START", events), Vec::<&Value>::new());
    });
}

#[test]
fn a_call_that_its_run_cuts_off_is_told_and_comes_back_without_a_result() {
    let [start, args, _] = call();
    let error = json!({ "type": "RUN_ERROR", "message": "no" });
    for last in [Some(error), Some(end(1)), None] {
        let mut stream = vec![run(1, None), start.clone(), args.clone()];
        stream.extend(last);
        let aep = translated(Protocol::Agui, Protocol::Aep, &stream);
        assert_eq!(of("action.requested", &aep)[0]["action"]["input"], json!({ "a": 1 }));
        assert_eq!(of("action.failed", &aep)[0]["action"]["status"], "cancelled");
        both(&stream, |events| {
            assert_eq!(of("TOOL_CALL_ARGS", events)[0]["delta"], "{\"a\":1}");
            assert_eq!(of("TOOL_CALL_RESULT", events), Vec::<&Value>::new());
        });
    }
}

#[test]
fn every_result_of_a_call_comes_back_as_it_was() {
    let [start, args, finish] = call();
    for second in ["y", "x"] {
        let stream = [
            run(1, None),
            start.clone(),
            args.clone(),
            finish.clone(),
            result("x"),
            result(second),
            end(1),
        ];
        both(&stream, |events| {
            let results = of("TOOL_CALL_RESULT", events);
            let told = |n: usize| (&results[n]["messageId"], &results[n]["metadata"]["k"]);
            assert_eq!(told(0), (&json!("x"), &json!("x")));
            assert_eq!(told(1), (&json!(second), &json!(second)));
            assert_eq!(results.len(), 2);
        });
    }
}
