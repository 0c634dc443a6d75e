//! The fields of every event type, down to messages, parts, interrupts and patches.

use crate::check::shape::{Field, Kind, STRING, Shape, may, must};

/// The largest number JavaScript counts with.
const SAFE: i64 = (1 << 53) - 1;
const COUNT: Kind = Kind::Integer { min: 0, max: SAFE };
const OPEN: Kind = Kind::Object;

const BASE: &[Field] = &[
    must("type", STRING),
    may("timestamp", Kind::Integer { min: -SAFE, max: SAFE }),
    may("rawEvent", Kind::Some),
    may("metadata", OPEN),
];

/// On events that can belong to a subagent.
const OWNER: &[Field] = &[may("subagentRunId", STRING)];

const fn list(item: &'static Kind) -> Kind {
    Kind::List { min: 0, max: usize::MAX, distinct: false, item }
}

/// An event of its own fields that can belong to a subagent.
macro_rules! owned {
    ($name:ident: $($field:expr),*) => {
        pub(super) const $name: Shape = Shape { parts: &[BASE, OWNER, &[$($field),*]], closed: true };
    };
}

/// An event or object of exactly these fields.
macro_rules! exact {
    ($name:ident: $($part:expr),*) => {
        pub(super) const $name: Shape = Shape { parts: &[$($part),*], closed: true };
    };
}

const SPEAKER: Kind = Kind::Word(&["developer", "system", "assistant", "user"]);

owned!(TEXT_MESSAGE_START: must("messageId", STRING), may("role", SPEAKER), may("name", STRING));
owned!(MESSAGE_DELTA: must("messageId", STRING), must("delta", STRING));
owned!(MESSAGE_ID: must("messageId", STRING));
owned!(TEXT_MESSAGE_CHUNK: may("messageId", STRING), may("role", SPEAKER), may("delta", STRING), may("name", STRING));
owned!(TOOL_CALL_START: must("toolCallId", STRING), must("toolCallName", STRING), may("parentMessageId", STRING));
owned!(TOOL_CALL_ARGS: must("toolCallId", STRING), must("delta", STRING));
owned!(TOOL_CALL_END: must("toolCallId", STRING));
owned!(TOOL_CALL_CHUNK: may("toolCallId", STRING), may("toolCallName", STRING), may("parentMessageId", STRING), may("delta", STRING));
owned!(TOOL_CALL_RESULT: must("messageId", STRING), must("toolCallId", STRING), must("content", CONTENT), may("role", Kind::Word(&["tool"])));
owned!(STATE_SNAPSHOT: must("snapshot", Kind::Any));
owned!(STATE_DELTA: must("delta", PATCH));
exact!(MESSAGES_SNAPSHOT: BASE, &[must("messages", list(&MESSAGE))]);
owned!(ACTIVITY_SNAPSHOT: must("messageId", STRING), must("activityType", STRING), must("content", OPEN), may("replace", Kind::Bool));
owned!(ACTIVITY_DELTA: must("messageId", STRING), must("activityType", STRING), must("patch", PATCH));
owned!(RAW: must("event", Kind::Any), may("source", STRING));
owned!(CUSTOM: must("name", STRING), must("value", Kind::Any));
exact!(RUN_STARTED: BASE, &[
    must("threadId", STRING),
    must("runId", STRING),
    may("protocolVersion", STRING),
    may("parentRunId", STRING),
    may("input", Kind::Record(&RUN_INPUT)),
]);
exact!(RUN_FINISHED: BASE, &[
    must("threadId", STRING),
    must("runId", STRING),
    may("result", Kind::Some),
    may("outcome", OUTCOME),
    may("usage", list(&USAGE)),
]);
exact!(RUN_ERROR: BASE, &[must("message", STRING), may("code", STRING), may("usage", list(&USAGE))]);
owned!(STEP: must("stepName", STRING));
owned!(REASONING_MESSAGE_START: must("messageId", STRING), must("role", Kind::Word(&["reasoning"])));
owned!(REASONING_MESSAGE_CHUNK: may("messageId", STRING), may("delta", STRING));
owned!(REASONING_ENCRYPTED_VALUE:
    must("subtype", Kind::Word(&["tool-call", "message"])),
    must("entityId", STRING),
    must("encryptedValue", STRING),
    may("encryptedValueType", STRING)
);
exact!(SUBAGENT_STARTED: BASE, &[
    must("subagentRunId", STRING),
    must("name", STRING),
    may("description", STRING),
    may("parentSubagentRunId", STRING),
    may("parentToolCallId", STRING),
    may("parentMessageId", STRING),
]);
exact!(SUBAGENT_FINISHED: BASE, &[must("subagentRunId", STRING), may("result", Kind::Some), may("outcome", SUBAGENT_OUTCOME)]);
exact!(SUBAGENT_ERROR: BASE, &[must("subagentRunId", STRING), must("message", STRING), may("code", STRING)]);

const TAG: &[Field] = &[must("type", STRING)];

const OUTCOME: Kind = Kind::Union {
    tag: "type",
    members: &[
        (
            "success",
            Shape { parts: &[TAG, &[may("pendingToolCallIds", list(&STRING))]], closed: true },
        ),
        (
            "interrupt",
            Shape {
                parts: &[
                    TAG,
                    &[must(
                        "interrupts",
                        Kind::List { min: 1, max: usize::MAX, distinct: false, item: &INTERRUPT },
                    )],
                ],
                closed: true,
            },
        ),
        ("cancelled", Shape { parts: &[TAG], closed: true }),
    ],
};

const SUBAGENT_OUTCOME: Kind = Kind::Union {
    tag: "type",
    members: &[
        ("success", Shape { parts: &[TAG], closed: true }),
        ("suspended", Shape { parts: &[TAG, &[may("interruptIds", list(&STRING))]], closed: true }),
    ],
};

const INTERRUPT: Kind = Kind::Record(&Shape {
    parts: &[
        OWNER,
        &[
            must("id", STRING),
            must("reason", STRING),
            may("message", STRING),
            may("toolCallId", STRING),
            may("responseSchema", OPEN),
            may("expiresAt", STRING),
            may("metadata", OPEN),
        ],
    ],
    closed: true,
});

const USAGE: Kind = Kind::Record(&Shape {
    parts: &[&[
        may("provider", STRING),
        may("model", STRING),
        may("inputTokens", COUNT),
        may("outputTokens", COUNT),
        may("totalTokens", COUNT),
        may("reasoningTokens", COUNT),
        may("cachedInputTokens", COUNT),
        may("cacheWriteInputTokens", COUNT),
    ]],
    closed: true,
});

const POINTER: Kind = Kind::Format {
    looks: "a JSON Pointer",
    fits: is_pointer,
    pattern: "^(/([^~]|~[01])*)?$",
    format: "",
};

/// Patch operations are the only protocol objects that may carry members of one's own.
const PATCH: Kind = list(&Kind::Union {
    tag: "op",
    members: &[
        ("add", PATCH_VALUE),
        ("replace", PATCH_VALUE),
        ("test", PATCH_VALUE),
        ("remove", Shape { parts: &[&[must("path", POINTER)]], closed: false }),
        ("move", PATCH_FROM),
        ("copy", PATCH_FROM),
    ],
});
const PATCH_VALUE: Shape =
    Shape { parts: &[&[must("path", POINTER), must("value", Kind::Any)]], closed: false };
const PATCH_FROM: Shape =
    Shape { parts: &[&[must("path", POINTER), must("from", POINTER)]], closed: false };

const CONTENT: Kind = Kind::TextOr(&PART);

const PART: Kind = Kind::Union {
    tag: "type",
    members: &[
        (
            "text",
            Shape {
                parts: &[
                    TAG,
                    &[must("text", STRING), may("id", STRING), may("metadata", Kind::Some)],
                ],
                closed: true,
            },
        ),
        ("image", MEDIA),
        ("audio", MEDIA),
        ("video", MEDIA),
        ("document", MEDIA),
    ],
};
const MEDIA: Shape = Shape {
    parts: &[TAG, &[must("source", SOURCE), may("id", STRING), may("metadata", Kind::Some)]],
    closed: true,
};
const SOURCE: Kind = Kind::Union {
    tag: "type",
    members: &[
        (
            "data",
            Shape {
                parts: &[TAG, &[must("value", STRING), must("mimeType", STRING)]],
                closed: true,
            },
        ),
        (
            "url",
            Shape {
                parts: &[TAG, &[must("value", STRING), may("mimeType", STRING)]],
                closed: true,
            },
        ),
        (
            "file",
            Shape {
                parts: &[
                    TAG,
                    &[must("value", STRING), may("provider", STRING), may("mimeType", STRING)],
                ],
                closed: true,
            },
        ),
    ],
};

const MESSAGE_BASE: &[Field] = &[
    must("role", STRING),
    must("id", STRING),
    may("subagentRunId", STRING),
    may("metadata", OPEN),
];
const NAMED: &[Field] = &[may("name", STRING)];
const ENCRYPTED: &[Field] = &[may("encryptedValue", STRING), may("encryptedValueType", STRING)];

const MESSAGE: Kind = Kind::Union {
    tag: "role",
    members: &[
        ("developer", PLAIN_MESSAGE),
        ("system", PLAIN_MESSAGE),
        (
            "assistant",
            Shape {
                parts: &[
                    MESSAGE_BASE,
                    NAMED,
                    ENCRYPTED,
                    &[may("content", STRING), may("toolCalls", list(&TOOL_CALL))],
                ],
                closed: true,
            },
        ),
        (
            "user",
            Shape {
                parts: &[MESSAGE_BASE, NAMED, ENCRYPTED, &[must("content", CONTENT)]],
                closed: true,
            },
        ),
        (
            "tool",
            Shape {
                parts: &[
                    MESSAGE_BASE,
                    ENCRYPTED,
                    &[must("content", CONTENT), must("toolCallId", STRING), may("error", STRING)],
                ],
                closed: true,
            },
        ),
        (
            "activity",
            Shape {
                parts: &[MESSAGE_BASE, &[must("activityType", STRING), must("content", OPEN)]],
                closed: true,
            },
        ),
        (
            "reasoning",
            Shape { parts: &[MESSAGE_BASE, ENCRYPTED, &[must("content", STRING)]], closed: true },
        ),
    ],
};
const PLAIN_MESSAGE: Shape =
    Shape { parts: &[MESSAGE_BASE, NAMED, ENCRYPTED, &[must("content", STRING)]], closed: true };

const TOOL_CALL: Kind = Kind::Record(&Shape {
    parts: &[
        ENCRYPTED,
        &[
            must("id", STRING),
            must("type", Kind::Word(&["function"])),
            must(
                "function",
                Kind::Record(&Shape {
                    parts: &[&[must("name", STRING), must("arguments", STRING)]],
                    closed: true,
                }),
            ),
            may("metadata", OPEN),
        ],
    ],
    closed: true,
});

const RUN_INPUT: Shape = Shape {
    parts: &[&[
        must("threadId", STRING),
        must("runId", STRING),
        must("messages", list(&MESSAGE)),
        may("protocolVersion", STRING),
        may("parentRunId", STRING),
        may("state", Kind::Any),
        may(
            "tools",
            list(&Kind::Record(&Shape {
                parts: &[&[
                    must("name", STRING),
                    must("description", STRING),
                    may("parameters", Kind::Some),
                    may("metadata", OPEN),
                ]],
                closed: true,
            })),
        ),
        may(
            "context",
            list(&Kind::Record(&Shape {
                parts: &[&[must("description", STRING), must("value", STRING)]],
                closed: true,
            })),
        ),
        may("forwardedProps", Kind::Some),
        may(
            "resume",
            list(&Kind::Record(&Shape {
                parts: &[&[
                    must("interruptId", STRING),
                    must("status", Kind::Word(&["resolved", "cancelled"])),
                    may("payload", Kind::Some),
                    may("metadata", OPEN),
                ]],
                closed: true,
            })),
        ),
    ]],
    closed: true,
};

fn is_pointer(text: &str) -> bool {
    let mut tildes = text.split('~');
    let whole = tildes.next().is_some_and(|first| first.is_empty() || first.starts_with('/'));
    whole
        && tildes.all(|rest| rest.starts_with(['0', '1']))
        && (text.is_empty() || text.starts_with('/'))
}
