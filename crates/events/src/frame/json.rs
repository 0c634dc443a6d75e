//! JSON documents one after another, or the elements of an array, whatever their layout.
//!
//! It splits by counting brackets outside strings, so a pretty-printed file or an array of any size is read in
//! constant memory. It does not parse: a broken document is handed on as it stands. After a broken document the
//! split may be wrong until brackets balance again; JSON lines, which resynchronise at each line end, are read by
//! [`super::ndjson`].

use super::Error;

/// One document: the line it begins on, counted from 1, and its bytes, or that it is over the limit.
pub type Document = (u64, Result<Vec<u8>, Error>);

/// Turns bytes into documents.
#[derive(Debug, Clone)]
pub struct Documents {
    limit: usize,
    document: Vec<u8>,
    begins: u64,
    line: u64,
    depth: usize,
    in_array: bool,
    text: Text,
    too_large: bool,
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
            limit,
            document: Vec::new(),
            begins: 1,
            line: 1,
            depth: 0,
            in_array: false,
            text: Text::Outside,
            too_large: false,
        }
    }

    /// Takes the next bytes and hands each document they complete to `take`.
    pub fn push(&mut self, bytes: &[u8], mut take: impl FnMut(Document)) {
        for &byte in bytes {
            if self.byte(byte)
                && let Some(document) = self.finish()
            {
                take(document);
            }
            self.line += u64::from(byte == b'\n');
        }
    }

    /// What is left after the last byte.
    pub fn finish(&mut self) -> Option<Document> {
        let document = std::mem::take(&mut self.document);
        if std::mem::take(&mut self.too_large) {
            return Some((self.begins, Err(Error::TooLarge { limit: self.limit })));
        }
        (!document.trim_ascii().is_empty()).then_some((self.begins, Ok(document)))
    }

    /// Takes one byte; true when a document ended with or before it.
    fn byte(&mut self, byte: u8) -> bool {
        if self.text != Text::Outside {
            self.text = match (self.text, byte) {
                (Text::Inside, b'"') => Text::Outside,
                (Text::Inside, b'\\') => Text::Escaped,
                _ => Text::Inside,
            };
            self.keep(byte);
            return false;
        }
        match byte {
            b'"' => self.text = Text::Inside,
            b'[' if self.depth == 0 && !self.in_array => {
                self.in_array = true;
                return true;
            }
            b'{' | b'[' => self.depth += 1,
            b']' if self.depth == 0 => {
                self.in_array = false;
                return true;
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.keep(byte);
                return self.depth == 0;
            }
            b',' if self.depth == 0 && self.in_array => return true,
            _ if byte.is_ascii_whitespace() && self.document.is_empty() => return false,
            _ => {}
        }
        self.keep(byte);
        false
    }

    fn keep(&mut self, byte: u8) {
        if self.document.is_empty() {
            self.begins = self.line;
        }
        if self.document.len() < self.limit {
            self.document.push(byte);
        } else {
            self.too_large = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str, limit: usize) -> Vec<(u64, Option<String>)> {
        let mut documents = Documents::new(limit);
        let mut all = Vec::new();
        for piece in text.as_bytes().chunks(3) {
            documents.push(piece, |(line, bytes)| {
                all.push((line, bytes.ok().map(|bytes| String::from_utf8(bytes).unwrap())));
            });
        }
        all.extend(
            documents
                .finish()
                .map(|(line, bytes)| (line, bytes.ok().map(|b| String::from_utf8(b).unwrap()))),
        );
        all
    }

    #[test]
    fn layout_arrays_and_strings_do_not_matter() {
        assert_eq!(
            split("[\n {\"a\":[1,\"]}\\\"\"]},\n {\n}\n]\n{}7", 64),
            [
                (2, Some("{\"a\":[1,\"]}\\\"\"]}".into())),
                (3, Some("{\n}".into())),
                (6, Some("{}".into())),
                (6, Some("7".into())),
            ]
        );
    }

    #[test]
    fn an_oversized_document_is_reported_and_the_next_one_is_read() {
        assert_eq!(split("{\"a\":12345}{}", 4), [(1, None), (1, Some("{}".into()))]);
    }
}
