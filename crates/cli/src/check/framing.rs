//! How the messages of an input follow each other: told by its first bytes, then left to `banister_events::frame`.

use std::{iter, mem};

use banister_events::agui::encoding::Encoding;
use banister_events::agui::protobuf;
use banister_events::event::Protocol;
use banister_events::frame::json::Documents;
use banister_events::frame::length::Messages;
use banister_events::frame::ndjson::{self, Lines};
use banister_events::frame::{Error, Framed, Place, jsonrpc, sse};
use banister_events::json;
use banister_events::limits::MESSAGE_BYTES;

use super::window::Measure;

/// What some programs put before the first byte of a text.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// How many bytes may pass before the framing has to be told. Each piece of them is looked at again with the next one.
const SNIFFED: usize = 64 * 1024;

/// What the frame of a message says about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Label {
    /// Nothing: it is an event.
    Plain,
    /// Its server-sent event has a name of its own.
    Named,
    /// It is the word that some servers end a stream with.
    Done,
}

impl Label {
    /// Whether a message with this label is an event of a protocol.
    pub(crate) fn is_event(self, protocol: Protocol, message: &[u8]) -> bool {
        match (self, protocol) {
            (Self::Plain, _) | (_, Protocol::Agui) | (Self::Named, Protocol::Aep) => true,
            (Self::Named, Protocol::Aaep) => Protocol::sniff_bytes(message) == Some(protocol),
            (Self::Done, _) => false,
        }
    }
}

/// A message with its label.
pub(crate) type Labelled<'a> = (Framed<'a, [u8]>, Label);

/// Turns the pieces of an input into messages.
pub(crate) enum Framing {
    /// Too few bytes to tell.
    Unknown(Vec<u8>),
    Lines(Lines),
    Documents(Documents),
    Sse(sse::Parser, Vec<u8>),
    Length(Messages),
    /// AG-UI's binary encoding, and the event that was read last, as JSON.
    Protobuf(Messages, Vec<u8>),
}

impl Framing {
    pub(crate) fn new() -> Self {
        Self::Unknown(Vec::new())
    }

    /// The framing of an answer in one of AG-UI's encodings, whatever its bytes look like: so clients read it.
    pub(crate) fn of(encoding: Encoding) -> Self {
        match encoding {
            Encoding::Sse => Self::Sse(sse::Parser::new(MESSAGE_BYTES), Vec::new()),
            Encoding::Protobuf => Self::Protobuf(Messages::new(MESSAGE_BYTES), Vec::new()),
        }
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
            Self::Length(_) | Self::Protobuf(..) => Measure::Messages,
            Self::Unknown(_) | Self::Lines(_) | Self::Documents(_) => Measure::Plain,
        }
    }

    /// How many bytes of an unfinished server-sent event are held.
    pub(crate) fn unfinished_event(&self) -> usize {
        if let Self::Sse(parser, _) = self { parser.held() } else { 0 }
    }

    /// What the frames have that stricter parsers do not read; nothing where there are none.
    pub(crate) fn quirks(&self) -> sse::Quirks {
        if let Self::Sse(parser, _) = self { parser.quirks() } else { sse::Quirks::default() }
    }

    /// Takes the next message from the front of a piece; none when the piece is used up.
    pub(crate) fn read<'s, 'b: 's>(&'s mut self, bytes: &mut &'b [u8]) -> Option<Labelled<'s>> {
        let framed = match self {
            Self::Unknown(_) => None,
            Self::Lines(lines) => lines.read(bytes),
            Self::Documents(documents) => documents.read(bytes),
            Self::Sse(parser, broken) => {
                return parser.read(bytes).map(|event| data(event, broken));
            }
            Self::Length(messages) => messages.read(bytes),
            Self::Protobuf(messages, event) => {
                messages.read(bytes).map(|framed| json(framed, event))
            }
        };
        framed.map(|framed| (framed, Label::Plain))
    }

    /// What is left after the last byte. Ask until there is none.
    pub(crate) fn end(&mut self) -> Option<Labelled<'_>> {
        let framed = match self {
            Self::Unknown(_) => None,
            Self::Lines(lines) => lines.end(),
            Self::Documents(documents) => documents.end(),
            Self::Sse(parser, broken) => return parser.end().map(|event| data(event, broken)),
            Self::Length(messages) => messages.end(),
            Self::Protobuf(messages, event) => messages.end().map(|framed| json(framed, event)),
        };
        framed.map(|framed| (framed, Label::Plain))
    }
}

fn data<'a>((place, message): Framed<'a, sse::Message>, broken: &'a mut Vec<u8>) -> Labelled<'a> {
    let message = match message {
        Ok(message) => message,
        Err(error) => return ((place, Err(error)), Label::Plain),
    };
    let label = match message.event.as_deref() {
        _ if message.data.trim_ascii() == "[DONE]" => Label::Done,
        None | Some("" | "message" | "aaep.event") => Label::Plain,
        Some(_) => Label::Named,
    };
    if !message.replaced {
        return ((place, Ok(message.data.as_bytes())), label);
    }
    // The parser put a character in the place of bytes that are none. Whoever checks the message is to see that.
    broken.clear();
    for character in message.data.chars() {
        match character {
            char::REPLACEMENT_CHARACTER => broken.push(0xFF),
            _ => broken.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    ((place, Ok(broken)), label)
}

/// A binary event as the JSON that it stands for.
fn json<'a>((place, message): Framed<'_, [u8]>, event: &'a mut Vec<u8>) -> Framed<'a, [u8]> {
    let decoded = message.and_then(|bytes| protobuf::decode(bytes).map_err(|_| Error::Binary));
    event.clear();
    let decoded = decoded.map(|decoded| match decoded {
        Some(decoded) => event.extend_from_slice(decoded.to_string().as_bytes()),
        // Of a type that is not known yet: clients drop it and say so.
        None => event.extend_from_slice(br#"{"type":"UNKNOWN_IN_PROTOBUF"}"#),
    });
    (place, decoded.map(|()| event.as_slice()))
}

/// The messages of a frame: one, or if there may be `several`, the objects that stand side by side.
pub(crate) fn each(
    (place, line): Framed<'_, [u8]>,
    several: bool,
) -> impl Iterator<Item = Framed<'_, [u8]>> {
    let mut rest = Some((place, line));
    iter::from_fn(move || {
        let (place, line) = rest.take()?;
        let bytes = line.ok().filter(|_| several);
        let Some((first, next)) =
            bytes.and_then(|bytes| bytes.split_at_checked(ndjson::second(bytes)?))
        else {
            return Some((place, line));
        };
        rest = Some((Place { offset: place.offset + first.len() as u64, ..place }, Ok(next)));
        Some((place, Ok(first.trim_ascii_end())))
    })
}

/// What a line says: itself, or the AAEP message that its JSON-RPC envelope holds. None where an envelope holds none:
/// other programs may talk on the same line.
pub(crate) fn unwrapped((place, line): Framed<'_, [u8]>) -> Option<Framed<'_, [u8]>> {
    let Ok(bytes) = line else {
        return Some((place, line));
    };
    let envelope = match jsonrpc::read(bytes) {
        None => return Some((place, line)),
        // An envelope that is none is for the checker to refuse, if it was meant for us.
        Some(Err(_)) => return speaks_aaep(bytes).then_some((place, line)),
        Some(Ok(envelope)) => envelope,
    };
    let message = envelope.message()?;
    let carries = match envelope.method() {
        Some(method) => method.carries_message(),
        None => is_answer(message),
    };
    let before = message.as_ptr().addr().saturating_sub(bytes.as_ptr().addr());
    let place = Place { offset: place.offset + before as u64, ..place };
    carries.then_some((place, Ok(message)))
}

fn speaks_aaep(envelope: &[u8]) -> bool {
    let has = |word: &[u8]| envelope.windows(word.len()).any(|window| window == word);
    has(b"\"aaep.") || has(b"\"aaep:") || has(b"\"subscription.")
}

/// Whether the result of a call is what AAEP answers to a subscriber.
fn is_answer(result: &[u8]) -> bool {
    let mut parser = json::Parser::default();
    let document = parser.parse(result).ok();
    let kind = document.as_ref().and_then(|document| document.root().get("type")?.as_str());
    kind.is_some_and(|kind| kind.starts_with("subscription."))
}

/// What an input is that has no events at all, told by its first bytes.
pub(crate) fn foreign(held: &[u8]) -> Option<&'static str> {
    const UTF_16: &str = "this is UTF-16; events are UTF-8";
    match held {
        [0, _, _, _, b'{', ..] => return None,
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => return Some(UTF_16),
        [0, b'!'..=b'~', 0, b' '..=b'~', ..] | [b'!'..=b'~', 0, b' '..=b'~', 0, ..] => {
            return Some(UTF_16);
        }
        _ => {}
    }
    let text = beginning(held);
    let begins = |with: &[u8]| {
        text.get(..with.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(with))
    };
    if begins(b"<!doctype html") || begins(b"<html") {
        return Some("this looks like a web page (HTML), not like events");
    }
    begins(b"<").then_some("this looks like XML or a web page, not like events")
}

/// The text without what may stand before it.
fn beginning(held: &[u8]) -> &[u8] {
    held.strip_prefix(MARK).unwrap_or(held).trim_ascii_start()
}

/// Tells the framing from the first bytes; none where more are needed.
fn sniff(held: &[u8], all: bool) -> Option<Framing> {
    // No text begins with a NUL, and no message is so long that its length begins with anything else.
    if let [0, _, _, _, b'{', ..] = held {
        return Some(Framing::Length(Messages::new(MESSAGE_BYTES)));
    }
    // The first field of a protobuf event is a message.
    if let [0, _, _, _, tag, ..] = held
        && tag & 7 == 2
        && foreign(held).is_none()
    {
        return Some(Framing::Protobuf(Messages::new(MESSAGE_BYTES), Vec::new()));
    }
    let enough = all || held.len() >= SNIFFED;
    let text = beginning(held.get(..SNIFFED).unwrap_or(held));
    let lines = || Framing::Lines(Lines::new(MESSAGE_BYTES));
    let documents = || Framing::Documents(Documents::new(MESSAGE_BYTES));
    if held.len() < 5 && !all {
        return None;
    }
    match text.first() {
        None => enough.then(lines),
        Some(b'[') => Some(documents()),
        Some(b'{') => {
            let Some(end) = text.iter().position(|byte| *byte == b'\n') else {
                return enough.then(lines);
            };
            let (line, next) = text.split_at_checked(end)?;
            let next = next.trim_ascii_start();
            if !is_cut(line) {
                return Some(lines());
            }
            if next.is_empty() && !enough {
                return None;
            }
            // An object begins after a colon, a comma or a bracket only: elsewhere it is the next event.
            let goes_on = matches!(line.trim_ascii_end().last(), Some(b':' | b',' | b'[' | b'{'));
            Some(if !goes_on && matches!(next.first(), None | Some(b'{')) {
                lines()
            } else {
                documents()
            })
        }
        // A few more bytes tell what it is instead of events.
        Some(b'<') if text.len() < 16 && !enough => None,
        Some(_) if is_field(text) => {
            Some(Framing::Sse(sse::Parser::new(MESSAGE_BYTES), Vec::new()))
        }
        Some(_) => Some(lines()),
    }
}

type Any = serde::de::IgnoredAny;

/// Whether the last document of a line goes on after it.
fn is_cut(line: &[u8]) -> bool {
    let mut documents = serde_json::Deserializer::from_slice(line).into_iter::<Any>();
    documents.find_map(Result::err).is_some_and(|error| error.is_eof())
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
