//! The doors that events are pushed through: one, an array of them, or one a line; packed or not.
//!
//! Everything is bounded before it is read: the request, what it unpacks to, how many events it has, how often one key
//! comes. What is over a bound is refused whole, with the reason, and nothing of it is recorded.

use std::io::Read as _;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, Query, Request, State};
use axum::response::{IntoResponse, Response};
use banister_events::event::Protocol;
use banister_events::frame;
use banister_events::limits::MESSAGE_BYTES;
use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::body::whole;
use super::hooks::{DEADLINE, idempotency_key, number, wait_of};
use super::{Problem, Shared};
use crate::ingest::{Push, Pusher, Receipt, Refusal, Waiting};
use crate::keys::Scope;

/// The largest request, as it is sent.
const SENT_BYTES: usize = 16 * 1024 * 1024;
/// The largest one, unpacked.
const UNPACKED_BYTES: usize = 32 * 1024 * 1024;
/// How many events one request may have.
const EVENTS: usize = 10_000;
/// The longest name of a thread.
const THREAD_BYTES: usize = 256;

pub(super) async fn aep(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Response, Problem> {
    push(&shared, Protocol::Aep, None, request).await
}

pub(super) async fn aaep(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Response, Problem> {
    push(&shared, Protocol::Aaep, None, request).await
}

pub(super) async fn agui(
    State(shared): State<Shared>,
    Path(thread): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    push(&shared, Protocol::Agui, Some(thread), request).await
}

async fn push(
    shared: &Shared,
    protocol: Protocol,
    thread: Option<String>,
    request: Request,
) -> Result<Response, Problem> {
    let key = admitted(shared, request.method(), request.headers())?;
    if thread.as_ref().is_some_and(|thread| thread.len() > THREAD_BYTES) {
        let message = format!("the thread's name is over {THREAD_BYTES} bytes");
        return Err(Problem::new(StatusCode::BAD_REQUEST, "thread", message));
    }
    let (parts, body) = request.into_parts();
    let lines = lines(&parts.headers);
    let body = unpacked(&parts.headers, body).await?;
    let messages = cut(&body, lines)?;
    drop(body);
    let idempotency = idempotency_key(&parts.headers);
    shared.gateway.indexer.keep_pace().await;
    let source = Pusher { protocol, thread, door: shared.door.name, key, idempotency };
    let receipts = shared.gateway.push(Push { source, messages }).await.map_err(|error| {
        tracing::error!(%error, "A push was not recorded.");
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "journal", "nothing of this was recorded")
            .remedy("send it again; the gateway's log tells more")
            .retry_in(1)
    })?;
    let results = receipts.iter().enumerate().map(Row::new).collect();
    Ok(Json(Results { schema: "banister.push/v1", results }).into_response())
}

#[derive(Debug, Serialize)]
struct Results<'a> {
    schema: &'static str,
    results: Vec<Row<'a>>,
}

/// What became of one event of a push.
#[derive(Debug, Serialize)]
struct Row<'a> {
    index: usize,
    status: &'static str,
    session: &'a str,
    position: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    findings: Option<Value>,
}

impl<'a> Row<'a> {
    fn new((index, receipt): (usize, &'a Receipt)) -> Self {
        Self {
            index,
            status: receipt.status.name(),
            session: &receipt.session,
            position: receipt.position,
            findings: (!receipt.findings.is_empty()).then(|| receipt.found()),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Deadline {
    /// How long the caller waits, for those who cannot set a header.
    deadline_ms: Option<u64>,
}

/// Waits for the answer to one AEP event. Whatever goes wrong from here on, the answer has a refusal in it.
pub(super) async fn decide(
    State(shared): State<Shared>,
    Query(query): Query<Deadline>,
    request: Request,
) -> Result<Response, Problem> {
    let key = admitted(&shared, request.method(), request.headers())?;
    let (parts, body) = request.into_parts();
    let body = match whole(body, MESSAGE_BYTES).await {
        Ok(body) => body,
        Err(problem) => {
            let refusal = shared.gateway.refusal(problem.code, &problem.message, b"");
            return Ok(refused(refusal));
        }
    };
    // Of two deadlines the earlier one counts.
    let deadlines = [number(&parts.headers, DEADLINE), query.deadline_ms];
    let wait = wait_of(deadlines.into_iter().flatten().min());
    let waiting = Waiting { door: shared.door.name, key, body: body.clone(), wait };
    let held = shared.stop.run_until_cancelled(shared.gateway.push_and_decide(waiting)).await;
    Ok(match held {
        Some(Ok(response)) => Json(response).into_response(),
        Some(Err(refusal)) => refused(refusal),
        None => {
            let message = "the gateway stops; ask again under the same id once it is back";
            refused(shared.gateway.refusal("stopping", message, &body))
        }
    })
}

fn refused(refusal: Refusal) -> Response {
    let status = match refusal.code {
        "id-reused" => StatusCode::CONFLICT,
        "size" => StatusCode::PAYLOAD_TOO_LARGE,
        "slow" => StatusCode::REQUEST_TIMEOUT,
        "journal" | "stopping" => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    };
    let mut body = refusal.response;
    if let Some(body) = body.as_object_mut() {
        let error = json!({
            "code": refusal.code, "message": refusal.message, "findings": refusal.findings,
        });
        body.insert("error".to_owned(), error);
    }
    (status, Json(body)).into_response()
}

/// The key of whoever may push, if it does not come too often.
fn admitted(shared: &Shared, method: &Method, headers: &HeaderMap) -> Result<String, Problem> {
    let guest = shared.admit(method, headers, Scope::Emit)?;
    match shared.gateway.rates.take(&guest.key) {
        Ok(()) => Ok(guest.key),
        Err(wait) => {
            let message = "this key sends too many requests";
            Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "rate", message)
                .remedy("send events in batches, or raise push.rate in config.toml")
                .retry_in(wait.as_secs() + 1))
        }
    }
}

/// Whether every line is an event, as the sender says.
fn lines(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let lines = ["application/x-ndjson", "application/ndjson", "application/jsonl"];
    lines.iter().any(|known| kind.eq_ignore_ascii_case(known))
}

async fn unpacked(headers: &HeaderMap, body: Body) -> Result<Bytes, Problem> {
    let packing = headers.get(CONTENT_ENCODING).map(|packing| packing.to_str().unwrap_or("?"));
    let packed = match packing.map(str::trim) {
        None | Some("" | "identity") => return whole(body, SENT_BYTES).await,
        Some(gzip) if gzip.eq_ignore_ascii_case("gzip") => whole(body, SENT_BYTES).await?,
        Some(_) => {
            let message = "the body is packed in a way that is not known here";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "encoding", message)
                .remedy("send it as it is, or with gzip"));
        }
    };
    // Unpacking takes a while: it must not keep others waiting.
    let unpacked = tokio::task::spawn_blocking(move || gunzip(&packed)).await;
    unpacked.map_err(|error| Problem::internal(&error))?
}

fn gunzip(packed: &[u8]) -> Result<Bytes, Problem> {
    let mut unpacked = Vec::new();
    let mut reader = MultiGzDecoder::new(packed).take(UNPACKED_BYTES as u64 + 1);
    if let Err(error) = reader.read_to_end(&mut unpacked) {
        let message = format!("the body is not whole gzip data: {error}");
        return Err(Problem::new(StatusCode::BAD_REQUEST, "gzip", message));
    }
    if unpacked.len() > UNPACKED_BYTES {
        let message = format!("the body is over {UNPACKED_BYTES} bytes when it is unpacked");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "size", message)
            .remedy("send fewer events at once"));
    }
    Ok(Bytes::from(unpacked))
}

/// The messages of a body, in their order.
fn cut(body: &[u8], lines: bool) -> Result<Vec<Result<Bytes, frame::Error>>, Problem> {
    let mut messages = Vec::new();
    let mut take = |(_, message): frame::Framed<'_, [u8]>| {
        messages.push(message.map(Bytes::copy_from_slice));
        messages.len() <= EVENTS
    };
    let mut rest = body;
    let fits = if lines {
        let mut lines = frame::ndjson::Lines::new(MESSAGE_BYTES);
        each(&mut |ending| if ending { lines.end() } else { lines.read(&mut rest) }.map(&mut take))
    } else {
        let mut documents = frame::json::Documents::new(MESSAGE_BYTES);
        each(&mut |ending| {
            if ending { documents.end() } else { documents.read(&mut rest) }.map(&mut take)
        })
    };
    if !fits {
        let message = format!("the body has more than {EVENTS} events");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "size", message)
            .remedy("send fewer events at once"));
    }
    if messages.is_empty() {
        return Err(Problem::new(StatusCode::BAD_REQUEST, "empty", "the body has no events")
            .remedy("send one JSON object, an array of them, or one a line"));
    }
    Ok(messages)
}

/// Takes messages until there are none left, or one too many. Gives whether there were not too many.
fn each(next: &mut dyn FnMut(bool) -> Option<bool>) -> bool {
    for ending in [false, true] {
        while let Some(fits) = next(ending) {
            if !fits {
                return false;
            }
        }
    }
    true
}

#[cfg(test)]
#[path = "push_tests.rs"]
mod tests;
