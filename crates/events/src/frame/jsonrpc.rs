//! JSON-RPC 2.0 envelopes, one per line, as in AAEP's stdio binding.
//!
//! [`read`] opens the envelope of one line and leaves what is inside as the bytes that came: it is for the checker and
//! the readers of the protocol. Lines are cut by [`super::ndjson`]. A line that is no envelope is told from one without
//! parsing it, so a stream of plain JSON lines pays next to nothing for the question; for that, the member name
//! `jsonrpc` has to be written without escapes. It does not match responses to requests.
//!
//! ```
//! use banister_events::frame::jsonrpc::{Envelope, Fault, Method, read, write};
//! let line = br#"{"jsonrpc":"2.0","method":"aaep.event","params":{"type":"aaep:session.started"}}"#;
//! let Some(Ok(envelope)) = read(line) else { panic!("it is an envelope") };
//! assert_eq!(envelope.method(), Some(&Method::Event));
//! assert_eq!(envelope.message(), Some(&br#"{"type":"aaep:session.started"}"#[..]));
//!
//! let mut out = Vec::new();
//! write(&mut out, &envelope);
//! assert_eq!(out.strip_suffix(b"\n"), Some(&line[..]));
//!
//! assert!(read(br#"{"type":"aaep:session.started"}"#).is_none(), "a plain line");
//! assert_eq!(read(br#"{"jsonrpc":"1.0","method":"aaep.ping"}"#).map(|it| it.err()), Some(Some(Fault::Version)));
//! ```

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::ndjson;

/// One envelope. Ids and messages are the bytes that came.
#[derive(Debug, Clone)]
pub enum Envelope<'a> {
    /// A call that is answered.
    Request {
        /// What the answer will repeat: a string, a number or null.
        id: &'a RawValue,
        /// What is called.
        method: Method<'a>,
        /// The message within.
        params: Option<&'a RawValue>,
    },
    /// A call that is not answered.
    Notification {
        /// What is called.
        method: Method<'a>,
        /// The message within.
        params: Option<&'a RawValue>,
    },
    /// The answer to a request. A refused subscription is one, too.
    Response {
        /// That of the request.
        id: &'a RawValue,
        /// The message within.
        result: &'a RawValue,
    },
    /// The answer to a request that went wrong.
    Failure {
        /// That of the request; null where it could not be told.
        id: &'a RawValue,
        /// What went wrong, as a number.
        code: i64,
        /// What went wrong, in words.
        message: Cow<'a, str>,
        /// More about it.
        data: Option<&'a RawValue>,
    },
}

impl<'a> Envelope<'a> {
    /// The message within: the parameters of a call, the result of a request.
    pub fn message(&self) -> Option<&'a [u8]> {
        let inner = match self {
            Self::Request { params, .. } | Self::Notification { params, .. } => (*params)?,
            Self::Response { result, .. } => result,
            Self::Failure { .. } => return None,
        };
        Some(inner.get().as_bytes())
    }

    /// What is called; none in an answer.
    pub fn method(&self) -> Option<&Method<'a>> {
        match self {
            Self::Request { method, .. } | Self::Notification { method, .. } => Some(method),
            Self::Response { .. } | Self::Failure { .. } => None,
        }
    }

    /// The id, as JSON; none in a notification.
    pub fn id(&self) -> Option<&'a RawValue> {
        match self {
            Self::Request { id, .. } | Self::Response { id, .. } | Self::Failure { id, .. } => {
                Some(id)
            }
            Self::Notification { .. } => None,
        }
    }
}

/// What is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Method<'a> {
    /// `aaep.event`: an event, from the producer.
    Event,
    /// `aaep.subscribe`: a subscriber asks for events.
    Subscribe,
    /// `aaep.renegotiate`: a subscriber asks for other terms.
    Renegotiate,
    /// `aaep.reply`: a subscriber answers what it was asked.
    Reply,
    /// `aaep.close`: either side ends the subscription.
    Close,
    /// `aaep.ping`: is the other side there?
    Ping,
    /// A method that AAEP does not know.
    Other(Cow<'a, str>),
}

impl<'a> Method<'a> {
    fn parse(name: Cow<'a, str>) -> Self {
        match name.as_ref() {
            "aaep.event" => Self::Event,
            "aaep.subscribe" => Self::Subscribe,
            "aaep.renegotiate" => Self::Renegotiate,
            "aaep.reply" => Self::Reply,
            "aaep.close" => Self::Close,
            "aaep.ping" => Self::Ping,
            _ => Self::Other(name),
        }
    }

    /// Its name on the wire.
    pub fn name(&self) -> &str {
        match self {
            Self::Event => "aaep.event",
            Self::Subscribe => "aaep.subscribe",
            Self::Renegotiate => "aaep.renegotiate",
            Self::Reply => "aaep.reply",
            Self::Close => "aaep.close",
            Self::Ping => "aaep.ping",
            Self::Other(name) => name,
        }
    }

    /// Whether AAEP wants it called as a request; none where AAEP does not know it.
    pub fn is_request(&self) -> Option<bool> {
        match self {
            Self::Subscribe | Self::Renegotiate | Self::Ping => Some(true),
            Self::Event | Self::Reply | Self::Close => Some(false),
            Self::Other(_) => None,
        }
    }

    /// Whether its parameters are a message of AAEP's.
    pub fn carries_message(&self) -> bool {
        !matches!(self, Self::Ping | Self::Other(_))
    }
}

/// What is wrong with an envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// `jsonrpc` is something else than `"2.0"`.
    #[error("the envelope's `jsonrpc` is not \"2.0\"")]
    Version,
    /// Several envelopes in an array, which a line has no room for.
    #[error("the line is a batch of envelopes; one line is one envelope")]
    Batch,
    /// A member is there twice.
    #[error("the envelope has a member twice")]
    Repeated,
    /// The id is neither a string nor a number nor null.
    #[error("the envelope's `id` is neither a string nor a number nor null")]
    Id,
    /// An answer without id.
    #[error("the answer has no `id`")]
    MissingId,
    /// The method is not a string.
    #[error("the envelope's `method` is not a string")]
    Method,
    /// A method of AAEP's is called without the message it carries.
    #[error("the call has no `params`")]
    MissingParams,
    /// The parameters are not an object, or for a method that AAEP does not know, neither object nor array.
    #[error("the call's `params` is not an object")]
    Params,
    /// Not exactly one of `method`, `result` and `error`.
    #[error("the envelope has not exactly one of `method`, `result` and `error`")]
    Kind,
    /// The error is not an object with an integer `code` and a string `message`.
    #[error("the envelope's `error` has no integer `code` or no string `message`")]
    Error,
}

static NAME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"jsonrpc\""));

/// Opens the envelope of one line; none where the line is no envelope, be it JSON or not.
pub fn read(line: &[u8]) -> Option<Result<Envelope<'_>, Fault>> {
    let text = line.trim_ascii_start();
    let batch = text.strip_prefix(b"[").map(<[u8]>::trim_ascii_start);
    if !batch.unwrap_or(text).starts_with(b"{") || NAME.find(text).is_none() {
        return None;
    }
    if let Some(elements) = batch {
        // The first element tells: a line may have millions.
        let first =
            serde_json::Deserializer::from_slice(elements).into_iter::<Wire<'_>>().next()?;
        return first.ok()?.jsonrpc.map(|_| Err(Fault::Batch));
    }
    match serde_json::from_slice::<Wire<'_>>(text) {
        Ok(wire) => wire.jsonrpc.map(|version| wire.open(version)),
        // Every member is taken as it is, so that this is all the data can get wrong.
        Err(error) => error.is_data().then_some(Err(Fault::Repeated)),
    }
}

/// An envelope's members; whether a member is null or not there makes a difference.
#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(value).map(Some)
}

#[derive(Deserialize)]
struct WireError<'a> {
    code: i64,
    #[serde(borrow)]
    message: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "present")]
    data: Option<&'a RawValue>,
}

impl<'a> Wire<'a> {
    fn open(&self, version: &RawValue) -> Result<Envelope<'a>, Fault> {
        if text(version).as_deref() != Some("2.0") {
            return Err(Fault::Version);
        }
        if self.id.is_some_and(|id| {
            matches!(id.get().as_bytes().first(), Some(b'{' | b'[' | b't' | b'f'))
        }) {
            return Err(Fault::Id);
        }
        match (self.method, self.result, self.error) {
            (Some(method), None, None) => self.call(method),
            (None, Some(result), None) => {
                Ok(Envelope::Response { id: self.id.ok_or(Fault::MissingId)?, result })
            }
            (None, None, Some(error)) => {
                let id = self.id.ok_or(Fault::MissingId)?;
                let object = Some(error.get()).filter(|error| error.starts_with('{'));
                let WireError { code, message, data } = object
                    .and_then(|error| serde_json::from_str(error).ok())
                    .ok_or(Fault::Error)?;
                Ok(Envelope::Failure { id, code, message, data })
            }
            _ => Err(Fault::Kind),
        }
    }

    fn call(&self, method: &'a RawValue) -> Result<Envelope<'a>, Fault> {
        let method = Method::parse(text(method).ok_or(Fault::Method)?);
        let params = self.params;
        match params.map(|params| params.get().as_bytes().first()) {
            None if method.carries_message() => return Err(Fault::MissingParams),
            None | Some(Some(b'{')) => {}
            Some(Some(b'[')) if !method.carries_message() => {}
            Some(_) => return Err(Fault::Params),
        }
        Ok(match self.id {
            Some(id) => Envelope::Request { id, method, params },
            None => Envelope::Notification { method, params },
        })
    }
}

/// What a JSON string says; none where it is something else.
fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str::<Text<'_>>(value.get()).ok().map(|text| text.0)
}

/// Writes one envelope and the line end. It stays on one line, whatever the layout of what is inside.
pub fn write(out: &mut Vec<u8>, envelope: &Envelope<'_>) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
    let mut member = |name: &str, value: &str| {
        out.extend_from_slice(b",\"");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        ndjson::write_flat(out, value.as_bytes());
    };
    if let Some(id) = envelope.id() {
        member("id", id.get());
    }
    match envelope {
        Envelope::Request { method, params, .. } | Envelope::Notification { method, params } => {
            member("method", &quoted(method.name()));
            if let Some(params) = params {
                member("params", params.get());
            }
        }
        Envelope::Response { result, .. } => member("result", result.get()),
        Envelope::Failure { code, message, data, .. } => {
            let data = data.map_or(String::new(), |data| format!(",\"data\":{data}"));
            let error = format!("{{\"code\":{code},\"message\":{}{data}}}", quoted(message));
            member("error", &error);
        }
    }
    out.extend_from_slice(b"}\n");
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
#[path = "jsonrpc_tests.rs"]
mod tests;
