//! Which fields of an event are shown, in which order, in which style, under which label: data, no code.

use serde_json::Value;

use super::style::Style;
use super::style::Style::{Badge, Duration, Image, IndentedJson, Path, PlainText, Timestamp, Url};
use crate::locale::Locale;

/// One field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Where it is: names joined by dots.
    pub path: &'static str,
    /// The style it is shown in.
    pub style: Style,
    /// The key of its name in [`crate::locale`]; without one it goes by its path.
    label: Option<&'static str>,
    /// Whether null is a value there. Elsewhere it is the same as absent.
    null_counts: bool,
}

impl Field {
    pub(super) fn of<'a>(&self, event: &'a Value) -> Option<&'a Value> {
        let found = self.path.split('.').try_fold(event, |value, name| value.get(name))?;
        (self.null_counts || !found.is_null()).then_some(found)
    }

    pub(super) fn label(&self, locale: &Locale) -> String {
        self.label.map_or_else(|| self.path.to_owned(), |key| locale.say(key, &[]))
    }
}

/// One part of the body.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    Field(Field),
    Content,
    Attachments,
    Metrics,
}

const fn field(path: &'static str, style: Style) -> Part {
    Part::Field(Field { path, style, label: None, null_counts: false })
}

const fn named(path: &'static str, style: Style, label: &'static str) -> Part {
    Part::Field(Field { path, style, label: Some(label), null_counts: false })
}

const fn payload(path: &'static str, label: &'static str) -> Part {
    Part::Field(Field { path, style: IndentedJson, label: Some(label), null_counts: true })
}

/// What a body consists of, most telling first.
pub(super) const BODY: &[Part] = &[
    named("control.behavior", Badge, "aep.behavior"),
    named("control.message", PlainText, "aep.message"),
    payload("control.updated_input", "aep.updated_input"),
    named("control.additional_context", PlainText, "aep.additional_context"),
    named("action.status", Badge, "aep.status"),
    named("action.rationale", PlainText, "aep.rationale"),
    payload("action.input", "aep.input"),
    payload("action.output", "aep.output"),
    named("action.error", IndentedJson, "aep.error"),
    Part::Content,
    Part::Attachments,
    named("decision.outcome", Badge, "aep.decision"),
    named("decision.by", PlainText, "aep.decided_by"),
    named("decision.reason", PlainText, "aep.reason"),
    named("decision.feedback", PlainText, "aep.feedback"),
    named("decision.policy_id", PlainText, "aep.policy"),
    named("decision.time", Timestamp, "aep.decided_at"),
    named("decision.response_time_ms", Duration, "aep.response_time"),
    named("lifecycle.source", PlainText, "aep.source"),
    named("lifecycle.reason", PlainText, "aep.reason"),
    named("lifecycle.trigger", PlainText, "aep.trigger"),
    Part::Metrics,
    named("workspace.cwd", Path, "aep.folder"),
    named("workspace.project_path", Path, "aep.project"),
    field("workspace.roots", Path),
    field("agent.slug", PlainText),
    field("agent.version", PlainText),
    field("agent.instance_id", PlainText),
    field("agent.surface", PlainText),
    field("model.id", PlainText),
    field("model.display_name", PlainText),
    field("model.provider", PlainText),
    field("model.effort", PlainText),
    field("tool.type", Badge),
    field("tool.name", PlainText),
    field("tool.display_name", PlainText),
    field("tool.description", PlainText),
    field("tool.original_name", PlainText),
    field("tool.version", PlainText),
    field("tool.id", PlainText),
    field("tool.icon.src", Image),
    field("tool.icon.mime_type", PlainText),
    field("server.id", PlainText),
    field("server.name", PlainText),
    field("server.title", PlainText),
    field("server.description", PlainText),
    field("server.version", PlainText),
    field("server.transport", PlainText),
    field("server.command", PlainText),
    field("server.url", Url),
    field("server.repository_url", Url),
    field("server.website_url", Url),
    field("server.icon.src", Image),
    field("server.icon.mime_type", PlainText),
    field("skill.name", PlainText),
    field("skill.source", Badge),
    field("skill.description", PlainText),
    field("skill.version", PlainText),
    field("skill.path", Path),
    field("skill.id", PlainText),
    field("user.id", PlainText),
    field("user.login", PlainText),
    field("user.display_name", PlainText),
    field("user.email", PlainText),
    field("session.id", PlainText),
    field("session.conversation_id", PlainText),
    field("session.turn_id", PlainText),
    field("session.permission_mode", PlainText),
    field("session.root_conversation_id", PlainText),
    field("session.parent.conversation_id", PlainText),
    field("session.parent.relation", Badge),
    field("session.parent.spawning_action_id", PlainText),
    field("action.type", Badge),
    field("action.id", PlainText),
    named("type", Badge, "aep.type"),
    named("time", Timestamp, "aep.time"),
    field("hook", PlainText),
    field("id", PlainText),
    field("request_event_id", PlainText),
    field("action_id", PlainText),
    payload("tool.schema", "aep.schema"),
];

/// All fields that are shown, in order, with their styles.
///
/// ```
/// use banister_events::aep::show::{Style, fields};
/// assert!(fields::all().any(|field| field.path == "workspace.cwd" && field.style == Style::Path));
/// ```
pub fn all() -> impl Iterator<Item = Field> {
    BODY.iter().filter_map(|part| match part {
        Part::Field(field) => Some(*field),
        Part::Content | Part::Attachments | Part::Metrics => None,
    })
}

/// The style of content whose producer names none.
pub fn default_content_style(kind: &str) -> Style {
    match kind {
        "prompt" | "thought" | "response" | "plan" => Style::Markdown,
        _ => PlainText,
    }
}

/// The key of the name of a kind of content.
pub(super) fn content_label(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "prompt" => "aep.content_prompt",
        "thought" => "aep.content_thought",
        "response" => "aep.content_response",
        "plan" => "aep.content_plan",
        "notification" => "aep.content_notification",
        "question" => "aep.content_question",
        "answer" => "aep.content_answer",
        _ => return None,
    })
}
