//! Whether an object fits its shape, and nothing else: most do, and are not asked twice.
//!
//! True is the truth. False may also mean that it would take long to tell; the walk that says why tells then.

use super::{Kind, Shape};
use crate::json::View;

/// Objects inside messages that were seen to fit, as they stood in the bytes: who sends, in which language, from which
/// workspace is the same in message after message.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    /// By shape, so that those that never repeat drive out only their like.
    shapes: Vec<Objects>,
}

#[derive(Debug, Clone)]
struct Objects {
    shape: usize,
    newest: usize,
    bytes: [Vec<u8>; Self::MOST],
}

impl Objects {
    const MOST: usize = 8;
}

impl Known {
    const SHAPES: usize = 16;
    const LONGEST: usize = 512;

    fn has(&self, shape: &'static Shape, bytes: &[u8]) -> bool {
        let shape = std::ptr::from_ref(shape).addr();
        let objects = self.shapes.iter().find(|objects| objects.shape == shape);
        objects.is_some_and(|objects| objects.bytes.iter().any(|known| known == bytes))
    }

    fn keep(&mut self, shape: &'static Shape, bytes: &[u8]) {
        let shape = std::ptr::from_ref(shape).addr();
        let is_known = self.shapes.iter().any(|objects| objects.shape == shape);
        if !is_known && self.shapes.len() < Self::SHAPES {
            self.shapes.push(Objects { shape, newest: 0, bytes: Default::default() });
        }
        let objects = self.shapes.iter_mut().find(|objects| objects.shape == shape);
        let Some(objects) = objects else {
            return;
        };
        objects.newest = (objects.newest + 1) % Objects::MOST;
        if bytes.len() <= Self::LONGEST
            && let Some(oldest) = objects.bytes.get_mut(objects.newest)
        {
            oldest.clear();
            oldest.extend_from_slice(bytes);
        }
    }
}

pub(super) fn record(shape: &Shape, object: View<'_>, known: &mut Known) -> bool {
    // Shapes have far fewer than 64 fields; one bit tells that a field was there.
    let mut present = 0u64;
    let (mut part, mut at, mut before) = (0, 0, 0);
    'names: for (name, value) in object.entries() {
        let Some(name) = name.plain() else {
            return false;
        };
        // Messages mostly keep to the order of the tables, so the search goes on behind the last field, and round.
        let mut rounds = 0;
        loop {
            let Some(fields) = shape.parts.get(part) else {
                (part, at, before) = (0, 0, 0);
                rounds += 1;
                if rounds > 1 {
                    if shape.closed {
                        return false;
                    }
                    continue 'names;
                }
                continue;
            };
            while let Some(field) = fields.get(at) {
                at += 1;
                if field.name.as_bytes() == name {
                    present |= 1 << (before + at - 1);
                    if !kind(&field.kind, value, known) {
                        return false;
                    }
                    continue 'names;
                }
            }
            before += fields.len();
            part += 1;
            at = 0;
        }
    }
    let mut bit = 1u64;
    for field in shape.parts.iter().copied().flatten() {
        if field.required && present & bit == 0 {
            return false;
        }
        bit <<= 1;
    }
    true
}

fn kind(kind: &Kind, value: View<'_>, known: &mut Known) -> bool {
    match kind {
        Kind::Any => true,
        Kind::Some => !value.is_null(),
        Kind::Text { min, max } => {
            value.plain().is_some_and(|text| text.len() >= *min.min(&1) && text.len() <= *max)
        }
        Kind::Word(words) => {
            value.plain().is_some_and(|text| words.iter().any(|word| word.as_bytes() == text))
        }
        Kind::Format { fits, .. } => {
            value.plain().is_some() && value.as_str().is_some_and(|text| fits(&text))
        }
        Kind::Bool => value.as_bool().is_some(),
        Kind::Integer { min, max } => {
            value.as_i64().is_some_and(|number| (*min..=*max).contains(&number))
        }
        Kind::Number { min, max } => {
            value.as_f64().is_some_and(|number| (*min..=*max).contains(&number))
        }
        Kind::Object => value.is_object(),
        Kind::Record(shape) => {
            let bytes = value.raw().as_bytes();
            if known.has(shape, bytes) {
                return true;
            }
            let fits = value.is_object() && record(shape, value, known);
            if fits {
                known.keep(shape, bytes);
            }
            fits
        }
        Kind::Each(item) => {
            value.is_object() && value.entries().all(|(_, value)| self::kind(item, value, known))
        }
        Kind::List { min, max, distinct, item } => {
            const FEW: usize = 16;
            let count = value.items().count();
            value.is_array()
                && (*min..=*max).contains(&count)
                && value.items().all(|value| self::kind(item, value, known))
                && (!distinct || count <= FEW && is_distinct(value))
        }
        Kind::Union { tag, members } => value.get(tag).is_some_and(|word| {
            members.iter().any(|(name, shape)| word.is(name) && record(shape, value, known))
        }),
        Kind::TextOr(item) => {
            value.is_string()
                || value.is_array() && value.items().all(|value| self::kind(item, value, known))
        }
        Kind::RecordAnd(..) | Kind::Either(_) => false,
    }
}

/// Whether a list certainly has nothing in it twice: it is of plain strings that all differ, or of objects that differ in
/// the plain string that they begin with.
fn is_distinct(list: View<'_>) -> bool {
    list.items().enumerate().all(|(index, item)| {
        telling(item).is_some_and(|(name, text)| {
            list.items().take(index).all(|earlier| {
                telling(earlier).is_some_and(|(known, value)| known == name && value != text)
            })
        })
    })
}

/// The plain string that an item is, or the name and the plain string that it begins with.
fn telling(item: View<'_>) -> Option<(Option<&[u8]>, &[u8])> {
    if let Some(text) = item.plain() {
        return Some((None, text));
    }
    let (name, value) = item.entries().next()?;
    Some((Some(name.plain()?), value.plain()?))
}
