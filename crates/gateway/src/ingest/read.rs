//! What a pushed message says about itself: its session, its agent, its id. Nothing here is believed further than that:
//! sessions are named by the key as well, so nobody can speak in somebody else's.

use banister_events::capture::{self, MessageHeader};
use banister_events::check::{self, Checker};
use banister_events::event::Protocol;
use banister_events::finding::Finding;
use banister_events::{Message, frame, id, text};
use bytes::Bytes;

use super::{LockedSessions, NOT_AN_EVENT, OTHER_THREAD, Pusher, kept};

/// The longest id, turn or name that is taken as it is.
const NAME_BYTES: usize = 200;

/// One message of a batch.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) bytes: Bytes,
    /// The message that the bytes are, where they are one.
    pub(super) message: Option<Message>,
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
        let read = |(index, message): (usize, Result<Bytes, frame::Error>)| match message {
            Ok(bytes) => match Message::parse(self.protocol, bytes.clone()) {
                Ok(message) => {
                    let read = self.facts(&message, index);
                    Item { bytes, message: Some(message), read }
                }
                Err(error) => {
                    let findings = kept(vec![check::unreadable(self.protocol, &error)]);
                    Item { bytes, message: None, read: Err(findings) }
                }
            },
            Err(error) => {
                let finding = Checker::new(self.protocol).unframed(error);
                Item { bytes: Bytes::new(), message: None, read: Err(vec![finding]) }
            }
        };
        messages.into_iter().enumerate().map(read).collect()
    }

    fn facts(&self, message: &Message, index: usize) -> Result<EventFacts, Vec<Finding>> {
        let document = message.document();
        let event = document.root();
        if !event.is_object() {
            return Err(kept(check::message(self.protocol, message)));
        }
        let header = MessageHeader::of(self.protocol, event);
        if header.is_control {
            let kind = header.kind.unwrap_or_default();
            let message = format!("{} is no event", text::one_line(&kind));
            return Err(vec![NOT_AN_EVENT.at("/type", message)]);
        }
        let agent = header.agent.as_deref().and_then(name);
        let agent = agent.unwrap_or_else(|| match self.protocol {
            Protocol::Agui => Protocol::Agui.name().to_owned(),
            Protocol::Aaep | Protocol::Aep => "unknown".to_owned(),
        });
        // What has no id of its own is known again by that of the push.
        let push = || self.idempotency.as_ref().map(|push| format!("{push}/{index}"));
        Ok(EventFacts {
            place: self.session_of(&header, &agent),
            agent,
            id: header.id.as_deref().map(key).or_else(push),
            turn: header.turn.as_deref().and_then(name),
            action: header.action.as_deref().and_then(name),
            asks: capture::may_ask(self.protocol, event),
            findings: self.other_thread(&header).into_iter().collect(),
        })
    }

    /// Where a message belongs: AG-UI's events to the thread that they were pushed to, a response to its request.
    fn session_of(&self, header: &MessageHeader<'_>, agent: &str) -> SessionRef {
        if let Some(request) = header.request.as_deref() {
            return SessionRef::Of(key(request));
        }
        let session = header.session.as_deref().unwrap_or("-");
        let names: &[&str] = match self.protocol {
            Protocol::Aaep => &[session],
            Protocol::Agui => &[self.thread.as_deref().unwrap_or("-")],
            Protocol::Aep => &[agent, session],
        };
        let mut parts = vec![self.key.as_str(), self.protocol.name()];
        parts.extend(names);
        SessionRef::Session(id::derive("s_", &parts))
    }

    /// The finding for an event that names another thread than the one that it was pushed to.
    fn other_thread(&self, header: &MessageHeader<'_>) -> Option<Finding> {
        if self.protocol != Protocol::Agui {
            return None;
        }
        let thread = self.thread.as_deref().unwrap_or("-");
        let named = header.session.as_deref().filter(|named| *named != thread)?;
        let message = format!("it names the thread {}", text::one_line(named));
        Some(OTHER_THREAD.at(header.session_pointer, text::shorten(&message, 300)))
    }
}

/// A name that is short enough to be kept beside the event.
fn name(word: &str) -> Option<String> {
    (word.len() <= NAME_BYTES).then(|| word.to_owned())
}

/// An id that stands for one event, however long it is.
fn key(word: &str) -> String {
    if word.len() <= NAME_BYTES { word.to_owned() } else { id::derive("h_", &[word]) }
}
