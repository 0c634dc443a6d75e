//! JSON documents one after another, or the elements of an array, whatever their layout.
//!
//! It splits by counting brackets outside strings, so a pretty-printed file or an array of any size is read in
//! constant memory. It does not parse: a broken document is handed on as it stands. It ends where a line begins with an
//! object in a place where no object can stand; where a line ends inside a string, brackets mean nothing any more, and
//! the document ends before the next line that begins an object as far to the right as the documents before. What is
//! broken within one line is not resynchronised before the line ends. An array that is not closed is
//! [`Error::Unclosed`], and commas that are missing or too many between its elements are errors too.
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

use memchr::{memchr, memchr_iter, memchr3, memrchr};

use super::{Error, Framed, MARK, Partial, Place, length, take};
use crate::json::DEEPEST;

/// Turns bytes into documents.
#[derive(Debug, Clone)]
pub struct Documents {
    partial: Partial,
    /// Where the document being received begins; none between documents.
    begins: Option<Place>,
    /// Where the next byte stands.
    here: Place,
    /// The array whose elements are the documents.
    array: Option<Array>,
    /// How far to the right documents begin that begin a line.
    margin: Option<u64>,
    open: Brackets,
    text: Text,
    line: Line,
}

#[derive(Debug, Clone, Copy)]
struct Array {
    begins: Place,
    /// How far to the right it begins, if it begins a line.
    indent: Option<u64>,
    last: Last,
}

/// What came last in an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Bracket,
    Element,
    Comma(Place),
    /// A broken element, which may have taken its comma with it.
    Broken,
}

/// Where a byte stands relative to strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    Outside,
    Inside,
    Escaped,
    /// A line ended inside a string, so that nobody knows.
    Lost,
}

/// The brackets that are open.
#[derive(Debug, Clone, Copy, Default)]
struct Brackets {
    depth: usize,
    /// One bit each, set for an object, the innermost last.
    objects: u128,
    /// There were more than there are bits, so that some are forgotten.
    deep: bool,
}

impl Brackets {
    fn open(&mut self, object: bool) {
        self.depth += 1;
        self.deep |= self.depth > DEEPEST;
        self.objects = self.objects << 1 | u128::from(object);
    }

    fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.objects >>= 1;
    }

    fn in_object(self) -> bool {
        self.objects & 1 == 1
    }
}

/// What stands before a byte.
#[derive(Debug, Clone, Copy)]
struct Line {
    /// How many bytes of space stand before it on its line; none where something else does.
    indent: Option<u64>,
    /// The last byte that is not space.
    last: u8,
}

impl Line {
    fn pass(&mut self, bytes: &[u8]) {
        let on_line = match memrchr(b'\n', bytes) {
            Some(end) => {
                self.indent = Some(0);
                bytes.get(end + 1..).unwrap_or_default()
            }
            None => bytes,
        };
        let blank = on_line.iter().all(u8::is_ascii_whitespace);
        self.indent = self.indent.filter(|_| blank).map(|indent| indent + length(on_line));
        if let Some(last) = bytes.iter().rev().find(|byte| !byte.is_ascii_whitespace()) {
            self.last = *last;
        }
    }
}

impl Documents {
    /// A splitter that holds at most `limit` bytes of one document.
    pub fn new(limit: usize) -> Self {
        Self {
            partial: Partial::new(limit),
            begins: None,
            here: Place::START,
            array: None,
            margin: None,
            open: Brackets::default(),
            text: Text::Outside,
            line: Line { indent: Some(0), last: 0 },
        }
    }

    /// Takes the next document from the front of a piece; none when the piece is used up.
    pub fn read<'s, 'b: 's>(&'s mut self, bytes: &mut &'b [u8]) -> Option<Framed<'s, [u8]>> {
        loop {
            let fresh = self.begins.is_none();
            let place = match self.begins {
                Some(place) => place,
                None => match self.begin(bytes)? {
                    Ok(place) => place,
                    Err((place, error)) => return Some((place, Err(error))),
                },
            };
            let end = self.find_end(bytes, fresh);
            let piece = take(bytes, end.unwrap_or(bytes.len()));
            self.count(piece);
            if end.is_none() {
                self.begins = Some(place);
                return self.partial.add(piece).err().map(|error| (place, Err(error)));
            }
            self.begins = None;
            let broken = self.open.depth > 0 || self.text != Text::Outside;
            (self.open, self.text) = (Brackets::default(), Text::Outside);
            if let Some(array) = &mut self.array {
                array.last = if broken { Last::Broken } else { Last::Element };
            }
            if self.partial.is_over() || self.is_mark(place, piece) {
                self.partial.forget();
                continue;
            }
            let (place, document) = without_mark(place, self.partial.close(piece));
            return Some((
                place,
                document.map(|bytes| if broken { trimmed(bytes) } else { bytes }),
            ));
        }
    }

    /// What is left after the last byte: a document that was cut off, an array that was. Ask until there is none.
    pub fn end(&mut self) -> Option<Framed<'_, [u8]>> {
        (self.open, self.text) = (Brackets::default(), Text::Outside);
        if let Some(place) = self.begins.take() {
            if !self.partial.is_over() && !self.is_mark(place, &[]) {
                return Some(without_mark(place, self.partial.close(&[])));
            }
            self.partial.forget();
        }
        self.array.take().map(|array| (array.begins, Err(Error::Unclosed)))
    }

    /// How many bytes of an unfinished document are held.
    pub fn held(&self) -> usize {
        self.partial.held().len()
    }

    /// Moves on to where the next document begins, or to what stands wrongly before it; none where the piece has no
    /// more.
    fn begin(&mut self, bytes: &mut &[u8]) -> Option<Result<Place, (Place, Error)>> {
        loop {
            let space = bytes.iter().position(|byte| !byte.is_ascii_whitespace());
            self.pass(take(bytes, space.unwrap_or(bytes.len())));
            let here = self.here;
            let wrong = match (bytes.first()?, &mut self.array) {
                (b'[', None) => {
                    let indent = self.line.indent;
                    self.array = Some(Array { begins: here, indent, last: Last::Bracket });
                    self.margin = None;
                    None
                }
                (b']', Some(array)) => {
                    let last = array.last;
                    (self.array, self.margin) = (None, None);
                    if let Last::Comma(place) = last { Some(place) } else { None }
                }
                (b',', Some(array)) => {
                    let before = std::mem::replace(&mut array.last, Last::Comma(here));
                    matches!(before, Last::Bracket | Last::Comma(_)).then_some(here)
                }
                (_, Some(array)) if array.last == Last::Element => {
                    // Told once: the next time, the element is read.
                    array.last = Last::Broken;
                    return Some(Err((here, Error::MissingComma)));
                }
                _ => {
                    self.margin = self.margin.or(self.line.indent);
                    return Some(Ok(here));
                }
            };
            self.pass(take(bytes, 1));
            if let Some(place) = wrong {
                return Some(Err((place, Error::SpareComma)));
            }
        }
    }

    /// Where the document that is being received ends in these bytes; `fresh` where it begins with them.
    fn find_end(&mut self, bytes: &[u8], fresh: bool) -> Option<usize> {
        let mut at = 0;
        loop {
            let rest = bytes.get(at..)?;
            match self.text {
                Text::Escaped => {
                    let lost = *rest.first()? == b'\n';
                    self.text = if lost { Text::Lost } else { Text::Inside };
                    self.line.pass(rest.get(..1)?);
                    at += 1;
                }
                Text::Inside => {
                    at += memchr3(b'"', b'\\', b'\n', rest)?;
                    self.text = match bytes.get(at)? {
                        b'"' => Text::Outside,
                        b'\\' => Text::Escaped,
                        _ => Text::Lost,
                    };
                    self.line.pass(bytes.get(at..=at)?);
                    at += 1;
                    if self.text == Text::Outside && self.open.depth == 0 {
                        return Some(at);
                    }
                }
                Text::Lost => match self.find_next(rest) {
                    Ok(space) => return Some(at + space),
                    Err(seen) => at += seen?,
                },
                Text::Outside => {
                    if self.open.depth > 0 {
                        let skipped = rest.iter().position(|byte| is_structure(*byte));
                        self.line.pass(rest.get(..skipped.unwrap_or(rest.len()))?);
                        at += skipped?;
                    }
                    let byte = *bytes.get(at)?;
                    if self.open.depth == 0 && (at > 0 || !fresh) && ends_bare(byte) {
                        return Some(at);
                    }
                    if self.open.depth > 0 && self.is_misplaced(byte) {
                        return Some(at);
                    }
                    self.line.pass(bytes.get(at..=at)?);
                    at += 1;
                    match byte {
                        b'"' => self.text = Text::Inside,
                        b'{' | b'[' => self.open.open(byte == b'{'),
                        b'}' | b']' => self.open.close(),
                        b',' => {}
                        _ => continue,
                    }
                    if self.open.depth == 0 && self.text == Text::Outside {
                        return Some(at);
                    }
                }
            }
        }
    }

    /// Whether a byte begins a line and stands where JSON has none, so that it is the next document or the end of the
    /// array.
    fn is_misplaced(&self, byte: u8) -> bool {
        let Some(indent) = self.line.indent.filter(|_| !self.open.deep) else {
            return false;
        };
        match (byte, self.line.last) {
            (b'{', b':') => !self.open.in_object(),
            (b'{', b',' | b'[') => self.open.in_object(),
            (b'{', _) => true,
            (b']', _) => self.open.in_object() && self.ends_array(indent),
            _ => false,
        }
    }

    /// Whether a closing bracket that begins a line may be that of the array.
    fn ends_array(&self, indent: u64) -> bool {
        self.array.is_some_and(|array| {
            array.indent == Some(indent) || self.margin.is_none_or(|margin| indent < margin)
        })
    }

    /// Where a document begins again, or its array ends, after the end of another got lost; otherwise how many bytes
    /// are surely before that, none where these are all.
    fn find_next(&mut self, bytes: &[u8]) -> Result<usize, Option<usize>> {
        let Some(indent) = self.line.indent else {
            let end = memchr(b'\n', bytes).map(|end| end + 1);
            self.line.pass(bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default());
            return Err(end);
        };
        let space = bytes.iter().position(|byte| !byte.is_ascii_whitespace() || *byte == b'\n');
        let indent = indent + space.unwrap_or(bytes.len()) as u64;
        let first = space.and_then(|space| bytes.get(space));
        let begins = match first {
            Some(b'{') => self.margin.is_none_or(|margin| indent == margin),
            Some(b']') => self.ends_array(indent),
            _ => false,
        };
        match space {
            Some(space) if begins => {
                self.line.pass(bytes.get(..space).unwrap_or_default());
                Ok(space)
            }
            _ => {
                let seen = space.map(|space| space + 1);
                self.line.pass(bytes.get(..seen.unwrap_or(bytes.len())).unwrap_or_default());
                Err(seen)
            }
        }
    }

    /// Passes bytes between documents.
    fn pass(&mut self, bytes: &[u8]) {
        self.line.pass(bytes);
        self.count(bytes);
    }

    /// Counts bytes that were read.
    fn count(&mut self, bytes: &[u8]) {
        self.here.offset += length(bytes);
        self.here.line += memchr_iter(b'\n', bytes).count() as u64;
    }

    /// Whether the document that `last` ends is nothing but a byte order mark.
    fn is_mark(&self, place: Place, last: &[u8]) -> bool {
        let fits = MARK.len() <= self.partial.limit;
        place.offset == 0 && fits && self.partial.held().iter().chain(last).eq(MARK)
    }
}

/// A document that ends where the next one begins, without what stands between them.
fn trimmed(document: &[u8]) -> &[u8] {
    let document = document.trim_ascii_end();
    document.strip_suffix(b",").unwrap_or(document)
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
