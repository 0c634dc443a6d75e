//! AEP's names, fields and words, as data.
//!
//! The tables say what events and hook responses carry; `check` compares messages with them. What one field
//! demands of another, and of other messages, is code in `check` and `sequence`.

use crate::check::shape::{Field, Kind, NAME, STRING, Shape, may, must};

/// The version written into `aep_version`.
pub const VERSION: &str = "0.1";

macro_rules! types {
    ($($variant:ident = $name:literal $content:expr, $doc:literal;)*) => {
        /// A canonical event type.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Type {
            $(#[doc = $doc] $variant,)*
        }

        impl Type {
            /// All canonical types, in the order documents list them.
            pub const ALL: [Self; 21] = [$(Self::$variant),*];

            /// The name on the wire.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The type with this canonical name.
            ///
            /// ```
            /// use banister_events::aep::event::Type;
            /// assert_eq!(Type::parse("agent.stop"), Some(Type::AgentStop));
            /// assert_eq!(Type::parse("agent.end"), None);
            /// assert_eq!(Type::from_alias("agent.end"), Some(Type::AgentStop));
            /// ```
            pub fn parse(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }

            /// The kinds of content of which it has to carry one.
            pub fn content(self) -> &'static [&'static str] {
                match self { $(Self::$variant => &$content,)* }
            }
        }
    };
}

types! {
    SessionStart = "session.start" [], "A session was opened.";
    SessionEnd = "session.end" [], "A session was closed.";
    AgentStart = "agent.start" [], "The agent begins to work on a request.";
    AgentStop = "agent.stop" [], "The agent is done with a request.";
    AgentError = "agent.error" [], "The agent failed.";
    PromptSubmitted = "prompt.submitted" ["prompt"], "A person asked for something.";
    ModelThought = "model.thought" ["thought"], "The model thought aloud.";
    ModelResponse = "model.response" ["response"], "The model answered.";
    ModelDelta = "model.delta" ["response", "thought"], "A piece of an answer or a thought.";
    ModelPlan = "model.plan" ["plan"], "The model made a plan.";
    ActionRequested = "action.requested" [], "The agent wants to act.";
    ActionCompleted = "action.completed" [], "An action did what it should.";
    ActionFailed = "action.failed" [], "An action failed.";
    ActionDenied = "action.denied" [], "An action was refused.";
    SubagentStart = "subagent.start" [], "A subagent begins.";
    SubagentStop = "subagent.stop" [], "A subagent ends.";
    ContextCompacted = "context.compacted" [], "The context was compacted.";
    WorkspaceChanged = "workspace.changed" [], "The workspace changed.";
    NotificationSent = "notification.sent" ["notification"], "A person was notified.";
    QuestionAsked = "question.asked" ["question"], "A person was asked.";
    QuestionAnswered = "question.answered" ["answer"], "A person answered.";
}

impl Type {
    /// The canonical type behind a spelling that other producers use. Read, never written.
    pub fn from_alias(name: &str) -> Option<Self> {
        Some(match name {
            "session.started" => Self::SessionStart,
            "session.ended" => Self::SessionEnd,
            "agent.started" => Self::AgentStart,
            "agent.end" | "agent.stopped" => Self::AgentStop,
            "error" | "error.occurred" | "session.error" | "agent.errored" => Self::AgentError,
            "model.message" | "response.completed" | "response.sent" => Self::ModelResponse,
            "response.delta" | "model.response.delta" | "model.stream" => Self::ModelDelta,
            "plan.proposed" | "plan.created" | "plan.updated" | "model.planned" => Self::ModelPlan,
            "subagent.end" | "subagent.stopped" => Self::SubagentStop,
            "workspace.updated" | "workspace.mutated" | "file.changed" => Self::WorkspaceChanged,
            _ => return Self::parse(name),
        })
    }

    /// Whether it is about one action.
    pub fn is_action(self) -> bool {
        self == Self::ActionRequested || self.ends_action()
    }

    /// Whether it ends an action.
    pub fn ends_action(self) -> bool {
        matches!(self, Self::ActionCompleted | Self::ActionFailed | Self::ActionDenied)
    }
}

/// What a hook response may tell the agent to do.
pub const BEHAVIORS: &[&str] =
    &["allow", "deny", "ask", "defer", "block", "continue", "stop", "abstain"];

/// Whether a message is a hook response: those travel among events and have no type.
pub fn is_response(message: &serde_json::Map<String, serde_json::Value>) -> bool {
    message.contains_key("control") && !message.contains_key("type")
}

const fn list(item: &'static Kind) -> Kind {
    Kind::List { min: 0, max: usize::MAX, distinct: false, item }
}

const SIZE: Kind = Kind::Number { min: 0.0, max: f64::MAX };
const COUNT: Kind = Kind::Integer { min: 0, max: i64::MAX };
const TIME: Kind = Kind::Format {
    looks: "an RFC 3339 time with offset",
    fits: |text| crate::check::time::rfc3339(text).is_some(),
};

macro_rules! record {
    ($name:ident: $($field:expr),* $(,)?) => {
        const $name: Kind = Kind::Record(&Shape { parts: &[&[$($field),*]], closed: true });
    };
}

/// What events and responses have in common.
const CORE: &[Field] = &[must("aep_version", NAME), must("id", NAME), must("time", TIME)];

pub(super) const EVENT: Shape = Shape {
    parts: &[
        CORE,
        &[
            must("type", NAME),
            must("agent", AGENT),
            may("hook", STRING),
            may("session", SESSION),
            may("user", USER),
            may("workspace", WORKSPACE),
            may("model", MODEL),
            may("action", ACTION),
            may("tool", TOOL),
            may("server", SERVER),
            may("skill", SKILL),
            may("content", list(&CONTENT)),
            may("attachments", list(&ATTACHMENT)),
            may("decision", DECISION),
            may("metrics", Kind::Each(&Kind::Number { min: f64::MIN, max: f64::MAX })),
            may("lifecycle", LIFECYCLE),
            may("extensions", Kind::Object),
        ],
    ],
    closed: true,
};

pub(super) const RESPONSE: Shape = Shape {
    parts: &[
        CORE,
        &[
            must("request_event_id", NAME),
            must("control", CONTROL),
            may("action_id", NAME),
            may("decision", DECISION),
            may("extensions", Kind::Object),
        ],
    ],
    closed: true,
};

record!(CONTROL:
    must("behavior", Kind::Word(BEHAVIORS)),
    may("message", STRING),
    may("updated_input", Kind::Any),
    may("additional_context", STRING),
);
record!(AGENT:
    must("slug", NAME),
    may("display_name", STRING),
    may("version", STRING),
    may("instance_id", STRING),
    may("surface", STRING),
);
record!(SESSION:
    may("id", NAME),
    may("conversation_id", NAME),
    may("turn_id", NAME),
    may("permission_mode", STRING),
    may("root_conversation_id", NAME),
    may("parent", PARENT),
);
record!(PARENT:
    may("conversation_id", NAME),
    may("relation", Kind::Word(&["subagent", "fork", "resume", "continuation"])),
    may("spawning_action_id", NAME),
);
record!(USER: may("id", STRING), may("login", STRING), may("display_name", STRING), may("email", STRING));
record!(WORKSPACE: may("cwd", STRING), may("project_path", STRING), may("roots", list(&STRING)));
record!(MODEL: may("id", STRING), may("display_name", STRING), may("provider", STRING), may("effort", STRING));
record!(ACTION:
    must("type", Kind::Word(&["tool_call", "skill_use", "subagent_spawn", "other"])),
    must("id", NAME),
    may("status", Kind::Word(&["success", "failure", "timeout", "cancelled"])),
    may("rationale", STRING),
    may("input", Kind::Any),
    may("output", Kind::Any),
    may("error", ERROR),
);
record!(ERROR: may("code", STRING), may("message", STRING));
record!(TOOL:
    // "custom" is what the overview page calls "other".
    must("type", Kind::Word(&["native", "mcp", "connector", "extension", "other", "custom"])),
    must("name", NAME),
    may("id", STRING),
    may("display_name", STRING),
    may("description", STRING),
    may("version", STRING),
    may("icon", ICON),
    may("schema", Kind::Any),
    may("original_name", STRING),
);
record!(ICON: must("src", STRING), may("mime_type", STRING));
record!(SERVER:
    may("id", STRING),
    may("name", STRING),
    may("title", STRING),
    may("description", STRING),
    may("version", STRING),
    may("icon", ICON),
    may("transport", STRING),
    may("command", STRING),
    may("url", STRING),
    may("repository_url", STRING),
    may("website_url", STRING),
);
record!(SKILL:
    must("name", NAME),
    may("id", STRING),
    may("source", Kind::Word(&["user", "project", "builtin", "marketplace"])),
    may("version", STRING),
    may("path", STRING),
    may("description", STRING),
);
record!(CONTENT:
    must("type", Kind::Word(&["prompt", "thought", "response", "plan", "notification", "question", "answer"])),
    must("text", STRING),
    may("style", STRING),
    may("truncated", Kind::Bool),
    may("original_length", COUNT),
);
record!(ATTACHMENT:
    must("type", Kind::Word(&["image", "video", "audio", "file"])),
    may("mime_type", STRING),
    may("name", STRING),
    may("url", STRING),
    may("thumbnail_url", STRING),
    may("data_uri", STRING),
    may("thumbnail_data_uri", STRING),
    may("width", SIZE),
    may("height", SIZE),
    may("duration_ms", SIZE),
    may("size_bytes", COUNT),
);
record!(DECISION:
    must("outcome", Kind::Word(&["approved", "denied", "info"])),
    may("by", STRING),
    may("reason", STRING),
    may("feedback", STRING),
    may("policy_id", STRING),
    may("time", TIME),
    may("response_time_ms", SIZE),
);
record!(LIFECYCLE: may("source", STRING), may("reason", STRING), may("trigger", STRING));
