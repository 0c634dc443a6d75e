//! What a reader or a writer remembers, and no more than so much of it: the oldest go first.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use super::REMEMBERED;

/// The newest entries under their ids.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::aep) struct Newest<T> {
    order: VecDeque<String>,
    known: BTreeMap<String, T>,
}

impl<T> Default for Newest<T> {
    fn default() -> Self {
        Self { order: VecDeque::new(), known: BTreeMap::new() }
    }
}

impl<T> Newest<T> {
    pub(in crate::aep) fn contains(&self, id: &str) -> bool {
        self.known.contains_key(id)
    }

    pub(in crate::aep) fn get(&self, id: &str) -> Option<&T> {
        self.known.get(id)
    }

    pub(in crate::aep) fn get_mut(&mut self, id: &str) -> Option<&mut T> {
        self.known.get_mut(id)
    }

    /// Takes an entry in; gives the oldest one back that had to go for it.
    pub(in crate::aep) fn insert(
        &mut self,
        id: &str,
        value: T,
        most: usize,
    ) -> Option<(String, T)> {
        if self.known.insert(id.to_owned(), value).is_none() {
            self.order.push_back(id.to_owned());
        }
        if self.order.len() <= most {
            return None;
        }
        let oldest = self.order.pop_front()?;
        let value = self.known.remove(&oldest)?;
        Some((oldest, value))
    }

    /// Makes an entry the newest; whether there is one.
    pub(in crate::aep) fn renew(&mut self, id: &str) -> bool {
        if !self.known.contains_key(id) {
            return false;
        }
        if self.order.back().is_none_or(|newest| newest != id)
            && let Some(at) = self.order.iter().position(|known| known == id)
            && let Some(known) = self.order.remove(at)
        {
            self.order.push_back(known);
        }
        true
    }

    pub(in crate::aep) fn remove(&mut self, id: &str) -> Option<T> {
        let value = self.known.remove(id)?;
        if let Some(at) = self.order.iter().position(|known| known == id) {
            self.order.remove(at);
        }
        Some(value)
    }

    pub(in crate::aep) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        self.known.retain(|_, value| keep(value));
        self.order.retain(|id| self.known.contains_key(id));
    }

    /// All entries under their ids, in the order of the ids.
    pub(in crate::aep) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.known.iter().map(|(id, value)| (id.as_str(), value))
    }

    /// The newest entry that fits.
    pub(in crate::aep) fn newest(&self, fits: impl Fn(&T) -> bool) -> Option<(&str, &T)> {
        let entries =
            self.order.iter().rev().filter_map(|id| Some((id.as_str(), self.known.get(id)?)));
        entries.into_iter().find(|(_, value)| fits(value))
    }

    /// Takes all out, the oldest first.
    pub(in crate::aep) fn drain(&mut self) -> Vec<(String, T)> {
        let order = std::mem::take(&mut self.order);
        order.into_iter().filter_map(|id| self.known.remove(&id).map(|it| (id, it))).collect()
    }
}

/// Actions that came to an end, the newest ones.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(in crate::aep) struct Closed {
    order: VecDeque<String>,
    known: BTreeSet<String>,
    denied: BTreeSet<String>,
}

impl Closed {
    pub(in crate::aep) fn knows(&self, id: &str) -> bool {
        self.known.contains(id)
    }

    pub(in crate::aep) fn denied(&self, id: &str) -> bool {
        self.denied.contains(id)
    }

    pub(in crate::aep) fn add(&mut self, id: &str, denied: bool) {
        if denied {
            self.denied.insert(id.to_owned());
        }
        if self.known.insert(id.to_owned()) {
            self.order.push_back(id.to_owned());
        }
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
            self.denied.remove(&oldest);
        }
    }
}
