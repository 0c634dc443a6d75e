//! Bodies: what comes in is bounded in size and time, what goes out is fed by a task.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body as Incoming;
use banister_events::limits::{EVIDENCE_BYTES, MESSAGE_BYTES};
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame};
use tokio::sync::mpsc;

use super::Problem;
use crate::pipeline::Cut;

/// How long a request's body may take to arrive.
const ARRIVAL: Duration = Duration::from_secs(10);
/// How many chunks may wait for a subscriber before its task does.
const AHEAD: usize = 64;

/// A body of at most `limit` bytes, or the problem to answer with.
pub(crate) async fn whole(body: Incoming, limit: usize) -> Result<Bytes, Problem> {
    match tokio::time::timeout(ARRIVAL, axum::body::to_bytes(body, limit)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => {
            let message = format!("the body is not whole, or over {limit} bytes");
            Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "size", message))
        }
        Err(_) => {
            let message = "the body took too long to arrive";
            Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "slow", message))
        }
    }
}

/// A payload: whole, or the beginning of it and why there is no more.
pub(crate) async fn payload(mut body: Incoming) -> (Bytes, Option<Cut>) {
    let mut kept = BytesMut::new();
    let mut bytes: u64 = 0;
    let arrival = async {
        loop {
            match body.frame().await {
                None => return true,
                Some(Err(_)) => return false,
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    bytes += data.len() as u64;
                    if bytes <= MESSAGE_BYTES as u64 {
                        kept.extend_from_slice(&data);
                    } else {
                        kept.truncate(EVIDENCE_BYTES);
                    }
                }
            }
        }
    };
    let arrived = tokio::time::timeout(ARRIVAL, arrival).await.unwrap_or(false);
    let cut = match (bytes > MESSAGE_BYTES as u64, arrived) {
        (true, _) => Some(Cut::TooLarge(bytes)),
        (false, false) => Some(Cut::BrokenOff),
        (false, true) => None,
    };
    (kept.freeze(), cut)
}

/// The receiving half: what the task sends is what the client gets.
#[derive(Debug)]
pub(crate) struct Fed(mpsc::Receiver<Bytes>);

/// A body and the sender that feeds it.
pub(crate) fn fed() -> (mpsc::Sender<Bytes>, Fed) {
    let (sender, receiver) = mpsc::channel(AHEAD);
    (sender, Fed(receiver))
}

impl Body for Fed {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(context).map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
    }
}
