//! JSON as it stands in the bytes: one flat list of nodes, each with its place, nothing copied.
//!
//! [`Parser::parse`] accepts exactly RFC 8259 in UTF-8 and refuses what cannot be handed on safely: nesting deeper
//! than [`DEEPEST`], lone surrogates, numbers beyond what a double holds. A [`View`] looks at one value; names that
//! stand twice in an object are kept, the last one counts, and [`Document::duplicate`] tells of the first.
//!
//! ```
//! use banister_events::json::Parser;
//! let mut parser = Parser::default();
//! let document = parser.parse(br#"{"type": "agent.stop", "metrics": {"duration_ms": 12}}"#)?;
//! assert!(document.root().get("type").is_some_and(|kind| kind.is("agent.stop")));
//! let duration = document.root().pointer("/metrics/duration_ms");
//! assert_eq!(duration.and_then(|value| value.as_i64()), Some(12));
//! # Ok::<(), banister_events::json::Error>(())
//! ```

use std::cell::Cell;
use std::ops::Range;

mod compose;
mod scan;
mod view;

pub use view::{Entries, Items, View};

/// How deep arrays and objects may be nested.
pub const DEEPEST: usize = 127;

/// Why bytes are not a JSON document, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at byte {offset} of the message")]
pub struct Error {
    /// Where in the bytes, from 0.
    pub offset: usize,
    /// What is wrong there.
    pub reason: Reason,
}

/// What is wrong with bytes that are not a JSON document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The bytes are not UTF-8.
    #[error("the text is not UTF-8")]
    Utf8,
    /// The document ends too early.
    #[error("the text ends inside a value")]
    End,
    /// Something stands where a value should.
    #[error("a value is expected")]
    Value,
    /// An object's name does not begin with a quote.
    #[error("a name in quotes is expected")]
    Name,
    /// A name is not followed by a colon.
    #[error("a colon is expected")]
    Colon,
    /// Neither a comma nor the closing bracket.
    #[error("a comma or the closing bracket is expected")]
    Comma,
    /// A control character inside a string.
    #[error("a control character stands inside a string")]
    Control,
    /// A backslash before a character that has no escape.
    #[error("the escape is unknown")]
    Escape,
    /// Half of a surrogate pair.
    #[error("half of a surrogate pair stands alone")]
    Surrogate,
    /// A number that is not written as JSON numbers are.
    #[error("the number is malformed")]
    Number,
    /// A number that no double can hold.
    #[error("the number is too large")]
    Range,
    /// Nested deeper than [`DEEPEST`].
    #[error("the nesting is too deep")]
    Depth,
    /// Something follows the document.
    #[error("something follows the value")]
    Trailing,
    /// More bytes than can be counted.
    #[error("the text is too long")]
    Size,
}

/// What a node is. Strings with escapes and numbers with fractions are told apart, as they cost more to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tag {
    Null,
    False,
    True,
    Integer,
    Float,
    Plain,
    Escaped,
    /// A name that stands again further down in its object: it does not count.
    Shadowed,
    Array,
    Object,
}

/// One value or one name: its place, and the index of the node that follows it and all it contains.
#[derive(Debug, Clone, Copy)]
struct Node {
    start: u32,
    end: u32,
    next: u32,
    tag: Tag,
}

/// What the parser noticed along the way, so that nobody has to look for it again.
#[derive(Debug, Clone, Copy, Default)]
struct Noticed {
    depth: usize,
    longest_string: usize,
    longest_integer: usize,
    duplicate: Option<u32>,
    /// Where a value that was made here goes deeper than [`DEEPEST`].
    too_deep: Option<u32>,
}

/// Parses documents one after another into the same memory.
#[derive(Debug, Clone, Default)]
pub struct Parser {
    nodes: Vec<Node>,
}

impl Parser {
    /// Parses one document.
    pub fn parse<'a>(&'a mut self, bytes: &'a [u8]) -> Result<Document<'a>, Error> {
        self.parse_text(scan::text(bytes)?)
    }

    /// Parses one document that is known to be text.
    pub fn parse_text<'a>(&'a mut self, text: &'a str) -> Result<Document<'a>, Error> {
        let noticed = scan::scan(text, &mut self.nodes)?;
        Ok(Document { tape: Tape { text, nodes: &self.nodes }, noticed })
    }
}

thread_local! {
    static PARSED: Cell<u64> = const { Cell::new(0) };
}

/// How many documents this thread has parsed. Tests hold the way of a message to one parse with it.
pub fn parsed() -> u64 {
    PARSED.get()
}

/// The nodes of a text, kept apart from it: with the text they are the document again.
#[derive(Debug, Clone)]
pub(crate) struct Nodes {
    nodes: Box<[Node]>,
    noticed: Noticed,
}

impl Nodes {
    /// Parses a text.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let mut nodes = Vec::new();
        let noticed = scan::scan(text, &mut nodes)?;
        Ok(Self { nodes: nodes.into(), noticed })
    }

    /// Writes a value as text, and notes its nodes on the way: nothing is parsed.
    pub(crate) fn compose(value: &serde_json::Value) -> (String, Self) {
        let (text, nodes, noticed) = compose::compose(value);
        (text, Self { nodes: nodes.into(), noticed })
    }

    /// The document that these are the nodes of. The text has to be the one that they were made of.
    pub(crate) fn document<'a>(&'a self, text: &'a str) -> Document<'a> {
        Document { tape: Tape { text, nodes: &self.nodes }, noticed: self.noticed }
    }
}

/// A text and the nodes that were found in it.
#[derive(Debug, Clone, Copy)]
struct Tape<'a> {
    text: &'a str,
    nodes: &'a [Node],
}

/// A parsed document.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    tape: Tape<'a>,
    noticed: Noticed,
}

impl Document<'_> {
    /// The outermost value.
    pub fn root(&self) -> View<'_> {
        View { tape: &self.tape, at: 0 }
    }

    /// How deep arrays and objects are nested; 0 for a document that is neither.
    pub fn depth(&self) -> usize {
        self.noticed.depth
    }

    /// The length of the longest string, name included, as it stands in the bytes.
    pub fn longest_string(&self) -> usize {
        self.noticed.longest_string
    }

    /// The length of the longest whole number as it stands in the bytes.
    pub fn longest_integer(&self) -> usize {
        self.noticed.longest_integer
    }

    /// The first name that stands twice in its object.
    pub fn duplicate(&self) -> Option<View<'_>> {
        Some(View { tape: &self.tape, at: self.noticed.duplicate? })
    }

    /// What a parser would say of a document that was made here and is nested too deep.
    pub(crate) fn too_deep(&self) -> Option<Error> {
        let offset = self.noticed.too_deep? as usize;
        Some(Error { offset, reason: Reason::Depth })
    }

    /// The bytes of the document.
    pub fn bytes(&self) -> &[u8] {
        self.tape.text.as_bytes()
    }

    /// The text of the document.
    pub(crate) fn text(&self) -> &str {
        self.tape.text
    }
}

/// The text that the bytes of a document are.
pub(crate) fn text(bytes: &[u8]) -> Result<&str, Error> {
    scan::text(bytes)
}

/// Whether a string holds just these characters when they stand between quotes.
pub(crate) fn is_plain(words: &str) -> bool {
    scan::plain(words.as_bytes(), 0) == words.len()
}

/// Where in the bytes a JSON Pointer leads to: the value's place. Where the pointer leads to nothing, the place of
/// the innermost value on the way that is there. None where the bytes are no JSON.
///
/// ```
/// let bytes = br#"{"producer": {"agent_id": ""}}"#;
/// let place = banister_events::json::locate(bytes, "/producer/agent_id");
/// assert_eq!(place, Some(26..28));
/// assert_eq!(banister_events::json::locate(bytes, "/producer/model"), Some(13..29));
/// ```
pub fn locate(bytes: &[u8], pointer: &str) -> Option<Range<usize>> {
    let mut parser = Parser::default();
    let document = parser.parse(bytes).ok()?;
    let mut view = document.root();
    for step in view::steps(pointer) {
        match view.step(&step) {
            Some(inner) => view = inner,
            None => break,
        }
    }
    Some(view.span())
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
