//! Where time comes from: the system's clock, or one that a test sets.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;

/// A source of time.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// The system's clock.
    #[default]
    System,
    /// A clock that stands still until it is moved, in milliseconds since the epoch.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// A clock that stands at a time until it is moved.
    pub fn manual(start: Timestamp) -> Self {
        Self::Manual(Arc::new(AtomicI64::new(start.as_millisecond())))
    }

    /// The time.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => Timestamp::now(),
            Self::Manual(millis) => {
                Timestamp::from_millisecond(millis.load(Ordering::SeqCst)).unwrap_or_default()
            }
        }
    }

    /// Moves a manual clock; the system's clock moves by itself.
    pub fn advance(&self, by: std::time::Duration) {
        if let Self::Manual(millis) = self {
            let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
            millis.fetch_add(by, Ordering::SeqCst);
        }
    }
}
