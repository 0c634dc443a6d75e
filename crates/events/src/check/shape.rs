//! What a JSON object may look like, as data, and the one walk that compares.
//!
//! A protocol declares [`Shape`]s as constants; [`compare`] says what does not fit, as [`Issue`]s that the protocol
//! turns into findings under its own rule codes. One pass over the object's keys, no allocation unless something is
//! wrong. Conditions between fields are not expressed here: they are code in the protocol's `check`.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::json::View;

mod fits;

pub(crate) use fits::Known;

/// An object: its fields, in parts so that types can share their common fields.
pub(crate) struct Shape {
    pub(crate) parts: &'static [&'static [Field]],
    /// Whether a field that is not listed is an issue.
    pub(crate) closed: bool,
}

/// One field of an object.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) required: bool,
    pub(crate) kind: Kind,
    /// What it means, for people; empty where nobody has said.
    pub(crate) about: &'static str,
}

/// A field that has to be there.
pub(crate) const fn must(name: &'static str, kind: Kind) -> Field {
    Field { name, required: true, kind, about: "" }
}

/// A value.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Any JSON, null included.
    Any,
    /// Any JSON but null.
    Some,
    /// A string, its length in characters.
    Text {
        min: usize,
        max: usize,
    },
    /// A string out of a closed set.
    Word(&'static [&'static str]),
    /// A string that looks as described. The pattern is an ECMA-262 expression and the format a name out of JSON
    /// Schema, either may be empty; without a format, the pattern says exactly what `fits` does.
    Format {
        looks: &'static str,
        fits: fn(&str) -> bool,
        pattern: &'static str,
        format: &'static str,
    },
    Bool,
    /// A whole number; `1.0` is one.
    Integer {
        min: i64,
        max: i64,
    },
    Number {
        min: f64,
        max: f64,
    },
    /// An object with any fields.
    Object,
    /// An object of one shape.
    Record(&'static Shape),
    /// An object of one shape, whose other fields are of one kind.
    RecordAnd(&'static Shape, &'static Kind),
    /// An object whose fields have any name and one kind.
    Each(&'static Kind),
    List {
        min: usize,
        max: usize,
        distinct: bool,
        item: &'static Kind,
    },
    /// An object whose shape depends on the word in its `tag`.
    Union {
        tag: &'static str,
        members: &'static [(&'static str, Shape)],
    },
    /// A string, or a list of this kind.
    TextOr(&'static Kind),
    /// A value of any of these kinds; no two of them have the same JSON type.
    Either(&'static [Kind]),
}

/// A string of any length.
pub(crate) const STRING: Kind = Kind::Text { min: 0, max: usize::MAX };

/// A string that is not empty.
pub(crate) const NAME: Kind = Kind::Text { min: 1, max: usize::MAX };

/// In which way a value does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// A required field is not there.
    Missing,
    /// It is null.
    Null,
    /// It has another JSON type.
    Type,
    /// It has the right type, but is too long, out of range or of another format.
    Value,
    /// It is a word outside a closed set.
    Word,
    /// The field is not known.
    Foreign,
    /// The tag names no known member of a union, or is missing.
    Member,
}

/// Something that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Issue {
    pub(crate) what: What,
    pub(crate) pointer: String,
    pub(crate) message: String,
}

/// Everything in which the object does not fit the shape.
pub(crate) fn compare(shape: &Shape, object: View<'_>, known: &mut Known) -> Vec<Issue> {
    if fits::record(shape, object, known) { Vec::new() } else { closely(shape, object) }
}

fn closely(shape: &Shape, object: View<'_>) -> Vec<Issue> {
    let mut issues = Vec::new();
    record(shape, object, &Path::ROOT, &mut issues);
    issues
}

/// Where in the message the walk is: a list on the stack, written out only when needed.
struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

enum Step<'a> {
    Root,
    Name(View<'a>),
    Key(&'a str),
    Index(usize),
}

impl<'a> Path<'a> {
    const ROOT: Path<'static> = Path { parent: None, step: Step::Root };

    fn name(&'a self, name: View<'a>) -> Self {
        Path { parent: Some(self), step: Step::Name(name) }
    }

    fn key(&'a self, key: &'a str) -> Self {
        Path { parent: Some(self), step: Step::Key(key) }
    }

    fn index(&'a self, index: usize) -> Self {
        Path { parent: Some(self), step: Step::Index(index) }
    }

    fn pointer(&self) -> String {
        let mut pointer = self.parent.map(Path::pointer).unwrap_or_default();
        match self.step {
            Step::Root => {}
            Step::Name(name) => push_key(&mut pointer, &name.as_str().unwrap_or_default()),
            Step::Key(key) => push_key(&mut pointer, key),
            Step::Index(index) => {
                pointer.push('/');
                pointer.push_str(&index.to_string());
            }
        }
        pointer
    }

    fn issue(&self, what: What, message: impl Into<String>) -> Issue {
        Issue { what, pointer: self.pointer(), message: message.into() }
    }
}

/// The longest key that a pointer holds whole. A longer one is cut: findings stay small whatever a message holds.
const LONGEST_KEY: usize = 4096;

/// Appends one key to a JSON Pointer as it is; whoever shows the pointer to people sees to characters that hide.
fn push_key(pointer: &mut String, key: &str) {
    pointer.push('/');
    for letter in key.chars().take(LONGEST_KEY) {
        match letter {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            letter => pointer.push(letter),
        }
    }
}

/// A JSON Pointer of one key.
pub(crate) fn pointer(key: &str) -> String {
    let mut pointer = String::new();
    push_key(&mut pointer, key);
    pointer
}

/// Foreign text for a message: quoted, escaped and short.
pub(crate) fn quote(text: &str) -> String {
    const LONGEST: usize = 64;
    let mut quoted = String::from("\"");
    quoted.extend(text.chars().take(LONGEST).flat_map(char::escape_debug));
    if text.chars().nth(LONGEST).is_some() {
        quoted.push('…');
    }
    quoted.push('"');
    quoted
}

fn record(shape: &Shape, object: View<'_>, path: &Path<'_>, issues: &mut Vec<Issue>) {
    // Shapes have far fewer than 64 fields; one bit tells that a field was there.
    let mut present = 0u64;
    for (name, value) in object.entries() {
        let text = name.as_str().unwrap_or_default();
        let known = shape.fields().enumerate().find(|(_, field)| field.name == text);
        match known {
            Some((index, field)) => {
                present |= 1 << index;
                kind(&field.kind, value, &path.name(name), issues);
            }
            None if shape.closed => {
                let message = format!(
                    "the field {} is not known here",
                    quote(&name.as_str().unwrap_or_default())
                );
                issues.push(path.name(name).issue(What::Foreign, message));
            }
            None => {}
        }
    }
    for (index, field) in shape.fields().enumerate() {
        if field.required && present & (1 << index) == 0 {
            let message = format!("the field \"{}\" is missing", field.name);
            issues.push(path.key(field.name).issue(What::Missing, message));
        }
    }
}

impl Shape {
    pub(crate) fn fields(&self) -> impl Iterator<Item = &'static Field> {
        self.parts.iter().copied().flatten()
    }
}

fn kind(kind: &Kind, value: View<'_>, path: &Path<'_>, issues: &mut Vec<Issue>) {
    if value.is_null() && !matches!(kind, Kind::Any) {
        issues.push(path.issue(What::Null, "null is not allowed here"));
        return;
    }
    match kind {
        Kind::Any | Kind::Some => return,
        Kind::Text { .. } | Kind::Word(_) | Kind::Format { .. } if value.is_string() => {
            issues.extend(string(kind, value, path));
            return;
        }
        Kind::Bool if value.as_bool().is_some() => return,
        Kind::Integer { .. } | Kind::Number { .. } if value.is_number() => {
            issues.extend(numeral(kind, value, path));
            return;
        }
        Kind::Object if value.is_object() => return,
        Kind::Record(shape) if value.is_object() => {
            record(shape, value, path, issues);
            return;
        }
        Kind::RecordAnd(shape, other) if value.is_object() => {
            record(shape, value, path, issues);
            let known = |name: View<'_>| shape.fields().any(|field| name.is(field.name));
            for (name, value) in value.entries().filter(|(name, _)| !known(*name)) {
                self::kind(other, value, &path.name(name), issues);
            }
            return;
        }
        Kind::Each(item) if value.is_object() => {
            for (name, value) in value.entries() {
                self::kind(item, value, &path.name(name), issues);
            }
            return;
        }
        Kind::List { min, max, distinct, item } if value.is_array() => {
            let count = value.items().count();
            if count < *min || count > *max {
                let message = if count < *min {
                    format!("{count} entries, where {min} are the fewest")
                } else {
                    format!("{count} entries, where {max} are the most")
                };
                issues.push(path.issue(What::Value, message));
                return;
            }
            let mut known = HashSet::new();
            for (index, value) in value.items().enumerate() {
                self::kind(item, value, &path.index(index), issues);
                if *distinct && !known.insert(canonical(value)) {
                    issues.push(path.index(index).issue(What::Value, "the entry is there twice"));
                }
            }
            return;
        }
        Kind::Union { tag, members } if value.is_object() => {
            union(tag, members, value, path, issues);
            return;
        }
        Kind::TextOr(_) if value.is_string() => return,
        Kind::TextOr(item) if value.is_array() => {
            for (index, value) in value.items().enumerate() {
                self::kind(item, value, &path.index(index), issues);
            }
            return;
        }
        Kind::Either(kinds) => {
            let fitting = kinds.iter().find(|kind| wanted(kind) == given(value));
            if let Some(fitting) = fitting {
                self::kind(fitting, value, path, issues);
                return;
            }
        }
        _ => {}
    }
    let message = format!("{} is needed here, this is {}", wanted(kind), given(value));
    issues.push(path.issue(What::Type, message));
}

/// A text that equal values have in common.
fn canonical(value: View<'_>) -> Cow<'_, str> {
    let text = value.as_str();
    if let Some(text) = text {
        return text;
    }
    // Numbers, words, arrays and objects never begin like this, so no string is taken for one of them.
    if let Some(number) = value.as_f64() {
        // 2.0 and 2 are the same number.
        return Cow::Owned(format!("\0{number}"));
    }
    let mut value = value.to_value();
    value.sort_all_objects();
    Cow::Owned(format!("\0{value}"))
}

fn string(kind: &Kind, value: View<'_>, path: &Path<'_>) -> Option<Issue> {
    let length = value.span().len() - 2;
    match kind {
        Kind::Text { min, .. } if length == 0 && *min > 0 => {
            Some(path.issue(What::Value, "the text is empty"))
        }
        // Counting is only needed where bytes alone do not tell.
        Kind::Text { max, .. }
            if length > *max && value.as_str().is_some_and(|text| text.chars().count() > *max) =>
        {
            Some(path.issue(What::Value, format!("the text is longer than {max} characters")))
        }
        Kind::Word(words) if !words.iter().any(|word| value.is(word)) => {
            let text = value.as_str().unwrap_or_default();
            let message = format!("{} is none of {}", quote(&text), words.join(", "));
            Some(path.issue(What::Word, message))
        }
        Kind::Format { looks, fits, .. } => {
            let text = value.as_str().unwrap_or_default();
            (!fits(&text))
                .then(|| path.issue(What::Value, format!("{} is not {looks}", quote(&text))))
        }
        _ => None,
    }
}

fn numeral(kind: &Kind, number: View<'_>, path: &Path<'_>) -> Option<Issue> {
    let outside = |side: &str, bound: &dyn std::fmt::Display| {
        path.issue(What::Value, format!("{} is {side} {bound}", digits(number)))
    };
    match kind {
        Kind::Integer { min, max } => match whole(number) {
            None => Some(path.issue(What::Type, "a whole number is needed here")),
            Some(value) if value < *min => Some(outside("below", min)),
            Some(value) if value > *max => Some(outside("above", max)),
            Some(_) => None,
        },
        Kind::Number { min, max } => match number.as_f64() {
            Some(value) if value < *min => Some(outside("below", min)),
            Some(value) if value > *max => Some(outside("above", max)),
            _ => None,
        },
        _ => None,
    }
}

/// A number as it was written, for messages: short.
fn digits(number: View<'_>) -> Cow<'_, str> {
    const LONGEST: usize = 32;
    let written = number.raw();
    match written.get(..LONGEST) {
        Some(start) if written.len() > LONGEST => Cow::Owned(format!("{start}…")),
        _ => Cow::Borrowed(written),
    }
}

/// The number as a whole number, clamped to the range of `i64`.
fn whole(number: View<'_>) -> Option<i64> {
    if let Some(value) = number.as_i64() {
        return Some(value);
    }
    let value = number.as_f64()?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "saturates, which is what the range check needs"
    )]
    (value.fract() == 0.0).then_some(value as i64)
}

fn union(
    tag: &'static str,
    members: &'static [(&'static str, Shape)],
    object: View<'_>,
    path: &Path<'_>,
    issues: &mut Vec<Issue>,
) {
    let word = object.get(tag);
    let member = members.iter().find(|(name, _)| word.is_some_and(|word| word.is(name)));
    if let Some((_, shape)) = member {
        record(shape, object, path, issues);
        return;
    }
    let message = match word {
        Some(word) => match word.as_str() {
            Some(text) => format!("{} is no known {tag}", quote(&text)),
            None => format!("{} is no {tag}", given(word)),
        },
        None => format!("the field \"{tag}\" is missing"),
    };
    issues.push(path.key(tag).issue(What::Member, message));
}

fn wanted(kind: &Kind) -> &'static str {
    match kind {
        Kind::Any | Kind::Some => "a value",
        Kind::Text { .. } | Kind::Word(_) | Kind::Format { .. } => "a string",
        Kind::Bool => "true or false",
        Kind::Integer { .. } | Kind::Number { .. } => "a number",
        Kind::Object
        | Kind::Record(_)
        | Kind::RecordAnd(..)
        | Kind::Each(_)
        | Kind::Union { .. } => "an object",
        Kind::List { .. } => "an array",
        Kind::TextOr(_) => "a string or an array",
        Kind::Either(_) => "a value of another type",
    }
}

/// What JSON type a value has, for messages.
pub(crate) fn given(value: View<'_>) -> &'static str {
    if value.is_null() {
        "null"
    } else if value.is_string() {
        "a string"
    } else if value.is_number() {
        "a number"
    } else if value.is_array() {
        "an array"
    } else if value.is_object() {
        "an object"
    } else {
        "true or false"
    }
}

/// The string in a field, if there is one.
pub(crate) fn text<'a>(object: View<'a>, name: &str) -> Option<Cow<'a, str>> {
    object.get(name)?.as_str()
}

/// Whether a field is this very string.
pub(crate) fn says(object: View<'_>, name: &str, word: &str) -> bool {
    object.get(name).is_some_and(|value| value.is(word))
}

#[cfg(test)]
#[path = "shape_tests.rs"]
mod tests;
