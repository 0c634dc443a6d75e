//! The display styles, each as plain text.

use std::borrow::Cow;

use serde_json::Value;

use super::{VALUE_CHARS, json, media, moment};
use crate::locale::Locale;
use crate::text;

macro_rules! styles {
    ($($variant:ident = $name:literal, $doc:literal;)*) => {
        /// How a producer would like a value to be shown.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Style {
            $(#[doc = $doc] $variant,)*
        }

        impl Style {
            /// All styles, in the order documents list them.
            pub const ALL: [Self; 12] = [$(Self::$variant),*];

            /// The name on the wire.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The style with this name.
            ///
            /// ```
            /// use banister_events::aep::show::Style;
            /// assert_eq!(Style::parse("key_value"), Some(Style::KeyValue));
            /// assert_eq!(Style::parse("sparkling"), None);
            /// ```
            pub fn parse(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

styles! {
    PlainText = "plain_text", "As it is.";
    Markdown = "markdown", "Text with marks; they stay, because they read well as text.";
    IndentedJson = "indented_json", "A structure, indented.";
    KeyValue = "key_value", "An object, a line for each of its keys.";
    Path = "path", "Where a file is.";
    Url = "url", "Where something is on the web.";
    Image = "image", "A picture: what it is and where, not its bytes.";
    Video = "video", "A film: what it is and where, not its bytes.";
    Audio = "audio", "A sound: what it is and where, not its bytes.";
    Badge = "badge", "A word that says a state.";
    Duration = "duration", "Milliseconds, readable.";
    Timestamp = "timestamp", "A point in time, in UTC.";
}

/// A value as lines. No line is empty unless the text has an empty line there; no value gives no line.
pub(super) fn render(value: &Value, style: Option<Style>, locale: &Locale) -> Vec<String> {
    let whole = match value {
        Value::String(said) => string(said, style, locale),
        Value::Number(_) => number(value, style),
        Value::Bool(_) | Value::Null if style == Some(Style::Badge) => badge(&value.to_string()),
        Value::Bool(_) | Value::Null => value.to_string(),
        Value::Array(items) => list(value, items, style, locale),
        Value::Object(_) => match style {
            Some(Style::KeyValue) => json::key_value(value),
            Some(Style::Image | Style::Video | Style::Audio) => media::describe(value, locale),
            _ => json::indented(value),
        },
    };
    // What joins letters and emoji belongs to prose; anywhere else it would hide something.
    let reveal = if style == Some(Style::Markdown) { text::prose } else { text::visible };
    split(&whole, reveal, locale)
}

fn string(said: &str, style: Option<Style>, locale: &Locale) -> String {
    let clean = |said: &str| text::redact(said).into_owned();
    match style {
        Some(Style::Path) => text::one_line(&clean(said)),
        Some(Style::Url | Style::Image | Style::Video | Style::Audio) => {
            media::address(said, locale)
        }
        Some(Style::Badge) => badge(said),
        Some(Style::Duration) => {
            said.trim().parse().ok().and_then(moment::duration).unwrap_or_else(|| clean(said))
        }
        Some(Style::Timestamp) => moment::of_text(said).unwrap_or_else(|| clean(said)),
        Some(Style::PlainText | Style::Markdown) | None => clean(&media::fold(said, locale)),
        Some(Style::IndentedJson | Style::KeyValue) => clean(said),
    }
}

fn number(value: &Value, style: Option<Style>) -> String {
    let shown = match style {
        Some(Style::Duration) => value.as_f64().and_then(moment::duration),
        Some(Style::Timestamp) => value.as_f64().and_then(moment::of_epoch),
        Some(Style::Badge) => Some(badge(&value.to_string())),
        _ => None,
    };
    shown.unwrap_or_else(|| value.to_string())
}

fn badge(word: &str) -> String {
    format!("[{}]", text::one_line(&text::redact(word)))
}

/// A list of words is one word per line; a list with structure in it is JSON.
fn list(value: &Value, items: &[Value], style: Option<Style>, locale: &Locale) -> String {
    let is_media = matches!(style, Some(Style::Image | Style::Video | Style::Audio));
    let is_flat = items.iter().all(|item| !item.is_array() && (is_media || !item.is_object()));
    match style {
        Some(Style::KeyValue) => json::key_value(value),
        Some(style) if style != Style::IndentedJson && is_flat && !items.is_empty() => {
            let mut whole = String::new();
            for item in items {
                if whole.len() > VALUE_CHARS * 4 {
                    break;
                }
                for line in render(item, Some(style), locale) {
                    whole.push_str(&line);
                    whole.push('\n');
                }
            }
            whole
        }
        _ => json::indented(value),
    }
}

/// Cuts what is too long, and says so; shows what is hidden.
fn split(whole: &str, reveal: fn(&str) -> Cow<'_, str>, locale: &Locale) -> Vec<String> {
    let whole = whole.replace("\r\n", "\n");
    let kept = match whole.char_indices().nth(VALUE_CHARS) {
        Some((end, _)) => whole.get(..end).unwrap_or_default(),
        None => &whole,
    };
    let mut lines: Vec<String> =
        reveal(kept.trim_end_matches('\n')).split('\n').map(str::to_owned).collect();
    if kept.len() < whole.len() {
        lines.push(locale.say("aep.cut", &[]));
    }
    lines
}
