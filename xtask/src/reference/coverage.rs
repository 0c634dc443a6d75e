//! Every rule of the three protocols, with the code that checks it or the reason why no stream can show it.
//!
//! The rows are data, `conformance/coverage/*.yaml`. That every code in them exists and none is missing is tested
//! with the rules themselves.

use std::fmt::Write;

use anyhow::{Context, bail};
use banister_events::event::Protocol;
use serde_json::Value;

use super::{cell, code};

pub(super) fn page() -> anyhow::Result<String> {
    let mut page = String::from(
        "# What is checked\n\n\
         Every rule of the three protocols, one row each: the codes that check it, or the reason why no recording can \
         show whether it was kept. A recording may hold both directions: events, the handshake, replies, hook \
         responses. The codes are explained in [Rules of the protocols](findings.md). AEP and AG-UI \
         number their rules nowhere, so the ids of their rows are Banister's.\n\n\
         A rule that a protocol words as a must may still be a warning here, or a note. An error says that the stream \
         itself proves the rule broken. Where a stream alone cannot prove it, because a recording may begin late, \
         leave messages out or show one side only, the finding is a warning: something to look at, not a verdict.\n",
    );
    for protocol in Protocol::ALL {
        section(&mut page, protocol)?;
    }
    Ok(page)
}

fn section(page: &mut String, protocol: Protocol) -> anyhow::Result<()> {
    let path = crate::root()?.join(format!("conformance/coverage/{}.yaml", protocol.name()));
    let yaml = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let file: Value = serde_saphyr::from_str(&yaml).context("the rows")?;
    let chapters = file.as_array().context("the file is no list of chapters")?;
    let (mut tables, mut checked, mut unseen) = (String::new(), 0, 0);
    for chapter in chapters {
        let title = text(chapter, "title")?;
        let rows = chapter.get("rows").and_then(Value::as_array).context("no rows")?;
        write!(tables, "\n### {title}\n\n| rule | says | checked by |\n|---|---|---|\n")?;
        for row in rows {
            let rule = text(row, "rule")?;
            let codes = row.get("checked_by").and_then(Value::as_array);
            let reason = row.get("not_visible").and_then(Value::as_str);
            let verdict = match (codes, reason) {
                (Some(codes), None) => {
                    checked += 1;
                    let links = links(codes).with_context(|| rule.to_owned())?;
                    match row.get("part").and_then(Value::as_str) {
                        Some(part) => format!("{links}, in part: {}", cell(part)),
                        None => links,
                    }
                }
                (None, Some(reason)) => {
                    unseen += 1;
                    format!("not visible in a stream: {}", cell(reason))
                }
                _ => bail!("{rule} needs either checked_by or not_visible"),
            };
            writeln!(tables, "| {} | {} | {verdict} |", code(rule), cell(text(row, "text")?))?;
        }
    }
    write!(
        page,
        "\n## {}\n\n{} rows, {checked} checked, {unseen} not visible.\n{tables}",
        protocol.title(),
        checked + unseen,
    )?;
    Ok(())
}

fn text<'a>(value: &'a Value, name: &str) -> anyhow::Result<&'a str> {
    value.get(name).and_then(Value::as_str).with_context(|| format!("no {name} in {value}"))
}

/// The codes, each a link to where it is explained.
fn links(codes: &[Value]) -> anyhow::Result<String> {
    let mut links = Vec::with_capacity(codes.len());
    for code in codes {
        let code = code.as_str().context("a code is no string")?;
        links.push(format!("[`{code}`](findings.md#{})", anchor(code)));
    }
    if links.is_empty() {
        bail!("no code");
    }
    Ok(links.join(", "))
}

/// The anchor that a heading of this text gets in the book.
fn anchor(heading: &str) -> String {
    heading
        .chars()
        .filter(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_' | ' '))
        .map(|letter| if letter == ' ' { '-' } else { letter.to_ascii_lowercase() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::anchor;

    #[test]
    fn an_anchor_is_what_the_book_makes_of_a_heading() {
        assert_eq!(anchor("AAEP-4.3.1-R2"), "aaep-431-r2");
        assert_eq!(anchor("AEP-SEQ-01"), "aep-seq-01");
    }
}
