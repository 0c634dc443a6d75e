//! `banister extend`: more time to answer.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::answer::refused;
use crate::data_dir::{DataDir, block_on, data_flag};
use crate::failure::GOOD;
use crate::inbox::left;
use crate::print;

#[derive(Debug, Args)]
pub(crate) struct ExtendArgs {
    /// The ask, by its id or the beginning of it
    ask: String,
    /// The extension, such as 90s, 5m or 2h; the original time again if not given
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    by: Option<Duration>,
    #[command(flatten)]
    data_dir: DataDir,
    /// Print JSON: {"schema", "ask", "deadline", "limit", "extendable"}
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ExtendArgs) -> anyhow::Result<u8> {
    let client = args.data_dir.client()?;
    let extended = block_on(async { Ok(client.extend(&args.ask, args.by).await) })?;
    let extended = match extended {
        Ok(extended) => extended,
        Err(error) => return refused(error),
    };
    if args.json {
        let mut value = serde_json::to_value(&extended)?;
        if let Some(fields) = value.as_object_mut() {
            fields.insert("schema".to_owned(), json!("banister.extend/v1"));
        }
        print::say(&value.to_string());
        return Ok(GOOD);
    }
    let now = banister_gateway::clock::Clock::System.now();
    print::tell(&format!("Answer within: {}.", left(&extended.deadline, now)));
    if !extended.extendable {
        print::tell("The agent itself waits no longer than that.");
    }
    let id = extended.ask.strip_prefix("ask_").unwrap_or(&extended.ask);
    let short: String = id.chars().take(8).collect();
    print::tell(&format!(
        "It is asked again: banister answer {short} …{}",
        data_flag(&args.data_dir)
    ));
    Ok(GOOD)
}

/// A length of time as people write it: a whole number and s, m or h.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|unit: char| unit.is_ascii_alphabetic());
    let unit = match text.strip_prefix(digits) {
        Some("s" | "") => 1,
        Some("m") => 60,
        Some("h") => 3_600,
        _ => 0,
    };
    let seconds = digits.parse::<u32>().ok().and_then(|number| number.checked_mul(unit));
    match seconds {
        Some(seconds) if seconds > 0 => Ok(Duration::from_secs(seconds.into())),
        _ => Err("write a length of time as 90s, 5m or 2h".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_is_a_number_and_a_unit() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("5m"), Ok(Duration::from_mins(5)));
        assert_eq!(duration("2h"), Ok(Duration::from_hours(2)));
        assert_eq!(duration("45"), Ok(Duration::from_secs(45)));
        for wrong in ["", "0s", "m", "5d", "-5m", "1.5h", "9999999999s", "4294967295h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
