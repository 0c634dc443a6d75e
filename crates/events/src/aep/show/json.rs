//! JSON as text for people: indented or key by key, bounded in depth and length, without credentials.
//!
//! A key that names a credential hides what is below it, also where the text alone would not give it away.

use serde_json::Value;

use super::VALUE_CHARS;
use crate::text;

/// How deep a structure is shown.
const MOST_DEPTH: usize = 32;
/// Enough to be cut later, where the cut is told.
const MOST_BYTES: usize = VALUE_CHARS * 4 + 64;

pub(super) fn indented(value: &Value) -> String {
    let mut out = String::new();
    Printer { out: &mut out, breaks: true }.value(value, 0, false);
    out
}

/// A line for each key; what is below a key is JSON on that line.
pub(super) fn key_value(value: &Value) -> String {
    let entries: Box<dyn Iterator<Item = (String, &Value)>> = match value {
        Value::Object(fields) => Box::new(fields.iter().map(|(key, value)| (key.clone(), value))),
        Value::Array(items) => {
            Box::new(items.iter().enumerate().map(|(place, item)| ((place + 1).to_string(), item)))
        }
        scalar => Box::new(std::iter::once((String::new(), scalar))),
    };
    let mut out = String::new();
    for (key, value) in entries {
        if out.len() > MOST_BYTES {
            break;
        }
        out.push_str(&text::one_line(&text::redact(&key)));
        out.push_str(": ");
        let secret = text::names_credential(&key);
        match value {
            Value::String(said) if !secret => out.push_str(&text::one_line(&text::redact(said))),
            other => Printer { out: &mut out, breaks: false }.value(other, 0, secret),
        }
        out.push('\n');
    }
    if out.is_empty() { indented(value) } else { out }
}

struct Printer<'a> {
    out: &'a mut String,
    breaks: bool,
}

impl Printer<'_> {
    fn value(&mut self, value: &Value, depth: usize, secret: bool) {
        match value {
            Value::String(_) | Value::Number(_) if secret => self.out.push_str("\"[redacted]\""),
            Value::String(said) => self.string(said),
            Value::Null | Value::Bool(_) | Value::Number(_) => {
                self.out.push_str(&value.to_string());
            }
            Value::Array(items) => {
                self.container(('[', ']'), depth, items.iter(), |printer, item| {
                    printer.value(item, depth + 1, secret);
                });
            }
            Value::Object(fields) => {
                self.container(('{', '}'), depth, fields.iter(), |printer, (key, value)| {
                    printer.string(key);
                    printer.out.push_str(": ");
                    printer.value(value, depth + 1, secret || text::names_credential(key));
                });
            }
        }
    }

    fn container<T>(
        &mut self,
        (open, close): (char, char),
        depth: usize,
        items: impl ExactSizeIterator<Item = T>,
        mut each: impl FnMut(&mut Self, T),
    ) {
        self.out.push(open);
        let is_empty = items.len() == 0;
        if depth >= MOST_DEPTH && !is_empty {
            self.out.push('…');
        } else {
            for (place, item) in items.enumerate() {
                if self.out.len() > MOST_BYTES {
                    self.out.push('…');
                    break;
                }
                if place > 0 {
                    self.out.push_str(if self.breaks { "," } else { ", " });
                }
                self.line_break(depth + 1);
                each(self, item);
            }
            if !is_empty {
                self.line_break(depth);
            }
        }
        self.out.push(close);
    }

    fn line_break(&mut self, depth: usize) {
        if self.breaks {
            self.out.push('\n');
            for _ in 0..depth {
                self.out.push_str("  ");
            }
        }
    }

    fn string(&mut self, said: &str) {
        let clean = text::redact(said);
        // One character too many stays, so that the cut is told.
        let short = text::shorten(&clean, VALUE_CHARS + 1);
        self.out.push_str(&Value::String(short.into_owned()).to_string());
    }
}
