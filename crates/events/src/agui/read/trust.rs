//! What Banister's own writer added to an event, put back. Only a reader that trusts its stream comes here.
//!
//! Nothing here accepts an ask: consent is read from answers alone.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::activity::{Action, ActionKind, Ask, Ending, Gate, Status, What};
use crate::check::shape::text;
use crate::event::Protocol;
use crate::json::View;

/// The key of `metadata` that is Banister's.
pub(super) const KEY: &str = "banister";

type Own = Map<String, Value>;

pub(super) fn word(own: &Own, name: &str) -> Option<String> {
    own.get(name)?.as_str().map(str::to_owned)
}

fn read<T: for<'de> Deserialize<'de>>(own: &Own, name: &str) -> Option<T> {
    own.get(name).and_then(|value| T::deserialize(value).ok())
}

/// What an action is beyond its name and arguments.
pub(super) fn requested(own: &Own, action: &mut Action, gate: &mut Option<Gate>) {
    if let Some(tool) = word(own, "tool") {
        action.original_name = Some(std::mem::replace(&mut action.tool, tool));
    }
    if let Some(kind) = read::<ActionKind>(own, "kind") {
        action.kind = kind;
    }
    action.server = word(own, "server");
    action.rationale = word(own, "rationale");
    *gate = read(own, "gate");
}

/// How an action ended; nothing where a refusal is told that follows from what was told before.
pub(super) fn ended(own: &Own, natural: What) -> Option<What> {
    let What::ActionEnded { id, tool, status, output, error, duration_ms } = natural else {
        return Some(natural);
    };
    if own.get("refused").is_some() && own.get("status").is_none() {
        let by = word(own, "by")?;
        let action = Action::unseen(&id, &tool);
        return Some(What::ActionDenied { action, by, reason: word(own, "reason") });
    }
    let status = read::<Status>(own, "status").unwrap_or(status);
    let error = word(own, "error").or(error);
    let output = output.filter(|_| error.is_none());
    let duration_ms = read(own, "duration_ms").or(duration_ms);
    Some(What::ActionEnded { id, tool, status, output, error, duration_ms })
}

pub(super) fn ending(own: &Own, natural: Ending) -> Ending {
    match natural {
        Ending::Failed { message, code, .. } => match word(own, "cancelled_by") {
            Some(by) => Ending::Cancelled { by, reason: word(own, "reason") },
            None => Ending::Failed { message, code, category: word(own, "category") },
        },
        Ending::Cancelled { by, .. } => Ending::Cancelled {
            by: word(own, "cancelled_by").unwrap_or(by),
            reason: word(own, "reason"),
        },
        other => other,
    }
}

pub(super) fn turn_ended(own: &Own, natural: What) -> What {
    match natural {
        What::TurnEnded { ending: end, result, usage, .. } => What::TurnEnded {
            ending: ending(own, end),
            summary: word(own, "summary"),
            result,
            usage,
        },
        other => other,
    }
}

/// What a card of Banister's stands for.
pub(super) fn card(own: &Own) -> Option<What> {
    let what: What = read(own, "what")?;
    let shown = matches!(
        what,
        What::Progressed { .. }
            | What::Planned { .. }
            | What::Notified { .. }
            | What::Erred { .. }
            | What::HandedOff { .. }
            | What::AskOpened { .. }
            | What::AskClosed { .. }
    );
    shown.then_some(what)
}

/// What an ask says beyond its interrupt.
pub(super) fn ask(own: &Own, ask: &mut Ask) {
    if let Some(digest) = word(own, "digest") {
        ask.digest = digest;
    }
    if let Some(full) = read::<Ask>(own, "ask") {
        ask.kind = full.kind;
        ask.gate = full.gate;
        ask.words = full.words;
        ask.defaults_to_accept = full.defaults_to_accept;
        ask.schema = full.schema;
        ask.action = full.action.or(ask.action.take());
    }
}

/// What an event of Banister's own stands for.
pub(super) fn custom(event: View<'_>) -> Option<What> {
    let name = text(event, "name")?;
    let name = name.strip_prefix("banister.")?;
    let told =
        ["session_started", "session_ended", "state_changed", "compacted", "workspace_changed"];
    let Value::Object(mut fields) = event.get("value")?.to_value() else { return None };
    fields.insert("what".into(), name.into());
    if !told.contains(&name) {
        return None;
    }
    serde_json::from_value(Value::Object(fields)).ok()
}

/// The event of another protocol that was passed on.
pub(super) fn wrapped(event: View<'_>) -> Option<What> {
    let protocol = Protocol::parse(&text(event, "source")?)?;
    let own = event.get("metadata")?.get(KEY)?;
    Some(What::Raw {
        protocol,
        kind: text(own, "kind")?.into_owned(),
        text: text(own, "text").map(std::borrow::Cow::into_owned),
        event: event.get("event")?.to_value(),
    })
}
