//! A server that answers what a test tells it to, and remembers what it was asked.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use banister_client::{Client, Endpoint};
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinSet;

pub(crate) type Body = BoxBody<Bytes, std::io::Error>;

#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) line: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

type Reply = Arc<dyn Fn(&Asked) -> Response<Body> + Send + Sync>;

pub(crate) struct Server {
    pub(crate) endpoint: Endpoint,
    asked: Arc<Mutex<Vec<Asked>>>,
    _directory: tempfile::TempDir,
    _serving: JoinSet<()>,
}

impl Server {
    pub(crate) fn unix(reply: impl Fn(&Asked) -> Response<Body> + Send + Sync + 'static) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path: PathBuf = directory.path().join("s");
        let listener = UnixListener::bind(&path).expect("bound");
        let (asked, reply): (_, Reply) = (Arc::default(), Arc::new(reply));
        let mut serving = JoinSet::new();
        let seen = Arc::clone(&asked);
        serving.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                open.spawn(serve(stream, Arc::clone(&reply), Arc::clone(&seen)));
            }
        });
        Self { endpoint: Endpoint::Unix(path), asked, _directory: directory, _serving: serving }
    }

    pub(crate) async fn tcp(
        reply: impl Fn(&Asked) -> Response<Body> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = listener.local_addr().expect("an address");
        let (asked, reply): (_, Reply) = (Arc::default(), Arc::new(reply));
        let mut serving = JoinSet::new();
        let seen = Arc::clone(&asked);
        serving.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                open.spawn(serve(stream, Arc::clone(&reply), Arc::clone(&seen)));
            }
        });
        Self {
            endpoint: Endpoint::parse(&format!("http://{address}")).expect("an endpoint"),
            asked,
            _directory: tempfile::tempdir().expect("a directory"),
            _serving: serving,
        }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.endpoint.clone(), "bk_test")
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("lock").clone()
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    reply: Reply,
    seen: Arc<Mutex<Vec<Asked>>>,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let (reply, seen) = (Arc::clone(&reply), Arc::clone(&seen));
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.expect("a body").to_bytes();
            let asked = Asked {
                line: format!("{} {}", parts.method, parts.uri),
                headers: parts.headers,
                body: String::from_utf8(body.to_vec()).expect("UTF-8"),
            };
            seen.lock().expect("lock").push(asked.clone());
            Ok::<_, Infallible>(reply(&asked))
        }
    });
    // A client may leave whenever it likes.
    http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
}

pub(crate) fn reply(status: u16, body: impl Into<Bytes>) -> Response<Body> {
    let body = Full::new(body.into()).map_err(|never| match never {}).boxed();
    Response::builder().status(status).body(body).expect("a response")
}
