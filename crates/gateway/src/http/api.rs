//! What programs ask: the inbox, answers, more time, sessions, login links. JSON in, JSON out, with a `schema` each.

use std::num::NonZeroU32;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use banister_events::activity::{AskKind, ResponseKind};
use banister_events::event::time_text;
use banister_events::text;
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use serde::Deserialize;
use serde_json::{Number, Value, json};

use super::body::whole;
use super::{Problem, Shared};
use crate::desk::{AnswerRequest, ExtendRequest, Opened, PersonAnswer, Refused};
use crate::keys::Scope;
use crate::policy::{Grant, GrantScope};
use crate::reads::blocking;

/// The longest word to the agent.
pub(super) const MESSAGE_CHARS: usize = 4_000;
/// The longest answer to a question: what AAEP takes.
pub(super) const TEXT_CHARS: usize = 16_384;

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
        "deadline": ask.deadline.map(time_text).filter(|_| opened.handoff.is_none()),
        "limit": opened.limit.map(time_text),
        "extendable": opened.is_extendable(),
        "default": opened.default_word(),
        "waiting": opened.waiting,
        "pushed": opened.sender.is_some(),
        "digest": ask.digest,
        "kind": kind_of(opened),
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
        if let Some(words) = &ask.words {
            fields.insert("words".into(), json!(words));
        }
        if let Some(schema) = opened.response_schema() {
            fields.insert("response_schema".into(), schema.clone());
        }
        if let Some(handoff) = &opened.handoff {
            fields.insert("handoff".into(), json!(handoff));
        }
        match &ask.kind {
            AskKind::Confirmation => {}
            AskKind::Plan { text } => drop(fields.insert("plan".into(), json!(text))),
            AskKind::Clarification { question, kinds, choices, context, default } => {
                let takes: Vec<&str> = match kinds.as_slice() {
                    [] => vec![ResponseKind::Freetext.name()],
                    kinds => kinds.iter().map(|kind| kind.name()).collect(),
                };
                fields.insert("question".into(), json!(question));
                fields.insert("takes".into(), json!(takes));
                fields.insert("choices".into(), json!(choices));
                fields.insert("context".into(), json!(context));
                fields.insert("default_response".into(), json!(default));
            }
        }
    }
    row
}

/// What kind of thing waits, in a word.
fn kind_of(opened: &Opened) -> &'static str {
    match &opened.ask.kind {
        _ if opened.handoff.is_some() => "handoff",
        AskKind::Confirmation => "confirmation",
        AskKind::Clarification { .. } => "clarification",
        AskKind::Plan { .. } => "plan",
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct AnswerBody {
    /// `accept`, `reject`, `yes` or `no`.
    decision: Option<String>,
    /// One of the choices.
    choice: Option<String>,
    number: Option<Number>,
    text: Option<String>,
    message: Option<String>,
    /// The digest of the action the person saw; where it is given it must be the one that is asked about.
    digest: Option<String>,
    /// Where a yes counts from now on without being asked: `project`, `session` or `always`.
    remember: Option<GrantScope>,
}

impl AnswerBody {
    /// The one answer in it.
    fn person_answer(&self) -> Result<PersonAnswer, Problem> {
        let unknown = |what: String| {
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "decision", what).remedy(
                "answer with one of decision (accept, reject, yes, no), choice, number, text",
            )
        };
        let decision = self.decision.as_deref().map(|word| match word {
            "accept" => Ok(PersonAnswer::Accept),
            "reject" => Ok(PersonAnswer::Reject),
            "yes" => Ok(PersonAnswer::Yes),
            "no" => Ok(PersonAnswer::No),
            other => Err(unknown(format!("{other:?} is not a decision"))),
        });
        let text = |text: &str| text::shorten(text, TEXT_CHARS).into_owned();
        let mut answers = [
            decision.transpose()?,
            self.choice.clone().map(PersonAnswer::Choice),
            self.number.clone().map(PersonAnswer::Number),
            self.text.as_deref().map(text).map(PersonAnswer::Text),
        ]
        .into_iter()
        .flatten();
        match (answers.next(), answers.next()) {
            (Some(answer), None) => Ok(answer),
            (None, _) => Err(unknown("there is no answer in this".to_owned())),
            (Some(_), Some(_)) => Err(unknown("there is more than one answer in this".to_owned())),
        }
    }
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
    let answer: AnswerBody = serde_json::from_slice(&bytes).map_err(|error| {
        Problem::new(StatusCode::BAD_REQUEST, "json", error.to_string())
            .remedy(r#"send {"decision": "accept" or "reject", "message": "…"}"#)
    })?;
    let person_answer = answer.person_answer()?;
    let message = answer.message.map(|message| text::shorten(&message, MESSAGE_CHARS).into_owned());
    let (door, digest) = (shared.door.name, answer.digest);
    let gateway = &shared.gateway;
    let grant = match answer.remember {
        None => None,
        Some(_) if !matches!(person_answer, PersonAnswer::Accept | PersonAnswer::Yes) => {
            return Err(not_granted("only a yes can be remembered"));
        }
        Some(scope) => {
            let opened = gateway.desk.opened(&ask).map_err(|refused| problem(&refused))?;
            let grant = gateway.grantable(&opened, scope, &guest.key);
            Some(grant.map_err(|why| not_granted(why.to_string()))?)
        }
    };
    let request = AnswerRequest { answer: person_answer, message, door, key: guest.key, digest };
    let fact = gateway.desk.answer(&ask, &request).await.map_err(|refused| problem(&refused))?;
    let mut told = json!({
        "schema": "banister.answer/v1", "ask": fact.ask, "outcome": fact.outcome, "by": fact.by,
    });
    if let Some((grant, told)) = grant.zip(told.as_object_mut()) {
        // The answer stands, whatever becomes of the grant.
        match gateway.grant(&grant, door).await {
            Ok(()) => told.insert("grant".into(), grant_row(&grant)),
            Err(why) => told.insert("not_granted".into(), json!(why.to_string())),
        };
    }
    Ok(Json(told))
}

fn not_granted(why: impl Into<String>) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "grant", why)
        .remedy("answer without remembering it, or write a rule")
}

/// A standing permission, as people and programs read it.
fn grant_row(grant: &Grant) -> Value {
    json!({
        "id": grant.id,
        "covers": text::visible(&grant.covers.to_string()),
        "scope": grant.scope,
        "project": grant.project,
        "session": grant.session,
        "agent": grant.agent,
        "rule": grant.rule,
        "ask": grant.ask,
        "by": grant.by,
        "since": time_text(grant.since),
        "until": time_text(grant.until),
    })
}

pub(super) async fn grants(
    State(shared): State<Shared>,
    method: Method,
    headers: HeaderMap,
) -> Result<Json<Value>, Problem> {
    shared.admit(&method, &headers, Scope::Watch)?;
    let gateway = &shared.gateway;
    let grants: Vec<Value> =
        gateway.policy_store.grants(gateway.clock.now()).iter().map(grant_row).collect();
    Ok(Json(json!({ "schema": "banister.grants/v1", "grants": grants })))
}

pub(super) async fn revoke(
    State(shared): State<Shared>,
    Path(grant): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Result<Json<Value>, Problem> {
    let guest = shared.admit(&method, &headers, Scope::Answer)?;
    let revoked = shared.gateway.revoke(&grant, shared.door.name, &guest.key).await;
    match revoked.map_err(|error| Problem::internal(&error))? {
        Some(grant) => Ok(Json(json!({ "schema": "banister.revocation/v1", "grant": grant.id }))),
        None => Err(Problem::new(
            StatusCode::NOT_FOUND,
            "grant",
            format!("no grant, or more than one, is called {grant:?}"),
        )
        .remedy("GET /api/grants lists them")),
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Extend {
    /// By how much; by as much again as there was, where nothing is said.
    seconds: Option<NonZeroU32>,
    digest: Option<String>,
}

pub(super) async fn extend(
    State(shared): State<Shared>,
    Path(ask): Path<String>,
    method: Method,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, Problem> {
    let guest = shared.admit(&method, &headers, Scope::Answer)?;
    let bytes = whole(body, 64 * 1024).await?;
    let bytes = if bytes.is_empty() { Bytes::from_static(b"{}") } else { bytes };
    let Extend { seconds, digest } = serde_json::from_slice(&bytes).map_err(|error| {
        Problem::new(StatusCode::BAD_REQUEST, "json", error.to_string())
            .remedy(r#"send {"seconds": 300}, or {}"#)
    })?;
    let by = seconds.map(|seconds| Duration::from_secs(seconds.get().into()));
    let request = ExtendRequest { by, door: shared.door.name, key: guest.key, digest };
    match shared.gateway.desk.extend(&ask, &request).await {
        Ok(opened) => Ok(Json(json!({
            "schema": "banister.extend/v1",
            "ask": opened.ask.id,
            "deadline": opened.ask.deadline.map(time_text),
            "limit": opened.limit.map(time_text),
            "extendable": opened.is_extendable(),
        }))),
        Err(refused) => Err(problem(&refused)),
    }
}

pub(super) fn problem(refused: &Refused) -> Problem {
    let (status, code) = match refused {
        Refused::Unknown(_) => (StatusCode::NOT_FOUND, "ask"),
        Refused::Ambiguous(..) => (StatusCode::BAD_REQUEST, "ambiguous"),
        Refused::Late(_) => (StatusCode::CONFLICT, "late"),
        Refused::Unfit | Refused::Wrong(_) => (StatusCode::UNPROCESSABLE_ENTITY, "unfit"),
        Refused::Limit(_) => (StatusCode::UNPROCESSABLE_ENTITY, "limit"),
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
