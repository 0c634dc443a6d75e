use proptest::prelude::*;
use serde_json::json;

use super::arbitrary::event;
use super::tables::{ARMS, BASE, Kind, Message};
use super::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

/// Hex digits as bytes; what stands in braces has its length before it.
fn unhex(notation: &str) -> Vec<u8> {
    let mut open = vec![Vec::new()];
    let mut high = None;
    for character in notation.chars() {
        match (character, character.to_digit(16), high) {
            ('{', ..) => open.push(Vec::new()),
            ('}', ..) => {
                let inner = open.pop().unwrap();
                open.last_mut().unwrap().extend(behind_its_length(&inner));
            }
            (_, Some(digit), None) => high = Some(digit),
            (_, Some(digit), Some(first)) => {
                open.last_mut().unwrap().push(u8::try_from(first << 4 | digit).unwrap());
                high = None;
            }
            _ => assert!(character.is_whitespace() && high.is_none(), "{notation}"),
        }
    }
    assert_eq!(open.len(), 1, "{notation}");
    open.remove(0)
}

fn behind_its_length(inner: &[u8]) -> Vec<u8> {
    let (mut size, mut bytes) = (inner.len(), Vec::new());
    while size >= 0x80 {
        bytes.push(u8::try_from(size & 0x7f | 0x80).unwrap());
        size >>= 7;
    }
    bytes.push(u8::try_from(size).unwrap());
    bytes.extend(inner);
    bytes
}

fn read(hex: &str) -> Result<Option<Value>, DecodeError> {
    decode(&unhex(hex))
}

/// Insists that an event has these bytes, and that they have this event.
fn is(event: &Value, bytes: &str) {
    assert_eq!(hex(&encode(event).unwrap()), bytes, "{event}");
    assert_eq!(read(bytes).unwrap().as_ref(), Some(event), "{bytes}");
}

#[test]
fn runs_have_the_bytes_of_the_reference() {
    let started = json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"});
    is(&started, "620a0a02080b1201741a0172");
    is(
        &json!({
            "type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0",
            "parentRunId": "p", "timestamp": 1_700_000_000_000_i64, "metadata": {"k": null},
            "rawEvent": {"a": 1},
        }),
        "62380a28080b1080d095ffbc311a122a100a0e0a0161120911000000000000f03f22090a070a016b120208001201741a01722201703203312e30",
    );
    let finished = |more: Value| {
        let mut event = json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    };
    is(&finished(json!({})), "6a0a0a02080c1201741a0172");
    is(
        &finished(json!({
            "result": 1, "outcome": {"type": "success", "pendingToolCallIds": ["c"]},
            "usage": [{"provider": "openai", "inputTokens": 3}],
        })),
        "6a2d0a02080c1201741a0172220911000000000000f03f2a07737563636573733a0a0a066f70656e61691803420163",
    );
    is(
        &finished(
            json!({"outcome": {"type": "interrupt", "interrupts": [{"id": "i", "reason": "x"}]}}),
        ),
        "6a1d0a02080c1201741a01722a09696e7465727275707432060a0169120178",
    );
    is(
        &finished(json!({"outcome": {"type": "cancelled"}})),
        "6a150a02080c1201741a01722a0963616e63656c6c6564",
    );
    is(&json!({"type": "RUN_ERROR", "message": "m", "code": "c"}), "720a0a02080d1201631a016d");
    is(&json!({"type": "STEP_STARTED", "stepName": "s"}), "7a070a02080e120173");
    is(
        &json!({
            "type": "SUBAGENT_FINISHED", "subagentRunId": "s",
            "outcome": {"type": "suspended", "interruptIds": ["i"]},
        }),
        "a201150a020811120173220973757370656e6465642a0169",
    );
}

#[test]
fn messages_and_calls_have_the_bytes_of_the_reference() {
    is(&json!({"type": "TEXT_MESSAGE_START", "messageId": "m"}), "0a050a0012016d");
    is(
        &json!({
            "type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant", "name": "n",
            "subagentRunId": "s",
        }),
        "0a160a0012016d1a09617373697374616e7422016e2a0173",
    );
    is(
        &json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "hi"}),
        "120b0a02080112016d1a026869",
    );
    is(
        &json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": ""}),
        "12070a02080112016d",
    );
    is(&json!({"type": "TEXT_MESSAGE_CHUNK", "delta": ""}), "8a01060a0208132200");
    let result = |content: Value| {
        json!({
            "type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": content
        })
    };
    let mut told = result(json!("ok"));
    told["role"] = json!("tool");
    is(&told, "b201140a0208151a016d2201632a026f6b3204746f6f6c");
    is(&result(json!([])), "b2010a0a0208151a016d220163");
    is(
        &json!({
            "type": "REASONING_ENCRYPTED_VALUE", "subtype": "tool-call", "entityId": "c",
            "encryptedValue": "E",
        }),
        "fa01150a02081e1a09746f6f6c2d63616c6c2201632a0145",
    );
}

#[test]
fn open_data_has_the_bytes_of_the_reference() {
    is(&json!({"type": "STATE_SNAPSHOT", "snapshot": null}), "3a080a02080612020800");
    is(
        &json!({"type": "STATE_SNAPSHOT", "snapshot": {"a": [1, true, "x", null]}}),
        "3a290a02080612232a210a1f0a0161121a32180a0911000000000000f03f0a0220010a031a01780a020800",
    );
    is(
        &json!({"type": "STATE_DELTA", "delta": [
            {"op": "add", "path": "/a", "value": null},
            {"op": "move", "path": "/b", "from": "/a"},
        ]}),
        "421a0a020807120812022f6122020800120a080312022f621a022f61",
    );
    is(
        &json!({
            "type": "ACTIVITY_SNAPSHOT", "messageId": "a", "activityType": "P", "content": {},
            "replace": false,
        }),
        "ba010e0a0208161a01612201502a003000",
    );
    is(&json!({"type": "CUSTOM", "name": "n", "value": null}), "5a0b0a02080a12016e1a020800");
    is(
        &json!({"type": "RAW", "event": 1.5, "source": "s"}),
        "52120a020809120911000000000000f83f1a0173",
    );
}

#[test]
fn a_part_of_the_retired_type_becomes_a_document_that_says_so() {
    let event = |part: Value| {
        json!({"type": "MESSAGES_SNAPSHOT", "messages": [
            {"id": "2", "role": "user", "content": [part]},
        ]})
    };
    let renewed = |part: Value| decode(&encode(&event(part)).unwrap()).unwrap().unwrap();
    for (given, source) in [
        (
            json!({"data": "AA", "url": "u"}),
            json!({"type": "data", "value": "AA", "mimeType": "m"}),
        ),
        (json!({"data": "", "url": "u"}), json!({"type": "url", "value": "u", "mimeType": "m"})),
        (json!({}), json!({"type": "url", "value": "i", "mimeType": "m"})),
    ] {
        let mut part = json!({"type": "binary", "mimeType": "m", "id": "i", "filename": "f"});
        part.as_object_mut().unwrap().extend(given.as_object().unwrap().clone());
        assert_eq!(
            renewed(part),
            event(json!({
                "type": "document", "source": source,
                "metadata": {"legacyBinary": true, "filename": "f", "id": "i"},
            }))
        );
    }
    let part = json!({"type": "binary", "mimeType": "m"});
    assert!(encode(&event(part)).is_err(), "nothing in it can be sent");
    let part = json!({"type": "binary", "data": "AA"});
    assert_eq!(
        encode(&event(part)).unwrap_err().to_string(),
        "/messages/0/content/0/source/mimeType is missing"
    );
}

#[test]
fn an_event_that_the_messages_cannot_say_is_refused() {
    for (event, why) in [
        (json!([]), "the event is not an object with a type"),
        (json!({"type": 1}), "the event is not an object with a type"),
        (json!({"type": "META"}), "the event's type is not one that has a binary form"),
        (json!({"type": "THINKING_END"}), "the event's type is not one that has a binary form"),
        (json!({"type": "TEXT_MESSAGE_END"}), "/messageId is missing"),
        (json!({"type": "TEXT_MESSAGE_END", "messageId": null}), "/messageId is missing"),
        (json!({"type": "TEXT_MESSAGE_END", "messageId": 1}), "/messageId is not text"),
        (json!({"type": "REASONING_MESSAGE_START", "messageId": "m"}), "/role is missing"),
        (json!({"type": "STATE_SNAPSHOT"}), "/snapshot is missing"),
        (json!({"type": "STATE_DELTA"}), "/delta is missing"),
        (json!({"type": "STATE_DELTA", "delta": {}}), "/delta is not a list"),
        (
            json!({"type": "STATE_DELTA", "delta": [{"op": "zap", "path": ""}]}),
            "/delta/0/op is not a word that has a number",
        ),
        (json!({"type": "STATE_DELTA", "delta": [1]}), "/delta/0 is not an object"),
        (
            json!({"type": "STEP_STARTED", "stepName": "s", "timestamp": 1.5}),
            "/timestamp is not an integer within 2^53 - 1",
        ),
        (
            json!({"type": "STEP_STARTED", "stepName": "s", "timestamp": 9_007_199_254_740_992_i64}),
            "/timestamp is not an integer within 2^53 - 1",
        ),
        (
            json!({"type": "STEP_STARTED", "stepName": "s", "metadata": []}),
            "/metadata is not an object",
        ),
        (
            json!({"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c"}),
            "/content is missing",
        ),
        (
            json!({"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": {}}),
            "/content is not text or a list of parts",
        ),
        (
            json!({"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c",
                "content": [{"type": "hologram"}]}),
            "/content/0/type is not the type of a part that has a binary form",
        ),
        (
            json!({"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c",
                "content": [{"type": "image", "source": {"type": "disc"}}]}),
            "/content/0/source/type is not the type of a source that has a binary form",
        ),
        (
            json!({"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c",
                "content": [{"type": "image"}]}),
            "/content/0/source is missing",
        ),
        (
            json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": "success"}),
            "/outcome is not an object with a type",
        ),
        (
            json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": {"type": ""}}),
            "/outcome is not an object with a type",
        ),
        (
            json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r",
                "outcome": {"type": "interrupt"}}),
            "/outcome/interrupts is missing",
        ),
        (
            json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r",
                "outcome": {"type": "success", "pendingToolCallIds": ["c", 1]}}),
            "/outcome/pendingToolCallIds/1 is not text",
        ),
    ] {
        assert_eq!(encode(&event).unwrap_err().to_string(), why, "{event}");
    }
}

#[test]
fn content_has_to_fit_its_role() {
    let message = |role: &str, content: Value| {
        encode(&json!({"type": "MESSAGES_SNAPSHOT", "messages": [
            {"id": "1", "role": role, "content": content},
        ]}))
    };
    let forms = [json!(null), json!("a"), json!([]), json!({}), json!(1)];
    let fits: Vec<(&str, Vec<bool>)> =
        ["developer", "system", "reasoning", "assistant", "user", "tool", "activity", "wizard"]
            .map(|role| (role, forms.iter().map(|c| message(role, c.clone()).is_ok()).collect()))
            .to_vec();
    let (yes, no) = (true, false);
    assert_eq!(
        fits,
        [
            ("developer", vec![no, yes, no, no, no]),
            ("system", vec![no, yes, no, no, no]),
            ("reasoning", vec![no, yes, no, no, no]),
            ("assistant", vec![yes, yes, no, no, no]),
            ("user", vec![no, yes, yes, no, no]),
            ("tool", vec![no, yes, yes, no, no]),
            ("activity", vec![no, no, no, yes, no]),
            ("wizard", vec![yes, yes, yes, yes, no]),
        ]
    );
}

#[test]
fn nulls_of_optional_fields_and_what_the_protocol_does_not_know_are_left_out() {
    let event = json!({
        "type": "RUN_STARTED", "threadId": "t", "runId": "r", "parentRunId": null, "rawEvent": null,
        "metadata": null, "timestamp": null, "more": 1,
        "input": {
            "threadId": "t", "runId": "r", "messages": [], "state": null, "tools": null,
            "forwardedProps": null,
        },
    });
    assert_eq!(hex(&encode(&event).unwrap()), "62120a02080b1201741a01722a060a0174120172");
}

#[test]
fn an_input_is_read_with_all_its_lists() {
    assert_eq!(
        read("62120a02080b1201741a01722a060a0174120172").unwrap().unwrap(),
        json!({
            "type": "RUN_STARTED", "threadId": "t", "runId": "r",
            "input": {
                "threadId": "t", "runId": "r", "messages": [], "tools": [], "context": [],
                "resume": [],
            },
        })
    );
}

#[test]
fn what_later_versions_add_does_not_stop_the_reading() {
    let result =
        || json!({"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": []});
    for (bytes, event) in [
        // An event of a type that is not known, and several, and beside a field that is not known.
        ("8202{}", None),
        ("8202{0801} 8a02{}", None),
        ("8202{0801} f80701", None),
        // A field of an event, a part, a source, an outcome, an operation, a role.
        (
            "0a{0a{} 12{6d} fa07{01020304}}",
            Some(json!({"type": "TEXT_MESSAGE_START", "messageId": "m"})),
        ),
        (
            "0a{0a{} 12{6d}} fa07{01020304}",
            Some(json!({"type": "TEXT_MESSAGE_START", "messageId": "m"})),
        ),
        ("b201{0a{0815} 1a{6d} 22{63} 3a{32{}}}", Some(result())),
        ("b201{0a{0815} 1a{6d} 22{63} 3a{12{0a{22{}}}}}", Some(result())),
        (
            "6a{0a{080c} 12{74} 1a{72} 2a{6f6464}}",
            Some(json!({
                "type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": {"type": "odd"},
            })),
        ),
        (
            "42{0a{0807} 12{0809 12{}} 12{08ffffffffffffffffff01}}",
            Some(json!({"type": "STATE_DELTA", "delta": [
                {"op": "9", "path": ""}, {"op": "-1", "path": ""},
            ]})),
        ),
        (
            "4a{0a{0808} 12{0a{77} 12{77697a} 6a{}}}",
            Some(json!({"type": "MESSAGES_SNAPSHOT", "messages": [
                {"id": "w", "role": "wiz", "content": {}},
            ]})),
        ),
        // A field in another encoding than the one it has.
        ("0a{0a{} 1001}", Some(json!({"type": "TEXT_MESSAGE_START", "messageId": ""}))),
    ] {
        assert_eq!(read(bytes), Ok(event), "{bytes}");
    }
}

#[test]
fn fields_that_come_again_are_merged() {
    for (bytes, event) in [
        // Of texts, the last one.
        ("0a{0a{} 12{61} 12{62}}", json!({"type": "TEXT_MESSAGE_START", "messageId": "b"})),
        // The event in two pieces, and its base too.
        (
            "12{0a{0801} 12{61}} 12{0a{1005} 1a{78}}",
            json!({
                "type": "TEXT_MESSAGE_CONTENT", "messageId": "a", "delta": "x", "timestamp": 5,
            }),
        ),
        // Objects gain keys, lists grow, and a value of another kind takes the place of both.
        (
            "3a{0a{0806} 12{2a{0a{0a{61} 12{1a{78}}}}} 12{2a{0a{0a{62} 12{1a{79}}}}}}",
            json!({"type": "STATE_SNAPSHOT", "snapshot": {"a": "x", "b": "y"}}),
        ),
        (
            "3a{0a{0806} 12{32{0a{2001}}} 12{32{0a{0800}}}}",
            json!({"type": "STATE_SNAPSHOT", "snapshot": [true, null]}),
        ),
        (
            "3a{0a{0806} 12{32{0a{2001}}} 12{0800 32{}}}",
            json!({"type": "STATE_SNAPSHOT", "snapshot": []}),
        ),
        ("3a{0a{0806} 12{32{0a{2001}} 2001}}", json!({"type": "STATE_SNAPSHOT", "snapshot": true})),
        // A part's source in two pieces.
        (
            "b201{0a{0815} 3a{12{0a{0a{0a{76}}}} 12{0a{0a{12{6d}}} 1a{69}}}}",
            json!({"type": "TOOL_CALL_RESULT", "messageId": "", "toolCallId": "", "content": [{
                "type": "image", "source": {"type": "data", "value": "v", "mimeType": "m"}, "id": "i",
            }]}),
        ),
    ] {
        assert_eq!(read(bytes), Ok(Some(event)), "{bytes}");
    }
}

#[test]
fn values_of_no_kind_are_none() {
    for (bytes, event) in [
        ("3a{0a{0806} 12{}}", json!({"type": "STATE_SNAPSHOT"})),
        ("3a{0a{0806} 12{32{0a{}}}}", json!({"type": "STATE_SNAPSHOT", "snapshot": [null]})),
        ("3a{0a{0806} 12{2a{0a{0a{61} 12{}}}}}", json!({"type": "STATE_SNAPSHOT", "snapshot": {}})),
    ] {
        assert_eq!(read(bytes), Ok(Some(event)), "{bytes}");
    }
}

#[test]
fn bytes_that_are_no_event_are_refused() {
    use DecodeError as Why;
    for (bytes, why) in [
        ("", Why::NoEvent),
        // Of an unknown type, but no message; and no type at all.
        ("8202{01}", Why::NoEvent),
        ("8202{} 8a02{01}", Why::NoEvent),
        ("f80701", Why::NoEvent),
        ("0a0c", Why::Truncated),
        ("0a", Why::Truncated),
        ("ff", Why::Truncated),
        ("f907 01020304", Why::Truncated),
        ("fd07 010203", Why::Truncated),
        ("0a{0a{} 1208}", Why::Truncated),
        ("ffffffffffffffffffff01", Why::Overlong),
        ("f807 ffffffffffffffffff02", Why::Overlong),
        ("8a808080808001 00", Why::Overlong),
        ("fa07 8080808010", Why::Overlong),
        ("0200", Why::FieldZero),
        ("0a{0a{} 0200}", Why::FieldZero),
        ("3a{0a{0806} 12{0200}}", Why::FieldZero),
        ("0e", Why::Encoding),
        ("0f", Why::Encoding),
        ("0801", Why::Encoding),
        ("0a{0a{}} 1001", Why::Encoding),
        ("0a{0a{}} 0c", Why::Group),
        ("0a{0a{}} fb07 f407", Why::Group),
        ("0a{0a{}} fb07", Why::Truncated),
        ("0a{0a{} 12{ff}}", Why::Text),
        ("3a{0a{0806} 12{2a{0a{0a{ff}}}}}", Why::Text),
        ("0a{0a{}} 12{0a{0801}}", Why::Several),
        ("0a{12{}}", Why::NoBase),
        ("0a{}", Why::NoBase),
        ("0a{0a{0801}}", Why::Mismatch { held: "TEXT_MESSAGE_START" }),
        ("0a{0a{08e707}}", Why::Mismatch { held: "TEXT_MESSAGE_START" }),
        ("3a{0a{0806} 12{11000000000000f07f}}", Why::NotFinite),
        ("3a{0a{0806} 12{11000000000000f87f}}", Why::NotFinite),
        ("0a{0a{108080808080808010}}", Why::Integer),
        ("0a{0a{1080808080808080f0ff01}}", Why::Integer),
        // Text and parts, known or not; parts of two kinds; two sources.
        ("b201{0a{0815} 2a{78} 3a{0a{}}}", Why::Content),
        ("b201{0a{0815} 2a{78} 3a{32{}}}", Why::Content),
        ("b201{0a{0815} 3a{0a{} 12{}}}", Why::Several),
        ("b201{0a{0815} 3a{12{0a{0a{} 12{}}}}}", Why::Several),
        // What a role does not have: parts, an object, text; and two forms of whatever role.
        ("4a{0a{0808} 12{12{73797374656d} 42{}}}", Why::Content),
        ("4a{0a{0808} 12{12{73797374656d} 6a{}}}", Why::Content),
        ("4a{0a{0808} 12{12{6163746976697479} 1a{}}}", Why::Content),
        ("4a{0a{0808} 12{12{75736572} 1a{} 42{0a{}}}}", Why::Content),
        ("4a{0a{0808} 12{12{7878} 1a{} 42{}}}", Why::Content),
    ] {
        assert_eq!(read(bytes), Err(why), "{bytes}");
    }
}

#[test]
fn the_largest_integers_are_read() {
    for (bytes, timestamp) in
        [("0a{0a{10ffffffffffffff0f}}", SAFE), ("0a{0a{1081808080808080f0ff01}}", -SAFE)]
    {
        assert_eq!(read(bytes).unwrap().unwrap()["timestamp"], json!(timestamp));
    }
}

#[test]
fn groups_are_skipped_wherever_they_are() {
    let event = json!({"type": "TEXT_MESSAGE_START", "messageId": "m"});
    for bytes in [
        "fb07 0a{00} 0801 fb07 fc07 fc07 0a{0a{} 12{6d}}",
        "0a{0a{} fb07 fd0701020304 fc07 12{6d}}",
        "0a{0a{} fb07 f9070102030405060708 fc07 12{6d}}",
    ] {
        assert_eq!(read(bytes), Ok(Some(event.clone())), "{bytes}");
    }
}

/// A list within a list, so many times.
fn deep(levels: usize) -> Value {
    let mut event = json!({"type": "STATE_SNAPSHOT"});
    event["snapshot"] = (1..levels).fold(json!([]), |inner, _| Value::Array(vec![inner]));
    event
}

#[test]
fn nesting_is_bounded_both_ways() {
    let deepest = deep(DEPTH - 1);
    let bytes = encode(&deepest).unwrap();
    assert_eq!(decode(&bytes), Ok(Some(deepest)));
    assert_eq!(encode(&deep(DEPTH)), Err(EncodeError::TooDeep));
    assert_eq!(encode(&deep(2_000)), Err(EncodeError::TooDeep));

    let lists = format!("3a{{0a{{0806}} 12{{{}{}}}}}", "32{0a{".repeat(2_000), "}}".repeat(2_000));
    assert_eq!(read(&lists), Err(DecodeError::TooDeep));
    let objects =
        format!("3a{{0a{{0806}} 12{{{}{}}}}}", "2a{0a{12{".repeat(2_000), "}}}".repeat(2_000));
    assert_eq!(read(&objects), Err(DecodeError::TooDeep));
    let groups = [unhex("fb07").repeat(5_000), unhex("fc07").repeat(5_000)].concat();
    assert_eq!(decode(&groups), Err(DecodeError::TooDeep));
}

#[test]
fn few_bytes_cannot_ask_for_much_memory() {
    let snapshot = |values: usize| {
        let list = unhex("0a{}").repeat(values);
        let value = [unhex("32"), behind_its_length(&list)].concat();
        let event = [unhex("0a{0806} 12"), behind_its_length(&value)].concat();
        [unhex("3a"), behind_its_length(&event)].concat()
    };
    // The base, its type and the snapshot count too.
    assert!(decode(&snapshot(VALUES - 3)).is_ok());
    let bytes = snapshot(VALUES - 2);
    assert_eq!(decode(&bytes), Err(DecodeError::TooMany));
}

#[test]
fn numbers_are_read_as_javascript_prints_them() {
    for (given, read) in [
        (json!(-0.0), json!(0)),
        (json!(1.0), json!(1)),
        (json!(-2.5), json!(-2.5)),
        (json!(9_007_199_254_740_992_u64), json!(9_007_199_254_740_992_u64)),
        (json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992_u64)),
        (json!(u64::MAX), json!(18_446_744_073_709_551_616.0)),
        (json!(1e300), json!(1e300)),
    ] {
        let bytes = encode(&json!({"type": "RAW", "event": given})).unwrap();
        assert_eq!(decode(&bytes), Ok(Some(json!({"type": "RAW", "event": read}))));
    }
    let whole = json!({"type": "STEP_STARTED", "stepName": "s", "timestamp": 5.0});
    assert_eq!(decode(&encode(&whole).unwrap()).unwrap().unwrap()["timestamp"], json!(5));
}

#[test]
fn siblings_of_an_outcome_that_is_not_there_stay_beside_it() {
    assert_eq!(
        read("6a{0a{080c} 12{74} 1a{72} 42{63}}").unwrap().unwrap(),
        json!({
            "type": "RUN_FINISHED", "threadId": "t", "runId": "r", "pendingToolCallIds": ["c"],
        })
    );
}

#[test]
fn the_tables_are_in_order() {
    fn messages(message: &'static Message, found: &mut Vec<&'static Message>) {
        if found.iter().any(|known| std::ptr::eq(*known, message)) {
            return;
        }
        found.push(message);
        for field in message.fields {
            match field.kind {
                Kind::Message(inner) | Kind::List(&Kind::Message(inner)) => messages(inner, found),
                _ => {}
            }
        }
    }
    let mut found = Vec::new();
    for (arm, number) in ARMS.iter().zip(1..) {
        assert_eq!(arm.number, number);
        messages(arm.message, &mut found);
    }
    for kind in Type::ALL {
        let arm = tables::arm(kind).unwrap();
        assert_eq!(arm.kind, kind);
        // Every type is a word of the base.
        assert!(matches!(BASE.fields[0].kind, Kind::Word(words) if words.contains(&kind.name())));
        assert!(matches!(arm.message.fields[0].kind, Kind::Base), "{kind:?}");
    }
    for message in found {
        let numbers: Vec<u32> = message.fields.iter().map(|field| field.number).collect();
        assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
        let mut names: Vec<&str> = message.fields.iter().map(|field| field.name).collect();
        if names[0].is_empty() {
            names.extend(BASE.fields.iter().map(|field| field.name));
        }
        names.sort_unstable();
        assert!(names.is_sorted_by(|one, next| one < next), "{names:?}");
    }
}

#[test]
fn the_tables_know_every_field_that_the_checker_knows() {
    for kind in Type::ALL {
        let message = tables::arm(kind).unwrap().message;
        for field in kind.shape().parts.iter().copied().flatten() {
            let known =
                message.fields.iter().chain(BASE.fields).any(|ours| ours.name == field.name);
            assert!(known, "{} of {}", field.name, kind.name());
        }
    }
}

proptest! {
    #[test]
    fn every_event_is_read_back(event in event()) {
        let bytes = encode(&event).unwrap();
        prop_assert_eq!(decode(&bytes), Ok(Some(event)));
    }

    #[test]
    fn what_was_read_can_be_written_and_read_again(
        event in event(),
        broken in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut bytes = encode(&event).unwrap();
        for (place, byte) in broken {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        // Not all of it has to come back: an outcome may carry what does not belong to it. Once is enough, though.
        if let Ok(Some(event)) = decode(&bytes) && let Ok(again) = encode(&event) {
            let event = decode(&again).unwrap().unwrap();
            prop_assert_eq!(encode(&event), Ok(again));
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        decode(&bytes).ok();
    }
}
