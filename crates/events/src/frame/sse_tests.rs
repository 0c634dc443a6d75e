use proptest::prelude::*;

use super::*;

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

proptest! {
    #[test]
    fn what_is_written_is_read_back_however_it_is_cut(
        texts in proptest::collection::vec("[^\r]{0,40}", 1..5),
        cut in 1usize..9,
    ) {
        let mut out = Vec::new();
        for text in &texts {
            write(&mut out, &Outgoing { id: Some("i"), event: None, data: text });
        }
        let pieces: Vec<&[u8]> = out.chunks(cut).collect();
        let read: Vec<String> = parse(&pieces).into_iter().map(|(_, _, data)| data).collect();
        prop_assert_eq!(read, texts);
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), limit in 0usize..64) {
        let mut parser = Parser::new(limit);
        for piece in bytes.chunks(7) {
            // An oversized message is one of the inputs this test wants.
            let _ = parser.push(piece);
            prop_assert!(parser.held() <= limit.max(1));
        }
        while parser.next().is_some() {}
        parser.finish();
    }
}
