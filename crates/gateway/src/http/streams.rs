//! The same sessions to follow in two protocols: AAEP and AEP.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use banister_events::event::Protocol;
use banister_events::locale::Locale;
use http::header::{ACCEPT_LANGUAGE, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde::Deserialize;

use super::body::fed;
use super::{Problem, Shared};
use crate::deliver::{FollowTerms, ForeignCursor, ResumeRequest, Start};
use crate::keys::{Guest, Scope};
use crate::subscriptions::{mark, owner};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StreamQuery {
    /// Only this session.
    session: Option<String>,
    /// `start` for everything there is, `now` (the default) for what is going on.
    from: Option<String>,
    /// The language to be spoken to in.
    lang: Option<String>,
    /// The subscription whose terms count.
    #[serde(alias = "subscription")]
    subscription_id: Option<String>,
}

impl StreamQuery {
    /// Where to begin: after the frame whose id came as `Last-Event-ID`, else as `from` says.
    pub(super) async fn start(
        &self,
        shared: &Shared,
        guest: &Guest,
        protocol: Protocol,
        headers: &HeaderMap,
    ) -> Result<Start, Problem> {
        if let Some(seen) = headers.get("last-event-id").and_then(|id| id.to_str().ok()) {
            let (session, mark) = (self.session.as_deref(), &mark(&owner(guest)));
            let request = ResumeRequest { seen, protocol, session, mark };
            let start = shared.gateway.resume_start(request).await;
            return start.map_err(|error| Problem::internal(&error))?.map_err(foreign);
        }
        match self.from.as_deref() {
            None | Some("now") => Ok(Start::Now),
            Some("start") => Ok(Start::Beginning),
            Some(other) => {
                let message = format!("from={other} is not known: use start or now");
                Err(Problem::new(StatusCode::BAD_REQUEST, "query", message))
            }
        }
    }

    pub(super) fn session(&self) -> Option<String> {
        self.session.clone()
    }
}

fn foreign(_: ForeignCursor) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "cursor", "this id is of another key's stream")
        .remedy("send the id of an event that this key's subscription got, or none")
}

pub(super) async fn aaep(
    State(shared): State<Shared>,
    Query(query): Query<StreamQuery>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if let Some(id) = query.subscription_id.clone() {
        return super::aaep::follow(&shared, &id, &query, &method, &headers).await;
    }
    if let Some(stream) = super::aaep::suite_stream(&shared, &headers) {
        return Ok(stream);
    }
    follow(&shared, Protocol::Aaep, query, &method, &headers).await
}

pub(super) async fn aep(
    State(shared): State<Shared>,
    Query(query): Query<StreamQuery>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    follow(&shared, Protocol::Aep, query, &method, &headers).await
}

async fn follow(
    shared: &Shared,
    protocol: Protocol,
    query: StreamQuery,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let guest = shared.admit(method, headers, Scope::Watch)?;
    if query.subscription_id.is_some() {
        let message = "subscriptions are AAEP's; this stream is AEP";
        return Err(Problem::new(StatusCode::BAD_REQUEST, "query", message));
    }
    let start = query.start(shared, &guest, protocol, headers).await?;
    let language = match &query.lang {
        Some(tag) => Locale::choose([tag.as_str()]),
        None => accepted_language(headers),
    };
    let exhausted = start == Start::Exhausted;
    let terms =
        FollowTerms { protocol, session: query.session, start, language: language.tag.to_owned() };
    let (out, body) = fed();
    let (gateway, stop) = (Arc::clone(&shared.gateway), shared.stop.clone());
    shared.gateway.tasks.spawn(async move {
        tokio::select! {
            // A gateway that stops ends its streams, so that their clients come back elsewhere or later.
            () = stop.cancelled() => {}
            () = gateway.keys.gone(&guest) => {}
            () = Arc::clone(&gateway).follow(terms, out) => {}
        }
    });
    Ok(replayed(exhausted, event_stream(Body::new(body))))
}

/// Says in the head of a response that its stream could not be resumed. The comment in the stream says it as well, but
/// few clients can read that.
pub(super) fn replayed(exhausted: bool, mut stream: Response) -> Response {
    if exhausted {
        stream.headers_mut().insert("banister-replay", HeaderValue::from_static("exhausted"));
    }
    stream
}

/// The language a client accepts, English if it does not say.
pub(super) fn accepted_language(headers: &HeaderMap) -> Locale {
    let header = headers.get(ACCEPT_LANGUAGE).and_then(|header| header.to_str().ok());
    Locale::accept(header.unwrap_or_default())
}

pub(super) fn event_stream(body: Body) -> Response {
    let headers =
        [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-cache, no-store, no-transform")];
    (headers, [("x-accel-buffering", "no")], body).into_response()
}

#[cfg(test)]
#[path = "streams_tests.rs"]
mod tests;
