//! The messages in their order, and where ids and calls stand in it.
//!
//! Nothing here looks through the history: messages and calls are found by id, results are inserted where the run of
//! results ends, and a snapshot touches what it names or drops. An id that stands at several places costs a look at
//! each of them when the first goes.

use std::collections::{HashMap, HashSet};

use super::message::{Call, Kind, Message};
use super::order::{Order, Slot};
use super::places::Places;
use crate::check::recent::Seed;
use crate::limits::MESSAGE_BYTES;

type Slots = HashSet<Slot, Seed>;

/// The messages of a conversation.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    order: Order,
    held: Vec<Option<HistoryEntry>>,
    ids: Places<Slot>,
    calls: Places<(Slot, usize)>,
    /// Messages that a snapshot drops unless it names them.
    plain: Slots,
    reasoning: Slots,
    activities: HashMap<Box<str>, Slots, Seed>,
    /// How many messages were passed on the way to the end of a run of results.
    #[cfg(test)]
    pub(super) passed: usize,
}

#[derive(Debug, Clone)]
struct HistoryEntry {
    message: Message,
    /// Of a result: the message whose results it is among.
    head: Slot,
    /// Of a message that carries calls: the last result that is known to follow it, with nothing but results between.
    tail: Slot,
}

/// Which activities a snapshot drops unless it names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Owned {
    /// All, if it has any activity itself.
    Inferred,
    All,
    Types(Vec<String>),
}

impl History {
    pub(super) fn find(&self, id: &str) -> Option<Slot> {
        self.ids.first(id)
    }

    pub(super) fn get(&self, slot: Slot) -> Option<&Message> {
        self.held.get(slot as usize)?.as_ref().map(|held| &held.message)
    }

    /// A message to change; its id, role, calls and type of activity must stay.
    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut Message> {
        self.held_mut(slot).map(|held| &mut held.message)
    }

    /// The message that carries a call.
    pub(super) fn carrier(&self, call: &str) -> Option<Slot> {
        self.calls.first(call).map(|(slot, _)| slot)
    }

    /// A call to change, and the message that carries it; its id must stay.
    pub(super) fn call_mut(&mut self, id: &str) -> Option<(Slot, &mut Call)> {
        let (slot, index) = self.calls.first(id)?;
        let call = self.get_mut(slot)?.calls.as_mut()?.get_mut(index)?;
        Some((slot, call))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Message> {
        self.order.iter().filter_map(|slot| self.get(slot))
    }

    /// Adds a message at the end.
    pub(super) fn push(&mut self, message: Message) -> Slot {
        let slot = self.order.push();
        self.place(slot, slot, message);
        slot
    }

    /// Adds a message after another one and the results that follow it.
    pub(super) fn answer(&mut self, carrier: Slot, message: Message) -> Slot {
        let mut tail = self.held_mut(carrier).map_or(carrier, |held| held.tail);
        while let Some(next) = self.order.next(tail)
            && let Some(held) = self.held_mut(next)
            && held.message.kind == Kind::Tool
        {
            held.head = carrier;
            tail = next;
            #[cfg(test)]
            {
                self.passed += 1;
            }
        }
        let slot = self.order.insert_after(tail);
        self.place(slot, carrier, message);
        if let Some(held) = self.held_mut(carrier) {
            held.tail = slot;
        }
        slot
    }

    /// Gives a message one more call.
    pub(super) fn carry(&mut self, slot: Slot, call: Call) {
        let Some(message) = self.get_mut(slot) else { return };
        let calls = message.calls.get_or_insert_default();
        let (id, index) = (call.id.clone(), calls.len());
        calls.push(call);
        self.add_call(&id, (slot, index));
    }

    /// Puts another message with the same id in the place of one.
    pub(super) fn replace(&mut self, slot: Slot, message: Message) {
        if let Some(old) = self.swap(slot, message) {
            self.settle_calls(&old);
            self.index_calls(slot, Some(&old));
        }
    }

    /// Changes what kind of activity a message shows.
    pub(super) fn retype(&mut self, slot: Slot, activity: &str) {
        if self.get(slot).is_some_and(|message| message.activity() != activity) {
            self.delist(slot);
            if let Some(message) = self.get_mut(slot) {
                message.set("activityType", Some(activity));
            }
            self.enlist(slot);
        }
    }

    /// Takes over a snapshot: messages with what each of them weighs. Says how many copies of a message with an id
    /// that stands at several places were left out, because together they would weigh too much.
    pub(super) fn reconcile(&mut self, snapshot: Vec<(Message, usize)>, owned: &Owned) -> usize {
        let latest: HashMap<Box<str>, usize, Seed> = snapshot
            .iter()
            .enumerate()
            .map(|(index, (message, _))| (message.id.clone(), index))
            .collect();
        let mut gone: Vec<Message> = Vec::new();
        for slot in self.droppable(&snapshot, owned) {
            if self.get(slot).is_some_and(|message| !latest.contains_key(&message.id)) {
                gone.extend(self.remove(slot));
            }
        }
        for message in &gone {
            self.settle_id(&message.id);
        }

        let (mut budget, mut left_out) = (MESSAGE_BYTES, 0);
        let (mut swapped, mut new) = (Vec::new(), Vec::new());
        for (index, (message, weight)) in snapshot.into_iter().enumerate() {
            if self.find(&message.id).is_none() {
                new.push(message);
                continue;
            }
            if latest.get(&message.id) != Some(&index) {
                continue;
            }
            let mut slots: Vec<Slot> =
                self.ids.all(&message.id).filter(|slot| self.is_at(*slot, &message.id)).collect();
            slots.sort_by_key(|slot| self.order.label(*slot));
            slots.dedup();
            for slot in slots.iter().skip(1) {
                if let Some(left) = budget.checked_sub(weight) {
                    budget = left;
                    swapped.extend(self.swap(*slot, message.clone()).map(|old| (*slot, old)));
                } else {
                    left_out += 1;
                    gone.extend(self.remove(*slot));
                }
            }
            if let Some(slot) = slots.first() {
                swapped.extend(self.swap(*slot, message).map(|old| (*slot, old)));
            }
        }
        // Only when every message is what it will be is it clear where a call stands first.
        for message in gone.iter().chain(swapped.iter().map(|(_, old)| old)) {
            self.settle_calls(message);
        }
        for (slot, old) in &swapped {
            self.index_calls(*slot, Some(old));
        }
        for message in new {
            self.push(message);
        }
        left_out
    }

    /// The messages that a snapshot drops unless it names them.
    fn droppable(&self, snapshot: &[(Message, usize)], owned: &Owned) -> Vec<Slot> {
        let has = |kind| snapshot.iter().any(|(message, _)| message.kind == kind);
        let mut slots: Vec<Slot> = self.plain.iter().copied().collect();
        if has(Kind::Reasoning) {
            slots.extend(&self.reasoning);
        }
        match owned {
            Owned::Inferred if !has(Kind::Activity) => {}
            Owned::Inferred | Owned::All => slots.extend(self.activities.values().flatten()),
            Owned::Types(types) => {
                let owned = types.iter().filter_map(|kind| self.activities.get(kind.as_str()));
                slots.extend(owned.flatten());
            }
        }
        slots
    }

    fn held_mut(&mut self, slot: Slot) -> Option<&mut HistoryEntry> {
        self.held.get_mut(slot as usize)?.as_mut()
    }

    fn is_at(&self, slot: Slot, id: &str) -> bool {
        self.get(slot).is_some_and(|message| *message.id == *id)
    }

    fn place(&mut self, slot: Slot, head: Slot, message: Message) {
        let id = message.id.clone();
        let new = Some(HistoryEntry { message, head, tail: slot });
        match self.held.get_mut(slot as usize) {
            Some(free) => *free = new,
            None => self.held.push(new),
        }
        self.enlist(slot);
        let order = &self.order;
        self.ids.add(&id, slot, |new, first| order.label(new) < order.label(first));
        self.index_calls(slot, None);
    }

    fn remove(&mut self, slot: Slot) -> Option<Message> {
        self.delist(slot);
        let before = self.order.previous(slot);
        let held = self.held.get_mut(slot as usize)?.take()?;
        if let Some(head) = self.held_mut(held.head)
            && head.tail == slot
        {
            head.tail = before.unwrap_or(held.head);
        }
        self.order.remove(slot);
        Some(held.message)
    }

    /// Puts a message in the place of another one; what is known about calls is not put right.
    fn swap(&mut self, slot: Slot, message: Message) -> Option<Message> {
        self.delist(slot);
        let kind = message.kind;
        let held = self.held_mut(slot)?;
        let old = std::mem::replace(&mut held.message, message);
        if kind != Kind::Assistant {
            held.tail = slot;
        }
        if old.kind == Kind::Tool && kind != Kind::Tool {
            self.cut(slot);
        }
        self.enlist(slot);
        Some(old)
    }

    /// Ends the run of results that a message was among, as it is none any more.
    fn cut(&mut self, slot: Slot) {
        let Some(head) = self.held_mut(slot).map(|held| held.head) else { return };
        let Some(tail) = self.held_mut(head).map(|held| held.tail) else { return };
        let label = self.order.label(slot);
        let known = self.order.label(head) < label && label <= self.order.label(tail);
        let before = self.order.previous(slot);
        if let (true, Some(before), Some(held)) = (known, before, self.held_mut(head)) {
            held.tail = before;
        }
    }

    fn enlist(&mut self, slot: Slot) {
        let Some(message) = self.held.get(slot as usize).and_then(Option::as_ref) else { return };
        let message = &message.message;
        match message.kind {
            Kind::Activity => match self.activities.get_mut(message.activity()) {
                Some(slots) => slots.insert(slot),
                None => self.activities.entry(message.activity().into()).or_default().insert(slot),
            },
            Kind::Reasoning => self.reasoning.insert(slot),
            _ => self.plain.insert(slot),
        };
    }

    fn delist(&mut self, slot: Slot) {
        let Some(message) = self.held.get(slot as usize).and_then(Option::as_ref) else { return };
        let message = &message.message;
        match message.kind {
            Kind::Activity => {
                if let Some(slots) = self.activities.get_mut(message.activity()) {
                    slots.remove(&slot);
                    if slots.is_empty() {
                        self.activities.remove(message.activity());
                    }
                }
            }
            Kind::Reasoning => drop(self.reasoning.remove(&slot)),
            _ => drop(self.plain.remove(&slot)),
        }
    }

    fn settle_id(&mut self, id: &str) {
        let (order, held) = (&self.order, &self.held);
        self.ids.settle(id, |slot| {
            let there = held.get(slot as usize)?.as_ref()?;
            (*there.message.id == *id).then(|| order.label(slot))
        });
    }

    /// Sees to it that the calls of a message that is gone are found where else they stand.
    fn settle_calls(&mut self, gone: &Message) {
        let (order, held) = (&self.order, &self.held);
        for call in gone.calls() {
            self.calls.settle(&call.id, |(slot, index)| {
                let there = held.get(slot as usize)?.as_ref()?.message.calls().get(index)?;
                (there.id == call.id).then(|| (order.label(slot), index))
            });
        }
    }

    /// Makes the calls of a message known, but for those that stood at the same place before.
    fn index_calls(&mut self, slot: Slot, old: Option<&Message>) {
        let old = old.map(Message::calls).unwrap_or_default();
        let new = self.get(slot).map(Message::calls).unwrap_or_default();
        let same = |index: usize, id: &str| old.get(index).is_some_and(|call| *call.id == *id);
        let added: Vec<(Box<str>, usize)> = new
            .iter()
            .enumerate()
            .filter(|(index, call)| !same(*index, &call.id))
            .map(|(index, call)| (call.id.clone(), index))
            .collect();
        for (id, index) in added {
            self.add_call(&id, (slot, index));
        }
    }

    fn add_call(&mut self, id: &str, place: (Slot, usize)) {
        let order = &self.order;
        let label = |(slot, index)| (order.label(slot), index);
        self.calls.add(id, place, |new, first| label(new) < label(first));
    }
}
