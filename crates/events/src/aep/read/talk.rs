//! What the model says and thinks: pieces, and wholes that follow them.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{Moment, Reader, content};
use crate::activity::{Role, What};

/// How many texts in pieces are remembered, and how much of each.
const RUNS: usize = 64;
const KEPT_BYTES: usize = 256 * 1_024;

/// How an event tells a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Telling {
    Piece,
    Whole,
    /// A whole thought.
    Thought,
}

/// The texts that came in pieces and not yet as a whole.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Talk {
    runs: VecDeque<Run>,
}

/// One text in pieces.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Run {
    /// Whose text it is: a subagent's, or with no name the agent's own.
    thread: String,
    thought: bool,
    message: String,
    /// The beginning of what was said.
    text: String,
    /// How many bytes were said.
    bytes: usize,
    /// Whether something happened since that ends a text.
    paused: bool,
}

impl Talk {
    /// What comes next on a thread is another text.
    pub(super) fn pause(&mut self, thread: &str) {
        for run in self.runs.iter_mut().filter(|run| run.thread == thread) {
            run.paused = true;
        }
    }

    pub(super) fn clear(&mut self) {
        self.runs.clear();
    }

    /// The message that a piece belongs to.
    fn piece(
        &mut self,
        thread: &str,
        thought: bool,
        named: Option<String>,
        id: String,
        text: &str,
    ) -> String {
        let known = self.runs.iter_mut().rev().find(|run| {
            run.thought == thought
                && match &named {
                    Some(named) => run.message == *named,
                    None => run.thread == thread && !run.paused,
                }
        });
        if let Some(run) = known {
            run.add(text);
            return run.message.clone();
        }
        let message = named.unwrap_or(id);
        let mut run = Run {
            thread: thread.to_owned(),
            thought,
            message: message.clone(),
            text: String::new(),
            bytes: 0,
            paused: false,
        };
        run.add(text);
        self.runs.push_back(run);
        if self.runs.len() > RUNS {
            self.runs.pop_front();
        }
        message
    }

    /// The message that a whole text belongs to, and what of it is new.
    fn whole(
        &mut self,
        thread: &str,
        thought: bool,
        named: Option<String>,
        id: String,
        text: String,
    ) -> (String, String) {
        let fits = |run: &Run| {
            let same = named.as_ref().is_none_or(|named| run.message == *named);
            same && run.thread == thread && run.thought == thought && run.begins(&text)
        };
        if let Some(at) = self.runs.iter().rposition(fits)
            && let Some(run) = self.runs.remove(at)
        {
            let rest = text.get(run.bytes..).unwrap_or_default().to_owned();
            return (run.message, rest);
        }
        // Pieces under this name said something else; they keep it.
        let taken = |name: &String| self.runs.iter().any(|run| run.message == *name);
        (named.filter(|name| !taken(name)).unwrap_or(id), text)
    }
}

impl Run {
    fn add(&mut self, text: &str) {
        // What is kept is a beginning without gaps.
        if self.text.len() == self.bytes {
            let room = KEPT_BYTES.saturating_sub(self.bytes);
            self.text.push_str(text.get(..text.floor_char_boundary(room)).unwrap_or_default());
        }
        self.bytes += text.len();
    }

    /// Whether a whole text begins with this.
    fn begins(&self, whole: &str) -> bool {
        whole.starts_with(&self.text) && whole.is_char_boundary(self.bytes)
    }
}

impl Reader {
    pub(super) fn spoke(&mut self, telling: Telling, moment: Moment<'_>, out: &mut Vec<What>) {
        let event = moment.event;
        let thought = telling == Telling::Thought
            || telling == Telling::Piece
                && event.at("/content/0/type").is_some_and(|kind| kind.is("thought"));
        let kind = if thought { "thought" } else { "response" };
        let Some(text) = content(event, &[kind]) else { return };
        let (thread, named, id) = (moment.thread(), moment.trusted("message"), moment.id());
        let last = telling != Telling::Piece;
        let (message, text) = if last {
            self.talk.whole(thread, thought, named, id, text)
        } else {
            (self.talk.piece(thread, thought, named, id, &text), text)
        };
        out.push(if thought {
            What::Thought { message, text, last }
        } else {
            What::Said { message, role: Role::Assistant, text, last }
        });
    }
}
