//! JSON lines: an incremental splitter.
//!
//! Lines end with LF or CRLF; blank lines are skipped but counted, and so is a byte order mark before the first. It
//! holds the part of a line whose end has not come, of at most its limit. What a line says is not its business, so a
//! line that is not UTF-8 or not JSON is handed on as it stands.
//!
//! ```
//! use banister_events::frame::{Error, ndjson::Lines};
//! let mut lines = Lines::new(16);
//! let mut piece = &b"{}\r\n\n\"far too long to be held\"\n[]\n"[..];
//! let mut next = || lines.read(&mut piece).map(|(place, line)| (place.line, line.map(<[u8]>::to_vec)));
//! assert_eq!(next(), Some((1, Ok(b"{}".to_vec()))));
//! assert_eq!(next(), Some((3, Err(Error::TooLarge { limit: 16 }))));
//! assert_eq!(next(), Some((4, Ok(b"[]".to_vec()))));
//! assert_eq!(next(), None);
//! ```

use memchr::{memchr, memchr_iter, memchr2};
use serde::de::IgnoredAny;

use super::{Error, Framed, MARK, Partial, Place, length, take};

/// Turns bytes into lines.
#[derive(Debug, Clone)]
pub struct Lines {
    partial: Partial,
    /// Where the line being received begins.
    begins: Place,
    /// How many bytes of the stream were read.
    consumed: u64,
    finished: bool,
}

impl Lines {
    /// A splitter that holds at most `limit` bytes of one line.
    pub fn new(limit: usize) -> Self {
        Self { partial: Partial::new(limit), begins: Place::START, consumed: 0, finished: false }
    }

    /// Takes the next line that is not blank from the front of a piece; none when the piece is used up.
    pub fn read<'s, 'b: 's>(&'s mut self, bytes: &mut &'b [u8]) -> Option<Framed<'s, [u8]>> {
        loop {
            let end = memchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1);
            let piece = take(bytes, end);
            self.consumed += length(piece);
            let place = self.begins;
            let line = match piece.strip_suffix(b"\n") {
                Some(line) => line,
                None if self.finished && self.consumed > place.offset => piece,
                None => return self.partial.add(piece).err().map(|error| (place, Err(error))),
            };
            self.begins = Place { line: place.line + 1, offset: self.consumed };
            if self.partial.is_over() || self.is_blank(place, line) {
                self.partial.forget();
                continue;
            }
            return Some(without_ends(place, self.partial.close(line)));
        }
    }

    /// The last line, if no line end closed it. Ask until there is none.
    pub fn end(&mut self) -> Option<Framed<'_, [u8]>> {
        self.finished = true;
        self.read(&mut &[][..])
    }

    /// How many bytes of an unfinished line are held.
    pub fn held(&self) -> usize {
        self.partial.held().len()
    }

    /// Whether the line that `last` ends has nothing but space.
    fn is_blank(&self, place: Place, last: &[u8]) -> bool {
        let whole = || self.partial.held().iter().chain(last);
        let mark =
            if place.offset == 0 && whole().take(MARK.len()).eq(MARK) { MARK.len() } else { 0 };
        let size = self.partial.held().len() + last.len();
        size <= self.partial.limit && whole().skip(mark).all(u8::is_ascii_whitespace)
    }
}

/// Where a second object begins on a line, after a whole first one: some programs forget the line end between them.
/// A line of one object is not parsed to find that out.
///
/// ```
/// use banister_events::frame::ndjson::second;
/// assert_eq!(second(br#"{"a":"}{"} {"b":2}"#), Some(11));
/// assert_eq!(second(br#"{"a":"}{"}"#), None);
/// assert_eq!(second(br#"{"a":oops}{"b":2}"#), None);
/// ```
pub fn second(line: &[u8]) -> Option<usize> {
    // In JSON, an object follows on another within strings only.
    let follows = |at: usize| line.get(..at).is_some_and(|it| it.trim_ascii_end().ends_with(b"}"));
    if !memchr_iter(b'{', line).any(follows) {
        return None;
    }
    let mut documents = serde_json::Deserializer::from_slice(line).into_iter::<IgnoredAny>();
    documents.next()?.ok()?;
    let rest = line.get(documents.byte_offset()..)?.trim_ascii_start();
    rest.starts_with(b"{").then(|| line.len() - rest.len())
}

/// Writes one message and the line end. Line ends within it become spaces: in JSON they can only stand between tokens.
pub fn write(out: &mut Vec<u8>, message: &[u8]) {
    write_flat(out, message);
    out.push(b'\n');
}

/// Writes bytes so that they stay on one line.
pub(super) fn write_flat(out: &mut Vec<u8>, message: &[u8]) {
    let mut rest = message;
    while let Some(end) = memchr2(b'\n', b'\r', rest) {
        out.extend_from_slice(take(&mut rest, end));
        out.push(b' ');
        take(&mut rest, 1);
    }
    out.extend_from_slice(rest);
}

/// The line without the byte order mark before it and the CR after it.
fn without_ends(place: Place, line: Result<&[u8], Error>) -> Framed<'_, [u8]> {
    let Ok(line) = line else { return (place, line) };
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match line.strip_prefix(MARK) {
        Some(rest) if place.offset == 0 => (Place { offset: length(MARK), ..place }, Ok(rest)),
        _ => (place, Ok(line)),
    }
}

#[cfg(test)]
#[path = "ndjson_tests.rs"]
mod tests;
