//! One request to an agent: no redirects, bytes to messages in either form.

use banister_client::transport::{HttpBody, HttpError, HttpResponse, words_of};
use banister_events::agui::encoding::{Encoding, MEDIA_TYPE_PROTOBUF, MEDIA_TYPE_SSE, of_response};
use banister_events::agui::protobuf;
use banister_events::event::Protocol;
use banister_events::frame::length::Messages;
use banister_events::frame::sse::Parser;
use banister_events::json::Reason;
use banister_events::limits::MESSAGE_BYTES;
use banister_events::{Message, frame, text};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request};

use super::Upstream;

/// How much of what an agent says instead of a run is passed on, in characters.
const LONGEST_WORDS: usize = 300;

/// Why an agent gave no run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("the agent cannot be reached: {0}")]
    Unreachable(HttpError),
    #[error("the agent refused the run with {status}: {words}")]
    Refused { status: u16, words: String },
    #[error("the agent did not answer with events, but with {0}")]
    NotEvents(String),
    #[error("the agent did not answer in time")]
    Silent,
    #[error("the run was called off before it began")]
    CalledOff,
}

/// A run as it arrives.
#[derive(Debug)]
pub(super) struct Arriving {
    body: HttpBody,
    decoder: Decoder,
}

/// What an agent sent.
#[derive(Debug, Clone)]
pub(crate) enum Sent {
    /// An event.
    Event(Message),
    /// Bytes that are no JSON, or that nobody looked at yet.
    Bytes(Bytes),
}

impl Sent {
    /// The bytes of it.
    pub(crate) fn bytes(&self) -> &Bytes {
        match self {
            Self::Event(message) => message.bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }

    /// The message that it is, where it is one.
    pub(crate) fn message(&self) -> Option<&Message> {
        match self {
            Self::Event(message) => Some(message),
            Self::Bytes(_) => None,
        }
    }
}

/// What an agent sent, or why it could not be cut out.
pub(super) type Framed = Result<Sent, frame::Error>;

impl Upstream {
    /// Asks for a run, and waits until its answer begins.
    pub(super) async fn call(&self, body: Bytes) -> Result<Arriving, Failure> {
        let http = self.http.clone().with_timeout(self.start);
        let sent = http.send(self.address.endpoint(), self.request(body)).await;
        let mut response = sent.map_err(|error| match error {
            HttpError::TimedOut(_) => Failure::Silent,
            other => Failure::Unreachable(other),
        })?;
        // A redirect is a refusal: agents are where the configuration says.
        if !response.status.is_success() {
            let status = response.status.as_u16();
            return Err(Failure::Refused { status, words: shown(&response.words().await) });
        }
        let Some(encoding) = of_response(response.header(&CONTENT_TYPE)) else {
            return Err(Failure::NotEvents(instead(&mut response).await));
        };
        let decoder = match encoding {
            Encoding::Sse => Decoder::Sse(Box::new(Parser::new(MESSAGE_BYTES))),
            Encoding::Protobuf => Decoder::Protobuf(Messages::new(MESSAGE_BYTES)),
        };
        Ok(Arriving { body: response.body, decoder })
    }

    fn request(&self, body: Bytes) -> Request<Bytes> {
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        if let Ok(path) = self.address.path().parse() {
            *request.uri_mut() = path;
        }
        let headers = request.headers_mut();
        headers.extend(self.headers.clone());
        // The host is the one of the address.
        headers.remove(HOST);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        // The binary form is what answers whoever admits it at all: it is named only where it is wanted.
        let accept = if self.binary { MEDIA_TYPE_PROTOBUF } else { MEDIA_TYPE_SSE };
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        request
    }
}

impl Arriving {
    /// The messages of the next piece, and its size; none when nothing more comes.
    pub(super) async fn next(&mut self) -> Option<Result<(Vec<Framed>, usize), HttpError>> {
        let piece = match self.body.next().await? {
            Ok(piece) => piece,
            Err(error) => return Some(Err(error)),
        };
        let mut messages = Vec::new();
        let mut rest = piece.as_ref();
        while let Some(message) = self.decoder.read(&mut rest) {
            messages.extend(message.transpose());
        }
        Some(Ok((messages, piece.len())))
    }

    /// What is left when nothing more comes: an event whose frame was not closed, or half of one.
    pub(super) fn end(&mut self) -> Option<Framed> {
        match &mut self.decoder {
            Decoder::Sse(parser) => {
                let (_, told) = parser.end()?;
                Some(told.map(|message| Bytes::from(message.data.clone())).and_then(|data| {
                    match Message::recorded(Protocol::Agui, data.clone()) {
                        Ok(message) => Ok(Sent::Event(message)),
                        // It is whole, whatever else is wrong with it.
                        Err(error) if is_whole(error.reason) => Ok(Sent::Bytes(data)),
                        Err(_) => Err(frame::Error::Truncated { missing: 0 }),
                    }
                }))
            }
            Decoder::Protobuf(messages) => {
                let (_, told) = messages.end()?;
                Some(told.map(|message| Sent::Bytes(Bytes::copy_from_slice(message))))
            }
        }
    }
}

/// Whether bytes that are no JSON for a reason can be a whole message.
fn is_whole(reason: Reason) -> bool {
    matches!(reason, Reason::Surrogate | Reason::Range | Reason::Depth)
}

/// Bytes → events, in either form.
#[derive(Debug)]
enum Decoder {
    Sse(Box<Parser>),
    Protobuf(Messages),
}

impl Decoder {
    /// The next message of a piece; one that only a later version knows is empty.
    fn read(&mut self, rest: &mut &[u8]) -> Option<Result<Option<Sent>, frame::Error>> {
        match self {
            Self::Sse(parser) => {
                let (_, told) = parser.read(rest)?;
                Some(told.map(|message| Some(Sent::Bytes(message.data.clone().into()))))
            }
            Self::Protobuf(messages) => {
                let (_, told) = messages.read(rest)?;
                Some(told.and_then(|message| match protobuf::decode(message) {
                    Ok(event) => {
                        Ok(event.map(|event| Sent::Event(Message::of_value(Protocol::Agui, event))))
                    }
                    Err(_) => Err(frame::Error::Binary),
                }))
            }
        }
    }
}

/// What came instead of events: its type, and its first words.
async fn instead(response: &mut HttpResponse) -> String {
    let kind = response.header(&CONTENT_TYPE).unwrap_or("something without a type").to_owned();
    let words = words_of(&response.body.beginning().await);
    let words = words.map(|words| format!(": {words}")).unwrap_or_default();
    shown(&format!("{}{words}", text::one_line(&kind)))
}

/// Words of an agent, or of whoever answers in its place, as people may see them.
fn shown(words: &str) -> String {
    text::shorten(&text::redact(words), LONGEST_WORDS).into_owned()
}
