//! Languages: tags that are well-formed but name none, and text fields with a language behind their name.
//!
//! No list of languages is kept: two or three letters are taken for one. What other fields end in is not.

use super::ODD_LANGUAGE;
use super::seen::Seen;
use crate::aaep::event::{self, HUMAN_TEXT, Type};
use crate::check::shape::quote;
use crate::finding::Finding;
use crate::json::View;

/// What names end in that say what a field holds. Some are languages, too, but hardly anybody writes in them here.
const NO_LANGUAGES: [&str; 13] =
    ["id", "key", "len", "max", "md", "min", "ms", "num", "raw", "ref", "txt", "uri", "url"];

/// The text field that a field is in another language, as `summary_normal_yo` is of `summary_normal` (§11.5.1).
pub(super) fn localized(name: &str) -> Option<&'static str> {
    let is_tag = |field: &str| {
        let tag = name.strip_prefix(field).and_then(|rest| rest.strip_prefix('_'));
        tag.is_some_and(|tag| {
            let primary = tag.split(['_', '-']).next().unwrap_or_default();
            // There is no id and no number of a summary: this is Indonesian, or Malay.
            let summary = field.starts_with("summary_") && matches!(primary, "id" | "ms");
            matches!(primary.len(), 2 | 3)
                && (summary || !NO_LANGUAGES.contains(&primary))
                && event::is_language(&tag.replace('_', "-"))
        })
    };
    // Hardly any field begins like one: the first letter tells most apart.
    let first = name.as_bytes().first();
    HUMAN_TEXT.iter().copied().find(|field| field.as_bytes().first() == first && is_tag(field))
}

/// Whether an event says which language its texts are in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Declared {
    Nothing,
    Language,
}

/// Says which tags of an event begin with no language, and whether it has one.
pub(super) fn of_event(
    seen: &Seen<'_>,
    kind: Option<Type>,
    findings: &mut Vec<Finding>,
) -> Declared {
    let mut declared = Declared::Nothing;
    let chunk = seen.language.filter(|_| kind == Some(Type::OutputStreaming));
    findings.extend(chunk.and_then(|tag| odd(tag, || "/language".to_owned())));
    for (name, value) in seen.localization.into_iter().flat_map(View::entries) {
        if name.is("primary_language") {
            declared = Declared::Language;
            findings.extend(odd(value, || "/localization_hints/primary_language".to_owned()));
        } else if name.is("available_languages") {
            of_list(value, "/localization_hints/available_languages", findings);
        } else if name.is("fallback_chain") {
            of_list(value, "/localization_hints/fallback_chain", findings);
        }
    }
    declared
}

/// The tags of a list that begin with no language.
pub(super) fn of_list(list: View<'_>, place: &str, findings: &mut Vec<Finding>) {
    for (index, tag) in list.items().enumerate() {
        findings.extend(odd(tag, || format!("{place}/{index}")));
    }
}

fn odd(tag: View<'_>, place: impl FnOnce() -> String) -> Option<Finding> {
    let tag = tag.as_str()?;
    let primary = tag.split('-').next().unwrap_or_default();
    let fits = match primary.len() {
        2 | 3 => true,
        1 => primary.len() < tag.len() && matches!(primary, "x" | "X" | "i" | "I"),
        _ => false,
    };
    // What is no tag at all was found by the table.
    (!fits && event::is_language(&tag))
        .then(|| ODD_LANGUAGE.at(place(), format!("{} begins with no language", quote(&tag))))
}

#[cfg(test)]
#[path = "language_tests.rs"]
mod tests;
