//! Pictures, films, sounds and files in words: what they are, how large, where. Never their bytes.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

use super::{joined, moment, word};
use crate::locale::Locale;
use crate::text;

/// How long an address can be, in characters.
const ADDRESS_CHARS: usize = 2_048;

/// The key of the name of a kind of attachment.
pub(super) fn label(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "image" => "aep.image",
        "video" => "aep.video",
        "audio" => "aep.audio",
        "file" => "aep.file",
        _ => return None,
    })
}

/// An attachment on one line.
pub(super) fn describe(attachment: &Value, locale: &Locale) -> String {
    let number = |name: &str| attachment.get(name).and_then(Value::as_f64);
    let dimensions = match (word(attachment, "/width"), word(attachment, "/height")) {
        (Some(width), Some(height)) => Some(format!("{width} × {height}")),
        _ => None,
    };
    let place = ["url", "data_uri", "src", "thumbnail_url", "thumbnail_data_uri"]
        .into_iter()
        .find_map(|name| attachment.get(name).and_then(Value::as_str))
        .or_else(|| attachment.as_str())
        .filter(|place| !place.is_empty());
    let told = joined([
        word(attachment, "/name"),
        word(attachment, "/mime_type"),
        number("size_bytes").map(size),
        dimensions,
        number("duration_ms").and_then(moment::duration),
        place.map(|place| address(place, locale)),
    ]);
    if told.is_empty() { locale.say("aep.no_details", &[]) } else { told }
}

/// Where something is. A data URI is told by its size.
pub(super) fn address(place: &str, locale: &Locale) -> String {
    let trimmed = place.trim_start();
    match trimmed.split_at_checked(5) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("data:") => {
            let (head, data) = rest.split_once(',').unwrap_or(("", rest));
            embedded(head, data, locale)
        }
        _ => text::one_line(&text::for_people(place, ADDRESS_CHARS)),
    }
}

/// Text with the data URIs in it told by their size.
pub(super) fn fold<'a>(said: &'a str, locale: &Locale) -> Cow<'a, str> {
    static DATA_URI: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"(?i)\bdata:([a-z0-9!#$&^_.+/=;-]*;base64),([a-z0-9+/=_%-]*)").ok()
    });
    match &*DATA_URI {
        Some(pattern) => pattern.replace_all(said, |found: &Captures<'_>| {
            let group = |place| found.get(place).map_or("", |group| group.as_str());
            format!("[{}]", embedded(group(1), group(2), locale))
        }),
        None => Cow::Borrowed(said),
    }
}

fn embedded(head: &str, data: &str, locale: &Locale) -> String {
    let is_base64 =
        head.rsplit(';').next().is_some_and(|last| last.trim().eq_ignore_ascii_case("base64"));
    let escapes = data.matches('%').count();
    let letters = data.len().saturating_sub(2 * escapes);
    let bytes = if is_base64 {
        let padding = data.len() - data.trim_end_matches('=').len();
        (letters.saturating_sub(padding)) * 3 / 4
    } else {
        letters
    };
    locale.say("aep.embedded", &[("count", &bytes.to_string())])
}

/// A number of bytes, readable.
fn size(bytes: f64) -> String {
    let units = ["kB", "MB", "GB", "TB"];
    if bytes < 1000.0 {
        return format!("{bytes} B");
    }
    let (mut amount, mut unit) = (bytes, "B");
    for larger in units {
        if amount < 1000.0 {
            break;
        }
        (amount, unit) = (amount / 1000.0, larger);
    }
    format!("{amount:.1} {unit}")
}
