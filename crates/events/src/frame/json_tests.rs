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
            "a missing comma",
            b"[{}\n{},{}]",
            &[
                (1, 1, Ok("{}")),
                (2, 4, Err(Error::MissingComma)),
                (2, 4, Ok("{}")),
                (2, 7, Ok("{}")),
            ],
        ),
        (
            "commas too many",
            b"[,{},,{},\n]{}",
            &[
                (1, 1, Err(Error::SpareComma)),
                (1, 2, Ok("{}")),
                (1, 5, Err(Error::SpareComma)),
                (1, 6, Ok("{}")),
                (1, 8, Err(Error::SpareComma)),
                (2, 11, Ok("{}")),
            ],
        ),
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

/// Everything that is told of a text, without places, whatever its pieces.
fn told(text: &str) -> Vec<(u64, Result<String, Error>)> {
    let of = |size: usize| -> Vec<_> {
        documents(&cut(text.as_bytes(), &[size]), 1 << 16)
            .into_iter()
            .map(|(place, found)| (place.line, found.map(|it| String::from_utf8(it).unwrap())))
            .collect()
    };
    for size in [1, 2, 3, 5, 7] {
        assert_eq!(of(size), of(1 << 16), "{text}");
    }
    of(1 << 16)
}

#[test]
fn a_broken_element_is_one_document_and_those_after_it_are_read() {
    let pretty = "{\n    \"a\": {\"x\": [1]},\n    \"b\": \"c\"\n  }";
    for (what, broken) in [
        ("a missing brace", pretty.replace("]}", "]")),
        ("a missing bracket", pretty.replace("1]", "1")),
        ("a missing last brace", pretty.replace("\n  }", "")),
        ("a missing quote", pretty.replace("\"c\"", "\"c")),
        ("a missing quote of a name", pretty.replace("\"a\"", "a\"")),
        ("an escaped line end", pretty.replace("\"c\"", "\"c\\")),
    ] {
        for (open, between, close) in [("[\n  ", ",\n  ", "\n]"), ("[\n  ", "\n  ,\n  ", "]\n")] {
            let text = [open, pretty, between, &broken, between, pretty, close].concat();
            let found = told(&text);
            assert_eq!(found.len(), 3, "{what}: {found:?}");
            assert_eq!(found[0], (2, Ok(pretty.to_owned())), "{what}");
            let line = if between.starts_with(',') { 6 } else { 7 };
            assert_eq!(found[1].0, line, "{what}");
            assert!(found[1].1.as_ref().unwrap().starts_with(&broken), "{what}: {found:?}");
            assert_eq!(found[2].1, Ok(pretty.to_owned()), "{what}");
        }
    }
}

#[test]
fn a_broken_line_of_an_array_costs_no_other_line() {
    for broken in ["{\"a\":1", "{\"a\":\"b}", "{\"a\":[1}", "{\"a\":{\"b\":1}", "{\"a\":1,"] {
        let text = format!("[\n{{\"n\":1}},\n{broken},\n{{\"n\":2}},\n{broken}\n,{{\"n\":3}}\n]");
        let found = told(&text);
        assert_eq!(found[0], (2, Ok("{\"n\":1}".into())), "{text}");
        assert_eq!(found[1].0, 3, "{text}");
        assert_eq!(found[2], (4, Ok("{\"n\":2}".into())), "{text}");
        assert_eq!(found[3].0, 5, "{text}");
    }
    for broken in ["{\"a\":\"b}", "{\"a\":{\"b\":1}"] {
        assert_eq!(
            told(&format!("[\n{broken}\n]\n{{}}")),
            [(2, Ok(broken.into())), (4, Ok("{}".into()))],
            "the array ends all the same"
        );
    }
}

#[test]
fn an_object_that_begins_a_line_where_it_may_ends_nothing() {
    let deep = "{\"a\":\n".repeat(200) + "1" + &"}".repeat(199) + ",\n\"b\":\n{}}";
    for element in ["{\n\"a\":\n{},\n\"b\":[\n{},\n{}\n,\n{}]\n}", &deep] {
        let text = format!("[\n{element}\n,\n{element}]");
        let found: Vec<_> = told(&text).into_iter().map(|(_, found)| found).collect();
        assert_eq!(found, [Ok(element.to_owned()), Ok(element.to_owned())]);
    }
}

#[test]
fn deep_nesting_is_counted() {
    let depth = 100_000;
    let stream = [b"[".repeat(depth + 1), b"]".repeat(depth + 1)].concat();
    let found = documents(&[&stream], stream.len());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].1.as_ref().map(Vec::len), Ok(2 * depth));
}

#[test]
fn where_the_next_document_begins_does_not_depend_on_the_cut_before_it() {
    let data = b"x[!,\"]}\\\x01,\n {\n\x7f\n]\n";
    let read = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let (mut reader, mut all) = (Documents::new(1024), Vec::new());
        for mut piece in pieces {
            while let Some((place, found)) = reader.read(&mut piece) {
                all.push((place, found.map(<[u8]>::to_vec)));
            }
        }
        while let Some((place, found)) = reader.end() {
            all.push((place, found.map(<[u8]>::to_vec)));
        }
        all
    };
    assert_eq!(read(&mut data.chunks(1)), read(&mut std::iter::once(&data[..])));
}
