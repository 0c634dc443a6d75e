use banister_events::activity::{Decision, Gate};
use serde_json::json;

use super::*;
use crate::examples::{Tried, action};
use crate::rule::{ExampleKind, RuleExample};

fn packs() -> impl Iterator<Item = Rules> {
    Pack::ALL.into_iter().map(|pack| Rules::load(&Layers { pack, ..Layers::default() }).unwrap())
}

fn evaluate(rules: &Rules, command: &str) -> Gate {
    let action = action("Bash", None, &json!({ "command": command }));
    crate::evaluate(rules, &rules.read(&ActionRequest::example(&action)))
}

#[test]
fn every_rule_of_a_pack_has_examples_both_ways_that_hold() {
    for rules in packs() {
        assert!(rules.rules().count() >= 40);
        for rule in rules.describe() {
            assert!(!rule.matching.is_empty() && !rule.not_matching.is_empty(), "{}", rule.id);
        }
        let failed: Vec<Tried> = rules.try_examples().filter(|tried| !tried.holds()).collect();
        assert!(failed.is_empty(), "{}: {failed:#?}", rules.pack());
    }
}

#[test]
fn an_example_of_a_pack_gets_at_least_its_own_decision() {
    for rules in packs() {
        for (rule, RuleOrigin { draft, .. }) in rules.with_origins() {
            if draft.example_tool().1 != ExampleKind::Command {
                continue;
            }
            for example in &draft.matching {
                let RuleExample::Text(command) = &example.value else {
                    continue;
                };
                let gate = evaluate(&rules, command);
                // What another rule asks or denies is asked or denied, but an allow must be worth something.
                if rule.decision == Decision::Allow {
                    // The strict pack is there to stop what others let pass.
                    let passes =
                        gate.decision == Decision::Allow || gate.rule.starts_with("pack.strict.");
                    assert!(passes, "{command} is stopped by {} in {}", gate.rule, rules.pack());
                } else {
                    // Two packs lift some of what others ask.
                    let stopped = gate.decision >= rule.decision
                        || ["pack.permissive.", "pack.ci."]
                            .iter()
                            .any(|own| gate.rule.starts_with(own));
                    assert!(stopped, "{command} passes by {}", gate.rule);
                }
            }
        }
    }
}

#[test]
fn reasons_are_sentences() {
    for rule in packs().flat_map(|rules| {
        rules.rules().map(|rule| (rule.id.clone(), rule.reason.clone())).collect::<Vec<_>>()
    }) {
        assert!(rule.1.ends_with('.'), "{rule:?}");
        assert!(rule.1.chars().next().is_some_and(char::is_uppercase), "{rule:?}");
    }
}

#[test]
fn what_asks_or_denies_names_something_safer() {
    for rules in packs() {
        for rule in rules.describe().filter(|rule| rule.decision != Decision::Allow) {
            assert!(rule.safer.is_some(), "{}", rule.id);
        }
    }
}

#[test]
fn ids_are_distinct_across_the_rule_files() {
    let ids = Pack::known_ids().unwrap();
    let distinct: std::collections::BTreeSet<&String> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len());
}

#[test]
fn a_pack_is_found_by_its_name() {
    for pack in Pack::ALL {
        assert_eq!(pack.to_string().parse(), Ok(pack));
        assert!(pack.summary().unwrap().ends_with('.'));
    }
    assert_eq!(
        "lax".parse::<Pack>().unwrap_err().to_string(),
        "there is no pack `lax`, there are `default`, `strict`, `permissive` and `ci`"
    );
}

#[test]
fn the_hash_names_the_rules() {
    let builtin = Rules::builtin().unwrap();
    assert_eq!(builtin.hash().len(), 64);
    assert_eq!(builtin.hash(), Rules::builtin().unwrap().hash());
    let user = Rules::with_user("mine", "schema: banister.policy/v1\nrules: []\n").unwrap();
    let other = Rules::with_user("mine", "schema: banister.policy/v1\nrules: []\n# x\n").unwrap();
    assert_ne!(builtin.hash(), user.hash());
    assert_ne!(user.hash(), other.hash());
    let source = Some(RuleSource { name: "mine", text: "schema: banister.policy/v1\nrules: []\n" });
    let org = Rules::load(&Layers { org: source, ..Layers::default() }).unwrap();
    assert_ne!(user.hash(), org.hash());
    let hashes: std::collections::BTreeSet<String> =
        packs().map(|rules| rules.hash().to_owned()).collect();
    assert_eq!(hashes.len(), Pack::ALL.len());
}
