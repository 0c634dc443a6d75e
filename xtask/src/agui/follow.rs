//! `agui follow`: each line is a stream, `{"name", "messages"?, "state"?, "events"}`, and each is answered by one line:
//! `{"name", "verdict", "rule", "at", "message", "messages", "state"}`.
//!
//! Events are handed on as they stand in the line, to the byte.

use std::io::BufRead;

use banister_events::agui::follow::Follower;
use banister_events::agui::reduce::Reducer;
use banister_events::json::{Parser, View};
use serde_json::{Value, json};

pub(super) fn run() -> anyhow::Result<()> {
    for line in std::io::stdin().lock().lines() {
        crate::say(&answer(&line?).to_string());
    }
    Ok(())
}

fn answer(line: &str) -> Value {
    let mut parser = Parser::default();
    let document = match parser.parse(line.as_bytes()) {
        Ok(document) => document,
        Err(error) => {
            // What is no JSON here may be for others: whoever asked has to know which stream it was.
            let name = line.strip_prefix("{\"name\":\"").and_then(|rest| rest.split('"').next());
            return json!({ "name": name, "verdict": "reject", "message": error.to_string() });
        }
    };
    let stream = document.root();
    let value = |name: &str| stream.get(name).map(View::to_value);
    let mut messages = Vec::new();
    if let Some(Value::Array(given)) = value("messages") {
        messages = given;
    }
    let state = value("state").unwrap_or_else(|| json!({}));
    let mut follower = Follower::new(Reducer::with(messages, state));
    let mut refused = None;
    for (at, event) in stream.get("events").into_iter().flat_map(View::items).enumerate() {
        if let Err(violation) = follower.event(event.raw().as_bytes()) {
            refused = Some((at, violation.finding));
            break;
        }
    }
    let (at, finding) = refused.unzip();
    json!({
        "name": value("name"),
        "verdict": if finding.is_some() { "reject" } else { "resolve" },
        "rule": finding.as_ref().map(|finding| finding.rule.code),
        "at": at,
        "message": finding.as_ref().map(|finding| format!("{}: {}", finding.pointer, finding.message)),
        "messages": follower.reducer().messages_value(),
        "state": follower.reducer().state(),
    })
}
