//! Where one event stands, and where a subscriber wants to begin.

/// Where a subscriber wants to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// With the first record there is.
    Beginning,
    /// With what is going on: open turns from their beginning, then what comes.
    Now,
    /// After the event it saw last.
    After(EventCursor),
    /// The same, of a subscription before event ids were the ids of frames: the number counts the events that the
    /// subscription was sent of the record.
    AfterSent(EventCursor),
    /// After an event that is not known here any more: a marker says so, and then as [`Start::Now`].
    Exhausted,
}

/// Where one event stands: the record, and the event within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventCursor {
    /// The record's position in the journal.
    pub position: u64,
    /// The number of the event among those the record became.
    pub n: u32,
}

impl EventCursor {
    /// All of a record.
    pub(crate) fn whole(position: u64) -> Self {
        Self { position, n: u32::MAX }
    }

    pub(crate) fn is_whole(self) -> bool {
        self.n == u32::MAX
    }

    /// The newest position up to which everything is covered.
    pub(crate) fn before_unseen(self) -> u64 {
        if self.is_whole() { self.position } else { self.position.saturating_sub(1) }
    }

    /// Parses `epoch.position.n`; `None` where it belongs to another journal or is none.
    pub fn parse(text: &str, epoch: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let fits = parts.next()? == epoch;
        let position = parts.next()?.parse().ok()?;
        let n = parts.next()?.parse().ok()?;
        (fits && parts.next().is_none()).then_some(Self { position, n })
    }

    /// The cursor as it stands on the wire.
    pub(crate) fn written(self, epoch: &str) -> String {
        format!("{epoch}.{}.{}", self.position, self.n)
    }
}
