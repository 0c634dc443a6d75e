//! One look at every field of an event: what later conditions need is kept, texts for people are judged on the way.

use super::text::{Origin, Piece, Place, Texts};
use super::{language, limits};
use crate::json::View;

/// The fields of one event that conditions are about. A name that stands twice is here with its last value.
#[derive(Default)]
pub(crate) struct Seen<'a> {
    pub(in crate::aaep) context: Option<View<'a>>,
    pub(in crate::aaep) version: Option<View<'a>>,
    pub(in crate::aaep) kind: Option<View<'a>>,
    pub(in crate::aaep) event_id: Option<View<'a>>,
    pub(in crate::aaep) session_id: Option<View<'a>>,
    pub(in crate::aaep) sequence_number: Option<View<'a>>,
    pub(in crate::aaep) timestamp: Option<View<'a>>,
    pub(in crate::aaep) producer: Option<View<'a>>,
    pub(in crate::aaep) urgency: Option<View<'a>>,
    pub(in crate::aaep) localization: Option<View<'a>>,
    pub(in crate::aaep) extensions: Option<View<'a>>,
    pub(in crate::aaep) terse: Option<View<'a>>,
    pub(in crate::aaep) normal: Option<View<'a>>,
    pub(in crate::aaep) detailed: Option<View<'a>>,
    pub(in crate::aaep) progress: Option<View<'a>>,
    pub(in crate::aaep) status: Option<View<'a>>,
    pub(in crate::aaep) error_message: Option<View<'a>>,
    pub(in crate::aaep) from_state: Option<View<'a>>,
    pub(in crate::aaep) to_state: Option<View<'a>>,
    pub(in crate::aaep) tool: Option<View<'a>>,
    pub(in crate::aaep) tool_call_id: Option<View<'a>>,
    pub(in crate::aaep) reply_token: Option<View<'a>>,
    pub(in crate::aaep) chunk: Option<(View<'a>, View<'a>)>,
    pub(in crate::aaep) output_id: Option<View<'a>>,
    pub(in crate::aaep) position: Option<View<'a>>,
    pub(in crate::aaep) complete: Option<View<'a>>,
    pub(in crate::aaep) hint: Option<View<'a>>,
    content_type: Option<View<'a>>,
    pub(in crate::aaep) timeout: Option<View<'a>>,
    pub(in crate::aaep) default_decision: Option<View<'a>>,
    pub(in crate::aaep) risk: Option<View<'a>>,
    pub(in crate::aaep) irreversible: Option<View<'a>>,
    pub(in crate::aaep) reversibility: Option<View<'a>>,
    pub(in crate::aaep) allowed_replies: Option<View<'a>>,
    pub(in crate::aaep) response_kinds: Option<View<'a>>,
    pub(in crate::aaep) choices: Option<View<'a>>,
    pub(in crate::aaep) language: Option<View<'a>>,
    /// Whether it has a number beyond ±2^53 that is not written as a whole one, where no table bounds it.
    pub(super) big_float: bool,
    /// Whether it has a field `kind`, which AAEP does not know.
    has_kind: bool,
    /// How many fields it has.
    pub(in crate::aaep) fields: usize,
    pub(in crate::aaep) texts: Texts<'a>,
}

impl<'a> Seen<'a> {
    pub(crate) fn new(object: View<'a>, strict: bool) -> Self {
        let mut seen = Self { texts: Texts::new(strict), ..Self::default() };
        for (name, value) in object.entries() {
            seen.fields += 1;
            if let Some(text) = name.as_str() {
                seen.field(text.as_bytes(), name, value);
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
        self.texts.piece(Place::Field(name), &text, &piece);
    }

    #[expect(clippy::too_many_lines, reason = "one line for each field of the protocol")]
    fn field(&mut self, text: &[u8], name: View<'a>, value: View<'a>) {
        // The length of a name tells most of them apart.
        let origin = match text.len() {
            4 => match text {
                b"type" => return self.kind = Some(value),
                b"tool" => return self.tool = Some(value),
                b"kind" => return self.has_kind = true,
                _ => return self.other(text, name, value),
            },
            5 => match text {
                b"chunk" => return self.chunk = Some((name, value)),
                _ => return self.other(text, name, value),
            },
            6 => match text {
                b"status" => return self.status = Some(value),
                b"action" | b"reason" => Origin::Written,
                _ => return self.other(text, name, value),
            },
            7 => match text {
                b"urgency" => return self.urgency = Some(value),
                b"choices" => return self.choices(value),
                b"context" => Origin::Written,
                _ => return self.other(text, name, value),
            },
            8 => match text {
                b"@context" => return self.context = Some(value),
                b"event_id" => return self.event_id = Some(value),
                b"producer" => return self.producer = Some(value),
                b"progress" => return self.progress(value),
                b"language" => return self.language = Some(value),
                b"to_state" => return self.to_state = Some(value),
                b"position" => {
                    self.big_float |= limits::is_big_float(value);
                    return self.position = Some(value);
                }
                b"complete" => return self.complete = Some(value),
                b"question" => Origin::Written,
                _ => return self.other(text, name, value),
            },
            9 => match text {
                b"timestamp" => return self.timestamp = Some(value),
                b"output_id" => return self.output_id = Some(value),
                b"verbosity" => return,
                _ => return self.other(text, name, value),
            },
            10 => match text {
                b"session_id" => return self.session_id = Some(value),
                b"extensions" => {
                    self.big_float |= limits::holds_big_float(value);
                    return self.extensions = Some(value);
                }
                b"from_state" => return self.from_state = Some(value),
                b"risk_level" => return self.risk = Some(value),
                _ => return self.other(text, name, value),
            },
            11 => match text {
                b"reply_token" => return self.reply_token = Some(value),
                b"description" | b"consequence" => Origin::Written,
                _ => return self.other(text, name, value),
            },
            12 => match text {
                b"aaep_version" => return self.version = Some(value),
                b"tool_call_id" => return self.tool_call_id = Some(value),
                b"content_type" => return self.content_type = Some(value),
                b"irreversible" => return self.irreversible = Some(value),
                b"request_text" | b"args_summary" => Origin::Quoted,
                _ => return self.other(text, name, value),
            },
            13 => match text {
                b"extra_context" => {
                    return self.big_float |= limits::holds_big_float(value);
                }
                b"coalesce_hint" => return self.hint = Some(value),
                b"reversibility" => return self.reversibility = Some(value),
                b"summary_terse" => {
                    self.terse = Some(value);
                    Origin::Written
                }
                b"error_message" => {
                    self.error_message = Some(value);
                    Origin::Quoted
                }
                _ => return self.other(text, name, value),
            },
            14 => match text {
                b"correlation_id" => return,
                b"summary_normal" => {
                    self.normal = Some(value);
                    Origin::Written
                }
                b"partial_result" | b"output_summary" => Origin::Quoted,
                _ => return self.other(text, name, value),
            },
            15 => match text {
                b"sequence_number" => {
                    self.big_float |= limits::is_big_float(value);
                    return self.sequence_number = Some(value);
                }
                b"timeout_seconds" => return self.timeout = Some(value),
                b"allowed_replies" => return self.allowed_replies = Some(value),
                _ => return self.other(text, name, value),
            },
            16 => match text {
                b"packaged_context" => {
                    return self.big_float |= limits::holds_big_float(value);
                }
                b"default_decision" => return self.default_decision = Some(value),
                b"summary_detailed" => {
                    self.detailed = Some(value);
                    Origin::Written
                }
                b"remediation_hint" | b"default_response" => Origin::Written,
                _ => return self.other(text, name, value),
            },
            18 => match text {
                b"localization_hints" => return self.localization = Some(value),
                _ => return self.other(text, name, value),
            },
            23 => match text {
                b"accepted_response_kinds" => return self.response_kinds = Some(value),
                _ => return self.other(text, name, value),
            },
            _ => return self.other(text, name, value),
        };
        if let Some(text) = value.as_str() {
            self.texts.see(Place::Field(name), &text, origin);
        }
    }

    /// A field that no condition is about: perhaps a text in another language, or a number that nothing bounds.
    #[inline(never)]
    fn other(&mut self, text: &[u8], name: View<'a>, value: View<'a>) {
        if !value.is_string() {
            self.big_float |= limits::is_big_float(value);
            return;
        }
        let is_text =
            std::str::from_utf8(text).is_ok_and(|text| language::localized(text).is_some());
        if is_text && let Some(text) = value.as_str() {
            self.texts.see(Place::Field(name), &text, Origin::Written);
        }
    }

    #[inline(never)]
    fn progress(&mut self, progress: View<'a>) {
        self.progress = Some(progress);
        for (name, value) in progress.entries() {
            self.big_float |= limits::is_big_float(value);
            if name.is("description")
                && let Some(text) = value.as_str()
            {
                self.texts.see(Place::Progress, &text, Origin::Written);
            }
        }
    }

    #[inline(never)]
    fn choices(&mut self, choices: View<'a>) {
        self.choices = Some(choices);
        for (index, choice) in choices.items().enumerate() {
            if let Some(label) = choice.get("label").and_then(View::as_str) {
                self.texts.see(Place::Choice(index), &label, Origin::Written);
            }
        }
    }

    /// Whether it is nobody's event: a message with a `kind` instead of a type, or the reply of an extension.
    pub(in crate::aaep) fn is_foreign(&self, name: &str) -> bool {
        let is_reply = || {
            name.rsplit_once('.').is_some_and(|(_, last)| last == "reply") && !name.contains(':')
        };
        self.context.is_none() && ((self.kind.is_none() && self.has_kind) || is_reply())
    }

    /// Whether it says that what it is about cannot be undone, in either of the two ways (§4.4.1, §6.4.1).
    pub(in crate::aaep) fn is_irreversible(&self) -> bool {
        self.irreversible.and_then(View::as_bool) == Some(true)
            || self.reversibility.is_some_and(|word| word.is("irreversible"))
    }
}
