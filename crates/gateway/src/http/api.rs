//! What programs ask: the inbox, answers, sessions, login links. JSON in, JSON out, with a `schema` each.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use banister_events::activity::AskKind;
use banister_events::event::time_text;
use banister_events::text;
use http::{HeaderMap, Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::body::whole;
use super::{Problem, Shared};
use crate::deliver::blocking;
use crate::desk::{Opened, Refused, Reply};
use crate::keys::Scope;

/// The longest word to the agent.
pub(super) const MESSAGE_CHARS: usize = 4_000;

pub(super) async fn inbox(
    State(shared): State<Shared>,
    method: Method,
    headers: HeaderMap,
) -> Result<Json<Value>, Problem> {
    shared.admit(&method, &headers, Scope::Watch)?;
    let asks: Vec<Value> = shared.gateway.desk.inbox().iter().map(row).collect();
    Ok(Json(json!({ "schema": "banister.inbox/v1", "asks": asks })))
}

/// One open ask. What people see of the action is rendered from its input, with nothing hidden in it.
fn row(opened: &Opened) -> Value {
    let ask = &opened.ask;
    let mut row = json!({
        "id": ask.id,
        "agent": opened.context.agent_title(),
        "session": opened.session,
        "cwd": opened.context.cwd,
        "since": time_text(opened.since),
        "deadline": ask.deadline.map(time_text),
        "default": "reject",
        "waiting": opened.waiting,
        "digest": ask.digest,
        "kind": match ask.kind {
            AskKind::Confirmation => "confirmation",
            AskKind::Clarification { .. } => "clarification",
            AskKind::Plan { .. } => "plan",
        },
    });
    if let Some(fields) = row.as_object_mut() {
        if let Some(action) = &ask.action {
            fields.insert("tool".into(), json!(action.title()));
            fields.insert("action".into(), json!(action.id));
            fields.insert("subject".into(), json!(text::visible(&action.subject())));
            fields.insert("input".into(), json!(action.input));
            fields.insert("rationale".into(), json!(action.rationale));
        }
        if let Some(gate) = &ask.gate {
            fields.insert("gate".into(), json!(gate));
        }
    }
    row
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    decision: String,
    message: Option<String>,
    /// The digest of the action the person saw; where it is given it must be the one that is asked about.
    digest: Option<String>,
}

pub(super) async fn answer(
    State(shared): State<Shared>,
    Path(ask): Path<String>,
    method: Method,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, Problem> {
    let guest = shared.admit(&method, &headers, Scope::Answer)?;
    let bytes = whole(body, 64 * 1024).await?;
    let answer: Answer = serde_json::from_slice(&bytes).map_err(|error| {
        Problem::new(StatusCode::BAD_REQUEST, "json", error.to_string())
            .remedy(r#"send {"decision": "accept" or "reject", "message": "…"}"#)
    })?;
    let accept = match answer.decision.as_str() {
        "accept" => true,
        "reject" => false,
        other => {
            let message = format!("{other:?} is not an answer to a confirmation");
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "decision", message)
                .remedy("answer accept or reject"));
        }
    };
    let message = answer.message.map(|message| text::shorten(&message, MESSAGE_CHARS).into_owned());
    let (door, digest) = (shared.door.name, answer.digest);
    let reply = Reply { accept, message, door, key: guest.key, digest };
    match shared.gateway.desk.answer(&ask, &reply).await {
        Ok(fact) => Ok(Json(json!({
            "schema": "banister.answer/v1", "ask": fact.ask, "outcome": fact.outcome, "by": fact.by,
        }))),
        Err(refused) => Err(problem(&refused)),
    }
}

pub(super) fn problem(refused: &Refused) -> Problem {
    let (status, code) = match refused {
        Refused::Unknown(_) => (StatusCode::NOT_FOUND, "ask"),
        Refused::Ambiguous(..) => (StatusCode::BAD_REQUEST, "ambiguous"),
        Refused::Late(_) => (StatusCode::CONFLICT, "late"),
        Refused::Unfit => (StatusCode::UNPROCESSABLE_ENTITY, "unfit"),
        Refused::Another => (StatusCode::UNPROCESSABLE_ENTITY, "digest"),
        Refused::Journal(_) => (StatusCode::SERVICE_UNAVAILABLE, "journal"),
    };
    Problem::new(status, code, refused.to_string())
}

pub(super) async fn sessions(
    State(shared): State<Shared>,
    method: Method,
    headers: HeaderMap,
) -> Result<Json<Value>, Problem> {
    shared.admit(&method, &headers, Scope::Watch)?;
    let journal = shared.gateway.journal.clone();
    let rows = blocking(move || journal.sessions()).await.map_err(|e| Problem::internal(&e))?;
    let sessions: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "id": row.session, "agent": row.agent, "records": row.records,
                "first": time_text(row.first), "last": time_text(row.last),
            })
        })
        .collect();
    Ok(Json(json!({ "schema": "banister.sessions/v1", "sessions": sessions })))
}

pub(super) async fn login_link(
    State(shared): State<Shared>,
    method: Method,
    headers: HeaderMap,
) -> Result<Json<Value>, Problem> {
    shared.admit(&method, &headers, Scope::Admin)?;
    let url = shared.gateway.login_link().map_err(|e| Problem::internal(&e))?;
    Ok(Json(json!({ "schema": "banister.login-link/v1", "url": url })))
}
