//! Server-sent events: an incremental parser and an encoder that cannot be broken out of.
//!
//! The parser takes bytes in any pieces, reads LF, CRLF and CR line ends, a leading byte order mark, comments and
//! several `data` lines, and holds no more than its limit. A message over the limit is dropped whole and reported
//! once; the messages after it are read as usual. It keeps no "last event id" and ignores `retry`: reconnecting is
//! the business of whoever owns the connection.

use std::collections::VecDeque;

use super::Error;

/// One message as it was received.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message {
    /// The `id` field of this message, if it had one.
    pub id: Option<String>,
    /// The `event` field, if it had one.
    pub event: Option<String>,
    /// The `data` lines, joined by LF.
    pub data: String,
    /// The line on which the data began, counted from 1.
    pub line: u64,
}

/// Turns bytes into messages.
#[derive(Debug, Clone)]
pub struct Parser {
    limit: usize,
    /// The line being received, without its end.
    line: Vec<u8>,
    number: u64,
    after_cr: bool,
    message: Message,
    has_data: bool,
    /// The current message is over the limit: nothing of it is kept.
    dropping: bool,
    ready: VecDeque<Message>,
}

impl Parser {
    /// A parser that holds at most `limit` bytes of one message.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            number: 1,
            after_cr: false,
            message: Message::default(),
            has_data: false,
            dropping: false,
            ready: VecDeque::new(),
        }
    }

    /// Takes the next bytes. An error means that one message was dropped, not that parsing has to stop: all of
    /// `bytes` has been read either way.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut rest = bytes;
        let mut result = Ok(());
        while let Some(&first) = rest.first() {
            if self.after_cr {
                self.after_cr = false;
                if first == b'\n' {
                    rest = rest.get(1..).unwrap_or_default();
                    continue;
                }
            }
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (piece, tail) = rest.split_at(end.unwrap_or(rest.len()));
            if self.held() + piece.len() > self.limit && !self.dropping {
                self.drop_message();
                result = Err(Error::TooLarge { limit: self.limit });
            }
            if self.dropping {
                // Only whether the line is blank matters now.
                self.line.extend_from_slice(piece.get(..1).unwrap_or_default());
                self.line.truncate(1);
            } else {
                self.line.extend_from_slice(piece);
            }
            rest = tail;
            if let Some((&end, tail)) = tail.split_first() {
                self.after_cr = end == b'\r';
                rest = tail;
                self.end_line();
            }
        }
        result
    }

    /// The next complete message.
    #[expect(clippy::should_implement_trait, reason = "none now does not mean none later")]
    pub fn next(&mut self) -> Option<Message> {
        self.ready.pop_front()
    }

    /// The next message after the last byte: also one whose closing blank line is missing.
    pub fn finish(&mut self) -> Option<Message> {
        if !self.line.is_empty() {
            self.end_line();
        }
        self.dispatch();
        self.next()
    }

    fn held(&self) -> usize {
        let of = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        self.line.len() + self.message.data.len() + of(&self.message.id) + of(&self.message.event)
    }

    fn drop_message(&mut self) {
        self.dropping = true;
        self.message = Message::default();
        self.has_data = false;
        self.line.truncate(1);
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line = match (self.number, line.strip_prefix(b"\xEF\xBB\xBF")) {
            (1, Some(rest)) => rest,
            _ => line.as_slice(),
        };
        if line.is_empty() {
            self.dispatch();
        } else if !self.dropping {
            self.field(line);
        }
        self.number += 1;
    }

    fn field(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let (name, value) = text.split_once(':').unwrap_or((&text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => {
                if self.has_data {
                    self.message.data.push('\n');
                } else {
                    self.message.line = self.number;
                }
                self.has_data = true;
                self.message.data.push_str(value);
            }
            "event" => self.message.event = Some(value.to_owned()),
            "id" if !value.contains('\0') => self.message.id = Some(value.to_owned()),
            _ => {}
        }
    }

    fn dispatch(&mut self) {
        let message = std::mem::take(&mut self.message);
        if std::mem::take(&mut self.has_data) {
            self.ready.push_back(message);
        }
        self.dropping = false;
    }
}

/// One message to send.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outgoing<'a> {
    /// The `id` field; line ends and NUL are left out.
    pub id: Option<&'a str>,
    /// The `event` field; line ends and NUL are left out.
    pub event: Option<&'a str>,
    /// The data; each of its lines becomes a `data` line.
    pub data: &'a str,
}

/// Writes one message, with LF line ends: some clients know no other.
///
/// ```
/// use banister_events::frame::sse::{Outgoing, write};
/// let mut out = Vec::new();
/// write(&mut out, &Outgoing { id: Some("7"), event: None, data: "one\ntwo" });
/// assert_eq!(out, b"id: 7\ndata: one\ndata: two\n\n");
/// ```
pub fn write(out: &mut Vec<u8>, message: &Outgoing<'_>) {
    for (name, value) in [("id", message.id), ("event", message.event)] {
        if let Some(value) = value {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b": ");
            out.extend(value.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r' | 0)));
            out.push(b'\n');
        }
    }
    write_lines(out, b"data: ", message.data);
    out.push(b'\n');
}

/// Writes a comment, which keeps a quiet connection open.
pub fn comment(out: &mut Vec<u8>, text: &str) {
    write_lines(out, b": ", text);
    out.push(b'\n');
}

fn write_lines(out: &mut Vec<u8>, prefix: &[u8], text: &str) {
    let mut rest = Some(text);
    while let Some(text) = rest {
        let (line, tail) = match text.split_once(['\n', '\r']) {
            // CRLF is one line end.
            Some((line, tail)) if text.as_bytes().get(line.len()) == Some(&b'\r') => {
                (line, Some(tail.strip_prefix('\n').unwrap_or(tail)))
            }
            Some((line, tail)) => (line, Some(tail)),
            None => (text, None),
        };
        out.extend_from_slice(prefix);
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
        rest = tail;
    }
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
