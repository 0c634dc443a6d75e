//! A bounded memory of ids: the newest stay, the oldest go.
//!
//! Ids are kept as 64-bit hashes under a random key, so that memory does not grow with their length and nobody can
//! choose ids that collide.

use std::collections::VecDeque;
use std::collections::hash_map::{HashMap, RandomState};
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher};

use serde_json::Value;

/// What is remembered of the ids seen last.
#[derive(Debug, Clone)]
pub(crate) struct Recent<V> {
    capacity: usize,
    known: HashMap<u64, V>,
    order: VecDeque<u64>,
    hasher: RandomState,
    /// Whether an id ever had to go.
    forgot: bool,
}

impl<V> Recent<V> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            known: HashMap::new(),
            order: VecDeque::new(),
            hasher: RandomState::new(),
            forgot: false,
        }
    }

    pub(crate) fn get(&self, id: impl Hash) -> Option<&V> {
        self.known.get(&self.hasher.hash_one(id))
    }

    pub(crate) fn get_mut(&mut self, id: impl Hash) -> Option<&mut V> {
        self.known.get_mut(&self.hasher.hash_one(id))
    }

    /// What is remembered of the id, else `value`, which is remembered from now on.
    pub(crate) fn first(&mut self, id: impl Hash, value: V) -> Option<&mut V> {
        let key = self.hasher.hash_one(id);
        if self.known.contains_key(&key) {
            return self.known.get_mut(&key);
        }
        self.known.insert(key, value);
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

/// How many ids a stream's memory holds.
pub(crate) const IDS: usize = 65_536;

impl<V> Default for Recent<V> {
    fn default() -> Self {
        Self::new(IDS)
    }
}

/// The longest id that is kept as it stands.
const LONGEST_KEY: usize = 128;

/// An id as a key: itself, or its digest where it is so long that keeping many would hurt.
pub(crate) fn key(id: &str) -> Box<str> {
    if id.len() <= LONGEST_KEY { id.into() } else { crate::id::derive("…", &[id]).into() }
}

/// A fingerprint of a message: equal messages have equal ones, in whatever order their keys stand.
pub(crate) fn fingerprint(message: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    // The JSON type goes in first: an empty array is not null.
    std::mem::discriminant(message).hash(&mut hasher);
    match message {
        Value::Object(object) => {
            let entries = object.iter().map(|(name, value)| {
                let mut entry = DefaultHasher::new();
                (name, fingerprint(value)).hash(&mut entry);
                entry.finish()
            });
            hasher.write_u64(entries.fold(0, u64::wrapping_add));
        }
        Value::Array(values) => {
            for value in values {
                hasher.write_u64(fingerprint(value));
            }
        }
        leaf => leaf.hash(&mut hasher),
    }
    hasher.finish()
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
    fn a_fingerprint_tells_content_not_layout() {
        let print = |text: &str| fingerprint(&serde_json::from_str(text).unwrap());
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
}
