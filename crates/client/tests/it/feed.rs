//! Following across cuts.

use std::time::Duration;

use banister_client::{Error, Feed, Follow};
use http::Response;
use serde_json::{Value, json};

use crate::server::{Asked, Body, Server, reply};

fn events(text: &'static str) -> Response<Body> {
    let mut response = reply(200, text);
    response.headers_mut().insert("content-type", "text/event-stream".parse().expect("a value"));
    response
}

async fn names(feed: &mut Feed, count: usize) -> Vec<Value> {
    let mut told = Vec::new();
    for _ in 0..count {
        told.push(feed.next().await.expect("an event").event["n"].clone());
    }
    told
}

#[tokio::test]
async fn a_cut_stream_goes_on_after_the_last_event() {
    let server = Server::unix(|asked: &Asked| match asked.header("last-event-id") {
        None => events(
            ": hello\n\nid: e.1.0\ndata: {\"n\":1}\n\nid: e.2.0\ndata: {\"n\":2}\n\nid: e.3.0\nda",
        ),
        Some("e.2.0") => events("event: control\ndata: {}\n\nid: e.3.0\ndata: {\"n\":3}\n\n"),
        Some("e.3.0") => {
            let mut response = events("id: f.1.0\ndata: {\"n\":4}\n\n");
            let exhausted = "exhausted".parse().expect("a value");
            response.headers_mut().insert("banister-replay", exhausted);
            response
        }
        other => panic!("{other:?}"),
    });
    let mut feed = server.client().follow(Follow::aaep().session("s_1").language("es"));
    assert_eq!(names(&mut feed, 3).await, [json!(1), json!(2), json!(3)]);
    assert_eq!((feed.cursor(), feed.is_exhausted()), (Some("e.3.0"), false));
    assert_eq!(names(&mut feed, 1).await, [json!(4)]);
    assert!(feed.is_exhausted(), "the gateway said that something is missing");
    let asked = server.asked();
    assert!(asked.iter().all(|asked| asked.line == "GET /aaep/v1/events?session=s_1&lang=es"));
    assert_eq!(asked.len(), 3);
}

#[tokio::test]
async fn a_refusal_is_final_and_a_gateway_that_never_tells_anything_is_given_up() {
    let server = Server::unix(|_| reply(401, r#"{"error":{"message":"who are you?"}}"#));
    let refused = server.client().follow(Follow::aep()).next().await;
    assert!(matches!(refused, Err(Error::Unauthorized { .. })), "{refused:?}");
    assert_eq!(server.asked().len(), 1);

    let server = Server::unix(|_| events(": nothing\n\n"));
    let patience = Duration::from_millis(250);
    let ended = server.client().follow(Follow::aep()).with_patience(patience).next().await;
    assert!(matches!(ended, Err(Error::Protocol { .. })), "{ended:?}");
    assert!((2..10).contains(&server.asked().len()), "{}", server.asked().len());
}

#[tokio::test]
async fn a_subscription_that_the_gateway_lost_is_agreed_on_again() {
    let server = Server::unix(|asked: &Asked| {
        let wanted: Value = serde_json::from_str(&asked.body).unwrap_or_default();
        match asked.line.as_str() {
            "POST /aaep/v1/subscriptions" => {
                let pace = &wanted["capabilities"]["pace_wpm"];
                let id = if pace == 120 { "sub_2" } else { "sub_1" };
                reply(201, json!({ "subscription_id": id }).to_string())
            }
            "PATCH /aaep/v1/subscriptions/sub_1" => {
                reply(200, json!({ "subscription_id": "sub_1", "changed": true }).to_string())
            }
            "GET /aaep/v1/events?subscription_id=sub_1" => reply(404, "{}"),
            "GET /aaep/v1/events?subscription_id=sub_2" => {
                events("id: e.1.0.m\ndata: {\"n\":1}\n\n")
            }
            "DELETE /aaep/v1/subscriptions/sub_2" => reply(204, ""),
            other => panic!("{other}"),
        }
    });
    let client = server.client();
    let mut feed = client.subscribe("me", &json!({ "pace_wpm": 90 })).await.expect("agreed");
    feed.renegotiate(&json!({ "pace_wpm": 120 })).await.expect("changed");
    assert_eq!(feed.agreed().expect("terms")["changed"], true);
    assert_eq!(names(&mut feed, 1).await, [json!(1)]);
    feed.close().await.expect("closed");
    let nothing = client.follow(Follow::aep()).renegotiate(&json!({})).await;
    assert!(matches!(nothing, Err(Error::Protocol { .. })), "{nothing:?}");
}
