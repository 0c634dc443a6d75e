//! Types that 1.0 retired go on as their successors.

use serde_json::Value;

use super::{Reader, Sink, raw};
use crate::agui::event::{RETIRED, Type};
use crate::json::{Nodes, View};

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
        let (text, nodes) = Nodes::compose(&Value::Object(fields));
        self.expand(kind, nodes.document(&text).root(), sink);
    }
}
