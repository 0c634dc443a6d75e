//! One look at every field of an event: what later conditions need is kept, texts for people are judged on the way.

use super::text::{Origin, Piece, Texts};
use crate::json::View;

/// The fields of one event that conditions are about. A name that stands twice is here with its last value.
#[derive(Default)]
pub(super) struct Seen<'a> {
    pub(super) context: Option<View<'a>>,
    pub(super) version: Option<View<'a>>,
    pub(super) kind: Option<View<'a>>,
    pub(super) timestamp: Option<View<'a>>,
    pub(super) producer: Option<View<'a>>,
    pub(super) urgency: Option<View<'a>>,
    pub(super) localization: Option<View<'a>>,
    pub(super) extensions: Option<View<'a>>,
    pub(super) terse: Option<View<'a>>,
    pub(super) normal: Option<View<'a>>,
    pub(super) detailed: Option<View<'a>>,
    pub(super) progress: Option<View<'a>>,
    pub(super) status: Option<View<'a>>,
    pub(super) error_message: Option<View<'a>>,
    chunk: Option<(View<'a>, View<'a>)>,
    position: Option<View<'a>>,
    complete: Option<View<'a>>,
    content_type: Option<View<'a>>,
    pub(super) timeout: Option<View<'a>>,
    pub(super) default_decision: Option<View<'a>>,
    pub(super) risk: Option<View<'a>>,
    pub(super) irreversible: Option<View<'a>>,
    pub(super) reversibility: Option<View<'a>>,
    pub(super) allowed_replies: Option<View<'a>>,
    pub(super) response_kinds: Option<View<'a>>,
    pub(super) choices: Option<View<'a>>,
    /// Whether it has a field `kind`, which AAEP does not know.
    has_kind: bool,
    /// How many fields it has.
    pub(super) fields: usize,
    pub(super) texts: Texts<'a>,
}

impl<'a> Seen<'a> {
    pub(super) fn new(object: View<'a>, strict: bool) -> Self {
        let mut seen = Self { texts: Texts::new(strict), ..Self::default() };
        for (name, value) in object.entries() {
            seen.fields += 1;
            if let Some(text) = name.as_str() {
                seen.field(&text, name, value);
            }
        }
        seen.chunk();
        seen
    }

    fn chunk(&mut self) {
        let Some((name, value)) = self.chunk else { return };
        let Some(text) = value.as_str() else { return };
        let piece = Piece {
            follows: self.position.and_then(View::as_u64).is_some_and(|position| position > 0),
            goes_on: self.complete.and_then(View::as_bool) == Some(false),
            plain: self.content_type.is_none_or(|kind| kind.is("text/plain")),
        };
        self.texts.piece(name, &text, &piece);
    }

    fn field(&mut self, text: &str, name: View<'a>, value: View<'a>) {
        let origin = match text {
            "@context" => return self.context = Some(value),
            "aaep_version" => return self.version = Some(value),
            "type" => return self.kind = Some(value),
            "timestamp" => return self.timestamp = Some(value),
            "producer" => return self.producer = Some(value),
            "urgency" => return self.urgency = Some(value),
            "localization_hints" => return self.localization = Some(value),
            "extensions" => return self.extensions = Some(value),
            "progress" => return self.progress = Some(value),
            "status" => return self.status = Some(value),
            "chunk" => return self.chunk = Some((name, value)),
            "position" => return self.position = Some(value),
            "complete" => return self.complete = Some(value),
            "content_type" => return self.content_type = Some(value),
            "timeout_seconds" => return self.timeout = Some(value),
            "default_decision" => return self.default_decision = Some(value),
            "risk_level" => return self.risk = Some(value),
            "irreversible" => return self.irreversible = Some(value),
            "reversibility" => return self.reversibility = Some(value),
            "allowed_replies" => return self.allowed_replies = Some(value),
            "accepted_response_kinds" => return self.response_kinds = Some(value),
            "choices" => return self.choices = Some(value),
            "kind" => return self.has_kind = true,
            "summary_normal" => {
                self.normal = Some(value);
                Origin::Written
            }
            "summary_terse" => {
                self.terse = Some(value);
                Origin::Written
            }
            "summary_detailed" => {
                self.detailed = Some(value);
                Origin::Written
            }
            "error_message" => {
                self.error_message = Some(value);
                Origin::Quoted
            }
            "request_text" | "args_summary" | "partial_result" | "output_summary" => Origin::Quoted,
            "description" | "action" | "consequence" | "question" | "context" | "reason"
            | "remediation_hint" => Origin::Written,
            _ => return,
        };
        if let Some(text) = value.as_str() {
            self.texts.see(name, &text, origin);
        }
    }

    /// Whether it is nobody's event: a message with a `kind` instead of a type, or the reply of an extension.
    pub(super) fn is_foreign(&self, name: &str) -> bool {
        let is_reply = || {
            name.rsplit_once('.').is_some_and(|(_, last)| last == "reply") && !name.contains(':')
        };
        self.context.is_none() && ((self.kind.is_none() && self.has_kind) || is_reply())
    }

    /// Whether it says that what it is about cannot be undone, in either of the two ways (§4.4.1, §6.4.1).
    pub(super) fn is_irreversible(&self) -> bool {
        self.irreversible.and_then(View::as_bool) == Some(true)
            || self.reversibility.is_some_and(|word| word.is("irreversible"))
    }
}
