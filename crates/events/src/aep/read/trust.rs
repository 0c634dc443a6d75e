//! What Banister's own writer put into its extension, and what of it is taken back.
//!
//! Nothing here becomes an answer: a yes is only what the protocol itself says.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Moment;
use crate::activity::What;
use crate::aep::response::OWN;

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
pub(super) fn own(event: &Value) -> Option<&Map<String, Value>> {
    event.get("extensions")?.get(OWN)?.as_object()
}

/// The event with the ids that it had before they were made to fit.
pub(super) fn ids_restored(event: &Value) -> Cow<'_, Value> {
    let Some(ids) = own(event).and_then(|own| own.get("ids")?.as_object()) else {
        return Cow::Borrowed(event);
    };
    let mut restored = event.clone();
    for (place, id) in
        ids.iter().filter(|(place, id)| IDS.contains(&place.as_str()) && id.is_string())
    {
        if let Some(slot) = restored.pointer_mut(&format!("/{}", place.replace('.', "/"))) {
            *slot = id.clone();
        }
    }
    Cow::Owned(restored)
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
