//! The rules Banister starts with, and the floor below them.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use banister_events::activity::{Action, ActionKind, Decision};
use banister_policy::{Request, Rules, evaluate};
use serde_json::{Value, json};

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
    let path = crate::root()?.join("crates/policy/packs/default.yaml");
    let yaml = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let pack: Value = serde_saphyr::from_str(&yaml).context("the pack")?;
    let rules = pack.get("rules").and_then(Value::as_array).context("the pack has no rules")?;
    let of = |decision: &'static str| {
        rules.iter().filter(move |rule| text(rule, "decision") == Some(decision))
    };
    let mut page = format!(
        "# Rules\n\n\
         What an agent wants to do is decided in this order: the floor, then every rule that denies, then every rule that \
         asks, then every rule that allows. What no rule names is asked. Examples are for an agent that works in \
         `/home/me/project`; the rules are tried on them each time they load.\n\n\
         The built-in pack has {} rules: {} deny, {} ask, {} allow.\n",
        rules.len(),
        of("deny").count(),
        of("ask").count(),
        of("allow").count(),
    );
    floor(&mut page)?;
    for (decision, title) in [("deny", "Denied"), ("ask", "Asked"), ("allow", "Allowed")] {
        if of(decision).next().is_some() {
            write!(page, "\n## {title}\n")?;
        }
        for each in of(decision) {
            rule(&mut page, each)?;
        }
    }
    Ok(page)
}

fn floor(page: &mut String) -> anyhow::Result<()> {
    page.push_str("\n## The floor\n\nNothing lifts these: no rule, no grant, no answer.\n");
    let rules = Rules::builtin()?;
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
            &rules,
            &Request {
                agent: "claude",
                action: &action,
                cwd: Some("/home/me/project"),
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

fn rule(page: &mut String, rule: &Value) -> anyhow::Result<()> {
    let id = text(rule, "id").context("a rule has no id")?;
    write!(page, "\n### {id}\n\n{}\n\n", text(rule, "reason").unwrap_or_default())?;
    if let Some(risk) = text(rule, "risk") {
        let lasting = rule.get("irreversible").and_then(Value::as_bool) == Some(true);
        writeln!(page, "- Risk: {risk}{}", if lasting { ", cannot be undone" } else { "" })?;
    }
    if let Some(safer) = text(rule, "safer") {
        writeln!(page, "- Safer: {safer}")?;
    }
    for (key, name) in [("match", "For example"), ("not_match", "But not")] {
        let examples: Vec<String> =
            rule.get(key).and_then(Value::as_array).into_iter().flatten().map(example).collect();
        if !examples.is_empty() {
            writeln!(page, "- {name}: {}", examples.join(", "))?;
        }
    }
    Ok(())
}

/// A command, a path or a tool as it is; a call as its words in a row.
fn example(example: &Value) -> String {
    match example {
        Value::String(text) => code(text),
        Value::Object(call) => {
            let words: Vec<&str> = call.values().filter_map(Value::as_str).collect();
            code(&words.join(" "))
        }
        other => code(&other.to_string()),
    }
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}
