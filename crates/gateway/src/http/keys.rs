//! Keys are issued, listed and revoked. The key itself is told once, to whoever asks for it.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use http::{HeaderMap, Method, StatusCode};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::body::whole;
use super::{Problem, Shared};
use crate::keys::Scope;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    id: String,
    scopes: Vec<Scope>,
    /// When it ends; never if it is not said.
    expires: Option<Timestamp>,
}

pub(super) async fn list(
    State(shared): State<Shared>,
    method: Method,
    headers: HeaderMap,
) -> Result<Json<Value>, Problem> {
    shared.admit(&method, &headers, Scope::Admin)?;
    Ok(Json(json!({ "schema": "banister.keys/v1", "keys": shared.gateway.keys.list() })))
}

pub(super) async fn issue(
    State(shared): State<Shared>,
    method: Method,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, Problem> {
    shared.admit(&method, &headers, Scope::Admin)?;
    let bytes = whole(body, 4 * 1024).await?;
    let wanted: Wanted = serde_json::from_slice(&bytes).map_err(|error| {
        Problem::new(StatusCode::BAD_REQUEST, "json", error.to_string())
            .remedy(r#"send {"id": "reader", "scopes": ["watch", "answer"]}"#)
    })?;
    if wanted.expires.is_some_and(|expires| expires <= shared.gateway.clock.now()) {
        let message = "the key would have run out before it is issued";
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "expires", message)
            .remedy("give a time that is still to come"));
    }
    let Wanted { id, scopes, expires } = &wanted;
    let issued = shared.gateway.keys.issue_until(id, scopes, *expires);
    let key = issued.map_err(|error| Problem::internal(&error))?.ok_or_else(|| {
        Problem::new(StatusCode::CONFLICT, "key", "this name cannot be given to a key").remedy(
            "take another one: 1 to 32 small letters, digits and hyphens; at most 1,024 keys",
        )
    })?;
    Ok(Json(json!({
        "schema": "banister.key/v1", "id": id, "scopes": scopes, "expires": expires, "key": key,
    })))
}

pub(super) async fn revoke(
    State(shared): State<Shared>,
    Path(key): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    shared.admit(&method, &headers, Scope::Admin)?;
    match shared.gateway.keys.revoke(&key) {
        Ok(true) => Ok(StatusCode::NO_CONTENT),
        Ok(false) => Err(Problem::new(StatusCode::NOT_FOUND, "key", "there is no such key")),
        Err(error) => Err(Problem::internal(&error)),
    }
}
