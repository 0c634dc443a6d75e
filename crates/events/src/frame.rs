//! Bytes → messages and back.
//!
//! Everything here is incremental, does no I/O and holds no more of a message than the limit it was given. Whether a
//! message makes sense is decided later: a frame knows nothing of protocols.
//!
//! Every framing reads in the same way. Bytes come in pieces, cut anywhere; `read` takes the next message from the
//! front of a piece and answers none when the piece is used up; `end` tells what was left when no bytes follow. A
//! message that lies within one piece is handed out where it lies and not copied. A message over the limit is an
//! error, once and as soon as it is known, and the messages after it are read as usual.
//!
//! ```
//! use banister_events::frame::ndjson::Lines;
//! let mut lines = Lines::new(1024);
//! let mut found = Vec::new();
//! for mut piece in [&b"{\"a\":1}\n{\"b\""[..], b":2}\n[]"] {
//!     while let Some((place, line)) = lines.read(&mut piece) {
//!         found.push((place.line, place.offset, line?.to_vec()));
//!     }
//! }
//! while let Some((place, line)) = lines.end() {
//!     found.push((place.line, place.offset, line?.to_vec()));
//! }
//! assert_eq!(found, [
//!     (1, 0, b"{\"a\":1}".to_vec()),
//!     (2, 8, b"{\"b\":2}".to_vec()),
//!     (3, 16, b"[]".to_vec()),
//! ]);
//! # Ok::<(), banister_events::frame::Error>(())
//! ```

pub mod json;
pub mod jsonrpc;
pub mod length;
pub mod ndjson;
pub mod sse;

/// Why a message was not read, or cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The message is larger than the parser may hold, or than the framing can say.
    #[error("a message is larger than {limit} bytes")]
    TooLarge {
        /// The limit the parser was given.
        limit: usize,
    },
    /// The input ended within a message whose length was told.
    #[error("the input ends {missing} bytes before the end of a message")]
    Truncated {
        /// How many bytes are known to be missing; more may be, where the length itself is cut off.
        missing: usize,
    },
    /// The input ended within the array that its messages are the elements of.
    #[error("the input ends before the end of the array of messages")]
    Unclosed,
    /// Two elements of the array that messages are the elements of have no comma between them.
    #[error("a comma is missing before this element of the array of messages")]
    MissingComma,
    /// A comma in that array has no element before or after it.
    #[error("the array of messages has a comma too many")]
    SpareComma,
    /// The message is no event in the binary encoding of its stream.
    #[error("the message is no event in protobuf")]
    Binary,
}

impl Error {
    /// Whether it tells of a message; otherwise it is something around messages that is wrong.
    pub fn is_message(self) -> bool {
        matches!(self, Self::TooLarge { .. } | Self::Truncated { .. } | Self::Binary)
    }
}

/// Where a message begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The line, counted from 1; in a framing without lines, which message it is.
    pub line: u64,
    /// The bytes of the stream that come before.
    pub offset: u64,
}

impl Place {
    const START: Self = Self { line: 1, offset: 0 };
}

/// A message, or why there is none, and where it begins.
pub type Framed<'a, T> = (Place, Result<&'a T, Error>);

/// What some programs put before the first byte of a text.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// The beginning of a message whose end has not come, of at most a limit.
#[derive(Debug, Clone)]
struct Partial {
    limit: usize,
    bytes: Vec<u8>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// It was too large, and that has been told: nothing of it is kept.
    Over,
    /// It was handed out and goes when the next one begins.
    Closed,
}

impl Partial {
    fn new(limit: usize) -> Self {
        Self { limit, bytes: Vec::new(), state: State::Open }
    }

    /// What is held of the message.
    fn held(&self) -> &[u8] {
        match self.state {
            State::Closed => &[],
            State::Open | State::Over => &self.bytes,
        }
    }

    fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Adds bytes that do not end the message; an error the moment they make it too large, and not again.
    fn add(&mut self, piece: &[u8]) -> Result<(), Error> {
        if self.state == State::Closed {
            self.forget();
        }
        if self.is_over() {
            return Ok(());
        }
        if self.bytes.len() + piece.len() > self.limit {
            self.bytes.clear();
            self.state = State::Over;
            return Err(Error::TooLarge { limit: self.limit });
        }
        self.bytes.extend_from_slice(piece);
        Ok(())
    }

    /// Ends the message with its last bytes. One that lies whole in them is handed out from there.
    fn close<'s, 'b: 's>(&'s mut self, last: &'b [u8]) -> Result<&'s [u8], Error> {
        if self.held().is_empty() && last.len() <= self.limit {
            self.forget();
            return Ok(last);
        }
        let added = self.add(last);
        self.state = State::Closed;
        added.map(|()| self.bytes.as_slice())
    }

    fn forget(&mut self) {
        self.bytes.clear();
        self.state = State::Open;
    }
}

/// Takes bytes from the front of a piece.
fn take<'b>(bytes: &mut &'b [u8], count: usize) -> &'b [u8] {
    let (taken, rest) = bytes.split_at_checked(count).unwrap_or((bytes, &[]));
    *bytes = rest;
    taken
}

/// How far the bytes reach, in the measure of offsets.
fn length(bytes: &[u8]) -> u64 {
    bytes.len() as u64
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
