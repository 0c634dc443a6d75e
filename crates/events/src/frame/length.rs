//! Messages behind their length: four bytes, big-endian, and that many bytes of JSON, as on AAEP's Unix socket.
//!
//! A message over the limit is an error at once; its bytes are skipped as they come, and the next message is read. What
//! ends within a message is [`Error::Truncated`]. An empty message is handed out as what it is: the framing allows it,
//! though no JSON is empty. Nothing is set aside for a message because its length promises it.
//!
//! There are no lines here: a [`Place`] tells which message it is, counted from 1, and where its length begins.
//!
//! ```
//! use banister_events::frame::length::{Messages, write};
//! let mut stream = Vec::new();
//! write(&mut stream, b"{}")?;
//! write(&mut stream, b"[1]")?;
//! assert_eq!(stream, b"\0\0\0\x02{}\0\0\0\x03[1]");
//!
//! let mut messages = Messages::new(1024);
//! let mut found = Vec::new();
//! for mut piece in stream.chunks(5) {
//!     while let Some((place, message)) = messages.read(&mut piece) {
//!         found.push((place.offset, message?.to_vec()));
//!     }
//! }
//! assert!(messages.end().is_none(), "nothing was cut off");
//! assert_eq!(found, [(0, b"{}".to_vec()), (6, b"[1]".to_vec())]);
//! # Ok::<(), banister_events::frame::Error>(())
//! ```

use super::{Error, Framed, Partial, Place, length, take};

/// How many bytes a length takes.
const PREFIX: usize = 4;

/// Turns bytes into messages.
#[derive(Debug, Clone)]
pub struct Messages {
    partial: Partial,
    expect: Expect,
    /// How many bytes of what is expected have not come.
    missing: usize,
    /// Where the message being received begins.
    begins: Place,
    /// How many bytes of the stream were read.
    consumed: u64,
}

/// What is being received.
#[derive(Debug, Clone, Copy)]
enum Expect {
    /// A length, and what is known of it.
    Length(u32),
    Message,
    /// A message that is too large, which has been told.
    Refused,
}

impl Messages {
    /// A reader that holds at most `limit` bytes of one message.
    pub fn new(limit: usize) -> Self {
        Self {
            partial: Partial::new(limit),
            expect: Expect::Length(0),
            missing: PREFIX,
            begins: Place::START,
            consumed: 0,
        }
    }

    /// Takes the next message from the front of a piece; none when the piece is used up.
    pub fn read<'s, 'b: 's>(&'s mut self, bytes: &mut &'b [u8]) -> Option<Framed<'s, [u8]>> {
        loop {
            let place = self.begins;
            let piece = take(bytes, self.missing);
            self.consumed += length(piece);
            self.missing -= piece.len();
            let complete = self.missing == 0;
            match self.expect {
                Expect::Length(known) => {
                    let known =
                        piece.iter().fold(known, |known, byte| known << 8 | u32::from(*byte));
                    self.expect = Expect::Length(known);
                    if complete && !self.admit(known) {
                        return Some((place, Err(Error::TooLarge { limit: self.partial.limit })));
                    }
                }
                Expect::Message if complete => {
                    self.begin();
                    return Some((place, self.partial.close(piece)));
                }
                Expect::Message => {
                    if let Err(error) = self.partial.add(piece) {
                        return Some((place, Err(error)));
                    }
                }
                Expect::Refused if complete => self.begin(),
                Expect::Refused => {}
            }
            if !complete {
                return None;
            }
        }
    }

    /// That the input ended within a message, if it did. Ask until there is none.
    pub fn end(&mut self) -> Option<Framed<'_, [u8]>> {
        let (place, missing) = (self.begins, self.missing);
        if self.consumed == place.offset {
            return None;
        }
        self.begin();
        self.partial.forget();
        Some((place, Err(Error::Truncated { missing })))
    }

    /// How many bytes of an unfinished message are held.
    pub fn held(&self) -> usize {
        self.partial.held().len()
    }

    /// The message before is over: a length is next.
    fn begin(&mut self) {
        self.expect = Expect::Length(0);
        self.missing = PREFIX;
        self.begins = Place { line: self.begins.line + 1, offset: self.consumed };
    }

    /// A length was read; false where the message is over the limit.
    fn admit(&mut self, size: u32) -> bool {
        self.missing = usize::try_from(size).unwrap_or(usize::MAX);
        let fits = self.missing <= self.partial.limit;
        self.expect = if fits { Expect::Message } else { Expect::Refused };
        fits
    }
}

/// Writes one message behind its length; an error, and nothing written, where four bytes cannot say the length.
pub fn write(out: &mut Vec<u8>, message: &[u8]) -> Result<(), Error> {
    let size = u32::try_from(message.len())
        .map_err(|_| Error::TooLarge { limit: usize::try_from(u32::MAX).unwrap_or(usize::MAX) })?;
    out.extend_from_slice(&size.to_be_bytes());
    out.extend_from_slice(message);
    Ok(())
}

#[cfg(test)]
#[path = "length_tests.rs"]
mod tests;
