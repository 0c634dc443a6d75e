//! What waits for its turn: in order, merged where that loses nothing.
//!
//! Only output, progress and changes of state are ever merged, and never across another event of their session. Two
//! pieces of one output become one piece. Of two reports of progress in the background the newer one stays. Two
//! changes of state in the background become one, or none where they lead back; a change that enters or leaves
//! `awaiting_input`, or that is more than background, is news in itself and stays.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::aaep::event::Type;
use crate::id;
use crate::limits::AAEP_TEXT_CHARS;

/// How many events wait at most.
pub(super) const HELD_EVENTS: usize = 1_024;

/// How long a merged text may be as JSON, so that its event stays within 64 KiB.
const TEXT_BYTES: usize = 48 * 1024;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Queue {
    held: VecDeque<WaitingEvent>,
    /// How many events were left out because too many waited.
    dropped: u64,
}

/// One event that waits.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct WaitingEvent {
    pub(super) event: Value,
    /// The length of an output's text, in characters and as JSON.
    size: (usize, usize),
}

impl WaitingEvent {
    pub(super) fn new(event: Value) -> Self {
        Self { event, size: (0, 0) }
    }

    fn measure(&mut self) {
        if let Some(chunk) = self.event.get("chunk") {
            let bytes = serde_json::to_string(chunk).map_or(usize::MAX, |text| text.len());
            self.size = (chunk.as_str().map_or(0, |text| text.chars().count()), bytes);
        }
    }

    pub(super) fn text(&self, field: &str) -> &str {
        self.event.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn session(&self) -> &str {
        self.text("session_id")
    }

    pub(super) fn kind(&self) -> Option<Type> {
        Type::parse(self.text("type"))
    }

    pub(super) fn is_background(&self) -> bool {
        self.text("urgency") == "background"
    }

    pub(super) fn is_critical(&self) -> bool {
        self.text("urgency") == "critical"
    }

    /// Whether it enters or leaves a wait: people learn from it that they are asked, and how that ended.
    pub(super) fn is_about_waiting(&self) -> bool {
        ["from_state", "to_state"].iter().any(|field| self.text(field) == "awaiting_input")
    }

    fn can_merge(&self) -> bool {
        matches!(
            self.kind(),
            Some(Type::OutputStreaming | Type::ProgressUpdated | Type::StateChanged)
        )
    }

    fn set(&mut self, field: &str, value: Value) {
        if let Some(fields) = self.event.as_object_mut() {
            fields.insert(field.to_owned(), value);
        }
    }

    /// What becomes of this event and a later one of the same type: nothing where they stay two.
    fn merge(&self, later: &Self) -> Merged {
        match self.kind() {
            Some(Type::OutputStreaming) if self.continues_in(later) => Merged::One,
            Some(Type::ProgressUpdated) if self.is_background() => Merged::Later,
            Some(Type::StateChanged) if self.is_background() && !self.is_about_waiting() => {
                let leads_back = self.text("from_state") == later.text("to_state");
                if leads_back && later.is_background() { Merged::Gone } else { Merged::One }
            }
            _ => Merged::Two,
        }
    }

    fn continues_in(&self, later: &Self) -> bool {
        let same = |field: &str| self.event.get(field) == later.event.get(field);
        self.event.get("complete") == Some(&json!(false))
            && ["output_id", "language", "content_type", "extensions"].into_iter().all(same)
            && self.size.0 + later.size.0 <= AAEP_TEXT_CHARS
            && self.size.1.saturating_add(later.size.1) <= TEXT_BYTES
    }

    /// Takes what came before into this event. It is another event now, so it has an id of its own.
    fn absorb(&mut self, mut earlier: Self) {
        let id = id::merged(earlier.text("event_id"), self.text("event_id"));
        self.set("event_id", json!(id));
        if let Some(from) = earlier.event.get_mut("from_state").map(Value::take) {
            self.set("from_state", from);
        }
        if let Some(Value::String(mut text)) = earlier.event.get_mut("chunk").map(Value::take) {
            text.push_str(self.text("chunk"));
            self.set("chunk", Value::String(text));
            let position = earlier.event.get_mut("position").map(Value::take);
            self.set("position", position.unwrap_or_default());
            self.size.0 += earlier.size.0;
            self.size.1 = self.size.1.saturating_add(earlier.size.1);
        }
    }
}

enum Merged {
    /// They stay two.
    Two,
    /// They become one.
    One,
    /// The later one says it all.
    Later,
    /// Nothing is left to say.
    Gone,
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(super) fn has(&self, session: &str) -> bool {
        self.held.iter().any(|held| held.session() == session)
    }

    pub(super) fn events(&self) -> impl Iterator<Item = &Value> {
        self.held.iter().map(|held| &held.event)
    }

    /// Lets an event wait, merged with what waits before it.
    pub(super) fn push(&mut self, mut new: WaitingEvent) {
        new.measure();
        let mut alone = true;
        let mut partner = None;
        if new.can_merge() {
            for (at, held) in self.held.iter().enumerate().rev() {
                if held.session() != new.session() {
                    continue;
                }
                if held.kind() == new.kind() {
                    partner = Some((at, held.merge(&new)));
                    break;
                }
                if !held.can_merge() {
                    break;
                }
                alone = false;
            }
        }
        let Some((at, merged)) = partner.filter(|(_, merged)| !matches!(merged, Merged::Two))
        else {
            self.held.push_back(new);
            return;
        };
        let Some(earlier) = self.held.remove(at) else { return };
        match merged {
            Merged::Gone => return,
            Merged::One => new.absorb(earlier),
            Merged::Later | Merged::Two => {}
        }
        // It keeps its place among other sessions, unless something of its own came in between.
        let place = if alone { at } else { self.held.len() };
        self.held.insert(place, new);
    }

    pub(super) fn pop(&mut self) -> Option<WaitingEvent> {
        self.held.pop_front()
    }

    /// Makes room: the oldest report of progress goes. Where there is none, the oldest event has to be sent.
    pub(super) fn relieve(&mut self) -> Option<WaitingEvent> {
        if self.held.len() <= HELD_EVENTS {
            return None;
        }
        let is_spare = |held: &WaitingEvent| {
            held.kind() == Some(Type::ProgressUpdated) && held.is_background()
        };
        if let Some(at) = self.held.iter().position(is_spare) {
            self.held.remove(at);
            self.dropped += 1;
            return None;
        }
        self.pop()
    }

    /// What is like this, in order.
    pub(super) fn take_out(&mut self, fits: impl Fn(&WaitingEvent) -> bool) -> Vec<WaitingEvent> {
        let held = std::mem::take(&mut self.held);
        let (fitting, others) = held.into_iter().partition::<VecDeque<WaitingEvent>, _>(fits);
        self.held = others;
        fitting.into()
    }
}
