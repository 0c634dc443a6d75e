//! Server-sent events: an incremental parser and an encoder that cannot be broken out of.
//!
//! The parser takes bytes in any pieces, reads LF, CRLF and CR line ends, a leading byte order mark, comments and
//! several `data` lines, and holds no more than its limit. A message over the limit is dropped whole and reported
//! once; the messages after it are read as usual. Bytes that are not UTF-8 are replaced, as the standard asks, and the
//! message says so. Unlike a browser's, it hands out a last message whose closing blank line is missing: whether that
//! can be trusted is up to the caller. It does not reconnect; it only knows what that takes.
//!
//! ```
//! use banister_events::frame::sse::{Outgoing, Parser, write};
//! let mut stream = b": hello\r\n\r\n".to_vec();
//! write(&mut stream, &Outgoing { id: Some("7"), event: None, data: "{\"city\":\"東京\"}" });
//!
//! let mut parser = Parser::new(1024);
//! let mut found = Vec::new();
//! for mut piece in stream.chunks(3) {
//!     while let Some((place, message)) = parser.read(&mut piece) {
//!         found.push((place.line, place.offset, message?.data.clone()));
//!     }
//! }
//! assert_eq!(found, [(4, 17, "{\"city\":\"東京\"}".to_owned())]);
//! assert_eq!(parser.last_id(), Some("7"));
//! # Ok::<(), banister_events::frame::Error>(())
//! ```

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::Duration;

use memchr::{memchr, memchr2};

use super::{Error, Framed, MARK, Place, length, take};

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
    /// Whether bytes that are not UTF-8 were replaced.
    pub replaced: bool,
}

/// Where a stream first does what this parser reads and stricter ones do not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quirks {
    /// A line that ends with CR or CRLF.
    pub carriage_return: Option<Place>,
    /// A byte order mark.
    pub mark: Option<Place>,
    /// A line that is no field of server-sent events, but an object or a field `data` misspelt.
    pub bare: Option<Place>,
    /// A field other than `data`.
    pub other_field: Option<Place>,
}

/// Turns bytes into messages.
///
/// Either [`Parser::read`] every piece where it lies, or [`Parser::push`] pieces and fetch whole messages with
/// [`Parser::next`].
#[derive(Debug, Clone)]
pub struct Parser {
    limit: usize,
    /// The line being received, without its end. Of a line that does not matter only the first byte is kept.
    line: Vec<u8>,
    /// Where that line begins.
    begins: Place,
    /// How many bytes of the stream were read.
    consumed: u64,
    after_cr: bool,
    message: Message,
    /// Where the data of the message begins; none before it has any.
    data: Option<Place>,
    /// The message was handed out and goes when the next one begins.
    given: bool,
    /// The message is over the limit: nothing of it is kept.
    dropping: bool,
    last_id: Option<String>,
    retry: Option<Duration>,
    quirks: Quirks,
    ready: VecDeque<Message>,
}

/// What the bytes so far told: that the message is complete, or that it was dropped.
type CutMessage = (Place, Result<(), Error>);

impl Parser {
    /// A parser that holds at most `limit` bytes of one message.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            begins: Place::START,
            consumed: 0,
            after_cr: false,
            message: Message::default(),
            data: None,
            given: false,
            dropping: false,
            last_id: None,
            retry: None,
            quirks: Quirks::default(),
            ready: VecDeque::new(),
        }
    }

    /// Takes the next message from the front of a piece; none when the piece is used up. A message's place is that of
    /// its first `data` line.
    pub fn read(&mut self, bytes: &mut &[u8]) -> Option<Framed<'_, Message>> {
        let (place, told) = self.advance(bytes)?;
        Some((place, told.map(|()| &self.message)))
    }

    /// A last message whose closing blank line is missing. Ask until there is none.
    pub fn end(&mut self) -> Option<Framed<'_, Message>> {
        let (place, told) = self.close()?;
        Some((place, told.map(|()| &self.message)))
    }

    /// Takes the next bytes. An error means that one message was dropped, not that parsing has to stop: all of
    /// `bytes` has been read either way.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut rest = bytes;
        let mut result = Ok(());
        while let Some((_, told)) = self.advance(&mut rest) {
            match told {
                Ok(()) => self.ready.push_back(std::mem::take(&mut self.message)),
                Err(error) => result = Err(error),
            }
        }
        result
    }

    /// The next complete message, of those pushed.
    #[expect(clippy::should_implement_trait, reason = "none now does not mean none later")]
    pub fn next(&mut self) -> Option<Message> {
        self.ready.pop_front()
    }

    /// The next message after the last byte: also one whose closing blank line is missing.
    pub fn finish(&mut self) -> Option<Message> {
        if let Some((_, Ok(()))) = self.close() {
            self.ready.push_back(std::mem::take(&mut self.message));
        }
        self.next()
    }

    /// The last `id` that a blank line confirmed, with or without data: where a new connection would go on.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// How long to wait before reconnecting, if the stream said so in a `retry` field.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// What the lines so far have that stricter parsers do not read.
    pub fn quirks(&self) -> Quirks {
        self.quirks
    }

    /// How many bytes of an unfinished message are held.
    pub fn held(&self) -> usize {
        if self.given {
            return self.line.len();
        }
        let of = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        self.line.len() + self.message.data.len() + of(&self.message.id) + of(&self.message.event)
    }

    fn advance(&mut self, bytes: &mut &[u8]) -> Option<CutMessage> {
        self.renew();
        if let Some(told) = self.whole(bytes) {
            return Some(told);
        }
        while let Some(&first) = bytes.first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                self.consumed += length(take(bytes, 1));
                self.begins.offset = self.consumed;
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', bytes) else {
                let piece = take(bytes, bytes.len());
                self.consumed += length(piece);
                return self.keep(piece);
            };
            let piece = take(bytes, end);
            self.after_cr = bytes.first() == Some(&b'\r');
            if self.after_cr {
                self.quirks.carriage_return.get_or_insert(self.begins);
            }
            self.consumed += length(piece) + length(take(bytes, 1));
            let told = self.end_line(piece);
            self.begins = Place { line: self.begins.line + 1, offset: self.consumed };
            if told.is_some() {
                return told;
            }
        }
        None
    }

    /// A message of one `data` line that lies whole in the bytes and needs no closer look: almost every one.
    fn whole(&mut self, bytes: &mut &[u8]) -> Option<CutMessage> {
        let message = &mut self.message;
        let between = self.line.is_empty() && self.data.is_none() && message.id.is_none();
        if !between || message.event.is_some() || self.dropping || self.after_cr {
            return None;
        }
        let value = bytes.strip_prefix(b"data: ")?;
        let (value, rest) = value.split_at_checked(memchr2(b'\n', b'\r', value)?)?;
        let rest = rest.strip_prefix(b"\n\n")?;
        let read = bytes.len() - rest.len();
        if read - 2 > self.limit {
            return None;
        }
        message.data.push_str(simdutf8::basic::from_utf8(value).ok()?);
        message.line = self.begins.line;
        let place = self.begins;
        *bytes = rest;
        self.consumed += read as u64;
        self.begins = Place { line: place.line + 2, offset: self.consumed };
        self.given = true;
        Some((place, Ok(())))
    }

    fn close(&mut self) -> Option<CutMessage> {
        self.renew();
        let last = if self.line.is_empty() { None } else { self.end_line(&[]) };
        last.or_else(|| self.dispatch())
    }

    /// Forgets the message that was handed out.
    fn renew(&mut self) {
        if std::mem::take(&mut self.given) {
            self.clear();
        }
    }

    fn clear(&mut self) {
        let mut data = std::mem::take(&mut self.message).data;
        data.clear();
        self.message.data = data;
        self.data = None;
    }

    /// Takes a part of a line that does not end it.
    fn keep(&mut self, piece: &[u8]) -> Option<CutMessage> {
        let told = self.make_room(piece);
        if self.matters(piece) {
            self.line.extend_from_slice(piece);
        } else if self.line.is_empty() {
            self.line.extend_from_slice(piece.get(..1).unwrap_or_default());
        }
        told
    }

    /// Takes the rest of a line. A line that lies whole in it is read where it lies.
    fn end_line(&mut self, piece: &[u8]) -> Option<CutMessage> {
        let told = self.make_room(piece);
        let matters = self.matters(piece);
        let mut held = std::mem::take(&mut self.line);
        let line = if held.is_empty() {
            piece
        } else {
            if matters {
                held.extend_from_slice(piece);
            }
            &held
        };
        let line = match line.strip_prefix(MARK) {
            Some(rest) if self.begins.offset == 0 => {
                self.quirks.mark.get_or_insert(self.begins);
                rest
            }
            _ => line,
        };
        let told = if line.is_empty() && told.is_none() {
            self.dispatch()
        } else if matters {
            self.field(line)
        } else {
            told
        };
        held.clear();
        self.line = held;
        told
    }

    /// Whether the line that goes on with `piece` has to be kept: not in a message that is dropped, not a comment.
    fn matters(&self, piece: &[u8]) -> bool {
        !self.dropping && self.line.first().or(piece.first()) != Some(&b':')
    }

    /// Drops the message if it would be over the limit with `piece`.
    fn make_room(&mut self, piece: &[u8]) -> Option<CutMessage> {
        if self.matters(piece) && self.held() + piece.len() > self.limit {
            return Some(self.drop_message());
        }
        None
    }

    fn drop_message(&mut self) -> CutMessage {
        let place = self.data.unwrap_or(self.begins);
        self.clear();
        self.dropping = true;
        self.line.truncate(1);
        (place, Err(Error::TooLarge { limit: self.limit }))
    }

    fn field(&mut self, line: &[u8]) -> Option<CutMessage> {
        let (name, value) = match memchr(b':', line).and_then(|colon| line.split_at_checked(colon))
        {
            Some((name, value)) => (name, value.get(1..).unwrap_or_default()),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let text = match simdutf8::basic::from_utf8(value) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(value),
        };
        let replaced = matches!(text, Cow::Owned(_));
        match name {
            b"data" => {}
            b"event" | b"id" | b"retry" => {
                self.quirks.other_field.get_or_insert(self.begins);
            }
            _ if line.trim_ascii_start().starts_with(b"{")
                || name.trim_ascii().eq_ignore_ascii_case(b"data") =>
            {
                self.quirks.bare.get_or_insert(self.begins);
            }
            _ => {}
        }
        match name {
            b"data" => {
                if self.data.is_some() {
                    self.message.data.push('\n');
                } else {
                    self.data = Some(self.begins);
                    self.message.line = self.begins.line;
                }
                self.message.data.push_str(&text);
            }
            b"event" => self.message.event = Some(text.into_owned()),
            b"id" if !value.contains(&0) => self.message.id = Some(text.into_owned()),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                self.retry = text.parse().map(Duration::from_millis).ok().or(self.retry);
                return None;
            }
            _ => return None,
        }
        self.message.replaced |= replaced;
        // A replacement takes more room than what it replaces.
        (self.held() > self.limit).then(|| self.drop_message())
    }

    /// A blank line came: the message, if it has data, is complete.
    fn dispatch(&mut self) -> Option<CutMessage> {
        self.dropping = false;
        if self.message.id.is_some() {
            self.last_id.clone_from(&self.message.id);
        }
        self.given = true;
        let place = self.data.take();
        if place.is_none() {
            self.renew();
        }
        place.map(|place| (place, Ok(())))
    }
}

/// One message to send.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outgoing<'a> {
    /// The `id` field; line ends and NUL are left out.
    pub id: Option<&'a str>,
    /// The `event` field; line ends and NUL are left out.
    pub event: Option<&'a str>,
    /// The data; each of its lines becomes a `data` line. CR and CRLF are read back as LF.
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
            write_field(out, name, value);
        }
    }
    write_lines(out, b"data: ", message.data);
    out.push(b'\n');
}

/// Writes an id without data: a client takes it as the id to resume from, and hears nothing.
///
/// ```
/// use banister_events::frame::sse::{Parser, write_id};
/// let mut out = Vec::new();
/// write_id(&mut out, "7");
/// let mut parser = Parser::new(100);
/// parser.push(&out)?;
/// assert!(parser.next().is_none());
/// assert_eq!(parser.last_id(), Some("7"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_id(out: &mut Vec<u8>, id: &str) {
    write_field(out, "id", id);
    out.push(b'\n');
}

/// Writes a comment, which keeps a quiet connection open.
pub fn comment(out: &mut Vec<u8>, text: &str) {
    write_lines(out, b": ", text);
    out.push(b'\n');
}

fn write_field(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend(value.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r' | 0)));
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
