use proptest::prelude::*;

use super::*;

type Owned = (u64, Result<Vec<u8>, Error>);

fn split(pieces: &[&[u8]], limit: usize) -> Vec<Owned> {
    let mut lines = Lines::new(limit);
    let mut all = Vec::new();
    for piece in pieces {
        lines.push(piece);
        while let Some((number, line)) = lines.next() {
            all.push((number, line.map(<[u8]>::to_vec)));
        }
    }
    lines.finish();
    while let Some((number, line)) = lines.next() {
        all.push((number, line.map(<[u8]>::to_vec)));
    }
    all
}

#[test]
fn blank_lines_are_counted_and_skipped() {
    assert_eq!(
        split(&[b"{}\r\n\r\n  \n[]\nlast"], 64),
        [(1, Ok(b"{}".to_vec())), (4, Ok(b"[]".to_vec())), (5, Ok(b"last".to_vec()))]
    );
}

#[test]
fn a_line_over_the_limit_is_reported_once_and_not_held() {
    let too_large = Err(Error::TooLarge { limit: 4 });
    assert_eq!(
        split(&[b"ok\n12345", b"6789", b"0\nyes\n123456\nend"], 4),
        [
            (1, Ok(b"ok".to_vec())),
            (2, too_large.clone()),
            (3, Ok(b"yes".to_vec())),
            (4, too_large),
            (5, Ok(b"end".to_vec()))
        ]
    );
    let mut lines = Lines::new(4);
    for _ in 0..1000 {
        lines.push(b"0123456789");
        while lines.next().is_some() {}
        assert!(lines.buffer.len() <= 20);
    }
}

proptest! {
    #[test]
    fn where_the_bytes_are_cut_does_not_matter(text in "[a-z\r\n ]{0,60}", cut in 1usize..7, limit in 1usize..9) {
        let whole = split(&[text.as_bytes()], limit);
        let pieces: Vec<&[u8]> = text.as_bytes().chunks(cut).collect();
        prop_assert_eq!(split(&pieces, limit), whole);
    }
}
