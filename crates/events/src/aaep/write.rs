//! Activities → AAEP events.
//!
//! One AAEP session is one turn. The writer holds what is open (the state, tools, outputs, waits) and cannot emit a
//! stream that breaks the protocol: it opens what is missing, closes what is open, chains the states. It reads no clock
//! and draws no ids, so the same activities give the same bytes again, also from a writer that was saved in between.
//!
//! It never invents consent: an action that could do much harm and ran without anybody being asked is announced as
//! having run without asking, and does not claim the risk fields that AAEP reserves for confirmed actions; they stand
//! under `extensions.banister` instead. Waiting defaults to reject, unless the source said otherwise about something
//! that is not grave.
//!
//! What AAEP has no word for is left out and noted: thoughts, shared state, cards, usage, other people's messages.
//!
//! | module | what it does |
//! |---|---|
//! | `turn` | what is open |
//! | `lifecycle` | begins and ends turns, chains states |
//! | `act` | tools |
//! | `ask` | questions, answers, time that runs out |
//! | `output` | the agent's answer, in pieces that can be heard |
//! | `progress` | everything that is told in a sentence |
//! | `words` | sentences at three lengths |
//! | `extension` | what AAEP has no field for |
//! | `clamp` | AAEP's shapes and limits |

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::event::Boundary;
use super::voice::Voice;
use crate::activity::{Activity, Context, Ending, Origin, Role, What};
use crate::id::{self, Decimal, EventRef};
use crate::locale::Locale;
use crate::translate::{Note, NoteKind, Notes};
use crate::written::{Field, Fields, Written};

mod act;
mod ask;
mod clamp;
mod extension;
mod lifecycle;
mod output;
mod parts;
mod progress;
mod turn;
mod words;

use extension::Facts;
use parts::Begin;
pub(crate) use parts::Parts;
use turn::{Ids, REMEMBERED, Turn};
use words::{Spoken, Words};

/// The context that declares `extensions.banister`.
pub const EXTENSION_CONTEXT: &str = "urn:banister:aaep-extension:v1";

/// Writes one session for one subscriber.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Writer {
    voice: Voice,
    turn: Option<Turn>,
    /// Ids of sessions and tokens of questions: none is ever used twice.
    sessions: Ids,
    tokens: Ids,
    /// Asks that were announced.
    announced: BTreeSet<String>,
    /// The record whose events are being numbered, and the next number.
    seq: u64,
    n: u32,
    /// Where the stream stands, for what is closed when it is cut.
    last: Option<(Origin, Arc<Context>)>,
    /// The surroundings that travelled along last.
    carried: Option<Arc<Context>>,
    /// How all events of the turn begin, and who speaks in them.
    #[serde(skip)]
    begin: Option<(Arc<Context>, Arc<Begin>)>,
    #[serde(skip)]
    spoken: Spoken,
    #[serde(skip)]
    notes: Notes,
}

/// Where in the record something stands, and who did it.
#[derive(Debug, Clone, Copy)]
struct At<'a> {
    origin: &'a Origin,
    context: &'a Arc<Context>,
}

impl At<'_> {
    /// An id: derived from the place in the record, the number of the event there, and what else tells it apart.
    fn derive(self, prefix: &str, n: u32, more: &[&str]) -> String {
        let (seq, n) = (Decimal::of(self.origin.seq), Decimal::of(n.into()));
        let place = ["aaep", &*self.origin.session, seq.as_str(), n.as_str()];
        id::derive_all(prefix, place.iter().chain(more).copied())
    }
}

/// One event on its way out.
struct Event {
    kind: &'static str,
    urgency: &'static str,
    fields: Fields,
    words: Option<Arc<Words>>,
    facts: Facts,
}

impl Writer {
    /// A writer in a language, for a stream that passes output on as it comes; a language that is not there is English.
    pub fn new(language: &str) -> Self {
        let language = language.to_owned();
        Self::with(Voice { language, boundaries: vec![Boundary::None], ..Voice::default() })
    }

    /// A writer that speaks as a subscriber wants to be spoken to.
    ///
    /// ```
    /// use banister_events::aaep::voice::Voice;
    /// use banister_events::aaep::write::Writer;
    /// let writer = Writer::with(Voice { language: "ja".to_owned(), ..Voice::default() });
    /// assert!(!writer.is_open());
    /// ```
    pub fn with(mut voice: Voice) -> Self {
        Locale::choose([voice.language.as_str()]).tag.clone_into(&mut voice.language);
        Self {
            voice,
            turn: None,
            sessions: Ids::default(),
            tokens: Ids::default(),
            announced: BTreeSet::new(),
            seq: 0,
            n: 0,
            last: None,
            carried: None,
            begin: None,
            spoken: Spoken::default(),
            notes: Notes::default(),
        }
    }

    /// Whether a turn is open, so that a late joiner has something to be told.
    pub fn is_open(&self) -> bool {
        self.turn.is_some()
    }

    /// Whether somebody is waited for.
    pub fn is_waiting(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| !turn.waits.is_empty())
    }

    /// Takes the notes on what had to be done to the stream, and how many more there were.
    pub fn notes(&mut self) -> (Vec<Note>, u64) {
        self.notes.take()
    }

    /// The stream is cut here: ends what is open. More may follow all the same.
    pub fn close(&mut self) -> Vec<Value> {
        let mut out = Vec::new();
        self.close_to(&mut out);
        out.into_iter().map(Written::into_value).collect()
    }

    /// [`Writer::close`], for those who do not look into the events.
    pub fn close_to(&mut self, out: &mut Vec<Written>) {
        if let (true, Some((origin, context))) = (self.turn.is_some(), self.last.clone()) {
            self.note(NoteKind::Closed, "turn");
            let at = At { origin: &origin, context: &context };
            let ending = Ending::Cancelled {
                by: "system".to_owned(),
                reason: Some("stream_ended".to_owned()),
            };
            self.end(at, &lifecycle::Close::new(&ending), out);
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
        self.remember(activity);
        let at = At { origin: &activity.origin, context: &activity.context };
        if self.turn.as_ref().is_some_and(|turn| !turn.waits.is_empty()) {
            self.count_down(at, out);
        }
        self.activity(at, &activity.what, out);
    }

    fn activity(&mut self, at: At<'_>, what: &What, out: &mut Vec<Written>) {
        match what {
            What::Said { role: Role::Assistant, message, text, last } => {
                self.said(at, message, text, *last, out);
            }
            What::TurnStarted { request, summary } => {
                if self.turn.is_some() {
                    self.note(NoteKind::Closed, "turn");
                    self.end(at, &lifecycle::Close::new(&Ending::Completed), out);
                }
                self.begin(at, request.as_deref(), summary.as_deref(), out);
            }
            What::TurnEnded { ending, summary, result, usage } => {
                let summary = summary.as_deref();
                let close = lifecycle::Close {
                    ending,
                    summary,
                    result: result.as_ref(),
                    usage: usage.as_slice(),
                };
                self.turn_ended(at, &close, out);
            }
            What::SessionEnded { .. } if self.turn.is_some() => {
                self.note(NoteKind::Closed, "turn");
                let ending = Ending::Cancelled { by: "system".to_owned(), reason: None };
                self.end(at, &lifecycle::Close::new(&ending), out);
            }
            What::StateChanged { state, summary } => {
                self.state_changed(at, state, summary.as_deref(), out);
            }
            What::Planned { text } => self.planned(at, text, out),
            What::ActionRequested { action, gate } => {
                self.requested(at, action, gate.as_ref(), out);
            }
            What::ActionEnded { id, tool, status, output, error, duration_ms } => {
                let end = act::End {
                    status: *status,
                    output: output.as_ref(),
                    error: error.as_deref(),
                    ms: *duration_ms,
                    words: None,
                };
                self.ended(at, id, tool, &end, out);
            }
            What::ActionDenied { action, by, reason } => {
                self.denied(at, action, by, reason.as_deref(), out);
            }
            What::AskOpened { ask } => self.asked(at, ask, out),
            What::AskClosed { id, .. } => self.closed(at, id, what, out),
            What::HandedOff { reason, target, uri } => {
                self.handed_off(at, reason, target.as_deref(), uri.as_deref(), out);
            }
            What::Progressed { .. } => self.progressed(at, what, out),
            What::StepStarted { .. }
            | What::SubagentStarted { .. }
            | What::SubagentEnded { .. }
            | What::Compacted { .. }
            | What::WorkspaceChanged { .. }
            | What::Notified { .. }
            | What::Erred { .. }
            | What::Raw { text: Some(_), .. } => self.told(at, what, out),
            // What follows says it.
            What::ActionDrafted { .. } | What::StepEnded { .. } => {}
            What::SessionStarted { .. } => self.note(NoteKind::Dropped, "session_started"),
            What::SessionEnded { .. } => self.note(NoteKind::Dropped, "session_ended"),
            What::Said { role: Role::User | Role::System | Role::Developer, .. } => {
                self.note(NoteKind::Dropped, "said");
            }
            What::Thought { .. } => self.note(NoteKind::Dropped, "thought"),
            What::StateSet { .. } => self.note(NoteKind::Dropped, "state_set"),
            What::StatePatched { .. } => self.note(NoteKind::Dropped, "state_patched"),
            What::MessagesSet { .. } => self.note(NoteKind::Dropped, "messages_set"),
            What::CardShown { .. } => self.note(NoteKind::Dropped, "card_shown"),
            What::CardPatched { .. } => self.note(NoteKind::Dropped, "card_patched"),
            What::Used { .. } => self.note(NoteKind::Dropped, "used"),
            What::Raw { kind, text: None, .. } => self.notes.add(NoteKind::Dropped, kind.as_str()),
        }
    }

    fn note(&mut self, kind: NoteKind, about: &str) {
        self.notes.add(kind, about);
    }

    /// Remembers where the stream stands. Tokens come by the thousand: nothing is cloned while nothing changes.
    fn remember(&mut self, activity: &Activity) {
        let Activity { origin, context, .. } = activity;
        if origin.seq != self.seq {
            self.seq = origin.seq;
            self.n = 0;
        }
        match &mut self.last {
            Some((place, known))
                if Arc::ptr_eq(known, context) && Arc::ptr_eq(&place.session, &origin.session) =>
            {
                (place.seq, place.time) = (origin.seq, origin.time);
            }
            last => *last = Some((origin.clone(), context.clone())),
        }
    }

    /// Remembers that an ask was announced; whether it is new.
    fn announce(&mut self, ask: &str) -> bool {
        if self.announced.len() >= REMEMBERED {
            self.announced.clear();
        }
        self.announced.insert(ask.to_owned())
    }

    fn push(&mut self, at: At<'_>, event: Event, out: &mut Vec<Written>) {
        let Event { kind, urgency, fields, words, mut facts } = event;
        self.carry_context(at, &mut facts);
        let Some(begin) = self.begin_of(at) else { return };
        let Some(turn) = self.turn.as_mut() else { return };
        let Origin { session, seq, time } = at.origin;
        let id = EventRef::new(session, *seq, *time, self.n).to_string();
        self.n += 1;
        // Time in a session never runs backwards, whatever the clock did.
        turn.last = turn.last.max(at.origin.time);
        let sequence = turn.sequence;
        turn.sequence += 1;
        let parts = Parts {
            begin,
            kind,
            id,
            sequence,
            time: turn.last,
            urgency,
            fields,
            words: words.map(Words::fitting),
            own: facts.finish(),
        };
        let (event, shortened) = parts.finish();
        if shortened {
            self.note(NoteKind::Shortened, kind);
        }
        out.push(event);
    }

    /// How events of this turn begin, in these surroundings: made once, as long as nothing changes.
    fn begin_of(&mut self, at: At<'_>) -> Option<Arc<Begin>> {
        let session = &self.turn.as_ref()?.session_id;
        if let Some((context, begin)) = &mut self.begin
            && (Arc::ptr_eq(context, at.context) || clamp::same_producer(context, at.context))
            && begin.is_of(session)
        {
            context.clone_from(at.context);
            return Some(Arc::clone(begin));
        }
        let locale = self.locale();
        let hints = json!({ "primary_language": locale.tag, "text_direction": locale.direction });
        let (producer, verbosity) = (clamp::producer(at.context), self.voice.verbosity.name());
        let begin = Arc::new(Begin::new(session, producer, verbosity, hints));
        self.begin = Some((Arc::clone(at.context), Arc::clone(&begin)));
        Some(begin)
    }
}

#[cfg(test)]
#[path = "write_tests.rs"]
mod tests;
