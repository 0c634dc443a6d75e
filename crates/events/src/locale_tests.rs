use std::collections::BTreeSet;

use super::*;

fn placeholders(text: &str) -> BTreeSet<&str> {
    text.split('{')
        .skip(1)
        .filter_map(|piece| piece.split_once('}'))
        .map(|(name, _)| name)
        .collect()
}

#[test]
fn every_language_has_the_same_sentences_with_the_same_placeholders() {
    let english = Locale::default();
    assert!(english.sentences().len() > 40, "the catalogue did not load");
    for tag in Locale::tags() {
        let locale = Locale::choose([tag]);
        assert_eq!(locale.tag, tag);
        let keys = |locale: &Locale| locale.sentences().keys().cloned().collect::<BTreeSet<_>>();
        assert_eq!(keys(&locale), keys(&english), "{tag}");
        for (key, text) in locale.sentences() {
            assert_eq!(placeholders(text), placeholders(&english.sentences()[key]), "{tag}: {key}");
        }
    }
}

#[test]
fn a_value_with_braces_is_not_filled_again() {
    assert_eq!(fill("{a} and {b}", &[("a", "{b}"), ("b", "2")]), "{b} and 2");
    assert_eq!(fill("{unknown} {", &[]), "{unknown} {");
}

#[test]
fn accept_language_goes_by_weight() {
    assert_eq!(Locale::accept("de;q=0.9, ja;q=0.8, es;q=0.1").tag, "ja");
    assert_eq!(Locale::accept("ar-EG,en;q=0.5").tag, "ar");
    assert_eq!(Locale::accept("ar-EG").direction, "rtl");
    assert_eq!(Locale::accept(";;;q=,").tag, "en");
}
