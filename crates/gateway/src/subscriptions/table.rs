//! The subscriptions of a gateway, whose they are, and the way to the streams that follow them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use banister_events::aaep::handshake::Capabilities;
use banister_events::aaep::shape::{Limits, Terms};
use banister_events::id;
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc};

use crate::keys::Guest;

/// How many subscriptions there may be at once.
pub(crate) const MOST: usize = 2_048;
/// How many sockets may be open; each has one subscription at most.
const MOST_SOCKETS: usize = 512;
/// How many orders may wait for a stream that is busy.
const ORDERS: usize = 16;

/// What a stream has to do beside sending events.
#[derive(Debug)]
pub(crate) enum StreamOrder {
    /// Send this message, ahead of everything that is held.
    Say(Value),
    /// Go on under other terms.
    Change {
        /// What changes.
        changed: Box<Capabilities>,
        /// What is served at most.
        limits: Limits,
        /// The message that is sent first.
        answer: Value,
    },
    /// Another subscription takes this one's place. What was held is not sent any more.
    Replace {
        /// Its terms.
        terms: Box<Terms>,
        /// The message that is sent first.
        answer: Value,
        /// Whether the turns under way are sent from their beginning.
        joins: bool,
    },
    /// Send this message and end.
    Close(Value),
}

/// The subscriptions of one gateway.
#[derive(Debug)]
pub(crate) struct SubscriptionTable {
    entries: Mutex<HashMap<String, SubscriptionEntry>>,
    pub(crate) sockets: Arc<Semaphore>,
}

impl Default for SubscriptionTable {
    fn default() -> Self {
        Self { entries: Mutex::default(), sockets: Arc::new(Semaphore::new(MOST_SOCKETS)) }
    }
}

#[derive(Debug)]
pub(super) struct SubscriptionEntry {
    pub(super) owner: String,
    /// Whether its owner may answer.
    pub(super) replies: bool,
    pub(super) terms: Terms,
    pub(super) sole: bool,
    /// The way to whoever follows it.
    pub(super) orders: Option<mpsc::Sender<StreamOrder>>,
    /// Since when nobody does.
    pub(super) left: Timestamp,
}

/// A subscription that is being followed.
#[derive(Debug)]
pub(crate) struct FollowedSubscription {
    pub(crate) terms: Terms,
    pub(crate) orders: mpsc::Receiver<StreamOrder>,
}

/// Why a subscription cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denied {
    /// There is none.
    Unknown,
    /// It is somebody else's.
    Foreign,
}

/// Whose a subscription is. Browsers share a key, but not their sessions.
pub(crate) fn owner(guest: &Guest) -> String {
    match &guest.csrf {
        Some(session) => id::derive("browser_", &[session]),
        None => guest.key.clone(),
    }
}

impl SubscriptionTable {
    /// Follows a subscription. Whoever followed it before is sent away: a connection that broke may not be known to yet.
    pub(crate) fn attach(&self, guest: &Guest, id: &str) -> Result<FollowedSubscription, Denied> {
        let (sender, orders) = mpsc::channel(ORDERS);
        let mut entries = self.lock();
        owned(&entries, id, guest)?;
        let Some(entry) = entries.get_mut(id) else { return Err(Denied::Unknown) };
        // The stream that has the other end sees that its orders are over, and ends.
        entry.orders = Some(sender);
        Ok(FollowedSubscription { terms: entry.terms.clone(), orders })
    }

    /// Puts one subscription in the place of another on its stream; gives the way to the stream.
    pub(crate) fn hand_over(&self, before: &str, id: &str) -> Option<mpsc::Sender<StreamOrder>> {
        let mut entries = self.lock();
        let orders = entries.remove(before).and_then(|entry| entry.orders);
        entries.get_mut(id)?.orders.clone_from(&orders);
        orders
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, HashMap<String, SubscriptionEntry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn owned(
    entries: &HashMap<String, SubscriptionEntry>,
    id: &str,
    guest: &Guest,
) -> Result<(), Denied> {
    match entries.get(id) {
        None => Err(Denied::Unknown),
        Some(entry) if entry.owner != owner(guest) => Err(Denied::Foreign),
        Some(_) => Ok(()),
    }
}
