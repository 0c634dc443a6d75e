//! Keys are issued and revoked. The key itself is told once, to whoever asks for it.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use http::{HeaderMap, Method, StatusCode};
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
    let issued = shared.gateway.keys.issue(&wanted.id, &wanted.scopes);
    let key = issued.map_err(|error| Problem::internal(&error))?.ok_or_else(|| {
        Problem::new(StatusCode::CONFLICT, "key", "this name cannot be given to a key").remedy(
            "take another one: 1 to 32 small letters, digits and hyphens; at most 1,024 keys",
        )
    })?;
    Ok(Json(json!({ "schema": "banister.key/v1", "id": wanted.id, "key": key })))
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
