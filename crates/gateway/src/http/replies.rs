//! The answers to what was asked in pushed events, for the program that pushed them.
//!
//! Each protocol has a message for it already: AAEP its replies, AEP its hook responses, AG-UI the entries of `resume`.
//! They are streamed as they are, for one session of the key's own, from its beginning or from where the reader stopped.
//! Only what a person said is told: when the time is over, every protocol knows its own default.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use banister_events::activity::{self, Ask, AskKind, Outcome, What};
use banister_events::event::Protocol;
use banister_events::frame::sse;
use banister_events::{aaep, aep, agui, id};
use banister_journal::{Kind, Record};
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::body::fed;
use super::streams::event_stream;
use super::{Problem, Shared};
use crate::Gateway;
use crate::facts::{AskFact, CloseFact};
use crate::keys::Scope;

const KEEP_ALIVE: Duration = Duration::from_secs(10);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReplyQuery {
    /// The session, as the receipt of a push names it.
    session: Option<String>,
}

pub(super) async fn aaep(
    State(shared): State<Shared>,
    Query(ReplyQuery { session }): Query<ReplyQuery>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    replies(&shared, Protocol::Aaep, session, None, (&method, &headers)).await
}

pub(super) async fn aep(
    State(shared): State<Shared>,
    Query(ReplyQuery { session }): Query<ReplyQuery>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    replies(&shared, Protocol::Aep, session, None, (&method, &headers)).await
}

pub(super) async fn agui(
    State(shared): State<Shared>,
    Path(thread): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    replies(&shared, Protocol::Agui, None, Some(thread), (&method, &headers)).await
}

async fn replies(
    shared: &Shared,
    protocol: Protocol,
    session: Option<String>,
    thread: Option<String>,
    (method, headers): (&Method, &HeaderMap),
) -> Result<Response, Problem> {
    let guest = shared.admit(method, headers, Scope::Emit)?;
    let own = |thread: String| id::derive("s_", &[&guest.key, protocol.name(), &thread]);
    let session = session.or_else(|| thread.map(own)).unwrap_or_default();
    let first = shared.gateway.session_after(&session, 0).await;
    let first = first.map_err(|error| Problem::internal(&error))?;
    // Whose session it is stands in its records; of another's nothing is told, not even that it is there.
    if first.first().is_none_or(|record| record.source.key != guest.key) {
        return Err(Problem::new(StatusCode::NOT_FOUND, "session", "there is no such session")
            .remedy("name the session as the receipt of a push does, with the key that pushed"));
    }
    let seen = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let after = seen.and_then(|seen| seen.parse().ok()).unwrap_or_default();
    let (out, body) = fed();
    let (gateway, stop) = (Arc::clone(&shared.gateway), shared.stop.clone());
    shared.gateway.tasks.spawn(async move {
        let tail = ReplyTail { protocol, session, after, asked: HashMap::new() };
        tokio::select! {
            () = stop.cancelled() => {}
            () = gateway.keys.gone(&guest) => {}
            () = tail.run(&gateway, &out) => {}
        }
    });
    Ok(event_stream(Body::new(body)))
}

/// One session, read for answers.
struct ReplyTail {
    protocol: Protocol,
    session: String,
    /// The number of the last record whose answer was seen.
    after: u64,
    asked: HashMap<String, AskFact>,
}

impl ReplyTail {
    async fn run(mut self, gateway: &Gateway, out: &mpsc::Sender<Bytes>) {
        let mut bell = gateway.hub.bell();
        let mut seq = 0;
        loop {
            bell.borrow_and_update();
            let mut frames = Vec::new();
            loop {
                let batch = match gateway.session_after(&self.session, seq).await {
                    Ok(batch) => batch,
                    Err(error) => {
                        tracing::error!(%error, "Answers could not be read.");
                        return;
                    }
                };
                let Some(newest) = batch.last() else { break };
                seq = newest.seq;
                for record in &batch {
                    self.read(gateway, record, &mut frames).await;
                }
            }
            if !frames.is_empty() && out.send(Bytes::from(frames)).await.is_err() {
                return;
            }
            tokio::select! {
                () = out.closed() => return,
                rung = tokio::time::timeout(KEEP_ALIVE, bell.changed()) => match rung {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) => return,
                    Err(_) => {
                        let mut frame = Vec::new();
                        sse::comment(&mut frame, "still here");
                        if out.send(Bytes::from(frame)).await.is_err() {
                            return;
                        }
                    }
                },
            }
        }
    }

    async fn read(&mut self, gateway: &Gateway, record: &Record, frames: &mut Vec<u8>) {
        match record.kind {
            Kind::Ask => {
                if let Ok(fact) = serde_json::from_slice::<AskFact>(record.exact()) {
                    self.asked.insert(fact.ask.id.clone(), fact);
                }
            }
            Kind::Answer | Kind::Expiry | Kind::Withdrawal => {
                let Ok(fact) = serde_json::from_slice::<CloseFact>(&record.body) else { return };
                let Some(asked) = self.asked.remove(&fact.ask) else { return };
                if record.kind != Kind::Answer || record.seq <= self.after {
                    return;
                }
                // What the capture level leaves out of the record is still on the desk.
                let fact = match gateway.desk.closed(&fact.ask) {
                    Some(known) => known,
                    None if gateway.desk.knows(&fact.ask) => gateway.desk.outcome(&fact.ask).await,
                    None => fact,
                };
                let Some(reply) = reply(self.protocol, &asked, &fact, record) else { return };
                let (data, number) = (reply.to_string(), record.seq.to_string());
                let message = sse::Outgoing { id: Some(&number), event: None, data: &data };
                sse::write(frames, &message);
            }
            _ => {}
        }
    }
}

/// An answer in the words of the protocol that it was asked in; `None` where that has none for it.
fn reply(protocol: Protocol, asked: &AskFact, fact: &CloseFact, record: &Record) -> Option<Value> {
    let sender = asked.sender.as_ref().filter(|sender| sender.protocol == protocol)?;
    if asked.handoff.is_some() {
        return None;
    }
    let ask = Ask { token: sender.token.clone(), ..asked.ask.clone() };
    let closed = What::AskClosed {
        id: ask.id.clone(),
        action: ask.action.clone(),
        outcome: fact.outcome,
        by: fact.by.clone(),
        message: fact.message.clone(),
        response: fact.response.clone(),
        updated_input: None,
    };
    match protocol {
        Protocol::Agui => agui::input::resume(&ask, &closed),
        Protocol::Aep => {
            let closed = in_words(&ask, closed, fact);
            let name =
                id::derive("rsp_", &[&record.session, &sender.token, &record.seq.to_string()]);
            Some(aep::response::response(&ask, &closed, &sender.token, &name, record.time))
        }
        Protocol::Aaep => {
            let reply = match (&fact.response, fact.outcome) {
                (Some(response), _) => activity::Reply::Respond { response: response.clone() },
                (None, Outcome::Accepted) => activity::Reply::Accept { updated_input: None },
                (None, _) => activity::Reply::Reject,
            };
            let answer = activity::Answer {
                token: sender.token.clone(),
                reply,
                by: Some("user:banister".to_owned()),
                message: fact.message.clone(),
                time: Some(record.time),
            };
            let subscription = id::derive("sub_", &[&record.session]);
            let mut reply = aaep::reply::write(&ask, &answer, Some(&subscription), record.time)?;
            // Exactly as it was asked, whatever it looks like.
            if let Some(fields) = reply.as_object_mut() {
                fields.insert("reply_token".to_owned(), json!(sender.token));
            }
            Some(reply)
        }
    }
}

/// A hook response has no field for the answer to a question but its message.
fn in_words(ask: &Ask, closed: What, fact: &CloseFact) -> What {
    match (closed, &fact.response, &ask.kind) {
        (
            What::AskClosed { id, action, outcome, by, updated_input, .. },
            Some(response),
            AskKind::Clarification { .. },
        ) => {
            let message = match response {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let (message, response) = (Some(message), Some(response.clone()));
            What::AskClosed { id, action, outcome, by, message, response, updated_input }
        }
        (closed, ..) => closed,
    }
}
