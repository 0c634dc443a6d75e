use super::*;

#[test]
fn only_languages_without_spaces_are_taken_apart() {
    assert_eq!(segmented("git status -s é ß"), "git status -s é ß");
    assert_eq!(segmented("a日本b"), "a\u{200b}日\u{200b}本\u{200b}b");
    assert_eq!(readable(&segmented("テストを3回、実行した run")), "テストを3回、実行した run");
    assert_eq!(segmented("مُحَمَّد ـ"), "محمد ");
    assert_eq!(segmented("a\u{2}b\u{3}c\u{200b}d\0e"), "a b c d e");
}

#[test]
fn a_long_text_is_cut_between_two_characters() {
    let text = "é".repeat(TEXT_BYTES);
    assert_eq!(segmented(&text).len(), TEXT_BYTES);
    let text = format!("a{text}");
    assert_eq!(segmented(&text).len(), TEXT_BYTES - 1);
}

#[test]
fn what_people_type_becomes_quoted_words() {
    let query = |text| expression(text).unwrap();
    assert_eq!(query("rm -rf"), Some(r#""rm" "-rf""#.to_owned()));
    assert_eq!(query(r#"say "two words" end"#), Some(r#""say" "two words" "end""#.to_owned()));
    assert_eq!(query(r#"a "b"#), Some(r#""a" "b""#.to_owned()));
    assert_eq!(
        query("a OR NOT (b) col:x ^c"),
        Some(r#""a" "OR" "NOT" "(b)" "col:x" "^c""#.to_owned())
    );
    assert_eq!(query("conf* *"), Some(r#""conf" *"#.to_owned()));
    assert_eq!(query(r#" -- "" " * "#), None);
    assert!(matches!(expression(&"x ".repeat(99)), Err(Error::Query { .. })));
    assert!(matches!(expression(&"x".repeat(9999)), Err(Error::Query { .. })));
}
