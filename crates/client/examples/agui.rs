//! Runs an AG-UI agent once and writes down what it left: `agui [--binary] URL [TEXT]`.
//!
//! The output is one JSON object: how the run ended, the error that ended it if one did, the types of its events, the
//! messages and the state.

use std::io::Write as _;

use banister_client::agui::{Agent, Ending, Message, RunInput, UserMessage};
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let binary = words.first().is_some_and(|word| word == "--binary");
    let mut words = words.drain(usize::from(binary)..);
    let url = words.next().ok_or("usage: agui [--binary] URL [TEXT]")?;
    let mut input = RunInput::new("thread", "run");
    if let Some(text) = words.next() {
        input.messages.push(Message::User(UserMessage::new("said", text.as_str())));
    }
    let agent = Agent::new(&url)?;
    let agent = if binary { agent.binary() } else { agent };
    let mut run = agent.run(input).await?;
    let (mut events, mut error) = (Vec::new(), None);
    while let Some(event) = run.next().await {
        match event {
            Ok(event) => events.push(event.value().get("type").cloned().unwrap_or_default()),
            Err(problem) => error = Some(problem.to_string()),
        }
    }
    let told = json!({
        "ending": word(&run.ending()), "error": error, "events": Value::from(events),
        "messages": run.messages(), "state": run.state(),
    });
    writeln!(std::io::stdout(), "{told}")?;
    Ok(())
}

fn word(ending: &Ending) -> &'static str {
    match ending {
        Ending::Finished => "finished",
        Ending::Interrupted => "interrupted",
        Ending::Cancelled => "cancelled",
        Ending::Failed { .. } => "failed",
        Ending::Violated => "violated",
        _ => "truncated",
    }
}
