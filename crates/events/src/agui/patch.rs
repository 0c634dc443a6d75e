//! JSON Patch (RFC 6902), in place and as a whole.
//!
//! A patch that fails leaves the document as it was, the order of its keys included: what was done is undone, nothing
//! is copied beforehand. An operation costs what its pointers and values weigh, not what the document does, with three
//! exceptions: a copy costs what it copies, a move to a deeper place looks through what it moves, and an array makes
//! room for an element and closes up behind it. A key that goes leaves its place to the last one of its object.
//!
//! Documents and patches stay bounded: no document gets deeper than [`DEEPEST`], and one patch copies no more than a
//! message can hold and shifts or looks through no more than some ten million values; beyond that it fails.
//! Pointers that would reach a JavaScript prototype fail, as they do for those who hold the same document there.
//!
//! Where the reference client is laxer than the RFC, this is not: an index with leading zeros, an empty one, one beyond
//! the end as the target of a move or a copy, a member of a string or a number, a place within what is moved.
//!
//! ```
//! use banister_events::agui::patch;
//! use banister_events::json::Parser;
//! let mut state = serde_json::json!({"steps": ["read"]});
//! let bytes = br#"[{"op": "add", "path": "/steps/-", "value": "write"}, {"op": "remove", "path": "/none"}]"#;
//! let mut parser = Parser::default();
//! let failed = patch::apply(&mut state, parser.parse(bytes)?.root()).unwrap_err();
//! assert_eq!((failed.index, failed.pointer.as_str()), (1, "/none"));
//! assert_eq!(state, serde_json::json!({"steps": ["read"]}));
//! # Ok::<(), banister_events::json::Error>(())
//! ```

use std::borrow::Cow;
use std::mem;

use serde_json::{Map, Value};

use crate::check::shape::quote;
use crate::json::{DEEPEST, View};
use crate::limits::MESSAGE_BYTES;

/// Why a patch could not be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("operation {index} at {}: {reason}", quote(pointer))]
pub struct PatchError {
    /// Which operation failed, from 0.
    pub index: usize,
    /// The pointer that it failed at.
    pub pointer: String,
    /// What is wrong there.
    pub reason: Reason,
}

/// What is wrong with an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// A field is missing, or the operation is not known.
    #[error("this is no operation of a patch")]
    Operation,
    /// The pointer is not written as pointers are.
    #[error("the pointer is malformed")]
    Pointer,
    /// The pointer leads to a prototype.
    #[error("a prototype must not be touched")]
    Prototype,
    /// The pointer leads nowhere.
    #[error("nothing is there")]
    Missing,
    /// The array has no such place.
    #[error("the array has no such place")]
    Index,
    /// The value is not the one that was expected.
    #[error("another value is there")]
    Differs,
    /// A value would be moved into itself.
    #[error("a value cannot be moved into itself")]
    Itself,
    /// The document would be nested too deep.
    #[error("the document would be nested too deep")]
    Depth,
    /// More would be copied, shifted or looked through than anybody should wait for.
    #[error("too much would be copied or shifted")]
    Size,
}

/// How many values one patch may shift or look through.
const WORK: usize = 32 << 20;

/// What a value weighs besides its text, about as much as it takes in memory.
const NODE: usize = size_of::<Value>();

/// Applies all operations of a patch, or none of them.
pub fn apply(document: &mut Value, patch: View<'_>) -> Result<(), PatchError> {
    let mut copies = MESSAGE_BYTES;
    apply_within(document, patch, &mut copies)
}

/// [`apply`], with how much may still be copied: a few bytes that copy the document into itself, again and again, are
/// not to fill the memory.
pub(crate) fn apply_within(
    document: &mut Value,
    patch: View<'_>,
    copies: &mut usize,
) -> Result<(), PatchError> {
    if !patch.is_array() {
        return Err(PatchError { index: 0, pointer: String::new(), reason: Reason::Operation });
    }
    let mut log = Vec::new();
    let mut budget = Budget { copies, work: WORK };
    for (index, operation) in patch.items().enumerate() {
        match perform(document, operation, &mut budget) {
            Ok(undo) => log.extend(undo),
            Err((pointer, reason)) => {
                for undo in log.into_iter().rev() {
                    undo.perform(document);
                }
                return Err(PatchError { index, pointer: pointer.into_owned(), reason });
            }
        }
    }
    Ok(())
}

/// What a patch may still do.
struct Budget<'b> {
    copies: &'b mut usize,
    work: usize,
}

impl Budget<'_> {
    fn work(&mut self, values: usize) -> Result<(), Reason> {
        self.work = self.work.checked_sub(values).ok_or(Reason::Size)?;
        Ok(())
    }

    /// Looks how high a value is, where that has a price.
    fn height(&mut self, value: &Value) -> Result<usize, Reason> {
        self.work(1)?;
        let mut highest = 0;
        match value {
            Value::Object(map) => {
                for value in map.values() {
                    highest = self.height(value)?.max(highest);
                }
            }
            Value::Array(items) => {
                for value in items {
                    highest = self.height(value)?.max(highest);
                }
            }
            _ => return Ok(0),
        }
        Ok(1 + highest)
    }

    /// Makes an array shift what stands from a place on.
    fn shift(&mut self, items: &[Value], place: usize) -> Result<(), Reason> {
        self.work(items.len().saturating_sub(place))
    }
}

type Failed<'a> = (Cow<'a, str>, Reason);

/// Applies one operation, and says how to undo it; an operation that fails has changed nothing.
fn perform<'a>(
    document: &mut Value,
    operation: View<'a>,
    budget: &mut Budget<'_>,
) -> Result<Option<Undo<'a>>, Failed<'a>> {
    let field = |name| operation.get(name).ok_or((Cow::Borrowed(""), Reason::Operation));
    let at = Pointer::new(field("path")?)?;
    let failed = |reason| (at.0.clone(), reason);
    match field("op")?.as_str().as_deref() {
        Some("add") => {
            let value = field("value")?.to_value();
            at.holds(height(&value)).map_err(failed)?;
            let place = PatchTarget::find(document, &at, budget).map_err(failed)?;
            let replaced = place.put(value);
            Ok(Some(Undo::Put { at, replaced }))
        }
        Some("replace") => {
            let value = field("value")?.to_value();
            at.holds(height(&value)).map_err(failed)?;
            let there = at.find(document).ok_or_else(|| failed(Reason::Missing))?;
            let replaced = Some(mem::replace(there, value));
            Ok(Some(Undo::Put { at, replaced }))
        }
        Some("remove") => {
            let (value, filler) = take(document, &at, budget).map_err(failed)?;
            Ok(Some(Undo::Take { at, value, filler }))
        }
        Some("test") => {
            let value = field("value")?;
            let there = at.find(document).ok_or_else(|| failed(Reason::Missing))?;
            if same(there, value) { Ok(None) } else { Err(failed(Reason::Differs)) }
        }
        Some("copy") => {
            let from = Pointer::new(field("from")?)?;
            let there = from.find(document).ok_or_else(|| (from.0.clone(), Reason::Missing))?;
            let before = *budget.copies;
            afford(there, budget.copies).ok_or_else(|| {
                *budget.copies = before;
                failed(Reason::Size)
            })?;
            at.holds(height(there)).map_err(failed)?;
            let value = there.clone();
            let place = PatchTarget::find(document, &at, budget).map_err(failed)?;
            let replaced = place.put(value);
            Ok(Some(Undo::Put { at, replaced }))
        }
        Some("move") => {
            let from = Pointer::new(field("from")?)?;
            let there = from.find(document).ok_or_else(|| (from.0.clone(), Reason::Missing))?;
            if from.0 == at.0 {
                return Ok(None);
            }
            if at.is_within(&from) {
                return Err(failed(Reason::Itself));
            }
            if at.depth() > from.depth() {
                let height = budget.height(there).map_err(failed)?;
                at.holds(height).map_err(failed)?;
            }
            let (value, filler) = take(document, &from, budget).map_err(failed)?;
            match PatchTarget::find(document, &at, budget) {
                Ok(place) => {
                    let replaced = place.put(value);
                    Ok(Some(Undo::Move { from, filler, at, replaced }))
                }
                Err(reason) => {
                    untake(document, &from, value, filler);
                    Err(failed(reason))
                }
            }
        }
        _ => Err(failed(Reason::Operation)),
    }
}

/// A pointer that is well-formed and touches no prototype.
#[derive(Debug, Clone)]
struct Pointer<'a>(Cow<'a, str>);

impl<'a> Pointer<'a> {
    fn new(text: View<'a>) -> Result<Self, Failed<'a>> {
        let text = text.as_str().ok_or((Cow::Borrowed(""), Reason::Pointer))?;
        let escaped = text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
        if !(text.is_empty() || text.starts_with('/')) || !escaped {
            return Err((text, Reason::Pointer));
        }
        let mut before = "";
        for token in text.split('/') {
            if token == "__proto__" || (token == "prototype" && before == "constructor") {
                return Err((text, Reason::Prototype));
            }
            before = token;
        }
        Ok(Self(text))
    }

    /// The value it leads to.
    fn find<'v>(&self, document: &'v mut Value) -> Option<&'v mut Value> {
        find(document, &self.0)
    }

    /// The pointer to what contains the value, and the value's name there; none of the whole document.
    fn split(&self) -> Option<(&str, Cow<'_, str>)> {
        let (parent, name) = self.0.rsplit_once('/')?;
        Some((parent, unescape(name)))
    }

    fn depth(&self) -> usize {
        self.0.matches('/').count()
    }

    /// Whether something of this height may stand there.
    fn holds(&self, height: usize) -> Result<(), Reason> {
        if self.depth() + height > DEEPEST { Err(Reason::Depth) } else { Ok(()) }
    }

    fn is_within(&self, outer: &Pointer<'_>) -> bool {
        self.0.strip_prefix(&*outer.0).is_some_and(|rest| rest.starts_with('/'))
    }
}

fn unescape(token: &str) -> Cow<'_, str> {
    if token.contains('~') {
        Cow::Owned(token.replace("~1", "/").replace("~0", "~"))
    } else {
        Cow::Borrowed(token)
    }
}

fn find<'v>(document: &'v mut Value, pointer: &str) -> Option<&'v mut Value> {
    pointer.split('/').skip(1).try_fold(document, |value, token| match value {
        Value::Object(map) => map.get_mut(&*unescape(token)),
        Value::Array(items) => items.get_mut(index(token)?),
        _ => None,
    })
}

/// An index as the RFC writes it: no sign, no leading zeros.
fn index(token: &str) -> Option<usize> {
    let plain = token == "0" || token.starts_with(|first: char| matches!(first, '1'..='9'));
    if plain { token.parse().ok() } else { None }
}

/// Where a value can be put.
enum PatchTarget<'v> {
    Root(&'v mut Value),
    Member(&'v mut Map<String, Value>, String),
    Element(&'v mut Vec<Value>, usize),
}

impl<'v> PatchTarget<'v> {
    fn find(
        document: &'v mut Value,
        at: &Pointer<'_>,
        budget: &mut Budget<'_>,
    ) -> Result<Self, Reason> {
        let Some((parent, name)) = at.split() else { return Ok(Self::Root(document)) };
        match find(document, parent).ok_or(Reason::Missing)? {
            Value::Object(map) => Ok(Self::Member(map, name.into_owned())),
            Value::Array(items) => {
                let end = items.len();
                let place = if name == "-" { Some(end) } else { index(&name) };
                let place = place.filter(|place| *place <= end).ok_or(Reason::Index)?;
                budget.shift(items, place)?;
                Ok(Self::Element(items, place))
            }
            _ => Err(Reason::Missing),
        }
    }

    /// Puts a value there, and returns the one that had to go.
    fn put(self, value: Value) -> Option<Value> {
        match self {
            Self::Root(root) => Some(mem::replace(root, value)),
            Self::Member(map, name) => map.insert(name, value),
            Self::Element(items, place) => {
                items.insert(place, value);
                None
            }
        }
    }
}

/// Takes a value out, and tells which key took the place of its own.
fn take(
    document: &mut Value,
    at: &Pointer<'_>,
    budget: &mut Budget<'_>,
) -> Result<(Value, Option<String>), Reason> {
    let Some((parent, name)) = at.split() else { return Ok((document.take(), None)) };
    match find(document, parent).ok_or(Reason::Missing)? {
        Value::Object(map) if map.contains_key(&*name) => {
            let filler = map.keys().next_back().filter(|last| **last != name).cloned();
            // Closing the gap instead would touch every key behind it.
            Ok((map.swap_remove(&*name).unwrap_or_default(), filler))
        }
        Value::Array(items) => {
            let place = index(&name).filter(|place| *place < items.len()).ok_or(Reason::Index)?;
            budget.shift(items, place)?;
            Ok((items.remove(place), None))
        }
        _ => Err(Reason::Missing),
    }
}

/// How an operation is undone. The document is as the operation left it, so its pointers lead to the same places.
enum Undo<'a> {
    Put { at: Pointer<'a>, replaced: Option<Value> },
    Take { at: Pointer<'a>, value: Value, filler: Option<String> },
    Move { from: Pointer<'a>, filler: Option<String>, at: Pointer<'a>, replaced: Option<Value> },
}

impl Undo<'_> {
    fn perform(self, document: &mut Value) {
        match self {
            Self::Put { at, replaced } => drop(unput(document, &at, replaced)),
            Self::Take { at, value, filler } => untake(document, &at, value, filler),
            Self::Move { from, filler, at, replaced } => {
                let value = unput(document, &at, replaced);
                untake(document, &from, value, filler);
            }
        }
    }
}

fn unput(document: &mut Value, at: &Pointer<'_>, replaced: Option<Value>) -> Value {
    if let Some(replaced) = replaced {
        return at.find(document).map(|there| mem::replace(there, replaced)).unwrap_or_default();
    }
    let Some((parent, name)) = at.split() else { return Value::Null };
    match find(document, parent) {
        // What was put last is the last key, so none takes its place.
        Some(Value::Object(map)) => map.swap_remove(&*name),
        Some(Value::Array(items)) => match index(&name).filter(|place| *place < items.len()) {
            Some(place) => Some(items.remove(place)),
            None => items.pop(),
        },
        _ => None,
    }
    .unwrap_or_default()
}

fn untake(document: &mut Value, at: &Pointer<'_>, value: Value, filler: Option<String>) {
    let Some((parent, name)) = at.split() else {
        *document = value;
        return;
    };
    match find(document, parent) {
        Some(Value::Object(map)) => restore(map, name.into_owned(), value, filler),
        Some(Value::Array(items)) => {
            let place = index(&name).unwrap_or_default().min(items.len());
            items.insert(place, value);
        }
        _ => {}
    }
}

/// Puts a key back to where it was, and the key that took its place back to the end.
fn restore(map: &mut Map<String, Value>, name: String, value: Value, filler: Option<String>) {
    let Some(filler) = filler else {
        map.insert(name, value);
        return;
    };
    // The last key takes the filler's place, the name takes the last key's, and both go back to the end.
    let last = map.keys().next_back().filter(|last| **last != filler).cloned();
    let filling = map.swap_remove(&filler).unwrap_or_default();
    map.insert(name, value);
    if let Some(last) = last {
        let value = map.swap_remove(&last).unwrap_or_default();
        map.insert(last, value);
    }
    map.insert(filler, filling);
}

/// How deep arrays and objects are nested in a value.
fn height(value: &Value) -> usize {
    match value {
        Value::Object(map) => 1 + map.values().map(height).max().unwrap_or_default(),
        Value::Array(items) => 1 + items.iter().map(height).max().unwrap_or_default(),
        _ => 0,
    }
}

/// Takes what a value weighs from the budget: about the bytes it takes in memory.
fn afford(value: &Value, budget: &mut usize) -> Option<()> {
    let own = match value {
        Value::String(text) => text.len(),
        Value::Object(map) => map.keys().map(String::len).sum(),
        _ => 0,
    };
    *budget = budget.checked_sub(own + NODE)?;
    match value {
        Value::Object(map) => map.values().try_for_each(|value| afford(value, budget)),
        Value::Array(items) => items.iter().try_for_each(|value| afford(value, budget)),
        _ => Some(()),
    }
}

/// Whether both are the same value: numbers by what they are worth, objects in whatever order.
fn same(value: &Value, view: View<'_>) -> bool {
    match value {
        Value::Null => view.is_null(),
        Value::Bool(truth) => view.as_bool() == Some(*truth),
        Value::String(text) => view.is(text),
        Value::Number(number) => {
            let whole = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
            let other = view.as_i64().map(i128::from).or(view.as_u64().map(i128::from));
            match (whole, other) {
                (Some(own), Some(other)) => own == other,
                _ => view.as_f64().is_some() && view.as_f64() == number.as_f64(),
            }
        }
        Value::Array(items) => {
            view.is_array()
                && view.items().count() == items.len()
                && items.iter().zip(view.items()).all(|(item, other)| same(item, other))
        }
        Value::Object(map) => {
            // A name that stands again further down does not count, and is no string.
            let names = || view.entries().filter(|(name, _)| name.is_string());
            view.is_object()
                && names().count() == map.len()
                && names().all(|(name, other)| {
                    let own = name.as_str().and_then(|name| map.get(&*name));
                    own.is_some_and(|own| same(own, other))
                })
        }
    }
}

#[cfg(test)]
#[path = "patch_tests.rs"]
mod tests;
