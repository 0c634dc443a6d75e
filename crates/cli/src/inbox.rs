//! `banister inbox`: what is waiting on me.

use std::io::{self, Write};
use std::path::Path;

use banister_client::OpenAsk;
use banister_events::text;
use clap::Args;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::data_dir::{DataDir, block_on, data_flag, quoted};
use crate::failure::GOOD;
use crate::print;

#[derive(Debug, Args)]
pub(crate) struct InboxArgs {
    #[command(flatten)]
    data_dir: DataDir,
    /// Print JSON: {"schema", "asks": [{"id", …}]}
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &InboxArgs) -> anyhow::Result<u8> {
    let client = args.data_dir.client()?;
    let asks = block_on(async { Ok(client.inbox().await?) })?;
    let flag = data_flag(&args.data_dir);
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
            0 => writeln!(out, "Nothing is waiting for you.")?,
            1 => writeln!(out, "One ask is waiting for you.")?,
            many => writeln!(out, "{many} asks are waiting for you.")?,
        }
        for ask in &asks {
            writeln!(out)?;
            show(out, ask, now, &flag)?;
        }
        Ok(GOOD)
    })
}

fn show(out: &mut dyn Write, ask: &OpenAsk, now: Timestamp, flag: &str) -> io::Result<()> {
    let text = |pointer: &str| field(&ask.details, pointer);
    let kind = text("/kind");
    let (title, exactly) = match kind.as_str() {
        "clarification" => (format!("{} asks:", text("/agent")), "/question"),
        "plan" => (format!("{} asks whether this plan is good:", text("/agent")), "/plan"),
        "handoff" => (format!("{} hands over:", text("/agent")), "/handoff/reason"),
        _ => (format!("{} wants to run {}:", text("/agent"), text("/tool")), "/subject"),
    };
    writeln!(out, "{title}")?;
    for line in text(exactly).lines() {
        writeln!(out, "    {line}")?;
    }
    let mut row = |name: &str, value: String| {
        if value.is_empty() { Ok(()) } else { writeln!(out, "  {name}: {value}") }
    };
    row("Not inspectable", text("/gate/opaque"))?;
    if ask.details.contains_key("gate") {
        let rule = text("/gate/rule");
        let rule = if rule.is_empty() { rule } else { format!(" ({rule})") };
        row("Why you are asked", format!("{}{rule}", text("/gate/reason")))?;
        row("Safer", text("/gate/safer"))?;
        let irreversible = ask.details.get("gate").and_then(|gate| gate.get("irreversible"));
        let undo = match irreversible.and_then(Value::as_bool) {
            Some(true) => "cannot be undone",
            Some(false) => "can be undone",
            None => "whether it can be undone is not known",
        };
        row("Risk", format!("{}, {undo}", text("/gate/risk")))?;
    }
    row("The agent says", text("/rationale"))?;
    row("The agent says", text("/words"))?;
    row("Why it asks", text("/context"))?;
    row("To whom", text("/handoff/target"))?;
    row("Where", text("/handoff/uri"))?;
    row("Folder", text("/cwd"))?;
    let deadline = text("/deadline");
    if !deadline.is_empty() {
        let otherwise = match (kind.as_str(), text("/default").as_str()) {
            ("clarification", _) => "the agent goes on without an answer",
            (_, "accept") => "it counts as accepted, because the agent says so",
            _ => "it is rejected",
        };
        row("Answer within", format!("{}, or {otherwise}", left(&deadline, now)))?;
    }
    let is = |name: &str| ask.details.get(name).and_then(Value::as_bool);
    let extendable = is("extendable") == Some(true);
    let limit = text("/limit");
    if extendable {
        row("The agent itself waits", left(&limit, now))?;
    } else if !limit.is_empty() {
        row("The agent itself waits", "no longer than that".to_owned())?;
    }
    if is("waiting") == Some(false) && is("pushed") != Some(true) {
        writeln!(out, "  The agent is not connected right now.")?;
    }
    let id = ask.id.strip_prefix("ask_").unwrap_or(&ask.id);
    let short: String = id.chars().take(8).collect();
    for (index, answer) in answers(&ask.details, &kind).iter().enumerate() {
        let word = if index == 0 { "  Answer:" } else { "      or:" };
        writeln!(out, "{word} banister answer {short} {answer}{flag}")?;
    }
    if extendable {
        writeln!(out, "More time: banister extend {short}{flag}")?;
    }
    Ok(())
}

/// What can be said to an ask, as the command line takes it.
fn answers(details: &Map<String, Value>, kind: &str) -> Vec<String> {
    if kind != "clarification" {
        return vec!["accept".to_owned(), "reject".to_owned()];
    }
    let list = |name: &str| details.get(name).and_then(Value::as_array).into_iter().flatten();
    let mut answers = Vec::new();
    for way in list("takes").filter_map(Value::as_str) {
        match way {
            "yes_no" => answers.extend(["--yes".to_owned(), "--no".to_owned()]),
            "multiple_choice" => {
                for choice in list("choices") {
                    let text = |name: &str| choice.get(name).and_then(Value::as_str);
                    let value = text::one_line(text("value").unwrap_or_default());
                    answers.push(format!("--choice {}", quoted(Path::new(&value))));
                }
            }
            "numeric" => answers.push("--number NUMBER".to_owned()),
            _ => answers.push("TEXT".to_owned()),
        }
    }
    answers.push("reject".to_owned());
    answers
}

/// A text of the gateway's, with nothing hidden in it. A command keeps its lines.
fn field(details: &Map<String, Value>, pointer: &str) -> String {
    let mut names = pointer.split('/').skip(1);
    let first = names.next().and_then(|name| details.get(name));
    let value = names.fold(first, |value, name| value.and_then(|value| value.get(name)));
    let found = value.and_then(Value::as_str).unwrap_or_default();
    match pointer {
        "/subject" | "/question" | "/plan" => text::visible(found).into_owned(),
        _ => text::one_line(found),
    }
}

/// How long it is until then.
pub(crate) fn left(deadline: &str, now: Timestamp) -> String {
    let Ok(deadline) = deadline.parse::<Timestamp>() else {
        return deadline.to_owned();
    };
    let seconds = deadline.duration_since(now).as_secs().max(0);
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds} seconds"),
        (minutes, seconds) => format!("{minutes} minutes {seconds} seconds"),
    }
}
