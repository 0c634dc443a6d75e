//! Follows what agents do, in AAEP's words: `follow ENDPOINT KEY COUNT [CURSOR]`.
//!
//! Prints so many events, one a line, and at the end the cursor to go on from. The gateway may stop and start meanwhile.

use std::io::Write as _;

use banister_client::{Client, Endpoint, Follow};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (endpoint, key, count, cursor) = match words.as_slice() {
        [endpoint, key, count] => (endpoint, key, count, None),
        [endpoint, key, count, cursor] => (endpoint, key, count, Some(cursor)),
        _ => return Err("usage: follow ENDPOINT KEY COUNT [CURSOR]".into()),
    };
    let client = Client::new(Endpoint::parse(endpoint)?, key);
    let follow = match cursor {
        Some(cursor) => Follow::aaep().after(cursor),
        None => Follow::aaep().from_start(),
    };
    let mut feed = client.follow(follow);
    let mut out = std::io::stdout();
    for _ in 0..count.parse::<usize>()? {
        let next = feed.next().await?;
        writeln!(out, "{}", next.event)?;
        out.flush()?;
    }
    writeln!(out, "{}", json!({ "cursor": feed.cursor(), "missed": feed.is_exhausted() }))?;
    Ok(())
}
