//! Tells a gateway what an agent does, and asks before it does it: `emit ENDPOINT KEY COMMAND`.
//!
//! Prints the receipts of what was pushed and the answer to what was asked.

use std::io::Write as _;
use std::time::Duration;

use banister_client::{Client, Endpoint, Outbox};
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [endpoint, key, command] = words.as_slice() else {
        return Err("usage: emit ENDPOINT KEY COMMAND".into());
    };
    let client = Client::new(Endpoint::parse(endpoint)?, key);
    let prompt = json!({ "content": [{ "type": "prompt", "text": "Do something useful." }] });
    let receipts = client
        .emit(
            &Outbox::aep(),
            &[event("1", "session.start", json!({})), event("2", "prompt.submitted", prompt)],
        )
        .await?;
    let action = json!({
        "action": { "type": "tool_call", "id": "act_1", "input": { "command": command } },
        "tool": { "type": "native", "name": "Bash" },
    });
    let asked = event("3", "action.requested", action);
    let response = client.decide(&asked, Duration::from_mins(1)).await?;
    let output = json!({ "receipts": receipts, "response": response });
    writeln!(std::io::stdout(), "{output}")?;
    Ok(())
}

fn event(number: &str, kind: &str, more: Value) -> Value {
    let mut event = json!({
        "aep_version": "0.1", "id": format!("evt_{number}"), "type": kind,
        "time": "2026-11-15T09:00:00Z", "agent": { "slug": "finch" },
        "session": { "id": "example" },
    });
    if let (Some(event), Value::Object(more)) = (event.as_object_mut(), more) {
        event.extend(more);
    }
    event
}
