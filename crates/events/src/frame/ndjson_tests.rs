use super::*;
use crate::frame::tests::{cut, lines};

type Told<'a> = (u64, u64, Result<&'a [u8], Error>);

#[test]
fn lines_and_their_places_are_told() {
    let table: &[(&str, &[u8], &[Told<'_>])] = &[
        ("nothing", b"", &[]),
        ("only line ends", b"\n\r\n\n", &[]),
        ("no line end", b"{}", &[(1, 0, Ok(b"{}"))]),
        (
            "blank lines",
            b"{}\r\n\r\n  \n[]\nlast",
            &[(1, 0, Ok(b"{}")), (4, 9, Ok(b"[]")), (5, 12, Ok(b"last"))],
        ),
        ("a CR within a line stays", b"1\r2\r\n", &[(1, 0, Ok(b"1\r2"))]),
        ("a CR at the end", b"1\r", &[(1, 0, Ok(b"1"))]),
        ("a byte order mark", b"\xEF\xBB\xBF{}\n{}", &[(1, 3, Ok(b"{}")), (2, 6, Ok(b"{}"))]),
        ("nothing but a mark", b"\xEF\xBB\xBF\r\n{}", &[(2, 5, Ok(b"{}"))]),
        ("a mark later on", b"1\n\xEF\xBB\xBF2", &[(1, 0, Ok(b"1")), (2, 2, Ok(b"\xEF\xBB\xBF2"))]),
        ("half a mark", b"\xEF\xBB1", &[(1, 0, Ok(b"\xEF\xBB1"))]),
        ("what is not UTF-8", b"\xFF\xC3\n{}", &[(1, 0, Ok(b"\xFF\xC3")), (2, 3, Ok(b"{}"))]),
        ("leading space", b"  {}\n", &[(1, 0, Ok(b"  {}"))]),
        (
            "lines over the limit",
            b"01234567890\n{}\n             \n01234567890",
            &[
                (1, 0, Err(Error::TooLarge { limit: 10 })),
                (2, 12, Ok(b"{}")),
                (3, 15, Err(Error::TooLarge { limit: 10 })),
                (4, 29, Err(Error::TooLarge { limit: 10 })),
            ],
        ),
    ];
    for (name, stream, expected) in table {
        for size in [1, 2, 3, 100] {
            let found = lines(&cut(stream, &[size]), 10);
            let found: Vec<Told<'_>> = found
                .iter()
                .map(|(place, line)| {
                    (place.line, place.offset, line.as_deref().map_err(|error| *error))
                })
                .collect();
            assert_eq!(found, *expected, "{name}, in pieces of {size}");
        }
    }
}

#[test]
fn what_is_written_is_one_line() {
    let mut out = Vec::new();
    write(&mut out, b"{\r\n \"a\":\r1\n}");
    assert_eq!(out, b"{   \"a\": 1 }\n");
}
