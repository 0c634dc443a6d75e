//! Durations, summed up.

use std::time::Duration;

/// What many runs of one thing took.
#[derive(Debug, Default)]
pub(super) struct Runs(Vec<Duration>);

impl Runs {
    pub(super) fn add(&mut self, took: Duration) {
        self.0.push(took);
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// The smallest duration that at least `percent` of the runs do not exceed; 0 gives the smallest of all.
    pub(super) fn percentile(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        sorted.get(rank - 1).copied().unwrap_or_default()
    }

    pub(super) fn median(&self) -> Duration {
        self.percentile(50)
    }

    /// How many times longer this takes than the other, by medians.
    pub(super) fn times(&self, other: &Self) -> f64 {
        self.median().as_secs_f64() / other.median().as_secs_f64().max(f64::EPSILON)
    }
}

/// Milliseconds with as many digits as are worth reading.
pub(super) fn shown(took: Duration) -> String {
    format!("{:.3}", took.as_secs_f64() * 1_000.0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Runs, shown};

    fn runs(milliseconds: &[u64]) -> Runs {
        Runs(milliseconds.iter().copied().map(Duration::from_millis).collect())
    }

    #[test]
    fn percentiles_are_runs_that_happened() {
        let runs = runs(&[5, 1, 4, 2, 3]);
        let at = |percent| runs.percentile(percent).as_millis();
        assert_eq!([at(0), at(50), at(90), at(100)], [1, 3, 5, 5]);
        assert_eq!(Runs::default().median(), Duration::ZERO);
    }

    #[test]
    fn ratios_are_of_medians() {
        assert!((runs(&[1, 30, 900]).times(&runs(&[2, 3, 4])) - 10.0).abs() < 1e-9);
    }

    #[test]
    fn durations_read_as_milliseconds() {
        assert_eq!(shown(Duration::from_micros(1_234)), "1.234");
    }
}
