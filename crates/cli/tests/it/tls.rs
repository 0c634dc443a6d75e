//! `https`: endpoints to check and agents behind the gateway, with certificates made for the test.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use crate::support::{BANISTER, Gateway, Response, stderr, stdout};

const START: &str = "data: {\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\",\"protocolVersion\":\"1.0\"}\n\n";
const END: &str = "data: {\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\n";
const HEAD: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
const PAGE: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 47\r\n\r\n\
                    <html><title>Corporate proxy: sign in</title>..";

/// Somebody who issues certificates, and the file that says so.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    dir: tempfile::TempDir,
}

impl Authority {
    fn new() -> Self {
        Self::named("Authority of the test")
    }

    fn named(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let dir = tempfile::tempdir().unwrap();
        let own = params.self_signed(&key).unwrap();
        std::fs::write(dir.path().join("ca.pem"), own.pem()).unwrap();
        Self { issuer: Issuer::new(params, key), dir }
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("ca.pem")
    }

    /// A server with a certificate for these names, or one that is changed.
    fn server(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> ServerConfig {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(names).unwrap();
        change(&mut params);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap()
    }

    /// Checks something with this authority as the only one of the platform.
    fn check(&self, args: &[&str]) -> Output {
        let mut command = Command::new(BANISTER);
        command.arg("check").args(args).env("SSL_CERT_FILE", self.file());
        command.env_remove("SSL_CERT_DIR").output().unwrap()
    }
}

type Tls = StreamOwned<ServerConnection, TcpStream>;

/// A TLS server; gives its port, and every request that it could read.
fn serve(
    config: ServerConfig,
    answer: impl Fn(&str, &mut Tls) + Send + 'static,
) -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, requests) = sync_channel(16);
    let config = Arc::new(config);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream.unwrap());
            let request = request(&mut stream);
            if !request.is_empty() {
                tell.try_send(request.clone()).ok();
                answer(&request, &mut stream);
            }
        }
    });
    (port, requests)
}

/// Head and body; empty where the client left during the handshake.
fn request(stream: &mut impl Read) -> String {
    let mut request = String::new();
    let mut piece = [0; 4096];
    loop {
        if let Some((head, body)) = request.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            let length = head.split("content-length: ").nth(1);
            let length = length.map_or(0, |it| it.lines().next().unwrap().parse().unwrap());
            if body.len() >= length {
                return request;
            }
        }
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return request,
            Ok(count) => request.push_str(&String::from_utf8_lossy(&piece[..count])),
        }
    }
}

/// Sends something, and ends the stream as TLS does.
fn send(stream: &mut Tls, text: &str) {
    stream.write_all(text.as_bytes()).unwrap();
    stream.conn.send_close_notify();
    stream.flush().unwrap();
}

/// The check failed with these words, found nothing, and sent nothing.
fn refused(output: &Output, requests: &Receiver<String>, said: &[&str]) {
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert_eq!(stdout(output), "");
    for said in said {
        assert!(stderr(output).contains(said), "{said}: {}", stderr(output));
    }
    assert!(requests.try_recv().is_err(), "nothing is sent to somebody unknown");
}

#[test]
fn a_stream_is_checked_in_tls_with_the_headers_that_were_given() {
    let authority = Authority::new();
    let config = authority.server(&["localhost", "127.0.0.1"], |_| {});
    let (port, requests) = serve(config, |_, stream| send(stream, &format!("{HEAD}{START}{END}")));
    for host in ["localhost", "127.0.0.1"] {
        let url = format!("https://{host}:{port}/events");
        let output = authority.check(&["--header", "Authorization: Bearer s3cret", &url]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let request = requests.recv().unwrap().to_ascii_lowercase();
        for line in [format!("host: {host}:{port}"), "authorization: bearer s3cret".to_owned()] {
            assert!(request.contains(&format!("\r\n{line}\r\n")), "{request}");
        }
    }
    let output =
        authority.check(&["--protocol", "agui", &format!("https://localhost:{port}/agent")]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(requests.recv().unwrap().starts_with("POST /agent HTTP/1.1\r\n"));
}

#[test]
fn a_certificate_that_does_not_verify_is_an_error_and_nothing_is_sent() {
    let (authority, stranger) = (Authority::new(), Authority::named("Somebody"));
    let answer = |_: &str, stream: &mut Tls| send(stream, &format!("{HEAD}{START}{END}"));
    let check = |config: ServerConfig, said: &[&str]| {
        let (port, requests) = serve(config, answer);
        let secret = ["--header", "Authorization: Bearer s3cret"];
        let output =
            authority.check(&[&secret[..], &[&format!("https://localhost:{port}/")]].concat());
        refused(&output, &requests, said);
    };
    let issued = "the certificate of localhost was issued by nobody whom this machine trusts, so nothing was sent";
    check(stranger.server(&["localhost"], |_| {}), &[issued, "SSL_CERT_FILE"]);
    check(
        Authority::new().server(&["localhost"], |_| {}),
        &["is signed by somebody else than the authority that it names, so nothing was sent"],
    );
    check(
        authority.server(&["agent.example", "other.example"], |_| {}),
        &["is for agent.example, other.example, so nothing was sent; use a name that it is for"],
    );
    check(
        authority.server(&["localhost"], |params| {
            params.not_before = date_time_ymd(2020, 1, 1);
            params.not_after = date_time_ymd(2021, 2, 3);
        }),
        &["expired on 2021-02-03, so nothing was sent", "renewed"],
    );
    check(
        authority.server(&["localhost"], |params| params.not_before = date_time_ymd(4000, 5, 6)),
        &["is not valid before 4000-05-06", "the clock of this machine"],
    );
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let own = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    check(own, &[issued]);
}

#[test]
fn a_machine_without_authorities_is_told_what_to_do() {
    let authority = Authority::new();
    std::fs::write(authority.file(), "").unwrap();
    let output = authority.check(&["https://localhost:1/"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(stderr(&output).contains("has no certificates of authorities"), "{}", stderr(&output));
    assert!(stderr(&output).contains("name a PEM file with SSL_CERT_FILE"), "{}", stderr(&output));
}

#[test]
fn the_wrong_scheme_is_told() {
    let authority = Authority::new();
    let config = authority.server(&["localhost"], |_| {});
    let (port, requests) = serve(config, |_, stream| send(stream, HEAD));
    let output = authority.check(&[&format!("http://localhost:{port}/")]);
    refused(&output, &requests, &["speaks TLS; write https:// instead of http://"]);

    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = plain.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for (at, stream) in plain.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let count = stream.read(&mut [0; 4096]).unwrap();
            assert!(count > 0);
            if at == 0 {
                stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").unwrap();
            }
        }
    });
    for said in ["localhost does not speak TLS, so nothing was sent", "does it speak TLS?"] {
        let output = authority.check(&[&format!("https://localhost:{port}/")]);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
    }
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let output = authority.check(&[&format!("https://{free}/events")]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(stderr(&output).contains("cannot connect: "), "{}", stderr(&output));
}

#[test]
fn a_web_page_is_told_by_its_first_words() {
    let authority = Authority::new();
    let config = authority.server(&["localhost"], |_| {});
    let (port, _requests) = serve(config, |request, stream| {
        let refused = PAGE.replace("200 OK", "407 Proxy Authentication Required");
        send(stream, if request.contains("/refused") { &refused } else { PAGE });
    });
    for (path, said) in [
        (
            "",
            "the answer is a web page (text/html), no stream of events; it begins: Corporate proxy: sign in",
        ),
        (
            "refused",
            "the answer is 407 Proxy Authentication Required: a web page: Corporate proxy: sign in",
        ),
    ] {
        let output = authority.check(&[&format!("https://localhost:{port}/{path}")]);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
    }
    let output = authority.check(&["--protocol", "agui", &format!("https://localhost:{port}/")]);
    assert!(
        stderr(&output).contains("where an agent sends text/event-stream; it begins: Corporate")
    );
}

#[test]
fn a_stream_that_is_cut_in_tls_does_not_pass_for_a_whole_one() {
    let authority = Authority::new();
    let config = authority.server(&["localhost"], |_| {});
    // Whoever sits in between can close a connection, but cannot sign its end.
    let (port, _requests) = serve(config, |_, stream| {
        write!(stream, "{HEAD}{START}{END}").unwrap();
        stream.flush().unwrap();
    });
    let output = authority.check(&[&format!("https://localhost:{port}/")]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(stderr(&output).contains("the connection was cut after"), "{}", stderr(&output));
}

#[test]
fn a_subscription_stays_in_tls() {
    let authority = Authority::new();
    let config = authority.server(&["localhost"], |_| {});
    let accepted =
        r#"{"type":"subscription.accepted","subscription_id":"sub_1","aaep_version":"1.0.0"}"#;
    let (port, requests) = serve(config, move |request, stream| {
        let length = accepted.len();
        let head = format!("HTTP/1.1 201 Created\r\nContent-Length: {length}\r\n");
        if request.starts_with("POST /down") {
            send(stream, &format!("{head}Location: http://localhost:9/events\r\n\r\n{accepted}"));
        } else if request.starts_with("POST") {
            send(stream, &format!("{head}\r\n{accepted}"));
        } else {
            send(stream, &format!("{HEAD}data: {{\"type\":\"aaep:agent.state.changed\"}}\n\n"));
        }
    });
    let url = format!("https://localhost:{port}/aaep/v1/events");
    let output = authority.check(&["--json", "--subscribe", &url]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["events"], 2, "{report}");
    assert!(requests.recv().unwrap().starts_with("POST /aaep/v1/subscriptions "));
    assert!(requests.recv().unwrap().starts_with("GET /aaep/v1/events?subscription_id=sub_1 "));
    let url = format!("https://localhost:{port}/down/events");
    let output = authority.check(&["--subscribe", &url]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(stderr(&output).contains("another host: http://localhost:9/events"), "{output:?}");
}

/// A gateway in front of an agent at an address, and a file of whom to trust for it.
fn in_front_of(url: &str, ca: &str) -> Gateway {
    let mut gateway = Gateway::stopped();
    let secret = gateway.dir.path().join("secret");
    std::fs::write(&secret, "Bearer sesame").unwrap();
    let config = gateway.dir.path().join("config.toml");
    let text = format!(
        "[upstreams.agent]\nurl = \"{url}\"\n{ca}\n[upstreams.agent.headers]\n\
         authorization = {{ file = \"{}\" }}\n",
        secret.display()
    );
    std::fs::write(&config, text).unwrap();
    gateway.up_with(&["--config", config.to_str().unwrap()]);
    gateway
}

fn run(gateway: &Gateway) -> Response {
    let body = json!({
        "threadId": "t", "runId": "r", "messages": [{ "id": "m", "role": "user", "content": "hello" }],
        "state": {}, "tools": [], "context": [], "forwardedProps": {},
    })
    .to_string();
    gateway.raw(&format!(
        "POST /agui/upstreams/agent HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        gateway.address(),
        gateway.key("person.key").trim(),
        body.len(),
    ))
}

#[test]
fn an_agent_runs_through_the_gateway_in_tls() {
    let authority = Authority::new();
    let config = authority.server(&["localhost"], |_| {});
    let (port, requests) = serve(config, |_, stream| send(stream, &format!("{HEAD}{START}{END}")));
    let ca = format!("ca = \"{}\"", authority.file().display());
    let gateway = in_front_of(&format!("https://localhost:{port}/agent"), &ca);
    let response = run(&gateway);
    assert_eq!((response.status, response.body), (200, format!("{START}{END}")));
    let request = requests.recv().unwrap();
    assert!(request.starts_with("POST /agent HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("\r\nauthorization: Bearer sesame\r\n"), "{request}");
    assert!(gateway.records().iter().any(|record| record["source"]["door"] == "upstream"));
}

#[test]
fn an_agent_that_cannot_prove_who_it_is_gets_nothing() {
    let (authority, stranger) = (Authority::new(), Authority::named("Somebody"));
    let config = stranger.server(&["localhost"], |_| {});
    let (port, requests) = serve(config, |_, stream| send(stream, &format!("{HEAD}{START}{END}")));
    let url = format!("https://localhost:{port}/agent");
    for ca in [String::new(), format!("ca = \"{}\"", authority.file().display())] {
        let gateway = in_front_of(&url, &ca);
        let response = run(&gateway);
        assert_eq!(response.status, 502, "{response:?}");
        let said = "the agent cannot be reached: the certificate of localhost was issued by nobody";
        // Where this machine has no authorities at all, that is what is wrong.
        let none = ca.is_empty() && response.body.contains("has no certificates of authorities");
        assert!(response.body.contains(said) || none, "{}", response.body);
        assert!(!gateway.log().contains("sesame"));
        assert!(gateway.records().is_empty());
    }
    assert!(requests.try_recv().is_err(), "nothing is sent to somebody unknown");
}

#[test]
fn an_agent_behind_a_proxy_that_answers_a_page_or_breaks_off_is_told_apart() {
    let authority = Authority::new();
    let config = authority.server(&["localhost"], |_| {});
    let ca = format!("ca = \"{}\"", authority.file().display());
    let (port, _requests) = serve(config, |request, stream| {
        if request.starts_with("POST /page") {
            send(stream, PAGE);
        } else {
            write!(stream, "{HEAD}{START}").unwrap();
            stream.flush().unwrap();
            std::thread::sleep(Duration::from_millis(200));
            // With bytes unread, or none, a peer that just goes is a cut.
            let gone = stream.sock.shutdown(std::net::Shutdown::Both);
            assert!(gone.is_ok() || gone.is_err_and(|it| it.kind() == ErrorKind::NotConnected));
        }
    });
    let gateway = in_front_of(&format!("https://localhost:{port}/page"), &ca);
    let response = run(&gateway);
    assert_eq!(response.status, 502, "{response:?}");
    let said =
        "did not answer with events, but with text/html: a web page: Corporate proxy: sign in";
    assert!(response.body.contains(said), "{}", response.body);
    let gateway = in_front_of(&format!("https://localhost:{port}/cut"), &ca);
    let response = run(&gateway);
    assert_eq!(response.status, 200, "{response:?}");
    assert!(response.body.contains("\"code\":\"upstream-broken\""), "{}", response.body);
}
