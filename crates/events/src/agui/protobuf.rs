//! AG-UI's binary form: one event as the bytes of one protobuf message, and back.
//!
//! The messages are data in `tables`, what bytes mean is in `wire`, and what JSON says in another shape than the
//! messages do is in `rules`: outcomes, content, parts. [`encode`] and [`decode`] walk the tables.
//!
//! [`encode`] refuses what the messages cannot say, or would say differently: an unknown type, a required field that
//! is not there, a value of another kind, a part without a binary form. A null where a field is optional is left out,
//! and so is what the protocol does not know, as its own encoder does. Whether an event makes sense is up to
//! [`super::check`], before or after.
//!
//! [`decode`] refuses what is no message, or none that says one thing. It ignores fields it does not know, as every
//! reader of protobuf does, and it invents nothing but the empty texts and lists that the encoding leaves out.
//!
//! Numbers in open data are doubles: integers beyond 2^53 lose digits on the way. The order of keys is kept.
//!
//! ```
//! use banister_events::agui::protobuf::{decode, encode};
//! use serde_json::json;
//! let event = json!({"type": "STEP_STARTED", "stepName": "s"});
//! let bytes = encode(&event)?;
//! assert_eq!(bytes, b"\x7a\x07\x0a\x02\x08\x0e\x12\x01s");
//! assert_eq!(decode(&bytes)?, Some(event));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(test)]
mod arbitrary;
mod reader;
mod rules;
mod tables;
mod wire;
mod writer;

use serde_json::Value;

use super::event::Type;
use crate::frame;

/// How deep messages, objects and lists nest at most.
pub const DEPTH: usize = 127;

/// How many values one event holds at most: two bytes can stand for a whole message of empty texts.
pub const VALUES: usize = 1 << 20;

/// The largest number JavaScript counts with.
const SAFE: i64 = (1 << 53) - 1;

/// Why an event has no binary form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// It is not an object whose type is a text.
    #[error("the event is not an object with a type")]
    NotAnEvent,
    /// Its type is none of the protocol's.
    #[error("the event's type is not one that has a binary form")]
    UnknownType,
    /// A field that must be there is not, or is null.
    #[error("{at} is missing")]
    Missing {
        /// Where, as a JSON Pointer.
        at: String,
    },
    /// A field has a value that its message cannot hold.
    #[error("{at} is not {wanted}")]
    Unfit {
        /// Where, as a JSON Pointer.
        at: String,
        /// What it should be.
        wanted: &'static str,
    },
    /// It nests deeper than any reader has to follow.
    #[error("the event nests more than {DEPTH} levels deep")]
    TooDeep,
    /// Its frame cannot be written.
    #[error(transparent)]
    Frame(#[from] frame::Error),
}

impl EncodeError {
    /// What stands here is not what it should be.
    fn unfit(wanted: &'static str) -> Self {
        Self::Unfit { at: String::new(), wanted }
    }

    /// Nothing stands here.
    fn missing() -> Self {
        Self::Missing { at: String::new() }
    }

    /// The same error, seen from further out; a pointer of its own goes before where it is.
    fn within(mut self, pointer: impl std::fmt::Display) -> Self {
        if let Self::Missing { at } | Self::Unfit { at, .. } = &mut self {
            *at = format!("{pointer}{at}");
        }
        self
    }
}

/// Why bytes are no event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// They end within a field.
    #[error("the message ends within a field")]
    Truncated,
    /// A number takes more bytes or bits than its kind has.
    #[error("a number is too long")]
    Overlong,
    /// A field has the number 0, which none can have.
    #[error("a field has the number 0")]
    FieldZero,
    /// A field says that it is encoded in a way there is none of, or an event is not encoded as a message.
    #[error("a field has an encoding it cannot have")]
    Encoding,
    /// A group ends that did not begin, or another one than did.
    #[error("a group does not end where it should")]
    Group,
    /// A text is not UTF-8.
    #[error("a text is not UTF-8")]
    Text,
    /// A number is not one that JSON can say.
    #[error("a number is not finite")]
    NotFinite,
    /// An integer is larger than JavaScript counts.
    #[error("an integer is beyond 2^53 - 1")]
    Integer,
    /// Messages, objects and lists nest too deep.
    #[error("the message nests more than {DEPTH} levels deep")]
    TooDeep,
    /// There are more values than an event may have.
    #[error("the message holds more than {VALUES} values")]
    TooMany,
    /// There is no event in it, not even one of a later version.
    #[error("the message holds no event")]
    NoEvent,
    /// There are several events in it, or several parts in the place of one.
    #[error("the message holds several things where one can be")]
    Several,
    /// The event does not say its type.
    #[error("the event has no base")]
    NoBase,
    /// The event is kept as one type and says that it is another.
    #[error("the message holds a {held} that calls itself something else")]
    Mismatch {
        /// The type as which it is kept.
        held: &'static str,
    },
    /// Content comes in two forms, or in one that the role does not have.
    #[error("content comes in a form that its message cannot have")]
    Content,
}

/// The bytes of an event, without the length that frames it.
pub fn encode(event: &Value) -> Result<Vec<u8>, EncodeError> {
    let kind = event.get("type").and_then(Value::as_str).ok_or(EncodeError::NotAnEvent)?;
    let arm = Type::parse(kind).and_then(tables::arm).ok_or(EncodeError::UnknownType)?;
    writer::event(arm, event)
}

/// The event that bytes hold; none where it is of a type that only later versions know.
pub fn decode(bytes: &[u8]) -> Result<Option<Value>, DecodeError> {
    reader::event(bytes)
}

#[cfg(test)]
#[path = "protobuf_tests.rs"]
mod tests;
