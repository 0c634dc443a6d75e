//! Terms of a subscription: what passes the filters, how fast, and whether an answer honours more than was asked.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::aaep::event::{TYPES_URI, Type, core_name};
use crate::check::shape::quote;
use crate::json::View;

/// Everything that the honoured capabilities allow beyond the requested ones: the capability and what is too much.
///
/// Only what both sides name is compared: what is left out may mean its default or what was agreed before.
pub(super) fn wider(asked: View<'_>, honoured: View<'_>) -> Vec<(&'static str, String)> {
    let lists: [(&str, Same); 4] = [
        ("languages", same_language),
        ("coalesce_boundaries", same),
        ("supported_conformance_levels", same),
        ("supported_extensions", same),
    ];
    // What the wider of the two values is.
    let switches = [
        ("supports_confirmation_reply", true),
        ("supports_clarification_reply", true),
        ("accept_signed_manifests_only", false),
    ];
    let mut wider = Vec::new();
    let both = |name: &str| Some((asked.get(name)?, honoured.get(name)?));
    if let Some((asked, honoured)) = both(RATE)
        && let (Some(limit), Some(rate)) = (asked.as_f64(), honoured.as_f64())
        && rate > limit
    {
        wider.push((RATE, format!("{rate} events a second, where {limit} were asked for")));
    }
    for (name, same) in lists {
        if let Some((asked, honoured)) = both(name)
            && asked.is_array()
            && let Some(extra) =
                honoured.items().find(|entry| !asked.items().any(|known| same(known, *entry)))
        {
            let entry = extra.as_str().unwrap_or(Cow::Borrowed(extra.raw()));
            wider.push((name, format!("{} was not asked for", quote(&entry))));
        }
    }
    for (name, more) in switches {
        if let Some((asked, honoured)) = both(name)
            && asked.as_bool() == Some(!more)
            && honoured.as_bool() == Some(more)
        {
            wider.push((name, format!("{more}, where {} was asked for", !more)));
        }
    }
    if let Some((asked, honoured)) = both(FILTERS)
        && let Some((asked, honoured)) = Filters::read(asked).zip(Filters::read(honoured))
        && let Some(kind) = honoured.or(&asked).lets_pass_beyond(&asked)
    {
        wider.push((FILTERS, format!("{} passes, which was to be left out", quote(kind))));
    }
    wider
}

/// What holds when new capabilities are agreed on beside older ones: what is left out stays as it was (§5.7.1).
pub(super) fn merged(older: &str, newer: View<'_>) -> Option<Box<str>> {
    let mut older: Map<String, Value> = serde_json::from_str(older).ok()?;
    for (name, value) in newer.entries() {
        let name = name.as_str()?;
        match (older.get_mut(&*name), value.to_value()) {
            (Some(Value::Object(inner)), Value::Object(value)) => inner.extend(value),
            (_, value) => {
                older.insert(name.into_owned(), value);
            }
        }
    }
    serde_json::to_string(&older).ok().map(Into::into)
}

/// How many events a second.
pub(super) const RATE: &str = "max_events_per_second";
/// Which types of events.
pub(super) const FILTERS: &str = "event_filters";

/// Whether two entries mean the same.
type Same = fn(View<'_>, View<'_>) -> bool;

fn same(left: View<'_>, right: View<'_>) -> bool {
    match (left.as_f64(), right.as_f64()) {
        (Some(left), Some(right)) => left.total_cmp(&right).is_eq(),
        (None, None) => left.as_str() == right.as_str(),
        _ => false,
    }
}

/// Whether one tag is the other or a region, script or variant of it. AAEP has `en` match `en-US` and the reverse, but
/// does not say which of the two an answer repeats.
fn same_language(left: View<'_>, right: View<'_>) -> bool {
    let (Some(left), Some(right)) = (left.as_str(), right.as_str()) else {
        // A list with something else in it is a matter of its table.
        return true;
    };
    left.split('-').zip(right.split('-')).all(|(left, right)| left.eq_ignore_ascii_case(right))
}

/// How many patterns are looked at for each event; longer lists are not judged.
const PATTERNS: usize = 256;

/// Which event types pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Filters {
    /// None where no list was given: every core type passes.
    include: Option<Vec<Pattern>>,
    exclude: Option<Vec<Pattern>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    Exactly(Box<str>),
    StartingWith(Box<str>),
}

impl Filters {
    /// None where it cannot be told what they mean.
    pub(super) fn read(filters: View<'_>) -> Option<Self> {
        let list = |name: &str| match filters.get(name) {
            None => Some(None),
            Some(list) if list.is_array() => {
                let patterns: Option<Vec<Pattern>> =
                    list.items().take(PATTERNS + 1).map(Pattern::read).collect();
                patterns.filter(|patterns| patterns.len() <= PATTERNS).map(Some)
            }
            Some(_) => None,
        };
        if !filters.is_object() {
            return None;
        }
        // Nobody subscribes to nothing: an empty list is read as none.
        let include = list("include")?.filter(|patterns| !patterns.is_empty());
        Some(Self { include, exclude: list("exclude")? })
    }

    /// Whether a type is left out. Types of extensions are when they are excluded: which ones an extension that was
    /// agreed on brings along is not visible.
    pub(super) fn omit(&self, kind: Option<Type>, name: &str) -> bool {
        let name = compact(name);
        let any = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.fits(&name));
        self.exclude.as_deref().is_some_and(any)
            || kind.is_some() && self.include.as_deref().is_some_and(|list| !any(list))
    }

    /// These, with what they do not say taken from others.
    pub(super) fn or(self, others: &Self) -> Self {
        Self {
            include: self.include.or_else(|| others.include.clone()),
            exclude: self.exclude.or_else(|| others.exclude.clone()),
        }
    }

    /// A core type that these let pass and the others do not. Wider patterns that make no difference are none.
    fn lets_pass_beyond(&self, others: &Self) -> Option<&'static str> {
        Type::ALL
            .into_iter()
            .filter(|kind| !kind.is_critical())
            .find(|kind| {
                let passes = |filters: &Self| !filters.omit(Some(*kind), kind.name());
                passes(self) && !passes(others)
            })
            .map(Type::name)
    }
}

impl Pattern {
    /// None for a pattern that AAEP gives no meaning to.
    fn read(pattern: View<'_>) -> Option<Self> {
        let pattern = pattern.as_str()?;
        match pattern.split_once('*') {
            None => Some(Self::Exactly(compact(&pattern).into())),
            // It would fit core types in one of their two forms only.
            Some((start, "")) if !start.is_empty() && is_cut(start) => None,
            Some((start, "")) => Some(Self::StartingWith(compact(start).into())),
            Some(_) => None,
        }
    }

    fn fits(&self, name: &str) -> bool {
        match self {
            Self::Exactly(pattern) => **pattern == *name,
            Self::StartingWith(start) => name.starts_with(&**start),
        }
    }
}

/// Whether this is the beginning of the URI, but not all of it.
fn is_cut(start: &str) -> bool {
    start.len() < TYPES_URI.len() && TYPES_URI.starts_with(start)
}

/// A type's name as `aaep:name`, whichever way it was written.
fn compact(name: &str) -> Cow<'_, str> {
    match core_name(name) {
        Some(core) if !name.starts_with("aaep:") => Cow::Owned(format!("aaep:{core}")),
        _ => Cow::Borrowed(name),
    }
}

/// A budget of events that fills up smoothly. It is generous: timestamps tell when an event was made, and a producer
/// that holds events back and sends them late is in its right.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    pub(super) rate: i128,
    left: i128,
    newest: Option<i128>,
}

/// What one event costs: with this, an event a second is one unit each nanosecond.
const EVENT: i128 = 1_000_000_000;

impl Budget {
    pub(super) fn new(rate: u32) -> Self {
        let rate = i128::from(rate);
        Self { rate, left: Self::most(rate), newest: None }
    }

    /// What ten seconds bring, and ten events more.
    fn most(rate: i128) -> i128 {
        (10 * rate + 10) * EVENT
    }

    /// Pays for an event; false if there is nothing left to pay with.
    pub(super) fn pay(&mut self, nanos: i128) -> bool {
        let newest = self.newest.map_or(nanos, |newest| newest.max(nanos));
        let passed = newest - self.newest.unwrap_or(newest);
        self.newest = Some(newest);
        let filled = self.left.saturating_add(passed.saturating_mul(self.rate));
        self.left = filled.min(Self::most(self.rate)) - EVENT;
        let paid = self.left >= 0;
        self.left = self.left.max(0);
        paid
    }
}
