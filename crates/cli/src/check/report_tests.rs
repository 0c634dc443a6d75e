use banister_events::finding::all_rules;

use super::*;

fn spot<'a>(message: &'a str, pointer: &str, place: Place) -> (u64, u64, Option<u64>, &'a str) {
    let (_, rule) = all_rules()[0];
    let spot = Spot::new(place, message.as_bytes(), &rule.at(pointer, "wrong"));
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
