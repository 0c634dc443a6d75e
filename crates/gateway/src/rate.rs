//! How much one key may ask for: so many requests a second, and twice as many at once.
//!
//! What hooks send is not counted: whoever waits for a decision must not be refused because somebody else is busy.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// What every key has left.
#[derive(Debug)]
pub(crate) struct Rates {
    /// Requests a second; none for no limit.
    rate: Option<u32>,
    /// Key id → what it has left, and since when. There are as many as there are keys.
    left: Mutex<HashMap<String, (f64, Instant)>>,
}

impl Rates {
    /// So many requests a second for every key; 0 for no limit.
    pub(crate) fn new(rate: u32) -> Self {
        Self { rate: Some(rate).filter(|rate| *rate > 0), left: Mutex::default() }
    }

    /// Takes one request of a key's; says how long to wait where none is left.
    pub(crate) fn take(&self, key: &str) -> Result<(), Duration> {
        let Some(rate) = self.rate.map(f64::from) else { return Ok(()) };
        let most = rate * 2.0;
        let now = Instant::now();
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let (tokens, since) = left.entry(key.to_owned()).or_insert((most, now));
        let more = now.saturating_duration_since(*since).as_secs_f64() * rate;
        (*tokens, *since) = ((*tokens + more).min(most), now);
        if *tokens >= 1.0 {
            *tokens -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - *tokens) / rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_key_gets_its_rate_and_no_other_pays_for_it() {
        let rates = Rates::new(10);
        let taken = (0..100).filter(|_| rates.take("a").is_ok()).count();
        assert_eq!(taken, 20, "twice as many at once");
        let wait = rates.take("a").unwrap_err();
        assert!(wait <= Duration::from_millis(100), "{wait:?}");
        assert!(rates.take("b").is_ok());
        tokio::time::advance(wait).await;
        assert!(rates.take("a").is_ok());
        assert!(rates.take("a").is_err());
        assert!((0..100).all(|_| Rates::new(0).take("a").is_ok()));
    }
}
