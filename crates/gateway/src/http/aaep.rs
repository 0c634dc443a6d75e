//! AAEP's doors: the manifest, subscriptions, their streams, replies.
//!
//! The answer to a reply that does not count gives no reason, as AAEP wants it: whoever guesses tokens learns nothing. It
//! does say that somebody else was first, because a person wants to know.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use banister_events::aaep::handshake::{Rejected, RejectionCode};
use banister_events::aaep::reply;
use banister_events::event::Protocol;
use http::header::{ACCEPT, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http::{HeaderMap, Method, StatusCode};
use serde_json::{Value, json};

use super::body::{fed, whole};
use super::streams::{StreamQuery, event_stream, replayed};
use super::{Problem, Shared, csrf_fits};
use crate::deliver::Start;
use crate::desk::Refused;
use crate::keys::{Guest, Scope};
use crate::manifest::Manifest;
use crate::subscriptions::{Denied, StreamSink, SubscriptionStream, rejected};

pub(crate) mod framed;
pub(super) mod socket;

/// The longest message of a subscriber.
const MESSAGE: usize = 64 * 1024;

/// What the gateway says about itself; signed for who asks for it so.
pub(super) async fn manifest(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let manifest = &shared.gateway.manifest;
    if accept.contains("application/jose") {
        return ([(CONTENT_TYPE, "application/jose")], manifest.signed().to_owned())
            .into_response();
    }
    Json(Manifest::value()).into_response()
}

pub(super) async fn subscribe(
    State(shared): State<Shared>,
    method: Method,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let guest = match welcome(&shared, &method, &headers) {
        Ok(guest) => guest,
        Err(rejected) => return Ok(refusal(&rejected)),
    };
    let Some(message) = json(body).await? else {
        return Ok(refusal(&rejected(RejectionCode::Unknown, "This is not JSON.")));
    };
    Ok(match shared.gateway.subscribe(&guest, &message) {
        Ok((accepted, _)) => {
            let location = format!("/aaep/v1/events?subscription_id={}", accepted.subscription_id);
            (StatusCode::CREATED, [(LOCATION, location)], Json(accepted)).into_response()
        }
        Err(rejected) => refusal(&rejected),
    })
}

/// Whoever may subscribe, or the refusal in AAEP's words.
fn welcome(shared: &Shared, method: &Method, headers: &HeaderMap) -> Result<Guest, Box<Rejected>> {
    if shared.stop.is_cancelled() {
        return Err(rejected(RejectionCode::TransportUnavailable, "The gateway stops."));
    }
    let guest = shared.guest(headers).ok_or_else(|| {
        rejected(RejectionCode::AuthenticationRequired, "This needs a key that is known here.")
    })?;
    let token = headers.get(super::CSRF_HEADER).and_then(|token| token.to_str().ok());
    if !guest.may(Scope::Watch) || (method != Method::GET && !csrf_fits(&guest, token)) {
        return Err(rejected(RejectionCode::AuthorizationDenied, "This key may not watch."));
    }
    Ok(guest)
}

fn refusal(rejected: &Rejected) -> Response {
    let status = match rejected.reason_code {
        RejectionCode::AuthenticationRequired => StatusCode::UNAUTHORIZED,
        RejectionCode::AuthorizationDenied => StatusCode::FORBIDDEN,
        RejectionCode::RateLimit => StatusCode::TOO_MANY_REQUESTS,
        RejectionCode::TransportUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        RejectionCode::VersionUnsupported
        | RejectionCode::ManifestSignatureRequired
        | RejectionCode::CapabilitiesIncompatible => StatusCode::CONFLICT,
        RejectionCode::Unknown | RejectionCode::Other(_) => StatusCode::BAD_REQUEST,
    };
    let mut response = (status, Json(rejected)).into_response();
    if let Some(seconds) = rejected.retry_after_seconds {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

pub(super) async fn renegotiate(
    State(shared): State<Shared>,
    Path(id): Path<String>,
    method: Method,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let guest = shared.admit(&method, &headers, Scope::Watch)?;
    let mut message = json(body).await?.ok_or_else(not_json)?;
    let named = message.get("subscription_id").and_then(Value::as_str);
    if named.is_some_and(|named| named != id) {
        let message = "the body names another subscription than the path";
        return Err(Problem::new(StatusCode::BAD_REQUEST, "subscription", message));
    }
    if let Some(fields) = message.as_object_mut() {
        fields.entry("type").or_insert_with(|| json!("subscription.renegotiate"));
        fields.entry("subscription_id").or_insert_with(|| json!(id));
    }
    Ok(renegotiated(&shared, &guest, &message))
}

fn renegotiated(shared: &Shared, guest: &Guest, message: &Value) -> Response {
    match shared.gateway.renegotiate(guest, message) {
        Ok(accepted) => Json(accepted).into_response(),
        Err(rejected) => refusal(&rejected),
    }
}

pub(super) async fn unsubscribe(
    State(shared): State<Shared>,
    Path(id): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let guest = shared.admit(&method, &headers, Scope::Watch)?;
    shared.gateway.unsubscribe(&guest, &id).await.map_err(denied)?;
    Ok(StatusCode::NO_CONTENT)
}

fn denied(why: Denied) -> Problem {
    match why {
        Denied::Unknown => {
            Problem::new(StatusCode::NOT_FOUND, "subscription", "there is no such subscription")
                .remedy("subscribe again; the last event's id still tells where to go on")
        }
        Denied::Foreign => Problem::new(
            StatusCode::FORBIDDEN,
            "subscription",
            "this is another key's subscription",
        )
        .remedy("subscribe with this key"),
    }
}

/// The stream of a subscription.
pub(super) async fn follow(
    shared: &Shared,
    id: &str,
    query: &StreamQuery,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let guest = shared.admit(method, headers, Scope::Watch)?;
    let start = query.start(shared, &guest, Protocol::Aaep, headers).await?;
    let followed = shared.gateway.subscriptions.attach(&guest, id).map_err(denied)?;
    let (out, body) = fed();
    let gateway = Arc::clone(&shared.gateway);
    let stream = SubscriptionStream {
        gateway: Arc::clone(&gateway),
        terms: followed.terms,
        sink: StreamSink::Frames(out),
        session: query.session(),
        start: Some(start),
        greeting: None,
    };
    shared.gateway.tasks.spawn(async move {
        tokio::select! {
            () = gateway.keys.gone(&guest) => {}
            () = stream.run(followed.orders) => {}
        }
    });
    Ok(replayed(start == Start::Exhausted, event_stream(Body::new(body))))
}

/// Replies to what was asked; also renegotiates and closes, as AAEP's own binding has it.
pub(super) async fn reply(
    State(shared): State<Shared>,
    method: Method,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let guest = shared.guest(&headers);
    let may = |scope| shared.admit(&method, &headers, scope);
    // Whoever may do neither is sent away before anything is read.
    if !guest.is_some_and(|guest| guest.may(Scope::Watch)) {
        may(Scope::Answer)?;
    }
    let message = json(body).await?.ok_or_else(not_json)?;
    match message.get("type").and_then(Value::as_str).unwrap_or_default() {
        "confirmation.reply" | "clarification.reply" => {
            let guest = may(Scope::Answer)?;
            let answered = answer(&shared, &guest.key, &message).await;
            answered.map(|()| StatusCode::NO_CONTENT.into_response())
        }
        "subscription.renegotiate" => Ok(renegotiated(&shared, &may(Scope::Watch)?, &message)),
        "subscription.close" => {
            let guest = may(Scope::Watch)?;
            let id = message.get("subscription_id").and_then(Value::as_str).unwrap_or_default();
            shared.gateway.unsubscribe(&guest, id).await.map_err(denied)?;
            Ok(StatusCode::NO_CONTENT.into_response())
        }
        _ => Err(Problem::new(StatusCode::BAD_REQUEST, "type", "this is no reply").remedy(
            "send confirmation.reply, clarification.reply, subscription.renegotiate or subscription.close",
        )),
    }
}

async fn answer(shared: &Shared, key: &str, message: &Value) -> Result<(), Problem> {
    let ignored = || {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "ignored", "this reply does not count")
            .remedy("`banister inbox` lists what waits for an answer")
    };
    let answer = reply::answer(message).ok_or_else(ignored)?;
    match shared.gateway.desk.reply(&answer, shared.door.name, key).await {
        Ok(_) => Ok(()),
        Err(refused @ (Refused::Late(_) | Refused::Journal(_))) => {
            Err(super::api::problem(&refused))
        }
        Err(refused) => {
            tracing::info!(%refused, key, "A reply did not count.");
            Err(ignored())
        }
    }
}

/// Anything that the conformance suite has to say, where its doors are open.
pub(super) async fn message(
    State(shared): State<Shared>,
    body: Body,
) -> Result<StatusCode, Problem> {
    let Some(suite) = shared.gateway.suite.get() else { return Err(Problem::nothing()) };
    let message = json(body).await?.ok_or_else(not_json)?;
    suite.hear(&shared.gateway, &message).await;
    Ok(StatusCode::ACCEPTED)
}

/// The stream that needs no key, where the doors of the conformance suite are open.
pub(super) fn suite_stream(shared: &Shared, headers: &HeaderMap) -> Option<Response> {
    let suite = shared.gateway.suite.get()?;
    if headers.contains_key(http::header::AUTHORIZATION) {
        return None;
    }
    let (out, body) = fed();
    suite.listen(&shared.gateway, StreamSink::Frames(out));
    Some(event_stream(Body::new(body)))
}

fn not_json() -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "json", "the body is not JSON")
}

/// A body as JSON; `None` where it is none.
async fn json(body: Body) -> Result<Option<Value>, Problem> {
    Ok(serde_json::from_slice(&whole(body, MESSAGE).await?).ok())
}

#[cfg(test)]
#[path = "aaep_tests.rs"]
mod tests;
