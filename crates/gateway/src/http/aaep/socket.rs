//! AAEP in one WebSocket, subprotocol `aaep.v1`: one JSON message per text frame, both ways.
//!
//! The first message asks for a subscription; what comes after it are replies, other terms, the close. Another request
//! takes the place of the first one. Replies are not acknowledged: a change of state follows.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use banister_events::aaep::handshake::Rejected;
use http::header::ORIGIN;
use http::{HeaderMap, Method, StatusCode};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, interval_at, sleep, timeout};

use super::super::{Problem, Shared};
use crate::deliver::Start;
use crate::keys::{Guest, Scope};
use crate::subscriptions::{SocketMessage, StreamOrder, StreamSink, SubscriptionStream};

const PROTOCOL: &str = "aaep.v1";
/// The longest message of a subscriber.
pub(super) const LONGEST: usize = 64 * 1024;
/// How many messages may wait for a subscriber before its stream does.
pub(super) const AHEAD: usize = 64;
/// How long a socket may be open without a subscription.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(10);
/// How often a socket is asked whether it is still there.
pub(super) const PING: Duration = Duration::from_secs(10);
/// How long a message may take to leave.
pub(super) const STALLED: Duration = Duration::from_secs(30);

/// Why a socket is closed, as AAEP numbers it.
pub(super) mod code {
    pub(in super::super) const CLOSED: u16 = 4000;
    pub(in super::super) const REJECTED: u16 = 4001;
    pub(in super::super) const REVOKED: u16 = 4003;
    pub(in super::super) const VIOLATION: u16 = 4004;
    pub(in super::super) const GOING_AWAY: u16 = 1001;
}

pub(in super::super) async fn open(
    State(shared): State<Shared>,
    method: Method,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let suite = shared.gateway.suite.get().is_some();
    let guest = match shared.admit(&method, &headers, Scope::Watch) {
        Ok(guest) => Some(guest),
        Err(_) if suite => None,
        Err(problem) => return Err(problem),
    };
    // A browser always says where its sockets come from; that it is here, the door has seen to.
    let browser = guest.as_ref().is_some_and(|guest| guest.csrf.is_some());
    if browser && !headers.contains_key(ORIGIN) {
        let message = "a browser's socket has an Origin";
        return Err(Problem::new(StatusCode::FORBIDDEN, "origin", message)
            .remedy("open it from the gateway's own page, or send a key"));
    }
    let upgrade = upgrade.map_err(|_| {
        Problem::new(StatusCode::UPGRADE_REQUIRED, "websocket", "this door takes WebSockets")
    })?;
    let upgrade = upgrade.protocols([PROTOCOL]);
    if upgrade.selected_protocol().is_none() && guest.is_some() {
        let message = "the subprotocol aaep.v1 is missing";
        return Err(Problem::new(StatusCode::BAD_REQUEST, "subprotocol", message)
            .remedy("send Sec-WebSocket-Protocol: aaep.v1"));
    }
    let Ok(permit) = Arc::clone(&shared.gateway.subscriptions.sockets).try_acquire_owned() else {
        let message = "too many sockets are open";
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message));
    };
    let tasks = shared.gateway.tasks.clone();
    Ok(upgrade.max_message_size(LONGEST).max_frame_size(LONGEST).on_upgrade(move |socket| {
        tasks.track_future(async move {
            let _permit = permit;
            serve(shared, guest, socket).await;
        })
    }))
}

async fn serve(shared: Shared, guest: Option<Guest>, mut socket: WebSocket) {
    let (out, mut texts) = mpsc::channel(AHEAD);
    if guest.is_none()
        && let Some(suite) = shared.gateway.suite.get()
    {
        suite.listen(&shared.gateway, StreamSink::Socket(out.clone()));
    }
    let gateway = Arc::clone(&shared.gateway);
    let stop = shared.stop.clone();
    let keyless = guest.is_none();
    let gone = async {
        match &guest {
            Some(guest) => gateway.keys.gone(guest).await,
            None => std::future::pending().await,
        }
    };
    let mut gone = std::pin::pin!(gone);
    let mut talk = SubscriberTalk::new(shared, guest.clone(), out);
    let mut handshake = std::pin::pin!(sleep(HANDSHAKE));
    let mut ping = interval_at(Instant::now() + PING, PING);
    let end = loop {
        let message = tokio::select! {
            biased;
            () = stop.cancelled() => break Some((code::GOING_AWAY, "the gateway stops")),
            () = &mut gone => break Some((code::REVOKED, "the key was revoked")),
            () = &mut handshake, if talk.subscription.is_none() && !keyless => {
                break Some((code::VIOLATION, "no subscription was asked for"));
            }
            Some(out) = texts.recv() => match out {
                SocketMessage::Text(text) => Message::text(text),
                SocketMessage::Close(code, reason) => break Some((code, reason)),
            },
            _ = ping.tick() => Message::Ping(bytes::Bytes::new()),
            heard = socket.recv() => match heard {
                Some(Ok(Message::Text(text))) => match talk.hear(&text).await {
                    Ok(()) => continue,
                    Err(end) => break Some(end),
                },
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                Some(Ok(Message::Binary(_))) => {
                    break Some((code::VIOLATION, "messages are text"));
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => break None,
            },
        };
        let sent = async {
            tokio::select! {
                () = stop.cancelled() => false,
                () = &mut gone => false,
                sent = timeout(STALLED, socket.send(message)) => matches!(sent, Ok(Ok(()))),
            }
        };
        if !sent.await {
            break None;
        }
    };
    // What was sent before the end arrives before the end.
    while end.is_some_and(|(code, _)| code != code::REVOKED)
        && let Ok(SocketMessage::Text(text)) = texts.try_recv()
    {
        if !matches!(timeout(PING, socket.send(Message::text(text))).await, Ok(Ok(()))) {
            break;
        }
    }
    if let Some((code, reason)) = end {
        let frame = CloseFrame { code, reason: reason.into() };
        let _sent = timeout(PING, socket.send(Message::Close(Some(frame)))).await;
    }
}

/// One socket's conversation.
pub(super) struct SubscriberTalk {
    shared: Shared,
    guest: Option<Guest>,
    out: mpsc::Sender<SocketMessage>,
    /// The id of the subscription that it follows.
    subscription: Option<String>,
}

/// The code and the reason that a socket is closed with.
pub(super) type SocketClose = (u16, &'static str);

impl SubscriberTalk {
    pub(super) fn new(
        shared: Shared,
        guest: Option<Guest>,
        out: mpsc::Sender<SocketMessage>,
    ) -> Self {
        Self { shared, guest, out, subscription: None }
    }

    /// The id of the subscription that it follows.
    pub(super) fn subscription(&self) -> Option<&str> {
        self.subscription.as_deref()
    }

    pub(super) fn is_subscribed(&self) -> bool {
        self.subscription.is_some()
    }

    pub(super) async fn hear(&mut self, text: &str) -> Result<(), SocketClose> {
        let Ok(message) = serde_json::from_str::<Value>(text) else {
            return Err((code::VIOLATION, "messages are JSON"));
        };
        let Some(guest) = self.guest.clone() else {
            if let Some(suite) = self.shared.gateway.suite.get() {
                suite.hear(&self.shared.gateway, &message).await;
            }
            return Ok(());
        };
        match message.get("type").and_then(Value::as_str).unwrap_or_default() {
            "subscription.request" => self.subscribe(&guest, &message),
            "subscription.renegotiate" => match self.shared.gateway.renegotiate(&guest, &message) {
                Ok(_) => Ok(()),
                Err(rejected) => Err(self.reject(&rejected)),
            },
            "subscription.close" => {
                if let Some(id) = self.subscription.take() {
                    let _gone = self.shared.gateway.unsubscribe(&guest, &id).await;
                }
                Err((code::CLOSED, "closed as asked"))
            }
            "confirmation.reply" | "clarification.reply" if guest.may(Scope::Answer) => {
                // Whether it counted shows in what happens next.
                let _counted = super::answer(&self.shared, &guest.key, &message).await;
                Ok(())
            }
            // What is not known here may be of a later version.
            _ => Ok(()),
        }
    }

    fn subscribe(&mut self, guest: &Guest, message: &Value) -> Result<(), SocketClose> {
        let gateway = Arc::clone(&self.shared.gateway);
        let (accepted, terms) = match gateway.subscribe(guest, message) {
            Ok(agreed) => agreed,
            Err(rejected) => return Err(self.reject(&rejected)),
        };
        let id = accepted.subscription_id.clone();
        let answer = serde_json::to_value(&accepted).unwrap_or_default();
        let subscriptions = &gateway.subscriptions;
        if let Some(before) = self.subscription.replace(id.clone()) {
            let order = StreamOrder::Replace { terms: Box::new(terms), answer, joins: true };
            return match subscriptions.hand_over(&before, &id).map(|orders| orders.try_send(order))
            {
                Some(Ok(())) => Ok(()),
                _ => Err((code::VIOLATION, "the subscription before this one is not read")),
            };
        }
        let Ok(followed) = subscriptions.attach(guest, &id) else {
            return Err((code::REJECTED, "the subscription is gone"));
        };
        let stream = SubscriptionStream {
            gateway: Arc::clone(&gateway),
            terms: followed.terms,
            sink: StreamSink::Socket(self.out.clone()),
            session: None,
            start: Some(Start::Now),
            greeting: Some(answer),
        };
        gateway.tasks.spawn(stream.run(followed.orders));
        Ok(())
    }

    /// Says why not; that is the end of it.
    fn reject(&self, rejected: &Rejected) -> SocketClose {
        let message = serde_json::to_value(rejected).unwrap_or_default();
        let _sent = self.out.try_send(SocketMessage::Text(message.to_string()));
        (code::REJECTED, "the subscription was rejected")
    }
}
