use super::*;

#[test]
fn every_level_has_its_own_stored_name_and_more_is_greater() {
    assert_eq!(Level::ALL.map(Level::as_str).join(" "), "none metadata redacted full");
    assert_eq!(Level::ALL.map(|level| Level::parse(level.as_str())), Level::ALL.map(Some));
    assert_eq!((Level::parse("Full"), Level::default()), (None, Level::Full));
    assert!(Level::ALL.is_sorted());
}
