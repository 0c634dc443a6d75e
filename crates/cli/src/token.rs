//! `banister token login`: a login link for the browser.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::failure::GOOD;
use crate::place::{Place, block_on};
use crate::print;

#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Print a login link for the browser; it works once, for a quarter of an hour
    Login {
        /// Print JSON: {"schema", "url"}
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(args: &TokenArgs) -> anyhow::Result<u8> {
    let What::Login { json: as_json } = args.what;
    let client = args.place.client()?;
    let answer = block_on(async { Ok(client.post("/api/login-links", &json!({})).await?) })?;
    let url = answer.get("url").and_then(Value::as_str);
    let url = url.ok_or_else(|| anyhow::anyhow!("the gateway gave no link"))?;
    print::say(&if as_json { answer.to_string() } else { url.to_owned() });
    Ok(GOOD)
}
