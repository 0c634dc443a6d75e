//! An event as lines that people read, without a word of code about any one agent.
//!
//! [`title`] is one line: who, what, with which tool. [`lines`] is the body: each field the protocol knows, in the
//! display style of [`fields`], then the content by the style its producer asks for. Both take any JSON: what is
//! missing is left out, what has the wrong type is shown as what it is, an unknown type is shown by its name and an
//! unknown style as plain text or indented JSON. Nothing fails, nothing panics.
//!
//! What comes out is safe to print: no line holds a line break, a control or a bidi character, or a credential that
//! [`crate::text`] knows. A field starts its line, and text of the agent that has more than one line is indented below
//! it, so that no text can pass for a field. Length is bounded, and what was cut says so. Data that is embedded in
//! attachments and in prose is told by its size; in an action's input and output it stays, because a person may be
//! asked to approve exactly that.
//!
//! Deliberately not here: colours, local time (times are shown in UTC), extensions and fields nobody has defined.

use serde_json::Value;

use self::fields::{Part, default_content_style};
pub use self::style::Style;
use super::event;
use super::types::Type;
use crate::locale::Locale;
use crate::text;

pub mod fields;
mod json;
mod media;
mod moment;
mod style;

/// How long one part of a title can be, in characters.
const TITLE_PART_CHARS: usize = 120;
/// How much of one value is shown, in characters.
const VALUE_CHARS: usize = 16_384;
/// How many lines are shown of one event.
pub const MOST_LINES: usize = 1_000;
/// How many bytes are shown of one event, the last line aside.
pub const MOST_BYTES: usize = 256 * 1024;

/// Who did what with which tool, on one line.
///
/// ```
/// use banister_events::aep::show;
/// use banister_events::locale::Locale;
/// use serde_json::json;
///
/// let event = json!({
///     "type": "action.requested",
///     "agent": { "slug": "newcomer" },
///     "tool": { "type": "mcp", "name": "create_issue" },
///     "server": { "name": "github" },
/// });
/// assert_eq!(show::title(&event, &Locale::default()), "newcomer · wants to run · github/create_issue");
/// assert_eq!(
///     show::title(&json!({ "type": "future.thing", "agent": { "slug": "newcomer" } }), &Locale::default()),
///     "newcomer · future.thing",
/// );
/// ```
pub fn title(event: &Value, locale: &Locale) -> String {
    if event.as_object().is_some_and(event::is_response) {
        let answer = locale.say("aep.response", &[]);
        return joined([Some(answer), word(event, "/control/behavior")]);
    }
    let agent = first(event, &["/agent/display_name", "/agent/slug"])
        .unwrap_or_else(|| locale.say("aep.unknown_agent", &[]));
    let kind = match event.get("type").and_then(Value::as_str).and_then(Type::from_alias) {
        Some(known) => locale.say(known.label(), &[]),
        None => word(event, "/type").unwrap_or_else(|| locale.say("aep.unknown_type", &[])),
    };
    joined([Some(agent), Some(kind), subject(event)])
}

/// The tool or the skill an event is about.
fn subject(event: &Value) -> Option<String> {
    let is_mcp = event.pointer("/tool/type").and_then(Value::as_str) == Some("mcp");
    if is_mcp
        && let Some(server) = word(event, "/server/name")
        && let Some(tool) = word(event, "/tool/name")
    {
        return Some(format!("{server}/{tool}"));
    }
    first(event, &["/tool/display_name", "/tool/name", "/skill/name"])
}

fn first(event: &Value, pointers: &[&str]) -> Option<String> {
    pointers.iter().find_map(|pointer| word(event, pointer))
}

/// A scalar as part of a title.
fn word(event: &Value, pointer: &str) -> Option<String> {
    let found = match event.pointer(pointer)? {
        Value::String(text) => text.trim().to_owned(),
        scalar @ (Value::Number(_) | Value::Bool(_)) => scalar.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    (!found.is_empty()).then(|| short(&found))
}

fn short(word: &str) -> String {
    text::one_line(&text::for_people(word, TITLE_PART_CHARS))
}

/// A label in the agent's words. It starts with the field it is in, so that it cannot pass for another field's.
fn foreign(field: &str, word: Option<String>) -> String {
    word.map_or_else(|| field.to_owned(), |word| format!("{field}.{word}"))
}

fn joined<const N: usize>(parts: [Option<String>; N]) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// The body of an event: what is known about it, one field after the other, most telling first.
///
/// ```
/// use banister_events::aep::show;
/// use banister_events::locale::Locale;
/// use serde_json::json;
///
/// let event = json!({
///     "type": "action.completed",
///     "agent": { "slug": "newcomer" },
///     "action": { "status": "success", "input": { "command": "cargo test" } },
///     "metrics": { "duration_ms": 83_500 },
/// });
/// assert_eq!(
///     show::lines(&event, &Locale::default()),
///     [
///         "Status: [success]",
///         "Input:",
///         "  {",
///         "    \"command\": \"cargo test\"",
///         "  }",
///         "Duration: 1 min 23.5 s",
///         "agent.slug: newcomer",
///         "Type: [action.completed]",
///     ],
/// );
/// ```
pub fn lines(event: &Value, locale: &Locale) -> Vec<String> {
    let mut body = Body { lines: Vec::new(), bytes: 0, is_full: false, locale };
    for part in fields::BODY {
        match part {
            Part::Field(field) => {
                if let Some(value) = field.of(event) {
                    body.put(&field.label(locale), style::render(value, Some(field.style), locale));
                }
            }
            Part::Content => contents(event, &mut body),
            Part::Attachments => attachments(event, &mut body),
            Part::Metrics => metrics(event, &mut body),
        }
    }
    body.lines
}

/// One value in one display style, by the name a producer gave it; `None` or an unknown name: strings as they are,
/// objects and arrays as indented JSON.
///
/// ```
/// use banister_events::aep::show;
/// use banister_events::locale::Locale;
/// use serde_json::json;
///
/// let english = Locale::default();
/// assert_eq!(show::value(&json!(4820), Some("duration"), &english), ["4.82 s"]);
/// assert_eq!(show::value(&json!("done"), Some("badge"), &english), ["[done]"]);
/// assert_eq!(show::value(&json!("as it is"), Some("sparkling"), &english), ["as it is"]);
/// ```
pub fn value(value: &Value, style: Option<&str>, locale: &Locale) -> Vec<String> {
    style::render(value, style.and_then(Style::parse), locale)
}

fn items<'a>(event: &'a Value, field: &str) -> &'a [Value] {
    match event.get(field) {
        Some(Value::Array(items)) => items,
        Some(Value::Null) | None => &[],
        Some(single) => std::slice::from_ref(single),
    }
}

fn contents(event: &Value, body: &mut Body<'_>) {
    for entry in items(event, "content") {
        if body.is_full {
            return;
        }
        let kind = entry.get("type").and_then(Value::as_str).unwrap_or_default();
        let label = match fields::content_label(kind) {
            Some(key) => body.locale.say(key, &[]),
            None => foreign("content", word(entry, "/type")),
        };
        let style = match entry.get("style").and_then(Value::as_str) {
            Some(named) => Style::parse(named),
            None => Some(default_content_style(kind)),
        };
        let shown = match entry {
            Value::Object(fields) => fields.get("text").unwrap_or(&Value::Null),
            bare => bare,
        };
        if !shown.is_null() {
            body.put(&label, style::render(shown, style, body.locale));
        }
        if entry.get("truncated").and_then(Value::as_bool) == Some(true) {
            let cut = match entry.get("original_length").and_then(Value::as_u64) {
                Some(count) => {
                    body.locale.say("aep.truncated_from", &[("count", &count.to_string())])
                }
                None => body.locale.say("aep.truncated", &[]),
            };
            body.push(format!("  {cut}"));
        }
    }
}

fn attachments(event: &Value, body: &mut Body<'_>) {
    for entry in items(event, "attachments") {
        if body.is_full {
            return;
        }
        let label = match entry.get("type").and_then(Value::as_str).and_then(media::label) {
            Some(key) => body.locale.say(key, &[]),
            None => foreign("attachments", word(entry, "/type")),
        };
        body.put(&label, vec![media::describe(entry, body.locale)]);
    }
}

fn metrics(event: &Value, body: &mut Body<'_>) {
    let Some(Value::Object(metrics)) = event.get("metrics") else {
        return;
    };
    for (name, number) in metrics {
        if body.is_full {
            return;
        }
        if number.is_null() {
            continue;
        }
        let label = match name.as_str() {
            "duration_ms" => body.locale.say("aep.duration", &[]),
            other => foreign("metrics", Some(short(other))),
        };
        let style = if name.ends_with("_ms") { Style::Duration } else { Style::PlainText };
        body.put(&label, style::render(number, Some(style), body.locale));
    }
}

/// Lines on their way out, as many as there may be.
struct Body<'a> {
    lines: Vec<String>,
    bytes: usize,
    is_full: bool,
    locale: &'a Locale,
}

impl Body<'_> {
    /// One field: on one line, or below its label.
    fn put(&mut self, label: &str, shown: Vec<String>) {
        match shown.as_slice() {
            [] => {}
            [only] if only.is_empty() => {}
            [only] => {
                let line = format!("{label}: {only}");
                self.push(line);
            }
            _ => {
                self.push(format!("{label}:"));
                for line in shown {
                    self.push(format!("  {line}"));
                }
            }
        }
    }

    fn push(&mut self, line: String) {
        if self.is_full {
            return;
        }
        self.bytes += line.len();
        if self.lines.len() + 1 >= MOST_LINES || self.bytes > MOST_BYTES {
            self.is_full = true;
            self.lines.push(self.locale.say("aep.cut", &[]));
        } else {
            self.lines.push(line);
        }
    }
}

#[cfg(test)]
#[path = "show_tests.rs"]
mod tests;
