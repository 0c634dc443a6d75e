//! Activities → AEP events and hook responses.
//!
//! The writer holds what is open (actions, asks, texts that come in pieces) and cannot emit a stream that breaks the
//! protocol: one end per action, nothing after a denial, a response only to a request it wrote. It reads no clock; ids
//! are derived from (session, seq, n), so the same activities give the same bytes again, also when it was saved and
//! resumed between any two of them.
//!
//! Credentials are taken out of every text. Of an action's input and output too, unless the reader is the policy engine
//! of the agent itself: see [`Writer::unredacted`]. Ids stay, as they join events; those that not every reader takes
//! are hashed, and stand in `extensions.x-banister.ids` as they were.
//!
//! What the protocol has no word for goes out as `x.<name>` with its fields in `extensions.x-banister.what`. An open
//! action or ask is valid at the end of a stream, so [`Writer::close`] ends neither: nobody knows how they end.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::activity::{Activity, Context, Origin, What};
use crate::translate::{Note, NoteKind, Notes};
use crate::written::Written;

mod action;
mod ask;
mod draft;
mod emit;
pub(super) mod memory;
mod parts;
mod talk;
mod turn;

use super::response::OWN;
use action::{End, Refusal, Request};
use ask::Asked;
use draft::{Draft, told};
use memory::{Closed, Newest};
pub(crate) use parts::Parts;
use talk::{Piece, Speech, Voice};
use turn::TurnEnd;

/// How many open actions, ended ones and asks are remembered.
const REMEMBERED: usize = 4_096;

/// Writes one session.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Writer {
    mode: Mode,
    /// Whose session it is: an AEP session is one agent's, and the first that speaks is the one.
    agent: Option<String>,
    /// Action id → its request, while it is open.
    open: Newest<Request>,
    closed: Closed,
    /// Ask id → the event that asked.
    asked: Newest<Asked>,
    speeches: Newest<Speech>,
    /// Whether the session was ended: then whatever comes begins it anew.
    ended: bool,
    turn_open: bool,
    /// The record whose events are being numbered, and the next number.
    seq: u64,
    n: u32,
    /// Where the newest activity stood.
    last: Option<Standpoint>,
    #[serde(skip)]
    envelope: Option<Arc<parts::Envelope>>,
    #[serde(skip)]
    notes: Notes,
}

/// What a writer tells beyond the protocol's fields, and what it leaves as it is.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Mode {
    carry: bool,
    unredacted: bool,
}

/// Where an activity stands, and in which surroundings.
#[derive(Debug, Clone, Copy)]
struct Scene<'a> {
    origin: &'a Origin,
    context: &'a Arc<Context>,
}

/// The same, kept for when the stream is cut.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Standpoint {
    origin: Origin,
    context: Arc<Context>,
}

impl Writer {
    /// The same, with the facts that the protocol has no field for in `extensions.x-banister`: a trusting reader gets
    /// them back.
    #[must_use]
    pub fn carrying(mut self) -> Self {
        self.mode.carry = true;
        self
    }

    /// The same, with inputs and outputs of actions as they are: for a reader that decides about them and is the
    /// agent's own. All other texts are without credentials here too.
    #[must_use]
    pub fn unredacted(mut self) -> Self {
        self.mode.unredacted = true;
        self
    }

    /// Whether a turn is open, so that a late joiner has something to be told.
    pub fn is_open(&self) -> bool {
        self.turn_open
    }

    /// What it did that nobody told it to since this was asked last, and how many such things more.
    pub fn notes(&mut self) -> (Vec<Note>, u64) {
        self.notes.take()
    }

    /// The stream is cut here: ends the turn and what is being said. It can go on afterwards.
    pub fn close(&mut self) -> Vec<Value> {
        let mut out = Vec::new();
        self.close_to(&mut out);
        out.into_iter().map(Written::into_value).collect()
    }

    /// [`Writer::close`], for those who do not look into the events.
    pub fn close_to(&mut self, out: &mut Vec<Written>) {
        let Some(Standpoint { origin, context }) = self.last.clone() else { return };
        let scene = Scene { origin: &origin, context: &context };
        self.finish_all(scene, out);
        if std::mem::take(&mut self.turn_open) {
            self.notes.add(NoteKind::Closed, "turn");
            let draft = Draft::new("agent.stop").lifecycle("reason", Some("truncated"));
            self.emit(scene, draft, out);
        }
    }

    /// The events of one activity.
    pub fn write(&mut self, activity: &Activity) -> Vec<Value> {
        let mut out = Vec::new();
        self.write_to(activity, &mut out);
        out.into_iter().map(Written::into_value).collect()
    }

    /// [`Writer::write`], for those who do not look into the events.
    pub fn write_to(&mut self, activity: &Activity, out: &mut Vec<Written>) {
        let Activity { origin, context, what } = activity;
        if origin.seq != self.seq {
            self.seq = origin.seq;
            self.n = 0;
        }
        match &mut self.last {
            // Tokens come by the thousand: nothing is cloned while nothing changes.
            Some(last)
                if Arc::ptr_eq(&last.context, context)
                    && Arc::ptr_eq(&last.origin.session, &origin.session) =>
            {
                (last.origin.seq, last.origin.time) = (origin.seq, origin.time);
            }
            last => {
                let (origin, context) = (origin.clone(), Arc::clone(context));
                *last = Some(Standpoint { origin, context });
            }
        }
        self.told(Scene { origin, context }, what, out);
    }

    fn told(&mut self, scene: Scene<'_>, what: &What, out: &mut Vec<Written>) {
        match what {
            What::SessionStarted { source } => {
                let draft = Draft::new("session.start").lifecycle("source", source.as_deref());
                self.emit(scene, draft, out);
            }
            What::SessionEnded { reason } => {
                self.finish_all(scene, out);
                self.turn_open = false;
                self.forget_questions();
                if !self.ended {
                    let draft = Draft::new("session.end").lifecycle("reason", reason.as_deref());
                    self.emit(scene, draft, out);
                }
            }
            What::TurnStarted { request, summary } => {
                self.turn_open = true;
                let draft = match request {
                    Some(request) => {
                        Draft::new("prompt.submitted").content("prompt", request.as_str())
                    }
                    None => Draft::new("agent.start"),
                };
                self.emit(scene, draft.carry("summary", summary.as_deref()), out);
            }
            What::TurnEnded { ending, summary, result, usage } => {
                let (summary, result) = (summary.as_deref(), result.as_ref());
                self.turn_ended(scene, TurnEnd { ending, summary, result, usage }, out);
            }
            What::Said { message, role, text, last } => {
                let voice = Voice::Said(*role);
                self.say(scene, Piece { message, voice, text, last: *last }, out);
            }
            What::Thought { message, text, last } => {
                let voice = Voice::Thought;
                self.say(scene, Piece { message, voice, text, last: *last }, out);
            }
            What::Planned { text } => {
                self.emit(scene, Draft::new("model.plan").content("plan", text.as_str()), out);
            }
            // The request follows with all of it.
            What::ActionDrafted { .. } => {}
            What::ActionRequested { action, gate } => {
                self.requested(scene, action, gate.as_ref(), out);
            }
            What::ActionEnded { id, tool, status, output, error, duration_ms } => {
                let (output, error) = (output.as_ref(), error.as_deref());
                let end = End { id, tool, status: *status, output, error, ms: *duration_ms };
                self.ended(scene, &end, out);
            }
            What::ActionDenied { action, by, reason } => {
                let why = Refusal { by, reason: reason.as_deref(), rule: None };
                self.refused(scene, action, why, out);
            }
            What::AskOpened { ask } => self.ask_opened(scene, ask, out),
            What::AskClosed { .. } => {
                if let Some(closing) = ask::closing(what) {
                    self.ask_closed(scene, closing, out);
                }
            }
            What::SubagentStarted { .. } => self.subagent_started(scene, what, out),
            What::SubagentEnded { .. } => self.subagent_ended(scene, what, out),
            What::Compacted { trigger } => {
                let draft = Draft::new("context.compacted");
                self.emit(scene, draft.lifecycle("trigger", trigger.as_deref()), out);
            }
            What::WorkspaceChanged { paths, reason } => {
                self.workspace_changed(scene, (paths, reason.as_deref()), out);
            }
            What::Notified { text } => self.notice(scene, text, None, out),
            What::HandedOff { reason, .. } => self.notice(scene, reason, Some(what), out),
            What::Progressed { description: Some(text), .. } if !text.is_empty() => {
                self.notice(scene, text, Some(what), out);
            }
            What::Erred { message, code } => {
                let draft = Draft::new("agent.error")
                    .lifecycle("reason", code.as_deref())
                    .content("notification", message.as_str())
                    .carry("erred", Some(true));
                self.emit(scene, draft, out);
            }
            What::StateChanged { .. }
            | What::Progressed { .. }
            | What::StepStarted { .. }
            | What::StepEnded { .. }
            | What::StateSet { .. }
            | What::StatePatched { .. }
            | What::MessagesSet { .. }
            | What::CardShown { .. }
            | What::CardPatched { .. }
            | What::Used { .. } => self.unworded(scene, what, out),
            What::Raw { .. } => self.raw(scene, what, out),
        }
    }

    /// Tells a person something. `was` is what it is a part of, and more than the text.
    fn notice(&mut self, scene: Scene<'_>, text: &str, was: Option<&What>, out: &mut Vec<Written>) {
        let mut draft = Draft::new("notification.sent").content("notification", text);
        if let Some(was) = was {
            let (name, mut fields) = told(was);
            fields.insert("what".into(), name.into());
            draft = draft.carry("was", Some(fields));
        }
        self.emit(scene, draft, out);
    }
}

#[cfg(test)]
#[path = "write_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "write_laws.rs"]
mod laws;
