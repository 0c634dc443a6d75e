//! The fields of every core type: which are required, what their values look like.

use crate::check::shape::{Field, Kind, NAME, Shape, may, must};
use crate::limits::{AAEP_TERSE_CHARS, AAEP_TEXT_CHARS};

/// The fields whose text a person hears or reads.
pub(in crate::aaep) const HUMAN_TEXT: &[&str] = &[
    "summary_terse",
    "summary_normal",
    "summary_detailed",
    "request_text",
    "output_summary",
    "remediation_hint",
    "partial_result",
    "description",
    "args_summary",
    "error_message",
    "chunk",
    "action",
    "consequence",
    "question",
    "context",
    "reason",
];

const VERBOSITIES: &[&str] = &["terse", "normal", "detailed"];
pub(in crate::aaep) const URGENCIES: &[&str] = &["background", "normal", "critical"];
const RISKS: &[&str] = &["low", "medium", "high"];

const TEXT: Kind = Kind::Text { min: 1, max: AAEP_TEXT_CHARS };
const MAYBE_EMPTY: Kind = Kind::Text { min: 0, max: AAEP_TEXT_CHARS };
const SHORT: Kind = Kind::Text { min: 1, max: AAEP_TERSE_CHARS };
const LABEL: Kind = Kind::Text { min: 1, max: 256 };
const MILLISECONDS: Kind = Kind::Integer { min: 0, max: 86_400_000 };
const COUNT: Kind = Kind::Integer { min: 0, max: i64::MAX };
const SECONDS: Kind = Kind::Integer { min: 1, max: 86_400 };
const LANGUAGE: Kind = Kind::Format { looks: "a BCP 47 language tag", fits: is_language };
const URI: Kind = Kind::Format { looks: "a URI", fits: is_uri };
const TOOL: Kind = Kind::Format {
    looks: "a tool name: a letter or _, then letters, digits, _ . -",
    fits: is_tool,
};
const CALL: Kind =
    Kind::Format { looks: "call_ and 1 to 64 letters and digits", fits: |id| is_id("call_", id) };
const OUTPUT: Kind =
    Kind::Format { looks: "out_ and 1 to 64 letters and digits", fits: |id| is_id("out_", id) };
const TOKEN: Kind =
    Kind::Format { looks: "rpl_ and 1 to 64 letters and digits", fits: |id| is_id("rpl_", id) };

/// Envelope fields, in the recommended order.
const ENVELOPE: &[Field] = &[
    must("@context", Kind::Any),
    may("aaep_version", Kind::Format { looks: "a version such as 1.0.0", fits: is_version }),
    must("type", NAME),
    must(
        "event_id",
        Kind::Format { looks: "evt_ and 1 to 64 letters and digits", fits: |id| is_id("evt_", id) },
    ),
    must(
        "session_id",
        Kind::Format {
            looks: "sess_ and 1 to 64 letters and digits",
            fits: |id| is_id("sess_", id),
        },
    ),
    may("sequence_number", COUNT),
    must(
        "timestamp",
        Kind::Format {
            looks: "an RFC 3339 time with 0, 3 or 6 digits of fraction",
            fits: is_timestamp,
        },
    ),
    must("producer", Kind::Record(&PRODUCER)),
    may("verbosity", Kind::Word(VERBOSITIES)),
    may("urgency", Kind::Word(URGENCIES)),
    may("localization_hints", Kind::Record(&LOCALIZATION)),
    may("correlation_id", Kind::Text { min: 0, max: usize::MAX }),
    may("extensions", Kind::Each(&Kind::Object)),
    may("summary_terse", SHORT),
    may("summary_detailed", TEXT),
];

/// On types where the normal summary is optional.
const SUMMARY: &[Field] = &[may("summary_normal", TEXT)];

const PRODUCER: Shape = Shape {
    parts: &[&[
        must("agent_id", NAME),
        may("agent_version", NAME),
        may("agent_name", NAME),
        may("model", NAME),
        may("manifest_uri", URI),
    ]],
    closed: true,
};

const LOCALIZATION: Shape = Shape {
    parts: &[&[
        may("primary_language", LANGUAGE),
        may("text_direction", Kind::Word(&["ltr", "rtl", "auto"])),
        may("available_languages", Kind::List { min: 0, max: 32, distinct: true, item: &LANGUAGE }),
        may("fallback_chain", Kind::List { min: 0, max: 16, distinct: false, item: &LANGUAGE }),
        may("script", Kind::Format { looks: "an ISO 15924 script such as Latn", fits: is_script }),
        may("calendar", NAME),
    ]],
    closed: true,
};

/// An event of somebody else's type: the envelope is AAEP's, the rest is theirs.
pub(in crate::aaep) const EXTENSION: Shape = Shape { parts: &[ENVELOPE, SUMMARY], closed: false };

pub(super) const SESSION_STARTED: Shape = Shape {
    parts: &[
        ENVELOPE,
        &[
            must("summary_normal", TEXT),
            may("expected_duration_ms", MILLISECONDS),
            may("requested_by", LABEL),
            may("request_text", MAYBE_EMPTY),
            may("tools_available", Kind::List { min: 0, max: 256, distinct: true, item: &LABEL }),
        ],
    ],
    closed: true,
};

pub(super) const SESSION_COMPLETED: Shape = Shape {
    parts: &[
        ENVELOPE,
        &[
            must("summary_normal", TEXT),
            may("duration_ms", MILLISECONDS),
            may("tool_invocations_count", COUNT),
            may("output_summary", MAYBE_EMPTY),
            may("result_uri", URI),
        ],
    ],
    closed: true,
};

pub(super) const SESSION_ERRORED: Shape = Shape {
    parts: &[
        ENVELOPE,
        &[
            must(
                "error_category",
                Kind::Word(&["transient", "permanent", "requires_user", "unknown"]),
            ),
            must("summary_normal", TEXT),
            may(
                "error_code",
                Kind::Format { looks: "a code such as RATE_LIMIT", fits: is_error_code },
            ),
            may("error_uri", URI),
            may("recoverable", Kind::Bool),
            may("remediation_hint", SHORT),
        ],
    ],
    closed: true,
};

pub(super) const SESSION_CANCELLED: Shape = Shape {
    parts: &[
        ENVELOPE,
        &[
            must("cancelled_by", Kind::Word(&["user", "producer", "timeout", "system"])),
            must("summary_normal", TEXT),
            may(
                "cancellation_reason",
                Kind::Format { looks: "a word such as user_stop", fits: is_reason_word },
            ),
            may("partial_result", MAYBE_EMPTY),
        ],
    ],
    closed: true,
};

const STATE: Kind = Kind::Text { min: 1, max: 64 };

pub(super) const STATE_CHANGED: Shape = Shape {
    parts: &[
        ENVELOPE,
        SUMMARY,
        &[
            must("from_state", STATE),
            must("to_state", STATE),
            may("expected_duration_ms", MILLISECONDS),
        ],
    ],
    closed: true,
};

const STEP: Kind = Kind::Integer { min: 1, max: i64::MAX };

pub(super) const PROGRESS_UPDATED: Shape = Shape {
    parts: &[
        ENVELOPE,
        SUMMARY,
        &[
            must(
                "progress",
                Kind::Record(&Shape {
                    parts: &[&[
                        may("percent", Kind::Number { min: 0.0, max: 100.0 }),
                        may("step", STEP),
                        may("total_steps", STEP),
                        may("description", SHORT),
                    ]],
                    closed: true,
                }),
            ),
            may("eta_ms", MILLISECONDS),
        ],
    ],
    closed: true,
};

pub(super) const TOOL_INVOKED: Shape = Shape {
    parts: &[
        ENVELOPE,
        &[
            must("tool", TOOL),
            must("summary_normal", TEXT),
            may("description", SHORT),
            may("args_summary", MAYBE_EMPTY),
            may("expected_duration_ms", MILLISECONDS),
            may("risk_level", Kind::Word(RISKS)),
            may("irreversible", Kind::Bool),
            may("tool_call_id", CALL),
        ],
    ],
    closed: true,
};

pub(super) const TOOL_COMPLETED: Shape = Shape {
    parts: &[
        ENVELOPE,
        SUMMARY,
        &[
            must("tool", TOOL),
            must("status", Kind::Word(&["success", "error", "timeout"])),
            may("tool_call_id", CALL),
            may("duration_ms", MILLISECONDS),
            may("error_message", SHORT),
        ],
    ],
    closed: true,
};

pub(super) const OUTPUT_STREAMING: Shape = Shape {
    parts: &[
        ENVELOPE,
        SUMMARY,
        &[
            must("chunk", MAYBE_EMPTY),
            must("position", COUNT),
            must("complete", Kind::Bool),
            may(
                "coalesce_hint",
                Kind::Word(&["none", "word", "sentence", "paragraph", "completion"]),
            ),
            may("output_id", OUTPUT),
            may(
                "content_type",
                Kind::Format { looks: "a media type without parameters", fits: is_media_type },
            ),
            may("language", LANGUAGE),
        ],
    ],
    closed: true,
};

pub(super) const AWAITING_CONFIRMATION: Shape = Shape {
    parts: &[
        ENVELOPE,
        SUMMARY,
        &[
            must("action", TEXT),
            must("consequence", TEXT),
            must("reply_token", TOKEN),
            must("timeout_seconds", SECONDS),
            must("default_decision", Kind::Word(&["accept", "reject"])),
            may("risk_level", Kind::Word(RISKS)),
            may("irreversible", Kind::Bool),
            may(
                "reversibility",
                Kind::Word(&["reversible", "reversible_with_effort", "irreversible"]),
            ),
            may("allowed_replies", Kind::List { min: 1, max: 32, distinct: true, item: &NAME }),
            may("extra_context", Kind::Object),
        ],
    ],
    closed: true,
};

pub(super) const AWAITING_CLARIFICATION: Shape = Shape {
    parts: &[
        ENVELOPE,
        SUMMARY,
        &[
            must("question", TEXT),
            must("reply_token", TOKEN),
            must("timeout_seconds", SECONDS),
            may(
                "accepted_response_kinds",
                Kind::List {
                    min: 1,
                    max: 4,
                    distinct: true,
                    item: &Kind::Word(&["freetext", "yes_no", "multiple_choice", "numeric"]),
                },
            ),
            may(
                "choices",
                Kind::List { min: 2, max: 32, distinct: true, item: &Kind::Record(&CHOICE) },
            ),
            may("context", SHORT),
            may("default_response", Kind::Text { min: 0, max: AAEP_TERSE_CHARS }),
        ],
    ],
    closed: true,
};

const CHOICE: Shape = Shape {
    parts: &[&[must("value", LABEL), must("label", Kind::Text { min: 1, max: 1024 })]],
    closed: true,
};

pub(super) const HANDOFF_REQUESTED: Shape = Shape {
    parts: &[
        ENVELOPE,
        SUMMARY,
        &[
            must("reason", TEXT),
            must("target_kind", Kind::Word(&["human", "specialist_agent", "escalation_queue"])),
            may("target_uri", URI),
            may("packaged_context", Kind::Object),
            may("urgency_for_handoff", Kind::Word(RISKS)),
        ],
    ],
    closed: true,
};

/// Whether an id is the prefix and 1 to 64 letters and digits, and nothing after them.
pub(in crate::aaep) fn is_id(prefix: &str, id: &str) -> bool {
    id.strip_prefix(prefix).is_some_and(|rest| {
        (1..=64).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

fn is_timestamp(text: &str) -> bool {
    crate::check::time::rfc3339(text)
        .is_some_and(|moment| matches!(moment.digits, 0 | 3 | 6) && !text.contains(['t', 'z']))
}

fn is_version(text: &str) -> bool {
    let (numbers, label) = match text.split_once('-') {
        Some((numbers, label)) => (numbers, Some(label)),
        None => (text, None),
    };
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    numbers.split('.').count() == 3
        && numbers.split('.').all(is_number)
        && label.is_none_or(|label| {
            !label.is_empty()
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
        })
}

pub(in crate::aaep) fn is_language(tag: &str) -> bool {
    let mut parts = tag.split('-');
    let sized = |part: &str| (1..=8).contains(&part.len());
    parts
        .next()
        .is_some_and(|first| sized(first) && first.bytes().all(|byte| byte.is_ascii_alphabetic()))
        && parts.all(|part| sized(part) && part.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

fn is_script(text: &str) -> bool {
    text.len() == 4
        && text.starts_with(|first: char| first.is_ascii_uppercase())
        && text.bytes().skip(1).all(|byte| byte.is_ascii_lowercase())
}

fn is_tool(text: &str) -> bool {
    text.len() <= 256
        && text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

fn is_error_code(text: &str) -> bool {
    (2..=64).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_uppercase())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

fn is_reason_word(text: &str) -> bool {
    (2..=64).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

fn is_media_type(text: &str) -> bool {
    let is_part = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphabetic())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".+_-".contains(&byte))
    };
    text.split_once('/').is_some_and(|(left, right)| is_part(left) && is_part(right))
}

fn is_uri(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, rest)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte))
            && !rest.is_empty()
            && !text.contains(|letter: char| letter.is_whitespace() || letter.is_control())
    })
}
