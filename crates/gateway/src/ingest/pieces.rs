//! Texts that come in pieces, where credentials are not to be kept: they are looked for in what the pieces make together.
//!
//! A text is kept line by line: what came of a line is held until the line is whole, and stands with the piece that ends
//! it, or with the event that ends the text. Arguments of a tool call are held until they are whole. A key in PEM form is
//! held until its end. So a record may hold less than its event said, or events that say what was held: then its body is
//! an array. The digest is of what came.
//!
//! What is held is in no file. Where a gateway stops in the middle of a text, what it held is gone, and the rest of that
//! line is not kept. The same goes for what is too long, and for a text that never ends.

use banister_events::capture::{TextKind, TextStep, text_name};
use banister_events::event::Protocol;
use banister_events::{Message, text};
use serde_json::{Value, json};

use crate::keep::redact;

/// The longest part of a line that is held.
const LINE_BYTES: usize = 32 * 1024;
/// The longest arguments that are held.
const WHOLE_BYTES: usize = 256 * 1024;
/// How many texts are held at once; of more, nothing is kept.
const MOST: usize = 64;

/// What is held of a session's texts.
#[derive(Debug, Clone, Default)]
pub(super) struct Pieces {
    held: Vec<BufferedText>,
    /// Something may have been held that is not known any more.
    interrupted: bool,
}

/// One text that is under way.
#[derive(Debug, Clone)]
struct BufferedText {
    /// What kind it is of, and what it is called.
    id: (TextKind, String),
    /// The last piece, without its text.
    piece: Value,
    field: &'static str,
    text: String,
    /// It ends with whatever comes next.
    loose: bool,
    /// The rest of the line is not kept.
    skips: bool,
}

impl Pieces {
    /// Those of a session that has a past.
    pub(super) fn interrupted() -> Self {
        Self { interrupted: true, ..Self::default() }
    }

    /// What is kept of an event, where that is not the event alone.
    pub(super) fn keep(&mut self, protocol: Protocol, message: &Message) -> Option<Message> {
        let document = message.document();
        let step = TextStep::of(protocol, document.root());
        let name = |kind| (kind, text_name(protocol, document.root()).into_owned());
        let made = |events| Message::of_value(protocol, one_or_all(events));
        let mut kept = Vec::new();
        match step {
            TextStep::Repeated => return Some(made(Vec::new())),
            TextStep::Begins(kind) => {
                self.release(&mut kept, |held| held.loose);
                let id = name(kind);
                self.held.retain(|held| held.id != id);
                if self.held.len() < MOST {
                    self.held.push(BufferedText::new(id, "", false));
                }
            }
            TextStep::Adds { kind, field, loose, ends } => {
                let mut id = name(kind);
                // A loose piece without a name goes on with what came last.
                let last = self.held.iter().rfind(|held| held.loose && held.id.0 == kind);
                if let Some(last) = last.filter(|_| loose && id.1.is_empty()) {
                    id = last.id.clone();
                }
                self.release(&mut kept, |held| held.loose && held.id != id);
                kept.extend(self.add(id, message.value().clone(), field, loose, ends));
                let as_it_came = kept.len() == 1 && kept.first() == Some(message.value());
                return (!as_it_came).then(|| made(kept));
            }
            TextStep::Ends(kind) => {
                let id = name(kind);
                self.release(&mut kept, |held| held.loose || held.id == id);
            }
            TextStep::EndsAll => {
                self.release(&mut kept, |_| true);
                self.interrupted = false;
            }
            TextStep::Nothing => self.release(&mut kept, |held| held.loose),
        }
        if kept.is_empty() {
            return None;
        }
        kept.push(text::redact_json(message.value()));
        Some(made(kept))
    }

    /// A piece on its way to what it is a piece of; what can be told of it by now.
    fn add(
        &mut self,
        id: (TextKind, String),
        mut event: Value,
        field: &'static str,
        loose: bool,
        ends: bool,
    ) -> Option<Value> {
        let whole = id.0 == TextKind::Arguments;
        let piece = event.get_mut(field).map(Value::take);
        let piece = piece.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
        let known = self.held.iter().position(|held| held.id == id);
        if known.is_none() {
            if self.held.len() >= MOST {
                return None;
            }
            self.held.push(BufferedText::new(id, field, self.interrupted));
        }
        let at = known.unwrap_or(self.held.len() - 1);
        let held = self.held.get_mut(at)?;
        (held.field, held.loose) = (field, loose);
        held.add(&piece, whole);
        let first = known.is_none();
        let told = if ends {
            held.text.split_off(0)
        } else if whole {
            String::new()
        } else {
            held.whole_lines()
        };
        let clean = clean(&told, whole);
        held.piece = event.clone();
        if ends {
            self.held.remove(at);
            self.interrupted = false;
        }
        match event.as_object_mut() {
            // A loose piece that begins something is needed for its name.
            Some(fields) if clean.is_empty() && (loose && first) => {
                fields.remove(field);
            }
            Some(fields) if !clean.is_empty() || ends => {
                fields.insert(field.to_owned(), json!(clean));
            }
            _ => return None,
        }
        Some(text::redact_json(&event))
    }

    /// Tells what is held of some texts, which end with that.
    fn release(&mut self, kept: &mut Vec<Value>, which: impl Fn(&BufferedText) -> bool) {
        for held in self.held.extract_if(.., |held| which(held)) {
            let clean = clean(&held.text, held.id.0 == TextKind::Arguments);
            let mut piece = held.piece;
            if let Some(fields) = piece.as_object_mut().filter(|_| !clean.is_empty()) {
                fields.insert(held.field.to_owned(), json!(clean));
                kept.push(text::redact_json(&piece));
            }
        }
    }
}

impl BufferedText {
    fn new(id: (TextKind, String), field: &'static str, skips: bool) -> Self {
        Self { id, piece: Value::Null, field, text: String::new(), loose: false, skips }
    }

    fn add(&mut self, piece: &str, whole: bool) {
        let piece = match (self.skips, whole, piece.split_once('\n')) {
            (false, ..) => piece,
            (true, false, Some((_, rest))) => rest,
            (true, ..) => return,
        };
        self.skips = false;
        self.text.push_str(piece);
        let (most, end) = if whole { (WHOLE_BYTES, 0) } else { (LINE_BYTES, self.lines_end()) };
        if self.text.len() - end > most {
            // Too long to be held: what came of it goes, and so does the rest.
            self.text.truncate(end);
            self.skips = true;
        }
    }

    /// Where the last whole line ends, or a key begins whose end has not come.
    fn lines_end(&self) -> usize {
        let lines = self.text.rfind('\n').map_or(0, |at| at + 1);
        match self.text.rfind("-----BEGIN ") {
            Some(begin) if !self.text.get(begin..).unwrap_or_default().contains("-----END ") => {
                begin.min(lines)
            }
            _ => lines,
        }
    }

    /// Takes what is whole.
    fn whole_lines(&mut self) -> String {
        let rest = self.text.split_off(self.lines_end());
        std::mem::replace(&mut self.text, rest)
    }
}

fn clean(told: &str, whole: bool) -> String {
    if whole {
        return String::from_utf8_lossy(&redact(told.as_bytes())).into_owned();
    }
    text::redact(told).into_owned()
}

fn one_or_all(mut events: Vec<Value>) -> Value {
    let only = (events.len() == 1).then(|| events.pop()).flatten();
    only.unwrap_or(Value::Array(events))
}

#[cfg(test)]
#[path = "pieces_tests.rs"]
mod tests;
