//! Events pushed, and answers waited for.

use std::time::Duration;

use banister_client::{Error, Outbox, Status};
use serde_json::json;

use crate::server::{Server, reply};

#[tokio::test]
async fn events_go_one_a_line_and_every_one_has_its_receipt() {
    let server = Server::unix(|_| {
        reply(
            200,
            r#"{"schema":"banister.push/v1","results":[
                {"index":0,"status":"recorded","session":"s_1","position":4},
                {"index":1,"status":"refused","session":"s_1","position":5,"findings":[{"code":"AGUI-SEQ-01"}]}]}"#,
        )
    });
    let events = [json!({ "type": "A", "text": "a\nb" }), json!({ "type": "B" })];
    let outbox = Outbox::agui("a thread/ü").once("push-1");
    let receipts = server.client().emit(&outbox, &events).await.expect("pushed");
    assert_eq!(receipts.len(), 2);
    assert_eq!((receipts[0].status, receipts[0].position), (Status::Recorded, Some(4)));
    assert_eq!(receipts[1].status, Status::Refused);
    assert_eq!(receipts[1].findings[0]["code"], "AGUI-SEQ-01");
    let asked = server.asked().remove(0);
    assert_eq!(asked.line, "POST /agui/threads/a%20thread%2F%C3%BC/events");
    assert_eq!(asked.header("content-type"), Some("application/x-ndjson"));
    assert_eq!(asked.header("idempotency-key"), Some("push-1"));
    assert_eq!(asked.body.lines().count(), 2);
    assert!(server.client().emit(&Outbox::aep(), &[]).await.expect("nothing").is_empty());
    assert_eq!(server.asked().len(), 1, "nothing is not sent");
}

#[tokio::test]
async fn an_answer_counts_only_for_the_event_that_was_asked_about() {
    let event = json!({ "id": "evt_1" });
    let wait = Duration::from_secs(5);
    for (status, body, good) in [
        (200, r#"{"request_event_id":"evt_1","control":{"behavior":"allow"}}"#, true),
        (200, r#"{"request_event_id":"evt_2","control":{"behavior":"allow"}}"#, false),
        (200, r#"{"control":{"behavior":"allow"}}"#, false),
        (422, r#"{"request_event_id":"evt_1","control":{"behavior":"deny"}}"#, false),
    ] {
        let server = Server::unix(move |_| reply(status, body));
        let answer = server.client().decide(&event, wait).await;
        assert_eq!(answer.is_ok(), good, "{answer:?}");
        let asked = server.asked().remove(0);
        assert_eq!(asked.line, "POST /aep/v0.1/decide");
        assert_eq!(asked.header("banister-deadline-ms"), Some("5000"));
    }
    let nameless = Server::unix(|_| reply(200, r#"{"control":{"behavior":"allow"}}"#));
    let answer = nameless.client().decide(&json!({}), wait).await;
    assert!(matches!(answer, Err(Error::Protocol { .. })), "{answer:?}");
}
