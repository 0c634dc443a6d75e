//! JSON lines: an incremental splitter.
//!
//! Lines end with LF or CRLF; blank lines are skipped but counted. It holds one line of at most its limit and what
//! the last `push` brought. What a line says is not its business.

use super::Error;

/// One line: its number, counted from 1, and its bytes, or that it is over the limit.
pub type Line<'a> = (u64, Result<&'a [u8], Error>);

/// Turns bytes into lines.
#[derive(Debug, Clone)]
pub struct Lines {
    limit: usize,
    buffer: Vec<u8>,
    /// Where the next line begins in the buffer.
    start: usize,
    /// How far the buffer was searched for a line end.
    seen: usize,
    number: u64,
    dropping: bool,
    finished: bool,
}

impl Lines {
    /// A splitter that holds at most `limit` bytes of one line.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            buffer: Vec::new(),
            start: 0,
            seen: 0,
            number: 0,
            dropping: false,
            finished: false,
        }
    }

    /// Takes the next bytes. Read all lines with [`Lines::next`] before the next push.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.seen -= self.start;
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Says that no bytes will follow: what is left is the last line.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// The next complete line that is not blank.
    #[expect(clippy::should_implement_trait, reason = "a line borrows from the buffer")]
    pub fn next(&mut self) -> Option<Line<'_>> {
        let (from, to) = loop {
            let unseen = self.buffer.get(self.seen..).unwrap_or_default();
            let end = match unseen.iter().position(|byte| *byte == b'\n') {
                Some(offset) => self.seen + offset,
                None if self.finished && self.start < self.buffer.len() => self.buffer.len(),
                None => return self.incomplete(),
            };
            let from = self.start;
            self.start = (end + 1).min(self.buffer.len());
            self.seen = self.start;
            self.number += 1;
            if std::mem::take(&mut self.dropping) {
                continue;
            }
            let line = self.buffer.get(from..end).unwrap_or_default();
            if line.len() > self.limit {
                return Some((self.number, Err(Error::TooLarge { limit: self.limit })));
            }
            if !line.trim_ascii().is_empty() {
                let to = if line.ends_with(b"\r") { end - 1 } else { end };
                break (from, to);
            }
        };
        Some((self.number, Ok(self.buffer.get(from..to).unwrap_or_default())))
    }

    /// Reports a line that is over the limit before its end has come, and stops holding it.
    fn incomplete(&mut self) -> Option<Line<'_>> {
        self.seen = self.buffer.len();
        if self.dropping {
            self.start = self.seen;
            return None;
        }
        if self.seen - self.start <= self.limit {
            return None;
        }
        self.start = self.seen;
        self.dropping = true;
        Some((self.number + 1, Err(Error::TooLarge { limit: self.limit })))
    }
}

#[cfg(test)]
#[path = "ndjson_tests.rs"]
mod tests;
