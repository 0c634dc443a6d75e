//! What waits on a person: shown at once as a card, and as an interrupt where a run ends over it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::names::Kind;
use super::shared::card;
use super::{Mode, Parts, Writer};
use crate::activity::{Activity, Ask, AskKind, Outcome, ResponseKind, What};
use crate::agui::input;
use crate::event::time_text;
use crate::text;
use crate::translate::NoteKind;
use crate::written::{Field, Fields, Written};

/// The activity type under which an ask is shown.
pub const ASK: &str = "banister.ask";

/// How many asks are followed at once; the oldest is let go.
const ASKS: usize = 256;

/// The longest text on a card, in characters.
const WORDS: usize = 16_384;

/// What waits, and what a run ended over.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Waiting {
    pub(super) open: Vec<Ask>,
    pub(super) pending: Vec<Pending>,
    /// Of what is open, what a run ended over already.
    told: BTreeSet<String>,
}

/// An interrupt that the last run ended with.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Pending {
    /// The ask's id.
    id: String,
    /// What the interrupt is called.
    interrupt: String,
    ask: Option<Ask>,
    answer: Option<Value>,
}

impl Waiting {
    /// Whether an ask is open that no run ended over.
    pub(super) fn is_untold(&self, id: &str) -> bool {
        self.open.iter().any(|ask| ask.id == id) && !self.told.contains(id)
    }

    pub(super) fn is_pending(&self, id: &str) -> bool {
        self.pending.iter().any(|pending| pending.id == id)
    }

    /// Whether nothing that a run ended over lacks an answer.
    pub(super) fn is_covered(&self) -> bool {
        self.pending.iter().all(|pending| pending.answer.is_some())
    }

    /// Whether some of what a run ended over has an answer, and some has none.
    pub(super) fn is_partly_covered(&self) -> bool {
        !self.is_covered() && self.pending.iter().any(|pending| pending.answer.is_some())
    }

    /// Takes an answer to what a run ended over; whether there are answers to all of it now.
    pub(super) fn answered(&mut self, closed: &What) -> bool {
        let What::AskClosed { id, .. } = closed else { return false };
        for pending in self.pending.iter_mut().filter(|pending| pending.id == *id) {
            let entry = input::entry(&pending.interrupt, pending.ask.as_ref(), closed);
            pending.answer = entry.map(|entry| text::redact_json(&entry));
        }
        self.is_covered()
    }

    /// The answers to everything a run ended over; none where some of them are missing. A turn that goes on before it
    /// has them all calls the others off for now: these can end a run again.
    pub(super) fn take_answers(&mut self, goes_on: bool) -> Option<Vec<Value>> {
        let taken = self.is_covered() || goes_on && self.is_partly_covered();
        let pending = std::mem::take(&mut self.pending);
        if !taken || pending.is_empty() {
            return None;
        }
        let entry = |pending: Pending| {
            pending.answer.unwrap_or_else(|| {
                self.told.remove(&pending.id);
                json!({ "interruptId": pending.interrupt, "status": "cancelled" })
            })
        };
        Some(pending.into_iter().map(entry).collect())
    }

    /// A run ended over these: asks, and what their interrupts are called.
    pub(super) fn suspend(&mut self, ids: Vec<(String, String)>) {
        self.told = ids.iter().map(|(id, _)| id.clone()).collect();
        self.pending = ids
            .into_iter()
            .map(|(id, interrupt)| {
                let ask = self.open.iter().find(|ask| ask.id == id).cloned();
                Pending { id, interrupt, ask, answer: None }
            })
            .collect();
    }

    /// What the interrupt of an ask is called in a recording: as the run that asks calls it, so that the answer finds
    /// its way back.
    fn token(&self, id: &str) -> Option<&str> {
        let ask = self.open.iter().find(|ask| ask.id == id)?;
        let alone = self.open.iter().filter(|other| other.token == ask.token).count() == 1;
        let taken = self.open.iter().any(|other| other.id == ask.token);
        let plain = !ask.token.is_empty() && text::redact(&ask.token) == ask.token;
        (alone && !taken && plain).then_some(ask.token.as_str())
    }
}

impl Writer {
    pub(super) fn ask_opened(&mut self, activity: &Activity, ask: &Ask, out: &mut Vec<Written>) {
        self.waiting.open.retain(|open| open.id != ask.id);
        if self.waiting.open.len() >= ASKS {
            self.waiting.open.remove(0);
        }
        self.waiting.open.push(ask.clone());
        let mut own = self.carried(&activity.what);
        if !ask.digest.is_empty() {
            own.put("digest", text::redact(&ask.digest));
        }
        let content = ask_content(activity, ask, self.call_of(ask));
        self.ask_card(activity, &ask.id, content, own, out);
    }

    pub(super) fn ask_closed(&mut self, activity: &Activity, out: &mut Vec<Written>) {
        if !self.split(activity, out) {
            return;
        }
        let What::AskClosed { id, action, outcome, by, message, .. } = &activity.what else {
            return;
        };
        let known = self.waiting.open.iter().position(|ask| ask.id == *id);
        let asked = known.map(|at| self.waiting.open.remove(at));
        let was_shown = asked.is_some();
        let asked = asked.and_then(|ask| ask.action);
        let action = action.as_ref().or(asked.as_ref());
        let mut content = Map::new();
        content.insert("status".into(), json!(outcome));
        content.insert("by".into(), text::for_people(by, 256).into());
        if let Some(action) = action {
            let call = self.calls.out(&action.id).unwrap_or(&action.id).to_owned();
            content.insert("tool".into(), text::for_people(&action.title(), 1_024).into());
            content.insert("toolCallId".into(), call.into());
        }
        if let Some(message) = message {
            content.insert("message".into(), text::for_people(message, WORDS).into());
        }
        // What a rule decided was nobody's ask.
        if was_shown {
            let own = self.carried(&activity.what);
            self.ask_card(activity, id, content, own, out);
        }
        match (action, outcome) {
            (Some(action), Outcome::Rejected | Outcome::Expired) => {
                self.called(activity, action, None, out);
                self.refuse(activity, &action.id, message.as_deref(), None, out);
            }
            (Some(action), Outcome::Accepted) => self.calls.confirm(&action.id),
            _ => {}
        }
    }

    /// Nobody waits for the answers any more.
    pub(super) fn withdraw_asks(&mut self, activity: &Activity, out: &mut Vec<Written>) {
        for ask in std::mem::take(&mut self.waiting.open) {
            self.notes.add(NoteKind::Closed, ask.id.as_str());
            let mut content = Map::new();
            content.insert("status".into(), json!(Outcome::Withdrawn));
            content.insert("by".into(), "agent".into());
            let what = What::AskClosed {
                id: ask.id.clone(),
                action: None,
                outcome: Outcome::Withdrawn,
                by: "agent".to_owned(),
                message: None,
                response: None,
                updated_input: None,
            };
            let own = self.carried(&what);
            self.ask_card(activity, &ask.id, content, own, out);
        }
    }

    fn ask_card(
        &mut self,
        activity: &Activity,
        id: &str,
        content: Map<String, Value>,
        own: Fields,
        out: &mut Vec<Written>,
    ) {
        let id = self.name(activity, Kind::Card, id);
        let tag = self.tag(activity);
        self.shared.shown(&id, &content);
        let event = card(id, Field::Word(ASK), content).tagged(tag.as_deref());
        self.push(Parts { own, ..event }, out);
    }

    fn call_of<'a>(&'a self, ask: &'a Ask) -> Option<&'a str> {
        let id = &ask.action.as_ref()?.id;
        Some(self.calls.out(id).unwrap_or(id))
    }

    /// What the interrupt of an ask is called.
    pub(super) fn interrupt_id<'a>(&'a self, ask: &'a str) -> &'a str {
        let token = (self.mode == Mode::Recording).then(|| self.waiting.token(ask)).flatten();
        token.unwrap_or(ask)
    }

    /// Everything open, as interrupts, and what else is said to wait. With the ids of the asks.
    pub(super) fn interrupts(&self, named: &[String]) -> Vec<(String, Value)> {
        let open = self.waiting.open.iter();
        let mut interrupts: Vec<(String, Value)> =
            open.map(|ask| (ask.id.clone(), self.interrupt_of(ask))).collect();
        for id in named.iter().take(ASKS) {
            let called =
                |interrupt: &Value| interrupt.get("id").is_some_and(|own| own == id.as_str());
            if !interrupts.iter().any(|(known, interrupt)| known == id || called(interrupt)) {
                interrupts.push((id.clone(), json!({ "id": id, "reason": "input_required" })));
            }
        }
        interrupts
    }

    fn interrupt_of(&self, ask: &Ask) -> Value {
        let known = ask.action.as_ref().and_then(|action| self.calls.out(&action.id));
        let (reason, asked) = match &ask.kind {
            AskKind::Confirmation if known.is_some() => ("tool_call", None),
            AskKind::Confirmation => ("confirmation", None),
            AskKind::Plan { text } => ("confirmation", Some(text)),
            AskKind::Clarification { question, .. } => ("input_required", Some(question)),
        };
        let mut fields = Map::new();
        fields.insert("id".into(), json!(self.interrupt_id(&ask.id)));
        fields.insert("reason".into(), reason.into());
        let why = ask.gate.as_ref().map(|gate| &gate.reason);
        if let Some(message) = ask.words.as_ref().or(asked).or(why) {
            fields.insert("message".into(), text::for_people(message, WORDS).into());
        }
        fields.extend(known.map(|call| ("toolCallId".to_owned(), call.into())));
        let schema = ask.schema.as_ref().filter(|schema| schema.is_object());
        let schema = schema.map_or_else(|| schema_of(&ask.kind, self.mode), text::redact_json);
        fields.insert("responseSchema".into(), schema);
        // Who attaches is not held to a time that a person can extend: clients answer nothing that is past it.
        let deadline = ask.deadline.filter(|_| self.mode != Mode::One);
        fields.extend(deadline.map(|time| ("expiresAt".to_owned(), time_text(time).into())));
        let mut own = Map::new();
        if !ask.digest.is_empty() {
            own.insert("digest".into(), text::redact(&ask.digest).into());
        }
        if self.carry {
            own.insert("token".into(), text::redact(&ask.token).into());
            let full = text::redact_json(&json!(ask));
            if full.to_string().len() <= super::CARRIED_BYTES {
                own.insert("ask".into(), full);
            }
        }
        if !own.is_empty() {
            fields.insert("metadata".into(), json!({ super::KEY: own }));
        }
        Value::Object(fields)
    }
}

/// The shape of an answer, by the protocol's conventions.
fn schema_of(kind: &AskKind, mode: Mode) -> Value {
    let AskKind::Clarification { kinds, choices, default, .. } = kind else {
        // Who attaches answers the desk, which takes a yes to what was asked and to nothing else.
        let edits = matches!(kind, AskKind::Confirmation) && mode != Mode::One;
        let mut properties = json!({
            "approved": { "type": "boolean" }, "message": { "type": "string" },
        });
        if let (true, Some(properties)) = (edits, properties.as_object_mut()) {
            properties.insert("editedArgs".into(), json!({ "type": "object" }));
        }
        return json!({ "type": "object", "properties": properties, "required": ["approved"] });
    };
    let chooses = kinds.contains(&ResponseKind::MultipleChoice) && !choices.is_empty();
    let free = kinds.is_empty() || kinds.contains(&ResponseKind::Freetext);
    let mut schema = Map::new();
    if chooses && !free {
        let one = |choice: &crate::activity::Choice| {
            let (value, label) =
                (text::redact(&choice.value), text::for_people(&choice.label, 1_024));
            json!({ "const": value, "title": label })
        };
        let choices: Vec<Value> = choices.iter().map(one).collect();
        schema.insert("oneOf".into(), choices.into());
    }
    let types: Vec<&str> = [
        (free || chooses).then_some("string"),
        kinds.contains(&ResponseKind::YesNo).then_some("boolean"),
        kinds.contains(&ResponseKind::Numeric).then_some("number"),
    ]
    .into_iter()
    .flatten()
    .collect();
    match types.as_slice() {
        [] => {}
        [one] => drop(schema.insert("type".into(), json!(one))),
        several => drop(schema.insert("type".into(), json!(several))),
    }
    schema.extend(default.as_deref().map(|it| ("default".into(), text::redact(it).into())));
    Value::Object(schema)
}

fn ask_content(activity: &Activity, ask: &Ask, call: Option<&str>) -> Map<String, Value> {
    let mut content = Map::new();
    let mut put = |name: &str, value: Value| drop(content.insert(name.to_owned(), value));
    put("status", "open".into());
    put("agent", text::for_people(activity.context.agent_title(), 1_024).into());
    if let Some(action) = &ask.action {
        put("tool", text::for_people(&action.title(), 1_024).into());
        put("toolCallId", json!(call));
        put("subject", text::for_people(&action.subject(), WORDS).into());
    }
    match &ask.kind {
        AskKind::Confirmation => {}
        AskKind::Plan { text } => put("plan", text::for_people(text, WORDS).into()),
        AskKind::Clarification { question, choices, context, .. } => {
            put("question", text::for_people(question, WORDS).into());
            if !choices.is_empty() {
                let choice = |it: &crate::activity::Choice| {
                    json!({
                        "value": text::redact(&it.value),
                        "label": text::for_people(&it.label, 1_024),
                    })
                };
                put("choices", choices.iter().map(choice).collect());
            }
            if let Some(context) = context {
                put("context", text::for_people(context, WORDS).into());
            }
        }
    }
    if let Some(words) = &ask.words {
        put("words", text::for_people(words, WORDS).into());
    }
    if let Some(gate) = &ask.gate {
        put("reason", text::for_people(&gate.reason, WORDS).into());
        put("risk", json!(gate.risk));
        if let Some(irreversible) = gate.irreversible {
            put("irreversible", irreversible.into());
        }
    }
    if let Some(deadline) = ask.deadline {
        put("until", time_text(deadline).into());
    }
    content
}
