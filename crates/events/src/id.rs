//! Ids that leave Banister: derived, never drawn, so that a stream written again carries the same ids.
//!
//! The id of an AAEP event also says which record the event comes from ([`EventRef`]): it is what a subscriber resumes
//! from.

use std::fmt::{self, Write as _};

use jiff::Timestamp;
use sha2::{Digest, Sha256};

/// What ids of events begin with.
const EVENT: &str = "evt_";
/// The longest id of an event, without that.
const EVENT_CHARS: usize = 64;
/// What Banister's own session ids begin with.
const SESSION: &str = "s_";
/// How many bits of a record's time stand in an id, and how many hex digits they take.
const MOMENT: (u32, usize) = (28, 7);

/// `prefix` + 32 hex digits derived from the parts. Parts are length-prefixed, so that no two lists collide.
///
/// ```
/// use banister_events::id::derive;
/// let id = derive("evt_", &["s_1", "7", "0"]);
/// assert_eq!(id.len(), "evt_".len() + 32);
/// assert_ne!(id, derive("evt_", &["s_17", "0"]));
/// ```
pub fn derive(prefix: &str, parts: &[&str]) -> String {
    derive_all(prefix, parts.iter().copied())
}

/// [`derive`], for parts that stand in no list.
pub(crate) fn derive_all<'a>(prefix: &str, parts: impl Iterator<Item = &'a str>) -> String {
    let mut hash = Gathered { bytes: [0; Gathered::ROOM], length: 0, hash: None };
    for part in parts {
        hash.add(&(part.len() as u64).to_be_bytes());
        hash.add(part.as_bytes());
    }
    let mut id = String::with_capacity(prefix.len() + 32);
    id.push_str(prefix);
    push_hex(hash.finish().get(..16).unwrap_or_default(), &mut id);
    id
}

/// Bytes to be hashed. The few that most ids have are hashed at once, which is quicker than piece by piece.
struct Gathered {
    bytes: [u8; Self::ROOM],
    length: usize,
    hash: Option<Sha256>,
}

impl Gathered {
    const ROOM: usize = 192;

    fn add(&mut self, more: &[u8]) {
        let end = self.length + more.len();
        if let Some(room) = self.bytes.get_mut(self.length..end) {
            room.copy_from_slice(more);
            self.length = end;
            return;
        }
        let hash = self.hash.get_or_insert_default();
        hash.update(self.bytes.get(..self.length).unwrap_or_default());
        hash.update(more);
        self.length = 0;
    }

    fn finish(self) -> impl AsRef<[u8]> + std::ops::Deref<Target = [u8]> {
        let last = self.bytes.get(..self.length).unwrap_or_default();
        match self.hash {
            Some(mut hash) => {
                hash.update(last);
                hash.finalize()
            }
            None => Sha256::digest(last),
        }
    }
}

/// A number in decimal digits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decimal {
    digits: [u8; 20],
    begin: usize,
}

impl Decimal {
    pub(crate) fn of(mut number: u64) -> Self {
        let mut digits = [b'0'; 20];
        let mut begin = digits.len();
        for (at, digit) in digits.iter_mut().enumerate().rev() {
            *digit = b'0' + (number % 10) as u8;
            begin = at;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        Self { digits, begin }
    }

    pub(crate) fn as_str(&self) -> &str {
        let digits = self.digits.get(self.begin..).unwrap_or_default();
        std::str::from_utf8(digits).unwrap_or_default()
    }
}

/// Lower-case hex of some bytes.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    push_hex(bytes, &mut text);
    text
}

fn push_hex(bytes: &[u8], text: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().unwrap_or(b'0');
    for chunk in bytes.chunks(16) {
        let mut digits = [b'0'; 32];
        for (pair, byte) in digits.as_chunks_mut::<2>().0.iter_mut().zip(chunk) {
            *pair = [digit(byte >> 4), digit(byte & 15)];
        }
        let digits = digits.get(..chunk.len() * 2).unwrap_or_default();
        text.push_str(std::str::from_utf8(digits).unwrap_or_default());
    }
}

/// Whether an id is `prefix` + 1 to 64 alphanumerics (AAEP's shape).
pub(crate) fn conforms(prefix: &str, id: &str) -> bool {
    id.strip_prefix(prefix).is_some_and(|rest| {
        (1..=64).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// Keeps a foreign id where it fits `prefix` + 1 to 64 alphanumerics (AAEP's shape), derives one otherwise.
///
/// ```
/// use banister_events::id::conform;
/// assert_eq!(conform("call_", "call_9"), "call_9");
/// assert!(conform("call_", "toolu_01-A").starts_with("call_"));
/// ```
pub fn conform(prefix: &str, foreign: &str) -> String {
    if conforms(prefix, foreign) { foreign.to_owned() } else { derive(prefix, &[foreign]) }
}

/// What the id of a written event says: the session and the record that it comes from, and its number among the events
/// that the record became.
///
/// The id is `evt_`, 32 hex digits of the session, 7 of the record's time, the record's number, `n` and the event's
/// number; of an event that was [`merged`], `m` and 7 digits more. The time tells a record from another one that has
/// the same session and number in another journal.
///
/// ```
/// use banister_events::id::{self, EventRef};
/// let session = id::derive("s_", &["agent", "aep", "one"]);
/// let time = "2026-11-15T09:00:00Z".parse()?;
/// let id = EventRef::new(&session, 7, time, 2).to_string();
/// let event = EventRef::parse(&id).ok_or("an id of ours")?;
/// assert_eq!((event.session(), event.seq, event.n), (session, 7, 2));
/// assert!(event.is_of(time));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRef {
    /// The digits of the session's id.
    session: String,
    /// A part of the record's time.
    moment: u64,
    /// The record's number in its session.
    pub seq: u64,
    /// The event's number among those that the record became.
    pub n: u32,
    /// Whether the event holds more than this record's: see [`merged`].
    pub merged: bool,
}

impl EventRef {
    /// An event of a record.
    pub fn new(session: &str, seq: u64, time: Timestamp, n: u32) -> Self {
        let session = match session.strip_prefix(SESSION) {
            Some(digits) if digits.len() == 32 && digits.bytes().all(is_digit) => digits.to_owned(),
            // Where sessions have other names, the way back to the record is not needed.
            _ => derive("", &[session]),
        };
        Self { session, moment: moment(time), seq, n, merged: false }
    }

    /// Reads an id that [`EventRef`] or [`merged`] made; `None` for every other.
    pub fn parse(id: &str) -> Option<Self> {
        let (session, numbers) = id.strip_prefix(EVENT)?.split_at_checked(32)?;
        let (moment, numbers) = numbers.split_at_checked(MOMENT.1)?;
        let (seq, n) = numbers.split_once('n')?;
        let event = Self {
            session: session.to_owned(),
            moment: u64::from_str_radix(moment, 16).ok()?,
            seq: u64::from_str_radix(seq, 16).ok()?,
            n: u32::from_str_radix(n.split('m').next()?, 16).ok()?,
            merged: n.contains('m'),
        };
        // Numbers can be written in more ways than one, ids only in one.
        let mark = id.strip_prefix(&event.to_string())?;
        let fits = match mark.strip_prefix('m') {
            Some(digits) => digits.len() == MOMENT.1 && digits.bytes().all(is_digit),
            None => mark.is_empty(),
        };
        (fits && session.bytes().all(is_digit)).then_some(event)
    }

    /// The session's id, where it is one that Banister gave.
    pub fn session(&self) -> String {
        format!("{SESSION}{}", self.session)
    }

    /// Whether the record that it comes from was made at this time.
    pub fn is_of(&self, time: Timestamp) -> bool {
        self.moment == moment(time)
    }
}

/// The id; of an event that was merged, without what tells it from the later one alone.
impl fmt::Display for EventRef {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { session, moment, seq, n, .. } = self;
        write!(formatter, "{EVENT}{session}{moment:0width$x}{seq:x}n{n:x}", width = MOMENT.1)
    }
}

/// The id of an event that holds what an earlier one said and what a later one says. It leads to the later one's record.
pub fn merged(earlier: &str, later: &str) -> String {
    let own = derive("", &["merged", earlier, later]);
    let mark = own.get(..MOMENT.1).unwrap_or_default();
    let mut id = match EventRef::parse(later) {
        Some(later) => later.to_string(),
        None => String::new(),
    };
    // Writing to a string does not fail.
    write!(id, "m{mark}").ok();
    if id.starts_with(EVENT) && id.len() <= EVENT.len() + EVENT_CHARS {
        id
    } else {
        derive(EVENT, &["merged", earlier, later])
    }
}

fn moment(time: Timestamp) -> u64 {
    let milliseconds = time.as_millisecond().cast_unsigned();
    (milliseconds ^ milliseconds >> MOMENT.0) & ((1 << MOMENT.0) - 1)
}

fn is_digit(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
#[path = "id_tests.rs"]
mod tests;
