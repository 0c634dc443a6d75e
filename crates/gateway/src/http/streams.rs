//! The same sessions to follow in two protocols: AAEP and AEP.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use banister_events::event::Protocol;
use banister_events::locale::Locale;
use http::header::{ACCEPT_LANGUAGE, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, Method, StatusCode};
use serde::Deserialize;

use super::body::fed;
use super::{Problem, Shared};
use crate::deliver::{Cursor, Start, Terms};
use crate::keys::Scope;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// Only this session.
    session: Option<String>,
    /// `start` for everything there is, `now` (the default) for what is going on.
    from: Option<String>,
    /// The language to be spoken to in.
    lang: Option<String>,
}

pub(super) async fn aaep(
    State(shared): State<Shared>,
    Query(wanted): Query<Wanted>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    follow(&shared, Protocol::Aaep, wanted, &method, &headers)
}

pub(super) async fn aep(
    State(shared): State<Shared>,
    Query(wanted): Query<Wanted>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    follow(&shared, Protocol::Aep, wanted, &method, &headers)
}

fn follow(
    shared: &Shared,
    protocol: Protocol,
    wanted: Wanted,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    shared.admit(method, headers, Scope::Watch)?;
    let seen = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let start = match (seen, wanted.from.as_deref()) {
        (Some(seen), _) => match Cursor::parse(seen, shared.gateway.journal.epoch()) {
            Some(cursor) if cursor.position >= shared.gateway.journal.pruned() => {
                Start::After(cursor)
            }
            // Of another journal, or what came next was pruned: what it missed cannot be told. It is told so, and what
            // is going on.
            _ => Start::Exhausted,
        },
        (None, None | Some("now")) => Start::Now,
        (None, Some("start")) => Start::Beginning,
        (None, Some(other)) => {
            let message = format!("from={other} is not known: use start or now");
            return Err(Problem::new(StatusCode::BAD_REQUEST, "query", message));
        }
    };
    let language = match &wanted.lang {
        Some(tag) => Locale::choose([tag.as_str()]),
        None => accepted_language(headers),
    };
    let terms =
        Terms { protocol, session: wanted.session, start, language: language.tag.to_owned() };
    let (out, body) = fed();
    let (followed, stop) = (Arc::clone(&shared.gateway).follow(terms, out), shared.stop.clone());
    // A gateway that stops ends its streams, so that their clients come back elsewhere or later.
    shared.gateway.tasks.spawn(async move { stop.run_until_cancelled(followed).await });
    Ok(event_stream(Body::new(body)))
}

/// The language a client accepts, English if it does not say.
pub(super) fn accepted_language(headers: &HeaderMap) -> Locale {
    let header = headers.get(ACCEPT_LANGUAGE).and_then(|header| header.to_str().ok());
    Locale::accept(header.unwrap_or_default())
}

fn event_stream(body: Body) -> Response {
    let headers =
        [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-cache, no-store, no-transform")];
    (headers, [("x-accel-buffering", "no")], body).into_response()
}
