use super::*;

/// The messages of a text in pieces of a size: where they begin, and what they say.
fn read(text: &[u8], size: usize) -> Vec<(u64, u64, String)> {
    let mut framing = Framing::new();
    let mut found = Vec::new();
    let mut note = |framed: Framed<'_, [u8]>| {
        if let Some((place, message)) = unwrapped(framed) {
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
        while let Some(framed) = framing.read(&mut rest) {
            note(framed);
        }
    }
    while let Some(framed) = framing.end() {
        note(framed);
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
        "{\"jsonrpc\":\"2.0\",\"method\":\"aaep.event\",\"params\":{\"a\":1}}\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"b\":2}}\n",
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
fn bytes_in_an_event_that_are_no_text_stay_visible() {
    let mut framing = Framing::new();
    let held = framing.tell(b"data: {\"a\":\"\xe6\x97\"}\n\n", true).unwrap();
    let mut rest = held.as_slice();
    let (_, message) = framing.read(&mut rest).unwrap();
    assert!(std::str::from_utf8(message.unwrap()).is_err());
}

#[test]
fn an_empty_input_has_no_messages() {
    for text in ["", " ", "\n\n", "\u{feff}", ": only a comment\n\n", "[]", "\0\0\0"] {
        let found = texts(text);
        assert!(found.len() <= usize::from(text == "\0\0\0"), "{text:?}: {found:?}");
    }
}
