//! AAEP on a Unix socket of its own: messages behind their length, four bytes, both ways.
//!
//! Only the user that the gateway runs as can open the socket, and is asked who it is besides. That alone lets nobody in:
//! agents run as the same user, and an agent may not answer. So the first message gives a key,
//! `{"type": "banister.key", "key": "…"}`; what follows is as on a WebSocket. What ends a subscription that is open is
//! told by `subscription.close`.

use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;

use banister_events::aaep::handshake::RejectionCode;
use banister_events::frame::length;
use bytes::BytesMut;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::super::Shared;
use super::socket::{AHEAD, HANDSHAKE, LONGEST, PING, STALLED, SubscriberTalk, code};
use crate::keys::{Guest, Scope};
use crate::subscriptions::{SocketMessage, rejected};

/// The type of the first message on AAEP's socket, which gives a key.
pub const AAEP_KEY: &str = "banister.key";

/// Talks with one subscriber until it leaves.
pub(crate) async fn serve(shared: Shared, stream: UnixStream) {
    if !is_own(&shared, &stream) {
        tracing::warn!("Another user knocked at the AAEP socket.");
        return;
    }
    let Ok(_permit) = Arc::clone(&shared.gateway.subscriptions.sockets).try_acquire_owned() else {
        tracing::warn!("Too many sockets are open; one was turned away.");
        return;
    };
    let (mut from, mut to) = stream.into_split();
    let mut messages =
        FrameReader { buffer: BytesMut::new(), frames: length::Messages::new(LONGEST) };
    let first = timeout(HANDSHAKE, messages.next(&mut from)).await.ok().flatten();
    let guest = match first.as_deref().map(|first| guest(&shared, first)) {
        Some(Ok(guest)) => guest,
        Some(Err((code, message))) => {
            let refusal = serde_json::to_string(&rejected(code, message)).unwrap_or_default();
            send(&mut to, &refusal).await;
            return;
        }
        None => return,
    };
    let (out, mut texts) = mpsc::channel(AHEAD);
    let (gateway, stop) = (Arc::clone(&shared.gateway), shared.stop.clone());
    let mut gone = std::pin::pin!(gateway.keys.gone(&guest));
    let mut talk = SubscriberTalk::new(shared, Some(guest.clone()), out);
    let mut handshake = std::pin::pin!(sleep(HANDSHAKE));
    let (number, reason) = loop {
        let text = tokio::select! {
            biased;
            () = stop.cancelled() => break (code::GOING_AWAY, "the gateway stops"),
            () = &mut gone => break (code::REVOKED, "the key was revoked"),
            () = &mut handshake, if !talk.is_subscribed() => {
                break (code::VIOLATION, "no subscription was asked for");
            }
            Some(out) = texts.recv() => match out {
                SocketMessage::Text(text) => text,
                SocketMessage::Close(code, reason) => break (code, reason),
            },
            heard = messages.next(&mut from) => match heard {
                Some(bytes) => {
                    let Ok(text) = std::str::from_utf8(&bytes) else {
                        break (code::VIOLATION, "messages are JSON");
                    };
                    match talk.hear(text).await {
                        Ok(()) => continue,
                        Err(end) => break end,
                    }
                }
                None => return,
            },
        };
        let sent = async {
            tokio::select! {
                () = stop.cancelled() => false,
                () = &mut gone => false,
                sent = send(&mut to, &text) => sent,
            }
        };
        if !sent.await {
            return;
        }
    };
    // What was sent before the end arrives before the end.
    while number != code::REVOKED
        && let Ok(SocketMessage::Text(text)) = texts.try_recv()
    {
        if !send(&mut to, &text).await {
            return;
        }
    }
    if let Some(id) = talk.subscription().filter(|_| number != code::CLOSED) {
        let close = json!({
            "type": "subscription.close", "subscription_id": id,
            "reason_code": reason_code(number), "reason_message": reason,
        });
        let _sent = timeout(PING, send(&mut to, &close.to_string())).await;
    }
}

fn reason_code(number: u16) -> &'static str {
    match number {
        code::GOING_AWAY => "going_away",
        code::REVOKED => "authorization_denied",
        _ => "violation",
    }
}

/// Whether the other side runs as the owner of our own files.
fn is_own(shared: &Shared, stream: &UnixStream) -> bool {
    let ours = std::fs::metadata(&shared.gateway.settings.data).map(|data| data.uid());
    matches!((stream.peer_cred(), ours), (Ok(peer), Ok(ours)) if peer.uid() == ours)
}

/// Who gives a key, if it may watch.
fn guest(shared: &Shared, first: &[u8]) -> Result<Guest, (RejectionCode, &'static str)> {
    let message: Value = serde_json::from_slice(first).unwrap_or_default();
    let key = message.get("key").and_then(Value::as_str);
    let key = key.filter(|_| message.get("type").and_then(Value::as_str) == Some(AAEP_KEY));
    let guest = key.and_then(|key| shared.gateway.keys.guest(key.trim())).ok_or((
        RejectionCode::AuthenticationRequired,
        "The first message gives a key that is known here.",
    ))?;
    if !guest.may(Scope::Watch) {
        return Err((RejectionCode::AuthorizationDenied, "This key may not watch."));
    }
    Ok(guest)
}

/// What comes in, message by message.
struct FrameReader {
    buffer: BytesMut,
    frames: length::Messages,
}

impl FrameReader {
    /// The next message; none where the stream ends, breaks or says too much. May be dropped in between.
    async fn next(&mut self, from: &mut (impl tokio::io::AsyncRead + Unpin)) -> Option<Vec<u8>> {
        loop {
            let mut piece: &[u8] = &self.buffer;
            let before = piece.len();
            let message =
                self.frames.read(&mut piece).map(|(_, message)| message.map(<[u8]>::to_vec));
            let used = before - piece.len();
            let _used = self.buffer.split_to(used);
            match message {
                Some(Ok(message)) => return Some(message),
                Some(Err(_)) => return None,
                None => {}
            }
            if from.read_buf(&mut self.buffer).await.ok()? == 0 {
                return None;
            }
        }
    }
}

/// Sends a message; whether it left in time.
async fn send(to: &mut OwnedWriteHalf, text: &str) -> bool {
    let mut frame = Vec::with_capacity(text.len() + 4);
    if length::write(&mut frame, text.as_bytes()).is_err() {
        return false;
    }
    matches!(timeout(STALLED, to.write_all(&frame)).await, Ok(Ok(())))
}

#[cfg(test)]
#[path = "framed_tests.rs"]
mod tests;
