//! Answers what waits on a person, as somebody's own program might: `person ENDPOINT KEY accept|reject [WHY]`.
//!
//! Subscribes first, so that it hears of an ask when it is opened; answers one, and prints what the gateway said.

use std::io::Write as _;

use banister_client::{Answer, Client, Endpoint};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [endpoint, key, decision, why @ ..] = words.as_slice() else {
        return Err("usage: person ENDPOINT KEY accept|reject [WHY]".into());
    };
    let client = Client::new(Endpoint::parse(endpoint)?, key);
    let wanted = json!({
        "languages": ["en"], "supports_confirmation_reply": true,
        "event_filters": { "include": ["aaep:agent.awaiting.confirmation"] },
    });
    let mut feed = client.subscribe("person-example", &wanted).await?;
    let ask = loop {
        if let Some(ask) = client.inbox().await?.into_iter().next() {
            break ask;
        }
        feed.next().await?;
    };
    let answer = match decision.as_str() {
        "accept" => Answer::accept(),
        _ => Answer::reject(why.join(" ")),
    };
    let said = client.answer(&ask.id, &answer).await?;
    feed.close().await?;
    writeln!(std::io::stdout(), "{}", json!({ "ask": ask.id, "said": said }))?;
    Ok(())
}
