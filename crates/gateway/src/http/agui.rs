//! The server's half of AG-UI: a session as a run, at `POST /agui/sessions/{session}`; agents that run through the
//! gateway are in [`upstream`].
//!
//! A request that cannot be served is refused before the run begins; from then on whatever goes wrong is said within the
//! stream. Everything leaves through an [`Outlet`], which holds our own writer to the protocol.
//!
//! What the input says beside thread, run, version and `resume` is checked and not told: a session has its history here.
//! The ids of its messages say in which order the client has to be told. `resume` answers what the session waits for,
//! before the run begins.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use banister_events::agui::encoding::{self, Encoding};
use banister_events::agui::input::enforced;
use banister_events::agui::write::Writer;
use banister_events::limits;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, VARY};
use http::{HeaderMap, StatusCode};
use serde_json::Value;

use super::body::{Fed, fed, whole};
use super::{Problem, Shared};
use crate::attach::AttachedRun;
use crate::deliver::Outlet;
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
    let (out, body) = fed();
    let outlet = Outlet::new(encoding, out);
    let gateway = Arc::clone(&shared.gateway);
    let run = AttachedRun { session, writer, outlet, resumed, input, guest };
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

#[cfg(test)]
#[path = "agui_tests.rs"]
mod tests;
