//! The two forms in which events are sent, which one a reader asks for, and which one a response has.
//!
//! The binary form is sent to whoever admits it, however much less than other forms: so the protocol's own encoder
//! decides, and so its clients expect. Who says nothing gets server-sent events, the form that every reader has.
//!
//! A response's type is compared without its parameters. What is neither form is not taken for one: the protocol's
//! client reads such a response as empty, and calls that success.

use serde_json::Value;

use super::protobuf::{self, EncodeError};
use crate::frame::{length, sse};

/// The media type of server-sent events.
pub const MEDIA_TYPE_SSE: &str = "text/event-stream";

/// The media type of the binary form; a response names it without any parameter.
pub const MEDIA_TYPE_PROTOBUF: &str = "application/vnd.ag-ui.event+proto";

/// A form in which events are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Server-sent events, each with one line of JSON.
    Sse,
    /// Protobuf messages, each behind its length.
    Protobuf,
}

impl Encoding {
    /// What a response in this form calls itself.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Sse => MEDIA_TYPE_SSE,
            Self::Protobuf => MEDIA_TYPE_PROTOBUF,
        }
    }
}

/// The form for whoever sent this `Accept`.
///
/// The most specific range that covers the binary form decides, and among equals the one that wants it most. A range
/// with parameters covers another type; a weight that is no number is none.
///
/// ```
/// use banister_events::agui::encoding::{Encoding, negotiate};
/// assert_eq!(negotiate(None), Encoding::Sse);
/// assert_eq!(negotiate(Some("text/event-stream")), Encoding::Sse);
/// assert_eq!(negotiate(Some("*/*")), Encoding::Protobuf);
/// ```
pub fn negotiate(accept: Option<&str>) -> Encoding {
    let ranges = split(accept.unwrap_or_default(), ',');
    let best = ranges
        .filter_map(weigh)
        .max_by(|(exact, weight), (other, than)| exact.cmp(other).then(weight.total_cmp(than)));
    match best {
        Some((_, weight)) if weight > 0.0 => Encoding::Protobuf,
        _ => Encoding::Sse,
    }
}

/// How closely a range describes the binary form, and how much it wants it; none where it is of other types.
fn weigh(range: &str) -> Option<(u8, f64)> {
    let mut words = split(range, ';');
    let (kind, subtype) = words.next()?.trim().split_once('/')?;
    let (ours, form) = MEDIA_TYPE_PROTOBUF.split_once('/')?;
    let exact = match (kind, subtype) {
        ("*", "*") => 0,
        (kind, "*") if kind.eq_ignore_ascii_case(ours) => 1,
        (kind, subtype)
            if kind.eq_ignore_ascii_case(ours) && subtype.eq_ignore_ascii_case(form) =>
        {
            2
        }
        _ => return None,
    };
    for word in words {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let name = name.trim();
        if name.eq_ignore_ascii_case("q") {
            // What follows the weight is not part of the range.
            return Some((exact, weight(value.trim())));
        }
        if !name.is_empty() {
            return None;
        }
    }
    Some((exact, 1.0))
}

fn weight(text: &str) -> f64 {
    let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    // What cannot be read is not taken for consent: any reader has the other form.
    if plain { text.parse().unwrap_or(0.0) } else { 0.0 }
}

/// The pieces between separators that are not quoted.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |character| {
        if escaped {
            escaped = false;
        } else if quoted && character == '\\' {
            escaped = true;
        } else if character == '"' {
            quoted = !quoted;
        }
        !quoted && character == separator
    })
}

/// The form of a response with this `Content-Type`; none where it is neither.
///
/// ```
/// use banister_events::agui::encoding::{Encoding, of_response};
/// assert_eq!(of_response(Some("Text/Event-Stream; charset=utf-8")), Some(Encoding::Sse));
/// assert_eq!(of_response(Some("text/html")), None);
/// ```
pub fn of_response(content_type: Option<&str>) -> Option<Encoding> {
    let essence = content_type?.split(';').next()?.trim();
    [Encoding::Sse, Encoding::Protobuf]
        .into_iter()
        .find(|encoding| encoding.media_type().eq_ignore_ascii_case(essence))
}

/// Adds one event in its frame; on an error, nothing.
///
/// As JSON, an event is written as it is: whoever makes it leaves out the nulls that the protocol forbids.
pub fn frame(encoding: Encoding, event: &Value, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    match encoding {
        Encoding::Sse => {
            let data = event.to_string();
            sse::write(out, &sse::Outgoing { id: None, event: None, data: &data });
        }
        Encoding::Protobuf => length::write(out, &protobuf::encode(event)?)?,
    }
    Ok(())
}

#[cfg(test)]
#[path = "encoding_tests.rs"]
mod tests;
