//! For whoever runs it: whether it is ready, and what it counts. Counts need a key; whether it lives does not.

use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, StatusCode};

use super::{Problem, Shared};
use crate::keys::Scope;

/// How long the journal may take to say that it is there.
const PATIENCE: Duration = Duration::from_secs(1);

/// Ready is who takes requests and has a journal that writes.
pub(super) async fn ready(State(shared): State<Shared>) -> Result<&'static str, Problem> {
    let unready = |message: &'static str| {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unready", message).retry_in(1)
    };
    if shared.stop.is_cancelled() {
        return Err(unready("the gateway stops"));
    }
    let writes = shared.gateway.journal.probe();
    match tokio::time::timeout(PATIENCE, writes).await {
        Ok(Ok(())) => Ok("ok\n"),
        Ok(Err(error)) => {
            tracing::error!(%error, "The journal does not write.");
            Err(unready("the journal does not write"))
        }
        Err(_) => Err(unready("the journal is busy")),
    }
}

pub(super) async fn metrics(
    State(shared): State<Shared>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    shared.admit(&method, &headers, Scope::Watch)?;
    let kind = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    Ok((kind, shared.gateway.metrics()).into_response())
}
