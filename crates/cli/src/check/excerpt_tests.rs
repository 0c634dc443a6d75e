use super::*;

/// Puts the mark around what it marks.
fn marked(message: &str, value: &str) -> String {
    let start = message.find(value).unwrap();
    let shown = excerpt(message.as_bytes(), start, start + value.len());
    let mut text = String::new();
    let mut column = 0;
    for character in shown.text.chars() {
        if column == shown.indent {
            text.push('>');
        }
        if column == shown.indent + shown.width {
            text.push('<');
        }
        text.push(character);
        column += columns(character);
    }
    if column == shown.indent + shown.width {
        text.push('<');
    }
    text
}

#[test]
fn a_short_line_is_shown_whole_with_the_value_marked() {
    assert_eq!(marked(r#"{"a":12,"b":3}"#, "12"), r#"{"a":>12<,"b":3}"#);
    assert_eq!(marked(r#"{"a":12}"#, r#"{"a":12}"#), r#">{"a":12}<"#);
}

#[test]
fn a_long_line_is_cut_on_both_sides_and_stays_narrow() {
    let long =
        format!("{{\"a\":\"{}\",\"here\":7,\"b\":\"{}\"}}", "x".repeat(500), "y".repeat(500));
    let text = marked(&long, "7");
    assert!(text.starts_with("…xxx") && text.ends_with("yyy…"), "{text}");
    assert!(text.contains("\"here\":>7<,"), "{text}");
    assert_eq!(text.chars().count(), WIDTH + "…>7<…".chars().count() - 1);
}

#[test]
fn a_line_that_fits_is_not_cut_wherever_the_mark_stands() {
    let line = format!("{{\"a\":\"{}\",\"here\":7}}", "x".repeat(65));
    let text = marked(&line, "7");
    assert!(text.starts_with("{\"a\"") && text.ends_with(":>7<}"), "{text}");
}

#[test]
fn wide_combining_and_hidden_characters_do_not_misplace_the_mark() {
    for before in
        ["日本語", "🚀🚀", "e\u{301}e\u{301}", "\u{202e}\u{200b}\u{1b}", "\t\t", "ünïcode"]
    {
        let text = marked(&format!("{{\"{before}\":\"value\"}}"), "\"value\"");
        assert!(text.contains(":>\"value\"<}"), "{text}");
        assert!(!text.contains(['\u{202e}', '\u{200b}', '\u{1b}', '\t']), "{text:?}");
    }
}

#[test]
fn bytes_that_are_no_text_are_shown_by_their_number() {
    let shown = excerpt(b"{\"a\":\"\xff\xfe\"}", 5, 9);
    assert_eq!(shown, Excerpt { text: "{\"a\":\"⟨FF⟩⟨FE⟩\"}".into(), indent: 5, width: 10 });
    let cut = excerpt(b"{\"a\":\"\xe6\x97", 6, 7);
    assert_eq!((cut.text.as_str(), cut.width), ("{\"a\":\"⟨E6⟩⟨97⟩", 4));
}

#[test]
fn of_a_value_on_several_lines_the_first_is_shown() {
    let message = "{\n  \"a\": {\n    \"b\": 1\n  }\n}";
    assert_eq!(marked(message, "{\n    \"b\": 1\n  }"), "  \"a\": >{<");
    assert_eq!(marked(message, "1"), "    \"b\": >1<");
}

#[test]
fn a_large_object_is_marked_at_its_bracket() {
    let message = format!("{{\"a\":{{\"b\":\"{}\"}}}}", "x".repeat(60));
    let shown = excerpt(message.as_bytes(), 5, message.len() - 1);
    assert_eq!((shown.indent, shown.width), (5, 1));
}

#[test]
fn places_outside_the_message_are_no_trouble() {
    for (start, end) in [(0, 0), (3, 3), (3, 2), (9, 12), (usize::MAX, usize::MAX)] {
        assert!(excerpt(b"{}\n", start, end).width >= 1);
        assert!(excerpt(b"", start, end).width >= 1);
    }
}
