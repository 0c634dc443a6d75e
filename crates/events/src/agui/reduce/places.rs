//! Where an id stands: the first place counts, and an id may stand at several.
//!
//! Whether a place still holds the id is for the caller to say, so that nothing has to be looked for when a place goes.

use std::collections::HashMap;

use crate::check::recent::Seed;

/// The places of every id.
#[derive(Debug, Clone)]
pub(super) struct Places<P> {
    known: HashMap<Box<str>, KnownId<P>, Seed>,
}

#[derive(Debug, Clone)]
struct KnownId<P> {
    first: P,
    /// The other places, in no order; some may not hold the id any more.
    others: Vec<P>,
}

impl<P> Default for Places<P> {
    fn default() -> Self {
        Self { known: HashMap::default() }
    }
}

impl<P: Copy> Places<P> {
    /// The first place of an id.
    pub(super) fn first(&self, id: &str) -> Option<P> {
        self.known.get(id).map(|place| place.first)
    }

    /// All places that an id ever had, the first one first.
    pub(super) fn all(&self, id: &str) -> impl Iterator<Item = P> {
        self.known
            .get(id)
            .into_iter()
            .flat_map(|place| std::iter::once(place.first).chain(place.others.iter().copied()))
    }

    /// Adds a place of an id; `before` says whether one place comes before another.
    pub(super) fn add(&mut self, id: &str, new: P, before: impl FnOnce(P, P) -> bool) {
        match self.known.get_mut(id) {
            Some(place) if before(new, place.first) => {
                place.others.push(std::mem::replace(&mut place.first, new));
            }
            Some(place) => place.others.push(new),
            None => {
                self.known.insert(id.into(), KnownId { first: new, others: Vec::new() });
            }
        }
    }

    /// Sees to it that the first place of an id holds it, if any does; `label` is none of a place that does not.
    pub(super) fn settle<K: Ord>(&mut self, id: &str, label: impl Fn(P) -> Option<K>) {
        let Some(place) = self.known.get_mut(id) else { return };
        if label(place.first).is_some() {
            return;
        }
        place.others.retain(|other| label(*other).is_some());
        let first = place.others.iter().enumerate().min_by_key(|(_, other)| label(**other));
        match first.map(|(index, _)| index) {
            Some(index) => place.first = place.others.swap_remove(index),
            None => {
                self.known.remove(id);
            }
        }
    }
}
