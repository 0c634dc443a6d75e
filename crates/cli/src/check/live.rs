//! A live endpoint as something to read from: HTTP without TLS, one answer, streamed.
//!
//! It follows no redirect, and sends the headers it was given to no other host: they may hold a secret. Whatever the
//! other side does, opening ends within the timeout, and so does waiting for the first event; after that a stream may be
//! as quiet as it likes. The answer of an AG-UI agent may not: it ends, and every event of it comes within the timeout.

use std::cell::Cell;
use std::io::{self, Read};
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use banister_events::agui::encoding;
use banister_events::text;
use bytes::{Buf as _, Bytes};
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HOST, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// What is read of an answer that is no stream.
const LARGEST_ANSWER: usize = 1024 * 1024;
/// What is shown of it.
const LONGEST_WORD: usize = 200;
/// How long an answer may stay open after its run has ended.
const LONGEST_CLOSE: Duration = Duration::from_secs(5);

/// How an endpoint is read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
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
pub(crate) struct Answer {
    pub(crate) url: String,
    pub(crate) body: Bytes,
}

/// Why an endpoint cannot be read.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) reason: String,
    /// The message that says so, where the protocol has one.
    pub(crate) answer: Option<Answer>,
}

impl From<String> for Refusal {
    fn from(reason: String) -> Self {
        Self { reason, answer: None }
    }
}

/// What became of a live stream, told between the two who read it.
#[derive(Debug, Default)]
pub(crate) struct Heard {
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
    pub(crate) live: Live,
    /// What came before the stream, where there was a handshake.
    pub(crate) answer: Option<Answer>,
    /// What the answer of an AG-UI agent calls itself.
    pub(crate) content_type: Option<String>,
}

/// A stream as it arrives.
pub(crate) struct Live {
    runtime: Runtime,
    body: Incoming,
    /// What arrived and was not read yet.
    left: Bytes,
    time_up: Option<Pin<Box<tokio::time::Sleep>>>,
    /// How long to wait for an event.
    patience: Option<Duration>,
    /// Whether that holds for all events, not only for the first.
    run: bool,
    /// How many events there were when the last wait began, and when that was.
    waits: (u64, Instant),
    heard: Rc<Heard>,
    interrupt: Pin<Box<dyn Future<Output = io::Result<()>>>>,
    _connection: JoinSet<()>,
}

/// Opens an endpoint; says what is wrong where that cannot be done.
pub(crate) fn open(url: &str, options: &Options, heard: &Rc<Heard>) -> Result<Opened, Refusal> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    let (answer, response, connection) = runtime.block_on(async {
        let late = |_| format!("no answer within {} s (--timeout)", options.timeout.as_secs_f64());
        tokio::time::timeout(options.timeout, answered(url, options)).await.map_err(late)?
    })?;
    let time_up = {
        let _inside = runtime.enter();
        options.time.map(|time| Box::pin(tokio::time::sleep(time)))
    };
    let content_type = header(response.headers(), &CONTENT_TYPE);
    let run = options.run.is_some();
    let interrupt = Box::pin(tokio::signal::ctrl_c());
    let live = Live {
        runtime,
        body: response.into_body(),
        left: Bytes::new(),
        time_up,
        patience: options.patience,
        run,
        waits: (0, Instant::now()),
        heard: Rc::clone(heard),
        interrupt,
        _connection: connection,
    };
    Ok(Opened { live, answer, content_type: run.then_some(content_type) })
}

async fn answered(
    url: &str,
    options: &Options,
) -> Result<(Option<Answer>, Response<Incoming>, JoinSet<()>), Refusal> {
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
    let (response, connection) = send(&target, request).await?;
    let response = good(response).await?;
    let status = response.status();
    if status == StatusCode::NO_CONTENT {
        return Err(format!("the answer is {status}: it has no events").into());
    }
    let kind = header(response.headers(), &CONTENT_TYPE).to_ascii_lowercase();
    if options.run.is_some() && encoding::of_response(Some(&kind)).is_none() {
        let kind = if kind.is_empty() { "without a type" } else { &kind };
        let status = if status == StatusCode::OK { String::new() } else { format!("{status}, ") };
        let message =
            format!("the answer is {status}{kind}, where an agent sends text/event-stream");
        return Err(message.into());
    }
    for page in ["text/html", "application/xhtml+xml"] {
        if kind.starts_with(page) {
            return Err(format!("the answer is a web page ({page}), no stream of events").into());
        }
    }
    Ok((answer, response, connection))
}

/// Reads an address: `http://host:port/path`.
fn address(url: &str) -> Result<Uri, String> {
    let uri: Uri = url.parse().map_err(|error| format!("not an address: {error}"))?;
    let authority = uri.authority().ok_or("not an address: it names no host")?;
    if authority.as_str().contains('@') {
        return Err("an address holds no credentials; send them with --header @FILE".to_owned());
    }
    Ok(uri)
}

fn request(
    method: Method,
    target: &Uri,
    options: &Options,
    accept: &'static str,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, String> {
    let path = target.path_and_query().map_or("/", |path| path.as_str());
    let host = target.authority().map_or("", |authority| authority.as_str());
    let mut request = Request::builder().method(method).uri(path).body(Full::new(body));
    if let Ok(request) = &mut request {
        let headers = request.headers_mut();
        let host = HeaderValue::from_str(host).map_err(|error| format!("not a host: {error}"))?;
        headers.insert(HOST, host);
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
    request: Request<Full<Bytes>>,
) -> Result<(Response<Incoming>, JoinSet<()>), String> {
    let host = target.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let port = target.port_u16().unwrap_or(80);
    let stream = TcpStream::connect((host, port))
        .await
        .map_err(|error| format!("cannot connect: {error}"))?;
    let broken = |error| format!("no HTTP answer: {}", reasons(&error));
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let mut driver = JoinSet::new();
    driver.spawn(async move {
        // What breaks the connection is told to whoever reads the answer.
        connection.await.ok();
    });
    Ok((sender.send_request(request).await.map_err(broken)?, driver))
}

/// An error with its causes: the outermost alone says little.
fn reasons(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// The answer, if it is a success; otherwise what it says.
async fn good(response: Response<Incoming>) -> Result<Response<Incoming>, String> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let location = header(response.headers(), &LOCATION);
    if status.is_redirection() && !location.is_empty() {
        return Err(format!("the answer is {status}, to {location}; check that address instead"));
    }
    let refused = refused(status, &read(response).await.unwrap_or_default());
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

async fn read(response: Response<Incoming>) -> Result<Bytes, String> {
    let body = Limited::new(response.into_body(), LARGEST_ANSWER).collect().await;
    Ok(body.map_err(|error| format!("the answer cannot be read: {error}"))?.to_bytes())
}

fn header(headers: &HeaderMap, name: &HeaderName) -> String {
    let value = headers.get(name).map(HeaderValue::as_bytes).unwrap_or_default();
    text::one_line(&String::from_utf8_lossy(value))
}

/// What a refusal says, in a line.
fn word(body: &[u8]) -> String {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    let said = ["reason_message", "message", "detail", "error", "title", "reason_code"]
        .into_iter()
        .find_map(|name| value.get(name)?.as_str().filter(|said| !said.trim().is_empty()));
    let whole = match &value {
        Value::Null => String::from_utf8_lossy(body).into_owned(),
        value => value.to_string(),
    };
    let line = said.unwrap_or(&whole).trim().lines().next().unwrap_or_default();
    if line.starts_with('<') {
        return "a web page".to_owned();
    }
    text::shorten(&text::one_line(line), LONGEST_WORD).into_owned()
}

/// Opens an AAEP subscription with the default terms; gives the address of its events.
async fn subscribe(target: &Uri, options: &Options) -> Result<(Uri, Answer), Refusal> {
    let base = target.path().strip_suffix("/events").unwrap_or_default();
    let authority = target.authority().map_or("", |authority| authority.as_str());
    let url = format!("http://{authority}{base}/subscriptions");
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
    let (response, _connection) = send(&at, request).await.map_err(in_handshake)?;
    let status = response.status();
    if status.is_redirection() {
        good(response).await.map_err(in_handshake)?;
        return Err(in_handshake(refused(status, &[])).into());
    }
    let location = header(response.headers(), &LOCATION);
    let body = match read(response).await {
        Err(_) if !status.is_success() => Bytes::new(),
        body => body.map_err(in_handshake)?,
    };
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    if answer.get("type").is_some_and(|kind| kind == "subscription.rejected") {
        let reason = in_handshake(format!("the subscription was refused: {}", word(&body)));
        return Err(Refusal { reason, answer: Some(Answer { url, body }) });
    }
    if !status.is_success() {
        return Err(in_handshake(refused(status, &body)).into());
    }
    let events = events_of(target, &location, &body).map_err(in_handshake)?;
    Ok((events, Answer { url, body }))
}

/// Where a subscription's events are: where the answer says, or under the id that it gives.
fn events_of(target: &Uri, location: &str, body: &[u8]) -> Result<Uri, String> {
    let authority = target.authority().map_or("", |authority| authority.as_str());
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    let url = if location.starts_with("//") {
        format!("http:{location}")
    } else if location.starts_with('/') {
        format!("http://{authority}{location}")
    } else if !location.is_empty() {
        location.to_owned()
    } else {
        let id = answer.get("subscription_id").and_then(Value::as_str).unwrap_or_default();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if id.is_empty() || !id.bytes().all(plain) {
            return Err("the answer has neither a Location nor a subscription_id".to_owned());
        }
        format!("http://{authority}{}?subscription_id={id}", target.path())
    };
    let uri: Uri = url.parse().map_err(|_| "the answer's Location is no address".to_owned())?;
    if uri.authority() != target.authority() || uri.scheme_str() != Some("http") {
        return Err(format!("the answer's Location is another host: {url}"));
    }
    Ok(uri)
}

enum Event {
    Frame(Option<Result<hyper::body::Frame<Bytes>, hyper::Error>>),
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

impl Live {
    /// What is waited for, how long, and until when.
    fn wait(&mut self) -> Option<(Wait, Duration, Instant)> {
        let events = self.heard.events.get();
        if events > self.waits.0 {
            self.waits = (events, Instant::now());
        }
        let patience = self.patience?;
        let (wait, time) = match events {
            0 => (Wait::First, patience),
            _ if !self.run => return None,
            _ if self.heard.ended.get() => (Wait::Close, patience.min(LONGEST_CLOSE)),
            _ => (Wait::Next, patience),
        };
        Some((wait, time, self.waits.1.checked_add(time)?))
    }
}

impl Read for Live {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Whoever told us to stop has said so once, and is not asked again.
        if self.heard.stopped.get() {
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
            let event = runtime.block_on(async {
                tokio::select! {
                    biased;
                    _ = interrupt => Event::Stop,
                    () = time_up => Event::Stop,
                    () = late => Event::Late,
                    frame = body.frame() => Event::Frame(frame),
                }
            });
            match event {
                Event::Stop => {
                    self.heard.stopped.set(true);
                    return Ok(0);
                }
                Event::Late => {
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
                            self.heard.stopped.set(true);
                            self.heard.lingered.set(Some(time));
                            return Ok(0);
                        }
                    };
                    return Err(io::Error::new(io::ErrorKind::TimedOut, late));
                }
                Event::Frame(None) => return Ok(0),
                Event::Frame(Some(Ok(frame))) => self.left = frame.into_data().unwrap_or_default(),
                Event::Frame(Some(Err(error))) => {
                    let kind = io::ErrorKind::ConnectionAborted;
                    return Err(io::Error::new(kind, reasons(&error)));
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
        let tricky = br#"{"subscription_id":"sub_1 HTTP/1.1"}"#;
        assert!(events_of(&target(), "", tricky).is_err());
    }

    #[test]
    fn a_refusal_is_told_in_one_visible_line() {
        assert_eq!(word(b"{\"reason_message\":\"no\\u001b[31m room\"}"), "no⟨U+001B⟩[31m room");
        let coded =
            br#"{"type":"subscription.rejected","reason_code":"full","reason_message":" "}"#;
        assert_eq!(word(coded), "full");
        assert_eq!(word(b"{\n\"reason_message\": \"\"}"), "{\"reason_message\":\"\"}");
        assert_eq!(word(b"<html>"), "a web page");
        assert_eq!(word(b" plain\nwords"), "plain");
    }
}
