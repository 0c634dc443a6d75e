//! Tools: what was called, and how it ended.

use std::borrow::Cow;

use serde_json::Value;

use super::carried::Carried;
use super::{Reader, keep, owned};
use crate::activity::{Action, Decision, Gate, Risk, Status, What};
use crate::check::shape::text;
use crate::json::View;

impl Reader {
    pub(super) fn invoked(&mut self, event: View<'_>, facts: Carried<'_>) -> Option<What> {
        let told = told(event);
        let accepted = self.take_accepted(event, facts);
        // The request stood before the question; this says that it goes ahead.
        let requested = facts.is("requested") && accepted.is_some();
        let action = match (facts.action(), accepted) {
            (Some(_), Some(accepted)) if facts.get("confirmed").is_some() => accepted,
            (Some(mut action), _) => {
                if action.input.is_none() {
                    action.input.clone_from(&told.input);
                }
                action
            }
            (None, accepted) => {
                let gate = claimed(event).filter(|gate| accepted.is_none() || !gate.is_grave());
                let gate = gate.or_else(|| ran_anyway(facts));
                return Some(What::ActionRequested { action: told, gate });
            }
        };
        keep(&mut self.calls, &told.id, (action.id.clone(), action.tool.clone()));
        if requested {
            return None;
        }
        let gate = facts.data("gate").or_else(|| claimed(event));
        Some(What::ActionRequested { action, gate })
    }

    pub(super) fn completed(&mut self, event: View<'_>, facts: Carried<'_>) -> What {
        let Action { id, tool, .. } = told(event);
        let (id, tool) = self.calls.remove(&id).unwrap_or((id, tool));
        let silent = facts.get("error").is_some_and(View::is_null);
        What::ActionEnded {
            id,
            tool,
            status: match text(event, "status").as_deref() {
                Some("success") => Status::Success,
                Some("timeout") => Status::Timeout,
                _ if facts.text("status").as_deref() == Some("cancelled") => Status::Cancelled,
                _ => Status::Failure,
            },
            output: facts.get("output").map(View::to_value),
            error: owned(event, "error_message").filter(|_| !silent),
            duration_ms: event.get("duration_ms").and_then(View::as_u64),
        }
    }
}

/// The action as the event itself tells it.
fn told(event: View<'_>) -> Action {
    let tool = text(event, "tool").unwrap_or(Cow::Borrowed("unknown"));
    let id = text(event, "tool_call_id").unwrap_or_else(|| tool.clone());
    Action {
        input: owned(event, "args_summary").filter(|args| !args.is_empty()).map(Value::String),
        rationale: owned(event, "summary_normal"),
        ..Action::unseen(&id, &tool)
    }
}

/// What the event claims about an action's risk, if it claims anything.
fn claimed(event: View<'_>) -> Option<Gate> {
    let risk = text(event, "risk_level");
    let irreversible = event.get("irreversible").and_then(View::as_bool);
    if risk.is_none() && irreversible.is_none() {
        return None;
    }
    Some(gate(Decision::Allow, risk.as_deref(), irreversible))
}

/// What ran without anybody being asked, or although it was refused.
fn ran_anyway(facts: Carried<'_>) -> Option<Gate> {
    if !facts.is("unconfirmed") {
        return None;
    }
    let decision = if facts.is("refused") { Decision::Deny } else { Decision::Allow };
    let irreversible = facts.get("irreversible").and_then(View::as_bool);
    Some(gate(decision, facts.text("risk").as_deref(), irreversible))
}

/// What an agent says about its own action.
pub(super) fn gate(decision: Decision, risk: Option<&str>, irreversible: Option<bool>) -> Gate {
    Gate {
        decision,
        rule: "agent".to_owned(),
        reason: String::new(),
        risk: match risk {
            Some("high") => Risk::High,
            Some("medium") => Risk::Medium,
            _ => Risk::Low,
        },
        irreversible,
        opaque: None,
        safer: None,
    }
}
