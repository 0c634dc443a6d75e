//! What holds for every framing, and what the tests of each share.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

pub(super) type Owned<T> = (Place, Result<T, Error>);

/// Everything a reader tells of a stream in these pieces. The closure reads from a piece, or, without one, the end.
pub(super) fn gather<T>(
    pieces: &[&[u8]],
    mut read: impl FnMut(Option<&mut &[u8]>) -> Option<Owned<T>>,
) -> Vec<Owned<T>> {
    let mut all = Vec::new();
    for piece in pieces {
        let mut rest = *piece;
        all.extend(std::iter::from_fn(|| read(Some(&mut rest))));
        assert!(rest.is_empty(), "a piece is used up before the next one");
    }
    all.extend(std::iter::from_fn(|| read(None)));
    assert!(read(None).is_none(), "the end is told once");
    all
}

pub(super) fn owned<T: ToOwned + ?Sized>((place, found): Framed<'_, T>) -> Owned<T::Owned> {
    (place, found.map(ToOwned::to_owned))
}

/// Cuts bytes into pieces of these sizes, over and over; some may be empty.
pub(super) fn cut<'a>(bytes: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
    let mut rest = bytes;
    let mut pieces = Vec::new();
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        pieces.push(take(&mut rest, *size));
    }
    pieces
}

pub(super) fn sizes() -> impl Strategy<Value = Vec<usize>> {
    vec(0usize..9, 0..6).prop_map(|mut sizes| {
        sizes.push(1 + sizes.len());
        sizes
    })
}

pub(super) fn lines(pieces: &[&[u8]], limit: usize) -> Vec<Owned<Vec<u8>>> {
    let mut lines = ndjson::Lines::new(limit);
    gather(pieces, |bytes| {
        let line = match bytes {
            Some(bytes) => lines.read(bytes),
            None => lines.end(),
        };
        let line = line.map(owned);
        assert!(lines.held() <= limit);
        line
    })
}

pub(super) fn documents(pieces: &[&[u8]], limit: usize) -> Vec<Owned<Vec<u8>>> {
    let mut documents = json::Documents::new(limit);
    gather(pieces, |bytes| {
        let document = match bytes {
            Some(bytes) => documents.read(bytes),
            None => documents.end(),
        };
        let document = document.map(owned);
        assert!(documents.held() <= limit);
        document
    })
}

pub(super) fn lengths(pieces: &[&[u8]], limit: usize) -> Vec<Owned<Vec<u8>>> {
    let mut messages = length::Messages::new(limit);
    gather(pieces, |bytes| {
        let message = match bytes {
            Some(bytes) => messages.read(bytes),
            None => messages.end(),
        };
        let message = message.map(owned);
        assert!(messages.held() <= limit);
        message
    })
}

pub(super) fn events(pieces: &[&[u8]], limit: usize) -> Vec<Owned<sse::Message>> {
    let mut parser = sse::Parser::new(limit);
    gather(pieces, |bytes| {
        let message = match bytes {
            Some(bytes) => parser.read(bytes),
            None => parser.end(),
        };
        let message = message.map(owned);
        // One byte more tells a line that is dropped, or a comment, from the next.
        assert!(parser.held() <= limit + 1);
        message
    })
}

/// What was read, without places.
fn told<T>(found: Vec<Owned<T>>) -> Vec<Result<T, Error>> {
    found.into_iter().map(|(_, found)| found).collect()
}

fn message() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<String>().prop_map(|text| serde_json::Value::from(text).to_string()),
    ];
    let inner = leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(|all| format!("[{}]", all.join(","))),
            vec(("[a-z\\\\\"{]{0,4}", inner), 0..3).prop_map(|all| {
                let members = all
                    .into_iter()
                    .map(|(name, value)| format!("{}: {value}", serde_json::Value::from(name)));
                format!("{{\n{}}}", members.collect::<Vec<_>>().join(",\n  "))
            }),
        ]
    });
    inner.prop_map(|value| format!("{{\"v\":{value}}}"))
}

/// Something that means something in one framing or another.
fn fragment() -> impl Strategy<Value = Vec<u8>> {
    let known: &'static [&'static [u8]] = &[
        b"\xEF\xBB\xBF",
        b"\r",
        b"\n",
        b"\r\n",
        b"\0\0\0\x03",
        b"\0",
        b" ",
        b":",
        b"data",
        b"data: ",
        b"id: ",
        b"event:",
        b"{}",
        b"{\"a\":",
        b"[",
        b"]",
        b",",
        b"\"",
        b"\\",
        b"\xE6\x9D\xB1",
        b"\xE6",
    ];
    prop_oneof![
        4 => proptest::sample::select(known).prop_map(<[u8]>::to_vec),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
    ]
}

proptest! {
    #[test]
    fn any_messages_in_any_framing_are_read_back_however_they_are_cut(
        messages in vec(message(), 0..5),
        sizes in sizes(),
    ) {
        let expected: Vec<_> = messages.iter().map(|message| Ok(message.clone().into_bytes())).collect();
        let limit = 1 << 20;

        let mut stream = Vec::new();
        for message in &messages {
            length::write(&mut stream, message.as_bytes())?;
        }
        prop_assert_eq!(&told(lengths(&cut(&stream, &sizes), limit)), &expected);

        let array = format!(" [{}\n]\n", messages.join(" ,\n"));
        prop_assert_eq!(&told(documents(&cut(array.as_bytes(), &sizes), limit)), &expected);
        let sequence = messages.join("\n");
        prop_assert_eq!(&told(documents(&cut(sequence.as_bytes(), &sizes), limit)), &expected);

        let mut stream = Vec::new();
        for message in &messages {
            sse::write(&mut stream, &sse::Outgoing { id: None, event: None, data: message });
        }
        let read: Vec<_> = told(events(&cut(&stream, &sizes), limit))
            .into_iter()
            .map(|message| message.map(|message| message.data.into_bytes()))
            .collect();
        prop_assert_eq!(&read, &expected);

        let mut stream = Vec::new();
        for message in &messages {
            ndjson::write(&mut stream, message.as_bytes());
        }
        let flat: Vec<_> = messages.iter().map(|message| Ok(message.replace('\n', " ").into_bytes())).collect();
        prop_assert_eq!(&told(lines(&cut(&stream, &sizes), limit)), &flat);
    }

    #[test]
    fn any_bytes_are_read_alike_however_they_are_cut(
        bytes in vec(fragment(), 0..40).prop_map(|all| all.concat()),
        sizes in sizes(),
        limit in 0usize..40,
    ) {
        let pieces = cut(&bytes, &sizes);
        prop_assert_eq!(lines(&pieces, limit), lines(&[&bytes], limit));
        prop_assert_eq!(documents(&pieces, limit), documents(&[&bytes], limit));
        prop_assert_eq!(lengths(&pieces, limit), lengths(&[&bytes], limit));
        prop_assert_eq!(events(&pieces, limit), events(&[&bytes], limit));
    }

    #[test]
    fn a_place_is_where_the_message_stands_in_the_stream(
        bytes in vec(proptest::sample::select(b"\xEF\xBB\xBF\r\n {}[],\"\\a".to_vec()), 0..80),
        sizes in sizes(),
        limit in 0usize..30,
    ) {
        let pieces = cut(&bytes, &sizes);
        for (place, message) in lines(&pieces, limit).into_iter().chain(documents(&pieces, limit)) {
            let (before, rest) = bytes.split_at(usize::try_from(place.offset)?);
            prop_assert_eq!(place.line, 1 + length(&before.iter().copied().filter(|byte| *byte == b'\n').collect::<Vec<_>>()));
            if let Ok(message) = message {
                prop_assert!(rest.starts_with(&message), "{:?} at {:?}", message, place);
            }
        }
    }
}

#[test]
fn a_byte_order_mark_over_the_limit_is_too_large_however_it_is_cut() {
    for limit in 0..4 {
        let (whole, cut) = ([&b"\xEF\xBB\xBF\r"[..]], [&b"\xEF"[..], b"\xBB\xBF", b"\r"]);
        let too_large = usize::from(limit < 3);
        assert_eq!(
            (documents(&whole, limit).len(), events(&whole, limit).len()),
            (too_large, too_large)
        );
        assert_eq!(documents(&cut, limit), documents(&whole, limit));
        assert_eq!(events(&cut, limit), events(&whole, limit));
    }
}

#[test]
fn a_message_of_100_megabytes_is_refused_once_and_not_held() {
    const LIMIT: usize = 1 << 16;
    let megabyte = vec![b'x'; 1 << 20];
    let endless = |before: &'static [u8], after: &'static [u8]| {
        let mut pieces: Vec<&[u8]> = vec![before];
        pieces.extend(std::iter::repeat_n(megabyte.as_slice(), 100));
        pieces.push(after);
        pieces
    };
    let too_large = Err(Error::TooLarge { limit: LIMIT });
    let expected = [too_large, Ok(b"{}".to_vec())];
    assert_eq!(told(lines(&endless(b"", b"\n{}"), LIMIT)), expected);
    assert_eq!(told(documents(&endless(b"{\"", b"\"}{}"), LIMIT)), expected);
    assert_eq!(told(lengths(&endless(b"\x06\x40\0\0", b"\0\0\0\x02{}"), LIMIT)), expected);
    let found = told(events(&endless(b"data:", b"\n\ndata:{}\n\n"), LIMIT));
    assert_eq!(
        found.into_iter().map(|it| it.map(|it| it.data.into_bytes())).collect::<Vec<_>>(),
        expected
    );
}

#[test]
fn a_message_within_one_piece_is_not_copied() {
    let stream = b"{\"a\":1}\n";
    let mut piece = &stream[..];
    let mut lines = ndjson::Lines::new(64);
    let (_, line) = lines.read(&mut piece).unwrap();
    assert_eq!(line.unwrap().as_ptr(), stream.as_ptr());
}
