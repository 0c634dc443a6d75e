//! The only place where this crate asks what time it is.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A point in time after which nothing is waited for.
///
/// Kept as start and limit, never as their sum, so that no configured limit can overflow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    start: Instant,
    limit: Duration,
}

impl Deadline {
    /// Starts the clock.
    pub(crate) fn starting_now(limit: Duration) -> Self {
        Self { start: now(), limit }
    }

    /// The same start with another limit.
    pub(crate) fn with_limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// How long this deadline was from the start.
    pub(crate) fn limit(&self) -> Duration {
        self.limit
    }

    /// What is left, or `None` when the time is up.
    pub(crate) fn remaining(&self) -> Option<Duration> {
        let left = self.limit.checked_sub(self.start.elapsed())?;
        // A timeout of zero means "wait for ever" to a socket, and what rounds to zero may too.
        (left >= Duration::from_millis(1)).then_some(left)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the hook is a process of its own with no Clock to be handed one; deadlines are real time"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Milliseconds since 1970, for the names of spooled files.
#[expect(
    clippy::disallowed_methods,
    reason = "a spooled call carries the time at which it happened"
)]
pub(crate) fn unix_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis())
}
