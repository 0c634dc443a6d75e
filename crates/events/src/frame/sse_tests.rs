use proptest::prelude::*;

use super::*;
use crate::frame::tests::{cut, events, sizes};

fn parse(pieces: &[&[u8]]) -> Vec<(Option<String>, Option<String>, String)> {
    let mut parser = Parser::new(1 << 20);
    let mut messages = Vec::new();
    for piece in pieces {
        parser.push(piece).unwrap();
        while let Some(message) = parser.next() {
            messages.push((message.id, message.event, message.data));
        }
    }
    messages.extend(parser.finish().map(|message| (message.id, message.event, message.data)));
    messages
}

fn data(bytes: &[u8]) -> Vec<String> {
    parse(&[bytes]).into_iter().map(|(_, _, data)| data).collect()
}

#[test]
fn every_line_end_is_read() {
    for bytes in [
        &b"data: a\n\ndata: b\n\n"[..],
        b"data: a\r\n\r\ndata: b\r\n\r\n",
        b"data: a\r\rdata: b\r\r",
    ] {
        assert_eq!(data(bytes), ["a", "b"]);
    }
}

#[test]
fn mark_comments_and_unknown_fields_are_skipped() {
    assert_eq!(data(b"\xEF\xBB\xBF: hello\ndata:a\nretry: 5\ncolour: red\n\n: idle\n\n"), ["a"]);
}

#[test]
fn data_lines_are_joined_and_fields_are_kept() {
    assert_eq!(
        parse(&[b"event: step\nid: 7\ndata: one\ndata:\ndata:  two\n\n"]),
        [(Some("7".into()), Some("step".into()), "one\n\n two".into())]
    );
}

#[test]
fn an_id_with_nul_is_ignored() {
    assert_eq!(parse(&[b"id: a\0b\ndata: x\n\n"]), [(None, None, "x".into())]);
}

#[test]
fn a_block_without_data_is_no_message() {
    assert!(parse(&[b"event: ping\n\nid: 4\n\n"]).is_empty());
}

#[test]
fn empty_data_is_a_message() {
    assert_eq!(data(b"data:\n\n"), [""]);
}

#[test]
fn a_character_split_between_pieces_stays_whole() {
    let text = "data: 東京 é\n\n".as_bytes();
    for cut in 0..text.len() {
        let (left, right) = text.split_at(cut);
        assert_eq!(parse(&[left, right]), [(None, None, "東京 é".to_owned())]);
    }
}

#[test]
fn a_last_message_without_blank_line_is_kept() {
    assert_eq!(data(b"data: a\n\ndata: b"), ["a", "b"]);
}

#[test]
fn an_oversized_message_is_dropped_once_and_the_next_one_is_read() {
    let mut parser = Parser::new(16);
    assert_eq!(
        parser.push(b"data: 0123456789abcdef\ndata: more\n"),
        Err(Error::TooLarge { limit: 16 })
    );
    assert_eq!(parser.push(b"data: still the same message, long\n\ndata: ok\n\n"), Ok(()));
    assert_eq!(parser.next().map(|message| (message.data, message.line)), Some(("ok".into(), 5)));
    assert_eq!(parser.next(), None);
}

#[test]
fn many_short_lines_count_together() {
    let mut parser = Parser::new(64);
    let mut errors = 0;
    for _ in 0..100 {
        errors += usize::from(parser.push(b"data: 123456\n").is_err());
        assert!(parser.held() <= 64);
    }
    assert_eq!(errors, 1);
}

#[test]
fn nothing_in_id_event_or_data_starts_another_field() {
    let mut out = Vec::new();
    let sly = "a\ndata: b\r\n\r\ndata: c\0";
    write(&mut out, &Outgoing { id: Some(sly), event: Some(sly), data: "x\r\ny\rz\n" });
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "id: adata: bdata: c\nevent: adata: bdata: c\ndata: x\ndata: y\ndata: z\ndata: \n\n"
    );
}

#[test]
fn a_comment_is_no_message() {
    let mut out = Vec::new();
    comment(&mut out, "idle\ndata: no");
    assert_eq!(out, b": idle\n: data: no\n\n");
    assert!(parse(&[&out]).is_empty());
}

type Told<'a> = (u64, u64, Result<&'a str, Error>);

#[test]
fn messages_and_their_places_are_told() {
    let too_large = Err(Error::TooLarge { limit: 30 });
    let table: &[(&str, &[u8], &[Told<'_>])] = &[
        ("nothing", b"", &[]),
        ("blank lines", b"\n\r\n\r\r\n", &[]),
        (
            "mixed line ends",
            b"data: a\rdata: b\r\ndata: c\n\rdata: d\n\r\n",
            &[(1, 0, Ok("a\nb\nc")), (5, 26, Ok("d"))],
        ),
        ("CR and then LF are one line end", b"data: a\r\ndata: b\r\n\r\n", &[(1, 0, Ok("a\nb"))]),
        ("LF and then CR are two", b"data: a\n\rdata: b\n\r", &[(1, 0, Ok("a")), (3, 9, Ok("b"))]),
        ("a mark", b"\xEF\xBB\xBFdata: a\n\n", &[(1, 0, Ok("a"))]),
        ("a second mark makes another field", b"\xEF\xBB\xBF\xEF\xBB\xBFdata: a\n\n", &[]),
        ("a mark and nothing else", b"\xEF\xBB\xBF\n\ndata: a\n\n", &[(3, 5, Ok("a"))]),
        ("a mark later on", b"\n\xEF\xBB\xBFdata: a\n\n", &[]),
        ("a field without colon", b"data\n\n", &[(1, 0, Ok(""))]),
        ("two of them", b"data\ndata\n\n", &[(1, 0, Ok("\n"))]),
        (
            "one space goes",
            b"data:a\ndata: a\ndata:  a\ndata:\ta\n\n",
            &[(1, 0, Ok("a\na\n a\n\ta"))],
        ),
        ("a space before the colon is part of the name", b"data : a\n\n", &[]),
        ("names have a case", b"Data: a\n\n", &[]),
        ("colons in a value", b"data: a: b\n\n", &[(1, 0, Ok("a: b"))]),
        ("comments within a message", b"data: a\n: b\n:\ndata: c\n\n", &[(1, 0, Ok("a\nc"))]),
        (
            "the data begins after other fields",
            b"id: 1\nevent: x\ndata: a\n\n",
            &[(3, 15, Ok("a"))],
        ),
        (
            "what is not UTF-8",
            b"data: a\xFFb\n\ndata: \xE6\x9D\n\n",
            &[(1, 0, Ok("a\u{FFFD}b")), (3, 11, Ok("\u{FFFD}"))],
        ),
        ("half a character at the end", b"data: \xE6\x9D", &[(1, 0, Ok("\u{FFFD}"))]),
        ("no blank line at the end", b"data: a\n", &[(1, 0, Ok("a"))]),
        ("no line end at the end", b"data: a\r\n\r\ndata: b", &[(1, 0, Ok("a")), (3, 11, Ok("b"))]),
        ("other fields at the end", b"data: a\n\nid: 7", &[(1, 0, Ok("a"))]),
        (
            "too large",
            b"id: 1\ndata: 0123456789\ndata: 0123456789 0123456789\ndata: 1\n\ndata: ok\n\n",
            &[(2, 6, too_large), (6, 60, Ok("ok"))],
        ),
        (
            "too large before there is data",
            b"\nevent: 0123456789 0123456789 0123456789\ndata: 1\n\ndata: ok\n",
            &[(2, 1, too_large), (5, 50, Ok("ok"))],
        ),
        (
            "a comment may be as long as it likes",
            b"data: a\n: 0123456789 0123456789 0123456789\ndata: b\n\n",
            &[(1, 0, Ok("a\nb"))],
        ),
        (
            "replacing makes it too large",
            b"data: \xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\n\ndata: ok\n\n",
            &[(1, 0, too_large), (3, 19, Ok("ok"))],
        ),
    ];
    for (name, stream, expected) in table {
        for size in [1, 2, 3, 5, 100] {
            let found = events(&cut(stream, &[size]), 30);
            let found: Vec<Told<'_>> = found
                .iter()
                .map(|(place, message)| {
                    let data = message.as_ref().map(|message| message.data.as_str());
                    (place.line, place.offset, data.map_err(|error| *error))
                })
                .collect();
            assert_eq!(found, *expected, "{name}, in pieces of {size}");
        }
    }
}

#[test]
fn a_message_says_whether_bytes_were_replaced() {
    let mut parser = Parser::new(64);
    parser.push(b"event: \xFF\ndata: a\n\ndata: b\n\nunknown: \xFF\ndata: c\n\n").unwrap();
    let replaced: Vec<bool> = std::iter::from_fn(|| parser.next()).map(|it| it.replaced).collect();
    assert_eq!(replaced, [true, false, false]);
}

#[test]
fn a_blank_line_confirms_the_last_id() {
    let mut parser = Parser::new(64);
    for (bytes, expected) in [
        (&b"id: 1\ndata: a\n"[..], None),
        (b"\n", Some("1")),
        (b"id: 2\n\n", Some("2")),
        (b"data: b\n\n", Some("2")),
        (b"id: x\0y\n\n", Some("2")),
        (b"id\n\n", Some("")),
    ] {
        parser.push(bytes).unwrap();
        assert_eq!(parser.last_id(), expected, "{bytes:?}");
    }
}

#[test]
fn only_digits_are_a_time_to_wait() {
    let mut parser = Parser::new(64);
    for (bytes, expected) in [
        (&b"retry: x\n"[..], None),
        (b"retry: 1500\n", Some(1500)),
        (b"retry: +1\n", Some(1500)),
        (b"retry: 1 \n", Some(1500)),
        (b"retry:\n", Some(1500)),
        (b"retry: 99999999999999999999\n", Some(1500)),
        (b"retry:0\n", Some(0)),
    ] {
        parser.push(bytes).unwrap();
        assert_eq!(parser.retry(), expected.map(Duration::from_millis), "{bytes:?}");
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_back_however_it_is_cut(
        texts in proptest::collection::vec("[^\r]{0,40}", 1..5),
        sizes in sizes(),
    ) {
        let mut out = Vec::new();
        for text in &texts {
            write(&mut out, &Outgoing { id: Some("i"), event: None, data: text });
        }
        let read: Vec<String> = parse(&cut(&out, &sizes)).into_iter().map(|(_, _, data)| data).collect();
        prop_assert_eq!(read, texts);
    }
}

#[test]
fn what_stricter_parsers_do_not_read_is_noticed_where_it_first_is() {
    let stream = b"\xEF\xBB\xBFdata: 1\n\nid: 7\ndata: 2\r\n\r\n  {\"bare\": 1}\nDATA: 3\n";
    let place = |line, offset| Some(Place { line, offset });
    let expected = Quirks {
        mark: place(1, 0),
        other_field: place(3, 12),
        carriage_return: place(4, 18),
        bare: place(6, 29),
    };
    for size in 1..stream.len() {
        let mut parser = Parser::new(64);
        for piece in stream.chunks(size) {
            parser.push(piece).unwrap();
        }
        assert_eq!(parser.quirks(), expected, "in pieces of {size}");
    }
    let mut parser = Parser::new(64);
    parser.push(b": {\n\nunknown: {}\nretries\n\ndata\n").unwrap();
    assert_eq!(parser.quirks(), Quirks::default());
}
