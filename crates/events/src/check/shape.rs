//! What a JSON object may look like, as data, and the one walk that compares.
//!
//! A protocol declares [`Shape`]s as constants; [`compare`] says what does not fit, as [`Issue`]s that the protocol
//! turns into findings under its own rule codes. One pass over the object's keys, no allocation unless something is
//! wrong. Conditions between fields are not expressed here: they are code in the protocol's `check`.

use serde_json::{Map, Value};

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
}

/// A field that has to be there.
pub(crate) const fn must(name: &'static str, kind: Kind) -> Field {
    Field { name, required: true, kind }
}

/// A field that may be there.
pub(crate) const fn may(name: &'static str, kind: Kind) -> Field {
    Field { name, required: false, kind }
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
    /// A string that looks as described.
    Format {
        looks: &'static str,
        fits: fn(&str) -> bool,
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
    /// The tag names no known member of a union.
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
pub(crate) fn compare(shape: &Shape, object: &Map<String, Value>) -> Vec<Issue> {
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
    Key(&'a str),
    Index(usize),
}

impl<'a> Path<'a> {
    const ROOT: Path<'static> = Path { parent: None, step: Step::Root };

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

/// Appends one key to a JSON Pointer, escaped and cut to what a person can read.
fn push_key(pointer: &mut String, key: &str) {
    pointer.push('/');
    for letter in key.chars().take(128) {
        match letter {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            letter if letter.is_control() => pointer.extend(letter.escape_unicode()),
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

fn record(shape: &Shape, object: &Map<String, Value>, path: &Path<'_>, issues: &mut Vec<Issue>) {
    // Shapes have far fewer than 64 fields; one bit tells that a field was there.
    let mut present = 0u64;
    for (key, value) in object {
        let found = shape.fields().enumerate().find(|(_, field)| field.name == key.as_str());
        match found {
            Some((index, field)) => {
                present |= 1 << index;
                kind(&field.kind, value, &path.key(key), issues);
            }
            None if shape.closed => {
                let message = format!("the field {} is not known here", quote(key));
                issues.push(path.key(key).issue(What::Foreign, message));
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
    fn fields(&self) -> impl Iterator<Item = &'static Field> {
        self.parts.iter().copied().flatten()
    }
}

fn kind(kind: &Kind, value: &Value, path: &Path<'_>, issues: &mut Vec<Issue>) {
    if value.is_null() && !matches!(kind, Kind::Any) {
        issues.push(path.issue(What::Null, "null is not allowed here"));
        return;
    }
    match (kind, value) {
        (Kind::Any | Kind::Some, _)
        | (Kind::Bool, Value::Bool(_))
        | (Kind::Object, Value::Object(_))
        | (Kind::TextOr(_), Value::String(_)) => {}
        (Kind::Text { .. } | Kind::Word(_) | Kind::Format { .. }, Value::String(text)) => {
            issues.extend(string(kind, text, path));
        }
        (Kind::Integer { .. } | Kind::Number { .. }, Value::Number(number)) => {
            issues.extend(numeral(kind, number, path));
        }
        (Kind::Record(shape), Value::Object(object)) => record(shape, object, path, issues),
        (Kind::Each(item), Value::Object(object)) => {
            for (key, value) in object {
                self::kind(item, value, &path.key(key), issues);
            }
        }
        (Kind::List { min, max, distinct, item }, Value::Array(values)) => {
            if values.len() < *min || values.len() > *max {
                let message = format!("{} entries, where {min} to {max} are allowed", values.len());
                issues.push(path.issue(What::Value, message));
                return;
            }
            for (index, value) in values.iter().enumerate() {
                self::kind(item, value, &path.index(index), issues);
                if *distinct && values.iter().take(index).any(|earlier| earlier == value) {
                    issues.push(path.index(index).issue(What::Value, "the entry is there twice"));
                }
            }
        }
        (Kind::TextOr(item), Value::Array(values)) => {
            for (index, value) in values.iter().enumerate() {
                self::kind(item, value, &path.index(index), issues);
            }
        }
        (Kind::Union { tag, members }, Value::Object(object)) => {
            union(tag, members, object, path, issues);
        }
        _ => {
            let message = format!("{} is needed here, this is {}", wanted(kind), given(value));
            issues.push(path.issue(What::Type, message));
        }
    }
}

fn string(kind: &Kind, text: &str, path: &Path<'_>) -> Option<Issue> {
    match kind {
        Kind::Text { min: 1, .. } if text.is_empty() => {
            Some(path.issue(What::Value, "the text is empty"))
        }
        // Counting is only needed where bytes alone do not tell.
        Kind::Text { max, .. } if text.len() > *max && text.chars().count() > *max => {
            Some(path.issue(What::Value, format!("the text is longer than {max} characters")))
        }
        Kind::Word(words) if !words.contains(&text) => {
            let message = format!("{} is none of {}", quote(text), words.join(", "));
            Some(path.issue(What::Word, message))
        }
        Kind::Format { looks, fits } if !fits(text) => {
            Some(path.issue(What::Value, format!("{} is not {looks}", quote(text))))
        }
        _ => None,
    }
}

fn numeral(kind: &Kind, number: &serde_json::Number, path: &Path<'_>) -> Option<Issue> {
    match kind {
        Kind::Integer { min, max } => match whole(number) {
            None => Some(path.issue(What::Type, "a whole number is needed here")),
            Some(value) if value < *min || value > *max => {
                Some(path.issue(What::Value, format!("{value} is outside {min} to {max}")))
            }
            Some(_) => None,
        },
        Kind::Number { min, max } => {
            let value = number.as_f64().unwrap_or(f64::NAN);
            (!(value >= *min && value <= *max))
                .then(|| path.issue(What::Value, format!("{number} is outside {min} to {max}")))
        }
        _ => None,
    }
}

/// The number as a whole number, clamped to the range of `i64`.
pub(crate) fn whole(number: &serde_json::Number) -> Option<i64> {
    if let Some(value) = number.as_i64() {
        return Some(value);
    }
    if number.is_u64() {
        return Some(i64::MAX);
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
    object: &Map<String, Value>,
    path: &Path<'_>,
    issues: &mut Vec<Issue>,
) {
    match object.get(tag) {
        Some(Value::String(word)) => {
            let member = members.iter().find(|(name, _)| name == word);
            if let Some((_, shape)) = member {
                record(shape, object, path, issues);
            } else {
                let message = format!("{} is no known {tag}", quote(word));
                issues.push(path.key(tag).issue(What::Member, message));
            }
        }
        Some(value) => kind(&STRING, value, &path.key(tag), issues),
        None => {
            let message = format!("the field \"{tag}\" is missing");
            issues.push(path.key(tag).issue(What::Missing, message));
        }
    }
}

fn wanted(kind: &Kind) -> &'static str {
    match kind {
        Kind::Any | Kind::Some => "a value",
        Kind::Text { .. } | Kind::Word(_) | Kind::Format { .. } => "a string",
        Kind::Bool => "true or false",
        Kind::Integer { .. } | Kind::Number { .. } => "a number",
        Kind::Object | Kind::Record(_) | Kind::Each(_) | Kind::Union { .. } => "an object",
        Kind::List { .. } => "an array",
        Kind::TextOr(_) => "a string or an array",
    }
}

/// What JSON type a value has, for messages.
pub(crate) fn given(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
#[path = "shape_tests.rs"]
mod tests;
