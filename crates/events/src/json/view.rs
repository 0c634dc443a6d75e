//! Looking at one value of a document.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::{Number, Value};

use super::{Node, Tag, Tape};

/// One value of a document, or the name of an object's field.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    pub(super) tape: &'a Tape<'a>,
    pub(super) at: u32,
}

impl<'a> View<'a> {
    #[inline]
    fn node(self) -> Node {
        let nowhere = Node { start: 0, end: 0, next: u32::MAX, tag: Tag::Null };
        self.tape.nodes.get(self.at as usize).copied().unwrap_or(nowhere)
    }

    /// Where the value stands in the bytes.
    #[inline]
    pub fn span(self) -> Range<usize> {
        let node = self.node();
        node.start as usize..node.end as usize
    }

    /// The value as it stands in the bytes.
    pub fn raw(self) -> &'a str {
        self.tape.text.get(self.span()).unwrap_or_default()
    }

    /// Whether it is null.
    #[inline]
    pub fn is_null(self) -> bool {
        self.node().tag == Tag::Null
    }

    /// Whether it is a string.
    #[inline]
    pub fn is_string(self) -> bool {
        matches!(self.node().tag, Tag::Plain | Tag::Escaped)
    }

    /// Whether it is a number.
    #[inline]
    pub fn is_number(self) -> bool {
        matches!(self.node().tag, Tag::Integer | Tag::Float)
    }

    /// Whether it is a number without fraction and exponent.
    #[inline]
    pub fn is_integer(self) -> bool {
        self.node().tag == Tag::Integer
    }

    /// Whether it is an object.
    #[inline]
    pub fn is_object(self) -> bool {
        self.node().tag == Tag::Object
    }

    /// Whether it is an array.
    #[inline]
    pub fn is_array(self) -> bool {
        self.node().tag == Tag::Array
    }

    /// The truth value, if it is one.
    #[inline]
    pub fn as_bool(self) -> Option<bool> {
        match self.node().tag {
            Tag::True => Some(true),
            Tag::False => Some(false),
            _ => None,
        }
    }

    /// The string, if it is one; copied only where it has escapes.
    #[inline]
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        let node = self.node();
        let inner = node.start as usize + 1..(node.end as usize).saturating_sub(1);
        match node.tag {
            Tag::Plain => self.tape.text.get(inner).map(Cow::Borrowed),
            Tag::Escaped | Tag::Shadowed => {
                self.tape.text.get(inner).map(|text| Cow::Owned(unescape(text)))
            }
            _ => None,
        }
    }

    /// The bytes of a string that stands there without escapes.
    #[inline]
    pub(crate) fn plain(self) -> Option<&'a [u8]> {
        let node = self.node();
        if node.tag != Tag::Plain {
            return None;
        }
        self.tape
            .text
            .as_bytes()
            .get(node.start as usize + 1..(node.end as usize).saturating_sub(1))
    }

    /// Whether it is this very string.
    #[inline]
    pub fn is(self, text: &str) -> bool {
        let node = self.node();
        match node.tag {
            Tag::Plain => {
                let inner = node.start as usize + 1..(node.end as usize).saturating_sub(1);
                inner.len() == text.len()
                    && self.tape.text.as_bytes().get(inner) == Some(text.as_bytes())
            }
            Tag::Escaped => self.as_str().is_some_and(|own| own == text),
            _ => false,
        }
    }

    /// The number, if it is a whole one in range.
    pub fn as_i64(self) -> Option<i64> {
        if self.is_integer() { self.raw().parse().ok() } else { None }
    }

    /// The number, if it is a whole one in range and not negative.
    pub fn as_u64(self) -> Option<u64> {
        if self.is_integer() { self.raw().parse().ok() } else { None }
    }

    /// The number, if it is one.
    pub fn as_f64(self) -> Option<f64> {
        if self.is_number() { self.raw().parse().ok() } else { None }
    }

    /// The names and values of an object, in the order of the bytes; nothing for any other value.
    #[inline]
    pub fn entries(self) -> Entries<'a> {
        let node = self.node();
        let end = if node.tag == Tag::Object { node.next } else { self.at + 1 };
        Entries { view: View { at: self.at + 1, ..self }, end }
    }

    /// The elements of an array; nothing for any other value.
    #[inline]
    pub fn items(self) -> Items<'a> {
        let node = self.node();
        let end = if node.tag == Tag::Array { node.next } else { self.at + 1 };
        Items { view: View { at: self.at + 1, ..self }, end }
    }

    /// The field of an object; the last one where the name stands twice.
    #[inline]
    pub fn get(self, name: &str) -> Option<View<'a>> {
        self.entries().find_map(|(own, value)| own.is(name).then_some(value))
    }

    /// The value that a JSON Pointer leads to.
    pub fn pointer(self, pointer: &str) -> Option<View<'a>> {
        steps(pointer).try_fold(self, |view, step| view.step(&step))
    }

    /// One step of a pointer: a field's name or an element's index.
    pub(super) fn step(self, step: &str) -> Option<View<'a>> {
        if self.is_object() {
            return self.get(step);
        }
        self.items().nth(step.parse().ok()?)
    }

    /// What stands at a path such as `/content/0/style`, which has no escapes.
    pub(crate) fn at(self, path: &str) -> Option<View<'a>> {
        path.split('/').skip(1).try_fold(self, View::step)
    }

    /// The string at a path without escapes, if it is one.
    pub(crate) fn text(self, path: &str) -> Option<Cow<'a, str>> {
        self.at(path)?.as_str()
    }

    /// The string at a path without escapes, copied.
    pub(crate) fn owned(self, path: &str) -> Option<String> {
        self.text(path).map(Cow::into_owned)
    }

    /// The value, copied out of the document. The bytes are not parsed again.
    pub fn to_value(self) -> Value {
        let node = self.node();
        match node.tag {
            Tag::Null => Value::Null,
            Tag::False => Value::Bool(false),
            Tag::True => Value::Bool(true),
            Tag::Integer | Tag::Float => self.number().map_or(Value::Null, Value::Number),
            Tag::Plain | Tag::Escaped | Tag::Shadowed => {
                Value::String(self.as_str().unwrap_or_default().into_owned())
            }
            Tag::Array => Value::Array(self.items().map(View::to_value).collect()),
            Tag::Object => {
                // A name that stands twice keeps its first place and its last value.
                let field = |(name, value): (View<'_>, View<'_>)| {
                    (name.as_str().unwrap_or_default().into_owned(), value.to_value())
                };
                Value::Object(self.entries().map(field).collect())
            }
        }
    }

    fn number(self) -> Option<Number> {
        let raw = self.raw();
        if self.is_integer() && raw != "-0" {
            if let Ok(number) = raw.parse::<u64>() {
                return Some(number.into());
            }
            if let Ok(number) = raw.parse::<i64>() {
                return Some(number.into());
            }
        }
        raw.parse().ok()
    }
}

/// The steps of a JSON Pointer, unescaped.
pub(super) fn steps(pointer: &str) -> impl Iterator<Item = Cow<'_, str>> {
    pointer.split('/').skip(1).map(|step| {
        if step.contains('~') {
            Cow::Owned(step.replace("~1", "/").replace("~0", "~"))
        } else {
            Cow::Borrowed(step)
        }
    })
}

/// The names and values of an object.
#[derive(Debug, Clone)]
pub struct Entries<'a> {
    view: View<'a>,
    end: u32,
}

impl<'a> Iterator for Entries<'a> {
    type Item = (View<'a>, View<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.view.at >= self.end {
            return None;
        }
        let name = self.view;
        let value = View { at: name.at + 1, ..name };
        self.view.at = value.node().next;
        Some((name, value))
    }
}

/// The elements of an array.
#[derive(Debug, Clone)]
pub struct Items<'a> {
    view: View<'a>,
    end: u32,
}

impl<'a> Iterator for Items<'a> {
    type Item = View<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.view.at >= self.end {
            return None;
        }
        let item = self.view;
        self.view.at = item.node().next;
        Some(item)
    }
}

/// Text without its escapes. The scanner has seen that they are well-formed.
pub(super) fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        plain.push_str(before);
        let mut letters = after.chars();
        let letter = letters.next().unwrap_or('\\');
        rest = letters.as_str();
        match letter {
            'b' => plain.push('\u{8}'),
            'f' => plain.push('\u{c}'),
            'n' => plain.push('\n'),
            'r' => plain.push('\r'),
            't' => plain.push('\t'),
            'u' => {
                let (high, after) = unit(rest);
                rest = after;
                let mut code = high;
                if let (0xD800..=0xDBFF, Some(pair)) = (high, rest.strip_prefix("\\u")) {
                    let (low, after) = unit(pair);
                    rest = after;
                    code = 0x10000 + ((high - 0xD800) << 10) + low.wrapping_sub(0xDC00);
                }
                plain.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            other => plain.push(other),
        }
    }
    plain.push_str(rest);
    plain
}

fn unit(text: &str) -> (u32, &str) {
    let (digits, rest) = text.split_at_checked(4).unwrap_or((text, ""));
    (u32::from_str_radix(digits, 16).unwrap_or(0xFFFD), rest)
}
