//! `agui repair`: each line is a stream, `{"name", "events"}`, and each is answered by one line: the same, repaired.

use std::io::BufRead;

use banister_events::Message;
use banister_events::agui::repair::Repairer;
use banister_events::json::{Parser, View};
use serde_json::{Value, json};

pub(super) fn run() -> anyhow::Result<()> {
    for line in std::io::stdin().lock().lines() {
        crate::say(&answer(&line?)?.to_string());
    }
    Ok(())
}

fn answer(line: &str) -> anyhow::Result<Value> {
    let mut parser = Parser::default();
    let document = parser.parse(line.as_bytes())?;
    let stream = document.root();
    let mut repairer = Repairer::default();
    let events = stream.get("events").into_iter().flat_map(View::items);
    let mut out: Vec<Message> =
        events.flat_map(|event| repairer.bytes(event.raw().to_owned().into())).collect();
    out.extend(repairer.finish());
    let events: Vec<&Value> = out.iter().map(Message::value).collect();
    let changes = repairer.changes().len();
    Ok(
        json!({ "name": stream.get("name").map(View::to_value), "events": events, "changes": changes }),
    )
}
