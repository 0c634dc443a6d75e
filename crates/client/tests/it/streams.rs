//! Events as they arrive.

use std::pin::Pin;
use std::task::{Context, Poll};

use banister_client::{Error, SseMessage};
use bytes::Bytes;
use http::{Method, Response};
use http_body_util::BodyExt as _;
use hyper::body::Frame;
use serde_json::json;
use tokio::sync::mpsc;

use crate::server::{Body, Server, reply};

const SSE: &str = "text/event-stream";

/// A body whose pieces come from a channel.
struct Pieces(mpsc::Receiver<Result<Bytes, std::io::Error>>);

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

fn sse(
    body: impl hyper::body::Body<Data = Bytes, Error = std::io::Error> + Send + Sync + 'static,
) -> Response<Body> {
    Response::builder()
        .header("content-type", "text/event-stream; charset=utf-8")
        .body(body.boxed())
        .expect("a response")
}

fn whole(text: impl Into<Bytes>) -> Response<Body> {
    sse(http_body_util::Full::new(text.into()).map_err(|never| match never {}))
}

fn message(id: Option<&str>, data: &str) -> SseMessage {
    SseMessage { id: id.map(str::to_owned), data: data.to_owned(), ..SseMessage::default() }
}

/// Where a message stood does not matter here.
fn without_line(message: SseMessage) -> SseMessage {
    SseMessage { line: 0, ..message }
}

#[tokio::test]
async fn events_arrive_one_by_one_while_the_stream_is_open() {
    let (pieces, body) = mpsc::channel(4);
    let body = std::sync::Mutex::new(Some(body));
    let server =
        Server::unix(move |_| sse(Pieces(body.lock().expect("lock").take().expect("once"))));
    let mut stream =
        server.client().stream(Method::GET, "/aaep/v1/events", None, SSE).await.expect("opened");
    pieces.send(Ok("id: 1\ndata: a\n\nid: 2\nda".into())).await.expect("sent");
    let first = stream.next().await.expect("open").expect("read");
    assert_eq!(without_line(first), message(Some("1"), "a"));
    pieces.send(Ok("ta: b\n\n".into())).await.expect("sent");
    let second = stream.next().await.expect("open").expect("read");
    assert_eq!(without_line(second), message(Some("2"), "b"));
    drop(pieces);
    assert!(stream.next().await.is_none());
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let (pieces, body) = mpsc::channel(1);
    let body = std::sync::Mutex::new(Some(body));
    let server =
        Server::tcp(move |_| sse(Pieces(body.lock().expect("lock").take().expect("once")))).await;
    let stream = server.client().stream(Method::GET, "/", None, SSE).await.expect("opened");
    drop(stream);
    pieces.closed().await;
}

#[tokio::test]
async fn half_an_event_at_the_end_is_not_given() {
    let server = Server::unix(|_| whole("data: whole\n\ndata: {\"half\":"));
    let mut stream = server.client().stream(Method::GET, "/", None, SSE).await.expect("opened");
    assert_eq!(
        without_line(stream.next().await.expect("open").expect("read")),
        message(None, "whole")
    );
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn a_connection_that_breaks_is_an_error_and_then_the_end() {
    let (pieces, body) = mpsc::channel(4);
    let body = std::sync::Mutex::new(Some(body));
    let server =
        Server::unix(move |_| sse(Pieces(body.lock().expect("lock").take().expect("once"))));
    let mut stream = server.client().stream(Method::GET, "/", None, SSE).await.expect("opened");
    pieces.send(Err(std::io::Error::other("broken"))).await.expect("sent");
    assert!(matches!(stream.next().await, Some(Err(Error::Http(_)))));
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn an_event_over_the_limit_is_reported_and_the_next_one_read() {
    let huge = "x".repeat(9 * 1024 * 1024);
    let server = Server::unix(move |_| whole(format!("data: {huge}\n\ndata: next\n\n")));
    let mut stream = server.client().stream(Method::GET, "/", None, SSE).await.expect("opened");
    assert!(matches!(stream.next().await, Some(Err(Error::TooLarge { limit: 8_388_608 }))));
    assert_eq!(
        without_line(stream.next().await.expect("open").expect("read")),
        message(None, "next")
    );
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn a_stream_can_be_opened_with_a_body_and_resumed_after_an_event() {
    let server = Server::unix(|_| whole(""));
    let client = server.client();
    let input = json!({"runId": "r"});
    client.stream(Method::POST, "/agui/sessions/s", Some(&input), SSE).await.expect("opened");
    client.resume("/aep/v0.1/events", SSE, "e.12.0").await.expect("opened");
    let [first, second] = &server.asked()[..] else { panic!("two requests") };
    assert_eq!(
        (first.line.as_str(), first.body.as_str()),
        ("POST /agui/sessions/s", r#"{"runId":"r"}"#)
    );
    assert_eq!((first.header("accept"), first.header("last-event-id")), (Some(SSE), None));
    assert_eq!(second.line, "GET /aep/v0.1/events");
    assert_eq!(second.header("last-event-id"), Some("e.12.0"));
    let odd = client.resume("/", SSE, "1\r\nX: y").await;
    assert!(matches!(odd, Err(Error::Protocol { .. })));
}

#[tokio::test]
async fn what_is_no_event_stream_is_refused() {
    let server = Server::unix(|asked| match asked.line.as_str() {
        "GET /page" => reply(200, "<html>"),
        _ => reply(401, ""),
    });
    let client = server.client();
    let page = client.stream(Method::GET, "/page", None, SSE).await;
    assert!(matches!(page, Err(Error::Protocol { .. })));
    let locked = client.stream(Method::GET, "/locked", None, SSE).await;
    assert!(matches!(locked, Err(Error::Unauthorized { message }) if message == "unauthorized"));
}
