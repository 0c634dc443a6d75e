//! JSON documents one after another, or the elements of an array, whatever their layout.
//!
//! It splits by counting brackets outside strings, so a pretty-printed file or an array of any size is read in
//! constant memory. It does not parse: a broken document is handed on as it stands. After a broken document the
//! split may be wrong until brackets balance again; JSON lines, which resynchronise at each line end, are read by
//! [`super::ndjson`]. An array that is not closed is [`Error::Unclosed`]; how many commas stand between its elements is
//! not looked at.
//!
//! ```
//! use banister_events::frame::json::Documents;
//! let mut documents = Documents::new(1024);
//! let mut found = Vec::new();
//! for mut piece in b"[\n  {\"a\": 1},\n  {\"b\": [2]}\n]".chunks(4) {
//!     while let Some((place, document)) = documents.read(&mut piece) {
//!         found.push((place.line, place.offset, document?.to_vec()));
//!     }
//! }
//! assert!(documents.end().is_none());
//! assert_eq!(found, [(2, 4, b"{\"a\": 1}".to_vec()), (3, 16, b"{\"b\": [2]}".to_vec())]);
//! # Ok::<(), banister_events::frame::Error>(())
//! ```

use memchr::{memchr_iter, memchr2};

use super::{Error, Framed, MARK, Partial, Place, length, take};

/// One document: the line it begins on, counted from 1, and its bytes, or that it is over the limit.
pub type Document = (u64, Result<Vec<u8>, Error>);

/// Turns bytes into documents.
#[derive(Debug, Clone)]
pub struct Documents {
    partial: Partial,
    /// Where the document being received begins; none between documents.
    begins: Option<Place>,
    /// Where the next byte stands.
    here: Place,
    /// Where the array begins whose elements are the documents.
    array: Option<Place>,
    depth: usize,
    text: Text,
}

/// Where a byte stands relative to strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    Outside,
    Inside,
    Escaped,
}

impl Documents {
    /// A splitter that holds at most `limit` bytes of one document.
    pub fn new(limit: usize) -> Self {
        Self {
            partial: Partial::new(limit),
            begins: None,
            here: Place::START,
            array: None,
            depth: 0,
            text: Text::Outside,
        }
    }

    /// Takes the next document from the front of a piece; none when the piece is used up.
    pub fn read<'s, 'b: 's>(&'s mut self, bytes: &mut &'b [u8]) -> Option<Framed<'s, [u8]>> {
        loop {
            let fresh = self.begins.is_none();
            let place = match self.begins {
                Some(place) => place,
                None => self.begin(bytes)?,
            };
            let end = self.find_end(bytes, fresh);
            let piece = take(bytes, end.unwrap_or(bytes.len()));
            self.pass(piece);
            if end.is_none() {
                self.begins = Some(place);
                return self.partial.add(piece).err().map(|error| (place, Err(error)));
            }
            self.begins = None;
            if self.partial.is_over() || self.is_mark(place, piece) {
                self.partial.forget();
                continue;
            }
            return Some(without_mark(place, self.partial.close(piece)));
        }
    }

    /// What is left after the last byte: a document that was cut off, an array that was. Ask until there is none.
    pub fn end(&mut self) -> Option<Framed<'_, [u8]>> {
        (self.depth, self.text) = (0, Text::Outside);
        if let Some(place) = self.begins.take() {
            if !self.partial.is_over() && !self.is_mark(place, &[]) {
                return Some(without_mark(place, self.partial.close(&[])));
            }
            self.partial.forget();
        }
        self.array.take().map(|place| (place, Err(Error::Unclosed)))
    }

    /// Takes the next bytes and hands each document they complete to `take`.
    pub fn push(&mut self, bytes: &[u8], mut take: impl FnMut(Document)) {
        let mut rest = bytes;
        while let Some((place, document)) = self.read(&mut rest) {
            take((place.line, document.map(<[u8]>::to_vec)));
        }
    }

    /// What is left after the last byte, as [`Documents::end`] tells it.
    pub fn finish(&mut self) -> Option<Document> {
        self.end().map(|(place, document)| (place.line, document.map(<[u8]>::to_vec)))
    }

    /// How many bytes of an unfinished document are held.
    pub fn held(&self) -> usize {
        self.partial.held().len()
    }

    /// Moves on to where the next document begins; none where the piece has no more.
    fn begin(&mut self, bytes: &mut &[u8]) -> Option<Place> {
        loop {
            let space = bytes.iter().position(|byte| !byte.is_ascii_whitespace());
            self.pass(take(bytes, space.unwrap_or(bytes.len())));
            match (bytes.first()?, self.array) {
                (b'[', None) => self.array = Some(self.here),
                (b']', Some(_)) => self.array = None,
                (b',', Some(_)) => {}
                _ => return Some(self.here),
            }
            self.pass(take(bytes, 1));
        }
    }

    /// Where the document that is being received ends in these bytes; `fresh` where it begins with them.
    fn find_end(&mut self, bytes: &[u8], fresh: bool) -> Option<usize> {
        let mut at = 0;
        loop {
            let rest = bytes.get(at..)?;
            match self.text {
                Text::Escaped => {
                    rest.first()?;
                    self.text = Text::Inside;
                    at += 1;
                }
                Text::Inside => {
                    at += memchr2(b'"', b'\\', rest)?;
                    let closed = bytes.get(at) == Some(&b'"');
                    self.text = if closed { Text::Outside } else { Text::Escaped };
                    at += 1;
                    if closed && self.depth == 0 {
                        return Some(at);
                    }
                }
                Text::Outside => {
                    if self.depth > 0 {
                        at += rest.iter().position(|byte| is_structure(*byte))?;
                    }
                    let byte = *bytes.get(at)?;
                    if self.depth == 0 && (at > 0 || !fresh) && ends_bare(byte) {
                        return Some(at);
                    }
                    at += 1;
                    match byte {
                        b'"' => self.text = Text::Inside,
                        b'{' | b'[' => self.depth += 1,
                        b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                        b',' => {}
                        _ => continue,
                    }
                    if self.depth == 0 && self.text == Text::Outside {
                        return Some(at);
                    }
                }
            }
        }
    }

    /// Counts bytes that were read.
    fn pass(&mut self, bytes: &[u8]) {
        self.here.offset += length(bytes);
        self.here.line += memchr_iter(b'\n', bytes).count() as u64;
    }

    /// Whether the document that `last` ends is nothing but a byte order mark.
    fn is_mark(&self, place: Place, last: &[u8]) -> bool {
        place.offset == 0 && self.partial.held().iter().chain(last).eq(MARK)
    }
}

/// Whether a byte ends a number, a word or whatever else stands between documents without brackets.
fn ends_bare(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == b',' || is_structure(byte)
}

/// Whether a byte within a document and outside strings bears on where the document ends.
fn is_structure(byte: u8) -> bool {
    matches!(byte, b'"' | b'{' | b'[' | b'}' | b']')
}

fn without_mark(place: Place, document: Result<&[u8], Error>) -> Framed<'_, [u8]> {
    match document.map(|document| document.strip_prefix(MARK)) {
        Ok(Some(rest)) if place.offset == 0 => (Place { offset: length(MARK), ..place }, Ok(rest)),
        _ => (place, document),
    }
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
