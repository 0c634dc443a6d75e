use proptest::prelude::*;

use super::*;

/// Whether it is an id that AAEP allows.
fn is_id(id: &str) -> bool {
    conform(EVENT, id) == id
}

fn time(milliseconds: i64) -> Timestamp {
    Timestamp::from_millisecond(milliseconds).unwrap()
}

#[test]
fn an_id_that_is_none_of_ours_is_no_reference() {
    let session = derive("s_", &["one"]);
    let id = EventRef::new(&session, 10, time(1_800_000_000_000), 1).to_string();
    assert!(EventRef::parse(&id).is_some());
    let other = [
        String::new(),
        "evt_".to_owned(),
        derive("evt_", &["one"]),
        id.to_uppercase(),
        id.replace("an1", "0an1"),
        id.replace("an1", "+an1"),
        id.replace("an1", "an+1"),
        id.replace("an1", "an"),
        format!("{id}m"),
        format!("{id}m123456"),
        format!("{id}m1234567m1234567"),
        format!("{id} "),
        id.replace("evt_", "evt_é"),
        "evt_".to_owned() + &"é".repeat(40),
    ];
    for other in other {
        assert_eq!(EventRef::parse(&other), None, "{other}");
    }
}

#[test]
fn the_time_tells_records_of_other_journals_apart() {
    let event = EventRef::new("s_1", 1, time(1_800_000_000_000), 0);
    assert!(event.is_of(time(1_800_000_000_000)));
    for other in [1, 60_000, 3_600_000, 1 << 28] {
        assert!(!event.is_of(time(1_800_000_000_000 + other)), "{other}");
    }
}

proptest! {
    #[test]
    fn every_id_leads_back_and_has_the_shape_of_the_protocol(
        session in "[a-z0-9_]{1,40}",
        milliseconds in 0_i64..4_000_000_000_000,
        (seq, n) in (any::<u64>(), any::<u32>()),
        (later, m) in (0_u64..1 << 40, 0_u32..4_096),
    ) {
        let session = derive("s_", &[&session]);
        let event = EventRef::new(&session, seq, time(milliseconds), n);
        let id = event.to_string();
        prop_assert!(is_id(&id), "{}", id);
        prop_assert_eq!(event.session(), session.clone());
        prop_assert_eq!(EventRef::parse(&id), Some(event));
        let later = EventRef::new(&session, later, time(milliseconds), m);
        let both = merged(&id, &later.to_string());
        prop_assert!(is_id(&both), "{}", both);
        prop_assert_ne!(&both, &later.to_string());
        prop_assert_eq!(EventRef::parse(&both), Some(EventRef { merged: true, ..later }));
        // However often it is merged.
        let third = merged(&both, &id);
        prop_assert!(is_id(&third), "{}", third);
    }
}

#[test]
fn numbers_are_written_as_others_write_them() {
    for number in [0, 1, 9, 10, 99, 100, 12_345, u64::from(u32::MAX), u64::MAX] {
        assert_eq!(Decimal::of(number).as_str(), number.to_string());
    }
}

#[test]
fn an_id_is_the_same_however_much_it_is_derived_from() {
    for length in [0, 1, 100, 183, 184, 185, 192, 193, 1_000] {
        let long = "x".repeat(length);
        let mut hash = Sha256::new();
        for part in ["a", &long, "b"] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        let whole = hex(&hash.finalize());
        assert_eq!(derive("p_", &["a", &long, "b"]), format!("p_{}", whole.get(..32).unwrap()));
    }
}
