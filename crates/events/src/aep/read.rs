//! AEP events → activities.
//!
//! Total: an event of a type that is not known becomes [`What::Other`], an event that is not even an object becomes
//! nothing. The reader remembers only whether a turn is open.

use std::sync::Arc;

use serde_json::Value;

use crate::activity::{
    Action, ActionKind, Activity, Context, Ending, Gate, Origin, Role, Status, What,
};

/// Reads one session's events.
#[derive(Debug, Clone, Default)]
pub struct Reader {
    turn_open: bool,
}

impl Reader {
    /// The activities of one event. `gate` is what the gate recorded with it, if it went through the gate.
    pub fn read(&mut self, event: &Value, gate: Option<&Gate>, origin: &Origin) -> Vec<Activity> {
        let context = Arc::new(context(event));
        self.activities(event, gate)
            .into_iter()
            .map(|what| Activity { origin: origin.clone(), context: context.clone(), what })
            .collect()
    }

    fn activities(&mut self, event: &Value, gate: Option<&Gate>) -> Vec<What> {
        let Some(kind) = text(event, "/type") else {
            return Vec::new();
        };
        // Work that was not asked for where we could see it is a turn all the same, and ends like one.
        let works = kind.starts_with("action.") || kind.starts_with("model.");
        if works && !self.turn_open {
            self.turn_open = true;
            let mut whole = vec![What::TurnStarted { request: None, summary: None }];
            whole.extend(self.activities(event, gate));
            return whole;
        }
        match kind.as_str() {
            "session.start" => {
                vec![What::SessionStarted { source: text(event, "/lifecycle/source") }]
            }
            "session.end" => {
                self.turn_open = false;
                vec![What::SessionEnded { reason: text(event, "/lifecycle/reason") }]
            }
            "prompt.submitted" => {
                self.turn_open = true;
                vec![What::TurnStarted { request: content(event), summary: None }]
            }
            "agent.start" if !self.turn_open => {
                self.turn_open = true;
                vec![What::TurnStarted { request: None, summary: None }]
            }
            "agent.stop" if self.turn_open => {
                self.turn_open = false;
                vec![ended_turn(Ending::Completed)]
            }
            "agent.error" if self.turn_open => {
                self.turn_open = false;
                let message = content(event)
                    .or_else(|| text(event, "/lifecycle/reason"))
                    .unwrap_or_else(|| "unknown".to_owned());
                vec![ended_turn(Ending::failed(message))]
            }
            "agent.start" | "agent.stop" => Vec::new(),
            "model.response" => said(event, true),
            "model.delta" => said(event, false),
            "model.thought" => content(event)
                .map(|text| What::Thought { message: String::new(), text, last: true })
                .into_iter()
                .collect(),
            "action.requested" => action(event)
                .map(|action| What::ActionRequested { action, gate: gate.cloned() })
                .into_iter()
                .collect(),
            "action.completed" | "action.failed" => ended(event, &kind).into_iter().collect(),
            "action.denied" => action(event)
                .map(|action| What::ActionDenied {
                    action,
                    by: text(event, "/decision/by").unwrap_or_else(|| "agent".to_owned()),
                    reason: text(event, "/decision/reason"),
                })
                .into_iter()
                .collect(),
            "notification.sent" => {
                content(event).map(|text| What::Notified { text }).into_iter().collect()
            }
            // The question is also a tool call; the ask is opened by the gate, with a token and a deadline.
            _ => vec![What::Raw {
                protocol: crate::event::Protocol::Aep,
                kind,
                text: content(event),
                event: event.clone(),
            }],
        }
    }
}

/// Who and where, from the envelope.
pub fn context(event: &Value) -> Context {
    Context {
        agent: text(event, "/agent/slug").unwrap_or_else(|| "unknown".to_owned()),
        agent_name: text(event, "/agent/display_name"),
        agent_version: text(event, "/agent/version"),
        session: text(event, "/session/id"),
        turn: text(event, "/session/turn_id"),
        hook: text(event, "/hook"),
        permission_mode: text(event, "/session/permission_mode"),
        cwd: text(event, "/workspace/cwd"),
        model: text(event, "/model/id"),
        subagent: None,
    }
}

fn ended_turn(ending: Ending) -> What {
    What::TurnEnded { ending, summary: None, result: None, usage: Vec::new() }
}

/// The action of an `action.*` event, if it has one.
pub fn action(event: &Value) -> Option<Action> {
    let id = text(event, "/action/id")?;
    let mcp = text(event, "/tool/type").as_deref() == Some("mcp");
    let kind = match text(event, "/action/type").as_deref() {
        Some("tool_call") if mcp => ActionKind::Mcp,
        Some("tool_call") => ActionKind::Tool,
        Some("skill_use") => ActionKind::Skill,
        Some("subagent_spawn") => ActionKind::Subagent,
        _ => ActionKind::Other,
    };
    let tool = text(event, "/tool/name").or_else(|| text(event, "/skill/name"));
    Some(Action {
        id,
        kind,
        tool: tool.unwrap_or_else(|| "unknown".to_owned()),
        server: text(event, "/server/name"),
        original_name: text(event, "/tool/original_name"),
        input: event.pointer("/action/input").cloned(),
        rationale: text(event, "/action/rationale"),
    })
}

fn ended(event: &Value, kind: &str) -> Option<What> {
    let action = action(event)?;
    let status = match text(event, "/action/status").as_deref() {
        Some("timeout") => Status::Timeout,
        Some("cancelled") => Status::Cancelled,
        Some("success") => Status::Success,
        _ if kind == "action.completed" => Status::Success,
        _ => Status::Failure,
    };
    let duration = event.pointer("/metrics/duration_ms");
    Some(What::ActionEnded {
        id: action.id,
        tool: action.tool,
        status,
        output: event.pointer("/action/output").cloned(),
        error: text(event, "/action/error/message").or_else(|| text(event, "/action/error/code")),
        duration_ms: duration.and_then(|ms| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "the cast saturates, which is what an absurd duration deserves"
            )]
            ms.as_u64().or_else(|| ms.as_f64().map(|ms| ms.max(0.0) as u64))
        }),
    })
}

fn said(event: &Value, last: bool) -> Vec<What> {
    let Some(spoken) = content(event) else {
        return Vec::new();
    };
    // Pieces of one answer share its turn; a whole answer stands alone under its event's id.
    let message = match text(event, "/session/turn_id") {
        Some(turn) if !last => format!("{turn}.delta"),
        _ => text(event, "/id").unwrap_or_default(),
    };
    vec![What::Said { message, role: Role::Assistant, text: spoken, last }]
}

fn content(event: &Value) -> Option<String> {
    let entries = event.get("content")?.as_array()?;
    let texts: Vec<&str> =
        entries.iter().filter_map(|entry| entry.get("text")).filter_map(Value::as_str).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

fn text(event: &Value, pointer: &str) -> Option<String> {
    event.pointer(pointer).and_then(Value::as_str).map(str::to_owned)
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
