//! A bounded memory of ids: the newest stay, the oldest go.
//!
//! Ids are kept as 64-bit hashes under a random key, so that memory does not grow with their length and nobody can
//! choose ids that collide.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap, RandomState};
use std::hash::{BuildHasher, Hash, Hasher};

use crate::json::View;

/// What is remembered of the ids seen last.
#[derive(Debug, Clone)]
pub(crate) struct Recent<V> {
    capacity: usize,
    known: HashMap<u64, V, Hashed>,
    order: VecDeque<u64>,
    seed: Seed,
    /// Whether an id ever had to go.
    forgot: bool,
}

impl<V> Recent<V> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            known: HashMap::default(),
            order: VecDeque::new(),
            seed: Seed::default(),
            forgot: false,
        }
    }

    pub(crate) fn get(&self, id: impl Hash) -> Option<&V> {
        self.known.get(&self.seed.hash_one(id))
    }

    pub(crate) fn get_mut(&mut self, id: impl Hash) -> Option<&mut V> {
        self.known.get_mut(&self.seed.hash_one(id))
    }

    /// What is remembered of the id, else `value`, which is remembered from now on.
    pub(crate) fn first(&mut self, id: impl Hash, value: V) -> Option<&mut V> {
        let key = self.seed.hash_one(id);
        let Entry::Vacant(free) = self.known.entry(key) else {
            return self.known.get_mut(&key);
        };
        free.insert(value);
        self.order.push_back(key);
        if self.order.len() > self.capacity
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
            self.forgot = true;
        }
        None
    }

    /// Whether an id that is not known may have been known once.
    pub(crate) fn forgot(&self) -> bool {
        self.forgot
    }
}

/// The golden ratio in 64 bits: no pattern in ids survives it.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The messages seen last, by id, with a fingerprint each: about as many as [`IDS`].
///
/// One look costs one line of memory, however long the stream: ids share places four by four, and the newest four of a
/// place stay. A short stream takes little memory: there are at least two places for each id, until there are all.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    places: Vec<[(u64, u64); 4]>,
    known: usize,
    seed: Seed,
}

/// How many places there are, at first and at most.
const PLACES: (usize, usize) = (64, IDS / 4);

impl Seen {
    /// The fingerprint under which an id was seen before; if it was not, it is from now on.
    pub(crate) fn first(&mut self, id: u64, print: u64) -> Option<u64> {
        if self.known * 2 >= self.places.len() && self.places.len() < PLACES.1 {
            self.grow();
        }
        // No id is 0, which marks what is free.
        let id = mix(mix(id, self.seed.0), GOLDEN) | 1;
        let place = self.place(id)?;
        if let Some((_, known)) = place.iter().find(|(known, _)| *known == id) {
            return Some(*known);
        }
        put(place, (id, print));
        self.known += 1;
        None
    }

    fn place(&mut self, id: u64) -> Option<&mut [(u64, u64); 4]> {
        let at = usize::try_from(id >> 32).unwrap_or_default().checked_rem(self.places.len())?;
        self.places.get_mut(at)
    }

    /// Twice as many places. The newest of a place stay the newest.
    fn grow(&mut self) {
        let more = (self.places.len() * 2).clamp(PLACES.0, PLACES.1);
        let before = std::mem::replace(&mut self.places, vec![Default::default(); more]);
        for entry in before.iter().flat_map(|place| place.iter().rev()).filter(|(id, _)| *id != 0) {
            if let Some(place) = self.place(entry.0) {
                put(place, *entry);
            }
        }
    }
}

fn put(place: &mut [(u64, u64); 4], entry: (u64, u64)) {
    place.rotate_right(1);
    if let Some(newest) = place.first_mut() {
        *newest = entry;
    }
}

/// Hashes quickly, under a key that nobody outside knows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seed(u64);

impl Default for Seed {
    fn default() -> Self {
        Self(RandomState::new().hash_one(0u8))
    }
}

impl BuildHasher for Seed {
    type Hasher = Mixed;

    fn build_hasher(&self) -> Mixed {
        Mixed(self.0)
    }
}

/// A hash on its way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mixed(u64);

impl Hasher for Mixed {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = self::bytes(self.0, bytes);
    }

    fn write_u8(&mut self, byte: u8) {
        self.0 = mix(self.0, u64::from(byte));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Takes keys that are hashes already as they are.
#[derive(Debug, Clone, Copy, Default)]
struct Hashed(u64);

impl BuildHasher for Hashed {
    type Hasher = Self;

    fn build_hasher(&self) -> Self {
        Self(0)
    }
}

impl Hasher for Hashed {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = self::bytes(self.0, bytes);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// How many ids a stream's memory holds.
pub(crate) const IDS: usize = 65_536;

impl<V> Default for Recent<V> {
    fn default() -> Self {
        Self::new(IDS)
    }
}

/// The longest id that is kept as it stands.
const LONGEST_KEY: usize = 128;

/// An id as [`key`] would keep it, not copied unless it is long.
pub(crate) fn short(id: &str) -> Cow<'_, str> {
    if id.len() <= LONGEST_KEY { Cow::Borrowed(id) } else { Cow::Owned(key(id).into()) }
}

/// An id as a key: itself, or its digest where it is so long that keeping many would hurt.
pub(crate) fn key(id: &str) -> Box<str> {
    if id.len() <= LONGEST_KEY { id.into() } else { crate::id::derive("…", &[id]).into() }
}

/// A fingerprint of a message: equal messages have equal ones, in whatever order their keys stand and however they
/// are laid out. It is no protection against somebody who looks for two messages with the same one.
pub(crate) fn fingerprint(message: View<'_>) -> u64 {
    if let Some(text) = message.plain() {
        return bytes(3, text);
    }
    if message.is_object() {
        let entries =
            message.entries().map(|(name, value)| mix(fingerprint(name), fingerprint(value)));
        return mix(1, entries.fold(0, u64::wrapping_add));
    }
    if message.is_array() {
        return message.items().fold(2, |print, item| mix(print, fingerprint(item)));
    }
    match message.as_str() {
        Some(text) => bytes(3, text.as_bytes()),
        // Numbers count as they are written: 1 and 1.0 may mean different things to their reader.
        None => bytes(4, message.raw().as_bytes()),
    }
}

fn bytes(seed: u64, bytes: &[u8]) -> u64 {
    let (chunks, rest) = bytes.as_chunks::<8>();
    let print = chunks.iter().fold(seed, |print, chunk| mix(print, u64::from_le_bytes(*chunk)));
    let mut last = [0; 8];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    mix(mix(print, u64::from_le_bytes(last)), bytes.len() as u64)
}

/// Both halves of a product, folded: every bit of both words counts.
pub(crate) fn mix(left: u64, right: u64) -> u64 {
    let product =
        u128::from(left ^ 0x9E37_79B9_7F4A_7C15) * u128::from(right ^ 0xD6E8_FEB8_6659_FD93);
    #[expect(clippy::cast_possible_truncation, reason = "the halves are what is wanted")]
    {
        (product as u64) ^ ((product >> 64) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_stay_and_the_oldest_go() {
        let mut recent = Recent::new(2);
        assert!(recent.first("a", 1).is_none());
        assert_eq!(recent.first("a", 9).copied(), Some(1));
        assert!(recent.first("b", 2).is_none());
        assert!(!recent.forgot());
        assert!(recent.first("c", 3).is_none());
        assert!(recent.forgot());
        assert_eq!((recent.get("a"), recent.get("c")), (None, Some(&3)));
        assert_eq!(recent.known.len(), 2);
    }

    #[test]
    fn what_was_seen_is_known_again_until_much_else_was_seen() {
        let mut seen = Seen::default();
        for id in 0..10_000 {
            assert_eq!(seen.first(id, id + 7), None);
        }
        let known = (0..10_000).filter(|id| seen.first(*id, 0) == Some(id + 7)).count();
        assert!(known > 9_900, "{known}");
        for id in 10_000..1_000_000 {
            assert_eq!(seen.first(id, 1), None);
        }
        assert_eq!(seen.places.len() * 4, IDS);
        assert_eq!(seen.first(999_999, 0), Some(1));
    }

    #[test]
    fn a_fingerprint_tells_content_not_layout() {
        let print = |text: &str| {
            let mut parser = crate::json::Parser::default();
            fingerprint(parser.parse(text.as_bytes()).unwrap().root())
        };
        assert_eq!(
            print(r#"{"a": [1, {"b": null}], "c": "d"}"#),
            print(r#"{"c":"d","a":[1,{"b":null}]}"#)
        );
        let different = [
            "{}",
            "[]",
            "null",
            r#"{"a":1}"#,
            r#"{"a":"1"}"#,
            r#"{"a":[1]}"#,
            "[1,2]",
            "[2,1]",
            "[[1],2]",
        ];
        let prints: std::collections::HashSet<u64> =
            different.iter().map(|text| print(text)).collect();
        assert_eq!(prints.len(), different.len());
    }

    #[test]
    fn a_key_is_never_long() {
        assert_eq!(&*key("short"), "short");
        assert!(key(&"x".repeat(1 << 20)).len() <= LONGEST_KEY);
        assert_ne!(key(&"x".repeat(500)), key(&"x".repeat(501)));
    }

    #[test]
    fn a_short_stream_takes_little_memory_and_what_it_grows_by_is_still_known() {
        let mut seen = Seen::default();
        for id in 0..20_000 {
            assert_eq!(seen.first(id, id ^ 7), None, "{id}");
            if id == 99 {
                assert!(seen.places.len() <= 256, "{}", seen.places.len());
            }
        }
        assert_eq!(seen.places.len(), PLACES.1);
        let known = (0..20_000).filter(|id| seen.first(*id, 0) == Some(id ^ 7)).count();
        // Places of four overflow here and there, and looking puts in again what had to go.
        assert!(known > 19_000, "{known}");
    }
}
