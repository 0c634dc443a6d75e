//! Who may come in: keys and scopes, Host and Origin, login links, forms.

use serde_json::json;

use crate::support::{Gateway, command, stdout};

fn request(gateway: &Gateway, line: &str, headers: &str, body: &str) -> u16 {
    let host = gateway.address();
    let host = if headers.contains("Host:") { String::new() } else { format!("Host: {host}\r\n") };
    let length = body.len();
    let response = gateway.raw(&format!(
        "{line} HTTP/1.1\r\n{host}{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    ));
    response.status
}

#[test]
fn without_a_key_nothing_is_told_and_nothing_is_taken() {
    let gateway = Gateway::start();
    for line in [
        "GET /api/inbox",
        "GET /api/sessions",
        "GET /aaep/v1/events",
        "GET /aep/v0.1/events",
        "POST /agui/sessions/s_1",
        "POST /agui/upstreams/one",
        "POST /hooks/claude-code/PreToolUse",
        "POST /api/asks/a/answer",
        "POST /api/asks/a/extend",
        "POST /api/login-links",
        "GET /",
        "GET /sessions/s_1",
    ] {
        assert_eq!(request(&gateway, line, "", "{}"), 401, "{line}");
        assert_eq!(request(&gateway, line, "Authorization: Bearer wrong\r\n", "{}"), 401, "{line}");
    }
    assert_eq!(request(&gateway, "GET /healthz", "", ""), 200);
}

#[test]
fn an_agents_key_can_emit_and_nothing_else() {
    let gateway = Gateway::start();
    let agent = format!("Authorization: Bearer {}\r\n", gateway.key("agent.key"));
    let hook = gateway.hook("PreToolUse", command("t", "git push").to_string().as_bytes());
    let ask = gateway.asked();
    let accept = json!({ "decision": "accept" }).to_string();
    for line in [
        format!("POST /api/asks/{ask}/answer"),
        format!("POST /api/asks/{ask}/extend"),
        format!("POST /asks/{ask}/extend"),
        "GET /api/inbox".into(),
        "POST /api/login-links".into(),
        "GET /aaep/v1/events".into(),
        "POST /agui/upstreams/one".into(),
        "GET /".into(),
    ] {
        assert_eq!(request(&gateway, &line, &agent, &accept), 403, "{line}");
    }
    let person = format!("Authorization: Bearer {}\r\n", gateway.key("person.key"));
    let hooks = "POST /hooks/claude-code/Stop";
    assert_eq!(request(&gateway, hooks, &person, "{}"), 403, "a person's key does not emit");
    gateway.banister(&["answer", &ask, "reject"]);
    hook.wait_with_output().unwrap();
}

#[test]
fn foreign_hosts_and_origins_do_not_get_past_the_door() {
    let gateway = Gateway::start();
    let key = format!("Authorization: Bearer {}\r\n", gateway.key("person.key"));
    let port = gateway.address().rsplit(':').next().unwrap().to_owned();
    let inbox = "GET /api/inbox";
    assert_eq!(request(&gateway, inbox, &key, ""), 200);
    for bad in [
        "Host: evil.example\r\n".to_owned(),
        format!("Host: evil.example:{port}\r\n"),
        "Host: 127.0.0.1\r\n".to_owned(),
        "Host: 127.0.0.1:1\r\n".to_owned(),
        "Origin: https://evil.example\r\n".to_owned(),
        "Origin: null\r\n".to_owned(),
        format!("Origin: http://127.0.0.1:{port}.evil.example\r\n"),
        format!("Origin: http://localhost:{port}\r\n"),
        "Sec-Fetch-Site: cross-site\r\n".to_owned(),
        format!("Host: localhost:{port}\r\nHost: evil.example\r\n"),
    ] {
        let status = request(&gateway, inbox, &format!("{key}{bad}"), "");
        assert!(status == 403 || status == 400, "{bad}: {status}");
        assert_ne!(request(&gateway, "GET /healthz", &bad, ""), 200, "on every route: {bad}");
    }
    let same = format!("{key}Origin: http://127.0.0.1:{port}\r\n");
    assert_eq!(request(&gateway, inbox, &same, ""), 200);
}

#[test]
fn a_login_link_works_once_and_forms_need_their_token() {
    let gateway = Gateway::start();
    let printed = stdout(&gateway.banister(&["token", "login"]));
    let number = gateway.address().rsplit(':').next().unwrap().to_owned();
    // A host of its own, so that its cookie goes to no other port.
    let address = format!("banister.localhost:{number}");
    let path = printed.trim().split_once(&address).unwrap().1.to_owned();
    let login = |path: &str| {
        gateway.raw(&format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"))
    };
    let head = gateway
        .raw(&format!("HEAD {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"));
    assert_eq!(head.status, 405, "a look at the head must not spend the link");
    let first = login(&path);
    assert_eq!(first.status, 303, "{first:?}");
    assert!(
        first.head.contains("httponly") && first.head.contains("samesite=strict"),
        "{}",
        first.head
    );
    assert_eq!(login(&path).status, 401, "a link must not work twice");
    let cookie = first
        .head
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "))
        .and_then(|cookie| cookie.split(';').next())
        .unwrap()
        .to_owned();

    let hook = gateway.hook("PreToolUse", command("t", "git push").to_string().as_bytes());
    let ask = gateway.asked();
    let cookie = format!("Cookie: {cookie}\r\n");
    let page = gateway
        .raw(&format!("GET / HTTP/1.1\r\nHost: {address}\r\n{cookie}Connection: close\r\n\r\n"));
    assert_eq!(page.status, 200);
    assert!(page.head.contains("content-security-policy"), "{}", page.head);
    let field = |name: &str| {
        let at = page.body.find(&format!("name=\"{name}\" value=\"")).unwrap();
        page.body[at..].split('"').nth(3).unwrap().to_owned()
    };
    let (csrf, digest) = (field("csrf"), field("digest"));
    let cookie = format!("Host: {address}\r\n{cookie}");
    let form = format!("{cookie}Content-Type: application/x-www-form-urlencoded\r\n");
    let line = format!("POST /asks/{ask}/answer");
    let post = |csrf: &str, digest: &str| {
        let body = format!("csrf={csrf}&digest={digest}&decision=accept&message=");
        request(&gateway, &line, &form, &body)
    };
    assert_eq!(post("wrong", &digest), 403, "a forged form must not count");
    assert_eq!(post(&csrf, "other"), 409, "an answer to another action must not count");
    let json = format!("{cookie}Content-Type: application/json\r\n");
    let api = format!("POST /api/asks/{ask}/answer");
    assert_eq!(
        request(&gateway, &api, &json, "{\"decision\":\"accept\"}"),
        403,
        "nor one without the header"
    );
    assert_eq!(post(&csrf, &digest), 303);
    assert_eq!(crate::support::decision(&hook.wait_with_output().unwrap()).0, "allow");
    assert_eq!(post(&csrf, &digest), 409, "the second answer is late");
}

#[test]
fn an_answer_about_another_action_does_not_count_however_the_ask_is_named() {
    let gateway = Gateway::start();
    let hook = gateway.hook("PreToolUse", command("t", "git push").to_string().as_bytes());
    let ask = gateway.asked();
    let person = format!("Authorization: Bearer {}\r\n", gateway.key("person.key"));
    let body = json!({ "decision": "accept", "digest": "other" }).to_string();
    for name in [&ask, &ask[..12], &ask[4..12]] {
        let line = format!("POST /api/asks/{name}/answer");
        assert_eq!(request(&gateway, &line, &person, &body), 422, "{name}");
    }
    gateway.banister(&["answer", &ask, "reject"]);
    hook.wait_with_output().unwrap();
}

#[test]
fn a_body_that_never_comes_keeps_nobody_out() {
    use std::io::Write;
    let gateway = Gateway::start();
    let slow: Vec<_> = (0..600)
        .filter_map(|_| {
            let mut stream = std::net::TcpStream::connect(gateway.address()).ok()?;
            let host = gateway.address();
            let head =
                format!("POST /logout HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9\r\n\r\n");
            stream.write_all(head.as_bytes()).ok()?;
            Some(stream)
        })
        .collect();
    let allowed = gateway.hooked("PreToolUse", &command("t", "git status"));
    assert_eq!(crate::support::decision(&allowed).0, "allow");
    drop(slow);
}

#[test]
fn what_people_read_hides_nothing() {
    let gateway = Gateway::start();
    let sly = "git push \u{202e}tsaf\u{200b} <script>alert(1)</script>";
    let hook = gateway.hook("PreToolUse", command("t", sly).to_string().as_bytes());
    let ask = gateway.asked();
    let inbox = stdout(&gateway.banister(&["inbox"]));
    assert!(inbox.contains("⟨U+202E⟩tsaf⟨U+200B⟩"), "{inbox}");
    assert!(inbox.contains("whether it can be undone is not known"), "{inbox}");
    let page = gateway.get("/").body;
    assert!(page.contains("⟨U+202E⟩") && page.contains("&lt;script&gt;"), "{page}");
    assert!(!page.contains("<script>"));
    gateway.banister(&["answer", &ask, "reject"]);
    hook.wait_with_output().unwrap();
}

#[test]
fn logs_carry_no_payload_and_no_key() {
    let gateway = Gateway::start();
    gateway.hooked("PreToolUse", &command("t", "echo sup3rsecret"));
    gateway.hook("PreToolUse", b"garbage sup3rsecret").wait_with_output().unwrap();
    let log = gateway.log();
    for secret in ["sup3rsecret", &gateway.key("agent.key"), &gateway.key("person.key")] {
        assert!(!log.contains(secret), "{log}");
    }
}
