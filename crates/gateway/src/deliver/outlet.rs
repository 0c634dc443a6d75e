//! One AG-UI run on its way to a client: verified, encoded, and ended exactly once.
//!
//! An outlet holds our own writer to the protocol: an event that a client would end the run for does not leave. Every
//! run ends with one terminal event, also where its task fails, is aborted or the gateway stops.

use std::time::Duration;

use banister_events::agui::encoding::{self, Encoding};
use banister_events::agui::follow::is_fatal;
use banister_events::check::Checker;
use banister_events::event::Protocol;
use banister_events::frame::sse;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{Gone, KeepAlive};

/// One run on its way to a client: verified, encoded, and ended exactly once.
#[derive(Debug)]
pub(crate) struct Outlet {
    encoding: Encoding,
    checker: Checker,
    begun: bool,
    out: mpsc::Sender<Bytes>,
    /// Room for the end, kept from the beginning: it never has to wait. None once the end was sent.
    last: Option<mpsc::OwnedPermit<Bytes>>,
}

impl Outlet {
    /// An outlet whose bytes go to a channel that has room.
    pub(crate) fn new(encoding: Encoding, out: mpsc::Sender<Bytes>) -> Self {
        let checker = Checker::new(Protocol::Agui);
        let last = out.clone().try_reserve_owned().ok();
        Self { encoding, checker, begun: false, out, last }
    }

    /// Whether the terminal event was sent: nothing leaves after it.
    pub(crate) fn is_ended(&self) -> bool {
        self.last.is_none()
    }

    /// The comments of this stream; the binary encoding has none.
    pub(crate) fn keep_alive(&self, every: Duration) -> KeepAlive {
        KeepAlive::new(self.out.clone(), self.encoding == Encoding::Sse, every)
    }

    /// Sends events up to the terminal one. One that breaks the protocol is not sent: the run fails instead.
    pub(crate) async fn send(&mut self, events: &[Value]) -> Result<(), Gone> {
        let mut frames = Vec::new();
        for event in events {
            if self.is_ended() {
                tracing::error!(event = kind(event), "An event came after the end of its run.");
                return Ok(());
            }
            if let Err(reason) = self.write(event, &mut frames) {
                tracing::error!(event = kind(event), %reason, "A run was about to break AG-UI.");
                self.end_with(frames, "internal", "the gateway could not tell how this goes on");
                return Ok(());
            }
            if matches!(kind(event), "RUN_FINISHED" | "RUN_ERROR") {
                self.end(std::mem::take(&mut frames));
            }
        }
        if frames.is_empty() {
            return Ok(());
        }
        self.out.send(Bytes::from(frames)).await.map_err(|_| Gone)
    }

    /// Passes events on that were verified elsewhere, one run after another.
    pub(crate) async fn pass(&mut self, events: &[Bytes]) -> Result<(), Gone> {
        match self.frames(events) {
            Some(frames) if frames.is_empty() => Ok(()),
            Some(frames) => self.out.send(Bytes::from(frames)).await.map_err(|_| Gone),
            None => Err(Gone),
        }
    }

    /// Passes the last events on, which end the stream.
    pub(crate) fn pass_last(&mut self, events: &[Bytes]) -> Result<(), Gone> {
        let frames = self.frames(events).ok_or(Gone)?;
        if self.out.is_closed() {
            return Err(Gone);
        }
        self.end(frames);
        Ok(())
    }

    /// Events in their frames; none where one cannot be encoded, which fails the run.
    fn frames(&mut self, events: &[Bytes]) -> Option<Vec<u8>> {
        let mut frames = Vec::new();
        for event in events {
            let written = match self.encoding {
                Encoding::Sse => {
                    // As it is: nothing that passes is written anew.
                    let data = &String::from_utf8_lossy(event);
                    sse::write(&mut frames, &sse::Outgoing { id: None, event: None, data });
                    Ok(())
                }
                Encoding::Protobuf => serde_json::from_slice::<Value>(event)
                    .map_err(|error| error.to_string())
                    .and_then(|event| {
                        encoding::frame(self.encoding, &event, &mut frames)
                            .map_err(|error| error.to_string())
                    }),
            };
            if let Err(reason) = written {
                tracing::warn!(%reason, "An event has no binary form.");
                self.end_with(frames, "encoding", "an event of this run has no binary form");
                return None;
            }
        }
        Some(frames)
    }

    /// Ends a run that has not ended: it failed.
    pub(crate) fn fail(&mut self, code: &str, message: &str) {
        self.end_with(Vec::new(), code, message);
    }

    fn write(&mut self, event: &Value, frames: &mut Vec<u8>) -> Result<(), String> {
        let data = event.to_string();
        if let Some(finding) = self.checker.message(data.as_bytes()).iter().find(|it| is_fatal(it))
        {
            return Err(format!("{}: {}", finding.rule.code, finding.message));
        }
        if kind(event) == "RUN_STARTED" && std::mem::replace(&mut self.begun, true) {
            return Err("a response has one run".to_owned());
        }
        encoding::frame(self.encoding, event, frames).map_err(|error| error.to_string())
    }

    fn end_with(&mut self, mut frames: Vec<u8>, code: &str, message: &str) {
        let event = json!({ "type": "RUN_ERROR", "message": message, "code": code });
        if let Err(error) = encoding::frame(self.encoding, &event, &mut frames) {
            tracing::error!(%error, "The end of a run could not be encoded.");
        }
        self.end(frames);
    }

    fn end(&mut self, frames: Vec<u8>) {
        if let Some(last) = self.last.take() {
            last.send(Bytes::from(frames));
        }
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        self.fail("internal", "the run broke off; the gateway's log tells more");
    }
}

fn kind(event: &Value) -> &str {
    event.get("type").and_then(Value::as_str).unwrap_or_default()
}
