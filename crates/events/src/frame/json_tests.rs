use super::*;
use crate::frame::tests::{cut, documents};

type Told<'a> = (u64, u64, Result<&'a str, Error>);

#[test]
fn documents_and_their_places_are_told() {
    let table: &[(&str, &[u8], &[Told<'_>])] = &[
        ("nothing", b" \n", &[]),
        ("an empty array", b"[ ]", &[]),
        (
            "layout, arrays and strings",
            b"[\n {\"a\":[1,\"]}\\\"\"]},\n {\n}\n]\n{}7",
            &[
                (2, 3, Ok("{\"a\":[1,\"]}\\\"\"]}")),
                (3, 22, Ok("{\n}")),
                (6, 28, Ok("{}")),
                (6, 30, Ok("7")),
            ],
        ),
        ("arrays in an array", b"[[1],[]]", &[(1, 1, Ok("[1]")), (1, 5, Ok("[]"))]),
        ("two arrays", b"[1][2]", &[(1, 1, Ok("1")), (1, 4, Ok("2"))]),
        (
            "what stands bare",
            b"7\ttrue{}\"a\"\"b\"null\n",
            &[
                (1, 0, Ok("7")),
                (1, 2, Ok("true")),
                (1, 6, Ok("{}")),
                (1, 8, Ok("\"a\"")),
                (1, 11, Ok("\"b\"")),
                (1, 14, Ok("null")),
            ],
        ),
        ("a line end within a string", b"\"\n\"\n{}", &[(1, 0, Ok("\"\n\"")), (3, 4, Ok("{}"))]),
        (
            "brackets too many",
            b"{}}]{}",
            &[(1, 0, Ok("{}")), (1, 2, Ok("}")), (1, 3, Ok("]")), (1, 4, Ok("{}"))],
        ),
        (
            "a comma outside an array",
            b"{},{}",
            &[(1, 0, Ok("{}")), (1, 2, Ok(",")), (1, 3, Ok("{}"))],
        ),
        ("a document that is cut off", b"{\"a\": \"b", &[(1, 0, Ok("{\"a\": \"b"))]),
        ("an array that is cut off", b"\n[{}, ", &[(2, 2, Ok("{}")), (2, 1, Err(Error::Unclosed))]),
        ("both", b"[{}, {", &[(1, 1, Ok("{}")), (1, 5, Ok("{")), (1, 0, Err(Error::Unclosed))]),
        ("a mark before an object", b"\xEF\xBB\xBF{}", &[(1, 3, Ok("{}"))]),
        ("a mark before an array", b"\xEF\xBB\xBF\n[1]", &[(2, 5, Ok("1"))]),
        ("a mark before a number", b"\xEF\xBB\xBF1", &[(1, 3, Ok("1"))]),
        ("nothing but a mark", b"\xEF\xBB\xBF", &[]),
        (
            "too large",
            b"{\"a\":\"0123456789 0123456789 0123456789\"}{}",
            &[(1, 0, Err(Error::TooLarge { limit: 24 })), (1, 40, Ok("{}"))],
        ),
        (
            "too large and cut off",
            b"{}\n\"0123456789 0123456789 0123456789",
            &[(1, 0, Ok("{}")), (2, 3, Err(Error::TooLarge { limit: 24 }))],
        ),
    ];
    for (name, stream, expected) in table {
        for size in [1, 2, 3, 100] {
            let found = documents(&cut(stream, &[size]), 24);
            let found: Vec<Told<'_>> = found
                .iter()
                .map(|(place, document)| {
                    let document =
                        document.as_ref().map(|bytes| std::str::from_utf8(bytes).unwrap());
                    (place.line, place.offset, document.map_err(|error| *error))
                })
                .collect();
            assert_eq!(found, *expected, "{name}, in pieces of {size}");
        }
    }
}

#[test]
fn pushed_bytes_give_the_same_documents() {
    let stream = b"[{\"a\": 1},\n{\"a\": \"too large to be held\"}] {";
    let mut documents = Documents::new(10);
    let mut found = Vec::new();
    for piece in stream.chunks(3) {
        documents.push(piece, |document| found.push(document));
    }
    found.extend(documents.finish());
    assert_eq!(
        found,
        [
            (1, Ok(b"{\"a\": 1}".to_vec())),
            (2, Err(Error::TooLarge { limit: 10 })),
            (2, Ok(b"{".to_vec()))
        ]
    );
    assert_eq!(documents.finish(), None);
}

#[test]
fn deep_nesting_is_counted() {
    let depth = 100_000;
    let stream = [b"[".repeat(depth + 1), b"]".repeat(depth + 1)].concat();
    let found = documents(&[&stream], stream.len());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].1.as_ref().map(Vec::len), Ok(2 * depth));
}
