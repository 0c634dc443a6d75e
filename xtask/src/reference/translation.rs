//! What every type of event becomes in the other protocols: measured on the examples under `conformance/translation/`.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::Context;
use banister_events::event::Protocol;
use banister_events::translate::table::{Fate, Row, Table};
use banister_events::translate::{Example, measure};

use super::code;

/// The table as data, which the loss report of `banister translate` is made from.
pub(super) fn data() -> anyhow::Result<(PathBuf, String)> {
    let path = crate::root()?.join("crates/events/translation.json");
    Ok((path, format!("{:#}\n", serde_json::to_value(table()?)?)))
}

fn table() -> anyhow::Result<Table> {
    let mut table = Table::default();
    for protocol in Protocol::ALL {
        let name = format!("conformance/translation/{protocol}.yaml");
        let path = crate::root()?.join(&name);
        let yaml = std::fs::read_to_string(&path).with_context(|| name.clone())?;
        let examples: Vec<Example> = serde_saphyr::from_str(&yaml).context(name)?;
        table.0.extend(measure(protocol, &examples).0);
    }
    Ok(table)
}

pub(super) fn page() -> anyhow::Result<String> {
    let table = table()?;
    let mut page = String::from(
        "# What becomes of what\n\n\
         Every type of event, and what `banister translate` makes of it. This table is measured, not claimed: an example \
         of each type, with every field that it knows, is translated there and back again. Every row is an example under \
         `conformance/translation/`, and a test holds the code to it.\n\n\
         - **carried**: the value comes back unchanged when the translation is taken back, and so does any other value in \
         its place. Where the other protocol has no field for it, it travels in Banister's own extension field; \
         `--bare` leaves those out.\n\
         - **derived**: what it says is told, in another form.\n\
         - **lost**: it leaves no trace. `banister translate` says so, with the number of times.\n\n\
         Texts that people read are redacted and bounded on the way: then what is carried is what is left of them.\n",
    );
    summary(&mut page, &table)?;
    for from in Protocol::ALL {
        write!(page, "\n## {}\n", from.title())?;
        for (kind, rows) in table.types(from) {
            write!(page, "\n### {} {}\n\n", from.title(), code(kind))?;
            page.push_str("| in | becomes | carried | derived | lost |\n|---|---|---|---|---|\n");
            for (to, row) in rows {
                line(&mut page, *to, row)?;
            }
        }
    }
    Ok(page)
}

/// How much of each protocol's fields comes through, as counts.
fn summary(page: &mut String, table: &Table) -> anyhow::Result<()> {
    page.push_str(
        "\n| from | to | types | fields carried | derived | lost |\n|---|---|---|---|---|---|\n",
    );
    for from in Protocol::ALL {
        for to in Protocol::ALL.into_iter().filter(|to| *to != from) {
            let rows: Vec<&Row> = table.types(from).filter_map(|(_, rows)| rows.get(&to)).collect();
            let count = |fate| {
                rows.iter().flat_map(|row| row.fields.values()).filter(|it| **it == fate).count()
            };
            let [carried, derived, lost] = [Fate::Carried, Fate::Derived, Fate::Lost].map(count);
            let (from, to) = (from.title(), to.title());
            writeln!(page, "| {from} | {to} | {} | {carried} | {derived} | {lost} |", rows.len())?;
        }
    }
    Ok(())
}

fn line(page: &mut String, to: Protocol, row: &Row) -> anyhow::Result<()> {
    let fields = |fate| {
        let fields: Vec<String> = row
            .fields
            .iter()
            .filter(|(_, it)| **it == fate)
            .map(|(path, _)| code(path.trim_start_matches('/')))
            .collect();
        if fields.is_empty() { "–".to_owned() } else { fields.join(" ") }
    };
    let becomes: Vec<String> = row.becomes.iter().map(|kind| code(kind)).collect();
    let becomes = if becomes.is_empty() { "nothing".to_owned() } else { becomes.join(" ") };
    writeln!(
        page,
        "| {} | {becomes} | {} | {} | {} |",
        to.title(),
        fields(Fate::Carried),
        fields(Fate::Derived),
        fields(Fate::Lost)
    )?;
    Ok(())
}
