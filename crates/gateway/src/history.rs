//! The one door into history.
//!
//! Whatever happens becomes history by [`History::commit`] and in no other way: it is appended to the journal, then the
//! asks that it opens and closes are opened and closed, then it is published. All of it or none of it, in this order, and
//! to its end though whoever sent it has gone meanwhile.
//!
//! The compiler holds the door. The three handles that can do this ([`Appender`], [`AskWriter`], [`Publisher`]) exist
//! once in a gateway, and they are private to this module. Everybody else builds [`Fact`]s.

use std::sync::Arc;

use banister_events::Message;
use banister_journal::{Appended, Appender, Durability, Entry, Journal, Record};
use tokio_util::task::TaskTracker;

use crate::Error;
use crate::asks::{AskDraft, AskEnd, AskWriter, Asks, Expected, ParkedDraft, Resumption};
use crate::clock::Clock;
use crate::hub::{Hub, Publisher};
use crate::keep::Keeper;

/// One thing that is about to be history; each is one record.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "almost every fact is a note")]
pub(crate) enum Fact {
    /// A record that changes nothing for those who wait: a message, a grant, the end of an idle turn.
    Note {
        /// What is recorded.
        entry: Entry,
        /// The message that it holds, where it was parsed on its way in.
        message: Option<Message>,
    },
    /// An ask; it is open from then on.
    Asked(Box<AskDraft>),
    /// The end of an ask; it is closed from then on.
    Closed(Box<AskEnd>),
    /// A run of an upstream that waits for its asks from then on.
    Parked(Box<ParkedDraft>),
    /// What became of it.
    Resumption(Box<Resumption>),
}

impl From<Entry> for Fact {
    fn from(entry: Entry) -> Self {
        Self::Note { entry, message: None }
    }
}

impl Fact {
    /// A record of a message that was parsed on its way in: who watches live need not parse it again.
    pub(crate) fn parsed(entry: Entry, message: Message) -> Self {
        Self::Note { entry, message: Some(message) }
    }
}

impl From<AskDraft> for Fact {
    fn from(draft: AskDraft) -> Self {
        Self::Asked(Box::new(draft))
    }
}

impl From<AskEnd> for Fact {
    fn from(end: AskEnd) -> Self {
        Self::Closed(Box::new(end))
    }
}

impl From<ParkedDraft> for Fact {
    fn from(draft: ParkedDraft) -> Self {
        Self::Parked(Box::new(draft))
    }
}

impl From<Resumption> for Fact {
    fn from(resumption: Resumption) -> Self {
        Self::Resumption(Box::new(resumption))
    }
}

/// The door. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct History {
    handles: Arc<HistoryHandles>,
    tasks: TaskTracker,
}

#[derive(Debug)]
struct HistoryHandles {
    appender: Appender,
    asks: AskWriter,
    publisher: Publisher,
    keeper: Keeper,
}

/// What a commit does to the asks, once it is durable.
#[derive(Default)]
struct Effects {
    /// With the number of the record that each has.
    parks: Vec<(usize, Box<ParkedDraft>, Expected)>,
    opens: Vec<(usize, Box<AskDraft>, Expected)>,
    closes: Vec<AskEnd>,
    resumes: Vec<Resumption>,
}

impl History {
    /// Takes the sole right to append. Gives the asks that are open and the live end of the journal besides.
    pub(crate) fn open(
        appender: Appender,
        keeper: &Keeper,
        clock: &Clock,
        tasks: &TaskTracker,
    ) -> Result<(Self, Asks, Hub), Error> {
        let (asks, writer) = Asks::reopen(&appender, clock)?;
        let (publisher, hub) = Publisher::new(appender.head());
        let handles = HistoryHandles { appender, asks: writer, publisher, keeper: keeper.clone() };
        Ok((Self { handles: Arc::new(handles), tasks: tasks.clone() }, asks, hub))
    }

    /// Makes facts part of history, in their order and in one commit: durable, then on the desk, then visible. On an
    /// error and on a duplicate nothing has happened, and asks that were taken for closing are open again.
    pub(crate) async fn commit(
        &self,
        facts: Vec<Fact>,
        durability: Durability,
    ) -> Result<Appended, Error> {
        let handles = Arc::clone(&self.handles);
        let committed = self.tasks.spawn(async move { handles.commit(facts, durability).await });
        committed.await.unwrap_or_else(|error| Err(Error::Task(error.to_string())))
    }

    /// Notes in the journal from where on it has to be read when the gateway starts again, and removes exact bytes that
    /// are kept for asks that are closed.
    pub(crate) async fn tidy(&self) -> Result<(), Error> {
        let HistoryHandles { appender, asks, .. } = &*self.handles;
        let (mark, unsettled) = asks.tidy(|| appender.head());
        if mark > appender.mark()? {
            appender.set_mark(mark).await?;
        }
        self.handles.settle(unsettled).await;
        Ok(())
    }
}

impl HistoryHandles {
    async fn commit(&self, facts: Vec<Fact>, durability: Durability) -> Result<Appended, Error> {
        let mut entries = Vec::with_capacity(facts.len());
        let mut messages = Vec::with_capacity(facts.len());
        let mut effects = Effects::default();
        for (at, fact) in facts.into_iter().enumerate() {
            messages.push(None);
            match fact {
                Fact::Note { entry, message } => {
                    entries.push(entry);
                    messages.splice(at.., [message]);
                }
                Fact::Asked(draft) => {
                    entries.push(draft.entry(&self.keeper));
                    effects.opens.push((at, draft, self.asks.expect(self.appender.head())));
                }
                Fact::Closed(end) => {
                    entries.push(end.entry(&self.keeper));
                    effects.closes.push(*end);
                }
                Fact::Parked(draft) => {
                    entries.push(draft.entry(&self.keeper));
                    effects.parks.push((at, draft, self.asks.expect(self.appender.head())));
                }
                Fact::Resumption(resumption) => {
                    entries.push(resumption.entry());
                    effects.resumes.push(*resumption);
                }
            }
        }
        let appended = self.appender.append(entries, durability).await?;
        if let Appended::Recorded(records) = &appended {
            let exact = self.apply(effects, records);
            self.publisher.publish(records, messages);
            self.settle(exact).await;
        }
        Ok(appended)
    }

    /// Opens, then closes: an ask that takes the place of another is open before anybody hears that the other is not.
    /// Gives the positions whose exact bytes are not needed any more.
    fn apply(&self, effects: Effects, records: &[Arc<Record>]) -> Vec<u64> {
        for (at, draft, _expected) in effects.parks {
            if let Some(record) = records.get(at) {
                self.asks.park(*draft, record);
            }
        }
        for (at, draft, _expected) in effects.opens {
            if let Some(record) = records.get(at) {
                self.asks.open(&draft, record);
            }
        }
        let closed = effects.closes.into_iter().filter_map(|end| self.asks.close(end));
        let resumed = effects.resumes.into_iter().filter_map(|it| self.asks.resume(it));
        closed.chain(resumed).collect()
    }

    /// Removes exact bytes that are not needed any more. What fails is tried again.
    async fn settle(&self, positions: Vec<u64>) {
        if positions.is_empty() {
            return;
        }
        let journal: &Journal = &self.appender;
        if let Err(error) = journal.settle(positions.clone()).await {
            tracing::warn!(%error, "The exact action of a closed ask is still in the journal.");
            self.asks.keep_unsettled(positions);
        }
    }
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
