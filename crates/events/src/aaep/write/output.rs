//! What the agent answers, in pieces that can be heard.
//!
//! A piece that completes nothing is put aside and costs no more. Credentials are looked for in what is assembled, and
//! nothing is shown while its end may still become one.

use super::clamp::{self, split};
use super::turn::{Output, state};
use super::{At, Event, Field, Fields, Writer, Written};
use crate::aaep::coalesce::{Coalescer, Piece};
use crate::aaep::event::Boundary;
use crate::text::Redactor;

/// How much of an output is sent at once: every event stays within 64 KiB, whatever escapes its text needs.
const CHUNK_CHARS: usize = 8_192;

/// How much is put aside for a place where it can be cut.
const READY_BYTES: usize = 32_768;

impl Writer {
    pub(super) fn said(
        &mut self,
        at: At<'_>,
        message: &str,
        said: &str,
        last: bool,
        out: &mut Vec<Written>,
    ) {
        let open = self.turn.as_mut().and_then(|turn| {
            let writes = turn.state == state::WRITING_OUTPUT || !turn.waits.is_empty();
            turn.output.as_mut().filter(|output| writes && output.message == message)
        });
        let open = if open.is_some() {
            open
        } else {
            self.begin_output(at, message, out);
            self.turn.as_mut().and_then(|turn| turn.output.as_mut())
        };
        let Some(output) = open else { return };
        let pieces = output.coalescer.push(said);
        if last && self.voice.boundaries.contains(&Boundary::None) {
            // Nothing follows that it could be joined with: it goes out whole.
            for piece in pieces {
                let shown = output.redactor.push(&piece.text);
                output.ready.push_str(&shown);
            }
        } else {
            self.pieces(at, pieces, out);
        }
        if last {
            self.close_output(at, out);
        }
    }

    /// A plan is an output of its own.
    pub(super) fn planned(&mut self, at: At<'_>, plan: &str, out: &mut Vec<Written>) {
        self.close_output(at, out);
        self.said(at, "plan", plan, true, out);
    }

    fn begin_output(&mut self, at: At<'_>, message: &str, out: &mut Vec<Written>) {
        self.open(at, out);
        let other = |output: &Output| output.message != message;
        if self.turn.as_ref().and_then(|turn| turn.output.as_ref()).is_some_and(other) {
            self.close_output(at, out);
        }
        self.go(at, state::WRITING_OUTPUT, None, out);
        let n = self.n;
        let boundaries = &self.voice.boundaries;
        let Some(turn) = &mut self.turn else { return };
        if turn.output.is_none() {
            let id = turn.output_ids.take("out_", message, || at.derive("out_", n, &[]));
            turn.output = Some(Output {
                message: message.to_owned(),
                origin: (self.voice.carry && id != message).then(|| message.to_owned()),
                id,
                position: 0,
                coalescer: Coalescer::new(boundaries),
                redactor: Redactor::default(),
                ready: String::new(),
            });
        }
    }

    fn pieces(&mut self, at: At<'_>, pieces: Vec<Piece>, out: &mut Vec<Written>) {
        for piece in pieces {
            let Some(output) = self.turn.as_mut().and_then(|turn| turn.output.as_mut()) else {
                return;
            };
            if let Some(hint) = output.take(&piece) {
                let ready = std::mem::take(&mut output.ready);
                self.chunks(at, &ready, &hint, out);
            }
        }
    }

    /// Sends a text that ends at a boundary; no event of it is too long.
    fn chunks(&mut self, at: At<'_>, ready: &str, hint: &Boundary, out: &mut Vec<Written>) {
        let complete = *hint == Boundary::Completion;
        let pieces = split(ready, CHUNK_CHARS);
        let count = pieces.len();
        for (index, piece) in pieces.into_iter().enumerate() {
            let last = index + 1 == count;
            if !piece.is_empty() || (complete && last) {
                let hint = if last { hint } else { &Boundary::None };
                self.chunk(at, &clamp::whole(piece), hint, out);
            }
        }
    }

    fn chunk(&mut self, at: At<'_>, piece: &str, hint: &Boundary, out: &mut Vec<Written>) {
        let Some(output) = self.turn.as_mut().and_then(|turn| turn.output.as_mut()) else {
            return;
        };
        let complete = *hint == Boundary::Completion;
        let fields = Fields::of([
            ("chunk", piece.into()),
            ("position", Field::Count(output.position as u64)),
            ("complete", complete.into()),
            ("coalesce_hint", hint.name().into()),
            ("output_id", output.id.as_str().into()),
        ]);
        output.position += piece.chars().count();
        let origin = output.origin.take();
        let facts = self.carry(|facts| facts.name("message", origin.as_deref()));
        let event =
            Event { kind: "output.streaming", urgency: "normal", fields, words: None, facts };
        self.push(at, event, out);
    }

    /// Ends the output that is open, with all that was put aside.
    pub(super) fn close_output(&mut self, at: At<'_>, out: &mut Vec<Written>) {
        let Some(output) = self.turn.as_mut().and_then(|turn| turn.output.as_mut()) else {
            return;
        };
        let rest = output.coalescer.finish();
        let mut ready = std::mem::take(&mut output.ready);
        ready.push_str(&output.redactor.push(&rest.text));
        ready.push_str(&output.redactor.finish());
        self.chunks(at, &ready, &Boundary::Completion, out);
        if let Some(turn) = &mut self.turn {
            turn.output = None;
        }
        self.settle(at, out);
    }
}

impl Output {
    /// Takes the next piece. The boundary that can be told now, if what is ready ends at one.
    fn take(&mut self, piece: &Piece) -> Option<Boundary> {
        self.ready.push_str(&self.redactor.push(&piece.text));
        let bounded = !matches!(piece.hint, Boundary::None | Boundary::Completion);
        if bounded && self.redactor.is_settled() {
            self.ready.push_str(&self.redactor.finish());
            return Some(piece.hint.clone());
        }
        let held = piece.hint == Boundary::None || self.ready.len() > READY_BYTES;
        // An emoji that is still being joined is not broken off.
        (held && !self.ready.is_empty() && !clamp::is_broken(&self.ready)).then_some(Boundary::None)
    }
}
