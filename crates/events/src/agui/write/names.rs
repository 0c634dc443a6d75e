//! The ids that leave: the source's own where the protocol lets it, made up where not.
//!
//! An id is that of one message of one kind, by one author. What a source says under an id that is taken gets another
//! one, and keeps it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::activity::Role;

/// How many ids are remembered; the oldest are forgotten.
const IDS: usize = 16_384;

/// What an id is the id of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Kind {
    Text(Speaker),
    Reasoning,
    Card,
    Result,
    /// A message that is there to carry a call.
    Carrier,
}

/// A role that has an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Speaker {
    Assistant,
    User,
    System,
    Developer,
}

impl From<Role> for Kind {
    fn from(role: Role) -> Self {
        Self::Text(match role {
            Role::Assistant => Speaker::Assistant,
            Role::User => Speaker::User,
            Role::System => Speaker::System,
            Role::Developer => Speaker::Developer,
        })
    }
}

impl Kind {
    /// The kind of a message as the protocol writes it.
    pub(super) fn of(role: &str) -> Self {
        match role {
            "user" => Self::Text(Speaker::User),
            "system" => Self::Text(Speaker::System),
            "developer" => Self::Text(Speaker::Developer),
            "reasoning" => Self::Reasoning,
            "activity" => Self::Card,
            "tool" => Self::Result,
            _ => Self::Text(Speaker::Assistant),
        }
    }
}

/// Which ids are taken, and by what.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Names {
    /// What the source calls it → what it is called here.
    given: BTreeMap<String, Arc<str>>,
    taken: BTreeMap<String, Taken>,
    order: VecDeque<String>,
    /// What was named last: texts come in many pieces.
    #[serde(skip)]
    newest: Option<Named>,
}

/// Something of the source, and the id that it has here.
#[derive(Debug, Clone)]
struct Named {
    kind: Kind,
    author: Option<String>,
    source: String,
    id: Arc<str>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Taken {
    kind: Kind,
    /// None where a snapshot brought it: whoever goes on with it first may have it.
    key: Option<String>,
}

impl Names {
    /// The id for something of the source; whether it had to be another one.
    pub(super) fn name(
        &mut self,
        kind: Kind,
        author: Option<&str>,
        source: &str,
        derived: &dyn Fn(u64) -> String,
    ) -> (Arc<str>, bool) {
        if let Some(newest) = &self.newest
            && newest.kind == kind
            && newest.source == source
            && newest.author.as_deref() == author
        {
            return (Arc::clone(&newest.id), false);
        }
        let (id, renamed) = self.search(kind, author, source, derived);
        let (author, source) = (author.map(str::to_owned), source.to_owned());
        self.newest = Some(Named { kind, author, source, id: Arc::clone(&id) });
        (id, renamed)
    }

    fn search(
        &mut self,
        kind: Kind,
        author: Option<&str>,
        source: &str,
        derived: &dyn Fn(u64) -> String,
    ) -> (Arc<str>, bool) {
        let key =
            format!("{kind:?}\n{}\n{source}", author.map_or("-".to_owned(), |it| format!("+{it}")));
        if let Some(known) = self.given.get(&key)
            && self.taken.get(&**known).is_some_and(|taken| taken.kind == kind)
        {
            return (Arc::clone(known), false);
        }
        let free = match self.taken.get(source) {
            None => true,
            Some(taken) => taken.kind == kind && taken.key.is_none(),
        };
        let kept = !source.is_empty() && free;
        let id: Arc<str> = if kept { source.into() } else { self.mint(&|_| false, derived).into() };
        self.take(&id, kind, Some(key.clone()));
        self.given.insert(key, Arc::clone(&id));
        (id, !kept)
    }

    /// An id of our own, that nothing has. It depends on what is taken alone, not on how often an id was made up: a
    /// client that comes late made up fewer.
    pub(super) fn mint(
        &self,
        used: &dyn Fn(&str) -> bool,
        derived: &dyn Fn(u64) -> String,
    ) -> String {
        let mut n = 1;
        loop {
            let id = derived(n);
            if !self.taken.contains_key(&id) && !used(&id) {
                return id;
            }
            n += 1;
        }
    }

    /// What has an id.
    pub(super) fn kind(&self, id: &str) -> Option<Kind> {
        self.taken.get(id).map(|taken| taken.kind)
    }

    /// Gives an id to something that a snapshot brought, or that has no name at the source.
    pub(super) fn bring(&mut self, id: &str, kind: Kind) {
        let key =
            self.taken.get(id).filter(|taken| taken.kind == kind).and_then(|it| it.key.clone());
        self.take(id, kind, key);
    }

    fn take(&mut self, id: &str, kind: Kind, key: Option<String>) {
        // Whose an id is may change with this.
        self.newest = None;
        if self.taken.insert(id.to_owned(), Taken { kind, key }).is_none() {
            self.order.push_back(id.to_owned());
        }
        while self.order.len() > IDS {
            if let Some(taken) =
                self.order.pop_front().and_then(|oldest| self.taken.remove(&oldest))
                && let Some(key) = taken.key
            {
                self.given.remove(&key);
            }
        }
    }
}
