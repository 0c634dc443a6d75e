//! Who follows: comes, is cut off, comes back where it was.

use std::sync::{Arc, Mutex};

use banister_events::check::Checker;
use banister_events::event::Protocol;
use banister_events::finding::Severity;
use banister_events::frame::sse;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use super::house::{House, Who};

/// What a stream is followed as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Aaep,
    Aep,
    /// AAEP, under the terms of a subscription.
    Subscribed,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Aaep, Self::Aep, Self::Subscribed];

    fn protocol(self) -> Protocol {
        if self == Self::Aep { Protocol::Aep } else { Protocol::Aaep }
    }
}

/// One event as it came: its id on the wire, and the event.
pub(super) type Seen = (String, String);

/// One who follows everything from the start.
#[derive(Debug)]
pub(super) struct Watcher {
    pub(super) kind: Kind,
    pub(super) seen: Arc<Mutex<Vec<Seen>>>,
    task: Option<AbortHandle>,
}

impl Watcher {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, seen: Arc::default(), task: None }
    }

    pub(super) fn is_here(&self) -> bool {
        self.task.is_some()
    }

    /// Comes, or comes back.
    pub(super) fn come(&mut self, house: &House) {
        let (house, kind, seen) = (house.clone(), self.kind, Arc::clone(&self.seen));
        let tasks = house.gateway.tasks.clone();
        self.task =
            Some(tasks.spawn(async move { watch(&house, kind, &seen).await }).abort_handle());
    }

    /// Is cut off: the last few events may never have arrived.
    pub(super) fn cut(&mut self, lost: usize) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
        let mut seen = self.seen.lock().unwrap();
        let left = seen.len().saturating_sub(lost);
        seen.truncate(left);
    }
}

async fn watch(house: &House, kind: Kind, seen: &Mutex<Vec<Seen>>) {
    let path = match kind {
        Kind::Aaep => "/aaep/v1/events?from=start".to_owned(),
        Kind::Aep => "/aep/v0.1/events?from=start".to_owned(),
        Kind::Subscribed => {
            let request = json!({
                "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "sim",
                "capabilities": { "languages": ["en"] },
            });
            let answer = house
                .ask(Who::Person, "POST /aaep/v1/subscriptions", &[], request.to_string().into())
                .await;
            let id = answer.json()["subscription_id"].as_str().unwrap_or("none").to_owned();
            format!("/aaep/v1/events?from=start&subscription_id={id}")
        }
    };
    let last = seen.lock().unwrap().last().map(|(id, _)| id.clone());
    let headers: Vec<(&str, &str)> = last.iter().map(|id| ("last-event-id", id.as_str())).collect();
    let response = house.knock(Who::Person, &format!("GET {path}"), &headers, Vec::new()).await;
    assert_eq!(response.status(), 200);
    let mut body = response.into_body();
    let mut parser = sse::Parser::new(1 << 24);
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(data) = frame.into_data() else { continue };
        parser.push(&data).unwrap();
        while let Some(message) = parser.next() {
            if let Some(id) = message.id {
                seen.lock().unwrap().push((id.clone(), message.data.clone()));
            }
        }
    }
}

/// A session attached to as an AG-UI run; what is wrong with what came, if anything is.
pub(super) async fn attach(house: House, session: String) -> Option<String> {
    let input = json!({ "threadId": "t", "runId": "r", "messages": [] });
    let line = format!("POST /agui/sessions/{session}");
    let response = house.knock(Who::Person, &line, &[], input.to_string().into()).await;
    assert_eq!(response.status(), 200);
    let mut body = response.into_body();
    let (mut parser, mut checker) = (sse::Parser::new(1 << 24), Checker::new(Protocol::Agui));
    let mut wrong = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(data) = frame.into_data() else { continue };
        parser.push(&data).unwrap();
        while let Some(message) = parser.next() {
            wrong.extend(checker.message(message.data.as_bytes()));
        }
    }
    wrong.extend(checker.finish());
    wrong.retain(|finding| finding.rule.severity == Severity::Error);
    wrong.first().map(|finding| format!("AG-UI of {session}: {finding:?}"))
}

/// That a whole stream keeps to its protocol.
pub(super) fn conformant(kind: Kind, seen: &[Seen]) {
    let mut checker = Checker::new(kind.protocol());
    for (id, data) in seen {
        let found = checker.message(data.as_bytes());
        let wrong = found.iter().find(|finding| finding.rule.severity == Severity::Error);
        assert!(wrong.is_none(), "{kind:?} at {id}: {wrong:?}: {data}");
    }
}

/// That a watcher saw what one saw who was never cut off.
pub(super) fn same(kind: Kind, seen: &[Seen], whole: &[Seen]) {
    let names = |seen: &[Seen]| -> Vec<String> {
        if kind != Kind::Subscribed {
            return seen.iter().map(|(id, data)| format!("{id} {data}")).collect();
        }
        // What was held back when it was cut off may come again, under the same id.
        let mut known = std::collections::HashSet::new();
        let id = |(_, data): &Seen| {
            let event: Value = serde_json::from_str(data).unwrap();
            event["event_id"].as_str().unwrap().to_owned()
        };
        seen.iter().map(id).filter(|id| known.insert(id.clone())).collect()
    };
    let (seen, whole) = (names(seen), names(whole));
    let differs = seen.iter().zip(&whole).position(|(one, other)| one != other);
    assert!(
        seen == whole,
        "{kind:?}: {} of {} events; the first other one is {differs:?}: {:?} for {:?}",
        seen.len(),
        whole.len(),
        differs.map(|at| &seen[at]),
        differs.map(|at| &whole[at]),
    );
}
