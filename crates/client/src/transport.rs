//! One request over a connection of its own: HTTP/1.1 on a Unix socket, on TCP, or in TLS.
//!
//! Everything in Banister that calls out over HTTP does so here; the hook, which has no dependencies, is the exception.
//! The head of a response comes within the timeout or is an error. A body is read as it arrives, or up to a limit. A
//! redirect is a response like any other: nothing is followed, and nothing is tried twice. In TLS not a byte of the
//! request leaves before the server's certificate has been verified for the host of the address.

use std::error::Error as StdError;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::HOST;
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::endpoint::Endpoint;

mod first_byte;
mod tls;
mod words;

use first_byte::FirstByte;
use tls::Authorities;
pub use words::{page_words, words_of};

/// How long to wait for the head of a response if not said otherwise.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How much is read of a body that only a person will look at, and for how long.
const BEGINNING_BYTES: usize = 64 * 1024;
const BEGINNING_TIME: Duration = Duration::from_secs(2);
/// What a TLS server says to somebody who does not speak TLS begins with this byte: a record with an alert.
const TLS_ALERT: u8 = 21;

/// Why a request brought no response, or not all of it. The text is whole: it names the cause, and a remedy if there is
/// one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// Nobody takes connections there.
    #[error("cannot connect: {0}")]
    Unreachable(std::io::Error),
    /// No head of a response came in time.
    #[error("no answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// The server cannot prove that it is who it should be. Nothing was sent.
    #[error("the certificate of {host} {problem}, so nothing was sent; {remedy}")]
    Certificate {
        /// The host of the address.
        host: String,
        /// What is wrong, as the end of a sentence about the certificate.
        problem: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// The address says TLS, and the server speaks something else. Nothing was sent.
    #[error(
        "{host} does not speak TLS, so nothing was sent; should the address begin with http://?"
    )]
    NotTls {
        /// The host of the address.
        host: String,
    },
    /// The address says that there is no TLS, and the server speaks nothing else.
    #[error("{host} speaks TLS; write https:// instead of http://")]
    OnlyTls {
        /// The host of the address.
        host: String,
    },
    /// Client and server could not agree on how to speak TLS. Nothing was sent.
    #[error("no TLS with {host}, so nothing was sent: {problem}")]
    Handshake {
        /// The host of the address.
        host: String,
        /// What went wrong.
        problem: String,
    },
    /// There are no certificates of authorities to verify a server with. Nothing was sent.
    #[error("no server can be verified: {0}")]
    NoAuthorities(String),
    /// The server took the request and gave no HTTP response.
    #[error("no HTTP answer: {0}")]
    NoAnswer(String),
    /// The connection broke inside a body.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// The body is larger than is read.
    #[error("more than {limit} bytes came at once")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
}

/// Sends requests. Cheap to clone.
#[derive(Debug, Clone)]
pub struct HttpClient {
    authorities: Authorities,
    timeout: Duration,
}

impl Default for HttpClient {
    fn default() -> Self {
        Self::new()
    }
}

impl HttpClient {
    /// A client that trusts the authorities of the platform: those of `SSL_CERT_FILE` and `SSL_CERT_DIR` where these are
    /// set. They are read with the first `https` request of the process.
    pub fn new() -> Self {
        Self { authorities: Authorities::Platform, timeout: TIMEOUT }
    }

    /// Waits this long for the head of a response, 30 seconds if not said otherwise.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Trusts the certificates in a PEM text, and no others.
    pub fn with_authorities(self, pem: &[u8]) -> Result<Self, HttpError> {
        Ok(Self { authorities: Authorities::from_pem(pem)?, ..self })
    }

    /// Sends a request, whose URI is a path, and waits for the head of the response. A `Host` header is added unless there
    /// is one.
    pub async fn send(
        &self,
        endpoint: &Endpoint,
        mut request: Request<Bytes>,
    ) -> Result<HttpResponse, HttpError> {
        // An endpoint is made of a path or of an authority, which is always a header value.
        if let Ok(host) = HeaderValue::try_from(endpoint.host()) {
            request.headers_mut().entry(HOST).or_insert(host);
        }
        let request = request.map(Full::new);
        match timeout(self.timeout, self.exchange(endpoint, request)).await {
            Ok(answered) => answered,
            Err(_) => Err(HttpError::TimedOut(self.timeout)),
        }
    }

    async fn exchange(
        &self,
        endpoint: &Endpoint,
        request: Request<Full<Bytes>>,
    ) -> Result<HttpResponse, HttpError> {
        match endpoint {
            Endpoint::Http(authority) => {
                let first = Arc::new(OnceLock::new());
                let stream = FirstByte::new(connect(authority).await?, Arc::clone(&first));
                let answered = respond(stream, request).await;
                match answered {
                    Err(HttpError::NoAnswer(_)) if first.get() == Some(&TLS_ALERT) => {
                        Err(HttpError::OnlyTls { host: authority.clone() })
                    }
                    answered => answered,
                }
            }
            Endpoint::Https(authority) => {
                let config = self.authorities.config().await?;
                let stream = connect(authority).await?;
                respond(tls::wrap(stream, authority, config).await?, request).await
            }
            #[cfg(unix)]
            Endpoint::Unix(path) => {
                let stream = tokio::net::UnixStream::connect(path).await;
                respond(stream.map_err(HttpError::Unreachable)?, request).await
            }
            #[cfg(not(unix))]
            Endpoint::Unix(_) => {
                Err(HttpError::Unreachable(std::io::ErrorKind::Unsupported.into()))
            }
        }
    }
}

async fn connect(authority: &str) -> Result<TcpStream, HttpError> {
    let stream = TcpStream::connect(authority).await.map_err(HttpError::Unreachable)?;
    // Small requests should leave at once; where that cannot be set, they leave later.
    stream.set_nodelay(true).ok();
    Ok(stream)
}

async fn respond(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<HttpResponse, HttpError> {
    let no_answer = |error: hyper::Error| HttpError::NoAnswer(reasons(&error));
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(no_answer)?;
    let mut driver = JoinSet::new();
    driver.spawn(async move {
        // Whoever reads the response learns what broke the connection.
        connection.await.ok();
    });
    let (head, incoming) = sender.send_request(request).await.map_err(no_answer)?.into_parts();
    let body = HttpBody { incoming, _connection: driver };
    Ok(HttpResponse { status: head.status, headers: head.headers, body })
}

/// An error with its causes: the outermost alone says little.
fn reasons(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// The head of a response, and its body to be read.
#[derive(Debug)]
pub struct HttpResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: HttpBody,
}

impl HttpResponse {
    /// A header as text; `None` if there is none, or it is no text.
    pub fn header(&self, name: &http::HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Whether it calls itself a web page.
    pub fn is_page(&self) -> bool {
        let kind = self.header(&http::header::CONTENT_TYPE).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        ["text/html", "application/xhtml+xml"].iter().any(|page| kind.eq_ignore_ascii_case(page))
    }

    /// What the body says to a person, on one line; else what the status means. Not shortened, and not redacted.
    pub async fn words(mut self) -> String {
        words_of(&self.body.beginning().await).unwrap_or_else(|| {
            self.status.canonical_reason().unwrap_or("no reason given").to_lowercase()
        })
    }
}

/// A body as it arrives. Dropping it closes the connection.
#[derive(Debug)]
pub struct HttpBody {
    incoming: Incoming,
    /// The task that moves the bytes. It ends with its owner.
    _connection: JoinSet<()>,
}

impl HttpBody {
    /// The next bytes; `None` when the body is whole. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<Bytes, HttpError>> {
        loop {
            match self.incoming.frame().await? {
                Ok(frame) => {
                    // What is no data is a trailer, which nobody here reads.
                    if let Ok(data) = frame.into_data() {
                        return Some(Ok(data));
                    }
                }
                Err(error) => return Some(Err(HttpError::Broken(reasons(&error)))),
            }
        }
    }

    /// The whole body, if it is not larger than the limit.
    pub async fn collect(self, limit: usize) -> Result<Bytes, HttpError> {
        match Limited::new(self.incoming, limit).collect().await {
            Ok(body) => Ok(body.to_bytes()),
            Err(error) => Err(match error.downcast::<hyper::Error>() {
                Ok(error) => HttpError::Broken(reasons(&error)),
                Err(_) => HttpError::TooLarge { limit },
            }),
        }
    }

    /// As much of the body as it takes to tell a person what it is: neither its length nor its pace is trusted.
    pub async fn beginning(&mut self) -> Bytes {
        let mut bytes = BytesMut::new();
        let reading = async {
            while bytes.len() < BEGINNING_BYTES {
                let Some(Ok(piece)) = self.next().await else { break };
                bytes.extend_from_slice(&piece);
            }
        };
        // Whether it came to an end does not matter.
        timeout(BEGINNING_TIME, reading).await.ok();
        bytes.truncate(BEGINNING_BYTES);
        bytes.freeze()
    }
}
