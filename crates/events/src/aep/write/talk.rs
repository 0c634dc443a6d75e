//! What is said and thought, in pieces or whole.
//!
//! Pieces are display state that readers may lose: the whole text follows the last piece. Both are freed of credentials
//! in assembled text, so that none comes through in two halves.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::draft::{Draft, TEXT_BYTES, fit};
use super::{Place, Writer};
use crate::activity::{Context, Role};
use crate::text::Redactor;
use crate::translate::NoteKind;

/// How many texts may be open at once.
const OPEN: usize = 64;

/// A text that has more to come.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Speech {
    message: String,
    voice: Voice,
    context: Arc<Context>,
    redactor: Redactor,
    /// What was said so far, without credentials; at most [`TEXT_BYTES`] of it.
    text: String,
    /// How many characters were said so far.
    chars: u64,
    /// How many bytes went in and came out.
    bytes: (u64, u64),
    /// Whether more was said than is kept.
    cut: bool,
    /// Whether a piece was written.
    told: bool,
}

/// Whose words they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Voice {
    Said(Role),
    Thought,
}

impl Voice {
    fn name(self) -> &'static str {
        match self {
            Self::Said(role) => role.name(),
            Self::Thought => "thought",
        }
    }
}

impl Speech {
    fn new(message: &str, voice: Voice, context: &Arc<Context>) -> Self {
        Self {
            message: message.to_owned(),
            voice,
            context: Arc::clone(context),
            redactor: Redactor::default(),
            text: String::new(),
            chars: 0,
            bytes: (0, 0),
            cut: false,
            told: false,
        }
    }

    fn keep(&mut self, shown: &str) {
        self.chars += shown.chars().count() as u64;
        self.bytes.1 += shown.len() as u64;
        // Once something was cut, nothing more is added: what follows it would be out of place.
        if !self.cut {
            let room = TEXT_BYTES.saturating_sub(self.text.len());
            let kept = shown.floor_char_boundary(room);
            self.text.push_str(shown.get(..kept).unwrap_or_default());
            self.cut = kept < shown.len();
        }
    }
}

/// One piece of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece<'a> {
    pub(super) message: &'a str,
    pub(super) voice: Voice,
    pub(super) text: &'a str,
    pub(super) last: bool,
}

impl Writer {
    pub(super) fn say(&mut self, place: &Place, piece: Piece<'_>, out: &mut Vec<Value>) {
        let message = fit(piece.message);
        let key = format!("{} {message}", piece.voice.name());
        let mut speech = self
            .speeches
            .remove(&key)
            .unwrap_or_else(|| Speech::new(piece.message, piece.voice, &place.context));
        speech.bytes.0 += piece.text.len() as u64;
        let mut shown = speech.redactor.push(piece.text);
        if piece.last {
            shown += &speech.redactor.finish();
        }
        speech.keep(&shown);
        let follows = speech.told || !piece.last;
        // The whole text tells the last piece too, as long as it is the whole text.
        let untold = !piece.last || speech.cut;
        if piece.voice == Voice::Said(Role::Assistant) && follows && untold {
            self.pieces(place, &mut speech, &shown, out);
        }
        if piece.last {
            self.finish(place, speech, out);
        } else if let Some((_, oldest)) = self.speeches.insert(&key, speech, OPEN) {
            self.notes.add(NoteKind::Closed, &oldest.message);
            self.finish(place, oldest, out);
        }
    }

    fn pieces(&mut self, place: &Place, speech: &mut Speech, shown: &str, out: &mut Vec<Value>) {
        let mut rest = shown;
        while !rest.is_empty() {
            let (next, after) = rest.split_at(rest.floor_char_boundary(TEXT_BYTES));
            let draft = Draft::new("model.delta").content("response", next);
            let draft = draft.carry("message", json!(speech.message));
            self.emit(place, Draft { clean: true, ..draft }, out);
            speech.told = true;
            rest = after;
        }
    }

    /// Ends everything that is being said.
    pub(super) fn finish_all(&mut self, place: &Place, out: &mut Vec<Value>) {
        for (_, speech) in self.speeches.drain() {
            self.notes.add(NoteKind::Closed, &speech.message);
            self.finish(place, speech, out);
        }
    }

    /// Writes the whole text.
    fn finish(&mut self, place: &Place, mut speech: Speech, out: &mut Vec<Value>) {
        let rest = speech.redactor.finish();
        speech.keep(&rest);
        if speech.chars == 0 {
            return;
        }
        if speech.bytes.0 != speech.bytes.1 || speech.text.contains("[redacted]") {
            self.notes.add(NoteKind::Redacted, "content");
        }
        let Speech { message, voice, context, text, chars, cut, .. } = speech;
        let place = Place { origin: place.origin.clone(), context };
        let (kind, content) = match voice {
            Voice::Said(Role::Assistant) => ("model.response", "response"),
            Voice::Said(Role::User) => ("prompt.submitted", "prompt"),
            Voice::Thought => ("model.thought", "thought"),
            Voice::Said(role) => {
                let what = json!({ "message": message, "role": role, "text": text, "last": true });
                self.emit(&place, Draft::new("x.said").own("what", what), out);
                return;
            }
        };
        let mut draft = Draft::new(kind).content(content, &text).carry("message", json!(message));
        if voice == Voice::Said(Role::User) {
            draft = draft.carry("role", json!(Role::User));
        }
        if cut {
            self.notes.add(NoteKind::Shortened, "content");
            if let Some(Value::Object(entry)) =
                draft.fields.get_mut("content").and_then(|it| it.get_mut(0))
            {
                entry.insert("truncated".into(), json!(true));
                entry.insert("original_length".into(), json!(chars));
            }
        }
        self.emit(&place, Draft { clean: true, ..draft }, out);
    }
}
