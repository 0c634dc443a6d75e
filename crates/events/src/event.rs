//! Which protocol a message speaks.

use jiff::fmt::temporal::DateTimePrinter;
use serde::{Deserialize, Serialize};

use crate::aaep;
use crate::json::{Parser, View};

/// One of the three event protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// AAEP 1.0: an agent tells assistive technology what it does.
    Aaep,
    /// AG-UI 1.0: an agent streams to a front end.
    Agui,
    /// AEP 0.1: the hooks of coding agents in one shape.
    Aep,
}

impl Protocol {
    /// All protocols, in the order documents list them.
    pub const ALL: [Self; 3] = [Self::Aaep, Self::Agui, Self::Aep];

    /// The name used on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aaep => "aaep",
            Self::Agui => "agui",
            Self::Aep => "aep",
        }
    }

    /// The name with its version, as people write it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Aaep => "AAEP 1.0",
            Self::Agui => "AG-UI 1.0",
            Self::Aep => "AEP 0.1",
        }
    }

    /// Parses a name as [`Protocol::name`] gives it; `ag-ui` is accepted too.
    ///
    /// ```
    /// use banister_events::event::Protocol;
    /// assert_eq!(Protocol::parse("ag-ui"), Some(Protocol::Agui));
    /// assert_eq!(Protocol::parse("http"), None);
    /// ```
    pub fn parse(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "aaep" => Some(Self::Aaep),
            "agui" | "ag-ui" => Some(Self::Agui),
            "aep" => Some(Self::Aep),
            _ => None,
        }
    }

    /// Tells the protocol of one message by the fields only that protocol has.
    ///
    /// ```
    /// use banister_events::event::Protocol;
    /// let message = br#"{"type": "RUN_STARTED", "threadId": "t", "runId": "r"}"#;
    /// assert_eq!(Protocol::sniff_bytes(message), Some(Protocol::Agui));
    /// ```
    pub fn sniff_bytes(message: &[u8]) -> Option<Self> {
        let mut parser = Parser::default();
        let document = parser.parse(message).ok()?;
        let object = document.root();
        let has = |name: &str| object.get(name).is_some();
        let kind = object.get("type").and_then(View::as_str).unwrap_or_default();
        if has("@context") || kind.starts_with("aaep:") || aaep::event::is_control(&kind) {
            return Some(Self::Aaep);
        }
        if has("aep_version") {
            return Some(Self::Aep);
        }
        let shouts = !kind.is_empty() && kind.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
        if shouts {
            return Some(Self::Agui);
        }
        // A hook event whose version was forgotten still names an agent by slug.
        let has_slug = object.pointer("/agent/slug").is_some();
        (has_slug || kind.contains('.')).then_some(Self::Aep)
    }
}

impl std::fmt::Display for Protocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A time as all three protocols take it: RFC 3339, UTC, milliseconds.
///
/// ```
/// let time = "2026-11-15T09:00:00.1239Z".parse().unwrap();
/// assert_eq!(banister_events::event::time_text(time), "2026-11-15T09:00:00.123Z");
/// ```
pub fn time_text(time: jiff::Timestamp) -> String {
    let mut text = String::with_capacity(24);
    // Writing to memory does not fail.
    TIME.print_timestamp(&whole_millis(time), &mut text).ok();
    text
}

/// Appends [`time_text`] as a JSON string.
pub(crate) fn time_json(time: jiff::Timestamp, out: &mut Vec<u8>) {
    out.push(b'"');
    // Writing to memory does not fail.
    TIME.print_timestamp(&whole_millis(time), &mut *out).ok();
    out.push(b'"');
}

const TIME: DateTimePrinter = DateTimePrinter::new().precision(Some(3));

fn whole_millis(time: jiff::Timestamp) -> jiff::Timestamp {
    jiff::Timestamp::from_millisecond(time.as_millisecond()).unwrap_or(time)
}
