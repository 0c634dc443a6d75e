//! Chunks taken apart: what opens and closes by itself becomes starts, pieces and ends.
//!
//! Chunks without an id continue what is open in their *lane*: that of their subagent, or that of the agent itself. A
//! lane holds one item at a time, and most other events of its owner end it. At the end of the stream nothing is closed:
//! nobody knows whether more was to come.

use std::borrow::Cow;

use super::event::Type;
use super::sequence::{CHUNK_AMBIGUOUS, CHUNK_CHANGED, FIRST_CHUNK, OWNER, owned_by};
use super::step::{Fields, Item, Opener, Step, text as text_of};
use crate::check::shape::{quote, text};
use crate::finding::Finding;
use crate::json::View;

/// How many lanes are followed at once; after that the oldest counts as closed.
const LANES: usize = 4_096;

/// The streams of chunks that are open, in the order in which they opened.
#[derive(Debug, Clone, Default)]
pub(super) struct Lanes(Vec<Lane>);

#[derive(Debug, Clone)]
struct Lane {
    owner: Option<Box<str>>,
    item: Item,
    /// None where the first chunk lacked it, which was told: what continues it is not told again.
    id: Option<Box<str>>,
    opener: Opener<'static>,
}

impl Lane {
    fn close(self) -> Option<Step<'static>> {
        Some(Step::Close {
            item: self.item,
            id: Cow::Owned(self.id?.into()),
            tag: self.owner.map(|owner| Cow::Owned(owner.into())),
            metadata: None,
        })
    }
}

/// Where steps go, with the findings so far.
pub(super) type Sink<'s, 'a> = &'s mut dyn FnMut(Step<'a>, &mut Vec<Finding>);

impl Lanes {
    /// The steps of one event, those that it causes by coming first.
    pub(super) fn expand<'a>(
        &mut self,
        kind: Type,
        event: View<'a>,
        findings: &mut Vec<Finding>,
        sink: Sink<'_, 'a>,
    ) {
        let item = match kind {
            Type::TextMessageChunk => Item::Text,
            Type::ToolCallChunk => Item::Tool,
            Type::ReasoningMessageChunk => Item::Reasoning,
            _ => {
                self.interrupt(kind, event, findings, sink);
                if let Some(step) = Step::new(kind, event) {
                    sink(step, findings);
                }
                return;
            }
        };
        self.chunk(item, event, findings, sink);
    }

    /// Whether a chunk stream of this kind with this id is open.
    pub(super) fn holds(&self, item: Item, id: &str) -> bool {
        self.0.iter().any(|lane| lane.item == item && lane.id.as_deref() == Some(id))
    }

    /// Ends the lanes that an event ends by coming.
    fn interrupt<'a>(
        &mut self,
        kind: Type,
        event: View<'a>,
        findings: &mut Vec<Finding>,
        sink: Sink<'_, 'a>,
    ) {
        if self.0.is_empty() {
            return;
        }
        let tag = text(event, "subagentRunId");
        let ends = |lane: &mut Lane| match kind {
            Type::RunStarted | Type::RunFinished | Type::RunError | Type::MessagesSnapshot => true,
            Type::Raw
            | Type::ActivitySnapshot
            | Type::ActivityDelta
            | Type::ReasoningEncryptedValue
            | Type::SubagentStarted => false,
            _ => lane.owner.as_deref() == tag.as_deref(),
        };
        for step in self.0.extract_if(.., ends).filter_map(Lane::close) {
            sink(step, findings);
        }
    }

    fn chunk<'a>(
        &mut self,
        item: Item,
        event: View<'a>,
        findings: &mut Vec<Finding>,
        sink: Sink<'_, 'a>,
    ) {
        let fields = Fields::of(item, event);
        let (id, tag, metadata) = (text_of(fields.id), text_of(fields.tag), fields.metadata);
        let (opener, mut delta) = (fields.opener(), text_of(fields.delta));
        let at = match self.find(item, id.as_deref(), tag.as_deref()) {
            Ok(at) => at,
            Err(finding) => {
                findings.push(finding);
                if id.is_none() {
                    // What continues it is not told again.
                    let lane = Lane { owner: None, item, id: None, opener: Opener::default() };
                    if let Some(step) = self.hold(lane) {
                        sink(step, findings);
                    }
                }
                return;
            }
        };
        if delta.is_none() && fields.raw {
            delta = Some(Cow::Borrowed(""));
        }
        let fits = |lane: &&Lane| {
            lane.item == item && (id.is_none() || id.as_deref() == lane.id.as_deref())
        };
        if let Some(lane) = at.and_then(|at| self.0.get(at)).filter(fits) {
            changed(item, &opener, &lane.opener, findings);
            if delta.is_none() && metadata.is_some() {
                delta = Some(Cow::Borrowed(""));
            }
            if let (Some(delta), Some(id)) = (delta, &lane.id) {
                let id = Cow::Owned(id.to_string());
                let owner = lane.owner.as_deref().map(|owner| Cow::Owned(owner.to_owned()));
                sink(Step::Append { item, id, tag: tag.or(owner), delta, metadata }, findings);
            }
            return;
        }
        if let Some(step) = at.and_then(|at| self.0.remove(at).close()) {
            sink(step, findings);
        }
        if id.is_none() {
            let message = format!("no {} is open that this chunk could continue", item.name());
            findings.push(FIRST_CHUNK.at(format!("/{}", item.id_field()), message));
        } else if item == Item::Tool && opener.name.is_none() {
            findings.push(FIRST_CHUNK.at("/toolCallName", "the first chunk of a call has no name"));
        }
        let lane = Lane {
            owner: tag.as_deref().map(Into::into),
            item,
            id: id.as_deref().map(Into::into),
            opener: opener.clone().into_owned(),
        };
        if let Some(step) = self.hold(lane) {
            sink(step, findings);
        }
        let Some(id) = id else { return };
        sink(Step::Open { item, id: id.clone(), tag: tag.clone(), opener, metadata }, findings);
        if let Some(delta) = delta {
            sink(Step::Append { item, id, tag, delta, metadata }, findings);
        }
    }

    /// Adds a lane; the step that closes another one, where there are too many.
    fn hold(&mut self, lane: Lane) -> Option<Step<'static>> {
        let closed = if self.0.len() >= LANES { self.0.remove(0).close() } else { None };
        self.0.push(lane);
        closed
    }

    /// The lane a chunk goes to, if it is there yet; its owner is the chunk's where it is not, or is not continued.
    /// An error where it cannot be told, or the chunk is somebody else's.
    fn find(
        &self,
        item: Item,
        id: Option<&str>,
        tag: Option<&str>,
    ) -> Result<Option<usize>, Finding> {
        let held = |lane: &Lane| lane.item == item && id.is_some() && lane.id.as_deref() == id;
        if let Some((at, lane)) = self.0.iter().enumerate().find(|(_, lane)| held(lane)) {
            if tag.is_some() && lane.owner.as_deref() != tag {
                return Err(OWNER.at("/subagentRunId", owned_by(lane.owner.as_deref())));
            }
            return Ok(Some(at));
        }
        let of =
            |owner: Option<&str>| self.0.iter().position(|lane| lane.owner.as_deref() == owner);
        if id.is_some() || tag.is_some() {
            return Ok(of(tag));
        }
        let mut same = self.0.iter().enumerate().filter(|(_, lane)| lane.item == item);
        if let Some((at, _)) = same.clone().find(|(_, lane)| lane.owner.is_none()) {
            return Ok(Some(at));
        }
        match (same.next(), same.next()) {
            (Some((at, _)), None) => Ok(Some(at)),
            (None, _) => Ok(of(None)),
            (Some(_), Some(_)) => {
                let message = format!("several subagents have an open {}", item.name());
                Err(CHUNK_AMBIGUOUS.at("", message))
            }
        }
    }
}

/// Tells where a chunk that continues an item says something else than the one that began it.
fn changed(item: Item, now: &Opener<'_>, then: &Opener<'_>, findings: &mut Vec<Finding>) {
    let role = then.role.as_deref().unwrap_or("assistant");
    let pairs = [
        (&now.role, Some(role)),
        (&now.name, then.name.as_deref()),
        (&now.parent, then.parent.as_deref()),
    ];
    for (name, (now, then)) in item.opener_fields().into_iter().zip(pairs) {
        if let (Some(name), Some(now)) = (name, now)
            && Some(now.as_ref()) != then
        {
            let message = match then {
                Some(then) => format!("the first chunk said {}", quote(then)),
                None => "the first chunk did not say it".to_owned(),
            };
            findings.push(CHUNK_CHANGED.at(format!("/{name}"), message));
        }
    }
}

#[cfg(test)]
#[path = "expand_tests.rs"]
mod tests;
