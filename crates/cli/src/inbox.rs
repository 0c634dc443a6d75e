//! `banister inbox`: what is waiting on me.

use banister_events::text;
use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::failure::GOOD;
use crate::place::{Place, block_on, data_flag};
use crate::print;

#[derive(Debug, Args)]
pub(crate) struct InboxArgs {
    #[command(flatten)]
    place: Place,
    /// Print JSON: {"schema", "asks": [{"id", …}]}
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &InboxArgs) -> anyhow::Result<u8> {
    let client = args.place.client()?;
    let asks = block_on(async { Ok(client.inbox().await?) })?;
    let place = data_flag(&args.place);
    print::with(|out, _| {
        if args.json {
            serde_json::to_writer(
                &mut *out,
                &json!({ "schema": "banister.inbox/v1", "asks": asks }),
            )?;
            writeln!(out)?;
            return Ok(GOOD);
        }
        let now = banister_gateway::clock::Clock::System.now();
        match asks.len() {
            0 => writeln!(out, "Nothing is waiting on you.")?,
            1 => writeln!(out, "One thing is waiting on you.")?,
            many => writeln!(out, "{many} things are waiting on you.")?,
        }
        for ask in &asks {
            let text = |pointer: &str| field(&ask.details, pointer);
            writeln!(out)?;
            writeln!(out, "{} wants to run {}:", text("/agent"), text("/tool"))?;
            for line in text("/subject").lines() {
                writeln!(out, "    {line}")?;
            }
            let reason = text("/gate/opaque");
            if !reason.is_empty() {
                writeln!(out, "  Not inspectable: {reason}")?;
            }
            writeln!(
                out,
                "  Why you are asked: {} ({})",
                text("/gate/reason"),
                text("/gate/rule")
            )?;
            let safer = text("/gate/safer");
            if !safer.is_empty() {
                writeln!(out, "  Safer: {safer}")?;
            }
            let irreversible = ask.details.get("gate").and_then(|gate| gate.get("irreversible"));
            let undo = match irreversible.and_then(Value::as_bool) {
                Some(true) => "cannot be undone",
                Some(false) => "can be undone",
                None => "whether it can be undone is not known",
            };
            writeln!(out, "  Risk: {}, {undo}", text("/gate/risk"))?;
            let words = text("/rationale");
            if !words.is_empty() {
                writeln!(out, "  The agent says: {words}")?;
            }
            let folder = text("/cwd");
            if !folder.is_empty() {
                writeln!(out, "  Folder: {folder}")?;
            }
            writeln!(out, "  Answer within: {}, or it is rejected", left(&text("/deadline"), now))?;
            if ask.details.get("waiting").and_then(Value::as_bool) == Some(false) {
                writeln!(out, "  The agent is not connected right now.")?;
            }
            let id = ask.id.strip_prefix("ask_").unwrap_or(&ask.id);
            let short: String = id.chars().take(8).collect();
            writeln!(out, "  Answer: banister answer {short} accept{place}")?;
            writeln!(out, "      or: banister answer {short} reject{place}")?;
        }
        Ok(GOOD)
    })
}

/// A text of the gateway's, with nothing hidden in it. A command keeps its lines.
fn field(details: &serde_json::Map<String, Value>, pointer: &str) -> String {
    let mut names = pointer.split('/').skip(1);
    let first = names.next().and_then(|name| details.get(name));
    let value = names.fold(first, |value, name| value.and_then(|value| value.get(name)));
    let found = value.and_then(Value::as_str).unwrap_or_default();
    match pointer {
        "/subject" => text::visible(found).into_owned(),
        _ => text::one_line(found),
    }
}

fn left(deadline: &str, now: Timestamp) -> String {
    let Ok(deadline) = deadline.parse::<Timestamp>() else {
        return deadline.to_owned();
    };
    let seconds = deadline.duration_since(now).as_secs().max(0);
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds} seconds"),
        (minutes, seconds) => format!("{minutes} minutes {seconds} seconds"),
    }
}
