//! Bytes → nodes, in one pass.
//!
//! Every step takes the place it begins at and gives the place it ends at, in registers; what is wrong is put aside
//! first, since it happens once at most.

use std::borrow::Cow;
use std::collections::HashMap;

use super::{DEEPEST, Error, Node, Noticed, Reason, Tag, view};

/// The text that the bytes are.
pub(super) fn text(bytes: &[u8]) -> Result<&str, Error> {
    simdutf8::basic::from_utf8(bytes).map_err(|_| {
        // The quick reader does not tell where.
        let offset = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
        Error { offset, reason: Reason::Utf8 }
    })
}

/// Reads one document; its nodes replace what was there.
pub(super) fn scan(text: &str, nodes: &mut Vec<Node>) -> Result<Noticed, Error> {
    super::PARSED.set(super::PARSED.get() + 1);
    nodes.clear();
    let bytes = text.as_bytes();
    // Offsets are kept in 32 bits.
    if u32::try_from(bytes.len()).is_err() {
        return Err(Error { offset: 0, reason: Reason::Size });
    }
    // About what messages have; growing costs more than too much once.
    nodes.reserve(bytes.len() / 12);
    let wrong = Error { offset: 0, reason: Reason::Value };
    let mut scan = Scan { text, bytes, nodes, noticed: Noticed::default(), wrong };
    scan.document().map_or(Err(scan.wrong), |()| Ok(scan.noticed))
}

struct Scan<'a, 'n> {
    text: &'a str,
    bytes: &'a [u8],
    nodes: &'n mut Vec<Node>,
    noticed: Noticed,
    wrong: Error,
}

/// Objects with more names than this are searched for duplicates by hashing.
const FEW: usize = 32;

#[expect(clippy::cast_possible_truncation, reason = "the length of the text was checked to fit")]
impl Scan<'_, '_> {
    #[cold]
    fn fail<T>(&mut self, offset: usize, reason: Reason) -> Option<T> {
        self.wrong = Error { offset, reason };
        None
    }

    /// Fails for something that is not what was expected, or for the end of the text.
    #[cold]
    fn unexpected<T>(&mut self, at: usize, reason: Reason) -> Option<T> {
        let reason = if at < self.bytes.len() { reason } else { Reason::End };
        self.fail(at, reason)
    }

    #[inline]
    fn peek(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    #[inline]
    fn space(&self, mut at: usize) -> usize {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek(at) {
            at += 1;
        }
        at
    }

    #[inline]
    fn push(&mut self, start: usize, end: usize, tag: Tag) {
        let next = self.nodes.len() as u32 + 1;
        self.nodes.push(Node { start: start as u32, end: end as u32, next, tag });
    }

    fn document(&mut self) -> Option<()> {
        let end = self.value(self.space(0), 0)?;
        let end = self.space(end);
        if end < self.bytes.len() { self.fail(end, Reason::Trailing) } else { Some(()) }
    }

    fn value(&mut self, at: usize, depth: usize) -> Option<usize> {
        match self.peek(at) {
            Some(b'"') => self.string(at),
            Some(b'{') => self.object(at, depth + 1),
            Some(b'[') => self.array(at, depth + 1),
            Some(b'-' | b'0'..=b'9') => self.number(at),
            Some(b't') => self.word(at, b"true", Tag::True),
            Some(b'f') => self.word(at, b"false", Tag::False),
            Some(b'n') => self.word(at, b"null", Tag::Null),
            _ => self.unexpected(at, Reason::Value),
        }
    }

    fn word(&mut self, at: usize, word: &[u8], tag: Tag) -> Option<usize> {
        let rest = self.bytes.get(at..).unwrap_or_default();
        if !rest.starts_with(word) {
            let reason = if word.starts_with(rest) { Reason::End } else { Reason::Value };
            return self.fail(at, reason);
        }
        let end = at + word.len();
        self.push(at, end, tag);
        Some(end)
    }

    /// Opens an array or object: pushes its node, whose end is written by [`Self::close`].
    #[inline]
    fn open(&mut self, at: usize, depth: usize, tag: Tag) -> Option<usize> {
        if depth > DEEPEST {
            return self.fail(at, Reason::Depth);
        }
        self.noticed.depth = self.noticed.depth.max(depth);
        self.push(at, at, tag);
        Some(self.space(at + 1))
    }

    /// Writes where an array or object ends; gives that place.
    #[inline]
    fn close(&mut self, node: usize, end: usize) -> usize {
        let next = self.nodes.len() as u32;
        if let Some(node) = self.nodes.get_mut(node) {
            node.end = end as u32;
            node.next = next;
        }
        end
    }

    fn array(&mut self, at: usize, depth: usize) -> Option<usize> {
        let node = self.nodes.len();
        let mut at = self.open(at, depth, Tag::Array)?;
        if self.peek(at) == Some(b']') {
            return Some(self.close(node, at + 1));
        }
        loop {
            let end = self.value(at, depth)?;
            let end = self.space(end);
            match self.peek(end) {
                Some(b',') => at = self.space(end + 1),
                Some(b']') => return Some(self.close(node, end + 1)),
                _ => return self.unexpected(end, Reason::Comma),
            }
        }
    }

    fn object(&mut self, at: usize, depth: usize) -> Option<usize> {
        let node = self.nodes.len();
        let mut at = self.open(at, depth, Tag::Object)?;
        if self.peek(at) == Some(b'}') {
            return Some(self.close(node, at + 1));
        }
        let mut names = 0;
        let mut marks: u64 = 0;
        loop {
            let name = self.nodes.len();
            if self.peek(at) != Some(b'"') {
                return self.unexpected(at, Reason::Name);
            }
            let end = self.string(at)?;
            names += 1;
            let mark = self.mark(name);
            if marks & mark != 0 && names <= FEW {
                self.look_back(node, name);
            }
            marks |= mark;
            let colon = self.space(end);
            if self.peek(colon) != Some(b':') {
                return self.unexpected(colon, Reason::Colon);
            }
            let end = self.value(self.space(colon + 1), depth)?;
            let end = self.space(end);
            match self.peek(end) {
                Some(b',') => at = self.space(end + 1),
                Some(b'}') => {
                    if names > FEW {
                        self.hash_names(node);
                    }
                    return Some(self.close(node, end + 1));
                }
                _ => return self.unexpected(end, Reason::Comma),
            }
        }
    }

    /// One bit for a name, the same for equal names. Unescaped, a name with escapes may be any.
    #[inline]
    fn mark(&self, name: usize) -> u64 {
        let Some(node) = self.nodes.get(name).filter(|node| node.tag == Tag::Plain) else {
            return u64::MAX;
        };
        let byte = |at: u32| u32::from(self.bytes.get(at as usize).copied().unwrap_or(0));
        let (first, last) = (byte(node.start + 1), byte(node.end.saturating_sub(2)));
        let length = node.end - node.start;
        1 << (((length * 7) ^ (first * 5) ^ (last * 11)) & 63)
    }

    /// A name, unescaped.
    fn name(&self, at: usize) -> Option<Cow<'_, str>> {
        let node = self.nodes.get(at)?;
        let inner =
            self.text.get(node.start as usize + 1..(node.end as usize).saturating_sub(1))?;
        Some(if node.tag == Tag::Plain {
            Cow::Borrowed(inner)
        } else {
            view::unescape(inner).into()
        })
    }

    /// Looks whether one of the names before this one is the same.
    fn look_back(&mut self, object: usize, name: usize) {
        let this = self.name(name);
        let mut at = object + 1;
        while at < name {
            let counts = self.nodes.get(at).is_some_and(|node| node.tag != Tag::Shadowed);
            if counts && self.name(at) == this {
                self.shadow(at, name);
                return;
            }
            at = self.nodes.get(at + 1).map_or(name, |value| value.next as usize);
        }
    }

    fn hash_names(&mut self, object: usize) {
        let mut known = HashMap::new();
        let mut twice = Vec::new();
        let mut at = object + 1;
        while at < self.nodes.len() {
            if let Some(name) = self.name(at)
                && let Some(earlier) = known.insert(name, at)
            {
                twice.push((earlier, at));
            }
            at = self.nodes.get(at + 1).map_or(usize::MAX, |value| value.next as usize);
        }
        for (earlier, later) in twice {
            self.shadow(earlier, later);
        }
    }

    fn shadow(&mut self, earlier: usize, later: usize) {
        if let Some(node) = self.nodes.get_mut(earlier) {
            node.tag = Tag::Shadowed;
        }
        self.noticed.duplicate.get_or_insert(later as u32);
    }

    #[inline]
    fn string(&mut self, start: usize) -> Option<usize> {
        let at = plain(self.bytes, start + 1);
        if self.peek(at) != Some(b'"') {
            return self.long_way(start, at);
        }
        self.noticed.longest_string = self.noticed.longest_string.max(at - start);
        self.push(start, at + 1, Tag::Plain);
        Some(at + 1)
    }

    /// The rest of a string in which something needs a closer look.
    fn long_way(&mut self, start: usize, mut at: usize) -> Option<usize> {
        loop {
            match self.peek(at) {
                Some(b'"') => break,
                Some(b'\\') => at = plain(self.bytes, self.escape(at)?),
                _ => return self.unexpected(at, Reason::Control),
            }
        }
        self.noticed.longest_string = self.noticed.longest_string.max(at - start);
        self.push(start, at + 1, Tag::Escaped);
        Some(at + 1)
    }

    fn escape(&mut self, at: usize) -> Option<usize> {
        match self.peek(at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Some(at + 2),
            Some(b'u') => match self.unit(at)? {
                0xD800..=0xDBFF => match self.unit(at + 6) {
                    Some(0xDC00..=0xDFFF) => Some(at + 12),
                    _ => self.fail(at, Reason::Surrogate),
                },
                0xDC00..=0xDFFF => self.fail(at, Reason::Surrogate),
                _ => Some(at + 6),
            },
            _ => self.unexpected(at + 1, Reason::Escape).or_else(|| {
                self.wrong.offset = at;
                None
            }),
        }
    }

    /// One `\uXXXX`.
    fn unit(&mut self, at: usize) -> Option<u32> {
        match self.bytes.get(at..at + 2) {
            Some(b"\\u") => {}
            Some(_) => return self.fail(at, Reason::Escape),
            None => return self.fail(at, Reason::End),
        }
        let mut unit = 0;
        for place in at + 2..at + 6 {
            let Some(byte) = self.peek(place) else {
                return self.fail(at, Reason::End);
            };
            let Some(digit) = char::from(byte).to_digit(16) else {
                return self.fail(at, Reason::Escape);
            };
            unit = unit * 16 + digit;
        }
        Some(unit)
    }

    fn number(&mut self, start: usize) -> Option<usize> {
        let mut tag = Tag::Integer;
        let mut at = start + usize::from(self.peek(start) == Some(b'-'));
        match self.peek(at) {
            Some(b'0') => at += 1,
            Some(b'1'..=b'9') => at = self.digits(at),
            _ => return self.unexpected(at, Reason::Number),
        }
        if self.peek(at) == Some(b'.') {
            tag = Tag::Float;
            at = self.some_digits(at + 1)?;
        }
        if let Some(b'e' | b'E') = self.peek(at) {
            tag = Tag::Float;
            let sign = matches!(self.peek(at + 1), Some(b'+' | b'-'));
            at = self.some_digits(at + 1 + usize::from(sign))?;
        }
        if let Some(b'0'..=b'9') = self.peek(at) {
            return self.fail(at, Reason::Number);
        }
        self.push(start, at, tag);
        if tag == Tag::Integer {
            self.noticed.longest_integer = self.noticed.longest_integer.max(at - start);
        }
        // Shorter ones without exponent are in range.
        if (tag == Tag::Float || at - start > 300) && !self.is_finite(start, at) {
            return self.fail(start, Reason::Range);
        }
        Some(at)
    }

    fn is_finite(&self, start: usize, end: usize) -> bool {
        let number = self.text.get(start..end).and_then(|text| text.parse::<f64>().ok());
        number.is_some_and(f64::is_finite)
    }

    fn digits(&self, mut at: usize) -> usize {
        while let Some(b'0'..=b'9') = self.peek(at) {
            at += 1;
        }
        at
    }

    fn some_digits(&mut self, at: usize) -> Option<usize> {
        match self.peek(at) {
            Some(b'0'..=b'9') => Some(self.digits(at)),
            _ => self.unexpected(at, Reason::Number),
        }
    }
}

/// The next place that is a quote, a backslash or a control character, or the end: sixteen bytes at a time, so that most
/// names and words take one turn.
#[inline]
pub(super) fn plain(bytes: &[u8], mut at: usize) -> usize {
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<16>) {
        let both = u128::from_le_bytes(*chunk);
        #[expect(clippy::cast_possible_truncation, reason = "the halves are what is wanted")]
        let (low, high) = (special(both as u64), special((both >> 64) as u64));
        if low | high != 0 {
            let (half, before) = if low != 0 { (low, 0) } else { (high, 8) };
            return at + before + (half.trailing_zeros() / 8) as usize;
        }
        at += 16;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20)).count()
}

/// The high bits of those of eight bytes that are a quote, a backslash or a control character. A bit above the lowest
/// one set may be wrong.
#[inline]
fn special(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    const fn below(word: u64, byte: u8) -> u64 {
        word.wrapping_sub(ONES * byte as u64) & !word
    }
    let quote = below(word ^ (ONES * u64::from(b'"')), 1);
    let backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
    (quote | backslash | below(word, 0x20)) & HIGH
}
