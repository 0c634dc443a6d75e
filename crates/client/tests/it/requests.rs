//! JSON both ways, and every way of being refused.

use std::time::Duration;

use banister_client::{Answer, Client, Endpoint, Error};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::server::{Server, reply};

#[tokio::test]
async fn json_goes_both_ways_over_a_unix_socket_and_over_tcp() {
    let echo = |asked: &crate::server::Asked| reply(200, asked.body.clone());
    for server in [Server::unix(echo), Server::tcp(echo).await] {
        let body = json!({"z": 1, "a": ["ü", null]});
        assert_eq!(server.client().post("/aep/v0.1/events", &body).await.expect("posted"), body);
        let asked = server.asked().remove(0);
        assert_eq!(asked.line, "POST /aep/v0.1/events");
        assert_eq!(asked.header("authorization"), Some("Bearer bk_test"));
        assert_eq!(asked.header("content-type"), Some("application/json"));
        assert_eq!(asked.header("accept"), Some("application/json"));
        let host = match &server.endpoint {
            Endpoint::Http(authority) => authority.as_str(),
            _ => "banister",
        };
        assert_eq!(asked.header("host"), Some(host));
    }
}

#[tokio::test]
async fn a_response_without_a_body_is_null() {
    let server = Server::unix(|_| reply(202, ""));
    assert_eq!(server.client().get("/x?y=1").await.expect("got"), Value::Null);
    let asked = server.asked().remove(0);
    assert_eq!((asked.line.as_str(), asked.header("content-type")), ("GET /x?y=1", None));
}

#[tokio::test]
async fn refusals_have_their_own_kinds_and_a_line_for_people() {
    let server = Server::unix(|asked| {
        let status = asked.line.rsplit('/').next().and_then(|text| text.parse().ok());
        reply(status.expect("a status"), r#"{"error":{"message":"no\u001b[2J\nmore"}}"#)
    });
    let client = server.client();
    let refused = async |status: u16| client.get(&format!("/{status}")).await.expect_err("refused");
    let said = "no⟨U+001B⟩[2J";
    assert!(matches!(refused(401).await, Error::Unauthorized { message } if message == said));
    assert!(matches!(refused(403).await, Error::Forbidden { message } if message == said));
    assert!(matches!(refused(404).await, Error::NotFound { message } if message == said));
    for other in [302, 409, 500] {
        let error = refused(other).await;
        assert!(
            matches!(&error, Error::Status { status, message } if *status == other && message == said),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn the_line_for_people_comes_from_wherever_the_body_has_it() {
    for (body, expected) in [
        (r#"{"message":"in message"}"#, "in message"),
        (r#"{"error":"in error"}"#, "in error"),
        ("plain text\nsecond line", "plain text"),
        ("", "not found"),
        (r#"{"unrelated":1}"#, r#"{"unrelated":1}"#),
    ] {
        let server = Server::unix(move |_| reply(404, body));
        match server.client().get("/").await {
            Err(Error::NotFound { message }) => assert_eq!(message, expected),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_body_that_is_not_json_is_an_error() {
    let server = Server::unix(|_| reply(200, "<html>"));
    assert!(matches!(server.client().get("/").await, Err(Error::Json(_))));
}

#[tokio::test]
async fn a_web_page_in_place_of_an_answer_is_told_by_its_first_words() {
    let page = "<html><head><title>Sign in to the proxy</title></head></html>";
    let server = Server::unix(move |_| {
        let mut response = reply(200, page);
        response.headers_mut().insert("content-type", "text/html; charset=utf-8".parse().unwrap());
        response
    });
    let error = server.client().get("/api/inbox").await.expect_err("a page");
    assert!(matches!(&error, Error::WebPage { words } if words == "Sign in to the proxy"));
    assert!(error.to_string().contains("(“Sign in to the proxy”); is a proxy in between?"));
    let refused = Server::unix(move |_| reply(502, page));
    let error = refused.client().get("/").await.expect_err("refused");
    assert!(error.to_string().ends_with("502: a web page: Sign in to the proxy"), "{error}");
}

#[tokio::test]
async fn a_body_over_the_limit_is_not_read() {
    let server = Server::unix(|_| reply(200, Bytes::from(vec![b' '; 64 * 1024 * 1024 + 1])));
    let error = server.client().get("/").await.expect_err("too large");
    assert!(matches!(error, Error::TooLarge { limit: 67_108_864 }), "{error:?}");
}

#[tokio::test]
async fn without_a_gateway_the_error_says_how_to_start_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let client = Client::new(Endpoint::Unix(directory.path().join("none")), "k");
    let error = client.inbox().await.expect_err("nobody there");
    assert!(matches!(error, Error::NoGateway { .. }));
    assert!(error.to_string().ends_with("start it with: banister serve"), "{error}");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let client = Client::new(Endpoint::Http(address.to_string()), "k");
    assert!(matches!(client.get("/").await, Err(Error::NoGateway { .. })));
}

#[tokio::test]
async fn a_gateway_that_says_nothing_is_not_waited_for() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let address = listener.local_addr().expect("an address");
    let client = Client::new(Endpoint::Http(address.to_string()), "k")
        .with_timeout(Duration::from_millis(50));
    assert!(matches!(client.get("/").await, Err(Error::TimedOut(_))));
}

#[tokio::test]
async fn a_gateway_that_hangs_up_is_an_error() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let address = listener.local_addr().expect("an address");
    let hanging_up = tokio::spawn(async move { drop(listener.accept().await) });
    let client = Client::new(Endpoint::Http(address.to_string()), "k");
    assert!(matches!(client.get("/").await, Err(Error::Http(_))));
    hanging_up.await.expect("no panic");
}

#[tokio::test]
async fn what_cannot_be_asked_is_not_sent() {
    let server = Server::unix(|_| reply(200, "{}"));
    for path in ["", "x", "http://elsewhere/", "/a b", "/\r\nX: y"] {
        let error = server.client().get(path).await.expect_err(path);
        assert!(matches!(error, Error::Protocol { .. }), "{path:?}: {error:?}");
    }
    let client = Client::new(server.endpoint.clone(), "a\r\nX: y");
    assert!(matches!(client.get("/").await, Err(Error::Key)));
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn the_inbox_lists_open_asks_with_all_that_is_said_of_them() {
    let listing = json!({"schema": "banister.inbox.v1", "asks": [
        {"id": "ask_1", "summary": "rm -r build", "deadline": "2030-01-01T00:00:00Z"},
        {"id": "ask_2"},
    ]});
    let server = Server::unix(move |_| reply(200, listing.to_string()));
    let asks = server.client().inbox().await.expect("listed");
    let ids: Vec<&str> = asks.iter().map(|ask| ask.id.as_str()).collect();
    assert_eq!(ids, ["ask_1", "ask_2"]);
    assert_eq!(asks[0].details.get("summary"), Some(&json!("rm -r build")));
    assert_eq!(server.asked()[0].line, "GET /api/inbox");
}

#[tokio::test]
async fn an_inbox_of_another_shape_is_an_error() {
    let server = Server::unix(|_| reply(200, r#"{"asks":[{"no":"id"}]}"#));
    assert!(matches!(server.client().inbox().await, Err(Error::Json(_))));
}

#[tokio::test]
async fn answers_are_sent_and_late_ones_are_told_so() {
    let server = Server::unix(|asked| match asked.line.as_str() {
        "POST /api/asks/ask_1/answer" => reply(200, r#"{"state":"answered"}"#),
        _ => reply(409, r#"{"message":"expired a minute ago"}"#),
    });
    let client = server.client();
    let said = client.answer("ask_1", &Answer::accept()).await.expect("in time");
    assert_eq!(said, json!({"state": "answered"}));
    let late = client.answer("ask/../2", &Answer::reject("no")).await;
    assert!(matches!(late, Err(Error::TooLate { message }) if message == "expired a minute ago"));
    let [first, second] = &server.asked()[..] else { panic!("two requests") };
    assert_eq!(first.body, r#"{"decision":"accept"}"#);
    assert_eq!(second.line, "POST /api/asks/ask%2F%2E%2E%2F2/answer");
    assert_eq!(second.body, r#"{"decision":"reject","message":"no"}"#);
}

#[tokio::test]
async fn a_client_does_not_show_its_key() {
    let client = Client::new(Endpoint::Http("h:1".into()), "bk_secret");
    assert!(!format!("{client:?}").contains("secret"));
}
