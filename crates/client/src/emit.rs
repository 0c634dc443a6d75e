//! Events on their way to a gateway, and what became of each.

use std::time::Duration;

use banister_events::event::Protocol;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderName, Method};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::client::Client;
use crate::error::{Error, Result};
use crate::inbox::segment;

/// What became of one event.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Receipt {
    /// Where it stood in the batch.
    pub index: usize,
    /// In a word.
    pub status: Status,
    /// The session it belongs to.
    pub session: String,
    /// Where it stands in the journal.
    pub position: Option<u64>,
    /// What is wrong with it, as the gateway says it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Value>,
}

/// What became of an event, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It is part of its session, and on disk.
    Recorded,
    /// It was before.
    Duplicate,
    /// It is not part of its session; `findings` say why.
    Refused,
}

/// Where events are pushed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outbox {
    path: String,
    idempotency: Option<String>,
}

impl Outbox {
    /// For AEP events.
    pub fn aep() -> Self {
        Self { path: "/aep/v0.1/events".to_owned(), idempotency: None }
    }

    /// For AAEP events.
    pub fn aaep() -> Self {
        Self { path: "/aaep/v1/events".to_owned(), idempotency: None }
    }

    /// For the AG-UI events of one thread.
    pub fn agui(thread: &str) -> Self {
        Self { path: format!("/agui/threads/{}/events", segment(thread)), idempotency: None }
    }

    /// For the events of a protocol. Only AG-UI's go to a thread.
    pub fn of(protocol: Protocol, thread: &str) -> Self {
        match protocol {
            Protocol::Aaep => Self::aaep(),
            Protocol::Agui => Self::agui(thread),
            Protocol::Aep => Self::aep(),
        }
    }

    /// The same for one batch under a name of its own: sent again under that name, events without ids of their own are
    /// not recorded twice. 1 to 128 letters, digits, `-` and `_`.
    #[must_use]
    pub fn once(mut self, name: impl Into<String>) -> Self {
        self.idempotency = Some(name.into());
        self
    }
}

#[derive(Deserialize)]
struct Receipts {
    results: Vec<Receipt>,
}

impl Client {
    /// Pushes events in one batch: when this returns they are on disk, each as its receipt says. It may be sent again:
    /// what has an id is recorded once.
    ///
    /// ```no_run
    /// use banister_client::{Client, Endpoint, Outbox, Status};
    /// use serde_json::json;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> banister_client::Result<()> {
    /// let client = Client::new(Endpoint::parse("http://127.0.0.1:7717")?, "bk_agent_0123");
    /// let event = json!({
    ///     "aep_version": "0.1", "id": "evt_1", "type": "agent.start",
    ///     "time": "2026-11-15T09:00:00Z", "agent": { "slug": "finch" }, "session": { "id": "one" },
    /// });
    /// let receipts = client.emit(&Outbox::aep(), &[event]).await?;
    /// assert_eq!(receipts[0].status, Status::Recorded);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn emit(&self, outbox: &Outbox, events: &[Value]) -> Result<Vec<Receipt>> {
        let mut lines = Vec::new();
        for event in events {
            serde_json::to_writer(&mut lines, event)?;
            lines.push(b'\n');
        }
        self.emit_lines(outbox, Bytes::from(lines)).await
    }

    /// Pushes events as they stand, one a line.
    pub async fn emit_lines(&self, outbox: &Outbox, lines: Bytes) -> Result<Vec<Receipt>> {
        if lines.iter().all(u8::is_ascii_whitespace) {
            return Ok(Vec::new());
        }
        let mut headers =
            vec![(ACCEPT, "application/json"), (CONTENT_TYPE, "application/x-ndjson")];
        if let Some(name) = &outbox.idempotency {
            headers.push((HeaderName::from_static("idempotency-key"), name));
        }
        let request = self.request_of(Method::POST, &outbox.path, lines, &headers)?;
        let receipts: Receipts = serde_json::from_value(self.answer_to(request).await?)?;
        Ok(receipts.results)
    }

    /// Asks whether an action may run, and waits for the hook response for as long as `wait`. Whoever gets an error must
    /// take it for a no.
    pub async fn decide(&self, event: &Value, wait: Duration) -> Result<Value> {
        let milliseconds = wait.as_millis().to_string();
        let deadline = (HeaderName::from_static("banister-deadline-ms"), milliseconds.as_str());
        let headers = [(ACCEPT, "application/json"), (CONTENT_TYPE, "application/json"), deadline];
        let body = Bytes::from(serde_json::to_vec(event)?);
        let request = self.request_of(Method::POST, "/aep/v0.1/decide", body, &headers)?;
        let response = self.clone().with_timeout(wait).answer_to(request).await?;
        let named = response.get("request_event_id");
        if named.is_none() || named != event.get("id") {
            let problem = "the gateway answered something else than what was asked";
            return Err(Error::Protocol { problem });
        }
        Ok(response)
    }
}
