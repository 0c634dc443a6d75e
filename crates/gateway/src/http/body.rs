//! A response body fed by a task.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::sync::mpsc;

/// How many chunks may wait for a subscriber before its task does.
const AHEAD: usize = 64;

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
