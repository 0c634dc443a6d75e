//! The doors: who may come in, and to what.
//!
//! Host and Origin are checked before routing, on every route: a web page that finds the port must not get further than
//! a refusal. Scopes are bound to the key on the server. A browser's writes carry a token that only our own pages know.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use http::header::{
    AUTHORIZATION, CACHE_CONTROL, COOKIE, HOST, ORIGIN, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::keys::{Guest, Scope};
use crate::{Error, Gateway};

pub(crate) mod aaep;
pub(crate) mod agui;
mod api;
mod body;
mod hooks;
mod keys;
mod ops;
mod pages;
mod push;
mod replies;
mod streams;

/// The name under which browsers should open the gateway; every resolver takes it for this machine.
pub(crate) const HOST_NAME: &str = "banister.localhost";
/// The name of the browser's cookie.
const SESSION_COOKIE: &str = "banister_session";
/// The header that carries the anti-forgery token of a browser's write.
pub(crate) const CSRF_HEADER: &str = "x-banister-csrf";

/// One listener, as requests see it.
#[derive(Debug, Clone)]
pub(crate) struct Door {
    /// Its name in records.
    pub name: &'static str,
    /// The values of `Host` it answers to.
    hosts: Arc<[String]>,
    /// Whether a browser can be on the other side.
    browsers: bool,
}

impl Door {
    /// The TCP port.
    pub(crate) fn web(address: SocketAddr) -> Self {
        let port = address.port();
        let mut hosts = [HOST_NAME, "localhost", "127.0.0.1", "[::1]"]
            .map(|name| format!("{name}:{port}"))
            .to_vec();
        let own = address.to_string();
        if !hosts.contains(&own) {
            hosts.push(own);
        }
        Self { name: "http", hosts: hosts.into(), browsers: true }
    }

    /// The Unix socket.
    pub(crate) fn socket() -> Self {
        let hosts = vec!["banister".to_owned(), "localhost".to_owned()];
        Self { name: "socket", hosts: hosts.into(), browsers: false }
    }

    /// The Unix socket that AAEP is spoken on in length frames.
    pub(crate) fn aaep() -> Self {
        Self { name: "aaep", hosts: Vec::new().into(), browsers: false }
    }

    /// Why a request must not go further, if it must not.
    fn refuse(&self, uri: &Uri, headers: &HeaderMap) -> Option<&'static str> {
        let mut hosts = headers.get_all(HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok()).unwrap_or_default();
        let known = self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host));
        // Where the request's line names one, that is the one that counts.
        let another =
            uri.authority().is_some_and(|named| !named.as_str().eq_ignore_ascii_case(host));
        if !known || another || hosts.next().is_some() {
            return Some("this Host is not served here");
        }
        if let Some(origin) = headers.get(ORIGIN) {
            let origin = origin.to_str().unwrap_or_default();
            let ours = origin
                .strip_prefix("http://")
                .is_some_and(|from| self.browsers && from.eq_ignore_ascii_case(host));
            if !ours {
                return Some("this Origin may not come in");
            }
        }
        let site = headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
        match site {
            Some("cross-site" | "same-site") => Some("this site may not come in"),
            _ => None,
        }
    }
}

/// What handlers share.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) door: Door,
    /// Ends what would not end by itself.
    pub(crate) stop: CancellationToken,
}

/// All routes, behind the check of Host and Origin. Runs that are open when `stop` comes are told so.
pub(crate) fn router(gateway: Arc<Gateway>, door: Door, stop: CancellationToken) -> Router {
    let shared = Shared { gateway, door, stop };
    Router::new()
        .route("/hooks/{agent}/{event}", post(hooks::hook))
        .route("/aaep/v1/events", get(streams::aaep).post(push::aaep))
        .route(crate::manifest::PATH, get(aaep::manifest))
        .route("/aaep/v1/subscriptions", post(aaep::subscribe))
        .route("/aaep/v1/subscriptions/{id}", delete(aaep::unsubscribe).patch(aaep::renegotiate))
        .route("/aaep/v1/replies", get(replies::aaep).post(aaep::reply))
        .route("/aaep/v1/ws", get(aaep::socket::open))
        .route("/aaep/v1/messages", post(aaep::message))
        .route("/aep/v0.1/events", get(streams::aep).post(push::aep))
        .route("/aep/v0.1/decide", post(push::decide))
        .route("/aep/v0.1/replies", get(replies::aep))
        .route("/agui/threads/{thread}/events", post(push::agui))
        .route("/agui/threads/{thread}/resume", get(replies::agui))
        .route("/agui/sessions/{session}", post(agui::run))
        .route("/agui/upstreams/{name}", post(agui::upstream::run))
        .route("/api/inbox", get(api::inbox))
        .route("/api/asks/{ask}/answer", post(api::answer))
        .route("/api/asks/{ask}/extend", post(api::extend))
        .route("/api/grants", get(api::grants))
        .route("/api/grants/{grant}", delete(api::revoke))
        .route("/api/sessions", get(api::sessions))
        .route("/api/keys", get(keys::list).post(keys::issue))
        .route("/api/keys/{key}", delete(keys::revoke))
        .route("/api/login-links", post(api::login_link))
        .route("/", get(pages::inbox))
        .route("/asks/{ask}/answer", post(pages::answer))
        .route("/asks/{ask}/extend", post(pages::extend))
        .route("/sessions/{session}", get(pages::session))
        .route("/login", get(pages::login))
        .route("/logout", post(pages::logout))
        .route("/app.css", get(pages::style))
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ops::ready))
        .route("/metrics", get(ops::metrics))
        .fallback(async || Problem::nothing())
        .layer(from_fn_with_state(shared.clone(), guard))
        .with_state(shared)
}

async fn guard(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let since = Instant::now();
    let mut response = match shared.door.refuse(request.uri(), request.headers()) {
        None => next.run(request).await,
        Some(reason) => Problem::new(StatusCode::FORBIDDEN, "foreign", reason)
            .remedy("open the gateway under the address it printed, without a proxy in between")
            .into_response(),
    };
    // What is told here is for who asked: nothing keeps it, guesses at it or embeds it.
    for (name, value) in [
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    shared.gateway.metrics.request(response.status().as_u16(), since.elapsed());
    response
}

/// Something that did not work, as programs read it.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    code: &'static str,
    message: String,
    /// The rule that was broken, and the JSON Pointer to where.
    place: Option<(&'static str, String)>,
    remedy: Option<&'static str>,
    /// In how many seconds it may work.
    retry: Option<u64>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), place: None, remedy: None, retry: None }
    }

    /// There is no such door.
    pub(crate) fn nothing() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", "there is nothing here")
            .remedy("docs/reference/http.md lists the doors")
    }

    pub(crate) fn at(mut self, rule: &'static str, pointer: &str) -> Self {
        self.place = Some((rule, pointer.to_owned()));
        self
    }

    pub(crate) fn remedy(mut self, remedy: &'static str) -> Self {
        self.remedy = Some(remedy);
        self
    }

    /// Says when to try again.
    pub(crate) fn retry_in(mut self, seconds: u64) -> Self {
        self.retry = Some(seconds);
        self
    }

    /// Something of ours failed; the log has the details.
    pub(crate) fn internal(error: &dyn std::fmt::Display) -> Self {
        tracing::error!(%error, "A request failed.");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the gateway could not do this")
            .remedy("the gateway's log tells more")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let (Some((rule, pointer)), Some(error)) = (self.place, error.as_object_mut()) {
            error.insert("rule".to_owned(), json!(rule));
            error.insert("pointer".to_owned(), json!(pointer));
        }
        if let (Some(remedy), Some(error)) = (self.remedy, error.as_object_mut()) {
            error.insert("remedy".to_owned(), json!(remedy));
        }
        let mut response = (self.status, axum::Json(json!({ "error": error }))).into_response();
        if let Some(seconds) = self.retry {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}

impl Gateway {
    /// A login link for a browser: works once.
    pub fn login_link(&self) -> Result<String, Error> {
        let code = self.keys.login_code()?;
        // A host of its own: a cookie for 127.0.0.1 would also go to every other port there.
        let port = self.address.get().map(SocketAddr::port).unwrap_or_default();
        Ok(format!("http://{HOST_NAME}:{port}/login?code={code}"))
    }
}

impl Shared {
    /// Whoever sent this, if it may do `scope`. A browser's write must carry the token of its session.
    pub(crate) fn admit(
        &self,
        method: &Method,
        headers: &HeaderMap,
        scope: Scope,
    ) -> Result<Guest, Problem> {
        let guest = self.guest(headers).ok_or_else(|| {
            Problem::new(StatusCode::UNAUTHORIZED, "no-key", "this needs a key that is known here")
                .remedy(
                    "send Authorization: Bearer KEY; the key is in the file `banister serve` names",
                )
        })?;
        if !guest.may(scope) {
            let message = format!("this key may not {}", verb(scope));
            return Err(Problem::new(StatusCode::FORBIDDEN, "scope", message)
                .remedy("use a key that carries the scope; an agent's key can only emit"));
        }
        let token = headers.get(CSRF_HEADER).and_then(|token| token.to_str().ok());
        if method != Method::GET && !csrf_fits(&guest, token) {
            return Err(Problem::new(
                StatusCode::FORBIDDEN,
                "csrf",
                "the anti-forgery token is missing",
            ));
        }
        Ok(guest)
    }

    /// Whoever sent this: by key, else by cookie.
    pub(crate) fn guest(&self, headers: &HeaderMap) -> Option<Guest> {
        match headers.get(AUTHORIZATION) {
            // A key that does not fit is refused, whatever else came along.
            Some(header) => {
                let key = header.to_str().ok()?.strip_prefix("Bearer ")?;
                self.gateway.keys.guest(key.trim())
            }
            None => self.gateway.keys.browser(cookie(headers, SESSION_COOKIE)?),
        }
    }
}

/// Whether a write carries the token of its browser session. Keys need none: no browser sends them by itself.
pub(crate) fn csrf_fits(guest: &Guest, token: Option<&str>) -> bool {
    use subtle::ConstantTimeEq;
    match (&guest.csrf, token) {
        (None, _) => true,
        (Some(wanted), Some(token)) => bool::from(wanted.as_bytes().ct_eq(token.as_bytes())),
        (Some(_), None) => false,
    }
}

fn verb(scope: Scope) -> &'static str {
    match scope {
        Scope::Emit => "emit events",
        Scope::Watch => "watch",
        Scope::Answer => "answer",
        Scope::Admin => "administer",
    }
}

/// The value of a cookie.
fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|header| header.to_str().ok())
        .flat_map(|header| header.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
}

#[cfg(test)]
#[path = "http/attack_tests.rs"]
mod attack_tests;
