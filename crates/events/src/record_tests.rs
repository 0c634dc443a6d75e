#![expect(unreachable_pub, reason = "the macros declare what others may use")]

use serde_json::{Value, json};

use super::*;
use crate::check::shape::{Kind, NAME};

record! {
    /// A lamp.
    ///
    /// More about lamps.
    pub strict Lamp = "lamp.on" {
        /// Where it
        /// hangs.
        must place: String = NAME,
        /// How bright.
        may level: u64 = Kind::Integer { min: 0, max: 9 },
        /// Its colour.
        may shade as "colour": Shade = Kind::Word(Shade::WORDS),
        /// Anything.
        may note: Value = Kind::Any,
    }

    /// A shelf.
    pub lenient Shelf {
        /// How many boards.
        may boards: u64 = Kind::Integer { min: 0, max: 9 },
        /// Anything.
        may note: Value = Kind::Any,
    }
}

words! {
    /// A colour.
    pub enum Shade {
        /// Like snow.
        White = "white",
        /// Like coal.
        Black = "black",
    }
}

fn lamp(value: Value) -> Result<Lamp, serde_json::Error> {
    serde_json::from_value(value)
}

#[test]
fn a_record_is_written_as_it_was_read() {
    for value in [
        json!({"type": "lamp.on", "place": "hall"}),
        json!({"type": "lamp.on", "place": "hall", "level": 3, "colour": "white", "note": null}),
        json!({"type": "lamp.on", "place": "hall", "colour": "puce", "z": {"y": null}, "a": [1.0]}),
    ] {
        assert_eq!(serde_json::to_value(lamp(value.clone()).unwrap()).unwrap(), value);
    }
}

#[test]
fn absent_is_not_null() {
    let read = lamp(json!({"type": "lamp.on", "place": "hall", "note": null})).unwrap();
    assert_eq!((read.note, read.level), (Some(Value::Null), None));
    let error = lamp(json!({"type": "lamp.on", "place": "hall", "level": null})).unwrap_err();
    assert_eq!(error.to_string(), "level: invalid type: null, expected u64");
}

#[test]
fn a_lenient_record_keeps_null_without_a_value() {
    let value = json!({"boards": null, "note": null});
    let shelf: Shelf = serde_json::from_value(value.clone()).unwrap();
    assert_eq!((shelf.boards, &shelf.note), (None, &Some(Value::Null)));
    assert_eq!(serde_json::to_value(shelf).unwrap(), value);
}

#[test]
fn what_cannot_be_held_is_named() {
    for (value, text) in [
        (json!({"type": "lamp.on"}), "place: missing"),
        (json!({"place": "hall"}), "type: missing"),
        (
            json!({"type": "lamp.off", "place": "hall"}),
            "type: lamp.on is expected, not \"lamp.off\"",
        ),
        (
            json!({"type": "lamp.on", "place": 1}),
            "place: invalid type: integer `1`, expected a string",
        ),
    ] {
        assert_eq!(lamp(value).unwrap_err().to_string(), text);
    }
}

#[test]
fn three_point_zero_is_three() {
    let level = |level: Value| {
        lamp(json!({"type": "lamp.on", "place": "hall", "level": level})).ok()?.level
    };
    assert_eq!(level(json!(3.0)), Some(3));
    assert_eq!(level(json!(3.5)), None);
    assert_eq!(level(json!(-3.0)), None);
    assert_eq!(level(json!(1e300)), None);
}

#[test]
fn the_table_says_what_the_declaration_says() {
    let rows: Vec<_> =
        Lamp::FIELDS.iter().map(|field| (field.name, field.required, field.about)).collect();
    assert_eq!(
        rows,
        [
            ("type", true, "Which message this is."),
            ("place", true, " Where it\n hangs.\n"),
            ("level", false, " How bright.\n"),
            ("colour", false, " Its colour.\n"),
            ("note", false, " Anything.\n"),
        ]
    );
    assert_eq!(Lamp::ABOUT, " A lamp.\n\n More about lamps.\n");
}

#[test]
fn words_outside_the_set_are_read_and_written() {
    assert_eq!(Shade::WORDS, ["white", "black"]);
    assert_eq!(Shade::ALL, [Shade::White, Shade::Black]);
    for (word, shade) in [("black", Shade::Black), ("puce", Shade::Other("puce".into()))] {
        assert_eq!((Shade::parse(word), shade.name()), (shade.clone(), word));
    }
}

#[test]
fn bytes_are_kept_and_what_is_no_json_is_told_by_its_place() {
    let bytes = br#"{"place":"hall",  "type":"lamp.on"}"#;
    let kept = Kept::<Lamp>::parse(bytes.as_slice()).unwrap();
    assert_eq!((&*kept.bytes, kept.view.place.as_str()), (bytes.as_slice(), "hall"));
    let error = Kept::<Lamp>::parse(b"{\"place\": ".as_slice()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the message is not JSON: the text ends inside a value at byte 10 of the message"
    );
}
