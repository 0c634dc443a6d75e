//! The messages, as data.
//!
//! Fields stand in ascending order of their numbers, which is the order on the wire. Names are those of the JSON,
//! but for the few fields that JSON has elsewhere; `rules` finds those.

use crate::agui::event::Type;

/// A message.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) rule: Rule,
    pub(super) fields: &'static [Field],
}

/// One field of a message.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) number: u32,
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) presence: Presence,
}

/// What a field holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Text,
    Bool,
    /// 64 bits on the wire, of which JavaScript counts 53.
    Integer,
    /// A word, by its place in a list.
    Word(&'static [&'static str]),
    /// Open data, of which null is a value.
    Any,
    /// Open data, where null says that there is none.
    Some,
    /// Open data that is an object.
    Object,
    Message(&'static Message),
    /// What all events have, which JSON has beside the event's own fields.
    Base,
    List(&'static Kind),
}

/// Whether a field is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// Always in JSON. On the wire, empty texts and lists are left out.
    Must,
    /// Where it is not left out. An empty list is.
    May,
    /// A list that may be left out when written, and is there when read.
    Filled,
}

/// How JSON says it differently.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rule {
    /// Not at all.
    Same,
    /// Fields of `outcome` stand beside it, each with the type of outcome it belongs to.
    Outcome(&'static [(&'static str, &'static str)]),
    /// Text and parts share one name.
    Content,
    /// Text, parts and an activity's object share one name; which of them there is depends on the role.
    Chat,
    /// The field's name is the object's `type`; a retired type is known by another.
    Part,
    /// The field's name is the object's `type`.
    Source,
}

/// One type of event within the message that holds it.
#[derive(Debug)]
pub(super) struct Arm {
    pub(super) number: u32,
    pub(super) kind: Type,
    pub(super) message: &'static Message,
}

/// The arm of a type; every type has one, which a test insists on.
pub(super) fn arm(kind: Type) -> Option<&'static Arm> {
    ARMS.iter().find(|arm| arm.kind == kind)
}

/// The arm with a number.
pub(super) fn numbered(number: u32) -> Option<&'static Arm> {
    ARMS.iter().find(|arm| arm.number == number)
}

const fn must(number: u32, name: &'static str, kind: Kind) -> Field {
    Field { number, name, kind, presence: Presence::Must }
}

const fn may(number: u32, name: &'static str, kind: Kind) -> Field {
    Field { number, name, kind, presence: Presence::May }
}

const fn filled(number: u32, name: &'static str, kind: Kind) -> Field {
    Field { number, name, kind, presence: Presence::Filled }
}

const fn text(number: u32, name: &'static str) -> Field {
    must(number, name, Kind::Text)
}

const fn note(number: u32, name: &'static str) -> Field {
    may(number, name, Kind::Text)
}

const fn count(number: u32, name: &'static str) -> Field {
    may(number, name, Kind::Integer)
}

const fn owner(number: u32) -> Field {
    note(number, "subagentRunId")
}

const fn metadata(number: u32) -> Field {
    may(number, "metadata", Kind::Object)
}

macro_rules! message {
    ($name:ident, $rule:expr, $($field:expr),* $(,)?) => {
        const $name: Message = Message { rule: $rule, fields: &[$($field),*] };
    };
    ($name:ident: $($field:expr),* $(,)?) => {
        message!($name, Rule::Same, $($field),*);
    };
}

/// An event: the base, and its own fields.
macro_rules! event {
    ($name:ident, $rule:expr, $($field:expr),* $(,)?) => {
        message!($name, $rule, must(1, "", Kind::Base), $($field),*);
    };
    ($name:ident: $($field:expr),* $(,)?) => {
        event!($name, Rule::Same, $($field),*);
    };
}

pub(super) const BASE: Message = Message {
    rule: Rule::Same,
    fields: &[
        must(1, "type", Kind::Word(TYPES)),
        count(2, "timestamp"),
        may(3, "rawEvent", Kind::Some),
        metadata(4),
    ],
};

/// The types in the order of their numbers in the base, which are not those of the arms.
const TYPES: &[&str] = &[
    "TEXT_MESSAGE_START",
    "TEXT_MESSAGE_CONTENT",
    "TEXT_MESSAGE_END",
    "TOOL_CALL_START",
    "TOOL_CALL_ARGS",
    "TOOL_CALL_END",
    "STATE_SNAPSHOT",
    "STATE_DELTA",
    "MESSAGES_SNAPSHOT",
    "RAW",
    "CUSTOM",
    "RUN_STARTED",
    "RUN_FINISHED",
    "RUN_ERROR",
    "STEP_STARTED",
    "STEP_FINISHED",
    "SUBAGENT_STARTED",
    "SUBAGENT_FINISHED",
    "SUBAGENT_ERROR",
    "TEXT_MESSAGE_CHUNK",
    "TOOL_CALL_CHUNK",
    "TOOL_CALL_RESULT",
    "ACTIVITY_SNAPSHOT",
    "ACTIVITY_DELTA",
    "REASONING_START",
    "REASONING_MESSAGE_START",
    "REASONING_MESSAGE_CONTENT",
    "REASONING_MESSAGE_END",
    "REASONING_MESSAGE_CHUNK",
    "REASONING_END",
    "REASONING_ENCRYPTED_VALUE",
];

macro_rules! arms {
    ($($number:literal $kind:ident $message:ident;)*) => {
        /// The arms, in the order of their numbers.
        pub(super) static ARMS: [Arm; 31] =
            [$(Arm { number: $number, kind: Type::$kind, message: &$message }),*];
    };
}

arms! {
    1 TextMessageStart TEXT_MESSAGE_START;
    2 TextMessageContent TEXT_MESSAGE_CONTENT;
    3 TextMessageEnd TEXT_MESSAGE_END;
    4 ToolCallStart TOOL_CALL_START;
    5 ToolCallArgs TOOL_CALL_ARGS;
    6 ToolCallEnd TOOL_CALL_END;
    7 StateSnapshot STATE_SNAPSHOT;
    8 StateDelta STATE_DELTA;
    9 MessagesSnapshot MESSAGES_SNAPSHOT;
    10 Raw RAW;
    11 Custom CUSTOM;
    12 RunStarted RUN_STARTED;
    13 RunFinished RUN_FINISHED;
    14 RunError RUN_ERROR;
    15 StepStarted STEP;
    16 StepFinished STEP;
    17 TextMessageChunk TEXT_MESSAGE_CHUNK;
    18 ToolCallChunk TOOL_CALL_CHUNK;
    19 SubagentStarted SUBAGENT_STARTED;
    20 SubagentFinished SUBAGENT_FINISHED;
    21 SubagentError SUBAGENT_ERROR;
    22 ToolCallResult TOOL_CALL_RESULT;
    23 ActivitySnapshot ACTIVITY_SNAPSHOT;
    24 ActivityDelta ACTIVITY_DELTA;
    25 ReasoningStart REASONING;
    26 ReasoningMessageStart REASONING_MESSAGE_START;
    27 ReasoningMessageContent REASONING_MESSAGE_CONTENT;
    28 ReasoningMessageEnd REASONING;
    29 ReasoningMessageChunk REASONING_MESSAGE_CHUNK;
    30 ReasoningEnd REASONING;
    31 ReasoningEncryptedValue REASONING_ENCRYPTED_VALUE;
}

event!(TEXT_MESSAGE_START: text(2, "messageId"), note(3, "role"), note(4, "name"), owner(5));
event!(TEXT_MESSAGE_CONTENT: text(2, "messageId"), text(3, "delta"), owner(4));
event!(TEXT_MESSAGE_END: text(2, "messageId"), owner(3));
event!(TEXT_MESSAGE_CHUNK: note(2, "messageId"), note(3, "role"), note(4, "delta"), note(5, "name"), owner(6));

event!(TOOL_CALL_START: text(2, "toolCallId"), text(3, "toolCallName"), note(4, "parentMessageId"), owner(5));
event!(TOOL_CALL_ARGS: text(2, "toolCallId"), text(3, "delta"), owner(4));
event!(TOOL_CALL_END: text(2, "toolCallId"), owner(3));
event!(TOOL_CALL_CHUNK:
    note(2, "toolCallId"),
    note(3, "toolCallName"),
    note(4, "parentMessageId"),
    note(5, "delta"),
    owner(6),
);
event!(
    TOOL_CALL_RESULT,
    Rule::Content,
    owner(2),
    text(3, "messageId"),
    text(4, "toolCallId"),
    note(5, "content"),
    note(6, "role"),
    may(7, "contentParts", PARTS),
);

event!(STATE_SNAPSHOT: must(2, "snapshot", Kind::Any), owner(3));
event!(STATE_DELTA: must(2, "delta", PATCH), owner(3));
event!(MESSAGES_SNAPSHOT: must(2, "messages", CHAT));
event!(ACTIVITY_SNAPSHOT:
    owner(2),
    text(3, "messageId"),
    text(4, "activityType"),
    must(5, "content", Kind::Object),
    may(6, "replace", Kind::Bool),
);
event!(ACTIVITY_DELTA: owner(2), text(3, "messageId"), text(4, "activityType"), must(5, "patch", PATCH));
event!(RAW: must(2, "event", Kind::Any), note(3, "source"), owner(4));
event!(CUSTOM: text(2, "name"), must(3, "value", Kind::Any), owner(4));

event!(RUN_STARTED:
    text(2, "threadId"),
    text(3, "runId"),
    note(4, "parentRunId"),
    may(5, "input", Kind::Message(&RUN_INPUT)),
    note(6, "protocolVersion"),
);
event!(
    RUN_FINISHED,
    Rule::Outcome(&[("interrupts", "interrupt"), ("pendingToolCallIds", "success")]),
    text(2, "threadId"),
    text(3, "runId"),
    may(4, "result", Kind::Some),
    note(5, "outcome"),
    may(6, "interrupts", Kind::List(&Kind::Message(&INTERRUPT))),
    may(7, "usage", USAGES),
    may(8, "pendingToolCallIds", Kind::List(&Kind::Text)),
);
event!(RUN_ERROR: note(2, "code"), text(3, "message"), may(4, "usage", USAGES));
event!(STEP: text(2, "stepName"), owner(3));

event!(REASONING: owner(2), text(3, "messageId"));
event!(REASONING_MESSAGE_START: owner(2), text(3, "messageId"), text(4, "role"));
event!(REASONING_MESSAGE_CONTENT: owner(2), text(3, "messageId"), text(4, "delta"));
event!(REASONING_MESSAGE_CHUNK: owner(2), note(3, "messageId"), note(4, "delta"));
event!(REASONING_ENCRYPTED_VALUE:
    owner(2),
    text(3, "subtype"),
    text(4, "entityId"),
    text(5, "encryptedValue"),
    note(6, "encryptedValueType"),
);

event!(SUBAGENT_STARTED:
    text(2, "subagentRunId"),
    text(3, "name"),
    note(4, "description"),
    note(5, "parentSubagentRunId"),
    note(6, "parentToolCallId"),
    note(7, "parentMessageId"),
);
event!(
    SUBAGENT_FINISHED,
    Rule::Outcome(&[("interruptIds", "suspended")]),
    text(2, "subagentRunId"),
    may(3, "result", Kind::Some),
    note(4, "outcome"),
    may(5, "interruptIds", Kind::List(&Kind::Text)),
);
event!(SUBAGENT_ERROR: text(2, "subagentRunId"), text(3, "message"), note(4, "code"));

const USAGES: Kind = Kind::List(&Kind::Message(&USAGE));
message!(USAGE:
    note(1, "provider"),
    note(2, "model"),
    count(3, "inputTokens"),
    count(4, "outputTokens"),
    count(5, "totalTokens"),
    count(6, "reasoningTokens"),
    count(7, "cachedInputTokens"),
    count(8, "cacheWriteInputTokens"),
);

const PATCH: Kind = Kind::List(&Kind::Message(&OPERATION));
message!(OPERATION:
    must(1, "op", Kind::Word(&["add", "remove", "replace", "move", "copy", "test"])),
    text(2, "path"),
    note(3, "from"),
    may(4, "value", Kind::Any),
);

const CHAT: Kind = Kind::List(&Kind::Message(&CHAT_MESSAGE));
message!(
    CHAT_MESSAGE,
    Rule::Chat,
    text(1, "id"),
    text(2, "role"),
    note(3, "content"),
    note(4, "name"),
    may(5, "toolCalls", Kind::List(&Kind::Message(&TOOL_CALL))),
    note(6, "toolCallId"),
    note(7, "error"),
    may(8, "contentParts", PARTS),
    metadata(9),
    owner(10),
    note(11, "encryptedValue"),
    note(12, "activityType"),
    may(13, "activityContent", Kind::Object),
    note(14, "encryptedValueType"),
);
message!(TOOL_CALL:
    text(1, "id"),
    text(2, "type"),
    must(3, "function", Kind::Message(&FUNCTION)),
    metadata(4),
    note(5, "encryptedValue"),
    note(6, "encryptedValueType"),
);
message!(FUNCTION: text(1, "name"), text(2, "arguments"));

const PARTS: Kind = Kind::List(&Kind::Message(&PART));
message!(
    PART,
    Rule::Part,
    may(1, "text", Kind::Message(&TEXT_PART)),
    may(2, "image", Kind::Message(&MEDIA_PART)),
    may(3, "audio", Kind::Message(&MEDIA_PART)),
    may(4, "video", Kind::Message(&MEDIA_PART)),
    may(5, "document", Kind::Message(&MEDIA_PART)),
);
message!(TEXT_PART: text(1, "text"), note(2, "id"), may(3, "metadata", Kind::Some));
message!(MEDIA_PART:
    must(1, "source", Kind::Message(&SOURCE)),
    may(2, "metadata", Kind::Some),
    note(3, "id"),
);
message!(
    SOURCE,
    Rule::Source,
    may(1, "data", Kind::Message(&DATA_SOURCE)),
    may(2, "url", Kind::Message(&URL_SOURCE)),
    may(3, "file", Kind::Message(&FILE_SOURCE)),
);
message!(DATA_SOURCE: text(1, "value"), text(2, "mimeType"));
message!(URL_SOURCE: text(1, "value"), note(2, "mimeType"));
message!(FILE_SOURCE: text(1, "value"), note(2, "provider"), note(3, "mimeType"));

message!(RUN_INPUT:
    text(1, "threadId"),
    text(2, "runId"),
    note(3, "parentRunId"),
    may(4, "state", Kind::Some),
    must(5, "messages", CHAT),
    filled(6, "tools", Kind::List(&Kind::Message(&TOOL))),
    filled(7, "context", Kind::List(&Kind::Message(&CONTEXT))),
    may(8, "forwardedProps", Kind::Some),
    filled(9, "resume", Kind::List(&Kind::Message(&RESUME))),
    note(10, "protocolVersion"),
);
message!(TOOL: text(1, "name"), text(2, "description"), may(3, "parameters", Kind::Some), metadata(4));
message!(CONTEXT: text(1, "description"), text(2, "value"));
message!(RESUME: text(1, "interruptId"), text(2, "status"), may(3, "payload", Kind::Some), metadata(4));

message!(INTERRUPT:
    text(1, "id"),
    text(2, "reason"),
    note(3, "message"),
    note(4, "toolCallId"),
    may(5, "responseSchema", Kind::Some),
    note(6, "expiresAt"),
    may(7, "metadata", Kind::Some),
    owner(8),
);
