//! The incidents of others, tried here: what a web page, another program, an agent or a former guest could do at a port
//! of this machine. The numbers are those under which the incidents were published.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::*;
use crate::clock::Clock;
use crate::desk::Decided;
use crate::ingest::Pushing;
use crate::pipeline::Incoming;
use crate::serve::{self, Serving};
use crate::{Gateway, Settings};

#[path = "attack_tests/limits.rs"]
mod limits;

/// Long enough for a machine that is busy.
const SOON: Duration = Duration::from_secs(20);
const SCOPES: [Scope; 4] = [Scope::Emit, Scope::Watch, Scope::Answer, Scope::Admin];

/// What a door asks of whoever knocks.
#[derive(Debug, Clone, Copy)]
enum Needs {
    /// Nothing: it tells nothing that is worth anything.
    Nothing,
    /// It is shut to everybody.
    Shut,
    /// A key with one of these scopes.
    Any(&'static [Scope]),
}

const EMIT: Needs = Needs::Any(&[Scope::Emit]);
const WATCH: Needs = Needs::Any(&[Scope::Watch]);
const ANSWER: Needs = Needs::Any(&[Scope::Answer]);
const ADMIN: Needs = Needs::Any(&[Scope::Admin]);

/// Every route there is. One that is not here fails the test below.
const DOORS: &[(&str, &str, Needs)] = &[
    ("POST", "/hooks/{agent}/{event}", EMIT),
    ("GET", "/aaep/v1/events", WATCH),
    ("POST", "/aaep/v1/events", EMIT),
    ("GET", "crate::manifest::PATH", Needs::Nothing),
    ("POST", "/aaep/v1/subscriptions", WATCH),
    ("DELETE", "/aaep/v1/subscriptions/{id}", WATCH),
    ("PATCH", "/aaep/v1/subscriptions/{id}", WATCH),
    // Other terms are a watcher's, replies an answerer's: which it is stands in the body.
    ("POST", "/aaep/v1/replies", Needs::Any(&[Scope::Watch, Scope::Answer])),
    ("GET", "/aaep/v1/replies", EMIT),
    ("GET", "/aaep/v1/ws", WATCH),
    ("POST", "/aaep/v1/messages", Needs::Shut),
    ("GET", "/aep/v0.1/events", WATCH),
    ("POST", "/aep/v0.1/events", EMIT),
    ("POST", "/aep/v0.1/decide", EMIT),
    ("GET", "/aep/v0.1/replies", EMIT),
    ("POST", "/agui/threads/{thread}/events", EMIT),
    ("GET", "/agui/threads/{thread}/resume", EMIT),
    ("POST", "/agui/sessions/{session}", WATCH),
    // Whoever runs an agent hears it and speaks to it: no one scope is enough.
    ("POST", "/agui/upstreams/{name}", Needs::Any(&[])),
    ("GET", "/api/inbox", WATCH),
    ("POST", "/api/asks/{ask}/answer", ANSWER),
    ("POST", "/api/asks/{ask}/extend", ANSWER),
    ("GET", "/api/grants", WATCH),
    ("DELETE", "/api/grants/{grant}", ANSWER),
    ("GET", "/api/sessions", WATCH),
    ("GET", "/api/keys", ADMIN),
    ("POST", "/api/keys", ADMIN),
    ("DELETE", "/api/keys/{key}", ADMIN),
    ("POST", "/api/login-links", ADMIN),
    ("GET", "/", WATCH),
    ("POST", "/asks/{ask}/answer", ANSWER),
    ("POST", "/asks/{ask}/extend", ANSWER),
    ("GET", "/sessions/{session}", WATCH),
    // By a code that works once, and by the cookie that goes.
    ("GET", "/login", Needs::Nothing),
    ("POST", "/logout", Needs::Nothing),
    ("GET", "/app.css", Needs::Nothing),
    ("GET", "/healthz", Needs::Nothing),
    ("GET", "/readyz", Needs::Nothing),
    ("GET", "/metrics", WATCH),
];

/// The routes that the router is given, as its source has them.
fn routes() -> Vec<(String, String)> {
    let source = include_str!("../http.rs");
    let mut routes = Vec::new();
    for part in source.split(".route(").skip(1) {
        let mut depth = 1;
        let end = part.find(|c| {
            depth += match c {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
            depth == 0
        });
        let (path, handlers) = part.split_at(end.unwrap()).0.split_once(',').unwrap();
        let path = path.trim().trim_matches('"').to_owned();
        for method in ["get", "post", "put", "patch", "delete", "any"] {
            let call = format!("{method}(");
            let called = handlers.match_indices(&call).any(|(at, _)| {
                let before = handlers.split_at(at).0.chars().next_back();
                before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':')
            });
            if called {
                routes.push((method.to_uppercase(), path.clone()));
            }
        }
    }
    routes
}

/// A path that can be sent.
fn path(route: &str) -> String {
    if route == "crate::manifest::PATH" {
        return crate::manifest::PATH.to_owned();
    }
    let filled = |part: &str| if part.starts_with('{') { "x1".to_owned() } else { part.to_owned() };
    route.split('/').map(filled).collect::<Vec<_>>().join("/")
}

struct House {
    _dir: tempfile::TempDir,
    gateway: Arc<Gateway>,
    serving: Serving,
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn read(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        Self { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    fn code(&self) -> String {
        let body: Value = serde_json::from_str(&self.body).unwrap_or_default();
        body["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

impl House {
    async fn open() -> Self {
        Self::with(Pushing { rate: 0, ..Pushing::default() }).await
    }

    async fn with(push: Pushing) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings { push, ..Settings::new(dir.path().join("data")) };
        let gateway = Gateway::open(settings, Clock::default()).unwrap();
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let serving = serve::start(&gateway, any, &dir.path().join("s")).await.unwrap();
        Self { _dir: dir, gateway, serving }
    }

    fn key(&self, name: &str, scopes: &[Scope]) -> String {
        self.gateway.keys.issue(name, scopes).unwrap().unwrap()
    }

    fn host(&self) -> String {
        format!("{HOST_NAME}:{}", self.serving.address.port())
    }

    /// Sends a request as it is; the connection stays open.
    async fn raw(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.serving.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    /// One request and the beginning of its answer: streams do not end.
    async fn send(&self, line: &str, headers: &str, body: &str) -> Answer {
        let host = self.host();
        let host =
            if headers.contains("Host:") { String::new() } else { format!("Host: {host}\r\n") };
        let length = body.len();
        let request = format!(
            "{line} HTTP/1.1\r\n{host}{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        first(&mut self.raw(&request).await).await
    }

    async fn send_with(&self, line: &str, key: &str, body: &str) -> Answer {
        self.send(line, &bearer(key), body).await
    }

    /// A browser that has signed in: its cookie, and the token that its forms carry.
    fn browser(&self) -> (String, String) {
        let keys = &self.gateway.keys;
        let cookie = keys.log_in(&keys.login_code().unwrap()).unwrap().unwrap();
        let csrf = keys.browser(&cookie).unwrap().csrf.unwrap();
        (format!("Cookie: {SESSION_COOKIE}={cookie}\r\n"), csrf)
    }

    /// An agent waits for an answer: the id of its ask, and what it is told in the end.
    async fn ask(&self) -> (String, tokio::task::JoinHandle<Decided>) {
        let payload = json!({
            "session_id": "one", "cwd": "/src", "hook_event_name": "PreToolUse",
            "tool_name": "Bash", "tool_use_id": "toolu_1",
            "tool_input": { "command": "git push --force origin main" },
        });
        let incoming = Incoming::of_claude("PreToolUse", &payload);
        let accepted = self.gateway.accept(&incoming).await.unwrap();
        let id = self.gateway.desk.inbox()[0].ask.id.clone();
        let gateway = Arc::clone(&self.gateway);
        let waiting = self.gateway.tasks.spawn(async move {
            gateway.desk.decide(accepted.gate.as_ref(), accepted.ask.as_deref()).await
        });
        (id, waiting)
    }

    /// A WebSocket, if the door opens it.
    async fn socket(&self, headers: &str) -> (Answer, TcpStream) {
        let request = format!(
            "GET /aaep/v1/ws HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Sec-WebSocket-Protocol: aaep.v1\r\n{headers}\r\n",
            self.host()
        );
        let mut stream = self.raw(&request).await;
        (first(&mut stream).await, stream)
    }
}

fn bearer(key: &str) -> String {
    format!("Authorization: Bearer {key}\r\n")
}

/// The head of an answer, and as much of its body as its length says.
async fn first(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    let read = async {
        loop {
            let answer = Answer::read(&bytes);
            let length = answer.head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length = length.and_then(|length| length.parse().ok()).unwrap_or(0);
            let headed = bytes.windows(4).any(|four| four == b"\r\n\r\n");
            if headed && answer.body.len() >= length {
                return;
            }
            if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                return;
            }
        }
    };
    timeout(SOON, read).await.expect("an answer in time");
    Answer::read(&bytes)
}

/// Waits until a stream ends, whatever it says before that: by its last chunk, or with its connection.
async fn ends(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    let end = async {
        while !rest.ends_with(b"0\r\n\r\n") && stream.read_buf(&mut rest).await.unwrap_or(0) > 0 {}
    };
    timeout(SOON, end).await.expect("the stream ends");
}

/// A text frame as a client sends it.
fn frame(text: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x81];
    match text.len() {
        short @ 0..126 => frame.push(0x80 | u8::try_from(short).unwrap()),
        long => {
            frame.push(0x80 | 127);
            frame.extend((long as u64).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(text);
    frame
}

/// CVE-2025-49596, CVE-2026-25593: doors that ask for nothing.
#[tokio::test]
async fn every_door_asks_for_its_scope_and_takes_no_other() {
    let mut told: Vec<(String, String)> =
        DOORS.iter().map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned())).collect();
    let mut there = routes();
    assert!(there.len() > 25, "the routes were read: {there:?}");
    told.sort();
    there.sort();
    assert_eq!(told, there, "every route has a row in DOORS, and every row a route");

    let house = House::open().await;
    let keys: Vec<(Option<Scope>, String)> =
        std::iter::once((None, house.key("none", &[])))
            .chain(SCOPES.map(|scope| {
                (Some(scope), house.key(&format!("{scope:?}").to_lowercase(), &[scope]))
            }))
            .collect();
    for (method, route, needs) in DOORS {
        let line = format!("{method} {}", path(route));
        let mut without = Vec::new();
        for headers in ["", "Authorization: Bearer bk_person_wrong\r\n"] {
            without.push(house.send(&line, headers, "{}").await.status);
        }
        match needs {
            Needs::Any(_) => assert_eq!(without, [401, 401], "{line}"),
            Needs::Shut => assert_eq!(without, [404, 404], "{line}"),
            Needs::Nothing => assert!(!without.contains(&403), "{line}: {without:?}"),
        }
        for (scope, key) in &keys {
            let answer = house.send_with(&line, key, "{}").await;
            for header in ["cache-control: no-", "x-content-type-options: nosniff"] {
                assert!(answer.head.contains(header), "{line}: {answer:?}");
            }
            // Others' subscriptions and none at all are told alike.
            let inside = !matches!(answer.status, 401 | 403)
                || answer.body.contains("You have no such subscription.");
            match needs {
                Needs::Any(wanted) => {
                    let may = scope.is_some_and(|scope| wanted.contains(&scope));
                    assert_eq!(inside, may, "{line} with {scope:?}: {answer:?}");
                    assert!(may || answer.status == 403, "{line} with {scope:?}: {answer:?}");
                }
                Needs::Shut => assert_eq!(answer.status, 404, "{line} with {scope:?}"),
                Needs::Nothing => {}
            }
        }
    }
}

/// CVE-2025-52882, CVE-2026-25253: any web page could talk to a port of this machine.
#[tokio::test]
async fn no_door_opens_to_a_foreign_origin_and_none_invites_one() {
    let house = House::open().await;
    let key = house.key("all", &SCOPES);
    let port = house.serving.address.port();
    let foreign = [
        "Origin: https://evil.example".to_owned(),
        "Origin: null".to_owned(),
        format!("Origin: https://{HOST_NAME}:{port}"),
        format!("Origin: http://{HOST_NAME}"),
        format!("Origin: http://{HOST_NAME}:{port}.evil.example"),
        format!("Origin: http://evil.example/{HOST_NAME}:{port}"),
        format!("Origin: http://127.0.0.1:{port}"),
        "Sec-Fetch-Site: cross-site".to_owned(),
        "Sec-Fetch-Site: same-site".to_owned(),
    ];
    for (method, route, _) in DOORS {
        let line = format!("{method} {}", path(route));
        for header in &foreign {
            let headers = format!("{}{header}\r\n", bearer(&key));
            let answer = house.send(&line, &headers, "{}").await;
            assert_eq!(answer.status, 403, "{line}, {header}: {answer:?}");
            assert!(!answer.head.contains("access-control"), "{line}: {answer:?}");
        }
        // What a browser asks before it sends: nobody is invited, from nowhere.
        let asks = "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization\r\n";
        let own = format!("Origin: http://{}\r\n{asks}", house.host());
        for headers in [format!("Origin: https://evil.example\r\n{asks}"), own.clone()] {
            let answer = house.send(&format!("OPTIONS {}", path(route)), &headers, "").await;
            assert!(matches!(answer.status, 403 | 405), "{line}: {answer:?}");
            assert!(!answer.head.contains("access-control"), "{line}: {answer:?}");
        }
        let answer = house.send(&line, &format!("{}{own}", bearer(&key)), "{}").await;
        assert!(!answer.head.contains("access-control"), "{line}: {answer:?}");
    }
    for header in &foreign {
        let (answer, _) = house.socket(&format!("{}{header}\r\n", bearer(&key))).await;
        assert_eq!(answer.status, 403, "{header}: {answer:?}");
    }
}

/// CVE-2025-52882: a browser's socket says where it comes from. One that has a browser's cookie and does not is none.
#[tokio::test]
async fn a_browsers_socket_has_to_say_where_it_comes_from() {
    let house = House::open().await;
    let (cookie, _) = house.browser();
    let (answer, _) = house.socket(&cookie).await;
    assert_eq!((answer.status, answer.code()), (403, "origin".to_owned()), "{answer:?}");
    let own = format!("{cookie}Origin: http://{}\r\n", house.host());
    assert_eq!(house.socket(&own).await.0.status, 101);
    // A program with a key of its own has no origin.
    let key = house.key("reader", &[Scope::Watch]);
    assert_eq!(house.socket(&bearer(&key)).await.0.status, 101);
    assert_eq!(house.socket("").await.0.status, 401);
}

/// CVE-2025-66414, CVE-2026-11624: a name of the attacker's that leads to this machine.
#[tokio::test]
async fn no_door_opens_under_another_name() {
    let house = House::open().await;
    let key = house.key("all", &SCOPES);
    let port = house.serving.address.port();
    for (method, route, _) in DOORS {
        let line = format!("{method} {}", path(route));
        for host in [
            format!("evil.example:{port}"),
            "evil.example".to_owned(),
            HOST_NAME.to_owned(),
            format!("{HOST_NAME}:1"),
            format!("{HOST_NAME}:{port}@evil.example"),
            format!("{HOST_NAME}.:{port}"),
            format!("evil.{HOST_NAME}:{port}"),
            format!("0.0.0.0:{port}"),
            "banister".to_owned(),
            String::new(),
        ] {
            let headers = format!("Host: {host}\r\n{}", bearer(&key));
            let answer = house.send(&line, &headers, "{}").await;
            assert!(matches!(answer.status, 400 | 403), "{line}, {host:?}: {answer:?}");
        }
    }
    // Without any, twice, and with another one in the request's line.
    let key = bearer(&key);
    let host = house.host();
    for request in [
        format!("GET /api/inbox HTTP/1.1\r\n{key}Connection: close\r\n\r\n"),
        format!("GET /api/inbox HTTP/1.0\r\n{key}\r\n"),
        format!(
            "GET /api/inbox HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\n{key}Connection: close\r\n\r\n"
        ),
        format!(
            "GET http://evil.example/api/inbox HTTP/1.1\r\nHost: {host}\r\n{key}Connection: close\r\n\r\n"
        ),
    ] {
        let answer = first(&mut house.raw(&request).await).await;
        assert!(matches!(answer.status, 400 | 403), "{request}: {answer:?}");
    }
}

/// CVE-2026-28472: a key counted because it was there. CVE-2026-10281: no key was set, so none was asked for.
#[tokio::test]
async fn a_key_counts_only_if_it_is_known() {
    let house = House::open().await;
    let key = house.key("reader", &[Scope::Watch]);
    let (cookie, _) = house.browser();
    assert_eq!(house.send("GET /api/inbox", &cookie, "").await.status, 200);
    for header in [
        "Authorization: Bearer wrong".to_owned(),
        "Authorization: Bearer ".to_owned(),
        "Authorization:".to_owned(),
        "Authorization: Bearer null".to_owned(),
        format!("Authorization: {key}"),
        format!("Authorization: Basic {key}"),
        format!("Authorization: bearer{key}"),
        format!("Authorization: Bearer {key}x"),
        format!("Authorization: Bearer {}", key.split_at(key.len() - 1).0),
        format!("Authorization: Bearer {}", key.to_uppercase()),
        format!("Authorization: Bearer {key}, Bearer {key}"),
        format!("X-Api-Key: {key}"),
        format!("Proxy-Authorization: Bearer {key}"),
        format!("Cookie: {SESSION_COOKIE}={key}"),
        format!("Cookie: {SESSION_COOKIE}="),
    ] {
        let answer = house.send("GET /api/inbox", &format!("{header}\r\n"), "").await;
        assert_eq!(answer.status, 401, "{header}: {answer:?}");
        if header.starts_with("Authorization") {
            // A good cookie beside it does not help.
            let answer = house.send("GET /api/inbox", &format!("{header}\r\n{cookie}"), "").await;
            assert_eq!(answer.status, 401, "{header}: {answer:?}");
        }
    }
    // With no key left at all, nobody comes in.
    for name in ["agent", "person", "reader"] {
        assert!(house.gateway.keys.revoke(name).unwrap());
    }
    for headers in [String::new(), bearer(""), bearer(&key)] {
        assert_eq!(house.send("GET /api/sessions", &headers, "").await.status, 401);
    }
}

/// GHSA-rqpp-rjj8-7wv8: clients said themselves what they may do.
#[tokio::test]
async fn what_a_client_says_it_may_do_counts_for_nothing() {
    let house = House::open().await;
    let key = bearer(&house.key("reader", &[Scope::Watch]));
    let claims = "Scope: admin answer emit\r\nX-Banister-Scopes: admin,answer,emit\r\nX-Scopes: [\"admin\"]\r\n";
    let body = json!({
        "id": "mine", "scopes": ["admin"], "scope": "admin", "decision": "accept", "key": "person",
    });
    for line in [
        "POST /api/keys",
        "POST /api/keys?scope=admin&scopes=admin",
        "DELETE /api/keys/agent",
        "POST /api/login-links?scopes=admin",
        "POST /api/asks/a/answer?scope=answer",
        "POST /aep/v0.1/events?scope=emit",
    ] {
        let answer = house.send(line, &format!("{key}{claims}"), &body.to_string()).await;
        assert_eq!(answer.status, 403, "{line}: {answer:?}");
    }
    assert_eq!(house.gateway.keys.guest("mine"), None);
    // Nor in the handshake.
    let asking = json!({
        "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "reader",
        "scopes": ["answer"], "capabilities": {},
    });
    let answer = house.send("POST /aaep/v1/subscriptions", &key, &asking.to_string()).await;
    assert_eq!(answer.status, 400, "{answer:?}");
    let reply = json!({ "type": "confirmation.reply", "reply_token": "x", "decision": "accept" });
    let answer = house.send("POST /aaep/v1/replies", &key, &reply.to_string()).await;
    assert_eq!((answer.status, answer.code()), (403, "scope".to_owned()), "{answer:?}");
}

/// A link that was seen in a history, a log or over a shoulder.
#[tokio::test]
async fn a_login_link_lets_one_in_however_many_come_at_once() {
    let house = Arc::new(House::open().await);
    let code = house.gateway.keys.login_code().unwrap();
    let mut coming = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let (house, line) = (Arc::clone(&house), format!("GET /login?code={code}"));
        coming.spawn(async move { house.send(&line, "", "").await });
    }
    let answers = coming.join_all().await;
    let inside: Vec<_> = answers.iter().filter(|answer| answer.status == 303).collect();
    assert_eq!(inside.len(), 1, "{answers:?}");
    assert!(answers.iter().all(|answer| matches!(answer.status, 303 | 401)), "{answers:?}");
    // Where it leads to has no code in it, and neither has anything that is told.
    assert!(inside[0].head.contains("\r\nlocation: /\r\n"), "{:?}", inside[0]);
    assert!(answers.iter().all(|answer| !answer.body.contains(&code)));
    let late = house.send(&format!("GET /login?code={code}"), "", "").await;
    assert!(late.status == 401 && !late.head.contains("set-cookie"), "{late:?}");
}

/// A key or a session in a URL would be in histories and logs.
#[tokio::test]
async fn nothing_opens_by_what_stands_in_the_url() {
    let house = House::open().await;
    let key = house.key("all", &SCOPES);
    let (cookie, csrf) = house.browser();
    let cookie = cookie.trim().rsplit('=').next().unwrap().to_owned();
    for name in ["key", "token", "access_token", "authorization", "code", "session", SESSION_COOKIE]
    {
        for value in [&key, &cookie, &csrf] {
            for route in ["/api/inbox", "/aaep/v1/events", "/aep/v0.1/events", "/", "/metrics"] {
                let answer = house.send(&format!("GET {route}?{name}={value}"), "", "").await;
                assert!(matches!(answer.status, 400 | 401), "{route}?{name}: {answer:?}");
            }
        }
    }
}

/// Leash 61c46b2: the agent reached the doors of whoever watches it.
#[tokio::test]
async fn an_agents_key_answers_nothing_at_any_door() {
    let house = House::open().await;
    let agent = std::fs::read_to_string(house.gateway.keys.file("agent.key")).unwrap();
    let watcher = house.key("watcher", &[Scope::Watch]);
    let (ask, waiting) = house.ask().await;
    let digest = house.gateway.desk.inbox()[0].ask.digest.clone();
    let token = house.gateway.desk.inbox()[0].ask.token.clone();
    let reply = json!({
        "type": "confirmation.reply", "reply_token": token, "decision": "accept",
        "subscription_id": "sub_1", "timestamp": "2026-11-15T09:00:00Z",
    });
    let resume = json!({
        "threadId": "t", "runId": "r", "state": {}, "messages": [], "tools": [], "context": [],
        "forwardedProps": {}, "resume": [{ "interruptId": ask, "status": "resolved", "payload": true }],
    });
    let tries = [
        (format!("POST /api/asks/{ask}/answer"), json!({ "decision": "accept", "digest": digest })),
        ("POST /aaep/v1/replies".to_owned(), reply.clone()),
        ("POST /agui/sessions/x1".to_owned(), resume),
        (format!("POST /asks/{ask}/answer"), json!({})),
    ];
    for (line, body) in &tries {
        let answer = house.send_with(line, &agent, &body.to_string()).await;
        assert_eq!(answer.status, 403, "{line}: {answer:?}");
    }
    assert_eq!(house.socket(&bearer(&agent)).await.0.status, 403);
    // A watcher's key neither, also in a socket that it may open.
    for (line, body) in tries.iter().filter(|(line, _)| !line.contains("agui")) {
        let answer = house.send_with(line, &watcher, &body.to_string()).await;
        assert_eq!(answer.status, 403, "{line}: {answer:?}");
    }
    let (answer, mut socket) = house.socket(&bearer(&watcher)).await;
    assert_eq!(answer.status, 101, "{answer:?}");
    socket.write_all(&frame(reply.to_string().as_bytes())).await.unwrap();
    // What an agent pushes about itself is no answer either, whichever protocol it speaks.
    for (path, body) in [
        ("/aaep/v1/events", reply.clone()),
        (
            "/aep/v0.1/events",
            json!({
                "aep_version": "0.1", "request_event_id": "evt_1", "action_id": "toolu_1",
                "control": { "behavior": "allow" }, "decision": { "behavior": "allow", "by": "user" },
            }),
        ),
        (
            "/aep/v0.1/decide",
            json!({
                "aep_version": "0.1", "request_event_id": "evt_1", "control": { "behavior": "allow" },
            }),
        ),
    ] {
        let answer = house.send_with(&format!("POST {path}"), &agent, &body.to_string()).await;
        assert!(
            !answer.body.contains("\"recorded\"") && answer.status != 500,
            "{path}: {answer:?}"
        );
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!waiting.is_finished(), "somebody answered");
    assert_eq!(house.gateway.desk.inbox().len(), 1);
    // Whoever may, can.
    let person = house.key("human", &[Scope::Answer]);
    let answer = house.send_with(&tries[0].0, &person, &tries[0].1.to_string()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let decided = timeout(SOON, waiting).await.unwrap().unwrap();
    assert_eq!(decided.behavior, banister_events::aep::dialect::Behavior::Allow);
}

/// GHSA-84j6-jc92-77jm: a cursor told what was not for whoever sent it.
#[tokio::test]
async fn cursors_and_subscriptions_of_others_open_nothing() {
    let house = House::open().await;
    let (ours, theirs) = (house.key("ours", &[Scope::Watch]), house.key("theirs", &[Scope::Watch]));
    let asking = json!({
        "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "reader",
        "capabilities": {},
    })
    .to_string();
    let answer = house.send_with("POST /aaep/v1/subscriptions", &ours, &asking).await;
    let made: Value = serde_json::from_str(&answer.body).unwrap();
    let id = made["subscription_id"].as_str().unwrap();
    let place = format!("/aaep/v1/subscriptions/{id}");
    let close = json!({ "type": "subscription.close", "subscription_id": id }).to_string();
    let change = json!({ "capabilities": {} }).to_string();
    for (line, body) in [
        (format!("GET /aaep/v1/events?subscription_id={id}"), ""),
        (format!("DELETE {place}"), ""),
        (format!("PATCH {place}"), change.as_str()),
        ("POST /aaep/v1/replies".to_owned(), close.as_str()),
    ] {
        let answer = house.send_with(&line, &theirs, body).await;
        assert_eq!(answer.status, 403, "{line}: {answer:?}");
    }
    assert_eq!(house.send_with(&format!("DELETE {place}"), &ours, "").await.status, 204);
}

/// GHSA-m8wm-r5vq-qjpg: a key that was taken away still opened what was open.
#[tokio::test]
async fn a_revoked_key_is_out_of_every_stream_and_off_every_connection() {
    let house = House::open().await;
    let (key, kept) = (house.key("reader", &[Scope::Watch]), house.key("other", &[Scope::Watch]));
    let host = house.host();
    let request = |path: &str, key: &str| {
        format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{}\r\n", bearer(key))
    };
    let asking = json!({
        "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "reader",
        "capabilities": {},
    })
    .to_string();
    let answer = house.send_with("POST /aaep/v1/subscriptions", &key, &asking).await;
    let made: Value = serde_json::from_str(&answer.body).unwrap();
    let subscribed =
        format!("/aaep/v1/events?subscription_id={}", made["subscription_id"].as_str().unwrap());
    let mut streams = Vec::new();
    for path in ["/aep/v0.1/events", "/aaep/v1/events", &subscribed] {
        let mut stream = house.raw(&request(path, &key)).await;
        assert_eq!(first(&mut stream).await.status, 200, "{path}");
        streams.push(stream);
    }
    let (answer, mut socket) = house.socket(&bearer(&key)).await;
    assert_eq!(answer.status, 101);
    socket.write_all(&frame(asking.as_bytes())).await.unwrap();
    let (answer, quiet) = house.socket(&bearer(&key)).await;
    assert_eq!(answer.status, 101);
    streams.extend([socket, quiet]);
    // A connection that is kept: who it is is asked each time.
    let mut connection = house.raw(&request("/api/inbox", &key)).await;
    assert_eq!(first(&mut connection).await.status, 200);
    let mut others = house.raw(&request("/aep/v0.1/events", &kept)).await;
    assert_eq!(first(&mut others).await.status, 200);

    assert!(house.gateway.keys.revoke("reader").unwrap());
    connection.write_all(request("/api/inbox", &key).as_bytes()).await.unwrap();
    assert_eq!(first(&mut connection).await.status, 401);
    for mut stream in streams {
        let begun = Instant::now();
        ends(&mut stream).await;
        assert!(
            begun.elapsed() < Duration::from_secs(3),
            "a stream went on for {:?}",
            begun.elapsed()
        );
    }
    let mut byte = [0];
    let more = timeout(Duration::from_millis(200), others.read(&mut byte)).await;
    assert!(!matches!(more, Ok(Ok(0) | Err(_))), "nobody else's stream ends");
    // The same name again is another key: what was open under the old one stays shut.
    let again = house.key("reader", &[Scope::Watch]);
    assert_ne!(again, key);
    assert_eq!(house.send_with("GET /api/inbox", &key, "").await.status, 401);
}

/// What was open under a key does not go on under another of the same name.
#[tokio::test]
async fn a_name_that_is_given_again_does_not_keep_the_old_streams() {
    let house = House::open().await;
    let key = house.key("reader", &[Scope::Watch]);
    let request =
        format!("GET /aep/v0.1/events HTTP/1.1\r\nHost: {}\r\n{}\r\n", house.host(), bearer(&key));
    let mut stream = house.raw(&request).await;
    assert_eq!(first(&mut stream).await.status, 200);
    // Before the stream can look.
    assert!(house.gateway.keys.revoke("reader").unwrap());
    house.key("reader", &[Scope::Watch]);
    ends(&mut stream).await;
}

/// CVE-2026-25253: a page that makes a browser write.
#[tokio::test]
async fn a_browsers_writes_need_the_token_of_their_session_at_every_door() {
    let house = House::open().await;
    let (cookie, csrf) = house.browser();
    let (_, other) = house.browser();
    for (method, route, needs) in DOORS {
        let Needs::Any(_) = needs else { continue };
        if *method == "GET" {
            continue;
        }
        let line = format!("{method} {}", path(route));
        for token in ["", "X-Banister-Csrf: \r\n", &format!("X-Banister-Csrf: {other}\r\n")] {
            let answer = house.send(&line, &format!("{cookie}{token}"), "{}").await;
            // Forms carry theirs in the body, and this is none.
            assert!(matches!(answer.status, 400 | 403), "{line}, {token:?}: {answer:?}");
        }
    }
    let own = format!("{cookie}X-Banister-Csrf: {csrf}\r\n");
    assert_eq!(
        house.send("POST /api/asks/none/answer", &own, "{\"decision\":\"accept\"}").await.status,
        404
    );
    // Nobody else can sign a browser out.
    let form = format!("{cookie}Content-Type: application/x-www-form-urlencoded\r\n");
    let answer = house.send("POST /logout", &form, &format!("csrf={other}")).await;
    assert!(answer.status == 403 && !answer.head.contains("set-cookie"), "{answer:?}");
    assert_eq!(house.send("GET /api/inbox", &cookie, "").await.status, 200);
    assert_eq!(house.send("POST /logout", &form, &format!("csrf={csrf}")).await.status, 303);
    assert_eq!(house.send("GET /api/inbox", &cookie, "").await.status, 401);
}
