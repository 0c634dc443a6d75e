//! `docs/reference/`: the pages that are written from the code, so that they cannot lag behind it.
//!
//! What is written depends on the code alone: no time, no machine, no terminal.

use std::path::PathBuf;

use anyhow::{Context, bail};

mod agents;
mod cli;
mod coverage;
mod findings;
mod locales;
mod policy;
mod translation;

const NOTE: &str = "<!-- Written by `cargo xtask gen`: change the code, not this page. -->";

/// One page: its name and how it is made.
type Page = (&'static str, fn() -> anyhow::Result<String>);

const PAGES: [Page; 7] = [
    ("agents.md", agents::page),
    ("cli.md", cli::page),
    ("coverage.md", coverage::page),
    ("findings.md", findings::page),
    ("locales.md", locales::page),
    ("policy.md", policy::page),
    ("translation.md", translation::page),
];

/// Writes every page that is not as it should be.
pub(crate) fn write() -> anyhow::Result<()> {
    for (path, text) in stale()? {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
        crate::say(&format!("gen: wrote {}", shown(&path)?));
    }
    Ok(())
}

/// Fails where a page is not what the code says.
pub(crate) fn check() -> anyhow::Result<()> {
    let stale = stale()?;
    if stale.is_empty() {
        crate::say(&format!("gen: {} pages are up to date", PAGES.len()));
        return Ok(());
    }
    let names: Vec<String> =
        stale.iter().map(|(path, _)| shown(path)).collect::<anyhow::Result<_>>()?;
    bail!("these pages are stale; run `cargo xtask gen`:\n  {}", names.join("\n  "));
}

fn stale() -> anyhow::Result<Vec<(PathBuf, String)>> {
    let folder = crate::root()?.join("docs/reference");
    let mut stale = Vec::new();
    for (name, make) in PAGES {
        let text = format!("{NOTE}\n\n{}\n", make().with_context(|| name.to_owned())?.trim_end());
        let path = folder.join(name);
        if std::fs::read_to_string(&path).ok().as_deref() != Some(text.as_str()) {
            stale.push((path, text));
        }
    }
    let (path, text) = translation::data()?;
    if std::fs::read_to_string(&path).ok().as_deref() != Some(text.as_str()) {
        stale.push((path, text));
    }
    Ok(stale)
}

fn shown(path: &std::path::Path) -> anyhow::Result<String> {
    Ok(path.strip_prefix(crate::root()?)?.display().to_string())
}

/// A text as inline code, whatever backquotes it holds.
fn code(text: &str) -> String {
    let text = text.replace(['\n', '\r'], "⏎");
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let edge = text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) || text.is_empty();
    let pad = if edge { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// A text inside a table's cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::{cell, code};

    #[test]
    fn inline_code_outlasts_the_backquotes_in_it() {
        assert_eq!(code("a"), "`a`");
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(code("``x"), "``` ``x ```");
        assert_eq!(code("two\nlines"), "`two⏎lines`");
        assert_eq!(code(""), "`  `");
    }

    #[test]
    fn a_bar_does_not_end_a_cell() {
        assert_eq!(cell("a | b\nc"), "a \\| b c");
    }
}
