use serde_json::{Value, json};

use super::*;
use crate::check::with_document;

/// The steps of events, one line each, and what was told.
fn expand(events: &[Value]) -> (Vec<String>, Vec<&'static str>) {
    let mut lanes = Lanes::default();
    let (mut steps, mut findings) = (Vec::new(), Vec::new());
    for event in events {
        let kind = Type::parse(event["type"].as_str().unwrap()).unwrap();
        with_document(event, |document| {
            lanes.expand(kind, document.root(), &mut findings, &mut |step, _| {
                steps.push(line(&step));
            });
        });
    }
    (steps, findings.into_iter().map(|finding| finding.rule.code).collect())
}

fn line(step: &Step<'_>) -> String {
    let of =
        |tag: &Option<Cow<'_, str>>| tag.as_ref().map_or(String::new(), |tag| format!("@{tag}"));
    let and =
        |metadata: &Option<View<'_>>| metadata.map_or(String::new(), |it| format!(" {}", it.raw()));
    match step {
        Step::Open { item, id, tag, opener, metadata } => {
            let Opener { role, name, parent } = opener;
            let fields = [role, name, parent].map(|field| field.as_deref().unwrap_or("-"));
            format!("open {} {id}{} {}{}", item.name(), of(tag), fields.join(" "), and(metadata))
        }
        Step::Append { id, tag, delta, metadata, .. } => {
            format!("add {id}{} {delta:?}{}", of(tag), and(metadata))
        }
        Step::Close { item, id, tag, .. } => format!("close {} {id}{}", item.name(), of(tag)),
        Step::Event { kind, .. } => kind.name().to_owned(),
    }
}

/// A chunk of a message: id, tag, delta.
fn chunk(id: &str, tag: &str, delta: &str) -> Value {
    let mut event = json!({"type": "TEXT_MESSAGE_CHUNK"});
    for (name, value) in [("messageId", id), ("subagentRunId", tag), ("delta", delta)] {
        if value != "-" {
            event[name] = value.into();
        }
    }
    event
}

fn with(mut event: Value, more: &Value) -> Value {
    for (name, value) in more.as_object().unwrap() {
        event[name] = value.clone();
    }
    event
}

#[track_caller]
fn gives(events: &[Value], steps: &[&str]) {
    let (found, told) = expand(events);
    assert_eq!((found, told), (steps.iter().map(|step| (*step).to_owned()).collect(), vec![]));
}

#[track_caller]
fn tells(events: &[Value], code: &str) {
    assert_eq!(expand(events).1, [code], "{events:?}");
}

#[test]
fn chunks_open_continue_and_are_closed_by_the_next_event() {
    let done = json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"});
    gives(
        &[chunk("m", "-", "a"), chunk("-", "-", "b"), chunk("m", "-", "c"), done],
        &[
            "open message m - - -",
            "add m \"a\"",
            "add m \"b\"",
            "add m \"c\"",
            "close message m",
            "RUN_FINISHED",
        ],
    );
    gives(
        &[
            json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "n", "parentMessageId": "p", "delta": "{"}),
            json!({"type": "TOOL_CALL_CHUNK", "delta": "}"}),
            json!({"type": "REASONING_MESSAGE_CHUNK", "messageId": "r", "delta": "x"}),
        ],
        &[
            "open tool call c - n p",
            "add c \"{\"",
            "add c \"}\"",
            "close tool call c",
            "open reasoning message r - - -",
            "add r \"x\"",
        ],
    );
}

#[test]
fn an_id_leads_to_its_lane_and_another_tag_there_is_wrong() {
    gives(
        &[chunk("m", "s", "a"), chunk("n", "-", "b"), chunk("m", "-", "c"), chunk("m", "s", "d")],
        &[
            "open message m@s - - -",
            "add m@s \"a\"",
            "open message n - - -",
            "add n \"b\"",
            "add m@s \"c\"",
            "add m@s \"d\"",
        ],
    );
    tells(&[chunk("m", "s", "a"), chunk("m", "z", "b")], "AGUI-SEQ-19");
    tells(&[chunk("m", "-", "a"), chunk("m", "z", "b")], "AGUI-SEQ-19");
}

#[test]
fn a_new_id_ends_what_its_lane_held() {
    gives(
        &[chunk("m", "s", "a"), chunk("n", "s", "b"), chunk("o", "-", "c")],
        &[
            "open message m@s - - -",
            "add m@s \"a\"",
            "close message m@s",
            "open message n@s - - -",
            "add n@s \"b\"",
            "open message o - - -",
            "add o \"c\"",
        ],
    );
}

#[test]
fn a_tag_leads_to_its_lane() {
    gives(
        &[chunk("m", "s", "a"), chunk("n", "z", "b"), chunk("-", "s", "c")],
        &[
            "open message m@s - - -",
            "add m@s \"a\"",
            "open message n@z - - -",
            "add n@z \"b\"",
            "add m@s \"c\"",
        ],
    );
    tells(&[chunk("m", "s", "a"), chunk("-", "z", "b")], "AGUI-SEQ-25");
}

#[test]
fn without_id_and_tag_the_agent_itself_goes_first_then_the_only_one() {
    let both = [chunk("m", "s", "-"), chunk("n", "-", "-"), chunk("-", "-", "x")];
    gives(&both, &["open message m@s - - -", "open message n - - -", "add n \"x\""]);
    gives(
        &[chunk("m", "s", "-"), chunk("-", "-", "x")],
        &["open message m@s - - -", "add m@s \"x\""],
    );
    let unclear = [chunk("m", "s", "-"), chunk("n", "z", "-"), chunk("-", "-", "x")];
    tells(&unclear, "AGUI-SEQ-29");
    tells(&[&unclear[..], &[chunk("-", "-", "y")]].concat(), "AGUI-SEQ-29");
    // A lane of another kind is no candidate, and the agent's own ends.
    let call = json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "n"});
    tells(&[call, chunk("-", "-", "x")], "AGUI-SEQ-25");
}

#[test]
fn the_first_chunk_has_what_opens_it() {
    tells(&[chunk("-", "-", "a")], "AGUI-SEQ-25");
    tells(&[json!({"type": "TOOL_CALL_CHUNK", "toolCallName": "n"})], "AGUI-SEQ-25");
    tells(&[json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "c"})], "AGUI-SEQ-25");
    tells(&[json!({"type": "REASONING_MESSAGE_CHUNK", "delta": "x"})], "AGUI-SEQ-25");
    // What was told once is not told again.
    tells(&[chunk("-", "-", "a"), chunk("-", "-", "b"), chunk("-", "-", "c")], "AGUI-SEQ-25");
}

#[test]
fn what_is_repeated_is_repeated_unchanged() {
    let first = with(chunk("m", "-", "-"), &json!({"name": "potter"}));
    let repeats = |more: Value| [first.clone(), with(chunk("m", "-", "x"), &more)];
    let steps = ["open message m - potter -", "add m \"x\""];
    gives(&repeats(json!({"role": "assistant", "name": "potter"})), &steps);
    tells(&repeats(json!({"role": "user"})), "AGUI-SEQ-28");
    tells(&repeats(json!({"name": "glazer"})), "AGUI-SEQ-28");
    let call = json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "n"});
    let with_parent = with(call.clone(), &json!({"parentMessageId": "p"}));
    tells(&[call.clone(), with_parent.clone()], "AGUI-SEQ-28");
    tells(&[call.clone(), with(call.clone(), &json!({"toolCallName": "other"}))], "AGUI-SEQ-28");
    gives(&[with_parent.clone(), with_parent], &["open tool call c - n p"]);
}

#[test]
fn metadata_and_raw_events_make_a_piece_of_nothing() {
    let said = json!({"metadata": {"k": 1}});
    let raw = json!({"rawEvent": {}});
    gives(&[with(chunk("m", "-", "-"), &said)], &["open message m - - - {\"k\":1}"]);
    gives(&[with(chunk("m", "-", "-"), &raw)], &["open message m - - -", "add m \"\""]);
    gives(
        &[chunk("m", "-", "-"), with(chunk("-", "-", "-"), &said), chunk("-", "-", "-")],
        &["open message m - - -", "add m \"\" {\"k\":1}"],
    );
}

#[test]
fn events_end_the_lane_of_their_owner_and_some_end_all_or_none() {
    let of = |name: &str, tag: Option<&str>| {
        let mut event = json!({"type": name, "messageId": "x", "toolCallId": "x", "delta": "", "stepName": "x"});
        if let Some(tag) = tag {
            event["subagentRunId"] = tag.into();
        }
        event
    };
    for kind in Type::ALL {
        let name = kind.name();
        if name.ends_with("_CHUNK") {
            continue;
        }
        let closed = |tag: Option<&str>| -> Vec<String> {
            let (steps, _) = expand(&[chunk("m", "-", "-"), chunk("n", "s", "-"), of(name, tag)]);
            steps
                .into_iter()
                .filter(|step| {
                    step.starts_with("close message m") || step.starts_with("close message n")
                })
                .collect()
        };
        let (own, theirs) = (["close message m"], ["close message n@s"]);
        match kind {
            Type::RunStarted | Type::RunFinished | Type::RunError | Type::MessagesSnapshot => {
                assert_eq!(closed(None), ["close message m", "close message n@s"], "{name}");
            }
            Type::Raw
            | Type::ActivitySnapshot
            | Type::ActivityDelta
            | Type::ReasoningEncryptedValue
            | Type::SubagentStarted => {
                assert_eq!([closed(None), closed(Some("s"))].concat(), [""; 0], "{name}");
            }
            Type::SubagentFinished | Type::SubagentError => {
                assert_eq!(closed(Some("s")), theirs, "{name}");
            }
            _ => {
                assert_eq!(closed(None), own, "{name}");
                assert_eq!(closed(Some("s")), theirs, "{name}");
                assert_eq!(closed(Some("z")), [""; 0], "{name}");
            }
        }
    }
}

#[test]
fn so_many_lanes_are_followed_and_no_more() {
    let mut lanes = Lanes::default();
    for number in 0..=LANES {
        let event = chunk(&format!("m{number}"), &format!("s{number}"), "x");
        with_document(&event, |document| {
            lanes.expand(Type::TextMessageChunk, document.root(), &mut Vec::new(), &mut |_, _| {});
        });
    }
    assert_eq!(lanes.0.len(), LANES);
    assert!(lanes.holds(Item::Text, "m4096") && !lanes.holds(Item::Text, "m0"));
}
