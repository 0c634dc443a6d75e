use banister_events::activity::Decision;
use banister_policy::{Error, Rules};

use super::{shell, tool};

fn load(rules: &str) -> Result<Rules, Error> {
    Rules::with_user("mine.yaml", &format!("schema: banister.policy/v1\nrules:\n{rules}"))
}

/// The message, with the place in front.
fn message(yaml: &str) -> String {
    Rules::with_user("mine.yaml", yaml).unwrap_err().to_string()
}

#[test]
fn an_unknown_key_is_pointed_at_with_the_nearest_one() {
    let yaml = "schema: banister.policy/v1\nrules:\n  - id: a\n    desicion: ask\n    reason: X.\n    risk: low\n";
    assert_eq!(
        message(yaml),
        "mine.yaml:4:5: rule `a`: unknown key `desicion`; did you mean `decision`?"
    );
}

#[test]
fn an_unknown_key_at_the_top_is_pointed_at() {
    let yaml = "schema: banister.policy/v1\nrulez: []\n";
    assert_eq!(message(yaml), "mine.yaml:2:1: unknown key `rulez`; did you mean `rules`?");
}

#[test]
fn a_key_given_twice_is_pointed_at() {
    let yaml = "schema: banister.policy/v1\nrules:\n  - id: a\n    decision: ask\n    decision: allow\n    reason: X.\n    risk: low\n";
    assert_eq!(
        message(yaml),
        "mine.yaml:5:5: rule `a`: the key `decision` is given twice; leave one of them out"
    );
}

#[test]
fn booleans_are_true_and_false_only() {
    let yaml = "schema: banister.policy/v1\nrules:\n  - id: a\n    decision: ask\n    argv: [[x]]\n    reason: X.\n    risk: low\n    irreversible: yes\n";
    assert!(message(yaml).starts_with("mine.yaml:8:19: "), "{}", message(yaml));
}

#[test]
fn a_failing_example_is_pointed_at() {
    let yaml = "schema: banister.policy/v1\nrules:\n  - id: a\n    decision: allow\n    argv: [[make, x]]\n    reason: X.\n    risk: low\n    match: [make x, make y]\n";
    let error = Rules::with_user("mine.yaml", yaml).unwrap_err();
    assert_eq!(
        error,
        Error::Example {
            name: "mine.yaml".to_owned(),
            line: 8,
            column: 21,
            rule: "a".to_owned(),
            example: "make y".to_owned(),
            should_match: true,
        }
    );
    assert_eq!(error.to_string(), "mine.yaml:8:21: rule `a` does not match its example: `make y`");
    let yaml = yaml.replace("match: [make x, make y]", "not_match: [make x]");
    assert_eq!(
        message(&yaml),
        "mine.yaml:8:17: rule `a` matches what it says it does not match: `make x`"
    );
}

#[test]
fn rules_that_mean_less_than_they_say_do_not_load() {
    let rule = |body: &str| {
        load(&format!("  - id: a\n    reason: X.\n    risk: low\n    {body}\n"))
            .unwrap_err()
            .to_string()
    };
    for (body, place, told) in [
        ("decision: ask", "3:5", "it needs at least one of"),
        ("{decision: ask, argv: [[]]}", "6:5", "simple key"),
        ("decision: ask\n    argv: [[]]", "7:5", "name at least the program"),
        ("decision: ask\n    argv: [[x]]\n    exact: true", "8:5", "a rule that asks"),
        ("decision: allow\n    argv: [[x]]\n    with_flags: [-f]", "8:5", "use `only_flags`"),
        ("decision: allow\n    tool: [read]\n    only_flags: [-f]", "8:5", "need `argv`"),
        ("decision: allow\n    tool: [read]\n    path: [src]", "8:12", "write `./src`"),
        ("decision: allow\n    tool: [read]\n    path: [./../x]", "8:12", "no `..`"),
        ("decision: allow\n    argv: [[{regex: '('}]]", "7:5", "the pattern `(`"),
        ("decision: alow\n    argv: [[x]]", "6:15", "did you mean `allow`?"),
        ("decision: perhaps\n    argv: [[x]]", "6:15", "known are `allow`, `ask`, `deny`"),
        ("decision: ask\n    argv: [[x]]\n    lifts: [pack.git.push]", "8:5", "only a rule that"),
        ("decision: allow\n    tool: [shell]\n    lifts: [pack.git.push]", "8:5", "too wide"),
        ("decision: ask\n    argv: [[x]]\n    liftable: true", "8:5", "of the organisation"),
    ] {
        let message = rule(body);
        assert!(message.contains(told), "{body}: {message}");
        assert!(message.starts_with(&format!("mine.yaml:{place}: ")), "{body}: {message}");
        assert!(message.contains("rule `a`: "), "{message}");
    }
}

#[test]
fn rules_given_twice_other_schemas_and_long_files_do_not_load() {
    let one = "  - {id: a, decision: ask, argv: [[x]], reason: X., risk: low}\n";
    let error = load(&format!("{one}{one}")).unwrap_err().to_string();
    assert_eq!(error, "mine.yaml:4:10: the rule `a` is given twice; give one of them another id");
    let error = message("schema: banister.policy/v2\nrules: []\n");
    assert!(error.starts_with("mine.yaml:1:9: the schema"), "{error}");
    let long = format!("schema: banister.policy/v1\nrules: []\n#{}", "x".repeat(1 << 20));
    assert!(matches!(
        Rules::with_user("mine.yaml", &long),
        Err(Error::TooLong { limit: 1_048_576, .. })
    ));
    assert!(Rules::with_user("mine.yaml", "").is_err());
    assert!(Rules::with_user("mine.yaml", "rules: [").is_err());
}

#[test]
fn a_users_ask_and_deny_always_count() {
    let rules = load(
        "  - {id: no-tests, decision: deny, argv: [[cargo, test]], reason: Not now., risk: low}\n\
         \x20 - {id: ask-ls, decision: ask, argv: [[ls]], reason: Why., risk: low}\n\
         \x20 - {id: ls, argv: [[ls], [cargo, test]], decision: allow, reason: Mine., risk: low}\n",
    )
    .unwrap();
    assert_eq!(shell(&rules, "cargo test").rule, "user.no-tests");
    assert_eq!(shell(&rules, "ls && cargo test").decision, Decision::Deny);
    assert_eq!(shell(&rules, "ls").rule, "user.ask-ls");
}

#[test]
fn a_users_allow_by_path_lets_the_shell_write_there() {
    let rules =
        load("  - {id: out, tool: [write], path: [~/out/**], decision: allow, reason: Mine., risk: low}\n").unwrap();
    assert_eq!(shell(&rules, "ls > ~/out/list.txt").decision, Decision::Allow);
    assert_eq!(shell(&rules, "ls > ~/list.txt").rule, "redirect");
    assert_eq!(shell(&rules, "cd .. && ls > out/../list.txt").rule, "redirect");
}

#[test]
fn agents_servers_and_native_names_narrow_a_rule() {
    let rules = load(
        "  - {id: gh, decision: allow, tool: [list_issues], server: [github], reason: R., risk: low}\n\
         \x20 - {id: codex, decision: deny, agent: [codex], tool: [shell], reason: R., risk: low}\n\
         \x20 - {id: fetch, decision: allow, tool: [WebFetch], lifts: [pack.web], reason: R., risk: low}\n",
    )
    .unwrap();
    assert_eq!(shell(&rules, "ls").decision, Decision::Allow);
    assert_eq!(tool(&rules, "list_issues", serde_json::json!({})).decision, Decision::Ask);
    assert_eq!(tool(&rules, "WebFetch", serde_json::json!({})).rule, "user.fetch");
    assert_eq!(tool(&rules, "WebSearch", serde_json::json!({})).rule, "pack.web");
}
