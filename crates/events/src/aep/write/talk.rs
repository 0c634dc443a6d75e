//! What is said and thought, in pieces or whole.
//!
//! Pieces are display state that readers may lose: the whole text follows the last piece. Both are freed of credentials
//! in assembled text, so that none comes through in two halves.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::draft::{Draft, TEXT_BYTES, fit};
use super::emit::shortened;
use super::{Scene, Writer};
use crate::activity::{Context, Role};
use crate::text::Redactor;
use crate::translate::NoteKind;
use crate::written::{Field, Fields, Written};

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

    /// Takes the next piece; gives what is to be written of it now, if anything is.
    fn take(&mut self, piece: Piece<'_>) -> Option<String> {
        self.bytes.0 += piece.text.len() as u64;
        let mut shown = self.redactor.push(piece.text);
        if piece.last {
            shown += &self.redactor.finish();
        }
        self.keep(&shown);
        let follows = self.told || !piece.last;
        // The whole text tells the last piece too, as long as it is the whole text.
        let untold = !piece.last || self.cut;
        (piece.voice == Voice::Said(Role::Assistant) && follows && untold).then_some(shown)
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
    pub(super) fn say(&mut self, scene: Scene<'_>, piece: Piece<'_>, out: &mut Vec<Written>) {
        let key = format!("{} {}", piece.voice.name(), fit(piece.message));
        if !piece.last && self.speeches.renew(&key) {
            self.go_on(scene, &key, piece, out);
            return;
        }
        let mut speech = self
            .speeches
            .remove(&key)
            .unwrap_or_else(|| Speech::new(piece.message, piece.voice, scene.context));
        let shown = speech.take(piece);
        if let Some(shown) = shown {
            speech.told |= self.pieces(scene, &speech.message, shown, out);
        }
        if piece.last {
            self.finish(scene, speech, out);
        } else if let Some((_, oldest)) = self.speeches.insert(&key, speech, OPEN) {
            self.notes.add(NoteKind::Closed, oldest.message.as_str());
            self.finish(scene, oldest, out);
        }
    }

    /// Goes on with a text that has more to come: most pieces do.
    fn go_on(&mut self, scene: Scene<'_>, key: &str, piece: Piece<'_>, out: &mut Vec<Written>) {
        let Some(speech) = self.speeches.get_mut(key) else { return };
        let Some(shown) = speech.take(piece) else { return };
        let message = std::mem::take(&mut speech.message);
        let told = self.pieces(scene, &message, shown, out);
        if let Some(speech) = self.speeches.get_mut(key) {
            speech.message = message;
            speech.told |= told;
        }
    }

    /// Writes what is shown now; whether there was anything.
    fn pieces(
        &mut self,
        scene: Scene<'_>,
        message: &str,
        shown: String,
        out: &mut Vec<Written>,
    ) -> bool {
        let mut rest = shown;
        let told = !rest.is_empty();
        while !rest.is_empty() {
            let after = rest.split_off(rest.floor_char_boundary(TEXT_BYTES));
            let draft = Draft::new("model.delta").content("response", rest);
            let draft = draft.carry("message", Some(message));
            self.emit(scene, Draft { clean: true, ..draft }, out);
            rest = after;
        }
        told
    }

    /// Ends everything that is being said.
    pub(super) fn finish_all(&mut self, scene: Scene<'_>, out: &mut Vec<Written>) {
        for (_, speech) in self.speeches.drain() {
            self.notes.add(NoteKind::Closed, speech.message.as_str());
            self.finish(scene, speech, out);
        }
    }

    /// Writes the whole text.
    fn finish(&mut self, scene: Scene<'_>, mut speech: Speech, out: &mut Vec<Written>) {
        let rest = speech.redactor.finish();
        speech.keep(&rest);
        if speech.chars == 0 {
            return;
        }
        if speech.bytes.0 != speech.bytes.1 || speech.text.contains("[redacted]") {
            self.notes.add(NoteKind::Redacted, "content");
        }
        let Speech { message, voice, context, text, chars, cut, .. } = speech;
        let scene = Scene { origin: scene.origin, context: &context };
        let (kind, content) = match voice {
            Voice::Said(Role::Assistant) => ("model.response", "response"),
            Voice::Said(Role::User) => ("prompt.submitted", "prompt"),
            Voice::Thought => ("model.thought", "thought"),
            Voice::Said(role) => {
                let what = Fields::of([
                    ("message", message.into()),
                    ("role", Field::Word(role.name())),
                    ("text", text.into()),
                    ("last", true.into()),
                ]);
                self.emit(scene, Draft::new("x.said").own("what", what), out);
                return;
            }
        };
        let mut entry = Fields::of([("type", Field::Word(content)), ("text", text.into())]);
        if cut {
            self.notes.add(NoteKind::Shortened, "content");
            shortened(&mut entry, chars);
        }
        let draft = Draft::new(kind).field("content", Field::List(vec![entry.into()]));
        let mut draft = draft.carry("message", Some(message));
        if voice == Voice::Said(Role::User) {
            draft = draft.carry("role", Some(Field::Word(Role::User.name())));
        }
        self.emit(scene, Draft { clean: true, ..draft }, out);
    }
}
