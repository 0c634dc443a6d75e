//! A stream of server-sent events.

use banister_events::frame::sse::{Message, Parser};
use banister_events::{frame, limits};

use crate::error::{Error, Result};
use crate::transport::HttpBody;

/// Events as they arrive. Dropping it closes the connection.
#[derive(Debug)]
pub struct EventStream {
    /// `None` once nothing more will come.
    body: Option<HttpBody>,
    parser: Parser,
    exhausted: bool,
}

impl EventStream {
    pub(crate) fn new(body: HttpBody, exhausted: bool) -> Self {
        let parser = Parser::new(limits::MESSAGE_BYTES);
        Self { body: Some(body), parser, exhausted }
    }

    /// Whether the gateway no longer had what followed the event it was to go on from.
    pub fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// The next event; `None` when the gateway has ended the stream.
    ///
    /// An event cut off by the end is not given: it may be half of one. After [`Error::TooLarge`] the stream goes
    /// on with the event after the one that was too large; any other error ends it. Dropping the future loses
    /// nothing.
    pub async fn next(&mut self) -> Option<Result<Message>> {
        loop {
            if let Some(message) = self.parser.next() {
                return Some(Ok(message));
            }
            match self.body.as_mut()?.next().await {
                None => self.body = None,
                Some(Err(error)) => {
                    self.body = None;
                    return Some(Err(error.into()));
                }
                Some(Ok(piece)) => match self.parser.push(&piece) {
                    Ok(()) => {}
                    Err(frame::Error::TooLarge { limit }) => {
                        return Some(Err(Error::TooLarge { limit }));
                    }
                    Err(_) => {
                        let problem = "an event of the gateway's cannot be read";
                        return Some(Err(Error::Protocol { problem }));
                    }
                },
            }
        }
    }
}
