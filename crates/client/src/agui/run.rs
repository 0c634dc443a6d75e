//! A run as it arrives: bytes, frames, events, messages and state.

use std::time::Duration;

use banister_events::agui::encoding::Encoding;
use banister_events::agui::follow::{Ending, Followed, Follower};
use banister_events::agui::protobuf;
use banister_events::frame;
use banister_events::frame::length::Messages;
use banister_events::frame::sse::Parser;
use bytes::Bytes;
use serde::de::IgnoredAny;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::error::{Error, Result};
use crate::transport::HttpBody;

/// How large a single event may be, in bytes.
pub const LARGEST_EVENT: usize = 10 * 1024 * 1024;

/// An event that was applied.
#[derive(Debug, Clone)]
pub struct Event {
    /// The event as it came; one in the binary form as the JSON that it stands for.
    pub json: String,
    /// What it did, and what of it was left out.
    pub followed: Followed,
}

impl Event {
    /// The event to look into.
    pub fn value(&self) -> Value {
        // It was applied, so it is JSON.
        serde_json::from_str(&self.json).unwrap_or_default()
    }
}

/// A run, or several one after another if the agent begins with earlier ones. Dropping it closes the connection.
#[derive(Debug)]
pub struct Run {
    phase: Phase,
    decoder: Decoder,
    /// What came and was not looked at.
    piece: Bytes,
    follower: Follower,
    /// The run that was asked for, until it starts: earlier ones may come before it.
    asked: Option<String>,
    /// Something came that is no event.
    broken: bool,
    /// The connection broke before the run that was asked for.
    torn: bool,
    idle: Option<Duration>,
    /// When something came last.
    since: Instant,
}

#[derive(Debug)]
enum Phase {
    Open(HttpBody),
    /// Everything came; what is held may be a last event.
    Arrived,
    Over,
}

impl Run {
    pub(super) fn new(
        encoding: Encoding,
        (asked, follower): (String, Follower),
        body: HttpBody,
        idle: Option<Duration>,
    ) -> Self {
        Self {
            phase: Phase::Open(body),
            decoder: Decoder::new(encoding),
            piece: Bytes::new(),
            follower,
            asked: Some(asked),
            broken: false,
            torn: false,
            idle,
            since: Instant::now(),
        }
    }

    /// The next event, which has been applied; `None` when the run is over.
    ///
    /// An error is the last thing that comes. A stream that ends while a run is open is one, so that nobody takes it for
    /// the end of the run; what breaks after the run's end is none. Dropping the future loses nothing.
    ///
    /// An event of a type that is not known is given, with a finding, and did nothing. In the binary form such an event
    /// cannot be read and is passed over.
    pub async fn next(&mut self) -> Option<Result<Event>> {
        loop {
            if let Some(read) = self.decoder.read(&mut self.piece) {
                return Some(self.take(read));
            }
            let arrived = match &mut self.phase {
                Phase::Over => return None,
                Phase::Arrived => match self.decoder.end() {
                    Some(json) => return Some(self.take(Ok(json))),
                    None => return self.cut(Error::Truncated),
                },
                Phase::Open(body) => match self.idle {
                    None => body.next().await,
                    // Counted from what came last, not from when somebody asked.
                    Some(idle) => match timeout_at(self.since + idle, body.next()).await {
                        Ok(piece) => piece,
                        Err(_) => return self.cut(Error::Silent(idle)),
                    },
                },
            };
            match arrived {
                None => self.phase = Phase::Arrived,
                Some(Err(error)) => return self.cut(error.into()),
                Some(Ok(piece)) => {
                    self.since = Instant::now();
                    self.piece = piece;
                }
            }
        }
    }

    /// The messages so far, those before the run among them, as the protocol writes them.
    pub fn messages(&self) -> Value {
        self.follower.reducer().messages_value()
    }

    /// The shared state so far.
    pub fn state(&self) -> &Value {
        self.follower.reducer().state()
    }

    /// All that is known of the run so far.
    pub fn follower(&self) -> &Follower {
        &self.follower
    }

    /// How the run ended, once there are no more events. While they come, and also where they just stop, it is
    /// [`Ending::Truncated`].
    pub fn ending(&self) -> Ending {
        match self.follower.ending() {
            _ if self.broken => Ending::Violated,
            _ if self.torn => Ending::Truncated,
            Ending::Empty => Ending::Truncated,
            other => other,
        }
    }

    /// Closes the connection. That is how an agent learns that nobody wants the run any more; whether it stops, it does
    /// not say, so a run that had not ended stays [`Ending::Truncated`].
    pub fn cancel(&mut self) {
        self.phase = Phase::Over;
        self.piece = Bytes::new();
    }

    pub(super) fn take_follower(&mut self) -> Follower {
        self.cancel();
        std::mem::take(&mut self.follower)
    }

    fn take(&mut self, read: Result<String>) -> Result<Event> {
        let applied = read.and_then(|json| match self.follower.event(json.as_bytes()) {
            Ok(followed) => Ok(Event { json, followed }),
            Err(violation) => Err(violation.into()),
        });
        match &applied {
            Ok(event) if self.asked.is_some() && event.json.contains("RUN_STARTED") => {
                let begun = event.value();
                let says = |name: &str, word: &str| begun.get(name).is_some_and(|it| it == word);
                let is_start = says("type", "RUN_STARTED");
                self.asked.take_if(|asked| is_start && says("runId", asked));
            }
            Ok(_) => {}
            Err(_) => {
                self.broken = true;
                self.cancel();
            }
        }
        applied
    }

    /// Nothing more comes, which is an error unless the run had ended. Where the agent went on to the end of its own
    /// accord, a run under another id than was asked for counts; where it broke off, that may have been an earlier one.
    fn cut(&mut self, error: Error) -> Option<Result<Event>> {
        self.cancel();
        let earlier = self.asked.is_some() && !matches!(error, Error::Truncated);
        self.torn = earlier;
        (earlier || self.ending() == Ending::Truncated).then_some(Err(error))
    }
}

/// Bytes → events, in either form.
#[derive(Debug)]
enum Decoder {
    Sse(Box<Parser>),
    Protobuf(Messages),
}

impl Decoder {
    fn new(encoding: Encoding) -> Self {
        match encoding {
            Encoding::Sse => Self::Sse(Box::new(Parser::new(LARGEST_EVENT))),
            Encoding::Protobuf => Self::Protobuf(Messages::new(LARGEST_EVENT)),
        }
    }

    /// Takes the next event from the front of what came; none when that is used up.
    fn read(&mut self, piece: &mut Bytes) -> Option<Result<String>> {
        loop {
            let mut rest = piece.as_ref();
            let read = match self {
                Self::Sse(parser) => parser.read(&mut rest).map(|(_, told)| match told {
                    Ok(message) => Ok(Some(message.data.clone())),
                    Err(error) => Err(unframed(error)),
                }),
                Self::Protobuf(messages) => messages.read(&mut rest).map(|(_, told)| match told {
                    Ok(message) => Ok(protobuf::decode(message)?.map(|event| event.to_string())),
                    Err(error) => Err(unframed(error)),
                }),
            };
            let left = rest.len();
            *piece = piece.split_off(piece.len() - left);
            match read.map(Result::transpose) {
                // An event of a later version, in a form that only that version reads.
                Some(None) => {}
                Some(Some(read)) => return Some(read),
                None => return None,
            }
        }
    }

    /// A last event whose frame was not closed. Half an event is none.
    fn end(&mut self) -> Option<String> {
        let Self::Sse(parser) = self else { return None };
        let (_, told) = parser.end()?;
        let data = &told.ok()?.data;
        serde_json::from_str::<IgnoredAny>(data).is_ok().then(|| data.clone())
    }
}

fn unframed(error: frame::Error) -> Error {
    match error {
        frame::Error::TooLarge { limit } => Error::TooLarge { limit },
        _ => Error::Truncated,
    }
}
