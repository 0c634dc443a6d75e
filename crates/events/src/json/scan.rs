//! Bytes → nodes, in one pass.

use std::borrow::Cow;
use std::collections::HashMap;

use super::{DEEPEST, Error, Node, Noticed, Reason, Tag, view};

/// Reads one document; its nodes replace what was there.
pub(super) fn scan<'a>(
    bytes: &'a [u8],
    nodes: &mut Vec<Node>,
) -> Result<(&'a str, Noticed), Error> {
    nodes.clear();
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Error { offset: error.valid_up_to(), reason: Reason::Utf8 })?;
    // Offsets are kept in 32 bits.
    if u32::try_from(bytes.len()).is_err() {
        return Err(Error { offset: 0, reason: Reason::Size });
    }
    // About what messages have; growing costs more than too much once.
    nodes.reserve(bytes.len() / 12);
    let mut scan = Scan { text, bytes, at: 0, nodes, noticed: Noticed::default() };
    scan.space();
    scan.value(0)?;
    scan.space();
    if scan.at < bytes.len() {
        return Err(scan.error(Reason::Trailing));
    }
    Ok((text, scan.noticed))
}

struct Scan<'a, 'n> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    nodes: &'n mut Vec<Node>,
    noticed: Noticed,
}

/// Objects with more names than this are searched for duplicates by hashing.
const FEW: usize = 32;

/// The mark of a name with escapes: unescaped it may be any name.
const ESCAPED: u64 = 1;

#[expect(clippy::cast_possible_truncation, reason = "the length of the text was checked to fit")]
impl Scan<'_, '_> {
    fn error(&self, reason: Reason) -> Error {
        Error { offset: self.at, reason }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn push(&mut self, start: usize, tag: Tag) {
        let next = self.nodes.len() as u32 + 1;
        self.nodes.push(Node { start: start as u32, end: self.at as u32, next, tag });
    }

    fn value(&mut self, depth: usize) -> Result<(), Error> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'{') => self.object(depth + 1),
            Some(b'[') => self.array(depth + 1),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word(b"true", Tag::True),
            Some(b'f') => self.word(b"false", Tag::False),
            Some(b'n') => self.word(b"null", Tag::Null),
            Some(_) => Err(self.error(Reason::Value)),
            None => Err(self.error(Reason::End)),
        }
    }

    fn word(&mut self, word: &[u8], tag: Tag) -> Result<(), Error> {
        let start = self.at;
        let rest = self.bytes.get(start..).unwrap_or_default();
        if !rest.starts_with(word) {
            let reason = if word.starts_with(rest) { Reason::End } else { Reason::Value };
            return Err(self.error(reason));
        }
        self.at += word.len();
        self.push(start, tag);
        Ok(())
    }

    /// Opens an array or object: pushes its node, whose end is written by [`Self::close`].
    fn open(&mut self, depth: usize, tag: Tag) -> Result<usize, Error> {
        if depth > DEEPEST {
            return Err(self.error(Reason::Depth));
        }
        self.noticed.depth = self.noticed.depth.max(depth);
        let node = self.nodes.len();
        self.push(self.at, tag);
        self.at += 1;
        self.space();
        Ok(node)
    }

    fn close(&mut self, node: usize) {
        self.at += 1;
        let next = self.nodes.len() as u32;
        if let Some(node) = self.nodes.get_mut(node) {
            node.end = self.at as u32;
            node.next = next;
        }
    }

    /// After an element: whether another one follows.
    fn more(&mut self, closing: u8) -> Result<bool, Error> {
        self.space();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                self.space();
                Ok(true)
            }
            Some(byte) if byte == closing => Ok(false),
            Some(_) => Err(self.error(Reason::Comma)),
            None => Err(self.error(Reason::End)),
        }
    }

    fn array(&mut self, depth: usize) -> Result<(), Error> {
        let node = self.open(depth, Tag::Array)?;
        if self.peek() != Some(b']') {
            self.value(depth)?;
            while self.more(b']')? {
                self.value(depth)?;
            }
        }
        self.close(node);
        Ok(())
    }

    fn object(&mut self, depth: usize) -> Result<(), Error> {
        let node = self.open(depth, Tag::Object)?;
        if self.peek() == Some(b'}') {
            self.close(node);
            return Ok(());
        }
        let mut names = 0;
        let mut marks: u64 = 0;
        loop {
            let name = self.nodes.len();
            match self.peek() {
                Some(b'"') => self.string()?,
                Some(_) => return Err(self.error(Reason::Name)),
                None => return Err(self.error(Reason::End)),
            }
            names += 1;
            let mark = self.mark(name);
            if names <= FEW && (marks & (mark | ESCAPED) != 0 || mark == ESCAPED) {
                self.look_back(node, name);
            }
            marks |= mark;
            self.space();
            match self.peek() {
                Some(b':') => self.at += 1,
                Some(_) => return Err(self.error(Reason::Colon)),
                None => return Err(self.error(Reason::End)),
            }
            self.space();
            self.value(depth)?;
            if !self.more(b'}')? {
                break;
            }
        }
        self.close(node);
        if names > FEW {
            self.hash_names(node);
        }
        Ok(())
    }

    /// One bit for a name, the same for equal names.
    fn mark(&self, name: usize) -> u64 {
        let Some(node) = self.nodes.get(name).filter(|node| node.tag == Tag::Plain) else {
            return ESCAPED;
        };
        let byte = |at: u32| u32::from(self.bytes.get(at as usize).copied().unwrap_or(0));
        let (first, last) = (byte(node.start + 1), byte(node.end.saturating_sub(2)));
        let length = node.end - node.start;
        // The lowest bit is taken.
        2 << ((length * 7 ^ first * 5 ^ last * 11) % 63)
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

    fn string(&mut self) -> Result<(), Error> {
        let start = self.at;
        let mut tag = Tag::Plain;
        self.at += 1;
        loop {
            self.at += plain(self.bytes.get(self.at..).unwrap_or_default());
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    tag = Tag::Escaped;
                    self.escape()?;
                }
                Some(_) => return Err(self.error(Reason::Control)),
                None => return Err(self.error(Reason::End)),
            }
        }
        self.at += 1;
        self.noticed.longest_string = self.noticed.longest_string.max(self.at - start);
        self.push(start, tag);
        Ok(())
    }

    fn escape(&mut self) -> Result<(), Error> {
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 2;
                Ok(())
            }
            Some(b'u') => {
                let alone = self.error(Reason::Surrogate);
                match self.unit()? {
                    0xD800..=0xDBFF => match self.unit() {
                        Ok(0xDC00..=0xDFFF) => Ok(()),
                        _ => Err(alone),
                    },
                    0xDC00..=0xDFFF => Err(alone),
                    _ => Ok(()),
                }
            }
            Some(_) => Err(self.error(Reason::Escape)),
            None => Err(self.error(Reason::End)),
        }
    }

    /// One `\uXXXX`.
    fn unit(&mut self) -> Result<u32, Error> {
        match self.bytes.get(self.at..self.at + 2) {
            Some(b"\\u") => {}
            Some(_) => return Err(self.error(Reason::Escape)),
            None => return Err(self.error(Reason::End)),
        }
        let mut unit = 0;
        for at in self.at + 2..self.at + 6 {
            let digit = match self.bytes.get(at) {
                Some(byte) => char::from(*byte).to_digit(16),
                None => return Err(self.error(Reason::End)),
            };
            unit = unit * 16 + digit.ok_or_else(|| self.error(Reason::Escape))?;
        }
        self.at += 6;
        Ok(unit)
    }

    fn number(&mut self) -> Result<(), Error> {
        let start = self.at;
        let mut tag = Tag::Integer;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            Some(_) => return Err(self.error(Reason::Number)),
            None => return Err(self.error(Reason::End)),
        }
        if self.peek() == Some(b'.') {
            tag = Tag::Float;
            self.at += 1;
            self.some_digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            tag = Tag::Float;
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.some_digits()?;
        }
        if let Some(b'0'..=b'9') = self.peek() {
            return Err(self.error(Reason::Number));
        }
        self.push(start, tag);
        let length = self.at - start;
        if tag == Tag::Integer {
            self.noticed.longest_integer = self.noticed.longest_integer.max(length);
        }
        // Shorter ones without exponent are in range.
        if (tag == Tag::Float || length > 300) && !self.finite(start) {
            return Err(Error { offset: start, reason: Reason::Range });
        }
        Ok(())
    }

    fn finite(&self, start: usize) -> bool {
        let number = self.text.get(start..self.at).and_then(|text| text.parse::<f64>().ok());
        number.is_some_and(f64::is_finite)
    }

    fn digits(&mut self) {
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
    }

    fn some_digits(&mut self) -> Result<(), Error> {
        match self.peek() {
            Some(b'0'..=b'9') => {
                self.digits();
                Ok(())
            }
            Some(_) => Err(self.error(Reason::Number)),
            None => Err(self.error(Reason::End)),
        }
    }
}

/// How many bytes from the start are neither quote, backslash nor control character: eight at a time.
fn plain(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    const fn repeat(byte: u8) -> u64 {
        ONES * byte as u64
    }
    // Bytes below `byte` have their high bit set here; a bit above the lowest one set may be wrong.
    const fn below(word: u64, byte: u8) -> u64 {
        word.wrapping_sub(repeat(byte)) & !word
    }
    let (chunks, rest) = bytes.as_chunks::<8>();
    let mut at = 0;
    for chunk in chunks {
        let word = u64::from_le_bytes(*chunk);
        let quote = below(word ^ repeat(b'"'), 1);
        let backslash = below(word ^ repeat(b'\\'), 1);
        let found = (quote | backslash | below(word, 0x20)) & HIGH;
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    at + rest.iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20)).count()
}
