//! The coding agents that are known: what their hooks become, and how they are answered.

use std::fmt::Write;

use banister_events::aep::dialect::{Behavior, Control};
use banister_events::aep::mapping::{Agents, Mapping};

use super::{cell, code};

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

/// Which events each hook becomes.
fn events(page: &mut String, agent: &Mapping) -> anyhow::Result<()> {
    page.push_str("\n| hook | becomes | waits for a decision |\n|---|---|---|\n");
    for row in agent.rows() {
        let kinds: Vec<String> = row.events.iter().copied().map(code).collect();
        let kinds = if kinds.is_empty() { "nothing".to_owned() } else { kinds.join(", ") };
        let waits = if row.gated { "yes" } else { "no" };
        writeln!(page, "| {} | {kinds} | {waits} |", code(row.hook))?;
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
    for behavior in Behavior::ALL {
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

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn milliseconds_read_as_seconds() {
        assert_eq!([290_000, 1_200, 50].map(seconds), ["290", "1.2", "0.05"]);
    }
}
