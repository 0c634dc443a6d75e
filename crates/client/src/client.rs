//! Requests and their responses.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use banister_events::text;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::endpoint::Endpoint;
use crate::error::{Error, Result};
use crate::stream::EventStream;

const LARGEST_BODY: usize = 64 * 1024 * 1024;
/// Of a refusal only a line is shown.
const LARGEST_REFUSAL: usize = 64 * 1024;
const LONGEST_MESSAGE: usize = 300;
/// Says `exhausted` where a stream could not go on from where it was told to.
const REPLAY: &str = "banister-replay";

/// A gateway and the key to it.
#[derive(Clone)]
pub struct Client {
    endpoint: Endpoint,
    key: String,
    timeout: Duration,
}

impl Client {
    /// A client that has not connected yet.
    pub fn new(endpoint: Endpoint, key: impl Into<String>) -> Self {
        Self { endpoint, key: key.into(), timeout: Duration::from_secs(30) }
    }

    /// Waits this long for a response, 30 seconds if not said otherwise. Doors that wait for a person need more.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
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
    pub(crate) async fn answer_to(&self, request: Request<Full<Bytes>>) -> Result<Value> {
        self.in_time(async {
            let (response, _connection) = self.send(request).await?;
            let body = read(response.into_body(), LARGEST_BODY).await?;
            if body.is_empty() { Ok(Value::Null) } else { Ok(serde_json::from_slice(&body)?) }
        })
        .await
    }

    async fn open(&self, request: Request<Full<Bytes>>) -> Result<EventStream> {
        let (response, connection) = self.in_time(self.send(request)).await?;
        let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        if !kind.is_some_and(|kind| kind.starts_with(b"text/event-stream")) {
            return Err(Error::Protocol { problem: "the gateway sent no event stream" });
        }
        let replay = response.headers().get(REPLAY).map(HeaderValue::as_bytes);
        let exhausted = replay == Some(b"exhausted".as_slice());
        Ok(EventStream::new(response.into_body(), exhausted, connection))
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        headers: &[(HeaderName, &str)],
    ) -> Result<Request<Full<Bytes>>> {
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
    ) -> Result<Request<Full<Bytes>>> {
        if !path.starts_with('/') {
            return Err(Error::Protocol { problem: "a path begins with a slash" });
        }
        let mut key =
            HeaderValue::try_from(format!("Bearer {}", self.key)).map_err(|_| Error::Key)?;
        key.set_sensitive(true);
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.endpoint.host())
            .header(AUTHORIZATION, key);
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        let problem = "a header or path has forbidden characters";
        request.body(Full::new(body)).map_err(|_| Error::Protocol { problem })
    }

    async fn in_time<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let late = |_| Error::TimedOut(self.timeout);
        tokio::time::timeout(self.timeout, work).await.map_err(late)?
    }

    /// Sends a request over a connection of its own; anything but success is an error.
    async fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<(Response<Incoming>, Connection)> {
        let unreachable = |source| Error::NoGateway { endpoint: self.endpoint.clone(), source };
        let (response, connection) = send(&self.endpoint, request, unreachable).await?;
        if response.status().is_success() {
            return Ok((response, connection));
        }
        Err(refusal(response).await)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// The task that moves the bytes of one connection. It ends with its owner.
pub(crate) type Connection = JoinSet<()>;

/// Sends a request over a connection of its own, and waits for the head of the response.
pub(crate) async fn send(
    endpoint: &Endpoint,
    request: Request<Full<Bytes>>,
    unreachable: impl FnOnce(std::io::Error) -> Error,
) -> Result<(Response<Incoming>, Connection)> {
    match endpoint {
        Endpoint::Http(authority) => match TcpStream::connect(authority.as_str()).await {
            Err(error) => Err(unreachable(error)),
            Ok(stream) => {
                // Small requests should leave at once; where that cannot be set, they leave later.
                stream.set_nodelay(true).ok();
                exchange(stream, request).await
            }
        },
        #[cfg(unix)]
        Endpoint::Unix(path) => match tokio::net::UnixStream::connect(path).await {
            Err(error) => Err(unreachable(error)),
            Ok(stream) => exchange(stream, request).await,
        },
        #[cfg(not(unix))]
        Endpoint::Unix(_) => Err(unreachable(std::io::ErrorKind::Unsupported.into())),
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<(Response<Incoming>, Connection)> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let mut driver = JoinSet::new();
    driver.spawn(async move {
        // What breaks the connection is told to whoever reads the response.
        connection.await.ok();
    });
    Ok((sender.send_request(request).await?, driver))
}

async fn read(body: Incoming, limit: usize) -> Result<Bytes> {
    match Limited::new(body, limit).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) => Err(match error.downcast::<hyper::Error>() {
            Ok(error) => Error::Http(*error),
            Err(_) => Error::TooLarge { limit },
        }),
    }
}

async fn refusal(response: Response<Incoming>) -> Error {
    let status = response.status();
    let message = words(response).await;
    match status {
        StatusCode::UNAUTHORIZED => Error::Unauthorized { message },
        StatusCode::FORBIDDEN => Error::Forbidden { message },
        StatusCode::NOT_FOUND => Error::NotFound { message },
        _ => Error::Status { status: status.as_u16(), message },
    }
}

/// What a response that brings nothing else says to a person.
pub(crate) async fn words(response: Response<Incoming>) -> String {
    let status = response.status();
    let body = read(response.into_body(), LARGEST_REFUSAL).await.unwrap_or_default();
    message(&body, status)
}

/// One line for a person: what the body says, or else what the status means.
fn message(body: &[u8], status: StatusCode) -> String {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    let said =
        ["message", "reason_message", "detail", "error", "title"].into_iter().find_map(|name| {
            let nested = value.get("error").and_then(|error| error.get(name));
            nested.or_else(|| value.get(name))?.as_str()
        });
    let said = said.map_or_else(|| String::from_utf8_lossy(body), Cow::Borrowed);
    let line = said.lines().next().unwrap_or_default().trim();
    if line.is_empty() {
        return status.canonical_reason().unwrap_or("no reason given").to_lowercase();
    }
    text::shorten(&text::visible(line), LONGEST_MESSAGE).into_owned()
}
