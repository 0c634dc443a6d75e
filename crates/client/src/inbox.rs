//! What waits on a person, and the person's answer.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::client::Client;
use crate::error::{Error, Result};

/// A question that an agent waits on.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct OpenAsk {
    /// Names the ask when it is answered.
    pub id: String,
    /// Everything else the gateway says about it, as it says it.
    #[serde(flatten)]
    pub details: Map<String, Value>,
}

/// What a person says to an ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// Yes or no.
    pub decision: Decision,
    /// What the agent is told with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// The agent may go on.
    Accept,
    /// The agent may not.
    Reject,
}

impl Answer {
    /// Yes, without a word.
    pub fn accept() -> Self {
        Self { decision: Decision::Accept, message: None }
    }

    /// No, and why.
    pub fn reject(message: impl Into<String>) -> Self {
        Self { decision: Decision::Reject, message: Some(message.into()) }
    }
}

#[derive(Deserialize)]
struct Inbox {
    asks: Vec<OpenAsk>,
}

impl Client {
    /// The open asks.
    pub async fn inbox(&self) -> Result<Vec<OpenAsk>> {
        let inbox: Inbox = serde_json::from_value(self.get("/api/inbox").await?)?;
        Ok(inbox.asks)
    }

    /// Answers an ask; gives what the gateway says to it. [`Error::TooLate`] if it was closed before.
    pub async fn answer(&self, ask: &str, answer: &Answer) -> Result<Value> {
        let path = format!("/api/asks/{}/answer", segment(ask));
        match self.post(&path, &serde_json::to_value(answer)?).await {
            Err(Error::Status { status: 409, message }) => Err(Error::TooLate { message }),
            other => other,
        }
    }
}

/// One segment of a path, whatever a person typed.
pub(crate) fn segment(text: &str) -> String {
    use std::fmt::Write as _;
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            write!(encoded, "%{byte:02X}").ok();
        }
    }
    encoded
}
