//! What waits on a person, and the person's answer.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value, json};

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
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// The answer itself.
    #[serde(flatten)]
    pub content: AnswerContent,
    /// What the agent is told with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The `digest` of the ask as it was shown: an answer to anything else does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Where a yes counts from now on without being asked: `project`, `session` or `always`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remember: Option<Remember>,
}

/// Where a yes counts from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Remember {
    /// In this project.
    Project,
    /// In this session.
    Session,
    /// Everywhere.
    Always,
}

/// The answer itself. Which of these are answers depends on what is asked.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AnswerContent {
    /// A decision.
    Decision(Decision),
    /// One of the choices of a question.
    Choice(String),
    /// A number.
    Number(Number),
    /// A text.
    Text(String),
}

/// A decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// The agent may go on.
    Accept,
    /// The agent may not; of a question, that it is not answered.
    Reject,
    /// Yes.
    Yes,
    /// No.
    No,
}

impl Answer {
    /// An answer without a message to the agent.
    pub fn new(content: AnswerContent) -> Self {
        Self { content, message: None, digest: None, remember: None }
    }

    /// Yes, without a word.
    pub fn accept() -> Self {
        Self::new(AnswerContent::Decision(Decision::Accept))
    }

    /// No, and why.
    pub fn reject(message: impl Into<String>) -> Self {
        let message = Some(message.into());
        Self { message, ..Self::new(AnswerContent::Decision(Decision::Reject)) }
    }

    /// The answer to a question, in words.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(AnswerContent::Text(text.into()))
    }

    /// The answer to a question, by one of its choices.
    pub fn choice(choice: impl Into<String>) -> Self {
        Self::new(AnswerContent::Choice(choice.into()))
    }
}

/// More time to answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Extended {
    /// The ask from now on: it has a new id.
    pub ask: String,
    /// Until when it can be answered.
    pub deadline: String,
    /// Until when the agent itself waits.
    pub limit: String,
    /// Whether there is still more to be had.
    pub extendable: bool,
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
        in_time(self.post(&path, &serde_json::to_value(answer)?).await)
    }

    /// The standing permissions: `{"schema", "grants": […]}`.
    pub async fn grants(&self) -> Result<Value> {
        self.get("/api/grants").await
    }

    /// Takes a standing permission back.
    pub async fn revoke_grant(&self, grant: &str) -> Result<Value> {
        self.delete(&format!("/api/grants/{}", segment(grant))).await
    }

    /// Extends the time to answer: by this much, or by as much again as there was; never beyond what the agent itself
    /// waits. [`Error::TooLate`] if it was closed before.
    pub async fn extend(&self, ask: &str, by: Option<Duration>) -> Result<Extended> {
        let path = format!("/api/asks/{}/extend", segment(ask));
        let body = by.map_or_else(|| json!({}), |by| json!({ "seconds": by.as_secs() }));
        Ok(serde_json::from_value(in_time(self.post(&path, &body).await)?)?)
    }
}

fn in_time<T>(answered: Result<T>) -> Result<T> {
    match answered {
        Err(Error::Status { status: 409, message }) => Err(Error::TooLate { message }),
        other => other,
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
