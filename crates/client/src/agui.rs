//! Run an agent that speaks AG-UI 1.0.
//!
//! An [`Agent`] is asked for runs, a [`Run`] gives their events one by one and holds the messages and the state that
//! they build, a [`Thread`] goes on from run to run. An event is applied before the next one is looked at, so what was
//! right before something went wrong is kept.
//!
//! Whatever cannot be sent by the protocol's rules is refused before anything is sent. A run ends well only if the agent
//! says so: a stream that just ends is [`Error::Truncated`], a broken one [`Error::Violation`], and [`Run::ending`] tells
//! all endings apart. Nothing is tried twice.
//!
//! ```no_run
//! use banister_client::agui::{Agent, Ending, Message, RunInput, UserMessage};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> banister_client::Result<()> {
//! let agent = Agent::new("http://127.0.0.1:8000/agent")?.with_header("authorization", "Bearer k")?;
//! let mut input = RunInput::new("thread-1", "run-1");
//! input.messages.push(Message::User(UserMessage::new("m1", "What is the weather in Kyōto?")));
//! let mut run = agent.run(input).await?;
//! while let Some(event) = run.next().await {
//!     for finding in event?.followed.findings {
//!         eprintln!("{}: {}", finding.pointer, finding.message);
//!     }
//! }
//! match run.ending() {
//!     Ending::Finished => println!("{}", run.messages()),
//!     Ending::Interrupted => println!("it waits for somebody"),
//!     other => println!("{other:?}"),
//! }
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::time::Duration;

use banister_events::agui::encoding::{MEDIA_TYPE_PROTOBUF, MEDIA_TYPE_SSE, of_response};
use banister_events::agui::follow::Follower;
use banister_events::agui::reduce::Reducer;
use banister_events::text::{one_line, shorten};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use serde_json::{Map, Value};

use crate::client::LONGEST_MESSAGE;
use crate::endpoint::{Address, Endpoint};
use crate::error::{Error, Result};
use crate::transport::{HttpClient, HttpError, words_of};

mod outgoing;
mod run;
mod thread;

pub use banister_events::agui::event::Interrupt;
pub use banister_events::agui::follow::{Ending, Followed};
pub use banister_events::agui::input::{Context, Resume, RunInput, Tool};
pub use banister_events::agui::message::{Message, UserMessage};
pub use run::{Event, LARGEST_EVENT, Run};
pub use thread::{Thread, Turn};

/// An agent that can be asked for runs.
#[derive(Clone)]
pub struct Agent {
    endpoint: Endpoint,
    path: String,
    headers: HeaderMap,
    binary: bool,
    http: HttpClient,
    idle: Option<Duration>,
}

impl Agent {
    /// The agent at `http://host:port/path`, at `https://host/path`, or at the root of `unix:/socket`.
    pub fn new(url: &str) -> Result<Self> {
        let invalid = || Error::Address { given: url.escape_debug().to_string() };
        if url.starts_with("unix:") {
            return Self::at(Endpoint::parse(url).map_err(|_| invalid())?, "/");
        }
        let address: Address = url.parse().map_err(|_| invalid())?;
        Self::at(address.endpoint().clone(), address.path())
    }

    /// The agent behind a path of an endpoint: one of a gateway's sessions, for example.
    pub fn at(endpoint: Endpoint, path: &str) -> Result<Self> {
        if !path.starts_with('/') || path.parse::<Uri>().is_err() {
            return Err(Error::Address { given: path.escape_debug().to_string() });
        }
        Ok(Self {
            endpoint,
            path: path.to_owned(),
            headers: HeaderMap::new(),
            binary: false,
            http: HttpClient::new(),
            idle: None,
        })
    }

    /// Sends a header along with every request. What the protocol says about a request is not up for change.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self> {
        let problem = "a header has forbidden characters";
        let wrong = || Error::Protocol { problem };
        let name = HeaderName::try_from(name).map_err(|_| wrong())?;
        let mut value = HeaderValue::try_from(value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(self)
    }

    /// Waits this long for an answer to begin, 30 seconds if not said otherwise.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { http: self.http.with_timeout(timeout), ..self }
    }

    /// Trusts the certificates in a PEM text, and no others, where the agent speaks TLS.
    pub fn with_authorities(self, pem: &[u8]) -> Result<Self> {
        Ok(Self { http: self.http.with_authorities(pem)?, ..self })
    }

    /// Waits this long for anything more to come, comments included; for ever if not said otherwise.
    #[must_use]
    pub fn with_idle_timeout(self, idle: Duration) -> Self {
        Self { idle: Some(idle), ..self }
    }

    /// Asks for the binary form. An agent that does not have it answers with the other one, which is read as well.
    #[must_use]
    pub fn binary(self) -> Self {
        Self { binary: true, ..self }
    }

    /// Asks for a run, and waits until the answer begins. Activities are not sent, and neither is what the protocol
    /// does not know; what is malformed is an error.
    pub async fn run(&self, input: RunInput) -> Result<Run> {
        let request = self.request(outgoing::body(&input)?)?;
        let sent = self.http.send(&self.endpoint, request).await;
        let mut response = sent.map_err(|error| match error {
            HttpError::Unreachable(source) => {
                Error::NoAgent { endpoint: self.endpoint.clone(), source }
            }
            HttpError::TimedOut(time) => Error::Silent(time),
            other => other.into(),
        })?;
        let status = response.status;
        let empty = [StatusCode::NO_CONTENT, StatusCode::RESET_CONTENT].contains(&status);
        if !status.is_success() || empty {
            let message = shorten(&response.words().await, LONGEST_MESSAGE).into_owned();
            return Err(Error::Refused { status: status.as_u16(), message });
        }
        let kind = response.header(&CONTENT_TYPE);
        let Some(encoding) = of_response(kind) else {
            let content_type = kind.map(one_line);
            let words = words_of(&response.body.beginning().await).unwrap_or_default();
            let words = shorten(&words, LONGEST_MESSAGE).into_owned();
            return Err(Error::NotEvents { content_type, words });
        };
        let asked = input.run_id.clone();
        let follower = Follower::new(before(input)?);
        Ok(Run::new(encoding, (asked, follower), response.body, self.idle))
    }

    fn request(&self, body: Bytes) -> Result<Request<Bytes>> {
        // The binary form is what answers whoever admits it at all: it is named only where it is wanted.
        let accept = if self.binary {
            HeaderValue::try_from(format!("{MEDIA_TYPE_PROTOBUF}, {MEDIA_TYPE_SSE};q=0.5"))
        } else {
            Ok(HeaderValue::from_static(MEDIA_TYPE_SSE))
        };
        let problem = "a header has forbidden characters";
        let wrong = || Error::Protocol { problem };
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.path.parse().map_err(|_| wrong())?;
        request.headers_mut().extend(self.headers.clone());
        request.headers_mut().remove(HOST);
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        request.headers_mut().insert(ACCEPT, accept.map_err(|_| wrong())?);
        Ok(request)
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { endpoint, path, .. } = self;
        // Headers carry keys.
        f.debug_struct("Agent")
            .field("endpoint", endpoint)
            .field("path", path)
            .finish_non_exhaustive()
    }
}

/// What there is before a run: what its input says.
fn before(input: RunInput) -> Result<Reducer> {
    let messages = input
        .messages
        .iter()
        .map(serde_json::to_value)
        .collect::<Result<_, serde_json::Error>>()?;
    let state = input.state.filter(|state| !state.is_null());
    Ok(Reducer::with(messages, state.unwrap_or_else(|| Value::Object(Map::new()))))
}
