//! The rules Banister starts with, and the floor below them.

use std::fmt::Write;

use anyhow::ensure;
use banister_events::activity::{Action, Decision};
use banister_policy::{ActionRequest, Described, Layers, Pack, Rules, evaluate};
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

/// Verdicts that no rule of a file gives, and when.
const OTHERS: [(&str, &str); 5] = [
    ("none", "no rule speaks about it"),
    ("opaque", "not everything it does could be read, and no rule denied or asked by itself"),
    ("redirect", "the shell writes a file outside the project, or one that takes effect by itself"),
    ("decoded", "a shell runs what was decoded before, whatever that is"),
    ("environment", "a variable is set that can change what programs do"),
];

pub(super) fn page() -> anyhow::Result<String> {
    let packs: Vec<Rules> = Pack::ALL
        .into_iter()
        .map(|pack| Rules::load(&Layers { pack, ..Layers::default() }))
        .collect::<Result<_, _>>()?;
    let described: Vec<Vec<Described<'_>>> =
        packs.iter().map(|rules| rules.describe().collect()).collect();
    // Each rule once, in the order of the files.
    let mut all: Vec<&Described<'_>> = Vec::new();
    for rule in described.iter().flatten() {
        if !all.iter().any(|known| known.id == rule.id) {
            all.push(rule);
        }
    }
    let mut page = format!(
        "# Rules\n\n\
         What an agent wants to do is decided in this order: the floor, then every rule that denies, then every rule that \
         asks, then every rule that allows. What no rule names is asked. [Write rules](../guides/rules.md) says how layers \
         come together and how rules are written. Examples are for an agent that works in `/home/me/project`.\n\n\
         ## Packs\n\n\
         The packs share {} rules. `pack` in `config.toml` says which one counts.\n\n\
         | pack | | rules | deny | ask | allow |\n|---|---|---:|---:|---:|---:|\n",
        all.len(),
    );
    for (rules, described) in packs.iter().zip(&described) {
        let of =
            |decision: Decision| described.iter().filter(move |rule| rule.decision == decision);
        writeln!(
            page,
            "| `{}` | {} | {} | {} | {} | {} |",
            rules.pack(),
            rules.pack().summary()?,
            described.len(),
            of(Decision::Deny).count(),
            of(Decision::Ask).count(),
            of(Decision::Allow).count(),
        )?;
    }
    page.push_str("\nIn `ci` an ask is a deny.\n");
    if let Some(rules) = packs.first() {
        floor(&mut page, rules)?;
    }
    page.push_str("\n## Without a rule\n\nThese are asked. They have no rule in a file.\n\n| name | when |\n|---|---|\n");
    for (name, when) in OTHERS {
        writeln!(page, "| `{name}` | {when} |")?;
    }
    page.push_str("\n## Every rule\n\n| rule |");
    for pack in Pack::ALL {
        write!(page, " {pack} |")?;
    }
    page.push_str("\n|---|---|---|---|---|\n");
    for rule in &all {
        write!(page, "| [`{}`](#{}) |", rule.id, anchor(rule.id))?;
        for (rules, described) in packs.iter().zip(&described) {
            let here = described.iter().find(|here| here.id == rule.id);
            let said = match here.map(|here| here.decision) {
                Some(Decision::Ask) if rules.denies_asks() => "deny",
                Some(decision) => decision.name(),
                None => "–",
            };
            write!(page, " {said} |")?;
        }
        page.push('\n');
    }
    for (decision, title) in
        [(Decision::Deny, "Denied"), (Decision::Ask, "Asked"), (Decision::Allow, "Allowed")]
    {
        write!(page, "\n## {title}\n")?;
        for each in all.iter().filter(|rule| rule.decision == decision) {
            rule(&mut page, each)?;
        }
    }
    Ok(page)
}

/// What a heading's address is made of.
fn anchor(heading: &str) -> String {
    heading.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-' || *c == '_').collect()
}

fn floor(page: &mut String, rules: &Rules) -> anyhow::Result<()> {
    page.push_str("\n## The floor\n\nNothing lifts these: no rule, no grant, no answer.\n");
    for (id, command) in FLOOR {
        let mut action = Action::unseen("example", "Bash");
        action.input = Some(json!({ "command": command }));
        let gate = evaluate(rules, &rules.read(&ActionRequest::example(&action)));
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
    if !rule.lifts.is_empty() {
        let lifted: Vec<String> = rule.lifts.iter().map(|id| code(id)).collect();
        writeln!(page, "- Lifts: {}", lifted.join(", "))?;
    }
    for (examples, name) in [(&rule.matching, "For example"), (&rule.not_matching, "But not")] {
        let examples: Vec<String> = examples.iter().map(|example| code(example)).collect();
        if !examples.is_empty() {
            writeln!(page, "- {name}: {}", examples.join(", "))?;
        }
    }
    Ok(())
}
