//! What leaves: an input that every agent takes, or an error before anything was sent.

use banister_events::agui::event::PROTOCOL_VERSION;
use banister_events::agui::follow::is_fatal;
use banister_events::agui::input::RunInput;
use banister_events::agui::message::Message;
use banister_events::agui::repair::Repairer;
use banister_events::check;
use banister_events::event::Protocol;
use bytes::Bytes;
use serde_json::{Value, json};

use crate::error::{Error, Result};

/// The body of a request.
pub(super) fn body(input: &RunInput) -> Result<Bytes> {
    let mut input = input.clone();
    // For people to see, never for the agent.
    input.messages.retain(|message| !matches!(message, Message::Activity(_)));
    input.state = input.state.filter(|state| !state.is_null());
    // An input has one place among events, and with it the rules that are there for it.
    let restated = json!({
        "type": "RUN_STARTED", "threadId": "", "runId": "", "protocolVersion": PROTOCOL_VERSION,
        "input": input,
    });
    let bytes = restated.to_string();
    let mut findings = check::alone(Protocol::Agui, bytes.as_bytes());
    if let Some(place) = findings.iter().position(is_fatal) {
        let mut finding = findings.swap_remove(place);
        if let Some(pointer) = finding.pointer.strip_prefix("/input") {
            finding.pointer = pointer.to_owned();
        }
        return Err(Error::Input(finding));
    }
    if findings.is_empty() {
        return Ok(serde_json::to_vec(&input)?.into());
    }
    // What an agent would have to take out is taken out here.
    let kept = Repairer::default().message(bytes.as_bytes());
    let kept: Value = serde_json::from_slice(kept.first().map_or(&[], Vec::as_slice))?;
    Ok(serde_json::to_vec(kept.get("input").unwrap_or(&Value::Null))?.into())
}
