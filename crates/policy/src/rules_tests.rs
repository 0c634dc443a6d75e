use banister_events::activity::Gate;

use super::*;

fn pack() -> Vec<Draft> {
    File::parse(PACK_NAME, PACK).unwrap().rules
}

fn evaluate(rules: &Rules, command: &str) -> Gate {
    let action = action("Bash", None, &json!({ "command": command }));
    crate::evaluate(
        rules,
        &Request {
            agent: "claude",
            action: &action,
            cwd: Some("/home/me/project"),
            home: Some("/home/me"),
            own: &[],
            links: &[],
        },
    )
}

#[test]
fn every_rule_of_the_pack_has_examples_both_ways() {
    Rules::builtin().unwrap();
    let pack = pack();
    assert!(pack.len() >= 40);
    for draft in pack {
        assert!(!draft.matching.is_empty() && !draft.not_matching.is_empty(), "{}", draft.id.value);
    }
}

#[test]
fn an_example_of_the_pack_gets_at_least_its_own_decision() {
    let rules = Rules::builtin().unwrap();
    for (draft, rule) in pack().iter().zip(rules.rules()) {
        if draft.example_tool().1 != ExampleKind::Command {
            continue;
        }
        for example in &draft.matching {
            let Example::Text(command) = &example.value else {
                continue;
            };
            let gate = evaluate(&rules, command);
            // What another rule asks or denies is asked or denied, but an allow must be worth something.
            if rule.decision == Decision::Allow {
                assert_eq!(gate.decision, Decision::Allow, "{command} is stopped by {}", gate.rule);
            } else {
                assert!(gate.decision >= rule.decision, "{command} passes by {}", gate.rule);
            }
        }
    }
}

#[test]
fn reasons_are_sentences() {
    for rule in Rules::builtin().unwrap().rules() {
        assert!(rule.reason.ends_with('.'), "{}: {}", rule.id, rule.reason);
        assert!(rule.reason.chars().next().is_some_and(char::is_uppercase), "{}", rule.id);
    }
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
}
