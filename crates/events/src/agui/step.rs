//! What an event does to a run, once nothing foreign is left in it and chunks are taken apart.
//!
//! The verifier and the reducer see steps, never chunks. A step borrows from the message it came from.

use std::borrow::Cow;

use super::event::Type;
use crate::json::View;

/// One step of a run.
#[derive(Debug, Clone)]
pub(crate) enum Step<'a> {
    /// Something that is told in pieces begins.
    Open {
        item: Item,
        id: Cow<'a, str>,
        tag: Option<Cow<'a, str>>,
        opener: Opener<'a>,
        metadata: Option<View<'a>>,
    },
    /// A piece of it.
    Append {
        item: Item,
        id: Cow<'a, str>,
        tag: Option<Cow<'a, str>>,
        delta: Cow<'a, str>,
        metadata: Option<View<'a>>,
    },
    /// It is whole.
    Close { item: Item, id: Cow<'a, str>, tag: Option<Cow<'a, str>>, metadata: Option<View<'a>> },
    /// Any other event, which is never of a type that the steps above stand for.
    Event { kind: Type, event: View<'a> },
}

/// What is told in pieces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) enum Item {
    /// A message.
    #[default]
    Text,
    /// A tool call and its arguments.
    Tool,
    /// A span of reasoning, which has no pieces.
    Span,
    /// A reasoning message.
    Reasoning,
}

/// What the first event of an item says about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Opener<'a> {
    /// Who speaks, of a message.
    pub(crate) role: Option<Cow<'a, str>>,
    /// The author of a message, or the tool that is called.
    pub(crate) name: Option<Cow<'a, str>>,
    /// The message that carries a call.
    pub(crate) parent: Option<Cow<'a, str>>,
}

impl<'a> Step<'a> {
    /// The step of an event that is not a chunk; none where a chunk is, or a field that names the item is missing.
    pub(crate) fn new(kind: Type, event: View<'a>) -> Option<Self> {
        let item = match kind {
            Type::TextMessageStart | Type::TextMessageContent | Type::TextMessageEnd => Item::Text,
            Type::ToolCallStart | Type::ToolCallArgs | Type::ToolCallEnd => Item::Tool,
            Type::ReasoningStart | Type::ReasoningEnd => Item::Span,
            Type::ReasoningMessageStart
            | Type::ReasoningMessageContent
            | Type::ReasoningMessageEnd => Item::Reasoning,
            Type::TextMessageChunk | Type::ToolCallChunk | Type::ReasoningMessageChunk => {
                return None;
            }
            _ => return Some(Self::Event { kind, event }),
        };
        let fields = Fields::of(item, event);
        let (id, tag, metadata) = (text(fields.id)?, text(fields.tag), fields.metadata);
        Some(match kind {
            Type::TextMessageContent | Type::ToolCallArgs | Type::ReasoningMessageContent => {
                Self::Append { item, id, tag, delta: text(fields.delta)?, metadata }
            }
            Type::TextMessageEnd
            | Type::ToolCallEnd
            | Type::ReasoningEnd
            | Type::ReasoningMessageEnd => Self::Close { item, id, tag, metadata },
            _ => Self::Open { item, id, tag, opener: fields.opener(), metadata },
        })
    }
}

/// The string that a field holds.
#[inline]
pub(crate) fn text(field: Option<View<'_>>) -> Option<Cow<'_, str>> {
    field.and_then(View::as_str)
}

/// What an event says about an item, told by one look at its fields.
#[derive(Debug, Default)]
pub(crate) struct Fields<'a> {
    pub(crate) id: Option<View<'a>>,
    pub(crate) tag: Option<View<'a>>,
    pub(crate) delta: Option<View<'a>>,
    pub(crate) metadata: Option<View<'a>>,
    role: Option<View<'a>>,
    name: Option<View<'a>>,
    parent: Option<View<'a>>,
    /// Whether it carries the event of somebody else that it came from.
    pub(crate) raw: bool,
}

impl<'a> Fields<'a> {
    pub(crate) fn of(item: Item, event: View<'a>) -> Self {
        let mut fields = Self::default();
        for (name, value) in event.entries() {
            let Some(name) = name.as_str() else { continue };
            let field = match (&*name, item) {
                ("delta", _) => &mut fields.delta,
                ("toolCallId", Item::Tool)
                | ("messageId", Item::Text | Item::Span | Item::Reasoning) => &mut fields.id,
                ("subagentRunId", _) => &mut fields.tag,
                ("metadata", _) => &mut fields.metadata,
                ("role", Item::Text) => &mut fields.role,
                ("name", Item::Text) | ("toolCallName", Item::Tool) => &mut fields.name,
                ("parentMessageId", Item::Tool) => &mut fields.parent,
                ("rawEvent", _) => {
                    fields.raw = true;
                    continue;
                }
                _ => continue,
            };
            *field = Some(value);
        }
        fields
    }

    pub(crate) fn opener(&self) -> Opener<'a> {
        Opener { role: text(self.role), name: text(self.name), parent: text(self.parent) }
    }
}

impl Opener<'_> {
    /// The same, borrowing nothing.
    pub(crate) fn into_owned(self) -> Opener<'static> {
        let own = |text: Option<Cow<'_, str>>| text.map(|text| Cow::Owned(text.into_owned()));
        Opener { role: own(self.role), name: own(self.name), parent: own(self.parent) }
    }
}

impl Item {
    /// What it is called in messages to people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Text => "message",
            Self::Tool => "tool call",
            Self::Span => "reasoning span",
            Self::Reasoning => "reasoning message",
        }
    }

    /// The field that holds its id.
    pub(crate) fn id_field(self) -> &'static str {
        if self == Self::Tool { "toolCallId" } else { "messageId" }
    }

    /// The fields of an [`Opener`], in its order.
    pub(crate) fn opener_fields(self) -> [Option<&'static str>; 3] {
        match self {
            Self::Text => [Some("role"), Some("name"), None],
            Self::Tool => [None, Some("toolCallName"), Some("parentMessageId")],
            // The role of reasoning is always the same, and spans have none.
            Self::Span | Self::Reasoning => [None; 3],
        }
    }
}
