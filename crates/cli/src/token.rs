//! `banister token`: keys are issued, listed and revoked, and browsers are let in by a link.
//!
//! A key is printed once, when it is issued; the gateway keeps no copy. What it may do is bound to it there.

use banister_client::{Client, Error};
use banister_events::event::time_text;
use banister_events::text::one_line;
use banister_gateway::clock::Clock;
use banister_gateway::random;
use clap::{Args, Subcommand, ValueEnum};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::data_dir::{DataDir, block_on};
use crate::failure::{Failure, GOOD};
use crate::print;

#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    data_dir: DataDir,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Print a login link for the browser; it works once, for a quarter of an hour
    Login {
        /// Print JSON: {"schema", "url"}
        #[arg(long)]
        json: bool,
    },
    /// Issue a key and print it; it is not shown again
    Issue(IssueArgs),
    /// List the keys with their scopes and their expiry
    List {
        /// Print JSON: {"schema", "keys": [{"id", "scopes", "expires"}]}
        #[arg(long)]
        json: bool,
    },
    /// Revoke a key for good; its open streams end
    Revoke {
        /// The key's name
        name: String,
        /// Print JSON: {"schema", "id", "revoked"}
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
struct IssueArgs {
    /// A scope of the key; may be given more than once, or as a list with commas
    #[arg(long, value_name = "SCOPE", required = true, value_delimiter = ',')]
    scope: Vec<Scope>,
    /// The name of the key: 1 to 32 lower-case letters, digits and hyphens; generated if not given
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// When the key expires: a time, a date, or a duration such as 12h or 30d; never if not given
    #[arg(long, value_name = "TIME")]
    expires: Option<End>,
    /// Print JSON: {"schema", "id", "scopes", "expires", "key"}
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Scope {
    /// Push events and ask
    Emit,
    /// Read sessions and streams
    Watch,
    /// Answer asks
    Answer,
    /// Make login links; issue, list and revoke keys
    Admin,
}

impl Scope {
    const fn name(self) -> &'static str {
        match self {
            Self::Emit => "emit",
            Self::Watch => "watch",
            Self::Answer => "answer",
            Self::Admin => "admin",
        }
    }
}

/// When a key ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    At(Timestamp),
    In(SignedDuration),
}

impl End {
    fn time(self) -> Timestamp {
        match self {
            Self::At(time) => time,
            Self::In(life) => Clock::System.now().checked_add(life).unwrap_or(Timestamp::MAX),
        }
    }
}

impl std::str::FromStr for End {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(time) = text.parse() {
            return Ok(Self::At(time));
        }
        if let Ok(date) = text.parse::<jiff::civil::Date>()
            && let Ok(start) = date.to_zoned(jiff::tz::TimeZone::UTC)
        {
            return Ok(Self::At(start.timestamp()));
        }
        let units = [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400), ('w', 604_800)];
        units
            .iter()
            .find_map(|(unit, seconds)| {
                let number: u32 = text.strip_suffix(*unit)?.parse().ok()?;
                Some(Self::In(SignedDuration::from_secs(i64::from(number) * seconds)))
            })
            .ok_or_else(|| {
                "give a time like 2026-05-04T10:00:00Z, a date, or in how long, like 12h or 30d"
                    .to_owned()
            })
    }
}

pub(crate) fn run(args: &TokenArgs) -> anyhow::Result<u8> {
    let client = args.data_dir.client()?;
    match &args.what {
        What::Login { json } => login(&client, *json),
        What::Issue(wanted) => issue(&client, wanted),
        What::List { json } => list(&client, *json),
        What::Revoke { name, json } => revoke(&client, name, *json),
    }
}

fn login(client: &Client, as_json: bool) -> anyhow::Result<u8> {
    let answer = block_on(async { Ok(client.post("/api/login-links", &json!({})).await?) })?;
    let url = answer.get("url").and_then(Value::as_str);
    let url = url.ok_or_else(|| anyhow::anyhow!("the gateway gave no link"))?;
    print::say(&if as_json { answer.to_string() } else { url.to_owned() });
    Ok(GOOD)
}

fn issue(client: &Client, wanted: &IssueArgs) -> anyhow::Result<u8> {
    let mut scopes: Vec<&str> = wanted.scope.iter().map(|scope| scope.name()).collect();
    scopes.dedup();
    let name = match &wanted.name {
        Some(name) => name.clone(),
        None => format!("{}-{}", scopes.join("-"), random::token::<3>()?),
    };
    let expires = wanted.expires.map(End::time);
    let body = json!({ "id": name, "scopes": scopes, "expires": expires });
    let issued = block_on(async { Ok(client.post("/api/keys", &body).await) })?;
    let issued = issued.map_err(refused)?;
    let key = issued.get("key").and_then(Value::as_str);
    let key = key.ok_or_else(|| anyhow::anyhow!("the gateway gave no key"))?;
    print::say(&if wanted.json { issued.to_string() } else { key.to_owned() });
    let end = match expires {
        Some(end) => format!(" until {}", time_text(end)),
        None => String::new(),
    };
    print::tell(&format!(
        "The key {name} may {}{end}. It is not shown again; `banister token revoke {name}` ends it.",
        scopes.join(", ")
    ));
    Ok(GOOD)
}

fn list(client: &Client, as_json: bool) -> anyhow::Result<u8> {
    let listed = block_on(async { Ok(client.get("/api/keys").await) })?.map_err(refused)?;
    print::with(|out, _| {
        if as_json {
            writeln!(out, "{listed}")?;
        } else {
            let now = Clock::System.now();
            for key in listed.get("keys").and_then(Value::as_array).into_iter().flatten() {
                writeln!(out, "{}", line(key, now))?;
            }
        }
        Ok(GOOD)
    })
}

/// A key on one line: its name, what it may do, when it ends.
fn line(key: &Value, now: Timestamp) -> String {
    let word = |name: &str| key.get(name).and_then(Value::as_str).unwrap_or_default();
    let scopes = key.get("scopes").and_then(Value::as_array);
    let scopes: Vec<&str> = scopes.into_iter().flatten().filter_map(Value::as_str).collect();
    let end = match word("expires").parse::<Timestamp>() {
        Ok(end) if end <= now => format!("  expired {}", time_text(end)),
        Ok(end) => format!("  until {}", time_text(end)),
        Err(_) => String::new(),
    };
    format!("{:<20}  {}{end}", one_line(word("id")), one_line(&scopes.join(", ")))
}

fn revoke(client: &Client, name: &str, as_json: bool) -> anyhow::Result<u8> {
    // A name that cannot be a key's would be another path.
    let named = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if !named || name.is_empty() {
        return Err(Failure::refused(format!("there is no key {name:?}")).into());
    }
    let revoked = block_on(async { Ok(client.delete(&format!("/api/keys/{name}")).await) })?;
    match revoked {
        Ok(_) => {}
        Err(Error::NotFound { .. }) => {
            return Err(Failure::refused(format!("there is no key {name:?}")).into());
        }
        Err(error) => return Err(refused(error)),
    }
    if as_json {
        let answer = json!({ "schema": "banister.key-revoked/v1", "id": name, "revoked": true });
        print::say(&answer.to_string());
    } else {
        print::tell(&format!("The key {name} is revoked; what was open under it has ended."));
    }
    Ok(GOOD)
}

/// What the gateway would not do is refused; anything else failed.
fn refused(error: Error) -> anyhow::Error {
    match error {
        Error::NotFound { .. }
        | Error::TooLate { .. }
        | Error::Status { status: 400..=499, .. } => Failure::refused(error.to_string()).into(),
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_times_dates_or_lives_and_nothing_else() {
        let at = |text: &str| Ok(End::At(text.parse().unwrap()));
        assert_eq!("2026-05-04T12:00:00+02:00".parse(), at("2026-05-04T10:00:00Z"));
        assert_eq!("2026-05-04".parse(), at("2026-05-04T00:00:00Z"));
        assert_eq!("30d".parse(), Ok(End::In(SignedDuration::from_hours(720))));
        for wrong in ["", "d", "-1d", "tomorrow", "99999999999w"] {
            assert!(wrong.parse::<End>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_key_is_one_line_and_says_whether_it_has_run_out() {
        let now = "2026-11-15T09:00:00Z".parse().unwrap();
        let key = |expires: Value| json!({ "id": "reader", "scopes": ["watch", "answer"], "expires": expires });
        assert_eq!(line(&key(Value::Null), now), "reader                watch, answer");
        let ended = line(&key(json!("2026-11-14T09:00:00Z")), now);
        assert!(ended.ends_with("  expired 2026-11-14T09:00:00.000Z"), "{ended}");
        assert!(line(&key(json!("2026-11-16T09:00:00Z")), now).contains("  until 2026-11-16"));
    }
}
