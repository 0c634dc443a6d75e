//! In TLS: a server that proves who it is, and one that cannot.

use std::sync::Arc;

use banister_client::agui::{Agent, RunInput};
use banister_client::transport::HttpError;
use banister_client::{Client, Endpoint, Error};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// A server for one name that gives every connection the same bytes, and its certificate, which it signed itself.
async fn server(name: &str, answer: &'static str) -> (u16, String, JoinSet<()>) {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("a server");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let port = listener.local_addr().expect("an address").port();
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let acceptor = TlsAcceptor::from(Arc::new(config));
        while let Ok((stream, _)) = listener.accept().await {
            // Who does not trust the server leaves here.
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut piece = [0; 4096];
            let _count = stream.read(&mut piece).await;
            stream.write_all(answer.as_bytes()).await.ok();
            stream.shutdown().await.ok();
        }
    });
    (port, made.cert.pem(), serving)
}

const JSON: &str = "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{\"ok\":true}";

#[tokio::test]
async fn json_comes_from_a_server_that_is_trusted_for_its_name() {
    let (port, pem, _serving) = server("localhost", JSON).await;
    let endpoint = Endpoint::parse(&format!("https://localhost:{port}")).expect("an endpoint");
    let client = Client::new(endpoint, "k").with_authorities(pem.as_bytes()).expect("trusted");
    assert_eq!(client.get("/").await.expect("got"), json!({ "ok": true }));
    let elsewhere = Endpoint::parse(&format!("https://127.0.0.1:{port}")).expect("an endpoint");
    let client = Client::new(elsewhere, "k").with_authorities(pem.as_bytes()).expect("trusted");
    let error = client.get("/").await.expect_err("another name");
    let expected = "the certificate of 127.0.0.1 is for localhost, so nothing was sent; use a name that it is for, \
                    or have one issued for this host";
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn a_server_that_nobody_vouches_for_is_sent_nothing() {
    let (port, _, _serving) = server("localhost", JSON).await;
    let (_, other, _others) = server("localhost", JSON).await;
    let url = format!("https://localhost:{port}/agent");
    let agent = Agent::new(&url).expect("an agent").with_authorities(other.as_bytes());
    let error = agent.expect("trusted").run(RunInput::new("t", "r")).await.expect_err("refused");
    assert!(matches!(error, Error::Http(HttpError::Certificate { .. })), "{error:?}");
}

#[tokio::test]
async fn what_is_no_certificate_cannot_be_trusted() {
    let endpoint = || Endpoint::parse("https://localhost").expect("an endpoint");
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let half = "-----BEGIN CERTIFICATE-----\nAAAA\n";
    for (pem, why) in [
        ("", "the PEM file has no certificate"),
        ("nothing of the kind", "the PEM file has no certificate"),
        (broken, "a certificate in the PEM file cannot be used"),
        (half, "this is no PEM file"),
    ] {
        let error = Client::new(endpoint(), "k").with_authorities(pem.as_bytes());
        let error = error.expect_err("no certificate").to_string();
        assert!(error.contains(why), "{pem}: {error}");
    }
}
