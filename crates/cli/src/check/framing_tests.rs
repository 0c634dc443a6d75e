use super::*;

/// The messages of a text in pieces of a size: where they begin, and what they say.
fn read(text: &[u8], size: usize) -> Vec<(u64, u64, String)> {
    let mut framing = Framing::new();
    let mut found = Vec::new();
    let mut note = |(framed, _): Labelled<'_>, measure: Measure| {
        for (place, message) in each(framed, measure == Measure::Plain).filter_map(unwrapped) {
            let message = message.map_or_else(
                |error| error.to_string(),
                |bytes| String::from_utf8_lossy(bytes).into(),
            );
            found.push((place.line, place.offset, message));
        }
    };
    for (piece, all) in text.chunks(size).map(|piece| (piece, false)).chain([(&[][..], true)]) {
        let held = if framing.is_known() {
            Vec::new()
        } else {
            framing.tell(piece, all).unwrap_or_default()
        };
        let mut rest = if held.is_empty() { piece } else { &held };
        let measure = framing.measure();
        while let Some(framed) = framing.read(&mut rest) {
            note(framed, measure);
        }
    }
    let measure = framing.measure();
    while let Some(framed) = framing.end() {
        note(framed, measure);
    }
    found
}

fn texts(text: &str) -> Vec<String> {
    let whole = read(text.as_bytes(), 1 << 20);
    assert_eq!(read(text.as_bytes(), 1), whole, "{text:?}");
    assert_eq!(read(text.as_bytes(), 7), whole, "{text:?}");
    whole.into_iter().map(|(_, _, text)| text).collect()
}

#[test]
fn every_layout_gives_the_same_messages() {
    for text in [
        "{\"a\":1}\n{\"b\":2}\n",
        "\u{feff}{\"a\":1}\r\n\r\n{\"b\":2}",
        "[{\"a\":1},{\"b\":2}]",
        " [\n{\"a\":1},\n{\"b\":2}\n]\n",
        "{\"a\":1}{\"b\":2}",
        "{\"a\":1} {\"b\":2}\n",
        "data: {\"a\":1}\n\ndata: {\"b\":2}\n\n",
        ": hi\r\n\r\nevent: x\r\ndata:{\"a\":1}\r\nid: 7\r\n\r\ndata: {\"b\":2}\r\n",
        "{\"jsonrpc\":\"2.0\",\"method\":\"aaep.event\",\"params\":{\"a\":1}}\n{\"jsonrpc\":\"2.0\",\"method\":\"aaep.reply\",\"params\":{\"b\":2}}\n",
    ] {
        assert_eq!(texts(text), ["{\"a\":1}", "{\"b\":2}"], "{text:?}");
    }
    assert_eq!(texts("{\n \"a\": 1\n}\n{\n \"b\": 2\n}\n"), ["{\n \"a\": 1\n}", "{\n \"b\": 2\n}"]);
    let prefixed = "\0\0\0\x07{\"a\":1}\0\0\0\x07{\"b\":2}";
    assert_eq!(texts(prefixed), ["{\"a\":1}", "{\"b\":2}"]);
}

#[test]
fn a_broken_first_line_does_not_swallow_the_rest() {
    for first in [
        "{\"a\": oops}",
        "{\"a\":\"cut",
        "{\"a\":1",
        "{\"a\":{\"b\":[1]",
        "nothing like it",
        "\u{1}\u{2}",
    ] {
        let text = format!("{first}\n{{\"b\":2}}\n{{\"c\":3}}\n");
        assert_eq!(texts(&text), [first, "{\"b\":2}", "{\"c\":3}"]);
    }
}

#[test]
fn an_envelope_gives_the_place_of_what_it_holds() {
    let line = b"{\"jsonrpc\":\"2.0\",\"method\":\"aaep.event\",\"params\":{\"a\":1}}";
    assert_eq!(read(line, 1 << 20), [(1, 48, "{\"a\":1}".to_owned())]);
    let ping = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"aaep.ping\"}\n{}\n";
    assert_eq!(read(ping, 1 << 20).len(), 1, "a call without a message is no message");
    let fault = b"{\"jsonrpc\":\"1.0\",\"method\":\"aaep.event\",\"params\":{}}";
    assert_eq!(read(fault, 1 << 20)[0].1, 0, "a broken envelope is seen as it is");
}

#[test]
fn what_is_not_said_in_aaep_on_the_same_line_is_passed_over() {
    for inside in [
        r#""id":1,"method":"aaep.ping","params":{}"#,
        r#""id":1,"result":{}"#,
        r#""id":1,"result":null"#,
        r#""id":1,"result":"pong""#,
        r#""id":1,"result":{"type":7}"#,
        r#""id":1,"result":{"type":"tools","tools":[]}"#,
        r#""id":1,"error":{"code":-32601,"message":"no such method"}"#,
        r#""id":1,"error":"odd""#,
        r#""method":"notifications/progress","params":{"progress":1}"#,
        r#""id":0,"method":"initialize","params":{"capabilities":{}}"#,
    ] {
        let text = format!("{{\"jsonrpc\":\"2.0\",{inside}}}\n{{\"a\":1}}\n");
        assert_eq!(texts(&text), ["{\"a\":1}"], "{inside}");
    }
    let answer = r#"{"type":"subscription.accepted"}"#;
    let text = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{answer}}}");
    assert_eq!(texts(&text), [answer]);
    let empty = r#"{"jsonrpc":"2.0","method":"aaep.event"}"#;
    assert_eq!(texts(empty), [empty], "a broken call of ours is for the checker");
}

#[test]
fn objects_side_by_side_are_read_on_every_line() {
    let side_by_side = "{\"a\":\"}{\"} {\"b\":{}}\t{\"c\":1}\n";
    let parts = ["{\"a\":\"}{\"}", "{\"b\":{}}", "{\"c\":1}"];
    assert_eq!(texts(&side_by_side.repeat(2)), [parts, parts].concat());
    assert_eq!(
        read(b"{}\n{\"a\":1} {\"b\":2", 7)[1..],
        [(2, 3, "{\"a\":1}".to_owned()), (2, 11, "{\"b\":2".to_owned())]
    );
    assert_eq!(texts("{}\n{\"a\":x}{}\n{}"), ["{}", "{\"a\":x}{}", "{}"], "not told apart");
    assert_eq!(texts("{\"a\":1}{\n\"b\":2}\n"), ["{\"a\":1}", "{\n\"b\":2}"]);
}

#[test]
fn the_framing_is_told_within_a_window() {
    let long = format!("{{\"a\":\"{}\"}}\n{{\"b\":2}}\n", "x".repeat(2 * SNIFFED));
    assert_eq!(read(long.as_bytes(), 1000).len(), 2);
    let blank = format!("{{\"a\":{}1}}\n{{\"b\":2}}\n", "\n".repeat(2 * SNIFFED));
    assert_eq!(read(blank.as_bytes(), 1000).len(), 2);
    for endless in [&b"{"[..], b"{\"a\":\n", b" ", b"{}"] {
        let mut framing = Framing::new();
        let mut pieces = 0;
        let mut piece = endless;
        while framing.tell(piece, false).is_none() {
            pieces += 1;
            piece = if endless == b"{" { &[b'x'; 1024] } else { &[b'\n'; 1024] };
            assert!(pieces <= SNIFFED / 1024, "{endless:?}");
        }
    }
}

#[test]
fn what_is_something_else_is_named() {
    for (text, what) in [
        (&b"\xff\xfe{\0}\0"[..], "UTF-16"),
        (b"\xfe\xff\0{\0}", "UTF-16"),
        (b"{\0\"\0", "UTF-16"),
        (b"\0{\0\"\0", "UTF-16"),
        (b"\n<!DOCTYPE html>\n", "a web page (HTML)"),
        (b"<HTML lang=en>", "a web page (HTML)"),
        (b"<?xml version='1.0'?>", "XML"),
    ] {
        assert!(foreign(text).unwrap().contains(what), "{text:?}");
    }
    for text in [&b"{}"[..], b"", b"\0\0\0\x02{}", b"\0a\0b{", b"data: <html>\n", b"just words"] {
        assert_eq!(foreign(text), None);
    }
}

#[test]
fn the_name_of_an_event_says_whether_it_is_one() {
    let label = |text: &[u8]| {
        let mut framing = Framing::new();
        let held = framing.tell(text, true).unwrap();
        framing.read(&mut held.as_slice()).unwrap().1
    };
    assert_eq!(label(b"data: {}\n\n"), Label::Plain);
    assert_eq!(label(b"event: message\ndata: {}\n\n"), Label::Plain);
    assert_eq!(label(b"event: aaep.event\ndata: {}\n\n"), Label::Plain);
    assert_eq!(label(b"event: usage\ndata: {}\n\n"), Label::Named);
    assert_eq!(label(b"data: [DONE]\n\n"), Label::Done);
    let event = br#"{"type":"aaep:agent.session.started"}"#;
    for (label, protocol, message, is_event) in [
        (Label::Named, Protocol::Aaep, &b"{\"tokens\":1}"[..], false),
        (Label::Named, Protocol::Aaep, event, true),
        (Label::Named, Protocol::Aaep, b"{\"type\":\"subscription.accepted\"}", true),
        (Label::Named, Protocol::Aep, b"{}", true),
        (Label::Done, Protocol::Aep, b"[DONE]", false),
        (Label::Done, Protocol::Aaep, b"[DONE]", false),
        (Label::Done, Protocol::Agui, b"[DONE]", true),
    ] {
        assert_eq!(label.is_event(protocol, message), is_event, "{label:?} {protocol}");
    }
}

#[test]
fn bytes_in_an_event_that_are_no_text_stay_visible() {
    let mut framing = Framing::new();
    let held = framing.tell(b"data: {\"a\":\"\xe6\x97\"}\n\n", true).unwrap();
    let mut rest = held.as_slice();
    let ((_, message), _) = framing.read(&mut rest).unwrap();
    assert!(std::str::from_utf8(message.unwrap()).is_err());
}

#[test]
fn an_empty_input_has_no_messages() {
    for text in ["", " ", "\n\n", "\u{feff}", ": only a comment\n\n", "[]", "\0\0\0"] {
        let found = texts(text);
        assert!(found.len() <= usize::from(text == "\0\0\0"), "{text:?}: {found:?}");
    }
}
