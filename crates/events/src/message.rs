//! One message: its bytes, parsed once.
//!
//! A [`Message`] is made at the door where bytes come in, and handed to whoever reads it: checker, repairer, reader,
//! index, projector. It is cheap to clone. Bytes that are no JSON, or too many, are [`Unreadable`].

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::Value;

use crate::event::Protocol;
use crate::json::{self, Document, Nodes};
use crate::{frame, limits};

/// One message of a stream, or one native payload of a hook: bytes, the document that they are, and the protocol.
///
/// ```
/// use banister_events::Message;
/// use banister_events::event::Protocol;
/// let message = Message::parse(Protocol::Aep, br#"{"type": "agent.stop"}"#.to_vec().into())?;
/// assert!(message.document().root().get("type").is_some_and(|kind| kind.is("agent.stop")));
/// # Ok::<(), banister_events::message::Unreadable>(())
/// ```
#[derive(Debug, Clone)]
pub struct Message(Arc<Parsed>);

#[derive(Debug)]
struct Parsed {
    protocol: Option<Protocol>,
    bytes: Bytes,
    nodes: Nodes,
    value: OnceLock<Value>,
}

/// Why bytes are no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// There are too many of them.
    #[error(transparent)]
    TooLarge(frame::Error),
    /// They are no JSON.
    #[error("the message is not JSON: {0}")]
    Json(json::Error),
}

impl Message {
    /// Parses a message of a protocol.
    pub fn parse(protocol: Protocol, bytes: Bytes) -> Result<Self, Unreadable> {
        if bytes.len() > limits::MESSAGE_BYTES {
            return Err(Unreadable::TooLarge(frame::Error::TooLarge {
                limit: limits::MESSAGE_BYTES,
            }));
        }
        Self::read(Some(protocol), bytes).map_err(Unreadable::Json)
    }

    /// Parses a native payload of a hook, which speaks the language of its agent.
    pub fn payload(bytes: Bytes) -> Result<Self, json::Error> {
        Self::read(None, bytes)
    }

    /// Parses a message that was let in before: what a record holds may be larger than what a door takes.
    pub fn recorded(protocol: Protocol, bytes: Bytes) -> Result<Self, json::Error> {
        Self::read(Some(protocol), bytes)
    }

    fn read(protocol: Option<Protocol>, bytes: Bytes) -> Result<Self, json::Error> {
        let nodes = Nodes::parse(json::text(&bytes)?)?;
        Ok(Self::new(protocol, bytes, nodes, OnceLock::new()))
    }

    /// A message that is made here. It is written once and not parsed.
    pub fn of_value(protocol: Protocol, value: Value) -> Self {
        let (text, nodes) = Nodes::compose(&value);
        Self::new(Some(protocol), text.into(), nodes, OnceLock::from(value))
    }

    fn new(protocol: Option<Protocol>, bytes: Bytes, nodes: Nodes, value: OnceLock<Value>) -> Self {
        Self(Arc::new(Parsed { protocol, bytes, nodes, value }))
    }

    /// The protocol that it speaks; none for a native payload.
    pub fn protocol(&self) -> Option<Protocol> {
        self.0.protocol
    }

    /// The bytes as they came, or were written.
    pub fn bytes(&self) -> &Bytes {
        &self.0.bytes
    }

    /// The document that the bytes are.
    pub fn document(&self) -> Document<'_> {
        // That it is text was seen when it was parsed. To look again costs less than a second copy would.
        self.0.nodes.document(json::text(&self.0.bytes).unwrap_or_default())
    }

    /// The whole as a value: made of the document when somebody asks first, and kept.
    pub fn value(&self) -> &Value {
        self.0.value.get_or_init(|| self.document().root().to_value())
    }

    /// Whether these are the bytes of this message.
    pub fn is(&self, bytes: &Bytes) -> bool {
        let own = &self.0.bytes;
        own.len() == bytes.len() && (own.as_ptr() == bytes.as_ptr() || own == bytes)
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
