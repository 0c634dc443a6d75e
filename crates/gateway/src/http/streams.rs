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
    /// The subscription whose terms count.
    #[serde(alias = "subscription")]
    subscription_id: Option<String>,
}

impl Wanted {
    /// Where to begin: after what was seen, else as it says.
    pub(super) fn start(&self, seen: Option<Start>) -> Result<Start, Problem> {
        match (seen, self.from.as_deref()) {
            (Some(seen), _) => Ok(seen),
            (None, None | Some("now")) => Ok(Start::Now),
            (None, Some("start")) => Ok(Start::Beginning),
            (None, Some(other)) => {
                let message = format!("from={other} is not known: use start or now");
                Err(Problem::new(StatusCode::BAD_REQUEST, "query", message))
            }
        }
    }

    pub(super) fn session(&self) -> Option<String> {
        self.session.clone()
    }
}

pub(super) async fn aaep(
    State(shared): State<Shared>,
    Query(wanted): Query<Wanted>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if let Some(id) = wanted.subscription_id.clone() {
        return super::aaep::follow(&shared, &id, &wanted, &method, &headers);
    }
    if let Some(stream) = super::aaep::suite_stream(&shared, &headers) {
        return Ok(stream);
    }
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
    let guest = shared.admit(method, headers, Scope::Watch)?;
    if wanted.subscription_id.is_some() {
        let message = "subscriptions are AAEP's; this stream is AEP";
        return Err(Problem::new(StatusCode::BAD_REQUEST, "query", message));
    }
    let seen = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let journal = &shared.gateway.journal;
    let epoch = journal.epoch();
    let seen = seen.map(|seen| match Cursor::parse(seen, epoch) {
        Some(cursor) if (journal.pruned()..=journal.head()).contains(&cursor.position) => {
            Start::After(cursor)
        }
        // Of another journal, or of one that is lost, or what came next was pruned: what it missed cannot be told. It is
        // told so, and what is going on.
        _ => Start::Exhausted,
    });
    let start = wanted.start(seen)?;
    let language = match &wanted.lang {
        Some(tag) => Locale::choose([tag.as_str()]),
        None => accepted_language(headers),
    };
    let exhausted = start == Start::Exhausted;
    let terms =
        Terms { protocol, session: wanted.session, start, language: language.tag.to_owned() };
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

/// Says in the head of a stream that it could not go on from where it was told to. The comment in the stream says it as
/// well, but few clients can read that.
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
