//! The ids under which events of retired types go on: made up by counting, as there is no chance here.

use serde::{Deserialize, Serialize};

/// The ids that were made up for the span and the message that are open.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Retired {
    span: Option<String>,
    message: Option<String>,
    made_up: u64,
}

impl Retired {
    /// The id under which an event of a retired type goes on.
    pub(super) fn id(&mut self, name: &str) -> String {
        let open = if name.contains("_TEXT_MESSAGE_") { &mut self.message } else { &mut self.span };
        let continued = match name {
            _ if name.ends_with("_START") => None,
            _ if name.ends_with("_END") => open.take(),
            _ => open.clone(),
        };
        continued.unwrap_or_else(|| {
            self.made_up += 1;
            let id = format!("thinking-{}", self.made_up);
            if name.ends_with("_START") {
                *open = Some(id.clone());
            }
            id
        })
    }
}
