use serde::Deserialize;

use super::{builtin, shell};

#[derive(Deserialize)]
struct Group {
    why: String,
    cases: Vec<(String, String, String)>,
}

#[test]
fn every_command_of_the_table_gets_its_verdict() {
    let groups: Vec<Group> = serde_saphyr::from_str(include_str!("../commands.yaml")).unwrap();
    let rules = builtin();
    let mut wrong = Vec::new();
    let mut count = 0;
    for group in &groups {
        for (command, decision, rule) in &group.cases {
            let gate = shell(&rules, command);
            if (gate.decision.name(), gate.rule.as_str()) != (decision.as_str(), rule.as_str()) {
                wrong.push(format!(
                    "{command:?}: {} by {}, not {decision} by {rule} ({})",
                    gate.decision.name(),
                    gate.rule,
                    group.why
                ));
            }
            count += 1;
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 300, "{count}");
}
