//! Every rule that a message or a stream can break.

use std::fmt::Write;

use banister_events::event::Protocol;
use banister_events::finding::{Binds, Rule, all_rules};
use banister_gateway::{attach, ingest, pipeline};

pub(super) fn page() -> anyhow::Result<String> {
    let mut page = String::from(
        "# Findings\n\n\
         A finding is something wrong with data: the rule that was broken, the place as a JSON Pointer, a message and a \
         remedy. `banister check` reports them for a recording, `banister rules CODE` explains one, and the gateway \
         records them with what it took in. Codes are stable.\n\n\
         - **error**: the data at hand breaks a MUST. `banister check` exits with 1.\n\
         - **warning**: a SHOULD, or a MUST that the protocol's own published examples break. `--strict` makes it an error.\n\
         - **note**: worth knowing.\n\n\
         An opt-in rule is good advice that would be noise in most recordings: only `--strict` applies it.\n",
    );
    let rules = all_rules();
    for protocol in Protocol::ALL {
        let rules = rules.iter().filter(|(of, _)| *of == protocol).map(|(_, rule)| *rule);
        section(&mut page, protocol.title(), rules)?;
    }
    section(&mut page, "Hook payloads", pipeline::RULES.iter().copied())?;
    section(&mut page, "Pushed events", ingest::RULES.iter().copied())?;
    section(&mut page, "Resumed runs", attach::RULES.iter().copied())?;
    Ok(page)
}

fn section(
    page: &mut String,
    title: &str,
    rules: impl Iterator<Item = &'static Rule>,
) -> anyhow::Result<()> {
    let rules: Vec<_> = rules.collect();
    write!(page, "\n## {title}\n\n{} rules.\n", rules.len())?;
    for rule in rules {
        let binds = match rule.binds {
            Binds::Producer => "whoever emits events",
            Binds::Subscriber => "whoever receives events and answers",
            Binds::Both => "both sides",
        };
        let opt_in = if rule.opt_in { ", opt-in" } else { "" };
        write!(
            page,
            "\n### {}\n\n{}.\n\n- Severity: **{}**{opt_in}\n- Binds: {binds}\n- Remedy: {}.\n",
            rule.code,
            rule.text.trim_end_matches('.'),
            rule.severity.name(),
            rule.remedy.trim_end_matches('.'),
        )?;
    }
    Ok(())
}
