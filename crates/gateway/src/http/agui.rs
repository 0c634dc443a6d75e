//! The server's half of AG-UI: a session as a run, at `POST /agui/sessions/{session}`; agents that run through the
//! gateway are in [`upstream`].
//!
//! A request that cannot be served is refused before the run begins; from then on whatever goes wrong is said within the
//! stream. Everything leaves through an [`Outlet`], which holds our own writer to the protocol: an event that a client
//! would end the run for does not leave, and every run ends with one terminal event, also where its task fails, is
//! aborted or the gateway stops.
//!
//! What the input says beside thread, run, version and `resume` is checked and not told: a session has its history here.
//! The ids of its messages say in which order the client has to be told. `resume` answers what the session waits for,
//! before the run begins.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use banister_events::agui::encoding::{self, Encoding};
use banister_events::agui::follow::is_fatal;
use banister_events::agui::input::enforced;
use banister_events::agui::write::Writer;
use banister_events::check::Checker;
use banister_events::event::Protocol;
use banister_events::frame::sse;
use banister_events::limits;
use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, VARY};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::body::{Fed, fed, whole};
use super::{Problem, Shared};
use crate::attach::Attached;
use crate::deliver::Gone;
use crate::keys::Scope;

mod resume;
pub(super) mod upstream;

pub(super) async fn run(
    State(shared): State<Shared>,
    Path(session): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let guest = shared.admit(request.method(), request.headers(), Scope::Watch)?;
    let encoding = negotiate(request.headers());
    let input = asked(&whole(request.into_body(), limits::MESSAGE_BYTES).await?)?;
    let known =
        shared.gateway.session_after(&session, 0).await.map_err(|e| Problem::internal(&e))?;
    if known.is_empty() {
        let message = format!("there is no session {session}");
        return Err(Problem::new(StatusCode::NOT_FOUND, "session", message)
            .remedy("GET /api/sessions lists the sessions"));
    }
    let resumed = resume::settle(&shared, &guest, &session, &input).await?;
    let writer = Writer::new(word(&input, "threadId"), word(&input, "runId"));
    let (outlet, body) = Outlet::new(encoding);
    let gateway = Arc::clone(&shared.gateway);
    let run = Attached { session, writer, outlet, resumed, input, guest };
    shared.gateway.tasks.spawn(gateway.attach(run, shared.stop));
    Ok(stream(encoding, body))
}

/// The response whose body is a run.
pub(super) fn stream(encoding: Encoding, body: Fed) -> Response {
    let headers = [
        // Without parameters: the protocol's own client takes the binary form with any for the other one.
        (CONTENT_TYPE, encoding.media_type()),
        (CACHE_CONTROL, "no-cache, no-store, no-transform"),
        (VARY, "accept"),
    ];
    (headers, [("x-accel-buffering", "no")], Body::new(body)).into_response()
}

/// The form a client asks for, in however many headers.
pub(super) fn negotiate(headers: &HeaderMap) -> Encoding {
    let ranges: Vec<&str> =
        headers.get_all(ACCEPT).iter().filter_map(|header| header.to_str().ok()).collect();
    encoding::negotiate((!ranges.is_empty()).then(|| ranges.join(", ")).as_deref())
}

/// The run input that a body is, as far as the protocol knows it.
pub(super) fn asked(body: &[u8]) -> Result<Value, Problem> {
    let input: Value = serde_json::from_slice(body).map_err(|error| {
        let message = format!("the run input is not JSON: {error}");
        Problem::new(StatusCode::BAD_REQUEST, "json", message)
    })?;
    let text = |name: &str| input.get(name).and_then(Value::as_str);
    // First, as another version may have another shape. A later minor one is served: it only adds.
    if let Some(version) = text("protocolVersion").filter(|it| it.split('.').next() != Some("1")) {
        let message = format!("AG-UI {version} is not spoken here");
        return Err(
            Problem::new(StatusCode::BAD_REQUEST, "version", message).remedy("speak AG-UI 1.x")
        );
    }
    let (input, _) = enforced(&input).map_err(|finding| {
        let message = format!("the run input is malformed: {}", finding.message);
        Problem::new(StatusCode::BAD_REQUEST, "run-input", message)
            .at(finding.rule.code, &finding.pointer)
            .remedy("send an AG-UI RunAgentInput")
    })?;
    Ok(input)
}

/// A text of an input.
pub(super) fn word<'v>(input: &'v Value, name: &str) -> &'v str {
    input.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// One run on its way to a client: verified, encoded, and ended exactly once.
#[derive(Debug)]
pub(crate) struct Outlet {
    encoding: Encoding,
    checker: Checker,
    begun: bool,
    out: mpsc::Sender<Bytes>,
    /// Room for the end, kept from the beginning: it never has to wait. None once the end was sent.
    last: Option<mpsc::OwnedPermit<Bytes>>,
}

impl Outlet {
    /// An outlet, and the body that it feeds.
    pub(crate) fn new(encoding: Encoding) -> (Self, Fed) {
        let (out, body) = fed();
        let checker = Checker::new(Protocol::Agui);
        let last = out.clone().try_reserve_owned().ok();
        (Self { encoding, checker, begun: false, out, last }, body)
    }

    /// Whether the terminal event was sent: nothing leaves after it.
    pub(crate) fn is_ended(&self) -> bool {
        self.last.is_none()
    }

    /// Where the stream's bytes go.
    pub(crate) fn sender(&self) -> &mpsc::Sender<Bytes> {
        &self.out
    }

    /// Whether the stream can say that it is there without saying anything.
    pub(crate) fn has_comments(&self) -> bool {
        self.encoding == Encoding::Sse
    }

    /// Sends events up to the terminal one. One that breaks the protocol is not sent: the run fails instead.
    pub(crate) async fn send(&mut self, events: &[Value]) -> Result<(), Gone> {
        let mut frames = Vec::new();
        for event in events {
            if self.is_ended() {
                tracing::error!(event = kind(event), "An event came after the end of its run.");
                return Ok(());
            }
            if let Err(reason) = self.write(event, &mut frames) {
                tracing::error!(event = kind(event), %reason, "A run was about to break AG-UI.");
                self.end_with(frames, "internal", "the gateway could not tell how this goes on");
                return Ok(());
            }
            if matches!(kind(event), "RUN_FINISHED" | "RUN_ERROR") {
                self.end(std::mem::take(&mut frames));
            }
        }
        if frames.is_empty() {
            return Ok(());
        }
        self.out.send(Bytes::from(frames)).await.map_err(|_| Gone)
    }

    /// Passes events on that were verified elsewhere, one run after another.
    pub(crate) async fn pass(&mut self, events: &[Bytes]) -> Result<(), Gone> {
        match self.frames(events) {
            Some(frames) if frames.is_empty() => Ok(()),
            Some(frames) => self.out.send(Bytes::from(frames)).await.map_err(|_| Gone),
            None => Err(Gone),
        }
    }

    /// Passes the last events on, which end the stream.
    pub(crate) fn pass_last(&mut self, events: &[Bytes]) -> Result<(), Gone> {
        let frames = self.frames(events).ok_or(Gone)?;
        if self.out.is_closed() {
            return Err(Gone);
        }
        self.end(frames);
        Ok(())
    }

    /// Events in their frames; none where one cannot be encoded, which fails the run.
    fn frames(&mut self, events: &[Bytes]) -> Option<Vec<u8>> {
        let mut frames = Vec::new();
        for event in events {
            let written = match self.encoding {
                Encoding::Sse => {
                    // As it is: nothing that passes is written anew.
                    let data = &String::from_utf8_lossy(event);
                    sse::write(&mut frames, &sse::Outgoing { id: None, event: None, data });
                    Ok(())
                }
                Encoding::Protobuf => serde_json::from_slice::<Value>(event)
                    .map_err(|error| error.to_string())
                    .and_then(|event| {
                        encoding::frame(self.encoding, &event, &mut frames)
                            .map_err(|error| error.to_string())
                    }),
            };
            if let Err(reason) = written {
                tracing::warn!(%reason, "An event has no binary form.");
                self.end_with(frames, "encoding", "an event of this run has no binary form");
                return None;
            }
        }
        Some(frames)
    }

    /// Ends a run that has not ended: it failed.
    pub(crate) fn fail(&mut self, code: &str, message: &str) {
        self.end_with(Vec::new(), code, message);
    }

    fn write(&mut self, event: &Value, frames: &mut Vec<u8>) -> Result<(), String> {
        let data = event.to_string();
        if let Some(finding) = self.checker.message(data.as_bytes()).iter().find(|it| is_fatal(it))
        {
            return Err(format!("{}: {}", finding.rule.code, finding.message));
        }
        if kind(event) == "RUN_STARTED" && std::mem::replace(&mut self.begun, true) {
            return Err("a response has one run".to_owned());
        }
        encoding::frame(self.encoding, event, frames).map_err(|error| error.to_string())
    }

    fn end_with(&mut self, mut frames: Vec<u8>, code: &str, message: &str) {
        let event = json!({ "type": "RUN_ERROR", "message": message, "code": code });
        if let Err(error) = encoding::frame(self.encoding, &event, &mut frames) {
            tracing::error!(%error, "The end of a run could not be encoded.");
        }
        self.end(frames);
    }

    fn end(&mut self, frames: Vec<u8>) {
        if let Some(last) = self.last.take() {
            last.send(Bytes::from(frames));
        }
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        self.fail("internal", "the run broke off; the gateway's log tells more");
    }
}

fn kind(event: &Value) -> &str {
    event.get("type").and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
#[path = "agui_tests.rs"]
mod tests;
