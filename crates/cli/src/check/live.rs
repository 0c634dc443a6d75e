//! A live endpoint as something to read from: one response, streamed, over HTTP with or without TLS.
//!
//! It follows no redirect, and sends the headers it was given to no other host: they may hold a secret. Whatever the
//! other side does, opening ends within the timeout, and so does waiting for the first event; after that a stream may be
//! as quiet as it likes. The answer of an AG-UI agent may not: it ends, and every event of it comes within the timeout.

use std::cell::Cell;
use std::io::{self, Read};
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use banister_client::transport::{
    HttpBody, HttpClient, HttpError, HttpResponse, page_words, words_of,
};
use banister_client::{Address, AddressError};
use banister_events::agui::encoding;
use banister_events::text;
use bytes::{Buf as _, Bytes};
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::time::Instant;

/// What is read of an answer that is no stream.
const LARGEST_ANSWER: usize = 1024 * 1024;
/// What is shown of it.
const LONGEST_WORD: usize = 200;
/// How long an answer may stay open after its run has ended.
const LONGEST_CLOSE: Duration = Duration::from_secs(5);

/// How an endpoint is read.
#[derive(Debug, Clone, Default)]
pub(crate) struct LiveOptions {
    pub(crate) headers: HeaderMap,
    /// How long to wait for the head of an answer.
    pub(crate) timeout: Duration,
    /// How long to wait for the first event, and in the answer of an agent for each of them.
    pub(crate) patience: Option<Duration>,
    /// How long to read.
    pub(crate) time: Option<Duration>,
    /// Whether to open an AAEP subscription first.
    pub(crate) subscribe: bool,
    /// The `RunAgentInput` to send, where the endpoint is an AG-UI agent.
    pub(crate) run: Option<Bytes>,
}

/// The answer to a subscription.
#[derive(Debug)]
pub(crate) struct SubscriptionAnswer {
    pub(crate) url: String,
    pub(crate) body: Bytes,
}

/// Why an endpoint cannot be read.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) reason: String,
    /// The message that says so, where the protocol has one.
    pub(crate) answer: Option<SubscriptionAnswer>,
}

impl From<String> for Refusal {
    fn from(reason: String) -> Self {
        Self { reason, answer: None }
    }
}

/// How far a live stream has come: shared by who reads its bytes and who reads its events.
#[derive(Debug, Default)]
pub(crate) struct StreamProgress {
    /// How many events were read.
    pub(crate) events: Cell<u64>,
    /// Whether the run that was asked for has ended.
    pub(crate) ended: Cell<bool>,
    /// Whether it is we who ended the stream.
    pub(crate) stopped: Cell<bool>,
    /// How long the stream stayed open after its run had ended, where we did not wait any longer.
    pub(crate) lingered: Cell<Option<Duration>>,
}

/// An endpoint that answered.
pub(crate) struct Opened {
    pub(crate) stream: LiveStream,
    /// What came before the stream, where there was a handshake.
    pub(crate) answer: Option<SubscriptionAnswer>,
    /// What the answer of an AG-UI agent calls itself.
    pub(crate) content_type: Option<String>,
}

/// A stream as it arrives.
pub(crate) struct LiveStream {
    runtime: Runtime,
    body: HttpBody,
    /// What arrived and was not read yet.
    left: Bytes,
    time_up: Option<Pin<Box<tokio::time::Sleep>>>,
    /// How long to wait for an event.
    patience: Option<Duration>,
    /// Whether that holds for all events, not only for the first.
    run: bool,
    /// How many events there were when the last wait began, and when that was.
    waits: (u64, Instant),
    progress: Rc<StreamProgress>,
    interrupt: Pin<Box<dyn Future<Output = io::Result<()>>>>,
}

/// Opens an endpoint; says what is wrong where that cannot be done.
pub(crate) fn open(
    url: &str,
    options: &LiveOptions,
    progress: &Rc<StreamProgress>,
) -> Result<Opened, Refusal> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    let (answer, response) = runtime.block_on(async {
        let late = |_| late(options.timeout);
        tokio::time::timeout(options.timeout, answered(url, options)).await.map_err(late)?
    })?;
    let time_up = {
        let _inside = runtime.enter();
        options.time.map(|time| Box::pin(tokio::time::sleep(time)))
    };
    let content_type = header(&response.headers, &CONTENT_TYPE);
    let run = options.run.is_some();
    let interrupt = Box::pin(tokio::signal::ctrl_c());
    let stream = LiveStream {
        runtime,
        body: response.body,
        left: Bytes::new(),
        time_up,
        patience: options.patience,
        run,
        waits: (0, Instant::now()),
        progress: Rc::clone(progress),
        interrupt,
    };
    Ok(Opened { stream, answer, content_type: run.then_some(content_type) })
}

async fn answered(
    url: &str,
    options: &LiveOptions,
) -> Result<(Option<SubscriptionAnswer>, HttpResponse), Refusal> {
    let mut target = address(url)?;
    let mut answer = None;
    if options.subscribe {
        let (next, given) = subscribe(&target, options).await?;
        target = next;
        answer = Some(given);
    }
    let method = if options.run.is_some() { Method::POST } else { Method::GET };
    let body = options.run.clone().unwrap_or_default();
    let mut request = request(method, &target, options, "text/event-stream", body)?;
    if options.run.is_some() {
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    let mut response = good(send(&target, options, request).await?).await?;
    let status = response.status;
    if status == StatusCode::NO_CONTENT {
        return Err(format!("the answer is {status}: it has no events").into());
    }
    let kind = header(&response.headers, &CONTENT_TYPE).to_ascii_lowercase();
    if options.run.is_some() && encoding::of_response(Some(&kind)).is_none() {
        let kind = if kind.is_empty() { "without a type" } else { &kind };
        let status = if status == StatusCode::OK { String::new() } else { format!("{status}, ") };
        let shown = beginning(&mut response).await;
        let message =
            format!("the answer is {status}{kind}, where an agent sends text/event-stream{shown}");
        return Err(message.into());
    }
    if response.is_page() {
        let page = kind.split(';').next().unwrap_or_default().trim();
        let shown = beginning(&mut response).await;
        let message = format!("the answer is a web page ({page}), no stream of events{shown}");
        return Err(message.into());
    }
    Ok((answer, response))
}

/// The first words of a web page, as the end of a sentence about it: a person knows the login page of a proxy by them.
async fn beginning(response: &mut HttpResponse) -> String {
    if !response.is_page() {
        return String::new();
    }
    let words = page_words(&response.body.beginning().await);
    if words.is_empty() { words } else { format!("; it begins: {words}") }
}

fn late(timeout: Duration) -> String {
    format!("no answer within {} s (--timeout)", timeout.as_secs_f64())
}

/// Reads an address: `http://host:port/path`, or `https://host/path`.
fn address(url: &str) -> Result<Uri, String> {
    let uri: Uri = url.parse().map_err(|error| format!("not an address: {error}"))?;
    match Address::try_from(&uri) {
        Ok(_) => Ok(uri),
        Err(AddressError::User) => {
            Err("an address holds no credentials; send them with --header @FILE".to_owned())
        }
        Err(error) => Err(format!("not an address: {error}")),
    }
}

fn request(
    method: Method,
    target: &Uri,
    options: &LiveOptions,
    accept: &'static str,
    body: Bytes,
) -> Result<Request<Bytes>, String> {
    let path = target.path_and_query().map_or("/", |path| path.as_str());
    let mut request = Request::builder().method(method).uri(path).body(body);
    if let Ok(request) = &mut request {
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        for (name, value) in &options.headers {
            headers.insert(name, value.clone());
        }
    }
    request.map_err(|error| format!("not a request: {error}"))
}

async fn send(
    target: &Uri,
    options: &LiveOptions,
    request: Request<Bytes>,
) -> Result<HttpResponse, String> {
    let address = Address::try_from(target).map_err(|error| format!("not an address: {error}"))?;
    let client = HttpClient::new().with_timeout(options.timeout);
    client.send(address.endpoint(), request).await.map_err(|error| match error {
        HttpError::TimedOut(time) => late(time),
        other => other.to_string(),
    })
}

/// The answer, if it is a success; otherwise what it says.
async fn good(mut response: HttpResponse) -> Result<HttpResponse, String> {
    let status = response.status;
    if status.is_success() {
        return Ok(response);
    }
    let location = header(&response.headers, &LOCATION);
    if status.is_redirection() && !location.is_empty() {
        return Err(format!("the answer is {status}, to {location}; check that address instead"));
    }
    let refused = refused(status, &response.body.beginning().await);
    if status == StatusCode::METHOD_NOT_ALLOWED {
        return Err(format!("{refused}; an AG-UI agent is sent a run with --protocol agui"));
    }
    Err(refused)
}

fn refused(status: StatusCode, body: &[u8]) -> String {
    let said = word(body);
    let colon = if said.is_empty() { "" } else { ": " };
    format!("the answer is {status}{colon}{said}")
}

async fn read(response: HttpResponse) -> Result<Bytes, String> {
    let body = response.body.collect(LARGEST_ANSWER).await;
    body.map_err(|error| format!("the answer cannot be read: {error}"))
}

fn header(headers: &HeaderMap, name: &HeaderName) -> String {
    let value = headers.get(name).map(HeaderValue::as_bytes).unwrap_or_default();
    text::one_line(&String::from_utf8_lossy(value))
}

/// What a refusal says, in a line.
fn word(body: &[u8]) -> String {
    let said = words_of(body).unwrap_or_default();
    text::shorten(&said, LONGEST_WORD).into_owned()
}

/// The scheme of an address, which an answer may not change: headers may hold a secret.
fn scheme(target: &Uri) -> &str {
    target.scheme_str().unwrap_or("http")
}

/// Opens an AAEP subscription with the default terms; gives the address of its events.
async fn subscribe(
    target: &Uri,
    options: &LiveOptions,
) -> Result<(Uri, SubscriptionAnswer), Refusal> {
    let base = target.path().strip_suffix("/events").unwrap_or_default();
    let authority = target.authority().map_or("", |authority| authority.as_str());
    let url = format!("{}://{authority}{base}/subscriptions", scheme(target));
    let at: Uri = url.parse().map_err(|error| format!("not an address: {error}"))?;
    let terms = json!({
        "type": "subscription.request",
        "aaep_version": "1.0.0",
        "subscriber_id": "banister-check",
        "capabilities": {},
    });
    let body = Bytes::from(terms.to_string());
    let mut request = request(Method::POST, &at, options, "application/json", body)?;
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let in_handshake = |error: String| format!("POST {url}: {error}");
    let response = send(&at, options, request).await.map_err(in_handshake)?;
    let status = response.status;
    if status.is_redirection() {
        good(response).await.map_err(in_handshake)?;
        return Err(in_handshake(refused(status, &[])).into());
    }
    let location = header(&response.headers, &LOCATION);
    let body = match read(response).await {
        Err(_) if !status.is_success() => Bytes::new(),
        body => body.map_err(in_handshake)?,
    };
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    if answer.get("type").is_some_and(|kind| kind == "subscription.rejected") {
        let reason = in_handshake(format!("the subscription was refused: {}", word(&body)));
        return Err(Refusal { reason, answer: Some(SubscriptionAnswer { url, body }) });
    }
    if !status.is_success() {
        return Err(in_handshake(refused(status, &body)).into());
    }
    let events = events_of(target, &location, &body).map_err(in_handshake)?;
    Ok((events, SubscriptionAnswer { url, body }))
}

/// Where a subscription's events are: where the answer says, or under the id that it gives.
fn events_of(target: &Uri, location: &str, body: &[u8]) -> Result<Uri, String> {
    let authority = target.authority().map_or("", |authority| authority.as_str());
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    let scheme = scheme(target);
    let url = if location.starts_with("//") {
        format!("{scheme}:{location}")
    } else if location.starts_with('/') {
        format!("{scheme}://{authority}{location}")
    } else if !location.is_empty() {
        location.to_owned()
    } else {
        let id = answer.get("subscription_id").and_then(Value::as_str).unwrap_or_default();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if id.is_empty() || !id.bytes().all(plain) {
            return Err("the answer has neither a Location nor a subscription_id".to_owned());
        }
        format!("{scheme}://{authority}{}?subscription_id={id}", target.path())
    };
    let uri: Uri = url.parse().map_err(|_| "the answer's Location is no address".to_owned())?;
    if uri.authority() != target.authority() || uri.scheme() != target.scheme() {
        return Err(format!("the answer's Location is another host: {url}"));
    }
    Ok(uri)
}

enum Arrival {
    Piece(Option<Result<Bytes, HttpError>>),
    Stop,
    Late,
}

/// What a stream is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    First,
    Next,
    Close,
}

impl LiveStream {
    /// What is waited for, how long, and until when.
    fn wait(&mut self) -> Option<(Wait, Duration, Instant)> {
        let events = self.progress.events.get();
        if events > self.waits.0 {
            self.waits = (events, Instant::now());
        }
        let patience = self.patience?;
        let (wait, time) = match events {
            0 => (Wait::First, patience),
            _ if !self.run => return None,
            _ if self.progress.ended.get() => (Wait::Close, patience.min(LONGEST_CLOSE)),
            _ => (Wait::Next, patience),
        };
        Some((wait, time, self.waits.1.checked_add(time)?))
    }
}

impl Read for LiveStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Whoever told us to stop has said so once, and is not asked again.
        if self.progress.stopped.get() {
            return Ok(0);
        }
        while self.left.is_empty() {
            let wait = self.wait();
            let Self { runtime, body, time_up, interrupt, .. } = self;
            let late = async {
                match wait {
                    Some((_, _, until)) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            let time_up = async {
                match time_up {
                    Some(time_up) => time_up.await,
                    None => std::future::pending().await,
                }
            };
            let arrival = runtime.block_on(async {
                tokio::select! {
                    biased;
                    _ = interrupt => Arrival::Stop,
                    () = time_up => Arrival::Stop,
                    () = late => Arrival::Late,
                    piece = body.next() => Arrival::Piece(piece),
                }
            });
            match arrival {
                Arrival::Stop => {
                    self.progress.stopped.set(true);
                    return Ok(0);
                }
                Arrival::Late => {
                    let (wait, time) = wait.map_or_else(
                        || (Wait::First, Duration::ZERO),
                        |(wait, time, _)| (wait, time),
                    );
                    let seconds = time.as_secs_f64();
                    let late = match wait {
                        Wait::First => format!("no event within {seconds} s (--timeout)"),
                        Wait::Next => format!(
                            "no further event within {seconds} s, and the run has not ended (--timeout)"
                        ),
                        Wait::Close => {
                            self.progress.stopped.set(true);
                            self.progress.lingered.set(Some(time));
                            return Ok(0);
                        }
                    };
                    return Err(io::Error::new(io::ErrorKind::TimedOut, late));
                }
                Arrival::Piece(None) => return Ok(0),
                Arrival::Piece(Some(Ok(piece))) => self.left = piece,
                Arrival::Piece(Some(Err(error))) => {
                    let why = match error {
                        HttpError::Broken(why) => why,
                        other => other.to_string(),
                    };
                    return Err(io::Error::new(io::ErrorKind::ConnectionAborted, why));
                }
            }
        }
        let count = self.left.len().min(buffer.len());
        if let Some(room) = buffer.get_mut(..count) {
            self.left.copy_to_slice(room);
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> Uri {
        "http://127.0.0.1:1/aaep/v1/events".parse().unwrap()
    }

    #[test]
    fn a_subscription_is_followed_where_the_answer_says() {
        let accepted = br#"{"type":"subscription.accepted","subscription_id":"sub_1"}"#;
        for (location, expected) in [
            ("", "http://127.0.0.1:1/aaep/v1/events?subscription_id=sub_1"),
            ("/e?s=2", "http://127.0.0.1:1/e?s=2"),
            ("http://127.0.0.1:1/e", "http://127.0.0.1:1/e"),
        ] {
            let uri = events_of(&target(), location, accepted).unwrap();
            assert_eq!(uri.to_string(), expected);
        }
    }

    #[test]
    fn headers_go_to_no_other_host() {
        for location in ["http://other:1/e", "https://127.0.0.1:1/e", "//other/e", "http://"] {
            assert!(events_of(&target(), location, b"{}").is_err(), "{location}");
        }
        let secure: Uri = "https://h/aaep/v1/events".parse().unwrap();
        assert!(events_of(&secure, "http://h/e", b"{}").is_err());
        assert_eq!(events_of(&secure, "/e", b"{}").unwrap().to_string(), "https://h/e");
        let tricky = br#"{"subscription_id":"sub_1 HTTP/1.1"}"#;
        assert!(events_of(&target(), "", tricky).is_err());
    }
}
