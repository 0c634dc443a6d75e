//! How the messages of an input follow each other: told by its first bytes, then left to `banister_events::frame`.

use std::mem;

use banister_events::frame::json::Documents;
use banister_events::frame::length::Messages;
use banister_events::frame::ndjson::Lines;
use banister_events::frame::{Framed, jsonrpc, sse};
use banister_events::limits::MESSAGE_BYTES;

use super::window::Measure;

/// What some programs put before the first byte of a text.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// Turns the pieces of an input into messages.
pub(crate) enum Framing {
    /// Too few bytes to tell.
    Unknown(Vec<u8>),
    Lines(Lines),
    Documents(Documents),
    Sse(sse::Parser, Vec<u8>),
    Length(Messages),
}

impl Framing {
    pub(crate) fn new() -> Self {
        Self::Unknown(Vec::new())
    }

    /// Tells the framing, if it is not known yet. Gives the bytes that were held until it was; read them before the
    /// next piece. None where `piece` was taken and more is needed.
    pub(crate) fn tell(&mut self, piece: &[u8], all: bool) -> Option<Vec<u8>> {
        let Self::Unknown(held) = self else {
            return Some(Vec::new());
        };
        held.extend_from_slice(piece);
        let found = sniff(held, all)?;
        let held = mem::take(held);
        *self = found;
        Some(held)
    }

    pub(crate) fn is_known(&self) -> bool {
        !matches!(self, Self::Unknown(_))
    }

    pub(crate) fn measure(&self) -> Measure {
        match self {
            Self::Sse(..) => Measure::Sse,
            Self::Length(_) => Measure::Messages,
            Self::Unknown(_) | Self::Lines(_) | Self::Documents(_) => Measure::Plain,
        }
    }

    /// How many bytes of an unfinished server-sent event are held.
    pub(crate) fn unfinished_event(&self) -> usize {
        if let Self::Sse(parser, _) = self { parser.held() } else { 0 }
    }

    /// Takes the next message from the front of a piece; none when the piece is used up.
    pub(crate) fn read<'s, 'b: 's>(&'s mut self, bytes: &mut &'b [u8]) -> Option<Framed<'s, [u8]>> {
        match self {
            Self::Unknown(_) => None,
            Self::Lines(lines) => lines.read(bytes),
            Self::Documents(documents) => documents.read(bytes),
            Self::Sse(parser, broken) => parser.read(bytes).map(|event| data(event, broken)),
            Self::Length(messages) => messages.read(bytes),
        }
    }

    /// What is left after the last byte. Ask until there is none.
    pub(crate) fn end(&mut self) -> Option<Framed<'_, [u8]>> {
        match self {
            Self::Unknown(_) => None,
            Self::Lines(lines) => lines.end(),
            Self::Documents(documents) => documents.end(),
            Self::Sse(parser, broken) => parser.end().map(|event| data(event, broken)),
            Self::Length(messages) => messages.end(),
        }
    }
}

fn data<'a>(
    (place, message): Framed<'a, sse::Message>,
    broken: &'a mut Vec<u8>,
) -> Framed<'a, [u8]> {
    match message {
        Ok(message) if message.replaced => {
            // The parser put a character in the place of bytes that are none. Whoever checks the message is to see that.
            broken.clear();
            for character in message.data.chars() {
                match character {
                    char::REPLACEMENT_CHARACTER => broken.push(0xFF),
                    _ => broken.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
                }
            }
            (place, Ok(broken))
        }
        Ok(message) => (place, Ok(message.data.as_bytes())),
        Err(error) => (place, Err(error)),
    }
}

/// What a line says: itself, or what its JSON-RPC envelope holds. None where it is an envelope around nothing.
pub(crate) fn unwrapped((place, line): Framed<'_, [u8]>) -> Option<Framed<'_, [u8]>> {
    let Ok(bytes) = line else {
        return Some((place, line));
    };
    match jsonrpc::read(bytes) {
        // An envelope that is none is for the checker to refuse.
        None | Some(Err(_)) => Some((place, line)),
        Some(Ok(envelope)) => {
            let message = envelope.message()?;
            let before = message.as_ptr().addr().saturating_sub(bytes.as_ptr().addr());
            let mut place = place;
            place.offset += before as u64;
            Some((place, Ok(message)))
        }
    }
}

/// Tells the framing from the first bytes; none where more are needed.
fn sniff(held: &[u8], all: bool) -> Option<Framing> {
    // No text begins with a NUL, and no message is so long that its length begins with anything else.
    if let [0, _, _, _, b'{', ..] = held {
        return Some(Framing::Length(Messages::new(MESSAGE_BYTES)));
    }
    let text = held.strip_prefix(MARK).unwrap_or(held).trim_ascii_start();
    let lines = || Framing::Lines(Lines::new(MESSAGE_BYTES));
    let documents = || Framing::Documents(Documents::new(MESSAGE_BYTES));
    if held.len() < 5 && !all {
        return None;
    }
    match text.first() {
        None if all || held.len() > MESSAGE_BYTES => Some(lines()),
        None => None,
        Some(b'[') => Some(documents()),
        Some(b'{') => {
            let (line, next) = match text.iter().position(|byte| *byte == b'\n') {
                Some(end) => text.split_at_checked(end)?,
                None if all || text.len() > MESSAGE_BYTES => (text, &[][..]),
                None => return None,
            };
            let next = next.trim_ascii_start();
            if next.is_empty() && !all && is_cut(line) {
                return None;
            }
            Some(if one_per_line(line, next) { lines() } else { documents() })
        }
        Some(_) if is_field(text) => {
            Some(Framing::Sse(sse::Parser::new(MESSAGE_BYTES), Vec::new()))
        }
        Some(_) => Some(lines()),
    }
}

type Any = serde::de::IgnoredAny;

fn is_cut(line: &[u8]) -> bool {
    serde_json::from_slice::<Any>(line).is_err_and(|error| error.is_eof())
}

/// Whether the beginning of an input speaks for JSON lines: its first line is a document, or so broken that it cannot be
/// the beginning of one that goes on.
fn one_per_line(line: &[u8], next: &[u8]) -> bool {
    let mut documents = serde_json::Deserializer::from_slice(line).into_iter::<Any>();
    match documents.next() {
        Some(Ok(_)) => {
            let rest = line.get(documents.byte_offset()..).unwrap_or_default();
            rest.iter().all(u8::is_ascii_whitespace)
        }
        Some(Err(_)) if is_cut(line) && !next.is_empty() => {
            // An object begins after a colon, a comma or a bracket only: elsewhere it is the next event.
            let goes_on = matches!(line.trim_ascii_end().last(), Some(b':' | b',' | b'[' | b'{'));
            !goes_on && next.first() == Some(&b'{')
        }
        _ => true,
    }
}

/// Whether a text begins with a field or a comment of server-sent events.
fn is_field(text: &[u8]) -> bool {
    let end = text.iter().position(|byte| matches!(byte, b':' | b'\n' | b'\r'));
    let name = text.get(..end.unwrap_or(text.len())).unwrap_or_default();
    matches!(name, b"" | b"data" | b"event" | b"id" | b"retry")
}

#[cfg(test)]
#[path = "framing_tests.rs"]
mod tests;
