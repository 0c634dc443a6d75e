use banister_events::finding::all_rules;

use super::*;

fn spot<'a>(message: &'a str, pointer: &str, place: Place) -> (u64, u64, Option<u64>, &'a str) {
    let (_, rule) = all_rules()[0];
    let around = Around::default();
    let source = Source { place, message: message.as_bytes(), around: &around };
    let spot = Spot::new(source, &rule.at(pointer, "wrong"));
    (spot.line, spot.column, spot.offset, message.get(spot.start..spot.end).unwrap())
}

#[test]
fn a_pointer_becomes_a_line_a_column_and_an_offset() {
    let place = Place { line: 7, column: 3, offset: 100, indent: 0 };
    let message = "{\"ü\":1,\n \"b\":[2,\"x\"]}";
    assert_eq!(spot(message, "/ü", place), (7, 8, Some(106), "1"));
    assert_eq!(spot(message, "/b/1", place), (8, 9, Some(117), "\"x\""));
    assert_eq!(spot(message, "", place), (7, 3, Some(100), message));
    assert_eq!(spot("{\"a\":{}}", "/a/missing", place), (7, 8, Some(105), "{}"));
}

#[test]
fn where_json_ends_is_where_the_finding_points() {
    assert_eq!(spot("{\"a\": oops}", "", Place::FIRST), (1, 7, Some(6), "o"));
    assert_eq!(spot("{\"a\":", "", Place::FIRST), (1, 6, Some(5), ""));
    assert_eq!(spot("", "/a", Place::FIRST), (1, 1, Some(0), ""));
}

#[test]
fn a_message_on_several_data_lines_has_no_offset_of_its_own() {
    let place = Place { line: 4, column: 7, offset: 50, indent: 6 };
    assert_eq!(spot("{\"a\":1,\n\"b\":2}", "/a", place), (4, 12, Some(55), "1"));
    assert_eq!(spot("{\"a\":1,\n\"b\":2}", "/b", place), (5, 11, None, "2"));
}

#[test]
fn the_line_is_shown_with_what_stands_beside_the_message() {
    let (_, rule) = all_rules()[0];
    let line = |message: &str, pointer: &str, indent: u64, around: &Around| {
        let place = Place { line: 2, column: 1, offset: 9, indent };
        let source = Source { place, message: message.as_bytes(), around };
        let (line, value) = Spot::new(source, &rule.at(pointer, "wrong")).line();
        let line = String::from_utf8(line).unwrap();
        let value = line.get(value).unwrap().to_owned();
        (line, value)
    };
    let element = Around { before: b"  {},".to_vec(), after: b", {}".to_vec() };
    assert_eq!(line("{\"a\":1}", "/a", 0, &element), ("  {},{\"a\":1}, {}".into(), "1".into()));
    let lines = "{\"a\":1,\n\"b\":2}";
    assert_eq!(line(lines, "/a", 0, &element), ("  {},{\"a\":1,".into(), "1".into()));
    assert_eq!(line(lines, "/b", 0, &element), ("\"b\":2}, {}".into(), "2".into()));
    let event = Around { before: b"data:".to_vec(), after: Vec::new() };
    assert_eq!(line(lines, "/a", 5, &event), ("data:{\"a\":1,".into(), "1".into()));
    assert_eq!(line(lines, "/b", 5, &event), ("data:\"b\":2}".into(), "2".into()));
    let long = format!("{{\"x\":\"{}\",\"a\":1,\"y\":\"{}\"}}", "x".repeat(9000), "y".repeat(9000));
    let (shown, value) = line(&long, "/a", 0, &element);
    assert_eq!((shown.len(), value.as_str()), (2 * NEAR, "1"));
}
