//! A native payload in, the native answer out.
//!
//! The answer says how the hook must exit and what it must print: headers `Banister-Exit` and `Banister-Stderr-Length`,
//! and a body of stdout followed by stderr. Whatever goes wrong here, a hook that waits for a decision is told to refuse.

use std::time::Duration;

use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use banister_events::aep::dialect::{Answer, Behavior, Decision};
use banister_events::aep::mapping::Mapping;
use http::HeaderMap;
use http::header::CONTENT_TYPE;

use super::body::payload;
use super::{Problem, Shared};
use crate::keys::Scope;
use crate::pipeline::{Cut, Incoming, MISNAMED};
use crate::project::source_of;

/// How much earlier than the hook's own deadline an ask expires, so that the answer still arrives.
const MARGIN: Duration = Duration::from_secs(2);
/// The header that says how long the caller waits.
pub(super) const DEADLINE: &str = "banister-deadline-ms";
const LONGEST: Duration = Duration::from_hours(24);
const USUAL: Duration = Duration::from_mins(1);

pub(super) async fn hook(
    State(shared): State<Shared>,
    Path((agent, event)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    let guest = shared.admit(request.method(), request.headers(), Scope::Emit)?;
    let (parts, body) = request.into_parts();
    let (body, cut) = payload(body).await;
    let truncated = number(&parts.headers, "banister-truncated").map(Cut::TooLarge);
    let incoming = Incoming {
        agent,
        hook: event,
        door: shared.door.name,
        key: guest.key,
        event_id: idempotency_key(&parts.headers),
        body,
        cut: truncated.or(cut),
        wait: wait(&parts.headers),
        kept: None,
    };
    Ok(answer(&shared, &incoming)
        .await
        .map_or_else(|refusal| respond(&refusal), |answer| respond(&answer)))
}

async fn answer(shared: &Shared, incoming: &Incoming) -> Result<Answer, Answer> {
    let gateway = &shared.gateway;
    let mapping = gateway.agents.find(&incoming.agent);
    let accepted = gateway.accept(incoming).await.map_err(|error| {
        tracing::error!(%error, agent = incoming.agent, "A payload was not recorded.");
        unrecorded(mapping, &incoming.hook)
    })?;
    let decided = gateway.desk.decide(accepted.gate.as_ref(), accepted.ask.as_deref()).await;
    let first = accepted.records.first();
    let hook = first
        .and_then(|record| source_of(&gateway.agents, &record.source.protocol))
        .map_or(incoming.hook.as_str(), |(_, hook)| hook);
    let refusing = decided.behavior == Behavior::Deny;
    if accepted.gate.is_some_and(|gate| gate.rule == MISNAMED.code) {
        return Err(misnamed(mapping, incoming, &decided.message));
    }
    match mapping.and_then(|mapping| mapping.control(hook)) {
        Some(control) if !(refusing && control.answers.is_empty()) => {
            Ok(control.answer(decided.behavior, &decided.message))
        }
        _ if refusing => Err(Answer::refusal(&decided.message)),
        _ => Ok(Answer::silence()),
    }
}

/// Nobody can tell which hook the agent waits on: the answer is the one that stops it without being understood.
fn misnamed(mapping: Option<&Mapping>, incoming: &Incoming, message: &str) -> Answer {
    let fallback = mapping.and_then(|mapping| {
        let borne = serde_json::from_slice(&incoming.body).ok().and_then(|it| mapping.hook_of(&it));
        let names = [Some(incoming.hook.as_str()), borne.as_deref()];
        let is_named = |hook: &&str| names.iter().flatten().any(|it| it.eq_ignore_ascii_case(hook));
        let gated = mapping.gated_hooks().into_iter().find(is_named)?;
        let decision = Decision {
            behavior: Behavior::Deny,
            message: Some(message.to_owned()),
            ..Decision::default()
        };
        Some(mapping.control(gated)?.fallback.as_ref()?.render(&decision))
    });
    fallback.unwrap_or_else(|| Answer::refusal(message))
}

/// The journal did not take it: what waits for a decision is refused, the rest is told on stderr.
fn unrecorded(mapping: Option<&Mapping>, hook: &str) -> Answer {
    let message = "Banister could not record this, so it is refused. The gateway's log tells why.";
    match mapping {
        Some(mapping) if !mapping.gated_hooks().contains(&hook) && hook != "-" => Answer {
            exit: 0,
            stdout: String::new(),
            stderr: "Banister could not record this event. The gateway's log tells why.\n"
                .to_owned(),
        },
        Some(mapping) => match mapping.control(hook) {
            Some(control) => control.answer(Behavior::Deny, message),
            None => Answer::refusal(message),
        },
        None => Answer::refusal(message),
    }
}

fn respond(answer: &Answer) -> Response {
    let headers = [
        ("banister-exit", answer.exit.to_string()),
        ("banister-stderr-length", answer.stderr.len().to_string()),
    ];
    let mut body = answer.stdout.clone().into_bytes();
    body.extend_from_slice(answer.stderr.as_bytes());
    let kind =
        if answer.stderr.is_empty() { "application/json" } else { "application/octet-stream" };
    (headers, [(CONTENT_TYPE, kind)], body).into_response()
}

pub(super) fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}

fn wait(headers: &HeaderMap) -> Duration {
    wait_of(number(headers, DEADLINE))
}

/// How long a person has, where the caller waits so many milliseconds.
pub(super) fn wait_of(milliseconds: Option<u64>) -> Duration {
    let asked = milliseconds.map_or(USUAL, Duration::from_millis).min(LONGEST);
    asked.checked_sub(MARGIN).filter(|left| *left > MARGIN).unwrap_or(asked / 2)
}

pub(super) fn idempotency_key(headers: &HeaderMap) -> Option<String> {
    let key = headers.get("idempotency-key")?.to_str().ok()?;
    let fits = (1..=128).contains(&key.len())
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    fits.then(|| key.to_owned())
}
