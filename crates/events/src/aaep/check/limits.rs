//! What is too much for one message, and what stands in it twice.

use super::seen::Seen;
use super::{BIG_NUMBER, DUPLICATE, LIMITS};
use crate::check::shape;
use crate::finding::Finding;
use crate::json::{Document, View};

const BYTES: usize = 64 * 1024;
const FIELDS: usize = 32;
const DEEPEST: usize = 8;
const LONGEST: usize = 16 * 1024;
const LARGEST: u64 = 1 << 53;

/// Whole numbers with fewer digits than this are within ±2^53.
const DIGITS: usize = 16;

pub(super) fn check(message: &Document<'_>, seen: &Seen<'_>, findings: &mut Vec<Finding>) {
    let bytes = message.bytes().len();
    if bytes > BYTES {
        findings.push(LIMITS.at("", format!("{bytes} bytes, more than {BYTES}")));
    }
    let fields = seen.fields + seen.extensions.map_or(0, |extensions| extensions.entries().count());
    if fields > FIELDS {
        let message = format!("{fields} top-level fields and extensions, more than {FIELDS}");
        findings.push(LIMITS.at("", message));
    }
    if message.depth() <= DEEPEST
        && message.longest_string() <= LONGEST
        && message.longest_integer() < DIGITS
        && !seen.big_float
    {
        return;
    }
    for (key, value) in message.root().entries() {
        let mut walk = Walk::default();
        walk.value(value, 1);
        let key = shape::pointer(&key.as_str().unwrap_or_default());
        if walk.big_number {
            let place = format!("{key}{}", big_number(value).unwrap_or_default());
            findings.push(BIG_NUMBER.at(place, "the number is outside ±2^53"));
        }
        if walk.too_deep {
            findings.push(LIMITS.at(&*key, "nested more than 8 levels deep"));
        }
        // The table of the event's type may have said so already.
        if walk.long_string && !findings.iter().any(|found| found.pointer == key) {
            findings.push(LIMITS.at(key, "a string is longer than 16 KiB"));
        }
    }
}

#[derive(Default)]
struct Walk {
    big_number: bool,
    too_deep: bool,
    long_string: bool,
}

impl Walk {
    fn value(&mut self, value: View<'_>, depth: usize) {
        self.too_deep |= depth > DEEPEST && (value.is_array() || value.is_object());
        if value.is_number() {
            self.big_number |= is_big(value);
        } else if value.span().len() > LONGEST && value.is_string() {
            // Counted in characters, as the limits of single fields are.
            self.long_string |= value.as_str().is_some_and(|text| text.chars().count() > LONGEST);
        }
        value.items().for_each(|item| self.value(item, depth + 1));
        value.entries().for_each(|(_, field)| self.value(field, depth + 1));
    }
}

fn is_big(number: View<'_>) -> bool {
    if number.is_integer() {
        let digits = number.raw().trim_start_matches('-');
        return digits.parse::<u64>().map_or(true, |size| size > LARGEST);
    }
    is_big_float(number)
}

/// Whether it is a number with fraction or exponent beyond ±2^53. All of those are whole.
pub(super) fn is_big_float(value: View<'_>) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "a power of two is exact")]
    let largest = LARGEST as f64;
    value.is_number()
        && !value.is_integer()
        && value.as_f64().is_some_and(|size| size.abs() > largest)
}

/// Whether such a number is in it, at any depth.
pub(super) fn holds_big_float(value: View<'_>) -> bool {
    is_big_float(value)
        || value.items().any(holds_big_float)
        || value.entries().any(|(_, field)| holds_big_float(field))
}

/// Where the first number that is too big stands, as a pointer.
fn big_number(value: View<'_>) -> Option<String> {
    if value.is_number() {
        return is_big(value).then(String::new);
    }
    let in_list = value
        .items()
        .enumerate()
        .find_map(|(index, item)| big_number(item).map(|rest| format!("/{index}{rest}")));
    in_list.or_else(|| {
        value.entries().find_map(|(name, field)| {
            let rest = big_number(field)?;
            Some(shape::pointer(&name.as_str().unwrap_or_default()) + &rest)
        })
    })
}

/// The first name that stands twice in its object.
pub(super) fn duplicate(message: &Document<'_>) -> Option<Finding> {
    let name = message.duplicate()?;
    let text = name.as_str().unwrap_or_default();
    let message_text = format!("the name {} stands here twice", shape::quote(&text));
    Some(DUPLICATE.at(path(message.root(), name), message_text))
}

/// Where a name stands, as a pointer.
fn path(root: View<'_>, name: View<'_>) -> String {
    let place = name.span().start;
    let mut pointer = String::new();
    let mut value = root;
    loop {
        let field = value.entries().find(|(_, inner)| inner.span().end > place);
        let item = value.items().enumerate().find(|(_, inner)| inner.span().end > place);
        match (field, item) {
            (Some((key, inner)), _) => {
                pointer.push_str(&shape::pointer(&key.as_str().unwrap_or_default()));
                value = inner;
                if key.span().start == place {
                    return pointer;
                }
            }
            (None, Some((index, inner))) => {
                pointer.push_str(&shape::pointer(&index.to_string()));
                value = inner;
            }
            (None, None) => return pointer,
        }
    }
}
