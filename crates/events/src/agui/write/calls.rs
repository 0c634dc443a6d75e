//! Tool calls and what became of them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::names::Kind;
use super::{PIECE_BYTES, Parts, Type, Writer, fits_whole, pieces};
use crate::activity::{Action, ActionKind, Activity, Decision, Gate, Status, What};
use crate::text::{self, Redactor};
use crate::translate::NoteKind;
use crate::written::{Field, Fields, Written};

/// How many calls are remembered; the oldest are forgotten.
const CALLS: usize = 16_384;

/// The calls of a session, by the id their source gives them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Calls {
    known: BTreeMap<String, Call>,
    order: VecDeque<String>,
    /// Those whose arguments are being written.
    open: Vec<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct Call {
    id: String,
    name: String,
    tag: Option<String>,
    /// Whether its arguments are being written, and whether that began in this run.
    open: bool,
    live: bool,
    redactor: Redactor,
    refused: bool,
    /// Whether somebody should have been asked, and whether somebody was.
    grave: bool,
    confirmed: bool,
}

impl Calls {
    /// A run begins that knows nothing of the one before.
    pub(super) fn begin(&mut self) {
        self.known.values_mut().for_each(|call| call.live = false);
    }

    pub(super) fn is_busy(&self) -> bool {
        !self.open.is_empty()
    }

    /// What a call is called here.
    pub(super) fn out(&self, id: &str) -> Option<&str> {
        self.known.get(id).map(|call| call.id.as_str())
    }

    /// Somebody said yes.
    pub(super) fn confirm(&mut self, id: &str) {
        if let Some(call) = self.known.get_mut(id) {
            call.confirmed = true;
        }
    }

    /// Takes over a call that a snapshot brought.
    pub(super) fn bring(&mut self, id: &str, name: &str) {
        if let Some(call) = self.known.values_mut().find(|call| call.id == id) {
            name.clone_into(&mut call.name);
        } else {
            {
                let (id, name) = (id.to_owned(), name.to_owned());
                // What the source calls by this id may be another call by now.
                let shadowed = self.known.contains_key(&id);
                let source = if shadowed { format!("\u{0}{id}") } else { id.clone() };
                self.insert(&source, Call { id, name, ..Call::default() });
            }
        }
    }

    fn insert(&mut self, source: &str, call: Call) {
        if self.known.insert(source.to_owned(), call).is_none() {
            self.order.push_back(source.to_owned());
        }
        if self.order.len() > CALLS
            && let Some(oldest) = self.order.iter().position(|id| !self.open.contains(id))
            && let Some(oldest) = self.order.remove(oldest)
        {
            self.known.remove(&oldest);
        }
    }
}

impl Writer {
    pub(super) fn drafted(
        &mut self,
        activity: &Activity,
        id: &str,
        tool: &str,
        delta: &str,
        out: &mut Vec<Written>,
    ) {
        self.open_call(activity, id, tool, out);
        let Some(call) = self.calls.known.get_mut(id) else { return };
        let shown = call.redactor.push(delta);
        self.add_arguments(id, shown, out);
    }

    pub(super) fn requested(
        &mut self,
        activity: &Activity,
        action: &Action,
        gate: Option<&Gate>,
        out: &mut Vec<Written>,
    ) {
        self.called(activity, action, gate, out);
        if let Some(call) = self.calls.known.get_mut(&action.id) {
            call.grave = gate.is_some_and(Gate::is_grave);
            call.confirmed = false;
        }
        if let Some(gate) = gate.filter(|gate| gate.decision == Decision::Deny) {
            self.refuse(activity, &action.id, Some(&gate.reason), None, out);
        }
    }

    /// Tells a call, if it was not told yet.
    pub(super) fn called(
        &mut self,
        activity: &Activity,
        action: &Action,
        gate: Option<&Gate>,
        out: &mut Vec<Written>,
    ) {
        let name = action.original_name.as_deref().unwrap_or(&action.tool);
        let open = self.calls.known.get(&action.id).map(|call| call.open);
        if open == Some(false) {
            return;
        }
        if open.is_none() {
            self.open_call(activity, &action.id, name, out);
            let input = action.input.as_ref().map(text::redact_json);
            let arguments = input.map_or_else(|| "{}".to_owned(), |input| input.to_string());
            self.add_arguments(&action.id, arguments, out);
        }
        let own = if self.carry { request_facts(action, gate) } else { Fields::default() };
        self.close_call(&action.id, own, out);
    }

    /// Begins to tell a call, or goes on with it.
    fn open_call(&mut self, activity: &Activity, source: &str, tool: &str, out: &mut Vec<Written>) {
        let name = text::redact(tool).into_owned();
        let known = self.calls.known.get(source);
        let renamed = known.is_some_and(|call| call.name != name && !call.open);
        if known.is_none() || renamed {
            let used = |id: &str| self.calls.known.values().any(|call| call.id == id);
            let id = if renamed || source.is_empty() || used(source) {
                self.notes.add(NoteKind::Renamed, source);
                self.names.mint(&used, &|n| {
                    let origin = &activity.origin;
                    let parts = [&origin.session, &*origin.seq.to_string(), source, &n.to_string()];
                    crate::id::derive("call_", &parts)
                })
            } else {
                source.to_owned()
            };
            let tag = self.tag(activity);
            self.calls.insert(source, Call { id, name, tag, ..Call::default() });
        }
        let Some(call) = self.calls.known.get_mut(source).filter(|call| !call.live) else { return };
        (call.live, call.open) = (true, true);
        let (id, name, tag) = (call.id.clone(), call.name.clone(), call.tag.clone());
        if !self.calls.open.iter().any(|open| open == source) {
            self.calls.open.push(source.to_owned());
        }
        let key = format!("c{id}");
        let fresh = self.items.owner(&key).is_none();
        let parent = if fresh { self.parent_of(activity, &id) } else { None };
        let inherited = parent.as_ref().and_then(|it| self.items.owner(&format!("t{it}")));
        if let Some(owner) = inherited.cloned().filter(|_| fresh) {
            self.items.assign(key.clone(), owner);
        }
        let tag = self.items.own(key, tag);
        let mut event = call_start(id, name);
        event.fields.maybe("parentMessageId", parent.as_deref());
        self.push(event.tagged(tag.as_deref()), out);
    }

    /// The message that carries a call: the one its source names, else one of its own; none where its own has its id.
    fn parent_of(&mut self, activity: &Activity, id: &str) -> Option<Arc<str>> {
        let assistant = Kind::from(crate::activity::Role::Assistant);
        if let Some(Value::String(parent)) = self.detail("parentMessageId").cloned()
            && !parent.is_empty()
        {
            let known = self.names.kind(&parent);
            if known.is_none_or(|kind| matches!(kind, Kind::Text(_) | Kind::Carrier)) {
                if known.is_some_and(|kind| kind != assistant && kind != Kind::Carrier) {
                    return Some(self.mint(activity, Kind::Carrier, id));
                }
                if known.is_none() {
                    self.names.bring(&parent, assistant);
                }
                return Some(parent.into());
            }
        }
        match self.names.kind(id) {
            None => self.names.bring(id, Kind::Carrier),
            Some(Kind::Carrier) => {}
            Some(_) => return Some(self.mint(activity, Kind::Carrier, id)),
        }
        None
    }

    fn add_arguments(&mut self, source: &str, shown: String, out: &mut Vec<Written>) {
        let Some(call) = self.calls.known.get(source) else { return };
        let delta = |piece: Field| {
            let id = ("toolCallId", call.id.as_str().into());
            Parts::new(Type::ToolCallArgs, [id, ("delta", piece)])
        };
        if shown.len() > PIECE_BYTES {
            out.extend(pieces(&shown).map(|piece| delta(piece.into()).into()));
        } else if !shown.is_empty() {
            out.push(delta(shown.into()).into());
        }
        if self.detail("metadata").is_some() {
            let event = delta(Field::Word(""));
            self.push(event, out);
        }
    }

    fn close_call(&mut self, source: &str, own: Fields, out: &mut Vec<Written>) {
        self.calls.open.retain(|open| open != source);
        let Some(call) = self.calls.known.get_mut(source).filter(|call| call.open) else { return };
        let rest = call.redactor.finish();
        let (id, name, live) = (call.id.clone(), call.name.clone(), call.live);
        (call.open, call.live) = (false, false);
        if !live && (!rest.is_empty() || !own.is_empty()) {
            // It began before this run: it goes on in it to end.
            out.push(call_start(id.clone(), name).into());
            self.items.own(format!("c{id}"), None);
        }
        let ends = live || !rest.is_empty() || !own.is_empty();
        self.add_arguments(source, rest, out);
        if ends {
            let event = Parts::new(Type::ToolCallEnd, [("toolCallId", id.into())]);
            self.push(Parts { own, ..event }, out);
        }
    }

    /// Ends all calls.
    pub(super) fn close_calls(&mut self, out: &mut Vec<Written>) {
        for source in self.calls.open.clone() {
            self.close_call(&source, Fields::default(), out);
        }
    }

    pub(super) fn action_ended(&mut self, activity: &Activity, out: &mut Vec<Written>) {
        let What::ActionEnded { id, tool, status, output, error, duration_ms } = &activity.what
        else {
            return;
        };
        if !self.calls.known.contains_key(id) {
            self.notes.add(NoteKind::Opened, id.as_str());
        }
        self.called(activity, &Action::unseen(id, tool), None, out);
        if *status == Status::Cancelled && self.had_no_result(id) {
            return;
        }
        let Some(call) = self.calls.known.get(id) else { return };
        let ran_unasked = *status == Status::Success && call.grave && !call.confirmed;
        let refused = call.refused;
        if refused && *status != Status::Success {
            // The refusal said it already.
            return;
        }
        let mut own = Fields::default();
        if self.carry {
            if refused || *status != Status::Success {
                own.put("status", json!(status));
            }
            own.maybe("duration_ms", *duration_ms);
            own.maybe("error", error.as_deref().map(|error| text::for_people(error, 4_096)));
        }
        let mut content = content(output.as_ref(), error.as_deref());
        if refused {
            self.notes.add(NoteKind::Refused, id.as_str());
            own.put("refused", true);
            content = format!("Ran although refused: {}", words(&content)).into();
        } else if ran_unasked {
            self.notes.add(NoteKind::Unconfirmed, id.as_str());
            own.put("unconfirmed", true);
        }
        let prefix = match status {
            Status::Success => None,
            Status::Failure => Some("Failed"),
            Status::Timeout => Some("Timed out"),
            Status::Cancelled => Some("Cancelled"),
        };
        if let Some(prefix) = prefix {
            content = format!("{prefix}: {}", words(&content)).into();
        }
        self.result(activity, id, content, own, out);
    }

    /// What only AG-UI has of a result, where another protocol tells the call once more before it.
    pub(super) fn set_aside(&mut self, activity: &Activity) -> Option<Value> {
        let What::ActionRequested { action, .. } = &activity.what else { return None };
        let says = |name: &str, word: &str| self.detail(name).is_some_and(|it| it == word);
        let is_result = says("type", Type::ToolCallResult.name()) && says("toolCallId", &action.id);
        is_result.then(|| self.detail.take()).flatten()
    }

    /// Whether the source tells that it gave a call no result.
    fn had_no_result(&self, id: &str) -> bool {
        let says = |name: &str, word: &str| self.detail(name).is_some_and(|it| it == word);
        says("type", Type::ToolCallResult.name())
            && says("toolCallId", id)
            && self.detail("messageId").is_none()
    }

    /// Tells that an action was refused, once.
    pub(super) fn refuse(
        &mut self,
        activity: &Activity,
        id: &str,
        reason: Option<&str>,
        by: Option<&str>,
        out: &mut Vec<Written>,
    ) {
        let Some(call) = self.calls.known.get_mut(id) else { return };
        if std::mem::replace(&mut call.refused, true) {
            return;
        }
        let mut own = Fields::of([("refused", true.into())]);
        if let Some(by) = by.filter(|_| self.carry) {
            own.put("by", text::for_people(by, 256));
            own.maybe("reason", reason.map(|it| text::for_people(it, 4_096)));
        }
        let said = match reason {
            Some(reason) => format!("Refused: {}", text::for_people(reason, 16_384)),
            None => "Refused.".to_owned(),
        };
        self.result(activity, id, said.into(), own, out);
    }

    fn result(
        &mut self,
        activity: &Activity,
        source: &str,
        content: Value,
        own: Fields,
        out: &mut Vec<Written>,
    ) {
        let Some(call) = self.calls.out(source).map(str::to_owned) else { return };
        let named = match self.detail("messageId") {
            Some(Value::String(id))
                if !id.is_empty()
                    && self.names.kind(id).is_none_or(|kind| kind == Kind::Result) =>
            {
                let id: Arc<str> = id.as_str().into();
                self.names.bring(&id, Kind::Result);
                Some(id)
            }
            _ => None,
        };
        let message = named.unwrap_or_else(|| self.mint(activity, Kind::Result, source));
        let tag = self.tag(activity);
        let event = |content: Field| {
            let fields = [
                ("messageId", Field::Shared(Arc::clone(&message))),
                ("toolCallId", call.as_str().into()),
                ("content", content),
                ("role", Field::Word("tool")),
            ];
            Parts::new(Type::ToolCallResult, fields).tagged(tag.as_deref())
        };
        let mut whole = event(content.into());
        if !whole.fits() {
            let words = match whole.fields.get_mut("content") {
                Some(Field::Text(text)) => std::mem::take(text),
                Some(Field::Value(value)) => value.to_string(),
                _ => String::new(),
            };
            let short = text::shorten(&words, PIECE_BYTES);
            if short.len() < words.len() {
                self.notes.add(NoteKind::Shortened, source);
            }
            whole = event(short.into());
        }
        self.push(Parts { own, ..whole }, out);
    }
}

fn call_start(id: String, name: String) -> Parts {
    Parts::new(Type::ToolCallStart, [("toolCallId", id.into()), ("toolCallName", name.into())])
}

/// What an action gave: a text, or parts where it gave these.
fn content(output: Option<&Value>, error: Option<&str>) -> Value {
    match (error, output) {
        (Some(error), _) => text::redact(error).into(),
        (None, Some(Value::String(text))) => text::redact(text).into(),
        (None, Some(parts @ Value::Array(_))) => {
            let parts = text::redact_json(parts);
            let event = json!({
                "type": "TOOL_CALL_RESULT", "messageId": "", "toolCallId": "", "content": parts,
            });
            if fits_whole(Type::ToolCallResult, &event) { parts } else { parts.to_string().into() }
        }
        (None, Some(value)) => text::redact_json(value).to_string().into(),
        (None, None) => "".into(),
    }
}

fn words(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// What AG-UI has no field for of an action that is requested.
fn request_facts(action: &Action, gate: Option<&Gate>) -> Fields {
    let mut own = Fields::default();
    if action.original_name.is_some() {
        own.put("tool", action.tool.as_str());
    }
    if action.kind != ActionKind::Tool {
        own.put("kind", json!(action.kind));
    }
    let shown = |text: &String| text::for_people(text, 4_096);
    own.maybe("server", action.server.as_ref().map(shown));
    own.maybe("rationale", action.rationale.as_ref().map(shown));
    own.maybe("gate", gate.map(|gate| text::redacted(json!(gate))));
    own
}
