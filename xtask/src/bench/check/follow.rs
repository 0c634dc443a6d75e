//! One run of AG-UI, from its bytes to what a client would show.

use std::hint::black_box;

use anyhow::ensure;
use banister_events::agui::follow::{Ending, Followed, Follower};
use banister_events::frame::ndjson::Lines;
use banister_events::frame::sse::Parser;
use banister_events::limits::MESSAGE_BYTES;

use super::PIECE;
use super::agui::Framing;

/// A run that is being followed.
#[derive(Debug, Default)]
pub(super) struct Run(Follower);

impl Run {
    pub(super) fn new() -> Self {
        Self::default()
    }

    fn event(&mut self, message: &[u8]) -> anyhow::Result<()> {
        let followed = self.0.event(message)?;
        quiet(&followed)
    }

    fn text(&mut self, message: &str) -> anyhow::Result<()> {
        let followed = self.0.text(message)?;
        quiet(&followed)
    }

    pub(super) fn finish(&mut self) -> anyhow::Result<()> {
        let ending = self.0.ending();
        ensure!(ending == Ending::Finished, "a run without fault has not ended: {ending:?}");
        black_box(self.0.reducer().state());
        Ok(())
    }

    /// Takes the next bytes, which end where an event does.
    pub(super) fn read(&mut self, framing: Framing, bytes: &[u8]) -> anyhow::Result<()> {
        match framing {
            Framing::Lines => {
                let mut lines = Lines::new(MESSAGE_BYTES);
                for mut piece in bytes.chunks(PIECE) {
                    while let Some((_, line)) = lines.read(&mut piece) {
                        self.event(line?)?;
                    }
                }
            }
            Framing::Sse => {
                let mut parser = Parser::new(MESSAGE_BYTES);
                for mut piece in bytes.chunks(PIECE) {
                    while let Some((_, message)) = parser.read(&mut piece) {
                        self.text(&message?.data)?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn quiet(followed: &Followed) -> anyhow::Result<()> {
    let quiet = followed.findings.is_empty() && followed.warnings.is_empty();
    ensure!(quiet, "a run without fault is not quiet: {followed:?}");
    Ok(())
}
