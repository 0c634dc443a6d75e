//! What leaves: an input that every agent takes, or an error before anything was sent.

use banister_events::agui::input::{RunInput, enforced};
use banister_events::agui::message::Message;
use bytes::Bytes;

use crate::error::{Error, Result};

/// The body of a request.
pub(super) fn body(input: &RunInput) -> Result<Bytes> {
    let mut input = input.clone();
    // For people to see, never for the agent.
    input.messages.retain(|message| !matches!(message, Message::Activity(_)));
    input.state = input.state.filter(|state| !state.is_null());
    // What an agent would have to take out is taken out here.
    let (left, _) = enforced(&serde_json::to_value(&input)?).map_err(Error::Input)?;
    Ok(serde_json::to_vec(&left)?.into())
}
