//! What a pushed message says about itself: its session, its agent, its id. Nothing here is believed further than that:
//! sessions are named by the key as well, so nobody can speak in somebody else's.

use std::borrow::Cow;

use banister_events::check::{self, Checker};
use banister_events::event::Protocol;
use banister_events::finding::Finding;
use banister_events::json::{Parser, View};
use banister_events::{aaep, frame, id, text};
use bytes::Bytes;

use super::asks::may_ask;
use super::{LockedSessions, NOT_AN_EVENT, OTHER_THREAD, Pusher, kept};

/// The longest id, turn or name that is taken as it is.
const NAME_BYTES: usize = 200;

/// One message of a batch.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) bytes: Bytes,
    /// What it says about itself, or why it cannot be taken.
    pub(super) read: Result<EventFacts, Vec<Finding>>,
}

/// What a message says about itself.
#[derive(Debug)]
pub(super) struct EventFacts {
    pub(super) place: SessionRef,
    pub(super) agent: String,
    pub(super) id: Option<String>,
    pub(super) turn: Option<String>,
    pub(super) action: Option<String>,
    /// Whether it may ask something.
    pub(super) asks: bool,
    /// What is wrong with it at this door.
    pub(super) findings: Vec<Finding>,
}

/// Where a message belongs.
#[derive(Debug)]
pub(super) enum SessionRef {
    Session(String),
    /// Where the event with this id is.
    Of(String),
}

impl EventFacts {
    pub(super) fn session(&self) -> Option<&str> {
        match &self.place {
            SessionRef::Session(session) => Some(session),
            SessionRef::Of(_) => None,
        }
    }
}

impl Item {
    pub(super) fn session(&self) -> Option<&str> {
        self.read.as_ref().ok()?.session()
    }

    pub(super) fn id(&self) -> Option<&str> {
        self.read.as_ref().ok()?.id.as_deref()
    }

    /// Whether it may ask something.
    pub(super) fn asks(&self) -> bool {
        self.read.as_ref().is_ok_and(|facts| facts.asks)
    }

    /// Whether an event with its id was recorded lately.
    pub(super) fn is_remembered(&self, locked: &LockedSessions) -> bool {
        let push_session = self.session().and_then(|session| locked.get(session));
        push_session.zip(self.id()).is_some_and(|(push_session, id)| push_session.remembers(id))
    }
}

impl Pusher {
    /// What the messages of a batch say about themselves.
    pub(super) fn read(&self, messages: Vec<Result<Bytes, frame::Error>>) -> Vec<Item> {
        let mut parser = Parser::default();
        let read = |(index, message): (usize, Result<Bytes, frame::Error>)| match message {
            Ok(bytes) => {
                let read = self.facts(&bytes, index, &mut parser);
                Item { bytes, read }
            }
            Err(error) => {
                let finding = Checker::new(self.protocol).unframed(error);
                Item { bytes: Bytes::new(), read: Err(vec![finding]) }
            }
        };
        messages.into_iter().enumerate().map(read).collect()
    }

    fn facts(
        &self,
        bytes: &[u8],
        index: usize,
        parser: &mut Parser,
    ) -> Result<EventFacts, Vec<Finding>> {
        let unreadable = || kept(check::alone(self.protocol, bytes));
        let document = parser.parse(bytes).map_err(|_| unreadable())?;
        let event = document.root();
        if !event.is_object() {
            return Err(unreadable());
        }
        let mut facts = match self.protocol {
            Protocol::Aaep => self.aaep(event)?,
            Protocol::Agui => self.agui(event),
            Protocol::Aep => self.aep(event),
        };
        facts.asks = may_ask(self.protocol, event);
        // What has no id of its own is known again by that of the push.
        let push = || self.idempotency.as_ref().map(|push| format!("{push}/{index}"));
        facts.id = facts.id.or_else(push);
        Ok(facts)
    }

    fn aaep(&self, event: View<'_>) -> Result<EventFacts, Vec<Finding>> {
        let kind = word(event, "/type").unwrap_or_default();
        if aaep::event::is_control(&kind) {
            let message = format!("{} is no event", text::one_line(&kind));
            return Err(vec![NOT_AN_EVENT.at("/type", message)]);
        }
        let agent = name(event, "/producer/agent_id");
        Ok(EventFacts {
            place: self.session(&[&word(event, "/session_id").unwrap_or("-".into())]),
            agent: agent.unwrap_or_else(|| "unknown".to_owned()),
            id: key(event, "/event_id"),
            turn: name(event, "/session_id"),
            action: name(event, "/call_id"),
            asks: false,
            findings: Vec::new(),
        })
    }

    fn agui(&self, event: View<'_>) -> EventFacts {
        let thread = self.thread.as_deref().unwrap_or("-");
        let named = word(event, "/threadId").filter(|named| named != thread);
        let other = |named: Cow<'_, str>| {
            let message = format!("it names the thread {}", text::one_line(&named));
            OTHER_THREAD.at("/threadId", text::shorten(&message, 300))
        };
        EventFacts {
            place: self.session(&[thread]),
            agent: "agui".to_owned(),
            id: None,
            turn: name(event, "/runId"),
            action: name(event, "/toolCallId"),
            asks: false,
            findings: named.map(other).into_iter().collect(),
        }
    }

    fn aep(&self, event: View<'_>) -> EventFacts {
        let agent = name(event, "/agent/slug").unwrap_or_else(|| "unknown".to_owned());
        let request = key(event, "/request_event_id").filter(|_| event.get("type").is_none());
        let place = request.map_or_else(
            || {
                let session =
                    word(event, "/session/id").or_else(|| word(event, "/session/conversation_id"));
                self.session(&[&agent, &session.unwrap_or("-".into())])
            },
            SessionRef::Of,
        );
        EventFacts {
            place,
            agent,
            id: key(event, "/id"),
            turn: name(event, "/session/turn_id"),
            action: name(event, "/action/id").or_else(|| name(event, "/action_id")),
            asks: false,
            findings: Vec::new(),
        }
    }

    fn session(&self, names: &[&str]) -> SessionRef {
        let mut parts = vec![self.key.as_str(), self.protocol.name()];
        parts.extend(names);
        SessionRef::Session(id::derive("s_", &parts))
    }
}

fn word<'a>(event: View<'a>, pointer: &str) -> Option<Cow<'a, str>> {
    event.pointer(pointer)?.as_str().filter(|word| !word.is_empty())
}

/// A name that is short enough to be kept beside the event.
fn name(event: View<'_>, pointer: &str) -> Option<String> {
    word(event, pointer).filter(|word| word.len() <= NAME_BYTES).map(Cow::into_owned)
}

/// An id that stands for one event, however long it is.
fn key(event: View<'_>, pointer: &str) -> Option<String> {
    let word = word(event, pointer)?;
    Some(if word.len() <= NAME_BYTES { word.into_owned() } else { id::derive("h_", &[&word]) })
}
