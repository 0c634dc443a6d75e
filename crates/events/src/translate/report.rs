//! What a translation cost.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::measure::WIRE;
use super::table::{Fate, Row, Table};
use super::{Note, NoteKind, Source};
use crate::event::Protocol;
use crate::json::View;
use crate::written::short;

/// How many different things of a kind are told apart; the rest is counted together.
const KINDS: usize = 1_000;

/// What a translation cost: which fields left no trace, what the writer left out or had to add.
#[derive(Debug)]
pub struct Report {
    /// What was read: a protocol's name, or `hook:AGENT`.
    pub from: String,
    /// What was written.
    pub to: Protocol,
    /// How many messages were read.
    pub messages: u64,
    /// How many events were written.
    pub events: u64,
    /// The protocol that was read, and whether facts travel along.
    read: Option<(Protocol, bool)>,
    /// The types that came, by name.
    types: Vec<(&'static str, LostFields)>,
    /// The place of the type that came last: it is likely to come again.
    recent: usize,
    unknown: BTreeMap<(String, String), u64>,
    notes: BTreeMap<Note, u64>,
    more: u64,
    unreadable: Vec<(u64, String)>,
    unreadable_count: u64,
}

/// The fields of one type.
#[derive(Debug, Default)]
struct LostFields {
    /// What stands at the top level, and the places in `lost` of what is lost in it.
    known: Vec<(&'static str, Vec<usize>)>,
    /// What is lost: its path, the steps of it below the top level, and how often it was there.
    lost: Vec<(&'static str, Vec<&'static str>, u64)>,
    /// The places in `known` of the fields of the last message: the next has them in the same order.
    order: Vec<usize>,
}

impl Report {
    pub(super) fn new(source: Source<'_>, to: Protocol, carries: bool) -> Self {
        let (from, read) = match source {
            Source::Protocol(from) => (from.name().to_owned(), Some((from, carries))),
            Source::Hook { mapping, .. } => (format!("hook:{}", mapping.name), None),
        };
        Self {
            from,
            to,
            messages: 0,
            events: 0,
            read,
            types: Vec::new(),
            recent: 0,
            unknown: BTreeMap::new(),
            notes: BTreeMap::new(),
            more: 0,
            unreadable: Vec::new(),
            unreadable_count: 0,
        }
    }

    /// Counts the fields of an event that its translation does not tell.
    pub(super) fn count(&mut self, kind: &str, event: View<'_>) {
        if self.types.get(self.recent).is_none_or(|(known, _)| *known != kind) {
            self.recent = match self.types.binary_search_by_key(&kind, |(known, _)| *known) {
                Ok(at) => at,
                Err(at) => {
                    let Some((from, carries)) = self.read else { return };
                    let row = Table::builtin().entry(from, kind, self.to);
                    let Some((kind, row)) = row else { return };
                    self.types.insert(at, (kind, LostFields::of(row, carries)));
                    at
                }
            };
        }
        let Some((_, fields)) = self.types.get_mut(self.recent) else { return };
        for (place, (name, value)) in event.entries().enumerate() {
            if let Some(at) = fields.find(place, name) {
                fields.count(at, value);
            } else if self.unknown.len() < KINDS {
                let name = format!("/{}", name.as_str().unwrap_or_default());
                *self.unknown.entry((kind.to_owned(), name)).or_default() += 1;
            }
        }
    }

    pub(super) fn noted(&mut self, (notes, more): (Vec<Note>, u64)) {
        self.more += more;
        for note in notes {
            if let Some(count) = self.notes.get_mut(&note) {
                *count += 1;
            } else if self.notes.len() < KINDS {
                self.notes.insert(note, 1);
            } else {
                self.more += 1;
            }
        }
    }

    pub(super) fn unreadable(&mut self, message: u64, why: &str) {
        self.unreadable_count += 1;
        if self.unreadable.len() < KINDS {
            self.unreadable.push((message, why.to_owned()));
        }
    }

    /// The fields that left no trace: type, field, how often.
    pub fn lost(&self) -> impl Iterator<Item = (&str, &str, u64)> {
        let known = self.types.iter().flat_map(|(kind, fields)| {
            let lost = fields.lost.iter().filter(|(_, _, count)| *count > 0);
            lost.map(|(field, _, count)| (*kind, *field, *count))
        });
        known.chain(
            self.unknown.iter().map(|((kind, name), count)| (kind.as_str(), name.as_str(), *count)),
        )
    }

    /// What the writer did that nobody told it to: what, to what, how often.
    pub fn notes(&self) -> impl Iterator<Item = (NoteKind, &str, u64)> {
        self.notes.iter().map(|(note, count)| (note.kind, note.about.as_str(), *count))
    }

    /// The messages that could not be read: number and reason, and how many there were in all.
    pub fn unread(&self) -> (&[(u64, String)], u64) {
        (&self.unreadable, self.unreadable_count)
    }

    /// Whether nothing was lost and nothing added.
    pub fn is_clean(&self) -> bool {
        self.lost().next().is_none() && self.notes.is_empty() && self.unreadable_count == 0
    }

    /// The report as JSON.
    pub fn to_json(&self) -> Value {
        let lost: Vec<Value> = self
            .lost()
            .map(|(kind, field, count)| json!({ "type": kind, "field": field, "count": count }))
            .collect();
        let notes: Vec<Value> = self
            .notes()
            .map(|(kind, about, count)| json!({ "kind": kind, "about": about, "count": count }))
            .collect();
        let unreadable: Vec<Value> = self
            .unreadable
            .iter()
            .map(|(message, why)| json!({ "message": message, "reason": why }))
            .collect();
        json!({
            "schema": "banister.translation/v1",
            "from": self.from,
            "to": self.to,
            "messages": self.messages,
            "events": self.events,
            "lost": lost,
            "notes": notes,
            "more_notes": self.more,
            "unreadable": unreadable,
            "unreadable_count": self.unreadable_count,
        })
    }
}

/// The name in the table of a message.
pub(super) fn kind(event: View<'_>) -> Cow<'_, str> {
    match event.get("type").and_then(View::as_str) {
        Some(Cow::Borrowed(kind)) => Cow::Borrowed(short(kind)),
        Some(Cow::Owned(kind)) => Cow::Owned(short(&kind).to_owned()),
        None if event.get("request_event_id").is_some() => Cow::Borrowed("response"),
        None => Cow::Borrowed("RunAgentInput"),
    }
}

impl LostFields {
    /// The place in `known` of a name that stands at this place of a message.
    fn find(&mut self, place: usize, name: View<'_>) -> Option<usize> {
        let plain = name.plain();
        let is_it = |(known, _): &(&str, Vec<usize>)| match plain {
            Some(name) => name == known.as_bytes(),
            None => name.is(known),
        };
        if let Some(at) = self.order.get(place).copied()
            && self.known.get(at).is_some_and(is_it)
        {
            return Some(at);
        }
        let at = self.known.iter().position(is_it)?;
        if let Some(known) = self.order.get_mut(place) {
            *known = at;
        } else if self.order.len() == place {
            self.order.push(at);
        }
        Some(at)
    }

    /// Counts what is lost of a field that is there.
    fn count(&mut self, at: usize, value: View<'_>) {
        for lost in self.known.get(at).into_iter().flat_map(|(_, lost)| lost) {
            if let Some((_, path, count)) = self.lost.get_mut(*lost)
                && present(value, path)
            {
                *count += 1;
            }
        }
    }

    fn of(row: &'static Row, carries: bool) -> Self {
        let is_lost =
            |path: &String, fate: Fate| fate == Fate::Lost || !carries && row.rest.contains(path);
        let lost = row.fields.iter().filter(|(path, fate)| is_lost(path, **fate));
        let lost: Vec<(&str, Vec<&str>, u64)> =
            lost.map(|(path, _)| (path.as_str(), path.split('/').skip(2).collect(), 0)).collect();
        let top = |path: &'static str| path.split('/').nth(1);
        let mut names: Vec<&str> = row.fields.keys().filter_map(|path| top(path)).collect();
        names.dedup();
        names.extend(WIRE);
        let inside = |name: &str| {
            let lost = lost.iter().enumerate().filter(|(_, (path, _, _))| top(path) == Some(name));
            lost.map(|(at, _)| at).collect()
        };
        let known = names.into_iter().map(|name| (name, inside(name))).collect();
        Self { known, lost, order: Vec::new() }
    }
}

fn present(at: View<'_>, path: &[&str]) -> bool {
    match path.split_first() {
        None => !at.is_null(),
        Some((&"*", rest)) => at.items().any(|item| present(item, rest)),
        Some((name, rest)) => at.get(name).is_some_and(|inner| present(inner, rest)),
    }
}
