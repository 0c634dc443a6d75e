//! What Banister's own writer put into its extension, and what of it is taken back.
//!
//! Nothing here becomes an answer: a yes is only what the protocol itself says.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Moment;
use crate::activity::What;
use crate::aep::response::OWN;
use crate::json::View;

/// The words that go out as `x.<name>`.
const NAMES: &[&str] = &[
    "state_changed",
    "progressed",
    "step_started",
    "step_ended",
    "said",
    "state_set",
    "state_patched",
    "messages_set",
    "card_shown",
    "card_patched",
    "workspace_changed",
    "used",
    "raw",
];

/// The words that go out as a notification, with more than its text.
const NOTICES: &[&str] = &["progressed", "handed_off"];

/// Where ids stand that may have been replaced.
const IDS: &[&str] = &[
    "agent.slug",
    "session.id",
    "session.conversation_id",
    "session.turn_id",
    "session.root_conversation_id",
    "session.parent.conversation_id",
    "session.parent.spawning_action_id",
    "action.id",
];

/// What is in the extension, trusted or not.
pub(super) fn own(event: View<'_>) -> Option<View<'_>> {
    event.get("extensions")?.get(OWN).filter(|own| own.is_object())
}

/// The event with the ids that it had before they were made to fit, where they were.
pub(super) fn ids_restored(event: View<'_>) -> Option<Value> {
    let ids = own(event)?.get("ids").filter(|ids| ids.is_object())?;
    let mut restored = event.to_value();
    for (name, id) in ids.entries().filter(|(_, id)| id.is_string()) {
        let name = name.as_str().unwrap_or_default();
        if IDS.contains(&&*name)
            && let Some(slot) = restored.pointer_mut(&format!("/{}", name.replace('.', "/")))
        {
            *slot = id.to_value();
        }
    }
    Some(restored)
}

/// What an `x.<name>` event says.
pub(super) fn what(name: &str, moment: Moment<'_>) -> Option<What> {
    let name = name.strip_prefix("x.").filter(|name| NAMES.contains(name))?;
    let fields: Map<String, Value> = moment.trusted("what")?;
    tagged(name, fields)
}

/// What a notification was before it became one.
pub(super) fn was(moment: Moment<'_>) -> Option<What> {
    let fields: Map<String, Value> = moment.trusted("was")?;
    let name = fields.get("what")?.as_str().filter(|name| NOTICES.contains(name))?.to_owned();
    tagged(&name, fields)
}

fn tagged(name: &str, mut fields: Map<String, Value>) -> Option<What> {
    fields.insert("what".into(), json!(name));
    What::deserialize(Value::Object(fields)).ok()
}
