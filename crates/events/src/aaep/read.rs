//! AAEP events → activities.
//!
//! Total: what AAEP says and the common vocabulary has no word for becomes [`What::Other`].

use std::sync::Arc;

use serde_json::Value;

use crate::activity::{
    Action, Activity, Ask, AskKind, Context, Decision, Ending, Gate, Origin, Outcome, Risk, Role,
    Status, What,
};

/// Reads one stream's events.
#[derive(Debug, Clone, Default)]
pub struct Reader {
    /// Ask id and action of each wait that a later change of state resolves.
    waiting: Vec<(String, Option<Action>)>,
}

impl Reader {
    /// The activities of one event.
    pub fn read(&mut self, event: &Value, origin: &Origin) -> Vec<Activity> {
        let context = Arc::new(context(event));
        self.activities(event, origin)
            .into_iter()
            .map(|what| Activity { origin: origin.clone(), context: context.clone(), what })
            .collect()
    }

    fn activities(&mut self, event: &Value, origin: &Origin) -> Vec<What> {
        let Some(kind) = text(event, "type") else {
            return Vec::new();
        };
        let core = kind
            .strip_prefix("aaep:agent.")
            .or_else(|| kind.strip_prefix("https://aaep-protocol.org/types/agent."));
        match core {
            Some("session.started") => {
                let request = text(event, "request_text").or_else(|| text(event, "summary_normal"));
                vec![What::TurnStarted { request, summary: None }]
            }
            Some("session.completed") => vec![ended_turn(Ending::Completed)],
            Some("session.errored") => {
                let message = text(event, "summary_normal").unwrap_or_default();
                vec![ended_turn(Ending::failed(message))]
            }
            Some("session.cancelled") => {
                let by = text(event, "cancelled_by").unwrap_or_else(|| "system".to_owned());
                vec![ended_turn(Ending::Cancelled { by, reason: None })]
            }
            Some("state.changed") => self.left_waiting(event),
            Some("progress.updated") => vec![What::Progressed {
                step: None,
                total: None,
                eta_ms: None,
                percent: event.pointer("/progress/percent").and_then(Value::as_f64),
                description: event
                    .pointer("/progress/description")
                    .and_then(Value::as_str)
                    .map(str::to_owned),
            }],
            Some("tool.invoked") => {
                vec![What::ActionRequested { action: action(event), gate: None }]
            }
            Some("tool.completed") => vec![ended(event)],
            Some("output.streaming") => vec![What::Said {
                role: Role::Assistant,
                message: text(event, "output_id")
                    .or_else(|| text(event, "session_id"))
                    .unwrap_or_default(),
                text: text(event, "chunk").unwrap_or_default(),
                last: event.get("complete").and_then(Value::as_bool).unwrap_or(false),
            }],
            Some("awaiting.confirmation") => vec![self.asked(event, origin, AskKind::Confirmation)],
            Some("awaiting.clarification") => {
                let question = text(event, "question").unwrap_or_default();
                vec![self.asked(event, origin, AskKind::question(question))]
            }
            Some("handoff.requested") => {
                vec![What::HandedOff {
                    reason: text(event, "reason").unwrap_or_default(),
                    target: None,
                    uri: None,
                }]
            }
            _ => vec![What::Raw {
                protocol: crate::event::Protocol::Aaep,
                kind,
                text: text(event, "summary_normal"),
                event: event.clone(),
            }],
        }
    }

    fn asked(&mut self, event: &Value, origin: &Origin, kind: AskKind) -> What {
        let token = text(event, "reply_token").unwrap_or_default();
        let seconds = event.get("timeout_seconds").and_then(Value::as_i64).unwrap_or(60);
        let action = (kind == AskKind::Confirmation).then(|| Action {
            input: text(event, "action").map(Value::String),
            ..Action::unseen(&token, "action")
        });
        let gate = action.as_ref().map(|_| Gate {
            decision: Decision::Ask,
            rule: "agent".to_owned(),
            reason: text(event, "consequence").unwrap_or_default(),
            risk: match text(event, "risk_level").as_deref() {
                Some("high") => Risk::High,
                Some("low") => Risk::Low,
                _ => Risk::Medium,
            },
            irreversible: match text(event, "reversibility").as_deref() {
                Some("irreversible") => Some(true),
                Some("reversible" | "reversible_with_effort") => Some(false),
                _ => event.get("irreversible").and_then(Value::as_bool),
            },
            opaque: None,
            safer: None,
        });
        let id = crate::id::derive("ask_", &[&origin.session, &token]);
        self.waiting.push((id.clone(), action.clone()));
        let deadline = jiff::SignedDuration::from_secs(seconds.clamp(1, 86_400));
        What::AskOpened {
            ask: Box::new(Ask {
                action,
                gate,
                deadline: origin.time.saturating_add(deadline).ok(),
                ..Ask::new(id, token, kind)
            }),
        }
    }

    /// A change away from `awaiting_input` ends every wait; only `calling_tool` says that it was accepted.
    fn left_waiting(&mut self, event: &Value) -> Vec<What> {
        if text(event, "from_state").as_deref() != Some("awaiting_input") {
            return Vec::new();
        }
        let accepted = text(event, "to_state").as_deref() == Some("calling_tool");
        std::mem::take(&mut self.waiting)
            .into_iter()
            .map(|(id, action)| What::AskClosed {
                id,
                action,
                outcome: if accepted { Outcome::Accepted } else { Outcome::Rejected },
                by: "user".to_owned(),
                message: text(event, "summary_normal"),
                response: None,
                updated_input: None,
            })
            .collect()
    }
}

fn ended_turn(ending: Ending) -> What {
    What::TurnEnded { ending, summary: None, result: None, usage: Vec::new() }
}

fn context(event: &Value) -> Context {
    let producer = |key: &str| event.get("producer").and_then(|producer| text(producer, key));
    Context {
        agent: producer("agent_id").unwrap_or_else(|| "unknown".to_owned()),
        agent_name: producer("agent_name"),
        agent_version: producer("agent_version"),
        model: producer("model"),
        turn: text(event, "session_id"),
        ..Context::default()
    }
}

fn action(event: &Value) -> Action {
    let tool = text(event, "tool").unwrap_or_else(|| "unknown".to_owned());
    let id = text(event, "tool_call_id").unwrap_or_else(|| tool.clone());
    Action {
        input: text(event, "args_summary").map(Value::String),
        rationale: text(event, "summary_normal"),
        ..Action::unseen(&id, &tool)
    }
}

fn ended(event: &Value) -> What {
    let action = action(event);
    What::ActionEnded {
        id: action.id,
        tool: action.tool,
        status: match text(event, "status").as_deref() {
            Some("success") => Status::Success,
            Some("timeout") => Status::Timeout,
            _ => Status::Failure,
        },
        output: None,
        error: text(event, "error_message"),
        duration_ms: event.get("duration_ms").and_then(Value::as_u64),
    }
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).map(str::to_owned)
}
