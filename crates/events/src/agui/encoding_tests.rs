use serde_json::json;

use super::*;

#[test]
fn the_binary_form_goes_to_whoever_admits_it() {
    let proto = MEDIA_TYPE_PROTOBUF;
    let admitting = [
        "*/*".to_owned(),
        "application/*".to_owned(),
        proto.to_owned(),
        proto.to_uppercase(),
        format!("  {proto}  "),
        format!("{proto} ; Q=0.3"),
        format!("{proto};q=\"0.3\""),
        format!("{proto};q=0.3;level=1"),
        format!("text/event-stream, {proto};q=0.1"),
        "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8".to_owned(),
        format!("text/plain;note=\"a, {proto};q=0\", */*"),
        format!("text/plain;note=\"a \\\" b\", {proto}"),
        format!("*/*;q=0, {proto}"),
        format!("{proto};q=0, {proto};q=0.2"),
        "application/*;q=0.5, */*;q=0".to_owned(),
        "text/plain;q=high, */*".to_owned(),
    ];
    for accept in admitting {
        assert_eq!(negotiate(Some(&accept)), Encoding::Protobuf, "{accept:?}");
    }
}

#[test]
fn whoever_does_not_admit_the_binary_form_gets_server_sent_events() {
    let proto = MEDIA_TYPE_PROTOBUF;
    let others = [
        String::new(),
        " ".to_owned(),
        ", ,;,".to_owned(),
        "text/event-stream".to_owned(),
        "application/json".to_owned(),
        "text/event-stream, application/x-ndjson".to_owned(),
        "application".to_owned(),
        "*".to_owned(),
        "text/*".to_owned(),
        format!("{proto};q=0"),
        format!("{proto};q=0.000"),
        format!("{proto};q=0, */*"),
        "application/*;q=0, */*".to_owned(),
        format!("{proto};version=2"),
        format!("{proto}x"),
        format!("text/plain;note=\"unclosed, {proto}"),
    ];
    for accept in others {
        assert_eq!(negotiate(Some(&accept)), Encoding::Sse, "{accept:?}");
    }
    assert_eq!(negotiate(None), Encoding::Sse);
}

#[test]
fn a_weight_that_cannot_be_read_is_no_consent() {
    for weight in ["", "high", "-1", "nan", "inf", "1e3", "0x1", "..", "1.0.0", "\"", "٣"] {
        let accept = format!("{MEDIA_TYPE_PROTOBUF};q={weight}");
        assert_eq!(negotiate(Some(&accept)), Encoding::Sse, "{accept:?}");
    }
}

#[test]
fn a_response_is_known_by_its_type_alone() {
    for (content_type, encoding) in [
        (MEDIA_TYPE_SSE, Some(Encoding::Sse)),
        (" text/event-stream ; charset=utf-8", Some(Encoding::Sse)),
        (MEDIA_TYPE_PROTOBUF, Some(Encoding::Protobuf)),
        ("Application/Vnd.AG-UI.Event+Proto;charset=utf-8", Some(Encoding::Protobuf)),
        ("", None),
        ("text/html", None),
        ("application/x-ndjson", None),
        ("text/event-stream2", None),
        ("text/event-stream, text/html", None),
    ] {
        assert_eq!(of_response(Some(content_type)), encoding, "{content_type:?}");
    }
    assert_eq!(of_response(None), None);
}

#[test]
fn frames_follow_one_another_without_anything_between() {
    let event = json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"});
    let mut out = Vec::new();
    frame(Encoding::Sse, &event, &mut out).unwrap();
    frame(Encoding::Sse, &json!({"type": "RAW", "event": "a\nb"}), &mut out).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "data: {\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\n\
         data: {\"type\":\"RAW\",\"event\":\"a\\nb\"}\n\n"
    );

    let mut out = Vec::new();
    frame(Encoding::Protobuf, &event, &mut out).unwrap();
    frame(Encoding::Protobuf, &event, &mut out).unwrap();
    let one = b"\0\0\0\x0c\x62\x0a\x0a\x02\x08\x0b\x12\x01t\x1a\x01r";
    assert_eq!(out, [one.as_slice(), one].concat());
}

#[test]
fn nothing_is_written_of_an_event_without_a_binary_form() {
    let mut out = b"before".to_vec();
    let refused = frame(Encoding::Protobuf, &json!({"type": "META"}), &mut out);
    assert_eq!(refused, Err(EncodeError::UnknownType));
    assert_eq!(out, b"before");
}
