//! What a writer put under `extensions.banister`, for readers that trust it.

use std::borrow::Cow;

use serde::de::DeserializeOwned;

use crate::activity::{Action, ActionKind, Decision, Gate, What};
use crate::json::View;

/// The facts of one event; none for a reader that trusts nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Carried<'a>(Option<View<'a>>);

impl<'a> Carried<'a> {
    pub(super) fn of(event: View<'a>, trusts: bool) -> Self {
        if !trusts {
            return Self(None);
        }
        Self(event.at("/extensions/banister").filter(|facts| facts.is_object()))
    }

    pub(super) fn get(self, name: &str) -> Option<View<'a>> {
        self.0?.get(name)
    }

    pub(super) fn text(self, name: &str) -> Option<String> {
        self.get(name)?.as_str().map(Cow::into_owned)
    }

    pub(super) fn data<T: DeserializeOwned>(self, name: &str) -> Option<T> {
        serde_json::from_value(self.get(name)?.to_value()).ok()
    }

    pub(super) fn is(self, name: &str) -> bool {
        self.get(name).and_then(View::as_bool) == Some(true)
    }

    /// The action that travelled along.
    pub(super) fn action(self) -> Option<Action> {
        let action = self.get("action")?;
        let owned = |name: &str| action.get(name)?.as_str().map(Cow::into_owned);
        let kind = action.get("kind").and_then(|kind| serde_json::from_value(kind.to_value()).ok());
        Some(Action {
            id: owned("id")?,
            kind: kind.unwrap_or(ActionKind::Tool),
            tool: owned("tool")?,
            server: owned("server"),
            original_name: owned("original_name"),
            input: action.get("input").map(View::to_value),
            rationale: owned("rationale"),
        })
    }
}

/// An action that was refused, and by whom.
pub(super) fn refusal(facts: Carried<'_>) -> Option<What> {
    let action = facts.action()?;
    if let Some(denied) = facts.get("denied") {
        return Some(What::ActionDenied {
            action,
            by: denied.owned("/by").unwrap_or_else(|| "agent".to_owned()),
            reason: denied.owned("/reason"),
        });
    }
    let gate: Gate = facts.data("gate")?;
    (gate.decision == Decision::Deny).then_some(What::ActionRequested { action, gate: Some(gate) })
}

/// What was told in a sentence. Nothing that asks, answers or runs anything comes this way.
pub(super) fn sentence(facts: Carried<'_>) -> Option<What> {
    let what: What = facts.data("what")?;
    matches!(
        what,
        What::StepStarted { .. }
            | What::SubagentStarted { .. }
            | What::SubagentEnded { .. }
            | What::Compacted { .. }
            | What::WorkspaceChanged { .. }
            | What::Notified { .. }
            | What::Erred { .. }
    )
    .then_some(what)
}
