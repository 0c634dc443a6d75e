//! What a message is, or can be made into.

use serde_json::{Value, json};

use super::event::{Event, kind_of, raw, short};
use super::{Came, Repairer};
use crate::agui::check::{
    self, JSON, LEGACY_PART, MALFORMED, RETIRED_TYPE, TOLERATED_NULL, TYPE, UNKNOWN_FIELD,
    UNKNOWN_MEMBER, UNKNOWN_TYPE, VERSION,
};
use crate::agui::enforce::Enforced;
use crate::agui::event::{RETIRED, Type};
use crate::check::shape::{self, quote};
use crate::event::Protocol;
use crate::finding::Finding;
use crate::json::{Reason, View};
use crate::message::Message;

/// How much of a message that is not JSON is kept.
const KEPT: usize = 64 * 1024;

/// What a message is at first sight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// Nothing that an event could be.
    Noise,
    /// An object, with its type if that is known.
    Object(Option<Type>),
}

/// Looks at a message, no closer than needed.
pub(super) fn sight(came: &Came) -> Sight {
    let of = |object: View<'_>| {
        let name = object.get("type").and_then(View::as_str);
        if !object.is_object() {
            return Sight::Noise;
        }
        Sight::Object(name.as_deref().and_then(kind_of))
    };
    match came {
        Came::Message(message) => of(message.document().root()),
        Came::Broken(bytes, reason) => {
            let legible = legible(bytes, *reason);
            legible.map_or(Sight::Noise, |message| of(message.document().root()))
        }
    }
}

impl Repairer {
    /// The event that a message is or can be made into; none where there is nothing to keep.
    pub(super) fn read(&mut self, came: &Came) -> Option<Event> {
        let (bytes, reason) = match came {
            Came::Message(message) => return Some(self.understand(message, None)),
            Came::Broken(bytes, reason) => (bytes, *reason),
        };
        let came = String::from_utf8_lossy(bytes).into_owned();
        if let Some(message) = legible(bytes, reason) {
            self.tell(&JSON, format!("replaced by U+FFFD what is no character, as {reason}"));
            return Some(self.understand(&message, Some(came.into())));
        }
        if matches!(came.trim(), "" | "[DONE]") {
            self.tell(&JSON, format!("removed {}, which says nothing", quote(came.trim())));
            return None;
        }
        let start = bytes.get(..KEPT).unwrap_or(bytes);
        let cut = if start.len() < bytes.len() { ", the first 64 KiB of it" } else { "" };
        self.tell(&JSON, format!("put a message into a RAW event as text{cut}, as {reason}"));
        Some(raw(String::from_utf8_lossy(start).into()))
    }

    fn understand(&mut self, message: &Message, came: Option<Value>) -> Event {
        let document = message.document();
        let whole = document.root().to_value();
        let Value::Object(fields) = whole else {
            self.tell(&JSON, format!("put {} into a RAW event, as it is no object", short(&whole)));
            return raw(whole);
        };
        let name = fields.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let Some(kind) = kind_of(&name) else {
            let (rule, what) = if name.is_empty() {
                (&TYPE, "an object without type".to_owned())
            } else {
                (&UNKNOWN_TYPE, quote(&name))
            };
            self.tell(rule, format!("put {what} into a RAW event"));
            return raw(came.unwrap_or(Value::Object(fields)));
        };
        let mut event = Event::came(kind, fields, message.clone());
        event.original = came;
        if Type::parse(&name).is_none() && !RETIRED.iter().any(|(old, _)| *old == name) {
            self.tell(&UNKNOWN_TYPE, format!("replaced type {} by {}", quote(&name), kind.name()));
            event.set("type", kind.name());
        }
        if !shape::compare(kind.shape(), document.root(), &mut self.known).is_empty() {
            self.rename(&mut event);
            self.mend_outcome(&mut event);
        }
        self.leave_out_version(&mut event);
        let enforced = self.enforce(event);
        let mended =
            enforced.or_else(|event| self.mend(event)).and_then(|event| self.enforce(event));
        mended.unwrap_or_else(|event| {
            self.tell(&MALFORMED, format!("put {} into a RAW event", quote(&name)));
            event.into_raw()
        })
    }

    /// What a client leaves of an event; as it is where a client would end the run.
    fn enforce(&mut self, mut event: Event) -> Result<Event, Event> {
        let message = event.to_message();
        let document = message.document();
        if document.too_deep().is_some() {
            return Err(event);
        }
        let mut findings = Vec::new();
        match check::event(&document, &mut self.boundary, &mut self.known, &mut findings) {
            Enforced::Whole(_) => Ok(event),
            Enforced::Changed(kind, changed) => {
                let Value::Object(fields) = changed.value().clone() else { return Err(event) };
                let before = Value::Object(event.fields.clone());
                event.touch();
                (event.kind, event.fields, event.message) = (kind, fields, Some(changed));
                for finding in findings {
                    event.aside |= finding.rule.code == UNKNOWN_MEMBER.code;
                    if let Some(what) = taken_out(&finding, &before) {
                        self.tell(finding.rule, format!("{what} in {}", kind.name()));
                    }
                }
                if before.get("type").is_some_and(|name| RETIRED.iter().any(|(old, _)| name == old))
                    && let Some(title) = before.get("title")
                {
                    self.tell(
                        &UNKNOWN_FIELD,
                        format!("removed /title {} in {}", short(title), kind.name()),
                    );
                }
                Ok(event)
            }
            Enforced::Fatal | Enforced::Dropped => Err(event),
        }
    }

    /// A version that a client would refuse is not declared.
    fn leave_out_version(&mut self, event: &mut Event) {
        let Some(version) =
            event.text("protocolVersion").filter(|_| event.kind == Type::RunStarted)
        else {
            return;
        };
        let number = |part: &str| {
            part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse::<u32>().ok())?
        };
        let parts = version.split_once('.').map(|(major, minor)| (number(major), number(minor)));
        if !matches!(parts, Some((Some(1), Some(_)))) {
            let what = format!("removed protocolVersion {} of RUN_STARTED", quote(version));
            self.tell(&VERSION, what);
            event.remove("protocolVersion");
        }
    }
}

/// What a client took out of an event or brought up to date; none for what it only finds fault with.
fn taken_out(finding: &Finding, before: &Value) -> Option<String> {
    let pointer = &finding.pointer;
    let value = before.pointer(pointer).map(short).unwrap_or_default();
    Some(match finding.rule.code {
        code if code == UNKNOWN_FIELD.code => format!("removed {pointer} {value}"),
        code if code == TOLERATED_NULL.code => format!("removed {pointer} null"),
        code if code == LEGACY_PART.code => format!("replaced the binary part {pointer}"),
        code if code == RETIRED_TYPE.code => format!("replaced type {value}"),
        code if code == UNKNOWN_MEMBER.code => {
            let (holder, tag) = pointer.rsplit_once('/')?;
            format!("removed {holder}, whose {tag} {value} is not known,")
        }
        _ => return None,
    })
}

/// The message that bytes are but for what is no character in them; none where that is not all that is wrong.
fn legible(bytes: &[u8], reason: Reason) -> Option<Message> {
    if !matches!(reason, Reason::Surrogate | Reason::Utf8) {
        return None;
    }
    let text = without_halves(&String::from_utf8_lossy(bytes));
    Message::recorded(Protocol::Agui, text.into()).ok()
}

/// The text with every escape that is half of a pair replaced by that of U+FFFD.
fn without_halves(text: &str) -> String {
    let unit = |text: &str| u32::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok();
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, escape)) = rest.find('\\').and_then(|at| rest.split_at_checked(at)) {
        whole.push_str(before);
        let next = escape.get(6..).and_then(unit);
        let (taken, written) = match (unit(escape), next) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (12, None),
            (Some(0xD800..=0xDFFF), _) => (6, Some("\\ufffd")),
            _ => (2, None),
        };
        let Some((taken, after)) = escape.split_at_checked(taken) else {
            rest = escape;
            break;
        };
        whole.push_str(written.unwrap_or(taken));
        rest = after;
    }
    whole.push_str(rest);
    whole
}

/// The end of a run that has none.
pub(super) fn cut_off(message: &str) -> Event {
    Event::made(Type::RunError, json!({ "message": message, "code": "truncated" }))
}
