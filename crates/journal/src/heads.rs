//! Where recently used sessions stand, in bounded memory. Only committed heads enter, so that a failed write
//! needs no undoing here. A session that is not held is looked up in the file.

use std::collections::HashMap;
use std::mem;

/// The end of one session's chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) seq: u64,
    pub(crate) hash: [u8; 32],
}

/// Two generations: when the young one is full it becomes the old one, and what was old and unused is forgotten.
#[derive(Debug)]
pub(crate) struct Heads {
    young: HashMap<String, Head>,
    old: HashMap<String, Head>,
    generation: usize,
}

impl Heads {
    /// Holds at most twice `generation` sessions.
    pub(crate) fn new(generation: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), generation }
    }

    pub(crate) fn get(&mut self, session: &str) -> Option<Head> {
        if let Some(head) = self.young.get(session) {
            return Some(*head);
        }
        let (session, head) = self.old.remove_entry(session)?;
        self.put(session, head);
        Some(head)
    }

    pub(crate) fn put(&mut self, session: String, head: Head) {
        if self.young.len() >= self.generation && !self.young.contains_key(&session) {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(session, head);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_head_of_a_session_is_found_and_old_sessions_are_forgotten() {
        let head = |seq| Head { seq, hash: [0; 32] };
        let mut heads = Heads::new(2);
        heads.put("a".to_owned(), head(1));
        heads.put("b".to_owned(), head(1));
        heads.put("a".to_owned(), head(2));
        heads.put("c".to_owned(), head(1));
        assert_eq!(heads.get("a"), Some(head(2)));
        heads.put("a".to_owned(), head(3));
        heads.put("d".to_owned(), head(1));
        assert_eq!((heads.get("a"), heads.get("b")), (Some(head(3)), None));
        assert!(heads.young.len() + heads.old.len() <= 4);
    }
}
