//! Where in a rule file something stands.
//!
//! The reader of YAML knows where values are, not where the keys of a rule are that is wrong as a whole. So the lines of
//! the rule are looked through for the key. This serves messages only.

use serde_saphyr::Location;

/// A line and a column, from 1; 0 where it is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextPosition {
    pub(crate) line: u64,
    pub(crate) column: u64,
}

impl From<Location> for TextPosition {
    fn from(at: Location) -> Self {
        Self { line: at.line(), column: at.column() }
    }
}

/// Where a key of the rule stands that has something at `near`; else `near` itself.
pub(crate) fn key(text: &str, near: TextPosition, key: &str) -> TextPosition {
    item(text, near.line).find_map(|(line, content)| at(line, content, key)).unwrap_or(near)
}

/// Where a key stands at the top of a file.
pub(crate) fn top(text: &str, key: &str) -> TextPosition {
    numbered(text)
        .find_map(|(line, content)| at(line, content, key))
        .unwrap_or(TextPosition { line: 1, column: 1 })
}

/// The id of the rule that has something in this line.
pub(crate) fn rule(text: &str, line: u64) -> Option<String> {
    item(text, line).find_map(|(number, content)| {
        let position = at(number, content, "id")?;
        let rest = content.get(usize::try_from(position.column).ok()? + 2..)?;
        let id = rest.trim().split([',', '}', '#', ' ']).next()?.trim_matches(['"', '\'']);
        (!id.is_empty()).then(|| id.to_owned())
    })
}

fn at(line: u64, content: &str, key: &str) -> Option<TextPosition> {
    let column = content.match_indices(key).find_map(|(at, _)| {
        let before = content.get(..at)?.trim_end_matches(['"', '\'']);
        let after = content.get(at + key.len()..)?.trim_start_matches(['"', '\'']);
        let starts = before.is_empty() || before.ends_with([' ', '{', ',']);
        (starts && after.starts_with(':')).then_some(at + 1)
    })?;
    Some(TextPosition { line, column: column as u64 })
}

fn numbered(text: &str) -> impl Iterator<Item = (u64, &str)> {
    (1..).zip(text.lines())
}

/// The lines of the rule that a line belongs to.
fn item(text: &str, line: u64) -> impl Iterator<Item = (u64, &str)> {
    let indent = |content: &str| content.len() - content.trim_start().len();
    let listed = |content: &&str| content.trim_start().starts_with("- ");
    let first =
        text.lines().skip_while(|content| !content.starts_with("rules:")).find(listed).map(indent);
    let starts = move |content: &str| listed(&content) && Some(indent(content)) == first;
    let from = numbered(text)
        .take_while(|(number, _)| *number <= line)
        .filter(|(_, content)| starts(content))
        .last()
        .map(|(number, _)| number);
    numbered(text)
        .skip_while(move |(number, _)| from.is_none_or(|from| *number < from))
        .take_while(move |(number, content)| Some(*number) == from || !starts(content))
}
