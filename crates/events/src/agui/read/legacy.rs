//! Types that 1.0 retired go on as their successors, under ids that are made up by counting.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Reader, Sink, raw};
use crate::agui::event::{RETIRED, Type};
use crate::json::{Parser, View};

/// The ids that were made up for what is open.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Retired {
    span: Option<String>,
    message: Option<String>,
    made_up: u64,
}

impl Retired {
    fn id(&mut self, name: &str) -> String {
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

impl Reader {
    /// An event of a type that is not among the 31.
    pub(super) fn unknown(&mut self, name: &str, event: View<'_>, sink: &mut Sink<'_>) {
        let retired = RETIRED.iter().find(|(old, _)| *old == name);
        let successor = retired.and_then(|(_, new)| Type::parse(new));
        let (Some(kind), Value::Object(mut fields)) = (successor, event.to_value()) else {
            if !name.is_empty() {
                self.speak(sink);
                self.tell(None, raw(name, event.to_value()), sink);
            }
            return;
        };
        fields.insert("type".into(), kind.name().into());
        fields.insert("messageId".into(), self.retired.id(name).into());
        let bytes = Value::Object(fields).to_string();
        if let Ok(document) = Parser::default().parse_text(&bytes) {
            self.expand(kind, document.root(), sink);
        }
    }
}
