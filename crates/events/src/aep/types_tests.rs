use std::collections::HashSet;

use super::*;
use crate::locale::Locale;

fn rows() -> BTreeMap<String, Row> {
    serde_saphyr::from_str(TABLE_YAML).expect("types.yaml can be read")
}

#[test]
fn the_table_has_one_row_per_variant_and_no_other() {
    let mut expected: Vec<&str> = Type::ALL.into_iter().map(Type::key).collect();
    expected.sort_unstable();
    assert_eq!(rows().keys().collect::<Vec<_>>(), expected);
}

#[test]
fn all_is_in_the_order_of_the_variants_because_rows_are_found_by_position() {
    for (position, kind) in Type::ALL.into_iter().enumerate() {
        assert_eq!(kind as usize, position);
        assert_eq!(kind.name(), rows()[kind.key()].name);
    }
}

#[test]
fn every_spelling_means_one_type() {
    let mut seen = HashSet::new();
    for kind in Type::ALL {
        assert!(seen.insert(kind.name()), "{} is there twice", kind.name());
        assert_eq!(Type::parse(kind.name()), Some(kind));
        assert_eq!(Type::from_alias(kind.name()), Some(kind));
        for alias in kind.aliases() {
            assert!(seen.insert(alias), "{alias} is there twice");
            assert_eq!(Type::parse(alias), None, "{alias} is read, never canonical");
            assert_eq!(Type::from_alias(alias), Some(kind));
        }
    }
    for unknown in ["", "future.thing", "Session.Start", "session.start ", "SessionStart"] {
        assert_eq!(Type::from_alias(unknown), None, "{unknown:?}");
    }
}

#[test]
fn names_are_two_lower_case_words_and_families_have_their_sizes() {
    for kind in Type::ALL {
        let (noun, word) = kind.name().split_once('.').expect("one dot");
        for part in [noun, word] {
            assert!(
                !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase()),
                "{part}"
            );
        }
    }
    let size = |family| Type::ALL.into_iter().filter(|kind| kind.family() == family).count();
    assert_eq!(Family::ALL.map(size), [5, 5, 4, 4, 3]);
    let confirmed = Type::ALL.iter().filter(|kind| kind.confidence() == Confidence::Confirmed);
    assert!(confirmed.count() >= 12, "a name that was confirmed stays so");
}

#[test]
fn actions_are_the_family_of_actions() {
    for kind in Type::ALL {
        assert_eq!(kind.is_action(), kind.family() == Family::Actions, "{kind:?}");
        assert_eq!(
            kind.ends_action(),
            kind.is_action() && kind != Type::ActionRequested,
            "{kind:?}"
        );
    }
}

#[test]
fn content_is_demanded_where_the_protocol_demands_it() {
    assert_eq!(Type::ModelDelta.content(), ["response", "thought"]);
    assert_eq!(Type::QuestionAnswered.content(), ["answer"]);
    assert_eq!(Type::ActionRequested.content(), [""; 0]);
    let demanding = Type::ALL.into_iter().filter(|kind| !kind.content().is_empty()).count();
    assert_eq!(demanding, 8);
}

#[test]
fn every_label_is_in_every_language() {
    for tag in Locale::tags() {
        let locale = Locale::choose([tag]);
        for kind in Type::ALL {
            assert!(locale.sentences().contains_key(kind.label()), "{tag}: {}", kind.label());
        }
    }
}

#[test]
fn a_corrected_name_is_one_change_and_a_broken_table_leaves_the_keys() {
    let name = Type::AgentStop.name();
    let corrected = TABLE_YAML.replace(&format!("name: {name},"), "name: agent.corrected,");
    let corrected = Table::read(&corrected);
    assert_eq!(corrected.names.find("agent.corrected"), Some(Type::AgentStop));
    assert_eq!(corrected.names.find(name), None);

    for broken in ["", "][", "SessionStart: 7", &TABLE_YAML.replace("[prompt]", "[promt]")] {
        let table = Table::read(broken);
        assert_eq!(table.rows.len(), Type::ALL.len());
        assert!(table.rows.iter().all(Option::is_none), "{broken}");
        assert_eq!(table.names.find("AgentStop"), Some(Type::AgentStop));
    }
}
