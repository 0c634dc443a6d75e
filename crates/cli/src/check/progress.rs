//! A line on the terminal that says how far a check is. It is drawn at most five times a second and never stays.

use std::io::{self, Write};

use banister_gateway::clock::Clock;
use jiff::Timestamp;

const BETWEEN_MS: i64 = 200;

/// The line.
#[derive(Debug)]
pub(crate) struct Progress {
    wanted: bool,
    shown: bool,
    drawn: Timestamp,
}

impl Progress {
    pub(crate) fn new(wanted: bool) -> Self {
        // A check that takes no longer than this needs no line.
        let drawn = if wanted { Clock::System.now() } else { Timestamp::default() };
        Self { wanted, shown: false, drawn }
    }

    /// Draws the line, if it is time.
    pub(crate) fn draw(
        &mut self,
        err: &mut dyn Write,
        bytes: u64,
        events: u64,
        findings: u64,
    ) -> io::Result<()> {
        if !self.wanted {
            return Ok(());
        }
        let now = Clock::System.now();
        if now.as_millisecond() - self.drawn.as_millisecond() < BETWEEN_MS {
            return Ok(());
        }
        self.drawn = now;
        self.shown = true;
        let bytes = size(bytes);
        write!(err, "\r\u{1b}[2Kchecking: {bytes}, {events} events, {findings} findings")?;
        err.flush()
    }

    /// Takes the line away.
    pub(crate) fn erase(&mut self, err: &mut dyn Write) -> io::Result<()> {
        if std::mem::take(&mut self.shown) {
            write!(err, "\r\u{1b}[2K")?;
            err.flush()?;
        }
        Ok(())
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_drawn_where_it_is_not_wanted_or_too_early() {
        for wanted in [false, true] {
            let (mut progress, mut err) = (Progress::new(wanted), Vec::new());
            progress.draw(&mut err, 1, 1, 1).unwrap();
            progress.erase(&mut err).unwrap();
            assert!(err.is_empty());
        }
    }

    #[test]
    fn what_was_drawn_is_taken_away() {
        let mut progress = Progress { wanted: true, shown: false, drawn: Timestamp::UNIX_EPOCH };
        let mut err = Vec::new();
        progress.draw(&mut err, 12_000_000, 3, 2).unwrap();
        progress.draw(&mut err, 12_000_001, 4, 2).unwrap();
        progress.erase(&mut err).unwrap();
        progress.erase(&mut err).unwrap();
        let text = String::from_utf8(err).unwrap();
        assert_eq!(text, "\r\u{1b}[2Kchecking: 12 MB, 3 events, 2 findings\r\u{1b}[2K");
    }
}
