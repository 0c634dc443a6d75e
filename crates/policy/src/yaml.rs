//! YAML, read the strict way: unknown and repeated keys are errors, with line and column.

pub(crate) mod position;

use banister_events::text::nearest;
use position::TextPosition;
use serde::de::DeserializeOwned;
use serde_saphyr::{DuplicateKeyPolicy, Location, MergeKeyPolicy};

use crate::error::{Error, RuleFault};

/// The longest file that is read, in bytes.
const MAX_FILE: usize = 1024 * 1024;

/// Reads a file; `name` is for messages.
pub(crate) fn parse<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, Error> {
    if text.len() > MAX_FILE {
        return Err(Error::TooLong { name: name.to_owned(), length: text.len(), limit: MAX_FILE });
    }
    let options = serde_saphyr::options! {
        strict_booleans: true,
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let at = error.location().unwrap_or(Location::UNKNOWN);
        let meant = |wrong: &str, known: &[&'static str]| {
            nearest(wrong, known.iter().copied()).map(|name| format!("did you mean `{name}`?"))
        };
        let (message, remedy) = match error.without_snippet() {
            serde_saphyr::Error::SerdeUnknownField { field, expected, .. } => {
                (format!("unknown key `{field}`"), meant(field, expected))
            }
            serde_saphyr::Error::SerdeUnknownVariant { variant, expected, .. } => {
                let known: Vec<String> = expected.iter().map(|name| format!("`{name}`")).collect();
                let known = format!("known are {}", known.join(", "));
                let remedy = meant(variant, expected).unwrap_or(known);
                (format!("`{variant}` is not known here"), Some(remedy))
            }
            serde_saphyr::Error::SerdeMissingField { field, .. } => {
                (format!("the key `{field}` is missing"), None)
            }
            serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. } => {
                let remedy = "leave one of them out".to_owned();
                (format!("the key `{key}` is given twice"), Some(remedy))
            }
            other => (other.to_string(), None),
        };
        fault(name, at.into(), position::rule(text, at.line()), message, remedy)
    })
}

/// An error that says where.
pub(crate) fn fault(
    name: &str,
    at: TextPosition,
    rule: Option<String>,
    message: impl Into<String>,
    remedy: Option<String>,
) -> Error {
    Error::Invalid(Box::new(RuleFault {
        name: name.to_owned(),
        line: at.line,
        column: at.column,
        rule,
        message: message.into(),
        remedy,
    }))
}
