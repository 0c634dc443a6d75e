//! How a run or a subagent ended, where that is not said in the words there are for it.
//!
//! A client takes an outcome that it does not know for none at all, and none for success. Here it is a failure.

use serde_json::{Map, Value, json};

use super::Repairer;
use super::event::{Event, short};
use crate::agui::check::{MALFORMED, NO_INTERRUPT, UNKNOWN_MEMBER};
use crate::agui::event::Type;

impl Repairer {
    /// Puts the outcome of an end into the form there is for it; an outcome that is not known becomes an error.
    pub(super) fn mend_outcome(&mut self, event: &mut Event) {
        let words: &[&str] = match event.kind {
            Type::RunFinished => &["success", "interrupt", "cancelled"],
            Type::SubagentFinished => &["success", "suspended"],
            _ => return,
        };
        let known =
            |word: &str| words.iter().copied().find(|known| known.eq_ignore_ascii_case(word));
        let said = event.fields.get("outcome").cloned().unwrap_or_default();
        let apart = event.fields.get("interrupts").filter(|_| event.kind == Type::RunFinished);
        let apart = apart.filter(|list| {
            list.is_object() || list.as_array().is_some_and(|list| !list.is_empty())
        });
        let apart = apart.cloned();
        let (word, mut outcome) = match &said {
            Value::Null if apart.is_none() => return,
            Value::Null => (Some("interrupt"), Map::new()),
            Value::String(word) => (known(word), Map::new()),
            Value::Object(fields) => {
                let word = match fields.get("type") {
                    Some(word) => word.as_str().and_then(known),
                    None => fields.get("interrupts").and(known("interrupt")),
                };
                (word, fields.clone())
            }
            _ => (None, Map::new()),
        };
        let Some(word) = word else {
            return self.fail(event);
        };
        outcome.insert("type".into(), word.into());
        if let (true, Some(list)) =
            (word == "interrupt" && !outcome.contains_key("interrupts"), apart)
        {
            event.remove("interrupts");
            let list = if list.is_array() { list } else { json!([list]) };
            outcome.insert("interrupts".into(), list);
            let what = format!("moved interrupts of {} into its outcome", event.kind.name());
            self.tell(&NO_INTERRUPT, what);
        }
        let outcome = Value::Object(outcome);
        if outcome != said {
            if !said.is_null() {
                let (said, now) = (short(&said), short(&outcome));
                self.tell(
                    &UNKNOWN_MEMBER,
                    format!("replaced outcome {said} of {} by {now}", event.kind.name()),
                );
            }
            event.set("outcome", outcome);
        }
    }

    /// The end becomes an error, as its outcome says nothing that is known.
    pub(super) fn fail(&mut self, event: &mut Event) {
        event.touch();
        let before = std::mem::take(&mut event.fields);
        let outcome = before.get("outcome").cloned().unwrap_or_default();
        let (kind, kept) = match event.kind {
            Type::SubagentFinished => (Type::SubagentError, "subagentRunId"),
            _ => (Type::RunError, "usage"),
        };
        let said =
            ["message", "error", "reason"].into_iter().find_map(|name| outcome.get(name)?.as_str());
        let message = match said {
            Some(said) => said.to_owned(),
            None => format!("it ended with an outcome that is not known: {}", short(&outcome)),
        };
        let what = format!(
            "replaced {} by {}, as its outcome is {}",
            event.kind.name(),
            kind.name(),
            short(&outcome)
        );
        self.tell(&MALFORMED, what);
        event.kind = kind;
        event.fields =
            Event::made(kind, json!({ "message": message, "code": "unknown_outcome" })).fields;
        for name in ["timestamp", "metadata", "rawEvent", kept] {
            if let Some(value) = before.get(name) {
                event.fields.insert(name.into(), value.clone());
            }
        }
        event.invented = true;
    }
}
