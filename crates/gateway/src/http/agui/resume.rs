//! What `resume` answers: the asks that a session waits for.
//!
//! All of it is looked at before any of it counts. The first answer to an ask wins, whichever door it comes through: an
//! entry for an ask that was answered elsewhere is taken, and told how that one ended. Only what would count needs the
//! right to answer.

use banister_events::activity::{Answer, AskKind, Reply};
use banister_events::agui::input::{answers, suited};
use banister_journal::Kind;
use http::StatusCode;
use serde_json::{Value, json};

use crate::attach::{UNFIT, UNKNOWN};
use crate::desk::{Opened, Refused};
use crate::facts::{AskFact, CloseFact};
use crate::http::{Problem, Shared};
use crate::keys::{Guest, Scope};

/// How an entry stands before it counts.
enum InterruptState {
    Open(Box<Opened>),
    Over(Option<CloseFact>),
}

/// Gives the answers of an input; says what became of each.
pub(super) async fn settle(
    shared: &Shared,
    guest: &Guest,
    session: &str,
    input: &Value,
) -> Result<Vec<Value>, Problem> {
    let mut entries = Vec::new();
    for (index, answer) in answers(input).into_iter().enumerate() {
        let state = state_of(shared, session, &answer.token).await?.ok_or_else(|| {
            let message = format!("nothing called {:?} was asked here", answer.token);
            let place = format!("/resume/{index}/interruptId");
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "resume", message)
                .at(UNKNOWN.code, &place)
                .remedy(UNKNOWN.remedy)
        })?;
        entries.push((answer, state));
    }
    let counts = entries.iter().any(|(_, state)| matches!(state, InterruptState::Open(_)));
    if counts && !guest.may(Scope::Answer) {
        let message = "this key may not answer, and the session waits for an answer";
        return Err(Problem::new(StatusCode::FORBIDDEN, "scope", message)
            .remedy("resume with a key that carries the scope answer, or once it was answered"));
    }
    let mut told = Vec::new();
    for (index, (answer, state)) in entries.into_iter().enumerate() {
        let interrupt = answer.token.clone();
        let (fact, late) = match state {
            InterruptState::Over(fact) => (fact, true),
            InterruptState::Open(opened) => match given(shared, guest, answer, &opened).await {
                Ok(fact) => (Some(fact), false),
                Err(Refused::Late(fact)) => (Some(fact), true),
                Err(Refused::Unfit | Refused::Another) => {
                    let message = format!("this is no answer to {interrupt}");
                    let place = format!("/resume/{index}/payload");
                    return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "resume", message)
                        .at(UNFIT.code, &place)
                        .remedy(UNFIT.remedy));
                }
                Err(error) => {
                    tracing::warn!(%error, "An answer was not recorded.");
                    let message = "the answer could not be recorded and does not count";
                    return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "journal", message)
                        .remedy("send it again; the gateway's log tells more")
                        .retry_in(1));
                }
            },
        };
        told.push(row(&interrupt, fact.as_ref(), late));
    }
    Ok(told)
}

async fn given(
    shared: &Shared,
    guest: &Guest,
    mut answer: Answer,
    opened: &Opened,
) -> Result<CloseFact, Refused> {
    let desk = &shared.gateway.desk;
    if answer.reply == Reply::Withdraw && matches!(opened.ask.kind, AskKind::Clarification { .. }) {
        return desk.withdraw(&opened.ask.id).await;
    }
    answer.token.clone_from(&opened.ask.token);
    desk.reply(&suited(answer, &opened.ask), shared.door.name, &guest.key).await
}

/// How an interrupt of a session stands; none where nothing of that name was asked in it.
async fn state_of(
    shared: &Shared,
    session: &str,
    interrupt: &str,
) -> Result<Option<InterruptState>, Problem> {
    let gateway = &shared.gateway;
    let mut inbox = gateway.desk.inbox().into_iter();
    let open = inbox.find(|open| open.ask.id == interrupt && open.session == session);
    if let Some(opened) = open {
        return Ok(Some(InterruptState::Open(Box::new(opened))));
    }
    let (mut seq, mut asked, mut closed) = (0, false, None);
    loop {
        let batch = gateway.session_after(session, seq).await;
        let batch = batch.map_err(|error| Problem::internal(&error))?;
        let Some(newest) = batch.last() else { break };
        seq = newest.seq;
        for record in &batch {
            match record.kind {
                Kind::Ask => {
                    let fact = serde_json::from_slice::<AskFact>(&record.body);
                    asked |= fact.is_ok_and(|fact| fact.ask.id == interrupt);
                }
                Kind::Answer | Kind::Expiry | Kind::Withdrawal => {
                    let fact = serde_json::from_slice::<CloseFact>(&record.body).ok();
                    closed = fact.filter(|fact| fact.ask == interrupt).or(closed);
                }
                _ => {}
            }
        }
    }
    Ok(asked.then_some(InterruptState::Over(closed)))
}

fn row(interrupt: &str, fact: Option<&CloseFact>, late: bool) -> Value {
    let mut row = json!({ "interruptId": interrupt, "counted": !late });
    if let (Some(fact), Some(row)) = (fact, row.as_object_mut()) {
        row.insert("outcome".to_owned(), json!(fact.outcome));
        row.insert("by".to_owned(), json!(fact.by));
    }
    row
}
