//! What can go wrong between a client and its gateway.

use std::time::Duration;

use crate::endpoint::Endpoint;

/// A result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a request brought nothing.
///
/// Messages of the gateway are cut to a line and have their control characters escaped: they may be shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is no endpoint.
    #[error("`{given}` is not an endpoint; write unix:/path or http://host:port")]
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
    #[error("the gateway sent more than {limit} bytes at once")]
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
    /// The connection broke.
    #[error("the connection to the gateway broke")]
    Http(#[from] hyper::Error),
}
