//! Dotted paths into an AEP event, held to the protocol's own table of fields.

use super::tree::{Key, Problems};
use crate::aep::event::EVENT;
use crate::check::shape::{Kind, Shape};

/// How many members a list may have.
pub(super) const MOST_ITEMS: usize = 64;

/// Says what is wrong with a dotted path into an event.
pub(super) fn check(path: &Key, problems: &mut Problems) {
    if ["aep_version", "id", "type", "hook", "agent", "agent.slug"].contains(&path.name.as_str()) {
        problems.error(path.at, format!("`{}` is set by the loader", path.name));
        return;
    }
    let mut kind = Kind::Record(&EVENT);
    for (depth, part) in path.name.split('.').enumerate() {
        kind = match kind {
            Kind::Record(shape) => match field(shape, part) {
                Some(kind) => kind,
                None => return problems.unknown(path.at, "field", part, &names(shape)),
            },
            Kind::List { item, .. } if part.parse::<usize>().is_ok_and(|n| n < MOST_ITEMS) => *item,
            Kind::List { .. } => {
                let message =
                    format!("`{part}` in `{}` must be a number below {MOST_ITEMS}", path.name);
                return problems.error(path.at, message);
            }
            Kind::Each(kind) => *kind,
            Kind::Object if depth == 1 && !part.starts_with("x-") => {
                return problems.error(path.at, "the name of an extension begins with `x-`");
            }
            Kind::Object | Kind::Any | Kind::Some => Kind::Any,
            _ => return problems.error(path.at, format!("`{}` has no parts", path.name)),
        };
    }
}

/// What is at a dotted path.
pub(super) fn kind_at(shape: &Shape, path: &str) -> Option<Kind> {
    let mut parts = path.split('.');
    let mut kind = field(shape, parts.next()?)?;
    for part in parts {
        kind = match kind {
            Kind::Record(shape) => field(shape, part)?,
            Kind::List { item, .. } | Kind::Each(item) => *item,
            _ => return None,
        };
    }
    Some(kind)
}

fn field(shape: &Shape, name: &str) -> Option<Kind> {
    shape.parts.iter().copied().flatten().find(|field| field.name == name).map(|field| field.kind)
}

/// The fields of an object.
pub(super) fn names(shape: &Shape) -> Vec<&'static str> {
    shape.parts.iter().copied().flatten().map(|field| field.name).collect()
}
