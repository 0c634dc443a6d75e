//! `banister rules`: every rule that `check` knows, for people and as JSON.

use std::io::Write;

use anyhow::Result;
use banister_events::event::Protocol;
use banister_events::finding::{Binds, Rule, all_rules};
use banister_events::text::nearest;
use serde_json::{Value, json};

/// What `banister rules` takes.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct RulesArgs {
    /// Show the rules of one protocol: aaep, agui or aep
    #[arg(long, value_name = "PROTOCOL")]
    pub(crate) protocol: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Show one rule in full
    pub(crate) code: Option<String>,
}

/// Lists the rules. Returns the exit code: 0, or 2 where a protocol or code is not known.
pub(crate) fn run(args: &RulesArgs, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8> {
    let protocol = match args.protocol.as_deref().map(protocol).transpose() {
        Ok(protocol) => protocol,
        Err(message) => {
            writeln!(err, "error: {message}")?;
            return Ok(2);
        }
    };
    let mut rules = all_rules();
    rules.retain(|(of, _)| protocol.is_none_or(|protocol| *of == protocol));
    if let Some(code) = &args.code {
        rules.retain(|(_, rule)| rule.code.eq_ignore_ascii_case(code));
        if rules.is_empty() {
            let message = match find(code) {
                Ok(rule) => format!("{} belongs to another protocol", rule.code),
                Err(message) => message,
            };
            writeln!(err, "error: {message}")?;
            return Ok(2);
        }
    }
    if args.json {
        let rules: Vec<Value> = rules.iter().map(|(of, rule)| as_json(*of, rule)).collect();
        writeln!(out, "{}", json!({"schema": "banister.rules/v1", "rules": rules}))?;
    } else if args.code.is_some() {
        for (of, rule) in rules {
            details(out, of, rule)?;
        }
    } else {
        table(out, &rules)?;
    }
    Ok(0)
}

/// The protocol of this name, or what is wrong with the name.
pub(crate) fn protocol(name: &str) -> Result<Protocol, String> {
    Protocol::parse(name).ok_or_else(|| {
        let known: Vec<&str> = Protocol::ALL.into_iter().map(Protocol::name).collect();
        format!("unknown protocol {name:?}; known are {}", known.join(", "))
    })
}

/// The rule with this code, or what is wrong with the code.
pub(crate) fn find(code: &str) -> Result<&'static Rule, String> {
    let rules = all_rules();
    if let Some((_, rule)) = rules.iter().find(|(_, rule)| rule.code.eq_ignore_ascii_case(code)) {
        return Ok(rule);
    }
    let wanted = code.to_ascii_uppercase();
    let hint = did_you_mean(&wanted, rules.iter().map(|(_, rule)| rule.code));
    let coverage = if is_requirement(&wanted) {
        " (for requirements that other rules cover, see docs/reference/coverage.md)"
    } else {
        ""
    };
    Err(format!("unknown rule {code:?}{coverage}{hint}"))
}

/// Whether a code is written as the requirements of a protocol are: its name, a section, and what the section has.
fn is_requirement(code: &str) -> bool {
    let mut parts = code.split('-');
    let known = matches!(parts.next(), Some("AAEP" | "AGUI" | "AEP"));
    known && parts.next().is_some_and(|section| section.bytes().any(|byte| byte.is_ascii_digit()))
}

/// The name that was probably meant, as the end of a sentence; nothing where none is near.
pub(crate) fn did_you_mean<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> String {
    nearest(wanted, names).map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

fn as_json(of: Protocol, rule: &Rule) -> Value {
    json!({
        "protocol": of,
        "code": rule.code,
        "severity": rule.severity,
        "opt_in": rule.opt_in,
        "binds": rule.binds,
        "text": rule.text,
        "remedy": rule.remedy,
    })
}

fn binds(rule: &Rule) -> &'static str {
    match rule.binds {
        Binds::Producer => "producer",
        Binds::Subscriber => "subscriber",
        Binds::Both => "both",
    }
}

fn table(out: &mut dyn Write, rules: &[(Protocol, &Rule)]) -> Result<()> {
    let width = rules.iter().map(|(_, rule)| rule.code.len()).max().unwrap_or(0);
    writeln!(out, "{:width$}  {:7}  {:10}  RULE", "CODE", "LEVEL", "BINDS")?;
    for (_, rule) in rules {
        let level = if rule.opt_in { "opt-in" } else { rule.severity.name() };
        writeln!(out, "{:width$}  {level:7}  {:10}  {}", rule.code, binds(rule), rule.text)?;
    }
    Ok(())
}

fn details(out: &mut dyn Write, of: Protocol, rule: &Rule) -> Result<()> {
    writeln!(out, "{}  {}", rule.code, of.title())?;
    let opt_in = if rule.opt_in { ", opt-in: checked with --strict or --deny" } else { "" };
    writeln!(out, "level:  {}{opt_in}", rule.severity.name())?;
    writeln!(out, "binds:  {}", binds(rule))?;
    writeln!(out, "rule:   {}", rule.text)?;
    writeln!(out, "remedy: {}", rule.remedy)?;
    Ok(())
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
