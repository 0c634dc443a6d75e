//! The coding agents that are known: what their hooks become, and how they are answered.

use std::fmt::Write;

use anyhow::Context;
use banister_events::aep::dialect::{Behavior, Control};
use banister_events::aep::mapping::{Agents, Mapping};
use serde_json::Value;

use super::{cell, code};

const BEHAVIORS: [Behavior; 8] = [
    Behavior::Allow,
    Behavior::Deny,
    Behavior::Ask,
    Behavior::Defer,
    Behavior::Block,
    Behavior::Continue,
    Behavior::Stop,
    Behavior::Abstain,
];

pub(super) fn page() -> anyhow::Result<String> {
    let agents = Agents::builtin()?;
    let mut page = String::from(
        "# Coding agents\n\n\
         Each agent is one file under `crates/events/agents/`: what its hooks become, and how it is answered. Both of its \
         names are accepted everywhere.\n\n\
         | agent | install name | AEP slug | hooks that wait for a decision |\n|---|---|---|---|\n",
    );
    for agent in agents.iter() {
        let gated: Vec<String> = agent.gated_hooks().iter().map(|hook| code(hook)).collect();
        let gated = if gated.is_empty() { "none".to_owned() } else { gated.join(", ") };
        let Mapping { name, agent: slug, display_name, .. } = agent;
        writeln!(page, "| {} | `{name}` | `{slug}` | {gated} |", cell(display_name))?;
    }
    for agent in agents.iter() {
        write!(page, "\n## {}\n", agent.display_name)?;
        events(&mut page, agent)?;
        for (hook, control) in agent.hooks() {
            answers(&mut page, agent, hook, control)?;
        }
    }
    Ok(page)
}

/// Which events each hook becomes, from the file.
fn events(page: &mut String, agent: &Mapping) -> anyhow::Result<()> {
    let path = crate::root()?.join("crates/events/agents").join(format!("{}.yaml", agent.name));
    let yaml = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let file: Value = serde_saphyr::from_str(&yaml).context("the mapping file")?;
    let gated = agent.gated_hooks();
    let mut rows: Vec<(&str, Vec<&str>)> = Vec::new();
    for rule in file.get("events").and_then(Value::as_array).into_iter().flatten() {
        let hook = text(rule, "source_event").context("a rule has no source_event")?;
        let emitted = rule.get("emit").and_then(Value::as_array).into_iter().flatten();
        let kinds =
            std::iter::once(rule).chain(emitted).filter_map(|body| text(body, "canonical_event"));
        if !rows.iter().any(|(known, _)| *known == hook) {
            rows.push((hook, Vec::new()));
        }
        if let Some((_, known)) = rows.iter_mut().find(|(known, _)| *known == hook) {
            for kind in kinds {
                if !known.contains(&kind) {
                    known.push(kind);
                }
            }
        }
    }
    page.push_str("\n| hook | becomes | waits for a decision |\n|---|---|---|\n");
    for (hook, kinds) in rows {
        let kinds: Vec<String> = kinds.into_iter().map(code).collect();
        let waits = if gated.contains(&hook) { "yes" } else { "no" };
        writeln!(page, "| {} | {} | {waits} |", code(hook), kinds.join(", "))?;
    }
    Ok(())
}

fn answers(
    page: &mut String,
    agent: &Mapping,
    hook: &str,
    control: &Control,
) -> anyhow::Result<()> {
    let of = match hook {
        "*" => "Any other hook".to_owned(),
        hook => code(hook),
    };
    write!(page, "\n### {}: {of}\n\n", agent.display_name)?;
    if let Some(deadline) = control.deadline_ms {
        writeln!(page, "The hook waits at most {} s.\n", seconds(deadline))?;
    }
    page.push_str("| decision | exit | stdout | stderr |\n|---|---|---|---|\n");
    for behavior in BEHAVIORS {
        let Some(template) = control.answers.get(&behavior) else { continue };
        row(page, behavior.name(), &template.fill("REASON"))?;
    }
    if let Some(fallback) = &control.fallback {
        row(page, "no gateway", &fallback.fill("REASON"))?;
    }
    Ok(())
}

fn row(
    page: &mut String,
    name: &str,
    answer: &banister_events::aep::dialect::Answer,
) -> anyhow::Result<()> {
    let shown = |text: &str| match text.trim_end() {
        "" => "nothing".to_owned(),
        text => cell(&code(text)),
    };
    let (stdout, stderr) = (shown(&answer.stdout), shown(&answer.stderr));
    writeln!(page, "| {name} | {} | {stdout} | {stderr} |", answer.exit)?;
    Ok(())
}

fn seconds(milliseconds: u64) -> String {
    let (whole, rest) = (milliseconds / 1_000, milliseconds % 1_000);
    if rest == 0 {
        whole.to_string()
    } else {
        format!("{whole}.{rest:03}").trim_end_matches('0').to_owned()
    }
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn milliseconds_read_as_seconds() {
        assert_eq!([290_000, 1_200, 50].map(seconds), ["290", "1.2", "0.05"]);
    }
}
