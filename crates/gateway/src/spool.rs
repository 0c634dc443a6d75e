//! What hooks kept while there was no gateway: taken in, in order, and removed once it is recorded.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use banister_events::limits;
use bytes::Bytes;
use jiff::Timestamp;

use crate::Gateway;
use crate::pipeline::{Cut, Incoming, Kept};

/// The first line of a spooled payload.
const MAGIC: &str = "banister-spool 1";

impl Gateway {
    /// Takes in what hooks kept. Gives how many payloads were recorded.
    pub async fn take_in_spool(self: &Arc<Self>) -> usize {
        let dir = self.spool_dir();
        let mut files = spooled(&dir);
        files.sort();
        let mut taken = 0;
        for path in files {
            match self.take_in(&path).await {
                Ok(true) => taken += 1,
                Ok(false) => break,
                Err(message) => {
                    tracing::warn!(path = %path.display(), message, "A spooled payload was set aside.");
                    // Set aside, not deleted: a person can still look at it.
                    let aside = path.with_extension("unreadable");
                    if let Err(error) = std::fs::rename(&path, &aside) {
                        tracing::error!(%error, path = %path.display(), "It could not be renamed.");
                    }
                }
            }
        }
        taken
    }

    /// Takes in one payload; `false` where it has to wait.
    async fn take_in(self: &Arc<Self>, path: &Path) -> Result<bool, String> {
        let file = std::fs::metadata(path).map_err(|error| error.to_string())?;
        if file.len() > (limits::MESSAGE_BYTES as u64) + 4_096 {
            return Err("it is too large".to_owned());
        }
        let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
        let (header, body) = split(&bytes).ok_or("it has no header")?;
        let field = |name: &str| {
            header
                .lines()
                .filter_map(|line| line.split_once(": "))
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.to_owned())
        };
        if !header.starts_with(MAGIC) {
            return Err("it is not a spooled payload".to_owned());
        }
        let incoming = Incoming {
            agent: field("agent").ok_or("it names no agent")?,
            hook: field("event").unwrap_or_default(),
            door: "spool",
            // The spool is a private directory that only the hook writes to.
            key: "agent".to_owned(),
            event_id: field("idempotency"),
            body: Bytes::copy_from_slice(body),
            cut: field("truncated").and_then(|bytes| bytes.parse().ok()).map(Cut::TooLarge),
            wait: Duration::ZERO,
            kept: Some(Kept {
                refused: field("answered").as_deref() == Some("deny"),
                time: field("time_ms")
                    .and_then(|time| time.parse().ok())
                    .and_then(|time| Timestamp::from_millisecond(time).ok()),
            }),
        };
        let accepted = match self.accept(&incoming).await {
            Ok(accepted) => accepted,
            // Not the payload's fault: it stays where it is, for the next round.
            Err(error) => {
                tracing::warn!(%error, "A spooled payload could not be recorded yet.");
                return Ok(false);
            }
        };
        // The hook has answered by itself: whoever is asked now could change nothing any more.
        if let Some(ask) = accepted.ask
            && let Err(error) = self.desk.withdraw(&ask).await
        {
            tracing::debug!(%ask, %error, "The ask of a spooled payload was closed otherwise.");
        }
        std::fs::remove_file(path).map_err(|error| error.to_string())?;
        Ok(true)
    }
}

fn spooled(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    entries
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "spool"))
        .collect()
}

fn split(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = bytes.windows(2).take(4_096).position(|pair| pair == b"\n\n")?;
    let header = std::str::from_utf8(bytes.get(..end)?).ok()?;
    Some((header, bytes.get(end + 2..)?))
}
