//! `banister grants`: what agents may do without asking, because somebody said so once.

use banister_events::text::one_line;
use banister_gateway::clock::Clock;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::Value;

use crate::answer::refused;
use crate::data_dir::{DataDir, block_on, data_flag};
use crate::failure::GOOD;
use crate::print;

#[derive(Debug, Args)]
pub(crate) struct GrantsArgs {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    data_dir: DataDir,
    /// Print JSON: {"schema", "grants": [{"id", "covers", …}]}
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Revoke a grant; the action is asked about again
    Revoke {
        /// The grant, by its id or the beginning of it
        grant: String,
    },
}

pub(crate) fn run(args: &GrantsArgs) -> anyhow::Result<u8> {
    let client = args.data_dir.client()?;
    match &args.what {
        None => {
            let grants = block_on(async { Ok(client.grants().await?) })?;
            if args.json {
                print::say(&grants.to_string());
            } else {
                list(&grants, &data_flag(&args.data_dir));
            }
        }
        Some(What::Revoke { grant }) => {
            match block_on(async { Ok(client.revoke_grant(grant).await) })? {
                Ok(revoked) if args.json => print::say(&revoked.to_string()),
                Ok(_) => print::tell("Revoked. The action is asked about again from now on."),
                Err(error) => return refused(error),
            }
        }
    }
    Ok(GOOD)
}

fn list(grants: &Value, flag: &str) {
    let rows = grants.get("grants").and_then(Value::as_array).map(Vec::as_slice);
    let rows = rows.unwrap_or_default();
    print::say(&match rows.len() {
        0 => "Nothing is granted.".to_owned(),
        1 => "One thing is granted.".to_owned(),
        many => format!("{many} things are granted."),
    });
    for row in rows {
        let text = |key: &str| one_line(row.get(key).and_then(Value::as_str).unwrap_or_default());
        let place_of = match text("scope").as_str() {
            "project" => format!("in {}", text("project")),
            "session" => format!("in session {}", text("session")),
            _ => "everywhere".to_owned(),
        };
        print::say(&format!("\n{}", text("covers")));
        print::say(&format!("  Where: {place_of}, for {}", text("agent")));
        print::say(&format!("  Instead of being asked by: {}", text("rule")));
        print::say(&format!("  Until: {}{}", text("until"), left(&text("until"))));
        print::say(&format!("  Revoke: banister grants revoke {}{flag}", text("id")));
    }
}

/// How many days are left, for people.
fn left(until: &str) -> String {
    let Ok(until) = until.parse::<Timestamp>() else { return String::new() };
    match until.duration_since(Clock::System.now()).as_hours() / 24 {
        0 => ", less than a day".to_owned(),
        1 => ", one day".to_owned(),
        days => format!(", {days} days"),
    }
}
