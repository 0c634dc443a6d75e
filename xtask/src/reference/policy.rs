//! The rules Banister starts with, and the floor below them.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::ensure;
use banister_events::activity::{Action, ActionKind, Decision};
use banister_policy::{Described, Request, Rules, evaluate};
use serde_json::json;

use super::code;

/// The floor is code, so it is asked: a rule, and a command that falls below it.
const FLOOR: [(&str, &str); 5] = [
    ("floor.wipe-root", "rm -rf /"),
    ("floor.wipe-home", "rm -rf ~"),
    ("floor.raw-disk", "dd if=image.iso of=/dev/sda"),
    ("floor.fork-bomb", ":(){ :|:& };:"),
    ("floor.banister-files", "cat ~/.config/banister/policy.yaml"),
];

pub(super) fn page() -> anyhow::Result<String> {
    let rules = Rules::builtin()?;
    let described: Vec<Described<'_>> = rules.describe().collect();
    let of = |decision: Decision| described.iter().filter(move |rule| rule.decision == decision);
    let mut page = format!(
        "# Rules\n\n\
         What an agent wants to do is decided in this order: the floor, then every rule that denies, then every rule that \
         asks, then every rule that allows. What no rule names is asked. Examples are for an agent that works in \
         `/home/me/project`.\n\n\
         The built-in pack has {} rules: {} deny, {} ask, {} allow.\n",
        described.len(),
        of(Decision::Deny).count(),
        of(Decision::Ask).count(),
        of(Decision::Allow).count(),
    );
    floor(&mut page, &rules)?;
    for (decision, title) in
        [(Decision::Deny, "Denied"), (Decision::Ask, "Asked"), (Decision::Allow, "Allowed")]
    {
        if of(decision).next().is_some() {
            write!(page, "\n## {title}\n")?;
        }
        for each in of(decision) {
            rule(&mut page, each)?;
        }
    }
    Ok(page)
}

fn floor(page: &mut String, rules: &Rules) -> anyhow::Result<()> {
    page.push_str("\n## The floor\n\nNothing lifts these: no rule, no grant, no answer.\n");
    for (id, command) in FLOOR {
        let action = Action {
            id: "example".to_owned(),
            kind: ActionKind::Tool,
            tool: "Bash".to_owned(),
            server: None,
            original_name: None,
            input: Some(json!({ "command": command })),
            rationale: None,
        };
        let gate = evaluate(
            rules,
            &Request {
                agent: "claude",
                action: &action,
                cwd: Some("/home/me/project"),
                project: None,
                home: Some("/home/me"),
                own: &[PathBuf::from("/home/me/.config/banister")],
                links: &[],
            },
        );
        let (rule, decision) = (&gate.rule, gate.decision);
        ensure!(
            decision == Decision::Deny && rule == id,
            "{command:?} should fall below {id}, and {rule} said {}",
            decision.name()
        );
        write!(page, "\n### {id}\n\n{}\n\n- Risk: {}\n", gate.reason, gate.risk.name())?;
        if let Some(safer) = &gate.safer {
            writeln!(page, "- Safer: {safer}")?;
        }
        writeln!(page, "- For example: {}", code(command))?;
    }
    Ok(())
}

fn rule(page: &mut String, rule: &Described<'_>) -> anyhow::Result<()> {
    write!(page, "\n### {}\n\n{}\n\n", rule.id, rule.reason)?;
    if let Some(risk) = rule.risk {
        let lasting = if rule.irreversible == Some(true) { ", cannot be undone" } else { "" };
        writeln!(page, "- Risk: {}{lasting}", risk.name())?;
    }
    if let Some(safer) = rule.safer {
        writeln!(page, "- Safer: {safer}")?;
    }
    for (examples, name) in [(&rule.matching, "For example"), (&rule.not_matching, "But not")] {
        let examples: Vec<String> = examples.iter().map(|example| code(example)).collect();
        if !examples.is_empty() {
            writeln!(page, "- {name}: {}", examples.join(", "))?;
        }
    }
    Ok(())
}
