//! A list in which a place, once found, is cheap to insert after, and any two places are cheap to compare.
//!
//! Every place has a label that grows along the list. Where no label is free between two neighbours, as few labels as
//! possible around them are spread out again, so that an insertion costs a logarithm of the list's length, amortised.

/// A place in the list. It is valid until it is removed; afterwards it may come to mean another place.
pub(super) type Slot = u32;

/// No place.
const NONE: Slot = Slot::MAX;

/// How far apart the labels of places are that were added at the end.
const APART: u64 = 1 << 31;

/// How much fuller each wider range of labels may be than the next narrower one; between 1 and 2.
const SPARSE: f64 = 1.4;

#[derive(Debug, Clone, Copy)]
struct Node {
    previous: Slot,
    next: Slot,
    label: u64,
}

/// The list.
#[derive(Debug, Clone)]
pub(super) struct Order {
    nodes: Vec<Node>,
    free: Vec<Slot>,
    first: Slot,
    last: Slot,
    /// How many labels were changed, which is what insertions cost.
    #[cfg(test)]
    pub(super) moved: usize,
}

impl Default for Order {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            free: Vec::new(),
            first: NONE,
            last: NONE,
            #[cfg(test)]
            moved: 0,
        }
    }
}

impl Order {
    /// Adds a place at the end.
    pub(super) fn push(&mut self) -> Slot {
        self.insert_after(self.last)
    }

    /// Adds a place right after another one.
    pub(super) fn insert_after(&mut self, before: Slot) -> Slot {
        let next = if before == NONE { self.first } else { self.next_slot(before) };
        let label = self.label_after(before, next);
        let node = Node { previous: before, next, label };
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => Slot::try_from(self.nodes.len()).unwrap_or(NONE),
        };
        match self.node_mut(slot) {
            Some(free) => *free = node,
            None => self.nodes.push(node),
        }
        self.link(before, slot);
        self.link(slot, next);
        slot
    }

    /// Takes a place out of the list.
    pub(super) fn remove(&mut self, slot: Slot) {
        let Some(node) = self.node(slot) else { return };
        self.link(node.previous, node.next);
        self.free.push(slot);
    }

    pub(super) fn next(&self, slot: Slot) -> Option<Slot> {
        Some(self.next_slot(slot)).filter(|slot| *slot != NONE)
    }

    pub(super) fn previous(&self, slot: Slot) -> Option<Slot> {
        self.node(slot).map(|node| node.previous).filter(|slot| *slot != NONE)
    }

    /// What places are compared by, until the next insertion.
    pub(super) fn label(&self, slot: Slot) -> u64 {
        self.node(slot).map_or(u64::MAX, |node| node.label)
    }

    /// All places, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Slot> {
        let first = Some(self.first).filter(|slot| *slot != NONE);
        std::iter::successors(first, |slot| self.next(*slot))
    }

    fn node(&self, slot: Slot) -> Option<Node> {
        self.nodes.get(slot as usize).copied()
    }

    fn node_mut(&mut self, slot: Slot) -> Option<&mut Node> {
        self.nodes.get_mut(slot as usize)
    }

    fn next_slot(&self, slot: Slot) -> Slot {
        self.node(slot).map_or(NONE, |node| node.next)
    }

    fn link(&mut self, before: Slot, after: Slot) {
        match self.node_mut(before) {
            Some(node) => node.next = after,
            None => self.first = after,
        }
        match self.node_mut(after) {
            Some(node) => node.previous = before,
            None => self.last = before,
        }
    }

    /// A label between those of two neighbours.
    fn label_after(&mut self, before: Slot, next: Slot) -> u64 {
        let Some(node) = self.node(before) else {
            return self.node(next).map_or(APART, |node| node.label / 2);
        };
        if next == NONE && node.label < u64::MAX / 2 {
            return node.label + APART;
        }
        if self.label(next) - node.label < 2 {
            self.spread(before);
        }
        let (low, high) = (self.label(before), self.label(next));
        low + (high - low) / 2
    }

    /// Makes room around a place.
    fn spread(&mut self, around: Slot) {
        let label = self.label(around);
        let (mut first, mut last, mut count) = (around, around, 1_u32);
        let mut most = 1.0;
        for bits in 1..u64::BITS {
            most *= SPARSE;
            let low = label >> bits << bits;
            let high = low | ((1 << bits) - 1);
            while let Some(slot) = self.previous(first).filter(|slot| self.label(*slot) >= low) {
                (first, count) = (slot, count + 1);
            }
            while let Some(slot) = self.next(last).filter(|slot| self.label(*slot) <= high) {
                (last, count) = (slot, count + 1);
            }
            if f64::from(count) > most {
                continue;
            }
            let step = (high - low) / u64::from(count);
            let (mut slot, mut label) = (first, low);
            for _ in 0..count {
                #[cfg(test)]
                {
                    self.moved += 1;
                }
                if let Some(node) = self.node_mut(slot) {
                    node.label = label;
                }
                slot = self.next_slot(slot);
                label += step;
            }
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn labels_grow_along_the_list_wherever_places_come_and_go(
            steps in prop::collection::vec((any::<prop::sample::Index>(), 0..4_u8), 1..400),
        ) {
            let (mut order, mut model) = (Order::default(), Vec::new());
            for (at, step) in steps {
                match step {
                    _ if model.is_empty() => model.push(order.push()),
                    0 => model.push(order.push()),
                    1 => order.remove(model.remove(at.index(model.len()))),
                    // The same spot again and again is where labels run out.
                    step => {
                        let at = if step == 2 { 0 } else { at.index(model.len()) };
                        let slot = order.insert_after(model[at]);
                        model.insert(at + 1, slot);
                    }
                }
                prop_assert!(order.iter().eq(model.iter().copied()));
                prop_assert!(order.iter().is_sorted_by(|a, b| order.label(*a) < order.label(*b)));
            }
        }
    }

    #[test]
    fn inserting_at_one_spot_changes_few_labels() {
        let mut order = Order::default();
        let spot = order.push();
        order.push();
        for _ in 0..100_000 {
            order.insert_after(spot);
        }
        assert!(order.moved < 100_000 * 40, "{}", order.moved);
    }
}
