use super::*;
use crate::frame::tests::{cut, lengths};

type Told<'a> = (u64, u64, Result<&'a [u8], Error>);

const TOO_LARGE: Error = Error::TooLarge { limit: 4 };

#[test]
fn messages_and_their_places_are_told() {
    let table: &[(&str, &[u8], &[Told<'_>])] = &[
        ("nothing", b"", &[]),
        ("one", b"\0\0\0\x02{}", &[(1, 0, Ok(b"{}"))]),
        ("an empty one", b"\0\0\0\0\0\0\0\x01{", &[(1, 0, Ok(b"")), (2, 4, Ok(b"{"))]),
        ("as large as may be", b"\0\0\0\x04[12]", &[(1, 0, Ok(b"[12]"))]),
        (
            "too large, and the next one",
            b"\0\0\0\x05[123]\0\0\0\x02[]",
            &[(1, 0, Err(TOO_LARGE)), (2, 9, Ok(b"[]"))],
        ),
        ("within the length", b"\0\0", &[(1, 0, Err(Error::Truncated { missing: 2 }))]),
        ("right after the length", b"\0\0\0\x03", &[(1, 0, Err(Error::Truncated { missing: 3 }))]),
        (
            "within the second message",
            b"\0\0\0\x01{\0\0\0\x03ab",
            &[(1, 0, Ok(b"{")), (2, 5, Err(Error::Truncated { missing: 1 }))],
        ),
        (
            "within a message that is too large",
            b"\xFF\xFF\xFF\xFFab",
            &[(1, 0, Err(TOO_LARGE)), (1, 0, Err(Error::Truncated { missing: 0xFFFF_FFFD }))],
        ),
    ];
    for (name, stream, expected) in table {
        for size in [1, 2, 3, 5, 100] {
            let found = lengths(&cut(stream, &[size]), 4);
            let found: Vec<Told<'_>> = found
                .iter()
                .map(|(place, message)| {
                    (place.line, place.offset, message.as_deref().map_err(|error| *error))
                })
                .collect();
            assert_eq!(found, *expected, "{name}, in pieces of {size}");
        }
    }
}

#[test]
fn a_promised_length_takes_no_memory() {
    let mut messages = Messages::new(usize::MAX);
    assert!(messages.read(&mut &b"\xFF\xFF\xFF\xFF{"[..]).is_none());
    assert_eq!(messages.held(), 1);
    assert!(messages.partial.bytes.capacity() < 1024);
}

#[test]
fn a_length_is_written_big_endian() {
    let mut out = Vec::new();
    write(&mut out, &[b'x'; 0x0102]).unwrap();
    assert_eq!(out[..6], [0, 0, 1, 2, b'x', b'x']);
    assert_eq!(out.len(), 4 + 0x0102);
}
