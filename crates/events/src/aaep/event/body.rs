//! What each of the twelve core types adds to the envelope and the summaries.

use serde_json::{Map, Number, Value};

use super::fields::{
    CALL_ID, COUNT, ERROR_CODE, LABEL, LANGUAGE, MAYBE_EMPTY, MEDIA_TYPE, MILLISECONDS, OUTPUT_ID,
    REASON_WORD, SECONDS, SHORT, STEP, TEXT, TOKEN, TOOL, URI, set,
};
use crate::check::shape::{Kind, NAME};
use crate::limits::AAEP_TERSE_CHARS;
use crate::record::{part, record, words};

const STATE: Kind = Kind::Text { min: 1, max: 64 };
const RISK: Kind = Kind::Word(RiskLevel::WORDS);

part! {
    /// A session begins: the first event of each.
    pub strict SessionStarted {
        /// How long it is expected to take.
        may expected_duration_ms: u64 = MILLISECONDS,
        /// Who asked: `user:`, `system:` or `agent:` and a name.
        may requested_by: String = LABEL,
        /// What was asked, without secrets.
        may request_text: String = MAYBE_EMPTY,
        /// The tools that the agent can use.
        may tools_available: Vec<String> = set(0, 256, &LABEL),
    }

    /// A session did what it should: its last event.
    pub strict SessionCompleted {
        /// How long it took.
        may duration_ms: u64 = MILLISECONDS,
        /// How many tools were used.
        may tool_invocations_count: u64 = COUNT,
        /// What came out of it.
        may output_summary: String = MAYBE_EMPTY,
        /// Where the result is.
        may result_uri: String = URI,
    }

    /// A session failed: its last event, and critical.
    pub strict SessionErrored {
        /// What kind of failure it is.
        must error_category: ErrorCategory = Kind::Word(ErrorCategory::WORDS),
        /// The failure's code.
        may error_code: String = ERROR_CODE,
        /// Where more is said about it.
        may error_uri: String = URI,
        /// Whether another try could succeed.
        may recoverable: bool = Kind::Bool,
        /// What a person can do about it.
        may remediation_hint: String = SHORT,
    }

    /// A session was stopped: its last event.
    pub strict SessionCancelled {
        /// Who stopped it.
        must cancelled_by: CancelledBy = Kind::Word(CancelledBy::WORDS),
        /// Why, in one word.
        may cancellation_reason: String = REASON_WORD,
        /// What there is so far.
        may partial_result: String = MAYBE_EMPTY,
    }

    /// The agent does something else now.
    pub strict StateChanged {
        /// What it did until now; `idle` at the beginning.
        must from_state: String = STATE,
        /// What it does from now on.
        must to_state: String = STATE,
        /// How long that is expected to take.
        may expected_duration_ms: u64 = MILLISECONDS,
    }

    /// How far the agent is.
    pub strict ProgressUpdated {
        /// How far, in at least one way.
        must progress: Progress = Kind::Record(&Progress::SHAPE),
        /// How long it will still take.
        may eta_ms: u64 = MILLISECONDS,
    }

    /// A tool is about to run.
    pub strict ToolInvoked {
        /// The tool's name.
        must tool: String = TOOL,
        /// What the tool does, whatever it is called with.
        may description: String = SHORT,
        /// What it is called with, in words and without secrets.
        may args_summary: String = MAYBE_EMPTY,
        /// How long it is expected to take.
        may expected_duration_ms: u64 = MILLISECONDS,
        /// How much harm it could do; low where it is not said.
        may risk_level: RiskLevel = RISK,
        /// Whether it cannot be undone.
        may irreversible: bool = Kind::Bool,
        /// Joins the call to its end.
        may tool_call_id: String = CALL_ID,
    }

    /// A tool came to its end.
    pub strict ToolCompleted {
        /// The tool's name, as when it was invoked.
        must tool: String = TOOL,
        /// How it ended.
        must status: ToolStatus = Kind::Word(ToolStatus::WORDS),
        /// Joins the end to its call.
        may tool_call_id: String = CALL_ID,
        /// How long it took.
        may duration_ms: u64 = MILLISECONDS,
        /// What went wrong.
        may error_message: String = SHORT,
    }

    /// A piece of the agent's answer.
    pub strict OutputStreaming {
        /// The piece; may be empty at the end.
        must chunk: String = MAYBE_EMPTY,
        /// How many characters came before it.
        must position: u64 = COUNT,
        /// Whether it is the last piece.
        must complete: bool = Kind::Bool,
        /// What ends with this piece, and so how well it can be heard alone.
        may coalesce_hint: Boundary = Kind::Word(Boundary::WORDS),
        /// Which answer it belongs to, where there are several.
        may output_id: String = OUTPUT_ID,
        /// The media type of the answer; plain text where it is not said.
        may content_type: String = MEDIA_TYPE,
        /// The language of this piece, if it is another.
        may language: String = LANGUAGE,
    }

    /// The agent waits for a yes or no, and does nothing of it before; critical.
    pub strict AwaitingConfirmation {
        /// What will be done.
        must action: String = TEXT,
        /// What happens if it is done.
        must consequence: String = TEXT,
        /// What the reply has to carry; opaque.
        must reply_token: String = TOKEN,
        /// How long the agent waits.
        must timeout_seconds: u64 = SECONDS,
        /// What counts when nobody answers.
        must default_decision: Decision = Kind::Word(Decision::WORDS),
        /// How much harm it could do.
        may risk_level: RiskLevel = RISK,
        /// Whether it cannot be undone.
        may irreversible: bool = Kind::Bool,
        /// How well it can be undone.
        may reversibility: Reversibility = Kind::Word(Reversibility::WORDS),
        /// Which answers are taken; accept and reject where it is not said.
        may allowed_replies: Vec<String> = set(1, 32, &NAME),
        /// What else helps to decide.
        may extra_context: Map<String, Value> = Kind::Object,
    }

    /// The agent waits for an answer in words; critical.
    pub strict AwaitingClarification {
        /// What is asked.
        must question: String = TEXT,
        /// What the reply has to carry; opaque.
        must reply_token: String = TOKEN,
        /// How long the agent waits.
        must timeout_seconds: u64 = SECONDS,
        /// Which kinds of answers are taken.
        may accepted_response_kinds: Vec<ResponseKind> = set(1, 4, &Kind::Word(ResponseKind::WORDS)),
        /// What can be chosen from.
        may choices: Vec<Choice> = set(2, 32, &Kind::Record(&Choice::SHAPE)),
        /// Why it is asked.
        may context: String = SHORT,
        /// What counts when nobody answers.
        may default_response: String = Kind::Text { min: 0, max: AAEP_TERSE_CHARS },
    }

    /// The agent hands over; critical.
    pub strict HandoffRequested {
        /// Why.
        must reason: String = TEXT,
        /// To whom.
        must target_kind: TargetKind = Kind::Word(TargetKind::WORDS),
        /// Where they are reached.
        may target_uri: String = URI,
        /// What they need to know.
        may packaged_context: Map<String, Value> = Kind::Object,
        /// How much it matters to the business.
        may urgency_for_handoff: RiskLevel = RISK,
    }
}

record! {
    /// How far the agent is, in at least one way.
    #[derive(Default)]
    pub strict Progress {
        /// In percent.
        may percent: Number = Kind::Number { min: 0.0, max: 100.0 },
        /// The step it is at, from 1.
        may step: u64 = STEP,
        /// How many steps there are.
        may total_steps: u64 = STEP,
        /// In words.
        may description: String = SHORT,
    }

    /// One of several answers.
    pub strict Choice {
        /// What the reply says.
        must value: String = LABEL,
        /// What people hear or read.
        must label: String = Kind::Text { min: 1, max: 1024 },
    }
}

words! {
    /// How much harm an action could do.
    pub enum RiskLevel {
        /// Little.
        Low = "low",
        /// Some.
        Medium = "medium",
        /// Much.
        High = "high",
    }

    /// What kind of failure ended a session.
    pub enum ErrorCategory {
        /// It may be gone at the next try.
        Transient = "transient",
        /// It will not go away by itself.
        Permanent = "permanent",
        /// A person has to do something first.
        RequiresUser = "requires_user",
        /// Nobody knows.
        Unknown = "unknown",
    }

    /// Who stopped a session.
    pub enum CancelledBy {
        /// A person.
        User = "user",
        /// The agent.
        Producer = "producer",
        /// A clock.
        Timeout = "timeout",
        /// What the agent runs on.
        System = "system",
    }

    /// How a tool ended.
    pub enum ToolStatus {
        /// It did what it should.
        Success = "success",
        /// It failed.
        Error = "error",
        /// Nobody waits for it any longer.
        Timeout = "timeout",
    }

    /// Where text can be cut to be heard.
    pub enum Boundary {
        /// Anywhere.
        None = "none",
        /// Behind a word.
        Word = "word",
        /// Behind a sentence.
        Sentence = "sentence",
        /// Behind a paragraph.
        Paragraph = "paragraph",
        /// At the end of all.
        Completion = "completion",
    }

    /// A yes or no.
    pub enum Decision {
        /// Yes.
        Accept = "accept",
        /// No.
        Reject = "reject",
    }

    /// How well an action can be undone.
    pub enum Reversibility {
        /// Easily.
        Reversible = "reversible",
        /// With effort.
        WithEffort = "reversible_with_effort",
        /// Not at all.
        Irreversible = "irreversible",
    }

    /// Which kind of answer is taken.
    pub enum ResponseKind {
        /// Any text.
        FreeText = "freetext",
        /// Yes or no.
        YesNo = "yes_no",
        /// One of the choices.
        MultipleChoice = "multiple_choice",
        /// A number.
        Numeric = "numeric",
    }

    /// To whom an agent hands over.
    pub enum TargetKind {
        /// A person.
        Human = "human",
        /// Another agent.
        SpecialistAgent = "specialist_agent",
        /// Whoever takes it next.
        EscalationQueue = "escalation_queue",
    }
}
