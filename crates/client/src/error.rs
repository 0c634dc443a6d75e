//! What can go wrong between a client and its gateway, or an agent.

use std::time::Duration;

use banister_events::agui::follow::Violation;
use banister_events::agui::protobuf::DecodeError;
use banister_events::finding::Finding;

use crate::endpoint::Endpoint;
use crate::transport::HttpError;

/// A result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a request brought nothing.
///
/// Messages of the other side are cut to a line and have their control characters escaped: they may be shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is no endpoint.
    #[error(
        "`{given}` is not an endpoint; write unix:/path, http://host:port or https://host:port"
    )]
    Endpoint {
        /// The text as given.
        given: String,
    },
    /// The key cannot be sent.
    #[error("the key has characters that a header cannot carry")]
    Key,
    /// Nothing listens there.
    #[error("no gateway answers at {endpoint}; start it with: banister serve")]
    NoGateway {
        /// Where it was looked for.
        endpoint: Endpoint,
        /// What the system said.
        source: std::io::Error,
    },
    /// The gateway took the connection, but did not answer in time.
    #[error("the gateway gave no answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// The gateway does not know the key.
    #[error("the gateway does not know this key: {message}")]
    Unauthorized {
        /// What the gateway said.
        message: String,
    },
    /// The key may not do this.
    #[error("this key may not do that: {message}")]
    Forbidden {
        /// What the gateway said.
        message: String,
    },
    /// There is no such thing.
    #[error("not found: {message}")]
    NotFound {
        /// What the gateway said.
        message: String,
    },
    /// The ask was closed before this answer came.
    #[error("the answer came too late: {message}")]
    TooLate {
        /// What the gateway said.
        message: String,
    },
    /// Any other refusal.
    #[error("the gateway answered with status {status}: {message}")]
    Status {
        /// The HTTP status.
        status: u16,
        /// What the gateway said.
        message: String,
    },
    /// The response, or one message of a stream, is larger than is read.
    #[error("more than {limit} bytes came at once")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The other end does not behave like a gateway, or was asked for something that cannot be asked.
    #[error("{problem}")]
    Protocol {
        /// What was wrong.
        problem: &'static str,
    },
    /// The body is not the JSON it should be.
    #[error("the gateway's JSON cannot be read")]
    Json(#[from] serde_json::Error),
    /// What came is a web page: something else than a gateway answered.
    #[error("a web page came instead of a gateway's answer{}; is a proxy in between?", quoted(.words))]
    WebPage {
        /// Its first words.
        words: String,
    },
    /// The connection broke, or there was none that could be trusted.
    #[error(transparent)]
    Http(HttpError),
    /// The text is no address of an agent.
    #[error(
        "`{given}` is not an agent's address; write http://host:port/path, https://host/path or unix:/path"
    )]
    Address {
        /// The text as given.
        given: String,
    },
    /// Nothing listens where the agent should.
    #[error("no agent answers at {endpoint}")]
    NoAgent {
        /// Where it was looked for.
        endpoint: Endpoint,
        /// What the system said.
        source: std::io::Error,
    },
    /// The input is not one that an agent takes, and was not sent.
    #[error("the input was not sent: {}: {} ({})", place(.0), .0.message, .0.rule.code)]
    Input(Finding),
    /// The thread waits for an answer that was not given; nothing was sent.
    #[error("the interrupt {id} is not answered")]
    Unanswered {
        /// The interrupt.
        id: String,
    },
    /// The answer comes too late; nothing was sent.
    #[error("the interrupt {id} has expired: it can only be cancelled")]
    Expired {
        /// The interrupt.
        id: String,
    },
    /// Two answers to one question say nothing; nothing was sent.
    #[error("the interrupt {id} is answered twice")]
    Repeated {
        /// The interrupt.
        id: String,
    },
    /// The agent did not begin the run.
    #[error("the agent answered with status {status}: {message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// What the agent said.
        message: String,
    },
    /// The agent answered with something else than events.
    #[error(
        "the agent sent {} instead of events{}",
        .content_type.as_deref().unwrap_or("nothing that has a type"),
        quoted(.words)
    )]
    NotEvents {
        /// What it calls itself.
        content_type: Option<String>,
        /// Its first words.
        words: String,
    },
    /// The agent said nothing for longer than was to be waited.
    #[error("the agent was silent for {} ms", .0.as_millis())]
    Silent(Duration),
    /// What the agent sent is no event.
    #[error("the agent sent what is no event: {0}")]
    Undecodable(#[from] DecodeError),
    /// The agent broke the protocol.
    #[error("the agent broke the protocol: {0}")]
    Violation(#[from] Violation),
    /// The stream ended and the run did not. Nobody knows how it went on.
    #[error("the stream ended before the run did")]
    Truncated,
}

impl From<HttpError> for Error {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::TimedOut(time) => Self::TimedOut(time),
            HttpError::TooLarge { limit } => Self::TooLarge { limit },
            other => Self::Http(other),
        }
    }
}

fn quoted(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(" (“{words}”)") }
}

fn place(finding: &Finding) -> &str {
    if finding.pointer.is_empty() { "the whole of it" } else { &finding.pointer }
}
