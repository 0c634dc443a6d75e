//! How many events a second, in whole microseconds.

use serde::{Deserialize, Serialize};

/// A token bucket that fills smoothly. It may be overdrawn; then nothing is left until the debt is paid.
///
/// A fifth of a second's events may come at once, one at least: then no window of a second or more sees more than
/// 1.2 times the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Budget {
    /// Between two events.
    interval: i64,
    burst: i64,
    /// When the bucket will be full again.
    full: Option<i64>,
}

impl Budget {
    pub(super) fn new(rate: u64) -> Self {
        let rate = i64::try_from(rate).unwrap_or(i64::MAX).clamp(1, 1_000_000);
        Self {
            interval: 1_000_000_i64.saturating_add(rate - 1) / rate,
            burst: (rate / 5).max(1),
            full: None,
        }
    }

    /// The same debt at another rate.
    pub(super) fn at(self, rate: u64) -> Self {
        Self { full: self.full, ..Self::new(rate) }
    }

    /// When the next event may go.
    pub(super) fn next(&self) -> i64 {
        self.full.map_or(i64::MIN, |full| full.saturating_sub((self.burst - 1) * self.interval))
    }

    pub(super) fn allows(&self, now: i64) -> bool {
        now >= self.next()
    }

    /// Pays for an event, whether there is enough or not.
    pub(super) fn pay(&mut self, now: i64) {
        let full = self.full.map_or(now, |full| full.max(now));
        self.full = Some(full.saturating_add(self.interval));
    }
}
