//! The live end of the journal.
//!
//! Subscribers read at their own pace: from here while they keep up, from the journal when they fall behind. Publishing
//! never waits for a subscriber. There is one [`Publisher`], and it is apart from the [`Hub`] that everybody reads.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use banister_events::Message;
use banister_journal::Record;
use tokio::sync::watch;

/// How many records are kept at hand, and how many bytes of them.
const TAIL: usize = 4_096;
const TAIL_BYTES: usize = 32 * 1024 * 1024;
/// How many of them are kept as they were parsed, and how many bytes of them: who follows live comes soon.
const PARSED: usize = 512;
const PARSED_BYTES: usize = 4 * 1024 * 1024;

/// The newest records, and a bell that rings when there are more.
#[derive(Debug, Clone)]
pub(crate) struct Hub {
    tail: Arc<Mutex<RecentRecords>>,
    bell: watch::Sender<u64>,
    /// Every [`FollowerGuard`] has a weak reference to this: their number is the number of followers.
    followers: Arc<()>,
}

#[derive(Debug)]
struct RecentRecords {
    records: VecDeque<Arc<Record>>,
    bytes: usize,
    /// Position → the message that the record there holds, the newest ones.
    parsed: VecDeque<(u64, Message)>,
    parsed_bytes: usize,
    /// Everything up to here was published.
    head: u64,
    /// Records that came before an earlier position did: one commit released two writers, and the later one was first
    /// here.
    early: std::collections::BTreeMap<u64, Arc<Record>>,
}

/// Counts one follower of the hub until it is dropped.
#[derive(Debug)]
#[expect(dead_code, reason = "the count is the number of these")]
pub(crate) struct FollowerGuard(Weak<()>);

/// The one handle that publishes.
#[derive(Debug)]
pub(crate) struct Publisher {
    hub: Hub,
}

impl Publisher {
    /// A hub that stands at the journal's head, and what publishes to it.
    pub(crate) fn new(head: u64) -> (Self, Hub) {
        let hub = Hub::silent(head);
        (Self { hub: hub.clone() }, hub)
    }

    /// Hands records to the live subscribers, in the journal's order, with the messages that the first of them hold where
    /// they were parsed on their way in: who follows live need not parse them again.
    pub(crate) fn publish(
        &self,
        records: &[Arc<Record>],
        messages: impl IntoIterator<Item = Option<Message>>,
    ) {
        let head = {
            let mut tail = self.hub.tail.lock().unwrap_or_else(PoisonError::into_inner);
            for (record, message) in records.iter().zip(messages) {
                // Less may be kept than what came.
                if let Some(message) = message.filter(|message| message.is(&record.body)) {
                    tail.keep(record.position, message);
                }
            }
            for record in records {
                if record.position > tail.head {
                    tail.early.insert(record.position, Arc::clone(record));
                }
            }
            loop {
                let next = tail.head + 1;
                let Some(record) = tail.early.remove(&next) else { break };
                tail.head = next;
                tail.bytes += record.body.len();
                tail.records.push_back(record);
                while tail.records.len() > TAIL || tail.bytes > TAIL_BYTES {
                    let Some(oldest) = tail.records.pop_front() else { break };
                    tail.bytes -= oldest.body.len();
                }
            }
            if tail.early.len() > TAIL {
                // One position never came. Whoever needs its record reads it from the journal.
                tail.head = tail.early.keys().next_back().copied().unwrap_or(tail.head);
                tail.early.clear();
                tail.records.clear();
                tail.bytes = 0;
            }
            tail.head
        };
        self.hub.bell.send_if_modified(|at| {
            let moved = *at < head;
            *at = head.max(*at);
            moved
        });
    }
}

impl Hub {
    /// A hub to which nobody publishes.
    pub(crate) fn silent(head: u64) -> Self {
        let tail = RecentRecords {
            records: VecDeque::new(),
            bytes: 0,
            parsed: VecDeque::new(),
            parsed_bytes: 0,
            head,
            early: std::collections::BTreeMap::new(),
        };
        let bell = watch::Sender::new(head);
        Self { tail: Arc::new(Mutex::new(tail)), bell, followers: Arc::new(()) }
    }

    /// A bell that rings when something was published.
    pub(crate) fn bell(&self) -> watch::Receiver<u64> {
        self.bell.subscribe()
    }

    /// Counts one more follower, until the guard is dropped.
    pub(crate) fn counted(&self) -> FollowerGuard {
        FollowerGuard(Arc::downgrade(&self.followers))
    }

    /// How many followers there are.
    pub(crate) fn followers(&self) -> usize {
        Arc::weak_count(&self.followers)
    }

    /// Everything up to here was published.
    pub(crate) fn head(&self) -> u64 {
        *self.bell.borrow()
    }

    /// The message that the record at a position holds, if it is at hand as it was parsed.
    pub(crate) fn message(&self, position: u64) -> Option<Message> {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let at = tail.parsed.binary_search_by_key(&position, |(at, _)| *at).ok()?;
        tail.parsed.get(at).map(|(_, message)| message.clone())
    }

    /// The records after a position, if they are still at hand.
    pub(crate) fn after(&self, position: u64, limit: usize) -> Option<Vec<Arc<Record>>> {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        if position >= tail.head {
            return Some(Vec::new());
        }
        let first = tail.records.front()?.position;
        if position + 1 < first {
            return None;
        }
        let skip = usize::try_from(position + 1 - first).ok()?;
        Some(tail.records.iter().skip(skip).take(limit).cloned().collect())
    }
}

impl RecentRecords {
    fn keep(&mut self, position: u64, message: Message) {
        let at = self.parsed.partition_point(|(at, _)| *at < position);
        self.parsed_bytes += message.bytes().len();
        self.parsed.insert(at, (position, message));
        while self.parsed.len() > PARSED || self.parsed_bytes > PARSED_BYTES {
            let Some((_, oldest)) = self.parsed.pop_front() else { break };
            self.parsed_bytes -= oldest.bytes().len();
        }
    }
}

#[cfg(test)]
mod tests {
    use banister_journal::{Kind, Source};

    use super::*;

    fn record(position: u64) -> Arc<Record> {
        Arc::new(Record {
            position,
            session: "s".to_owned(),
            seq: position,
            time: jiff::Timestamp::default(),
            kind: Kind::Event,
            source: Source {
                protocol: String::new(),
                agent: String::new(),
                door: String::new(),
                key: String::new(),
            },
            turn: None,
            action: None,
            event_id: None,
            reader: 1,
            body: bytes::Bytes::new(),
            findings: serde_json::Value::Null,
            gate: None,
            prev: [0; 32],
            hash: [0; 32],
            captured: banister_journal::Captured::default(),
        })
    }

    #[test]
    fn records_come_in_the_journals_order_whoever_was_quicker() {
        let (publisher, hub) = Publisher::new(10);
        publisher.publish(&[record(12)], []);
        assert_eq!(hub.head(), 10, "12 may not be seen before 11");
        publisher.publish(&[record(11)], []);
        let seen: Vec<u64> = hub.after(10, 9).unwrap().iter().map(|r| r.position).collect();
        assert_eq!(seen, [11, 12]);
        assert_eq!(hub.after(12, 9), Some(Vec::new()));
    }

    #[test]
    fn what_is_no_longer_at_hand_has_to_be_read_from_the_journal() {
        let (publisher, hub) = Publisher::new(0);
        let many = TAIL as u64 + 10;
        for position in 1..=many {
            publisher.publish(&[record(position)], []);
        }
        assert_eq!(hub.after(0, 9), None);
        assert_eq!(hub.after(many - 1, 9).unwrap().len(), 1);
    }
}
