use super::*;

/// Fills a window with a text in pieces of a size; gives the place of an offset when its piece has been read.
fn place(text: &[u8], size: usize, offset: usize, measure: Measure) -> Place {
    let mut window = Window::default();
    let mut read = 0;
    for piece in text.chunks(size) {
        window.space()[..piece.len()].copy_from_slice(piece);
        window.filled(piece.len());
        assert_eq!(window.piece(), piece);
        read += piece.len();
        if read > offset {
            break;
        }
    }
    let line = text[..offset].split(|byte| *byte == b'\n').count() as u64;
    window.place(frame::Place { line, offset: offset as u64 }, measure)
}

#[test]
fn columns_count_characters_whatever_the_pieces() {
    let text = "日本\n{\"a\":\"ü\"},{}\n\n  {}".as_bytes();
    for size in [1, 2, 3, 5, 7, 100] {
        for (offset, column) in [(0, 1), (3, 2), (7, 1), (17, 10), (18, 11), (22, 1), (24, 3)] {
            let found = place(text, size, offset, Measure::Plain);
            assert_eq!((found.column, found.offset), (column, offset as u64), "{size} {offset}");
        }
    }
}

#[test]
fn a_byte_order_mark_is_no_column() {
    let text = "\u{feff}{}\n{}".as_bytes();
    assert_eq!(place(text, 100, 3, Measure::Plain).column, 1);
    assert_eq!(place(text, 100, 6, Measure::Plain).column, 1);
}

#[test]
fn the_data_of_an_event_stands_behind_its_name() {
    let text = b"id: 1\ndata: {}\n\ndata:{}\n\n";
    let with_space = place(text, 100, 6, Measure::Sse);
    assert_eq!(with_space, Place { line: 2, column: 7, offset: 12, indent: 6 });
    let without = place(text, 100, 16, Measure::Sse);
    assert_eq!(without, Place { line: 4, column: 6, offset: 21, indent: 5 });
}

#[test]
fn a_place_too_long_ago_is_no_trouble() {
    let mut window = Window::default();
    for _ in 0..3 {
        window.space();
        window.filled(10);
    }
    let at = frame::Place { line: 1, offset: 0 };
    assert_eq!(window.place(at, Measure::Plain).column, 1);
    assert_eq!(window.place(at, Measure::Sse).column, 7);
}

#[test]
fn what_stands_beside_a_message_is_told_whatever_the_pieces() {
    let text = "\u{feff}[{},\r\n {\"a\":1}, {}\r\n]".as_bytes();
    let around = |size: usize, line: u64, offset: u64, bytes: usize| {
        let mut window = Window::default();
        for piece in text.chunks(size) {
            window.space()[..piece.len()].copy_from_slice(piece);
            window.filled(piece.len());
        }
        let found = window.around(frame::Place { line, offset }, bytes, Measure::Plain);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(found.before), text(found.after))
    };
    for size in [text.len(), 20] {
        assert_eq!(around(size, 1, 4, 2), ("[".to_owned(), ",".to_owned()));
        assert_eq!(around(size, 2, 10, 7), (" ".to_owned(), ", {}".to_owned()));
        assert_eq!(around(size, 2, 19, 2), (" {\"a\":1}, ".to_owned(), String::new()));
    }
    assert_eq!(around(3, 1, 4, 2), (String::new(), String::new()), "too long ago");
}
