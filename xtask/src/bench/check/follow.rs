//! One run of AG-UI, from its bytes to what a client would show.

use anyhow::ensure;
use banister_events::check::Checker;
use banister_events::event::Protocol;
use banister_events::frame::ndjson::Lines;
use banister_events::frame::sse::Parser;
use banister_events::limits::MESSAGE_BYTES;

use super::PIECE;
use super::agui::Framing;

/// A run that is being followed.
#[derive(Debug)]
pub(super) struct Run(Checker);

impl Run {
    pub(super) fn new() -> Self {
        Self(Checker::new(Protocol::Agui))
    }

    fn event(&mut self, message: &[u8]) -> anyhow::Result<()> {
        let findings = self.0.message(message);
        ensure!(findings.is_empty(), "a run without fault is refused: {findings:?}");
        Ok(())
    }

    pub(super) fn finish(&mut self) -> anyhow::Result<()> {
        let findings = self.0.finish();
        ensure!(findings.is_empty(), "a run without fault has not ended: {findings:?}");
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
                        self.event(message?.data.as_bytes())?;
                    }
                }
            }
        }
        Ok(())
    }
}
