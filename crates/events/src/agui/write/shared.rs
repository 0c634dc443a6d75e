//! What is told in one event: state, messages, cards, and what only one protocol has a word for.

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::names::Kind;
use super::{KEY, Parts, Type, Writer, fields_of, fits_whole};
use crate::activity::{Activity, What};
use crate::agui::patch;
use crate::event::Protocol;
use crate::json::Parser;
use crate::text;
use crate::translate::NoteKind;
use crate::written::{Field, Fields, Written};

/// The largest state and the largest card that are followed, and how many cards are.
const STATE_BYTES: usize = 1024 * 1024;
const CARD_BYTES: usize = 64 * 1024;
const CARDS: usize = 64;

/// The longest text on a card of our own, in characters.
const WORDS: usize = 16_384;

/// What patches apply to, as far as it is followed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Shared {
    /// None before a snapshot told it: then it is whatever the client has.
    state: Option<Followed>,
    cards: Vec<(String, Followed)>,
    /// The card that tells how far this turn is.
    progress: Option<Arc<str>>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Followed {
    /// None where it became too large to be followed.
    #[serde(with = "nullable")]
    value: Option<Value>,
    bytes: usize,
}

/// Saved so that a value that is null is not taken for none.
mod nullable {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::Value;

    #[expect(clippy::ref_option, reason = "this is how serde calls it")]
    pub(super) fn serialize<S: Serializer>(
        value: &Option<Value>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        value.as_slice().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Value>, D::Error> {
        Vec::<Value>::deserialize(from).map(|mut saved| saved.pop())
    }
}

impl Followed {
    fn new(value: &Value, limit: usize) -> Self {
        let bytes = value.to_string().len();
        Self { value: (bytes <= limit).then(|| value.clone()), bytes }
    }

    /// Applies a patch; whether a client can, as far as that is known.
    fn patch(&mut self, patch: &Value, limit: usize) -> bool {
        let Some(value) = &mut self.value else { return true };
        let bytes = patch.to_string();
        self.bytes = self.bytes.saturating_add(bytes.len());
        for _ in patch
            .as_array()
            .into_iter()
            .flatten()
            .filter(|it| it.get("op").is_some_and(|op| op == "copy"))
        {
            self.bytes = self.bytes.saturating_mul(2);
        }
        if self.bytes > limit {
            self.value = None;
            return true;
        }
        let mut parser = Parser::default();
        let applied =
            parser.parse_text(&bytes).is_ok_and(|it| patch::apply(value, it.root()).is_ok());
        if !applied {
            self.bytes = value.to_string().len();
        }
        applied
    }
}

impl Shared {
    /// A turn begins.
    pub(super) fn begin(&mut self) {
        self.progress = None;
    }

    /// Follows the state from a snapshot on.
    pub(super) fn told_state(&mut self, state: &Value) {
        self.state = Some(Followed::new(state, STATE_BYTES));
    }

    /// Follows a card.
    pub(super) fn shown(&mut self, id: &str, content: &Map<String, Value>) {
        self.cards.retain(|(own, _)| own != id);
        if self.cards.len() >= CARDS {
            self.cards.remove(0);
        }
        let content = Followed::new(&Value::Object(content.clone()), CARD_BYTES);
        self.cards.push((id.to_owned(), content));
    }
}

impl Writer {
    pub(super) fn state_set(&mut self, activity: &Activity, state: &Value, out: &mut Vec<Written>) {
        let state = text::redact_json(state);
        let tag = self.tag(activity);
        let event = Parts::new(Type::StateSnapshot, [("snapshot", state.clone().into())]);
        let before = out.len();
        self.push(event.tagged(tag.as_deref()), out);
        if out.len() > before {
            self.shared.told_state(&state);
        }
    }

    pub(super) fn state_patched(
        &mut self,
        activity: &Activity,
        patch: &Value,
        out: &mut Vec<Written>,
    ) {
        let patch = self.fitting(Type::StateDelta, "delta", patch);
        let state = &mut self.shared.state;
        let applies =
            |patch: &Value| state.as_mut().is_none_or(|state| state.patch(patch, STATE_BYTES));
        let Some(patch) = patch.filter(applies) else {
            self.notes.add(NoteKind::Dropped, "state_patched");
            return;
        };
        let tag = self.tag(activity);
        let event = Parts::new(Type::StateDelta, [("delta", patch.into())]);
        out.push(event.tagged(tag.as_deref()).into());
    }

    /// The operations of a patch that are any, free of credentials.
    fn fitting(&mut self, kind: Type, field: &str, patch: &Value) -> Option<Value> {
        let all = patch.as_array()?;
        let mut fitting = Vec::new();
        for given in all {
            let mut operation = text::redact_json(given);
            let pointer = operation.get("path").and_then(Value::as_str).unwrap_or_default();
            let key = pointer.rsplit('/').next().unwrap_or_default().to_owned();
            if let Some(value) = operation.get_mut("value")
                && (value.is_string() || value.is_number())
                && text::names_credential(&key)
            {
                *value = "[redacted]".into();
            }
            let event = json!({
                "type": kind.name(), field: [operation], "messageId": "", "activityType": "",
            });
            let event = if kind == Type::StateDelta {
                json!({ "type": kind.name(), field: [operation] })
            } else {
                event
            };
            if fits_whole(kind, &event) {
                fitting.push(operation);
            } else {
                self.notes.add(NoteKind::Dropped, "patch");
            }
        }
        let whole = Value::Array(fitting);
        (whole.to_string().len() < crate::limits::MESSAGE_BYTES / 2).then_some(whole)
    }

    pub(super) fn messages_set(&mut self, messages: &[Value], out: &mut Vec<Written>) {
        // What a snapshot drops while it is being told would be lost.
        self.close_texts(out);
        self.close_calls(out);
        let mut seen = HashSet::new();
        let mut kept = Vec::new();
        for message in messages {
            let message = redacted_message(message);
            let id = message.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
            if is_message(&message) && seen.insert(id) {
                kept.push(message);
            } else {
                self.notes.add(NoteKind::Dropped, "message");
            }
        }
        self.restated(&kept);
        let messages = Value::Array(kept);
        self.push(Parts::new(Type::MessagesSnapshot, [("messages", messages.into())]), out);
    }

    /// Takes over messages that a client gets all at once.
    pub(super) fn restated(&mut self, messages: &[Value]) {
        for message in messages {
            let word = |name: &str| message.get(name).and_then(Value::as_str);
            let (Some(id), Some(role)) = (word("id"), word("role")) else { continue };
            let calls = message.get("toolCalls").and_then(Value::as_array);
            let kind = Kind::of(role);
            let is_carrier = self.names.kind(id) == Some(Kind::Carrier) && calls.is_some();
            self.names.bring(id, if is_carrier { Kind::Carrier } else { kind });
            let prefix = if kind == Kind::Reasoning { "r" } else { "t" };
            let owner = word("subagentRunId").map(str::to_owned);
            self.items.assign(format!("{prefix}{id}"), owner.clone());
            for call in calls.into_iter().flatten() {
                let name = call.pointer("/function/name").and_then(Value::as_str);
                let (Some(id), Some(name)) = (call.get("id").and_then(Value::as_str), name) else {
                    continue;
                };
                self.items.assign(format!("c{id}"), owner.clone());
                self.calls.bring(id, name);
            }
            if kind == Kind::Card
                && let Some(Value::Object(content)) = message.get("content")
            {
                self.shared.shown(id, content);
            }
        }
    }

    pub(super) fn card_shown(&mut self, activity: &Activity, out: &mut Vec<Written>) {
        let What::CardShown { id, kind, content, replace } = &activity.what else { return };
        let id = self.name(activity, Kind::Card, id);
        let Value::Object(content) = text::redact_json(&Value::Object(content.clone())) else {
            return;
        };
        let tag = self.tag(activity);
        let known = self.shared.cards.iter().any(|(own, _)| **own == *id);
        if *replace || !known {
            self.shared.shown(&id, &content);
        }
        let mut event = card(id, text::redact(kind).into(), content);
        if !*replace {
            event.fields.put("replace", false);
        }
        self.push(event.tagged(tag.as_deref()), out);
    }

    pub(super) fn card_patched(
        &mut self,
        activity: &Activity,
        id: &str,
        kind: &str,
        patch: &Value,
        out: &mut Vec<Written>,
    ) {
        let id = self.name(activity, Kind::Card, id);
        let patch = self.fitting(Type::ActivityDelta, "patch", patch);
        let card = self.shared.cards.iter_mut().find(|(own, _)| **own == *id);
        let (Some(patch), Some((_, card))) = (patch, card) else {
            self.notes.add(NoteKind::Dropped, "card_patched");
            return;
        };
        if !card.patch(&patch, CARD_BYTES) || card.value.as_ref().is_some_and(|it| !it.is_object())
        {
            self.shared
                .cards
                .retain(|(own, it)| **own != *id || it.value.as_ref().is_none_or(Value::is_object));
            self.notes.add(NoteKind::Dropped, "card_patched");
            return;
        }
        let fields = [
            ("messageId", Field::Shared(id)),
            ("activityType", text::redact(kind).into()),
            ("patch", patch.into()),
        ];
        self.push(Parts::new(Type::ActivityDelta, fields), out);
    }

    /// Shows what AG-UI has no event for and people should see.
    pub(super) fn own_card(&mut self, activity: &Activity, out: &mut Vec<Written>) {
        let words = |text: &str| Value::from(text::for_people(text, WORDS));
        let mut content = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            content.extend(value.map(|value| (name.to_owned(), value)));
        };
        let kind = match &activity.what {
            What::Progressed { percent, step, total, description, eta_ms } => {
                put("percent", percent.filter(|it| it.is_finite()).map(Value::from));
                put("step", step.map(Value::from));
                put("total", total.map(Value::from));
                put("description", description.as_deref().map(words));
                put("etaMs", eta_ms.map(Value::from));
                "banister.progress"
            }
            What::Planned { text } => {
                put("text", Some(words(text)));
                "banister.plan"
            }
            What::Notified { text } => {
                put("text", Some(words(text)));
                "banister.notice"
            }
            What::Erred { message, code } => {
                put("message", Some(words(message)));
                put("code", code.as_deref().map(words));
                "banister.error"
            }
            What::HandedOff { reason, target, uri } => {
                put("reason", Some(words(reason)));
                put("target", target.as_deref().map(words));
                put("uri", uri.as_deref().map(words));
                "banister.handoff"
            }
            _ => return,
        };
        let name = kind.strip_prefix("banister.").unwrap_or(kind);
        let id: Arc<str> = match (&self.shared.progress, name) {
            (Some(id), "progress") => Arc::clone(id),
            _ => self.mint(activity, Kind::Card, name),
        };
        if name == "progress" {
            self.shared.progress = Some(Arc::clone(&id));
        }
        let tag = self.tag(activity);
        self.shared.shown(&id, &content);
        let own = self.carried(&activity.what);
        let event = card(id, Field::Word(kind), content);
        self.push(Parts { own, ..event.tagged(tag.as_deref()) }, out);
    }

    /// Tells what AG-UI has no event for and programs may want.
    pub(super) fn custom(&mut self, activity: &Activity, out: &mut Vec<Written>) {
        let (kind, fields) = fields_of(&activity.what);
        let tag = self.tag(activity);
        let fields = [("name", format!("banister.{kind}").into()), ("value", fields.into())];
        self.push(Parts::new(Type::Custom, fields).tagged(tag.as_deref()), out);
    }

    pub(super) fn raw(&mut self, activity: &Activity, out: &mut Vec<Written>) {
        let What::Raw { protocol, kind, text: words, event } = &activity.what else { return };
        if *protocol == Protocol::Agui
            && let Some(own) = Type::parse(kind)
            && let Some(event) = self.native(activity, own, event)
        {
            out.push(event.into());
            return;
        }
        let mut own = Fields::default();
        if self.carry {
            own.put("kind", text::redact(kind));
            own.maybe("text", words.as_deref().map(text::redact));
        }
        let tag = self.tag(activity);
        let fields =
            [("source", Field::Word(protocol.name())), ("event", text::redact_json(event).into())];
        let event = Parts::new(Type::Raw, fields).tagged(tag.as_deref());
        self.push(Parts { own, ..event }, out);
    }

    /// An event of AG-UI's own as it may go out again.
    fn native(&mut self, activity: &Activity, kind: Type, event: &Value) -> Option<Value> {
        let Value::Object(mut event) = event.clone() else { return None };
        event.insert("type".into(), kind.name().into());
        event.shift_remove("subagentRunId");
        event.shift_remove("rawEvent");
        event.shift_remove("timestamp");
        match event.get("metadata") {
            Some(Value::Object(metadata)) => {
                let mut metadata = metadata.clone();
                metadata.shift_remove(KEY);
                metadata.shift_remove("ag-ui");
                event.insert("metadata".into(), Value::Object(metadata));
            }
            _ => drop(event.shift_remove("metadata")),
        }
        let word = |name: &str| event.get(name).and_then(Value::as_str).map(str::to_owned);
        let event = match kind {
            Type::Raw => text::redact_json(&Value::Object(event)),
            // What is ours is not for others to say.
            Type::Custom if !word("name")?.starts_with("banister.") => {
                text::redact_json(&Value::Object(event))
            }
            Type::ReasoningEncryptedValue => {
                let target = word("entityId")?;
                let target = if word("subtype")? == "tool-call" {
                    self.calls.out(&target)?.to_owned()
                } else {
                    let known = self.names.kind(&target)?;
                    (known != Kind::Card).then_some(target)?
                };
                event.insert("entityId".into(), target.into());
                event.shift_remove("encryptedValueType");
                let event = Value::Object(event);
                return fits_whole(kind, &event).then_some(event);
            }
            _ => return None,
        };
        let mut event = event;
        if let (Some(fields), Some(tag)) = (event.as_object_mut(), self.tag(activity)) {
            fields.insert("subagentRunId".into(), tag.into());
        }
        fits_whole(kind, &event).then_some(event)
    }
}

pub(super) fn card(id: Arc<str>, kind: Field, content: Map<String, Value>) -> Parts {
    let fields =
        [("messageId", Field::Shared(id)), ("activityType", kind), ("content", content.into())];
    Parts::new(Type::ActivitySnapshot, fields)
}

/// A message without credentials. Arguments stay as they are written unless there is one in them.
pub(super) fn redacted_message(message: &Value) -> Value {
    let mut shown = text::redact_json(message);
    let calls = |message: &Value| message.get("toolCalls").and_then(Value::as_array).cloned();
    if let (Some(before), Some(after)) =
        (calls(message), shown.get_mut("toolCalls").and_then(Value::as_array_mut))
    {
        for (before, after) in before.iter().zip(after) {
            let arguments = before.pointer("/function/arguments").and_then(Value::as_str);
            let parsed = arguments.and_then(|it| serde_json::from_str::<Value>(it).ok());
            if let (Some(parsed), Some(place)) = (parsed, after.pointer_mut("/function/arguments"))
            {
                let clean = text::redact_json(&parsed);
                if clean != parsed {
                    *place = clean.to_string().into();
                }
            }
        }
    }
    if let Some(Value::Object(metadata)) = shown.get_mut("metadata") {
        metadata.shift_remove(KEY);
    }
    shown
}

/// Whether a client takes a message.
pub(super) fn is_message(message: &Value) -> bool {
    let event = json!({ "type": "MESSAGES_SNAPSHOT", "messages": [message] });
    message.get("encryptedValueType").is_none() && fits_whole(Type::MessagesSnapshot, &event)
}
