//! Framings: however the bytes are cut, the same messages come out at the same places; no more is held than the limit
//! allows; what was read can be written and is read back.

use banister_events::frame::json::Documents;
use banister_events::frame::ndjson::Lines;
use banister_events::frame::sse::{Message, Outgoing, Parser};
use banister_events::frame::{Error, Framed, Place, jsonrpc, length, ndjson, sse};
use banister_events::limits::MESSAGE_BYTES;

/// One limit that most inputs break, and the one that is used.
const LIMITS: [usize; 2] = [16, MESSAGE_BYTES];

type Found<T> = Vec<(Place, Result<T, Error>)>;

/// Reads the input whole, in halves, in sevens and byte by byte, and insists that it makes no difference.
fn alike<T: PartialEq + std::fmt::Debug>(data: &[u8], read: impl Fn(&[&[u8]]) -> T) -> T {
    let whole = read(&[data]);
    let (first, second) = data.split_at(data.len() / 2);
    assert_eq!(whole, read(&[first, second]), "two pieces");
    assert_eq!(whole, read(&data.chunks(7).collect::<Vec<_>>()), "seven bytes at a time");
    assert_eq!(whole, read(&data.chunks(1).collect::<Vec<_>>()), "byte by byte");
    whole
}

fn owned<T: ToOwned + ?Sized>((place, found): Framed<'_, T>) -> (Place, Result<T::Owned, Error>) {
    (place, found.map(ToOwned::to_owned))
}

/// Gathers what a reader tells of these pieces. Readers are alike but share no trait.
macro_rules! gather {
    ($reader:expr, $pieces:expr, $limit:expr) => {{
        let (mut reader, mut all) = ($reader, Vec::new());
        for piece in $pieces {
            let mut rest: &[u8] = piece;
            while let Some(found) = reader.read(&mut rest).map(owned) {
                all.push(found);
            }
            assert!(rest.is_empty(), "a piece is used up");
            assert!(reader.held() <= $limit, "bounded");
        }
        while let Some(found) = reader.end().map(owned) {
            all.push(found);
        }
        assert!(reader.end().is_none(), "the end is told once");
        all
    }};
}

/// Insists that each message is what the input has at its place, and within the limit.
fn in_place(data: &[u8], found: &Found<Vec<u8>>, limit: usize) {
    for (place, message) in found {
        let rest = usize::try_from(place.offset).ok().and_then(|offset| data.get(offset..));
        let rest = rest.expect("a place within the input");
        if let Ok(message) = message {
            assert!(
                rest.starts_with(message) && message.len() <= limit,
                "{message:?} at {place:?}"
            );
        }
    }
}

/// Server-sent events.
///
/// # Panics
///
/// Where what this module promises does not hold.
pub fn sse(data: &[u8]) {
    for limit in LIMITS {
        let whole: Found<Message> =
            alike(data, |pieces| gather!(Parser::new(limit), pieces, limit));
        for (_, message) in whole {
            let Ok(message) = message else { continue };
            assert!(message.data.len() <= limit, "bounded");
            let mut frame = Vec::new();
            let (id, event) = (message.id.as_deref(), message.event.as_deref());
            sse::write(&mut frame, &Outgoing { id, event, data: &message.data });
            let again: Found<Message> = gather!(Parser::new(usize::MAX), [&frame], usize::MAX);
            let [(_, Ok(again))] = again.as_slice() else { panic!("one message: {again:?}") };
            assert_eq!(
                (&again.data, &again.id, &again.event),
                (&message.data, &message.id, &without_nul(message.event.as_deref())),
                "written and read back"
            );
        }
    }
}

/// NUL may stand in an event's name, but is not written.
fn without_nul(text: Option<&str>) -> Option<String> {
    text.map(|text| text.replace('\0', ""))
}

/// JSON lines.
///
/// # Panics
///
/// Where what this module promises does not hold.
pub fn ndjson(data: &[u8]) {
    for limit in LIMITS {
        let whole: Found<Vec<u8>> = alike(data, |pieces| gather!(Lines::new(limit), pieces, limit));
        in_place(data, &whole, limit);
        let mut stream = b"\n".to_vec();
        let lines: Vec<Vec<u8>> = whole.into_iter().filter_map(|(_, line)| line.ok()).collect();
        for line in &lines {
            ndjson::write(&mut stream, line);
        }
        let again: Found<Vec<u8>> = gather!(Lines::new(usize::MAX), [&stream], usize::MAX);
        let again: Vec<Vec<u8>> = again.into_iter().filter_map(|(_, line)| line.ok()).collect();
        let flat = lines.into_iter().map(|line| {
            line.into_iter().map(|byte| if byte == b'\r' { b' ' } else { byte }).collect()
        });
        assert_eq!(again, flat.collect::<Vec<Vec<u8>>>(), "written and read back");
    }
}

/// Messages behind their length.
///
/// # Panics
///
/// Where what this module promises does not hold.
pub fn length(data: &[u8]) {
    for limit in LIMITS {
        let whole: Found<Vec<u8>> =
            alike(data, |pieces| gather!(length::Messages::new(limit), pieces, limit));
        for (place, message) in whole {
            let Ok(message) = message else { continue };
            assert!(message.len() <= limit, "bounded");
            let mut frame = Vec::new();
            length::write(&mut frame, &message).expect("it fits where it came from");
            let offset = usize::try_from(place.offset).expect("a place within the input");
            assert!(data[offset..].starts_with(&frame), "{message:?} at {place:?}");
        }
    }
}

/// JSON-RPC lines.
///
/// # Panics
///
/// Where what this module promises does not hold.
pub fn jsonrpc(data: &[u8]) {
    for line in data.split(|byte| *byte == b'\n') {
        let Some(Ok(envelope)) = jsonrpc::read(line) else { continue };
        if let Some(message) = envelope.message() {
            let found = line.windows(message.len()).any(|window| window == message);
            assert!(found, "the message is a part of the line");
        }
        let mut once = Vec::new();
        jsonrpc::write(&mut once, &envelope);
        assert_eq!(once.iter().position(|byte| *byte == b'\n'), Some(once.len() - 1), "one line");
        let Some(Ok(again)) = jsonrpc::read(&once) else { panic!("{envelope:?} is written wrong") };
        let mut twice = Vec::new();
        jsonrpc::write(&mut twice, &again);
        assert_eq!(once, twice, "written and read back");
    }
}

/// JSON documents, in an array or one after another.
///
/// # Panics
///
/// Where what this module promises does not hold.
pub fn json(data: &[u8]) {
    for limit in LIMITS {
        let whole: Found<Vec<u8>> =
            alike(data, |pieces| gather!(Documents::new(limit), pieces, limit));
        in_place(data, &whole, limit);
        for (place, document) in whole {
            let Ok(document) = document else { continue };
            assert!(!document.trim_ascii().is_empty(), "something at {place:?}");
        }
    }
}
