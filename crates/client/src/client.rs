//! Requests and their responses.

use std::fmt;
use std::time::Duration;

use banister_events::text;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Method, Request, StatusCode};
use serde_json::Value;

use crate::endpoint::Endpoint;
use crate::error::{Error, Result};
use crate::stream::EventStream;
use crate::transport::{HttpClient, HttpError, HttpResponse, page_words};

const LARGEST_BODY: usize = 64 * 1024 * 1024;
/// Of a refusal only a line is shown, in characters.
pub(crate) const LONGEST_MESSAGE: usize = 300;
/// Says `exhausted` where a stream could not go on from where it was told to.
const REPLAY: HeaderName = HeaderName::from_static("banister-replay");

/// A gateway and the key to it.
#[derive(Clone)]
pub struct Client {
    endpoint: Endpoint,
    key: String,
    timeout: Duration,
    http: HttpClient,
}

impl Client {
    /// A client that has not connected yet.
    pub fn new(endpoint: Endpoint, key: impl Into<String>) -> Self {
        let timeout = Duration::from_secs(30);
        Self { endpoint, key: key.into(), timeout, http: HttpClient::new().with_timeout(timeout) }
    }

    /// Waits this long for a response, 30 seconds if not said otherwise. Doors that wait for a person need more.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, http: self.http.with_timeout(timeout), ..self }
    }

    /// Trusts the certificates in a PEM text, and no others, where the endpoint speaks TLS.
    pub fn with_authorities(self, pem: &[u8]) -> Result<Self> {
        Ok(Self { http: self.http.with_authorities(pem)?, ..self })
    }

    /// The JSON at a path.
    pub async fn get(&self, path: &str) -> Result<Value> {
        self.json(Method::GET, path, None).await
    }

    /// Sends JSON to a path; gives the JSON that came back, `null` if nothing did.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.json(Method::POST, path, Some(body)).await
    }

    /// Removes what is at a path; gives the JSON that came back, `null` if nothing did.
    pub async fn delete(&self, path: &str) -> Result<Value> {
        self.json(Method::DELETE, path, None).await
    }

    /// Opens a stream of server-sent events. `accept` is the wanted media type, usually `text/event-stream`.
    pub async fn stream(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        accept: &str,
    ) -> Result<EventStream> {
        self.open(self.request(method, path, body, &[(ACCEPT, accept)])?).await
    }

    /// Opens a stream after the event with the given id, as far as the gateway still has what followed.
    pub async fn resume(
        &self,
        path: &str,
        accept: &str,
        last_event_id: &str,
    ) -> Result<EventStream> {
        let last = (HeaderName::from_static("last-event-id"), last_event_id);
        self.open(self.request(Method::GET, path, None, &[(ACCEPT, accept), last])?).await
    }

    pub(crate) async fn json(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value> {
        self.answer_to(self.request(method, path, body, &[(ACCEPT, "application/json")])?).await
    }

    /// The JSON that a request brings, `null` if it brings nothing.
    pub(crate) async fn answer_to(&self, request: Request<Bytes>) -> Result<Value> {
        let read = async {
            let response = self.send(request).await?;
            let body = response.body.collect(LARGEST_BODY).await?;
            if body.is_empty() { Ok(Value::Null) } else { Ok(serde_json::from_slice(&body)?) }
        };
        let late = |_| Error::TimedOut(self.timeout);
        tokio::time::timeout(self.timeout, read).await.map_err(late)?
    }

    async fn open(&self, request: Request<Bytes>) -> Result<EventStream> {
        let response = self.send(request).await?;
        let kind = response.header(&CONTENT_TYPE).unwrap_or_default();
        if !kind.starts_with("text/event-stream") {
            return Err(Error::Protocol { problem: "the gateway sent no event stream" });
        }
        let exhausted = response.header(&REPLAY) == Some("exhausted");
        Ok(EventStream::new(response.body, exhausted))
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        headers: &[(HeaderName, &str)],
    ) -> Result<Request<Bytes>> {
        let Some(body) = body else {
            return self.request_of(method, path, Bytes::new(), headers);
        };
        let mut headers = headers.to_vec();
        headers.push((CONTENT_TYPE, "application/json"));
        self.request_of(method, path, Bytes::from(serde_json::to_vec(body)?), &headers)
    }

    /// A request with a body as it stands.
    pub(crate) fn request_of(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        headers: &[(HeaderName, &str)],
    ) -> Result<Request<Bytes>> {
        if !path.starts_with('/') {
            return Err(Error::Protocol { problem: "a path begins with a slash" });
        }
        let mut key =
            HeaderValue::try_from(format!("Bearer {}", self.key)).map_err(|_| Error::Key)?;
        key.set_sensitive(true);
        let mut request = Request::builder().method(method).uri(path).header(AUTHORIZATION, key);
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        let problem = "a header or path has forbidden characters";
        request.body(body).map_err(|_| Error::Protocol { problem })
    }

    /// Sends a request; anything but success is an error.
    async fn send(&self, request: Request<Bytes>) -> Result<HttpResponse> {
        let sent = self.http.send(&self.endpoint, request).await;
        let mut response = sent.map_err(|error| match error {
            HttpError::Unreachable(source) => {
                Error::NoGateway { endpoint: self.endpoint.clone(), source }
            }
            other => other.into(),
        })?;
        if !response.status.is_success() {
            return Err(refusal(response).await);
        }
        if response.is_page() {
            return Err(Error::WebPage { words: page_words(&response.body.beginning().await) });
        }
        Ok(response)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

async fn refusal(response: HttpResponse) -> Error {
    let status = response.status;
    let message = text::shorten(&response.words().await, LONGEST_MESSAGE).into_owned();
    match status {
        StatusCode::UNAUTHORIZED => Error::Unauthorized { message },
        StatusCode::FORBIDDEN => Error::Forbidden { message },
        StatusCode::NOT_FOUND => Error::NotFound { message },
        _ => Error::Status { status: status.as_u16(), message },
    }
}
