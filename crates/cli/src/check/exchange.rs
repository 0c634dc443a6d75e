//! The answer of an AG-UI agent to one input: which run was asked for, and whether it has ended.

use banister_events::agui::check;
use banister_events::finding::Finding;
use banister_events::json;
use serde_json::Value;

/// How far the answer is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Exchange {
    thread: String,
    run: String,
    begun: bool,
    ended: bool,
}

impl Exchange {
    /// The answer to this `RunAgentInput`.
    pub(crate) fn new(input: &[u8]) -> Self {
        let input: Value = serde_json::from_slice(input).unwrap_or_default();
        let text = |name| input.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self { thread: text("threadId"), run: text("runId"), ..Self::default() }
    }

    /// Takes note of an event; says what is wrong with it as an answer.
    pub(crate) fn see(&mut self, event: &[u8]) -> Option<Finding> {
        let mut parser = json::Parser::default();
        let document = parser.parse(event).ok()?;
        match &*document.root().get("type")?.as_str()? {
            "RUN_STARTED" => {
                self.ended = false;
                let first = !std::mem::replace(&mut self.begun, true);
                first.then(|| check::asked(document.root(), &self.thread, &self.run))?
            }
            "RUN_FINISHED" | "RUN_ERROR" => {
                self.ended = true;
                None
            }
            _ => None,
        }
    }

    /// Whether no run is open, and one was.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_run_has_the_ids_of_the_input() {
        let mut exchange = Exchange::new(br#"{"threadId":"t","runId":"r","messages":[]}"#);
        let start = |run| format!(r#"{{"type":"RUN_STARTED","threadId":"t","runId":"{run}"}}"#);
        assert_eq!(exchange.clone().see(start("s").as_bytes()).unwrap().pointer, "/runId");
        assert_eq!(exchange.see(start("r").as_bytes()), None);
        assert_eq!(exchange.see(br#"{"type":"RUN_FINISHED"}"#), None);
        assert!(exchange.has_ended());
        assert_eq!(exchange.see(start("s").as_bytes()), None);
        assert!(!exchange.has_ended());
    }
}
