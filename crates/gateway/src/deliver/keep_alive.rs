//! Comments on a silent stream: proxies cut a connection on which nothing is sent.

use std::time::Duration;

use banister_events::frame::sse;
use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::reading::Gone;

/// How long a stream may be silent before a comment is sent.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// When the next comment of a stream is due.
#[derive(Debug)]
pub(crate) struct KeepAlive {
    out: mpsc::Sender<Bytes>,
    /// Whether the stream's encoding has comments.
    comments: bool,
    every: Duration,
    due: Instant,
}

impl KeepAlive {
    pub(crate) fn new(out: mpsc::Sender<Bytes>, comments: bool, every: Duration) -> Self {
        Self { out, comments, every, due: Instant::now() + every }
    }

    /// Something was sent: the silence begins anew.
    pub(crate) fn renew(&mut self) {
        self.due = Instant::now() + self.every;
    }

    /// Sends a comment if one is due.
    async fn comment_if_due(&mut self) -> Result<(), Gone> {
        if Instant::now() < self.due {
            return Ok(());
        }
        self.renew();
        if !self.comments {
            return Ok(());
        }
        let mut frame = Vec::new();
        sse::comment(&mut frame, "still here");
        self.out.send(Bytes::from(frame)).await.map_err(|_| Gone)
    }

    /// Waits until a bell rings, or a comment is due; an error where the reader has gone.
    pub(crate) async fn wait<T>(&mut self, bell: &mut watch::Receiver<T>) -> Result<(), Gone> {
        self.comment_if_due().await?;
        tokio::select! {
            () = self.out.closed() => Err(Gone),
            rung = tokio::time::timeout_at(self.due, bell.changed()) => match rung {
                Ok(Ok(())) | Err(_) => Ok(()),
                Ok(Err(_)) => Err(Gone),
            },
        }
    }
}
